#include "models/mix.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "base/csv.h"
#include "base/datadir.h"
#include "tests/test.h"

static struct arena arena;

static const char *data_path(const char *name)
{
	struct err err = {0};
	const char *dir;

	assert_ok(datadir_find(&arena, &dir, &err), err);
	return arena_printf(&arena, "%s/tests/data/%s", dir, name);
}

static struct model *load(const char *name, const char *quant)
{
	struct err err = {0};
	struct model *m;

	assert_ok(model_load(name, quant, &arena, &m, &err), err);
	return m;
}

static const char *type_of(const struct model *m, const char *name)
{
	for (int i = 0; i < m->n_tensors; i++) {
		if (!strcmp(m->tensors[i].name, name))
			return m->tensors[i].type->name;
	}
	ck_abort_msg("no tensor '%s'", name);
}

/* ---- llama.cpp's own answers (tests/data/quant_snapshots) ---- */

/* A model of a snapshot: its geometry from the model's config.json, its tensors named as in GGUF. */
struct shape {
	const char *file, *architecture;
	uint32_t n_layer, n_dense, n_head, n_kv_head, head_dim, n_expert;
	uint64_t hidden, vocab, ffn, expert_ffn, shared_ffn;
	uint64_t q_rows;     /* of attn_q, where it holds a gate as well; 0: n_head * head_dim */
	uint32_t full_every; /* every n-th layer has attention, the others an SSM; 0: all have */
	uint64_t ssm;	     /* its inner width */
	bool mla;
};

static const struct shape shapes[] = {
	{"meta-llama-3.1-70b-instruct", "llama", 80, 80, 64, 8, 128, 0, 8192, 128256, 28672, 0, 0, 0, 0, 0,
		false},
	{"qwen3-0.6b", "qwen3", 28, 28, 16, 8, 128, 0, 1024, 151936, 3072, 0, 0, 0, 0, 0, false},
	{"qwen3-14b", "qwen3", 40, 40, 40, 8, 128, 0, 5120, 151936, 17408, 0, 0, 0, 0, 0, false},
	{"gpt-oss-120b", "gpt-oss", 36, 0, 64, 8, 64, 128, 2880, 201088, 0, 2880, 0, 0, 0, 0, false},
	{"glm-4.6v", "glm4moe", 46, 1, 96, 8, 128, 128, 4096, 151552, 10944, 1408, 1408, 0, 0, 0, false},
	{"deepseek-v3.1", "deepseek2", 61, 3, 128, 1, 128, 256, 7168, 129280, 18432, 2048, 2048, 0, 0, 0,
		true},
	{"qwen3-coder-next", "qwen3next", 48, 0, 16, 2, 256, 512, 2048, 151936, 0, 512, 512, 8192, 4, 4096,
		false},
	{"qwen3.6-27b", "qwen35", 64, 64, 24, 4, 256, 0, 5120, 248320, 17408, 0, 0, 12288, 4, 6144, false},
};

static void add_attention(struct build *b, const struct shape *s)
{
	uint64_t heads = (uint64_t)s->n_head * s->head_dim, kv = (uint64_t)s->n_kv_head * s->head_dim;

	if (s->mla) {
		build_add(b, MODEL_ATTN, "attn_q_a.weight", s->hidden, 1536, 1);
		build_add(b, MODEL_ATTN, "attn_q_a_norm.weight", 1536, 1, 1);
		build_add(b, MODEL_ATTN, "attn_q_b.weight", 1536, 24576, 1);
		build_add(b, MODEL_ATTN, "attn_kv_a_mqa.weight", s->hidden, 576, 1);
		build_add(b, MODEL_ATTN, "attn_k_b.weight", 128, 512, s->n_head);
		build_add(b, MODEL_ATTN, "attn_v_b.weight", 512, 128, s->n_head);
	} else {
		build_add(b, MODEL_ATTN, "attn_q.weight", s->hidden, s->q_rows ? s->q_rows : heads, 1);
		build_add(b, MODEL_ATTN, "attn_k.weight", s->hidden, kv, 1);
		build_add(b, MODEL_ATTN, "attn_v.weight", s->hidden, kv, 1);
		build_add(b, MODEL_ATTN, "attn_v.bias", kv, 1, 1);
	}
	build_add(b, MODEL_ATTN, "attn_output.weight", heads, s->hidden, 1);
}

static void add_ssm(struct build *b, const struct shape *s)
{
	build_add(b, MODEL_ATTN, "attn_qkv.weight", s->hidden, 8192, 1);
	build_add(b, MODEL_ATTN, "attn_gate.weight", s->hidden, s->ssm, 1);
	build_add(b, MODEL_ATTN, "ssm_conv1d.weight", 4, 8192, 1);
	if (s->n_expert) {
		build_add(b, MODEL_ATTN, "ssm_ba.weight", s->hidden, 64, 1);
	} else {
		build_add(b, MODEL_ATTN, "ssm_alpha.weight", s->hidden, 48, 1);
		build_add(b, MODEL_ATTN, "ssm_beta.weight", s->hidden, 48, 1);
	}
	build_add(b, MODEL_ATTN, "ssm_out.weight", s->ssm, s->hidden, 1);
}

static void add_ffn(struct build *b, enum model_group g, const char *suffix, uint64_t in, uint64_t inner,
	uint64_t experts)
{
	build_add(b, g, arena_printf(&arena, "ffn_gate%s.weight", suffix), in, inner, experts);
	build_add(b, g, arena_printf(&arena, "ffn_up%s.weight", suffix), in, inner, experts);
	build_add(b, g, arena_printf(&arena, "ffn_down%s.weight", suffix), inner, in, experts);
}

static void build_shape(struct build *b, const struct shape *s)
{
	build_init(b, &arena, s->n_layer);
	b->m->architecture = s->architecture;
	b->m->vocab = (uint32_t)s->vocab;
	build_layer(b, MODEL_NO_LAYER);
	build_add(b, MODEL_EMBED, "token_embd.weight", s->hidden, s->vocab, 1);
	for (uint32_t i = 0; i < s->n_layer; i++) {
		struct model_layer *l = build_layer(b, (int)i);

		build_add(b, MODEL_ATTN, "attn_norm.weight", s->hidden, 1, 1);
		if (s->full_every && (i + 1) % s->full_every) {
			add_ssm(b, s);
		} else {
			l->n_head = s->n_head;
			l->n_kv_head = s->n_kv_head;
			add_attention(b, s);
		}
		if (i < s->n_dense) {
			add_ffn(b, MODEL_FFN, "", s->hidden, s->ffn, 1);
			continue;
		}
		l->n_expert = s->n_expert;
		l->n_expert_used = 1;
		build_add(b, MODEL_ROUTER, "ffn_gate_inp.weight", s->hidden, s->n_expert, 1);
		if (s->shared_ffn) {
			build_add(b, MODEL_SHARED, "ffn_gate_inp_shexp.weight", s->hidden, 1, 1);
			add_ffn(b, MODEL_SHARED, "_shexp", s->hidden, s->shared_ffn, 1);
		}
		add_ffn(b, MODEL_EXPERTS, "_exps", s->hidden, s->expert_ffn, s->n_expert);
	}
	build_layer(b, MODEL_NO_LAYER);
	build_add(b, MODEL_OUTPUT, "output_norm.weight", s->hidden, 1, 1);
	build_add(b, MODEL_OUTPUT, "output.weight", s->hidden, s->vocab, 1);
}

static void lower(char *s)
{
	for (; *s; s++)
		*s = (char)tolower((unsigned char)*s);
}

/* What the section of a file type leaves out has the type in its heading. */
static int check_defaults(
	const struct build *b, const bool *listed, const char *type, const char *file, const char *quant)
{
	int wrong = 0;

	for (size_t i = 0; i < b->n; i++) {
		const struct model_tensor *t = &b->at[i];

		if (listed[i] || !mix_quantizable(t) || !strcmp(t->type->name, type))
			continue;
		if (!wrong++)
			fprintf(stderr, "%s %s: %s is %s, not %s\n", file, quant, t->name, t->type->name,
				type);
	}
	return wrong;
}

/* Compares a snapshot; returns the number of its file types, and in *wrong of tensors that differ. */
static int check_snapshot(const struct shape *s, int *wrong)
{
	FILE *f = fopen(data_path(arena_printf(&arena, "quant_snapshots/%s.schema", s->file)), "r");
	char line[256], quant[32] = "", fallback[32] = "", name[128], type[32];
	bool *listed = NULL;
	struct build b;
	struct err err = {0};
	int n = 0;

	ck_assert_ptr_nonnull(f);
	build_shape(&b, s);
	listed = arena_array(&arena, bool, b.n);
	while (fgets(line, sizeof(line), f)) {
		size_t i = 0;

		lower(line);
		if (sscanf(line, "[%31[^]]] %31s", name, type) == 2) {
			if (n++)
				*wrong += check_defaults(&b, listed, fallback, s->file, quant);
			strcpy(quant, name);
			strcpy(fallback, type);
			memset(listed, 0, b.n * sizeof(*listed));
			assert_ok(build_types(&b, quant, &err), err);
			ck_assert_str_eq(b.m->quant, quant);
		} else if (line[0] != '#' && sscanf(line, "%127s %31s", name, type) == 2) {
			while (i < b.n && strcmp(b.at[i].name, name))
				i++;
			ck_assert_msg(i < b.n, "%s has tensor '%s'", s->file, name);
			listed[i] = true;
			if (strcmp(b.at[i].type->name, type)) {
				if (!*wrong)
					fprintf(stderr, "%s %s: %s is %s, not %s\n", s->file, quant, name,
						b.at[i].type->name, type);
				++*wrong;
			}
		}
	}
	*wrong += check_defaults(&b, listed, fallback, s->file, quant);
	fclose(f);
	return n;
}

START_TEST(types_are_llama_cpps)
{
	int n = 0, right = 0;

	arena_init(&arena, NULL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		int wrong = 0;

		n += check_snapshot(&shapes[i], &wrong);
		right += !wrong;
	}
	ck_assert_int_eq(n, 8 * 33);
	ck_assert_int_eq(right, 8);
	arena_release(&arena);
}
END_TEST

/* ---- Published sizes ---- */

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static bool has_card(const char *name)
{
	struct err err = {0};
	struct model *m;

	return !model_load(name, NULL, &arena, &m, &err);
}

/* Sizes of tensors, or of files: those have 5 to 13 MB of header, mostly words. */
START_TEST(sizes_are_as_published)
{
	static const char *const columns[] = {"model", "quant", "size", "unit"};
	struct csv_field f[4];
	struct csv csv;
	struct err err = {0};
	double error[256], worst = 0;
	int rc, n = 0;

	arena_init(&arena, NULL, NULL);
	assert_ok(csv_open(&csv, data_path("quant_sizes.csv"), columns, 4, &arena, &err), err);
	while ((rc = csv_next(&csv, f, &err)) > 0) {
		const char *name = arena_strndup(&arena, f[0].text, f[0].len);
		const char *quant = arena_strndup(&arena, f[1].text, f[1].len);
		const char *unit = arena_strndup(&arena, f[3].text, f[3].len);
		double size = strtod(f[2].text, NULL), got;
		const struct model *m;

		if (!has_card(name)) {
			fprintf(stderr, "no card '%s': its %s is skipped\n", name, quant);
			continue;
		}
		m = load(name, quant);
		got = (double)m->weights_bytes;
		if (!strcmp(unit, "bpw"))
			got = got * 8 / (double)m->params_total;
		else
			got /= !strcmp(unit, "GB") ? 1e9 : !strcmp(unit, "GiB") ? 0x1p30 : 0x1p20;
		ck_assert_int_lt(n, (int)ARRAY_LEN(error));
		error[n] = fabs(got / size - 1);
		ck_assert_msg(error[n] <= 0.02, "%s %s has %.4f %s, published are %.4f", name, quant, got,
			unit, size);
		worst = fmax(worst, error[n++]);
	}
	ck_assert_int_eq(rc, 0);
	ck_assert_int_ge(n, 80);
	qsort(error, (size_t)n, sizeof(*error), by_size);
	fprintf(stderr, "%d published sizes: median error %.3f %%, worst %.2f %%\n", n, 100 * error[n / 2],
		100 * worst);
	ck_assert_double_le(error[n / 2], 0.003);
	arena_release(&arena);
}
END_TEST

/* total_size of safetensors indexes: jeevanchaps/Meta-Llama3.1-8B-Instruct-assessment (LLM.int8),
   root-hypercube/qwen3-mlx, Qwen3-14B-MLX-4bit */
START_TEST(checkpoints_to_the_byte)
{
	arena_init(&arena, NULL, NULL);
	ck_assert_uint_eq(load("llama-3.1-8b", "int8")->weights_bytes, UINT64_C(9086705888));
	ck_assert_uint_eq(load("qwen3-14b", "mlx-int4-g64")->weights_bytes, UINT64_C(8307783680));
	arena_release(&arena);
}
END_TEST

START_TEST(what_checkpoints_leave_alone)
{
	const struct model *m;

	arena_init(&arena, NULL, NULL);
	m = load("qwen3-30b-a3b", "awq");
	ck_assert_str_eq(m->quant, "awq-int4-g128");
	ck_assert_str_eq(type_of(m, "token_embd.weight"), "f16");
	ck_assert_str_eq(type_of(m, "output.weight"), "f16");
	ck_assert_str_eq(type_of(m, "blk.1.attn_norm.weight"), "f16");
	ck_assert_str_eq(type_of(m, "blk.1.ffn_gate_inp.weight"), "f16");
	ck_assert_str_eq(type_of(m, "blk.1.attn_q.weight"), "awq-int4-g128");
	ck_assert_str_eq(type_of(m, "blk.1.ffn_down_exps.weight"), "awq-int4-g128");
	m = load("qwen3-30b-a3b", "int4");
	ck_assert_str_eq(type_of(m, "blk.1.attn_q.weight"), "bf16");
	ck_assert_str_eq(type_of(m, "blk.1.ffn_down_exps.weight"), "int4");
	m = load("qwen3-8b", "int4");
	ck_assert_str_eq(type_of(m, "blk.1.ffn_down.weight"), "int4");
	m = load("llama-3.1-8b", "EXL3-4.05bpw");
	ck_assert_str_eq(m->quant, "exl3-4.05bpw");
	ck_assert_str_eq(type_of(m, "blk.1.attn_q.weight"), "exl3-4.05bpw");
	ck_assert_str_eq(type_of(m, "output.weight"), "exl3-6bpw");
	ck_assert_str_eq(type_of(m, "token_embd.weight"), "f16");
	m = load("llama-3.1-8b", "fp8-block128");
	ck_assert_str_eq(type_of(m, "blk.1.attn_q.weight"), "f8_e4m3-block128");
	ck_assert_str_eq(type_of(m, "output.weight"), "bf16");
	m = load("opt-6.7b", "flexgen-int4-g64");
	ck_assert_str_eq(type_of(m, "token_embd.weight"), "flexgen-int4-g64");
	ck_assert_str_eq(type_of(m, "position_embd.weight"), "flexgen-int4-g64");
	ck_assert_str_eq(type_of(m, "blk.1.ffn_up.bias"), "f16");
	arena_release(&arena);
}
END_TEST

/* Rules that no snapshot shows: 8 experts, an importance matrix, tied and 70B of Qwen2, parts, ik_llama.cpp.
 */
START_TEST(rules_without_snapshot)
{
	const struct model *m;

	arena_init(&arena, NULL, NULL);
	m = load("mixtral-8x7b", "q4_k_m");
	ck_assert_str_eq(type_of(m, "blk.9.attn_k.weight"), "q8_0");
	ck_assert_str_eq(type_of(m, "blk.9.attn_v.weight"), "q8_0");
	ck_assert_str_eq(type_of(m, "blk.9.attn_output.weight"), "q5_k");
	ck_assert_str_eq(type_of(load("mixtral-8x7b", "q3_k_l"), "blk.9.attn_output.weight"), "q3_k");
	m = load("mixtral-8x7b", "iq2_xxs");
	ck_assert_str_eq(type_of(m, "blk.9.attn_k.weight"), "q4_k");
	m = load("llama-3.1-8b", "iq3_xxs");
	ck_assert_str_eq(type_of(m, "blk.0.ffn_down.weight"), "q4_k");
	ck_assert_str_eq(type_of(m, "blk.9.ffn_down.weight"), "q3_k");
	m = load("llama-3.1-8b", "IQ3_XXS+imatrix");
	ck_assert_str_eq(m->quant, "iq3_xxs+imatrix");
	ck_assert_str_eq(type_of(m, "blk.0.ffn_down.weight"), "iq3_xxs");
	m = load("llama-3.1-8b", "q4_0+imatrix");
	ck_assert_str_eq(type_of(m, "blk.3.ffn_down.weight"), "q4_1");
	ck_assert_str_eq(type_of(m, "blk.4.ffn_down.weight"), "q4_0");
	m = load("llama-3.2-1b", "q4_k_m");
	ck_assert_str_eq(type_of(m, "token_embd.weight"), "q6_k");
	ck_assert_str_eq(type_of(m, "output.weight"), "q6_k");
	ck_assert_str_eq(type_of(load("qwen2-72b", "q3_k_s"), "blk.40.attn_v.weight"), "q5_k");

	m = load("qwen3-30b-a3b", "iq2_xxs+q8_0");
	ck_assert_str_eq(m->quant, "iq2_xxs+q8_0");
	ck_assert_str_eq(type_of(m, "blk.0.ffn_up_exps.weight"), "iq2_xxs");
	ck_assert_str_eq(type_of(m, "blk.0.attn_q.weight"), "q8_0");
	ck_assert_str_eq(type_of(m, "token_embd.weight"), "q8_0");

	m = load("qwen3-30b-a3b", "iq4_k_r4");
	ck_assert_str_eq(type_of(m, "blk.0.attn_v.weight"), "q8_0");
	ck_assert_str_eq(type_of(m, "blk.0.attn_output.weight"), "q5_k");
	ck_assert_str_eq(type_of(m, "blk.0.ffn_up_exps.weight"), "iq4_k_r4");
	ck_assert_str_eq(type_of(m, "token_embd.weight"), "iq4_k");
	ck_assert_int_eq(quant_find("iq4_k_r4")->family, QUANT_IK);
	arena_release(&arena);
}
END_TEST

/* Files that were published under the name of a type, by their sizes in the validation corpus. */
START_TEST(recipes_for_ik_llama)
{
	static const struct {
		const char *model, *quant;
		double gib;
	} files[] = {{"deepseek-v3", "custom-iq2_k_r4", 226.0}, {"deepseek-v3", "custom-iq4_k_r4", 386.18},
		{"deepseek-r1", "custom-iq4_ks_r4", 367.77}, {"deepseek-r1", "dq4_k_r4", 413.14},
		{"kimi-k2", "custom-iq2_kl", 345.69}, {"qwen3-235b-a22b", "custom-iq6_k", 198.26},
		{"qwen3-30b-a3b", "custom-iq4_k_r4", 17.57}};
	const struct model *m;

	arena_init(&arena, NULL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		double gib = (double)load(files[i].model, files[i].quant)->weights_bytes / (1 << 30);
		ck_assert_msg(fabs(gib / files[i].gib - 1) < 0.02, "%s %s: %.2f GiB, not %.2f", files[i].model,
			files[i].quant, gib, files[i].gib);
	}
	m = load("qwen3-30b-a3b", "custom-iq4_k_r4");
	ck_assert_str_eq(type_of(m, "blk.7.ffn_up_exps.weight"), "iq4_k_r4");
	ck_assert_str_eq(type_of(m, "blk.7.ffn_down_exps.weight"), "iq5_k_r4");
	ck_assert_str_eq(type_of(m, "blk.7.attn_q.weight"), "q8_0");
	ck_assert_str_eq(type_of(load("qwen3-8b", "custom-iq4_k_r4"), "blk.7.ffn_up.weight"), "iq4_k_r4");
	arena_release(&arena);
}
END_TEST

/* Column `quant` of the validation corpus: all of them, for a model that has experts. */
START_TEST(names_that_people_use)
{
	static const char *const names[] = {"awq-int4", "bf16", "bnb-int8", "exl3-4.05bpw", "f16", "f32",
		"flexgen-int4-g64", "fp4", "fp4-fp8", "fp8", "int4", "int8", "int8-cpu-int4-gpu", "iq1_s_r4",
		"iq2_k_r4", "iq2_kl", "iq2_m", "iq2_xxs+q8_0", "iq3_s", "iq3_xxs", "iq4_k_r4", "iq4_ks",
		"iq4_ks_r4", "iq4_nl", "iq4_xs", "iq6_k", "mxfp4", "mxfp4+f16", "nvfp4", "q2_k", "q3_k_l",
		"q3_k_m", "q4", "q4_0", "q4_0_r4", "q4_k_m", "q5_k_xl", "q6_k", "q6_k_l", "q8", "q8_0",
		"ud-4.5bit", "ud-iq1_m", "ud-iq1_s", "ud-iq2", "ud-iq2_m", "ud-iq2_xxs", "ud-iq3_s",
		"ud-iq3_xxs", "ud-iq4_nl", "ud-iq4_xs", "ud-q2_k_xl", "ud-q3_k_m", "ud-q3_k_s", "ud-q3_k_xl",
		"ud-q4_k_m", "ud-q4_k_s", "ud-q4_k_xl", "ud-q5_k_m", "ud-q5_k_s", "ud-q5_k_xl", "ud-q6_k",
		"ud-q6_k_s", "ud-q6_k_xl", "ud-q8_k_xl", "ud-tq1_0", "w4a16-fp8", "zero-int4-g64",
		"gptq-int4-g128", "Q4_K - Medium", "IQ4_XS - 4.25 bpw", "MXFP4 MoE", "mostly Q4_0"};

	arena_init(&arena, NULL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const struct model *m = load("qwen3-30b-a3b", names[i]);

		ck_assert_ptr_nonnull(m->quant);
		ck_assert_uint_gt(m->weights_bytes, 0);
		/* what it is called is a name that means the same */
		ck_assert_uint_eq(load("qwen3-30b-a3b", m->quant)->weights_bytes, m->weights_bytes);
	}
	ck_assert_str_eq(load("llama-2-7b", "Q4_K - Small")->quant, "q4_k_s");
	ck_assert_str_eq(load("llama-2-7b", "IQ4_XS - 4.25 bpw")->quant, "iq4_xs");
	arena_release(&arena);
}
END_TEST

/* Dynamic files by the sizes that llama-bench printed of them in reports of 2026. */
START_TEST(sizes_of_dynamic_files)
{
	static const struct {
		const char *model, *quant;
		double gib;
	} files[] = {{"qwen3-coder-next", "ud-iq3_s", 27.65}, {"gemma-4-26b-a4b", "ud-iq4_nl", 12.66},
		{"minimax-m2.7", "ud-q5_k_m", 157.23}, {"qwen3.5-35b-a3b", "ud-q6_k_s", 24.45}};

	arena_init(&arena, NULL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		double gib = (double)load(files[i].model, files[i].quant)->weights_bytes / (1 << 30);
		ck_assert_msg(fabs(gib / files[i].gib - 1) < 0.04, "%s %s: %.2f GiB, not %.2f", files[i].model,
			files[i].quant, gib, files[i].gib);
	}
	arena_release(&arena);
}
END_TEST

static void assert_refused(const char *model, const char *quant, const char *msg)
{
	struct err err = {0};
	struct model *m;

	ck_assert_int_eq(model_load(model, quant, &arena, &m, &err), -1);
	assert_err(err, ERR_INPUT, msg);
}

START_TEST(what_cannot_be_told)
{
	arena_init(&arena, NULL, NULL);
	assert_refused("llama-3-8b", "q4_k_n", "unknown quant 'q4_k_n'; did you mean 'q4_k_s'?");
	assert_refused("llama-3-8b", "gptq-int9-g128",
		"unknown quant 'gptq-int9-g128'; did you mean 'gptq-int4-g128'?");
	assert_refused("llama-3-8b", "exl3-9bpw", "unknown quant 'exl3-9bpw'; did you mean 'exl3-4bpw'?");
	assert_refused("llama-3-8b", "", "unknown quant ''");
	assert_refused("llama-3-8b", "+", "quant '+', its experts: unknown quant ''");
	assert_refused("llama-3-8b", "+imatrix", "quant '+imatrix', its experts: unknown quant ''");
	assert_refused(
		"llama-3-8b", "fp8+imatrix", "quant 'fp8' is no mix that an importance matrix changes");
	assert_refused("llama-3-8b", "q8_k", "type 'q8_k' is not one that weights are stored in");
	assert_refused("llama-3-8b", "mxfp4+f16",
		"quant 'mxfp4+f16' names a type for routed experts, of which the model has none; 'f16' is "
		"the other part");
	assert_refused("qwen3-30b-a3b", "mxfp4+f17",
		"quant 'mxfp4+f17', the rest: unknown quant 'f17'; did you mean 'f16'?");
	assert_refused("qwen3-30b-a3b", "iq3_k-mix",
		"quant 'iq3_k-mix' is a recipe of its author, tensor by tensor; iq3_k is ik_llama.cpp's mix "
		"of "
		"that name");
	arena_release(&arena);
}
END_TEST

/* build_finish would stop at a row that is no whole number of blocks: odd widths, experts, tied outputs. */
START_TEST(all_mixes_fit)
{
	static const char *const models[] = {"opt-1.3b", "opt-30b", "llama-2-13b", "mixtral-8x7b",
		"qwen2.5-14b", "qwen1.5-moe-a2.7b", "qwen3-0.6b", "qwen3-30b-a3b"};
	static const char *(*const lists[])(size_t) = {mix_ggml_at, mix_ik_at, mix_checkpoint_at, mix_ud_at};

	arena_init(&arena, NULL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(models); i++) {
		for (size_t l = 0; l < ARRAY_LEN(lists); l++) {
			for (size_t q = 0; lists[l](q); q++) {
				struct arena_mark mark = arena_mark(&arena);

				ck_assert_uint_gt(load(models[i], lists[l](q))->weights_bytes, 0);
				arena_rewind(&arena, mark);
			}
		}
	}
	arena_release(&arena);
}
END_TEST

TEST_MAIN("mix", types_are_llama_cpps, sizes_are_as_published, checkpoints_to_the_byte,
	what_checkpoints_leave_alone, rules_without_snapshot, names_that_people_use, sizes_of_dynamic_files,
	recipes_for_ik_llama, what_cannot_be_told, all_mixes_fit)
