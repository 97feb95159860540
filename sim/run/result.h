/*
 * result.h - what a run found out: plain numbers, no pointers, so that it outlives the run's arena.
 *
 * Scalar metrics are described by a field table (name, unit, help), which JSON, database columns and help
 * are made from. All times are seconds, all sizes bytes. When the placement does not fit, every rate and
 * time is NAN (null in JSON and in the database) and the memory rows say what is missing.
 */
#ifndef SIM_RUN_RESULT_H
#define SIM_RUN_RESULT_H

#include <stdbool.h>

#include "base/units.h"
#include "models/ledger.h"

#define RESULT_MAX_RESOURCES 192 /* sixteen GPUs joined to each other, and eight drives: 146 */
#define RESULT_NAME_MAX 32

enum result_field_id {
	RESULT_DECODE_TOK_S,
	RESULT_PREFILL_TOK_S,
	RESULT_E2E_TOK_S,
	RESULT_TTFT_S,
	RESULT_TPOT_S,
	RESULT_TOTAL_S,
	RESULT_UPPER_BOUND_TOK_S,
	RESULT_FIELD_N,
};

struct result_field {
	const char *name; /* JSON key and database column */
	enum unit_dim dim;
	bool interval; /* has an interval80 */
	const char *help;
};
extern const struct result_field result_fields[RESULT_FIELD_N];

struct result_resource {
	char name[RESULT_NAME_MAX]; /* "gpu0", "gpu0.link.h2d", "gpu0.compute" */
	double busy;           /* share of total_s with at least one flow or kernel on it */
	double utilisation;    /* mean rate over capacity */
	double bytes;          /* moved; NAN for compute resources */
	double critical;       /* share of total_s that it limited along the critical path */
	double critical_of[2]; /* the same of one phase, by enum trace_phase; NAN where the run has none */
};

/* A cache of experts. */
#define RESULT_MAX_CACHES 2
struct result_cache {
	char name[RESULT_NAME_MAX]; /* the memory it is in */
	uint64_t lookups, hits;
	double decode_hit_rate;     /* NAN without decode */
	uint64_t read_bytes;        /* brought in from behind */
};

struct result {
	char key[17];          /* 16 hex digits: the scenario with the contents of machine and model */
	bool fits;
	double value[RESULT_FIELD_N];
	double low80[RESULT_FIELD_N], high80[RESULT_FIELD_N]; /* NAN where the field has no interval */
	struct ledger memory;
	int n_resources;
	struct result_resource resource[RESULT_MAX_RESOURCES];
	int n_caches;
	struct result_cache cache[RESULT_MAX_CACHES]; /* nearest first */
	double critical_overhead; /* share of total_s in launches and waits */
	double critical_overhead_of[2]; /* of each phase */
	double thumb_tok_s;    /* decode by the rule of thumb (place/estimate.h): to compare with; NAN without decode */
	uint64_t events;       /* operations simulated */
	double wall_s;         /* not part of what is compared */
};

/* One JSON document with every key of cli.md, keys in fixed order, to `to`. An engine that caches experts adds `caches`
   [{name, lookups, hits, hit_rate, decode_hit_rate, read_bytes}]. */
int result_print_json(const struct result *r, FILE *to);

#endif
