#!/bin/sh
# The same scenario and seed give the same --json to the byte, wall time aside: twice by one program, and by the
# program that another compiler made (make check builds it).
. tests/cli/tap.sh
CLANG=build/clang/offsim

# simulate PROGRAM SCENARIO OUT: 3, "does not fit", is a result like any other. Each key begins a line, so that
# the wall time can be taken out however the document is laid out.
simulate() {
	"$1" run --no-db --json --seed 7 "$2" >"$tmp/json"
	status=$?
	[ $status -eq 0 ] || [ $status -eq 3 ] || { echo "$1 run $2: status $status"; return 1; }
	sed 's/,[[:space:]]*"/,\n"/g' "$tmp/json" | sed '/^[[:space:]]*"wall_s"/d' >"$3"
	[ -s "$3" ]
}

agree() { # PROGRAM SCENARIO
	simulate "$OFFSIM" "$2" "$tmp/first" && simulate "$1" "$2" "$tmp/second" && diff "$tmp/first" "$tmp/second"
}

for scenario in $(find scenarios -name '*.yaml' | sort); do
	ok "$scenario, again" agree "$OFFSIM" "$scenario"
	[ ! -x "$CLANG" ] || ok "$scenario, by clang" agree "$CLANG" "$scenario"
done
finish
