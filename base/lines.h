/*
 * lines.h - a text file of any size, a line at a time, in bounded memory.
 *
 * A window moves over the file and grows up to the longest line allowed:
 *
 *	[lines given already │ the line at hand \0 │ read ahead … │ free]
 *
 * A mark of UTF-8 at the beginning is passed over, a carriage return at the end of a line is no part of it, and a
 * NUL byte is refused: such a file is no text.
 */
#ifndef BASE_LINES_H
#define BASE_LINES_H

#include <stdbool.h>

#include "base/err.h"

struct lines {
	const char *path;
	int fd;
	int line;         /* number of the line read last, from 1 */
	bool unended;     /* it was the last one and has no end of line: it may have been cut */
	uint64_t n_bytes; /* taken from the file so far */
	/* the window */
	char *buffer;
	size_t at, n, cap; /* what is next; how much is there */
	size_t max_line;
	size_t text, len; /* the line at hand */
	bool end, again;
};

/* path must outlive l. A file that is missing or is a folder is ERR_INPUT. */
int lines_open(struct lines *l, const char *path, size_t max_line, struct err *err);
void lines_close(struct lines *l);

/* 1: *text holds len bytes and a NUL, until the next call, and may be changed; 0: the end; -1. */
int lines_next(struct lines *l, char **text, size_t *len, struct err *err);
/* The next call of lines_next gives the same line once more. */
void lines_again(struct lines *l);
/* From the beginning; a pipe cannot. */
int lines_rewind(struct lines *l, struct err *err);
/* What the file begins with, at most max bytes, not taken: only before the first lines_next. */
int lines_head(struct lines *l, size_t max, const char **text, size_t *len, struct err *err);

#endif
