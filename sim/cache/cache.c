#include "sim/cache/cache.h"

/* epoch: the batch or prefetch that touched the item last: odd while it lasts, and the even number behind when it is over. */
struct item {
	uint64_t epoch : 63;
	uint64_t in : 1;
};

struct cache {
	struct cache_config config;
	const struct cache_ops *ops;
	void *state;
	struct item *item;
	uint64_t used_bytes;
	uint64_t epoch;
	uint64_t n_batches;
	uint32_t *missed, *evicted; /* as the owner numbers them */
	uint32_t *touched;          /* by the batch, latest use last, filled from its end */
};

struct cache *cache_new(const struct cache_config *config, struct arena *a)
{
	struct cache *c = arena_new(a, struct cache);

	if ((config->ops->needs_future && !config->next_use) || (config->ops->needs_popularity && !config->popularity))
		BUG("policy %s lacks what it needs", config->ops->name);
	c->config = *config;
	c->ops = config->ops;
	c->item = arena_array(a, struct item, config->n_items);
	c->missed = arena_array(a, uint32_t, config->n_items);
	c->evicted = arena_array(a, uint32_t, config->n_items);
	c->touched = arena_array(a, uint32_t, config->n_items);
	c->state = arena_alloc(a, c->ops->state_size);
	c->ops->init(c, a);
	return c;
}

bool cache_preload(struct cache *c, uint32_t item)
{
	uint64_t bytes = c->config.item_bytes[item];

	if (bytes > c->config.budget_bytes - c->used_bytes)
		return false;
	c->item[item].in = 1;
	c->used_bytes += bytes;
	return true;
}

/* The item's first use in this batch: in use until `end`, and to be read when it is not in. */
static void touch(struct cache *c, uint32_t item, struct cache_outcome *out)
{
	uint64_t bytes = c->config.item_bytes[item];

	c->item[item].epoch = c->epoch;
	if (c->item[item].in) {
		c->ops->remove(c, item);
		return;
	}
	c->missed[out->n_missed++] = c->config.first_item + item;
	out->missed_bytes += bytes;
	if (bytes <= c->config.budget_bytes && !c->ops->needs_popularity) {
		c->item[item].in = 1;
		c->used_bytes += bytes;
	}
}

static void evict(struct cache *c, struct cache_outcome *out)
{
	while (c->used_bytes > c->config.budget_bytes) {
		uint32_t v = c->ops->victim(c);
		if (v == CACHE_NONE)
			break;
		c->ops->remove(c, v);
		c->item[v].in = 0;
		c->used_bytes -= c->config.item_bytes[v];
		c->evicted[out->n_evicted++] = c->config.first_item + v;
	}
}

/* What the batch touched may leave again: at once where the budget is strict, else from the next batch on. */
static void end(struct cache *c, const uint32_t *use, size_t n, struct cache_outcome *out)
{
	uint32_t first = c->config.n_items;

	for (size_t k = n; k-- > 0;) {
		uint32_t i = use[k] - c->config.first_item;
		if (c->item[i].epoch == c->epoch) {
			c->item[i].epoch = c->epoch + 1;
			c->touched[--first] = i;
		}
	}
	c->epoch++;
	for (uint32_t k = first; k < c->config.n_items; k++)
		if (c->item[c->touched[k]].in)
			c->ops->insert(c, c->touched[k]);
	if (c->config.strict)
		evict(c, out);
}

static void begin(struct cache *c, struct cache_outcome *out)
{
	c->epoch++;
	*out = (struct cache_outcome){.missed = c->missed, .evicted = c->evicted};
}

void cache_batch(struct cache *c, const uint32_t *use, size_t n, struct cache_outcome *out)
{
	begin(c, out);
	for (size_t k = 0; k < n; k++) {
		uint32_t i = use[k] - c->config.first_item;
		if (c->item[i].epoch == c->epoch)
			continue;
		out->lookups++;
		out->hits += c->item[i].in;
		if (c->ops->lookup)
			c->ops->lookup(c, i);
		touch(c, i, out);
	}
	evict(c, out);
	end(c, use, n, out);
	c->n_batches++;
}

void cache_prefetch(struct cache *c, const uint32_t *item, size_t n, struct cache_outcome *out)
{
	begin(c, out);
	for (size_t k = 0; k < n; k++) {
		uint32_t i = item[k] - c->config.first_item;
		if (c->item[i].epoch != c->epoch)
			touch(c, i, out);
	}
	evict(c, out);
	end(c, item, n, out);
}

bool cache_holds(const struct cache *c, uint32_t item)
{
	return c->item[item - c->config.first_item].in;
}

bool cache_in_batch(const struct cache *c, uint32_t item)
{
	return c->epoch > 0 && c->item[item - c->config.first_item].epoch == c->epoch;
}

uint64_t cache_used_bytes(const struct cache *c)
{
	return c->used_bytes;
}

uint64_t cache_batch_index(const struct cache *c)
{
	return c->n_batches;
}

void *cache_state(const struct cache *c)
{
	return c->state;
}

const struct cache_config *cache_config(const struct cache *c)
{
	return &c->config;
}
