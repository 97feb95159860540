/*
 * arch_ssm.c - mixers with a state of fixed size in place of a growing cache.
 *
 *	              state (elements a sequence)     convolution
 *	Mamba         inner * state                   (conv - 1) * inner
 *	Mamba-2       inner * state                   (conv - 1) * (inner + 2 * groups * state)
 *	gated Delta   v_heads * dim_k * dim_v         (conv - 1) * (2 * k_heads * dim_k + v_heads * dim_v)
 *	KDA           heads * dim * dim               3 * (conv - 1) * heads * dim
 *	lightning     heads * dim * dim               none
 *	short conv    none                            (conv - 1) * hidden
 *
 * (Mamba-2: inner = heads * head_dim.)
 * Both are f32 in llama.cpp (src/llama-hparams.cpp, n_embd_r and n_embd_s; loader logs of Qwen3-Next agree);
 * a configuration's mamba_ssm_cache_dtype or mamba_ssm_dtype is that of the state.
 *
 * FLOPs of one step of the recurrence, besides the projections: 7 an element of a delta rule's state (decay
 *1, k'S 2, rank-one update 2, q'S 2), 6 of Mamba's (discretise 1, decay 1, input 2, output 2), 5 of linear
 * attention's (decay 1, update 2, output 2).
 */
#include "models/arch.h"

static void set_state(
	struct model_layer *l, const struct arch_config *c, double conv, double state, double flops)
{
	double bytes = conv * sizeof(float) + state * c->state_elem_bytes;

	/* sizes are bounded where they are read, but products of several could pass 2^64 */
	l->state_bytes = bytes < 0x1p63 ? (uint64_t)bytes : UINT64_MAX;
	l->state_flops = flops * state;
}

/* Mamba (arXiv 2312.00752); Jamba norms dt, B and C. */
static void mamba(struct build *b, const struct arch_config *c, struct model_layer *l)
{
	uint64_t inner = c->ssm_inner, state = c->ssm_state, rank = c->ssm_rank;

	set_state(l, c, (double)(c->ssm_conv - 1) * inner, (double)inner * state, 6);
	arch_linear(b, MODEL_ATTN, "ssm_in", c->hidden, 2 * inner, c->ssm_bias);
	build_add(b, MODEL_ATTN, "ssm_conv1d.weight", c->ssm_conv, inner, 1);
	if (c->ssm_conv_bias)
		build_add(b, MODEL_ATTN, "ssm_conv1d.bias", inner, 1, 1);
	arch_linear(b, MODEL_ATTN, "ssm_x", inner, rank + 2 * state, false);
	arch_linear(b, MODEL_ATTN, "ssm_dt", rank, inner, true);
	build_add(b, MODEL_ATTN, "ssm_a", state, inner, 1);
	build_add(b, MODEL_ATTN, "ssm_d", inner, 1, 1);
	if (c->qk_norm) {
		build_add(b, MODEL_ATTN, "ssm_dt_norm.weight", rank, 1, 1);
		build_add(b, MODEL_ATTN, "ssm_b_norm.weight", state, 1, 1);
		build_add(b, MODEL_ATTN, "ssm_c_norm.weight", state, 1, 1);
	}
	arch_linear(b, MODEL_ATTN, "ssm_out", inner, c->hidden, c->ssm_bias);
}

static void mamba2(struct build *b, const struct arch_config *c, struct model_layer *l)
{
	uint64_t inner = c->ssm_inner, heads = c->ssm_heads;
	uint64_t conv = inner + 2 * (uint64_t)c->ssm_groups * c->ssm_state;

	set_state(l, c, (double)(c->ssm_conv - 1) * conv, (double)inner * c->ssm_state, 6);
	arch_linear(b, MODEL_ATTN, "ssm_in", c->hidden, inner + conv + heads, c->ssm_bias);
	build_add(b, MODEL_ATTN, "ssm_conv1d.weight", c->ssm_conv, conv, 1);
	if (c->ssm_conv_bias)
		build_add(b, MODEL_ATTN, "ssm_conv1d.bias", conv, 1, 1);
	build_add(b, MODEL_ATTN, "ssm_dt.bias", heads, 1, 1);
	build_add(b, MODEL_ATTN, "ssm_a", 1, heads, 1);
	build_add(b, MODEL_ATTN, "ssm_d", 1, heads, 1);
	build_add(b, MODEL_ATTN, "ssm_norm.weight", inner / c->ssm_groups, c->ssm_groups, 1);
	arch_linear(b, MODEL_ATTN, "ssm_out", inner, c->hidden, c->ssm_bias);
}

/* Qwen3-Next and 3.5 (arXiv 2412.06464). */
static void delta(struct build *b, const struct arch_config *c, struct model_layer *l)
{
	uint64_t key = (uint64_t)c->delta_k_heads * c->delta_dim_k;
	uint64_t value = (uint64_t)c->delta_v_heads * c->delta_dim_v, conv = 2 * key + value;

	set_state(l, c, (double)(c->ssm_conv - 1) * conv,
		(double)c->delta_v_heads * c->delta_dim_k * c->delta_dim_v, 7);
	arch_linear(b, MODEL_ATTN, "attn_qkv", c->hidden, conv, false);
	arch_linear(b, MODEL_ATTN, "attn_gate", c->hidden, value, false);
	if (!strcmp(c->arch->name, "qwen3next")) {
		arch_linear(b, MODEL_ATTN, "ssm_ba", c->hidden, 2 * (uint64_t)c->delta_v_heads, false);
	} else {
		arch_linear(b, MODEL_ATTN, "ssm_beta", c->hidden, c->delta_v_heads, false);
		arch_linear(b, MODEL_ATTN, "ssm_alpha", c->hidden, c->delta_v_heads, false);
	}
	build_add(b, MODEL_ATTN, "ssm_conv1d.weight", c->ssm_conv, conv, 1);
	build_add(b, MODEL_ATTN, "ssm_dt.bias", c->delta_v_heads, 1, 1);
	build_add(b, MODEL_ATTN, "ssm_a", c->delta_v_heads, 1, 1);
	build_add(b, MODEL_ATTN, "ssm_norm.weight", c->delta_dim_v, 1, 1);
	arch_linear(b, MODEL_ATTN, "ssm_out", value, c->hidden, false);
}

/* Kimi Linear (arXiv 2510.26692): a decay a channel, from a low-rank projection. */
static void kda(struct build *b, const struct arch_config *c, struct model_layer *l)
{
	uint64_t heads = c->ssm_heads, dim = c->ssm_state, inner = heads * dim;
	static const char *const conv[] = {
		"ssm_conv1d_q.weight", "ssm_conv1d_k.weight", "ssm_conv1d_v.weight"};

	set_state(l, c, 3.0 * (c->ssm_conv - 1) * inner, (double)inner * dim, 7);
	arch_linear(b, MODEL_ATTN, "attn_q", c->hidden, inner, false);
	arch_linear(b, MODEL_ATTN, "attn_k", c->hidden, inner, false);
	arch_linear(b, MODEL_ATTN, "attn_v", c->hidden, inner, false);
	for (size_t i = 0; i < ARRAY_LEN(conv); i++)
		build_add(b, MODEL_ATTN, conv[i], c->ssm_conv, inner, 1);
	arch_linear(b, MODEL_ATTN, "ssm_f_a", c->hidden, dim, false);
	arch_linear(b, MODEL_ATTN, "ssm_f_b", dim, inner, false);
	arch_linear(b, MODEL_ATTN, "ssm_beta", c->hidden, heads, false);
	build_add(b, MODEL_ATTN, "ssm_a", 1, heads, 1);
	build_add(b, MODEL_ATTN, "ssm_dt.bias", inner, 1, 1);
	if (c->full_gate) {
		arch_linear(b, MODEL_ATTN, "attn_gate", c->hidden, inner, false);
	} else {
		arch_linear(b, MODEL_ATTN, "ssm_g_a", c->hidden, dim, false);
		arch_linear(b, MODEL_ATTN, "ssm_g_b", dim, inner, false);
	}
	build_add(b, MODEL_ATTN, "ssm_norm.weight", dim, 1, 1);
	arch_linear(b, MODEL_ATTN, "attn_output", inner, c->hidden, false);
}

/* MiniMax-01 (arXiv 2501.08313); not in GGUF. */
static void lightning(
	struct build *b, const struct arch_config *c, const struct arch_layer *shape, struct model_layer *l)
{
	uint64_t inner = (uint64_t)shape->n_head * shape->head_dim_k;

	set_state(l, c, 0, (double)inner * shape->head_dim_k, 5);
	arch_linear(b, MODEL_ATTN, "attn_qkv", c->hidden, 3 * inner, false);
	arch_linear(b, MODEL_ATTN, "attn_gate", c->hidden, inner, false);
	build_add(b, MODEL_ATTN, "attn_sub_norm.weight", inner, 1, 1);
	arch_linear(b, MODEL_ATTN, "attn_output", inner, c->hidden, false);
}

static void short_conv(struct build *b, const struct arch_config *c, struct model_layer *l)
{
	set_state(l, c, (double)(c->ssm_conv - 1) * c->hidden, 0, 0);
	arch_linear(b, MODEL_ATTN, "shortconv.in_proj", c->hidden, 3 * (uint64_t)c->hidden, c->ssm_bias);
	build_add(b, MODEL_ATTN, "shortconv.conv.weight", c->ssm_conv, c->hidden, 1);
	arch_linear(b, MODEL_ATTN, "shortconv.out_proj", c->hidden, c->hidden, c->ssm_bias);
}

void arch_ssm(struct build *b, const struct arch_config *c, int layer)
{
	const struct arch_layer *shape = &c->layers[layer];
	struct model_layer *l = build_layer(b, layer);

	if (c->arch->norms != ARCH_NORMS_NONE)
		arch_norm(b, c, MODEL_ATTN, "attn_norm", c->hidden);
	switch (shape->mixer) {
	case ARCH_MAMBA:
		mamba(b, c, l);
		break;
	case ARCH_MAMBA2:
		mamba2(b, c, l);
		break;
	case ARCH_DELTA:
		delta(b, c, l);
		break;
	case ARCH_KDA:
		kda(b, c, l);
		break;
	case ARCH_LIGHTNING:
		lightning(b, c, shape, l);
		break;
	case ARCH_CONV:
		short_conv(b, c, l);
		break;
	default:
		BUG("layer %d has no state", layer);
	}
}

/* Nemotron-H: a block is one mixer or one feed-forward, under one norm that is called attn_norm either way.
 */
void arch_block_layer(struct build *b, const struct arch_config *c, int layer)
{
	const struct arch_layer *shape = &c->layers[layer];

	build_layer(b, layer);
	if (shape->mixer == ARCH_ATTENTION)
		arch_attention(b, c, layer);
	else if (shape->mixer != ARCH_NO_MIXER)
		arch_ssm(b, c, layer);
	else if (shape->n_expert)
		arch_moe(b, c, layer);
	else
		arch_ffn(b, c, layer);
}
