#include "models/routing.h"

#include "base/datadir.h"
#include "base/rng.h"
#include "sim/trace/experts.h"
#include "sim/trace/experts_record.h"
#include "tests/experts_layers.h"
#include "tests/test.h"

static struct arena arena;

static const struct experts *experts_of(const struct experts_law *law, const struct model *m)
{
	const struct experts *e;
	struct err err = {0};

	assert_ok(experts_new(law, m, 7, &arena, &e, &err), err);
	return e;
}

static struct routing typical(void)
{
	struct routing r;
	struct err err = {0};

	assert_ok(routing_read(&arena, &r, &err), err);
	return r;
}

/* Experts of a layer that so many tokens hit on average. */
static double distinct(const struct experts *e, double tokens)
{
	double sum = 0;

	for (uint32_t i = 0; i < e->ranks->n_expert; i++)
		sum += -expm1(tokens * log1p(-e->ranks->chance[i]));
	return sum;
}

static double typical_distinct(uint32_t n_expert, uint32_t n_used, double tokens)
{
	struct routing r = typical();
	struct experts_law law = {.locality = NAN, .typical = &r};

	return distinct(experts_of(&law, experts_layers(&arena, 1, n_expert, n_used)), tokens);
}

static double correlated_distinct(double correlation, uint32_t n_expert, uint32_t n_used, double tokens)
{
	struct experts_law law = {.locality = NAN, .correlation = correlation};

	return distinct(experts_of(&law, experts_layers(&arena, 1, n_expert, n_used)), tokens);
}

/* ---- the law ---- */

START_TEST(one_token_hits_what_a_token_uses)
{
	arena_init(&arena, NULL, NULL);
	for (double c = 0; c <= ROUTING_CORRELATION_MAX; c += 0.15) {
		assert_close(correlated_distinct(c, 60, 4, 1), 4, 1e-6);
		assert_close(correlated_distinct(c, 8, 2, 1), 2, 1e-6);
		assert_close(correlated_distinct(c, 896, 16, 1), 16, 1e-6);
	}
	arena_release(&arena);
}
END_TEST

START_TEST(nothing_in_common_is_uniform)
{
	arena_init(&arena, NULL, NULL);
	assert_close(correlated_distinct(0, 128, 6, 23), 128 * (1 - pow(1 - 6 / 128.0, 23)), 1e-9);
	assert_close(correlated_distinct(1e-9, 128, 6, 23), 128 * (1 - pow(1 - 6 / 128.0, 23)), 1e-3);
	arena_release(&arena);
}
END_TEST

START_TEST(the_more_in_common_the_fewer_experts)
{
	arena_init(&arena, NULL, NULL);
	double before = 128;
	for (double c = 0; c <= ROUTING_CORRELATION_MAX; c += 0.1) {
		double now = correlated_distinct(c, 128, 6, 23);
		ck_assert_double_lt(now, before);
		before = now;
	}
	ck_assert_double_gt(before, 6);
	ck_assert_double_lt(before, 20);
	arena_release(&arena);
}
END_TEST

/* Two experts, one is used: the quantiles are those of a quarter and three quarters, the threshold is 0. */
START_TEST(two_experts_by_hand)
{
	arena_init(&arena, NULL, NULL);
	struct experts_law law = {.locality = NAN, .correlation = 0.36};
	const struct experts *e = experts_of(&law, experts_layers(&arena, 1, 2, 1));
	/* Phi(0.6 x 0.674489750 / 0.8) */
	assert_close(e->ranks->chance[0], 0.69352518, 1e-6);
	assert_close(e->ranks->chance[1], 1 - 0.69352518, 1e-6);
	arena_release(&arena);
}
END_TEST

START_TEST(strays_hit_the_rest)
{
	arena_init(&arena, NULL, NULL);
	struct routing none = typical(), some = typical();
	none.strays = 0;
	some.strays = 0.02385;
	struct experts_law without = {.locality = NAN, .typical = &none}, with = {.locality = NAN, .typical = &some};
	struct model *m = experts_layers(&arena, 1, 128, 6);
	ck_assert_double_lt(distinct(experts_of(&without, m), 1e4), 125);
	ck_assert_double_gt(distinct(experts_of(&with, m), 1e4), 127.9);
	assert_close(distinct(experts_of(&with, m), 4), distinct(experts_of(&without, m), 4), 0.02);
	arena_release(&arena);
}
END_TEST

/* ---- against what was recorded and published ---- */

/* Mean of the experts that n tokens hit at a layer, drawn from a phase's without repetition. */
static double recorded_distinct(const struct experts_record *r, enum trace_phase phase, uint32_t n)
{
	enum { TIMES = 40 };
	gsl_rng *rng = rng_new(1, n, RNG_TEST);
	uint64_t row[128], sum = 0;

	ck_assert_uint_eq(r->n_tokens[phase], 128);
	for (uint64_t i = 0; i < 128; i++)
		row[i] = i;
	for (int t = 0; t < TIMES; t++) {
		for (uint32_t layer = 0; layer < r->n_layer; layer++) {
			bool hit[128] = {false};
			gsl_ran_shuffle(rng, row, 128, sizeof(*row));
			for (uint32_t i = 0; i < n; i++)
				for (uint32_t k = 0; k < r->n_used[layer]; k++)
					hit[experts_record_at(r, phase, row[i], layer)[k]] = true;
			for (int x = 0; x < 128; x++)
				sum += hit[x];
		}
	}
	gsl_rng_free(rng);
	return (double)sum / TIMES / r->n_layer;
}

START_TEST(a_recorded_answer_hits_as_many)
{
	struct experts_record *r;
	struct err err = {0};
	const char *dir;

	arena_init(&arena, NULL, NULL);
	struct model *m = experts_layers(&arena, 48, 128, 6);
	assert_ok(datadir_find(&arena, &dir, &err), err);
	assert_ok(experts_record_read(arena_printf(&arena, "%s/scenarios/traces/qwen3-30b-a3b.otr", dir), m, &arena, &r, &err), err);
	for (uint32_t n = 1; n <= 32; n *= 2)
		assert_close(typical_distinct(128, 6, n), recorded_distinct(r, TRACE_DECODE, n), 0.1);
	arena_release(&arena);
}
END_TEST

START_TEST(published_counts)
{
	arena_init(&arena, NULL, NULL);
	/* Qwen3-30B-A3B, 16 sequences: arXiv 2511.02237 */
	assert_close(typical_distinct(128, 8, 16), 48, 0.05);
	/* a mixture of 512, ten of them, four tokens: davetha/r9700-lru-expert-cache:docs/LOCALITY.md */
	assert_close(typical_distinct(512, 10, 4), 31.41, 0.05);
	/* Gemma 4 26B-A4B, 2, 8 and 32 tokens of an answer: Helldez/BigMoeOnEdge, counted in its trace */
	assert_close(typical_distinct(128, 6, 2), 10.6, 0.05);
	assert_close(typical_distinct(128, 6, 8), 26.9, 0.05);
	assert_close(typical_distinct(128, 6, 32), 49.6, 0.1);
	/* Mixtral: two tokens of a subject share 0.256 to 0.271 of their experts: efeslab/fiddler */
	double both = (4 - typical_distinct(8, 2, 2)) / 2;
	ck_assert_double_ge(both, 0.256);
	ck_assert_double_le(both, 0.271);
	arena_release(&arena);
}
END_TEST

/* ---- draws ---- */

START_TEST(the_same_seed_draws_the_same)
{
	arena_init(&arena, NULL, NULL);
	struct routing r = typical();
	struct experts_law law = {.locality = NAN, .typical = &r};
	const struct experts *a = experts_of(&law, experts_layers(&arena, 3, 128, 8)), *b = experts_of(&law, experts_layers(&arena, 3, 128, 8));
	gsl_rng *one = rng_new(2, 5, RNG_TEST), *other = rng_new(2, 5, RNG_TEST);
	uint32_t x[8], y[8];
	for (int i = 0; i < 1000; i++) {
		experts_draw(&a[i % 3], one, x);
		experts_draw(&b[i % 3], other, y);
		ck_assert_mem_eq(x, y, sizeof(x));
	}
	ck_assert_uint_ne(a[0].number[0], a[1].number[0]); /* layers have favourites of their own */
	gsl_rng_free(one);
	gsl_rng_free(other);
	arena_release(&arena);
}
END_TEST

START_TEST(draws_hit_as_many_as_the_chances_say)
{
	enum { TOKENS = 16, TIMES = 2000 };

	arena_init(&arena, NULL, NULL);
	struct routing r = typical();
	struct experts_law law = {.locality = NAN, .typical = &r};
	const struct experts *e = experts_of(&law, experts_layers(&arena, 1, 128, 4));
	gsl_rng *rng = rng_new(3, 1, RNG_TEST);
	uint64_t sum = 0;
	for (int t = 0; t < TIMES; t++) {
		bool hit[128] = {false};
		for (int i = 0; i < TOKENS; i++) {
			uint32_t used[4];
			experts_draw(e, rng, used);
			for (int k = 0; k < 4; k++)
				hit[used[k]] = true;
		}
		for (int x = 0; x < 128; x++)
			sum += hit[x];
	}
	assert_close((double)sum / TIMES, distinct(e, TOKENS), 0.01);
	gsl_rng_free(rng);
	arena_release(&arena);
}
END_TEST

/* ---- the file ---- */

START_TEST(between_two_numbers_of_experts_the_logarithm_counts)
{
	const struct routing_point point[] = {{8, 0.04}, {32, 0.24}, {128, 0.5}};
	const struct routing r = {3, point, 0};

	assert_close(routing_correlation(&r, 8), 0.04, 1e-12);
	assert_close(routing_correlation(&r, 16), 0.14, 1e-12);
	assert_close(routing_correlation(&r, 64), 0.37, 1e-12);
	assert_close(routing_correlation(&r, 128), 0.5, 1e-12);
	assert_close(routing_correlation(&r, 2), 0.04, 1e-12);
	assert_close(routing_correlation(&r, 897), 0.5, 1e-12);
}
END_TEST

static void assert_refused(const char *text, const char *want, int line)
{
	struct routing r;
	struct err err = {0};
	char path[32];

	test_file(path, text, strlen(text));
	ck_assert_int_eq(routing_read_file(path, &arena, &r, &err), -1);
	unlink(path);
	ck_assert_msg(strstr(err.msg, want) != NULL, "\"%s\" has no \"%s\"", err.msg, want);
	ck_assert_int_eq(err.line, line);
}

START_TEST(files_that_are_refused)
{
	arena_init(&arena, NULL, NULL);
	assert_refused("strays: {value: 2%, source: x}\n", "'correlation' is a map", 1);
	assert_refused("correlation: {8: {value: 4%, source: x}}\n", "'strays' is missing", 1);
	assert_refused("correlation:\n  8: {value: 4%, source: x}\n  8.5: {value: 5%, source: x}\n", "no number of experts", 3);
	assert_refused("correlation:\n  32: {value: 4%, source: x}\n  8: {value: 5%, source: x}\n", "8 experts come behind more", 3);
	assert_refused("correlation:\n  8: {value: 95%, source: x}\n", "value", 2);
	assert_refused("correlation:\n  8: {value: 4%}\n", "source", 2);
	assert_refused("corelation: {}\n", "did you mean 'correlation'?", 1);
	arena_release(&arena);
}
END_TEST

TEST_MAIN("routing", one_token_hits_what_a_token_uses, nothing_in_common_is_uniform, the_more_in_common_the_fewer_experts,
	two_experts_by_hand, strays_hit_the_rest, a_recorded_answer_hits_as_many, published_counts, the_same_seed_draws_the_same,
	draws_hit_as_many_as_the_chances_say, between_two_numbers_of_experts_the_logarithm_counts, files_that_are_refused)
