/*
 * flow.h - transfers under way: who shares what now, and when each would be done.
 *
 * A flow joins when its latency is over and leaves when its amount has moved. Both change the rates of
 * those that share a resource with it, directly or through others (its component). Changes are collected
 * and rates solved once for each moment at which something changed:
 *
 *	join, leave ──> resources marked ──> flow_settle(now): components of the marked ones
 *	           └──> nothing to do        are solved anew, their completion events moved
 *
 * Most changes need no solving: a newcomer that can live on what the others leave, or a leaver that nobody
 * waited for, changes no other rate. And flows slower than all that came and went keep their rates.
 *
 * Progress is kept lazily: `remaining` is as of `since`, and only touched when the rate changes. A
 * completion time is rounded up to the picosecond: never early, at most 1 ps late.
 */
#ifndef SIM_CORE_FLOW_H
#define SIM_CORE_FLOW_H

#include "sim/core/heap.h"
#include "sim/core/maxmin.h"
#include "sim/core/opgraph.h"

struct flow_resource {
	const char *name;
	uint32_t first;     /* hop id of the first flow on it */
	int n_flows;
	bool marked;        /* its flows must be solved anew */
	uint64_t visited;   /* last round of flow_settle that came by */
	sim_time busy_since;
	sim_time busy;      /* time with at least one flow on it, closed intervals only */
	double moved;       /* units moved by flows that are done */
};

/* A flow's place in the lists of the resources it crosses; id = slot << hop_shift | hop. */
struct flow_link {
	uint32_t next, prev;
};

struct flow_rate {
	double rate;
	int bottleneck;
};

struct flow_net {
	struct opgraph *ops;
	struct heap *events;
	struct flow_resource *resource;
	double *capacity;
	int n_resources;
	struct flow_link *link;
	struct maxmin solver;
	struct op **active; /* flows under way */
	uint32_t n_active, active_cap;
	int *marked; /* resources whose flows must be solved */
	int n_marked;
	double keep; /* flows slower than this keep their rates */
	uint64_t round;
	struct op **member; /* flows that are solved together; the same as the solver sees them; what they had before */
	struct maxmin_flow **component;
	struct flow_rate *old;
	uint32_t members_cap;
	uint64_t *seen; /* slot -> round it was collected in */
	uint32_t seen_cap;
	sim_time *charge; /* slot -> time by who limited it: n_resources + 1 each; NULL: not wanted */
	int charge_stride;
	uint64_t n_solved; /* components solved, for statistics */
	bool overflow;     /* a completion lies beyond the clock's range */
	struct arena *arena;
};

void flow_init(struct flow_net *net, struct opgraph *ops, struct heap *events, const char *const *names,
	       const double *capacity, int n_resources, bool charges, struct arena *a);
/* Makes room for the operation's slot; called once when it is added. */
void flow_reserve(struct flow_net *net, const struct op *op);
void flow_join(struct flow_net *net, struct op *op, sim_time now);
void flow_leave(struct flow_net *net, struct op *op, sim_time now);
void flow_settle(struct flow_net *net, sim_time now);

/* Time with at least one flow on the resource, up to now. */
sim_time flow_busy(const struct flow_net *net, int resource, sim_time now);

/* The slot's row of charges: [0..n_resources) by limiting resource, [n_resources] overhead. NULL when charges are off. */
static inline sim_time *flow_charges(const struct flow_net *net, uint32_t slot)
{
	return net->charge ? net->charge + (size_t)slot * (size_t)net->charge_stride : NULL;
}

#endif
