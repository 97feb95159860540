/*
 * claims.h - which runs are being made for a database, so that two sweeps of one grid share the work.
 *
 * A claim is a lock of one byte of the file DB-claims, at the place that the run's key says: others see it at once, it
 * takes no transaction, and it ends with the process however that ends. The file stays empty and goes with the last user.
 * Where it cannot be (a system without such locks, a file of that name that is another's), every claim succeeds: work may be done twice then, and
 * nothing is lost.
 */
#ifndef SIM_STORE_CLAIMS_H
#define SIM_STORE_CLAIMS_H

#include <stdbool.h>

#include "base/arena.h"

struct claims {
	int fd; /* -1: there are no claims */
	const char *path;
};

/* db exists. */
void claims_open(struct claims *c, const char *db, struct arena *a);
/* By any thread; key is 16 hex digits. false: another process has it. What this one has it can take again. */
bool claims_take(const struct claims *c, const char *key);
void claims_give(const struct claims *c, const char *key);
void claims_close(struct claims *c);

#endif
