/*
 * fiddler.c - Fiddler (227715b, src/fiddler/mixtral.py): experts where they lie, or brought, whichever its table says is less.
 *
 *	gpu   [attention][router] sync [resident experts]          [placeholder]
 *	link                           weights of one expert ──────┘        or   hidden states ─┐      ┌─ results
 *	cpu                                                                                     [expert]
 *
 * All but routed experts is on the GPU, and so many of these, the most popular ones, that 0.95 of its memory is used. Of the
 * others each is computed on the CPU or copied, from pageable memory, into one placeholder: what costs less by 7 ms a token
 * and 70 ms a copy. One expert after another, first those on the GPU, and the host waits for each. The CPU reads an expert's
 * weights anew for each token, with 16 threads. Experts are taken to be equally popular. What kernels reach is in
 * hw/kernels/pytorch.yaml.
 */
#include "models/kvcache.h"
#include "sim/engine/divide.h"
#include "sim/engine/transformers.h"
#include "sim/exec/kernel.h"

#define HIDDEN_ELEMENT_BYTES 2
#define GPU_SHARE 0.95
/* FiddlerMixtral: latency_cpu of a token, latency_gpu of an expert; set_num_threads. */
#define TOKEN_ON_CPU_MS 7
#define COPY_MS 70
#define THREADS 16
#define TENSORS_OF_EXPERT 3

/* Of each expert, hit or not: where it is, two lists, rows gathered, the expert, rows added. */
#define EXPERT_OPERATIONS 14

struct fiddler_flags {
	uint64_t beam;
	bool cpu_offload;
};

static const struct param fiddler_flag[] = {
	PARAM_FLAG(struct fiddler_flags, cpu_offload, "cpu-offload", "yes", "no: experts are always copied, never computed on the CPU"),
	PARAM_COUNT(struct fiddler_flags, beam, "beam-width", "1", 1, 1, "one beam is modelled"),
};

static const struct engine_ignored fiddler_ignored[] = {{"model", true}, {"input", true}, {"n-token", true}};

static uint64_t expert_bytes(const struct model *m, uint64_t *n_experts, uint64_t *largest)
{
	uint64_t all = 0;

	*n_experts = *largest = 0;
	for (uint32_t i = 0; i < m->n_layer; i++) {
		const struct model_layer *l = &m->layers[i];
		uint64_t one = l->n_expert ? model_expert_bytes(l) : 0;
		*n_experts += l->n_expert;
		all += l->n_expert * one;
		*largest = one > *largest ? one : *largest;
	}
	return all;
}

static int fiddler_place(const struct engine_job *job, struct placement *p, struct arena *a, struct err *err)
{
	const struct hw_machine *hw = job->machine;
	const struct trace_workload *w = &job->trace->workload;
	uint64_t n_experts, largest, all = expert_bytes(job->model, &n_experts, &largest);
	uint64_t rows = w->batch * (w->prompt ? w->prompt : 1);
	int cpu = hw_first_device(hw, HW_DEVICE_CPU), ram = hw_first_memory(hw, HW_MEMORY_RAM);

	if (n_experts == 0)
		return err_set(err, ERR_INPUT, "model '%s' has no routed experts", job->model->name);
	if (divide_init(p, job, 1, "", a, err))
		return -1;
	p->kv_types = *KVCACHE_SAME(quant_find("f16"));
	p->kv_sequences = w->batch;
	p->kv_context = trace_max_context(job->trace);
	divide_resident(p);
	for (uint32_t i = 0; i < job->model->n_layer; i++)
		place_layer_group(p, (int)i, MODEL_EXPERTS, (struct place_spot){(int16_t)ram, (int16_t)cpu, PLACE_CACHED});
	place_finish(p);
	divide_book(p, LEDGER_OVERHEAD, "placeholder expert", largest);

	/* Counted before anything runs: cache and activations take what is left of the memory. */
	int gpu = p->rows.spot[0].memory;
	const struct ledger_row *row = &p->ledger.row[gpu];
	double free_bytes = GPU_SHARE * (double)hw->memories[gpu].capacity_bytes -
		(double)(row->used_bytes[LEDGER_WEIGHTS] + row->used_bytes[LEDGER_OVERHEAD]);
	double each = (double)all / (double)n_experts;
	uint64_t n_resident = free_bytes > 0 ? (uint64_t)(free_bytes / each) : 0;
	n_resident = n_resident < n_experts ? n_resident : n_experts;
	p->cached[0] = (struct place_cached){.memory = (int16_t)gpu, .share = (double)n_resident / (double)n_experts};
	p->n_cached = 1;
	p->cache_device = p->rows.spot[0].device;
	divide_book(p, LEDGER_WEIGHTS, "resident experts", (uint64_t)((double)n_resident * each));
	divide_book(p, LEDGER_ACTIVATION, "activations",
		model_activation_bytes(job->model, rows, w->batch, HIDDEN_ELEMENT_BYTES));
	p->advice = arena_printf(a, ledger_fits(&p->ledger) ? "%llu of %llu experts are on the GPU" :
		"%llu of %llu experts are on the GPU, which leaves too little for the cache: a shorter context is needed",
		(unsigned long long)n_resident, (unsigned long long)n_experts);
	return 0;
}

struct fiddler {
	const struct cost *cost;
	const struct fiddler_flags *flags;
	struct ranks ranks;
	int cpu;
	struct cost_team team;
};

/* On the CPU: hidden states there and back; weights once for each of rows_each tokens. */
static void on_cpu(struct fiddler *s, const struct place_part *part, double bytes, double flops, double rows_each)
{
	struct ranks *r = &s->ranks;
	struct exec *x = r->walk.x;
	const struct hw_machine *hw = x->placement->machine;
	struct kernel_place where = {s->cost, hw, &hw->devices[s->cpu], s->team, false, false};
	struct platform_work work =
		kernel_multiply(&where, part->type, bytes * rows_each, flops, TENSORS_OF_EXPERT, COST_TOGETHER);
	double hidden = (double)r->walk.step->n_tokens * x->placement->model->hidden * HIDDEN_ELEMENT_BYTES;
	int gpu = hw->devices[r->device[0]].memory;

	op_ref at = exec_copy(x, gpu, part->spot.memory, hidden, false, r->last[0], 0);
	at = exec_kernel(x, s->cpu, &work, at, 0);
	r->last[0] = exec_copy(x, part->spot.memory, gpu, hidden, false, at, 0);
}

static void on_gpu(struct fiddler *s, const struct place_part *part, double bytes, double flops)
{
	struct ranks *r = &s->ranks;
	const struct hw_machine *hw = r->walk.x->placement->machine;
	struct kernel_place where = {s->cost, hw, &hw->devices[r->device[0]], s->team, true, false};
	struct platform_work work = kernel_multiply(&where, part->type, bytes, flops, TENSORS_OF_EXPERT, COST_TOGETHER);

	r->last[0] = exec_kernel(r->walk.x, r->device[0], &work, r->last[0], 0);
}

static bool experts(void *engine, const struct place_group *g, enum model_group group, double share, double flops_per_param,
	double times)
{
	struct fiddler *s = engine;
	struct ranks *r = &s->ranks;
	struct exec *x = r->walk.x;
	const struct placement *p = x->placement;
	const struct place_part *part = &g->part[0];

	if (group != MODEL_EXPERTS)
		return false;
	double near = p->cached[0].share, n_expert = times / share, rows_each = flops_per_param / 2 / share;
	double bytes = share * (double)part->bytes, flops = flops_per_param * (double)part->params;
	double submitted = n_expert * EXPERT_OPERATIONS * hw_num_value(&s->cost->host_op_s);

	r->last[0] = exec_wait(x, submitted + hw_num_value(&s->cost->gpu_sync_s), exec_join(x, r->last[0], r->host));
	on_gpu(s, part, near * bytes, near * flops);
	bool brought = !s->flags->cpu_offload || rows_each * TOKEN_ON_CPU_MS > COPY_MS;
	if (near < 1 && brought) {
		double each_s = hw_num_value(&s->cost->copy_submit_s) + hw_num_value(&s->cost->gpu_sync_s);
		r->last[0] = exec_wait(x, (1 - near) * times * TENSORS_OF_EXPERT * each_s, r->last[0]);
		r->last[0] = exec_copy(x, part->spot.memory, p->machine->devices[r->device[0]].memory, (1 - near) * bytes, false,
			r->last[0], 0);
		on_gpu(s, part, (1 - near) * bytes, (1 - near) * flops);
	} else if (near < 1) {
		on_cpu(s, part, (1 - near) * bytes, (1 - near) * flops, rows_each);
	}
	r->host = r->last[0];
	return true;
}

static void *fiddler_state_new(const struct engine_job *job, const struct placement *p, struct arena *a)
{
	static const struct ranks_ops ops = {.group = experts};
	struct fiddler *s = arena_new(a, struct fiddler);

	s->cost = job->cost;
	s->flags = job->flags;
	s->cpu = hw_first_device(job->machine, HW_DEVICE_CPU);
	const struct hw_device *cpu = &job->machine->devices[s->cpu];
	s->team = cost_cpu_team(&job->cost->cpu, job->machine, cpu, cpu->cores > THREADS ? THREADS : 0, COST_UNBOUND);
	transformers_ranks_init(&s->ranks, job->cost, p);
	s->ranks.each_expert = false; /* they are this engine's own */
	s->ranks.ops = &ops;
	s->ranks.engine = s;
	return s;
}

static int fiddler_lower(struct exec *x, void *state, const struct trace_step *step, op_ref *last, struct err *err)
{
	struct fiddler *s = state;

	(void)err;
	*last = transformers_step(&s->ranks, x, step);
	return 0;
}

const struct engine_ops engine_fiddler = {
	.name = "fiddler",
	.version = "1",
	.help = "Fiddler: popular experts on the GPU, the others computed on the CPU or copied",
	.flag = fiddler_flag,
	.n_flags = ARRAY_LEN(fiddler_flag),
	.flags_size = sizeof(struct fiddler_flags),
	.ignored = fiddler_ignored,
	.n_ignored = ARRAY_LEN(fiddler_ignored),
	.kernels = "pytorch",
	.overheads = true,
	.place = fiddler_place,
	.state_new = fiddler_state_new,
	.lower = fiddler_lower,
};
