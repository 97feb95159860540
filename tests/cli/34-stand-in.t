#!/bin/sh
# offsim-cuda on GPUs of threads and host memory (tests/cuda), whose speeds are known: what is measured of them is that, graphs
# run in order and whole, and whatever call fails, it ends in a line that says so.
. tests/cli/tap.sh
root=$PWD
gpu=$root/$BUILD/stand-in/offsim-cuda
[ -x "$gpu" ] || skip_all "there is no $gpu: make stand-in builds it"
[ "$MODE" != tsan ] || skip_all 'ThreadSanitizer takes what the threads of a kernel do one after another for races'
export OFFSIM_DATA="$root"
export LD_LIBRARY_PATH="$root/$BUILD/stand-in"
mkdir "$tmp/with"
cp "$OFFSIM" "$tmp/with/offsim" && cp "$gpu" "$tmp/with/offsim-cuda"
offsim=$tmp/with/offsim

ok '--list' sh -c '"$1" calibrate --list | grep -q "^h2d "' sh "$gpu"

toolkit=$(dirname "$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)")/../include
values() {
	sed -n 's/^\t\(cuda[A-Za-z]*\|CUDA_[A-Z0-9_]*\) = \([0-9]*\),$/\1 \2/p' tests/cuda/cuda_runtime.h | while read -r name n; do
		grep -qE "\<$name *= *$n\>" "$toolkit/driver_types.h" "$toolkit/library_types.h" || { echo "$name is not $n"; exit 1; }
	done
}
[ ! -e "$toolkit/driver_types.h" ] || ok "the values of its names are the toolkit's" values

# ---- what is measured is what speeds.def says; on a machine that does nothing else: make stand-in-check ----

speed() { sed -n "s/^SPEED($1, \([0-9.e+-]*\))\$/\1/p" tests/cuda/speeds.def; }
value() { # CONSTANT
	awk -v name="\"$1\"," '$1 == "\"name\":" { found = $2 == name } $1 == "\"value\":" && found { print $2 + 0; exit }' "$tmp/fit.json"
}
between() { # VALUE LOW HIGH
	awk -v x="$1" -v low="$2" -v high="$3" 'BEGIN { print x ", which should lie between " low " and " high; exit !(x >= low && x <= high) }'
}
# Where only a stream's own clock counts, 5 %: less than what GB and GiB differ by. What a busy moment disturbs is measured again,
# twice in all.
is() { # CONSTANT FORMULA: with names of speeds
	want=$(awk -v f="$2" 'BEGIN { n = split(f, word, " "); for (i = 1; i <= n; i++) print word[i] }' | while read -r word; do
		s=$(speed "$word"); printf '%s ' "${s:-$word}"
	done)
	want=$(awk "BEGIN { print $want }")
	between "$(value "$1")" "$(awk "BEGIN { print $want * 0.95 }")" "$(awk "BEGIN { print $want * 1.05 }")"
}
# Where the host's clock counts, it may take longer, but not sooner.
at_least() { # CONSTANT SECONDS
	between "$(value "$1")" "$(awk "BEGIN { print ($2) * 0.99 }")" "$(awk "BEGIN { print ($2) * 1.67 }")"
}
if [ -n "${TIMED:-}" ]; then
	calibrates() {
		"$offsim" calibrate cuda --quick --file "$tmp" --keep "$tmp/raw.json" -o "$tmp/machine.yaml" --json >"$tmp/fit.json"
	}
	again=2
	stands() {
		until "$@"; do
			[ $again -gt 0 ] || return 1
			again=$((again - 1))
			calibrates || return 1
		done
	}
	ok 'calibrate cuda' calibrates
	nothing_left_out() {
		grep '"\(not used\|not measured\)' "$tmp/fit.json" | grep -v 'not measured: peer: there is one GPU'
		[ "$(grep -c '"\(not used\|not measured\)' "$tmp/fit.json")" = 1 ]
	}
	ok 'no part is left out or at fault' nothing_left_out
	ok 'memory of the GPU' stands is gpu0.bandwidth read_bytes_s
	ok 'pinned copies to the GPU' stands is gpu0.link.h2d h2d_bytes_s
	ok 'pinned copies from the GPU' stands is gpu0.link.d2h d2h_bytes_s
	ok 'pageable copies to the GPU' stands is gpu0.link.h2d_pageable h2d_pageable_bytes_s
	ok 'pageable copies from the GPU' stands is gpu0.link.d2h_pageable d2h_pageable_bytes_s
	ok 'both ways at once' stands is gpu0.link.both both_bytes_s
	ok 'latency of the link' stands at_least gpu0.link.latency "$(speed copy_latency_s)"
	ok 'FP32' stands is gpu0.flops.fp32 gemm_fp32_flop_s
	ok 'FP16' stands is gpu0.flops.fp16 gemm_fp16_flop_s
	ok 'BF16' stands is gpu0.flops.bf16 gemm_bf16_flop_s
	ok 'INT8' stands is gpu0.flops.int8 gemm_int8_flop_s
	ok 'a share of memory for one row' stands is kernels.llama.cpp.gpu.read.16bit 'gemv_bytes_s / read_bytes_s'
	ok 'a share of arithmetic for few rows' stands is kernels.llama.cpp.gpu.multiply.16bit gemm_few_rows_share
	ok 'launches' stands at_least gpu0.launch "$(speed launch_s)"
	ok 'launches in a graph' stands at_least kernels.llama.cpp.gpu.kernel "$(speed graph_kernel_s) + $(speed graph_s) / 1000"
	ok 'a wait' stands at_least kernels.llama.cpp.gpu.sync "$(speed launch_s) + $(speed wait_s)"
	ok 'what a copy costs the host' stands at_least kernels.llama.cpp.gpu.copy_submit "$(speed copy_submit_s)"
	ok 'taking memory' stands at_least kernels.accelerate.gpu.alloc "$(speed malloc_s) + $(speed free_s)"
	noted() { # TEXT SPEED: with latency
		want=$(awk "BEGIN { n = 4 * 2 ^ 20; print n / (n / $2 + $3) * 1e-9 }")
		between "$(sed -n "s|.*$1: \([0-9.]*\) GB/s.*|\1|p" "$tmp/fit.json")" "$(awk "BEGIN { print 0.95 * $want }")" \
			"$(awk "BEGIN { print 1.05 * $want }")"
	}
	ok 'zero-copy reads' stands noted 'a kernel that reads pinned host memory' "$(speed zero_copy_bytes_s)" "$(speed launch_s)"
	ok 'copies while the CPU copies' stands noted 'host to GPU while the CPU copies in its memory' "$(speed h2d_bytes_s)" "$(speed copy_latency_s)"
	profile() {
		grep -q '^  memory: 25600KiB$' "$tmp/machine.yaml" && grep -q '^  reserved: 9216KiB' "$tmp/machine.yaml" &&
			"$offsim" hw show "$tmp/machine.yaml"
	}
	ok 'the profile is a machine' profile
	calibrates() { LD_LIBRARY_PATH='' "$offsim" calibrate cuda --quick --only memory,arithmetic,gemv --json >"$tmp/fit.json"; }
	without_library() {
		calibrates && stands is gpu0.flops.fp32 fp32_flop_s && stands is gpu0.flops.fp16 tensor_flop_s && grep -q 'not measured: gemv: cuBLAS: ' "$tmp/fit.json"
	}
	ok 'without cuBLAS, multiply-adds alone' without_library
fi

# ---- two GPUs ----

export STAND_IN_FASTER=1000
peers() {
	STAND_IN_DEVICES=3 "$gpu" calibrate --quick --only peer -o "$tmp/peer.json" || return 1
	[ "$(grep -c '"type": "direct", "peer": [01],' "$tmp/peer.json")" = 2 ] && [ "$(grep -c '"type": "through the host"' "$tmp/peer.json")" = 4 ]
}
ok 'copies to other GPUs, direct and through the host' peers
many() { STAND_IN_DEVICES=17 "$gpu" calibrate --quick --only submit >"$tmp/out" && grep -q '^skipped all: 1 more GPUs' "$tmp/out"; }
[ "$MODE" != release ] || ok 'more GPUs than a profile has' many

# ---- graphs ----

cat >"$tmp/g.opg" <<'END'
opg 1
steps count=1 first=0 end=1 ahead=1 phase=decode
memory 0 name=ram kind=ram
memory 1 name=gpu0 kind=gpu
memory 2 name=gpu1 kind=gpu
memory 3 name=nvme0 kind=drive
device 0 name=cpu0 kind=cpu memory=0
device 1 name=gpu0 kind=gpu memory=1
device 2 name=gpu1 kind=gpu memory=2
unit 0 name=up
unit 1 name=down
unit 2 name=gpu0
unit 3 name=gpu1
unit 4 name=across
unit 5 name=drive
unit 6 name=cpu0
buffer 0 memory=0 bytes=300007 role=weights
buffer 1 memory=1 bytes=300007 role=staging
buffer 2 memory=1 bytes=500003 role=weights
buffer 3 memory=2 bytes=500003 role=staging
buffer 4 memory=0 bytes=200001 role=staging
buffer 5 memory=3 bytes=300001 role=weights
buffer 6 memory=2 bytes=300001 role=staging
buffer 7 memory=0 bytes=70001 role=weights
buffer 8 memory=1 bytes=70001 role=staging
buffer 9 memory=0 bytes=90001 role=weights
copy 0 unit=0 from=0 to=1 bytes=300007
copy 1 unit=0 from=7 to=8 bytes=70001 pinned=0
kernel 2 unit=2 device=1 from=1 bytes=300007 flops=300000 dtype=fp16 after=0 latency=30000000
kernel 3 unit=2 device=1 from=9 bytes=90001 flops=90000 dtype=fp32 after=1
copy 4 unit=4 from=2 to=3 bytes=500003 after=2
kernel 5 unit=3 device=2 from=3 bytes=500003 flops=100000 dtype=fp16 after=4
copy 6 unit=1 from=2 to=4 at=7 bytes=200001
copy 7 unit=5 from=5 to=6 bytes=300001
kernel 8 unit=3 device=2 from=6 at=300000 bytes=300001 after=7
kernel 9 unit=6 device=0 from=0 bytes=100000 threads=2 after=6
wait 10 after=9 latency=20000000
step 11 after=3,5,8,10 tokens=1
end 12
END
export STAND_IN_MEMORY=300
ok 'a graph of all kinds, three times' env STAND_IN_DEVICES=2 "$gpu" execute "$tmp/g.opg" -r 3 -d "$tmp" -o "$tmp/times.json"
one_too_few() { fails 1 "$gpu" execute "$tmp/g.opg" -d "$tmp" 2>"$tmp/err" && grep -q 'more GPUs than the 1 of this machine' "$tmp/err"; }
ok 'one GPU too few' one_too_few

# ---- what calibrate found, gpu-check's scenarios simulated with it and run ----

if [ "$MODE" = release ]; then
	# Small enough for a GPU that reads 0.4 GB/s; of a machine that has nothing of that GPU but its speeds.
	cat >"$tmp/small.json" <<-END
		{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 256, "intermediate_size": 896, "num_hidden_layers": 12,
		"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 3000, "tie_word_embeddings": false, "torch_dtype": "float16"}
	END
	mkdir "$tmp/gpu" "$tmp/check" && : >"$tmp/check/host.txt"
	cat >"$tmp/gpu/offsim" <<-END
		#!/bin/sh
		export STAND_IN_FASTER=1 STAND_IN_MEMORY=4096
		case "\$1 \$2" in
		'calibrate all') ;;
		'calibrate cuda') exec "$offsim" calibrate cuda --raw "$tmp/raw.json" --machine desktop-rtx4090-ddr5 -o "$tmp/check/machine.yaml" ;;
		*) exec "$offsim" "\$@" --repeat 1 --threads 2 --set model="$tmp/small.json" --set machine.gpu0.memory=32MiB --set machine.gpu0.reserved=0B ;;
		esac
	END
	chmod +x "$tmp/gpu/offsim" && cp "$gpu" "$tmp/gpu/offsim-cuda"
	gpu_check() {
		tests/gpu_check.sh run "$tmp/gpu/offsim" "$tmp/check" || return 1
		for s in stream disk engines experts cpu; do
			awk -F, -v least=20 -f tests/cli/in_order.awk "$tmp/check/$s.csv" || { echo "$s"; return 1; }
		done
	}
	# Busy as it may be, there are samples; what lacks is the desktop's.
	[ -e "$tmp/raw.json" ] || ok 'all that calibrate measures' env STAND_IN_FASTER=1 STAND_IN_MEMORY= "$gpu" calibrate --quick --dir "$tmp" -o "$tmp/raw.json"
	ok 'gpu-check: all in order and whole' gpu_check
	# A kernel or a copy of this part, measured over simulated.
	ratio() { # SCENARIO OPERATION LOW HIGH
		between "$(sed -n "s/^  $2  *[0-9].* \([0-9.]*\)\$/\1/p" "$tmp/check/$1.txt")" "$3" "$4"
	}
	# One after another, for the simulator has kernels and copies share the GPU's memory, and the stand-in has not.
	[ -z "${TIMED:-}" ] || ok 'kernels last as long as simulated' ratio engines 'kernel ffn gpu0' 0.95 1.05
	[ -z "${TIMED:-}" ] || ok 'copies last as long as simulated' ratio engines 'copy hidden ram>gpu0' 0.95 1.5
	from_drive() {
		STAND_IN_MEMORY=4096 "$offsim" replay scenarios/replay/disk.yaml --on cuda --dir "$tmp" --repeat 1 --threads 2 --no-db --operations "$tmp/ops.csv" \
			--set machine=desktop-rtx4090-ddr5 --set machine.ram.capacity=256MiB --set machine.ram.reserved=0B \
			--set machine.gpu0.memory=1GiB --set machine.gpu0.reserved=0B >"$tmp/disk.txt" &&
			awk -F, -v least=20 -f tests/cli/in_order.awk "$tmp/ops.csv" && grep -q 'copy ffn nvme0>gpu0' "$tmp/disk.txt"
	}
	ok 'weights from a drive to the GPU' from_drive
fi

# ---- failures ----

export STAND_IN_FASTER=1000000
# sweep NAME GPUS COMMAND...: until each call has failed once by each way that leads to it and is not in $tmp/NAME.ways. A run ends
# well, having left out what failed and said why, or in one line.
sweep() {
	name=$tmp/$1
	gpus=$2
	shift 2
	before=-1
	while now=$(wc -l <"$name.ways") && [ "$now" -gt "$before" ]; do
		before=$now
		status=0
		STAND_IN_FAIL="new:$name.ways" STAND_IN_DEVICES=$gpus timeout 60 "$@" >"$name.out" 2>"$name.err" || status=$?
		case $status in
		0) [ ! -s "$name.err" ] ;;
		1) [ "$(wc -l <"$name.err")" = 1 ] && grep -q '^offsim-cuda: [a-z]' "$name.err" ;;
		*) false ;;
		esac && ! grep '^skipped' "$name.out" | grep -v -e ': cannot .*: error [0-9]' -e 'cuBLAS' || {
			echo "status $status after:"
			tail -n +"$((before + 1))" "$name.ways"
			cat "$name.out" "$name.err"
			return 1
		}
	done
	[ "$status" = 0 ]
}
small() { STAND_IN_MEMORY=$1 sweep calibrate "$2" "$gpu" calibrate --quick --dir "$tmp" --only "$3"; }
calibrate_fails() {
	: >"$tmp/calibrate.ways"
	# Those that take the least time; the others call nothing that these do not.
	small 13 1 h2d,both,submit,launch,alloc && small 25 1 drive && small 13 2 peer && echo "$now ways" && [ "$now" -gt 200 ]
}
execute_fails() {
	: >"$tmp/execute.ways"
	sed '/^buffer/s/memory=2/memory=1/; /^kernel/s/device=2/device=1/' "$tmp/g.opg" >"$tmp/one.opg"
	STAND_IN_MEMORY=300 sweep execute 1 "$gpu" execute "$tmp/one.opg" -d "$tmp" && STAND_IN_MEMORY=300 sweep execute 2 "$gpu" execute "$tmp/g.opg" -d "$tmp" &&
		echo "$now ways" && [ "$now" -gt 80 ]
}
fails_for_good() { # in the second of three parts, by a kernel that touches what it must not
	STAND_IN_FAIL=cudaGraphLaunch:2:700 "$gpu" calibrate --quick --only submit,launch,alloc -o "$tmp/good.json" >"$tmp/out" || return 1
	grep '^skipped' "$tmp/out" && [ "$(grep -c '^skipped \(launch\|alloc\): cannot .*: error 700' "$tmp/out")" = 2 ] && grep -q '"part": "submit"' "$tmp/good.json"
}
advises() { # CALL:N:CODE TEXT
	STAND_IN_FAIL=$1 fails 1 "$gpu" calibrate 2>"$tmp/err" && grep -qF -e "$2" "$tmp/err" || { cat "$tmp/err"; return 1; }
}
ends() { # in the middle
	"$gpu" calibrate -o "$tmp/ends.json" --dir "$tmp" >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	until [ -e "$tmp/ends.json.$pid.part" ] && sleep 1.5; do
		kill -0 "$pid" || return 1
		sleep 0.05
	done
	interrupt "$pid"
	status=0
	wait "$pid" || status=$?
	[ "$status" = 1 ] && [ "$(cat "$tmp/err")" = 'offsim-cuda: interrupted' ] && [ -z "$(ls "$tmp"/ends.json* 2>/dev/null)" ]
}
if [ -n "${TIMED:-}" ]; then
	execute_fails >"$tmp/execute.log" 2>&1 &
	sweeping=$!
	ok 'any call of calibrate may fail' calibrate_fails
	swept() { wait "$sweeping" || { cat "$tmp/execute.log"; return 1; }; }
	ok 'any call of execute may fail' swept
else
	whole() {
		STAND_IN_MEMORY=13 STAND_IN_DEVICES=2 "$gpu" calibrate --quick --only h2d,d2h,pageable,both,submit,peer,memory,zero_copy,arithmetic,launch,alloc,gemv &&
			STAND_IN_MEMORY=25 "$gpu" calibrate --quick --only loaded,drive --dir "$tmp"
	}
	ok 'calibrate, whatever comes of it' whole
fi
ok 'a GPU that fails for good leaves what was measured before' fails_for_good
ok 'no GPU' env STAND_IN_DEVICES=0 sh -c '! "$1" calibrate 2>"$2" && grep -q "no CUDA device: error 100$" "$2"' sh "$gpu" "$tmp/err"
ok 'a driver that is too old' advises cudaGetDeviceCount:1:35 'the driver is for CUDA 13.0, this program was built with 13.0'
ok 'a program for other GPUs' advises cudaLaunchKernel:1:209 'make cuda CUDA_ARCHS=90 for one of compute capability 9.0'
ok 'a GPU that is in use' advises cudaSetDevice:1:46 'another program has the GPU to itself'
export STAND_IN_FASTER=1
ok 'Ctrl-C in the middle' ends
finish
