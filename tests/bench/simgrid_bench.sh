#!/bin/bash
# CPU time of `offsim flows` and of SimGrid for the same 200,000 flows in 8 streams over 10 links, 1 to 4 links each.
#
#	tests/bench/simgrid_bench.sh [RUNS]		environment: OFFSIM, BUILD
#
# Prints lines of "what<TAB>value<TAB>unit", for bench.sh. All programs read the same two files and print one
# number, and their whole run counts. They take turns, so that a busy machine hurts all alike, and the median of
# RUNS (7) counts. SimGrid runs in two ways: driven by callbacks, the fastest we found, and by one actor a stream,
# as its tutorials do it (tests/simgrid/simgrid_flows.cpp says how both are set up).
# Two inputs: streams that are always busy, and streams with gaps. Only with gaps can the last finishes be
# compared, and status 1 means that they differ; why is in tests/simgrid/gen_flows.c.
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-build/release}
OFFSIM=${OFFSIM:-$BUILD/offsim}
runs=${1:-7}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
TIMEFORMAT='%3U %3S'

programs='offsim callbacks actors'
sh tests/simgrid/build.sh "$BUILD" >&2
case $? in
0) ;;
3)
	programs=offsim
	echo 'SimGrid is not installed (apt-get install libsimgrid-dev): nothing to compare with' >&2
	;;
*) exit 1 ;;
esac
if ! [[ -x $OFFSIM ]]; then
	echo "simgrid_bench.sh: no program $OFFSIM" >&2
	exit 1
fi

run() {
	case $1 in
	offsim) "$OFFSIM" flows --quiet "$tmp/links.csv" "$tmp/flows.csv" ;;
	callbacks) "$BUILD/simgrid/simgrid_flows" --quiet "$tmp/links.csv" "$tmp/flows.csv" ;;
	actors) "$BUILD/simgrid/simgrid_flows" --quiet --actors "$tmp/links.csv" "$tmp/flows.csv" ;;
	esac
}

# median user|cpu PROGRAM: of its times; cpu is user and system time.
median() {
	awk -v what="$1" '{ print what == "cpu" ? $1 + $2 : $1 }' "$tmp/$2.times" | sort -g |
		awk '{ x[NR] = $1 } END { print (x[int((NR + 1) / 2)] + x[int((NR + 2) / 2)]) / 2 }'
}

# measure WHAT
measure() {
	rm -f "$tmp"/*.times
	for ((i = 0; i < runs; i++)); do
		for p in $programs; do
			if ! { time run "$p" >"$tmp/$p.last" 2>"$tmp/$p.stderr"; } 2>>"$tmp/$p.times"; then
				cat "$tmp/$p.stderr" >&2
				return 1
			fi
		done
	done
	for p in $programs; do
		case $p in
		offsim) name='offsim flows' ;;
		*) name="SimGrid by $p" ;;
		esac
		printf '%s, %s\t%.3f\ts of user time (%.3f with system time, median of %d)\n' \
			"$1" "$name" "$(median user "$p")" "$(median cpu "$p")" "$runs"
	done
	for p in ${programs#offsim}; do
		awk -v what="$1" -v p="$p" -v user="$(median user "$p")" -v own="$(median user offsim)" \
			-v cpu="$(median cpu "$p")" -v own_cpu="$(median cpu offsim)" 'BEGIN {
			printf "%s, SimGrid by %s / offsim\t%.1f\ttimes the user time (%.1f with system time)\n",
				what, p, user / own, cpu / own_cpu
		}'
	done
}

"$BUILD/simgrid/gen_flows" 7 10 8 200000 4 "$tmp" && measure '200,000 flows' || exit 1
"$BUILD/simgrid/gen_flows" -s 8 7 10 8 200000 4 "$tmp" && measure '200,000 flows with gaps' || exit 1
[[ $programs != offsim ]] || exit 0
awk -v a="$(cat "$tmp/offsim.last")" -v b="$(cat "$tmp/callbacks.last")" -v c="$(cat "$tmp/actors.last")" '
	function off(x, y) { return (x > y ? x - y : y - x) / y }
	BEGIN {
		worst = off(a, b) > off(a, c) ? off(a, b) : off(a, c)
		printf "200,000 flows with gaps, last finish\t%.1g\trelative difference of offsim and SimGrid\n", worst
		exit !(worst <= 1e-6)
	}'
