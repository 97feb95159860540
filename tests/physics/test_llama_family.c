/*
 * test_llama_family.c - what ik_llama.cpp, the wrappers of llama.cpp and KTransformers do differently from llama.cpp, and
 * what llama.cpp did before.
 */
#include "tests/run_text.h"

#define MACHINE "machine: desktop-rtx4090-ddr5\n"
#define GiB 1073741824.0
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
				       "flags: -ngl 99 -cmoe -fa on --build 2025-05\n", many);
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

static double decode_of(const char *model, const char *engine, const char *flags, const char *sets)
{
	char text[512];

	snprintf(text, sizeof(text),
		"model: %s\nquant: q4_k_m\n" MACHINE "engine: %s\nworkload: {prompt: 0, generate: 24, depth: 385}\nflags: '%s'\n",
		model, engine, flags);
	return run(text, sets, false).value[RESULT_DECODE_TOK_S];
}

static double decode(const char *engine, const char *flags, const char *sets)
{
	return decode_of("qwen3-30b-a3b", engine, flags, sets);
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

/* Seconds of a prompt through a model on the desktop. */
static double prompt_s(const char *model, const char *engine, const char *workload, const char *flags, const char *sets)
{
	char text[512];

	snprintf(text, sizeof(text), "model: %s\n" MACHINE "engine: %s\nworkload: {generate: 1, %s}\nflags: '%s'\n", model, engine,
		workload, flags);
	return run(text, sets, false).value[RESULT_TTFT_S];
}

/* Told to put no layer on the GPU, Ollama shows its llama.cpp none; llama.cpp itself brings weights there for a prompt. */
START_TEST(ollama_without_layers_leaves_the_gpu_alone)
{
	static const char dense[] = "llama-2-7b\nquant: q4_0", rows[] = "prompt: 509";
	double cpu = prompt_s(dense, "llama.cpp", rows, "-ngl 0 --no-op-offload", NULL);

	assert_close(prompt_s(dense, "ollama", rows, "--num_gpu 0", NULL), cpu, 1e-12);
	ck_assert_double_gt(cpu, 2 * prompt_s(dense, "ollama", rows, "--num_gpu 1", NULL));
}
END_TEST

/* GGML_OP_OFFLOAD_MIN_BATCH is for all that crosses; the fork's number is for experts. */
START_TEST(rows_from_which_weights_cross_can_be_said)
{
	static const char dense[] = "llama-2-7b\nquant: q4_0", rows[] = "prompt: 63";
	double cpu = prompt_s(dense, "llama.cpp", rows, "-ngl 0 --no-op-offload", NULL);

	assert_close(prompt_s(dense, "llama.cpp", rows, "-ngl 0 --op-offload-min 64", NULL), cpu, 1e-12);
	assert_close(prompt_s(dense, "llama.cpp", rows, "-ngl 0 --op-offload-min 63", NULL), prompt_s(dense, "llama.cpp", rows, "-ngl 0", NULL),
		1e-12);
	ck_assert(cpu != prompt_s(dense, "llama.cpp", rows, "-ngl 0", NULL));
	assert_close(prompt_s(dense, "ik_llama.cpp", rows, "-ngl 0 --op-offload-min 64", NULL),
		prompt_s(dense, "ik_llama.cpp", rows, "-ngl 0", NULL), 1e-12);
}
END_TEST

/* What llama.cpp learnt comes to Ollama, but for pinned memory. */
START_TEST(ollama_streams_as_llamacpp)
{
	static const char dense[] = "llama-2-7b\nquant: q4_0", rows[] = "prompt: 509, depth: 4096";

	assert_close(prompt_s(dense, "ollama", rows, "--num_gpu 20", NULL), prompt_s(dense, "llama.cpp", rows, "-ngl 20", NULL), 1e-9);
	assert_close(prompt_s("qwen3-30b-a3b\nquant: q4_k_m", "ollama", rows, "--num_gpu 99 --cpu-moe --no-mmap", NULL),
		prompt_s("qwen3-30b-a3b\nquant: q4_k_m", "llama.cpp", rows, "-ngl 99 --cpu-moe", NULL), 1e-9);
}
END_TEST

/* The host orders a layer's experts at 40 GB/s, then they cross at 25. */
START_TEST(ktransformers_orders_what_it_brings)
{
	static const char model[] = "qwen3-30b-a3b\nquant: q8_0", rows[] = "prompt: 2048";
	double brought = prompt_s(model, "ktransformers", rows, "--kt-gpu-prefill-token-threshold 400", NULL);
	double faster = prompt_s(model, "ktransformers", rows, "--kt-gpu-prefill-token-threshold 400", "machine.gpu0.link=pcie-5x16");
	/* 48 layers of 128 experts of 3 x 2048 x 768. */
	double bytes = 48.0 * 128 * 3 * 2048 * 768 * 34 / 32;

	ck_assert_msg(brought > bytes / 40e9 + bytes / 25e9 && brought < 1.25 * (bytes / 40e9 + bytes / 25e9), "%g", brought);
	assert_close(brought - faster, bytes / 25e9 - bytes / 55.5e9, 0.05);
}
END_TEST

/* Two sockets are not twice as fast with many rows; experts of int8 have AMX kernels. */
START_TEST(sockets_and_tiles_of_ktransformers)
{
	double s[3];

	for (int i = 0; i < 3; i++) {
		char text[512];
		snprintf(text, sizeof(text), "model: qwen3-30b-a3b\nquant: %s\nmachine: {gpu0: rtx-4090, cpu0: {part: xeon-gold-6454s, sockets: %d},\n"
					     "  ram: {capacity: 1024GiB, bandwidth: 500GB/s}}\n"
					     "engine: ktransformers\nworkload: {prompt: 1531, generate: 1}\n",
			i == 2 ? "int8-cpu-int4-gpu" : "q4_k_m", i == 1 ? 1 : 2);
		s[i] = run(text, NULL, false).value[RESULT_TTFT_S];
	}
	ck_assert_msg(s[1] > 1.3 * s[0] && s[1] < 1.6 * s[0], "%g and %g", s[1], s[0]);
	ck_assert_msg(s[2] < 0.7 * s[0], "%g and %g", s[2], s[0]);
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

static double bytes_of(const struct result *r, const char *name)
{
	for (int i = 0; i < r->n_resources; i++)
		if (strcmp(r->resource[i].name, name) == 0)
			return r->resource[i].bytes;
	ck_abort_msg("no resource %s", name);
}

/* A prompt that uses more of a layer's experts than RAM holds finds none of them there, one that uses fewer finds its share. */
START_TEST(a_prompt_that_wants_more_than_ram_holds_reads_all)
{
	static const char text[] = "model: qwen3-30b-a3b\nquant: q4_k_m\n" MACHINE "engine: llama.cpp\nflags: '-ngl 99 -cmoe'\n"
				   "workload: {prompt: 512, generate: 1}\nrouting: {correlation: 0.5}\n";
	double experts = 16.3 * GiB, read[2];

	for (int i = 0; i < 2; i++) {
		struct result r = run(text, i ? "machine.ram.capacity=17GiB" : "machine.ram.capacity=12GiB", false);
		read[i] = 0.33 * bytes_of(&r, "nvme0.link.d2h"); /* pages come at 0.33 of the drive's rate, by hw/kernels */
	}
	/* 102 of 128 are wanted; ten GiB hold 0.6 of them, fifteen 0.91 */
	ck_assert_msg(read[0] > 0.78 * experts && read[0] < 0.81 * experts, "%g", read[0]);
	ck_assert_msg(read[1] > 0.06 * experts && read[1] < 0.08 * experts, "%g", read[1]);
}
END_TEST

/* Two to four rows with experts are vectors since February 2026: each reads its own. */
START_TEST(few_rows_read_the_experts_of_each)
{
	static const char text[] = "model: qwen3-30b-a3b\nquant: q4_k_m\n" MACHINE "engine: llama.cpp\nflags: '-ngl 99 --build %s'\n"
				   "workload: {batch: %d, prompt: 0, generate: 40, depth: 9}\nrouting: uniform\n";
	static const int batch[] = {1, 3, 4, 5};

	for (size_t i = 0; i < ARRAY_LEN(batch); i++) {
		double read[2], uses = 8.0 * batch[i], hits = 128 * (1 - pow(1 - 8 / 128.0, batch[i])), expert = 16.3 * GiB / 128;
		for (int now = 0; now < 2; now++) {
			char all[512];
			snprintf(all, sizeof(all), text, now ? "2026-02" : "2026-01", batch[i]);
			struct result r = run(all, NULL, true);
			read[now] = bytes_of(&r, "gpu0") / 40;
		}
		assert_close(1 + (read[1] - read[0]) / expert, 1 + (batch[i] == 3 || batch[i] == 4 ? uses - hits : 0), 0.05);
	}
}
END_TEST

/* 17.5 against 25 GB/s; ik_llama.cpp maps or pins, whatever is said. */
START_TEST(overridden_weights_were_pageable)
{
	static const char moe[] = "qwen3-30b-a3b\nquant: q4_k_m\nrouting: uniform", rows[] = "prompt: 512";
	double mapped = prompt_s(moe, "llama.cpp", rows, "-fa on -ngl 99 -ot exps=CPU --build 2025-09", NULL);
	double pinned = prompt_s(moe, "llama.cpp", rows, "-fa on -ngl 99 -ot exps=CPU --build 2025-09 --no-mmap", NULL);

	ck_assert_msg(mapped > 1.2 * pinned && mapped < 1.43 * pinned, "%g and %g", mapped, pinned);
	assert_close(prompt_s(moe, "llama.cpp", rows, "-fa on -ngl 99 -ot exps=CPU --build 2025-07 --no-mmap", NULL), mapped, 1e-9);
	assert_close(prompt_s(moe, "llama.cpp", rows, "-fa on -ngl 99 -cmoe --build 2025-09 --no-mmap --no-pinned", NULL), mapped, 1e-9);
	assert_close(prompt_s(moe, "ik_llama.cpp", rows, "-fa on -ngl 99 -ot exps=CPU --build 2026-03 --no-mmap", NULL), mapped, 0.02);
	assert_close(prompt_s(moe, "ik_llama.cpp", rows, "-fa on -ngl 99 -ot exps=CPU --build 2026-04", NULL), pinned, 0.02);
	/* Layers that are in RAM for want of room were never overridden. */
	ck_assert(prompt_s(moe, "llama.cpp", rows, "-fa on -ngl 9 --build 2025-07 --no-mmap", NULL) <
		0.85 * prompt_s(moe, "llama.cpp", rows, "-fa on -ngl 9 --build 2025-07", NULL));
}
END_TEST

/* Products in 16 bits until June 2024. */
START_TEST(quantised_products_were_slower)
{
	static const char rows[] = "prompt: 509";
	double then = prompt_s("llama-2-7b\nquant: q4_0", "llama.cpp", rows, "-ngl 99 --build 2024-06", NULL);
	double now = prompt_s("llama-2-7b\nquant: q4_0", "llama.cpp", rows, "-ngl 99 --build 2024-07", NULL);

	ck_assert_msg(then > 1.25 * now && then < now / 0.68, "%g and %g", then, now);
	assert_close(prompt_s("llama-2-7b\nquant: f16", "llama.cpp", rows, "-ngl 99 --build 2024-06", NULL),
		prompt_s("llama-2-7b\nquant: f16", "llama.cpp", rows, "-ngl 99 --build 2024-07", NULL), 1e-12);
}
END_TEST

/* Blocks of eight rows came in June 2025; interleaved types had their own. */
START_TEST(ik_had_slower_products_on_the_cpu)
{
	static const char rows[] = "prompt: 311";
	double then = prompt_s("llama-2-7b\nquant: iq4_ks", "ik_llama.cpp", rows, "-fa on -ngl 0 --no-op-offload --build 2025-05", NULL);
	double now = prompt_s("llama-2-7b\nquant: iq4_ks", "ik_llama.cpp", rows, "-fa on -ngl 0 --no-op-offload --build 2025-06", NULL);

	ck_assert_msg(then > 1.5 * now && then < now / 0.55 * 1.05, "%g and %g", then, now);
	assert_close(prompt_s("llama-2-7b\nquant: iq4_ks_r4", "ik_llama.cpp", rows, "-fa on -ngl 0 --build 2025-04", NULL),
		prompt_s("llama-2-7b\nquant: iq4_ks_r4", "ik_llama.cpp", rows, "-fa on -ngl 0 --no-op-offload --build 2025-06", NULL), 0.03);
}
END_TEST

/* What lies between products that the CPU does, it does too, for all that there is a GPU. */
START_TEST(attention_goes_with_its_weights)
{
	static const char rows[] = "prompt: 311, depth: 6144", model[] = "llama-2-7b\nquant: q4_k";
	double cpu = prompt_s(model, "ik_llama.cpp", rows, "-fa on -ngl 0 -rtr --no-op-offload", NULL);

	assert_close(prompt_s(model, "ik_llama.cpp", rows, "-fa on -ngl 0 -rtr", NULL), cpu, 1e-12);
	ck_assert_double_lt(prompt_s(model, "ik_llama.cpp", rows, "-fa on -ngl 0", NULL), 0.5 * cpu);
}
END_TEST

/* Between products of experts 2048 x 8 rows of 768 and 2048 values go through memory three times a way, where no cache holds
   them; up and gate are two of the first. */
START_TEST(rows_of_experts_go_through_memory)
{
	static const char model[] = "qwen3-30b-a3b\nquant: q4_0", rows[] = "prompt: 2048", flags[] = "-ngl 99 -fa on -ub 2048";
	double all = prompt_s(model, "llama.cpp", rows, flags, "machine.gpu0.cache=0MiB");
	double none = prompt_s(model, "llama.cpp", rows, flags, "machine.gpu0.cache=1GiB");
	double card = prompt_s(model, "llama.cpp", rows, flags, NULL), values = 2048 * 8 * 4.0 * (2 * 768 + 2048);

	assert_close(all - none, 48 * 3 * values / 892e9, 0.02);
	assert_close(all - card, 48 * 3 * 2 * 72 * 1048576.0 / 892e9, 0.02);
	/* Sums of experts were several kernels. */
	ck_assert_double_gt(prompt_s(model, "llama.cpp", rows, "-ngl 99 -fa on -ub 2048 --build 2025-09", "machine.gpu0.cache=0MiB") -
			prompt_s(model, "llama.cpp", rows, "-ngl 99 -fa on -ub 2048 --build 2025-09", "machine.gpu0.cache=1GiB"),
		1.3 * (all - none));
}
END_TEST

/* Of types without products of many rows 16 bits are written and read for each weight before, 920 GB/s at 97 %. */
START_TEST(types_without_products_are_expanded)
{
	static const char many[] = "prompt: 512", few[] = "prompt: 8";
	static const struct {
		const char *quant, *expands_in, *since;
	} cases[] = {{"iq4_k_r4", "2026-08", NULL}, {"iq4_k", "2025-05", "2025-06"}, {"iq4_ks", "2025-05", "2025-06"},
		{"iq4_ks_r4", NULL, "2025-06"}, {"iq4_kt", NULL, "2025-05"}, {"iq1_m", "2026-08", NULL}};
	double weights = 6.476e9;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *const at[] = {cases[i].expands_in, cases[i].since};
		char model[64], flags[64];
		snprintf(model, sizeof(model), "llama-2-7b\nquant: %s", cases[i].quant);
		for (int j = 0; j < 2; j++) {
			if (!at[j])
				continue;
			snprintf(flags, sizeof(flags), "-ngl 99 -fa on --build %s", at[j]);
			double one = prompt_s(model, "ik_llama.cpp", few, flags, NULL);
			double like = prompt_s("llama-2-7b\nquant: q4_0", "ik_llama.cpp", many, flags, NULL);
			double more = prompt_s(model, "ik_llama.cpp", many, flags, NULL) - like;
			ck_assert_double_lt(one, 0.03);
			if (j == 0)
				ck_assert_msg(more > 0.65 * weights * 4 / 892e9, "%s: %g more than %g", cases[i].quant, more, like);
			else
				ck_assert_msg(more < 0.35 * weights * 4 / 892e9, "%s: %g more than %g", cases[i].quant, more, like);
		}
	}
}
END_TEST

/* Some interleaved types cross the link since June 2025; what -rtr makes of others never does. */
START_TEST(interleaved_types_cross_late)
{
	static const char many[] = "kernel -1 embed\ncopy 0 attn\n"
				   "kernel 0 attn\nkernel 0 attn\nkernel 0 router\ncopy 0 experts\nkernel 0 experts\n"
				   "kernel 1 attn\nkernel 1 attn\nkernel 1 router\ncopy 1 experts\nkernel 1 experts\n"
				   "kernel -1 output\nstep\n";
	static const char stay[] = "kernel -1 embed\ncopy 0 attn\n" ON_CPU(0) "copy 1 attn\n" ON_CPU(1)
		"copy -1 output\nkernel -1 output\nstep\n";
	static const struct {
		const char *quant, *flags, *want;
	} cases[] = {{"iq4_ks_r4", "--build 2025-06", many}, {"q4_k_r4", "--build 2025-06", stay},
		{"iq4_ks_r4", "--build 2025-05", stay}, {"q4_k", "-rtr", stay}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct listing l;
		char text[256];
		snprintf(text, sizeof(text), MACHINE "engine: ik_llama.cpp\nworkload: {prompt: 131, generate: 1}\nflags: -ngl 99 -cmoe -fa on %s\n",
			cases[i].flags);
		list_model_step(0, SMALL_MOE, cases[i].quant, text, &l);
		ck_assert_msg(strcmp(l.text, cases[i].want) == 0, "%s: %s", cases[i].quant, l.text);
	}
}
END_TEST

/* Keys and values of all heads are made again of what is in the cache: 2 x 512 x 128 x 256 a token and layer. */
START_TEST(ik_unpacks_its_cache_for_each_pass)
{
	static const char model[] = "deepseek-v2-lite\nquant: q4_k_m", rows[] = "prompt: 512, depth: 31744";
	double kept = prompt_s(model, "ik_llama.cpp", rows, "-ngl 99 -mla 3 -fa", NULL);
	double heads = prompt_s(model, "ik_llama.cpp", rows, "-ngl 99 -mla 0 -fa", NULL);
	double flops = 27.0 * 31744 * 2 * 512 * 16 * 256;
	/* Of each entry and head 128 and 128 values are written in 32 bits, read, written in 16; then 192 read and written together. */
	double bytes = 27.0 * (31744 + 512) * 16 * (256 * 10 + 192 * 4);
	double few = prompt_s(model, "ik_llama.cpp", "prompt: 127, depth: 31744", "-ngl 99 -mla 3 -fa", NULL);

	/* 110 % of 167 TFLOP/s, 97 % of 920 GB/s. */
	assert_close(kept - heads, flops / 184e12 + bytes / 892e9, 0.05);
	/* Fewer rows attend to the latent vectors: each to 1088 values of an entry and head, not to 320. */
	ck_assert_double_lt(few, 0.6 * prompt_s(model, "ik_llama.cpp", "prompt: 128, depth: 31744", "-ngl 99 -mla 3 -fa", NULL));
}
END_TEST

/* Attention of many rows wrote its scores until -fa auto became on: 15 bytes for each of 32 heads and 509 x 8701 pairs in 32
   layers, and products of what is masked. */
START_TEST(scores_are_written_without_flash_attention)
{
	static const char model[] = "llama-2-7b\nquant: q4_0", rows[] = "prompt: 509, depth: 8192";
	double off = prompt_s(model, "llama.cpp", rows, "-ngl 99 -fa off", NULL);
	double on = prompt_s(model, "llama.cpp", rows, "-ngl 99 -fa on", NULL);
	double bytes = 15.0 * 32 * 32 * 509 * 8701;

	ck_assert_msg(off - on > bytes / 920e9 && off - on < 1.15 * bytes / 920e9, "%g more than %g", off - on, on);
	assert_close(prompt_s(model, "llama.cpp", rows, "-ngl 99 --build 2025-08", NULL),
		prompt_s(model, "llama.cpp", rows, "-ngl 99 -fa off --build 2025-08", NULL), 1e-12);
	assert_close(prompt_s(model, "llama.cpp", rows, "-ngl 99 --build 2025-09", NULL),
		prompt_s(model, "llama.cpp", rows, "-ngl 99 -fa on --build 2025-09", NULL), 1e-12);
	assert_close(prompt_s(model, "ik_llama.cpp", rows, "-ngl 99 --build 2025-10", NULL),
		prompt_s(model, "ik_llama.cpp", rows, "-ngl 99 -fa off --build 2025-10", NULL), 1e-12);
}
END_TEST

static double behind_2048(const char *flags)
{
	char text[1024];

	snprintf(text, sizeof(text),
		"model: %s/tests/data/configs/testbed-d05.json\nquant: q4_0\nmachine: %s/tests/data/testbed-machine.yaml\n"
		"engine: llama.cpp\nworkload: {prompt: 0, generate: 8, depth: 2048}\nflags: '-t 1 %s'\n",
		getenv("PWD"), getenv("PWD"), flags);
	return run(text, "machine.cpu0.clock=4.25GHz machine.cpu0.thread_bandwidth=41.8GB/s machine.ram.bandwidth=73GB/s", false).value[RESULT_DECODE_TOK_S];
}

/* libllama b10361 over ggml d99724f2 on an EPYC of Zen 5: 45.8, 56.8, 30.2 and 24.1 tok/s in turn. Before flash attention had
   tiles it is not told apart. */
START_TEST(products_attend_faster_on_a_cpu)
{
	double flash = behind_2048("-fa on");

	assert_close(behind_2048("-fa off") / flash, 56.8 / 45.8, 0.15);
	assert_close(behind_2048("-fa on -ctk q8_0 -ctv q8_0") / flash, 30.2 / 45.8, 0.2);
	assert_close(behind_2048("-fa on -ctk q4_0 -ctv q4_0") / flash, 24.1 / 45.8, 0.1);
	assert_close(behind_2048("-fa off --build 2025-12") / behind_2048("-fa on --build 2025-12"), 1, 1e-12);
}
END_TEST

/* Until July 2025 the experts that no row had chosen crossed with the others. */
START_TEST(all_experts_crossed_at_first)
{
	static const char moe[] = "qwen3-30b-a3b\nquant: q4_k_m\nrouting: uniform", rows[] = "prompt: 37";
	double then = prompt_s(moe, "llama.cpp", rows, "-ngl 99 -cmoe -fa on --build 2025-07", NULL);
	double now = prompt_s(moe, "llama.cpp", rows, "-ngl 99 -cmoe -fa on --build 2025-08", NULL);
	/* 1 - (1 - 8 / 128)^37 of them. */
	double used = 1 - pow(1 - 8.0 / 128, 37);

	assert_close(now / then, used, 0.03);
}
END_TEST

/* Before May 2025 flash attention with such heads was the CPU's. */
START_TEST(flash_attention_of_mla_was_the_cpus)
{
	static const char model[] = "deepseek-v2-lite\nquant: q4_k_m", rows[] = "prompt: 1021, depth: 12288";
	double then = prompt_s(model, "llama.cpp", rows, "-ngl 0 -fa on --build 2025-04", NULL);

	double now = prompt_s(model, "llama.cpp", rows, "-ngl 0 -fa on --build 2025-05", NULL);
	double plain = prompt_s(model, "llama.cpp", rows, "-ngl 0 -fa off --build 2025-04", NULL);

	ck_assert_msg(then > 1.3 * now && then > 1.3 * plain, "%g, %g and %g", then, now, plain);
}
END_TEST

/* Each product alone went to the GPU before April 2024: its rows there, its results back, all else on the CPU. */
START_TEST(single_products_borrowed_the_gpu)
{
	static const char want[] = "kernel -1 embed\n"
				   "copy 0 attn\ncopy 0 attn\nkernel 0 attn\ncopy 0 attn\nkernel 0 attn\nkernel 0 attn\nkernel 0 attn\n"
				   "copy 0 router\ncopy 0 router\nkernel 0 router\ncopy 0 router\nkernel 0 router\n";
	static const char rows[] = "prompt: 997";
	double then = prompt_s("llama-2-7b\nquant: q4_0", "llama.cpp", rows, "-ngl 0 -b 1024 -ub 1024 --build 2024-03", NULL);

	struct listing l;

	list_model_step(0, SMALL_MOE, "f16",
		MACHINE "engine: llama.cpp\nworkload: {prompt: 127, generate: 1}\nflags: -ngl 0 --build 2024-03\n", &l);
	ck_assert_msg(strncmp(l.text, want, strlen(want)) == 0, "%s", l.text);
	ck_assert(then > 2 * prompt_s("llama-2-7b\nquant: q4_0", "llama.cpp", rows, "-ngl 0 -b 1024 -ub 1024 --build 2024-04", NULL));
}
END_TEST

/* Experts of 768 rows are 96 blocks of eight: with 64 threads half of them have two, the others one. */
START_TEST(threads_without_a_block_wait)
{
	double s[2];

	for (int i = 0; i < 2; i++) {
		char text[512];
		snprintf(text, sizeof(text), "model: qwen3-30b-a3b\nquant: q8_0\nmachine: {cpu0: epyc-9965, ram: {capacity: 256GiB, bandwidth: 900GB/s}}\n"
					     "engine: ik_llama.cpp\nworkload: {prompt: 509, generate: 1}\nflags: {t: %d}\n", i ? 64 : 48);
		s[i] = run(text, NULL, false).value[RESULT_TTFT_S];
	}
	/* 1.31 times by threads and clock; 7 / 8 of 64 work and 0.933 of 48. */
	ck_assert_msg(s[0] > 1.1 * s[1] && s[0] < 1.27 * s[1], "%g and %g", s[0], s[1]);
}
END_TEST

/* Rows are dealt to threads alike: half of 24 on 16 cores share a core, and all wait for those. llama.cpp's take what is left. */
START_TEST(some_threads_share_a_core)
{
	static const char model[] = "llama-2-7b\nquant: q4_0", rows[] = "prompt: 509";
	double sixteen = prompt_s(model, "ik_llama.cpp", rows, "-ngl 0 --no-op-offload -fa on -t 16", NULL);

	assert_close(prompt_s(model, "ik_llama.cpp", rows, "-ngl 0 --no-op-offload -fa on -t 24", NULL), sixteen / 0.75, 0.03);
	assert_close(prompt_s(model, "ik_llama.cpp", rows, "-ngl 0 --no-op-offload -fa on -t 32", NULL), sixteen, 0.03);
	assert_close(prompt_s(model, "llama.cpp", rows, "-ngl 0 --no-op-offload -t 24", NULL),
		prompt_s(model, "llama.cpp", rows, "-ngl 0 --no-op-offload -t 16", NULL), 0.03);
}
END_TEST

/* Zen 5 multiplies many rows 1.65 times as fast as Zen 4, and one row as fast. */
START_TEST(zen_5_has_wider_units)
{
	static const char machine[] = "machine: {cpu0: ryzen-9-9950x, ram: {capacity: 96GiB, bandwidth: 70GB/s}}\nmodel: llama-2-7b\nquant: q4_0\n"
				      "engine: ik_llama.cpp\nworkload: {prompt: 509, generate: 9}\n";
	struct result five = run(machine, NULL, false), four = run(machine, "machine.cpu0.isa=avx512_vnni", false);

	ck_assert(four.value[RESULT_TTFT_S] > 1.45 * five.value[RESULT_TTFT_S]);
	ck_assert(four.value[RESULT_TTFT_S] < 1.66 * five.value[RESULT_TTFT_S]);
	assert_close(four.value[RESULT_DECODE_TOK_S], five.value[RESULT_DECODE_TOK_S], 1e-9);
}
END_TEST

/* A card without tensor cores multiplied integers before June 2024 as well; one that accumulates in 32 bits at full rate gains
   less from what is measured against half of it. */
START_TEST(cards_reach_different_shares)
{
	static const char text[] = "model: llama-2-7b\nquant: q4_0\nmachine: {gpu0: %s, cpu0: ryzen-9-7950x, ram: {capacity: 96GiB, bandwidth: 70GB/s}}\n"
				   "engine: llama.cpp\nworkload: {prompt: 509, generate: 1}\nflags: -ngl 99 --build %s\n";
	static const char *const cases[][2] = {{"p40", "2024-06"}, {"p40", "2024-07"}, {"l40s", "2025-12"}, {"rtx-4090", "2025-12"}};
	double s[4];

	for (size_t i = 0; i < 4; i++) {
		char one[512];
		snprintf(one, sizeof(one), text, cases[i][0], cases[i][1]);
		s[i] = run(one, NULL, false).value[RESULT_TTFT_S];
	}
	assert_close(s[0], s[1], 1e-12);
	/* 264 against 167 TFLOP/s of products in 16 bits. */
	ck_assert_msg(s[2] > s[3] && s[2] < 1.4 * s[3], "%g and %g", s[2], s[3]);
}
END_TEST

/* Vulkan's products of experts until August 2025. */
START_TEST(radeons_had_slow_products_of_experts)
{
	static const char text[] = "model: %s\nquant: q4_0\nmachine: {gpu0: rx-6900-xt, cpu0: ryzen-9-7950x, ram: {capacity: 96GiB, bandwidth: 70GB/s}}\n"
				   "engine: llama.cpp\nworkload: {prompt: 509, generate: 1}\nflags: -ngl 99 -fa on --build %s\n";
	static const char *const model[] = {"deepseek-v2-lite", "llama-2-7b"}, *const build[] = {"2025-08", "2025-09"};
	double s[2][2];

	for (int i = 0; i < 4; i++) {
		char one[512];
		snprintf(one, sizeof(one), text, model[i / 2], build[i % 2]);
		s[i / 2][i % 2] = run(one, NULL, false).value[RESULT_TTFT_S];
	}
	ck_assert_msg(s[0][0] > 1.3 * s[0][1] && s[0][0] < 2 * s[0][1], "%g and %g", s[0][0], s[0][1]);
	assert_close(s[1][0], s[1][1], 1e-12);
}
END_TEST

static struct result run_with_interval(const char *text)
{
	struct run_options o = {.interval = true};
	struct err err = {0};
	struct result r;
	struct ran ran;

	load(&ran, text, NULL);
	assert_ok(run_scenario(ran.scenario, &o, &ran.arena, &r, NULL, &err), err);
	arena_release(&ran.arena);
	return r;
}

/* What pageable copies reach is uncertain by a quarter, what pinned ones reach by little; and what the host orders. */
START_TEST(intervals_know_of_copies)
{
	static const char text[] = "model: qwen3-30b-a3b\nquant: q8_0\n" MACHINE "engine: llama.cpp\nworkload: {prompt: 509, generate: 1}\n"
				   "flags: -ngl 99 -cmoe\n";
	char pins[512];
	snprintf(pins, sizeof(pins), "%.*s --no-mmap\n", (int)strlen(text) - 1, text);
	struct result mapped = run_with_interval(text), pinned = run_with_interval(pins);
	double wide = log(mapped.high80[RESULT_PREFILL_TOK_S] / mapped.low80[RESULT_PREFILL_TOK_S]);
	double narrow = log(pinned.high80[RESULT_PREFILL_TOK_S] / pinned.low80[RESULT_PREFILL_TOK_S]);

	/* Two times 1.28 x 0.25, less what is arithmetic; what both have beside it is no part of the difference of squares. */
	double more = sqrt(wide * wide - narrow * narrow);
	ck_assert_msg(more > 0.45 && more < 0.7 && narrow < 0.75 * wide, "%g and %g", wide, narrow);
}
END_TEST

static double hybrid(const char *engine, const char *flags, const char *sets)
{
	return decode_of("qwen3.5-35b-a3b", engine, flags, sets);
}

/* Turing had none until August 2026, AMD by HIP until May, by Vulkan it has none: launches are bare behind experts on the CPU. */
START_TEST(cards_without_graphs)
{
	static const char turing[] = "machine.gpu0=titan-rtx", amd[] = "machine.gpu0=rx-7900-xtx";
	double layer_s = (1 / decode("llama.cpp", "-ngl 99 -cmoe --build 2026-07", turing) - 1 / decode("llama.cpp", "-ngl 99 -cmoe --build 2026-08", turing)) / 48;

	ck_assert_msg(layer_s > 40e-6 && layer_s < 100e-6, "%g", layer_s);
	layer_s = (1 / decode("llama.cpp", "-ngl 99 -cmoe --backend hip --build 2026-04", amd) -
			  1 / decode("llama.cpp", "-ngl 99 -cmoe --backend hip --build 2026-05", amd)) / 48;
	ck_assert_msg(layer_s > 20e-6 && layer_s < 100e-6, "%g", layer_s);
	assert_close(decode("llama.cpp", "-ngl 99 -cmoe --backend vulkan --build 2026-08", amd),
		decode("llama.cpp", "-ngl 99 -cmoe --backend vulkan --build 2026-02", amd), 1e-12);
	assert_close(decode("llama.cpp", "-ngl 99 -cmoe --build 2026-07", NULL), decode("llama.cpp", "-ngl 99 -cmoe --build 2026-08", NULL), 1e-12);
}
END_TEST

/* 48 layers of 26 kernels and three at the end: each a microsecond longer before they were fused. */
START_TEST(small_kernels_were_not_always_fused)
{
	double then = 1 / decode("llama.cpp", "-ngl 99 --build 2025-09", NULL), now = 1 / decode("llama.cpp", "-ngl 99 --build 2025-10", NULL);

	ck_assert_msg(then - now > 0.9e-3 && then - now < 1.5e-3, "%g", then - now);
}
END_TEST

/* Before May 2024 no step had a CUDA graph: a microsecond for each of 32 layers' 17 kernels and some at the end. Turing had to
   wait for 2026, and splits as well. */
START_TEST(there_were_no_graphs_at_first)
{
	static const char turing[] = "machine.gpu0=titan-rtx";
	double then = 1 / decode_of("llama-2-7b", "llama.cpp", "-ngl 99 --build 2024-04", NULL);
	double now = 1 / decode_of("llama-2-7b", "llama.cpp", "-ngl 99 --build 2024-05", NULL);

	ck_assert_msg(then - now > 0.5e-3 && then - now < 0.9e-3, "%g", then - now);
	assert_close(decode_of("llama-2-7b", "llama.cpp", "-ngl 99 --build 2024-04", turing),
		decode_of("llama-2-7b", "llama.cpp", "-ngl 99 --build 2024-05", turing), 1e-12);
}
END_TEST

/* Since April 2024 the slow cores of a hybrid processor are left out, but on Windows. */
START_TEST(slow_cores_are_not_counted)
{
	static const char linux[] = "machine.cpu0=core-i7-12700k", windows[] = "machine.cpu0=core-i7-12700k machine.system=windows";
	double fast = decode("llama.cpp", "-ngl 0 -t 8", linux), all = decode("llama.cpp", "-ngl 0 -t 12", linux);

	ck_assert_msg(fabs(fast / all - 1) > 0.01, "%g and %g", fast, all);
	assert_close(decode("llama.cpp", "-ngl 0", linux), fast, 1e-12);
	assert_close(decode("ik_llama.cpp", "-ngl 0", linux), decode("ik_llama.cpp", "-ngl 0 -t 8", linux), 1e-12);
	assert_close(decode("llama.cpp", "-ngl 0 --build 2024-03", linux), decode("llama.cpp", "-ngl 0 -t 12 --build 2024-03", linux),
		1e-12);
	assert_close(decode("llama.cpp", "-ngl 0", windows), decode("llama.cpp", "-ngl 0 -t 12", windows), 1e-12);
}
END_TEST

/* Pages of two sockets lie as they fell, unless they were spread. */
START_TEST(sockets_want_a_policy)
{
	static const char two[] = "machine=dual-xeon6454s-rtx4090";
	double none = decode("llama.cpp", "-ngl 99 -cmoe", two), spread = decode("llama.cpp", "-ngl 99 -cmoe --numa numactl", two);

	ck_assert_msg(spread > 1.15 * none, "%g and %g", spread, none);
	assert_close(decode("llama.cpp", "-ngl 99 -cmoe --numa distribute", two), none, 1e-12);
	/* Threads of both read less than one socket's own do of its own pages, and as much as those where pages lie anywhere. */
	double one = decode("llama.cpp", "-ngl 99 -cmoe --one-socket", two);
	ck_assert_msg(one > 1.15 * none, "%g and %g", one, none);
	assert_close(decode("llama.cpp", "-ngl 99 -cmoe --numa isolate", two), none, 0.03);
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

/* 30 layers for 512 tokens: 3 us each in one kernel, about twice that by chunks. Two prompts pass side by side. */
START_TEST(a_prompt_passes_recurrent_layers_token_by_token)
{
	static const char named[] = "qwen3.5-35b-a3b\nquant: q4_k_m", one[] = "prompt: 512", two[] = "batch: 2, prompt: 256";
	double now = prompt_s(named, "llama.cpp", one, "-ngl 99 --build 2026-04", NULL);
	double then = prompt_s(named, "llama.cpp", one, "-ngl 99 --build 2026-03", NULL);
	double beside = prompt_s(named, "llama.cpp", two, "-ngl 99 --build 2026-04", NULL);
	double more = (then - now) / 30 / 512, less = (now - beside) / 30 / 256;

	ck_assert_msg(more > 2e-6 && more < 5e-6, "%g", more);
	ck_assert_msg(less > 2e-6 && less < 4.5e-6, "%g", less);
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
/* What a context costs KTransformers on so many GPUs. */
static double context_s(const char *model, int gpus)
{
	char flags[64], sets[128];
	double s[2];

	for (int i = 0; i < 2; i++) {
		snprintf(flags, sizeof(flags), "--kt-method FP8 --tp %d", gpus);
		snprintf(sets, sizeof(sets), "machine=desktop-2xrtx3090-nvlink workload.depth=%d", i ? 61385 : 385);
		s[i] = 1 / decode_of(model, "ktransformers", flags, sets);
	}
	return s[1] - s[0];
}

/* Each GPU reads the cache of its heads, but all of MLA's, which belongs to every head. */
START_TEST(ktransformers_divides_the_cache)
{
	assert_close(context_s("qwen3-30b-a3b", 2), context_s("qwen3-30b-a3b", 1) / 2, 0.01);
	double one = context_s("deepseek-v2-lite", 1), two = context_s("deepseek-v2-lite", 2);
	ck_assert_msg(two < 0.99 * one && two > 0.51 * one, "%g and %g", two, one);
}
END_TEST

START_TEST(quantised_keys_alone)
{
	static const char text[] = "model: qwen3-30b-a3b\nquant: q4_k_m\n" MACHINE
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

/* What reading a context of 60000 more takes. */
static double cache_s(const char *engine, const char *flags, const char *card)
{
	char sets[128];
	double s[2];

	for (int i = 0; i < 2; i++) {
		snprintf(sets, sizeof(sets), "machine.gpu0=%s workload.depth=%d", card, i ? 60385 : 385);
		s[i] = 1 / decode_of("qwen3-30b-a3b", engine, flags, sets);
	}
	return s[1] - s[0];
}

/* Eight heads share keys: each read them for itself, then all of them what is expanded first, on cards with such kernels. */
START_TEST(ik_expands_its_cache)
{
	static const char then[] = "-ngl 99 -fa on -ctk q8_0 -ctv q8_0 --build 2025-05";
	static const char now[] = "-ngl 99 -fa on -ctk q8_0 -ctv q8_0 --build 2025-06";
	static const char card[] = "rtx-5090";
	double old = cache_s("ik_llama.cpp", then, card), plain = cache_s("ik_llama.cpp", "-ngl 99 -fa on --build 2025-06", card);

	/* Of 34 bytes for 32 elements; 34, 64 written and 64 read. */
	assert_close(cache_s("ik_llama.cpp", now, card) / old, (34 + 2 * 64) / (8 * 34.0), 0.02);
	assert_close(plain / old, 64 / (8 * 34.0), 0.05);
	assert_close(cache_s("llama.cpp", now, card), cache_s("llama.cpp", then, card), 1e-9);
	assert_close(cache_s("ik_llama.cpp", now, "p40"), cache_s("ik_llama.cpp", then, "p40"), 1e-9);
}
END_TEST

/* What -mla keeps: latent vectors by default since November 2025; for 1 a copy of them, but for flash attention. */
START_TEST(mla_keeps_what_its_flags_say)
{
	static const char model[] = "deepseek-v2-lite";
	static const struct {
		const char *flags, *as;
	} same[] = {
		{"-ngl 99 -fa on --build 2025-10", "-ngl 99 -fa on -mla 0 --build 2025-10"},
		{"-ngl 99 -fa on --build 2025-12", "-ngl 99 -fa on -mla 3 --build 2025-12"},
		{"-ngl 99 -fa on -mla 1", "-ngl 99 -fa on -mla 3"},
	};
	double copied = decode_of(model, "ik_llama.cpp", "-ngl 99 -fa off -mla 1", "workload.depth=32768");

	for (size_t i = 0; i < ARRAY_LEN(same); i++)
		assert_close(decode_of(model, "ik_llama.cpp", same[i].flags, "workload.depth=32768"),
			decode_of(model, "ik_llama.cpp", same[i].as, "workload.depth=32768"), 1e-12);
	ck_assert_double_lt(copied, 0.99 * decode_of(model, "ik_llama.cpp", "-ngl 99 -fa off -mla 3", "workload.depth=32768"));
	ck_assert_double_lt(decode_of(model, "ik_llama.cpp", same[0].flags, "workload.depth=32768"),
		0.9 * decode_of(model, "ik_llama.cpp", same[0].as, "workload.depth=0"));
}
END_TEST

/* A prompt of 8192 in pieces brings the experts twice. */
START_TEST(ktransformers_takes_pieces)
{
	static const char model[] = "qwen3-30b-a3b\nquant: q4_k_m", rows[] = "prompt: 8192";
	double one = prompt_s(model, "ktransformers", rows, "--kt-method AMXINT4", NULL);
	double two = prompt_s(model, "ktransformers", rows, "--kt-method AMXINT4 --chunked-prefill-size 4096", NULL);

	ck_assert_msg(two > 1.3 * one, "%g and %g", two, one);
	assert_close(prompt_s(model, "ktransformers", rows, "--kt-amx-method AMXINT4 --kt-amx-weight-path x --attention-backend triton", NULL),
		one, 1e-12);
}
END_TEST

/* Before April 2025 the host read which experts of a row are used, three times a layer, and each had kernels of its own: of
   eight, seven more for each of three matrices. Steps with experts had no CUDA graphs for four months more. */
START_TEST(experts_on_gpus_were_launched_one_by_one)
{
	double first = 1 / decode("ik_llama.cpp", "-ngl 99 -fa on --build 2025-03", NULL);
	double later = 1 / decode("ik_llama.cpp", "-ngl 99 -fa on --build 2025-04", NULL);
	double graphs = 1 / decode("ik_llama.cpp", "-ngl 99 -fa on --build 2025-09", NULL);
	double layer_s = (first - later) / 48;

	/* 21 kernels of 2.5 and 1.3 us, and three waits of 8. */
	assert_close(layer_s, 21 * 3.8e-6 + 3 * 8e-6, 0.05);
	/* Some thirty kernels in each. */
	ck_assert_msg(later - graphs > 48 * 20 * 1.3e-6 && later - graphs < 48 * 40 * 1.3e-6, "%g", later - graphs);
	assert_close(decode_of("llama-2-7b", "ik_llama.cpp", "-ngl 99 -fa on --build 2025-03", NULL),
		decode_of("llama-2-7b", "ik_llama.cpp", "-ngl 99 -fa on --build 2025-09", NULL), 1e-9);
	ck_assert_double_lt(decode("llama.cpp", "-ngl 99 --build 2025-04", NULL), 0.8 * decode("llama.cpp", "-ngl 99 --build 2025-05", NULL));
}
END_TEST

/* Without VNNI the fork has AVX2's kernels alone; llama.cpp has others. AMX's processors multiply many rows at a lower clock. */
START_TEST(kernels_of_512_bits_want_vnni)
{
	static const char *const engines[] = {"ik_llama.cpp", "llama.cpp"}, *const isas[] = {"avx2", "avx512", "avx512_vnni", "amx"};
	double s[2][4];

	for (int i = 0; i < 8; i++) {
		char sets[64];
		snprintf(sets, sizeof(sets), "machine.cpu0.isa=%s", isas[i % 4]);
		s[i / 4][i % 4] = prompt_s("llama-2-7b\nquant: q4_0", engines[i / 4], "prompt: 512", "-ngl 0 --no-op-offload", sets);
	}
	assert_close(s[0][1], s[0][0], 1e-9);
	ck_assert_double_lt(s[0][2], 0.8 * s[0][0]);
	ck_assert_double_lt(s[1][1], 0.9 * s[1][0]);
	for (int i = 0; i < 2; i++)
		assert_close(s[i][3], s[i][2] / 0.75, 0.1);
}
END_TEST

static struct result on_card(const char *model, const char *card, const char *engine, const char *flags)
{
	char text[1024];

	snprintf(text, sizeof(text), "%s\nmachine: {%s}\nengine: %s\nworkload: {prompt: 509, generate: 9}\nflags: %s\n", model, card,
		engine, flags);
	return run(text, NULL, false);
}

#define STRIX "from: strix-halo"
#define XTX "gpu0: rx-7900-xtx, cpu0: ryzen-9-7950x, ram: {capacity: 96GiB, bandwidth: 70GB/s}"
#define RTX "gpu0: rtx-4090, cpu0: ryzen-9-7950x, ram: {capacity: 96GiB, bandwidth: 70GB/s}"
#define LLAMA "model: llama-2-7b\nquant: q4_0"

/* On a Radeon 8060S, kyuz0/amd-strix-halo-toolboxes: Vulkan decodes faster, by more where kernels are small; HIP has prompts
   in bfloat16 four times as fast, and was slow without hipBLASLt until October 2025; AMD's own Vulkan driver lost its products in
   February 2026. */
START_TEST(backends_differ)
{
	static const char bf16[] = "model: gemma-3-27b\nquant: bf16", small[] = "model: qwen3-30b-a3b\nquant: q4_k_m";
	const char *const hip = "-ngl 99 -fa on --build 2026-03 --backend hip", *const vulkan = "-ngl 99 -fa on --build 2026-03 --backend vulkan";
	double dense[2] = {on_card(LLAMA, STRIX, "llama.cpp", vulkan).value[RESULT_DECODE_TOK_S],
		on_card(LLAMA, STRIX, "llama.cpp", hip).value[RESULT_DECODE_TOK_S]};
	double experts[2] = {on_card(small, STRIX, "llama.cpp", vulkan).value[RESULT_DECODE_TOK_S],
		on_card(small, STRIX, "llama.cpp", hip).value[RESULT_DECODE_TOK_S]};
	ck_assert_msg(dense[0] > 1.05 * dense[1] && dense[0] < 1.15 * dense[1], "%g and %g", dense[0], dense[1]);
	ck_assert_msg(experts[0] > 1.1 * experts[1] && experts[0] < 1.35 * experts[1], "%g and %g", experts[0], experts[1]);
	double prompt[2] = {on_card(bf16, STRIX, "llama.cpp", hip).value[RESULT_PREFILL_TOK_S],
		on_card(bf16, STRIX, "llama.cpp", vulkan).value[RESULT_PREFILL_TOK_S]};
	ck_assert_msg(prompt[0] > 3 * prompt[1] && prompt[0] < 6 * prompt[1], "%g and %g", prompt[0], prompt[1]);

	double then[3][2];
	static const char *const build[] = {"2025-09", "2025-10", "2026-01"};
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 2; k++) {
			char flags[128];
			snprintf(flags, sizeof(flags), "-ngl 99 -fa on --build %s --backend hip%s", build[i], k ? "-hipblaslt" : "");
			then[i][k] = on_card(LLAMA, STRIX, "llama.cpp", flags).value[RESULT_PREFILL_TOK_S];
		}
	ck_assert_msg(then[0][1] > 2 * then[0][0] && then[0][1] < 4 * then[0][0], "%g and %g", then[0][0], then[0][1]);
	assert_close(then[1][0], then[1][1], 1e-12);
	assert_close(then[2][0], then[2][1], 1e-12);
	ck_assert_msg(then[2][0] > 1.2 * then[1][0] && then[2][0] < 1.6 * then[1][0], "%g and %g", then[1][0], then[2][0]);

	double amdvlk = on_card(LLAMA, STRIX, "llama.cpp", "-ngl 99 --build 2026-02 --backend vulkan-amdvlk").value[RESULT_PREFILL_TOK_S];
	double before = on_card(LLAMA, STRIX, "llama.cpp", "-ngl 99 --build 2026-01 --backend vulkan-amdvlk").value[RESULT_PREFILL_TOK_S];
	ck_assert_msg(before > 3 * amdvlk && before < 6 * amdvlk, "%g and %g", before, amdvlk);
}
END_TEST

static void same_backend(const char *card, const char *engine, const char *flags, const char *backend)
{
	char said[256];

	snprintf(said, sizeof(said), "%s --backend %s", flags, backend);
	assert_close(on_card(LLAMA, card, engine, flags).value[RESULT_DECODE_TOK_S],
		on_card(LLAMA, card, engine, said).value[RESULT_DECODE_TOK_S], 1e-12);
}

/* By card and month; Ollama brings ROCm, which does not know every card; a device's name says it, too. */
START_TEST(a_backend_is_usual)
{
	same_backend(RTX, "llama.cpp", "-ngl 99", "cuda");
	same_backend(XTX, "llama.cpp", "-ngl 99", "vulkan");
	same_backend(XTX, "llama.cpp", "-ngl 99 --build 2024-12", "hip");
	same_backend(XTX, "ollama", "--num_gpu 99", "hip");
	same_backend(STRIX, "ollama", "--num_gpu 99", "vulkan");
	assert_close(on_card(LLAMA, XTX, "llama.cpp", "-ngl 99 -dev ROCm0").value[RESULT_DECODE_TOK_S],
		on_card(LLAMA, XTX, "llama.cpp", "-ngl 99 --backend hip").value[RESULT_DECODE_TOK_S], 1e-12);
	/* Its llama.cpp is of two months before. */
	const char *const flags[] = {"--num_gpu 99 -fa on --backend hip --build 2026-01", "--num_gpu 99 -fa on --backend hip --build 2026-02"};
	double late = on_card(LLAMA, STRIX, "ollama", flags[1]).value[RESULT_PREFILL_TOK_S] / on_card(LLAMA, STRIX, "ollama", flags[0]).value[RESULT_PREFILL_TOK_S];
	ck_assert_msg(late > 1.2 && late < 1.6, "%g", late);
}
END_TEST

TEST_MAIN("llama-family", backends_differ, a_backend_is_usual, cards_without_graphs, small_kernels_were_not_always_fused, slow_cores_are_not_counted, there_were_no_graphs_at_first, sockets_want_a_policy, recurrent_state_was_slow_on_a_cpu, a_prompt_passes_recurrent_layers_token_by_token, ollama_without_layers_leaves_the_gpu_alone, ollama_deals_whole_layers,
	ktransformers_copies_experts_to_the_sockets, ktransformers_divides_the_cache, quantised_keys_alone, ik_streams_experts_late, what_is_laid_out_for_the_cpu_stays_there, fewer_experts_are_faster,
	wrappers_are_llamacpp, graphs_help_where_experts_are_on_the_cpu, ktransformers_overlaps_a_layers_sides,
	ktransformers_brings_experts_layer_by_layer, rows_from_which_weights_cross_can_be_said,
	ollama_streams_as_llamacpp, ktransformers_orders_what_it_brings, sockets_and_tiles_of_ktransformers,
	threads_without_a_block_wait, some_threads_share_a_core, zen_5_has_wider_units, radeons_had_slow_products_of_experts, cards_reach_different_shares,
	intervals_know_of_copies,
	a_file_larger_than_ram_is_paged, a_prompt_that_wants_more_than_ram_holds_reads_all, few_rows_read_the_experts_of_each,
	overridden_weights_were_pageable, quantised_products_were_slower, ik_had_slower_products_on_the_cpu,
	attention_goes_with_its_weights, rows_of_experts_go_through_memory, types_without_products_are_expanded,
	interleaved_types_cross_late,
	ik_unpacks_its_cache_for_each_pass, scores_are_written_without_flash_attention, products_attend_faster_on_a_cpu, all_experts_crossed_at_first,
	flash_attention_of_mla_was_the_cpus, single_products_borrowed_the_gpu, ik_expands_its_cache, mla_keeps_what_its_flags_say,
	ktransformers_takes_pieces, experts_on_gpus_were_launched_one_by_one, kernels_of_512_bits_want_vnni)
