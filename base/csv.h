/*
 * csv.h - comma-separated files (RFC 4180) with a header line, one row at a time.
 *
 * Columns are found by name, in any order, and others are passed over; every complaint has line and
 * column. A file is read whole (csv_open), and fields point into its text (a quoted one is unescaped in place), or
 * by lines (csv_stream), whatever its size: then a field lives until the next row and has no line breaks.
 */
#ifndef BASE_CSV_H
#define BASE_CSV_H

#include "base/arena.h"
#include "base/err.h"
#include "base/lines.h"

struct csv_field {
	const char *text;
	size_t len;
	int line, col; /* where it begins, from 1 */
};

struct csv {
	const char *path;
	struct lines *lines;  /* where rows come from; NULL: all is there */
	char *at, *end;
	int line;             /* of the row read last */
	int next_line;
	const char *line_start; /* of the line that `at` is in */
	size_t n_columns;     /* in the file */
	size_t n_wanted;
	int *column;          /* file column -> wanted index, -1: passed over */
};

/* Reads the file and its header; each wanted column must be there, once. */
int csv_open(struct csv *csv, const char *path, const char *const *wanted, size_t n_wanted, struct arena *a,
	     struct err *err);
/* The same; the last n_optional of the wanted columns may be missing: the text of their fields is NULL. One that is missing
   where another is named nearly so is misspelt: an error. */
int csv_open_some(struct csv *csv, const char *path, const char *const *wanted, size_t n_wanted, size_t n_optional,
	struct arena *a, struct err *err);
/* The same from the next line of a file on. The last n_optional of the wanted columns may be missing: the text of
   their fields is NULL. */
int csv_stream(struct csv *csv, struct lines *l, const char *const *wanted, size_t n_wanted, size_t n_optional,
	struct arena *a, struct err *err);
/* The same from text that must have a NUL behind it and stay as long as the fields; of the wanted columns only the
   first n_required must be there, and fields of the others that are not have a NULL text. */
int csv_begin(struct csv *csv, const char *path, char *text, size_t len, const char *const *wanted, size_t n_wanted,
	      size_t n_required, struct arena *a, struct err *err);
/* 1: a row, field[i] is wanted column i; 0: the end; -1: an error (too few or too many fields, stray quote). */
int csv_next(struct csv *csv, struct csv_field *field, struct err *err);
/* An error at a field of the row read last; returns -1. */
int csv_error(const struct csv *csv, const struct csv_field *f, struct err *err, const char *fmt, ...)
	PRINTF_LIKE(4, 5);

/* A field as a text of the arena that may be shown (utf8_clean); "" where the column is missing. */
char *csv_text(const struct csv_field *f, struct arena *a);

/* Writes a field, in quotes where it must be. */
void csv_print_field(const char *text, size_t len, FILE *to);

#endif
