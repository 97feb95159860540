/*
 * heap.h - the event queue: an indexed 4-ary heap on (time, priority, sequence).
 *
 * Each slot (a small integer, here an operation) has at most one entry. Setting it again moves the entry:
 * an operation whose rate changes moves its completion, it never leaves a stale one behind.
 *
 *	          [0]                 children of i: 4i+1 … 4i+4
 *	  [1]   [2]   [3]   [4]       place[slot] = position + 1, 0 when the slot has no entry
 *
 * Ties: earlier time, then lower priority number, then lower sequence. Sequences are unique, so the order
 * is total and nothing depends on the history of the heap.
 */
#ifndef SIM_CORE_HEAP_H
#define SIM_CORE_HEAP_H

#include <stdbool.h>

#include "base/arena.h"
#include "sim/core/simtime.h"

struct heap_entry {
	sim_time time;
	uint64_t sequence;
	int32_t priority;
	uint32_t slot;
};

struct heap {
	struct arena *arena;
	struct heap_entry *at; /* the heap, at[0] is due first */
	uint32_t *place;       /* slot -> position + 1 */
	uint32_t n, cap;       /* entries, and room for entries and slots */
};

void heap_init(struct heap *h, struct arena *a);
/* Inserts the slot's entry or moves it. */
void heap_set(struct heap *h, uint32_t slot, sim_time time, int32_t priority, uint64_t sequence);
void heap_remove(struct heap *h, uint32_t slot); /* nothing when the slot has no entry */
/* Takes the first entry out; the heap must not be empty. */
struct heap_entry heap_pop(struct heap *h);

static inline bool heap_empty(const struct heap *h)
{
	return h->n == 0;
}

static inline const struct heap_entry *heap_top(const struct heap *h)
{
	return &h->at[0];
}

#endif
