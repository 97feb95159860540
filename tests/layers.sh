#!/bin/sh
# layers.sh [ROOT]: fails, with a line each, when in the tree
# - a file includes a header of a layer above its own, or not by its path from the root;
# - a layer of the simulation allocates other than from an arena;
# - two files have the same name (README.md apart, and data, whose names are given by others);
# - something is promised instead of done.
set -eu
cd "${1:-${0%/*}/..}"

# "folder: folders it may include"
rules='base: base
hw: base hw
hw/cuda: base hw hw/cuda
models: base models
plots: base plots
sim: base sim
sim/core: base sim/core
sim/place: base hw models sim/place
sim/trace: base models sim/trace
sim/cache: base models sim/trace sim/cache
sim/exec: base hw models sim/core sim/place sim/trace sim/cache sim/exec
sim/engine: base hw models sim/core sim/place sim/trace sim/cache sim/exec sim/engine
sim/real: base hw sim/core sim/real
sim/serve: base hw models sim/core sim/place sim/trace sim/cache sim/exec sim/engine sim/serve
sim/store: base sim/store
sim/run: base hw models sim sim/core sim/place sim/trace sim/cache sim/exec sim/engine sim/real sim/serve sim/store sim/run
sim/cmd: base hw models plots sim sim/core sim/place sim/trace sim/cache sim/exec sim/engine sim/real sim/serve sim/store sim/run sim/cmd'
arena_only='models sim/core sim/place sim/trace sim/cache sim/exec sim/engine'

list() {
	find . \( -name .git -o -path ./build -o -path ./shared \) -prune -o -type f "$@" -print | sed 's|^\./||' | sort
}

check_includes() {
	list \( -name '*.[ch]' -o -name '*.cu' \) | grep -E '^(base|hw|models|plots|sim)/' | rules=$rules arena_only=$arena_only awk '
	function folder(path) { return path ~ /\// ? substr(path, 1, match(path, /\/[^\/]*$/) - 1) : "" }
	# The line without comments and strings; `in_comment` is kept from line to line.
	function code_of(line,    code) {
		code = ""
		while (line != "") {
			if (in_comment) {
				if (!match(line, /\*\//))
					return code
				line = substr(line, RSTART + 2)
				in_comment = 0
			} else if (match(line, /\/\*|\/\/|"([^"\\]|\\.)*"|\047([^\047\\]|\\.)*\047/)) {
				token = substr(line, RSTART, 2)
				code = code substr(line, 1, RSTART - 1) " "
				if (token == "//")
					return code
				in_comment = token == "/*"
				line = substr(line, RSTART + (in_comment ? 2 : RLENGTH))
			} else {
				return code line
			}
		}
		return code
	}
	function check_include(included,    to) {
		to = folder(included)
		if (to == "") {
			# A generated header has no folder; one that lies beside the file must be named from the root.
			if ((dir "/" included) in exists)
				print file ":" n ": write \"" dir "/" included "\", the path from the root"
		} else if (index(" " may_include[dir] " ", " " to " ") == 0) {
			print file ":" n ": must not include " included " (" dir " may include: " may_include[dir] ")"
		}
	}
	function check_file(    line) {
		dir = folder(file)
		if (!(dir in may_include)) {
			print file ": folder " dir " has no rule in tests/layers.sh"
			return
		}
		in_comment = 0
		for (n = 1; (getline line < file) > 0; n++) {
			if (match(line, /^[ \t]*#[ \t]*include[ \t]*"[^"]*"/) ||
			    match(line, /^[ \t]*#[ \t]*include[ \t]*<(base|hw|models|plots|sim)\/[^>]*>/)) {
				line = substr(line, RSTART, RLENGTH - 1)
				sub(/^[^"<]*["<]/, "", line)
				check_include(line)
			} else if (dir in no_malloc && (line ~ /malloc|calloc|realloc|free|strdup/ || in_comment || line ~ /\/\*/) &&
			    (" " code_of(line)) ~ /[^A-Za-z0-9_](malloc|calloc|realloc|free|strdup)[ \t]*\(/) {
				print file ":" n ": allocates outside the arena: " line
			}
		}
		close(file)
	}
	BEGIN {
		n = split(ENVIRON["rules"], row, "\n")
		for (i = 1; i <= n; i++) {
			split(row[i], part, ": ")
			may_include[part[1]] = part[2]
		}
		n = split(ENVIRON["arena_only"], row, " ")
		for (i = 1; i <= n; i++)
			no_malloc[row[i]]
	}
	{ files[++n_files] = $0; exists[$0] }
	END {
		for (i = 1; i <= n_files; i++) {
			file = files[i]
			check_file()
		}
	}'
}

check_names() {
	list | grep -v -E '(^|/)(\.[^/]*|README\.md)$|^tests/(data|golden|fuzz/corpus)/' | awk '
	{ name = $0; sub(/.*\//, "", name) }
	name in seen { print $0 ": has the name of " seen[name] }
	{ seen[name] = $0 }'
}

check_promises() {
	list | grep -v -E '^tests/(data|golden|fuzz/corpus)/|^LICENSE$' | tr '\n' '\0' |
		xargs -0 grep -I -n -w -E 'TO''DO|FIX''ME|XX''X' -- /dev/null || :
}

complaints=$(check_includes; check_names; check_promises)
[ -z "$complaints" ] || {
	printf '%s\n' "$complaints" >&2
	exit 1
}
