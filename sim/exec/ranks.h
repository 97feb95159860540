/*
 * ranks.h - a model over n GPUs, each with its share of every matrix and of the heads; with n = 1 a model on one GPU.
 *
 *	host   [submit][submit][submit] ...               where it launches one by one, kernels wait for it
 *	gpu0   [qkv, out][attention]─┐            ┌[gate, up, down]─┐
 *	gpu1   [qkv, out][attention]─┴ all-reduce ┴[gate, up, down]─┴ all-reduce ...
 *
 * What a rank has computed are partial sums, which are added up when what follows needs them: after attention and after the
 * feed-forward part of each layer, and after the embedding. Each rank sends 2 (n - 1) / n of the hidden states to the next
 * one (a ring), by NVLink or over whatever leads from GPU to GPU, after a fixed time, which grows with the ring: each further
 * rank is two hops more. Logits are gathered alike.
 *
 * Weights that lie in host memory are read over the link by the kernels themselves (zero-copy), or were brought by the
 * engine (streamed), which says when they are there.
 */
#ifndef SIM_EXEC_RANKS_H
#define SIM_EXEC_RANKS_H

#include "sim/exec/bnb.h"
#include "sim/exec/lower.h"

/* What an engine does besides; each may be NULL. */
struct ranks_ops {
	/* The first operation of a layer is about to be added; its last has been. */
	void (*layer_begin)(void *engine, int layer);
	void (*layer_end)(void *engine, int layer);
	/* A group that the engine computes by itself: true when it has. */
	bool (*group)(void *engine, const struct place_group *g, enum model_group group, double share,
		double flops_per_param, double times);
};

struct ranks {
	/* the engine's, constant */
	const struct cost *cost;
	int n, device[PLACE_MAX_ROWS];
	const int *nodes;     /* by group: operations, each a kernel */
	int attention_nodes, mla_nodes, index_nodes; /* to read the cache; more of layers with MLA, with an index */
	bool one_by_one;      /* the host launches each; else they are in a CUDA graph */
	double between;       /* where that is in pieces, between which attention runs: the host's operations for one of them */
	bool each_expert;     /* experts are computed one after another; else all in one kernel */
	bool direct;          /* GPUs reach each other over PCIe past host memory */
	double cache_passes;  /* times the cache is read or written to attend once */
	double scores;        /* bytes of memory for each score; 0: they stay in the kernel */
	const struct bnb *bnb; /* whose linear layers quantized ones are; NULL: the kernels' own */
	const struct ranks_ops *ops;
	void *engine;
	double far_bytes[PLACE_MAX_ROWS]; /* by rank: weights that its kernels read over the link */
	/* of a step */
	struct lower walk;
	op_ref last[PLACE_MAX_ROWS];    /* of each rank's kernels */
	op_ref arrived[PLACE_MAX_ROWS]; /* streamed weights of the layer at hand; set by layer_begin */
	op_ref host;
	int layer;            /* at hand; INT_MIN: none yet */
	bool partial;         /* the hidden states are partial sums */
};

/* The GPUs are those of p->rows, also when it is one. Everything else is 0, or the engine's to set. */
void ranks_init(struct ranks *r, const struct cost *cost, const struct placement *p);
/* Adds a step behind the one before it and behind `after` (0: nothing). Returns when all ranks are through and logits are
   gathered. */
op_ref ranks_step(struct ranks *r, struct exec *x, const struct trace_step *step, op_ref after);

#endif
