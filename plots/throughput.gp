# throughput.gp - tokens a second (or another metric of a run) over one key, a curve for each combination of
# the others.
#
#   gnuplot -d -c throughput.gp style.gp DATA OUT TITLE XLABEL YLABEL TERMINAL OPTIONS NAMES
#
# DATA has a block for each curve, two blank lines between: its name in quotes, then rows of
#   x  y  low80  high80  upper_bound
# and, for an axis of names, a last block of rows: 0, 1, 2…  "name"
# OPTIONS are numbers in this order, 1 or 0 where they read like a question:
#   curves  step-x (0: any)  n (every n-th point is marked)  lines?  log-x?  names (0: x is a number)  longest name aslant (0: not)
#   more rows of the key  panels
#   bottom-y  top-y  intervals?  bounds?  log-y?
# NAMES is unused.

data = ARG2; out = ARG3; title = ARG4; terminal = ARG7; group_lines = 1; panels = 1
option(i) = real(word(ARG8, i))
curves = int(option(1)); step = option(2); nth = int(option(3)); lines = int(option(4))
logx = int(option(5)); names = int(option(6)); aslant = int(option(7))
angle = names > 6 ? 60 : 35; under = aslant * sin(angle * pi / 180) + 2.5 * option(8)
bottom = option(10); top = option(11); bars = int(option(12)); bound = int(option(13)); logy = int(option(14))
load ARG1

set title title
set xlabel ARG5
set ylabel ARG6
if (logx) set logscale x 2
if (logy) set logscale y
if (logy && top / bottom < 500) set ytics @tics_125
set yrange [bottom:top]
if (step > 0) set xtics step
if (aslant) set xtics rotate by angle right
if (names) {
	set xrange [-0.5:names-0.5]
} else {
	set autoscale xfix
	set offsets graph 0.02, graph 0.02, 0, 0
}

# Characters have no room for more than the curves.
if (dumb) bars = 0; bound = 0
n_bars = bars * curves; n_bounds = bound * curves
style = lines ? "linespoints" : "points"
on_names = names > 0
half = 0.25 / curves # of a bound over a name
plot for [i=1:on_names] data index curves using 1:(bottom):xtic(2) with points pt -1 notitle, \
     for [i=1:n_bounds*!on_names] data index i-1 using 1:5 with lines lt i dt (2,4) lw 1.1 notitle, \
     for [i=1:n_bounds*on_names] data index i-1 using ($1-half):5:(2*half):(0) with vectors nohead lt i dt 1 lw 1.5 notitle, \
     for [i=1:n_bars] data index i-1 every nth::1 using 1:2:3:4 \
          with yerrorbars lt i dt 1 lw 1 pt -1 notitle, \
     for [i=1:curves] data index i-1 using 1:2 with @style lt i pointinterval nth title columnheader(1), \
     for [i=1:bound*!on_names] keyentry with lines lc rgb "#404040" dt (2,4) lw 1.1 title "upper bound", \
     for [i=1:bound*on_names] keyentry with lines lc rgb "#404040" dt 1 lw 1.5 title "upper bound", \
     for [i=1:bars] keyentry with yerrorbars lc rgb "#404040" dt 1 lw 1 pt -1 title "80 % interval"
