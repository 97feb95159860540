#include "sim/trace/experts.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"

/* Rows an expert above which the expected counts stand for drawn ones: then no expert of average chance stays unused
   (probability e^-8 each), so the bytes are the same, and drawing would cost more than the simulation. */
#define MANY_ROWS 8

#define TRIES 32 /* draws by alias before the walk over what is left */

/* Of weights to chances: correcting ends when all are this near, or after so many rounds. A chance of 1 has no weight. */
#define FIT_ERROR 1e-6
#define FIT_ROUNDS 30
#define CHANCE_MAX (1 - 1e-6)
#define CHANCE_MIN 1e-15 /* once in more tokens than anybody counted */

/* Of the threshold of scores that a layer takes. */
#define SCORE_MAX 40 /* beyond, chances are 0 or 1 */
#define SCORE_ERROR 1e-12

/* ---- chances ---- */

/* The chance of each expert to be among the first n_used. Give expert i an exponential clock of rate weight[i]: the order
   in which they ring is that of the draws, so i is drawn if fewer than n_used others ring before it,
 *
 *	chance[i] = integral over t of weight[i] e^(-weight[i] t) P(fewer than n_used of the others rang by t),
 *
   with the others' number from products of generating functions, cut off at n_used terms, of those before and those behind
   i. Over ln t the integrand falls off on both sides faster than exponentially, where the trapezoidal rule is as good
   as exact. */
struct chances {
	uint32_t n, k;
	const double *weight;
	double *chance;
	double *rang;   /* [n]: P(i rang) */
	double *ahead;  /* [n + 1][k]: P(j of the first i rang) */
	double *behind; /* [n + 1][k]: P(at most j of those from i on rang) */
};

static void add_at(struct chances *c, double t, double step)
{
	uint32_t n = c->n, k = c->k;

	memset(c->ahead, 0, k * sizeof(double));
	c->ahead[0] = 1;
	for (uint32_t j = 0; j < k; j++)
		c->behind[(size_t)n * k + j] = 1;
	for (uint32_t i = 0; i < n; i++) {
		const double *from = &c->ahead[(size_t)i * k];
		double *to = &c->ahead[(size_t)(i + 1) * k], rang = -expm1(-c->weight[i] * t);
		c->rang[i] = rang;
		to[0] = from[0] * (1 - rang);
		for (uint32_t j = 1; j < k; j++)
			to[j] = from[j] * (1 - rang) + from[j - 1] * rang;
	}
	for (uint32_t i = n; i-- > 0;) {
		const double *from = &c->behind[(size_t)(i + 1) * k], *ahead = &c->ahead[(size_t)i * k];
		double *to = &c->behind[(size_t)i * k], rang = c->rang[i], few = 0;
		for (uint32_t j = 0; j < k; j++)
			few += ahead[j] * from[k - 1 - j];
		c->chance[i] += step * c->weight[i] * t * (1 - rang) * few;
		to[0] = from[0] * (1 - rang);
		for (uint32_t j = 1; j < k; j++)
			to[j] = from[j] * (1 - rang) + from[j - 1] * rang;
	}
}

static int descending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x < y) - (x > y);
}

static const double *chances(const double *weight, uint32_t n, uint32_t k, struct arena *a)
{
	const double step = 0.2;
	struct chances c = {n, k, weight, arena_array(a, double, n), NULL, NULL, NULL};
	struct arena_mark mark = arena_mark(a);
	double *sorted = arena_array(a, double, n), sum = 0;

	c.rang = arena_array(a, double, n);
	c.ahead = arena_array(a, double, (size_t)(n + 1) * k);
	c.behind = arena_array(a, double, (size_t)(n + 1) * k);
	memcpy(sorted, weight, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), descending);
	/* From when next to none has rung to when all of the n_used likeliest have. */
	for (uint32_t i = 0; i < n; i++)
		sum += weight[i];
	double from = log(1e-9 / sum), to = log((log(k) + 40) / sorted[k - 1]);
	sum = 0;
	for (uint32_t i = 0; from + i * step < to; i++)
		add_at(&c, exp(from + i * step), step);
	for (uint32_t i = 0; i < n; i++)
		sum += c.chance[i];
	for (uint32_t i = 0; i < n; i++)
		c.chance[i] = fmin(1, c.chance[i] * k / sum);
	arena_rewind(a, mark);
	return c.chance;
}

static double shared(const double *chance, uint32_t n, uint32_t k)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += chance[i] * chance[i];
	return sum / k;
}

/* GSL's own memory is freed at once: what it points to comes from the arena. */
static gsl_ran_discrete_t alias_of(const double *weight, uint32_t n, struct arena *a)
{
	gsl_ran_discrete_t *g = gsl_ran_discrete_preproc(n, weight), own = {n, arena_array(a, size_t, n), arena_array(a, double, n)};

	memcpy(own.A, g->A, n * sizeof(*own.A));
	memcpy(own.F, g->F, n * sizeof(*own.F));
	gsl_ran_discrete_free(g);
	return own;
}

static const struct experts_ranks *ranks_new(const double *weight, uint32_t n, uint32_t k, struct arena *a)
{
	struct experts_ranks *r = arena_new(a, struct experts_ranks);

	*r = (struct experts_ranks){.n_expert = n, .n_used = k, .weight = weight};
	if (!weight || k == n || k > EXPERTS_USED_MAX) {
		double *chance = arena_array(a, double, n);
		for (uint32_t i = 0; i < n; i++)
			chance[i] = (double)k / n;
		r->chance = chance;
		r->weight = NULL;
	} else {
		r->chance = chances(weight, n, k, a);
		r->alias = alias_of(weight, n, a);
	}
	r->shared = shared(r->chance, n, k);
	return r;
}

static const double *zipf_weights(double s, uint32_t n, struct arena *a)
{
	double *weight = arena_array(a, double, n);

	for (uint32_t i = 0; i < n; i++)
		weight[i] = pow(i + 1, -s);
	return weight;
}

/* ---- layers ---- */

/* Weights for which the chances are the ones wanted: first those of clocks that are read at one time for all, which are near,
   then corrected by how far they are off. */
static const double *fit_weights(const double *want, uint32_t n, uint32_t k, struct arena *a)
{
	double *weight = arena_array(a, double, n), off = 1;

	for (uint32_t i = 0; i < n; i++)
		weight[i] = -log1p(-want[i]);
	for (int round = 0; round < FIT_ROUNDS && off > FIT_ERROR; round++) {
		struct arena_mark mark = arena_mark(a);
		const double *chance = chances(weight, n, k, a);
		off = 0;
		for (uint32_t i = 0; i < n; i++) {
			if (want[i] > 0) {
				off = fmax(off, fabs(chance[i] / want[i] - 1));
				weight[i] *= log1p(-want[i]) / log1p(-fmin(chance[i], CHANCE_MAX));
			}
		}
		arena_rewind(a, mark);
	}
	return weight;
}

static int counted_ranks(const struct experts_popularity *p, uint32_t layer, const struct model_layer *l, struct arena *a,
	const struct experts_ranks **out, struct err *err)
{
	uint32_t n = layer < p->n_layer ? p->n_expert[layer] : 0, k = l->n_expert_used, n_used = 0;
	double sum = 0, *want = arena_array(a, double, l->n_expert);

	if (n != l->n_expert)
		return err_set(err, ERR_INPUT, "the popularity counts %u experts in layer %u, but the model has %u there", n,
			layer, l->n_expert);
	for (uint32_t e = 0; e < n; e++) {
		sum += p->count[layer][e];
		n_used += p->count[layer][e] > 0;
	}
	if (n_used < k)
		return err_set(err, ERR_INPUT,
			"the popularity has %u experts in layer %u that were used at all, but a token uses %u there", n_used,
			layer, k);
	for (uint32_t e = 0; e < n; e++) {
		if (p->count[layer][e] > 0 && !(p->count[layer][e] / sum >= CHANCE_MIN))
			return err_set(err, ERR_INPUT, "the popularity of the experts in layer %u differs by more than can be counted: "
					"%g of %g", layer, p->count[layer][e], sum);
		want[e] = fmin(k * p->count[layer][e] / sum, CHANCE_MAX);
	}
	*out = ranks_new(k == n || k > EXPERTS_USED_MAX ? NULL : fit_weights(want, n, k, a), n, k, a);
	return 0;
}

/* Chances of experts whose own parts of the score lie at the middles of n equal shares of the normal distribution. */
static const double *common_chances(double c, uint32_t n, uint32_t k, struct arena *a)
{
	double *own = arena_array(a, double, n), *chance = arena_array(a, double, n), low = -SCORE_MAX, high = SCORE_MAX;

	for (uint32_t i = 0; i < n; i++)
		own[i] = sqrt(c) * gsl_cdf_ugaussian_Qinv((i + 0.5) / n);
	while (high - low > SCORE_ERROR) {
		double t = (low + high) / 2, sum = 0;
		for (uint32_t i = 0; i < n; i++)
			sum += chance[i] = gsl_cdf_ugaussian_P((own[i] + t) / sqrt(1 - c));
		*(sum < k ? &low : &high) = t;
	}
	return chance;
}

static const double *common_weights(double c, double strays, uint32_t n, uint32_t k, struct arena *a)
{
	double *want = arena_array(a, double, n);
	const double *chance = common_chances(c, n, k, a);

	for (uint32_t i = 0; i < n; i++)
		want[i] = fmax(fmin((1 - strays) * chance[i] + strays * k / n, CHANCE_MAX), CHANCE_MIN);
	return fit_weights(want, n, k, a);
}

static double correlation_of(const struct experts_law *law, uint32_t n_expert)
{
	return law->typical ? routing_correlation(law->typical, n_expert) : law->correlation;
}

static const double *ranked_weights(const struct experts_law *law, uint32_t n, uint32_t k, struct arena *a)
{
	double c = correlation_of(law, n);

	if (c > 0)
		return k == n || k > EXPERTS_USED_MAX ? NULL :
			common_weights(c, law->typical ? law->typical->strays : 0, n, k, a);
	return law->zipf > 0 ? zipf_weights(law->zipf, n, a) : NULL;
}

/* Of the law, for a layer; those of an earlier one of the same shape where the law allows. */
static int find_ranks(const struct experts_law *law, const struct model *m, uint32_t layer, const struct experts *done,
	struct arena *a, const struct experts_ranks **out, struct err *err)
{
	const struct model_layer *l = &m->layers[layer];

	if (law->popularity)
		return counted_ranks(law->popularity, layer, l, a, out, err);
	for (uint32_t i = 0; i < layer; i++) {
		*out = done[i].ranks;
		if (*out && (*out)->n_expert == l->n_expert && (*out)->n_used == l->n_expert_used)
			return 0;
	}
	*out = ranks_new(ranked_weights(law, l->n_expert, l->n_expert_used, a), l->n_expert, l->n_expert_used, a);
	return 0;
}

static int order_ranks(uint32_t n, uint64_t seed, uint32_t layer, struct arena *a, const uint32_t **out, struct err *err)
{
	uint32_t *number = arena_array(a, uint32_t, n);
	gsl_rng *rng = rng_new(seed, layer, RNG_POPULARITY);

	if (!rng)
		return err_set(err, ERR_NOMEM, "out of memory");
	for (uint32_t i = 0; i < n; i++)
		number[i] = i;
	gsl_ran_shuffle(rng, number, n, sizeof(*number));
	gsl_rng_free(rng);
	*out = number;
	return 0;
}

/* All alike, or what nobody asked for. */
static bool is_default(const struct experts_law *law)
{
	return !(law->zipf > 0) && !law->popularity && !(law->correlation > 0) && isnan(law->locality);
}

int experts_new(const struct experts_law *law, const struct model *m, uint64_t seed, struct arena *a,
	const struct experts **out, struct err *err)
{
	struct experts *e = arena_array(a, struct experts, m->n_layer);

	for (uint32_t i = 0; i < m->n_layer; i++) {
		const struct model_layer *l = &m->layers[i];
		if (!l->n_expert)
			continue;
		if (l->n_expert_used > l->n_expert || l->n_expert_used == 0)
			BUG("%u of %u experts", l->n_expert_used, l->n_expert);
		if (l->n_expert_used > EXPERTS_USED_MAX && l->n_expert_used < l->n_expert && !is_default(law))
			return err_set(err, ERR_INPUT, "a token uses %u of the %u experts of layer %u; beyond %d only 'uniform' is known",
				l->n_expert_used, l->n_expert, i, EXPERTS_USED_MAX);
		if (find_ranks(law, m, i, e, a, &e[i].ranks, err))
			return -1;
		if (e[i].ranks->weight && !law->popularity && order_ranks(l->n_expert, seed, i, a, &e[i].number, err))
			return -1;
		if (isnan(law->locality) || l->n_expert_used == l->n_expert)
			continue;
		e[i].keep = (law->locality - e[i].ranks->shared) / (1 - e[i].ranks->shared);
		if (e[i].keep < 0)
			return err_set(err, ERR_INPUT,
				"a locality of %g is less than the %.3g of a token's experts in layer %u that any other token "
				"hits as well",
				law->locality, e[i].ranks->shared, i);
	}
	*out = e;
	return 0;
}

/* ---- draws ---- */

uint64_t experts_rows_max(const struct experts *e)
{
	const struct experts_ranks *r = e->ranks;

	return r->n_used > EXPERTS_USED_MAX || r->n_used == r->n_expert ? 0 : (uint64_t)MANY_ROWS * r->n_expert / r->n_used;
}

static bool holds(const uint32_t *taken, uint32_t n, uint32_t x)
{
	for (uint32_t i = 0; i < n; i++)
		if (taken[i] == x)
			return true;
	return false;
}

/* All alike (Floyd's algorithm, CACM 30(9), 1987): one random number each. */
static void draw_alike(const struct experts_ranks *r, gsl_rng *rng, uint32_t *taken)
{
	for (uint32_t i = 0; i < r->n_used; i++) {
		uint32_t limit = r->n_expert - r->n_used + i;
		uint32_t x = (uint32_t)gsl_rng_uniform_int(rng, limit + 1);
		taken[i] = holds(taken, i, x) ? limit : x;
	}
}

/* One of those that n others have left. */
static uint32_t walk(const struct experts_ranks *r, gsl_rng *rng, const uint32_t *taken, uint32_t n)
{
	double left = 0;
	uint32_t last = 0;

	for (uint32_t x = 0; x < r->n_expert; x++)
		left += holds(taken, n, x) ? 0 : r->weight[x];
	left *= gsl_rng_uniform(rng);
	for (uint32_t x = 0; x < r->n_expert && left >= 0; x++) {
		if (r->weight[x] > 0 && !holds(taken, n, x)) {
			left -= r->weight[x];
			last = x;
		}
	}
	return last;
}

static void draw_weighted(const struct experts_ranks *r, gsl_rng *rng, uint32_t *taken)
{
	for (uint32_t i = 0; i < r->n_used; i++) {
		uint32_t x = 0;
		int tries = 0;
		do
			x = (uint32_t)gsl_ran_discrete(rng, &r->alias);
		while (holds(taken, i, x) && ++tries < TRIES);
		taken[i] = tries < TRIES ? x : walk(r, rng, taken, i);
	}
}

void experts_draw(const struct experts *e, gsl_rng *rng, uint32_t *used)
{
	if (e->ranks->weight)
		draw_weighted(e->ranks, rng, used);
	else
		draw_alike(e->ranks, rng, used);
	for (uint32_t i = 0; e->number && i < e->ranks->n_used; i++)
		used[i] = e->number[used[i]];
}

void experts_follow(const struct experts *e, gsl_rng *rng, double keep, const uint32_t *before, uint32_t *used)
{
	uint32_t n = e->ranks->n_used, drawn[EXPERTS_USED_MAX], next = 0;

	memcpy(drawn, used, n * sizeof(*drawn));
	for (uint32_t i = 0; i < n; i++) {
		if (holds(drawn, n, before[i]))
			continue;
		while (holds(before, n, drawn[next]))
			next++;
		if (gsl_rng_uniform(rng) < keep)
			used[next] = before[i];
		next++;
	}
}

/* ---- expected counts ---- */

/* Makes want (all positive) parts of total that are in proportion to it, but none larger than most. */
static void share_out(double *want, uint32_t n, double total, double most)
{
	double sum = 0;
	bool filled;

	for (uint32_t i = 0; i < n; i++)
		sum += want[i];
	do {
		double left = total, sum_left = sum;
		filled = false;
		for (uint32_t i = 0; i < n; i++) {
			if (want[i] > 0 && want[i] * total > most * sum) {
				left -= most;
				sum_left -= want[i];
				want[i] = -1; /* has all it can */
				filled = true;
			}
		}
		total = left;
		sum = sum_left;
	} while (filled);
	for (uint32_t i = 0; i < n; i++)
		want[i] = want[i] < 0 ? most : want[i] * total / sum;
}

/* The ranks that are hit: as many as on average, and each as often as it should be; systematic sampling does both with
   one random number. Returns how many. */
static uint32_t draw_hits(const struct experts *e, gsl_rng *rng, double rows, double chains, uint32_t *hit, double *mean)
{
	const struct experts_ranks *r = e->ranks;
	double sum = 1e-9 + (1 - 1e-9) * gsl_rng_uniform(rng); /* not 0: rounding must not lose one of n_used */
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->n_expert; i++) {
		double p = r->chance[i];
		/* A token that follows another brings an expert in with (1 - keep) p. */
		double missed = chains * log1p(-p) + (rows - chains) * log1p(-(1 - e->keep) * p), h = -expm1(missed), before = sum;
		sum += h;
		if (floor(sum) > floor(before)) {
			hit[n] = i;
			mean[n++] = fmax(rows * p / h - 1, 1e-9); /* beyond the first */
		}
	}
	return n;
}

static void expect_weighted(const struct experts *e, gsl_rng *rng, uint64_t rows, uint64_t n_chains, struct arena *a,
	uint64_t *count)
{
	struct arena_mark mark = arena_mark(a);
	uint32_t *hit = arena_array(a, uint32_t, e->ranks->n_expert);
	double *mean = arena_array(a, double, e->ranks->n_expert), sum = 0.5;
	uint32_t n = draw_hits(e, rng, (double)rows, (double)(n_chains < rows ? n_chains : rows), hit, mean);

	share_out(mean, n, (double)rows * e->ranks->n_used - n, (double)rows - 1);
	for (uint32_t i = 0; i < n; i++) {
		double before = floor(sum);
		sum += 1 + mean[i];
		count[e->number ? e->number[hit[i]] : hit[i]] = (uint64_t)(floor(sum) - before);
	}
	arena_rewind(a, mark);
}

void experts_expect(const struct experts *e, gsl_rng *rng, uint64_t rows, uint64_t n_chains, struct arena *a, uint64_t *count)
{
	const struct experts_ranks *r = e->ranks;
	uint64_t hits = rows * r->n_used;

	memset(count, 0, r->n_expert * sizeof(*count));
	if (r->weight) {
		expect_weighted(e, rng, rows, n_chains, a, count);
		return;
	}
	for (uint32_t i = 0; i < r->n_expert; i++)
		count[i] = hits / r->n_expert + (i < hits % r->n_expert);
}
