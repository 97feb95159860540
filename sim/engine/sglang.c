/*
 * sglang.c - SGLang of 2026 (python/sglang/srt/utils/offloader.py), weights alone: its cache tiers (HiCache) are not modelled.
 *
 *	resident               one CUDA graph a decode step, as vLLM
 *	--cpu-offload-gb       offloader V1: [copy of what layer 0 lacks][layer 0][copy 1][layer 1], all on the compute stream
 *	--offload-group-size   offloader V2: layers brought ahead on a stream of their own (bring.h), without CUDA graphs
 *	--tp-size              every matrix and the heads are divided (sim/exec/ranks.h)
 *
 * --mem-fraction-static of each GPU holds weights and cache. What kernels reach is in hw/kernels/sglang.yaml.
 */
#include "models/kvcache.h"
#include "sim/engine/bring.h"
#include "sim/engine/divide.h"

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
	double offload_gib, static_share;
	const char *kv_dtype, *numa_node;
	bool no_graph, p2p;
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
	PARAM_TEXT(struct sglang_flags, numa_node, "numa-node", "",
		"the socket whose memory each GPU's process has: 0 1; empty: as ram.numa says"),
};

static const struct engine_alias sglang_alias[] = {{"tp", "tp-size"}, {"tensor-parallel-size", "tp-size"}};

static const struct engine_ignored sglang_ignored[] = {
	{"model-path", true}, {"model", true}, {"tokenizer-path", true}, {"host", true}, {"port", true}, {"dtype", true},
	{"quantization", true}, {"trust-remote-code", false}, {"served-model-name", true}, {"api-key", true},
	{"log-level", true}, {"attention-backend", true}, {"random-seed", true}, {"reasoning-parser", true},
	{"tool-call-parser", true}, {"max-running-requests", true}, {"disable-radix-cache", false}, {"chat-template", true},
	{"load-format", true}, {"offload-mode", true},
};

static struct bring bring_of(const struct sglang_flags *f)
{
	return (struct bring){
		.group_size = f->group_size, .num_in_group = f->num_in_group, .prefetch_step = f->prefetch_step};
}

static int sglang_place(const struct engine_job *job, struct placement *p, struct arena *a, struct err *err)
{
	const struct sglang_flags *f = job->flags;
	const struct trace_workload *w = &job->trace->workload;
	int ram = hw_first_memory(job->machine, HW_MEMORY_RAM);
	uint64_t context = trace_max_context(job->trace);
	struct bring bring = bring_of(f);

	if (bring_check(&bring, err) || divide_init(p, job, f->tp, "tp-size", a, err) ||
		divide_kv_types(f->kv_dtype, &p->kv_types, err) || divide_bind(p, f->numa_node, "numa-node", err))
		return -1;
	if (f->context_length && f->context_length < context)
		return err_set(err, ERR_INPUT, "flag 'context-length': %llu, but the workload has sequences of %llu",
			(unsigned long long)f->context_length, (unsigned long long)context);
	if (f->group_size && f->offload_gib > 0)
		return err_set(err, ERR_INPUT, "flag 'cpu-offload-gb' and 'offload-group-size' exclude each other");
	p->kv_sequences = w->batch;
	p->kv_context = f->context_length > context * w->batch ? f->context_length / w->batch : context;
	divide_resident(p);
	if (f->group_size)
		bring_place_groups(&bring, p, ram);
	else
		bring_place_parameters(p, ram, PLACE_STREAMED, ~0u, f->offload_gib * GIB);
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
	if (!divide_fits(p))
		p->advice = "--cpu-offload-gb, --offload-group-size, a shorter context, a smaller batch or type, or more GPUs are "
			    "needed";
	return 0;
}

static uint64_t sglang_prefill_rows(const void *flags, const struct hw_machine *machine)
{
	(void)machine;
	return ((const struct sglang_flags *)flags)->chunk;
}

struct sglang {
	const struct cost *cost;
	struct ranks ranks;
	struct bring bring;
};

static void *sglang_state_new(const struct engine_job *job, const struct placement *p, struct arena *a)
{
	const struct sglang_flags *f = job->flags;
	struct sglang *s = arena_new(a, struct sglang);

	s->cost = job->cost;
	ranks_init(&s->ranks, job->cost, p);
	s->ranks.nodes = group_nodes;
	s->ranks.mla_nodes = MLA_NODES;
	s->ranks.index_nodes = INDEX_NODES;
	s->ranks.one_by_one = f->no_graph || f->group_size;
	s->ranks.direct = f->p2p;
	s->bring = bring_of(f);
	bring_init(&s->bring, &s->ranks, p, a);
	return s;
}

static int sglang_lower(struct exec *x, void *state, const struct trace_step *step, op_ref *last, struct err *err)
{
	struct sglang *s = state;

	(void)err;
	*last = ranks_step(&s->ranks, x, step, 0);
	*last = exec_wait(x, hw_num_value(&s->cost->gpu_sync_s) + hw_num_value(&s->cost->step_s), *last);
	return 0;
}

const struct engine_ops engine_sglang = {
	.name = "sglang",
	.version = "1",
	.help = "as of 2026: resident in CUDA graphs, --cpu-offload-gb copies before each layer, layers brought ahead",
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
