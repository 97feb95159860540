#include "models/quant.h"

#include "base/csv.h"
#include "base/datadir.h"
#include "tests/test.h"

START_TEST(sizes_are_ggmls)
{
	static const char *const columns[] = {"type", "type_id", "block_elements", "bytes_per_block"};
	struct csv_field f[4];
	struct arena a;
	struct csv csv;
	struct err err = {0};
	const char *dir;
	int rc, n = 0;

	arena_init(&a, NULL, NULL);
	assert_ok(datadir_find(&a, &dir, &err), err);
	assert_ok(csv_open(&csv, arena_printf(&a, "%s/tests/data/ggml_types.csv", dir), columns, 4, &a, &err),
		err);
	while ((rc = csv_next(&csv, f, &err)) > 0) {
		const char *name = arena_strndup(&a, f[0].text, f[0].len);
		const struct quant_type *t = quant_find(name);

		ck_assert_msg(t != NULL, "no type '%s'", name);
		ck_assert_int_eq(t->ggml_id, atoi(f[1].text));
		ck_assert_uint_eq(t->block_elements, strtoul(f[2].text, NULL, 10));
		ck_assert_uint_eq(t->block_bytes, strtoul(f[3].text, NULL, 10));
		n++;
	}
	ck_assert_int_eq(rc, 0);
	ck_assert_int_eq(n, 35);
	arena_release(&a);
}
END_TEST

START_TEST(names_and_ids_are_unique)
{
	for (size_t i = 0; quant_at(i); i++) {
		ck_assert_ptr_eq(quant_find(quant_at(i)->name), quant_at(i));
		for (size_t j = 0; j < i; j++)
			ck_assert(quant_at(i)->ggml_id != quant_at(j)->ggml_id || quant_at(i)->ggml_id < 0);
	}
	ck_assert_ptr_null(quant_at(10000));
}
END_TEST

START_TEST(case_and_other_names)
{
	ck_assert_ptr_eq(quant_find("Q4_K"), quant_find("q4_k"));
	ck_assert_ptr_eq(quant_find("bfloat16"), quant_find("bf16"));
	ck_assert_ptr_eq(quant_find("FP16"), quant_find("f16"));
	ck_assert_ptr_eq(quant_find("float8_e4m3fn"), quant_find("f8_e4m3"));
	ck_assert_int_eq(quant_find("f8_e4m3")->ggml_id, -1);
	ck_assert_ptr_null(quant_find("q4_k_m"));
	ck_assert_ptr_null(quant_find(""));
	ck_assert_ptr_null(quant_find(NULL));
}
END_TEST

START_TEST(kv_types)
{
	static const char *const kv[] = {"f32", "f16", "bf16", "f8_e4m3", "q8_0", "q5_0", "q5_1", "q4_0",
		"q4_1", "iq4_nl", "int4-g64", "q6_0", "q8_kv"};
	size_t n = 0;

	for (size_t i = 0; quant_at(i); i++)
		n += quant_at(i)->kv;
	ck_assert_uint_eq(n, ARRAY_LEN(kv));
	for (size_t i = 0; i < ARRAY_LEN(kv); i++)
		ck_assert(quant_find(kv[i])->kv);
}
END_TEST

START_TEST(unknown_type_names_the_nearest)
{
	const struct quant_type *t;
	struct err err = {0};

	ck_assert_int_eq(quant_get("q4_kk", &t, &err), -1);
	assert_err(err, ERR_INPUT, "unknown type 'q4_kk'; did you mean 'q4_k'?");
	ck_assert_ptr_null(t);
	ck_assert_int_eq(quant_get("iq4_ks_r5", &t, &err), -1);
	assert_err(err, ERR_INPUT, "unknown type 'iq4_ks_r5'; did you mean 'iq4_ks_r4'?");
	ck_assert_int_eq(quant_get("zzzzzzzz", &t, &err), -1);
	assert_err(err, ERR_INPUT, "unknown type 'zzzzzzzz'");
	assert_ok(quant_get("q8_0", &t, &err), err);
}
END_TEST

START_TEST(bytes_of_rows)
{
	ck_assert_uint_eq(quant_bytes(quant_find("q4_k"), 4096, 11008), UINT64_C(4096) * 11008 / 256 * 144);
	ck_assert_uint_eq(quant_bytes(quant_find("q8_0"), 2880, 3), UINT64_C(2880) / 32 * 34 * 3);
	ck_assert_uint_eq(quant_bytes(quant_find("f32"), 7, 1), 28);
	ck_assert_uint_eq(quant_bytes(quant_find("f16"), 0, 5), 0);
	ck_assert_uint_eq(quant_bytes(quant_find("f64"), UINT64_MAX / 2, 9), UINT64_MAX);
	assert_close(quant_bits_per_weight(quant_find("q6_k")), 6.5625, 0);
	assert_close(quant_bits_per_weight(quant_find("mxfp4")), 4.25, 0);
}
END_TEST

START_TEST(families)
{
	ck_assert_int_eq(quant_find("q4_k")->family, QUANT_GGML);
	ck_assert_int_eq(quant_find("iq4_ks")->family, QUANT_IK);
	ck_assert_int_eq(quant_find("nf4")->family, QUANT_CHECKPOINT);
	ck_assert_str_eq(quant_family_name(QUANT_IK), "ik_llama.cpp");
	ck_assert_ptr_eq(quant_ik_plain(quant_find("iq4_k_r4")), quant_find("iq4_k"));
	ck_assert_ptr_eq(quant_ik_plain(quant_find("q4_k_r4")), quant_find("q4_k"));
	ck_assert_ptr_eq(quant_ik_plain(quant_find("iq4_k")), quant_find("iq4_k"));
	for (size_t i = 0; quant_ik_at(i); i++) {
		ck_assert_int_eq(quant_ik_at(i)->family, QUANT_IK);
		ck_assert_ptr_nonnull(quant_ik_plain(quant_ik_at(i)));
	}
}
END_TEST

/* What kernels ask of a type, as its name says it. */
START_TEST(what_kernels_depend_on)
{
	for (size_t i = 0; quant_at(i); i++) {
		const struct quant_type *t = quant_at(i);
		bool iq = !strncmp(t->name, "iq", 2), plain = quant_ik_plain(t) == t, k = strstr(t->name, "_k_r4") != NULL;
		bool all = !strcmp(t->name, "iq1_s_r4") || !strcmp(t->name, "iq1_m_r4") || strstr(t->name, "_ks_r4");
		bool bits = strstr(t->name, "_k") || strstr(t->name, "_bn") || !strncmp(t->name, "iq4", 3);

		ck_assert_msg(t->table == (strstr(t->name, "_kt") || (iq && !bits)), "%s", t->name);
		ck_assert_msg(t->interleaved == (plain ? QUANT_PLAIN : (iq && k) || all ? QUANT_GPU_TOO : QUANT_CPU_ONLY), "%s",
			t->name);
		bool own = iq && plain && strstr(t->name, "_k") && !strstr(t->name, "_kt");
		ck_assert_msg(t->many_rows == (own ? QUANT_ONCE_EXPANDED : (iq && k) || !strcmp(t->name, "iq1_m") ?
			QUANT_EXPANDED : QUANT_AS_IT_IS), "%s", t->name);
		ck_assert_msg(t->unit == (!strcmp(t->name, "f32") ? QUANT_FP32 : !strcmp(t->name, "bf16") ? QUANT_BF16 :
			!strncmp(t->name, "f8", 2) ? QUANT_FP8 : QUANT_FP16), "%s", t->name);
	}
}
END_TEST

START_TEST(types_of_the_event_path)
{
	ck_assert_ptr_eq(quant_f32(), quant_find("f32"));
	ck_assert_ptr_eq(quant_f16(), quant_find("f16"));
}
END_TEST

/* a row of 4096, as ik_llama.cpp's ggml_row_size has it */
START_TEST(row_bytes_count)
{
	ck_assert_uint_eq(quant_bytes(quant_find("iq4_ks"), 4096, 2), (4096 / 256 * 136 + 4) * 2);
	ck_assert_uint_eq(quant_bytes(quant_find("iq1_s_r4"), 4096, 4), (4096 / 32 * 6 + 2) * 4);
	ck_assert_uint_eq(quant_bytes(quant_find("q8_kv"), 4096, 1), 4096 + 8);
}
END_TEST

START_TEST(checkpoint_formats)
{
	struct arena a;
	const struct quant_type *t;

	arena_init(&a, NULL, NULL);
	t = quant_make("gptq-int4-g128", &a);
	assert_close(quant_bits_per_weight(t), 4.15625, 0);
	ck_assert_uint_eq(
		quant_bytes(t, 4096, 11008), UINT64_C(4096) * 11008 / 2 + 32 * 11008 * 5 / 2 + 4096 * 4);
	ck_assert_uint_eq(quant_stack_bytes(t, 4096, 11008, 3), 3 * quant_bytes(t, 4096, 11008));
	/* a group that is begun counts */
	ck_assert_uint_eq(quant_bytes(quant_make("awq", &a), 160, 8), 160 * 8 / 2 + 2 * 8 * 5 / 2);
	assert_close(quant_bits_per_weight(quant_make("gptq-int3", &a)), 3.1484375, 0);
	assert_close(quant_bits_per_weight(quant_make("GPTQ-INT8-G32", &a)), 8.75, 0);
	assert_close(quant_bits_per_weight(quant_find("nf4")), 4.126953125, 0);
	assert_close(quant_bits_per_weight(quant_find("zero-int4-g64")), 4.5, 0);
	assert_close(quant_bits_per_weight(quant_find("fp8-block128")), 8 + 32.0 / 16384, 0);
	ck_assert_uint_eq(
		quant_bytes(quant_find("fp8-block128"), 7168, 576), UINT64_C(7168) * 576 + 56 * 5 * 4);
	ck_assert_uint_eq(quant_bytes(quant_find("int8"), 4096, 1024), UINT64_C(4096) * 1024 + 1024 * 4 + 1);
	t = quant_make("exl3-3.5bpw", &a);
	ck_assert_str_eq(t->name, "exl3-3.5bpw");
	ck_assert_uint_eq(quant_bytes(t, 4096, 1024), UINT64_C(4096) * 1024 / 16 * 7 + (4096 + 1024) * 2);
	ck_assert_ptr_null(quant_make("exl3-0bpw", &a));
	ck_assert_ptr_null(quant_make("exl3-4.1234bpw", &a));
	ck_assert_ptr_null(quant_make("gptq-int4-g", &a));
	ck_assert_ptr_null(quant_make("gptq-int1", &a));
	ck_assert_ptr_null(quant_make("gptqq", &a));
	ck_assert_ptr_null(quant_make(NULL, &a));
	arena_release(&a);
}
END_TEST

TEST_MAIN("quant", families, what_kernels_depend_on, types_of_the_event_path, row_bytes_count, checkpoint_formats,
	sizes_are_ggmls, names_and_ids_are_unique,
	case_and_other_names, kv_types, unknown_type_names_the_nearest, bytes_of_rows)
