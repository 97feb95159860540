/*
 * sat.h - sums and products of bytes that stop at the largest number instead of wrapping around.
 *
 * A context of 10^18 tokens is nonsense, but it must look like "does not fit", never like a small number.
 */
#ifndef MODELS_SAT_H
#define MODELS_SAT_H

#include "base/base.h"

static inline uint64_t sat_add(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static inline uint64_t sat_mul(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

#endif
