/*
 * cpu_dot.h - products with quantised weights, by the kernels with which `offsim calibrate` measures a processor.
 */
#ifndef SIM_REAL_CPU_DOT_H
#define SIM_REAL_CPU_DOT_H

#include <stdatomic.h>

#include "base/arena.h"
#include "hw/measure_kernels.h"

/* Weights in a row of a made-up matrix. */
#define CPU_DOT_ROW (16 * KERNEL_CHUNK)

struct cpu_dot {
	enum kernel_type type;
	size_t row_bytes;
	kernel_dot_fn *one, *many; /* for 1 and KERNEL_COLUMNS columns */
	const void *inputs;        /* KERNEL_COLUMNS columns */
	size_t stride_bytes;       /* from one to the next */
	const struct kernel_tables *tables;
};

/* Kernels for the best instructions that this processor has; false when there are none for that type. The arena holds
   inputs and tables. */
bool cpu_dot_init(struct cpu_dot *d, const char *type, struct arena *a);

/* FLOPs for each byte of weights, of one column. */
double cpu_dot_flops_byte(const struct cpu_dot *d);

/* Multiplies the rows in len bytes (what is left at the end is no whole row: its whole chunks) with so many columns. Ends early
   when *stop. The result is of no use, but needed. */
float cpu_dot(const struct cpu_dot *d, const void *weights, size_t len, uint64_t columns, const atomic_bool *stop);

#endif
