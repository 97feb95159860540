#!/bin/sh
# What `make replay-check` runs: is a graph as fast on this machine as it is simulated?
#
#	replay.sh OFFSIM OUT [FOLDER]      OUT: folder for what is measured; FOLDER: on the drive to be read (default OUT)
#
# The rates of the executor's own operations are measured one at a time; then scenarios run in which they follow, overlap and
# disturb each other. Nothing is fitted to those. Neighbours on the same memory change a machine's rates within seconds, so:
#
#	rates ── scenario ── rates ── scenario ── rates ── …      each is simulated with the mean of the rates around it
#
# Where those two differ by more than 10 % the scenario runs again, three times at most, and is then reported apart. Ends
# with 1 when more than one of the others is off by more than 8 % and more than twice the noise of its repetitions.
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
	"$offsim" replay "$out/one.opg" --on cpu --dir "$folder" --repeat 9 --no-db --json |
		awk -v amount="$amount" -F'[:,]' '/"measured_tok_s"/ { printf "%.0f\n", amount * $2; exit }'
}

read='unit=0 device=0 from=0 bytes=200000000'
copy_in='copy unit=1 from=0 to=1 bytes=200000000'
copy_out='copy unit=2 from=2 to=3 bytes=200000000'
threads=$(nproc)

# measure FILE: a rate a line. Of a type's products: of so many FLOPs that they are of one column.
measure() {
	{
		echo "read_1 $(rate 200000000 "kernel $read threads=1")"
		echo "read_n $(rate 200000000 "kernel $read threads=$threads")"
		echo "flops_1 $(rate 2e9 'kernel unit=0 device=0 flops=2e9 amount=2e9 threads=1')"
		echo "flops_n $(rate 2e9 "kernel unit=0 device=0 flops=2e9 amount=2e9 threads=$threads")"
		echo "h2d $(rate 200000000 "$copy_in")"
		echo "d2h $(rate 200000000 "$copy_out")"
		echo "both $(rate 400000000 "$copy_in" "$copy_out")"
		echo "pageable $(rate 200000000 "$copy_in pinned=0")"
		echo "drive $(rate 200000000 'copy unit=3 from=4 to=3 bytes=200000000')"
		echo "f16 $(rate 200000000 "kernel $read type=f16 flops=200000000 threads=1")"
		echo "q8_0 $(rate 200000000 "kernel $read type=q8_0 flops=376470588 threads=1")"
		echo "q4_k $(rate 200000000 "kernel $read type=q4_k flops=711111111 threads=1")"
	} >"$1"
}

# mean BEFORE AFTER: their mean, as shell variables, and how much they differ: of what the scenario named uses.
mean() {
	awk -v drive="$3" '
		NR == FNR { before[$1] = $2; next }
		{
			print $1 "=" int((before[$1] + $2) / 2)
			low = $2 < before[$1] ? $2 : before[$1]
			change = ($2 > before[$1] ? $2 : before[$1]) / low - 1
			if (($1 == "drive") == drive && $1 != "both" && $1 != "pageable" && change > most)
				most = change
		}
		END { printf "changed=%.3f\n", most }' "$1" "$2"
}

memory=$(awk '/^MemTotal/ { printf "%.0f", $2 * 1024 }' /proc/meminfo)
aside=$((memory / 2))

# write_machines BEFORE AFTER DRIVE
write_machines() {
	eval "$(mean "$1" "$2" "$3")"
	# shellcheck disable=SC2154
	kernels="{f16: {decode: ${f16}B/s}, q8_0: {decode: ${q8_0}B/s}, q4_k: {decode: ${q4_k}B/s}}"
	# shellcheck disable=SC2154
	cat >"$out/machine.yaml" <<END
description: this machine as the replay's own operations see it, measured one at a time on $(date -u +%F)
ram: {capacity: ${memory}B, reserved: 0B, bandwidth: ${read_n}B/s}
cpu0: {cores: $threads, thread_bandwidth: ${read_1}B/s, flops: {fp32: ${flops_n}FLOP/s}, launch: 5us, kernels: $kernels}
gpu0: {memory: ${aside}B, reserved: 0B, in_ram: yes, bandwidth: ${read_1}B/s, flops: {fp32: ${flops_1}FLOP/s}, launch: 5us,
       link: {part: pcie-4x16, h2d: ${h2d}B/s, d2h: ${d2h}B/s, h2d_pageable: ${pageable}B/s, d2h_pageable: ${pageable}B/s,
              both: ${both}B/s, latency: 0s}}
nvme0: {capacity: 1TB, read: ${drive}B/s, write: ${drive}B/s, latency: 0s}
END
	cat >"$out/one-thread.yaml" <<END
from: ./machine.yaml
gpu0: none
cpu0: {cores: 1, bandwidth: ${read_1}B/s, flops: {fp32: ${flops_1}FLOP/s}, launch: 5us, kernels: $kernels}
END
	cat >"$out/threads.yaml" <<END
from: ./machine.yaml
gpu0: none
END
}

# check NAME MACHINE SCENARIO [OPTION...]
check() {
	name=$1
	machine=$2
	scenario=$3
	shift 3
	on_drive=0
	[ "$scenario" != disk ] || on_drive=1
	tries=0
	changed=1
	while [ "$tries" -lt 3 ] && awk "BEGIN { exit !($changed > 0.1) }"; do
		tries=$((tries + 1))
		write_machines "$out/before" "$out/before" "$on_drive"
		"$offsim" replay "$here/$scenario.yaml" --set machine="$out/$machine.yaml" --on cpu --dir "$folder" --db "$out/results.db" \
			--repeat "${REPEAT:-5}" --json "$@" >"$out/$name.json" 2>"$out/$name.err" || { sed "s/^/$name: /" "$out/$name.err"; return; }
		measure "$out/after"
		write_machines "$out/before" "$out/after" "$on_drive"
		mv "$out/after" "$out/before"
		"$offsim" replay "$here/$scenario.yaml" --set machine="$out/$machine.yaml" --plain --json "$@" >"$out/$name.simulated.json"
	done
	awk -v name="$name" -v changed="$changed" -F'[:,]' '
		/"simulated_tok_s"/ { s = $2 }
		FNR == NR { next }
		/"measured_tok_s"/ { m = $2 } /"noise"/ { n = $2 } 
		END {
			error = m / s - 1
			bound = 2 * n > 0.08 ? 2 * n : 0.08
			verdict = changed > 0.1 ? "apart" : error < -bound || error > bound ? "off" : "ok"
			printf "%-22s %9.3f %9.3f %+7.1f %% %6.1f %% %7.0f %%   %s\n", name, s, m, 100 * error, 100 * n, 100 * changed, verdict
		}' "$out/$name.simulated.json" "$out/$name.json" | tee -a "$out/verdicts"
}

: >"$out/verdicts"
measure "$out/before"
cat "$out/before"
small='--set machine.ram.capacity=900MiB'
printf '\n%-22s %9s %9s %9s %8s %9s\n' scenario simulated measured error noise rates
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
check llamacpp-q4k-cpu threads engines --set quant=q4_k --set flags.ngl=0
echo
echo "(tokens a second; noise: of the repetitions; rates: how much the machine's own changed from before to after; the measured rows are in $out/results.db)"
awk '{ n[$NF]++ } END {
	printf "%d within max(8 %%, twice the noise), %d off, %d apart\n", n["ok"], n["off"], n["apart"]
	exit n["off"] > 1 }' "$out/verdicts"
