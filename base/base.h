/*
 * base.h - the few macros everyone may use.
 */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#define PRINTF_LIKE(fmt, first) __attribute__((format(printf, fmt, first)))

/* A broken invariant of our own: say where and abort. Never for bad input. */
#define BUG(...)                                                                                   \
	do {                                                                                       \
		fprintf(stderr, "offsim: BUG at %s:%d: ", __FILE__, __LINE__);                     \
		fprintf(stderr, __VA_ARGS__);                                                      \
		fputc('\n', stderr);                                                               \
		abort();                                                                           \
	} while (0)

/* Before a short loop: written out whole, so that arrays of vectors live in registers. */
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#endif
