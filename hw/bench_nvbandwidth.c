/*
 * bench_nvbandwidth.c - NVIDIA's nvbandwidth, as JSON (-j).
 *
 *	{"nvbandwidth": {"testcases": [{"name": "host_to_device_memcpy_ce", "status": "Passed",
 *	                                "bandwidth_matrix": [["56.38", "56.37"]]}, …]}}
 *
 * Cells are strings, "N/A" where there is nothing to measure; a test that could not run is "Waived" and has no matrix.
 * The keys say bandwidth where a test measures latency. Columns are GPUs, in GB/s of 1e9 bytes.
 */
#include <string.h>

#include "base/json.h"
#include "hw/bench.h"

/* What the tests measure. Of two-way tests a cell is one direction while the other runs; a copy within a GPU counts a
   byte once that is read and written (761 GB/s on a card with a peak of 1792). */
static const struct test {
	const char *name;
	enum bench_kind kind;
	double times;
	const char *unused;
} tests[] = {
	{"host_to_device_memcpy_ce", BENCH_H2D, 1, NULL},
	{"device_to_host_memcpy_ce", BENCH_D2H, 1, NULL},
	{"host_to_device_bidirectional_memcpy_ce", BENCH_TWO_WAY, 2, NULL},
	{"device_to_host_bidirectional_memcpy_ce", BENCH_TWO_WAY, 2, NULL},
	{"device_local_copy", BENCH_GPU_MEMORY, 2, NULL},
	{"all_to_host_memcpy_ce", BENCH_OTHER, 1, "all GPUs at once"},
	{"host_to_all_memcpy_ce", BENCH_OTHER, 1, "all GPUs at once"},
	{"all_to_host_bidirectional_memcpy_ce", BENCH_OTHER, 1, "all GPUs at once"},
	{"host_to_all_bidirectional_memcpy_ce", BENCH_OTHER, 1, "all GPUs at once"},
};

static bool sniff(const struct bench_text *t)
{
	return bench_has(t, "\"nvbandwidth\"") && bench_has(t, "\"testcases\"");
}

static int fault(const struct bench_text *t, int line, struct err *err, const char *name, const char *what)
{
	struct err_pos pos = {t->file, line, 0};

	return err_at(err, ERR_INPUT, &pos, "%s: %s", name, what);
}

static const struct test *find_test(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(tests); i++)
		if (strcmp(tests[i].name, name) == 0)
			return &tests[i];
	return NULL;
}

static int read_cell(struct bench_text *t, struct bench *out, const json_t *cell, const char *name, size_t column,
	struct bench_row row, struct err *err)
{
	double value;

	if (json_is_string(cell) && strcmp(json_string_value(cell), "N/A") == 0)
		return 0;
	if (!bench_json_number(cell, &value))
		return fault(t, row.line, err, name, "a cell of the matrix is no number");
	row.value *= value;
	row.device = (int)column;
	row.what = arena_printf(t->a, "%s, GPU %zu", name, column);
	return bench_add(out, t, &row, err);
}

/* One row, host against GPUs; more rows are GPU against GPU. */
static int read_matrix(struct bench_text *t, struct bench *out, const json_t *matrix, const char *name, int line,
	struct err *err)
{
	const struct test *test = find_test(name);
	bool latency = strstr(name, "latency") != NULL;
	struct bench_row row = {.kind = BENCH_OTHER, .line = line, .dim = latency ? UNIT_TIME : UNIT_BYTES_RATE,
		.value = latency ? 1e-9 : 1e9, .unused = latency ? "one load at a time, not a copy" : "not host to GPU"};
	size_t i, column;
	json_t *cells, *cell;

	if (test) {
		row.kind = test->kind;
		row.value *= test->times;
		row.unused = test->unused;
	} else if (!latency && strstr(name, "_sm")) {
		row.unused = "copied by kernels, not by copy engines";
	}
	json_array_foreach(matrix, i, cells)
	{
		if (!json_is_array(cells))
			return fault(t, line, err, name, "a row of the matrix is no list");
		json_array_foreach(cells, column, cell)
		{
			if (read_cell(t, out, cell, name, column, row, err))
				return -1;
		}
	}
	return 0;
}

static int read_tests(struct bench_text *t, struct bench *out, const json_t *root, struct err *err)
{
	const json_t *cases = json_object_get(json_object_get(root, "nvbandwidth"), "testcases");
	size_t i;
	json_t *one;

	if (!json_is_array(cases))
		return fault(t, 1, err, "nvbandwidth", "no list 'testcases'");
	json_array_foreach(cases, i, one)
	{
		const char *name = json_string_value(json_object_get(one, "name"));
		const char *status = json_string_value(json_object_get(one, "status"));
		const json_t *matrix = json_object_get(one, "bandwidth_matrix");
		if (!name || !status)
			return fault(t, 1, err, "nvbandwidth", "a test without 'name' or 'status'");
		if (strcmp(status, "Passed") != 0)
			continue;
		int line = bench_line_of(t, NULL, arena_printf(t->a, "\"%s\"", name));
		if (!json_is_array(matrix))
			return fault(t, line, err, name, "passed, but has no 'bandwidth_matrix'");
		if (read_matrix(t, out, matrix, name, line, err))
			return -1;
	}
	return 0;
}

static int read_nvbandwidth(struct bench_text *t, struct bench *out, struct err *err)
{
	json_t *root;

	if (json_read_text(t->s, t->len, t->file, &root, err))
		return -1;
	int rc = read_tests(t, out, root, err);
	json_decref(root);
	return rc;
}

const struct bench_format bench_nvbandwidth = {
	.name = "nvbandwidth",
	.help = "nvbandwidth -j: copies between host and GPUs",
	.sniff = sniff,
	.read = read_nvbandwidth,
};
