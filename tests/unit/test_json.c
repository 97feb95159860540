#include "base/json.h"

#include "tests/test.h"

static json_t *read_ok(const char *text)
{
	struct err err;
	json_t *root = NULL;

	assert_ok(json_read_text(text, strlen(text), "t.json", &root, &err), err);
	return root;
}

static void check_refused(const char *text, size_t len, int line, const char *part)
{
	struct err err;
	json_t *root = NULL;

	ck_assert_int_eq(json_read_text(text, len, "t.json", &root, &err), -1);
	ck_assert_int_eq((int)err.code, ERR_INPUT);
	ck_assert_str_eq(err.file, "t.json");
	ck_assert_int_eq(err.line, line);
	if (!strstr(err.msg, part))
		ck_abort_msg("'%s' has no '%s'", err.msg, part);
	ck_assert_ptr_null(root);
}

#define assert_refused(text, line, part) check_refused((text), sizeof(text) - 1, (line), (part))

START_TEST(syntax)
{
	assert_refused("", 1, "'[' or '{' expected");
	assert_refused("{\"a\": 1", 1, "'}' expected");
	assert_refused("{\"a\":\n\n tru}", 3, "invalid token");
	assert_refused("{\"a\": 1}\nx", 2, "end of file expected");
	assert_refused("{\"a\": 1, \"a\": 2}", 1, "duplicate object key");
	assert_refused("[1]", 1, "must be an object");
	assert_refused("{\"a\": \"\xed\xa0\x80\"}", 1, "decode byte");
	assert_refused("{\"a\":\n1\0}", 2, "control character U+0000");
	assert_refused("{\"a\": 123456789012345678901234567890}", 1, "too big integer");
	assert_refused("{\"a\": 1e999}", 1, "real number overflow");
}
END_TEST

START_TEST(every_truncation)
{
	const char *text = "{\"a\": [1, 2.5e3, \"x\\u00b5\\n\"], \"b\": {\"c\": [true, null]}}";
	size_t n = strlen(text);

	for (size_t len = 0; len < n; len++) {
		/* Its own allocation, so that AddressSanitizer sees a byte too many. */
		char *part = malloc(len + !len);
		struct err err;
		json_t *root;
		memcpy(part, text, len);
		ck_assert_int_eq(json_read_text(part, len, "t.json", &root, &err), -1);
		free(part);
	}
	json_decref(read_ok(text));
}
END_TEST

START_TEST(depth_bomb)
{
	char *deep = malloc(100000);

	memset(deep, '[', 100000);
	check_refused(deep, 100000, 1, "maximum parsing depth");
	free(deep);
}
END_TEST

START_TEST(infinities_of_python)
{
	json_t *root = read_ok("{\"lim\": [0.0, Infinity], \"x\": NaN, \"y\": -Infinity, \"s\": \"NaN \\\" Infinity\"}");

	ck_assert(json_is_null(json_array_get(json_object_get(root, "lim"), 1)));
	ck_assert(json_is_null(json_object_get(root, "x")));
	ck_assert(json_is_null(json_object_get(root, "y")));
	ck_assert_str_eq(json_string_value(json_object_get(root, "s")), "NaN \" Infinity");
	json_decref(root);
	assert_refused("{\"a\": NaNa}", 1, "invalid token");
	assert_refused("{\"a\": \"NaN", 1, "premature end of input");
	assert_refused("{\"a\": NaN, \"\\", 1, "");
}
END_TEST

START_TEST(files)
{
	char path[32];
	struct err err;
	json_t *root;

	test_file(path, "{\"a\": 1}", 8);
	assert_ok(json_read_file(path, 8, &root, &err), err);
	json_decref(root);
	ck_assert_int_eq(json_read_file(path, 7, &root, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.msg, "is larger than 7 bytes"));
	unlink(path);
	ck_assert_int_eq(json_read_file(path, 7, &root, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.msg, "No such file or directory"));
	ck_assert_int_eq((int)err.code, ERR_INPUT);
	ck_assert_int_eq(json_read_file("/tmp", 7, &root, &err), -1);
	assert_err(err, ERR_INPUT, "'/tmp' is a folder");
	/* A size that is not known beforehand. */
	ck_assert_int_eq(json_read_file("/dev/zero", 1 << 20, &root, &err), -1);
	assert_err(err, ERR_INPUT, "'/dev/zero' is larger than 1 MiB");
	ck_assert_int_eq(json_read_file("/dev/null", 1 << 20, &root, &err), -1);
	ck_assert_str_eq(err.file, "/dev/null");
}
END_TEST

#define assert_count_refused(key, min, max, msg)                                                   \
	do {                                                                                       \
		ck_assert_int_eq(json_get_count(root, "t.json", key, min, max, &n, &err), -1);     \
		assert_err(err, ERR_INPUT, msg);                                                   \
		ck_assert_str_eq(err.file, "t.json");                                              \
	} while (0)

START_TEST(counts)
{
	struct err err;
	uint64_t n = 0;
	json_t *root = read_ok("{\"layers\": 80, \"size\": 1.0e9, \"half\": 2.5, \"neg\": -3, \"text\": \"80\", "
			       "\"none\": null, \"list\": [], \"big\": 9223372036854775807, \"huge\": 1e300, "
			       "\"negreal\": -1.0, \"edge\": 18446744073709551616.0}");

	assert_ok(json_get_count(root, "t.json", "layers", 1, 1000, &n, &err), err);
	ck_assert_uint_eq(n, 80);
	assert_ok(json_get_count(root, "t.json", "size", 0, UINT64_MAX, &n, &err), err);
	ck_assert_uint_eq(n, 1000000000);
	assert_ok(json_get_count(root, "t.json", "big", 0, UINT64_MAX, &n, &err), err);
	ck_assert_uint_eq(n, INT64_MAX);
	assert_count_refused("layers", 100, 1000, "'layers' must be a whole number from 100 to 1000, not 80");
	assert_count_refused("half", 0, 10, "'half' must be a whole number from 0 to 10, not 2.5");
	assert_count_refused("neg", 0, UINT64_MAX,
		"'neg' must be a whole number from 0 to 18446744073709551615, not -3");
	assert_count_refused("negreal", 0, 9, "'negreal' must be a whole number from 0 to 9, not -1");
	assert_count_refused("edge", 0, UINT64_MAX,
		"'edge' must be a whole number from 0 to 18446744073709551615, not 1.8446744073709552e+19");
	assert_count_refused("text", 0, 10, "'text' must be a whole number, not a string");
	assert_count_refused("list", 0, 10, "'list' must be a whole number, not an array");
	assert_count_refused("missing", 0, 10, "has no 'missing'");
	assert_count_refused("none", 0, 10, "has no 'none'");
	ck_assert_int_eq(json_get_count(root, "t.json", "huge", 0, UINT64_MAX, &n, &err), -1);

	assert_ok(json_get_count_or(root, "t.json", "missing", 41, 0, 10, &n, &err), err);
	ck_assert_uint_eq(n, 41);
	assert_ok(json_get_count_or(root, "t.json", "none", 42, 0, 10, &n, &err), err);
	ck_assert_uint_eq(n, 42);
	ck_assert_int_eq(json_get_count_or(root, "t.json", "text", 1, 0, 10, &n, &err), -1);
	json_decref(root);
}
END_TEST

START_TEST(flags_and_texts)
{
	struct err err;
	struct arena a;
	bool flag = false;
	const char *text = NULL;
	json_t *root = read_ok("{\"yes\": true, \"no\": false, \"one\": 1, \"name\": \"llama\", \"none\": null}");

	arena_init(&a, NULL, NULL);
	assert_ok(json_get_bool_or(root, "t.json", "yes", false, &flag, &err), err);
	ck_assert(flag);
	assert_ok(json_get_bool_or(root, "t.json", "no", true, &flag, &err), err);
	ck_assert(!flag);
	assert_ok(json_get_bool_or(root, "t.json", "none", true, &flag, &err), err);
	ck_assert(flag);
	ck_assert_int_eq(json_get_bool_or(root, "t.json", "one", true, &flag, &err), -1);
	assert_err(err, ERR_INPUT, "'one' must be true or false, not a number");
	assert_ok(json_get_text_or(root, "t.json", "name", NULL, &a, &text, &err), err);
	assert_ok(json_get_text_or(root, "t.json", "missing", "def", &a, &text, &err), err);
	ck_assert_str_eq(text, "def");
	assert_ok(json_get_text_or(root, "t.json", "missing", NULL, &a, &text, &err), err);
	ck_assert_ptr_null(text);
	ck_assert_int_eq(json_get_text_or(root, "t.json", "yes", NULL, &a, &text, &err), -1);
	assert_err(err, ERR_INPUT, "'yes' must be a string, not true");
	assert_ok(json_get_text_or(root, "t.json", "name", NULL, &a, &text, &err), err);
	json_decref(root);
	ck_assert_str_eq(text, "llama"); /* outlives the object */
	arena_release(&a);
}
END_TEST

START_TEST(scaled)
{
	struct err err;
	uint64_t ns = 0;
	json_t *root = read_ok("{\"s\": 61.114, \"whole\": 7, \"epoch\": 1777144890.5122073, \"fine\": 0.30000000000000004,"
			       " \"minus\": -1.5, \"large\": 1e30, \"text\": \"1\"}");

	assert_ok(json_get_scaled(root, "t.json", "s", 9, &ns, &err), err);
	ck_assert_uint_eq(ns, UINT64_C(61114000000));
	assert_ok(json_get_scaled(root, "t.json", "whole", 6, &ns, &err), err);
	ck_assert_uint_eq(ns, 7000000);
	assert_ok(json_get_scaled(root, "t.json", "epoch", 9, &ns, &err), err);
	ck_assert_uint_eq(ns, UINT64_C(1777144890512207300));
	assert_ok(json_get_scaled(root, "t.json", "fine", 9, &ns, &err), err);
	ck_assert_uint_eq(ns, 300000000);
	ck_assert_int_eq(json_get_scaled(root, "t.json", "minus", 9, &ns, &err), -1);
	assert_err(err, ERR_INPUT, "'minus' must not be negative, but is -1.5");
	ck_assert_int_eq(json_get_scaled(root, "t.json", "large", 9, &ns, &err), -1);
	assert_err(err, ERR_INPUT, "'large' must not be so large, but is 1e+30");
	ck_assert_int_eq(json_get_scaled(root, "t.json", "text", 9, &ns, &err), -1);
	assert_err(err, ERR_INPUT, "'text' must be a number, not a string");
	ck_assert_int_eq(json_get_scaled(root, "t.json", "none", 9, &ns, &err), -1);
	assert_err(err, ERR_INPUT, "has no 'none'");
	json_decref(root);
}
END_TEST

START_TEST(any_root)
{
	struct err err;
	char path[32];
	json_t *root = NULL;

	test_file(path, "[1, 2]", 6);
	assert_ok(json_read_any_file(path, 100, &root, &err), err);
	ck_assert_uint_eq(json_array_size(root), 2);
	json_decref(root);
	ck_assert_int_eq(json_read_file(path, 100, &root, &err), -1);
	assert_err(err, ERR_INPUT, "must be an object: { … }");
	ck_assert_int_eq(json_read_any_file(path, 5, &root, &err), -1);
	unlink(path);
}
END_TEST

TEST_MAIN("json", syntax, every_truncation, depth_bomb, infinities_of_python, files, counts, flags_and_texts, scaled,
	any_root)
