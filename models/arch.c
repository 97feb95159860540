/*
 * arch.c - the table of architectures, and what they share: embedding and output.
 *
 * Defaults are those of huggingface/transformers, src/transformers/models/NAME/configuration_NAME.py and
 * modeling_NAME.py (which projections are biased).
 */
#include "models/arch.h"

/* clang-format off */
static const struct arch archs[] = {
	{
		.name = "llama", .hf_type = "llama", .hf_class = "LlamaForCausalLM",
		.layer = arch_dense_layer,
		.bias_key = "attention_bias", .output_bias = true, .ffn_bias_key = "mlp_bias",
	},
	{
		.name = "mistral", .hf_type = "mistral", .hf_class = "MistralForCausalLM",
		.layer = arch_dense_layer,
		.window = ARCH_WINDOW_ALL,
	},
	{
		.name = "mistral3", .hf_type = "ministral3", .hf_class = "Ministral3ForCausalLM",
		.layer = arch_dense_layer,
		.window = ARCH_WINDOW_ALL,
	},
	{
		.name = "mixtral", .hf_type = "mixtral", .hf_class = "MixtralForCausalLM",
		.layer = arch_moe_layer,
		.window = ARCH_WINDOW_ALL,
		.moe = true, .expert_ffn_key = "intermediate_size",
	},
	{
		.name = "qwen2", .hf_type = "qwen2", .hf_class = "Qwen2ForCausalLM",
		.layer = arch_dense_layer,
		.bias = true,
		.window = ARCH_WINDOW_UPPER,
	},
	{
		.name = "qwen2moe", .hf_type = "qwen2_moe", .hf_class = "Qwen2MoeForCausalLM",
		.layer = arch_moe_layer,
		.bias_key = "qkv_bias", .bias = true,
		.window = ARCH_WINDOW_UPPER,
		.moe = true, .shared_expert = true, .expert_ffn_key = "moe_intermediate_size",
	},
	{
		.name = "qwen3", .hf_type = "qwen3", .hf_class = "Qwen3ForCausalLM",
		.layer = arch_dense_layer,
		.bias_key = "attention_bias", .output_bias = true, .qk_norm = true,
		.window = ARCH_WINDOW_UPPER,
	},
	{
		.name = "qwen3moe", .hf_type = "qwen3_moe", .hf_class = "Qwen3MoeForCausalLM",
		.layer = arch_moe_layer,
		.bias_key = "attention_bias", .output_bias = true, .qk_norm = true,
		.window = ARCH_WINDOW_UPPER,
		.moe = true, .expert_ffn_key = "moe_intermediate_size",
	},
	{
		/* not in GGUF: tensors are named after its habits */
		.name = "opt", .hf_type = "opt", .hf_class = "OPTForCausalLM",
		.layer = arch_dense_layer,
		.bias_key = "enable_bias", .bias = true, .output_bias = true,
		.ffn_bias_key = "enable_bias", .ffn_bias = true,
		.tied = true, .layer_norm = true, .plain_ffn = true, .learned_position = true,
	},
};
/* clang-format on */

const struct arch *arch_at(size_t i)
{
	return i < ARRAY_LEN(archs) ? &archs[i] : NULL;
}

void arch_norm(
	struct build *b, const struct arch_config *c, enum model_group g, const char *name, uint64_t width)
{
	char full[64];

	snprintf(full, sizeof(full), "%s.weight", name);
	build_add(b, g, full, width, 1, 1);
	if (!c->arch->layer_norm)
		return;
	snprintf(full, sizeof(full), "%s.bias", name);
	build_add(b, g, full, width, 1, 1);
}

void arch_linear(struct build *b, enum model_group g, const char *name, uint64_t in, uint64_t out, bool bias)
{
	char full[64];

	snprintf(full, sizeof(full), "%s.weight", name);
	build_add(b, g, full, in, out, 1);
	if (!bias)
		return;
	snprintf(full, sizeof(full), "%s.bias", name);
	build_add(b, g, full, out, 1, 1);
}

void arch_build(struct build *b, const struct arch_config *c)
{
	struct model *m = b->m;

	m->architecture = c->arch->name;
	m->hidden = c->hidden;
	m->vocab = c->vocab;
	m->context_max = c->context_max;
	m->tied_embeddings = c->tied;

	build_layer(b, MODEL_NO_LAYER);
	build_add(b, MODEL_EMBED, "token_embd.weight", c->embed_width, c->vocab, 1);
	if (c->n_position)
		build_add(b, MODEL_EMBED, "position_embd.weight", c->hidden, c->n_position, 1);
	if (c->embed_width != c->hidden)
		build_add(b, MODEL_EMBED, "token_embd_proj.weight", c->embed_width, c->hidden, 1);
	for (uint32_t i = 0; i < c->n_layer; i++)
		c->arch->layer(b, c, (int)i);
	build_layer(b, MODEL_NO_LAYER);
	if (c->final_norm)
		arch_norm(b, c, MODEL_OUTPUT, "output_norm", c->hidden);
	if (c->embed_width != c->hidden)
		build_add(b, MODEL_OUTPUT, "output_proj.weight", c->hidden, c->embed_width, 1);
	build_add(b, MODEL_OUTPUT, "output.weight", c->embed_width, c->vocab, 1)->shared_storage = c->tied;
}
