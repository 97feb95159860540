#!/bin/sh
# accuracy.sh OFFSIM CORPUS.csv [FOLDER]: what `make docs-accuracy` runs. Predicts every row of the corpus, and writes accuracy.md and
# accuracy.svg into FOLDER (default: docs).
set -eu
offsim=$1
corpus=$2
out=${3:-docs}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
family=llama.cpp,ik_llama.cpp,ollama,ktransformers,llama-cpp-python,ds4,exllamav2,exllamav3

"$offsim" validate "$corpus" --json >"$tmp/all.json"
"$offsim" validate "$corpus" --worst 10 --reasons "${0%/*}/accuracy-reasons.csv" --markdown >"$tmp/all.md"
"$offsim" validate "$corpus" --engine "$family" --markdown >"$tmp/family.md"
{
	cat <<'END'
# Accuracy

Predictions held against published measurements. `make docs-accuracy CORPUS=open.csv` writes this file and its figure anew;
`offsim validate --help` says what the words mean. Groups (one owner's machine or thread) are weighted alike, tiers A and B are
scored. Nothing is set for a row or a group; a few constants of `hw/kernels` were fitted on rows of this corpus and say so in
their source, so these errors are not held out; `leave-one-out.md` has those with each source left out of the fitting in turn.

![Predicted against measured, a panel for each metric](accuracy.svg)

*Each letter is a group, named in the last table. The line is predicted = measured, the dashed ones twice and half of it.*

## All engines

END
	sed -n '1,/rows ran/p' "$tmp/all.md"
	printf '\n## llama.cpp and its relatives\n\n'
	sed -n '1,/rows ran/p' "$tmp/family.md"
	printf '\n## The ten worst rows\n\nBy how many times they are off, either way; why, as far as known (`docs/accuracy-reasons.csv`).\n\n'
	sed -n '/^| row /,/^$/p' "$tmp/all.md"
	printf '## Groups\n\n'
	sed -n '/^| mark /,$p' "$tmp/all.md"
} >"$tmp/accuracy.md"
"$offsim" plot accuracy --validation "$tmp/all.json" -o "$out/accuracy.svg"
mv "$tmp/accuracy.md" "$out/accuracy.md"
