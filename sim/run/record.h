/*
 * record.h - a scenario and its result as rows of results.db.
 */
#ifndef SIM_RUN_RECORD_H
#define SIM_RUN_RECORD_H

#include "sim/run/result.h"
#include "sim/run/scenario.h"
#include "sim/run/timeline.h"
#include "sim/store/store.h"

/* The rows of one run, in the arena; they point into scenario and result. */
struct store_run record_rows(const struct scenario *s, const struct result *r, struct arena *a);
/* The row of a run that failed before it had a result: its overrides and its message. key: 16 hex digits. */
struct store_run record_failure(const char *key, const struct scenario_set *set, size_t n_set, const struct err *err,
	struct arena *a);

/* Opens or creates the database, stores the run (replacing one of the same key) and closes it. t: its timeline; NULL for
   one that does not fit. */
int record_store(const char *db, const struct scenario *s, const struct result *r, const struct timeline *t,
	struct arena *a, struct err *err);

#endif
