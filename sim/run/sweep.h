/*
 * sweep.h - a scenario's `sweep:` grid, simulated in parallel and stored as it goes.
 *
 *	axes ──> points 0 … n-1 (last axis fastest) ──> workers take the next number each ──┐
 *	                                                                                     ▼
 *	results.db <── one writer, in the order of the points <── done points wait their turn
 *
 * So the database is the same whatever the number of workers. A point whose key is stored already is skipped:
 * a sweep that was stopped goes on where it was. A point that fails is a row with its message, never a stop.
 *
 * Several sweeps may fill one database at once. What another has claimed (sim/store/claims.h) is left to it until all else
 * is done; what is not stored by then is waited for, and simulated here when nothing comes.
 */
#ifndef SIM_RUN_SWEEP_H
#define SIM_RUN_SWEEP_H

#include <signal.h>

#include "sim/run/scenario.h"

struct sweep_axis {
	const char *key;
	const char **value; /* as text */
	struct err_pos pos; /* of the values */
	size_t n;
};

struct sweep {
	struct sweep_axis *axis;
	size_t n_axes;
	uint64_t n_points; /* of the whole grid */
};

/* `sweep: {KEY: [a, b], KEY: FIRST..LAST/STEP, KEY: value}`; LAST is included. */
int sweep_parse(const struct yaml_node *node, struct arena *a, struct sweep *out, struct err *err);

struct sweep_progress {
	uint64_t points;  /* of this shard */
	uint64_t done, skipped, failed;
	double wall_s;
};

struct sweep_options {
	const char *path;                /* scenario */
	const struct scenario_set *set;  /* overrides of all points */
	size_t n_set;
	const char *db;
	unsigned workers;                /* >= 1 */
	uint64_t shard, n_shards;        /* 1-based; a run belongs to shard key mod n_shards + 1 */
	const volatile sig_atomic_t *interrupted;
	void (*report)(void *ctx, const struct sweep_progress *p); /* after each point; NULL: not wanted */
	void *report_ctx;
};

/* Runs what is missing. Interrupted: ERR_INTERRUPTED, what was done is stored. The progress is filled in any case. */
int sweep_run(const struct sweep *s, const struct sweep_options *o, struct sweep_progress *out, struct err *err);

#endif
