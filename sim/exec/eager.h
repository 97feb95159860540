/*
 * eager.h - an eager PyTorch program: one thread that submits, and streams of the GPU that follow it.
 *
 *	host      [submit][pin w][submit]──────────────wait──[submit…      what it does itself holds up all that comes later
 *	stream         └──[kernel][kernel]──[copy, hidden]──┘              the default stream, in order
 *	aside               └─[copy w_q][copy w_k]                         side streams and copy threads: only a wait orders them
 *
 * An operation begins no sooner than the host has submitted it. Copies of all streams share the GPU's copy engine for
 * their direction, first come, first served: a small one waits behind a large one that was submitted before.
 */
#ifndef SIM_EXEC_EAGER_H
#define SIM_EXEC_EAGER_H

#include "sim/exec/cost.h"
#include "sim/exec/exec.h"

struct eager {
	struct exec *x;
	const struct cost *cost;
	int gpu, gpu_memory, cpu, ram; /* devices and memories */
	op_ref host;    /* what the submitting thread has done */
	op_ref stream;  /* what the default stream has done */
	op_ref aside;   /* everything beside it that was not waited for */
	bool in_order;  /* no side streams: all goes to the default one */
};

/* The machine must have a GPU with memory of its own, a CPU and RAM. */
void eager_init(struct eager *e, const struct cost *cost, const struct hw_machine *m, bool in_order);
/* Begins a step where the one before it ended. */
void eager_begin(struct eager *e, struct exec *x);

/* The thread is busy for so long. */
void eager_busy(struct eager *e, double seconds);
/* The thread moves bytes within RAM, read and written counted both, with all cores. */
void eager_move(struct eager *e, double bytes);
/* The thread waits until op has ended. */
void eager_wait(struct eager *e, op_ref op);
/* The thread waits for everything: torch.cuda.synchronize() and the joining of helpers. */
void eager_sync(struct eager *e);

/* On the default stream: a product of 16-bit matrices, of which bytes of memory are read or written; so many kernels. */
void eager_multiply(struct eager *e, double bytes, double flops, double kernels);
/* Kernels that work element by element: as fast as their bytes, read and written. */
void eager_elementwise(struct eager *e, double bytes, double kernels);
/* The same with operands of several shapes, or rows between others, whose places are computed one by one. */
void eager_broadcast(struct eager *e, double bytes, double kernels);
/* Attention over keys and values, bytes as eager PyTorch moves them. */
void eager_attention(struct eager *e, double bytes, double flops, double kernels);
/* A copy of n tensors on the default stream. */
void eager_copy(struct eager *e, int from, int to, double bytes, bool pinned, double n);
/* The same on a side stream, begun no sooner than `after` either: gives back its end. */
op_ref eager_copy_aside(struct eager *e, int from, int to, double bytes, bool pinned, double n, op_ref after);
/* Done beside the thread, after what it follows has been handed over. */
void eager_beside(struct eager *e, op_ref op);

#endif
