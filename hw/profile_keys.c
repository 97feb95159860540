#include "hw/profile_keys.h"

#define MAX_BYTES PROFILE_MAX_BYTES

/* A key that holds a number: a single value, or a map of number_params. */
#define NUMBER(S, field, key, dim, help)                                                           \
	{ (key), PARAM_KIND_NODE, (dim), offsetof(S, field), NULL, false, 0, 0, NULL, (help) }

static const char *const link_kinds[] = {"pcie", "c2c", "nvlink", NULL};
const char *const profile_systems[] = {"linux", "windows", "wsl", NULL};
static const char *const numa_policies[] = {"local", "interleave", "remote", NULL};
static const char *const link_betweens[] = {"host", "pair", "all", NULL};

#define DEVICE(key, help) PARAM_NODE(struct top_raw, device, key, help)
static const struct param machine_params[] = {
	PARAM_TEXT(struct top_raw, description, "description", "", "one line: what machine this is"),
	PARAM_TEXT(struct top_raw, name, "name", NULL, "what results call it; the file's name when left out"),
	PARAM_CHOICE(struct top_raw, system, "system", "linux", profile_systems,
		"operating system: what its driver makes of launches and waits is in hw/kernels"),
	PARAM_NODE(struct top_raw, device, "from", "the machine this one extends: a name or a file"),
	PARAM_NODE(struct top_raw, device, "set", "single values to override: {gpu0.link.gen: 3}"),
	DEVICE("ram", "host memory; required"),
	DEVICE("cpu0", "the processors; the part generic-cpu when left out beside a GPU"),
	DEVICE("gpu0", "a GPU: a part's name or a map; 'none' takes away what 'from' brought"),
	DEVICE("gpu1", "as gpu0"),
	DEVICE("gpu2", "as gpu0"),
	DEVICE("gpu3", "as gpu0"),
	DEVICE("gpu4", "as gpu0"),
	DEVICE("gpu5", "as gpu0"),
	DEVICE("gpu6", "as gpu0"),
	DEVICE("gpu7", "as gpu0"),
	DEVICE("gpu8", "as gpu0"),
	DEVICE("gpu9", "as gpu0"),
	DEVICE("gpu10", "as gpu0"),
	DEVICE("gpu11", "as gpu0"),
	DEVICE("gpu12", "as gpu0"),
	DEVICE("gpu13", "as gpu0"),
	DEVICE("gpu14", "as gpu0"),
	DEVICE("gpu15", "as gpu0"),
	DEVICE("nvlink", "joins the GPUs to each other: a part's name or a map with the keys of gpu0.link; without it they "
		"reach each other through ram"),
	DEVICE("nvme0", "a drive: a part's name or a map"),
	DEVICE("nvme1", "as nvme0"),
	DEVICE("nvme2", "as nvme0"),
	DEVICE("nvme3", "as nvme0"),
	DEVICE("nvme4", "as nvme0"),
	DEVICE("nvme5", "as nvme0"),
	DEVICE("nvme6", "as nvme0"),
	DEVICE("nvme7", "as nvme0"),
	PARAM_NODE(struct top_raw, kernels, "kernels",
		"what engines' kernels reach on it, before hw/kernels: {llama.cpp: {cpu.read: {value: 72%}}}"),
};

static const struct param gpu_params[] = {
	PARAM_TEXT(struct gpu_raw, part, "part", NULL, "a name from 'offsim hw list --parts gpu'"),
	PARAM_TEXT(struct gpu_raw, description, "description", NULL, "one line"),
	PARAM_REAL(struct gpu_raw, memory, "memory", UNIT_BYTES, NULL, 1, MAX_BYTES,
		"total memory, as nvidia-smi reports it; required"),
	PARAM_REAL(struct gpu_raw, reserved, "reserved", UNIT_BYTES, NULL, 0, MAX_BYTES,
		"of that, taken by the driver and its context"),
	PARAM_FLAG(struct gpu_raw, unified, "unified", "no",
		"it computes from ram: no memory, no bandwidth and no link of its own"),
	PARAM_FLAG(struct gpu_raw, in_ram, "in_ram", "no",
		"its memory is a stretch of RAM set aside, which ram.capacity counts and the host has not: what it reads and what is "
		"copied to it shares ram.bandwidth"),
	PARAM_REAL(struct gpu_raw, cache, "cache", UNIT_BYTES, "0MiB", 0, MAX_BYTES,
		"of the last level: what kernels hand to the next and fits there does not go through memory; 0: nothing does"),
	NUMBER(struct gpu_raw, bandwidth, "bandwidth", UNIT_BYTES_RATE, "of the GPU's own memory: 1008GB/s"),
	PARAM_NODE(struct gpu_raw, flops, "flops", "dense compute rate by operand type: {fp16: 165TFLOP/s}"),
	NUMBER(struct gpu_raw, launch, "launch", UNIT_TIME, "host cost of one kernel: 2.5us"),
	PARAM_NODE(struct gpu_raw, link, "link", "to host memory; the part's own when left out"),
	PARAM_COUNT(struct gpu_raw, copy_engines, "copy_engines", "2", 1, 64, "copies that run at once"),
};

static const struct param cpu_params[] = {
	PARAM_TEXT(struct cpu_raw, part, "part", NULL, "a name from 'offsim hw list --parts cpu'"),
	PARAM_TEXT(struct cpu_raw, description, "description", NULL, "one line"),
	PARAM_COUNT(struct cpu_raw, cores, "cores", NULL, 1, 65536,
		"physical cores of one socket; the part's flops follow"),
	PARAM_COUNT(struct cpu_raw, fast_cores, "fast_cores", NULL, 1, 65536,
		"of a hybrid processor's cores those that are fast; all alike when left out"),
	PARAM_COUNT(struct cpu_raw, sockets, "sockets", "1", 1, 64, "the part's cores and rates are of one"),
	NUMBER(struct cpu_raw, bandwidth, "bandwidth", UNIT_BYTES_RATE,
		"what all its cores reach of ram.bandwidth: 118GB/s; all of it when left out"),
	NUMBER(struct cpu_raw, thread_bandwidth, "thread_bandwidth", UNIT_BYTES_RATE,
		"what one thread alone reaches of it: 14GB/s; no limit when left out"),
	NUMBER(struct cpu_raw, copy, "copy", UNIT_BYTES_RATE,
		"what one thread copies from memory into the driver's buffer for a pageable copy to a GPU: 30GB/s; the link's when left out"),
	PARAM_NODE(struct cpu_raw, flops, "flops", "dense compute rate by operand type: {fp16: 165TFLOP/s}"),
	NUMBER(struct cpu_raw, launch, "launch", UNIT_TIME,
		"cost of handing one task to all threads and meeting again: 5us"),
	PARAM_COUNT(struct cpu_raw, threads, "threads", NULL, 1, 131072,
		"hardware threads of one socket; as many as cores when left out"),
	PARAM_TEXT(struct cpu_raw, isa, "isa", "avx2",
		"what an engine's kernels are chosen by: avx2, avx512_vnni, neon, …"),
	NUMBER(struct cpu_raw, clock, "clock", UNIT_FREQUENCY,
		"with all cores busy: 3.6GHz (peak: of one thread alone); from flops.fp32, at 32 a cycle, when left out"),
	NUMBER(struct cpu_raw, fast_clock, "fast_clock", UNIT_FREQUENCY,
		"with all fast_cores busy and no other: 4.7GHz; as clock falls with each thread when left out"),
	PARAM_NODE(struct cpu_raw, kernels, "kernels",
		"measured rates of one thread by type of weights: {q4_0: {decode: 5.2GB/s, prefill: 61GFLOP/s}}"),
};

static const struct param kernel_params[] = {
	NUMBER(struct kernel_raw, decode, "decode", UNIT_BYTES_RATE,
		"weights multiplied with one row, from cache: 5.2GB/s"),
	NUMBER(struct kernel_raw, prefill, "prefill", UNIT_FLOP_RATE, "2 x weights x rows, many rows: 61GFLOP/s"),
};

static const struct param ram_params[] = {
	PARAM_TEXT(struct ram_raw, part, "part", "generic-ram", "a name from 'offsim hw list --parts dram'"),
	PARAM_TEXT(struct ram_raw, description, "description", NULL, "one line"),
	PARAM_REAL(struct ram_raw, capacity, "capacity", UNIT_BYTES, NULL, 1, MAX_BYTES,
		"of all modules; required"),
	PARAM_REAL(struct ram_raw, reserved, "reserved", UNIT_BYTES, NULL, 0, MAX_BYTES,
		"of that, used by the operating system"),
	PARAM_REAL(struct ram_raw, rate, "rate", UNIT_TRANSFER_RATE, NULL, 1e6, 1e12,
		"of one channel of 8 bytes: 5600MT/s"),
	PARAM_COUNT(struct ram_raw, channels, "channels", NULL, 1, 128, "of one socket, in use"),
	PARAM_COUNT(struct ram_raw, sockets, "sockets", "1", 1, 64, "the channels are of one"),
	NUMBER(struct ram_raw, bandwidth, "bandwidth", UNIT_BYTES_RATE,
		"of all channels: 70GB/s; rate x 8 B x channels when left out"),
	PARAM_CHOICE(struct ram_raw, numa, "numa", "local", numa_policies,
		"of several sockets or modules, whose memory GPUs read: each its own one's (numactl, --numa-bind), pages of all in "
		"turn, or another's; gpu0.link.remote says how fast that is"),
};

static const struct param nvme_params[] = {
	PARAM_TEXT(struct nvme_raw, part, "part", NULL, "a name from 'offsim hw list --parts nvme'"),
	PARAM_TEXT(struct nvme_raw, description, "description", NULL, "one line"),
	PARAM_REAL(struct nvme_raw, capacity, "capacity", UNIT_BYTES, NULL, 1, MAX_BYTES,
		"of the drive; required"),
	PARAM_REAL(struct nvme_raw, reserved, "reserved", UNIT_BYTES, NULL, 0, MAX_BYTES,
		"of that, not free for us; nothing when left out"),
	NUMBER(struct nvme_raw, read, "read", UNIT_BYTES_RATE, "large reads, many at once: 6GB/s"),
	NUMBER(struct nvme_raw, write, "write", UNIT_BYTES_RATE, "large writes, sustained: 3GB/s"),
	NUMBER(struct nvme_raw, both, "both", UNIT_BYTES_RATE,
		"sum of reads and writes at once; unlimited when left out"),
	NUMBER(struct nvme_raw, latency, "latency", UNIT_TIME, "of one read: 50us"),
};

/* What a link and one generation of it have in common. */
#define LINK_NUMBERS(S)                                                                                      \
	NUMBER(S, h2d, "h2d", UNIT_BYTES_RATE, "host to device, pinned memory, large copies: 25GB/s"),       \
		NUMBER(S, d2h, "d2h", UNIT_BYTES_RATE, "device to host, the same"),                          \
		NUMBER(S, h2d_pageable, "h2d_pageable", UNIT_BYTES_RATE,                                     \
			"host to device from pageable memory; h2d when left out"),                           \
		NUMBER(S, d2h_pageable, "d2h_pageable", UNIT_BYTES_RATE,                                     \
			"device to host into pageable memory; d2h when left out"),                           \
		NUMBER(S, both, "both", UNIT_BYTES_RATE,                                                     \
			"sum of the two directions at once; unlimited when left out"),                       \
		NUMBER(S, latency, "latency", UNIT_TIME, "of one copy: 2.7us")

static const struct param link_params[] = {
	PARAM_TEXT(struct link_raw, part, "part", NULL,
		"a name from 'offsim hw list --parts link', or pcie-GENxLANES"),
	PARAM_TEXT(struct link_raw, description, "description", NULL, "one line"),
	PARAM_CHOICE(struct link_raw, kind, "kind", "pcie", link_kinds, "how it behaves"),
	PARAM_CHOICE(struct link_raw, between, "between", "host", link_betweens,
		"what it joins: host and GPU; for nvlink each two GPUs (gpu0 and gpu1, ...) by a bridge, or all by a switch"),
	PARAM_COUNT(struct link_raw, gen, "gen", NULL, 1, 6, "PCIe generation it runs at"),
	PARAM_COUNT(struct link_raw, width, "width", NULL, 1, 16, "PCIe lanes it runs with: 1, 2, 4, 8, 16"),
	LINK_NUMBERS(struct link_raw),
	NUMBER(struct link_raw, remote, "remote", UNIT_BYTES_RATE,
		"from or to host memory of another socket or module: 133GB/s; as near memory when left out"),
	NUMBER(struct link_raw, peer, "peer", UNIT_BYTES_RATE,
		"from one GPU to another by way of their host memories: 58GB/s; what the way allows when left out"),
	PARAM_REAL(struct link_raw, pageable_dram_weight, "pageable_dram_weight", UNIT_PLAIN, "1", 1, 10,
		"times a byte of a pageable copy crosses the DRAM bus"),
	PARAM_NODE(struct link_raw, generations, "generations", "PCIe: numbers of x16 links by generation"),
	PARAM_REAL(struct link_raw, other_widths_spread, "other_widths_spread", UNIT_FRACTION, "0", 0, 2,
		"PCIe: spread that scaling from 16 lanes to another width adds"),
};

static const struct param generation_params[] = {
	PARAM_REAL(struct generation_raw, rate, "rate", UNIT_TRANSFER_RATE, NULL, 1e6, 1e13, "of one lane"),
	PARAM_COUNT(struct generation_raw, data_bits, "data_bits", NULL, 1, 4096, "of line_bits"),
	PARAM_COUNT(struct generation_raw, line_bits, "line_bits", NULL, 1, 4096, "encoding"),
	LINK_NUMBERS(struct generation_raw),
};

#define DTYPE(i, key, help) NUMBER(struct flops_raw, type[i], key, UNIT_FLOP_RATE, help)
static const struct param flops_params[] = {
	DTYPE(HW_FP32, "fp32", "FP32 operands, no tensor cores: 82TFLOP/s"),
	DTYPE(HW_FP16, "fp16", "FP16 operands, FP32 accumulation"),
	DTYPE(HW_BF16, "bf16", "BF16 operands, FP32 accumulation"),
	DTYPE(HW_FP8, "fp8", "FP8 operands, FP32 accumulation"),
	DTYPE(HW_INT8, "int8", "INT8 operands: 660TOP/s"),
};

/* The dimension of the first three rows is that of the number which is read. */
static const struct param number_params[] = {
	PARAM_REAL(struct num_raw, peak, "peak", UNIT_PLAIN, NULL, 0, 0, "from the datasheet, or computed"),
	PARAM_REAL(struct num_raw, measured, "measured", UNIT_PLAIN, NULL, 0, 0, "what somebody reached"),
	PARAM_REAL(struct num_raw, assumed, "assumed", UNIT_PLAIN, NULL, 0, 0,
		"in place of measured, where nobody did; the source says why"),
	PARAM_REAL(struct num_raw, efficiency, "efficiency", UNIT_FRACTION, NULL, 1e-3, 2,
		"share of the peak to expect where nobody measured"),
	PARAM_REAL(struct num_raw, spread, "spread", UNIT_FRACTION, NULL, 0, 2,
		"relative standard deviation of such values"),
	PARAM_TEXT(struct num_raw, source, "source", NULL, "where this was read"),
	PARAM_NODE(struct num_raw, points, "points",
		"by size, latency taken out: [[1MiB, 14GB/s], …]; only its shape counts"),
};

const struct param *hw_params(enum hw_params_kind kind, size_t *n, const char **prefix)
{
	static const struct {
		const struct param *rows;
		size_t n;
		const char *prefix;
	} tables[HW_PARAMS_N] = {
		[HW_PARAMS_MACHINE] = {machine_params, ARRAY_LEN(machine_params), "machine"},
		[HW_PARAMS_GPU] = {gpu_params, ARRAY_LEN(gpu_params), "machine.gpu0"},
		[HW_PARAMS_CPU] = {cpu_params, ARRAY_LEN(cpu_params), "machine.cpu0"},
		[HW_PARAMS_RAM] = {ram_params, ARRAY_LEN(ram_params), "machine.ram"},
		[HW_PARAMS_NVME] = {nvme_params, ARRAY_LEN(nvme_params), "machine.nvme0"},
		[HW_PARAMS_LINK] = {link_params, ARRAY_LEN(link_params), "machine.gpu0.link"},
		[HW_PARAMS_GENERATION] = {generation_params, ARRAY_LEN(generation_params),
			"machine.gpu0.link.generations.4"},
		[HW_PARAMS_FLOPS] = {flops_params, ARRAY_LEN(flops_params), "machine.gpu0.flops"},
		[HW_PARAMS_KERNEL] = {kernel_params, ARRAY_LEN(kernel_params), "machine.cpu0.kernels.q4_0"},
		[HW_PARAMS_NUMBER] = {number_params, ARRAY_LEN(number_params), "machine.gpu0.bandwidth"},
	};

	*n = tables[kind].n;
	*prefix = tables[kind].prefix;
	return tables[kind].rows;
}

int profile_fill(struct profile *p, enum hw_params_kind kind, const struct yaml_node *map, const char *what,
	void *raw, struct err *err)
{
	const char *prefix;
	size_t n;
	const struct param *rows = hw_params(kind, &n, &prefix);

	return param_fill(rows, n, map, what, raw, p->a, err);
}
