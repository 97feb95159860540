#include "models/model.h"

#include <sys/stat.h>

#include "base/csv.h"
#include "base/datadir.h"
#include "models/build.h"
#include "models/read_hf.h"
#include "tests/test.h"

static struct arena arena;

static struct model *load(const char *name, const char *quant)
{
	struct err err = {0};
	struct model *m;

	assert_ok(model_load(name, quant, &arena, &m, &err), err);
	return m;
}

static const char *data_path(const char *name)
{
	struct err err = {0};
	const char *dir;

	assert_ok(datadir_find(&arena, &dir, &err), err);
	return arena_printf(&arena, "%s/tests/data/%s", dir, name);
}

static struct model *parse(const char *text)
{
	struct err err = {0};
	struct model *m;

	assert_ok(read_hf_text(text, strlen(text), "config.json", NULL, &arena, &m, &err), err);
	return m;
}

/* The message that this config gives. */
static const char *parse_error(const char *text)
{
	static struct err err;
	struct model *m;

	memset(&err, 0, sizeof(err));
	ck_assert_int_eq(read_hf_text(text, strlen(text), "config.json", NULL, &arena, &m, &err), -1);
	ck_assert_int_eq(err.code, ERR_INPUT);
	ck_assert_str_eq(err.file, "config.json");
	return err.msg;
}

static const struct model_tensor *tensor(const struct model *m, const char *name)
{
	for (int i = 0; i < m->n_tensors; i++) {
		if (!strcmp(m->tensors[i].name, name))
			return &m->tensors[i];
	}
	return NULL;
}

static void assert_tensor(
	const struct model *m, const char *name, const char *type, uint64_t x, uint64_t y, uint64_t z)
{
	const struct model_tensor *t = tensor(m, name);

	ck_assert_msg(t != NULL, "no tensor '%s'", name);
	ck_assert_str_eq(t->type->name, type);
	ck_assert_uint_eq(t->shape[0], x);
	ck_assert_uint_eq(t->shape[1], y);
	ck_assert_uint_eq(t->shape[2], z);
	ck_assert_uint_eq(t->params, x * y * z);
	ck_assert_uint_eq(t->bytes, quant_bytes(t->type, x, y * z));
}

/* Half of what is published: keys are the same everywhere. */
#define LLAMA(more)                                                                                          \
	"{\"model_type\": \"llama\", \"num_hidden_layers\": 2, \"hidden_size\": 64, "                        \
	"\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"intermediate_size\": 96, "                \
	"\"vocab_size\": 100" more "}"

#define QWEN_MOE(more)                                                                                       \
	"{\"model_type\": \"qwen2_moe\", \"num_hidden_layers\": 6, \"hidden_size\": 64, "                    \
	"\"num_attention_heads\": 4, \"num_key_value_heads\": 4, \"intermediate_size\": 96, "                \
	"\"vocab_size\": 100, \"num_experts\": 8, \"num_experts_per_tok\": 2, "                              \
	"\"moe_intermediate_size\": 32, \"shared_expert_intermediate_size\": 128" more "}"

START_TEST(published_counts)
{
	static const char *const columns[] = {"model", "params", "half_unit"};
	struct csv_field f[3];
	struct csv csv;
	struct err err = {0};
	int rc, n = 0;

	arena_init(&arena, NULL, NULL);
	assert_ok(csv_open(&csv, data_path("model_params.csv"), columns, 3, &arena, &err), err);
	while ((rc = csv_next(&csv, f, &err)) > 0) {
		const struct model *m = load(arena_strndup(&arena, f[0].text, f[0].len), NULL);
		uint64_t want = strtoull(f[1].text, NULL, 10), half = strtoull(f[2].text, NULL, 10);
		uint64_t off = m->params_total > want ? m->params_total - want : want - m->params_total;

		ck_assert_msg(off <= half, "%s has %llu", m->name, (unsigned long long)m->params_total);
		n++;
	}
	ck_assert_int_eq(rc, 0);
	ck_assert_int_eq(n, 25);
	arena_release(&arena);
}
END_TEST

START_TEST(published_active_counts)
{
	arena_init(&arena, NULL, NULL);
	/* as the model's publisher rounds them */
	assert_close((double)load("mixtral-8x7b", NULL)->params_active, 12.9e9, 0.05 / 12.9);
	assert_close((double)load("mixtral-8x22b", NULL)->params_active, 39e9, 0.5 / 39);
	assert_close((double)load("qwen1.5-moe-a2.7b", NULL)->params_active, 2.7e9, 0.05 / 2.7);
	assert_close((double)load("qwen2-57b-a14b", NULL)->params_active, 14e9, 0.5 / 14);
	assert_close((double)load("qwen3-235b-a22b", NULL)->params_active, 22e9, 0.5 / 22);
	assert_close((double)load("qwen3-coder-480b-a35b", NULL)->params_active, 35e9, 0.5 / 35);
	ck_assert_uint_eq(
		load("llama-3.2-1b", NULL)->params_active, load("llama-3.2-1b", NULL)->params_total);
	arena_release(&arena);
}
END_TEST

START_TEST(published_sizes)
{
	static const char *const columns[] = {"model", "quant", "bytes", "half_unit", "header_bytes"};
	struct csv_field f[5];
	struct csv csv;
	struct err err = {0};
	int rc, n = 0;

	arena_init(&arena, NULL, NULL);
	assert_ok(csv_open(&csv, data_path("model_sizes.csv"), columns, 5, &arena, &err), err);
	while ((rc = csv_next(&csv, f, &err)) > 0) {
		const char *quant = arena_strndup(&arena, f[1].text, f[1].len);
		const struct model *m = load(arena_strndup(&arena, f[0].text, f[0].len), quant);
		uint64_t want = strtoull(f[2].text, NULL, 10), half = strtoull(f[3].text, NULL, 10);
		uint64_t header = strtoull(f[4].text, NULL, 10);

		ck_assert_msg(m->weights_bytes <= want + half && m->weights_bytes + half + header >= want,
			"%s %s has %llu", m->name, quant, (unsigned long long)m->weights_bytes);
		n++;
	}
	ck_assert_int_eq(rc, 0);
	ck_assert_int_eq(n, 12);
	arena_release(&arena);
}
END_TEST

/* Of fine-tunes whose counts are published exactly (safetensors indexes: Reflection-Llama-3.1-70B, and
   dolphin-2.5-mixtral-8x7b): more words, else the same. */
START_TEST(fine_tunes_with_more_words)
{
	arena_init(&arena, NULL, NULL);
	ck_assert_uint_eq(
		parse("{\"architectures\": [\"LlamaForCausalLM\"], \"hidden_size\": 8192,"
		      "\"intermediate_size\": 28672, \"num_attention_heads\": 64, \"num_hidden_layers\": 80,"
		      "\"num_key_value_heads\": 8, \"vocab_size\": 128262}")
			->params_total,
		UINT64_C(70553804800));
	ck_assert_uint_eq(
		parse("{\"model_type\": \"mixtral\", \"hidden_size\": 4096, \"intermediate_size\": 14336,"
		      "\"num_attention_heads\": 32, \"num_hidden_layers\": 32, \"num_key_value_heads\": 8,"
		      "\"num_local_experts\": 8, \"num_experts_per_tok\": 2, \"vocab_size\": 32002}")
			->params_total,
		UINT64_C(46702809088));
	arena_release(&arena);
}
END_TEST

START_TEST(llama_tensors)
{
	const struct model *m;

	arena_init(&arena, NULL, NULL);
	m = load("Llama-3.1-70B", "q4_k");
	ck_assert_str_eq(m->name, "Llama-3.1-70B");
	ck_assert_str_eq(m->architecture, "llama");
	ck_assert_str_eq(m->quant, "q4_k");
	ck_assert_int_eq(m->n_tensors, 80 * 9 + 3);
	ck_assert_uint_eq(m->context_max, 131072);
	ck_assert(!m->tied_embeddings);
	assert_tensor(m, "token_embd.weight", "q4_k", 8192, 128256, 1);
	assert_tensor(m, "blk.0.attn_norm.weight", "f32", 8192, 1, 1);
	assert_tensor(m, "blk.79.attn_q.weight", "q4_k", 8192, 8192, 1);
	assert_tensor(m, "blk.79.attn_k.weight", "q4_k", 8192, 1024, 1);
	assert_tensor(m, "blk.79.attn_v.weight", "q4_k", 8192, 1024, 1);
	assert_tensor(m, "blk.7.attn_output.weight", "q4_k", 8192, 8192, 1);
	assert_tensor(m, "blk.10.ffn_gate.weight", "q4_k", 8192, 28672, 1);
	assert_tensor(m, "blk.10.ffn_up.weight", "q4_k", 8192, 28672, 1);
	assert_tensor(m, "blk.10.ffn_down.weight", "q4_k", 28672, 8192, 1);
	assert_tensor(m, "blk.10.ffn_norm.weight", "f32", 8192, 1, 1);
	assert_tensor(m, "output_norm.weight", "f32", 8192, 1, 1);
	assert_tensor(m, "output.weight", "q4_k", 8192, 128256, 1);
	ck_assert_ptr_null(tensor(m, "blk.0.attn_q.bias"));
	ck_assert_ptr_null(tensor(m, "blk.0.attn_q_norm.weight"));
	ck_assert_uint_eq(m->layers[3].n_head, 64);
	ck_assert_uint_eq(m->layers[3].n_kv_head, 8);
	ck_assert_uint_eq(m->layers[3].head_dim_v, 128);
	ck_assert_uint_eq(m->layers[3].n_expert, 0);
	arena_release(&arena);
}
END_TEST

START_TEST(moe_tensors)
{
	const struct model *m;
	const struct model_layer *l;

	arena_init(&arena, NULL, NULL);
	m = load("qwen3-30b-a3b", "q8_0");
	l = &m->layers[47];
	assert_tensor(m, "blk.47.ffn_gate_inp.weight", "f32", 2048, 128, 1);
	assert_tensor(m, "blk.47.ffn_gate_exps.weight", "q8_0", 2048, 768, 128);
	assert_tensor(m, "blk.47.ffn_up_exps.weight", "q8_0", 2048, 768, 128);
	assert_tensor(m, "blk.47.ffn_down_exps.weight", "q8_0", 768, 2048, 128);
	assert_tensor(m, "blk.47.attn_q.weight", "q8_0", 2048, 4096, 1);
	assert_tensor(m, "blk.47.attn_output.weight", "q8_0", 4096, 2048, 1);
	assert_tensor(m, "blk.47.attn_k_norm.weight", "f32", 128, 1, 1);
	ck_assert_uint_eq(l->n_expert, 128);
	ck_assert_uint_eq(l->n_expert_used, 8);
	ck_assert_uint_eq(model_expert_bytes(l), UINT64_C(3) * 2048 * 768 * 34 / 32);
	ck_assert_uint_eq(l->group[MODEL_FFN].params, 0);
	ck_assert_uint_eq(l->group[MODEL_ROUTER].params, 2048 * 128 + 2048);
	ck_assert_uint_eq(l->group[MODEL_EXPERTS].params, UINT64_C(3) * 2048 * 768 * 128);

	m = load("qwen2-57b-a14b", "bf16");
	assert_tensor(m, "blk.0.ffn_gate_inp_shexp.weight", "bf16", 3584, 1, 1);
	assert_tensor(m, "blk.0.ffn_up_shexp.weight", "bf16", 3584, 20480, 1);
	assert_tensor(m, "blk.0.ffn_down_shexp.weight", "bf16", 20480, 3584, 1);
	assert_tensor(m, "blk.0.attn_q.bias", "bf16", 3584, 1, 1);
	ck_assert_ptr_null(tensor(m, "blk.0.attn_output.bias"));
	ck_assert_uint_eq(model_expert_bytes(&load("llama-3-8b", NULL)->layers[0]), 0);
	arena_release(&arena);
}
END_TEST

START_TEST(opt_tensors)
{
	const struct model *m;

	arena_init(&arena, NULL, NULL);
	m = load("opt-30b", "q4_0");
	assert_tensor(m, "position_embd.weight", "f32", 7168, 2050, 1);
	assert_tensor(m, "blk.1.attn_norm.bias", "f32", 7168, 1, 1);
	assert_tensor(m, "blk.1.attn_output.bias", "f32", 7168, 1, 1);
	assert_tensor(m, "blk.1.ffn_up.weight", "q4_0", 7168, 28672, 1);
	assert_tensor(m, "blk.1.ffn_up.bias", "f32", 28672, 1, 1);
	assert_tensor(m, "output_norm.bias", "f32", 7168, 1, 1);
	ck_assert_ptr_null(tensor(m, "blk.1.ffn_gate.weight"));
	ck_assert(m->tied_embeddings);
	ck_assert_str_eq(load("opt-30b", NULL)->quant, "f16");

	/* opt-350m: norms after each block, none at the end, a narrow embedding; 331,196,416 parameters */
	m = parse("{\"model_type\": \"opt\", \"num_hidden_layers\": 24, \"hidden_size\": 1024, \"ffn_dim\": "
		  "4096,"
		  "\"num_attention_heads\": 16, \"vocab_size\": 50272, \"max_position_embeddings\": 2048,"
		  "\"word_embed_proj_dim\": 512, \"do_layer_norm_before\": false}");
	ck_assert_uint_eq(m->params_total, 331196416);
	assert_tensor(m, "token_embd.weight", "f16", 512, 50272, 1);
	ck_assert_ptr_null(tensor(m, "output_norm.weight"));
	arena_release(&arena);
}
END_TEST

START_TEST(tied_output_counts_once)
{
	const struct model *m;
	const struct model_tensor *t;

	arena_init(&arena, NULL, NULL);
	m = load("llama-3.2-1b", "q8_0");
	t = tensor(m, "output.weight");
	ck_assert(m->tied_embeddings);
	ck_assert(t->shared_storage);
	ck_assert_uint_eq(t->bytes, tensor(m, "token_embd.weight")->bytes);
	ck_assert_uint_eq(m->output.params, UINT64_C(2048) * 128256 + 2048);
	ck_assert_uint_eq(m->output.bytes, t->bytes + 2048 * 4);
	/* 1.32 GB of tensors, the output's read from the embedding's */
	ck_assert_uint_eq(m->weights_bytes, (m->params_total - 2048 * 33) / 32 * 34 + 2048 * 33 * 4);
	arena_release(&arena);
}
END_TEST

/* Sums, neighbours and names of every card in every type. */
START_TEST(sums_agree)
{
	struct model_card_info *info;
	struct err err = {0};
	size_t n;

	arena_init(&arena, NULL, NULL);
	assert_ok(model_list(&arena, &info, &n, &err), err);
	ck_assert_uint_ge(n, 100);
	for (size_t i = 0; i < n; i++) {
		/* every type with some card, and every card with some types */
		for (size_t q = i % 7; quant_at(q); q += i < 8 ? 1 : 7) {
			struct arena_mark mark = arena_mark(&arena);
			struct model *m;
			uint64_t bytes, params;
			int at = 0;

			if (model_load(info[i].name, quant_at(q)->name, &arena, &m, &err)) {
				ck_assert_str_eq(
					err.msg, arena_printf(&arena,
							 "type '%s' is not one that weights are stored in",
							 quant_at(q)->name));
				arena_rewind(&arena, mark);
				continue;
			}
			bytes = m->embed.bytes + m->output.bytes;
			params = m->embed.params + m->output.params;
			for (uint32_t l = 0; l < m->n_layer; l++) {
				const struct model_layer *layer = &m->layers[l];

				ck_assert_int_gt(layer->n_tensors, 0);
				for (int g = 0; g < MODEL_GROUP_N; g++) {
					bytes += layer->group[g].bytes;
					params += layer->group[g].params;
				}
				while (m->tensors[at].layer == MODEL_NO_LAYER)
					at++;
				ck_assert_int_eq(layer->first_tensor, at);
				for (int t = 0; t < layer->n_tensors; t++, at++)
					ck_assert_int_eq(m->tensors[at].layer, (int)l);
			}
			for (int t = 0; t < m->n_tensors; t++) {
				if (!m->tensors[t].shared_storage)
					continue;
				bytes -= m->tensors[t].bytes;
				params -= m->tensors[t].params;
			}
			ck_assert_uint_eq(bytes, m->weights_bytes);
			ck_assert_uint_eq(params, m->params_total);
			arena_rewind(&arena, mark);
		}
	}
	arena_release(&arena);
}
END_TEST

START_TEST(names_aliases_and_paths)
{
	struct err err = {0};
	struct model *m;
	const char *dir;

	arena_init(&arena, NULL, NULL);
	ck_assert_uint_eq(load("meta-llama/Llama-3.1-8B-Instruct", NULL)->n_layer, 32);
	ck_assert_str_eq(load("mixtral-8x7b-v0.1", NULL)->name, "mixtral-8x7b-v0.1");
	ck_assert_str_eq(load("MIXTRAL-8x7b", NULL)->architecture, "mixtral");

	m = load(data_path("configs/ministral-3-3b.json"), NULL);
	ck_assert_str_eq(m->file, data_path("configs/ministral-3-3b.json"));
	ck_assert_str_eq(m->architecture, "mistral3");
	ck_assert_str_eq(m->quant, "bf16");
	ck_assert_uint_eq(m->n_layer, 26);
	ck_assert(m->tied_embeddings);

	/* a folder that holds one, and one that does not */
	dir = arena_printf(&arena, "/tmp/offsim-test-model-%ld", (long)getpid());
	ck_assert_int_eq(mkdir(dir, 0700), 0);
	ck_assert_int_eq(model_load(dir, NULL, &arena, &m, &err), -1);
	ck_assert_int_eq(err.code, ERR_INPUT);
	ck_assert_ptr_nonnull(strstr(err.file[0] ? err.file : err.msg, "/config.json"));
	ck_assert_int_eq(
		symlink(data_path("configs/qwen3-32b-fp8.json"), arena_printf(&arena, "%s/config.json", dir)),
		0);
	m = load(dir, NULL);
	ck_assert_str_eq(m->quant, "f8_e4m3-block128");
	ck_assert_uint_eq(m->n_layer, 64);
	assert_tensor(m, "blk.0.attn_q.weight", "f8_e4m3-block128", 5120, 8192, 1);
	assert_tensor(m, "token_embd.weight", "bf16", 5120, 151936, 1);
	assert_tensor(m, "output.weight", "bf16", 5120, 151936, 1);
	assert_tensor(m, "blk.0.ffn_norm.weight", "bf16", 5120, 1, 1);
	unlink(arena_printf(&arena, "%s/config.json", dir));
	rmdir(dir);
	arena_release(&arena);
}
END_TEST

static void assert_load_error(const char *name, const char *quant, const char *msg)
{
	struct err err = {0};
	struct model *m;

	ck_assert_int_eq(model_load(name, quant, &arena, &m, &err), -1);
	assert_err(err, ERR_INPUT, msg);
}

START_TEST(what_cannot_be_loaded)
{
	arena_init(&arena, NULL, NULL);
	assert_load_error("llama-3.1-71b", NULL,
		"unknown model 'llama-3.1-71b' and no such path; did you mean 'llama-3.1-70b'?");
	assert_load_error("/no/such/config.json", NULL,
		"cannot read model '/no/such/config.json': No such file or directory");
	assert_load_error(
		"no-such.gguf", NULL, "cannot read model 'no-such.gguf': No such file or directory");
	assert_load_error("", NULL, "no model was named");
	assert_load_error(NULL, NULL, "no model was named");
	assert_load_error("../../etc/passwd-no", NULL,
		"cannot read model '../../etc/passwd-no': No such file or directory");
	assert_load_error("/dev/null", NULL,
		"is no model: a .gguf, .safetensors or config.json file, or a folder with one");
	assert_load_error("llama-3-8b", "q4_kk", "unknown quant 'q4_kk'; did you mean 'q4_k'?");
	assert_load_error("llama-3-8b", "q8_k", "type 'q8_k' is not one that weights are stored in");
	arena_release(&arena);
}
END_TEST

START_TEST(biases_and_heads)
{
	const struct model *m;

	arena_init(&arena, NULL, NULL);
	m = parse(LLAMA(", \"attention_bias\": true, \"mlp_bias\": true, \"head_dim\": 32"));
	assert_tensor(m, "blk.1.attn_q.weight", "f16", 64, 128, 1);
	assert_tensor(m, "blk.1.attn_q.bias", "f16", 128, 1, 1);
	assert_tensor(m, "blk.1.attn_k.bias", "f16", 64, 1, 1);
	assert_tensor(m, "blk.1.attn_output.bias", "f16", 64, 1, 1);
	assert_tensor(m, "blk.1.ffn_down.bias", "f16", 64, 1, 1);
	assert_tensor(m, "blk.1.ffn_gate.bias", "f16", 96, 1, 1);
	m = parse(LLAMA(", \"attention_bias\": null, \"head_dim\": null, \"tie_word_embeddings\": true,"
			"\"torch_dtype\": \"float32\", \"sliding_window\": 8"));
	ck_assert_uint_eq(m->layers[0].head_dim_k, 16);
	ck_assert_uint_eq(m->layers[0].window, 0); /* Llama knows none */
	ck_assert_ptr_null(tensor(m, "blk.1.attn_q.bias"));
	ck_assert(m->tied_embeddings);
	ck_assert_str_eq(m->quant, "f32");
	ck_assert_uint_eq(m->context_max, 0);
	arena_release(&arena);
}
END_TEST

START_TEST(which_layers_have_experts)
{
	const struct model *m;

	arena_init(&arena, NULL, NULL);
	m = parse(QWEN_MOE(", \"decoder_sparse_step\": 2, \"mlp_only_layers\": [3]"));
	for (uint32_t i = 0; i < 6; i++)
		ck_assert_uint_eq(m->layers[i].n_expert, i == 1 || i == 5 ? 8 : 0);
	assert_tensor(m, "blk.3.ffn_up.weight", "f16", 64, 96, 1);
	assert_tensor(m, "blk.5.ffn_up_exps.weight", "f16", 64, 32, 8);
	ck_assert_ptr_null(tensor(m, "blk.3.ffn_up_shexp.weight"));
	m = parse(QWEN_MOE(", \"qkv_bias\": false"));
	ck_assert_ptr_null(tensor(m, "blk.3.attn_q.bias"));
	ck_assert_uint_eq(m->layers[0].n_expert, 8);
	arena_release(&arena);
}
END_TEST

START_TEST(which_layers_have_a_window)
{
	const struct model *m;

	arena_init(&arena, NULL, NULL);
	m = parse(
		QWEN_MOE(", \"sliding_window\": 32, \"max_window_layers\": 4, \"use_sliding_window\": true"));
	for (uint32_t i = 0; i < 6; i++)
		ck_assert_uint_eq(m->layers[i].window, i < 4 ? 0 : 32);
	m = parse(QWEN_MOE(
		", \"sliding_window\": 32, \"max_window_layers\": 4, \"use_sliding_window\": false"));
	ck_assert_uint_eq(m->layers[5].window, 0);
	m = parse(
		QWEN_MOE(", \"sliding_window\": 32, \"use_sliding_window\": true, \"layer_types\": ["
			 "\"sliding_attention\", \"full_attention\", \"full_attention\", \"full_attention\","
			 "\"full_attention\", \"sliding_attention\"]"));
	for (uint32_t i = 0; i < 6; i++)
		ck_assert_uint_eq(m->layers[i].window, i == 0 || i == 5 ? 32 : 0);
	ck_assert_str_eq(parse_error(QWEN_MOE(", \"layer_types\": [\"full_attention\"]")),
		"'layer_types' must be a list of 6 types");
	arena_release(&arena);
}
END_TEST

START_TEST(bad_configs)
{
	arena_init(&arena, NULL, NULL);
	ck_assert_str_eq(parse_error("{}"), "has no 'model_type' and no 'architectures'");
	ck_assert_str_eq(parse_error("{\"model_type\": \"lama\"}"),
		"architecture 'lama' is not known; did you mean 'llama'?");
	ck_assert_str_eq(parse_error("{\"architectures\": [\"MixtralForCausalML\"]}"),
		"architecture 'MixtralForCausalML' is not known; did you mean 'MixtralForCausalLM'?");
	ck_assert_ptr_nonnull(strstr(parse_error("{\"model_type\": \"zzzzzz\"}"),
		"architecture 'zzzzzz' is not known; these are: llama, mistral, mistral3, qwen2, "));
	ck_assert_str_eq(parse_error("{\"model_type\": \"llama\"}"), "has no 'num_hidden_layers'");
	ck_assert_str_eq(parse_error(LLAMA(", \"head_dim\": 70000")),
		"'head_dim' must be a whole number from 0 to 65536, not 70000");
	ck_assert_str_eq(parse_error(LLAMA(", \"head_dim\": -1")),
		"'head_dim' must be a whole number from 0 to 65536, not -1");
	ck_assert_str_eq(parse_error(LLAMA(", \"attention_bias\": 1")),
		"'attention_bias' must be true or false, not a number");
	ck_assert_str_eq(parse_error(LLAMA(", \"quantization_config\": {\"quant_method\": \"quip\"}")),
		"stores 'quip' weights (quantization_config), whose size is not known here; name a quant");
	ck_assert_str_eq(parse_error(LLAMA(", \"torch_dtype\": \"complex64\"")),
		"'torch_dtype' is 'complex64', which is no known type; name a quant");
	ck_assert_str_eq(parse_error("{\"model_type\": \"llama\", \"num_hidden_layers\": 5000}"),
		"'num_hidden_layers' must be a whole number from 1 to 4096, not 5000");
	ck_assert_str_eq(
		parse_error("{\"model_type\": \"llama\", \"num_hidden_layers\": 1, \"hidden_size\": 10,"
			    "\"vocab_size\": 1, \"num_attention_heads\": 3}"),
		"has no 'head_dim', and 3 attention heads do not divide a width of 10");
	ck_assert_str_eq(
		parse_error("{\"model_type\": \"llama\", \"num_hidden_layers\": 1, \"hidden_size\": 12,"
			    "\"vocab_size\": 1, \"num_attention_heads\": 3, \"num_key_value_heads\": 2}"),
		"3 attention heads do not divide among 2 key-value heads");
	ck_assert_str_eq(
		parse_error("{\"model_type\": \"llama\", \"num_hidden_layers\": 1, \"hidden_size\": 12,"
			    "\"vocab_size\": 1, \"num_attention_heads\": 3}"),
		"has no 'intermediate_size', or it is 0");
	ck_assert_str_eq(parse_error(QWEN_MOE(", \"mlp_only_layers\": [6]")),
		"'mlp_only_layers' names a layer that is none of 0 to 5");
	ck_assert_str_eq(
		parse_error("{\"model_type\": \"mixtral\", \"num_hidden_layers\": 1, \"hidden_size\": 12,"
			    "\"vocab_size\": 1, \"num_attention_heads\": 3, \"intermediate_size\": 8,"
			    "\"num_local_experts\": 2, \"num_experts_per_tok\": 3}"),
		"'num_experts_per_tok' must be a whole number from 1 to 2, not 3");
	ck_assert_str_eq(
		parse_error("{\"model_type\": \"mixtral\", \"num_hidden_layers\": 4096,"
			    "\"hidden_size\": 1048576, \"vocab_size\": 16777216, \"num_attention_heads\": 1,"
			    "\"head_dim\": 1, \"intermediate_size\": 16777216, \"num_local_experts\": 65536,"
			    "\"num_experts_per_tok\": 3}"),
		"more than 2^50 parameters");
	arena_release(&arena);
}
END_TEST

/* llama-quant.cpp, tensor_type_fallback */
START_TEST(rows_that_do_not_fit)
{
	static const char *const want[][2] = {
		{"q4_k", "q5_0"},
		{"q5_k", "q5_1"},
		{"q6_k", "q8_0"},
		{"q2_k", "q4_0"},
		{"q3_k", "q4_0"},
		{"q4_0", "q4_0"},
		{"iq3_s", "iq4_nl"},
		{"iq1_m", "iq4_nl"},
		{"mxfp4", "mxfp4"},
		{"q1_0", "f16"},
	};
	const char *text = LLAMA("");
	struct err err = {0};
	struct model *m;

	arena_init(&arena, NULL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		assert_ok(read_hf_text(text, strlen(text), "x", want[i][0], &arena, &m, &err), err);
		ck_assert_str_eq(m->quant, want[i][0]);
		assert_tensor(m, "blk.0.ffn_up.weight", want[i][1], 64, 96, 1);
	}
	/* 48 is no multiple of 32 */
	text = "{\"model_type\": \"llama\", \"num_hidden_layers\": 1, \"hidden_size\": 48, \"vocab_size\": 8,"
	       "\"num_attention_heads\": 3, \"intermediate_size\": 256}";
	assert_ok(read_hf_text(text, strlen(text), "x", "q4_k", &arena, &m, &err), err);
	assert_tensor(m, "blk.0.ffn_up.weight", "f16", 48, 256, 1);
	assert_tensor(m, "blk.0.ffn_down.weight", "q4_k", 256, 48, 1);
	arena_release(&arena);
}
END_TEST

START_TEST(flops)
{
	const struct model *m;
	const struct model_layer *l;

	arena_init(&arena, NULL, NULL);
	m = load("mixtral-8x7b", NULL);
	l = &m->layers[0];
	assert_close(model_matmul_flops(m, 0, MODEL_EXPERTS, 7), 7 * 2.0 * 3 * 4096 * 14336, 0);
	assert_close(model_matmul_flops(m, 0, MODEL_ROUTER, 1), 2.0 * (4096 * 8 + 4096), 0);
	assert_close(model_matmul_flops(m, 0, MODEL_FFN, 1), 0, 0);
	assert_close(model_matmul_flops(m, MODEL_NO_LAYER, MODEL_EMBED, 9), 0, 0);
	assert_close(
		model_matmul_flops(m, MODEL_NO_LAYER, MODEL_OUTPUT, 2), 4.0 * (4096.0 * 32000 + 4096), 0);
	assert_close(model_attention_flops(l, 3, 1000), 2.0 * 3 * 1000 * 32 * 256, 0);
	/* two per active parameter but those of the embedding, and attention */
	assert_close(model_flops_per_token(m, 0), 2.0 * ((double)m->params_active - 4096.0 * 32000), 1e-15);
	assert_close(model_flops_per_token(m, 4096) - model_flops_per_token(m, 0), 32 * 2.0 * 4096 * 32 * 256,
		1e-12);
	/* no layer of Mistral 7B sees more than 4096 */
	m = load("mistral-7b-v0.1", NULL);
	assert_close(model_flops_per_token(m, 9000), model_flops_per_token(m, 4096), 0);
	arena_release(&arena);
}
END_TEST

START_TEST(activation)
{
	const struct model *m;

	arena_init(&arena, NULL, NULL);
	/* dense: gate and up are wider than attention */
	m = load("llama-3.1-70b", "q4_0");
	ck_assert_uint_eq(model_activation_bytes(m, 512, 0, 2), UINT64_C(512) * (2 * 8192 + 2 * 28672) * 2);
	ck_assert_uint_eq(model_activation_bytes(m, 0, 3, 2), UINT64_C(3) * 128256 * 4);
	/* MoE: 8 experts of 2 x 768 are 12288; q 4096, k 512, v 512, output 4096 are less */
	m = load("qwen3-30b-a3b", NULL);
	ck_assert_uint_eq(
		model_activation_bytes(m, 5, 1, 4), UINT64_C(5) * (2 * 2048 + 12288) * 4 + 151936 * 4);
	/* OPT has no gate: four equal attention vectors are as wide as ffn_up */
	m = load("opt-13b", NULL);
	ck_assert_uint_eq(model_activation_bytes(m, 1, 0, 2), (2 * 5120 + 4 * 5120) * 2);
	/* a shared expert counts */
	m = load("qwen1.5-moe-a2.7b", NULL);
	ck_assert_uint_eq(model_activation_bytes(m, 1, 0, 2), (2 * 2048 + 2 * (4 * 1408 + 5632)) * 2);
	ck_assert_uint_eq(model_activation_bytes(m, UINT64_MAX, 0, 2), UINT64_MAX);
	arena_release(&arena);
}
END_TEST

START_TEST(canonical_text)
{
	const char *a, *b;

	arena_init(&arena, NULL, NULL);
	a = model_canonical(load("llama-3.1-70b", "q4_0"), &arena);
	/* names do not matter, contents do */
	b = model_canonical(load("meta-llama/Llama-3.1-70B-Instruct", "Q4_0"), &arena);
	ck_assert_str_eq(a, b);
	ck_assert_str_eq(a, model_canonical(load("llama-3.3-70b", "q4_0"), &arena));
	ck_assert_str_ne(a, model_canonical(load("llama-3.1-70b", "q4_1"), &arena));
	ck_assert_str_ne(a, model_canonical(load("llama-3-70b", "q4_0"), &arena));
	ck_assert_ptr_null(strstr(a, "cards"));
	ck_assert_ptr_nonnull(strstr(a, "\n80 of: heads 64/8 dims 128/128 window 0 "));
	/* unlike layers are told apart */
	a = model_canonical(parse(QWEN_MOE(", \"mlp_only_layers\": [2]")), &arena);
	ck_assert_ptr_nonnull(strstr(a, "\n2 of: "));
	ck_assert_ptr_nonnull(strstr(a, "\n1 of: "));
	ck_assert_ptr_nonnull(strstr(a, "\n3 of: "));
	arena_release(&arena);
}
END_TEST

START_TEST(list_of_cards)
{
	struct model_card_info *info;
	struct err err = {0};
	size_t n;

	arena_init(&arena, NULL, NULL);
	assert_ok(model_list(&arena, &info, &n, &err), err);
	for (size_t i = 0; i < n; i++) {
		ck_assert(*info[i].description);
		ck_assert(*info[i].aliases);
		if (i)
			ck_assert_int_lt(strcmp(info[i - 1].name, info[i].name), 0);
	}
	arena_release(&arena);
}
END_TEST

START_TEST(a_card_with_a_wrong_key)
{
	static const char text[] = "name: x\nalliases: [y]\nconfig: {model_type: llama}\n";
	struct err err = {0};
	struct model *m;
	char path[64], *yaml;

	arena_init(&arena, NULL, NULL);
	test_file(path, text, strlen(text));
	yaml = arena_printf(&arena, "%s.yaml", path);
	ck_assert_int_eq(rename(path, yaml), 0);
	ck_assert_int_eq(model_load(yaml, NULL, &arena, &m, &err), -1);
	assert_err(err, ERR_INPUT, "unknown key 'alliases'; did you mean 'aliases'?");
	ck_assert_int_eq(err.line, 2);
	unlink(yaml);
	arena_release(&arena);
}
END_TEST

START_TEST(group_names)
{
	static const char *const want[] = {"embed", "attn", "ffn", "router", "shared", "experts", "output"};

	for (int g = 0; g < MODEL_GROUP_N; g++)
		ck_assert_str_eq(model_group_name((enum model_group)g), want[g]);
}
END_TEST

TEST_MAIN("model", published_counts, published_active_counts, published_sizes, fine_tunes_with_more_words,
	llama_tensors, moe_tensors, opt_tensors, tied_output_counts_once, sums_agree, names_aliases_and_paths,
	what_cannot_be_loaded, biases_and_heads, which_layers_have_experts, which_layers_have_a_window,
	bad_configs, rows_that_do_not_fit, flops, activation, canonical_text, list_of_cards,
	a_card_with_a_wrong_key, group_names)
