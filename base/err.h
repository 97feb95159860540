/*
 * err.h - errors as values.
 *
 * A function that can fail returns 0 or -1 and takes `struct err *err` last. The place that knows the
 * fault fills it with a message complete enough to print as it is; callers on the way up may only add
 * what they alone know (err_prefix). The library never prints and never exits: sim/cmd does both.
 *
 *	if (yaml_read_file(path, a, &root, err) || scenario_fill(root, s, err))
 *		return -1;
 *
 * printed:  offsim: scenarios/x.yaml:7:18: unknown key 'bandwidht'; did you mean 'bandwidth'?
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/base.h"

enum err_code {
	ERR_NONE,        /* nothing happened */
	ERR_INPUT,       /* what a person wrote is wrong: exit 2 */
	ERR_USAGE,       /* the command line is wrong: exit 2 */
	ERR_IO,          /* a file, database or program failed us: exit 1 */
	ERR_NOMEM,       /* out of memory: exit 1 */
	ERR_INTERRUPTED, /* Ctrl-C: exit 1 */
};

/* Where something was written. line and col count from 1; 0 is "unknown". file may be NULL. */
struct err_pos {
	const char *file;
	int line, col;
};

struct err {
	enum err_code code;
	int line, col;  /* from 1; 0 when the fault is in no line */
	char file[512]; /* "" when the fault is in no file */
	char msg[768];  /* lower case, no full stop, the subject in single quotes */
};

/* Each returns -1, so that a failing function can say `return err_set(…)`. A NULL err is allowed. */
int err_set(struct err *err, enum err_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);
int err_at(struct err *err, enum err_code code, const struct err_pos *pos, const char *fmt, ...)
	PRINTF_LIKE(4, 5);

/* Puts "PREFIX: " before the message; returns -1. */
int err_prefix(struct err *err, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* One line: "offsim: FILE:LINE:COL: message\n", control characters of the message shown as '?'. */
void err_print(const struct err *err, FILE *to);

/* The exit status that cli.md gives this kind of error: 1 or 2. */
int err_exit_status(const struct err *err);

#endif
