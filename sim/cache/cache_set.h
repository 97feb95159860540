/*
 * cache_set.h - one cache for all layers, or one a layer with its share of the budget.
 *
 * Items are layer x items per layer + number in the layer, in both.
 */
#ifndef SIM_CACHE_CACHE_SET_H
#define SIM_CACHE_CACHE_SET_H

#include "sim/cache/cache.h"

enum cache_scope { CACHE_GLOBAL, CACHE_LAYER };

struct cache_set {
	struct cache **cache; /* one, or one a layer */
	uint32_t n_layers, items_per_layer;
	enum cache_scope scope;
};

/* config speaks of all layers: n_items is a multiple of n_layers, first_item is 0. Layers whose items have no bytes (those
   without experts) have no share of the budget; of the others each has room for `slots` items, or, when that is 0, an
   equal share. */
void cache_set_init(struct cache_set *s, const struct cache_config *config, enum cache_scope scope,
	uint32_t n_layers, uint32_t slots, struct arena *a);
/* As cache_batch and cache_prefetch; all items belong to this layer. */
void cache_set_batch(struct cache_set *s, uint32_t layer, const uint32_t *use, size_t n, struct cache_outcome *out);
void cache_set_prefetch(struct cache_set *s, uint32_t layer, const uint32_t *item, size_t n,
	struct cache_outcome *out);
bool cache_set_holds(const struct cache_set *s, uint32_t item);
uint64_t cache_set_used_bytes(const struct cache_set *s);

const char *cache_scope_name(enum cache_scope scope);
int cache_scope_find(const char *name, const struct err_pos *pos, enum cache_scope *out, struct err *err);

/* Published curves call lru with a share a layer "layer", and lfu "layerlfu": such a name sets *scope, which is left alone
   by the policies' own names. */
int cache_set_policy_find(const char *name, const struct err_pos *pos, const struct cache_ops **out,
	enum cache_scope *scope, struct err *err);

#endif
