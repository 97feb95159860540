/*
 * validate_summary.c - how far predictions are off, over rows weighted so that each group counts one.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/run/validate_rows.h"

struct weighted {
	double value, weight;
};

static int compare_weighted(const void *a, const void *b)
{
	double x = ((const struct weighted *)a)->value, y = ((const struct weighted *)b)->value;

	return (x > y) - (x < y);
}

/* The value at which the weights reach share q. */
static double weighted_quantile(struct weighted *w, size_t n, double q)
{
	double sum = 0, so_far = 0;

	if (n == 0)
		return NAN;
	qsort(w, n, sizeof(*w), compare_weighted);
	for (size_t i = 0; i < n; i++)
		sum += w[i].weight;
	for (size_t i = 0; i < n; i++) {
		so_far += w[i].weight;
		if (so_far >= q * sum * (1 - 1e-12))
			return w[i].value;
	}
	return w[n - 1].value;
}

static bool counts(const struct validate_row *r, enum validate_metric m)
{
	return r->metric == m && r->scored && r->status == VALIDATE_OK;
}

static size_t group_size(const struct validate *v, const struct validate_row *r, bool *first)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n; i++) {
		if (!counts(&v->row[i], r->metric) || strcmp(v->row[i].group, r->group) != 0)
			continue;
		if (n++ == 0)
			*first = &v->row[i] == r;
	}
	return n;
}

/* Share of pairs of one group, 10 % and more apart when measured, that the prediction orders alike; mean over groups. */
static double pair_order(const struct validate *v, enum validate_metric m)
{
	double sum = 0;
	size_t n_groups = 0;

	for (size_t g = 0; g < v->n; g++) {
		const struct validate_row *head = &v->row[g];
		bool first;
		double right = 0, pairs = 0;
		if (!counts(head, m) || group_size(v, head, &first) < 2 || !first)
			continue;
		for (size_t i = g; i < v->n; i++) {
			for (size_t j = i + 1; j < v->n; j++) {
				const struct validate_row *x = &v->row[i], *y = &v->row[j];
				if (!counts(x, m) || !counts(y, m) || strcmp(x->group, head->group) ||
					strcmp(y->group, head->group) || x->per_token != y->per_token ||
					strcmp(x->identity, y->identity) == 0)
					continue;
				double apart = x->measured / y->measured;
				if (fabs(log(apart)) <= log(1.1))
					continue;
				double predicted = x->predicted - y->predicted;
				pairs++;
				right += predicted == 0 ? 0.5 : (predicted > 0) == (apart > 1);
			}
		}
		if (pairs > 0) {
			sum += right / pairs;
			n_groups++;
		}
	}
	return n_groups ? sum / (double)n_groups : NAN;
}

void validate_summarise(const struct validate *v, enum validate_metric m, struct validate_summary *s, struct arena *a)
{
	struct weighted *error = arena_array(a, struct weighted, v->n), *ratio = arena_array(a, struct weighted, v->n),
			*log_error = arena_array(a, struct weighted, v->n);
	double covered = 0, weights = 0;

	*s = (struct validate_summary){0};
	for (size_t i = 0; i < v->n; i++) {
		const struct validate_row *r = &v->row[i];
		bool first = false;
		if (!counts(r, m))
			continue;
		double weight = 1.0 / (double)group_size(v, r, &first), q = r->predicted / r->measured;
		s->n_groups += first;
		error[s->n] = (struct weighted){fabs(q - 1), weight};
		log_error[s->n] = (struct weighted){fabs(log(q)), weight};
		ratio[s->n++] = (struct weighted){q, weight};
		weights += weight;
		covered += weight * (r->measured >= r->low80 && r->measured <= r->high80);
	}
	s->median_abs_error = weighted_quantile(error, s->n, 0.5);
	s->p90_abs_error = weighted_quantile(error, s->n, 0.9);
	s->median_abs_log_error = weighted_quantile(log_error, s->n, 0.5);
	s->bias = weighted_quantile(ratio, s->n, 0.5) - 1;
	s->coverage80 = s->n ? covered / weights : NAN;
	s->pair_order = pair_order(v, m);
}

/* Factors that are tried: how far apart, and how far from the one that fits the median. */
#define FACTOR_STEP 1.002
#define FACTOR_RANGE 30

static void thumb_errors(const struct weighted *ratio, double factor, struct weighted *error, struct validate_thumb *t)
{
	for (size_t i = 0; i < t->n; i++)
		error[i] = (struct weighted){fabs(factor * ratio[i].value - 1), ratio[i].weight};
	t->factor = factor;
	t->median_abs_error = weighted_quantile(error, t->n, 0.5);
	t->p90_abs_error = weighted_quantile(error, t->n, 0.9);
}

void validate_summarise_thumb(const struct validate *v, struct validate_thumb *t, struct arena *a)
{
	struct weighted *ratio = arena_array(a, struct weighted, v->n), *error = arena_array(a, struct weighted, v->n);
	bool first;

	*t = (struct validate_thumb){0};
	for (size_t i = 0; i < v->n; i++) {
		const struct validate_row *r = &v->row[i];
		if (counts(r, VALIDATE_DECODE) && isfinite(r->thumb))
			ratio[t->n++] = (struct weighted){r->thumb / r->measured, 1.0 / (double)group_size(v, r, &first)};
	}
	if (t->n == 0)
		return;
	double middle = weighted_quantile(ratio, t->n, 0.5);
	t->bias = middle - 1;
	t->median_abs_error = INFINITY;
	for (double f = 1 / middle / FACTOR_RANGE; f < FACTOR_RANGE / middle; f *= FACTOR_STEP) {
		struct validate_thumb one = *t;
		thumb_errors(ratio, f, error, &one);
		if (one.median_abs_error < t->median_abs_error)
			*t = one;
	}
}
