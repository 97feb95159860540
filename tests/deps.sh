#!/bin/sh
# Installs what is missing to build and run offsim (deps.sh) or to test it as well (deps.sh check).
# Nothing is installed, and no network touched, when all is there.
#
# Looked for is what is really used (a command, a library), not the package that brings it.
set -eu

packages=
need() {
	packages="$packages $1"
}

need_command() { # COMMAND PACKAGE
	command -v "$1" >/dev/null 2>&1 || need "$2"
}

# need_libraries NAME:PACKAGE...: names as pkg-config has them, asked for one by one only if not all are there.
need_libraries() {
	# shellcheck disable=SC2046
	! pkg-config --exists $(printf '%s\n' "$@" | sed 's/:.*//') 2>/dev/null || return 0
	for pair; do
		pkg-config --exists "${pair%:*}" 2>/dev/null || need "${pair#*:}"
	done
}

missing_to_build() {
	need_command gcc gcc
	need_command make make
	need_command pkg-config pkg-config
	need_command gnuplot gnuplot-nox
	echo '#include <stdio.h>' | gcc -E - >/dev/null 2>&1 || need libc6-dev
	need_libraries gsl:libgsl-dev sqlite3:libsqlite3-dev jansson:libjansson-dev libfyaml:libfyaml-dev libzstd:libzstd-dev
}

missing_to_test() {
	need_command prove perl
	need_command sqlite3 sqlite3
	need_command g++ g++
	need_libraries check:check simgrid:libsimgrid-dev
	need_command clang clang
	"${0%/*}/fuzz/run.sh" have || need libclang-rt-dev
}

# Sets `packages`.
look() {
	packages=
	missing_to_build
	[ "$1" = build ] || missing_to_test
}

install() {
	$sudo apt-get -q update
	# shellcheck disable=SC2086
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 \
		-o Dpkg::Use-Pty=0 install --no-install-recommends $packages
}

case ${1:-build} in
build | check) what=${1:-build} ;;
*) echo "usage: deps.sh [build|check]" >&2; exit 2 ;;
esac
look "$what"
[ -n "$packages" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
	echo "offsim needs these packages (by their Debian names):$packages" >&2
	echo "This system has no apt-get; install them its own way, then run make again." >&2
	exit 1
fi
if [ "$(id -u)" -eq 0 ]; then
	sudo=
elif command -v sudo >/dev/null 2>&1; then
	sudo=sudo
else
	echo "offsim needs these packages:$packages" >&2
	echo "Install them as root (apt-get install$packages), or install sudo; then run make again." >&2
	exit 1
fi
echo "Installing what is missing:$packages"
install
look "$what"
if [ -n "$packages" ]; then
	echo "Still missing after installing:$packages" >&2
	exit 1
fi
