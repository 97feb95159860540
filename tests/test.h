/*
 * test.h - what every test program shares, on top of Check.
 *
 *	START_TEST(two_halves) { assert_close(half(2.385) * 2, 2.385, 1e-15); } END_TEST
 *	TEST_MAIN("halves", two_halves)
 *
 * CK_FORK=no runs the tests in one process (gdb, valgrind).
 */
#ifndef TESTS_TEST_H
#define TESTS_TEST_H

#include <check.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

/* |got - want| <= rel * |want|, all three shown in full when not. */
#define assert_close(got, want, rel)                                                               \
	do {                                                                                       \
		double got_ = (got), want_ = (want), rel_ = (rel);                                 \
		if (!(fabs(got_ - want_) <= rel_ * fabs(want_)))                                   \
			ck_abort_msg("%s is %.17g, not %.17g; off by a factor of 1 + %.3g", #got,  \
				got_, want_, got_ / want_ - 1);                                    \
	} while (0)

/* err holds this message, and this code. */
#define assert_err(err, want_code, want_msg)                                                       \
	do {                                                                                       \
		ck_assert_str_eq((err).msg, (want_msg));                                           \
		ck_assert_int_eq((int)(err).code, (int)(want_code));                               \
	} while (0)

/* For calls that must work: shows the message of the one that does not. */
#define assert_ok(call, err)                                                                       \
	do {                                                                                       \
		if (call)                                                                          \
			ck_abort_msg("%s: %s:%d:%d: %s", #call, (err).file, (err).line, (err).col, \
				(err).msg);                                                        \
	} while (0)

/* A new file of these bytes; path is its buffer of at least 32. The test unlinks it. */
static inline void test_file(char *path, const void *bytes, size_t len)
{
	strcpy(path, "/tmp/offsim-test-XXXXXX");
	int fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, bytes, len), (ssize_t)len);
	close(fd);
}

static inline int test_run(const char *suite, const TTest *const *tests, size_t n)
{
	Suite *s = suite_create(suite);
	TCase *tc = tcase_create(suite);

	tcase_set_timeout(tc, 60);
	for (size_t i = 0; i < n; i++)
		tcase_add_test(tc, tests[i]);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? 1 : 0;
}

#define TEST_MAIN(suite, ...)                                                                      \
	int main(void)                                                                             \
	{                                                                                          \
		const TTest *const tests[] = {__VA_ARGS__};                                        \
		return test_run(suite, tests, ARRAY_LEN(tests));                                   \
	}

#endif
