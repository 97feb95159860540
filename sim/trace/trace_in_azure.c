/*
 * trace_in_azure.c - Azure's LLM inference traces of 2023 and 2024.
 *
 * "2023-11-16 18:17:03.9799600,4808,10": a date with up to nine decimals and, in 2024's, an offset from UTC.
 */
#include <string.h>
#include <time.h>

#include "sim/trace/trace_format.h"

/* n digits at *p as a number from min to max, then the character `then`, if any. */
static bool digits(const char **p, const char *end, int n, char then, int min, int max, int *out)
{
	int value = 0;

	if (end - *p < n + (then != '\0'))
		return false;
	for (; n > 0; n--, ++*p) {
		if (**p < '0' || **p > '9')
			return false;
		value = value * 10 + (**p - '0');
	}
	*out = value;
	return value >= min && value <= max && (!then || *(*p)++ == then);
}

/* ".9799600" -> ns */
static bool fraction(const char **p, const char *end, uint64_t *ns)
{
	uint64_t unit = 1000000000;

	if (*p == end || **p != '.')
		return true;
	for (++*p; *p < end && **p >= '0' && **p <= '9'; ++*p) {
		if (unit == 1)
			return false;
		unit /= 10;
		*ns += unit * (uint64_t)(**p - '0');
	}
	return unit < 1000000000;
}

/* "", "Z" or "+02:00" -> seconds east of UTC */
static bool zone(const char **p, const char *end, int *seconds)
{
	int hours, minutes;

	*seconds = 0;
	if (*p == end || **p == 'Z') {
		*p += *p < end;
		return true;
	}
	bool west = **p == '-';
	if (!west && **p != '+')
		return false;
	++*p;
	if (!digits(p, end, 2, ':', 0, 14, &hours) || !digits(p, end, 2, '\0', 0, 59, &minutes))
		return false;
	*seconds = (west ? -60 : 60) * (hours * 60 + minutes);
	return true;
}

/* ns of the epoch */
static bool date(const char *p, const char *end, uint64_t *ns)
{
	struct tm tm = {0};
	int east;
	char *separator = memchr(p, 'T', (size_t)(end - p));

	*ns = 0;
	if (!digits(&p, end, 4, '-', 1971, 2400, &tm.tm_year) || !digits(&p, end, 2, '-', 1, 12, &tm.tm_mon) ||
		!digits(&p, end, 2, separator ? 'T' : ' ', 1, 31, &tm.tm_mday) || !digits(&p, end, 2, ':', 0, 23, &tm.tm_hour) ||
		!digits(&p, end, 2, ':', 0, 59, &tm.tm_min) || !digits(&p, end, 2, '\0', 0, 59, &tm.tm_sec) ||
		!fraction(&p, end, ns) || !zone(&p, end, &east) || p != end)
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	int day = tm.tm_mday;
	time_t t = timegm(&tm);
	*ns += (uint64_t)(t - east) * 1000000000;
	return tm.tm_mday == day; /* no 30th of February */
}

static bool sniff(const struct trace_head *head)
{
	return trace_head_line_has(head, "TIMESTAMP") && trace_head_line_has(head, "ContextTokens");
}

static int read_all(struct trace_import *im, struct err *err)
{
	static const char *const columns[] = {"TIMESTAMP", "ContextTokens", "GeneratedTokens"};
	struct csv csv;
	struct csv_field f[ARRAY_LEN(columns)];
	int more;

	im->wall_clock = true;
	if (csv_stream(&csv, &im->lines, columns, ARRAY_LEN(columns), 0, im->arena, err))
		return -1;
	while ((more = csv_next(&csv, f, err)) > 0) {
		struct otr_request r = {0};
		if (!date(f[0].text, f[0].text + f[0].len, &r.arrival_ns))
			return csv_error(&csv, &f[0], err, "'%.*s' is not a date such as 2023-11-16 18:17:03.9799600",
				(int)(f[0].len < 64 ? f[0].len : 64), f[0].text);
		if (trace_import_field(&csv, &f[1], columns[1], TRACE_MAX_TOKENS, &r.input_tokens, err) ||
			trace_import_field(&csv, &f[2], columns[2], TRACE_MAX_TOKENS, &r.output_tokens, err) ||
			trace_import_request(im, &r, err))
			return -1;
	}
	return more;
}

const struct trace_format trace_format_azure = {
	.name = "azure",
	.help = "Azure/AzurePublicDataset, LLM inference traces of 2023 and 2024",
	.example = "TIMESTAMP,ContextTokens,GeneratedTokens",
	.kind = OTR_REQUESTS,
	.sniff = sniff,
	.read = read_all,
};
