/*
 * test_engines.c - the order of operations of each engine, as a list, and what follows from it.
 */
#include "tests/run_text.h"

#define MACHINE "machine: desktop-rtx4090-ddr5\n"

/* Three layers; the output counts as a layer: -ngl 2 puts it and layer 2 on the GPU. */
START_TEST(llamacpp_decode_computes_where_weights_are)
{
	static const char want[] = "kernel -1 embed\n"
				   "kernel 0 attn\nkernel 0 attn\nkernel 0 ffn\n"
				   "kernel 1 attn\nkernel 1 attn\nkernel 1 ffn\n"
				   "copy 2 attn\n" /* one hidden vector */
				   "kernel 2 attn\nkernel 2 attn\nkernel 2 ffn\n"
				   "kernel -1 output\n"
				   "step\n";

	check_order(SMALL_MODEL,
		MACHINE "engine: llama.cpp\nworkload: {prompt: 0, generate: 1, depth: 17}\nflags: -ngl 2 -fa\n", want);
}
END_TEST

/* 40 rows are enough: weights of CPU layers cross one after another and are multiplied on the GPU, with the cache of
   these layers; new entries go back. */
START_TEST(llamacpp_prefill_borrows_the_gpu)
{
	static const char want[] = "kernel -1 embed\n"
				   "copy 0 attn\ncopy 0 attn\nkernel 0 attn\n" /* hidden states, weights */
				   "copy 0 attn\nkernel 0 attn\ncopy 0 attn\n" /* cache in, new entries out */
				   "copy 0 ffn\nkernel 0 ffn\n"
				   "copy 1 attn\nkernel 1 attn\n"
				   "copy 1 attn\nkernel 1 attn\ncopy 1 attn\n"
				   "copy 1 ffn\nkernel 1 ffn\n"
				   "kernel 2 attn\nkernel 2 attn\nkernel 2 ffn\n"
				   "kernel -1 output\n"
				   "step\n";

	check_order(SMALL_MODEL, MACHINE "engine: llama.cpp\nworkload: {prompt: 40, generate: 1}\nflags: {ngl: 2}\n", want);
}
END_TEST

START_TEST(llamacpp_few_rows_stay_on_the_cpu)
{
	static const char want[] = "kernel -1 embed\n"
				   "kernel 0 attn\nkernel 0 attn\nkernel 0 ffn\n"
				   "kernel 1 attn\nkernel 1 attn\nkernel 1 ffn\n"
				   "kernel 2 attn\nkernel 2 attn\nkernel 2 ffn\n"
				   "copy -1 output\nkernel -1 output\n"
				   "step\n";

	check_order(SMALL_MODEL, MACHINE "engine: llama.cpp\nworkload: {prompt: 31, generate: 1}\nflags: {ngl: 1}\n", want);
}
END_TEST

START_TEST(llamacpp_nkvo_attends_on_the_cpu)
{
	static const char want[] = "kernel -1 embed\n"
				   "copy 0 attn\nkernel 0 attn\ncopy 0 attn\nkernel 0 attn\ncopy 0 ffn\nkernel 0 ffn\n"
				   "kernel 1 attn\ncopy 1 attn\nkernel 1 attn\ncopy 1 ffn\nkernel 1 ffn\n"
				   "kernel 2 attn\ncopy 2 attn\nkernel 2 attn\ncopy 2 ffn\nkernel 2 ffn\n"
				   "kernel -1 output\n"
				   "step\n";

	check_order(SMALL_MODEL,
		MACHINE "engine: llama.cpp\nworkload: {prompt: 0, generate: 1, depth: 17}\nflags: -ngl 99 -nkvo 1\n", want);
}
END_TEST

START_TEST(llamacpp_override_moves_one_group)
{
	static const char want[] = "kernel -1 embed\n"
				   "copy 0 attn\nkernel 0 attn\nkernel 0 attn\nkernel 0 ffn\n"
				   "kernel 1 attn\nkernel 1 attn\ncopy 1 ffn\nkernel 1 ffn\n"
				   "copy 2 attn\nkernel 2 attn\nkernel 2 attn\nkernel 2 ffn\n"
				   "kernel -1 output\n"
				   "step\n";

	check_order(SMALL_MODEL, MACHINE "engine: llama.cpp\nworkload: {prompt: 0, generate: 1, depth: 17}\n"
					 "flags: '-ngl 99 -ot \"blk\\.1\\.ffn_.*=CPU\"'\n", want);
}
END_TEST

#define TWO_GPUS                                                                                          \
	"machine: {gpu0: rtx-3090, gpu1: rtx-3090, nvlink: nvlink-bridge-ga102, cpu0: ryzen-9-5950x, " \
	"ram: {capacity: 64GiB, bandwidth: 42GB/s}}\n"

/* The GPU that has the layer multiplies its rows (kernel) while inputs go to the other, which multiplies and sends back:
   kernel, copy, kernel, copy for each of q, k, v, o and gate, up, down. Layers 0 and 1 are on gpu0, layer 2 and the output
   on gpu1, so hidden states cross once more. */
START_TEST(llamacpp_rows_are_divided)
{
	static const char matrix[] = "kernel %d %s\ncopy %d %s\nkernel %d %s\ncopy %d %s\n";
	char want[4096] = "kernel -1 embed\n";
	struct sum {
		int layer;
		const char *group;
		int n_matrices;
	} const sums[] = {{0, "attn", 4}, {0, "ffn", 3}, {1, "attn", 4}, {1, "ffn", 3}, {2, "attn", 4}, {2, "ffn", 3},
		{-1, "output", 1}};

	for (size_t i = 0; i < ARRAY_LEN(sums); i++) {
		const struct sum *s = &sums[i];
		char *at = want + strlen(want);
		if (s->layer != 1 && strcmp(s->group, "attn") == 0)
			at += sprintf(at, "copy %d attn\n", s->layer); /* hidden states: from the CPU, from gpu0 */
		at += sprintf(at, "kernel %d %s\n", s->layer, s->group); /* norms */
		for (int k = 0; k < s->n_matrices; k++)
			at += sprintf(at, matrix, s->layer, s->group, s->layer, s->group, s->layer, s->group, s->layer,
				s->group);
		if (strcmp(s->group, "attn") == 0)
			sprintf(at, "kernel %d attn\n", s->layer); /* the cache */
	}
	strcat(want, "step\n");
	check_order(SMALL_MODEL,
		TWO_GPUS "engine: llama.cpp\nworkload: {prompt: 0, generate: 1, depth: 17}\n"
			 "flags: -ngl 99 -fa -sm row -ts 1,1\n",
		want);
}
END_TEST

#define DIVIDED                                                                            \
	"model: llama-2-13b\nquant: q8_0\n" TWO_GPUS "engine: llama.cpp\n"              \
	"workload: {prompt: 0, generate: 8, depth: 500}\nflags: {ngl: 99, sm: row, ts: '3,1'}\n"

START_TEST(rows_are_booked_where_they_are)
{
	struct ran ran;
	struct placement p;
	struct err err = {0};
	uint64_t whole = 0;

	load(&ran, DIVIDED, NULL);
	assert_ok(run_place(ran.scenario, &p, &ran.arena, &err), err);
	for (int i = 0; i < ran.scenario->model->n_tensors; i++)
		whole += ran.scenario->model->tensors[i].bytes;
	const struct ledger_row *row = p.ledger.row;
	int ram = hw_find_memory(ran.scenario->machine, "ram");
	ck_assert_uint_eq(row[0].used_bytes[LEDGER_WEIGHTS] + row[1].used_bytes[LEDGER_WEIGHTS] +
			row[ram].used_bytes[LEDGER_WEIGHTS], whole);
	assert_close((double)row[0].used_bytes[LEDGER_WEIGHTS] / (double)row[1].used_bytes[LEDGER_WEIGHTS], 3, 1e-3);
	/* 30 of 40 layers have their cache on the first: (i + 0.5) / 41 below 3/4. */
	assert_close((double)row[0].used_bytes[LEDGER_KV] / (double)row[1].used_bytes[LEDGER_KV], 31 / 9.0, 1e-9);
	arena_release(&ran.arena);
}
END_TEST

START_TEST(rows_use_both_gpus_at_once)
{
	double row = run(DIVIDED, "flags.ts=1,1", false).value[RESULT_DECODE_TOK_S];
	double layer = run(DIVIDED, "flags.ts=1,1 flags.sm=layer", false).value[RESULT_DECODE_TOK_S];
	double host = run(DIVIDED, "flags.ts=1,1 machine.nvlink=none", false).value[RESULT_DECODE_TOK_S];

	/* Less than twice as fast: 281 gathers a token. */
	ck_assert_msg(row > 1.1 * layer && row < 2 * layer, "%g and %g", row, layer);
	ck_assert_msg(host < row, "%g and %g", host, row);
}
END_TEST

START_TEST(one_gpu_of_several)
{
	struct result first = run(DIVIDED, "flags.sm=none", false);
	struct result second = run(DIVIDED, "flags.sm=none flags.mg=1", false);

	assert_close(second.value[RESULT_DECODE_TOK_S], first.value[RESULT_DECODE_TOK_S], 1e-12);
	ck_assert_uint_eq(second.memory.row[0].used_bytes[LEDGER_WEIGHTS], 0);
	ck_assert_uint_eq(second.memory.row[1].used_bytes[LEDGER_WEIGHTS], first.memory.row[0].used_bytes[LEDGER_WEIGHTS]);
}
END_TEST

/* Layers in RAM are computed on the GPU: one copy a group (its tensors' fixed costs are counted), each waited for. */
START_TEST(accelerate_brings_each_module)
{
	static const char want[] = "copy -1 embed\nkernel -1 embed\n"
				   "copy 0 attn\nkernel 0 attn\nkernel 0 attn\ncopy 0 ffn\nkernel 0 ffn\n"
				   "copy 1 attn\nkernel 1 attn\nkernel 1 attn\ncopy 1 ffn\nkernel 1 ffn\n"
				   "copy 2 attn\nkernel 2 attn\nkernel 2 attn\ncopy 2 ffn\nkernel 2 ffn\n"
				   "copy -1 output\nkernel -1 output\n"
				   "step\n";

	check_order(SMALL_MODEL, MACHINE "engine: accelerate\nworkload: {prompt: 0, generate: 1, depth: 17}\n"
					 "flags: {device_map: cpu_offload}\n", want);
}
END_TEST

static double accelerate_s(const char *sets, double host_op_s)
{
	static const char text[] = "model: llama-2-13b\nquant: f16\nengine: accelerate\nworkload: {prompt: 0, generate: 1, depth: 16}\n"
				   "machine: {gpu0: rtx-4090, gpu1: rtx-4090, cpu0: generic-cpu, ram: {capacity: 64GiB, bandwidth: 60GB/s}}\n";
	struct ran ran;
	struct run_options o = {.exact = true};
	struct err err = {0};
	struct result r;

	load(&ran, text, sets);
	ran.scenario->cost->host_op_s.measured = host_op_s;
	assert_ok(run_scenario(ran.scenario, &o, &ran.arena, &r, NULL, &err), err);
	arena_release(&ran.arena);
	return r.value[RESULT_TPOT_S];
}

/* The thread that submits runs ahead of GPUs that have all they need, with 1 + 40 x 38 + 8 operations and a hook of 0.7 for
   each of 40 x 9 + 3 parameters: it costs time only where it is the slower. Where each copy is waited for it always does. */
START_TEST(accelerate_runs_ahead_of_the_gpus)
{
	static const char away[] = "flags.device_map=cpu_offload", one[] = "machine=server-h100 flags.build=2024-01";
	static const char hooked[] = "machine=server-h100 flags.build=2023-06";
	double ahead = accelerate_s(NULL, 2.385e-6), still = accelerate_s(NULL, 7.1e-6), behind = accelerate_s(NULL, 71e-6);
	double operations = 1 + 40 * 38 + 8 + 0.7 * (40 * 9 + 3);

	assert_close(still, ahead, 1e-2);
	assert_close(behind, operations * 71e-6 + 2e-3, 0.02);
	/* On one device none has a hook; all had, once, when attention was ten operations more. */
	assert_close(accelerate_s(hooked, 71e-6) - accelerate_s(one, 71e-6), (0.7 * (40 * 9 + 3) + 10 * 40) * 71e-6, 0.01);
	ck_assert(accelerate_s(away, 71e-6) > accelerate_s(away, 7.1e-6) + 0.7 * operations * 63.9e-6);
}
END_TEST

/* So many operations for each of 40 x 7 linear layers, and what the GPU takes where it is waited for, of 13 GB at less than
   half of an H100's rate. */
START_TEST(linear_layers_of_bitsandbytes_cost_the_host)
{
	static const char plain[] = "machine=server-h100 flags.build=2024-11";
	static const struct {
		const char *sets;
		double operations, gpu_s;
	} want[] = {
		{"machine=server-h100 flags.build=2024-12 quant=bnb-int8", 12, 10e-3},
		{"machine=server-h100 flags.build=2024-11 quant=bnb-int8", 20, 10e-3},
		{"machine=server-h100 flags.build=2024-11 quant=bnb-nf4", 2.5, 0},
	};
	double without = accelerate_s(plain, 71e-6);

	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		double more = accelerate_s(want[i].sets, 71e-6) - without, host = 280 * want[i].operations * 71e-6;
		ck_assert_msg(more > 0.99 * host && more < 1.01 * host + want[i].gpu_s, "%s: %g of %g", want[i].sets, more, host);
	}
}
END_TEST

static double decode(const char *engine, const char *sets)
{
	char text[512];

	snprintf(text, sizeof(text),
		"model: llama-2-13b\nquant: f16\n" MACHINE "engine: %s\nworkload: {prompt: 60, generate: 30}\n", engine);
	return run(text, sets, false).value[RESULT_DECODE_TOK_S];
}

START_TEST(no_engine_beats_the_ideal_one)
{
	/* The same 20 of 40 layers on the GPU. */
	double ideal = decode("ideal", "flags.gpu-layers=20");

	ck_assert(decode("llama.cpp", "flags.ngl=21 flags.no-mmap=yes") > 0);
	ck_assert(decode("accelerate", "flags.max_memory=\"{0:13GiB}\"") < ideal);
}
END_TEST

START_TEST(hand_written_max_memory_uses_what_auto_leaves)
{
	double by_auto = decode("accelerate", NULL), by_hand = decode("accelerate", "flags.max_memory=\"{0:23GiB}\"");

	ck_assert_msg(by_hand > 1.3 * by_auto, "%g and %g", by_hand, by_auto);
}
END_TEST

START_TEST(pageable_copies_cost)
{
	static const char text[] = "model: llama-2-13b\nquant: f16\n" MACHINE "engine: llama.cpp\n"
				   "workload: {prompt: 512, generate: 1}\nflags: {ngl: 10}\n";
	double pageable = run(text, NULL, false).value[RESULT_TTFT_S];
	double pinned = run(text, "flags.no-mmap=yes", false).value[RESULT_TTFT_S];

	/* 17.5 against 25 GB/s, with some computing in both. */
	ck_assert_msg(pageable > 1.2 * pinned && pageable < 1.43 * pinned, "%g and %g", pageable, pinned);
}
END_TEST

TEST_MAIN("engines", llamacpp_decode_computes_where_weights_are, llamacpp_prefill_borrows_the_gpu,
	llamacpp_few_rows_stay_on_the_cpu, llamacpp_nkvo_attends_on_the_cpu, llamacpp_override_moves_one_group, llamacpp_rows_are_divided, rows_are_booked_where_they_are, rows_use_both_gpus_at_once,
	one_gpu_of_several,
	accelerate_brings_each_module, accelerate_runs_ahead_of_the_gpus, linear_layers_of_bitsandbytes_cost_the_host, no_engine_beats_the_ideal_one, hand_written_max_memory_uses_what_auto_leaves,
	pageable_copies_cost)
