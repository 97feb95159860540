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

step "2. The same with other numbers of layers on the GPU; all are stored in $db"
printf '%22s  %12s\n' 'layers on the GPU' 'tokens/s'
for layers in 0 8 16 24 32 40 48 56; do
	json=$(simulate --set "flags.gpu-layers=$layers" --json)
	rate=$(printf '%s\n' "$json" | number decode_tok_s)
	if [ -n "$rate" ]; then
		printf '%22d  %12.3f\n' "$layers" "$rate"
	else
		printf '%22d  %12s\n' "$layers" 'does not fit'
	fi
done

step "3. Tokens a second against layers on the GPU, drawn by gnuplot"
for figure in "$out/throughput.svg" "$out/throughput.png"; do
	"$offsim" plot throughput --db "$db" --x flags.gpu-layers -o "$figure"
done

step "Done. Look at"
for file in "$out"/*; do
	printf '  %-32s %8d bytes\n' "$file" "$(wc -c <"$file")"
done
cat <<END

Go on with, for example,
  $offsim run $scenario --set workload.batch=16
  $offsim help
END
