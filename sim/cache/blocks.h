/*
 * blocks.h - KV blocks kept for the next request with the same beginning, in up to three memories.
 *
 * A block is known by a hash of all tokens up to its end, so a request can use those of its blocks that are held from the
 * first on without a gap: the leading run. All its blocks are then touched, the last first, so that the head of the
 * prefix is the latest used and the last to leave:
 *
 *	request a b c d:  look up a b │ c missing ──> 2 hits ──> touch d c b a ──> tier 0 too full? its oldest move on
 *
 *	tier 0 ──oldest──> tier 1 ──oldest──> tier 2 ──oldest──> gone        (HBM, RAM, NVMe)
 *	   ^───── hit ────────┴───── hit ────────┘
 *
 * A block is in one tier only. One of the request's that is held behind a gap is computed anew: it goes to tier 0 without
 * having been moved. Blocks have one size. Bookkeeping only: no clock.
 */
#ifndef SIM_CACHE_BLOCKS_H
#define SIM_CACHE_BLOCKS_H

#include <stdbool.h>

#include "base/arena.h"

#define BLOCKS_TIERS_MAX 3

struct blocks_config {
	uint32_t n_tiers;                            /* 1 to BLOCKS_TIERS_MAX */
	uint64_t capacity_blocks[BLOCKS_TIERS_MAX];
	uint64_t block_bytes;                        /* of all layers; 0: not known, and no bytes are counted */
};

/* Of one request, or summed over several. What came into a tier and left it adds up to what it holds:
   tier 0: computed + promoted from below - demoted; others: demoted from above - promoted - recomputed - demoted. */
struct blocks_count {
	uint64_t lookups;
	uint64_t hits[BLOCKS_TIERS_MAX];              /* by the tier where the block was */
	uint64_t computed;                            /* new in tier 0 */
	uint64_t recomputed[BLOCKS_TIERS_MAX];        /* of those, the ones that were held in a tier, behind a gap; 0 in tier 0 */
	uint64_t promoted_bytes[BLOCKS_TIERS_MAX];    /* from the tier to tier 0; 0 from tier 0 */
	uint64_t demoted_bytes[BLOCKS_TIERS_MAX];     /* from the tier to the next; from the last: dropped, nothing is moved */
};

struct blocks;

/* Memory grows with the blocks held, never beyond the capacities and one request. */
struct blocks *blocks_new(const struct blocks_config *config, struct arena *a);
/* One request with the hashes of its n blocks, first to last. */
void blocks_request(struct blocks *b, const uint64_t *hash, size_t n, struct blocks_count *out);
/* The tier that holds the block, -1: none. */
int blocks_find(const struct blocks *b, uint64_t hash);
/* A number of the block's own while it is held: from 0 on, and of those that are free. It must be held. */
uint32_t blocks_number(const struct blocks *b, uint64_t hash);
uint64_t blocks_held(const struct blocks *b, uint32_t tier);
void blocks_count_add(struct blocks_count *sum, const struct blocks_count *x);

#endif
