/*
 * curves.h - runs become curves: one key is the x axis, the others say which curve a run belongs to.
 *
 *	run  flags.ngl  gen  engine     tok/s         x = flags.ngl, the first that takes several numbers
 *	 1      0        3   llama.cpp   0.9          series = gen, the other key that varies
 *	 2     40        3   llama.cpp   2.1    =>    "gen 3": (0, 0.9) (40, 2.1)
 *	 3      0        4   llama.cpp   1.6          "gen 4": (0, 1.6) (40, 4.1)
 *	 4     40        4   llama.cpp   4.1          common = "llama.cpp": the same in all
 *
 * Where some value of x is no number ("auto", "q4_0"), all of them are names, at 0, 1, 2…
 *
 * A key that tells no more runs apart than those already chosen is not added: not the column `batch` when x
 * is workload.batch, nor `model` where each engine ran its own.
 */
#ifndef PLOTS_CURVES_H
#define PLOTS_CURVES_H

#include "plots/query.h"

#define CURVES_MAX 12       /* as many as style.gp can tell apart */
#define CURVES_NAMES_MAX 60 /* names on an axis */

struct curves_point {
	double x;                                /* a number, or which of the names */
	struct query_value y[QUERY_METRICS_MAX]; /* the metrics; NAN where there is none */
	double upper_bound;
	const char *label; /* x as written */
	const char *run;   /* its key */
	bool fits;
};

struct curve {
	const char *name;           /* "llama.cpp, gen 3" */
	struct curves_point *point; /* by x */
	size_t n;
};

struct curves_request {
	const char *metric[QUERY_METRICS_MAX]; /* columns of run */
	size_t n_metrics;
	const char *x;      /* key; NULL: the first that takes two numeric values, or else two names */
	const char *series; /* keys, "a,b"; NULL: all others that vary */
	size_t max;         /* curves; 0: CURVES_MAX */
	bool also_no_fit;   /* runs that do not fit are points too */
	bool also_one;      /* where no key takes two values, the model's name makes an axis */
};

struct curves {
	const char *x;      /* the key */
	const char *x_unit; /* as the values are written: "GB/s"; "" for plain numbers and names */
	const char **name;  /* NULL: x is a number; else the names on the axis, numbers first, then as stored */
	size_t n_names;
	const char *common; /* what all runs share, for a title: "llama-3.1-8b, q4_k_m, batch 1" */
	const char *mixed;  /* keys that differ among runs of one curve at one x; NULL: no two runs meet */
	struct curve *curve;
	size_t n;
	size_t n_points;
	size_t n_no_fit, n_failed, n_no_x; /* left out: do not fit, have no metric, have no x */
};

int curves_read(struct query *q, const struct curves_request *req, struct arena *a, struct curves *out,
	struct err *err);

#endif
