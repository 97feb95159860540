/*
 * Are the published rates of CPU kernels (tests/data/cpu_kernels.csv) what the cost model gives from facts of the CPU,
 * when the rows of a type, or of a whole CPU, had no part in its constants?
 *
 *	rows ──> multiply-adds a cycle and thread, DRAM taken out ──> a law, fitted on all rows but those left out:
 *
 *	ln rate = ln width(isa) + [kernels, class] + [isa] + [isa, class] + [isa, kernels] + slope[class] ln(bits)
 *
 *	law ──> a row of a table ──> cost_cpu_multiply() on that CPU ──> tok/s against what was published
 *
 * Clock, cores, instruction set and the bandwidth of one thread are those of hw/parts. The DRAM rate of a host is what
 * its 16-bit decode rows reach (which are not scored), or that of its modules. The width of an instruction set is known
 * beforehand: without VNNI three instructions do the work of one, and i8mm does twice the work in prefill, half of
 * which is dequantisation. Terms are held towards zero (ridge), so that an instruction set nobody else has is
 * predicted by its width.
 */
#include <stdlib.h>

#include <gsl/gsl_multifit.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics.h>

#include "base/csv.h"
#include "base/number.h"
#include "base/yaml.h"
#include "sim/exec/cost_cpu.h"
#include "tests/test.h"

#define MAX_ROWS 1200
#define MANY_ROWS 16 /* rows of fewer are neither decode nor prefill: they test the way from one to the other */
/* The part of time^overlap that dot has to make up for a row to say something about it. */
#define TELLS 0.15

/* What engines and their builds had at the time, as the column `kernels` says. */
enum path { MAINLINE, REPACKED, IK, IK_JANUARY, INTERLEAVED, IK_JUNE, PATH_N };
static const char *const path_names[PATH_N] = {
	"mainline", "mainline-repacked", "ik", "ik-2025-01", "ik-interleaved", "ik-2025-06"};

enum isa { AVX2, AVX512, NEON, ISA_N };
static const struct host {
	const char *name;
	enum isa isa;
	const char *cpu, *ram; /* "": from its 16-bit rows */
} hosts[] = {
	{"ryzen-9-7950x", AVX512, "ryzen-9-7950x", ""},
	{"threadripper-pro-5975wx", AVX2, "threadripper-pro-5975wx", ""},
	{"apple-m2-max", NEON, "apple-m2-max", ""},
	{"apple-m4-max", NEON, "apple-m4-max", "bandwidth: 546GB/s"},
	{"xeon-e5-2683v4", AVX2, "xeon-e5-2683v4", "part: ddr4, rate: 2400MT/s, channels: 4"},
	{"threadripper-pro-5995wx", AVX2, "{part: threadripper-pro-5975wx, cores: 64, clock: {peak: 4.5GHz, efficiency: 80%}}",
		"part: ddr4, rate: 3200MT/s, channels: 8"},
};
#define HOST_N ((int)ARRAY_LEN(hosts))

/* One row, many rows. */
static const double width[2][ISA_N] = {{2 / 3.0, 1, 1}, {0.5, 1, 1.5}};
/* How strongly the terms of each kind are held towards zero. */
static const double hold[] = {0.1, 10, 3, 3, 1, 1e-9};

struct row {
	int host, path;
	const struct quant_type *type;
	double multiply_adds, bytes; /* of one step */
	double rows, tok_s;
	double memory_s;
	double rate;                 /* multiply-adds a cycle of one thread; 0: the row does not tell */
	struct cost_team team;
};

static struct arena arena;
static struct cost *cost;
static struct row rows[MAX_ROWS];
static int n_rows;

static int find(const char *const *names, int n, struct csv_field f)
{
	for (int i = 0; i < n; i++)
		if (strlen(names[i]) == f.len && memcmp(names[i], f.text, f.len) == 0)
			return i;
	ck_abort_msg("line %d: '%.*s'", f.line, (int)f.len, f.text);
}

static double number(struct csv_field f)
{
	double v;

	if (!number_parse(f.text, f.len, &v))
		ck_abort_msg("line %d: '%.*s' is no number", f.line, (int)f.len, f.text);
	return v;
}

static void read_rows(int *threads)
{
	enum { CPU, THREADS, KERNELS, TYPE, PARAMS, BYTES, ROWS, TOK_S, N };
	static const char *const columns[N] = {"cpu", "threads", "kernels", "type", "params_g", "bytes_g", "rows", "tok_s"};
	const char *host_names[HOST_N];
	struct csv_field f[N];
	struct csv csv;
	struct err err = {0};
	int rc;

	for (int i = 0; i < HOST_N; i++)
		host_names[i] = hosts[i].name;
	assert_ok(csv_open(&csv, "tests/data/cpu_kernels.csv", columns, N, &arena, &err), err);
	while ((rc = csv_next(&csv, f, &err)) == 1) {
		struct row *r = &rows[n_rows];
		ck_assert_int_lt(n_rows, MAX_ROWS);
		*r = (struct row){
			.host = find(host_names, HOST_N, f[CPU]),
			.path = find(path_names, PATH_N, f[KERNELS]),
			.rows = number(f[ROWS]),
			.bytes = number(f[BYTES]) * 1e9,
			.tok_s = number(f[TOK_S]),
		};
		threads[n_rows++] = (int)number(f[THREADS]);
		r->multiply_adds = number(f[PARAMS]) * 1e9 * r->rows;
		assert_ok(quant_get(arena_strndup(&arena, f[TYPE].text, f[TYPE].len), &r->type, &err), err);
	}
	assert_ok(rc, err);
}

static bool probes(const struct row *r, int threads)
{
	return r->rows == 1 && threads > 1 && cost_class_of(r->type) == COST_16BIT;
}

static struct hw_machine *load_host(const struct host *h, const char *ram)
{
	const char *text = arena_printf(&arena, "{cpu0: %s, ram: {capacity: 256GiB, %s}}", h->cpu, ram);
	struct hw_machine *m;
	struct yaml_node *node;
	struct err err = {0};

	assert_ok(yaml_read_text(text, strlen(text), h->name, &arena, &node, &err), err);
	assert_ok(hw_machine_load_node(node, &arena, &m, &err), err);
	return m;
}

/* The most that the host's 16-bit rows reach. */
static const char *probed_ram(int host, const int *threads)
{
	double most = 0;

	for (int i = 0; i < n_rows; i++)
		if (rows[i].host == host && probes(&rows[i], threads[i]))
			most = fmax(most, rows[i].bytes * rows[i].tok_s);
	ck_assert_double_gt(most, 0);
	return arena_printf(&arena, "bandwidth: %.6gGB/s", most / hw_num_value(&cost->cpu.read) / 1e9);
}

/* The rate that makes up for what memory does not explain. */
static double rate_of(const struct row *r)
{
	double p = hw_num_value(&cost->cpu.overlap), step_s = r->rows / r->tok_s;
	double rest = pow(step_s, p) - pow(r->memory_s, p);

	if (rest < TELLS * pow(step_s, p))
		return 0;
	return r->multiply_adds / pow(rest, 1 / p) / r->team.workers / r->team.clock_hz;
}

static void set_up(void)
{
	static int threads[MAX_ROWS];
	struct hw_machine *m[HOST_N];
	struct err err = {0};

	if (n_rows)
		return;
	arena_init(&arena, NULL, NULL);
	assert_ok(cost_load("llama.cpp", load_host(&hosts[0], "bandwidth: 60GB/s"), &arena, &cost, &err), err);
	read_rows(threads);
	for (int h = 0; h < HOST_N; h++)
		m[h] = load_host(&hosts[h], *hosts[h].ram ? hosts[h].ram : probed_ram(h, threads));
	for (int i = 0; i < n_rows; i++) {
		struct row *r = &rows[i];
		const struct hw_machine *host = m[r->host];
		r->team = cost_cpu_team(&cost->cpu, host, &host->devices[0], (unsigned)threads[i], COST_UNBOUND);
		r->memory_s = cost_cpu_multiply(&cost->cpu, &r->team, r->type, r->bytes, 0, COST_TOGETHER).memory_s;
		r->rate = rate_of(r);
		if (probes(r, threads[i]))
			r->rate = -1;
	}
}

/* ---- the law ---- */

enum { TERM_PATH, TERM_ISA, TERM_ISA_CLASS, TERM_ISA_PATH, TERM_SLOPE, TERM_ALL, TERM_N };
static const int first_term[TERM_N + 1] = {0, PATH_N * COST_CLASS_N, PATH_N * COST_CLASS_N + ISA_N,
	PATH_N * COST_CLASS_N + ISA_N + ISA_N * COST_CLASS_N, PATH_N * COST_CLASS_N + ISA_N + ISA_N * (COST_CLASS_N + PATH_N),
	PATH_N * COST_CLASS_N + ISA_N + ISA_N * (COST_CLASS_N + PATH_N) + COST_CLASS_N,
	PATH_N * COST_CLASS_N + ISA_N + ISA_N * (COST_CLASS_N + PATH_N) + COST_CLASS_N + 1};
#define N_TERMS (PATH_N * COST_CLASS_N + ISA_N + ISA_N * (COST_CLASS_N + PATH_N) + COST_CLASS_N + 1)

static void terms_of(const struct row *r, int at[TERM_N], double value[TERM_N])
{
	int class = (int)cost_class_of(r->type), isa = (int)hosts[r->host].isa;

	at[TERM_PATH] = r->path * COST_CLASS_N + class;
	at[TERM_ISA] = isa;
	at[TERM_ISA_CLASS] = isa * COST_CLASS_N + class;
	at[TERM_ISA_PATH] = isa * PATH_N + r->path;
	at[TERM_SLOPE] = class;
	at[TERM_ALL] = 0;
	for (int k = 0; k < TERM_N; k++) {
		at[k] += first_term[k];
		value[k] = 1;
	}
	value[TERM_SLOPE] = log(quant_bits_per_weight(r->type) / 4);
}

static double width_of(const struct row *r, bool prefill)
{
	double w = width[prefill][hosts[r->host].isa];

	return cost_class_of(r->type) == COST_TABLE ? sqrt(w) : w;
}

static bool many(const struct row *r)
{
	return r->rows >= MANY_ROWS;
}

/* Which rows a fit may not see: those of this type, or of this CPU. */
struct left_out {
	const struct quant_type *type;
	int host;
};

static bool is_out(const struct row *r, const struct left_out *out)
{
	return r->type == out->type || r->host == out->host;
}

static void fit(bool prefill, const struct left_out *out, gsl_vector *law)
{
	gsl_matrix *x = gsl_matrix_calloc((size_t)n_rows + N_TERMS, N_TERMS), *cov = gsl_matrix_alloc(N_TERMS, N_TERMS);
	gsl_vector *y = gsl_vector_calloc((size_t)n_rows + N_TERMS);
	gsl_multifit_linear_workspace *w = gsl_multifit_linear_alloc((size_t)n_rows + N_TERMS, N_TERMS);
	double chisq;

	for (int i = 0; i < n_rows; i++) {
		const struct row *r = &rows[i];
		int at[TERM_N];
		double value[TERM_N];

		if (r->rate <= 0 || many(r) != prefill || (r->rows > 1) != prefill || is_out(r, out))
			continue;
		terms_of(r, at, value);
		for (int k = 0; k < TERM_N; k++)
			gsl_matrix_set(x, (size_t)i, (size_t)at[k], value[k]);
		gsl_vector_set(y, (size_t)i, log(r->rate / width_of(r, prefill)));
	}
	for (int k = 0; k < TERM_N; k++)
		for (int t = first_term[k]; t < first_term[k + 1]; t++)
			gsl_matrix_set(x, (size_t)(n_rows + t), (size_t)t, sqrt(hold[k]));
	ck_assert_int_eq(gsl_multifit_linear(x, y, law, cov, &chisq, w), 0);
	gsl_multifit_linear_free(w);
	gsl_matrix_free(x);
	gsl_matrix_free(cov);
	gsl_vector_free(y);
}

static double law_rate(const gsl_vector *law, const struct row *r, bool prefill)
{
	int at[TERM_N];
	double value[TERM_N], sum = log(width_of(r, prefill));

	terms_of(r, at, value);
	for (int k = 0; k < TERM_N; k++)
		sum += gsl_vector_get(law, (size_t)at[k]) * value[k];
	return exp(sum);
}

/* tok/s by the cost model with the law's rates for this one type. */
static double predict(const struct row *r, const gsl_vector *const law[2])
{
	struct cost_cpu c = cost->cpu;
	struct cost_rate rate = {
		.name = r->type->name,
		.type = r->type,
		.one = {.measured = law_rate(law[0], r, false)},
		.many = {.measured = law_rate(law[1], r, true)},
		.early = 1,
	};

	c.weights = &rate;
	c.n_weights = 1;
	return r->rows / cost_cpu_seconds(&c, cost_cpu_multiply(&c, &r->team, r->type, r->bytes, r->multiply_adds,
		COST_TOGETHER));
}

/* ---- errors ---- */

struct errors {
	double at[MAX_ROWS];
	size_t n;
};

static void add_error(struct errors *e, double error)
{
	e->at[e->n++] = error;
}

static double median(struct errors *e)
{
	if (e->n == 0)
		return NAN;
	gsl_sort(e->at, 1, e->n);
	return gsl_stats_median_from_sorted_data(e->at, 1, e->n);
}

enum kind { DECODE, PREFILL, BETWEEN, KIND_N };
static const char *const kind_names[KIND_N] = {"decode", "prefill", "2 to 16 rows"};

static enum kind kind_of(const struct row *r)
{
	return r->rows == 1 ? DECODE : r->rows > MANY_ROWS ? PREFILL : BETWEEN;
}

struct table {
	struct errors all[KIND_N], by_class[KIND_N][COST_CLASS_N], by_host[KIND_N][ARRAY_LEN(hosts)];
};

static void print_line(const char *what, struct errors *e, size_t stride)
{
	printf("  %-26s", what);
	for (int k = 0; k < KIND_N; k++)
		if (e[k * stride].n)
			printf("  %5.1f %% of %-4zu", 100 * median(&e[k * stride]), e[k * stride].n);
		else
			printf("  %14s", "-   ");
	putchar('\n');
}

static void print_table(const char *title, struct table *t)
{
	printf("%-28s  %-14s  %-14s  %-14s\n", title, kind_names[0], kind_names[1], kind_names[2]);
	for (int k = 0; k < COST_CLASS_N; k++)
		print_line(cost_class_name((enum cost_class)k), &t->by_class[0][k], COST_CLASS_N);
	for (int h = 0; h < HOST_N; h++)
		print_line(hosts[h].name, &t->by_host[0][h], ARRAY_LEN(hosts));
	print_line("all", t->all, 1);
	fflush(stdout); /* a failure would take it along */
}

/* Rows that this fit did not see, predicted by it. */
static void score(const struct left_out *out, struct table *t)
{
	gsl_vector *law[2] = {gsl_vector_alloc(N_TERMS), gsl_vector_alloc(N_TERMS)};

	for (int k = 0; k < 2; k++)
		fit(k == 1, out, law[k]);
	for (int i = 0; i < n_rows; i++) {
		const struct row *r = &rows[i];
		if (r->rate < 0 || !is_out(r, out))
			continue;
		double error = fabs(predict(r, (const gsl_vector *const *)law) / r->tok_s - 1);
		enum kind kind = kind_of(r);
		add_error(&t->all[kind], error);
		add_error(&t->by_class[kind][cost_class_of(r->type)], error);
		add_error(&t->by_host[kind][r->host], error);
	}
	gsl_vector_free(law[0]);
	gsl_vector_free(law[1]);
}

/* How fast rates fall with the bits of a weight: what `cpu.bits` of hw/kernels/llama.cpp.yaml holds for one row. */
static void print_slopes(void)
{
	gsl_vector *law = gsl_vector_alloc(N_TERMS);

	fit(false, &(struct left_out){NULL, -1}, law);
	for (int k = 0; k < COST_CLASS_N; k++)
		printf("  %-26s  bits^%.2f\n", cost_class_name((enum cost_class)k),
			gsl_vector_get(law, (size_t)(first_term[TERM_SLOPE] + k)));
	gsl_vector_free(law);
}

static void check(struct table *t)
{
	ck_assert_uint_gt(t->all[DECODE].n, 450);
	ck_assert_uint_gt(t->all[PREFILL].n, 400);
	ck_assert_double_le(median(&t->all[DECODE]), 0.15);
	ck_assert_double_le(median(&t->all[PREFILL]), 0.25);
}

START_TEST(types_left_out)
{
	static struct table t;
	const struct quant_type *type;

	set_up();
	for (size_t i = 0; (type = quant_at(i)); i++)
		score(&(struct left_out){type, -1}, &t);
	print_table("types left out", &t);
	print_slopes();
	check(&t);
}
END_TEST

START_TEST(cpus_left_out)
{
	static struct table t;

	set_up();
	for (int h = 0; h < HOST_N; h++)
		score(&(struct left_out){NULL, h}, &t);
	print_table("CPUs left out", &t);
	check(&t);
}
END_TEST

TEST_MAIN("cpu-kernels", types_left_out, cpus_left_out)
