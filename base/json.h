/*
 * json.h - what programs write: JSON, through jansson, with errors that name the file and the key.
 *
 * Only syntax errors have a line and column (jansson keeps no positions after loading). Objects are
 * jansson's own; the caller ends with json_decref.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"

/* Reads at most max_bytes; a larger file is an error. Duplicate keys are refused, the root must be an
   object. NaN and Infinity, which Python writes though JSON has none, are read as null. *out is a new
   reference. */
int json_read_file(const char *path, size_t max_bytes, json_t **out, struct err *err);
int json_read_text(const char *text, size_t len, const char *name, json_t **out, struct err *err);
/* The same with any kind of root, such as an array. */
int json_read_any_file(const char *path, size_t max_bytes, json_t **out, struct err *err);
int json_read_any(const char *text, size_t len, const char *name, json_t **out, struct err *err);

/* Getters: file is for messages. The _or forms take a default for a missing or null key; a present key
   of the wrong type is an error in both. Counts must be whole and within min..max (floats with a whole
   value, as in "total_size": 1.0e9, are accepted). */
int json_get_count(const json_t *obj, const char *file, const char *key, uint64_t min, uint64_t max,
		   uint64_t *out, struct err *err);
int json_get_count_or(const json_t *obj, const char *file, const char *key, uint64_t def,
		      uint64_t min, uint64_t max, uint64_t *out, struct err *err);
/* The value times 10^digits, as number_scaled makes it: times are given in seconds and kept in ns. */
int json_get_scaled(const json_t *obj, const char *file, const char *key, int digits, uint64_t *out,
		    struct err *err);
int json_get_bool_or(const json_t *obj, const char *file, const char *key, bool def, bool *out,
		     struct err *err);
int json_get_text_or(const json_t *obj, const char *file, const char *key, const char *def,
		     struct arena *a, const char **out, struct err *err);

#endif
