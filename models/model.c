/*
 * model.c - finding the reader of a model, and what follows from its tensors: FLOPs, bytes, canonical text.
 */
#include "models/model.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/vec.h"
#include "models/card.h"
#include "models/folder.h"
#include "models/read_gguf.h"
#include "models/read_hf.h"
#include "models/read_safetensors.h"
#include "models/sat.h"

typedef int reader_fn(
	const char *path, const char *quant, struct arena *a, struct model **out, struct err *err);

static const struct reader {
	const char *suffix;
	reader_fn *read;
} readers[] = {
	{".safetensors.index.json", read_safetensors},
	{".json", read_hf},
	{".yaml", card_read},
	{".yml", card_read},
	{".gguf", read_gguf},
	{".safetensors", read_safetensors},
};

static const char *const group_names[MODEL_GROUP_N] = {
	[MODEL_EMBED] = "embed",
	[MODEL_ATTN] = "attn",
	[MODEL_FFN] = "ffn",
	[MODEL_ROUTER] = "router",
	[MODEL_SHARED] = "shared",
	[MODEL_EXPERTS] = "experts",
	[MODEL_OUTPUT] = "output",
};

const char *model_group_name(enum model_group g)
{
	return (unsigned)g < MODEL_GROUP_N ? group_names[g] : "?";
}

static bool ends_with(const char *s, const char *suffix)
{
	size_t n = strlen(s), ns = strlen(suffix);

	return n >= ns && !strcasecmp(s + n - ns, suffix);
}

static const struct reader *reader_of(const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(readers); i++) {
		if (ends_with(path, readers[i].suffix))
			return &readers[i];
	}
	return NULL;
}

static int load_file(
	const char *path, const char *quant, struct arena *a, struct model **out, struct err *err)
{
	const struct reader *r = reader_of(path);
	struct err_pos pos = {.file = path};

	if (!r)
		return err_at(err, ERR_INPUT, &pos,
			"is no model: a .gguf, .safetensors or config.json file, or a folder with one");
	return r->read(path, quant, a, out, err);
}

/* Is it surely meant as a path? "meta-llama/Llama-3.1-8B" need not be. */
static bool is_path(const char *name)
{
	return name[0] == '/' || name[0] == '.' || reader_of(name);
}

/* A path wins over a name only when it looks like one: a folder that happens to be called like a card in the
   current folder does no harm. */
static int find_file(const char *name, struct arena *a, const char **path, struct err *err)
{
	struct stat st;
	bool exists = !stat(name, &st);
	int fault = errno;

	if (!exists && is_path(name))
		return err_set(err, ERR_INPUT, "cannot read model '%s': %s", name, strerror(fault));
	if (!is_path(name) && !(exists && strchr(name, '/')) && !card_find(name, a, path, err))
		return 0;
	if (!exists)
		return -1; /* card_find said what is wrong */
	*path = S_ISDIR(st.st_mode) ? folder_model(name, a) : name;
	return 0;
}

int model_load(
	const char *name_or_path, const char *quant, struct arena *a, struct model **out, struct err *err)
{
	const char *path;

	if (!name_or_path || !*name_or_path)
		return err_set(err, ERR_INPUT, "no model was named");
	if (find_file(name_or_path, a, &path, err) || load_file(path, quant, a, out, err))
		return -1;
	(*out)->name = arena_strdup(a, name_or_path);
	return 0;
}

bool model_tensor_is_matrix(const struct model_tensor *t)
{
	static const char *const not_one[] = {"norm.weight", "conv1d", "shortconv.conv.", "position_embd",
		"attn_rel_b", "_ape.weight", "tid2eid", "altup_correct_coef", "altup_predict_coef"};

	if ((t->shape[1] <= 1 && t->shape[2] <= 1) || !ends_with(t->name, ".weight"))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(not_one); i++) {
		if (strstr(t->name, not_one[i]))
			return false;
	}
	return true;
}

static const struct model_layer *layer_at(const struct model *m, int layer)
{
	if (layer < 0 || (uint32_t)layer >= m->n_layer)
		BUG("model has no layer %d", layer);
	return &m->layers[layer];
}

double model_matmul_flops(const struct model *m, int layer, enum model_group g, double tokens)
{
	const struct model_layer *l;
	double params;

	if (g == MODEL_EMBED)
		return 0;
	if (layer == MODEL_NO_LAYER)
		return g == MODEL_OUTPUT ? 2.0 * (double)m->output.params * tokens : 0;
	l = layer_at(m, layer);
	params = (double)l->group[g].params;
	if (g == MODEL_EXPERTS && l->n_expert)
		params /= l->n_expert;
	return 2.0 * params * tokens;
}

double model_attention_flops(const struct model_layer *l, double tokens, double context)
{
	return 2.0 * tokens * context * l->n_head * ((double)l->head_dim_k + l->head_dim_v);
}

/* One token at a context: the window, entries behind it that are compressed, the most that a sparse attention
   looks at, and what its indexer compares. */
static double layer_attention_flops(const struct model_layer *l, double context)
{
	double seen = l->window && context > l->window ? l->window : context;
	double extra = l->compress ? floor(context / l->compress) : 0;
	double scored = l->compress ? extra : context;

	if (l->compress && l->attended && extra > l->attended)
		extra = l->attended;
	else if (!l->compress && l->attended && seen > l->attended)
		seen = l->attended;
	return model_attention_flops(l, 1, seen + extra) + 2.0 * scored * l->index_heads * l->index_dim;
}

double model_flops_per_token(const struct model *m, double context)
{
	double sum = model_matmul_flops(m, MODEL_NO_LAYER, MODEL_OUTPUT, 1);

	for (uint32_t i = 0; i < m->n_layer; i++) {
		const struct model_layer *l = &m->layers[i];

		if (l->prefill_only || l->draft)
			continue;
		for (int g = 0; g < MODEL_GROUP_N; g++) {
			double times = g == MODEL_EXPERTS ? l->n_expert_used : 1;

			sum += times * model_matmul_flops(m, (int)i, (enum model_group)g, 1);
		}
		sum += layer_attention_flops(l, context) + l->state_flops;
	}
	return sum;
}

uint64_t model_expert_bytes(const struct model_layer *l)
{
	return l->n_expert ? l->group[MODEL_EXPERTS].bytes / l->n_expert : 0;
}

/* Elements that a token's row has in a mixer without heads: what its projections of the hidden state give. */
static uint64_t mixer_elements(const struct model *m, const struct model_layer *l)
{
	uint64_t sum = 0;

	for (int i = 0; i < l->n_tensors; i++) {
		const struct model_tensor *t = &m->tensors[l->first_tensor + i];

		if (t->group == MODEL_ATTN && t->shape[0] == m->hidden && t->shape[2] == 1)
			sum += t->shape[1];
	}
	return sum;
}

/* Elements that a token's row has between the feed-forward's projections: gate and up, of every expert that
   is used. */
static uint64_t ffn_elements(const struct model *m, const struct model_layer *l)
{
	uint64_t sum = 0;

	for (int i = 0; i < l->n_tensors; i++) {
		const struct model_tensor *t = &m->tensors[l->first_tensor + i];

		if (!strstr(t->name, ".ffn_gate") && !strstr(t->name, ".ffn_up"))
			continue;
		if (t->group == MODEL_EXPERTS)
			sum += t->shape[1] * l->n_expert_used;
		else if ((t->group == MODEL_FFN || t->group == MODEL_SHARED) && t->shape[1] > 1)
			sum += t->shape[1];
	}
	return sum;
}

/*
 * elements a row = 2 * hidden (residual in and out) + the wider of
 *	attention: q + k + v + its output = n_head * (head_dim_k + head_dim_v) + kv elements
 *	a mixer without heads: what its projections of the hidden state give
 *	ffn: gate + up (MoE: of all experts used and the shared one)
 * of the widest layer. An upper bound of what an engine keeps at once when it reuses buffers; scores are not
 * kept (flash attention).
 */
uint64_t model_activation_bytes(
	const struct model *m, uint64_t tokens, uint64_t n_logits, unsigned elem_bytes)
{
	uint64_t widest = 0, row;

	for (uint32_t i = 0; i < m->n_layer; i++) {
		const struct model_layer *l = &m->layers[i];
		uint64_t ffn = ffn_elements(m, l);
		uint64_t attention = (uint64_t)l->n_head * ((uint64_t)l->head_dim_k + l->head_dim_v) +
				     l->kv_k_elements + l->kv_v_elements;

		if (!l->n_head)
			attention = mixer_elements(m, l);
		if (attention > widest)
			widest = attention;
		if (ffn > widest)
			widest = ffn;
	}
	row = sat_mul(sat_add(2 * (uint64_t)m->hidden, widest), elem_bytes);
	return sat_add(sat_mul(tokens, row), sat_mul(sat_mul(n_logits, m->vocab), sizeof(float)));
}

/* Text that grows in an arena. */
struct text {
	struct arena *arena;
	VEC(char);
};

static void put(struct text *t, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void put(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	VEC_RESERVE(t, t->arena, t->n + (size_t)n + 1);
	va_start(ap, fmt);
	vsnprintf(t->at + t->n, (size_t)n + 1, fmt, ap);
	va_end(ap);
	t->n += (size_t)n;
}

/* "attn_q.weight" of "blk.17.attn_q.weight" or "enc.blk.17.attn_q.weight", so that equal layers have equal
 * text. */
static const char *short_name(const struct model_tensor *t)
{
	const char *block = t->layer == MODEL_NO_LAYER ? NULL : strstr(t->name, "blk."), *dot = NULL;

	if (block && (block == t->name || block == t->name + 4))
		dot = strchr(block + 4, '.');
	return dot ? dot + 1 : t->name;
}

static void put_tensor(struct text *to, const struct model_tensor *t)
{
	put(to, " %s:%s:%" PRIu64 "x%" PRIu64 "x%" PRIu64 ":%s%s", short_name(t), model_group_name(t->group),
		t->shape[0], t->shape[1], t->shape[2], t->type->name, t->shared_storage ? ":tied" : "");
}

static void put_layer(struct text *to, const struct model *m, const struct model_layer *l)
{
	put(to, "heads %u/%u dims %u/%u window %u kv %" PRIu64 "/%" PRIu64 " state %" PRIu64 " experts %u/%u",
		l->n_head, l->n_kv_head, l->head_dim_k, l->head_dim_v, l->window, l->kv_k_elements,
		l->kv_v_elements, l->state_bytes, l->n_expert_used, l->n_expert);
	/* only what is there, so that the text of a plain model stays as it is */
	if (l->mla_dim_k)
		put(to, " mla %u/%u", l->mla_dim_k, l->mla_dim_v);
	if (l->attended || l->index_heads || l->compress)
		put(to, " sparse %u of %ux%u every %u", l->attended, l->index_heads, l->index_dim,
			l->compress);
	if (l->kv_extra_elements)
		put(to, " extra %" PRIu64 "/%u", l->kv_extra_elements, l->kv_extra_every);
	if (l->state_flops > 0)
		put(to, " step %.0f", l->state_flops);
	if (l->prefill_only || l->draft)
		put(to, "%s", l->draft ? " draft" : " encoder");
	for (int i = 0; i < l->n_tensors; i++)
		put_tensor(to, &m->tensors[l->first_tensor + i]);
}

static bool same_tensor(const struct model_tensor *a, const struct model_tensor *b)
{
	return a->group == b->group && a->type == b->type && a->shared_storage == b->shared_storage &&
	       !memcmp(a->shape, b->shape, sizeof(a->shape)) && !strcmp(short_name(a), short_name(b));
}

/* Would put_layer write the same? */
static bool same_layer(const struct model *m, const struct model_layer *a, const struct model_layer *b)
{
	if (a->n_tensors != b->n_tensors || a->n_head != b->n_head || a->n_kv_head != b->n_kv_head ||
		a->head_dim_k != b->head_dim_k || a->head_dim_v != b->head_dim_v || a->window != b->window ||
		a->kv_k_elements != b->kv_k_elements || a->kv_v_elements != b->kv_v_elements ||
		a->state_bytes != b->state_bytes || a->n_expert != b->n_expert ||
		a->n_expert_used != b->n_expert_used || a->mla_dim_k != b->mla_dim_k ||
		a->mla_dim_v != b->mla_dim_v || a->attended != b->attended ||
		a->index_heads != b->index_heads || a->index_dim != b->index_dim ||
		a->compress != b->compress || a->kv_extra_elements != b->kv_extra_elements ||
		a->kv_extra_every != b->kv_extra_every || a->state_flops < b->state_flops ||
		a->state_flops > b->state_flops || a->prefill_only != b->prefill_only || a->draft != b->draft)
		return false;
	for (int i = 0; i < a->n_tensors; i++) {
		if (!same_tensor(&m->tensors[a->first_tensor + i], &m->tensors[b->first_tensor + i]))
			return false;
	}
	return true;
}

/*
 *	layers 80 hidden 8192 vocab 128256 context 131072
 *	model: token_embd.weight:embed:8192x128256x1:q4_0 …
 *	80 of: heads 64/8 dims 128/128 … attn_norm.weight:attn:8192x1x1:f32 …
 */
char *model_canonical(const struct model *m, struct arena *a)
{
	struct text to = {.arena = a};
	uint32_t run;

	put(&to, "layers %u hidden %u vocab %u context %" PRIu64 "\nmodel:", m->n_layer, m->hidden, m->vocab,
		m->context_max);
	for (int i = 0; i < m->n_tensors; i++) {
		if (m->tensors[i].layer == MODEL_NO_LAYER)
			put_tensor(&to, &m->tensors[i]);
	}
	for (uint32_t i = 0; i < m->n_layer; i += run) {
		for (run = 1; i + run < m->n_layer; run++) {
			if (!same_layer(m, &m->layers[i], &m->layers[i + run]))
				break;
		}
		put(&to, "\n%u of: ", run);
		put_layer(&to, m, &m->layers[i]);
	}
	put(&to, "\n");
	return to.at;
}
