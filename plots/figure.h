/*
 * figure.h - what the kinds of figures share on the way from curves to a template.
 *
 *	gnuplot -d -c KIND.gp style.gp DATA OUT TITLE XLABEL YLABEL TERMINAL OPTIONS NAMES
 *
 * A kind fills the last three words but TERMINAL, and the data; its template says what is in them.
 */
#ifndef PLOTS_FIGURE_H
#define PLOTS_FIGURE_H

#include "plots/curves.h"
#include "plots/data.h"
#include "plots/plot.h"

#define FIGURE_GROUPS_MAX 26 /* of bars: A to Z */

struct figure {
	/* given */
	const struct plot_metric *metric[QUERY_METRICS_MAX];
	size_t n_metrics;
	struct curves c;
	struct query *q;       /* NULL of a kind that reads a file of its own: */
	const char *file;
	bool characters; /* a terminal, with little room */
	struct arena *arena;
	/* to fill */
	struct data data;
	const char *template; /* that draws it; set to that of the kind */
	const char *x_label, *y_label, *options, *names; /* "" where the template has no use for it */
	size_t panels;                                   /* one above the other; the figure grows with them */
	bool numbered;    /* x_label says which name is which number */
	size_t more_rows; /* that the label of the x axis takes beyond one, or the key beyond two */
	size_t x_column;  /* at which the last of them ends */
	const char *idle;     /* memories that are not drawn, for nothing of the model is in them; NULL: none */
	const char *left_out; /* what there was no room for, for people; NULL: nothing */
};

/* Points over an axis: throughput, latency. */
int figure_curves(struct figure *f, struct err *err);
/* A bar for each run: memory, utilisation. */
int figure_memory(struct figure *f, struct err *err);
int figure_utilisation(struct figure *f, struct err *err);
/* What was used when: a panel a run, of those that have a timeline. */
int figure_timeline(struct figure *f, struct err *err);

/* Predicted against measured, from f->file. */
int figure_accuracy(struct figure *f, struct err *err);

/* Sets the label of the x axis: the key with its unit and scale, which may be "". */
void figure_label_x(struct figure *f, const char *unit, const char *scale);
/* Whether n labels under the x axis have room side by side. */
bool figure_has_room(const struct figure *f, size_t n, size_t longest);
/* The text under x, a name, where n of these are shown: on a terminal without the room its number, and the
   label of the x axis then says what the numbers mean. */
const char *figure_name_of(struct figure *f, size_t x, size_t n);
size_t figure_longest_name(const struct figure *f);
/* Adds to the label of the x axis, in further lines where needed. */
void figure_explain(struct figure *f, const char *text);

#endif
