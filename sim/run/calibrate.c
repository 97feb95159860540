#include "sim/run/calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics.h>

#include "base/vec.h"
#include "sim/run/calibrate_fit.h"
#include "sim/run/calibrate_text.h"
#include "sim/run/kernels.h"
#include "sim/run/llama_case.h"
#include "sim/run/run.h"

/* What the same program measures on the same machine another day: of one constant, and of one test of llama-bench. */
#define SPREAD_MEASURED 0.03
#define SPREAD_TEST 0.05

/* Which constant a kind of measurement states, and which of several counts. */
static const struct direct {
	enum bench_kind kind;
	const char *name; /* %d: the device */
	bool best;        /* the largest: others had too few threads or too small requests; else the mean */
} directs[] = {
	{BENCH_H2D, "gpu%d.link.h2d", false},
	{BENCH_D2H, "gpu%d.link.d2h", false},
	{BENCH_TWO_WAY, "gpu%d.link.both", false},
	{BENCH_GPU_MEMORY, "gpu%d.bandwidth", true},
	{BENCH_DRAM, "ram.bandwidth", true},
	{BENCH_DRIVE_READ, "nvme%d.read", true},
	{BENCH_DRIVE_WRITE, "nvme%d.write", true},
	{BENCH_DRIVE_LATENCY, "nvme%d.latency", false},
};

struct rows {
	VEC(struct calibrate_row);
};

struct points {
	VEC(struct fit_point);
};

struct job {
	const struct calibrate_options *o;
	struct arena *arena;
	struct rows rows;
	struct hw_machine *machine; /* the base, changed as constants are set */
	struct cost *cost;
	struct hw_num_ref *ref; /* of the machine, then of the kernels */
	struct calibrate_constant *constant; /* one for each ref; those without rows are dropped at the end */
	size_t n_refs;
	struct points points;
};

/* ---- reading ---- */

static void mark_copies(struct job *job)
{
	const struct bench_row **row = arena_array(job->arena, const struct bench_row *, job->rows.n);
	size_t *first = arena_array(job->arena, size_t, job->rows.n);

	for (size_t i = 0; i < job->rows.n; i++)
		row[i] = job->rows.at[i].bench;
	bench_find_copies(row, job->rows.n, job->arena, first);
	for (size_t i = 0; i < job->rows.n; i++)
		if (first[i] < i)
			job->rows.at[i].unused = arena_printf(job->arena, "the same measurement as %s:%d",
				job->rows.at[first[i]].file, row[first[i]]->line);
}

static int read_files(struct job *job, struct err *err)
{
	for (size_t f = 0; f < job->o->n_files; f++) {
		struct bench *b = arena_new(job->arena, struct bench);
		if (bench_read_file(job->o->file[f], job->o->format, job->arena, b, err))
			return -1;
		for (size_t i = 0; i < b->n; i++)
			VEC_PUSH(&job->rows, job->arena,
				((struct calibrate_row){.bench = &b->at[i], .file = b->file, .unused = b->at[i].unused,
					.model = "", .point = -1, .before = NAN, .after = NAN}));
	}
	mark_copies(job);
	return 0;
}

static int load_base(struct job *job, struct err *err)
{
	struct arena *a = job->arena;
	struct hw_num_ref *ref[2];
	size_t n[2];

	if (hw_machine_load(job->o->machine, a, &job->machine, err) ||
		cost_load(engine_llamacpp.kernels, job->machine, a, &job->cost, err) ||
		kernels_apply(job->machine, engine_llamacpp.kernels, job->cost, a, err))
		return -1;
	n[0] = hw_numbers(job->machine, a, &ref[0]);
	n[1] = cost_numbers(job->cost, a, &ref[1]);
	job->n_refs = n[0] + n[1];
	job->ref = arena_array(a, struct hw_num_ref, job->n_refs);
	job->constant = arena_array(a, struct calibrate_constant, job->n_refs);
	for (size_t k = 0; k < job->n_refs; k++) {
		job->ref[k] = k < n[0] ? ref[0][k] : ref[1][k - n[0]];
		double value = hw_num_value(job->ref[k].num), spread = job->ref[k].num->spread;
		job->constant[k] = (struct calibrate_constant){.name = job->ref[k].name, .dim = (enum unit_dim)job->ref[k].dim,
			.state = CALIBRATE_HELD, .before = value, .before_spread = spread, .value = value, .spread = spread,
			.from = "", .why = ""};
	}
	return 0;
}

/* ---- what is measured directly ---- */

static struct calibrate_constant *find_constant(struct job *job, const char *name)
{
	for (size_t k = 0; k < job->n_refs; k++)
		if (strcmp(job->constant[k].name, name) == 0)
			return &job->constant[k];
	return NULL;
}

/* "the profile has no gpu1", or which number of it. */
static const char *no_constant(const struct job *job, const char *name)
{
	size_t device = strcspn(name, ".");

	for (size_t k = 0; k < job->n_refs; k++)
		if (strncmp(job->constant[k].name, name, device + 1) == 0)
			return arena_printf(job->arena, "the profile has no %s", name);
	return arena_printf(job->arena, "the profile has no %.*s", (int)device, name);
}

static const struct direct *find_direct(enum bench_kind kind)
{
	for (size_t i = 0; i < ARRAY_LEN(directs); i++)
		if (directs[i].kind == kind)
			return &directs[i];
	return NULL;
}

static const char *constant_name(const struct direct *d, int device, struct arena *a)
{
	const char *number = strstr(d->name, "%d");

	if (!number)
		return d->name;
	return arena_printf(a, "%.*s%d%s", (int)(number - d->name), d->name, device, number + 2);
}

/* Files by their last part, each once. */
static void add_file(struct calibrate_constant *c, const char *file, struct arena *a)
{
	const char *slash = strrchr(file, '/'), *name = calibrate_plain_text(a, slash ? slash + 1 : file);

	if (!strstr(c->from, name))
		c->from = arena_printf(a, "%s%s%s", c->from, *c->from ? ", " : "", name);
}

/* From its rows, which are of one kind. */
static void set_measured(struct job *job, struct calibrate_constant *c, const struct hw_num_ref *ref)
{
	struct arena_mark mark = arena_mark(job->arena);
	double *log_value = arena_array(job->arena, double, c->n_rows);
	bool best = false;
	size_t n = 0;

	for (size_t i = 0; i < job->rows.n; i++) {
		const struct calibrate_row *row = &job->rows.at[i];
		if (row->unused || row->constant != c->name)
			continue;
		best = find_direct(row->bench->kind)->best;
		log_value[n++] = log(row->bench->value);
	}
	double mean = gsl_stats_mean(log_value, 1, n), deviation = n > 1 ? gsl_stats_sd(log_value, 1, n) : 0;
	c->value = exp(best ? gsl_stats_max(log_value, 1, n) : mean);
	c->spread = best ? SPREAD_MEASURED : fmax(deviation, SPREAD_MEASURED);
	arena_rewind(job->arena, mark);
	if (ref->num->peak > 0 && ref->dim != UNIT_TIME && c->value > ref->num->peak)
		c->why = arena_printf(job->arena, "more than the peak of %s: is it that machine?",
			calibrate_number_text(job->arena, ref->num->peak, c->dim));
}

static void use_direct(struct job *job)
{
	for (size_t i = 0; i < job->rows.n; i++) {
		struct calibrate_row *row = &job->rows.at[i];
		const struct direct *d = find_direct(row->bench->kind);
		if (row->unused || !d)
			continue;
		const char *name = constant_name(d, row->bench->device, job->arena);
		struct calibrate_constant *c = find_constant(job, name);
		if (!c) {
			row->unused = no_constant(job, name);
			continue;
		}
		row->constant = c->name;
		c->state = CALIBRATE_MEASURED;
		c->n_rows++;
		add_file(c, row->file, job->arena);
	}
	for (size_t k = 0; k < job->n_refs; k++)
		if (job->constant[k].state == CALIBRATE_MEASURED)
			set_measured(job, &job->constant[k], &job->ref[k]);
}

/* ---- llama-bench's tests as points of the fit ---- */

/* {from: "BASE", set: {what was measured}} */
static const char *machine_text(const struct job *job)
{
	struct arena *a = job->arena;
	const char *text = arena_printf(a, "{from: %s, set: {", llama_case_quoted(a, llama_case_named(a, job->o->machine)));
	const char *separator = "";

	for (size_t k = 0; k < job->n_refs; k++) {
		const struct calibrate_constant *c = &job->constant[k];
		if (c->state != CALIBRATE_MEASURED)
			continue;
		text = arena_printf(a, "%s%s%s: {measured: %s, spread: %.6g%%, source: measured}", text, separator, c->name,
			calibrate_number_text(a, c->value, c->dim), 100 * c->spread);
		separator = ", ";
	}
	return arena_printf(a, "%s}}", text);
}

/* The scenario of a test, simulated once under the base: can it be? */
static int try_case(struct job *job, const struct llama_case *c, const char *where, struct fit_point *point,
	struct calibrate_row *row, struct err *err)
{
	struct run_options o = {.quick = true, .interrupted = job->o->interrupted};
	struct scenario *s;
	struct result r;
	struct arena scratch;
	struct err fault = {0};

	arena_init(&scratch, job->arena->nomem, job->arena->nomem_ctx);
	int rc = scenario_load_text(c->scenario, where, job->arena, &s, &fault) ||
		run_scenario(s, &o, &scratch, &r, NULL, &fault);
	arena_release(&scratch);
	if (rc && fault.code != ERR_INPUT && fault.code != ERR_USAGE) {
		*err = fault;
		return -1;
	}
	if (rc)
		row->unused = arena_strdup(job->arena, fault.msg);
	else if (!r.fits)
		row->unused = "it does not fit that machine";
	else if (!(r.value[c->field] > 0))
		row->unused = "it gives no rate";
	*point = (struct fit_point){.scenario = s, .field = c->field, .scale = c->scale};
	return 0;
}

/* Tests of the same scenario are one point: what is systematically off counts once. */
static int add_test(struct job *job, struct calibrate_row *row, const char **known, const struct llama_case *c, struct err *err)
{
	struct fit_point point;

	for (size_t p = 0; p < job->points.n; p++)
		if (strcmp(known[p], c->scenario) == 0) {
			row->point = (int)p;
			return 0;
		}
	if (try_case(job, c, arena_printf(job->arena, "%s:%d", row->file, row->bench->line), &point, row, err))
		return -1;
	if (row->unused)
		return 0;
	known[job->points.n] = c->scenario;
	row->point = (int)job->points.n;
	VEC_PUSH(&job->points, job->arena, point);
	return 0;
}

static int add_tests(struct job *job, struct err *err)
{
	const char **known = arena_array(job->arena, const char *, job->rows.n), *machine = machine_text(job);
	struct llama_cards *cards = NULL;

	for (size_t i = 0; i < job->rows.n; i++) {
		struct calibrate_row *row = &job->rows.at[i];
		struct llama_case c;
		if (row->unused || !row->bench->llama)
			continue;
		if (job->o->interrupted && *job->o->interrupted)
			return err_set(err, ERR_INTERRUPTED, "interrupted");
		if (!cards && llama_cards_load(job->o->model, job->o->n_models, job->arena, &cards, err))
			return -1;
		llama_case_make(row->bench->llama, machine, cards, job->arena, &c);
		row->model = c.model;
		if (!c.scenario)
			row->unused = c.reason;
		else if (add_test(job, row, known, &c, err))
			return -1;
	}
	return 0;
}

/* Median and noise of each point's tests. */
static void measure_points(struct job *job)
{
	double *value = arena_array(job->arena, double, job->rows.n);

	for (size_t p = 0; p < job->points.n; p++) {
		size_t n = 0;
		double within = 0;
		for (size_t i = 0; i < job->rows.n; i++) {
			if (job->rows.at[i].point != (int)p)
				continue;
			within = fmax(within, job->rows.at[i].bench->spread);
			value[n++] = log(job->rows.at[i].bench->value);
		}
		gsl_sort(value, 1, n);
		double scatter = fmax(within, n > 1 ? gsl_stats_sd(value, 1, n) : 0);
		job->points.at[p].log_measured = gsl_stats_median_from_sorted_data(value, 1, n);
		job->points.at[p].sigma = sqrt(SPREAD_TEST * SPREAD_TEST + scatter * scatter / (double)n);
	}
}

/* ---- the fit ---- */

static void take_fit(struct job *job, const struct fit *f)
{
	for (size_t k = 0; k < job->n_refs; k++) {
		struct calibrate_constant *c = &job->constant[k];
		const struct fit_constant *x = &f->constant[k];
		if (c->state == CALIBRATE_MEASURED || x->n_points == 0)
			continue;
		c->n_rows = x->n_points;
		if (x->fitted) {
			c->state = CALIBRATE_FITTED;
			c->value = c->before * exp(x->x);
			c->spread = x->sd;
			for (size_t i = 0; i < job->rows.n; i++)
				if (job->rows.at[i].point >= 0)
					add_file(c, job->rows.at[i].file, job->arena);
		} else if (x->like >= 0) {
			c->why = arena_printf(job->arena, "cannot be told apart from %s (correlation %.2f)",
				job->constant[x->like].name, x->correlation);
		} else {
			c->why = "the tests make it no better known than it was";
		}
	}
}

static double median_error(const struct fit *f, const double *predicted)
{
	struct arena_mark mark = arena_mark(f->arena);
	double *error = arena_array(f->arena, double, f->n_points);

	for (size_t p = 0; p < f->n_points; p++)
		error[p] = fabs(predicted[p] - f->point[p].log_measured);
	gsl_sort(error, 1, f->n_points);
	double median = gsl_stats_median_from_sorted_data(error, 1, f->n_points);
	arena_rewind(f->arena, mark);
	return median;
}

static int fit(struct job *job, struct calibrate *out, struct err *err)
{
	struct fit f = {.point = job->points.at, .n_points = job->points.n, .n_constants = job->n_refs,
		.workers = job->o->workers, .report = job->o->report, .report_ctx = job->o->report_ctx, .interrupted = job->o->interrupted, .arena = job->arena};
	double *before = arena_array(job->arena, double, f.n_points), *after = arena_array(job->arena, double, f.n_points);

	f.constant = arena_array(job->arena, struct fit_constant, f.n_constants);
	for (size_t k = 0; k < f.n_constants; k++)
		f.constant[k].spread = job->constant[k].state == CALIBRATE_MEASURED ? 0 : job->constant[k].before_spread;
	measure_points(job);
	if (fit_predict(&f, before, err) || fit_solve(&f, err) || fit_predict(&f, after, err))
		return -1;
	take_fit(job, &f);
	for (size_t i = 0; i < job->rows.n; i++) {
		struct calibrate_row *row = &job->rows.at[i];
		if (row->point < 0)
			continue;
		row->before = exp(before[row->point]);
		row->after = exp(after[row->point]);
	}
	out->n_tests = f.n_points;
	out->noise_before = median_error(&f, before);
	out->noise_after = median_error(&f, after);
	return 0;
}

/* Those that measurements are of or depend on, in their order. */
static void keep_constants(struct job *job, struct calibrate *out)
{
	out->constant = job->constant;
	for (size_t k = 0; k < job->n_refs; k++)
		if (job->constant[k].n_rows)
			out->constant[out->n_constants++] = job->constant[k];
}

int calibrate_run(const struct calibrate_options *o, struct arena *a, struct calibrate *out, struct err *err)
{
	struct job job = {.o = o, .arena = a};

	*out = (struct calibrate){.machine = o->machine, .noise_before = NAN, .noise_after = NAN};
	if (read_files(&job, err))
		return -1;
	if (o->machine) {
		if (load_base(&job, err))
			return -1;
		use_direct(&job);
		if (add_tests(&job, err) || (job.points.n && fit(&job, out, err)))
			return -1;
		keep_constants(&job, out);
	}
	out->row = job.rows.at;
	out->n_rows = job.rows.n;
	return 0;
}
