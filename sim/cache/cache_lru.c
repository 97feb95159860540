/*
 * cache_lru.c - the least recently used leaves.
 */
#include "sim/cache/cache_policies.h"

/* A ring of items in order of use; the number behind the last item is its head. */
struct lru {
	struct {
		uint32_t older, newer;
	} *link;
	uint32_t head; /* newer: the oldest; older: the newest */
};

static void init(struct cache *c, struct arena *a)
{
	struct lru *s = cache_state(c);

	s->head = cache_config(c)->n_items;
	s->link = arena_alloc_array(a, (size_t)s->head + 1, sizeof(*s->link));
	s->link[s->head].older = s->link[s->head].newer = s->head;
}

static void insert(struct cache *c, uint32_t item)
{
	struct lru *s = cache_state(c);
	uint32_t newest = s->link[s->head].older;

	s->link[item].older = newest;
	s->link[item].newer = s->head;
	s->link[newest].newer = item;
	s->link[s->head].older = item;
}

static void take_out(struct cache *c, uint32_t item)
{
	struct lru *s = cache_state(c);

	s->link[s->link[item].older].newer = s->link[item].newer;
	s->link[s->link[item].newer].older = s->link[item].older;
}

static uint32_t victim(struct cache *c)
{
	const struct lru *s = cache_state(c);
	uint32_t oldest = s->link[s->head].newer;

	return oldest == s->head ? CACHE_NONE : oldest;
}

const struct cache_ops cache_lru = {
	.name = "lru",
	.help = "the least recently used leaves",
	.state_size = sizeof(struct lru),
	.init = init,
	.insert = insert,
	.remove = take_out,
	.victim = victim,
};
