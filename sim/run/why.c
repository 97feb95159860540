#include "sim/run/why.h"

#include <math.h>
#include <string.h>

#include "base/units.h"
#include "sim/run/constants.h"

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
static int find_gain(struct simulate_job *job, const char *resource, enum result_field_id metric, double base, double *factor,
	struct err *err)
{
	struct arena_mark mark = arena_mark(job->arena);
	struct constants c;
	double value[RESULT_FIELD_N];
	char prefix[64];

	constants_init(&c, job);
	number_prefix(resource, prefix, sizeof(prefix));
	bool any = divided(job->placement) && constants_behind_gpu(prefix) != prefix;
	const char *begin = any ? constants_behind_gpu(prefix) : prefix;
	for (size_t k = 0; k < c.n[0]; k++) {
		const char *name = c.ref[0][k].name, *rest = any ? constants_behind_gpu(name) : name;
		if ((!any || rest != name) && strncmp(rest, begin, strlen(begin)) == 0 && c.ref[0][k].dim != UNIT_TIME)
			constants_scale(c.ref[0][k].num, 2);
	}
	/* A CPU's kernels count in cycles, whatever its FLOP/s. */
	for (size_t k = 0; k < c.n[1] && strncmp(prefix, "cpu", 3) == 0 && strstr(prefix, ".flops"); k++)
		if (cost_is_rate(c.ref[1][k].name))
			constants_scale(c.ref[1][k].num, 2);
	if (constants_simulate(job, &c, SIMULATE_QUICK, value, err))
		return -1;
	*factor = value[metric] / base;
	arena_rewind(job->arena, mark);
	return 0;
}

/* The resource with the next smaller share of a phase's critical path behind `after`; -1: none that matters. */
static int next_critical(const struct result *r, enum trace_phase phase, int after)
{
	int best = -1;

	for (int i = 0; i < r->n_resources; i++) {
		double share = r->resource[i].critical_of[phase], last = after < 0 ? INFINITY : r->resource[after].critical_of[phase];
		bool behind = share < last || (share == last && i > after);
		if (share > SIMULATE_NEGLIGIBLE_SHARE && behind && (best < 0 || share > r->resource[best].critical_of[phase]))
			best = i;
	}
	return best;
}

static int find_gains(struct simulate_job *job, const struct result *r, enum trace_phase phase, struct run_why *why,
	struct err *err)
{
	struct arena_mark mark = arena_mark(job->arena);
	struct constants same;
	double base[RESULT_FIELD_N];
	int most = job->options->gains ? RUN_MAX_GAINS : 1;

	constants_init(&same, job);
	if (constants_simulate(job, &same, SIMULATE_QUICK, base, err))
		return -1;
	for (int i = next_critical(r, phase, -1); i >= 0 && why->n_gains < most; i = next_critical(r, phase, i)) {
		struct run_gain *g = &why->gain[why->n_gains++];
		memcpy(g->resource, r->resource[i].name, sizeof(g->resource));
		if (find_gain(job, g->resource, why->metric, base[why->metric], &g->factor, err))
			return -1;
	}
	arena_rewind(job->arena, mark);
	return 0;
}

static void explain_change(const struct simulate_job *job, const struct result *r, struct run_why *why)
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

int why_explain(struct simulate_job *job, const struct platform *pf, const struct outcome *o, const struct result *r,
	struct run_why *why, struct err *err)
{
	memset(why, 0, sizeof(*why));
	why->metric = outcome_longer(o) == TRACE_DECODE ? RESULT_DECODE_TOK_S : RESULT_PREFILL_TOK_S;
	explain_why(pf, o, r, why);
	if (find_gains(job, r, outcome_longer(o), why, err))
		return -1;
	explain_change(job, r, why);
	return 0;
}

void why_misfit(const struct placement *p, struct run_why *why)
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
