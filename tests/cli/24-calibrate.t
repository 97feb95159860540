#!/bin/sh
# offsim calibrate: what it prints parses, its profile loads and runs, nothing is left behind, and what it refuses.
. tests/cli/tap.sh
short="--time 0.05"

mkdir "$tmp/folder"
tmpfs() { [ "$(stat -f -c %T "$1")" = tmpfs ]; }
# Drives are read around the page cache, which tmpfs cannot; then the build folder must do.
drive=$tmp/folder
if tmpfs "$drive"; then
	drive=$(mktemp -d "$PWD/build/calibrate-XXXXXX")
	trap 'rm -rf "$tmp" "$drive"' EXIT
fi

profile() { # PART FILE-OPTION...: each number with its interval, nothing on stderr, a profile complete by itself
	part=$1
	shift
	"$OFFSIM" calibrate "$part" $short -o "$tmp/$part.yaml" "$@" >"$tmp/out" 2>"$tmp/err" && [ ! -s "$tmp/err" ] ||
		{ cat "$tmp/err"; return 1; }
	grep -q ' to .*, [0-9]* repetitions: ' "$tmp/out" && "$OFFSIM" hw show "$tmp/$part.yaml" >"$tmp/shown" || return 1
	cat >"$tmp/s.yaml" <<-E
	model: llama-3.2-1b
	quant: q8_0
	machine: $tmp/$part.yaml
	engine: llama.cpp
	workload: {batch: 1, prompt: 16, generate: 8}
	E
	"$OFFSIM" run "$tmp/s.yaml" --no-db >"$tmp/out"
}

shown() { # NUMBER: the profile of all has it, measured
	grep -q "^$1 .* measured  offsim calibrate, 2.* repetitions: " "$tmp/shown" || { cat "$tmp/shown"; return 1; }
}

json() {
	"$OFFSIM" calibrate all $short --file "$drive" --json -o "$tmp/j.yaml" >"$tmp/j.json" || return 1
	sqlite3 :memory: "
		create table t as select readfile('$tmp/j.json') as j;
		select json_extract(value, '\$.unit') || (json_extract(value, '\$.value') > 0) ||
			(json_extract(value, '\$.interval80[0]') <= json_extract(value, '\$.value')) ||
			(json_extract(value, '\$.interval80[1]') >= json_extract(value, '\$.value')) ||
			(json_array_length(value, '\$.samples') >= 3)
			from t, json_each(t.j, '\$.numbers');
		select json_array_length(j, '\$.parts'), json_array_length(j, '\$.fits[0].residuals') > 3,
			json_extract(j, '\$.profile') from t" >"$tmp/rows" || return 1
	sed '$d' "$tmp/rows" | grep -vE '^(s|B/s|FLOP/s)1111$' && return 1
	[ "$(wc -l <"$tmp/rows")" -gt 30 ] && [ "$(tail -n 1 "$tmp/rows")" = "3|1|$tmp/j.yaml" ]
}

leaves_nothing() {
	[ -z "$(ls -A "$drive")" ] && [ -z "$(find "$tmp" -name '*.yaml.*' -o -name '*.part')" ]
}

interrupted() { # SIGNAL: answered within a second or two, no profile, no file
	"$OFFSIM" calibrate disk --time 60 --file "$drive" -o "$tmp/never.yaml" >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	sleep 1
	kill -s "$1" $pid
	wait $pid
	status=$?
	[ $status -eq 1 ] && grep -q interrupted "$tmp/err" && [ ! -e "$tmp/never.yaml" ] && leaves_nothing ||
		{ echo "status $status"; cat "$tmp/err"; return 1; }
}

killed() { # not even then
	"$OFFSIM" calibrate disk --time 60 --file "$drive" >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	sleep 1
	kill -s KILL $pid
	wait $pid
	leaves_nothing
}

theirs_untouched() { # a file named is read and left as it was
	head -c 70000000 /dev/urandom >"$drive/theirs"
	sum=$(cksum <"$drive/theirs")
	"$OFFSIM" calibrate disk $short --file "$drive/theirs" --json >"$tmp/j.json" && [ "$(cksum <"$drive/theirs")" = "$sum" ] &&
		! grep -q '"write' "$tmp/j.json"
	status=$?
	rm "$drive/theirs"
	return $status
}

refuses() { # STATUS TEXT ARGUMENT...: one line on stderr alone, and at once
	status=$1
	text=$2
	shift 2
	fails "$status" timeout 5 "$OFFSIM" calibrate "$@" >"$tmp/stdout" 2>"$tmp/stderr" || { cat "$tmp/stderr"; return 1; }
	[ ! -s "$tmp/stdout" ] && grep -qF -e "$text" "$tmp/stderr" && [ "$(wc -l <"$tmp/stderr")" -eq 1 ] || { cat "$tmp/stderr"; return 1; }
}

refuses_memory() {
	[ -d /dev/shm ] && tmpfs /dev/shm && [ -w /dev/shm ] || return 0
	refuses 2 'is on tmpfs, which is memory' disk --file /dev/shm
}

no_room() { # a limit on the size of files stands for a full disk
	(trap '' XFSZ && ulimit -f 1000 && fails 1 "$OFFSIM" calibrate disk $short --file "$drive") 2>"$tmp/stderr"
	grep -q "cannot write a file in '$drive'" "$tmp/stderr" && leaves_nothing || { cat "$tmp/stderr"; return 1; }
}

readonly_folder() { # root may write anywhere but in /proc
	refuses 1 'cannot write' disk --file /proc && refuses 1 "cannot write '/proc/x.yaml'" ram -o /proc/x.yaml
}

keeps_old() { # a profile that cannot be replaced stays
	"$OFFSIM" calibrate ram $short -o "$tmp/old.yaml" >"$tmp/out" && cp "$tmp/old.yaml" "$tmp/copy.yaml" || return 1
	(trap '' XFSZ && ulimit -f 0 && "$OFFSIM" calibrate ram $short -o "$tmp/old.yaml" >/dev/null 2>&1) && return 1
	cmp "$tmp/old.yaml" "$tmp/copy.yaml" && leaves_nothing
}

noise() { # other programs that want all processors: said, intervals wider, and yet status 0
	pids=
	for _ in $(seq "$(nproc)"); do
		sh -c 'while :; do :; done' &
		pids="$pids $!"
	done
	"$OFFSIM" calibrate ram --time 0.5 --json >"$tmp/noise.json"
	status=$?
	# shellcheck disable=SC2086
	kill $pids
	grep -q 'ram: others kept .* processors busy' "$tmp/noise.json" && grep -q 'ram: intervals are wider' "$tmp/noise.json" &&
		! grep -q '"widened": 0\.0,' "$tmp/noise.json" && [ $status -eq 0 ]
}

help_has_example() {
	"$OFFSIM" calibrate --help | grep -q '^example: offsim calibrate '
}

same_isa() { # what kernels are chosen by, as hw probe has it: kernels of our own are fewer
	"$OFFSIM" calibrate cpu $short -o "$tmp/isa.yaml" >"$tmp/out" && "$OFFSIM" hw probe -o "$tmp/probed.yaml" >"$tmp/out" || return 1
	grep '  isa: ' "$tmp/isa.yaml" >"$tmp/isa" && grep -o 'isa: [a-z0-9_]*' "$tmp/probed.yaml" | grep -qx "$(tr -d ' ' <"$tmp/isa" | sed 's/:/: /')" || {
		grep isa "$tmp/isa.yaml" "$tmp/probed.yaml"
		return 1
	}
}

one_thread() {
	"$OFFSIM" calibrate ram $short --threads 1 >"$tmp/out" && grep -q 'read.t1 ' "$tmp/out" && ! grep -q 'read.t2 ' "$tmp/out"
}

disk_full() {
	[ -w /dev/full ] || return 0
	fails 1 "$OFFSIM" calibrate ram $short >/dev/full
}

ok 'a profile of memory alone' profile ram
ok 'a profile of processors alone' profile cpu
ok 'the instruction set that hw probe finds' same_isa
ok 'a profile of a drive alone' profile disk --file "$drive"
ok 'a profile of all' profile all --file "$drive"
for number in ram.bandwidth cpu0.thread_bandwidth cpu0.kernels.q4_k.decode cpu0.kernels.iq3_s.prefill cpu0.flops.fp32 cpu0.flops.int8 cpu0.launch nvme0.read nvme0.write nvme0.latency; do
	ok "it has $number" shown $number
done
ok 'JSON: every number has its interval and repetitions' json
ok 'a file of the user stays as it is' theirs_untouched
ok 'nothing is left behind' leaves_nothing
ok 'interrupted' interrupted INT
ok 'terminated' interrupted TERM
ok 'killed' killed
ok 'fewer threads' one_thread
ok 'a noisy machine is noticed' noise
ok 'help ends with an example' help_has_example
ok 'memory is no drive' refuses_memory
ok 'no room for the file' no_room
ok 'folders that cannot be written to' readonly_folder
ok 'a profile is replaced whole or not at all' keeps_old
ok 'a full disk is status 1' disk_full
ok 'an unknown part' refuses 2 "did you mean 'disk'?" disks
ok 'two parts' refuses 2 'expected one of' ram cpu
ok 'an unknown option' refuses 2 "did you mean 'threads'?" --treads 1
ok 'too little time' refuses 2 '--time wants seconds' --time 0
ok 'no time' refuses 2 '--time wants seconds' --time soon
ok 'not a number of seconds' refuses 2 '--time wants seconds' --time nan
ok 'no threads' refuses 2 '--threads wants' --threads 0
ok 'more threads than there are' refuses 2 'are more than the' ram --threads 1024
ok 'a file without disk' refuses 2 '--file goes with disk' cpu --file .
ok 'no such folder' refuses 2 'cannot find' disk --file "$tmp/none"
ok 'a device is no file' refuses 2 'is neither a folder nor a file nor a drive' disk --file /dev/zero
ok 'a small file' refuses 2 'less than 64 MiB' disk --file Makefile
ok 'a profile cannot be a folder' refuses 1 'is a folder' ram -o "$tmp"
ok 'nor a device' refuses 1 'no regular file' ram -o /dev/null
ok 'nor nothing' refuses 1 "cannot write ''" ram -o ""
ok 'a profile in no folder' refuses 1 "cannot write '$tmp/none/x.yaml'" ram -o "$tmp/none/x.yaml"
finish
