/*
 * accelerate.c - Hugging Face accelerate (16cb6eb8) under transformers' generate().
 *
 *	device_map   embed, layer 0, layer 1, … output are dealt to GPU 0 …, cpu, disk in order, never going back;
 *	             GPU 0 and the cpu keep room for the largest block that is still to come
 *	each use     host  [alloc]········waits········[launch][alloc]········waits···
 *	             link         [copy w_q, pageable]                [copy w_k
 *	             gpu                                  [kernel]
 *
 * What lies in "cpu" or "disk" is computed on the GPU all the same: a hook brings each parameter before its module runs
 * and drops it after, and the host waits for each copy. From disk it comes by way of the page cache. Nothing is
 * prefetched, so copies overlap with nothing. Every operation is launched from Python, which runs ahead of the GPU where
 * nothing is copied; with several devices (before 2023-07 with one, too) each module has a hook, which takes its time
 * whether it brings something or not. The KV cache stays where the layer is executed. What kernels reach is in
 * hw/kernels/accelerate.yaml.
 */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "models/kvcache.h"
#include "sim/engine/engine_table.h"
#include "sim/engine/transformers.h"
#include "sim/exec/bnb.h"
#include "sim/exec/files.h"
#include "sim/exec/kernel.h"
#include "sim/exec/lower.h"

#define HIDDEN_ELEMENT_BYTES 2
#define MAX_DEVICES 10
/* get_max_memory of one GPU leaves a tenth when the user gives none (modeling.py, get_balanced_memory). */
#define ONE_GPU_SHARE 0.9
/* What balancing adds to the mean share of a GPU, in blocks (get_balanced_memory). */
#define BALANCE_BLOCKS 1.25
/* Limits are advised in whole MiB. */
#define ADVICE_STEP 1048576.0

/* Since when a model on one device has none (pull request 1648). */
#define BUILD_NO_HOOKS "2023-07"

enum device_map { MAP_AUTO, MAP_BALANCED, MAP_SEQUENTIAL, MAP_CPU_OFFLOAD };
static const char *const map_choices[] = {"auto", "balanced", "sequential", "cpu_offload", NULL};

struct accelerate_flags {
	int device_map;
	struct yaml_node *max_memory;
	const char *offload_folder, *dtype, *build;
	int page_cache; /* enum files_at_start */
};

static const struct param accelerate_flag[] = {
	PARAM_CHOICE(struct accelerate_flags, device_map, "device_map", "auto", map_choices,
		"how layers are dealt to devices; cpu_offload: none stays on a GPU"),
	PARAM_NODE(struct accelerate_flags, max_memory, "max_memory",
		"{0: 22GiB, cpu: 64GiB}: how much of each device may be used; without it, what is free"),
	PARAM_TEXT(struct accelerate_flags, offload_folder, "offload_folder", "",
		"where layers go that fit neither; empty: none may"),
	PARAM_TEXT(struct accelerate_flags, dtype, "dtype", "", "element type; the scenario's quant is what counts"),
	PARAM_TEXT(struct accelerate_flags, build, "build", "2026-06",
		"year and month of what is installed: before " BUILD_NO_HOOKS " modules have hooks on one device too, before "
		TRANSFORMERS_BUILD_SDPA " attention no kernel; bitsandbytes changed"),
	FILES_FLAG(struct accelerate_flags, page_cache),
};

static const struct engine_alias accelerate_alias[] = {{"torch_dtype", "dtype"}};

/* Calls that decide where layers go (accelerate/utils/modeling.py, big_modeling.py). infer_auto_device_map takes max_memory as
   it is: balancing is get_balanced_memory's, which device_map="auto" calls before. */
static const char *const infer_arguments[] = {
	"", "max_memory", "no_split_module_classes", "dtype", "special_dtypes", "verbose", "clean_result", "offload_buffers",
	"fallback_allocation", NULL};
static const char *const from_pretrained_arguments[] = {"pretrained_model_name_or_path", "", NULL};
static const char *const dispatch_arguments[] = {"", "", "device_map", "max_memory", "no_split_module_classes",
	"offload_folder", "offload_buffers", "dtype", "offload_state_dict", NULL};
static const char *const cpu_offload_arguments[] = {"", "execution_device", "offload_buffers", NULL};
static const struct python_function accelerate_call[] = {
	{"infer_auto_device_map", infer_arguments, "device_map", "sequential", NULL},
	{"from_pretrained", from_pretrained_arguments, NULL, NULL, "pretrained_model_name_or_path"},
	{"load_checkpoint_and_dispatch", dispatch_arguments, NULL, NULL, NULL},
	{"cpu_offload", cpu_offload_arguments, "device_map", "cpu_offload", NULL},
};

static const struct engine_ignored accelerate_ignored[] = {
	{"no_split_module_classes", true}, {"offload_buffers", false}, {"low_cpu_mem_usage", false},
	{"offload_state_dict", false}, {"special_dtypes", true}, {"verbose", false},
	{"clean_result", false}, {"execution_device", true}, {"trust_remote_code", false}, {"attn_implementation", true},
	{"use_safetensors", false}, {"revision", true}, {"cache_dir", true}, {"token", true},
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

static int set_limit(struct plan *plan, const struct yaml_node *entry, struct err *err)
{
	const char *text, *key = entry->key;
	int gpu = 0, home = plan->n_gpus;
	double bytes;

	if (strcmp(key, "cpu") != 0) {
		while (isdigit((unsigned char)*key) && gpu < MAX_DEVICES)
			gpu = 10 * gpu + *key++ - '0';
		if (*key || key == entry->key || gpu >= plan->n_gpus)
			return err_at(err, ERR_INPUT, &entry->key_pos, "flag 'max_memory': no device '%s'; %s", entry->key,
				plan->n_gpus == 0 ? "cpu alone" : plan->n_gpus == 1 ? "0 or cpu" : "GPUs from 0 on, or cpu");
		home = gpu;
	}
	if (yaml_text(entry, &text, err))
		return err_prefix(err, "flag 'max_memory'");
	/* A plain number is one of bytes. */
	bool plain = *text && text[strspn(text, "0123456789")] == '\0';
	if (units_parse(text, plain ? UNIT_COUNT : UNIT_BYTES, &bytes, err) || bytes < 0) {
		struct err said = *err;
		return err_at(err, ERR_INPUT, &entry->pos, "flag 'max_memory': %s", said.msg);
	}
	plan->home[home].limit_bytes = bytes;
	plan->stated[home] = true;
	return 0;
}

/* {0: "22GiB", "cpu": "64GiB"}, as YAML has read it or as the text of a Python dict. */
static int parse_max_memory(struct plan *plan, struct arena *a, struct err *err)
{
	const struct yaml_node *node = plan->flags->max_memory;
	struct yaml_node *map;

	if (node && node->kind == YAML_SCALAR) {
		struct err_pos pos = node->pos;
		if (pos.col > 0)
			pos.col += node->quoted;
		if (python_value_parse(node->text, &pos, a, &map, err))
			return err_prefix(err, "flag 'max_memory'");
		node = map;
	}
	if (node && node->kind != YAML_MAP)
		return err_at(err, ERR_INPUT, &node->pos, "flag 'max_memory' must be {DEVICE: SIZE, ...}: {0: 22GiB, cpu: 64GiB}");
	for (const struct yaml_node *entry = node ? node->child : NULL; entry; entry = entry->next)
		if (set_limit(plan, entry, err))
			return -1;
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

/* What lies on disk is read from np.memmap in each pass (hooks.py, utils/offload.py: OffloadedWeightsLoader). */
static void book_files(const struct plan *plan, struct placement *p)
{
	int drive = hw_first_memory(p->machine, HW_MEMORY_DRIVE);
	double bytes = 0;

	for (int i = 0; i < p->model->n_tensors; i++)
		bytes += p->tensor[i].memory == drive ? (double)p->model->tensors[i].bytes : 0;
	files_book(p, drive, bytes, plan->flags->page_cache);
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
	book_files(plan, p);
}

static uint32_t layers_on_gpus(const struct plan *plan, const struct placement *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < plan->job->model->n_layer; i++)
		n += p->tensor[plan->job->model->layers[i].first_tensor].mode == PLACE_RESIDENT;
	return n;
}

/* With the limit of one GPU at so many bytes: do its cache and activations still fit, and how many layers are on GPUs? */
static bool try_limit(struct plan *plan, int gpu, double bytes, uint32_t *n_layers, struct arena *a)
{
	struct arena_mark mark = arena_mark(a);
	struct placement p;

	plan->home[gpu].limit_bytes = bytes;
	fill(plan, &p, a);
	*n_layers = layers_on_gpus(plan, &p);
	bool fits = ledger_missing(&p.ledger, plan->home[gpu].spot.memory) == 0;
	arena_rewind(a, mark);
	return fits;
}

/* The least limit of a GPU that puts as many layers on GPUs as any that fits; what the GPUs before it take is decided. */
static uint32_t best_limit(struct plan *plan, int gpu, struct arena *a)
{
	double low = 0, high = 2 * (double)plan->job->machine->memories[plan->home[gpu].spot.memory].capacity_bytes;
	uint32_t best, n;

	for (int i = 0; i < 40; i++)
		*(try_limit(plan, gpu, (low + high) / 2, &n, a) ? &low : &high) = (low + high) / 2;
	try_limit(plan, gpu, low, &best, a);
	high = low;
	low = 0;
	while (high - low > 0.5 * ADVICE_STEP) {
		if (try_limit(plan, gpu, (low + high) / 2, &n, a) && n == best)
			high = (low + high) / 2;
		else
			low = (low + high) / 2;
	}
	/* In whole steps, which is more by less than one. */
	double rounded = ceil(high / ADVICE_STEP) * ADVICE_STEP;
	if (!try_limit(plan, gpu, rounded, &n, a) || n != best)
		try_limit(plan, gpu, high, &n, a);
	return best;
}

/* The limits that leave room for cache and activations and no more: what a hand-written max_memory gains. */
static const char *advise(const struct plan *plan, const struct placement *p, struct arena *a)
{
	struct accelerate_flags flags = *plan->flags;
	bool none = flags.device_map == MAP_CPU_OFFLOAD;
	struct plan by_hand = *plan;
	uint32_t now = layers_on_gpus(plan, p), best = 0, all = plan->job->model->n_layer;
	const char *limits = "";

	if (plan->n_gpus == 0)
		return ledger_fits(&p->ledger) ? "" : "a shorter context, a smaller batch or a smaller type is needed";
	flags.device_map = none ? MAP_AUTO : flags.device_map;
	by_hand.flags = &flags;
	/* A GPU at a time: those behind it take nothing yet. */
	for (int g = 0; g < plan->n_gpus; g++)
		by_hand.home[g].limit_bytes = 0;
	for (int g = 0; g < plan->n_gpus; g++) {
		best = best_limit(&by_hand, g, a);
		limits = arena_printf(a, "%s%s%d: \"%.0fMiB\"", limits, g ? ", " : "", g,
			by_hand.home[g].limit_bytes / ADVICE_STEP);
	}
	bool fits = ledger_fits(&p->ledger);
	if (ledger_missing(&p->ledger, plan->home[plan->n_gpus].spot.memory) && !plan->flags->offload_folder[0])
		return "more RAM is needed, or a drive and offload_folder for what RAM does not hold";
	if (best <= now && fits)
		return arena_printf(a, "%u of %u layers are on the GPU%s, as many as fit", now, all, plan->n_gpus > 1 ? "s" : "");
	return arena_printf(a, "%smax_memory={%s} would put %u of %u layers on the GPU%s instead of %u",
		none ? "device_map=\"auto\", " : "", limits, best, all,
		plan->n_gpus > 1 ? "s" : "", now);
}

static int accelerate_place(const struct engine_job *job, struct placement *p, struct arena *a, struct err *err)
{
	struct plan plan;

	if (plan_init(&plan, job, err) || engine_check_build(plan.flags->build, err) || parse_max_memory(&plan, a, err))
		return -1;
	balance(&plan);
	fill(&plan, p, a);
	p->advice = advise(&plan, p, a);
	return 0;
}

struct accelerate {
	const struct cost *cost;
	struct lower chain;
	struct cost_team team; /* PyTorch runs a thread on each core of the CPU */
	int ram;
	bool hooked;           /* modules are */
	bool old;              /* attention is */
	struct bnb bnb;
	op_ref host;           /* what the thread that submits has done */
};

static bool is_dispatched(const struct placement *p)
{
	for (int i = 1; i < p->model->n_tensors; i++)
		if (p->tensor[i].memory != p->tensor[0].memory)
			return true;
	return p->tensor[0].mode == PLACE_STREAMED;
}

static void *accelerate_state_new(const struct engine_job *job, const struct placement *p, struct arena *a)
{
	struct accelerate *s = arena_new(a, struct accelerate);
	const struct accelerate_flags *flags = job->flags;

	s->cost = job->cost;
	s->ram = hw_first_memory(job->machine, HW_MEMORY_RAM);
	s->team = cost_cpu_team(&s->cost->cpu, p->machine,
		&p->machine->devices[hw_first_device(p->machine, HW_DEVICE_CPU)], 0, COST_UNBOUND);
	bnb_init(&s->bnb, job->cost, flags->build);
	s->chain.hidden_elem_bytes = HIDDEN_ELEMENT_BYTES;
	s->chain.crossing_s = hw_num_value(&s->cost->copy_submit_s);
	s->old = strcmp(flags->build, TRANSFORMERS_BUILD_SDPA) < 0;
	s->hooked = is_dispatched(p) || strcmp(flags->build, BUILD_NO_HOOKS) < 0;
	return s;
}

/* One part's tensors, one after another: allocated, copied from pageable memory (through it from disk), waited for. */
static void fetch(struct accelerate *s, const struct place_part *part, int to, double bytes, double n_tensors)
{
	struct exec *x = s->chain.x;
	const struct hw_machine *hw = x->placement->machine;
	double each_s = hw_num_value(&s->cost->gpu_alloc_s) + hw_num_value(&s->cost->copy_submit_s) +
		hw_num_value(&s->cost->gpu_sync_s);

	s->host = exec_wait(x, n_tensors * each_s, s->host);
	if (hw->memories[part->spot.memory].kind == HW_MEMORY_DRIVE)
		s->host = files_read(x, hw_num_value(&s->cost->page_cache_bytes_s), s->chain.step->index, bytes, s->host, 0);
	s->host = s->chain.last = exec_copy(x, s->ram, to, bytes, false, s->host, s->chain.last);
}

/* The thread hands so many operations to a GPU; on the CPU it does them itself. */
static void submit(struct accelerate *s, int device, double operations)
{
	struct exec *x = s->chain.x;
	bool cpu = x->placement->machine->devices[device].kind == HW_DEVICE_CPU;

	s->host = exec_wait(x, operations * hw_num_value(&s->cost->host_op_s), cpu ? s->chain.last : s->host);
}

static void launch(struct accelerate *s, int device, const struct platform_work *work)
{
	s->chain.last = exec_kernel(s->chain.x, device, work, s->chain.last, s->host);
}

static struct kernel_place on_device(const struct accelerate *s, int device)
{
	const struct hw_machine *hw = s->chain.x->placement->machine;

	return (struct kernel_place){s->cost, hw, &hw->devices[device], s->team, true, false};
}

/* So many times, what it has launched so far is done. */
static void wait_for_gpu(struct accelerate *s, double times)
{
	s->host = exec_wait(s->chain.x, times * hw_num_value(&s->cost->gpu_sync_s),
		exec_join(s->chain.x, s->host, s->chain.last));
}

static void expand(struct accelerate *s, int device, double bytes, double params)
{
	struct platform_work work = bnb_expand(&s->bnb, bytes, params);

	launch(s, device, &work);
}

static void run_group(void *state, const struct place_group *g, enum model_group group, double share,
	double flops_per_param, double times)
{
	struct accelerate *s = state;
	const struct hw_machine *hw = s->chain.x->placement->machine;

	for (int i = 0; i < g->n; i++) {
		const struct place_part *part = &g->part[i];
		int device = part->spot.device;
		double bytes = (double)part->bytes * share, operations = i == 0 ? transformers_operations[group] * times : 0;

		lower_move_to(&s->chain, device);
		/* The hook brings the module whole, whatever of it is used: all of an embedding for one row. */
		if (part->spot.mode == PLACE_STREAMED)
			fetch(s, part, hw->devices[device].memory, group == MODEL_EMBED ? (double)part->bytes : bytes,
				part->n_tensors * times);
		double n = part->n_matrices * times, params = (double)part->params;
		struct bnb_layer bnb = bnb_layer(&s->bnb, part->type, flops_per_param / 2 / share);
		if (bnb.waits)
			wait_for_gpu(s, n);
		double hooks = s->hooked ? part->n_tensors * times * hw_num_value(&s->cost->hook_operations) : 0;
		submit(s, device, operations + bnb.operations * n + hooks);
		if (bnb.expands)
			expand(s, device, bytes, params * share);
		struct kernel_place where = on_device(s, device);
		struct platform_work work = kernel_multiply(&where, bnb.expands ? quant_f16() : part->type,
			bnb.expands ? HIDDEN_ELEMENT_BYTES * params * share : bytes, flops_per_param * params, operations,
			COST_TOGETHER);
		launch(s, device, &work);
	}
}

static void run_attention(void *state, const struct trace_access *read)
{
	struct accelerate *s = state;
	struct exec *x = s->chain.x;
	const struct placement *p = x->placement;
	const struct model_layer *l = &p->model->layers[read->layer];
	const struct place_spot *kv = &p->kv[read->layer];
	double entry = (double)kvcache_token_bytes(l, &p->kv_types);
	struct kernel_place where = on_device(s, kv->device);
	double scores = s->old ? (double)read->tokens * (double)read->kv_tokens / (double)s->chain.step->n_sequences * l->n_head : 0;
	int operations = TRANSFORMERS_CACHE_OPERATIONS + (s->old ? TRANSFORMERS_OLD_OPERATIONS : 0);
	/* DynamicCache concatenates: what is held is read and written before it is read again. */
	struct platform_work work = kernel_attention(&where, l, &p->kv_types,
		3 * entry * (double)read->kv_tokens + scores * hw_num_value(&s->cost->scores), read->kv_pairs, (double)read->tokens);

	work.latency_s *= operations;
	lower_move_to(&s->chain, kv->device);
	submit(s, kv->device, operations);
	launch(s, kv->device, &work);
}

static const struct lower_ops accelerate_walk = {run_group, run_attention};

static int accelerate_lower(struct exec *x, void *state, const struct trace_step *step, op_ref *last, struct err *err)
{
	struct accelerate *s = state;

	(void)err;
	lower_begin(&s->chain, x, step);
	s->host = x->step_end;
	lower_walk(&s->chain, s, &accelerate_walk);
	/* generate() picks the token on the host. */
	s->chain.last = exec_wait(x, hw_num_value(&s->cost->step_s), exec_join(x, s->chain.last, s->host));
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
	.alias = accelerate_alias,
	.n_aliases = ARRAY_LEN(accelerate_alias),
	.ignored = accelerate_ignored,
	.n_ignored = ARRAY_LEN(accelerate_ignored),
	.call = accelerate_call,
	.n_calls = ARRAY_LEN(accelerate_call),
	.kernels = "accelerate",
	.overheads = true,
	.place = accelerate_place,
	.state_new = accelerate_state_new,
	.lower = accelerate_lower,
};
