/*
 * record.h - a scenario and its result as rows of results.db.
 */
#ifndef SIM_RUN_RECORD_H
#define SIM_RUN_RECORD_H

#include "sim/run/result.h"
#include "sim/run/scenario.h"

/* Opens or creates the database, stores the run (replacing one of the same key) and closes it. */
int record_store(const char *db, const struct scenario *s, const struct result *r, struct arena *a,
	struct err *err);

#endif
