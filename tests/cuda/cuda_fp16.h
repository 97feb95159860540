/*
 * cuda_fp16.h - halves, bit by bit; rounded to nearest, to even between two.
 */
#ifndef TESTS_CUDA_CUDA_FP16_H
#define TESTS_CUDA_CUDA_FP16_H

#include <cstdint>
#include <cstring>

struct __half {
	uint16_t bits;
};
typedef __half half;

/* Shifted into place, a half is 2^112 times too small; one that is infinite or no number keeps an exponent of all ones. */
inline float __half2float(__half h)
{
	uint32_t bits = (uint32_t)(h.bits & 0x7fff) << 13, sign = (uint32_t)(h.bits & 0x8000) << 16;
	float x;

	if (bits >= 0x7c00u << 13)
		bits |= 0xffu << 23;
	std::memcpy(&x, &bits, sizeof(x));
	x = bits >= 0xffu << 23 ? x : x * 0x1p112f;
	std::memcpy(&bits, &x, sizeof(bits));
	bits |= sign;
	std::memcpy(&x, &bits, sizeof(x));
	return x;
}

inline __half __float2half(float x)
{
	uint32_t bits;
	std::memcpy(&bits, &x, sizeof(bits));
	uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
	int exponent = (int)(size >> 23) - 112;

	if (size > 0x7f800000)
		return {(uint16_t)(sign | 0x7e00)};
	if (exponent < -10)
		return {(uint16_t)sign};
	/* Below 2^-14 the leading one is written out. */
	uint32_t drop = exponent > 0 ? 13 : (uint32_t)(14 - exponent);
	uint32_t whole = exponent > 0 ? size - (112u << 23) : (size & 0x7fffff) | 0x800000;
	uint32_t kept = whole >> drop, rest = whole & ((1u << drop) - 1), tie = 1u << (drop - 1);
	kept += rest > tie || (rest == tie && (kept & 1));
	return {(uint16_t)(sign | (kept < 0x7c00 ? kept : 0x7c00))};
}

#endif
