#include "sim/core/maxmin.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <stdbool.h>

#include "base/rng.h"
#include "tests/test.h"

#define MAX_RESOURCES 12
#define MAX_FLOWS 20

/* Capacities, and flows over them: everything a case needs. */
struct system {
	struct arena arena;
	struct maxmin mm;
	double capacity[MAX_RESOURCES];
	int n_resources;
	struct maxmin_hop hop[MAX_FLOWS][MAX_RESOURCES];
	struct maxmin_flow flow[MAX_FLOWS];
	struct maxmin_flow *list[MAX_FLOWS];
	size_t n_flows;
};

static void resource(struct system *s, double capacity)
{
	s->capacity[s->n_resources++] = capacity;
}

/* A flow with a cap and no path yet. */
static void flow(struct system *s, double cap)
{
	struct maxmin_flow *f = &s->flow[s->n_flows];

	*f = (struct maxmin_flow){.hop = s->hop[s->n_flows], .cap = cap, .rate = NAN, .bottleneck = -77};
	s->list[s->n_flows++] = f;
}

/* Leads the flow added last over a resource. */
static void over(struct system *s, int r, double weight)
{
	struct maxmin_flow *f = &s->flow[s->n_flows - 1];

	s->hop[s->n_flows - 1][f->n_hops++] = (struct maxmin_hop){r, weight};
}

static void solve_from(struct system *s, double keep)
{
	arena_init(&s->arena, NULL, NULL);
	maxmin_init(&s->mm, s->capacity, s->n_resources, &s->arena);
	maxmin_solve(&s->mm, s->list, s->n_flows, keep);
	arena_release(&s->arena);
}

static void solve(struct system *s)
{
	solve_from(s, 0);
}

#define assert_flow(s, i, want_rate, want_bottleneck)                                                        \
	do {                                                                                                 \
		assert_close((s).flow[i].rate, want_rate, 1e-15);                                            \
		ck_assert_int_eq((s).flow[i].bottleneck, want_bottleneck);                                   \
	} while (0)

START_TEST(one_alone)
{
	/*
	 *     1 a <= 25.3e9   (link)
	 *   3.5 a <= 84.7e9   (bus, used three and a half times a byte)
	 *       a <= 24.9e9   (cap)
	 *
	 * The bus is full first: a = 24.2e9. Without the bus the cap: 24.9e9; without both the link.
	 */
	struct system s = {0};
	resource(&s, 25.3e9);
	resource(&s, 84.7e9);
	flow(&s, 24.9e9);
	over(&s, 0, 1);
	over(&s, 1, 3.5);
	solve(&s);
	assert_flow(s, 0, 84.7e9 / 3.5, 1);
	s.flow[0].n_hops = 1;
	solve(&s);
	assert_flow(s, 0, 24.9e9, MAXMIN_CAP);
	s.flow[0].cap = INFINITY;
	solve(&s);
	assert_flow(s, 0, 25.3e9, 0);
}
END_TEST

START_TEST(a_shared_link)
{
	/*
	 *   a + b + c <= 2.385e9
	 *
	 * Everybody has a third, and the link is to blame.
	 */
	struct system s = {0};
	resource(&s, 2.385e9);
	for (int i = 0; i < 3; i++) {
		flow(&s, INFINITY);
		over(&s, 0, 1);
	}
	solve(&s);
	for (int i = 0; i < 3; i++)
		assert_flow(s, i, 0.795e9, 0);
}
END_TEST

START_TEST(two_links)
{
	/*
	 *   a     + c <= 10.7e9   (link 0)
	 *       b + c <= 25.3e9   (link 1)
	 *
	 * Link 0 is full at 5.35e9: a and c stop. b takes what is left of link 1: 19.95e9.
	 */
	struct system s = {0};
	resource(&s, 10.7e9);
	resource(&s, 25.3e9);
	flow(&s, INFINITY);
	over(&s, 0, 1);
	flow(&s, INFINITY);
	over(&s, 1, 1);
	flow(&s, INFINITY);
	over(&s, 0, 1);
	over(&s, 1, 1);
	solve(&s);
	assert_flow(s, 0, 5.35e9, 0);
	assert_flow(s, 1, 19.95e9, 1);
	assert_flow(s, 2, 5.35e9, 0);
}
END_TEST

START_TEST(the_drawing_in_the_header)
{
	/*
	 *   a             <= 10   (link 0)
	 *   a + b + 2 c   <= 12   (link 1: c uses it twice a byte)
	 *
	 * All rise together to 3, where link 1 is full; link 0 is not.
	 */
	struct system s = {0};
	resource(&s, 10);
	resource(&s, 12);
	flow(&s, INFINITY);
	over(&s, 0, 1);
	over(&s, 1, 1);
	flow(&s, INFINITY);
	over(&s, 1, 1);
	flow(&s, INFINITY);
	over(&s, 1, 2);
	solve(&s);
	for (int i = 0; i < 3; i++)
		assert_flow(s, i, 3, 1);
}
END_TEST

START_TEST(caps_leave_to_others)
{
	/*
	 *   a + b + c <= 55.3e9
	 *   a         <= 7.1e9   (cap)
	 *       b     <= 24.2e9  (cap: more than a third, more than its share after a stopped)
	 *
	 * a stops at its cap; b and c share the rest, 24.1e9 each, just below b's cap.
	 */
	struct system s = {0};
	resource(&s, 55.3e9);
	static const double cap[] = {7.1e9, 24.2e9, INFINITY};
	for (int i = 0; i < 3; i++) {
		flow(&s, cap[i]);
		over(&s, 0, 1);
	}
	solve(&s);
	assert_flow(s, 0, 7.1e9, MAXMIN_CAP);
	assert_flow(s, 1, 24.1e9, 0);
	assert_flow(s, 2, 24.1e9, 0);

	/* With a cap of 24 b stops there, and c has 24.2e9. */
	s.flow[1].cap = 24e9;
	solve(&s);
	assert_flow(s, 1, 24e9, MAXMIN_CAP);
	assert_flow(s, 2, 24.2e9, 0);
}
END_TEST

START_TEST(nothing_is_full)
{
	/*
	 *   a + b <= 55.3e9
	 *   a <= 7.1e9, b <= 24.2e9   (caps)
	 *
	 * Both have their caps and the link has room left.
	 */
	struct system s = {0};
	resource(&s, 55.3e9);
	flow(&s, 7.1e9);
	over(&s, 0, 1);
	flow(&s, 24.2e9);
	over(&s, 0, 1);
	solve(&s);
	assert_flow(s, 0, 7.1e9, MAXMIN_CAP);
	assert_flow(s, 1, 24.2e9, MAXMIN_CAP);
}
END_TEST

START_TEST(a_bus_used_twice)
{
	/*
	 *   2 a +     b <= 90.6e9   (DRAM: a pageable copy reads, writes the staging buffer)
	 *     a         <= 25.3e9   (link)
	 *
	 * Rates, not loads, are equal: a = b = 30.2e9 would fill DRAM, but the link stops a at 25.3e9;
	 * b = 90.6e9 - 2 * 25.3e9 = 40e9.
	 */
	struct system s = {0};
	resource(&s, 90.6e9);
	resource(&s, 25.3e9);
	flow(&s, INFINITY);
	over(&s, 0, 2);
	over(&s, 1, 1);
	flow(&s, INFINITY);
	over(&s, 0, 1);
	solve(&s);
	assert_flow(s, 0, 25.3e9, 1);
	assert_flow(s, 1, 40e9, 0);

	/* With a faster link both stop at DRAM, at the same rate. */
	s.capacity[1] = 30.3e9;
	solve(&s);
	assert_flow(s, 0, 30.2e9, 0);
	assert_flow(s, 1, 30.2e9, 0);
}
END_TEST

START_TEST(the_bottleneck_moves)
{
	/*
	 *   a + b     <= c0   (link 0)
	 *       b + c <= c1   (link 1)
	 *   b <= cap
	 *
	 * What b stops at, and who gains, as link 0 grows past link 1, and then the cap comes down.
	 */
	static const struct {
		double c0, c1, cap, a, b, c;
		int why_a, why_b, why_c;
	} cases[] = {
		{20.6e9, 31.4e9, INFINITY, 10.3e9, 10.3e9, 21.1e9, 0, 0, 1},
		{31.2e9, 31.4e9, INFINITY, 15.6e9, 15.6e9, 15.8e9, 0, 0, 1},
		{31.6e9, 31.4e9, INFINITY, 15.9e9, 15.7e9, 15.7e9, 0, 1, 1},
		{63.1e9, 31.4e9, INFINITY, 47.4e9, 15.7e9, 15.7e9, 0, 1, 1},
		{63.1e9, 31.4e9, 15.1e9, 48.0e9, 15.1e9, 16.3e9, 0, MAXMIN_CAP, 1},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct system s = {0};
		resource(&s, cases[i].c0);
		resource(&s, cases[i].c1);
		flow(&s, INFINITY);
		over(&s, 0, 1);
		flow(&s, cases[i].cap);
		over(&s, 0, 1);
		over(&s, 1, 1);
		flow(&s, INFINITY);
		over(&s, 1, 1);
		solve(&s);
		assert_flow(s, 0, cases[i].a, cases[i].why_a);
		assert_flow(s, 1, cases[i].b, cases[i].why_b);
		assert_flow(s, 2, cases[i].c, cases[i].why_c);
	}
}
END_TEST

START_TEST(a_chain_of_bottlenecks)
{
	/*
	 *   x0 + x1           <= 10.3e9
	 *        x1 + x2      <= 20.9e9
	 *             x2 + x3 <= 41.1e9
	 *                  x3 <= 99.7e9
	 *
	 * One resource fills in each round: 5.15, then 15.75, then 25.35.
	 */
	struct system s = {0};
	resource(&s, 41.1e9);
	resource(&s, 10.3e9);
	resource(&s, 99.7e9);
	resource(&s, 20.9e9);
	static const int path[][2] = {{1, 1}, {3, 1}, {0, 3}, {2, 0}};
	for (int i = 0; i < 4; i++) {
		flow(&s, INFINITY);
		over(&s, path[i][0], 1);
		if (path[i][1] != path[i][0])
			over(&s, path[i][1], 1);
	}
	solve(&s);
	assert_flow(s, 0, 5.15e9, 1);
	assert_flow(s, 1, 5.15e9, 1);
	assert_flow(s, 2, 15.75e9, 3);
	assert_flow(s, 3, 25.35e9, 0);
}
END_TEST

START_TEST(ties)
{
	/*
	 *   a + b     <= 15.1e9   (link 0)
	 *       b + c <= 15.1e9   (link 1)
	 *           c <= 7.55e9   (cap)
	 *       b     <= 7.55e9   (link 2)
	 *
	 * Everything is full at once, at 7.55e9. Whatever is blamed must be full and on the flow's path.
	 */
	struct system s = {0};
	resource(&s, 15.1e9);
	resource(&s, 15.1e9);
	resource(&s, 7.55e9);
	flow(&s, INFINITY);
	over(&s, 0, 1);
	flow(&s, INFINITY);
	over(&s, 0, 1);
	over(&s, 1, 1);
	over(&s, 2, 1);
	flow(&s, 7.55e9);
	over(&s, 1, 1);
	solve(&s);
	assert_flow(s, 0, 7.55e9, 0);
	assert_close(s.flow[1].rate, 7.55e9, 1e-15);
	ck_assert_int_ge(s.flow[1].bottleneck, 0);
	assert_close(s.flow[2].rate, 7.55e9, 1e-15);
	ck_assert(s.flow[2].bottleneck == 1 || s.flow[2].bottleneck == MAXMIN_CAP);
}
END_TEST

START_TEST(a_cap_and_no_path)
{
	/*
	 *   a + b <= 2.385e9
	 *       c <= 7.1e9    (cap alone)
	 *       d <= 1e-3     (cap alone)
	 *
	 * c and d have nothing to do with the others, whatever the order.
	 */
	for (int first = 0; first < 2; first++) {
		struct system s = {0};
		int ab = first ? 2 : 0, cd = first ? 0 : 2;
		resource(&s, 2.385e9);
		for (int i = 0; i < 4; i++) {
			bool path = i == ab || i == ab + 1;
			flow(&s, path ? INFINITY : i == cd ? 7.1e9 : 1e-3);
			if (path)
				over(&s, 0, 1);
		}
		solve(&s);
		assert_flow(s, ab, 1.1925e9, 0);
		assert_flow(s, ab + 1, 1.1925e9, 0);
		assert_flow(s, cd, 7.1e9, MAXMIN_CAP);
		assert_flow(s, cd + 1, 1e-3, MAXMIN_CAP);
	}
	/* And one all alone. */
	struct system s = {0};
	flow(&s, 7.1e9);
	solve(&s);
	assert_flow(s, 0, 7.1e9, MAXMIN_CAP);
}
END_TEST

START_TEST(many_at_the_same_cap)
{
	/*
	 *   x0 + … + x18 + y <= 55.3e9
	 *   xi <= 2.385e9   (cap)
	 *
	 * All nineteen stop at their cap, exactly there; y has the rest.
	 */
	struct system s = {0};
	resource(&s, 55.3e9);
	for (int i = 0; i < 20; i++) {
		flow(&s, i == 11 ? INFINITY : 2.385e9);
		over(&s, 0, 1);
	}
	solve(&s);
	for (int i = 0; i < 20; i++) {
		if (i == 11) {
			assert_close(s.flow[i].rate, 55.3e9 - 19 * 2.385e9, 1e-14);
			ck_assert_int_eq(s.flow[i].bottleneck, 0);
		} else {
			ck_assert(s.flow[i].rate == 2.385e9);
			ck_assert_int_eq(s.flow[i].bottleneck, MAXMIN_CAP);
		}
	}
}
END_TEST

START_TEST(a_heavy_one_stops_before_a_light_one)
{
	/*
	 *   1e9 a + 1e-9 b <= 1.5e9    (b's weight is lost in the sum of both, and b must still stop)
	 *       a          <= 0.5      (cap)
	 *
	 * a stops at its cap and uses 0.5e9; b has 1e9 / 1e-9 = 1e18.
	 */
	struct system s = {0};
	resource(&s, 1.5e9);
	flow(&s, 0.5);
	over(&s, 0, 1e9);
	flow(&s, INFINITY);
	over(&s, 0, 1e-9);
	solve(&s);
	assert_flow(s, 0, 0.5, MAXMIN_CAP);
	assert_flow(s, 1, 1e18, 0);
}
END_TEST

START_TEST(a_workspace_is_used_again)
{
	/* Many flows, then fewer and fewer, then many: nothing is left over from the solution before. */
	struct system s = {0};
	struct arena a;
	struct maxmin mm;
	double left = 55.3e9;

	arena_init(&a, NULL, NULL);
	resource(&s, 55.3e9);
	resource(&s, 41.1e9);
	for (int i = 0; i < 20; i++) {
		flow(&s, 1e9 + i);
		over(&s, i % 2, 1);
	}
	maxmin_init(&mm, s.capacity, 2, &a);
	for (size_t n = 20; n > 0; n = n * 2 / 3) {
		maxmin_solve(&mm, s.list + 20 - n, n, 0);
		for (size_t i = 20 - n; i < 20; i++)
			ck_assert(s.flow[i].rate == s.flow[i].cap);
	}
	s.flow[0].cap = INFINITY;
	maxmin_solve(&mm, s.list, 20, 0);
	for (int i = 2; i < 20; i += 2)
		left -= s.flow[i].cap;
	assert_close(s.flow[0].rate, left, 1e-14);
	arena_release(&a);
}
END_TEST

/* ---- random systems ---- */

/* Between low and high, as many in each decade. */
static double log_uniform(gsl_rng *r, double low, double high)
{
	return exp(gsl_ran_flat(r, log(low), log(high)));
}

/* spread: weights from 1/spread to spread. */
static void random_system(struct system *s, gsl_rng *r, double spread)
{
	int n_resources = 1 + (int)gsl_rng_uniform_int(r, MAX_RESOURCES);
	int n_flows = 1 + (int)gsl_rng_uniform_int(r, MAX_FLOWS);
	double low = gsl_rng_uniform_int(r, 2) ? 1e9 : 1e3, high = gsl_rng_uniform_int(r, 2) ? 1e10 : 1e15;
	double same_cap = log_uniform(r, low / 10, high);

	s->n_resources = 0;
	s->n_flows = 0;
	for (int i = 0; i < n_resources; i++) {
		/* Now and then the same capacity again, for ties. */
		bool again = i && gsl_rng_uniform_int(r, 4) == 0;
		resource(s, again ? s->capacity[i - 1] : log_uniform(r, low, high));
	}
	for (int i = 0; i < n_flows; i++) {
		int max_hops = n_resources < 6 ? n_resources : 6;
		int n_hops = (int)gsl_rng_uniform_int(r, (unsigned long)max_hops + 1);
		unsigned long kind = n_hops ? gsl_rng_uniform_int(r, 4) : 2;
		int order[MAX_RESOURCES];

		flow(s, kind < 2 ? INFINITY : kind == 2 ? log_uniform(r, low / 10, high) : same_cap);
		for (int k = 0; k < n_resources; k++)
			order[k] = k;
		gsl_ran_shuffle(r, order, (size_t)n_resources, sizeof(order[0]));
		for (int h = 0; h < n_hops; h++)
			over(s, order[h], gsl_rng_uniform_int(r, 2) ? 1 : log_uniform(r, 1 / spread, spread));
	}
}

/* Holds the solution to the definition: no resource is used beyond its capacity, and each flow is at its cap,
   or crosses a full resource on which nobody is faster; the one that is blamed, at that. */
static void assert_fair(const struct system *s, double tolerance)
{
	double used[MAX_RESOURCES] = {0}, fastest[MAX_RESOURCES] = {0};

	for (size_t i = 0; i < s->n_flows; i++) {
		const struct maxmin_flow *f = &s->flow[i];
		ck_assert_msg(f->rate > 0 && f->rate <= f->cap && isfinite(f->rate),
			"flow %zu of %zu: rate %.17g, cap %.17g", i, s->n_flows, f->rate, f->cap);
		for (int h = 0; h < f->n_hops; h++) {
			int r = f->hop[h].resource;
			used[r] += f->hop[h].weight * f->rate;
			fastest[r] = fmax(fastest[r], f->rate);
		}
	}
	for (int r = 0; r < s->n_resources; r++)
		ck_assert_msg(used[r] <= s->capacity[r] * (1 + tolerance), "resource %d: %.17g used of %.17g",
			r, used[r], s->capacity[r]);
	for (size_t i = 0; i < s->n_flows; i++) {
		const struct maxmin_flow *f = &s->flow[i];
		int r = f->bottleneck;
		if (r == MAXMIN_CAP) {
			ck_assert(f->rate == f->cap);
			continue;
		}
		bool crosses = false;
		for (int h = 0; h < f->n_hops; h++)
			crosses = crosses || f->hop[h].resource == r;
		ck_assert(crosses);
		ck_assert_msg(used[r] >= s->capacity[r] * (1 - tolerance),
			"resource %d is to blame, but %.17g used of %.17g", r, used[r], s->capacity[r]);
		ck_assert_msg(f->rate >= fastest[r] * (1 - tolerance),
			"flow %zu: %.17g, but another has %.17g", i, f->rate, fastest[r]);
	}
}

START_TEST(random_ones_are_fair)
{
	gsl_rng *r = rng_new(2385, 1, RNG_TEST);
	struct system s;

	for (int i = 0; i < 5000; i++) {
		memset(&s, 0, sizeof(s));
		random_system(&s, r, i % 2 ? 4 : 1e3);
		solve(&s);
		assert_fair(&s, 1e-9);
	}
	gsl_rng_free(r);
}
END_TEST

/* A copy that points into itself. */
static void copy(struct system *to, const struct system *from)
{
	*to = *from;
	for (size_t k = 0; k < to->n_flows; k++) {
		to->flow[k].hop = to->hop[k];
		to->list[k] = &to->flow[k];
	}
}

START_TEST(the_slower_ones_keep_theirs)
{
	/*
	 *   a + b     <= 10.3e9   (link 0)
	 *       b + c <= 41.1e9   (link 1)
	 *
	 * a = b = 5.15e9, c = 35.95e9. When d comes on link 1 it has at least a third of it, 13.7e9; flows
	 * slower than that keep what they have, to the last digit, even if it is not what a solution from
	 * nothing gives.
	 */
	struct system s = {0};
	resource(&s, 10.3e9);
	resource(&s, 41.1e9);
	flow(&s, INFINITY);
	over(&s, 0, 1);
	flow(&s, INFINITY);
	over(&s, 0, 1);
	over(&s, 1, 1);
	flow(&s, INFINITY);
	over(&s, 1, 1);
	solve(&s);
	assert_flow(s, 2, 35.95e9, 1);
	s.flow[0].rate = s.flow[1].rate = 5.1e9;
	flow(&s, INFINITY);
	over(&s, 1, 1);
	solve_from(&s, 13.7e9);
	ck_assert(s.flow[0].rate == 5.1e9 && s.flow[1].rate == 5.1e9);
	ck_assert_int_eq(s.flow[0].bottleneck, 0);
	assert_flow(s, 2, 18e9, 1);
	assert_flow(s, 3, 18e9, 1);
}
END_TEST

START_TEST(rounding_starves_nobody)
{
	/*
	 *   3 a + 1e-20 b <= 0.3    (a keeps 0.1, and 3 * 0.1 > 0.3 in doubles: nothing is left, or less)
	 *               b <= 0.7    (cap)
	 *
	 * b has at least what all that keep have less of.
	 */
	struct system s = {0};
	resource(&s, 0.3);
	flow(&s, INFINITY);
	over(&s, 0, 3);
	flow(&s, 0.7);
	over(&s, 0, 1e-20);
	s.flow[0].rate = 0.1;
	s.flow[1].rate = 0;
	solve_from(&s, 0.2385);
	ck_assert(s.flow[0].rate == 0.1);
	ck_assert(s.flow[1].rate >= 0.2385 && s.flow[1].rate <= 0.7);
}
END_TEST

START_TEST(going_on_is_starting_anew)
{
	/* One leaves: those slower than it was keep their rates. One comes: those slower than an equal share
	   of each resource on its way do. What comes out is what a solution from nothing gives. */
	gsl_rng *r = rng_new(2385, 4, RNG_TEST);
	static struct system s, t, anew;
	int n_kept = 0;

	for (int i = 0; i < 5000; i++) {
		memset(&s, 0, sizeof(s));
		random_system(&s, r, i % 2 ? 4 : 100);
		if (s.n_flows < 3)
			continue;
		const struct maxmin_flow *last = &s.flow[s.n_flows - 1];
		double keep;
		copy(&t, &s);
		if (i % 4 < 2) {
			solve(&t);
			keep = t.flow[t.n_flows - 1].rate * (1 - 1e-9);
			t.n_flows--;
		} else {
			keep = last->cap;
			for (int h = 0; h < last->n_hops; h++) {
				double sum = 0;
				for (size_t k = 0; k < s.n_flows; k++)
					for (int g = 0; g < s.flow[k].n_hops; g++)
						if (s.hop[k][g].resource == last->hop[h].resource)
							sum += s.hop[k][g].weight;
				keep = fmin(keep, s.capacity[last->hop[h].resource] / sum);
			}
			keep *= 1 - 1e-9;
			t.n_flows--;
			solve(&t);
			t.n_flows++;
			t.flow[t.n_flows - 1].rate = 0;
		}
		for (size_t k = 0; k < t.n_flows; k++)
			n_kept += t.flow[k].rate > 0 && t.flow[k].rate < keep;
		copy(&anew, &t);
		solve_from(&t, keep);
		solve(&anew);
		assert_fair(&t, 1e-9);
		for (size_t k = 0; k < t.n_flows; k++)
			assert_close(t.flow[k].rate, anew.flow[k].rate, 1e-9);
	}
	ck_assert_int_gt(n_kept, 5000); /* one in ten, at least */
	gsl_rng_free(r);
}
END_TEST

START_TEST(scale_does_not_matter)
{
	gsl_rng *r = rng_new(2385, 2, RNG_TEST);

	for (int i = 0; i < 1000; i++) {
		static struct system s, t;
		memset(&s, 0, sizeof(s));
		random_system(&s, r, 100);
		solve(&s);
		copy(&t, &s);

		/* Everything four times as fast: exactly so, as no digit changes. */
		for (int k = 0; k < t.n_resources; k++)
			t.capacity[k] *= 4;
		for (size_t k = 0; k < t.n_flows; k++)
			t.flow[k].cap *= 4;
		solve(&t);
		for (size_t k = 0; k < t.n_flows; k++) {
			ck_assert(t.flow[k].rate == 4 * s.flow[k].rate);
			ck_assert_int_eq(t.flow[k].bottleneck, s.flow[k].bottleneck);
		}

		/* Units of an eighth on the resources alone: capacities and weights times eight. */
		for (int k = 0; k < t.n_resources; k++)
			t.capacity[k] *= 8;
		for (size_t k = 0; k < t.n_flows; k++)
			for (int h = 0; h < t.flow[k].n_hops; h++)
				t.hop[k][h].weight *= 8;
		solve(&t);
		for (size_t k = 0; k < t.n_flows; k++)
			ck_assert(t.flow[k].rate == 4 * s.flow[k].rate);

		/* By a factor that is no power of two. */
		for (int k = 0; k < t.n_resources; k++)
			t.capacity[k] = s.capacity[k] * 2.385;
		for (size_t k = 0; k < t.n_flows; k++) {
			t.flow[k].cap = s.flow[k].cap * 2.385;
			for (int h = 0; h < t.flow[k].n_hops; h++)
				t.hop[k][h].weight = s.hop[k][h].weight;
		}
		solve(&t);
		for (size_t k = 0; k < t.n_flows; k++)
			assert_close(t.flow[k].rate, 2.385 * s.flow[k].rate, 1e-9);
	}
	gsl_rng_free(r);
}
END_TEST

START_TEST(order_does_not_matter)
{
	gsl_rng *r = rng_new(2385, 3, RNG_TEST);
	struct system s;
	double rate[MAX_FLOWS];

	for (int i = 0; i < 1000; i++) {
		memset(&s, 0, sizeof(s));
		random_system(&s, r, 100);
		solve(&s);
		for (size_t k = 0; k < s.n_flows; k++)
			rate[k] = s.flow[k].rate;
		gsl_ran_shuffle(r, s.list, s.n_flows, sizeof(s.list[0]));
		solve(&s);
		for (size_t k = 0; k < s.n_flows; k++)
			assert_close(s.flow[k].rate, rate[k], 1e-9);
	}
	gsl_rng_free(r);
}
END_TEST

TEST_MAIN("maxmin", one_alone, a_shared_link, two_links, the_drawing_in_the_header, caps_leave_to_others,
	nothing_is_full, a_bus_used_twice, the_bottleneck_moves, a_chain_of_bottlenecks, ties,
	a_cap_and_no_path, many_at_the_same_cap, a_heavy_one_stops_before_a_light_one,
	a_workspace_is_used_again, random_ones_are_fair, the_slower_ones_keep_theirs, rounding_starves_nobody,
	going_on_is_starting_anew, scale_does_not_matter, order_does_not_matter)
