/*
 * test_opg.c - operation graphs: written, read and simulated they end when the scenario's own simulation ends; what is
 * malformed is refused by line.
 */
#include "sim/run/graph.h"

#include "base/file.h"

#include "tests/run_text.h"

#define STEPS 4

/* ---- the same finish times ---- */

struct finishes {
	VEC(sim_time);
	struct arena *arena;
};

static void on_span(void *ctx, const struct op *op, sim_time now)
{
	struct finishes *f = ctx;

	/* Operations are numbered as they are created. */
	while (f->n <= op->sequence)
		VEC_PUSH(f, f->arena, 0);
	f->at[op->sequence] = now;
}

/* The scenario's own simulation of the same steps. */
static void simulate_scenario(const struct scenario *s, struct arena *a, struct finishes *f)
{
	struct placement p;
	struct trace t;
	struct exec x;
	struct err err = {0};

	run_make_trace(&t, s, a);
	struct run_stretch stretch = run_stretch(&t, STEPS);
	struct engine_job job = {s->model, s->machine, s->cost, &t, s->flags, s->seed};
	assert_ok(s->engine->place(&job, &p, a, &err), err);
	exec_init(&x, &p, &t, s->engine->lower, s->engine->state_new(&job, &p, a), s->engine->overheads, NULL, a);
	*f = (struct finishes){.arena = a};
	exec_spans(&x, on_span, f);
	assert_ok(exec_run(&x, stretch.begin, stretch.end - stretch.begin, ignore_step, NULL, &err), err);
	exec_release(&x);
}

static char *text_of(const char *path, struct arena *a)
{
	struct err err = {0};
	char *text;
	size_t len;

	assert_ok(file_read(path, 1 << 26, a, &text, &len, &err), err);
	return text;
}

static void check_same(const char *scenario)
{
	struct ran ran;
	struct finishes want;
	struct opg *g, *back, *again;
	struct opg_times times;
	struct err err = {0};
	char path[64], path2[64];

	load(&ran, scenario, NULL);
	simulate_scenario(ran.scenario, &ran.arena, &want);
	assert_ok(graph_record(ran.scenario, STEPS, NULL, &ran.arena, &g, &err), err);
	test_file(path, "", 0);
	test_file(path2, "", 0);
	assert_ok(opg_write(g, path, &err), err);
	assert_ok(opg_read(path, &ran.arena, &back, &err), err);
	assert_ok(opg_write(back, path2, &err), err);
	assert_ok(opg_read(path2, &ran.arena, &again, &err), err);
	ck_assert_str_eq(text_of(path, &ran.arena), text_of(path2, &ran.arena));
	unlink(path);
	unlink(path2);

	assert_ok(opg_simulate(again, NULL, &ran.arena, &times, &err), err);
	ck_assert_uint_eq(again->ops.n, want.n);
	ck_assert_uint_gt(want.n, 5 * STEPS);
	for (size_t i = 0; i < want.n; i++)
		ck_assert_msg(times.end[i] == want.at[i], "operation %zu ends at %lld, not at %lld", i, (long long)times.end[i],
			(long long)want.at[i]);
	arena_release(&ran.arena);
}

#define WORK "workload: {prompt: 0, generate: 40, depth: 117}\n"

START_TEST(streamed_is_the_same)
{
	check_same("model: llama-2-13b\nquant: f16\nmachine: desktop-rtx4090-ddr5\nengine: ideal\nflags: {gpu-layers: 20}\n" WORK);
	check_same("model: llama-2-13b\nquant: f16\nmachine: desktop-rtx4090-ddr5\nengine: ideal\n"
		   "flags: {gpu-layers: 20, kv: ram, buffers: 5}\n"
		   "workload: {batch: 7, prompt: 0, generate: 40, depth: 117}\n");
}
END_TEST

START_TEST(llamacpp_is_the_same)
{
	check_same("model: llama-2-13b\nquant: q4_0\nmachine: desktop-rtx4090-ddr5\nengine: llama.cpp\nflags: -ngl 20 -t 3\n" WORK);
	check_same("model: llama-2-13b\nquant: q4_k_m\nmachine: desktop-rtx4090-ddr5\nengine: llama.cpp\nflags: -ngl 20 -ub 40\n"
		   "workload: {prompt: 317, generate: 1}\n");
}
END_TEST

START_TEST(rows_are_the_same)
{
	check_same("model: llama-2-13b\nquant: q8_0\nengine: llama.cpp\nflags: -ngl 99 -sm row\n" WORK
		   "machine: {from: desktop-rtx4090-ddr5, set: {gpu1: rtx-4090}}\n");
}
END_TEST

START_TEST(accelerate_is_the_same)
{
	check_same("model: llama-2-13b\nquant: f16\nmachine: desktop-rtx4090-ddr5\nengine: accelerate\n" WORK);
}
END_TEST

START_TEST(experts_are_the_same)
{
	check_same("model: qwen3-30b-a3b\nquant: q4_k_m\nmachine: desktop-rtx4090-ddr5\nengine: llama.cpp\nflags: -ngl 99 --cpu-moe\n" WORK);
	check_same("model: qwen3-30b-a3b\nquant: q8_0\nmachine: desktop-rtx4090-ddr5\nengine: expert-cache\n" WORK);
}
END_TEST

START_TEST(others_are_the_same)
{
	static const char *const engines[] = {"vllm", "sglang", "hf-transformers", "airllm"};
	char text[256];

	for (size_t i = 0; i < ARRAY_LEN(engines); i++) {
		snprintf(text, sizeof(text), "model: llama-2-7b\nquant: f16\nmachine: desktop-rtx4090-ddr5\nengine: %s\n" WORK,
			engines[i]);
		check_same(text);
	}
}
END_TEST

START_TEST(drive_is_the_same)
{
	check_same("model: llama-2-13b\nquant: f16\nengine: ideal\nworkload: {prompt: 0, generate: 9}\n"
		   "machine: {from: cpu-epyc9654, set: {ram.capacity: 16GiB}}\n");
}
END_TEST

/* ---- what a graph says of bytes ---- */

/* What is copied to where nothing lives is read there; staging buffers do not grow with the number of layers. */
START_TEST(staging_is_as_the_engine_has_it)
{
	struct ran ran;
	struct opg *g;
	struct err err = {0};
	uint64_t staged = 0, layer = 0;

	load(&ran,
		"model: llama-2-13b\nquant: f16\nmachine: desktop-rtx4090-ddr5\nengine: ideal\nflags: {gpu-layers: 20, buffers: 2}\n" WORK,
		NULL);
	assert_ok(graph_record(ran.scenario, STEPS, NULL, &ran.arena, &g, &err), err);
	for (size_t i = 0; i < g->buffers.n; i++) {
		const struct opg_buffer *b = &g->buffers.at[i];
		if (b->role == OPG_STAGING)
			staged += b->bytes;
		if (b->layer == 0 && b->role == OPG_WEIGHTS)
			layer += b->bytes;
	}
	ck_assert_uint_gt(staged, 0);
	ck_assert_msg(staged <= 2 * layer + 4096 * 100, "%zu bytes of staging for layers of %zu", (size_t)staged, (size_t)layer);
	for (size_t i = 0; i < g->ops.n; i++) {
		const struct opg_op *o = &g->ops.at[i];
		if (o->kind != OPG_KERNEL || o->bytes <= 0)
			continue;
		ck_assert_int_ne(o->from, OPG_NONE);
		ck_assert_int_eq(g->buffers.at[o->from].memory, g->devices.at[o->device].memory);
		if (g->buffers.at[o->from].role == OPG_STAGING)
			ck_assert_uint_ge(g->buffers.at[o->from].bytes, (uint64_t)o->bytes);
	}
	arena_release(&ran.arena);
}
END_TEST

/* ---- malformed files ---- */

#define HEAD "opg 1\nsteps count=1 first=0 end=1 ahead=2 phase=decode\n"
#define MACHINE                                                                                      \
	"resource 0 name=ram rate=5e9\nmemory 0 name=ram kind=ram\ndevice 0 name=cpu0 kind=cpu memory=0\n" \
	"unit 0 name=cpu0\nbuffer 0 memory=0 bytes=4096 role=weights\n"
#define GOOD_OP "kernel 0 unit=0 device=0 from=0 bytes=4096 path=0:1\n"

static int read_text(const char *text, size_t len, struct arena *a, struct opg **g, char *path, struct err *err)
{
	test_file(path, text, len);
	int rc = opg_read(path, a, g, err);
	unlink(path);
	return rc;
}

START_TEST(the_least_is_read)
{
	static const char text[] = HEAD "# a comment\n\n" MACHINE GOOD_OP "  wait   1  after=0  latency=2385\nstep 2 after=1 tokens=1\nend 3\n";
	struct arena a;
	struct opg *g;
	struct opg_times t;
	struct err err = {0};
	char path[64];

	arena_init(&a, NULL, NULL);
	assert_ok(read_text(text, strlen(text), &a, &g, path, &err), err);
	assert_ok(opg_simulate(g, NULL, &a, &t, &err), err);
	ck_assert_int_eq(t.end[2], 819200 + 2385);
	ck_assert_int_eq(t.start[1], 819200);
	arena_release(&a);
}
END_TEST

START_TEST(malformed_is_refused_by_line)
{
	static const struct {
		const char *text;
		int line;
		const char *msg;
	} bad[] = {
		{"", 0, "the file ends before the line 'end'"},
		{"opq 1\n", 1, "this is no operation graph: it does not begin with 'opg 1'"},
		{"opg 2\n", 1, "version '2' of operation graphs; this program reads version 1"},
		{HEAD "end 0\n", 3, "the file should hold 1 steps and holds 0"},
		{HEAD MACHINE GOOD_OP, 8, "the file ends before the line 'end'"},
		{HEAD MACHINE GOOD_OP "step 1 tokens=1\nend 7\n", 10, "the file should hold 7 operations and holds 2"},
		{HEAD MACHINE GOOD_OP "step 1 tokens=1\nend 2\njoin 2\n", 11, "a line behind the end"},
		{HEAD MACHINE GOOD_OP "step 1 tokens=1\njoin 2\nend 3\n", 10, "an operation behind the last step"},
		{HEAD MACHINE "kernel 1 unit=0 device=0\n", 8, "kernel 1 stands where kernel 0 must be"},
		{HEAD MACHINE "kernel 0 unit=0 device=0 btyes=3\n", 8, "a kernel has no key 'btyes'; did you mean 'bytes'?"},
		{HEAD MACHINE "kernal 0 unit=0 device=0\n", 8, "unknown line 'kernal'; did you mean 'kernel'?"},
		{HEAD MACHINE "kernel 0 unit=0\n", 8, "a kernel needs the key 'device'"},
		{HEAD MACHINE "kernel 0 unit=0 unit=0\n", 8, "key 'unit' twice"},
		{HEAD MACHINE "kernel 0 unit=9\n", 8, "unit: there is no unit 9 above"},
		{HEAD MACHINE "kernel 0 unit\n", 8, "'unit' is not KEY=VALUE"},
		{HEAD MACHINE "kernel 0 unit=\n", 8, "unit has no value"},
		{HEAD MACHINE "kernel 0 device=0 from=0 bytes=1 path=0:1\n", 8, "a kernel needs the unit of its device"},
		{HEAD MACHINE "kernel 0 unit=0 device=0 from=0 bytes=1\n", 8, "what moves needs a path or a cap"},
		{HEAD MACHINE "kernel 0 unit=0 device=0 path=0:1,0:2\n", 8,
			"path: resource 0 is crossed twice: add up the weights"},
		{HEAD MACHINE "kernel 0 unit=0 device=0 path=0\n", 8, "path: a resource without ':WEIGHT'"},
		{HEAD MACHINE "kernel 0 unit=0 device=0 path=0:0\n", 8, "path: a weight must be above 0"},
		{HEAD MACHINE "kernel 0 unit=0 device=0 from=0 at=4096\n", 8, "at=4096 lies behind the end of buffer 0"},
		{HEAD MACHINE "join 0 after=0\n", 8, "after: there is no operation 0 above"},
		{HEAD MACHINE "join 0 after=99999999999999\n", 8,
			"after must be a whole number from 0 to 4294967295, not '99999999999999'"},
		{HEAD MACHINE "join 99999999999999999999999\n", 8,
			"join must be a whole number from 0 to 4294967295, not '99999999999999999999999'"},
		{HEAD MACHINE "wait 0 latency=-1\n", 8,
			"latency must be a whole number from 0 to 2305843009213693951, not '-1'"},
		{HEAD MACHINE "wait 0 latency=1e3\n", 8,
			"latency must be a whole number from 0 to 2305843009213693951, not '1e3'"},
		{HEAD MACHINE "kernel 0 unit=0 device=0 bytes=nan\n", 8,
			"bytes must be 0 or a number from 1e-24 to 1e+24, not 'nan'"},
		{HEAD MACHINE "kernel 0 unit=0 device=0 bytes=1e300\n", 8,
			"bytes must be 0 or a number from 1e-24 to 1e+24, not '1e300'"},
		{HEAD "resource 0 name=ram rate=0\n", 3, "a rate must be above 0"},
		{HEAD "memory 0 name=ram kind=rom\n", 3, "kind: unknown word 'rom'; did you mean 'ram'?"},
		{HEAD MACHINE "buffer 1 memory=0 bytes=0 role=weights\n", 8, "a buffer of no bytes"},
		{HEAD MACHINE "buffer 1 memory=0 bytes=9000000000000000000 role=weights\n", 8,
			"bytes must be a whole number from 0 to 1125899906842624, not '9000000000000000000'"},
		{"opg 1\njoin 0\n", 2, "an operation above the line 'steps'"},
		{HEAD "steps count=1 first=0 end=1 ahead=2 phase=decode\n", 3, "'steps' twice"},
		{"opg 1\nsteps count=3 first=2 end=2 ahead=2 phase=decode\n", 2,
			"of 3 steps, 2 to 2 cannot be those that count"},
		{"opg 1\nsteps count=3 first=0 end=2 ahead=0 phase=decode\n", 2, "ahead must be 1 or more"},
		{"opg 1\nsteps count=1000000000000 first=0 end=2 ahead=2 phase=decode\nend 0\n", 3,
			"the file should hold 1000000000000 steps and holds 0"},
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct arena a;
		struct opg *g;
		struct err err = {0};
		char path[64];

		arena_init(&a, NULL, NULL);
		if (read_text(bad[i].text, strlen(bad[i].text), &a, &g, path, &err) == 0)
			ck_abort_msg("taken: %s", bad[i].text);
		assert_err(err, ERR_INPUT, bad[i].msg);
		ck_assert_str_eq(err.file, path);
		ck_assert_msg(err.line == bad[i].line, "line %d, not %d: %s", err.line, bad[i].line, err.msg);
		arena_release(&a);
	}
}
END_TEST

/* Cut anywhere, a graph is refused: no prefix passes for the whole. */
START_TEST(cut_anywhere_is_refused)
{
	static const char text[] = HEAD MACHINE GOOD_OP "wait 1 after=0 latency=2385\nstep 2 after=1 tokens=1\nend 3\n";

	for (size_t len = 0; len + 1 < strlen(text); len++) {
		struct arena a;
		struct opg *g;
		struct err err = {0};
		char path[64];

		arena_init(&a, NULL, NULL);
		ck_assert_int_eq(read_text(text, len, &a, &g, path, &err), -1);
		ck_assert_int_eq((int)err.code, (int)ERR_INPUT);
		arena_release(&a);
	}
}
END_TEST

START_TEST(a_missing_file)
{
	struct arena a;
	struct opg *g;
	struct err err = {0};

	arena_init(&a, NULL, NULL);
	ck_assert_int_eq(opg_read("/nowhere/x.opg", &a, &g, &err), -1);
	assert_err(err, ERR_INPUT, "cannot open '/nowhere/x.opg': No such file or directory");
	arena_release(&a);
}
END_TEST

TEST_MAIN("opg", streamed_is_the_same, llamacpp_is_the_same, rows_are_the_same, accelerate_is_the_same, experts_are_the_same,
	others_are_the_same, drive_is_the_same, staging_is_as_the_engine_has_it, the_least_is_read, malformed_is_refused_by_line,
	cut_anywhere_is_refused, a_missing_file)
