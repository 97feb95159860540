#include "sim/run/simulate.h"

#include <math.h>
#include <string.h>

#include "sim/exec/exec.h"

/* Decode steps that are simulated as they come, behind the prefill. */
#define HEAD_STEPS 4
/* A stretch of steps as short as this is a straight line. */
#define SHORT_STEPS 6
/* Up to this many decode steps there is nothing to gain from skipping some. */
#define SKIP_FROM_STEPS 24
/* A window in the middle that agrees with the line between its neighbours to this share ends the search. */
#define SKIP_TOLERANCE 1e-4
/* Windows over which steps that differ at random are averaged. */
#define RANDOM_WINDOWS 512

void simulate_make_trace(struct trace *t, const struct scenario *s, const struct trace_workload *w, struct arena *a)
{
	uint64_t rows_max = s->engine->prefill_rows ? s->engine->prefill_rows(s->flags, s->machine) : 0;

	trace_synth_init(t, s->model, w, rows_max, s->routing.experts, s->seed, a);
	if (s->routing.record)
		trace_synth_replay(t, s->routing.record);
}

struct engine_job simulate_engine_job(const struct scenario *s, const struct cost *cost, const struct trace *t)
{
	return (struct engine_job){
		.model = s->model, .machine = s->machine, .cost = cost, .trace = t, .flags = s->flags,
		.seed = s->seed};
}

/* Turns the running totals at step ends into what each step cost, and sums that. */
struct collector {
	uint64_t first, last;  /* steps that count; those around them are only there for what they prefetch */
	struct tally total;    /* up to the step that ended last */
	struct tally step;     /* of that step alone */
	struct outcome *sum;   /* of the steps that count */
};

static void on_step(void *ctx, const struct exec_record *r)
{
	struct collector *c = ctx;
	size_t n = (c->total.n - 2) / 3;
	struct tally now = c->step; /* the totals first, then less those before */

	if (r->step > c->last)
		return;
	now.v[0] = sim_seconds(r->end);
	for (size_t i = 0; i < n; i++) {
		tally_moved(&now)[i] = r->moved[i];
		tally_busy(&now)[i] = sim_seconds(r->busy[i]);
	}
	for (size_t i = 0; r->charge && i <= n; i++)
		tally_charge(&now)[i] = sim_seconds(r->charge[i]);
	tally_add(&c->step, -1, &c->total);
	tally_add(&c->total, 1, &c->step);
	if (r->step >= c->first)
		tally_add(&c->sum->phase[r->phase], 1, &c->step);
}

/* Simulates steps first .. last, unless steps stand alone with some before them that fill the pipeline and one behind,
   since a step then also works for the next. They are added to sum, by phase; at_last: of the last alone. */
static int simulate(struct simulate_job *job, uint64_t first, uint64_t last, struct outcome *sum, struct tally *at_last,
	struct err *err)
{
	const struct engine_ops *engine = job->scenario->engine;
	struct engine_job ej = simulate_engine_job(job->scenario, job->cost, job->trace);
	uint64_t n_steps = trace_n_steps(job->trace);
	uint64_t warm_up = engine->stepwise ? 0 : SIMULATE_WARM_UP_STEPS;
	uint64_t begin = first < warm_up ? 0 : first - warm_up;
	uint64_t end = !engine->stepwise && last + 1 < n_steps ? last + 2 : last + 1;
	struct arena_mark mark = arena_mark(job->arena);
	struct collector c = {
		.first = first,
		.last = last,
		.total = tally_new(job->n_resources, job->arena),
		.step = tally_new(job->n_resources, job->arena),
		.sum = sum,
	};
	struct exec x;

	exec_init(&x, job->placement, job->trace, engine->lower,
		engine->state_new(&ej, job->placement, job->arena), engine->overheads, job->options->interrupted,
		job->arena);
	if (job->times_alone)
		exec_times_alone(&x);
	int rc = exec_run(&x, begin, end - begin, on_step, &c, err);
	exec_release(&x);
	job->events += x.sim.n_done;
	memcpy(at_last->v, c.step.v, at_last->n * sizeof(*at_last->v));
	arena_rewind(job->arena, mark);
	return rc;
}

/* Steps differ by their context alone, so that some may stand for all. */
static bool smooth(const struct simulate_job *job)
{
	return job->trace->smooth && !job->placement->uneven;
}

/* Cost of one step in the middle of many. */
static int window(struct simulate_job *job, uint64_t step, struct tally *cost, struct err *err)
{
	struct arena_mark mark = arena_mark(job->arena);
	struct outcome unused = outcome_new(job->n_resources, job->arena);
	int rc = simulate(job, step, step, &unused, cost, err);

	arena_rewind(job->arena, mark);
	return rc;
}

/* Adds the steps behind lo up to hi, whose costs lie on a line: n lo + (hi - lo)(n + 1) / 2. */
static void add_line(struct tally *sum, uint64_t n, const struct tally *lo, const struct tally *hi)
{
	double k = ((double)n + 1) / 2;

	tally_add(sum, (double)n - k, lo);
	tally_add(sum, k, hi);
}

/* Adds the steps behind lo up to hi: halves the stretch until its middle lies on the line. */
static int add_smooth(struct simulate_job *job, uint64_t lo, uint64_t hi, const struct tally *at_lo, const struct tally *at_hi,
	struct tally *sum, struct err *err)
{
	uint64_t mid = lo + (hi - lo) / 2;
	struct tally at_mid = tally_new(job->n_resources, job->arena);

	if (hi - lo <= SHORT_STEPS) {
		add_line(sum, hi - lo, at_lo, at_hi);
		return 0;
	}
	if (window(job, mid, &at_mid, err))
		return -1;
	double line = at_lo->v[0] + (at_hi->v[0] - at_lo->v[0]) * (double)(mid - lo) / (double)(hi - lo);
	if (fabs(at_mid.v[0] - line) > SKIP_TOLERANCE * at_mid.v[0])
		return add_smooth(job, lo, mid, at_lo, &at_mid, sum, err) ||
				add_smooth(job, mid, hi, &at_mid, at_hi, sum, err) ?
			-1 :
			0;
	add_line(sum, mid - lo, at_lo, &at_mid);
	add_line(sum, hi - mid, &at_mid, at_hi);
	return 0;
}

/* The same for steps that differ at random: windows at equal distances, lines between them. */
static int add_random(struct simulate_job *job, uint64_t lo, uint64_t hi, uint64_t n_windows, const struct tally *at_lo,
	struct tally *sum, struct err *err)
{
	struct tally before = tally_new(job->n_resources, job->arena), at = tally_new(job->n_resources, job->arena);
	uint64_t from = lo;

	memcpy(before.v, at_lo->v, at_lo->n * sizeof(*at_lo->v));
	for (uint64_t i = 1; i <= n_windows; i++) {
		uint64_t to = lo + (hi - lo) * i / n_windows;
		if (window(job, to, &at, err))
			return -1;
		add_line(sum, to - from, &before, &at);
		memcpy(before.v, at.v, at.n * sizeof(*at.v));
		from = to;
	}
	return 0;
}

/* Adds the steps behind lo up to last. */
static int add_tail(struct simulate_job *job, uint64_t lo, uint64_t last, enum simulate_effort effort, const struct tally *at_lo,
	struct tally *sum, struct err *err)
{
	uint64_t hi = last - 1;
	struct tally at_hi = tally_new(job->n_resources, job->arena), end = tally_new(job->n_resources, job->arena);

	/* The last step of a phase stands apart: it has no next one of its kind to work for, and may be smaller. */
	if (window(job, last, &end, err))
		return -1;
	tally_add(sum, 1, &end);
	if (!smooth(job))
		return add_random(job, lo, hi, effort >= SIMULATE_QUICK ? 2 : RANDOM_WINDOWS, at_lo, sum, err);
	if (window(job, hi, &at_hi, err))
		return -1;
	if (effort >= SIMULATE_QUICK) {
		add_line(sum, hi - lo, at_lo, &at_hi);
		return 0;
	}
	return add_smooth(job, lo, hi, at_lo, &at_hi, sum, err);
}

/* One phase: n steps from first on. The first of them are simulated as they come, the others in part. */
static int simulate_phase(struct simulate_job *job, enum trace_phase phase, enum simulate_effort effort, struct outcome *sum,
	struct err *err)
{
	uint64_t first = phase == TRACE_PREFILL ? 0 : job->trace->n_prefill;
	uint64_t n = phase == TRACE_PREFILL ? job->trace->n_prefill : job->trace->n_decode;
	uint64_t skip_from = smooth(job) ? SKIP_FROM_STEPS : 4 * RANDOM_WINDOWS;
	struct tally at_last = tally_new(job->n_resources, job->arena);

	if (n == 0)
		return 0;
	if (effort == SIMULATE_ROUGH && smooth(job) && n > SIMULATE_WARM_UP_STEPS + 2) {
		if (window(job, first + n / 2, &at_last, err))
			return -1;
		tally_add(&sum->phase[phase], (double)n, &at_last);
		return 0;
	}
	if (effort == SIMULATE_EXACT || (effort == SIMULATE_NORMAL && n <= skip_from) || n <= HEAD_STEPS + SHORT_STEPS)
		return simulate(job, first, first + n - 1, sum, &at_last, err);
	if (simulate(job, first, first + HEAD_STEPS - 1, sum, &at_last, err))
		return -1;
	return add_tail(job, first + HEAD_STEPS - 1, first + n - 1, effort, &at_last, &sum->phase[phase], err);
}

/* Adds prefill and decode of the whole trace. */
static int simulate_trace(struct simulate_job *job, enum simulate_effort effort, struct outcome *sum, struct err *err)
{
	const struct trace *t = job->trace;
	struct tally at_last = tally_new(job->n_resources, job->arena);
	double before_s = sum->phase[TRACE_PREFILL].v[0];
	int rc;

	if (t->mixed)
		rc = simulate(job, 0, trace_n_steps(t) - 1, sum, &at_last, err);
	else
		rc = simulate_phase(job, TRACE_PREFILL, effort, sum, err) ||
				simulate_phase(job, TRACE_DECODE, effort, sum, err) ?
			-1 :
			0;
	sum->prefill_tokens += (double)t->prefill_tokens;
	sum->decode_tokens += (double)t->decode_tokens;
	sum->sampled_tokens += (double)t->sampled_tokens;
	sum->decode_steps += (double)t->n_decode;
	if (t->prefill_tokens && t->sampled_tokens && !t->mixed) {
		sum->first_tokens++;
		sum->first_s += sum->phase[TRACE_PREFILL].v[0] - before_s;
	}
	return rc;
}

int simulate_all(struct simulate_job *job, enum simulate_effort effort, struct outcome *out, struct err *err)
{
	const struct scenario *s = job->scenario;
	uint64_t n = effort >= SIMULATE_QUICK ? 1 : s->n_requests;
	int rc = 0;

	*out = outcome_new(job->n_resources, job->arena);
	if (!s->n_requests)
		return simulate_trace(job, effort, out, err);
	for (uint64_t i = 0; rc == 0 && i < n; i++) {
		struct arena_mark mark = arena_mark(job->arena);
		struct simulate_job one = *job;
		struct trace t;

		simulate_make_trace(&t, s, effort >= SIMULATE_QUICK ? &s->mean_request : &s->request[i], job->arena);
		one.trace = &t;
		rc = simulate_trace(&one, effort, out, err);
		job->events = one.events;
		arena_rewind(job->arena, mark);
	}
	return rc;
}
