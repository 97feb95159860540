#!/bin/bash
# CPU time of `offsim flows` and of SimGrid for the same 200,000 flows in 8 streams over 10 links, paths of 1 to 4 links.
#
#	tests/bench/simgrid_bench.sh [RUNS]		environment: OFFSIM, BUILD
#
# Both read the same files and print one number. The programs take turns, so that a busy machine hurts all alike, and
# the median of RUNS (7) counts. SimGrid runs twice: driven by callbacks, the fastest way we found, and by one actor a
# stream, as its tutorials do it (tests/simgrid/simgrid_flows.cpp says how both are set up).
# Two inputs: streams that are always busy, and streams with gaps. Only with gaps does the last finish have to agree;
# why is in tests/simgrid/gen_flows.c.
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-build/release}
OFFSIM=${OFFSIM:-$BUILD/offsim}
runs=${1:-7}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
TIMEFORMAT='%3U %3S'

sh tests/simgrid/build.sh "$BUILD"
case $? in
0) programs='offsim callbacks actors' ;;
3)
	programs=offsim
	echo 'SimGrid is not installed (apt-get install libsimgrid-dev): nothing to compare with'
	;;
*) exit 1 ;;
esac
if ! [[ -x $OFFSIM ]]; then
	echo "no program $OFFSIM" >&2
	exit 1
fi

run() {
	case $1 in
	offsim) "$OFFSIM" flows --quiet "$tmp/links.csv" "$tmp/flows.csv" ;;
	callbacks) "$BUILD/simgrid/simgrid_flows" --quiet "$tmp/links.csv" "$tmp/flows.csv" ;;
	actors) "$BUILD/simgrid/simgrid_flows" --quiet --actors "$tmp/links.csv" "$tmp/flows.csv" ;;
	esac
}

# median user|cpu PROGRAM: of its times
median() {
	awk -v column="$1" '{ print column == "cpu" ? $1 + $2 : $1 }' "$tmp/$2.times" | sort -g |
		awk '{ x[NR] = $1 } END { print (x[int((NR + 1) / 2)] + x[int((NR + 2) / 2)]) / 2 }'
}

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
	base=$(median user offsim)
	base_cpu=$(median cpu offsim)
	for p in $programs; do
		user=$(median user "$p")
		cpu=$(median cpu "$p")
		awk -v p="$p" -v user="$user" -v cpu="$cpu" -v base="$base" -v base_cpu="$base_cpu" -v last="$(cat "$tmp/$p.last")" '
			BEGIN {
				name["offsim"] = "offsim flows"
				name["callbacks"] = "SimGrid, callbacks"
				name["actors"] = "SimGrid, actors"
				printf "  %-20s user %.3f s  user+sys %.3f s", name[p], user, cpu
				if (p != "offsim")
					printf "  ratio %.1f (user+sys %.1f)", user / base, cpu / base_cpu
				printf "  last finish %s s\n", last
			}'
	done
}

for spread in 0.5 8; do
	"$BUILD/simgrid/gen_flows" -s $spread 7 10 8 200000 4 "$tmp" || exit 1
	if [[ $spread == 8 ]]; then
		echo "200,000 flows, 8 streams with gaps, 10 links, median of $runs:"
	else
		echo "200,000 flows, 8 busy streams, 10 links, median of $runs:"
	fi
	measure || exit 1
done
if [[ $programs != offsim ]]; then
	awk -v a="$(cat "$tmp/offsim.last")" -v b="$(cat "$tmp/callbacks.last")" -v c="$(cat "$tmp/actors.last")" '
		function off(x, y) { return (x > y ? x - y : y - x) / y }
		BEGIN {
			worst = off(a, b) > off(a, c) ? off(a, b) : off(a, c)
			printf "with gaps the last finishes agree to %.1g\n", worst
			exit worst > 1e-6
		}'
fi
