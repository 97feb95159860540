/*
 * hash.h - 64-bit FNV-1a (Fowler, Noll, Vo; public domain), for run keys: not against adversaries.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/base.h"

#define HASH_INIT UINT64_C(0xcbf29ce484222325)

uint64_t hash_bytes(uint64_t h, const void *data, size_t len);
uint64_t hash_text(uint64_t h, const char *s); /* includes the NUL, so that "ab","c" != "a","bc" */

#endif
