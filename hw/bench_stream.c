/*
 * bench_stream.c - STREAM's table, and the same test on GPUs as SuperBench prints it.
 *
 *	Function    Best Rate MB/s  Avg time     Min time     Max time        STREAM_TRIAD_double_gpu_0_buffer_…  7378.19 90.07
 *	Triad:         124799.5     0.006492     0.006453     0.006544        (GB/s, and the share of the peak)
 *
 * Rates are of 1e6 (1e9) bytes. The triad, two reads and a write, is what programs reach at best; STREAM does not count
 * the read of a line that is about to be written.
 */
#include <string.h>

#include "hw/bench.h"

static bool sniff(const struct bench_text *t)
{
	return (bench_has(t, "Best Rate MB/s") && bench_has(t, "Triad:")) || bench_has(t, "STREAM_TRIAD_double_gpu_");
}

static int read_host(struct bench_text *t, struct bench *out, const char *line, int n, struct err *err)
{
	static const char *const functions[] = {"Copy:", "Scale:", "Add:", "Triad:"};
	struct bench_row row = {.kind = BENCH_OTHER, .line = n, .dim = UNIT_BYTES_RATE, .unused = "the triad is taken"};
	struct err_pos pos = {t->file, n, 1};

	for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
		double v[4];
		size_t len = strlen(functions[i]);
		if (strncmp(line, functions[i], len) != 0)
			continue;
		/* rate, mean, least and longest time */
		if (sscanf(line + len, "%lf %lf %lf %lf", &v[0], &v[1], &v[2], &v[3]) != 4)
			return err_at(err, ERR_INPUT, &pos, "'%s' has no four numbers behind it", functions[i]);
		row.value = v[0] * 1e6;
		row.what = arena_printf(t->a, "STREAM %.*s", (int)len - 1, functions[i]);
		if (i + 1 == ARRAY_LEN(functions)) {
			row.kind = BENCH_DRAM;
			row.unused = NULL;
		}
		return bench_add(out, t, &row, err);
	}
	return 0;
}

static int read_gpu(struct bench_text *t, struct bench *out, const char *line, int n, struct err *err)
{
	struct bench_row row = {.kind = BENCH_OTHER, .line = n, .dim = UNIT_BYTES_RATE, .unused = "the triad is taken"};
	struct err_pos pos = {t->file, n, 1};
	char function[16], rest[80];
	double gb_s;

	if (sscanf(line, "STREAM_%15[A-Z]_double_gpu_%d_%79s %lf", function, &row.device, rest, &gb_s) != 4)
		return err_at(err, ERR_INPUT, &pos, "not STREAM_FUNCTION_double_gpu_N_… and a rate");
	row.value = gb_s * 1e9;
	row.what = arena_printf(t->a, "STREAM %s, GPU %d, %s", function, row.device, rest);
	if (strcmp(function, "TRIAD") == 0) {
		row.kind = BENCH_GPU_MEMORY;
		row.unused = NULL;
	}
	return bench_add(out, t, &row, err);
}

static int read_stream(struct bench_text *t, struct bench *out, struct err *err)
{
	char *at = t->s;
	const char *line;

	for (int n = 1; (line = bench_line(&at)); n++)
		if (strncmp(line, "STREAM_", 7) == 0 ? read_gpu(t, out, line, n, err) : read_host(t, out, line, n, err))
			return -1;
	return 0;
}

const struct bench_format bench_stream = {
	.name = "stream",
	.help = "STREAM: bandwidth of host memory, or of GPUs' own",
	.sniff = sniff,
	.read = read_stream,
};
