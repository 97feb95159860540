/*
 * store.h - results.db: SQLite, one writer.
 *
 * One run is one transaction: it is in the database whole or not at all. The schema is schema.sql, in
 * numbered sections; PRAGMA user_version says which the file has, and opening it runs those that are missing.
 * A file of a newer version, of another program, or no database at all is refused by name. Readers (plots,
 * people) use the views; while a run is written they see the state before it (WAL).
 *
 * What survives: a stored run survives the death of the program at once, and a power cut from the next
 * checkpoint on (every 1000 pages, and store_close). A power cut before that takes the runs stored last,
 * never the database. So a sweep's commits wait for no disk, and what it lost it simulates again.
 *
 * Rows come as plain names and values, so that this layer knows neither scenarios nor results.
 */
#ifndef SIM_STORE_STORE_H
#define SIM_STORE_STORE_H

#include <stdbool.h>

#include "base/err.h"

struct store;

enum store_type { STORE_NULL, STORE_TEXT, STORE_REAL, STORE_COUNT };

struct store_value {
	const char *column;
	enum store_type type;
	const char *text; /* NULL is stored as NULL */
	double real;      /* NAN is stored as NULL */
	uint64_t count;   /* above INT64_MAX, SQLite's largest, that is stored */
};

struct store_param {
	const char *name, *value; /* a key that was set or swept, and its text */
};

struct store_row {
	const struct store_value *value; /* columns of the table (without the key) */
	size_t n;
};

struct store_run {
	const char *key;                 /* 16 hex digits */
	struct store_row run;            /* table run */
	const struct store_param *param; /* table run_param */
	size_t n_params;
	const struct store_row *memory; /* table memory_use, one row each */
	size_t n_memory;
	const struct store_row *resource; /* table resource_use */
	size_t n_resources;
	const struct store_row *cache; /* table cache_use */
	size_t n_caches;
	const struct store_row *span; /* table span */
	size_t n_spans;
	double wall_s; /* table run_time, with the date */
};

struct store_replay {
	const char *key, *executor;
	struct store_row replay;           /* table replay, `executor` too; the date is added */
	const struct store_row *operation; /* table replay_operation, one row each, `executor` too */
	size_t n_operations;
};

/* Opens or creates path and brings its schema up to date. Waits up to 10 s for another writer, then says
   that the database is locked. */
int store_open(const char *path, struct store **out, struct err *err);
/* The same with another patience than 10 s. */
int store_open_wait(const char *path, int wait_ms, struct store **out, struct err *err);
/* Replaces the run of that key. On failure nothing of it is left, and what was there before still is. */
int store_put(struct store *s, const struct store_run *run, struct err *err);
/* Replaces what that executor made of that key before, in the same way. */
int store_put_replay(struct store *s, const struct store_replay *replay, struct err *err);
int store_has(struct store *s, const char *key, bool *has, struct err *err);
/* Calls each(ctx, key) for the key of every run, in ascending order. */
int store_keys(struct store *s, void (*each)(void *ctx, const char *key), void *ctx, struct err *err);
/* Closes; a failing checkpoint is an error. s may be NULL. */
int store_close(struct store *s, struct err *err);

#endif
