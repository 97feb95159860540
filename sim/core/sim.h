/*
 * sim.h - the discrete-event core: a clock, resources that are shared, units that run operations.
 *
 * It knows no model and no GPU. A builder adds operations (sim_add), says what they wait for (sim_depend),
 * lets go of them (sim_commit), and is called back when those it asked about are done; from there it may
 * add more, so a graph of any length runs in the memory of the part that is under way.
 *
 *	        dependencies     earliest time     place on unit      latency        amount moved
 *	PENDING ───────────> HELD ───────────> QUEUED ─────────> LATENT ────────> FLOWING ───────> done
 *
 * An operation holds its place on its unit through latency and flow. A kernel is a flow over the memory
 * it reads and the compute resource it uses (weight: FLOPs a byte), so it slows down when copies come in on
 * the same memory; a pure wait has amount 0.
 *
 * Order: events of one moment are handled by (priority, sequence of creation); operations that become
 * ready in one moment start in the order they became ready; rates are solved once a moment, after all of it.
 *
 * Charges: with `charges`, each operation carries the time since 0 along the chain of what finished last
 * before it, split by the resource that limited each stretch. The last operation's row is the critical path.
 */
#ifndef SIM_CORE_SIM_H
#define SIM_CORE_SIM_H

#include <signal.h>

#include "base/err.h"
#include "sim/core/flow.h"
#include "sim/core/heap.h"
#include "sim/core/opgraph.h"
#include "sim/core/unit.h"

#define SIM_NONE (-1)

struct sim_op {
	int unit;                     /* SIM_NONE: it needs no unit */
	int stream;                   /* SIM_NONE: in no stream */
	sim_time latency;             /* before the amount moves */
	sim_time not_before;          /* earliest start */
	double amount;                /* 0: latency only */
	double cap;                   /* own limit in amount per second; 0: none (a path is needed then) */
	int cap_resource;             /* resource that is charged when the cap limits; SIM_NONE: overhead */
	const struct maxmin_hop *hop; /* path, each resource once */
	int n_hops;
	int32_t priority;             /* lower goes first among events of one moment */
	uint32_t tag;                 /* for the builder */
	bool notify;                  /* call done() when it ends */
};

/* An operation ended. sim_charges() of it may be read, operations may be added. */
typedef void sim_done_fn(void *ctx, const struct op *op, sim_time now);

/* Any operation ended; op->start is when it got its place. For timelines and tests: nothing may be added. */
typedef void sim_span_fn(void *ctx, const struct op *op, sim_time now);

struct sim_config {
	int n_resources;
	const char *const *resource_name;
	const double *capacity; /* units per second, > 0 */
	int n_units;
	const char *const *unit_name;
	const uint32_t *unit_places;
	int n_streams;
	int max_hops;
	bool charges;
	sim_done_fn *done;
	void *done_ctx;
	sim_span_fn *span; /* NULL: not wanted */
	void *span_ctx;
	const volatile sig_atomic_t *interrupted; /* NULL, or stop when it becomes nonzero */
};

struct sim {
	sim_time now;
	uint64_t n_done; /* operations that ended */
	struct opgraph ops;
	struct heap events;
	struct flow_net net;
	struct unit *unit;
	op_ref *stream; /* last operation added to each */
	const struct op *ending; /* operation whose end is being handled: what is added and runs now follows from it */
	struct sim_config config;
	struct arena *arena;
};

void sim_init(struct sim *s, const struct sim_config *config, struct arena *a);

/* Adds an operation, held until sim_commit. */
op_ref sim_add(struct sim *s, const struct sim_op *spec);
void sim_depend(struct sim *s, op_ref after, op_ref before);
void sim_commit(struct sim *s, op_ref op);

/* Runs until nothing is left to do. Fails when the clock overflows, when operations are left that wait for
   each other, or when interrupted. */
int sim_run(struct sim *s, struct err *err);

static inline const sim_time *sim_charges(const struct sim *s, const struct op *op)
{
	return flow_charges(&s->net, op->slot);
}

#endif
