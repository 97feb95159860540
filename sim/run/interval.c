#include "sim/run/interval.h"

#include <math.h>
#include <string.h>

#include <gsl/gsl_cdf.h>

#include "sim/run/constants.h"
#include "sim/trace/trace_kept.h"

/* Measurement noise that interval80 includes (relative standard deviation, by definition of the interval). */
#define MEASUREMENT_NOISE 0.05
/* Moved the slower way, a fact that changes a metric by less than this does as much the other way, or nothing: either is
   little beside the noise. */
#define SMALL_CHANGE 0.01

/* Whether a resource whose name begins so limits anything. */
static bool limited_by(const struct result *r, const char *begin, size_t len)
{
	for (int i = 0; i < r->n_resources; i++)
		if (r->resource[i].critical > SIMULATE_NEGLIGIBLE_SHARE && strncmp(r->resource[i].name, begin, len) == 0)
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
		yes |= base->capacity[i] != moved.capacity[i] && r->resource[i].critical > SIMULATE_NEGLIGIBLE_SHARE;
	arena_rewind(a, mark);
	return yes;
}

/* True when the number, which was moved, can limit some of the time: a capacity that it decides does; it is a time, and there
   is overhead; or it is a share that an engine's kernels reach, or a rate of theirs, or the clock that they count by. */
static bool matters(const struct result *r, const struct platform *base, const struct constants *c,
	const struct hw_num_ref *ref, struct arena *a)
{
	if (ref->dim == UNIT_TIME)
		return r->critical_overhead > SIMULATE_NEGLIGIBLE_SHARE;
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

/* Cards of one part are what that part is: who is wrong about one of them is wrong about all. */
static bool same_fact(const struct constants *c, size_t i, size_t k)
{
	const struct hw_num *x = &c->was[0][i], *y = &c->was[0][k];
	const char *a = c->ref[0][i].name, *b = c->ref[0][k].name;

	return i == k || (constants_behind_gpu(a) != a && constants_behind_gpu(b) != b && strcmp(constants_behind_gpu(a), constants_behind_gpu(b)) == 0 &&
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
			constants_scale(c->ref[f->from][i].num, factor);
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
static int add_variance(struct simulate_job *job, const struct platform *base_platform, const struct result *r,
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
		int rc = counts ? constants_simulate(job, c, SIMULATE_ROUGH, value, err) : 0;
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
static int interval_of(struct simulate_job *job, const struct platform *base_platform, struct result *r, struct err *err)
{
	double base[RESULT_FIELD_N], variance[RESULT_FIELD_N] = {0};
	struct arena_mark mark = arena_mark(job->arena);
	struct constants c;

	constants_init(&c, job);
	if (constants_simulate(job, &c, SIMULATE_ROUGH, base, err))
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
int interval_fill(const struct simulate_job *job, const struct platform *base_platform, struct result *r, struct err *err)
{
	struct trace_kept kept;
	struct simulate_job again = *job;

	if (job->trace->mixed || job->scenario->n_requests)
		return interval_of(&again, base_platform, r, err);
	trace_kept_init(&kept, job->trace, job->arena);
	again.trace = &kept.trace;
	int rc = interval_of(&again, base_platform, r, err);
	trace_kept_release(&kept);
	return rc;
}
