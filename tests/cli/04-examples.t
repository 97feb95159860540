#!/bin/sh
# Every example in the program's help does what it says, from the top of the tree and with files of the kind that it names.
. tests/cli/tap.sh

data=$PWD/tests/data
mkdir "$tmp/bin" "$tmp/here"
ln -s "$OFFSIM" "$tmp/bin/offsim"
ln -s "$PWD/scenarios" "$tmp/here/scenarios"
PATH=$tmp/bin:$PATH
cd "$tmp/here" || exit 1
# Of others: a corpus, what benchmarks printed, traces.
cat >corpus.csv <<'EOF'
id,group,engine,when,model,quant,gpus,link,cpu,sockets,dram,dram_gbps,dram_gbps_kind,ram_gib,disk,threads,flags,kv_dtype,batch,prompt_len,gen_len,depth,metric,value,tier,unknown
a,alpha,llama.cpp,2025-01,qwen2.5-3b,q4_0,rtx-3090,,epyc-9355,1,ddr5-6400x12,,,64,,,-ngl 99,,1,512,16,0,decode_tok_s,240,A,
EOF
cp "$data/bench/llama-2025.jsonl" bench.jsonl
cp "$data/bench/nvbandwidth.json" .
cp "$data/trace/mooncake.jsonl" conversation_trace.jsonl
cp "$data/trace/azure-2023.csv" AzureLLMInferenceTrace_code.csv

# Lines that are continued are joined.
examples() {
	"$@" --help | sed -n '/^example: /,$ { s/^example: //; s/^ *//; p; }' | sed -e ':a' -e '/\\$/ { N; s/\\\n//; ba' -e '}'
}
runs() { # what it prints, and that it is of no surprise: notes alone on standard error
	sh -c "$1" 2>stderr && ! grep -v "^offsim: \(note: \|'.*' looks like \)" stderr
}

for command in run predict place explain sweep validate timeline plot hw model trace flows 'trace gen' 'trace import' 'trace info' \
	'trace convert' 'calibrate --from x'; do
	# shellcheck disable=SC2086
	examples "$OFFSIM" $command >"$tmp/examples"
	ok "$command has examples" test -s "$tmp/examples"
	while read -r line; do
		case $line in
		*jq*) command -v jq >/dev/null || continue ;;
		*plot*) command -v gnuplot >/dev/null || continue ;;
		esac
		ok "$(printf '%s' "$line" | tr -d '\\')" runs "$line"
	done <"$tmp/examples"
done
cd /
finish
