#!/bin/sh
# offsim-cuda on GPUs of threads and host memory (tests/cuda), whose speeds are known: what is measured of them is that, graphs
# run in order and whole, and whatever call fails, it ends in a line that says so.
. tests/cli/tap.sh
root=$PWD
gpu=$root/$BUILD/stand-in/offsim-cuda
[ -x "$gpu" ] || skip_all "there is no $gpu: make stand-in builds it"
export OFFSIM_DATA="$root"
export LD_LIBRARY_PATH="$root/$BUILD/stand-in"
mkdir "$tmp/with"
cp "$OFFSIM" "$tmp/with/offsim" && cp "$gpu" "$tmp/with/offsim-cuda"
offsim=$tmp/with/offsim

ok '--list' sh -c '"$1" calibrate --list | grep -q "^h2d "' sh "$gpu"

# ---- what is measured is what speeds.def says; sanitizers take too long for that ----

speed() { sed -n "s/^SPEED($1, \([0-9.e+-]*\))\$/\1/p" tests/cuda/speeds.def; }
value() { # CONSTANT
	awk -v name="\"$1\"," '$1 == "\"name\":" { found = $2 == name } $1 == "\"value\":" && found { print $2 + 0; exit }' "$tmp/fit.json"
}
between() { # VALUE LOW HIGH
	awk -v x="$1" -v low="$2" -v high="$3" 'BEGIN { print x ", which should lie between " low " and " high; exit !(x >= low && x <= high) }'
}
# Where only a stream's own clock counts, 5 %: less than what GB and GiB differ by.
is() { # CONSTANT FORMULA: with names of speeds
	want=$(awk -v f="$2" 'BEGIN { n = split(f, word, " "); for (i = 1; i <= n; i++) print word[i] }' | while read -r word; do
		s=$(speed "$word"); printf '%s ' "${s:-$word}"
	done)
	want=$(awk "BEGIN { print $want }")
	between "$(value "$1")" "$(awk "BEGIN { print $want * 0.95 }")" "$(awk "BEGIN { print $want * 1.05 }")"
}
# Where the host's clock counts, it may take longer, but not sooner, and not by much.
at_least() { # CONSTANT SECONDS SHARE_MORE
	between "$(value "$1")" "$(awk "BEGIN { print ($2) * 0.99 }")" "$(awk "BEGIN { print ($2) * (1 + $3) }")"
}
if [ "$MODE" = release ]; then
	calibrates() {
		"$offsim" calibrate cuda --quick --file "$tmp" --keep "$tmp/raw.json" -o "$tmp/machine.yaml" --json >"$tmp/fit.json"
	}
	ok 'calibrate cuda' calibrates
	nothing_left_out() {
		grep '"\(not used\|not measured\)' "$tmp/fit.json" | grep -v 'not measured: peer: there is one GPU'
		[ "$(grep -c '"\(not used\|not measured\)' "$tmp/fit.json")" = 1 ]
	}
	ok 'no part is left out or at fault' nothing_left_out
	ok 'memory of the GPU' is gpu0.bandwidth read_bytes_s
	ok 'pinned copies to the GPU' is gpu0.link.h2d h2d_bytes_s
	ok 'pinned copies from the GPU' is gpu0.link.d2h d2h_bytes_s
	ok 'pageable copies to the GPU' is gpu0.link.h2d_pageable h2d_pageable_bytes_s
	ok 'pageable copies from the GPU' is gpu0.link.d2h_pageable d2h_pageable_bytes_s
	ok 'both ways at once' is gpu0.link.both both_bytes_s
	ok 'latency of the link' is gpu0.link.latency copy_latency_s
	ok 'FP32' is gpu0.flops.fp32 gemm_fp32_flop_s
	ok 'FP16' is gpu0.flops.fp16 gemm_fp16_flop_s
	ok 'BF16' is gpu0.flops.bf16 gemm_bf16_flop_s
	ok 'INT8' is gpu0.flops.int8 gemm_int8_flop_s
	ok 'a share of memory for one row' is kernels.llama.cpp.gpu.read.16bit 'gemv_bytes_s / read_bytes_s'
	ok 'a share of arithmetic for few rows' is kernels.llama.cpp.gpu.multiply.16bit gemm_few_rows_share
	ok 'launches' at_least gpu0.launch "$(speed launch_s)" 0.2
	ok 'launches in a graph' at_least kernels.llama.cpp.gpu.kernel "$(speed graph_kernel_s) + $(speed graph_s) / 1000" 0.2
	ok 'a wait' at_least kernels.llama.cpp.gpu.sync "$(speed launch_s) + $(speed wait_s)" 1
	ok 'what a copy costs the host' at_least kernels.llama.cpp.gpu.copy_submit "$(speed copy_submit_s)" 0.5
	ok 'taking memory' at_least kernels.accelerate.gpu.alloc "$(speed malloc_s) + $(speed free_s)" 0.6
	noted() { # TEXT SPEED
		between "$(sed -n "s|.*$1: \([0-9.]*\) GB/s.*|\1|p" "$tmp/fit.json")" "$(awk "BEGIN { print 0.95e-9 * $2 }")" \
			"$(awk "BEGIN { print 1.05e-9 * $2 }")"
	}
	ok 'zero-copy reads' noted 'a kernel that reads pinned host memory' "$(speed zero_copy_bytes_s)"
	ok 'copies while the CPU copies' noted 'host to GPU while the CPU copies in its memory' "$(speed h2d_bytes_s)"
	profile() {
		grep -q '^  memory: 25600KiB$' "$tmp/machine.yaml" && grep -q '^  reserved: 9216KiB' "$tmp/machine.yaml" &&
			"$offsim" hw show "$tmp/machine.yaml"
	}
	ok 'the profile is a machine' profile
	without_library() {
		LD_LIBRARY_PATH='' "$offsim" calibrate cuda --quick --only memory,arithmetic,gemv --json >"$tmp/fit.json" || return 1
		is gpu0.flops.fp32 fp32_flop_s && is gpu0.flops.fp16 tensor_flop_s && grep -q 'not measured: gemv: cuBLAS: ' "$tmp/fit.json"
	}
	ok 'without cuBLAS, multiply-adds alone' without_library
fi

# ---- graphs ----

export STAND_IN_FASTER=1000
finish
