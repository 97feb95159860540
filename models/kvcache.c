/*
 * kvcache.c - KV and state bytes: the formula of kvcache.h, saturating.
 */
#include "models/kvcache.h"

#include <string.h>

#include "models/sat.h"

/* A token's row of one layer is stored in whole blocks; every published geometry is a multiple already. */
static uint64_t row_bytes(uint64_t elements, const struct quant_type *type)
{
	uint64_t blocks = elements / type->block_elements + (elements % type->block_elements != 0);

	return sat_mul(blocks, type->block_bytes);
}

/* Elements that the window caps. */
static void elements_of(const struct model_layer *l, enum kvcache_form form, uint64_t *k, uint64_t *v)
{
	*k = l->kv_k_elements;
	*v = l->kv_v_elements;
	if (!l->mla_dim_k || !*k)
		return;
	if (form == KVCACHE_LATENT_COPY)
		*v = l->head_dim_v;
	else if (form == KVCACHE_HEADS) {
		*k = (uint64_t)l->n_head * l->mla_dim_k;
		*v = (uint64_t)l->n_head * l->mla_dim_v;
	}
}

static uint64_t windowed_bytes(const struct model_layer *l, const struct kvcache_types *t)
{
	uint64_t k, v;

	elements_of(l, t->form, &k, &v);
	return sat_add(row_bytes(k, t->k), row_bytes(v, t->v));
}

uint64_t kvcache_token_bytes(const struct model_layer *l, const struct kvcache_types *types)
{
	uint64_t extra = row_bytes(l->kv_extra_elements, types->k),
		 every = l->kv_extra_every ? l->kv_extra_every : 1;

	return sat_add(windowed_bytes(l, types), extra / every + (extra % every != 0));
}

uint64_t kvcache_layer_bytes(const struct model_layer *l, uint64_t tokens, const struct kvcache_types *types)
{
	uint64_t held = l->window && tokens > l->window ? l->window : tokens;
	uint64_t entries = l->kv_extra_every ? tokens / l->kv_extra_every : tokens;
	uint64_t extra = sat_mul(entries, row_bytes(l->kv_extra_elements, types->k));

	return sat_add(sat_add(sat_mul(held, windowed_bytes(l, types)), extra), l->state_bytes);
}

uint64_t kvcache_bytes(
	const struct model *m, uint64_t tokens, uint64_t sequences, const struct kvcache_types *types)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < m->n_layer; i++)
		sum = sat_add(sum, kvcache_layer_bytes(&m->layers[i], tokens, types));
	return sat_mul(sum, sequences);
}

enum kvcache_form kvcache_form_find(const char *name)
{
	static const char *const names[KVCACHE_FORM_N] = {"latent", "latent-copy", "heads"};
	int i = 0;

	while (i < KVCACHE_FORM_N && strcmp(name, names[i]))
		i++;
	return (enum kvcache_form)i;
}
