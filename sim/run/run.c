#include "sim/run/run.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "sim/cache/expert_plan.h"
#include "sim/place/estimate.h"
#include "sim/run/interval.h"
#include "sim/run/why.h"

/* Steps that differ at random, of which the bound is a mean. */
#define BOUND_STEPS 2048

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
static void fill_phase(const struct simulate_job *job, const struct outcome *o, enum trace_phase phase, struct result *r)
{
	struct tally t = tally_new(job->n_resources, job->arena);

	tally_add(&t, 1, &o->phase[phase]);
	share_out(&t);
	double s = t.v[0] > 0 ? t.v[0] : NAN;
	for (int i = 0; i < job->n_resources; i++)
		r->resource[i].critical_of[phase] = tally_charge(&t)[i] / s;
	r->critical_overhead_of[phase] = tally_charge(&t)[job->n_resources] / s;
}

static void fill_resources(const struct simulate_job *job, const struct platform *pf, const struct outcome *o,
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
	return t->smooth ? 2 : t->n_decode < BOUND_STEPS ? t->n_decode : BOUND_STEPS;
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

static int upper_bound(const struct simulate_job *job, double *tok_s, double *thumb_tok_s, struct err *err)
{
	const struct scenario *s = job->scenario;
	double tokens = 0, seconds = 0, thumb_s = 0, one_s, one_thumb_s;

	for (uint64_t i = 0; i < (s->n_requests ? s->n_requests : 1); i++) {
		struct arena_mark mark = arena_mark(job->arena);
		struct trace t = *job->trace;

		if (s->n_requests)
			simulate_make_trace(&t, s, &s->request[i], job->arena);
		if (least_decode(job->placement, &t, job->arena, &one_s, &one_thumb_s, err))
			return -1;
		tokens += (double)t.decode_tokens;
		seconds += one_s;
		thumb_s += one_thumb_s;
		arena_rewind(job->arena, mark);
	}
	*tok_s = outcome_per_second(tokens, seconds);
	*thumb_tok_s = outcome_per_second(tokens, thumb_s);
	return 0;
}

static void no_numbers(struct result *r)
{
	for (int f = 0; f < RESULT_FIELD_N; f++)
		r->value[f] = r->low80[f] = r->high80[f] = NAN;
	r->thumb_tok_s = NAN;
}

static int place(const struct scenario *s, const struct trace *t, struct placement *p, struct arena *a,
	struct err *err)
{
	struct engine_job ej = simulate_engine_job(s, s->cost, t);

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
	s.begin = s.first_step < SIMULATE_WARM_UP_STEPS ? 0 : s.first_step - SIMULATE_WARM_UP_STEPS;
	s.end = s.first_step + s.n + (s.first_step + s.n < t->n_prefill + t->n_decode);
	return s;
}

void run_make_trace(struct trace *t, const struct scenario *s, struct arena *a)
{
	if (s->recorded)
		*t = *s->recorded;
	else
		simulate_make_trace(t, s, &s->workload, a);
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
static int run_placed(struct simulate_job *job, struct result *out, struct run_why *why, struct err *err)
{
	const struct run_options *o = job->options;
	struct platform pf;
	struct outcome outcome;

	platform_init(&pf, job->placement->machine, job->arena);
	job->n_resources = pf.n_resources;
	if (simulate_all(job, o->exact ? SIMULATE_EXACT : o->quick ? SIMULATE_QUICK : SIMULATE_NORMAL, &outcome, err) ||
		upper_bound(job, &out->value[RESULT_UPPER_BOUND_TOK_S], &out->thumb_tok_s, err))
		return -1;
	outcome_metrics(&outcome, out->value);
	fill_resources(job, &pf, &outcome, out);
	out->events = job->events;
	fill_caches(job->placement->experts, out);
	if (o->interval && interval_fill(job, &pf, out, err))
		return -1;
	return why ? why_explain(job, &pf, &outcome, out, why, err) : 0;
}

int run_scenario(const struct scenario *s, const struct run_options *o, struct arena *a, struct result *out,
	struct run_why *why, struct err *err)
{
	double began_s = now_s();
	struct placement p;
	struct trace t;
	struct simulate_job job = {
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
		why_misfit(&p, why);
	out->wall_s = now_s() - began_s;
	return rc;
}
