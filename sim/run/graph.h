/*
 * graph.h - a scenario's operations, written down as they are added (sim/core/opg.h), with buffers for their bytes.
 *
 *	copy of layer 3's ffn, ram to gpu0     from: buffer "weights, layer 3, ffn" in ram     to: a staging buffer in gpu0
 *	kernel of layer 3's ffn on gpu0        from: the staging buffer where that copy landed
 *
 * What has a home in a memory, by the placement, is a buffer there. A copy to where it has none lands in a staging
 * buffer; one is used again as soon as all that use it must have ended before the copy begins: so that no more is needed
 * than the engine needs, and no executor, however slow its kernels, overwrites what is still read.
 */
#ifndef SIM_RUN_GRAPH_H
#define SIM_RUN_GRAPH_H

#include "sim/core/opg.h"
#include "sim/run/run.h"

/* n_steps from the middle of the run (run_stretch). The scenario must fit. All lives in the arena. */
int graph_record(const struct scenario *s, uint64_t n_steps, const volatile sig_atomic_t *interrupted, struct arena *a,
	struct opg **out, struct err *err);

#endif
