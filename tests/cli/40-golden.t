#!/bin/sh
# Whole scenarios give what they gave when somebody last looked (make golden-update).
. tests/cli/tap.sh

mkdir "$tmp/now"
ok 'every golden scenario runs' tests/golden/update.sh "$OFFSIM" "$tmp/now"
for want in tests/golden/*.json; do
	name=${want##*/}
	ok "${name%.json}" diff -u "$want" "$tmp/now/$name"
done
ok 'each has its expectation' test "$(ls tests/golden/*.yaml | wc -l)" -eq "$(ls tests/golden/*.json | wc -l)"
finish
