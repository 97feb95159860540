# tap.sh: sourced by the tests of this folder. They run from the root of the tree, and print TAP for prove.
#
#	. tests/cli/tap.sh
#	ok 'two and two' test $((2 + 2)) -eq 4
#	finish
#
# $tmp is a folder of the test's own, removed at its end; $OFFSIM the program (make check sets it).
# shellcheck shell=sh
set -u
OFFSIM=${OFFSIM:-$PWD/build/release/offsim}
tmp=$(mktemp -d "${TMPDIR:-/tmp}/offsim-cli-XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
tap_n=0
tap_failed=0

# ok WHAT COMMAND...: the test WHAT passes if COMMAND does; what it printed is shown if not.
ok() {
	tap_what=$1
	shift
	tap_n=$((tap_n + 1))
	if "$@" >"$tmp/tap.log" 2>&1; then
		echo "ok $tap_n - $tap_what"
	else
		echo "not ok $tap_n - $tap_what"
		echo "# failed: $*"
		sed 's/^/#   /' "$tmp/tap.log"
		tap_failed=$((tap_failed + 1))
	fi
}

# fails STATUS COMMAND...: for ok, a command that must end with this status.
fails() {
	tap_want=$1
	shift
	"$@"
	tap_got=$?
	[ "$tap_got" -eq "$tap_want" ] || { echo "status $tap_got, not $tap_want"; return 1; }
}

# interrupt PID: Ctrl-C, once the program listens: before, what runs behind the shell is deaf to it.
interrupt() {
	until [ $((0x$(sed -n 's/^SigCgt:[[:blank:]]*//p' "/proc/$1/status") & 2)) -ne 0 ]; do
		kill -0 "$1" || return 1
		sleep 0.05
	done
	kill -INT "$1"
}

# skip_all WHY: the whole file.
skip_all() {
	echo "1..0 # SKIP $1"
	exit 0
}

finish() {
	echo "1..$tap_n"
	[ "$tap_failed" -eq 0 ] || exit 1
}
