#include "hw/measure_kernels.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"

const struct kernel_format kernel_format[KERNEL_TYPE_N] = {
	[KERNEL_F32] = {"f32", 1024, 1024, false},
	[KERNEL_F16] = {"f16", 512, 1024, false},
	[KERNEL_BF16] = {"bf16", 512, 1024, false},
	[KERNEL_Q8_0] = {"q8_0", 8 * 34, sizeof(struct kernel_input), true},
	[KERNEL_Q4_0] = {"q4_0", 8 * 18, sizeof(struct kernel_input), true},
	[KERNEL_Q4_K] = {"q4_k", 144, sizeof(struct kernel_input), true},
	[KERNEL_Q5_K] = {"q5_k", 176, sizeof(struct kernel_input), true},
	[KERNEL_Q6_K] = {"q6_k", 210, sizeof(struct kernel_input), true},
	[KERNEL_IQ2_XXS] = {"iq2_xxs", 66, sizeof(struct kernel_input), true},
	[KERNEL_IQ3_S] = {"iq3_s", 110, sizeof(struct kernel_input), true},
};
#define KERNEL_EACH_TYPE(X) X(F32) X(F16) X(BF16) X(Q8_0) X(Q4_0) X(Q4_K) X(Q5_K) X(Q6_K) X(IQ2_XXS) X(IQ3_S)

float kernel_half_to_float(uint16_t half)
{
	uint32_t exponent = half >> 10 & 31, fraction = half & 1023, bits = (uint32_t)(half & 0x8000) << 16;
	float f;

	if (exponent == 31)
		bits |= 0x7f800000 | fraction << 13;
	else if (exponent)
		bits |= (exponent + 112) << 23 | fraction << 13;
	else
		return (half & 0x8000 ? -1.0f : 1.0f) * (float)fraction * 0x1p-24f;
	memcpy(&f, &bits, 4);
	return f;
}

/* ---- reads and writes of whole vectors; the level's functions inline them ---- */

typedef uint64_t lane8 __attribute__((vector_size(64), aligned(64)));

static inline __attribute__((always_inline)) uint64_t read_body(const void *p, size_t len)
{
	const lane8 *v = p;
	lane8 sum[4] = {0};
	uint64_t all = 0;
	size_t n = len / sizeof(*v), i = 0;

	for (; i + 4 <= n; i += 4) {
		UNROLL
		for (size_t k = 0; k < 4; k++)
			sum[k] += v[i + k];
	}
	for (; i < n; i++)
		sum[0] += v[i];
	sum[0] += sum[1] + sum[2] + sum[3];
	for (size_t k = 0; k < 8; k++)
		all += sum[0][k];
	return all;
}

static inline __attribute__((always_inline)) void write_body(void *p, size_t len, uint64_t value)
{
	lane8 *v = p;

	for (size_t i = 0; i < len / sizeof(*v); i++) {
		v[i] = (lane8){value, value, value, value, value, value, value, value};
		/* Else the compiler calls memset, whose stores go around the caches. */
		__asm__ volatile("" : : : "memory");
	}
}

static uint64_t plain_read(const void *p, size_t len)
{
	return read_body(p, len);
}

static void plain_write(void *p, size_t len, uint64_t value)
{
	write_body(p, len, value);
}

/* Below 1, so that x f + f neither grows without end nor becomes denormal. */
static const float fma_factors[32] = {0.731f, 0.532f, 0.613f, 0.425f, 0.554f, 0.637f, 0.711f, 0.482f, 0.529f,
	0.668f, 0.743f, 0.451f, 0.592f, 0.688f, 0.717f, 0.466f, 0.507f, 0.649f, 0.735f, 0.443f, 0.581f,
	0.676f, 0.722f, 0.457f, 0.514f, 0.655f, 0.749f, 0.438f, 0.573f, 0.691f, 0.703f, 0.471f};

/* ---- plain C ---- */

typedef float float4 __attribute__((vector_size(16)));

static float plain_fma(size_t n)
{
	float4 sum[8], factor;

	memcpy(&factor, fma_factors, sizeof(factor));
	memcpy(sum, fma_factors, sizeof(float) * 32);
	for (size_t i = 0; i < n * (KERNEL_FMA_FLOPS / 2 / 8 / 4); i++) {
		UNROLL
		for (int k = 0; k < 8; k++)
			sum[k] = sum[k] * factor + factor;
	}
	float4 all = sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7];
	return all[0] + all[1] + all[2] + all[3];
}

/* 256 weights as signed bytes, with an integer scale for each 16 and something subtracted for each 32. */
struct plain_chunk {
	int8_t q[KERNEL_CHUNK];
	int scale[16];
	int min[8];
	float d, min_d;
};

static uint16_t half_at(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static void plain_k45(enum kernel_type type, const uint8_t *p, struct plain_chunk *u)
{
	const uint8_t *s = p + 4, *high = p + 16, *q = type == KERNEL_Q5_K ? p + 48 : p + 16;

	u->d = kernel_half_to_float(half_at(p));
	u->min_d = kernel_half_to_float(half_at(p + 2));
	for (int j = 0; j < 8; j++) {
		int scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
		u->min[j] = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | s[j] >> 6 << 4;
		u->scale[2 * j] = u->scale[2 * j + 1] = scale;
	}
	for (int j = 0; j < 8; j++) {
		for (int i = 0; i < 32; i++) {
			int low = q[32 * (j / 2) + i] >> 4 * (j % 2) & 15;
			u->q[32 * j + i] =
				(int8_t)(type == KERNEL_Q5_K ? low | (high[i] >> j & 1) << 4 : low);
		}
	}
}

static void plain_k6(const uint8_t *p, struct plain_chunk *u)
{
	u->d = kernel_half_to_float(half_at(p + 208));
	for (int j = 0; j < 16; j++)
		u->scale[j] = (int8_t)p[192 + j];
	for (int j = 0; j < 8; j++) {
		const uint8_t *low = p + 64 * (j / 4) + 32 * (j % 2), *high = p + 128 + 32 * (j / 4);
		int low_shift = j % 4 < 2 ? 0 : 4, high_shift = 2 * (j % 4);
		for (int i = 0; i < 32; i++)
			u->q[32 * j + i] =
				(int8_t)(((low[i] >> low_shift & 15) | (high[i] >> high_shift & 3) << 4) -
					 32);
	}
}

static void plain_iq2(const struct kernel_tables *t, const uint8_t *p, struct plain_chunk *u)
{
	u->d = kernel_half_to_float(half_at(p)) * 0.125f;
	for (int j = 0; j < 8; j++) {
		const uint8_t *q = p + 2 + 8 * j;
		uint32_t bits;
		memcpy(&bits, q + 4, 4);
		u->scale[2 * j] = u->scale[2 * j + 1] = (int)(2 * (bits >> 28) + 1);
		for (int i = 0; i < 32; i++)
			u->q[32 * j + i] = (int8_t)(t->grid2[q[i / 8]][i % 8] *
						    t->sign[bits >> 7 * (i / 8) & 127][i % 8]);
	}
}

static void plain_iq3(const struct kernel_tables *t, const uint8_t *p, struct plain_chunk *u)
{
	u->d = kernel_half_to_float(half_at(p));
	for (int j = 0; j < 8; j++) {
		const uint8_t *q = p + 2 + 8 * j, *signs = p + 74 + 4 * j;
		unsigned high = p[66 + j];
		u->scale[2 * j] = u->scale[2 * j + 1] = 1 + 2 * (p[106 + j / 2] >> 4 * (j % 2) & 15);
		for (int i = 0; i < 32; i++) {
			int value = t->grid3[q[i / 4] | (high << (8 - i / 4) & 256)][i % 4];
			u->q[32 * j + i] = (int8_t)(signs[i / 8] >> i % 8 & 1 ? -value : value);
		}
	}
}

static inline __attribute__((always_inline)) int dot16(const int8_t *w, const int8_t *x)
{
	int sum = 0;

	for (int i = 0; i < 16; i++)
		sum += w[i] * x[i];
	return sum;
}

static inline __attribute__((always_inline)) float plain_product(
	const struct plain_chunk *u, const struct kernel_input *in)
{
	int dot = 0, less = 0;

	for (int j = 0; j < 16; j++)
		dot += u->scale[j] * dot16(u->q + 16 * j, in->q + 16 * j);
	for (int j = 0; j < 8; j++)
		less += u->min[j] * in->sum32[j];
	return in->scale[0] * (u->d * (float)dot - u->min_d * (float)less);
}

static inline __attribute__((always_inline)) void plain_super(enum kernel_type type, size_t columns,
	const struct kernel_tables *t, size_t n_chunks, const uint8_t *w, const char *x, size_t stride,
	float *out)
{
	struct plain_chunk u = {.min_d = 0};

	for (size_t i = 0; i < n_chunks; i++, w += kernel_format[type].chunk_bytes) {
		if (type == KERNEL_Q6_K)
			plain_k6(w, &u);
		else if (type == KERNEL_IQ2_XXS)
			plain_iq2(t, w, &u);
		else if (type == KERNEL_IQ3_S)
			plain_iq3(t, w, &u);
		else
			plain_k45(type, w, &u);
		for (size_t c = 0; c < columns; c++)
			out[c] += plain_product(
				&u, (const struct kernel_input *)(const void *)(x + c * stride) + i);
	}
}

static inline __attribute__((always_inline)) void plain_simple(enum kernel_type type, size_t columns,
	size_t n_chunks, const uint8_t *w, const char *x, size_t stride, float *out)
{
	for (size_t i = 0; i < 8 * n_chunks; i++) {
		float d = kernel_half_to_float(half_at(w));
		int8_t q[32];
		w += 2;
		if (type == KERNEL_Q8_0) {
			memcpy(q, w, 32);
			w += 32;
		} else {
			for (int k = 0; k < 16; k++) {
				q[k] = (int8_t)((w[k] & 15) - 8);
				q[k + 16] = (int8_t)((w[k] >> 4) - 8);
			}
			w += 16;
		}
		for (size_t c = 0; c < columns; c++) {
			const struct kernel_input *in =
				(const struct kernel_input *)(const void *)(x + c * stride) + i / 8;
			const int8_t *a = in->q + 32 * (i % 8);
			out[c] += d * in->scale[i % 8] * (float)(dot16(q, a) + dot16(q + 16, a + 16));
		}
	}
}

static inline __attribute__((always_inline)) float plain_load(enum kernel_type type, const char *w, size_t i)
{
	uint32_t bits;
	uint16_t half;
	float f;

	if (type == KERNEL_F32) {
		memcpy(&f, w + 4 * i, 4);
		return f;
	}
	memcpy(&half, w + 2 * i, 2);
	if (type == KERNEL_F16)
		return kernel_half_to_float(half);
	bits = (uint32_t)half << 16;
	memcpy(&f, &bits, 4);
	return f;
}

static inline __attribute__((always_inline)) void plain_float(enum kernel_type type, size_t columns,
	size_t n_chunks, const char *w, const char *x, size_t stride, float *out)
{
	float sum[KERNEL_COLUMNS][4] = {{0}};

	for (size_t i = 0; i < n_chunks * KERNEL_CHUNK; i += 4) {
		float v[4];
		for (size_t k = 0; k < 4; k++)
			v[k] = plain_load(type, w, i + k);
		for (size_t c = 0; c < columns; c++)
			for (size_t k = 0; k < 4; k++)
				sum[c][k] += v[k] * ((const float *)(const void *)(x + c * stride))[i + k];
	}
	for (size_t c = 0; c < columns; c++)
		out[c] = sum[c][0] + sum[c][1] + sum[c][2] + sum[c][3];
}

static inline __attribute__((always_inline)) void plain_any(enum kernel_type type, size_t columns,
	const struct kernel_tables *t, size_t n, const void *w, const void *x, size_t stride, float *out)
{
	for (size_t c = 0; c < columns; c++)
		out[c] = 0;
	if (type <= KERNEL_BF16)
		plain_float(type, columns, n, w, x, stride, out);
	else if (type <= KERNEL_Q4_0)
		plain_simple(type, columns, n, w, x, stride, out);
	else
		plain_super(type, columns, t, n, w, x, stride, out);
}

#define KERNEL(type)                                                                                         \
	static void plain_one_##type(const struct kernel_tables *t, size_t n, const void *w, const void *x,  \
		size_t stride, float *out)                                                                   \
	{                                                                                                    \
		plain_any(KERNEL_##type, 1, t, n, w, x, stride, out);                                        \
	}                                                                                                    \
	static void plain_many_##type(const struct kernel_tables *t, size_t n, const void *w, const void *x, \
		size_t stride, float *out)                                                                   \
	{                                                                                                    \
		plain_any(KERNEL_##type, KERNEL_COLUMNS, t, n, w, x, stride, out);                           \
	}
KERNEL_EACH_TYPE(KERNEL)
#undef KERNEL

#define KERNEL(type) [KERNEL_##type] = {plain_one_##type, plain_many_##type},
static kernel_dot_fn *const plain_dots[KERNEL_TYPE_N][2] = {KERNEL_EACH_TYPE(KERNEL)};
#undef KERNEL

/* ---- x86 ---- */

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx2,fma,f16c")))
#define NAME(x) x##_avx2
#define WIDE 0
#define VNNI 0
#include "hw/measure_x86.h"
#undef TARGET
#undef NAME
#undef WIDE

#define TARGET __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq")))
#define NAME(x) x##_avx512
#define WIDE 1
#include "hw/measure_x86.h"
#undef TARGET
#undef NAME
#undef VNNI

#define TARGET __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
#define NAME(x) x##_avx512_vnni
#define VNNI 1
#include "hw/measure_x86.h"
#endif

/* ---- the table ---- */

static const struct level {
	const char *name;
	kernel_dot_fn *const (*dot)[2];
	kernel_fma_fn *fma;
	kernel_read_fn *read;
	kernel_write_fn *write;
} levels[KERNEL_LEVEL_N] = {
#if defined(__x86_64__)
	[KERNEL_PLAIN] = {"sse", plain_dots, plain_fma, plain_read, plain_write},
	[KERNEL_AVX2] = {"avx2", dots_avx2, fma_avx2, read_avx2, write_avx2},
	[KERNEL_AVX512] = {"avx512", dots_avx512, fma_avx512, read_avx512, write_avx512},
	[KERNEL_AVX512_VNNI] = {"avx512_vnni", dots_avx512_vnni, fma_avx512_vnni, read_avx512_vnni,
		write_avx512_vnni},
#elif defined(__aarch64__)
	[KERNEL_PLAIN] = {"neon", plain_dots, plain_fma, plain_read, plain_write},
#else
	[KERNEL_PLAIN] = {"plain", plain_dots, plain_fma, plain_read, plain_write},
#endif
};

bool kernel_level_runs(enum kernel_level level)
{
#if defined(__x86_64__)
	/* F16C, which clang 14 cannot ask for, is older than AVX2. */
	bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
	bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");

	if (level == KERNEL_AVX2)
		return avx2;
	if (level == KERNEL_AVX512)
		return avx512;
	if (level == KERNEL_AVX512_VNNI)
		return avx512 && __builtin_cpu_supports("avx512vnni");
#endif
	return level == KERNEL_PLAIN;
}

enum kernel_level kernel_best_level(void)
{
	enum kernel_level best = KERNEL_PLAIN;

	for (int l = 0; l < KERNEL_LEVEL_N; l++)
		if (kernel_level_runs((enum kernel_level)l))
			best = (enum kernel_level)l;
	return best;
}

const char *kernel_level_name(enum kernel_level level)
{
	return levels[level].name;
}

kernel_dot_fn *kernel_dot(enum kernel_type type, enum kernel_level level, size_t columns)
{
	return levels[level].dot[type][columns != 1];
}

kernel_fma_fn *kernel_fma(enum kernel_level level)
{
	return levels[level].fma;
}

kernel_read_fn *kernel_read(enum kernel_level level)
{
	return levels[level].read;
}

kernel_write_fn *kernel_write(enum kernel_level level)
{
	return levels[level].write;
}

/* ---- what is multiplied ---- */

void kernel_tables_init(struct kernel_tables *t)
{
	/* The values that the real grids are made of. */
	static const uint8_t values2[4] = {8, 25, 43, 25}, values3[8] = {1, 3, 5, 7, 9, 11, 13, 15};

	for (int i = 0; i < 128; i++)
		for (int k = 0; k < 8; k++)
			t->sign[i][k] = (k < 7 ? i >> k & 1 : __builtin_parity((unsigned)i)) ? -1 : 1;
	for (uint64_t i = 0; i < 256; i++)
		for (int k = 0; k < 8; k++)
			t->grid2[i][k] = values2[rng_mix(i + 1) >> 2 * k & 3];
	for (uint64_t i = 0; i < 512; i++)
		for (int k = 0; k < 4; k++)
			t->grid3[i][k] = values3[rng_mix(i + 1) >> 3 * k & 7];
}

/* Of a cheap sequence, the same for the same seed. */
static uint64_t next(uint64_t *state)
{
	*state += UINT64_C(0x9e3779b97f4a7c15);
	return rng_mix(*state);
}

static void put_half(uint8_t *p, uint64_t random)
{
	unsigned half = 0x2000 + (unsigned)(random % 0x800); /* 0.0078 to 0.031 */

	p[0] = (uint8_t)half;
	p[1] = (uint8_t)(half >> 8);
}

static void fill_floats(enum kernel_type type, size_t n, uint64_t *state, uint8_t *w)
{
	for (size_t i = 0; i < n; i++) {
		float f = (float)((double)(next(state) >> 11) * 0x1p-52 - 1);
		uint32_t bits;
		memcpy(&bits, &f, 4);
		if (type == KERNEL_F32) {
			memcpy(w + 4 * i, &bits, 4);
		} else if (type == KERNEL_BF16) {
			memcpy(w + 2 * i, (const uint8_t *)&bits + 2, 2);
		} else {
			put_half(w + 2 * i, next(state));
			w[2 * i + 1] |= (uint8_t)(bits >> 24 & 0x80);
		}
	}
}

void kernel_fill_weights(enum kernel_type type, size_t n_chunks, uint64_t seed, void *w)
{
	/* Where the 16-bit scales of a block are. */
	static const struct {
		size_t block_bytes;
		int at[2];
	} halves[KERNEL_TYPE_N] = {[KERNEL_Q8_0] = {34, {0, -1}},
		[KERNEL_Q4_0] = {18, {0, -1}},
		[KERNEL_Q4_K] = {144, {0, 2}},
		[KERNEL_Q5_K] = {176, {0, 2}},
		[KERNEL_Q6_K] = {210, {208, -1}},
		[KERNEL_IQ2_XXS] = {66, {0, -1}},
		[KERNEL_IQ3_S] = {110, {0, -1}}};
	size_t bytes = n_chunks * kernel_format[type].chunk_bytes, block = halves[type].block_bytes;
	uint8_t *p = w;

	if (!kernel_format[type].integer) {
		fill_floats(type, n_chunks * KERNEL_CHUNK, &seed, p);
		return;
	}
	for (size_t i = 0; i < bytes; i++)
		p[i] = (uint8_t)(next(&seed) >> 32);
	for (size_t i = 0; i < bytes; i += block)
		for (int k = 0; k < 2 && halves[type].at[k] >= 0; k++)
			put_half(p + i + halves[type].at[k], next(&seed));
}

/* As quantizing does it: the largest becomes 127. */
static void quantize(const float *f, int n, int8_t *q, float *scale)
{
	float largest = 0;

	for (int i = 0; i < n; i++)
		largest = fmaxf(largest, fabsf(f[i]));
	*scale = largest / 127;
	for (int i = 0; i < n; i++)
		q[i] = (int8_t)lrintf(f[i] / *scale);
}

static void fill_input(enum kernel_type type, uint64_t *seed, struct kernel_input *in)
{
	int group = type == KERNEL_Q8_0 || type == KERNEL_Q4_0 ? 32 : KERNEL_CHUNK;
	float f[KERNEL_CHUNK];

	*in = (struct kernel_input){.scale = {0}};
	fill_floats(KERNEL_F32, KERNEL_CHUNK, seed, (uint8_t *)f);
	for (int i = 0; i < KERNEL_CHUNK; i += group)
		quantize(f + i, group, in->q + i, &in->scale[i / 32]);
	for (int i = 0; i < KERNEL_CHUNK; i++) {
		in->sum32[i / 32] = (int16_t)(in->sum32[i / 32] + in->q[i]);
		in->sum16[i / 16] = (int16_t)(in->sum16[i / 16] + in->q[i]);
	}
}

void kernel_fill_inputs(enum kernel_type type, size_t n_chunks, uint64_t seed, void *x)
{
	if (!kernel_format[type].integer) {
		fill_floats(KERNEL_F32, n_chunks * KERNEL_CHUNK, &seed, x);
		return;
	}
	for (size_t i = 0; i < n_chunks; i++)
		fill_input(type, &seed, (struct kernel_input *)x + i);
}
