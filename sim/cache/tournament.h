/*
 * tournament.h - the least of n keys that change: a tree in which of every two the lesser goes on.
 *
 *	         2                node 1: the winner
 *	     1       2            nodes 2, 3
 *	   0   1   2   -          leaf of item i: node width + i
 *
 * Changing a key replays the matches above its leaf, as far as they come out differently. Ties go to the lower number.
 */
#ifndef SIM_CACHE_TOURNAMENT_H
#define SIM_CACHE_TOURNAMENT_H

#include "base/arena.h"

struct tournament_key {
	uint64_t major, minor;
};

struct tournament {
	struct tournament_key *key; /* by item */
	uint32_t *winner;           /* by node */
	uint32_t width;             /* a power of two, at least n */
};

#define TOURNAMENT_NONE UINT32_MAX

/* Nobody takes part yet. */
void tournament_init(struct tournament *t, uint32_t n, struct arena *a);
/* Item takes part with this key. major is less than UINT64_MAX. */
void tournament_set(struct tournament *t, uint32_t item, uint64_t major, uint64_t minor);
void tournament_remove(struct tournament *t, uint32_t item);
/* TOURNAMENT_NONE when nobody takes part. */
uint32_t tournament_first(const struct tournament *t);

#endif
