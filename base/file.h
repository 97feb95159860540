/*
 * file.h - whole files, read and written, with messages for people.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/arena.h"
#include "base/err.h"

/* Reads all of path into memory of the caller's (free()), with a NUL behind. A file that is missing, is a
   folder, cannot be opened or holds more than max_bytes is ERR_INPUT (the user named it); a failing read is
   ERR_IO. Pipes work. */
int file_read_all(const char *path, size_t max_bytes, char **text, size_t *len, struct err *err);

/* The same into an arena. */
int file_read(const char *path, size_t max_bytes, struct arena *a, char **text, size_t *len, struct err *err);

/* Writes a file that is there whole or not at all: write(to, ctx) fills a temporary one beside it, which takes its name at
   the end. */
int file_replace(const char *path, void (*write)(FILE *to, void *ctx), void *ctx, struct err *err);

#endif
