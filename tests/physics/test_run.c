/*
 * test_run.c - whole runs: closed forms, what must not change, what must change, and who cheats.
 *
 * Machines are written inline so that every number in an expectation is in this file.
 */
#include <math.h>

#include "tests/run_text.h"

/* A card of 23.85 GB/s over PCIe with 24 GB; round trips and reserves are left out of it. */
#define MACHINE                                                                                                        \
	"machine:\n"                                                                                                   \
	"  gpu0: {part: rtx-4090, bandwidth: 921GB/s, reserved: 0B, memory: 24GiB, launch: 0s,\n"                      \
	"    flops: {fp16: 165TFLOP/s, bf16: 165TFLOP/s, fp32: 82TFLOP/s},\n"                                          \
	"    link: {part: pcie, gen: 4, width: 16, h2d: 23.85GB/s, d2h: 26.55GB/s, both: 37.2GB/s, latency: 0s}}\n"     \
	"  cpu0: {part: ryzen-9-7950x, flops: {fp32: 1.13TFLOP/s, fp16: 1.13TFLOP/s, bf16: 2.7TFLOP/s}, launch: 0s}\n"    \
	"  ram: {capacity: 256GiB, bandwidth: 63.4GB/s, reserved: 0B}\n"                                                \
	"  nvme0: {capacity: 2TB, read: 6.44GB/s, write: 5.1GB/s}\n"

#define BASE "model: llama-3.1-8b\nquant: f16\nengine: ideal\n" MACHINE
#define PROMPT_64 "workload: {batch: 1, prompt: 64, generate: 40}\n"

static double rate(const char *text, const char *sets)
{
	return run(text, sets, false).value[RESULT_DECODE_TOK_S];
}

/* Bytes of llama-3.1-8b in f16 that a decode step reads from one layer, from the output, and for one token from
   the embedding (config.json: 32 layers, hidden 4096, ffn 14336, 32 heads, 8 KV heads of 128, vocabulary 128256). */
#define LAYER_BYTES (2.0 * (4096.0 * 4096 * 2 + 4096.0 * 1024 * 2 + 3 * 4096.0 * 14336 + 2 * 4096))
#define OUTPUT_BYTES (2.0 * (128256.0 * 4096 + 4096))
#define ROW_BYTES (2.0 * 4096)
#define KV_TOKEN_LAYER_BYTES (2.0 * 2 * 8 * 128)

START_TEST(resident_step_is_bytes_over_bandwidth)
{
	/* One decode step with 64 + 0 entries before it: it reads all weights, 64 entries and its own, and writes its own;
	   at 921 GB/s, arithmetic far below. */
	struct result r = run(BASE "workload: {batch: 1, prompt: 64, generate: 2}\n", NULL, true);
	double bytes = 32 * (LAYER_BYTES + 66 * KV_TOKEN_LAYER_BYTES) + OUTPUT_BYTES + ROW_BYTES;

	ck_assert(r.fits);
	assert_close(r.value[RESULT_TPOT_S], bytes / 921e9, 1e-7);
}
END_TEST

/* Each layer over the bandwidth of where it lives, whoever computes it: no link, no cache, no row of the embedding. */
START_TEST(rule_of_thumb_is_weights_over_datasheets)
{
	static const struct {
		const char *sets;
		double on_gpu; /* layers */
	} cases[] = {{NULL, 32}, {"flags.gpu-layers=0", 0}, {"flags.gpu-layers=7", 7},
		{"flags.gpu-layers=7 flags.host=compute workload.depth=3701", 7}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct result r = run(BASE "workload: {batch: 1, prompt: 64, generate: 3}\n", cases[i].sets, false);
		double seconds = (cases[i].on_gpu * LAYER_BYTES + OUTPUT_BYTES) / 921e9 + (32 - cases[i].on_gpu) * LAYER_BYTES / 63.4e9;
		assert_close(r.thumb_tok_s, 1 / seconds, 1e-6);
	}
	ck_assert(isnan(run(BASE "workload: {prompt: 64, generate: 1}\n", NULL, false).thumb_tok_s));
}
END_TEST

START_TEST(streamed_step_is_bytes_over_link)
{
	/* Nothing resident: the link decides, as long as computing (0.02 of it) hides behind it. */
	struct result r = run(BASE PROMPT_64, "flags.gpu-layers=0", true);

	double step_s = 32 * LAYER_BYTES / 23.85e9;

	/* What is fetched ahead while the prefill ends comes back as computing at the end of the last step: on both
	   sides one layer and the output, a fraction of one of 39 steps. */
	assert_close(r.value[RESULT_TPOT_S], step_s, 3e-4);
}
END_TEST

START_TEST(host_step_is_bytes_over_dram)
{
	/* Layers computed by the CPU read DRAM at its rate; the output stays on the GPU. Going to the GPU costs
	   one hidden vector. */
	struct result r = run(BASE "workload: {batch: 1, prompt: 64, generate: 2}\n",
		"flags.gpu-layers=0 flags.host=compute", true);
	double cpu_s = (32 * (LAYER_BYTES + 66 * KV_TOKEN_LAYER_BYTES) + ROW_BYTES) / 63.4e9;
	double gpu_s = OUTPUT_BYTES / 921e9 + 2 * 4096 / 23.85e9;

	assert_close(r.value[RESULT_TPOT_S], cpu_s + gpu_s, 1e-6);
}
END_TEST

START_TEST(prefill_is_arithmetic_over_flops)
{
	/* 2,048 tokens: every matrix is limited by 165 TFLOP/s, embedding and one sampled output by memory. */
	struct result r = run(BASE "workload: {batch: 1, prompt: 2048, generate: 1}\n", NULL, true);
	double matrices = 32 * (LAYER_BYTES / 2 - 2 * 4096.0);
	double flops = 2 * 2048.0 * matrices + 32 * 2.0 * (2048.0 * 2049 / 2) * 32 * 256;

	assert_close(r.value[RESULT_TTFT_S], flops / 165e12 + OUTPUT_BYTES / 921e9, 2e-3);
}
END_TEST

/* These cover dense and MoE models, windows, KV in RAM, layers on the host, batches. */
static const struct {
	const char *text, *sets;
} cases[] = {
	{BASE "workload: {batch: 1, prompt: 512, generate: 300}\n", NULL},
	{BASE "workload: {batch: 1, prompt: 512, generate: 300}\n", "flags.gpu-layers=11"},
	{BASE "workload: {batch: 24, prompt: 700, generate: 200}\n", "flags.gpu-layers=5"},
	{BASE "workload: {batch: 8, prompt: 2000, generate: 200}\n", "flags.kv=ram flags.gpu-layers=20"},
	{BASE "workload: {batch: 3, prompt: 1000, generate: 150}\n", "flags.host=compute flags.gpu-layers=7"},
	{BASE "workload: {batch: 1, prompt: 3990, generate: 400}\n", "model=mistral-7b-v0.1 flags.gpu-layers=13"},
	{BASE "workload: {batch: 1, prompt: 100, generate: 120}\n", "model=mixtral-8x7b quant=q4_0 flags.gpu-layers=9"},
	{BASE "workload: {batch: 64, prompt: 30, generate: 90}\n", "flags.gpu-layers=30 flags.buffers=1"},
	{BASE "workload: {batch: 16, prompt: 6000, generate: 333}\n", "flags.kv=ram quant=q8_0"},
};

START_TEST(skipping_steps_agrees_with_all)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct result all = run(cases[i].text, cases[i].sets, true);
		struct result some = run(cases[i].text, cases[i].sets, false);

		ck_assert_msg(all.fits, "case %zu does not fit", i);
		ck_assert_msg(some.events < all.events / 2, "case %zu: nothing was skipped", i);
		assert_close(some.value[RESULT_DECODE_TOK_S], all.value[RESULT_DECODE_TOK_S], 1e-3);
		assert_close(some.value[RESULT_TOTAL_S], all.value[RESULT_TOTAL_S], 1e-3);
		for (int k = 0; k < all.n_resources; k++) {
			ck_assert(fabs(some.resource[k].busy - all.resource[k].busy) < 2e-3);
			ck_assert(fabs(some.resource[k].utilisation - all.resource[k].utilisation) < 2e-3);
			ck_assert(fabs(some.resource[k].critical - all.resource[k].critical) < 2e-2);
		}
	}
}
END_TEST

START_TEST(no_run_beats_its_bound)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct result r = run(cases[i].text, cases[i].sets, false);
		ck_assert_msg(r.value[RESULT_DECODE_TOK_S] <= r.value[RESULT_UPPER_BOUND_TOK_S] * (1 + 1e-6),
			"case %zu: %g above %g", i, r.value[RESULT_DECODE_TOK_S],
			r.value[RESULT_UPPER_BOUND_TOK_S]);
	}
}
END_TEST

START_TEST(shares_sum_to_one)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct result r = run(cases[i].text, cases[i].sets, i % 2);
		double sum = r.critical_overhead;

		for (int k = 0; k < r.n_resources; k++) {
			ck_assert(r.resource[k].critical >= 0);
			ck_assert(r.resource[k].utilisation <= r.resource[k].busy * (1 + 1e-9) + 1e-9);
			ck_assert(r.resource[k].busy <= 1 + 1e-9);
			sum += r.resource[k].critical;
		}
		assert_close(sum, 1, 1e-9);
	}
}
END_TEST

/* Those of each phase sum to one as well, and by the phases' lengths they make those of the run, but for what was clamped. */
START_TEST(shares_of_phases)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct result r = run(cases[i].text, cases[i].sets, i % 2);
		double prefill = r.value[RESULT_TTFT_S] / r.value[RESULT_TOTAL_S];
		double sum[2] = {r.critical_overhead_of[TRACE_PREFILL], r.critical_overhead_of[TRACE_DECODE]};

		for (int k = 0; k < r.n_resources; k++) {
			const double *of = r.resource[k].critical_of;
			ck_assert(of[TRACE_PREFILL] >= 0 && of[TRACE_DECODE] >= 0);
			sum[TRACE_PREFILL] += of[TRACE_PREFILL];
			sum[TRACE_DECODE] += of[TRACE_DECODE];
			double both = prefill * of[TRACE_PREFILL] + (1 - prefill) * of[TRACE_DECODE];
			ck_assert_msg(fabs(both - r.resource[k].critical) < 1e-2, "case %zu, %s: %g and %g are not %g", i,
				r.resource[k].name, of[TRACE_PREFILL], of[TRACE_DECODE], r.resource[k].critical);
		}
		assert_close(sum[TRACE_PREFILL], 1, 1e-9);
		assert_close(sum[TRACE_DECODE], 1, 1e-9);
	}
	struct result decode = run(BASE "workload: {batch: 1, prompt: 0, generate: 30, depth: 500}\n", NULL, false);
	ck_assert(isnan(decode.resource[0].critical_of[TRACE_PREFILL]) && isnan(decode.critical_overhead_of[TRACE_PREFILL]));
}
END_TEST

START_TEST(broken_copy_unit_shows)
{
	/* A copy engine that does 1/37 of what it should: placement, bytes and closed-form bound are the same, so only
	   the simulated copies can bring the rate down. */
	struct ran ran;
	struct run_options o = {0};
	struct err err = {0};
	struct result sound, broken;

	load(&ran, BASE PROMPT_64, "flags.gpu-layers=0");
	assert_ok(run_scenario(ran.scenario, &o, &ran.arena, &sound, NULL, &err), err);
	for (int i = 0; i < ran.scenario->machine->n_links; i++)
		if (strcmp(ran.scenario->machine->links[i].name, "gpu0.link") == 0)
			ran.scenario->machine->links[i].h2d.num.measured /= 37;
	assert_ok(run_scenario(ran.scenario, &o, &ran.arena, &broken, NULL, &err), err);
	assert_close(sound.value[RESULT_DECODE_TOK_S] / broken.value[RESULT_DECODE_TOK_S], 37, 0.02);
	arena_release(&ran.arena);
}
END_TEST

START_TEST(all_rates_doubled_halves_all_times)
{
	static const char twice[] =
		"machine.gpu0.bandwidth=1842GB/s machine.gpu0.link.h2d=47.7GB/s machine.gpu0.link.d2h=53.1GB/s "
		"machine.gpu0.link.both=74.4GB/s machine.ram.bandwidth=126.8GB/s machine.gpu0.flops.fp16=330TFLOP/s "
		"machine.gpu0.flops.bf16=330TFLOP/s machine.gpu0.flops.fp32=164TFLOP/s machine.cpu0.flops.fp32=2.26TFLOP/s "
		"machine.cpu0.flops.fp16=2.26TFLOP/s machine.cpu0.flops.bf16=5.4TFLOP/s";
	static const char *const more[] = {"flags.gpu-layers=32", "flags.gpu-layers=13", "flags.kv=ram",
		"flags.host=compute flags.gpu-layers=3", "workload.batch=40 flags.gpu-layers=1"};

	for (size_t i = 0; i < ARRAY_LEN(more); i++) {
		char both[1024];
		snprintf(both, sizeof(both), "%s %s", twice, more[i]);
		struct result once = run(BASE PROMPT_64, more[i], true), fast = run(BASE PROMPT_64, both, true);
		assert_close(once.value[RESULT_TOTAL_S], 2 * fast.value[RESULT_TOTAL_S], 1e-6);
		assert_close(once.value[RESULT_TTFT_S], 2 * fast.value[RESULT_TTFT_S], 1e-6);
	}
}
END_TEST

START_TEST(more_memory_is_never_slower)
{
	double before = 0;

	for (int gib = 4; gib <= 20; gib++) {
		char set[64];
		snprintf(set, sizeof(set), "machine.gpu0.memory=%dGiB", gib);
		double now = rate(BASE PROMPT_64, set);
		ck_assert_msg(now >= before * (1 - 1e-9), "%d GiB: %g after %g", gib, now, before);
		before = now;
	}
}
END_TEST

START_TEST(more_resident_layers_are_never_slower)
{
	static const char *const how[] = {"", "flags.host=compute", "workload.batch=7"};

	for (size_t h = 0; h < ARRAY_LEN(how); h++) {
		double before = 0;
		for (int n = 0; n <= 32; n += 4) {
			char set[128];
			snprintf(set, sizeof(set), "flags.gpu-layers=%d %s", n, how[h]);
			double now = rate(BASE PROMPT_64, set);
			ck_assert_msg(now >= before * (1 - 1e-4), "%d layers, %s: %g after %g", n, how[h], now, before);
			before = now;
		}
	}
}
END_TEST

#define SLOW_CPU "machine.cpu0.flops.fp32=16GFLOP/s machine.cpu0.flops.fp16=16GFLOP/s machine.cpu0.flops.bf16=16GFLOP/s"

START_TEST(batch_pays_for_streamed_layers_and_not_for_the_host)
{
	double one = rate(BASE PROMPT_64, "flags.gpu-layers=0");
	double eight = rate(BASE PROMPT_64, "flags.gpu-layers=0 workload.batch=8");
	double cpu_one = rate(BASE PROMPT_64, "flags.gpu-layers=0 flags.host=compute " SLOW_CPU);
	double cpu_eight = rate(BASE PROMPT_64,
		"flags.gpu-layers=0 flags.host=compute workload.batch=8 " SLOW_CPU);

	assert_close(eight / one, 8, 0.01);
	assert_close(cpu_eight / cpu_one, 1, 0.1);
}
END_TEST

START_TEST(cheaper_bytes_are_faster)
{
	double f16 = rate(BASE PROMPT_64, "flags.gpu-layers=0");
	double q8 = rate(BASE PROMPT_64, "flags.gpu-layers=0 quant=q8_0");
	double q4 = rate(BASE PROMPT_64, "flags.gpu-layers=0 quant=q4_0");

	assert_close(q8 / f16, 16 / 8.5, 0.01);
	assert_close(q4 / f16, 16 / 4.5, 0.01);
}
END_TEST

START_TEST(what_does_not_fit_is_a_result)
{
	struct result r = run(BASE PROMPT_64, "model=llama-3.1-70b flags.gpu-layers=80", false);

	ck_assert(!r.fits);
	ck_assert_uint_gt(ledger_missing(&r.memory, 0), 0);
	ck_assert_uint_gt(r.memory.row[0].used_bytes[LEDGER_WEIGHTS], 130000000000u);
	for (int f = 0; f < RESULT_FIELD_N; f++)
		ck_assert(isnan(r.value[f]));
}
END_TEST

START_TEST(full_ram_spills_to_the_drive)
{
	/* 16 GB of weights, none resident, 8 GiB of RAM: what is on the drive crosses at its read rate. */
	struct result r = run(BASE PROMPT_64, "flags.gpu-layers=0 machine.ram.capacity=8GiB", true);
	double on_drive = 0, n_in_ram = floor((8.0 * 1073741824 - 1050673152) / LAYER_BYTES);

	on_drive = (32 - n_in_ram) * LAYER_BYTES;
	ck_assert(r.fits);
	assert_close(r.value[RESULT_TPOT_S], on_drive / 6.44e9 + n_in_ram * LAYER_BYTES / 23.85e9, 0.05);
}
END_TEST

START_TEST(more_ram_never_stops_fitting)
{
	/* With a drive to spill to, whatever else is in RAM: output and cache on the host, a cache that is streamed. */
	static const char *const how[] = {"flags.host=compute flags.gpu-layers=3", "flags.kv=ram flags.gpu-layers=3"};

	for (size_t h = 0; h < ARRAY_LEN(how); h++) {
		for (int gib = 4; gib <= 20; gib++) {
			char set[128];
			snprintf(set, sizeof(set), "%s machine.ram.capacity=%dGiB", how[h], gib);
			struct result r = run(BASE PROMPT_64, set, false);
			ck_assert_msg(r.fits, "%s: lacks %llu", set, (unsigned long long)ledger_missing(&r.memory, 1));
		}
	}
}
END_TEST

START_TEST(gains_are_what_a_faster_machine_gives)
{
	/* The drive sets the pace; "twice as fast" must agree with a machine whose drive is. */
	struct ran ran;
	struct run_options o = {.gains = true};
	struct run_why why;
	struct err err = {0};
	struct result r;
	static const char slow[] = "flags.gpu-layers=0 machine.ram.capacity=4GiB";

	load(&ran, BASE PROMPT_64, slow);
	assert_ok(run_scenario(ran.scenario, &o, &ran.arena, &r, &why, &err), err);
	ck_assert_str_eq(why.gain[0].resource, "nvme0.link.d2h");
	double faster = run(BASE PROMPT_64, "flags.gpu-layers=0 machine.ram.capacity=4GiB machine.nvme0.read=12.88GB/s "
					    "machine.nvme0.write=10.2GB/s", false).value[RESULT_DECODE_TOK_S];
	assert_close(why.gain[0].factor, faster / r.value[RESULT_DECODE_TOK_S], 1e-3);
	ck_assert(why.gain[0].factor > 1.5);
	arena_release(&ran.arena);
}
END_TEST

/* Memory set aside in RAM is on RAM's bus: wherever layers lie, the bound of a step is all weights over that, and what comes
   over the link crosses it twice more. */
START_TEST(memory_in_ram_has_no_bus_of_its_own)
{
	static const char in_ram[] = "machine.gpu0.in_ram=yes machine.gpu0.bandwidth=500GB/s flags.host=compute";
	double weights = 32 * LAYER_BYTES + OUTPUT_BYTES;

	for (int n = 0; n <= 32; n += 8) {
		char sets[200];
		snprintf(sets, sizeof(sets), "%s flags.gpu-layers=%d", in_ram, n);
		struct result r = run(BASE "workload: {batch: 1, prompt: 64, generate: 3}\n", sets, false);
		assert_close(r.value[RESULT_UPPER_BOUND_TOK_S], 63.4e9 / weights, 2e-3);
		ck_assert(r.value[RESULT_DECODE_TOK_S] <= r.value[RESULT_UPPER_BOUND_TOK_S]);
		snprintf(sets, sizeof(sets), "machine.gpu0.in_ram=yes flags.gpu-layers=%d", n);
		r = run(BASE PROMPT_64, sets, false);
		ck_assert(r.value[RESULT_DECODE_TOK_S] <= r.value[RESULT_UPPER_BOUND_TOK_S] * (1 + 1e-9));
		ck_assert(r.value[RESULT_UPPER_BOUND_TOK_S] < 64e9 / (weights + (32 - n - 2) * 2 * LAYER_BYTES));
	}
}
END_TEST

START_TEST(drawn_experts_do_not_beat_their_bound)
{
	for (int seed = 1; seed <= 8; seed++) {
		char set[160];
		snprintf(set, sizeof(set), "model=mixtral-8x7b quant=q4_0 flags.gpu-layers=0 workload.batch=2 seed=%d", seed);
		struct result r = run(BASE "workload: {prompt: 8, generate: 100}\n", set, true);
		ck_assert_msg(r.value[RESULT_DECODE_TOK_S] <= r.value[RESULT_UPPER_BOUND_TOK_S] * (1 + 1e-9), "seed %d: %g "
			"above %g", seed, r.value[RESULT_DECODE_TOK_S], r.value[RESULT_UPPER_BOUND_TOK_S]);
	}
}
END_TEST

START_TEST(same_seed_same_bytes)
{
	static const char moe[] = "model=mixtral-8x7b quant=q4_0 flags.gpu-layers=9 workload.batch=5";
	struct result a = run(BASE PROMPT_64, moe, false), b = run(BASE PROMPT_64, moe, false);
	char other[256];

	a.wall_s = b.wall_s = 0;
	ck_assert_mem_eq(&a, &b, sizeof(a));
	snprintf(other, sizeof(other), "%s seed=2", moe);
	struct result c = run(BASE PROMPT_64, other, false);
	ck_assert_str_ne(a.key, c.key);
	ck_assert(a.value[RESULT_DECODE_TOK_S] != c.value[RESULT_DECODE_TOK_S]);
	assert_close(c.value[RESULT_DECODE_TOK_S], a.value[RESULT_DECODE_TOK_S], 0.05);
}
END_TEST

START_TEST(key_is_of_contents)
{
	struct ran a, b, c;

	load(&a, BASE PROMPT_64, NULL);
	load(&b, "# the same, said otherwise\n" PROMPT_64 BASE, "flags.buffers=2");
	load(&c, BASE PROMPT_64, "machine.ram.bandwidth=63.5GB/s");
	ck_assert_str_eq(a.scenario->key, b.scenario->key);
	ck_assert_str_ne(a.scenario->key, c.scenario->key);
	ck_assert_uint_eq(strlen(a.scenario->key), 16);
	arena_release(&a.arena);
	arena_release(&b.arena);
	arena_release(&c.arena);
}
END_TEST

START_TEST(order_of_operations)
{
	/* One of three layers resident (the last: 1 of 3 spread evenly). Copies run ahead as far as two buffers allow. */
	static const char want[] = "kernel -1 embed\n"
				   "copy 0 attn\n" /* the row, host to GPU */
				   "copy 0 attn\n"
				   "kernel 0 attn\n"
				   "kernel 0 attn\n" /* attention over the cache */
				   "copy 0 ffn\n"
				   "kernel 0 ffn\n"
				   "copy 1 attn\n"
				   "kernel 1 attn\n"
				   "kernel 1 attn\n"
				   "copy 1 ffn\n"
				   "kernel 1 ffn\n"
				   "kernel 2 attn\n"
				   "kernel 2 attn\n"
				   "kernel 2 ffn\n"
				   "kernel -1 output\n"
				   "step\n";
	check_order(SMALL_MODEL, "engine: ideal\nworkload: {prompt: 0, generate: 1, depth: 17}\nflags: {gpu-layers: 1}\n" MACHINE,
		want);
}
END_TEST

TEST_MAIN("run", resident_step_is_bytes_over_bandwidth, rule_of_thumb_is_weights_over_datasheets,
	streamed_step_is_bytes_over_link, host_step_is_bytes_over_dram,
	prefill_is_arithmetic_over_flops, skipping_steps_agrees_with_all, no_run_beats_its_bound, shares_sum_to_one, shares_of_phases,
	broken_copy_unit_shows, all_rates_doubled_halves_all_times, more_memory_is_never_slower,
	more_resident_layers_are_never_slower, batch_pays_for_streamed_layers_and_not_for_the_host,
	cheaper_bytes_are_faster, what_does_not_fit_is_a_result, more_ram_never_stops_fitting, gains_are_what_a_faster_machine_gives,
	memory_in_ram_has_no_bus_of_its_own, drawn_experts_do_not_beat_their_bound, full_ram_spills_to_the_drive, same_seed_same_bytes,
	key_is_of_contents, order_of_operations)
