#include "hw/measure_gpu.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/stats.h"

#define FORMAT "offsim-cuda raw 1"
#define MAX_FILE_BYTES ((size_t)256 << 20)
#define MAX_DEVICES 16
#define MAX_BYTES ((uint64_t)1 << 50)
/* Below this many bytes a copy is all latency, and a rate without it is noise; a rate by size says something when it is so
   far from that of the largest. */
#define CURVE_FROM_BYTES (256 << 10)
#define CURVE_SHARE 0.03
/* Faster than this there is no PCIe. */
#define BEYOND_PCIE_BYTES_S 130e9
#define SEED 2385

struct sample {
	const char *part, *type;
	int device, peer;
	uint64_t bytes, count, rows, threads;
	double flops;
	const double *seconds; /* of one operation, by repetition */
	size_t n;
};

struct reader {
	struct gpu_fit *f;
	struct { VEC(struct sample); } samples;
	struct arena *a;
	struct err *err;
	const char *what; /* the item at hand, for messages */
};

/* ---- reading ---- */

static int bad(const struct reader *r, const char *what)
{
	return err_set(r->err, ERR_INPUT, "%s: %s: %s", r->f->file, r->what, what);
}

static int read_count(const struct reader *r, const json_t *o, const char *key, uint64_t def, uint64_t min, uint64_t max, uint64_t *out)
{
	return json_get_count_or(o, r->f->file, key, def, min, max, out, r->err) ? err_prefix(r->err, "%s", r->what) : 0;
}

static int read_text(const struct reader *r, const json_t *o, const char *key, const char **out)
{
	return json_get_text_or(o, r->f->file, key, "", r->a, out, r->err) ? err_prefix(r->err, "%s", r->what) : 0;
}

static int read_flag(const struct reader *r, const json_t *o, const char *key, bool *out)
{
	return json_get_bool_or(o, r->f->file, key, false, out, r->err) ? err_prefix(r->err, "%s", r->what) : 0;
}

static int read_device(struct reader *r, const json_t *o)
{
	struct gpu_device d = {0};

	if (!json_is_object(o))
		return bad(r, "must be an object");
	if (read_text(r, o, "name", &d.name) || read_count(r, o, "memory_bytes", 0, 1, MAX_BYTES, &d.memory_bytes) ||
		read_count(r, o, "free_bytes", d.memory_bytes, 0, MAX_BYTES, &d.free_bytes) ||
		read_count(r, o, "copy_engines", 2, 0, 64, &d.copy_engines) ||
		read_count(r, o, "pcie_gen", 0, 0, 6, &d.pcie_gen) || read_count(r, o, "pcie_width", 0, 0, 32, &d.pcie_width) ||
		read_flag(r, o, "pageable_access", &d.pageable_access) || read_flag(r, o, "integrated", &d.integrated))
		return -1;
	if (!d.memory_bytes)
		return bad(r, "needs the key 'memory_bytes'");
	VEC_PUSH(&r->f->devices, r->a, d);
	return 0;
}

static int read_seconds(const struct reader *r, const json_t *list, struct sample *s)
{
	double *at = arena_array(r->a, double, json_array_size(list) + 1);

	if (!json_is_array(list) || json_array_size(list) == 0)
		return bad(r, "'seconds' must be a list of one or more numbers");
	s->n = json_array_size(list);
	for (size_t i = 0; i < s->n; i++) {
		const json_t *v = json_array_get(list, i);
		at[i] = json_number_value(v) / (double)s->count;
		if (!json_is_number(v) || !(at[i] > 0 && at[i] < 1e6))
			return bad(r, "'seconds' must be numbers above 0");
	}
	s->seconds = at;
	return 0;
}

static int read_sample(struct reader *r, const json_t *o)
{
	struct sample s = {0};
	uint64_t device, peer;
	const char *fault;

	if (!json_is_object(o))
		return bad(r, "must be an object");
	const json_t *flops = json_object_get(o, "flops");
	if (read_text(r, o, "part", &s.part) || read_text(r, o, "type", &s.type) || read_text(r, o, "fault", &fault) ||
		read_count(r, o, "device", 0, 0, r->f->devices.n - 1, &device) || read_count(r, o, "peer", 0, 0, r->f->devices.n - 1, &peer) ||
		read_count(r, o, "bytes", 0, 0, MAX_BYTES, &s.bytes) || read_count(r, o, "count", 1, 1, 1u << 30, &s.count) ||
		read_count(r, o, "rows", 0, 0, 1u << 30, &s.rows) || read_count(r, o, "threads", 0, 0, 65536, &s.threads) ||
		read_seconds(r, json_object_get(o, "seconds"), &s))
		return -1;
	if (!*s.part)
		return bad(r, "needs the key 'part'");
	if (flops && (!json_is_number(flops) || !(json_number_value(flops) >= 0 && json_number_value(flops) < 1e20)))
		return bad(r, "'flops' must be a number");
	s.flops = flops ? json_number_value(flops) : 0;
	s.device = (int)device;
	s.peer = (int)peer;
	if (*fault) {
		VEC_PUSH(&r->f->notes, r->a, arena_printf(r->a, "not used: %s%s%s, %llu bytes, of GPU %d: %s", s.part, *s.type ? " " : "",
			s.type, (unsigned long long)s.bytes, s.device, fault));
		return 0;
	}
	VEC_PUSH(&r->samples, r->a, s);
	return 0;
}

static int read_list(struct reader *r, const json_t *root, const char *key, size_t max, int (*item)(struct reader *, const json_t *))
{
	const json_t *list = json_object_get(root, key);

	r->what = key;
	if (!json_is_array(list) || json_array_size(list) == 0 || json_array_size(list) > max)
		return bad(r, arena_printf(r->a, "must be a list of 1 to %zu objects", max));
	for (size_t i = 0; i < json_array_size(list); i++) {
		r->what = arena_printf(r->a, "%s[%zu]", key, i);
		if (item(r, json_array_get(list, i)))
			return -1;
	}
	return 0;
}

static int read_skipped(struct reader *r, const json_t *o)
{
	const char *part, *why;

	if (read_text(r, o, "part", &part) || read_text(r, o, "why", &why))
		return -1;
	VEC_PUSH(&r->f->notes, r->a, arena_printf(r->a, "not measured: %s: %s", part, why));
	return 0;
}

static int read_root(struct reader *r, const json_t *root)
{
	const char *format, *date;

	r->what = "the file";
	if (read_text(r, root, "format", &format) || read_text(r, root, "date", &date) || read_text(r, root, "host", &r->f->host) ||
		read_text(r, root, "driver_text", &r->f->driver) ||
		read_count(r, root, "ram_bytes", 0, 0, MAX_BYTES, &r->f->ram_bytes))
		return -1;
	if (strcmp(format, FORMAT) != 0)
		return bad(r, arena_printf(r->a, "not what 'offsim-cuda calibrate -o' writes: its 'format' is '%.40s', not '" FORMAT "'", format));
	r->f->date = arena_printf(r->a, "%.10s", date);
	if (read_list(r, root, "devices", MAX_DEVICES, read_device) || read_list(r, root, "samples", 100000, read_sample))
		return -1;
	const json_t *skipped = json_object_get(root, "skipped");
	return json_is_array(skipped) && json_array_size(skipped) ? read_list(r, root, "skipped", 10000, read_skipped) : 0;
}

/* ---- what samples say ---- */

/* The next one of a part after *i; type NULL: any. */
static const struct sample *next(const struct reader *r, size_t *i, int device, const char *part, const char *type)
{
	while (*i < r->samples.n) {
		const struct sample *s = &r->samples.at[(*i)++];
		if (s->device == device && strcmp(s->part, part) == 0 && (!type || strcmp(s->type, type) == 0))
			return s;
	}
	return NULL;
}

static double median(const struct reader *r, const struct sample *s)
{
	return stats_median(s->seconds, s->n, r->a);
}

static double spread(const struct reader *r, const struct sample *s)
{
	return fmin(stats_spread(median(r, s), stats_next80(s->seconds, s->n, r->a)), 2);
}

/* NULL, and a note, when the samples make no number of it, such as a rate of no bytes. */
static struct gpu_constant *add(struct reader *r, int device, const char *prefix, const char *key, enum unit_dim dim, double value,
	double relative, size_t n, const char *what)
{
	struct gpu_constant c = {.device = device, .key = key, .dim = dim, .value = value, .spread = relative, .n = n, .what = what};

	c.name = arena_printf(r->a, "%s.%s", prefix, key);
	if (!(value > 0) || !isfinite(value) || !isfinite(relative)) {
		VEC_PUSH(&r->f->notes, r->a, arena_printf(r->a, "not used: the samples make %s %g", c.name, value));
		return NULL;
	}
	VEC_PUSH(&r->f->constants, r->a, c);
	return &r->f->constants.at[r->f->constants.n - 1];
}

static const char *gpu_name(const struct reader *r, int device)
{
	return arena_printf(r->a, "gpu%d", device);
}

/* Of the samples of a part the one with most bytes. */
static const struct sample *largest(const struct reader *r, int device, const char *part, const char *type)
{
	const struct sample *best = NULL, *s;

	for (size_t i = 0; (s = next(r, &i, device, part, type));)
		if (!best || s->bytes > best->bytes)
			best = s;
	return best;
}

/* to: the constant's device. */
static void add_time(struct reader *r, int device, int to, const char *prefix, const char *key, const char *part, const char *what)
{
	const struct sample *s = largest(r, device, part, NULL);

	if (s)
		add(r, to, prefix, key, UNIT_TIME, median(r, s), spread(r, s), s->n, what);
}

static void add_bandwidth(struct reader *r, int device)
{
	const struct sample *read = largest(r, device, "read", NULL), *copy = largest(r, device, "copy", NULL);
	const char *what = "a kernel that reads";

	if (!read)
		return;
	if (copy)
		what = arena_printf(r->a, "%s; copies inside reach %.4g GB/s, read and written", what, (double)copy->bytes / median(r, copy) * 1e-9);
	add(r, device, gpu_name(r, device), "bandwidth", UNIT_BYTES_RATE, (double)read->bytes / median(r, read), spread(r, read), read->n, what);
}

/* ---- products ---- */

static double flop_rate(const struct reader *r, const struct sample *s)
{
	return s->flops / median(r, s);
}

/* The fastest of the products with this many rows (0: any) of a type, by whatever makes them. */
static const struct sample *fastest(const struct reader *r, int device, const char *part, const char *type, uint64_t rows)
{
	const char *names[] = {arena_printf(r->a, "cublas %s", type), arena_printf(r->a, "plain %s", type)};
	const struct sample *best = NULL, *s;

	for (int k = 0; k < 2; k++)
		for (size_t i = 0; (s = next(r, &i, device, part, names[k]));)
			if ((!rows || s->rows == rows) && (!best || flop_rate(r, s) > flop_rate(r, best)))
				best = s;
	return best;
}

static bool from_library(const struct sample *s)
{
	return s && strncmp(s->type, "cublas", 6) == 0;
}

/* By the library; without it, what multiply-adds alone reach, which no product does. */
static void add_flops(struct reader *r, int device)
{
	static const char *const types[] = {"fp32", "fp16", "bf16", "int8"};

	for (size_t t = 0; t < ARRAY_LEN(types); t++) {
		const struct sample *s = fastest(r, device, "gemm", types[t], 0), *alone = largest(r, device, "arithmetic", types[t]);
		const char *what = s ? arena_printf(r->a, "product with %llu rows, cuBLAS", (unsigned long long)s->rows) : "";
		if (!from_library(s)) {
			s = alone;
			what = "multiply-adds alone, for want of cuBLAS: more than products reach";
		}
		if (s)
			add(r, device, gpu_name(r, device), arena_printf(r->a, "flops.%s", types[t]), UNIT_FLOP_RATE, flop_rate(r, s), spread(r, s),
				s->n, what);
	}
}

static void add_share(struct reader *r, const char *key, const struct sample *s, double rate, const char *of, const char *what)
{
	const struct gpu_constant *whole = gpu_fit_find(r->f, of);

	if (s && whole)
		add(r, -1, "kernels.llama.cpp", key, UNIT_FRACTION, fmin(rate / whole->value, 2), hypot(spread(r, s), whole->spread), s->n, what);
}

/* Engines' kernels, as far as plain ones and the library's stand for them; of the first GPU. */
static void add_kernels(struct reader *r)
{
	const struct sample *one = fastest(r, 0, "gemv", "fp16", 0), *many = fastest(r, 0, "gemm", "fp16", 512), *alloc = NULL, *s;

	add_time(r, 0, -1, "kernels.llama.cpp", "gpu.kernel", "graph_launch", "an empty kernel in a graph of 1000");
	add_time(r, 0, -1, "kernels.llama.cpp", "gpu.sync", "sync", "an empty kernel launched and waited for");
	add_time(r, 0, -1, "kernels.llama.cpp", "gpu.copy_submit", "submit", "cudaMemcpyAsync of 64 B, host time, the stream busy");
	if (one)
		add_share(r, "gpu.read.16bit", one, (double)one->bytes / median(r, one), "gpu0.bandwidth",
			arena_printf(r->a, "one row, %s kernel", from_library(one) ? "cuBLAS's" : "plain"));
	if (from_library(many))
		add_share(r, "gpu.multiply.16bit", many, flop_rate(r, many), "gpu0.flops.fp16", "512 rows against the fastest, cuBLAS");
	for (size_t i = 0; (s = next(r, &i, 0, "alloc", NULL));)
		if (!alloc || llabs((long long)s->bytes - (16 << 20)) < llabs((long long)alloc->bytes - (16 << 20)))
			alloc = s;
	if (alloc)
		add(r, -1, "kernels.accelerate", "gpu.alloc", UNIT_TIME, median(r, alloc), spread(r, alloc), alloc->n,
			arena_printf(r->a, "cudaMalloc and cudaFree of %llu bytes", (unsigned long long)alloc->bytes));
}

/* ---- the link ---- */

/* Seconds = latency + bytes / rate over all sizes of a part; false when there are too few. */
static bool fit_line(const struct reader *r, int device, const char *part, struct stats_line *line, size_t *n)
{
	const struct sample *s;
	size_t total = 0, k = 0;

	for (size_t i = 0; (s = next(r, &i, device, part, NULL));)
		total += s->n;
	double *x = arena_array(r->a, double, total), *y = arena_array(r->a, double, total), *scale = arena_array(r->a, double, total);
	for (size_t i = 0; (s = next(r, &i, device, part, NULL));)
		for (size_t j = 0; j < s->n; j++, k++) {
			x[k] = (double)s->bytes;
			y[k] = s->seconds[j];
			scale[k] = median(r, s);
		}
	*n = total;
	return total && stats_fit_line(x, y, scale, total, SEED, r->a, line) == 0;
}

/* Of both directions, as the profile has one. Their difference is in the spread. */
static double add_latency(struct reader *r, int device)
{
	struct stats_line line;
	double sum = 0, least = INFINITY, most = 0, relative = 0;
	size_t n, n_all = 0, ways = 0;

	for (int up = 0; up < 2; up++) {
		if (!fit_line(r, device, up ? "d2h" : "h2d", &line, &n) || !(line.a > 0))
			continue;
		sum += line.a;
		least = fmin(least, line.a);
		most = fmax(most, line.a);
		relative = fmax(relative, stats_spread(line.a, line.a80));
		n_all += n;
		ways++;
	}
	if (!ways)
		return 0;
	double latency_s = sum / (double)ways;
	add(r, device, gpu_name(r, device), "link.latency", UNIT_TIME, latency_s,
		fmin(hypot(relative, (most - least) / 2 / latency_s), 2), n_all, "latency + bytes / rate fitted to pinned copies of all sizes");
	return latency_s;
}

static void add_curve(struct reader *r, int device, const char *part, double latency_s, struct gpu_constant *c)
{
	double *size = arena_array(r->a, double, r->samples.n), *rate = arena_array(r->a, double, r->samples.n), away = 0;
	const struct sample *s;
	size_t n = 0;

	/* Samples of a part are in no certain order. */
	for (size_t i = 0; (s = next(r, &i, device, part, NULL));) {
		double left_s = median(r, s) - latency_s;
		size_t at = n;
		if (s->bytes < CURVE_FROM_BYTES || left_s < latency_s / 2)
			continue;
		while (at > 0 && size[at - 1] > (double)s->bytes)
			at--;
		if (at > 0 && size[at - 1] == (double)s->bytes)
			continue;
		memmove(size + at + 1, size + at, (n - at) * sizeof(*size));
		memmove(rate + at + 1, rate + at, (n - at) * sizeof(*rate));
		size[at] = (double)s->bytes;
		rate[at] = (double)s->bytes / left_s;
		n++;
	}
	for (size_t i = 0; i < n; i++)
		away = fmax(away, fabs(rate[i] / rate[n - 1] - 1));
	if (n < 2 || away < CURVE_SHARE)
		return;
	c->n_points = n;
	c->size_bytes = size;
	c->rate_bytes_s = rate;
}

static void add_rate(struct reader *r, int device, const char *part, double latency_s, const char *what)
{
	const struct sample *s = largest(r, device, part, NULL);

	if (!s)
		return;
	double left_s = fmax(median(r, s) - latency_s, median(r, s) / 2);
	struct gpu_constant *c = add(r, device, gpu_name(r, device), arena_printf(r->a, "link.%s", part), UNIT_BYTES_RATE,
		(double)s->bytes / left_s, spread(r, s), s->n, arena_printf(r->a, "%s, %llu bytes", what, (unsigned long long)s->bytes));
	if (c)
		add_curve(r, device, part, latency_s, c);
}

static void add_both(struct reader *r, int device)
{
	const struct sample *s = largest(r, device, "both", NULL);

	if (s)
		add(r, device, gpu_name(r, device), "link.both", UNIT_BYTES_RATE, (double)s->bytes / median(r, s), spread(r, s), s->n,
			"sum of both ways at once, pinned");
}

static void note_side(struct reader *r, int device, const char *part, const char *what)
{
	const struct sample *s = largest(r, device, part, NULL);

	if (s)
		VEC_PUSH(&r->f->notes, r->a, arena_printf(r->a, "GPU %d: %s: %.4g GB/s", device, what, (double)s->bytes / median(r, s) * 1e-9));
}

/* Those that no constant is made of, but that say whether those which are will do. */
static void note_sides(struct reader *r, int device)
{
	const struct sample *s, *best = NULL;

	note_side(r, device, "h2d_loaded", "host to GPU while the CPU copies in its memory");
	note_side(r, device, "zero_copy", "a kernel that reads pinned host memory");
	for (size_t i = 0; (s = next(r, &i, device, "drive", NULL));)
		if (!best || median(r, s) / (double)s->bytes < median(r, best) / (double)best->bytes)
			best = s;
	if (best)
		VEC_PUSH(&r->f->notes, r->a, arena_printf(r->a, "GPU %d: drive to GPU through pinned memory, %llu at once: %.4g GB/s", device,
			(unsigned long long)best->threads, (double)best->bytes / median(r, best) * 1e-9));
	for (size_t i = 0; (s = next(r, &i, device, "peer", NULL));)
		VEC_PUSH(&r->f->notes, r->a, arena_printf(r->a, "GPU %d to GPU %d, %s: %.4g GB/s", device, s->peer, s->type,
			(double)s->bytes / median(r, s) * 1e-9));
}

/* What the memory gave: to the threads that copied in it and to the GPU that copied from it meanwhile. */
static void add_ram(struct reader *r)
{
	const struct sample *threads = largest(r, 0, "load", NULL), *gpu = largest(r, 0, "h2d_loaded", NULL);

	if (threads && gpu)
		add(r, -1, "ram", "bandwidth", UNIT_BYTES_RATE,
			(double)threads->bytes / median(r, threads) + (double)gpu->bytes / median(r, gpu),
			hypot(spread(r, threads), spread(r, gpu)), threads->n,
			arena_printf(r->a, "%llu threads copying, a GPU copying from it", (unsigned long long)threads->threads));
}

static void fit_device(struct reader *r, int device)
{
	add_bandwidth(r, device);
	add_flops(r, device);
	add_time(r, device, device, gpu_name(r, device), "launch", "launch", "empty kernels back to back in a stream");
	if (!r->f->devices.at[device].integrated) {
		double latency_s = add_latency(r, device);
		add_rate(r, device, "h2d", latency_s, "pinned");
		add_rate(r, device, "d2h", latency_s, "pinned");
		add_rate(r, device, "h2d_pageable", latency_s, "pageable");
		add_rate(r, device, "d2h_pageable", latency_s, "pageable");
		add_both(r, device);
	}
	note_sides(r, device);
}

/* A GPU whose link says nothing of itself: the slowest x16 that is fast enough, or none of PCIe's. */
static void guess_link(struct reader *r, int device)
{
	static const double x16_bytes_s[] = {4e9, 8e9, 15.75e9, 31.5e9, 63e9, 121e9};
	struct gpu_device *d = &r->f->devices.at[device];
	const struct gpu_constant *h2d = gpu_fit_find(r->f, arena_printf(r->a, "gpu%d.link.h2d", device));

	if (!h2d || (d->pageable_access && h2d->value > BEYOND_PCIE_BYTES_S)) {
		d->pcie_gen = d->pcie_width = 0;
		return;
	}
	if (d->pcie_gen && d->pcie_width && d->pcie_width <= 16)
		return;
	d->pcie_width = 16;
	for (d->pcie_gen = 1; d->pcie_gen < 6 && x16_bytes_s[d->pcie_gen - 1] < h2d->value; d->pcie_gen++)
		;
	VEC_PUSH(&r->f->notes, r->a, arena_printf(r->a, "GPU %d does not say what its link is; PCIe %d x16 is the slowest that is as fast", device,
		(int)d->pcie_gen));
}

/* Takes root. */
static int fit(json_t *root, const char *name, struct arena *a, struct gpu_fit *out, struct err *err)
{
	struct reader r = {.f = out, .a = a, .err = err};

	*out = (struct gpu_fit){.file = name};
	int rc = read_root(&r, root);
	json_decref(root);
	if (rc)
		return -1;
	for (int d = 0; d < (int)out->devices.n; d++) {
		fit_device(&r, d);
		guess_link(&r, d);
	}
	add_kernels(&r);
	add_ram(&r);
	return out->constants.n ? 0 : err_set(err, ERR_INPUT, "%s: no sample says anything of a constant", name);
}

int gpu_fit_read(const char *path, struct arena *a, struct gpu_fit *out, struct err *err)
{
	json_t *root;

	return json_read_file(path, MAX_FILE_BYTES, &root, err) ? -1 : fit(root, path, a, out, err);
}

int gpu_fit_read_text(const char *text, size_t len, const char *name, struct arena *a, struct gpu_fit *out, struct err *err)
{
	json_t *root;

	return json_read_text(text, len, name, &root, err) ? -1 : fit(root, name, a, out, err);
}

const struct gpu_constant *gpu_fit_find(const struct gpu_fit *f, const char *name)
{
	for (size_t i = 0; i < f->constants.n; i++)
		if (strcmp(f->constants.at[i].name, name) == 0)
			return &f->constants.at[i];
	return NULL;
}
