#include "sim/trace/requests.h"

#include <gsl/gsl_cdf.h>

#include "base/rng.h"
#include "tests/test.h"

#define N 200000
#define BINS 40
#define UNLIKELY 1e-5 /* of a right program, with these seeds */

/* Of values whose distribution function is `below`: in bins of equal chance they should be equally many. */
static double uniform_p(const double *below, int n)
{
	double count[BINS] = {0}, x = 0, want = (double)n / BINS;

	for (int i = 0; i < n; i++)
		count[(int)fmin(below[i] * BINS, BINS - 1)]++;
	for (int b = 0; b < BINS; b++)
		x += (count[b] - want) * (count[b] - want) / want;
	return gsl_cdf_chisq_Q(x, BINS - 1);
}

static double gaps_p(double rate_s, double cv)
{
	static double below[N];
	struct requests_law law = {.rate_s = rate_s, .gap_cv = cv, .input = {100, 1}, .output = {100, 1}};
	struct otr_request r = {0};
	gsl_rng *rng = rng_new(1, 1, RNG_TEST);
	double shape = 1 / (cv * cv);

	for (int i = 0; i < N; i++) {
		uint64_t before = r.arrival_ns;
		requests_next(&law, rng, &r);
		below[i] = gsl_cdf_gamma_P((double)(r.arrival_ns - before) / 1e9, shape, 1 / (rate_s * shape));
	}
	gsl_rng_free(rng);
	return uniform_p(below, N);
}

START_TEST(gaps_are_of_their_distribution)
{
	ck_assert(gaps_p(2.385, 1) > UNLIKELY);
	ck_assert(gaps_p(0.385, 0.4) > UNLIKELY);
	ck_assert(gaps_p(2.385, 1.7) > UNLIKELY);
}
END_TEST

/* A whole length stands for all values that are rounded to it: one of them, drawn evenly, has the distribution. */
START_TEST(lengths_are_log_normal)
{
	static double below[N];
	const struct requests_length input = {2385, 0.7}, output = {385, 1.9};
	struct requests_law law = {.rate_s = 1, .gap_cv = 1, .input = input, .output = output};
	struct otr_request r = {0};
	gsl_rng *rng = rng_new(1, 2, RNG_TEST), *spread = rng_new(1, 3, RNG_TEST);
	double sum = 0, variance = log1p(input.cv * input.cv);

	for (int i = 0; i < N; i++) {
		requests_next(&law, rng, &r);
		below[i] = gsl_cdf_lognormal_P((double)r.input_tokens - 0.5 + gsl_rng_uniform(spread),
			log(input.mean) - variance / 2, sqrt(variance));
		sum += (double)r.output_tokens;
	}
	ck_assert(uniform_p(below, N) > UNLIKELY);
	/* 4.4 deviations of the mean of N, and at most half a token that becomes one */
	assert_close(sum / N, output.mean, 4.4 * output.cv / sqrt(N) + 0.5 / output.mean);
	gsl_rng_free(rng);
	gsl_rng_free(spread);
}
END_TEST

START_TEST(recorded_lengths_stay_in_pairs)
{
	static const uint64_t pairs[3][2] = {{10, 1}, {200, 2}, {3000, 3}};
	struct requests_law law = {.rate_s = 1, .gap_cv = 1, .recorded = pairs, .n_recorded = 3};
	struct otr_request r = {0};
	gsl_rng *rng = rng_new(1, 4, RNG_TEST);
	double count[3] = {0}, x = 0;

	for (int i = 0; i < N; i++) {
		requests_next(&law, rng, &r);
		ck_assert(r.output_tokens >= 1 && r.output_tokens <= 3);
		ck_assert_uint_eq(r.input_tokens, pairs[r.output_tokens - 1][0]);
		count[r.output_tokens - 1]++;
	}
	for (int i = 0; i < 3; i++)
		x += (count[i] - N / 3.0) * (count[i] - N / 3.0) / (N / 3.0);
	ck_assert(gsl_cdf_chisq_Q(x, 2) > UNLIKELY);
	gsl_rng_free(rng);
}
END_TEST

TEST_MAIN("requests", gaps_are_of_their_distribution, lengths_are_log_normal, recorded_lengths_stay_in_pairs)
