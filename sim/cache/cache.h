/*
 * cache.h - who stays when there is not room for all: experts in GPU memory or RAM.
 *
 * Bookkeeping only: no clock, and nothing is moved. A batch is what one layer of one step needs; all of it is looked up, what
 * is missing comes in, and only then does something leave, never what the batch has touched:
 *
 *	uses 3 7 3 1 ──> lookups 3 7 1 ──> hits 3 │ missed 7 1 (to be read) ──> in ──> over the budget? victims leave
 *	                                                                              7, 3, 1: latest use last
 *
 * A repeat within the batch counts as a use (the latest one is what recency goes by) but not as a lookup. A policy is one file
 * with one ops table (cache_lru.c …) that only orders what may leave; who is in, sizes and sums belong to cache.c. What a batch
 * touches is taken out of that order while the batch lasts, so that no policy can choose it.
 *
 * A batch larger than the budget stays in until the next one, as published curves have it; in a strict cache, which stands
 * for memory that is there and no more, what is too much of it leaves when it is over. All memory comes from the arena, in
 * cache_new.
 */
#ifndef SIM_CACHE_CACHE_H
#define SIM_CACHE_CACHE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"

struct cache;

/* Items are numbered from 0 here, whatever cache_config.first_item is. */
struct cache_ops {
	const char *name;
	const char *help;
	bool needs_future;     /* cache_config.next_use */
	bool needs_popularity; /* cache_config.popularity; what is in never changes after init */
	size_t state_size;     /* of the policy's own, zeroed */
	void (*init)(struct cache *c, struct arena *a);
	void (*lookup)(struct cache *c, uint32_t item);          /* one is made, once a batch; NULL: no matter */
	void (*insert)(struct cache *c, uint32_t item);          /* may leave from now on, as the latest used */
	void (*remove)(struct cache *c, uint32_t item);          /* may not, for it is in use or has left */
	uint32_t (*victim)(struct cache *c);                     /* who leaves next; CACHE_NONE: nobody may */
};

#define CACHE_NONE UINT32_MAX

/* Items are small numbers that the owner gives: layer x experts + expert. The arrays stay the owner's and must outlive the
   cache; they are indexed by item - first_item. */
struct cache_config {
	const struct cache_ops *ops;
	uint32_t first_item, n_items;
	const uint64_t *item_bytes;
	uint64_t budget_bytes;
	bool strict;              /* between batches the budget holds */
	const double *popularity; /* needs_popularity: the most popular that fit are in, ties to the lower number */
	/* needs_future: when the item is used next, after the batch at hand (batches count from 0, as cache_batch is called).
	   The answers are only compared: any number that grows with time will do. UINT64_MAX: never again. */
	uint64_t (*next_use)(void *ctx, uint32_t item, uint64_t batch);
	void *next_use_ctx;
};

/* What a batch came to. The lists are the cache's, valid until its next call. */
struct cache_outcome {
	uint64_t lookups, hits;
	uint64_t missed_bytes;
	const uint32_t *missed; /* in order of first use */
	size_t n_missed;
	const uint32_t *evicted;
	size_t n_evicted;
};

struct cache *cache_new(const struct cache_config *config, struct arena *a);
/* One batch: `n` uses in order, repeats allowed. Items that alone are larger than the budget are read and not kept. */
void cache_batch(struct cache *c, const uint32_t *use, size_t n, struct cache_outcome *out);
/* Items that are brought in ahead of their use: neither lookups nor uses, so that lookups and hits are 0 and missed are those
   that had to be read. For what leaves next they are the latest to have come, also those that were in already. */
void cache_prefetch(struct cache *c, const uint32_t *item, size_t n, struct cache_outcome *out);
bool cache_holds(const struct cache *c, uint32_t item);
bool cache_in_batch(const struct cache *c, uint32_t item); /* of the latest batch or prefetch */
uint64_t cache_used_bytes(const struct cache *c);
uint64_t cache_batch_index(const struct cache *c); /* of the batch at hand, or of the next when none is */

/* The i-th policy, NULL past the end; by name, with an error that names the nearest. */
const struct cache_ops *cache_policy_at(size_t i);
int cache_policy_find(const char *name, const struct err_pos *pos, const struct cache_ops **out, struct err *err);

/* For policies. */
void *cache_state(const struct cache *c);
const struct cache_config *cache_config(const struct cache *c);
/* From init only: the item is in at the start. False, and nothing done, when there is no room for it. */
bool cache_preload(struct cache *c, uint32_t item);

#endif
