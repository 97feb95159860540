#!/bin/sh
# What `make replay-check` runs: is a graph as fast on this machine as it is simulated?
#
#	replay.sh OFFSIM OUT [FOLDER]      OUT: folder for what is measured; FOLDER: on the drive to be read (default OUT)
#
# The rates of the executor's own operations are measured one at a time; then scenarios run in which they follow, overlap and
# disturb each other. Nothing is fitted to those. Neighbours on the same memory change a machine's rates within seconds, so
# each scenario alternates, in one process and a second or less apiece, with those rates that it uses
#
#	rates ── scenario ── rates ── scenario ── rates ── …
#
# and each repetition is compared with the mean of what the rates before and behind it say. It counts when these two
# simulations differ by 10 % at most. Three processes do five repetitions each, for it matters too where in memory a process
# lies; more, nine at most, while fewer than five repetitions count. The median of those is the scenario's error; one that has
# no five is reported apart. Ends with 1 when more than one of the others is off by more than 8 % and more than twice the noise
# of its repetitions.
set -eu
offsim=$1
out=$2
folder=${3:-$2}
here=${0%/*}/replay
threads=$(nproc)
mkdir -p "$out"

# A line a rate: its name; how much an operation does; then the operation, or, behind "+", two that run at once, whose rates
# add up. bus: of bytes that are read or written. Of a type's products: of so many FLOPs that they are of one column.
table="read_1   1e9 kernel unit=0 device=0 from=0 bytes=1e9 threads=1
read_n   1e9 kernel unit=1 device=0 from=0 bytes=1e9 threads=$threads
flops_1  5e9 kernel unit=0 device=0 flops=5e9 amount=5e9 threads=1
flops_n  5e9 kernel unit=1 device=0 flops=5e9 amount=5e9 threads=$threads
h2d      1e9 copy unit=2 from=0 to=1 bytes=1e9
d2h      1e9 copy unit=3 from=2 to=3 bytes=1e9
both     1e9 copy unit=2 from=0 to=1 bytes=1e9 + copy unit=3 from=2 to=3 bytes=1e9
bus      2e9 copy unit=2 from=0 to=1 bytes=1e9 + kernel unit=0 device=0 from=4 bytes=2e9 threads=1
pageable 1e9 copy unit=2 from=0 to=1 bytes=1e9 pinned=0
drive    4e8 copy unit=4 from=5 to=3 bytes=4e8
f16      1e9 kernel unit=0 device=0 from=0 bytes=1e9 type=f16 flops=1e9 threads=1
f16_n    1e9 kernel unit=1 device=0 from=0 bytes=1e9 type=f16 flops=1e9 threads=$threads
q8_0     1e9 kernel unit=0 device=0 from=0 bytes=1e9 type=q8_0 flops=1.882352941e9 threads=1
q4_k     1e9 kernel unit=0 device=0 from=0 bytes=1e9 type=q4_k flops=3.555555556e9 threads=1
q4_k_n   1e9 kernel unit=1 device=0 from=0 bytes=1e9 type=q4_k flops=3.555555556e9 threads=$threads"
every=$(echo "$table" | awk '{ print $1 }')

# write_graph FILE RATE...: their operations, one rate after the other, each behind a tenth of itself: a thread that has slept
# takes some milliseconds until it has a processor of its own.
write_graph() {
	file=$1
	shift
	echo "$table" | awk -v wanted=" $* " '
		function add(name, ops,    op, n, i, b, kind, after) {
			n = split(ops, op, / \+ /)
			after = now
			now = ""
			for (i = 1; i <= n; i++) {
				kind = op[i]
				sub(/ .*/, "", kind)
				sub(/^[^ ]+ /, "", op[i])
				lines = lines kind " " id + 0 " path=0:1 group=" name (after == "" ? "" : " after=" after) " " op[i] "\n"
				now = now (now == "" ? "" : ",") id++
				for (b = 0; b < 6; b++)
					if (index(op[i] " ", "from=" b " ") || index(op[i] " ", "to=" b " "))
						used[b] = 1
			}
		}
		index(wanted, " " $1 " ") {
			name = $1
			sub(/^[^ ]+ +[^ ]+ +/, "")
			tenth = $0
			gsub(/e8/, "e7", tenth)
			gsub(/e9/, "e8", tenth)
			add("wake", tenth)
			add(name, $0)
		}
		END {
			print "opg 1\nsteps count=1 first=0 end=1 ahead=1 phase=decode\nresource 0 name=any rate=1e9"
			print "memory 0 name=ram kind=ram\nmemory 1 name=gpu0 kind=gpu\nmemory 2 name=nvme0 kind=drive"
			print "device 0 name=cpu0 kind=cpu memory=0"
			split("one all copy_in copy_out drive", unit)
			for (u = 0; u < 5; u++)
				print "unit " u " name=" unit[u + 1]
			split("0 1 1 0 1 2", memory)
			split("weights staging weights staging weights weights", role)
			for (b = 0; b < 6; b++)
				print "buffer " b " memory=" memory[b + 1] " bytes=" (b in used ? 200000000 : 64) " role=" role[b + 1]
			printf "%sstep %d after=%s tokens=1\nend %d\n", lines, id, now, id + 1
		}' >"$file"
}

# rates_of REPETITIONS: RATE=… a line for each time that they were measured: one more than there are repetitions.
rates_of() {
	{
		echo "$table"
		echo
		cat "$1"
	} | awk '
		function tell(first,    i, rate, one) {
			for (i = first; i <= NF; i += 2)
				if (name[i] != "wake")
					rate[name[i]] += amount[name[i]] / $i
			for (one in rate)
				printf "%s=%.0f ", one, rate[one]
			print ""
		}
		!body { if (NF) amount[$1] = $2; else { body = 1; FS = "," } next }
		/^repetition/ { for (i = 3; i <= NF; i++) { split($i, word, " "); name[i] = word[2] } next }
		{ tell(3); behind = $0 }
		END { $0 = behind; tell(4) }'
}

memory=$(awk '/^MemTotal/ { printf "%.0f", $2 * 1024 }' /proc/meminfo)
aside=$((memory / 2))

# write_machines [RATE=NUMBER...]: with these in place of the first ones.
write_machines() {
	for rate in $(cat "$out/rates") "$@"; do
		eval "$rate"
	done
	# The bus is as fast as most that was seen on it: two cores alone may not fill it.
	# shellcheck disable=SC2154
	ram=$(printf '%s\n' "$read_n" "$((2 * both))" "$bus" | sort -n | tail -1)
	# shellcheck disable=SC2154
	kernels="{f16: {decode: ${f16}B/s}, q8_0: {decode: ${q8_0}B/s}, q4_k: {decode: ${q4_k}B/s}}"
	# shellcheck disable=SC2154
	cat >"$out/machine.yaml" <<END
description: this machine as the replay's own operations see it, measured one at a time on $(date -u +%F)
ram: {capacity: ${memory}B, reserved: 0B, bandwidth: ${ram}B/s}
cpu0: {cores: $threads, bandwidth: ${read_n}B/s, thread_bandwidth: ${read_1}B/s, flops: {fp32: ${flops_n}FLOP/s}, launch: 5us, kernels: $kernels}
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
	# shellcheck disable=SC2154
	cat >"$out/threads.yaml" <<END
from: ./machine.yaml
gpu0: none
cpu0: {kernels: {f16: {decode: $((f16_n / threads))B/s}, q4_k: {decode: $((q4_k_n / threads))B/s}}}
END
}

# run NAME MACHINE SCENARIO [OPTION...]: five repetitions; a line for each: its error, simulated and measured tokens a
# second, how much the two simulations around it differ.
run() {
	name=$1
	scenario=$here/$3.yaml
	machine=machine=$out/$2.yaml
	# One thread that waits for no other, and the rates around it, on one processor: a shared machine's are not equally fast.
	pinned=$([ "$2 $3" = "one-thread disk" ] || [ "$2" != one-thread ] || echo taskset -c 0)
	shift 3
	write_machines
	$pinned "$offsim" replay "$scenario" --set "$machine" --on cpu --dir "$folder" --db "$out/results.db" --repeat 5 \
		--between "$out/$name.opg" --repetitions "$out/$name.csv" --json "$@" >"$out/$name.json" 2>"$out/$name.err" ||
		{ sed "s/^/$name: /" "$out/$name.err"; return 1; }
	rates_of "$out/$name.csv" | while read -r rates; do
		# shellcheck disable=SC2086
		write_machines $rates
		"$offsim" replay "$scenario" --set "$machine" --plain --json "$@" | awk -F'[:,]' '/"simulated_tok_s"/ { print $2 }'
	done >"$out/$name.simulated"
	awk -F'[:,]' '
		/"simulated_s"/ && !simulated_s { simulated_s = $2 }
		/"simulated_tok_s"/ { tokens = $2 * simulated_s; FS = "," }
		FILENAME ~ /simulated$/ { rate[n++] = $1; next }
		FILENAME ~ /csv$/ && FNR > 1 {
			a = rate[FNR - 2]
			b = rate[FNR - 1]
			mean = 2 / (1 / a + 1 / b)
			print tokens / $2 / mean - 1, mean, tokens / $2, (a > b ? a / b : b / a) - 1
		}' "$out/$name.json" "$out/$name.simulated" "$out/$name.csv" >>"$out/$name.runs"
}

# counting FILE: repetitions around which the machine stayed the same.
counting() {
	awk '$4 <= 0.1' "$1" | sort -g
}

# check NAME "RATE..." MACHINE SCENARIO [OPTION...]
check() {
	name=$1
	# shellcheck disable=SC2086
	write_graph "$out/$name.opg" $2
	shift 2
	: >"$out/$name.runs"
	for process in 1 2 3 4 5 6 7 8 9; do
		[ "$process" -le 3 ] || [ "$(counting "$out/$name.runs" | wc -l)" -lt 5 ] || break
		run "$name" "$@" || return 0
	done
	{
		counting "$out/$name.runs"
		echo all
		sort -g "$out/$name.runs"
	} | awk -v name="$name" '
		/^all/ { counted = n; if (n >= 5) keep = 1; else n = 0; next }
		{ all += counted != "" }
		!keep { row[++n] = $0; sum += $3; squares += $3 * $3 }
		END {
			split(row[int((n + 1) / 2)], r)
			mean = sum / n
			noise = n > 1 ? sqrt((squares - n * mean * mean) / (n - 1)) / mean : 0
			bound = 2 * noise > 0.08 ? 2 * noise : 0.08
			verdict = counted < 5 ? "apart" : r[1] < -bound || r[1] > bound ? "off" : "ok"
			printf "%-22s %9.3f %9.3f %+7.1f %% %6.1f %% %4d of %2d   %s\n", name, r[2], r[3], 100 * r[1], 100 * noise, counted, all, verdict
		}' | tee -a "$out/verdicts"
}

: >"$out/verdicts"
# shellcheck disable=SC2086
write_graph "$out/every.opg" $every
"$offsim" replay "$out/every.opg" --on cpu --dir "$folder" --repeat 5 --no-db --between "$out/every.opg" --repetitions "$out/every.csv" --json >"$out/every.json"
rates_of "$out/every.csv" | tail -1 | tr ' ' '\n' >"$out/rates"
cat "$out/rates"
small='--set machine.ram.capacity=900MiB'
gpu='h2d read_1 bus'
printf '\n%-22s %9s %9s %9s %8s %9s\n' scenario simulated measured error noise counted
check cpu-f16-t1 'read_1 flops_1' one-thread cpu
check cpu-f16 'read_n flops_n' threads cpu
check cpu-q8 'read_n flops_n' threads cpu --set quant=q8_0
check cpu-q4 'read_n flops_n' threads cpu --set quant=q4_0
check cpu-q4-t1 'read_1 flops_1' one-thread cpu --set quant=q4_0
check cpu-f16-batch8 'read_n flops_n' threads cpu --set workload.batch=8
check cpu-q4-batch8-t1 'read_1 flops_1' one-thread cpu --set quant=q4_0 --set workload.batch=8
# shellcheck disable=SC2086
check disk-f16 'drive read_n flops_n' threads disk $small
# shellcheck disable=SC2086
check disk-f16-batch8-t1 'drive read_1 flops_1' one-thread disk $small --set workload.batch=8
check stream-f16 "$gpu" machine stream
check stream-q8-batch8 "$gpu" machine stream --set quant=q8_0 --set workload.batch=8
check stream-kv-in-ram "$gpu d2h both" machine stream --set flags.kv=ram
check experts-f16-t1 'read_1 flops_1' one-thread experts
check llamacpp-q8 "$gpu d2h read_n flops_n q8_0" machine engines
check llamacpp-f16-cpu 'read_n flops_n f16_n' threads engines --set quant=f16 --set flags.ngl=0
check llamacpp-q4k-cpu 'read_n flops_n q4_k_n' threads engines --set quant=q4_k --set flags.ngl=0
echo
echo "(tokens a second; noise: of the repetitions that count: those around which two simulations differ by 10 % at most;"
echo "the measured rows are in $out/results.db)"
awk '{ n[$NF]++ } END {
	printf "%d within max(8 %%, twice the noise), %d off, %d apart\n", n["ok"], n["off"], n["apart"]
	exit n["off"] > 1 }' "$out/verdicts"
