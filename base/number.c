#include "base/number.h"

#include <math.h>
#include <string.h>

#define EXACT_MANTISSA (UINT64_C(1) << 53)
#define EXACT_POWER 22

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool parse_slowly(const char *text, size_t len, double *out)
{
	char copy[128], *end;

	if (len >= sizeof(copy))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!is_digit(text[i]) && !memchr("+-.eE", text[i], 5))
			return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	*out = strtod(copy, &end);
	return len > 0 && *end == '\0' && isfinite(*out);
}

bool number_parse(const char *text, size_t len, double *out)
{
	static const double power_of_ten[EXACT_POWER + 1] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10,
		1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
	const char *p = text, *end = text + len;
	bool negative = p < end && *p == '-';
	uint64_t mantissa = 0;
	int n_digits = 0, exponent = 0;

	p += negative;
	for (; p < end && is_digit(*p); p++, n_digits++)
		mantissa = mantissa * 10 + (uint64_t)(*p - '0');
	if (p < end && *p == '.') {
		const char *point = p++;
		for (; p < end && is_digit(*p); p++, n_digits++)
			mantissa = mantissa * 10 + (uint64_t)(*p - '0');
		exponent = (int)(point + 1 - p);
	}
	if (p + 1 < end && (*p == 'e' || *p == 'E')) {
		const char *q = p + 1;
		bool down = *q == '-';
		int e = 0;
		q += *q == '-' || *q == '+';
		if (q == end || end - q > 3)
			return parse_slowly(text, len, out);
		for (; q < end && is_digit(*q); q++)
			e = e * 10 + (*q - '0');
		exponent += down ? -e : e;
		p = q;
	}
	if (p != end || n_digits == 0 || n_digits > 19 || mantissa > EXACT_MANTISSA || exponent > EXACT_POWER ||
		exponent < -EXACT_POWER)
		return parse_slowly(text, len, out);

	double value = (double)mantissa;
	value = exponent < 0 ? value / power_of_ten[-exponent] : value * power_of_ten[exponent];
	*out = negative ? -value : value;
	return true;
}

enum number_fault number_scaled(const char *text, size_t len, int digits, uint64_t *out)
{
	const char *p = text, *end = text + len, *mantissa;
	bool negative = p < end && *p == '-', inexact = false, nonzero = false;
	/* Digits of the mantissa that are left of the point once it is scaled. */
	int n_digits = 0, n_whole = 0, exponent = 0;

	mantissa = p += negative;
	for (; p < end && is_digit(*p); p++, n_digits++)
		nonzero |= *p != '0';
	n_whole = n_digits;
	if (p < end && *p == '.')
		for (p++; p < end && is_digit(*p); p++, n_digits++)
			nonzero |= *p != '0';
	const char *mantissa_end = p;
	if (n_digits == 0 || n_digits > 1000)
		return NUMBER_NONE;
	if (p < end && (*p == 'e' || *p == 'E')) {
		bool down = ++p < end && *p == '-';
		p += p < end && (*p == '-' || *p == '+');
		if (p == end)
			return NUMBER_NONE;
		for (; p < end && is_digit(*p); p++)
			exponent = exponent < 10000 ? exponent * 10 + (*p - '0') : exponent;
		exponent = down ? -exponent : exponent;
	}
	if (p != end)
		return NUMBER_NONE;
	if (negative && nonzero)
		return NUMBER_NEGATIVE;

	n_whole += exponent + digits;
	uint64_t value = 0;
	int i = 0, half = 0;
	for (p = mantissa; p < mantissa_end; p++) {
		if (*p == '.')
			continue;
		uint64_t d = (uint64_t)(*p - '0');
		if (i < n_whole) {
			if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, d, &value))
				return NUMBER_TOO_LARGE;
		} else {
			half |= i == n_whole && d >= 5;
			inexact |= d != 0;
		}
		i++;
	}
	for (; value && i < n_whole; i++)
		if (__builtin_mul_overflow(value, 10, &value))
			return NUMBER_TOO_LARGE;
	if (half && __builtin_add_overflow(value, 1, &value))
		return NUMBER_TOO_LARGE;
	*out = value;
	return inexact ? NUMBER_INEXACT : NUMBER_FINE;
}

int number_shortest(double x, char *buf)
{
	int n = 0;

	for (int precision = 15; precision <= 17; precision++) {
		n = snprintf(buf, 32, "%.*g", precision, x);
		if (strtod(buf, NULL) == x)
			break;
	}
	return n;
}
