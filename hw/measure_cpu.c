/*
 * Processors: multiply-adds, products with quantized weights by type, level of instructions and threads, and
 * what it costs to hand all threads one operation and meet again.
 *
 * Products run on data that stays in each core's second-level cache: their rate is the ceiling that the
 * kernel sets, whatever the DRAM can do. All threads read the same weights and inputs, of which every core
 * then has its copy.
 */
#include <stdatomic.h>
#include <string.h>

#include "hw/measure_kernels.h"
#include "hw/measure_rounds.h"

#define WEIGHT_BYTES (64u << 10)
#define MAX_CHUNKS 8   /* of a row: 2048 weights */
#define FLOAT_CHUNKS 2 /* of a row with many columns: 8 of 512 floats fit the first-level cache */
#define PLACES 8
#define PAD 192	       /* between columns: else all begin in the same set of the cache */
#define COLUMN_BYTES (MAX_CHUNKS * 1024 + PAD)
#define LINE 64
#define PASSES 4    /* of the weights, between two looks at the clock */
#define FMAS 256    /* the same of multiply-adds */
#define BARRIERS 10 /* the same of barriers */

enum { ARG_TYPE, ARG_LEVEL, ARG_THREADS, ARG_COLUMNS };

struct cpu {
	struct measure *m;
	const struct measure_item *item;
	struct kernel_tables tables;
	/* Each round has other memory: which pages the system gave is worth a few percent, and the interval is to
	   know. */
	char *weights[PLACES][KERNEL_TYPE_N];
	char *inputs[PLACES][KERNEL_TYPE_N];
	size_t n_items, calls;
	size_t place; /* of this round */
	/* the barrier: how many have come, how many times all have */
	_Alignas(LINE) atomic_uint come;
	_Alignas(LINE) atomic_uint passed;
	_Alignas(LINE) atomic_bool over;
};

static double run(
	struct cpu *c, const struct measure_item *item, double seconds, measure_work_fn *fn, struct err *err)
{
	unsigned n = (unsigned)item->arg[ARG_THREADS];

	c->item = item;
	c->place = c->calls++ / c->n_items % PLACES;
	double rate = measure_parallel(c->m->out->host.thread_cpu, n, seconds, fn, c).each;
	return rate < 0 ? err_set(err, ERR_IO, "cannot start %u threads", n) : rate;
}

/* ---- multiply-adds ---- */

static double multiply_add(void *ctx, unsigned thread, double until)
{
	const struct cpu *c = ctx;
	kernel_fma_fn *fma = kernel_fma((enum kernel_level)c->item->arg[ARG_LEVEL]);
	struct measure_slices s;

	(void)thread;
	measure_slices_begin(&s);
	do {
		float sum = fma(FMAS);
		MEASURE_KEEP(sum);
	} while (measure_slices_add(&s, (double)FMAS * KERNEL_FMA_FLOPS) < until);
	return measure_slices_end(&s);
}

static double run_fma(void *ctx, const struct measure_item *item, double seconds, struct err *err)
{
	return run(ctx, item, seconds, multiply_add, err);
}

/* ---- products ---- */

static double multiply(void *ctx, unsigned thread, double until)
{
	const struct cpu *c = ctx;
	enum kernel_type type = (enum kernel_type)c->item->arg[ARG_TYPE];
	const struct kernel_format *f = &kernel_format[type];
	size_t columns = (size_t)c->item->arg[ARG_COLUMNS];
	kernel_dot_fn *dot = kernel_dot(type, (enum kernel_level)c->item->arg[ARG_LEVEL], columns);
	size_t chunks = columns == 1 || f->integer ? MAX_CHUNKS : FLOAT_CHUNKS, row = chunks * f->chunk_bytes;
	size_t rows = WEIGHT_BYTES / row;
	const char *weights = c->weights[c->place][type], *inputs = c->inputs[c->place][type];
	double amount = (double)(PASSES * rows) *
			(columns == 1 ? (double)row : 2.0 * KERNEL_CHUNK * (double)(chunks * columns));
	float out[KERNEL_COLUMNS];
	struct measure_slices s;

	(void)thread;
	measure_slices_begin(&s);
	do {
		for (size_t i = 0; i < PASSES * rows; i++) {
			dot(&c->tables, chunks, weights + i % rows * row, inputs, COLUMN_BYTES, out);
			__asm__ volatile("" : : "r"(out) : "memory");
		}
	} while (measure_slices_add(&s, amount) < until);
	return measure_slices_end(&s);
}

static double run_product(void *ctx, const struct measure_item *item, double seconds, struct err *err)
{
	return run(ctx, item, seconds, multiply, err);
}

/* ---- the barrier ---- */

static inline void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* As ggml's threads meet after each operation: the last to come lets all go, the others spin. */
static void meet(struct cpu *c, unsigned n)
{
	unsigned passed = atomic_load_explicit(&c->passed, memory_order_relaxed);

	if (atomic_fetch_add(&c->come, 1) == n - 1) {
		atomic_store_explicit(&c->come, 0, memory_order_relaxed);
		atomic_fetch_add(&c->passed, 1);
		return;
	}
	while (atomic_load_explicit(&c->passed, memory_order_acquire) == passed)
		relax();
}

static double meet_often(void *ctx, unsigned thread, double until)
{
	struct cpu *c = ctx;
	unsigned n = (unsigned)c->item->arg[ARG_THREADS];
	struct measure_slices s;

	measure_slices_begin(&s);
	for (bool over = false; !over;) {
		for (int i = 0; i < BARRIERS - 1; i++)
			meet(c, n);
		if (thread == 0)
			atomic_store(&c->over, measure_slices_add(&s, BARRIERS) >= until);
		meet(c, n); /* so that all read the same */
		over = atomic_load(&c->over);
	}
	return thread == 0 ? measure_slices_end(&s) : 0;
}

static double run_barrier(void *ctx, const struct measure_item *item, double seconds, struct err *err)
{
	struct cpu *c = ctx;

	atomic_store(&c->over, false);
	double rate = run(c, item, seconds, meet_often, err);
	return rate < 0 ? rate : 1 / rate;
}

/* ---- what is measured ---- */

struct items {
	VEC(struct measure_item);
};

static const char *threads_text(struct arena *a, unsigned n)
{
	return arena_printf(a, "%u thread%s", n, n == 1 ? "" : "s");
}

static void add_fma(struct cpu *c, struct items *items, enum kernel_level level, unsigned threads)
{
	struct arena *a = c->m->a;
	struct measure_item item = {.name = arena_printf(a, "fma.%s.t%u", kernel_level_name(level), threads),
		.what = arena_printf(a, "FP32 multiply-adds on registers, %s, %s", kernel_level_name(level),
			threads_text(a, threads)),
		.dim = UNIT_FLOP_RATE,
		.fn = run_fma,
		.arg = {0, (int)level, (int)threads, 0}};

	VEC_PUSH(items, a, item);
}

static void add_products(
	struct cpu *c, struct items *items, enum kernel_type type, enum kernel_level level, unsigned threads)
{
	struct arena *a = c->m->a;
	const char *name = kernel_format[type].name, *by = kernel_level_name(level);
	struct measure_item one = {.name = arena_printf(a, "%s.decode.%s.t%u", name, by, threads),
		.what = arena_printf(
			a, "bytes of %s weights times one row, %s, %s", name, by, threads_text(a, threads)),
		.dim = UNIT_BYTES_RATE,
		.fn = run_product,
		.arg = {(int)type, (int)level, (int)threads, 1}};
	struct measure_item many = {.name = arena_printf(a, "%s.prefill.%s.t%u", name, by, threads),
		.what = arena_printf(a, "%s weights times %d rows, %s, %s", name, KERNEL_COLUMNS, by,
			threads_text(a, threads)),
		.dim = UNIT_FLOP_RATE,
		.fn = run_product,
		.arg = {(int)type, (int)level, (int)threads, KERNEL_COLUMNS}};

	VEC_PUSH(items, a, one);
	VEC_PUSH(items, a, many);
}

static void add_barrier(struct cpu *c, struct items *items, unsigned threads)
{
	struct arena *a = c->m->a;
	struct measure_item item = {.name = arena_printf(a, "barrier.t%u", threads),
		.what = arena_printf(a, "%s %s at a spinning barrier, once an operation of a graph",
			threads_text(a, threads), threads == 1 ? "meets" : "meet"),
		.dim = UNIT_TIME,
		.fn = run_barrier,
		.arg = {0, 0, (int)threads, 0}};

	VEC_PUSH(items, a, item);
}

/* What a kernel gains by wider registers is seen between these. */
static bool compared(enum kernel_level level)
{
#if defined(__x86_64__)
	if (level == KERNEL_AVX2)
		return true;
#endif
	return level == KERNEL_PLAIN;
}

/* Slower levels are for comparison, on one thread; the best one also on all cores, and on all threads. */
static void list_items(struct cpu *c, struct items *items)
{
	const struct measure_host *h = &c->m->out->host;
	enum kernel_level best = kernel_best_level();

	for (unsigned t = 1; t <= c->m->threads; t++) {
		bool whole = t == h->cores || t == c->m->threads;
		if ((t & (t - 1)) == 0 || whole)
			add_barrier(c, items, t);
		for (int l = 0; l < KERNEL_LEVEL_N; l++) {
			enum kernel_level level = (enum kernel_level)l;
			if (!kernel_level_runs(level) ||
				!(level == best ? t == 1 || whole : t == 1 && compared(level)))
				continue;
			add_fma(c, items, level, t);
			for (int type = 0; type < KERNEL_TYPE_N; type++)
				add_products(c, items, (enum kernel_type)type, level, t);
		}
	}
}

/* Memory that begins with a line of the cache, as engines' tensors do: else every other load would touch two.
 */
static char *whole_lines(struct arena *a, size_t bytes)
{
	char *p = arena_alloc(a, bytes + LINE);

	return p + (LINE - (uintptr_t)p % LINE) % LINE;
}

static void fill_type(struct cpu *c, enum kernel_type type)
{
	size_t chunks = WEIGHT_BYTES / kernel_format[type].chunk_bytes;

	for (int p = 0; p < PLACES; p++) {
		char *w = whole_lines(c->m->a, WEIGHT_BYTES);
		char *x = whole_lines(c->m->a, KERNEL_COLUMNS * COLUMN_BYTES);
		c->weights[p][type] = w;
		c->inputs[p][type] = x;
		if (p) {
			memcpy(w, c->weights[0][type], WEIGHT_BYTES);
			memcpy(x, c->inputs[0][type], KERNEL_COLUMNS * COLUMN_BYTES);
			continue;
		}
		kernel_fill_weights(type, chunks, 1, w);
		for (uint64_t i = 0; i < KERNEL_COLUMNS; i++)
			kernel_fill_inputs(type, MAX_CHUNKS, i + 2, x + i * COLUMN_BYTES);
	}
}

int measure_cpu(struct measure *m, double seconds, struct err *err)
{
	struct cpu c = {.m = m};
	struct items items = {0};

	kernel_tables_init(&c.tables);
	for (int t = 0; t < KERNEL_TYPE_N; t++)
		fill_type(&c, (enum kernel_type)t);
	list_items(&c, &items);
	c.n_items = items.n;
	return measure_rounds(m, MEASURE_CPU, items.at, items.n, seconds, &c, err);
}
