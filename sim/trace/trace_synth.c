/*
 * trace_synth.c - the trace nobody recorded: dense layers touch all their weights, attention reads what its
 * window holds, experts are drawn.
 */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "sim/trace/experts.h"
#include "sim/trace/experts_record.h"
#include "sim/trace/trace.h"

/* Tokens of a sequence follow each other: within a prefill step, and from decode step to decode step. With locality a step is
   made out of the one before it, hence out of all since the last restart, where experts are drawn as if nothing had come
   before. Between restarts a little more is kept, so that the locality is right on average over all steps. */
#define RESTART_STEPS 64

struct synth {
	uint64_t seed;
	const struct experts *experts; /* by layer */
	bool routed;                   /* there are any */
	bool local;                    /* and a decode step depends on the one before it */
	const struct experts_record *record; /* what tokens use instead; NULL: it is drawn */
};

/* Of a cursor: the experts of the step at hand. */
struct state {
	uint64_t **count; /* by layer and expert */
	uint32_t **used;  /* by layer: n_used for each row, where they are drawn */
	uint32_t *last;   /* of the layer at hand, by expert: 1 + its place among the uses when it was used last */
	uint64_t decoded; /* the decode step whose experts these are; UINT64_MAX: those of a prefill step */
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

static void push_experts(struct trace_cursor *c, int i, const struct model_layer *l)
{
	const struct state *state = c->state;

	for (uint32_t e = 0; e < l->n_expert; e++) {
		if (state->count[i][e] == 0)
			continue;
		push(c, (struct trace_access){.layer = (int16_t)i,
				.kind = TRACE_EXPERT,
				.group = MODEL_EXPERTS,
				.expert = e,
				.tokens = state->count[i][e]});
	}
}

/* Row r of a recorded step, as the record counts them. */
static uint64_t recorded_row(const struct trace *t, const struct trace_step *s, uint64_t r)
{
	const struct experts_record *rec = ((const struct synth *)t->data)->record;
	uint64_t decoded = s->index - t->n_prefill;

	if (s->phase == TRACE_PREFILL)
		return s->index * t->rows_max + r;
	return r * rec->n_tokens[TRACE_DECODE] / s->n_tokens + decoded;
}

/* Each expert once, in order of its last use. */
static void push_recorded(struct trace_cursor *c, int i, const struct trace_step *s)
{
	const struct experts_record *rec = ((const struct synth *)c->trace->data)->record;
	const struct state *state = c->state;
	uint64_t *count = state->count[i];
	uint32_t n_used = rec->n_used[i];

	for (uint64_t r = 0; r < s->n_tokens; r++) {
		const uint16_t *used = experts_record_at(rec, s->phase, recorded_row(c->trace, s, r), (uint32_t)i);
		for (uint32_t k = 0; k < n_used; k++) {
			count[used[k]]++;
			state->last[used[k]] = (uint32_t)(r * n_used + k) + 1;
		}
	}
	for (uint64_t r = 0; r < s->n_tokens; r++) {
		const uint16_t *used = experts_record_at(rec, s->phase, recorded_row(c->trace, s, r), (uint32_t)i);
		for (uint32_t k = 0; k < n_used; k++) {
			if (state->last[used[k]] != (uint32_t)(r * n_used + k) + 1)
				continue;
			push(c, (struct trace_access){.layer = (int16_t)i,
					.kind = TRACE_EXPERT,
					.group = MODEL_EXPERTS,
					.expert = used[k],
					.tokens = count[used[k]]});
			count[used[k]] = 0;
		}
	}
}

/* MTP heads run in speculative decoding only, an encoder when a prompt is read. */
static bool takes_part(const struct model_layer *l, enum trace_phase phase)
{
	return !l->draft && (!l->prefill_only || phase == TRACE_PREFILL);
}

static void push_layer(struct trace_cursor *c, int i, const struct trace_step *s)
{
	const struct model_layer *l = &c->trace->model->layers[i];

	if (!takes_part(l, s->phase))
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
	if (l->n_expert && ((const struct synth *)c->trace->data)->record)
		push_recorded(c, i, s);
	else if (l->n_expert)
		push_experts(c, i, l);
}

static struct state *state_new(const struct trace *t, struct arena *a)
{
	const struct synth *synth = t->data;
	struct state *state = arena_new(a, struct state);
	uint32_t most = 0;

	*state = (struct state){
		.count = arena_array(a, uint64_t *, t->model->n_layer),
		.used = arena_array(a, uint32_t *, t->model->n_layer),
		.decoded = UINT64_MAX,
	};
	for (uint32_t i = 0; i < t->model->n_layer; i++) {
		const struct experts *e = &synth->experts[i];
		if (!e->ranks)
			continue;
		state->count[i] = arena_array(a, uint64_t, e->ranks->n_expert);
		state->used[i] = arena_array(a, uint32_t, experts_rows_max(e) * e->ranks->n_used);
		most = e->ranks->n_expert > most ? e->ranks->n_expert : most;
	}
	state->last = arena_array(a, uint32_t, most);
	return state;
}

/* Rows r - 1 and r of a prefill step are of one sequence. */
static bool same_sequence(const struct trace_step *s, uint64_t r)
{
	return (r - 1) * s->n_sequences / s->n_tokens == r * s->n_sequences / s->n_tokens;
}

/* Draws a layer's experts for each row; restart: a decode step does not go on from the one before it, whose experts `used`
   holds. */
static void draw_rows(const struct experts *e, const struct trace_step *s, bool restart, gsl_rng *rng, uint32_t *used)
{
	uint32_t n = e->ranks->n_used, before[EXPERTS_USED_MAX];
	double keep = s->phase == TRACE_PREFILL ? e->keep : fmin(1, e->keep * RESTART_STEPS / (RESTART_STEPS - 1));

	for (uint64_t r = 0; r < s->n_tokens; r++) {
		uint32_t *row = used + r * n;
		bool follows = keep > 0 && (s->phase == TRACE_PREFILL ? r > 0 && same_sequence(s, r) : !restart);
		if (follows)
			memcpy(before, s->phase == TRACE_PREFILL ? row - n : row, n * sizeof(*before));
		experts_draw(e, rng, row);
		if (follows)
			experts_follow(e, rng, keep, before, row);
	}
}

static int draw_step(struct trace_cursor *c, const struct trace_step *s, struct err *err)
{
	const struct trace *t = c->trace;
	const struct synth *synth = t->data;
	const struct state *state = c->state;
	gsl_rng *rng = rng_new(synth->seed, s->index, RNG_ROUTING);

	if (!rng)
		return err_set(err, ERR_NOMEM, "out of memory");
	for (uint32_t i = 0; i < t->model->n_layer; i++) {
		const struct experts *e = &synth->experts[i];
		if (!e->ranks || !takes_part(&t->model->layers[i], s->phase))
			continue;
		if (s->n_tokens > experts_rows_max(e)) {
			experts_expect(e, rng, s->n_tokens, s->phase == TRACE_PREFILL ? s->n_sequences : s->n_tokens,
				c->arena, state->count[i]);
			continue;
		}
		draw_rows(e, s, (s->index - t->n_prefill) % RESTART_STEPS == 0, rng, state->used[i]);
		memset(state->count[i], 0, e->ranks->n_expert * sizeof(*state->count[i]));
		for (uint64_t k = 0; k < s->n_tokens * e->ranks->n_used; k++)
			state->count[i][state->used[i][k]]++;
	}
	gsl_rng_free(rng);
	return 0;
}

static int route(struct trace_cursor *c, const struct trace_step *step, struct err *err)
{
	const struct synth *synth = c->trace->data;
	struct trace_step s = *step;

	if (!c->state)
		c->state = state_new(c->trace, c->arena);
	struct state *state = c->state;
	if (synth->record)
		return 0;
	if (synth->local && s.phase == TRACE_DECODE) {
		uint64_t restart = s.index - (s.index - c->trace->n_prefill) % RESTART_STEPS;
		s.index = state->decoded >= restart && state->decoded < s.index ? state->decoded + 1 : restart;
	}
	state->decoded = s.phase == TRACE_DECODE ? step->index : UINT64_MAX;
	for (; s.index <= step->index; s.index++)
		if (draw_step(c, &s, err))
			return -1;
	return 0;
}

static int synth_step(struct trace_cursor *c, uint64_t index, struct trace_step *step, struct err *err)
{
	const struct trace *t = c->trace;
	const struct synth *synth = t->data;
	enum trace_phase phase = index < t->n_prefill ? TRACE_PREFILL : TRACE_DECODE;
	uint64_t of_phase = phase == TRACE_PREFILL ? index : index - t->n_prefill;

	*step = (struct trace_step){
		.phase = phase,
		.index = index,
		.n_sequences = t->workload.batch,
		.n_tokens = rows_of(t, phase, of_phase),
		.n_sampled = phase == TRACE_DECODE || index + 1 == t->n_prefill ? t->workload.batch : 0,
		.context = t->workload.depth + (phase == TRACE_PREFILL ? 0 : t->workload.prompt) +
			rows_before(t, phase, of_phase) / t->workload.batch,
	};
	if (synth->routed && route(c, step, err))
		return -1;
	c->access.n = 0;
	push_weights(c, MODEL_NO_LAYER, MODEL_EMBED, step->n_tokens);
	for (int i = 0; i < (int)t->model->n_layer; i++)
		push_layer(c, i, step);
	if (step->n_sampled)
		push_weights(c, MODEL_NO_LAYER, MODEL_OUTPUT, step->n_sampled);
	step->access = c->access.at;
	step->n_access = c->access.n;
	return 0;
}

const struct trace_ops trace_synth = {
	.name = "synth",
	.help = "dense layers touch everything, experts are drawn",
	.step = synth_step,
};

void trace_synth_init(struct trace *t, const struct model *m, const struct trace_workload *w, uint64_t rows_max,
	const struct experts *experts, uint64_t seed, struct arena *a)
{
	struct synth *synth = arena_new(a, struct synth);
	uint64_t rows = w->batch * w->prompt;
	bool varied = false;

	if (rows_max == 0 || rows_max > rows)
		rows_max = rows;

	*synth = (struct synth){.seed = seed, .experts = experts};
	for (uint32_t i = 0; i < m->n_layer; i++) {
		const struct experts *e = &experts[i];
		if (!e->ranks)
			continue;
		synth->routed = true;
		synth->local |= e->keep > 0 && w->batch <= experts_rows_max(e);
		/* One token a step always hits n_used different ones; which ones makes no difference to bytes. */
		varied |= w->batch > 1;
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

void trace_synth_replay(struct trace *t, const struct experts_record *record)
{
	((struct synth *)t->data)->record = record;
}
