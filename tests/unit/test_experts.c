#include "sim/trace/experts.h"

#include <gsl/gsl_cdf.h>

#include "base/rng.h"
#include "sim/trace/popularity.h"
#include "sim/trace/trace.h"
#include "tests/experts_layers.h"
#include "tests/test.h"

#define UNLIKELY 1e-5 /* of a right program, with these seeds */
#define SIGMAS 4.4    /* as unlikely */

static struct arena arena;

static struct experts_law law_of(double zipf, double locality)
{
	return (struct experts_law){.zipf = zipf, .locality = locality};
}

static const struct experts *experts_of(const struct experts_law *law, const struct model *m)
{
	const struct experts *e;
	struct err err = {0};

	assert_ok(experts_new(law, m, 7, &arena, &e, &err), err);
	return e;
}

static const struct experts *zipf_layer(double zipf, uint32_t n_expert, uint32_t n_used)
{
	struct experts_law law = law_of(zipf, NAN);

	return experts_of(&law, experts_layers(&arena, 1, n_expert, n_used));
}

/* By expert, its weight. */
static double weight_of(const struct experts *e, uint32_t expert)
{
	for (uint32_t r = 0; r < e->ranks->n_expert; r++)
		if (e->number[r] == expert)
			return e->ranks->weight[r];
	return NAN;
}

static double sum_of(const double *v, uint32_t n)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += v[i];
	return sum;
}

/* ---- chances ---- */

START_TEST(chances_are_those_of_draws_one_after_another)
{
	arena_init(&arena, NULL, NULL);
	for (double zipf = 0.385; zipf < 6; zipf *= 1.7) {
		const struct experts_ranks *r = zipf_layer(zipf, 9, 2)->ranks;
		double sum = sum_of(r->weight, 9);
		for (uint32_t i = 0; i < 9; i++) {
			double want = r->weight[i] / sum;
			for (uint32_t first = 0; first < 9; first++)
				if (first != i)
					want += r->weight[first] / sum * r->weight[i] / (sum - r->weight[first]);
			assert_close(r->chance[i], want, 1e-9);
		}
	}
	arena_release(&arena);
}
END_TEST

START_TEST(chances_sum_to_the_experts_used)
{
	arena_init(&arena, NULL, NULL);
	assert_close(sum_of(zipf_layer(0.8, 256, 8)->ranks->chance, 256), 8, 1e-12);
	assert_close(sum_of(zipf_layer(4, 512, 10)->ranks->chance, 512), 10, 1e-7); /* the likeliest are capped at 1 */
	assert_close(sum_of(zipf_layer(0, 60, 4)->ranks->chance, 60), 4, 1e-12);
	arena_release(&arena);
}
END_TEST

/* The chance that the experts drawn differ from what is wanted by as much or more. */
static double chi_square(const uint64_t *count, const double *want, uint32_t n, double total)
{
	double x = 0;

	for (uint32_t i = 0; i < n; i++)
		x += (count[i] - want[i] * total) * (count[i] - want[i] * total) / (want[i] * total);
	return gsl_cdf_chisq_Q(x, n - 1);
}

/* All ordered pairs of 6, against their chances. */
static double pairs_p(double zipf)
{
	enum { N = 6, TOKENS = 200000 };
	const struct experts *e = zipf_layer(zipf, N, 2);
	uint64_t count[N * N] = {0}, met[N * (N - 1)];
	double want[N * (N - 1)], sum = sum_of(e->ranks->weight, N);
	gsl_rng *rng = rng_new(1, 1, RNG_TEST);
	uint32_t used[2], n = 0;

	for (int i = 0; i < TOKENS; i++) {
		experts_draw(e, rng, used);
		count[used[0] * N + used[1]]++;
	}
	gsl_rng_free(rng);
	for (uint32_t a = 0; a < N; a++) {
		ck_assert_uint_eq(count[a * N + a], 0);
		for (uint32_t b = 0; b < N; b++) {
			if (a == b)
				continue;
			met[n] = count[a * N + b];
			want[n++] = weight_of(e, a) / sum * weight_of(e, b) / (sum - weight_of(e, a));
		}
	}
	return chi_square(met, want, n, TOKENS);
}

START_TEST(draws_follow_their_weights)
{
	arena_init(&arena, NULL, NULL);
	ck_assert(pairs_p(0.8) > UNLIKELY);
	ck_assert(pairs_p(2.385) > UNLIKELY);
	arena_release(&arena);
}
END_TEST

START_TEST(the_first_of_many_follows_its_weight)
{
	enum { N = 256, TOKENS = 400000 };

	arena_init(&arena, NULL, NULL);
	const struct experts *e = zipf_layer(0.8, N, 8);
	uint64_t count[N] = {0};
	double want[N], sum = sum_of(e->ranks->weight, N);
	gsl_rng *rng = rng_new(1, 2, RNG_TEST);
	uint32_t used[8];
	for (int i = 0; i < TOKENS; i++) {
		experts_draw(e, rng, used);
		count[used[0]]++;
	}
	for (uint32_t i = 0; i < N; i++)
		want[i] = weight_of(e, i) / sum;
	ck_assert(chi_square(count, want, N, TOKENS) > UNLIKELY);
	gsl_rng_free(rng);
	arena_release(&arena);
}
END_TEST

/* Of few experts with nearly all weight most draws are taken already: what is left is walked over. */
START_TEST(what_is_left_is_drawn_by_weight)
{
	enum { N = 5, TOKENS = 200000 };

	arena_init(&arena, NULL, NULL);
	const struct experts *e = zipf_layer(9, N, 2);
	uint64_t second[N - 1] = {0}, n = 0;
	double want[N - 1], sum = 0;
	gsl_rng *rng = rng_new(1, 3, RNG_TEST);
	uint32_t used[2];
	for (int i = 0; i < TOKENS; i++) {
		experts_draw(e, rng, used);
		if (used[0] != e->number[0])
			continue;
		n++;
		for (uint32_t r = 1; r < N; r++)
			second[r - 1] += used[1] == e->number[r];
	}
	for (uint32_t r = 1; r < N; r++)
		sum += e->ranks->weight[r];
	for (uint32_t r = 1; r < N; r++)
		want[r - 1] = e->ranks->weight[r] / sum;
	/* the last two together: alone they are too rare for the test to hold */
	second[2] += second[3];
	want[2] += want[3];
	ck_assert(chi_square(second, want, 3, (double)n) > UNLIKELY);
	gsl_rng_free(rng);
	arena_release(&arena);
}
END_TEST

START_TEST(each_layer_has_its_own_favourites)
{
	arena_init(&arena, NULL, NULL);
	struct experts_law law = law_of(0.8, NAN);
	const struct experts *e = experts_of(&law, experts_layers(&arena, 40, 64, 6));
	bool seen[64] = {false};
	int n = 0;
	for (int i = 0; i < 40; i++) {
		n += !seen[e[i].number[0]];
		seen[e[i].number[0]] = true;
		ck_assert_ptr_eq(e[i].ranks, e[0].ranks); /* chances are shared */
	}
	ck_assert_int_ge(n, 20); /* of 64 (1 - (1 - 1/64)^40) = 30 on average */
	arena_release(&arena);
}
END_TEST

/* ---- many rows ---- */

struct moments {
	double n, sum, squares;
};

static void add_value(struct moments *m, double v)
{
	m->n++;
	m->sum += v;
	m->squares += v * v;
}

/* want lies within what `independent` of its values leave open. */
static void assert_mean(const struct moments *m, double want, double independent)
{
	double mean = m->sum / m->n, variance = fmax(m->squares / m->n - mean * mean, 0);

	ck_assert_msg(fabs(mean - want) <= SIGMAS * sqrt(variance / independent) + 1e-9, "mean %.8g, not %.8g", mean, want);
}

/* Of experts that rows tokens hit, in so many chains: each is missed by the first of a chain with 1 - p, and brought in by
   one that follows with (1 - keep) p. */
static double distinct_of(const struct experts *e, double rows, double chains)
{
	double sum = 0;

	for (uint32_t i = 0; i < e->ranks->n_expert; i++) {
		double p = e->ranks->chance[i];
		sum += 1 - pow(1 - p, chains) * pow(1 - (1 - e->keep) * p, rows - chains);
	}
	return sum;
}

START_TEST(expected_counts_have_the_right_sums)
{
	enum { N = 128, USED = 8, TIMES = 3000 };

	arena_init(&arena, NULL, NULL);
	const struct experts *e = zipf_layer(1.385, N, USED);
	gsl_rng *rng = rng_new(1, 4, RNG_TEST);
	uint64_t count[N];
	for (uint64_t rows = experts_rows_max(e) + 1; rows < 100000; rows = rows * 3 + 1) {
		double distinct = 0, want = distinct_of(e, (double)rows, (double)rows), part = want - floor(want);
		for (int t = 0; t < TIMES; t++) {
			uint64_t sum = 0;
			int n = 0;
			experts_expect(e, rng, rows, rows, &arena, count);
			for (uint32_t i = 0; i < N; i++) {
				ck_assert_uint_le(count[i], rows);
				sum += count[i];
				n += count[i] > 0;
			}
			ck_assert_uint_eq(sum, rows * USED);
			ck_assert(n == floor(want) || n == ceil(want));
			distinct += n;
		}
		ck_assert_msg(fabs(distinct / TIMES - want) <= (SIGMAS * sqrt(part * (1 - part) * TIMES) + 5) / TIMES,
			"%llu rows: %.8g distinct, not %.8g", (unsigned long long)rows, distinct / TIMES, want);
	}
	gsl_rng_free(rng);
	arena_release(&arena);
}
END_TEST

/* ---- a trace ---- */

#define STEPS 6400

static struct trace trace_of(const struct experts_law *law, uint32_t n_expert, uint32_t n_used, uint64_t batch, uint64_t prompt)
{
	struct trace_workload w = {.batch = batch, .prompt = prompt, .generate = STEPS};
	struct model *m = experts_layers(&arena, 2, n_expert, n_used);
	struct trace t;

	trace_synth_init(&t, m, &w, 0, experts_of(law, m), 3, &arena);
	return t;
}

/* The experts of layer 1, and how many there are. */
static uint32_t experts_in(struct trace_cursor *c, uint64_t index, bool *hit, uint32_t n_expert)
{
	struct trace_step step;
	struct err err = {0};
	uint32_t n = 0;

	memset(hit, 0, n_expert);
	assert_ok(trace_step_get(c, index, &step, &err), err);
	for (size_t i = 0; i < step.n_access; i++) {
		if (step.access[i].kind == TRACE_EXPERT && step.access[i].layer == 1) {
			hit[step.access[i].expert] = true;
			n++;
		}
	}
	return n;
}

START_TEST(a_step_has_as_many_distinct_experts_as_the_closed_form)
{
	arena_init(&arena, NULL, NULL);
	for (double zipf = 0; zipf < 2; zipf += 0.77) {
		struct experts_law law = law_of(zipf, NAN);
		struct trace t = trace_of(&law, 60, 4, 9, 0);
		struct trace_cursor c;
		struct moments distinct = {0};
		bool hit[60];
		trace_cursor_init(&c, &t, &arena);
		for (uint64_t i = 0; i < STEPS; i++)
			add_value(&distinct, experts_in(&c, i, hit, 60));
		assert_mean(&distinct, distinct_of(experts_of(&law, t.model), 9, 9), STEPS);
		ck_assert(!t.smooth);
	}
	arena_release(&arena);
}
END_TEST

static void check_locality(double zipf, double locality)
{
	enum { N = 60, USED = 4 };
	struct experts_law law = law_of(zipf, locality);
	struct trace t = trace_of(&law, N, USED, 1, 0);
	const struct experts *e = experts_of(&law, t.model);
	struct trace_cursor c;
	struct moments shared = {0}, hits[N] = {{0}};
	bool hit[2][N];

	trace_cursor_init(&c, &t, &arena);
	experts_in(&c, 0, hit[0], N);
	for (uint64_t i = 1; i < STEPS; i++) {
		int n = 0;
		ck_assert_uint_eq(experts_in(&c, i, hit[i & 1], N), USED);
		for (int x = 0; x < N; x++) {
			n += hit[0][x] && hit[1][x];
			add_value(&hits[x], hit[i & 1][x]);
		}
		add_value(&shared, (double)n / USED);
	}
	assert_mean(&shared, locality, STEPS / 4.0);
	/* What is popular stays as popular. An expert that is kept with chance q tells (1 - q) / (1 + q) as much a step. */
	for (uint32_t r = 0; r < N; r++) {
		uint32_t x = e[1].number ? e[1].number[r] : r;
		assert_mean(&hits[x], e[1].ranks->chance[r], STEPS * (1 - e[1].keep) / (1 + e[1].keep) / 1.5);
	}
}

START_TEST(the_locality_is_the_one_asked_for)
{
	arena_init(&arena, NULL, NULL);
	check_locality(0, 0.3);
	check_locality(0.8, 0.3);
	check_locality(0.8, 0.85);
	check_locality(1.2, 0.95);
	arena_release(&arena);
}
END_TEST

START_TEST(tokens_of_a_prompt_follow_each_other)
{
	enum { N = 60, USED = 4, TIMES = 1500 };

	arena_init(&arena, NULL, NULL);
	struct experts_law law = law_of(0.8, 0.6);
	struct moments distinct = {0};
	const struct experts *e = NULL;
	struct err err = {0};
	for (uint64_t seed = 0; seed < TIMES; seed++) {
		struct trace t = trace_of(&law, N, USED, 2, 25);
		struct trace_cursor c;
		bool hit[N];
		assert_ok(experts_new(&law, t.model, seed, &arena, &e, &err), err);
		trace_synth_init(&t, t.model, &t.workload, 0, e, seed, &arena);
		trace_cursor_init(&c, &t, &arena);
		add_value(&distinct, experts_in(&c, 0, hit, N));
	}
	assert_mean(&distinct, distinct_of(e, 50, 2), TIMES);
	arena_release(&arena);
}
END_TEST

START_TEST(any_step_can_be_had_without_the_others)
{
	enum { N = 60 };

	arena_init(&arena, NULL, NULL);
	struct experts_law law = law_of(0.8, 0.6);
	struct trace t = trace_of(&law, N, 4, 3, 10);
	struct trace_cursor in_order, any;
	bool a[N], b[N];
	trace_cursor_init(&in_order, &t, &arena);
	trace_cursor_init(&any, &t, &arena);
	for (uint64_t i = 0; i < 300; i++) {
		experts_in(&in_order, 1 + i, a, N);
		experts_in(&any, 1 + i * 7919 % 300, b, N);
		experts_in(&any, 1 + i, b, N);
		ck_assert_int_eq(memcmp(a, b, sizeof(a)), 0);
		if (i % 50 == 0)
			experts_in(&any, 0, b, N);
	}
	arena_release(&arena);
}
END_TEST

START_TEST(steps_that_differ_are_not_smooth)
{
	arena_init(&arena, NULL, NULL);
	struct experts_law uniform = law_of(0, NAN), zipf = law_of(0.8, NAN), local = law_of(0, 0.3);
	ck_assert(trace_of(&uniform, 60, 4, 1, 0).smooth);
	ck_assert(!trace_of(&uniform, 60, 4, 2, 0).smooth);
	/* One token uses as many experts whatever the law. */
	ck_assert(trace_of(&zipf, 60, 4, 1, 0).smooth);
	ck_assert(trace_of(&local, 60, 4, 1, 0).smooth);
	ck_assert(!trace_of(&zipf, 60, 4, 2, 0).smooth);
	arena_release(&arena);
}
END_TEST

/* ---- popularity ---- */

START_TEST(experts_are_used_as_often_as_counted)
{
	arena_init(&arena, NULL, NULL);
	enum { N = 8 };
	static const uint32_t n_expert[] = {N, N};
	static const double first[N] = {345, 586, 604, 18, 271, 742, 837, 437}, second[N] = {0, 2385, 1, 17, 300, 300, 41, 2};
	static const double *const count[] = {first, second};
	const struct experts_popularity popularity = {2, n_expert, count};
	struct experts_law law = {.locality = NAN, .popularity = &popularity};
	const struct experts *e = experts_of(&law, experts_layers(&arena, 2, N, 2));
	for (uint32_t i = 0; i < N; i++)
		assert_close(e[0].ranks->chance[i], 2 * first[i] / sum_of(first, N), 1e-5);
	ck_assert(e[1].ranks->chance[0] == 0);
	gsl_rng *rng = rng_new(1, 5, RNG_TEST);
	for (int i = 0; i < 10000; i++) {
		uint32_t used[2];
		experts_draw(&e[1], rng, used);
		ck_assert(used[0] != used[1] && used[0] != 0 && used[1] != 0);
	}
	gsl_rng_free(rng);
	arena_release(&arena);
}
END_TEST

static void assert_popularity(const char *text, const char *want)
{
	char path[32];
	struct model *m = experts_layers(&arena, 3, 4, 2);
	struct experts_popularity p;
	struct err err = {0};
	uint64_t hash;

	m->layers[1].n_expert = 0; /* a dense layer has no row */
	test_file(path, text, strlen(text));
	int rc = popularity_read(path, m, &arena, &p, &hash, &err);
	unlink(path);
	if (want) {
		ck_assert_int_eq(rc, -1);
		assert_err(err, ERR_INPUT, want);
	} else {
		assert_ok(rc, err);
		ck_assert(p.count[2][3] == 8.5 && p.n_expert[1] == 0);
	}
}

START_TEST(reads_counts)
{
	arena_init(&arena, NULL, NULL);
	assert_popularity("{\"expert_popularity\": [[1, 2, 3, 4], [5, 6, 7, 8.5]]}", NULL);
	assert_popularity("{\"expert_popularity\": [[1, 2, 3, 4]]}",
		"'expert_popularity' has 1 rows, but 'made' more layers with experts");
	assert_popularity("{\"expert_popularity\": [[1, 2, 3, 4], [1, 2, 3, 4], []]}",
		"'expert_popularity' has 3 rows, but 'made' 2 layers with experts");
	assert_popularity("{\"expert_popularity\": [[1, 2, 3, 4], [1, 2, 3]]}",
		"row 1 of 'expert_popularity' is no list of 4 numbers, the experts of layer 2");
	assert_popularity("{\"expert_popularity\": [[1, 2, 3, -4], []]}",
		"number 3 of row 0 of 'expert_popularity' is none, or negative");
	assert_popularity("{}", "has no list 'expert_popularity'");
	arena_release(&arena);
}
END_TEST

static void assert_refused(const struct experts_law *law, const char *want)
{
	const struct experts *e;
	struct err err = {0};

	ck_assert_int_eq(experts_new(law, experts_layers(&arena, 1, 8, 2), 1, &arena, &e, &err), -1);
	assert_err(err, ERR_INPUT, want);
}

START_TEST(refuses_what_no_draw_can_be)
{
	arena_init(&arena, NULL, NULL);
	struct experts_law law = law_of(0, 0.2);
	assert_refused(&law, "a locality of 0.2 is less than the 0.25 of a token's experts in layer 0 that any other token "
			     "hits as well");
	static const uint32_t n_expert[] = {8};
	static const double count[8] = {0, 0, 3};
	static const double *const counts[] = {count};
	struct experts_popularity popularity = {1, n_expert, counts};
	law = (struct experts_law){.locality = NAN, .popularity = &popularity};
	assert_refused(&law, "the popularity has 1 experts in layer 0 that were used at all, but a token uses 2 there");
	popularity.n_layer = 0;
	assert_refused(&law, "the popularity counts 0 experts in layer 0, but the model has 8 there");
	arena_release(&arena);
}
END_TEST

/* More than can be drawn: what was asked for would be all alike instead. */
START_TEST(refuses_a_law_for_more_than_are_drawn)
{
	enum { MANY = EXPERTS_USED_MAX + 1 };
	const struct experts_law asked[] = {law_of(1, NAN), law_of(0, 0.9), {.locality = NAN, .correlation = 0.5}};
	const struct experts_law alike = law_of(0, NAN);

	arena_init(&arena, NULL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
		const struct experts *e;
		struct err err = {0};
		ck_assert_int_eq(experts_new(&asked[i], experts_layers(&arena, 1, 2 * MANY, MANY), 1, &arena, &e, &err), -1);
		assert_err(err, ERR_INPUT, "a token uses 257 of the 514 experts of layer 0; beyond 256 only 'uniform' is known");
		experts_of(&asked[i], experts_layers(&arena, 1, MANY, MANY));
		if (i != 1)
			experts_of(&asked[i], experts_layers(&arena, 1, 2 * MANY, MANY - 1));
	}
	experts_of(&alike, experts_layers(&arena, 1, 2 * MANY, MANY));
	arena_release(&arena);
}
END_TEST

TEST_MAIN("experts", chances_are_those_of_draws_one_after_another, chances_sum_to_the_experts_used,
	draws_follow_their_weights, the_first_of_many_follows_its_weight, what_is_left_is_drawn_by_weight,
	each_layer_has_its_own_favourites, expected_counts_have_the_right_sums,
	a_step_has_as_many_distinct_experts_as_the_closed_form, the_locality_is_the_one_asked_for,
	tokens_of_a_prompt_follow_each_other, any_step_can_be_had_without_the_others, steps_that_differ_are_not_smooth,
	experts_are_used_as_often_as_counted, reads_counts, refuses_what_no_draw_can_be, refuses_a_law_for_more_than_are_drawn)
