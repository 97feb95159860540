/*
 * quant.h - element types: how many bytes a row of a tensor takes.
 *
 * Block types store `block_elements` values in `block_bytes`; a row must be a whole number of blocks.
 * The table is ggml's (sizes and ids as in ggml-common.h and gguf-py), plus the plain types of
 * checkpoints.
 */
#ifndef MODELS_QUANT_H
#define MODELS_QUANT_H

#include <stdbool.h>

#include "base/base.h"
#include "base/err.h"

struct quant_type {
	const char *name;        /* lower case: "q4_k", "f16" */
	int ggml_id;             /* -1: not a ggml type */
	uint32_t block_elements;
	uint32_t block_bytes;
	bool kv;                 /* usable as KV cache type */
};

/* NULL when unknown; case does not matter. */
const struct quant_type *quant_find(const char *name);
/* As quant_find, with an error naming the nearest type. */
int quant_get(const char *name, const struct quant_type **out, struct err *err);
/* The i-th type, NULL past the end. */
const struct quant_type *quant_at(size_t i);

/* Bytes of rows * row_elements values; row_elements must be a multiple of block_elements (BUG if not). */
uint64_t quant_bytes(const struct quant_type *t, uint64_t row_elements, uint64_t rows);
double quant_bits_per_weight(const struct quant_type *t);

#endif
