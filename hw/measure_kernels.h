/*
 * measure_kernels.h - the inner loops of a matrix product with quantized weights, plain ones, to be timed.
 *
 *	weights  [chunk][chunk]…   256 of one row, in ggml's block formats: what a file holds
 *	inputs   [chunk][chunk]…   256 of one column: floats, or 8-bit integers with scales for quantized weights
 *	out[c] = sum over the row of weight x input[c]      one column is decode, KERNEL_COLUMNS at a time prefill
 *
 * The formats are those of GGUF files (docs of ggml-org/ggml). Of the i-quants only the tables are stand-ins: which
 * values are looked up does not change how long that takes.
 *
 * Each type has a kernel for each level of instructions; on x86 by target attribute, chosen when the program runs.
 */
#ifndef HW_MEASURE_KERNELS_H
#define HW_MEASURE_KERNELS_H

#include <stdbool.h>

#include "base/base.h"

enum kernel_type {
	KERNEL_F32,
	KERNEL_F16,
	KERNEL_BF16,
	KERNEL_Q8_0,
	KERNEL_Q4_0,
	KERNEL_Q4_K,
	KERNEL_Q5_K,
	KERNEL_Q6_K,
	KERNEL_IQ2_XXS,
	KERNEL_IQ3_S,
	KERNEL_TYPE_N,
};

#define KERNEL_CHUNK 256  /* weights */
#define KERNEL_COLUMNS 8

struct kernel_format {
	const char *name;      /* as ggml and models/quant know it */
	size_t chunk_bytes;    /* of KERNEL_CHUNK weights */
	size_t input_bytes;    /* of as many inputs */
	bool integer;          /* inputs are struct kernel_input, else floats */
};
extern const struct kernel_format kernel_format[KERNEL_TYPE_N];

/* Inputs for quantized weights. Types with a float scale for each 32 weights (q8_0, q4_0) have inputs with one too;
   the others' inputs have one scale for all 256, in scale[0]. */
struct kernel_input {
	int8_t q[KERNEL_CHUNK];
	float scale[8];
	int16_t sum32[8];  /* of each 32 q */
	int16_t sum16[16]; /* of each 16 */
};

/* Levels that were compiled in, slowest first; the last that kernel_level_runs() is the best. */
enum kernel_level {
	KERNEL_PLAIN, /* C for the compiler's own target: sse on x86, neon on Arm */
#if defined(__x86_64__)
	KERNEL_AVX2,
	KERNEL_AVX512,
	KERNEL_AVX512_VNNI,
#endif
	KERNEL_LEVEL_N,
};

const char *kernel_level_name(enum kernel_level level);
bool kernel_level_runs(enum kernel_level level); /* this processor has it */
enum kernel_level kernel_best_level(void);

/* Tables of the i-quants: signs of 8 values by 7 bits (the eighth makes their number even), and what 8 or 9 bits
   look up. */
struct kernel_tables {
	int8_t sign[128][8]; /* 1 or -1 */
	uint8_t grid2[256][8];
	uint8_t grid3[512][4];
};
void kernel_tables_init(struct kernel_tables *t);

/* out[0 .. columns - 1]; input c begins at x + c * stride_bytes. */
typedef void kernel_dot_fn(const struct kernel_tables *t, size_t n_chunks, const void *w, const void *x,
			   size_t stride_bytes, float *out);
/* For 1 or KERNEL_COLUMNS columns. */
kernel_dot_fn *kernel_dot(enum kernel_type type, enum kernel_level level, size_t columns);

/* Random weights with scales as models have them (no infinities, no denormals), and inputs in [-1, 1]. */
void kernel_fill_weights(enum kernel_type type, size_t n_chunks, uint64_t seed, void *w);
void kernel_fill_inputs(enum kernel_type type, size_t n_chunks, uint64_t seed, void *x);

/* Multiply-adds on registers: n times KERNEL_FMA_FLOPS operations. The result is of no use, but needed: without it
   the compiler would leave all out. */
#define KERNEL_FMA_FLOPS 3072
typedef float kernel_fma_fn(size_t n);
kernel_fma_fn *kernel_fma(enum kernel_level level);

/* Reads (their sum), writes, 64 bytes at a time; len is a multiple of 64 and p aligned to it. */
typedef uint64_t kernel_read_fn(const void *p, size_t len);
typedef void kernel_write_fn(void *p, size_t len, uint64_t value);
kernel_read_fn *kernel_read(enum kernel_level level);
kernel_write_fn *kernel_write(enum kernel_level level);

float kernel_half_to_float(uint16_t half);

#endif
