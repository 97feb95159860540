#include "sim/run/run.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include <gsl/gsl_cdf.h>

#include "sim/cache/expert_plan.h"
#include "sim/place/estimate.h"
#include "sim/trace/trace_kept.h"

/* Decode steps that are simulated as they come, behind the prefill. */
#define HEAD_STEPS 4
/* Steps of a window before the one that counts: they fill the pipeline. */
#define WARM_UP_STEPS 2
/* A stretch of steps as short as this is a straight line. */
#define SHORT_STEPS 6
/* Up to this many decode steps there is nothing to gain from skipping some. */
#define SKIP_FROM_STEPS 24
/* A window in the middle that agrees with the line between its neighbours to this share ends the search. */
#define SKIP_TOLERANCE 1e-4
/* Windows over which steps that differ at random are averaged. */
#define RANDOM_WINDOWS 512
/* Measurement noise that interval80 includes (relative standard deviation, by definition of the interval). */
#define MEASUREMENT_NOISE 0.05
/* A resource that limits less of the time than this cannot move the interval. */
#define NEGLIGIBLE_SHARE 0.002
/* Moved the slower way, a fact that changes a metric by less than this does as much the other way, or nothing: either is
   little beside the noise. */
#define SMALL_CHANGE 0.01

/* What steps cost, summed: seconds, and by resource units moved, seconds busy and seconds on the critical
   path (the last entry is overhead). One flat array so that sums and interpolation are one loop. */
struct tally {
	size_t n;
	double *v;
};

struct job {
	const struct scenario *scenario;
	const struct placement *placement;
	const struct cost *cost;
	const struct trace *trace;
	const struct run_options *options;
	struct arena *arena; /* of the run: sums; each simulation takes from it and gives back */
	int n_resources;
	bool times_alone; /* what limits is not asked for */
	uint64_t events;
};


struct outcome {
	struct tally phase[2]; /* by enum trace_phase */
	double prefill_tokens, decode_tokens, sampled_tokens, decode_steps;
	double first_tokens, first_s; /* prompts that end with a token: how many, how long they took */
};

static size_t tally_len(int n_resources)
{
	return 1 + 3 * (size_t)n_resources + 1;
}

static struct tally tally_new(int n_resources, struct arena *a)
{
	size_t n = tally_len(n_resources);

	return (struct tally){n, arena_array(a, double, n)};
}

static struct outcome outcome_new(int n_resources, struct arena *a)
{
	return (struct outcome){.phase = {tally_new(n_resources, a), tally_new(n_resources, a)}};
}

static double outcome_seconds(const struct outcome *o)
{
	return o->phase[TRACE_PREFILL].v[0] + o->phase[TRACE_DECODE].v[0];
}

/* The phase that takes longer. */
static enum trace_phase outcome_longer(const struct outcome *o)
{
	return o->phase[TRACE_DECODE].v[0] >= o->phase[TRACE_PREFILL].v[0] ? TRACE_DECODE : TRACE_PREFILL;
}

static double *tally_moved(const struct tally *c)
{
	return c->v + 1;
}

static double *tally_busy(const struct tally *c)
{
	return c->v + 1 + (c->n - 2) / 3;
}

static double *tally_charge(const struct tally *c)
{
	return c->v + 1 + 2 * ((c->n - 2) / 3);
}

/* sum += k * c */
static void tally_add(struct tally *sum, double k, const struct tally *c)
{
	for (size_t i = 0; i < sum->n; i++)
		sum->v[i] += k * c->v[i];
}

static void make_trace(struct trace *t, const struct scenario *s, const struct trace_workload *w, struct arena *a)
{
	uint64_t rows_max = s->engine->prefill_rows ? s->engine->prefill_rows(s->flags, s->machine) : 0;

	trace_synth_init(t, s->model, w, rows_max, s->routing.experts, s->seed, a);
	if (s->routing.record)
		trace_synth_replay(t, s->routing.record);
}

static struct engine_job engine_job(const struct scenario *s, const struct cost *cost, const struct trace *t)
{
	return (struct engine_job){
		.model = s->model, .machine = s->machine, .cost = cost, .trace = t, .flags = s->flags,
		.seed = s->seed};
}

/* The constants of a run that have a spread: a copy of the machine's and of the engine's, which may be changed. */
struct constants {
	struct hw_machine *machine;
	struct cost *cost;
	struct hw_num_ref *ref[2]; /* of the machine, of the engine */
	struct hw_num *was[2];     /* what each is without being changed */
	bool *taken[2];            /* whether a simulation took its value */
	size_t n[2];
};

static void constants_init(struct constants *c, const struct job *job)
{
	*c = (struct constants){.machine = hw_machine_copy(job->placement->machine, job->arena)};
	c->n[0] = hw_numbers(c->machine, job->arena, &c->ref[0]);
	if (job->cost) {
		c->cost = cost_copy(job->cost, job->arena);
		c->n[1] = cost_numbers(c->cost, job->arena, &c->ref[1]);
	}
	for (int from = 0; from < 2; from++) {
		c->was[from] = arena_array(job->arena, struct hw_num, c->n[from]);
		c->taken[from] = arena_array(job->arena, bool, c->n[from]);
		for (size_t k = 0; k < c->n[from]; k++) {
			c->ref[from][k].num->taken = &c->taken[from][k];
			c->was[from][k] = *c->ref[from][k].num;
		}
	}
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
static int simulate(struct job *job, uint64_t first, uint64_t last, struct outcome *sum, struct tally *at_last,
	struct err *err)
{
	const struct engine_ops *engine = job->scenario->engine;
	struct engine_job ej = engine_job(job->scenario, job->cost, job->trace);
	uint64_t n_steps = trace_n_steps(job->trace);
	uint64_t warm_up = engine->stepwise ? 0 : WARM_UP_STEPS;
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
static bool smooth(const struct job *job)
{
	return job->trace->smooth && !job->placement->uneven;
}

/* Cost of one step in the middle of many. */
static int window(struct job *job, uint64_t step, struct tally *cost, struct err *err)
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
static int add_smooth(struct job *job, uint64_t lo, uint64_t hi, const struct tally *at_lo, const struct tally *at_hi,
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
static int add_random(struct job *job, uint64_t lo, uint64_t hi, uint64_t n_windows, const struct tally *at_lo,
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

/* Rough: a step in the middle stands for all of its phase. Good for ratios of two runs that differ by little. */
enum effort { EFFORT_EXACT, EFFORT_NORMAL, EFFORT_QUICK, EFFORT_ROUGH };

/* Adds the steps behind lo up to last. */
static int add_tail(struct job *job, uint64_t lo, uint64_t last, enum effort effort, const struct tally *at_lo,
	struct tally *sum, struct err *err)
{
	uint64_t hi = last - 1;
	struct tally at_hi = tally_new(job->n_resources, job->arena), end = tally_new(job->n_resources, job->arena);

	/* The last step of a phase stands apart: it has no next one of its kind to work for, and may be smaller. */
	if (window(job, last, &end, err))
		return -1;
	tally_add(sum, 1, &end);
	if (!smooth(job))
		return add_random(job, lo, hi, effort >= EFFORT_QUICK ? 2 : RANDOM_WINDOWS, at_lo, sum, err);
	if (window(job, hi, &at_hi, err))
		return -1;
	if (effort >= EFFORT_QUICK) {
		add_line(sum, hi - lo, at_lo, &at_hi);
		return 0;
	}
	return add_smooth(job, lo, hi, at_lo, &at_hi, sum, err);
}

/* One phase: n steps from first on. The first of them are simulated as they come, the others in part. */
static int simulate_phase(struct job *job, enum trace_phase phase, enum effort effort, struct outcome *sum,
	struct err *err)
{
	uint64_t first = phase == TRACE_PREFILL ? 0 : job->trace->n_prefill;
	uint64_t n = phase == TRACE_PREFILL ? job->trace->n_prefill : job->trace->n_decode;
	uint64_t skip_from = smooth(job) ? SKIP_FROM_STEPS : 4 * RANDOM_WINDOWS;
	struct tally at_last = tally_new(job->n_resources, job->arena);

	if (n == 0)
		return 0;
	if (effort == EFFORT_ROUGH && smooth(job) && n > WARM_UP_STEPS + 2) {
		if (window(job, first + n / 2, &at_last, err))
			return -1;
		tally_add(&sum->phase[phase], (double)n, &at_last);
		return 0;
	}
	if (effort == EFFORT_EXACT || (effort == EFFORT_NORMAL && n <= skip_from) || n <= HEAD_STEPS + SHORT_STEPS)
		return simulate(job, first, first + n - 1, sum, &at_last, err);
	if (simulate(job, first, first + HEAD_STEPS - 1, sum, &at_last, err))
		return -1;
	return add_tail(job, first + HEAD_STEPS - 1, first + n - 1, effort, &at_last, &sum->phase[phase], err);
}

/* Adds prefill and decode of the whole trace. */
static int simulate_trace(struct job *job, enum effort effort, struct outcome *sum, struct err *err)
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

/* What is simulated: the trace, or recorded requests one after another (quickly: one like the mean of them). */
static int simulate_all(struct job *job, enum effort effort, struct outcome *out, struct err *err)
{
	const struct scenario *s = job->scenario;
	uint64_t n = effort >= EFFORT_QUICK ? 1 : s->n_requests;
	int rc = 0;

	*out = outcome_new(job->n_resources, job->arena);
	if (!s->n_requests)
		return simulate_trace(job, effort, out, err);
	for (uint64_t i = 0; rc == 0 && i < n; i++) {
		struct arena_mark mark = arena_mark(job->arena);
		struct job one = *job;
		struct trace t;

		make_trace(&t, s, effort >= EFFORT_QUICK ? &s->mean_request : &s->request[i], job->arena);
		one.trace = &t;
		rc = simulate_trace(&one, effort, out, err);
		job->events = one.events;
		arena_rewind(job->arena, mark);
	}
	return rc;
}

/* seconds 0 (a bound of nothing) gives NAN, not infinity. */
static double per_second(double n, double seconds)
{
	return n > 0 && seconds > 0 ? n / seconds : NAN;
}

static void fill_metrics(const struct outcome *o, double value[RESULT_FIELD_N])
{
	double prefill_s = o->phase[TRACE_PREFILL].v[0], decode_s = o->phase[TRACE_DECODE].v[0];

	value[RESULT_DECODE_TOK_S] = per_second(o->decode_tokens, decode_s);
	value[RESULT_PREFILL_TOK_S] = per_second(o->prefill_tokens, prefill_s);
	value[RESULT_E2E_TOK_S] = per_second(o->sampled_tokens, prefill_s + decode_s);
	value[RESULT_TTFT_S] = o->first_tokens > 0 ? o->first_s / o->first_tokens : NAN;
	value[RESULT_TPOT_S] = o->decode_steps > 0 ? decode_s / o->decode_steps : NAN;
	value[RESULT_TOTAL_S] = prefill_s + decode_s;
}

/* A window sees its own stretch of the critical path, which may enter on one resource and leave on another: shares
   can come out a hair below zero. Clamped, and made to sum to the whole again. */
static void share_out(struct tally *all)
{
	size_t n = (all->n - 2) / 3 + 1;
	double *charge = tally_charge(all), sum = 0;

	for (size_t i = 0; i < n; i++) {
		charge[i] = fmax(charge[i], 0);
		sum += charge[i];
	}
	for (size_t i = 0; i < n && sum > 0; i++)
		charge[i] *= all->v[0] / sum;
}

/* What limits one phase alone. */
static void fill_phase(const struct job *job, const struct outcome *o, enum trace_phase phase, struct result *r)
{
	struct tally t = tally_new(job->n_resources, job->arena);

	tally_add(&t, 1, &o->phase[phase]);
	share_out(&t);
	double s = t.v[0] > 0 ? t.v[0] : NAN;
	for (int i = 0; i < job->n_resources; i++)
		r->resource[i].critical_of[phase] = tally_charge(&t)[i] / s;
	r->critical_overhead_of[phase] = tally_charge(&t)[job->n_resources] / s;
}

static void fill_resources(const struct job *job, const struct platform *pf, const struct outcome *o,
	struct result *r)
{
	double total_s = outcome_seconds(o);
	struct tally all = tally_new(job->n_resources, job->arena);

	if (job->n_resources > RESULT_MAX_RESOURCES)
		BUG("%d resources", job->n_resources);
	tally_add(&all, 1, &o->phase[TRACE_PREFILL]);
	tally_add(&all, 1, &o->phase[TRACE_DECODE]);
	share_out(&all);
	r->n_resources = job->n_resources;
	for (int i = 0; i < job->n_resources; i++) {
		struct result_resource *res = &r->resource[i];
		snprintf(res->name, sizeof(res->name), "%s", pf->resource_name[i]);
		res->busy = tally_busy(&all)[i] / total_s;
		/* Interpolation may be off in the last digits. */
		res->busy = fmin(res->busy, 1);
		res->utilisation = fmin(tally_moved(&all)[i] / total_s / pf->capacity[i], res->busy);
		res->bytes = pf->counts_bytes[i] ? tally_moved(&all)[i] : NAN;
		res->critical = tally_charge(&all)[i] / total_s;
	}
	r->critical_overhead = tally_charge(&all)[job->n_resources] / total_s;
	fill_phase(job, o, TRACE_PREFILL, r);
	fill_phase(job, o, TRACE_DECODE, r);
}

/* Bytes of one decode step into the estimate. */
static void estimate_step(struct estimate *e, const struct model *m, const struct trace_step *step)
{
	for (size_t i = 0; i < step->n_access; i++) {
		const struct trace_access *a = &step->access[i];
		uint64_t fresh = step->n_tokens;

		switch ((enum trace_kind)a->kind) {
		case TRACE_WEIGHTS:
			estimate_group(e, a->layer, a->group,
				a->group == MODEL_EMBED ? fmin(1, (double)a->tokens / m->vocab) : 1, (double)a->tokens);
			break;
		case TRACE_EXPERT:
			estimate_group(e, a->layer, a->group, 1.0 / m->layers[a->layer].n_expert, (double)a->tokens);
			break;
		case TRACE_KV_READ:
			estimate_kv(e, a->layer, (double)a->kv_tokens, (double)fresh, a->kv_pairs);
			break;
		case TRACE_KV_WRITE:
			break;
		}
	}
}

/* Steps to look at for the bound: of a mixed trace all, of others some of the decode. */
static uint64_t bound_steps(const struct trace *t)
{
	if (t->mixed)
		return trace_n_steps(t);
	return t->smooth ? 2 : t->n_decode < 4 * RANDOM_WINDOWS ? t->n_decode : 4 * RANDOM_WINDOWS;
}

/* The least that a trace's decode takes. Of its steps a mean is taken; where they differ by context alone the first and the
   last do: windows make the cost grow ever slower, so no mean is below theirs. What was fetched ahead before decoding
   began is spread over the steps. thumb_s: by the rule of thumb. */
static int least_decode(const struct placement *p, const struct trace *t, struct arena *a, double *out_s,
	double *thumb_s, struct err *err)
{
	uint64_t n = bound_steps(t), n_seen = 0;
	struct arena_mark mark = arena_mark(a);
	struct trace_cursor c;
	double seconds = 0;
	int rc = 0;

	*out_s = *thumb_s = 0;
	if (t->n_decode == 0)
		return 0;
	trace_cursor_init(&c, t, a);
	for (uint64_t i = 0; rc == 0 && i < n; i++) {
		uint64_t index = t->mixed ? i : t->n_prefill + (n > 1 ? i * (t->n_decode - 1) / (n - 1) : 0);
		struct trace_step step;
		struct estimate e;

		rc = trace_step_get(&c, index, &step, err);
		if (rc || step.phase != TRACE_DECODE)
			continue;
		estimate_init(&e, p, a);
		estimate_step(&e, p->model, &step);
		seconds += estimate_seconds(&e, (double)p->ahead_bytes / (double)t->n_decode);
		*thumb_s += e.thumb_s;
		n_seen++;
	}
	trace_cursor_release(&c);
	arena_rewind(a, mark);
	if (rc)
		return -1;
	*out_s = seconds * (double)t->n_decode / (double)n_seen;
	*thumb_s *= (double)t->n_decode / (double)n_seen;
	return 0;
}

static int upper_bound(const struct job *job, double *tok_s, double *thumb_tok_s, struct err *err)
{
	const struct scenario *s = job->scenario;
	double tokens = 0, seconds = 0, thumb_s = 0, one_s, one_thumb_s;

	for (uint64_t i = 0; i < (s->n_requests ? s->n_requests : 1); i++) {
		struct arena_mark mark = arena_mark(job->arena);
		struct trace t = *job->trace;

		if (s->n_requests)
			make_trace(&t, s, &s->request[i], job->arena);
		if (least_decode(job->placement, &t, job->arena, &one_s, &one_thumb_s, err))
			return -1;
		tokens += (double)t.decode_tokens;
		seconds += one_s;
		thumb_s += one_thumb_s;
		arena_rewind(job->arena, mark);
	}
	*tok_s = per_second(tokens, seconds);
	*thumb_tok_s = per_second(tokens, thumb_s);
	return 0;
}

/* Other constants under the same placement: times alone. */
static int with_constants(const struct job *job, const struct constants *c, enum effort effort,
	double value[RESULT_FIELD_N], struct err *err)
{
	struct placement p = *job->placement;
	struct job other = *job;
	struct outcome o;

	p.machine = c->machine;
	other.placement = &p;
	other.cost = c->cost;
	other.times_alone = true;
	if (simulate_all(&other, effort, &o, err))
		return -1;
	fill_metrics(&o, value);
	return 0;
}

static void scale(struct hw_num *num, double factor)
{
	num->peak *= factor;
	num->measured *= factor;
}

/* Whether a resource whose name begins so limits anything. */
static bool limited_by(const struct result *r, const char *begin, size_t len)
{
	for (int i = 0; i < r->n_resources; i++)
		if (r->resource[i].critical > NEGLIGIBLE_SHARE && strncmp(r->resource[i].name, begin, len) == 0)
			return true;
	return false;
}

/* Whether the memory or the arithmetic of a kind of device does. */
static bool limits(const struct result *r, const struct hw_machine *m, enum hw_device_kind kind)
{
	bool shares_ram = kind == HW_DEVICE_CPU;

	for (int i = 0; i < m->n_devices; i++) {
		const struct hw_memory *memory = &m->memories[m->devices[i].memory];
		shares_ram |= m->devices[i].kind == kind && (memory->kind == HW_MEMORY_RAM || memory->in_ram);
	}
	return limited_by(r, kind == HW_DEVICE_CPU ? "cpu" : "gpu", 3) || (shares_ram && limited_by(r, "ram", 3));
}

/* A rate that copies of a kind reach, but no capacity: "gpu0.link.h2d_pageable" where the link is not idle, or what an
   engine's host moves. */
static bool caps(const struct result *r, const char *name)
{
	const char *kind = strstr(name, "_pageable");

	return strncmp(name, "kernels.", 8) == 0 || (kind && limited_by(r, name, (size_t)(kind - name)));
}

static bool limits_by_capacity(const struct result *r, const struct platform *base, const struct constants *c,
	struct arena *a)
{
	struct arena_mark mark = arena_mark(a);
	struct platform moved;
	bool yes = false;

	platform_init(&moved, c->machine, a);
	for (int i = 0; i < base->n_resources; i++)
		yes |= base->capacity[i] != moved.capacity[i] && r->resource[i].critical > NEGLIGIBLE_SHARE;
	arena_rewind(a, mark);
	return yes;
}

/* True when the number, which was moved, can limit some of the time: a capacity that it decides does; it is a time, and there
   is overhead; or it is a share that an engine's kernels reach, or a rate of theirs, or the clock that they count by. */
static bool matters(const struct result *r, const struct platform *base, const struct constants *c,
	const struct hw_num_ref *ref, struct arena *a)
{
	if (ref->dim == UNIT_TIME)
		return r->critical_overhead > NEGLIGIBLE_SHARE;
	if (strncmp(ref->name, "kernels.cpu.", 12) == 0 || strncmp(ref->name, "cpu", 3) == 0)
		return limits(r, c->machine, HW_DEVICE_CPU);
	if (strncmp(ref->name, "kernels.gpu.", 12) == 0)
		return limits(r, c->machine, HW_DEVICE_GPU);
	if (ref->dim == UNIT_FRACTION || ref->dim == UNIT_PLAIN || ref->dim == UNIT_FREQUENCY)
		return true;
	if (caps(r, ref->name))
		return true;
	return limits_by_capacity(r, base, c, a);
}

/* The same number of any GPU. */
static const char *behind_gpu(const char *name)
{
	return strncmp(name, "gpu", 3) == 0 ? name + 3 + strspn(name + 3, "0123456789") : name;
}

/* Cards of one part are what that part is: who is wrong about one of them is wrong about all. */
static bool same_fact(const struct constants *c, size_t i, size_t k)
{
	const struct hw_num *x = &c->was[0][i], *y = &c->was[0][k];
	const char *a = c->ref[0][i].name, *b = c->ref[0][k].name;

	return i == k || (behind_gpu(a) != a && behind_gpu(b) != b && strcmp(behind_gpu(a), behind_gpu(b)) == 0 &&
		x->peak == y->peak && x->measured == y->measured && x->efficiency == y->efficiency && x->spread == y->spread);
}

/* A fact to be moved: number k, and those that are the same. */
struct fact {
	int from;
	size_t k;
};

static bool of_fact(const struct constants *c, const struct fact *f, size_t i)
{
	return f->from == 0 ? same_fact(c, i, f->k) : i == f->k;
}

/* Is it new (not the same as one before), uncertain, and did the run take it? */
static bool is_open(const struct constants *c, const struct fact *f)
{
	bool taken = false;

	if (!(c->was[f->from][f->k].spread > 0))
		return false;
	for (size_t i = 0; i < c->n[f->from]; i++) {
		if (!of_fact(c, f, i))
			continue;
		if (i < f->k)
			return false;
		taken |= c->taken[f->from][i];
	}
	return taken;
}

static void move(const struct constants *c, const struct fact *f, double factor)
{
	for (size_t i = 0; i < c->n[f->from]; i++)
		if (of_fact(c, f, i))
			scale(c->ref[f->from][i].num, factor);
}

static void move_back(const struct constants *c, const struct fact *f)
{
	for (size_t i = 0; i < c->n[f->from]; i++)
		*c->ref[f->from][i].num = c->was[f->from][i];
}

/* A longer time, a lower rate or share: what makes nothing slower when it is that, makes nothing faster when it is the
   reverse. Of thresholds and exponents nobody knows which way that is. */
static bool slows(const struct hw_num_ref *ref, bool up, bool *known)
{
	*known = ref->dim != UNIT_COUNT && (ref->dim != UNIT_PLAIN || cost_is_rate(ref->name));
	return up == (ref->dim == UNIT_TIME);
}

/* What moving a fact up and down by its spread does to the logarithms of the metrics, squared. */
static int add_variance(struct job *job, const struct platform *base_platform, const struct result *r,
	struct constants *c, const struct fact *f, const double base[RESULT_FIELD_N],
	double variance[RESULT_FIELD_N], struct err *err)
{
	const struct hw_num_ref *ref = &c->ref[f->from][f->k];
	double spread = c->was[f->from][f->k].spread, value[RESULT_FIELD_N];
	bool known, up = slows(ref, true, &known);

	for (int i = 0; i < 2; i++, up = !up) {
		double largest = 0, changed[RESULT_FIELD_N] = {0};
		move(c, f, exp(up ? spread : -spread));
		bool counts = matters(r, base_platform, c, ref, job->arena);
		int rc = counts ? with_constants(job, c, EFFORT_ROUGH, value, err) : 0;
		move_back(c, f);
		if (!counts || rc)
			return rc;
		for (int k = 0; k < RESULT_FIELD_N; k++) {
			if (!result_fields[k].interval || !isfinite(base[k]))
				continue;
			changed[k] = log(value[k] / base[k]);
			largest = fmax(largest, fabs(changed[k]));
		}
		bool enough = i == 0 && known && largest < SMALL_CHANGE;
		for (int k = 0; k < RESULT_FIELD_N; k++)
			variance[k] += changed[k] * changed[k] / (enough ? 1 : 2);
		if (enough)
			return 0;
	}
	return 0;
}

/* Each fact that limits something is moved by its spread; the squares add up, and on top measurement noise and what
   is known to remain unexplained. */
static int fill_interval(struct job *job, const struct platform *base_platform, struct result *r, struct err *err)
{
	double base[RESULT_FIELD_N], variance[RESULT_FIELD_N] = {0};
	struct arena_mark mark = arena_mark(job->arena);
	struct constants c;

	constants_init(&c, job);
	if (with_constants(job, &c, EFFORT_ROUGH, base, err))
		return -1;
	for (int from = 0; from < 2; from++) {
		for (size_t k = 0; k < c.n[from]; k++) {
			struct fact f = {from, k};
			if (is_open(&c, &f) &&
				add_variance(job, base_platform, r, &c, &f, base, variance, err))
				return -1;
		}
	}

	double unexplained = c.cost ? hw_num_value(&c.cost->unexplained) : 0;
	double unexplained_prompt = c.cost ? hw_num_value(&c.cost->unexplained_prompt) : 0;
	double z = gsl_cdf_ugaussian_Pinv(0.9); /* 80 % lie between the 10th and the 90th percentile */
	for (int f = 0; f < RESULT_FIELD_N; f++) {
		if (!result_fields[f].interval)
			continue;
		bool prompt = f == RESULT_PREFILL_TOK_S || f == RESULT_TTFT_S;
		double noise = hypot(MEASUREMENT_NOISE, prompt ? unexplained_prompt : unexplained);
		double sigma = sqrt(variance[f] + noise * noise);
		r->low80[f] = r->value[f] * exp(-z * sigma);
		r->high80[f] = r->value[f] * exp(z * sigma);
	}
	arena_rewind(job->arena, mark);
	return 0;
}

/* Simulates the same steps over and over: they are kept, unless that were a whole recording. */
static int interval(const struct job *job, const struct platform *base_platform, struct result *r, struct err *err)
{
	struct trace_kept kept;
	struct job again = *job;

	if (job->trace->mixed || job->scenario->n_requests)
		return fill_interval(&again, base_platform, r, err);
	trace_kept_init(&kept, job->trace, job->arena);
	again.trace = &kept.trace;
	int rc = fill_interval(&again, base_platform, r, err);
	trace_kept_release(&kept);
	return rc;
}

static void no_numbers(struct result *r)
{
	for (int f = 0; f < RESULT_FIELD_N; f++)
		r->value[f] = r->low80[f] = r->high80[f] = NAN;
	r->thumb_tok_s = NAN;
}

/* Of a phase. */
static int most_critical(const struct tally *phase, int n_resources)
{
	int best = 0;

	for (int i = 1; i < n_resources; i++)
		if (tally_charge(phase)[i] > tally_charge(phase)[best])
			best = i;
	return best;
}

/* What a person can make faster: a whole link, not one direction of it; a drive, not the link to it. */
static void part_name(const char *resource, char *buf, size_t size)
{
	const char *link = strstr(resource, "link.");
	bool drive = strncmp(resource, "nvme", 4) == 0;

	snprintf(buf, size, "%.*s", link ? (int)(link - resource) + (drive ? -1 : 4) : (int)strlen(resource), resource);
}

/* The numbers of the machine that a resource's capacity is made of begin with this. */
static void number_prefix(const char *resource, char *buf, size_t size)
{
	char part[RESULT_NAME_MAX];
	const char *compute = strstr(resource, ".compute");

	part_name(resource, part, sizeof(part));
	if (compute)
		snprintf(buf, size, "%.*s.flops", (int)(compute - resource), resource);
	else if (strstr(resource, "link."))
		snprintf(buf, size, "%s.", part);
	else
		snprintf(buf, size, "%s.bandwidth", part);
}

/* Every GPU does its share of everything, and none is faster for another's being so. */
static bool divided(const struct placement *p)
{
	return p->kv[0].mode == PLACE_ROWS;
}

/* How the metric would change if a resource (with a divided model: of each GPU) were twice as fast. */
static int find_gain(struct job *job, const char *resource, enum result_field_id metric, double base, double *factor,
	struct err *err)
{
	struct arena_mark mark = arena_mark(job->arena);
	struct constants c;
	double value[RESULT_FIELD_N];
	char prefix[64];

	constants_init(&c, job);
	number_prefix(resource, prefix, sizeof(prefix));
	bool any = divided(job->placement) && behind_gpu(prefix) != prefix;
	const char *begin = any ? behind_gpu(prefix) : prefix;
	for (size_t k = 0; k < c.n[0]; k++) {
		const char *name = c.ref[0][k].name, *rest = any ? behind_gpu(name) : name;
		if ((!any || rest != name) && strncmp(rest, begin, strlen(begin)) == 0 && c.ref[0][k].dim != UNIT_TIME)
			scale(c.ref[0][k].num, 2);
	}
	/* A CPU's kernels count in cycles, whatever its FLOP/s. */
	for (size_t k = 0; k < c.n[1] && strncmp(prefix, "cpu", 3) == 0 && strstr(prefix, ".flops"); k++)
		if (cost_is_rate(c.ref[1][k].name))
			scale(c.ref[1][k].num, 2);
	if (with_constants(job, &c, EFFORT_QUICK, value, err))
		return -1;
	*factor = value[metric] / base;
	arena_rewind(job->arena, mark);
	return 0;
}

/* The resource with the next smaller share of the critical path behind `after`; -1: none that matters. */
static int next_critical(const struct result *r, int after)
{
	int best = -1;

	for (int i = 0; i < r->n_resources; i++) {
		double share = r->resource[i].critical;
		bool behind = after < 0 || share < r->resource[after].critical ||
			(share == r->resource[after].critical && i > after);
		if (share > NEGLIGIBLE_SHARE && behind && (best < 0 || share > r->resource[best].critical))
			best = i;
	}
	return best;
}

static int find_gains(struct job *job, const struct result *r, struct run_why *why, struct err *err)
{
	struct arena_mark mark = arena_mark(job->arena);
	struct constants same;
	double base[RESULT_FIELD_N];
	int most = job->options->gains ? RUN_MAX_GAINS : 1;

	constants_init(&same, job);
	if (with_constants(job, &same, EFFORT_QUICK, base, err))
		return -1;
	for (int i = next_critical(r, -1); i >= 0 && why->n_gains < most; i = next_critical(r, i)) {
		struct run_gain *g = &why->gain[why->n_gains++];
		memcpy(g->resource, r->resource[i].name, sizeof(g->resource));
		if (find_gain(job, g->resource, why->metric, base[why->metric], &g->factor, err))
			return -1;
	}
	arena_rewind(job->arena, mark);
	return 0;
}

static void explain_change(const struct job *job, const struct result *r, struct run_why *why)
{
	char was[32], then[32], part[RESULT_NAME_MAX];
	double now = r->value[why->metric];
	const char *advice = job->placement->advice;

	if (why->n_gains == 0) {
		snprintf(why->change, sizeof(why->change), "%s", advice);
		return;
	}
	part_name(why->gain[0].resource, part, sizeof(part));
	units_format(was, sizeof(was), now, result_fields[why->metric].dim);
	units_format(then, sizeof(then), now * why->gain[0].factor, result_fields[why->metric].dim);
	snprintf(why->change, sizeof(why->change), "%s%s twice as fast would make %s of %s%s%s", part,
		divided(job->placement) && strncmp(part, "gpu", 3) == 0 ? " (and those of the other GPUs)" : "", then, was,
		advice[0] ? "; " : "", advice);
}

static void explain_why(const struct platform *pf, const struct outcome *o, const struct result *r, struct run_why *why)
{
	bool decode = outcome_longer(o) == TRACE_DECODE;
	const struct tally *phase = &o->phase[outcome_longer(o)];
	int top = most_critical(phase, r->n_resources);
	double moved = tally_moved(phase)[top] / (decode ? o->decode_steps : 1);
	double limited_s = tally_charge(phase)[top], percent = fmin(100, 100 * limited_s / phase->v[0]);
	double reached = fmin(pf->capacity[top], tally_moved(phase)[top] / limited_s);
	const char *name = r->resource[top].name;
	char amount[32], rate[32];

	if (!pf->counts_bytes[top]) {
		snprintf(why->why, sizeof(why->why), "the arithmetic of %s sets the pace %.0f %% of the %s", name, percent,
			decode ? "decode" : "prefill");
		return;
	}
	units_format(amount, sizeof(amount), moved, UNIT_BYTES);
	units_format(rate, sizeof(rate), reached, UNIT_BYTES_RATE);
	double other = tally_charge(phase)[r->n_resources];
	if (other > limited_s)
		snprintf(why->why, sizeof(why->why), "launches, waits and what single threads do set the pace %.0f %% of the %s; "
			"next to them the %s moved through %s, %.0f %%", fmin(100, 100 * other / phase->v[0]),
			decode ? "decode" : "prefill", amount, name, percent);
	else
		snprintf(why->why, sizeof(why->why), "%s moves %s through %s at %s, which sets its pace %.0f %% of the time",
			decode ? "a decode step" : "the prefill", amount, name, rate, percent);
}

static int explain(struct job *job, const struct platform *pf, const struct outcome *o, const struct result *r,
	struct run_why *why, struct err *err)
{
	memset(why, 0, sizeof(*why));
	why->metric = outcome_longer(o) == TRACE_DECODE ? RESULT_DECODE_TOK_S : RESULT_PREFILL_TOK_S;
	explain_why(pf, o, r, why);
	if (find_gains(job, r, why, err))
		return -1;
	explain_change(job, r, why);
	return 0;
}

static void explain_misfit(const struct placement *p, struct run_why *why)
{
	int worst = 0;
	char missing[32];

	memset(why, 0, sizeof(*why));

	for (int i = 1; i < p->ledger.n; i++)
		if (ledger_missing(&p->ledger, i) > ledger_missing(&p->ledger, worst))
			worst = i;
	units_format(missing, sizeof(missing), (double)ledger_missing(&p->ledger, worst), UNIT_BYTES);
	snprintf(why->why, sizeof(why->why), "does not fit: %s lacks %s", p->ledger.row[worst].name, missing);
	snprintf(why->change, sizeof(why->change), "%s", p->advice);
}

static int place(const struct scenario *s, const struct trace *t, struct placement *p, struct arena *a,
	struct err *err)
{
	struct engine_job ej = engine_job(s, s->cost, t);

	if (s->engine->place(&ej, p, a, err) == 0)
		return 0;
	/* What an engine says of its flags is about where they are written. */
	if (err->file[0] == '\0' && s->flags_node->pos.file) {
		struct err said = *err;
		err_at(err, said.code, &s->flags_node->pos, "%s", said.msg);
	}
	return -1;
}

struct run_stretch run_stretch(const struct trace *t, uint64_t n_steps)
{
	struct run_stretch s = {.decode = t->n_decode > 0};
	uint64_t of_phase = s.decode ? t->n_decode : t->n_prefill;

	s.n = n_steps < of_phase ? n_steps : of_phase;
	s.first = (of_phase - s.n) / 2;
	s.first_step = s.first + (s.decode ? t->n_prefill : 0);
	s.begin = s.first_step < WARM_UP_STEPS ? 0 : s.first_step - WARM_UP_STEPS;
	s.end = s.first_step + s.n + (s.first_step + s.n < t->n_prefill + t->n_decode);
	return s;
}

void run_make_trace(struct trace *t, const struct scenario *s, struct arena *a)
{
	if (s->recorded)
		*t = *s->recorded;
	else
		make_trace(t, s, &s->workload, a);
}

int run_place(const struct scenario *s, struct placement *p, struct arena *a, struct err *err)
{
	struct trace *t = arena_new(a, struct trace);

	run_make_trace(t, s, a);
	return place(s, t, p, a, err);
}

static void fill_caches(const struct expert_plan *e, struct result *r)
{
	if (!e)
		return;
	if (e->n_levels > RESULT_MAX_CACHES)
		BUG("%d caches", e->n_levels);
	r->n_caches = e->n_levels;
	for (int i = 0; i < e->n_levels; i++) {
		const struct expert_sum *prefill = &e->sum[i][TRACE_PREFILL], *decode = &e->sum[i][TRACE_DECODE];
		struct result_cache *c = &r->cache[i];
		snprintf(c->name, sizeof(c->name), "%s", e->level_name[i]);
		c->lookups = prefill->lookups + decode->lookups;
		c->hits = prefill->hits + decode->hits;
		c->decode_hit_rate = expert_plan_hit_rate(e, i, TRACE_DECODE);
		c->read_bytes = prefill->read_bytes + decode->read_bytes;
	}
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* Everything behind the placement. */
static int run_placed(struct job *job, struct result *out, struct run_why *why, struct err *err)
{
	const struct run_options *o = job->options;
	struct platform pf;
	struct outcome outcome;

	platform_init(&pf, job->placement->machine, job->arena);
	job->n_resources = pf.n_resources;
	if (simulate_all(job, o->exact ? EFFORT_EXACT : o->quick ? EFFORT_QUICK : EFFORT_NORMAL, &outcome, err) ||
		upper_bound(job, &out->value[RESULT_UPPER_BOUND_TOK_S], &out->thumb_tok_s, err))
		return -1;
	fill_metrics(&outcome, out->value);
	fill_resources(job, &pf, &outcome, out);
	out->events = job->events;
	fill_caches(job->placement->experts, out);
	if (o->interval && interval(job, &pf, out, err))
		return -1;
	return why ? explain(job, &pf, &outcome, out, why, err) : 0;
}

int run_scenario(const struct scenario *s, const struct run_options *o, struct arena *a, struct result *out,
	struct run_why *why, struct err *err)
{
	double began_s = now_s();
	struct placement p;
	struct trace t;
	struct job job = {
		.scenario = s, .placement = &p, .cost = s->cost, .trace = &t, .options = o, .arena = a};
	int rc = 0;

	memset(out, 0, sizeof(*out));
	no_numbers(out);
	memcpy(out->key, s->key, sizeof(out->key));
	run_make_trace(&t, s, a);
	if (place(s, &t, &p, a, err))
		return -1;
	if (s->n_requests && p.experts)
		return err_set(err, ERR_INPUT, "engine '%s' caches experts over the steps of one workload; requests are several",
			s->engine_name);
	out->memory = p.ledger;
	out->fits = ledger_fits(&p.ledger);
	if (out->fits)
		rc = run_placed(&job, out, why, err);
	else if (why)
		explain_misfit(&p, why);
	out->wall_s = now_s() - began_s;
	return rc;
}
