#include "sim/engine/bring.h"

#include "sim/engine/divide.h"

static bool in_group(const struct bring *b, uint32_t layer)
{
	return b->group_size && layer % b->group_size >= b->group_size - b->num_in_group;
}

/* Such a layer's number among them, and back. */
static uint32_t number_of(const struct bring *b, uint32_t layer)
{
	uint64_t groups = layer / b->group_size, rest = layer % b->group_size;

	return (uint32_t)(groups * b->num_in_group + rest - (b->group_size - b->num_in_group));
}

static uint32_t layer_of(const struct bring *b, uint32_t number)
{
	uint64_t groups = number / b->num_in_group, rest = number % b->num_in_group;

	return (uint32_t)(groups * b->group_size + b->group_size - b->num_in_group + rest);
}

int bring_check(const struct bring *b, struct err *err)
{
	if (b->group_size && b->num_in_group > b->group_size)
		return err_set(err, ERR_INPUT, "flag 'offload-num-in-group': %llu of a group of %llu",
			(unsigned long long)b->num_in_group, (unsigned long long)b->group_size);
	return 0;
}

void bring_place_groups(const struct bring *b, struct placement *p, int memory)
{
	for (uint32_t i = 0; i < p->model->n_layer; i++)
		if (in_group(b, i) && !p->model->layers[i].draft)
			place_layer(p, (int)i, divide_away(p, memory, PLACE_STREAMED), p->kv[i]);
}

void bring_place_parameters(struct placement *p, int memory, enum place_mode mode, unsigned groups, double bytes)
{
	double used = 0;

	for (int t = 0; t < p->model->n_tensors && used < bytes; t++) {
		const struct model_tensor *tensor = &p->model->tensors[t];
		if (tensor->layer < 0 || !(groups >> tensor->group & 1) || p->tensor[t].memory == PLACE_LEFT_OUT)
			continue;
		p->tensor[t] = divide_away(p, memory, mode);
		used += (double)tensor->bytes / p->rows.n;
	}
}

void bring_book(const struct bring *b, struct placement *p)
{
	double largest = 0;

	for (uint32_t k = 0; k < p->model->n_layer; k++) {
		double bytes = divide_streamed_bytes(p, (int)k, 0);
		largest = bytes > largest ? bytes : largest;
	}
	if (largest > 0)
		divide_book(p, LEDGER_OVERHEAD, b->group_size ? "slots of layers brought ahead" : "layer copied before it runs",
			(b->group_size ? b->prefetch_step : 1) * (uint64_t)largest);
}

static void copy_now(struct bring *b, int layer)
{
	struct ranks *r = b->ranks;

	for (int i = 0; i < r->n; i++) {
		double bytes = divide_streamed_bytes(b->placement, layer, i);
		if (bytes > 0)
			r->last[i] = exec_copy(r->walk.x, hw_first_memory(b->placement->machine, HW_MEMORY_RAM),
				b->placement->rows.spot[i].memory, bytes, true, r->last[i], 0);
	}
}

static void layer_begin(void *engine, int layer)
{
	struct bring *b = engine;

	if (!b->group_size)
		copy_now(b, layer);
	else if (in_group(b, (uint32_t)layer))
		for (int i = 0; i < b->ranks->n; i++)
			b->ranks->arrived[i] = b->copied[number_of(b, (uint32_t)layer)][i];
}

static void layer_end(void *engine, int layer)
{
	struct bring *b = engine;
	struct exec *x = b->ranks->walk.x;

	if (!in_group(b, (uint32_t)layer))
		return;
	uint32_t next = (uint32_t)((number_of(b, (uint32_t)layer) + b->prefetch_step) % b->n);
	int brought = (int)layer_of(b, next);
	exec_label(x, brought, MODEL_ATTN);
	for (int i = 0; i < b->ranks->n; i++)
		b->copied[next][i] = exec_copy(x, hw_first_memory(b->placement->machine, HW_MEMORY_RAM),
			b->placement->rows.spot[i].memory, divide_streamed_bytes(b->placement, brought, i), true,
			b->ranks->last[i], 0);
}

void bring_init(struct bring *b, struct ranks *r, const struct placement *p, struct arena *a)
{
	static const struct ranks_ops ops = {layer_begin, layer_end, NULL};

	b->ranks = r;
	b->placement = p;
	b->n = 0;
	for (uint32_t i = 0; i < p->model->n_layer; i++)
		b->n += in_group(b, i) && !p->model->layers[i].draft;
	/* The first ones are there before the first step. */
	b->copied = arena_alloc_array(a, b->n, sizeof(*b->copied));
	r->ops = &ops;
	r->engine = b;
}
