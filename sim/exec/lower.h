/*
 * lower.h - what engines share when they turn a step into operations.
 *
 * A step is a chain: each kernel follows the one before it, and the hidden states cross to another device where
 * the next kernel runs there. Engines differ in what they fetch when, and in what waits for what.
 */
#ifndef SIM_EXEC_LOWER_H
#define SIM_EXEC_LOWER_H

#include "sim/exec/exec.h"

/* Hidden states are kept in 16 bits by GPU engines, in 32 by llama.cpp. */
struct lower {
	struct exec *x;
	const struct trace_step *step;
	op_ref last;                /* of the chain */
	int device;                 /* that has the hidden states */
	unsigned hidden_elem_bytes;
	double crossing_s;          /* host's part of moving hidden states: submission, synchronisation */
};

/* Begins a step: token numbers are at hand wherever the embedding is. */
void lower_begin(struct lower *l, struct exec *x, const struct trace_step *step);
/* Brings the hidden states to where they are needed next; nothing when the two share a memory. */
void lower_move_to(struct lower *l, int device);

/* The experts of a layer that the step hits, as one: how many, and rows over all of them. Returns the access
   behind them. */
const struct trace_access *lower_sum_experts(const struct trace_access *a, const struct trace_access *end,
	double *n_hit, double *rows);

/* What an engine does at each access, in the order of the model. share: of the group's bytes that is used;
   flops_per_param: over all rows; times: modules of the group that run (experts hit; else 1). */
struct lower_ops {
	void (*group)(void *state, const struct place_group *g, enum model_group group, double share,
		double flops_per_param, double times);
	void (*attention)(void *state, const struct trace_access *read);
};

/* One access after another: an embedding is looked up, weights are multiplied, a layer's experts go as one. */
void lower_walk(struct lower *l, void *state, const struct lower_ops *ops);

#endif
