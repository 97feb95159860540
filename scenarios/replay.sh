#!/bin/sh
# What `make replay-check` runs: is a graph as fast on this machine as it is simulated?
#
#	replay.sh OFFSIM OUT [FOLDER]      OUT: folder for what is measured; FOLDER: on the drive to be read (default OUT)
#
# REPEAT=N repetitions of each. First the rates of the executor's own operations, one at a time (OUT/machine.yaml), then fifteen scenarios, in which they
# follow, overlap and disturb each other. Nothing is fitted to those. A ratio says little where probes changed: run it
# again when the machine is quiet.
set -eu
offsim=$1
out=$2
folder=${3:-$2}
here=${0%/*}/replay
mkdir -p "$out"

head='opg 1
steps count=1 first=0 end=1 ahead=1 phase=decode
resource 0 name=any rate=1e9
memory 0 name=ram kind=ram
memory 1 name=gpu0 kind=gpu
memory 2 name=nvme0 kind=drive
device 0 name=cpu0 kind=cpu memory=0
unit 0 name=cpu0
unit 1 name=gpu0.copy_in
unit 2 name=gpu0.copy_out
unit 3 name=nvme0.copy_out
buffer 0 memory=0 bytes=200000000 role=weights
buffer 1 memory=1 bytes=200000000 role=staging
buffer 2 memory=1 bytes=200000000 role=weights
buffer 3 memory=0 bytes=200000000 role=staging
buffer 4 memory=2 bytes=200000000 role=weights'

# rate AMOUNT OPERATION...: AMOUNT a second, of one or more operations that run together.
rate() {
	amount=$1
	shift
	{
		echo "$head"
		n=0
		after=
		for op; do
			echo "${op%% *} $n path=0:1 ${op#* }"
			after=$after${after:+,}$n
			n=$((n + 1))
		done
		echo "step $n after=$after tokens=1"
		echo "end $((n + 1))"
	} >"$out/one.opg"
	"$offsim" replay "$out/one.opg" --on cpu --dir "$folder" --repeat 15 --no-db --json |
		awk -v amount="$amount" -F'[:,]' '/"fastest_tok_s"/ { printf "%.0f\n", amount * $2; exit }'
}

read='unit=0 device=0 from=0 bytes=200000000'
copy_in='copy unit=1 from=0 to=1 bytes=200000000'
copy_out='copy unit=2 from=2 to=3 bytes=200000000'
threads=$(nproc)
read_1=$(rate 200000000 "kernel $read threads=1")
read_n=$(rate 200000000 "kernel $read threads=$threads")
flops_1=$(rate 2e9 'kernel unit=0 device=0 flops=2e9 amount=2e9 threads=1')
flops_n=$(rate 2e9 "kernel unit=0 device=0 flops=2e9 amount=2e9 threads=$threads")
h2d=$(rate 200000000 "$copy_in")
d2h=$(rate 200000000 "$copy_out")
both=$(rate 400000000 "$copy_in" "$copy_out")
pageable=$(rate 200000000 "$copy_in pinned=0")
drive=$(rate 200000000 'copy unit=3 from=4 to=3 bytes=200000000')
memory=$(awk '/^MemTotal/ { printf "%.0f", $2 * 1024 }' /proc/meminfo)

cat >"$out/machine.yaml" <<END
description: this machine as the replay's own operations see it, measured one at a time on $(date -u +%F)
ram: {capacity: ${memory}B, reserved: 0B, bandwidth: ${read_n}B/s}
cpu0: {cores: $threads, flops: {fp32: ${flops_n}FLOP/s}, launch: 5us}
gpu0: {memory: ${memory}B, reserved: 0B, bandwidth: ${read_1}B/s, flops: {fp32: ${flops_1}FLOP/s}, launch: 5us,
       link: {part: pcie-4x16, h2d: ${h2d}B/s, d2h: ${d2h}B/s, h2d_pageable: ${pageable}B/s, d2h_pageable: ${pageable}B/s,
              both: ${both}B/s, latency: 0s}}
nvme0: {capacity: 1TB, read: ${drive}B/s, write: ${drive}B/s, latency: 0s}
END
cat >"$out/one-thread.yaml" <<END
from: ./machine.yaml
gpu0: none
cpu0: {cores: 1, bandwidth: ${read_1}B/s, flops: {fp32: ${flops_1}FLOP/s}, launch: 5us}
END
cat >"$out/threads.yaml" <<END
from: ./machine.yaml
gpu0: none
END
sed -n 2,6p "$out/machine.yaml"

# check NAME MACHINE SCENARIO [OPTION...]
check() {
	name=$1
	machine=$2
	scenario=$3
	shift 3
	"$offsim" replay "$here/$scenario.yaml" --set machine="$out/$machine.yaml" --on cpu --dir "$folder" --db "$out/results.db" \
		--repeat "${REPEAT:-5}" --json "$@" >"$out/$name.json" 2>"$out/$name.err" || { sed "s/^/$name: /" "$out/$name.err"; return; }
	awk -v name="$name" -F'[:,]' '
		/"measured_tok_s"/ { m = $2 } /"simulated_tok_s"/ { s = $2 } /"ratio"/ { r = $2 } /"noise"/ { n = $2 }
		/"fastest_tok_s"/ { f = $2 } /"probe_changed"/ { p = $2 }
		END { printf "%-22s %9.3f %9.3f %7.3f %8.3f %6.1f %% %6.0f %%\n", name, s, m, r, f / s, 100 * n, 100 * p }' "$out/$name.json"
}

small='--set machine.ram.capacity=900MiB'
printf '\n%-22s %9s %9s %7s %8s %8s %8s\n' scenario simulated measured ratio fastest noise probes
check cpu-f16-t1 one-thread cpu
check cpu-f16 threads cpu
check cpu-q8 threads cpu --set quant=q8_0
check cpu-q4 threads cpu --set quant=q4_0
check cpu-q4-t1 one-thread cpu --set quant=q4_0
check cpu-f16-batch8 threads cpu --set workload.batch=8
check cpu-q4-batch8-t1 one-thread cpu --set quant=q4_0 --set workload.batch=8
# shellcheck disable=SC2086
check disk-f16 threads disk $small
# shellcheck disable=SC2086
check disk-f16-batch8-t1 one-thread disk $small --set workload.batch=8
check stream-f16 machine stream
check stream-q8-batch8 machine stream --set quant=q8_0 --set workload.batch=8
check stream-kv-in-ram machine stream --set flags.kv=ram
check experts-f16-t1 one-thread experts
check llamacpp-q8 machine engines
check llamacpp-f16-cpu threads engines --set quant=f16 --set flags.ngl=0
echo
echo "(tokens a second; fastest: ratio of the fastest repetition; probes: how much the machine's own rates changed from before to after; the rows are in $out/results.db)"
