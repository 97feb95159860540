#include "base/utf8.h"

#include <string.h>

/* Length that the first byte promises, and the smallest code point that may be written so long. */
static size_t lead(unsigned char c, uint32_t *bits, uint32_t *least)
{
	if (c >= 0xc2 && c <= 0xdf) {
		*bits = c & 0x1f;
		*least = 0x80;
		return 2;
	}
	if (c >= 0xe0 && c <= 0xef) {
		*bits = c & 0x0f;
		*least = 0x800;
		return 3;
	}
	if (c >= 0xf0 && c <= 0xf4) {
		*bits = c & 0x07;
		*least = 0x10000;
		return 4;
	}
	return 0;
}

size_t utf8_decode(const char *s, size_t n, uint32_t *cp)
{
	if (!n)
		return 0;
	unsigned char c = (unsigned char)s[0];
	if (c < 0x80) {
		*cp = c;
		return 1;
	}
	uint32_t bits = 0, least = 0;
	size_t len = lead(c, &bits, &least);
	if (!len || len > n)
		return 0;
	for (size_t i = 1; i < len; i++) {
		c = (unsigned char)s[i];
		if ((c & 0xc0) != 0x80)
			return 0;
		bits = bits << 6 | (c & 0x3f);
	}
	if (bits < least || bits > 0x10ffff || (bits >= 0xd800 && bits <= 0xdfff))
		return 0;
	*cp = bits;
	return len;
}

size_t utf8_shown(const char *s, size_t n, bool *shows)
{
	uint32_t cp = 0;
	size_t len = utf8_decode(s, n, &cp);
	bool control = cp < 0x20 || (cp >= 0x7f && cp < 0xa0), line = cp == 0x2028 || cp == 0x2029,
	     order = (cp >= 0x202a && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069);

	*shows = len && !control && !line && !order;
	return len ? len : 1;
}

char *utf8_clean(char *s)
{
	size_t left = strlen(s);
	char *to = s;

	for (const char *from = s; left;) {
		bool shows;
		size_t n = utf8_shown(from, left, &shows);
		if (shows)
			memmove(to, from, n);
		else
			*to = strchr("\t\r\n", *from) ? ' ' : '?';
		to += shows ? n : 1;
		from += n;
		left -= n;
	}
	*to = '\0';
	return s;
}

void utf8_print(const char *s, FILE *to)
{
	size_t left = strlen(s);

	while (left) {
		bool shows;
		size_t n = utf8_shown(s, left, &shows);
		if (shows)
			fwrite(s, 1, n, to);
		else
			fputc('?', to);
		s += n;
		left -= n;
	}
}
