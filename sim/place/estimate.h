/*
 * estimate.h - a closed-form bound: no step takes less time than its busiest resource needs at datasheet rate.
 *
 * Uses of weights and cache are added one by one; each loads the memories, links and arithmetic that the
 * placement makes it cross; the bound is the largest load over peak rate. It never feeds a result: it
 * stands beside results (upper_bound_tok_s), and tests hold the simulator to it.
 *
 * Beside the bound stands the rule of thumb that everybody uses: the weights that a step needs, each over the datasheet
 * bandwidth of where they live, one after the other; no cache, no embedding (a row of it), no arithmetic.
 */
#ifndef SIM_PLACE_ESTIMATE_H
#define SIM_PLACE_ESTIMATE_H

#include "sim/place/place.h"

struct estimate {
	const struct placement *placement;
	double *memory_bytes;        /* by memory, and of a switch between GPUs, which bounds nothing */
	double *h2d_bytes, *d2h_bytes; /* by link */
	double *flops;               /* by device */
	double thumb_s;              /* the rule of thumb */
};

void estimate_init(struct estimate *e, const struct placement *p, struct arena *a);
/* Weights of a group (MODEL_NO_LAYER: embedding, output), of which `share` of the bytes are used, multiplied
   with `rows` rows (a routed expert's rows count as rows * share of all its parameters do). */
void estimate_group(struct estimate *e, int layer, enum model_group g, double share, double rows);
/* Attention over `entries` entries in all, with `fresh` new ones, scoring `pairs` pairs. */
void estimate_kv(struct estimate *e, int layer, double entries, double fresh, double pairs);
/* ahead_bytes need not cross any link, or leave any memory, within the time: they were fetched before. */
double estimate_seconds(const struct estimate *e, double ahead_bytes);

#endif
