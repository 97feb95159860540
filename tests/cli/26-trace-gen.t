#!/bin/sh
# offsim trace gen and convert, and routing in scenarios: files that are the same or not there, and what is said.
. tests/cli/tap.sh

trace() { "$OFFSIM" trace "$@"; }
scenario=tests/golden/moe-batch.yaml
shape='--layers 61 --experts 256 --used 8 --expert-bytes 24MiB'
moe='--model qwen3-30b-a3b --prompt 40 --generate 30'

# says TEXT COMMAND...: the command fails with status 2 and this on standard error.
says() {
	want=$1
	shift
	"$@" >"$tmp/out" 2>"$tmp/said"
	status=$?
	[ "$status" -eq 2 ] && grep -qF -- "$want" "$tmp/said" || { echo "status $status"; cat "$tmp/said"; return 1; }
}

# ---- the same file again ----
# shellcheck disable=SC2086
{
	ok 'makes up the steps of a model' trace gen $moe --zipf 0.8 --locality 30% -o "$tmp/a.otr"
	ok 'and again' trace gen $moe --zipf 0.8 --locality 30% -o "$tmp/b.otr"
	ok 'of another seed' trace gen $moe --zipf 0.8 --locality 30% --seed 2 -o "$tmp/c.otr"
	ok 'the experts alone' trace gen $moe --experts-only -o "$tmp/experts.otr"
	ok 'layers of nothing but experts' trace gen $shape --prompt 3 --generate 9 -o "$tmp/layers.otr"
}
ok 'the same seed gives the same file' cmp "$tmp/a.otr" "$tmp/b.otr"
ok 'another seed another' fails 1 cmp "$tmp/a.otr" "$tmp/c.otr"
ok 'requests' trace gen --requests 500 --rate 2/s --arrivals gamma --cv 2.5 -o "$tmp/requests.otr"
ok 'requests as long as those' trace gen --requests 500 --lengths "$tmp/requests.otr" -o "$tmp/alike.otr"
ok 'popularity learned from a trace' trace gen --model qwen3-30b-a3b --prompt 9 --popularity "$tmp/a.otr" -o "$tmp/learned.otr"

there_and_back() {
	trace convert "$1" "$tmp/x.jsonl" && trace convert "$tmp/x.jsonl" "$tmp/x.otr" && cmp "$1" "$tmp/x.otr"
}
for file in a experts layers requests; do
	ok "$file: as lines of JSON and back, the same file" there_and_back "$tmp/$file.otr"
done
lines() { [ "$(trace convert "$1" - | wc -l)" -eq "$2" ]; }
ok 'a line for the head and for each step' lines "$tmp/layers.otr" 10
ok 'and for each request' lines "$tmp/requests.otr" 501
only_experts() { ! trace convert "$1" - | tail -n +2 | grep -q -e weights -e kv_; }
ok 'experts alone are experts alone' only_experts "$tmp/experts.otr"
ok 'layers of experts as well' only_experts "$tmp/layers.otr"

json() { trace gen --requests 3 --json -o "$tmp/j.otr" >"$tmp/j.json" && grep -q '"records": 3' "$tmp/j.json"; }
ok '--json says what was written' json

# ---- small, and read in little memory ----
size() { [ "$(wc -c <"$1")" -le "$2" ]; }
# shellcheck disable=SC2086
ok 'a long trace' trace gen $shape --prompt 0 --generate 20000 -o "$tmp/long.otr"
ok 'a step of 61 layers, 8 of 256, is at most 800 bytes' size "$tmp/long.otr" $((20000 * 800))
# shellcheck disable=SC2086
in_little() (
	ulimit -v 65536
	trace gen $shape --prompt 0 --generate 20000 -o "$tmp/long2.otr" &&
		trace gen $shape --prompt 1 --generate 1 --popularity "$tmp/long.otr" -o "$tmp/short.otr"
)
case ${MODE:-release} in
asan | tsan) ;; # their shadow memory alone is larger
*) ok 'is written and read within 64 MiB' in_little ;;
esac

# ---- what is refused ----
head -c 5000 "$tmp/a.otr" >"$tmp/cut.otr"
ok 'a file that is cut off' says "offsim: $tmp/cut.otr: is cut off: it has no end at byte 5000" trace convert "$tmp/cut.otr" -
ok 'a file that is no trace' says ': is no native trace: no magic number at byte 0' trace gen --requests 1 \
	--lengths README.md -o "$tmp/no.otr"
ok 'steps where requests are meant' says ': is a trace of steps, not of requests' trace gen --requests 1 --lengths "$tmp/a.otr" \
	-o "$tmp/no.otr"
ok 'requests where steps are meant' says ': is a trace of requests, not of steps' trace gen --model qwen3-30b-a3b \
	--popularity "$tmp/requests.otr" -o "$tmp/no.otr"
ok 'a popularity of another model' says ", which 'mixtral-8x7b' has not" trace gen --model mixtral-8x7b --popularity "$tmp/a.otr" -o "$tmp/no.otr"
ok 'options of requests for steps' says '--rate goes with --requests' trace gen --model qwen3-30b-a3b --rate 2/s -o "$tmp/no.otr"
ok 'options of steps for requests' says '--zipf goes with steps' trace gen --requests 3 --zipf 1 -o "$tmp/no.otr"
ok 'arrivals beyond what can be counted' says 'after more than 30 years' trace gen --requests 1000000000 --rate 0.01/s \
	-o "$tmp/no.otr"
ok 'half a shape' says 'go together' trace gen --layers 3 -o "$tmp/no.otr"
ok 'nothing to make' says 'of what?' trace gen -o "$tmp/no.otr"
ok 'two laws of experts' says 'drawn by --correlation or by --zipf, not by both' trace gen --model qwen3-30b-a3b --zipf 1 \
	--correlation 0.3 -o "$tmp/no.otr"
ok 'no output' says '-o OUT.otr is missing' trace gen --requests 3
ok 'a locality below what any two tokens share' says 'a locality of 0.01 is less than' trace gen --model qwen3-30b-a3b \
	--locality 1% -o "$tmp/no.otr"
ok 'a misspelt verb' says "did you mean 'convert'?" trace cnvert
ok 'two native traces' says 'must be named' trace convert "$tmp/a.otr" "$tmp/no.otr"
trace convert "$tmp/a.otr" "$tmp/x.jsonl"
sed '3s/"n_tokens":1/"n_tokens":-1/' "$tmp/x.jsonl" >"$tmp/bad.jsonl"
ok 'a line that is wrong' says "bad.jsonl:3: 'n_tokens' is not there, or no whole number" trace convert "$tmp/bad.jsonl" "$tmp/no.otr"
nothing_left() { ! ls "$tmp"/no.otr* "$tmp"/*.part; }
ok 'nothing is left of what was refused' nothing_left
ok 'a folder that is not there' fails 1 trace gen --requests 3 -o "$tmp/none/x.otr"
ok 'a device is not replaced' fails 1 trace gen --requests 3 -o /dev/null

# ---- killed: no file ----
killed() {
	# shellcheck disable=SC2086
	"$OFFSIM" trace gen $shape --prompt 0 --generate 10000000 -o "$tmp/killed.otr" &
	pid=$!
	sleep 0.7
	part=$(ls "$tmp"/killed.otr.*.part)
	kill "-$1" $pid
	wait $pid
	[ ! -e "$tmp/killed.otr" ]
}
gone() { killed "$1" && ! ls "$tmp"/killed.otr*; }
ok 'interrupted, there is no file, nor a part of one' gone INT
# Where the file system knows files without a name.
without_trace() { killed KILL && { [ -n "$part" ] || ! ls "$tmp"/killed.otr*; }; }
ok 'killed, there is none either' without_trace

# ---- scenarios ----
run() { "$OFFSIM" run $scenario --no-db --json "$@" >"$tmp/run.json"; }
result() { run "$@" && grep -o '"key": *"[0-9a-f]*"' "$tmp/run.json"; }
differs() { [ "$(result "$1" "$2")" != "$(result "$3" "$4")" ]; }
same() { [ "$(result "$1" "$2")" = "$(result "$3" "$4")" ] && result "$1" "$2"; }
ok 'routing by map' same --set 'routing={zipf: 0.8}' --set routing.zipf=0.80
ok 'is another run than uniform' differs --set routing.zipf=0.8 --set routing=uniform
ok 'zipf 0 is uniform' same --set routing.zipf=0 --set routing=uniform
ok 'the default is typical' same --set routing=typical --set seed=7
ok 'which is not uniform' differs --set routing=typical --set routing=uniform
ok 'nothing in common is uniform' same --set routing.correlation=0 --set routing=uniform
ok 'correlation makes another run' differs --set routing.correlation=0.3 --set routing.correlation=0.4
ok 'locality alone is beside what is typical' differs --set routing.locality=0.6 --set 'routing={zipf: 0, locality: 0.6}'
sed 's/^seed.*/routing: uniform/' $scenario >"$tmp/uniform.yaml"
of_uniform() { # with locality still uniform, with another law no longer
	scenario=$tmp/uniform.yaml
	same --set routing.locality=0.6 --set 'routing={zipf: 0, locality: 0.6}' &&
		same --set routing.correlation=0.3 --set 'routing={correlation: 0.3}'
}
ok 'keys beside uniform' of_uniform
scenario=tests/golden/moe-batch.yaml
scenario=tests/golden/8b-cpu.yaml
ok 'without experts all is one' same --set routing=typical --set routing=uniform
scenario=tests/golden/moe-batch.yaml
ok 'two laws' says 'by correlation or by zipf, not by both' "$OFFSIM" run $scenario --no-db --set 'routing={zipf: 1, correlation: 0.3}'
ok 'more in common than there is' says 'correlation' "$OFFSIM" run $scenario --no-db --set routing.correlation=0.95
ok 'locality makes another run' differs --set 'routing={zipf: 0.8}' --set 'routing={zipf: 0.8, locality: 0.5}'
ok 'an unknown routing' says "unknown routing 'zipf'" "$OFFSIM" run $scenario --no-db --set routing=zipf
ok 'a misspelt key' says "did you mean 'zipf'?" "$OFFSIM" run $scenario --no-db --set 'routing={zpf: 1}'
ok 'both laws' says 'not by both' "$OFFSIM" run $scenario --no-db --set "routing={zipf: 1, popularity: $tmp/a.otr}"
ok 'a popularity of the right model' run --set "routing.popularity=$tmp/a.otr"
cp "$tmp/a.otr" "$tmp/renamed.otr"
ok 'is known by its contents' same --set "routing.popularity=$tmp/a.otr" --set "routing.popularity=$tmp/renamed.otr"
sed 's/^seed.*/routing: uniform\nsweep: {routing.zipf: [0, 0.8, 1.2]}/' $scenario >"$tmp/sweep.yaml"
sweep() {
	"$OFFSIM" sweep "$tmp/sweep.yaml" --db "$tmp/s.db" &&
		[ "$(sqlite3 "$tmp/s.db" 'select count(distinct decode_tok_s) from run where decode_tok_s > 0')" -eq 3 ]
}
if command -v sqlite3 >/dev/null; then
	ok 'a sweep over it' sweep
fi
ok 'help keys lists it' sh -c '"$0" help keys | grep -q routing.locality' "$OFFSIM"

ok 'more bytes than can be counted' fails 2 "$OFFSIM" trace gen --layers 3 --experts 65536 --used 2 --expert-bytes 1e15B -o "$tmp/x.otr"
counts() { # of two experts among others: in every layer
	awk -v two="$1" 'BEGIN {
		printf "{\"expert_popularity\": ["
		for (l = 0; l < 48; l++) {
			printf "%s[%s", l ? "," : "", two
			for (e = 2; e < 128; e++) printf ",1"
			printf "]"
		}
		print "]}" }' >"$tmp/counts.json"
	timeout 20 "$OFFSIM" trace gen --model qwen3-30b-a3b --popularity "$tmp/counts.json" --generate 2 --prompt 0 -o "$tmp/x.otr" 2>&1 |
		grep -q "the popularity of the experts in layer 0 differs by more than can be counted"
}
ok 'popularity that no number holds' counts 1e308,1e308
ok 'popularity of next to nothing' counts 1e-300,1
finish
