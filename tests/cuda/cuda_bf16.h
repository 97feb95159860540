/*
 * cuda_bf16.h - the upper halves of floats; rounded to nearest, to even between two.
 */
#ifndef TESTS_CUDA_CUDA_BF16_H
#define TESTS_CUDA_CUDA_BF16_H

#include <cstdint>
#include <cstring>

struct __nv_bfloat16 {
	uint16_t bits;
};

inline float __bfloat162float(__nv_bfloat16 h)
{
	uint32_t bits = (uint32_t)h.bits << 16;
	float x;

	std::memcpy(&x, &bits, sizeof(x));
	return x;
}

inline __nv_bfloat16 __float2bfloat16(float x)
{
	uint32_t bits;

	std::memcpy(&bits, &x, sizeof(bits));
	if ((bits & 0x7fffffff) > 0x7f800000)
		return {0x7fff};
	return {(uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

#endif
