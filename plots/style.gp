# style.gp - the one look of every figure. The template sets `terminal` ("svg", "png", "pdf" or
# "dumb size W,H") and `out` (a file; unused for dumb) and loads this first.
#
# A curve is told apart three ways: by a palette made for colour-blind eyes (Okabe and Ito 2008), by its point
# and by its dashes; so a figure survives a grey printer.

set encoding utf8
set datafile missing "NaN"
dumb = terminal[1:4] eq "dumb"

# Names and titles are data: "kv_type" must not become a subscript, hence noenhanced.
if (terminal eq "svg") \
	set terminal svg noenhanced size 840,520 dynamic background "white" font "DejaVu Sans,14"
if (terminal eq "png") \
	set terminal pngcairo noenhanced size 1680,1040 fontscale 2 linewidth 2 pointscale 2 \
		font "DejaVu Sans,11"
if (terminal eq "pdf") \
	set terminal pdfcairo noenhanced size 17.5cm,10.8cm linewidth 1.5 font "DejaVu Sans,10.5"
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

set border 3 lc rgb "#404040"
set tics nomirror out scale 0.6
set format "%h"
if (dumb) unset grid; else set grid back lc rgb "#c4c4c4" lw 0.7 dt 1
if (!dumb) set key outside bottom center horizontal Left reverse samplen 4 spacing 1.2 height 0.5
if (dumb) set key outside bottom center
if (dumb) do for [i=1:12] { set linetype i pt i } # shown as A, B, C...
