/*
 * mix_ud.c - mixes that two publishers make with --tensor-type and the like.
 *
 * bartowski's _L and _XL keep embedding and output in q8_0.
 *
 * unsloth's UD files choose a type for every tensor, anew for every model, and no rule is published: the
 * exact answer for a file is its own header. What follows from the counts of types that loaders print, and
 * from published sizes: routed experts have the type of the name, down of the first eighth of the layers a
 * larger one, the rest is much like q4_k_m or better, MLA's two matrices a head are q8_0. Held against
 * published sizes in tests/unit/test_mix.c. Where rows are no multiple of 256 (Qwen3.8-Flash-Next), down has
 * `down_narrow`, as read from headers. Dense models: the _m of the name.
 *
 * Files of large MoE models for ik_llama.cpp are made with --custom-q rather than by its mixes: up and gate of
 * routed experts have the type of the name, down the next larger one, all else q8_0 or, since Qwen3, when _r4 went
 * out of use, about six bits. The rule is ubergarm's (ggml-org/llama.cpp pull request 12511, ikawrakow/ik_llama.cpp
 * discussion 258 and pull request 624); dq4_k_r4 is anikifoss's. Held against published sizes in
 * tests/unit/test_mix.c.
 */
#include "models/mix.h"

#include <string.h>

/* clang-format off */
static const struct {
	const char *name, *mix;
} large[] = {
	{"q2_k_l", "q2_k"},
	{"q3_k_xl", "q3_k_l"},
	{"q4_k_l", "q4_k_m"},
	{"q5_k_l", "q5_k_m"},
	{"q6_k_l", "q6_k"},
};

static const struct ud {
	const char *name;
	const char *dense;                /* mix of a model without experts */
	const char *up;                   /* of routed experts, and gate */
	const char *down, *down_first;    /* of the first eighth of the layers */
	const char *down_narrow;          /* where rows do not fit; NULL: as llama-quantize */
	const char *rest;                 /* mix of all else */
} uds[] = {
	{"ud-iq1_s", "iq1_s", "iq1_s", "iq1_s", "iq2_xxs", NULL, "q4_k_m"},
	{"ud-iq1_m", "iq1_m", "iq1_m", "iq2_xxs", "iq2_xxs", NULL, "q4_k_m"},
	{"ud-iq2_xxs", "iq2_xxs", "iq2_xxs", "q2_k", "q3_k", NULL, "q4_k_m"},
	{"ud-iq2_m", "iq2_m", "iq2_s", "iq3_xxs", "iq3_s", NULL, "q4_k_m"},
	{"ud-iq3_xxs", "iq3_xxs", "iq3_xxs", "iq3_xxs", "iq3_s", NULL, "q4_k_m"},
	{"ud-iq3_s", "iq3_s", "iq2_s", "iq3_s", "iq4_xs", NULL, "q5_k_m"},
	{"ud-iq4_nl", "iq4_nl", "iq4_xs", "iq4_nl", "iq4_nl", NULL, "q4_k_m"},
	{"ud-iq4_xs", "iq4_xs", "iq3_s", "iq4_xs", "iq4_xs", "iq4_nl", "q5_k_m"},
	{"ud-q2_k_xl", "q2_k", "q2_k", "q3_k", "q4_k", NULL, "q4_k_m"},
	{"ud-q2_k_xl-2025-01", "q2_k", "q2_k", "q2_k", "q2_k", NULL, "q4_k_m"},
	{"ud-q3_k_xl", "q3_k_m", "q3_k", "q3_k", "q4_k", NULL, "q4_k_m"},
	{"ud-q4_k_xl", "q4_k_m", "q4_k", "q4_k", "q6_k", "q5_1", "q4_k_m"},
	{"ud-q5_k_m", "q5_k_m", "q5_k", "q6_k", "q6_k", "q8_0", "q8_0"},
	{"ud-q5_k_xl", "q5_k_m", "q5_k", "q5_k", "q6_k", "q8_0", "q6_k"},
	{"ud-q6_k_s", "q6_k", "q5_k", "q6_k", "q6_k", "q8_0", "q8_0"},
	{"ud-q6_k_xl", "q6_k", "q6_k", "q6_k", "q8_0", "q8_0", "q8_0"},
	{"ud-q8_k_xl", "q8_0", "q8_0", "q8_0", "q8_0", NULL, "bf16"},
	{"custom-iq2_k", "iq2_k", "iq2_k", "iq3_k", "iq3_k", "iq4_nl", "q6_k"},
	{"custom-iq2_k_r4", "iq2_k_r4", "iq2_k_r4", "iq3_k_r4", "iq3_k_r4", NULL, "q8_0"},
	{"custom-iq2_kl", "iq2_kl", "iq2_kl", "iq3_ks", "iq3_ks", "iq4_nl", "q6_k"},
	{"custom-iq3_k", "iq3_k", "iq3_k", "iq4_k", "iq4_k", "iq4_nl", "q6_k"},
	{"custom-iq3_k_r4", "iq3_k_r4", "iq3_k_r4", "iq4_k_r4", "iq4_k_r4", NULL, "q8_0"},
	{"custom-iq3_ks", "iq3_ks", "iq3_ks", "iq4_ks", "iq4_ks", "iq4_nl", "q6_k"},
	{"custom-iq4_k", "iq4_k", "iq4_k", "iq5_k", "iq5_k", "q6_0", "q6_k"},
	{"custom-iq4_k_r4", "iq4_k_r4", "iq4_k_r4", "iq5_k_r4", "iq5_k_r4", NULL, "q8_0"},
	{"custom-iq4_ks", "iq4_ks", "iq4_ks", "iq5_ks", "iq5_ks", "q6_0", "q6_k"},
	{"custom-iq4_ks_r4", "iq4_ks_r4", "iq4_ks_r4", "iq5_ks_r4", "iq5_ks_r4", NULL, "q8_0"},
	{"custom-iq5_k", "iq5_k", "iq5_k", "iq6_k", "iq6_k", "q8_0", "q6_k"},
	{"custom-iq6_k", "iq6_k", "iq6_k", "q8_0", "q8_0", NULL, "q6_k"},
	{"dq4_k_r4", "q4_k_r4", "q4_k_r4", "q6_k_r4", "q6_k_r4", NULL, "q8_0"},
};
/* clang-format on */

const char *mix_ud_at(size_t i)
{
	if (i < ARRAY_LEN(uds))
		return uds[i].name;
	i -= ARRAY_LEN(uds);
	return i < ARRAY_LEN(large) ? large[i].name : NULL;
}

static bool has(const struct model_tensor *t, const char *part)
{
	return strstr(t->name, part) != NULL;
}

static void all_bf16(struct build *b)
{
	for (size_t i = 0; i < b->n; i++) {
		struct model_tensor *t = &b->at[i];

		t->type = mix_quantizable(t) ? mix_type("bf16") : mix_kept(t);
	}
}

static const struct quant_type *expert_type(
	const struct build *b, const struct ud *u, const struct model_tensor *t)
{
	const char *type = u->up;

	if (has(t, "ffn_down")) {
		type = t->layer < (int)b->m->n_layer / 8 ? u->down_first : u->down;
		if (u->down_narrow && t->shape[0] % 256)
			type = u->down_narrow;
	}
	return mix_fit(mix_type(type), t->shape[0]);
}

static void apply_ud(struct build *b, const struct ud *u)
{
	bool moe = false;

	for (size_t i = 0; i < b->n; i++)
		moe |= b->at[i].group == MODEL_EXPERTS;
	if (!moe) {
		if (!mix_ggml(b, u->dense, true) && !mix_ik(b, u->dense, true))
			BUG("no mix '%s'", u->dense);
		return;
	}
	if (!strcmp(u->rest, "bf16"))
		all_bf16(b);
	else
		mix_ggml(b, u->rest, true);
	for (size_t i = 0; i < b->n; i++) {
		struct model_tensor *t = &b->at[i];

		if (!mix_quantizable(t))
			continue;
		if (t->group == MODEL_EXPERTS)
			t->type = expert_type(b, u, t);
		else if (has(t, "attn_k_b.") || has(t, "attn_v_b."))
			t->type = mix_fit(mix_type("q8_0"), t->shape[0]);
	}
}

bool mix_ud(struct build *b, const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(uds); i++) {
		if (strcmp(name, uds[i].name))
			continue;
		apply_ud(b, &uds[i]);
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(large); i++) {
		if (strcmp(name, large[i].name))
			continue;
		mix_ggml(b, large[i].mix, true);
		for (size_t j = 0; j < b->n; j++) {
			struct model_tensor *t = &b->at[j];

			if (mix_quantizable(t) &&
				(has(t, "token_embd.weight") || !strcmp(t->name, "output.weight")))
				t->type = mix_fit(mix_type("q8_0"), t->shape[0]);
		}
		return true;
	}
	return false;
}
