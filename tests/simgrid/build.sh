#!/bin/sh
# build.sh BUILD: compile gen_flows, exact_flows and, where SimGrid is installed, simgrid_flows into BUILD/simgrid/.
# Status 0: all three; 3: all but simgrid_flows, for want of SimGrid; 1: a compiler failed.
src=$(dirname "$0")
out=${1:?usage: build.sh BUILD}/simgrid
mkdir -p "$out" || exit 1

# build PROGRAM SOURCE COMPILER FLAG...: unless it is up to date; through a temporary name, as tests may run in parallel
build() {
	program=$out/$1 source=$src/$2
	shift 2
	[ "$program" -nt "$source" ] && return
	# shellcheck disable=SC2086
	"$@" -O2 -Wall -Wextra -o "$program.$$" "$source" $libs && mv "$program.$$" "$program"
}

gsl=$(pkg-config --cflags --libs gsl 2>/dev/null) || gsl='-lgsl -lgslcblas'
libs="$gsl -lm" build gen_flows gen_flows.c "${CC:-gcc}" -std=c11 -D_GNU_SOURCE || exit 1
libs=-lm build exact_flows exact_flows.c "${CC:-gcc}" -std=c11 -D_GNU_SOURCE || exit 1

if ! simgrid=$(pkg-config --cflags --libs simgrid 2>/dev/null) || ! command -v "${CXX:-g++}" >/dev/null; then
	rm -f "$out/simgrid_flows"
	exit 3
fi
libs=$simgrid build simgrid_flows simgrid_flows.cpp "${CXX:-g++}" -std=c++17 || exit 1
