#include "base/param.h"

#include "tests/test.h"

struct thing {
	const char *name;
	double bandwidth, share;
	uint64_t batch;
	bool fast;
	int mode;
	struct yaml_node *flags;
};

static const char *const modes[] = {"layer", "tensor", "none", NULL};

static const struct param table[] = {
	{"name", PARAM_KIND_TEXT, UNIT_PLAIN, offsetof(struct thing, name), NULL, true, 0, 0, NULL, "what to call it"},
	PARAM_REAL(struct thing, bandwidth, "bandwidth", UNIT_BYTES_RATE, "55.3GB/s", 1e3, 1e15, "of the link"),
	PARAM_REAL(struct thing, share, "share", UNIT_FRACTION, NULL, 0, 1, "of memory"),
	PARAM_COUNT(struct thing, batch, "batch", "1", 1, 1e6, "sequences that run together"),
	PARAM_FLAG(struct thing, fast, "fast", "no", "go faster"),
	PARAM_CHOICE(struct thing, mode, "mode", "tensor", modes, "how to split"),
	PARAM_NODE(struct thing, flags, "flags", "the engine's own flags"),
};

static struct arena a;

static int fill(const char *text, struct thing *t, struct err *err)
{
	struct yaml_node *root = NULL;

	assert_ok(yaml_read_text(text, strlen(text), "t.yaml", &a, &root, err), *err);
	return param_fill(table, ARRAY_LEN(table), root, "thing 'x'", t, &a, err);
}

static void assert_refused(const char *text, int line, int col, const char *msg)
{
	struct thing t;
	struct err err;

	ck_assert_int_eq(fill(text, &t, &err), -1);
	assert_err(err, ERR_INPUT, msg);
	ck_assert_str_eq(err.file, "t.yaml");
	ck_assert_int_eq(err.line, line);
	ck_assert_int_eq(err.col, col);
}

START_TEST(defaults)
{
	struct thing t;

	arena_init(&a, NULL, NULL);
	memset(&t, 0xa5, sizeof(t));
	param_defaults(table, ARRAY_LEN(table), &t, &a);
	ck_assert_ptr_null(t.name);
	assert_close(t.bandwidth, 55.3e9, 0);
	ck_assert(isnan(t.share));
	ck_assert_uint_eq(t.batch, 1);
	ck_assert(!t.fast);
	ck_assert_int_eq(t.mode, 1);
	ck_assert_ptr_null(t.flags);
	arena_release(&a);
}
END_TEST

START_TEST(filled)
{
	struct thing t;
	struct err err;

	arena_init(&a, NULL, NULL);
	assert_ok(fill("name: a b\nbandwidth: 32 GiB/s\nshare: 85.7%\nbatch: 1000000\nfast: Yes\n"
		       "mode: none\nflags: {ngl: 40}\n",
			  &t, &err),
		err);
	ck_assert_str_eq(t.name, "a b");
	assert_close(t.bandwidth, 32.0 * 1073741824, 0);
	assert_close(t.share, 0.857, 0);
	ck_assert_uint_eq(t.batch, 1000000);
	ck_assert(t.fast);
	ck_assert_int_eq(t.mode, 2);
	ck_assert_str_eq(yaml_flow_text(&a, t.flags, false), "{ngl: 40}");
	assert_ok(fill("name: \"\"\nflags: -ngl 40\n", &t, &err), err);
	ck_assert_str_eq(t.name, "");
	ck_assert_str_eq(t.flags->text, "-ngl 40");
	arena_release(&a);
}
END_TEST

START_TEST(bad_keys)
{
	arena_init(&a, NULL, NULL);
	assert_refused("name: x\nbandwidht: 3GB/s\n", 2, 1,
		"unknown key 'bandwidht' in thing 'x'; did you mean 'bandwidth'?");
	assert_refused("name: x\ntemperature: 3\n", 2, 1,
		"unknown key 'temperature' in thing 'x'; it may have name, bandwidth, share, batch, fast, mode, flags");
	assert_refused("\nbatch: 2\n", 2, 1, "thing 'x' has no 'name'");
	assert_refused("[a]", 1, 1, "thing 'x' must be a map of keys and values, not a list");
	assert_refused("a", 1, 1, "thing 'x' must be a map of keys and values, not a single value");
	arena_release(&a);
}
END_TEST

START_TEST(bad_values)
{
	arena_init(&a, NULL, NULL);
	assert_refused("batch: -3\n", 1, 8, "'batch' must be between 1 and 1000000, not -3");
	assert_refused("batch: 0\n", 1, 8, "'batch' must be between 1 and 1000000, not 0");
	assert_refused("batch: 1000001\n", 1, 8, "'batch' must be between 1 and 1000000, not 1000001");
	assert_refused("batch: {a: b}\n", 1, 8, "'batch' must be a number, not a map");
	assert_refused("bandwidth: [3GB/s]\n", 1, 12, "'bandwidth' must be a number, not a list");
	assert_refused("name: {}\n", 1, 7, "'name' must be a text, not a map");
	assert_refused("mode: []\n", 1, 7, "'mode' must be one word, not a list");
	assert_refused("fast: []\n", 1, 7, "'fast' must be yes or no, not a list");
	assert_refused("batch:\n", 1, 1, "'batch' has no value");
	assert_refused("name:\n", 1, 1, "'name' has no value");
	assert_refused("bandwidth: 55\n", 1, 12, "bandwidth: '55' has no unit; expected a bandwidth such as 55GB/s");
	assert_refused("bandwidth: 55B/s\n", 1, 12, "'bandwidth' must be between 1.00 kB/s and 1.00 PB/s, not 55B/s");
	assert_refused("share: 1.5\n", 1, 8, "'share' must be between 0 and 1, not 1.5");
	assert_refused("fast: maybe\n", 1, 7, "'fast' must be yes or no, not 'maybe'");
	assert_refused("mode: layr\n", 1, 7, "'mode' cannot be 'layr'; did you mean 'layer'?");
	assert_refused("mode: column\n", 1, 7, "'mode' cannot be 'column'; choose one of layer, tensor, none");
	arena_release(&a);
}
END_TEST

START_TEST(set_from_text)
{
	struct thing t;
	struct err err;
	struct err_pos pos = {"--set", 0, 0};

	arena_init(&a, NULL, NULL);
	param_defaults(table, ARRAY_LEN(table), &t, &a);
	const struct param *row = param_find(table, ARRAY_LEN(table), "batch");
	assert_ok(param_set(row, &t, "41", &pos, &a, &err), err);
	ck_assert_uint_eq(t.batch, 41);
	ck_assert_int_eq(param_set(row, &t, "4.1", &pos, &a, &err), -1);
	assert_err(err, ERR_INPUT,
		"batch: '4.1' is not a whole number; write all its digits and no unit, such as 4096");
	ck_assert_str_eq(err.file, "--set");
	ck_assert_uint_eq(t.batch, 41);
	row = param_find(table, ARRAY_LEN(table), "flags");
	assert_ok(param_set(row, &t, "{a: [1, 2]}", &pos, &a, &err), err);
	ck_assert_str_eq(yaml_flow_text(&a, t.flags, false), "{a: [1, 2]}");
	ck_assert_str_eq(t.flags->child->pos.file, "--set");
	ck_assert_ptr_null(t.flags->key);
	ck_assert_int_eq(param_set(row, &t, "{a", NULL, &a, &err), -1);
	ck_assert_ptr_null(param_find(table, ARRAY_LEN(table), "nothing"));
	const char *words[] = {"yes", "TRUE", "on", "1", "no", "False", "OFF", "0"};
	row = param_find(table, ARRAY_LEN(table), "fast");
	for (int i = 0; i < 8; i++) {
		assert_ok(param_set(row, &t, words[i], NULL, &a, &err), err);
		ck_assert_int_eq(t.fast, i < 4);
	}
	arena_release(&a);
}
END_TEST

START_TEST(counts_are_never_negative)
{
	struct thing t;
	struct err err;
	const struct param loose = PARAM_COUNT(struct thing, batch, "batch", "1", -INFINITY, INFINITY, "any");

	arena_init(&a, NULL, NULL);
	ck_assert_int_eq(param_set(&loose, &t, "-3", NULL, &a, &err), -1);
	arena_release(&a);
}
END_TEST

START_TEST(open_ranges)
{
	struct thing t;
	struct err err;
	const struct param least = PARAM_REAL(struct thing, share, "s", UNIT_PLAIN, NULL, 2.385, INFINITY, "h");
	const struct param most = PARAM_REAL(struct thing, share, "s", UNIT_TIME, NULL, -INFINITY, 2.385e-3, "h");

	arena_init(&a, NULL, NULL);
	ck_assert_int_eq(param_set(&least, &t, "2", NULL, &a, &err), -1);
	assert_err(err, ERR_INPUT, "'s' must be at least 2.385, not 2");
	ck_assert_int_eq(param_set(&most, &t, "1s", NULL, &a, &err), -1);
	assert_err(err, ERR_INPUT, "'s' must be at most 2.38 ms, not 1s");
	arena_release(&a);
}
END_TEST

START_TEST(many_keys_are_shortened)
{
	struct param many[200];
	struct yaml_node *root = NULL;
	struct err err;
	double x[200];

	arena_init(&a, NULL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(many); i++) {
		many[i] = (struct param){.key = arena_printf(&a, "keynumber%03zu", i), .kind = PARAM_KIND_REAL,
			.offset = i * sizeof(double), .max = 1};
	}
	assert_ok(yaml_read_text("temperature: 1", 14, "t", &a, &root, &err), err);
	ck_assert_int_eq(param_fill(many, 200, root, "it", x, &a, &err), -1);
	ck_assert_str_eq(err.msg + strlen(err.msg) - 5, ", ...");
	ck_assert_uint_lt(strlen(err.msg), 500);
	ck_assert_ptr_null(strstr(err.msg, "..., "));
	arena_release(&a);
}
END_TEST

START_TEST(printed)
{
	char buf[4096] = "";
	FILE *f = fmemopen(buf, sizeof(buf), "w");

	param_print(table, ARRAY_LEN(table), "workload", f);
	fclose(f);
	ck_assert_str_eq(buf, "  workload.name       what to call it\n"
			      "                      required, a text\n"
			      "  workload.bandwidth  of the link\n"
			      "                      default 55.3GB/s, a bandwidth (such as 55GB/s) from 1.00 kB/s to "
			      "1.00 PB/s\n"
			      "  workload.share      of memory\n"
			      "                      no default, a fraction (such as 0.85 or 85%) from 0 to 1\n"
			      "  workload.batch      sequences that run together\n"
			      "                      default 1, a whole number from 1 to 1000000\n"
			      "  workload.fast       go faster\n"
			      "                      default no, yes or no\n"
			      "  workload.mode       how to split\n"
			      "                      default tensor, one of layer, tensor, none\n"
			      "  workload.flags      the engine's own flags\n"
			      "                      no default, a value, list or map\n");
}
END_TEST

TEST_MAIN("param", defaults, filled, bad_keys, bad_values, set_from_text, counts_are_never_negative, open_ranges,
	many_keys_are_shortened, printed)
