#!/bin/sh
# Command lines and Python calls pasted as typed: what they mean, and where they are wrong.
. tests/cli/tap.sh

place() { # TEXT [OPTION...]
	place_text=$1
	shift
	"$OFFSIM" place --machine desktop-rtx4090-ddr5 --model llama-2-13b "$@" -- "$place_text"
}
on_gpu() { # LAYERS TEXT
	place "$2" --quant f16 | grep -qE "layers 0\.\.$(($1 - 1)) .* gpu0 *resident"
}
refuses() { # LINE:COL MESSAGE TEXT
	fails 2 place "$3" --quant f16 >"$tmp/out" 2>&1 || return 1
	grep -qF "offsim: command line:$1: $2" "$tmp/out" || { cat "$tmp/out"; return 1; }
	[ "$(wc -l <"$tmp/out")" -eq 1 ]
}

ok 'infer_auto_device_map' on_gpu 35 'infer_auto_device_map(model, max_memory={0: "22GiB", "cpu": "64GiB"})'
ok 'positional, assigned to' on_gpu 18 "device_map = infer_auto_device_map(model, {0: '12GiB'}, ['LlamaDecoderLayer'])"
ok 'bytes as a number' on_gpu 35 'infer_auto_device_map(model, max_memory={0: 23622320128})'
ok 'from_pretrained' on_gpu 18 'model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-13b-hf", device_map="auto",
	torch_dtype=torch.float16, max_memory={0: "12GiB"}, offload_folder=None)  # a comment'
ok 'dtype says the quantization' place 'infer_auto_device_map(model, dtype=torch.float16)'
ok 'what would fit' sh -c "'$OFFSIM' place --machine desktop-rtx4090-ddr5 --model llama-2-13b --quant f16 -- \
	'infer_auto_device_map(model, {0: \"12GiB\"})' | grep -q 'max_memory={0: \"[0-9]*MiB\"} would put 37 of 40 layers'"
ok 'and does' on_gpu 37 'infer_auto_device_map(model, {0: "23304MiB"})'
ok 'predict takes the same' "$OFFSIM" predict --machine desktop-rtx4090-ddr5 --model llama-2-13b --quant f16 -- \
	'infer_auto_device_map(model, max_memory={0: "22GiB"})'
printf 'model: llama-2-13b\nquant: f16\nmachine: desktop-rtx4090-ddr5\nengine: accelerate\nflags: %s\n' \
	"'infer_auto_device_map(model, {0: \"12GiB\", gpu: 1})'" >"$tmp/s.yaml"
ok 'in a scenario, with its place' sh -c "'$OFFSIM' place '$tmp/s.yaml' 2>&1 | grep -qF 's.yaml:5:51: flag '"
ok 'llama-server' sh -c "'$OFFSIM' place --machine desktop-rtx4090-ddr5 --model llama-2-13b --quant f16 -- \
	llama-server -ngl 40 -ot 'blk\.1\.ffn_.*=CPU' | grep -q 'kv cache'"

ok 'not closed' refuses 1:68 "the text ends where ',' or '}' is expected" \
	'infer_auto_device_map(model, max_memory={0: "22GiB", "cpu": "64GiB"'
ok 'no colon' refuses 1:44 "expected ':'" 'infer_auto_device_map(model, max_memory={0 "22GiB"})'
ok 'misspelt keyword' refuses 1:30 "unknown key 'max_memry' in the flags of accelerate; did you mean 'max_memory'?" \
	'infer_auto_device_map(model, max_memry={0: "22GiB"})'
ok 'misspelt unit' refuses 1:45 "flag 'max_memory': '22Gib'" 'infer_auto_device_map(model, max_memory={0: "22Gib"})'
ok 'no such GPU' refuses 1:42 "flag 'max_memory': no device '3'; 0 or cpu" 'infer_auto_device_map(model, max_memory={3: "22GiB"})'
ok 'on its line' refuses 3:15 "flag 'max_memory': no device 'gpu'" 'infer_auto_device_map(model,
  max_memory={0: "22GiB",
              "gpu": 3})'
ok 'misspelt function' refuses 1:1 "'infer_auto_devicemap' is no function known here; did you mean 'infer_auto_device_map'?" \
	'infer_auto_devicemap(model)'
ok 'string without end' refuses 1:45 'this string has no end' 'infer_auto_device_map(model, max_memory={0: "22GiB})'
ok 'something behind' refuses 1:30 "expected the end of the text, not 'x'" 'infer_auto_device_map(model) x'
ok 'another dtype' refuses 1:36 'dtype bfloat16 is not --quant f16' 'infer_auto_device_map(model, dtype=torch.bfloat16)'
ok 'twice' refuses 1:55 "'max_memory' is there twice" 'infer_auto_device_map(model, max_memory={0: "22GiB"}, max_memory={})'
decodes() { # TOK/S WORD...
	rate=$1
	shift
	"$OFFSIM" predict --machine dual-xeon6454s-rtx4090 --model deepseek-v3 --quant q4_k_m -- "$@" -ngl 99 --cpu-moe >"$tmp/front" 2>&1 &&
		grep -q "decode  *$rate tok/s" "$tmp/front" || { cat "$tmp/front"; return 1; }
}
one=$("$OFFSIM" predict --machine dual-xeon6454s-rtx4090 --model deepseek-v3 --quant q4_k_m -- llama-server -ngl 99 --cpu-moe \
	--one-socket | awk '/decode/ { print $2 }')
all=$("$OFFSIM" predict --machine dual-xeon6454s-rtx4090 --model deepseek-v3 --quant q4_k_m -- llama-server -ngl 99 --cpu-moe \
	--numa numactl | awk '/decode/ { print $2 }')
ok 'the two differ' [ "$one" != "$all" ]
ok 'numactl in front' decodes "$one" numactl --cpunodebind=0 --membind=0 ./llama-server
ok 'its short options' decodes "$one" numactl -N 1 -m1 ./llama-server
ok 'interleaved' decodes "$all" numactl --interleave=all llama-server
ok 'by a path' decodes "$all" /usr/bin/numactl -i all llama-server
ok 'interleaved, and threads spread by the program' decodes "$all" numactl --interleave=all llama-server --numa distribute
ok 'both say it' decodes "$all" numactl --interleave=all llama-server --numa numactl
nodes_apart() { # of two sockets, one for threads and one for memory: not what --one-socket is
	decodes '[0-9.]*' numactl -N 0 -m 1 llama-server && ! grep -q "decode  *$one tok/s" "$tmp/front" &&
		grep -q 'without influence here: numactl' "$tmp/front"
}
ok 'threads on one socket, memory on the other' nodes_apart
refuses_words() { # LINE:COL MESSAGE WORD...
	refused="offsim: command line:$1: $2"
	shift 2
	fails 2 "$OFFSIM" predict --machine dual-xeon6454s-rtx4090 --model deepseek-v3 --quant q4_k_m -- "$@" >"$tmp/out" 2>&1
	grep -qF "$refused" "$tmp/out" || { cat "$tmp/out"; return 1; }
}
ok 'a column behind it' refuses_words 1:57 "unknown flag '--foo'" numactl --interleave=all llama-server --numa distribute --foo
ok 'a value stays one' refuses_words 1:50 "op-offload-min: '3 -ngl 4'" 'GGML_OP_OFFLOAD_MIN_BATCH=3 -ngl 4' llama-server
ok 'a variable nobody reads is told' decodes '[0-9.]*' CUDA_VISIBLE_DEVICES=0 GGML_CUDA_NO_PINNED=1 llama-server
ok 'by its name' grep -q 'without influence here: CUDA_VISIBLE_DEVICES=0$' "$tmp/front"
# Other programs that start the engine's, in any order.
starts() { # WORD...: in front of it, without a word of what they are
	decodes "$one" numactl -N 0 -m 0 "$@" ./llama-server && ! grep -q 'in front of' "$tmp/front"
}
ok 'env' starts env -u X -i
ok 'sudo, time, stdbuf, nohup' decodes "$one" sudo -E -u me time -p stdbuf -oL nohup numactl -N 0 -m 0 llama-server
ok 'timeout' decodes "$one" timeout -s INT 60 numactl -N 0 -m 0 llama-server
ok 'docker exec' decodes "$one" docker exec -it -e A=1 name numactl -N 0 -m 0 llama-server
ok 'uv run' "$OFFSIM" predict --machine server-h100 -- uv run --with x vllm serve llama-3.1-8b
ok 'what may be felt is told' decodes '[0-9.]*' nice -n 10 ionice -c2 -n 0 taskset -c 0-15 llama-server
ok 'in its own words' grep -qx 'offsim: note: in front of the program, without influence here: nice -n 10, ionice -c2 -n 0, taskset -c 0-15' \
	"$tmp/front"
ok 'by the name of a Windows program' decodes "$one" numactl -N 0 -m 0 'C:\llama\llama-server.exe'
inside() { # WHAT TO PASTE INSTEAD, WORD...
	inside_text=$1
	shift
	fails 2 "$OFFSIM" predict --machine server-h100 -- "$@" >"$tmp/out" 2>&1
	grep -qF "a container is no program: paste what runs inside: $inside_text (see" "$tmp/out" || { cat "$tmp/out"; return 1; }
}
ok 'an image that starts a server' inside 'vllm serve --model x/y --port 1' sudo docker run -d --gpus all -v a:b -p 8000:8000 \
	--ipc=host -e A=1 vllm/vllm-openai:latest --model x/y --port 1
ok 'another' inside 'llama-server -m /m/x.gguf' docker run --rm -it -v /m:/m ghcr.io/ggml-org/llama.cpp:server-cuda -m /m/x.gguf
ok 'and one that is told what to start' inside 'python3 -m sglang.launch_server --port 1' podman run --shm-size 32g lmsysorg/sglang:v1 \
	python3 -m sglang.launch_server --port 1
ok 'torchrun' sh -c "'$OFFSIM' predict --machine server-h100 -- torchrun --nproc_per_node 2 x.py 2>&1 | grep -q 'starts a script'"

# GPUs that a process is let see.
gpus() { # N VALUE: how many of eight
	"$OFFSIM" place --machine server-8xh100 --model llama-2-13b --quant q8_0 -- "CUDA_VISIBLE_DEVICES=$2" llama-server -ngl 99 \
		>"$tmp/out" 2>"$tmp/err"
	[ "$(grep -cE '^  gpu[0-7] +[0-9.]+ GiB' "$tmp/out")" -eq "$1" ] || { cat "$tmp/out" "$tmp/err"; return 1; }
}
ok 'two of eight' gpus 2 0,1
ok 'two others' gpus 2 6,5
ok 'none' gpus 0 ''
ok 'nor one' gpus 0 -1
ok 'one that is not there is told' gpus 8 0,8
ok 'by its value' grep -q 'without influence here: CUDA_VISIBLE_DEVICES=0,8$' "$tmp/err"

# Variables that the programs read themselves.
placed() { # TEXT WORD...
	placed_text=$1
	shift
	"$OFFSIM" place --machine desktop-rtx4090-ddr5 --model llama-2-13b --quant q8_0 -- "$@" >"$tmp/out" 2>&1
	grep -qE "$placed_text" "$tmp/out" || { cat "$tmp/out"; return 1; }
}
ok 'layers' placed 'ffn +layers 20\.\.39 .* gpu0' LLAMA_ARG_N_GPU_LAYERS=21 llama-server
ok 'but a flag comes first' placed 'ffn +layers 20\.\.39 .* gpu0' LLAMA_ARG_N_GPU_LAYERS=5 llama-server --n-gpu-layers 21
ok 'a cache type of Ollama' placed 'kv cache +q8_0 ' OLLAMA_KV_CACHE_TYPE=q8_0 ollama run llama2:13b
ok 'which llama.cpp does not read' placed 'kv cache +f16 ' OLLAMA_KV_CACHE_TYPE=q8_0 llama-server

# Which engine it is.
is_engine() { # ENGINE WORD...
	is_engine=$1
	shift
	"$OFFSIM" predict --machine dual-xeon6454s-rtx4090 -- "$@" >"$tmp/out" 2>&1
	grep -q ", engine $is_engine\$" "$tmp/out" || { cat "$tmp/out"; return 1; }
}
ok 'by a flag of its own' is_engine ik_llama.cpp ./llama-server -m Qwen3-30B-A3B-Q4_K_M.gguf -ngl 99 -ot exps=CPU -fmoe -amb 512
ok 'by its folder' is_engine ik_llama.cpp ~/ik_llama.cpp/build/bin/llama-bench -m Qwen3-30B-A3B-Q4_K_M.gguf -ngl 0
ok 'by neither' is_engine llama.cpp ./llama-server -m Qwen3-30B-A3B-Q4_K_M.gguf -ngl 0 -fa on
ok 'KTransformers in SGLang' is_engine ktransformers python -m sglang.launch_server --model /x/Qwen3-30B-A3B --kt-cpuinfer 60 \
	--kt-method AMXINT4 --kt-weight-path /x/y --attention-backend flashinfer --kt-num-gpu-experts 1 --enable-mixed-chunk
ok 'which makes experts of 4 bits' grep -q '^qwen3-30b-a3b int4-g32+bf16\|^qwen3-30b-a3b int4' "$tmp/out"
ok 'its own programs' is_engine ktransformers python ./ktransformers/local_chat.py --model_path deepseek-ai/DeepSeek-V3 \
	--gguf_path /m/DeepSeek-V3-Q4_K_M/ --prompt_file p.txt --cpu_infer 33 --max_new_tokens 1000
ok 'and the file of their weights' grep -q '^deepseek-ai/DeepSeek-V3 q4_k_m ' "$tmp/out"
ok 'Ollama' is_engine ollama ollama run llama3.1:8b-instruct-q8_0 --verbose 'why is the sky blue?'
ok 'its quantization' grep -q '^llama-*3.1-8b.* q8_0 ' "$tmp/out"
ok 'llama.cpp of old' is_engine llama.cpp ./main -m llama-2-13b.Q4_0.gguf -ngl 10 -n 128
ok 'a module of llama-cpp-python' is_engine llama-cpp-python python3 -m llama_cpp.server --model llama-2-13b.Q4_0.gguf --n_gpu_layers 9
workload() { # BATCH PROMPT GENERATE WORD...
	workload_text="batch $1, prompt $2, generate $3, depth 0"
	shift 3
	"$OFFSIM" predict --machine server-h100 -- "$@" >"$tmp/out" 2>&1
	grep -qxF "$workload_text" "$tmp/out" || { cat "$tmp/out"; return 1; }
}
ok 'vllm bench latency' workload 8 32 64 vllm bench latency --model llama-3.1-8b --output-len 64
ok 'sglang.bench_one_batch' workload 4 1024 16 python -m sglang.bench_one_batch --model-path llama-3.1-8b --batch 4
ok 'llama-batched-bench' workload 4 128 32 llama-batched-bench -m llama-2-7b -ngl 99 -npp 128 -ntg 32 -npl 4
ok 'several runs in one' sh -c "'$OFFSIM' predict --machine server-h100 -- llama-bench -m llama-2-7b -ngl 10,20 2>&1 |
	grep -q \"'-ngl 10,20' are several runs of llama-bench\""
whole='nohup ./llama-server \
	-m llama-2-13b.Q4_K_M.gguf -ngl 20 \
	-ot "blk\.1\.=CPU" > log.txt 2>&1 &'
ok 'with variables, and brackets in it' placed 'llama-2-13b q8_0' \
	'CUDA_VISIBLE_DEVICES=0, ./llama-server -m x-Q8_0.gguf -ngl 20 -ot "blk\.(1|2)\.=CPU" --color'
ok 'a command of several lines, as one word' placed 'llama-2-13b q8_0' "$whole"

on_radeon() { # FLAGS WORD...: is predicted as with FLAGS
	flags=$1
	shift
	# shellcheck disable=SC2086
	"$OFFSIM" predict --machine strix-halo --model llama-2-7b --quant q4_0 -- llama-bench -ngl 99 $flags >"$tmp/want" 2>&1
	"$OFFSIM" predict --machine strix-halo --model llama-2-7b --quant q4_0 -- "$@" 2>"$tmp/err" | cmp - "$tmp/want"
}
ok 'the backend by its devices' on_radeon '--backend hip' HIP_VISIBLE_DEVICES=0 llama-bench -ngl 99
ok 'is read' [ ! -s "$tmp/err" ]
ok 'by those of Vulkan' on_radeon '--backend vulkan' GGML_VK_VISIBLE_DEVICES=0 llama-bench -ngl 99
ok 'of two the one that says more' on_radeon '--backend hip-hipblaslt --build 2025-09' \
	ROCBLAS_USE_HIPBLASLT=1 HIP_VISIBLE_DEVICES=0 llama-bench -ngl 99 --build 2025-09
ok 'what is said behind goes before it' on_radeon '--backend vulkan' HIP_VISIBLE_DEVICES=0 llama-bench -ngl 99 --backend vulkan
ok 'the backend by -dev' on_radeon '--backend hip' llama-bench -ngl 99 -dev ROCm0
ok 'as llama-bench calls it' on_radeon '--backend hip' llama-bench -ngl 99 --backend ROCm
one_phase() { # the prompt streams, a decode step does not: what would change it is what 'why' says of the decode
	"$OFFSIM" predict --machine laptop-rtx4060 --prompt 1024 --generate 100 -- llama-server -m Qwen3-30B-A3B-Q4_K_M.gguf \
		--cpu-moe 2>/dev/null >"$tmp/out"
	grep -q 'why:    a decode step moves .* through ram ' "$tmp/out" && grep -q 'change: ram twice as fast' "$tmp/out" || cat "$tmp/out"
}
ok 'why and change are of one phase' [ -z "$(one_phase)" ]
tier() { # GB: a tier of HiCache that holds 8192 tokens of Llama 3.1 8B, which take 1.07 GB
	"$OFFSIM" predict --machine server-h100 --model llama-3.1-8b --prompt 4096 --depth 4096 -- \
		python3 -m sglang.launch_server --enable-hierarchical-cache --hicache-size "$1" 2>&1
}
ok 'a tier of HiCache that is large enough' tier 1.1
too_small() {
	tier 1.07 | grep -q "flag 'hicache-size': 1.070 GB in all, but the workload has 1.074 GB there"
}
ok 'and one that is not' too_small
ok 'nothing behind them' sh -c "'$OFFSIM' predict --machine server-h100 -- A=1 numactl -N 0 2>&1 | grep -q 'no program behind'"
ok 'an assigned call is a call' place 'device_map=infer_auto_device_map(model)' --quant f16
ok 'flag of llama-server' sh -c "'$OFFSIM' predict --machine desktop-rtx4090-ddr5 --model llama-2-13b --quant f16 -- \
	llama-server -m x.gguf -ngl 40 --foo 3 2>&1 | grep -qF 'command line:1:32: unknown flag'"
serves() { # FLAG... : they are taken by vllm serve
	"$OFFSIM" predict --machine server-h100 -- vllm serve llama-3.1-8b "$@"
}
ok 'vllm serve' serves --cpu-offload-gb 2.5 --max-model-len 4096 --port 8000 --enable-prefix-caching
ok 'its model by a name of ours' "$OFFSIM" predict --machine server-h100 --model llama-3.1-8b -- \
	vllm serve meta-llama/Llama-3.1-8B-Instruct --kv-cache-dtype fp8
ok 'as a module' "$OFFSIM" predict --machine server-h100 -- python3 -m vllm.entrypoints.openai.api_server \
	--model llama-3.1-8b --enforce-eager
ok 'sglang' "$OFFSIM" predict --machine server-h100 -- python -m sglang.launch_server --model-path llama-3.1-8b \
	--cpu-offload-gb 2.5
hub() { # TEXT WORDS OF llama-server...
	hub_text=$1
	shift
	"$OFFSIM" predict --machine gh200 -- llama-server "$@" | head -n 1 | grep -F "$hub_text"
}
ok 'a file of the hub' hub 'someone/Llama-3.1-70B-Instruct-GGUF q5_k_m' -hf someone/Llama-3.1-70B-Instruct-GGUF:Q5_K_M -ngl 3
ok 'without a quantization' hub 'q4_k_m' -ngl 3 -hf someone/Llama-3.1-70B-Instruct-GGUF
ok 'as one word' sh -c "'$OFFSIM' predict --machine server-h100 -- vllm serve --model=llama-3.1-8b | grep -q '^llama-3.1-8b bf16'"
names() { # TEXT WORDS OF llama-server...: of a file that is not here
	names_text=$1
	shift
	"$OFFSIM" predict --machine gh200 -- llama-server "$@" >"$tmp/out" 2>&1
	grep -qF -- "$names_text" "$tmp/out" || { cat "$tmp/out"; return 1; }
}
ok 'a file that is not here' names 'llama-3.1-70b-instruct q4_k_m (' -ngl 3 -m /x/Llama-3.1-70B-Instruct-Q4_K_M-00001-of-00002.gguf
ok 'is told' names "note: by its name '/x/Llama-3-70B.Q8_0.gguf' is llama-3-70b, q8_0 (--model" -ngl 3 -m /x/Llama-3-70B.Q8_0.gguf
ok 'its quant, of another model' sh -c "'$OFFSIM' predict --machine gh200 --model llama-3-8b -- llama-server -m x-Q5_K_M.gguf |
	head -n 1 | grep -q '^llama-3-8b q5_k_m '"
ok 'a name that says nothing' names "'/x/my-13b.gguf' is not here (--model NAME says what it is): unknown model 'my-13b'" -m /x/my-13b.gguf
ok 'the file of a repository' hub 'q6_k (' -hf x/Llama-3.1-70B-GGUF -hff Llama-3.1-70B-Q6_K.gguf -ngl 3
ok 'experts that every file has in 4 bits' hub 'mxfp4 (59.0 GiB)' -hf ggml-org/gpt-oss-120b-GGUF --cpu-moe
ok 'also one of 16 bits' names 'gpt-oss-120b mxfp4+f16 (60.8 GiB)' -m gpt-oss-120b-F16.gguf --cpu-moe
made() { # QUANT WORDS OF vllm serve...
	made_quant=$1
	shift
	"$OFFSIM" predict --machine server-h200 -- vllm serve "$@" 2>"$tmp/err" | head -n 1 | grep -qF " $made_quant ("
}
ok 'weights that are made when loading' made f8_e4m3 llama-3.1-70b --quantization fp8
ok 'and those of a checkpoint' made gptq-int4-g128 Qwen/Qwen3-30B-A3B-GPTQ-Int4 --quantization gptq_marlin
ok 'as it is published' made mxfp4+bf16 openai/gpt-oss-120b
hub_wrong() {
	"$OFFSIM" predict --machine gh200 -- llama-server -hf x/llama-3-8b-GGUF:Q9_K -ngl 3 2>&1 | grep -qF "unknown quant 'q9_k'" &&
		"$OFFSIM" predict --machine gh200 -- llama-server -hf x/llama-3-8b-GGUF:Q5_K_M -nlg 3 2>&1 |
		grep -qxF "offsim: command line:1:43: unknown flag '-nlg' of llama.cpp; did you mean 'ngl'?"
}
ok 'what is wrong with it, and where' hub_wrong
says() { # STATUS MESSAGE COMMAND...
	says_status=$1 says_message=$2
	shift 2
	fails "$says_status" "$@" >"$tmp/out" 2>&1 && grep -qF "$says_message" "$tmp/out" || { cat "$tmp/out"; return 1; }
}
options() { # what is wrong with an option has no place in the command line
	says 2 "offsim: command line: unknown machine 'desktop-rtx409-ddr5'; did you mean" "$OFFSIM" place --machine desktop-rtx409-ddr5 --model llama-2-13b -- llama-cli &&
		says 2 "offsim: command line: unknown model 'llama-2-13'" "$OFFSIM" place --machine gh200 --model llama-2-13 -- llama-cli &&
		says 2 "offsim: command line: 'batch' must be" "$OFFSIM" place --machine gh200 --model llama-2-13b --batch 0 -- llama-cli
}
ok 'misspelt options' options
ok 'misspelt flag of vllm' says 2 "did you mean 'cpu-offload-gb'?" serves --cpu-ofload-gb 4
ok 'more GPUs than there are' says 2 "flag 'tensor-parallel-size': the machine has 1 GPU" serves -tp 2
ok 'heads that cannot be divided' says 2 'the 32 heads of a layer cannot be divided over 3 GPUs' "$OFFSIM" predict \
	--machine server-8xh100 -- vllm serve llama-3.1-8b -tp 3
ok 'another command of vllm' says 2 "only 'vllm serve' and 'vllm bench latency' are known" "$OFFSIM" predict --machine server-h100 -- vllm bench x
ok 'another module' says 2 "did you mean 'sglang.launch_server'?" "$OFFSIM" predict --machine server-h100 -- \
	python -m sglang.launch_serve --model-path llama-3.1-8b
ok 'a context too short' says 2 "flag 'max-model-len': 100" serves --max-model-len 100
ok 'an unknown connector' says 2 "only OffloadingConnector" serves --kv-transfer-config '{"kv_connector":"NixlConnector"}'
ok 'no GPU' says 2 'the machine has no GPU' "$OFFSIM" predict --machine cpu-epyc9654 -- vllm serve llama-3.1-8b
call_names() { # the model that it names is looked up, a variable is not
	"$OFFSIM" predict --machine desktop-rtx4090-ddr5 -- \
		'AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-13b-hf", device_map="auto", torch_dtype=torch.float16)' |
		head -n 1 | grep -q '^meta-llama/Llama-2-13b-hf f16 '
}
ok 'the model that a call names' call_names
ok 'a variable names none' says 2 'which model?' "$OFFSIM" predict --machine desktop-rtx4090-ddr5 -- \
	'AutoModelForCausalLM.from_pretrained(name, device_map="auto")'
reads() { # TEXT FLAG...: of two modules, whose memory the GPUs read
	reads_text=$1
	shift
	"$OFFSIM" place --machine gh200-dual --model llama-3.1-70b --quant bf16 -- vllm serve x -tp 2 --cpu-offload-gb 20 "$@" |
		grep -qxF "$reads_text"
}
ok 'its own module' reads 'gpu1 reads host memory of its own socket, at 378 GB/s; another'"'"'s would come at 133 GB/s'
ok 'the other module' reads 'gpu1 reads 100% of its host memory from another socket, at 133 GB/s instead of 378 GB/s' --numa-bind-nodes 0 0
ok 'no such module' says 2 "flag 'numa-bind-nodes' names a socket below 2 for each of 2 GPUs, not '0 2'" "$OFFSIM" predict \
	--machine gh200-dual -- vllm serve llama-3.1-8b -tp 2 --numa-bind-nodes 0 2
ok 'too many modules' says 2 "flag 'numa-bind-nodes': '1' is left behind the sockets of 2 GPUs" "$OFFSIM" predict \
	--machine gh200-dual -- vllm serve llama-3.1-8b -tp 2 --numa-bind-nodes 0 1 1
# as published for two GH200 of 96 GB (dnhkng, part 2): it fitted
ok 'experts of 4 bits behind C2C' says 0 'mxfp4+f8_e4m3-block128 (791 GiB)' "$OFFSIM" predict --machine gh200-dual --prompt 8192 \
	--generate 512 -- vllm serve deepseek-ai/DeepSeek-V4-Pro --distributed-executor-backend mp --tensor-parallel-size 2 \
	--pipeline-parallel-size 1 --max-model-len 32768 --max-num-batched-tokens 8192 --max-num-seqs 1 --block-size 256 \
	--gpu-memory-utilization 0.70 --kv-cache-dtype fp8 --generation-config vllm --moe-backend auto --offload-backend uva \
	--cpu-offload-gb 380 --cpu-offload-params experts --disable-custom-all-reduce
ok 'what would fit' says 3 'this would fit: --cpu-offload-gb' "$OFFSIM" predict --machine server-h100 -- \
	vllm serve llama-3.1-70b

# FlexGen: starter, module, the hub's name, the block as the batch; DeepSpeed: launcher, script, workload.
flexgen() { # COMMAND [WORD...]
	flexgen_command=$1
	shift
	"$OFFSIM" "$flexgen_command" --machine gcp-t4-208gb -- python3 -m flexllmgen.flex_opt --model facebook/opt-30b "$@"
}
zero() { # COMMAND [WORD...]
	zero_command=$1
	shift
	"$OFFSIM" "$zero_command" --machine server-a100-80gb -- deepspeed --num_gpus 1 run_model.py "$@"
}
prints() { # TEXT COMMAND...
	prints_text=$1
	shift
	"$@" >"$tmp/out" 2>&1
	grep -qF -- "$prints_text" "$tmp/out" || { cat "$tmp/out"; return 1; }
}
ok 'what RAM does not hold goes to a drive' prints 'a drive and offload_folder' "$OFFSIM" place --machine laptop-rtx4060 --quant f16 -- \
	'AutoModelForCausalLM.from_pretrained("mistralai/Mixtral-8x7B-v0.1", device_map="auto")'
block='--percent 0 100 0 100 0 100 --gpu-batch-size 48 --num-gpu-batches 3'
# shellcheck disable=SC2086
{
ok 'the block is the batch' prints 'batch 144, prompt 512, generate 32' flexgen place $block
ok 'workload of flex_opt' prints 'batch 4, prompt 256, generate 8' flexgen place --prompt-len 256 --gen-len 8
ok 'predict' prints 'end to end' flexgen predict $block --cpu --debug fewer_batch --path _DUMMY_
ok 'what would fit' prints '--percent 25 75 0 100 0 100 would keep 4.6 GiB' flexgen place $block
ok '4 bits' prints 'opt-30b flexgen-int4-g64' flexgen place $block --compress-weight --compress-cache
ok 'switches of Python' prints 'does not fit' flexgen place --overlap False --pin-weight 0
}
ok 'does not fit' fails 3 flexgen predict
ok 'five shares' prints "flag 'percent' is six numbers" flexgen place --percent 20 80 0 100 0
ok 'shares above 100' prints "flag 'percent': 60 and 50 are more than 100" flexgen place --percent 60 50 0 100 0 100
ok 'misspelt flag of flex_opt' prints "unknown flag '--percen' of flexgen; did you mean 'percent'?" flexgen place --percen 1
ok 'no argument of its own' prints "'x' is no flag of flexgen" flexgen place --compress-cache x
ok 'run_model.py' prints 'batch 8, prompt 512, generate 32' zero predict --model bigscience/bloom-176b --batch-size 8 \
	--cpu-offload --quant_bits 4 --kv-offload
ok 'resident parameters' prints 'gpu_resident_params=' zero place --model facebook/opt-30b --cpu-offload
ok 'both offloads' prints "'cpu-offload' and 'disk-offload' exclude each other" zero place --model facebook/opt-30b \
	--cpu-offload --disk-offload
ok 'misspelt flag of run_model.py' prints "did you mean 'kv-offload'?" zero place --model facebook/opt-30b --kv-ofload
ok 'misspelt program' prints "only 'deepspeed ... run_model.py' is known" "$OFFSIM" place --machine server-a100-80gb --model opt-30b -- \
	deepspeed run_modle.py

# ExLlamaV3's scripts and TabbyAPI: which script, its names of the same flags, what it allocates when nothing is said.
exl3() { # COMMAND WORD...
	exl3_command=$1
	shift
	"$OFFSIM" "$exl3_command" --machine desktop-rtx3090-ddr4 --model qwen3-30b-a3b --quant exl3-4bpw -- "$@"
}
cache() { # TYPE SIZE WORD...
	cache_type=$1 cache_size=$2
	shift 2
	exl3 place "$@" 2>"$tmp/err" | grep -qE "kv cache +$cache_type +$cache_size "
}
ok 'perf.py' prints 'experts    layers 0..19 ' exl3 place python eval/perf.py -m /x -mcl 20 -sg
ok 'its cache of 32768 tokens' cache f16 '3\.00 GiB' python3.12 -u eval/perf.py -m /x -mcl 20
ok 'or so many' cache q8_0 '816 MiB' python eval/perf.py --model_dir=/x -mcl 20 -cs 16384 -cq 8
ok 'keys and values of two types' cache q8_0 '1\.22 GiB' python ./chat.py -m /x -mcl 20 -cq 8,4
ok 'which is too small' prints "flag 'cache_size': 1 tokens in pages of 256, but the workload has 640" exl3 predict \
	python eval/perf.py -m /x -cs 1
ok 'or its last page is not' cache f16 '60\.0 MiB' python eval/perf.py -m /x -cs 600
ok 'its chunks' prints "'chunk_size' must be between 32 and 1048576, not 7" exl3 predict python eval/perf.py -m /x -chunk_size 7
ok 'TabbyAPI' cache q6_0 '312 MiB' python3 main.py --model-name x --cache-mode Q6 --cache-size 8192 --cpu-moe-offload-layers 48
ok 'its model is a name of ours' prints 'qwen3-30b-a3b exl3-4bpw' "$OFFSIM" place --machine desktop-rtx3090-ddr4 --quant exl3-4bpw \
	-- python main.py --model-name qwen3-30b-a3b --host 0.0.0.0
tabby_folder() {
	mkdir -p "$tmp/models/m" && cp tests/data/configs/ministral-3-3b.json "$tmp/models/m/config.json" &&
		prints "$tmp/models/m exl3-4bpw" "$OFFSIM" place --machine desktop-rtx3090-ddr4 --quant exl3-4bpw -- \
			python main.py --model-dir "$tmp/models" --model-name m
}
ok 'or a folder in its folder' tabby_folder
ok 'a cache of 7 bits' prints "flag 'cache_quant': 16, 8, 6, 5 or 4, or two of them such as 8,4, not '8,7'" exl3 place \
	python eval/perf.py -m /x -cq 8,7
ok 'divided over GPUs' prints "unknown flag '-tp' of exllama" exl3 place python main.py -tp
ok 'misspelt script' prints "by the program 'pref.py'; did you mean 'perf.py'?" exl3 place python eval/pref.py -m /x
ok 'no script' prints "'python3' alone names no engine" exl3 place python3 -u

ds4() { # COMMAND PROGRAM WORD...
	ds4_command=$1
	shift
	"$OFFSIM" "$ds4_command" --machine dgx-spark --model deepseek-v4-flash --quant iq2_xxs -- "$@"
}
kv_of() {
	ds4 place "$@" 2>&1 | awk '/kv cache/ { print $4, $5 }'
}
ok 'ds4' prints 'batch 1, prompt 512, generate 128' ds4 predict ./ds4 -m ds4flash.gguf -p 'two words' -c 100000 --nothink
same_cache() { # what a program allocates by itself is what it allocates when told so
	[ "$(kv_of "$@")" = "$(kv_of ds4 --ctx "$size")" ] && [ "$(kv_of "$@")" != "$(kv_of ds4 --ctx 16384)" ]
}
size=32768
ok 'its context' same_cache ds4-server --port 1
size=65601
ok 'that of ds4-bench' same_cache ds4-bench --ctx-max 65536 --gen-tokens 64
size=70000
ok 'as told' same_cache ds4-bench --ctx-alloc 70000
ok 'workload of ds4-bench' prints 'prompt 4096, generate 64' ds4 place ds4-bench --ctx-start 4096 --gen-tokens 64 --csv x.csv
ok 'of nothing' prints 'prompt 2048, generate 128' ds4 place ds4-bench
ok 'frontier that is no number' prints "ctx: '9x' is not a whole number" ds4 place ds4-bench --ctx-max 9x
ok 'not on the CPU' prints "flag 'backend': cuda or metal, not 'cpu'" ds4 place ds4 --backend cpu

# What run has, the others have.
set_link() { # COMMAND: a slower link is felt
	slow=$("$OFFSIM" "$1" --machine desktop-rtx4090-ddr5 --set machine.gpu0.link.gen=3 -- vllm serve llama-2-13b --cpu-offload-gb 8 |
		grep 'why:') && fast=$("$OFFSIM" "$1" --machine desktop-rtx4090-ddr5 -- vllm serve llama-2-13b --cpu-offload-gb 8 |
		grep 'why:') && [ "$slow" != "$fast" ]
}
ok 'a key of the scenario' set_link predict
ok 'explain, of a command line' set_link explain
ok 'of what is no key' says 2 "unknown key 'machin'" "$OFFSIM" predict --machine gh200 --set machin=x -- llama-server -m llama-2-13b
seeds() {
	one=$("$OFFSIM" predict --machine gh200 --quant q4_k_m --seed 2 -- llama-server -m qwen3-30b-a3b --cpu-moe) &&
		two=$("$OFFSIM" predict --machine gh200 --quant q4_k_m --set seed=2 --exact -- llama-server -m qwen3-30b-a3b --cpu-moe) &&
		[ "$(echo "$one" | head -n 1)" = "$(echo "$two" | head -n 1)" ]
}
ok 'seed and exact' seeds

# In time and memory that grow with what is pasted, not with its square.
briefly() { # STATUS ARGUMENT...
	want=$1
	shift
	(ulimit -v 4000000 2>/dev/null; exec timeout 20 "$OFFSIM" predict "$@") >"$tmp/out" 2>"$tmp/err"
	[ $? -eq "$want" ] || { cut -c1-200 "$tmp/err"; return 1; }
}
case $OFFSIM in */asan/* | */tsan/*) ulimit() { :; } ;; esac
words=$(awk 'BEGIN { while (i++ < 90000) printf "-fa " }')
list=$(awk 'BEGIN { while (i++ < 25000) printf "\"a\"," }')
call="infer_auto_device_map(m, no_split_module_classes=["
ok 'a name of 100000 letters' briefly 2 --machine "$(printf '%100000s' x)" --model llama-2-13b -- llama-server
# shellcheck disable=SC2086
ok 'a command of 90000 words' briefly 2 --machine desktop-rtx4090-ddr5 --model llama-2-13b -- llama-server $words
ok 'a call with a list of 200000' briefly 0 --machine desktop-rtx4090-ddr5 --model llama-2-13b --quant q8_0 \
	-- "$call" "$list" "$list" "$list" "$list" "$list" "$list" "$list" "$list" "])"
vars=$(awk 'BEGIN { while (i++ < 25000) printf "A=1 " }')
long=$(awk 'BEGIN { while (i++ < 11000) printf "-instruct" }')
ok '25000 variables in front' briefly 0 --machine desktop-rtx4090-ddr5 --model llama-2-13b --quant q8_0 -- "$vars llama-server"
ok 'a container of 25000 words' briefly 2 --machine desktop-rtx4090-ddr5 --model llama-2-13b -- "docker run image $vars"
ok 'a file whose name is longer than one can be' briefly 2 --machine desktop-rtx4090-ddr5 -- "llama-server -m x$long"
nothing() { # a command of no word
	fails 2 "$OFFSIM" predict --machine desktop-rtx4090-ddr5 --model llama-2-13b -- "$1" >"$tmp/out" 2>&1
	grep -qF "no command line behind '--'" "$tmp/out" || { cat "$tmp/out"; return 1; }
}
ok 'blanks are no command' nothing '  '
ok 'nor is a line that goes on' nothing "\\
"
ok 'nor a comment' nothing '# llama-server'
batch() {
	"$OFFSIM" predict --machine desktop-rtx4090-ddr5 --model llama-2-13b --batch "$1" -- llama-server 2>&1 |
		grep -qF "command line: batch: '$1' is not a whole number"
}
ok 'a number is no YAML' batch '1, prompt: 3'
finish
