/*
 * kvcache.c - KV and state bytes: the formula of kvcache.h, saturating.
 */
#include "models/kvcache.h"

#include "models/sat.h"

/* A token's row of one layer is stored in whole blocks; every published geometry is a multiple already. */
static uint64_t row_bytes(uint64_t elements, const struct quant_type *type)
{
	uint64_t blocks = elements / type->block_elements + (elements % type->block_elements != 0);

	return sat_mul(blocks, type->block_bytes);
}

uint64_t kvcache_token_bytes(const struct model_layer *l, const struct quant_type *type)
{
	return sat_add(row_bytes(l->kv_k_elements, type), row_bytes(l->kv_v_elements, type));
}

uint64_t kvcache_layer_bytes(const struct model_layer *l, uint64_t tokens, const struct quant_type *type)
{
	if (l->window && tokens > l->window)
		tokens = l->window;
	return sat_add(sat_mul(tokens, kvcache_token_bytes(l, type)), l->state_bytes);
}

uint64_t kvcache_bytes(
	const struct model *m, uint64_t tokens, uint64_t sequences, const struct quant_type *type)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < m->n_layer; i++)
		sum = sat_add(sum, kvcache_layer_bytes(&m->layers[i], tokens, type));
	return sat_mul(sum, sequences);
}
