/*
 * expertcache.c - an engine for mixtures of experts that keeps some experts near and fetches the others when a token asks
 * for them: the scheme of mixtral-offloading (ce54518), MoE-Infinity (d617801) and the caches added to llama.cpp.
 *
 *	GPU      [attn][kv][router]─ids─┬─[experts that are there]──────┬─[experts that came]─ next layer
 *	link            (ahead: l)      ├─[copy missed]─[copy missed]───┘ [ahead: l + 1]
 *	CPU                             └─[experts computed where they are]─ (joined; copied behind for the next time)
 *
 * Everything but the routed experts lives on the GPU (without one: in RAM, with the CPU). Experts have their home in RAM
 * or on the drive. Caches stand before the home: in GPU memory, in RAM, or both. The router's choice reaches the
 * host before anything can be looked up, so each layer has a synchronisation. A miss is copied, computed by the CPU, or
 * both are split so that they end together; every miss comes into the cache unless the policy's set is fixed.
 */
#include <math.h>
#include <string.h>

#include "models/kvcache.h"
#include "sim/cache/expert_plan.h"
#include "sim/engine/engine_table.h"
#include "sim/exec/kernel.h"
#include "sim/exec/lower.h"

#define HIDDEN_ELEMENT_BYTES 2
/* Kernels of a group on a GPU, tasks on a CPU, as llama.cpp's graph has them (see llamacpp.c). */
static const int group_nodes[MODEL_GROUP_N] = {
	[MODEL_EMBED] = 1,
	[MODEL_ATTN] = 11,
	[MODEL_FFN] = 6,
	[MODEL_ROUTER] = 7,
	[MODEL_SHARED] = 4,
	[MODEL_EXPERTS] = 6,
	[MODEL_OUTPUT] = 3,
};

enum miss { MISS_COPY, MISS_CPU, MISS_SPLIT };
static const char *const miss_choices[] = {"copy", "cpu", "split", NULL};
static const char *const scope_choices[] = {[CACHE_GLOBAL] = "global", [CACHE_LAYER] = "layer", NULL};

struct expertcache_flags {
	const char *gpu_cache, *ram_cache, *policy, *kv_type;
	uint64_t gpu_slots, ram_slots, ub;
	int scope, miss;
	double lookahead;
};

static const struct param expertcache_flag[] = {
	PARAM_TEXT(struct expertcache_flags, gpu_cache, "gpu-cache", "auto",
		"GPU memory for experts: a size, 0, or auto for what is left"),
	PARAM_COUNT(struct expertcache_flags, gpu_slots, "gpu-slots", "0", 0, 65536,
		"the same as experts a layer; 0: gpu-cache says"),
	PARAM_TEXT(struct expertcache_flags, ram_cache, "ram-cache", "auto",
		"RAM for experts: a size with the others on the drive, all, or auto for all if they fit"),
	PARAM_COUNT(struct expertcache_flags, ram_slots, "ram-slots", "0", 0, 65536,
		"the same as experts a layer; 0: ram-cache says"),
	PARAM_TEXT(struct expertcache_flags, policy, "policy", "lru", "who leaves: lru, lfu, static, belady"),
	PARAM_CHOICE(struct expertcache_flags, scope, "scope", "global", scope_choices,
		"layers share a cache, or each has its part (slots always do)"),
	PARAM_REAL(struct expertcache_flags, lookahead, "lookahead", UNIT_FRACTION, "0", 0, 1,
		"share of a layer's experts that are guessed right one layer ahead and fetched; 0: none is guessed"),
	PARAM_CHOICE(struct expertcache_flags, miss, "miss", "copy", miss_choices,
		"an expert that is not in GPU memory is copied there, computed by the CPU, or some of each"),
	PARAM_COUNT(struct expertcache_flags, ub, "ub", "512", 1, 1e6, "rows of one pass over the weights"),
	PARAM_TEXT(struct expertcache_flags, kv_type, "kv-type", "f16", "element type of the KV cache"),
};

/* Where things are: indices into the machine, -1 where there is none. */
struct plan {
	struct engine_job job;
	const struct expertcache_flags *flags;
	const struct cache_ops *policy;
	int cpu, gpu, ram, drive;
	int device;      /* that computes all but what is missed */
	int near_memory; /* of that device */
	int home;        /* memory where every expert is */
	uint32_t n_with_experts;
	uint64_t expert_bytes, largest_expert_bytes; /* of all; of one */
	uint64_t gpu_budget_bytes, ram_budget_bytes; /* 0: no cache there */
	struct expert_plan *experts; /* NULL: no cache at all */
};

static struct place_spot dense_spot(const struct plan *plan, const struct model_tensor *t)
{
	int device = t->group == MODEL_EMBED ? plan->cpu : plan->device;

	return (struct place_spot){(int16_t)plan->job.machine->devices[device].memory, (int16_t)device, PLACE_RESIDENT};
}

static void fill(const struct plan *plan, const struct kvcache_types *kv_types, struct placement *p, struct arena *a)
{
	const struct model *m = plan->job.model;
	const struct trace_workload *w = &plan->job.trace->workload;
	uint64_t rows = plan->job.trace->rows_max > w->batch ? plan->job.trace->rows_max : w->batch;
	int misses_on = plan->flags->miss == MISS_COPY ? plan->device : plan->cpu;

	place_init(p, m, plan->job.machine, a);
	p->kv_types = *kv_types;
	p->kv_context = trace_max_context(plan->job.trace);
	p->kv_sequences = w->batch;
	for (int i = 0; i < m->n_tensors; i++)
		p->tensor[i] = m->tensors[i].group == MODEL_EXPERTS ?
			(struct place_spot){(int16_t)plan->home, (int16_t)misses_on, PLACE_CACHED} :
			dense_spot(plan, &m->tensors[i]);
	for (uint32_t i = 0; i < m->n_layer; i++)
		p->kv[i] = (struct place_spot){(int16_t)plan->near_memory, (int16_t)plan->device, PLACE_RESIDENT};
	place_finish(p);
	ledger_book(&p->ledger, plan->near_memory, LEDGER_ACTIVATION, "compute buffer",
		model_activation_bytes(m, rows, w->batch, HIDDEN_ELEMENT_BYTES));
	if (plan->gpu >= 0)
		ledger_book(&p->ledger, plan->near_memory, LEDGER_OVERHEAD, "experts on their way",
			2 * plan->largest_expert_bytes);
	ledger_book(&p->ledger, plan->near_memory, LEDGER_WEIGHTS, "expert cache", plan->gpu_budget_bytes);
	ledger_book(&p->ledger, plan->ram, LEDGER_WEIGHTS, "expert cache", plan->ram_budget_bytes);
	p->uneven = true;
	p->cache_device = (int16_t)plan->device;
}

/* A size, or one of two words. */
static int parse_size(const char *flag, const char *text, const char *word, bool *is_word, uint64_t *bytes,
	struct err *err)
{
	double n = 0;

	*is_word = strcmp(text, "auto") == 0 || (word && strcmp(text, word) == 0);
	if (!*is_word && strcmp(text, "0") != 0 && (units_parse(text, UNIT_BYTES, &n, NULL) || n < 0))
		return err_set(err, ERR_INPUT, "flag '%s' must be a size such as 8GiB, 0%s%s or auto, not '%s'", flag,
			word ? ", " : "", word ? word : "", text);
	*bytes = n < 0x1p63 ? (uint64_t)n : UINT64_C(1) << 63; /* more than any machine has */
	return 0;
}

static uint64_t at_most(uint64_t n, uint64_t limit)
{
	return n < limit ? n : limit;
}

/* What so many slots in each layer take; no layer has more than it has experts. */
static uint64_t slots_bytes(const struct plan *plan, uint64_t slots)
{
	const struct model *m = plan->job.model;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < m->n_layer; i++)
		if (m->layers[i].n_expert)
			sum += m->layers[i].group[MODEL_EXPERTS].bytes / m->layers[i].n_expert *
				at_most(slots, m->layers[i].n_expert);
	return sum;
}

static uint64_t left(const struct plan *plan, const struct kvcache_types *kv, int memory, struct arena *a)
{
	struct arena_mark mark = arena_mark(a);
	struct placement p;

	fill(plan, kv, &p, a);
	uint64_t bytes = at_most(ledger_free(&p.ledger, memory), plan->expert_bytes);
	arena_rewind(a, mark);
	return bytes;
}

static bool fits_in_ram(const struct plan *plan, const struct kvcache_types *kv, struct arena *a)
{
	struct arena_mark mark = arena_mark(a);
	struct placement p;

	fill(plan, kv, &p, a);
	bool fits = ledger_missing(&p.ledger, plan->ram) == 0;
	arena_rewind(a, mark);
	return fits;
}

/* Home and sizes. First what RAM does, then what is left on the GPU. */
static int decide(struct plan *plan, const struct kvcache_types *kv, struct arena *a, struct err *err)
{
	const struct expertcache_flags *f = plan->flags;
	uint64_t ram_bytes, gpu_bytes;
	bool ram_word, gpu_auto;

	if (parse_size("ram-cache", f->ram_cache, "all", &ram_word, &ram_bytes, err) ||
		parse_size("gpu-cache", f->gpu_cache, NULL, &gpu_auto, &gpu_bytes, err))
		return -1;
	if (f->ram_slots && strcmp(f->ram_cache, "auto") != 0)
		return err_set(err, ERR_INPUT, "ram-cache and ram-slots both say how large the cache in RAM is: give one");
	if (f->gpu_slots && !gpu_auto)
		return err_set(err, ERR_INPUT, "gpu-cache and gpu-slots both say how large the cache on the GPU is: give one");
	plan->home = plan->ram;
	if (f->ram_slots || !ram_word) {
		if (plan->drive < 0)
			return err_set(err, ERR_INPUT, "a RAM cache needs a drive behind it: the machine has none");
		plan->home = plan->drive;
		plan->ram_budget_bytes = f->ram_slots ? slots_bytes(plan, f->ram_slots) : at_most(ram_bytes, plan->expert_bytes);
	} else if (strcmp(f->ram_cache, "auto") == 0 && plan->drive >= 0 && !fits_in_ram(plan, kv, a)) {
		plan->home = plan->drive;
		plan->ram_budget_bytes = left(plan, kv, plan->ram, a);
	}
	if (plan->gpu < 0)
		return f->gpu_slots || gpu_bytes ? err_set(err, ERR_INPUT, "the machine has no GPU memory for a cache") : 0;
	if (f->gpu_slots)
		plan->gpu_budget_bytes = slots_bytes(plan, f->gpu_slots);
	else
		plan->gpu_budget_bytes = gpu_auto ? left(plan, kv, plan->near_memory, a) : at_most(gpu_bytes, plan->expert_bytes);
	return 0;
}

static enum cache_scope scope(const struct plan *plan, uint64_t slots)
{
	return slots > 0 ? CACHE_LAYER : (enum cache_scope)plan->flags->scope;
}

/* Runs the trace through the caches. */
static int make_experts(struct plan *plan, struct placement *p, struct arena *a, struct err *err)
{
	const struct hw_machine *hw = plan->job.machine;
	struct expert_level gpu = {hw->memories[plan->near_memory].name, plan->policy, scope(plan, plan->flags->gpu_slots),
		plan->gpu_budget_bytes, (uint32_t)plan->flags->gpu_slots};
	struct expert_level ram = {hw->memories[plan->ram].name, plan->policy, scope(plan, plan->flags->ram_slots),
		plan->ram_budget_bytes, (uint32_t)plan->flags->ram_slots};
	struct expert_plan_config config = {.lookahead = plan->flags->lookahead, .seed = plan->job.seed};
	int n = 0;

	if (plan->gpu_budget_bytes) {
		p->cached[n].memory = (int16_t)plan->near_memory;
		config.level[n++] = gpu;
	}
	if (plan->ram_budget_bytes) {
		p->cached[n].memory = (int16_t)plan->ram;
		config.level[n++] = ram;
	}
	if (n == 0)
		return 0;
	if (expert_plan_make(plan->job.trace, &config, a, &plan->experts, err))
		return -1;
	p->experts = plan->experts;
	p->n_cached = n;
	for (int i = 0; i < n; i++)
		p->cached[i].share = expert_plan_held_share(plan->experts, i, TRACE_DECODE);
	return 0;
}

static const char *advise(const struct plan *plan, const struct placement *p, struct arena *a)
{
	char size[32];

	if (!ledger_fits(&p->ledger))
		return "a smaller cache, a shorter context or a smaller type is needed";
	if (plan->gpu < 0 || plan->gpu_budget_bytes >= plan->expert_bytes)
		return plan->gpu < 0 ? "" : "all experts fit in GPU memory";
	uint64_t more = ledger_free(&p->ledger, plan->near_memory);
	if (more < plan->largest_expert_bytes)
		return "no further expert fits in GPU memory";
	units_format(size, sizeof(size), (double)(plan->gpu_budget_bytes + more), UNIT_BYTES);
	return arena_printf(a, "experts would have more room in GPU memory: gpu-cache up to %s", size);
}

static int expertcache_place(const struct engine_job *job, struct placement *p, struct arena *a, struct err *err)
{
	const struct expertcache_flags *flags = job->flags;
	const struct hw_machine *hw = job->machine;
	const struct quant_type *kv_type;
	struct plan *plan = arena_new(a, struct plan);

	*plan = (struct plan){
		.job = *job,
		.flags = flags,
		.cpu = hw_first_device(hw, HW_DEVICE_CPU),
		.gpu = hw_first_device(hw, HW_DEVICE_GPU),
		.ram = hw_first_memory(hw, HW_MEMORY_RAM),
		.drive = hw_first_memory(hw, HW_MEMORY_DRIVE),
	};

	/* A GPU that computes from RAM has nothing to cache in. */
	if (plan->gpu >= 0 && hw->devices[plan->gpu].memory == plan->ram)
		return err_set(err, ERR_INPUT, "CPU and GPU of '%s' share one memory: there is nothing to cache", hw->name);
	plan->device = plan->gpu >= 0 ? plan->gpu : plan->cpu;
	plan->near_memory = hw->devices[plan->device].memory;
	for (uint32_t i = 0; i < job->model->n_layer; i++) {
		const struct model_layer *l = &job->model->layers[i];
		uint64_t one = l->n_expert ? l->group[MODEL_EXPERTS].bytes / l->n_expert : 0;
		plan->n_with_experts += one > 0;
		plan->expert_bytes += one * l->n_expert;
		if (one > plan->largest_expert_bytes)
			plan->largest_expert_bytes = one;
	}
	if (plan->n_with_experts == 0)
		return err_set(err, ERR_INPUT, "model '%s' has no routed experts to cache", job->model->name);
	if (quant_get(flags->kv_type, &kv_type, err))
		return err_prefix(err, "flag 'kv-type'");
	if (!kv_type->kv)
		return err_set(err, ERR_INPUT, "flag 'kv-type': '%s' is no type of KV cache", kv_type->name);
	if (cache_policy_find(flags->policy, NULL, &plan->policy, err))
		return err_prefix(err, "flag 'policy'");
	if (decide(plan, KVCACHE_SAME(kv_type), a, err))
		return -1;
	fill(plan, KVCACHE_SAME(kv_type), p, a);
	p->advice = advise(plan, p, a);
	p->engine = plan;
	return ledger_fits(&p->ledger) ? make_experts(plan, p, a, err) : 0;
}

static uint64_t expertcache_prefill_rows(const void *flags, const struct hw_machine *machine)
{
	(void)machine;
	return ((const struct expertcache_flags *)flags)->ub;
}

struct expertcache {
	const struct plan *plan;
	const struct cost *cost;
	struct cost_team team; /* of the CPU: a thread on each core */
	op_ref ahead;   /* copies for the layer that comes next */
	struct lower chain;
};

static void *expertcache_state_new(const struct engine_job *job, const struct placement *p, struct arena *a)
{
	struct expertcache *s = arena_new(a, struct expertcache);

	s->plan = p->engine;
	s->cost = job->cost;
	s->team = cost_cpu_team(&s->cost->cpu, p->machine,
		&p->machine->devices[hw_first_device(p->machine, HW_DEVICE_CPU)], 0, COST_UNBOUND);
	s->chain.hidden_elem_bytes = HIDDEN_ELEMENT_BYTES;
	s->chain.crossing_s = hw_num_value(&s->cost->gpu_sync_s) + hw_num_value(&s->cost->copy_submit_s);
	return s;
}

static op_ref multiply(const struct expertcache *s, int device, const struct place_part *part, double bytes, double flops,
	enum model_group group, op_ref after, op_ref after2)
{
	struct exec *x = s->chain.x;
	struct kernel_place where = {
		s->cost, x->placement->machine, &x->placement->machine->devices[device], s->team, false, false};
	struct platform_work work = kernel_multiply(&where, part->type, bytes, flops, group_nodes[group],
		group == MODEL_EXPERTS ? COST_ONE_BY_ONE : COST_TOGETHER);

	return exec_kernel(x, device, &work, after, after2);
}

/* So many experts from memory to memory, one copy each, submitted one after another. */
static op_ref fetch(const struct expertcache *s, int from, int to, uint32_t n, double expert_bytes, op_ref after)
{
	struct exec *x = s->chain.x;
	op_ref last = after;

	for (uint32_t i = 0; i < n; i++)
		last = exec_join(x, last, exec_copy(x, from, to, expert_bytes, true,
			exec_wait(x, hw_num_value(&s->cost->copy_submit_s), after), 0));
	return last;
}

/* Where experts are before they are used. */
struct whereabouts {
	uint32_t on_gpu, in_ram, on_drive;
};

/* Level 0 is GPU memory if there is a cache, else RAM; what is missed everywhere is at home. */
static struct whereabouts locate(const struct plan *plan, uint32_t hit, uint32_t near, uint32_t far)
{
	if (!plan->gpu_budget_bytes)
		return (struct whereabouts){.in_ram = hit, .on_drive = near};
	if (plan->ram_budget_bytes || plan->home == plan->ram)
		return (struct whereabouts){hit, near, far};
	return (struct whereabouts){.on_gpu = hit, .on_drive = near};
}

/* All into one memory; what comes from the drive to the GPU is read into RAM first. held: when what is in RAM is there. */
static op_ref bring(const struct expertcache *s, int to, uint32_t from_ram, uint32_t from_drive, double expert_bytes,
	op_ref after, op_ref held)
{
	const struct plan *plan = s->plan;
	op_ref there = after;

	if (from_drive) {
		there = fetch(s, plan->drive, plan->ram, from_drive, expert_bytes, after);
		if (to != plan->ram)
			there = fetch(s, plan->ram, to, from_drive, expert_bytes, there);
	}
	return to == plan->ram ? there :
				 exec_join(s->chain.x, there, fetch(s, plan->ram, to, from_ram, expert_bytes, held));
}

/* Of n missed experts, those that are copied; the CPU computes the others meanwhile, so that both end together. */
static uint32_t to_copy(const struct expertcache *s, uint32_t n, double expert_bytes)
{
	const struct hw_machine *hw = s->chain.x->placement->machine;
	const struct hw_link *link;
	int route[HW_MAX_HOPS];
	bool forward[HW_MAX_HOPS];

	if (n == 0 || s->plan->gpu < 0 || s->plan->flags->miss == MISS_CPU)
		return 0;
	if (s->plan->flags->miss == MISS_COPY)
		return n;
	if (hw_route(hw, s->plan->ram, s->plan->near_memory, route, forward) != 1)
		BUG("no link between RAM and GPU");
	link = &hw->links[route[0]];
	double copy_s = hw_num_value(&s->cost->copy_submit_s) + expert_bytes / hw_rate_at(&link->h2d, expert_bytes);
	double cpu_s = expert_bytes / s->team.dram_bytes_s;
	return (uint32_t)lround(n * cpu_s / (copy_s + cpu_s));
}

/* The CPU takes hidden states, computes with what is in RAM, and gives them back. */
static op_ref compute_on_cpu(const struct expertcache *s, const struct place_part *part, uint32_t n, double expert_bytes,
	double flops, op_ref after)
{
	struct exec *x = s->chain.x;
	const struct plan *plan = s->plan;
	double hidden = (double)s->chain.step->n_tokens * x->placement->model->hidden * HIDDEN_ELEMENT_BYTES;

	exec_moves(x, EXEC_HIDDEN);
	if (plan->gpu >= 0)
		after = exec_copy(x, plan->near_memory, plan->ram, hidden, true, after, 0);
	exec_moves(x, EXEC_WEIGHTS);
	after = multiply(s, plan->cpu, part, n * expert_bytes, flops, MODEL_EXPERTS, after, 0);
	exec_moves(x, EXEC_HIDDEN);
	if (plan->gpu >= 0)
		after = exec_copy(x, plan->ram, plan->near_memory, hidden, true,
			exec_wait(x, s->chain.crossing_s, after), 0);
	exec_moves(x, EXEC_WEIGHTS);
	return after;
}

/* The next layer with experts, in this step; -1: none. */
static int next_layer(const struct model *m, int layer)
{
	for (int i = layer + 1; i < (int)m->n_layer; i++)
		if (m->layers[i].n_expert && !m->layers[i].draft)
			return i;
	return -1;
}

/* Into level 0. */
static void fetch_ahead(struct expertcache *s, int layer, op_ref after)
{
	const struct plan *plan = s->plan;

	s->ahead = 0;
	if (layer < 0 || !plan->experts)
		return;
	const struct expert_found *f = expert_plan_at(plan->experts, s->chain.step->index, layer);
	const struct model_layer *l = &s->chain.x->placement->model->layers[layer];
	struct whereabouts from = locate(plan, 0, f->ahead_near, f->ahead_far);
	s->ahead = bring(s, plan->gpu_budget_bytes ? plan->near_memory : plan->ram, from.in_ram, from.on_drive,
		(double)(l->group[MODEL_EXPERTS].bytes / l->n_expert), after, after);
}

/* What is missed on the GPU: some is copied there, the CPU computes with the others. Returns when all is done. */
static op_ref run_missed(const struct expertcache *s, const struct place_part *part, struct whereabouts at, double one,
	double one_flops, op_ref chosen, op_ref done)
{
	const struct plan *plan = s->plan;
	uint32_t n_copy = to_copy(s, at.in_ram + at.on_drive, one);
	/* What must be read is copied rather than computed with. */
	uint32_t copy_read = n_copy < at.on_drive ? n_copy : at.on_drive, cpu_read = at.on_drive - copy_read;
	uint32_t cpu_held = at.in_ram - (n_copy - copy_read);

	/* What is in RAM may be on its way there: read ahead. */
	op_ref held = plan->gpu_budget_bytes ? chosen : exec_join(s->chain.x, chosen, s->ahead);

	if (n_copy) {
		op_ref there = bring(s, plan->near_memory, n_copy - copy_read, copy_read, one, chosen, held);
		done = multiply(s, plan->device, part, n_copy * one, n_copy * one_flops, MODEL_EXPERTS, there, done);
	}
	if (cpu_held)
		done = exec_join(s->chain.x, done, compute_on_cpu(s, part, cpu_held, one, cpu_held * one_flops, held));
	if (cpu_read) {
		op_ref in_ram = fetch(s, plan->drive, plan->ram, cpu_read, one, chosen);
		done = exec_join(s->chain.x, done, compute_on_cpu(s, part, cpu_read, one, cpu_read * one_flops, in_ram));
	}
	/* Behind the computation, for the next time. */
	if (plan->gpu_budget_bytes && !plan->policy->needs_popularity)
		fetch(s, plan->ram, plan->near_memory, cpu_held + cpu_read, one, done);
	return done;
}

/* The experts of a layer: n_used of them, with `flops` in all. */
static void run_experts(struct expertcache *s, const struct place_part *part, int layer, uint32_t n_used, double flops)
{
	struct exec *x = s->chain.x;
	const struct plan *plan = s->plan;
	struct whereabouts at = plan->home == plan->ram ? (struct whereabouts){.in_ram = n_used} :
							  (struct whereabouts){.on_drive = n_used};
	double one = (double)part->bytes / x->placement->model->layers[layer].n_expert, one_flops = flops / n_used;
	op_ref chosen = s->chain.last, done;

	if (plan->experts) {
		const struct expert_found *f = expert_plan_at(plan->experts, s->chain.step->index, layer);
		at = locate(plan, f->hit, f->near, f->far);
	}
	/* The choice reaches the host. */
	if (plan->gpu >= 0)
		chosen = exec_wait(x, hw_num_value(&s->cost->gpu_sync_s), chosen);
	done = chosen;
	if (at.on_gpu)
		done = multiply(s, plan->device, part, at.on_gpu * one, at.on_gpu * one_flops, MODEL_EXPERTS, chosen, s->ahead);
	s->chain.last = run_missed(s, part, at, one, one_flops, chosen, done);
	fetch_ahead(s, next_layer(x->placement->model, layer), chosen);
}

static void run_group(void *state, const struct place_group *g, enum model_group group, double share,
	double flops_per_param, double times)
{
	struct expertcache *s = state;

	for (int i = 0; i < g->n; i++) {
		const struct place_part *part = &g->part[i];
		double flops = flops_per_param * (double)part->params;

		if (group == MODEL_EXPERTS) {
			run_experts(s, part, exec_tag_layer(s->chain.x->label), (uint32_t)times, flops);
			continue;
		}
		lower_move_to(&s->chain, part->spot.device);
		s->chain.last = multiply(s, part->spot.device, part, (double)part->bytes * share, flops, group,
			s->chain.last, 0);
	}
}

static void run_attention(void *state, const struct trace_access *read)
{
	struct expertcache *s = state;
	struct exec *x = s->chain.x;
	const struct placement *p = x->placement;
	const struct model_layer *l = &p->model->layers[read->layer];
	double entry = (double)kvcache_token_bytes(l, &p->kv_types);
	struct kernel_place where = {
		s->cost, p->machine, &p->machine->devices[p->kv[read->layer].device], s->team, false, false};
	struct platform_work work = kernel_attention(&where, l, &p->kv_types,
		entry * (double)(read->kv_tokens + read->tokens), read->kv_pairs, (double)read->tokens);

	lower_move_to(&s->chain, p->kv[read->layer].device);
	s->chain.last = exec_kernel(x, s->chain.device, &work, s->chain.last, 0);
}

static const struct lower_ops expertcache_walk = {run_group, run_attention};

static int expertcache_lower(struct exec *x, void *state, const struct trace_step *step, op_ref *last, struct err *err)
{
	struct expertcache *s = state;

	(void)err;
	lower_begin(&s->chain, x, step);
	fetch_ahead(s, next_layer(x->placement->model, -1), s->chain.last);
	lower_walk(&s->chain, s, &expertcache_walk);
	*last = exec_wait(x, (s->plan->gpu >= 0 ? hw_num_value(&s->cost->gpu_sync_s) : 0) +
			hw_num_value(&s->cost->step_s), s->chain.last);
	return 0;
}

const struct engine_ops engine_expertcache = {
	.name = "expert-cache",
	.version = "2",
	.help = "experts in caches on the GPU over RAM, in RAM over a drive: policies, look-ahead, who computes a miss",
	.flag = expertcache_flag,
	.n_flags = ARRAY_LEN(expertcache_flag),
	.flags_size = sizeof(struct expertcache_flags),
	.kernels = "llama.cpp",
	.overheads = true,
	.prefill_rows = expertcache_prefill_rows,
	.place = expertcache_place,
	.state_new = expertcache_state_new,
	.lower = expertcache_lower,
};
