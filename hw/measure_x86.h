/*
 * measure_x86.h - the kernels of measure_kernels.h for one level of x86, included once a level by measure_kernels.c
 * (and so without a guard) with
 *
 *	NAME(x)   x with the level behind it       TARGET    the target attribute
 *	WIDE      512-bit floats                   VNNI      8- and 16-bit dot products that add up in one instruction
 *
 * Integer weights are multiplied 32 at a time as unsigned bytes; what makes them negative is subtracted by way of the
 * inputs' sums, or goes to the inputs as a sign.
 */
#ifdef NAME

#define INLINE TARGET static inline __attribute__((always_inline))

/* ---- floats ---- */

#if WIDE
typedef __m512 NAME(floats);
#define F_LANES 16
#define F_ZERO _mm512_setzero_ps()
#define F_LOAD(p) _mm512_loadu_ps(p)
#define F_FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define F_SUM(v) _mm512_reduce_add_ps(v)
#else
typedef __m256 NAME(floats);
#define F_LANES 8
#define F_ZERO _mm256_setzero_ps()
#define F_LOAD(p) _mm256_loadu_ps(p)
#define F_FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define F_SUM(v) NAME(sum)(v)
#endif

INLINE float NAME(sum)(__m256 v)
{
	__m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));

	s = _mm_add_ps(s, _mm_movehl_ps(s, s));
	return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

INLINE NAME(floats) NAME(load)(enum kernel_type type, const char *w, size_t i)
{
	if (type == KERNEL_F32)
		return F_LOAD((const float *)(const void *)w + i);
#if WIDE
	__m256i half = _mm256_loadu_si256((const __m256i *)(const void *)(w + 2 * i));
	if (type == KERNEL_F16)
		return _mm512_cvtph_ps(half);
	return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
#else
	__m128i half = _mm_loadu_si128((const __m128i *)(const void *)(w + 2 * i));
	if (type == KERNEL_F16)
		return _mm256_cvtph_ps(half);
	return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
#endif
}

/* Two sums a column where there is one column: one would wait for itself. */
INLINE void NAME(dot_float)(enum kernel_type type, size_t columns, size_t n_chunks, const char *w, const char *x,
	size_t stride, float *out)
{
	NAME(floats) sum[KERNEL_COLUMNS], odd[4];

	UNROLL
	for (size_t c = 0; c < KERNEL_COLUMNS; c++)
		sum[c] = F_ZERO;
	UNROLL
	for (size_t c = 0; c < 4; c++)
		odd[c] = F_ZERO;
	for (size_t i = 0; i < n_chunks * KERNEL_CHUNK; i += 4 * F_LANES) {
		UNROLL
		for (size_t k = 0; k < 4; k++) {
			NAME(floats) v = NAME(load)(type, w, i + k * F_LANES);
			if (columns == 1) {
				odd[k] = F_FMA(v, F_LOAD((const float *)(const void *)x + i + k * F_LANES), odd[k]);
				continue;
			}
			UNROLL
			for (size_t c = 0; c < columns; c++) {
				const float *in = (const float *)(const void *)(x + c * stride);
				sum[c] = F_FMA(v, F_LOAD(in + i + k * F_LANES), sum[c]);
			}
		}
	}
	UNROLL
	for (size_t c = 0; c < columns; c++)
		out[c] = F_SUM(sum[c]);
	if (columns == 1)
		out[0] = F_SUM(odd[0]) + F_SUM(odd[1]) + F_SUM(odd[2]) + F_SUM(odd[3]);
}

TARGET static float NAME(fma)(size_t n)
{
	NAME(floats) sum[12], factor = F_LOAD(fma_factors);

	UNROLL
	for (size_t k = 0; k < 12; k++)
		sum[k] = F_LOAD(fma_factors + k);
	for (size_t i = 0; i < n * (KERNEL_FMA_FLOPS / 2 / 12 / F_LANES); i++) {
		UNROLL
		for (size_t k = 0; k < 12; k++)
			sum[k] = F_FMA(sum[k], factor, factor);
		/* Keeps the 12 in registers (AVX2 has 16), and the compiler from adding up what cannot change. */
		__asm__ volatile("" : "+v"(sum[0]), "+v"(sum[11]));
	}
	float all = 0;
	UNROLL
	for (size_t k = 0; k < 12; k++)
		all += F_SUM(sum[k]);
	return all;
}

#undef F_LANES
#undef F_ZERO
#undef F_LOAD
#undef F_FMA
#undef F_SUM

/* ---- integers ---- */

INLINE __m256i NAME(load_bytes)(const void *p)
{
	return _mm256_loadu_si256((const __m256i *)p);
}

INLINE __m256i NAME(nibbles)(const uint8_t *p)
{
	__m128i v = _mm_loadu_si128((const __m128i *)(const void *)p), low = _mm_set1_epi8(15);

	return _mm256_set_m128i(_mm_and_si128(_mm_srli_epi16(v, 4), low), _mm_and_si128(v, low));
}

/* sum + the 32 products of w and a, each group of four (or two pairs) of them times scale. */
INLINE __m256i NAME(add_scaled)(__m256i sum, __m256i w, __m256i a, __m256i scale)
{
	__m256i pairs = _mm256_maddubs_epi16(w, a);
#if VNNI
	return _mm256_dpwssd_epi32(sum, pairs, scale);
#else
	return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, scale));
#endif
}

/* ---- q8_0, q4_0: a float scale for each 32 ---- */

INLINE void NAME(dot_simple)(enum kernel_type type, size_t columns, size_t n_chunks, const char *w, const char *x,
	size_t stride, float *out)
{
	const size_t block = type == KERNEL_Q8_0 ? 34 : 18;
	__m256 sum[KERNEL_COLUMNS];

	for (size_t c = 0; c < columns; c++)
		sum[c] = _mm256_setzero_ps();
	for (size_t i = 0; i < n_chunks; i++, w += 8 * block) {
		__m256i v[8], magnitude[8];
		uint16_t half[8];
		UNROLL
		for (size_t g = 0; g < 8; g++) {
			const uint8_t *q = (const uint8_t *)w + g * block + 2;
			memcpy(&half[g], w + g * block, 2);
			v[g] = type == KERNEL_Q8_0 ? NAME(load_bytes)(q) : NAME(nibbles)(q);
#if VNNI
			magnitude[g] = type == KERNEL_Q8_0 ? _mm256_xor_si256(v[g], _mm256_set1_epi8(-128)) : v[g];
#else
			/* Pairs of 255 x 127 would not fit 16 bits. */
			magnitude[g] = type == KERNEL_Q8_0 ? _mm256_abs_epi8(v[g]) : v[g];
#endif
		}
		__m256 d = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)half));
		for (size_t c = 0; c < columns; c++) {
			const struct kernel_input *in =
				(const struct kernel_input *)(const void *)(x + c * stride) + i;
			float ds[8];
			__m256 both = _mm256_mul_ps(d, _mm256_loadu_ps(in->scale));
			_mm256_storeu_ps(ds, both);
			UNROLL
			for (size_t g = 0; g < 8; g++) {
				__m256i a = NAME(load_bytes)(in->q + 32 * g);
#if VNNI
				__m256i dot = _mm256_dpbusd_epi32(_mm256_setzero_si256(), magnitude[g], a);
#else
				if (type == KERNEL_Q8_0)
					a = _mm256_sign_epi8(a, v[g]);
				__m256i dot = _mm256_madd_epi16(
					_mm256_maddubs_epi16(magnitude[g], a), _mm256_set1_epi16(1));
#endif
				sum[c] = _mm256_fmadd_ps(
					_mm256_cvtepi32_ps(dot), _mm256_set1_ps(ds[g]), sum[c]);
			}
			if (type == KERNEL_Q4_0 || VNNI) {
				__m256 sums = _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(
					_mm_loadu_si128((const __m128i *)(const void *)in->sum32)));
				__m256 offset = _mm256_set1_ps(type == KERNEL_Q8_0 ? 128 : 8);
				sum[c] = _mm256_fnmadd_ps(_mm256_mul_ps(both, offset), sums, sum[c]);
			}
		}
	}
	for (size_t c = 0; c < columns; c++)
		out[c] = NAME(sum)(sum[c]);
}

/* ---- k- and i-quants: integer scales under one float ---- */

/* Eight groups of 32 weights as the product needs them. */
struct NAME(groups) {
	__m256i w[8];
	__m256i sign[8];  /* i-quants: 1 or -1 for each weight */
	__m256i scale[8]; /* 16 of 16 bits */
	__m256i scale16;  /* q6_k: its 16 scales */
	__m128i min;      /* q4_k, q5_k: 8 of 16 bits */
	float d, min_d;
};

/* The eight scales of a q4_k or q5_k block, 6 bits each, as bytes; behind them the eight minima. */
INLINE void NAME(scales_k4)(const uint8_t *p, uint32_t out[4])
{
	uint32_t a, b, c;

	memcpy(&a, p, 4);
	memcpy(&b, p + 4, 4);
	memcpy(&c, p + 8, 4);
	out[0] = a & 0x3f3f3f3f;
	out[1] = (c & 0x0f0f0f0f) | (a >> 6 & 0x03030303) << 4;
	out[2] = b & 0x3f3f3f3f;
	out[3] = (c >> 4 & 0x0f0f0f0f) | (b >> 6 & 0x03030303) << 4;
}

INLINE void NAME(unpack_k45)(enum kernel_type type, const uint8_t *p, struct NAME(groups) *g)
{
	const uint8_t *high = p + 16, *q = type == KERNEL_Q5_K ? p + 48 : p + 16;
	const __m256i low4 = _mm256_set1_epi8(15);
	__m256i fifth = type == KERNEL_Q5_K ? NAME(load_bytes)(high) : _mm256_setzero_si256();
	uint32_t packed[4];

	g->d = _cvtsh_ss((unsigned short)(p[0] | p[1] << 8));
	g->min_d = _cvtsh_ss((unsigned short)(p[2] | p[3] << 8));
	NAME(scales_k4)(p + 4, packed);
	__m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)packed);
	__m128i scale = _mm_cvtepu8_epi16(bytes);
	__m256i both = _mm256_set_m128i(scale, scale);
	g->min = _mm_cvtepu8_epi16(_mm_srli_si128(bytes, 8));
	UNROLL
	for (int j = 0; j < 4; j++) {
		__m256i v = NAME(load_bytes)(q + 32 * j);
		g->w[2 * j] = _mm256_and_si256(v, low4);
		g->w[2 * j + 1] = _mm256_and_si256(_mm256_srli_epi16(v, 4), low4);
		if (type == KERNEL_Q5_K) {
			const __m256i one = _mm256_set1_epi8(1), bits = _mm256_srli_epi16(fifth, 2 * j);
			g->w[2 * j] = _mm256_or_si256(
				g->w[2 * j], _mm256_slli_epi16(_mm256_and_si256(bits, one), 4));
			g->w[2 * j + 1] = _mm256_or_si256(g->w[2 * j + 1],
				_mm256_slli_epi16(_mm256_and_si256(_mm256_srli_epi16(bits, 1), one), 4));
		}
		g->scale[2 * j] = _mm256_shuffle_epi8(both, _mm256_set1_epi16((short)(0x0100 + 0x0202 * (2 * j))));
		g->scale[2 * j + 1] =
			_mm256_shuffle_epi8(both, _mm256_set1_epi16((short)(0x0100 + 0x0202 * (2 * j + 1))));
	}
}

INLINE void NAME(unpack_k6)(const uint8_t *p, struct NAME(groups) *g)
{
	const __m256i low4 = _mm256_set1_epi8(15), top = _mm256_set1_epi8(0x30);

	g->d = _cvtsh_ss((unsigned short)(p[208] | p[209] << 8));
	g->scale16 = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(p + 192)));
	UNROLL
	for (int n = 0; n < 2; n++) {
		__m256i low = NAME(load_bytes)(p + 64 * n), next = NAME(load_bytes)(p + 64 * n + 32);
		__m256i high = NAME(load_bytes)(p + 128 + 32 * n);
		g->w[4 * n] = _mm256_or_si256(
			_mm256_and_si256(low, low4), _mm256_and_si256(_mm256_slli_epi16(high, 4), top));
		g->w[4 * n + 1] = _mm256_or_si256(
			_mm256_and_si256(next, low4), _mm256_and_si256(_mm256_slli_epi16(high, 2), top));
		g->w[4 * n + 2] = _mm256_or_si256(
			_mm256_and_si256(_mm256_srli_epi16(low, 4), low4), _mm256_and_si256(high, top));
		g->w[4 * n + 3] = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(next, 4), low4),
			_mm256_and_si256(_mm256_srli_epi16(high, 2), top));
	}
	/* Group k has scales 2k and 2k + 1, one for each half. */
	UNROLL
	for (int k = 0; k < 8; k++) {
		__m128i half = k < 4 ? _mm256_castsi256_si128(g->scale16) : _mm256_extracti128_si256(g->scale16, 1);
		short first = (short)(0x0100 + 0x0202 * (2 * k % 8)), second = (short)(first + 0x0202);
		g->scale[k] = _mm256_set_m128i(_mm_shuffle_epi8(half, _mm_set1_epi16(second)),
			_mm_shuffle_epi8(half, _mm_set1_epi16(first)));
	}
}

INLINE uint64_t NAME(word)(const void *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return v;
}

INLINE void NAME(unpack_iq2)(const struct kernel_tables *t, const uint8_t *p, struct NAME(groups) *g)
{
	g->d = _cvtsh_ss((unsigned short)(p[0] | p[1] << 8)) * 0.125f;
	UNROLL
	for (int k = 0; k < 8; k++) {
		const uint8_t *q = p + 2 + 8 * k;
		uint32_t bits = (uint32_t)(NAME(word)(q) >> 32);
		g->w[k] = _mm256_set_epi64x((long long)NAME(word)(t->grid2[q[3]]), (long long)NAME(word)(t->grid2[q[2]]),
			(long long)NAME(word)(t->grid2[q[1]]), (long long)NAME(word)(t->grid2[q[0]]));
		g->sign[k] = _mm256_set_epi64x((long long)NAME(word)(t->sign[bits >> 21 & 127]),
			(long long)NAME(word)(t->sign[bits >> 14 & 127]), (long long)NAME(word)(t->sign[bits >> 7 & 127]),
			(long long)NAME(word)(t->sign[bits & 127]));
		g->scale[k] = _mm256_set1_epi16((short)(2 * (bits >> 28) + 1));
	}
}

INLINE void NAME(unpack_iq3)(const struct kernel_tables *t, const uint8_t *p, struct NAME(groups) *g)
{
	const __m256i spread = _mm256_set_epi64x(
		0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0x0000000000000000);
	const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201);

	g->d = _cvtsh_ss((unsigned short)(p[0] | p[1] << 8));
	UNROLL
	for (int k = 0; k < 8; k++) {
		const uint8_t *q = p + 2 + 8 * k;
		unsigned high = p[66 + k];
		int at[8];
		uint32_t signs;
		UNROLL
		for (int i = 0; i < 8; i++)
			memcpy(&at[i], t->grid3[q[i] | (high << (8 - i) & 256)], 4);
		g->w[k] = _mm256_set_epi32(at[7], at[6], at[5], at[4], at[3], at[2], at[1], at[0]);
		memcpy(&signs, p + 74 + 4 * k, 4);
		__m256i each = _mm256_shuffle_epi8(_mm256_set1_epi32((int)signs), spread);
		__m256i negative = _mm256_cmpeq_epi8(_mm256_and_si256(each, bit), bit);
		g->sign[k] = _mm256_or_si256(negative, _mm256_set1_epi8(1));
		g->scale[k] = _mm256_set1_epi16((short)(1 + 2 * (p[106 + k / 2] >> 4 * (k % 2) & 15)));
	}
}

INLINE void NAME(unpack)(enum kernel_type type, const struct kernel_tables *t, const uint8_t *p,
	struct NAME(groups) *g)
{
	if (type == KERNEL_Q4_K || type == KERNEL_Q5_K)
		NAME(unpack_k45)(type, p, g);
	else if (type == KERNEL_Q6_K)
		NAME(unpack_k6)(p, g);
	else if (type == KERNEL_IQ2_XXS)
		NAME(unpack_iq2)(t, p, g);
	else
		NAME(unpack_iq3)(t, p, g);
}

INLINE void NAME(dot_super)(enum kernel_type type, size_t columns, const struct kernel_tables *t, size_t n_chunks,
	const uint8_t *w, const char *x, size_t stride, float *out)
{
	const bool by_sign = type == KERNEL_IQ2_XXS || type == KERNEL_IQ3_S;
	__m256 sum[KERNEL_COLUMNS];

	for (size_t c = 0; c < columns; c++)
		sum[c] = _mm256_setzero_ps();
	for (size_t i = 0; i < n_chunks; i++, w += kernel_format[type].chunk_bytes) {
		struct NAME(groups) g;
		NAME(unpack)(type, t, w, &g);
		for (size_t c = 0; c < columns; c++) {
			const struct kernel_input *in =
				(const struct kernel_input *)(const void *)(x + c * stride) + i;
			__m256i dot = _mm256_setzero_si256();
			UNROLL
			for (int k = 0; k < 8; k++) {
				__m256i a = NAME(load_bytes)(in->q + 32 * k);
				if (by_sign)
					a = _mm256_sign_epi8(a, g.sign[k]);
				dot = NAME(add_scaled)(dot, g.w[k], a, g.scale[k]);
			}
			if (type == KERNEL_Q6_K) { /* weights are 32 less than the bits say */
				__m256i less = _mm256_madd_epi16(g.scale16, NAME(load_bytes)(in->sum16));
				dot = _mm256_sub_epi32(dot, _mm256_slli_epi32(less, 5));
			}
			sum[c] = _mm256_fmadd_ps(
				_mm256_cvtepi32_ps(dot), _mm256_set1_ps(g.d * in->scale[0]), sum[c]);
			if (type == KERNEL_Q4_K || type == KERNEL_Q5_K) {
				__m128i less = _mm_madd_epi16(
					g.min, _mm_loadu_si128((const __m128i *)(const void *)in->sum32));
				__m256 wide = _mm256_cvtepi32_ps(_mm256_zextsi128_si256(less));
				sum[c] = _mm256_fnmadd_ps(wide, _mm256_set1_ps(g.min_d * in->scale[0]), sum[c]);
			}
		}
	}
	for (size_t c = 0; c < columns; c++)
		out[c] = NAME(sum)(sum[c]);
}

/* ---- one function a type and number of columns ---- */

INLINE void NAME(dot_any)(enum kernel_type type, size_t columns, const struct kernel_tables *t, size_t n_chunks,
	const void *w, const void *x, size_t stride, float *out)
{
	if (type <= KERNEL_BF16)
		NAME(dot_float)(type, columns, n_chunks, w, x, stride, out);
	else if (type <= KERNEL_Q4_0)
		NAME(dot_simple)(type, columns, n_chunks, w, x, stride, out);
	else
		NAME(dot_super)(type, columns, t, n_chunks, w, x, stride, out);
}

#define KERNEL(type)                                                                                                \
	TARGET static void NAME(one_##type)(const struct kernel_tables *t, size_t n, const void *w, const void *x,  \
		size_t stride, float *out)                                                                          \
	{                                                                                                           \
		NAME(dot_any)(KERNEL_##type, 1, t, n, w, x, stride, out);                                           \
	}                                                                                                           \
	TARGET static void NAME(many_##type)(const struct kernel_tables *t, size_t n, const void *w, const void *x, \
		size_t stride, float *out)                                                                          \
	{                                                                                                           \
		NAME(dot_any)(KERNEL_##type, KERNEL_COLUMNS, t, n, w, x, stride, out);                              \
	}
KERNEL_EACH_TYPE(KERNEL)
#undef KERNEL

#define KERNEL(type) [KERNEL_##type] = {NAME(one_##type), NAME(many_##type)},
static kernel_dot_fn *const NAME(dots)[KERNEL_TYPE_N][2] = {KERNEL_EACH_TYPE(KERNEL)};
#undef KERNEL

TARGET static uint64_t NAME(read)(const void *p, size_t len)
{
	return read_body(p, len);
}

TARGET static void NAME(write)(void *p, size_t len, uint64_t value)
{
	write_body(p, len, value);
}

#undef INLINE
#endif
