# utilisation.gp - what sets the pace of each run, and below it how busy each resource is.
#
#   gnuplot -d -c utilisation.gp style.gp DATA OUT TITLE XLABEL YLABEL TERMINAL OPTIONS NAMES
#
# DATA has blocks, two blank lines between: labels of the bars (place "label"), names of the groups of bars
# (place "name"), the shares of the time in which each resource set the pace (place, tops of the parts in %),
# and one for each resource with rows of
#   place  busy  utilisation      (shares of the time and of the capacity, 0 to 1)
# OPTIONS are numbers in this order:
#   bars  left-x  right-x  longest label, upright (0: not)  groups (0: no names)
#   lines of the longest group name  more lines of XLABEL  parts  resources
# NAMES are those of the parts, then of the resources. YLABEL is unused.

data = ARG2; out = ARG3; title = ARG4; terminal = ARG7; panels = 2
option(i) = real(word(ARG8, i))
bars = int(option(1)); left = option(2); right = option(3); upright = int(option(4)); groups = int(option(5))
group_lines = int(option(6)); under = upright + 2.5 * option(7)
parts = int(option(8)); lanes = int(option(9))
load ARG1

half = 0.4
block = 2
stack = ""
do for [k=1:dumb?0:parts] { stack = stack.fill(k, k == 1 ? 0 : k, k + 1, word(ARG9, k)) }
set lmargin at screen (dumb ? 0.22 : 0.17)
set rmargin at screen 0.97
set xrange [left:right]
set x2range [left:right]
set xtics scale 0
if (groups) set x2tics scale 0
set multiplot

set origin 0, panel_bottom(1)
set size 1, panel_share(1)
set title title offset 0, group_lines-1
set ylabel "sets the pace (%)"
set yrange [0:100]
unset xtics
plot for [i=1:groups>0] data index 1 using 1:(0):x2tic(2) axes x2y1 with points pt -1 notitle, \
     for [k=parts:dumb?1:parts+1:-1] data index 2 using 1:(column(k+1)) with impulses lt k title word(ARG9, k), \
     @stack NaN notitle

set origin 0, panel_bottom(2)
set size 1, panel_share(2)
unset title
unset x2tics
set xlabel ARG5
set xtics scale 0
if (upright) set xtics rotate by 90 right
unset ylabel
set label "each lane from 0 to 100 %".(dumb ? ", lines: busy" : "") at graph 0, graph 1.05
set yrange [0:lanes]
set ytics scale 0 ("" 0)
unset grid
do for [l=1:lanes] { set ytics add (word(ARG9, parts+l) lanes-l+0.4) }
if (dumb) {
	plot data index 0 using 1:(0):xtic(2) with points pt -1 notitle, \
	     for [l=1:lanes] data index 2+l using 1:(lanes-l):(0):(0.85*$2) with vectors nohead lt 7 notitle, \
	     for [l=1:lanes] data index 2+l using 1:(lanes-l+0.85*$3) with points pt 21 notitle, \
	     keyentry with points pt 21 title "utilised (of the capacity)"
} else {
	plot data index 0 using 1:(0):xtic(2) with points pt -1 notitle, \
	     for [l=1:lanes] data index 2+l using 1:(lanes-l):($1-half):($1+half):(lanes-l):(lanes-l+0.85) \
	          with boxxyerror fs solid noborder fc rgb "#f0f0f0" notitle, \
	     for [l=1:lanes] data index 2+l using 1:(lanes-l):($1-half):($1+half):(lanes-l):(lanes-l+0.85*$2) \
	          with boxxyerror fs solid @edge lw 0.7 dt 1 fc rgb "#c9d9e6" notitle, \
	     for [l=1:lanes] data index 2+l using 1:(lanes-l):($1-half):($1+half):(lanes-l):(lanes-l+0.85*$3) \
	          with boxxyerror fs solid @edge lw 0.7 dt 1 fc rgb "#20435c" notitle, \
	     keyentry with boxes fs solid @edge lw 0.7 dt 1 fc rgb "#c9d9e6" title "busy (of the time)", \
	     keyentry with boxes fs solid @edge lw 0.7 dt 1 fc rgb "#20435c" title "utilised (of the capacity)"
}
unset multiplot
