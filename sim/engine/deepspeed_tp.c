/*
 * deepspeed_tp.c - DeepSpeed-Inference with tensor parallelism (0.7 to 0.9; init_inference with kernel injection).
 *
 *	host   [op][op][op] ...                     its fused kernels are launched from Python, one by one
 *	gpu i  [qkv][attention][out] all-reduce [up][down] all-reduce
 *
 * Weights and heads are divided over the GPUs, everything is resident, all-reduces are NCCL's (sim/exec/ranks.h). What
 * kernels reach is in hw/kernels/pytorch.yaml.
 *
 * Of BLOOM, whose attention is biased by distance, attention alone is no fused kernel but PyTorch's operations
 * (transformer_inference.py, backup_attention): q, k, v made contiguous, the cache concatenated, keys and values each put into
 * the order of the product, a mask, scores, softmax, sums.
 */
#include <string.h>

#include "models/kvcache.h"
#include "sim/engine/divide.h"
#include "sim/exec/ranks.h"

#define HIDDEN_ELEMENT_BYTES 2

/* Operations of injected layers (deepspeed/ops/transformer/inference: qkv_gemm, softmax_context, vector_matmul, mlp_gemm,
   residual_add), with what PyTorch does around them. */
static const int group_operations[MODEL_GROUP_N] = {
	[MODEL_EMBED] = 3,
	[MODEL_ATTN] = 4,
	[MODEL_FFN] = 4,
	[MODEL_ROUTER] = 12,
	[MODEL_SHARED] = 5,
	[MODEL_EXPERTS] = 8,
	[MODEL_OUTPUT] = 8,
};

/* Operations of BLOOM's attention, and times its cache is read or written: concatenated, reordered, multiplied. */
#define BLOOM_OPERATIONS 13
#define BLOOM_CACHE_PASSES 5

struct deepspeed_tp_flags {
	uint64_t tp;
};

static const struct param deepspeed_tp_flag[] = {
	PARAM_COUNT(struct deepspeed_tp_flags, tp, "tensor-parallel", "1", 1, PLACE_MAX_ROWS, "GPUs that divide every matrix"),
};

static const struct engine_alias deepspeed_tp_alias[] = {
	{"mp_size", "tensor-parallel"}, {"tp_size", "tensor-parallel"}, {"num_gpus", "tensor-parallel"}};

static const struct engine_ignored deepspeed_tp_ignored[] = {
	{"dtype", true}, {"max_tokens", true}, {"max_out_tokens", true}, {"replace_with_kernel_inject", true}};

static int deepspeed_tp_place(const struct engine_job *job, struct placement *p, struct arena *a, struct err *err)
{
	const struct deepspeed_tp_flags *f = job->flags;
	const struct trace_workload *w = &job->trace->workload;
	uint64_t rows = w->batch * (w->prompt ? w->prompt : 1);

	if (divide_init(p, job, f->tp, "tensor-parallel", a, err))
		return -1;
	p->kv_types = *KVCACHE_SAME(quant_find("f16"));
	p->kv_sequences = w->batch;
	p->kv_context = trace_max_context(job->trace);
	divide_resident(p);
	place_finish(p);
	divide_book(p, LEDGER_ACTIVATION, "activations",
		model_activation_bytes(job->model, rows, w->batch, HIDDEN_ELEMENT_BYTES) / f->tp);
	if (!divide_fits(p))
		p->advice = "more GPUs (--tensor-parallel), a shorter context, a smaller batch or type are needed";
	return 0;
}

struct deepspeed_tp {
	const struct cost *cost;
	struct ranks ranks;
};

static void *deepspeed_tp_state_new(const struct engine_job *job, const struct placement *p, struct arena *a)
{
	struct deepspeed_tp *s = arena_new(a, struct deepspeed_tp);

	s->cost = job->cost;
	ranks_init(&s->ranks, job->cost, p);
	s->ranks.nodes = group_operations;
	s->ranks.one_by_one = true;
	s->ranks.each_expert = true;
	if (strcmp(p->model->architecture, "bloom") == 0) {
		s->ranks.attention_nodes = BLOOM_OPERATIONS;
		s->ranks.cache_passes = BLOOM_CACHE_PASSES;
	}
	return s;
}

static int deepspeed_tp_lower(struct exec *x, void *state, const struct trace_step *step, op_ref *last, struct err *err)
{
	struct deepspeed_tp *s = state;

	(void)err;
	*last = exec_wait(x, hw_num_value(&s->cost->step_s), ranks_step(&s->ranks, x, step, 0));
	return 0;
}

const struct engine_ops engine_deepspeed_tp = {
	.name = "deepspeed-tp",
	.version = "1",
	.help = "DeepSpeed-Inference: resident, every matrix divided over the GPUs",
	.flag = deepspeed_tp_flag,
	.n_flags = ARRAY_LEN(deepspeed_tp_flag),
	.flags_size = sizeof(struct deepspeed_tp_flags),
	.alias = deepspeed_tp_alias,
	.n_aliases = ARRAY_LEN(deepspeed_tp_alias),
	.ignored = deepspeed_tp_ignored,
	.n_ignored = ARRAY_LEN(deepspeed_tp_ignored),
	.kernels = "pytorch",
	.overheads = true,
	.place = deepspeed_tp_place,
	.state_new = deepspeed_tp_state_new,
	.lower = deepspeed_tp_lower,
};
