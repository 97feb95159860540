/*
 * mix_ik.c - which type ik_llama.cpp's llama-quantize gives each tensor, for the file types that llama.cpp
 * does not have.
 *
 * From ikawrakow/ik_llama.cpp at 8337e4cd (2026-08-15), src/llama-quantize.cpp: llama_tensor_get_type and
 * change_type_if_necessary. A row a file type; file types without a row of their own give everything the
 * type of their name. Names are matched more loosely than in llama.cpp: "attn_k" and "attn_q" hold MLA's
 * matrices too. For the file types that both have (q4_k_m), mix_ggml.c gives llama.cpp's answer, which
 * ik_llama.cpp's is near but not equal to: 4 experts or more count there as 8 do in llama.cpp.
 *
 * Published files of large MoE models often follow recipes of their own (--custom-q) under the name of one
 * of these.
 */
#include "models/mix.h"

#include <string.h>

struct row {
	const char *name;
	const char *base;	   /* NULL: the type called like the file type */
	const char *output, *tied; /* NULL: q6_k; for a tied output: as output */
	const char *embd;	   /* NULL: base */
	bool low;		   /* with experts, q and k and layer 0 go by `moe_*` */
	const char *moe_kq, *moe_layer0, *shared;
	struct mix_step v[MIX_STEPS], k[MIX_STEPS], q[MIX_STEPS], o[MIX_STEPS];
	struct mix_step up[MIX_STEPS]; /* and gate */
	struct mix_step down[MIX_STEPS];
	const char *qkv; /* of the low ones */
};

#define EXPERTS4_Q5_K                                                                                        \
	{                                                                                                    \
		MIX_EXPERTS4, "q5_k"                                                                         \
	}

/* clang-format off */
static const struct row rows[] = {
	{
		.name = "iq1_s_r4", .output = "q5_k", .tied = "iq4_k", .embd = "q2_k", .low = true,
		.moe_kq = "q4_k_r4", .moe_layer0 = "iq3_k_r4", .shared = "iq4_k_r4", .qkv = "iq2_k_r4",
		.v = {{MIX_GQA4_EXPERTS4, "iq4_k_r4"}, {MIX_GQA2, "iq3_k_r4"}, {MIX_ALWAYS, "q2_k_r4"}},
		.o = {{MIX_EXPERTS4, "q5_k_r4"}, {MIX_ALWAYS, "iq2_k_r4"}},
		.down = {{MIX_8TH, "q2_k_r4"}},
	},
	{
		.name = "iq1_m_r4", .output = "q5_k", .tied = "iq4_k", .embd = "q2_k", .low = true,
		.moe_kq = "q4_k_r4", .moe_layer0 = "iq3_k_r4", .shared = "iq4_k_r4", .qkv = "iq2_k_r4",
		.v = {{MIX_GQA4_EXPERTS4, "iq4_k_r4"}, {MIX_GQA2, "iq3_k_r4"}, {MIX_ALWAYS, "q2_k_r4"}},
		.o = {{MIX_EXPERTS4, "q5_k_r4"}, {MIX_ALWAYS, "iq2_k_r4"}},
		.down = {{MIX_8TH, "q2_k_r4"}},
	},
	{
		.name = "iq2_kt", .output = "q5_k", .tied = "iq4_k", .low = true,
		.moe_kq = "q4_k", .moe_layer0 = "iq3_k", .shared = "iq4_k", .qkv = "iq3_k",
		.v = {{MIX_GQA4_EXPERTS4, "iq4_k"}, {MIX_GQA2, "iq3_k"}, {MIX_ALWAYS, "q2_k"}},
		.o = {EXPERTS4_Q5_K, {MIX_ALWAYS, "iq3_k"}},
		.down = {{MIX_8TH, "iq3_k"}},
	},
	{
		.name = "iq2_xxs_r4", .output = "q5_k_r4", .tied = "iq4_k_r4", .embd = "q2_k", .low = true,
		.moe_kq = "q4_k", .qkv = "iq2_k",
		.v = {{MIX_GQA4_EXPERTS4, "iq4_k"}, {MIX_GQA2_EXPERTS2, "iq3_k"}, {MIX_ALWAYS, "q2_k"}},
		.o = {EXPERTS4_Q5_K},
		.down = {{MIX_8TH_COUNTED, "q2_k"}},
	},
	{
		.name = "iq2_xs_r4", .output = "q5_k_r4", .tied = "iq4_k_r4", .embd = "q2_k", .low = true,
		.moe_kq = "q4_k", .qkv = "iq2_k",
		.v = {{MIX_GQA4_EXPERTS4, "iq4_k"}, {MIX_GQA2_EXPERTS2, "iq3_k"}, {MIX_ALWAYS, "q2_k"}},
		.o = {EXPERTS4_Q5_K},
		.down = {{MIX_8TH_COUNTED, "q2_k"}},
	},
	{
		.name = "iq2_m_r4", .base = "iq2_s_r4", .output = "q5_k", .tied = "iq4_k", .embd = "iq3_s",
		.low = true, .moe_kq = "q4_k", .qkv = "iq3_xxs",
		.v = {{MIX_GQA4_EXPERTS4, "iq4_k"}, {MIX_GQA2_EXPERTS2, "iq3_k"}, {MIX_ALWAYS, "iq3_s"}},
		.o = {EXPERTS4_Q5_K, {MIX_ALWAYS, "iq3_s"}},
		.down = {{MIX_8TH_COUNTED, "iq3_s"}},
	},
	{
		.name = "iq2_ks", .output = "q5_k", .tied = "iq4_k", .low = true,
		.moe_kq = "q4_k", .qkv = "iq2_k",
		.v = {{MIX_GQA4_EXPERTS4, "iq4_k"}, {MIX_GQA2_EXPERTS2, "iq3_k"}, {MIX_ALWAYS, "q2_k"}},
		.o = {EXPERTS4_Q5_K},
		.down = {{MIX_8TH_COUNTED, "q2_k"}},
	},
	{
		.name = "iq2_k", .output = "q5_k", .tied = "iq4_k",
		.v = {{MIX_GQA2, "iq4_k"}, {MIX_ALWAYS, "iq3_k"}},
		.o = {EXPERTS4_Q5_K, {MIX_ALWAYS, "iq3_k"}},
	},
	{
		.name = "iq2_k_r4", .output = "q5_k", .tied = "iq4_k",
		.v = {{MIX_GQA2, "iq4_k_r4"}, {MIX_ALWAYS, "iq3_k_r4"}},
		.o = {EXPERTS4_Q5_K, {MIX_ALWAYS, "iq3_k_r4"}},
	},
	{
		.name = "iq2_kl", .output = "q5_k", .tied = "iq4_k",
		.v = {{MIX_GQA2, "iq4_ks"}},
		.o = {{MIX_EXPERTS4, "iq4_ks"}},
	},
	{.name = "iq1_kt", .output = "q5_k", .tied = "iq4_k"},
	{
		.name = "q2_k_r4",
		.v = {{MIX_GQA4, "q4_k_r4"}},
		.o = {EXPERTS4_Q5_K},
		.down = {{MIX_8TH, "q4_k_r4"}},
	},
	{
		.name = "iq3_xxs_r4", .output = "q5_k", .tied = "iq4_k", .embd = "iq3_k",
		.v = {{MIX_GQA4, "q4_k_r4"}, {MIX_GQA2, "iq3_k_r4"}, {MIX_NO_IMATRIX, "iq3_k_r4"}},
		.k = {{MIX_ALWAYS, "iq2_s"}},
		.q = {{MIX_ALWAYS, "iq2_s"}},
		.o = {EXPERTS4_Q5_K, {MIX_ALWAYS, "iq3_k_r4"}},
		.down = {{MIX_8TH_NO_IMATRIX, "q4_k_r4"}, {MIX_NO_IMATRIX, "iq3_k_r4"}},
	},
	{
		.name = "iq3_kt", .output = "q5_k", .tied = "iq4_k", .embd = "iq3_s",
		.v = {{MIX_GQA4, "iq4_k"}, {MIX_ALWAYS, "iq3_k"}},
		.o = {EXPERTS4_Q5_K, {MIX_GQA4, "iq3_k"}},
		.down = {{MIX_8TH_NO_IMATRIX, "iq4_k"}, {MIX_NO_IMATRIX, "iq3_k"}},
	},
	{.name = "iq3_s_r4", .tied = "iq5_k", .v = {{MIX_GQA2, "iq4_k_r4"}}, .o = {EXPERTS4_Q5_K}},
	{
		.name = "iq3_ks", .output = "q5_k", .tied = "iq4_k",
		.v = {{MIX_GQA2, "iq4_ks"}},
		.o = {EXPERTS4_Q5_K},
	},
	{
		.name = "iq3_k", .output = "q5_k", .tied = "iq4_k",
		.v = {{MIX_GQA2, "iq4_k"}},
		.o = {EXPERTS4_Q5_K},
	},
	{
		.name = "iq3_k_r4", .output = "q5_k", .tied = "iq4_k",
		.v = {{MIX_GQA2, "iq4_k_r4"}},
		.o = {EXPERTS4_Q5_K},
	},
	{
		.name = "iq3_kl", .base = "iq3_k", .tied = "iq5_k",
		.v = {{MIX_GQA2, "iq5_k"}, {MIX_ALWAYS, "iq4_k"}},
		.o = {EXPERTS4_Q5_K, {MIX_ALWAYS, "iq4_ks"}},
		.up = {{MIX_MORE_BITS, "iq4_ks"}},
		.down = {{MIX_MORE_BITS, "iq4_ks"}},
	},
	{.name = "q3_k_r4", .v = {{MIX_GQA4, "q4_k_r4"}}, .o = {EXPERTS4_Q5_K}},
	{
		.name = "iq4_nl_r4",
		.v = {{MIX_GQA2, "iq5_k"}},
		.o = {EXPERTS4_Q5_K},
		.down = {{MIX_8TH_NO_IMATRIX, "q5_k"}},
	},
	{
		.name = "iq4_xs_r8",
		.v = {{MIX_GQA2, "iq5_k"}},
		.o = {EXPERTS4_Q5_K},
		.down = {{MIX_8TH_NO_IMATRIX, "q5_k"}},
	},
	{
		.name = "iq4_kss", .tied = "iq5_k",
		.v = {{MIX_GQA2, "iq5_k"}},
		.o = {EXPERTS4_Q5_K},
		.down = {{MIX_8TH_NO_IMATRIX, "q5_k"}},
	},
	{
		.name = "iq4_ks", .tied = "iq5_k",
		.v = {{MIX_GQA2, "iq5_k"}},
		.o = {EXPERTS4_Q5_K},
		.down = {{MIX_8TH_NO_IMATRIX, "q5_k"}},
	},
	{
		.name = "iq4_ks_r4", .tied = "iq5_k",
		.v = {{MIX_GQA2, "iq5_k_r4"}},
		.o = {EXPERTS4_Q5_K},
		.down = {{MIX_8TH_NO_IMATRIX, "q5_k_r4"}},
	},
	{.name = "iq4_kt", .v = {{MIX_GQA4, "iq5_k"}, {MIX_ALWAYS, "iq4_k"}}},
	{.name = "iq4_k", .v = {{MIX_GQA2, "iq5_k"}}, .o = {EXPERTS4_Q5_K}},
	{.name = "iq4_k_r4", .v = {{MIX_GQA2, "iq5_k"}}, .o = {EXPERTS4_Q5_K}},
	{
		.name = "q4_k_r4",
		.v = {{MIX_FIRST4, "q5_k"}},
		.o = {EXPERTS4_Q5_K},
		.down = {{MIX_8TH, "q5_k"}},
	},
	{.name = "q4_0_r8", .down = {{MIX_8TH_IMATRIX, "iq4_nl_r4"}}},
	{
		.name = "iq5_ks",
		.v = {{MIX_BIG_8B, "iq6_k"}},
		.q = {{MIX_BIG_8B, "iq4_ks"}},
		.o = {EXPERTS4_Q5_K},
	},
	{.name = "iq5_ks_r4", .o = {EXPERTS4_Q5_K}},
	{.name = "iq5_k", .v = {{MIX_BIG_8B, "iq6_k"}}, .q = {{MIX_BIG_8B, "iq4_k"}}},
	{.name = "iq5_k_r4"},
	{.name = "q5_0_r4"},
	{.name = "q5_k_r4"},
	{.name = "q6_0"},
	{.name = "q6_0_r4"},
	{.name = "iq6_k", .output = "iq6_k"},
	{.name = "q6_k_r4", .output = "q6_k_r4"},
	{.name = "q8_0_r8", .output = "q8_0_r8"},
	{.name = "q8_k_r8", .output = "q8_k_r8"},
	{.name = "q8_kv", .output = "q8_kv"},
	{.name = "q8_kv_r8", .output = "q8_kv_r8"},
	{.name = "mxfp4_r8"},
	{.name = "iq1_bn", .embd = "iq4_nl"},
	{.name = "iq2_bn", .embd = "iq4_nl"},
	{.name = "iq2_bn_r4", .embd = "iq4_nl"},
	{.name = "q4_0_4_4"},
	{.name = "q4_0_4_8"},
	{.name = "q4_0_8_8"},
};
/* clang-format on */

const char *mix_ik_at(size_t i)
{
	return i < ARRAY_LEN(rows) ? rows[i].name : NULL;
}

static bool has(const struct model_tensor *t, const char *part)
{
	return strstr(t->name, part) != NULL;
}

/* What rows of another length get; unlike mix_fit's, and with the interleaved types. */
static const struct quant_type *fit(const struct quant_type *type, uint64_t row)
{
	static const struct {
		const char *wide, *narrow;
	} fallback[] = {
		{"q4_k", "q5_0"},
		{"q4_k_r4", "q5_0"},
		{"iq4_k", "q5_0"},
		{"iq4_k_r4", "q5_0"},
		{"iq5_ks", "q5_0"},
		{"iq5_ks_r4", "q5_0"},
		{"q5_k", "q6_0"},
		{"q5_k_r4", "q6_0"},
		{"iq5_k", "q6_0"},
		{"iq5_k_r4", "q6_0"},
		{"q6_k", "q8_0"},
		{"q6_k_r4", "q8_0"},
		{"iq6_k", "q8_0"},
		{"q8_k_r8", "q8_0"},
	};
	const struct quant_type *narrow = mix_type("iq4_nl"); /* of all the others */

	if (row % type->block_elements == 0)
		return type;
	for (size_t i = 0; i < ARRAY_LEN(fallback); i++) {
		if (!strcmp(type->name, fallback[i].wide))
			narrow = mix_type(fallback[i].narrow);
	}
	return row % narrow->block_elements ? mix_type("f16") : narrow;
}

static const char *base_of(const struct row *r)
{
	return r->base ? r->base : r->name;
}

/* Tensors of a kind so far. */
struct counts {
	int v, down, gate, up;
};

static const char *pick_output(const struct row *r, const struct mix_model *m, uint64_t row)
{
	if (m->falcon || row % 256)
		return "q8_0";
	if (!m->output && r->tied)
		return r->tied;
	return r->output ? r->output : "q6_k";
}

/* Where a low row departs from the others; NULL: it does not. */
static const char *pick_low(const struct row *r, const struct mix_model *m, const struct model_tensor *t)
{
	bool moe = m->n_expert >= 8;

	if (moe && has(t, "attn_k"))
		return r->moe_kq;
	if (moe && r->moe_layer0 &&
		(has(t, "blk.0.ffn_down") || has(t, "blk.0.ffn_gate") || has(t, "blk.0.ffn_up")))
		return r->moe_layer0;
	if (moe && has(t, "attn_q"))
		return r->moe_kq;
	if (has(t, "attn_qkv.weight"))
		return r->qkv;
	if (r->shared && has(t, "_shexp.weight"))
		return r->shared;
	return NULL;
}

static const char *pick(
	const struct row *r, const struct mix_model *m, struct counts *c, const struct model_tensor *t)
{
	bool moe = m->n_expert > 1;
	int i = 0, counted = 0;
	const struct mix_step *steps;
	const char *type;

	if (!strcmp(t->name, "output.weight") || (!m->output && !strcmp(t->name, "token_embd.weight")))
		return pick_output(r, m, t->shape[0]);
	if (!strcmp(t->name, "token_embd.weight") || !strcmp(t->name, "per_layer_token_embd.weight"))
		return r->embd;
	if (r->low && !has(t, "attn_v.weight")) {
		type = pick_low(r, m, t);
		if (type)
			return type;
	}
	if (has(t, "attn_v.weight")) {
		i = c->v++;
		if (!r->low && m->n_expert >= 4)
			return "q8_0";
		/* a Llama-70B takes no part in the rest, but for one type */
		if (!r->low && m->llama_70b)
			return strcmp(base_of(r), "iq3_k") ? NULL : "iq5_k";
		steps = r->v;
	} else if (!r->low && has(t, "attn_k")) {
		if (m->n_expert >= 4)
			return "q8_0";
		steps = r->k;
	} else if (!r->low && has(t, "attn_q")) {
		steps = r->q;
	} else if (has(t, "ffn_down")) {
		counted = c->down++;
		i = moe ? t->layer : counted;
		steps = r->down;
	} else if (has(t, "attn_output.weight")) {
		steps = r->o;
	} else if (!r->low && has(t, "ffn_gate")) {
		counted = c->gate++;
		i = moe ? t->layer : counted;
		steps = r->up;
	} else if (!r->low && has(t, "ffn_up")) {
		counted = c->up++;
		i = moe ? t->layer : counted;
		steps = r->up;
	} else {
		return NULL;
	}
	return mix_choose(steps, m, i, m->n_layer, counted);
}

bool mix_ik(struct build *b, const char *name, bool imatrix)
{
	const struct row *r = NULL;
	const struct quant_type *base;
	struct counts counts = {.v = 0};
	struct model_tensor **order;
	struct mix_model m;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (!strcmp(name, rows[i].name))
			r = &rows[i];
	}
	if (!r)
		return false;
	base = mix_type(base_of(r));
	mix_model_init(&m, b, imatrix);
	order = mix_order(b);
	for (size_t i = 0; i < b->n; i++) {
		struct model_tensor *t = order[i];
		const char *type;

		if (!mix_quantizable(t)) {
			t->type = mix_kept(t);
			continue;
		}
		type = pick(r, &m, &counts, t);
		t->type = fit(type ? mix_type(type) : base, t->shape[0]);
		/* single rows are looked up, which interleaving does not allow */
		if (t->group == MODEL_EMBED || t->shared_storage)
			t->type = quant_ik_plain(t->type);
	}
	return true;
}
