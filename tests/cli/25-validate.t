#!/bin/sh
# offsim validate: the worst rows and why, the rule of thumb, what is above its bound; as text, Markdown and JSON.
. tests/cli/tap.sh

row() { # ID GROUP MEASURED [FLAGS [METRIC [TIER]]]: a small model on a card with room, or as FLAGS say
	echo "$1,$2,llama.cpp,2025-01,qwen2.5-3b,q4_0,rtx-3090,,epyc-9355,1,ddr5-6400x12,,,64,,,${4--ngl 99},,1,512,16,0,${5-decode_tok_s},$3,${6-A},"
}

corpus() { # of the rows of standard input
	{
		echo id,group,engine,when,model,quant,gpus,link,cpu,sockets,dram,dram_gbps,dram_gbps_kind,ram_gib,disk,threads,flags,kv_dtype,batch,prompt_len,gen_len,depth,metric,value,tier,unknown
		cat
	} >"$tmp/corpus.csv"
}

validate() {
	"$OFFSIM" validate "$tmp/corpus.csv" "$@" >"$tmp/out" 2>"$tmp/err"
}

refuses() { # STATUS TEXT ARGUMENT...
	status=$1
	text=$2
	shift 2
	fails "$status" validate "$@" && grep -qF -e "$text" "$tmp/err" || { cat "$tmp/err"; return 1; }
}

links() { # a link that is not read is assumed, and told; one that is is not
	{
		row read alpha 240 | sed 's/,rtx-3090,,/,rtx-3090,pcie-4x8,/'
		row misread alpha 240 | sed 's/,rtx-3090,,/,rtx-3090,PCIe 4.0 x8,/'
	} | corpus
	validate --json && [ "$(grep -o 'native link' "$tmp/out" | wc -l)" -eq 1 ] || { cat "$tmp/out" "$tmp/err"; return 1; }
}
ok 'a link that is not read' links

five() { # on the card about 260 tokens a second, on the CPU about 100
	{
		row near alpha 240
		row low alpha 2400
		row cpu beta 50 '-ngl 0'
		row high beta 13
		row unscored beta 0.1 '-ngl 99' decode_tok_s C
	} | corpus
}

worst() { # by how many times off, either way; rows of tier C are not among them
	five && validate --worst 3 || return 1
	[ "$(awk 'NR > 1 && NR < 5 { printf "%s ", $1 }' "$tmp/out")" = 'high low cpu ' ] || { cat "$tmp/out"; return 1; }
	grep -q '^low .* Above the bound. Assumed: native link$' "$tmp/out" && grep -q '^decode ' "$tmp/out" && ! grep -q '^near' "$tmp/out"
}

reasons() { # a row's own comes before its group's
	five
	printf 'row,reason\nbeta,"the owner, twice"\nhigh,it was hot\n' >"$tmp/why.csv"
	validate --worst 3 --reasons "$tmp/why.csv" && grep -q '^high .*  it was hot\. Assumed: native link$' "$tmp/out" &&
		grep -q '^cpu .*  the owner, twice\. Assumed: native link$' "$tmp/out" && grep -q '^low .*  Above the bound. Assumed: native link$' "$tmp/out" ||
		{ cat "$tmp/out"; return 1; }
	printf 'row,reason\nhihg,it was hot\n' >"$tmp/why.csv"
	refuses 2 "why.csv:2:1: no row and no group is called 'hihg'" --worst 3 --reasons "$tmp/why.csv" || return 1
	printf 'row,reason\nhigh,it was hot\nhigh,it was cold\n' >"$tmp/why.csv"
	refuses 2 "why.csv:3:1: 'high' has a reason already" --worst 3 --reasons "$tmp/why.csv"
}

markdown() { # tables of the summary, the worst and the groups
	five && validate --worst 2 --markdown || return 1
	grep -q '^| decode | 4 | 2 |' "$tmp/out" && grep -q '^| high | beta | llama.cpp | qwen2.5-3b | decode | 13 |' "$tmp/out" &&
		grep -q '^| A | alpha | 2 |' "$tmp/out" && grep -q '^| B | beta | 2 |' "$tmp/out" || { cat "$tmp/out"; return 1; }
	{ row high '"a | b
c"' 13; } | corpus
	printf 'row,reason\nhigh,"one | other\nline"\n' >"$tmp/why.csv"
	validate --worst 2 --markdown --reasons "$tmp/why.csv" && grep -qF '| high | a \| b c | llama.cpp |' "$tmp/out" &&
		grep -qF '| one \| other line. Assumed: native link |' "$tmp/out" && grep -qF '| A | a \| b c | 1 |' "$tmp/out" || { cat "$tmp/out"; return 1; }
}

older() { # a card's link is no newer than the processor's lanes, and what a row says stands
	flags='-ngl 0 -ub 4096 -b 4096'
	for link in '' pcie-4x16 pcie-5x16 pcie-?x16 pcie-?x8 pcie-4x8; do
		row "of${link:-none}" alpha 240 "$flags" prefill_tok_s | sed "s/,rtx-3090,,epyc-9355,/,rtx-5090,$link,epyc-7763,/"
	done | corpus
	validate --json
	# shellcheck disable=SC2046
	set -- $(sed -n 's/^ *"predicted": \([0-9.]*\).*/\1/p' "$tmp/out")
	[ $# -eq 6 ] && [ "$1" = "$2" ] && [ "$1" = "$4" ] && [ "$5" = "$6" ] && [ "$1" != "$3" ] && [ "$1" != "$5" ] || { cat "$tmp/out" "$tmp/err"; return 1; }
}

numactl() { # pages that numactl interleaved stay so beside the program's own --numa, which is not given twice
	flags='-ngl 0 -t 64'
	{
		row front alpha 240 "$flags --numa numactl"
		row alone alpha 240 "$flags; numactl --interleave=all"
		row both alpha 240 "$flags --numa distribute; numactl --interleave=all"
		row twice alpha 240 "$flags --numa numactl; numactl --interleave=all"
		row spread alpha 240 "$flags --numa distribute"
	} | sed 's/epyc-9355,1,/epyc-9355,2,/' | corpus
	validate --json && sed -n 's/^ *"predicted": //p' "$tmp/out" >"$tmp/all" && [ "$(wc -l <"$tmp/all")" -eq 5 ] &&
		[ "$(head -4 "$tmp/all" | sort -u | wc -l)" -eq 1 ] && [ "$(sort -u "$tmp/all" | wc -l)" -eq 2 ] || { cat "$tmp/out" "$tmp/err"; return 1; }
}

above() { # the flag in JSON, and only where it is
	five && validate --json || return 1
	sed -n '/"id": "low"/,/}/p' "$tmp/out" | grep -q '"above_bound": true' &&
		[ "$(grep -c '"above_bound": true' "$tmp/out")" -eq 1 ] && [ "$(grep -c '"upper_bound_tok_s": [0-9]' "$tmp/out")" -eq 5 ]
}

# Two groups, each measured at 0.4 of what the rule says: the factor is 0.4 and fits all.
thumb() {
	{ row a alpha 100; row b beta 100 '-ngl 0'; } | corpus
	validate --json || return 1
	# shellcheck disable=SC2046 # two numbers
	set -- $(sed -n 's/.*"rule_of_thumb_tok_s": \([0-9.]*\).*/\1/p' "$tmp/out")
	{ row a alpha "$(awk "BEGIN { print 0.4 * $1 }")"; row b beta "$(awk "BEGIN { print 0.4 * $2 }")" '-ngl 0'; } | corpus
	validate --json || return 1
	sed -n '/"rule_of_thumb"/,$p' "$tmp/out" | awk -F'[:,]' '/"n"/ { n = $2 } /"bias"/ { bias = $2 } /"factor"/ { f = $2 } /p90/ { p90 = $2 }
		END { ok = n == 2 && bias > 1.4999 && bias < 1.5001 && f > 0.399 && f < 0.401 && p90 < 0.002; if (!ok) print n, bias, f, p90; exit !ok }'
}

engines() { # of several engines
	five && validate --engine vllm,llama.cpp && grep -q '^4 of 4 rows' "$tmp/out" &&
		refuses 2 "no row of tiers D, but of tier A, such as 'near': --tier A" --tier D &&
		refuses 2 "no row of tiers AB and engine lama.cpp; did you mean 'llama.cpp'?" --engine lama.cpp
}

# Constants fitted without a source. Rows are of a CPU that reads: the rate is as cpu.read, and measured at 0.8 of what it says.
fitted() { # KEY FROM TO
	printf 'llama.cpp:\n  %s: {from: %s, to: %s}\n' "$@" >"$tmp/fitted.yaml"
}

cpu_rows() { # FACTOR SOURCES...: a row each of a group each, measured at FACTOR of what is predicted
	factor=$1
	shift
	for source; do
		n=$((n + 1))
		echo "$n,g$n,llama.cpp,2025-01,qwen2.5-3b,q8_0,none,,epyc-9355,1,ddr5-6400x$((4 + n)),,,64,,,-ngl 0,,1,512,16,0,decode_tok_s,$(awk "BEGIN { print $factor * \
			$(sed -n "/\"id\": \"$n\"/,/}/s/.*\"predicted\": \([0-9.]*\),/\1/p" "$tmp/out" | grep . || echo 1) }"),A,,,$source"
	done
}

cpu_corpus() {
	n=0
	: >"$tmp/out"
	for pass in 1 2; do # the first to know what is predicted
		{
			echo id,group,engine,when,model,quant,gpus,link,cpu,sockets,dram,dram_gbps,dram_gbps_kind,ram_gib,disk,threads,flags,kv_dtype,batch,prompt_len,gen_len,depth,metric,value,tier,unknown,notes,source
			n=0
			cpu_rows "$@"
		} >"$tmp/corpus.csv"
		[ $pass = 2 ] || validate --json
	done
}

left_out() { # three machines' owners agree, and the bounds pull a little: each is predicted by the others
	cpu_corpus 0.8 here there elsewhere && fitted cpu.read 30% 100% && validate --leave-one-out --fitted "$tmp/fitted.yaml" || return 1
	awk '/^decode/ { gsub("%", ""); ok = $2 == 3 && $3 > 24 && $3 < 26 && $4 < 7 && $5 < 9 && $5 > $4 } END { exit !ok }' "$tmp/out" &&
		grep -q '^3 sources left out in turn; 3 rows move' "$tmp/out" || { cat "$tmp/out"; return 1; }
}

# Groups of one source go together: nothing is left to fit on, and the constant lies in the middle of its bounds.
one_source() {
	cpu_corpus 0.8 here here && fitted cpu.read 25% 100% && validate --leave-one-out --fitted "$tmp/fitted.yaml" &&
		grep -q '^1 sources left out in turn' "$tmp/out" && grep -q '^llama.cpp *cpu.read .* 50.0% to 50.0%$' "$tmp/out" || { cat "$tmp/out"; return 1; }
}

nothing_to_fit() { # no rows at all, and one whose batch cannot be
	fitted cpu.read 30% 100%
	corpus </dev/null
	refuses 2 'has no row that is scored and can be predicted' --leave-one-out --fitted "$tmp/fitted.yaml" || return 1
	row batch alpha 240 | sed 's/,1,512,/,-1,512,/' | corpus
	refuses 2 'has no row that is scored and can be predicted' --leave-one-out --fitted "$tmp/fitted.yaml"
}

bad_constants() {
	cpu_corpus 1 here there
	fitted cpu.raed 30% 100% && validate --leave-one-out --fitted "$tmp/fitted.yaml" && grep -q "cpu.raed *no row has it; did you mean 'cpu.read'?" "$tmp/out" &&
		fitted cpu.read 100% 30% && refuses 2 'fitted.yaml:2:3: cpu.read: bounds from 100% to 30%' --leave-one-out --fitted "$tmp/fitted.yaml" &&
		fitted cpu.read 3GB/s 100% && refuses 2 'fitted.yaml:2:3: cpu.read:' --leave-one-out --fitted "$tmp/fitted.yaml" &&
		echo 'llama.cpp: {cpu.read: {from: 3%}}' >"$tmp/fitted.yaml" && refuses 2 "'cpu.read' needs bounds" --leave-one-out --fitted "$tmp/fitted.yaml" &&
		echo 'lama.cpp: {cpu.read: {from: 3%, to: 4%}}' >"$tmp/fitted.yaml" &&
		refuses 2 "fitted.yaml:1:1: no kernels are called 'lama.cpp'; did you mean 'llama.cpp'?" --leave-one-out --fitted "$tmp/fitted.yaml" &&
		echo 'llama.cpp: {cpu.read: {also: "ktransformers ik_lama.cpp", from: 3%, to: 4%}}' >"$tmp/fitted.yaml" &&
		refuses 2 "no kernels are called 'ik_lama.cpp'; did you mean 'ik_llama.cpp'?" --leave-one-out --fitted "$tmp/fitted.yaml"
}

# What is refused at once, and what makes a row an error.
bad_rows() {
	for value in 1e300 1e-300 nan -1 0; do
		row a alpha $value | corpus && refuses 2 "'$value' is no measured value" || return 1
	done
	row a alpha 1 '-ngl 99' decode_tok | corpus && refuses 2 "unknown metric 'decode_tok'; did you mean 'decode_tok_s'?" || return 1
	row a alpha 240 | sed 's/2025-01/2025-13/' | corpus && validate && grep -q "error: flag 'build' must be" "$tmp/out" || return 1
	row a alpha 240 | sed 's/,,1,512/,q9_0,1,512/' | corpus && validate && grep -q "error: .*'q9_0'" "$tmp/out" || { cat "$tmp/out"; return 1; }
}

bad_header() { # the nearest name, where it stands; also of columns that may be missing
	five && sed -i '1s/prompt_len/promt_len/' "$tmp/corpus.csv" &&
		refuses 2 "corpus.csv:1:128: unknown column 'promt_len'; did you mean 'prompt_len'?" || return 1
	five && sed -i '1s/$/,nots/; 2,$s/$/,/' "$tmp/corpus.csv" && refuses 2 "unknown column 'nots'; did you mean 'notes'?" || return 1
	five && sed -i '1s/$/,colour/; 2,$s/$/,red/' "$tmp/corpus.csv" && validate
}

# What a file says moves no cursor, whichever text of it is shown; JSON has every row.
controls() {
	bad=$(printf '\033[2Jx\302\233\377')
	{ row "a$bad" "g$bad" 240; row b beta 240 '-ngl 99' decode_tok_s "A$bad"; row c beta 1; row d beta 2; } |
		sed "s/^c,\(.*\)llama.cpp/c,\1vllm$bad/; s/^d,\(.*\)qwen2.5-3b/d,\1qwen$bad/" | corpus
	printf 'row,reason\na%s,hot%s\n' "$bad" "$bad" >"$tmp/why.csv"
	for how in '' '--worst 4' '--worst 4 --markdown' --json; do
		case $how in --worst*) set -- --reasons "$tmp/why.csv" ;; *) set -- ;; esac
		# shellcheck disable=SC2086
		validate $how "$@" && ! LC_ALL=C grep -q "$(printf '[\001-\010\013-\037\177\233\377]')" "$tmp/out" "$tmp/err" || { cat -v "$tmp/out" "$tmp/err"; return 1; }
	done
	[ "$(grep -c '"id": "' "$tmp/out")" -eq 4 ] || return 1
	printf '[{"model_type": "qwen2 %s", "model_n_params": 1, "n_prompt": 0, "n_gen": 1, "avg_ts": 9.5}]' '\u001b[2J' >"$tmp/bench.json"
	"$OFFSIM" validate "$tmp/bench.json" --machine cpu-epyc9654 >"$tmp/out" 2>&1
	grep -qF 'qwen2 ?[2J' "$tmp/out" && ! LC_ALL=C grep -q "$(printf '\033')" "$tmp/out" || { cat -v "$tmp/out"; return 1; }
}

twins() { # named, and both count
	five && row near beta 90 >>"$tmp/corpus.csv" && validate && grep -q '^5 of 5 rows' "$tmp/out" &&
		grep -qxF "offsim: note: $tmp/corpus.csv:7: the id 'near' is that of line 2 too; both rows count" "$tmp/err" &&
		[ "$(wc -l <"$tmp/err")" -eq 1 ] || { cat "$tmp/err"; return 1; }
	for _ in 1 2 3 4 5 6 7 8; do row near beta 90; done | corpus
	validate && grep -qxF 'offsim: note: and 2 rows more have the id of another' "$tmp/err"
}

ok 'bad rows' bad_rows
ok 'a misspelt header' bad_header
ok 'control characters' controls
ok 'two rows of one id' twins
ok 'an error is not negative' refuses 2 "--max-median is an error" --max-median -1
ok 'worst: by times off, either way' worst
ok 'reasons: of rows and of groups' reasons
ok 'markdown' markdown
ok 'above the bound is said' above
ok 'numactl beside --numa' numactl
ok 'a processor older than the card' older
ok 'the rule of thumb times one factor' thumb
ok 'several engines' engines
ok 'reasons without --worst' refuses 2 '--reasons are of the rows of --worst N' --reasons x.csv
ok 'JSON has all rows' refuses 2 '--json has all rows' --json --worst 3
ok 'a source left out is predicted by the others' left_out
ok 'groups of one source are left out together' one_source
ok 'constants that cannot be fitted' bad_constants
ok 'nothing to fit' nothing_to_fit
ok 'constants without --leave-one-out' refuses 2 '--fitted is of --leave-one-out' --fitted x.yaml

others() { # machines of other people: nearly all are known, and no metric is far off in the median
	"$OFFSIM" validate tests/data/reported.csv --max-median 30% >"$tmp/others" &&
		awk '/rows of the scored tiers ran/ { all = $3; ran = $1 } END { exit !(all > 400 && ran >= 0.95 * all) }' "$tmp/others"
}
if [ "${MODE:-release}" = release ]; then # some seconds, a minute elsewhere
	ok 'what others reported' others
fi
finish
