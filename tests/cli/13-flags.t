#!/bin/sh
# Flags of llama.cpp's family and of others that guides and issues use: their meaning, their defaults by date, what is left out.
. tests/cli/tap.sh

machine=desktop-2xrtx3090-nvlink
place() { # MODEL QUANT FLAG... ; build=YYYY-MM program=NAME
	place_model=$1 place_quant=$2
	shift 2
	"$OFFSIM" place --machine "$machine" --model "$place_model" --quant "$place_quant" -- "${program:-llama-server}" "$@"
}
shows() { # REGEX MODEL QUANT FLAG...
	shows_regex=$1
	shift
	place "$@" >"$tmp/out" 2>&1
	grep -qE -- "$shows_regex" "$tmp/out" || { cat "$tmp/out"; return 1; }
}
hides() { # the other way
	! shows "$@"
}
refuses() { # MESSAGE FLAG...
	refuses_message=$1
	shift
	fails 2 place llama-2-13b q8_0 "$@" >"$tmp/out" 2>&1
	grep -qF -- "$refuses_message" "$tmp/out" || { cat "$tmp/out"; return 1; }
}
# shellcheck disable=SC2086
same() { # FLAGS FLAGS: of llama-2-13b
	place llama-2-13b q8_0 $1 >"$tmp/one" 2>/dev/null && place llama-2-13b q8_0 $2 >"$tmp/two" 2>/dev/null && cmp "$tmp/one" "$tmp/two"
}

# -dev, as the program lists them
ok 'one device of two' hides 'layers .* gpu0 ' llama-2-13b q8_0 -ngl 99 -dev CUDA1
ok 'which is that one' shows 'ffn +layers 0\.\.39 .* gpu1 +resident +gpu1' llama-2-13b q8_0 -ngl 99 -dev CUDA1
ok 'in their order' shows 'ffn +layers 0\.\.[0-9]+ .* gpu1 ' llama-2-13b q8_0 -ngl 99 --device CUDA1,CUDA0
ok 'shares are of them' shows 'ffn +layers 0\.\.30 .* gpu1 ' llama-2-13b q8_0 -ngl 99 -dev CUDA1,CUDA0 -ts 3/1
ok 'none' shows 'ffn +layers 0\.\.39 .* ram ' llama-2-13b q8_0 -dev none
ok 'no such device' refuses "flag 'dev': no device 'CUDA2' on this machine; CUDA0 to CUDA1, or none" -dev CUDA2
ok 'no such backend' refuses "flag 'dev': no device 'cuda0'" -dev cuda0
ok 'twice' refuses "flag 'dev': 'CUDA0' is there twice" -dev CUDA0,CUDA0

# -ts and -ot
ok 'shares apart by commas or slashes' same '-ngl 99 -ts 3,1' '-ngl 99 -ts 3/1'
ok 'in whatever scale' same '-ngl 99 -ts 0.75,0.25' '-ngl 99 -ts 3,1'
ok 'a share of nothing' same '-ngl 99 -ts 1,0' '-ngl 99 -ts 1'
ok 'three for two GPUs' refuses "flag 'ts': more shares than the machine's 2 GPUs" -ts 1,1,1
ok 'no share' refuses "flag 'ts': '3:1' is no share" -ts 3:1
ok 'nothing at all' refuses "flag 'ts': the shares sum to nothing" -ts 0,0
ok 'patterns in one word or several' same '-ngl 99 -ot blk\.1\.=CPU,blk\.2\.=CUDA1' '-ngl 99 -ot blk\.1\.=CPU -ot blk\.2\.=CUDA1'
ok 'other names of buffers' same '-ngl 99 -ot blk\.1\.=CUDA_Host,blk\.2\.=ROCm1' '-ngl 99 -ot blk\.1\.=CPU,blk\.2\.=CUDA1'

# What -ngl is when nobody says it: none, since 2025-09 all (pull request 15434), since 2025-12 what fits (16653)
ok 'no layer' shows 'ffn +layers 0\.\.39 .* ram ' llama-2-13b q8_0 --build 2025-08
ok 'all, whether they fit' shows '-ngl [0-9]+ would fit' llama-2-70b q6_k --build 2025-11
ok 'what fits' hides 'would fit the GPU' llama-2-70b q6_k --build 2025-12
ok 'unless it is told not to' shows '-ngl [0-9]+ would fit' llama-2-70b q6_k --build 2025-12 --fit off
program=llama-sweep-bench
ok 'ik_llama.cpp: no layer' shows 'ffn +layers 0\.\.39 .* ram ' llama-2-13b q8_0 --build 2026-07
ok 'and all since August 2026 (2209)' shows '-ngl [0-9]+ would fit' llama-2-70b q6_k --build 2026-08
program=
free() { # free GPU memory of gpu0 in MiB, of -ngl auto
	place llama-2-70b q6_k "$@" 2>/dev/null | awk '$1 == "gpu0" && NF > 10 { print $(NF - 1) * ($NF == "GiB" ? 1024 : 1); exit }'
}
more_free() {
	awk -v little="$(free -fitt 256)" -v much="$(free --fit-target 4096,256)" 'BEGIN { exit !(little >= 256 && much >= 4096) }'
}
ok 'MiB that are left free, of each GPU' more_free
ok 'no number of MiB' refuses "flag 'fit-target': '1x' is no number of MiB" -fitt 1x

# What they are called, what they may be
ok 'underscores' shows 'ffn +layers 0\.\.39 .* ram ' llama-2-13b q8_0 --n_gpu_layers 0 --top_p 0.95
ok '-1 is none given' same '-ngl 99' '-ngl 99 -t -1 -tb -1'
ok 'a mode of loading' same '-ngl 0 --no-mmap' '-ngl 0 --load-mode dio'
experts() { # experts a token uses
	"$OFFSIM" predict --machine desktop-rtx4090-ddr5 --model glm-4.5-air --quant q4_k_m -- llama-server -ngl 99 --cpu-moe "$@" |
		awk '/^  decode/ { print $2 }'
}
fewer() {
	awk -v all="$(experts)" -v half="$(experts --override-kv glm4moe.expert_used_count=int:4)" 'BEGIN { exit !(half > 1.3 * all) }'
}
ok 'fewer experts by their key' fewer
ok 'no number of them' refuses "flag 'override-kv': 'expert_used_count=int:x' is no number" --override-kv a.expert_used_count=int:x

# -fmoe by itself since November 2025 (ikawrakow/ik_llama.cpp pull request 863)
fused() { # FLAG...: decode rate with experts on the CPU
	"$OFFSIM" predict --machine desktop-rtx4090-ddr5 --model qwen3-30b-a3b --quant q4_k_m -- llama-sweep-bench -ngl 99 -ot exps=CPU \
		"$@" | awk '/^  decode/ { print $2 }'
}
fuses() {
	[ "$(fused)" = "$(fused -fmoe)" ] && [ "$(fused)" != "$(fused -no-fmoe)" ] &&
		[ "$(fused --build 2025-10)" != "$(fused --build 2025-10 -fmoe)" ]
}
ok 'experts fused by itself' fuses

# Left out
tells() { # TEXT MACHINE COMMAND...
	tells_text=$1 tells_machine=$2
	shift 2
	"$OFFSIM" predict --machine "$tells_machine" -- "$@" >"$tmp/out" 2>"$tmp/err"
	grep -qxF -- "offsim: note: $tells_text" "$tmp/err" && [ -s "$tmp/out" ] || { cat "$tmp/err"; return 1; }
}
draft='-md Qwen3-0.6B-Q8_0.gguf -ngld 99 --draft-max 16 --cpu-moe-draft'
# shellcheck disable=SC2086
{
ok 'a draft model' tells 'not modelled, as if left out: md' desktop-rtx4090-ddr5 llama-server -m qwen3-14b -ngl 20 $draft
ok 'what is said of it' tells 'flags without influence on time or memory: ngld, draft-max, cpu-moe-draft' desktop-rtx4090-ddr5 \
	llama-server -m qwen3-14b -ngl 20 $draft
}
ok 'of vLLM' tells 'not modelled, as if left out: enable-expert-parallel, speculative-config' server-h100 vllm serve llama-3.1-8b \
	--enable-expert-parallel --speculative-config '{"method": "mtp"}' --max_model_len 4096
ok 'of SGLang' tells 'not modelled, as if left out: enable-dp-attention, dp' server-h100 python -m sglang.launch_server \
	--model-path llama-3.1-8b --enable-dp-attention --dp 1
ok 'several values' tells 'flags without influence on time or memory: cuda-graph-bs' server-h100 python -m sglang.launch_server \
	--model-path llama-3.1-8b --cuda-graph-bs 1 2 4
finish
