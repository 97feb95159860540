/*
 * vllm.c - vLLM of 2026 (00593fa7, V1 engine), and by --build what older ones did otherwise.
 *
 *	resident           one CUDA graph a decode step: [attn][kv] all-reduce [ffn] all-reduce ... A prompt's graph is in
 *	                   pieces, between which the host launches attention (compilation: FULL_AND_PIECEWISE)
 *	--cpu-offload-gb   UVA: the same, but kernels whose weights lie in pinned host memory read them over the link
 *	  without UVA      a layer's weights are copied on the compute stream: [copy 0][layer 0][copy 1][layer 1]
 *	--offload-group-size   layers are brought ahead on a stream of their own (bring.h)
 *	KV offloading      the prefix that a request shares with an earlier one lies in host memory; its blocks are hashed to
 *	                   find it, and it is loaded before the request runs, block after block, while others do; the
 *	                   scheduler sees in its next pass that it is there. What is new is stored behind it
 *	--tensor-parallel-size   every matrix and the heads are divided (sim/exec/ranks.h)
 *
 * cpu-offload-gb counts for each GPU and is used up parameter by parameter from the first layer on (model_executor/
 * offloader). A share --gpu-memory-utilization of each GPU may be used; a prompt is read in chunks of
 * --max-num-batched-tokens. Draft layers of models are not run. What kernels reach is in hw/kernels/vllm.yaml.
 *
 *	--build   before   CUDA graphs (0.2.6: pull request 1926)   2023-12
 *	                   the host's work beside the GPU's (0.6.0) 2024-09
 *	                   graphs of prompts (0.8.0, V1 engine)     2025-03
 *	                   UVA (0.8.3: pull request 15354)          2025-04
 */
#include <string.h>

#include "base/suggest.h"
#include "models/kvcache.h"
#include "sim/engine/bring.h"
#include "sim/engine/divide.h"

#define HIDDEN_ELEMENT_BYTES 2
/* Tokens of a pass by default, for the API server: more on large GPUs (vllm/engine/arg_utils.py). */
#define LARGE_GPU_BYTES (70ull << 30)
#define CHUNK_TOKENS_LARGE 8192
#define CHUNK_TOKENS 2048
#define GIB 1073741824.0
#define BUILD_GRAPHS "2023-12"
#define BUILD_LEAN_HOST "2024-09"
#define BUILD_PIECES "2025-03"
#define BUILD_UVA "2025-04"
#define BUILD_LATE_LOADS "2026-09"
/* Between two pieces: the graph before ends and that behind is launched, keys and values are stored, attention is given its
   metadata and launched, its result is handed on. */
#define PIECE_OPERATIONS 6

/* Kernels of a layer as compiled (fused norms, rotary embedding, activations; vllm/model_executor/models/llama.py and
   layers/fused_moe): a CUDA graph node each. Reading the cache is one more. */
static const int group_nodes[MODEL_GROUP_N] = {
	[MODEL_EMBED] = 1,
	[MODEL_ATTN] = 5,   /* norm, qkv, rotary, cache store, output */
	[MODEL_FFN] = 4,    /* norm, gate and up, activation, down */
	[MODEL_ROUTER] = 5, /* norm, logits, top-k, sort, align */
	[MODEL_SHARED] = 3,
	[MODEL_EXPERTS] = 4, /* gate and up, activation, down, sum */
	[MODEL_OUTPUT] = 2,
};
/* Of layers that keep a latent vector (the second projection of queries, norms, two small products for each head), and of
   those that pick what they attend to (projections, norm, rotary embedding, quantization, store, scores, top-k). */
#define MLA_NODES 6
#define INDEX_NODES 9

static const char *const backends[] = {"auto", "uva", "prefetch", NULL};
enum { BACKEND_AUTO, BACKEND_UVA, BACKEND_PREFETCH };
static const char *const kv_backends[] = {"native", "lmcache", NULL};

struct vllm_flags {
	uint64_t tp, pp, group_size, num_in_group, prefetch_step, max_model_len, chunk, block, max_seqs;
	const char *offload_gb, *offload_params, *kv_dtype, *kv_transfer, *build;
	double utilization, kv_offload_gib;
	const char *bind_nodes;
	bool eager, disable_uva, p2p, bind;
	int backend, kv_backend;
};

static const struct param vllm_flag[] = {
	PARAM_COUNT(struct vllm_flags, tp, "tensor-parallel-size", "1", 1, PLACE_MAX_ROWS, "GPUs that divide every matrix"),
	PARAM_COUNT(struct vllm_flags, pp, "pipeline-parallel-size", "1", 1, 1, "GPUs that divide the layers: only 1 is modelled"),
	PARAM_TEXT(struct vllm_flags, offload_gb, "cpu-offload-gb", "0",
		"GiB of weights a GPU that lie in host memory; auto (not vLLM's own): as few as fit"),
	PARAM_TEXT(struct vllm_flags, offload_params, "cpu-offload-params", "",
		"which of them: experts, shared_experts, gate, mlp, self_attn; empty: all"),
	PARAM_CHOICE(struct vllm_flags, backend, "offload-backend", "auto", backends,
		"how: kernels read them (uva), or layers are brought ahead (prefetch)"),
	PARAM_COUNT(struct vllm_flags, group_size, "offload-group-size", "0", 0, 65536,
		"of every so many layers the last are brought ahead; 0: none"),
	PARAM_COUNT(struct vllm_flags, num_in_group, "offload-num-in-group", "1", 1, 65536, "how many of a group"),
	PARAM_COUNT(struct vllm_flags, prefetch_step, "offload-prefetch-step", "1", 1, 65536,
		"how many such layers ahead, each with a slot on the GPU"),
	PARAM_FLAG(struct vllm_flags, disable_uva, "disable-uva", "no",
		"VLLM_WEIGHT_OFFLOADING_DISABLE_UVA=1: layers are copied before they run"),
	PARAM_TEXT(struct vllm_flags, build, "build", "2026-06",
		"year and month of the version, not vLLM's own: graphs from " BUILD_GRAPHS ", of prompts from " BUILD_PIECES
		", less work of the host from " BUILD_LEAN_HOST ", UVA from " BUILD_UVA ", loads of the cache behind a pass's launch "
		"from " BUILD_LATE_LOADS " on"),
	PARAM_FLAG(struct vllm_flags, eager, "enforce-eager", "no", "no CUDA graphs: the host launches each kernel"),
	PARAM_REAL(struct vllm_flags, utilization, "gpu-memory-utilization", UNIT_FRACTION, "0.9", 0.01, 1,
		"share of each GPU's memory that may be used"),
	PARAM_TEXT(struct vllm_flags, kv_dtype, "kv-cache-dtype", "auto", "auto (16 bits), bfloat16, float16, fp8, fp8_e4m3"),
	PARAM_COUNT(struct vllm_flags, max_model_len, "max-model-len", "0", 0, 1e9,
		"context that there must be room for; 0: what the workload needs"),
	PARAM_COUNT(struct vllm_flags, chunk, "max-num-batched-tokens", "0", 0, 1e7,
		"rows of a pass; 0: 8192 on GPUs from 70 GiB on, else 2048"),
	PARAM_COUNT(struct vllm_flags, max_seqs, "max-num-seqs", "0", 0, 1e6, "sequences at once; 0: as many as there are"),
	PARAM_COUNT(struct vllm_flags, block, "block-size", "16", 1, 4096, "tokens of a block of the cache"),
	PARAM_REAL(struct vllm_flags, kv_offload_gib, "kv-offloading-size", UNIT_PLAIN, "0", 0, 1e6,
		"GiB of host memory for blocks of the cache; the workload's depth is loaded from there"),
	PARAM_CHOICE(struct vllm_flags, kv_backend, "kv-offloading-backend", "native", kv_backends, "both are modelled alike"),
	PARAM_TEXT(struct vllm_flags, kv_transfer, "kv-transfer-config", "",
		"the same as JSON; OffloadingConnector and LMCacheConnectorV1 are modelled, alike"),
	PARAM_FLAG(struct vllm_flags, p2p, "p2p", "no",
		"GPUs reach each other over PCIe past host memory (data-centre cards, patched drivers)"),
	PARAM_FLAG(struct vllm_flags, bind, "numa-bind", "no",
		"each GPU's process has memory of its own socket, whatever ram.numa says"),
	PARAM_TEXT(struct vllm_flags, bind_nodes, "numa-bind-nodes", "", "the same with the socket of each GPU: 0 1"),
};

static const struct engine_alias vllm_alias[] = {
	{"tp", "tensor-parallel-size"}, {"cpu_offload_gb", "cpu-offload-gb"}, {"tensor_parallel_size", "tensor-parallel-size"},
	{"pp", "pipeline-parallel-size"},
};

/* vllm/engine/arg_utils.py and vllm/entrypoints/openai/cli_args.py of August 2026, and what older releases took besides */
static const struct engine_ignored vllm_ignored[] = {
	{"model", true}, {"dtype", true}, {"quantization", true}, {"q", true}, {"host", true}, {"port", true}, {"api-key", true},
	{"served-model-name", ENGINE_VALUES}, {"trust-remote-code", false}, {"download-dir", true}, {"tokenizer", true},
	{"seed", true}, {"load-format", true}, {"revision", true}, {"chat-template", true}, {"enable-prefix-caching", false},
	{"no-enable-prefix-caching", false}, {"enable-chunked-prefill", false}, {"swap-space", true},
	{"disable-log-requests", false}, {"disable-log-stats", false}, {"uvicorn-log-level", true}, {"tool-call-parser", true},
	{"reasoning-parser", true}, {"enable-auto-tool-choice", false}, {"limit-mm-per-prompt", true}, {"generation-config", true},
	{"async-scheduling", false}, {"distributed-executor-backend", true}, {"max-logprobs", true}, {"language-model-only", false},
	{"moe-backend", true},
	/* NCCL's: over NVLink 6 us on two H100 (NVIDIA/nccl issue 1259) against 9.5; over PCIe `reduce' lies between the two */
	{"disable-custom-all-reduce", false}, {"tokenizer-mode", true}, {"config-format", true}, {"hf-config-path", true},
	{"hf-overrides", true}, {"hf-token", true}, {"tokenizer-revision", true}, {"code-revision", true},
	{"skip-tokenizer-init", false}, {"task", true}, {"runner", true}, {"device", true}, {"worker-use-ray", false},
	{"max-parallel-loading-workers", true}, {"safetensors-load-strategy", true}, {"model-loader-extra-config", true},
	{"override-generation-config", true}, {"logits-processors", true}, {"rope-scaling", true}, {"rope-theta", true},
	{"attention-backend", true}, {"scheduling-policy", true}, {"stream-interval", true}, {"max-num-partial-prefills", true},
	{"max-long-partial-prefills", true}, {"long-prefill-token-threshold", true}, {"use-v2-block-manager", false},
	{"num-lookahead-slots", true}, {"preemption-mode", true}, {"prefix-caching-hash-algo", true},
	{"max-seq-len-to-capture", true}, {"num-gpu-blocks-override", true}, {"calculate-kv-scales", false},
	{"guided-decoding-backend", true}, {"structured-outputs-config", true}, {"enable-reasoning", false},
	{"mm-processor-kwargs", true}, {"mm-encoder-tp-mode", true}, {"mm-processor-cache-gb", true},
	{"disable-mm-preprocessor-cache", false}, {"allowed-local-media-path", true}, {"chat-template-content-format", true},
	{"tool-parser-plugin", true}, {"response-role", true}, {"ssl-keyfile", true}, {"ssl-certfile", true}, {"root-path", true},
	{"allowed-origins", true}, {"middleware", true}, {"enable-request-id-headers", false},
	{"disable-frontend-multiprocessing", false}, {"disable-uvicorn-access-log", false}, {"enable-log-requests", false},
	{"no-enable-log-requests", false}, {"max-log-len", true}, {"show-hidden-metrics-for-version", true},
	{"otlp-traces-endpoint", true}, {"enable-server-load-tracking", false}, {"enable-prompt-tokens-details", false},
	{"uds", true}, {"api-server-count", true}, {"headless", false}, {"enable-sleep-mode", false}, {"profiler-config", true},
	{"num-iters", true}, {"num-iters-warmup", true}, {"output-json", true}, {"profile", false},
	{"default-chat-template-kwargs", true}, {"speculative-config", ENGINE_NOT_MODELLED_VALUE},
	{"speculative-model", ENGINE_NOT_MODELLED_VALUE}, {"num-speculative-tokens", ENGINE_NOT_MODELLED_VALUE},
	{"num-scheduler-steps", ENGINE_NOT_MODELLED_VALUE}, {"compilation-config", ENGINE_NOT_MODELLED_VALUE},
	{"cc", ENGINE_NOT_MODELLED_VALUE}, {"O", ENGINE_NOT_MODELLED_VALUE}, {"O0", ENGINE_NOT_MODELLED},
	{"O1", ENGINE_NOT_MODELLED}, {"O2", false}, {"O3", ENGINE_NOT_MODELLED}, {"optimization-level", ENGINE_NOT_MODELLED_VALUE},
	{"enable-expert-parallel", ENGINE_NOT_MODELLED}, {"all2all-backend", ENGINE_NOT_MODELLED_VALUE},
	{"enable-eplb", ENGINE_NOT_MODELLED}, {"dp", ENGINE_NOT_MODELLED_VALUE}, {"data-parallel-size", ENGINE_NOT_MODELLED_VALUE},
	{"data-parallel-size-local", ENGINE_NOT_MODELLED_VALUE}, {"data-parallel-address", ENGINE_NOT_MODELLED_VALUE},
	{"data-parallel-rpc-port", ENGINE_NOT_MODELLED_VALUE}, {"decode-context-parallel-size", ENGINE_NOT_MODELLED_VALUE},
	{"dcp", ENGINE_NOT_MODELLED_VALUE}, {"nnodes", ENGINE_NOT_MODELLED_VALUE}, {"node-rank", ENGINE_NOT_MODELLED_VALUE},
	{"master-addr", ENGINE_NOT_MODELLED_VALUE}, {"enable-dbo", ENGINE_NOT_MODELLED}, {"enable-lora", ENGINE_NOT_MODELLED},
	{"lora-modules", ENGINE_NOT_MODELLED | ENGINE_VALUES}, {"max-loras", true}, {"max-lora-rank", true},
	{"max-cpu-loras", true},
};

struct plan {
	const struct engine_job *job;
	const struct vllm_flags *flags;
	struct kvcache_types kv_types;
	unsigned groups;       /* that --cpu-offload-params names, as bits */
	double offload_bytes;  /* of one GPU */
	int ram;
};

static bool is_before(const struct vllm_flags *f, const char *date)
{
	return strcmp(f->build, date) < 0;
}

static struct bring bring_of(const struct vllm_flags *f)
{
	return (struct bring){
		.group_size = f->group_size, .num_in_group = f->num_in_group, .prefetch_step = f->prefetch_step};
}

static uint64_t chunk_tokens(const struct vllm_flags *f, const struct hw_machine *hw)
{
	if (f->chunk)
		return f->chunk;
	int gpu = hw_first_memory(hw, HW_MEMORY_GPU);
	return gpu >= 0 && hw->memories[gpu].capacity_bytes >= LARGE_GPU_BYTES ? CHUNK_TOKENS_LARGE : CHUNK_TOKENS;
}

static bool loads_prefix(const struct vllm_flags *f)
{
	return f->kv_offload_gib > 0 || f->kv_transfer[0];
}

static uint64_t pad(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

static void book(const struct plan *plan, const struct bring *bring, struct placement *p)
{
	const struct vllm_flags *f = plan->flags;
	const struct hw_memory *gpu = &p->machine->memories[p->rows.spot[0].memory];
	const struct trace_workload *w = &plan->job->trace->workload;

	divide_book(p, LEDGER_ACTIVATION, "profiled activations",
		model_activation_bytes(p->model, chunk_tokens(f, p->machine), w->batch, HIDDEN_ELEMENT_BYTES) /
			(uint64_t)p->rows.n);
	divide_book(p, LEDGER_OVERHEAD, "left free by --gpu-memory-utilization",
		(uint64_t)((1 - f->utilization) * (double)gpu->capacity_bytes));
	bring_book(bring, p);
	if (!loads_prefix(f))
		return;
	uint64_t prefix = kvcache_bytes(p->model, w->depth + w->prompt, w->batch, &p->kv_types);
	uint64_t pool = (uint64_t)(f->kv_offload_gib * GIB);
	ledger_book(&p->ledger, plan->ram, LEDGER_KV, "blocks offloaded", pool > prefix ? pool : prefix);
}

static int fill(const struct plan *plan, struct placement *p, struct arena *a, struct err *err)
{
	const struct vllm_flags *f = plan->flags;
	const struct trace_workload *w = &plan->job->trace->workload;
	struct bring bring = bring_of(f);
	uint64_t context = trace_max_context(plan->job->trace);

	if (divide_init(p, plan->job, f->tp, "tensor-parallel-size", a, err))
		return -1;
	p->kv_types = plan->kv_types;
	p->kv_sequences = w->batch;
	/* Of the longest sequence there must be room for one, whatever the workload. */
	if (f->max_model_len > context * w->batch)
		context = f->max_model_len / w->batch;
	p->kv_context = pad(context, f->block);
	if (divide_bind(p, f->bind_nodes, "numa-bind-nodes", err))
		return -1;
	for (int i = 0; i < p->rows.n && f->bind && !f->bind_nodes[0]; i++)
		p->remote_share[p->rows.spot[i].memory] = 0;
	divide_resident(p);
	if (f->group_size)
		bring_place_groups(&bring, p, plan->ram);
	else
		bring_place_parameters(p, plan->ram,
			f->disable_uva || is_before(f, BUILD_UVA) ? PLACE_STREAMED : PLACE_ZERO_COPY, plan->groups,
			plan->offload_bytes);
	place_finish(p);
	book(plan, &bring, p);
	return 0;
}

static int read_groups(const char *names, unsigned *groups, struct err *err)
{
	static const struct {
		const char *name;
		unsigned groups;
	} segment[] = {
		{"experts", 1u << MODEL_EXPERTS},
		{"shared_experts", 1u << MODEL_SHARED},
		{"gate", 1u << MODEL_ROUTER},
		{"mlp", 1u << MODEL_FFN | 1u << MODEL_ROUTER | 1u << MODEL_SHARED | 1u << MODEL_EXPERTS},
		{"self_attn", 1u << MODEL_ATTN},
	};
	char word[64], near[128];

	*groups = *names ? 0 : ~0u;
	while (*names) {
		size_t len = strcspn(names, ", "), i = 0;
		struct suggest s;
		snprintf(word, sizeof(word), "%.*s", (int)len, names);
		suggest_init(&s, word);
		for (; i < ARRAY_LEN(segment) && strcmp(segment[i].name, word); i++)
			suggest_offer(&s, segment[i].name);
		if (i == ARRAY_LEN(segment))
			return err_set(err, ERR_INPUT, "flag 'cpu-offload-params': '%s' is none of experts, shared_experts, gate, "
				"mlp, self_attn%s", word, suggest_text(&s, near, sizeof(near)));
		*groups |= segment[i].groups;
		names += len;
		names += strspn(names, ", ");
	}
	return 0;
}

static int check_flags(const struct engine_job *job, const struct vllm_flags *f, struct err *err)
{
	uint64_t context = trace_max_context(job->trace);

	struct bring bring = bring_of(f);

	if (engine_check_build(f->build, err) || bring_check(&bring, err))
		return -1;
	if (f->backend == BACKEND_PREFETCH && !f->group_size)
		return err_set(err, ERR_INPUT, "flag 'offload-backend': prefetch needs offload-group-size");
	if (f->backend == BACKEND_UVA && f->group_size)
		return err_set(err, ERR_INPUT, "flag 'offload-group-size' belongs to offload-backend prefetch, not uva");
	if (f->max_model_len && f->max_model_len < context)
		return err_set(err, ERR_INPUT, "flag 'max-model-len': %llu, but the workload has sequences of %llu",
			(unsigned long long)f->max_model_len, (unsigned long long)context);
	if (f->max_seqs && f->max_seqs < job->trace->workload.batch)
		return err_set(err, ERR_INPUT, "flag 'max-num-seqs': %llu, but the workload runs %llu at once",
			(unsigned long long)f->max_seqs, (unsigned long long)job->trace->workload.batch);
	if (f->kv_transfer[0] && !strstr(f->kv_transfer, "OffloadingConnector") && !strstr(f->kv_transfer, "LMCacheConnector"))
		return err_set(err, ERR_INPUT, "flag 'kv-transfer-config': only OffloadingConnector and LMCacheConnectorV1 are "
			"modelled, not '%s'", f->kv_transfer);
	return 0;
}

/* Everywhere. */
static bool fits_with(struct plan *plan, double gib, struct arena *a)
{
	struct arena_mark mark = arena_mark(a);
	struct placement p;
	struct err err;

	plan->offload_bytes = gib * GIB;
	bool fits = fill(plan, &p, a, &err) == 0 && ledger_fits(&p.ledger);
	arena_rewind(a, mark);
	return fits;
}

static bool fits_gpus(const void *ctx, double gib, struct arena *a)
{
	struct plan tried = *(const struct plan *)ctx;
	struct placement p;
	struct err err;

	tried.offload_bytes = gib * GIB;
	return fill(&tried, &p, a, &err) == 0 && divide_fits(&p);
}

/* The least whole GiB with which all fits on the GPUs; the whole model when none does. */
static double least_offload(const struct plan *plan, struct arena *a)
{
	return divide_least_gib((double)(plan->job->model->weights_bytes / plan->flags->tp) / GIB + 1, fits_gpus, plan, a);
}

static const char *advise(const struct plan *plan, const struct placement *p, struct arena *a)
{
	struct plan tried = *plan;
	bool fits = ledger_fits(&p->ledger);

	if (plan->flags->group_size)
		return fits ? "" : "more layers of a group, a shorter context or a smaller batch are needed";
	double least = least_offload(plan, a);
	if (!fits && !fits_with(&tried, least, a))
		return "a shorter context, a smaller batch, a smaller type, more GPUs or more RAM are needed";
	if (!fits)
		return arena_printf(a, "this would fit: --cpu-offload-gb %.0f", least);
	if (plan->offload_bytes <= 0)
		return "all weights are in GPU memory";
	if (least * GIB < plan->offload_bytes - GIB)
		return arena_printf(a, "fewer weights need to leave the GPU%s: --cpu-offload-gb %.0f", p->rows.n > 1 ? "s" : "",
			least);
	return "no more weights fit in GPU memory";
}

static int vllm_place(const struct engine_job *job, struct placement *p, struct arena *a, struct err *err)
{
	const struct vllm_flags *f = job->flags;
	struct plan plan = {.job = job, .flags = f, .ram = hw_first_memory(job->machine, HW_MEMORY_RAM)};
	double gib = 0;

	if (check_flags(job, f, err) || read_groups(f->offload_params, &plan.groups, err) ||
		divide_kv_types(f->kv_dtype, &plan.kv_types, err) ||
		divide_init(p, job, f->tp, "tensor-parallel-size", a, err))
		return -1;
	if (strcmp(f->offload_gb, "auto") == 0)
		gib = least_offload(&plan, a);
	else if (units_parse(f->offload_gb, UNIT_PLAIN, &gib, err) || gib < 0)
		return err_set(err, ERR_INPUT, "flag 'cpu-offload-gb' must be a number of GiB or auto, not '%s'", f->offload_gb);
	if (gib > 0 && f->group_size)
		return err_set(err, ERR_INPUT, "flag 'cpu-offload-gb' and 'offload-group-size' exclude each other");
	plan.offload_bytes = gib * GIB;
	if (fill(&plan, p, a, err))
		return -1;
	p->advice = advise(&plan, p, a);
	return 0;
}

static uint64_t vllm_prefill_rows(const void *flags, const struct hw_machine *hw)
{
	return chunk_tokens(flags, hw);
}

struct vllm {
	const struct engine_job *job;
	const struct vllm_flags *flags;
	const struct cost *cost;
	struct ranks ranks;
	struct bring bring;
	int ram;
	double step_s;                  /* of the host, between two passes */
	op_ref hashed;                  /* blocks of prefixes, by the host */
	op_ref loading[PLACE_MAX_ROWS]; /* by GPU: the last prefix on its way */
};

static void *vllm_state_new(const struct engine_job *job, const struct placement *p, struct arena *a)
{
	struct vllm *s = arena_new(a, struct vllm);

	s->job = job;
	s->flags = job->flags;
	s->cost = job->cost;
	s->ram = hw_first_memory(job->machine, HW_MEMORY_RAM);
	ranks_init(&s->ranks, job->cost, p);
	s->ranks.nodes = group_nodes;
	s->ranks.mla_nodes = MLA_NODES;
	s->ranks.index_nodes = INDEX_NODES;
	s->step_s = hw_num_value(is_before(s->flags, BUILD_LEAN_HOST) ? &job->cost->step_old_s : &job->cost->step_s);
	s->ranks.direct = s->flags->p2p;
	s->bring = bring_of(s->flags);
	bring_init(&s->bring, &s->ranks, p, a);
	return s;
}

/* All layers' entries of n tokens of one sequence, on one GPU. */
static double cache_bytes(const struct placement *p, double n)
{
	double bytes = 0;

	for (uint32_t i = 0; i < p->model->n_layer; i++) {
		const struct model_layer *l = &p->model->layers[i];
		if (l->n_head && !l->draft)
			bytes += (p->rows.n > 1 ? place_heads_share(l, p->rows.n) : 1) * n *
				(double)kvcache_token_bytes(l, &p->kv_types);
	}
	return bytes;
}

/* Prefixes of the sequences whose first rows are in this step: block after block, on a stream of their own. What this step
   waits for. Loads are handed over before a pass is launched (start_load_kv in pre_forward), until pull request 53333. */
static op_ref load_prefixes(struct vllm *s, struct exec *x, const struct trace_step *step, op_ref arrived)
{
	const struct placement *p = x->placement;
	const struct trace *t = s->job->trace;
	uint64_t before = step->index * t->rows_max, prompt = t->workload.prompt;
	uint64_t n = pad(before + step->n_tokens, prompt) / prompt - pad(before, prompt) / prompt;
	double blocks = (double)pad(t->workload.depth, s->flags->block) / (double)s->flags->block;
	op_ref all = 0;

	exec_label(x, MODEL_NO_LAYER, MODEL_ATTN);
	s->hashed = exec_wait(x, (double)n * blocks * hw_num_value(&s->cost->host_block_s), exec_join(x, s->hashed, arrived));
	for (int i = 0; i < s->ranks.n; i++) {
		op_ref *last = &s->loading[i];
		*last = exec_wait(x, (double)n * blocks * hw_num_value(&s->cost->copy_submit_s), exec_join(x, *last, s->hashed));
		*last = exec_copy(x, s->ram, p->rows.spot[i].memory, (double)n * cache_bytes(p, (double)t->workload.depth), true,
			*last, 0);
		all = exec_join(x, all, *last);
	}
	all = exec_wait(x, s->step_s, all);
	if (is_before(s->flags, BUILD_LATE_LOADS))
		all = exec_join(x, all, exec_wait(x, (double)n * hw_num_value(&s->cost->host_load_s), x->step_end));
	return all;
}

static void store_new(struct vllm *s, struct exec *x, const struct trace_step *step, op_ref after)
{
	const struct placement *p = x->placement;

	exec_label(x, MODEL_NO_LAYER, MODEL_ATTN);
	for (int i = 0; i < s->ranks.n; i++)
		exec_copy(x, p->rows.spot[i].memory, s->ram, cache_bytes(p, (double)step->n_tokens), true, after, 0);
}

static int vllm_lower(struct exec *x, void *state, const struct trace_step *step, op_ref *last, struct err *err)
{
	struct vllm *s = state;
	bool prompt = step->phase == TRACE_PREFILL, offloads = loads_prefix(s->flags) && prompt;
	/* All requests come at once; what is done for each is done beside the others' passes. */
	op_ref arrived = prompt && step->index == 0 ? exec_wait(x, hw_num_value(&s->cost->request_s), x->step_end) : 0;
	op_ref after = offloads && s->job->trace->workload.depth ? load_prefixes(s, x, step, arrived) : arrived;

	(void)err;
	s->ranks.one_by_one = s->flags->eager || is_before(s->flags, prompt ? BUILD_PIECES : BUILD_GRAPHS);
	s->ranks.between = prompt ? PIECE_OPERATIONS : 0;
	*last = ranks_step(&s->ranks, x, step, after);
	if (offloads)
		store_new(s, x, step, *last);
	/* Token numbers come back to the host, which schedules the next step. */
	double each_s = is_before(s->flags, BUILD_LEAN_HOST) ? hw_num_value(&s->cost->sequence_old_s) : 0;
	*last = exec_wait(x, hw_num_value(&s->cost->gpu_sync_s) + s->step_s + (double)step->n_sequences * each_s, *last);
	return 0;
}

const struct engine_ops engine_vllm = {
	.name = "vllm",
	.version = "1",
	.help = "as of 2026: resident in CUDA graphs, --cpu-offload-gb by zero-copy reads, layers brought ahead, KV offloading",
	.flag = vllm_flag,
	.n_flags = ARRAY_LEN(vllm_flag),
	.flags_size = sizeof(struct vllm_flags),
	.alias = vllm_alias,
	.n_aliases = ARRAY_LEN(vllm_alias),
	.short_counts = true, /* docs/cli/README.md, "Human-readable integer arguments" */
	.minus_unset = true,
	.dashes = true,
	.ignored = vllm_ignored,
	.n_ignored = ARRAY_LEN(vllm_ignored),
	.several = "numa-bind-nodes",
	.kernels = "vllm",
	.overheads = true,
	.prefill_rows = vllm_prefill_rows,
	.place = vllm_place,
	.state_new = vllm_state_new,
	.lower = vllm_lower,
};
