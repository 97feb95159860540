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
ok 'flag of llama-server' sh -c "'$OFFSIM' predict --machine desktop-rtx4090-ddr5 --model llama-2-13b --quant f16 -- \
	llama-server -m x.gguf -ngl 40 --foo 3 2>&1 | grep -qF 'command line:1:32: unknown flag'"

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
batch() {
	"$OFFSIM" predict --machine desktop-rtx4090-ddr5 --model llama-2-13b --batch "$1" -- llama-server 2>&1 |
		grep -qF "batch: '$1' is not a whole number"
}
ok 'a number is no YAML' batch '1, prompt: 3'
finish
