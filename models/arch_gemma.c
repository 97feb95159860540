/*
 * arch_gemma.c - Gemma 3n and 4: an embedding of every token for every layer, caches shared between layers,
 * and in Gemma 4 a dense feed-forward beside the experts.
 *
 * Embeddings a layer (per_layer_token_embd) are a table that is looked up, per_layer_vocab rows of layers *
 * width; it may stay in slow memory, and "effective" parameter counts leave it out. The last
 * num_kv_shared_layers layers attend to the cache of an earlier layer and keep none. Shapes: llama.cpp
 * src/models/gemma3n.cpp, gemma4.cpp.
 */
#include "models/arch.h"

void arch_gemma_inputs(struct build *b, const struct arch_config *c)
{
	uint64_t all = (uint64_t)c->per_layer_width * c->n_layer;

	if (!c->per_layer_width)
		return;
	build_add(b, MODEL_EMBED, "per_layer_token_embd.weight", all, c->per_layer_vocab, 1);
	arch_linear(b, MODEL_EMBED, "per_layer_model_proj", c->hidden, all, false);
	build_add(b, MODEL_EMBED, "per_layer_proj_norm.weight", c->per_layer_width, 1, 1);
	if (c->altup < 2)
		return;
	build_add(b, MODEL_EMBED, "altup_proj.weight", c->hidden, c->hidden, c->altup - 1);
	build_add(b, MODEL_EMBED, "altup_unembd_proj.weight", c->hidden, c->hidden, c->altup - 1);
}

static void per_layer_input(struct build *b, const struct arch_config *c)
{
	if (!c->per_layer_width)
		return;
	arch_linear(b, MODEL_FFN, "inp_gate", c->hidden, c->per_layer_width, false);
	arch_linear(b, MODEL_FFN, "proj", c->per_layer_width, c->hidden, false);
	build_add(b, MODEL_FFN, "post_norm.weight", c->hidden, 1, 1);
}

void arch_gemma3n_layer(struct build *b, const struct arch_config *c, int layer)
{
	arch_attention(b, c, layer);
	if (c->laurel) {
		arch_linear(b, MODEL_ATTN, "laurel_l", c->hidden, c->laurel, false);
		arch_linear(b, MODEL_ATTN, "laurel_r", c->laurel, c->hidden, false);
		build_add(b, MODEL_ATTN, "laurel_post_norm.weight", c->hidden, 1, 1);
	}
	if (c->altup > 1) {
		uint64_t n = c->altup;

		build_add(b, MODEL_ATTN, "altup_correct_coef.weight", n, n, 1);
		build_add(b, MODEL_ATTN, "altup_correct_scale.weight", c->hidden, 1, 1);
		build_add(b, MODEL_ATTN, "altup_predict_coef.weight", n, n * n, 1);
		build_add(b, MODEL_ATTN, "altup_router.weight", c->hidden, n, 1);
		build_add(b, MODEL_ATTN, "altup_router_norm.weight", c->hidden, 1, 1);
	}
	arch_ffn(b, c, layer);
	per_layer_input(b, c);
}

void arch_gemma4_layer(struct build *b, const struct arch_config *c, int layer)
{
	const struct arch_layer *shape = &c->layers[layer];
	struct model_layer *l;

	arch_attention(b, c, layer);
	arch_ffn(b, c, layer);
	if (shape->n_expert) {
		l = build_layer(b, layer);
		l->n_expert = shape->n_expert;
		l->n_expert_used = c->n_expert_used;
		build_add(b, MODEL_FFN, "post_ffw_norm_1.weight", c->hidden, 1, 1);
		build_add(b, MODEL_ROUTER, "pre_ffw_norm_2.weight", c->hidden, 1, 1);
		arch_linear(b, MODEL_ROUTER, "ffn_gate_inp", c->hidden, shape->n_expert, false);
		build_add(b, MODEL_ROUTER, "ffn_gate_inp.scale", c->hidden, 1, 1);
		build_add(b, MODEL_EXPERTS, "ffn_gate_up_exps.weight", c->hidden, 2 * (uint64_t)c->expert_ffn,
			shape->n_expert);
		build_add(
			b, MODEL_EXPERTS, "ffn_down_exps.weight", c->expert_ffn, c->hidden, shape->n_expert);
		build_add(b, MODEL_EXPERTS, "ffn_down_exps.scale", 1, shape->n_expert, 1);
		build_add(b, MODEL_ROUTER, "post_ffw_norm_2.weight", c->hidden, 1, 1);
	}
	per_layer_input(b, c);
	build_add(b, MODEL_FFN, "layer_output_scale.weight", 1, 1, 1);
}
