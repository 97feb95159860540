/*
 * intern.h - names to small integers, in order of first sight.
 *
 * An open-addressed table of hashes; the numbers depend on the order of the calls alone.
 */
#ifndef BASE_INTERN_H
#define BASE_INTERN_H

#include "base/arena.h"

struct intern {
	struct arena *arena;
	const char **name; /* by number */
	uint32_t *slot;    /* hash table of number + 1; 0: empty */
	uint32_t n, n_slots;
};

#define INTERN_NONE UINT32_MAX

void intern_init(struct intern *t, struct arena *a);
/* The number of this name, given on first sight (the name is copied then). At most len bytes,
   no NUL needed; a NUL ends the name. */
uint32_t intern_add(struct intern *t, const char *name, size_t len);
/* INTERN_NONE when it was never added. */
uint32_t intern_find(const struct intern *t, const char *name, size_t len);

#endif
