/*
 * cache_belady.c - the one not needed for longest leaves (L. A. Belady, IBM Systems Journal 5(2), 1966): with items of one
 * size no policy that admits every miss hits more often. A bound, for nobody knows the future.
 */
#include "sim/cache/cache_policies.h"
#include "sim/cache/tournament.h"

static void init(struct cache *c, struct arena *a)
{
	tournament_init(cache_state(c), cache_config(c)->n_items, a);
}

static void insert(struct cache *c, uint32_t item)
{
	const struct cache_config *config = cache_config(c);
	uint64_t next = config->next_use(config->next_use_ctx, config->first_item + item, cache_batch_index(c));

	tournament_set(cache_state(c), item, UINT64_MAX - next, 0);
}

static void take_out(struct cache *c, uint32_t item)
{
	tournament_remove(cache_state(c), item);
}

static uint32_t victim(struct cache *c)
{
	return tournament_first(cache_state(c));
}

const struct cache_ops cache_belady = {
	.name = "belady",
	.help = "the one not needed for longest leaves: a bound, for it knows the future",
	.needs_future = true,
	.state_size = sizeof(struct tournament),
	.init = init,
	.insert = insert,
	.remove = take_out,
	.victim = victim,
};
