#include "hw/measure.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics.h>

#include "base/file.h"
#include "hw/measure_kernels.h"
#include "hw/measure_rounds.h"

#define MIN_ROUNDS 3
#define MAX_ROUNDS 41
#define AIM_ROUNDS 15 /* repetitions are made as long as lets this many of all items fit the time */
#define PROBE_REPEATS 7
#define PROBE_S 0.012
#define PROBE_FMAS 64 /* between two looks at the clock */
#define NOISE_LIMIT 0.10 /* of a probe, or of the processors: what is more is said; what is less is not seen */
#define HUGE_BYTES (2u << 20)

static const char *const part_names[MEASURE_PART_N] = {"ram", "cpu", "disk"};

const char *measure_part_name(enum measure_part part)
{
	return part_names[part];
}

double measure_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- memory ---- */

static size_t whole_huge(size_t bytes)
{
	return (bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
}

/* Binding is advice: where the kernel has no NUMA, or forbids it, there is nothing to choose or nobody to
   ask. */
static void bind_to(void *p, size_t bytes, int node)
{
#ifdef SYS_mbind
	unsigned long mask[1024 / (8 * sizeof(unsigned long))] = {0};
	const int bind = 2; /* MPOL_BIND of linux/mempolicy.h */

	mask[(unsigned)node / (8 * sizeof(*mask))] = 1ul << (unsigned)node % (8 * sizeof(*mask));
	syscall(SYS_mbind, p, bytes, bind, mask, 8 * sizeof(mask), 0);
#else
	(void)p, (void)bytes, (void)node;
#endif
}

void *measure_map(size_t bytes, int node)
{
	char *p = mmap(NULL, whole_huge(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, whole_huge(bytes), MADV_HUGEPAGE);
	if (node >= 0)
		bind_to(p, whole_huge(bytes), node);
	return p;
}

void measure_unmap(void *p, size_t bytes)
{
	if (p)
		munmap(p, whole_huge(bytes));
}

/* ---- threads ---- */

enum start { START_WAIT, START_GO, START_CANCEL };

struct crew {
	measure_work_fn *fn;
	void *ctx;
	double seconds;
	atomic_uint ready;
	_Atomic enum start start;
};

struct worker {
	struct crew *crew;
	unsigned thread;
	int cpu;
	double begin, end, done;
	pthread_t id;
};

void measure_pin(int cpu)
{
	size_t bytes = CPU_ALLOC_SIZE(cpu + 1);
	cpu_set_t *set = CPU_ALLOC(cpu + 1);

	if (!set)
		return;
	CPU_ZERO_S(bytes, set);
	CPU_SET_S((size_t)cpu, bytes, set);
	sched_setaffinity(0, bytes, set);
	CPU_FREE(set);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct crew *crew = w->crew;
	enum start start;

	measure_pin(w->cpu);
	atomic_fetch_add(&crew->ready, 1);
	while ((start = atomic_load(&crew->start)) == START_WAIT)
		sched_yield();
	if (start == START_CANCEL)
		return NULL;
	w->begin = measure_now();
	w->done = crew->fn(crew->ctx, w->thread, w->begin + crew->seconds);
	w->end = measure_now();
	return NULL;
}

struct measure_rates measure_parallel(
	const int *cpu, unsigned n, double seconds, measure_work_fn *fn, void *ctx)
{
	struct crew crew = {.fn = fn, .ctx = ctx, .seconds = seconds};
	struct worker *w = calloc(n, sizeof(*w));
	struct measure_rates rates = {0, 0};
	double first = INFINITY, last = 0, done = 0;
	unsigned started = 0;

	if (!w)
		return (struct measure_rates){-1, -1};
	for (; started < n; started++) {
		w[started] = (struct worker){.crew = &crew, .thread = started, .cpu = cpu[started]};
		if (pthread_create(&w[started].id, NULL, work, &w[started]))
			break;
	}
	while (atomic_load(&crew.ready) < started)
		sched_yield();
	atomic_store(&crew.start, started == n ? START_GO : START_CANCEL);
	for (unsigned i = 0; i < started; i++) {
		pthread_join(w[i].id, NULL);
		first = fmin(first, w[i].begin);
		last = fmax(last, w[i].end);
		done += w[i].done;
		rates.each += w[i].done / (w[i].end - w[i].begin);
	}
	free(w);
	rates.together = done / (last - first);
	return started == n ? rates : (struct measure_rates){-1, -1};
}

void measure_slices_begin(struct measure_slices *s)
{
	s->begin = s->last = measure_now();
	s->n = 0;
}

double measure_slices_add(struct measure_slices *s, double amount)
{
	double now = measure_now();

	s->rate[s->n++ % MEASURE_SLICES] = amount / (now - s->last);
	s->last = now;
	return now;
}

double measure_slices_end(struct measure_slices *s)
{
	size_t n = s->n < MEASURE_SLICES ? s->n : MEASURE_SLICES;

	gsl_sort(s->rate, 1, n);
	return gsl_stats_median_from_sorted_data(s->rate, 1, n) * (s->last - s->begin);
}

/* ---- results ---- */

void measure_note(struct measure *m, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	VEC_PUSH(&m->out->notes, m->a, arena_strdup(m->a, text));
}

struct measure_fit *measure_add_fit(struct measure *m, enum measure_part part, const char *name,
	const char *what, const double *x, const double *y, const double *scale, size_t n)
{
	struct measure_fit fit = {
		.part = part, .name = name, .what = what, .x = x, .y = y, .n = n, .derived = ""};

	if (stats_fit_line(x, y, scale, n, 1, m->a, &fit.line))
		return NULL;
	VEC_PUSH(&m->out->fits, m->a, fit);
	return &m->out->fits.at[m->out->fits.n - 1];
}

const struct measure_number *measure_find(
	const struct measurement *m, enum measure_part part, const char *name)
{
	for (size_t i = 0; i < m->numbers.n; i++)
		if (m->numbers.at[i].part == part && !strcmp(m->numbers.at[i].name, name))
			return &m->numbers.at[i];
	return NULL;
}

/* ---- rounds ---- */

static int check_interrupt(const struct measure *m, struct err *err)
{
	return m->o->interrupted && *m->o->interrupted ? err_set(err, ERR_INTERRUPTED, "interrupted") : 0;
}

static void report(const struct measure *m, const char *doing, double share_of_part)
{
	if (m->o->report)
		m->o->report(m->o->report_ctx, doing,
			m->part_begin_share + m->part_share * fmin(fmax(share_of_part, 0), 1));
}

static double repetition_s(const struct measure_item *item, size_t n, double seconds)
{
	double fixed = 0, free_items = 0;

	for (size_t i = 0; i < n; i++) {
		fixed += item[i].least_s;
		free_items += item[i].least_s <= 0;
	}
	double rest = seconds / AIM_ROUNDS - fixed;
	return free_items > 0 ? fmin(fmax(rest / free_items, 0.001), 0.1) : 0;
}

int measure_rounds(struct measure *m, enum measure_part part, const struct measure_item *item, size_t n,
	double seconds, void *ctx, struct err *err)
{
	double begin = measure_now(), free_s = repetition_s(item, n, seconds);
	size_t first = m->out->numbers.n;

	for (size_t i = 0; i < n; i++) {
		struct measure_number number = {
			.part = part, .name = item[i].name, .what = item[i].what, .dim = item[i].dim};
		VEC_PUSH(&m->out->numbers, m->a, number);
	}
	for (int round = 0; round < MAX_ROUNDS; round++) {
		for (size_t i = 0; i < n; i++) {
			double used = measure_now() - begin;
			report(m, part_names[part], used / seconds);
			/* Once there are three of each, the last round may stop half way. */
			if (round >= MIN_ROUNDS && used > seconds)
				return 0;
			double s = item[i].fn(
				ctx, &item[i], item[i].least_s > 0 ? item[i].least_s : free_s, err);
			if (s < 0 || check_interrupt(m, err))
				return -1;
			VEC_PUSH(&m->out->numbers.at[first + i].sample, m->a, s);
		}
	}
	return 0;
}

static void summarise(struct measure *m, enum measure_part part)
{
	double widened = m->out->noise[part].widened;

	for (size_t i = 0; i < m->out->numbers.n; i++) {
		struct measure_number *number = &m->out->numbers.at[i];
		if (number->part != part)
			continue;
		number->value = stats_median(number->sample.at, number->sample.n, m->a);
		number->interval80 = stats_next80(number->sample.at, number->sample.n, m->a);
		number->interval80.low = fmax(0, number->interval80.low - widened * number->value);
		number->interval80.high += widened * number->value;
	}
}

/* ---- noise ---- */

struct probe_ctx {
	const struct measure *m;
	enum kernel_level level;
	bool read;
};

static double probe_work(void *arg, unsigned thread, double until)
{
	const struct probe_ctx *p = arg;
	size_t share = p->m->probe_bytes / p->m->threads / 64 * 64, at = 0;
	size_t step = share < 1u << 20 ? share : 1u << 20;
	const char *mine = (const char *)p->m->probe_memory + share * thread;
	struct measure_slices s;
	double amount;

	measure_slices_begin(&s);
	do {
		if (p->read) {
			uint64_t sum = kernel_read(p->level)(mine + at, step);
			MEASURE_KEEP(sum);
			at = at + 2 * step <= share ? at + step : 0;
			amount = (double)step;
		} else {
			float sum = kernel_fma(p->level)(PROBE_FMAS);
			MEASURE_KEEP(sum);
			amount = (double)PROBE_FMAS * KERNEL_FMA_FLOPS;
		}
	} while (measure_slices_add(&s, amount) < until);
	return measure_slices_end(&s);
}

static int probe(struct measure *m, struct measure_probe *out, struct err *err)
{
	struct probe_ctx p = {.m = m, .level = kernel_best_level()};
	double fma[PROBE_REPEATS], read[PROBE_REPEATS];

	for (int i = 0; i < PROBE_REPEATS; i++) {
		p.read = false;
		fma[i] = measure_parallel(m->out->host.thread_cpu, m->threads, PROBE_S, probe_work, &p).each;
		p.read = true;
		read[i] = measure_parallel(m->out->host.thread_cpu, m->threads, PROBE_S, probe_work, &p).each;
		if (fma[i] < 0 || read[i] < 0)
			return err_set(err, ERR_IO, "cannot start %u threads", m->threads);
		if (check_interrupt(m, err))
			return -1;
	}
	out->fma_flops_s = stats_median(fma, PROBE_REPEATS, m->a);
	out->read_bytes_s = stats_median(read, PROBE_REPEATS, m->a);
	return 0;
}

/* What all processors did since the system began, and what we did, in seconds. */
struct usage {
	double at, busy, steal, ours;
};

static double seconds_of(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

static void read_usage(struct usage *u, struct arena *a)
{
	unsigned long long user = 0, nice_ = 0, kernel = 0, idle = 0, wait = 0, irq = 0, soft = 0, steal = 0;
	double tick = (double)sysconf(_SC_CLK_TCK);
	struct rusage r;
	char *text;
	size_t len;

	if (!file_read("/proc/stat", 16u << 20, a, &text, &len, NULL))
		sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice_, &kernel, &idle,
			&wait, &irq, &soft, &steal);
	getrusage(RUSAGE_SELF, &r);
	*u = (struct usage){measure_now(), (double)(user + nice_ + kernel + irq + soft) / tick,
		(double)steal / tick, seconds_of(r.ru_utime) + seconds_of(r.ru_stime)};
}

static double apart(double x, double y)
{
	return fabs(x - y) / fmax(fmin(x, y), 1e-300);
}

static void judge(struct measure *m, enum measure_part part, const struct usage *from, const struct usage *to)
{
	struct measure_noise *n = &m->out->noise[part];
	const char *name = part_names[part];

	n->seconds = to->at - from->at;
	n->others_cores = fmax(0, (to->busy - from->busy - (to->ours - from->ours)) / n->seconds);
	n->steal_cores = fmax(0, (to->steal - from->steal) / n->seconds);
	double fma = apart(n->before.fma_flops_s, n->after.fma_flops_s);
	double read = apart(n->before.read_bytes_s, n->after.read_bytes_s);
	double others = (n->others_cores + n->steal_cores) / m->out->host.threads;
	double worst = fmax(fma, read);
	n->widened = worst > NOISE_LIMIT ? worst : others > NOISE_LIMIT ? NOISE_LIMIT : 0;
	if (fma > NOISE_LIMIT)
		measure_note(m, "%s: multiply-adds ran at %.4g GFLOP/s before and %.4g after", name,
			n->before.fma_flops_s / 1e9, n->after.fma_flops_s / 1e9);
	if (read > NOISE_LIMIT)
		measure_note(m, "%s: DRAM was read at %.4g GB/s before and %.4g after", name,
			n->before.read_bytes_s / 1e9, n->after.read_bytes_s / 1e9);
	if (others > NOISE_LIMIT)
		measure_note(m, "%s: others kept %.2f of %u processors busy (%.2f of them other guests of this host)",
			name, n->others_cores + n->steal_cores, m->out->host.threads, n->steal_cores);
	if (n->widened > 0)
		measure_note(m, "%s: intervals are wider by %.0f %% either way; repeat when the machine is quiet",
			name, n->widened * 100);
}

/* ---- parts ---- */

/* Several times what all caches hold together, as far as memory is free. */
static size_t beyond_caches(const struct measure_host *h, size_t least)
{
	uint64_t bytes = 4 * h->last_cache_bytes > least ? 4 * h->last_cache_bytes : least;

	if (h->available_bytes && bytes > h->available_bytes / 4)
		bytes = h->available_bytes / 4;
	return (size_t)bytes;
}

static int measure_part(struct measure *m, enum measure_part part, struct measure_drive *drive,
	double seconds, struct err *err)
{
	switch (part) {
	case MEASURE_RAM:
		return measure_ram(m, seconds, err);
	case MEASURE_CPU:
		return measure_cpu(m, seconds, err);
	default:
		return measure_disk(m, drive, seconds, err);
	}
}

/* How the time is shared out: processors have the most to measure. */
static double part_weight(const struct measure_options *o, enum measure_part part)
{
	static const double weights[MEASURE_PART_N] = {1, 2, 2};

	return o->part[part] ? weights[part] : 0;
}

static double part_seconds(const struct measure_options *o, enum measure_part part)
{
	double all = 0;

	for (int p = 0; p < MEASURE_PART_N; p++)
		all += part_weight(o, (enum measure_part)p);
	return o->time_s * part_weight(o, part) / all;
}

static int run_parts(struct measure *m, struct measure_drive *drive, struct err *err)
{
	struct measure_probe now;
	struct usage before, after;

	report(m, "probe", 0);
	if (probe(m, &now, err))
		return -1;
	for (int p = 0; p < MEASURE_PART_N; p++) {
		enum measure_part part = (enum measure_part)p;
		if (!m->o->part[p])
			continue;
		m->out->noise[p].before = now;
		m->part_share = part_seconds(m->o, part) / m->o->time_s;
		read_usage(&before, m->a);
		if (measure_part(m, part, drive, part_seconds(m->o, part), err))
			return -1;
		read_usage(&after, m->a);
		m->part_begin_share += m->part_share;
		if (probe(m, &now, err))
			return -1;
		m->out->noise[p].after = now;
		judge(m, part, &before, &after);
		summarise(m, part);
	}
	m->part_share = 0;
	report(m, "", 0);
	return 0;
}

static int run_with_memory(struct measure *m, struct err *err)
{
	struct measure_drive *drive = NULL;

	m->probe_bytes = beyond_caches(&m->out->host, 64u << 20);
	m->probe_memory = measure_map(m->probe_bytes, -1);
	if (!m->probe_memory)
		return err_set(err, ERR_NOMEM, "no %zu MiB of memory to measure with", m->probe_bytes >> 20);
	memset(m->probe_memory, 1, m->probe_bytes);
	int rc = m->o->part[MEASURE_DISK]
			 ? measure_drive_open(m, part_seconds(m->o, MEASURE_DISK), &drive, err)
			 : 0;
	if (!rc)
		rc = run_parts(m, drive, err);
	measure_drive_close(drive);
	measure_unmap(m->probe_memory, m->probe_bytes);
	return rc;
}

int measure_run(const struct measure_options *o, struct arena *a, struct measurement **out, struct err *err)
{
	struct measure m = {.o = o, .a = a, .out = arena_new(a, struct measurement)};
	time_t now = time(NULL);
	struct tm utc;

	*out = m.out;
	memcpy(m.out->part, o->part, sizeof(o->part));
	if (measure_host_read(a, &m.out->host, err))
		return -1;
	if (o->threads > m.out->host.threads)
		return err_set(err, ERR_USAGE,
			"%u threads are more than the %u processors that may be used here", o->threads,
			m.out->host.threads);
	m.threads = m.out->threads = o->threads ? o->threads : m.out->host.quota;
	if (!o->threads && m.out->host.quota < m.out->host.threads)
		measure_note(&m,
			"a limit on this container lets %u of %u processors run at once; no more threads "
			"were used",
			m.out->host.quota, m.out->host.threads);
	gmtime_r(&now, &utc);
	strftime(m.out->date, sizeof(m.out->date), "%Y-%m-%d", &utc);
	return run_with_memory(&m, err);
}
