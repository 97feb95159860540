#!/bin/sh
# GPUs: the executor on threads in place of one against the simulator, what is said where there is none, and that all of it
# compiles without a warning where nvcc is.
. tests/cli/tap.sh
root=$PWD
host=$PWD/$BUILD/offsim-hostexec
[ -x "$host" ] || skip_all "there is no $host: make check builds it"
export OFFSIM_DATA="$root"

# offsim with the stand-in beside it, and offsim with nothing beside it.
mkdir "$tmp/with" "$tmp/without" "$tmp/path"
cp "$OFFSIM" "$tmp/with/offsim" && cp "$host" "$tmp/with/offsim-cuda"
cp "$OFFSIM" "$tmp/without/offsim"
with=$tmp/with/offsim
without=$tmp/without/offsim

says() { # STATUS TEXT COMMAND...
	want_status=$1
	want=$2
	shift 2
	fails "$want_status" "$@" 2>"$tmp/err" >/dev/null && grep -qF -e "$want" "$tmp/err" || { cat "$tmp/err"; return 1; }
}

# same SCENARIO [OPTION...]: every operation, in the simulated order on each unit, all its bytes.
same() {
	s=$1
	shift
	"$with" replay "scenarios/replay/$s.yaml" --on cuda --dir "$tmp" --repeat 1 --threads 2 --no-db --operations "$tmp/ops.csv" "$@" >"$tmp/out" || return 1
	awk -F, -v least=20 -f tests/cli/in_order.awk "$tmp/ops.csv"
}
ok 'weights streamed over the link' same stream --repeat 2
ok 'weights read from a drive' same disk
ok 'layers on both devices' same engines
ok 'experts on the processors' same experts
rows_alike() { # the rows of --on cuda are those of --on cpu
	"$with" replay scenarios/replay/stream.yaml --on cuda --threads 2 --repeat 1 --no-db --json | grep '"operation"' >"$tmp/a" &&
		"$with" replay scenarios/replay/stream.yaml --on cpu --threads 2 --repeat 1 --no-db --json | grep '"operation"' >"$tmp/b" &&
		[ -s "$tmp/a" ] && cmp "$tmp/a" "$tmp/b"
}
ok 'the rows of the two executors' rows_alike
leaves_nothing() {
	mkdir "$tmp/t" && TMPDIR=$tmp/t "$with" replay scenarios/replay/stream.yaml --on cuda --threads 2 --repeat 1 --no-db >/dev/null &&
		[ -z "$(ls "$tmp/t")" ]
}
ok 'nothing is left behind' leaves_nothing

graph() { # LINES: a graph file
	printf 'opg 1\nsteps count=1 first=0 end=1 ahead=1 phase=decode\nmemory 0 name=ram kind=ram\n%b' "$1" >"$tmp/g.opg"
}
refused() { # LINES TEXT
	graph "$1"
	says 2 "$2" "$host" execute "$tmp/g.opg"
}
ok 'no graph' says 2 'execute wants a graph' "$host" execute
ok 'a file that is not there' says 2 "cannot open '$tmp/none.opg'" "$host" execute "$tmp/none.opg"
ok 'a file that is no graph' says 2 'this is no operation graph' "$host" execute tests/cli/tap.sh
ok 'a cut file' refused 'wait 0 latency=1\n' 'the file ends before its operations do'
ok 'an unknown key' refused 'wait 0 latncy=1\n' "g.opg:4: a wait has no key 'latncy=1'"
ok 'an unknown line' refused 'weight 0\n' "g.opg:4: unknown line 'weight'"
ok 'a number that is none' refused 'wait 0 latency=soon\n' "g.opg:4: latency must be a number from 0 to"
ok 'a dependency on what comes later' refused 'wait 0 after=1\n' 'after: there is no operation 1 above'
ok 'a place behind the end' refused 'buffer 0 memory=0 bytes=64 role=weights\nunit 0 name=u\ncopy 0 unit=0 from=0 to=0 at=64 bytes=1\n' 'a place behind the end'
ok "a processor's kernel that reads memory of a GPU" refused 'memory 1 name=gpu0 kind=gpu\ndevice 0 name=cpu0 kind=cpu memory=0\ndevice 1 name=gpu0 kind=gpu memory=1\nbuffer 0 memory=1 bytes=64 role=weights\nunit 0 name=u\nkernel 0 unit=0 device=0 from=0 bytes=64\nstep 1 after=0 tokens=1\nend 2\n' 'reads memory of a GPU'
# What ends all of a terminal's programs, or a group of them, comes from there and once more from offsim. Together they ask once.
ends_in_order() { # SIGNAL
	graph 'wait 0 latency=600e12\nstep 1 after=0 tokens=1\nend 2\n'
	"$host" execute "$tmp/g.opg" --output "$tmp/times.json" 2>"$tmp/err" &
	pid=$!
	until [ -e "$tmp/times.json.$pid.part" ]; do
		kill -0 "$pid" || return 1
		sleep 0.05
	done
	kill "-$1" "$pid" && kill -TERM "$pid"
	status=0
	wait "$pid" || status=$?
	[ "$status" = 1 ] && grep -q 'offsim-cuda: interrupted' "$tmp/err" && [ -z "$(ls "$tmp"/times.json* 2>/dev/null)" ]
}
ok 'SIGINT and SIGTERM end it in good order' ends_in_order INT
ok 'so does SIGTERM twice' ends_in_order TERM
ok 'a drive where no file can be' says 1 'cannot make a file in' "$with" replay scenarios/replay/disk.yaml --on cuda --no-db --dir "$tmp/none"

ok 'no offsim-cuda' says 1 "'make cuda' builds it" env PATH=/usr/bin:/bin "$without" replay scenarios/replay/stream.yaml --on cuda --no-db
ok 'no offsim-cuda to calibrate with' says 1 "'make cuda' builds it" env PATH=/usr/bin:/bin "$without" calibrate cuda
ln -s "$host" "$tmp/path/offsim-cuda"
ok 'one in PATH' says 2 'it has one command, execute' env PATH="$tmp/path:$PATH" "$without" calibrate cuda
killed() { printf '#!/bin/sh\nkill -9 $$\n' >"$tmp/without/offsim-cuda"; chmod +x "$tmp/without/offsim-cuda"; says 1 'died of signal 9' "$without" calibrate cuda; }
ok 'one that dies' killed
mute() { printf '#!/bin/sh\nexit 0\n' >"$tmp/without/offsim-cuda"; says 2 'raw.json' "$without" calibrate cuda; }
ok 'one that writes nothing' mute

ok 'calibrate --raw' "$OFFSIM" calibrate cuda --raw tests/data/cuda/synthetic.json -o "$tmp/p.yaml"
ok 'the profile names the driver' grep -q '^# Driver: .*NVRM version: none' "$tmp/p.yaml"
ok 'the profile is a machine' "$OFFSIM" run scenarios/headline.yaml --no-db --set machine="$tmp/p.yaml"
json() { "$OFFSIM" calibrate cuda --raw tests/data/cuda/synthetic.json --json | grep -q '"gpu0.link.h2d"'; }
ok 'calibrate --json' json
cut() { head -c 3000 tests/data/cuda/synthetic.json >"$tmp/cut.json"; says 2 'cut.json' "$OFFSIM" calibrate cuda --raw "$tmp/cut.json"; }
ok 'a cut file of samples' cut
ok '--raw measures nothing' says 2 '--quick does not go with it' "$OFFSIM" calibrate cuda --raw x --quick
ok 'cuda goes with no other part' says 2 "'cpu' goes not with cuda" "$OFFSIM" calibrate cuda cpu

# All of gpu-check but measuring the machine.
gpu_check_replays() {
	mkdir "$tmp/gpu"
	cat >"$tmp/gpu/offsim" <<-END
		#!/bin/sh
		case "\$1 \$2" in
		'calibrate all') ;;
		'calibrate cuda') exec "$with" calibrate cuda --raw tests/data/cuda/synthetic.json --machine desktop-rtx4090-ddr5 -o "$tmp/check/machine.yaml" ;;
		*) exec "$with" "\$@" --repeat 1 --threads 2 ;;
		esac
	END
	chmod +x "$tmp/gpu/offsim"
	mkdir "$tmp/check" && : >"$tmp/check/host.txt"
	tests/gpu_check.sh run "$tmp/gpu/offsim" "$tmp/check" >"$tmp/check.txt" 2>"$tmp/err" || { cat "$tmp/check.txt" "$tmp/err"; return 1; }
	[ "$(grep -c '^[a-z]* *predicted .*, measured .*: ratio' "$tmp/check.txt")" = 5 ] && grep -q 'copy ffn nvme0>gpu0' "$tmp/check/disk.txt" &&
		grep -q 'copy ffn ram>gpu0' "$tmp/check/stream.txt" && grep -q 'kernel ffn cpu0' "$tmp/check/cpu.txt" &&
		grep -q 'kernel experts gpu0' "$tmp/check/experts.txt"
}
ok 'gpu-check replays five scenarios that differ' gpu_check_replays
old_nvcc() {
	printf '#!/bin/sh\necho "Cuda compilation tools, release 11.5, V11.5.119"\n' >"$tmp/nvcc"
	chmod +x "$tmp/nvcc"
	says 1 "($tmp/nvcc is of 11.5)" tests/gpu_check.sh have "$tmp/nvcc"
}
ok 'an nvcc that is too old' old_nvcc

# The rest needs nvcc: one kind of GPU, for all take minutes.
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || :)
if [ "$MODE" != release ] || [ -z "$nvcc" ]; then
	echo "# no nvcc, or MODE is not release: offsim-cuda is not built"
	finish
	exit
fi
# As in 03-install.t.
MAKEFLAGS=$(printf '%s' "${MAKEFLAGS:-}" | sed 's/ *--jobserver-[^ ]*//g; s/ *-j[0-9]*//g')
unset MAKELEVEL
builds() {
	make cuda NVCC="$nvcc" CUDA_ARCHS=90 BUILD=build/cuda-test >"$tmp/make.log" 2>&1 && ! grep -i warning "$tmp/make.log" || { cat "$tmp/make.log"; return 1; }
}
ok 'offsim-cuda compiles without a warning' builds
cuda=$root/build/cuda-test/offsim-cuda
no_libraries() { ! ldd "$cuda" | grep -E 'cuda|stdc\+\+|not found'; }
ok 'it needs no library of CUDA' no_libraries
lists() { "$cuda" calibrate --list >"$tmp/list" && grep -q '^h2d ' "$tmp/list" && tail -n 1 "$tmp/list" | grep -q 'about .* s for each GPU'; }
ok '--list needs no GPU' lists
ok 'an unknown part' says 2 "there is no part 'h2b'" "$cuda" calibrate --only h2b
if ! [ -e /dev/nvidiactl ]; then
	ok 'no CUDA device' says 1 'no CUDA device' "$cuda" calibrate
	graph 'wait 0 latency=1\nstep 1 after=0 tokens=1\nend 2\n'
	ok 'no CUDA device for a graph' says 1 'no CUDA device' "$cuda" execute "$tmp/g.opg"
	cp "$cuda" "$tmp/without/offsim-cuda"
	ok 'offsim hands it on' says 1 'no CUDA device' "$without" calibrate cuda
	gpu_check() { says 2 'this machine lacks' make gpu-check; }
	ok 'gpu-check says what is missing' gpu_check
fi
finish
