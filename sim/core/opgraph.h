/*
 * opgraph.h - operations and what waits for what.
 *
 * An operation is one copy, one kernel or one wait. It starts when every operation it depends on is done:
 * `pending` counts those that are not. Operations live in a pool and are recycled as soon as they are done,
 * so the graph can be unrolled while it runs and memory does not depend on how long it is:
 *
 *	add ──> [pending 2] ──> [pending 1] ──> [pending 0] ──> runs ──> done: its slot is free again
 *	              ▲               ▲
 *	           a dependency ends  another ends
 *
 * A reference holds slot and generation; one to an operation that is done is still valid and means "done".
 */
#ifndef SIM_CORE_OPGRAPH_H
#define SIM_CORE_OPGRAPH_H

#include "base/arena.h"
#include "sim/core/maxmin.h"
#include "sim/core/simtime.h"

#include <stdbool.h>

#define OP_NONE UINT32_MAX

typedef uint64_t op_ref; /* generation << 32 | slot; 0 is "nothing", which counts as done */

enum op_state {
	OP_FREE,    /* in the pool */
	OP_PENDING, /* waits for dependencies */
	OP_HELD,    /* waits for its earliest start time */
	OP_QUEUED,  /* waits for a place on its unit */
	OP_LATENT,  /* started: latency runs */
	OP_FLOWING, /* moves its amount */
};

struct op {
	struct maxmin_flow flow; /* path, cap; current rate and bottleneck */
	double amount;           /* bytes (or whatever its path counts); 0: latency only */
	double remaining;        /* of amount, at `since` */
	sim_time since;          /* when rate or state last changed */
	sim_time start;          /* when its latency began */
	sim_time latency;
	sim_time not_before;
	uint64_t sequence;       /* order of creation, the last tie-breaker */
	int32_t priority;
	uint32_t slot;
	uint32_t generation;
	uint32_t pending;        /* dependencies that are not done, plus one while it is being built */
	uint32_t first_edge;     /* whom it releases */
	uint32_t last_edge;
	uint32_t active;         /* place among the flows under way */
	uint32_t next;           /* in the ready list, a unit's queue or the free list */
	int unit;
	int cap_resource;        /* whom time at the cap is charged to; -1: overhead */
	uint32_t tag;            /* the builder's own mark */
	enum op_state state;
	bool notify;             /* report its end to the builder */
};

struct op_edge {
	uint32_t to, next;
};

struct opgraph {
	struct arena *arena;
	struct op **chunk; /* pool of slots; chunks never move */
	uint32_t n_chunks, chunks_cap;
	uint32_t n_slots, first_free;
	uint32_t n_live;
	struct op_edge *edge;
	uint32_t n_edges, edges_cap, free_edge;
	int hop_shift; /* each slot has 1 << hop_shift hops */
	uint64_t next_sequence;
	uint32_t ready_head, ready_tail; /* pending reached 0, not yet looked at; FIFO */
};

void opgraph_init(struct opgraph *g, int max_hops, struct arena *a);

/* A new operation, state OP_PENDING, pending 1: the builder holds it until opgraph_release. hop is copied. */
struct op *opgraph_add(struct opgraph *g, const struct maxmin_hop *hop, int n_hops);
/* after starts no sooner than before is done. after must not be released yet. */
void opgraph_depend(struct opgraph *g, struct op *after, op_ref before);
/* Takes one from pending; at 0 the operation joins the ready list. */
void opgraph_release(struct opgraph *g, struct op *op);
/* Takes the first of the ready list; NULL when it is empty. */
struct op *opgraph_next_ready(struct opgraph *g);
/* Releases those that wait for op. For each one that becomes ready, released(ctx, op, that one) is called first. */
typedef void opgraph_released_fn(void *ctx, const struct op *op, struct op *freed);
void opgraph_finish(struct opgraph *g, struct op *op, opgraph_released_fn *released, void *ctx);
/* Returns the slot to the pool: references to it are "done" from here on. */
void opgraph_recycle(struct opgraph *g, struct op *op);

#define OPGRAPH_CHUNK 256

static inline int opgraph_max_hops(const struct opgraph *g)
{
	return 1 << g->hop_shift;
}

static inline struct op *opgraph_at(const struct opgraph *g, uint32_t slot)
{
	return &g->chunk[slot / OPGRAPH_CHUNK][slot % OPGRAPH_CHUNK];
}

static inline op_ref op_reference(const struct op *op)
{
	return (op_ref)op->generation << 32 | op->slot;
}

/* NULL when it is done. */
static inline struct op *opgraph_find(const struct opgraph *g, op_ref ref)
{
	if (ref == 0)
		return NULL;
	struct op *op = opgraph_at(g, (uint32_t)ref);
	return op->generation == ref >> 32 ? op : NULL;
}

#endif
