#include "models/read_gguf.h"

#include <sys/stat.h>

#define MAKE_GGUF_NO_MAIN
#include "tests/data/make_gguf.c"
#include "tests/test.h"

static struct arena arena;
static char folder[64];

static void setup(void)
{
	arena_init(&arena, NULL, NULL);
	strcpy(folder, "/tmp/offsim-gguf-XXXXXX");
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
	return arena_printf(&arena, "%s/%s.gguf", folder, name);
}

/* One of make_gguf's, on disk. */
static const char *make(const char *name)
{
	const char *path = path_of(name);
	uint64_t size;
	size_t n;
	unsigned char *bytes = mk_make(name, &n, &size);

	ck_assert_int_eq(mk_write(path, bytes, n, size), 0);
	return path;
}

static void open_made(const char *name, struct gguf *g)
{
	struct err err = {0};

	assert_ok(gguf_open(make(name), &arena, g, &err), err);
}

static struct model *load(const char *path, const char *quant)
{
	struct err err = {0};
	struct model *m;

	assert_ok(model_load(path, quant, &arena, &m, &err), err);
	return m;
}

static const struct model_tensor *tensor(const struct model *m, const char *name)
{
	for (int i = 0; i < m->n_tensors; i++) {
		if (!strcmp(m->tensors[i].name, name))
			return &m->tensors[i];
	}
	ck_abort_msg("no tensor '%s'", name);
}

static void assert_tensor(const struct model *m, const char *name, enum model_group group, const char *type,
	uint64_t x, uint64_t y, uint64_t z)
{
	const struct model_tensor *t = tensor(m, name);

	ck_assert_msg(t->group == group, "%s is of %s", name, model_group_name(t->group));
	ck_assert_str_eq(t->type->name, type);
	ck_assert_uint_eq(t->shape[0], x);
	ck_assert_uint_eq(t->shape[1], y);
	ck_assert_uint_eq(t->shape[2], z);
}

static const struct gguf_value *value(const struct gguf *g, const char *key, enum gguf_type type)
{
	const struct gguf_value *v = gguf_find(g, key);

	ck_assert_msg(v != NULL, "no key '%s'", key);
	ck_assert_int_eq(v->type, type);
	return v;
}

static struct gguf_scalar element(struct gguf *g, const char *key, uint64_t n)
{
	const struct gguf_value *v = gguf_find(g, key);
	struct gguf_scalar s = {0};
	struct gguf_walk w;
	struct err err = {0};

	ck_assert_ptr_nonnull(v);
	gguf_walk(&w, g, v);
	for (uint64_t i = 0; i <= n; i++)
		ck_assert_int_eq(gguf_next(&w, &s, &err), 1);
	return s;
}

START_TEST(values_are_read_back)
{
	struct gguf g;

	setup();
	open_made("values", &g);
	ck_assert_uint_eq(g.version, 3);
	ck_assert_uint_eq(g.alignment, 32);
	ck_assert_uint_eq(g.n_tensors, 0);
	ck_assert_uint_eq(value(&g, "test.u8", GGUF_U8)->scalar.u, 0xfe);
	ck_assert_int_eq(value(&g, "test.i8", GGUF_I8)->scalar.i, -2);
	ck_assert_uint_eq(value(&g, "test.u16", GGUF_U16)->scalar.u, 0xfedc);
	ck_assert_int_eq(value(&g, "test.i16", GGUF_I16)->scalar.i, -292);
	ck_assert_uint_eq(value(&g, "test.u32", GGUF_U32)->scalar.u, 0xfedcba98);
	ck_assert_int_eq(value(&g, "test.i32", GGUF_I32)->scalar.i, -19088744);
	ck_assert_uint_eq(value(&g, "test.u64", GGUF_U64)->scalar.u, UINT64_C(0x000fdcba98765432));
	ck_assert_int_eq(value(&g, "test.i64", GGUF_I64)->scalar.i, (int64_t)UINT64_C(0xfffedcba98765432));
	ck_assert_uint_eq(value(&g, "test.bool", GGUF_BOOL)->scalar.u, 1);
	assert_close(value(&g, "test.f32", GGUF_F32)->scalar.f, (double)-2.385f, 0);
	assert_close(value(&g, "test.f64", GGUF_F64)->scalar.f, 6.02214076e23, 0);
	ck_assert_str_eq(
		value(&g, "test.text", GGUF_TEXT)->scalar.text, "\xc3\xa4 \xe2\x82\xac \xf0\x9d\x84\x9e");
	ck_assert_uint_eq(value(&g, "test.empty", GGUF_TEXT)->scalar.len, 0);
	ck_assert_uint_eq(value(&g, "test.f64.array", GGUF_F64)->n, 0);
	ck_assert_ptr_null(gguf_find(&g, "test.nothing"));

	ck_assert(value(&g, "test.i16.array", GGUF_I16)->array);
	ck_assert_uint_eq(value(&g, "test.i16.array", GGUF_I16)->n, 5);
	ck_assert_int_eq(element(&g, "test.i16.array", 4).i, 0x0fed);
	ck_assert_uint_eq(element(&g, "test.bool.array", 3).u, 1);
	ck_assert_uint_eq(value(&g, "tokenizer.ggml.tokens", GGUF_TEXT)->n, 1000);
	ck_assert_str_eq(element(&g, "tokenizer.ggml.tokens", 2).text, "\xe2\x96\x81the");
	ck_assert_str_eq(element(&g, "tokenizer.ggml.tokens", 999).text, "word81");
	assert_close(element(&g, "tokenizer.ggml.scores", 999).f, (double)(-0.37f * 999), 0);
	gguf_close(&g);
	teardown();
}
END_TEST

/* Types and sizes against make_gguf's own table, offsets against the file's padding. */
START_TEST(every_type_has_its_size)
{
	struct gguf g;
	uint64_t next;
	size_t i;

	setup();
	open_made("types", &g);
	ck_assert_uint_eq(g.n_tensors, MK_TYPE_N + 3);
	next = g.data_at + (g.tensors[0].bytes + 31) / 32 * 32;
	for (i = 0; i < MK_TYPE_N; i++) {
		const struct gguf_tensor *t = &g.tensors[i + 1];
		uint64_t elements = 512 * 3 * (i % 2 ? 2 : 1);

		ck_assert_int_eq(t->type->ggml_id, (int)mk_types[i].id);
		ck_assert_uint_eq(t->elements, elements);
		ck_assert_uint_eq(t->bytes, elements / mk_types[i].elements * mk_types[i].bytes);
		ck_assert_uint_eq(t->offset, next);
		next += (t->bytes + 31) / 32 * 32;
	}
	ck_assert_uint_eq(g.tensors[i + 1].n_dims, 4);
	ck_assert_uint_eq(g.tensors[i + 1].elements, 240);
	ck_assert_uint_eq(g.tensors[i + 2].n_dims, 0);
	ck_assert_uint_eq(g.tensors[i + 2].bytes, 4);
	gguf_close(&g);
	ck_assert_uint_eq(tensor(load(path_of("types"), NULL), "blk.0.four_dims.weight")->shape[2], 15);
	teardown();
}
END_TEST

static void check_llama(const struct model *m)
{
	const struct model_layer *l = &m->layers[2];

	ck_assert_str_eq(m->architecture, "llama");
	ck_assert_str_eq(m->quant, "q4_k_m");
	ck_assert_uint_eq(m->n_layer, 3);
	ck_assert_uint_eq(m->hidden, 256);
	ck_assert_uint_eq(m->vocab, 300);
	ck_assert_uint_eq(m->context_max, 4096);
	ck_assert(!m->tied_embeddings);
	ck_assert_int_eq(m->n_tensors, 3 * 9 + 4);
	ck_assert_uint_eq(l->n_head, 4);
	ck_assert_uint_eq(l->n_kv_head, 2);
	ck_assert_uint_eq(l->head_dim_k, 64);
	ck_assert_uint_eq(l->head_dim_v, 64);
	ck_assert_uint_eq(l->kv_k_elements, 128);
	ck_assert_uint_eq(l->kv_v_elements, 128);
	ck_assert_uint_eq(l->window, 0);
	assert_tensor(m, "token_embd.weight", MODEL_EMBED, "q4_k", 256, 300, 1);
	assert_tensor(m, "rope_freqs.weight", MODEL_EMBED, "f32", 32, 1, 1);
	assert_tensor(m, "blk.0.attn_v.weight", MODEL_ATTN, "q6_k", 256, 128, 1);
	assert_tensor(m, "blk.1.attn_v.weight", MODEL_ATTN, "q4_k", 256, 128, 1);
	assert_tensor(m, "blk.2.ffn_down.weight", MODEL_FFN, "q4_k", 512, 256, 1);
	assert_tensor(m, "blk.2.ffn_norm.weight", MODEL_FFN, "f32", 256, 1, 1);
	assert_tensor(m, "output_norm.weight", MODEL_OUTPUT, "f32", 256, 1, 1);
	assert_tensor(m, "output.weight", MODEL_OUTPUT, "q6_k", 256, 300, 1);
	/* by hand, from ggml's block sizes */
	ck_assert_uint_eq(m->weights_bytes, 300 * 144 + 300 * 210 + 32 * 4 + 256 * 4 + 3 * 2 * 256 * 4 +
						    3 * (256 + 128 + 256 + 512 + 512) * 144 +
						    (2 * 128 + 2 * 512) * 144 + (128 + 512) * 210);
}

START_TEST(versions_and_alignments)
{
	const struct model *m;
	struct stat st;

	setup();
	m = load(make("llama"), NULL);
	check_llama(m);
	ck_assert_str_eq(m->file, path_of("llama"));
	ck_assert_int_eq(stat(path_of("llama"), &st), 0);
	ck_assert_uint_eq(m->file_bytes, (uint64_t)st.st_size);
	check_llama(load(make("llama-v2"), NULL));
	teardown();
}
END_TEST

START_TEST(split_files)
{
	unsigned char *bytes;
	uint64_t size, total = 0;
	const struct model *m;
	struct model *none;
	struct err err = {0};
	size_t n;

	setup();
	for (unsigned i = 0; i < 3; i++) {
		bytes = mk_part(i, 3, &n, &size);
		ck_assert_int_eq(mk_write(arena_printf(&arena, "%s/x-%05u-of-00003.gguf", folder, i + 1),
					 bytes, n, size),
			0);
		total += size;
	}
	/* any part will do, and the folder */
	m = load(path_of("x-00003-of-00003"), NULL);
	check_llama(m);
	ck_assert_uint_eq(m->file_bytes, total);
	m = load(folder, NULL);
	check_llama(m);
	ck_assert_str_eq(m->file, path_of("x-00001-of-00003"));

	ck_assert_int_eq(rename(path_of("x-00002-of-00003"), path_of("y")), 0);
	ck_assert_int_eq(model_load(folder, NULL, &arena, &none, &err), -1);
	assert_err(err, ERR_INPUT, "cannot be opened: No such file or directory");
	ck_assert_str_eq(err.file, path_of("x-00002-of-00003"));
	ck_assert_int_eq(model_load(path_of("y"), NULL, &arena, &none, &err), -1);
	assert_err(err, ERR_INPUT,
		"is part 2 of 3, but its name does not end in -00002-of-00003.gguf: the others cannot be "
		"found");
	ck_assert_int_eq(link(path_of("x-00001-of-00003"), path_of("x-00002-of-00003")), 0);
	ck_assert_int_eq(model_load(folder, NULL, &arena, &none, &err), -1);
	assert_err(err, ERR_INPUT, "is not part 2 of 3, as it is called");
	teardown();
}
END_TEST

START_TEST(experts)
{
	const struct model *m;
	const struct model_layer *l;

	setup();
	m = load(make("qwen3moe"), NULL);
	l = &m->layers[1];
	ck_assert_uint_eq(l->n_expert, 8);
	ck_assert_uint_eq(l->n_expert_used, 2);
	ck_assert_uint_eq(l->n_kv_head, 2);
	assert_tensor(m, "blk.1.ffn_norm.weight", MODEL_ROUTER, "f32", 256, 1, 1);
	assert_tensor(m, "blk.1.ffn_gate_inp.weight", MODEL_ROUTER, "f32", 256, 8, 1);
	assert_tensor(m, "blk.1.ffn_down_exps.weight", MODEL_EXPERTS, "q6_k", 256, 256, 8);
	ck_assert_uint_eq(model_expert_bytes(l), 2 * 256 * 176 + 256 * 210);
	ck_assert_uint_eq(m->params_total - m->params_active, 3 * 3 * 256 * 256 * 6);

	/* another quant: from shapes alone */
	m = load(path_of("qwen3moe"), "q8_0");
	ck_assert_str_eq(m->quant, "q8_0");
	assert_tensor(m, "blk.1.ffn_down_exps.weight", MODEL_EXPERTS, "q8_0", 256, 256, 8);
	ck_assert_uint_eq(m->file_bytes, 0);
	teardown();
}
END_TEST

START_TEST(latent_attention_and_drafts)
{
	const struct model *m;
	const struct model_layer *l;

	setup();
	m = load(make("deepseek2"), NULL);
	l = &m->layers[1];
	ck_assert_uint_eq(m->n_layer, 4);
	ck_assert(!m->layers[2].draft);
	ck_assert(m->layers[3].draft);
	ck_assert_uint_eq(m->layers[3].kv_k_elements, 0);
	ck_assert_uint_eq(l->n_head, 4);
	ck_assert_uint_eq(l->n_kv_head, 1);
	ck_assert_uint_eq(l->head_dim_k, 160);
	ck_assert_uint_eq(l->head_dim_v, 128);
	ck_assert_uint_eq(l->mla_dim_k, 96);
	ck_assert_uint_eq(l->mla_dim_v, 64);
	ck_assert_uint_eq(l->kv_k_elements, 160);
	ck_assert_uint_eq(l->kv_v_elements, 0);
	assert_tensor(m, "blk.0.ffn_norm.weight", MODEL_FFN, "f32", 256, 1, 1);
	assert_tensor(m, "blk.1.ffn_norm.weight", MODEL_ROUTER, "f32", 256, 1, 1);
	assert_tensor(m, "blk.1.exp_probs_b.bias", MODEL_ROUTER, "f32", 4, 1, 1);
	assert_tensor(m, "blk.1.ffn_up_shexp.weight", MODEL_SHARED, "q8_0", 256, 128, 1);
	assert_tensor(m, "blk.1.ffn_up_exps.weight", MODEL_EXPERTS, "mxfp4", 256, 128, 4);
	assert_tensor(m, "blk.1.attn_v_b.weight", MODEL_ATTN, "q8_0", 128, 64, 4);
	assert_tensor(m, "blk.3.nextn.eh_proj.weight", MODEL_ATTN, "q8_0", 512, 256, 1);
	teardown();
}
END_TEST

START_TEST(windows_and_tied_embeddings)
{
	const struct model *m;

	setup();
	m = load(make("gemma2"), NULL);
	for (int i = 0; i < 4; i++)
		ck_assert_uint_eq(m->layers[i].window, i % 2 ? 0 : 128);
	ck_assert_uint_eq(m->layers[0].head_dim_k, 32);
	ck_assert(m->tied_embeddings);
	ck_assert(tensor(m, "output.weight")->shared_storage);
	assert_tensor(m, "output.weight", MODEL_OUTPUT, "bf16", 256, 300, 1);
	assert_tensor(m, "blk.1.post_attention_norm.weight", MODEL_ATTN, "f32", 256, 1, 1);
	assert_tensor(m, "blk.1.post_ffw_norm.weight", MODEL_FFN, "f32", 256, 1, 1);
	teardown();
}
END_TEST

START_TEST(recurrent_layers)
{
	const struct model *m;

	setup();
	m = load(make("qwen3next"), NULL);
	ck_assert_uint_eq(m->layers[0].n_head, 0);
	ck_assert_uint_eq(m->layers[0].kv_k_elements, 0);
	/* 3 * (512 + 2 * 2 * 128) of convolution, 128 * 512 of state, f32 */
	ck_assert_uint_eq(m->layers[1].state_bytes, 4 * (3 * (512 + 512) + 128 * 512));
	ck_assert_uint_eq(m->layers[2].state_bytes, 0);
	ck_assert_uint_eq(m->layers[2].n_head, 4);
	ck_assert_uint_eq(m->layers[2].kv_k_elements, 128);
	assert_tensor(m, "blk.0.ssm_out.weight", MODEL_ATTN, "f32", 512, 256, 1);
	assert_tensor(m, "blk.0.post_attention_norm.weight", MODEL_ROUTER, "f32", 256, 1, 1);
	assert_tensor(m, "blk.0.ffn_gate_inp_shexp.weight", MODEL_SHARED, "f32", 256, 1, 1);
	teardown();
}
END_TEST

/* The message that this file gives. */
static const char *fault(const void *bytes, size_t n)
{
	static struct err err;
	struct model *m;
	struct gguf g;

	memset(&err, 0, sizeof(err));
	if (!gguf_open_memory(bytes, n, "x.gguf", &arena, &g, &err) && !read_gguf_open(&g, NULL, &m, &err))
		ck_abort_msg("was taken");
	ck_assert_int_eq(err.code, ERR_INPUT);
	ck_assert_str_eq(err.file, "x.gguf");
	return err.msg;
}

static const char *fault_of(struct mk *m)
{
	uint64_t size;
	size_t n;
	unsigned char *bytes = mk_end(m, &n, &size), *all = arena_alloc(&arena, size);

	memcpy(all, bytes, n);
	free(bytes);
	return fault(all, size);
}

#define BEGIN(m) mk_begin((m), 3, 32)

START_TEST(wrong_beginnings)
{
	struct mk_bytes b = {0};

	setup();
	ck_assert_str_eq(fault("", 0), "ends in the middle of the magic number at byte 0");
	ck_assert_str_eq(fault("GGUF\3", 5), "ends in the middle of the version at byte 5");
	ck_assert_str_eq(
		fault("GGML\1\0\0\0", 8), "is no GGUF file: has 47 47 4d 4c instead of 'GGUF' at byte 0");
	ck_assert_str_eq(fault("GGUF\1\0\0\0", 8), "is of GGUF version 1; 2 and 3 are read at byte 4");
	ck_assert_str_eq(fault("GGUF\4\0\0\0", 8), "is of GGUF version 4; 2 and 3 are read at byte 4");
	ck_assert_str_eq(fault("GGUF\0\0\0\3", 8), "is a big-endian file, which is not read here at byte 4");
	mk_put(&b, "GGUF\3\0\0\0", 8);
	mk_number(&b, UINT64_MAX, 8);
	mk_number(&b, 0, 8);
	ck_assert_str_eq(fault(b.at, b.n),
		"says that it has 18446744073709551615 tensors, more than it could hold at byte 8");
	memset(b.at + 8, 0, 8);
	b.at[22] = 1;
	ck_assert_str_eq(fault(b.at, b.n),
		"says that it has 281474976710656 keys, more than it could hold at byte 16");
	free(b.at);
	teardown();
}
END_TEST

START_TEST(wrong_values)
{
	struct mk m;

	setup();
	BEGIN(&m);
	mk_text(&m, "a", "x");
	mk_text(&m, "a", "y");
	ck_assert_str_eq(fault_of(&m), "key 'a' is there twice at byte 46");
	BEGIN(&m);
	mk_text(&m, "", "x");
	mk_text(&m, "padding", "padding");
	ck_assert_str_eq(fault_of(&m), "a key is empty at byte 32");
	BEGIN(&m);
	mk_text(&m, "a\nb", "x");
	mk_text(&m, "padding", "padding");
	ck_assert_str_eq(fault_of(&m), "a key has a control character at byte 33");
	BEGIN(&m);
	mk_text(&m, "general.name", "r\xe9sum\xe9");
	ck_assert_str_eq(fault_of(&m), "a string is not UTF-8 at byte 57");
	BEGIN(&m);
	mk_bits(&m, "a", 13, 0, 8);
	ck_assert_str_eq(fault_of(&m), "'a' has a value of unknown type 13 at byte 33");
	BEGIN(&m);
	mk_array(&m, "a", MK_ARRAY, 1);
	mk_number(&m.head, 4, 4);
	mk_number(&m.head, 0, 8);
	ck_assert_str_eq(fault_of(&m), "'a' is an array of arrays, which no model uses at byte 37");
	BEGIN(&m);
	mk_array(&m, "a", MK_U64, UINT64_C(1) << 61);
	ck_assert_str_eq(fault_of(&m),
		"'a' has 2305843009213693952 elements, more than the rest of the file holds at byte 41");
	BEGIN(&m);
	mk_key(&m, "a", MK_TEXT);
	mk_number(&m.head, UINT64_MAX - 7, 8);
	ck_assert_str_eq(fault_of(&m),
		"a string has a length of 18446744073709551608, the rest of the file has 19 at byte 37");
	BEGIN(&m);
	mk_u32(&m, "general.alignment", 48);
	ck_assert_str_eq(fault_of(&m), "'general.alignment' is 48, no power of two at byte 53");
	BEGIN(&m);
	mk_u16(&m, "general.alignment", 32);
	ck_assert_str_eq(fault_of(&m), "'general.alignment' is no 32-bit number at byte 53");
	teardown();
}
END_TEST

/* A tensor with all of its numbers given; no data. */
static void raw_tensor(struct mk *m, const char *name, uint64_t row, uint32_t type, uint64_t offset)
{
	mk_text_bytes(&m->infos, name, strlen(name));
	mk_number(&m->infos, 1, 4);
	mk_number(&m->infos, row, 8);
	mk_number(&m->infos, type, 4);
	mk_number(&m->infos, offset, 8);
	m->n_tensors++;
}

START_TEST(wrong_tensors)
{
	struct mk m;

	setup();
	BEGIN(&m);
	raw_tensor(&m, "a", 32, 0, 0);
	ck_assert_str_eq(fault_of(&m), "tensor 'a' ends at byte 192, the file has 64");
	BEGIN(&m);
	raw_tensor(&m, "a", 32, 0, UINT64_MAX - 31);
	ck_assert_str_eq(fault_of(&m), "tensor 'a' has an offset of nearly 2^64 at byte 24");
	BEGIN(&m);
	raw_tensor(&m, "a", 32, 0, 0);
	raw_tensor(&m, "b", 32, 0, 96);
	m.data = 256;
	ck_assert_str_eq(fault_of(&m), "tensors 'a' and 'b' overlap at byte 192");
	BEGIN(&m);
	raw_tensor(&m, "a", 32, 0, 0);
	raw_tensor(&m, "a", 32, 0, 128);
	m.data = 256;
	ck_assert_str_eq(fault_of(&m), "tensor 'a' is there twice at byte 57");
	BEGIN(&m);
	raw_tensor(&m, "a", 32, 0, 8);
	m.data = 256;
	ck_assert_str_eq(
		fault_of(&m), "tensor 'a' has offset 8, no multiple of the alignment, 32 at byte 49");
	BEGIN(&m);
	raw_tensor(&m, "a", 32, 4, 0);
	ck_assert_str_eq(fault_of(&m), "tensor 'a' has type 4, q4_2, which ggml has removed at byte 45");
	BEGIN(&m);
	raw_tensor(&m, "a", 32, 1000, 0);
	ck_assert_str_eq(fault_of(&m), "tensor 'a' has the unknown type 1000 at byte 45");
	BEGIN(&m);
	raw_tensor(&m, "a", 33, 2, 0);
	ck_assert_str_eq(fault_of(&m), "tensor 'a' has rows of 33 elements, no multiple of the 32 that a "
				       "block of q4_0 has at byte 45");
	BEGIN(&m);
	raw_tensor(&m, "a", UINT64_MAX, 2, 0);
	ck_assert_str_eq(fault_of(&m), "tensor 'a' has more than 2^50 elements at byte 33");
	BEGIN(&m);
	mk_text_bytes(&m.infos, "a", 1);
	mk_number(&m.infos, 5, 4);
	m.n_tensors = 1;
	mk_put(&m.infos, "0123456789abcdef", 16);
	ck_assert_str_eq(fault_of(&m), "tensor 'a' has 5 dimensions, more than 4 at byte 33");
	teardown();
}
END_TEST

START_TEST(wrong_models)
{
	static const uint32_t two[] = {2, 2};
	struct mk m;

	setup();
	BEGIN(&m);
	mk_words(&m, 10);
	ck_assert_str_eq(fault_of(&m), "holds no tensors: a vocabulary");
	BEGIN(&m);
	mk_tensor(&m, "token_embd.weight", 0, 8, 8, 0, 0);
	ck_assert_str_eq(fault_of(&m), "has no key 'general.architecture'");
	BEGIN(&m);
	mk_text(&m, "general.architecture", "llama");
	mk_tensor(&m, "token_embd.weight", 0, 8, 8, 0, 0);
	ck_assert_str_eq(fault_of(&m), "has no key 'llama.block_count'");
	BEGIN(&m);
	mk_text(&m, "general.architecture", "llama");
	mk_u32(&m, "llama.block_count", 4097);
	mk_tensor(&m, "token_embd.weight", 0, 8, 8, 0, 0);
	ck_assert_str_eq(
		fault_of(&m), "'llama.block_count' must be a whole number from 1 to 4096 at byte 98");
	BEGIN(&m);
	mk_common(&m, "llama", 2, 0);
	mk_tensor(&m, "blk.2.attn_k.weight", 0, 8, 8, 0, 0);
	ck_assert_ptr_nonnull(
		strstr(fault_of(&m), "tensor 'blk.2.attn_k.weight' belongs to none of the 2 layers"));
	BEGIN(&m);
	mk_common(&m, "llama", 2, 0);
	mk_tensor(&m, "blk.1.attn_k.weight", 0, 8, 8, 0, 0);
	ck_assert_str_eq(fault_of(&m), "has no tensor 'token_embd.weight'");
	BEGIN(&m);
	mk_common(&m, "llama", 3, 0);
	mk_u32s(&m, "llama.attention.head_count_kv", MK_U32, 2, two);
	mk_tensor(&m, "token_embd.weight", 0, 8, 8, 0, 0);
	ck_assert_ptr_nonnull(
		strstr(fault_of(&m), "'llama.attention.head_count_kv' has 2 elements for 3 layers at byte"));
	BEGIN(&m);
	mk_common(&m, "llama", 1, 0);
	mk_tensor(&m, "token_embd.weight", 0, 8, 8, 0, 0);
	mk_tensor(&m, "blk.0.ffn_up_exps.weight", 0, 8, 8, 4, 0);
	ck_assert_str_eq(fault_of(&m),
		"layer 0 has 4 experts, of which 'llama.expert_used_count' says that 0 are used");
	teardown();
}
END_TEST

/* Every place at which a file can have been cut. */
START_TEST(cut_files)
{
	uint64_t size;
	size_t n;
	unsigned char *bytes;

	setup();
	bytes = mk_make("gemma2", &n, &size);
	for (size_t cut = 0; cut < n; cut++) {
		struct arena_mark mark = arena_mark(&arena);
		/* of its own, so that a sanitizer sees what is read behind its end */
		unsigned char *copy = malloc(cut ? cut : 1);

		memcpy(copy, bytes, cut);
		ck_assert_ptr_nonnull(fault(copy, cut));
		free(copy);
		arena_rewind(&arena, mark);
	}
	free(bytes);
	teardown();
}
END_TEST

/* No byte changed makes it do worse than fail. */
START_TEST(changed_files)
{
	uint64_t size;
	size_t n;
	unsigned char *bytes, *all;

	setup();
	bytes = mk_make("deepseek2", &n, &size);
	all = calloc(1, size);
	for (size_t i = 0; i < n; i++) {
		struct arena_mark mark = arena_mark(&arena);
		struct err err = {0};
		struct model *m;
		struct gguf g;

		memcpy(all, bytes, n);
		all[i] ^= (unsigned char)(i % 3 ? 0x80 >> i % 8 : 0xff);
		if (gguf_open_memory(all, size, "x.gguf", &arena, &g, &err) ||
			read_gguf_open(&g, NULL, &m, &err))
			ck_assert(err.msg[0]);
		arena_rewind(&arena, mark);
	}
	free(bytes);
	free(all);
	teardown();
}
END_TEST

START_TEST(no_regular_file)
{
	struct err err = {0};
	struct gguf g;

	setup();
	ck_assert_int_eq(gguf_open("/dev/zero", &arena, &g, &err), -1);
	assert_err(err, ERR_INPUT, "is no regular file");
	ck_assert_int_eq(mkfifo(path_of("fifo"), 0600), 0);
	ck_assert_int_eq(gguf_open(path_of("fifo"), &arena, &g, &err), -1);
	assert_err(err, ERR_INPUT, "is no regular file");
	ck_assert_int_eq(gguf_open(path_of("none"), &arena, &g, &err), -1);
	assert_err(err, ERR_INPUT, "cannot be opened: No such file or directory");
	teardown();
}
END_TEST

/* A hole of 100 GB whose counts are as large as it allows: neither memory nor time. */
START_TEST(large_nonsense)
{
	struct mk m;
	uint64_t size;
	size_t n;
	unsigned char *bytes;
	struct err err = {0};
	struct gguf g;

	setup();
	BEGIN(&m);
	mk_array(&m, "a", MK_TEXT, UINT64_C(1) << 33);
	bytes = mk_end(&m, &n, &size);
	ck_assert_int_eq(mk_write(path_of("a"), bytes, n, UINT64_C(100000000000)), 0);
	ck_assert_int_eq(gguf_open(path_of("a"), &arena, &g, &err), -1);
	ck_assert_str_eq(err.msg, "has a header of more than 256 MiB: a string at byte 268435449");
	ck_assert_uint_lt(arena.total_bytes, 1 << 20);
	teardown();
}
END_TEST

TEST_MAIN("gguf", values_are_read_back, every_type_has_its_size, versions_and_alignments, split_files,
	experts, latent_attention_and_drafts, windows_and_tied_embeddings, recurrent_layers, wrong_beginnings,
	wrong_values, wrong_tensors, wrong_models, cut_files, changed_files, no_regular_file, large_nonsense)
