#!/bin/sh
# The fuzz targets (built by make fuzz-build), as many at a time as there are processors:
#
#	run.sh have          is there a clang that can build them?
#	run.sh fuzz SECONDS  each for so long; what it finds goes to build/fuzz/corpus/NAME. FUZZ_RUNS stops each
#	                     earlier, and with FUZZ_SEED the same inputs are tried each time: what passed here passes in CI
#	run.sh corpus        each once through what is kept in tests/fuzz/corpus/NAME
#	run.sh merge         keeps, of what was found, the fewest inputs that reach new code
#
# tests/fuzz/fuzz_NAME.c may have a dictionary, tests/fuzz/NAME.dict. A crash, a leak, a hang of 10 s or 2 GB of
# memory fails, and says with which input and how to see it again.
set -eu
cd "${0%/*}/../.."
here=tests/fuzz
out=build/fuzz

# Looked for in clang's folder: asking clang itself takes a tenth of a second.
have_libfuzzer() {
	clang=$(command -v clang) && clang=$(readlink -f "$clang") || return 1
	for lib in "${clang%/bin/*}"/lib/clang/*/lib/*/libclang_rt.fuzzer*.a; do
		[ -e "$lib" ] && return 0
	done
	return 1
}

names() {
	for source in "$here"/fuzz_*.c; do
		[ -e "$source" ] || continue
		name=${source##*/fuzz_}
		echo "${name%.c}"
	done
}

# fuzzer NAME OPTION|FOLDER...: its output goes to $log.
fuzzer() {
	name=$1
	shift
	[ ! -e "$here/$name.dict" ] || set -- -dict="$here/$name.dict" "$@"
	mkdir -p "$here/corpus/$name" "$out/corpus/$name"
	ASAN_OPTIONS=allow_addr2line=1 UBSAN_OPTIONS=print_stacktrace=1 \
		"$out/tests/fuzz/fuzz_$name" -timeout=10 -rss_limit_mb=2048 -artifact_prefix="$out/$name-" "$@" >"$log" 2>&1
}

# one NAME fuzz SECONDS | one NAME corpus | one NAME merge
one() {
	kept=$here/corpus/$1
	found=$out/corpus/$1
	mkdir -p "$out"
	log=$out/$1-$2.log
	# Tests may run at the same time.
	[ "$2" != corpus ] || log=$(mktemp)
	case $2 in
	fuzz) fuzzer "$1" ${FUZZ_SEED:+-seed="$FUZZ_SEED"} ${FUZZ_RUNS:+-runs="$FUZZ_RUNS"} -max_total_time="$3" -print_final_stats=1 "$found" "$kept" ;;
	corpus) fuzzer "$1" -runs=0 "$kept" ;;
	merge) fuzzer "$1" -merge=1 "$kept" "$found" ;;
	esac || {
		input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
		echo "fuzz_$1 FAILED${input:+ on $input}; the end of its output:"
		grep -v '^#[0-9]*[[:space:]]*\(NEW\|REDUCE\|pulse\)' "$log" | tail -n 60 | sed 's/^/    /'
		[ -z "$input" ] || echo "Again: $out/tests/fuzz/fuzz_$1 $input"
		return 1
	}
	awk -v name="$1" -v kept="$(find "$kept" -type f | wc -l)" '
		/cov: / { for (i = 1; i < NF; i++) if ($i == "cov:") cov = $(i + 1) }
		/^Done / { runs = $2 }
		END { printf "%-12s %5d inputs kept, %6d places reached, %10d runs, no crash\n", name, kept, cov, runs }' "$log"
	[ "$2" != corpus ] || rm -f "$log"
}

# all ACTION [SECONDS]: runs `one` for every target.
all() {
	names | xargs -P "$(nproc)" -I NAME "$here/run.sh" one NAME "$@"
}

case ${1:-} in
have) have_libfuzzer ;;
fuzz) all fuzz "${2:-600}" ;;
corpus | merge) all "$1" ;;
one) shift; one "$@" ;;
*) echo "usage: run.sh have | fuzz SECONDS | corpus | merge" >&2; exit 2 ;;
esac
