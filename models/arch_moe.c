/*
 * arch_moe.c - a router and experts, with or without shared experts that every token uses (Mixtral, Qwen,
 * DeepSeek, gpt-oss, Llama 4, MiniMax …).
 *
 * The norm before the feed-forward goes with the router, which is the first to need its result. Several
 * shared experts are stored as one of their summed width. Where experts work in a narrower space
 * (Nemotron-3, Kimi-K3), the projections into and out of it are used by every token: group `shared`.
 */
#include "models/arch.h"

/* Biases of experts, one row an expert. */
static void expert_bias(struct build *b, const char *name, uint64_t width, uint64_t experts)
{
	build_add(b, MODEL_EXPERTS, name, width, experts, 1);
}

void arch_experts(struct build *b, const struct arch_config *c, int layer)
{
	const struct arch_layer *shape = &c->layers[layer];
	struct model_layer *l = build_layer(b, layer);
	uint64_t width = c->latent ? c->latent : c->hidden;

	l->n_expert = shape->n_expert;
	l->n_expert_used = c->n_expert_used;
	if (c->gated_ffn)
		build_add(b, MODEL_EXPERTS, "ffn_gate_exps.weight", width, c->expert_ffn, shape->n_expert);
	build_add(b, MODEL_EXPERTS, "ffn_up_exps.weight", width, c->expert_ffn, shape->n_expert);
	build_add(b, MODEL_EXPERTS, "ffn_down_exps.weight", c->expert_ffn, width, shape->n_expert);
	if (!c->arch->expert_bias)
		return;
	if (c->gated_ffn)
		expert_bias(b, "ffn_gate_exps.bias", c->expert_ffn, shape->n_expert);
	expert_bias(b, "ffn_up_exps.bias", c->expert_ffn, shape->n_expert);
	expert_bias(b, "ffn_down_exps.bias", width, shape->n_expert);
}

void arch_moe(struct build *b, const struct arch_config *c, int layer)
{
	const struct arch_layer *shape = &c->layers[layer];
	const struct arch *arch = c->arch;

	if (arch->norms != ARCH_NORMS_POST && arch->norms != ARCH_NORMS_PARALLEL)
		arch_norm(b, c, MODEL_ROUTER, arch->ffn_norm ? arch->ffn_norm : "ffn_norm", c->hidden);
	arch_linear(b, MODEL_ROUTER, "ffn_gate_inp", c->hidden, shape->n_expert, arch->router_linear_bias);
	if ((uint32_t)layer < c->hash_layers)
		build_add(b, MODEL_ROUTER, "ffn_gate_tid2eid.weight", c->n_expert_used, c->vocab, 1);
	else if (c->router_bias)
		build_add(b, MODEL_ROUTER, "exp_probs_b.bias", shape->n_expert, 1, 1);
	if (c->latent) {
		arch_linear(b, MODEL_SHARED, "ffn_latent_down", c->hidden, c->latent, false);
		if (c->latent_norm)
			build_add(b, MODEL_SHARED, "ffn_latent_norm.weight", c->latent, 1, 1);
		arch_linear(b, MODEL_SHARED, "ffn_latent_up", c->latent, c->hidden, false);
	}
	if (c->shared_ffn) {
		if (arch->shared_gate)
			build_add(b, MODEL_SHARED, "ffn_gate_inp_shexp.weight", c->hidden, 1, 1);
		arch_glu(b, c, MODEL_SHARED, "_shexp", c->shared_ffn, false);
	}
	arch_experts(b, c, layer);
	if (arch->norms == ARCH_NORMS_SANDWICH || arch->norms == ARCH_NORMS_POST)
		arch_norm(b, c, MODEL_ROUTER, "post_ffw_norm", c->hidden);
}

/* Arctic: a dense feed-forward and experts side by side, each under its own norm. */
void arch_arctic_layer(struct build *b, const struct arch_config *c, int layer)
{
	arch_attention(b, c, layer);
	arch_norm(b, c, MODEL_FFN, "ffn_norm", c->hidden);
	arch_glu(b, c, MODEL_FFN, "", c->layers[layer].ffn, false);
	if (!c->layers[layer].n_expert)
		return;
	arch_norm(b, c, MODEL_ROUTER, "ffn_norm_exps", c->hidden);
	arch_linear(b, MODEL_ROUTER, "ffn_gate_inp", c->hidden, c->layers[layer].n_expert, false);
	arch_experts(b, c, layer);
}
