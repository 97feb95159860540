#include "base/lines.h"

#include "tests/test.h"

/* A file under test, open. */
struct opened {
	char path[32];
	struct lines l;
	struct err err;
	char *text;
	size_t len;
};

static void open_bytes(struct opened *o, const char *bytes, size_t len, size_t max_line)
{
	memset(o, 0, sizeof(*o));
	test_file(o->path, bytes, len);
	int rc = lines_open(&o->l, o->path, max_line, &o->err);
	unlink(o->path);
	assert_ok(rc, o->err);
}

static int next(struct opened *o)
{
	return lines_next(&o->l, &o->text, &o->len, &o->err);
}

#define assert_line(o, want, want_line)                                                                      \
	do {                                                                                                 \
		assert_ok(next(o) != 1, (o)->err);                                                           \
		ck_assert_str_eq((o)->text, want);                                                           \
		ck_assert_uint_eq((o)->len, strlen(want));                                                   \
		ck_assert_int_eq((o)->l.line, want_line);                                                    \
	} while (0)

START_TEST(one_after_another)
{
	const char bytes[] = "\xef\xbb\xbf" "first\n\nthird\r\n\r\nlast";
	struct opened o;

	open_bytes(&o, bytes, sizeof(bytes) - 1, 100);
	for (int round = 0; round < 2; round++) {
		assert_line(&o, "first", 1);
		ck_assert(!o.l.unended);
		assert_line(&o, "", 2);
		assert_line(&o, "third", 3);
		lines_again(&o.l);
		assert_line(&o, "third", 3);
		assert_line(&o, "", 4);
		assert_line(&o, "last", 5);
		ck_assert(o.l.unended);
		ck_assert_int_eq(next(&o), 0);
		ck_assert_int_eq(next(&o), 0);
		ck_assert_uint_eq(o.l.n_bytes, sizeof(bytes) - 1);
		assert_ok(lines_rewind(&o.l, &o.err), o.err);
	}
	lines_close(&o.l);
}
END_TEST

START_TEST(nothing)
{
	struct opened o;

	open_bytes(&o, "", 0, 100);
	ck_assert_int_eq(next(&o), 0);
	lines_close(&o.l);
	open_bytes(&o, "\xef\xbb\xbf", 3, 100);
	ck_assert_int_eq(next(&o), 0);
	lines_close(&o.l);
	open_bytes(&o, "\n", 1, 100);
	assert_line(&o, "", 1);
	ck_assert_int_eq(next(&o), 0);
	lines_close(&o.l);
}
END_TEST

/* Lines of every length up to beyond the window, which must not grow with the file. */
START_TEST(a_window_on_a_large_file)
{
	size_t len = 0, cap = 40 << 20;
	char *bytes = malloc(cap);
	struct opened o;
	size_t n;

	for (n = 0; len + n + 1 <= cap; n = (n * 7 + 2385) % 300007) {
		memset(bytes + len, 'a' + (int)(n % 23), n);
		len += n;
		bytes[len++] = '\n';
	}
	open_bytes(&o, bytes, len, 300007);
	n = 0;
	for (int line = 1; next(&o) == 1; line++) {
		ck_assert_int_eq(o.l.line, line);
		ck_assert_uint_eq(o.len, n);
		for (size_t i = 0; i < n; i += 997)
			ck_assert_int_eq(o.text[i], 'a' + (int)(n % 23));
		n = (n * 7 + 2385) % 300007;
	}
	ck_assert_uint_eq(o.l.n_bytes, len);
	ck_assert_uint_le(o.l.cap, 2 << 20);
	lines_close(&o.l);
	free(bytes);
}
END_TEST

START_TEST(a_line_that_is_too_long)
{
	char bytes[3000];
	struct opened o;

	memset(bytes, 'x', sizeof(bytes));
	bytes[1] = '\n';
	bytes[2050] = '\n'; /* the second line has 2048 bytes */
	for (int ended = 0; ended < 2; ended++) {
		open_bytes(&o, bytes, 2050 + (size_t)ended, 2048);
		assert_line(&o, "x", 1);
		ck_assert_int_eq(next(&o), 1);
		ck_assert_uint_eq(o.len, 2048);
		lines_close(&o.l);
		open_bytes(&o, bytes, 2050 + (size_t)ended, 2047);
		assert_line(&o, "x", 1);
		ck_assert_int_eq(next(&o), -1);
		assert_err(o.err, ERR_INPUT, "a line is longer than 1 KiB");
		ck_assert_int_eq(o.err.line, 2);
		lines_close(&o.l);
	}
}
END_TEST

START_TEST(no_text)
{
	struct opened o;

	open_bytes(&o, "a\nb\0c\n", 6, 100);
	assert_line(&o, "a", 1);
	ck_assert_int_eq(next(&o), -1);
	assert_err(o.err, ERR_INPUT, "a NUL byte: this is not a text file");
	ck_assert_int_eq(o.err.line, 2);
	ck_assert_int_eq(o.err.col, 2);
	lines_close(&o.l);
}
END_TEST

START_TEST(the_head_is_not_taken)
{
	const char bytes[] = "\xef\xbb\xbf" "abc\ndef\n";
	const char *head;
	size_t len;
	struct opened o;

	open_bytes(&o, bytes, sizeof(bytes) - 1, 100);
	assert_ok(lines_head(&o.l, 5, &head, &len, &o.err), o.err);
	ck_assert_uint_eq(len, 5);
	ck_assert_mem_eq(head, "abc\nd", 5);
	assert_line(&o, "abc", 1);
	assert_line(&o, "def", 2);
	ck_assert_int_eq(next(&o), 0);
	lines_close(&o.l);
}
END_TEST

START_TEST(what_cannot_be_opened)
{
	struct lines l;
	struct err err = {0};
	int ends[2];
	char path[64];

	ck_assert_int_eq(lines_open(&l, "/tmp", 100, &err), -1);
	assert_err(err, ERR_INPUT, "'/tmp' is a folder");
	ck_assert_int_eq(lines_open(&l, "/nowhere/at/all", 100, &err), -1);
	assert_err(err, ERR_INPUT, "cannot open '/nowhere/at/all': No such file or directory");
	ck_assert_int_eq(pipe(ends), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[0]);
	assert_ok(lines_open(&l, path, 100, &err), err);
	ck_assert_int_eq(lines_rewind(&l, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.msg, "must be a file, for it is read twice"));
	lines_close(&l);
	close(ends[0]);
	close(ends[1]);
}
END_TEST

TEST_MAIN("lines", one_after_another, nothing, a_window_on_a_large_file, a_line_that_is_too_long, no_text,
	the_head_is_not_taken, what_cannot_be_opened)
