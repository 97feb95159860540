#include "sim/core/maxmin.h"

#include <math.h>
#include <stdbool.h>

#define NO_HOP UINT32_MAX

void maxmin_init(struct maxmin *mm, const double *capacity, int n_resources, struct arena *a)
{
	*mm = (struct maxmin){
		.capacity = capacity,
		.at = arena_array(a, struct maxmin_left, (size_t)n_resources),
		.touched = arena_array(a, int, (size_t)n_resources),
		.arena = a,
	};
}

/* One flow alone, by far the most frequent case: nothing to share. */
static void solve_one(const struct maxmin *mm, struct maxmin_flow *f)
{
	f->rate = f->cap;
	f->bottleneck = MAXMIN_CAP;
	for (int i = 0; i < f->n_hops; i++) {
		double share = mm->capacity[f->hop[i].resource] / f->hop[i].weight;
		if (share < f->rate) {
			f->rate = share;
			f->bottleneck = f->hop[i].resource;
		}
	}
}

static void reserve(struct maxmin *mm, size_t n_hops)
{
	if (n_hops <= mm->hops_cap)
		return;
	mm->hops_cap = 2 * n_hops;
	mm->next_hop = arena_array(mm->arena, uint32_t, mm->hops_cap);
	mm->hop_flow = arena_array(mm->arena, uint32_t, mm->hops_cap);
}

/* Enters all flows into the resources they cross: those that keep their rate as used, the others as rising (rate 0).
   Returns the number of resources. */
static int touch(struct maxmin *mm, struct maxmin_flow **flow, size_t n, double keep)
{
	/* Locals: what is written through them could otherwise be the solver itself to the compiler. */
	struct maxmin_left *const left = mm->at;
	const double *const capacity = mm->capacity;
	const uint64_t round = ++mm->round;
	size_t n_hops = 0;
	uint32_t k = 0;
	int n_touched = 0;

	for (size_t i = 0; i < n; i++)
		n_hops += (size_t)flow[i]->n_hops;
	reserve(mm, n_hops);

	uint32_t *const next_hop = mm->next_hop, *const hop_flow = mm->hop_flow;
	int *const touched = mm->touched;
	for (size_t i = 0; i < n; i++) {
		struct maxmin_flow *f = flow[i];
		const struct maxmin_hop *hop = f->hop, *end = hop + f->n_hops;
		double rate = f->rate > 0 && f->rate < keep ? f->rate : 0;

		f->rate = rate;
		for (; hop < end; hop++) {
			struct maxmin_left *at = &left[hop->resource];
			if (at->round != round) {
				*at = (struct maxmin_left){round, capacity[hop->resource], 0, 0, 0, NO_HOP};
				touched[n_touched++] = hop->resource;
			}
			if (rate > 0) {
				at->left -= hop->weight * rate;
				continue;
			}
			at->weight_sum += hop->weight;
			at->weight_top = at->weight_sum;
			at->n_rising++;
			next_hop[k] = at->first;
			hop_flow[k] = (uint32_t)i;
			at->first = k++;
		}
	}
	return n_touched;
}

static inline void stop_at(struct maxmin_left *left, struct maxmin_flow *f, double rate, int bottleneck)
{
	const struct maxmin_hop *hop = f->hop, *end = hop + f->n_hops;

	f->rate = rate;
	f->bottleneck = bottleneck;
	for (; hop < end; hop++) {
		struct maxmin_left *at = &left[hop->resource];
		at->left -= hop->weight * rate;
		at->weight_sum -= hop->weight;
		at->n_rising--;
	}
}

/* Sums the weights on r of those that still rise anew: what heavy ones took out of the sum when they stopped leaves
   their rounding to the light ones. */
static void sum_anew(struct maxmin *mm, struct maxmin_flow **flow, int r)
{
	struct maxmin_left *at = &mm->at[r];

	at->weight_sum = 0;
	for (uint32_t k = at->first; k != NO_HOP; k = mm->next_hop[k]) {
		const struct maxmin_flow *f = flow[mm->hop_flow[k]];
		const struct maxmin_hop *hop = f->hop;
		if (f->rate > 0)
			continue;
		while (hop->resource != r)
			hop++;
		at->weight_sum += hop->weight;
	}
	at->weight_top = at->weight_sum;
}

/* The resource that is full first when all rise on, -1 when none limits anybody. */
static int full_first(struct maxmin *mm, struct maxmin_flow **flow, int *n_touched)
{
	int *const touched = mm->touched;
	int full = -1, n = 0;
	double best_left = 0, best_sum = 0;

	for (int t = 0; t < *n_touched; t++) {
		int r = touched[t];
		const struct maxmin_left *at = &mm->at[r];
		if (at->n_rising == 0)
			continue; /* and forgotten */
		touched[n++] = r;
		if (at->weight_sum < 1e-4 * at->weight_top)
			sum_anew(mm, flow, r);
		/* left / weight_sum less than that of the best, without dividing; the first of equals. */
		if (full < 0 || at->left * best_sum < best_left * at->weight_sum) {
			full = r;
			best_left = at->left;
			best_sum = at->weight_sum;
		}
	}
	*n_touched = n;
	return full;
}

static double lowest_cap(struct maxmin_flow **flow, size_t n)
{
	double cap = INFINITY;

	for (size_t i = 0; i < n; i++)
		if (flow[i]->rate == 0 && flow[i]->cap < cap)
			cap = flow[i]->cap;
	return cap;
}

void maxmin_solve(struct maxmin *mm, struct maxmin_flow **flow, size_t n, double keep)
{
	if (n == 1) {
		solve_one(mm, flow[0]);
		return;
	}

	int n_touched = touch(mm, flow, n, keep);
	struct maxmin_left *const left = mm->at;
	double level = keep, cap = lowest_cap(flow, n);

	for (;;) {
		int full = full_first(mm, flow, &n_touched);
		if (full < 0 && isinf(cap))
			break; /* nobody rises any more */
		double share = full < 0 ? INFINITY : left[full].left / left[full].weight_sum;
		double next = cap <= share ? cap : share;
		/* Never below the level that others stopped at, or keep: a difference there would be rounding, and
		   could be negative. */
		if (next > level)
			level = next;
		if (cap <= share) {
			for (size_t i = 0; i < n; i++)
				if (flow[i]->rate == 0 && flow[i]->cap <= level)
					stop_at(left, flow[i], flow[i]->cap, MAXMIN_CAP);
			cap = lowest_cap(flow, n);
		} else {
			bool capped = false;
			for (uint32_t k = left[full].first; k != NO_HOP; k = mm->next_hop[k]) {
				struct maxmin_flow *f = flow[mm->hop_flow[k]];
				if (f->rate > 0)
					continue;
				capped |= !isinf(f->cap);
				stop_at(left, f, level < f->cap ? level : f->cap, full);
			}
			if (capped)
				cap = lowest_cap(flow, n);
		}
	}
}
