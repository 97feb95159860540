/*
 * test_llama_family.c - what ik_llama.cpp, the wrappers of llama.cpp and KTransformers do differently from llama.cpp, and
 * what llama.cpp did before.
 */
#include "tests/run_text.h"

#define MACHINE "machine: desktop-rtx4090-ddr5\n"
#define ON_CPU(n) "kernel " #n " attn\nkernel " #n " attn\nkernel " #n " router\ncopy " #n " experts\nkernel " #n " experts\n"

/* 8 experts of which 2 are used: they cross from 32 x 8 / 2 = 128 rows on. */
START_TEST(ik_streams_experts_late)
{
	static const char few[] = "kernel -1 embed\ncopy 0 attn\n" ON_CPU(0) "copy 1 attn\n" ON_CPU(1)
		"copy -1 output\nkernel -1 output\nstep\n";
	static const char many[] =
		"kernel -1 embed\ncopy 0 attn\n"
		"kernel 0 attn\nkernel 0 attn\nkernel 0 router\ncopy 0 experts\nkernel 0 experts\n"
		"kernel 1 attn\nkernel 1 attn\nkernel 1 router\ncopy 1 experts\nkernel 1 experts\n"
		"kernel -1 output\nstep\n";

	check_order(SMALL_MOE, MACHINE "engine: ik_llama.cpp\nworkload: {prompt: 127, generate: 1}\nflags: -ngl 99 -cmoe\n", few);
	check_order(SMALL_MOE, MACHINE "engine: ik_llama.cpp\nworkload: {prompt: 128, generate: 1}\nflags: -ngl 99 -cmoe\n", many);
	/* As llama.cpp did, and it until June 2025. */
	check_order(SMALL_MOE, MACHINE "engine: ik_llama.cpp\nworkload: {prompt: 32, generate: 1}\n"
				       "flags: -ngl 99 -cmoe --build 2025-05\n", many);
	check_order(SMALL_MOE, MACHINE "engine: llama.cpp\nworkload: {prompt: 32, generate: 1}\nflags: -ngl 99 -cmoe\n", many);
}
END_TEST

START_TEST(what_is_laid_out_for_the_cpu_stays_there)
{
	static const char text[] = "model: qwen3-30b-a3b\nquant: q4_k_m\n" MACHINE "engine: ik_llama.cpp\n"
				   "workload: {prompt: 512, generate: 1}\nflags: {ngl: 99, cpu-moe: yes, rtr: %s%s}\n";
	char plain[512], repacked[512], policy[512];

	snprintf(plain, sizeof(plain), text, "no", ", no-op-offload: yes");
	snprintf(repacked, sizeof(repacked), text, "yes", "");
	snprintf(policy, sizeof(policy), text, "no", ", op: '26,0,27,0,29,0'");
	double cpu = run(plain, NULL, false).value[RESULT_TTFT_S];
	/* The interleaved kernels of q4_k do as much with many rows. */
	assert_close(run(repacked, NULL, false).value[RESULT_TTFT_S], cpu, 0.03);
	assert_close(run(policy, NULL, false).value[RESULT_TTFT_S], cpu, 1e-12);
}
END_TEST

static double decode(const char *engine, const char *flags, const char *sets)
{
	char text[512];

	snprintf(text, sizeof(text),
		"model: qwen3-30b-a3b\nquant: q4_k_m\n" MACHINE "engine: %s\nworkload: {prompt: 0, generate: 24, depth: 385}\n"
		"flags: '%s'\n", engine, flags);
	return run(text, sets, false).value[RESULT_DECODE_TOK_S];
}

START_TEST(fewer_experts_are_faster)
{
	double all = decode("ik_llama.cpp", "-ngl 99 -cmoe", NULL), half = decode("ik_llama.cpp", "-ngl 99 -cmoe -ser 4,1", NULL);

	ck_assert_msg(half > 1.3 * all && half < 2 * all, "%g and %g", half, all);
	ck_assert(decode("ktransformers", "--experts-per-token 4", NULL) > decode("ktransformers", "--experts cpu", NULL));
}
END_TEST

START_TEST(wrappers_are_llamacpp)
{
	double plain = decode("llama.cpp", "-ngl 20", NULL);

	assert_close(decode("ollama", "--num_gpu 20", NULL), plain, 1e-12);
	assert_close(decode("llama-cpp-python", "Llama(\"m.gguf\", n_gpu_layers=20)", NULL), plain, 1e-12);
}
END_TEST

/* Until January 2026 a step with splits had no CUDA graph. */
START_TEST(graphs_help_where_experts_are_on_the_cpu)
{
	double now = 1 / decode("llama.cpp", "-ngl 99 -cmoe", NULL), then = 1 / decode("llama.cpp", "-ngl 99 -cmoe --build 2025-12", NULL);
	double layer_s = (then - now) / 48;

	/* 60 to 80 us a layer with a shared expert; this model has none, and fewer kernels. */
	ck_assert_msg(layer_s > 40e-6 && layer_s < 80e-6, "%g", layer_s);
	assert_close(decode("llama.cpp", "-ngl 99 --build 2025-12", NULL), decode("llama.cpp", "-ngl 99", NULL), 1e-12);
}
END_TEST

/* The CPU's part runs beside the GPU's: hidden states and results cross while shared experts are multiplied. */
START_TEST(ktransformers_overlaps_a_layers_sides)
{
	static const char want[] = "kernel -1 embed\n"
				   "copy 0 attn\nkernel 0 attn\nkernel 0 attn\nkernel 0 router\n"
				   "copy 0 experts\nkernel 0 experts\nkernel 0 experts\ncopy 0 experts\n"
				   "kernel 1 attn\nkernel 1 attn\nkernel 1 router\n"
				   "copy 1 experts\nkernel 1 experts\nkernel 1 experts\ncopy 1 experts\n"
				   "kernel -1 output\nstep\n";

	check_order(SMALL_MOE, MACHINE "engine: ktransformers\nworkload: {prompt: 0, generate: 1, depth: 17}\n"
				       "flags: --kt-num-gpu-experts 4\n", want);
}
END_TEST

START_TEST(ktransformers_brings_experts_layer_by_layer)
{
	static const char want[] = "kernel -1 embed\n"
				   "copy 0 attn\nkernel 0 attn\nkernel 0 attn\nkernel 0 router\ncopy 0 experts\nkernel 0 experts\n"
				   "kernel 1 attn\nkernel 1 attn\nkernel 1 router\ncopy 1 experts\nkernel 1 experts\n"
				   "kernel -1 output\nstep\n";

	check_order(SMALL_MOE, MACHINE "engine: ktransformers\nworkload: {prompt: 400, generate: 1}\n"
				       "flags: --kt-gpu-prefill-token-threshold 400\n", want);
}
END_TEST

/* 17.3 GiB of experts in 12 GiB of RAM, of which 2 are reserved: what is missing comes from the drive. */
START_TEST(a_file_larger_than_ram_is_paged)
{
	static const char small[] = "machine.ram.capacity=12GiB";
	double fits = decode("llama.cpp", "-ngl 99 -cmoe", NULL), paged = decode("llama.cpp", "-ngl 99 -cmoe", small);

	ck_assert_msg(paged < 0.5 * fits && paged > 0.01 * fits, "%g and %g", paged, fits);
	/* Without mmap it does not fit. */
	ck_assert(isnan(decode("llama.cpp", "-ngl 99 -cmoe --no-mmap", small)));
}
END_TEST

TEST_MAIN("llama-family", ik_streams_experts_late, what_is_laid_out_for_the_cpu_stays_there, fewer_experts_are_faster,
	wrappers_are_llamacpp, graphs_help_where_experts_are_on_the_cpu, ktransformers_overlaps_a_layers_sides,
	ktransformers_brings_experts_layer_by_layer, a_file_larger_than_ram_is_paged)
