/*
 * op_graph.h - an operation graph as a program that runs it needs it. The format is described in sim/core/opg.h; what
 * only a simulation needs (resources, paths, caps) is passed over.
 */
#ifndef HW_CUDA_OP_GRAPH_H
#define HW_CUDA_OP_GRAPH_H

#include <cstdint>
#include <string>
#include <vector>

enum memory_kind { MEMORY_GPU, MEMORY_RAM, MEMORY_DRIVE };
enum buffer_role { ROLE_WEIGHTS, ROLE_CACHE, ROLE_HIDDEN, ROLE_STAGING };
enum op_kind { OP_COPY, OP_KERNEL, OP_WAIT, OP_JOIN, OP_STEP };

struct op_memory {
	std::string name;
	int kind;
};

struct op_device {
	std::string name;
	bool gpu;
	int memory;
};

struct op_buffer {
	int memory;
	uint64_t bytes; /* > 0 */
	int role;
};

struct op {
	int kind;
	int step;
	uint32_t after_begin, after_end; /* in graph::after: numbers below its own */
	int unit, stream, device;        /* -1: none */
	int from, to, via;               /* buffers, and a memory; -1: none */
	uint64_t at, into, bytes;
	double latency_s, flops;
	unsigned threads;                /* 0: all */
	bool pinned;
	bool fp32;                       /* its arithmetic is, for tensor cores are for shorter types */
};

struct op_graph {
	uint64_t steps, ahead;
	std::vector<op_memory> memories;
	std::vector<op_device> devices;
	std::vector<std::string> units;
	std::vector<op_buffer> buffers;
	std::vector<op> ops;
	std::vector<uint32_t> after;
	std::vector<uint32_t> step_end; /* by step: its operation */
};

/* Throws a failure that names file and line. */
op_graph op_graph_read(const std::string &path);

#endif
