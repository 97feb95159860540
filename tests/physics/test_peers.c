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

TEST_MAIN("peers", a_bridge_carries_what_ram_carried, a_switch_is_left_and_entered, ports_of_a_switch_are_shared)
