/*
 * trace_synth.c - the trace nobody recorded: dense layers touch all their weights, attention reads what its
 * window holds, experts are drawn.
 */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "sim/trace/experts.h"
#include "sim/trace/trace.h"

struct synth {
	uint64_t seed;
	uint32_t max_expert;
};

static void push(struct trace_cursor *c, struct trace_access access)
{
	VEC_PUSH(&c->access, c->arena, access);
}

static void push_weights(struct trace_cursor *c, int layer, enum model_group group, uint64_t tokens)
{
	push(c, (struct trace_access){
			.layer = (int16_t)layer, .kind = TRACE_WEIGHTS, .group = (uint8_t)group, .tokens = tokens});
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Rows of a step, and those of its phase that came before. */
static uint64_t rows_before(const struct trace *t, enum trace_phase phase, uint64_t index)
{
	return phase == TRACE_PREFILL ? index * t->rows_max : index * t->workload.batch;
}

static uint64_t rows_of(const struct trace *t, enum trace_phase phase, uint64_t index)
{
	if (phase == TRACE_DECODE)
		return t->workload.batch;
	return min_u64(t->rows_max, t->workload.batch * t->workload.prompt - rows_before(t, phase, index));
}

/* Sum of min(context + i, window) over the new rows i = 1..n of one sequence: the entries each row sees. n is not whole
   where a micro-batch ends inside the sequences' next tokens. */
static double pairs(double context, double n, double window)
{
	double growing = window > 0 ? fmin(n, fmax(window - context, 0)) : n;

	return growing * context + growing * (growing + 1) / 2 + (n - growing) * window;
}

static void push_attention(struct trace_cursor *c, int i, const struct model_layer *l, const struct trace_step *s)
{
	double n_sequences = (double)s->n_sequences, new_each = (double)s->n_tokens / n_sequences;
	double held = (double)s->context + new_each;
	struct trace_access kv = {.layer = (int16_t)i, .group = MODEL_ATTN, .tokens = s->n_tokens};

	kv.kind = TRACE_KV_WRITE;
	push(c, kv);
	/* A row needs its own window: the first new one reaches window - 1 entries back. */
	if (l->window)
		held = fmin(held, l->window - 1 + new_each);
	kv.kind = TRACE_KV_READ;
	kv.kv_tokens = (uint64_t)llround(n_sequences * held);
	kv.kv_pairs = n_sequences * pairs((double)s->context, new_each, l->window);
	push(c, kv);
}

static void push_experts(struct trace_cursor *c, int i, const struct model_layer *l, uint64_t tokens, gsl_rng *rng)
{
	uint64_t *count = c->state;

	experts_draw_uniform(rng, tokens, l->n_expert, l->n_expert_used, count);
	for (uint32_t e = 0; e < l->n_expert; e++) {
		if (count[e] == 0)
			continue;
		push(c, (struct trace_access){.layer = (int16_t)i,
				.kind = TRACE_EXPERT,
				.group = MODEL_EXPERTS,
				.expert = e,
				.tokens = count[e]});
	}
}

static void push_layer(struct trace_cursor *c, int i, const struct trace_step *s, gsl_rng *rng)
{
	const struct model_layer *l = &c->trace->model->layers[i];

	/* MTP heads run in speculative decoding only, an encoder when a prompt is read */
	if (l->draft || (l->prefill_only && s->phase != TRACE_PREFILL))
		return;
	if (l->group[MODEL_ATTN].params)
		push_weights(c, i, MODEL_ATTN, s->n_tokens);
	if (l->n_head)
		push_attention(c, i, l, s);
	if (l->group[MODEL_FFN].params)
		push_weights(c, i, MODEL_FFN, s->n_tokens);
	if (l->group[MODEL_ROUTER].params)
		push_weights(c, i, MODEL_ROUTER, s->n_tokens);
	if (l->group[MODEL_SHARED].params)
		push_weights(c, i, MODEL_SHARED, s->n_tokens);
	if (l->n_expert)
		push_experts(c, i, l, s->n_tokens, rng);
}

static int synth_step(struct trace_cursor *c, uint64_t index, struct trace_step *step, struct err *err)
{
	const struct trace *t = c->trace;
	const struct synth *synth = t->data;
	enum trace_phase phase = index < t->n_prefill ? TRACE_PREFILL : TRACE_DECODE;
	uint64_t of_phase = phase == TRACE_PREFILL ? index : index - t->n_prefill;
	gsl_rng *rng = NULL;

	*step = (struct trace_step){
		.phase = phase,
		.index = index,
		.n_sequences = t->workload.batch,
		.n_tokens = rows_of(t, phase, of_phase),
		.n_sampled = phase == TRACE_DECODE || index + 1 == t->n_prefill ? t->workload.batch : 0,
		.context = t->workload.depth + (phase == TRACE_PREFILL ? 0 : t->workload.prompt) +
			rows_before(t, phase, of_phase) / t->workload.batch,
	};
	if (synth->max_expert) {
		rng = rng_new(synth->seed, index, RNG_ROUTING);
		if (!rng)
			return err_set(err, ERR_NOMEM, "out of memory");
		if (!c->state)
			c->state = arena_array(c->arena, uint64_t, synth->max_expert);
	}
	c->access.n = 0;
	push_weights(c, MODEL_NO_LAYER, MODEL_EMBED, step->n_tokens);
	for (int i = 0; i < (int)t->model->n_layer; i++)
		push_layer(c, i, step, rng);
	if (step->n_sampled)
		push_weights(c, MODEL_NO_LAYER, MODEL_OUTPUT, step->n_sampled);
	if (rng)
		gsl_rng_free(rng);
	step->access = c->access.at;
	step->n_access = c->access.n;
	return 0;
}

const struct trace_ops trace_synth = {
	.name = "synth",
	.help = "dense layers touch everything, experts are drawn uniformly",
	.step = synth_step,
};

void trace_synth_init(struct trace *t, const struct model *m, const struct trace_workload *w, uint64_t rows_max,
	uint64_t seed, struct arena *a)
{
	struct synth *synth = arena_new(a, struct synth);
	uint64_t rows = w->batch * w->prompt;
	bool varied = false;

	if (rows_max == 0 || rows_max > rows)
		rows_max = rows;

	synth->seed = seed;
	for (uint32_t i = 0; i < m->n_layer; i++) {
		const struct model_layer *l = &m->layers[i];
		if (l->n_expert > synth->max_expert)
			synth->max_expert = l->n_expert;
		/* One token a step always hits n_used different ones; which ones makes no difference to bytes. */
		varied |= l->n_expert && w->batch > 1;
	}
	*t = (struct trace){
		.ops = &trace_synth,
		.model = m,
		.workload = *w,
		.n_prefill = rows ? (rows + rows_max - 1) / rows_max : 0,
		.rows_max = rows_max,
		.n_decode = w->prompt > 0 && w->generate > 0 ? w->generate - 1 : w->generate,
		.smooth = !varied,
		.prefill_tokens = rows,
		.sampled_tokens = w->batch * w->generate,
		.data = synth,
	};
	t->decode_tokens = w->batch * t->n_decode;
}
