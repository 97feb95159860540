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

	/* 12.9 against 25 GB/s, with some computing in both. */
	ck_assert_msg(pageable > 1.5 * pinned && pageable < 1.95 * pinned, "%g and %g", pageable, pinned);
}
END_TEST

TEST_MAIN("engines", llamacpp_decode_computes_where_weights_are, llamacpp_prefill_borrows_the_gpu,
	llamacpp_few_rows_stay_on_the_cpu, llamacpp_nkvo_attends_on_the_cpu, llamacpp_override_moves_one_group,
	accelerate_brings_each_module, no_engine_beats_the_ideal_one, hand_written_max_memory_uses_what_auto_leaves,
	pageable_copies_cost)
