#!/bin/sh
# One graph, two executors: what this machine runs is what is simulated: every operation, in the same order on each unit, the
# same bytes. Not how fast: a machine that runs tests is not quiet.
. tests/cli/tap.sh
command -v sqlite3 >/dev/null || skip_all 'sqlite3 is not installed'

root=$PWD
db=$tmp/results.db

# scenario NAME MODEL QUANT ENGINE FLAGS WORKLOAD SET-OF-MACHINE
scenario() {
	cat >"$tmp/$1.yaml" <<-END
		model: $root/tests/data/configs/replay-$2.json
		quant: $3
		engine: $4
		flags: $5
		workload: {$6}
		machine: {from: $root/tests/data/replay-machine.yaml, set: {$7}}
	END
}

# same NAME [OPTION...]: runs it and holds order and bytes of every unit against the simulation's.
same() {
	same_name=$1
	shift
	"$OFFSIM" replay "$tmp/$same_name.yaml" --on cpu --dir "$tmp" --repeat 2 --no-db --operations "$tmp/ops.csv" "$@" || return 1
	awk -F, -f tests/cli/in_order.awk "$tmp/ops.csv"
}

decode='prompt: 0, generate: 20, depth: 300'
batch='batch: 8, prompt: 0, generate: 20, depth: 300'
none='gpu0: none'
small='gpu0: none, ram.capacity: 120MiB'

scenario cpu-f16 dense f16 ideal '{}' "$decode" "$none"
scenario cpu-q8 dense q8_0 ideal '{}' "$decode" "$none"
scenario cpu-q4 dense q4_0 ideal '{}' "$batch" "$none"
scenario cpu-mix dense q4_k_m llama.cpp '-t 1' "$decode" "$none"
scenario disk-f16 dense f16 ideal '{}' "$decode" "$small"
scenario disk-batch dense f16 ideal '{buffers: 3}' "$batch" "$small"
scenario stream dense f16 ideal '{gpu-layers: 2}' "$decode" ''
scenario stream-batch dense q8_0 ideal '{gpu-layers: 1, buffers: 3}' "$batch" ''
scenario stream-kv dense q8_0 ideal '{gpu-layers: 2, kv: ram}' "$batch" ''
scenario shared dense q4_0 ideal '{gpu-layers: 2, host: compute}' "$decode" ''
scenario llamacpp dense q4_0 llama.cpp '-ngl 2' "$decode" ''
scenario prefill dense q4_0 llama.cpp '-ngl 2 -ub 40' 'prompt: 100, generate: 1' ''
scenario accelerate dense f16 accelerate '{max_memory: {0: 60MiB, cpu: 1GiB}}' "$decode" ''
scenario experts experts q8_0 llama.cpp '-ngl 99 --cpu-moe' "$batch" ''
scenario cache experts q8_0 expert-cache '{}' "$decode" ''

for name in cpu-f16 cpu-q8 cpu-q4 cpu-mix disk-f16 disk-batch stream stream-batch stream-kv shared llamacpp prefill accelerate experts \
	cache; do
	ok "$name" same $name
done
for name in cpu-f16 disk-batch shared; do
	ok "$name, one thread" same $name --threads 1
done

"$OFFSIM" replay "$tmp/disk-f16.yaml" --write "$tmp/g.opg" --no-db >"$tmp/from-scenario" 2>&1
"$OFFSIM" replay "$tmp/g.opg" >"$tmp/from-graph" 2>&1
ok 'a graph read back simulates the same' sh -c "grep -v '^graph:' '$tmp/from-scenario' | diff - '$tmp/from-graph'"
ok 'and runs' "$OFFSIM" replay "$tmp/g.opg" --on cpu --dir "$tmp" --repeat 1 --db "$db"
ok 'stored' test "$(sqlite3 "$db" "select executor, steps, repetitions, noise is null, ratio > 0 from replay")" = 'cpu|3|1|1|1'
ok 'with its operations' test "$(sqlite3 "$db" "select operation from replay_operation where position = 0")" = step
"$OFFSIM" replay "$tmp/g.opg" --on cpu --dir "$tmp" --repeat 2 --db "$db" >/dev/null 2>&1
ok 'again: the last one counts' test "$(sqlite3 "$db" "select count(*), max(repetitions), min(noise) >= 0 from replay")" = '1|2|1'

ok 'a bound that is held' "$OFFSIM" replay "$tmp/cpu-q8.yaml" --on cpu --repeat 1 --no-db --max-error 1000
ok 'and one that cannot be' fails 4 "$OFFSIM" replay "$tmp/cpu-q8.yaml" --on cpu --repeat 1 --no-db --max-error 0
if command -v jq >/dev/null; then
	ok 'JSON' sh -c "'$OFFSIM' replay '$tmp/cpu-q8.yaml' --on cpu --repeat 2 --no-db --json | jq -e '
		(.rows[0].operation == \"step\") and (.rows | all(.measured_s > 0 and .simulated_s > 0)) and
		(.ratio - .measured_tok_s / .simulated_tok_s | fabs < 1e-9) and .noise >= 0'"
fi
ok 'JSON of a simulation alone' sh -c "'$OFFSIM' replay '$tmp/cpu-q8.yaml' --json | grep -q '\"measured_tok_s\": null'"

ok 'does not fit the machine of the scenario' fails 3 "$OFFSIM" replay "$tmp/cpu-f16.yaml" --on cpu --set machine.ram.capacity=50MiB
scenario huge dense f16 ideal '{}' 'batch: 1000000, prompt: 0, generate: 20, depth: 3000' "$none, ram.capacity: 900TB"
ok 'does not fit this one' sh -c "'$OFFSIM' replay '$tmp/huge.yaml' --on cpu 2>&1 | grep -q 'do not fit in MemAvailable'"
ok 'with status 2' fails 2 "$OFFSIM" replay "$tmp/huge.yaml" --on cpu
ok 'no such folder' fails 1 "$OFFSIM" replay "$tmp/disk-f16.yaml" --on cpu --dir "$tmp/none" --no-db
ok 'what is it to do?' fails 2 "$OFFSIM" replay "$tmp/cpu-f16.yaml" --max-error 5%
ok 'no such executor' fails 2 "$OFFSIM" replay "$tmp/cpu-f16.yaml" --on abacus
ok 'no scenario' fails 2 "$OFFSIM" replay
ok 'an override of a graph' fails 2 "$OFFSIM" replay "$tmp/g.opg" --set seed=2
echo 'opg 1
steps count=1 first=0 end=1 ahead=2 phase=decode
kernal 0' >"$tmp/bad.opg"
ok 'a malformed graph' sh -c "'$OFFSIM' replay '$tmp/bad.opg' 2>&1 | grep -q '^offsim: $tmp/bad.opg:3:1: unknown line .kernal.; did you mean .kernel.'"

# What runs between the repetitions.
cat >"$tmp/between.opg" <<END
opg 1
steps count=1 first=0 end=1 ahead=1 phase=decode
resource 0 name=any rate=2.385e9
memory 0 name=ram kind=ram
device 0 name=cpu0 kind=cpu memory=0
unit 0 name=cpu0
buffer 0 memory=0 bytes=2385000 role=weights
kernel 0 unit=0 device=0 from=0 bytes=4770000 group=read path=0:1 threads=2
kernel 1 after=0 unit=0 device=0 flops=2.385e7 amount=2.385e7 group=add path=0:1
step 2 after=1 tokens=1
end 3
END
between() {
	"$OFFSIM" replay "$tmp/cpu-q8.yaml" --on cpu --repeat 3 --no-db --json --between "$tmp/between.opg" --repetitions "$tmp/r.csv" >"$tmp/r.json" &&
		awk -F'[:,]' '
			/"measured_s"/ && !step_s { step_s = $2 }
			FILENAME ~ /json$/ { next }
			FNR == 1 { bad += $0 != "repetition,step_s,kernel read cpu0 before_s,kernel read cpu0 behind_s,kernel add cpu0 before_s,kernel add cpu0 behind_s"; next }
			{ n++; bad += NF != 6 || $1 != n - 1; for (i = 2; i <= 6; i++) bad += !($i > 0); median += $2 - step_s < 1e-9 && step_s - $2 < 1e-9
			  bad += n > 1 && ($3 != read || $5 != add); read = $4; add = $6 }
			END { exit bad || n != 3 || median < 1 }' "$tmp/r.json" "$tmp/r.csv"
}
ok 'another graph before, between and behind the repetitions' between
ok 'it must be a graph' fails 2 "$OFFSIM" replay "$tmp/cpu-q8.yaml" --on cpu --no-db --between "$tmp/bad.opg"
ok 'nothing runs between simulations' fails 2 "$OFFSIM" replay "$tmp/cpu-q8.yaml" --between "$tmp/between.opg"
ok 'nor on GPUs' fails 2 "$OFFSIM" replay "$tmp/cpu-q8.yaml" --on cuda --between "$tmp/between.opg"
ok 'no repetitions of a simulation' fails 2 "$OFFSIM" replay "$tmp/cpu-q8.yaml" --repetitions "$tmp/r.csv"
ok 'on one processor of several' sh -c "taskset -c 0 '$OFFSIM' replay '$tmp/g.opg' --on cpu --dir '$tmp' --repeat 1 --no-db"

# What is compared with: plain kernels. Those of the ideal engine are, but for their launches.
simulated() { "$OFFSIM" replay "$@" --json | awk -F'[:,]' '/"simulated_tok_s"/ { print $2 + 0 }'; }
scenario no-launch dense q8_0 ideal '{gpu-layers: 2}' "$batch" 'cpu0.launch: 0s, gpu0.launch: 0s'
ok "the ideal engine's kernels are plain" test "$(simulated "$tmp/no-launch.yaml")" = "$(simulated "$tmp/no-launch.yaml" --plain)"
scenario typed dense q8_0 llama.cpp '-t 1' "$decode" "$none, cpu0.kernels.q8_0.decode: 0.2385 GB/s"
slow() {
	bytes=$("$OFFSIM" replay "$tmp/typed.yaml" --write "$tmp/typed.opg" >/dev/null && awk '
		/^steps/ { for (i = 1; i <= NF; i++) { if (sub("first=", "", $i)) first = $i; if (sub("end=", "", $i)) last = $i } }
		/^kernel/ && /type=q8_0/ && step >= first && step < last { for (i = 1; i <= NF; i++) if (sub("^bytes=", "", $i)) sum += $i }
		/^step / { step++ }
		END { printf "%.0f", sum / (last - first) }' "$tmp/typed.opg")
	awk "BEGIN { x = $(simulated "$tmp/typed.yaml" --plain) * $bytes / 0.2385e9; print x; exit !(x > 0.9 && x < 1) }"
}
ok 'a type of weights is expanded at the rate measured' slow

# Ctrl-C, in the middle of a long one.
"$OFFSIM" replay "$tmp/disk-f16.yaml" --on cpu --dir "$tmp" --steps 10 --repeat 10000 --no-db >/dev/null 2>"$tmp/interrupted" &
pid=$!
sleep 2
interrupt $pid
wait $pid
ok 'interrupted: status 1' test $? -eq 1
ok 'and said so' grep -q '^offsim: interrupted' "$tmp/interrupted"
ok 'nothing left behind' test -z "$(find "$tmp" -name '*.part' -o -name 'offsim-replay-*')"
finish
