# throughput.gp - decode tokens a second over one key, a curve for each combination of the others.
#
#   gnuplot -d -c throughput.gp style.gp DATA OUT TITLE XLABEL YLABEL TERMINAL OPTIONS
#
# DATA has a block for each curve, two blank lines between: its name in quotes, then rows of
#   x  tok/s  low80  high80  upper_bound
# OPTIONS are numbers in this order, the last five 1 or 0:
#   curves  bottom-y  top-y  step-x (0: any)  n (every n-th point is marked)  bars  bound  lines  log-x  log-y

data = ARG2; out = ARG3; terminal = ARG7
set title ARG4
set xlabel ARG5
set ylabel ARG6
option(i) = real(word(ARG8, i))
curves = int(option(1)); bottom = option(2); top = option(3); step = option(4); nth = int(option(5))
bars = int(option(6)); bound = int(option(7)); lines = int(option(8))
logx = int(option(9)); logy = int(option(10))
load ARG1

if (logx) set logscale x 2
if (logy) set logscale y
set yrange [bottom:top]
if (step > 0) set xtics step
set autoscale xfix
set offsets graph 0.02, graph 0.02, 0, 0

# Characters have no room for more than the curves.
if (dumb) bars = 0; bound = 0
n_bars = bars * curves; n_bounds = bound * curves
style = lines ? "linespoints" : "points"
plot for [i=1:n_bounds] data index i-1 using 1:5 with lines lt i dt (2,4) lw 1.1 notitle, \
     for [i=1:n_bars] data index i-1 every nth::1 using 1:2:3:4 \
          with yerrorbars lt i dt 1 lw 1 pt -1 notitle, \
     for [i=1:curves] data index i-1 using 1:2 with @style lt i pointinterval nth title columnheader(1), \
     for [i=1:bound] keyentry with lines lc rgb "#404040" dt (2,4) lw 1.1 title "upper bound", \
     for [i=1:bars] keyentry with yerrorbars lc rgb "#404040" dt 1 lw 1 pt -1 title "80 % interval"
