#!/bin/sh
# offsim sweep: the grid, the same rows at any -j, what was stopped goes on, shards, failing points.
. tests/cli/tap.sh
command -v sqlite3 >/dev/null || skip_all 'sqlite3 is not installed'

cat >"$tmp/s.yaml" <<'EOF'
model: llama-3.2-1b
quant: q8_0
machine: desktop-rtx4090-ddr5
engine: llama.cpp
workload: {batch: 1, prompt: 64, generate: 16}
sweep: {flags.ngl: 0..17/4, workload.batch: [1, 3, 8], machine.gpu0.link.gen: [3, 4]}
EOF
# FIRST..LAST includes LAST: 0 4 8 12 16 17
points=36

sweep() { "$OFFSIM" sweep "$tmp/s.yaml" "$@"; }
query() { sqlite3 "$tmp/$1.db" "$2"; }
rows() { # DB: everything but times
	for table in run run_param memory_use resource_use; do
		sqlite3 "$1" "select * from $table order by 1, 2, 3"
	done
}
counts() { # DB POINTS
	[ "$(query "$1" 'select count(*) from run')" = "$2" ] || { query "$1" 'select count(*) from run'; return 1; }
}
same_at_any_j() {
	for j in 1 2 5; do
		sweep --db "$tmp/j$j.db" -j "$j" >/dev/null || return 1
		rows "$tmp/j$j.db" >"$tmp/j$j.rows"
	done
	cmp "$tmp/j1.rows" "$tmp/j2.rows" && cmp "$tmp/j1.rows" "$tmp/j5.rows"
}
# Functions of this file are not what runs in the background there: the shell between would be what is killed.
killed_twenty_times() {
	for delay in 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 17 18 19 20; do
		"$OFFSIM" sweep "$tmp/s.yaml" --db "$tmp/k.db" -j 2 >/dev/null 2>&1 &
		sleep "0.$delay"
		kill -9 $! 2>/dev/null
		wait $! 2>/dev/null
		[ ! -e "$tmp/k.db" ] || [ "$(sqlite3 "$tmp/k.db" 'pragma integrity_check' 2>&1)" = ok ] ||
			{ sqlite3 "$tmp/k.db" 'pragma integrity_check'; return 1; }
	done
	sweep --db "$tmp/k.db" >/dev/null || return 1
	rows "$tmp/k.db" | cmp - "$tmp/j1.rows"
}
skips() {
	sweep --db "$tmp/j1.db" --json >"$tmp/out" || return 1
	grep -q "\"points\": $points, \"done\": 0, \"skipped\": $points, \"failed\": 0" "$tmp/out" || { cat "$tmp/out"; return 1; }
}
shards_are_a_partition() {
	for i in 1 2 3; do
		sweep --db "$tmp/part$i.db" --shard $i/3 >/dev/null || return 1
		query "part$i" 'select key from run'
	done | sort >"$tmp/keys"
	query j1 'select key from run order by key' | cmp - "$tmp/keys"
}
interrupted() {
	sed 's/flags.ngl:/workload.prompt: 1..10000, &/' "$tmp/s.yaml" >"$tmp/long.yaml"
	"$OFFSIM" sweep "$tmp/long.yaml" --db "$tmp/i.db" >/dev/null 2>"$tmp/err" &
	for _ in 1 2 3 4 5 6 7 8 9; do
		sleep 0.3
		[ "$(query i 'select count(*) > 2 from run' 2>/dev/null)" != 1 ] || break
	done
	interrupt $!
	fails 1 wait $! && grep -q 'goes on from there' "$tmp/err" && test "$(query i 'select count(*) > 2 from run')" = 1
}
failing_points() {
	sed 's/batch: \[1, 3, 8\]/batch: [1, 0, many]/' "$tmp/s.yaml" >"$tmp/bad.yaml"
	"$OFFSIM" sweep "$tmp/bad.yaml" --db "$tmp/bad.db" --json >"$tmp/out" 2>/dev/null || return 1
	grep -q '"done": 12, "skipped": 0, "failed": 24' "$tmp/out" || { cat "$tmp/out"; return 1; }
	[ "$(query bad "select count(*) from run where status = 'failed' and message like '%must be between%'")" = 12 ]
}
refused() { # TEXT SED
	sed "$2" "$tmp/s.yaml" >"$tmp/r.yaml"
	"$OFFSIM" sweep "$tmp/r.yaml" --db "$tmp/r.db" >"$tmp/out" 2>&1
	[ $? -eq 2 ] && grep -qF -e "$1" "$tmp/out" || { cat "$tmp/out"; return 1; }
}

# Two at once simulate each point once between them, also when one dies; of their claims nothing is left.
number() { # NAME FILE...: the sum of a number of sweep --json
	awk -F"\"$1\": " '{ sum += $2 } END { print sum }' "$tmp/first" "$tmp/second"
}
two_at_once() {
	sed 's/flags.ngl:/workload.prompt: 64..79, &/' "$tmp/s.yaml" >"$tmp/wide.yaml"
	"$OFFSIM" sweep "$tmp/wide.yaml" --db "$tmp/alone.db" >/dev/null || return 1
	"$OFFSIM" sweep "$tmp/wide.yaml" --db "$tmp/two.db" -j 2 --json >"$tmp/first" &
	"$OFFSIM" sweep "$tmp/wide.yaml" --db "$tmp/two.db" -j 1 --json >"$tmp/second" && wait $! || return 1
	[ "$(number "done")" -eq $((16 * points)) ] && [ "$(number skipped)" -eq $((16 * points)) ] || { cat "$tmp/first" "$tmp/second"; return 1; }
	rows "$tmp/alone.db" >"$tmp/alone.rows"
	rows "$tmp/two.db" | cmp - "$tmp/alone.rows" && [ ! -e "$tmp/two.db-claims" ]
}
one_of_two_killed() {
	"$OFFSIM" sweep "$tmp/wide.yaml" --db "$tmp/dead.db" -j 2 >/dev/null 2>&1 &
	first=$!
	"$OFFSIM" sweep "$tmp/wide.yaml" --db "$tmp/dead.db" -j 2 >/dev/null &
	sleep 0.1
	kill -9 $first
	wait $! && rows "$tmp/dead.db" | cmp - "$tmp/alone.rows" && [ ! -e "$tmp/dead.db-claims" ]
}
no_room_for_claims() { # then work may be done twice, and that is all
	mkdir "$tmp/c.db-claims" && sweep --db "$tmp/c.db" >/dev/null && rows "$tmp/c.db" | cmp - "$tmp/j1.rows" || return 1
	echo theirs >"$tmp/o.db-claims"
	ln -s nowhere "$tmp/l.db-claims"
	sweep --db "$tmp/o.db" >/dev/null && sweep --db "$tmp/l.db" >/dev/null && grep -qx theirs "$tmp/o.db-claims" &&
		[ -L "$tmp/l.db-claims" ] && [ ! -e "$tmp/nowhere" ]
}
one_run_twice() { # points of one key count as simulated, however early the first was stored
	sed 's/, 8\]/, 3, 3]/' "$tmp/s.yaml" >"$tmp/same.yaml"
	for j in 1 3; do
		"$OFFSIM" sweep "$tmp/same.yaml" --db "$tmp/same$j.db" -j $j --json | grep -q '"points": 48, "done": 48, "skipped": 0,' || return 1
	done
}

ok 'the same rows at any -j' same_at_any_j
ok 'two at once' two_at_once
ok 'two at once, one killed' one_of_two_killed
ok 'without claims' no_room_for_claims
ok 'points of one key' one_run_twice
ok 'every point is there' counts j1 $points
ok 'the first swept key is first' test "$(query j1 "select distinct name from run_param where position = 0")" = flags.ngl
ok 'what is there is skipped' skips
ok 'killed twenty times, nothing is lost or twice' killed_twenty_times
ok 'shards are a partition' shards_are_a_partition
ok 'Ctrl-C stores what is done and says how to go on' interrupted
ok 'points that fail are rows with their message' failing_points
ok 'no sweep' refused "the scenario has no 'sweep'" '/^sweep/d'
ok 'a range that goes nowhere' refused 'goes nowhere' 's|0..17/4|17..0/4|'
ok 'a range of words' refused 'is not FIRST..LAST/STEP' 's|0..17/4|a..b|'
ok 'a bad shard' fails 2 "$OFFSIM" sweep "$tmp/s.yaml" --db "$tmp/x.db" --shard 3/2
finish
