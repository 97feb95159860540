/*
 * test_peers.c - what one GPU sends another: over NVLink where there is one, and then not through host memory.
 */
#include "tests/run_text.h"

#define GPUS "{gpu0: rtx-3090, gpu1: rtx-3090, ram: {capacity: 64GiB, bandwidth: 42GB/s}, cpu0: ryzen-9-5950x%s}"
#define MODEL "model: llama-2-13b\nquant: q8_0\nengine: llama.cpp\nworkload: {prompt: 64, generate: 2}\nflags: -ngl 99\n"
/* 64 rows of the prompt and one of the decode step cross from layer 20 to layer 21. */
#define CROSSING (65 * 5120 * 4.0)

static struct result on(const char *nvlink)
{
	char text[512];

	snprintf(text, sizeof(text), MODEL "machine: " GPUS "\n", nvlink);
	return run(text, NULL, true);
}

static double bytes(const struct result *r, const char *name)
{
	for (int i = 0; i < r->n_resources; i++)
		if (strcmp(r->resource[i].name, name) == 0)
			return r->resource[i].bytes;
	ck_abort_msg("no resource %s", name);
}

START_TEST(a_bridge_carries_what_ram_carried)
{
	struct result with = on(", nvlink: nvlink-bridge-ga102"), without = on("");

	assert_close(bytes(&with, "gpu1.nvlink.h2d"), CROSSING, 1e-12);
	ck_assert(bytes(&with, "gpu1.nvlink.d2h") == 0);
	/* Token embeddings enter gpu0 from RAM in both; without a bridge RAM is written and read once more. */
	assert_close(bytes(&without, "ram") - bytes(&with, "ram"), 2 * CROSSING, 1e-9);
	assert_close(bytes(&without, "gpu0.link.d2h"), CROSSING, 1e-12);
	assert_close(bytes(&without, "gpu1.link.h2d"), CROSSING, 1e-12);
	ck_assert(bytes(&with, "gpu0.link.d2h") == 0 && bytes(&with, "gpu1.link.h2d") == 0);
	ck_assert(with.value[RESULT_TTFT_S] < without.value[RESULT_TTFT_S]);
}
END_TEST

START_TEST(a_switch_is_left_and_entered)
{
	struct result r = on(", nvlink: nvlink-4");

	assert_close(bytes(&r, "gpu0.nvlink.d2h"), CROSSING, 1e-12);
	assert_close(bytes(&r, "gpu1.nvlink.h2d"), CROSSING, 1e-12);
	assert_close(bytes(&r, "gpu0.nvlink.both"), CROSSING, 1e-12);
	ck_assert(bytes(&r, "gpu0.link.d2h") == 0);
}
END_TEST

/* Copies from several GPUs into one share its port; copies between different pairs do not disturb each other. */
START_TEST(ports_of_a_switch_are_shared)
{
	struct err err = {0};
	struct hw_machine *m;
	struct platform p;
	struct arena a;

	arena_init(&a, NULL, NULL);
	assert_ok(hw_machine_load("server-8xh100", &a, &m, &err), err);
	platform_init(&p, m, &a);
	static const struct {
		int from[2], to[2];
		double seconds;
	} cases[] = {
		{{1, 2}, {0, 0}, 2 * 38e9 / 380e9},
		{{0, 0}, {1, 2}, 2 * 38e9 / 380e9},
		{{0, 2}, {1, 3}, 38e9 / 380e9},
		{{0, 1}, {1, 0}, 2 * 38e9 / 745e9}, /* the two-way sum of each port */
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct sim sim;
		struct sim_config config = {.n_resources = p.n_resources, .resource_name = p.resource_name,
			.capacity = p.capacity, .max_hops = PLATFORM_MAX_HOPS};
		sim_init(&sim, &config, &a);
		for (int k = 0; k < 2; k++) {
			struct platform_path path;
			struct sim_op op;
			platform_copy(&p, cases[i].from[k], cases[i].to[k], 38e9, true, false, &path, &op);
			op.unit = SIM_NONE; /* both at once, whatever copy engines there are */
			sim_commit(&sim, sim_add(&sim, &op));
		}
		assert_ok(sim_run(&sim, &err), err);
		assert_close(sim_seconds(sim.now), cases[i].seconds, 1e-9);
	}
	arena_release(&a);
}
END_TEST

/* Two modules: a GPU's way to its own memory, to both in turn, to the other's. The part that lies there comes at 133 GB/s and
   the rest beside it; GPU to GPU goes through host memories at less than either. */
START_TEST(another_module_is_further_away)
{
	static const struct {
		const char *numa;
		double share;
	} cases[] = {{"local", 0}, {"interleave", 0.5}, {"remote", 1}};
	const double bytes = 38.5e9, remote = 133e9, peer = 57.7e9, kernels = 1.66, near_kernels = 0.88;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ran ran;
		struct placement p;
		struct platform pf;
		struct platform_path path;
		struct sim_op op;
		struct err err = {0};
		char sets[64];

		snprintf(sets, sizeof(sets), "machine.ram.numa=%s", cases[i].numa);
		load(&ran, "model: llama-2-13b\nquant: f16\nengine: vllm\nmachine: gh200-dual\nworkload: {generate: 1}\n", sets);
		const struct hw_machine *m = ran.scenario->machine;
		int ram = hw_find_memory(m, "ram"), gpu = hw_find_memory(m, "gpu1"), device = hw_find_device(m, "gpu1");
		const struct hw_link *link = hw_host_link(m, gpu);
		assert_ok(run_place(ran.scenario, &p, &ran.arena, &err), err);
		platform_init(&pf, m, &ran.arena);
		pf.remote_share = p.remote_share;
		double share = cases[i].share, far = share > 0 ? remote / share : INFINITY;
		double h2d = hw_num_value(&link->h2d.num), d2h = hw_num_value(&link->d2h.num);

		platform_copy(&pf, ram, gpu, bytes, true, false, &path, &op);
		assert_close(op.cap > 0 ? op.cap : h2d, fmin(h2d, far), 1e-12);
		platform_copy(&pf, gpu, ram, bytes, true, false, &path, &op);
		assert_close(op.cap > 0 ? op.cap : d2h, fmin(d2h, far), 1e-12);
		platform_send(&pf, hw_find_memory(m, "gpu0"), gpu, bytes, false, &path, &op);
		assert_close(op.cap, peer, 1e-12);
		struct platform_work work = {.bytes = bytes, .dtype = HW_FP16};
		platform_kernel_far(&pf, device, ram, near_kernels, kernels, &work, &path, &op);
		assert_close(op.cap, fmin(near_kernels * h2d, kernels * far), 1e-12);
		arena_release(&ran.arena);
	}
}
END_TEST

/* Whose memory a process is bound to is the launcher's to say; without it, the machine's. */
START_TEST(binding_says_whose_memory)
{
	static const struct {
		const char *sets;
		double first, second; /* share of another's, by GPU */
	} cases[] = {
		{"machine.ram.numa=local", 0, 0},
		{"machine.ram.numa=remote", 1, 1},
		{"machine.ram.numa=remote flags.numa-bind=yes", 0, 0},
		{"flags.numa-bind-nodes=1,0", 1, 1},
		{"flags.numa-bind-nodes=0,0", 0, 1},
		{"machine.ram.numa=interleave flags.numa-bind-nodes=0,1", 0, 0},
		{"engine=sglang flags.numa-node=1,1", 1, 0},
		{"engine=accelerate machine.ram.numa=interleave", 0.5, 0.5},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ran ran;
		struct placement p;
		struct err err = {0};
		bool divides = !strstr(cases[i].sets, "accelerate");
		char sets[160];

		snprintf(sets, sizeof(sets), "%s%s", cases[i].sets,
			!divides ? "" : strstr(cases[i].sets, "sglang") ? " flags.tp-size=2" : " flags.tensor-parallel-size=2");
		load(&ran, "model: llama-2-13b\nquant: f16\nengine: vllm\nmachine: gh200-dual\nworkload: {generate: 1}\n", sets);
		assert_ok(run_place(ran.scenario, &p, &ran.arena, &err), err);
		const struct hw_machine *m = ran.scenario->machine;
		assert_close(1 + p.remote_share[hw_find_memory(m, "gpu0")], 1 + cases[i].first, 1e-12);
		assert_close(1 + p.remote_share[hw_find_memory(m, "gpu1")], 1 + cases[i].second, 1e-12);
		ck_assert(p.remote_share[hw_find_memory(m, "ram")] == 0);
		arena_release(&ran.arena);
	}
}
END_TEST

TEST_MAIN("peers", a_bridge_carries_what_ram_carried, a_switch_is_left_and_entered, ports_of_a_switch_are_shared,
	another_module_is_further_away, binding_says_whose_memory)
