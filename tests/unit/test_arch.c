#include "models/model.h"

#include "base/csv.h"
#include "base/datadir.h"
#include "models/kvcache.h"
#include "models/read_hf.h"
#include "tests/test.h"

static struct arena arena;

static struct model *load(const char *name)
{
	struct err err = {0};
	struct model *m;

	assert_ok(model_load(name, "bf16", &arena, &m, &err), err);
	return m;
}

static struct model *parse(const char *text)
{
	struct err err = {0};
	struct model *m;

	assert_ok(read_hf_text(text, strlen(text), "config.json", "bf16", &arena, &m, &err), err);
	return m;
}

static const char *parse_error(const char *text)
{
	static struct err err;
	struct model *m;

	memset(&err, 0, sizeof(err));
	ck_assert_int_eq(read_hf_text(text, strlen(text), "config.json", NULL, &arena, &m, &err), -1);
	ck_assert_int_eq(err.code, ERR_INPUT);
	return err.msg;
}

static const struct model_tensor *find(const struct model *m, const char *name)
{
	for (int i = 0; i < m->n_tensors; i++) {
		if (!strcmp(m->tensors[i].name, name))
			return &m->tensors[i];
	}
	return NULL;
}

static void assert_shape(const struct model *m, const char *name, uint64_t x, uint64_t y, uint64_t z)
{
	const struct model_tensor *t = find(m, name);

	ck_assert_msg(t != NULL, "no tensor '%s'", name);
	ck_assert_msg(t->shape[0] == x && t->shape[1] == y && t->shape[2] == z, "%s is %llu x %llu x %llu",
		name, (unsigned long long)t->shape[0], (unsigned long long)t->shape[1],
		(unsigned long long)t->shape[2]);
}

static void open_data(struct csv *csv, const char *name, const char *const *columns, size_t n)
{
	struct err err = {0};
	const char *dir;

	assert_ok(datadir_find(&arena, &dir, &err), err);
	assert_ok(
		csv_open(csv, arena_printf(&arena, "%s/tests/data/%s", dir, name), columns, n, &arena, &err),
		err);
}

static const char *text_of(const struct csv_field *f)
{
	return arena_strndup(&arena, f->text, f->len);
}

static uint64_t off_by(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

START_TEST(published_counts)
{
	static const char *const columns[] = {"model", "params", "half_unit"};
	struct csv_field f[3];
	struct err err = {0};
	struct csv csv;
	int rc, n = 0;

	arena_init(&arena, NULL, NULL);
	open_data(&csv, "arch_params.csv", columns, 3);
	while ((rc = csv_next(&csv, f, &err)) > 0) {
		const struct model *m = load(text_of(&f[0]));
		uint64_t want = strtoull(f[1].text, NULL, 10), half = strtoull(f[2].text, NULL, 10);

		ck_assert_msg(off_by(m->params_total, want) <= half, "%s has %llu, not %llu", m->name,
			(unsigned long long)m->params_total, (unsigned long long)want);
		n++;
	}
	ck_assert_int_eq(rc, 0);
	ck_assert_int_ge(n, 65);
	arena_release(&arena);
}
END_TEST

/* What training codes print, of fine-tunes that have no card: safetensors indexes of
   deepcogito/cogito-v1-preview- qwen-14B and of a Code Llama 34B with four more words. */
START_TEST(fine_tunes)
{
	arena_init(&arena, NULL, NULL);
	ck_assert_uint_eq(
		parse("{\"model_type\": \"qwen2\", \"num_hidden_layers\": 48, \"hidden_size\": 5120,"
		      "\"intermediate_size\": 13824, \"num_attention_heads\": 40, \"num_key_value_heads\": 8,"
		      "\"vocab_size\": 151665, \"tie_word_embeddings\": false}")
			->params_total,
		UINT64_C(14765947904));
	ck_assert_uint_eq(
		parse("{\"model_type\": \"llama\", \"num_hidden_layers\": 48, \"hidden_size\": 8192,"
		      "\"intermediate_size\": 22016, \"num_attention_heads\": 64, \"num_key_value_heads\": 8,"
		      "\"vocab_size\": 32004}")
			->params_total,
		UINT64_C(33744035840));
	arena_release(&arena);
}
END_TEST

START_TEST(published_caches)
{
	static const char *const columns[] = {
		"model", "what", "k_type", "v_type", "mla", "context", "sequences", "bytes", "half_unit"};
	struct csv_field f[9];
	struct err err = {0};
	struct csv csv;
	int rc, n = 0;

	arena_init(&arena, NULL, NULL);
	open_data(&csv, "kv_oracle.csv", columns, 9);
	while ((rc = csv_next(&csv, f, &err)) > 0) {
		const struct model *m = load(text_of(&f[0]));
		struct kvcache_types t = {quant_find(text_of(&f[2])), quant_find(text_of(&f[3])),
			kvcache_form_find(text_of(&f[4]))};
		uint64_t context = strtoull(f[5].text, NULL, 10), sequences = strtoull(f[6].text, NULL, 10);
		uint64_t want = strtoull(f[7].text, NULL, 10), half = strtoull(f[8].text, NULL, 10),
			 state = 0, got;

		for (uint32_t i = 0; i < m->n_layer; i++)
			state += m->layers[i].state_bytes;
		got = kvcache_bytes(m, context, sequences, &t) - sequences * state;
		if (!strcmp(text_of(&f[1]), "state"))
			got = sequences * state;
		ck_assert_msg(off_by(got, want) <= half, "line %d: %llu, not %llu", csv.line,
			(unsigned long long)got, (unsigned long long)want);
		n++;
	}
	ck_assert_int_eq(rc, 0);
	ck_assert_int_eq(n, 70);
	arena_release(&arena);
}
END_TEST

START_TEST(latent_attention)
{
	const struct model *m;
	const struct model_layer *l;

	arena_init(&arena, NULL, NULL);
	m = load("deepseek-v3");
	l = &m->layers[60];
	ck_assert_uint_eq(m->n_layer, 61); /* the MTP layer is not part of what GGUF holds */
	ck_assert_uint_eq(l->n_head, 128);
	ck_assert_uint_eq(l->n_kv_head, 1);
	ck_assert_uint_eq(l->head_dim_k, 576);
	ck_assert_uint_eq(l->head_dim_v, 512);
	ck_assert_uint_eq(l->mla_dim_k, 192);
	ck_assert_uint_eq(l->mla_dim_v, 128);
	ck_assert_uint_eq(l->kv_k_elements, 576);
	ck_assert_uint_eq(l->kv_v_elements, 0);
	assert_close(model_attention_flops(l, 1, 1000), 2.0 * 1000 * 128 * (2 * 512 + 64), 0);
	assert_shape(m, "blk.0.attn_q_a.weight", 7168, 1536, 1);
	assert_shape(m, "blk.0.attn_q_b.weight", 1536, 128 * 192, 1);
	assert_shape(m, "blk.0.attn_kv_a_mqa.weight", 7168, 576, 1);
	assert_shape(m, "blk.0.attn_k_b.weight", 128, 512, 128);
	assert_shape(m, "blk.0.attn_v_b.weight", 512, 128, 128);
	assert_shape(m, "blk.2.ffn_up.weight", 7168, 18432, 1);
	ck_assert_ptr_null(find(m, "blk.3.ffn_up.weight"));
	assert_shape(m, "blk.3.ffn_up_shexp.weight", 7168, 2048, 1);
	assert_shape(m, "blk.3.exp_probs_b.bias", 256, 1, 1);
	ck_assert_uint_eq(m->layers[2].n_expert, 0);
	ck_assert_uint_eq(l->n_expert_used, 8);
	/* no low rank for queries, no correction of the router */
	m = load("deepseek-v2-lite");
	assert_shape(m, "blk.0.attn_q.weight", 2048, 16 * 192, 1);
	ck_assert_ptr_null(find(m, "blk.1.exp_probs_b.bias"));
	assert_shape(m, "blk.1.ffn_up_shexp.weight", 2048, 2 * 1408, 1);
	arena_release(&arena);
}
END_TEST

START_TEST(sparse_attention)
{
	const struct model *m;
	const struct quant_type *f16 = quant_find("f16");
	int full = 0;

	arena_init(&arena, NULL, NULL);
	m = load("deepseek-v3.2");
	ck_assert_uint_eq(kvcache_token_bytes(&m->layers[0], KVCACHE_SAME(f16)), (576 + 128) * 2);
	assert_shape(m, "blk.0.indexer.attn_q_b.weight", 1536, 64 * 128, 1);
	assert_shape(m, "blk.0.indexer.proj.weight", 7168, 64, 1);
	/* attention stops growing at 2048 entries, the indexer's scores do not */
	assert_close(model_flops_per_token(m, 20000) - model_flops_per_token(m, 10000),
		61.0 * 10000 * 2 * 64 * 128, 1e-9);
	/* GLM-5.2: some layers use what another picked */
	m = load("glm-5.2");
	for (uint32_t i = 0; i < m->n_layer; i++)
		full += m->layers[i].index_heads != 0;
	ck_assert_int_eq(full, 21 + 1);
	ck_assert_ptr_null(find(m, "blk.4.indexer.attn_k.weight"));
	ck_assert_uint_eq(m->layers[4].kv_extra_elements, 0);
	arena_release(&arena);
}
END_TEST

/* DeepSeek-V4: a window of 128, one entry every 4 tokens with an index key, or every 128 without. */
START_TEST(compressed_attention)
{
	const struct model *m;
	const struct quant_type *f16 = quant_find("f16");

	arena_init(&arena, NULL, NULL);
	m = load("deepseek-v4-flash");
	ck_assert_uint_eq(kvcache_layer_bytes(&m->layers[0], 100000, KVCACHE_SAME(f16)), 128 * 512 * 2);
	ck_assert_uint_eq(
		kvcache_layer_bytes(&m->layers[2], 100000, KVCACHE_SAME(f16)), 128 * 512 * 2 + 25000 * (512 + 128) * 2);
	ck_assert_uint_eq(kvcache_layer_bytes(&m->layers[3], 100000, KVCACHE_SAME(f16)), 128 * 512 * 2 + 781 * 512 * 2);
	ck_assert_uint_eq(kvcache_token_bytes(&m->layers[2], KVCACHE_SAME(f16)), 512 * 2 + 640 * 2 / 4);
	assert_shape(m, "blk.2.attn_output_a.weight", 64 * 512 / 8, 1024, 8);
	assert_shape(m, "blk.0.ffn_gate_tid2eid.weight", 6, 129280, 1);
	/* V4.1: only four layers keep entries, for all */
	m = load("deepseek-v4.1-flash");
	ck_assert_uint_eq(m->layers[2].kv_extra_elements, 512 + 128);
	ck_assert_uint_eq(m->layers[3].kv_extra_elements, 0);
	ck_assert_uint_eq(m->layers[20].kv_extra_every, 1);
	assert_shape(m, "blk.14.engram_embd.weight", 256, 384016682, 1);
	ck_assert(m->params_active < m->params_total - UINT64_C(2) * 384000000 * 256);
	arena_release(&arena);
}
END_TEST

START_TEST(mtp_layers)
{
	const struct model *m;
	const struct model_layer *l;

	arena_init(&arena, NULL, NULL);
	m = load("glm-4.5");
	ck_assert_uint_eq(m->n_layer, 93);
	l = &m->layers[92];
	ck_assert(l->draft && !m->layers[91].draft);
	ck_assert_uint_eq(kvcache_token_bytes(l, KVCACHE_SAME(quant_find("f16"))), 0);
	assert_shape(m, "blk.92.nextn.eh_proj.weight", 2 * 5120, 5120, 1);
	assert_shape(m, "blk.92.ffn_up_exps.weight", 5120, 1536, 160);
	/* stored, but neither active nor run */
	ck_assert(m->params_active < UINT64_C(34000000000));
	ck_assert(model_flops_per_token(m, 1) < 2.0 * (double)m->params_active);
	ck_assert_uint_eq(kvcache_bytes(m, 10, 1, KVCACHE_SAME(quant_find("f16"))), 10 * 92 * 2 * 8 * 128 * 2);
	arena_release(&arena);
}
END_TEST

static void assert_windows(const char *name, uint32_t window, const char *pattern)
{
	const struct model *m = load(name);

	for (uint32_t i = 0; i < m->n_layer; i++) {
		char kind = pattern[i % strlen(pattern)];

		ck_assert_msg(m->layers[i].window == (kind == 'L' ? window : 0), "%s, layer %u: %u", name, i,
			m->layers[i].window);
	}
}

START_TEST(windows)
{
	const struct model *m;

	arena_init(&arena, NULL, NULL);
	assert_windows("gemma-2-9b", 4096, "LG");
	assert_windows("gemma-3-27b", 1024, "LLLLLG");
	assert_windows("gemma-3-12b", 1024, "LLLLLG");
	assert_windows("gemma-3-1b", 512, "LLLLLG");
	assert_windows("gemma-4-e2b", 512, "LLLLG");
	assert_windows("gpt-oss-120b", 128, "LG");
	assert_windows("llama-4-scout", 8192, "LLLG");
	assert_windows("olmo-3.1-32b", 4096, "LLLG");
	assert_windows("laguna-s-2.1", 512, "GLLL");
	assert_windows("step-3.7-flash", 512, "GLLL");
	assert_windows("mistral-7b-v0.3", 0, "G");
	assert_windows("phi-3-mini-4k", 2047, "L");
	/* heads differ with the kind of layer */
	m = load("mimo-v2-flash");
	ck_assert_uint_eq(m->layers[0].window, 0);
	ck_assert_uint_eq(m->layers[0].kv_k_elements, 4 * 192);
	ck_assert_uint_eq(m->layers[0].kv_v_elements, 4 * 128);
	ck_assert_uint_eq(m->layers[1].window, 128);
	ck_assert_uint_eq(m->layers[1].kv_k_elements, 8 * 192);
	assert_shape(m, "blk.1.attn_sinks.weight", 64, 1, 1);
	ck_assert_ptr_null(find(m, "blk.0.attn_sinks.weight"));
	m = load("laguna-s-2.1");
	ck_assert_uint_eq(m->layers[0].n_head, 48);
	ck_assert_uint_eq(m->layers[1].n_head, 72);
	m = load("gemma-4-26b-a4b");
	ck_assert_uint_eq(m->layers[5].head_dim_k, 512);
	ck_assert_uint_eq(m->layers[5].n_kv_head, 2);
	ck_assert_ptr_null(find(m, "blk.5.attn_v.weight"));
	ck_assert_uint_eq(m->layers[5].kv_v_elements, 2 * 512);
	assert_shape(m, "blk.0.ffn_gate_up_exps.weight", 2816, 2 * 704, 128);
	/* Gemma 3 27B with windows kept: ik_llama.cpp, which keeps none, prints 15872 MiB at 32768 */
	m = load("gemma-3-27b");
	ck_assert_uint_eq(
		kvcache_bytes(m, 32768, 1, KVCACHE_SAME(quant_find("f16"))), UINT64_C(8192) * (10 * 32768 + 52 * 1024));
	arena_release(&arena);
}
END_TEST

START_TEST(shared_caches)
{
	const struct model *m;
	uint32_t keep = 0;

	arena_init(&arena, NULL, NULL);
	m = load("gemma-4-e4b");
	for (uint32_t i = 0; i < m->n_layer; i++)
		keep += m->layers[i].kv_k_elements != 0;
	ck_assert_uint_eq(keep, 42 - 18);
	ck_assert_uint_eq(m->layers[41].n_head, 8);
	assert_shape(m, "per_layer_token_embd.weight", 42 * 256, 262144, 1);
	ck_assert_uint_eq(m->params_total - m->params_active, UINT64_C(42) * 256 * 262144);
	arena_release(&arena);
}
END_TEST

START_TEST(recurrent_layers)
{
	const struct model *m;
	uint32_t attend = 0, state = 0;

	arena_init(&arena, NULL, NULL);
	/* gated DeltaNet: loader logs of Qwen3-Next print R 3.38 MiB and S 72.00 MiB a sequence */
	m = load("qwen3-next-80b-a3b");
	ck_assert_uint_eq(m->layers[0].n_head, 0);
	ck_assert_uint_eq(m->layers[0].state_bytes, (3 * (2 * 2048 + 4096) + 32 * 128 * 128) * 4);
	ck_assert_uint_eq(m->layers[3].state_bytes, 0);
	ck_assert_uint_eq(m->layers[3].kv_k_elements, 512);
	assert_shape(m, "blk.0.attn_qkv.weight", 2048, 8192, 1);
	assert_shape(m, "blk.0.ssm_ba.weight", 2048, 64, 1);
	assert_shape(m, "blk.3.attn_q.weight", 2048, 2 * 16 * 256, 1);
	assert_close(m->layers[0].state_flops, 7.0 * 32 * 128 * 128, 0);
	ck_assert(m->layers[0].group[MODEL_ATTN].params > 0);
	/* Jamba: 4 of 32 layers attend; 4 GiB at 256K tokens (arXiv 2403.19887) */
	m = load("jamba-v0.1");
	for (uint32_t i = 0; i < m->n_layer; i++) {
		attend += m->layers[i].n_head != 0;
		state += m->layers[i].state_bytes != 0;
		ck_assert_uint_eq(m->layers[i].n_expert, i % 2 ? 16 : 0);
	}
	ck_assert_uint_eq(attend, 4);
	ck_assert_uint_eq(state, 28);
	ck_assert_uint_eq(m->layers[0].state_bytes, (3 * 8192 + 8192 * 16) * 4);
	ck_assert_uint_eq(kvcache_bytes(m, 262144, 1, KVCACHE_SAME(quant_find("bf16"))) - 28 * m->layers[0].state_bytes,
		UINT64_C(4) << 30);
	/* Nemotron-H: one mixer or one feed-forward a block */
	m = load("nemotron-3-nano-30b-a3b");
	ck_assert_uint_eq(m->layers[0].state_bytes, (3 * (4096 + 2 * 8 * 128) + 4096 * 128) * 4);
	ck_assert_uint_eq(m->layers[1].n_expert, 128);
	ck_assert_uint_eq(m->layers[1].group[MODEL_ATTN].params, 0);
	ck_assert_uint_eq(m->layers[5].n_kv_head, 2);
	ck_assert_ptr_null(find(m, "blk.1.ffn_gate_exps.weight"));
	/* linear attention: 128 * 128 * 64 elements a layer */
	m = load("minimax-m1");
	ck_assert_uint_eq(m->layers[0].state_bytes, 1048576 * 4);
	ck_assert_uint_eq(m->layers[7].kv_k_elements, 8 * 128);
	m = load("granite-4.0-h-small");
	ck_assert_uint_eq(m->layers[5].n_head, 32);
	ck_assert_uint_eq(m->layers[6].n_head, 0);
	assert_shape(m, "blk.6.ffn_up_shexp.weight", 4096, 1536, 1);
	/* what the state is kept in */
	m = parse(
		"{\"model_type\": \"mamba2\", \"num_hidden_layers\": 1, \"hidden_size\": 64, \"vocab_size\": "
		"10,"
		"\"num_heads\": 4, \"head_dim\": 32, \"state_size\": 16, \"n_groups\": 2, \"conv_kernel\": 4,"
		"\"mamba_ssm_cache_dtype\": \"bfloat16\"}");
	ck_assert_uint_eq(m->layers[0].state_bytes, 3 * (128 + 2 * 2 * 16) * 4 + 128 * 16 * 2);
	ck_assert_uint_eq(m->n_tensors, 9 + 3);
	arena_release(&arena);
}
END_TEST

START_TEST(older_families)
{
	const struct model *m;

	arena_init(&arena, NULL, NULL);
	m = load("bloom-176b");
	assert_shape(m, "token_embd_norm.bias", 14336, 1, 1);
	assert_shape(m, "blk.0.attn_qkv.weight", 14336, 3 * 14336, 1);
	assert_shape(m, "blk.0.ffn_up.weight", 14336, 4 * 14336, 1);
	ck_assert(m->tied_embeddings);
	m = load("falcon-40b");
	assert_shape(m, "blk.0.attn_norm_2.bias", 8192, 1, 1);
	assert_shape(m, "blk.0.attn_qkv.weight", 8192, 8192 + 2 * 8 * 64, 1);
	ck_assert_uint_eq(m->layers[0].n_kv_head, 8);
	m = load("falcon-7b");
	ck_assert_ptr_null(find(m, "blk.0.attn_norm_2.weight"));
	ck_assert_uint_eq(m->layers[0].n_kv_head, 1);
	m = load("gpt-j-6b");
	ck_assert_ptr_null(find(m, "blk.0.ffn_norm.weight"));
	assert_shape(m, "output.bias", 50400, 1, 1);
	m = load("gpt-neox-20b");
	assert_shape(m, "blk.0.ffn_norm.bias", 6144, 1, 1);
	m = load("gpt-oss-20b");
	assert_shape(m, "blk.0.ffn_up_exps.bias", 2880, 32, 1);
	assert_shape(m, "blk.0.ffn_gate_inp.bias", 32, 1, 1);
	assert_shape(m, "blk.0.attn_sinks.weight", 64, 1, 1);
	ck_assert(!model_tensor_is_matrix(find(m, "blk.0.ffn_up_exps.bias")));
	ck_assert(model_tensor_is_matrix(find(m, "blk.0.ffn_up_exps.weight")));
	m = load("llama-4-maverick");
	ck_assert_uint_eq(m->layers[0].n_expert, 0);
	ck_assert_uint_eq(m->layers[1].n_expert, 128);
	assert_shape(m, "blk.0.ffn_up.weight", 5120, 16384, 1);
	assert_shape(m, "blk.1.ffn_up_shexp.weight", 5120, 8192, 1);
	m = load("nemotron-super-49b");
	ck_assert_uint_eq(m->layers[6].n_head, 0);
	ck_assert_uint_eq(m->layers[6].kv_k_elements, 0);
	assert_shape(m, "blk.1.ffn_up.weight", 8192, 28672, 1);
	arena_release(&arena);
}
END_TEST

START_TEST(encoder_and_decoder)
{
	const struct model *m;
	double flops;

	arena_init(&arena, NULL, NULL);
	m = load("t0pp-11b");
	ck_assert_uint_eq(m->n_layer, 48);
	ck_assert(m->layers[0].prefill_only && !m->layers[24].prefill_only);
	ck_assert_uint_eq(m->layers[0].kv_k_elements, 0);
	ck_assert_uint_eq(m->layers[24].kv_k_elements, 64 * 64);
	assert_shape(m, "enc.blk.0.attn_rel_b.weight", 64, 32, 1);
	assert_shape(m, "dec.blk.23.cross_attn_k.weight", 4096, 4096, 1);
	assert_shape(m, "enc.blk.1.ffn_gate.weight", 4096, 10240, 1);
	ck_assert_ptr_null(find(m, "enc.blk.1.attn_rel_b.weight"));
	/* decoding runs the decoder: half of the attention and feed-forward, and cross attention */
	flops = model_flops_per_token(m, 0);
	assert_close(flops, 2.0 * (24 * (8.0 * 4096 * 4096 + 3.0 * 4096 * 10240) + 32128 * 4096.0), 1e-4);
	ck_assert_ptr_nonnull(
		strstr(model_canonical(m, &arena), "\n1 of: heads 64/64 dims 64/64 window 0 kv 0/0"));
	m = load("switch-base-128");
	ck_assert_uint_eq(m->layers[0].n_expert, 0);
	ck_assert_uint_eq(m->layers[1].n_expert, 128);
	ck_assert(m->tied_embeddings);
	m = load("nllb-moe-54b");
	ck_assert_uint_eq(m->layers[3].n_expert, 128);
	ck_assert_uint_eq(m->layers[3].n_expert_used, 2);
	arena_release(&arena);
}
END_TEST

#define PLAIN "\"num_hidden_layers\": 2, \"hidden_size\": 64, \"num_attention_heads\": 4, \"vocab_size\": 100"

START_TEST(unknown_architectures)
{
	const struct model *m;

	arena_init(&arena, NULL, NULL);
	m = parse("{\"architectures\": [\"FooForCausalLM\"], " PLAIN ", \"intermediate_size\": 96}");
	ck_assert_str_eq(m->note, "architecture 'FooForCausalLM' is unknown; read as llama");
	ck_assert_str_eq(m->architecture, "llama");
	m = parse("{\"model_type\": \"foo9\", " PLAIN ", \"intermediate_size\": 96, \"sliding_window\": 8,"
		  "\"layer_types\": [\"sliding_attention\", \"full_attention\"]}");
	ck_assert_str_eq(m->architecture, "mistral");
	ck_assert_uint_eq(m->layers[0].window, 8);
	ck_assert_uint_eq(m->layers[1].window, 0);
	m = parse("{\"model_type\": \"foo9\", " PLAIN ", \"intermediate_size\": 96, \"n_routed_experts\": 4,"
		  "\"num_experts_per_tok\": 2, \"moe_intermediate_size\": 16, \"n_shared_experts\": 1,"
		  "\"first_k_dense_replace\": 1}");
	ck_assert_str_eq(m->note, "architecture 'foo9' is unknown; read as deepseek");
	ck_assert_uint_eq(m->layers[0].n_expert, 0);
	ck_assert_uint_eq(m->layers[1].n_expert, 4);
	m = parse("{\"model_type\": \"foo9\", " PLAIN ", \"intermediate_size\": 96, \"kv_lora_rank\": 32,"
		  "\"qk_nope_head_dim\": 16, \"qk_rope_head_dim\": 8, \"v_head_dim\": 16}");
	ck_assert_str_eq(m->architecture, "deepseek2");
	ck_assert_uint_eq(m->layers[0].kv_k_elements, 40);
	/* known ones have nothing to say */
	ck_assert_str_eq(load("llama-3-8b")->note, "");
	/* alien: no text is generated, or layers are of a kind that is not known */
	ck_assert_ptr_nonnull(strstr(parse_error("{\"architectures\": [\"BertForMaskedLM\"], " PLAIN
						 ", \"intermediate_size\": 96, \"type_vocab_size\": 2}"),
		"architecture 'BertForMaskedLM' is not known"));
	ck_assert_ptr_nonnull(
		strstr(parse_error("{\"model_type\": \"rwkv9\", \"num_hidden_layers\": 2,"
				   "\"hidden_size\": 64, \"attention_hidden_size\": 64, \"vocab_size\": 9}"),
			"architecture 'rwkv9' is not known"));
	ck_assert_ptr_nonnull(
		strstr(parse_error("{\"model_type\": \"foo9\", " PLAIN ", \"intermediate_size\": 96,"
				   "\"layer_types\": [\"mamba\", \"full_attention\"]}"),
			"'layer_types' has 'mamba'"));
	arena_release(&arena);
}
END_TEST

START_TEST(bad_keys)
{
	arena_init(&arena, NULL, NULL);
	ck_assert_str_eq(
		parse_error(
			"{\"model_type\": \"nemotron_h\", " PLAIN ", \"intermediate_size\": 96,"
			"\"mamba_num_heads\": 2, \"mamba_head_dim\": 8, \"hybrid_override_pattern\": \"M\"}"),
		"'hybrid_override_pattern' must have one letter for each of 2 layers");
	ck_assert_str_eq(parse_error("{\"model_type\": \"nemotron_h\", " PLAIN ", \"intermediate_size\": 96,"
				     "\"mamba_num_heads\": 2, \"mamba_head_dim\": 8, "
				     "\"hybrid_override_pattern\": \"MX\"}"),
		"layer 1 is of the unknown kind 'X'");
	ck_assert_str_eq(parse_error("{\"model_type\": \"kimi_linear\", " PLAIN ", \"intermediate_size\": 96,"
				     "\"num_experts\": 2, \"num_experts_per_token\": 1}"),
		"has no 'linear_attn_config'");
	ck_assert_str_eq(
		parse_error("{\"model_type\": \"deepseek_v3\", " PLAIN ", \"intermediate_size\": 96}"),
		"has no 'kv_lora_rank'");
	ck_assert_str_eq(parse_error("{\"model_type\": \"laguna\", " PLAIN ", \"intermediate_size\": 96,"
				     "\"num_experts\": 2, \"num_experts_per_tok\": 1, "
				     "\"num_attention_heads_per_layer\": [4]}"),
		"'num_attention_heads_per_layer' must be a list of 2 entries, one a layer");
	ck_assert_str_eq(
		parse_error("{\"model_type\": \"nemotron-nas\", " PLAIN ", \"block_configs\": ["
			    "{\"attention\": {\"n_heads_in_group\": 3}, \"ffn\": {\"ffn_mult\": 1}}, {}]}"),
		"'block_configs' has a group of 3 of 4 heads");
	arena_release(&arena);
}
END_TEST

/* Every key of the corpus of measurements loads. */
START_TEST(corpus_keys)
{
	static const char *const keys[] = {"deepseek-v3", "deepseek-r1", "deepseek-v3.2", "deepseek-v4-flash",
		"deepseek-v4.1-flash", "deepseek-v4-pro", "deepseek-v2-lite", "deepseek-coder-v2-lite",
		"deepseek-r1-distill-llama-8b", "deepseek-r1-distill-qwen-1.5b", "kimi-k2",
		"kimi-k2-thinking", "kimi-dev-72b", "minimax-m2.1", "qwen3-next-80b-a3b", "qwen3-coder-next",
		"qwen3-235b-a22b", "qwen3-30b-a3b", "qwen3-coder-30b-a3b", "qwen3-8b", "qwen3-14b",
		"qwen3-32b", "qwen3.5-27b", "qwen3.5-35b-a3b", "qwen3.5-397b-a17b", "qwen3.6-35b-a3b",
		"qwen3.8-27b", "qwen3.8-flash-next", "qwen2.5-3b", "qwen2.5-14b", "qwen2.5-7b", "qwen2.5-32b",
		"qwen2.5-72b", "gpt-oss-120b", "gpt-oss-20b", "glm-4.5", "glm-4.7-flash", "glm-5.1",
		"glm-5.2", "glm-5.3-flash", "glm-4-9b-1m", "laguna-s-2.1", "llama-4-scout",
		"llama-4-maverick", "llama-1-7b", "llama-2-7b", "llama-2-13b", "llama-2-22b", "llama-2-70b",
		"llama-3-8b", "llama-3-8b-1m", "llama-3-70b", "llama-3.1-8b", "llama-3.1-70b",
		"llama-3.1-405b", "llama-3.2-3b", "llama-3.3-70b", "llama-70b-unstated", "mixtral-8x7b",
		"mixtral-8x22b", "wizardlm-2-8x22b", "mistral-7b-v0.3", "mistral-small-24b", "gemma-2-9b",
		"gemma-3-12b", "gemma-4-26b-a4b", "phi-4", "bloom-176b", "opt-6.7b", "opt-30b", "opt-66b",
		"opt-175b", "gpt-j-6b", "gpt-neox-20b", "t0pp-11b", "vicuna-33b", "internlm-20b",
		"yi-9b-200k", "miqu-70b", "nllb-moe-54b", "switch-large-128", "relullama-7b", "relullama-70b",
		"relufalcon-40b", "unstated-dense-1.5b", "unstated-dense-3b", "unstated-dense-7b",
		"unstated-dense-8b"};

	arena_init(&arena, NULL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		struct arena_mark mark = arena_mark(&arena);

		ck_assert_uint_gt(load(keys[i])->params_total, 0);
		arena_rewind(&arena, mark);
	}
	arena_release(&arena);
}
END_TEST

TEST_MAIN("arch", published_counts, fine_tunes, published_caches, latent_attention, sparse_attention,
	compressed_attention, mtp_layers, windows, shared_caches, recurrent_layers, older_families,
	encoder_and_decoder, unknown_architectures, bad_keys, corpus_keys)
