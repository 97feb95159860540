/*
 * kvcache.h - KV and state bytes of a layer.
 *
 * bytes = sequences * (min(tokens, window) * (k_elements * b_k + v_elements * b_v)
 *                      + tokens / extra_every * extra_elements * b_k + state)
 *
 *	MHA, GQA, MQA     k, v = kv heads * head dim
 *	MLA               k = kv_lora_rank + rope, v = 0: one vector for both
 *	window            a layer keeps the last `window` tokens
 *	sparse attention  extra = one index key a token; compressed attention: one entry every few tokens
 *	state             recurrent and linear layers: does not grow
 *
 * Checked against published sizes. What the runtimes add (padding to 256 cells, blocks of pages) is theirs.
 */
#ifndef MODELS_KVCACHE_H
#define MODELS_KVCACHE_H

#include "models/model.h"

/* What a runtime keeps of MLA. Other layers are the same in all. */
enum kvcache_form {
	KVCACHE_LATENT,      /* the latent vector (flash attention; vLLM; ik_llama.cpp -mla 2 and 3) */
	KVCACHE_LATENT_COPY, /* and a copy of it without the rotated part, as values (llama.cpp without flash
				attention; ik_llama.cpp -mla 1) */
	KVCACHE_HEADS,       /* keys and values of all heads, unpacked (no MLA) */
	KVCACHE_FORM_N,
};

/* Types of keys and values apart. Latent vectors, index keys and compressed entries count as keys. */
struct kvcache_types {
	const struct quant_type *k, *v;
	enum kvcache_form form;
};

/* Keys and values of one type, the latent form of MLA. */
#define KVCACHE_SAME(type) (&(struct kvcache_types){(type), (type), KVCACHE_LATENT})

/* Growing part of one token in one layer; the window does not matter here. A compressed entry counts as its
   share of a token, rounded up. */
uint64_t kvcache_token_bytes(const struct model_layer *l, const struct kvcache_types *types);
/* Of one layer, one sequence that holds `tokens` tokens: window applied, state added. */
uint64_t kvcache_layer_bytes(const struct model_layer *l, uint64_t tokens, const struct kvcache_types *types);
/* Of all layers. */
uint64_t kvcache_bytes(const struct model *m, uint64_t tokens, uint64_t sequences, const struct kvcache_types *types);

/* "latent", "latent-copy", "heads"; KVCACHE_FORM_N when unknown. */
enum kvcache_form kvcache_form_find(const char *name);

#endif
