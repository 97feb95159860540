/*
 * mix_ggml.c - which type llama.cpp's llama-quantize gives each tensor.
 *
 * From ggml-org/llama.cpp as of 2026-08-22 (ngxson/llama.cpp at 3f545bec), src/llama-quant.cpp:
 * tensor_allows_quantization, llama_tensor_get_type_impl, tensor_type_fallback and
 * init_quantize_state_counters, told as a table: a row a file type, a column a kind of tensor. What holds for
 * every row (8 experts, 70B, Falcon) is in pick(). Kinds are told by name, in this order:
 *
 *	output, embd        output.weight; token_embd.weight, which is treated as output when there is none
 *	v                   attn_v, attn_qkv, attn_kv_b
 *	k, q, o             attn_k, attn_q, attn_output; not MLA's attn_q_a and so on, which get the base type
 *	up, gate, down      whatever begins like that: experts and shared experts too
 */
#include "models/mix.h"

#include <string.h>
#include <strings.h>

enum kind {
	OUTPUT,
	EMBD,
	ATTN_V,
	ATTN_K,
	ATTN_Q,
	ATTN_O,
	FFN_UP,
	FFN_GATE,
	FFN_DOWN,
	OTHER,
	KINDS,
};

struct row {
	const char *name, *base;
	const char *output; /* NULL: q6_k */
	const char *embd;   /* NULL: base */
	bool low;	    /* the lowest bits go by rules of their own where there are 8 experts */
	struct mix_step v[MIX_STEPS], k[MIX_STEPS], q[MIX_STEPS], o[MIX_STEPS];
	struct mix_step up[MIX_STEPS]; /* and gate */
	struct mix_step down[MIX_STEPS];
};

/* clang-format off */
static const struct row rows[] = {
	{.name = "q1_0", .base = "q1_0"},
	{.name = "q2_0", .base = "q2_0", .embd = "q4_k"},
	{.name = "q4_0", .base = "q4_0", .down = {{MIX_8TH_IMATRIX, "q4_1"}}},
	{.name = "q4_1", .base = "q4_1"},
	{.name = "q5_0", .base = "q5_0", .down = {{MIX_8TH_IMATRIX, "q5_1"}}},
	{.name = "q5_1", .base = "q5_1"},
	{.name = "q8_0", .base = "q8_0", .output = "q8_0"},
	{.name = "tq1_0", .base = "tq1_0", .embd = "q4_k"},
	{.name = "tq2_0", .base = "tq2_0", .embd = "q4_k"},
	{
		.name = "q2_k", .base = "q2_k",
		.v = {{MIX_GQA4, "q4_k"}, {MIX_ALWAYS, "q3_k"}},
		.o = {{MIX_EXPERTS8, "q5_k"}, {MIX_ALWAYS, "q3_k"}},
		.down = {{MIX_ALWAYS, "q3_k"}},
	},
	{
		.name = "q2_k_s", .base = "q2_k",
		.v = {{MIX_GQA4, "q4_k"}},
		.down = {{MIX_8TH, "q4_k"}},
	},
	{.name = "q3_k_s", .base = "q3_k", .o = {{MIX_EXPERTS8, "q5_k"}}},
	{
		.name = "q3_k_m", .base = "q3_k",
		.v = {{MIX_FIRST2, "q5_k"}, {MIX_ALWAYS, "q4_k"}},
		.o = {{MIX_EXPERTS8, "q5_k"}, {MIX_ALWAYS, "q4_k"}},
		.down = {{MIX_16TH, "q5_k"}, {MIX_ALWAYS, "q4_k"}},
	},
	{
		.name = "q3_k_l", .base = "q3_k",
		.v = {{MIX_ALWAYS, "q5_k"}},
		.o = {{MIX_EXPERTS8, "q3_k"}, {MIX_ALWAYS, "q5_k"}}, /* with 8 experts the base stays */
		.down = {{MIX_ALWAYS, "q5_k"}},
	},
	{
		.name = "q4_k_s", .base = "q4_k",
		.v = {{MIX_FIRST4, "q5_k"}},
		.o = {{MIX_EXPERTS8, "q5_k"}},
		.down = {{MIX_8TH, "q5_k"}},
	},
	{
		.name = "q4_k_m", .base = "q4_k",
		.v = {{MIX_MORE_BITS, "q6_k"}},
		.o = {{MIX_EXPERTS8, "q5_k"}},
		.down = {{MIX_MORE_BITS, "q6_k"}},
	},
	{.name = "q5_k_s", .base = "q5_k"},
	{
		.name = "q5_k_m", .base = "q5_k",
		.v = {{MIX_MORE_BITS, "q6_k"}},
		.down = {{MIX_MORE_BITS, "q6_k"}},
	},
	{.name = "q6_k", .base = "q6_k"},
	{
		.name = "iq1_s", .base = "iq1_s", .output = "q5_k", .embd = "q2_k", .low = true,
		.v = {{MIX_GQA4_EXPERTS4, "q4_k"}, {MIX_ALWAYS, "q2_k"}},
		.k = {{MIX_EXPERTS8, "q4_k"}},
		.o = {{MIX_EXPERTS8, "q5_k"}, {MIX_ALWAYS, "iq2_xxs"}},
		.down = {{MIX_8TH_COUNTED, "q2_k"}},
	},
	{
		.name = "iq1_m", .base = "iq1_m", .output = "q5_k", .embd = "q2_k", .low = true,
		.v = {{MIX_GQA4_EXPERTS4, "q4_k"}, {MIX_ALWAYS, "q2_k"}},
		.k = {{MIX_EXPERTS8, "q4_k"}},
		.o = {{MIX_EXPERTS8, "q5_k"}, {MIX_ALWAYS, "iq2_xxs"}},
		.down = {{MIX_8TH_COUNTED, "q2_k"}},
	},
	{
		.name = "iq2_xxs", .base = "iq2_xxs", .output = "q5_k", .embd = "q2_k", .low = true,
		.v = {{MIX_GQA4_EXPERTS4, "q4_k"}, {MIX_ALWAYS, "q2_k"}},
		.k = {{MIX_EXPERTS8, "q4_k"}},
		.o = {{MIX_EXPERTS8, "q5_k"}},
		.down = {{MIX_8TH_COUNTED, "q2_k"}},
	},
	{
		.name = "iq2_xs", .base = "iq2_xs", .output = "q5_k", .embd = "q2_k", .low = true,
		.v = {{MIX_GQA4_EXPERTS4, "q4_k"}, {MIX_ALWAYS, "q2_k"}},
		.k = {{MIX_EXPERTS8, "q4_k"}},
		.o = {{MIX_EXPERTS8, "q5_k"}},
		.down = {{MIX_8TH_COUNTED, "q2_k"}},
	},
	{
		.name = "iq2_s", .base = "iq2_xs", .output = "q5_k", .embd = "iq3_s", .low = true,
		.v = {{MIX_GQA4_EXPERTS4, "q4_k"}, {MIX_ALWAYS, "iq3_s"}},
		.k = {{MIX_EXPERTS8, "q4_k"}},
		.o = {{MIX_EXPERTS8, "q5_k"}, {MIX_ALWAYS, "iq3_s"}},
		.down = {{MIX_8TH_COUNTED, "iq3_s"}},
	},
	{
		.name = "iq2_m", .base = "iq2_s", .output = "q5_k", .embd = "iq3_s", .low = true,
		.v = {{MIX_GQA4_EXPERTS4, "q4_k"}, {MIX_ALWAYS, "iq3_s"}},
		.k = {{MIX_EXPERTS8, "q4_k"}},
		.o = {{MIX_EXPERTS8, "q5_k"}, {MIX_ALWAYS, "iq3_s"}},
		.down = {{MIX_8TH_COUNTED, "iq3_s"}},
	},
	{
		.name = "iq3_xxs", .base = "iq3_xxs", .output = "q5_k", .embd = "iq3_s",
		.v = {{MIX_GQA4, "q4_k"}, {MIX_NO_IMATRIX, "iq3_s"}},
		.k = {{MIX_ALWAYS, "iq2_s"}},
		.q = {{MIX_ALWAYS, "iq2_s"}},
		.o = {{MIX_EXPERTS8, "q5_k"}, {MIX_ALWAYS, "iq3_s"}},
		.down = {{MIX_8TH_NO_IMATRIX, "q4_k"}, {MIX_NO_IMATRIX, "q3_k"}},
	},
	{
		.name = "iq3_xs", .base = "iq3_s",
		.v = {{MIX_GQA4, "q4_k"}},
		.k = {{MIX_ALWAYS, "iq3_xxs"}},
		.q = {{MIX_ALWAYS, "iq3_xxs"}},
		.o = {{MIX_EXPERTS8, "q5_k"}},
		.up = {{MIX_MIDDLE, "iq3_xxs"}},
	},
	{.name = "iq3_s", .base = "iq3_s", .v = {{MIX_GQA4, "q4_k"}}, .o = {{MIX_EXPERTS8, "q5_k"}}},
	{
		.name = "iq3_m", .base = "iq3_s",
		.v = {{MIX_ALWAYS, "q4_k"}},
		.o = {{MIX_EXPERTS8, "q5_k"}, {MIX_ALWAYS, "q4_k"}},
		.down = {{MIX_8TH_EXPERTS, "q4_k"}},
	},
	{
		.name = "iq4_nl", .base = "iq4_nl",
		.v = {{MIX_GQA4, "q5_k"}},
		.o = {{MIX_EXPERTS8, "q5_k"}},
		.down = {{MIX_8TH_NO_IMATRIX, "q5_k"}},
	},
	{
		.name = "iq4_xs", .base = "iq4_xs",
		.v = {{MIX_GQA4, "q5_k"}},
		.o = {{MIX_EXPERTS8, "q5_k"}},
		.down = {{MIX_8TH_NO_IMATRIX, "q5_k"}},
	},
};

/* Falcon: o and some downs go by these; what is not said here is as above, but o has the base type. */
static const struct row falcon[] = {
	{
		.name = "q3_k_m",
		.down = {{MIX_16TH, "q5_k"}, {MIX_MORE_BITS, "q4_k"}, {MIX_ALWAYS, "q3_k"}},
	},
	{.name = "q3_k_l", .o = {{MIX_ALWAYS, "q4_k"}}, .down = {{MIX_ALWAYS, "q4_k"}}},
	{.name = "q4_k_m", .down = {{MIX_16TH, "q6_k"}, {MIX_MORE_BITS, "q5_k"}}},
	{.name = "q4_k_s"},
};
/* clang-format on */

const char *mix_ggml_at(size_t i)
{
	if (i < ARRAY_LEN(rows))
		return rows[i].name;
	return i == ARRAY_LEN(rows) ? "mxfp4_moe" : NULL;
}

static bool has(const struct model_tensor *t, const char *part)
{
	return strstr(t->name, part) != NULL;
}

static enum kind kind_of(const struct model_tensor *t)
{
	static const struct {
		const char *part;
		enum kind kind;
	} parts[] = {
		{"attn_qkv.weight", ATTN_V},
		{"attn_kv_b.weight", ATTN_V},
		{"attn_v.weight", ATTN_V},
		{"attn_k.weight", ATTN_K},
		{"attn_q.weight", ATTN_Q},
		{"attn_output.weight", ATTN_O},
		{"ffn_up", FFN_UP},
		{"ffn_gate", FFN_GATE},
		{"ffn_down", FFN_DOWN},
	};

	if (!strcmp(t->name, "output.weight"))
		return OUTPUT;
	if (!strcmp(t->name, "token_embd.weight") || !strcmp(t->name, "per_layer_token_embd.weight"))
		return EMBD;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		if (has(t, parts[i].part))
			return parts[i].kind;
	}
	return OTHER;
}

bool mix_quantizable(const struct model_tensor *t)
{
	/* small ones, and what is looked up or convolved */
	static const char *const kept[] = {
		"_norm.weight",
		"ffn_gate_inp.weight",
		"ffn_gate_tid2eid.weight",
		"altup",
		"laurel",
		"per_layer_model_proj",
		"position_embd",
		"token_types",
		"ssm_conv1d",
		"shortconv.conv.weight",
		"indexer.k_proj.weight",
		"indexer.q_proj.weight",
		"time_mix_first.weight",
		"time_mix_w0.weight",
		"time_mix_w1.weight",
		"time_mix_w2.weight",
		"time_mix_v0.weight",
		"time_mix_v1.weight",
		"time_mix_v2.weight",
		"time_mix_a0.weight",
		"time_mix_a1.weight",
		"time_mix_a2.weight",
		"time_mix_g1.weight",
		"time_mix_g2.weight",
		"time_mix_decay_w1.weight",
		"time_mix_decay_w2.weight",
		"time_mix_lerp_fused.weight",
		"attn_rel_b.weight",
		"sam.pos_embd",
		"sam.neck.",
		"sam.net_",
		".rel_pos",
		".patch_embd",
		".patch_merger",
		"a.rvq.codebook",
		"mm.a.code_embd",
	};
	size_t len = strlen(t->name);

	if (t->shape[1] <= 1 && t->shape[2] <= 1)
		return false;
	if (len < 6 || strcmp(t->name + len - 6, "weight"))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		if (has(t, kept[i]))
			return false;
	}
	return true;
}

const struct quant_type *mix_kept(const struct model_tensor *t)
{
	/* conversion/base.py, prepare_tensors, has a list of what becomes f32; of the matrices that stay as
	   they are, these are the ones not on it */
	static const char *const narrow[] = {
		"altup_proj",
		"altup_unembd",
		"laurel",
		"per_layer_model_proj",
		"indexer.k_proj.weight",
		"indexer.q_proj.weight",
	};

	if (t->shape[1] > 1 || t->shape[2] > 1) {
		for (size_t i = 0; i < ARRAY_LEN(narrow); i++) {
			if (has(t, narrow[i]) && !has(t, "norm"))
				return mix_type("bf16");
		}
	}
	return mix_type("f32");
}

const struct quant_type *mix_fit(const struct quant_type *type, uint64_t row)
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

	if (type->family == QUANT_CHECKPOINT || row % type->block_elements == 0)
		return type;
	for (size_t i = 0; i < ARRAY_LEN(fallback); i++) {
		if (!strcmp(type->name, fallback[i].wide)) {
			type = mix_type(fallback[i].narrow);
			break;
		}
	}
	return row % type->block_elements ? mix_type("f16") : type;
}

/* The steps of a row for a kind, NULL for kinds without. */
static const struct mix_step *steps_of(const struct row *r, enum kind k)
{
	switch (k) {
	case ATTN_V:
		return r->v;
	case ATTN_K:
		return r->k;
	case ATTN_Q:
		return r->q;
	case ATTN_O:
		return r->o;
	case FFN_UP:
	case FFN_GATE:
		return r->up;
	case FFN_DOWN:
		return r->down;
	default:
		return NULL;
	}
}

/* With Falcon, o and some downs follow another row. */
static const struct row *row_for(const struct row *r, const struct mix_model *m, enum kind k)
{
	static const struct row none = {.name = ""};

	if (!m->falcon || (k != ATTN_O && k != FFN_DOWN))
		return r;
	for (size_t i = 0; i < ARRAY_LEN(falcon); i++) {
		if (!strcmp(r->name, falcon[i].name))
			return &falcon[i];
	}
	return k == ATTN_O ? &none : r;
}

static const char *pick_output(const struct row *r, const struct mix_model *m, uint64_t row)
{
	if (m->falcon || row % mix_type(r->base)->block_elements)
		return "q8_0";
	return r->output ? r->output : "q6_k";
}

struct counts {
	int seen[KINDS]; /* of each kind, so far */
	int n_v;	 /* of kind ATTN_V in all */
};

static const char *pick(
	const struct row *r, const struct mix_model *m, struct counts *c, const struct model_tensor *t)
{
	enum kind k = kind_of(t);
	int counted = c->seen[k]++;
	/* among experts, the layer is told by name */
	int i = m->n_expert > 1 && k != ATTN_V ? t->layer : counted;
	const struct mix_step *steps = steps_of(row_for(r, m, k), k);
	const char *type;

	if (k == OUTPUT || (k == EMBD && !m->output))
		return pick_output(r, m, t->shape[0]);
	if (k == EMBD)
		return r->embd ? r->embd : r->base;
	if (!steps)
		return r->base;
	if (m->n_expert == 8 && !r->low && (k == ATTN_V || k == ATTN_K))
		return "q8_0";
	type = mix_choose(steps, m, i, k == ATTN_V ? c->n_v : m->n_layer, counted);
	if (!type)
		type = r->base;
	if (k == ATTN_V && !r->low && m->llama_70b && (!strcmp(type, "q3_k") || !strcmp(type, "q4_k")))
		return "q5_k";
	return type;
}

/* Experts in mxfp4, the rest in q8_0. MLA's matrices a head are stacks too, and taken for experts; not with
   Bailing 3. */
static const char *pick_mxfp4_moe(const struct build *b, const struct model_tensor *t)
{
	enum kind k = kind_of(t);

	if (k == OUTPUT || k == EMBD || t->shape[2] <= 1)
		return "q8_0";
	if (b->m->architecture && !strcmp(b->m->architecture, "bailingmoe3") && k != FFN_UP &&
		k != FFN_GATE && k != FFN_DOWN)
		return "q8_0";
	return "mxfp4";
}

bool mix_ggml(struct build *b, const char *name, bool imatrix)
{
	bool moe = !strcmp(name, "mxfp4_moe");
	const struct row *r = NULL;
	struct counts counts = {.n_v = 0};
	struct model_tensor **order;
	struct mix_model m;

	for (size_t i = 0; i < ARRAY_LEN(rows) && !moe; i++) {
		if (!strcmp(name, rows[i].name))
			r = &rows[i];
	}
	if (!r && !moe)
		return false;
	mix_model_init(&m, b, imatrix);
	order = mix_order(b);
	for (size_t i = 0; i < b->n; i++)
		counts.n_v += kind_of(order[i]) == ATTN_V;
	for (size_t i = 0; i < b->n; i++) {
		struct model_tensor *t = order[i];
		const char *type;

		if (!mix_quantizable(t)) {
			t->type = mix_kept(t);
			continue;
		}
		type = r ? pick(r, &m, &counts, t) : pick_mxfp4_moe(b, t);
		t->type = mix_fit(mix_type(type), t->shape[0]);
	}
	return true;
}
