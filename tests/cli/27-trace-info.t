#!/bin/sh
# offsim trace info: curves against a naive replay and against published ones, its JSON, and what it refuses.
. tests/cli/tap.sh
traces=../shared/traces
cut=tests/data/trace/qwen-cut.csv

"$OFFSIM" trace import --format route-trace "$cut" -o "$tmp/cut.otr" >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
printf '%s\n' '{"timestamp": 0, "input_length": 1400, "output_length": 20, "hash_ids": [1, 2, 3]}' \
	'{"timestamp": 1500, "input_length": 1900, "output_length": 7, "hash_ids": [1, 2, 4, 5]}' \
	'{"timestamp": 4000, "input_length": 1024, "output_length": 900, "hash_ids": [6, 2]}' \
	'{"timestamp": 4000, "input_length": 1400, "output_length": 1, "hash_ids": [1, 2, 3]}' >"$tmp/kv.jsonl"
"$OFFSIM" trace import --format mooncake "$tmp/kv.jsonl" -o "$tmp/kv.otr" >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }

info() { "$OFFSIM" trace info "$@"; }

# curve: "POLICY SCOPE SIZE LOOKUPS HITS HIT_RATE DECODE_HIT_RATE READ_BYTES" for each point of the JSON on standard input
curve() {
	awk -F '": |,$' '/"curve"/ { on = 1 } on && /^      "/ { gsub(/"/, "", $2); v[substr($1, index($1, "\"") + 1)] = $2 }
		on && /^    }/ { print v["policy"], v["scope"], v["size"], v["lookups"], v["hits"], v["hit_rate"],
			v["decode_hit_rate"], v["read_bytes"] }'
}

as_naive() { # the cut trace, at sizes below and above what one token needs
	for scope in global layer; do
		for policy in lru lfu belady; do
			for size in 20000000 50000000 100000000 250000000 1000000000; do
				info "$tmp/cut.otr" --policy $policy --scope $scope --cache ${size}B --json >"$tmp/json" || return 1
				curve <"$tmp/json" | awk '{ print $4, $5, $7, $8 }' >"$tmp/got"
				awk -f tests/cli/naive_cache.awk -v policy=$policy -v scope=$scope -v budget=$size "$cut" >"$tmp/want"
				paste -d ' ' "$tmp/got" "$tmp/want" | awk '{ ok = $1 == $5 && $2 == $6 && $4 == $9 &&
					($3 - $8 / $7) ^ 2 < 1e-20; if (!ok) { print } exit !ok }' || { echo $policy $scope $size; return 1; }
			done
		done
	done
}

many_at_once_as_one() {
	info "$tmp/cut.otr" --policy lru,lfu,static,belady,layer --scope global,layer --cache 30MiB,100MiB --json | curve >"$tmp/all"
	[ "$(wc -l <"$tmp/all")" -eq 18 ] || { cat "$tmp/all"; return 1; }
	while read -r policy scope size rest; do
		info "$tmp/cut.otr" --policy "$policy" --scope "$scope" --cache "${size}B" --json | curve >"$tmp/one"
		echo "$policy $scope $size $rest" | cmp - "$tmp/one" || return 1
	done <"$tmp/all"
}

blocks() { # by hand: 1 2 3 | 1 2 hit, 4 5 | 6 | 1 2 hit, 3 too unless the pool holds 4 blocks (it holds 6 2 1 and 4 then)
	info "$tmp/kv.otr" --cache 4blocks,5blocks,6blocks,1blocks --json >"$tmp/json" || return 1
	curve <"$tmp/json" | awk '{ print $3, $4, $5 }' >"$tmp/got"
	printf '4 12 4\n5 12 4\n6 12 5\n1 12 1\n' | cmp - "$tmp/got" || { cat "$tmp/got"; return 1; }
}

json_keys() {
	for f in cut kv; do
		info "$tmp/$f.otr" --json >"$tmp/json" || return 1
		for key in kind records steps layers unique bytes curve; do
			grep -q "^  \"$key\": " "$tmp/json" || { echo "$f: no $key"; return 1; }
		done
		grep -q '"curve": \[\]' "$tmp/json" || return 1
	done
	info "$tmp/cut.otr" --cache 1GiB --json >"$tmp/json" || return 1
	for key in policy scope size size_unit lookups hits hit_rate decode_hit_rate read_bytes; do
		grep -q "^      \"$key\": " "$tmp/json" || { echo "no $key"; return 1; }
	done
	grep -q '"kind": "steps"' "$tmp/json" && grep -q '"steps": 21' "$tmp/json" && grep -q '"layers": 4' "$tmp/json"
}

published_experts() { # MODEL ROUTE: every row of the oracle with this trace, within 0.1 point
	"$OFFSIM" trace import "$traces/$2" -o "$tmp/route.otr" >"$tmp/log" 2>&1 || { cat "$tmp/log"; return 1; }
	# "lru (measured on device)" has the hit rate of the whole run; all others that of decoding.
	awk -F, -v model="$1" -v route="$2" '$1 == model && $10 == route && $5 != "random" {
		split($7, size, " "); print $5, size[1], $8, $9 }' "$traces/moe_oracle.csv" >"$tmp/rows"
	sizes=$(awk '{ if (!($(NF - 2) in had)) { had[$(NF - 2)]; list = list sep $(NF - 2) "MiB"; sep = "," } } END { print list }' "$tmp/rows")
	info "$tmp/route.otr" --policy lru,lfu,belady,layer,layerlfu --cache "$sizes" --json | curve >"$tmp/points" || return 1
	awk 'NR == FNR { rate[$1, $3 / 1048576] = $6; decode[$1, $3 / 1048576] = $7; next }
		{ size = $(NF - 2); got = 100 * ($NF == "decode" ? decode[$1, size] : rate[$1, size]); off = got - $(NF - 1)
		  n++; if (off ^ 2 > 0.01 || !(($1, size) in rate)) { print "is " got ": " $0; bad = 1 } }
		END { print n " rows"; exit bad || n < 56 }' "$tmp/points" "$tmp/rows"
}

published_blocks() {
	"$OFFSIM" trace import --format mooncake "$traces/mooncake/conversation_trace.jsonl" -o "$tmp/mooncake.otr" \
		>"$tmp/log" 2>&1 || { cat "$tmp/log"; return 1; }
	awk -F, '$1 == "mooncake conversation" && $7 ~ /^computed/ { print $4 == "inf" ? 1000000000 : $4, $6 }' \
		"$traces/kv_oracle.csv" >"$tmp/rows"
	info "$tmp/mooncake.otr" --cache "$(awk '{ printf "%s%sblocks", (NR > 1 ? "," : ""), $1 }' "$tmp/rows")" --json | curve |
		paste -d ' ' - "$tmp/rows" | awk '{ n++; if ($3 != $9 || ($6 - $10) ^ 2 > 1e-6) { print; bad = 1 } }
			END { print n " rows"; exit bad || n < 8 }'
}

says() { # TEXT ARGUMENT...
	text=$1
	shift
	info "$@" >"$tmp/out" || return 1
	grep -qF -e "$text" "$tmp/out" || { cat "$tmp/out"; return 1; }
}

refuses() { # TEXT ARGUMENT...: bad usage or bad input, said on stderr alone
	text=$1
	shift
	fails 2 info "$@" >"$tmp/stdout" 2>"$tmp/stderr" || { cat "$tmp/stderr"; return 1; }
	[ ! -s "$tmp/stdout" ] && grep -qF -e "$text" "$tmp/stderr" || { cat "$tmp/stderr"; return 1; }
}

cut_short() { # no length of the file makes more than a message
	for n in 0 1 20 100 200 400 600; do
		head -c $n "$tmp/cut.otr" >"$tmp/short.otr"
		fails 2 info "$tmp/short.otr" --cache 1GiB >"$tmp/stdout" 2>"$tmp/stderr" || return 1
		[ ! -s "$tmp/stdout" ] && grep -q "^offsim: $tmp/short.otr: " "$tmp/stderr" || { cat "$tmp/stderr"; return 1; }
	done
}

interrupted() { # Ctrl-C within a replay that would take long: a message, status 1, nothing on stdout
	awk 'BEGIN { for (i = 0; i < 6000; i++) for (l = 0; l < 8; l++) { printf "%d,%d", i, l
		for (k = 0; k < 8; k++) printf ",%d", (i * 7 + l * 5 + k * k * 3 + i * i) % 64; print "" } }' >"$tmp/moe.csv"
	"$OFFSIM" trace import --format moe-csv "$tmp/moe.csv" --expert-bytes 3MiB -o "$tmp/moe.otr" >"$tmp/log" 2>&1 ||
		{ cat "$tmp/log"; return 1; }
	sizes=$(awk 'BEGIN { for (i = 1; i <= 2000; i++) printf "%s%dMiB", (i > 1 ? "," : ""), i }')
	"$OFFSIM" trace info "$tmp/moe.otr" --cache "$sizes" --policy lfu >"$tmp/stdout" 2>"$tmp/stderr" &
	sleep 0.5
	interrupt $!
	wait $!
	status=$?
	[ $status -eq 1 ] && [ ! -s "$tmp/stdout" ] && grep -q '^offsim: interrupted' "$tmp/stderr" ||
		{ echo "status $status"; cat "$tmp/stderr"; return 1; }
}

ok 'a help with an example, policies among it' says 'example: offsim trace info ' --help
ok 'hits, lookups and bytes as a naive replay has them' as_naive
ok 'many caches in one pass give what each gives alone' many_at_once_as_one
ok 'blocks: the leading run of hits, the last touched first' blocks
ok 'the keys of its JSON' json_keys
ok 'says what experts there are' says '4 layers of 128' "$tmp/cut.otr"
ok 'says what one token needs' says 'cycle       65.4 MiB' "$tmp/cut.otr"
ok 'says how long prompts are' says 'input       mean 1431 tokens' "$tmp/kv.otr"
ok 'refuses blocks for experts' refuses "the size of their cache is in bytes, such as 250MiB" "$tmp/cut.otr" --cache 10blocks
ok 'refuses bytes for requests' refuses "the size of their cache is in blocks, such as 10000blocks" "$tmp/kv.otr" --cache 1GiB
ok 'refuses a size without unit' refuses "--cache" "$tmp/cut.otr" --cache 100
ok 'refuses a size of nothing' refuses 'is no size for a cache' "$tmp/kv.otr" --cache 0blocks
ok 'refuses an empty size' refuses 'nothing between commas' "$tmp/cut.otr" --cache 1GiB,,2GiB
ok 'refuses an unknown policy' refuses "did you mean 'belady'?" "$tmp/cut.otr" --policy beladi --cache 1GiB
ok 'refuses an unknown scope' refuses "unknown cache scope 'laier'" "$tmp/cut.otr" --scope laier --cache 1GiB
ok 'refuses a policy without sizes' refuses '--policy goes with --cache' "$tmp/cut.otr" --policy lru
ok 'refuses a policy for blocks' refuses 'replayed with lru alone' "$tmp/kv.otr" --policy lfu --cache 10blocks
ok 'refuses a share a layer for blocks' refuses 'their cache is global' "$tmp/kv.otr" --scope layer --cache 10blocks
ok 'refuses a future without room' refuses 'belady needs 256 KiB for the future of 575 lookups; give --memory' \
	"$tmp/cut.otr" --policy belady --cache 1GiB --memory 1KiB
ok 'refuses a second file' refuses 'expected one FILE.otr, not 2' "$tmp/cut.otr" "$tmp/kv.otr"
ok 'refuses an unknown option' refuses "did you mean 'policy'?" "$tmp/cut.otr" --polici lru
ok 'refuses a file that is not there' refuses 'nowhere.otr' nowhere.otr
ok 'refuses what is cut short' cut_short
if [ "${MODE:-release}" != tsan ]; then # which hands a signal over in calls that it intercepts, and this loop has none
	ok 'answers Ctrl-C' interrupted
fi
if [ -r $traces/moe_oracle.csv ]; then
	ok 'published curves: Qwen3-30B-A3B' published_experts Qwen3-30B-A3B-Q4_K_M moe/bigmoeonedge/qwen.route.csv
	ok 'published curves: gemma-4-26B-A4B' published_experts gemma-4-26B-A4B-it-Q4_K_M moe/bigmoeonedge/gemma.route.csv
	ok 'published hit rates of blocks: Mooncake' published_blocks
else
	echo "# skipped: published curves, for there is no $traces"
fi
finish
