#!/bin/sh
# Bad input: one line that says where and what, the nearest name, exit 2; nothing stored.
. tests/cli/tap.sh
cd "$tmp" || exit 1

good() {
	cat <<'EOF'
model: llama-3.2-1b
quant: q8_0
machine: desktop-rtx4090-ddr5
engine: ideal
workload: {batch: 1, prompt: 64, generate: 16}
EOF
}

# refused TEXT [ARGUMENT...]: s.yaml as it stands is refused with exactly this line.
refused() {
	tap_text="offsim: $1"
	shift
	"$OFFSIM" run s.yaml --db bad.db "$@" >out 2>err
	tap_got=$?
	[ "$tap_got" -eq 2 ] || { echo "status $tap_got"; cat out err; return 1; }
	[ "$(cat err)" = "$tap_text" ] || { echo "want: $tap_text"; echo "got:  $(cat err)"; return 1; }
	[ ! -s out ] && [ ! -e bad.db ]
}
edited() { # SED TEXT
	good | sed "$1" >s.yaml
	refused "$2"
}

ok 'unknown key' edited 's/^quant/qaunt/' "s.yaml:2:1: unknown key 'qaunt' in the scenario; did you mean 'quant'?"
ok 'unknown key below' edited 's/batch/bacth/' "s.yaml:5:12: unknown key 'bacth' in workload; did you mean 'batch'?"
ok 'duplicate key' edited '1p' "s.yaml:2:1: key 'model' is here twice"
ok 'missing key' edited '1d' "s.yaml:1:1: the scenario has no 'model'"
ok 'unknown model' edited 's/3.2-1b/3.2-1c/' "s.yaml:1:8: unknown model 'llama-3.2-1c' and no such path; did you mean 'llama-3.2-1b'?"
ok 'unknown type' edited 's/q8_0/q8_9/' "s.yaml:2:8: unknown quant 'q8_9'; did you mean 'q8_0'?"
ok 'unknown machine' edited 's/rtx4090/rtx4091/' "s.yaml:3:10: unknown machine 'desktop-rtx4091-ddr5'; did you mean 'desktop-rtx4090-ddr5'?"
ok 'unknown engine' edited 's/ideal/ideel/' "s.yaml:4:9: unknown engine 'ideel'; did you mean 'ideal'?"
ok 'unknown routing' edited '$arouting: typcal' "s.yaml:6:10: unknown routing 'typcal'; it is 'typical', 'uniform', or a map of correlation, zipf, popularity, locality, trace; did you mean 'typical'?"
named() { # SED COLUMN: a file that is not there is missed where it is named
	good | sed "s/^model.*/model: olmoe-1b-7b/; $1" >s.yaml
	"$OFFSIM" run s.yaml --no-db 2>&1 | grep -q "^offsim: s.yaml:$2: .*/nonexistent/x.*: No such file or directory$"
}
ok 'no such recorded workload' named 's!^workload.*!workload: {trace: /nonexistent/x.otr}!' 5:19
ok 'no such recorded routing' named '$arouting: {trace: /nonexistent/x.otr}' 6:18
ok 'no such popularity' named '$arouting: {popularity: /nonexistent/x.json}' 6:23
ok 'no such model file' named 's!^model.*!model: /nonexistent/x.gguf!' 1:8
ok 'an engine without flags refuses' edited 's/ideal/ds4/' "s.yaml:4:9: ds4 runs DeepSeek V4, not 'llama-3.2-1b'"
ok 'no such backend' edited "s/ideal/llama.cpp/; \$aflags: {backend: vulcan}" "s.yaml:6:18: unknown backend 'vulcan'; did you mean 'vulkan'?"
ok 'no such month' edited 's/ideal/llama.cpp/; $aflags: --build 2025-13' "s.yaml:6:8: flag 'build' must be a year and month such as 2025-04, not '2025-13'"
ok 'a second buffer that is none' edited 's/ideal/llama.cpp/; $aflags: {ot: "a.*=CPU,b.*=CUDA9"}' \
	"s.yaml:6:8: flag 'ot': no buffer 'CUDA9' on this machine; CPU or CUDA0 to CUDA0"
ok 'what is wrong behind buffers' edited 's/ideal/llama.cpp/; $aflags: {ot: "a.*=CPU", build: 2025-13}' \
	"s.yaml:6:8: flag 'build' must be a year and month such as 2025-04, not '2025-13'"
ok 'out of range' edited 's/batch: 1/batch: 0/' "s.yaml:5:19: 'batch' must be between 1 and 1000000, not 0"
ok 'negative' edited 's/prompt: 64/prompt: -64/' "s.yaml:5:30: 'prompt' must be between 0 and 100000000, not -64"
ok 'no number' edited 's/prompt: 64/prompt: many/' "s.yaml:5:30: prompt: 'many' is not a number; expected a whole number such as 40"
ok 'missing unit' edited 's/^machine.*/machine: {from: gh200, set: {ram.bandwidth: 55}}/' \
	"s.yaml:3:45: ram.bandwidth: '55' has no unit; expected a bandwidth such as 55GB/s"
ok 'wrong dimension' edited 's/^machine.*/machine: {from: gh200, set: {ram.bandwidth: 55GB}}/' \
	"s.yaml:3:45: ram.bandwidth: '55GB' is a size; expected a bandwidth such as 55GB/s"
ok 'one socket has no other' edited 's/^machine.*/machine: {from: gh200, set: {ram.numa: remote}}/' \
	's.yaml:3:40: ram.numa: remote is of several sockets, and the machine has one (cpu0.sockets)'
ok 'another socket at an unknown rate' edited \
	's/^machine.*/machine: {from: server-8xh100, set: {ram.numa: interleave, cpu0.sockets: 2}}/' \
	"s.yaml:3:48: ram.numa: interleave needs 'gpu0.link.remote', how fast it reaches memory of another socket"
ok 'unknown flag' edited '$a flags: {gpu-layer: 3}' \
	"s.yaml:6:9: unknown key 'gpu-layer' in the flags of ideal; did you mean 'gpu-layers'?"
ok 'unknown flag in text' edited '$a flags: -gpu-layer 3' \
	"s.yaml:6:8: unknown flag '-gpu-layer' of ideal; did you mean 'gpu-layers'?"
ok 'nonsense to sweep' edited '$a sweep: {workload.batch: 9..1}' "s.yaml:6:25: '9..1' goes nowhere: the step must be positive and LAST no less than FIRST"
ok 'a flag that its engine refuses' edited '$a flags: {gpu-layers: -1}' \
	"s.yaml:6:8: flag 'gpu-layers' must be a whole number or auto, not '-1'"
two_sizes() { # LEVEL WHERE
	good | sed "s/^model.*/model: mixtral-8x7b/; s/^engine.*/engine: expert-cache/; \$a flags: {$1-cache: 3GiB, $1-slots: 2}" >s.yaml
	refused "s.yaml:6:8: $1-cache and $1-slots both say how large the cache $2 is: give one"
}
ok 'two sizes of one cache' two_sizes ram 'in RAM'
ok 'on the GPU' two_sizes gpu 'on the GPU'
ok 'an unknown short option' sh -c "'$OFFSIM' run s.yaml -j 2>&1 | grep -q \"unknown option '-j'\""
ok 'no such file' fails 2 "$OFFSIM" run nowhere.yaml
good >s.yaml
ok '--set of an unknown key' refused "--set wrkload.batch: unknown key 'wrkload' in the scenario; did you mean 'workload'?" --set wrkload.batch=3
ok '--set out of range' refused "--set workload.batch: 'batch' must be between 1 and 1000000, not 0" --set workload.batch=0
ok '--set of a flag' refused "--set flags.host: 'host' cannot be 'cpu'; choose one of stream, compute" --set flags.host=cpu
ok '--set without value' fails 2 "$OFFSIM" run s.yaml --set workload.batch
ok 'model file missing' refused "--set model: cannot read model 'no/config.json': No such file or directory" --set model=no/config.json
ok 'a machine whose from: is a circle' sh -c "printf 'from: ./b.yaml\n' >a.yaml; printf 'from: ./a.yaml\n' >b.yaml; ! '$OFFSIM' run s.yaml --no-db --set machine=./a.yaml 2>err && grep -q 'a.yaml' err && grep -q 'b.yaml' err"
ok 'a database that is no database' sh -c "echo hello, this is no database at all >x.db; '$OFFSIM' run s.yaml --db x.db >/dev/null 2>err; test \$? -eq 1 && grep -q x.db err && grep -q hello x.db"
ok 'a database in no folder' fails 1 "$OFFSIM" run s.yaml --db no/where/x.db
ok 'unknown option' fails 2 "$OFFSIM" run s.yaml --jsno
ok 'unknown command' fails 2 "$OFFSIM" rnu s.yaml
printf 'model: "llama\nmachine' >s.yaml
ok 'broken YAML' fails 2 "$OFFSIM" run s.yaml
printf '%%a\355' >s.yaml
ok 'the three bytes that hang libfyaml' fails 2 timeout 5 "$OFFSIM" run s.yaml
: >s.yaml
ok 'an empty file' fails 2 "$OFFSIM" run s.yaml
finish
