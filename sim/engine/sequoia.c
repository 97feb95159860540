/*
 * sequoia.c - the offloading engine of Sequoia (8f20b0a, Engine/offload_engine.py), without speculation.
 *
 *	[copy 0] sync [layer 0][copy 1] sync [layer 1][copy 2] sync ...
 *
 * Layers live in pinned host memory and are copied, whole, into one of two buffers. The copy of the next layer is queued on
 * the same stream as this layer's kernels, so nothing overlaps, and the host waits for the GPU after each. Kernels are
 * launched from Python. Embedding, output and the cache, which is allocated once, are on the GPU; so are as many layers as
 * --resident-layers says (not in that commit, but in what was measured). What kernels reach is in hw/kernels/pytorch.yaml.
 */
#include <string.h>

#include "models/kvcache.h"
#include "sim/engine/bring.h"
#include "sim/engine/divide.h"
#include "sim/engine/transformers.h"

#define HIDDEN_ELEMENT_BYTES 2

/* Operations of attention over the cache (offload_engine.py, layer_compute); the others are as many as transformers has. */
#define CACHE_OPERATIONS 6
#define BUFFERS 2

struct sequoia_flags {
	const char *resident;
};

static const struct param sequoia_flag[] = {
	PARAM_TEXT(struct sequoia_flags, resident, "resident-layers", "auto", "layers that stay on the GPU; auto: as many as fit"),
};

static const struct engine_ignored sequoia_ignored[] = {{"offloading", false}};

static int fill(const struct engine_job *job, uint32_t resident, struct placement *p, struct arena *a, struct err *err)
{
	const struct trace_workload *w = &job->trace->workload;
	int ram = hw_first_memory(job->machine, HW_MEMORY_RAM);
	uint64_t rows = w->batch * (w->prompt ? w->prompt : 1), largest = 0;

	if (divide_init(p, job, 1, "", a, err))
		return -1;
	p->kv_types = *KVCACHE_SAME(quant_find("f16"));
	p->kv_sequences = w->batch;
	p->kv_context = trace_max_context(job->trace);
	divide_resident(p);
	for (uint32_t i = resident; i < job->model->n_layer; i++) {
		if (job->model->layers[i].draft)
			continue;
		place_layer(p, (int)i, divide_away(p, ram, PLACE_STREAMED), p->kv[i]);
		uint64_t bytes = place_layer_bytes(job->model, (int)i);
		largest = bytes > largest ? bytes : largest;
	}
	place_finish(p);
	divide_book(p, LEDGER_OVERHEAD, "layer buffers", BUFFERS * largest);
	divide_book(p, LEDGER_ACTIVATION, "activations",
		model_activation_bytes(job->model, rows, w->batch, HIDDEN_ELEMENT_BYTES));
	return 0;
}

static bool fits_with(const struct engine_job *job, uint32_t resident, struct arena *a)
{
	struct arena_mark mark = arena_mark(a);
	struct placement p;
	struct err err;
	bool fits = fill(job, resident, &p, a, &err) == 0 && divide_fits(&p);

	arena_rewind(a, mark);
	return fits;
}

/* The most layers with which all fits on the GPU. All of them need no buffers, so that case stands apart. */
static uint32_t most_resident(const struct engine_job *job, struct arena *a)
{
	uint32_t fits = 0, too_many = job->model->n_layer;

	if (fits_with(job, too_many, a))
		return too_many;
	while (too_many - fits > 1) {
		uint32_t middle = fits + (too_many - fits) / 2;
		if (fits_with(job, middle, a))
			fits = middle;
		else
			too_many = middle;
	}
	return fits;
}

static int sequoia_place(const struct engine_job *job, struct placement *p, struct arena *a, struct err *err)
{
	const struct sequoia_flags *f = job->flags;
	uint32_t most = most_resident(job, a), resident = most, all = job->model->n_layer;
	double n;

	if (strcmp(f->resident, "auto") != 0) {
		if (units_parse(f->resident, UNIT_COUNT, &n, err) || n < 0)
			return err_set(err, ERR_INPUT, "flag 'resident-layers' must be a whole number or auto, not '%s'", f->resident);
		resident = n < all ? (uint32_t)n : all;
	}
	if (fill(job, resident, p, a, err))
		return -1;
	if (!divide_fits(p) && !fits_with(job, most, a))
		p->advice = "a shorter context, a smaller batch or a smaller type is needed";
	else if (resident != most)
		p->advice = arena_printf(a, "%s: --resident-layers %u", divide_fits(p) ? "more layers would fit" : "this would fit",
			most);
	else
		p->advice = arena_printf(a, "%u of %u layers are on the GPU, as many as fit", most, all);
	return 0;
}

struct sequoia {
	const struct cost *cost;
	struct ranks ranks;
	struct bring bring;
	struct ranks_ops ops;          /* bring's, and a wait before each layer */
	void (*bring_begin)(void *engine, int layer);
};

/* The host has waited for what came before, then submits. */
static void layer_begin(void *engine, int layer)
{
	struct sequoia *s = engine;
	struct ranks *r = &s->ranks;

	s->bring_begin(&s->bring, layer);
	r->host = r->last[0] = exec_wait(r->walk.x, hw_num_value(&s->cost->gpu_sync_s), r->last[0]);
}

static void *sequoia_state_new(const struct engine_job *job, const struct placement *p, struct arena *a)
{
	struct sequoia *s = arena_new(a, struct sequoia);

	s->cost = job->cost;
	transformers_ranks_init(&s->ranks, job->cost, p);
	s->ranks.attention_nodes = CACHE_OPERATIONS;
	s->ranks.cache_passes = 1; /* allocated once */
	bring_init(&s->bring, &s->ranks, p, a);
	s->bring_begin = s->ranks.ops->layer_begin;
	s->ops = (struct ranks_ops){.layer_begin = layer_begin};
	s->ranks.ops = &s->ops;
	s->ranks.engine = s;
	return s;
}

static int sequoia_lower(struct exec *x, void *state, const struct trace_step *step, op_ref *last, struct err *err)
{
	struct sequoia *s = state;

	(void)err;
	*last = transformers_step(&s->ranks, x, step);
	return 0;
}

const struct engine_ops engine_sequoia = {
	.name = "sequoia",
	.version = "1",
	.help = "Sequoia's offloading engine: layers from pinned memory, one after another, nothing overlaps",
	.flag = sequoia_flag,
	.n_flags = ARRAY_LEN(sequoia_flag),
	.flags_size = sizeof(struct sequoia_flags),
	.ignored = sequoia_ignored,
	.n_ignored = ARRAY_LEN(sequoia_ignored),
	.kernels = "pytorch",
	.overheads = true,
	.place = sequoia_place,
	.state_new = sequoia_state_new,
	.lower = sequoia_lower,
};
