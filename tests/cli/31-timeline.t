#!/bin/sh
# When each resource was in use: as a figure of what `run` stored, and as a file for Perfetto.
. tests/cli/tap.sh
command -v gnuplot >/dev/null || skip_all 'no gnuplot'
command -v sqlite3 >/dev/null || skip_all 'sqlite3 is not installed'

db=$tmp/results.db
lesson=scenarios/lessons/07-utilisation.yaml
sql() { sqlite3 "$db" "$1"; }
is() { # WANT SQL
	got=$(sql "$2")
	[ "$got" = "$1" ] || { echo "'$got', not '$1'"; return 1; }
}
says() { # TEXT COMMAND...: its stderr
	says_text=$1
	shift
	"$@" 2>&1 >/dev/null | grep -qF -e "$says_text"
}

ok 'run stores it' "$OFFSIM" run $lesson --db "$db"
ok 'two decode steps' is 2 "select count(*) from span where position = 0 and resource = 'decode'"
ok 'the GPU is idle most of the time' is 1 \
	"select sum((end_s - begin_s) * busy) < 0.1 * max(end_s) from span where resource = 'gpu0'"
ok 'the link never' is 1 \
	"select sum((end_s - begin_s) * busy) > 0.99 * max(end_s) from span where resource = 'gpu0.link.h2d'"
ok 'no lane has more than 1280 rows' is 1 "select max(n) <= 1280 from (select count(*) as n from span group by position)"
sql 'select * from span' >"$tmp/first"
"$OFFSIM" run $lesson --db "$db" >/dev/null 2>&1
sql 'select * from span' >"$tmp/second"
ok 'again, the same' cmp "$tmp/first" "$tmp/second"

for suffix in svg png pdf; do
	ok "the strip as $suffix" "$OFFSIM" plot timeline --db "$db" -o "$tmp/f.$suffix"
done
ok 'of one run, utilisation is the strip' sh -c "'$OFFSIM' plot utilisation --db '$db' -o '$tmp/u.svg' && grep -q 'time (ms)' '$tmp/u.svg'"
"$OFFSIM" plot timeline --db "$db" --terminal >"$tmp/strip" 2>&1
ok 'on a terminal bursts are dots' grep -q '^ *gpu0 [+ ]*\.\{20,\}' "$tmp/strip"
ok 'and the link is full' grep -q '^ *gpu0.link.h2d [+ ]*#\{20,\}' "$tmp/strip"

"$OFFSIM" sweep $lesson --db "$tmp/sweep.db" >/dev/null 2>&1
ok 'a sweep stores none' test "$(sqlite3 "$tmp/sweep.db" 'select count(*) from span')" = 0
ok 'and says so' says "'offsim sweep' does not" "$OFFSIM" plot timeline --db "$tmp/sweep.db" --terminal
for layers in 5 10 20 30 35; do
	"$OFFSIM" run $lesson --set flags.gpu-layers=$layers --db "$db" >/dev/null 2>&1
done
ok 'five runs: four are drawn' says 'no room for 1 more runs' "$OFFSIM" plot timeline --db "$db" -o "$tmp/f.svg"

ok 'for Perfetto' "$OFFSIM" timeline $lesson -o "$tmp/t.json"
ok 'it begins so' grep -q '"traceEvents":\[' "$tmp/t.json"
"$OFFSIM" timeline $lesson --json >"$tmp/stdout.json" 2>/dev/null
ok '--json is the same' cmp "$tmp/t.json" "$tmp/stdout.json"
ok 'does not fit' fails 3 "$OFFSIM" timeline $lesson --set flags.gpu-layers=80 -o "$tmp/no.json"
ok 'then there is no file' test ! -e "$tmp/no.json"
ok 'no folder' fails 1 "$OFFSIM" timeline $lesson -o "$tmp/none/t.json"
ok 'full disk' fails 1 sh -c "'$OFFSIM' timeline $lesson --json >/dev/full"
ok 'where to?' fails 2 "$OFFSIM" timeline $lesson
ok 'both' fails 2 "$OFFSIM" timeline $lesson --json -o "$tmp/t.json"
ok 'nothing left behind' test -z "$(find "$tmp" -name '*.part')"
finish
