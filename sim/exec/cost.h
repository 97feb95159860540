/*
 * cost.h - what an engine's kernels reach of what the hardware has.
 *
 * Bandwidth and arithmetic belong to the machine (hw/); that a 4-bit matrix-vector kernel reaches four fifths
 * of the first, or a CPU's dequantisation half of the second, belongs to the software. Those shares and the
 * fixed times between kernels are data, one file an engine (hw/kernels/NAME.yaml), each with spread and source.
 */
#ifndef SIM_EXEC_COST_H
#define SIM_EXEC_COST_H

#include "hw/hw.h"
#include "models/model.h"

/* Types that kernels treat alike. */
enum cost_class {
	COST_16BIT, /* f32, f16, bf16: multiplied as they are */
	COST_8BIT,  /* q8_0, f8: one scale a block */
	COST_KQUANT, /* 2 to 6 bits with block scales: q4_0 … q6_k, iq4_nl */
	COST_TABLE, /* i-quants: looked up in tables */
	COST_CLASS_N,
};

struct cost {
	struct hw_num gpu_read[COST_CLASS_N];     /* share of memory rate, few rows */
	struct hw_num gpu_multiply[COST_CLASS_N]; /* share of the FP16 rate, many rows */
	struct hw_num gpu_attention;              /* share of memory rate when reading the cache */
	struct hw_num gpu_kernel_s;               /* from one kernel to the next */
	struct hw_num gpu_sync_s;                 /* the host waits for the GPU and goes on */
	struct hw_num copy_submit_s;              /* the host's part of one copy */
	struct hw_num gpu_alloc_s;                /* memory for one tensor, got and given back */
	struct hw_num step_s;                     /* the host between two steps: sampling, bookkeeping */
	struct hw_num cpu_read;                   /* share of memory rate, all threads */
	struct hw_num cpu_multiply_few[COST_CLASS_N]; /* share of the FP32 rate: dequantise and multiply few rows */
	struct hw_num cpu_multiply_many[COST_CLASS_N];
	struct hw_num cpu_attention;              /* share of memory rate when reading the cache */
	/* groups that not every engine has, 0 where the file does not: eager, files, zero_copy, reduce */
	struct hw_num host_op_s;                  /* the host's part of one operation, where it launches one by one */
	struct hw_num layer_s;                    /* the host between two layers */
	struct hw_num zero_copy_pcie, zero_copy_c2c; /* share of the link's rate that loads of a kernel reach */
	struct hw_num zero_copy_rows;             /* of an expert, for which its weights are read once */
	/* All-reduce of two ranks, beside its bytes: over NVLink, PCIe from GPU to GPU, PCIe through host memory; what each
	   further rank adds. */
	struct hw_num reduce_nvlink_s, reduce_pcie_s, reduce_host_s, reduce_rank_s;
};

/* Reads hw/kernels/NAME.yaml. Every number must be there, but for groups that not every engine has: cpu and those below. */
int cost_load(const char *name, struct arena *a, struct cost **out, struct err *err);
enum cost_class cost_class_of(const struct quant_type *type);
const char *cost_class_name(enum cost_class c);

/* Every number, named "kernels.gpu.read.kquant", for sensitivity and the run key; as hw_numbers. */
size_t cost_numbers(struct cost *c, struct arena *a, struct hw_num_ref **out);
struct cost *cost_copy(const struct cost *c, struct arena *a);
char *cost_canonical(const struct cost *c, struct arena *a);

#endif
