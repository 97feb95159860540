#!/bin/sh
# update.sh OFFSIM [FOLDER]: runs every scenario of tests/golden and writes what it gives to FOLDER (here by default).
# Wall time and program version are no part of it.
set -eu
offsim=$1
here=${0%/*}
to=${2:-$here}
for scenario in "$here"/*.yaml; do
	name=${scenario##*/}
	status=0
	"$offsim" run "$scenario" --json --no-db >"$to/golden.tmp" || status=$?
	[ "$status" -eq 0 ] || [ "$status" -eq 3 ] || exit "$status"
	sed '/"wall_s":/d; /"version":/d' "$to/golden.tmp" >"$to/${name%.yaml}.json"
	rm -f "$to/golden.tmp"
done
