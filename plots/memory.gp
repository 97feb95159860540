# memory.gp - what lies in each memory, a stacked bar a run, against the memory's capacity.
#
#   gnuplot -d -c memory.gp style.gp DATA OUT TITLE XLABEL YLABEL TERMINAL OPTIONS MEMORIES
#
# DATA has blocks, two blank lines between: labels of the bars (place "label"), names of the groups of bars
# (place "name"), and one for each memory with rows of
#   place  capacity  tops of weights, kv, activation, overhead  mark  arrow
# mark is the height of the sign that a run does not fit, arrow that of the sign that capacity is above the axis
# (NaN: none).
# OPTIONS are numbers in this order, 1 or 0 where they read like a question:
#   bars  left-x  right-x  longest label, upright (0: not)  groups (0: no names)
#   lines of the longest group name  more lines of XLABEL  marks?  arrows?  memories
# and for each memory: top-y  unit  capacity, to be written (0: it need not)
# MEMORIES are their names. YLABEL is unused.

data = ARG2; out = ARG3; title = ARG4; terminal = ARG7
option(i) = real(word(ARG8, i))
bars = int(option(1)); left = option(2); right = option(3); upright = int(option(4)); groups = int(option(5))
group_lines = int(option(6)); under = upright + 2.5 * option(7)
any_mark = int(option(8)); any_above = int(option(9)); panels = int(option(10))
load ARG1

parts = "weights KV activations overhead"
half = 0.4
stack = ""
do for [k=1:dumb?0:4] { stack = stack.fill(k, k == 1 ? 0 : k + 1, k + 2, word(parts, k)) }
set lmargin at screen (dumb ? 0.15 : 0.11)
set rmargin at screen 0.97
set xrange [left:right]
set x2range [left:right]
set xtics scale 0
set multiplot
do for [p=1:panels] {
	at = 8 + 3 * p
	block = p + 1
	top = option(at); unit = word(ARG8, at + 1); far = option(at + 2)
	last = p == panels
	set origin 0, panel_bottom(p)
	set size 1, panel_share(p)
	if (p == 1) { set title title offset 0, group_lines-1 } else { unset title }
	if (last) { set xlabel ARG5 }
	if (last) { set xtics scale 0 } else { unset xtics }
	if (last && upright) { set xtics rotate by 90 right }
	if (last) { set key on } else { unset key }
	set ylabel sprintf("%s (%s)", word(ARG9, p), unit)
	set yrange [0:top]
	unset label
	if (far > 0) { set label 1 sprintf("capacity %.4g %s", far, unit) at graph 0.99,0.93 right }
	if (p == 1 && groups) { set x2tics scale 0 } else { unset x2tics }
	plot for [i=1:last] data index 0 using 1:(0):xtic(2) with points pt -1 notitle, \
	     for [i=1:(p == 1 && groups)] data index 1 using 1:(0):x2tic(2) axes x2y1 with points pt -1 notitle, \
	     for [k=4:dumb?1:5:-1] data index p+1 using 1:(column(k+2)) with impulses lt k title word(parts, k), \
	     @stack \
	     data index p+1 using ($1-0.5):2:(1):(0) with vectors nohead lt 7 lw 2.5 dt 1 notitle, \
	     for [i=1:dumb] data index p+1 using 1:8:("^") with labels notitle, \
	     for [i=1:!dumb] data index p+1 using 1:8:(0):(0.06*top) with vectors filled lt 7 lw 1.5 dt 1 notitle, \
	     data index p+1 using 1:($7+0.04*top) with points lt 7 pt (dumb ? 24 : 2) ps 1.3 lw 2.5 notitle, \
	     for [i=1:last] keyentry with lines lt 7 lw 2.5 dt 1 title (any_above ? "capacity (".(dumb ? "^" : "↑")." above)" : "capacity"), \
	     for [i=1:last*any_mark] keyentry with points lt 7 pt (dumb ? 24 : 2) ps 1.3 lw 2.5 title "does not fit"
}
unset multiplot
