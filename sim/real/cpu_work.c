#include "sim/real/cpu_work.h"

#include <string.h>
#include <time.h>

#define PROBE_S 0.05

/* Loads of the next words need not wait for the arithmetic on these: it is done on registers, with as many sums as hide
   how long one multiply-add takes and as there are registers for. One pass over len bytes for each number of multiply-adds
   would not do: what is fetched from memory would then be fetched only in the first. Words are asked for far enough ahead
   that memory stays busy while there is much to do for each.

   A function for each width of registers: vectors wider than these go through memory. */
#define SUMS 8
#define AHEAD_BYTES 8192

#define WORK(name, attributes, vec_bytes)                                                                           \
	typedef float name##_vec __attribute__((vector_size(vec_bytes), aligned(4), may_alias));                    \
	attributes static float name(const void *p, size_t len, unsigned macs)                                      \
	{                                                                                                           \
		const name##_vec x = (name##_vec){0} + 0.25f, *w = p;                                               \
		name##_vec sum[SUMS] = {{0}}, all = {0};                                                            \
		float total = 0;                                                                                    \
		for (size_t i = 0; i + SUMS <= len / sizeof(x); i += SUMS) {                                        \
			name##_vec v[SUMS];                                                                         \
			UNROLL                                                                                      \
			for (size_t k = 0; k < SUMS; k++)                                                           \
				v[k] = w[i + k];                                                                    \
			UNROLL                                                                                      \
			for (size_t k = 0; k < SUMS * sizeof(x); k += 64)                                           \
				__builtin_prefetch((const char *)(w + i) + k + AHEAD_BYTES);                        \
			for (unsigned m = macs; m > 0; m--) {                                                       \
				UNROLL                                                                              \
				for (size_t k = 0; k < SUMS; k++)                                                   \
					sum[k] = sum[k] * x + v[k];                                                 \
			}                                                                                           \
			if (macs == 0) {                                                                            \
				UNROLL                                                                              \
				for (size_t k = 0; k < SUMS; k++)                                                   \
					sum[k] += v[k];                                                             \
			}                                                                                           \
		}                                                                                                   \
		UNROLL                                                                                              \
		for (size_t k = 0; k < SUMS; k++)                                                                   \
			all += sum[k];                                                                              \
		for (size_t i = 0; i < sizeof(x) / sizeof(float); i++)                                              \
			total += all[i];                                                                            \
		return total;                                                                                       \
	}

WORK(work_16, , 16)
#if defined(__x86_64__)
WORK(work_32, __attribute__((target("avx2,fma"))), 32)
WORK(work_64, __attribute__((target("avx512f"))), 64)
#endif

float cpu_work(const void *p, size_t len, unsigned macs)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx512f"))
		return work_64(p, len, macs);
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		return work_32(p, len, macs);
#endif
	return work_16(p, len, macs);
}

static uint32_t pattern_word(unsigned buffer, uint64_t i)
{
	uint32_t mixed = ((uint32_t)i + 0x9e3779b9u * (uint32_t)(i >> 32)) * 0x9e3779b1u + buffer * 0x85ebca6bu;

	return 0x3f800000u | (mixed ^ mixed >> 15) >> 9;
}

void cpu_pattern(unsigned buffer, uint64_t from, void *to, size_t len)
{
	char *at = to;
	uint64_t i = from / 4;
	size_t skip = from % 4;

	for (; len; i++) {
		uint32_t word = pattern_word(buffer, i);
		size_t n = 4 - skip < len ? 4 - skip : len;
		memcpy(at, (const char *)&word + skip, n);
		at += n;
		len -= n;
		skip = 0;
	}
}

double cpu_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

struct cpu_probe cpu_probe_run(void *scratch, size_t bytes)
{
	struct cpu_probe p;
	char *half = (char *)scratch + bytes / 2;
	double begin = cpu_now(), n = 0;
	float keep = 0;

	memset(scratch, 0x3f, bytes); /* mapped, and floats */
	for (begin = cpu_now(), n = 0; cpu_now() - begin < PROBE_S; n++)
		memcpy(half, scratch, bytes / 2);
	p.copy_bytes_s = n * (double)(bytes / 2) / (cpu_now() - begin);
	for (begin = cpu_now(), n = 0; cpu_now() - begin < PROBE_S; n++)
		keep += cpu_work(scratch, CPU_WORK_BLOCK, 4096);
	CPU_KEEP(keep);
	p.flops_s = n * 2 * 4096 * (CPU_WORK_BLOCK / 4) / (cpu_now() - begin);
	return p;
}
