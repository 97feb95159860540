/*
 * test_ranks.c - models divided over GPUs: what each has, what they send each other and when, what that costs.
 */
#include "tests/run_text.h"

#define PAIR(nvlink)                                                                                           \
	"machine: {gpu0: a100-sxm-80gb, gpu1: a100-sxm-80gb, " nvlink "cpu0: generic-cpu, ram: {capacity: 512GiB, " \
	"bandwidth: 200GB/s}}\n"
#define NVLINK PAIR("nvlink: nvlink-3, ")
#define NO_LINK PAIR("")
#define TWO(name) "kernel " name "\nkernel " name "\n"
#define REDUCE(name) "copy " name "\ncopy " name "\n"
#define LAYER(i) REDUCE(i " attn") TWO(i " attn") TWO(i " attn") REDUCE(i " ffn") TWO(i " ffn")

/* Partial sums of the embedding, of attention and of the feed-forward part are added up before what comes next: two
   all-reduces a layer and one more, each a copy a GPU; then logits are gathered. */
START_TEST(two_all_reduces_a_layer)
{
	static const char want[] = TWO("-1 embed") LAYER("0") LAYER("1") LAYER("2") REDUCE("-1 output") TWO("-1 output")
		REDUCE("-1 output") "step\n";

	check_order(SMALL_MODEL, NVLINK "engine: vllm\nflags: -tp 2\nworkload: {prompt: 0, generate: 1, depth: 17}\n", want);
	check_order(SMALL_MODEL, NVLINK "engine: sglang\nflags: -tp 2\nworkload: {prompt: 0, generate: 1, depth: 17}\n", want);
	check_order(SMALL_MODEL,
		NVLINK "engine: deepspeed-tp\nflags: {tensor-parallel: 2}\nworkload: {prompt: 0, generate: 1, depth: 17}\n", want);
}
END_TEST

#define MODEL "model: llama-3.1-8b\nquant: bf16\n"
#define WORK "workload: {prompt: 300, generate: 1}\n"

static const struct ledger_row *memory(const struct result *r, const char *name)
{
	for (int i = 0; i < r->memory.n; i++)
		if (strcmp(r->memory.row[i].name, name) == 0)
			return &r->memory.row[i];
	ck_abort_msg("no memory %s", name);
}

START_TEST(each_gpu_has_half_of_all)
{
	struct result one = run(MODEL NVLINK "engine: vllm\n" WORK, NULL, true);
	struct result two = run(MODEL NVLINK "engine: vllm\nflags: -tp 2\n" WORK, NULL, true);

	for (int c = LEDGER_WEIGHTS; c <= LEDGER_KV; c++) {
		double whole = (double)memory(&one, "gpu0")->used_bytes[c];
		assert_close((double)memory(&two, "gpu0")->used_bytes[c], whole / 2, 1e-6);
		assert_close((double)memory(&two, "gpu1")->used_bytes[c], whole / 2, 1e-6);
	}
}
END_TEST

/* What MLA keeps serves all heads, so each GPU has all of it. */
START_TEST(a_latent_cache_is_not_divided)
{
	static const char text[] = "model: deepseek-v2-lite\nquant: bf16\n" NVLINK "engine: vllm\n" WORK;
	struct result one = run(text, NULL, true), two = run(text, "flags.tensor-parallel-size=2", true);

	ck_assert_uint_eq(memory(&two, "gpu1")->used_bytes[LEDGER_KV], memory(&one, "gpu0")->used_bytes[LEDGER_KV]);
}
END_TEST

static double moved(const struct result *r, const char *name)
{
	for (int i = 0; i < r->n_resources; i++)
		if (strcmp(r->resource[i].name, name) == 0)
			return r->resource[i].bytes;
	ck_abort_msg("no resource %s", name);
}

/* A ring: 2 (n - 1) / n of the hidden states in 16 bits leave each GPU in each of 2 x 32 + 1 all-reduces, and its half of the
   logits of one row. */
START_TEST(all_reduces_cross_nvlink)
{
	struct result r = run(MODEL NVLINK "engine: vllm\nflags: -tp 2\n" WORK, NULL, true);
	double want = 65 * 300 * 4096 * 2.0 + 128256 * 2.0 / 2;

	assert_close(moved(&r, "gpu0.nvlink.d2h"), want, 1e-9);
	assert_close(moved(&r, "gpu1.nvlink.h2d"), want, 1e-9);
	ck_assert(moved(&r, "ram") == 0);
}
END_TEST

/* Without NVLink they go through host memory, which is written and read, or past it; then the links carry the same. */
START_TEST(pcie_goes_through_host_memory_or_past_it)
{
	static const char text[] = MODEL NO_LINK "engine: vllm\nflags: -tp 2\n" WORK;
	struct result host = run(text, NULL, true), direct = run(text, "flags.p2p=yes", true);
	double want = 65 * 300 * 4096 * 2.0 + 128256 * 2.0 / 2;

	assert_close(moved(&host, "ram"), 4 * want, 1e-9);
	ck_assert(moved(&direct, "ram") == 0);
	assert_close(moved(&direct, "gpu0.link.d2h"), want, 1e-9);
	assert_close(moved(&host, "gpu0.link.d2h"), want, 1e-9);
	ck_assert(direct.value[RESULT_TTFT_S] < host.value[RESULT_TTFT_S]);
}
END_TEST

/* The fixed part of an all-reduce is paid by each of 65 and by the gathering of logits. */
START_TEST(latency_is_paid_each_time)
{
	static const char text[] = MODEL NVLINK "engine: vllm\nflags: -tp 2\nworkload: {prompt: 0, generate: 1, depth: 64}\n";
	struct ran ran;
	struct run_options o = {.exact = true};
	struct err err = {0};
	struct result r;

	load(&ran, text, NULL);
	ran.scenario->cost->reduce_nvlink_s.measured += 23.85e-6;
	assert_ok(run_scenario(ran.scenario, &o, &ran.arena, &r, NULL, &err), err);
	double more = r.value[RESULT_TPOT_S] - run(text, NULL, true).value[RESULT_TPOT_S];
	assert_close(more, 66 * 23.85e-6, 1e-6);
	arena_release(&ran.arena);
}
END_TEST

/* A ring of four is two ranks longer than one of two; each link has its own time for that. */
START_TEST(further_ranks_cost_by_link)
{
	static const char text[] = "model: llama-3.1-8b\nquant: bf16\nengine: vllm\nflags: -tp 4\n"
				   "machine: {gpu0: a100-sxm-80gb, gpu1: a100-sxm-80gb, gpu2: a100-sxm-80gb, gpu3: a100-sxm-80gb, "
				   "cpu0: generic-cpu, ram: {capacity: 512GiB, bandwidth: 200GB/s}}\n"
				   "workload: {prompt: 0, generate: 1, depth: 64}\n";
	struct ran ran;
	struct run_options o = {.exact = true};
	struct err err = {0};
	struct result r;

	load(&ran, text, NULL);
	ran.scenario->cost->reduce_host_rank_s.measured += 23.85e-6;
	ran.scenario->cost->reduce_nvlink_rank_s.measured += 1;
	ran.scenario->cost->reduce_pcie_rank_s.measured += 1;
	assert_ok(run_scenario(ran.scenario, &o, &ran.arena, &r, NULL, &err), err);
	double more = r.value[RESULT_TPOT_S] - run(text, NULL, true).value[RESULT_TPOT_S];
	assert_close(more, 66 * 2 * 23.85e-6, 1e-6);
	arena_release(&ran.arena);
}
END_TEST

/* Each GPU reads its own share of what lies in host memory over its own link, while all-reduces cross the same links. */
START_TEST(offload_and_all_reduces_share_links)
{
	static const char text[] = MODEL NO_LINK "engine: vllm\nflags: -tp 2 --p2p --cpu-offload-gb 2 --disable-uva\n" WORK;
	struct result r = run(text, NULL, true), uva = run(text, "flags.disable-uva=no", true);
	double reduce = 65 * 300 * 4096 * 2.0 + 128256 * 2.0 / 2;
	double weights = (double)memory(&r, "ram")->used_bytes[LEDGER_WEIGHTS];

	ck_assert(weights > 4 * 1073741824.0);
	assert_close(moved(&r, "gpu0.link.h2d"), reduce + weights / 2, 1e-6);
	assert_close(moved(&uva, "gpu0.link.h2d"), reduce + weights / 2, 1e-6);
	assert_close(moved(&r, "ram"), weights, 1e-6);
}
END_TEST

START_TEST(more_gpus_are_faster_and_not_n_times)
{
	static const char text[] = "model: llama-3.1-70b\nquant: bf16\nmachine: server-8xh100\nengine: vllm\n"
				   "workload: {prompt: 0, generate: 4, depth: 100}\nflags: -tp 2\n";
	double two = run(text, NULL, true).value[RESULT_DECODE_TOK_S];
	double four = run(text, "flags.tensor-parallel-size=4", true).value[RESULT_DECODE_TOK_S];
	double eight = run(text, "flags.tensor-parallel-size=8", true).value[RESULT_DECODE_TOK_S];

	ck_assert_msg(four > 1.3 * two && four < 2 * two, "%g and %g", two, four);
	ck_assert_msg(eight > 1.1 * four && eight < 2 * four, "%g and %g", four, eight);
}
END_TEST

static double resource_bytes(const struct result *r, const char *name)
{
	for (int i = 0; i < r->n_resources; i++)
		if (strcmp(r->resource[i].name, name) == 0)
			return r->resource[i].bytes;
	ck_abort_msg("no resource %s", name);
}

/* A token more in the cache is read once by a fused kernel; BLOOM's attention under DeepSpeed concatenates (twice), reorders
   keys and values (twice a half each) and multiplies. */
START_TEST(bloom_attends_with_plain_operations)
{
	static const struct {
		const char *model;
		double entry, passes; /* bytes of a token in the cache of one of two GPUs */
	} cases[] = {{"bloom-560m", 24 * 2 * 1024 * 2 / 2.0, 5}, {"opt-1.3b", 24 * 2 * 2048 * 2 / 2.0, 1}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char text[512];
		double moved[2];
		snprintf(text, sizeof(text), "model: %s\nquant: f16\n" NVLINK
			"engine: deepspeed-tp\nflags: {tensor-parallel: 2}\nworkload: {prompt: 0, generate: 1}\n", cases[i].model);
		for (int k = 0; k < 2; k++) {
			struct result r = run(text, k ? "workload.depth=1033" : "workload.depth=33", true);
			moved[k] = resource_bytes(&r, "gpu1");
		}
		assert_close(moved[1] - moved[0], 1000 * cases[i].entry * cases[i].passes, 1e-9);
	}
}
END_TEST

TEST_MAIN("ranks", two_all_reduces_a_layer, each_gpu_has_half_of_all, a_latent_cache_is_not_divided, all_reduces_cross_nvlink,
	pcie_goes_through_host_memory_or_past_it, latency_is_paid_each_time, further_ranks_cost_by_link, offload_and_all_reduces_share_links,
	more_gpus_are_faster_and_not_n_times, bloom_attends_with_plain_operations)
