/*
 * What libfyaml never gets to see. It reads by lines and guesses at structure only as far as it must: where it
 * is in doubt, it lets text pass.
 */
#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"
#include "base/yaml_internal.h"

#define MAX_EMPTY_LINES 100

bool yaml_is_control(uint32_t cp)
{
	if (cp < 0x20)
		return cp != '\t' && cp != '\n';
	return (cp >= 0x7f && cp < 0xa0) || cp == 0x2028 || cp == 0x2029 || cp == 0xfeff ||
	       cp == 0xfffe || cp == 0xffff;
}

/* Copies text to out, which has room for one byte more: CR LF as LF, no byte order mark, LF at the end. */
static int clean_text(const char *text, size_t len, const char *file, char *out, size_t *out_len,
		      struct err *err)
{
	struct err_pos pos = {file, 1, 1};
	size_t n = 0;
	size_t i = len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;

	while (i < len) {
		uint32_t cp;
		size_t bytes = utf8_decode(text + i, len - i, &cp);
		if (!bytes)
			return err_at(err, ERR_INPUT, &pos, "byte 0x%02x is not UTF-8",
				(unsigned)(unsigned char)text[i]);
		if (cp == '\r') {
			if (i + 1 == len || text[i + 1] != '\n')
				return err_at(err, ERR_INPUT, &pos, "carriage return without a line feed");
			i++;
			continue;
		}
		if (yaml_is_control(cp))
			return err_at(err, ERR_INPUT, &pos, "control character U+%04" PRIX32, cp);
		memcpy(out + n, text + i, bytes);
		n += bytes;
		i += bytes;
		pos.col++;
		if (cp == '\n') {
			pos.line++;
			pos.col = 1;
		}
	}
	if (n && out[n - 1] != '\n')
		out[n++] = '\n';
	*out_len = n;
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* One line of the cleaned text, its LF left out. */
struct line {
	const char *at;
	size_t n;
	size_t indent; /* spaces in front */
	size_t text;   /* behind the dashes of items ("- - text") and of a document ("--- text"); "a- >" has none */
	struct err_pos pos;
};

static size_t skip_blanks(const struct line *l, size_t i)
{
	while (i < l->n && is_blank(l->at[i]))
		i++;
	return i;
}

/* The end of the quoted text that begins at i, or i when none does; n when it goes on in the next line. */
static size_t skip_quoted(const struct line *l, size_t i)
{
	char quote = l->at[i];

	if ((quote != '"' && quote != '\'') || (i > 0 && !strchr(" \t[{,", l->at[i - 1])))
		return i;
	for (i++; i < l->n; i++) {
		if (quote == '"' && l->at[i] == '\\')
			i++;
		else if (l->at[i] == quote && quote == '\'' && i + 1 < l->n && l->at[i + 1] == quote)
			i++;
		else if (l->at[i] == quote)
			return i + 1;
	}
	return l->n;
}

/* An explicit key ("? a", and its value in the next line) makes libfyaml free twice and read freed memory when a
   tab or a quote follows at the wrong place. Nobody writes one. Where a "?" may be one is judged by what is in
   front of it in its line. */
static int refuse_explicit_key(const struct line *l, struct err *err)
{
	size_t before = l->n; /* the last character that was not blank */

	for (size_t i = l->text; i < l->n; i++) {
		size_t behind = skip_quoted(l, i);
		char c = l->at[i];
		if (c == '#' && (i == 0 || is_blank(l->at[i - 1])))
			return 0;
		bool first = before == l->n || strchr(",[{", l->at[before]) ||
			     (l->at[before] == ':' && before + 1 < i);
		if (c == '?' && first && (i + 1 == l->n || is_blank(l->at[i + 1]))) {
			struct err_pos pos = l->pos;
			pos.col += (int)i;
			return err_at(err, ERR_INPUT, &pos, "keys marked with '?' are not supported; put quotes around text");
		}
		if (behind > i)
			i = behind - 1;
		if (!is_blank(l->at[i]))
			before = i;
	}
	return 0;
}

static void find_text(struct line *l)
{
	while (l->indent < l->n && l->at[l->indent] == ' ')
		l->indent++;
	l->text = l->indent;
	if (l->n > 3 && !memcmp(l->at, "---", 3) && is_blank(l->at[3]))
		l->text = skip_blanks(l, 3);
	while (l->text + 1 < l->n && l->at[l->text] == '-' && is_blank(l->at[l->text + 1]))
		l->text = skip_blanks(l, l->text + 1);
}

/* Behind "|" or ">" there may be digits, "+" and "-", and a comment. */
static bool ends_header(const struct line *l, size_t i)
{
	while (i < l->n && strchr("+-0123456789", l->at[i]))
		i++;
	size_t rest = skip_blanks(l, i);
	return rest == l->n || (l->at[rest] == '#' && rest > i);
}

/* Where a block scalar begins in this line ("|" or ">", whose text is in the next lines), or n. */
static size_t find_block_header(const struct line *l)
{
	size_t before = l->n; /* the last character that was not blank */

	for (size_t i = l->text; i < l->n; i++) {
		size_t behind = skip_quoted(l, i);
		if (behind > i) {
			before = i = behind - 1;
			continue;
		}
		char c = l->at[i];
		bool first = before == l->n || (l->at[before] == ':' && before + 1 < i);
		if ((c == '|' || c == '>') && first && ends_header(l, i + 1))
			return i;
		if (!is_blank(c))
			before = i;
	}
	return l->n;
}

/* The column, from 0, of the map key or list dash that a block scalar at header belongs to; its text stands
   further to the right. -1 for the root. */
static long parent_column(const struct line *l, size_t header)
{
	long dash = (long)l->indent - 1;
	size_t i = l->indent;

	if (l->n >= 3 && !memcmp(l->at, "---", 3))
		return -1;
	while (i + 1 < l->n && l->at[i] == '-' && is_blank(l->at[i + 1])) {
		dash = (long)i;
		i = skip_blanks(l, i + 1);
	}
	return i == header ? dash : (long)i;
}

/* What goes on from line to line. */
struct line_state {
	bool in_block;         /* in the text of a block scalar, or before it */
	bool wants_text;       /* no line of that text has been seen yet */
	long parent;           /* parent_column */
	struct err_pos header; /* of the block scalar */
	int empty;             /* empty lines in a row */
};

static int refuse_empty_block(struct line_state *s, struct err *err)
{
	return err_at(err, ERR_INPUT, &s->header, "no text behind '|' or '>'; write \"\" for none");
}

static int check_line(struct line *l, struct line_state *s, struct err *err)
{
	find_text(l);
	if (skip_blanks(l, 0) == l->n) {
		/* libfyaml looks from each empty line to the last of them, and keeps all on the stack. */
		if (++s->empty > MAX_EMPTY_LINES)
			return err_at(err, ERR_INPUT, &l->pos, "more than %d empty lines", MAX_EMPTY_LINES);
		return 0;
	}
	s->empty = 0;
	if (l->at[0] == '%')
		return err_at(err, ERR_INPUT, &l->pos, "a line must not begin with '%%'");
	if (s->in_block && (long)l->indent > s->parent) {
		s->wants_text = false;
		return 0;
	}
	/* libfyaml would take this line, which is none of its text, for the text of the block scalar. */
	if (s->in_block && s->wants_text)
		return refuse_empty_block(s, err);
	size_t header = find_block_header(l);
	s->in_block = s->wants_text = header < l->n;
	if (s->in_block) {
		s->parent = parent_column(l, header);
		s->header = l->pos;
		s->header.col += (int)header;
	}
	return refuse_explicit_key(l, err);
}

int yaml_gate(const char *text, size_t len, const char *file, char *out, size_t *out_len, struct err *err)
{
	struct line_state state = {0};
	struct err_pos pos = {file, 1, 1};

	if (clean_text(text, len, file, out, out_len, err))
		return -1;
	for (const char *p = out, *end = out + *out_len; p < end; pos.line++) {
		const char *lf = memchr(p, '\n', (size_t)(end - p));
		struct line line = {p, (size_t)(lf - p), 0, 0, pos};
		if (check_line(&line, &state, err))
			return -1;
		p = lf + 1;
	}
	return state.in_block && state.wants_text ? refuse_empty_block(&state, err) : 0;
}
