/*
 * gnuplot.h - one run of gnuplot: a template of plots/, a data file, a figure.
 *
 *	gnuplot -d -c KIND.gp style.gp DATA OUT WORD…
 *
 * No shell sees any of these words, and templates take them as strings (ARG1…), so a title may hold
 * anything. The figure is written beside its target and renamed when it is whole; gnuplot's exit status does
 * not tell, it is 0 on a full disk.
 */
#ifndef PLOTS_GNUPLOT_H
#define PLOTS_GNUPLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

struct gnuplot_job {
	const char *template;    /* "throughput.gp", in DATADIR/plots */
	const char *data;        /* what goes into the data file */
	const char *out;         /* figure; NULL: standard output */
	const char *const *word; /* the template's further arguments */
	size_t n_words;
	bool keep; /* leave data and template, to be changed and drawn again */
	int64_t limit_ms; /* gnuplot is stopped when it takes longer; 0: a minute */
};

/* "svg", "png" or "pdf" by the suffix of a file's name; an error for every other. */
int gnuplot_terminal(const char *out, const char **terminal, struct err *err);
/* Draws. *again is the command that draws the figure from the files that were kept; NULL without keep. */
int gnuplot_draw(const struct gnuplot_job *job, struct arena *a, const char **again, struct err *err);

#endif
