#include "plots/data.h"

#include <math.h>
#include <string.h>

void data_text(struct data *d, const char *text)
{
	size_t len = strlen(text);

	VEC_RESERVE(d, d->arena, d->n + len + 1);
	memcpy(d->at + d->n, text, len + 1);
	d->n += len;
}

void data_block(struct data *d)
{
	data_text(d, "\n\n");
}

/* What would end a string in quotes, or the line, is replaced. */
static const char *clean(struct data *d, const char *name)
{
	char *copy = arena_strdup(d->arena, name);

	for (char *p = copy; *p; p++) {
		if ((unsigned char)*p < ' ')
			*p = ' ';
		else if (*p == '"' || *p == '\\')
			*p = '\'';
	}
	return copy;
}

void data_name(struct data *d, const char *name, const char *after)
{
	data_text(d, arena_printf(d->arena, "\"%s\"%s", clean(d, name), after));
}

void data_lines(struct data *d, const char *name)
{
	const char *rest = clean(d, name), *end;

	data_text(d, "\"");
	for (; (end = strstr(rest, ", ")); rest = end + 2)
		data_text(d, arena_printf(d->arena, "%.*s,\\n", (int)(end - rest), rest));
	data_text(d, arena_printf(d->arena, "%s\"\n", rest));
}

void data_number(struct data *d, double value, const char *after)
{
	char text[40];

	if (isfinite(value))
		snprintf(text, sizeof(text), "%.10g%s", value, after);
	else
		snprintf(text, sizeof(text), "NaN%s", after);
	data_text(d, text);
}
