#include "base/csv.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "base/file.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "base/vec.h"

#define CSV_MAX_BYTES ((size_t)4 << 30)

int csv_error(const struct csv *csv, const struct csv_field *f, struct err *err, const char *fmt, ...)
{
	struct err_pos pos = {csv->path, f->line, f->col};
	char msg[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	return err_at(err, ERR_INPUT, &pos, "%s", msg);
}

/* Unescapes a quoted field in place; csv->at is on the opening quote, and on what follows the closing one after. */
static int quoted(struct csv *csv, struct csv_field *f, struct err *err)
{
	char *to = ++csv->at;

	f->text = to;
	for (;;) {
		char *quote = memchr(csv->at, '"', (size_t)(csv->end - csv->at));
		if (!quote)
			return csv_error(csv, f, err, "a quoted field does not end");
		for (const char *p = csv->at; p < quote; p++) {
			if (*p == '\n') {
				csv->next_line++;
				csv->line_start = p + 1;
			}
		}
		memmove(to, csv->at, (size_t)(quote - csv->at));
		to += quote - csv->at;
		csv->at = quote + 1;
		if (csv->at == csv->end || *csv->at != '"')
			break;
		*to++ = '"';
		csv->at++;
	}
	f->len = (size_t)(to - f->text);
	if (csv->at < csv->end && *csv->at != ',' && *csv->at != '\n' && *csv->at != '\r')
		return csv_error(csv, f, err, "text behind the closing quote");
	return 0;
}

static const bool ends_field[256] = {['\0'] = true, [','] = true, ['\n'] = true, ['\r'] = true};

/* Reads one field and what ends it. Returns 1 when more of the row follows, 0 at its end, -1. */
static int next_field(struct csv *csv, struct csv_field *f, struct err *err)
{
	f->line = csv->next_line;
	f->col = (int)(csv->at - csv->line_start) + 1;
	if (csv->at < csv->end && *csv->at == '"') {
		if (quoted(csv, f, err))
			return -1;
	} else {
		f->text = csv->at;
		/* The text ends with a NUL, so the scan needs no other bound; a NUL inside is data. */
		while (!ends_field[(unsigned char)*csv->at] || (*csv->at == '\0' && csv->at < csv->end))
			csv->at++;
		f->len = (size_t)(csv->at - f->text);
	}
	if (csv->at == csv->end)
		return 0;
	if (*csv->at == ',') {
		csv->at++;
		return 1;
	}
	if (*csv->at == '\r' && csv->at + 1 < csv->end && csv->at[1] == '\n')
		csv->at++;
	csv->at++;
	csv->next_line++;
	return 0;
}

/* To the next line that is not empty. Returns 0 at the end. */
static int begin_row(struct csv *csv, struct err *err)
{
	if (csv->lines) {
		size_t len = 0;
		int more;
		while ((more = lines_next(csv->lines, &csv->at, &len, err)) > 0 && len == 0)
			;
		if (more <= 0)
			return more;
		csv->end = csv->at + len;
		csv->next_line = csv->lines->line;
	}
	while (csv->at < csv->end && (*csv->at == '\n' || *csv->at == '\r'))
		csv->next_line += *csv->at++ == '\n';
	csv->line = csv->next_line;
	csv->line_start = csv->at;
	return csv->at < csv->end;
}

struct unknown_columns {
	VEC(struct csv_field);
};

/* The unknown column that a missing one was meant by, NULL when none is near. */
static const struct csv_field *misspelt(const char *name, const struct unknown_columns *unknown)
{
	struct suggest s;
	const struct csv_field *near = NULL;

	suggest_init(&s, name);
	for (size_t i = 0; i < unknown->n; i++) {
		const char *before = suggest_best(&s);
		suggest_offer(&s, unknown->at[i].text);
		if (suggest_best(&s) != before)
			near = &unknown->at[i];
	}
	return near;
}

/* strict: an optional column that is misspelt is not merely missing. */
static int read_header(struct csv *csv, const char *const *wanted, size_t n_required, bool strict, struct arena *a,
	struct err *err)
{
	struct {
		VEC(int);
	} columns = {0};
	struct unknown_columns unknown = {0};
	bool *have = arena_array(a, bool, csv->n_wanted);
	struct csv_field f;
	int more;

	if (begin_row(csv, err) < 0)
		return -1;
	do {
		if ((more = next_field(csv, &f, err)) < 0)
			return -1;
		int found = -1;
		for (size_t i = 0; i < csv->n_wanted; i++)
			if (strlen(wanted[i]) == f.len && memcmp(wanted[i], f.text, f.len) == 0)
				found = (int)i;
		if (found >= 0 && have[found])
			return csv_error(csv, &f, err, "column '%s' is there twice", wanted[found]);
		if (found >= 0) {
			have[found] = true;
		} else {
			f.text = arena_strndup(a, f.text, f.len);
			VEC_PUSH(&unknown, a, f);
		}
		VEC_PUSH(&columns, a, found);
	} while (more);
	csv->column = columns.at;
	csv->n_columns = columns.n;
	for (size_t i = 0; i < (strict ? csv->n_wanted : n_required); i++) {
		const struct csv_field *near = have[i] ? NULL : misspelt(wanted[i], &unknown);
		if (near)
			return csv_error(csv, near, err, "unknown column '%s'; did you mean '%s'?", near->text, wanted[i]);
		if (!have[i] && i < n_required) {
			struct csv_field first = {.line = csv->line, .col = 1};
			return csv_error(csv, &first, err, "the header has no column '%s'", wanted[i]);
		}
	}
	return 0;
}

static void begin(struct csv *csv, const char *path, char *text, size_t len, size_t n_wanted)
{
	*csv = (struct csv){.path = path, .at = text, .end = text + len, .next_line = 1, .n_wanted = n_wanted};
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		csv->at += 3; /* the mark that spreadsheets put before UTF-8 */
}

int csv_open(struct csv *csv, const char *path, const char *const *wanted, size_t n_wanted, struct arena *a,
	struct err *err)
{
	return csv_open_some(csv, path, wanted, n_wanted, 0, a, err);
}

int csv_open_some(struct csv *csv, const char *path, const char *const *wanted, size_t n_wanted, size_t n_optional,
	struct arena *a, struct err *err)
{
	size_t len;
	char *text;

	if (file_read(path, CSV_MAX_BYTES, a, &text, &len, err))
		return -1;
	begin(csv, path, text, len, n_wanted);
	return read_header(csv, wanted, n_wanted - n_optional, true, a, err);
}

int csv_begin(struct csv *csv, const char *path, char *text, size_t len, const char *const *wanted, size_t n_wanted,
	size_t n_required, struct arena *a, struct err *err)
{
	begin(csv, path, text, len, n_wanted);
	return read_header(csv, wanted, n_required, false, a, err);
}

int csv_stream(struct csv *csv, struct lines *l, const char *const *wanted, size_t n_wanted, size_t n_optional,
	struct arena *a, struct err *err)
{
	static char nothing[1];

	*csv = (struct csv){.path = l->path, .lines = l, .at = nothing, .end = nothing, .next_line = 1, .n_wanted = n_wanted};
	return read_header(csv, wanted, n_wanted - n_optional, false, a, err);
}

int csv_next(struct csv *csv, struct csv_field *field, struct err *err)
{
	struct csv_field f;
	size_t n = 0;
	int more;

	if ((more = begin_row(csv, err)) <= 0)
		return more;
	memset(field, 0, csv->n_wanted * sizeof(*field));
	do {
		if ((more = next_field(csv, &f, err)) < 0)
			return -1;
		if (n == csv->n_columns)
			return csv_error(csv, &f, err, "more than the %zu fields of the header", csv->n_columns);
		if (csv->column[n] >= 0)
			field[csv->column[n]] = f;
		n++;
	} while (more);
	if (csv->lines && csv->at < csv->end) {
		struct csv_field stray = {.line = csv->line, .col = (int)(csv->at - csv->line_start)};
		return csv_error(csv, &stray, err, "a carriage return within a line");
	}
	if (n < csv->n_columns) {
		f.line = csv->line;
		f.col = 1;
		return csv_error(csv, &f, err, "%zu fields where the header has %zu", n, csv->n_columns);
	}
	return 1;
}

char *csv_text(const struct csv_field *f, struct arena *a)
{
	return f->text ? utf8_clean(arena_strndup(a, f->text, f->len)) : arena_strdup(a, "");
}

void csv_print_field(const char *text, size_t len, FILE *to)
{
	bool quote = false;

	for (size_t i = 0; i < len && !quote; i++)
		quote = text[i] == ',' || text[i] == '"' || text[i] == '\n' || text[i] == '\r';
	if (!quote) {
		fwrite(text, 1, len, to);
		return;
	}
	fputc('"', to);
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '"')
			fputc('"', to);
		fputc(text[i], to);
	}
	fputc('"', to);
}
