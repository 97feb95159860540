#!/bin/sh
# offsim flows against two programs that share nothing with it: exact_flows (ours, plain, long double) and SimGrid.
# Random cases with shared paths of several links, equal start times and sizes; see tests/simgrid/gen_flows.c.
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-build/release}
OFFSIM=${OFFSIM:-$BUILD/offsim}
bin=$BUILD/simgrid
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

n=0
ok() {
	n=$((n + 1))
	echo "ok $n - $1"
}
not_ok() {
	n=$((n + 1))
	echo "not ok $n - $1"
}
diag() {
	sed 's/^/# /' "$@"
}

# SEED and the options of gen_flows: [-w] [-s SPREAD] SEED N_LINKS N_STREAMS N_FLOWS MAX_HOPS
cases() {
	k=1
	while [ $k -le 30 ]; do
		wide=
		[ $((k % 3)) -eq 0 ] && wide=-w
		echo $wide $k $((2 + k * 7 % 11)) $((1 + k * 5 % 12)) $((20 + k * 97 % 381)) $((1 + k % 4))
		k=$((k + 1))
	done
	# More streams than links, and long runs: only with gaps, or rounding errors would grow without bound.
	echo 31 40 100 2000 6
	echo -s 8 32 10 8 20000 4
	echo -w -s 8 33 12 12 20000 4
}

sh tests/simgrid/build.sh "$BUILD" >"$tmp/build" 2>&1
status=$?
diag "$tmp/build"
if [ $status -ne 0 ] && [ $status -ne 3 ]; then
	echo "Bail out! tests/simgrid does not compile"
	exit 1
fi
no_simgrid=
[ $status -eq 3 ] && no_simgrid=' # SKIP libsimgrid-dev is not installed (apt-get install libsimgrid-dev)'
if ! [ -x "$OFFSIM" ]; then
	echo "Bail out! no program $OFFSIM"
	exit 1
fi

# agrees WITH EXPECTED: one test, offsim's output against another program's
agrees() {
	if awk -f tests/simgrid/compare.awk "$2" "$tmp/offsim" >"$tmp/difference"; then
		ok "$name: offsim agrees with $1"
	else
		not_ok "$name: offsim agrees with $1"
	fi
	diag "$tmp/difference"
}

cases >"$tmp/cases"
while read -r args; do
	name="gen_flows $args"
	# shellcheck disable=SC2086
	if ! "$bin/gen_flows" $args "$tmp" || ! "$bin/exact_flows" "$tmp/links.csv" "$tmp/flows.csv" >"$tmp/exact"; then
		echo "Bail out! $name: no reference"
		exit 1
	fi
	"$OFFSIM" flows "$tmp/links.csv" "$tmp/flows.csv" >"$tmp/offsim" 2>"$tmp/stderr"
	status=$?
	[ $status -eq 0 ] || echo "# offsim flows: exit status $status"
	diag "$tmp/stderr"
	agrees 'the exact solution' "$tmp/exact"
	if [ "$no_simgrid" ]; then
		ok "$name$no_simgrid"
	elif "$bin/simgrid_flows" "$tmp/links.csv" "$tmp/flows.csv" >"$tmp/simgrid" 2>"$tmp/stderr"; then
		agrees SimGrid "$tmp/simgrid"
	else
		not_ok "$name: SimGrid runs"
		diag "$tmp/stderr"
	fi

	# --quiet prints the last finish, in the same digits.
	last=$(awk -F, 'NR > 1 && (NR == 2 || $2 + 0 > last + 0) { last = $2 } END { print last }' "$tmp/offsim")
	quiet=$("$OFFSIM" flows --quiet "$tmp/links.csv" "$tmp/flows.csv" 2>&1)
	if [ $status -eq 0 ] && [ "$quiet" = "$last" ]; then
		ok "$name: --quiet prints the last finish"
	else
		not_ok "$name: --quiet prints the last finish"
		echo "# '$quiet' instead of '$last'"
	fi
done <"$tmp/cases"

# And would the comparison notice? The last case's solution, damaged in four ways.
notices() {
	if awk -f tests/simgrid/compare.awk "$tmp/exact" "$tmp/damaged" >"$tmp/difference"; then
		not_ok "the comparison notices $1"
	else
		ok "the comparison notices $1"
	fi
	diag "$tmp/difference"
}
sed '$d' "$tmp/exact" >"$tmp/damaged"
notices 'a missing line'
sed '7d' "$tmp/exact" >"$tmp/damaged"
notices 'a missing line in the middle'
awk -F, 'NR == 9 { $0 = sprintf("%s,%.12g", $1, $2 * (1 + 2e-6)) } { print }' "$tmp/exact" >"$tmp/damaged"
notices 'a finish 2e-6 too late'
awk -F, 'NR == 9 { $0 = $1 ",nan" } { print }' "$tmp/exact" >"$tmp/damaged"
notices 'a finish that is not a number'

echo "1..$n"
