/*
 * mix.c - which type each tensor gets when a model is quantized (build_types of build.h).
 *
 * A plain quant gives every matrix one type. What it leaves alone differs between the two worlds:
 *
 *	f32, f16, bf16   checkpoints: every tensor has the type
 *	f8_e4m3          checkpoints: linear layers have it; embedding, output, router, norms and biases stay
 *	                 bf16 (modules_to_not_convert of Qwen/Qwen3-32B-FP8; deepseek-ai/DeepSeek-V3
 *	                 README_WEIGHTS.md). Scales (0.02 % with 128 x 128 blocks) are not counted.
 *	ggml types       llama.cpp: norms, biases, positions and the router stay f32 (llama-quant.cpp,
 *	                 tensor_allows_quantization; what conversion leaves f32)
 *
 * Mixes (q4_k_m: which tensors get which type) belong here as further cases.
 */
#include "models/build.h"

#include <string.h>
#include <strings.h>

#include "base/suggest.h"

static bool is_matrix(const struct model_tensor *t)
{
	return t->shape[1] > 1 || t->shape[2] > 1;
}

/* Types that a row whose length is no multiple of the block falls back to: llama-quant.cpp,
   tensor_type_fallback. The last step, when even 32 does not divide it, is f16. */
static const struct quant_type *fit_row(const struct quant_type *type, uint64_t row)
{
	static const struct {
		const char *wide, *narrow;
	} fallback[] = {
		{"q2_k", "q4_0"},
		{"q3_k", "q4_0"},
		{"q4_k", "q5_0"},
		{"q5_k", "q5_1"},
		{"q6_k", "q8_0"},
		{"tq1_0", "q4_0"},
		{"tq2_0", "q4_0"},
		{"q2_0", "q4_0"},
		{"iq1_s", "iq4_nl"},
		{"iq1_m", "iq4_nl"},
		{"iq2_xxs", "iq4_nl"},
		{"iq2_xs", "iq4_nl"},
		{"iq2_s", "iq4_nl"},
		{"iq3_xxs", "iq4_nl"},
		{"iq3_s", "iq4_nl"},
		{"iq4_xs", "iq4_nl"},
	};

	if (row % type->block_elements == 0)
		return type;
	for (size_t i = 0; i < ARRAY_LEN(fallback); i++) {
		if (!strcmp(type->name, fallback[i].wide)) {
			type = quant_find(fallback[i].narrow);
			break;
		}
	}
	return row % type->block_elements ? quant_find("f16") : type;
}

/* Types of the table that hold activations or indices, never weights. */
static bool holds_weights(const struct quant_type *t)
{
	static const char *const other[] = {"q8_1", "q8_k", "i8", "i16", "i32", "i64"};

	for (size_t i = 0; i < ARRAY_LEN(other); i++) {
		if (!strcmp(t->name, other[i]))
			return false;
	}
	return true;
}

/* llama.cpp's names of mixes, so that their error can say what they are. */
static bool is_mix(const char *quant)
{
	static const char *const mixes[] = {
		"q2_k_s",
		"q3_k_s",
		"q3_k_m",
		"q3_k_l",
		"q4_k_s",
		"q4_k_m",
		"q5_k_s",
		"q5_k_m",
		"iq2_m",
		"iq3_xs",
		"iq3_m",
		"mxfp4_moe",
		"q2_k_xl",
		"q4_k_xl",
	};

	for (size_t i = 0; i < ARRAY_LEN(mixes); i++) {
		if (!strcasecmp(quant, mixes[i]))
			return true;
	}
	return false;
}

static int find_plain(const char *quant, const struct quant_type **out, struct err *err)
{
	struct suggest near;
	char text[64];

	*out = quant_find(quant);
	if (*out && holds_weights(*out))
		return 0;
	if (*out)
		return err_set(err, ERR_INPUT, "type '%s' is not one that weights are stored in", quant);
	suggest_init(&near, quant);
	for (size_t i = 0; quant_at(i); i++) {
		if (holds_weights(quant_at(i)))
			suggest_offer(&near, quant_at(i)->name);
	}
	suggest_text(&near, text, sizeof(text));
	if (is_mix(quant))
		return err_set(err, ERR_INPUT, "quant '%s' is a mix, not a plain type%s", quant, text);
	return err_set(err, ERR_INPUT, "unknown quant '%s'%s", quant, text);
}

int build_types(struct build *b, const char *quant, struct err *err)
{
	const struct quant_type *type, *rest;
	bool all, linear_only;

	if (find_plain(quant, &type, err))
		return -1;
	all = !strcmp(type->name, "f32") || !strcmp(type->name, "f16") || !strcmp(type->name, "bf16") ||
	      !strcmp(type->name, "f64");
	linear_only = !strcmp(type->name, "f8_e4m3");
	rest = quant_find(all ? type->name : linear_only ? "bf16" : "f32");
	for (size_t i = 0; i < b->n; i++) {
		struct model_tensor *t = &b->at[i];
		bool keep = !is_matrix(t) || t->group == MODEL_ROUTER || strstr(t->name, "position_embd");

		if (linear_only && t->layer == MODEL_NO_LAYER)
			keep = true;
		t->type = all ? type : keep ? rest : fit_row(type, t->shape[0]);
	}
	b->m->quant = type->name;
	return 0;
}
