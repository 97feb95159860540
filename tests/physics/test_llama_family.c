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

static double hybrid(const char *engine, const char *flags, const char *sets)
{
	char text[512];

	snprintf(text, sizeof(text),
		"model: qwen3.5-35b-a3b\nquant: q4_k_m\n" MACHINE "engine: %s\nworkload: {prompt: 0, generate: 24, depth: 385}\n"
		"flags: '%s'\n", engine, flags);
	return run(text, sets, false).value[RESULT_DECODE_TOK_S];
}

/* 48 layers of 26 kernels and three at the end: each a microsecond longer before they were fused. */
START_TEST(small_kernels_were_not_always_fused)
{
	double then = 1 / decode("llama.cpp", "-ngl 99 --build 2025-09", NULL), now = 1 / decode("llama.cpp", "-ngl 99 --build 2025-10", NULL);

	ck_assert_msg(then - now > 0.9e-3 && then - now < 1.5e-3, "%g", then - now);
}
END_TEST

/* Pages of two sockets lie as they fell, unless they were spread. */
START_TEST(sockets_want_a_policy)
{
	static const char two[] = "machine=dual-xeon6454s-rtx4090";
	double none = decode("llama.cpp", "-ngl 99 -cmoe", two), spread = decode("llama.cpp", "-ngl 99 -cmoe --numa numactl", two);

	ck_assert_msg(spread > 1.15 * none, "%g and %g", spread, none);
	assert_close(decode("llama.cpp", "-ngl 99 -cmoe --numa distribute", two), none, 1e-12);
	/* Threads of both read as much as one socket's own, more or less. */
	assert_close(decode("llama.cpp", "-ngl 99 -cmoe --numa isolate", two), none, 0.2);
}
END_TEST

/* 30 of 40 layers keep a state of 2 MiB, which some twenty operations passed over until one did it. */
START_TEST(recurrent_state_was_slow_on_a_cpu)
{
	double now = 1 / hybrid("llama.cpp", "-ngl 0 --build 2026-04", NULL);
	double then = 1 / hybrid("llama.cpp", "-ngl 0 --build 2026-03", NULL), layer_s = (then - now) / 30;

	ck_assert_msg(layer_s > 2.2e-3 && layer_s < 3.2e-3, "%g", layer_s);
	assert_close(1 / hybrid("ollama", "--num_gpu 0 --build 2026-04", NULL), then, 1e-12);
	ck_assert(1 / hybrid("ik_llama.cpp", "-ngl 0 --build 2026-03", NULL) < now * 1.1);
	/* What is on the GPU hardly suffers: less than 0.2 ms a layer. */
	double gpu_s = (1 / hybrid("llama.cpp", "-ngl 99 --build 2026-03", NULL) - 1 / hybrid("llama.cpp", "-ngl 99 --build 2026-04", NULL)) / 30;
	ck_assert_msg(gpu_s > 20e-6 && gpu_s < 200e-6, "%g", gpu_s);
	ck_assert(decode("llama.cpp", "-ngl 0 --build 2026-04", NULL) <= decode("llama.cpp", "-ngl 0 --build 2026-03", NULL));
}
END_TEST

/* The card has as much of the mixture either way, but Ollama leaves whole layers to the CPU. */
START_TEST(ollama_deals_whole_layers)
{
	static const char small[] = "machine.gpu0.memory=12GiB";

	ck_assert_double_gt(decode("llama.cpp", "-ngl auto", small), 1.02 * decode("ollama", "--num_gpu auto", small));
}
END_TEST

/* A copy for each socket, if RAM holds two: 17 GiB of experts each. */
START_TEST(ktransformers_copies_experts_to_the_sockets)
{
	static const char text[] = "model: qwen3-30b-a3b\nquant: q4_k_m\nmachine: dual-xeon6454s-rtx4090\nengine: ktransformers\n"
				   "workload: {prompt: 0, generate: 8, depth: 385}\nflags: '%s'\n";
	char old[512], new[512];

	snprintf(old, sizeof(old), text, "--experts cpu");
	snprintf(new, sizeof(new), text, "--kt-method LLAMAFILE");
	double one = run(old, "machine.ram.capacity=32GiB", false).value[RESULT_DECODE_TOK_S];
	double two = run(old, "machine.ram.capacity=40GiB", false).value[RESULT_DECODE_TOK_S];
	ck_assert_msg(two > 1.15 * one, "%g and %g", one, two);
	/* kt-kernel gives each socket its rows. */
	assert_close(run(new, "machine.ram.capacity=32GiB", false).value[RESULT_DECODE_TOK_S],
		run(new, "machine.ram.capacity=40GiB", false).value[RESULT_DECODE_TOK_S], 1e-12);
}
END_TEST

/* Each head reads a quantised cache for itself, eight times over here, but values of 16 bits are read once. */
START_TEST(quantised_keys_alone)
{
	const char *text = "model: qwen3-30b-a3b\nquant: q4_k_m\n" MACHINE
			   "engine: llama.cpp\nworkload: {prompt: 0, generate: 4, depth: 30011}\nflags: '-ngl 80 %s'\n";
	char keys[512], all[512], none[512];

	snprintf(keys, sizeof(keys), text, "-ctk q8_0");
	snprintf(all, sizeof(all), text, "-ctk q8_0 -ctv q8_0");
	snprintf(none, sizeof(none), text, "");
	double k = 1 / run(keys, NULL, false).value[RESULT_DECODE_TOK_S], kv = 1 / run(all, NULL, false).value[RESULT_DECODE_TOK_S];
	double plain = 1 / run(none, NULL, false).value[RESULT_DECODE_TOK_S];
	ck_assert_msg(plain < k && k < plain + 0.6 * (kv - plain), "%g %g %g", plain, k, kv);
}
END_TEST

TEST_MAIN("llama-family", small_kernels_were_not_always_fused, sockets_want_a_policy, recurrent_state_was_slow_on_a_cpu, ollama_deals_whole_layers,
	ktransformers_copies_experts_to_the_sockets, quantised_keys_alone, ik_streams_experts_late, what_is_laid_out_for_the_cpu_stays_there, fewer_experts_are_faster,
	wrappers_are_llamacpp, graphs_help_where_experts_are_on_the_cpu, ktransformers_overlaps_a_layers_sides,
	ktransformers_brings_experts_layer_by_layer, a_file_larger_than_ram_is_paged)
