#include "models/read_safetensors.h"

#include <sys/stat.h>

#include "models/hf_names.h"
#include "models/safetensors.h"
#include "tests/test.h"

static struct arena arena;
static char folder[64];

static void setup(void)
{
	arena_init(&arena, NULL, NULL);
	strcpy(folder, "/tmp/offsim-st-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	ck_assert_int_eq(system(command), 0);
	arena_release(&arena);
}

static const char *path_of(const char *name)
{
	return arena_printf(&arena, "%s/%s", folder, name);
}

static void write_file(const char *name, const char *text, uint64_t hole)
{
	FILE *f = fopen(path_of(name), "wb");

	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fflush(f), 0);
	ck_assert_int_eq(ftruncate(fileno(f), (off_t)(strlen(text) + hole)), 0);
	fclose(f);
}

/* A file of tensors that are described by and by. */
struct maker {
	char *json;
	uint64_t at;
};

static void add(struct maker *m, const char *name, const char *dtype, const char *shape, uint64_t bytes)
{
	m->json = arena_printf(&arena,
		"%s%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%llu,%llu]}",
		m->json ? m->json : "{", m->json ? "," : "", name, dtype, shape, (unsigned long long)m->at,
		(unsigned long long)(m->at + bytes));
	m->at += bytes;
}

static uint64_t finish(struct maker *m, const char *name)
{
	FILE *f = fopen(path_of(name), "wb");
	char *json = arena_printf(&arena, "%s}  ", m->json);
	uint64_t n = strlen(json);

	ck_assert_ptr_nonnull(f);
	for (int i = 0; i < 8; i++)
		fputc((int)(n >> 8 * i & 0xff), f);
	fputs(json, f);
	fflush(f);
	ck_assert_int_eq(ftruncate(fileno(f), (off_t)(8 + n + m->at)), 0);
	fclose(f);
	return 8 + n + m->at;
}

static const char config[] =
	"{\"model_type\": \"qwen3_moe\", \"num_hidden_layers\": 2, \"hidden_size\": 64, "
	"\"num_attention_heads\": 4,"
	"\"num_key_value_heads\": 2, \"head_dim\": 16, \"intermediate_size\": 96, \"vocab_size\": 100,"
	"\"num_experts\": 4, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 32,"
	"\"torch_dtype\": \"bfloat16\"}";

/* Layer `l` of that; experts in another type. */
static void add_layer(struct maker *m, int l, const char *dtype, unsigned expert_bytes)
{
	static const struct {
		const char *name, *shape;
		unsigned elements;
	} rest[] = {
		{"input_layernorm", "64", 64},
		{"self_attn.q_proj", "64,64", 64 * 64},
		{"self_attn.k_proj", "32,64", 64 * 32},
		{"self_attn.v_proj", "32,64", 64 * 32},
		{"self_attn.o_proj", "64,64", 64 * 64},
		{"self_attn.q_norm", "16", 16},
		{"self_attn.k_norm", "16", 16},
		{"post_attention_layernorm", "64", 64},
		{"mlp.gate", "4,64", 4 * 64},
	};
	static const char *const experts[] = {"gate_proj", "up_proj", "down_proj"};

	for (size_t i = 0; i < ARRAY_LEN(rest); i++)
		add(m, arena_printf(&arena, "model.layers.%d.%s.weight", l, rest[i].name), "BF16",
			rest[i].shape, 2 * rest[i].elements);
	for (int e = 0; e < 4; e++) {
		for (int k = 0; k < 3; k++)
			add(m,
				arena_printf(
					&arena, "model.layers.%d.mlp.experts.%d.%s.weight", l, e, experts[k]),
				dtype, k < 2 ? "32,64" : "64,32", 64 * 32 * expert_bytes);
	}
}

static void add_ends(struct maker *m)
{
	add(m, "model.embed_tokens.weight", "BF16", "100,64", 12800);
	add(m, "model.norm.weight", "BF16", "64", 128);
	add(m, "lm_head.weight", "BF16", "100,64", 12800);
}

static struct model *load(const char *path, const char *quant)
{
	struct err err = {0};
	struct model *m;

	assert_ok(model_load(path, quant, &arena, &m, &err), err);
	return m;
}

static void assert_tensor(const struct model *m, const char *name, enum model_group group, const char *type,
	uint64_t x, uint64_t y, uint64_t z)
{
	for (int i = 0; i < m->n_tensors; i++) {
		const struct model_tensor *t = &m->tensors[i];

		if (strcmp(t->name, name))
			continue;
		ck_assert_msg(t->group == group, "%s is of %s", name, model_group_name(t->group));
		ck_assert_str_eq(t->type->name, type);
		ck_assert_uint_eq(t->shape[0], x);
		ck_assert_uint_eq(t->shape[1], y);
		ck_assert_uint_eq(t->shape[2], z);
		return;
	}
	ck_abort_msg("no tensor '%s'", name);
}

START_TEST(one_file)
{
	struct maker made = {0};
	const struct model *m, *ref;
	uint64_t size;

	setup();
	add_ends(&made);
	add_layer(&made, 0, "BF16", 2);
	add_layer(&made, 1, "BF16", 2);
	size = finish(&made, "model.safetensors");
	write_file("config.json", config, 0);
	m = load(folder, NULL);
	ck_assert_str_eq(m->file, path_of("model.safetensors"));
	ck_assert_uint_eq(m->file_bytes, size);
	ck_assert_uint_eq(m->weights_bytes, made.at);
	ck_assert_str_eq(m->quant, "bf16");
	assert_tensor(m, "blk.1.ffn_down_exps.weight", MODEL_EXPERTS, "bf16", 32, 64, 4);
	assert_tensor(m, "blk.1.ffn_norm.weight", MODEL_ROUTER, "bf16", 64, 1, 1);
	assert_tensor(m, "blk.0.attn_k.weight", MODEL_ATTN, "bf16", 64, 32, 1);
	assert_tensor(m, "output.weight", MODEL_OUTPUT, "bf16", 64, 100, 1);
	/* what is in the files is what config.json makes of them */
	ref = load(path_of("config.json"), NULL);
	ck_assert_uint_eq(m->params_total, ref->params_total);
	ck_assert_uint_eq(m->params_active, ref->params_active);
	ck_assert_uint_eq(m->weights_bytes, ref->weights_bytes);
	for (int g = 0; g < MODEL_GROUP_N; g++)
		ck_assert_uint_eq(m->layers[1].group[g].params, ref->layers[1].group[g].params);
	ck_assert_uint_eq(m->layers[1].n_expert_used, 2);
	ck_assert_uint_eq(m->layers[1].kv_k_elements, 32);
	ck_assert_str_eq(m->note, "");
	/* another quant */
	ck_assert_uint_eq(
		load(folder, "q8_0")->weights_bytes, load(path_of("config.json"), "q8_0")->weights_bytes);
	teardown();
}
END_TEST

#define INDEX(size, two)                                                                                     \
	"{\"metadata\": {\"total_size\": " size                                                              \
	"}, \"weight_map\": {\"a\": \"m-00001-of-00002.safetensors\","                                       \
	" \"b\": \"" two "\", \"c\": \"m-00001-of-00002.safetensors\"}}"

START_TEST(parts_and_index)
{
	struct maker one = {0}, two = {0};
	struct safetensors_index index;
	struct err err = {0};
	struct model *m;

	setup();
	write_file("m.safetensors.index.json", INDEX("13731385408.0", "m-00002-of-00002.safetensors"), 0);
	assert_ok(safetensors_index(path_of("m.safetensors.index.json"), &arena, &index, &err), err);
	ck_assert_uint_eq(index.total_size, UINT64_C(13731385408));
	ck_assert_uint_eq(index.n_tensors, 3);
	ck_assert_uint_eq(index.n_files, 2);
	ck_assert_str_eq(index.files[1], "m-00002-of-00002.safetensors");
	ck_assert_int_eq(model_load(folder, NULL, &arena, &m, &err), -1);
	ck_assert_str_eq(err.msg, "has no config.json beside it, which says what its tensors are");

	/* no parts: config.json */
	write_file("config.json", config, 0);
	m = load(folder, NULL);
	ck_assert_str_eq(m->file, path_of("m.safetensors.index.json"));
	ck_assert_uint_eq(m->weights_bytes, load(path_of("config.json"), NULL)->weights_bytes);
	ck_assert_ptr_nonnull(strstr(m->note, "the index says that all tensors take 13731385408 bytes, "));

	add_ends(&one);
	add_layer(&one, 0, "BF16", 2);
	finish(&one, "m-00001-of-00002.safetensors");
	ck_assert_ptr_nonnull(strstr(load(folder, NULL)->note, "1 of 2 files are missing"));
	ck_assert_int_eq(model_load(path_of("x-00001-of-00002.safetensors"), NULL, &arena, &m, &err), -1);

	add_layer(&two, 1, "F8_E4M3", 1);
	add(&two, "model.layers.1.self_attn.q_proj.weight_scale", "F32", "", 4);
	add(&two, "vision_tower.patch.weight", "F32", "7", 28);
	finish(&two, "m-00002-of-00002.safetensors");
	m = load(path_of("m-00002-of-00002.safetensors"), NULL);
	ck_assert_str_eq(m->file, path_of("m.safetensors.index.json"));
	assert_tensor(m, "blk.0.ffn_up_exps.weight", MODEL_EXPERTS, "bf16", 64, 32, 4);
	assert_tensor(m, "blk.1.ffn_up_exps.weight", MODEL_EXPERTS, "f8_e4m3", 64, 32, 4);
	assert_tensor(m, "blk.1.attn_q.weight_scale", MODEL_ATTN, "f32", 1, 1, 1);
	ck_assert_uint_eq(m->weights_bytes, one.at + two.at - 28);
	ck_assert_uint_eq(m->params_total, load(path_of("config.json"), NULL)->params_total);
	ck_assert_ptr_nonnull(strstr(m->note, "1 tensors of other parts"));
	teardown();
}
END_TEST

/* Four bits, eight to an element, with scales: parameters are those of config.json. */
START_TEST(packed_values)
{
	struct maker made = {0};
	const struct model *m, *ref;
	uint64_t packed;

	setup();
	add_ends(&made);
	add_layer(&made, 0, "BF16", 2);
	add_layer(&made, 1, "BF16", 2);
	finish(&made, "model.safetensors");
	write_file("config.json", config, 0);
	ref = load(folder, NULL);
	made = (struct maker){0};
	add_ends(&made);
	add_layer(&made, 0, "BF16", 2);
	for (int e = 0; e < 4; e++) {
		add(&made,
			arena_printf(&arena, "model.layers.1.mlp.experts.%d.gate_up_proj.weight_packed", e),
			"I32", "64,8", 2048);
		add(&made, arena_printf(&arena, "model.layers.1.mlp.experts.%d.gate_up_proj.weight_scale", e),
			"BF16", "64,2", 256);
		add(&made, arena_printf(&arena, "model.layers.1.mlp.experts.%d.down_proj.weight_packed", e),
			"I32", "64,4", 1024);
	}
	packed = made.at;
	finish(&made, "model.safetensors");
	m = load(folder, NULL);
	ck_assert_uint_eq(m->weights_bytes, packed);
	ck_assert_uint_eq(
		m->layers[1].group[MODEL_EXPERTS].params, ref->layers[1].group[MODEL_EXPERTS].params);
	ck_assert_uint_eq(m->layers[1].group[MODEL_EXPERTS].bytes, 4 * (2048 + 256 + 1024));
	teardown();
}
END_TEST

START_TEST(names)
{
	static const struct {
		const char *hf, *gguf;
		int layer, expert;
	} want[] = {
		{"model.embed_tokens.weight", "token_embd.weight", -1, -1},
		{"lm_head.weight", "output.weight", -1, -1},
		{"model.language_model.layers.7.self_attn.q_proj.bias", "attn_q.bias", 7, -1},
		{"transformer.h.11.mlp.c_fc.weight", "ffn_up.weight", 11, -1},
		{"model.decoder.layers.2.fc2.bias", "ffn_down.bias", 2, -1},
		{"model.layers.3.mlp.experts.17.up_proj.weight_scale_inv", "ffn_up_exps.weight_scale_inv", 3,
			17},
		{"model.layers.3.block_sparse_moe.experts.1.w2.weight", "ffn_down_exps.weight", 3, 1},
		{"model.layers.0.mlp.experts.gate_up_proj_blocks", "ffn_gate_up_exps.blocks", 0, -1},
		{"model.layers.3.mlp.gate.weight", "ffn_gate_inp.weight", 3, -1},
		{"model.layers.3.mlp.gate.e_score_correction_bias", "exp_probs_b.weight", 3, -1},
		{"model.layers.3.mlp.shared_experts.down_proj.weight", "ffn_down_shexp.weight", 3, -1},
		{"model.layers.3.self_attn.kv_a_proj_with_mqa.weight", "attn_kv_a_mqa.weight", 3, -1},
		{"model.layers.3.some.thing", "some.thing", 3, -1},
	};
	struct hf_name n;

	setup();
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		hf_name(want[i].hf, false, &arena, &n);
		ck_assert_str_eq(n.rest, want[i].gguf);
		ck_assert_int_eq(n.layer, want[i].layer);
		ck_assert_int_eq((int)n.expert, want[i].expert);
	}
	hf_name("model.layers.1.post_attention_layernorm.weight", true, &arena, &n);
	ck_assert_str_eq(n.rest, "post_attention_norm.weight");
	hf_name("visual.blocks.0.attn.qkv.weight", false, &arena, &n);
	ck_assert(n.other);
	teardown();
}
END_TEST

/* The message that a file of this JSON and n bytes of data gives. */
static const char *fault(const char *json, uint64_t n_data)
{
	static struct err err;
	struct safetensors st;
	size_t n = strlen(json);
	char *file = arena_alloc(&arena, n + 9);

	memset(&err, 0, sizeof(err));
	file[0] = (char)n;
	file[1] = (char)(n >> 8);
	memcpy(file + 8, json, n);
	ck_assert_int_eq(safetensors_open_memory(file, n + 8, n + 8 + n_data, "x", &arena, &st, &err), -1);
	ck_assert_int_eq(err.code, ERR_INPUT);
	ck_assert_str_eq(err.file, "x");
	return err.msg;
}

#define T(name, dtype, shape, from, to)                                                                      \
	"\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" #from "," #to "]}"

START_TEST(wrong_headers)
{
	struct safetensors st;
	struct err err = {0};

	setup();
	ck_assert_int_eq(safetensors_open_memory("\1\0\0\0\0\0\0", 7, 7, "x", &arena, &st, &err), -1);
	ck_assert_str_eq(err.msg, "is no safetensors file: ends at byte 7");
	ck_assert_int_eq(safetensors_open_memory("GGUF\3\0\0\0{", 9, 9, "x", &arena, &st, &err), -1);
	ck_assert_str_eq(err.msg,
		"has a header of 14064895815 bytes, more than 100000000, or is no safetensors file "
		"at byte 0");
	ck_assert_int_eq(safetensors_open_memory("\2\0\0\0\0\0\0\0{", 9, 9, "x", &arena, &st, &err), -1);
	ck_assert_str_eq(err.msg, "has a header of 2 bytes, but ends at byte 9");
	ck_assert_str_eq(fault("[]", 0), "has a header that does not begin with '{' at byte 8");
	ck_assert_str_eq(fault("{\"a\":7}", 0), "needs a '{' at byte 13");
	ck_assert_str_eq(fault("{\"a\":{}}", 0), "tensor 'a' has no dtype at byte 13");
	ck_assert_str_eq(fault("{" T("a", "F32", "1", 0, 4) "} x", 4), "goes on after its end at byte 63");
	ck_assert_str_eq(fault("{" T("a", "F33", "1", 0, 4) "}", 4),
		"tensor 'a' has the unknown dtype 'F33' at byte 22");
	ck_assert_str_eq(fault("{" T("a", "F32", "2", 0, 4) "}", 4),
		"tensor 'a' takes 4 bytes, its shape and dtype need 8 at byte 13");
	ck_assert_str_eq(
		fault("{" T("a", "F32", "1", 0, 4) "}", 3), "tensor 'a' ends at byte 66, the file has 65");
	ck_assert_str_eq(fault("{" T("a", "F32", "1", 0, 4) "}", 5),
		"the last tensor ends at byte 66, the file has 67");
	ck_assert_str_eq(fault("{" T("a", "F32", "1", 4, 0) "}", 5),
		"tensor 'a' has nonsensical data_offsets at byte 13");
	ck_assert_str_eq(fault("{" T("a", "F32", "4294967296,4294967296", 0, 4) "}", 5),
		"tensor 'a' has more than 2^50 elements at byte 37");
	ck_assert_str_eq(fault("{" T("a", "I8", "4", 0, 4) "," T("b", "I8", "4", 3, 7) "}", 7),
		"tensors 'a' and 'b' overlap at byte 116");
	ck_assert_str_eq(fault("{" T("a", "I8", "4", 0, 4) "," T("b", "I8", "4", 5, 9) "}", 9),
		"nothing uses the bytes before tensor 'b': a hole at byte 117");
	ck_assert_str_eq(fault("{" T("a", "I8", "4", 0, 4) "," T("a", "I8", "4", 4, 8) "}", 8),
		"tensor 'a' is there twice at byte 65");
	ck_assert_str_eq(fault("{\"\xff\":1}", 0), "is not UTF-8 at byte 10");
	ck_assert_str_eq(fault("{\"a", 0), "has a string without an end at byte 9");
	ck_assert_str_eq(fault("{\"\\u0001\":1}", 0), "has a name with a control character at byte 18");
	ck_assert_str_eq(fault("{\"\\ud800\":1}", 0), "has half a surrogate pair at byte 10");
	ck_assert_str_eq(fault("{\"__metadata__\":{\"a\":[1,2", 0), "ends where ',' must follow at byte 33");
	teardown();
}
END_TEST

static const char *index_fault(const char *json)
{
	static struct err err;
	struct safetensors_index index;

	memset(&err, 0, sizeof(err));
	ck_assert_int_eq(safetensors_index_memory(json, strlen(json), "x", &arena, &index, &err), -1);
	return err.msg;
}

START_TEST(odd_indexes)
{
	struct safetensors_index index;
	struct err err = {0};
	const char *json = "{\"metadata\":{}, \"weight_map\":{\"a\":\"b\"}}";

	setup();
	assert_ok(safetensors_index_memory(json, strlen(json), "x", &arena, &index, &err), err);
	ck_assert_uint_eq(index.total_size, 0);
	json = "{\"weight_map\":{\"a\":\"b\",\"c\":\"b\"},\"metadata\":null}";
	assert_ok(safetensors_index_memory(json, strlen(json), "x", &arena, &index, &err), err);
	ck_assert_uint_eq(index.n_files, 1);
	ck_assert_str_eq(index_fault("{\"weight_map\":{}}"), "has no 'weight_map' with tensors at byte 17");
	ck_assert_str_eq(index_fault("{\"weight_map\":{\"a\":\"../b\"}}"),
		"names the file '../b', which is not beside it at byte 19");
	ck_assert_str_eq(index_fault("{\"weight_map\":{\"a\":\"b\",\"a\":\"b\"}}"),
		"tensor 'a' is there twice at byte 27");
	ck_assert_str_eq(
		index_fault("{\"weight_map\":{\"a\":\"b\"}}\n=======\n"), "goes on after its end at byte 25");
	ck_assert_str_eq(index_fault("{\"metadata\":{\"total_size\":1.5}}"),
		"has '1.5', no whole number from 0 to 18446744073709551615 at byte 26");
	teardown();
}
END_TEST

/* An index larger than the window it is read through, cut at every place near a border. */
START_TEST(through_a_window)
{
	struct safetensors_index index;
	struct err err = {0};
	FILE *f;
	char word[64];
	int n = 30000;

	setup();
	/* an umlaut of two bytes, which an odd number of x moves against the border */
	memset(word, 'x', sizeof(word));
	memcpy(word, "\xc3\xa4", 2);
	f = fopen(path_of("i"), "wb");
	fputs("{\"weight_map\": {\n", f);
	for (int i = 0; i < n; i++)
		fprintf(f, "  \"model.layers.%d.%.*s.weight\": \"model-%05d\\u002dof-%05d\"%s\n", i,
			2 + i % 60, word, i / 300, n / 300, i + 1 < n ? "," : "}");
	fputs(",\"metadata\": {\"total_size\": 123456789012}}", f);
	fclose(f);
	assert_ok(safetensors_index(path_of("i"), &arena, &index, &err), err);
	ck_assert_uint_eq(index.n_tensors, (size_t)n);
	ck_assert_uint_eq(index.n_files, 100);
	ck_assert_str_eq(index.files[7], "model-00007-of-00100");
	ck_assert_uint_eq(index.total_size, UINT64_C(123456789012));
	teardown();
}
END_TEST

TEST_MAIN("safetensors", one_file, parts_and_index, packed_values, names, wrong_headers, odd_indexes,
	through_a_window)
