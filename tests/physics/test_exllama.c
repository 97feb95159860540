/*
 * test_exllama.c - exllama and ds4: their order of operations, and when experts are streamed.
 */
#include "tests/run_text.h"

#define MACHINE "machine: server-a100-80gb\n"
#define EXPERTS "engine: exllama\nflags: -mcl 1\n"

/* The GPU waits for the CPU: what follows in the stream comes behind the result. */
START_TEST(a_few_rows_are_computed_on_the_cpu)
{
	check_order(SMALL_MOE, MACHINE EXPERTS "workload: {prompt: 0, generate: 1, depth: 17}\n",
		"copy -1 embed\n"
		"kernel 0 attn\nkernel 0 attn\nkernel 0 router\ncopy 0 experts\nkernel 0 experts\ncopy 0 experts\n"
		"kernel 1 attn\nkernel 1 attn\nkernel 1 router\nkernel 1 experts\n"
		"kernel -1 output\nstep\n");
}
END_TEST

#define STREAMED "model: qwen3-30b-a3b\nquant: exl3-4bpw\nengine: exllama\nflags: {mcl: 48}\n" \
	"machine: desktop-rtx3090-ddr4\nworkload: {prompt: 2385, generate: 1}\nrouting: uniform\n"

static double bytes(const struct result *r, const char *name)
{
	for (int i = 0; i < r->n_resources; i++)
		if (strcmp(r->resource[i].name, name) == 0)
			return r->resource[i].bytes;
	ck_abort_msg("no resource %s", name);
}

/* 128 experts, 8 a token: with 2048 rows each has 128, with 64 rows 4, of which almost none has 16. Staging reads and
   writes RAM, the copy reads it again. */
START_TEST(experts_with_many_rows_are_streamed)
{
	struct result all = run(STREAMED, "workload.prompt=2048", true), few = run(STREAMED, "workload.prompt=64", true);
	struct result one = run(STREAMED, "workload.prompt=2048 flags.mcl=24", true);
	double experts = 48.0 * 128 * 3 * 2048 * 768 * 4.0 / 8;

	ck_assert_msg(bytes(&all, "gpu0.link.h2d") > experts && bytes(&all, "gpu0.link.h2d") < 1.02 * experts, "%g of %g",
		bytes(&all, "gpu0.link.h2d"), experts);
	ck_assert_msg(bytes(&few, "gpu0.link.h2d") < 0.01 * experts, "%g", bytes(&few, "gpu0.link.h2d"));
	assert_close(bytes(&all, "gpu0.link.h2d") - bytes(&one, "gpu0.link.h2d"), experts / 2, 0.02);
	ck_assert(bytes(&all, "ram") > 2.99 * experts);
}
END_TEST

/* Rows that an expert needs grow as the link gets narrower: 16 at 25 GB/s. With 512 rows each has 32. */
START_TEST(a_narrow_link_streams_less)
{
	struct result wide = run(STREAMED, "workload.prompt=512", true);
	struct result narrow = run(STREAMED, "workload.prompt=512 machine.gpu0.link.width=4", true);

	ck_assert_msg(bytes(&narrow, "gpu0.link.h2d") < 0.1 * bytes(&wide, "gpu0.link.h2d"), "%g and %g",
		bytes(&narrow, "gpu0.link.h2d"), bytes(&wide, "gpu0.link.h2d"));
}
END_TEST

START_TEST(ds4_runs_one_family)
{
	static const char text[] = "engine: ds4\nquant: iq2_xxs+q8_0\nmachine: dgx-spark\nworkload: {prompt: 0, generate: 2, depth: 2048}\n";
	char whole[512];
	struct result r;

	snprintf(whole, sizeof(whole), "model: deepseek-v4-flash\n%s", text);
	r = run(whole, NULL, true);
	ck_assert(r.value[RESULT_DECODE_TOK_S] > 5 && r.value[RESULT_DECODE_TOK_S] < r.value[RESULT_UPPER_BOUND_TOK_S]);

	struct ran ran;
	struct placement p;
	struct err err = {0};
	snprintf(whole, sizeof(whole), "model: qwen3-30b-a3b\n%s", text);
	load(&ran, whole, NULL);
	ck_assert_int_eq(run_place(ran.scenario, &p, &ran.arena, &err), -1);
	ck_assert_str_eq(err.msg, "ds4 runs DeepSeek V4, not 'qwen3-30b-a3b'");
	arena_release(&ran.arena);
}
END_TEST

TEST_MAIN("exllama", a_few_rows_are_computed_on_the_cpu, experts_with_many_rows_are_streamed, a_narrow_link_streams_less,
	ds4_runs_one_family)
