/*
 * arch_moe.c - attention, then a router and experts, with or without a shared expert (Mixtral, Qwen2-MoE,
 * Qwen3-MoE).
 *
 * The norm before the feed-forward goes with the router, which is the first to need its result.
 */
#include "models/arch.h"

void arch_moe_layer(struct build *b, const struct arch_config *c, int layer)
{
	const struct arch_layer *shape = &c->layers[layer];
	struct model_layer *l;

	if (!shape->n_expert) {
		arch_dense_layer(b, c, layer);
		return;
	}
	arch_attention(b, c, layer);
	l = build_layer(b, layer);
	l->n_expert = shape->n_expert;
	l->n_expert_used = c->n_expert_used;

	arch_norm(b, c, MODEL_ROUTER, "ffn_norm", c->hidden);
	build_add(b, MODEL_ROUTER, "ffn_gate_inp.weight", c->hidden, shape->n_expert, 1);
	if (c->shared_ffn) {
		/* one output: how much of the shared expert to add */
		build_add(b, MODEL_SHARED, "ffn_gate_inp_shexp.weight", c->hidden, 1, 1);
		arch_linear(b, MODEL_SHARED, "ffn_gate_shexp", c->hidden, c->shared_ffn, false);
		arch_linear(b, MODEL_SHARED, "ffn_up_shexp", c->hidden, c->shared_ffn, false);
		arch_linear(b, MODEL_SHARED, "ffn_down_shexp", c->shared_ffn, c->hidden, false);
	}
	build_add(b, MODEL_EXPERTS, "ffn_gate_exps.weight", c->hidden, c->expert_ffn, shape->n_expert);
	build_add(b, MODEL_EXPERTS, "ffn_up_exps.weight", c->hidden, c->expert_ffn, shape->n_expert);
	build_add(b, MODEL_EXPERTS, "ffn_down_exps.weight", c->expert_ffn, c->hidden, shape->n_expert);
}
