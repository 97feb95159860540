/*
 * ds4.c - antirez/ds4 (8d57664): DeepSeek V4 and nothing else, on a GPU with unified memory or one that holds it all.
 *
 *	gpu   [attn and compressors][experts] ... one kernel after another in a stream, nothing is offloaded
 *
 * The weights are a mapped GGUF file that the GPU reads where it lies. What its kernels reach is in hw/kernels/ds4.yaml.
 */
#include <string.h>

#include "models/kvcache.h"
#include "sim/engine/divide.h"
#include "sim/exec/ranks.h"

#define HIDDEN_ELEMENT_BYTES 4

/* Kernels of a group (ds4_cuda.cu): hyper-connections and norms beside the products. */
static const int group_kernels[MODEL_GROUP_N] = {
	[MODEL_EMBED] = 1, [MODEL_ATTN] = 18, [MODEL_FFN] = 8, [MODEL_ROUTER] = 4, [MODEL_SHARED] = 4, [MODEL_EXPERTS] = 5,
	[MODEL_OUTPUT] = 4,
};
#define CACHE_KERNELS 4

struct ds4_flags {
	uint64_t context, chunk_rows;
	const char *backend;
};

static const struct param ds4_flag[] = {
	PARAM_COUNT(struct ds4_flags, context, "ctx", "0", 0, 1e9, "context allocated, in tokens; 0: what the workload needs"),
	PARAM_COUNT(struct ds4_flags, chunk_rows, "prefill-chunk", "2048", 1, 1 << 20, "rows of a prompt that go through at once"),
	PARAM_TEXT(struct ds4_flags, backend, "backend", "cuda", "cuda or metal"),
};

static const struct engine_alias ds4_alias[] = {{"c", "ctx"}, {"ctx-alloc", "ctx"}};

/* Of ds4, ds4-server and ds4-bench: what they are asked, how they pick tokens, whom they serve. */
static const struct engine_ignored ds4_ignored[] = {
	{"m", true}, {"model", true}, {"cuda", false}, {"metal", false}, {"host", true}, {"port", true}, {"tokens", true}, {"p", true},
	{"n", true}, {"prompt", true}, {"prompt-file", true}, {"chat-prompt-file", true}, {"sys", true}, {"system", true},
	{"t", true}, {"threads", true}, {"warm-weights", false}, {"temp", true}, {"top-p", true}, {"min-p", true}, {"seed", true},
	{"think", false}, {"think-max", false}, {"nothink", false}, {"chdir", true}, {"cors", false}, {"trace", true},
	{"kv-disk-dir", true}, {"kv-disk-space-mb", true}, {"csv", true}, {"step-incr", true}, {"step-mul", true},
};

static uint64_t ds4_prefill_rows(const void *flags, const struct hw_machine *machine)
{
	(void)machine;
	return ((const struct ds4_flags *)flags)->chunk_rows;
}

static int ds4_place(const struct engine_job *job, struct placement *p, struct arena *a, struct err *err)
{
	const struct ds4_flags *f = job->flags;
	const struct trace_workload *w = &job->trace->workload;
	uint64_t context = trace_max_context(job->trace);

	if (strcmp(job->model->architecture, "deepseek4") != 0)
		return err_set(err, ERR_INPUT, "ds4 runs DeepSeek V4, not '%s'", job->model->name);
	if (strcmp(f->backend, "cuda") != 0 && strcmp(f->backend, "metal") != 0)
		return err_set(err, ERR_INPUT, "flag 'backend': cuda or metal, not '%s'", f->backend);
	if (divide_init(p, job, 1, "", a, err))
		return -1;
	p->kv_types = *KVCACHE_SAME(quant_find("f16"));
	p->kv_sequences = w->batch;
	p->kv_context = f->context > context ? f->context : context;
	divide_resident(p);
	place_finish(p);
	uint64_t rows = w->prompt && w->prompt < f->chunk_rows ? w->prompt : f->chunk_rows;
	divide_book(p, LEDGER_ACTIVATION, "activations",
		model_activation_bytes(job->model, rows, w->batch, HIDDEN_ELEMENT_BYTES));
	if (!divide_fits(p))
		p->advice = "a smaller type or a shorter context is needed: nothing is kept elsewhere";
	return 0;
}

struct ds4 {
	const struct cost *cost;
	struct ranks ranks;
};

static void *ds4_state_new(const struct engine_job *job, const struct placement *p, struct arena *a)
{
	struct ds4 *s = arena_new(a, struct ds4);

	s->cost = job->cost;
	ranks_init(&s->ranks, job->cost, p);
	s->ranks.nodes = group_kernels;
	s->ranks.attention_nodes = CACHE_KERNELS;
	s->ranks.cache_passes = 1;
	return s;
}

static int ds4_lower(struct exec *x, void *state, const struct trace_step *step, op_ref *last, struct err *err)
{
	struct ds4 *s = state;

	(void)err;
	*last = exec_wait(x, hw_num_value(&s->cost->step_s), ranks_step(&s->ranks, x, step, 0));
	return 0;
}

const struct engine_ops engine_ds4 = {
	.name = "ds4",
	.version = "1",
	.help = "antirez/ds4: DeepSeek V4, resident, for unified memory",
	.flag = ds4_flag,
	.n_flags = ARRAY_LEN(ds4_flag),
	.flags_size = sizeof(struct ds4_flags),
	.alias = ds4_alias,
	.n_aliases = ARRAY_LEN(ds4_alias),
	.ignored = ds4_ignored,
	.n_ignored = ARRAY_LEN(ds4_ignored),
	.kernels = "ds4",
	.overheads = true,
	.prefill_rows = ds4_prefill_rows,
	.place = ds4_place,
	.state_new = ds4_state_new,
	.lower = ds4_lower,
};
