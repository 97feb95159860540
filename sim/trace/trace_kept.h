/*
 * trace_kept.h - another trace, each of whose steps is made once: for who simulates the same few steps again and again.
 *
 * Drawing a step's experts costs about as much as simulating it. Steps stay in memory of their own until the release.
 */
#ifndef SIM_TRACE_TRACE_KEPT_H
#define SIM_TRACE_TRACE_KEPT_H

#include "sim/trace/trace.h"

struct trace_kept {
	struct trace trace; /* what is kept, as a trace */
	struct arena arena;
	struct trace_cursor source;
	struct {
		VEC(struct trace_step);
	} steps;
};

/* of must stay; a says what happens when there is no memory. One thread's. */
void trace_kept_init(struct trace_kept *k, const struct trace *of, const struct arena *a);
void trace_kept_release(struct trace_kept *k);

#endif
