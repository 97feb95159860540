#!/bin/sh
# build.sh BUILD: compile gen_flows, exact_flows and, where SimGrid is installed, simgrid_flows into BUILD/simgrid/.
# Status 0: all three; 3: all but simgrid_flows, for want of SimGrid; 1: a compiler failed.
src=$(dirname "$0")
out=${1:?usage: build.sh BUILD}/simgrid
mkdir -p "$out" || exit 1

# build PROGRAM SOURCE LIBRARIES COMPILER FLAG...: unless it is up to date; under another name first, as tests may run
# side by side.
build() {
	program=$out/$1 source=$src/$2 libraries=$3
	shift 3
	[ -z "$(find "$program" -newer "$source" 2>/dev/null)" ] || return 0
	# shellcheck disable=SC2086
	"$@" -O2 -Wall -Wextra -o "$program.$$" "$source" $libraries && mv "$program.$$" "$program"
}

gsl=$(pkg-config --cflags --libs gsl 2>/dev/null) || gsl='-lgsl -lgslcblas -lm'
build gen_flows gen_flows.c "$gsl" "${CC:-gcc}" -std=c11 -D_GNU_SOURCE || exit 1
build exact_flows exact_flows.c -lm "${CC:-gcc}" -std=c11 -D_GNU_SOURCE || exit 1

if ! simgrid=$(pkg-config --cflags --libs simgrid 2>/dev/null) || ! command -v "${CXX:-g++}" >/dev/null; then
	exit 3
fi
build simgrid_flows simgrid_flows.cpp "$simgrid" "${CXX:-g++}" -std=c++17 || exit 1
