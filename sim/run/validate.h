/*
 * validate.h - predictions held against published measurements.
 *
 *	corpus row ──> scenario text (inline machine from its columns) ──> run ──> its own metric
 *	                                                                            │
 *	           summary by metric, rows weighted so that a group counts one  <───┘ predicted / measured
 *
 * Every row of the file comes back: run, or with the reason why not. Facts that a row does not state are filled with the
 * same defaults for all (the card's native link, no newer than the processor's; DDR speeds by generation), and said.
 * llama-bench's own output is taken as well: each of its tests is a row, of the machine that the options name.
 */
#ifndef SIM_RUN_VALIDATE_H
#define SIM_RUN_VALIDATE_H

#include <signal.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "sim/run/result.h"

enum validate_status { VALIDATE_OK, VALIDATE_NO_FIT, VALIDATE_SKIPPED, VALIDATE_ERROR, VALIDATE_STATUS_N };
enum validate_metric { VALIDATE_DECODE, VALIDATE_PREFILL, VALIDATE_E2E, VALIDATE_TTFT, VALIDATE_METRIC_N };

struct validate_row {
	const char *id, *group, *source, *engine, *model, *tier; /* source: where it was published; its group where that is not said */
	enum validate_metric metric;
	bool per_token; /* s_per_token: small is fast */
	bool scored;    /* of the tiers asked for */
	enum validate_status status;
	const char *reason;   /* why it was not run, "" when it was */
	const char *assumed;  /* defaults that were filled in, "" when none */
	const char *identity; /* what tells rows of a group apart */
	double measured, predicted, low80, high80, upper_bound;
	double thumb; /* decode by the rule of thumb (place/estimate.h) */
	/* what is run */
	const char *scenario; /* its text; NULL when skipped */
	const char *where;    /* "FILE:LINE" of the row */
	int twin_line;        /* of the first row that has the same id; 0: it is the first */
	enum result_field_id field; /* of its result */
	double scale;               /* times this is in the row's own unit */
};

struct validate_summary {
	size_t n;        /* scored rows that ran */
	size_t n_groups;
	double median_abs_error, p90_abs_error; /* |predicted / measured - 1|, weighted */
	double median_abs_log_error;
	double bias;     /* weighted median of predicted / measured, less 1 */
	double coverage80;
	double pair_order; /* NAN: no pairs */
};

/* The rule of thumb times the one factor that gives it the smallest median error, on the decode rows that are summarised. */
struct validate_thumb {
	size_t n; /* 0: no such rows, and the rest means nothing */
	double factor;
	double bias; /* of the rule as it is */
	double median_abs_error, p90_abs_error;
};

struct validate {
	struct validate_row *row;
	size_t n;
	struct validate_summary summary[VALIDATE_METRIC_N];
	struct validate_thumb thumb;
	size_t n_scored, n_ran; /* rows of the tiers asked for, and those of them that ran */
};

struct validate_options {
	const char *tiers;  /* "AB" */
	const char *engine; /* only rows of these, separated by commas; NULL: all */
	const char *machine; /* name or path, that llama-bench's rows are of; NULL: the file is a corpus */
	const char *const *model; /* names or paths: llama_cards_load */
	size_t n_models;
	unsigned workers;
	const volatile sig_atomic_t *interrupted;
};

/* The scored rows of a group that ran, of all metrics. */
struct validate_group {
	const char *name;
	const char *mark; /* of one character or two, to mark its points with */
	size_t n;
	double median, least, most; /* of predicted / measured */
};

/* In the order of the file. */
size_t validate_groups(const struct validate *v, const struct validate_group **out, struct arena *a);

/* Is what was measured above what the machine's datasheets allow? Of decode alone there is a bound. */
bool validate_above_bound(const struct validate_row *r);
/* The scored rows that ran, by how many times off they are either way, the worst first (ties: as in the file); at most n
   into out. Returns how many. */
size_t validate_worst(const struct validate *v, const struct validate_row **out, size_t n, struct arena *a);

int validate_run(const char *path, const struct validate_options *o, struct arena *a, struct validate *out,
	struct err *err);

const char *validate_status_name(enum validate_status s);
const char *validate_metric_name(enum validate_metric m);

#endif
