#!/bin/sh
# offsim model: list, show, their JSON, and what they refuse.
. tests/cli/tap.sh

says() { # TEXT COMMAND...: its output has the text
	text=$1
	shift
	"$@" >"$tmp/out" 2>&1
	grep -qF -e "$text" "$tmp/out" || { tail -n 20 "$tmp/out"; return 1; }
}

first_word() { # the first word of each line is a model that can be shown
	"$OFFSIM" model list | while read -r name _; do
		"$OFFSIM" model show "$name" >"$tmp/shown" || exit 1
	done
}

card_names() { # a card's name is that of its file
	for card in models/cards/*.yaml; do
		name=${card##*/}
		grep -qx "name: ${name%.yaml}" "$card" || { echo "$card"; return 1; }
		! grep -qE '^source: *"?/' "$card" || { echo "$card"; return 1; }
	done
}

show_refuses() { # STATUS TEXT ARGUMENT...
	want=$1
	text=$2
	shift 2
	fails "$want" "$OFFSIM" model "$@" >"$tmp/stdout" 2>"$tmp/stderr" || { cat "$tmp/stderr"; return 1; }
	[ ! -s "$tmp/stdout" ] || { cat "$tmp/stdout"; return 1; }
	grep -qF -e "$text" "$tmp/stderr" || { cat "$tmp/stderr"; return 1; }
}

disk_full() {
	[ -w /dev/full ] || return 0
	! "$OFFSIM" model list >/dev/full
}

cat >"$tmp/foo.json" <<'EOF'
{"architectures": ["FooForCausalLM"], "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
 "intermediate_size": 128, "vocab_size": 100}
EOF

ok 'each model of the list can be shown' first_word
ok 'cards are called as their files' card_names
ok 'list takes part of a name' test "$("$OFFSIM" model list MIXTRAL | wc -l)" -eq 2
ok 'list takes a shell pattern' test "$("$OFFSIM" model list 'opt-*b' | wc -l)" -eq 7
same_model() { # names of the hub, of whichever owner and in whichever files: all of the one card
	card=$1
	shift
	for name; do
		[ "$("$OFFSIM" model show "$name" --json | sed 2d)" = "$("$OFFSIM" model show "$card" --json | sed 2d)" ] ||
			{ echo "$name"; return 1; }
	done
}
ok 'names of the hub' same_model llama-3.1-70b meta-llama/Llama-3.1-70B META-LLAMA/llama-3.1-70b-instruct \
	Llama-3.1-70B-Instruct someone/Meta-Llama-3.1-70B-Instruct-GGUF someone/llama-3.1-70b-hf
ok 'a part of a name is none' show_refuses 2 "unknown model 'someone/llama-3.1-70'" show someone/llama-3.1-70
ok 'list finds aliases' test "$("$OFFSIM" model list meta-llama/Llama-2-7b | wc -l)" -eq 1
ok 'show: total' says 'parameters    70.6 B (70553706496)' "$OFFSIM" model show llama-3.1-70b
ok 'show: experts' says 'experts       8 of 128 a token in 48 of 48 layers' "$OFFSIM" model show qwen3-30b-a3b
# 148 to 149 GiB with the layer of predictions, which is not counted: dnhkng's GH200 benchmarks, part 2
ok 'show: experts in fewer bits than the rest' says 'weights       145 GiB' "$OFFSIM" model show deepseek-ai/DeepSeek-V4-Flash
ok 'show: window' says 'window        4096 tokens in 32 of 32 layers' "$OFFSIM" model show mistral-7b-v0.1
ok 'show: tensors' says 'blk.79.ffn_down.weight     28672 x 8192' "$OFFSIM" model show llama-3.1-70b --tensors
ok 'show: context above the limit' says 'more than the model'"'"'s 2048' "$OFFSIM" model show opt-13b --context 4096
ok 'JSON: weights' says '"weights_bytes": 49625579520' "$OFFSIM" model show mixtral-8x7b --quant q8_0 --json
ok 'JSON: no file' says '"file_bytes": null' "$OFFSIM" model show mixtral-8x7b --json
ok 'JSON: KV' says '"kv_bytes": 3351248896' \
	"$OFFSIM" model show qwen3-235b-a22b --json --context 32768 --kv-type q8_0
ok 'JSON: sequences' says '"kv_bytes": 6442450944' \
	"$OFFSIM" model show qwen3-30b-a3b --json --context 4096 --sequences 16
ok 'JSON: tensors' says '"name": "blk.0.ffn_down_exps.weight"' \
	"$OFFSIM" model show mixtral-8x7b --json --tensors
ok 'JSON: keys and values apart' says '"kv_bytes": 1207435264' \
	"$OFFSIM" model show qwen3-235b-a22b --json --context 8192 --kv-type q8_0/f16
ok 'JSON: latent attention' says '"kv_bytes": 2302672896' "$OFFSIM" model show deepseek-r1 --json --context 32768
ok 'JSON: latent attention, unpacked' says '"kv_bytes": 2558525440' \
	"$OFFSIM" model show deepseek-r1 --json --context 512 --mla heads
ok 'JSON: state apart from the cache' says '"kv_bytes": 83886080' "$OFFSIM" model show qwen3.6-35b-a3b --json
ok 'JSON: state' says '"state_bytes": 65863680' "$OFFSIM" model show qwen3.6-35b-a3b --json
ok 'show: MTP' says 'layers        78 of width 6144, and 1 to draft (MTP)' "$OFFSIM" model show glm-5
ok 'show: latent' says 'heads         128 of 192 (values 128), kept as one vector of 576' "$OFFSIM" model show deepseek-v3
ok 'unknown architecture, familiar keys: a note' says \
	"offsim: note: architecture 'FooForCausalLM' is unknown; read as llama" "$OFFSIM" model show "$tmp/foo.json"
ok 'the note is in the JSON' says "\"note\": \"architecture 'FooForCausalLM' is unknown; read as llama\"" \
	"$OFFSIM" model show "$tmp/foo.json" --json
ok 'bad form of latent attention' show_refuses 2 "'x' is none of latent, latent-copy and heads" \
	show deepseek-v3 --mla x
ok 'a hundred models and more' test "$("$OFFSIM" model list | wc -l)" -ge 100
ok 'unknown model' show_refuses 2 "did you mean 'llama-3.1-70b'?" show llama-3.1-71b
ok 'unknown quant' show_refuses 2 "did you mean 'q4_k'?" show llama-3-8b --quant q4_kk
ok 'bad KV type' show_refuses 2 "'q6_k' is no type for a KV cache" show llama-3-8b --kv-type q6_k
ok 'bad context' show_refuses 2 '--context' show llama-3-8b --context 4k
ok 'context of nothing' show_refuses 2 '--context must be from 1' show llama-3-8b --context 0
ok 'missing path' show_refuses 2 'No such file or directory' show ./no/such/config.json
ok 'unknown option' show_refuses 2 "did you mean 'tensors'?" show llama-3-8b --tensros
ok 'unknown subcommand' show_refuses 2 "did you mean 'show'?" shwo llama-3-8b
ok 'no subcommand' show_refuses 2 "expected 'list' or 'show NAME'"
ok 'no model' show_refuses 2 "'show' takes one model" show
ok 'option of show for list' show_refuses 2 "'list' knows only --json" list --quant q4_0
ok 'help has an example' says 'example: offsim model show' "$OFFSIM" model --help
ok 'a full disk is noticed' disk_full
finish
