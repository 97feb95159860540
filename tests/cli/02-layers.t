#!/bin/sh
# tests/layers.sh finds what it is there to find, and nothing in a clean tree.
. tests/cli/tap.sh

# tree: a small clean tree at $tmp/tree.
tree() {
	rm -rf "$tmp/tree"
	mkdir -p "$tmp/tree/base" "$tmp/tree/hw" "$tmp/tree/models" "$tmp/tree/sim/core" "$tmp/tree/sim/run" "$tmp/tree/sim/cmd"
	echo '#include <stdlib.h>' >"$tmp/tree/base/arena.h"
	cat >"$tmp/tree/sim/core/heap.c" <<-'END'
		#include "base/arena.h"
		/* Not malloc(1), and not
		   free(2) either; heap_free(3) is another. */
		static const char *text = "free(4) /* no comment"; // nor free(5)
		void heap_free(int x);
		#include "generated.h"
	END
	echo '#include "sim/core/heap.h"' >"$tmp/tree/sim/run/run.c"
	echo 'void *f(void) { return malloc(7); }' >"$tmp/tree/base/arena.c"
	echo 'read me' >"$tmp/tree/base/README.md"
	echo 'read me' >"$tmp/tree/hw/README.md"
}

# complains TEXT [N]: layers.sh fails on the tree, with N lines (1), this text in the first.
complains() {
	tests/layers.sh "$tmp/tree" 2>"$tmp/got" && { echo 'no complaint'; return 1; }
	cat "$tmp/got"
	[ "$(wc -l <"$tmp/got")" -eq "${2:-1}" ] && head -n 1 "$tmp/got" | grep -qF -- "$1"
}

tree
ok 'a clean tree' tests/layers.sh "$tmp/tree"

echo '#include "sim/core/sim.h"' >"$tmp/tree/hw/machine.c"
ok 'an include that goes up' complains 'hw/machine.c:1: must not include sim/core/sim.h (hw may include: base hw)'
tree
printf '\n#  include <sim/core/sim.h>\n' >"$tmp/tree/hw/machine.c"
ok 'the same in angle brackets' complains 'hw/machine.c:2: must not include sim/core/sim.h'
tree
echo '#include "heap.c"' >"$tmp/tree/sim/core/sim.c"
ok 'an include that is not written from the root' complains 'sim/core/sim.c:1: write "sim/core/heap.c"'
tree
mkdir "$tmp/tree/sim/new"
: >"$tmp/tree/sim/new/new.c"
ok 'a folder without a rule' complains 'sim/new/new.c: folder sim/new has no rule'
tree
printf 'int x;\nint *p = /* yes */ malloc (3);\n' >"$tmp/tree/sim/core/sim.c"
ok 'malloc in the core' complains 'sim/core/sim.c:2: allocates outside the arena'
tree
printf 'char *s = "\\"" , *p = strdup("/*"); /* a\n free(b) */ char c = '"'\"'"', *q = strdup("");\n' >"$tmp/tree/models/model.c"
ok 'strdup after quotes and comments' complains 'models/model.c:1: allocates outside the arena' 2
tree
: >"$tmp/tree/base/heap.c"
ok 'two files of one name' complains 'sim/core/heap.c: has the name of base/heap.c'
tree
echo "/* TO""DO: all of it */" >"$tmp/tree/hw/machine.c"
ok 'a promise' complains "hw/machine.c:1:/* TO""DO: all of it */"
finish
