/*
 * platform.h - a machine as the core sees it: resources and units.
 *
 *	hw memory  ──> one resource (its bus)                "gpu0", "ram"; a GPU's that is set aside in RAM: that of "ram"
 *	hw link    ──> three: h2d, d2h, and both             "gpu0.link.h2d" …
 *	hw device  ──> one: its arithmetic, in FLOP/s        "gpu0.compute"
 *	device     ──> unit for kernels; GPU: units for copies in and out (one where it has one copy engine)
 *	drive      ──> units for reads and writes
 *
 * A copy is a flow over the buses and links from memory to memory; a kernel is a flow over the memory it
 * reads, weighted with the arithmetic it does for each byte, so the slower of the two limits it and copies
 * on the same bus slow it down.
 */
#ifndef SIM_EXEC_PLATFORM_H
#define SIM_EXEC_PLATFORM_H

#include "hw/hw.h"
#include "models/quant.h"
#include "sim/core/sim.h"

/* Four links with both directions, and the memories at their ends. */
#define PLATFORM_MAX_HOPS 12

struct platform_link {
	int h2d, d2h, both; /* resources; both: SIM_NONE when the directions do not disturb each other */
};

struct platform_copies {
	int in, out; /* units: towards the device's or drive's memory, and from it */
};

struct platform {
	const struct hw_machine *machine;
	int n_resources;
	const char **resource_name;
	double *capacity;
	bool *counts_bytes;             /* memory or link: what it moves are bytes */
	int *memory_resource;           /* by memory; SIM_NONE: a drive, whose link is its bus */
	struct platform_link *link;     /* by link */
	int *compute_resource;          /* by device */
	int n_units;
	const char **unit_name;
	uint32_t *unit_places;
	int *kernel_unit;               /* by device */
	struct platform_copies *copies; /* by memory; RAM has none of its own */
	const double *remote_share;     /* by memory: of what it has from RAM and gives there, on another socket; NULL: none */
};

void platform_init(struct platform *p, const struct hw_machine *m, struct arena *a);

/* A path under construction; the caller keeps it until sim_add has copied it. */
struct platform_path {
	struct maxmin_hop hop[PLATFORM_MAX_HOPS];
	int n;
};

/* A copy of bytes between two memories with a route (BUG without): path, unit, cap for its size and, with
   overheads, latency. */
void platform_copy(const struct platform *p, int from, int to, double bytes, bool pinned, bool overheads,
	struct platform_path *path, struct sim_op *op);

/* Bytes of a file to RAM, and by a thread from the page cache to where they are wanted; kept: the latter alone. rate: of that
   thread. */
void platform_read_file(const struct platform *p, int drive, double bytes, double rate, bool kept, bool overheads,
	struct platform_path *path, struct sim_op *op);

/* What a kernel (or one of the host's tasks) has to do, and how well it does it. */
struct platform_work {
	double bytes; /* of the device's own memory, read or written */
	double flops; /* one of the two must be > 0 */
	enum hw_dtype dtype;
	double read_share;    /* of the memory's rate that it reaches alone; 0 means 1 */
	double compute_share; /* of the device's arithmetic rate for dtype; 0 means 1 */
	double alone_s;       /* with bytes: it takes no less even when nothing disturbs it, though each of the two rates
	                         would allow it; 0: no such limit */
	double latency_s;     /* launches, barriers, waits: before it begins */
	unsigned threads;     /* of a CPU that do it; 0: one for each core. Said to real executors: the shares hold it already */
};

/* A kernel on a device: path, unit, cap, latency. */
void platform_kernel(const struct platform *p, int device, const struct platform_work *work,
	struct platform_path *path, struct sim_op *op);

/* What kernels of two GPUs send each other: no copy engine, no latency of its own. direct: over PCIe past host memory. */
void platform_send(const struct platform *p, int from, int to, double bytes, bool direct, struct platform_path *path,
	struct sim_op *op);

/* A kernel whose bytes are in another memory than its device's, read over the link while it runs. rate_share: of the link's
   rate that its loads reach; remote_share: of what that has from another socket. */
void platform_kernel_far(const struct platform *p, int device, int memory, double rate_share, double remote_share,
	const struct platform_work *work, struct platform_path *path, struct sim_op *op);

/* The operand type with which a device computes on weights of a type: what it has a rate for, at best the type's own. */
enum hw_dtype platform_dtype(const struct hw_device *d, const struct quant_type *type);

#endif
