/*
 * test_zero.c - ZeRO-Inference's fetches as a list, its window, and what links, drives and neighbours make of them.
 */
#include "tests/run_text.h"

#define SMALL_OPT                                                                                                      \
	"{\"architectures\": [\"OPTForCausalLM\"], \"model_type\": \"opt\", \"hidden_size\": 1024, \"ffn_dim\": 4096,\n"  \
	"\"num_hidden_layers\": 1, \"num_attention_heads\": 8, \"vocab_size\": 5003,\n"                                    \
	"\"max_position_embeddings\": 2048, \"word_embed_proj_dim\": 1024, \"do_layer_norm_before\": true,\n"              \
	"\"torch_dtype\": \"float16\", \"tie_word_embeddings\": true}\n"
#define SLOW_LINK "machine: {from: desktop-rtx4090-ddr5, set: {gpu0.link.gen: 3}}\n"
#define SMALL_RUN "engine: zero-inference\nworkload: {batch: 2, prompt: 8, generate: 3}\n"

/* Nothing is known of the order: each linear layer waits for its own. */
START_TEST(first_pass_fetches_on_demand)
{
	static const char want[] = "copy -1 embed\nkernel -1 embed\ncopy -1 embed\nkernel -1 embed\n"
				   "copy 0 attn\nkernel 0 attn\ncopy 0 attn\nkernel 0 attn\ncopy 0 attn\nkernel 0 attn\n" /* q, k, v */
				   "kernel 0 attn\ncopy 0 attn\nkernel 0 attn\n" /* attention, out */
				   "copy 0 ffn\nkernel 0 ffn\ncopy 0 ffn\nkernel 0 ffn\n"
				   "copy -1 output\nkernel -1 output\n"
				   "step\n";

	check_order(SMALL_OPT, SLOW_LINK SMALL_RUN "flags: --cpu-offload --pin-memory 1\n", want);
}
END_TEST

/* With a window of two squares of the width: k, v, out and the first of the MLP come while the one before runs; the second
   and the output do not, since four squares are there. */
START_TEST(later_passes_prefetch_what_the_window_allows)
{
	static const char want[] = "copy -1 embed\nkernel -1 embed\ncopy -1 embed\nkernel -1 embed\n"
				   "copy 0 attn\nkernel 0 attn\n"                /* q */
				   "copy 0 attn\nkernel 0 attn\n"                /* k */
				   "copy 0 attn\nkernel 0 attn\nkernel 0 attn\n" /* v, attention */
				   "copy 0 attn\nkernel 0 attn\n"                /* out */
				   "copy 0 ffn\nkernel 0 ffn\n"                  /* first of the MLP */
				   "copy 0 ffn\nkernel 0 ffn\n"
				   "copy -1 output\nkernel -1 output\n"
				   "step\n";

	check_order_of(1, SMALL_OPT, SLOW_LINK SMALL_RUN "flags: --cpu-offload --pin-memory 1\n", want);
}
END_TEST

/* From NVMe: a read (the first copy of each pair), then the copy to the GPU, then the next read while the module runs. Only one
   is read ahead, since nothing is on its way to the GPU by then. */
START_TEST(drive_is_read_ahead)
{
	static const char want[] = "copy -1 embed\ncopy -1 embed\nkernel -1 embed\n"
				   "copy -1 embed\ncopy -1 embed\nkernel -1 embed\n"
				   "copy 0 attn\ncopy 0 attn\nkernel 0 attn\n"
				   "copy 0 attn\ncopy 0 attn\nkernel 0 attn\n"
				   "copy 0 attn\ncopy 0 attn\nkernel 0 attn\nkernel 0 attn\n"
				   "copy 0 attn\ncopy 0 attn\nkernel 0 attn\n"
				   "copy 0 ffn\ncopy 0 ffn\nkernel 0 ffn\n"
				   "copy 0 ffn\ncopy 0 ffn\nkernel 0 ffn\n"
				   "copy -1 output\ncopy -1 output\nkernel -1 output\n"
				   "step\n";

	check_order_of(1, SMALL_OPT, SLOW_LINK SMALL_RUN "flags: --disk-offload\n", want);
}
END_TEST

#define OPT_30B "model: opt-30b\nquant: f16\nengine: zero-inference\nworkload: {batch: 1, prompt: 0, generate: 3, depth: 100}\n"
#define SERVER                                                                                                        \
	"machine: {gpu0: a100-sxm-80gb, gpu1: a100-sxm-80gb, gpu2: a100-sxm-80gb, gpu3: a100-sxm-80gb, nvlink: nvlink-3,\n" \
	"  cpu0: epyc-7742, ram: {capacity: 512GiB, bandwidth: 300GB/s},\n"                                              \
	"  nvme0: {capacity: 4TB, read: 3.25GB/s, write: 2GB/s, latency: 100us}}\n"

static double step_s(const char *sets)
{
	return run(OPT_30B SERVER "flags: {cpu-offload: yes, pin-memory: yes, num_gpus: 1}\n", sets, false)
		.value[RESULT_TPOT_S];
}

/* Weights without norms and biases, the embedding once more for the output. */
#define BYTES (59.949e9 + 0.7207e9 - 0.02e9)

START_TEST(links_set_the_pace)
{
	double one = step_s(NULL), rate = 24.8e9;

	ck_assert_msg(one > 0.97 * BYTES / rate && one < 1.12 * BYTES / rate, "%g and %g", one, BYTES / rate);
	ck_assert(step_s("flags.pin-memory=no") > 1.3 * one);
}
END_TEST

/* Each brings its part and the others' come over NVLink: a quarter of the time, and 3/4 of the bytes at 276 GB/s. Then all of
   them are read and written once, at 1769 GB/s. */
START_TEST(gpus_share_the_fetching)
{
	double one = step_s(NULL), four = step_s("flags.num_gpus=4"), gather = 0.75 * BYTES / 276.3e9, build = 2 * BYTES / 1769e9;
	double all = one / 4 + gather + build;

	ck_assert_msg(four > all && four < 1.15 * all, "%g, %g, %g and %g", one, four, gather, build);
}
END_TEST

/* Read, then copied: most of the bytes are in matrices that leave the window no room. GPUDirect saves the copy. */
START_TEST(drive_and_link_one_after_the_other)
{
	double bounced = step_s("flags.cpu-offload=no flags.disk-offload=yes");
	double direct = step_s("flags.cpu-offload=no flags.disk-offload=yes flags.use_gds=yes");
	double read = BYTES / 3.25e9, copied = BYTES / 24.8e9;

	ck_assert_msg(direct > 0.99 * read && direct < 1.03 * read, "%g and %g", direct, read);
	ck_assert_msg(bounced > direct + 0.5 * copied && bounced < direct + copied * 1.05, "%g, %g and %g", bounced, direct, copied);
}
END_TEST

START_TEST(resident_parameters_do_not_cross)
{
	double all = step_s(NULL), some = step_s("flags.gpu_resident_params=15e9");

	assert_close(some / all, 0.5, 0.05);
}
END_TEST

/* The cache in RAM costs the CPU's time, and frees the GPU. */
START_TEST(cache_in_ram_is_read_by_the_cpu)
{
	struct result gpu = run(OPT_30B SERVER "flags: {cpu-offload: yes, pin-memory: yes, num_gpus: 1}\n", NULL, false);
	struct result ram = run(OPT_30B SERVER "flags: {cpu-offload: yes, pin-memory: yes, num_gpus: 1, kv-offload: yes}\n",
		NULL, false);

	ck_assert_uint_eq(ram.memory.row[0].used_bytes[LEDGER_KV], 0);
	ck_assert(ram.value[RESULT_TPOT_S] > gpu.value[RESULT_TPOT_S]);
}
END_TEST

START_TEST(sharded_over_gpus_is_gathered)
{
	double s = step_s("flags.cpu-offload=no flags.num_gpus=4");
	double gather = 0.75 * BYTES / 276.3e9, build = 2 * BYTES / 1769e9, read = BYTES / 1700e9;

	ck_assert_msg(s > gather + build && s < 1.6 * (gather + build + read), "%g, %g and %g", s, gather, build);
}
END_TEST

/* Until 0.9.0 one GPU gathered, too, from itself: .to() holds the host up, so nothing runs beside a copy, and each parameter is
   read and written once more before its product. */
START_TEST(one_gpu_gathered_from_itself)
{
	static const char want[] = "copy -1 embed\nkernel -1 embed\nkernel -1 embed\ncopy -1 embed\nkernel -1 embed\nkernel -1 embed\n";
	struct listing l;

	list_model_step(1, SMALL_OPT, "f16", SLOW_LINK SMALL_RUN "flags: --cpu-offload --pin-memory 1 --build 2023-03\n", &l);
	ck_assert_msg(strncmp(l.text, want, strlen(want)) == 0, "%s", l.text);
	double then = step_s("flags.build=2023-03"), now = step_s("flags.build=2023-04");
	double copied = BYTES / 24.8e9, gathered = 2 * BYTES / 1769e9, read = BYTES / 1700e9;
	ck_assert_msg(then > copied + gathered + read && then < 1.1 * (copied + gathered + read), "%g and %g", then, copied);
	ck_assert_msg(then > now + gathered, "%g and %g", then, now);
}
END_TEST

TEST_MAIN("zero", first_pass_fetches_on_demand, later_passes_prefetch_what_the_window_allows, drive_is_read_ahead,
	links_set_the_pace, gpus_share_the_fetching, drive_and_link_one_after_the_other, resident_parameters_do_not_cross,
	cache_in_ram_is_read_by_the_cpu, sharded_over_gpus_is_gathered, one_gpu_gathered_from_itself)
