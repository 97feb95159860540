/*
 * hw.h - what a machine can do: memories, links and devices, each number with where it came from.
 *
 *	            gpu0.link (h2d, d2h, both)
 *	  [gpu0] ═══════════════════════════ [ram] ═════════════ [nvme0]
 *	    │ memory: capacity, bandwidth      │    nvme0.link      (a drive is a memory behind a link:
 *	  (gpu0) device: FLOP/s by type      (cpu0) device           its read and write rates are the link's)
 *
 * GPUs may also be joined to each other, by bridges or by a switch (gpu0.nvlink). What has no such link goes through ram.
 *
 * Where the GPU has no memory of its own (unified memory), its device computes from ram: there is neither a
 * gpu0 memory nor a gpu0.link, and CPU and GPU share one bus, of which a device may reach only a part.
 *
 * A machine is loaded once, checked, and const from then on; nothing here knows models or time.
 *
 * Numbers keep both faces: `peak` from the datasheet and `measured` by somebody, with the spread that
 * values of that kind show and the source in words. hw_num_value() is what simulations use (measured, else
 * peak times the part's stated efficiency); hw_num_peak() is what bounds use.
 */
#ifndef HW_HW_H
#define HW_HW_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/yaml.h"

enum hw_origin {
	HW_MEASURED, /* somebody measured it */
	HW_ASSUMED,  /* nobody did: an assumption, its reason in the source */
	HW_STATED,   /* a scenario says so */
};

struct hw_num {
	double peak;        /* datasheet or computed; 0 when none is known */
	double measured;    /* what to expect in practice; 0 when only the peak is known */
	enum hw_origin origin; /* of measured */
	double efficiency;  /* fraction of peak to expect where measured is 0; 0 is the same as 1 */
	double spread;      /* relative standard deviation of values of this kind (0.05 = 5 %) */
	const char *source; /* where both were read; for a number stated in a scenario: "FILE:LINE" */
	bool *taken;        /* set when the value or the peak is taken; NULL: nobody asks */
};

double hw_num_value(const struct hw_num *num); /* measured, else peak x efficiency; 0 when neither is known */
double hw_num_peak(const struct hw_num *num);  /* peak, else measured */
const char *hw_num_basis(const struct hw_num *num); /* "measured", "assumed", "stated", "peak", "unknown" */

/* A rate that may depend on the size of the transfer. The curve holds what remains after the link's
   latency is taken out, so that seconds(bytes) = latency + bytes / hw_rate_at(bytes); one point or none
   means that the rate does not depend on the size. The curve gives the shape only: it is scaled so that its
   last point is hw_num_value(&num), and changing num moves all of it. */
struct hw_rate {
	struct hw_num num;         /* for large transfers, B/s */
	size_t n_points;           /* 0: constant */
	const double *size_bytes;  /* ascending */
	const double *rate_bytes_s;
};

/* Rate for one transfer of so many bytes: linear in log(size) between points, flat outside. */
double hw_rate_at(const struct hw_rate *rate, double bytes);

enum hw_memory_kind { HW_MEMORY_GPU, HW_MEMORY_RAM, HW_MEMORY_DRIVE };

struct hw_memory {
	const char *name; /* "gpu0", "ram", "nvme0" */
	enum hw_memory_kind kind;
	const char *part;          /* the part it came from, or "" */
	uint64_t capacity_bytes;   /* what the system reports as total */
	uint64_t reserved_bytes;   /* of that, not for us: driver context, operating system */
	struct hw_num bandwidth_bytes_s; /* one bus for reads and writes; unknown for drives (see the link) */
	bool in_ram; /* of a GPU: a stretch of RAM, whose bus it shares; bandwidth_bytes_s is what the GPU reaches of that */
};

enum hw_link_kind { HW_LINK_PCIE, HW_LINK_C2C, HW_LINK_NVLINK, HW_LINK_DRIVE };

enum hw_link_between { HW_BETWEEN_HOST, HW_BETWEEN_PAIR, HW_BETWEEN_ALL };

/* A link joins a near memory (the host side, or the lower-numbered GPU) to a far one. `h2d` is near to
   far, `d2h` far to near; the two share `both`, the measured two-way sum (0: they do not disturb each other).

   Links between GPUs (NVLink) are of two kinds: a bridge joins the memories of a pair; a switch joins all, and each GPU has
   one link to it, whose near end is hw_switch(), a node that is no memory. */
struct hw_link {
	const char *name; /* "gpu0.link" */
	enum hw_link_kind kind;
	enum hw_link_between between; /* host and GPU (or drive), two GPUs, a GPU and all others */
	const char *part;
	int near, far;          /* indices into memories */
	unsigned gen, width;    /* PCIe generation and lanes; 0 elsewhere */
	struct hw_rate h2d, d2h;                   /* from and to pinned memory, copy engines */
	struct hw_rate h2d_pageable, d2h_pageable; /* through the driver's staging buffer; equal to the pinned
	                                              ones where that costs nothing */
	bool pageable_stated;   /* h2d_pageable by the machine itself, not by the link's part or the CPU */
	struct hw_num both_bytes_s;                /* two-way sum */
	struct hw_num remote_bytes_s;              /* from or to host memory of another socket or module; 0: as near memory */
	struct hw_num peer_bytes_s;                /* from GPU to GPU by way of their host memories; 0: what the way allows */
	struct hw_num latency_s;                   /* of one copy, submission to first byte */
	double pageable_dram_weight; /* times a pageable byte crosses the DRAM bus (pinned: once) */
};

enum hw_device_kind { HW_DEVICE_GPU, HW_DEVICE_CPU };
enum hw_dtype { HW_FP32, HW_FP16, HW_BF16, HW_FP8, HW_INT8, HW_DTYPE_N };

/* What one thread of a CPU was measured to do with weights of a type, as an engine's kernels do it. */
struct hw_kernel {
	const char *type;            /* as models/quant.h names it: "q4_k" */
	struct hw_num decode_bytes_s;  /* weights multiplied with one row, from its cache; 0: not measured */
	struct hw_num prefill_flops_s; /* 2 x weights x rows a second, many rows; 0: not measured */
	struct err_pos pos;          /* of the type's name */
};

struct hw_device {
	const char *name; /* "gpu0", "cpu0" */
	enum hw_device_kind kind;
	const char *part;
	int memory;                            /* index of the memory it computes from */
	struct hw_num bandwidth_bytes_s;       /* what it alone reaches of that memory's bus; unknown: all of it */
	struct hw_num flops_s[HW_DTYPE_N];     /* dense rate by operand type; unknown where it has none */
	struct hw_num launch_s;                /* host cost of one kernel or CPU task */
	/* Of a CPU; what a GPU has not is 0 or NULL. */
	unsigned cores, sockets;               /* physical cores of all sockets */
	unsigned fast_cores;                   /* those of them that are fast; 0: all are alike */
	unsigned threads;                      /* hardware threads of all sockets */
	const char *isa;                       /* that kernels are chosen by: "avx2" */
	struct err_pos isa_pos;                /* where that is written */
	struct hw_num clock_hz;                /* with all cores busy; its peak is that of one thread alone; may be unknown */
	struct hw_num fast_clock_hz;           /* with all fast cores busy and no other; unknown: see sim/exec/cost_cpu.c */
	struct hw_num thread_bandwidth_bytes_s; /* of DRAM, one thread alone; unknown: no limit of its own */
	struct hw_num copy_bytes_s;            /* from memory into a buffer that stays in cache, one thread; unknown: as usual with
	                                          such a link */
	struct hw_kernel *kernels;             /* measured on this very machine */
	int n_kernels;
	double cache_bytes;                    /* GPU: of its last level; 0: unknown */
	unsigned copy_engines;                 /* GPU: copies that run at once, usually 2 (one each way); 0: unified */
};

struct hw_machine {
	const char *name;        /* "desktop-rtx4090-ddr5", or "inline" */
	const char *description; /* one line */
	const char *file;        /* it came from; NULL for an inline one */
	struct hw_memory *memories;
	int n_memories;
	struct hw_link *links; /* those between GPUs first: of two ways of as many hops theirs is taken */
	int n_links;
	struct hw_device *devices;
	int n_devices;
	double remote_share;     /* of what a GPU reads of RAM: on a socket that is not its own (ram.numa) */
	const char *system;      /* its operating system: "linux", "windows", "wsl" */
	const struct yaml_node *kernels; /* a map by engine, for whom knows engines; NULL when there is none */
};

#define HW_MAX_HOPS 4

/* The node where links of kind HW_BETWEEN_ALL meet. */
static inline int hw_switch(const struct hw_machine *m)
{
	return m->n_memories;
}

/* Loads a machine: a name from hw/machines, a path to a YAML file, or (node) what stands behind
   `machine:` in a scenario: a scalar (name or path), an inline map, or {from: NAME, set: {…}}. Relative
   paths are taken from the folder of the file they are written in. Everything is checked: after success
   there is at least one memory and one device, every capacity and every rate is positive and finite. */
int hw_machine_load(const char *name_or_path, struct arena *a, struct hw_machine **out, struct err *err);
int hw_machine_load_node(const struct yaml_node *node, struct arena *a, struct hw_machine **out,
			 struct err *err);

/* The tree that `machine:` stands for, from: and set: resolved, before parts are looked up, so that
   yaml_set_path can override "gpu0.link.gen" (scalar_key "part") and the result be loaded again. The tree
   is the caller's own (it shares no node) and remembers the profile it began with under `name`. */
int hw_machine_resolve(const struct yaml_node *node, struct arena *a, struct yaml_node **out,
		       struct err *err);

/* Index by name, -1 when absent. */
int hw_find_memory(const struct hw_machine *m, const char *name);
int hw_find_device(const struct hw_machine *m, const char *name);
/* What its near end is called. */
const char *hw_link_near(const struct hw_machine *m, const struct hw_link *l);
/* First of its kind, -1 when there is none. */
int hw_first_memory(const struct hw_machine *m, enum hw_memory_kind kind);
int hw_first_device(const struct hw_machine *m, enum hw_device_kind kind);

/* Sockets, or modules, of its processors; and the one (from 0 on) that a device's link leads to: GPUs are spread evenly. */
unsigned hw_sockets(const struct hw_machine *m);
unsigned hw_socket_of(const struct hw_machine *m, int device);
/* The link between a memory and RAM; NULL: there is none. */
const struct hw_link *hw_host_link(const struct hw_machine *m, int memory);

/* Links to cross from one memory to another, fewest hops first (ties: lower index). Returns the number of
   hops (0 when from == to), -1 when there is no way. link[i] is crossed near to far when forward[i]. */
int hw_route(const struct hw_machine *m, int from, int to, int link[HW_MAX_HOPS], bool forward[HW_MAX_HOPS]);

/* Every number of the machine, named: for canonical text, sensitivity and `hw show`. The pointer is to
   the machine's own struct; the name is "gpu0.bandwidth", "gpu0.link.h2d", "cpu0.flops.fp32",
   "nvme0.read" (the key that sets it; it is nvme0.link's d2h). Numbers that are not known are left out. */
struct hw_num_ref {
	const char *name;
	struct hw_num *num;
	int dim; /* enum unit_dim */
};
size_t hw_numbers(struct hw_machine *m, struct arena *a, struct hw_num_ref **out);

/* A copy that may be changed (sensitivity runs); strings are shared. */
struct hw_machine *hw_machine_copy(const struct hw_machine *m, struct arena *a);

/* `hw show`: memories, devices and links, every number with unit, basis and source. */
void hw_machine_print(const struct hw_machine *m, FILE *to);
/* One line holding every number (contents, no names of parts and no sources), for the run key. */
char *hw_machine_canonical(const struct hw_machine *m, struct arena *a);

const char *hw_dtype_name(enum hw_dtype t);

/* What hw/parts holds: `hw list --parts`. cells hold the key numbers, written for people, in the order of
   hw_part_titles (NULL-terminated). */
enum hw_part_kind { HW_PART_GPU, HW_PART_CPU, HW_PART_LINK, HW_PART_DRAM, HW_PART_NVME, HW_PART_N };
#define HW_PART_CELLS 5
struct hw_part {
	const char *name, *description;
	const char *cells[HW_PART_CELLS];
};
const char *hw_part_kind_name(enum hw_part_kind kind); /* "gpu", "cpu", "link", "dram", "nvme" */
const char *const *hw_part_titles(enum hw_part_kind kind);
int hw_parts(enum hw_part_kind kind, struct arena *a, struct hw_part **out, size_t *n, struct err *err);

#endif
