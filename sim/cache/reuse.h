/*
 * reuse.h - how many different items lie between two uses of one: from it the hit rate of LRU at every size at once.
 *
 * The distance of a lookup is the number of different items used since the item's last use, itself not counted, as the cache
 * finds them when a batch (of experts) or a request (of blocks) begins. An LRU cache of n items holds the item exactly if its
 * distance is less than n: what has been used last stays. What the batch before has just used is always there (distance 0),
 * for a cache never throws that out, however small it is.
 *
 *	slots in order of last use   [ a │ - │ c │ b │ d ]      a count of those in use from any slot on: a Fenwick tree
 *	distance of a: c, b, d = 3         (Bennett and Kruskal, IBM J. Res. Dev. 19(4), 1975)
 *
 * Slots that are used up are renumbered when the array is full: memory grows with the items, not with the uses.
 */
#ifndef SIM_CACHE_REUSE_H
#define SIM_CACHE_REUSE_H

#include "base/arena.h"

struct reuse;

#define REUSE_NEVER UINT64_MAX

/* Items are numbered from 0 in any order; room is made for those that come. */
struct reuse *reuse_new(struct arena *a);
/* Experts: one batch of uses in order, repeats allowed. */
void reuse_batch(struct reuse *r, const uint32_t *use, size_t n);
/* Blocks: one request, first to last. A lookup's distance is the largest of the run that leads to it, for the block is of no
   use without those before it; the last block is touched first. */
void reuse_request(struct reuse *r, const uint32_t *block, size_t n);

uint64_t reuse_lookups(const struct reuse *r);
uint64_t reuse_unique(const struct reuse *r);
/* Lookups that LRU with room for n items hits. */
uint64_t reuse_hits(const struct reuse *r, uint64_t n);
/* The least size (items) with at least this many hits; REUSE_NEVER when no size has. */
uint64_t reuse_size_for(const struct reuse *r, uint64_t hits);

#endif
