# timeline.gp - when each resource was in use, over a few steps of a run; a panel a run.
#
#   gnuplot -d -c timeline.gp style.gp DATA OUT TITLE XLABEL YLABEL TERMINAL OPTIONS NAMES
#
# DATA has blocks, two blank lines between. For each run one with rows of
#   time  "name"                (the first at 0 with the name of the run, or "", then where each step ends)
# and then one for each resource with rows of
#   begin  end  busy            (milliseconds, milliseconds, share of the row in which something was on it)
#   time  "mark"              (for characters)
# OPTIONS are numbers: runs, and for each run its length, its resources, and the percentage of the time in which each
# was in use. NAMES are those of the resources, run after run. YLABEL is unused.

data = ARG2; out = ARG3; title = ARG4; terminal = ARG7; under = -4
at = 1
option(i) = real(word(ARG8, i))
panels = int(option(1)); group_lines = panels > 1 ? 2 : 1
load ARG1

set lmargin at screen (dumb ? 0.2 : 0.16)
set rmargin at screen (dumb ? 0.9 : 0.91)
unset grid
unset key
set xtics scale 0.4
set border 0
percent(x) = x < 0.05 ? "< 0.1 %%" : sprintf("%.1f %%%%", x)
block = 0; name = 0
set multiplot
do for [p=1:panels] {
	end = option(at+1); lanes = int(option(at+2))
	set origin 0, panel_bottom(p)
	set size 1, panel_share(p)
	if (p == 1) { set title title offset 0, panels > 1 ? 0.3 : 0 } else { unset title }
	if (p == panels) { set xlabel ARG5 } else { unset xlabel }
	set xrange [0:end]
	set yrange [0:lanes+0.2]
	set y2range [0:lanes+0.2]
	set ytics scale 0 ("" 0)
	set y2tics scale 0 ("" 0)
	do for [l=1:lanes] {
		set ytics add (word(ARG9, name+l) lanes-l+0.42)
		set y2tics add (percent(option(at+2+l)) lanes-l+0.42)
	}
	first = block
	if (dumb) {
		plot for [l=1:lanes] data index first+l using 1:(lanes-l+0.42):2 with labels, \
		     data index first using 1:(lanes+0.2):2 with labels left
	} else {
		plot for [l=1:lanes] "+" using (end/2):(lanes-l):(0):(end):(lanes-l):(lanes-l+0.84) every ::0::0 \
		          with boxxyerror fs solid noborder fc rgb "#ececec", \
		     for [l=1:lanes] data index first+l using 1:(lanes-l):1:2:(lanes-l):(lanes-l+0.84*$3) \
		          with boxxyerror fs solid border lc rgb "#20435c" lw 0.6 dt 1 fc rgb "#20435c", \
		     data index first using 1:(lanes+0.1) every ::1 with impulses lc rgb "#404040" lw 1 dt (4,3), \
		     data index first using 1:(lanes+0.2):2 with labels left offset 0,0.4
	}
	at = at + 2 + lanes; block = block + 1 + lanes; name = name + lanes
}
unset multiplot
