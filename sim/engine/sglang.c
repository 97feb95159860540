/*
 * sglang.c - SGLang of 2026 (python/sglang/srt/utils/offloader.py, managers/cache_controller.py).
 *
 *	resident               one CUDA graph a decode step, as vLLM
 *	--cpu-offload-gb       offloader V1: [copy of what layer 0 lacks][layer 0][copy 1][layer 1], all on the compute stream
 *	--offload-group-size   offloader V2: layers brought ahead on a stream of their own (bring.h), without CUDA graphs
 *	--tp-size              every matrix and the heads are divided (sim/exec/ranks.h)
 *	--enable-hierarchical-cache   HiCache's first tier: the workload's depth lies in host memory and is loaded layer by
 *	                       layer, on a stream of its own; a layer waits for its own part alone:
 *	                           load     [cache 0][cache 1][cache 2]
 *	                           compute           [layer 0][layer 1][layer 2]      then what is new is stored behind it
 *	                       Tiers behind that (--hicache-storage-backend) are not modelled
 *
 * --mem-fraction-static of each GPU holds weights and cache. What kernels reach is in hw/kernels/sglang.yaml.
 */
#include "models/kvcache.h"
#include "sim/engine/bring.h"
#include "sim/engine/divide.h"
#include "sim/engine/sglang_ignored.h"

#define HIDDEN_ELEMENT_BYTES 2
#define GIB 1073741824.0

/* Kernels of a layer (python/sglang/srt/models/llama.py and layers/moe): norms are fused with what is added before them. */
static const int group_nodes[MODEL_GROUP_N] = {
	[MODEL_EMBED] = 1,
	[MODEL_ATTN] = 5,
	[MODEL_FFN] = 4,
	[MODEL_ROUTER] = 5,
	[MODEL_SHARED] = 3,
	[MODEL_EXPERTS] = 4,
	[MODEL_OUTPUT] = 2,
};
/* Of layers that keep a latent vector (the second projection of queries, norms, two small products for each head), and of
   those that pick what they attend to (projections, norm, rotary embedding, quantization, store, scores, top-k). */
#define MLA_NODES 6
#define INDEX_NODES 9

struct sglang_flags {
	uint64_t tp, group_size, num_in_group, prefetch_step, context_length, chunk;
	double offload_gib, static_share, hicache_ratio, hicache_gb;
	const char *kv_dtype, *numa_node;
	bool no_graph, p2p, hicache;
};

static const struct param sglang_flag[] = {
	PARAM_COUNT(struct sglang_flags, tp, "tp-size", "1", 1, PLACE_MAX_ROWS, "GPUs that divide every matrix"),
	PARAM_REAL(struct sglang_flags, offload_gib, "cpu-offload-gb", UNIT_PLAIN, "0", 0, 1e6,
		"GiB of weights a GPU that lie in host memory and are copied before each use"),
	PARAM_COUNT(struct sglang_flags, group_size, "offload-group-size", "0", 0, 65536,
		"of every so many layers the last are brought ahead; 0: none"),
	PARAM_COUNT(struct sglang_flags, num_in_group, "offload-num-in-group", "1", 1, 65536, "how many of a group"),
	PARAM_COUNT(struct sglang_flags, prefetch_step, "offload-prefetch-step", "1", 1, 65536,
		"how many such layers ahead"),
	PARAM_REAL(struct sglang_flags, static_share, "mem-fraction-static", UNIT_FRACTION, "0.88", 0.01, 1,
		"share of each GPU's memory for weights and cache"),
	PARAM_TEXT(struct sglang_flags, kv_dtype, "kv-cache-dtype", "auto", "auto (16 bits), bf16, fp8_e4m3, fp8_e5m2"),
	PARAM_COUNT(struct sglang_flags, context_length, "context-length", "0", 0, 1e9,
		"context that there must be room for; 0: what the workload needs"),
	PARAM_COUNT(struct sglang_flags, chunk, "chunked-prefill-size", "8192", 1, 1e7, "rows of a pass"),
	PARAM_FLAG(struct sglang_flags, no_graph, "disable-cuda-graph", "no", "the host launches each kernel"),
	PARAM_FLAG(struct sglang_flags, p2p, "p2p", "no",
		"GPUs reach each other over PCIe past host memory (data-centre cards, patched drivers)"),
	PARAM_FLAG(struct sglang_flags, hicache, "enable-hierarchical-cache", "no",
		"the cache has a tier in host memory, from which the workload's depth is loaded"),
	PARAM_REAL(struct sglang_flags, hicache_ratio, "hicache-ratio", UNIT_PLAIN, "2", 0, 1e3,
		"that tier in times the cache's room on the GPU"),
	PARAM_REAL(struct sglang_flags, hicache_gb, "hicache-size", UNIT_PLAIN, "0", 0, 1e6, "GB of that tier, a GPU; 0: by the ratio"),
	PARAM_TEXT(struct sglang_flags, numa_node, "numa-node", "",
		"the socket whose memory each GPU's process has: 0 1; empty: as ram.numa says"),
};

static const struct engine_alias sglang_alias[] = {{"tp", "tp-size"}, {"tensor-parallel-size", "tp-size"}};

static const struct engine_ignored sglang_ignored[] = {
	{"model-path", true}, {"model", true}, {"tokenizer-path", true}, {"host", true}, {"port", true}, {"dtype", true},
	{"quantization", true}, {"trust-remote-code", false}, {"served-model-name", true}, {"api-key", true},
	{"log-level", true}, {"attention-backend", true}, {"random-seed", true}, {"reasoning-parser", true},
	{"tool-call-parser", true}, {"max-running-requests", true}, {"disable-radix-cache", false}, {"chat-template", true},
	{"load-format", true}, {"offload-mode", true}, {"hicache-io-backend", true}, {"hicache-write-policy", true},
	{"hicache-mem-layout", true}, {"page-size", true}, {"disable-custom-all-reduce", false},
	SGLANG_IGNORED,
};

static struct bring bring_of(const struct sglang_flags *f)
{
	return (struct bring){
		.group_size = f->group_size, .num_in_group = f->num_in_group, .prefetch_step = f->prefetch_step};
}

/* Room for the cache in host memory, of all GPUs: by the ratio, no less than what the workload has there. */
static int book_tier(const struct sglang_flags *f, const struct trace_workload *w, int ram, struct placement *p, struct err *err)
{
	int gpu = p->rows.spot[0].memory;
	double weights = (double)p->ledger.row[gpu].used_bytes[LEDGER_WEIGHTS];
	double room = f->static_share * (double)p->machine->memories[gpu].capacity_bytes - weights;
	double tier = p->rows.n * (f->hicache_gb > 0 ? f->hicache_gb * 1e9 : f->hicache_ratio * (room > 0 ? room : 0));
	double prefix = (double)kvcache_bytes(p->model, w->depth + w->prompt, w->batch, &p->kv_types);

	if (f->hicache_gb > 0 && tier < prefix)
		return err_set(err, ERR_INPUT, "flag 'hicache-size': %.3f GB in all, but the workload has %.3f GB there", tier / 1e9,
			prefix / 1e9);
	ledger_book(&p->ledger, ram, LEDGER_KV, "tier of the cache", (uint64_t)(tier > prefix ? tier : prefix));
	return 0;
}

static int fill(const struct engine_job *job, double offload_gib, struct placement *p, struct arena *a, struct err *err)
{
	const struct sglang_flags *f = job->flags;
	const struct trace_workload *w = &job->trace->workload;
	int ram = hw_first_memory(job->machine, HW_MEMORY_RAM);
	uint64_t context = trace_max_context(job->trace);
	struct bring bring = bring_of(f);

	if (divide_init(p, job, f->tp, "tp-size", a, err) || divide_kv_types(f->kv_dtype, &p->kv_types, err) ||
		divide_bind(p, f->numa_node, "numa-node", err))
		return -1;
	p->kv_sequences = w->batch;
	p->kv_context = f->context_length > context * w->batch ? f->context_length / w->batch : context;
	divide_resident(p);
	if (f->group_size)
		bring_place_groups(&bring, p, ram);
	else
		bring_place_parameters(p, ram, PLACE_STREAMED, ~0u, offload_gib * GIB);
	place_finish(p);

	const struct hw_memory *gpu = &p->machine->memories[p->rows.spot[0].memory];
	uint64_t activations = model_activation_bytes(job->model, f->chunk, w->batch, HIDDEN_ELEMENT_BYTES) / f->tp;
	uint64_t dynamic = (uint64_t)((1 - f->static_share) * (double)gpu->capacity_bytes);
	divide_book(p, LEDGER_ACTIVATION, "activations", activations);
	/* Activations live in what is no weight and no cache. */
	if (dynamic > activations + gpu->reserved_bytes)
		divide_book(p, LEDGER_OVERHEAD, "left free by --mem-fraction-static",
			dynamic - activations - gpu->reserved_bytes);
	bring_book(&bring, p);
	return f->hicache ? book_tier(f, w, ram, p, err) : 0;
}

static bool fits_gpus(const void *ctx, double gib, struct arena *a)
{
	struct placement p;
	struct err err;

	return fill(ctx, gib, &p, a, &err) == 0 && divide_fits(&p);
}

static const char *advise(const struct engine_job *job, const struct placement *p, struct arena *a)
{
	const struct sglang_flags *f = job->flags;
	double most = (double)(job->model->weights_bytes / f->tp) / GIB + 1;

	if (f->group_size)
		return divide_fits(p) ? "" : "more layers of a group, a shorter context or a smaller batch are needed";
	double least = divide_least_gib(most, fits_gpus, job, a);
	if (!divide_fits(p))
		return fits_gpus(job, least, a) ? arena_printf(a, "this would fit: --cpu-offload-gb %.0f", least) :
						  "a shorter context, a smaller batch or type, or more GPUs are needed";
	if (f->offload_gib <= 0)
		return "all weights are in GPU memory";
	return least < f->offload_gib - 1 ?
		arena_printf(a, "fewer weights need to leave the GPU%s: --cpu-offload-gb %.0f", p->rows.n > 1 ? "s" : "", least) :
		"no more weights fit in GPU memory";
}

static int sglang_place(const struct engine_job *job, struct placement *p, struct arena *a, struct err *err)
{
	const struct sglang_flags *f = job->flags;
	uint64_t context = trace_max_context(job->trace);
	struct bring bring = bring_of(f);

	if (bring_check(&bring, err))
		return -1;
	if (f->context_length && f->context_length < context)
		return err_set(err, ERR_INPUT, "flag 'context-length': %llu, but the workload has sequences of %llu",
			(unsigned long long)f->context_length, (unsigned long long)context);
	if (f->group_size && f->offload_gib > 0)
		return err_set(err, ERR_INPUT, "flag 'cpu-offload-gb' and 'offload-group-size' exclude each other");
	if (fill(job, f->offload_gib, p, a, err))
		return -1;
	p->advice = advise(job, p, a);
	return 0;
}

static uint64_t sglang_prefill_rows(const void *flags, const struct hw_machine *machine)
{
	(void)machine;
	return ((const struct sglang_flags *)flags)->chunk;
}

struct sglang {
	const struct engine_job *job;
	const struct sglang_flags *flags;
	const struct cost *cost;
	struct ranks ranks;
	struct bring bring;
	const struct ranks_ops *bring_ops;
	int ram;
	op_ref (*loaded)[PLACE_MAX_ROWS]; /* by layer and rank: its part of prefixes, in this step; 0: nothing was to be loaded */
};

static void layer_begin(void *engine, int layer)
{
	struct sglang *s = engine;
	struct ranks *r = &s->ranks;

	s->bring_ops->layer_begin(&s->bring, layer);
	for (int i = 0; i < r->n; i++)
		r->arrived[i] = exec_join(r->walk.x, r->arrived[i], s->loaded[layer][i]);
}

static void layer_end(void *engine, int layer)
{
	struct sglang *s = engine;

	s->bring_ops->layer_end(&s->bring, layer);
}

static void *sglang_state_new(const struct engine_job *job, const struct placement *p, struct arena *a)
{
	const struct sglang_flags *f = job->flags;
	struct sglang *s = arena_new(a, struct sglang);

	s->job = job;
	s->flags = f;
	s->cost = job->cost;
	s->ram = hw_first_memory(job->machine, HW_MEMORY_RAM);
	ranks_init(&s->ranks, job->cost, p);
	s->ranks.nodes = group_nodes;
	s->ranks.mla_nodes = MLA_NODES;
	s->ranks.index_nodes = INDEX_NODES;
	s->ranks.one_by_one = f->no_graph || f->group_size;
	s->ranks.direct = f->p2p;
	s->bring = bring_of(f);
	bring_init(&s->bring, &s->ranks, p, a);
	if (f->hicache) {
		static const struct ranks_ops ops = {layer_begin, layer_end, NULL};
		s->loaded = arena_alloc_array(a, p->model->n_layer, sizeof(*s->loaded));
		s->bring_ops = s->ranks.ops;
		s->ranks.ops = &ops;
		s->ranks.engine = s;
	}
	return s;
}

/* Sequences whose first rows are in this step. */
static uint64_t n_begun(const struct trace *t, const struct trace_step *step)
{
	uint64_t before = step->index * t->rows_max, prompt = t->workload.prompt;

	return (before + step->n_tokens + prompt - 1) / prompt - (before + prompt - 1) / prompt;
}

/* Of n tokens of one sequence, a layer's entries on one GPU. */
static double layer_bytes(const struct placement *p, uint32_t layer, double n)
{
	const struct model_layer *l = &p->model->layers[layer];

	if (!l->n_head || l->draft)
		return 0;
	return (p->rows.n > 1 ? place_heads_share(l, p->rows.n) : 1) * n * (double)kvcache_token_bytes(l, &p->kv_types);
}

/* The prefixes of the sequences that begin, layer after layer. */
static void load_prefixes(struct sglang *s, struct exec *x, const struct trace_step *step, op_ref arrived)
{
	const struct placement *p = x->placement;
	double n = step->phase == TRACE_PREFILL ? (double)n_begun(s->job->trace, step) * (double)s->job->trace->workload.depth : 0;

	for (uint32_t layer = 0; layer < p->model->n_layer; layer++) {
		exec_label(x, (int)layer, MODEL_ATTN);
		exec_moves(x, EXEC_CACHE);
		for (int i = 0; i < s->ranks.n; i++)
			s->loaded[layer][i] = exec_copy(x, s->ram, p->rows.spot[i].memory, layer_bytes(p, layer, n), true,
				n > 0 ? exec_join(x, arrived, x->step_end) : 0, 0);
	}
}

/* What the step has made goes to the tier, while the next one runs. */
static void store_new(struct sglang *s, struct exec *x, const struct trace_step *step, op_ref after)
{
	const struct placement *p = x->placement;
	double bytes = 0;

	for (uint32_t layer = 0; layer < p->model->n_layer; layer++)
		bytes += layer_bytes(p, layer, (double)step->n_tokens);
	exec_label(x, MODEL_NO_LAYER, MODEL_ATTN);
	exec_moves(x, EXEC_CACHE);
	for (int i = 0; i < s->ranks.n; i++)
		exec_copy(x, p->rows.spot[i].memory, s->ram, bytes, true, after, 0);
}

static int sglang_lower(struct exec *x, void *state, const struct trace_step *step, op_ref *last, struct err *err)
{
	struct sglang *s = state;

	(void)err;
	bool first = step->phase == TRACE_PREFILL && step->index == 0;
	op_ref arrived = first ? exec_wait(x, hw_num_value(&s->cost->request_s), x->step_end) : 0;
	if (s->flags->hicache)
		load_prefixes(s, x, step, arrived);
	*last = ranks_step(&s->ranks, x, step, arrived);
	if (s->flags->hicache && step->phase == TRACE_PREFILL)
		store_new(s, x, step, *last);
	*last = exec_wait(x, hw_num_value(&s->cost->gpu_sync_s) + hw_num_value(&s->cost->step_s), *last);
	return 0;
}

const struct engine_ops engine_sglang = {
	.name = "sglang",
	.version = "1",
	.help = "as of 2026: resident in CUDA graphs, --cpu-offload-gb copies before each layer, layers brought ahead, HiCache",
	.flag = sglang_flag,
	.n_flags = ARRAY_LEN(sglang_flag),
	.flags_size = sizeof(struct sglang_flags),
	.alias = sglang_alias,
	.n_aliases = ARRAY_LEN(sglang_alias),
	.ignored = sglang_ignored,
	.n_ignored = ARRAY_LEN(sglang_ignored),
	.several = "numa-node",
	.kernels = "sglang",
	.overheads = true,
	.prefill_rows = sglang_prefill_rows,
	.place = sglang_place,
	.state_new = sglang_state_new,
	.lower = sglang_lower,
};
