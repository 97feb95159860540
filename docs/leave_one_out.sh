#!/bin/sh
# leave_one_out.sh OFFSIM CORPUS.csv [FOLDER]: what `make leave-one-out` runs. Writes leave-one-out.md into FOLDER (default: docs).
set -eu
out=${3:-docs}/leave-one-out.md
trap 'rm -f "$out.new"' EXIT
{
	cat <<'END'
# Each source left out of the fitting in turn

A few constants of `hw/kernels` were fitted on published rows (`hw/fitted.yaml`). Here they are fitted again, on all sources of
the corpus but one, and that one's rows are predicted with what the others say; so for every source. Where the errors are those
of a fit on all rows, nothing was fitted to its own test. All other constants come from outside the corpus. `make leave-one-out
CORPUS=open.csv` writes this file anew.

END
	"$1" validate "$2" --leave-one-out --markdown
} >"$out.new"
mv "$out.new" "$out"
