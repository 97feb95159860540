/*
 * arch_dense.c - attention with grouped heads and the dense feed-forward: Llama, Mistral, Qwen, Gemma, Phi,
 * OPT, BLOOM, Falcon, GPT-J, GPT-NeoX …
 *
 *	weights   q: hidden x heads * head_dim_k     k: hidden x kv heads * head_dim_k
 *	          v: hidden x kv heads * head_dim_v  o: heads * head_dim_v x hidden
 *	cache     kv heads * (head_dim_k + head_dim_v) elements a token
 */
#include "models/arch.h"

void arch_qkv(struct build *b, const struct arch_config *c, uint64_t q, uint64_t k, uint64_t v)
{
	if (c->arch->fused_qkv) {
		arch_linear(b, MODEL_ATTN, "attn_qkv", c->hidden, q + k + v, c->qkv_bias);
		return;
	}
	arch_linear(b, MODEL_ATTN, "attn_q", c->hidden, q, c->qkv_bias);
	arch_linear(b, MODEL_ATTN, "attn_k", c->hidden, k, c->qkv_bias);
	if (v)
		arch_linear(b, MODEL_ATTN, "attn_v", c->hidden, v, c->qkv_bias);
}

void arch_attention(struct build *b, const struct arch_config *c, int layer)
{
	const struct arch_layer *shape = &c->layers[layer];
	const struct arch *arch = c->arch;
	struct model_layer *l = build_layer(b, layer);
	uint64_t q = (uint64_t)shape->n_head * shape->head_dim_k,
		 o = (uint64_t)shape->n_head * shape->head_dim_v;
	uint64_t k = (uint64_t)shape->n_kv_head * shape->head_dim_k;
	uint64_t v = (uint64_t)shape->n_kv_head * shape->head_dim_v;

	l->n_head = shape->n_head;
	l->n_kv_head = shape->n_kv_head;
	l->head_dim_k = shape->head_dim_k;
	l->head_dim_v = shape->head_dim_v;
	l->window = shape->window;
	if (!shape->shared_kv && !shape->draft) {
		l->kv_k_elements = k;
		l->kv_v_elements = v;
	}

	if (arch->norms != ARCH_NORMS_POST)
		arch_norm(b, c, MODEL_ATTN, "attn_norm", c->hidden);
	if (c->second_norm)
		arch_norm(b, c, MODEL_ATTN, "attn_norm_2", c->hidden);
	/* layers that use another's cache have keys and values all the same in Gemma's files (llama.cpp
	 * counts them) */
	arch_qkv(b, c, q * (arch->q_gate ? 2 : 1), k, shape->no_v ? 0 : v);
	if (c->qk_norm) {
		bool wide = arch->qk_norm == ARCH_QK_WIDTH;

		build_add(b, MODEL_ATTN, "attn_q_norm.weight", wide ? q : shape->head_dim_k, 1, 1);
		build_add(b, MODEL_ATTN, "attn_k_norm.weight", wide ? k : shape->head_dim_k, 1, 1);
	}
	if (shape->indexer)
		arch_indexer(b, c, layer, c->hidden);
	if (shape->sinks)
		build_add(b, MODEL_ATTN, "attn_sinks.weight", shape->n_head, 1, 1);
	if (arch->head_gate)
		arch_linear(b, MODEL_ATTN, "attn_gate", c->hidden, shape->n_head, false);
	if (arch->sub_norm)
		arch_norm(b, c, MODEL_ATTN, "attn_sub_norm", o);
	arch_linear(b, MODEL_ATTN, "attn_output", o, c->hidden, c->output_bias);
	if (arch->norms == ARCH_NORMS_SANDWICH || arch->norms == ARCH_NORMS_POST)
		arch_norm(b, c, MODEL_ATTN, "post_attention_norm", c->hidden);
}

void arch_glu(struct build *b, const struct arch_config *c, enum model_group g, const char *suffix,
	uint64_t ffn, bool bias)
{
	char name[32];
	bool fused = c->gated_ffn && c->arch->fused_ffn && !*suffix;

	if (c->gated_ffn && !fused) {
		snprintf(name, sizeof(name), "ffn_gate%s", suffix);
		arch_linear(b, g, name, c->hidden, ffn, bias);
	}
	snprintf(name, sizeof(name), "ffn_up%s", suffix);
	arch_linear(b, g, name, c->hidden, fused ? 2 * ffn : ffn, bias);
	snprintf(name, sizeof(name), "ffn_down%s", suffix);
	arch_linear(b, g, name, ffn, c->hidden, bias);
}

void arch_ffn(struct build *b, const struct arch_config *c, int layer)
{
	const struct arch *arch = c->arch;
	uint64_t ffn = c->layers[layer].ffn;

	if (arch->norms != ARCH_NORMS_POST && arch->norms != ARCH_NORMS_PARALLEL)
		arch_norm(b, c, MODEL_FFN, arch->ffn_norm ? arch->ffn_norm : "ffn_norm", c->hidden);
	if (arch->sub_norm)
		arch_norm(b, c, MODEL_FFN, "ffn_sub_norm", ffn);
	arch_glu(b, c, MODEL_FFN, "", ffn, c->ffn_bias);
	if (arch->norms == ARCH_NORMS_SANDWICH || arch->norms == ARCH_NORMS_POST)
		arch_norm(b, c, MODEL_FFN, "post_ffw_norm", c->hidden);
}
