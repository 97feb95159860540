/*
 * build.c - collects tensors and sums them up.
 */
#include "models/build.h"

#include <string.h>

#include "models/sat.h"

void build_init(struct build *b, struct arena *a, uint32_t n_layer)
{
	memset(b, 0, sizeof(*b));
	b->arena = a;
	b->m = arena_new(a, struct model);
	b->m->note = "";
	b->m->n_layer = n_layer;
	b->m->layers = arena_array(a, struct model_layer, n_layer);
	b->layer = MODEL_NO_LAYER;
	b->prefix = "";
	VEC_RESERVE(b, a, (size_t)n_layer * 12 + 8);
}

struct model_layer *build_layer(struct build *b, int layer)
{
	if (layer != MODEL_NO_LAYER && (layer < 0 || (uint32_t)layer >= b->m->n_layer))
		BUG("model has no layer %d", layer);
	b->layer = layer;
	return layer == MODEL_NO_LAYER ? NULL : &b->m->layers[layer];
}

/* "blk.17.attn_q.weight"; by hand, as a model has a thousand of them and is loaded by every run. */
static const char *tensor_name(struct build *b, const char *name)
{
	char digits[12], *out, *p;
	size_t len = strlen(name), np = strlen(b->prefix);
	int n = 0;
	uint32_t v;

	if (b->layer == MODEL_NO_LAYER)
		return arena_strdup(b->arena, name);
	v = (uint32_t)(b->layer - b->first);
	do {
		digits[n++] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	out = p = arena_alloc(b->arena, np + 4 + (size_t)n + 1 + len + 1);
	memcpy(p, b->prefix, np);
	memcpy(p + np, "blk.", 4);
	p += np + 4;
	while (n)
		*p++ = digits[--n];
	*p++ = '.';
	memcpy(p, name, len + 1);
	return out;
}

struct model_tensor *build_add(
	struct build *b, enum model_group g, const char *name, uint64_t row, uint64_t rows, uint64_t experts)
{
	struct model_tensor t = {
		.name = tensor_name(b, name),
		.layer = b->layer,
		.group = g,
		.shape = {row, rows, experts},
	};

	t.params = sat_mul(sat_mul(row, rows), experts);
	VEC_PUSH(b, b->arena, t);
	return &b->at[b->n - 1];
}

static void sum_add(struct model_group_sum *s, const struct model_tensor *t)
{
	s->params += t->params;
	s->bytes += t->bytes;
}

/* Where the sums of a tensor's group are kept. */
static struct model_group_sum *sum_of(struct model *m, const struct model_tensor *t)
{
	if (t->layer != MODEL_NO_LAYER)
		return &m->layers[t->layer].group[t->group];
	return t->group == MODEL_OUTPUT ? &m->output : &m->embed;
}

/* The neighbours that make up each layer; BUG when they are none. */
static void find_layers(struct model *m)
{
	int last = MODEL_NO_LAYER;

	for (int i = 0; i < m->n_tensors; i++) {
		int layer = m->tensors[i].layer;

		if (layer == MODEL_NO_LAYER)
			continue;
		if (layer != last) {
			if (layer < last)
				BUG("tensors of layer %d come after those of layer %d", layer, last);
			m->layers[layer].first_tensor = i;
			last = layer;
		} else if (m->tensors[i - 1].layer != layer) {
			BUG("tensors of layer %d are no neighbours", layer);
		}
		m->layers[layer].n_tensors++;
	}
}

/* N-gram tables and embeddings a layer: active counts leave them out, unlike the embedding itself. */
static bool is_table(const struct model_tensor *t)
{
	return t->group == MODEL_EMBED &&
	       (t->layer != MODEL_NO_LAYER || !strncmp(t->name, "per_layer_token", 15));
}

int build_finish(struct build *b, struct model **out, struct err *err)
{
	struct model *m = b->m;
	uint64_t idle = 0; /* parameters a token does not use: other experts, MTP heads, tables */

	if (b->n > BUILD_MAX_TENSORS)
		return err_set(err, ERR_INPUT, "%zu tensors are more than %d", b->n, BUILD_MAX_TENSORS);
	m->tensors = b->at;
	m->n_tensors = (int)b->n;
	m->params_total = 0;
	for (size_t i = 0; i < b->n; i++) {
		m->params_total = sat_add(m->params_total, b->at[i].params);
		if (m->params_total > BUILD_MAX_PARAMS)
			return err_set(err, ERR_INPUT, "more than 2^50 parameters");
	}
	m->params_total = 0;
	for (size_t i = 0; i < b->n; i++) {
		struct model_tensor *t = &b->at[i];

		if (!t->type)
			BUG("tensor '%s' has no type", t->name);
		t->bytes = quant_stack_bytes(t->type, t->shape[0], t->shape[1], t->shape[2]);
		sum_add(sum_of(m, t), t);
		if (t->shared_storage)
			continue;
		if (is_table(t))
			idle += t->params;
		m->params_total += t->params;
		m->weights_bytes += t->bytes;
	}
	find_layers(m);
	for (uint32_t i = 0; i < m->n_layer; i++) {
		const struct model_layer *l = &m->layers[i];

		if (l->draft) {
			for (int g = 0; g < MODEL_GROUP_N; g++)
				idle += l->group[g].params;
		} else if (l->n_expert)
			idle += l->group[MODEL_EXPERTS].params / l->n_expert *
				(l->n_expert - l->n_expert_used);
	}
	m->params_active = m->params_total - idle;
	*out = m;
	return 0;
}
