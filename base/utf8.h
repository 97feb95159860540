/*
 * utf8.h - one character of UTF-8 at a time, strictly: no overlong forms, no surrogates, nothing above
 * U+10FFFF.
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>

#include "base/base.h"

/* Bytes of the character at s (n bytes are there), 0 when it is none; *cp is set on success. */
size_t utf8_decode(const char *s, size_t n, uint32_t *cp);

/* Bytes of what is at s (n > 0 bytes are there): of a character, or 1 where there is none. *shows: may be printed as it is;
   what could move a cursor, break a line or turn its order, and what is no UTF-8, may not. */
size_t utf8_shown(const char *s, size_t n, bool *shows);
/* Of a text, in place: what may not is a '?', a tab or the end of a line a blank. Returns s. */
char *utf8_clean(char *s);
/* Prints a text, '?' for what may not be shown. */
void utf8_print(const char *s, FILE *to);

#endif
