/* The engine that caches experts: what it moves, in which order, and how long that takes. */
#include <math.h>

#include "sim/cache/expert_plan.h"
#include "tests/run_text.h"

#define MACHINE "machine: desktop-rtx4090-ddr5\n"
#define MODEL "model: qwen3-30b-a3b\nquant: q8_0\n"
#define CACHED MODEL MACHINE "engine: expert-cache\n"

static double moved(const struct result *r, const char *resource)
{
	for (int i = 0; i < r->n_resources; i++)
		if (strcmp(r->resource[i].name, resource) == 0)
			return r->resource[i].bytes;
	ck_abort_msg("no resource '%s'", resource);
}

/* Nothing is in at the start: both experts of the first layer cross, one after another, then of the second. */
START_TEST(a_miss_is_copied_before_its_kernel)
{
	static const char want[] = "kernel -1 embed\n"
				   "copy 0 attn\nkernel 0 attn\nkernel 0 attn\nkernel 0 router\n"
				   "copy 0 experts\ncopy 0 experts\nkernel 0 experts\n"
				   "kernel 1 attn\nkernel 1 attn\nkernel 1 router\n"
				   "copy 1 experts\ncopy 1 experts\nkernel 1 experts\n"
				   "kernel -1 output\n"
				   "step\n";

	check_order(SMALL_MOE, MACHINE "engine: expert-cache\nworkload: {prompt: 0, generate: 1, depth: 17}\n", want);
}
END_TEST

/* The CPU computes with both; hidden states go and come back, and the two are copied behind for the next time. */
START_TEST(a_miss_is_computed_and_copied_behind)
{
	static const char want[] = "kernel -1 embed\n"
				   "copy 0 attn\nkernel 0 attn\nkernel 0 attn\nkernel 0 router\n"
				   "copy 0 experts\nkernel 0 experts\ncopy 0 experts\n"
				   "kernel 1 attn\nkernel 1 attn\nkernel 1 router\ncopy 1 experts\n"
				   "copy 0 experts\nkernel 1 experts\ncopy 0 experts\n" /* of the layer before, meanwhile */
				   "copy 1 experts\nkernel -1 output\n"
				   "step\n"
				   "copy 1 experts\ncopy 1 experts\n";

	check_order(SMALL_MOE, MACHINE "engine: expert-cache\nworkload: {prompt: 0, generate: 1, depth: 17}\n"
				       "flags: {miss: cpu}\n", want);
}
END_TEST

/* From the drive through RAM to the GPU. */
START_TEST(a_miss_is_read_before_it_is_copied)
{
	static const char want[] = "kernel -1 embed\n"
				   "copy 0 attn\nkernel 0 attn\nkernel 0 attn\nkernel 0 router\n"
				   "copy 0 experts\ncopy 0 experts\ncopy 0 experts\ncopy 0 experts\nkernel 0 experts\n"
				   "kernel 1 attn\nkernel 1 attn\nkernel 1 router\n"
				   "copy 1 experts\ncopy 1 experts\ncopy 1 experts\ncopy 1 experts\nkernel 1 experts\n"
				   "kernel -1 output\n"
				   "step\n";

	check_order(SMALL_MOE, MACHINE "engine: expert-cache\nworkload: {prompt: 0, generate: 1, depth: 17}\n"
				       "flags: {gpu-slots: 3, ram-slots: 5}\n", want);
}
END_TEST

/* What the caches say was read is what crossed the link, but for hidden states of the embedding. */
static void bytes_agree(const char *sets)
{
	struct result r = run(CACHED "workload: {prompt: 0, generate: 23, depth: 100}\n", sets, true);
	double hidden = 23.0 * 2048 * 2;

	ck_assert_int_gt(r.n_caches, 0);
	assert_close(moved(&r, "gpu0.link.h2d"), (double)r.cache[0].read_bytes + hidden, 1e-9);
	if (r.n_caches == 2)
		assert_close(moved(&r, "nvme0.link.d2h"), (double)r.cache[1].read_bytes, 1e-9);
}

START_TEST(what_is_read_crosses_the_link)
{
	bytes_agree("flags.gpu-slots=17");
	bytes_agree("flags.gpu-slots=17 flags.lookahead=0.6");
	bytes_agree("flags.gpu-cache=5GiB flags.policy=lfu");
	bytes_agree("flags.gpu-slots=17 flags.ram-slots=53");
	bytes_agree("flags.gpu-slots=17 flags.ram-slots=53 flags.lookahead=0.6");
}
END_TEST

START_TEST(more_slots_never_read_more)
{
	uint64_t before = UINT64_MAX;

	for (int slots = 8; slots <= 128; slots += 24) {
		char sets[64];
		snprintf(sets, sizeof(sets), "flags.gpu-slots=%d machine.gpu0.memory=48GiB", slots);
		struct result r = run(CACHED "workload: {prompt: 0, generate: 40, depth: 100}\n", sets, true);
		ck_assert_uint_le(r.cache[0].read_bytes, before);
		before = r.cache[0].read_bytes;
	}
}
END_TEST

/* Once every expert has come, a step takes what it takes when all are on the GPU: the same kernels, and a wait a layer for
   the router's choice. */
START_TEST(all_in_is_as_fast_as_resident)
{
	struct result few = run(CACHED "workload: {batch: 64, prompt: 0, generate: 12, depth: 100}\nrouting: uniform\n",
		"flags.gpu-slots=128 machine.gpu0.memory=48GiB", true);
	struct result more = run(CACHED "workload: {batch: 64, prompt: 0, generate: 13, depth: 100}\nrouting: uniform\n",
		"flags.gpu-slots=128 machine.gpu0.memory=48GiB", true);

	ck_assert_uint_eq(few.cache[0].read_bytes, more.cache[0].read_bytes);
	struct result all = run(MODEL MACHINE "engine: llama.cpp\nflags: -ngl 99\n"
		"workload: {batch: 64, prompt: 0, generate: 1, depth: 111}\nrouting: uniform\n", "machine.gpu0.memory=48GiB", true);
	double step = more.value[RESULT_TOTAL_S] - few.value[RESULT_TOTAL_S];
	assert_close(step, all.value[RESULT_TOTAL_S], 0.1);
}
END_TEST

START_TEST(belady_reads_least)
{
	static const char *const others[] = {"lru", "lfu"};
	const char *scenario = CACHED "workload: {prompt: 0, generate: 60, depth: 100}\n";
	struct result bound = run(scenario, "flags.gpu-slots=24 flags.policy=belady", true);

	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		char sets[64];
		snprintf(sets, sizeof(sets), "flags.gpu-slots=24 flags.policy=%s", others[i]);
		struct result r = run(scenario, sets, true);
		ck_assert_uint_lt(bound.cache[0].read_bytes, r.cache[0].read_bytes);
	}
}
END_TEST

/* A guess that is always right is fetched before it is asked for: nothing is missed, the same bytes cross. */
START_TEST(a_perfect_guess_misses_nothing)
{
	const char *scenario = CACHED "workload: {prompt: 0, generate: 40, depth: 100}\n";
	struct result without = run(scenario, "flags.gpu-slots=24", true);
	struct result with = run(scenario, "flags.gpu-slots=24 flags.lookahead=1", true);

	ck_assert_uint_eq(with.cache[0].hits, with.cache[0].lookups);
	ck_assert_uint_eq(with.cache[0].read_bytes, without.cache[0].read_bytes);
	ck_assert(with.value[RESULT_DECODE_TOK_S] > without.value[RESULT_DECODE_TOK_S]);
}
END_TEST

/* Wherever experts are, and whoever guesses and computes: no faster than their bytes can move. */
START_TEST(none_is_faster_than_its_bound)
{
	static const char *const places[] = {"flags.gpu-cache=0 flags.ram-cache=0", "flags.gpu-slots=5 flags.ram-cache=0",
		"flags.gpu-cache=0 flags.ram-slots=70", "flags.gpu-slots=5 flags.ram-slots=70", "flags.gpu-cache=0", "flags.gpu-slots=70"};
	static const char *const others[] = {"flags.miss=copy", "flags.miss=cpu flags.policy=lfu", "flags.miss=split flags.policy=static",
		"flags.lookahead=1", "flags.lookahead=0.6 flags.policy=belady"};

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		for (size_t k = 0; k < ARRAY_LEN(others); k++) {
			char sets[160];
			snprintf(sets, sizeof(sets), "%s %s", places[i], others[k]);
			struct result r = run(CACHED "workload: {prompt: 0, generate: 5, depth: 100}\n", sets, true);
			if (!(r.value[RESULT_DECODE_TOK_S] <= r.value[RESULT_UPPER_BOUND_TOK_S]))
				ck_abort_msg("%s: %g tok/s, above the bound of %g", sets, r.value[RESULT_DECODE_TOK_S],
					r.value[RESULT_UPPER_BOUND_TOK_S]);
		}
	}
}
END_TEST

/* With its bandwidth, whatever was guessed ahead. */
START_TEST(what_is_on_the_drive_is_read_from_it)
{
	static const char *const sets[] = {"flags.gpu-cache=0 flags.ram-cache=0", "flags.gpu-cache=0 flags.ram-slots=9 flags.lookahead=1",
		"flags.gpu-cache=0 flags.ram-slots=9 flags.lookahead=1 flags.miss=cpu"};

	for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
		char slow[160];
		snprintf(slow, sizeof(slow), "%s machine.nvme0.read=2.385GB/s", sets[i]);
		struct result r = run(CACHED "workload: {prompt: 0, generate: 8, depth: 100}\n", slow, true);
		double read_bytes = moved(&r, "nvme0.link.d2h");
		ck_assert_double_gt(read_bytes, 1e9);
		ck_assert_double_ge(r.value[RESULT_TOTAL_S], read_bytes / 2.385e9);
	}
}
END_TEST

/* A size of more bytes than can be counted is not none. */
START_TEST(a_cache_larger_than_everything_holds_everything)
{
	static const char *const sizes[] = {"flags.gpu-cache=1e18TB", "flags.gpu-cache=1e30GiB", "flags.gpu-slots=65536"};

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		char sets[160];
		snprintf(sets, sizeof(sets), "%s machine.gpu0.memory=48GiB", sizes[i]);
		struct result r = run(CACHED "workload: {batch: 500, prompt: 0, generate: 2, depth: 0}\nrouting: uniform\n", sets, true);
		ck_assert_uint_eq(r.cache[0].lookups, 2 * 48 * 128);
		ck_assert_double_eq(r.cache[0].decode_hit_rate, 0.5);
	}
}
END_TEST

/* Windows stand for all steps about as well as all do. */
START_TEST(windows_stand_for_steps)
{
	const char *scenario = CACHED "workload: {prompt: 0, generate: 2500, depth: 0}\n";
	struct result exact = run(scenario, "flags.gpu-slots=24", true);
	struct result skipped = run(scenario, "flags.gpu-slots=24", false);

	assert_close(skipped.value[RESULT_DECODE_TOK_S], exact.value[RESULT_DECODE_TOK_S], 0.01);
	ck_assert_uint_eq(skipped.cache[0].hits, exact.cache[0].hits);
}
END_TEST

TEST_MAIN("expertcache", a_miss_is_copied_before_its_kernel, a_miss_is_computed_and_copied_behind,
	a_miss_is_read_before_it_is_copied, what_is_read_crosses_the_link, more_slots_never_read_more,
	all_in_is_as_fast_as_resident, belady_reads_least, a_perfect_guess_misses_nothing,
	none_is_faster_than_its_bound, what_is_on_the_drive_is_read_from_it,
	a_cache_larger_than_everything_holds_everything, windows_stand_for_steps)
