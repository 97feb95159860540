/*
 * rng.h - random numbers from GSL, one independent stream for each (master seed, run, purpose).
 *
 * The stream's own seed is a 64-bit mix of the three, so adding a purpose or a run never moves the
 * numbers of another.
 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <gsl/gsl_rng.h>

#include "base/base.h"

enum rng_purpose {
	RNG_ROUTING = 1,
	RNG_INTERVAL = 2,
	RNG_TEST = 3,
	RNG_LOOKAHEAD = 4,
	RNG_POPULARITY = 5,
	RNG_REQUESTS = 6,
	RNG_BOOTSTRAP = 7,
};

/* The caller ends with gsl_rng_free. NULL only when out of memory. */
gsl_rng *rng_new(uint64_t master_seed, uint64_t run, enum rng_purpose purpose);

/* The mixing function alone (the finaliser of MurmurHash3, public domain). */
uint64_t rng_mix(uint64_t x);

#endif
