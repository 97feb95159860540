/*
 * utf8.h - one character of UTF-8 at a time, strictly: no overlong forms, no surrogates, nothing above
 * U+10FFFF.
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "base/base.h"

/* Bytes of the character at s (n bytes are there), 0 when it is none; *cp is set on success. */
size_t utf8_decode(const char *s, size_t n, uint32_t *cp);

#endif
