#!/bin/sh
# make install puts a program that finds its data and a library that links; make uninstall leaves nothing.
. tests/cli/tap.sh

# The command line's variables (MODE=…, CC=…) still hold; the job server of the make above does not.
MAKEFLAGS=$(printf '%s' "${MAKEFLAGS:-}" | sed 's/ *--jobserver-[^ ]*//g; s/ *-j[0-9]*//g')
unset MAKELEVEL
dest=$tmp/dest
prefix=${PREFIX:-/usr/local}

make_it() {
	make --no-print-directory MODE="${MODE:-release}" BUILD="${BUILD:-build/release}" PREFIX="$prefix" DESTDIR="$dest" "$@"
}

# Run from another folder, with its data neither in the tree it was built in nor named.
installed_lists_machines() {
	(cd / && env -u OFFSIM_DATA "$dest$prefix/bin/offsim" hw list >"$tmp/list") || return 1
	want=$(find hw/machines -name '[!_]*.yaml' | wc -l)
	[ "$(wc -l <"$tmp/list")" -ge "$want" ] || { cat "$tmp/list"; echo "$want machines expected"; return 1; }
}

links() {
	cat >"$tmp/user.c" <<-'END'
		#include <offsim.h>
		int main(void) { return 0; }
	END
	flags=$(pkg-config --define-variable=prefix="$dest$prefix" --with-path="$dest$prefix/lib/pkgconfig" \
		--cflags --libs offsim) || return 1
	# shellcheck disable=SC2086
	"${CC:-gcc}" -o "$tmp/user" "$tmp/user.c" $flags && "$tmp/user"
}

exports_only_offsim() {
	nm -g --defined-only "$dest$prefix/lib/liboffsim.a" >"$tmp/symbols"
	! grep -E '^[0-9a-f]+ [A-Z] ' "$tmp/symbols" | grep -v ' offsim_'
}

nothing_left() {
	find "$dest" ! -type d >"$tmp/left"
	[ -d "$dest$prefix/share/offsim" ] && echo "share/offsim is still there" >>"$tmp/left"
	cat "$tmp/left"
	[ ! -s "$tmp/left" ]
}

ok 'install' make_it install
ok 'the installed program finds its data' installed_lists_machines
if [ "${MODE:-release}" = release ] && [ -e sim/offsim.h ]; then
	ok 'a program of its user links' links
	ok 'the library exports nothing else' exports_only_offsim
fi
touch "$dest$prefix/lib/other.a"
ok 'uninstall' make_it uninstall
ok "another's file is still there" rm "$dest$prefix/lib/other.a"
ok 'nothing else is' nothing_left
finish
