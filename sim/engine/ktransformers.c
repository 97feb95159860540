/*
 * ktransformers.c - KTransformers to v0.3 and kt-kernel under SGLang (kvcache-ai/ktransformers, kt-kernel/python
 * experts_base.py, cpuinfer.h of December 2025): routed experts on the CPU, the rest on the GPU.
 *
 *	GPU   [attn][router]─┬─[shared][its experts]───────────────┬─ next layer
 *	link                 └─hidden──┐                   ┌─result─┘
 *	CPU                            └─[experts]─────────┘
 *
 * The CPU's task is submitted from within the GPU's stream, so that a step is one CUDA graph and the two sides of a layer
 * run at once. The sockets have a pool of threads each, which multiply rows or copies of the weights near them.
 * From a number of rows on (kt-kernel) a layer's experts come to the GPU instead, through pinned buffers into which the
 * host reorders them first; nothing is computed meanwhile.
 * With several GPUs (--tp) each has its rows of every matrix and its part of what crosses; results are exchanged after
 * attention and after the experts.
 */
#include <string.h>

#include "models/kvcache.h"
#include "sim/engine/engine_table.h"
#include "sim/engine/sglang_ignored.h"
#include "sim/exec/kernel.h"
#include "sim/exec/lower.h"

#define HIDDEN_ELEMENT_BYTES 2
#define MAX_GPUS PLACE_MAX_ROWS
/* What kt-kernel's guides set --kt-gpu-prefill-token-threshold to. */
#define KT_THRESHOLD 400

/* Kernels of a group on a GPU, tasks on a CPU, as in llamacpp.c; experts on a CPU are one task a projection. */
static const int group_nodes[MODEL_GROUP_N] = {
	[MODEL_EMBED] = 1, [MODEL_ATTN] = 11, [MODEL_FFN] = 6, [MODEL_ROUTER] = 7, [MODEL_SHARED] = 4, [MODEL_EXPERTS] = 3,
	[MODEL_OUTPUT] = 3,
};

static const char *const experts_choices[] = {"cpu", "gpu", NULL};
enum { EXPERTS_CPU, EXPERTS_GPU };

struct kt_flags {
	uint64_t experts_used, threads, gpu_experts, tp, threshold, c, chunk;
	const char *ctk, *method;
	int experts;
	bool no_graph;
};

static const struct param kt_flag[] = {
	PARAM_CHOICE(struct kt_flags, experts, "experts", "cpu", experts_choices, "where routed experts are computed"),
	PARAM_COUNT(struct kt_flags, experts_used, "experts-per-token", "0", 0, 4096, "experts a token uses; 0: as trained"),
	PARAM_COUNT(struct kt_flags, threads, "kt-cpuinfer", "0", 0, 4096, "CPU threads; 0: one for each core"),
	PARAM_COUNT(struct kt_flags, gpu_experts, "kt-num-gpu-experts", "0", 0, 4096,
		"experts of each layer that the GPUs have as well"),
	PARAM_COUNT(struct kt_flags, tp, "tp", "1", 1, MAX_GPUS, "GPUs that divide every matrix"),
	PARAM_COUNT(struct kt_flags, threshold, "kt-gpu-prefill-token-threshold", "0", 0, 1e9,
		"rows from which experts are brought to the GPU layer by layer; 0: with kt-method 400, else never"),
	PARAM_TEXT(struct kt_flags, method, "kt-method", "", "kernels of kt-kernel: AMXINT4, RAWINT4, FP8, LLAMAFILE"),
	PARAM_COUNT(struct kt_flags, c, "context-length", "0", 0, 1e9, "context allocated; 0: what the workload needs"),
	PARAM_COUNT(struct kt_flags, chunk, "chunked-prefill-size", "32768", 1, 1e7, "rows of a prompt that go through the layers at once"),
	PARAM_TEXT(struct kt_flags, ctk, "kv-cache-dtype", "f16", "element type of the cache"),
	PARAM_FLAG(struct kt_flags, no_graph, "no-use_cuda_graph", "no", "kernels are launched one by one"),
};

static const struct engine_alias kt_alias[] = {
	{"cpu_infer", "kt-cpuinfer"}, {"tensor-parallel-size", "tp"}, {"tp-size", "tp"}, {"cache_lens", "context-length"},
	{"disable-cuda-graph", "no-use_cuda_graph"}, {"experts_per_token", "experts-per-token"},
	{"kt-amx-method", "kt-method"}, {"kt-amx-cpuinfer", "kt-cpuinfer"},
};

/* ktransformers/local_chat.py and server/args.py (kvcache-ai/ktransformers 95009ea, archive/), and flags of SGLang */
static const struct engine_ignored kt_ignored[] = {
	{"use_cuda_graph", false}, {"kt-weight-path", true}, {"kt-threadpool-count", true}, {"model_path", true},
	{"gguf_path", true}, {"model", true}, {"host", true}, {"port", true}, {"max_new_tokens", true},
	{"trust-remote-code", false}, {"mem-fraction-static", true}, {"served-model-name", true}, {"optimize_config_path", true},
	{"optimize_rule_path", true}, {"force_think", false}, {"no-force_think", false}, {"prompt_file", true}, {"mode", true},
	{"chunk_size", true}, {"max_batch_size", true}, {"batch_size", true}, {"backend_type", true}, {"architectures", true},
	{"model_name", true}, {"model_dir", true}, {"type", true}, {"web", true}, {"api_key", true},
	{"ssl_keyfile", true}, {"ssl_certfile", true}, {"temperature", true}, {"top_p", true}, {"top_k", true},
	{"repetition_penalty", true}, {"log_level", true}, {"log_file", true}, {"log_dir", true}, {"print_timings", true},
	{"page_size", true}, {"sched_strategy", true}, {"memory_gpu_only", true}, {"cpu_memory_size_GB", true},
	{"kt-numa-nodes", ENGINE_VALUES}, {"kt-expert-placement-strategy", true},
	{"kt-enable-dynamic-expert-update", ENGINE_NOT_MODELLED}, {"kt-max-deferred-experts-per-token", ENGINE_NOT_MODELLED_VALUE},
	{"cpu-offload-gb", ENGINE_NOT_MODELLED_VALUE}, {"model-path", true}, {"tokenizer-path", true}, {"dtype", true},
	{"quantization", true}, {"api-key", true}, {"log-level", true}, {"attention-backend", true}, {"random-seed", true},
	{"reasoning-parser", true}, {"tool-call-parser", true}, {"max-running-requests", true}, {"disable-radix-cache", false},
	{"chat-template", true}, {"load-format", true}, {"page-size", true}, {"disable-custom-all-reduce", false},
	{"kt-amx-weight-path", true}, {"disable-chunked-prefix-cache", false}, SGLANG_IGNORED,
};

static int kt_adapt(const void *flags, struct model *m, struct err *err)
{
	const struct kt_flags *f = flags;

	return f->experts_used ? engine_use_experts(m, f->experts_used, err) : 0;
}

static uint64_t kt_prefill_rows(const void *flags, const struct hw_machine *machine)
{
	(void)machine;
	return ((const struct kt_flags *)flags)->chunk;
}

/* The first tp GPUs; how many there are of them. */
static int find_gpus(const struct engine_job *job, int gpu[MAX_GPUS])
{
	const struct kt_flags *f = job->flags;
	int n = 0;

	for (int d = 0; d < job->machine->n_devices && n < (int)f->tp; d++)
		if (job->machine->devices[d].kind == HW_DEVICE_GPU)
			gpu[n++] = d;
	return n;
}

static struct place_spot on_device(const struct hw_machine *hw, int device, enum place_mode mode)
{
	return (struct place_spot){(int16_t)hw->devices[device].memory, (int16_t)device, mode};
}

static struct place_spot tensor_spot(const struct engine_job *job, const struct model_tensor *t, int gpu, int n_gpus)
{
	const struct kt_flags *f = job->flags;
	int cpu = hw_first_device(job->machine, HW_DEVICE_CPU);

	if (t->group == MODEL_EMBED || (t->group == MODEL_EXPERTS && f->experts == EXPERTS_CPU))
		return on_device(job->machine, cpu, PLACE_RESIDENT);
	return on_device(job->machine, gpu, n_gpus > 1 && model_tensor_is_matrix(t) ? PLACE_ROWS : PLACE_RESIDENT);
}

/* Rows from which experts come to the GPU; 0: never. */
static uint64_t layerwise_from(const struct kt_flags *f)
{
	return f->threshold || !*f->method ? f->threshold : KT_THRESHOLD;
}

/* Of a layer's experts those that the GPUs have as well, or all of it while it is brought: the larger. */
static uint64_t gpu_expert_bytes(const struct engine_job *job, const struct placement *p)
{
	const struct kt_flags *f = job->flags;
	uint64_t kept = 0, largest = 0;

	for (uint32_t i = 0; i < job->model->n_layer; i++) {
		uint64_t all = p->model->layers[i].group[MODEL_EXPERTS].bytes;
		if (!job->model->layers[i].n_expert)
			continue;
		kept += all / job->model->layers[i].n_expert * f->gpu_experts;
		if (all > largest)
			largest = all;
	}
	return kept + (layerwise_from(f) ? largest : 0);
}

static int kt_place(const struct engine_job *job, struct placement *p, struct arena *a, struct err *err)
{
	const struct kt_flags *f = job->flags;
	const struct model *m = job->model;
	int gpu[MAX_GPUS], n = find_gpus(job, gpu);
	uint64_t context = trace_max_context(job->trace);
	const struct quant_type *type;

	if (n < (int)f->tp)
		return err_set(err, ERR_INPUT, "flag 'tp': wants %d GPUs, this machine has %d", (int)f->tp, n);
	if (quant_get(f->ctk, &type, err))
		return err_prefix(err, "flag 'kv-cache-dtype'");
	place_init(p, m, job->machine, a);
	p->kv_types = (struct kvcache_types){type, type, KVCACHE_LATENT};
	p->kv_context = f->c > context ? f->c : context;
	p->kv_sequences = job->trace->workload.batch;
	p->rows.n = n;
	for (int g = 0; g < n; g++) {
		p->rows.spot[g] = on_device(job->machine, gpu[g], PLACE_ROWS);
		p->rows.upto[g] = (g + 1.0) / n;
	}
	for (int i = 0; i < m->n_tensors; i++)
		p->tensor[i] = tensor_spot(job, &m->tensors[i], gpu[0], n);
	for (uint32_t i = 0; i < m->n_layer; i++)
		p->kv[i] = on_device(job->machine, gpu[0], n > 1 ? PLACE_ROWS : PLACE_RESIDENT);
	place_finish(p);
	for (int g = 0; g < n && f->experts == EXPERTS_CPU; g++)
		ledger_book(&p->ledger, job->machine->devices[gpu[g]].memory, LEDGER_WEIGHTS, "experts on the GPU",
			gpu_expert_bytes(job, p) / (uint64_t)n);
	p->advice = ledger_fits(&p->ledger) ? "" : "fewer experts on the GPU, a shorter context or a smaller type is needed";
	return 0;
}

struct kt {
	const struct kt_flags *flags;
	const struct cost *cost;
	struct cost_team team;
	struct lower chain;
	bool layerwise;    /* this step brings experts to the GPU */
	op_ref routed;     /* what a layer's experts wait for */
	op_ref cpu_done;   /* the CPU's result, back on the GPU; 0: none */
	int n_gpus, gpu[MAX_GPUS];
};

/* Each socket has a copy of the experts (USE_NUMA) where RAM holds as many; kt-kernel gives each its rows instead. */
static enum cost_binding binding(const struct kt_flags *f, const struct placement *p, const struct hw_device *cpu)
{
	const struct model *m = p->model;
	uint64_t bytes = 0;

	for (int i = 0; i < m->n_tensors; i++)
		if (m->tensors[i].group == MODEL_EXPERTS)
			bytes += m->tensors[i].bytes;
	bool copies = cpu->sockets * bytes <= p->machine->memories[cpu->memory].capacity_bytes;
	return *f->method || copies ? COST_SPREAD : COST_UNBOUND;
}

static void *kt_state_new(const struct engine_job *job, const struct placement *p, struct arena *a)
{
	struct kt *s = arena_new(a, struct kt);
	const struct hw_device *cpu = &p->machine->devices[hw_first_device(p->machine, HW_DEVICE_CPU)];

	s->flags = job->flags;
	s->cost = job->cost;
	s->n_gpus = find_gpus(job, s->gpu);
	s->team = cost_cpu_team(&s->cost->cpu, p->machine, cpu, (unsigned)s->flags->threads,
		binding(s->flags, p, cpu));
	s->chain.hidden_elem_bytes = HIDDEN_ELEMENT_BYTES;
	s->chain.crossing_s = hw_num_value(&s->cost->gpu_sync_s);
	return s;
}

static op_ref multiply(struct kt *s, int device, enum model_group group, const struct quant_type *type, double bytes,
	double flops, op_ref after)
{
	struct exec *x = s->chain.x;
	struct kernel_place where = {s->cost, x->placement->machine, &x->placement->machine->devices[device], s->team,
		s->flags->no_graph, false};
	struct platform_work work = kernel_multiply(&where, type, bytes, flops, group_nodes[group],
		group == MODEL_EXPERTS ? COST_EXPERTS : COST_TOGETHER);

	return exec_kernel(x, device, &work, after, 0);
}

/* The same on all GPUs, each with its part. */
static op_ref multiply_divided(struct kt *s, enum model_group group, const struct quant_type *type, double bytes,
	double flops, op_ref after)
{
	op_ref done = 0;

	for (int g = 0; g < s->n_gpus; g++)
		done = exec_join(s->chain.x, done,
			multiply(s, s->gpu[g], group, type, bytes / s->n_gpus, flops / s->n_gpus, after));
	return done;
}

/* A layer's experts from RAM to the GPUs, to each its part, once the host has put them in order into pinned buffers. */
static op_ref bring(struct kt *s, double bytes, op_ref after)
{
	struct exec *x = s->chain.x;
	const struct hw_machine *hw = x->placement->machine;
	int ram = hw_first_memory(hw, HW_MEMORY_RAM);
	op_ref done = 0, ordered = exec_wait(x, bytes / hw_num_value(&s->cost->relay_bytes_s), after);

	for (int g = 0; g < s->n_gpus; g++)
		done = exec_join(x, done,
			exec_copy(x, ram, hw->devices[s->gpu[g]].memory, bytes / s->n_gpus, true, ordered, 0));
	return done;
}

/* Experts on the CPU, beside what the GPU does: hidden states there, result back. */
static op_ref cpu_experts(struct kt *s, const struct place_part *part, double bytes, double flops)
{
	struct exec *x = s->chain.x;
	const struct hw_machine *hw = x->placement->machine;
	double hidden = (double)s->chain.step->n_tokens * x->placement->model->hidden * HIDDEN_ELEMENT_BYTES;
	int memory = hw->devices[s->gpu[0]].memory;
	op_ref at = exec_wait(x, hw_num_value(&s->cost->gpu_sync_s), s->routed);

	at = exec_copy(x, memory, part->spot.memory, hidden, true, at, 0);
	at = multiply(s, part->spot.device, MODEL_EXPERTS, part->type, bytes, flops, at);
	at = exec_wait(x, hw_num_value(&s->cost->gpu_sync_s), at);
	return exec_copy(x, part->spot.memory, memory, hidden, true, at, 0);
}

static void run_experts(struct kt *s, const struct place_part *part, double bytes, double flops)
{
	const struct exec *x = s->chain.x;
	int layer = exec_tag_layer(x->label);
	double near = (double)s->flags->gpu_experts / x->placement->model->layers[layer].n_expert;

	if (near > 1)
		near = 1;
	if (s->layerwise) {
		s->chain.last = bring(s, bytes * (1 - near), s->chain.last);
		s->chain.last = multiply_divided(s, MODEL_EXPERTS, part->type, bytes, flops, s->chain.last);
		return;
	}
	if (near < 1)
		s->cpu_done = cpu_experts(s, part, bytes * (1 - near), flops * (1 - near));
	if (near > 0)
		s->chain.last = multiply_divided(s, MODEL_EXPERTS, part->type, bytes * near, flops * near, s->chain.last);
}

/* The layer's two sides meet. */
static void join_sides(struct kt *s)
{
	if (s->cpu_done)
		s->chain.last = exec_join(s->chain.x, s->chain.last, s->cpu_done);
	s->cpu_done = 0;
}

/* Partial sums of all GPUs are added: each sends its own to the next through host memory. */
static void exchange(struct kt *s)
{
	struct exec *x = s->chain.x;
	const struct hw_machine *hw = x->placement->machine;
	double bytes = (double)s->chain.step->n_tokens * x->placement->model->hidden * HIDDEN_ELEMENT_BYTES;
	op_ref from = s->chain.last;

	for (int g = 0; g < s->n_gpus && s->n_gpus > 1; g++)
		s->chain.last = exec_join(x, s->chain.last,
			exec_copy(x, hw->devices[s->gpu[g]].memory, hw->devices[s->gpu[(g + 1) % s->n_gpus]].memory,
				bytes * 2 * (s->n_gpus - 1) / s->n_gpus, true, from, 0));
}

static void run_group(void *state, const struct place_group *g, enum model_group group, double share,
	double flops_per_param, double times)
{
	struct kt *s = state;
	const struct hw_machine *hw = s->chain.x->placement->machine;

	(void)times;
	if (group != MODEL_SHARED && group != MODEL_EXPERTS)
		join_sides(s);
	if (group == MODEL_EXPERTS && hw->devices[g->part[0].spot.device].kind == HW_DEVICE_CPU) {
		run_experts(s, &g->part[0], (double)g->part[0].bytes * share, flops_per_param * (double)g->part[0].params);
		exchange(s);
		return;
	}
	op_ref begin = s->chain.last, done = 0;
	for (int i = 0; i < g->n; i++) {
		const struct place_part *part = &g->part[i];
		if (part->spot.mode != PLACE_ROWS) {
			lower_move_to(&s->chain, part->spot.device);
			begin = s->chain.last;
		}
		done = exec_join(s->chain.x, done,
			multiply(s, part->spot.device, group, part->type, (double)part->bytes * share,
				flops_per_param * (double)part->params, begin));
	}
	s->chain.last = done;
	if (group == MODEL_ROUTER)
		s->routed = done;
	if (group == MODEL_ATTN || group == MODEL_FFN)
		exchange(s);
}

static void run_attention(void *state, const struct trace_access *read)
{
	struct kt *s = state;
	struct exec *x = s->chain.x;
	const struct placement *p = x->placement;
	const struct model_layer *l = &p->model->layers[read->layer];
	double bytes = (double)kvcache_token_bytes(l, &p->kv_types) * (double)(read->kv_tokens + read->tokens);
	op_ref done = 0;

	join_sides(s);
	lower_move_to(&s->chain, s->gpu[0]);
	/* Heads are divided, and with them what is read and computed; of MLA's latent cache each GPU reads all. */
	for (int g = 0; g < s->n_gpus; g++) {
		struct kernel_place where = {s->cost, p->machine, &p->machine->devices[s->gpu[g]], s->team, s->flags->no_graph, false};
		struct platform_work work = kernel_attention(&where, l, &p->kv_types, bytes * place_heads_share(l, s->n_gpus),
			read->kv_pairs / s->n_gpus, (double)read->tokens);
		done = exec_join(x, done, exec_kernel(x, s->gpu[g], &work, s->chain.last, 0));
	}
	s->chain.last = done;
}

static const struct lower_ops kt_walk = {run_group, run_attention};

static int kt_lower(struct exec *x, void *state, const struct trace_step *step, op_ref *last, struct err *err)
{
	struct kt *s = state;

	(void)err;
	lower_begin(&s->chain, x, step);
	s->layerwise = layerwise_from(s->flags) && step->n_tokens >= layerwise_from(s->flags);
	s->cpu_done = 0;
	lower_walk(&s->chain, s, &kt_walk);
	join_sides(s);
	*last = exec_wait(x, hw_num_value(&s->cost->gpu_sync_s) + hw_num_value(&s->cost->step_s), s->chain.last);
	return 0;
}

const struct engine_ops engine_ktransformers = {
	.name = "ktransformers",
	.version = "1",
	.help = "KTransformers and kt-kernel: routed experts on the CPU beside the GPU's part of a layer",
	.flag = kt_flag,
	.n_flags = ARRAY_LEN(kt_flag),
	.flags_size = sizeof(struct kt_flags),
	.alias = kt_alias,
	.n_aliases = ARRAY_LEN(kt_alias),
	.ignored = kt_ignored,
	.n_ignored = ARRAY_LEN(kt_ignored),
	.kernels = "ktransformers",
	.overheads = true,
	.stepwise = true,
	.prefill_rows = kt_prefill_rows,
	.adapt = kt_adapt,
	.place = kt_place,
	.state_new = kt_state_new,
	.lower = kt_lower,
};
