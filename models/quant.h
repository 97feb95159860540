/*
 * quant.h - element types: how many bytes a tensor takes.
 *
 * Block types store `block_elements` values in `block_bytes`; a row must be a whole number of blocks. That
 * is all of ggml's. Types of ik_llama.cpp may put a few bytes before each row; formats of checkpoints keep
 * scales beside the packed values:
 *
 *	ggml, ik        [meta][block][block]…      rows of blocks
 *	checkpoint      packed values │ a scale (and zero) per group of a row │ per row │ per column
 */
#ifndef MODELS_QUANT_H
#define MODELS_QUANT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"

/* Which programs can read a type. */
enum quant_family {
	QUANT_GGML,	  /* llama.cpp and its relatives, and f16 and the like: everyone */
	QUANT_IK,	  /* ik_llama.cpp alone */
	QUANT_CHECKPOINT, /* what PyTorch programs load: vLLM, Transformers, ExLlama, FlexGen */
};

enum quant_interleaved {
	QUANT_PLAIN,	/* rows are not interleaved */
	QUANT_CPU_ONLY, /* a GPU has no kernels for them */
	QUANT_GPU_TOO,
};

/* What llama.cpp and its relatives multiply with many rows on a GPU. */
enum quant_many_rows {
	QUANT_AS_IT_IS,
	QUANT_ONCE_EXPANDED, /* in builds before ik_llama.cpp's pull requests 374, 417 and 418 what follows */
	QUANT_EXPANDED,	     /* 16 bits, made of it first: iq1_m (ggml_cuda_should_use_mmq), interleaved k (461, 557) */
};

/* Floating point that products are in; of quantised weights 16 bits. */
enum quant_unit { QUANT_FP16, QUANT_FP32, QUANT_BF16, QUANT_FP8 };

struct quant_type {
	const char *name; /* lower case: "q4_k", "f16", "gptq-int4-g128" */
	int ggml_id;	  /* -1: not a type of GGUF files */
	uint32_t block_elements;
	uint32_t block_bytes;
	bool kv; /* usable as KV cache type */
	enum quant_family family;
	uint32_t row_meta_bytes; /* before each row: its scale */
	/* of checkpoints: a group is this many values of each of group_rows rows; 0: no groups */
	uint32_t group_elements, group_rows;
	uint32_t group_bits;   /* of a group's scale and zero */
	uint32_t column_bytes; /* of each input: GPTQ's group index, EXL3's signs */
	uint32_t matrix_bytes; /* of each matrix */
	/* what kernels depend on */
	bool table; /* values are looked up or computed one by one, not taken from bits */
	enum quant_unit unit;
	enum quant_interleaved interleaved;
	enum quant_many_rows many_rows;
};

/* NULL when unknown; case does not matter. */
const struct quant_type *quant_find(const char *name);
/* Those that kernels without a type of their own work in, without a look through the table. */
const struct quant_type *quant_f32(void);
const struct quant_type *quant_f16(void);
const struct quant_type *quant_bf16(void);
/* As quant_find, with an error naming the nearest type. */
int quant_get(const char *name, const struct quant_type **out, struct err *err);
/* The i-th type, NULL past the end. */
const struct quant_type *quant_at(size_t i);
/* As quant_find, and formats that come in any width: gptq-int3-g32, exl3-4.05bpw. NULL when unknown. */
const struct quant_type *quant_make(const char *name, struct arena *a);

/* Bytes of rows * row_elements values; for ggml's types row_elements must be a multiple of block_elements
   (BUG if not). The rows count as one matrix. */
uint64_t quant_bytes(const struct quant_type *t, uint64_t row_elements, uint64_t rows);
/* The same of a stack of matrices, such as experts. */
uint64_t quant_stack_bytes(
	const struct quant_type *t, uint64_t row_elements, uint64_t rows, uint64_t matrices);
/* Without what a row, a column or a matrix has once. */
double quant_bits_per_weight(const struct quant_type *t);

/* "llama.cpp", "ik_llama.cpp", "checkpoint": for messages about who knows a type. */
const char *quant_family_name(enum quant_family f);

/* The i-th type of ik_llama.cpp that llama.cpp does not have (quant_ik.c). */
const struct quant_type *quant_ik_at(size_t i);
/* The type whose rows an interleaved one holds ("q4_k" for "q4_k_r4"), or t itself. */
const struct quant_type *quant_ik_plain(const struct quant_type *t);
/* The other way: the type that -rtr makes of t ("q4_k_r4" of "q4_k"), or t itself where there is none. */
const struct quant_type *quant_ik_interleaved(const struct quant_type *t);

#endif
