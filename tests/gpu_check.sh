#!/bin/sh
# First contact with a GPU (make gpu-check):
#
#	gpu_check.sh have NVCC          is all there that it takes? Says what is missing, else.
#	gpu_check.sh run OFFSIM FOLDER  calibrates, replays five scenarios on the machine measured, tells predicted and measured
#
# FOLDER keeps the samples, the profiles and every operation's times.
set -u
cd "${0%/*}/.." || exit

have() { # NVCC
	missing=
	release=$([ -z "$1" ] || "$1" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')
	[ "${release%%.*}" -ge 12 ] 2>/dev/null || missing="$missing
  nvcc, of the CUDA toolkit 12 or later, in the PATH or as NVCC=/path/to/nvcc${release:+ ($1 is of $release)}"
	command -v g++ >/dev/null || missing="$missing
  g++"
	# What a driver makes; under WSL it is another.
	[ -e /dev/nvidiactl ] || [ -e /dev/dxg ] || missing="$missing
  a GPU with NVIDIA's driver: there is no /dev/nvidiactl (in a container: was it given the GPU?)"
	[ -z "$missing" ] && return 0
	printf 'make gpu-check: this machine lacks:%s\n' "$missing" >&2
	return 1
}

step() { printf '\n== %s\n' "$*"; }

# A GPU that hangs does not hang this.
limited() { # SECONDS COMMAND...
	seconds=$1
	shift
	timeout --foreground -k 30 "$seconds" "$@"
	status=$?
	[ $status -lt 124 ] || echo "make gpu-check: not done after $seconds s: $*" >&2
	return $status
}

# What makes a scenario what its name says whatever memory this machine has; the others are that already.
settings() { # SCENARIO
	case $1 in
	disk) echo machine.ram.capacity=256MiB machine.ram.reserved=0B machine.gpu0.memory=1GiB machine.gpu0.reserved=0B ;;
	cpu) echo flags.gpu-layers=0 flags.host=compute ;;
	esac
}

replay() { # SCENARIO
	s=$1
	set --
	for setting in $(settings "$s"); do
		set -- "$@" --set "$setting"
	done
	limited 300 "$offsim" replay "scenarios/replay/$s.yaml" --set "machine=$full/machine.yaml" "$@" --on cuda --dir "$out" \
		--no-db --write "$out/$s.opg" --operations "$out/$s.csv"
}

run() { # OFFSIM FOLDER
	offsim=$1
	out=$2
	scenarios='stream disk engines experts cpu'
	failed=
	mkdir -p "$out" && full=$(cd "$out" && pwd) || return 1
	step "processors, memory and drive of this machine ($out/host.yaml)"
	"$offsim" calibrate all --time 30 --file "$out" -o "$out/host.yaml" >"$out/host.txt" || return 1
	tail -n 3 "$out/host.txt"
	step "its GPUs, a minute each ($out/machine.yaml, samples in $out/raw.json)"
	sed -n 1p /proc/driver/nvidia/version 2>/dev/null
	"${offsim%/*}/offsim-cuda" --version
	limited 900 "$offsim" calibrate cuda --machine "$out/host.yaml" --file "$out" --keep "$out/raw.json" -o "$out/machine.yaml" || return 1
	for s in $scenarios; do
		step "scenarios/replay/$s.yaml on it"
		replay "$s" >"$out/$s.txt" || failed="$failed $s"
		cat "$out/$s.txt"
	done
	step 'predicted against measured'
	for s in $scenarios; do
		printf '%-8s %s\n' "$s" "$(sed -n 's/^simulated/predicted/p' "$out/$s.txt")"
	done
	[ -z "$failed" ] || { echo "make gpu-check: failed:$failed" >&2; return 1; }
}

case ${1:-} in
have) have "${2:-}" ;;
run) run "$2" "$3" ;;
*) echo 'usage: gpu_check.sh have NVCC | run OFFSIM FOLDER' >&2; exit 2 ;;
esac
