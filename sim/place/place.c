#include "sim/place/place.h"

#include "models/kvcache.h"

#define UNPLACED ((struct place_spot){-1, -1, PLACE_RESIDENT})

void place_init(struct placement *p, const struct model *m, const struct hw_machine *hw, struct arena *a)
{
	*p = (struct placement){
		.model = m,
		.machine = hw,
		.tensor = arena_array(a, struct place_spot, (size_t)m->n_tensors),
		.kv = arena_array(a, struct place_spot, m->n_layer),
		.group = arena_alloc_array(a, (size_t)m->n_layer + 1, sizeof(*p->group)),
		.remote_share = arena_array(a, double, (size_t)hw->n_memories),
		.advice = "",
	};
	for (int t = 0; t < m->n_tensors; t++)
		p->tensor[t] = UNPLACED;
	for (uint32_t i = 0; i < m->n_layer; i++)
		p->kv[i] = UNPLACED;
	ledger_init(&p->ledger);
	for (int i = 0; i < hw->n_memories; i++) {
		p->remote_share[i] = hw->memories[i].kind == HW_MEMORY_GPU ? hw->remote_share : 0;
		ledger_add_memory(&p->ledger, hw->memories[i].name, hw->memories[i].capacity_bytes);
		ledger_book(&p->ledger, i, LEDGER_OVERHEAD,
			hw->memories[i].kind == HW_MEMORY_GPU ? "driver and context" : "operating system",
			hw->memories[i].reserved_bytes);
	}
}

/* The tensors of a layer are neighbours; those of no layer can be anywhere. */
static void tensor_range(const struct model *m, int layer, int *first, int *end)
{
	if (layer == MODEL_NO_LAYER) {
		*first = 0;
		*end = m->n_tensors;
	} else {
		*first = m->layers[layer].first_tensor;
		*end = *first + m->layers[layer].n_tensors;
	}
}

void place_layer_group(struct placement *p, int layer, enum model_group g, struct place_spot spot)
{
	int first, end;

	tensor_range(p->model, layer, &first, &end);
	for (int t = first; t < end; t++)
		if (p->model->tensors[t].layer == layer && p->model->tensors[t].group == g)
			p->tensor[t] = spot;
}

void place_layer(struct placement *p, int layer, struct place_spot weights, struct place_spot kv)
{
	const struct model_layer *l = &p->model->layers[layer];

	for (int t = l->first_tensor; t < l->first_tensor + l->n_tensors; t++)
		p->tensor[t] = weights;
	p->kv[layer] = kv;
}

/* So much of a tensor. */
static void add_to_part(struct place_group *g, const struct place_spot *spot, const struct model_tensor *t,
	uint64_t params, uint64_t bytes)
{
	struct place_part *part = g->part;

	while (part < g->part + g->n &&
		(part->spot.memory != spot->memory || part->spot.device != spot->device ||
			part->spot.mode != spot->mode))
		part++;
	if (part == g->part + g->n) {
		if (g->n == PLACE_MAX_PARTS)
			BUG("a tensor group is spread over more than %d places", PLACE_MAX_PARTS);
		g->n++;
		*part = (struct place_part){.spot = *spot, .type = t->type};
	}
	/* The type of the bulk decides how a kernel computes: norms and biases do not count. */
	if (bytes > part->bytes)
		part->type = t->type;
	part->n_tensors++;
	part->n_matrices += t->shape[1] > 1;
	part->params += params;
	part->bytes += bytes;
}

uint64_t place_rows_share(const struct place_rows *rows, int i, uint64_t n)
{
	uint64_t below = i ? (uint64_t)(rows->upto[i - 1] * (double)n) : 0;

	return (i + 1 < rows->n ? (uint64_t)(rows->upto[i] * (double)n) : n) - below;
}

double place_heads_share(const struct model_layer *l, int n)
{
	uint32_t heads = l->mla_dim_k ? 1 : l->n_kv_head;

	return heads > 0 && heads < (uint32_t)n ? 1.0 / heads : 1.0 / n;
}

static bool lies_elsewhere(const struct place_rows *rows, int memory)
{
	for (int i = 0; i < rows->n; i++)
		if (rows->spot[i].memory == memory)
			return false;
	return true;
}

static void add_rows(struct placement *p, struct place_group *g, const struct model_tensor *t, int memory)
{
	bool elsewhere = lies_elsewhere(&p->rows, memory);

	for (int i = 0; i < p->rows.n; i++) {
		struct place_spot spot = p->rows.spot[i];
		uint64_t bytes = place_rows_share(&p->rows, i, t->bytes);
		if (elsewhere) {
			spot.memory = (int16_t)memory;
			spot.mode = p->rows.away;
		}
		if (!t->shared_storage)
			ledger_book(&p->ledger, spot.memory, LEDGER_WEIGHTS, NULL, bytes);
		if (bytes)
			add_to_part(g, &spot, t, place_rows_share(&p->rows, i, t->params), bytes);
	}
}

static void book_kv(struct placement *p, uint32_t layer)
{
	static const char what[] = "KV cache and state";
	const struct model_layer *l = &p->model->layers[layer];
	uint64_t bytes = p->kv_sequences * kvcache_layer_bytes(l, p->kv_context, &p->kv_types);

	if (p->kv[layer].mode != PLACE_ROWS) {
		ledger_book(&p->ledger, p->kv[layer].memory, LEDGER_KV, what, bytes);
		return;
	}
	for (int i = 0; i < p->rows.n; i++)
		ledger_book(&p->ledger, p->rows.spot[i].memory, LEDGER_KV, what,
			(uint64_t)(place_heads_share(l, p->rows.n) * (double)bytes));
}

void place_finish(struct placement *p)
{
	const struct model *m = p->model;

	for (int i = 0; i < m->n_tensors; i++) {
		const struct model_tensor *t = &m->tensors[i];
		const struct place_spot *spot = &p->tensor[i];

		if (spot->memory == PLACE_LEFT_OUT)
			continue;
		if (spot->memory < 0 || spot->device < 0)
			BUG("tensor '%s' was not placed", t->name);
		struct place_group *g = &p->group[t->layer == MODEL_NO_LAYER ? (int)m->n_layer : t->layer][t->group];
		if (spot->mode == PLACE_ROWS) {
			add_rows(p, g, t, spot->memory);
			continue;
		}
		if (!t->shared_storage)
			ledger_book(&p->ledger, spot->memory, LEDGER_WEIGHTS, NULL, t->bytes);
		add_to_part(g, spot, t, t->params, t->bytes);
	}
	for (uint32_t i = 0; i < m->n_layer; i++) {
		if (p->kv[i].memory < 0)
			BUG("the KV cache of layer %u was not placed", i);
		book_kv(p, i);
	}
}

const char *place_mode_name(enum place_mode mode)
{
	static const char *const names[PLACE_MODE_N] = {"resident", "streamed", "zero-copy", "cached", "rows"};

	return names[mode];
}

uint64_t place_layer_bytes(const struct model *m, int layer)
{
	uint64_t sum = 0;
	int first, end;

	tensor_range(m, layer, &first, &end);
	for (int t = first; t < end; t++)
		if (m->tensors[t].layer == layer && !m->tensors[t].shared_storage)
			sum += m->tensors[t].bytes;
	return sum;
}
