/*
 * trace_format.h - the formats of traces that others write, by name.
 *
 * To add one: write trace_in_NAME.c with its row, and name the row in the table of trace_format.c.
 */
#ifndef SIM_TRACE_TRACE_FORMAT_H
#define SIM_TRACE_TRACE_FORMAT_H

#include "sim/trace/trace_import.h"

/* The beginning of a file; its first line ends where the file or the beginning does, at the latest. */
struct trace_head {
	const char *text;
	size_t len, first_len;
};

struct trace_format {
	const char *name;
	const char *help;    /* who writes it */
	const char *example; /* how such a file begins */
	enum otr_kind kind;
	bool one_sequence;   /* a step is of one sequence, unless it says otherwise */
	bool guesses_phases; /* files do not say what is a decode step: decode_rows does */
	bool has_warmup;     /* what drop_warmup leaves out */
	bool (*sniff)(const struct trace_head *head);
	/* Reads all of im->lines (or im->path, a JSON document) and says it through the functions of trace_import.h.
	   Called twice; must do the same both times. */
	int (*read)(struct trace_import *im, struct err *err);
};

extern const struct trace_format *const trace_format_table[];
extern const size_t trace_format_table_n;

/* NULL with err and the nearest name. */
const struct trace_format *trace_format_find(const char *name, struct err *err);
/* By content; NULL with err when no format, or more than one, looks like it. */
const struct trace_format *trace_format_guess(const char *path, const struct trace_head *head, struct err *err);

/* The first line, or all of the beginning, has this text. */
bool trace_head_line_has(const struct trace_head *head, const char *text);
bool trace_head_has(const struct trace_head *head, const char *text);
/* The first character that is no white space is c. */
bool trace_head_begins(const struct trace_head *head, char c);

#endif
