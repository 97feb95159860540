/*
 * measure_factor.h - how much faster an engine's kernels are than offsim's plain ones (hw/kernels/plain.yaml).
 *
 * The plain kernels show what a processor does; an engine's own reach more, or less. Both were timed side by side on
 * one processor of each instruction set, and the ratio is carried over to others of the same.
 */
#ifndef HW_MEASURE_FACTOR_H
#define HW_MEASURE_FACTOR_H

#include "base/arena.h"
#include "base/err.h"
#include "hw/measure_kernels.h"

struct measure_ratio {
	double factor;      /* engine's rate / plain rate; 0: nobody timed it */
	double spread;
	const char *source;
	double published;   /* rate of one thread in published tables, B/s or FLOP/s; 0: none */
};

struct measure_factors {
	double published_fp32; /* FP32 rate of a thread of the processor that the published rates are of; 0: none */
	const char *published_source;
	struct measure_ratio decode[KERNEL_TYPE_N], prefill[KERNEL_TYPE_N];
};

/* Those of the level; all 0 when the file has none for it. */
int measure_factors_load(enum kernel_level level, struct arena *a, struct measure_factors *out, struct err *err);

#endif
