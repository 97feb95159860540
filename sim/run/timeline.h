/*
 * timeline.h - who used what from when to when, over a few steps from the middle of a run.
 *
 *	              ├────── step ──────┼────── step ──────┤
 *	gpu0           ▌ ▌ ▌ ▌ ▌ ▌ ▌ ▌ ▌ ▌ ▌ ▌ ▌ ▌ ▌ ▌ ▌ ▌ ▌   a device: its kernels
 *	gpu0.link.h2d ███████████████████████████████████████   a link, one direction: copies
 *	ram           ███████████████████████████████████████   the host's memory: copies, and kernels of the host
 *	overhead                         ▌                  ▌   launches, synchronisation: nothing moves
 *
 * The same spans are the timeline that Perfetto opens (timeline_print_json), and, joined to what a figure can show
 * (timeline_strip), the table `span` of results.db.
 */
#ifndef SIM_RUN_TIMELINE_H
#define SIM_RUN_TIMELINE_H

#include "sim/run/run.h"

/* Steps that are stored and drawn: two, so that what happens between steps is seen. */
#define TIMELINE_STEPS 2
/* The finest that a stored strip can show: this many parts of its length. */
#define TIMELINE_PIXELS 1280

struct timeline_span {
	int lane;
	sim_time begin, end; /* from the beginning of the first step on; cut at both ends of the stretch */
	uint32_t tag;        /* exec.h: kind, layer, group */
	double bytes;        /* moved by the copy or read by the kernel; 0: neither */
};

struct timeline {
	bool decode;           /* else there is no decode step, and these are of the prefill */
	uint64_t first;        /* of its phase, counted from 0 */
	uint64_t n_steps;
	const sim_time *step_end; /* by step; the last is the length of the stretch */
	const char **lane;     /* names, in the order in which they are drawn */
	int n_lanes;           /* those that something is on */
	const struct timeline_span *span; /* by lane, begin, end */
	size_t n;
};

/* A stretch of one lane that is on for `busy` of its time. */
struct timeline_part {
	double begin_s, end_s, busy;
};

/* Simulates up to n_steps steps from the middle of the decode (of the prefill where there is no decode), with some
   before and one behind. The scenario must fit. All lives in the arena. */
int timeline_simulate(const struct scenario *s, uint64_t n_steps, const volatile sig_atomic_t *interrupted,
	struct arena *a, struct timeline *out, struct err *err);

/* One lane as at most TIMELINE_PIXELS parts: spans are joined until they are a pixel long or the gap behind is. */
struct timeline_part *timeline_strip(const struct timeline *t, int lane, struct arena *a, size_t *n);

/* Chrome's trace event format: a process for each part of the machine, a thread for each lane, and further ones where
   spans of one lane overlap. */
void timeline_print_json(const struct timeline *t, const struct scenario *s, struct arena *a, FILE *to);

#endif
