/*
 * stats.h - what a handful of noisy repetitions says: thin over GSL.
 *
 * A median, an interval in which the next repetition falls four times in five, and a straight line that a few
 * wild points do not move. Nothing is assumed of how repetitions are distributed where there are enough of them.
 */
#ifndef BASE_STATS_H
#define BASE_STATS_H

#include "base/arena.h"

struct stats_interval {
	double low, high;
};

/* Half of x lie below; n >= 1. x is left as it is. */
double stats_median(const double *x, size_t n, struct arena *a);

/* Where the next value lies with 80 %. From 9 values on, between the order statistics (n + 1) x 10 % and 90 %,
   which holds for any distribution (and one wild value in twenty is outside); from fewer, by Student's t around the
   median, as if they were normal. One value alone has no spread: low = high. */
struct stats_interval stats_next80(const double *x, size_t n, struct arena *a);

/* The relative standard deviation of a normal distribution that has this interval; value > 0. */
double stats_spread(double value, struct stats_interval i);

/* y = a + b x. Distances are measured relative to scale[i] > 0 (in its units y is equally sure everywhere), and
   points far off count little or nothing (bisquare weights, gsl_multifit_robust). */
struct stats_line {
	double a, b;
	struct stats_interval a80, b80; /* bootstrap: the fit repeated on points drawn with replacement */
	double *residual;               /* (y - a - b x) / scale, n of them */
};

/* -1 when the points determine no line: fewer than 4, or x all the same. seed draws the bootstrap. */
int stats_fit_line(const double *x, const double *y, const double *scale, size_t n, uint64_t seed, struct arena *a,
		   struct stats_line *out);

#endif
