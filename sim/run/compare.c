#include "sim/run/compare.h"

#include <inttypes.h>
#include <math.h>

#include <gsl/gsl_statistics_double.h>
#include <jansson.h>

#include "base/intern.h"
#include "base/stats.h"
#include "base/units.h"
#include "sim/real/cpu_buffers.h"
#include "sim/run/cuda_exec.h"
#include "sim/store/store.h"

/* Beyond all caches. */
#define PROBE_BYTES ((uint64_t)256 << 20)

/* ---- kinds of operations ---- */

static bool counts(const struct opg *g, const struct opg_op *o)
{
	return (uint64_t)o->step >= g->steps.first && (uint64_t)o->step < g->steps.end;
}

static const char *memory_of(const struct opg *g, int buffer)
{
	return g->memories.at[g->buffers.at[buffer].memory].name;
}

/* Joins take no time and have no row. */
static bool has_row(const struct opg *g, const struct opg_op *o)
{
	return counts(g, o) && o->kind != OPG_JOIN && o->kind != OPG_STEP;
}

static void operation_name(const struct opg *g, const struct opg_op *o, char *buf, size_t size)
{
	const char *what = o->of == OPG_WEIGHTS ? o->group : opg_role_names[o->of];

	if (o->kind == OPG_COPY)
		snprintf(buf, size, "copy %s %s>%s", what, memory_of(g, o->from), memory_of(g, o->to));
	else if (o->kind == OPG_KERNEL)
		snprintf(buf, size, "kernel %s %s", what, g->devices.at[o->device].name);
	else
		snprintf(buf, size, "%s", opg_kind_names[o->kind]);
}

/* Row 0 is "step". */
static void make_rows(struct compare *r, struct arena *a)
{
	struct intern names;
	char name[256];

	r->row_of = arena_array(a, uint32_t, r->g->ops.n);
	intern_init(&names, a);
	intern_add(&names, "step", 4);
	for (size_t i = 0; i < r->g->ops.n; i++) {
		if (!has_row(r->g, &r->g->ops.at[i]))
			continue;
		operation_name(r->g, &r->g->ops.at[i], name, sizeof(name));
		r->row_of[i] = intern_add(&names, name, strlen(name));
	}
	r->n_rows = names.n;
	r->row = arena_array(a, struct compare_row, names.n);
	for (size_t i = 0; i < names.n; i++)
		r->row[i] = (struct compare_row){.operation = names.name[i], .measured_s = NAN};
	for (size_t i = 0; i < r->g->ops.n; i++)
		r->row[r->row_of[i]].n++;
	r->row[0].n = r->g->steps.end - r->g->steps.first;
}

/* Seconds a step by row, of one executor's times. */
static void sum_rows(const struct compare *r, const double *start_s, const double *end_s, double *out)
{
	const struct opg *g = r->g;
	double n = (double)(g->steps.end - g->steps.first);
	double begin_s = g->steps.first ? end_s[g->step_end.at[g->steps.first - 1]] : 0;

	memset(out, 0, r->n_rows * sizeof(*out));
	for (size_t i = 0; i < g->ops.n; i++)
		out[r->row_of[i]] += (end_s[i] - start_s[i]) / n;
	out[0] = (end_s[g->step_end.at[g->steps.end - 1]] - begin_s) / n;
}

/* Tokens of a step, on average. */
static double step_tokens(const struct opg *g)
{
	double tokens = 0;

	for (uint64_t s = g->steps.first; s < g->steps.end; s++)
		tokens += g->ops.at[g->step_end.at[s]].tokens;
	return tokens / (double)(g->steps.end - g->steps.first);
}

int compare_simulate(const struct opg *g, const volatile sig_atomic_t *interrupted, struct arena *a, struct compare *r,
	struct err *err)
{
	double *start_s = arena_array(a, double, g->ops.n), *end_s = arena_array(a, double, g->ops.n);

	*r = (struct compare){.g = g, .measured_tok_s = NAN, .ratio = NAN, .fastest_tok_s = NAN, .noise = NAN};
	if (opg_simulate(g, interrupted, a, &r->simulated, err))
		return -1;
	for (size_t i = 0; i < g->ops.n; i++) {
		start_s[i] = sim_seconds(r->simulated.start[i]);
		end_s[i] = sim_seconds(r->simulated.end[i]);
	}
	make_rows(r, a);
	double *sum = arena_array(a, double, r->n_rows);
	sum_rows(r, start_s, end_s, sum);
	for (size_t i = 0; i < r->n_rows; i++)
		r->row[i].simulated_s = sum[i];
	r->simulated_tok_s = step_tokens(g) / sum[0];
	return 0;
}

/* ---- for real ---- */

static int probe(struct cpu_probe *p, struct err *err)
{
	void *scratch = cpu_map(PROBE_BYTES);

	if (!scratch)
		return err_set(err, ERR_NOMEM, "out of memory");
	*p = cpu_probe_run(scratch, PROBE_BYTES);
	cpu_unmap(scratch, PROBE_BYTES);
	return 0;
}

static double difference(double a, double b)
{
	return fabs(a - b) / fmin(a, b);
}

/* What runs between: its executor, and where its next times go. */
struct between {
	const struct compare *c; /* NULL: none */
	struct cpu_exec *e;
	double *s;
};

static int open_between(struct between *b, struct compare *r, const struct cpu_exec_options *o, struct arena *a, struct err *err)
{
	*b = (struct between){.c = r->between};
	if (!b->c)
		return 0;
	b->s = r->between_s = arena_array(a, double, (r->repetitions + 1) * b->c->n_rows);
	return cpu_exec_open(b->c->g, o, a, &b->e, err);
}

static int run_between(struct between *b, struct err *err)
{
	struct cpu_exec_result result;

	if (!b->c)
		return 0;
	if (cpu_exec_run(b->e, &result, err))
		return -1;
	sum_rows(b->c, result.start_s, result.end_s, b->s);
	b->s += b->c->n_rows;
	return 0;
}

static int run_all(struct compare *r, struct cpu_exec *e, struct between *b, double *sum, struct err *err)
{
	if (probe(&r->before, err) || run_between(b, err))
		return -1;
	for (uint64_t i = 0; i < r->repetitions; i++) {
		if (cpu_exec_run(e, &r->last, err))
			return -1;
		sum_rows(r, r->last.start_s, r->last.end_s, sum + i * r->n_rows);
		if (run_between(b, err))
			return -1;
	}
	return probe(&r->after, err);
}

static int run_cpu(struct compare *r, const struct cpu_exec_options *o, double *sum, struct arena *a, struct err *err)
{
	struct between between;
	struct cpu_exec *e;

	if (cpu_exec_open(r->g, o, a, &e, err))
		return -1;
	int rc = open_between(&between, r, o, a, err);
	if (rc == 0)
		rc = run_all(r, e, &between, sum, err);
	if (between.e)
		cpu_exec_close(between.e);
	cpu_exec_close(e);
	return rc;
}

static int run_cuda(struct compare *r, const struct cpu_exec_options *o, double *sum, struct arena *a, struct err *err)
{
	struct cpu_exec_result *run = arena_array(a, struct cpu_exec_result, r->repetitions);

	if (probe(&r->before, err) || cuda_exec_run(r->g, r->repetitions, o, a, run, err) || probe(&r->after, err))
		return -1;
	for (uint64_t i = 0; i < r->repetitions; i++)
		sum_rows(r, run[i].start_s, run[i].end_s, sum + i * r->n_rows);
	r->last = run[r->repetitions - 1];
	return 0;
}

int compare_measure(struct compare *r, const struct compare_how *how, struct arena *a, struct err *err)
{
	uint64_t n = how->repetitions;
	double *sum = arena_array(a, double, n * r->n_rows), *of_row = arena_array(a, double, n);

	r->repetitions = n;
	r->between = how->between;
	if (how->cuda ? run_cuda(r, &how->exec, sum, a, err) : run_cpu(r, &how->exec, sum, a, err))
		return -1;
	r->step_s = arena_array(a, double, n);
	for (uint64_t i = 0; i < n; i++)
		r->step_s[i] = sum[i * r->n_rows];
	r->fastest_tok_s = step_tokens(r->g) / gsl_stats_min(r->step_s, 1, n);
	if (n > 1)
		r->noise = gsl_stats_sd(r->step_s, 1, n) / gsl_stats_mean(r->step_s, 1, n);
	for (size_t k = 0; k < r->n_rows; k++) {
		for (uint64_t i = 0; i < n; i++)
			of_row[i] = sum[i * r->n_rows + k];
		r->row[k].measured_s = stats_median(of_row, n, a);
	}
	r->measured = true;
	r->measured_tok_s = step_tokens(r->g) / r->row[0].measured_s;
	r->ratio = r->measured_tok_s / r->simulated_tok_s;
	r->changed = fmax(difference(r->before.copy_bytes_s, r->after.copy_bytes_s),
		difference(r->before.flops_s, r->after.flops_s));
	return 0;
}

/* ---- telling ---- */

static void print_probe(const char *when, const struct cpu_probe *p, FILE *to)
{
	char copy[32], flops[32];

	fprintf(to, "probe %s: one thread copies %s, computes %s\n", when,
		units_format(copy, sizeof(copy), p->copy_bytes_s, UNIT_BYTES_RATE),
		units_format(flops, sizeof(flops), p->flops_s, UNIT_FLOP_RATE));
}

void compare_print(const struct compare *r, FILE *to)
{
	char a[32], b[32];

	fprintf(to, "  %-32s %8s %12s %12s %7s\n", "operation", "a step", "measured", "simulated", "ratio");
	for (size_t i = 0; i < r->n_rows; i++) {
		const struct compare_row *row = &r->row[i];
		fprintf(to, "  %-32s %8.4g %12s %12s", row->operation, (double)row->n / (double)r->row[0].n,
			r->measured ? units_format(a, sizeof(a), row->measured_s, UNIT_TIME) : "",
			units_format(b, sizeof(b), row->simulated_s, UNIT_TIME));
		if (r->measured && row->simulated_s > 0)
			fprintf(to, " %7.3f", row->measured_s / row->simulated_s);
		fputc('\n', to);
	}
	fprintf(to, "\nsimulated %s", units_format(a, sizeof(a), r->simulated_tok_s, UNIT_TOKEN_RATE));
	if (!r->measured) {
		fprintf(to, "; --on cpu measures\n");
		return;
	}
	fprintf(to, ", measured %s: ratio %.3f", units_format(b, sizeof(b), r->measured_tok_s, UNIT_TOKEN_RATE), r->ratio);
	if (r->repetitions > 1)
		fprintf(to, "; noise of %" PRIu64 " repetitions %.1f %%, the fastest %s", r->repetitions, 100 * r->noise,
			units_format(a, sizeof(a), r->fastest_tok_s, UNIT_TOKEN_RATE));
	fputc('\n', to);
	print_probe("before", &r->before, to);
	print_probe("after ", &r->after, to);
	if (r->changed > COMPARE_QUIET)
		fprintf(to, "note: the two differ by %.0f %%: others use this machine, and the ratio says little\n", 100 * r->changed);
}

static json_t *real_or_null(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

static json_t *probe_json(const struct cpu_probe *p)
{
	return json_pack("{s:f, s:f}", "copy_bytes_s", p->copy_bytes_s, "flops_s", p->flops_s);
}

void compare_print_json(const struct compare *r, FILE *to)
{
	json_t *root = json_object(), *rows = json_array();

	for (size_t i = 0; i < r->n_rows; i++)
		json_array_append_new(rows,
			json_pack("{s:s, s:I, s:o, s:f}", "operation", r->row[i].operation, "n", (json_int_t)r->row[i].n,
				"measured_s", real_or_null(r->row[i].measured_s), "simulated_s", r->row[i].simulated_s));
	json_object_set_new(root, "rows", rows);
	json_object_set_new(root, "measured_tok_s", real_or_null(r->measured_tok_s));
	json_object_set_new(root, "simulated_tok_s", real_or_null(r->simulated_tok_s));
	json_object_set_new(root, "ratio", real_or_null(r->ratio));
	json_object_set_new(root, "fastest_tok_s", real_or_null(r->fastest_tok_s));
	json_object_set_new(root, "noise", real_or_null(r->noise));
	json_object_set_new(root, "steps", json_integer((json_int_t)r->row[0].n));
	json_object_set_new(root, "repetitions", json_integer((json_int_t)r->repetitions));
	json_object_set_new(root, "probe_before", r->measured ? probe_json(&r->before) : json_null());
	json_object_set_new(root, "probe_after", r->measured ? probe_json(&r->after) : json_null());
	json_object_set_new(root, "probe_changed", r->measured ? json_real(r->changed) : json_null());
	json_dumpf(root, to, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
	fputc('\n', to);
	json_decref(root);
}

void compare_print_operations(const struct compare *r, struct arena *a, FILE *to)
{
	const struct opg *g = r->g;
	uint32_t *place = arena_array(a, uint32_t, g->ops.n);

	for (uint32_t i = 0; i < g->ops.n; i++)
		place[r->last.order[i]] = i;
	fprintf(to, "operation,kind,step,unit,layer,group,of,bytes,moved_bytes,simulated_start_s,simulated_end_s,"
		    "measured_start_s,measured_end_s,measured_order\n");
	for (size_t i = 0; i < g->ops.n; i++) {
		const struct opg_op *o = &g->ops.at[i];
		fprintf(to, "%zu,%s,%d,%s,%d,%s,%s,%.0f,%" PRIu64 ",%.12f,%.12f,%.9f,%.9f,%" PRIu32 "\n", i,
			opg_kind_names[o->kind], o->step, o->unit == OPG_NONE ? "" : g->units.at[o->unit].name, o->layer,
			o->group, opg_role_names[o->of], o->bytes, r->last.moved_bytes[i],
			sim_seconds(r->simulated.start[i]), sim_seconds(r->simulated.end[i]), r->last.start_s[i],
			r->last.end_s[i], place[i]);
	}
}

void compare_print_repetitions(const struct compare *r, FILE *to)
{
	size_t n = r->between ? r->between->n_rows : 0;

	fprintf(to, "repetition,step_s");
	for (size_t k = 1; k < n; k++)
		fprintf(to, ",%s before_s,%s behind_s", r->between->row[k].operation, r->between->row[k].operation);
	for (uint64_t i = 0; i < r->repetitions; i++) {
		fprintf(to, "\n%" PRIu64 ",%.9f", i, r->step_s[i]);
		for (size_t k = 1; k < n; k++)
			fprintf(to, ",%.9f,%.9f", r->between_s[i * n + k], r->between_s[(i + 1) * n + k]);
	}
	fputc('\n', to);
}

/* ---- results.db ---- */

static struct store_value text(const char *column, const char *value)
{
	return (struct store_value){.column = column, .type = STORE_TEXT, .text = value};
}

static struct store_value real(const char *column, double value)
{
	return (struct store_value){.column = column, .type = STORE_REAL, .real = value};
}

static struct store_value count(const char *column, uint64_t value)
{
	return (struct store_value){.column = column, .type = STORE_COUNT, .count = value};
}

static struct store_row row_of_values(const struct store_value *value, size_t n, struct arena *a)
{
	struct store_value *copy = arena_array(a, struct store_value, n);

	memcpy(copy, value, n * sizeof(*value));
	return (struct store_row){copy, n};
}

static struct store_row head_row(const struct compare *r, const char *executor, struct arena *a)
{
	const struct store_value value[] = {
		text("executor", executor),
		text("model", opg_about(r->g, "model")),
		text("quant", opg_about(r->g, "quant")),
		text("machine", opg_about(r->g, "machine")),
		text("engine", opg_about(r->g, "engine")),
		text("version", OFFSIM_VERSION),
		count("steps", r->row[0].n),
		count("repetitions", r->repetitions),
		real("measured_tok_s", r->measured_tok_s),
		real("simulated_tok_s", r->simulated_tok_s),
		real("ratio", r->ratio),
		real("fastest_tok_s", r->fastest_tok_s),
		real("noise", r->noise),
		real("before_copy_bytes_s", r->before.copy_bytes_s),
		real("before_flops_s", r->before.flops_s),
		real("after_copy_bytes_s", r->after.copy_bytes_s),
		real("after_flops_s", r->after.flops_s),
	};

	return row_of_values(value, ARRAY_LEN(value), a);
}

static struct store_row operation_row(const struct compare *r, const char *executor, size_t i, struct arena *a)
{
	const struct store_value value[] = {
		text("executor", executor),
		count("position", i),
		text("operation", r->row[i].operation),
		count("n", r->row[i].n),
		real("measured_s", r->row[i].measured_s),
		real("simulated_s", r->row[i].simulated_s),
	};

	return row_of_values(value, ARRAY_LEN(value), a);
}

int compare_store(const struct compare *r, const char *executor, const char *db, struct arena *a, struct err *err)
{
	struct store_row *operation = arena_array(a, struct store_row, r->n_rows);
	struct store_replay rows = {
		.key = opg_about(r->g, "key"),
		.executor = executor,
		.replay = head_row(r, executor, a),
		.operation = operation,
		.n_operations = r->n_rows,
	};
	struct store *s;

	if (!rows.key || strlen(rows.key) != 16)
		return err_set(err, ERR_INPUT, "the graph has no 'about key' to store it under; --no-db does without");
	for (size_t i = 0; i < r->n_rows; i++)
		operation[i] = operation_row(r, executor, i, a);
	if (store_open(db, &s, err))
		return -1;
	if (store_put_replay(s, &rows, err)) {
		store_close(s, NULL);
		return -1;
	}
	return store_close(s, err);
}
