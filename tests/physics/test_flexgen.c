/*
 * test_flexgen.c - FlexGen's schedule as a list, its rule of whole tensors, and what blocks gain, against closed forms and
 * its authors' own measurements.
 */
#include "tests/run_text.h"

#define SMALL_OPT(layers)                                                                                             \
	"{\"architectures\": [\"OPTForCausalLM\"], \"model_type\": \"opt\", \"hidden_size\": 1024, \"ffn_dim\": 4096,\n" \
	"\"num_hidden_layers\": " layers ", \"num_attention_heads\": 8, \"vocab_size\": 5003,\n"                          \
	"\"max_position_embeddings\": 2048, \"word_embed_proj_dim\": 1024, \"do_layer_norm_before\": true,\n"             \
	"\"torch_dtype\": \"float16\", \"tie_word_embeddings\": true}\n"
#define MACHINE "machine: desktop-rtx4090-ddr5\n"

/* One layer, two batches, everything in RAM. Of each (j, k): weights of j + 1 when k = 0, the cache of k + 1 by way of pinned
   memory (kernel on the CPU, copy), hidden states of k - 1 out and of k + 1 in, computing, new entries of k - 1 out. */
START_TEST(block_goes_layer_by_layer)
{
	static const char want[] =
		/* embedding, k = 0, 1 */
		"copy 0 attn\ncopy -1 embed\nkernel -1 embed\n"                       /* weights of attention; tokens of k = 1 */
		"kernel 0 attn\ncopy -1 embed\ncopy 0 attn\ncopy 0 attn\nkernel -1 embed\n" /* cache of attention's k = 0 */
		/* attention */
		"copy 0 ffn\nkernel 0 attn\ncopy -1 embed\ncopy 0 attn\ncopy 0 attn\nkernel 0 attn\nkernel 0 attn\n"
		"copy 0 attn\ncopy 0 ffn\nkernel 0 attn\ncopy 0 attn\nkernel 0 attn\n" /* hidden out, in; entries of k = 0 out */
		/* MLP */
		"copy 0 attn\ncopy 0 attn\ncopy -1 output\ncopy 0 ffn\nkernel 0 ffn\n" /* hidden, entries of k = 1; weights */
		"copy 0 ffn\ncopy -1 output\nkernel 0 ffn\n"
		/* output: the weights of the next token's embedding; tokens */
		"copy 0 ffn\ncopy -1 embed\ncopy -1 output\nkernel -1 output\n"
		"copy -1 output\ncopy -1 embed\nkernel -1 output\n"
		"copy -1 output\n"
		"step\n";

	check_order(SMALL_OPT("1"),
		MACHINE "engine: flexgen\nworkload: {batch: 8, prompt: 0, generate: 1, depth: 1900}\n"
			"flags: --percent 0 100 0 100 0 100 --gpu-batch-size 4 --num-gpu-batches 2\n", want);
}
END_TEST

/* The CPU attends: the thread expands the cache of the batch that comes next before it submits anything else; q goes, the
   result comes, and the thread waits for both. Hidden states stay. */
START_TEST(cpu_attends_on_the_main_thread)
{
	static const char want[] =
		"copy 0 attn\ncopy -1 embed\nkernel -1 embed\n"
		"kernel 0 attn\nkernel -1 embed\n"                                     /* expansion for attention's k = 0 */
		"copy 0 ffn\nkernel 0 attn\n"                                          /* weights of the MLP; expansion for k = 1 */
		"kernel 0 attn\ncopy 0 attn\nkernel 0 attn\ncopy 0 attn\n"             /* q, k, v; q out; the CPU; result in */
		"kernel 0 attn\ncopy 0 attn\nkernel 0 attn\ncopy 0 attn\ncopy 0 attn\n" /* the same, then entries of k = 0 */
		"kernel 0 ffn\ncopy 0 attn\ncopy -1 output\n"                          /* entries of k = 1; weights of the output */
		"kernel 0 ffn\n"
		"kernel -1 output\ncopy -1 embed\n"
		"copy -1 output\ncopy -1 embed\nkernel -1 output\ncopy -1 output\n"    /* tokens */
		"step\n";

	check_order(SMALL_OPT("1"),
		MACHINE "engine: flexgen\nworkload: {batch: 8, prompt: 0, generate: 1, depth: 1900}\n"
			"flags: --percent 0 100 0 100 100 0 --gpu-batch-size 4 --num-gpu-batches 2 --cpu-cache-compute\n", want);
}
END_TEST

START_TEST(without_overlap_in_order)
{
	static const char want[] = "copy -1 embed\ncopy -1 embed\nkernel -1 embed\n"
				   "copy 0 attn\nkernel 0 attn\nkernel 0 attn\nkernel 0 attn\n"
				   "copy 0 ffn\nkernel 0 ffn\n"
				   "copy -1 output\nkernel -1 output\ncopy -1 output\n"
				   "step\n";

	check_order(SMALL_OPT("1"),
		MACHINE "engine: flexgen\nworkload: {batch: 4, prompt: 0, generate: 1, depth: 190}\n"
			"flags: --percent 0 100 100 0 100 0 --overlap False\n", want);
}
END_TEST

#define OPT_30B "model: opt-30b\nquant: f16\nmachine: gcp-t4-208gb\nengine: flexgen\n"

/* Weights of the layers on the GPU, in units of the square of the width over all layers. */
static double resident_squares(const char *percent, uint64_t *drive_bytes)
{
	struct ran ran;
	struct placement p;
	struct err err = {0};
	char text[512];
	double squares = 0;

	snprintf(text, sizeof(text), OPT_30B "workload: {batch: 144, prompt: 512, generate: 32}\n"
		"flags: --percent %s --gpu-batch-size 48 --num-gpu-batches 3\n", percent);
	load(&ran, text, NULL);
	assert_ok(run_place(ran.scenario, &p, &ran.arena, &err), err);
	const struct model *m = ran.scenario->model;
	*drive_bytes = 0;
	for (int i = 0; i < m->n_tensors; i++) {
		bool matrix = m->tensors[i].layer >= 0 && m->tensors[i].shape[1] > 1;
		if (matrix && p.tensor[i].mode == PLACE_RESIDENT)
			squares += (double)m->tensors[i].params / m->hidden / m->hidden / m->n_layer;
		if (matrix && p.tensor[i].memory == hw_find_memory(ran.scenario->machine, "nvme0"))
			*drive_bytes += m->tensors[i].bytes;
	}
	arena_release(&ran.arena);
	return squares;
}

/* A layer has 12 squares: 4 of 1 and 2 of 4. A share takes whole tensors by their middle. */
START_TEST(shares_take_whole_tensors)
{
	uint64_t drive;

	assert_close(resident_squares("20 80 0 100 0 100", &drive), 1, 1e-9);
	assert_close(resident_squares("10 90 0 100 0 100", &drive), 0, 1e-9);
	assert_close(resident_squares("13 87 0 100 0 100", &drive), 1, 1e-9);
	assert_close(resident_squares("26 74 0 100 0 100", &drive), 5, 1e-9);
	ck_assert_uint_eq(drive, 0);
	assert_close(resident_squares("0 50 0 100 0 100", &drive), 0, 1e-9);
	assert_close((double)drive, 6.0 * 7168 * 7168 * 2 * 48, 1e-9);
}
END_TEST

static double step_s(const char *text, const char *sets)
{
	return run(text, sets, false).value[RESULT_TPOT_S];
}

/* Weights cross once a block and hide behind the first batch alone: a block of two costs one pass of computing more. */
START_TEST(weights_cross_once_a_block)
{
	static const char block[] = OPT_30B "workload: {batch: 16, prompt: 0, generate: 2, depth: 239}\n"
					    "flags: {percent: '0 100 100 0 100 0', gpu-batch-size: 8, num-gpu-batches: 2}\n";
	double two = step_s(block, NULL);
	double one = step_s(block, "workload.batch=8 flags.num-gpu-batches=1");
	double links = 59.95e9 / 13.84e9;
	/* Weights of one layer and its cache are read at 240 GB/s, the cache with the copies before. */
	double computing = 59.95e9 / (0.9 * 240e9) + 8 * 240 * 1.376e6 * 3 / (0.99 * 240e9);

	ck_assert_msg(one > links && one < 1.06 * links, "%g and %g", one, links);
	ck_assert_msg(two - one > computing && two - one < 1.15 * computing, "%g and %g", two - one, computing);
}
END_TEST

/* 8 sequences of which 5 on the GPU: whole ones. */
START_TEST(cache_is_divided_by_sequences)
{
	static const char text[] = OPT_30B "workload: {batch: 8, prompt: 239, generate: 2}\n"
					   "flags: {percent: '0 100 66 34 100 0', gpu-batch-size: 8, cpu-cache-compute: yes}\n";
	struct result r = run(text, NULL, false);
	const struct ledger_row *gpu = &r.memory.row[0], *ram = &r.memory.row[1];

	ck_assert_int_eq(r.fits, true);
	ck_assert_uint_eq(gpu->used_bytes[LEDGER_KV] * 3, ram->used_bytes[LEDGER_KV] * 5);
}
END_TEST

START_TEST(batch_must_be_the_block)
{
	struct ran ran;
	struct placement p;
	struct err err = {0};

	load(&ran, OPT_30B "workload: {batch: 7}\nflags: {percent: '0 100 0 100 0 100'}\n", NULL);
	ck_assert_int_eq(run_place(ran.scenario, &p, &ran.arena, &err), -1);
	ck_assert_msg(strstr(err.msg, "4 x 1") != NULL, "%s", err.msg);
	arena_release(&ran.arena);
}
END_TEST

START_TEST(too_much_is_a_result)
{
	struct result r = run(OPT_30B "workload: {batch: 4}\nflags: {}\n", NULL, false);

	ck_assert_int_eq(r.fits, false);
}
END_TEST

/* Compressed weights are expanded at that share of the memory's rate, 13 bytes each, of the embedding too: at half of it they take
   as long again. */
START_TEST(expansion_is_slower_than_copies)
{
	static const char text[] = "model: opt-6.7b\nquant: flexgen-int4-g64\nmachine: gcp-t4-208gb\nengine: flexgen\n"
				   "workload: {batch: 4, prompt: 16, generate: 4}\nflags: --compress-weight --gpu-batch-size 4\n";
	struct ran ran;
	struct run_options o = {.exact = true};
	struct err err = {0};
	struct result r[2];

	load(&ran, text, NULL);
	const struct hw_machine *m = ran.scenario->machine;
	for (int i = 0; i < 2; i++) {
		ran.scenario->cost->gpu_broadcast.measured = i ? 0.4 : 0.8;
		assert_ok(run_scenario(ran.scenario, &o, &ran.arena, &r[i], NULL, &err), err);
	}
	double bytes = 13 * (double)ran.scenario->model->params_total;
	assert_close(r[1].value[RESULT_TPOT_S] - r[0].value[RESULT_TPOT_S],
		bytes / (0.8 * hw_num_value(&m->memories[hw_find_memory(m, "gpu0")].bandwidth_bytes_s)), 0.05);
	arena_release(&ran.arena);
}
END_TEST

/* The README of FMInference/FlexLLMGen, tokens a second end to end on this machine: within what the machine's constants
   allow. The cache on disk is left out: see hw/machines. */
START_TEST(as_published)
{
	static const struct {
		const char *model, *quant, *batch, *flags;
		double tok_s;
	} rows[] = {
		{"opt-30b", "f16", "144", "--percent 20 80 0 100 0 100 --gpu-batch-size 48 --num-gpu-batches 3 --cpu-cache-compute", 7.32},
		{"opt-30b", "f16", "512", "--percent 0 100 0 100 0 100 --gpu-batch-size 64 --num-gpu-batches 8 --compress-cache", 8.38},
		{"opt-6.7b", "f16", "2", "--gpu-batch-size 2 --overlap False", 25.26},
		{"opt-6.7b", "flexgen-int4-g64", "72", "--gpu-batch-size 72 --overlap False --compress-weight --compress-cache", 29.12},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[512];
		snprintf(text, sizeof(text), "model: %s\nquant: %s\nmachine: gcp-t4-208gb\nengine: flexgen\n"
			"workload: {batch: %s, prompt: 512, generate: 32}\nflags: %s --debug-mode fewer_batch\n", rows[i].model,
			rows[i].quant, rows[i].batch, rows[i].flags);
		double tok_s = run(text, NULL, false).value[RESULT_E2E_TOK_S];
		ck_assert_msg(tok_s > 0.8 * rows[i].tok_s && tok_s < 1.2 * rows[i].tok_s, "%s: %g, published %g", rows[i].flags,
			tok_s, rows[i].tok_s);
	}
}
END_TEST

TEST_MAIN("flexgen", block_goes_layer_by_layer, cpu_attends_on_the_main_thread, without_overlap_in_order,
	shares_take_whole_tensors, weights_cross_once_a_block, cache_is_divided_by_sequences, batch_must_be_the_block,
	too_much_is_a_result, expansion_is_slower_than_copies, as_published)
