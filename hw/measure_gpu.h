/*
 * measure_gpu.h - the samples of `offsim-cuda calibrate` made into constants of a machine's profile.
 *
 *	RAW.json ──> samples of a part by size ──> latency + bytes / rate   (robust, relative) ──> link.latency, rates by size
 *	             samples of one thing       ──> median                                      ──> bandwidth, flops, launch ...
 *
 * The JSON is an object: format "offsim-cuda raw 1", date, host, ram_bytes, version, driver, driver_text, runtime, quick, and
 *	devices [{index, name, memory_bytes, free_bytes, copy_engines, integrated, pageable_access, pcie_gen, pcie_width, ...}]
 *	samples [{part, device, type, peer, rows, flops, threads, bytes, count, seconds [..], other_seconds [..], fault}]
 *	skipped [{part, why}]
 * bytes and flops are of one operation; each of `seconds` is of `count` of them. A sample with a fault is not used.
 */
#ifndef HW_MEASURE_GPU_H
#define HW_MEASURE_GPU_H

#include <stdbool.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/units.h"
#include "base/vec.h"

struct gpu_constant {
	int device;          /* -1: of all, an engine's share or time */
	const char *name;    /* "gpu0.link.h2d", "kernels.llama.cpp.gpu.kernel" */
	const char *key;     /* the end of it, below what the profile nests */
	enum unit_dim dim;
	double value;
	double spread;       /* relative standard deviation of repetitions */
	size_t n;            /* repetitions */
	const char *what;    /* in words */
	size_t n_points;     /* rates by size, latency taken out; 0: one for all */
	const double *size_bytes, *rate_bytes_s;
};

struct gpu_device {
	const char *name;
	uint64_t memory_bytes, free_bytes, copy_engines;
	uint64_t pcie_gen, pcie_width; /* 0: not known */
	bool pageable_access, integrated;
};

struct gpu_fit {
	const char *file, *date, *host, *driver; /* "": not known */
	uint64_t ram_bytes;
	struct { VEC(struct gpu_device); } devices;
	struct { VEC(struct gpu_constant); } constants;
	struct { VEC(const char *); } notes; /* faults, parts left out, guesses */
};

int gpu_fit_read(const char *path, struct arena *a, struct gpu_fit *out, struct err *err);
int gpu_fit_read_text(const char *text, size_t len, const char *name, struct arena *a, struct gpu_fit *out, struct err *err);

/* NULL when it was not measured. */
const struct gpu_constant *gpu_fit_find(const struct gpu_fit *f, const char *name);

/* A machine profile. base: the name or path of the one that says the rest, NULL: what was not measured is left to generic
   parts; then the samples must say something of host memory. */
int gpu_fit_write(const struct gpu_fit *f, const char *base, FILE *to, struct arena *a, struct err *err);

#endif
