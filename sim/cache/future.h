/*
 * future.h - when each lookup's item is looked up again: what Belady's policy must know.
 *
 *	lookups   a(batch 0)  b(0)  c(1)  a(2)  c(2)
 *	next         2         -     2     -     -        four bytes a lookup, in order
 *
 * Written in one pass and read in order in the next. Its memory has a limit; beyond it lookups are only counted, so that the
 * message can say how much would do.
 */
#ifndef SIM_CACHE_FUTURE_H
#define SIM_CACHE_FUTURE_H

#include "base/arena.h"
#include "base/err.h"

struct future;

struct future *future_new(uint32_t n_items, uint64_t limit_bytes, struct arena *a);
/* First pass: the item is looked up in this batch, once a batch. */
void future_add(struct future *f, uint32_t item, uint64_t batch);
/* An error when it has not fitted. */
int future_check(const struct future *f, struct err *err);
/* The second pass begins, and there its next lookup, of this item. */
void future_rewind(struct future *f);
void future_advance(struct future *f, uint32_t item);
/* The batch of the item's next lookup after the one that future_advance was at last; UINT64_MAX: none. It fits
   cache_config.next_use: the third parameter is of no use here. */
uint64_t future_next(void *f, uint32_t item, uint64_t batch);

#endif
