#include "base/stats.h"

#include <math.h>
#include <string.h>

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics.h>

#include "base/rng.h"

#define BOOTSTRAPS 100
#define NORMAL_90 1.2815515655446004 /* the 90 % quantile of the normal distribution */

static double *sorted_copy(const double *x, size_t n, struct arena *a)
{
	double *copy = arena_array(a, double, n);

	memcpy(copy, x, n * sizeof(*x));
	gsl_sort(copy, 1, n);
	return copy;
}

double stats_median(const double *x, size_t n, struct arena *a)
{
	return gsl_stats_median_from_sorted_data(sorted_copy(x, n, a), 1, n);
}

/* The value at rank (counted from 1, between two values when it is no whole number). */
static double at_rank(const double *sorted, size_t n, double rank)
{
	if (rank <= 1)
		return sorted[0];
	if (rank >= (double)n)
		return sorted[n - 1];
	size_t below = (size_t)rank;
	double part = rank - (double)below;
	return sorted[below - 1] * (1 - part) + sorted[below] * part;
}

struct stats_interval stats_next80(const double *x, size_t n, struct arena *a)
{
	const double *sorted = sorted_copy(x, n, a);

	if (n >= 9)
		return (struct stats_interval){
			at_rank(sorted, n, 0.1 * (double)(n + 1)), at_rank(sorted, n, 0.9 * (double)(n + 1))};
	double median = gsl_stats_median_from_sorted_data(sorted, 1, n), half = 0;
	if (n > 1)
		half = gsl_cdf_tdist_Pinv(0.9, (double)(n - 1)) * gsl_stats_sd(sorted, 1, n) *
		       sqrt(1 + 1 / (double)n);
	return (struct stats_interval){median - half, median + half};
}

double stats_spread(double value, struct stats_interval i)
{
	return (i.high - i.low) / 2 / NORMAL_90 / value;
}

struct points {
	gsl_multifit_robust_workspace *work;
	gsl_matrix *design; /* n x 2, each row divided by its scale */
	gsl_vector *y, *coefficients;
	gsl_matrix *covariance;
};

static int points_alloc(struct points *p, size_t n)
{
	*p = (struct points){gsl_multifit_robust_alloc(gsl_multifit_robust_bisquare, n, 2),
		gsl_matrix_alloc(n, 2), gsl_vector_alloc(n), gsl_vector_alloc(2), gsl_matrix_alloc(2, 2)};
	return p->work && p->design && p->y && p->coefficients && p->covariance ? 0 : -1;
}

static void points_free(struct points *p)
{
	gsl_multifit_robust_free(p->work);
	gsl_matrix_free(p->design);
	gsl_vector_free(p->y);
	gsl_vector_free(p->coefficients);
	gsl_matrix_free(p->covariance);
}

static void set_point(struct points *p, size_t i, double x, double y, double scale)
{
	gsl_matrix_set(p->design, i, 0, 1 / scale);
	gsl_matrix_set(p->design, i, 1, x / scale);
	gsl_vector_set(p->y, i, y / scale);
}

/* Not having settled after the iterations that GSL allows is no failure: the weights then move in a circle,
   and any of them will do. */
static int fit(struct points *p, double *a, double *b)
{
	int rc = gsl_multifit_robust(p->design, p->y, p->coefficients, p->covariance, p->work);

	*a = gsl_vector_get(p->coefficients, 0);
	*b = gsl_vector_get(p->coefficients, 1);
	return (rc == GSL_SUCCESS || rc == GSL_EMAXITER) && isfinite(*a) && isfinite(*b) ? 0 : -1;
}

static int bootstrap(struct points *p, const double *x, const double *y, const double *scale, size_t n,
	gsl_rng *rng, struct arena *arena, struct stats_line *out)
{
	double *a = arena_array(arena, double, BOOTSTRAPS), *b = arena_array(arena, double, BOOTSTRAPS);
	size_t done = 0;

	for (int i = 0; i < BOOTSTRAPS; i++) {
		for (size_t k = 0; k < n; k++) {
			size_t from = gsl_rng_uniform_int(rng, n);
			set_point(p, k, x[from], y[from], scale[from]);
		}
		/* A draw in which all x are the same determines no line. */
		if (!fit(p, &a[done], &b[done]))
			done++;
	}
	if (!done)
		return -1;
	out->a80 = stats_next80(a, done, arena);
	out->b80 = stats_next80(b, done, arena);
	return 0;
}

static int fit_all(struct points *p, const double *x, const double *y, const double *scale, size_t n,
	gsl_rng *rng, struct arena *a, struct stats_line *out)
{
	for (size_t i = 0; i < n; i++)
		set_point(p, i, x[i], y[i], scale[i]);
	if (fit(p, &out->a, &out->b))
		return -1;
	out->residual = arena_array(a, double, n);
	for (size_t i = 0; i < n; i++)
		out->residual[i] = (y[i] - out->a - out->b * x[i]) / scale[i];
	return bootstrap(p, x, y, scale, n, rng, a, out);
}

int stats_fit_line(const double *x, const double *y, const double *scale, size_t n, uint64_t seed,
	struct arena *a, struct stats_line *out)
{
	struct points p;
	size_t same = 0;

	while (same < n && x[same] == x[0])
		same++;
	if (n < 4 || same == n)
		return -1;
	/* GSL's own handler aborts the program. It is one for the process, so it is put back at once. */
	gsl_error_handler_t *handler = gsl_set_error_handler_off();
	gsl_rng *rng = rng_new(seed, 0, RNG_BOOTSTRAP);
	int rc = points_alloc(&p, n) || !rng ? -1 : fit_all(&p, x, y, scale, n, rng, a, out);
	points_free(&p);
	gsl_rng_free(rng);
	gsl_set_error_handler(handler);
	return rc;
}
