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
	static const char *const kv[] = {
		"f32", "f16", "bf16", "f8_e4m3", "q8_0", "q5_0", "q5_1", "q4_0", "q4_1", "iq4_nl"};
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

TEST_MAIN("quant", sizes_are_ggmls, names_and_ids_are_unique, case_and_other_names, kv_types,
	unknown_type_names_the_nearest, bytes_of_rows)
