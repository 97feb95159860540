#include "sim/real/cpu_work.h"

#include <string.h>
#include <time.h>

#define PROBE_S 0.05

typedef float vec __attribute__((vector_size(32), aligned(4), may_alias));
#define WORDS (sizeof(vec) / sizeof(float))
#define EACH(x) ((x) - (vec){0})

/* Four multiply-adds a word, or one, on independent sums: neither waits for the one before. */
static inline __attribute__((always_inline)) void four(const vec *w, size_t n, vec sum[4])
{
	const vec x0 = EACH(1.25f), x1 = EACH(0.5f), x2 = EACH(-0.75f), x3 = EACH(-1.0f);

	for (size_t i = 0; i < n; i++) {
		vec v = w[i];
		sum[0] += v * x0;
		sum[1] += v * x1;
		sum[2] += v * x2;
		sum[3] += v * x3;
	}
}

static inline __attribute__((always_inline)) void one(const vec *w, size_t n, vec sum[4])
{
	const vec x = EACH(0.25f);

	for (size_t i = 0; i + 4 <= n; i += 4)
		for (size_t k = 0; k < 4; k++)
			sum[k] += w[i + k] * x;
}

static inline __attribute__((always_inline)) void add(const vec *w, size_t n, vec sum[4])
{
	for (size_t i = 0; i + 4 <= n; i += 4)
		for (size_t k = 0; k < 4; k++)
			sum[k] += w[i + k];
}

static inline __attribute__((always_inline)) float work(const void *p, size_t len, unsigned macs)
{
	vec sum[4] = {{0}};
	float total = 0;

	for (size_t at = 0; at < len; at += CPU_WORK_BLOCK) {
		const vec *w = (const vec *)((const char *)p + at);
		size_t n = (len - at < CPU_WORK_BLOCK ? len - at : CPU_WORK_BLOCK) / sizeof(vec);
		if (macs == 0)
			add(w, n, sum);
		for (unsigned k = macs / 4; k > 0; k--)
			four(w, n, sum);
		for (unsigned k = macs % 4; k > 0; k--)
			one(w, n, sum);
	}
	for (size_t k = 0; k < 4; k++)
		for (size_t i = 0; i < WORDS; i++)
			total += sum[k][i];
	return total;
}

#if defined(__x86_64__)
static __attribute__((target("avx2"))) float work_avx2(const void *p, size_t len, unsigned macs)
{
	return work(p, len, macs);
}
#endif

float cpu_work(const void *p, size_t len, unsigned macs)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2"))
		return work_avx2(p, len, macs);
#endif
	return work(p, len, macs);
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
