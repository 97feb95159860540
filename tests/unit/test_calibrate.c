#include "sim/run/calibrate.h"

#include "base/rng.h"
#include "sim/run/llama_case.h"
#include "sim/run/run.h"
#include "tests/test.h"

/* The base that users know, and what is true of the machine: made-up numbers, so that no profile's change moves them. */
#define BASE                                                                                                         \
	"ram: {capacity: 64GiB, bandwidth: {measured: 61.3GB/s, spread: 15%, source: a}}\n"                           \
	"cpu0: {cores: 8, flops: {fp32: {measured: 913GFLOP/s, source: a}}, launch: {measured: 3.1us, source: a}}\n"

struct test {
	const char *type;
	double size_bytes;
	int prompt, generate, threads;
};

static const struct test runs[] = {
	{"Q8_0", 1313251328, 0, 32, 8}, {"Q8_0", 1313251328, 0, 64, 8}, {"Q8_0", 1313251328, 0, 32, 4},
	{"Q8_0", 1313251328, 128, 0, 8}, {"Q8_0", 1313251328, 512, 0, 8}, {"Q8_0", 1313251328, 256, 0, 4},
	{"F16", 2471763968, 0, 32, 8}, {"F16", 2471763968, 0, 64, 4},
	{"F16", 2471763968, 128, 0, 8}, {"F16", 2471763968, 512, 0, 4}, {"F16", 2471763968, 256, 0, 8},
};

static const char *new_file(struct arena *a, const char *text, const char *suffix)
{
	char path[32];

	test_file(path, text, strlen(text));
	const char *name = arena_printf(a, "%s%s", path, suffix);
	ck_assert_int_eq(rename(path, name), 0);
	return name;
}

static const char *test_json(struct arena *a, const struct test *t, int i, double rate)
{
	return arena_printf(a,
		"{\"model_type\": \"llama 1B %s\", \"model_size\": %.0f, \"model_n_params\": 1235814400, \"backends\": \"CPU\", "
		"\"n_threads\": %d, \"n_batch\": 2048, \"n_ubatch\": 512, \"n_prompt\": %d, \"n_gen\": %d, \"avg_ts\": %.9g, "
		"\"test_time\": \"%d\"}\n",
		t->type, t->size_bytes, t->threads, t->prompt, t->generate, rate, i);
}

/* What the machine would print: simulated, and disturbed by noise. */
static double true_rate(struct arena *a, const char *machine, const struct test *t, gsl_rng *rng, double noise)
{
	const char *json = test_json(a, t, 0, 1);
	struct run_options o = {0};
	struct llama_cards *cards;
	struct llama_case c;
	struct scenario *s;
	struct result r;
	struct bench b;
	struct err err = {0};

	assert_ok(bench_read_text(json, strlen(json), "f", NULL, a, &b, &err), err);
	assert_ok(llama_cards_load(NULL, 0, a, &cards, &err), err);
	llama_case_make(b.at[0].llama, llama_case_quoted(a, machine), cards, a, &c);
	ck_assert_str_eq(c.reason, "");
	ck_assert_str_eq(c.model, "llama-3.2-1b");
	assert_ok(scenario_load_text(c.scenario, "f", a, &s, &err) || run_scenario(s, &o, a, &r, NULL, &err), err);
	return r.value[c.field] * c.scale * exp(noise * (2 * gsl_rng_uniform(rng) - 1) * sqrt(3));
}

/* Simulates the tests first .. last on what is true, and fits them to the base. */
static void fit(struct arena *a, const char *truth, const char *base, size_t first, size_t last, double noise,
	struct calibrate *c)
{
	const char *base_yaml = new_file(a, base, ".yaml"), *json = "";
	const char *true_yaml = new_file(a, arena_printf(a, "from: %s\n%s", base_yaml, truth), ".yaml");
	struct err err = {0};
	gsl_rng *rng = rng_new(2385, 0, RNG_TEST);

	for (size_t i = first; i <= last; i++)
		json = arena_printf(a, "%s%s", json, test_json(a, &runs[i], (int)i, true_rate(a, true_yaml, &runs[i], rng, noise)));
	gsl_rng_free(rng);
	const char *rows = new_file(a, json, ".jsonl");
	struct calibrate_options o = {.file = &rows, .n_files = 1, .machine = base_yaml, .workers = 2};
	assert_ok(calibrate_run(&o, a, c, &err), err);
	unlink(base_yaml);
	unlink(true_yaml);
	unlink(rows);
}

static const struct calibrate_constant *constant(const struct calibrate *c, const char *name)
{
	for (size_t i = 0; i < c->n_constants; i++)
		if (strcmp(c->constant[i].name, name) == 0)
			return &c->constant[i];
	ck_abort_msg("no constant '%s'", name);
	return NULL;
}

/* Within three of its own stated deviations, and these are not so wide that anything is. */
static void assert_found(const struct calibrate *c, const char *name, double want)
{
	const struct calibrate_constant *k = constant(c, name);

	ck_assert_int_eq(k->state, CALIBRATE_FITTED);
	if (fabs(log(k->value / want)) > 3 * k->spread || k->spread > 0.1)
		ck_abort_msg("%s is %g with a spread of %g, not %g", name, k->value, k->spread, want);
}

#define TRUTH                                              \
	"set: {ram.bandwidth: {measured: 43.7GB/s}}\n"     \
	"kernels: {llama.cpp: {cpu.weights.q8_0.many: {value: 9.1}, cpu.weights.f16.many: {value: 17.7}}}\n"

START_TEST(known_constants_are_found)
{
	struct arena a;
	struct calibrate c;

	arena_init(&a, NULL, NULL);
	fit(&a, TRUTH, BASE, 0, ARRAY_LEN(runs) - 1, 0.02, &c);
	assert_found(&c, "ram.bandwidth", 43.7e9);
	assert_found(&c, "kernels.cpu.weights.q8_0.many", 9.1);
	assert_found(&c, "kernels.cpu.weights.f16.many", 17.7);
	ck_assert(c.noise_after < 0.03 && c.noise_before > 0.2);
	arena_release(&a);
}
END_TEST

/* The machine's bandwidth and the share of it that kernels reach enter as a product: the one that explains more takes it. */
START_TEST(what_cannot_be_told_apart_is_named)
{
	struct arena a;
	struct calibrate c;

	arena_init(&a, NULL, NULL);
	fit(&a, TRUTH, BASE, 6, 7, 0.01, &c);
	const struct calibrate_constant *k = constant(&c, "kernels.cpu.read");
	ck_assert_int_eq(k->state, CALIBRATE_HELD);
	assert_close(k->value, k->before, 0);
	ck_assert_ptr_nonnull(strstr(k->why, "cannot be told apart from ram.bandwidth (correlation -"));
	ck_assert_int_eq(constant(&c, "ram.bandwidth")->state, CALIBRATE_FITTED);
	arena_release(&a);
}
END_TEST

/* Tests of decoding leave what only prefill depends on; what has no spread is exact; one outlier does not move the rest. */
START_TEST(nothing_else_is_touched)
{
	struct arena a;
	struct calibrate c;

	arena_init(&a, NULL, NULL);
	fit(&a, TRUTH, BASE, 0, 2, 0.01, &c);
	for (size_t i = 0; i < c.n_constants; i++) {
		ck_assert_str_ne(c.constant[i].name, "kernels.cpu.weights.q8_0.many");
		ck_assert_str_ne(c.constant[i].name, "cpu0.flops.fp32");
		ck_assert_str_ne(c.constant[i].name, "cpu0.launch");
		if (c.constant[i].state == CALIBRATE_HELD)
			assert_close(c.constant[i].value, c.constant[i].before, 0);
	}
	arena_release(&a);
}
END_TEST

/* The base as it is predicts its own rates: nothing is to be moved. */
START_TEST(the_truth_stays)
{
	struct arena a;
	struct calibrate c;

	arena_init(&a, NULL, NULL);
	fit(&a, "", BASE, 0, ARRAY_LEN(runs) - 1, 0, &c);
	for (size_t i = 0; i < c.n_constants; i++)
		ck_assert_msg(fabs(log(c.constant[i].value / c.constant[i].before)) < 0.01, "%s is %g, not %g", c.constant[i].name,
			c.constant[i].value, c.constant[i].before);
	ck_assert(c.noise_after < 0.01);
	arena_release(&a);
}
END_TEST

/* Direct measurements set their constant, mean or best; the profile that is written says the same to whom loads it. */
START_TEST(measured_and_written)
{
	static const char stream[] = "Best Rate MB/s\nTriad: 51000.5 1 1 1\nTriad: 64010.25 1 1 1\nCopy: 99000 1 1 1\n";
	static const char fio[] = "{\"fio version\": \"3\", \"global options\": {\"direct\": \"1\"}, \"jobs\": [\n"
				  "{\"jobname\": \"a\", \"job options\": {\"bs\": \"1m\", \"iodepth\": \"8\"}, \"read\": "
				  "{\"io_bytes\": 1, \"bw_bytes\": 5e9}}]}";
	struct arena a;
	struct calibrate c;
	struct err err = {0};
	struct hw_machine *m;

	arena_init(&a, NULL, NULL);
	const char *base = new_file(&a, BASE, ".yaml");
	const char *const files[] = {new_file(&a, stream, ".txt"), new_file(&a, fio, "\"\x01.json")};
	struct calibrate_options o = {.file = files, .n_files = 2, .machine = base, .workers = 1};
	assert_ok(calibrate_run(&o, &a, &c, &err), err);
	ck_assert_uint_eq(c.n_constants, 1);
	assert_close(constant(&c, "ram.bandwidth")->value, 64010.25e6, 1e-12);
	ck_assert_uint_eq(constant(&c, "ram.bandwidth")->n_rows, 2);
	ck_assert_str_eq(c.row[3].unused, "the profile has no nvme0");

	const char *path = arena_printf(&a, "%s.out.yaml", base);
	assert_ok(calibrate_write(&c, "2026-11-30", path, &a, &err), err);
	assert_ok(hw_machine_load(path, &a, &m, &err), err);
	const struct hw_num *num = &m->memories[hw_find_memory(m, "ram")].bandwidth_bytes_s;
	assert_close(num->measured, 64010.25e6, 1e-5);
	assert_close(num->spread, 0.03, 1e-12);
	ck_assert_ptr_nonnull(strstr(num->source, "(2 rows), 2026-11-30"));
	ck_assert_int_eq(calibrate_write(&c, "2026-11-30", "/nonexistent/x.yaml", &a, &err), -1);
	ck_assert_int_eq(err.code, ERR_IO);
	unlink(base);
	unlink(files[0]);
	unlink(files[1]);
	unlink(path);
	arena_release(&a);
}
END_TEST

TEST_MAIN("calibrate", known_constants_are_found, what_cannot_be_told_apart_is_named, nothing_else_is_touched, the_truth_stays,
	measured_and_written)
