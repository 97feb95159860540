#include "base/units.h"

#include <locale.h>
#include <math.h>
#include <string.h>

#include "base/suggest.h"

/*
 * A unit is factor x 10^exp10 base units. Powers of ten go into the exponent of the number's text before it
 * is converted, so that "1.2us" is the double that "1.2e-6" is; factors are exact in binary.
 */
struct unit {
	const char *name;
	enum unit_dim dim;
	int exp10;
	double factor;
};

#define KIB 1024.0
#define MIB (1024.0 * KIB)
#define GIB (1024.0 * MIB)
#define TIB (1024.0 * GIB)
#define PIB (1024.0 * TIB)

static const struct unit units[] = {
	{"%", UNIT_FRACTION, -2, 1},

	{"B", UNIT_BYTES, 0, 1},
	{"kB", UNIT_BYTES, 3, 1},
	{"MB", UNIT_BYTES, 6, 1},
	{"GB", UNIT_BYTES, 9, 1},
	{"TB", UNIT_BYTES, 12, 1},
	{"PB", UNIT_BYTES, 15, 1},
	{"KiB", UNIT_BYTES, 0, KIB},
	{"MiB", UNIT_BYTES, 0, MIB},
	{"GiB", UNIT_BYTES, 0, GIB},
	{"TiB", UNIT_BYTES, 0, TIB},
	{"PiB", UNIT_BYTES, 0, PIB},

	{"s", UNIT_TIME, 0, 1},
	{"ms", UNIT_TIME, -3, 1},
	{"us", UNIT_TIME, -6, 1},
	{"\xc2\xb5s", UNIT_TIME, -6, 1}, /* micro sign */
	{"\xce\xbcs", UNIT_TIME, -6, 1}, /* Greek mu */
	{"ns", UNIT_TIME, -9, 1},
	{"ps", UNIT_TIME, -12, 1},
	{"min", UNIT_TIME, 0, 60},
	{"h", UNIT_TIME, 0, 3600},

	{"B/s", UNIT_BYTES_RATE, 0, 1},
	{"kB/s", UNIT_BYTES_RATE, 3, 1},
	{"MB/s", UNIT_BYTES_RATE, 6, 1},
	{"GB/s", UNIT_BYTES_RATE, 9, 1},
	{"TB/s", UNIT_BYTES_RATE, 12, 1},
	{"PB/s", UNIT_BYTES_RATE, 15, 1},
	{"KiB/s", UNIT_BYTES_RATE, 0, KIB},
	{"MiB/s", UNIT_BYTES_RATE, 0, MIB},
	{"GiB/s", UNIT_BYTES_RATE, 0, GIB},
	{"TiB/s", UNIT_BYTES_RATE, 0, TIB},
	{"PiB/s", UNIT_BYTES_RATE, 0, PIB},

	{"FLOP/s", UNIT_FLOP_RATE, 0, 1},
	{"kFLOP/s", UNIT_FLOP_RATE, 3, 1},
	{"MFLOP/s", UNIT_FLOP_RATE, 6, 1},
	{"GFLOP/s", UNIT_FLOP_RATE, 9, 1},
	{"TFLOP/s", UNIT_FLOP_RATE, 12, 1},
	{"PFLOP/s", UNIT_FLOP_RATE, 15, 1},
	{"OP/s", UNIT_FLOP_RATE, 0, 1},
	{"kOP/s", UNIT_FLOP_RATE, 3, 1},
	{"MOP/s", UNIT_FLOP_RATE, 6, 1},
	{"GOP/s", UNIT_FLOP_RATE, 9, 1},
	{"TOP/s", UNIT_FLOP_RATE, 12, 1},
	{"POP/s", UNIT_FLOP_RATE, 15, 1},

	{"T/s", UNIT_TRANSFER_RATE, 0, 1},
	{"MT/s", UNIT_TRANSFER_RATE, 6, 1},
	{"GT/s", UNIT_TRANSFER_RATE, 9, 1},

	{"Hz", UNIT_FREQUENCY, 0, 1},
	{"kHz", UNIT_FREQUENCY, 3, 1},
	{"MHz", UNIT_FREQUENCY, 6, 1},
	{"GHz", UNIT_FREQUENCY, 9, 1},

	{"tok/s", UNIT_TOKEN_RATE, 0, 1},

	{"req/s", UNIT_REQUEST_RATE, 0, 1},
	{"/s", UNIT_REQUEST_RATE, 0, 1},

	{"W", UNIT_POWER, 0, 1},
	{"kW", UNIT_POWER, 3, 1},
};

struct dim {
	const char *noun, *example;
	const char *describe; /* units_describe: both in one */
	const char *base;     /* units_base */
	bool fold;            /* case does not matter: "ghz" can mean nothing but GHz; "gb", "Ms" could */
};

#define DIM(noun, example, base, fold)                                                             \
	{noun, example, noun " (such as " example ")", base, fold}

static const struct dim dims[UNIT_DIM_N] = {
	[UNIT_PLAIN] = DIM("number", "2.5", "", false),
	[UNIT_COUNT] = DIM("whole number", "40", "", false),
	[UNIT_FRACTION] = DIM("fraction", "0.85 or 85%", "", false),
	[UNIT_BYTES] = DIM("size", "24GB or 64KiB", "B", false),
	[UNIT_TIME] = DIM("time", "1.2us", "s", false),
	[UNIT_BYTES_RATE] = DIM("bandwidth", "55GB/s", "B/s", false),
	[UNIT_FLOP_RATE] = DIM("compute rate", "989TFLOP/s", "FLOP/s", true),
	[UNIT_TRANSFER_RATE] = DIM("transfer rate", "5600MT/s", "T/s", true),
	[UNIT_FREQUENCY] = DIM("frequency", "2.4GHz", "Hz", true),
	[UNIT_TOKEN_RATE] = DIM("token rate", "2.1tok/s", "tok/s", true),
	[UNIT_REQUEST_RATE] = DIM("request rate", "2/s", "req/s", true),
	[UNIT_POWER] = DIM("power", "450W", "W", true),
};

/* A longer number says nothing more to a double. */
#define MAX_NUMBER 100
#define MAX_COUNT (UINT64_C(1) << 53)

/* How much of a bad text a message repeats. */
#define TEXT "'%.80s'"

const char *units_describe(enum unit_dim dim)
{
	return dims[dim].describe;
}

const char *units_base(enum unit_dim dim)
{
	return dims[dim].base;
}

/* ctype.h follows the locale; numbers and units must not. */
static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool same_folded(const char *a, const char *b)
{
	while (*a && lower(*a) == lower(*b)) {
		a++;
		b++;
	}
	return *a == *b;
}

static const struct unit *find_exact(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (!strcmp(units[i].name, name))
			return &units[i];
	return NULL;
}

static const struct unit *find_folded(const char *name, enum unit_dim dim)
{
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (units[i].dim == dim && same_folded(units[i].name, name))
			return &units[i];
	return NULL;
}

static const char *skip_digits(const char *p)
{
	while (is_digit(*p))
		p++;
	return p;
}

/* A number at the start of text: [+-]digits[.digits][e[+-]digits]. */
struct number {
	const char *end;     /* of the whole; NULL when there is no number */
	size_t mantissa_len; /* from the start of text */
	int exp10;
	bool zero; /* no digit but 0 */
};

static struct number scan_number(const char *text)
{
	struct number num = {0};
	const char *p = text + (*text == '+' || *text == '-');
	const char *digits = p;

	p = skip_digits(p);
	size_t n = (size_t)(p - digits);
	if (*p == '.') {
		const char *point = p;
		p = skip_digits(p + 1);
		n += (size_t)(p - point) - 1;
	}
	if (!n)
		return num;
	num.mantissa_len = (size_t)(p - text);
	num.zero = strspn(digits, "0.") >= (size_t)(p - digits);
	num.end = p;
	if (*p != 'e' && *p != 'E')
		return num;
	p++;
	bool negative = *p == '-';
	p += *p == '+' || *p == '-';
	if (!is_digit(*p))
		return num; /* the e begins a unit */
	for (; is_digit(*p); p++)
		if (num.exp10 < 10000)
			num.exp10 = num.exp10 * 10 + (*p - '0');
	if (negative)
		num.exp10 = -num.exp10;
	num.end = p;
	return num;
}

/* strtod in the C locale, with another exponent put behind the digits. */
static double convert(const char *text, size_t mantissa_len, int exp10)
{
	char buf[MAX_NUMBER + 16];
	locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* a constant in glibc */

	snprintf(buf, sizeof(buf), "%.*se%d", (int)mantissa_len, text, exp10);
	double value = strtod_l(buf, NULL, c_locale);
	freelocale(c_locale);
	return value;
}

static int bad_unit(const char *text, const char *name, enum unit_dim dim, struct err *err)
{
	const struct dim *d = &dims[dim];
	const struct unit *other = find_exact(name);
	struct suggest near;

	if (!*name)
		return err_set(err, ERR_INPUT, TEXT " has no unit; expected a %s such as %s", text, d->noun,
			d->example);
	if (other)
		return err_set(err, ERR_INPUT, TEXT " is a %s; expected a %s such as %s", text,
			dims[other->dim].noun, d->noun, d->example);
	if (strstr(name, "bit") || strstr(name, "bps"))
		return err_set(err, ERR_INPUT, TEXT " is in bits; expected a %s such as %s (8 bits are 1 byte)",
			text, d->noun, d->example);
	suggest_init(&near, name);
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (units[i].dim == dim)
			suggest_offer(&near, units[i].name);
	if (suggest_best(&near))
		return err_set(err, ERR_INPUT, TEXT ": no unit " TEXT "; did you mean '%s'?", text, name,
			suggest_best(&near));
	return err_set(err, ERR_INPUT, TEXT ": no unit " TEXT "; expected a %s such as %s", text, name,
		d->noun, d->example);
}

static int parse_count(const char *text, double *out, struct err *err)
{
	const char *p = text + (*text == '+' || *text == '-');
	uint64_t n = 0;

	if (*skip_digits(p))
		return err_set(err, ERR_INPUT,
			TEXT " is not a whole number; write all its digits and no unit, such as 4096", text);
	for (; *p; p++) {
		n = n * 10 + (uint64_t)(*p - '0');
		if (n > MAX_COUNT)
			return err_set(err, ERR_INPUT, TEXT " is too large", text);
	}
	*out = *text == '-' && n ? -(double)n : (double)n;
	return 0;
}

int units_parse(const char *text, enum unit_dim dim, double *out, struct err *err)
{
	const struct dim *d = &dims[dim];
	const struct unit none = {"", dim, 0, 1};
	const struct unit *unit = NULL;
	struct number num = scan_number(text);

	if (!*text)
		return err_set(err, ERR_INPUT, "no value; expected a %s such as %s", d->noun, d->example);
	if (!num.end)
		return err_set(err, ERR_INPUT, TEXT " is not a number; expected a %s such as %s", text, d->noun,
			d->example);
	if (dim == UNIT_COUNT)
		return parse_count(text, out, err);
	if (num.mantissa_len > MAX_NUMBER)
		return err_set(err, ERR_INPUT, TEXT "… has more than %d digits", text, MAX_NUMBER);

	const char *name = num.end + strspn(num.end, " ");
	if (!*num.end) /* so that "2.5 " is no number */
		unit = dim == UNIT_PLAIN || dim == UNIT_FRACTION ? &none : NULL;
	else if (d->fold)
		unit = find_folded(name, dim);
	else
		unit = find_exact(name);
	if (!unit || unit->dim != dim)
		return bad_unit(text, name, dim, err);

	double value = convert(text, num.mantissa_len, num.exp10 + unit->exp10) * unit->factor;
	if (!isfinite(value))
		return err_set(err, ERR_INPUT, TEXT " is too large", text);
	if (value == 0 && !num.zero)
		return err_set(err, ERR_INPUT, TEXT " is too small", text);
	*out = value;
	return 0;
}

/* Prefixes of units_format, smallest first. */
struct scale {
	double size;
	const char *unit;
	double from; /* in use from this value on; 0: from size on */
};

struct ladder {
	const struct scale *at;
	size_t n;
};

#define DECIMAL(u)                                                                                 \
	{1, u, 0}, {1e3, "k" u, 0}, {1e6, "M" u, 0}, {1e9, "G" u, 0}, {1e12, "T" u, 0}, {1e15, "P" u, 0}

static const struct scale bytes_scale[] = {
	{1, "B", 0}, {KIB, "KiB", 0}, {MIB, "MiB", 0}, {GIB, "GiB", 0}, {TIB, "TiB", 0}, {PIB, "PiB", 0},
};
static const struct scale time_scale[] = {
	{1e-12, "ps", 0}, {1e-9, "ns", 0}, {1e-6, "us", 0},    {1e-3, "ms", 0},
	{1, "s", 0},      {60, "min", 120}, {3600, "h", 7200},
};
static const struct scale bytes_rate_scale[] = {DECIMAL("B/s")};
static const struct scale flop_rate_scale[] = {DECIMAL("FLOP/s")};
static const struct scale transfer_rate_scale[] = {{1e6, "MT/s", 0}, {1e9, "GT/s", 0}};
static const struct scale frequency_scale[] = {{1, "Hz", 0}, {1e3, "kHz", 0}, {1e6, "MHz", 0}, {1e9, "GHz", 0}};
static const struct scale token_rate_scale[] = {{1, "tok/s", 0}};
static const struct scale request_rate_scale[] = {{1, "req/s", 0}};
static const struct scale power_scale[] = {{1, "W", 0}, {1e3, "kW", 0}};

#define LADDER(a)                                                                                  \
	{a, ARRAY_LEN(a)}

static const struct ladder ladders[UNIT_DIM_N] = {
	[UNIT_BYTES] = LADDER(bytes_scale),
	[UNIT_TIME] = LADDER(time_scale),
	[UNIT_BYTES_RATE] = LADDER(bytes_rate_scale),
	[UNIT_FLOP_RATE] = LADDER(flop_rate_scale),
	[UNIT_TRANSFER_RATE] = LADDER(transfer_rate_scale),
	[UNIT_FREQUENCY] = LADDER(frequency_scale),
	[UNIT_TOKEN_RATE] = LADDER(token_rate_scale),
	[UNIT_REQUEST_RATE] = LADDER(request_rate_scale),
	[UNIT_POWER] = LADDER(power_scale),
};

/* Three digits, or more where they stand before the point. */
static void format_number(char *buf, size_t size, double v)
{
	double a = fabs(v);

	if (a == 0)
		snprintf(buf, size, "0");
	else if (a < 0.9995 || a >= 1e6)
		snprintf(buf, size, "%.3g", v);
	else if (a < 9.995)
		snprintf(buf, size, "%.2f", v);
	else if (a < 99.95)
		snprintf(buf, size, "%.1f", v);
	else
		snprintf(buf, size, "%.0f", v);
}

static const struct scale *pick_scale(const struct ladder *l, double value)
{
	const struct scale *best = &l->at[0];

	for (size_t i = 1; i < l->n; i++) {
		double from = l->at[i].from > 0 ? l->at[i].from : l->at[i].size;
		if (fabs(value) >= from * 0.9995) /* 999.7 MB/s would be written 1000 MB/s */
			best = &l->at[i];
	}
	return best;
}

char *units_format(char *buf, size_t size, double value, enum unit_dim dim)
{
	const struct ladder *l = &ladders[dim];
	char number[40];

	if (isnan(value)) {
		snprintf(buf, size, "n/a");
	} else if (dim == UNIT_COUNT && fabs(value) < 1e15) {
		snprintf(buf, size, "%.0f", value);
	} else if (dim == UNIT_FRACTION) {
		format_number(number, sizeof(number), value * 100);
		snprintf(buf, size, "%s%%", number);
	} else if (!l->n) {
		snprintf(buf, size, "%.4g", value);
	} else if (value == 0 || isinf(value)) {
		snprintf(buf, size, "%.0f %s", value, dims[dim].base);
	} else {
		const struct scale *s = pick_scale(l, value);
		double scaled = value / s->size;
		if (dim == UNIT_BYTES && s->size == 1 && scaled == floor(scaled))
			snprintf(number, sizeof(number), "%.0f", scaled);
		else
			format_number(number, sizeof(number), scaled);
		snprintf(buf, size, "%s %s", number, s->unit);
	}
	return buf;
}
