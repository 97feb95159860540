#include "sim/core/maxmin.h"

#include <math.h>

void maxmin_init(struct maxmin *mm, const double *capacity, int n_resources, struct arena *a)
{
	size_t n = (size_t)n_resources;

	*mm = (struct maxmin){
		.capacity = capacity,
		.left = arena_array(a, double, n),
		.weight_sum = arena_array(a, double, n),
		.n_rising = arena_array(a, int, n),
		.touched = arena_array(a, int, n),
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

static int touch(struct maxmin *mm, struct maxmin_flow **flow, size_t n)
{
	int n_touched = 0;

	for (size_t i = 0; i < n; i++)
		for (int h = 0; h < flow[i]->n_hops; h++)
			mm->n_rising[flow[i]->hop[h].resource] = 0;
	for (size_t i = 0; i < n; i++) {
		for (int h = 0; h < flow[i]->n_hops; h++) {
			const struct maxmin_hop *hop = &flow[i]->hop[h];
			if (mm->n_rising[hop->resource]++ == 0) {
				mm->touched[n_touched++] = hop->resource;
				mm->left[hop->resource] = mm->capacity[hop->resource];
				mm->weight_sum[hop->resource] = 0;
			}
			mm->weight_sum[hop->resource] += hop->weight;
		}
	}
	return n_touched;
}

static int crosses(const struct maxmin_flow *f, int resource)
{
	for (int h = 0; h < f->n_hops; h++)
		if (f->hop[h].resource == resource)
			return 1;
	return 0;
}

static void stop_at(struct maxmin *mm, struct maxmin_flow *f, double rate, int bottleneck)
{
	f->rate = rate;
	f->bottleneck = bottleneck;
	for (int h = 0; h < f->n_hops; h++) {
		const struct maxmin_hop *hop = &f->hop[h];
		mm->left[hop->resource] -= hop->weight * rate;
		mm->weight_sum[hop->resource] -= hop->weight;
		mm->n_rising[hop->resource]--;
	}
}

void maxmin_solve(struct maxmin *mm, struct maxmin_flow **flow, size_t n)
{
	if (n == 1) {
		solve_one(mm, flow[0]);
		return;
	}
	if (n > mm->rising_cap) {
		mm->rising_cap = 2 * n;
		mm->rising = arena_array(mm->arena, struct maxmin_flow *, mm->rising_cap);
	}

	int n_touched = touch(mm, flow, n);
	size_t n_rising = n;
	double level = 0;

	for (size_t i = 0; i < n; i++)
		mm->rising[i] = flow[i];
	while (n_rising) {
		/* How far can all that still rise go? Never below the level that others stopped at: a
		   difference there would be rounding, and could be negative. */
		double next = INFINITY;
		int full = MAXMIN_CAP;
		for (int t = 0; t < n_touched; t++) {
			int r = mm->touched[t];
			if (mm->n_rising[r] == 0)
				continue;
			double share = mm->left[r] / mm->weight_sum[r];
			if (share < next) {
				next = share;
				full = r;
			}
		}
		for (size_t i = 0; i < n_rising; i++) {
			if (mm->rising[i]->cap <= next) {
				next = mm->rising[i]->cap;
				full = MAXMIN_CAP;
			}
		}
		if (next > level)
			level = next;

		size_t kept = 0;
		for (size_t i = 0; i < n_rising; i++) {
			struct maxmin_flow *f = mm->rising[i];
			if (full == MAXMIN_CAP ? f->cap <= level : crosses(f, full))
				stop_at(mm, f, level < f->cap ? level : f->cap, full);
			else
				mm->rising[kept++] = f;
		}
		n_rising = kept;
	}
}
