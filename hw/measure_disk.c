/*
 * A drive: reads of a file by block size and depth of queue, around the page cache, and through mmap with the
 * cache cold and warm. Offsets are random, for what an engine reads is scattered over a file of many
 * gigabytes.
 *
 * The file is either the user's, only read, or one of our own. That one has no name from the moment it
 * exists, so that nothing is left behind however the program ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/rng.h"
#include "hw/measure_kernels.h"
#include "hw/measure_rounds.h"
#include "hw/measure_uring.h"

#define PAGE 4096u
#define BIG_BLOCK (16u << 20)
#define MIN_FILE (64u << 20)
#define MAX_FILE (1024u << 20)
#define FILE_PER_SECOND (64u << 20) /* of measuring: a short run writes little */
#define MAX_DEPTH 32
#define BUFFER_BYTES (4 * BIG_BLOCK) /* reads under way may share it: nobody looks at what comes */
#define STEP (1u << 20)
#define REGION (64u << 20)	     /* read through the page cache in one repetition */

static const size_t blocks[] = {PAGE, 64u << 10, 1u << 20, BIG_BLOCK};
static const char *const block_names[] = {"4KiB", "64KiB", "1MiB", "16MiB"};
static const unsigned depths[] = {1, 4, MAX_DEPTH};

struct measure_drive {
	struct measure *m;
	const char *path; /* the file, or the folder of ours */
	bool own;
	int direct, cached; /* the same file, opened around the page cache and through it */
	uint64_t bytes;
	struct uring *ring; /* NULL: threads read */
	char *buffer;
	uint64_t drawn; /* random numbers so far */
	bool sticky;	/* the page cache did not let go of what it was told to */
	/* of the item under way */
	size_t block;
	bool alone;
	char *mapped;
	size_t share; /* of a thread */
	uint64_t from;
	bool warm;
	int failed; /* errno */
};

/* ---- opening ---- */

static int io_error(const struct measure_drive *d, const char *what, int why, struct err *err)
{
	return err_set(err, ERR_IO, "cannot %s '%s': %s", what, d->path, strerror(why));
}

static int refuse_memory(const struct measure_drive *d, struct err *err)
{
	struct statfs fs;

	if (fstatfs(d->cached, &fs))
		return io_error(d, "look at", errno, err);
	if (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC)
		return err_set(err, ERR_INPUT,
			"'%s' is on tmpfs, which is memory and no drive; name a folder on a drive with "
			"--file",
			d->path);
	return 0;
}

/* /proc/self/fd reaches a file that has no name. */
static int open_direct(struct measure_drive *d, int flags, struct err *err)
{
	char self[40];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", d->cached);
	d->direct = open(self, flags | O_DIRECT | O_CLOEXEC);
	if (d->direct < 0 && errno == EINVAL)
		return err_set(err, ERR_INPUT,
			"the file system of '%s' cannot read around the page cache (O_DIRECT); name a folder "
			"on another with --file",
			d->path);
	return d->direct < 0 ? io_error(d, "open", errno, err) : 0;
}

static int open_theirs(struct measure_drive *d, struct err *err)
{
	d->cached = open(d->path, O_RDONLY | O_CLOEXEC);
	if (d->cached < 0)
		return err_set(err, ERR_INPUT, "cannot read '%s': %s", d->path, strerror(errno));
	if (refuse_memory(d, err) || open_direct(d, O_RDONLY, err))
		return -1;
	off_t end = lseek(d->cached, 0, SEEK_END);
	if (end < 0)
		return io_error(d, "find the size of", errno, err);
	d->bytes = (uint64_t)end;
	if (d->bytes < MIN_FILE)
		return err_set(err, ERR_INPUT, "'%s' has less than %u MiB, too little to read at random",
			d->path, MIN_FILE >> 20);
	return 0;
}

/* A quarter of the free space at most. */
static int choose_size(struct measure_drive *d, double seconds, struct err *err)
{
	struct statvfs fs;

	if (fstatvfs(d->cached, &fs))
		return io_error(d, "look at", errno, err);
	uint64_t free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	d->bytes = (uint64_t)fmin(fmax(seconds * FILE_PER_SECOND, MIN_FILE), MAX_FILE);
	if (d->bytes > free_bytes / 4)
		d->bytes = free_bytes / 4;
	d->bytes = d->bytes / BIG_BLOCK * BIG_BLOCK;
	if (d->bytes < MIN_FILE)
		return err_set(err, ERR_IO,
			"only %u MiB are free at '%s'; a file of %u MiB may take a quarter of them",
			(unsigned)(free_bytes >> 20), d->path, MIN_FILE >> 20);
	return 0;
}

static int open_ours(struct measure_drive *d, double seconds, struct err *err)
{
	char *name = arena_printf(d->m->a, "%s/.offsim-calibrate-XXXXXX", d->path);

	d->own = true;
	d->cached = mkostemp(name, O_CLOEXEC);
	if (d->cached < 0)
		return io_error(d, "write a file in", errno, err);
	if (unlink(name))
		return io_error(d, "remove a file in", errno, err);
	if (refuse_memory(d, err) || open_direct(d, O_RDWR, err))
		return -1;
	return choose_size(d, seconds, err);
}

static uint64_t capacity(const struct measure_drive *d)
{
	struct statvfs fs;
	struct stat st;

	if (!fstat(d->cached, &st) && S_ISBLK(st.st_mode))
		return d->bytes;
	return fstatvfs(d->cached, &fs) ? 0 : (uint64_t)fs.f_blocks * fs.f_frsize;
}

static int open_drive(struct measure_drive *d, double seconds, struct err *err)
{
	struct stat st;

	if (stat(d->path, &st))
		return err_set(err, ERR_INPUT, "cannot find '%s': %s", d->path, strerror(errno));
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		return err_set(err, ERR_INPUT, "'%s' is neither a folder nor a file nor a drive", d->path);
	if (S_ISDIR(st.st_mode) ? open_ours(d, seconds, err) : open_theirs(d, err))
		return -1;
	d->buffer = measure_map(BUFFER_BYTES, -1);
	if (!d->buffer)
		return err_set(err, ERR_NOMEM, "no %u MiB of memory to read into", BUFFER_BYTES >> 20);
	d->ring = uring_open(MAX_DEPTH);
	if (!d->ring)
		measure_note(d->m, "disk: io_uring cannot be used here (%s); queues are threads that read",
			strerror(errno));
	d->m->out->drive_bytes = capacity(d);
	d->m->out->drive =
		arena_printf(d->m->a, "%s '%s'", d->own ? "a file of our own in" : "the file", d->path);
	return 0;
}

int measure_drive_open(struct measure *m, double seconds, struct measure_drive **out, struct err *err)
{
	struct measure_drive *d = arena_new(m->a, struct measure_drive);

	*d = (struct measure_drive){
		.m = m, .path = m->o->file ? m->o->file : ".", .direct = -1, .cached = -1};
	*out = d;
	return open_drive(d, seconds, err);
}

void measure_drive_close(struct measure_drive *d)
{
	if (!d)
		return;
	if (d->direct >= 0)
		close(d->direct);
	if (d->cached >= 0)
		close(d->cached);
	uring_close(d->ring);
	measure_unmap(d->buffer, BUFFER_BYTES);
}

/* ---- writing our file ---- */

/* What no drive can compress, other in each block, so that none can share it either. */
static void fill_block(char *p, uint64_t nth)
{
	uint64_t *word = (uint64_t *)(void *)p;

	if (nth == 0)
		for (uint64_t i = 0; i < BIG_BLOCK / 8; i++)
			word[i] = rng_mix(i + 1);
	for (size_t i = 0; i < BIG_BLOCK / 8; i += PAGE / 8)
		word[i] = rng_mix(word[i] + nth);
}

static int write_whole(struct measure_drive *d, uint64_t at, struct err *err)
{
	for (size_t done = 0; done < BIG_BLOCK;) {
		ssize_t n = pwrite(d->direct, d->buffer + done, BIG_BLOCK - done, (off_t)(at + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return io_error(d, "write a file in", n ? errno : ENOSPC, err);
		done += (size_t)n;
	}
	return 0;
}

static int write_file(struct measure_drive *d, struct err *err)
{
	struct measure *m = d->m;
	struct measure_number number = {.part = MEASURE_DISK,
		.name = "write.16MiB.q1",
		.what = "writes of 16 MiB, one after the other, around the page cache",
		.dim = UNIT_BYTES_RATE};

	for (uint64_t at = 0; at < d->bytes; at += BIG_BLOCK) {
		fill_block(d->buffer, at / BIG_BLOCK);
		double begin = measure_now();
		if (write_whole(d, at, err))
			return -1;
		VEC_PUSH(&number.sample, m->a, BIG_BLOCK / (measure_now() - begin));
		if (m->o->interrupted && *m->o->interrupted)
			return err_set(err, ERR_INTERRUPTED, "interrupted");
	}
	if (fdatasync(d->direct))
		return io_error(d, "write a file in", errno, err);
	VEC_PUSH(&m->out->numbers, m->a, number);
	return 0;
}

/* ---- around the page cache ---- */

static uint64_t draw_offset(struct measure_drive *d)
{
	uint64_t n = __atomic_add_fetch(&d->drawn, 1, __ATOMIC_RELAXED);

	return rng_mix(n) % (d->bytes / d->block) * d->block;
}

static char *target(const struct measure_drive *d, unsigned tag)
{
	return d->buffer + (size_t)tag * d->block % BUFFER_BYTES;
}

static int start_one(struct measure_drive *d, unsigned tag, struct err *err)
{
	if (uring_read(d->ring, d->direct, target(d, tag), d->block, draw_offset(d), tag))
		return io_error(d, "read", errno, err);
	return 0;
}

/* `depth` under way until the time is over; then the rest is waited for. All must be: they write to our
   buffer. */
static double read_by_ring(struct measure_drive *d, unsigned depth, double seconds, struct err *err)
{
	double begin = measure_now(), done = 0;
	unsigned under_way = 0, tag;
	int result, rc = 0;

	for (; under_way < depth && !rc; under_way += !rc)
		rc = start_one(d, under_way, err);
	while (under_way) {
		if (uring_wait(d->ring, &tag, &result))
			return io_error(d, "read", errno, err);
		under_way--;
		done += result > 0 ? result : 0;
		if (result <= 0 && !rc)
			rc = io_error(d, "read", result ? -result : EIO, err);
		if (!rc && measure_now() - begin < seconds) {
			rc = start_one(d, tag, err);
			under_way += !rc;
		}
	}
	return rc ? -1 : done / (measure_now() - begin);
}

static double read_blocks(void *ctx, unsigned thread, double until)
{
	struct measure_drive *d = ctx;
	struct measure_slices s;
	double done = 0;

	measure_slices_begin(&s);
	do {
		ssize_t n = pread(d->direct, target(d, thread), d->block, (off_t)draw_offset(d));
		if (n <= 0) {
			__atomic_store_n(&d->failed, n ? errno : EIO, __ATOMIC_RELAXED);
			return 0;
		}
		done += (double)n;
	} while (measure_slices_add(&s, (double)d->block) < until);
	/* A read alone is timed by itself, and one that others delayed is a slice; of several the sum counts. */
	return d->alone ? measure_slices_end(&s) : done;
}

static double read_by_threads(struct measure_drive *d, unsigned depth, double seconds, struct err *err)
{
	const struct measure_host *h = &d->m->out->host;
	int cpu[MAX_DEPTH];

	d->alone = depth == 1;
	for (unsigned i = 0; i < depth; i++)
		cpu[i] = h->thread_cpu[i % d->m->threads];
	struct measure_rates rates = measure_parallel(cpu, depth, seconds, read_blocks, d);
	if (rates.each < 0)
		return err_set(err, ERR_IO, "cannot start %u threads", depth);
	if (d->failed)
		return io_error(d, "read", d->failed, err);
	return d->alone ? rates.each : rates.together;
}

enum { ARG_BLOCK, ARG_DEPTH };

static double run_direct(void *ctx, const struct measure_item *item, double seconds, struct err *err)
{
	struct measure_drive *d = ctx;
	unsigned depth = (unsigned)item->arg[ARG_DEPTH];

	d->block = (size_t)item->arg[ARG_BLOCK];
	return d->ring && depth > 1 ? read_by_ring(d, depth, seconds, err)
				    : read_by_threads(d, depth, seconds, err);
}

/* ---- through the page cache ---- */

enum { ARG_WAY, ARG_WARM, ARG_THREADS };
enum way { WAY_MMAP, WAY_MMAP_RANDOM, WAY_READ };

/* Nothing of the file is mapped now, so all of it can go; what stays is in use by others. */
static int cool(struct measure_drive *d, uint64_t from, size_t len, struct err *err)
{
	unsigned char there[REGION / PAGE];
	size_t pages = 0;
	int rc = posix_fadvise(d->cached, (off_t)from, (off_t)len, POSIX_FADV_DONTNEED);

	if (rc)
		return io_error(d, "empty the page cache of", rc, err);
	void *p = mmap(NULL, len, PROT_READ, MAP_SHARED, d->cached, (off_t)from);
	if (p == MAP_FAILED)
		return io_error(d, "map", errno, err);
	if (!mincore(p, len, there))
		for (size_t i = 0; i < len / PAGE; i++)
			pages += there[i] & 1;
	munmap(p, len);
	d->sticky |= pages > len / PAGE / 10;
	return 0;
}

/* What a thread did of its share. Warm, all steps are alike and their median keeps others' time slices out; cold, the
   kernel reads ahead: some wait for the drive and the next ones do not, and only their sum says how long all takes. */
static double done_of(const struct measure_drive *d, struct measure_slices *s, double bytes)
{
	return d->warm ? measure_slices_end(s) : bytes;
}

static double touch_share(void *ctx, unsigned thread, double until)
{
	struct measure_drive *d = ctx;
	size_t step = d->share < STEP ? d->share : STEP;
	struct measure_slices s;

	(void)until;
	measure_slices_begin(&s);
	for (size_t at = 0; at + step <= d->share; at += step) {
		uint64_t sum = kernel_read(kernel_best_level())(d->mapped + thread * d->share + at, step);
		MEASURE_KEEP(sum);
		measure_slices_add(&s, (double)step);
	}
	return done_of(d, &s, (double)(d->share / step * step));
}

static double touch_pages(void *ctx, unsigned thread, double until)
{
	struct measure_drive *d = ctx;
	double done = 0;

	(void)thread;
	do {
		char byte = d->mapped[rng_mix(++d->drawn) % (REGION / PAGE) * PAGE];
		MEASURE_KEEP(byte);
		done += PAGE;
	} while (measure_now() < until && done < REGION / 4); /* more would often hit what is there by now */
	return done;
}

static double read_all(void *ctx, unsigned thread, double until)
{
	struct measure_drive *d = ctx;
	struct measure_slices s;

	(void)thread, (void)until;
	measure_slices_begin(&s);
	for (uint64_t at = 0; at < REGION; at += STEP) {
		ssize_t n = pread(d->cached, d->buffer, STEP, (off_t)(d->from + at));
		if (n != STEP) {
			d->failed = n < 0 ? errno : EIO;
			return 0;
		}
		measure_slices_add(&s, STEP);
	}
	return done_of(d, &s, REGION);
}

static double pass(struct measure_drive *d, const struct measure_item *item, uint64_t from, double seconds,
	struct err *err)
{
	static measure_work_fn *const fns[] = {touch_share, touch_pages, read_all};
	enum way way = (enum way)item->arg[ARG_WAY];
	unsigned n = (unsigned)item->arg[ARG_THREADS];

	d->share = REGION / n / PAGE * PAGE;
	d->from = from;
	d->mapped = mmap(NULL, REGION, PROT_READ, MAP_SHARED, d->cached, (off_t)from);
	if (d->mapped == MAP_FAILED)
		return io_error(d, "map", errno, err);
	madvise(d->mapped, REGION, way == WAY_MMAP_RANDOM ? MADV_RANDOM : MADV_SEQUENTIAL);
	struct measure_rates rates = measure_parallel(d->m->out->host.thread_cpu, n, seconds, fns[way], d);
	double rate = d->warm ? rates.each : rates.together;
	munmap(d->mapped, REGION);
	if (rate < 0)
		return err_set(err, ERR_IO, "cannot start %u threads", n);
	return d->failed ? io_error(d, "read", d->failed, err) : rate;
}

static double run_cached(void *ctx, const struct measure_item *item, double seconds, struct err *err)
{
	struct measure_drive *d = ctx;
	d->warm = item->arg[ARG_WARM];
	d->block = REGION;
	uint64_t from = draw_offset(d);
	if (d->warm ? pass(d, item, from, seconds, err) < 0 : cool(d, from, REGION, err))
		return -1;
	return pass(d, item, from, seconds, err);
}

/* ---- what is measured ---- */

struct items {
	VEC(struct measure_item);
};

static void add_direct(struct measure_drive *d, struct items *items)
{
	struct arena *a = d->m->a;

	for (size_t b = 0; b < ARRAY_LEN(blocks); b++) {
		for (size_t q = 0; q < ARRAY_LEN(depths); q++) {
			struct measure_item item = {
				.name = arena_printf(a, "read.%s.q%u", block_names[b], depths[q]),
				.what = arena_printf(a,
					"random reads of %s around the page cache, %u at once",
					block_names[b], depths[q]),
				.dim = UNIT_BYTES_RATE,
				.fn = run_direct,
				.arg = {(int)blocks[b], (int)depths[q]}};
			VEC_PUSH(items, a, item);
		}
	}
}

static void add_cached(
	struct measure_drive *d, struct items *items, enum way way, bool warm, unsigned threads)
{
	static const char *const names[] = {"mmap", "mmap-random", "read"},
				 *const what[] = {"through mmap, in sequence",
					 "through mmap, 4 KiB at random", "by read, 1 MiB in sequence"};
	struct arena *a = d->m->a;
	struct measure_item item = {
		.name = arena_printf(a, "%s.%s.t%u", names[way], warm ? "warm" : "cold", threads),
		.what = arena_printf(a, "%s, page cache %s, %u thread%s", what[way], warm ? "warm" : "cold",
			threads, threads == 1 ? "" : "s"),
		.dim = UNIT_BYTES_RATE,
		.fn = run_cached,
		.arg = {(int)way, warm, (int)threads}};

	VEC_PUSH(items, a, item);
}

static void list_items(struct measure_drive *d, struct items *items)
{
	add_direct(d, items);
	for (int warm = 0; warm <= 1; warm++) {
		add_cached(d, items, WAY_MMAP, warm, 1);
		if (d->m->threads > 1)
			add_cached(d, items, WAY_MMAP, warm, d->m->threads);
		add_cached(d, items, WAY_READ, warm, 1);
	}
	add_cached(d, items, WAY_MMAP_RANDOM, false, 1);
}

/* One request at a time takes a + b x bytes. Distances count relative to the median of their block size: else
   only the large blocks would. */
static void fit_request(struct measure_drive *d)
{
	struct measure *m = d->m;
	struct {
		VEC(double);
	} x = {0}, y = {0}, scale = {0};
	char latency[32], rate[32];

	for (size_t b = 0; b < ARRAY_LEN(blocks); b++) {
		const struct measure_number *n =
			measure_find(m->out, MEASURE_DISK, arena_printf(m->a, "read.%s.q1", block_names[b]));
		double bytes = (double)blocks[b],
		       usual = bytes / stats_median(n->sample.at, n->sample.n, m->a);
		for (size_t i = 0; i < n->sample.n; i++) {
			VEC_PUSH(&x, m->a, bytes);
			VEC_PUSH(&y, m->a, bytes / n->sample.at[i]);
			VEC_PUSH(&scale, m->a, usual);
		}
	}
	struct measure_fit *fit = measure_add_fit(m, MEASURE_DISK, "request",
		"seconds of one read alone = a + b x bytes", x.at, y.at, scale.at, y.n);
	if (fit)
		fit->derived = arena_printf(m->a, "%s before the first byte, then %s",
			units_format(latency, sizeof(latency), fit->line.a, UNIT_TIME),
			units_format(rate, sizeof(rate), 1 / fit->line.b, UNIT_BYTES_RATE));
}

int measure_disk(struct measure *m, struct measure_drive *d, double seconds, struct err *err)
{
	double begin = measure_now();
	struct items items = {0};

	if (d->own && write_file(d, err))
		return -1;
	list_items(d, &items);
	if (measure_rounds(
		    m, MEASURE_DISK, items.at, items.n, fmax(seconds - (measure_now() - begin), 0.1), d, err))
		return -1;
	if (d->sticky)
		measure_note(m,
			"disk: the page cache did not let go of %s; its cold rates are partly those of "
			"memory",
			m->out->drive);
	fit_request(d);
	return 0;
}
