#!/bin/sh
# Other people's benchmarks: what calibrate --from reads, sets, fits, writes and refuses; validate of llama-bench's output.
. tests/cli/tap.sh
data=$PWD/tests/data/bench

from() { # ARGUMENT...: calibrate --from, its output in $tmp/out
	"$OFFSIM" calibrate --from "$@" >"$tmp/out" 2>"$tmp/err" || { cat "$tmp/err"; return 1; }
	[ ! -s "$tmp/err" ]
}

said() { # TEXT...: each is in what was printed
	for text; do
		grep -qF -e "$text" "$tmp/out" || { echo "no '$text' in:"; cat "$tmp/out"; return 1; }
	done
}

refuses() { # TEXT ARGUMENT...: exit 2, the text on stderr, nothing on stdout
	text=$1
	shift
	fails 2 "$OFFSIM" "$@" >"$tmp/out" 2>"$tmp/err" || { cat "$tmp/err"; return 1; }
	[ ! -s "$tmp/out" ] && grep -qF -e "$text" "$tmp/err" || { cat "$tmp/out" "$tmp/err"; return 1; }
}

lists() { # without a machine: every format is guessed, every measurement is there
	from "$data/nvbandwidth.json" "$data/fio-jobs.json" "$data/stream.txt" "$data/mlc.txt" "$data/vllm.json" "$data/llama.md" &&
		said 'host_to_device_memcpy_ce, GPU 3: 56.4 GB/s' "seq: reads of 'read', blocks of 1m, 32 at once: 6.78 GB/s" \
			'STREAM Triad: 363 GB/s' 'MLC peak injection, ALL Reads: 159 GB/s' 'tg128 @ d4096, qwen2 7B' 'vllm.json: 13 not used'
}

sets() { # direct measurements into a profile that a scenario uses
	from "$data/nvbandwidth.json" "$data/fio-jobs.json" "$data/mlc.txt" --machine desktop-rtx5090-ddr5 -o "$tmp/p.yaml" &&
		said '-> gpu0.link.h2d' 'the profile has no gpu1' 'more than the peak of 96GB/s: is it that machine?' || return 1
	"$OFFSIM" hw show "$tmp/p.yaml" >"$tmp/out" &&
		said 'measured: nvbandwidth.json (2 rows)' 'measured: fio-jobs.json (1 row)' 'measured: mlc.txt (1 row)' || return 1
	"$OFFSIM" hw show "$tmp/p.yaml" --json | tr -d '\n ' >"$tmp/out"
	said '"name":"gpu0.link.h2d","unit":"B/s","value":56382900000.0' '"name":"ram.bandwidth","unit":"B/s","value":158845000000.0' \
		'"name":"nvme0.read","unit":"B/s","value":6780790000.0' '"name":"nvme0.latency","unit":"s","value":5.66123' || return 1
	printf 'model: llama-3.2-1b\nquant: q8_0\nmachine: %s\nengine: ideal\n' "$tmp/p.yaml" >"$tmp/s.yaml"
	"$OFFSIM" run "$tmp/s.yaml" --no-db >"$tmp/out"
}

improves() { # tests of llama-bench: what is fitted goes into kernels:, and validate is nearer with the profile than without
	printf '{from: desktop-rtx4080-ddr5, set: {gpu0.bandwidth.measured: 552GB/s, gpu0.flops.fp16.measured: 83TFLOP/s}}\n' >"$tmp/m.yaml"
	from "$data/llama-2025.json" --machine "$tmp/m.yaml" -o "$tmp/f.yaml" &&
		said 'model qwen2.5-7b' 'gpu0.bandwidth' 'cannot be told apart from kernels.gpu.read.kquant' '2 different tests' || return 1
	grep -q '^    gpu.read.kquant: {value: [0-9.]*%, spread: [0-9.]*%, source: "fitted to llama-2025.json (2 tests), 20' "$tmp/f.yaml" ||
		{ cat "$tmp/f.yaml"; return 1; }
	for machine in "$tmp/m.yaml" "$tmp/f.yaml"; do
		"$OFFSIM" validate "$data/llama-2025.csv" --machine "$machine" --json |
			sed -n '/"rule_of_thumb"/,$d; s/.*"median_abs_error": \([0-9.]*\),/\1/p'
	done >"$tmp/errors"
	awk '{ e[NR] = $1 } END { ok = NR == 4 && e[1] > 0.07 && e[2] > 0.07 && e[3] < 0.6 * e[1] && e[4] < 0.6 * e[2]
		if (!ok) print e[1], e[2], e[3], e[4]; exit !ok }' "$tmp/errors"
}

as_measured() { # nothing of that machine was fitted to these tests
	"$OFFSIM" validate "$data/llama-2025.csv" --machine desktop-rtx4080-ddr5 --json |
		sed -n '/"rule_of_thumb"/,$d; s/.*"median_abs_error": \([0-9.]*\),/\1/p' | awk '$1 < 0.08 { n++ } END { exit n != 2 }'
}

same_whoever_computes() {
	for jobs in 1 3; do
		from "$data/llama-cpu.jsonl" --machine cpu-epyc9654 --json -j $jobs && mv "$tmp/out" "$tmp/j$jobs" || return 1
	done
	cmp "$tmp/j1" "$tmp/j3"
}

copies() { # a file given twice counts once
	from "$data/llama-cpu.jsonl" --machine cpu-epyc9654 --json && grep -v '"file"' "$tmp/out" | sed -n '/"constants"/,$p' >"$tmp/once"
	from "$data/llama-cpu.jsonl" "$data/llama-cpu.jsonl" --machine cpu-epyc9654 --json &&
		said '"unused": "the same measurement as ' && sed -n '/"constants"/,$p' "$tmp/out" | cmp - "$tmp/once"
}

validates() { # FILE: two rows, predicted within a factor of 2
	"$OFFSIM" validate "$1" --machine desktop-rtx4090-ddr5 >"$tmp/out" || return 1
	said 'model qwen2.5-7b' '2 of 2 rows ran' && awk '$2 == "llama.cpp" { for (i = 9; i <= NF; i++) if ($i == "model") n += $(i - 1) > 0.5 && $(i - 1) < 2 }
		END { exit n != 2 }' "$tmp/out"
}

skips() { # rows that cannot be run are there with their reason
	"$OFFSIM" validate "$data/llama-cpu.jsonl" --machine cpu-epyc9654 >"$tmp/out" &&
		said "no card of models/ has 430490624 parameters" '12 of 13 rows ran' || return 1
	"$OFFSIM" validate "$data/llama-ik.jsonl" --machine cpu-epyc9654 --json >"$tmp/out" 2>"$tmp/err"
	said "engine 'ik_llama.cpp' is not modelled"
}

named_model() { # a folder's config.json stands for the model
	cat >"$tmp/config.json" <<-'J'
	{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 1024, "intermediate_size": 4096,
	"num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 4, "vocab_size": 32000, "head_dim": 64,
	"tie_word_embeddings": false, "torch_dtype": "float16"}
	J
	sed -n '$p' "$data/llama-cpu.jsonl" >"$tmp/one.jsonl"
	(cd "$tmp" && "$OFFSIM" validate one.jsonl --machine cpu-epyc9654 --model config.json) >"$tmp/out" && said '1 of 1 rows ran'
}

nothing_half() { # a folder that cannot be written to: exit 1, and nothing beside it
	mkdir "$tmp/ro" && chmod a-w "$tmp/ro"
	[ ! -w "$tmp/ro" ] || { rmdir "$tmp/ro"; : >"$tmp/ro"; } # root writes everywhere: then no folder at all
	fails 1 "$OFFSIM" calibrate --from "$data/stream.txt" --machine gh200 -o "$tmp/ro/p.yaml" 2>"$tmp/err" >"$tmp/out" &&
		grep -q 'cannot write' "$tmp/err" && [ ! -s "$tmp/out" ]
}

bad_kernels() { # a profile's kernels: are checked as everything is
	printf 'from: gh200\nkernels: {llama.cpp: {cpu.raed: {value: 72%%}}}\n' >"$tmp/k.yaml"
	refuses "k.yaml:2:23: unknown key 'cpu.raed' in kernels; did you mean 'cpu.read'?" validate "$data/llama-2025.csv" --machine "$tmp/k.yaml" ||
		return 1
	printf 'from: gh200\nkernels: {lama.cpp: {cpu.read: {value: 72%%}}}\n' >"$tmp/k.yaml"
	refuses "no engine has kernels of the name 'lama.cpp'; did you mean 'llama.cpp'?" validate "$data/llama-2025.csv" --machine "$tmp/k.yaml" ||
		return 1
	printf 'from: gh200\nkernels: {llama.cpp: {cpu.read: {value: 72GB/s}}}\n' >"$tmp/k.yaml"
	refuses 'k.yaml:2:' validate "$data/llama-2025.csv" --machine "$tmp/k.yaml"
}

ok 'files are recognised and listed' lists
ok 'direct measurements set constants of a profile' sets
ok 'a fit comes nearer, and says what it cannot tell apart' improves
ok 'a card that was measured, as it is' as_measured
ok 'the number of workers changes nothing' same_whoever_computes
ok 'a file given twice counts once' copies
for file in llama-2025.csv llama-2025.json llama-2025.jsonl llama-2025.sql; do
	ok "validate $file" validates "$data/$file"
done
ok 'what cannot be run is named' skips
ok 'a model can be named' named_model
ok 'more values than names: CSV' refuses 'llama-2023.csv:2:' validate "$data/llama-2023.csv" --machine gh200
ok 'more values than names: SQL' refuses 'llama-2023.sql:30: 27 values for 26 columns' validate "$data/llama-2023.sql" --machine gh200
ok 'a machine is asked for' refuses 'name one with --machine' validate "$data/llama-2025.csv"
ok 'an unknown machine' refuses "unknown machine 'gh201'; did you mean 'gh200'?" calibrate --from "$data/stream.txt" --machine gh201
ok 'a profile needs a base' refuses 'a profile needs a base' calibrate --from "$data/stream.txt" -o "$tmp/x.yaml"
ok 'no file' refuses "option '--from' needs a value" calibrate --from
ok 'a missing file' refuses "nowhere.json" calibrate --from nowhere.json
ok 'an unknown format' refuses "unknown format 'fioo'; did you mean 'fio'?" calibrate --from "$data/fio.json" --format fioo
ok 'another format than it is' refuses 'fio' calibrate --from "$data/stream.txt" --format fio
ok 'a file of something else' refuses 'README.md: not the output of' calibrate --from "$PWD/README.md"
ok 'kernels of a profile' bad_kernels
ok 'no half profile' nothing_half
ok 'help has an example' sh -c '"$1" calibrate --from x --help | grep -q "^example: offsim calibrate --from"' - "$OFFSIM"
by_backend() { # what llama-bench ran on is what is predicted
	for backend in ROCm Vulkan Vulkan,BLAS; do
		printf '| model | size | params | backend | ngl | fa | test | t/s |\n| - | -: | -: | - | -: | -: | -: | -: |\n| llama 7B Q4_0 | 3.56 GiB | 6.74 B | %s | 99 | 1 | tg128 | 50.00 ± 0.01 |\n' $backend >"$tmp/$backend.md"
		"$OFFSIM" validate "$tmp/$backend.md" --machine strix-halo --model llama-2-7b --json >"$tmp/$backend.json" || return 1
		sed -n 's/^ *"predicted": \(.*\),$/\1/p' "$tmp/$backend.json" >"$tmp/$backend"
	done
	awk -v hip="$(cat "$tmp/ROCm")" -v vulkan="$(cat "$tmp/Vulkan")" 'BEGIN { exit !(hip > 30 && vulkan > 1.03 * hip) }' &&
		cmp "$tmp/Vulkan" "$tmp/Vulkan,BLAS"
}
ok 'the backend of a test' by_backend
finish
