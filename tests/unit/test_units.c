#include "base/units.h"

#include <locale.h>

#include "tests/test.h"

static double parsed(const char *text, enum unit_dim dim)
{
	struct err err;
	double x = NAN;

	assert_ok(units_parse(text, dim, &x, &err), err);
	return x;
}

#define assert_parses(text, dim, want) assert_close(parsed((text), (dim)), (want), 0)

#define assert_refused(text, dim, want_msg)                                                        \
	do {                                                                                       \
		struct err err_;                                                                   \
		double x_ = 2.385;                                                                 \
		ck_assert_int_eq(units_parse((text), (dim), &x_, &err_), -1);                      \
		assert_err(err_, ERR_INPUT, want_msg);                                             \
		assert_close(x_, 2.385, 0); /* untouched */                                        \
	} while (0)

START_TEST(to_the_last_bit)
{
	assert_parses("1.2us", UNIT_TIME, 1.2e-6);
	assert_parses("1.2\xc2\xb5s", UNIT_TIME, 1.2e-6);
	assert_parses("1.2\xce\xbcs", UNIT_TIME, 1.2e-6);
	assert_parses("2.385ns", UNIT_TIME, 2.385e-9);
	assert_parses("0.7ps", UNIT_TIME, 0.7e-12);
	assert_parses("989.4TFLOP/s", UNIT_FLOP_RATE, 989.4e12);
	assert_parses("55.3GB/s", UNIT_BYTES_RATE, 55.3e9);
	assert_parses("85.7%", UNIT_FRACTION, 0.857);
	assert_parses("1.1e3us", UNIT_TIME, 1.1e-3);
	/* Every three-digit time: the same double as the same digits with an exponent. */
	for (int i = 1; i < 1000; i++) {
		char a[32], b[32];
		snprintf(a, sizeof(a), "%d.%02dus", i / 100, i % 100);
		snprintf(b, sizeof(b), "%d.%02de-6", i / 100, i % 100);
		assert_parses(a, UNIT_TIME, strtod(b, NULL));
	}
}
END_TEST

START_TEST(every_dimension)
{
	assert_parses("2.385", UNIT_PLAIN, 2.385);
	assert_parses("-2.385e-3", UNIT_PLAIN, -2.385e-3);
	assert_parses(".5", UNIT_PLAIN, 0.5);
	assert_parses("5.", UNIT_PLAIN, 5);
	assert_parses("+7", UNIT_PLAIN, 7);
	assert_parses("0.85", UNIT_FRACTION, 0.85);
	assert_parses("24GB", UNIT_BYTES, 24e9);
	assert_parses("7 kB", UNIT_BYTES, 7000);
	assert_parses("23PB", UNIT_BYTES, 23e15);
	assert_parses("1.5KiB", UNIT_BYTES, 1536);
	assert_parses("3MiB", UNIT_BYTES, 3145728);
	assert_parses("22.5GiB", UNIT_BYTES, 22.5 * 1073741824);
	assert_parses("3TiB", UNIT_BYTES, 3 * 1099511627776.0);
	assert_parses("3PiB", UNIT_BYTES, 3 * 1125899906842624.0);
	assert_parses("0B", UNIT_BYTES, 0);
	assert_parses("3GiB/s", UNIT_BYTES_RATE, 3221225472.0);
	assert_parses("12min", UNIT_TIME, 720);
	assert_parses("1.5h", UNIT_TIME, 5400);
	assert_parses("7ms", UNIT_TIME, 7e-3);
	assert_parses("83 TOP/s", UNIT_FLOP_RATE, 83e12);
	assert_parses("5600MT/s", UNIT_TRANSFER_RATE, 5.6e9);
	assert_parses("32GT/s", UNIT_TRANSFER_RATE, 32e9);
	assert_parses("2.52GHz", UNIT_FREQUENCY, 2.52e9);
	assert_parses("2.1tok/s", UNIT_TOKEN_RATE, 2.1);
	assert_parses("2.5/s", UNIT_REQUEST_RATE, 2.5);
	assert_parses("2.5 req/s", UNIT_REQUEST_RATE, 2.5);
	assert_parses("450W", UNIT_POWER, 450);
	assert_parses("1.2kW", UNIT_POWER, 1200);
}
END_TEST

START_TEST(counts)
{
	assert_parses("40", UNIT_COUNT, 40);
	assert_parses("0", UNIT_COUNT, 0);
	assert_parses("-3", UNIT_COUNT, -3);
	assert_parses("9007199254740992", UNIT_COUNT, 9007199254740992.0);
	assert_refused("9007199254740993", UNIT_COUNT, "'9007199254740993' is too large");
	assert_refused("99999999999999999999999999", UNIT_COUNT, "'99999999999999999999999999' is too large");
	assert_refused("1e3", UNIT_COUNT,
		"'1e3' is not a whole number; write all its digits and no unit, such as 4096");
	assert_refused("2k", UNIT_COUNT,
		"'2k' is not a whole number; write all its digits and no unit, such as 4096");
	assert_refused("40.0", UNIT_COUNT,
		"'40.0' is not a whole number; write all its digits and no unit, such as 4096");
	assert_refused("40 ", UNIT_COUNT,
		"'40 ' is not a whole number; write all its digits and no unit, such as 4096");
	assert_refused("0x40", UNIT_COUNT,
		"'0x40' is not a whole number; write all its digits and no unit, such as 4096");
	assert_refused("-", UNIT_COUNT, "'-' is not a number; expected a whole number such as 40");
	assert_refused("", UNIT_COUNT, "no value; expected a whole number such as 40");
	ck_assert(!signbit(parsed("-0", UNIT_COUNT)));
}
END_TEST

START_TEST(missing_and_wrong_units)
{
	assert_refused("55", UNIT_BYTES_RATE, "'55' has no unit; expected a bandwidth such as 55GB/s");
	assert_refused("0", UNIT_BYTES, "'0' has no unit; expected a size such as 24GB or 64KiB");
	assert_refused("55GB", UNIT_BYTES_RATE, "'55GB' is a size; expected a bandwidth such as 55GB/s");
	assert_refused("55GB/s", UNIT_BYTES, "'55GB/s' is a bandwidth; expected a size such as 24GB or 64KiB");
	assert_refused("5%", UNIT_PLAIN, "'5%' is a fraction; expected a number such as 2.5");
	assert_refused("5s", UNIT_FRACTION, "'5s' is a time; expected a fraction such as 0.85 or 85%");
	assert_refused("3", UNIT_POWER, "'3' has no unit; expected a power such as 450W");
	assert_refused("3 ", UNIT_PLAIN, "'3 ' has no unit; expected a number such as 2.5");
}
END_TEST

START_TEST(unknown_units)
{
	assert_refused("55gb", UNIT_BYTES, "'55gb': no unit 'gb'; did you mean 'GB'?");
	assert_refused("55kb", UNIT_BYTES, "'55kb': no unit 'kb'; did you mean 'kB'?");
	assert_refused("55Kb", UNIT_BYTES, "'55Kb': no unit 'Kb'; did you mean 'kB'?");
	assert_refused("55KB", UNIT_BYTES, "'55KB': no unit 'KB'; did you mean 'kB'?");
	assert_refused("55GBps", UNIT_BYTES_RATE, "'55GBps': no unit 'GBps'; did you mean 'GB/s'?");
	assert_refused("83TFLOPS", UNIT_FLOP_RATE, "'83TFLOPS': no unit 'TFLOPS'; did you mean 'TFLOP/s'?");
	assert_refused("5Ms", UNIT_TIME, "'5Ms': no unit 'Ms'; did you mean 'ms'?");
	assert_refused("100Gbit/s", UNIT_BYTES_RATE,
		"'100Gbit/s' is in bits; expected a bandwidth such as 55GB/s (8 bits are 1 byte)");
	assert_refused("100Gbps", UNIT_BYTES_RATE,
		"'100Gbps' is in bits; expected a bandwidth such as 55GB/s (8 bits are 1 byte)");
	assert_refused("55GB/s junk", UNIT_BYTES_RATE,
		"'55GB/s junk': no unit 'GB/s junk'; did you mean 'GB/s'?");
	assert_refused("5 parsecs", UNIT_TIME, "'5 parsecs': no unit 'parsecs'; expected a time such as 1.2us");
	assert_refused("0x10", UNIT_PLAIN, "'0x10': no unit 'x10'; expected a number such as 2.5");
	assert_refused("1,5", UNIT_PLAIN, "'1,5': no unit ',5'; expected a number such as 2.5");
	assert_refused("1_000", UNIT_PLAIN, "'1_000': no unit '_000'; expected a number such as 2.5");
	assert_refused("1e", UNIT_PLAIN, "'1e': no unit 'e'; expected a number such as 2.5");
	assert_refused("5\tGB", UNIT_BYTES, "'5\tGB': no unit '\tGB'; did you mean 'GB'?");
}
END_TEST

START_TEST(case_where_it_cannot_matter)
{
	assert_parses("2.4ghz", UNIT_FREQUENCY, 2.4e9);
	assert_parses("5600mt/s", UNIT_TRANSFER_RATE, 5.6e9);
	assert_parses("83tflop/s", UNIT_FLOP_RATE, 83e12);
	assert_parses("450w", UNIT_POWER, 450);
	assert_parses("2.1 Tok/s", UNIT_TOKEN_RATE, 2.1);
}
END_TEST

START_TEST(no_numbers)
{
	assert_refused("", UNIT_TIME, "no value; expected a time such as 1.2us");
	assert_refused("fast", UNIT_BYTES_RATE, "'fast' is not a number; expected a bandwidth such as 55GB/s");
	assert_refused("inf", UNIT_PLAIN, "'inf' is not a number; expected a number such as 2.5");
	assert_refused("-infinity", UNIT_PLAIN, "'-infinity' is not a number; expected a number such as 2.5");
	assert_refused("nan", UNIT_PLAIN, "'nan' is not a number; expected a number such as 2.5");
	assert_refused("GB", UNIT_BYTES, "'GB' is not a number; expected a size such as 24GB or 64KiB");
	assert_refused("--5", UNIT_PLAIN, "'--5' is not a number; expected a number such as 2.5");
	assert_refused(" 5", UNIT_PLAIN, "' 5' is not a number; expected a number such as 2.5");
	assert_refused(".", UNIT_PLAIN, "'.' is not a number; expected a number such as 2.5");
	assert_refused("e5", UNIT_PLAIN, "'e5' is not a number; expected a number such as 2.5");
}
END_TEST

START_TEST(limits_of_doubles)
{
	char digits[300];
	struct err err;
	double x;

	assert_refused("1e400", UNIT_PLAIN, "'1e400' is too large");
	assert_refused("1e308TB", UNIT_BYTES, "'1e308TB' is too large");
	assert_refused("1e305PiB", UNIT_BYTES, "'1e305PiB' is too large");
	assert_refused("1e-400", UNIT_PLAIN, "'1e-400' is too small");
	assert_refused("1e99999999999999999999", UNIT_PLAIN, "'1e99999999999999999999' is too large");
	assert_parses("0e99999999999999999999", UNIT_PLAIN, 0);
	assert_parses("0.000ps", UNIT_TIME, 0);
	assert_parses("1e-300TB", UNIT_BYTES, 1e-288);
	memset(digits, '7', sizeof(digits) - 1);
	digits[sizeof(digits) - 1] = '\0';
	ck_assert_int_eq(units_parse(digits, UNIT_PLAIN, &x, &err), -1);
}
END_TEST

START_TEST(locale_does_not_matter)
{
	/* With a decimal comma, if such a locale is installed; C.UTF-8 at least. */
	if (!setlocale(LC_ALL, "de_DE.UTF-8"))
		setlocale(LC_ALL, "C.UTF-8");
	assert_parses("1.25us", UNIT_TIME, 1.25e-6);
	setlocale(LC_ALL, "C");
}
END_TEST

static const char *formatted(double x, enum unit_dim dim)
{
	static char buf[64];

	return units_format(buf, sizeof(buf), x, dim);
}

START_TEST(formats)
{
	ck_assert_str_eq(formatted(55e9, UNIT_BYTES_RATE), "55.0 GB/s");
	ck_assert_str_eq(formatted(21.4 * 1073741824, UNIT_BYTES), "21.4 GiB");
	ck_assert_str_eq(formatted(0, UNIT_BYTES), "0 B");
	ck_assert_str_eq(formatted(5, UNIT_BYTES), "5 B");
	ck_assert_str_eq(formatted(1000, UNIT_BYTES), "1000 B");
	ck_assert_str_eq(formatted(1024, UNIT_BYTES), "1.00 KiB");
	ck_assert_str_eq(formatted(1012.0 * 1048576, UNIT_BYTES), "1012 MiB");
	ck_assert_str_eq(formatted(1.2e-6, UNIT_TIME), "1.20 us");
	ck_assert_str_eq(formatted(0.7e-12, UNIT_TIME), "0.7 ps");
	ck_assert_str_eq(formatted(75.2, UNIT_TIME), "75.2 s");
	ck_assert_str_eq(formatted(1234, UNIT_TIME), "20.6 min");
	ck_assert_str_eq(formatted(12345, UNIT_TIME), "3.43 h");
	ck_assert_str_eq(formatted(999.7e6, UNIT_BYTES_RATE), "1.00 GB/s");
	ck_assert_str_eq(formatted(9.996e9, UNIT_BYTES_RATE), "10.0 GB/s");
	ck_assert_str_eq(formatted(99.96e9, UNIT_BYTES_RATE), "100 GB/s");
	ck_assert_str_eq(formatted(-55e9, UNIT_BYTES_RATE), "-55.0 GB/s");
	ck_assert_str_eq(formatted(989.4e12, UNIT_FLOP_RATE), "989 TFLOP/s");
	ck_assert_str_eq(formatted(5.6e9, UNIT_TRANSFER_RATE), "5.60 GT/s");
	ck_assert_str_eq(formatted(2.52e9, UNIT_FREQUENCY), "2.52 GHz");
	ck_assert_str_eq(formatted(12.345, UNIT_TOKEN_RATE), "12.3 tok/s");
	ck_assert_str_eq(formatted(0.01234, UNIT_TOKEN_RATE), "0.0123 tok/s");
	ck_assert_str_eq(formatted(2, UNIT_REQUEST_RATE), "2.00 req/s");
	ck_assert_str_eq(formatted(450, UNIT_POWER), "450 W");
	ck_assert_str_eq(formatted(0.857, UNIT_FRACTION), "85.7%");
	ck_assert_str_eq(formatted(2.385, UNIT_PLAIN), "2.385");
	ck_assert_str_eq(formatted(1234567, UNIT_COUNT), "1234567");
	ck_assert_str_eq(formatted(NAN, UNIT_TIME), "n/a");
	ck_assert_str_eq(formatted(INFINITY, UNIT_BYTES_RATE), "inf B/s");
	ck_assert_str_eq(formatted(1e300, UNIT_BYTES), "8.88e+284 PiB");
}
END_TEST

START_TEST(formats_parse_back)
{
	for (int dim = 0; dim < UNIT_DIM_N; dim++) {
		if (dim == UNIT_COUNT)
			continue;
		for (double x = 1.7e-13; x < 1e19; x *= 2.385) {
			const char *text = formatted(x, (enum unit_dim)dim);
			assert_close(parsed(text, (enum unit_dim)dim), x, 0.006);
		}
	}
}
END_TEST

START_TEST(names)
{
	ck_assert_str_eq(units_describe(UNIT_BYTES_RATE), "bandwidth (such as 55GB/s)");
	ck_assert_str_eq(units_base(UNIT_BYTES_RATE), "B/s");
	ck_assert_str_eq(units_base(UNIT_COUNT), "");
	for (int dim = 0; dim < UNIT_DIM_N; dim++) {
		ck_assert_ptr_nonnull(units_describe((enum unit_dim)dim));
		/* A base unit is a unit that changes nothing. */
		if (dim == UNIT_COUNT)
			continue;
		char text[32];
		snprintf(text, sizeof(text), "2.385%s", units_base((enum unit_dim)dim));
		assert_parses(text, (enum unit_dim)dim, 2.385);
	}
}
END_TEST

TEST_MAIN("units", to_the_last_bit, every_dimension, counts, missing_and_wrong_units, unknown_units,
	case_where_it_cannot_matter, no_numbers, limits_of_doubles, locale_does_not_matter, formats,
	formats_parse_back, names)
