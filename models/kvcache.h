/*
 * kvcache.h - KV and state bytes of a layer.
 *
 * bytes = sequences * min(tokens, window) * (k_elements * b_k + v_elements * b_v) + state
 * (MHA, GQA, MQA: elements = kv heads * head dim; checked against published sizes).
 */
#ifndef MODELS_KVCACHE_H
#define MODELS_KVCACHE_H

#include "models/model.h"

/* Growing part of one token in one layer; the window does not matter here. */
uint64_t kvcache_token_bytes(const struct model_layer *l, const struct quant_type *type);
/* Of one layer, one sequence that holds `tokens` tokens: window applied, state added. */
uint64_t kvcache_layer_bytes(const struct model_layer *l, uint64_t tokens, const struct quant_type *type);
/* Of all layers. */
uint64_t kvcache_bytes(const struct model *m, uint64_t tokens, uint64_t sequences,
		       const struct quant_type *type);

#endif
