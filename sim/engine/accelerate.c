/*
 * accelerate.c - Hugging Face accelerate (16cb6eb8) under transformers' generate().
 *
 *	device_map   embed, layer 0, layer 1, … output are dealt to GPU 0 …, cpu, disk in order, never going back;
 *	             GPU 0 and the cpu keep room for the largest block that is still to come
 *	each use     [alloc][copy w_q, pageable, waits][kernel][free] [alloc][copy w_k …
 *
 * What lies in "cpu" or "disk" is computed on the GPU all the same: a hook brings each parameter before its module
 * runs and drops it after. Nothing is prefetched and nothing overlaps. Every operation is launched from Python. The KV
 * cache stays where the layer is executed. What kernels reach is in hw/kernels/accelerate.yaml.
 */
#include <ctype.h>
#include <string.h>

#include "models/kvcache.h"
#include "sim/engine/engine_table.h"
#include "sim/exec/lower.h"

#define HIDDEN_ELEMENT_BYTES 2
#define MAX_DEVICES 10
/* get_max_memory of one GPU leaves a tenth when the user gives none (modeling.py, get_balanced_memory). */
#define ONE_GPU_SHARE 0.9
/* What balancing adds to the mean share of a GPU, in blocks (get_balanced_memory). */
#define BALANCE_BLOCKS 1.25

/* Operations that eager PyTorch launches for one group (transformers' modeling_llama.py and modeling_mixtral.py: norms
   in fp32 are six operations, rotary embedding eight); attention over the cache is four more. */
static const int group_operations[MODEL_GROUP_N] = {
	[MODEL_EMBED] = 1,
	[MODEL_ATTN] = 22,
	[MODEL_FFN] = 12,
	[MODEL_ROUTER] = 12,
	[MODEL_SHARED] = 5,
	[MODEL_EXPERTS] = 8, /* for each expert that is hit */
	[MODEL_OUTPUT] = 8,
};
#define CACHE_OPERATIONS 4

enum device_map { MAP_AUTO, MAP_BALANCED, MAP_SEQUENTIAL, MAP_CPU_OFFLOAD };
static const char *const map_choices[] = {"auto", "balanced", "sequential", "cpu_offload", NULL};

struct accelerate_flags {
	int device_map;
	struct yaml_node *max_memory;
	const char *offload_folder;
};

static const struct param accelerate_flag[] = {
	PARAM_CHOICE(struct accelerate_flags, device_map, "device_map", "auto", map_choices,
		"how layers are dealt to devices; cpu_offload: none stays on a GPU"),
	PARAM_NODE(struct accelerate_flags, max_memory, "max_memory",
		"{0: 22GiB, cpu: 64GiB}: how much of each device may be used; without it, what is free"),
	PARAM_TEXT(struct accelerate_flags, offload_folder, "offload_folder", "",
		"where layers go that fit neither; empty: none may"),
};

static const struct engine_ignored accelerate_ignored[] = {
	{"no_split_module_classes", true}, {"offload_buffers", false}, {"torch_dtype", true}, {"dtype", true},
	{"low_cpu_mem_usage", false}, {"offload_state_dict", false},
};

/* A device that layers are dealt to. */
struct home {
	struct place_spot spot;
	double limit_bytes;
	bool reserves; /* keeps room for the largest block still to come */
	double used_bytes;
};

struct plan {
	const struct engine_job *job;
	const struct accelerate_flags *flags;
	struct home home[MAX_DEVICES];
	int n_homes, n_gpus;
	int main_device; /* executes what no GPU holds */
	bool stated[MAX_DEVICES]; /* limit was given by the user */
};

/* Blocks in module order: 0 is the embedding, then the layers, last norm and output. */
static uint64_t block_bytes(const struct model *m, uint32_t block)
{
	if (block == 0)
		return m->embed.bytes;
	if (block <= m->n_layer)
		return place_layer_bytes(m, (int)block - 1);
	return m->tied_embeddings ? m->output.bytes - (m->output.bytes < m->embed.bytes ? m->output.bytes : m->embed.bytes) :
				    m->output.bytes;
}

static double largest_from(const struct model *m, uint32_t block)
{
	uint64_t largest = 0;

	for (; block < m->n_layer + 2; block++)
		if (block_bytes(m, block) > largest)
			largest = block_bytes(m, block);
	return (double)largest;
}

static void add_home(struct plan *plan, int memory, int device, enum place_mode mode, bool reserves)
{
	const struct hw_memory *mem = &plan->job->machine->memories[memory];

	plan->home[plan->n_homes++] = (struct home){
		.spot = {(int16_t)memory, (int16_t)device, mode},
		.limit_bytes = (double)(mem->capacity_bytes - mem->reserved_bytes),
		.reserves = reserves,
	};
}

/* GPUs, cpu, disk. */
static int plan_init(struct plan *plan, const struct engine_job *job, struct err *err)
{
	const struct hw_machine *hw = job->machine;
	int cpu = hw_first_device(hw, HW_DEVICE_CPU), drive = hw_first_memory(hw, HW_MEMORY_DRIVE);

	*plan = (struct plan){.job = job, .flags = job->flags, .main_device = cpu};
	for (int d = 0; d < hw->n_devices && plan->n_gpus < MAX_DEVICES - 2; d++) {
		if (hw->devices[d].kind != HW_DEVICE_GPU)
			continue;
		if (plan->n_gpus == 0)
			plan->main_device = d;
		add_home(plan, hw->devices[d].memory, d, PLACE_RESIDENT, plan->n_gpus == 0);
		plan->n_gpus++;
	}
	add_home(plan, hw_first_memory(hw, HW_MEMORY_RAM), plan->main_device,
		plan->n_gpus ? PLACE_STREAMED : PLACE_RESIDENT, true);
	if (plan->flags->offload_folder[0]) {
		if (drive < 0)
			return err_set(err, ERR_INPUT, "flag 'offload_folder': the machine has no drive");
		add_home(plan, drive, plan->main_device, PLACE_STREAMED, false);
	}
	return 0;
}

/* {0: "22GiB", "cpu": "64GiB"}, as Python or YAML writes it. */
static int parse_max_memory(struct plan *plan, struct arena *a, struct err *err)
{
	const struct yaml_node *node = plan->flags->max_memory;
	char *text, *save;

	if (!node)
		return 0;
	text = arena_strdup(a, node->kind == YAML_SCALAR ? node->text : yaml_flow_text(a, node, false));
	for (char *one = strtok_r(text, ",{}", &save); one; one = strtok_r(NULL, ",{}", &save)) {
		char key[32], value[32];
		double bytes;

		one += strspn(one, " \t");
		if (!*one)
			continue;
		if (sscanf(one, "%*[\"']%31[^\"': ]%*[\"': ]%31[^\"']", key, value) != 2 &&
			sscanf(one, "%31[^\"': ]%*[\"': ]%31[^\"']", key, value) != 2)
			return err_set(err, ERR_INPUT, "flag 'max_memory': '%s' is not DEVICE: SIZE", one);
		if (units_parse(value, UNIT_BYTES, &bytes, err))
			return err_prefix(err, "flag 'max_memory'");
		int h = strcmp(key, "cpu") == 0 ? plan->n_gpus : isdigit((unsigned char)key[0]) ? atoi(key) : -1;
		if (h < 0 || h > plan->n_gpus || (h == plan->n_gpus && strcmp(key, "cpu") != 0))
			return err_set(err, ERR_INPUT, "flag 'max_memory': no device '%s'; 0 to %d, or cpu", key,
				plan->n_gpus - 1);
		plan->home[h].limit_bytes = bytes;
		plan->stated[h] = true;
	}
	return 0;
}

/* What get_balanced_memory makes of the limits. */
static void balance(struct plan *plan)
{
	const struct model *m = plan->job->model;
	double block = largest_from(m, 1), cap;

	if (plan->flags->device_map == MAP_SEQUENTIAL || plan->n_gpus == 0)
		return;
	if (plan->n_gpus == 1) {
		if (!plan->stated[0])
			plan->home[0].limit_bytes *= ONE_GPU_SHARE;
		return;
	}
	cap = (double)m->weights_bytes / plan->n_gpus + BALANCE_BLOCKS * block;
	for (int g = 0; g < plan->n_gpus - 1; g++)
		if (plan->home[g].limit_bytes > cap)
			plan->home[g].limit_bytes = cap;
}

static void place_block(struct placement *p, const struct plan *plan, uint32_t block, const struct home *home)
{
	const struct model *m = plan->job->model;
	const struct hw_device *d = &plan->job->machine->devices[home->spot.device];
	struct place_spot kv = {(int16_t)d->memory, home->spot.device, PLACE_RESIDENT};

	if (block == 0)
		place_layer_group(p, MODEL_NO_LAYER, MODEL_EMBED, home->spot);
	else if (block <= m->n_layer)
		place_layer(p, (int)block - 1, home->spot, kv);
	else
		place_layer_group(p, MODEL_NO_LAYER, MODEL_OUTPUT, home->spot);
}

/* infer_auto_device_map: in order, a device that is full is never looked at again; what no device takes stays with the last. */
static void deal(const struct plan *plan, struct placement *p)
{
	struct plan dealt = *plan;
	const struct model *m = plan->job->model;
	int h = plan->flags->device_map == MAP_CPU_OFFLOAD ? plan->n_gpus : 0;

	for (uint32_t block = 0; block < m->n_layer + 2; block++) {
		double bytes = (double)block_bytes(m, block);
		while (h < plan->n_homes - 1) {
			struct home *home = &dealt.home[h];
			double keep = home->reserves ? largest_from(m, block) : 0;
			if (home->used_bytes + bytes <= home->limit_bytes - keep)
				break;
			h++;
		}
		dealt.home[h].used_bytes += bytes;
		place_block(p, plan, block, &dealt.home[h]);
	}
}

/* PyTorch's caching allocator gives large tensors segments of their own, in whole 2 MiB (kRoundLarge from kMinLargeAlloc
   on, c10/cuda/CUDACachingAllocator.cpp); smaller ones share segments. */
static uint64_t allocator_slack(uint64_t bytes)
{
	const uint64_t round = 2 << 20, from = 10 << 20;

	return bytes < from || bytes % round == 0 ? 0 : round - bytes % round;
}

/* Activations of a pass, and the largest tensor that is brought for one use. */
static void book_working_memory(const struct plan *plan, struct placement *p)
{
	const struct model *m = plan->job->model;
	const struct trace_workload *w = &plan->job->trace->workload;
	int memory = plan->job->machine->devices[plan->main_device].memory;
	uint64_t rows = w->batch * (w->prompt > 0 ? w->prompt : 1), largest = 0;

	for (int i = 0; i < m->n_tensors; i++)
		if (p->tensor[i].mode == PLACE_STREAMED && m->tensors[i].bytes > largest)
			largest = m->tensors[i].bytes;
	ledger_book(&p->ledger, memory, LEDGER_ACTIVATION, "activations",
		model_activation_bytes(m, rows, w->batch, HIDDEN_ELEMENT_BYTES));
	ledger_book(&p->ledger, memory, LEDGER_OVERHEAD, "largest offloaded tensor", largest);
	for (int i = 0; i < m->n_tensors; i++)
		if (p->tensor[i].mode == PLACE_RESIDENT)
			ledger_book(&p->ledger, p->tensor[i].memory, LEDGER_OVERHEAD, "allocator rounding",
				allocator_slack(m->tensors[i].bytes));
}

static void fill(const struct plan *plan, struct placement *p, struct arena *a)
{
	place_init(p, plan->job->model, plan->job->machine, a);
	p->kv_types = *KVCACHE_SAME(quant_find("f16"));
	p->kv_context = trace_max_context(plan->job->trace);
	p->kv_sequences = plan->job->trace->workload.batch;
	deal(plan, p);
	place_finish(p);
	book_working_memory(plan, p);
}

static uint32_t layers_on_gpus(const struct plan *plan, const struct placement *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < plan->job->model->n_layer; i++)
		n += p->tensor[plan->job->model->layers[i].first_tensor].mode == PLACE_RESIDENT;
	return n;
}

/* The largest limit of GPU 0 that still leaves room for cache and activations: what a hand-written max_memory gains. */
static const char *advise(const struct plan *plan, const struct placement *p, struct arena *a)
{
	struct plan by_hand = *plan;
	struct placement more;
	char size[32];

	if (plan->n_gpus != 1)
		return ledger_fits(&p->ledger) ? "" : "a shorter context, a smaller batch or a smaller type is needed";
	double low = 0, high = (double)plan->job->machine->memories[plan->home[0].spot.memory].capacity_bytes * 2;
	for (int i = 0; i < 40; i++) {
		struct arena_mark mark = arena_mark(a);
		by_hand.home[0].limit_bytes = (low + high) / 2;
		fill(&by_hand, &more, a);
		if (ledger_missing(&more.ledger, plan->home[0].spot.memory) == 0)
			low = by_hand.home[0].limit_bytes;
		else
			high = by_hand.home[0].limit_bytes;
		arena_rewind(a, mark);
	}
	by_hand.home[0].limit_bytes = low;
	fill(&by_hand, &more, a);
	units_format(size, sizeof(size), low, UNIT_BYTES);
	uint32_t now = layers_on_gpus(plan, p), best = layers_on_gpus(&by_hand, &more);
	if (best == now)
		return arena_printf(a, "%u of %u layers are on the GPU, as many as fit", now, plan->job->model->n_layer);
	return arena_printf(a, "max_memory={0: \"%s\"} would put %u layers on the GPU instead of %u", size, best, now);
}

static int accelerate_place(const struct engine_job *job, struct placement *p, struct arena *a, struct err *err)
{
	struct plan plan;

	if (plan_init(&plan, job, err) || parse_max_memory(&plan, a, err))
		return -1;
	balance(&plan);
	fill(&plan, p, a);
	p->advice = advise(&plan, p, a);
	return 0;
}

struct accelerate {
	const struct cost *cost;
	struct lower chain;
	int ram;
};

static void *accelerate_state_new(const struct engine_job *job, const struct placement *p, struct arena *a)
{
	struct accelerate *s = arena_new(a, struct accelerate);

	(void)p;
	s->cost = job->cost;
	s->ram = hw_first_memory(job->machine, HW_MEMORY_RAM);
	s->chain.hidden_elem_bytes = HIDDEN_ELEMENT_BYTES;
	s->chain.crossing_s = hw_num_value(&s->cost->copy_submit_s);
	return s;
}

/* One part's tensors, one after another: allocated, copied from pageable memory (through it from disk), waited for. */
static void fetch(struct accelerate *s, const struct place_part *part, int to, double bytes, double n_tensors)
{
	struct exec *x = s->chain.x;
	const struct hw_machine *hw = x->placement->machine;
	double each_s = hw_num_value(&s->cost->gpu_alloc_s) + hw_num_value(&s->cost->copy_submit_s) +
		hw_num_value(&s->cost->gpu_sync_s);

	s->chain.last = exec_wait(x, n_tensors * each_s, s->chain.last);
	if (hw->memories[part->spot.memory].kind == HW_MEMORY_DRIVE)
		s->chain.last = exec_copy(x, part->spot.memory, s->ram, bytes, true, s->chain.last, 0);
	s->chain.last = exec_copy(x, s->ram, to, bytes, false, s->chain.last, 0);
}

static void multiply(struct accelerate *s, int device, const struct quant_type *type, double bytes, double flops,
	double operations)
{
	struct exec *x = s->chain.x;
	const struct hw_device *d = &x->placement->machine->devices[device];
	enum cost_class class = cost_class_of(type);
	bool gpu = d->kind == HW_DEVICE_GPU;
	struct platform_work work = {
		.bytes = bytes,
		.flops = flops,
		.dtype = gpu ? platform_dtype(d, type) : HW_FP32,
		.read_share = hw_num_value(gpu ? &s->cost->gpu_read[class] : &s->cost->cpu_read),
		.compute_share = hw_num_value(gpu ? &s->cost->gpu_multiply[class] : &s->cost->cpu_multiply_many[class]),
		.latency_s = operations * hw_num_value(gpu ? &s->cost->gpu_kernel_s : &d->launch_s),
	};

	s->chain.last = exec_kernel(x, device, &work, s->chain.last, 0);
}

static void run_group(void *state, const struct place_group *g, enum model_group group, double share,
	double flops_per_param, double times)
{
	struct accelerate *s = state;
	const struct hw_machine *hw = s->chain.x->placement->machine;

	for (int i = 0; i < g->n; i++) {
		const struct place_part *part = &g->part[i];
		int device = part->spot.device;
		double bytes = (double)part->bytes * share;

		lower_move_to(&s->chain, device);
		/* The hook brings the module whole, whatever of it is used: all of an embedding for one row. */
		if (part->spot.mode == PLACE_STREAMED)
			fetch(s, part, hw->devices[device].memory, group == MODEL_EMBED ? (double)part->bytes : bytes,
				part->n_tensors * times);
		multiply(s, device, part->type, bytes, flops_per_param * (double)part->params,
			i == 0 ? group_operations[group] * times : 0);
	}
}

static void run_attention(void *state, const struct trace_access *read)
{
	struct accelerate *s = state;
	struct exec *x = s->chain.x;
	const struct placement *p = x->placement;
	const struct model_layer *l = &p->model->layers[read->layer];
	const struct place_spot *kv = &p->kv[read->layer];
	const struct hw_device *d = &p->machine->devices[kv->device];
	double entry = (double)kvcache_token_bytes(l, &p->kv_types);
	bool gpu = d->kind == HW_DEVICE_GPU;
	/* DynamicCache concatenates: what is held is read and written before it is read again. */
	struct platform_work work = {
		.bytes = 3 * entry * (double)read->kv_tokens,
		.flops = model_attention_flops(l, 1, read->kv_pairs),
		.dtype = gpu ? platform_dtype(d, p->kv_types.k) : HW_FP32,
		.read_share = hw_num_value(gpu ? &s->cost->gpu_attention : &s->cost->cpu_attention),
		.compute_share = hw_num_value(gpu ? &s->cost->gpu_multiply[COST_16BIT] :
						    &s->cost->cpu_multiply_many[COST_16BIT]),
		.latency_s = CACHE_OPERATIONS * hw_num_value(gpu ? &s->cost->gpu_kernel_s : &d->launch_s),
	};

	lower_move_to(&s->chain, kv->device);
	s->chain.last = exec_kernel(x, kv->device, &work, s->chain.last, 0);
}

static const struct lower_ops accelerate_walk = {run_group, run_attention};

static int accelerate_lower(struct exec *x, void *state, const struct trace_step *step, op_ref *last, struct err *err)
{
	struct accelerate *s = state;

	(void)err;
	lower_begin(&s->chain, x, step);
	lower_walk(&s->chain, s, &accelerate_walk);
	/* generate() picks the token on the host. */
	s->chain.last = exec_wait(x, hw_num_value(&s->cost->step_s), s->chain.last);
	*last = s->chain.last;
	return 0;
}

const struct engine_ops engine_accelerate = {
	.name = "accelerate",
	.version = "1",
	.help = "Hugging Face device_map: parameters are brought one by one before each use, nothing overlaps",
	.flag = accelerate_flag,
	.n_flags = ARRAY_LEN(accelerate_flag),
	.flags_size = sizeof(struct accelerate_flags),
	.ignored = accelerate_ignored,
	.n_ignored = ARRAY_LEN(accelerate_ignored),
	.kernels = "accelerate",
	.overheads = true,
	.place = accelerate_place,
	.state_new = accelerate_state_new,
	.lower = accelerate_lower,
};
