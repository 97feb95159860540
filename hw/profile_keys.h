/*
 * profile_keys.h - the fields behind the keys of a profile, as profile_fill writes them.
 *
 * A key that holds a number stays a node here: it is read in layers (profile.h).
 */
#ifndef HW_PROFILE_KEYS_H
#define HW_PROFILE_KEYS_H

#include "hw/hw_params.h"
#include "hw/profile.h"

/* Names of operating systems, by top_raw.system. */
extern const char *const profile_systems[];

struct top_raw {
	const char *name, *description;
	int system;
	struct yaml_node *device; /* gpu0, cpu0, …: looked up by name afterwards */
	struct yaml_node *kernels;
};

struct gpu_raw {
	const char *part, *description;
	struct yaml_node *link, *bandwidth, *flops, *launch;
	double memory, reserved, cache;
	bool unified, in_ram;
	uint64_t copy_engines;
};

struct cpu_raw {
	const char *part, *description;
	const char *isa;
	struct yaml_node *bandwidth, *thread_bandwidth, *copy, *flops, *launch, *clock, *fast_clock, *kernels;
	uint64_t cores, fast_cores, sockets, threads;
};

struct kernel_raw {
	struct yaml_node *decode, *prefill;
};

struct ram_raw {
	const char *part, *description;
	struct yaml_node *bandwidth;
	double rate, capacity, reserved;
	uint64_t channels, sockets;
	int numa; /* enum numa_policy */
};

enum numa_policy { NUMA_LOCAL, NUMA_INTERLEAVE, NUMA_REMOTE };

struct nvme_raw {
	const char *part, *description;
	struct yaml_node *read, *write, *both, *latency;
	double capacity, reserved;
};

struct link_raw {
	const char *part, *description;
	int kind, between;
	uint64_t gen, width;
	struct yaml_node *h2d, *d2h, *h2d_pageable, *d2h_pageable, *both, *latency;
	struct yaml_node *remote, *peer;
	struct yaml_node *generations;
	double pageable_dram_weight, other_widths_spread;
};

struct generation_raw {
	double rate;
	uint64_t data_bits, line_bits;
	struct yaml_node *h2d, *d2h, *h2d_pageable, *d2h_pageable, *both, *latency;
};

struct flops_raw {
	struct yaml_node *type[HW_DTYPE_N];
};

struct num_raw {
	double peak, measured, assumed, efficiency, spread;
	const char *source;
	struct yaml_node *points;
};

/* Fills raw, the struct of that kind, from a map. what names the thing for messages. */
int profile_fill(struct profile *p, enum hw_params_kind kind, const struct yaml_node *map, const char *what,
		 void *raw, struct err *err);

#endif
