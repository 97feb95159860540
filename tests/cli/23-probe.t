#!/bin/sh
# offsim hw probe: this machine and recorded ones, as a table, a profile and JSON, and what it refuses.
. tests/cli/tap.sh

machines=tests/data/probe

profiles_run() { # the profile of this machine and of each recorded one is one that a scenario takes
	"$OFFSIM" hw probe -o "$tmp/probed.yaml" >"$tmp/table" || return 1
	grep -q '^cpu0 ' "$tmp/table" && grep -q 'written to' "$tmp/table" || return 1
	cat >"$tmp/s.yaml" <<-E
	model: llama-3.1-8b
	quant: q4_0
	machine: ./probed.yaml
	engine: llama.cpp
	workload: {batch: 1, prompt: 32, generate: 8}
	E
	"$OFFSIM" hw show "$tmp/probed.yaml" >"$tmp/shown" || return 1
	for root in "$machines"/*/; do
		"$OFFSIM" hw probe --root "$root" -o "$tmp/probed.yaml" >"$tmp/table" || return 1
		"$OFFSIM" run --no-db "$tmp/s.yaml" >"$tmp/run" || { cat "$tmp/run"; return 1; }
	done
}

json() { # FILE PATH: one value of a document
	sqlite3 :memory: "select json_extract(cast(readfile('$1') as text), '\$.$2')"
}

one_document() { # JSON, with the same profile in it as -o writes; nothing beside it
	"$OFFSIM" hw probe --root "$machines/desktop-rtx4090-x8" --json -o "$tmp/j.yaml" >"$tmp/j.json" 2>"$tmp/stderr" &&
		[ ! -s "$tmp/stderr" ] || return 1
	json "$tmp/j.json" profile | sed '$d' | cmp - "$tmp/j.yaml" || return 1
	for value in "file=$tmp/j.yaml" 'gpus[0].pcie.width=8' 'gpus[0].pcie.width_max=16' 'gpus[1].name=NVIDIA GeForce RTX 3060' \
		'gpu_links[1][0]=PHB' 'ram.modules=' 'cpu.cores=24' 'notes[0].kind=fault' 'notes[0].about=gpu0.link'; do
		[ "$(json "$tmp/j.json" "${value%%=*}")" = "${value#*=}" ] || { echo "$value"; return 1; }
	done
}

standard_output() { # -o - is the profile alone, which says itself what is a guess
	"$OFFSIM" hw probe --root "$machines/vm-epyc-2cpu" -o - >"$tmp/o.yaml" && "$OFFSIM" hw show "$tmp/o.yaml" >/dev/null &&
		grep -q '^# guess .*cpu0' "$tmp/o.yaml" && grep -q 'assumed:.*source:' "$tmp/o.yaml"
}

says() { # MACHINE TEXT: the table, in which lines may break anywhere
	"$OFFSIM" hw probe --root "$machines/$1" | tr -s ' \n' ' ' >"$tmp/said"
	grep -qF -e "$2" "$tmp/said" || { cat "$tmp/said"; return 1; }
}

without_programs() { # nothing in PATH: no error
	PATH=/nonexistent "$OFFSIM" hw probe >"$tmp/stdout" 2>"$tmp/stderr" && [ ! -s "$tmp/stderr" ]
}

no_shell() { # programs of PATH are run as they are, and one that fails is none
	mkdir "$tmp/bin"
	printf '#!/bin/sh\nprintf "name, memory.total [MiB]\\nNVIDIA GeForce RTX 3090, 24576 MiB\\n"\n' >"$tmp/bin/nvidia-smi"
	printf '#!/bin/sh\necho "Size: 99 GB"\nexit 1\n' >"$tmp/bin/dmidecode"
	chmod +x "$tmp/bin/nvidia-smi" "$tmp/bin/dmidecode"
	PATH="$tmp/bin:$PATH" "$OFFSIM" hw probe --json >"$tmp/fake.json" || return 1
	[ "$(json "$tmp/fake.json" 'gpus[0].name')" = 'NVIDIA GeForce RTX 3090' ] &&
		[ "$(json "$tmp/fake.json" 'gpus[0].memory_bytes')" = $((24576 << 20)) ] &&
		[ -z "$(json "$tmp/fake.json" 'ram.modules')" ] &&
		json "$tmp/fake.json" profile | grep -q 'part: rtx-3090$'
}

old_driver() { # a driver that does not know a field refuses all of them: it is asked again for fewer
	cat >"$tmp/bin/nvidia-smi" <<-'E'
	#!/bin/sh
	case $1 in
	*c2c.mode*) echo "Field \"c2c.mode\" is not a valid field to query."; exit 2 ;;
	*) printf 'name, memory.total [MiB]\nTesla T4, 15360 MiB\n' ;;
	esac
	E
	PATH="$tmp/bin:$PATH" "$OFFSIM" hw probe -o - | grep -q '^  part: t4$'
}

whole_or_not() { # what cannot be written leaves what was there, and nothing beside it
	mkdir "$tmp/there" && fails 1 "$OFFSIM" hw probe -o "$tmp/there" >/dev/null 2>"$tmp/stderr" || return 1
	fails 1 "$OFFSIM" hw probe -o "$tmp/none/x.yaml" >/dev/null 2>"$tmp/stderr" && grep -q "cannot write" "$tmp/stderr" &&
		[ -z "$(ls "$tmp/there")" ]
}

disk_full() {
	[ -w /dev/full ] || return 0
	fails 1 "$OFFSIM" hw probe >/dev/full && fails 1 "$OFFSIM" hw probe --json >/dev/full
}

strange_files() { # whatever stands in the files
	mkdir -p "$tmp/odd/proc/cpuinfo" "$tmp/odd/sys/class/nvme/nvme0" "$tmp/odd/sys/bus/pci/devices"
	head -c 65536 /dev/urandom >"$tmp/odd/proc/meminfo"
	head -c 65536 /dev/urandom >"$tmp/odd/dmidecode-17.txt"
	mkfifo "$tmp/odd/nvidia-smi-query-gpu.csv"
	ln -s ../devices "$tmp/odd/sys/bus/pci/devices/loop"
	"$OFFSIM" hw probe --root "$tmp/odd" >"$tmp/stdout"
}

refuses() { # TEXT ARGUMENT...: bad usage or bad input, said on stderr alone
	text=$1
	shift
	fails 2 "$OFFSIM" hw "$@" >"$tmp/stdout" 2>"$tmp/stderr" || { cat "$tmp/stderr"; return 1; }
	[ ! -s "$tmp/stdout" ] && grep -qF -e "$text" "$tmp/stderr" || { cat "$tmp/stderr"; return 1; }
}

ok 'profiles are simulated' profiles_run
ok 'JSON' one_document
ok 'the profile on standard output' standard_output
ok 'lanes that are missing cost time' says desktop-rtx4090-x8 '8 of 16 lanes: 12.5 GB/s from RAM to the card instead of 25'
ok 'an idle link is no fault' says desktop-rtx4080s-idle 'idle cards save power this way, measure under load'
ok 'guesses name what measures them' says vm-epyc-2cpu 'measure: offsim calibrate ram -o FILE'
ok 'no programs' without_programs
ok 'programs, and one that fails' no_shell
ok 'an old driver' old_driver
ok 'a profile is whole or not there' whole_or_not
ok 'a full disk is status 1' disk_full
ok 'strange files' strange_files
ok 'no such recording' refuses "cannot read the recording '/no/such': No such file" probe --root /no/such
ok 'a name' refuses 'probe takes no name' probe gh200
ok 'two documents on one output' refuses 'not both' probe --json -o -
ok 'options of others' refuses '--parts goes with list' probe --parts gpu
ok 'its options with others' refuses '--output goes with probe' show gh200 -o x
finish
