#include "sim/trace/experts.h"

#include <string.h>

/* Rows an expert above which the expected counts stand for drawn ones: then no expert stays unused (probability
   e^-8 each), so the bytes are the same, and drawing would cost more than the simulation. */
#define MANY_ROWS 8

/* n_used different experts of n_expert for one token (Floyd's algorithm, CACM 30(9), 1987): one random number each. */
static void draw_one(gsl_rng *rng, uint32_t n_expert, uint32_t n_used, uint64_t *count, uint32_t *taken)
{
	for (uint32_t i = 0; i < n_used; i++) {
		uint32_t limit = n_expert - n_used + i;
		uint32_t e = (uint32_t)gsl_rng_uniform_int(rng, limit + 1);
		for (uint32_t k = 0; k < i; k++) {
			if (taken[k] == e) {
				e = limit;
				break;
			}
		}
		taken[i] = e;
		count[e]++;
	}
}

void experts_draw_uniform(gsl_rng *rng, uint64_t tokens, uint32_t n_expert, uint32_t n_used, uint64_t *count)
{
	uint32_t taken[256];

	if (n_used > n_expert)
		BUG("%u of %u experts", n_used, n_expert);
	if (n_used > ARRAY_LEN(taken) || n_used == n_expert ||
		(double)tokens * n_used > (double)MANY_ROWS * n_expert) {
		uint64_t hits = tokens * n_used;
		for (uint32_t e = 0; e < n_expert; e++)
			count[e] = hits / n_expert + (e < hits % n_expert);
		return;
	}
	memset(count, 0, n_expert * sizeof(*count));
	for (uint64_t t = 0; t < tokens; t++)
		draw_one(rng, n_expert, n_used, count, taken);
}
