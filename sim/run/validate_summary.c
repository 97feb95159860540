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

bool validate_above_bound(const struct validate_row *r)
{
	return r->metric == VALIDATE_DECODE && r->status == VALIDATE_OK && r->measured > r->upper_bound;
}

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

static bool ran(const struct validate_row *r)
{
	return r->scored && r->status == VALIDATE_OK;
}

static bool counts(const struct validate_row *r, enum validate_metric m)
{
	return r->metric == m && ran(r);
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

/* ---- rows and groups by themselves ---- */

static double times_off(const struct validate_row *r)
{
	return fabs(log(r->predicted / r->measured));
}

static int compare_worst(const void *a, const void *b)
{
	const struct validate_row *x = *(const struct validate_row *const *)a, *y = *(const struct validate_row *const *)b;
	double dx = times_off(x), dy = times_off(y);

	return dx != dy ? (dx < dy) - (dx > dy) : (x > y) - (x < y);
}

size_t validate_worst(const struct validate *v, const struct validate_row **out, size_t n, struct arena *a)
{
	const struct validate_row **all = arena_array(a, const struct validate_row *, v->n);
	size_t n_all = 0;

	for (size_t i = 0; i < v->n; i++)
		if (ran(&v->row[i]))
			all[n_all++] = &v->row[i];
	qsort(all, n_all, sizeof(*all), compare_worst);
	n = n < n_all ? n : n_all;
	for (size_t i = 0; i < n; i++)
		out[i] = all[i];
	return n;
}

/* Letters, then digits, then two of them. */
static const char *mark_of(size_t i, struct arena *a)
{
	static const char marks[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	size_t n = sizeof(marks) - 1;

	return i < n ? arena_printf(a, "%c", marks[i]) : arena_printf(a, "%c%c", marks[i / n - 1], marks[i % n]);
}

size_t validate_groups(const struct validate *v, const struct validate_group **out, struct arena *a)
{
	struct validate_group *group = arena_array(a, struct validate_group, v->n);
	struct weighted *ratio = arena_array(a, struct weighted, v->n);
	size_t n = 0;

	for (size_t i = 0; i < v->n; i++) {
		bool new = ran(&v->row[i]);
		for (size_t k = 0; k < n && new; k++)
			new = strcmp(group[k].name, v->row[i].group) != 0;
		if (!new)
			continue;
		struct validate_group *g = &group[n];
		*g = (struct validate_group){.name = v->row[i].group, .mark = mark_of(n, a)};
		n++;
		for (size_t k = i; k < v->n; k++)
			if (ran(&v->row[k]) && strcmp(v->row[k].group, g->name) == 0)
				ratio[g->n++] = (struct weighted){v->row[k].predicted / v->row[k].measured, 1};
		g->median = weighted_quantile(ratio, g->n, 0.5);
		g->least = ratio[0].value;
		g->most = ratio[g->n - 1].value;
	}
	*out = group;
	return n;
}
