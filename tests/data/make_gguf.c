/*
 * make_gguf.c - writes small GGUF files to test the reader with, by the letter of ggml's docs/gguf.md and
 * without a line of the reader's; and prints what the reader finds in a file, one thing a line.
 *
 *	make_gguf FOLDER       llama.gguf, llama-v2.gguf, qwen3moe.gguf …; their data is a hole
 *	make_gguf dump FILE    also what tests/data/dump_gguf.mjs prints with npm's @huggingface/gguf
 *
 * tests/unit/test_gguf.c includes this file for the functions.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	MK_U8,
	MK_I8,
	MK_U16,
	MK_I16,
	MK_U32,
	MK_I32,
	MK_F32,
	MK_BOOL,
	MK_TEXT,
	MK_ARRAY,
	MK_U64,
	MK_I64,
	MK_F64
};

/* A file under construction: `head` up to the tensors, `infos` those. */
struct mk {
	struct mk_bytes {
		unsigned char *at;
		size_t n, cap;
	} head, infos;
	uint32_t version;
	uint64_t align, n_values, n_tensors, data;
};

/* ggml types by id: elements and bytes of a block (ggml_types.csv). */
static const struct mk_type {
	uint32_t id, elements, bytes;
} mk_types[] = {
	{0, 1, 4},
	{1, 1, 2},
	{2, 32, 18},
	{3, 32, 20},
	{6, 32, 22},
	{7, 32, 24},
	{8, 32, 34},
	{9, 32, 36},
	{10, 256, 84},
	{11, 256, 110},
	{12, 256, 144},
	{13, 256, 176},
	{14, 256, 210},
	{15, 256, 292},
	{16, 256, 66},
	{17, 256, 74},
	{18, 256, 98},
	{19, 256, 50},
	{20, 32, 18},
	{21, 256, 110},
	{22, 256, 82},
	{23, 256, 136},
	{24, 1, 1},
	{25, 1, 2},
	{26, 1, 4},
	{27, 1, 8},
	{28, 1, 8},
	{29, 256, 56},
	{30, 1, 2},
	{34, 256, 54},
	{35, 256, 66},
	{39, 32, 17},
	{40, 64, 36},
	{41, 128, 18},
	{42, 64, 18},
};
#define MK_TYPE_N (sizeof(mk_types) / sizeof(mk_types[0]))

static void mk_put(struct mk_bytes *b, const void *bytes, size_t n)
{
	if (b->n + n > b->cap) {
		b->cap = 2 * (b->n + n) + 256;
		b->at = realloc(b->at, b->cap);
		if (!b->at)
			abort();
	}
	if (n)
		memcpy(b->at + b->n, bytes, n);
	b->n += n;
}

static void mk_number(struct mk_bytes *b, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)(v >> 8 * i);

		mk_put(b, &c, 1);
	}
}

static void mk_text_bytes(struct mk_bytes *b, const char *s, size_t n)
{
	mk_number(b, n, 8);
	mk_put(b, s, n);
}

static void mk_begin(struct mk *m, uint32_t version, uint64_t align)
{
	*m = (struct mk){.version = version, .align = align};
}

static void mk_key(struct mk *m, const char *key, uint32_t type)
{
	mk_text_bytes(&m->head, key, strlen(key));
	mk_number(&m->head, type, 4);
	m->n_values++;
}

static void mk_u32(struct mk *m, const char *key, uint32_t v)
{
	mk_key(m, key, MK_U32);
	mk_number(&m->head, v, 4);
}

static void mk_u16(struct mk *m, const char *key, uint32_t v)
{
	mk_key(m, key, MK_U16);
	mk_number(&m->head, v, 2);
}

static void mk_bits(struct mk *m, const char *key, uint32_t type, uint64_t bits, size_t n)
{
	mk_key(m, key, type);
	mk_number(&m->head, bits, n);
}

static void mk_f32(struct mk *m, const char *key, float v)
{
	uint32_t bits;

	memcpy(&bits, &v, 4);
	mk_bits(m, key, MK_F32, bits, 4);
}

static void mk_f64(struct mk *m, const char *key, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, 8);
	mk_bits(m, key, MK_F64, bits, 8);
}

static void mk_text(struct mk *m, const char *key, const char *v)
{
	mk_key(m, key, MK_TEXT);
	mk_text_bytes(&m->head, v, strlen(v));
}

/* The elements follow, put to m->head. */
static void mk_array(struct mk *m, const char *key, uint32_t type, uint64_t n)
{
	mk_key(m, key, MK_ARRAY);
	mk_number(&m->head, type, 4);
	mk_number(&m->head, n, 8);
}

static void mk_u32s(struct mk *m, const char *key, uint32_t type, size_t n, const uint32_t *v)
{
	mk_array(m, key, type, n);
	for (size_t i = 0; i < n; i++)
		mk_number(&m->head, v[i], type == MK_BOOL ? 1 : 4);
}

/* A vocabulary of n words, the first of which are not ASCII. */
static void mk_words(struct mk *m, size_t n)
{
	static const char *const odd[] = {
		"", "<s>", "\xe2\x96\x81the", "\xf0\x9f\x98\x80", "\xc3\xa9", "tab\there"};
	char word[32];

	mk_array(m, "tokenizer.ggml.tokens", MK_TEXT, n);
	for (size_t i = 0; i < n; i++) {
		snprintf(word, sizeof(word), "word%zu", i * 7919 % 1000);
		const char *s = i < 6 ? odd[i] : word;
		mk_text_bytes(&m->head, s, strlen(s));
	}
	mk_array(m, "tokenizer.ggml.scores", MK_F32, n);
	for (size_t i = 0; i < n; i++) {
		float score = -0.37f * (float)i;
		uint32_t bits;

		memcpy(&bits, &score, 4);
		mk_number(&m->head, bits, 4);
	}
}

static uint64_t mk_padded(uint64_t n, uint64_t align)
{
	return (n + align - 1) / align * align;
}

/* dims: row length first, up to the first 0. */
static void mk_tensor(
	struct mk *m, const char *name, uint32_t type, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	uint64_t dims[] = {a, b, c, d}, elements = 1;
	uint32_t n = 0;

	while (n < 4 && dims[n])
		elements *= dims[n++];
	mk_text_bytes(&m->infos, name, strlen(name));
	mk_number(&m->infos, n, 4);
	for (uint32_t i = 0; i < n; i++)
		mk_number(&m->infos, dims[i], 8);
	mk_number(&m->infos, type, 4);
	mk_number(&m->infos, m->data, 8);
	for (size_t i = 0; i < MK_TYPE_N; i++) {
		if (mk_types[i].id == type)
			m->data = mk_padded(
				m->data + elements / mk_types[i].elements * mk_types[i].bytes, m->align);
	}
	m->n_tensors++;
}

/* The header, with its padding; *size: of the whole file, of which the rest is zero. */
static unsigned char *mk_end(struct mk *m, size_t *n, uint64_t *size)
{
	static const unsigned char zero[1];
	struct mk_bytes b = {0};

	mk_put(&b, "GGUF", 4);
	mk_number(&b, m->version, 4);
	mk_number(&b, m->n_tensors, 8);
	mk_number(&b, m->n_values, 8);
	mk_put(&b, m->head.at, m->head.n);
	mk_put(&b, m->infos.at, m->infos.n);
	while (b.n % m->align)
		mk_put(&b, zero, 1);
	free(m->head.at);
	free(m->infos.at);
	*n = b.n;
	*size = b.n + m->data;
	return b.at;
}

/* ---- models ---- */

static void mk_layer(
	struct mk *m, int layer, const char *name, uint32_t type, uint64_t a, uint64_t b, uint64_t c)
{
	char full[64];

	snprintf(full, sizeof(full), "blk.%d.%s", layer, name);
	mk_tensor(m, full, type, a, b, c, 0);
}

static void mk_arch(struct mk *m, const char *arch, const char *key, uint32_t v)
{
	char full[64];

	snprintf(full, sizeof(full), "%s.%s", arch, key);
	mk_u32(m, full, v);
}

/* Width 256, 4 heads of 64 (2 for keys and values), feed-forward 512, 300 words. */
static void mk_common(struct mk *m, const char *arch, uint32_t layers, uint32_t file_type)
{
	mk_text(m, "general.architecture", arch);
	mk_text(m, "general.name", "made for a test");
	if (m->align != 32)
		mk_u32(m, "general.alignment", (uint32_t)m->align);
	mk_arch(m, arch, "block_count", layers);
	mk_arch(m, arch, "context_length", 4096);
	mk_arch(m, arch, "embedding_length", 256);
	mk_arch(m, arch, "attention.head_count", 4);
	mk_u32(m, "general.file_type", file_type);
}

static void mk_attention(struct mk *m, int layer, uint32_t q, uint32_t v)
{
	mk_layer(m, layer, "attn_norm.weight", 0, 256, 0, 0);
	mk_layer(m, layer, "attn_q.weight", q, 256, 256, 0);
	mk_layer(m, layer, "attn_k.weight", q, 256, 128, 0);
	mk_layer(m, layer, "attn_v.weight", v, 256, 128, 0);
	mk_layer(m, layer, "attn_output.weight", q, 256, 256, 0);
}

static void mk_ffn(struct mk *m, int layer, uint32_t up, uint32_t down)
{
	mk_layer(m, layer, "ffn_gate.weight", up, 256, 512, 0);
	mk_layer(m, layer, "ffn_up.weight", up, 256, 512, 0);
	mk_layer(m, layer, "ffn_down.weight", down, 512, 256, 0);
	mk_layer(m, layer, "ffn_norm.weight", 0, 256, 0, 0);
}

/* As llama-quantize makes them: output first. */
static void mk_llama_tensors(struct mk *m, int from, int to)
{
	if (!from) {
		mk_tensor(m, "output.weight", 14, 256, 300, 0, 0);
		mk_tensor(m, "token_embd.weight", 12, 256, 300, 0, 0);
		mk_tensor(m, "rope_freqs.weight", 0, 32, 0, 0, 0);
	}
	for (int i = from; i < to; i++) {
		mk_attention(m, i, 12, i ? 12 : 14);
		mk_ffn(m, i, 12, i ? 12 : 14);
	}
}

static void mk_llama(struct mk *m)
{
	mk_common(m, "llama", 3, 15);
	mk_arch(m, "llama", "attention.head_count_kv", 2);
	mk_arch(m, "llama", "feed_forward_length", 512);
	mk_words(m, 300);
	mk_llama_tensors(m, 0, 3);
	mk_tensor(m, "output_norm.weight", 0, 256, 0, 0, 0);
}

static void mk_moe(struct mk *m)
{
	static const uint32_t heads[] = {2, 2, 2};

	mk_common(m, "qwen3moe", 3, 17);
	mk_u32s(m, "qwen3moe.attention.head_count_kv", MK_I32, 3, heads);
	mk_arch(m, "qwen3moe", "attention.key_length", 64);
	mk_arch(m, "qwen3moe", "attention.value_length", 64);
	mk_arch(m, "qwen3moe", "expert_count", 8);
	mk_arch(m, "qwen3moe", "expert_used_count", 2);
	mk_arch(m, "qwen3moe", "expert_feed_forward_length", 256);
	mk_tensor(m, "token_embd.weight", 30, 256, 300, 0, 0);
	for (int i = 0; i < 3; i++) {
		mk_attention(m, i, 8, 8);
		mk_layer(m, i, "attn_q_norm.weight", 0, 64, 0, 0);
		mk_layer(m, i, "attn_k_norm.weight", 0, 64, 0, 0);
		mk_layer(m, i, "ffn_norm.weight", 0, 256, 0, 0);
		mk_layer(m, i, "ffn_gate_inp.weight", 0, 256, 8, 0);
		mk_layer(m, i, "ffn_gate_exps.weight", 13, 256, 256, 8);
		mk_layer(m, i, "ffn_up_exps.weight", 13, 256, 256, 8);
		mk_layer(m, i, "ffn_down_exps.weight", 14, 256, 256, 8);
	}
	mk_tensor(m, "output_norm.weight", 0, 256, 0, 0, 0);
	mk_tensor(m, "output.weight", 14, 256, 300, 0, 0);
}

/* A dense layer, two of experts with a shared one, one that drafts. Latent 128 + 32 rotated. */
static void mk_mla(struct mk *m)
{
	mk_common(m, "deepseek2", 4, 38);
	mk_arch(m, "deepseek2", "nextn_predict_layers", 1);
	mk_arch(m, "deepseek2", "attention.head_count_kv", 1);
	mk_arch(m, "deepseek2", "attention.q_lora_rank", 64);
	mk_arch(m, "deepseek2", "attention.kv_lora_rank", 128);
	mk_arch(m, "deepseek2", "attention.key_length", 160);
	mk_arch(m, "deepseek2", "attention.value_length", 128);
	mk_arch(m, "deepseek2", "attention.key_length_mla", 96);
	mk_arch(m, "deepseek2", "attention.value_length_mla", 64);
	mk_arch(m, "deepseek2", "rope.dimension_count", 32);
	mk_arch(m, "deepseek2", "leading_dense_block_count", 1);
	mk_arch(m, "deepseek2", "feed_forward_length", 512);
	mk_arch(m, "deepseek2", "expert_count", 4);
	mk_arch(m, "deepseek2", "expert_used_count", 2);
	mk_arch(m, "deepseek2", "expert_shared_count", 1);
	mk_arch(m, "deepseek2", "expert_feed_forward_length", 128);
	mk_tensor(m, "token_embd.weight", 1, 256, 300, 0, 0);
	for (int i = 0; i < 4; i++) {
		mk_layer(m, i, "attn_norm.weight", 0, 256, 0, 0);
		mk_layer(m, i, "attn_q_a.weight", 8, 256, 64, 0);
		mk_layer(m, i, "attn_q_a_norm.weight", 0, 64, 0, 0);
		mk_layer(m, i, "attn_q_b.weight", 8, 64, 384, 0);
		mk_layer(m, i, "attn_kv_a_mqa.weight", 8, 256, 160, 0);
		mk_layer(m, i, "attn_kv_a_norm.weight", 0, 128, 0, 0);
		mk_layer(m, i, "attn_k_b.weight", 8, 64, 128, 4);
		mk_layer(m, i, "attn_v_b.weight", 8, 128, 64, 4);
		mk_layer(m, i, "attn_output.weight", 8, 256, 256, 0);
		if (!i) {
			mk_ffn(m, i, 8, 8);
			continue;
		}
		mk_layer(m, i, "ffn_norm.weight", 0, 256, 0, 0);
		mk_layer(m, i, "ffn_gate_inp.weight", 0, 256, 4, 0);
		mk_layer(m, i, "exp_probs_b.bias", 0, 4, 0, 0);
		mk_layer(m, i, "ffn_gate_exps.weight", 39, 256, 128, 4);
		mk_layer(m, i, "ffn_up_exps.weight", 39, 256, 128, 4);
		mk_layer(m, i, "ffn_down_exps.weight", 39, 128, 256, 4);
		mk_layer(m, i, "ffn_gate_shexp.weight", 8, 256, 128, 0);
		mk_layer(m, i, "ffn_up_shexp.weight", 8, 256, 128, 0);
		mk_layer(m, i, "ffn_down_shexp.weight", 8, 128, 256, 0);
		if (i == 3)
			mk_layer(m, i, "nextn.eh_proj.weight", 8, 512, 256, 0);
	}
	mk_tensor(m, "output_norm.weight", 0, 256, 0, 0, 0);
	mk_tensor(m, "output.weight", 8, 256, 300, 0, 0);
}

/* Tied embeddings, windows on even layers, feed-forward widths by layer. */
static void mk_gemma(struct mk *m)
{
	static const uint32_t ffn[] = {512, 512, 512, 512};

	mk_common(m, "gemma2", 4, 32);
	mk_arch(m, "gemma2", "attention.head_count_kv", 2);
	mk_arch(m, "gemma2", "attention.key_length", 32);
	mk_arch(m, "gemma2", "attention.value_length", 32);
	mk_arch(m, "gemma2", "attention.sliding_window", 128);
	mk_u32s(m, "gemma2.feed_forward_length", MK_U32, 4, ffn);
	mk_tensor(m, "token_embd.weight", 30, 256, 300, 0, 0);
	for (int i = 0; i < 4; i++) {
		mk_layer(m, i, "attn_norm.weight", 0, 256, 0, 0);
		mk_layer(m, i, "attn_q.weight", 30, 256, 128, 0);
		mk_layer(m, i, "attn_k.weight", 30, 256, 64, 0);
		mk_layer(m, i, "attn_v.weight", 30, 256, 64, 0);
		mk_layer(m, i, "attn_output.weight", 30, 128, 256, 0);
		mk_layer(m, i, "post_attention_norm.weight", 0, 256, 0, 0);
		mk_ffn(m, i, 30, 30);
		mk_layer(m, i, "post_ffw_norm.weight", 0, 256, 0, 0);
	}
	mk_tensor(m, "output_norm.weight", 0, 256, 0, 0, 0);
}

/* Two gated-delta layers, one of attention, experts in all. */
static void mk_hybrid(struct mk *m)
{
	mk_common(m, "qwen3next", 3, 0);
	mk_arch(m, "qwen3next", "attention.head_count_kv", 2);
	mk_arch(m, "qwen3next", "ssm.conv_kernel", 4);
	mk_arch(m, "qwen3next", "ssm.inner_size", 512);
	mk_arch(m, "qwen3next", "ssm.state_size", 128);
	mk_arch(m, "qwen3next", "ssm.group_count", 2);
	mk_arch(m, "qwen3next", "ssm.time_step_rank", 4);
	mk_arch(m, "qwen3next", "expert_count", 4);
	mk_arch(m, "qwen3next", "expert_used_count", 1);
	mk_tensor(m, "token_embd.weight", 0, 256, 300, 0, 0);
	for (int i = 0; i < 3; i++) {
		if (i == 2) {
			mk_attention(m, i, 0, 0);
		} else {
			mk_layer(m, i, "attn_norm.weight", 0, 256, 0, 0);
			mk_layer(m, i, "attn_qkv.weight", 0, 256, 1024, 0);
			mk_layer(m, i, "attn_gate.weight", 0, 256, 512, 0);
			mk_layer(m, i, "ssm_ba.weight", 0, 256, 8, 0);
			mk_layer(m, i, "ssm_conv1d.weight", 0, 4, 1024, 0);
			mk_layer(m, i, "ssm_a", 0, 4, 0, 0);
			mk_layer(m, i, "ssm_out.weight", 0, 512, 256, 0);
		}
		mk_layer(m, i, "post_attention_norm.weight", 0, 256, 0, 0);
		mk_layer(m, i, "ffn_gate_inp.weight", 0, 256, 4, 0);
		mk_layer(m, i, "ffn_gate_exps.weight", 0, 256, 64, 4);
		mk_layer(m, i, "ffn_up_exps.weight", 0, 256, 64, 4);
		mk_layer(m, i, "ffn_down_exps.weight", 0, 64, 256, 4);
		mk_layer(m, i, "ffn_gate_inp_shexp.weight", 0, 256, 0, 0);
		mk_layer(m, i, "ffn_gate_shexp.weight", 0, 256, 64, 0);
		mk_layer(m, i, "ffn_up_shexp.weight", 0, 256, 64, 0);
		mk_layer(m, i, "ffn_down_shexp.weight", 0, 64, 256, 0);
	}
	mk_tensor(m, "output_norm.weight", 0, 256, 0, 0, 0);
}

/* A tensor of every type. */
static void mk_all_types(struct mk *m)
{
	char name[64];

	mk_common(m, "llama", 1, 1);
	mk_tensor(m, "token_embd.weight", 1, 256, 300, 0, 0);
	for (size_t i = 0; i < MK_TYPE_N; i++) {
		snprintf(name, sizeof(name), "blk.0.of_type_%u.weight", mk_types[i].id);
		mk_tensor(m, name, mk_types[i].id, 512, 3, i % 2 ? 2 : 0, 0);
	}
	mk_tensor(m, "blk.0.four_dims.weight", 0, 8, 2, 3, 5);
	mk_tensor(m, "blk.0.no_dims", 0, 0, 0, 0, 0);
}

/* A value and an array of every type; no tensors. */
static void mk_all_values(struct mk *m)
{
	static const struct {
		const char *key;
		uint32_t type;
		uint64_t bits;
		size_t n;
	} v[] = {
		{"test.u8", MK_U8, 0xfe, 1},
		{"test.i8", MK_I8, 0xfe, 1},
		{"test.u16", MK_U16, 0xfedc, 2},
		{"test.i16", MK_I16, 0xfedc, 2},
		{"test.u32", MK_U32, 0xfedcba98, 4},
		{"test.i32", MK_I32, 0xfedcba98, 4},
		{"test.bool", MK_BOOL, 1, 1},
		{"test.u64", MK_U64, UINT64_C(0x000fdcba98765432), 8},
		{"test.i64", MK_I64, UINT64_C(0xfffedcba98765432), 8},
	};
	char key[64];

	mk_text(m, "general.architecture", "test");
	mk_text(m, "test.text", "\xc3\xa4 \xe2\x82\xac \xf0\x9d\x84\x9e");
	mk_text(m, "test.empty", "");
	mk_f32(m, "test.f32", -2.385f);
	mk_f64(m, "test.f64", 6.02214076e23);
	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		mk_bits(m, v[i].key, v[i].type, v[i].bits, v[i].n);
		snprintf(key, sizeof(key), "%s.array", v[i].key);
		mk_array(m, key, v[i].type, 5);
		for (uint64_t e = 0; e < 5; e++)
			mk_number(&m->head, v[i].type == MK_BOOL ? e & 1 : v[i].bits >> e, v[i].n);
	}
	mk_array(m, "test.f64.array", MK_F64, 0);
	mk_words(m, 1000);
}

static const struct mk_file {
	const char *name;
	uint32_t version;
	uint64_t align;
	void (*fill)(struct mk *m);
} mk_files[] = {
	{"llama", 3, 32, mk_llama},
	{"llama-v2", 2, 64, mk_llama},
	{"qwen3moe", 3, 32, mk_moe},
	{"deepseek2", 3, 32, mk_mla},
	{"gemma2", 3, 128, mk_gemma},
	{"qwen3next", 3, 32, mk_hybrid},
	{"types", 3, 32, mk_all_types},
	{"values", 3, 32, mk_all_values},
};
#define MK_FILE_N (sizeof(mk_files) / sizeof(mk_files[0]))

static unsigned char *mk_make(const char *name, size_t *n, uint64_t *size)
{
	struct mk m;

	for (size_t i = 0; i < MK_FILE_N; i++) {
		if (strcmp(mk_files[i].name, name))
			continue;
		mk_begin(&m, mk_files[i].version, mk_files[i].align);
		mk_files[i].fill(&m);
		return mk_end(&m, n, size);
	}
	abort();
}

/* llama.gguf in parts, a layer each, as llama-gguf-split cuts it. */
static unsigned char *mk_part(unsigned part, unsigned n_parts, size_t *n, uint64_t *size)
{
	struct mk m;

	mk_begin(&m, 3, 32);
	if (!part) {
		mk_common(&m, "llama", n_parts, 15);
		mk_arch(&m, "llama", "attention.head_count_kv", 2);
		mk_words(&m, 300);
	}
	mk_u16(&m, "split.no", part);
	mk_u16(&m, "split.count", n_parts);
	mk_bits(&m, "split.tensors.count", MK_I32, 4 + 9 * (uint64_t)n_parts, 4);
	mk_llama_tensors(&m, (int)part, (int)part + 1);
	if (part == n_parts - 1)
		mk_tensor(&m, "output_norm.weight", 0, 256, 0, 0, 0);
	return mk_end(&m, n, size);
}

/* Writes the header; the rest of the file is a hole. Frees bytes. */
static int mk_write(const char *path, unsigned char *bytes, size_t n, uint64_t size)
{
	FILE *f = fopen(path, "wb");
	int rc = -1;

	if (f) {
		rc = fwrite(bytes, 1, n, f) == n && !fflush(f) && !ftruncate(fileno(f), (off_t)size) ? 0 : -1;
		rc = fclose(f) || rc ? -1 : 0;
	}
	if (rc)
		perror(path);
	free(bytes);
	return rc;
}

#ifndef MAKE_GGUF_NO_MAIN
#include "base/hash.h"
#include "models/gguf.h"

/* One that is as large as published ones: 100 GB, of a 70B model at the size of f16 with an f32 table. */
static unsigned char *mk_huge(size_t *n, uint64_t *size)
{
	struct mk m;

	mk_begin(&m, 3, 32);
	mk_text(&m, "general.architecture", "llama");
	mk_arch(&m, "llama", "block_count", 60);
	mk_arch(&m, "llama", "embedding_length", 8192);
	mk_arch(&m, "llama", "attention.head_count", 64);
	mk_arch(&m, "llama", "attention.head_count_kv", 8);
	mk_words(&m, 128256);
	mk_tensor(&m, "token_embd.weight", 1, 8192, 128256, 0, 0);
	for (int i = 0; i < 60; i++) {
		mk_layer(&m, i, "attn_norm.weight", 0, 8192, 0, 0);
		mk_layer(&m, i, "attn_q.weight", 1, 8192, 8192, 0);
		mk_layer(&m, i, "attn_k.weight", 1, 8192, 1024, 0);
		mk_layer(&m, i, "attn_v.weight", 1, 8192, 1024, 0);
		mk_layer(&m, i, "attn_output.weight", 1, 8192, 8192, 0);
		mk_layer(&m, i, "ffn_norm.weight", 0, 8192, 0, 0);
		mk_layer(&m, i, "ffn_gate.weight", 1, 8192, 28672, 0);
		mk_layer(&m, i, "ffn_up.weight", 1, 8192, 28672, 0);
		mk_layer(&m, i, "ffn_down.weight", 1, 28672, 8192, 0);
	}
	mk_tensor(&m, "output_norm.weight", 0, 8192, 0, 0, 0);
	mk_tensor(&m, "output.weight", 1, 8192, 128256, 0, 0);
	return mk_end(&m, n, size);
}

static int make_all(const char *folder)
{
	unsigned char *bytes;
	char path[4096];
	uint64_t size;
	size_t n;

	for (size_t i = 0; i < MK_FILE_N; i++) {
		bytes = mk_make(mk_files[i].name, &n, &size);
		snprintf(path, sizeof(path), "%s/%s.gguf", folder, mk_files[i].name);
		if (mk_write(path, bytes, n, size))
			return 1;
	}
	for (unsigned i = 0; i < 3; i++) {
		bytes = mk_part(i, 3, &n, &size);
		snprintf(path, sizeof(path), "%s/split-%05u-of-00003.gguf", folder, i + 1);
		if (mk_write(path, bytes, n, size))
			return 1;
	}
	bytes = mk_huge(&n, &size);
	snprintf(path, sizeof(path), "%s/huge.gguf", folder);
	return mk_write(path, bytes, n, size) ? 1 : 0;
}

/* What an element adds to the hash of its array: 8 bytes, or its text and a NUL. Without a byte order mark
   ahead, which npm's reader drops (TextDecoder): a word of the Llama 2 vocabulary is one. */
static uint64_t hash_scalar(uint64_t h, const struct gguf_scalar *s)
{
	static const char nul[1];
	unsigned char bytes[8];

	if (s->type == GGUF_TEXT) {
		size_t bom = s->len >= 3 && !memcmp(s->text, "\xef\xbb\xbf", 3) ? 3 : 0;

		return hash_bytes(hash_bytes(h, s->text + bom, s->len - bom), nul, 1);
	}
	for (int i = 0; i < 8; i++)
		bytes[i] = (unsigned char)(s->u >> 8 * i);
	return hash_bytes(h, bytes, 8);
}

static int dump(const char *path)
{
	struct arena a;
	struct gguf g;
	struct err err = {0};

	arena_init(&a, NULL, NULL);
	if (gguf_open(path, &a, &g, &err)) {
		err_print(&err, stderr);
		return 2;
	}
	printf("version %u\n", g.version);
	for (size_t i = 0; i < g.n_values; i++) {
		const struct gguf_value *v = &g.values[i];
		uint64_t h = HASH_INIT;
		struct gguf_scalar s;
		struct gguf_walk w;
		int rc;

		gguf_walk(&w, &g, v);
		while ((rc = gguf_next(&w, &s, &err)) > 0)
			h = hash_scalar(h, &s);
		if (rc) {
			err_print(&err, stderr);
			return 2;
		}
		printf("key %s %d%s %" PRIu64 " %016" PRIx64 "\n", v->key, (int)v->type, v->array ? "[]" : "",
			v->n, h);
	}
	for (size_t i = 0; i < g.n_tensors; i++) {
		const struct gguf_tensor *t = &g.tensors[i];

		printf("tensor %s %d %" PRIu64, t->name, t->type->ggml_id, t->offset);
		for (uint32_t d = 0; d < t->n_dims; d++)
			printf(" %" PRIu64, t->dim[d]);
		printf("\n");
	}
	gguf_close(&g);
	arena_release(&a);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "dump"))
		return dump(argv[2]);
	if (argc == 2)
		return make_all(argv[1]);
	fprintf(stderr, "usage: make_gguf FOLDER | make_gguf dump FILE\n");
	return 2;
}
#endif
