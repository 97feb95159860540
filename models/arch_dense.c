/*
 * arch_dense.c - the transformer layer: attention with grouped heads, then a feed-forward.
 *
 *	Llama, Mistral, Qwen2, Qwen3   RMSNorm, q k v o, gate and up and down
 *	OPT                            LayerNorm, biased q k v o, up and down
 */
#include "models/arch.h"

void arch_attention(struct build *b, const struct arch_config *c, int layer)
{
	const struct arch_layer *shape = &c->layers[layer];
	struct model_layer *l = build_layer(b, layer);
	uint64_t q = (uint64_t)shape->n_head * c->head_dim_k, k = (uint64_t)shape->n_kv_head * c->head_dim_k;
	uint64_t v = (uint64_t)shape->n_kv_head * c->head_dim_v, o = (uint64_t)shape->n_head * c->head_dim_v;

	l->n_head = shape->n_head;
	l->n_kv_head = shape->n_kv_head;
	l->head_dim_k = c->head_dim_k;
	l->head_dim_v = c->head_dim_v;
	l->window = shape->window;
	l->kv_k_elements = k;
	l->kv_v_elements = v;

	arch_norm(b, c, MODEL_ATTN, "attn_norm", c->hidden);
	arch_linear(b, MODEL_ATTN, "attn_q", c->hidden, q, c->qkv_bias);
	arch_linear(b, MODEL_ATTN, "attn_k", c->hidden, k, c->qkv_bias);
	arch_linear(b, MODEL_ATTN, "attn_v", c->hidden, v, c->qkv_bias);
	if (c->arch->qk_norm) {
		build_add(b, MODEL_ATTN, "attn_q_norm.weight", c->head_dim_k, 1, 1);
		build_add(b, MODEL_ATTN, "attn_k_norm.weight", c->head_dim_k, 1, 1);
	}
	arch_linear(b, MODEL_ATTN, "attn_output", o, c->hidden, c->output_bias);
}

void arch_dense_layer(struct build *b, const struct arch_config *c, int layer)
{
	uint64_t ffn = c->layers[layer].ffn;

	arch_attention(b, c, layer);
	arch_norm(b, c, MODEL_FFN, "ffn_norm", c->hidden);
	if (!c->arch->plain_ffn)
		arch_linear(b, MODEL_FFN, "ffn_gate", c->hidden, ffn, c->ffn_bias);
	arch_linear(b, MODEL_FFN, "ffn_up", c->hidden, ffn, c->ffn_bias);
	arch_linear(b, MODEL_FFN, "ffn_down", ffn, c->hidden, c->ffn_bias);
}
