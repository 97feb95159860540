#include "base/rng.h"

uint64_t rng_mix(uint64_t x)
{
	x ^= x >> 33;
	x *= UINT64_C(0xff51afd7ed558ccd);
	x ^= x >> 33;
	x *= UINT64_C(0xc4ceb9fe1a85ec53);
	x ^= x >> 33;
	return x;
}

gsl_rng *rng_new(uint64_t master_seed, uint64_t run, enum rng_purpose purpose)
{
	/* rng_mix keeps 0 at 0, so an odd constant goes in before each step: else (0, 0, purpose) would
	   be mixed less than the rest. */
	const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
	uint64_t seed = rng_mix(master_seed + odd);
	seed = rng_mix((seed ^ run) + odd);
	seed = rng_mix((seed ^ (uint64_t)purpose) + odd);

	/* What gsl_rng_alloc does, but for its error handler: that one is global and aborts. */
	gsl_rng *r = malloc(sizeof(*r));
	void *state = calloc(1, gsl_rng_mt19937->size);
	if (!r || !state) {
		free(r);
		free(state);
		return NULL;
	}
	r->type = gsl_rng_mt19937;
	r->state = state;
	gsl_rng_set(r, (unsigned long)seed);
	return r;
}
