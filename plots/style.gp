# style.gp - the one look of every figure. The template sets these and loads this:
#
#   terminal     "svg", "png", "pdf" or "dumb size W,H"
#   out          a file; unused for dumb
#   title
#   panels       one above the other
#   group_lines  lines of the names over the first panel
#   under        how many characters higher than a line what is under the last panel is
#
# A curve is told apart three ways: by a palette made for colour-blind eyes (Okabe and Ito 2008), by its point
# and by its dashes; a part of a bar by its colour, how dark it is and its pattern. So a figure survives a grey
# printer.

set encoding utf8
set datafile missing "NaN"
dumb = terminal[1:4] eq "dumb"

# Figures of several panels or long labels are higher, in points of svg.
label_room = 8.0 * under
height = 520 * (1 + 0.45 * (panels - 1)) + 0.8 * label_room

# Names and titles are data: "kv_type" must not become a subscript, hence noenhanced.
if (terminal eq "svg") \
	set terminal svg noenhanced size 840,height dynamic background "white" font "DejaVu Sans,14"
if (terminal eq "png") \
	set terminal pngcairo noenhanced size 1680,2*height fontscale 2 linewidth 2 pointscale 2 \
		font "DejaVu Sans,11"
if (terminal eq "pdf") \
	set terminal pdfcairo noenhanced size 17.5cm,(height*10.8/520)cm linewidth 1.5 font "DejaVu Sans,10.5"
if (dumb) eval "set terminal ".terminal." noenhanced mono"
if (!dumb) set output out

set linetype 1 lc rgb "#0072b2" lw 2 pt 7  ps 0.9 dt 1
set linetype 2 lc rgb "#d55e00" lw 2 pt 5  ps 0.9 dt (12,4)
set linetype 3 lc rgb "#009e73" lw 2 pt 9  ps 1.1 dt (6,3)
set linetype 4 lc rgb "#cc79a7" lw 2 pt 13 ps 1.1 dt (12,3,3,3)
set linetype 5 lc rgb "#56b4e9" lw 2 pt 6  ps 0.9 dt (3,3)
set linetype 6 lc rgb "#e69f00" lw 2 pt 4  ps 0.9 dt (12,3,3,3,3,3)
set linetype 7 lc rgb "#000000" lw 2 pt 8  ps 1.1 dt (20,4)
set linetype 8 lc rgb "#7f7f7f" lw 2 pt 12 ps 1.1 dt (6,3,2,3)
# The same colours again, other points and dashes.
set linetype 9 lc rgb "#0072b2" lw 2 pt 4  ps 0.9 dt (3,3)
set linetype 10 lc rgb "#d55e00" lw 2 pt 12 ps 1.1 dt 1
set linetype 11 lc rgb "#009e73" lw 2 pt 6  ps 0.9 dt (12,3,3,3)
set linetype 12 lc rgb "#cc79a7" lw 2 pt 5  ps 0.9 dt (20,4)
set linetype cycle 12

# Parts of bars. Solid is no pattern here: pdf would tile it. fill(k, first, last, title) is the part of a plot
# command that draws part k from column first (0: from 0) to column last of `block`.
array fill_p[8] = [0, 4, 0, 1, 0, 5, 0, 2]
array fill_c[8] = [0x0072b2, 0xd55e00, 0xe69f00, 0x007a5a, 0xcfeaf8, 0x9c3f78, 0x404040, 0x404040]
edge = "border lc rgb '#202020'"
fill_style(k) = fill_p[k] ? sprintf("pattern %d", fill_p[k]) : "solid"
fill(k, first, last, title) = sprintf("data index block using 1:%d:($1-half):($1+half):(%s):%d ", last, \
	first ? sprintf("column(%d)", first) : "0", last). \
	sprintf("with boxxyerror fs %s %s fc rgb %d lw 0.7 dt 1 title '%s', ", fill_style(k), edge, fill_c[k], title)

set border 3 lc rgb "#404040"
set tics nomirror out scale 0.6
set format "%h"
if (dumb) unset grid; else set grid back lc rgb "#c4c4c4" lw 0.7 dt 1
if (!dumb) set key outside bottom center horizontal Left reverse samplen 4 spacing 1.2 height 0.5
if (dumb) set key outside bottom center
if (dumb) do for [i=1:12] { set linetype i pt i } # shown as A, B, C...

# Marks for a logarithmic axis of few decades: set ytics @tics_125
tics_125 = "(1e-9"
do for [e=-6:7] { do for [m in "1 2 5"] { tics_125 = tics_125.sprintf(", %se%d", m, e) } }
tics_125 = tics_125.")"

# Where panel p of `panels` goes: set origin 0, panel_bottom(p); set size 1, panel_share(p). All have equal room
# for what they draw, the first more for the title and the last more for labels and the key.
line = dumb ? 1 : 20.0
if (dumb) height = real(terminal[strstrt(terminal, ",")+1:*])
head = (0.5 + group_lines) * line
do for [i=1:strlen(title)] { if (title[i:i] eq "\n") { head = head + line } }
foot = dumb ? 9 : 110 + label_room
panel_room = (height - head - foot) / panels
panel_share(p) = (panel_room + (p == 1) * head + (p == panels) * foot) / height
panel_bottom(p) = p == panels ? 0 : (foot + (panels - p) * panel_room) / height
