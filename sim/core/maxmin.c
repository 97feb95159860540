#include "sim/core/maxmin.h"

#include <math.h>

void maxmin_init(struct maxmin *mm, const double *capacity, int n_resources, struct arena *a)
{
	size_t n = (size_t)n_resources;

	*mm = (struct maxmin){
		.capacity = capacity,
		.left = arena_array(a, double, n),
		.weight_sum = arena_array(a, double, n),
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
			mm->left[flow[i]->hop[h].resource] = 0;
	for (size_t i = 0; i < n; i++) {
		for (int h = 0; h < flow[i]->n_hops; h++) {
			int r = flow[i]->hop[h].resource;
			if (mm->left[r] == 0) {
				mm->touched[n_touched++] = r;
				mm->left[r] = mm->capacity[r];
			}
		}
	}
	return n_touched;
}

/* Summed anew in each round: taking a heavy flow's weight out of a sum would leave its rounding to the light ones. */
static void sum_weights(struct maxmin *mm, int n_touched, size_t n_rising)
{
	for (int t = 0; t < n_touched; t++)
		mm->weight_sum[mm->touched[t]] = 0;
	for (size_t i = 0; i < n_rising; i++) {
		const struct maxmin_flow *f = mm->rising[i];
		for (int h = 0; h < f->n_hops; h++)
			mm->weight_sum[f->hop[h].resource] += f->hop[h].weight;
	}
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
	for (int h = 0; h < f->n_hops; h++)
		mm->left[f->hop[h].resource] -= f->hop[h].weight * rate;
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
		sum_weights(mm, n_touched, n_rising);
		for (int t = 0; t < n_touched; t++) {
			int r = mm->touched[t];
			if (mm->weight_sum[r] == 0)
				continue; /* all that cross it have stopped */
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
