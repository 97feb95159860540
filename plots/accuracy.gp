# accuracy.gp - predicted against measured, a panel a metric, two beside each other; each point is the mark of its group.
#
#   gnuplot -d -c accuracy.gp style.gp DATA OUT TITLE XLABEL YLABEL TERMINAL OPTIONS NAMES
#
# DATA has a block for each panel, two blank lines between, with rows of
#   measured  predicted  "mark"
# OPTIONS are numbers in this order: metrics, then of each the ends of both axes.
# NAMES are those of the metrics.

data = ARG2; out = ARG3; title = ARG4; terminal = ARG7; group_lines = 0
option(i) = real(word(ARG8, i))
metrics = int(option(1)); panels = (metrics + 1) / 2; under = 4.0 * panels
load ARG1

unit(name) = name eq "ttft" ? "s" : "tok/s"
set multiplot title title
columns = metrics > 1 ? 2 : 1
set logscale xy
set grid
unset key
top = 1 - (dumb ? 1 : 1.5) * head / height
do for [m=1:metrics] {
	column = (m - 1) % 2; row = (m - 1) / 2
	low = option(2*m); high = option(2*m+1)
	set origin column / real(columns), top * (1 - (row + 1.0) / panels)
	set size 1.0 / columns, top / panels
	set xrange [low:high]
	set yrange [low:high]
	set format (low >= 1 ? "%.0s%c" : "%g") # 100k, but 0.01
	set label 1 word(ARG9, m) at graph 0.03, graph 0.95
	set xlabel ARG5." (".unit(word(ARG9, m)).")"
	set ylabel ARG6." (".unit(word(ARG9, m)).")"
	if (dumb) {
		plot x with dots notitle, data index m-1 using 1:2:3 with labels notitle
	} else {
		plot x with lines lc rgb "#404040" lw 1.2 dt 1 notitle, \
		     2 * x with lines lc rgb "#808080" lw 1 dt (6,3) notitle, \
		     x / 2 with lines lc rgb "#808080" lw 1 dt (6,3) notitle, \
		     data index m-1 using 1:2:3 with labels font ",9" tc rgb "#003a5c" notitle
	}
}
unset multiplot
