/*
 * plot.h - a figure of a kind, from results.db, or from what validate prints.
 *
 *	results.db ── query ── curves ── figure: data file + KIND.gp ── gnuplot ── OUT
 *
 * To add a kind: one template KIND.gp and one row of plot_kinds.
 */
#ifndef PLOTS_PLOT_H
#define PLOTS_PLOT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"

struct figure;

struct plot_metric {
	const char *name;  /* column of run */
	const char *title; /* of a figure of it */
	const char *label; /* of its axis, with its unit */
	bool upper_bound;  /* upper_bound_tok_s is its bound */
	bool time;         /* the less the better, and factors matter */
};
extern const struct plot_metric plot_metrics[];
extern const size_t plot_metrics_n;

struct plot_kind {
	const char *name;
	const char *template;
	const char *title;
	const char *metric[2]; /* of plot_metrics, a panel each; none: the kind shows something else */
	int (*fill)(struct figure *f, struct err *err);
	bool also_no_fit;  /* shows runs that do not fit */
	size_t max_curves; /* 0: as many as curves.h says */
	bool of_file;      /* reads plot_request.file, and no database */
	const char *help; /* one line */
};
extern const struct plot_kind plot_kinds[];
extern const size_t plot_kinds_n;

struct plot_request {
	const char *kind, *db;
	const char *file;       /* what validate --json printed, for the kinds that read it; NULL: none was given */
	const char *out;        /* its suffix says what to write; NULL: characters on standard output */
	const char *x, *series; /* NULL: chosen, see curves.h */
	const char *y;          /* a metric; NULL: those of the kind */
	const char *title;      /* NULL: what the runs have in common */
	int columns, rows;      /* of the characters */
	bool keep;              /* the data and templates */
};

struct plot_summary {
	size_t n_points, n_curves;
	size_t n_no_fit, n_failed, n_no_x; /* runs left out */
	const char *x;                     /* the key */
	const char *mixed; /* keys that differ between runs drawn at one place; NULL: none fall together */
	const char *idle;     /* memories that hold no more than overhead in any run, and are not drawn; NULL: none */
	const char *left_out; /* what else there was no room for; NULL: nothing */
	const char *again; /* the command that draws it from what was kept, or NULL; set on failure too */
};

/* Texts of out live in a. */
int plot_draw(const struct plot_request *req, struct arena *a, struct plot_summary *out, struct err *err);

#endif
