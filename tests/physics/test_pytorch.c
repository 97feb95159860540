/*
 * test_pytorch.c - engines that run eager PyTorch: hf-transformers, sequoia, fiddler, airllm. Their order of operations, and
 * who waits for the host.
 */
#include "tests/run_text.h"

#define MACHINE "machine: server-a100-80gb\n"
#define DECODE "workload: {prompt: 0, generate: 1, depth: 17}\n"
#define LAYER(i) "kernel " i " attn\nkernel " i " attn\nkernel " i " ffn\n"

START_TEST(transformers_has_everything_on_the_gpu)
{
	check_order(SMALL_MODEL, MACHINE "engine: hf-transformers\n" DECODE,
		"kernel -1 embed\n" LAYER("0") LAYER("1") LAYER("2") "kernel -1 output\nstep\n");
}
END_TEST

/* A small model waits for the host: 1 + 3 x (22 + 4 + 12) + 8 operations, the last of which still has to run. */
START_TEST(small_models_wait_for_the_host)
{
	char path[64], renamed[80], text[512];
	struct ran ran;
	struct run_options o = {.exact = true};
	struct err err = {0};
	struct result r;

	test_file(path, SMALL_MODEL, strlen(SMALL_MODEL));
	snprintf(renamed, sizeof(renamed), "%s.json", path);
	ck_assert_int_eq(rename(path, renamed), 0);
	snprintf(text, sizeof(text), "model: %s\nquant: f16\n" MACHINE "engine: hf-transformers\n" DECODE, renamed);
	load(&ran, text, NULL);
	ran.scenario->cost->host_op_s.measured = 238.5e-6;
	assert_ok(run_scenario(ran.scenario, &o, &ran.arena, &r, NULL, &err), err);
	assert_close(r.value[RESULT_TPOT_S] - hw_num_value(&ran.scenario->cost->step_s), 123 * 238.5e-6, 5e-3);
	unlink(renamed);
	arena_release(&ran.arena);
}
END_TEST

static double gpu_bytes(const struct result *r)
{
	for (int i = 0; i < r->n_resources; i++)
		if (strcmp(r->resource[i].name, "gpu0") == 0)
			return r->resource[i].bytes;
	return 0;
}

#define DYNAMIC "model: llama-2-7b\nquant: f16\n" MACHINE "engine: hf-transformers\nworkload: {prompt: 0, generate: 2, depth: 30000}\n"

/* Bytes of the cache are moved three times instead of once. */
START_TEST(a_dynamic_cache_is_copied)
{
	struct result grows = run(DYNAMIC, NULL, true), fixed = run(DYNAMIC, "flags.cache_implementation=static", true);

	assert_close(gpu_bytes(&grows) - gpu_bytes(&fixed), 2 * 32 * 2 * 4096 * 2.0 * (30001 + 30002), 1e-9);
}
END_TEST

/* More rows than one are multiplied with weights that were written out in 16 bits before, and so was one until 2023-07. */
START_TEST(four_bits_are_expanded_for_more_than_one_row)
{
	static const char text[] = "model: llama-2-7b\nquant: bnb-nf4\n" MACHINE "engine: hf-transformers\n"
				   "workload: {prompt: 0, generate: 1, depth: 1}\n";
	struct result one = run(text, NULL, true), early = run(text, "flags.build=2023-06", true);
	struct result two = run(text, "workload.batch=2", true);
	double linear = 32 * (4 * 4096.0 * 4096 + 3 * 4096.0 * 11008);

	assert_close(gpu_bytes(&two) - gpu_bytes(&one), 4 * linear, 1e-3);
	assert_close(gpu_bytes(&early) - gpu_bytes(&one), 4 * linear, 1e-3);
}
END_TEST

/* Before transformers 4.36 each score took 24 bytes of memory, of whole squares. */
START_TEST(scores_went_through_memory)
{
	static const char text[] = "model: llama-2-7b\nquant: f16\n" MACHINE "engine: hf-transformers\n"
				   "workload: {prompt: 512, generate: 1, batch: 2}\n";
	struct result now = run(text, NULL, true), then = run(text, "flags.build=2023-11", true);

	assert_close(gpu_bytes(&then) - gpu_bytes(&now), 24.0 * 32 * 32 * 2 * 512 * 512, 1e-6);
}
END_TEST

START_TEST(sequoia_copies_a_layer_before_it_runs)
{
	check_order(SMALL_MODEL, MACHINE "engine: sequoia\nflags: {resident-layers: 1}\n" DECODE,
		"kernel -1 embed\n" LAYER("0") "copy 1 attn\n" LAYER("1") "copy 2 attn\n" LAYER("2") "kernel -1 output\nstep\n");
}
END_TEST

START_TEST(sequoia_keeps_what_fits)
{
	struct ran ran;
	struct placement p;
	struct err err = {0};
	uint32_t resident = 0;

	load(&ran, "model: llama-2-70b\nquant: f16\n" MACHINE "engine: sequoia\nworkload: {prompt: 100, generate: 20}\n", NULL);
	assert_ok(run_place(ran.scenario, &p, &ran.arena, &err), err);
	ck_assert(ledger_fits(&p.ledger));
	for (uint32_t i = 0; i < 80; i++)
		resident += p.tensor[p.model->layers[i].first_tensor].mode == PLACE_RESIDENT;
	/* 78.8 GiB less two buffers of 1.6 GiB, embedding and output, over 1.6 GiB a layer. */
	ck_assert_msg(resident >= 44 && resident <= 47, "%u", resident);
	ck_assert(ledger_free(&p.ledger, hw_find_memory(ran.scenario->machine, "gpu0")) < place_layer_bytes(p.model, 0));
	arena_release(&ran.arena);
}
END_TEST

/* Each file: read, copied, run. The next is read while a layer runs, unless it is compressed. */
START_TEST(airllm_reads_the_next_file_meanwhile)
{
	static const char text[] = "machine: {from: server-a100-80gb, set: {gpu0.link.h2d_pageable: 2.1GB/s}}\n"
				   "engine: airllm\n" DECODE "flags: {compression: %s}\n";
	char with[256], without[256];

	snprintf(with, sizeof(with), text, "none");
	snprintf(without, sizeof(without), text, "4bit");
	check_order(SMALL_MODEL, without,
		"copy -1 embed\ncopy -1 embed\nkernel -1 embed\n"
		"copy 0 attn\ncopy 0 attn\n" LAYER("0") "copy 1 attn\ncopy 1 attn\n" LAYER("1") "copy 2 attn\ncopy 2 attn\n" LAYER("2")
		"copy -1 output\ncopy -1 output\nkernel -1 output\nstep\n");
	/* Each file is read while the one before it, slower over this link, is still on its way to the GPU. */
	check_order(SMALL_MODEL, with,
		"copy -1 embed\ncopy -1 embed\nkernel -1 embed\ncopy 0 attn\ncopy 1 attn\ncopy 0 attn\n"
		LAYER("0") "copy 2 attn\ncopy 1 attn\n" LAYER("1") "copy -1 output\ncopy 2 attn\n" LAYER("2")
		"copy -1 output\nkernel -1 output\nstep\n");
}
END_TEST

START_TEST(airllm_is_faster_when_it_reads_ahead)
{
	static const char text[] = "model: llama-2-7b\nquant: f16\n" MACHINE "engine: airllm\nworkload: {prompt: 0, generate: 2, depth: 9}\n";
	double with = run(text, NULL, true).value[RESULT_DECODE_TOK_S];
	double without = run(text, "flags.prefetching=no", true).value[RESULT_DECODE_TOK_S];

	ck_assert_msg(with > 1.2 * without, "%g and %g", with, without);
}
END_TEST

static double bytes(const struct result *r, const char *name)
{
	for (int i = 0; i < r->n_resources; i++)
		if (strcmp(r->resource[i].name, name) == 0)
			return r->resource[i].bytes;
	ck_abort_msg("no resource %s", name);
}

#define FIDDLER                                                                                                          \
	"model: mixtral-8x7b\nquant: bf16\nengine: fiddler\nmachine: {gpu0: rtx-4090, cpu0: {part: ryzen-9-7950x}, " \
	"ram: {capacity: 128GiB, bandwidth: 60GB/s}}\n"

/* Few tokens: experts that are not resident are computed on the CPU; 10 and more for each: they are copied. */
START_TEST(fiddler_computes_or_copies)
{
	struct result few = run(FIDDLER "workload: {prompt: 0, generate: 2, depth: 30}\n", NULL, true);
	struct result many = run(FIDDLER "workload: {prompt: 200, generate: 1}\n", NULL, true);
	struct result forced = run(FIDDLER "workload: {prompt: 0, generate: 2, depth: 30}\nflags: {cpu-offload: no}\n", NULL, true);
	double expert = 3.0 * 4096 * 14336 * 2;

	/* Two tokens of two experts in each of 32 layers, less those that are resident. */
	ck_assert(bytes(&few, "cpu0.compute") != 0);
	ck_assert(bytes(&few, "gpu0.link.h2d") < expert);
	ck_assert(bytes(&forced, "gpu0.link.h2d") > 64 * expert && bytes(&forced, "gpu0.link.h2d") < 128 * expert);
	/* All that are not resident, once. */
	ck_assert(bytes(&many, "gpu0.link.h2d") > 128 * expert && bytes(&many, "gpu0.link.h2d") < 256 * expert);
}
END_TEST

TEST_MAIN("pytorch", transformers_has_everything_on_the_gpu, small_models_wait_for_the_host, a_dynamic_cache_is_copied,
	four_bits_are_expanded_for_more_than_one_row, scores_went_through_memory,
	sequoia_copies_a_layer_before_it_runs, sequoia_keeps_what_fits, airllm_reads_the_next_file_meanwhile,
	airllm_is_faster_when_it_reads_ahead, fiddler_computes_or_copies)
