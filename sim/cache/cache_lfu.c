/*
 * cache_lfu.c - the least often looked up leaves; of those the least recently used. Counts are kept when an item leaves.
 */
#include "sim/cache/cache_policies.h"
#include "sim/cache/tournament.h"

struct lfu {
	struct tournament order; /* (lookups, latest use) */
	uint64_t *count;         /* by item: lookups since the start */
	uint64_t clock;
};

static void init(struct cache *c, struct arena *a)
{
	struct lfu *s = cache_state(c);

	tournament_init(&s->order, cache_config(c)->n_items, a);
	s->count = arena_array(a, uint64_t, cache_config(c)->n_items);
}

static void lookup(struct cache *c, uint32_t item)
{
	struct lfu *s = cache_state(c);

	s->count[item]++;
}

static void insert(struct cache *c, uint32_t item)
{
	struct lfu *s = cache_state(c);

	tournament_set(&s->order, item, s->count[item], s->clock++);
}

static void take_out(struct cache *c, uint32_t item)
{
	struct lfu *s = cache_state(c);

	tournament_remove(&s->order, item);
}

static uint32_t victim(struct cache *c)
{
	const struct lfu *s = cache_state(c);

	return tournament_first(&s->order);
}

const struct cache_ops cache_lfu = {
	.name = "lfu",
	.help = "the least often looked up leaves, counted since the start",
	.state_size = sizeof(struct lfu),
	.init = init,
	.lookup = lookup,
	.insert = insert,
	.remove = take_out,
	.victim = victim,
};
