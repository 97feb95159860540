/*
 * kernel.h - a kernel as an engine with a file of hw/kernels runs it: what it moves and computes, at the rates that the
 * engine's code reaches on that device.
 */
#ifndef SIM_EXEC_KERNEL_H
#define SIM_EXEC_KERNEL_H

#include "models/kvcache.h"
#include "sim/exec/cost.h"
#include "sim/exec/platform.h"

struct kernel_place {
	const struct cost *cost;
	const struct hw_device *device;
	double thread_share; /* of a CPU's cores that compute */
	bool one_by_one;     /* a GPU's kernels are launched by the host, not in a CUDA graph */
};

/* A matrix product of `rows` rows with weights of a type: bytes of them are read, flops done in all. nodes: graph nodes
   of the group, each a kernel on a GPU and a barrier of all threads on a CPU. */
struct platform_work kernel_multiply(const struct kernel_place *k, const struct quant_type *type, double bytes,
	double flops, uint64_t rows, int nodes);
/* Attention that reads `bytes` of the cache. */
struct platform_work kernel_attention(const struct kernel_place *k, const struct quant_type *key_type, double bytes,
	double flops);

#endif
