#!/bin/sh
# What `make replay-check` runs: is a graph as fast on this machine as it is simulated?
#
#	replay.sh OFFSIM OUT [FOLDER]      OUT: folder for what is measured; FOLDER: on the drive to be read (default OUT)
#
# The rates of the executor's own operations are measured one at a time; then scenarios run in which they follow, overlap and
# disturb each other. Nothing is fitted to those. Neighbours on the same memory change a machine's rates within seconds, so
# of each scenario
#
#	rates ── run ── rates ── run ── rates ── …      those that it uses; each run is simulated with the mean of the two around it
#
# A run counts when those two differ by 10 % at most. The median of three that count is the scenario's error; one of which
# ten runs do not give three is reported apart. Ends with 1 when more than one of the others is off by more than 8 % and more
# than twice the noise of its repetitions.
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
unit 3 name=nvme0.copy_out'
bytes=200000000

# buffer NUMBER MEMORY ROLE OPERATION...: of full size where one of them uses it.
buffer() {
	case " $* " in
	*" from=$1 "* | *" to=$1 "*) echo "buffer $1 memory=$2 bytes=$bytes role=$3" ;;
	*) echo "buffer $1 memory=$2 bytes=64 role=$3" ;;
	esac
}

# rate AMOUNT OPERATION...: AMOUNT a second, of one or more operations that run together.
rate() {
	amount=$1
	shift
	{
		echo "$head"
		buffer 0 0 weights "$@"
		buffer 1 1 staging "$@"
		buffer 2 1 weights "$@"
		buffer 3 0 staging "$@"
		buffer 4 2 weights "$@"
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
	"$offsim" replay "$out/one.opg" --on cpu --dir "$folder" --repeat 5 --no-db --json |
		awk -v amount="$amount" -F'[:,]' '/"measured_tok_s"/ { printf "%.0f\n", amount * $2; exit }'
}

read="unit=0 device=0 from=0 bytes=$bytes"
copy_in="copy unit=1 from=0 to=1 bytes=$bytes"
copy_out="copy unit=2 from=2 to=3 bytes=$bytes"
threads=$(nproc)

# Of a type's products: of so many FLOPs that they are of one column.
rate_of() {
	case $1 in
	read_1) rate $bytes "kernel $read threads=1" ;;
	read_n) rate $bytes "kernel $read threads=$threads" ;;
	flops_1) rate 2e10 'kernel unit=0 device=0 flops=2e10 amount=2e10 threads=1' ;;
	flops_n) rate 2e10 "kernel unit=0 device=0 flops=2e10 amount=2e10 threads=$threads" ;;
	h2d) rate $bytes "$copy_in" ;;
	d2h) rate $bytes "$copy_out" ;;
	both) rate $((2 * bytes)) "$copy_in" "$copy_out" ;;
	pageable) rate $bytes "$copy_in pinned=0" ;;
	drive) rate $bytes "copy unit=3 from=4 to=3 bytes=$bytes" ;;
	f16) rate $bytes "kernel $read type=f16 flops=200000000 threads=1" ;;
	q8_0) rate $bytes "kernel $read type=q8_0 flops=376470588 threads=1" ;;
	q4_k) rate $bytes "kernel $read type=q4_k flops=711111111 threads=1" ;;
	esac
}
every='read_1 read_n flops_1 flops_n h2d d2h both pageable drive f16 q8_0 q4_k'

# measure FILE RATE...: a rate a line.
measure() {
	file=$1
	shift
	for one; do
		echo "$one $(rate_of "$one")"
	done >"$file"
}

# mean ALL BEFORE AFTER: as shell variables, those of ALL or, where they are in the others, their mean; and how much these
# differ.
mean() {
	awk '
		FNR == 1 { file++ }
		file == 1 { rate[$1] = $2; next }
		file == 2 { before[$1] = $2; next }
		{
			rate[$1] = (before[$1] + $2) / 2
			low = $2 < before[$1] ? $2 : before[$1]
			change = ($2 > before[$1] ? $2 : before[$1]) / low - 1
			if (change > most)
				most = change
		}
		END {
			for (name in rate)
				printf "%s=%.0f\n", name, rate[name]
			printf "changed=%.3f\n", most
		}' "$@"
}

memory=$(awk '/^MemTotal/ { printf "%.0f", $2 * 1024 }' /proc/meminfo)
aside=$((memory / 2))

# write_machines BEFORE AFTER
write_machines() {
	eval "$(mean "$out/rates" "$1" "$2")"
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

# run NAME MACHINE SCENARIO [OPTION...]: once, simulated with the rates around it.
run() {
	name=$1
	machine=$2
	scenario=$3
	shift 3
	write_machines "$out/before" "$out/before"
	"$offsim" replay "$here/$scenario.yaml" --set machine="$out/$machine.yaml" --on cpu --dir "$folder" --db "$out/results.db" \
		--repeat "${REPEAT:-3}" --json "$@" >"$out/$name.json" 2>"$out/$name.err" || { sed "s/^/$name: /" "$out/$name.err"; return 1; }
	# shellcheck disable=SC2086
	measure "$out/after" $uses
	write_machines "$out/before" "$out/after"
	mv "$out/after" "$out/before"
	"$offsim" replay "$here/$scenario.yaml" --set machine="$out/$machine.yaml" --plain --json "$@" >"$out/$name.simulated.json"
	# shellcheck disable=SC2154
	awk -v changed="$changed" -F'[:,]' '
		FNR == NR { if (/"simulated_tok_s"/) s = $2; next }
		/"measured_tok_s"/ { m = $2 } /"noise"/ { n = $2 }
		END { print m / s - 1, s, m, n, changed }' "$out/$name.simulated.json" "$out/$name.json" >>"$out/$name.runs"
}

# counting FILE: runs whose rates stayed the same.
counting() {
	awk '$5 <= 0.1' "$1" | sort -g
}

# check NAME "RATE..." MACHINE SCENARIO [OPTION...]
check() {
	name=$1
	uses=$2
	shift 2
	: >"$out/$name.runs"
	# shellcheck disable=SC2086
	measure "$out/before" $uses
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		run "$name" "$@" || return 0
		[ "$(counting "$out/$name.runs" | wc -l)" -lt 3 ] || break
	done
	{
		counting "$out/$name.runs"
		echo all
		sort -g "$out/$name.runs"
	} | awk -v name="$name" '
		/^all/ { counted = n; if (n >= 3) exit; n = 0; next }
		{ row[++n] = $0 }
		END {
			split(row[int((n + 1) / 2)], r)
			bound = 2 * r[4] > 0.08 ? 2 * r[4] : 0.08
			verdict = counted < 3 ? "apart" : r[1] < -bound || r[1] > bound ? "off" : "ok"
			printf "%-22s %9.3f %9.3f %+7.1f %% %6.1f %% %7.0f %%   %s\n", name, r[2], r[3], 100 * r[1], 100 * r[4], 100 * r[5], verdict
		}' | tee -a "$out/verdicts"
}

: >"$out/verdicts"
# shellcheck disable=SC2086
measure "$out/rates" $every
cat "$out/rates"
small='--set machine.ram.capacity=900MiB'
gpu='h2d d2h read_1 flops_1'
printf '\n%-22s %9s %9s %9s %8s %9s\n' scenario simulated measured error noise rates
check cpu-f16-t1 'read_1 flops_1 f16' one-thread cpu
check cpu-f16 'read_n flops_n f16' threads cpu
check cpu-q8 'read_n flops_n q8_0' threads cpu --set quant=q8_0
check cpu-q4 'read_n flops_n q4_k' threads cpu --set quant=q4_0
check cpu-q4-t1 'read_1 flops_1 q4_k' one-thread cpu --set quant=q4_0
check cpu-f16-batch8 'read_n flops_n f16' threads cpu --set workload.batch=8
check cpu-q4-batch8-t1 'read_1 flops_1 q4_k' one-thread cpu --set quant=q4_0 --set workload.batch=8
# shellcheck disable=SC2086
check disk-f16 'drive read_n flops_n f16' threads disk $small
# shellcheck disable=SC2086
check disk-f16-batch8-t1 'drive read_1 flops_1 f16' one-thread disk $small --set workload.batch=8
check stream-f16 "$gpu" machine stream
check stream-q8-batch8 "$gpu" machine stream --set quant=q8_0 --set workload.batch=8
check stream-kv-in-ram "$gpu" machine stream --set flags.kv=ram
check experts-f16-t1 'read_1 flops_1 f16' one-thread experts
check llamacpp-q8 "$gpu read_n flops_n q8_0" machine engines
check llamacpp-f16-cpu 'read_n flops_n f16' threads engines --set quant=f16 --set flags.ngl=0
check llamacpp-q4k-cpu 'read_n flops_n q4_k' threads engines --set quant=q4_k --set flags.ngl=0
echo
echo "(tokens a second; noise: of the repetitions; rates: how much the machine's own changed around the run; the measured rows are in $out/results.db)"
awk '{ n[$NF]++ } END {
	printf "%d within max(8 %%, twice the noise), %d off, %d apart\n", n["ok"], n["off"], n["apart"]
	exit n["off"] > 1 }' "$out/verdicts"
