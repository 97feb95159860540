#!/bin/sh
# offsim plot: figures that are whole or not there at all, and messages when they cannot be drawn.
. tests/cli/tap.sh

command -v gnuplot >/dev/null || skip_all 'no gnuplot'

db=$tmp/results.db
out=$tmp/out
mkdir "$out" "$tmp/work"
TMPDIR=$tmp/work
export TMPDIR

plot() { # STATUS ARGUMENT...: into $tmp/stdout and $tmp/stderr
	want=$1
	shift
	fails "$want" "$OFFSIM" plot "$@" >"$tmp/stdout" 2>"$tmp/stderr" || { cat "$tmp/stderr"; return 1; }
}

refuses() { # STATUS TEXT ARGUMENT...: no figure, nothing left behind, and stderr is one line with the text
	status=$1
	text=$2
	shift 2
	plot "$status" "$@" || return 1
	stderr_has "$text" && test "$(wc -l <"$tmp/stderr")" -eq 1 || return 1
	test ! -s "$tmp/stdout" && nothing_left
}

nothing_left() { # no figure and no temporary file
	left=$(find "$out" "$tmp/work" -mindepth 1)
	test -z "$left" || { echo "$left"; return 1; }
}

begins() { # FILE TEXT
	head -c 200 "$1" | grep -aqF -e "$2"
}

draws() { # SUFFIX MAGIC
	plot 0 throughput --db "$db" -o "$out/f.$1" && begins "$out/f.$1" "$2" || return 1
	rm "$out/f.$1"
	nothing_left
}

stderr_has() { # TEXT
	grep -qF -e "$1" "$tmp/stderr" || { cat "$tmp/stderr"; return 1; }
}

fake_gnuplot() { # BODY: a program of that name, first in the PATH
	mkdir -p "$tmp/bin"
	printf '#!/bin/sh\n%s\n' "$1" >"$tmp/bin/gnuplot"
	chmod +x "$tmp/bin/gnuplot"
}

with_fake() { # COMMAND...
	(PATH=$tmp/bin:$PATH && "$@")
}

fill() { # two curves of three layers counts each, and one run that does not fit
	for gen in 3 4; do
		for layers in 0 16 32; do
			"$OFFSIM" run scenarios/headline.yaml --db "$db" --set flags.gpu-layers=$layers \
				--set machine.gpu0.link.gen=$gen || return 1
		done
	done
	fails 3 "$OFFSIM" run scenarios/headline.yaml --db "$db" --set flags.gpu-layers=80 \
		--set machine.gpu0.link.gen=4
}

ok 'runs to draw' fill
sum=$(cksum <"$db")

ok 'svg' draws svg '<svg'
ok 'png' draws png 'PNG'
ok 'pdf' draws pdf '%PDF-'
ok 'suffix in capitals' draws SVG '<svg'
ok 'runs that do not fit are counted' stderr_has 'left out runs that do not fit in memory: 1'

two_curves() {
	plot 0 throughput --db "$db" -o "$out/f.svg" || return 1
	for text in 'gen 3' 'gen 4' 'flags.gpu-layers (layers on the GPU)' 'upper bound' 'llama-3.1-70b'; do
		grep -qF "$text" "$out/f.svg" || { echo "no $text"; return 1; }
	done
}
ok 'axis, curves and title by themselves' two_curves

same_again() {
	cp "$out/f.svg" "$tmp/first.svg"
	plot 0 throughput --db "$db" -o "$out/f.svg" --x flags.gpu-layers --series machine.gpu0.link.gen &&
		cmp "$out/f.svg" "$tmp/first.svg"
}
ok 'the same when asked for, over the old figure' same_again

other_series() {
	plot 0 throughput --db "$db" -o "$out/f.svg" --series model &&
		stderr_has 'they differ in machine.gpu0.link.gen' && ! grep -qF 'gen 3' "$out/f.svg"
}
ok 'runs that fall together are named' other_series

odd_title() {
	title='it'\''s "a" `id` $HOME \n %d <b> & x_1^{2}'
	plot 0 throughput --db "$db" -o "$out/f.svg" --title "$title" || return 1
	sed "s/&lt;/</g; s/&gt;/>/g; s/&quot;/\"/g; s/&#39;/'/g; s/&amp;/\\&/g" "$out/f.svg" | grep -qF "$title"
}
ok 'a title is text, not commands' odd_title

odd_paths() {
	mkdir "$tmp/a b"
	cp "$db" "$tmp/a b/x'y#.db"
	odd="$tmp/a b/|f'\$(id).svg"
	plot 0 throughput --db "$tmp/a b/x'y#.db" -o "$odd" && begins "$odd" '<svg' &&
		test "$(find "$tmp/a b" -type f | wc -l)" -eq 2
}
ok 'names of files are names, not commands' odd_paths
rm "$out/f.svg"

in_characters() {
	plot 0 throughput --db "$db" --terminal && grep -qF 'Decode throughput' "$tmp/stdout" &&
		grep -q 'A.*gen 3\|gen 3.*A' "$tmp/stdout" && nothing_left
}
ok 'in characters' in_characters

# ---- predicted against measured ----

accuracy_row() { # METRIC MEASURED PREDICTED MARK
	printf '{"id": "x", "metric": "%s", "measured": %s, "predicted": %s, "mark": "%s"}' "$@"
}

accuracy() { # panels of the metrics that are there, up to a power of ten that has no exponent; rows without a mark are none
	printf '{"rows": [%s,\n%s,\n%s,\n%s]}\n' "$(accuracy_row decode 2.385 3.1 Q)" "$(accuracy_row prefill 104321 1203456 Q)" \
		"$(accuracy_row decode 7.7 12.5 'R"')" "$(accuracy_row e2e 1 null '')" | sed 's/R""/R\\""/' >"$tmp/v.json"
	for form in svg:'<svg' png:PNG pdf:'%PDF-'; do
		plot 0 accuracy --validation "$tmp/v.json" -o "$out/f.${form%%:*}" && begins "$out/f.${form%%:*}" "${form#*:}" || return 1
	done
	for text in '>Q<' '>decode<' '>prefill<' 'measured (tok/s)' '>10M<'; do
		grep -qF "$text" "$out/f.svg" || { echo "no $text"; return 1; }
	done
	! grep -qF '>e2e<' "$out/f.svg" && rm "$out"/f.*
}

accuracy_refuses() {
	for text in '{"rows": 3}' '[]' '{"rows": [{"metric": "speed", "mark": "A"}]}' '{"rows": [{"metric": "decode", "mark": "A"}]}' '{"rows": []}' '{'; do
		echo "$text" >"$tmp/v.json"
		refuses 2 "v.json" accuracy --validation "$tmp/v.json" -o "$out/f.svg" || { echo "$text"; return 1; }
	done
	refuses 2 "a figure of kind 'accuracy' needs --validation FILE" accuracy -o "$out/f.svg" &&
		refuses 2 "a figure of kind 'memory' is of a database" memory --validation "$tmp/v.json" -o "$out/f.svg" &&
		refuses 2 "cannot open '$tmp/none.json'" accuracy --validation "$tmp/none.json" -o "$out/f.svg" &&
		refuses 2 "'$tmp' is a folder" accuracy --validation "$tmp" -o "$out/f.svg" || return 1
	for value in 1e-300 1e300; do
		echo "{\"rows\": [{\"metric\": \"decode\", \"mark\": \"A\", \"predicted\": 10, \"measured\": $value}]}" >"$tmp/v.json"
		refuses 2 "a rate is beyond all measure" accuracy --validation "$tmp/v.json" -o "$out/f.svg" || return 1
	done
}

# Powers of ten that a number is written with an exponent for.
accuracy_of_any_size() {
	echo '{"rows": [{"metric": "ttft", "mark": "A", "predicted": 2e-8, "measured": 3e-9},
		{"metric": "decode", "mark": "A", "predicted": 4e8, "measured": 1}]}' >"$tmp/v.json"
	plot 0 accuracy --validation "$tmp/v.json" -o "$out/f.svg" && begins "$out/f.svg" '<?xml' && rm "$out"/f.*
}

ok 'predicted against measured' accuracy
ok 'no validation' accuracy_refuses
ok 'of rates of any size' accuracy_of_any_size

# ---- the other kinds ----

draws_kind() { # KIND TEXT...: in each form, and the svg has the texts
	kind=$1
	shift
	for form in svg:'<svg' png:PNG pdf:'%PDF-'; do
		plot 0 "$kind" --db "$db" -o "$out/f.${form%%:*}" && begins "$out/f.${form%%:*}" "${form#*:}" ||
			return 1
	done
	for text; do
		grep -qF "$text" "$out/f.svg" || { echo "no $text"; return 1; }
	done
	rm "$out/f.svg" "$out/f.png" "$out/f.pdf"
	plot 0 "$kind" --db "$db" --terminal && grep -qF 'gen 3' "$tmp/stdout" && nothing_left
}
ok 'latency' draws_kind latency 'time to first token (s)' 'time per output token (s)' 'gen 4' '80 % interval'
ok 'memory' draws_kind memory 'gpu0 (GiB)' 'ram (GiB)' weights KV activations overhead capacity 'does not fit' \
	'gen 4' 'flags.gpu-layers (layers on the GPU)'
ok 'utilisation' draws_kind utilisation 'sets the pace (%)' gpu0.link.h2d gpu0.compute busy utilised 'gen 4'

memory_leaves_none_out() {
	plot 0 memory --db "$db" -o "$out/f.svg" && test ! -s "$tmp/stderr" && grep -qF '>80<' "$out/f.svg"
}
ok 'memory shows runs that do not fit' memory_leaves_none_out

other_metric() {
	plot 0 throughput --db "$db" -o "$out/f.svg" --y prefill_tok_s &&
		grep -qF 'prefill throughput (tok/s)' "$out/f.svg" && ! grep -qF 'upper bound' "$out/f.svg" &&
		plot 0 latency --db "$db" -o "$out/f.svg" --y total_s && grep -qF 'total time (s)' "$out/f.svg" &&
		! grep -qF 'token (s)' "$out/f.svg"
}
ok 'another metric' other_metric

by_name() {
	"$OFFSIM" run scenarios/headline.yaml --db "$tmp/names.db" --set quant=q8_0 || return 1
	"$OFFSIM" run scenarios/headline.yaml --db "$tmp/names.db" --set quant=q4_0 || return 1
	for kind in throughput latency memory utilisation; do
		plot 0 $kind --db "$tmp/names.db" -o "$out/f.svg" || return 1
		# in the order in which they were stored
		grep -o '>q[0-9]_[0-9]<' "$out/f.svg" | tr -d '\n' | grep -qx '>q8_0<>q4_0<' ||
			{ grep -o '>q[0-9]_[0-9]<' "$out/f.svg"; return 1; }
		plot 0 $kind --db "$tmp/names.db" --terminal || return 1
	done
}
ok 'names on the x axis' by_name

one_run() {
	"$OFFSIM" run scenarios/headline.yaml --db "$tmp/one.db" || return 1
	plot 0 memory --db "$tmp/one.db" -o "$out/f.svg" && plot 0 utilisation --db "$tmp/one.db" -o "$out/f.svg"
}
ok 'one run' one_run
rm -f "$out/f.svg"

idle() { # GPUs that compute nothing have no panel; RAM has, in whichever run it is used
	"$OFFSIM" run scenarios/headline.yaml --db "$tmp/idle.db" --set machine=server-8xh100 || return 1
	plot 0 memory --db "$tmp/idle.db" -o "$out/f.svg" || return 1
	stderr_has 'not drawn, as they hold overhead alone: gpu1, gpu2, gpu3, gpu4, gpu5, gpu6, gpu7, ram' &&
		grep -qF 'gpu0 (GiB)' "$out/f.svg" && ! grep -qE '(gpu1|ram) \(' "$out/f.svg" || { cat "$tmp/stderr"; return 1; }
	"$OFFSIM" run scenarios/headline.yaml --db "$tmp/idle.db" && plot 0 memory --db "$tmp/idle.db" -o "$out/f.svg" &&
		grep -qF 'ram (GiB)' "$out/f.svg" || return 1
	command -v sqlite3 >/dev/null || return 0
	sqlite3 "$tmp/idle.db" "update memory_use set memory = char(27) || '[2J' || memory" &&
		plot 0 memory --db "$tmp/idle.db" -o "$out/f.svg" && stderr_has 'alone: ?[2Jgpu1' &&
		! grep -q "$(printf '\033')" "$tmp/stderr" "$out/f.svg"
}
ok 'memories of overhead alone' idle
rm -f "$out/f.svg"

no_fit_only() {
	fails 3 "$OFFSIM" run scenarios/headline.yaml --db "$tmp/nofit.db" --set flags.gpu-layers=80 || return 1
	for kind in throughput latency utilisation; do
		refuses 2 'nothing to draw: of 1 run' $kind --db "$tmp/nofit.db" -o "$out/f.svg" --x batch || return 1
	done
	plot 0 memory --db "$tmp/nofit.db" -o "$out/f.svg" && grep -qF 'does not fit' "$out/f.svg" &&
		rm "$out/f.svg"
}
ok 'only runs that do not fit' no_fit_only

no_runs() {
	cp "$tmp/nofit.db" "$tmp/none-yet.db"
	sqlite3 "$tmp/none-yet.db" 'delete from run_param; delete from memory_use; delete from run_time; delete from run'
	for kind in throughput latency memory utilisation; do
		refuses 2 'holds no runs yet' $kind --db "$tmp/none-yet.db" -o "$out/f.svg" || return 1
	done
}
if command -v sqlite3 >/dev/null; then ok 'no runs' no_runs; fi

ok 'unknown key' refuses 2 "no key 'flags.gpu-layer' in '$db'; did you mean 'flags.gpu-layers'?" \
	throughput --db "$db" -o "$out/f.svg" --x flags.gpu-layer
ok 'unknown key, none near' refuses 2 'there are: flags.gpu-layers, machine.gpu0.link.gen' \
	throughput --db "$db" -o "$out/f.svg" --series zzzz
ok 'unknown metric' refuses 2 "no metric 'prefil_tok_s'; did you mean 'prefill_tok_s'?" \
	throughput --db "$db" -o "$out/f.svg" --y prefil_tok_s
ok 'a metric where there is none' refuses 2 "has no --y" memory --db "$db" -o "$out/f.svg" --y ttft_s
ok 'unknown kind' refuses 2 "no figure of kind 'thruput'" thruput --db "$db" -o "$out/f.svg"
ok 'no kind' refuses 2 'expected one kind' --db "$db" -o "$out/f.svg"
ok 'no output' refuses 2 'where to?' throughput --db "$db"
ok 'two outputs' refuses 2 'not both' throughput --db "$db" -o "$out/f.svg" --terminal
ok 'unknown suffix' refuses 2 'must end in .svg, .png or .pdf' throughput --db "$db" -o "$out/f.jpg"
ok 'unknown option' refuses 2 "did you mean 'series'?" throughput --sereis x
ok 'no database' refuses 1 'No such file' throughput --db "$tmp/none.db" -o "$out/f.svg"
ok 'not a database' refuses 1 'is not a results database' throughput --db Makefile -o "$out/f.svg"
: >"$tmp/empty.db"
ok 'an empty file' refuses 1 'has no tables of offsim' throughput --db "$tmp/empty.db" -o "$out/f.svg"
ok 'no folder for the figure' refuses 1 'No such file' throughput --db "$db" -o "$out/none/f.svg"

into_folder() {
	mkdir "$tmp/folder.svg"
	refuses 1 'it is a folder' throughput --db "$db" -o "$tmp/folder.svg"
}
ok 'a folder for a figure' into_folder

no_gnuplot() { # with nothing else in the PATH
	mkdir -p "$tmp/nothing"
	(PATH=$tmp/nothing && exec "$OFFSIM" plot throughput --db "$db" -o "$out/f.svg") 2>"$tmp/stderr"
	test $? -eq 1 && stderr_has 'gnuplot is not installed or not in PATH' && nothing_left
}
ok 'gnuplot missing' no_gnuplot

fake_gnuplot 'echo >&2; echo "no such terminal" >&2; echo more >&2; exit 3'
ok 'gnuplot failing' with_fake refuses 1 'gnuplot failed with exit status 3: no such terminal' \
	throughput --db "$db" -o "$out/f.svg"

fake_gnuplot 'kill -SEGV $$'
ok 'gnuplot dying' with_fake refuses 1 'gnuplot was killed by signal 11' throughput --db "$db" -o "$out/f.svg"

fake_gnuplot 'echo "<svg>" >"$6"'
ok 'gnuplot ending early' with_fake refuses 1 "did not write all of '$out/f.svg'" \
	throughput --db "$db" -o "$out/f.svg"

keeps_the_old() {
	echo old >"$out/f.svg"
	with_fake plot 1 throughput --db "$db" -o "$out/f.svg" && test "$(cat "$out/f.svg")" = old &&
		test "$(find "$out" -type f | wc -l)" -eq 1
	kept=$?
	rm "$out/f.svg"
	return $kept
}
ok 'a figure that was there outlives one that failed' keeps_the_old

fake_gnuplot 'head -c 100000 /dev/zero | tr "\0" x >&2; exit 1'
ok 'gnuplot talking on and on' with_fake refuses 1 'exit status 1: xxx' throughput --db "$db" -o "$out/f.svg"

no_tmpdir() {
	(TMPDIR=$tmp/none && refuses 1 "cannot make a folder for the data in '$tmp/none'" \
		throughput --db "$db" -o "$out/f.svg")
}
ok 'no TMPDIR' no_tmpdir

keep() { # the command that is printed draws the same figure
	plot 0 throughput --db "$db" -o "$out/f.svg" --keep --title "it's" || return 1
	mv "$out/f.svg" "$tmp/kept.svg"
	sed -n 's/.*to draw it again: //p' "$tmp/stderr" >"$tmp/again"
	sh "$tmp/again" && cmp "$out/f.svg" "$tmp/kept.svg" && rm -r "$out/f.svg" "$TMPDIR"/offsim-plot-* &&
		nothing_left
}
ok 'what is kept draws the same' keep

untouched() {
	test "$(cksum <"$db")" = "$sum" && test ! -e "$db-wal" && test ! -e "$db-shm"
}
ok 'the database is as it was' untouched

finish
