/*
 * exec.h - where model, placement, trace and machine meet: steps become operations, operations become time.
 *
 *	trace step ──> engine's lower() ──> copies and kernels (exec_copy, exec_kernel …) ──> core
 *	                                                                  │
 *	     on_step: end, bytes, busy time, charges  <───────────────────┘ at the end of each step
 *
 * Steps are unrolled while they run: when one ends, the one after the next is added, so a prefetching engine
 * always has a whole step ahead of it to prefetch from and memory does not depend on the number of steps.
 */
#ifndef SIM_EXEC_EXEC_H
#define SIM_EXEC_EXEC_H

#include "sim/core/sim.h"
#include "sim/exec/platform.h"
#include "sim/place/place.h"
#include "sim/trace/trace.h"

/* How many steps are in the simulator at once: the one that runs and what it may prefetch from. */
#define EXEC_STEPS_AHEAD 2

struct exec;

/* Adds the operations of one step; *last is the one whose end is the end of the step. state is the engine's own,
   one for each run of steps. */
typedef int exec_lower_fn(struct exec *x, void *state, const struct trace_step *step, op_ref *last,
	struct err *err);

/* What had happened by the end of a step, from the beginning of the run on. */
struct exec_record {
	uint64_t step;          /* of the trace */
	enum trace_phase phase;
	sim_time end;
	double *moved;          /* by resource: units moved */
	sim_time *busy;         /* by resource */
	const sim_time *charge; /* by resource, then overhead: time along the critical path; sums to end. NULL: times alone */
};

/* A step has ended. The record is valid during the call only. */
typedef void exec_step_fn(void *ctx, const struct exec_record *r);

/* What an operation was, in its tag. Step ends carry EXEC_STEP and the step's place in the run. */
enum exec_kind { EXEC_STEP, EXEC_COPY, EXEC_KERNEL, EXEC_JOIN, EXEC_WAIT };

/* What the bytes of an operation are. */
enum exec_of { EXEC_WEIGHTS, EXEC_CACHE, EXEC_HIDDEN };

static inline enum exec_kind exec_tag_kind(uint32_t tag)
{
	return (enum exec_kind)(tag >> 28);
}

static inline int exec_tag_layer(uint32_t tag)
{
	return (int16_t)(tag & 0xffff);
}

static inline enum model_group exec_tag_group(uint32_t tag)
{
	return (enum model_group)(tag >> 16 & 0xff);
}

static inline enum exec_of exec_tag_of(uint32_t tag)
{
	return (enum exec_of)(tag >> 24 & 0xf);
}

/* An operation was added: all that is known of it, valid during the call only. For who writes the graph down. */
struct exec_added {
	op_ref ref, after[2];           /* after: 0 where there is none */
	const struct sim_op *op;        /* its tag says what it is */
	int from, to;                   /* memories of a copy; from: that a kernel reads, too */
	bool pinned;
	int device;                     /* kernels */
	const struct platform_work *work;
	const struct trace_step *step;  /* of a step's end */
};
typedef void exec_added_fn(void *ctx, const struct exec_added *o);

struct exec {
	struct sim sim;
	struct platform platform;
	const struct placement *placement;
	struct trace_cursor cursor;
	exec_lower_fn *lower;
	void *state;
	bool overheads;             /* count latencies and launches */
	uint32_t label;             /* layer, group and kind of bytes that operations added now belong to */
	op_ref step_end;            /* of the step before the one being added: its token is known then */
	uint64_t first, end, next;  /* steps of this run; next to be added */
	enum trace_phase phase[EXEC_STEPS_AHEAD]; /* of the steps that are in, by number modulo */
	struct exec_record record;  /* of the step that ended last */
	exec_step_fn *on_step;
	void *on_step_ctx;
	exec_added_fn *on_added;    /* NULL: nobody wants to know */
	void *on_added_ctx;
	int failed;
	struct err err;             /* of a step that could not be added */
	struct arena *arena;
};

/* Readies a run. state is the engine's own. The arena holds everything. */
void exec_init(struct exec *x, const struct placement *p, const struct trace *t, exec_lower_fn *lower, void *state,
	bool overheads, const volatile sig_atomic_t *interrupted, struct arena *a);

/* Reports every operation that ends; between exec_init and exec_run. */
void exec_spans(struct exec *x, sim_span_fn *span, void *ctx);

/* Reports every operation that is added, in order; between exec_init and exec_run. */
void exec_additions(struct exec *x, exec_added_fn *added, void *ctx);

/* Does without charges (record->charge is NULL): for who wants times alone; between exec_init and exec_run. */
void exec_times_alone(struct exec *x);

/* Simulates steps first .. first + n - 1 from an idle machine and reports the end of each, in order. Once for each
   exec_init. */
int exec_run(struct exec *x, uint64_t first, uint64_t n, exec_step_fn *on_step, void *ctx, struct err *err);

/* After exec_run, before the arena goes. */
void exec_release(struct exec *x);

/* For engines. Streams of the core are numbered as units: what an engine puts into the stream of a unit runs
   there in the order added. */

/* What is added from here on belongs to this group of this layer, and moves its weights. */
void exec_label(struct exec *x, int layer, enum model_group g);
/* What is added from here on moves other bytes of it. Returns what it was before. */
enum exec_of exec_moves(struct exec *x, enum exec_of of);
/* A copy, in the stream of its unit. Waits for `after` (0: nothing) besides. With no bytes it only joins the two. */
op_ref exec_copy(struct exec *x, int from, int to, double bytes, bool pinned, op_ref after, op_ref after2);
/* The same in no stream: it takes its turn at the unit when what it waits for has ended. */
op_ref exec_copy_aside(struct exec *x, int from, int to, double bytes, bool pinned, op_ref after, op_ref after2);
/* Bytes of a file on a drive into an engine's own memory, by a thread that copies them out of the page cache at `rate` at most;
   kept: RAM holds them already. In no stream. */
op_ref exec_read_file(struct exec *x, int drive, double bytes, double rate, bool kept, op_ref after, op_ref after2);
/* A kernel on a device, no stream; with neither bytes nor flops it only joins the two, after its latency. */
op_ref exec_kernel(struct exec *x, int device, const struct platform_work *work, op_ref after, op_ref after2);
/* The same with its bytes in another memory, which it reads over the link; it has some. Shares: of the link's rate, and of
   what that has from another socket. */
op_ref exec_kernel_far(struct exec *x, int device, int memory, double rate_share, double remote_share, const struct platform_work *work,
	op_ref after, op_ref after2);
/* What kernels of two GPUs send each other: beside the copy engines. direct: over PCIe past host memory. */
op_ref exec_send(struct exec *x, int from, int to, double bytes, bool direct, op_ref after);
/* Time that passes: a launch, a synchronisation. seconds 0 gives `after` back. */
op_ref exec_wait(struct exec *x, double seconds, op_ref after);
/* Ends when both have ended. */
op_ref exec_join(struct exec *x, op_ref a, op_ref b);

#endif
