#include "sim/engine/engine_table.h"

#include "tests/test.h"

static int uses(const struct engine_ops *e, const char *name)
{
	int n = 0;

	for (size_t i = 0; i < e->n_flags; i++)
		n += strcmp(e->flag[i].key, name) == 0;
	for (size_t i = 0; i < e->n_aliases; i++)
		n += strcmp(e->alias[i].name, name) == 0;
	for (size_t i = 0; i < e->n_ignored; i++)
		n += strcmp(e->ignored[i].name, name) == 0;
	return n;
}

/* What is ignored is not read, whatever else it is. */
START_TEST(a_name_is_known_once)
{
	const struct engine_ops *e;

	for (size_t k = 0; (e = engine_at(k)); k++) {
		for (size_t i = 0; i < e->n_flags; i++)
			ck_assert_msg(uses(e, e->flag[i].key) == 1, "%s: flag '%s'", e->name, e->flag[i].key);
		for (size_t i = 0; i < e->n_aliases; i++) {
			ck_assert_msg(uses(e, e->alias[i].name) == 1, "%s: other name '%s'", e->name, e->alias[i].name);
			ck_assert_msg(param_find(e->flag, e->n_flags, e->alias[i].key) != NULL, "%s: '%s' of no flag", e->name,
				e->alias[i].name);
		}
		for (size_t i = 0; i < e->n_ignored; i++)
			ck_assert_msg(uses(e, e->ignored[i].name) == 1, "%s: ignored '%s'", e->name, e->ignored[i].name);
	}
}
END_TEST

START_TEST(flags_are_left_out)
{
	struct yaml_node written = {.kind = YAML_SCALAR, .text = "--top_p 0.9 -md x.gguf --color on -t -1 -ngl 3"}, *map;
	struct engine_left_out left;
	struct arena a;
	struct err err = {0};

	arena_init(&a, NULL, NULL);
	assert_ok(engine_flags_map(&engine_llamacpp, &written, &a, &map, &left, &err), err);
	ck_assert_str_eq(left.ignored, "top-p, color");
	ck_assert_str_eq(left.not_modelled, "md");
	ck_assert_uint_eq(yaml_count(map), 1);
	ck_assert_str_eq(yaml_get(map, "ngl")->text, "3");
	ck_assert(engine_knows_flag(&engine_llamacpp, "n_gpu_layers", &a));
	ck_assert(!engine_knows_flag(&engine_llamacpp, "fmoe", &a));
	arena_release(&a);
}
END_TEST

START_TEST(counts_in_short)
{
	static const struct {
		const char *text, *want;
	} counts[] = {{"32k", "32000"}, {"25.6k", "25600"}, {"32K", "32768"}, {"1m", "1000000"}, {"2M", "2097152"}, {"1.5K", "1.5K"},
		{"7", "7"}, {"k", "k"}, {"3kk", "3kk"}};
	struct engine_left_out left;
	struct arena a;
	struct err err = {0};

	arena_init(&a, NULL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		struct yaml_node written = {.kind = YAML_SCALAR, .text = arena_printf(&a, "--max_model_len %s", counts[i].text)}, *map;

		assert_ok(engine_flags_map(&engine_vllm, &written, &a, &map, &left, &err), err);
		ck_assert_str_eq(yaml_get(map, "max-model-len")->text, counts[i].want);
	}
	arena_release(&a);
}
END_TEST

TEST_MAIN("engine_table", counts_in_short, a_name_is_known_once, flags_are_left_out)
