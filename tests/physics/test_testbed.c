/*
 * What does a profile of a machine say of llama.cpp on it, when three of its llama-bench rows were fitted and the rest
 * were not seen? (tests/data/testbed.csv: real runs on two shared, noisy cores; testbed-machine.yaml: that machine.)
 *
 *	one thread, one row of q4_0    ──> cpu0.kernels.q4_0.decode
 *	one thread, a prompt of q8_0   ──> cpu0.kernels.q8_0.prefill       each root found with all else fixed
 *	two threads, one row of q4_0   ──> cpu0.launch
 *
 * Other types, models, threads and the mixture of experts follow from the tables of hw/kernels/llama.cpp.yaml, moved by
 * what the three rows say. Rows during which another process had more than a third of a core are left out: they
 * measure that process. Noise is the difference between rows that were measured more than once.
 */
#include <stdlib.h>

#include <gsl/gsl_roots.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics.h>

#include "base/csv.h"
#include "base/number.h"
#include "tests/run_text.h"

#define MAX_ROWS 120
#define BUSY_CORES 0.33

enum { PROMPT, TOKENS, KIND_N };

struct row {
	const char *record, *model, *type, *config; /* config: all that defines the run */
	int kind;
	double threads, n, tok_s;
	bool fitted;
};

static struct arena arena;
static struct row rows[MAX_ROWS];
static int n_rows;

static double number(struct csv_field f)
{
	double v;

	if (!number_parse(f.text, f.len, &v))
		ck_abort_msg("line %d: '%.*s' is no number", f.line, (int)f.len, f.text);
	return v;
}

static void read_rows(void)
{
	enum { RECORD, MODEL, TYPE, THREADS, TEST, COUNT, TOK_S, OTHERS, N };
	static const char *const columns[N] = {"record", "model", "type", "threads", "test", "n", "tok_s", "others_cores"};
	struct csv_field f[N];
	struct csv csv;
	struct err err = {0};
	int rc;

	arena_init(&arena, NULL, NULL);
	assert_ok(csv_open(&csv, "tests/data/testbed.csv", columns, N, &arena, &err), err);
	while ((rc = csv_next(&csv, f, &err)) == 1) {
		struct row *r = &rows[n_rows];
		ck_assert_int_lt(n_rows, MAX_ROWS);
		if (number(f[OTHERS]) > BUSY_CORES)
			continue;
		*r = (struct row){
			.record = arena_strndup(&arena, f[RECORD].text, f[RECORD].len),
			.model = arena_strndup(&arena, f[MODEL].text, f[MODEL].len),
			.type = arena_strndup(&arena, f[TYPE].text, f[TYPE].len),
			.kind = f[TEST].text[0] == 'p' ? PROMPT : TOKENS,
			.threads = number(f[THREADS]),
			.n = number(f[COUNT]),
			.tok_s = number(f[TOK_S]),
		};
		r->config = arena_printf(&arena, "%s %s %s %g threads", r->model, r->type, r->kind ? "tg" : "pp", r->threads);
		n_rows++;
	}
	assert_ok(rc, err);
}

/* What is fitted. */
struct constants {
	double decode_bytes_s, prefill_flops_s, launch_s;
};

static double predict(const struct row *r, const struct constants *c)
{
	const char *text = arena_printf(&arena,
		"model: %s/tests/data/configs/testbed-%s.json\nquant: %s\nmachine: %s/tests/data/testbed-machine.yaml\n"
		"engine: llama.cpp\nflags: {t: %g}\nworkload: {batch: 1, prompt: %g, generate: %g}\n",
		getenv("PWD"), r->model, r->type, getenv("PWD"), r->threads, r->kind == PROMPT ? r->n : 0,
		r->kind == PROMPT ? 0 : r->n);
	const char *sets = arena_printf(&arena,
		"machine.cpu0.kernels.q4_0.decode=%.17gB/s machine.cpu0.kernels.q8_0.prefill=%.17gFLOP/s "
		"machine.cpu0.launch=%.17gs",
		c->decode_bytes_s, c->prefill_flops_s, c->launch_s);
	struct result got = run(text, sets, false);

	return got.value[r->kind == PROMPT ? RESULT_PREFILL_TOK_S : RESULT_DECODE_TOK_S];
}

/* One constant and the row that decides it. */
struct question {
	struct constants *c;
	double *constant;
	const struct row *row;
};

static double miss(double log_constant, void *arg)
{
	struct question *q = arg;

	*q->constant = exp(log_constant);
	return log(predict(q->row, q->c) / q->row->tok_s);
}

static void solve(struct constants *c, double *constant, double low, double high, struct row *row)
{
	struct question q = {c, constant, row};
	gsl_function f = {miss, &q};
	gsl_root_fsolver *s = gsl_root_fsolver_alloc(gsl_root_fsolver_brent);

	row->fitted = true;
	ck_assert_int_eq(gsl_root_fsolver_set(s, &f, log(low), log(high)), 0);
	for (int i = 0; i < 50 && gsl_root_test_interval(gsl_root_fsolver_x_lower(s), gsl_root_fsolver_x_upper(s), 1e-4, 0); i++)
		ck_assert_int_eq(gsl_root_fsolver_iterate(s), 0);
	*constant = exp(gsl_root_fsolver_root(s));
	gsl_root_fsolver_free(s);
}

static struct row *find_row(const char *record)
{
	for (int i = 0; i < n_rows; i++)
		if (strcmp(rows[i].record, record) == 0)
			return &rows[i];
	ck_abort_msg("no record %s", record);
}

static double median(double *at, size_t n)
{
	gsl_sort(at, 1, n);
	return gsl_stats_median_from_sorted_data(at, 1, n);
}

/* The middle of |a / b - 1| over pairs of rows of the same run. */
static double noise(int kind)
{
	double at[MAX_ROWS * MAX_ROWS / 2];
	size_t n = 0;

	for (int i = 0; i < n_rows; i++)
		for (int k = i + 1; k < n_rows; k++)
			if (rows[i].kind == kind && strcmp(rows[i].config, rows[k].config) == 0)
				at[n++] = fabs(rows[i].tok_s / rows[k].tok_s - 1);
	ck_assert_uint_gt(n, 5);
	return median(at, n);
}

START_TEST(the_rest_follows_from_three_rows)
{
	static const char *const names[KIND_N] = {"prompts", "tokens"};
	struct constants c = {20e9, 100e9, 1e-6};
	double error[KIND_N][MAX_ROWS];
	size_t n[KIND_N] = {0};

	read_rows();
	solve(&c, &c.decode_bytes_s, 2e9, 200e9, find_row("81"));
	solve(&c, &c.prefill_flops_s, 10e9, 2e12, find_row("14"));
	solve(&c, &c.launch_s, 1e-8, 1e-3, find_row("80"));
	printf("fitted: q4_0 decode %.1f GB/s, q8_0 prefill %.0f GFLOP/s, launch %.1f us\n", c.decode_bytes_s / 1e9,
		c.prefill_flops_s / 1e9, c.launch_s * 1e6);
	for (int i = 0; i < n_rows; i++) {
		const struct row *r = &rows[i];
		if (r->fitted)
			continue;
		double got = predict(r, &c);
		error[r->kind][n[r->kind]++] = fabs(got / r->tok_s - 1);
		printf("  record %3s %-28s measured %7.1f  predicted %7.1f  %+4.0f %%\n", r->record, r->config, r->tok_s, got,
			100 * (got / r->tok_s - 1));
	}
	for (int k = 0; k < KIND_N; k++) {
		double off = median(error[k], n[k]), noisy = noise(k);
		printf("%s: median error %.1f %% of %zu rows, noise %.1f %%\n", names[k], 100 * off, n[k], 100 * noisy);
		fflush(stdout);
		ck_assert_double_le(off, fmax(0.10, 2 * noisy));
	}
}
END_TEST

/*
 * Another machine of the kind on a better day, one thread of it: libllama b10361 (node-llama-cpp 3.20.0) over ggml d99724f2
 * built natively by gcc 12, which is that of b10573; models of q4_0 with random weights; middles of 4 to 15 runs in turn.
 * Its read rates by offsim calibrate; one row of tokens and one prompt (q8_0, d1: 76.5 tok/s) are fitted.
 */
START_TEST(depths_batches_and_caches)
{
	static const struct {
		const char *model;
		int kind;
		unsigned n, batch, depth;
		const char *flags;
		double tok_s;
	} seen[] = {
		{"d05", TOKENS, 8, 1, 512, "", 78.9}, {"d05", TOKENS, 8, 1, 2048, "", 45}, {"d05", TOKENS, 8, 1, 4096, "", 29.2},
		{"d05", TOKENS, 6, 1, 2048, "-fa off", 56.8}, {"d05", TOKENS, 6, 1, 2048, "-ctk q8_0 -ctv q8_0", 30.2},
		{"d05", TOKENS, 6, 1, 2048, "-ctk q4_0 -ctv q4_0", 24.1}, {"d05", TOKENS, 6, 1, 2048, "-ctk f32 -ctv f32", 24.8},
		{"d05", TOKENS, 6, 1, 2048, "-ctk bf16 -ctv bf16", 36.1}, {"d05", TOKENS, 8, 2, 0, "", 114.6},
		{"d05", TOKENS, 8, 4, 0, "", 228.1}, {"d05", TOKENS, 8, 8, 0, "", 251.6}, {"d05", TOKENS, 8, 32, 0, "", 361},
		{"d05", PROMPT, 8, 1, 0, "", 259.7}, {"d05", PROMPT, 16, 1, 0, "", 377.7}, {"d05", PROMPT, 64, 1, 0, "", 382.9},
		{"d05", PROMPT, 256, 1, 0, "", 368.3}, {"d05", PROMPT, 1024, 1, 0, "", 306.1}, {"d05", PROMPT, 128, 1, 2048, "", 176.9},
		{"d05", PROMPT, 128, 1, 2048, "-ctk q8_0 -ctv q8_0", 51.7}, {"m32", TOKENS, 8, 1, 0, "", 59.7},
		{"m32", TOKENS, 4, 2, 0, "", 66.4}, {"m32", TOKENS, 4, 4, 0, "", 83.6}, {"m32", TOKENS, 3, 8, 0, "", 86.3},
		{"m32", PROMPT, 64, 1, 0, "", 106.4}, {"m32", PROMPT, 128, 1, 0, "", 105.3}, {"m32", TOKENS, 6, 1, 512, "", 46.2},
		{"m32", TOKENS, 6, 1, 2048, "", 25.1}, {"m32", TOKENS, 6, 1, 2048, "-ctk q8_0 -ctv q8_0", 26.2},
		{"m32", TOKENS, 6, 1, 2048, "-fa off", 37.4},
	};
	double error[ARRAY_LEN(seen)];

	arena_init(&arena, NULL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(seen); i++) {
		bool prompt = seen[i].kind == PROMPT;
		const char *text = arena_printf(&arena,
			"model: %s/tests/data/configs/testbed-%s.json\nquant: q4_0\nmachine: %s/tests/data/testbed-machine.yaml\n"
			"engine: llama.cpp\nflags: '-t 1 %s'\nworkload: {batch: %u, prompt: %u, generate: %u, depth: %u}\n",
			getenv("PWD"), seen[i].model, getenv("PWD"), seen[i].flags, seen[i].batch, prompt ? seen[i].n : 0,
			prompt ? 0 : seen[i].n, seen[i].depth);
		struct result got = run(text,
			"machine.cpu0.clock=4.25GHz machine.cpu0.thread_bandwidth=41.8GB/s machine.ram.bandwidth=73.4GB/s "
			"machine.cpu0.kernels.q4_0.decode=24.9GB/s machine.cpu0.kernels.q8_0.prefill=151.4GFLOP/s", false);
		double off = got.value[prompt ? RESULT_PREFILL_TOK_S : RESULT_DECODE_TOK_S] / seen[i].tok_s - 1;
		printf("  %s %s%u x %u behind %u %s: %+.0f %%\n", seen[i].model, prompt ? "pp" : "tg", seen[i].n, seen[i].batch,
			seen[i].depth, seen[i].flags, 100 * off);
		error[i] = fabs(off);
		ck_assert_double_lt(error[i], 0.3);
	}
	double off = median(error, ARRAY_LEN(seen));
	printf("depths, batches, caches: median error %.1f %%\n", 100 * off);
	ck_assert_double_lt(off, 0.1);
}
END_TEST

TEST_MAIN("testbed", the_rest_follows_from_three_rows, depths_batches_and_caches)
