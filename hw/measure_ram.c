/*
 * DRAM: reads, writes and copies by threads and by NUMA node, and how long one load takes that waits for the
 * last.
 *
 * A node has one buffer of several times all caches, bound to it; threads read the pieces that belong to
 * them, those of the node they run on unless an item says otherwise. Rates count what the program moves: a
 * copied byte twice, a written byte once, though the processor may read its line first.
 */
#include <math.h>
#include <string.h>

#include "hw/measure_kernels.h"
#include "hw/measure_rounds.h"

#define STEP (1u << 20) /* between two looks at the clock */
#define LOADS 500	/* the same of loads that wait */
#define CHASE_MAX (256u << 20)
#define LINE 64

enum kind { KIND_READ, KIND_WRITE, KIND_COPY };
enum { ARG_KIND, ARG_THREADS, ARG_CPU_NODE, ARG_MEMORY_NODE }; /* nodes: index, -1: each its own */

struct ram {
	struct measure *m;
	enum kernel_level level;
	char **node; /* a buffer each */
	size_t bytes, chase_bytes;
	/* of the item under way */
	const struct measure_item *item;
	int *cpu, *near;    /* threads' processors, and nodes */
	unsigned *nth, *of; /* which of how many threads that use the same buffer */
};

static double move(struct ram *r, char *p, size_t share, double until)
{
	size_t at = 0, half = share / 2 / LINE * LINE, step = share < STEP ? share : STEP;
	enum kind kind = (enum kind)r->item->arg[ARG_KIND];
	struct measure_slices s;

	if (kind == KIND_COPY && step > half)
		step = half;
	measure_slices_begin(&s);
	do {
		if (kind == KIND_READ) {
			uint64_t sum = kernel_read(r->level)(p + at, step);
			MEASURE_KEEP(sum);
		} else if (kind == KIND_WRITE) {
			kernel_write(r->level)(p + at, step, (uint64_t)at);
		} else {
			memcpy(p + half + at, p + at, step);
		}
		at = at + 2 * step <= (kind == KIND_COPY ? half : share) ? at + step : 0;
	} while (measure_slices_add(&s, (double)step * (kind == KIND_COPY ? 2 : 1)) < until);
	return measure_slices_end(&s);
}

static double move_share(void *ctx, unsigned thread, double until)
{
	struct ram *r = ctx;
	size_t share = r->bytes / r->of[thread] / LINE * LINE;

	return move(r, r->node[r->near[thread]] + share * r->nth[thread], share, until);
}

static void place_threads(struct ram *r, const struct measure_item *item)
{
	const struct measure_host *h = &r->m->out->host;
	unsigned n = (unsigned)item->arg[ARG_THREADS], done = 0;
	int cpu_node = item->arg[ARG_CPU_NODE], memory_node = item->arg[ARG_MEMORY_NODE];

	for (unsigned i = 0; i < h->threads && done < n; i++) {
		if (cpu_node >= 0 && h->thread_node[i] != cpu_node)
			continue;
		r->cpu[done] = h->thread_cpu[i];
		r->near[done++] = memory_node >= 0 ? memory_node : h->thread_node[i];
	}
	for (unsigned i = 0; i < n; i++) {
		r->nth[i] = r->of[i] = 0;
		for (unsigned k = 0; k < n; k++) {
			r->nth[i] += k < i && r->near[k] == r->near[i];
			r->of[i] += r->near[k] == r->near[i];
		}
	}
}

static double run_move(void *ctx, const struct measure_item *item, double seconds, struct err *err)
{
	struct ram *r = ctx;
	unsigned n = (unsigned)item->arg[ARG_THREADS];

	r->item = item;
	place_threads(r, item);
	double rate = measure_parallel(r->cpu, n, seconds, move_share, r).each;
	return rate < 0 ? err_set(err, ERR_IO, "cannot start %u threads", n) : rate;
}

/* Each line holds the number of the next. They follow a linear congruence modulo a power of two, which visits
   all of them before it returns to one, in steps that no prefetcher guesses. */
static void lay_chain(char *p, size_t lines)
{
	for (size_t i = 0; i < lines; i++)
		*(uint64_t *)(void *)(p + LINE * i) =
			(i * UINT64_C(2862933555777941757) + 3037000493) & (lines - 1);
}

static double follow(void *ctx, unsigned thread, double until)
{
	struct ram *r = ctx;
	const char *p = r->node[r->near[thread]];
	uint64_t at = 0;
	struct measure_slices s;

	measure_slices_begin(&s);
	do {
		for (int i = 0; i < LOADS; i++)
			at = *(const uint64_t *)(const void *)(p + LINE * at);
		MEASURE_KEEP(at);
	} while (measure_slices_add(&s, LOADS) < until);
	return measure_slices_end(&s);
}

static double run_chase(void *ctx, const struct measure_item *item, double seconds, struct err *err)
{
	struct ram *r = ctx;

	place_threads(r, item);
	lay_chain(r->node[r->near[0]], r->chase_bytes / LINE); /* writes and copies have destroyed it */
	double rate = measure_parallel(r->cpu, 1, seconds, follow, r).each;
	return rate < 0 ? err_set(err, ERR_IO, "cannot start a thread") : 1 / rate;
}

/* ---- what is measured ---- */

struct items {
	VEC(struct measure_item);
};

static void add(
	struct ram *r, struct items *items, enum kind kind, unsigned threads, int cpu_node, int memory_node)
{
	static const char *const names[] = {"read", "write", "copy"};
	struct arena *a = r->m->a;
	const char *where = "", *tail = "";

	if (cpu_node >= 0) {
		const int *number = r->m->out->host.node_number;
		tail = arena_printf(a, ".node%d-node%d", number[cpu_node], number[memory_node]);
		where = arena_printf(
			a, " of node %d, memory of node %d", number[cpu_node], number[memory_node]);
	}
	struct measure_item item = {.name = arena_printf(a, "%s.t%u%s", names[kind], threads, tail),
		.what = arena_printf(
			a, "DRAM %s, %u thread%s%s", names[kind], threads, threads == 1 ? "" : "s", where),
		.dim = UNIT_BYTES_RATE,
		.fn = run_move,
		.arg = {(int)kind, (int)threads, cpu_node, memory_node}};
	VEC_PUSH(items, a, item);
}

/* 1, 2, 4 … and the number of cores and of threads. */
static bool counts(const struct ram *r, unsigned threads)
{
	return (threads & (threads - 1)) == 0 || threads == r->m->out->host.cores || threads == r->m->threads;
}

static void add_nodes(struct ram *r, struct items *items)
{
	const struct measure_host *h = &r->m->out->host;
	unsigned first_threads = 0;

	for (unsigned c = 0; c < h->nodes; c++) {
		unsigned threads = 0;
		for (unsigned i = 0; i < h->threads; i++)
			threads += h->thread_node[i] == (int)c;
		if (threads > r->m->threads)
			threads = r->m->threads;
		if (c == 0)
			first_threads = threads;
		add(r, items, KIND_READ, threads, (int)c, (int)c);
	}
	for (unsigned c = 1; c < h->nodes; c++)
		add(r, items, KIND_READ, first_threads, 0, (int)c);
}

static void list_items(struct ram *r, struct items *items)
{
	struct measure_item chase = {.name = "latency",
		.what = "one load from DRAM that waits for the one before",
		.dim = UNIT_TIME,
		.fn = run_chase,
		.arg = {0, 1, -1, -1}};

	for (unsigned t = 1; t <= r->m->threads; t++)
		for (int kind = KIND_READ; kind <= KIND_COPY && counts(r, t); kind++)
			add(r, items, (enum kind)kind, t, -1, -1);
	if (r->m->out->host.nodes > 1)
		add_nodes(r, items);
	VEC_PUSH(items, r->m->a, chase);
}

/* n threads read at n / (a + b n): alone at 1 / (a + b), and however many there are below 1 / b. */
static void fit_saturation(struct measure *m)
{
	struct {
		VEC(double);
	} x = {0}, y = {0};
	char alone[32], bus[32];

	for (size_t i = 0; i < m->out->numbers.n; i++) {
		const struct measure_number *number = &m->out->numbers.at[i];
		unsigned threads;
		int end = 0;
		if (number->part != MEASURE_RAM || sscanf(number->name, "read.t%u%n", &threads, &end) != 1 ||
			number->name[end])
			continue;
		for (size_t k = 0; k < number->sample.n; k++) {
			VEC_PUSH(&x, m->a, threads);
			VEC_PUSH(&y, m->a, threads / number->sample.at[k]);
		}
	}
	struct measure_fit *fit = measure_add_fit(m, MEASURE_RAM, "read.saturation",
		"seconds a byte and thread when n threads read = a + b x n", x.at, y.at, y.at, y.n);
	if (!fit)
		return;
	units_format(alone, sizeof(alone), 1 / (fit->line.a + fit->line.b), UNIT_BYTES_RATE);
	/* A limit far beyond what was reached is a guess. */
	double most = m->threads / (fit->line.a + fit->line.b * m->threads);
	if (fit->line.b80.low > 0 && 1 / fit->line.b < 3 * most)
		fit->derived = arena_printf(m->a, "one thread %s, never more than %s", alone,
			units_format(bus, sizeof(bus), 1 / fit->line.b, UNIT_BYTES_RATE));
	else
		fit->derived = arena_printf(
			m->a, "one thread %s, and the more threads the more: the bus is not full", alone);
}

static int measure_with_buffers(struct ram *r, double seconds, struct err *err)
{
	struct items items = {0};

	list_items(r, &items);
	if (measure_rounds(r->m, MEASURE_RAM, items.at, items.n, seconds, r, err))
		return -1;
	fit_saturation(r->m);
	return 0;
}

/* Of a node's share of the free memory no more than a quarter. */
static size_t buffer_bytes(const struct measure_host *h)
{
	uint64_t want = 4 * h->last_cache_bytes / h->nodes, least = 256u << 20;

	if (want < least)
		want = least;
	if (h->available_bytes && want > h->available_bytes / 4 / h->nodes)
		want = h->available_bytes / 4 / h->nodes;
	return (size_t)want;
}

static size_t chase_bytes(const struct ram *r)
{
	size_t want = 8 * (size_t)r->m->out->host.near_cache_bytes, power = LINE;

	if (want < CHASE_MAX / 4)
		want = CHASE_MAX / 4;
	if (want > CHASE_MAX)
		want = CHASE_MAX;
	if (want > r->bytes)
		want = r->bytes;
	while (2 * power <= want)
		power *= 2;
	return power;
}

int measure_ram(struct measure *m, double seconds, struct err *err)
{
	const struct measure_host *h = &m->out->host;
	struct ram r = {.m = m, .level = kernel_best_level(), .bytes = buffer_bytes(h)};
	int rc = 0;

	r.node = arena_array(m->a, char *, h->nodes);
	r.cpu = arena_array(m->a, int, m->threads);
	r.near = arena_array(m->a, int, m->threads);
	r.nth = arena_array(m->a, unsigned, m->threads);
	r.of = arena_array(m->a, unsigned, m->threads);
	r.chase_bytes = chase_bytes(&r);
	for (unsigned i = 0; i < h->nodes && !rc; i++) {
		r.node[i] = measure_map(r.bytes, h->nodes > 1 ? h->node_number[i] : -1);
		if (!r.node[i])
			rc = err_set(err, ERR_NOMEM, "no %zu MiB of memory to measure with", r.bytes >> 20);
		else
			memset(r.node[i], 1, r.bytes);
	}
	if (!rc)
		rc = measure_with_buffers(&r, seconds, err);
	for (unsigned i = 0; i < h->nodes; i++)
		measure_unmap(r.node[i], r.bytes);
	return rc;
}
