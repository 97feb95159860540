#!/bin/sh
# make bench: how fast offsim is, in one table. A part that is not there is named, and left out.
#
# Parts print lines of "what<TAB>value<TAB>unit" on standard output: bench_core, bench_otr, bench_cache and simgrid_bench.sh
# beside this script, and below: what a whole `offsim run` takes, storing or not (median of 20).
set -eu
here=${0%/*}
OFFSIM=${OFFSIM:-build/release/offsim}
BUILD=${BUILD:-build/release}
export OFFSIM BUILD
RUNS=20
scenario=scenarios/headline.yaml
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM

# part PROGRAM
part() {
	if [ -x "$1" ]; then
		"$1" >>"$tmp/table" || echo "bench: $1 failed (left out)" >&2
	else
		echo "bench: no $1 (left out)" >&2
	fi
}

# median_ms COMMAND...: of RUNS runs, in milliseconds.
median_ms() {
	i=0
	while [ $i -lt $RUNS ]; do
		start=$(date +%s%N)
		"$@" >"$tmp/out" 2>&1 || [ $? -eq 3 ] || { cat "$tmp/out" >&2; return 1; }
		end=$(date +%s%N)
		echo $((end - start))
		i=$((i + 1))
	done | sort -n | awk '{ t[NR] = $1 } END { if (NR == '$RUNS') printf "%.2f", (t[NR / 2] + t[NR / 2 + 1]) / 2e6; else exit 1 }'
}

# whole_run WHAT OPTION...
whole_run() {
	what=$1
	shift
	if ms=$(median_ms "$OFFSIM" run "$scenario" "$@"); then
		printf '%s\t%s\tms, median of %d\n' "$what" "$ms" $RUNS >>"$tmp/table"
	else
		echo "bench: offsim run $scenario failed (left out)" >&2
	fi
}

: >"$tmp/table"
echo "measuring: some minutes" >&2
part "$BUILD/tests/bench/bench_core"
part "$BUILD/tests/bench/bench_otr"
part "$BUILD/tests/bench/bench_cache"
part "$here/simgrid_bench.sh"
whole_run 'offsim run, not stored' --no-db
whole_run 'offsim run, stored' --db "$tmp/results.db"
awk -F'\t' 'NF == 3 { printf "%-56s %12s  %s\n", $1, $2, $3; next } { print }' "$tmp/table"
