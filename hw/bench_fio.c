/*
 * bench_fio.c - fio --output-format=json: reads and writes of a drive.
 *
 *	warnings …
 *	{"global options": {"iodepth": "64", …},
 *	 "jobs": [{"jobname": …, "job options": {"rw": "read", "bs": "1m"}, "read": {"bw_bytes": …, "clat_ns": {…}}, …}]}
 *
 * Options of a job go before the global ones. Rates are bw_bytes (bw is in KiB/s); latencies are in lat_ns or clat_ns,
 * whichever has them.
 */
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/number.h"
#include "hw/bench.h"

/* A drive's rates are of requests from this size on, its latency of one request up to that size. */
#define LARGE_BYTES (128 << 10)
#define SMALL_BYTES (16 << 10)

struct job {
	const json_t *global, *own;
	const char *name;
	int line;
};

static bool sniff(const struct bench_text *t)
{
	return bench_has(t, "\"fio version\"");
}

static const char *option(const struct job *j, const char *key, const char *def)
{
	const char *own = json_string_value(json_object_get(j->own, key));
	const char *global = json_string_value(json_object_get(j->global, key));

	return own ? own : global ? global : def;
}

/* "4k", "1m", "4096", "128KiB"; 0: none. fio's k is 1024 unless kb_base says otherwise. */
static double size_bytes(const char *text)
{
	static const char letters[] = "kmg";
	char *end;
	double n = (double)strtoull(text, &end, 10);

	for (int i = 0; letters[i] && end != text; i++)
		if (strncasecmp(end, &letters[i], 1) == 0)
			return n * (double)(1ull << (10 * (i + 1)));
	return *end == '\0' && end != text ? n : 0;
}

/* 0 when it is no whole number. */
static double count(const char *text)
{
	char *end;
	double n = (double)strtoull(text, &end, 10);

	return *end ? 0 : n;
}

/* Both run at once: rw, randrw, readwrite, trimwrite … */
static bool is_mixed(const char *rw)
{
	return strcmp(rw, "rw") == 0 || strcmp(rw, "randrw") == 0 || strcmp(rw, "readwrite") == 0;
}

/* Mean of the whole, or of completion, where fio kept it. */
static double latency_s(const json_t *side)
{
	static const char *const keys[] = {"lat_ns", "clat_ns"};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		double ns = json_number_value(json_object_get(json_object_get(side, keys[i]), "mean"));
		if (ns > 0)
			return ns * 1e-9;
	}
	return 0;
}

static double percentile_s(const json_t *side, const char *percent)
{
	static const char *const keys[] = {"lat_ns", "clat_ns"};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const json_t *all = json_object_get(json_object_get(side, keys[i]), "percentile");
		double ns = json_number_value(json_object_get(all, percent));
		if (ns > 0)
			return ns * 1e-9;
	}
	return 0;
}

static int read_side(struct bench_text *t, struct bench *out, const struct job *j, const json_t *side, bool write,
	struct err *err)
{
	const char *rw = option(j, "rw", option(j, "readwrite", "read")), *bs = option(j, "bs", option(j, "blocksize", "4k"));
	double block = size_bytes(bs), depth = count(option(j, "iodepth", "1")) * count(option(j, "numjobs", "1"));
	double rate = json_number_value(json_object_get(side, "bw_bytes"));
	struct bench_row row = {.kind = write ? BENCH_DRIVE_WRITE : BENCH_DRIVE_READ, .line = j->line, .value = rate,
		.dim = UNIT_BYTES_RATE};

	row.what = arena_printf(t->a, "%s: %s of '%s', blocks of %s, %g at once", j->name, write ? "writes" : "reads", rw, bs,
		depth);
	if (is_mixed(rw))
		row.unused = "reads and writes at once";
	else if (strcmp(option(j, "direct", "0"), "1") != 0)
		row.unused = "not direct: the page cache may have answered";
	else if (block < LARGE_BYTES)
		row.unused = "small blocks: operations a second, not bandwidth";
	if (row.unused)
		row.kind = BENCH_OTHER;
	if (bench_add(out, t, &row, err))
		return -1;

	double latency = latency_s(side), p99 = percentile_s(side, "99.000000");
	if (write || latency <= 0)
		return 0;
	row = (struct bench_row){.kind = BENCH_DRIVE_LATENCY, .line = j->line, .value = latency, .dim = UNIT_TIME,
		.unused = row.unused};
	row.what = arena_printf(t->a, "%s: mean time of a read%s", j->name,
		p99 > 0 ? arena_printf(t->a, " (99 %% within %.4g us)", p99 * 1e6) : "");
	if (depth == 1 && block > 0 && block <= SMALL_BYTES && !is_mixed(rw) && strcmp(option(j, "direct", "0"), "1") == 0)
		row.unused = NULL;
	else if (!row.unused || block < LARGE_BYTES)
		row.unused = is_mixed(rw) ? "reads and writes at once" : "not one small read alone";
	if (row.unused)
		row.kind = BENCH_OTHER;
	return bench_add(out, t, &row, err);
}

static int read_job(struct bench_text *t, struct bench *out, const json_t *root, const json_t *job, int line,
	struct err *err)
{
	static const char *const sides[] = {"read", "write"};
	const char *name = json_string_value(json_object_get(job, "jobname"));
	struct job j = {json_object_get(root, "global options"), json_object_get(job, "job options"), name ? name : "job", line};

	j.name = arena_strdup(t->a, j.name);
	struct err_pos pos = {t->file, j.line, 0};
	if (json_integer_value(json_object_get(job, "error")))
		return err_at(err, ERR_INPUT, &pos, "job '%s' ended with error %" JSON_INTEGER_FORMAT, j.name,
			json_integer_value(json_object_get(job, "error")));
	for (int write = 0; write < 2; write++) {
		const json_t *side = json_object_get(job, sides[write]);
		if (json_number_value(json_object_get(side, "io_bytes")) > 0 && read_side(t, out, &j, side, write, err))
			return -1;
	}
	return 0;
}

static int read_fio(struct bench_text *t, struct bench *out, struct err *err)
{
	const char *open = memchr(t->s, '{', t->len);
	struct err_pos pos = {t->file, 1, 0};
	int before = 0;
	json_t *root, *job;
	size_t i;
	struct bench_cursor cursor = {0};

	if (!open)
		return err_at(err, ERR_INPUT, &pos, "there is no { where fio's JSON begins");
	for (const char *p = t->s; p < open; p++)
		before += *p == '\n';
	if (json_read_text(open, t->len - (size_t)(open - t->s), t->file, &root, err)) {
		err->line += err->line ? before : 0;
		return -1;
	}
	int rc = 0;
	json_array_foreach(json_object_get(root, "jobs"), i, job)
	{
		if ((rc = read_job(t, out, root, job, bench_line_of(t, &cursor, "\"jobname\""), err)))
			break;
	}
	json_decref(root);
	return rc;
}

const struct bench_format bench_fio = {
	.name = "fio",
	.help = "fio --output-format=json: reads and writes of a drive",
	.sniff = sniff,
	.read = read_fio,
};
