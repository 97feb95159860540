/*
 * spread.h - count, mean, deviation and quantiles of numbers that come one by one, in constant memory.
 *
 * Each octave has 64 bins, so a quantile is off by less than 1 %; the extremes are exact.
 */
#ifndef SIM_CACHE_SPREAD_H
#define SIM_CACHE_SPREAD_H

#include "base/base.h"

struct spread {
	uint64_t n, min, max;
	double mean, m2; /* m2: sum of squared distances from the mean */
	uint64_t bin[64 * 65];
};

void spread_add(struct spread *s, uint64_t x);
/* The least value that at least this share (0 to 1) of the numbers does not exceed; 0 of none. */
uint64_t spread_quantile(const struct spread *s, double share);
/* Standard deviation over mean: 1 for the gaps of a Poisson process. 0 when it has none. */
double spread_variation(const struct spread *s);

#endif
