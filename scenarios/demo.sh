#!/bin/sh
# demo.sh [OFFSIM [FOLDER]]: what `make demo` shows. The headline scenario, then the same with other numbers of layers
# on the GPU, stored and drawn. All it makes is in FOLDER.
set -eu
offsim=${1:-build/release/offsim}
out=${2:-build/demo}
scenario=${0%/*}/headline.yaml
db=$out/results.db

step() {
	printf '\n=== %s\n' "$1"
}

# simulate OPTION...: "does not fit" (3) is a result, not a failure.
simulate() {
	"$offsim" run "$scenario" --db "$db" "$@" || [ $? -eq 3 ]
}

# number NAME: of the JSON document on standard input; nothing when it is null.
number() {
	sed -n 's/.*"'"$1"'": *\([0-9][^,} ]*\).*/\1/p' | head -n 1
}

mkdir -p "$out"
rm -f "$db" "$db"-wal "$db"-shm

step "1. One run: $scenario"
sed -n 's/^# \{0,1\}//p' "$scenario"
echo
simulate

step "2. The same with other numbers of layers on the GPU and other links; all are stored in $db"
printf '%22s %12s %12s %12s\n' 'layers on the GPU' 'PCIe 3 x16' 'PCIe 4 x16' 'PCIe 5 x16'
for layers in 0 8 16 24 32 40 47 55; do
	printf '%22d' "$layers"
	for gen in 3 4 5; do
		json=$(simulate --set "flags.gpu-layers=$layers" --set "machine.gpu0.link.gen=$gen" --json)
		rate=$(printf '%s\n' "$json" | number decode_tok_s)
		if [ -n "$rate" ]; then
			printf ' %12.3f' "$rate"
		else
			printf ' %12s' 'does not fit'
		fi
	done
	echo
done

step "3. Tokens a second against layers on the GPU, drawn by gnuplot"
"$offsim" plot throughput --db "$db" --x flags.gpu-layers --series machine.gpu0.link.gen -o "$out/throughput.svg"
"$offsim" plot throughput --db "$db" --x flags.gpu-layers --series machine.gpu0.link.gen -o "$out/throughput.png" 2>/dev/null

step "Done. Look at"
for file in "$out"/*; do
	printf '  %-32s %8d bytes\n' "$file" "$(wc -c <"$file")"
done
cat <<END

Go on with, for example,
  $offsim run $scenario --set workload.batch=16
  $offsim help
END
