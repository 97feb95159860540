/*
 * scan.h - walks over JSON that machines wrote, without building a tree.
 *
 * The index of a large checkpoint has 10 MB and a hundred thousand names, of which little is needed: a tree
 *of it (base/json.h) costs half a second and 100 MB. A walk sees the file through a window and takes 20 ms.
 *Messages end in "at byte N".
 *
 *	scan_begin(&s, '{', err);
 *	for (n = 0; (rc = scan_key(&s, n, &key, &len, err)) > 0; n++)
 *		scan_count(&s, max, &value, err) | scan_text(…) | scan_skip(…)
 */
#ifndef MODELS_SCAN_H
#define MODELS_SCAN_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"

struct scan {
	const char *file; /* for messages */
	struct arena *arena;
	/* private: text[at … len) is yet to be read; text begins at byte `base` of the file */
	const char *text;
	size_t len, at;
	uint64_t base;
	char *window; /* is text, when that is a part of the file; NULL: text is all */
	int fd;
	uint64_t end; /* byte of the file where the JSON ends */
	size_t keep;  /* what the window must not lose: a string that is being read */
	bool keeps;
	int fault; /* errno of a read that failed; -1: the file got shorter */
};

/* text: byte `base` of the file and on */
void scan_memory(
	struct scan *s, const char *text, size_t len, uint64_t base, const char *file, struct arena *a);
/* Bytes from … end of an open file. */
void scan_file(struct scan *s, int fd, uint64_t from, uint64_t end, const char *file, struct arena *a);

/* Takes the '{' or '[' that must come now. */
int scan_begin(struct scan *s, char bracket, struct err *err);
/* Key n (from 0) of an object, its value is next: 1; 0: the object has ended. The text has no NUL behind it
   and holds until the next call. */
int scan_key(struct scan *s, size_t n, const char **key, size_t *len, struct err *err);
/* Element n of an array is next: 1; 0: the array has ended. */
int scan_element(struct scan *s, size_t n, struct err *err);

/* Text as that of scan_key; 65535 bytes at most. */
int scan_text(struct scan *s, const char **text, size_t *len, struct err *err);
/* A whole number up to max, perhaps written as a float ("total_size": 13731385408.0). */
int scan_count(struct scan *s, uint64_t max, uint64_t *out, struct err *err);
/* Any value, whatever is in it. */
int scan_skip(struct scan *s, struct err *err);
/* The first character of the next value; 0 at the end. */
char scan_peek(struct scan *s);
/* Only white space is left. */
int scan_end(struct scan *s, struct err *err);

/* Byte of the file that is next. */
uint64_t scan_at(const struct scan *s);
/* An error at this byte of the file; -1. */
int scan_fault(const struct scan *s, uint64_t at, struct err *err, const char *fmt, ...) PRINTF_LIKE(4, 5);

#endif
