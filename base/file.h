/*
 * file.h - reading a whole file, with messages for people.
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

#endif
