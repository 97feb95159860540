#!/bin/sh
# offsim run and place: what they print, what they exit with, what they store.
. tests/cli/tap.sh

cat >"$tmp/s.yaml" <<'EOF'
model: llama-3.2-1b
quant: q8_0
machine: desktop-rtx4090-ddr5
engine: ideal
workload: {batch: 2, prompt: 64, generate: 16}
sweep: {flags.gpu-layers: [0, 16]}
EOF

run() { "$OFFSIM" run "$tmp/s.yaml" "$@"; }
place() { "$OFFSIM" place "$tmp/s.yaml" "$@"; }
has() { # TEXT COMMAND...: its standard output has the text
	tap_text=$1
	shift
	"$@" >"$tmp/out" 2>"$tmp/err"
	grep -qF -e "$tap_text" "$tmp/out" || { cat "$tmp/out" "$tmp/err"; return 1; }
}
tells() { # TEXT COMMAND...: its standard error has the text
	tap_text=$1
	shift
	"$@" >"$tmp/out" 2>"$tmp/err"
	grep -qF -e "$tap_text" "$tmp/err" || { cat "$tmp/err"; return 1; }
}
query() { sqlite3 "$tmp/r.db" "$1"; }
json_keys() {
	run --no-db --json >"$tmp/out" 2>/dev/null || return 1
	for key in fits decode_tok_s prefill_tok_s e2e_tok_s ttft_s tpot_s total_s upper_bound_tok_s interval80 memory \
		resources critical events wall_s key version; do
		grep -q "^  \"$key\":" "$tmp/out" || { echo "no $key"; return 1; }
	done
	[ "$(grep -c '^  "' "$tmp/out")" -eq 16 ]
}
largest() { # sixteen GPUs joined to each other, each with a link of its own, and eight drives
	{
		printf 'model: llama-3.1-70b\nquant: f16\nengine: deepspeed-tp\nflags: {tensor-parallel: 16}\nworkload: {batch: 1, prompt: 64, generate: 2}\n'
		printf 'machine:\n  ram: {capacity: 1TiB, bandwidth: 238.5GB/s}\n  nvlink: nvlink-4\n'
		for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do echo "  gpu$i: h100-sxm-80gb"; done
		for i in 0 1 2 3 4 5 6 7; do echo "  nvme$i: {capacity: 2TB, read: 3GB/s, write: 1GB/s}"; done
	} >"$tmp/largest.yaml"
	"$OFFSIM" run "$tmp/largest.yaml" --no-db >"$tmp/out" && grep -q '^  gpu15.compute ' "$tmp/out" && grep -q '^  nvme7 ' "$tmp/out"
}
json_alone() { run --no-db --json 2>/dev/null | head -c 1 | grep -q '{' && run --no-db --json 2>/dev/null | tail -n 1 | grep -qx '}'; }
nulls() {
	"$OFFSIM" run tests/golden/no-fit.yaml --json --no-db >"$tmp/out"
	[ $? -eq 3 ] && grep -q '"fits": false' "$tmp/out" && [ "$(grep -c '_s": null' "$tmp/out")" -eq 7 ]
}
replaced() {
	rm -f "$tmp/r.db"
	run --db "$tmp/r.db" >/dev/null 2>&1 && run --db "$tmp/r.db" --exact >/dev/null 2>&1 || return 1
	[ "$(query 'select count(*) from run')" = 1 ] && [ "$(query 'select count(*) from run_time')" = 1 ]
}
set_is_stored() {
	run --db "$tmp/r.db" --set flags.gpu-layers=3 >/dev/null 2>&1 || return 1
	[ "$(query "select number from run_param where name = 'flags.gpu-layers'")" = 3.0 ]
}
reads_one_line() {
	"$OFFSIM" help keys 2>"$tmp/err" | head -n 1 >/dev/null
	[ ! -s "$tmp/err" ] || { cat "$tmp/err"; return 1; }
}

misfit_is_stored() {
	"$OFFSIM" run tests/golden/no-fit.yaml --db "$tmp/r.db" >/dev/null
	[ "$(query 'select count(*) from run where fits = 0 and decode_tok_s is null')" = 1 ]
}

ok 'a run exits 0' run --no-db
paces() { # of the run and of each of its phases, where it has two
	"$OFFSIM" run "$tmp/s.yaml" --no-db 2>/dev/null | awk '$NF == "decode" { on = 1 } on && /%$/ { prefill += $(NF - 1); decode += $NF }
		END { ok = on && prefill > 99.5 && prefill < 100.5 && decode > 99.5 && decode < 100.5; if (!ok) print prefill, decode; exit !ok }' &&
		"$OFFSIM" explain "$tmp/s.yaml" --set workload.prompt=0 2>/dev/null | grep -q 'sets pace$' &&
		"$OFFSIM" explain "$tmp/s.yaml" --set workload.prompt=0 --json 2>/dev/null | grep -q '"prefill_share": null'
}
ok 'what sets the pace of each phase' paces
ok 'a run says why' has 'why:' run --no-db
ok 'a run says what would change it' has 'change:' run --no-db
ok 'a sweep is run at its base point, and that is said' tells 'base point' run --no-db
ok 'every JSON key of the contract, no other' json_keys
ok 'JSON stands alone on standard output' json_alone
ok 'what does not fit exits 3, with nulls' nulls
ok 'place exits 0 when it fits' place
ok 'place exits 3 when it does not' fails 3 "$OFFSIM" place tests/golden/no-fit.yaml
ok 'place says what would fit' has 'flags.gpu-layers=' "$OFFSIM" place tests/golden/no-fit.yaml
ok 'place --json' has '"fits": true' place --json
ok 'results.db is the default, in the current folder' sh -c "cd '$tmp' && '$OFFSIM' run s.yaml >/dev/null 2>&1 && test -s results.db"
ok '--seed is the key seed' has '"seed' sh -c "cd '$tmp' && '$OFFSIM' run s.yaml --seed 4 --no-db --json 2>/dev/null | sed 's/\"key\"/\"seed/'"
ok 'a full disk is said' fails 1 sh -c "'$OFFSIM' run '$tmp/s.yaml' --no-db >/dev/full"
ok 'who reads no further is not told' reads_one_line
if command -v sqlite3 >/dev/null; then
	ok 'the same scenario replaces its run' replaced
	ok 'what was set is a row beside the run' set_is_stored
	ok 'what does not fit is stored, with nulls' misfit_is_stored
fi
ok 'flags without influence are said' tells 'without influence on time or memory: host, jinja' \
	run --no-db --set engine=llama.cpp --set 'flags=-ngl 3 --host 0.0.0.0 --jinja'
ok 'the largest machine runs' largest
for command in run place sweep hw model flows plot; do
	ok "$command --help has an example" has 'example:' "$OFFSIM" "$command" --help
done
ok 'help keys has the flags of every engine' has 'flags.gpu-layers' "$OFFSIM" help keys
ok 'help keys has the keys of machines' has 'gpu0' "$OFFSIM" help keys
key_names() { # WORD...: the keys that help shows for these
	"$OFFSIM" help keys "$@" | sed -n 's/^  \([a-z][^ ]*\) .*/\1/p' | sort -u | tr '\n' ' '
}
key_words() { # a part of a name, another name, a word of the text, an engine or a part of the keys as a whole
	[ "$(key_names workload. depth)" = 'workload.depth ' ] || { key_names workload. depth; return 1; }
	[ "$(key_names --n-gpu-layers)" = 'flags.ngl ' ] && [ "$(key_names vllm KV-CACHE)" = 'flags.kv-cache-dtype ' ] || return 1
	[ "$(key_names scenario experts)" = 'routing routing.correlation routing.locality routing.trace ' ] || { key_names scenario experts; return 1; }
	[ "$(key_names results prompt)" = 'prefill_tok_s ' ] || { key_names results prompt; return 1; }
	key_names machine | grep -q 'machine.cpu0' && ! key_names machine | grep -q 'flags\|workload\|ttft'
}
ok 'help keys takes words' key_words
ok 'the nearest word' tells "no key has 'workloda'; did you mean 'workload'?" "$OFFSIM" help keys workloda
ok 'the nearest engine' tells "no key has 'vlm'; did you mean 'vllm'?" "$OFFSIM" help keys vlm
ok 'words that no key has together' tells 'no key has all of these words' "$OFFSIM" help keys kv zipf
ok 'which is bad usage' fails 2 "$OFFSIM" help keys hysteresis
ok 'help of one command' tells 'expected one command, not 2' "$OFFSIM" help run place
ok 'no command is a usage error' fails 2 "$OFFSIM"
finish
