/*
 * cpu_exec.h - an operation graph for real, on this machine's memory, drives and processors.
 *
 *	copy engine of a GPU   one thread, memcpy from buffer to buffer: the link's stand-in
 *	a drive's queue        two threads that take pieces in turn: one reads while the other copies
 *	a device               as many threads as its kernels have, behind a barrier that spins; they read the kernel's bytes, and
 *	                       multiply and add as often as its FLOPs say, or, where it expands weights, multiply with those by the
 *	                       kernels of `offsim calibrate`
 *	no unit                a thread of its own watches the clock for waits
 *
 * The order is the simulator's: an operation is ready when all it waits for has ended, ready ones queue at their unit, and
 * a unit takes the next when it has ended the one before. Latencies are an engine's, not this program's: they are waited
 * for, counted from when the operation got its place, so that what this program takes to begin it hides in them.
 */
#ifndef SIM_REAL_CPU_EXEC_H
#define SIM_REAL_CPU_EXEC_H

#include <signal.h>

#include "sim/core/opg.h"
#include "sim/real/cpu_work.h"

#define CPU_EXEC_MAX_THREADS 256

struct cpu_exec_options {
	unsigned threads; /* of each CPU's kernels; 0: as the graph says */
	const char *dir;  /* folder for a drive's file */
	const volatile sig_atomic_t *interrupted;
};

/* By number of operation; seconds from the beginning of the run. */
struct cpu_exec_result {
	double *start_s, *end_s;
	uint64_t *moved_bytes; /* that really were read or copied */
	uint32_t *order;       /* operations in the order in which they began at their unit; others behind at their end */
};

struct cpu_exec;

/* Makes buffers and threads. The graph and the arena must outlive it. */
int cpu_exec_open(const struct opg *g, const struct cpu_exec_options *o, struct arena *a, struct cpu_exec **out,
	struct err *err);
/* Runs it once, from idle, and checks the buffers. r: arrays in the executor's arena, overwritten by the next run. After a
   failure it can only be closed. */
int cpu_exec_run(struct cpu_exec *e, struct cpu_exec_result *r, struct err *err);
void cpu_exec_close(struct cpu_exec *e);

#endif
