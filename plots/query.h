/*
 * query.h - read-only access to results.db.
 *
 * The file is the contract: its tables and views are described in schema.sql, and nothing here knows the
 * program that writes it. What is not a results database, or is of another schema version, is refused.
 *
 *	a key    what runs can differ in: a name of run_param ("flags.ngl") or a column of run ("machine")
 *	a run    one row of texts by key, and the numbers of one metric
 */
#ifndef PLOTS_QUERY_H
#define PLOTS_QUERY_H

#include <stdbool.h>

#include "base/err.h"
#include "base/intern.h"

struct query;

struct query_key {
	const char *name;
	bool param, column; /* found in run_param, in run; both when a key was set that has a column too */
	bool metric;        /* a column that the run found out: of use as an axis when asked for */
};

struct query_keys {
	const struct query_key *at; /* parameters in the order of the scenarios, then columns */
	size_t n;
};

enum query_outcome { QUERY_RAN, QUERY_NO_FIT, QUERY_FAILED };

#define QUERY_METRICS_MAX 2 /* read at once */

struct query_value {
	double value, low80, high80; /* NAN for NULL */
};

struct query_run {
	const char *key;
	enum query_outcome outcome; /* QUERY_FAILED as well when every metric is NULL although it fits */
	struct query_value of[QUERY_METRICS_MAX]; /* the metrics */
	double upper_bound;
};

/* Runs by keys. A text is a number of `texts`, so that equal texts are equal numbers. */
struct query_table {
	const struct query_key *key; /* one a column of cell */
	size_t n_keys;
	const struct query_run *run; /* in the order in which they were stored */
	size_t n_runs;
	const uint32_t *cell; /* n_runs x n_keys; INTERN_NONE for NULL */
	struct intern texts;
};

/* The handle and all that is read live in a. */
int query_open(const char *path, struct arena *a, struct query **out, struct err *err);
void query_close(struct query *q); /* q may be NULL */
const char *query_path(const struct query *q);

int query_read_keys(struct query *q, struct query_keys *out, struct err *err);
/* All runs with the texts of these keys. A metric is a column of run; low80 and high80 are NAN where it has
 * none. Without metrics a run failed when it is not known whether it fits. */
int query_read_runs(struct query *q, const struct query_key *key, size_t n_keys, const char *const *metric,
	size_t n_metrics, struct query_table *out, struct err *err);

/* ---- what belongs to one run ---- */

enum query_use { QUERY_WEIGHTS, QUERY_KV, QUERY_ACTIVATION, QUERY_OVERHEAD, QUERY_USE_N };

struct query_memory {
	const char *name;
	double capacity, used[QUERY_USE_N]; /* bytes; NULL is 0 */
};

struct query_resource {
	const char *name;
	double busy, utilisation, critical; /* shares of the time, of the capacity, of the time; NULL is 0 */
};

/* By name. */
int query_read_memory(struct query *q, const char *run, const struct query_memory **out, size_t *n,
	struct err *err);
int query_read_resources(struct query *q, const char *run, const struct query_resource **out, size_t *n,
	struct err *err);

struct query_span {
	int64_t position;     /* of the resource among those of the run; 0: a step */
	const char *resource;
	double begin, end;    /* seconds */
	double busy;          /* share of it in which something was on the resource */
};
/* By position and begin; none when the run has no timeline. */
int query_read_spans(struct query *q, const char *run, const struct query_span **out, size_t *n, struct err *err);

#endif
