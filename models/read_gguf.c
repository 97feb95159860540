/*
 * read_gguf.c - keys and tensors of a GGUF file -> model.
 *
 *	parts ──> tensors ──> layer and group of each, sorted ──> build
 *	keys of the first part ──> heads, windows, experts, states of each layer
 *
 * What keys mean, and what a missing one stands for: llama.cpp, src/llama-model.cpp (load_hparams),
 * src/models/NAME.cpp (load_arch_hparams) and src/llama-hparams.cpp, as of 3f545bec (2026-08-23).
 * The last `nextn_predict_layers` blocks predict further tokens: draft layers.
 */
#include "models/read_gguf.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/intern.h"
#include "base/vec.h"
#include "models/build.h"
#include "models/group.h"
#include "models/sat.h"

#define MAX_PARTS 4096
#define MAX_WIDTH (1 << 20)
#define MAX_HEADS (1 << 16)
#define MAX_HEAD_DIM (1 << 16)
#define MAX_EXPERTS (1 << 16)
#define MAX_VOCAB (1 << 24)
#define MAX_CONTEXT (UINT64_C(1) << 40)

/* Which layers look back only a window of tokens. */
static const struct window_rule {
	const char *arch;
	uint32_t period;     /* of as many layers one looks back on all; 0: none does */
	bool full_first;     /* the first of them, not the last */
	uint32_t unless_key; /* window when the file has no key for it; 0: none then */
	uint32_t always;     /* window whatever the key says */
} window_rules[] = {
	{.arch = "afmoe", .period = 4},
	{.arch = "cohere2", .period = 4},
	{.arch = "cohere2moe", .period = 4, .full_first = true},
	{.arch = "deepseek4"},
	{.arch = "exaone-moe", .period = 4, .unless_key = 128},
	{.arch = "exaone4", .period = 4},
	{.arch = "gemma-embedding", .period = 6},
	{.arch = "gemma2", .period = 2, .unless_key = 4096},
	{.arch = "gemma3", .period = 6},
	{.arch = "gemma3n", .period = 5},
	{.arch = "gpt-oss", .period = 2},
	{.arch = "laguna", .period = 4, .full_first = true},
	{.arch = "llama4", .period = 4, .unless_key = 8192, .always = 8192},
	{.arch = "mellum", .period = 4},
	{.arch = "olmo2", .period = 4},
	{.arch = "plamo3", .period = 8},
	{.arch = "smallthinker", .period = 4, .full_first = true, .always = 4096},
};

/* One tensor on its way into the model. */
struct item {
	const struct gguf_tensor *t;
	const char *rest; /* of its name, behind "blk.N." */
	int layer;
	enum model_group group;
	size_t order; /* in the file */
};

struct reader {
	struct arena *arena;
	struct gguf *first; /* part with the keys */
	const char *arch;
	struct {
		VEC(struct item);
	} items;
	uint64_t file_bytes;
	uint32_t n_layer, n_draft, hidden;
	struct group_facts *facts; /* by layer */
};

/* ---- keys ---- */

static int fault(const struct reader *r, struct err *err, const char *fmt, ...) PRINTF_LIKE(3, 4);

static int fault(const struct reader *r, struct err *err, const char *fmt, ...)
{
	struct err_pos pos = {.file = r->first->path};
	char msg[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	return err_at(err, ERR_INPUT, &pos, "%s", msg);
}

/* ARCH.name */
static const struct gguf_value *find(const struct reader *r, const char *name)
{
	char key[128];

	snprintf(key, sizeof(key), "%s.%s", r->arch, name);
	return gguf_find(r->first, key);
}

static bool whole(const struct gguf_scalar *s, uint64_t *out)
{
	switch (s->type) {
	case GGUF_U8:
	case GGUF_U16:
	case GGUF_U32:
	case GGUF_U64:
	case GGUF_BOOL:
		*out = s->u;
		return true;
	case GGUF_I8:
	case GGUF_I16:
	case GGUF_I32:
	case GGUF_I64:
		*out = (uint64_t)s->i;
		return s->i >= 0;
	default:
		return false;
	}
}

static int bad_count(
	const struct reader *r, const struct gguf_value *v, uint64_t min, uint64_t max, struct err *err)
{
	return gguf_fault(r->first, v->at, err, "'%s' must be a whole number from %" PRIu64 " to %" PRIu64,
		v->key, min, max);
}

static int get_count_or(const struct reader *r, const char *name, uint64_t def, uint64_t min, uint64_t max,
	uint64_t *out, struct err *err)
{
	const struct gguf_value *v = find(r, name);

	*out = def;
	if (!v)
		return 0;
	if (v->array || !whole(&v->scalar, out) || *out < min || *out > max)
		return bad_count(r, v, min, max, err);
	return 0;
}

static int get_count(const struct reader *r, const char *name, uint64_t max, uint64_t *out, struct err *err)
{
	if (!find(r, name))
		return fault(r, err, "has no key '%s.%s'", r->arch, name);
	return get_count_or(r, name, 0, 1, max, out, err);
}

/* A number for each layer, or one for all (llama-model-loader.cpp, get_key_or_arr). NULL: no such key. A list
   may leave out the draft layers, which then have the last one's. */
static int get_per_layer(
	const struct reader *r, const char *name, uint64_t max, uint64_t **out, struct err *err)
{
	const struct gguf_value *v = find(r, name);
	struct gguf_walk walk;
	struct gguf_scalar s;
	uint32_t i = 0;

	*out = NULL;
	if (!v)
		return 0;
	if (v->array && (v->n < r->n_layer - r->n_draft || !v->n))
		return gguf_fault(r->first, v->at, err, "'%s' has %" PRIu64 " elements for %u layers", v->key,
			v->n, r->n_layer);
	*out = arena_array(r->arena, uint64_t, r->n_layer);
	gguf_walk(&walk, r->first, v);
	s = v->scalar;
	for (i = 0; i < r->n_layer; i++) {
		if (v->array && i < v->n && gguf_next(&walk, &s, err) < 0)
			return -1;
		if (!whole(&s, &(*out)[i]) || (*out)[i] > max)
			return bad_count(r, v, 0, max, err);
	}
	return 0;
}

static int read_arch(struct reader *r, struct err *err)
{
	const struct gguf_value *v = gguf_find(r->first, "general.architecture");

	if (!v)
		return fault(r, err, "has no key 'general.architecture'");
	if (v->array || v->type != GGUF_TEXT || !v->scalar.len || v->scalar.len > 64)
		return gguf_fault(r->first, v->at, err, "'general.architecture' is no name");
	for (size_t i = 0; i < v->scalar.len; i++) {
		unsigned char c = (unsigned char)v->scalar.text[i];

		if (!isalnum(c) && !strchr("-_.", c))
			return gguf_fault(r->first, v->at, err, "'general.architecture' is no name");
	}
	r->arch = v->scalar.text;
	return 0;
}

/* ---- tensors ---- */

static bool begins(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

/* "blk.17.rest": its layer; MODEL_NO_LAYER for a tensor of the whole model. */
static int parse_layer(const struct reader *r, const struct gguf *g, const struct gguf_tensor *t,
	struct item *to, struct err *err)
{
	const char *p = t->name;
	uint32_t layer = 0;

	to->layer = MODEL_NO_LAYER;
	to->rest = p;
	if (begins(p, "enc.blk.") || begins(p, "dec.blk."))
		return gguf_fault(g, t->at, err,
			"tensor '%s' belongs to an encoder and a decoder, "
			"which cannot be told apart here",
			p);
	if (!begins(p, "blk."))
		return 0;
	p += 4;
	if (!isdigit((unsigned char)*p) || (*p == '0' && isdigit((unsigned char)p[1])))
		return gguf_fault(g, t->at, err, "tensor '%s' has no layer", t->name);
	for (; isdigit((unsigned char)*p); p++) {
		if (layer < UINT32_MAX / 10 - 1)
			layer = layer * 10 + (uint32_t)(*p - '0');
	}
	if (*p != '.' || !p[1])
		return gguf_fault(g, t->at, err, "tensor '%s' has no name in its layer", t->name);
	if (layer >= r->n_layer)
		return gguf_fault(
			g, t->at, err, "tensor '%s' belongs to none of the %u layers", t->name, r->n_layer);
	to->layer = (int)layer;
	to->rest = p + 1;
	return 0;
}

static int add_tensors(struct reader *r, const struct gguf *g, struct err *err)
{
	for (size_t i = 0; i < g->n_tensors; i++) {
		struct item item = {.t = &g->tensors[i], .order = r->items.n};

		if (parse_layer(r, g, item.t, &item, err))
			return -1;
		if (item.layer != MODEL_NO_LAYER)
			group_learn(&r->facts[item.layer], item.rest, item.t->dim[1],
				item.t->dim[2] * item.t->dim[3]);
		VEC_PUSH(&r->items, r->arena, item);
	}
	r->file_bytes += g->size;
	return 0;
}

static int by_place(const void *x, const void *y)
{
	const struct item *a = x, *b = y;

	return group_compare((struct group_place){a->layer, a->group, a->order}, (struct group_place){b->layer, b->group, b->order});
}

static const struct item *find_item(const struct reader *r, const char *name)
{
	for (size_t i = 0; i < r->items.n; i++) {
		if (!strcmp(r->items.at[i].t->name, name))
			return &r->items.at[i];
	}
	return NULL;
}

static void add_item(struct build *b, const struct item *it)
{
	const uint64_t *dim = it->t->dim;

	build_layer(b, it->layer);
	build_add(b, it->group, it->rest, dim[0], dim[1], dim[2] * dim[3])->type = it->t->type;
}

/* Groups need to know what else is in the layer, and so come after all tensors have been seen. */
static void sort_items(struct reader *r)
{
	for (size_t i = 0; i < r->items.n; i++) {
		struct item *it = &r->items.at[i];

		it->group = it->layer == MODEL_NO_LAYER ? group_outside(it->rest)
							: group_of(it->rest, &r->facts[it->layer]);
	}
	qsort(r->items.at, r->items.n, sizeof(*r->items.at), by_place);
}

/* ---- geometry ---- */

static const struct window_rule *window_rule(const char *arch)
{
	for (size_t i = 0; i < ARRAY_LEN(window_rules); i++) {
		if (!strcmp(window_rules[i].arch, arch))
			return &window_rules[i];
	}
	return NULL;
}

/* The pattern is a list of layers that have the window, or a period; without one the architecture's own
   holds. One without a pattern has no windows, whatever its key says (phi3, mistral). */
static int read_windows(struct reader *r, struct model *m, struct err *err)
{
	const struct gguf_value *pattern = find(r, "attention.sliding_window_pattern");
	const struct window_rule *rule = window_rule(r->arch);
	uint64_t window, period = rule ? rule->period : 0, *listed = NULL;

	if (get_count_or(
		    r, "attention.sliding_window", rule ? rule->unless_key : 0, 0, UINT32_MAX, &window, err))
		return -1;
	if (pattern && pattern->array) {
		if (get_per_layer(r, "attention.sliding_window_pattern", 1, &listed, err))
			return -1;
	} else if (get_count_or(r, "attention.sliding_window_pattern", period, 0, BUILD_MAX_LAYERS, &period,
			   err)) {
		return -1;
	}
	if (window && rule && rule->always)
		window = rule->always;
	for (uint32_t i = 0; i < r->n_layer; i++) {
		bool full = !rule && !pattern;

		if (listed)
			full = !listed[i];
		else if (period)
			full = i % period == (rule && rule->full_first ? 0 : period - 1);
		m->layers[i].window = full || i >= r->n_layer - r->n_draft ? 0 : (uint32_t)window;
	}
	return 0;
}

/* What keys say about attention. Layers with a window may have heads of another size. */
struct heads {
	uint64_t *n, *n_kv, *recurrent, *compress;
	uint64_t k, v, k_window, v_window;
	uint64_t mla_k, mla_v, rank, rope; /* MLA: unpacked heads, latent vector, rotated key */
	uint64_t index_heads, index_dim, top;
	uint64_t without_kv; /* layers from this one on use the keys and values of earlier ones */
};

static int read_head_sizes(const struct reader *r, struct heads *h, struct err *err)
{
	uint64_t head_dim = 0;

	for (uint32_t i = 0; i < r->n_layer && !head_dim; i++)
		head_dim = h->n[i] ? r->hidden / h->n[i] : 0;
	if (head_dim > MAX_HEAD_DIM)
		return fault(r, err, "attention heads of %" PRIu64 " elements are more than %d", head_dim,
			MAX_HEAD_DIM);
	if (get_count_or(r, "attention.key_length", head_dim, 0, MAX_HEAD_DIM, &h->k, err) ||
		get_count_or(r, "attention.value_length", head_dim, 0, MAX_HEAD_DIM, &h->v, err) ||
		get_count_or(r, "attention.key_length_swa", h->k, 0, MAX_HEAD_DIM, &h->k_window, err) ||
		get_count_or(r, "attention.value_length_swa", h->v, 0, MAX_HEAD_DIM, &h->v_window, err) ||
		/* without keys of their own: files of before 2025, where k and v are those of unpacked heads
		 */
		get_count_or(r, "attention.key_length_mla", h->k, 0, MAX_HEAD_DIM, &h->mla_k, err) ||
		get_count_or(r, "attention.value_length_mla", h->v, 0, MAX_HEAD_DIM, &h->mla_v, err) ||
		get_count_or(r, "attention.kv_lora_rank", 0, 0, MAX_HEAD_DIM, &h->rank, err) ||
		get_count_or(r, "rope.dimension_count", 0, 0, MAX_HEAD_DIM, &h->rope, err))
		return -1;
	return 0;
}

static int read_heads(const struct reader *r, struct heads *h, struct err *err)
{
	uint64_t shared;

	if (get_per_layer(r, "attention.head_count", MAX_HEADS, &h->n, err) ||
		get_per_layer(r, "attention.head_count_kv", MAX_HEADS, &h->n_kv, err) ||
		get_per_layer(r, "attention.recurrent_layers", 1, &h->recurrent, err) ||
		get_per_layer(r, "attention.compress_ratios", MAX_WIDTH, &h->compress, err) ||
		get_count_or(r, "attention.indexer.head_count", 0, 0, MAX_HEADS, &h->index_heads, err) ||
		get_count_or(r, "attention.indexer.key_length", 0, 0, MAX_HEAD_DIM, &h->index_dim, err) ||
		get_count_or(r, "attention.indexer.top_k", 0, 0, UINT32_MAX, &h->top, err) ||
		get_count_or(r, "attention.shared_kv_layers", 0, 0, r->n_layer, &shared, err))
		return -1;
	if (!h->n)
		h->n = arena_array(r->arena, uint64_t, r->n_layer); /* RWKV, Mamba: none */
	if (!h->n_kv)
		h->n_kv = h->n;
	h->without_kv = r->n_layer - shared;
	/* src/models/gemma3n.cpp */
	if (!strcmp(r->arch, "gemma3n") && !shared && h->without_kv > 20)
		h->without_kv = 20;
	return read_head_sizes(r, h, err);
}

static bool has_attention(const struct heads *h, const struct group_facts *f, uint32_t i)
{
	if (!h->n[i] || !h->n_kv[i] || (h->recurrent && h->recurrent[i]))
		return false;
	if (f->k || f->mla_width || f->kv_width)
		return true;
	return !f->recurrent && (f->qkv || i >= h->without_kv);
}

/* One vector a token, shared by all heads: see arch_mla.c. */
static int set_mla(
	const struct reader *r, const struct heads *h, uint32_t i, struct model_layer *l, struct err *err)
{
	uint64_t width = r->facts[i].mla_width, rank = h->rank;

	if (width > MAX_HEAD_DIM || !width)
		return fault(r, err, "layer %u has a latent vector of %" PRIu64 " elements, more than %d", i,
			width, MAX_HEAD_DIM);
	if (!rank && h->rope < width)
		rank = width - h->rope;
	if (rank > width)
		return fault(r, err,
			"'%s.attention.kv_lora_rank' is %" PRIu64
			", but layer %u has a latent vector of %" PRIu64 " elements",
			r->arch, rank, i, width);
	l->n_kv_head = 1;
	l->head_dim_k = (uint32_t)width;
	l->head_dim_v = (uint32_t)rank;
	l->mla_dim_k = (uint32_t)h->mla_k;
	l->mla_dim_v = (uint32_t)h->mla_v;
	l->kv_k_elements = width;
	return 0;
}

/* An indexer keeps a key a token; where tokens are compressed (DeepSeek-V4), a key and an entry for several.
 */
static void set_sparse(const struct heads *h, const struct group_facts *f, uint32_t i, struct model_layer *l)
{
	uint64_t compress = h->compress ? h->compress[i] : 0;

	if (f->indexer) {
		l->index_heads = (uint32_t)h->index_heads;
		l->index_dim = (uint32_t)h->index_dim;
		l->kv_extra_elements = h->index_dim;
	}
	if (f->indexer || (f->mla_width && !f->kv_width))
		l->attended = (uint32_t)h->top;
	if (!f->kv_width || !compress)
		return;
	l->compress = l->kv_extra_every = (uint32_t)compress;
	if (f->compressor)
		l->kv_extra_elements += l->head_dim_k;
}

static int read_attention(const struct reader *r, struct model *m, struct err *err)
{
	struct heads h = {0};

	if (read_heads(r, &h, err))
		return -1;
	for (uint32_t i = 0; i < r->n_layer; i++) {
		const struct group_facts *f = &r->facts[i];
		struct model_layer *l = &m->layers[i];

		l->draft = i >= r->n_layer - r->n_draft;
		if (!has_attention(&h, f, i)) {
			l->window = 0;
			continue;
		}
		l->n_head = (uint32_t)h.n[i];
		l->n_kv_head = (uint32_t)h.n_kv[i];
		l->head_dim_k = (uint32_t)(l->window ? h.k_window : h.k);
		l->head_dim_v = (uint32_t)(l->window ? h.v_window : h.v);
		l->kv_k_elements = (uint64_t)l->n_kv_head * l->head_dim_k;
		l->kv_v_elements = f->kv_width ? 0 : (uint64_t)l->n_kv_head * l->head_dim_v;
		if (f->mla_width) {
			l->kv_v_elements = 0;
			if (set_mla(r, &h, i, l, err))
				return -1;
		}
		set_sparse(&h, f, i, l);
		if (i >= h.without_kv || l->draft)
			l->kv_k_elements = l->kv_v_elements = l->kv_extra_elements = 0;
	}
	return 0;
}

/* What a recurrent layer keeps of a sequence, in f32 (llama-hparams.cpp, n_embd_r and n_embd_s), and the
   FLOPs of a step (arch_ssm.c). */
static int read_states(const struct reader *r, struct model *m, struct err *err)
{
	uint64_t conv, inner, state, groups, short_conv, kda, wkv, shift, *heads;

	if (get_count_or(r, "ssm.conv_kernel", 0, 0, 1 << 16, &conv, err) ||
		get_count_or(r, "ssm.inner_size", 0, 0, MAX_WIDTH, &inner, err) ||
		get_count_or(r, "ssm.state_size", 0, 0, MAX_WIDTH, &state, err) ||
		get_count_or(r, "ssm.group_count", 0, 0, MAX_HEADS, &groups, err) ||
		get_count_or(r, "shortconv.l_cache", 0, 0, 1 << 16, &short_conv, err) ||
		get_count_or(r, "kda.head_dim", 0, 0, MAX_HEAD_DIM, &kda, err) ||
		get_count_or(r, "wkv.head_size", 0, 0, MAX_HEAD_DIM, &wkv, err) ||
		get_count_or(r, "token_shift_count", 2, 0, MAX_HEADS, &shift, err) ||
		get_per_layer(r, "attention.head_count", MAX_HEADS, &heads, err))
		return -1;
	for (uint32_t i = 0; i < r->n_layer; i++) {
		uint64_t n_head = heads ? heads[i] : 0, rolling, kept;
		double flops = 5;

		if (!r->facts[i].recurrent || m->layers[i].draft)
			continue;
		if (wkv) {
			rolling = shift * r->hidden;
			kept = wkv * r->hidden;
		} else if (short_conv) {
			rolling = (short_conv - 1) * r->hidden;
			kept = 0;
		} else if (kda) {
			rolling = sat_mul(3 * (conv ? conv - 1 : 3) * n_head, kda);
			kept = kda * kda * n_head;
			flops = 7;
		} else {
			rolling = sat_mul(conv ? conv - 1 : 0, inner + 2 * groups * state);
			kept = state * inner;
			flops = r->facts[i].delta ? 7 : 6;
		}
		m->layers[i].state_bytes = sat_mul(sat_add(rolling, kept), sizeof(float));
		m->layers[i].state_flops = flops * (double)kept;
	}
	return 0;
}

static int read_experts(const struct reader *r, struct model *m, struct err *err)
{
	uint64_t n_expert, n_used;

	if (get_count_or(r, "expert_count", 0, 0, MAX_EXPERTS, &n_expert, err) ||
		get_count_or(r, "expert_used_count", 0, 0, MAX_EXPERTS, &n_used, err))
		return -1;
	for (uint32_t i = 0; i < r->n_layer; i++) {
		const struct group_facts *f = &r->facts[i];
		uint64_t n = f->n_expert ? f->n_expert : n_expert;

		if (!f->moe)
			continue;
		if (!n || n > MAX_EXPERTS)
			return fault(r, err,
				"layer %u has experts, but '%s.expert_count' does not say how many", i,
				r->arch);
		if (!n_used || n_used > n)
			return fault(r, err,
				"layer %u has %" PRIu64 " experts, of which '%s.expert_used_count' "
				"says that %" PRIu64 " are used",
				i, n, r->arch, n_used);
		m->layers[i].n_expert = (uint32_t)n;
		m->layers[i].n_expert_used = (uint32_t)n_used;
	}
	return 0;
}

/* ---- model ---- */

/* llama.h, enum llama_ftype, as llama-quantize calls them. */
static const char *file_type_name(uint64_t type)
{
	static const char *const names[] = {
		[0] = "f32",
		[1] = "f16",
		[2] = "q4_0",
		[3] = "q4_1",
		[7] = "q8_0",
		[8] = "q5_0",
		[9] = "q5_1",
		[10] = "q2_k",
		[11] = "q3_k_s",
		[12] = "q3_k_m",
		[13] = "q3_k_l",
		[14] = "q4_k_s",
		[15] = "q4_k_m",
		[16] = "q5_k_s",
		[17] = "q5_k_m",
		[18] = "q6_k",
		[19] = "iq2_xxs",
		[20] = "iq2_xs",
		[21] = "q2_k_s",
		[22] = "iq3_xs",
		[23] = "iq3_xxs",
		[24] = "iq1_s",
		[25] = "iq4_nl",
		[26] = "iq3_s",
		[27] = "iq3_m",
		[28] = "iq2_s",
		[29] = "iq2_m",
		[30] = "iq4_xs",
		[31] = "iq1_m",
		[32] = "bf16",
		[36] = "tq1_0",
		[37] = "tq2_0",
		[38] = "mxfp4_moe",
		[39] = "nvfp4",
		[40] = "q1_0",
		[41] = "q2_0",
	};

	return type < ARRAY_LEN(names) ? names[type] : NULL;
}

static const char *stored_quant(const struct reader *r, const struct model *m)
{
	const struct gguf_value *v = gguf_find(r->first, "general.file_type");
	const char *name = NULL;
	uint64_t type;

	if (v && !v->array && whole(&v->scalar, &type))
		name = file_type_name(type);
	return name ? name : group_main_type(m)->name;
}

static int read_geometry(struct reader *r, struct model *m, struct err *err)
{
	const struct item *embed = find_item(r, "token_embd.weight");

	if (!embed)
		return fault(r, err, "has no tensor 'token_embd.weight'");
	if (!embed->t->dim[1] || embed->t->dim[1] > MAX_VOCAB)
		return gguf_fault(r->first, embed->t->at, err,
			"tensor 'token_embd.weight' has %" PRIu64 " rows, a vocabulary has 1 to %d",
			embed->t->dim[1], MAX_VOCAB);
	m->architecture = r->arch;
	m->hidden = r->hidden;
	m->vocab = (uint32_t)embed->t->dim[1];
	if (get_count_or(r, "context_length", 0, 0, MAX_CONTEXT, &m->context_max, err))
		return -1;
	return read_windows(r, m, err) || read_attention(r, m, err) || read_states(r, m, err) ||
			       read_experts(r, m, err)
		       ? -1
		       : 0;
}

/* Some converters count draft layers and leave them out. */
static void drop_missing_drafts(struct reader *r)
{
	while (r->n_draft && !r->facts[r->n_layer - 1].n) {
		r->n_layer--;
		r->n_draft--;
	}
}

static int build_model(struct reader *r, const char *quant, struct model **out, struct err *err)
{
	const struct item *embed = find_item(r, "token_embd.weight");
	struct err_pos pos = {.file = r->first->path};
	struct build b;

	drop_missing_drafts(r);
	build_init(&b, r->arena, r->n_layer);
	b.m->note = "";
	if (read_geometry(r, b.m, err))
		return -1;
	sort_items(r);
	for (size_t i = 0; i < r->items.n; i++)
		add_item(&b, &r->items.at[i]);
	if (!find_item(r, "output.weight")) {
		struct model_tensor *tied;

		embed = find_item(r, "token_embd.weight");
		build_layer(&b, MODEL_NO_LAYER);
		tied = build_add(&b, MODEL_OUTPUT, "output.weight", embed->t->dim[0], embed->t->dim[1], 1);
		tied->type = embed->t->type;
		tied->shared_storage = b.m->tied_embeddings = true;
	}
	b.m->name = b.m->file = r->first->path;
	if (quant && build_types(&b, quant, err))
		return -1;
	if (build_finish(&b, out, err))
		return err ? err_at(err, err->code, &pos, "%s", err->msg) : -1;
	if (!quant) {
		(*out)->quant = stored_quant(r, *out);
		(*out)->file_bytes = r->file_bytes;
	}
	return 0;
}

/* From the keys of the first part. */
static int start(struct reader *r, struct gguf *first, struct err *err)
{
	uint64_t n_layer, n_draft, hidden;

	*r = (struct reader){.arena = first->arena, .first = first};
	if (read_arch(r, err) || get_count(r, "block_count", BUILD_MAX_LAYERS, &n_layer, err) ||
		get_count_or(r, "nextn_predict_layers", 0, 0, n_layer - 1, &n_draft, err) ||
		get_count(r, "embedding_length", MAX_WIDTH, &hidden, err))
		return -1;
	r->n_draft = (uint32_t)n_draft;
	r->n_layer = (uint32_t)n_layer;
	r->hidden = (uint32_t)hidden;
	r->facts = arena_array(r->arena, struct group_facts, r->n_layer);
	return 0;
}

static int no_tensors(const struct reader *r, struct err *err)
{
	return fault(r, err, "holds no tensors: %s",
		gguf_find(r->first, "tokenizer.ggml.tokens") ? "a vocabulary" : "only keys");
}

int read_gguf_open(struct gguf *g, const char *quant, struct model **out, struct err *err)
{
	struct reader r = {.first = g};

	if (!g->n_tensors)
		return no_tensors(&r, err);
	if (start(&r, g, err) || add_tensors(&r, g, err))
		return -1;
	return build_model(&r, quant, out, err);
}

/* ---- parts ---- */

/* A number of `split.…`, which has no architecture before it. */
static int split_number(
	const struct gguf *g, const char *key, uint64_t def, uint64_t max, uint64_t *out, struct err *err)
{
	const struct gguf_value *v = gguf_find(g, key);

	*out = def;
	if (!v)
		return 0;
	if (v->array || !whole(&v->scalar, out) || *out > max)
		return gguf_fault(g, v->at, err, "'%s' must be a whole number up to %" PRIu64, key, max);
	return 0;
}

/* Length of NAME in NAME-00002-of-00003.gguf (llama.cpp, llama_split_path); 0: the file is called otherwise.
 */
static size_t split_prefix(const char *path, uint64_t part, uint64_t n_parts)
{
	char tail[64];
	size_t n, len = strlen(path);

	n = (size_t)snprintf(tail, sizeof(tail), "-%05" PRIu64 "-of-%05" PRIu64 ".gguf", part + 1, n_parts);
	return len > n && !strcmp(path + len - n, tail) ? len - n : 0;
}

static int open_part(struct arena *a, const char *path, size_t prefix, uint64_t part, uint64_t n_parts,
	struct gguf *g, struct err *err)
{
	uint64_t no, count;

	path = arena_printf(
		a, "%.*s-%05" PRIu64 "-of-%05" PRIu64 ".gguf", (int)prefix, path, part + 1, n_parts);
	if (gguf_open(path, a, g, err))
		return -1;
	if (!split_number(g, "split.no", UINT64_MAX, MAX_PARTS, &no, err) &&
		!split_number(g, "split.count", 0, MAX_PARTS, &count, err)) {
		struct err_pos pos = {.file = g->path};

		if (no == part && count == n_parts)
			return 0;
		err_at(err, ERR_INPUT, &pos, "is not part %" PRIu64 " of %" PRIu64 ", as it is called",
			part + 1, n_parts);
	}
	gguf_close(g);
	return -1;
}

static int check_names(const struct reader *r, uint64_t want, struct err *err)
{
	struct intern names;

	intern_init(&names, r->arena);
	for (size_t i = 0; i < r->items.n; i++) {
		const char *name = r->items.at[i].t->name;

		if (intern_add(&names, name, strlen(name)) != i)
			return fault(r, err, "tensor '%s' is in two parts of the file", name);
	}
	if (want != UINT64_MAX && want != r->items.n)
		return fault(r, err,
			"the parts of the file have %zu tensors, 'split.tensors.count' says %" PRIu64,
			r->items.n, want);
	return 0;
}

/* first is open; the others follow it, one at a time. */
static int add_parts(struct reader *r, size_t prefix, uint64_t n_parts, struct err *err)
{
	for (uint64_t part = 1; part < n_parts; part++) {
		struct gguf g;
		int rc;

		if (open_part(r->arena, r->first->path, prefix, part, n_parts, &g, err))
			return -1;
		rc = add_tensors(r, &g, err);
		gguf_close(&g);
		if (rc)
			return -1;
	}
	return 0;
}

static int read_split(struct gguf *first, size_t prefix, uint64_t n_parts, const char *quant,
	struct model **out, struct err *err)
{
	uint64_t n_tensors;
	struct reader r;

	if (split_number(first, "split.tensors.count", UINT64_MAX, BUILD_MAX_TENSORS, &n_tensors, err) ||
		start(&r, first, err) || add_tensors(&r, first, err) || add_parts(&r, prefix, n_parts, err) ||
		check_names(&r, n_tensors, err))
		return -1;
	if (!r.items.n)
		return no_tensors(&r, err);
	return build_model(&r, quant, out, err);
}

int read_gguf(const char *path, const char *quant, struct arena *a, struct model **out, struct err *err)
{
	uint64_t part, n_parts;
	size_t prefix;
	struct gguf g;
	int rc;

	if (gguf_open(path, a, &g, err))
		return -1;
	if (split_number(&g, "split.no", 0, MAX_PARTS, &part, err) ||
		split_number(&g, "split.count", 0, MAX_PARTS, &n_parts, err)) {
		gguf_close(&g);
		return -1;
	}
	if (n_parts < 2) {
		rc = read_gguf_open(&g, quant, out, err);
		gguf_close(&g);
		return rc;
	}
	prefix = split_prefix(g.path, part, n_parts);
	if (!prefix) {
		struct err_pos pos = {.file = g.path};

		gguf_close(&g);
		return err_at(err, ERR_INPUT, &pos,
			"is part %" PRIu64 " of %" PRIu64 ", but its name does not end in -%05" PRIu64
			"-of-%05" PRIu64 ".gguf: the others cannot be found",
			part + 1, n_parts, part + 1, n_parts);
	}
	if (part) {
		/* the keys are in the first */
		gguf_close(&g);
		if (open_part(a, g.path, prefix, 0, n_parts, &g, err))
			return -1;
	}
	rc = read_split(&g, prefix, n_parts, quant, out, err);
	gguf_close(&g);
	return rc;
}
