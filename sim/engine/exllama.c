/*
 * exllama.c - ExLlamaV3 (1.4.1, exllamav3/model/moe_cpu_host.py): on one GPU, or the routed experts of the first layers on
 * the CPU; tokens and n-grams are looked up in RAM.
 *
 *	few rows of an expert                        many: it is staged, copied, computed by the GPU
 *
 *	gpu   [attn][router]─┐      ┌[shared] ...    [attn][router] sync            [experts, as they come]┐
 *	link                 └hidden┘result                        │          [copy][copy][copy]──┘        ├ ...
 *	cpu                  [experts]                             ├[memcpy to pinned][memcpy]┘            │
 *	                                                           └[experts with few rows]────────────────┘
 *
 * The host never waits in decoding: a kernel of the GPU waits for the CPU's flag, so that the GPU idles meanwhile. In a
 * prompt the host reads how many rows each expert got. From a number on (16; more where the link is slow) an expert's
 * weights are copied by four threads into a pinned ring, from there over the link, and multiplied on the GPU; the
 * others stay with the CPU, which works at the same time. Experts are taken to be equally popular: their rows are
 * Poisson's. What kernels reach is in hw/kernels/exllama.yaml.
 */
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <string.h>

#include "models/kvcache.h"
#include "sim/engine/divide.h"
#include "sim/exec/kernel.h"
#include "sim/exec/ranks.h"

#define HIDDEN_ELEMENT_BYTES 2
/* MoeCpuTuning: rows of a step from which experts are streamed, rows of an expert at a link of so many bytes a second,
   what is staged at once. */
#define STREAM_MIN_ROWS 32
#define STREAM_EXPERT_ROWS 16
#define STREAM_LINK_BYTES_S 25e9
#define STAGE_BYTES (32.0 * 1024 * 1024)
#define STAGE_SLOTS 2
#define TENSORS_OF_EXPERT 3

/* Calls from Python into the extension, which does the operations of a module in one or two. */
static const int group_operations[MODEL_GROUP_N] = {
	[MODEL_EMBED] = 1,
	[MODEL_ATTN] = 8,
	[MODEL_FFN] = 3,
	[MODEL_ROUTER] = 5,
	[MODEL_SHARED] = 2,
	[MODEL_EXPERTS] = 3,
	[MODEL_OUTPUT] = 4,
};
#define CACHE_OPERATIONS 3
/* Inputs, experts and their weights down, flag, wait, result up. */
#define HANDOFF_OPERATIONS 6
/* A staged batch: copy, two events, tables of pointers, lists of rows, the product. */
#define BATCH_OPERATIONS 12

/* The cache is divided into (exllamav3/constants.py); what it cannot hold is refused (generator/job.py). */
#define PAGE_TOKENS 256

struct exllama_flags {
	uint64_t cpu_layers, threads, chunk_rows, cache_tokens;
	const char *cache_bits;
};

static const struct param exllama_flag[] = {
	PARAM_COUNT(struct exllama_flags, cpu_layers, "moe_cpu_offload", "0", 0, 4096,
		"layers, from the first with experts on, whose routed experts the CPU computes"),
	PARAM_COUNT(struct exllama_flags, threads, "moe_cpu_threads", "0", 0, 4096, "threads for them; 0: one for each core"),
	PARAM_COUNT(struct exllama_flags, chunk_rows, "chunk_size", "2048", 32, 1 << 20, "rows of a prompt that go through at once"),
	PARAM_COUNT(struct exllama_flags, cache_tokens, "cache_size", "0", 0, 1e9, "cache allocated, in tokens; 0: what the workload needs"),
	PARAM_TEXT(struct exllama_flags, cache_bits, "cache_quant", "16",
		"bits of the cache: 16, 8, 6, 5 or 4; two for keys and values: 8,4"),
};

/* Names of ExLlamaV3's scripts (exllamav3/model_init.py), then TabbyAPI's (common/config_models.py). */
static const struct engine_alias exllama_alias[] = {
	{"mcl", "moe_cpu_offload"}, {"mclt", "moe_cpu_threads"}, {"chunk", "chunk_size"}, {"cs", "cache_size"}, {"cq", "cache_quant"},
	{"cpu-moe-offload-layers", "moe_cpu_offload"}, {"chunk-size", "chunk_size"}, {"cache-size", "cache_size"},
	{"cache-mode", "cache_quant"},
};

static const struct engine_ignored exllama_ignored[] = {
	{"m", true}, {"model_dir", true}, {"gs", true}, {"gpu_split", true}, {"max_length", true}, {"lv", false}, {"lm", false},
	{"ngr", false}, {"load_verbose", false}, {"load_metrics", false}, {"ambs", true}, {"autosplit_max_batch_size", true},
	{"asnf", false}, {"autosplit_no_forward", false}, {"spf", false}, {"skip_prefill", false}, {"sg", false},
	{"skip_gen", false}, {"swu", false}, {"skip_warmup", false}, {"mode", true}, {"un", true}, {"user_name", true},
	{"bn", true}, {"bot_name", true}, {"mli", false}, {"multiline", false}, {"sp", true}, {"system_prompt", true},
	{"maxr", true}, {"max_response_tokens", true}, {"basic", false}, {"basic_console", false}, {"think", false},
	{"no_think", false}, {"think_budget", true}, {"amnesia", false}, {"tps", false}, {"show_tps", false}, {"prompt", true},
	{"temp", true}, {"temperature", true}, {"minp", true}, {"min_p", true}, {"topk", true}, {"top_k", true}, {"topp", true},
	{"top_p", true}, {"repp", true}, {"repetition_penalty", true},
	{"model-dir", true}, {"model-name", true}, {"host", true}, {"port", true}, {"disable-auth", true}, {"backend", true},
	{"max-seq-len", true}, {"max-batch-size", true}, {"gpu-split-auto", true}, {"output-chunking", true},
	{"prompt-template", true}, {"reasoning", true}, {"tool-format", true}, {"config", true},
	{"or", true}, {"override", true}, {"swa_full", false}, {"temp_first", false}, {"temperature_first", false}, {"presp", true},
	{"presence_penalty", true}, {"freqp", true}, {"frequency_penalty", true}, {"penr", true}, {"penalty_range", true},
	{"adaptive_target", true}, {"adaptive_decay", true}, {"ccs", true}, {"cpu_cache_size", true}, {"rcs", true},
	{"recurrent_cache_size", true}, {"ndt", true}, {"num_draft_tokens", true},
	{"dm", ENGINE_NOT_MODELLED_VALUE}, {"draft_model_dir", ENGINE_NOT_MODELLED_VALUE}, {"mtp", ENGINE_NOT_MODELLED},
	{"ngram", ENGINE_NOT_MODELLED_VALUE}, {"ngram_match_min", ENGINE_NOT_MODELLED_VALUE}, {"dmcl", true}, {"dmclt", true},
};

static uint64_t exllama_prefill_rows(const void *flags, const struct hw_machine *machine)
{
	(void)machine;
	return ((const struct exllama_flags *)flags)->chunk_rows;
}

/* k bits and a scale of 16 for 32 values: as ggml's types with one scale. TabbyAPI says FP16, Q8, ... */
static const struct quant_type *cache_type(const char *bits, size_t len)
{
	static const char *const of[][2] = {
		{"16", "f16"}, {"8", "q8_0"}, {"6", "q6_0"}, {"5", "q5_0"}, {"4", "q4_0"},
		{"FP16", "f16"}, {"Q8", "q8_0"}, {"Q6", "q6_0"}, {"Q4", "q4_0"}};

	for (size_t i = 0; i < ARRAY_LEN(of); i++)
		if (strlen(of[i][0]) == len && strncmp(of[i][0], bits, len) == 0)
			return quant_find(of[i][1]);
	return NULL;
}

static int cache_types(const char *bits, struct kvcache_types *types, struct err *err)
{
	size_t keys = strcspn(bits, ",");
	const char *values = bits[keys] ? bits + keys + 1 : bits;

	*types = (struct kvcache_types){cache_type(bits, keys), cache_type(values, strlen(values)), KVCACHE_LATENT};
	if (types->k && types->v)
		return 0;
	return err_set(err, ERR_INPUT, "flag 'cache_quant': 16, 8, 6, 5 or 4, or two of them such as 8,4, not '%s'", bits);
}

static int exllama_place(const struct engine_job *job, struct placement *p, struct arena *a, struct err *err)
{
	const struct exllama_flags *f = job->flags;
	const struct trace_workload *w = &job->trace->workload;
	uint64_t context = trace_max_context(job->trace) * w->batch;
	int cpu = hw_first_device(job->machine, HW_DEVICE_CPU), ram = hw_first_memory(job->machine, HW_MEMORY_RAM);
	uint64_t left = f->cpu_layers;

	if (f->cache_tokens && (f->cache_tokens + PAGE_TOKENS - 1) / PAGE_TOKENS * PAGE_TOKENS < context)
		return err_set(err, ERR_INPUT, "flag 'cache_size': %llu tokens in pages of %d, but the workload has %llu",
			(unsigned long long)f->cache_tokens, PAGE_TOKENS, (unsigned long long)context);
	if (divide_init(p, job, 1, "", a, err) || cache_types(f->cache_bits, &p->kv_types, err))
		return -1;
	p->kv_sequences = w->batch;
	p->kv_context = (f->cache_tokens > context ? f->cache_tokens : context) / w->batch;
	divide_resident(p);
	for (int i = 0; i < job->model->n_tensors; i++)
		if (job->model->tensors[i].group == MODEL_EMBED && !job->model->tensors[i].shared_storage)
			p->tensor[i] = (struct place_spot){(int16_t)ram, (int16_t)cpu, PLACE_RESIDENT};
	for (uint32_t i = 0; i < job->model->n_layer && left > 0; i++) {
		if (!job->model->layers[i].n_expert)
			continue;
		place_layer_group(p, (int)i, MODEL_EXPERTS, (struct place_spot){(int16_t)ram, (int16_t)cpu, PLACE_RESIDENT});
		left--;
	}
	place_finish(p);
	uint64_t rows = w->prompt && w->prompt < f->chunk_rows ? w->prompt : f->chunk_rows;
	divide_book(p, LEDGER_ACTIVATION, "activations",
		model_activation_bytes(job->model, rows, w->batch, HIDDEN_ELEMENT_BYTES));
	if (f->cpu_layers)
		divide_book(p, LEDGER_OVERHEAD, "ring for experts", (uint64_t)(STAGE_SLOTS * STAGE_BYTES));
	if (!divide_fits(p))
		p->advice = "more layers of experts on the CPU (moe_cpu_offload), a shorter context or fewer bits of the cache are needed";
	return 0;
}

struct exllama {
	const struct cost *cost, *few; /* few: of decoding */
	struct ranks ranks;
	int cpu;
	struct cost_team team;
	double stream_rows; /* of an expert, from which it is streamed */
};

static op_ref on_cpu(struct exllama *s, const struct place_part *part, double bytes, double flops, op_ref after)
{
	struct exec *x = s->ranks.walk.x;
	const struct hw_machine *hw = x->placement->machine;
	bool few = s->ranks.walk.step->n_tokens < STREAM_MIN_ROWS;
	struct kernel_place where = {few ? s->few : s->cost, hw, &hw->devices[s->cpu], s->team, false, false};
	struct platform_work work = kernel_multiply(&where, part->type, bytes, flops, TENSORS_OF_EXPERT, COST_EXPERTS);
	double hidden = (double)s->ranks.walk.step->n_tokens * x->placement->model->hidden * HIDDEN_ELEMENT_BYTES;
	int gpu = hw->devices[s->ranks.device[0]].memory;
	enum exec_of of = exec_moves(x, EXEC_HIDDEN);

	op_ref at = exec_copy_aside(x, gpu, part->spot.memory, hidden, true, after, 0);
	exec_moves(x, of);
	at = exec_kernel(x, s->cpu, &work, exec_wait(x, hw_num_value(&s->cost->gpu_sync_s), at), 0);
	exec_moves(x, EXEC_HIDDEN);
	at = exec_copy_aside(x, part->spot.memory, gpu, 2 * hidden, true, at, 0); /* results have 32 bits */
	exec_moves(x, of);
	return at;
}

/* Staged by threads of the CPU while what was staged is copied: two streams of bytes side by side, and the GPU's part
   behind the last of them. */
static op_ref streamed(struct exllama *s, const struct place_part *part, double bytes, double flops, op_ref after)
{
	struct ranks *r = &s->ranks;
	struct exec *x = r->walk.x;
	const struct hw_machine *hw = x->placement->machine;
	struct platform_work stage = {.bytes = 2 * bytes, .dtype = HW_FP32, .read_share = hw_num_value(&s->cost->host_copy)};
	struct kernel_place where = {s->cost, hw, &hw->devices[r->device[0]], s->team, true, false};
	double batches = ceil(bytes / STAGE_BYTES);
	struct platform_work work = kernel_multiply(&where, part->type, bytes, flops, batches, COST_EXPERTS);

	op_ref staged = exec_kernel(x, s->cpu, &stage, after, 0);
	op_ref there = exec_copy(x, part->spot.memory, hw->devices[r->device[0]].memory, bytes, true, after, 0);
	r->host = exec_wait(x, batches * BATCH_OPERATIONS * hw_num_value(&s->cost->host_op_s), r->host);
	return exec_kernel(x, r->device[0], &work, exec_join(x, staged, there), r->host);
}

/* Tokens are looked up in host memory. */
static void look_up(struct exllama *s, const struct place_part *part, double bytes)
{
	struct ranks *r = &s->ranks;
	struct exec *x = r->walk.x;
	int gpu = x->placement->machine->devices[r->device[0]].memory;

	r->host = exec_wait(x, group_operations[MODEL_EMBED] * hw_num_value(&s->cost->host_op_s), r->host);
	r->last[0] = exec_copy(x, part->spot.memory, gpu, bytes, false, exec_join(x, r->last[0], r->host), 0);
}

static bool beside(void *engine, const struct place_group *g, enum model_group group, double share, double flops_per_param,
	double times)
{
	struct exllama *s = engine;
	struct ranks *r = &s->ranks;
	struct exec *x = r->walk.x;
	const struct place_part *part = &g->part[0];
	double bytes = share * (double)part->bytes, flops = flops_per_param * (double)part->params;

	(void)times;
	if (part->spot.device != s->cpu)
		return false;
	if (group == MODEL_EMBED) {
		for (int i = 0; i < g->n; i++)
			look_up(s, &g->part[i], share * (double)g->part[i].bytes);
		return true;
	}
	r->host = exec_wait(x, HANDOFF_OPERATIONS * hw_num_value(&s->cost->host_op_s), r->host);
	op_ref begin = exec_join(x, r->last[0], r->host);
	if (r->walk.step->n_tokens < STREAM_MIN_ROWS) {
		r->last[0] = on_cpu(s, part, bytes, flops, begin);
		return true;
	}
	/* Rows that an expert of the layer has on average, hit or not; shares of experts and of rows that are streamed. */
	double mean = flops_per_param / 2, from = ceil(s->stream_rows);
	double hit = gsl_cdf_poisson_Q(0, mean);
	double near = gsl_cdf_poisson_Q((unsigned)from - 1, mean) / hit, near_rows = gsl_cdf_poisson_Q((unsigned)from - 2, mean);
	op_ref done = 0;

	begin = exec_wait(x, hw_num_value(&s->cost->gpu_sync_s), begin);
	r->host = begin;
	if (near < 1)
		done = on_cpu(s, part, (1 - near) * bytes, (1 - near_rows) * flops, begin);
	if (near * bytes >= 1)
		done = exec_join(x, done, streamed(s, part, near * bytes, near_rows * flops, begin));
	r->last[0] = done;
	return true;
}

/* Asked for at start by a probe of the link. */
static double stream_rows(const struct hw_machine *m, int gpu)
{
	int link[HW_MAX_HOPS];
	bool forward[HW_MAX_HOPS];
	int n = hw_route(m, hw_first_memory(m, HW_MEMORY_RAM), m->devices[gpu].memory, link, forward);
	double rate = n > 0 ? hw_rate_at(&m->links[link[0]].h2d, STAGE_BYTES / 2) : STREAM_LINK_BYTES_S;

	return fmax(STREAM_EXPERT_ROWS, STREAM_EXPERT_ROWS * STREAM_LINK_BYTES_S / rate);
}

/* Experts lie in the order in which few rows read them where the CPU gathers bytes (AVX512-VBMI): EXL3_MOE_CPU_SWIZZLE. The
   older processors that an instruction set with VNNI stands for as well cannot. */
static const struct cost *cost_of_few(const struct engine_job *job, const struct hw_device *cpu, struct arena *a)
{
	static const char *const gathers[] = {"avx512_vnni", "avx512_zen5", "amx"};

	for (size_t i = 0; i < ARRAY_LEN(gathers); i++)
		if (strcmp(cpu->isa, gathers[i]) == 0)
			return job->cost;
	struct cost *c = cost_copy(job->cost, a);
	c->cpu.read_experts.measured *= hw_num_value(&c->cpu.read_strided);
	return c;
}

static void *exllama_state_new(const struct engine_job *job, const struct placement *p, struct arena *a)
{
	static const struct ranks_ops ops = {.group = beside};
	const struct exllama_flags *f = job->flags;
	struct exllama *s = arena_new(a, struct exllama);

	s->cpu = hw_first_device(job->machine, HW_DEVICE_CPU);
	s->cost = job->cost;
	s->few = cost_of_few(job, &job->machine->devices[s->cpu], a);
	s->team = cost_cpu_team(&job->cost->cpu, job->machine, &job->machine->devices[s->cpu], (unsigned)f->threads, COST_UNBOUND);
	ranks_init(&s->ranks, job->cost, p);
	s->ranks.nodes = group_operations;
	s->ranks.attention_nodes = CACHE_OPERATIONS;
	s->ranks.one_by_one = true;
	s->ranks.cache_passes = 1;
	s->ranks.ops = &ops;
	s->ranks.engine = s;
	s->stream_rows = stream_rows(job->machine, s->ranks.device[0]);
	return s;
}

static int exllama_lower(struct exec *x, void *state, const struct trace_step *step, op_ref *last, struct err *err)
{
	struct exllama *s = state;

	(void)err;
	*last = exec_wait(x, hw_num_value(&s->cost->step_s), ranks_step(&s->ranks, x, step, 0));
	return 0;
}

const struct engine_ops engine_exllama = {
	.name = "exllama",
	.version = "1",
	.help = "ExLlamaV3: on one GPU, routed experts of the first layers on the CPU or streamed through a pinned ring",
	.flag = exllama_flag,
	.n_flags = ARRAY_LEN(exllama_flag),
	.flags_size = sizeof(struct exllama_flags),
	.alias = exllama_alias,
	.n_aliases = ARRAY_LEN(exllama_alias),
	.ignored = exllama_ignored,
	.n_ignored = ARRAY_LEN(exllama_ignored),
	.kernels = "exllama",
	.overheads = true,
	.prefill_rows = exllama_prefill_rows,
	.place = exllama_place,
	.state_new = exllama_state_new,
	.lower = exllama_lower,
};
