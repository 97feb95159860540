#!/bin/sh
# offsim trace import: every format of tests/data/trace, sums that awk finds in the same files, and what is refused.
# The real files of the folder beside the tree, or of $OFFSIM_SHARED, are imported where they are.
. tests/cli/tap.sh

data=tests/data/trace
out=$tmp/out.otr

import() { "$OFFSIM" trace import "$@" -o "$out"; }

# gives KEY=VALUE... -- ARGUMENTS: the JSON of an import holds these.
gives() {
	wanted=
	while [ "$1" != -- ]; do
		wanted="$wanted $1"
		shift
	done
	shift
	import "$@" --json >"$tmp/json" 2>"$tmp/err" || { cat "$tmp/err"; return 1; }
	for pair in $wanted; do
		key=${pair%%=*}
		got=$(sed -n "s/^ \"$key\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p" "$tmp/json")
		[ "$got" = "${pair#*=}" ] || { echo "$key is '$got', not '${pair#*=}'"; cat "$tmp/json"; return 1; }
	done
}

refuses() { # TEXT ARGUMENTS...: status 2, one line, no file
	text=$1
	shift
	rm -f "$out"
	fails 2 import "$@" >"$tmp/log" 2>&1 || { cat "$tmp/log"; return 1; }
	[ "$(wc -l <"$tmp/log")" -eq 1 ] && grep -qF -e "$text" "$tmp/log" || { cat "$tmp/log"; return 1; }
	nothing_left
}

nothing_left() {
	left=$(find "$tmp" -name 'out.otr*')
	[ -z "$left" ] || { echo "left: $left"; return 1; }
}

# csv_sums FILE IN OUT: "records=…" of a CSV with a header, whose columns these are
csv_sums() {
	tr -d '\r' <"$1" | awk -F, -v i="$2" -v o="$3" 'NR > 1 && NF { n++; a += $i; b += $o }
		END { printf "records=%d input_tokens=%d output_tokens=%d\n", n, a, b }'
}

# json_sums FILE IN OUT: the same of JSON lines with these keys
json_sums() {
	awk -v i="\"$2\": *" -v o="\"$3\": *" '
		function value(key) { return match($0, key "[0-9]+") ? substr($0, RSTART, RLENGTH) : "" }
		function number(text) { sub(/.*: */, "", text); return text + 0 }
		NF { n++; a += number(value(i)); b += number(value(o)) }
		END { printf "records=%d input_tokens=%d output_tokens=%d\n", n, a, b }' "$1"
}

# route_sums FILE: of a route trace, its steps and uses
route_sums() {
	awk -F, '!/^#/ && $1 != "turn" { uses++; step[$2 ? $1 "," $3 : "p" $1]++ }
		END { for (s in step) { n++; prefill += s ~ /^p/ }
			printf "records=%d prefill_steps=%d decode_steps=%d accesses=%d\n", n, prefill, n - prefill, uses }' "$1"
}

check_csv() { # FORMAT FILE IN OUT
	# shellcheck disable=SC2046
	ok "$1: $(basename "$2"): as awk finds" gives "format=$1" kind=requests $(csv_sums "$2" "$3" "$4") -- "$2"
}
check_json() { # FORMAT FILE IN OUT
	# shellcheck disable=SC2046
	ok "$1: $(basename "$2"): as awk finds" gives "format=$1" kind=requests $(json_sums "$2" "$3" "$4") -- "$2"
}
check_route() { # FILE
	ok "route-trace: $(basename "$1"): in order" same_order "$1"
	# shellcheck disable=SC2046
	ok "route-trace: $(basename "$1"): as awk finds" gives format=route-trace kind=steps $(route_sums "$1") -- "$1"
}

# The experts that a route trace uses, in its order, are those of the native one.
same_order() { # FILE: its layers never go back within a step
	import "$1" >/dev/null 2>&1 || return 1
	awk -F, '!/^#/ && $1 != "turn" { print $6 }' "$1" >"$tmp/want"
	"$OFFSIM" trace convert "$out" - | grep -o '"experts":\[[0-9,]*\]' | tr -cs '0-9' '\n' | grep . >"$tmp/got"
	cmp "$tmp/want" "$tmp/got" && [ -s "$tmp/got" ]
}

# ---- small files ----
check_csv azure $data/azure-2023.csv 2 3
check_csv azure $data/azure-2024.csv 2 3
check_csv burstgpt $data/burstgpt.csv 3 4
check_csv burstgpt $data/burstgpt-sessions.csv 5 6
check_csv sharegpt $data/sharegpt.csv 2 3
check_csv vidur $data/vidur.csv 1 2
check_json mooncake $data/mooncake.jsonl input_length output_length
check_json qwen-bailian $data/qwen-bailian.jsonl input_length output_length
check_json sharegpt $data/sharegpt.jsonl input_toks output_toks
check_json vllm-requests $data/vllm-requests.jsonl input_toks output_toks
check_route $data/route.csv
ok 'mooncake: AIPerf' gives format=mooncake records=3 block_tokens=512 -- $data/aiperf-mooncake.jsonl
ok 'aiperf-sessions' gives format=aiperf-sessions records=3 block_tokens=64 input_tokens=258 -- $data/aiperf-sessions.jsonl
ok 'sharegpt: conversations' gives format=sharegpt records=3 input_tokens=17 output_tokens=13 -- $data/sharegpt.json
ok 'moe-csv' gives format=moe-csv prefill_steps=2 decode_steps=3 layers=2 accesses=24 -- $data/moe.csv
ok 'llamacpp-moe-cache' gives format=llamacpp-moe-cache prefill_steps=1 decode_steps=3 accesses=15 -- $data/moe-cache.txt
ok 'vllm-routing' gives format=vllm-routing records=4 accesses=28 -- $data/vllm-routing.jsonl
ok 'vllm-routing: no warm-up' gives format=vllm-routing records=2 accesses=12 -- $data/vllm-routing.jsonl --drop-warmup
ok 'sglang-experts: per token' gives format=sglang-experts prefill_steps=1 decode_steps=1 accesses=20 -- $data/sglang-per-token.json
ok 'sglang-experts: per pass' gives format=sglang-experts records=2 accesses=6 -- $data/sglang-per-pass.json

# ---- logs of vLLM in the shapes that were seen: rows of warm-up, of all rows ----
routing_log() { # WARM ALL BATCH
	awk -v warm="$1" -v all="$2" -v batch="$3" 'BEGIN {
		print "{\"type\":\"meta\",\"model_id\":\"m\",\"layers_logged\":[0],\"top_k\":2}"
		for (i = 0; i < all; i++) {
			t = i < warm ? i % batch : (i - warm) % 40
			a = i < warm ? 3 : (7 * i + t) % 30
			b = i < warm ? 12 : 30 + (11 * i) % 30
			printf "{\"type\":\"route\",\"req_id\":\"r\",\"token_idx\":%d,\"layer\":0,\"topk_ids\":[%d,%d]}\n", t, a, b
		}
	}'
}
warmup() { # WARM ALL BATCH
	routing_log "$@" >"$tmp/log.jsonl"
	gives "accesses=$((2 * ($2 - $1)))" -- "$tmp/log.jsonl" --drop-warmup && grep -q "rows of warm-up left out: $1\\b" "$tmp/json" &&
		gives "accesses=$((2 * $2))" -- "$tmp/log.jsonl" && grep -q "probably warm-up (--drop-warmup leaves them out): $1\\b" "$tmp/json"
}
ok 'warm-up: 2048 of 6519' warmup 2048 6519 2048
ok 'warm-up: 16384 of 18818' warmup 16384 18818 16384
ok 'warm-up: 16640 of 21024' warmup 16640 21024 16384
no_warmup() {
	routing_log 0 200 1 >"$tmp/log.jsonl"
	gives accesses=400 -- "$tmp/log.jsonl" --drop-warmup && ! grep -q warm-up "$tmp/json"
}
ok 'warm-up: none' no_warmup

# ---- what is said ----
says() { # TEXT ARGUMENTS...
	text=$1
	shift
	import "$@" >"$tmp/log" 2>&1 && grep -qF -e "$text" "$tmp/log" || { cat "$tmp/log"; return 1; }
}
quiet() { import --format azure $data/azure-2023.csv >/dev/null 2>"$tmp/err" && [ ! -s "$tmp/err" ]; }
ok 'a guess is said' says "looks like azure" $data/azure-2023.csv
ok 'a format that was given is not' quiet
ok 'source and licence' gives "licence=CC-BY" source=Azure -- $data/azure-2023.csv --licence CC-BY --source Azure
ok 'bytes of an expert' gives layers=5 -- $data/moe.csv --layers 5 --experts 16 --expert-bytes 3059712B
ok 'help' says 'offsim trace import' --help
ok 'help lists the formats' says 'vllm-routing' --help
same() {
	import $data/route.csv >/dev/null 2>&1 && cp "$out" "$tmp/first.otr" && import $data/route.csv >/dev/null 2>&1 &&
		cmp "$out" "$tmp/first.otr"
}
ok 'twice the same to the byte' same

# ---- what is refused ----
printf 'TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,48,1\n2023-11-16 18:17:03,x,1\n' >"$tmp/bad.csv"
ok 'a bad field' refuses "offsim: $tmp/bad.csv:3:21: ContextTokens 'x' is not a number" "$tmp/bad.csv"
ok 'a missing file' refuses "cannot open '$tmp/none'" "$tmp/none"
ok 'a folder' refuses "'$tmp' is a folder" "$tmp"
ok 'a device' refuses '/dev/zero:1:1: a line is longer than 65536 KiB' --format azure /dev/zero
printf '{"total_input_tokens": 1, "expert_popularity": [[1, 2]]}' >"$tmp/popularity.json"
ok 'popularity' refuses 'trace gen --popularity' "$tmp/popularity.json"
ok 'no known format' refuses 'looks like no known format' README.md
ok 'an unknown format' refuses "did you mean 'mooncake'?" --format moncake $data/mooncake.jsonl
ok 'another format than it is' refuses "$data/mooncake.jsonl:1:1: the header has no column 'TIMESTAMP'" --format azure $data/mooncake.jsonl
ok 'an option that would do nothing' refuses "have no warm-up" --drop-warmup $data/moe.csv
ok 'layers of requests' refuses "hold requests" --layers 4 $data/mooncake.jsonl
ok 'layers that the file says' refuses "says its layers and experts itself" --layers 4 $data/route.csv
ok 'fewer layers than there are' refuses "layer 1: they go from 0 to 0" --layers 1 $data/moe.csv
ok 'no layers' refuses "--layers wants a number" --layers 0 $data/moe.csv
ok 'bytes without a unit' refuses "--expert-bytes wants a size" --expert-bytes 12 $data/moe.csv
ok 'two files' refuses 'expected one FILE, not 2' $data/moe.csv $data/moe.csv
ok 'a misspelt option' refuses "did you mean 'licence'?" --license MIT $data/moe.csv
no_output() { fails 2 "$OFFSIM" trace import $data/moe.csv 2>"$tmp/err" && grep -q 'OUT.otr is missing' "$tmp/err"; }
ok 'no output' no_output
itself() {
	cp $data/moe.csv "$tmp/moe.csv"
	ln -s moe.csv "$tmp/link"
	fails 2 "$OFFSIM" trace import "$tmp/link" -o "$tmp/moe.csv" 2>"$tmp/err" && grep -q 'is the file that is read' "$tmp/err" &&
		cmp -s $data/moe.csv "$tmp/moe.csv"
}
ok 'not over itself' itself
pipe() { cat $data/moe.csv | fails 2 import --format moe-csv /dev/stdin 2>"$tmp/err" && grep -q 'is read twice' "$tmp/err"; }
ok 'a pipe' pipe
kept() { # a file that is there stays as it is when the import fails
	echo precious >"$out"
	fails 2 import "$tmp/bad.csv" 2>/dev/null && [ "$(cat "$out")" = precious ] && rm "$out" && nothing_left
}
ok 'what was there stays when it fails' kept
nowhere() { fails 1 "$OFFSIM" trace import $data/moe.csv -o "$tmp/no/such/folder.otr" 2>"$tmp/err" && [ "$(wc -l <"$tmp/err")" -eq 1 ]; }
ok 'a folder that is not there' nowhere
through_link() { # what a link leads to is written, and the link stays
	ln -s elsewhere.otr "$tmp/link.otr"
	echo old >"$tmp/elsewhere.otr"
	"$OFFSIM" trace import $data/moe.csv -o "$tmp/link.otr" >/dev/null 2>&1 && [ -L "$tmp/link.otr" ] &&
		"$OFFSIM" trace info "$tmp/elsewhere.otr" >/dev/null
}
ok 'through a link' through_link
every_cut() { # a file cut anywhere is taken, or refused with one line; never half
	size=$(wc -c <"$1")
	n=0
	while [ $n -lt "$size" ]; do
		head -c $n "$1" >"$tmp/cut"
		rm -f "$out"
		"$OFFSIM" trace import --format "$2" "$tmp/cut" -o "$out" >/dev/null 2>"$tmp/err"
		status=$?
		case $status in
		0) [ -s "$out" ] ;;
		2) [ "$(wc -l <"$tmp/err")" -eq 1 ] && nothing_left ;;
		*) false ;;
		esac || { echo "cut at $n: status $status"; cat "$tmp/err"; return 1; }
		n=$((n + 7))
	done
}
ok 'route-trace, cut' every_cut $data/route.csv route-trace
ok 'mooncake, cut' every_cut $data/mooncake.jsonl mooncake
ok 'sglang-experts, cut' every_cut $data/sglang-per-token.json sglang-experts

# ---- memory ----
bounded() {
	awk 'BEGIN { print "TIMESTAMP,ContextTokens,GeneratedTokens"
		for (i = 0; i < 1000000; i++) printf "2023-11-16 18:%02d:%02d.%07d,%d,%d\n", i / 60000 % 60, i / 1000 % 60, i % 1000, i % 8000, i % 300 }' >"$tmp/large.csv"
	(ulimit -v 60000 && import "$tmp/large.csv" >/dev/null 2>"$tmp/err") || { cat "$tmp/err"; return 1; }
}
case ${MODE:-release} in
asan | tsan) ok 'a large file in little memory # SKIP sanitizers need more' true ;;
*) ok 'a large file in little memory' bounded ;;
esac

# ---- real files ----
shared=${OFFSIM_SHARED:-../shared}/traces
if [ -d "$shared" ]; then
	for file in "$shared"/azure2023/*.csv; do check_csv azure "$file" 2 3; done
	check_csv burstgpt "$shared/burstgpt/sample_hf_preview.csv" 3 4
	for file in "$shared"/sharegpt/*.csv; do check_csv sharegpt "$file" 2 3; done
	check_csv vidur "$shared/vidur/arxiv_summarization_stats_llama2_tokenizer_filtered_v2.csv" 1 2
	check_json mooncake "$shared/mooncake/conversation_trace.jsonl" input_length output_length
	check_json sharegpt "$shared/sharegpt/llmservingsim_example_trace.jsonl" input_toks output_toks
	check_json vllm-requests "$shared/formats/vllm/llmservingsim_vllm_requests.jsonl" input_toks output_toks
	for file in "$shared"/moe/bigmoeonedge/*.route.csv; do check_route "$file"; done
	for file in "$shared"/moe/fiddler_popularity/*original*law.json; do
		ok 'popularity of Fiddler' refuses 'trace gen --popularity' "$file"
	done
else
	ok "real files # SKIP no $shared" true
fi
controls() { # what a file says of itself moves no cursor
	bad=$(printf 'x\033[2J\302\233y')
	"$OFFSIM" trace import tests/data/trace/azure-2023.csv --source "$bad" --licence "$bad" -o "$tmp/c.otr" >"$tmp/out" 2>&1 &&
		"$OFFSIM" trace info "$tmp/c.otr" >>"$tmp/out" || return 1
	sed 's/"name": "/"name": "\\u001b[2J/' tests/data/bench/nvbandwidth.json >"$tmp/nv.json"
	"$OFFSIM" calibrate --from "$tmp/nv.json" --machine server-h100 -o "$tmp/p.yaml" >>"$tmp/out" 2>&1
	[ "$(grep -c 'x?\[2J?y' "$tmp/out")" -eq 3 ] && grep -q '?\[2Jhost' "$tmp/out" &&
		! LC_ALL=C grep -q "$(printf '[\033\233]')" "$tmp/out" || { cat -v "$tmp/out"; return 1; }
}
ok 'control characters' controls
finish
