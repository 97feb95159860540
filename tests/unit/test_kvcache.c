#include "models/kvcache.h"

#include "base/csv.h"
#include "base/datadir.h"
#include "tests/test.h"

static struct arena arena;

static struct model *load(const char *name)
{
	struct err err = {0};
	struct model *m;

	assert_ok(model_load(name, "f16", &arena, &m, &err), err);
	return m;
}

START_TEST(published_sizes)
{
	static const char *const columns[] = {"model", "kv_type", "context", "sequences", "kv_bytes"};
	struct csv_field f[5];
	struct csv csv;
	struct err err = {0};
	const char *dir;
	int rc, n = 0;

	arena_init(&arena, NULL, NULL);
	assert_ok(datadir_find(&arena, &dir, &err), err);
	assert_ok(csv_open(&csv, arena_printf(&arena, "%s/tests/data/model_kv.csv", dir), columns, 5, &arena,
			  &err),
		err);
	while ((rc = csv_next(&csv, f, &err)) > 0) {
		const struct model *m = load(arena_strndup(&arena, f[0].text, f[0].len));
		const char *type = arena_strndup(&arena, f[1].text, f[1].len);
		uint64_t got = kvcache_bytes(
			m, strtoull(f[2].text, NULL, 10), strtoull(f[3].text, NULL, 10), KVCACHE_SAME(quant_find(type)));

		ck_assert_msg(got == strtoull(f[4].text, NULL, 10), "line %d: %llu", csv.line,
			(unsigned long long)got);
		n++;
	}
	ck_assert_int_eq(rc, 0);
	ck_assert_int_eq(n, 17);
	arena_release(&arena);
}
END_TEST

START_TEST(window_caps_what_is_kept)
{
	struct model *m;
	const struct quant_type *f16 = quant_find("f16");
	uint64_t token;

	arena_init(&arena, NULL, NULL);
	m = load("mistral-7b-v0.1");
	token = kvcache_token_bytes(&m->layers[0], KVCACHE_SAME(f16));
	ck_assert_uint_eq(token, 2 * 8 * 128 * 2);
	ck_assert_uint_eq(kvcache_layer_bytes(&m->layers[0], 4095, KVCACHE_SAME(f16)), 4095 * token);
	ck_assert_uint_eq(kvcache_layer_bytes(&m->layers[0], 4096, KVCACHE_SAME(f16)), 4096 * token);
	ck_assert_uint_eq(kvcache_layer_bytes(&m->layers[0], 4097, KVCACHE_SAME(f16)), 4096 * token);
	ck_assert_uint_eq(kvcache_bytes(m, 100000, 3, KVCACHE_SAME(f16)), 3 * 32 * 4096 * token);
	arena_release(&arena);
}
END_TEST

START_TEST(state_and_shared_vectors)
{
	/* DeepSeek-V3: one vector of 512 + 64 elements a token (kv_oracle: 70,272 B over 61 layers) */
	struct model_layer mla = {.kv_k_elements = 576};
	struct model_layer ssm = {.state_bytes = 12345};
	struct model_layer both = {.kv_k_elements = 64, .kv_v_elements = 32, .state_bytes = 7, .window = 10};

	ck_assert_uint_eq(61 * kvcache_token_bytes(&mla, KVCACHE_SAME(quant_find("bf16"))), 70272);
	ck_assert_uint_eq(kvcache_token_bytes(&mla, KVCACHE_SAME(quant_find("q8_0"))), 612);
	ck_assert_uint_eq(kvcache_layer_bytes(&ssm, 1000, KVCACHE_SAME(quant_find("f16"))), 12345);
	ck_assert_uint_eq(kvcache_layer_bytes(&both, 1000, KVCACHE_SAME(quant_find("f32"))), 10 * 96 * 4 + 7);
	ck_assert_uint_eq(kvcache_layer_bytes(&both, 0, KVCACHE_SAME(quant_find("f32"))), 7);
}
END_TEST

START_TEST(rows_are_whole_blocks)
{
	struct model_layer odd = {.kv_k_elements = 33, .kv_v_elements = 32};

	ck_assert_uint_eq(kvcache_token_bytes(&odd, KVCACHE_SAME(quant_find("q4_0"))), 3 * 18);
	ck_assert_uint_eq(kvcache_token_bytes(&odd, KVCACHE_SAME(quant_find("f8_e4m3"))), 65);
}
END_TEST

START_TEST(nonsense_saturates)
{
	struct model_layer l = {.kv_k_elements = 1024, .kv_v_elements = 1024};
	struct model m = {.n_layer = 1, .layers = &l};

	ck_assert_uint_eq(kvcache_bytes(&m, UINT64_MAX / 2, 2, KVCACHE_SAME(quant_find("f16"))), UINT64_MAX);
	ck_assert_uint_eq(kvcache_bytes(&m, 1, UINT64_MAX / 2, KVCACHE_SAME(quant_find("f16"))), UINT64_MAX);
}
END_TEST

TEST_MAIN("kvcache", published_sizes, window_caps_what_is_kept, state_and_shared_vectors,
	rows_are_whole_blocks, nonsense_saturates)
