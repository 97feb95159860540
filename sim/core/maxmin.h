/*
 * maxmin.h - who gets how much: weighted max-min fair sharing, a pure function without a clock.
 *
 * Resources have capacities; a flow crosses some of them and may have a cap of its own. A flow of rate x
 * uses weight * x of each resource it crosses (weight 2: it uses the bus twice a byte). All flows rise
 * together from zero; when a resource is full, its flows stop there, and so does a flow at its cap; the
 * others rise on:
 *
 *	A ──[ link 1: 10 ]──┐                  link 1 allows x_A <= 10
 *	B ──────────────────┼──[ link 2: 12 ]  link 2 allows x_A + x_B + 2 x_C <= 12: full at 3, 3, 3
 *	C (weight 2) ───────┘
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
	/* workspace, by resource; valid where `round` is the solver's */
	struct maxmin_left {
		uint64_t round;    /* solve that this belongs to */
		double left;       /* of the capacity */
		double weight_sum; /* of flows that still rise */
		double weight_top; /* when it was summed, not brought down from there */
		int n_rising;
		uint32_t first;    /* list of hops on it, through next_hop */
	} *at;
	int *touched;          /* resources that the flows at hand cross */
	uint64_t round;
	/* workspace, by hop of the flows at hand */
	uint32_t *next_hop;    /* on the same resource */
	uint32_t *hop_flow;    /* flow the hop belongs to */
	size_t hops_cap;
	struct arena *arena;
};

void maxmin_init(struct maxmin *mm, const double *capacity, int n_resources, struct arena *a);

/* Fills rate and bottleneck of n flows that share with nobody else. Flows whose rate is positive and below `keep`
   keep it (0: none does): when flows come and go, those that are slower than all of them are not concerned,
   since everything rises alike until the first of them would have stopped.
   Each round stops at least one flow and costs O(resources), or O(flows) if any has a cap; meant for the tens of
   flows that units let run at once. */
void maxmin_solve(struct maxmin *mm, struct maxmin_flow **flow, size_t n, double keep);

#endif
