#!/bin/sh
# offsim hw: list, show, their JSON, and what they refuse.
. tests/cli/tap.sh

first_word() { # the first word of each line is a machine that can be shown
	"$OFFSIM" hw list >"$tmp/list" && [ -s "$tmp/list" ] || return 1
	while read -r name _; do
		"$OFFSIM" hw show "$name" >"$tmp/shown" && "$OFFSIM" hw show "$name" --json >"$tmp/json" || return 1
	done <"$tmp/list"
}

parts() { # every kind can be listed, and a GPU of the list (every seventh) makes a machine in two lines
	for kind in gpu cpu link dram nvme; do
		"$OFFSIM" hw list --parts "$kind" >"$tmp/$kind" && [ "$(wc -l <"$tmp/$kind")" -gt 3 ] || return 1
	done
	sed -n '2~7p' "$tmp/gpu" | while read -r name _; do
		printf 'gpu0: %s\nram: {capacity: 64GiB, bandwidth: 70GB/s}\n' "$name" >"$tmp/m.yaml"
		"$OFFSIM" hw show "$tmp/m.yaml" >"$tmp/shown" || exit 1
	done
}

first_of_families() { # FILE LINES: a part of each family
	awk -F '[:,{}] *' -v lines="$2" '/^[a-z0-9].*\{family:/ && $0 ~ lines { if (!seen[$4]++) print $1 }' "$1"
}

families() { # one part of each family runs: GPUs no faster than perfect prefetch, processors than ram carries 8 GB of weights
	ram='ram: {capacity: 256GiB, bandwidth: 200GB/s}'
	{
		first_of_families hw/parts/gpus.yaml 'bus:' | sed "s|.*|{gpu0: {part: &, memory: 96GiB}, $ram}|"
		first_of_families hw/parts/gpus.yaml unified | sed "s|.*|{gpu0: &, $ram}|"
		first_of_families hw/parts/cpus.yaml . | sed "s|.*|{cpu0: &, $ram}|"
	} >"$tmp/machines"
	[ "$(wc -l <"$tmp/machines")" -gt 90 ] || return 1
	while read -r machine; do
		case $machine in *gpu0*) bound=$(rate "$machine" ideal) ;; *) bound=25 ;; esac
		real=$(rate "$machine" llama.cpp) || { echo "$machine"; return 1; }
		awk -v r="$real" -v b="$bound" 'BEGIN { exit !(r > 0 && r <= b * 1.01) }' || { echo "$machine: $real of $bound"; return 1; }
	done <"$tmp/machines"
}

rate() { # MACHINE ENGINE: tokens a second
	case $1 in *gpu0*) flags='{}' ;; *) flags='{gpu-layers: 0}' ;; esac
	"$OFFSIM" run scenarios/headline.yaml --json --no-db --set model=llama-3.1-8b --set quant=q8_0 --set "machine=$1" \
		--set "engine=$2" --set "flags=$flags" --set 'workload={batch: 1, prompt: 32, generate: 8}' 2>"$tmp/why" >"$tmp/rate.json" ||
		{ cat "$tmp/why" >&2; return 1; }
	sed -n 's/.*"decode_tok_s": \([0-9.e+]*\).*/\1/p' "$tmp/rate.json" | head -n 1
}

one_name_each() { # no name of a part has other than these characters, nor is written with the letters and digits of another
	for kind in gpu cpu; do
		"$OFFSIM" hw list --parts "$kind" | awk '
			$1 !~ /^[a-z0-9][a-z0-9+.-]*[a-z0-9+]$/ { print; bad = 1 }
			{ key = $1; gsub(/[^a-z0-9]/, "", key); if (key in seen) { print seen[key], $1; bad = 1 } seen[key] = $1 }
			END { exit bad }' || return 1
	done
}

short_name() { # NAME PART: of a processor
	printf "cpu0: '%s'\nram: {capacity: 64GiB, bandwidth: 70GB/s}\n" "$1" >"$tmp/m.yaml"
	"$OFFSIM" hw show "$tmp/m.yaml" | grep -qF "part $2,"
}

long_name() { # looked for in time and memory that grow with it, not with its square
	awk 'BEGIN { printf "gpu0: \""; while (i++ < 30000) printf "(r)"; print "\"\nram: {capacity: 64GiB, bandwidth: 70GB/s}" }' >"$tmp/m.yaml"
	case $OFFSIM in */asan/* | */tsan/*) ulimit() { :; } ;; esac
	(ulimit -v 1000000 2>/dev/null; exec timeout 20 "$OFFSIM" hw show "$tmp/m.yaml") >"$tmp/shown" 2>&1
	[ $? -eq 2 ] && grep -q 'unknown gpu part' "$tmp/shown" || { cut -c1-200 "$tmp/shown"; return 1; }
}

broken() { # FILE SCRIPT TEXT: said when sed's SCRIPT changed FILE of hw/, by a run on zzz, a GPU, and on an RX 7900 XTX by HIP
	rm -rf "$tmp/data"
	mkdir -p "$tmp/data/hw"
	ln -s "$PWD/models" "$PWD/scenarios" "$tmp/data"
	cp -R hw/kernels hw/parts hw/machines hw/*.yaml "$tmp/data/hw"
	sed "$2" "hw/$1" >"$tmp/data/hw/$1"
	case $1 in parts/cpus.yaml) machine='cpu0: zzz' ;; parts/*) machine='gpu0: zzz' ;; *) machine='gpu0: rx-7900-xtx' ;; esac
	fails 2 env OFFSIM_DATA="$tmp/data" timeout 20 "$OFFSIM" run scenarios/headline.yaml --no-db --set model=llama-3.1-8b \
		--set quant=q8_0 --set "machine={$machine, ram: {capacity: 64GiB, bandwidth: 70GB/s}}" --set engine=llama.cpp \
		--set 'flags={backend: hip}' >"$tmp/stdout" 2>"$tmp/stderr" && grep -qF -e "$3" "$tmp/stderr" || { cat "$tmp/stderr"; return 1; }
}
kernels=kernels/llama.cpp.yaml
row() { # KEY: VALUE ...: a script that adds a processor of a family
	printf '$a\\\nzzz: {family: zen4, description: "x", %s}' "$1"
}
gpu_row() {
	printf '$a\\\nzzz: {family: geforce-ada, description: "x", memory: 8GiB, source: "S", %s}' "$1"
}

no_private_sources() { # what a number cites is public
	! grep -rnE 'source: *"?/' hw/parts hw/machines
}

refuses() { # TEXT ARGUMENT...: bad usage or bad input, said on stderr alone
	text=$1
	shift
	fails 2 "$OFFSIM" hw "$@" >"$tmp/stdout" 2>"$tmp/stderr" || { cat "$tmp/stderr"; return 1; }
	[ ! -s "$tmp/stdout" ] && grep -qF -e "$text" "$tmp/stderr" || { cat "$tmp/stderr"; return 1; }
}

shared() { # MACHINE READ: the GPU reads ram at READ B/s; weights are booked once; the flags that move data change nothing
	cat >"$tmp/u.yaml" <<-E
	model: llama-3.1-8b
	quant: q8_0
	machine: $1
	engine: ideal
	workload: {batch: 1, prompt: 64, generate: 64}
	E
	"$OFFSIM" run "$tmp/u.yaml" --json --no-db >"$tmp/u.json" || return 1
	for flags in '{kv: ram}' '{host: compute}' '{gpu-layers: 99}'; do
		"$OFFSIM" run "$tmp/u.yaml" --json --no-db --set "flags=$flags" >"$tmp/v.json" || return 1
		grep -v '"wall_s"\|"key"' "$tmp/u.json" >"$tmp/u.plain"
		grep -v '"wall_s"\|"key"' "$tmp/v.json" | cmp -s - "$tmp/u.plain" || { echo "$flags"; return 1; }
	done
	awk -v read="$2" -F '[:,] *' '
		/"decode_tok_s": [0-9]/ { rate = $2 }
		/"name": "gpu0"/ { gpu = 1 }
		/"weights_bytes"/ && !weights { weights = $2 }
		# All but the embedding, 6 % of it, is read for each token, and a little KV.
		END { bytes = weights * 0.94; ok = weights > 7.9e9 && weights < 8.6e9 && !gpu &&
				rate * bytes > 0.97 * read && rate * bytes < 1.03 * read
			if (!ok) { print weights, gpu, rate * bytes } exit !ok }' "$tmp/u.json"
}

help_has_example() {
	"$OFFSIM" hw --help | grep -q '^example: offsim hw '
}

disk_full() {
	[ -w /dev/full ] || return 0
	fails 1 "$OFFSIM" hw show gh200 >/dev/full
}

printf 'gpu0: rtx-4900\nram: {capacity: 64GiB, bandwidth: 70GB/s}\n' >"$tmp/bad.yaml"

ok 'each machine of the list can be shown' first_word
ok 'parts are listed, and make machines' parts
ok 'a part of each family runs, below its bound' families
ok 'names of parts are apart' one_name_each
ok 'a processor by the end of its name' short_name i5-1135G7 core-i5-1135g7
ok 'a name of 90000 letters' long_name
ok 'a backend like itself by way of another' broken $kernels '/^    hip:$/i\
\    twin: {like: hip}
s/^    hip:$/&\n      like: twin/' "'like' names another backend"
ok 'a backend like a list' broken $kernels 's/^    hip:$/&\n      like: [a]/' "'like' names another backend"
ok 'kinds of cards as a list' broken $kernels 's/^  auto:.*/  auto: [a]\n  rest:/' "'auto' must be a map"
ok 'backends as a list' broken $kernels 's/^  backends:.*/  backends: [a]\n  rest:/' "'backends' must be a map"
ok 'a list for a month' broken $kernels 's/graphs_from: 2026-05/graphs_from: [a]/' "'graphs_from' must be a month"
ok 'kernels from themselves' broken $kernels '1i\
from: llama.cpp' "'from' names another file"
ok 'kernels from a list' broken $kernels '1i\
from: [a]' "'from' names another file"
ok 'a row without a boost clock' broken parts/cpus.yaml "$(row 'cores: 8, base: 4GHz')" \
	"'zzz' states no 'boost', of which its family makes 'clock'"
ok 'a row without cores' broken parts/cpus.yaml "$(row 'base: 4GHz, boost: 5GHz')" "'zzz' states no 'fp32' or 'cores'"
ok 'a base clock above the boost clock' broken parts/cpus.yaml "$(row 'cores: 8, base: 6GHz, boost: 5GHz')" 'above its boost clock'
ok 'a map in a number of a row' broken parts/cpus.yaml \
	"$(row 'cores: 8, base: 4GHz, boost: 5GHz, clock: {spread: {a: 1}}')" "'spread' must be a single value"
ok 'a list for the flops of a row' broken parts/cpus.yaml "$(row 'cores: 8, base: 4GHz, boost: 5GHz, flops: [1]')" \
	"'flops' must be a map"
ok 'a bus without a rate' broken parts/gpus.yaml "$(gpu_row 'bus: 256, fp32: 3TFLOP/s')" "'zzz' states no 'rate'"
ok 'a card without fp32' broken parts/gpus.yaml "$(gpu_row 'bus: 256, rate: 18GT/s')" "'zzz' states no 'fp32' or 'cores'"
ok 'sources are public' no_private_sources
ok 'a GPU without a memory of its own computes from ram' shared dgx-spark 232e9
ok 'so does one whose processor reaches less' shared strix-halo 212.6e9
ok 'help ends with an example' help_has_example
ok 'a full disk is status 1' disk_full
ok 'an unknown machine' refuses "unknown machine 'gh20'; did you mean 'gh200'?" show gh20
ok 'an unknown part, with its place' refuses \
	"$tmp/bad.yaml:1:7: unknown gpu part 'rtx-4900'; did you mean 'rtx-4090'?" show "$tmp/bad.yaml"
ok 'a device is no file' refuses 'is not a plain file' show /dev/zero
ok 'a missing file' refuses 'there is no machine file' show "$tmp/none.yaml"
ok 'an unknown kind of parts' refuses "did you mean 'gpu'?" list --parts gpus
ok 'an unknown verb' refuses "did you mean 'show'?" shwo
ok 'no verb' refuses 'list, show or probe'
ok 'an unknown option' refuses "did you mean 'parts'?" list --prats gpu
ok 'show without a name' refuses 'needs the name' show
ok 'show with two names' refuses 'takes one machine' show gh200 gh200
finish
