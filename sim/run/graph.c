#include "sim/run/graph.h"

#include <math.h>

/* What landed is what an operation reads if it is this share of it: new entries of a cache were made where they are. */
#define LANDED_SHARE 0.5
/* A staging buffer may grow to hold a little more than before: a cache grows by an entry a step. */
#define GROW 0.125
/* Reads that do not begin at the beginning begin at a multiple of this: a page, as drives want it. */
#define ALIGN_BYTES 4096

/* A buffer under construction. */
struct made {
	uint64_t cursor;   /* where the next read of a part begins; caches: where the next entries go */
	bool staging;
	struct { VEC(uint32_t); } users; /* staging: the copy into it and those that read what it brought */
};

struct ids {
	VEC(uint32_t);
};

struct recorder {
	const struct placement *p;
	const struct platform *platform;
	struct opg *g;
	struct arena *arena;
	bool kernels;                        /* the engine's kernels are modelled: they expand weights */
	int n_memories;
	struct { VEC(struct ids); } by_slot; /* the core's slots: number by generation - 1 */
	struct { VEC(struct made); } made;   /* by buffer */
	int *home;                           /* by (layer, group or cache, memory): buffer, OPG_NONE */
	int *landed;                         /* the same: staging buffer of the last copy */
	int *hidden;                         /* by memory */
	uint32_t *stream_last;               /* by stream: number + 1 */
	struct { VEC(uint32_t); } stream_prev; /* by operation: the one before it in its stream, number + 1 */
	struct { VEC(uint32_t); } seen;      /* by operation: last search that came by */
	struct { VEC(uint32_t); } stack;
	uint32_t n_searches;
};

/* ---- numbers of operations ---- */

static void remember(struct recorder *r, op_ref ref)
{
	size_t slot = (uint32_t)ref;

	while (r->by_slot.n <= slot)
		VEC_PUSH(&r->by_slot, r->arena, (struct ids){0});
	/* Every operation is reported, so generations come one by one. */
	VEC_PUSH(&r->by_slot.at[slot], r->arena, (uint32_t)r->g->ops.n);
}

static uint32_t number_of(const struct recorder *r, op_ref ref)
{
	return r->by_slot.at[(uint32_t)ref].at[(ref >> 32) - 1];
}

/* ---- what must have ended before ---- */

static void visit(struct recorder *r, uint32_t id, uint32_t least)
{
	if (id < least || r->seen.at[id] == r->n_searches)
		return;
	r->seen.at[id] = r->n_searches;
	VEC_PUSH(&r->stack, r->arena, id);
}

/* Marks all from `least` on that end before o, which is about to be added, begins. */
static void search(struct recorder *r, const struct opg_op *o, uint32_t least)
{
	const struct opg *g = r->g;

	r->n_searches++;
	for (uint32_t i = 0; i < o->n_after; i++)
		visit(r, o->after[i], least);
	if (o->stream != OPG_NONE && r->stream_last[o->stream])
		visit(r, r->stream_last[o->stream] - 1, least);
	if ((uint64_t)o->step >= g->steps.ahead)
		visit(r, g->step_end.at[(size_t)o->step - g->steps.ahead], least);
	while (r->stack.n) {
		uint32_t id = r->stack.at[--r->stack.n];
		const struct opg_op *before = &g->ops.at[id];
		for (uint32_t i = 0; i < before->n_after; i++)
			visit(r, before->after[i], least);
		if (r->stream_prev.at[id])
			visit(r, r->stream_prev.at[id] - 1, least);
		if ((uint64_t)before->step >= g->steps.ahead)
			visit(r, g->step_end.at[(size_t)before->step - g->steps.ahead], least);
	}
}

static bool all_ended(const struct recorder *r, const struct made *m)
{
	for (size_t i = 0; i < m->users.n; i++)
		if (r->seen.at[m->users.at[i]] != r->n_searches)
			return false;
	return true;
}

/* ---- buffers ---- */

static const char *group_name(uint32_t tag)
{
	return model_group_name(exec_tag_group(tag));
}

static uint64_t whole(double bytes)
{
	return bytes < 1 ? 1 : (uint64_t)llround(bytes);
}

static int make(struct recorder *r, int memory, uint64_t bytes, enum opg_role role, uint32_t tag, const char *type)
{
	bool of_layer = role == OPG_WEIGHTS || role == OPG_CACHE;
	struct opg_buffer b = {
		.memory = memory,
		.bytes = bytes,
		.role = role,
		.layer = of_layer ? exec_tag_layer(tag) : OPG_NONE,
		.group = role == OPG_WEIGHTS ? group_name(tag) : "-",
		.type = type,
	};

	VEC_PUSH(&r->g->buffers, r->arena, b);
	VEC_PUSH(&r->made, r->arena, (struct made){.staging = role == OPG_STAGING});
	return (int)r->g->buffers.n - 1;
}

static void grow(struct recorder *r, int buffer, uint64_t bytes)
{
	struct opg_buffer *b = &r->g->buffers.at[buffer];

	if (b->bytes < bytes)
		b->bytes = bytes;
}

/* Weights of a group, or (as one group more) the cache, of a layer in a memory. */
static size_t place_index(const struct recorder *r, uint32_t tag, int memory)
{
	int layer = exec_tag_layer(tag), group = exec_tag_of(tag) == EXEC_CACHE ? MODEL_GROUP_N : (int)exec_tag_group(tag);

	if (layer == MODEL_NO_LAYER)
		layer = (int)r->p->model->n_layer;
	return ((size_t)layer * (MODEL_GROUP_N + 1) + (size_t)group) * (size_t)r->n_memories + (size_t)memory;
}

/* The placement's own bytes of it in that memory; 0: it has no home there. */
static uint64_t placed_bytes(const struct recorder *r, uint32_t tag, int memory, const char **type)
{
	const struct placement *p = r->p;
	int layer = exec_tag_layer(tag) == MODEL_NO_LAYER ? (int)p->model->n_layer : exec_tag_layer(tag);
	uint64_t bytes = 0;

	*type = p->kv_types.k ? p->kv_types.k->name : "-";
	if (exec_tag_of(tag) == EXEC_CACHE)
		return layer < (int)p->model->n_layer && p->kv[layer].memory == memory ? p->kv_sequences *
				kvcache_layer_bytes(&p->model->layers[layer], p->kv_context, &p->kv_types) :
						       0;
	const struct place_group *g = &p->group[layer][exec_tag_group(tag)];
	for (int i = 0; i < g->n; i++) {
		if (g->part[i].spot.memory != memory)
			continue;
		bytes += g->part[i].bytes;
		*type = g->part[i].type->name;
	}
	return bytes;
}

/* Where it lives in that memory; OPG_NONE when it does not. */
static int home(struct recorder *r, uint32_t tag, int memory, double bytes)
{
	int *buffer = exec_tag_of(tag) == EXEC_HIDDEN ? &r->hidden[memory] : &r->home[place_index(r, tag, memory)];
	const char *type;

	if (exec_tag_of(tag) == EXEC_HIDDEN) {
		if (*buffer == OPG_NONE)
			*buffer = make(r, memory, whole(bytes), OPG_HIDDEN, tag, "-");
		grow(r, *buffer, whole(bytes));
	} else if (*buffer == OPG_NONE) {
		uint64_t placed = placed_bytes(r, tag, memory, &type);
		if (placed)
			*buffer = make(r, memory, placed, exec_tag_of(tag) == EXEC_CACHE ? OPG_CACHE : OPG_WEIGHTS, tag, type);
	}
	return *buffer;
}

/* A cache of weights near the device that nothing but itself says the size of. */
static int kept(struct recorder *r, uint32_t tag, int memory, double bytes)
{
	int *buffer = &r->home[place_index(r, tag, memory)];

	if (*buffer == OPG_NONE)
		*buffer = make(r, memory, whole(bytes), exec_tag_of(tag) == EXEC_CACHE ? OPG_CACHE : OPG_WEIGHTS, tag, "-");
	grow(r, *buffer, whole(bytes));
	return *buffer;
}

/* Where an operation finds its bytes. */
static void find_source(struct recorder *r, struct opg_op *o, uint32_t tag, int memory)
{
	o->from = home(r, tag, memory, o->bytes);
	if (o->from == OPG_NONE) {
		int landed = r->landed[place_index(r, tag, memory)];
		if (landed != OPG_NONE && (double)r->g->buffers.at[landed].bytes >= LANDED_SHARE * o->bytes) {
			o->from = landed;
			VEC_PUSH(&r->made.at[landed].users, r->arena, (uint32_t)r->g->ops.n);
			return;
		}
		o->from = kept(r, tag, memory, o->bytes);
	}

	struct made *m = &r->made.at[o->from];
	uint64_t size = r->g->buffers.at[o->from].bytes, bytes = whole(o->bytes);
	if (exec_tag_of(tag) == EXEC_CACHE) {
		m->cursor = bytes % size; /* behind what is held come the new entries */
	} else if (exec_tag_of(tag) == EXEC_WEIGHTS && bytes < size) {
		o->at = m->cursor;
		m->cursor = (m->cursor + bytes) % size / ALIGN_BYTES * ALIGN_BYTES;
	}
}

/* The free staging buffer that fits best; OPG_NONE: there is none. */
static int find_free(struct recorder *r, const struct opg_op *o, int memory, uint64_t bytes)
{
	uint32_t least = (uint32_t)r->g->ops.n;
	int best = OPG_NONE;

	for (size_t i = 0; i < r->made.n; i++)
		if (r->made.at[i].staging && r->g->buffers.at[i].memory == memory)
			for (size_t k = 0; k < r->made.at[i].users.n; k++)
				if (r->made.at[i].users.at[k] < least)
					least = r->made.at[i].users.at[k];
	search(r, o, least);
	for (size_t i = 0; i < r->made.n; i++) {
		const struct opg_buffer *b = &r->g->buffers.at[i];
		if (!r->made.at[i].staging || b->memory != memory || (double)bytes > (1 + GROW) * (double)b->bytes ||
			!all_ended(r, &r->made.at[i]))
			continue;
		if (best == OPG_NONE || b->bytes < r->g->buffers.at[best].bytes)
			best = (int)i;
	}
	return best;
}

static void find_target(struct recorder *r, struct opg_op *o, uint32_t tag, int memory)
{
	uint64_t bytes = whole(o->bytes);
	int at_home = exec_tag_of(tag) == EXEC_CACHE ? home(r, tag, memory, o->bytes) : OPG_NONE;

	if (at_home != OPG_NONE) {
		o->to = at_home;
		o->into = r->made.at[at_home].cursor;
		return;
	}
	o->to = find_free(r, o, memory, bytes);
	if (o->to == OPG_NONE)
		o->to = make(r, memory, bytes, OPG_STAGING, tag, "-");
	grow(r, o->to, bytes);
	struct made *m = &r->made.at[o->to];
	m->users.n = 0;
	VEC_PUSH(&m->users, r->arena, (uint32_t)r->g->ops.n);
	if (exec_tag_of(tag) != EXEC_HIDDEN)
		r->landed[place_index(r, tag, memory)] = o->to;
}

/* ---- operations ---- */

static const enum opg_kind kinds[] = {
	[EXEC_STEP] = OPG_STEP, [EXEC_COPY] = OPG_COPY, [EXEC_KERNEL] = OPG_KERNEL, [EXEC_JOIN] = OPG_JOIN,
	[EXEC_WAIT] = OPG_WAIT};
static const enum opg_role roles[] = {
	[EXEC_WEIGHTS] = OPG_WEIGHTS, [EXEC_CACHE] = OPG_CACHE, [EXEC_HIDDEN] = OPG_HIDDEN};

static void fill_copy(struct recorder *r, struct opg_op *o, const struct exec_added *added)
{
	const struct hw_machine *m = r->p->machine;
	int link[HW_MAX_HOPS];
	bool forward[HW_MAX_HOPS];

	o->bytes = added->op->amount;
	o->pinned = added->pinned;
	if (hw_route(m, added->from, added->to, link, forward) > 1) {
		int stop = forward[0] ? m->links[link[0]].far : m->links[link[0]].near;
		o->via = stop == hw_switch(m) ? OPG_NONE : stop;
	}
	find_source(r, o, added->op->tag, added->from);
	find_target(r, o, added->op->tag, added->to);
}

static void fill_kernel(struct recorder *r, struct opg_op *o, const struct exec_added *added)
{
	const struct hw_device *d = &r->p->machine->devices[added->device];
	const struct platform_work *work = added->work;

	o->bytes = fmax(work->bytes, 0);
	o->flops = fmax(work->flops, 0);
	o->dtype = hw_dtype_name(work->dtype);
	o->device = added->device;
	o->threads = work->threads ? work->threads : d->cores;
	if (o->bytes > 0)
		find_source(r, o, added->op->tag, added->from);
	if (r->kernels && o->from != OPG_NONE && exec_tag_of(added->op->tag) == EXEC_WEIGHTS)
		o->type = r->g->buffers.at[o->from].type;
}

static void on_added(void *ctx, const struct exec_added *added)
{
	struct recorder *r = ctx;
	struct opg *g = r->g;
	const struct sim_op *op = added->op;
	enum exec_kind kind = added->step ? EXEC_STEP : exec_tag_kind(op->tag);
	struct opg_op o = {
		.kind = kinds[kind],
		.step = (int)g->step_end.n,
		.unit = op->unit,
		.stream = op->stream,
		.latency = op->latency,
		.amount = op->amount,
		.cap = op->cap,
		.charge = op->cap_resource,
		.from = OPG_NONE,
		.to = OPG_NONE,
		.via = OPG_NONE,
		.device = OPG_NONE,
		.layer = OPG_NONE,
		.dtype = "-",
		.type = "-",
		.group = "-",
	};

	uint32_t *after = arena_array(r->arena, uint32_t, ARRAY_LEN(added->after));
	for (size_t i = 0; i < ARRAY_LEN(added->after); i++)
		if (added->after[i])
			after[o.n_after++] = number_of(r, added->after[i]);
	o.after = after;
	if (op->n_hops) {
		struct maxmin_hop *hop = arena_array(r->arena, struct maxmin_hop, (size_t)op->n_hops);
		memcpy(hop, op->hop, (size_t)op->n_hops * sizeof(*hop));
		o.hop = hop;
		o.n_hops = op->n_hops;
	}
	if (kind == EXEC_STEP) {
		o.tokens = (double)added->step->n_tokens;
		VEC_PUSH(&g->step_end, r->arena, (uint32_t)g->ops.n);
	} else {
		o.layer = exec_tag_layer(op->tag);
		o.group = group_name(op->tag);
		o.of = roles[exec_tag_of(op->tag)];
	}
	VEC_PUSH(&r->seen, r->arena, 0);
	if (kind == EXEC_COPY)
		fill_copy(r, &o, added);
	else if (kind == EXEC_KERNEL)
		fill_kernel(r, &o, added);

	remember(r, added->ref);
	VEC_PUSH(&r->stream_prev, r->arena, o.stream == OPG_NONE ? 0 : r->stream_last[o.stream]);
	if (o.stream != OPG_NONE)
		r->stream_last[o.stream] = (uint32_t)g->ops.n + 1;
	VEC_PUSH(&g->ops, r->arena, o);
}

/* ---- the machine ---- */

static void add_machine(struct recorder *r)
{
	static const enum opg_memory_kind memory_kind[] = {
		[HW_MEMORY_GPU] = OPG_MEMORY_GPU, [HW_MEMORY_RAM] = OPG_MEMORY_RAM, [HW_MEMORY_DRIVE] = OPG_MEMORY_DRIVE};
	const struct platform *p = r->platform;
	const struct hw_machine *m = r->p->machine;
	struct opg *g = r->g;

	for (int i = 0; i < p->n_resources; i++)
		VEC_PUSH(&g->resources, r->arena, ((struct opg_resource){p->resource_name[i], p->capacity[i]}));
	for (int i = 0; i < m->n_memories; i++)
		VEC_PUSH(&g->memories, r->arena,
			((struct opg_memory){m->memories[i].name, memory_kind[m->memories[i].kind]}));
	for (int i = 0; i < m->n_devices; i++)
		VEC_PUSH(&g->devices, r->arena,
			((struct opg_device){m->devices[i].name,
				m->devices[i].kind == HW_DEVICE_GPU ? OPG_DEVICE_GPU : OPG_DEVICE_CPU, m->devices[i].memory}));
	for (int i = 0; i < p->n_units; i++)
		VEC_PUSH(&g->units, r->arena, ((struct opg_unit){p->unit_name[i]}));
}

static void add_about(struct recorder *r, const struct scenario *s)
{
	const struct opg_about about[] = {
		{"offsim", OFFSIM_VERSION}, {"model", s->model_name}, {"quant", s->quant}, {"machine", s->machine_name},
		{"engine", s->engine_name}, {"key", arena_strdup(r->arena, s->key)}};

	for (size_t i = 0; i < ARRAY_LEN(about); i++)
		VEC_PUSH(&r->g->about, r->arena, about[i]);
}

static int *no_buffers(struct recorder *r, size_t n)
{
	int *buffer = arena_array(r->arena, int, n);

	for (size_t i = 0; i < n; i++)
		buffer[i] = OPG_NONE;
	return buffer;
}

static void ignore_step(void *ctx, const struct exec_record *record)
{
	(void)ctx;
	(void)record;
}

int graph_record(const struct scenario *s, uint64_t n_steps, const volatile sig_atomic_t *interrupted, struct arena *a,
	struct opg **out, struct err *err)
{
	struct placement *p = arena_new(a, struct placement);
	struct trace *trace = arena_new(a, struct trace);
	struct exec *x = arena_new(a, struct exec);
	struct recorder r = {.p = p, .platform = &x->platform, .g = arena_new(a, struct opg), .arena = a,
		.kernels = s->cost != NULL};

	run_make_trace(trace, s, a);
	if (run_place(s, p, a, err))
		return -1;
	struct run_stretch stretch = run_stretch(trace, n_steps);
	struct engine_job job = {s->model, s->machine, s->cost, trace, s->flags, s->seed};
	exec_init(x, p, trace, s->engine->lower, s->engine->state_new(&job, p, a), s->engine->overheads, interrupted, a);

	r.g->steps = (struct opg_steps){
		.count = stretch.end - stretch.begin,
		.first = stretch.first_step - stretch.begin,
		.end = stretch.first_step - stretch.begin + stretch.n,
		.ahead = EXEC_STEPS_AHEAD,
		.phase = stretch.decode ? OPG_DECODE : OPG_PREFILL,
	};
	r.n_memories = p->machine->n_memories;
	size_t places = ((size_t)p->model->n_layer + 1) * (MODEL_GROUP_N + 1) * (size_t)r.n_memories;
	r.home = no_buffers(&r, places);
	r.landed = no_buffers(&r, places);
	r.hidden = no_buffers(&r, (size_t)r.n_memories);
	r.stream_last = arena_array(a, uint32_t, (size_t)x->platform.n_units);
	add_about(&r, s);
	add_machine(&r);
	exec_additions(x, on_added, &r);
	int rc = exec_run(x, stretch.begin, stretch.end - stretch.begin, ignore_step, NULL, err);
	exec_release(x);
	*out = r.g;
	return rc;
}
