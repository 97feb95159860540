/*
 * probe.h - describe the machine this runs on.
 *
 *	/proc, /sys, nvidia-smi, dmidecode ──texts──> parsers ──> struct probe ──> parts of the library ──> profile
 *	        probe_source.c                   probe_cpu, _memory, _gpu, _pci      probe_part.c       probe_profile.c
 *
 * Each parser is a function of one text, so that machines that are not at hand are tested as recordings. What is not
 * found stays 0, NULL or "": that is no error. What the profile needs all the same is guessed (hw/probe.yaml), and
 * each guess is a note that says so. A link narrower than it could be is a fault and is taken as it is; a link at a
 * low generation on an idle card saves power and is taken at its highest.
 */
#ifndef HW_PROBE_H
#define HW_PROBE_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"

struct probe_cache {
	unsigned level, instances; /* 0 of them when unknown */
	uint64_t bytes;            /* of one */
};

struct probe_cpu {
	const char *model;      /* "AMD EPYC 9654 96-Core Processor"; "" when unknown */
	const char *isa;        /* what CPU kernels are chosen by: "avx2", "neon_i8mm"; "" when unknown */
	unsigned sockets;       /* of the cores we may run on; 0 when unknown */
	unsigned cores;         /* physical, of all sockets, that we may run on; 0 when unknown */
	unsigned threads;       /* hardware threads, likewise */
	unsigned all_threads;   /* of the machine, whoever may use them */
	double quota;           /* processors' worth of time a control group grants; 0: no limit */
	double clock_hz;        /* base clock where it is known, else the highest, else the present; 0 when unknown */
	unsigned nodes;         /* NUMA nodes with processors; 0 when unknown */
	bool hypervisor;        /* a virtual machine */
	struct probe_cache cache[3]; /* data caches by level, from 1 */
};

struct probe_ram {
	uint64_t total_bytes, available_bytes; /* as the system says; 0 when unknown */
	uint64_t limit_bytes, limit_used_bytes; /* of the control group, page cache not counted; 0: no limit */
	const char *type;        /* of the modules: "DDR5"; "" when unknown */
	double rate_t_s;         /* transfers a second as configured, the slowest module; 0 when unknown */
	double rated_t_s;        /* what the modules could do */
	bool rate_is_rated;      /* nothing says what is configured */
	unsigned modules, slots; /* in use, all; of all sockets */
	unsigned channels;       /* in use, of all sockets; 0 when the locators do not tell */
	uint64_t module_bytes;   /* of all modules */
};

struct probe_pcie {
	unsigned gen, gen_max;     /* now; what card and slot can do; 0 when unknown */
	unsigned gen_card;         /* what the card alone can do */
	unsigned width, width_max;
};

struct probe_gpu {
	const char *name;      /* "NVIDIA GeForce RTX 4090"; "" when unknown */
	const char *bus;       /* "0000:01:00.0" */
	uint64_t memory_bytes; /* 0 when unknown, or shared with the processors */
	uint64_t used_bytes;   /* by others, now */
	double compute;        /* compute capability: 8.9; 0 when unknown */
	double busy;           /* share of the time, now: 0 to 1; -1 when unknown */
	bool c2c;              /* NVLink to the processor is on */
	int node;              /* NUMA node of its slot; -1 when unknown */
	struct probe_pcie pcie;
};

struct probe_drive {
	const char *name;  /* "nvme0" as the system calls it */
	const char *model; /* "Samsung SSD 990 PRO 2TB" */
	uint64_t bytes;
	int node;
	struct probe_pcie pcie;
};

enum probe_note_kind {
	PROBE_FAULT, /* the machine is slower than it could be */
	PROBE_GUESS, /* a number of the profile that nobody read or measured */
	PROBE_HINT,  /* worth knowing */
};

struct probe_note {
	enum probe_note_kind kind;
	const char *about; /* "gpu0.link" */
	const char *text;
};

struct probe {
	struct arena *a;
	struct probe_cpu cpu;
	struct probe_ram ram;
	struct { VEC(struct probe_gpu); } gpus;
	struct { VEC(struct probe_drive); } drives;
	struct { VEC(const char *); } others;     /* disks and display devices that no profile describes, in words */
	const char *const *gpu_links;             /* n x n words of nvidia-smi's matrix, "NV18", "X"; NULL when unknown */
	unsigned n_gpu_links;                     /* n */
	struct { VEC(struct probe_note); } notes; /* written by probe_write_profile */
};

/* What CPU kernels are chosen by, of the flags of /proc/cpuinfo; "" when they tell nothing. */
const char *probe_isa(const char *flags);

/* Nothing found yet. */
void probe_init(struct probe *p, struct arena *a);
/* Reads the machine at hand: root is NULL. Else a recorded one: root/proc and root/sys, and what programs printed in
   root/nvidia-smi-query-gpu.csv, root/nvidia-smi-topo-m.txt and root/dmidecode-17.txt. Files and programs that are
   missing are no error; a root that is no folder is. */
int probe_read(struct probe *p, const char *root, struct arena *a, struct err *err);

/* What was found as a profile, of parts where the library has them; fills p->notes. *yaml is in the arena, and loads
   with hw_machine_load_node. */
int probe_write_profile(struct probe *p, const char **yaml, struct err *err);

const char *probe_note_name(enum probe_note_kind kind); /* "fault", "guess", "hint" */
/* Note i as lines "fault     gpu0.link: …", broken between words, prefix before each. */
const char *probe_note_lines(const struct probe *p, size_t i, const char *prefix);
/* What was found in a line for people: "AMD EPYC 9654 …: 2 sockets, 192 cores, …". */
const char *probe_describe_cpu(const struct probe *p);
const char *probe_describe_ram(const struct probe *p);
const char *probe_describe_gpu(const struct probe *p, size_t i);
const char *probe_describe_drive(const struct probe *p, size_t i);
const char *probe_describe_links(const struct probe *p); /* between GPUs; "" when there are none to speak of */

#endif
