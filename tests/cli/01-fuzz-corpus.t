#!/bin/sh
# Every input that once was interesting or crashed a reader, through the fuzz targets once.
. tests/cli/tap.sh

tests/fuzz/run.sh have || skip_all 'no clang with libFuzzer'
for source in tests/fuzz/fuzz_*.c; do
	name=${source##*/fuzz_}
	name=${name%.c}
	ok "fuzz_$name has inputs to start from" test -n "$(find "tests/fuzz/corpus/$name" -type f 2>/dev/null | head -n 1)"
	ok "fuzz_$name" tests/fuzz/run.sh one "$name" corpus
done
finish
