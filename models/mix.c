/*
 * mix.c - which type each tensor gets when a model is quantized (build_types of build.h).
 *
 * What a quant may be called:
 *
 *	q4_k_m, q4_0, iq2_xxs …    a file type of llama-quantize: a mix of types (mix_ggml.c; mix_ik.c)
 *	q4_k_m+imatrix             made with an importance matrix, which changes some of them
 *	gptq-int4-g128, fp8 …      a checkpoint's format (mix_checkpoint.c)
 *	ud-q2_k_xl, q6_k_l …       mixes of unsloth and bartowski (mix_ud.c)
 *	custom-iq4_k_r4 …          as files for ik_llama.cpp are published (mix_ud.c)
 *	f32, f16, bf16             every tensor has the type
 *	q4_k, iq3_k_r4 …           any other type: every matrix that llama-quantize would touch has it, as
 *with
 *	                           --pure. llama-quantize itself takes q3_k, q4_k and q5_k for their _m
 *	mxfp4+f16                  routed experts of one type, the rest as the other quant has it
 *
 * and what people call them: "Q4_K - Medium" of llama.cpp's logs, "q4", "fp4".
 */
#include "models/mix.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"

const struct quant_type *mix_type(const char *name)
{
	const struct quant_type *t = quant_find(name);

	if (!t)
		BUG("a rule names type '%s'", name);
	return t;
}

/* Like the names of model types in src/models/llama.cpp, qwen2.cpp and others. */
static bool is_llama_70b(const struct model *m, const struct mix_model *q, bool grouped)
{
	static const char *const llama[] = {"llama", "mistral", "mixtral"};
	static const char *const other[] = {"qwen2", "deci", "olmo"};

	if (!m->architecture)
		return false;
	if (!strcmp(m->architecture, "jais2"))
		return m->n_layer == 68;
	if (m->n_layer != 80)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(other); i++) {
		if (!strcmp(m->architecture, other[i]))
			return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(llama); i++) {
		if (!strcmp(m->architecture, llama[i]))
			return grouped && q->n_expert != 8;
	}
	return false;
}

static bool is_llama_8b(const struct model *m, const struct mix_model *q)
{
	return m->architecture && !strcmp(m->architecture, "llama") && q->n_expert != 8 &&
	       ((m->n_layer == 32 && m->vocab >= 40000 && m->vocab != 49152) || m->n_layer == 36);
}

void mix_model_init(struct mix_model *q, const struct build *b, bool imatrix)
{
	const struct model *m = b->m;
	bool grouped = false;

	*q = (struct mix_model){.n_layer = (int)m->n_layer, .imatrix = imatrix};
	for (uint32_t i = 0; i < m->n_layer; i++) {
		const struct model_layer *l = &m->layers[i];

		if ((int)l->n_expert > q->n_expert)
			q->n_expert = (int)l->n_expert;
		if (!q->n_gqa && l->n_head && l->n_kv_head) {
			q->n_gqa = (int)(l->n_head / l->n_kv_head);
			grouped = l->n_head != l->n_kv_head;
		}
	}
	for (size_t i = 0; i < b->n; i++) {
		if (!strcmp(b->at[i].name, "output.weight") && !b->at[i].shared_storage)
			q->output = true;
	}
	q->falcon = m->architecture && !strcmp(m->architecture, "falcon");
	q->llama_70b = is_llama_70b(m, q, grouped);
	q->llama_8b = is_llama_8b(m, q);
	q->many_words = m->vocab >= 127999;
}

bool mix_more_bits(int i, int n)
{
	return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
}

static bool applies(enum mix_when when, const struct mix_model *m, int i, int n, int counted)
{
	switch (when) {
	case MIX_NEVER:
		return false;
	case MIX_ALWAYS:
		return true;
	case MIX_GQA2:
		return m->n_gqa >= 2;
	case MIX_GQA4:
		return m->n_gqa >= 4;
	case MIX_GQA2_EXPERTS2:
		return m->n_gqa >= 2 || m->n_expert >= 2;
	case MIX_GQA4_EXPERTS4:
		return m->n_gqa >= 4 || m->n_expert >= 4;
	case MIX_EXPERTS4:
		return m->n_expert >= 4;
	case MIX_EXPERTS8:
		return m->n_expert == 8;
	case MIX_FIRST2:
		return i < 2;
	case MIX_FIRST4:
		return i < 4;
	case MIX_MORE_BITS:
		return mix_more_bits(i, n);
	case MIX_16TH:
		return i < n / 16;
	case MIX_8TH:
		return i < n / 8;
	case MIX_8TH_COUNTED:
		return counted < n / 8;
	case MIX_8TH_EXPERTS:
		return i < n / 8 || (m->n_expert == 8 && mix_more_bits(i, n));
	case MIX_8TH_IMATRIX:
		return i < n / 8 && m->imatrix;
	case MIX_8TH_NO_IMATRIX:
		return i < n / 8 && !m->imatrix;
	case MIX_MIDDLE:
		return i >= n / 8 && i < 7 * n / 8;
	case MIX_NO_IMATRIX:
		return !m->imatrix;
	case MIX_BIG_8B:
		return m->many_words && (m->llama_8b || m->llama_70b);
	}
	return false;
}

const char *mix_choose(
	const struct mix_step steps[MIX_STEPS], const struct mix_model *m, int i, int n, int counted)
{
	for (int s = 0; s < MIX_STEPS; s++) {
		if (applies(steps[s].when, m, i, n, counted))
			return steps[s].type;
	}
	return NULL;
}

/* Both programs keep their tensors in a map sorted by this (llama-model-loader.h, weight_name_comparer). */
static int compare(const void *a, const void *b)
{
	const struct model_tensor *x = *(struct model_tensor *const *)a;
	const struct model_tensor *y = *(struct model_tensor *const *)b;

	if (x->layer != y->layer)
		return x->layer < y->layer ? -1 : 1;
	return strcmp(x->name, y->name);
}

struct model_tensor **mix_order(const struct build *b)
{
	struct model_tensor **order = arena_array(b->arena, struct model_tensor *, b->n);

	for (size_t i = 0; i < b->n; i++)
		order[i] = &b->at[i];
	qsort(order, b->n, sizeof(*order), compare);
	return order;
}

/* ---- Names ---- */

/* What is meant, where that is plain; and other spellings. */
static const struct {
	const char *said, *meant;
} spellings[] = {
	{"q2_k_m", "q2_k"},
	{"q8", "q8_0"},
	{"q4", "q4_k_m"},
	{"mxfp4 moe", "mxfp4_moe"},
	{"q4_0_r4", "q4_0_r8"}, /* ik_llama.cpp interleaved four rows of these at first */
	{"q8_0_r4", "q8_0_r8"},
	{"iq4_xs_r4", "iq4_xs_r8"},
	{"fp4-fp8", "mxfp4+fp8-block128"},  /* as DeepSeek-V4 is published */
	{"w4a16-fp8", "int4+fp8"},	    /* experts in 4 bits, the rest in FP8 */
	{"int8-cpu-int4-gpu", "int8+q4_k"}, /* KTransformers: experts on the CPU, Marlin on the GPU */
	{"awq", "awq-int4-g128"},
	{"gptq", "gptq-int4-g128"},
	{"bnb-int8", "int8"},
	{"bnb-nf4", "nf4"},
	{"q2_k_xl", "ud-q2_k_xl"}, /* unsloth's, named without UD at times */
	{"q4_k_xl", "ud-q4_k_xl"},
	{"q5_k_xl", "ud-q5_k_xl"},
	{"q6_k_xl", "ud-q6_k_xl"},
	{"q8_k_xl", "ud-q8_k_xl"},
	{"ud-tq1_0", "ud-iq1_s"},
	{"ud-q3_k_s", "ud-q3_k_xl"},
	{"ud-q3_k_m", "ud-q3_k_xl"},
	{"ud-q4_k_s", "ud-q4_k_xl"},
	{"ud-q4_k_m", "ud-q4_k_xl"},
	{"ud-q5_k_s", "ud-q5_k_xl"},
	{"ud-q6_k", "ud-q6_k_xl"},
	{"ud-4.5bit", "ud-q4_k_xl"},
	{"ud-iq2", "ud-iq2_xxs"},
};

/* What cannot be told from its name, and why. */
static const struct {
	const char *name, *why;
} recipes[] = {
	{"iq3_k-mix",
		"is a recipe of its author, tensor by tensor; iq3_k is ik_llama.cpp's mix of that name"},
};

/* "mostly Q4_K - Medium" and "IQ4_XS - 4.25 bpw" of llama.cpp's logs become q4_k_m and iq4_xs. */
static char *plain_name(const char *quant, struct arena *a)
{
	static const char *const sizes[] = {"small", "medium", "large"};
	char *name = arena_strdup(a, strncasecmp(quant, "mostly ", 7) ? quant : quant + 7);
	char *dash = strstr(name, " - ");

	if (dash) {
		const char *size = NULL;

		for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
			if (!strcasecmp(dash + 3, sizes[i]))
				size = sizes[i];
		}
		*dash = '\0';
		if (size)
			name = arena_printf(a, "%s_%c", name, *size);
	}
	for (char *p = name; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	for (size_t i = 0; i < ARRAY_LEN(spellings); i++) {
		if (!strcmp(name, spellings[i].said))
			return arena_strdup(a, spellings[i].meant);
	}
	return name;
}

/* Types of the table that hold activations or indices, never weights. */
static bool holds_weights(const struct quant_type *t)
{
	static const char *const other[] = {"q8_1", "q8_k", "i8", "i16", "i32", "i64", "q8_0_x4", "q8_1_x4",
		"q8_2_x4", "q8_k64", "q8_k16", "q8_k32", "q8_kr8", "q8_k128", "int4-g64"};

	for (size_t i = 0; i < ARRAY_LEN(other); i++) {
		if (!strcmp(t->name, other[i]))
			return false;
	}
	return true;
}

static void offer_all(struct suggest *near)
{
	for (size_t i = 0; mix_ggml_at(i); i++)
		suggest_offer(near, mix_ggml_at(i));
	for (size_t i = 0; mix_checkpoint_at(i); i++)
		suggest_offer(near, mix_checkpoint_at(i));
	for (size_t i = 0; quant_at(i); i++) {
		if (holds_weights(quant_at(i)))
			suggest_offer(near, quant_at(i)->name);
	}
	for (size_t i = 0; mix_ud_at(i); i++)
		suggest_offer(near, mix_ud_at(i));
	for (size_t i = 0; mix_ik_at(i); i++)
		suggest_offer(near, mix_ik_at(i));
}

bool mix_is_known(const char *quant, struct arena *a)
{
	const char *(*const lists[])(size_t) = {mix_ggml_at, mix_ik_at, mix_checkpoint_at, mix_ud_at};
	const char *name = plain_name(quant, a);

	for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
		for (size_t i = 0; lists[k](i); i++) {
			if (!strcmp(name, lists[k](i)))
				return true;
		}
	}
	const struct quant_type *type = quant_make(name, a);
	return type && holds_weights(type);
}

static int unknown(const char *quant, struct err *err)
{
	struct suggest near;
	char text[64];

	suggest_init(&near, quant);
	offer_all(&near);
	return err_set(
		err, ERR_INPUT, "unknown quant '%s'%s", quant, suggest_text(&near, text, sizeof(text)));
}

/* ---- One type for all ---- */

static void apply_plain(struct build *b, const struct quant_type *type)
{
	bool all = type->family == QUANT_GGML && type->block_elements == 1; /* f32, f16, bf16, f64 */

	for (size_t i = 0; i < b->n; i++) {
		struct model_tensor *t = &b->at[i];

		t->type = all ? type : mix_quantizable(t) ? mix_fit(type, t->shape[0]) : mix_kept(t);
	}
}

static int apply(struct build *b, const char *name, bool imatrix, struct err *err);

/* "EXPERTS+REST": the rest first, then the experts. */
static int apply_parts(struct build *b, const char *name, const char *plus, struct err *err)
{
	const char *experts = arena_strndup(b->arena, name, (size_t)(plus - name)), *rest = plus + 1;
	const struct quant_type *type = quant_make(plain_name(experts, b->arena), b->arena);
	bool any = false;

	if (!type || !holds_weights(type)) {
		unknown(experts, err);
		return err_prefix(err, "quant '%s', its experts", name);
	}
	if (apply(b, plain_name(rest, b->arena), false, err))
		return err_prefix(err, "quant '%s', the rest", name);
	for (size_t i = 0; i < b->n; i++) {
		if (b->at[i].group != MODEL_EXPERTS || !mix_quantizable(&b->at[i]))
			continue;
		b->at[i].type = mix_fit(type, b->at[i].shape[0]);
		any = true;
	}
	if (!any)
		return err_set(err, ERR_INPUT,
			"quant '%s' names a type for routed experts, of which the model has none; "
			"'%s' is the other part",
			name, rest);
	b->m->quant = arena_printf(b->arena, "%s+%s", type->name, b->m->quant);
	return 0;
}

/* A mix by name, in lower case. */
static int apply(struct build *b, const char *name, bool imatrix, struct err *err)
{
	const char *plus = strchr(name, '+');
	const struct quant_type *type;

	for (size_t i = 0; i < ARRAY_LEN(recipes); i++) {
		if (!strcmp(name, recipes[i].name))
			return err_set(err, ERR_INPUT, "quant '%s' %s", name, recipes[i].why);
	}
	if (mix_ggml(b, name, imatrix) || mix_ik(b, name, imatrix)) {
		b->m->quant = arena_printf(b->arena, "%s%s", name, imatrix ? "+imatrix" : "");
		return 0;
	}
	if (imatrix)
		return err_set(
			err, ERR_INPUT, "quant '%s' is no mix that an importance matrix changes", name);
	if (plus)
		return apply_parts(b, name, plus, err);
	if (mix_checkpoint(b, name) || mix_ud(b, name)) {
		if (!b->m->quant)
			b->m->quant = name;
		return 0;
	}
	type = quant_find(name);
	if (!type)
		return unknown(name, err);
	if (!holds_weights(type))
		return err_set(err, ERR_INPUT, "type '%s' is not one that weights are stored in", name);
	apply_plain(b, type);
	b->m->quant = type->name;
	return 0;
}

int build_types(struct build *b, const char *quant, struct err *err)
{
	static const char suffix[] = "+imatrix";
	char *name = plain_name(quant, b->arena);
	size_t len = strlen(name);
	bool imatrix = len >= sizeof(suffix) && !strcmp(name + len - (sizeof(suffix) - 1), suffix);

	if (imatrix) {
		name[len - (sizeof(suffix) - 1)] = '\0';
		name = plain_name(name, b->arena);
	}
	b->m->quant = NULL;
	return apply(b, name, imatrix, err);
}
