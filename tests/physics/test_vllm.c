/*
 * test_vllm.c - vLLM and SGLang: the order of operations in each way of offloading, zero-copy reads against the closed form,
 * prefixes loaded from host memory.
 */
#include "tests/run_text.h"

#define MACHINE "machine: server-h100\n"
#define DECODE "workload: {prompt: 0, generate: 1, depth: 17}\n"
#define LAYER(i) "kernel " i " attn\nkernel " i " attn\nkernel " i " ffn\n"

START_TEST(resident_layers_follow_each_other)
{
	check_order(SMALL_MODEL, MACHINE "engine: vllm\n" DECODE,
		"kernel -1 embed\n" LAYER("0") LAYER("1") LAYER("2") "kernel -1 output\nstep\n");
}
END_TEST

/* Nothing is copied: the kernels themselves read what lies in host memory. All of a layer's matrices, then. */
START_TEST(zero_copy_has_no_copies)
{
	check_order(SMALL_MODEL, MACHINE "engine: vllm\nflags: {cpu-offload-gb: 1}\n" DECODE,
		"kernel -1 embed\n" LAYER("0") LAYER("1") LAYER("2") "kernel -1 output\nstep\n");
}
END_TEST

START_TEST(without_uva_each_layer_waits_for_its_copy)
{
	static const char want[] = "kernel -1 embed\n"
				   "copy 0 attn\n" LAYER("0") "copy 1 attn\n" LAYER("1") "copy 2 attn\n" LAYER("2")
				   "kernel -1 output\nstep\n";

	check_order(SMALL_MODEL, MACHINE "engine: vllm\nflags: {cpu-offload-gb: 1, disable-uva: yes}\n" DECODE, want);
	check_order(SMALL_MODEL, MACHINE "engine: sglang\nflags: {cpu-offload-gb: 1}\n" DECODE, want);
}
END_TEST

/* group_size 2: of three layers the second alone is not kept. It was there before the first step; when it is through, its
   copy for the next step begins, which ends while the host samples. */
START_TEST(layers_are_brought_ahead)
{
	static const char want[] = "kernel -1 embed\n" LAYER("0") LAYER("1") LAYER("2") "kernel -1 output\n"
				   "copy 1 attn\nstep\n";

	check_order(SMALL_MODEL, MACHINE "engine: vllm\nflags: {offload-group-size: 2}\n" DECODE, want);
	check_order(SMALL_MODEL, MACHINE "engine: sglang\nflags: {offload-group-size: 2}\n" DECODE, want);
}
END_TEST

/* All layers, one slot: the copy of the next layer begins when this one is through, so nothing overlaps. */
START_TEST(one_slot_for_all_layers_does_not_overlap)
{
	check_order(SMALL_MODEL, MACHINE "engine: vllm\nflags: {offload-group-size: 1}\n" DECODE,
		"kernel -1 embed\n" LAYER("0") "copy 1 attn\n" LAYER("1") "copy 2 attn\n" LAYER("2")
		"kernel -1 output\ncopy 0 attn\nstep\n");
}
END_TEST

#define MODEL "model: llama-2-13b\nquant: f16\n"
static double decode_s(const char *engine, const char *flags)
{
	char text[512];

	snprintf(text, sizeof(text), MODEL MACHINE "engine: %s\nflags: %s\nworkload: {prompt: 0, generate: 8, depth: 33}\n", engine,
		flags);
	return 1 / run(text, NULL, true).value[RESULT_DECODE_TOK_S];
}

START_TEST(more_slots_overlap_more)
{
	double one = decode_s("vllm", "{offload-group-size: 1}");
	double two = decode_s("vllm", "{offload-group-size: 1, offload-prefetch-step: 2}");
	double copied = decode_s("vllm", "{cpu-offload-gb: 40, disable-uva: yes}");

	ck_assert_msg(two < 0.99 * one, "%g and %g", two, one);
	/* One slot is the same as copying each layer on the compute stream. */
	assert_close(one, copied, 0.02);
}
END_TEST

/* What came when: an older build is a new one with a flag, or with its host's time. */
START_TEST(builds_are_what_they_were)
{
	static const struct {
		const char *build, *since, *before; /* sets of the build before a change, of that with it, of the latest */
		double more_s;
	} cases[] = {
		{"flags.build=2025-03", "flags.build=2025-04", "flags.disable-uva=yes", 0},
		{"flags.build=2024-08", "flags.build=2024-09", "flags.disable-uva=yes", 10.08e-3 - 1e-3},
		{"flags.build=2023", "flags.build=2023-12", "flags.disable-uva=yes flags.enforce-eager=yes", 10.08e-3 - 1e-3},
	};
	static const char text[] = "model: llama-3.1-8b\nquant: bf16\nmachine: server-h100\nengine: vllm\n"
				   "flags: {cpu-offload-gb: 3}\nworkload: {prompt: 0, generate: 1, depth: 16}\n";

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		double was = run(text, cases[i].build, true).value[RESULT_TPOT_S];
		double like = run(text, cases[i].before, true).value[RESULT_TPOT_S];
		assert_close(was, like + cases[i].more_s, 1e-9);
		double since = run(text, cases[i].since, true).value[RESULT_TPOT_S];
		ck_assert_msg(fabs(since / was - 1) > 1e-3, "%zu: %g and %g", i, since, was);
	}
}
END_TEST

/* A GPU's mappings of host memory reach so far; what lies beyond is read at a lower rate: a quarter as before, three quarters
   in twice the time. */
START_TEST(zero_copy_slows_beyond_its_reach)
{
	static const char text[] = "model: llama-3.1-70b\nquant: bf16\nengine: vllm\nflags: {cpu-offload-gb: 100}\n"
				   "machine: {gpu0: {part: h100-sxm-80gb, link: {part: pcie, gen: 5, width: 16, h2d: 50GB/s}}, "
				   "cpu0: generic-cpu, ram: {capacity: 512GiB, bandwidth: 700GB/s}}\n"
				   "workload: {prompt: 0, generate: 1, depth: 16}\n";
	struct ran ran;
	struct run_options o = {.exact = true};
	struct err err = {0};
	struct result within, beyond;

	load(&ran, text, NULL);
	struct cost *c = ran.scenario->cost;
	c->zero_copy_reach_bytes.measured = 1e12;
	assert_ok(run_scenario(ran.scenario, &o, &ran.arena, &within, NULL, &err), err);
	double far = (double)within.memory.row[hw_find_memory(ran.scenario->machine, "ram")].used_bytes[LEDGER_WEIGHTS];
	c->zero_copy_reach_bytes.measured = 0.25 * far;
	c->zero_copy_beyond.measured = 0.5;
	assert_ok(run_scenario(ran.scenario, &o, &ran.arena, &beyond, NULL, &err), err);
	ck_assert(far > 107e9);
	assert_close(beyond.value[RESULT_TPOT_S] - within.value[RESULT_TPOT_S],
		0.75 * far / (50e9 * hw_num_value(&c->zero_copy_pcie)), 1e-3);
	arena_release(&ran.arena);
}
END_TEST

/* A kernel whose weights are behind the link takes as long as the slowest of link, host memory and arithmetic. */
START_TEST(zero_copy_is_the_slowest_of_three)
{
	static const struct {
		double flops;
		double ram, link, share;
	} cases[] = {
		{1, 700e9, 50e9, 0.923},          /* the link, of whose rate loads reach a share */
		{1, 23.85e9, 50e9, 0.923},        /* host memory */
		{2.385e15, 700e9, 50e9, 0.923},   /* arithmetic */
	};
	const double bytes = 2.385e9;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char text[512];
		struct err err = {0};
		struct hw_machine *m;
		struct platform p;
		struct arena a;
		struct sim sim;
		struct platform_path path;
		struct sim_op op;
		struct yaml_node *node;

		arena_init(&a, NULL, NULL);
		snprintf(text, sizeof(text),
			"{gpu0: {part: h100-sxm-80gb, link: {part: pcie, gen: 5, width: 16, h2d: %gGB/s}}, cpu0: ryzen-9-7950x, ram: {capacity: 64GiB, bandwidth: "
			"%gGB/s}}", cases[i].link / 1e9, cases[i].ram / 1e9);
		assert_ok(yaml_read_text(text, strlen(text), "machine", &a, &node, &err), err);
		assert_ok(hw_machine_load_node(node, &a, &m, &err), err);
		platform_init(&p, m, &a);
		struct sim_config config = {.n_resources = p.n_resources, .resource_name = p.resource_name,
			.capacity = p.capacity, .n_units = p.n_units, .unit_name = p.unit_name, .unit_places = p.unit_places,
			.max_hops = PLATFORM_MAX_HOPS};
		sim_init(&sim, &config, &a);
		struct platform_work work = {.bytes = bytes, .flops = cases[i].flops, .dtype = HW_FP16};
		platform_kernel_far(&p, hw_find_device(m, "gpu0"), hw_find_memory(m, "ram"), cases[i].share, 1, &work, &path, &op);
		sim_commit(&sim, sim_add(&sim, &op));
		assert_ok(sim_run(&sim, &err), err);
		double fp16 = hw_num_value(&m->devices[hw_find_device(m, "gpu0")].flops_s[HW_FP16]);
		double want = fmax(fmax(bytes / (cases[i].share * cases[i].link), bytes / cases[i].ram), cases[i].flops / fp16);
		assert_close(sim_seconds(sim.now), want, 1e-9);
		arena_release(&a);
	}
}
END_TEST

START_TEST(offload_counts_for_each_gpu)
{
	struct result r = run("model: llama-3.1-70b\nquant: bf16\nmachine: server-8xh100\nengine: vllm\n"
			      "flags: -tp 2 --cpu-offload-gb 10\nworkload: {prompt: 16, generate: 2}\n", NULL, true);
	double ram = 0;

	for (int i = 0; i < r.memory.n; i++)
		if (strcmp(r.memory.row[i].name, "ram") == 0)
			ram = (double)r.memory.row[i].used_bytes[LEDGER_WEIGHTS] / 1073741824.0;
	/* A parameter more at most: 8192 x 28672 of 16 bits. */
	ck_assert_msg(ram >= 20 && ram < 20 + 0.4376, "%g", ram);
}
END_TEST

static double first_token_s(const char *sets)
{
	return run("model: llama-3.1-8b\nquant: bf16\n" MACHINE "engine: vllm\nflags: {kv-offloading-size: 64}\n"
		   "workload: {prompt: 16, generate: 1, depth: 9984}\n", sets, true).value[RESULT_TTFT_S];
}

/* 9984 tokens of 128 KiB: their blocks of 16, each hashed and with its fixed part, then the bytes at the link's rate; one more
   pass of the scheduler sees that they are there. */
START_TEST(prefix_is_loaded_before_its_request_runs)
{
	struct ran ran;

	load(&ran, "model: llama-3.1-8b\nquant: bf16\n" MACHINE "engine: vllm\nworkload: {prompt: 16, generate: 1}\n", NULL);
	const struct hw_machine *m = ran.scenario->machine;
	int link[HW_MAX_HOPS];
	bool forward[HW_MAX_HOPS];
	ck_assert_int_eq(hw_route(m, hw_find_memory(m, "ram"), hw_find_memory(m, "gpu0"), link, forward), 1);
	double bytes = 9984.0 * 131072;
	const struct cost *c = ran.scenario->cost;
	double want = 624 * (hw_num_value(&c->host_block_s) + hw_num_value(&c->copy_submit_s)) + hw_num_value(&c->step_s) +
		hw_num_value(&m->links[link[0]].latency_s) + bytes / hw_rate_at(&m->links[link[0]].h2d, bytes);
	double with = first_token_s(NULL), without = first_token_s("flags.kv-offloading-size=0");
	assert_close(with - without, want, 1e-3);
	arena_release(&ran.arena);
}
END_TEST

/* Before 2026-09 a pass is launched when the loads of all its sequences were handed over: 64 of them, far behind their arrival. */
START_TEST(loads_are_handed_over_before_a_pass)
{
	static const char text[] = "model: llama-3.1-8b\nquant: bf16\n" MACHINE "engine: vllm\nflags: {kv-offloading-size: 64}\n"
				   "workload: {batch: 64, prompt: 128, generate: 1, depth: 16}\n";
	static const char *const builds[] = {"flags.build=2026-08", "flags.build=2026-09"};

	for (int i = 0; i < 2; i++) {
		struct ran ran;
		struct run_options o = {.exact = true};
		struct err err = {0};
		struct result r[2];
		load(&ran, text, builds[i]);
		for (int k = 0; k < 2; k++) {
			ran.scenario->cost->host_load_s.measured = k ? 20e-3 : 10e-3;
			assert_ok(run_scenario(ran.scenario, &o, &ran.arena, &r[k], NULL, &err), err);
		}
		assert_close(r[1].value[RESULT_TTFT_S] - r[0].value[RESULT_TTFT_S], i == 0 ? 64 * 10e-3 : 0, 1e-6);
		arena_release(&ran.arena);
	}
}
END_TEST

/* HiCache: a layer waits for its own part of the prefix alone, and what is new goes back when the pass is through. */
START_TEST(each_layer_waits_for_its_part_of_the_prefix)
{
	check_order(SMALL_MODEL, "machine: {from: server-h100, set: {gpu0.link.h2d: 1GB/s}}\nengine: sglang\n"
		"flags: {enable-hierarchical-cache: yes}\nworkload: {prompt: 9, generate: 1, depth: 4096}\n",
		"kernel -1 embed\n" "copy 0 attn\n" LAYER("0") "copy 1 attn\n" LAYER("1") "copy 2 attn\n" LAYER("2")
		"kernel -1 output\ncopy -1 attn\nstep\n");
}
END_TEST

/* What is done for a request comes once, before its first pass, and before what is loaded for it; not where there is no prompt. */
START_TEST(a_request_costs_its_first_token)
{
	static const char *const engines[] = {"engine: vllm\n", "engine: vllm\nflags: {kv-offloading-size: 9}\n",
		"engine: sglang\n", "engine: sglang\nflags: {enable-hierarchical-cache: yes}\n"};

	for (size_t i = 0; i < ARRAY_LEN(engines); i++) {
		struct ran ran;
		struct run_options o = {.exact = true};
		struct err err = {0};
		struct result r[2];
		char text[512];
		snprintf(text, sizeof(text), "model: llama-3.1-8b\nquant: bf16\n" MACHINE
			"%sworkload: {prompt: 9000, generate: 3, depth: 512}\n", engines[i]);
		load(&ran, text, NULL);
		for (int k = 0; k < 2; k++) {
			ran.scenario->cost->request_s.measured = k ? 31e-3 : 11e-3;
			assert_ok(run_scenario(ran.scenario, &o, &ran.arena, &r[k], NULL, &err), err);
		}
		assert_close(r[1].value[RESULT_TTFT_S] - r[0].value[RESULT_TTFT_S], 20e-3, 1e-9);
		assert_close(r[1].value[RESULT_TPOT_S], r[0].value[RESULT_TPOT_S], 1e-9);
		arena_release(&ran.arena);
	}
}
END_TEST

/* So the first token comes as soon as the slower of the two allows, but for one layer; without the tier the prefix is there. */
START_TEST(prefix_is_loaded_while_layers_run)
{
	static const char text[] = "model: llama-3.1-8b\nquant: bf16\n" MACHINE "engine: sglang\n"
				   "flags: {enable-hierarchical-cache: yes}\n";
	static const uint64_t prompts[] = {16, 512, 4096};
	const double bytes = 32016.0 * 131072, load_s = bytes / 55.5e9, request_s = 7e-3;

	for (size_t i = 0; i < ARRAY_LEN(prompts); i++) {
		char all[512];
		snprintf(all, sizeof(all), "%sworkload: {prompt: %llu, generate: 1, depth: 32016}\n", text,
			(unsigned long long)prompts[i]);
		double with = run(all, NULL, true).value[RESULT_TTFT_S];
		double compute = run(all, "flags.enable-hierarchical-cache=no", true).value[RESULT_TTFT_S];
		compute -= request_s; /* comes before both */
		double least = request_s + fmax(load_s, compute);
		ck_assert_msg(with > least && with < least + (load_s + compute) / 32 + 1.5e-3, "%g, %g and %g", with, load_s, compute);
	}
}
END_TEST

TEST_MAIN("vllm", resident_layers_follow_each_other, zero_copy_has_no_copies, without_uva_each_layer_waits_for_its_copy,
	layers_are_brought_ahead, one_slot_for_all_layers_does_not_overlap, more_slots_overlap_more, builds_are_what_they_were,
	zero_copy_slows_beyond_its_reach, zero_copy_is_the_slowest_of_three, offload_counts_for_each_gpu, prefix_is_loaded_before_its_request_runs,
	loads_are_handed_over_before_a_pass,
	each_layer_waits_for_its_part_of_the_prefix, a_request_costs_its_first_token, prefix_is_loaded_while_layers_run)
