/*
 * ideal.c - the engine nobody has: perfect prefetch and no overheads. With its placement, none is faster.
 *
 *	copies   ══[L1 attn][L1 ffn]══[L3 attn][L3 ffn]══[L5 …      as early as a staging buffer is free
 *	kernels    [L0…][L1…     ][L2…][L3…   ][L4…]                as soon as their bytes are there
 *
 * Layers that do not stay on the GPU are spread evenly among those that do, so their copies hide behind
 * as much computing as there is. It knows which experts will be hit before the router does. Latencies
 * and launches cost nothing; bandwidth, arithmetic and memory are those of the machine. With `host: compute` the
 * layers in RAM are computed by the CPU instead, and only hidden states cross the link.
 */
#include <string.h>

#include "models/kvcache.h"
#include "sim/engine/engine_table.h"
#include "sim/exec/lower.h"

enum host_use { HOST_STREAM, HOST_COMPUTE };
static const char *const host_choices[] = {"stream", "compute", NULL};

enum kv_home { KV_GPU, KV_RAM };
static const char *const kv_choices[] = {"gpu", "ram", NULL};

struct ideal_flags {
	const char *gpu_layers;
	int host, kv;
	uint64_t buffers;
	const char *kv_type;
};

static const struct param ideal_flag[] = {
	PARAM_TEXT(struct ideal_flags, gpu_layers, "gpu-layers", "auto",
		"layers that stay in GPU memory: a number, or auto for as many as fit"),
	PARAM_CHOICE(struct ideal_flags, host, "host", "stream", host_choices,
		"layers in RAM cross the link before each use, or are computed by the CPU"),
	PARAM_CHOICE(struct ideal_flags, kv, "kv", "gpu", kv_choices,
		"where the KV cache of layers that the GPU computes lives"),
	PARAM_COUNT(struct ideal_flags, buffers, "buffers", "2", 1, 64,
		"staging buffers in GPU memory, one streamed layer each"),
	PARAM_TEXT(struct ideal_flags, kv_type, "kv-type", "f16", "element type of the KV cache"),
};

/* Rows that a layer works on at once: a longer prompt goes through it in chunks, its weights staying. */
#define CHUNK_ROWS 2048
/* Hidden states are kept in 16 bits. */
#define HIDDEN_ELEMENT_BYTES 2

struct plan {
	const struct engine_job *job;
	const struct ideal_flags *flags;
	int gpu, gpu_mem, cpu, ram, drive; /* device and memory indices, -1: none */
	uint32_t n_resident;               /* layers */
	uint64_t ram_kept_bytes;           /* room in RAM for what is not weights of layers */
};

static bool resident(const struct plan *plan, uint32_t i)
{
	uint64_t n = plan->n_resident, layers = plan->job->model->n_layer;

	if (plan->flags->host == HOST_COMPUTE)
		return i >= layers - n; /* in one piece: hidden states cross the link once */
	return (i + 1) * n / layers > i * n / layers;
}

static struct place_spot gpu_resident(const struct plan *plan)
{
	return (struct place_spot){(int16_t)plan->gpu_mem, (int16_t)plan->gpu, PLACE_RESIDENT};
}

/* Unified memory: the GPU computes from RAM, and what is in RAM needs no copy. */
static bool unified(const struct plan *plan)
{
	return plan->gpu_mem == plan->ram;
}

/* Where the bytes of a layer that is not resident go: RAM while there is room, then the drive. With unified
   memory a layer that would have to be streamed leaves RAM. */
static int away_memory(const struct plan *plan, const struct placement *p, uint64_t bytes, uint64_t *ram_booked)
{
	if (plan->drive >= 0 && unified(plan) && plan->flags->host == HOST_STREAM)
		return plan->drive;
	if (plan->drive < 0 || *ram_booked + bytes <= ledger_free(&p->ledger, plan->ram)) {
		*ram_booked += bytes;
		return plan->ram;
	}
	return plan->drive;
}

static void place_away(const struct plan *plan, struct placement *p, uint32_t i, uint64_t *ram_booked)
{
	int memory = away_memory(plan, p, place_layer_bytes(plan->job->model, (int)i), ram_booked);
	struct place_spot weights = {(int16_t)memory, (int16_t)plan->gpu, PLACE_STREAMED};
	struct place_spot kv = gpu_resident(plan);

	if (plan->gpu < 0 || plan->flags->host == HOST_COMPUTE) {
		weights.device = (int16_t)plan->cpu;
		weights.mode = memory == plan->ram ? PLACE_RESIDENT : PLACE_STREAMED;
		kv = (struct place_spot){(int16_t)plan->ram, (int16_t)plan->cpu, PLACE_RESIDENT};
	} else if (memory == plan->gpu_mem) {
		weights.mode = PLACE_RESIDENT;
	} else if (plan->flags->kv == KV_RAM && !unified(plan)) {
		kv = (struct place_spot){(int16_t)plan->ram, (int16_t)plan->gpu, PLACE_STREAMED};
	}
	place_layer(p, (int)i, weights, kv);
}

static void book_activations(const struct plan *plan, struct placement *p)
{
	const struct trace_workload *w = &plan->job->trace->workload;
	uint64_t rows = w->batch * (w->prompt > 0 ? w->prompt : 1);
	uint64_t chunk = rows < CHUNK_ROWS ? rows : CHUNK_ROWS;
	const struct model *m = plan->job->model;
	int memory = plan->gpu >= 0 ? plan->gpu_mem : plan->ram;

	ledger_book(&p->ledger, memory, LEDGER_ACTIVATION, "compute buffers",
		model_activation_bytes(m, chunk, w->batch, HIDDEN_ELEMENT_BYTES));
	ledger_book(&p->ledger, memory, LEDGER_ACTIVATION, "hidden states",
		(rows - chunk) * 2 * m->hidden * HIDDEN_ELEMENT_BYTES);
}

static void book_staging(const struct plan *plan, struct placement *p)
{
	const struct model *m = plan->job->model;
	int device = plan->gpu >= 0 ? plan->gpu : plan->cpu;
	uint64_t weights = 0, kv = 0;

	for (uint32_t i = 0; i < m->n_layer; i++) {
		const struct place_spot *spot = &p->tensor[m->layers[i].first_tensor];
		uint64_t bytes = place_layer_bytes(m, (int)i);
		if (spot->mode == PLACE_STREAMED && bytes > weights)
			weights = bytes;
		bytes = p->kv_sequences * kvcache_layer_bytes(&m->layers[i], p->kv_context, &p->kv_types);
		if (p->kv[i].mode == PLACE_STREAMED && bytes > kv)
			kv = bytes;
	}
	p->ahead_bytes = plan->flags->buffers * (weights + kv);
	ledger_book(&p->ledger, plan->job->machine->devices[device].memory, LEDGER_OVERHEAD, "staging buffers",
		p->ahead_bytes);
}

/* Fills p for plan->n_resident layers, from scratch, with so much RAM kept from layers. */
static void fill_once(const struct plan *plan, struct placement *p, struct arena *a)
{
	const struct model *m = plan->job->model;
	const struct trace_workload *w = &plan->job->trace->workload;
	const struct quant_type *kv_type = quant_find(plan->flags->kv_type);
	bool all = plan->n_resident == m->n_layer;
	bool embed_on_gpu = plan->gpu >= 0 && (all || m->tied_embeddings);
	uint64_t ram_booked = plan->ram_kept_bytes;

	place_init(p, m, plan->job->machine, a);
	p->kv_types = *KVCACHE_SAME(kv_type);
	p->kv_context = trace_max_context(plan->job->trace);
	p->kv_sequences = w->batch;
	for (uint32_t i = 0; i < m->n_layer; i++) {
		if (resident(plan, i)) {
			struct place_spot kv = gpu_resident(plan);
			if (plan->flags->kv == KV_RAM && !unified(plan))
				kv = (struct place_spot){(int16_t)plan->ram, (int16_t)plan->gpu, PLACE_STREAMED};
			place_layer(p, (int)i, gpu_resident(plan), kv);
			if (unified(plan))
				ram_booked += place_layer_bytes(m, (int)i);
		} else {
			place_away(plan, p, i, &ram_booked);
		}
	}
	/* The output multiplies, so it belongs to what computes; rows of the embedding are only looked up,
	   and the host does that unless everything is on the GPU or the two are one. */
	struct place_spot host = {(int16_t)plan->ram, (int16_t)plan->cpu, PLACE_RESIDENT};
	struct place_spot output = plan->gpu >= 0 ? gpu_resident(plan) : host;
	place_layer_group(p, MODEL_NO_LAYER, MODEL_OUTPUT, output);
	place_layer_group(p, MODEL_NO_LAYER, MODEL_EMBED, embed_on_gpu ? output : host);
	place_finish(p);
	book_activations(plan, p);
	book_staging(plan, p);
}

/* What RAM holds besides the layers that are placed there, and what the system reserves. */
static uint64_t ram_besides_layers(const struct plan *plan, const struct placement *p)
{
	const struct model *m = plan->job->model;
	uint64_t used = ledger_used(&p->ledger, plan->ram) - plan->job->machine->memories[plan->ram].reserved_bytes;

	for (uint32_t i = 0; i < m->n_layer; i++)
		if (p->tensor[m->layers[i].first_tensor].memory == plan->ram)
			used -= place_layer_bytes(m, (int)i);
	return used;
}

/* The same with just as much RAM kept as all else needs: known only when all is placed, since the host may get the
   output, a cache, buffers. What layers lose goes to the drive, which may need buffers itself. */
static void fill(const struct plan *plan, struct placement *p, struct arena *a)
{
	struct plan settled = *plan;

	fill_once(&settled, p, a);
	for (int i = 0; i < 3 && plan->drive >= 0 && ledger_missing(&p->ledger, plan->ram) > 0; i++) {
		uint64_t besides = ram_besides_layers(&settled, p);
		if (besides > settled.ram_kept_bytes)
			settled.ram_kept_bytes = besides;
		fill_once(&settled, p, a);
	}
}

static bool gpu_fits(const struct plan *plan, uint32_t n_resident, struct arena *a)
{
	struct arena_mark mark = arena_mark(a);
	struct plan tried = *plan;
	struct placement p;

	tried.n_resident = n_resident;
	fill(&tried, &p, a);
	bool fits = ledger_missing(&p.ledger, plan->gpu_mem) == 0;
	arena_rewind(a, mark);
	return fits;
}

/* The most layers that fit in GPU memory, 0 when not even none does. With all of them there is no staging, so
   that case stands apart; below it, more layers always take more. */
static uint32_t most_layers(const struct plan *plan, struct arena *a)
{
	uint32_t fits = 0, too_many = plan->job->model->n_layer;

	if (gpu_fits(plan, too_many, a))
		return too_many;
	while (too_many - fits > 1) {
		uint32_t middle = fits + (too_many - fits) / 2;
		if (gpu_fits(plan, middle, a))
			fits = middle;
		else
			too_many = middle;
	}
	return fits;
}

/* Other flags with which all fits; NULL when there are none. */
static const char *find_fit(const struct plan *plan, struct arena *a)
{
	static const enum kv_home homes[] = {KV_GPU, KV_RAM};

	for (size_t i = 0; i < ARRAY_LEN(homes); i++) {
		struct ideal_flags flags = *plan->flags;
		struct plan tried = *plan;
		struct placement p;

		flags.kv = homes[i];
		tried.flags = &flags;
		tried.n_resident = plan->gpu < 0 ? 0 : most_layers(&tried, a);
		fill(&tried, &p, a);
		if (ledger_fits(&p.ledger))
			return arena_printf(a, "this would fit: flags.gpu-layers=%u%s", tried.n_resident,
				(int)homes[i] == plan->flags->kv ? "" : " flags.kv=ram");
	}
	return NULL;
}

static const char *advise(const struct plan *plan, const struct placement *p, uint32_t most, struct arena *a)
{
	uint32_t n_layer = plan->job->model->n_layer;
	const char *fit;

	if (!ledger_fits(&p->ledger)) {
		fit = plan->gpu < 0 ? NULL : find_fit(plan, a);
		return fit ? fit : "a larger memory, a drive, a shorter context, a smaller batch or a smaller type is needed";
	}
	if (plan->gpu < 0)
		return "";
	if (plan->n_resident == n_layer)
		return "all layers are in GPU memory";
	if (most > plan->n_resident)
		return arena_printf(a, "%u more layers would fit in GPU memory: flags.gpu-layers=%u",
			most - plan->n_resident, most);
	return arena_printf(a, "no further layer fits in GPU memory: flags.gpu-layers=%u is the most", most);
}

static int parse_layers(const char *text, uint32_t n_layer, bool *automatic, uint32_t *out, struct err *err)
{
	double n;

	*automatic = strcmp(text, "auto") == 0;
	*out = n_layer;
	if (*automatic)
		return 0;
	if (units_parse(text, UNIT_COUNT, &n, err) || n < 0)
		return err_set(err, ERR_INPUT, "flag 'gpu-layers' must be a whole number or auto, not '%s'", text);
	*out = n < n_layer ? (uint32_t)n : n_layer;
	return 0;
}

static int ideal_place(const struct engine_job *job, struct placement *p, struct arena *a, struct err *err)
{
	const struct hw_machine *hw = job->machine;
	const struct ideal_flags *flags = job->flags;
	const struct quant_type *kv_type;
	struct plan plan = {
		.job = job,
		.flags = flags,
		.gpu = hw_first_device(hw, HW_DEVICE_GPU),
		.gpu_mem = -1,
		.cpu = hw_first_device(hw, HW_DEVICE_CPU),
		.ram = hw_first_memory(hw, HW_MEMORY_RAM),
		.drive = hw_first_memory(hw, HW_MEMORY_DRIVE),
	};
	bool automatic;

	if (quant_get(flags->kv_type, &kv_type, err))
		return err_prefix(err, "flag 'kv-type'");
	if (!kv_type->kv)
		return err_set(err, ERR_INPUT, "flag 'kv-type': '%s' is no type of KV cache", kv_type->name);
	if (parse_layers(flags->gpu_layers, job->model->n_layer, &automatic, &plan.n_resident, err))
		return -1;
	if (plan.gpu < 0)
		plan.n_resident = 0;
	else
		plan.gpu_mem = hw->devices[plan.gpu].memory;

	uint32_t most = plan.gpu < 0 ? 0 : most_layers(&plan, a);
	if (automatic)
		plan.n_resident = most;
	fill(&plan, p, a);
	p->advice = advise(&plan, p, most, a);
	return 0;
}

struct ideal {
	const struct ideal_flags *flags;
	op_ref *buffer;      /* by staging buffer: the last kernel that used it */
	uint64_t next_buffer;
	op_ref *kv_stored;   /* by layer: the last copy of new entries to where its cache lives */
	struct lower chain;
};

static void *ideal_state_new(const struct engine_job *job, const struct placement *p, struct arena *a)
{
	struct ideal *s = arena_new(a, struct ideal);

	s->flags = job->flags;
	s->buffer = arena_array(a, op_ref, s->flags->buffers);
	s->kv_stored = arena_array(a, op_ref, p->model->n_layer);
	s->chain.hidden_elem_bytes = HIDDEN_ELEMENT_BYTES;
	return s;
}

/* One group: each part's bytes are fetched, where they must be, and multiplied where it says. share: part of the
   bytes that is used (experts); flops_per_param counts the rows. */
static void run_group(struct exec *x, struct ideal *s, const struct place_group *g, double share,
	double flops_per_param, op_ref buffer_free)
{
	const struct hw_machine *hw = x->placement->machine;

	for (int i = 0; i < g->n; i++) {
		const struct place_part *part = &g->part[i];
		int device = part->spot.device;
		double bytes = (double)part->bytes * share;
		op_ref fetched = 0;

		if (part->spot.mode == PLACE_STREAMED)
			fetched = exec_copy(x, part->spot.memory, hw->devices[device].memory, bytes, true,
				buffer_free, 0);
		lower_move_to(&s->chain, device);
		struct platform_work work = {
			.bytes = bytes,
			.flops = flops_per_param * (double)part->params,
			.dtype = platform_dtype(&hw->devices[device], part->type),
		};
		s->chain.last = exec_kernel(x, device, &work, s->chain.last, fetched);
	}
}

static void run_attention(struct exec *x, struct ideal *s, const struct trace_access *read, uint64_t n_new,
	op_ref buffer_free)
{
	const struct placement *p = x->placement;
	const struct model_layer *l = &p->model->layers[read->layer];
	const struct place_spot *kv = &p->kv[read->layer];
	const struct hw_device *d = &p->machine->devices[kv->device];
	double entry = (double)kvcache_token_bytes(l, &p->kv_types);
	double held = entry * (double)read->kv_tokens, fresh = entry * (double)n_new;
	op_ref fetched = 0;

	if (kv->mode == PLACE_STREAMED && held > fresh)
		fetched = exec_copy(x, kv->memory, d->memory, held - fresh, true, buffer_free,
			s->kv_stored[read->layer]);
	lower_move_to(&s->chain, kv->device);
	struct platform_work work = {
		.bytes = held + fresh,
		.flops = model_attention_flops(l, 1, read->kv_pairs),
		.dtype = platform_dtype(d, p->kv_types.k),
	};
	s->chain.last = exec_kernel(x, kv->device, &work, s->chain.last, fetched);
	if (kv->mode == PLACE_STREAMED)
		s->kv_stored[read->layer] = exec_copy(x, d->memory, kv->memory, fresh, true, s->chain.last, 0);
}

static bool layer_streams(const struct placement *p, int layer)
{
	if (p->kv[layer].mode == PLACE_STREAMED)
		return true;
	for (int g = 0; g < MODEL_GROUP_N; g++)
		for (int i = 0; i < p->group[layer][g].n; i++)
			if (p->group[layer][g].part[i].spot.mode == PLACE_STREAMED)
				return true;
	return false;
}

/* The accesses of one layer; returns the first of the next. */
static const struct trace_access *run_layer(struct exec *x, struct ideal *s, const struct trace_access *a,
	const struct trace_access *end)
{
	const struct placement *p = x->placement;
	int layer = a->layer;
	bool streams = layer_streams(p, layer);
	uint64_t slot = s->next_buffer % s->flags->buffers;
	op_ref buffer_free = streams ? s->buffer[slot] : 0;
	uint64_t n_new = 0;

	while (a < end && a->layer == layer) {
		const struct place_group *g = &p->group[layer][a->group];
		double n_hit, rows;

		exec_label(x, layer, (enum model_group)a->group);
		switch ((enum trace_kind)a->kind) {
		case TRACE_WEIGHTS:
			run_group(x, s, g, 1, 2.0 * (double)a->tokens, buffer_free);
			a++;
			break;
		case TRACE_KV_WRITE:
			n_new = a->tokens;
			a++;
			break;
		case TRACE_KV_READ:
			exec_moves(x, EXEC_CACHE);
			run_attention(x, s, a, n_new, buffer_free);
			a++;
			break;
		case TRACE_EXPERT:
			a = lower_sum_experts(a, end, &n_hit, &rows);
			run_group(x, s, g, n_hit / p->model->layers[layer].n_expert,
				2.0 * rows / p->model->layers[layer].n_expert, buffer_free);
			break;
		}
	}
	if (streams) {
		s->buffer[slot] = s->chain.last;
		s->next_buffer++;
	}
	return a;
}

/* Embedding: one row a token is looked up. Output: multiplied with the rows that are sampled. */
static void run_global(struct exec *x, struct ideal *s, const struct trace_access *a)
{
	const struct model *m = x->placement->model;
	const struct place_group *g = &x->placement->group[m->n_layer][a->group];
	double rows = (double)a->tokens;

	exec_label(x, MODEL_NO_LAYER, (enum model_group)a->group);
	if (a->group == MODEL_EMBED)
		run_group(x, s, g, rows < m->vocab ? rows / m->vocab : 1, 0, 0);
	else
		run_group(x, s, g, 1, 2.0 * rows, 0);
}

static int ideal_lower(struct exec *x, void *state, const struct trace_step *step, op_ref *last, struct err *err)
{
	struct ideal *s = state;
	const struct trace_access *a = step->access, *end = a + step->n_access;

	(void)err;
	lower_begin(&s->chain, x, step);
	while (a < end) {
		if (a->layer == MODEL_NO_LAYER)
			run_global(x, s, a++);
		else
			a = run_layer(x, s, a, end);
	}
	*last = s->chain.last;
	return 0;
}

const struct engine_ops engine_ideal = {
	.name = "ideal",
	.version = "1",
	.help = "perfect prefetch, no overheads: a bound for engines that place and compute alike",
	.flag = ideal_flag,
	.n_flags = ARRAY_LEN(ideal_flag),
	.flags_size = sizeof(struct ideal_flags),
	.overheads = false,
	.place = ideal_place,
	.state_new = ideal_state_new,
	.lower = ideal_lower,
};
