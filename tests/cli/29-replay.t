#!/bin/sh
# What a run wrote with --trace-out runs again as workload: {trace: FILE}, with the same result.
. tests/cli/tap.sh

scenario() { # WORKLOAD
	cat <<-EOF2
	model: qwen3-30b-a3b
	quant: q4_k_m
	machine: desktop-rtx4090-ddr5
	engine: llama.cpp
	flags: {ngl: 99, cpu-moe: yes}
	workload: {$1}
	EOF2
}
result() { # SCENARIO: everything but times and the key
	"$OFFSIM" run "$@" --no-db --json | grep -v '"wall_s"\|"key"'
}
replays() { # BATCH PROMPT GENERATE DEPTH
	scenario "batch: $1, prompt: $2, generate: $3, depth: $4" >"$tmp/a.yaml"
	scenario 'trace: a.otr' >"$tmp/b.yaml"
	rm -f "$tmp/a.otr"
	"$OFFSIM" run "$tmp/a.yaml" --no-db --trace-out "$tmp/a.otr" >/dev/null || return 1
	result "$tmp/a.yaml" >"$tmp/a.json" && result "$tmp/b.yaml" >"$tmp/b.json" && cmp "$tmp/a.json" "$tmp/b.json"
}
same_file_twice() {
	"$OFFSIM" run "$tmp/b.yaml" --no-db --trace-out "$tmp/b.otr" >/dev/null || return 1
	"$OFFSIM" run "$tmp/b.yaml" --no-db --trace-out "$tmp/c.otr" >/dev/null && cmp "$tmp/b.otr" "$tmp/c.otr"
}
says() { # TEXT COMMAND...
	want=$1
	shift
	fails 2 "$@" 2>"$tmp/err" >/dev/null && grep -qF -e "$want" "$tmp/err" || { cat "$tmp/err"; return 1; }
}

ok 'one sequence' replays 1 77 61 0
ok 'several, whose experts differ by chance' replays 3 77 61 100
ok 'prompts in several steps' replays 2 900 7 0
ok 'no prompt' replays 1 0 33 500
ok 'no generation' replays 1 600 0 0
replays 3 77 61 100 >/dev/null 2>&1
ok 'the replay writes the same file each time' same_file_twice
ok 'a model with fewer experts' says 'step 0 uses expert' "$OFFSIM" run "$tmp/b.yaml" --no-db --set model=mixtral-8x7b
ok 'a model of another kind' says 'uses the router of layer 0, of which model' "$OFFSIM" run "$tmp/b.yaml" --no-db --set model=llama-3.2-1b
ok 'both a trace and a batch' says 'a recorded workload has its own' "$OFFSIM" run "$tmp/b.yaml" --no-db --set workload.batch=2
for routing in '{trace: b.otr}' '{zipf: 0.8}' '{locality: 0.3}'; do
	ok "a recorded workload has its own routing: $routing" says 'the recorded workload has its own routing' \
		"$OFFSIM" run "$tmp/b.yaml" --no-db --set "routing=$routing"
done
ok 'no such file' says 'nope.otr' "$OFFSIM" run "$tmp/b.yaml" --no-db --set workload.trace="$tmp/nope.otr"
ok 'a folder that cannot be written' fails 1 "$OFFSIM" run "$tmp/a.yaml" --no-db --trace-out "$tmp/none/a.otr"
value() { # KEY COMMAND...: of the JSON it prints
	key=$1
	shift
	"$@" --no-db --json | sed -n "s/^  \"$key\": \([^,]*\),*\$/\1/p"
}
requests() { # a recorded list of requests takes what its requests take
	cat >"$tmp/r.csv" <<-EOF3
	TIMESTAMP,ContextTokens,GeneratedTokens
	2023-11-16 18:15:46.6805900,374,44
	2023-11-16 18:15:50.9951690,96,9
	2023-11-16 18:15:51.2225670,879,55
	EOF3
	"$OFFSIM" trace import "$tmp/r.csv" -o "$tmp/r.otr" >/dev/null 2>&1 || return 1
	scenario 'trace: r.otr' >"$tmp/r.yaml"
	sum=0
	for lengths in 374:44 96:9 879:55; do
		scenario "prompt: ${lengths%:*}, generate: ${lengths#*:}" >"$tmp/one.yaml"
		sum="$sum + $(value total_s "$OFFSIM" run "$tmp/one.yaml")"
	done
	awk "BEGIN { exit !(($(value total_s "$OFFSIM" run "$tmp/r.yaml")) / ($sum) - 1 < 1e-9 && 1 - ($(value total_s "$OFFSIM" run "$tmp/r.yaml")) / ($sum) < 1e-9) }"
}
ok 'requests run one after another' requests
ok 'more requests than there are' says 'the trace has 3 requests, not 4' "$OFFSIM" run "$tmp/r.yaml" --no-db --set workload.requests=4
ok 'requests without a trace' says "'requests' needs a 'trace'" "$OFFSIM" run "$tmp/a.yaml" --no-db --set workload.requests=4
ok 'requests of steps' says 'the trace holds steps, not requests' "$OFFSIM" run "$tmp/b.yaml" --no-db --set workload.requests=4
ok 'no steps of requests' fails 2 "$OFFSIM" run "$tmp/r.yaml" --no-db --trace-out "$tmp/x.otr"
beside_the_scenario() {
	mkdir -p "$tmp/models" &&
		cp tests/data/configs/ministral-3-3b.json "$tmp/models/config.json" &&
		printf 'model: models/config.json\nmachine: desktop-rtx4090-ddr5\nengine: ideal\n' >"$tmp/m.yaml" &&
		"$OFFSIM" run "$tmp/m.yaml" --no-db >/dev/null
}
ok 'paths are relative to the scenario' beside_the_scenario
ok 'where a trace cannot be written, nothing is simulated or stored' sh -c "! '$OFFSIM' run '$tmp/a.yaml' --db '$tmp/early.db' \\
	--trace-out '$tmp/no/x.otr' >'$tmp/out' 2>&1 && grep -q 'No such file' '$tmp/out' && [ ! -e '$tmp/early.db' ]"
finish
