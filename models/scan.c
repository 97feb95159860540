/*
 * scan.c - JSON as RFC 8259 has it, walked over.
 */
#include "models/scan.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"

#define MAX_DEPTH 64
#define MAX_TEXT 65535
#define WINDOW_BYTES (256 << 10)
/* Numbers, escapes, words and characters are no longer. */
#define AHEAD 64

void scan_memory(
	struct scan *s, const char *text, size_t len, uint64_t base, const char *file, struct arena *a)
{
	*s = (struct scan){.file = file, .arena = a, .text = text, .len = len, .base = base, .fd = -1};
	s->end = base + len;
}

void scan_file(struct scan *s, int fd, uint64_t from, uint64_t end, const char *file, struct arena *a)
{
	uint64_t n = end - from;

	*s = (struct scan){.file = file, .arena = a, .base = from, .fd = fd, .end = end};
	s->text = s->window = arena_alloc(a, n < WINDOW_BYTES ? (size_t)n : WINDOW_BYTES);
}

uint64_t scan_at(const struct scan *s)
{
	return s->base + s->at;
}

int scan_fault(const struct scan *s, uint64_t at, struct err *err, const char *fmt, ...)
{
	struct err_pos pos = {.file = s->file};
	char msg[512];
	va_list ap;

	if (s->fault > 0)
		return err_at(err, ERR_IO, &pos, "cannot be read: %s", strerror(s->fault));
	if (s->fault)
		return err_at(err, ERR_IO, &pos, "got shorter while it was read: ends at byte %" PRIu64,
			s->base + s->len);
	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	return err_at(err, ERR_INPUT, &pos, "%s at byte %" PRIu64, msg, at);
}

/* Moves the window on: what is yet to be read, or kept, comes to its beginning. */
static void refill(struct scan *s)
{
	size_t keep = s->keeps ? s->keep : s->at, room;

	memmove(s->window, s->window + keep, s->len - keep);
	s->base += keep;
	s->at -= keep;
	s->len -= keep;
	s->keep = 0;
	room = WINDOW_BYTES - s->len;
	if (room > s->end - s->base - s->len)
		room = (size_t)(s->end - s->base - s->len);
	while (room) {
		ssize_t got = pread(s->fd, s->window + s->len, room, (off_t)(s->base + s->len));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			s->fault = got < 0 ? errno : -1;
			s->end = s->base + s->len;
			return;
		}
		s->len += (size_t)got;
		room -= (size_t)got;
	}
}

/* After this n bytes are there, unless the text ends before. */
static void ahead(struct scan *s, size_t n)
{
	if (s->len - s->at < n && s->window && s->base + s->len < s->end)
		refill(s);
}

char scan_peek(struct scan *s)
{
	for (;;) {
		ahead(s, AHEAD);
		while (s->at < s->len) {
			char c = s->text[s->at];

			if (c != ' ' && c != '\n' && c != '\t' && c != '\r') {
				ahead(s, AHEAD);
				return c;
			}
			s->at++;
		}
		if (!s->window || s->base + s->len == s->end)
			return '\0';
	}
}

/* Takes one character that must come now. */
static int take(struct scan *s, char want, struct err *err)
{
	char c = scan_peek(s);

	if (!c && s->at == s->len)
		return scan_fault(s, scan_at(s), err, "ends where '%c' must follow", want);
	if (c != want)
		return scan_fault(s, scan_at(s), err, "needs a '%c'", want);
	s->at++;
	return 0;
}

int scan_begin(struct scan *s, char bracket, struct err *err)
{
	return take(s, bracket, err);
}

/* Up to entry n of an object or array: 1; past its end: 0. */
static int next_entry(struct scan *s, size_t n, char end, struct err *err)
{
	if (scan_peek(s) == end) {
		s->at++;
		return 0;
	}
	return n && take(s, ',', err) ? -1 : 1;
}

int scan_key(struct scan *s, size_t n, const char **key, size_t *len, struct err *err)
{
	int rc = next_entry(s, n, '}', err);

	if (rc <= 0)
		return rc;
	return scan_text(s, key, len, err) || take(s, ':', err) ? -1 : 1;
}

int scan_element(struct scan *s, size_t n, struct err *err)
{
	return next_entry(s, n, ']', err);
}

static int hex4(const struct scan *s, size_t at, uint32_t *out, struct err *err)
{
	*out = 0;
	for (size_t i = at; i < at + 4; i++) {
		char c = i < s->len ? s->text[i] : '\0';
		uint32_t digit;

		if (c >= '0' && c <= '9')
			digit = (uint32_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			digit = (uint32_t)(c - 'a') + 10;
		else if (c >= 'A' && c <= 'F')
			digit = (uint32_t)(c - 'A') + 10;
		else
			return scan_fault(s, s->base + i, err, "has a bad \\u escape");
		*out = *out << 4 | digit;
	}
	return 0;
}

static size_t put_utf8(char *to, uint32_t cp)
{
	if (cp < 0x80) {
		to[0] = (char)cp;
		return 1;
	}
	if (cp < 0x800) {
		to[0] = (char)(0xc0 | cp >> 6);
		to[1] = (char)(0x80 | (cp & 0x3f));
		return 2;
	}
	if (cp < 0x10000) {
		to[0] = (char)(0xe0 | cp >> 12);
		to[1] = (char)(0x80 | (cp >> 6 & 0x3f));
		to[2] = (char)(0x80 | (cp & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | cp >> 18);
	to[1] = (char)(0x80 | (cp >> 12 & 0x3f));
	to[2] = (char)(0x80 | (cp >> 6 & 0x3f));
	to[3] = (char)(0x80 | (cp & 0x3f));
	return 4;
}

/* The escape whose backslash is at s->at; moves past it. Nothing decodes to more bytes than it was written
   in. to NULL: only checks. */
static int escape(struct scan *s, char *to, size_t *n, struct err *err)
{
	static const char from[] = "\"\\/bfnrt", plain[] = "\"\\/\b\f\n\r\t";
	size_t at = s->at;
	char c = at + 1 < s->len ? s->text[at + 1] : '\0';
	const char *known = c ? strchr(from, c) : NULL;
	uint32_t cp, low;
	char bytes[4];

	s->at += 2;
	*n = 1;
	if (known) {
		bytes[0] = plain[known - from];
	} else if (c == 'u') {
		if (hex4(s, s->at, &cp, err))
			return -1;
		s->at += 4;
		if (cp >= 0xd800 && cp < 0xdc00) {
			if (s->at + 1 >= s->len || s->text[s->at] != '\\' || s->text[s->at + 1] != 'u')
				return scan_fault(s, s->base + at, err, "has half a surrogate pair");
			if (hex4(s, s->at + 2, &low, err))
				return -1;
			if (low < 0xdc00 || low > 0xdfff)
				return scan_fault(s, s->base + at, err, "has half a surrogate pair");
			s->at += 6;
			cp = 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00);
		} else if (cp >= 0xdc00 && cp < 0xe000) {
			return scan_fault(s, s->base + at, err, "has half a surrogate pair");
		}
		*n = put_utf8(bytes, cp);
	} else {
		return scan_fault(s, s->base + at, err, "has an unknown escape");
	}
	if (to)
		memcpy(to, bytes, *n);
	return 0;
}

/* Bytes at p that need no look: ASCII, no control character, neither quote nor backslash. Eight at a time:
   names are most of an index. (Sean Anderson, Bit Twiddling Hacks: "determine if a word has a byte less than
   n"; a byte of 0x80 or more is told by its own bit.) */
static size_t plain_prefix(const char *p, size_t n)
{
	const uint64_t ones = UINT64_C(0x0101010101010101), tops = UINT64_C(0x8080808080808080);
	size_t i = 0;

	while (n - i >= 8) {
		uint64_t w, quote, slash;

		memcpy(&w, p + i, 8);
		quote = w ^ ones * '"';
		slash = w ^ ones * '\\';
		if ((w | (w - ones * 0x20) | (quote - ones) | (slash - ones)) & tops)
			break;
		i += 8;
	}
	return i;
}

/* Moves past the closing quote of a string whose first character is next; *escapes: some were there. */
static int check_text(struct scan *s, bool *escapes, struct err *err)
{
	uint64_t open = scan_at(s) - 1;
	uint32_t cp;
	size_t n;

	*escapes = false;
	for (;;) {
		unsigned char c;

		ahead(s, AHEAD);
		if (s->keeps && s->at - s->keep > MAX_TEXT)
			return scan_fault(s, open, err, "has a string of more than %d bytes", MAX_TEXT);
		s->at += plain_prefix(s->text + s->at, s->len - s->at);
		if (s->at == s->len && s->window && s->base + s->len < s->end)
			continue;
		if (s->at == s->len)
			return scan_fault(s, open, err, "has a string without an end");
		ahead(s, AHEAD);
		c = (unsigned char)s->text[s->at];
		if (c == '"') {
			s->at++;
			return 0;
		}
		if (c == '\\') {
			*escapes = true;
			if (escape(s, NULL, &n, err))
				return -1;
		} else if (c < 0x20) {
			return scan_fault(s, scan_at(s), err, "has a control character in a string");
		} else if (c < 0x80) {
			s->at++;
		} else {
			n = utf8_decode(s->text + s->at, s->len - s->at, &cp);
			if (!n)
				return scan_fault(s, scan_at(s), err, "is not UTF-8");
			s->at += n;
		}
	}
}

int scan_text(struct scan *s, const char **text, size_t *len, struct err *err)
{
	size_t to, out = 0, n;
	bool escapes;
	char *copy;
	int rc;

	if (scan_peek(s) != '"')
		return scan_fault(s, scan_at(s), err, "needs a string");
	s->keep = ++s->at;
	s->keeps = true;
	rc = check_text(s, &escapes, err);
	s->keeps = false;
	if (rc)
		return -1;
	to = s->at - 1;
	*text = s->text + s->keep;
	*len = to - s->keep;
	if (!escapes)
		return 0;
	copy = arena_alloc(s->arena, *len + 1);
	for (s->at = s->keep; s->at < to;) {
		if (s->text[s->at] == '\\') {
			if (escape(s, copy + out, &n, err))
				return -1;
			out += n;
		} else {
			copy[out++] = s->text[s->at++];
		}
	}
	s->at = to + 1;
	*text = copy;
	*len = out;
	return 0;
}

static int skip_text(struct scan *s, struct err *err)
{
	bool escapes;

	s->at++;
	return check_text(s, &escapes, err);
}

static size_t digits(const struct scan *s, size_t at)
{
	size_t n = 0;

	while (at + n < s->len && s->text[at + n] >= '0' && s->text[at + n] <= '9')
		n++;
	return n;
}

/* Moves past a number; *is_whole: it has neither fraction nor exponent nor sign. */
static int take_number(struct scan *s, bool *is_whole, struct err *err)
{
	size_t at = s->at, i = at, n;

	*is_whole = true;
	if (i < s->len && s->text[i] == '-') {
		*is_whole = false;
		i++;
	}
	n = digits(s, i);
	if (!n || (n > 1 && s->text[i] == '0'))
		return scan_fault(s, s->base + at, err, "needs a value");
	i += n;
	if (i < s->len && s->text[i] == '.') {
		*is_whole = false;
		n = digits(s, ++i);
		if (!n)
			return scan_fault(s, s->base + at, err, "has a bad number");
		i += n;
	}
	if (i < s->len && (s->text[i] == 'e' || s->text[i] == 'E')) {
		*is_whole = false;
		i++;
		if (i < s->len && (s->text[i] == '+' || s->text[i] == '-'))
			i++;
		n = digits(s, i);
		if (!n)
			return scan_fault(s, s->base + at, err, "has a bad number");
		i += n;
	}
	s->at = i;
	return 0;
}

/* What take_number moved past, as a float. */
static bool whole_float(const char *text, size_t len, uint64_t *out)
{
	char buf[64];
	double v;

	if (len >= sizeof(buf))
		return false;
	memcpy(buf, text, len);
	buf[len] = '\0';
	v = strtod(buf, NULL);
	if (!(v >= 0 && v < 0x1p64) || v != floor(v))
		return false;
	*out = (uint64_t)v;
	return true;
}

int scan_count(struct scan *s, uint64_t max, uint64_t *out, struct err *err)
{
	bool is_whole, good = true;
	uint64_t v = 0;
	size_t at;

	scan_peek(s);
	at = s->at;
	if (take_number(s, &is_whole, err))
		return -1;
	if (is_whole) {
		for (size_t i = at; i < s->at && good; i++) {
			good = !__builtin_mul_overflow(v, 10, &v) &&
			       !__builtin_add_overflow(v, (uint64_t)(s->text[i] - '0'), &v);
		}
	} else {
		good = whole_float(s->text + at, s->at - at, &v);
	}
	if (!good || v > max)
		return scan_fault(s, s->base + at, err, "has '%.*s', no whole number from 0 to %" PRIu64,
			s->at - at > 40 ? 40 : (int)(s->at - at), s->text + at, max);
	*out = v;
	return 0;
}

static int skip_word(struct scan *s, const char *word, struct err *err)
{
	size_t n = strlen(word);

	if (s->len - s->at < n || memcmp(s->text + s->at, word, n))
		return scan_fault(s, scan_at(s), err, "needs a value");
	s->at += n;
	return 0;
}

static int skip(struct scan *s, int depth, struct err *err)
{
	const char *text;
	bool is_whole;
	size_t len, n;
	int rc;
	char c = scan_peek(s);

	if (depth > MAX_DEPTH)
		return scan_fault(s, scan_at(s), err, "is nested too deeply");
	switch (c) {
	case '"':
		return skip_text(s, err);
	case 't':
		return skip_word(s, "true", err);
	case 'f':
		return skip_word(s, "false", err);
	case 'n':
		return skip_word(s, "null", err);
	case '{':
		s->at++;
		for (n = 0; (rc = scan_key(s, n, &text, &len, err)) > 0; n++) {
			if (skip(s, depth + 1, err))
				return -1;
		}
		return rc;
	case '[':
		s->at++;
		for (n = 0; (rc = scan_element(s, n, err)) > 0; n++) {
			if (skip(s, depth + 1, err))
				return -1;
		}
		return rc;
	default:
		return take_number(s, &is_whole, err);
	}
}

int scan_skip(struct scan *s, struct err *err)
{
	return skip(s, 0, err);
}

int scan_end(struct scan *s, struct err *err)
{
	scan_peek(s);
	if (s->at < s->len)
		return scan_fault(s, scan_at(s), err, "goes on after its end");
	return 0;
}
