#include "sim/cache/cache_set.h"

#include <string.h>

#include "base/suggest.h"
#include "sim/cache/cache_policies.h"

static const char *const scope_names[] = {[CACHE_GLOBAL] = "global", [CACHE_LAYER] = "layer"};

static const struct {
	const char *name;
	const struct cache_ops *ops;
} per_layer[] = {
	{"layer", &cache_lru},
	{"layerlfu", &cache_lfu},
};

static uint64_t largest(const uint64_t *item_bytes, uint32_t n)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < n; i++)
		if (item_bytes[i] > most)
			most = item_bytes[i];
	return most;
}

void cache_set_init(struct cache_set *s, const struct cache_config *config, enum cache_scope scope,
	uint32_t n_layers, uint32_t slots, struct arena *a)
{
	uint32_t n_sharing = 0;

	*s = (struct cache_set){.n_layers = n_layers, .scope = scope};
	s->items_per_layer = n_layers ? config->n_items / n_layers : 0;
	s->cache = arena_array(a, struct cache *, scope == CACHE_GLOBAL ? 1 : n_layers);
	if (scope == CACHE_GLOBAL) {
		s->cache[0] = cache_new(config, a);
		return;
	}
	for (uint32_t l = 0; l < n_layers; l++)
		n_sharing += largest(config->item_bytes + l * s->items_per_layer, s->items_per_layer) > 0;
	for (uint32_t l = 0; l < n_layers; l++) {
		struct cache_config share = *config;
		share.first_item = l * s->items_per_layer;
		share.n_items = s->items_per_layer;
		share.item_bytes += share.first_item;
		uint64_t most = largest(share.item_bytes, share.n_items);
		share.budget_bytes = slots ? slots * most : most ? config->budget_bytes / n_sharing : 0;
		if (share.popularity)
			share.popularity += share.first_item;
		s->cache[l] = cache_new(&share, a);
	}
}

static struct cache *cache_of(const struct cache_set *s, uint32_t layer)
{
	return s->cache[s->scope == CACHE_GLOBAL ? 0 : layer];
}

void cache_set_batch(struct cache_set *s, uint32_t layer, const uint32_t *use, size_t n, struct cache_outcome *out)
{
	cache_batch(cache_of(s, layer), use, n, out);
}

void cache_set_prefetch(struct cache_set *s, uint32_t layer, const uint32_t *item, size_t n,
	struct cache_outcome *out)
{
	cache_prefetch(cache_of(s, layer), item, n, out);
}

bool cache_set_holds(const struct cache_set *s, uint32_t item)
{
	return cache_holds(cache_of(s, item / s->items_per_layer), item);
}

uint64_t cache_set_used_bytes(const struct cache_set *s)
{
	uint64_t used_bytes = 0;

	for (uint32_t l = 0; l < (s->scope == CACHE_GLOBAL ? 1 : s->n_layers); l++)
		used_bytes += cache_used_bytes(s->cache[l]);
	return used_bytes;
}

const char *cache_scope_name(enum cache_scope scope)
{
	return scope_names[scope];
}

int cache_scope_find(const char *name, const struct err_pos *pos, enum cache_scope *out, struct err *err)
{
	struct suggest s;
	char near[128];

	suggest_init(&s, name);
	for (size_t i = 0; i < ARRAY_LEN(scope_names); i++) {
		if (strcmp(scope_names[i], name) == 0) {
			*out = (enum cache_scope)i;
			return 0;
		}
		suggest_offer(&s, scope_names[i]);
	}
	if (!suggest_best(&s))
		return err_at(err, ERR_INPUT, pos, "unknown cache scope '%.60s'; known: global, layer", name);
	return err_at(err, ERR_INPUT, pos, "unknown cache scope '%.60s'%s", name, suggest_text(&s, near, sizeof(near)));
}

int cache_set_policy_find(const char *name, const struct err_pos *pos, const struct cache_ops **out,
	enum cache_scope *scope, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(per_layer); i++) {
		if (strcmp(per_layer[i].name, name) == 0) {
			*out = per_layer[i].ops;
			*scope = CACHE_LAYER;
			return 0;
		}
	}
	return cache_policy_find(name, pos, out, err);
}
