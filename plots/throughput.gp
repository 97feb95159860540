# throughput.gp - decode tokens a second over one key, a curve for each combination of the others.
#
#   gnuplot -d -c throughput.gp style.gp DATA OUT TITLE XLABEL YLABEL TERMINAL OPTIONS
#
# DATA has a block for each curve, two blank lines between: its name in quotes, then rows of
#   x  tok/s  low80  high80  upper_bound
# OPTIONS are numbers in this order:
#   curves  log-x  log-y  top-of-y  every (n-th point is marked)  bars  bound     (log-x, log-y, bars, bound: 1 or 0)

data = ARG2; out = ARG3; terminal = ARG7
set title ARG4
set xlabel ARG5
set ylabel ARG6
flag(i) = int(word(ARG8, i))
curves = flag(1); logx = flag(2); logy = flag(3); top = real(word(ARG8, 4))
nth = flag(5); bars = flag(6); bound = flag(7)
load ARG1

if (logx) set logscale x 2
if (logy) set logscale y
if (logy) set yrange [*:top]; else set yrange [0:top]
set autoscale xfix
set offsets graph 0.02, graph 0.02, 0, 0

# Characters have no room for more than the curves.
n_bars = bars && !dumb ? curves : 0
n_bounds = bound && !dumb ? curves : 0
plot for [i=1:n_bounds] data index i-1 using 1:5 with lines lt i dt (2,4) lw 1.1 notitle, \
     for [i=1:n_bars] data index i-1 every nth using 1:2:3:4 with yerrorbars lt i dt 1 lw 1 ps 0 notitle, \
     for [i=1:curves] data index i-1 using 1:2 with linespoints lt i pointinterval nth title columnheader(1), \
     for [i=1:n_bounds > 0] keyentry with lines lc rgb "#404040" dt (2,4) lw 1.1 title "upper bound"
