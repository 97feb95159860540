/*
 * mix_checkpoint.c - which tensors the formats of checkpoints leave in 16 bits.
 *
 *	linear   the projections of the layers are quantized; embedding, output, router, norms and biases
 *stay. GPTQ, AWQ, bitsandbytes (nf4, int8), FP8 (modules_to_not_convert of Qwen/Qwen3-32B-FP8;
 *	         deepseek-ai/DeepSeek-V3, README_WEIGHTS.md), HQQ
 *	experts  of a MoE, only routed experts (Kimi-K2: quantization_config of Kimi-K2.5); else as linear
 *	no mla   as linear, without MLA's projections (nvidia/DeepSeek-V3.1-NVFP4, hf_quant_config.json)
 *	head     as linear, and the output and tables of n-grams in 6 bits (ExLlamaV3's convert.py, --head_bits; the names
 *	         of its files: h6, ng6)
 *	all      every matrix: FlexGen (its weights of two dimensions or more), ZeRO-Inference (layers and
 *	         embeddings), MLX
 */
#include "models/mix.h"

#include <string.h>
#include <strings.h>

enum reach { LINEAR, EXPERTS, NO_MLA, HEAD, ALL };

static const struct format {
	const char *name; /* or the beginning of it, up to a '-' */
	enum reach reach;
	const char *rest;
} formats[] = {
	{"gptq", LINEAR, "f16"},
	{"awq", LINEAR, "f16"},
	{"hqq", LINEAR, "f16"},
	{"nf4", LINEAR, "bf16"},
	{"fp4", LINEAR, "bf16"},
	{"int8", LINEAR, "f16"},
	{"f8_e4m3", LINEAR, "bf16"},
	{"mxfp8", LINEAR, "bf16"},
	{"mxfp4", LINEAR, "bf16"},
	{"nvfp4", NO_MLA, "bf16"},
	{"int4", EXPERTS, "bf16"},
	{"exl2", HEAD, "f16"},
	{"exl3", HEAD, "f16"},
	{"flexgen", ALL, "f16"},
	{"zero", ALL, "f16"},
	{"mlx", ALL, "bf16"},
};

/* Names to list: those that quant_at does not have. */
static const char *const listed[] = {"gptq-int4-g128", "gptq-int4-g32", "gptq-int3-g128", "gptq-int8-g128",
	"awq-int4-g128", "hqq-int4-g64", "mlx-int4-g64", "exl3-4bpw", "exl3-3bpw", "exl2-4bpw", "fp8",
	"fp8-block128", "fp8-channel"};

const char *mix_checkpoint_at(size_t i)
{
	return i < ARRAY_LEN(listed) ? listed[i] : NULL;
}

static const struct format *format_of(const struct quant_type *type)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		size_t n = strlen(formats[i].name);

		if (!strncmp(type->name, formats[i].name, n) &&
			(type->name[n] == '\0' || type->name[n] == '-'))
			return &formats[i];
	}
	return NULL;
}

/* attn_q_a, attn_q_b, attn_kv_a_mqa, attn_kv_b, attn_k_b, attn_v_b */
static bool is_mla(const struct model_tensor *t)
{
	static const char *const names[] = {
		"attn_q_a.", "attn_q_b.", "attn_kv_a", "attn_kv_b.", "attn_k_b.", "attn_v_b."};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (strstr(t->name, names[i]))
			return true;
	}
	return false;
}

static bool is_moe(const struct build *b)
{
	for (size_t i = 0; i < b->n; i++) {
		if (b->at[i].group == MODEL_EXPERTS)
			return true;
	}
	return false;
}

static bool reaches(enum reach r, const struct model_tensor *t, bool moe)
{
	bool matrix = t->shape[1] > 1 || t->shape[2] > 1;

	if (r == ALL)
		return matrix && t->group != MODEL_ROUTER;
	if (t->layer == MODEL_NO_LAYER || t->group == MODEL_ROUTER || !mix_quantizable(t))
		return false;
	if (r == NO_MLA)
		return !is_mla(t);
	return r != EXPERTS || !moe || t->group == MODEL_EXPERTS;
}

bool mix_checkpoint(struct build *b, const char *name)
{
	const struct quant_type *type = quant_make(name, b->arena), *rest, *head;
	const struct format *f = type ? format_of(type) : NULL;
	bool moe;

	if (!f || !strcmp(type->name, "int4-g64")) /* of KV caches */
		return false;
	moe = is_moe(b);
	/* gpt-oss, the one family published in it: llama.cpp's files. The checkpoint is mxfp4+bf16 */
	if (moe && !strcmp(type->name, "mxfp4"))
		return mix_ggml(b, "mxfp4_moe", false);
	rest = mix_type(f->rest);
	head = f->reach == HEAD ? quant_make(!strcmp(f->name, "exl3") ? "exl3-6bpw" : "exl2-6bpw", b->arena)
				: rest;
	for (size_t i = 0; i < b->n; i++) {
		struct model_tensor *t = &b->at[i];

		if (reaches(f->reach, t, moe))
			t->type = type->family == QUANT_CHECKPOINT || t->shape[0] % type->block_elements == 0
					  ? type
					  : rest;
		else if (!strcmp(t->name, "output.weight") && !t->shared_storage)
			t->type = head;
		else if (t->group == MODEL_EMBED && strcmp(t->name, "token_embd.weight") != 0)
			t->type = head;
		else
			t->type = rest;
	}
	b->m->quant = type->name;
	return true;
}
