#include "hw/measure.h"

#include <math.h>
#include <fcntl.h>
#include <stdlib.h>

#include <gsl/gsl_randist.h>

#include "base/rng.h"
#include "hw/measure_factor.h"
#include "hw/measure_kernels.h"
#include "hw/measure_rounds.h"
#include "hw/measure_uring.h"
#include "models/quant.h"
#include "tests/test.h"

#define CHUNKS 5

/* ---- kernels: against the formats' definitions, weight by weight, in double ---- */

static double half_at(const uint8_t *p)
{
	int exponent = p[1] >> 2 & 31, fraction = p[0] | (p[1] & 3) << 8;
	double v = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);

	return p[1] & 0x80 ? -v : v;
}

static double float_weight(enum kernel_type type, const uint8_t *w, size_t i)
{
	float f;

	if (type == KERNEL_F16)
		return half_at(w + 2 * i);
	if (type == KERNEL_F32) {
		memcpy(&f, w + 4 * i, 4);
		return (double)f;
	}
	uint32_t bits = (uint32_t)(w[2 * i] | w[2 * i + 1] << 8) << 16;
	memcpy(&f, &bits, 4);
	return (double)f;
}

/* The six bits that the j-th scale (or minimum: j + 8) of a q4_k block has, read off the picture in ggml's
   sources: bytes 0-3 and 4-7 hold the low six bits of the first four, their upper two bits and bytes 8-11 the
   others. */
static int six_bits(const uint8_t *s, size_t j, bool minimum)
{
	if (j < 4)
		return s[j + (minimum ? 4 : 0)] % 64;
	int low = minimum ? s[j + 4] / 16 : s[j + 4] % 16, high = s[minimum ? j : j - 4] / 64;
	return low + 16 * high;
}

static double k45_weight(enum kernel_type type, const uint8_t *b, size_t i)
{
	size_t group = i / 32;
	const uint8_t *q = b + (type == KERNEL_Q5_K ? 48 : 16) + 32 * (group / 2) + i % 32;
	int v = group % 2 ? *q / 16 : *q % 16;

	if (type == KERNEL_Q5_K && b[16 + i % 32] & 1 << group)
		v += 16;
	return half_at(b) * six_bits(b + 4, group, false) * v - half_at(b + 2) * six_bits(b + 4, group, true);
}

static double k6_weight(const uint8_t *b, size_t i)
{
	size_t half = i / 128, quarter = i % 128 / 32, l = i % 32;
	int low = b[64 * half + 32 * (quarter % 2) + l], high = b[128 + 32 * half + l];
	int v = (quarter < 2 ? low % 16 : low / 16) + 16 * (high >> 2 * quarter & 3) - 32;

	return half_at(b + 208) * (int8_t)b[192 + i / 16] * v;
}

static double iq2_weight(const struct kernel_tables *t, const uint8_t *b, size_t i)
{
	const uint8_t *q = b + 2 + 8 * (i / 32);
	uint32_t bits = q[4] | (uint32_t)q[5] << 8 | (uint32_t)q[6] << 16 | (uint32_t)q[7] << 24;
	size_t eight = i % 32 / 8;
	int sign = t->sign[bits >> 7 * eight & 127][i % 8];

	return half_at(b) * (0.5 + (bits >> 28)) * 0.25 * sign * t->grid2[q[eight]][i % 8];
}

static double iq3_weight(const struct kernel_tables *t, const uint8_t *b, size_t i)
{
	size_t group = i / 32, four = i % 32 / 4;
	size_t at = b[2 + 8 * group + four] + (b[66 + group] >> four & 1 ? 256 : 0);
	int scale = 1 + 2 * (group % 2 ? b[106 + group / 2] / 16 : b[106 + group / 2] % 16);
	bool negative = b[74 + i / 8] >> i % 8 & 1;

	return half_at(b) * scale * (negative ? -1.0 : 1.0) * t->grid3[at][i % 4];
}

static double weight(const struct kernel_tables *t, enum kernel_type type, const uint8_t *w, size_t i)
{
	const uint8_t *b = w + i / KERNEL_CHUNK * kernel_format[type].chunk_bytes;
	size_t in = i % KERNEL_CHUNK;

	switch (type) {
	case KERNEL_Q8_0:
		return half_at(b + in / 32 * 34) * (int8_t)b[in / 32 * 34 + 2 + in % 32];
	case KERNEL_Q4_0:
		b += in / 32 * 18;
		return half_at(b) * ((in % 32 < 16 ? b[2 + in % 16] % 16 : b[2 + in % 16] / 16) - 8);
	case KERNEL_Q4_K:
	case KERNEL_Q5_K:
		return k45_weight(type, b, in);
	case KERNEL_Q6_K:
		return k6_weight(b, in);
	case KERNEL_IQ2_XXS:
		return iq2_weight(t, b, in);
	case KERNEL_IQ3_S:
		return iq3_weight(t, b, in);
	default:
		return float_weight(type, w, i);
	}
}

static double input(enum kernel_type type, const char *x, size_t i)
{
	const struct kernel_input *in = (const struct kernel_input *)(const void *)x + i / KERNEL_CHUNK;
	bool each32 = type == KERNEL_Q8_0 || type == KERNEL_Q4_0;

	if (!kernel_format[type].integer)
		return (double)((const float *)(const void *)x)[i];
	return (double)in->scale[each32 ? i % KERNEL_CHUNK / 32 : 0] * in->q[i % KERNEL_CHUNK];
}

static void check_kernel(
	const struct kernel_tables *t, enum kernel_type type, enum kernel_level level, uint64_t seed)
{
	const struct kernel_format *f = &kernel_format[type];
	size_t stride = CHUNKS * f->input_bytes + 64;
	uint8_t *w = malloc(CHUNKS * f->chunk_bytes);
	char *x = malloc(KERNEL_COLUMNS * stride);
	float many[KERNEL_COLUMNS], one;

	kernel_fill_weights(type, CHUNKS, seed, w);
	for (size_t c = 0; c < KERNEL_COLUMNS; c++)
		kernel_fill_inputs(type, CHUNKS, seed + c + 1, x + c * stride);
	kernel_dot(type, level, KERNEL_COLUMNS)(t, CHUNKS, w, x, stride, many);
	for (size_t c = 0; c < KERNEL_COLUMNS; c++) {
		double sum = 0, size = 0;
		for (size_t i = 0; i < CHUNKS * KERNEL_CHUNK; i++) {
			double product = weight(t, type, w, i) * input(type, x + c * stride, i);
			sum += product;
			size += fabs(product);
		}
		kernel_dot(type, level, 1)(t, CHUNKS, w, x + c * stride, stride, &one);
		/* Single precision, added up in some order. */
		ck_assert_msg(fabs(many[c] - sum) <= 2e-6 * size, "%s %s, column %zu: %.9g, not %.9g",
			f->name, kernel_level_name(level), c, (double)many[c], sum);
		ck_assert_msg(fabs(one - sum) <= 2e-6 * size, "%s %s, one column: %.9g, not %.9g", f->name,
			kernel_level_name(level), (double)one, sum);
	}
	free(w);
	free(x);
}

START_TEST(kernels_multiply)
{
	struct kernel_tables t;
	int levels = 0;

	kernel_tables_init(&t);
	for (int level = 0; level < KERNEL_LEVEL_N; level++) {
		if (!kernel_level_runs((enum kernel_level)level))
			continue;
		levels++;
		for (int type = 0; type < KERNEL_TYPE_N; type++)
			for (uint64_t seed = 0; seed < 7; seed++)
				check_kernel(
					&t, (enum kernel_type)type, (enum kernel_level)level, seed * 100);
	}
	ck_assert_int_ge(levels, 1);
}
END_TEST

START_TEST(formats_are_those_of_files)
{
	for (int i = 0; i < KERNEL_TYPE_N; i++) {
		const struct quant_type *q = quant_find(kernel_format[i].name);
		ck_assert_ptr_nonnull(q);
		ck_assert_uint_eq(
			kernel_format[i].chunk_bytes, KERNEL_CHUNK / q->block_elements * q->block_bytes);
	}
}
END_TEST

START_TEST(halves)
{
	for (unsigned i = 0; i < 0x10000; i++) {
		uint8_t bytes[2] = {(uint8_t)i, (uint8_t)(i >> 8)};
		if ((i >> 10 & 31) != 31)
			ck_assert(kernel_half_to_float((uint16_t)i) == (float)half_at(bytes));
	}
	ck_assert(isinf(kernel_half_to_float(0x7c00)) && kernel_half_to_float(0xfc00) < 0);
	ck_assert(isnan(kernel_half_to_float(0x7e01)));
}
END_TEST

/* ---- how fast they are ---- */

#define TIMED_CHUNKS 64

/* The least of some turns, for one pass over a row that stays in the first cache. */
static double row_s(const struct kernel_tables *t, enum kernel_type type, enum kernel_level level, const void *w, const void *x)
{
	double least = INFINITY;
	float out;

	for (int turn = 0; turn < 15; turn++) {
		double begin_s = measure_now();
		for (int i = 0; i < 4; i++)
			kernel_dot(type, level, 1)(t, TIMED_CHUNKS, w, x, 0, &out);
		least = fmin(least, measure_now() - begin_s);
	}
	return least;
}

/* clang makes vectors of plain C too, and sanitizers slow each access of both: nothing to compare. */
#if defined(__clang__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COMPARABLE false
#else
#define COMPARABLE true
#endif

/* Above all where plain C takes weights apart one by one, as of k- and i-quants: 13 times and more (Zen 3). A call of plain C
   from among them once left k-quants at 2.6 times plain C, a twentieth of what they do without it. */
START_TEST(vectors_outrun_plain_c)
{
	struct kernel_tables t;
	char *w = malloc(TIMED_CHUNKS * 1024), *x = malloc(TIMED_CHUNKS * 1024); /* f32: the largest of both */

	kernel_tables_init(&t);
	for (int type = 0; type < KERNEL_TYPE_N; type++) {
		kernel_fill_weights((enum kernel_type)type, TIMED_CHUNKS, 2385, w);
		kernel_fill_inputs((enum kernel_type)type, TIMED_CHUNKS, 2386, x);
		double plain_s = row_s(&t, (enum kernel_type)type, KERNEL_PLAIN, w, x);
		for (int level = KERNEL_PLAIN + 1; COMPARABLE && level < KERNEL_LEVEL_N; level++) {
			if (!kernel_level_runs((enum kernel_level)level))
				continue;
			double s = row_s(&t, (enum kernel_type)type, (enum kernel_level)level, w, x);
			ck_assert_msg(s * (type > KERNEL_Q4_0 ? 4 : 1) < plain_s, "%s: %s takes %.3g s, plain C %.3g s",
				kernel_format[type].name, kernel_level_name((enum kernel_level)level), s, plain_s);
		}
	}
	free(w);
	free(x);
}
END_TEST

START_TEST(reads_add_up)
{
	_Alignas(64) uint64_t words[8 * 37];
	uint64_t sum = 0;

	for (int level = 0; level < KERNEL_LEVEL_N; level++) {
		if (!kernel_level_runs((enum kernel_level)level))
			continue;
		kernel_write((enum kernel_level)level)(words, sizeof(words), 2385);
		ck_assert_uint_eq(words[0], 2385);
		ck_assert_uint_eq(words[ARRAY_LEN(words) - 1], 2385);
		sum = 0;
		for (size_t i = 0; i < ARRAY_LEN(words); i++)
			sum += words[i] = rng_mix(i);
		ck_assert_uint_eq(kernel_read((enum kernel_level)level)(words, sizeof(words)), sum);
	}
}
END_TEST

/* ---- statistics ---- */

static struct arena arena;

START_TEST(medians)
{
	const double odd[] = {2.385, 9, 1.5}, even[] = {4, 1.25, 3, 2};

	arena_init(&arena, NULL, NULL);
	ck_assert_double_eq(stats_median(odd, 3, &arena), 2.385);
	ck_assert_double_eq(stats_median(even, 4, &arena), 2.5);
	ck_assert_double_eq(odd[1], 9); /* left as it was */
	arena_release(&arena);
}
END_TEST

/* How often the next of n values drawn alike lies in the interval that they give. Not normal on purpose. */
static double coverage(size_t n, bool skewed)
{
	gsl_rng *r = rng_new(2385, n, RNG_TEST);
	double x[64];
	int in = 0, runs = 4000;

	for (int run = 0; run < runs; run++) {
		for (size_t i = 0; i <= n; i++)
			x[i] = skewed ? gsl_ran_lognormal(r, 1, 0.5) : 7 + gsl_ran_gaussian(r, 0.3);
		struct stats_interval i80 = stats_next80(x, n, &arena);
		in += x[n] >= i80.low && x[n] <= i80.high;
		arena_reset(&arena);
	}
	gsl_rng_free(r);
	return in / (double)runs;
}

START_TEST(intervals_cover)
{
	/* 4000 runs: standard deviation 0.0063 of a share of 0.8. */
	const size_t sizes[] = {9, 15, 19, 40};

	arena_init(&arena, NULL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		ck_assert_double_eq_tol(coverage(sizes[i], false), 0.8, 0.025);
		ck_assert_double_eq_tol(coverage(sizes[i], true), 0.8, 0.025);
	}
	/* Around the median instead of the mean: a little less than Student's t promises. */
	for (size_t n = 3; n < 9; n++)
		ck_assert_double_eq_tol(coverage(n, false), 0.8, 0.05);
	arena_release(&arena);
}
END_TEST

START_TEST(spread_of_an_interval)
{
	gsl_rng *r = rng_new(2385, 0, RNG_TEST);
	double x[20000];

	arena_init(&arena, NULL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(x); i++)
		x[i] = 41.7 * (1 + gsl_ran_gaussian(r, 0.062));
	assert_close(stats_spread(41.7, stats_next80(x, ARRAY_LEN(x), &arena)), 0.062, 0.03);
	gsl_rng_free(r);
	arena_release(&arena);
}
END_TEST

START_TEST(one_wild_repetition_is_no_matter)
{
	double x[20] = {50.1, 49.7, 50.3, 49.9, 50.0, 50.2, 49.8, 50.4, 49.6, 50.05, 0.3, 50.15, 49.85, 50.25,
		49.75, 50.35, 49.95, 49.65, 50.12, 49.88};

	arena_init(&arena, NULL, NULL);
	struct stats_interval i80 = stats_next80(x, 20, &arena);
	ck_assert_double_eq_tol(stats_median(x, 20, &arena), 50, 0.06);
	ck_assert(i80.low > 49 && i80.high < 51);
	arena_release(&arena);
}
END_TEST

/* Times of requests: 87.3 us and 2.91 GB/s, 3 % of noise, and every tenth one five times too slow. */
static void draw_requests(double *x, double *y, double *scale, size_t n)
{
	const double bytes[] = {4096, 65536, 1048576, 16777216};
	gsl_rng *r = rng_new(2385, 1, RNG_TEST);

	for (size_t i = 0; i < n; i++) {
		double t = 87.3e-6 + bytes[i % 4] / 2.91e9;
		x[i] = bytes[i % 4];
		scale[i] = t;
		y[i] = t * (1 + gsl_ran_gaussian(r, 0.03)) * (i % 10 == 3 ? 5 : 1);
	}
	gsl_rng_free(r);
}

START_TEST(a_line_is_found)
{
	double x[60], y[60], scale[60];
	struct stats_line line;

	arena_init(&arena, NULL, NULL);
	draw_requests(x, y, scale, 60);
	ck_assert_int_eq(stats_fit_line(x, y, scale, 60, 1, &arena, &line), 0);
	assert_close(line.a, 87.3e-6, 0.03);
	assert_close(line.b, 1 / 2.91e9, 0.03);
	ck_assert(line.a80.low < line.a && line.a < line.a80.high);
	ck_assert(line.b80.low < line.b && line.b < line.b80.high);
	ck_assert_double_eq_tol(line.residual[3], 4, 0.9); /* the wild ones stay visible */
	arena_release(&arena);
}
END_TEST

START_TEST(a_line_without_noise)
{
	const double x[] = {1, 2, 4, 8}, y[] = {2.385 + 0.5, 2.385 + 1, 2.385 + 2, 2.385 + 4},
		     scale[] = {1, 1, 1, 1};
	struct stats_line line;

	arena_init(&arena, NULL, NULL);
	ck_assert_int_eq(stats_fit_line(x, y, scale, 4, 1, &arena, &line), 0);
	assert_close(line.a, 2.385, 1e-9);
	assert_close(line.b, 0.5, 1e-9);
	arena_release(&arena);
}
END_TEST

START_TEST(no_line)
{
	const double same[] = {3, 3, 3, 3, 3}, y[] = {1, 2, 3, 4, 5}, scale[] = {1, 1, 1, 1, 1};
	struct stats_line line;

	arena_init(&arena, NULL, NULL);
	ck_assert_int_eq(stats_fit_line(same, y, scale, 5, 1, &arena, &line), -1);
	ck_assert_int_eq(stats_fit_line(y, y, scale, 3, 1, &arena, &line), -1);
	ck_assert_int_eq(stats_fit_line(y, y, scale, 0, 1, &arena, &line), -1);
	arena_release(&arena);
}
END_TEST

/* ---- the machine ---- */

START_TEST(this_host)
{
	struct measure_host h;
	struct err err;

	arena_init(&arena, NULL, NULL);
	assert_ok(measure_host_read(&arena, &h, &err), err);
	ck_assert_uint_ge(h.threads, 1);
	ck_assert_uint_le(h.threads, (unsigned)sysconf(_SC_NPROCESSORS_CONF));
	ck_assert(h.cores >= 1 && h.cores <= h.threads && h.sockets >= 1 && h.nodes >= 1);
	ck_assert_uint_gt(h.memory_bytes, h.available_bytes);
	for (unsigned i = 0; i < h.threads; i++) {
		ck_assert(h.thread_node[i] >= 0 && h.thread_node[i] < (int)h.nodes);
		for (unsigned k = 0; k < i; k++)
			ck_assert_int_ne(h.thread_cpu[i], h.thread_cpu[k]);
	}
	arena_release(&arena);
}
END_TEST

START_TEST(asynchronous_reads)
{
	char path[32], text[] = "2385 bytes of nothing much", got[4][5] = {{0}};
	unsigned tag, seen = 0;
	struct uring *u = uring_open(4);
	int result;

	if (!u)
		return; /* forbidden here: the drive is then read by threads */
	test_file(path, text, sizeof(text));
	int fd = open(path, O_RDONLY);
	unlink(path);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(uring_read(u, fd, got[i], 4, i * 5, i), 0);
	for (unsigned i = 0; i < 4; i++) {
		ck_assert_int_eq(uring_wait(u, &tag, &result), 0);
		ck_assert_int_eq(result, 4);
		ck_assert_str_eq(got[tag], ((const char *[]){"2385", "byte", " of ", "othi"})[tag]);
		seen |= 1u << tag;
	}
	ck_assert_uint_eq(seen, 15);
	close(fd);
	uring_close(u);
}
END_TEST

START_TEST(a_short_measurement)
{
	struct measure_options o = {.part = {true, true, false}, .time_s = 0.01, .threads = 1};
	struct measurement *m;
	struct err err;

	arena_init(&arena, NULL, NULL);
	assert_ok(measure_run(&o, &arena, &m, &err), err);
	ck_assert_uint_eq(m->threads, 1);
	for (size_t i = 0; i < m->numbers.n; i++) {
		const struct measure_number *n = &m->numbers.at[i];
		ck_assert_msg(n->sample.n >= 3 && n->value > 0, "%s", n->name);
		ck_assert_msg(n->interval80.low <= n->value && n->value <= n->interval80.high, "%s", n->name);
		ck_assert_ptr_eq(measure_find(m, n->part, n->name), n);
	}
	ck_assert_ptr_nonnull(measure_find(m, MEASURE_RAM, "read.t1"));
	ck_assert_ptr_null(measure_find(m, MEASURE_CPU, "read.t1"));
	o.threads = m->host.threads + 1;
	ck_assert_int_eq(measure_run(&o, &arena, &m, &err), -1);
	ck_assert_int_eq((int)err.code, ERR_USAGE);
	arena_release(&arena);
}
END_TEST

START_TEST(an_interrupted_measurement)
{
	const volatile sig_atomic_t stop = 1;
	struct measure_options o = {.part = {true, true, false}, .time_s = 20, .interrupted = &stop};
	struct measurement *m;
	struct err err;

	arena_init(&arena, NULL, NULL);
	ck_assert_int_eq(measure_run(&o, &arena, &m, &err), -1);
	ck_assert_int_eq((int)err.code, ERR_INTERRUPTED);
	arena_release(&arena);
}
END_TEST

START_TEST(factors_load)
{
	struct measure_factors f;
	struct err err;
	int known = 0;

	arena_init(&arena, NULL, NULL);
	for (int level = 0; level < KERNEL_LEVEL_N; level++) {
		assert_ok(measure_factors_load((enum kernel_level)level, &arena, &f, &err), err);
		for (int t = 0; t < KERNEL_TYPE_N; t++) {
			known += f.decode[t].factor > 0;
			ck_assert(f.decode[t].factor <= 0 || (f.decode[t].spread > 0 && *f.decode[t].source));
			ck_assert(f.prefill[t].factor <= 0 ||
				  (f.prefill[t].spread > 0 && *f.prefill[t].source));
		}
	}
	ck_assert_int_gt(known, 0);
	arena_release(&arena);
}
END_TEST

TEST_MAIN("measure", kernels_multiply, vectors_outrun_plain_c, formats_are_those_of_files, halves, reads_add_up,
	medians,
	intervals_cover, spread_of_an_interval, one_wild_repetition_is_no_matter, a_line_is_found,
	a_line_without_noise, no_line, this_host, asynchronous_reads, a_short_measurement,
	an_interrupted_measurement, factors_load)
