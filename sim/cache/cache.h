/*
 * cache.h - who stays when there is not room for all: experts in GPU memory or RAM.
 *
 * Bookkeeping only: no clock, and nothing is moved. A batch is what one layer of one step needs; all of it is looked up, what
 * is missing comes in, and only then does something leave, never what the batch has touched:
 *
 *	uses 3 7 3 1 ──> lookups 3 7 1 ──> hits 3 │ missed 7 1 (to be read) ──> in ──> over the budget? victims leave
 *
 * A repeat within the batch counts as a use (a policy may care) but not as a lookup. A policy is one file with one
 * ops table (cache_lru.c …) that only orders what is there; who is in, sizes and sums belong to cache.c.
 */
#ifndef SIM_CACHE_CACHE_H
#define SIM_CACHE_CACHE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"

struct cache;

struct cache_ops {
	const char *name;
	const char *help;
	bool needs_future;     /* cache_config.next_use */
	bool needs_popularity; /* cache_config.popularity; what is in never changes after the start */
	size_t state_size;     /* of the policy's own, zeroed */
	void (*init)(struct cache *c, struct arena *a);
	/* An item of this batch is used, in order; repeats too. first: it is the batch's lookup of it. */
	void (*use)(struct cache *c, uint32_t item, bool first);
	void (*insert)(struct cache *c, uint32_t item);
	void (*evict)(struct cache *c, uint32_t item);
	/* Who leaves next among the items that are in and not of this batch (cache_in_batch); CACHE_NONE: nobody can. */
	uint32_t (*victim)(struct cache *c);
};

#define CACHE_NONE UINT32_MAX

/* Items are small numbers that the owner gives: layer x experts + expert. */
struct cache_config {
	const struct cache_ops *ops;
	uint32_t n_items;
	const uint64_t *item_bytes;   /* by item */
	uint64_t budget_bytes;
	const double *popularity;     /* by item; needs_popularity */
	/* The batch (counted from 0, as cache_batch is called) after `batch` in which the item is used next, UINT64_MAX:
	   never again; needs_future. */
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
/* Items that are brought in ahead of their use: neither lookups nor uses. outcome: missed are those that had to be read. */
void cache_prefetch(struct cache *c, const uint32_t *item, size_t n, struct cache_outcome *out);
bool cache_holds(const struct cache *c, uint32_t item);
bool cache_in_batch(const struct cache *c, uint32_t item);
uint64_t cache_used_bytes(const struct cache *c);

/* The i-th policy, NULL past the end; by name, with an error that names the nearest. */
const struct cache_ops *cache_policy_at(size_t i);
int cache_policy_find(const char *name, const struct err_pos *pos, const struct cache_ops **out, struct err *err);

/* For policies. */
void *cache_state(const struct cache *c);
uint64_t cache_batch_index(const struct cache *c);
const struct cache_config *cache_config(const struct cache *c);

#endif
