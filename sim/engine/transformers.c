/*
 * transformers.c - Hugging Face transformers 4.x, everything on one GPU, eager: the baseline of many papers. With layers
 * elsewhere it is accelerate's.
 *
 *	host   [op][op][op][op] ...        20 us each, ahead of the GPU
 *	gpu      [k]  [k]  [k]  [k]        waits for the host in small models, and the host for nobody
 *
 * A dynamic cache is concatenated: what is held is read and written before it is read again. What kernels reach is in
 * hw/kernels/pytorch.yaml.
 */
#include <string.h>

#include "models/kvcache.h"
#include "sim/engine/divide.h"
#include "sim/engine/transformers.h"

#define HIDDEN_ELEMENT_BYTES 2

const int transformers_operations[MODEL_GROUP_N] = {
	[MODEL_EMBED] = 1,
	[MODEL_ATTN] = 22,
	[MODEL_FFN] = 12,
	[MODEL_ROUTER] = 12,
	[MODEL_SHARED] = 5,
	[MODEL_EXPERTS] = 8,
	[MODEL_OUTPUT] = 8,
};

static const char *const caches[] = {"dynamic", "static", NULL};
enum { CACHE_DYNAMIC, CACHE_STATIC };

struct transformers_flags {
	int cache;
	const char *build;
};

static const struct param transformers_flag[] = {
	PARAM_CHOICE(struct transformers_flags, cache, "cache_implementation", "dynamic", caches,
		"dynamic: grows by concatenation; static: allocated once"),
	PARAM_TEXT(struct transformers_flags, build, "build", "2026-06",
		"year and month of what is installed: attention has a kernel from " TRANSFORMERS_BUILD_SDPA " on, and bitsandbytes changed"),
};

static const struct engine_ignored transformers_ignored[] = {
	{"torch_dtype", true}, {"dtype", true}, {"attn_implementation", true}, {"do_sample", true}, {"num_beams", true},
	{"use_cache", true}, {"device", true}, {"trust_remote_code", true},
};

static int transformers_place(const struct engine_job *job, struct placement *p, struct arena *a, struct err *err)
{
	const struct trace_workload *w = &job->trace->workload;
	uint64_t rows = w->batch * (w->prompt ? w->prompt : 1);

	const struct transformers_flags *f = job->flags;

	if (engine_check_build(f->build, err) || divide_init(p, job, 1, "", a, err))
		return -1;
	p->kv_types = *KVCACHE_SAME(quant_find("f16"));
	p->kv_sequences = w->batch;
	p->kv_context = trace_max_context(job->trace);
	divide_resident(p);
	place_finish(p);
	divide_book(p, LEDGER_ACTIVATION, "activations",
		model_activation_bytes(job->model, rows, w->batch, HIDDEN_ELEMENT_BYTES));
	if (!divide_fits(p))
		p->advice = "engine accelerate keeps layers elsewhere; a shorter context, a smaller batch or type would do too";
	return 0;
}

void transformers_ranks_init(struct ranks *r, const struct cost *cost, const struct placement *p)
{
	ranks_init(r, cost, p);
	r->nodes = transformers_operations;
	r->attention_nodes = TRANSFORMERS_CACHE_OPERATIONS;
	r->one_by_one = true;
	r->each_expert = true;
	r->cache_passes = TRANSFORMERS_CACHE_PASSES;
}

op_ref transformers_step(struct ranks *r, struct exec *x, const struct trace_step *step)
{
	return exec_wait(x, hw_num_value(&r->cost->step_s), ranks_step(r, x, step, 0));
}

struct transformers {
	struct ranks ranks;
	struct bnb bnb;
};

static void *transformers_state_new(const struct engine_job *job, const struct placement *p, struct arena *a)
{
	const struct transformers_flags *f = job->flags;
	struct transformers *s = arena_new(a, struct transformers);
	bool old = strcmp(f->build, TRANSFORMERS_BUILD_SDPA) < 0;
	struct cost *cost = cost_copy(job->cost, a);

	if (old)
		cost->gpu_attention = cost->gpu_attention_old;
	transformers_ranks_init(&s->ranks, cost, p);
	bnb_init(&s->bnb, job->cost, f->build);
	s->ranks.bnb = &s->bnb;
	if (old) {
		s->ranks.attention_nodes += TRANSFORMERS_OLD_OPERATIONS;
		s->ranks.scores = hw_num_value(&cost->scores);
	}
	if (f->cache == CACHE_STATIC)
		s->ranks.cache_passes = 1;
	return s;
}

static int transformers_lower(struct exec *x, void *state, const struct trace_step *step, op_ref *last, struct err *err)
{
	struct transformers *s = state;

	(void)err;
	*last = transformers_step(&s->ranks, x, step);
	return 0;
}

const struct engine_ops engine_transformers = {
	.name = "hf-transformers",
	.version = "1",
	.help = "Hugging Face transformers, eager, everything on one GPU",
	.flag = transformers_flag,
	.n_flags = ARRAY_LEN(transformers_flag),
	.flags_size = sizeof(struct transformers_flags),
	.ignored = transformers_ignored,
	.n_ignored = ARRAY_LEN(transformers_ignored),
	.kernels = "pytorch",
	.overheads = true,
	.place = transformers_place,
	.state_new = transformers_state_new,
	.lower = transformers_lower,
};
