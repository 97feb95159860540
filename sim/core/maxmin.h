/*
 * maxmin.h - who gets how much: weighted max-min fair sharing, a pure function without a clock.
 *
 * Resources have capacities; a flow crosses some of them and may have a cap of its own. A flow of rate x
 * uses weight * x of each resource it crosses (weight 2: it uses the bus twice a byte). All flows rise
 * together from zero; when a resource is full, its flows stop there, and so does a flow at its cap; the
 * others rise on:
 *
 *	A ──[ link 1: 10 ]──┐               x_A = x_B = 3 (link 2 is full: x_A + x_B + 2 x_C <= 12, x_C = 3)
 *	B ──────────────────┼─[ link 2: 12 ]
 *	C (weight 2) ───────┘               then nobody is left to rise
 *
 * The result is the unique allocation in which no flow can gain without a flow of equal or lower rate
 * losing (progressive filling; Bertsekas and Gallager, Data Networks, 6.5.2).
 */
#ifndef SIM_CORE_MAXMIN_H
#define SIM_CORE_MAXMIN_H

#include "base/arena.h"

struct maxmin_hop {
	int resource;
	double weight; /* units of the resource per unit of the flow; > 0 */
};

#define MAXMIN_CAP (-1) /* bottleneck of a flow that stopped at its own cap */

struct maxmin_flow {
	const struct maxmin_hop *hop; /* each resource at most once */
	int n_hops;
	int bottleneck; /* out: the resource that was full, or MAXMIN_CAP */
	double cap;     /* INFINITY: none; a flow without hops must have one */
	double rate;    /* out: > 0, since capacities and caps are */
};

struct maxmin {
	const double *capacity; /* by resource, > 0 and finite */
	/* workspace, by resource */
	double *left;
	double *weight_sum; /* of the flows that still rise */
	int *touched; /* resources that the flows at hand cross */
	struct maxmin_flow **rising;
	size_t rising_cap;
	struct arena *arena;
};

void maxmin_init(struct maxmin *mm, const double *capacity, int n_resources, struct arena *a);

/* Fills rate and bottleneck of n flows that share with nobody else. Costs O(rounds * hops), with at most one
   round a resource or distinct cap; meant for the tens of flows that units let run at once. */
void maxmin_solve(struct maxmin *mm, struct maxmin_flow **flow, size_t n);

#endif
