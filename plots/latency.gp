# latency.gp - time to the first token, and below it time per output token, over one key.
#
#   gnuplot -d -c latency.gp style.gp DATA OUT TITLE XLABEL YLABEL TERMINAL OPTIONS YLABEL2
#
# DATA and OPTIONS are those of throughput.gp; with two panels the second's curves follow the first's in DATA,
# and its five numbers theirs in OPTIONS. There are no bounds.

data = ARG2; out = ARG3; title = ARG4; terminal = ARG7; group_lines = 1
option(i) = real(word(ARG8, i))
curves = int(option(1)); step = option(2); nth = int(option(3)); lines = int(option(4))
logx = int(option(5)); names = int(option(6)); aslant = int(option(7)); panels = int(option(9))
angle = names > 6 ? 60 : 35; under = aslant * sin(angle * pi / 180) + 2.5 * option(8)
load ARG1

if (logx) set logscale x 2
if (step > 0) set xtics step
if (names) {
	set xrange [-0.5:names-0.5]
} else {
	set autoscale xfix
	set offsets graph 0.02, graph 0.02, 0, 0
}
style = lines ? "linespoints" : "points"
on_names = names > 0
intervals = 0

set lmargin at screen (dumb ? 0.15 : 0.11)
set rmargin at screen 0.97
set multiplot
do for [p=1:panels] {
	at = 5 + 5 * p
	bottom = option(at); top = option(at + 1); bars = dumb ? 0 : int(option(at + 2)); logy = int(option(at + 4))
	intervals = intervals || bars
	last = p == panels
	first = (p - 1) * curves
	n_bars = bars * curves
	set origin 0, panel_bottom(p)
	set size 1, panel_share(p)
	if (p == 1) { set title title } else { unset title }
	if (last) { set xlabel ARG5 }
	set xtics format (last ? "%h" : "")
	if (aslant && last) { set xtics rotate by angle right }
	if (on_names && !last) { unset xtics }
	if (on_names && last) { set xtics nomirror }
	if (last) { set key on } else { unset key }
	set ylabel (p == 1 ? ARG6 : ARG9)
	if (logy) { set logscale y } else { unset logscale y }
	if (logy && top / bottom < 500) { set ytics @tics_125 } else { set ytics autofreq }
	set yrange [bottom:top]
	plot for [i=1:on_names*last] data index panels*curves using 1:(bottom):xtic(2) \
	          with points pt -1 notitle, \
	     for [i=1:n_bars] data index first+i-1 every nth::1 using 1:2:3:4 \
	          with yerrorbars lt i dt 1 lw 1 pt -1 notitle, \
	     for [i=1:curves] data index first+i-1 using 1:2 with @style lt i pointinterval nth \
	          title columnheader(1), \
	     for [i=1:last*intervals] keyentry with yerrorbars lc rgb "#404040" dt 1 lw 1 pt -1 \
	          title "80 % interval"
}
unset multiplot
