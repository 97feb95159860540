#include "sim/run/cuda_exec.h"

#include <stdlib.h>

#include "tests/test.h"

static const char graph_text[] = "opg 1\nsteps count=1 first=0 end=1 ahead=1 phase=decode\nwait 0 latency=2385\nstep 1 after=0 tokens=1\nend 2\n";

/* As if offsim-cuda had written it for a graph of two operations. */
static int read_times(const char *text, struct arena *a, struct cpu_exec_result *run, struct err *err)
{
	char graph[32], times[32];
	struct opg *g;

	test_file(graph, graph_text, strlen(graph_text));
	assert_ok(opg_read(graph, a, &g, err), *err);
	test_file(times, text, strlen(text));
	int rc = cuda_exec_read(times, g, 1, a, run, err);
	unlink(graph);
	unlink(times);
	return rc;
}

#define TIMES(start, end, moved, order)                                                                                   \
	"{\"format\": \"offsim-cuda times 1\", \"runs\": [{\"start_s\": " start ", \"end_s\": " end ", \"moved_bytes\": " moved \
	", \"order\": " order "}]}"

START_TEST(times_are_taken)
{
	struct arena a;
	struct cpu_exec_result run;
	struct err err = {0};

	arena_init(&a, NULL, NULL);
	assert_ok(read_times(TIMES("[0, 2.385]", "[1.5, 2.385]", "[7, 0]", "[1, 0]"), &a, &run, &err), err);
	assert_close(run.start_s[1], 2.385, 0);
	assert_close(run.end_s[0], 1.5, 0);
	ck_assert_uint_eq(run.moved_bytes[0], 7);
	ck_assert_uint_eq(run.order[0], 1);
	arena_release(&a);
}
END_TEST

START_TEST(what_is_malformed_is_named)
{
	static const struct {
		const char *text, *msg;
	} rows[] = {
		{"{}", "not what offsim-cuda of this version writes ('format' is '')"},
		{"{\"format\": \"offsim-cuda times 1\"}", "'runs' must be a list of 1"},
		{TIMES("[0]", "[1, 2]", "[0, 0]", "[0, 1]"), "'start_s' must be a list of 2 numbers, one for each operation"},
		{TIMES("[0, 1]", "[1, -2]", "[0, 0]", "[0, 1]"), "'end_s' of operation 1 is not a number from 0 to 1e+09"},
		{TIMES("[0, 1]", "[1, null]", "[0, 0]", "[0, 1]"), "'end_s' of operation 1 is not a number from 0 to 1e+09"},
		{TIMES("[0, 1]", "[1, 2]", "[0, 0]", "[0, 2]"), "'order' of operation 1 is not a number from 0 to 1"},
		{TIMES("[0, 1]", "[1, 2]", "[0, 0]", "[1, 1]"), "'order' is not one of all operations"},
		{TIMES("[0, 1]", "[1, 2]", "[0, 0]", "[0.5, 1]"), "'order' is not one of all operations"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena a;
		struct cpu_exec_result run;
		struct err err = {0};
		arena_init(&a, NULL, NULL);
		ck_assert_int_eq(read_times(rows[i].text, &a, &run, &err), -1);
		ck_assert_int_eq((int)err.code, (int)ERR_INPUT);
		/* Behind the file's name. */
		ck_assert_msg(strstr(err.msg, rows[i].msg) != NULL, "'%s'", err.msg);
		arena_release(&a);
	}
}
END_TEST

TEST_MAIN("cuda_exec", times_are_taken, what_is_malformed_is_named)
