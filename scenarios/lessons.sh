#!/bin/sh
# lessons.sh [OFFSIM [FOLDER]]: what `make docs-lessons` runs. Each lesson's own command lines, those after "Run:" at the
# head of its file (run, sweep and plot), with the figures in FOLDER.
set -eu
offsim=${1:-build/release/offsim}
out=${2:-docs/lessons}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$out"
for lesson in "${0%/*}"/lessons/[0-9]*.yaml; do
	echo "=== $lesson"
	rm -f "$tmp"/*
	sed -n 's/^# *\(Run: *\)\{0,1\}offsim //p' "$lesson" >"$tmp/commands"
	while read -r line; do
		# shellcheck disable=SC2086 # words, none with a space
		set -- $line
		case $1 in run | sweep | plot) ;; *) continue ;; esac
		for word; do
			shift
			case ${last:-} in
			--db) word=$tmp/$word ;;
			-o) word=$out/$word ;;
			esac
			set -- "$@" "$word"
			last=$word
		done
		last=
		"$offsim" "$@"
	done <"$tmp/commands"
done
