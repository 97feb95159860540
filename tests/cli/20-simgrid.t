#!/bin/sh
# offsim flows against two programs that share nothing with it: exact_flows (ours, plain, long double) and SimGrid.
# Random cases with shared paths of several links, equal start times and sizes; see tests/simgrid/gen_flows.c.
. tests/cli/tap.sh
BUILD=${BUILD:-build/release}

# SEED and the options of gen_flows: [-w] [-s SPREAD] SEED N_LINKS N_STREAMS N_FLOWS MAX_HOPS
cases() {
	k=1
	while [ $k -le 30 ]; do
		wide=
		[ $((k % 3)) -ne 0 ] || wide=-w
		printf '%s\n' "$wide $k $((2 + k * 7 % 11)) $((1 + k * 5 % 12)) $((20 + k * 97 % 381)) $((1 + k % 4))"
		k=$((k + 1))
	done
	# Many streams; and long runs: with gaps, or rounding errors would grow without bound.
	printf '%s\n' '31 40 100 2000 6' '-s 8 32 10 8 20000 4' '-w -s 8 33 12 12 20000 4'
}

agree() {
	awk -f tests/simgrid/compare.awk "$1" "$2"
}
differ() {
	! agree "$1" "$2"
}

# test_agree and test_differ WHAT EXPECTED GOT: the difference is shown in any case.
test_agree() {
	ok "$1" agree "$2" "$3"
	sed 's/^/# /' "$tmp/tap.log"
}
test_differ() {
	ok "$1" differ "$2" "$3"
	sed 's/^/# /' "$tmp/tap.log"
}

# --quiet prints the last finish, in the digits of the list.
quiet_agrees() {
	want=$(awk -F, 'NR > 1 && (NR == 2 || $2 + 0 > last + 0) { last = $2 } END { print last }' "$tmp/offsim")
	got=$("$OFFSIM" flows --quiet "$tmp/links.csv" "$tmp/flows.csv")
	[ "$got" = "$want" ] || { echo "'$got' instead of '$want'"; return 1; }
}

bail_out() {
	echo "Bail out! $1"
	exit 1
}

[ -x "$OFFSIM" ] || bail_out "no program $OFFSIM"
sh tests/simgrid/build.sh "$BUILD" >"$tmp/build" 2>&1
built=$?
sed 's/^/# /' "$tmp/build"
[ $built -eq 0 ] || [ $built -eq 3 ] || bail_out 'tests/simgrid does not compile'
PATH=$BUILD/simgrid:$PATH

cases >"$tmp/cases"
while read -r args; do
	# shellcheck disable=SC2086
	gen_flows $args "$tmp" || bail_out "gen_flows $args"
	exact_flows "$tmp/links.csv" "$tmp/flows.csv" >"$tmp/exact" || bail_out "no exact solution of gen_flows $args"
	"$OFFSIM" flows "$tmp/links.csv" "$tmp/flows.csv" >"$tmp/offsim" 2>"$tmp/stderr" || echo '# offsim flows failed:'
	sed 's/^/# /' "$tmp/stderr"

	test_agree "case $args: offsim and the exact solution" "$tmp/exact" "$tmp/offsim"
	ok "case $args: --quiet" quiet_agrees
	if [ $built -eq 3 ]; then
		tap_n=$((tap_n + 1))
		echo "ok $tap_n # SKIP libsimgrid-dev is not installed (apt-get install libsimgrid-dev)"
	else
		simgrid_flows "$tmp/links.csv" "$tmp/flows.csv" >"$tmp/simgrid" 2>"$tmp/stderr" || sed 's/^/# /' "$tmp/stderr"
		test_agree "case $args: offsim and SimGrid" "$tmp/simgrid" "$tmp/offsim"
	fi
done <"$tmp/cases"

# And would the comparison notice? The last case's solution, damaged in several ways.
sed '$d' "$tmp/exact" >"$tmp/damaged"
test_differ 'a missing last line is noticed' "$tmp/exact" "$tmp/damaged"
sed '7d' "$tmp/exact" >"$tmp/damaged"
test_differ 'a missing line in the middle is noticed' "$tmp/exact" "$tmp/damaged"
awk -F, 'NR == 9 { $0 = sprintf("%s,%.12g", $1, $2 * (1 + 2e-6)) } { print }' "$tmp/exact" >"$tmp/damaged"
test_differ 'a finish 2e-6 too late is noticed' "$tmp/exact" "$tmp/damaged"
awk -F, 'NR == 9 { $0 = $1 ",nan" } { print }' "$tmp/exact" >"$tmp/damaged"
test_differ 'a finish that is not a number is noticed' "$tmp/exact" "$tmp/damaged"
: >"$tmp/damaged"
test_differ 'an empty output is noticed' "$tmp/exact" "$tmp/damaged"
test_differ 'an empty reference is noticed' "$tmp/damaged" "$tmp/damaged"
finish
