/*
 * file.h - whole files, read and written, with messages for people.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <limits.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"

/* Reads all of path into memory of the caller's (free()), with a NUL behind. A file that is missing, is a
   folder, cannot be opened or holds more than max_bytes is ERR_INPUT (the user named it); a failing read is
   ERR_IO. Pipes work. */
int file_read_all(const char *path, size_t max_bytes, char **text, size_t *len, struct err *err);

/* The same into an arena. */
int file_read(const char *path, size_t max_bytes, struct arena *a, char **text, size_t *len, struct err *err);

/* A file being written: without a name, or where the file system needs one beside its own, until it is complete. */
struct file_out {
	const char *path;      /* must stay */
	char target[PATH_MAX]; /* the same, or what a symbolic link there leads to: the link stays one */
	char beside[PATH_MAX]; /* TARGET.PID.part */
	bool named;            /* it is there */
	FILE *to;
};

/* Opens it for writing. However the process ends, nothing is left, but TARGET.PID.part of a killed one where the file system
   knows no files without a name; it goes when a process of that number comes by. A path that is there and no regular file is
   refused: renaming would replace it. */
int file_out_open(struct file_out *f, const char *path, struct err *err);
/* Whether it could be opened, for those who have long to work before they write. */
int file_out_check(const char *path, struct err *err);
/* The file gets its name once all of it is on the disk. What was written is gone if that fails. */
int file_out_commit(struct file_out *f, struct err *err);
/* Nothing is left behind. Allowed after the other two, and on a zeroed f. */
void file_out_abort(struct file_out *f);

/* The same in one call: write(to, ctx) fills the file. */
int file_replace(const char *path, void (*write)(FILE *to, void *ctx), void *ctx, struct err *err);

#endif
