#!/bin/sh
# offsim model show of GGUF and safetensors files: what it finds, what it refuses, how long it takes, and whether
# npm's @huggingface/gguf finds the same in the same files.
. tests/cli/tap.sh

libs=$(pkg-config --libs gsl sqlite3 jansson libfyaml)
made=$tmp/made
mkdir "$made"
# The flags are those of the library, sanitizers included; the quotes among them are meant.
# shellcheck disable=SC2046,SC2086
$(cat "$BUILD/flags") -o "$tmp/make_gguf" tests/data/make_gguf.c "$BUILD/liboffsim.a" $libs -lm -lpthread &&
	"$tmp/make_gguf" "$made" || { echo 'Bail out! cannot make the files'; exit 1; }

says() { # TEXT COMMAND...: its output has the text
	text=$1
	shift
	"$@" >"$tmp/out" 2>&1
	grep -qF -e "$text" "$tmp/out" || { tail -n 20 "$tmp/out"; return 1; }
}

refuses() { # TEXT PATH: one line, status 2
	fails 2 "$OFFSIM" model show "$2" >"$tmp/out" 2>&1 || { cat "$tmp/out"; return 1; }
	[ "$(wc -l <"$tmp/out")" -eq 1 ] && grep -qF -e "offsim: $2: $1" "$tmp/out" || { cat "$tmp/out"; return 1; }
}

dump() { # FILE: as npm's reader would print it, whatever the order
	echo "file $1" && "$tmp/make_gguf" dump "$1"
}

# cpu_ms COMMAND...: the least of ten times that it took the processor, which is not other programs' business.
cpu_ms() {
	perl -e 'my $best;
		for (1 .. 10) {
			my $from = (times)[2] + (times)[3];
			system("@ARGV >/dev/null 2>&1") == 0 or die "@ARGV: $?\n";
			my $took = (times)[2] + (times)[3] - $from;
			$best = $took if !defined $best || $took < $best;
		}
		printf "%.0f\n", 1000 * $best' -- "$@"
}

faster() { # MS COMMAND...
	limit=$1
	shift
	took=$(cpu_ms "$@") || return 1
	echo "$took ms"
	[ "$took" -lt "$limit" ]
}

# ---- GGUF ----
show="$OFFSIM model show"
ok 'GGUF: types as in the file' says '1151064 bytes' $show "$made/llama.gguf"
ok 'GGUF: version 2' says '1151064 bytes' $show "$made/llama-v2.gguf"
ok 'GGUF: in parts' says '1151064 bytes' $show "$made/split-00003-of-00003.gguf"
ok 'GGUF: quant of the file' says 'qwen3moe, q5_k_m' $show "$made/qwen3moe.gguf"
ok 'GGUF: experts' says 'experts       2 of 8 a token in 3 of 3 layers' $show "$made/qwen3moe.gguf"
ok 'GGUF: windows' says 'window        128 tokens in 2 of 4 layers' $show "$made/gemma2.gguf"
ok 'GGUF: states' says 'state         536 KiB a sequence' $show "$made/qwen3next.gguf"
ok 'GGUF: size of the file' says "\"file_bytes\": $(wc -c <"$made/llama.gguf")" $show "$made/llama.gguf" --json
ok 'GGUF: a vocabulary' refuses 'holds no tensors: a vocabulary' "$made/values.gguf"
ok 'folder: a GGUF file' says "source        $made/deepseek2.gguf" $show "$made"

printf 'GGUF\0\0\0\003' >"$tmp/big.gguf"
ok 'GGUF: big-endian' refuses 'is a big-endian file, which is not read here at byte 4' "$tmp/big.gguf"
head -c 1000 "$made/llama.gguf" >"$tmp/cut.gguf"
ok 'GGUF: cut in its header' refuses "'tokenizer.ggml.tokens' has 300 elements, more than" "$tmp/cut.gguf"
head -c 900000 "$made/llama.gguf" >"$tmp/cut.gguf"
ok 'GGUF: cut in its data' refuses "tensor 'blk." "$tmp/cut.gguf"
ok 'GGUF: cut in its data: where' says 'the file has 900000' $show "$tmp/cut.gguf"
head -c 4096 /dev/zero >"$tmp/zero.gguf"
ok 'GGUF: nothing of it' refuses 'is no GGUF file' "$tmp/zero.gguf"
: >"$tmp/empty.gguf"
ok 'GGUF: empty' refuses 'ends in the middle of the magic number at byte 0' "$tmp/empty.gguf"
ok 'a folder without a model' fails 2 $show "$tmp/"

# ---- safetensors ----
mkdir "$tmp/st"
perl -e '
	# 720 GB: 94 layers of 320 experts
	print "{\"metadata\": {\"total_size\": 773130312704}, \"weight_map\": {\n";
	for my $l (0 .. 93) {
		my $file = sprintf "\"model-%05d-of-00118.safetensors\",\n", $l + 1;
		for my $e (0 .. 319) {
			print "    \"model.layers.$l.mlp.experts.$e.$_.weight\": $file" for qw(gate_proj up_proj down_proj);
		}
		print "    \"model.layers.$l.$_.weight\": $file" for qw(input_layernorm post_attention_layernorm mlp.gate
			self_attn.q_proj self_attn.k_proj self_attn.v_proj self_attn.o_proj self_attn.q_norm self_attn.k_norm);
	}
	print "    \"lm_head.weight\": \"model-00118-of-00118.safetensors\"}}\n"' >"$tmp/st/model.safetensors.index.json"
ok 'index without config.json' refuses 'has no config.json beside it' "$tmp/st/model.safetensors.index.json"
cat >"$tmp/st/config.json" <<'END'
{"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": 4096, "num_hidden_layers": 94,
 "num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 12288,
 "num_experts": 320, "num_experts_per_tok": 8, "moe_intermediate_size": 1024, "vocab_size": 151936,
 "torch_dtype": "bfloat16"}
END
ok 'index: sizes of config.json' says '(773130312704 bytes)' $show "$tmp/st"
ok 'folder: an index' says "source        $tmp/st/model.safetensors.index.json" $show "$tmp/st"
printf '\040\0\0\0\0\0\0\0{"a": {"dtype": 7' >"$tmp/x.safetensors"
cp "$tmp/st/config.json" "$tmp/config.json"
ok 'safetensors: cut' refuses 'has a header of 32 bytes, but ends at byte 25' "$tmp/x.safetensors"
printf '\020\0\0\0\0\0\0\0{"a": {"dtype":7}' >"$tmp/x.safetensors"
ok 'safetensors: where it is wrong' refuses 'needs a string at byte 23' "$tmp/x.safetensors"

# ---- speed ----
if [ "$MODE" = release ]; then
	ok "a file of $(($(wc -c <"$made/huge.gguf") / 1000000000)) GB, in 100 ms" faster 100 $show "$made/huge.gguf"
	ok 'an index of 720 GB, in 100 ms' faster 100 $show "$tmp/st" --json
fi

# Vocabularies of llama.cpp (models/ggml-vocab-*.gguf), where they are at hand: not part of the tree.
real=${OFFSIM_SHARED:-../shared}/models/gguf
if [ -d "$real" ]; then
	for file in "$real"/*.gguf; do
		ok "${file##*/}" refuses 'holds no tensors: a vocabulary' "$file"
	done
fi

# ---- npm ----
# Into the build folder, once; offline, or without node, there is nothing to compare with.
npm=$BUILD/npm
installed() {
	command -v node >/dev/null && command -v npm >/dev/null || return 1
	[ -d "$npm/node_modules/@huggingface/gguf" ] && return
	mkdir -p "$npm"
	timeout 120 npm install --prefix "$npm" --no-save --no-audit --no-fund --fetch-retries 1 --fetch-timeout 20000 \
		@huggingface/gguf@0.4.6 >"$tmp/npm.log" 2>&1
}

agrees() { # FILE...
	node tests/data/dump_gguf.mjs "$npm" "$@" >"$tmp/theirs" || return 1
	for file; do
		dump "$file" || return 1
	done >"$tmp/ours"
	[ "$(grep -c '^tensor\|^key' "$tmp/ours")" -gt 10 ] && diff "$tmp/ours" "$tmp/theirs"
}

if installed; then
	ok "npm's @huggingface/gguf finds the same" agrees "$made"/*.gguf
	if [ -d "$real" ]; then
		ok 'the same in vocabularies of llama.cpp' agrees "$real"/*.gguf
	fi
else
	echo "# skipped: comparison with npm's @huggingface/gguf: node or npm is not there, or the package not to be had"
fi
finish
