/*
 * kernel.h - a kernel as an engine with a file of hw/kernels runs it: what it moves and computes, at the rates that the
 * engine's code reaches on that device.
 */
#ifndef SIM_EXEC_KERNEL_H
#define SIM_EXEC_KERNEL_H

#include "sim/exec/cost_cpu.h"
#include "sim/exec/platform.h"

struct kernel_place {
	const struct cost *cost;
	const struct hw_machine *machine;
	const struct hw_device *device;
	struct cost_team team; /* of a CPU's threads; not looked at on a GPU */
	bool one_by_one;     /* a GPU's kernels are launched by the host, not in a CUDA graph */
	bool expands_cache;  /* heads that share keys are a GPU's rows together, of a cache that is expanded to 16 bits first */
};

/* A matrix product with weights of a type: bytes of them are read, flops done over all rows. nodes: graph nodes of the
   group, each a kernel on a GPU and a barrier of all threads on a CPU. how: on a CPU. */
struct platform_work kernel_multiply(const struct kernel_place *k, const struct quant_type *type, double bytes,
	double flops, double nodes, enum cost_rows how);
/* One step of a recurrent layer that keeps `bytes`, in one kernel, or (early) as a graph of small operations. */
/* Tokens of a prompt one after another, on a GPU. */
struct platform_work kernel_scan(const struct kernel_place *k, double bytes, double nodes, double tokens, bool early);
struct platform_work kernel_state(const struct kernel_place *k, double bytes, double flops, double nodes, bool early);
/* Attention of a layer that reads `bytes` of its cache; pairs of a query and an entry it looks at. */
struct platform_work kernel_attention(const struct kernel_place *k, const struct model_layer *l,
	const struct kvcache_types *types, double bytes, double pairs, double queries);
/* The same on a CPU without flash attention. */
struct platform_work kernel_scores(const struct kernel_place *k, const struct model_layer *l, const struct kvcache_types *types,
	double bytes, const struct cost_scores *s);

#endif
