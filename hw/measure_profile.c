/*
 * What was measured as a machine profile. What was not is left to parts that say of themselves that they are
 * assumptions; a comment names them.
 */
#include <math.h>
#include <string.h>

#include "hw/measure.h"
#include "hw/measure_factor.h"
#include "hw/measure_kernels.h"
#include "hw/measure_rounds.h"

struct writer {
	const struct measurement *m;
	struct measure_factors factors; /* of the best level */
	struct arena *a;
	FILE *to;
};

char *measure_quoted(struct arena *a, const char *text)
{
	struct {
		VEC(char);
	} out = {0};

	VEC_PUSH(&out, a, '"');
	for (const char *p = text; *p; p++) {
		if (*p == '"' || *p == '\\')
			VEC_PUSH(&out, a, '\\');
		VEC_PUSH(&out, a, (unsigned char)*p < ' ' ? '?' : *p);
	}
	VEC_PUSH(&out, a, '"');
	VEC_PUSH(&out, a, '\0');
	return out.at;
}

static const char *source(const struct writer *w, const struct measure_number *n)
{
	return arena_printf(w->a, "offsim calibrate, %s, %s, %zu repetitions: %s", w->m->date, w->m->host.cpu,
		n->sample.n, n->what);
}

static double spread(const struct measure_number *n)
{
	return fmin(stats_spread(n->value, n->interval80), 2);
}

/* KEY: {[peak: …,] measured: …, spread: …, source: …}, and the end of the line. */
static void put(const struct writer *w, const char *key, enum unit_dim dim, double peak, double value,
	double relative, const char *from)
{
	char buf[64];

	fprintf(w->to, "%s: {", key);
	if (peak > 0)
		fprintf(w->to, "peak: %s, ", units_format(buf, sizeof(buf), peak, dim));
	fprintf(w->to, "measured: %s, spread: %.3g%%, source: %s}\n",
		units_format(buf, sizeof(buf), value, dim), relative * 100, measure_quoted(w->a, from));
}

static void put_number(const struct writer *w, const char *key, const struct measure_number *n)
{
	put(w, key, n->dim, 0, n->value, spread(n), source(w, n));
}

static const struct measure_number *product(
	const struct writer *w, enum kernel_type type, const char *phase, unsigned threads)
{
	const char *name = arena_printf(w->a, "%s.%s.%s.t%u", kernel_format[type].name, phase,
		kernel_level_name(kernel_best_level()), threads);

	return measure_find(w->m, MEASURE_CPU, name);
}

/* What an engine's kernel would reach: ours, times how much faster it was where both were timed. */
static void put_kernel(const struct writer *w, const char *key, double peak, const struct measure_number *n,
	const struct measure_ratio *r)
{
	double factor = r->factor > 0 ? r->factor : 1;
	const char *from = source(w, n);
	char ours[32];

	if (r->factor > 0)
		from = arena_printf(w->a, "%s: %s of the plain kernel, times %.3g: %s", from,
			units_format(ours, sizeof(ours), n->value, n->dim), factor, r->source);
	put(w, key, n->dim, peak, n->value * factor, fmin(hypot(spread(n), r->spread), 2), from);
}

static void put_flops(const struct writer *w)
{
	static const struct {
		const char *key;
		enum kernel_type type;
	} rows[] = {{"fp32", KERNEL_F32}, {"fp16", KERNEL_F16}, {"bf16", KERNEL_BF16}, {"int8", KERNEL_Q8_0}};
	const char *fma_name =
		arena_printf(w->a, "fma.%s.t%u", kernel_level_name(kernel_best_level()), w->m->threads);
	const struct measure_number *fma = measure_find(w->m, MEASURE_CPU, fma_name);

	fprintf(w->to, "  flops:\n");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct measure_number *n = product(w, rows[i].type, "prefill", w->m->threads);
		fprintf(w->to, "    ");
		put_kernel(w, rows[i].key, rows[i].type == KERNEL_F32 ? fma->value : 0, n,
			&w->factors.prefill[rows[i].type]);
	}
}

static void put_kernels(const struct writer *w)
{
	const struct measure_host *h = &w->m->host;
	const struct measure_number *alone = measure_find(w->m, MEASURE_RAM, "read.t1");

	fprintf(w->to, "  isa: %s\n  threads: %u\n", *h->isa ? h->isa : kernel_level_name(kernel_best_level()),
		h->threads / h->sockets);
	if (alone) {
		fprintf(w->to, "  ");
		put_number(w, "thread_bandwidth", alone);
	}
	fprintf(w->to, "  kernels:\n");
	for (int t = 0; t < KERNEL_TYPE_N; t++) {
		enum kernel_type type = (enum kernel_type)t;
		fprintf(w->to, "    %s:\n      ", kernel_format[t].name);
		put_kernel(w, "decode", 0, product(w, type, "decode", 1), &w->factors.decode[t]);
		fprintf(w->to, "      ");
		put_kernel(w, "prefill", 0, product(w, type, "prefill", 1), &w->factors.prefill[t]);
	}
}

static void put_cpu(const struct writer *w)
{
	const struct measure_host *h = &w->m->host;

	fprintf(w->to, "cpu0:\n");
	if (!w->m->part[MEASURE_CPU])
		fprintf(w->to, "  part: generic-cpu # its rates were not measured\n");
	fprintf(w->to, "  cores: %u\n  sockets: %u\n", h->cores / h->sockets, h->sockets);
	if (!w->m->part[MEASURE_CPU])
		return;
	put_flops(w);
	fprintf(w->to, "  ");
	put_number(w, "launch",
		measure_find(w->m, MEASURE_CPU, arena_printf(w->a, "barrier.t%u", w->m->threads)));
	put_kernels(w);
}

/* Without the part of its own, the probes around the other parts tell. */
static void put_probed(const struct writer *w)
{
	double read[2 * MEASURE_PART_N];
	size_t n = 0;

	for (int p = 0; p < MEASURE_PART_N; p++) {
		if (!w->m->part[p])
			continue;
		read[n++] = w->m->noise[p].before.read_bytes_s;
		read[n++] = w->m->noise[p].after.read_bytes_s;
	}
	double value = stats_median(read, n, w->a);
	put(w, "bandwidth", UNIT_BYTES_RATE, 0, value,
		fmin(stats_spread(value, stats_next80(read, n, w->a)), 2),
		arena_printf(w->a, "offsim calibrate, %s, %s, %zu probes of DRAM reads, %u threads",
			w->m->date, w->m->host.cpu, n, w->m->threads));
}

/* The rate of whichever number of threads reads fastest: more may be slower. */
static void put_ram(const struct writer *w)
{
	const struct measure_number *best = NULL;

	fprintf(w->to, "ram:\n  capacity: %lluKiB\n", (unsigned long long)(w->m->host.memory_bytes >> 10));
	for (unsigned t = 1; t <= w->m->threads; t++) {
		const struct measure_number *n =
			measure_find(w->m, MEASURE_RAM, arena_printf(w->a, "read.t%u", t));
		if (n && (!best || n->value > best->value))
			best = n;
	}
	fprintf(w->to, "  ");
	if (best)
		put_number(w, "bandwidth", best);
	else
		put_probed(w);
}

static void put_drive(const struct writer *w)
{
	const struct measure_number *write = measure_find(w->m, MEASURE_DISK, "write.16MiB.q1");

	fprintf(w->to, "nvme0: # %s\n  capacity: %lluKiB\n  ", w->m->drive,
		(unsigned long long)(w->m->drive_bytes >> 10));
	put_number(w, "read", measure_find(w->m, MEASURE_DISK, "read.16MiB.q32"));
	if (write) {
		fprintf(w->to, "  ");
		put_number(w, "write", write);
	}
	const struct measure_number *small = measure_find(w->m, MEASURE_DISK, "read.4KiB.q1");
	/* Of a read of 4 KiB alone; the time is the inverse of the rate, and its spread the same. */
	fprintf(w->to, "  ");
	put(w, "latency", UNIT_TIME, 0, 4096 / small->value, spread(small), source(w, small));
}

int measure_write_profile(const struct measurement *m, FILE *to, struct arena *a, struct err *err)
{
	struct writer w = {.m = m, .a = a, .to = to};
	char memory[32];

	if (measure_factors_load(kernel_best_level(), a, &w.factors, err))
		return -1;
	units_format(memory, sizeof(memory), (double)m->host.memory_bytes, UNIT_BYTES);
	fprintf(to,
		"# Written by offsim calibrate on %s. Spreads are those of repetitions in one run of it.\n",
		m->date);
	for (size_t i = 0; i < m->notes.n; i++)
		fprintf(to, "# %s\n", m->notes.at[i]);
	fprintf(to, "description: %s\n",
		measure_quoted(a, arena_printf(a, "%s, %u cores, %s, measured on %s", m->host.cpu, m->host.cores,
				  memory, m->date)));
	put_cpu(&w);
	put_ram(&w);
	if (m->part[MEASURE_DISK])
		put_drive(&w);
	return 0;
}
