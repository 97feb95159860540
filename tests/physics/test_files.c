/*
 * test_files.c - what engines read from files through the page cache: at which rate, how often from the drive.
 */
#include "sim/exec/files.h"
#include "tests/run_text.h"

#define MODEL "model: llama-3.2-1b\nquant: bf16\n"
#define MACHINE(ram) "machine: {from: desktop-rtx4090-ddr5, set: {ram.capacity: " ram ", nvme0.part: sata-ssd}}\n"
/* Two tokens behind a prompt: three passes. */
#define WORK "workload: {prompt: 24, generate: 3}\n"

/* By one thread out of the page cache, and before that from the drive: whichever is slower. */
START_TEST(a_thread_or_the_drive_sets_the_pace)
{
	static const struct {
		const char *drive;
		double rate, expect; /* of the thread; of both. B/s */
		bool kept;
	} cases[] = {
		{"sata-ssd", 3.5e9, 0.54e9, false},
		{"sata-ssd", 3.5e9, 3.5e9, true},
		{"nvme-gen5", 3.5e9, 3.5e9, false},
		{"nvme-gen5", 37e9, 10.5e9, false},
	};
	const double bytes = 7.7e9;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ran ran;
		struct platform p;
		struct platform_path path;
		struct sim_op op;
		struct sim sim;
		struct err err = {0};
		char sets[64];

		snprintf(sets, sizeof(sets), "machine.nvme0.part=%s", cases[i].drive);
		load(&ran, MODEL MACHINE("64GiB") "engine: airllm\n" WORK, sets);
		const struct hw_machine *m = ran.scenario->machine;
		platform_init(&p, m, &ran.arena);
		struct sim_config config = {.n_resources = p.n_resources, .resource_name = p.resource_name,
			.capacity = p.capacity, .n_units = p.n_units, .unit_name = p.unit_name, .unit_places = p.unit_places,
			.max_hops = PLATFORM_MAX_HOPS};
		sim_init(&sim, &config, &ran.arena);
		platform_read_file(&p, hw_find_memory(m, "nvme0"), bytes, cases[i].rate, cases[i].kept, false, &path, &op);
		sim_commit(&sim, sim_add(&sim, &op));
		assert_ok(sim_run(&sim, &err), err);
		assert_close(sim_seconds(sim.now), bytes / cases[i].expect, 1e-9);
		arena_release(&ran.arena);
	}
}
END_TEST

static double from_drive(const struct result *r)
{
	for (int i = 0; i < r->n_resources; i++)
		if (strcmp(r->resource[i].name, "nvme0.link.d2h") == 0)
			return r->resource[i].bytes;
	return 0;
}

static double files_bytes(const char *text, const char *sets)
{
	struct ran ran;
	struct placement p;
	struct err err = {0};

	load(&ran, text, sets);
	assert_ok(run_place(ran.scenario, &p, &ran.arena, &err), err);
	double bytes = p.files.bytes;
	arena_release(&ran.arena);
	return bytes;
}

/* Files that RAM has room for are read once, or, warm, never; larger ones in each of three passes, warm or not: 2.5 GB beside
   weights in 3.5 GiB (and FlexGen's buffers, in 12). */
START_TEST(a_second_pass_finds_what_fits)
{
	static const char *const engines[] = {
		"engine: airllm\n",
		"engine: accelerate\nflags: {offload_folder: x, max_memory: {0: 1GiB, cpu: 0GiB}}\n",
		"engine: flexgen\nflags: --percent 0 0 100 0 100 0 --gpu-batch-size 1\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(engines); i++) {
		char small[512], large[512];
		const char *quant = i == 2 ? "model: opt-1.3b\nquant: f16\n" : MODEL;
		snprintf(large, sizeof(large), "%s" MACHINE("24GiB") "%s" WORK, quant, engines[i]);
		snprintf(small, sizeof(small), "%s" MACHINE("%s") "%s" WORK, quant, i == 2 ? "12GiB" : "3500MiB", engines[i]);
		double bytes = files_bytes(large, NULL);
		ck_assert_msg(bytes > 2e9, "%g", bytes);
		struct result cold = run(large, NULL, true), warm = run(large, "flags.page-cache=warm", true);
		struct result thrashed = run(small, "flags.page-cache=warm", true);
		assert_close(from_drive(&cold), bytes, 1e-9);
		ck_assert_msg(from_drive(&warm) == 0, "%g", from_drive(&warm));
		assert_close(from_drive(&thrashed), 3 * bytes, 1e-9);
	}
}
END_TEST

/* FlexGen's cache on disk was written a moment ago: what RAM keeps is written back, and never read from the drive. */
START_TEST(what_was_written_is_still_there)
{
	static const char text[] = "model: opt-1.3b\nquant: f16\n" MACHINE("24GiB")
		"engine: flexgen\nflags: --percent 100 0 0 0 100 0 --gpu-batch-size 3\nworkload: {batch: 3, prompt: 57, generate: 4}\n";
	struct result kept = run(text, NULL, true), read = run(text, "machine.ram.capacity=10260MiB", true);

	ck_assert_msg(from_drive(&kept) == 0, "%g", from_drive(&kept));
	ck_assert(from_drive(&read) > 0);
	for (int i = 0; i < kept.n_resources; i++)
		if (strcmp(kept.resource[i].name, "nvme0.link.h2d") == 0)
			ck_assert(kept.resource[i].bytes > 0);
	ck_assert(kept.value[RESULT_TPOT_S] < read.value[RESULT_TPOT_S]);
}
END_TEST

/* O_DIRECT does not look there: DeepSpeed reads everything in each pass, whatever RAM is free. */
START_TEST(direct_reads_find_nothing)
{
	static const char text[] = "model: opt-1.3b\nquant: f16\n" MACHINE("256GiB")
		"engine: zero-inference\nflags: --disk-offload\n" WORK;
	struct result r = run(text, NULL, true);

	ck_assert(files_bytes(text, NULL) == 0);
	ck_assert_msg(from_drive(&r) > 3 * 2.4e9, "%g", from_drive(&r));
}
END_TEST

TEST_MAIN("files", a_thread_or_the_drive_sets_the_pace, a_second_pass_finds_what_fits, what_was_written_is_still_there,
	direct_reads_find_nothing)
