#include "base/hash.h"
#include "base/rng.h"

#include <gsl/gsl_randist.h>

#include "tests/test.h"

START_TEST(published_hashes)
{
	/* Test vectors of the FNV authors. */
	ck_assert_uint_eq(hash_bytes(HASH_INIT, "", 0), UINT64_C(0xcbf29ce484222325));
	ck_assert_uint_eq(hash_bytes(HASH_INIT, "a", 1), UINT64_C(0xaf63dc4c8601ec8c));
	ck_assert_uint_eq(hash_bytes(HASH_INIT, "foobar", 6), UINT64_C(0x85944171f73967e8));
}
END_TEST

START_TEST(texts_do_not_run_together)
{
	uint64_t x = hash_text(hash_text(HASH_INIT, "ab"), "c");
	uint64_t y = hash_text(hash_text(HASH_INIT, "a"), "bc");

	ck_assert_uint_ne(x, y);
	ck_assert_uint_eq(hash_text(HASH_INIT, "a"), hash_bytes(HASH_INIT, "a\0", 2));
}
END_TEST

START_TEST(mix_is_murmurs)
{
	/* The finaliser is a bijection that keeps 0, and is known to give this for 1. */
	ck_assert_uint_eq(rng_mix(0), 0);
	ck_assert_uint_eq(rng_mix(1), UINT64_C(0xb456bcfc34c2cb2c));
}
END_TEST

static unsigned long first(uint64_t seed, uint64_t run, enum rng_purpose purpose)
{
	gsl_rng *r = rng_new(seed, run, purpose);
	ck_assert_ptr_nonnull(r);
	unsigned long x = gsl_rng_get(r);
	gsl_rng_free(r);
	return x;
}

START_TEST(streams_repeat)
{
	gsl_rng *r = rng_new(7, 41, RNG_TEST), *s = rng_new(7, 41, RNG_TEST);

	for (int i = 0; i < 10000; i++)
		ck_assert_uint_eq(gsl_rng_get(r), gsl_rng_get(s));
	gsl_rng_free(r);
	gsl_rng_free(s);
}
END_TEST

START_TEST(streams_differ)
{
	unsigned long seen[300];
	size_t n = 0;

	for (uint64_t seed = 0; seed < 10; seed++)
		for (uint64_t run = 0; run < 10; run++)
			for (int p = RNG_ROUTING; p <= RNG_TEST; p++)
				seen[n++] = first(seed, run, (enum rng_purpose)p);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			ck_assert_uint_ne(seen[i], seen[j]);
}
END_TEST

START_TEST(first_numbers_are_even)
{
	/* The first number of each of many streams must itself look uniform: mean 1/2, s.d. sqrt(1/12 n). */
	double sum = 0;
	const int n = 20000;

	for (int run = 0; run < n; run++) {
		gsl_rng *r = rng_new(2385, (uint64_t)run, RNG_INTERVAL);
		sum += gsl_rng_uniform(r);
		gsl_rng_free(r);
	}
	ck_assert_double_lt(fabs(sum / n - 0.5), 4 * sqrt(1.0 / 12 / n));
}
END_TEST

TEST_MAIN("hash_rng", published_hashes, texts_do_not_run_together, mix_is_murmurs, streams_repeat,
	streams_differ, first_numbers_are_even)
