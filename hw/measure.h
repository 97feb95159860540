/*
 * measure.h - what this machine really does: rates of its memory, its processors and a drive, measured here.
 *
 *	probe ─ [ram: rounds of all its items] ─ probe ─ [cpu: …] ─ probe ─ [disk: …] ─ probe
 *
 * An item is one thing measured ("read, 2 threads"). A part goes through all its items once a round, so that the
 * repetitions of an item lie seconds apart and their scatter holds what drifts over seconds: clocks, neighbours,
 * placement of pages. The number is their median, its interval where the next repetition falls with 80 %.
 *
 * Before and after each part a probe runs that is always the same, multiply-adds and reads of DRAM on all threads.
 * Where the two around a part differ by more than a tenth, its intervals are widened by as much. Where they do not but
 * /proc/stat shows that others used the processors meanwhile, they are widened by that tenth, which probes would not
 * have seen. Notes say so.
 */
#ifndef HW_MEASURE_H
#define HW_MEASURE_H

#include <signal.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/stats.h"
#include "base/units.h"
#include "base/vec.h"

enum measure_part { MEASURE_RAM, MEASURE_CPU, MEASURE_DISK, MEASURE_PART_N };
const char *measure_part_name(enum measure_part part); /* "ram", "cpu", "disk" */

/* The machine as far as measuring needs it. Strings and arrays are in the arena. */
struct measure_host {
	const char *cpu;         /* "AMD EPYC 9354 32-Core Processor" */
	const char *isa;         /* what engines' kernels are chosen by: "avx2", "neon_i8mm"; "" when unknown */
	unsigned cores, sockets; /* physical ones that this process may use */
	unsigned threads;        /* hardware threads that this process may use */
	unsigned quota;          /* how many of them a container's limit lets run at once; threads when there is none */
	const int *thread_cpu;   /* their numbers: first one of each core, nodes in turn, then the cores' second ones */
	const int *thread_node;  /* NUMA node of each */
	unsigned nodes;          /* nodes with both memory and such threads; numbered from 0 here */
	const int *node_number;  /* the system's number of each */
	uint64_t memory_bytes, available_bytes;
	uint64_t last_cache_bytes; /* all last-level caches together */
	uint64_t near_cache_bytes; /* the one last-level cache that the first thread sees */
};

int measure_host_read(struct arena *a, struct measure_host *out, struct err *err);
/* Keeps the calling thread on that processor; where that cannot be, it goes where it likes. */
void measure_pin(int cpu);

struct measure_options {
	bool part[MEASURE_PART_N];
	double time_s;    /* for all parts together, about */
	unsigned threads; /* at most; 0: all of the host's */
	const char *file; /* read this file; or a folder, for a file of our own there; NULL: in the current folder */
	const volatile sig_atomic_t *interrupted;                 /* checked between repetitions; NULL: never */
	void (*report)(void *ctx, const char *doing, double share); /* progress from 0 to 1; NULL: none */
	void *report_ctx;
};

struct measure_number {
	enum measure_part part;
	const char *name; /* "read.t2", "q4_0.decode.avx2.t1", "random.4KiB.q32" */
	const char *what; /* in words */
	enum unit_dim dim;
	double value;                  /* median */
	struct stats_interval interval80; /* widened by the part's noise */
	struct { VEC(double); } sample; /* one a round */
};

/* A line through the samples of a part: see what. */
struct measure_fit {
	enum measure_part part;
	const char *name, *what; /* what: "seconds of one read = a + b x bytes, …" */
	struct stats_line line;
	const double *x, *y;
	size_t n;
	const char *derived;     /* what a and b mean, in numbers */
};

struct measure_probe {
	double fma_flops_s, read_bytes_s; /* all threads */
};

struct measure_noise {
	struct measure_probe before, after;
	double seconds;
	double others_cores; /* processors that other processes kept busy on average */
	double steal_cores;  /* that the hypervisor gave to other guests */
	double widened;      /* share of the value by which both ends of intervals were moved; 0 in silence */
};

struct measurement {
	struct measure_host host;
	unsigned threads; /* used at most */
	char date[11];    /* 2026-11-30, UTC */
	bool part[MEASURE_PART_N];
	struct measure_noise noise[MEASURE_PART_N];
	struct { VEC(struct measure_number); } numbers;
	struct { VEC(struct measure_fit); } fits;
	struct { VEC(const char *); } notes; /* what a reader must know: noise, fall-backs */
	uint64_t drive_bytes;                /* of the file system that was read; 0: none was */
	const char *drive;                   /* which: the folder or file, and how it was read */
};

/* ERR_INTERRUPTED when *interrupted was set; nothing is left behind in any case. */
int measure_run(const struct measure_options *o, struct arena *a, struct measurement **out, struct err *err);

/* NULL when there is none of that name. */
const struct measure_number *measure_find(const struct measurement *m, enum measure_part part, const char *name);

/* A machine profile (hw.h) that stands on its own: what was measured, and parts of hw/parts for what was not. */
int measure_write_profile(const struct measurement *m, FILE *to, struct arena *a, struct err *err);

#endif
