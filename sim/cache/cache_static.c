/*
 * cache_static.c - the most popular are in from the start, and nothing ever comes or leaves.
 */
#include "sim/cache/cache_policies.h"

static int more_popular(const void *x, const void *y, void *popularity)
{
	const double *p = popularity;
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

	if (p[a] != p[b])
		return p[a] > p[b] ? -1 : 1;
	return a < b ? -1 : a > b;
}

static void init(struct cache *c, struct arena *a)
{
	const struct cache_config *config = cache_config(c);
	uint32_t *item = arena_array(a, uint32_t, config->n_items);

	for (uint32_t i = 0; i < config->n_items; i++)
		item[i] = i;
	qsort_r(item, config->n_items, sizeof(*item), more_popular, (void *)config->popularity);
	for (uint32_t i = 0; i < config->n_items; i++)
		cache_preload(c, item[i]);
}

static void nothing(struct cache *c, uint32_t item)
{
	(void)c, (void)item;
}

static uint32_t nobody(struct cache *c)
{
	(void)c;
	return CACHE_NONE;
}

const struct cache_ops cache_static = {
	.name = "static",
	.help = "the most popular are in from the start and stay",
	.needs_popularity = true,
	.init = init,
	.insert = nothing,
	.remove = nothing,
	.victim = nobody,
};
