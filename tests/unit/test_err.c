#include "base/err.h"

#include "tests/test.h"

/* What err_print writes, in buf. */
static const char *printed(const struct err *err, char *buf, size_t size)
{
	memset(buf, 0, size);
	FILE *f = fmemopen(buf, size, "w");
	err_print(err, f);
	fclose(f);
	return buf;
}

START_TEST(parts_left_out)
{
	struct err err;
	char buf[2048];

	ck_assert_int_eq(err_at(&err, ERR_INPUT, &(struct err_pos){"x.yaml", 7, 18}, "unknown key '%s'", "a"), -1);
	ck_assert_str_eq(printed(&err, buf, sizeof(buf)), "offsim: x.yaml:7:18: unknown key 'a'\n");
	err.col = 0;
	ck_assert_str_eq(printed(&err, buf, sizeof(buf)), "offsim: x.yaml:7: unknown key 'a'\n");
	err.line = 0;
	ck_assert_str_eq(printed(&err, buf, sizeof(buf)), "offsim: x.yaml: unknown key 'a'\n");
	ck_assert_int_eq(err_set(&err, ERR_IO, "disk %d%% full", 97), -1);
	ck_assert_str_eq(printed(&err, buf, sizeof(buf)), "offsim: disk 97% full\n");
	err_at(&err, ERR_INPUT, &(struct err_pos){NULL, 3, 2}, "bad");
	ck_assert_str_eq(printed(&err, buf, sizeof(buf)), "offsim: 3:2: bad\n");
	err_at(&err, ERR_INPUT, NULL, "bad");
	ck_assert_str_eq(printed(&err, buf, sizeof(buf)), "offsim: bad\n");
}
END_TEST

START_TEST(one_clean_line)
{
	struct err err;
	char buf[2048];

	err_at(&err, ERR_INPUT, &(struct err_pos){"a\nb", 1, 1}, "x\x1b[31m\ny\t\x7f \xed\xa0\x80 \xff µ…");
	ck_assert_str_eq(printed(&err, buf, sizeof(buf)), "offsim: a?b:1:1: x?[31m?y?? ??? ? µ…\n");
	err_set(&err, ERR_INPUT, "\xc2\x9b" "31m\xe2\x80\xa8z"); /* C1 CSI, line separator */
	ck_assert_str_eq(printed(&err, buf, sizeof(buf)), "offsim: ?31m?z\n");
}
END_TEST

START_TEST(prefix_goes_in_front)
{
	struct err err;

	err_at(&err, ERR_INPUT, &(struct err_pos){"f", 4, 5}, "no such thing");
	ck_assert_int_eq(err_prefix(&err, "model '%s'", "llama"), -1);
	assert_err(err, ERR_INPUT, "model 'llama': no such thing");
	ck_assert_str_eq(err.file, "f");
	ck_assert_int_eq(err.line, 4);
}
END_TEST

START_TEST(long_texts_are_cut)
{
	struct err err;
	char longer[3000];
	char buf[4096];

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	err_at(&err, ERR_INPUT, &(struct err_pos){longer, 1, 1}, "%s", longer);
	ck_assert_uint_eq(strlen(err.msg), sizeof(err.msg) - 1);
	ck_assert_uint_eq(strlen(err.file), sizeof(err.file) - 1);
	err_prefix(&err, "model");
	ck_assert_uint_eq(strlen(err.msg), sizeof(err.msg) - 1);
	ck_assert_int_eq(strncmp(err.msg, "model: xxx", 10), 0);
	err_prefix(&err, "%s", longer);
	ck_assert_uint_eq(strlen(err.msg), sizeof(err.msg) - 1);
	err_set(&err, ERR_IO, "a");
	err_prefix(&err, "%.*s", (int)sizeof(err.msg) - 4, longer);
	ck_assert_str_eq(err.msg + sizeof(err.msg) - 4, ": a");
	printed(&err, buf, sizeof(buf));
}
END_TEST

START_TEST(arguments_may_point_into_err)
{
	struct err err;

	err_set(&err, ERR_INPUT, "inner");
	err_set(&err, ERR_INPUT, "outer (%s)", err.msg);
	ck_assert_str_eq(err.msg, "outer (inner)");
	err_at(&err, ERR_INPUT, &(struct err_pos){"f.yaml", 4, 5}, "x");
	err_at(&err, ERR_INPUT, &(struct err_pos){err.file, 6, 7}, "y");
	ck_assert_str_eq(err.file, "f.yaml");
}
END_TEST

START_TEST(null_is_allowed)
{
	ck_assert_int_eq(err_set(NULL, ERR_IO, "x"), -1);
	ck_assert_int_eq(err_at(NULL, ERR_IO, NULL, "x"), -1);
	ck_assert_int_eq(err_prefix(NULL, "x"), -1);
}
END_TEST

START_TEST(statuses)
{
	struct err err;

	err_set(&err, ERR_INPUT, "x");
	ck_assert_int_eq(err_exit_status(&err), 2);
	err_set(&err, ERR_USAGE, "x");
	ck_assert_int_eq(err_exit_status(&err), 2);
	err_set(&err, ERR_IO, "x");
	ck_assert_int_eq(err_exit_status(&err), 1);
	err_set(&err, ERR_NOMEM, "x");
	ck_assert_int_eq(err_exit_status(&err), 1);
	err_set(&err, ERR_INTERRUPTED, "x");
	ck_assert_int_eq(err_exit_status(&err), 1);
}
END_TEST

TEST_MAIN("err", parts_left_out, one_clean_line, prefix_goes_in_front, long_texts_are_cut,
	arguments_may_point_into_err, null_is_allowed, statuses)
