#include "hw/bench.h"

#include "base/datadir.h"
#include "tests/test.h"

struct got {
	struct arena arena;
	struct bench b;
	struct err err;
	int rc;
};

static void read_file(struct got *g, const char *name, const struct bench_format *format)
{
	const char *dir;

	memset(g, 0, sizeof(*g));
	arena_init(&g->arena, NULL, NULL);
	assert_ok(datadir_find(&g->arena, &dir, &g->err), g->err);
	g->rc = bench_read_file(arena_printf(&g->arena, "%s/tests/data/bench/%s", dir, name), NULL, &g->arena, &g->b, &g->err);
	assert_ok(g->rc, g->err);
	ck_assert_ptr_eq(g->b.format, format);
}

static void refused(const char *text, int line, const char *msg)
{
	struct arena a;
	struct bench b;
	struct err err = {0};

	arena_init(&a, NULL, NULL);
	ck_assert_int_eq(bench_read_text(text, strlen(text), "f", NULL, &a, &b, &err), -1);
	assert_err(err, ERR_INPUT, msg);
	ck_assert_int_eq(err.line, line);
	arena_release(&a);
}

/* The n-th row of a kind; there must be so many of it. */
static const struct bench_row *row_of(const struct got *g, enum bench_kind kind, size_t nth, size_t of)
{
	const struct bench_row *found = NULL;
	size_t n = 0;

	for (size_t i = 0; i < g->b.n; i++)
		if (g->b.at[i].kind == kind && n++ == nth)
			found = &g->b.at[i];
	ck_assert_uint_eq(n, of);
	for (size_t i = 0; i < g->b.n; i++)
		ck_assert_int_eq(g->b.at[i].kind == BENCH_OTHER, g->b.at[i].unused != NULL);
	return found;
}

static const struct bench_row *named(const struct got *g, const char *what)
{
	for (size_t i = 0; i < g->b.n; i++)
		if (strcmp(g->b.at[i].what, what) == 0)
			return &g->b.at[i];
	ck_abort_msg("no row '%s'", what);
	return NULL;
}

START_TEST(nvbandwidth)
{
	struct got g;

	read_file(&g, "nvbandwidth.json", &bench_nvbandwidth);
	assert_close(row_of(&g, BENCH_H2D, 2, 4)->value, 56.3944e9, 1e-12);
	ck_assert_int_eq(row_of(&g, BENCH_H2D, 2, 4)->device, 2);
	assert_close(row_of(&g, BENCH_D2H, 0, 4)->value, 57.004e9, 1e-12);
	/* one way while the other runs, from both sides */
	assert_close(row_of(&g, BENCH_TWO_WAY, 0, 8)->value, 2 * 44.3294e9, 1e-12);
	assert_close(row_of(&g, BENCH_GPU_MEMORY, 0, 4)->value, 2 * 760.777e9, 1e-12);
	/* the same keys, but nanoseconds */
	assert_close(named(&g, "host_device_latency_sm, GPU 0")->value, 574.737e-9, 1e-12);
	ck_assert_int_eq(named(&g, "host_device_latency_sm, GPU 0")->dim, UNIT_TIME);
	ck_assert_str_eq(named(&g, "all_to_host_memcpy_ce, GPU 3")->unused, "all GPUs at once");
	arena_release(&g.arena);
}
END_TEST

#define CASES(inside) "{\"nvbandwidth\": {\"testcases\": [\n" inside "]}}"

START_TEST(nvbandwidth_odd)
{
	struct arena a;
	struct bench b;
	struct err err = {0};
	static const char text[] = CASES("{\"name\": \"device_to_device_memcpy_read_ce\", \"status\": \"Passed\", "
					 "\"bandwidth_matrix\": [[\"N/A\", \"276.07\"], [\"276.1\", \"N/A\"]]},\n"
					 "{\"name\": \"host_to_device_memcpy_ce\", \"status\": \"Waived\"}");

	arena_init(&a, NULL, NULL);
	assert_ok(bench_read_text(text, strlen(text), "f", NULL, &a, &b, &err), err);
	ck_assert_uint_eq(b.n, 2);
	assert_close(b.at[0].value, 276.07e9, 1e-12);
	ck_assert_int_eq(b.at[0].line, 2);
	arena_release(&a);
	refused(CASES(""), 0, "holds no measurement of nvbandwidth");
	refused(CASES("{\"name\": \"x\", \"status\": \"Passed\"}"), 2, "x: passed, but has no 'bandwidth_matrix'");
	refused(CASES("{\"name\": \"x\", \"status\": \"Passed\", \"bandwidth_matrix\": [[\"fast\"]]}"), 2,
		"x: a cell of the matrix is no number");
	refused(CASES("{\"name\": \"x\", \"status\": \"Passed\", \"bandwidth_matrix\": [[\"1e300\"]]}"), 2,
		"x, GPU 0 is inf, and no measured value");
	refused(CASES("{\"name\": \"x\", \"status\": \"Passed\", \"bandwidth_matrix\": [[\"-1\"]]}"), 2,
		"x, GPU 0 is -1e+09, and no measured value");
	refused(CASES("{\"status\": \"Passed\"}"), 1, "nvbandwidth: a test without 'name' or 'status'");
}
END_TEST

START_TEST(fio)
{
	struct got g;

	read_file(&g, "fio-jobs.json", &bench_fio);
	assert_close(row_of(&g, BENCH_DRIVE_READ, 0, 1)->value, 6780791000.0, 1e-12);
	ck_assert_str_eq(row_of(&g, BENCH_DRIVE_READ, 0, 1)->what, "seq: reads of 'read', blocks of 1m, 32 at once");
	assert_close(row_of(&g, BENCH_DRIVE_WRITE, 0, 1)->value, 3012000000.0, 1e-12);
	/* lat_ns before clat_ns, whose percentiles are the only ones */
	assert_close(row_of(&g, BENCH_DRIVE_LATENCY, 0, 1)->value, 56612.3e-9, 1e-12);
	ck_assert_str_eq(row_of(&g, BENCH_DRIVE_LATENCY, 0, 1)->what, "lat: mean time of a read (99 % within 81.41 us)");
	ck_assert_int_eq(row_of(&g, BENCH_DRIVE_LATENCY, 0, 1)->line, 11);
	ck_assert_str_eq(named(&g, "lat: reads of 'randread', blocks of 4k, 1 at once")->unused,
		"small blocks: operations a second, not bandwidth");
	arena_release(&g.arena);

	/* Both ways at once say nothing of either. */
	read_file(&g, "fio.json", &bench_fio);
	row_of(&g, BENCH_OTHER, 0, 3);
	assert_close(named(&g, "rand_read_write: reads of 'randrw', blocks of 4096, 256 at once")->value, 348743777, 0);
	arena_release(&g.arena);
}
END_TEST

START_TEST(fio_odd)
{
	refused("\"fio version\"", 1, "there is no { where fio's JSON begins");
	refused("note\n{\"fio version\": \"3\",\n\"jobs\": [{\"jobname\": \"a\", \"read\"", 3, "':' expected near end of file");
	refused("{\"fio version\": \"3\", \"jobs\": []}", 0, "holds no measurement of fio");
	refused("{\"fio version\": \"3\",\n\"jobs\": [{\"jobname\": \"a\", \"error\": 5}]}", 2, "job 'a' ended with error 5");
	refused("{\"fio version\": \"3\", \"jobs\": [{\"jobname\": \"a\", \"read\": {\"io_bytes\": 4096, \"bw_bytes\": 0}}]}", 1,
		"a: reads of 'read', blocks of 4k, 1 at once is 0, and no measured value");
}
END_TEST

START_TEST(stream)
{
	struct got g;

	read_file(&g, "stream.txt", &bench_stream);
	assert_close(row_of(&g, BENCH_DRAM, 0, 1)->value, 363208.7e6, 1e-12);
	ck_assert_int_eq(row_of(&g, BENCH_DRAM, 0, 1)->line, 30);
	ck_assert_uint_eq(g.b.n, 4);
	arena_release(&g.arena);
	read_file(&g, "stream-gpu.txt", &bench_stream);
	assert_close(row_of(&g, BENCH_GPU_MEMORY, 5, 8)->value, 7414.04e9, 1e-12);
	ck_assert_int_eq(row_of(&g, BENCH_GPU_MEMORY, 5, 8)->device, 1);
	arena_release(&g.arena);
	refused("Function    Best Rate MB/s\nTriad:   124799.5  0.1\n", 2, "'Triad:' has no four numbers behind it");
	refused("STREAM_TRIAD_double_gpu_x\n", 1, "not STREAM_FUNCTION_double_gpu_N_… and a rate");
	refused("Best Rate MB/s\r\nTriad: nan 1 1 1\r\n", 2, "STREAM Triad is nan, and no measured value");
}
END_TEST

START_TEST(mlc)
{
	struct got g;

	read_file(&g, "mlc.txt", &bench_mlc);
	assert_close(row_of(&g, BENCH_DRAM, 0, 1)->value, 158844.5e6, 1e-12);
	ck_assert_int_eq(row_of(&g, BENCH_DRAM, 0, 1)->line, 14);
	assert_close(named(&g, "MLC idle latency, node 1 to 0")->value, 141.5e-9, 1e-12);
	assert_close(named(&g, "MLC bandwidth, node 1 to 1")->value, 79678.3e6, 1e-12);
	ck_assert_uint_eq(g.b.n, 5 + 4 + 4);
	arena_release(&g.arena);
	refused("Intel(R) Memory Latency Checker - v3.11b\n", 0, "holds no measurement of mlc");
}
END_TEST

START_TEST(vllm)
{
	struct got g;

	read_file(&g, "vllm.json", &bench_vllm);
	assert_close(named(&g, "median_ttft_ms of meta-llama/Llama-3.1-8B-Instruct")->value, 8.37711, 1e-12);
	assert_close(named(&g, "output_throughput of meta-llama/Llama-3.1-8B-Instruct")->value, 806.96, 1e-12);
	ck_assert_int_eq(named(&g, "request_throughput of meta-llama/Llama-3.1-8B-Instruct")->dim, UNIT_REQUEST_RATE);
	ck_assert_int_eq(named(&g, "mean_itl_ms of meta-llama/Llama-3.1-8B-Instruct")->line, 6);
	arena_release(&g.arena);
	read_file(&g, "vllm-seconds.json", &bench_vllm);
	assert_close(named(&g, "median_tpot of Qwen/Qwen3.5-397B-A17B")->value, 0.7508454867748646, 1e-12);
	arena_release(&g.arena);
}
END_TEST

START_TEST(formats)
{
	const struct bench_format *f;
	struct err err;

	for (size_t i = 0; (f = bench_format_at(i)); i++) {
		const struct bench_format *found;
		assert_ok(bench_format_find(f->name, &found, &err), err);
		ck_assert_ptr_eq(found, f);
	}
	ck_assert_int_eq(bench_format_find("llamabench", &f, &err), -1);
	assert_err(err, ERR_USAGE, "unknown format 'llamabench'; did you mean 'llama-bench'?");
}
END_TEST

TEST_MAIN("bench", nvbandwidth, nvbandwidth_odd, fio, fio_odd, stream, mlc, vllm, formats)
