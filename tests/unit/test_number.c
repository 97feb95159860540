#include "base/number.h"

#include "tests/test.h"

static void check(const char *text, int digits, enum number_fault want_fault, uint64_t want)
{
	uint64_t got = 2385;
	enum number_fault fault = number_scaled(text, strlen(text), digits, &got);

	if (fault != want_fault || ((fault == NUMBER_FINE || fault == NUMBER_INEXACT) && got != want))
		ck_abort_msg("'%s' times 10^%d: %d %llu, not %d %llu", text, digits, (int)fault, (unsigned long long)got,
			(int)want_fault, (unsigned long long)want);
}

START_TEST(scaled_exactly)
{
	check("2385", 0, NUMBER_FINE, 2385);
	check("2.385", 3, NUMBER_FINE, 2385);
	check("2.385", 9, NUMBER_FINE, 2385000000);
	check("1777144890.5122073", 9, NUMBER_FINE, UINT64_C(1777144890512207300));
	check("374.0", 0, NUMBER_FINE, 374);
	check("3.74e2", 0, NUMBER_FINE, 374);
	check("3740E-1", 0, NUMBER_FINE, 374);
	check("3.74e+2", 0, NUMBER_FINE, 374);
	check(".5", 1, NUMBER_FINE, 5);
	check("5.", 1, NUMBER_FINE, 50);
	check("000000000000000000000000000007", 0, NUMBER_FINE, 7);
	check("0.000000000000000000000000000000e99", 0, NUMBER_FINE, 0);
	check("0e999999999999", 9, NUMBER_FINE, 0);
	check("-0", 3, NUMBER_FINE, 0);
	check("-0.0e5", 3, NUMBER_FINE, 0);
	check("18446744073709551615", 0, NUMBER_FINE, UINT64_MAX);
	check("18446744073.709551615", 9, NUMBER_FINE, UINT64_MAX);
}
END_TEST

START_TEST(rounded_half_up)
{
	check("2.5", 0, NUMBER_INEXACT, 3);
	check("2.4999", 0, NUMBER_INEXACT, 2);
	check("0.30000000000000004", 9, NUMBER_INEXACT, 300000000);
	check("5e-10", 9, NUMBER_INEXACT, 1);
	check("4e-10", 9, NUMBER_INEXACT, 0);
	check("1e-9999", 9, NUMBER_INEXACT, 0);
	check("99.95e-3", 3, NUMBER_INEXACT, 100);
	check("18446744073709551615.5", 0, NUMBER_TOO_LARGE, 0);
}
END_TEST

START_TEST(what_is_none)
{
	const char *const none[] = {"", "-", ".", "-.", "+5", " 5", "5 ", "1e", "1e+", "e5", "1e5.0", "0x10", "nan", "inf", "1,5",
		"1.2.3", "--5", "5-"};

	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		check(none[i], 0, NUMBER_NONE, 0);
	check("-2.385", 3, NUMBER_NEGATIVE, 0);
	check("1e30", 0, NUMBER_TOO_LARGE, 0);
	check("1e999999999999999", 0, NUMBER_TOO_LARGE, 0);
	check("18446744073709551616", 0, NUMBER_TOO_LARGE, 0);
	check("1", 20, NUMBER_TOO_LARGE, 0);
}
END_TEST

/* What was written comes back. */
START_TEST(shortest)
{
	const char *const texts[] = {"0.1", "0.3", "2.385", "1777144890.5122073", "61.114", "481800.514637565", "1e+30",
		"1.7976931348623157e+308", "123456789012345"};
	char buf[32];

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		int n = number_shortest(strtod(texts[i], NULL), buf);
		ck_assert_str_eq(buf, texts[i]);
		ck_assert_int_eq(n, (int)strlen(buf));
	}
}
END_TEST

TEST_MAIN("number", scaled_exactly, rounded_half_up, what_is_none, shortest)
