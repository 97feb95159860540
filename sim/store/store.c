#include "sim/store/store.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "schema_sql.h"

#define APPLICATION_ID 0x6f666673 /* "offs", as in schema.sql */
#define WAIT_MS 10000
#define RETRY_MS 5

enum { TABLE_RUN, TABLE_PARAM, TABLE_MEMORY, TABLE_RESOURCE, TABLE_CACHE, TABLE_SPAN, TABLE_TIME, TABLE_REPLAY, TABLE_OPERATION,
	TABLE_N };
static const char *const table_name[TABLE_N] = {"run", "run_param", "memory_use", "resource_use", "cache_use",
	"span", "run_time", "replay", "replay_operation"};

struct store {
	sqlite3 *db;
	sqlite3_stmt *insert[TABLE_N]; /* every column a parameter of its name */
	sqlite3_stmt *remove, *remove_replay, *has;
	int wait_ms;
	char path[]; /* as the caller wrote it */
};

/* ---- messages ---- */

static void parent_folder(const char *path, char *folder, size_t size)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		snprintf(folder, size, ".");
	else
		snprintf(folder, size, "%.*s", slash == path ? 1 : (int)(slash - path), path);
}

static int cannot_open(const char *path, int fault, struct err *err)
{
	char folder[PATH_MAX];
	struct stat st;

	parent_folder(path, folder, sizeof(folder));
	if (stat(folder, &st))
		return err_set(err, ERR_IO, "cannot open '%s': folder '%s': %s", path, folder,
			strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return err_set(err, ERR_IO, "cannot open '%s': '%s' is not a folder", path, folder);
	if (access(folder, W_OK))
		return err_set(err, ERR_IO,
			"cannot write '%s': its folder '%s' is read-only, and the journal must be there too",
			path, folder);
	return err_set(err, ERR_IO, "cannot open '%s': %s", path, fault ? strerror(fault) : "unknown reason");
}

/* Says what SQLite's rc means for a person; returns -1. */
static int fail(const struct store *s, int rc, struct err *err)
{
	int fault = s->db ? sqlite3_system_errno(s->db) : 0;

	switch (rc & 0xff) {
	case SQLITE_NOMEM:
		return err_set(err, ERR_NOMEM, "out of memory");
	case SQLITE_NOTADB:
		return err_set(err, ERR_IO, "'%s' is not a results database", s->path);
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return err_set(err, ERR_IO, "'%s' is locked by another program (waited %g s)", s->path,
			s->wait_ms / 1000.0);
	case SQLITE_READONLY:
		if (access(s->path, W_OK) == 0)
			return cannot_open(s->path, EACCES, err);
		return err_set(err, ERR_IO, "cannot write '%s': it is read-only", s->path);
	case SQLITE_FULL:
		return err_set(err, ERR_IO, "cannot write '%s': no space left on the disk", s->path);
	case SQLITE_CORRUPT:
		return err_set(err, ERR_IO, "'%s' is damaged: %s", s->path, sqlite3_errmsg(s->db));
	case SQLITE_CANTOPEN:
		return cannot_open(s->path, fault, err);
	case SQLITE_IOERR:
		if (fault == ENOSPC)
			return fail(s, SQLITE_FULL, err);
		return err_set(err, ERR_IO, "cannot read or write '%s': %s", s->path,
			fault ? strerror(fault) : sqlite3_errmsg(s->db));
	default:
		return err_set(err, ERR_IO, "cannot use '%s': %s", s->path, sqlite3_errmsg(s->db));
	}
}

/* ---- small SQL ---- */

static int exec(struct store *s, const char *sql, struct err *err)
{
	int rc = sqlite3_exec(s->db, sql, NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : fail(s, rc, err);
}

static int prepare(struct store *s, const char *sql, sqlite3_stmt **out, struct err *err)
{
	int rc = sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, out, NULL);

	return rc == SQLITE_OK ? 0 : fail(s, rc, err);
}

/* The one number that sql yields. */
static int read_number(struct store *s, const char *sql, int64_t *out, struct err *err)
{
	sqlite3_stmt *q;

	if (prepare(s, sql, &q, err))
		return -1;
	int rc = sqlite3_step(q);
	if (rc == SQLITE_ROW)
		*out = sqlite3_column_int64(q, 0);
	int status = rc == SQLITE_ROW ? 0 : fail(s, rc, err);
	sqlite3_finalize(q);
	return status;
}

/* Runs a statement that yields no rows and makes it ready for the next time. */
static int step_done(struct store *s, sqlite3_stmt *q, struct err *err)
{
	int rc = sqlite3_step(q);
	int status = rc == SQLITE_DONE ? 0 : fail(s, rc, err);

	sqlite3_reset(q);
	return status;
}

static void rollback(struct store *s)
{
	/* SQLite has done it itself after a full disk and some other faults. */
	if (!sqlite3_get_autocommit(s->db))
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
}

/* ---- opening ---- */

/* The section of schema.sql with this number, up to the next; NULL when there is none. */
static const char *find_section(int version, size_t *len)
{
	char head[32];

	snprintf(head, sizeof(head), "\n-- version %d\n", version);
	const char *begin = strstr(schema_sql, head);
	if (!begin)
		return NULL;
	const char *end = strstr(begin + 1, "\n-- version ");
	*len = end ? (size_t)(end - begin) : strlen(begin);
	return begin;
}

static int latest_version(void)
{
	int version = 0;
	size_t len;

	while (find_section(version + 1, &len))
		version++;
	if (!version)
		BUG("schema.sql has no version");
	return version;
}

static int run_section(struct store *s, const char *sql, size_t len, struct err *err)
{
	const char *end = sql + len;

	while (sql < end) {
		sqlite3_stmt *q;
		int rc = sqlite3_prepare_v2(s->db, sql, (int)(end - sql), &q, &sql);
		if (rc != SQLITE_OK)
			return fail(s, rc, err);
		while (q && (rc = sqlite3_step(q)) == SQLITE_ROW)
			;
		sqlite3_finalize(q);
		if (q && rc != SQLITE_DONE)
			return fail(s, rc, err);
	}
	return 0;
}

static int migrate_locked(struct store *s, struct err *err)
{
	int64_t version;
	const char *sql;
	size_t len;
	char set_version[64];

	if (read_number(s, "PRAGMA user_version", &version, err)) /* another program may have been first */
		return -1;
	while ((sql = find_section((int)++version, &len))) {
		snprintf(set_version, sizeof(set_version), "PRAGMA user_version = %d", (int)version);
		if (run_section(s, sql, len, err) || exec(s, set_version, err))
			return -1;
	}
	return exec(s, "COMMIT", err);
}

static int migrate(struct store *s, struct err *err)
{
	if (exec(s, "BEGIN IMMEDIATE", err))
		return -1;
	if (migrate_locked(s, err)) {
		rollback(s);
		return -1;
	}
	return 0;
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/*
 * Readers beside one writer. A file system that cannot share memory keeps its rollback journal, which
 * needs a sync a commit to survive a power cut.
 */
static int use_wal(struct store *s, const char **synchronous, struct err *err)
{
	int64_t give_up = now_ms() + s->wait_ms;
	sqlite3_stmt *q;
	int rc;

	if (prepare(s, "PRAGMA journal_mode = WAL", &q, err))
		return -1;
	/* The first switch needs the file for itself and does not always ask the busy handler. */
	while (((rc = sqlite3_step(q)) & 0xff) == SQLITE_BUSY && now_ms() < give_up) {
		sqlite3_reset(q);
		sqlite3_sleep(RETRY_MS);
	}
	int status = rc == SQLITE_ROW ? 0 : fail(s, rc, err);
	bool wal = rc == SQLITE_ROW && strcmp((const char *)sqlite3_column_text(q, 0), "wal") == 0;
	*synchronous = wal ? "PRAGMA synchronous = NORMAL" : "PRAGMA synchronous = FULL";
	sqlite3_finalize(q);
	return status;
}

static int read_marks(struct store *s, int64_t *id, int64_t *version, int64_t *tables, struct err *err)
{
	if (read_number(s, "PRAGMA application_id", id, err) ||
		read_number(s, "PRAGMA user_version", version, err))
		return -1;
	return read_number(s, "SELECT count(*) FROM sqlite_schema", tables, err);
}

/* Whose file is it, and how old? */
static int check_file(struct store *s, int64_t *version, bool *fresh, struct err *err)
{
	int64_t id, tables;

	/* One transaction: another program may be making the file just now. */
	if (exec(s, "BEGIN", err))
		return -1;
	int status = read_marks(s, &id, version, &tables, err);
	rollback(s);
	if (status)
		return -1;
	*fresh = id == 0 && *version == 0 && tables == 0;
	if (!*fresh && id != APPLICATION_ID)
		return err_set(err, ERR_IO, "'%s' is not a results database: it belongs to another program",
			s->path);
	if (*version > latest_version())
		return err_set(err, ERR_IO,
			"'%s' is of a newer offsim: it has schema version %d, this program knows up to %d",
			s->path, (int)*version, latest_version());
	return 0;
}

/* INSERT with every column of the table as a parameter named like it. */
static int prepare_insert(struct store *s, int table, struct err *err)
{
	sqlite3_str *columns = sqlite3_str_new(s->db), *values = sqlite3_str_new(s->db);
	sqlite3_stmt *q;
	int rc = sqlite3_prepare_v2(s->db, "SELECT name FROM pragma_table_info(?1)", -1, &q, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_bind_text(q, 1, table_name[table], -1, SQLITE_STATIC);
	while (rc == SQLITE_OK && (rc = sqlite3_step(q)) == SQLITE_ROW) {
		const char *comma = sqlite3_str_length(columns) ? ", " : "";
		sqlite3_str_appendf(columns, "%s\"%w\"", comma, sqlite3_column_text(q, 0));
		sqlite3_str_appendf(values, "%s:%s", comma, sqlite3_column_text(q, 0));
		rc = SQLITE_OK;
	}
	sqlite3_finalize(q);
	bool missing = rc == SQLITE_DONE && sqlite3_str_length(columns) == 0 && sqlite3_str_errcode(columns) == SQLITE_OK;
	char *c = sqlite3_str_finish(columns), *v = sqlite3_str_finish(values);
	/* A key that was set twice counts as it was set last. */
	char *sql = sqlite3_mprintf("INSERT%s INTO %s (%s) VALUES (%s)",
		table == TABLE_PARAM ? " OR REPLACE" : "", table_name[table], c, v);
	int status;
	if (rc != SQLITE_DONE)
		status = fail(s, rc, err);
	else if (missing)
		status = err_set(err, ERR_IO, "'%s' is damaged: it has no table '%s'", s->path, table_name[table]);
	else if (!c || !v || !sql)
		status = fail(s, SQLITE_NOMEM, err);
	else
		status = prepare(s, sql, &s->insert[table], err);
	sqlite3_free(c);
	sqlite3_free(v);
	sqlite3_free(sql);
	return status;
}

static int prepare_all(struct store *s, struct err *err)
{
	for (int t = 0; t < TABLE_N; t++)
		if (prepare_insert(s, t, err))
			return -1;
	if (prepare(s, "DELETE FROM run WHERE key = ?1", &s->remove, err))
		return -1;
	if (prepare(s, "DELETE FROM replay WHERE key = ?1 AND executor = ?2", &s->remove_replay, err))
		return -1;
	return prepare(s, "SELECT 1 FROM run WHERE key = ?1", &s->has, err);
}

static void release(struct store *s)
{
	for (int t = 0; t < TABLE_N; t++)
		sqlite3_finalize(s->insert[t]);
	sqlite3_finalize(s->remove);
	sqlite3_finalize(s->remove_replay);
	sqlite3_finalize(s->has);
	sqlite3_close(s->db);
	sqlite3_free(s);
}

/* SQLite would write into a device and wait for a pipe. */
static int check_path(const char *path, struct err *err)
{
	struct stat st;

	if (!*path)
		return err_set(err, ERR_IO, "the database has no name");
	if (!stat(path, &st) && !S_ISREG(st.st_mode))
		return err_set(err, ERR_IO, "'%s' is %s, not a results database", path,
			S_ISDIR(st.st_mode) ? "a folder" : "no regular file");
	return 0;
}

static int open_file(struct store *s, struct err *err)
{
	/* Names that SQLite takes for something else get a folder in front. */
	bool special = s->path[0] == ':' || strncmp(s->path, "file:", 5) == 0;
	char *name = sqlite3_mprintf("%s%s", special ? "./" : "", s->path);
	int rc = SQLITE_NOMEM;
	const char *synchronous;
	int64_t version;
	bool fresh;

	if (name)
		rc = sqlite3_open_v2(name, &s->db,
			SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
	sqlite3_free(name);
	if (rc != SQLITE_OK)
		return fail(s, rc, err);
	/* Before the first read, which would leave a journal of ours beside a file that is not. */
	if (sqlite3_db_readonly(s->db, "main") == 1)
		return fail(s, SQLITE_READONLY, err);
	sqlite3_extended_result_codes(s->db, 1);
	sqlite3_busy_timeout(s->db, s->wait_ms);
	/* A new file holds nothing that a power cut could take: making it waits for no disk. The migration is what
	   begins the journal then, and that costs two syncs if a run does. */
	if (check_file(s, &version, &fresh, err) || (fresh && exec(s, "PRAGMA synchronous = OFF", err)) ||
		use_wal(s, &synchronous, err) || (version < latest_version() && migrate(s, err)) ||
		exec(s, synchronous, err) || exec(s, "PRAGMA foreign_keys = ON", err))
		return -1;
	return prepare_all(s, err);
}

int store_open_wait(const char *path, int wait_ms, struct store **out, struct err *err)
{
	*out = NULL;
	if (check_path(path, err))
		return -1;
	/* SQLite's own allocator: the handle lives and dies with SQLite's. */
	size_t len = strlen(path) + 1;
	struct store *s = sqlite3_malloc64(sizeof(*s) + len);
	if (!s)
		return err_set(err, ERR_NOMEM, "out of memory");
	*s = (struct store){.wait_ms = wait_ms};
	memcpy(s->path, path, len);
	if (open_file(s, err)) {
		release(s);
		return -1;
	}
	*out = s;
	return 0;
}

int store_open(const char *path, struct store **out, struct err *err)
{
	return store_open_wait(path, WAIT_MS, out, err);
}

/* ---- a run ---- */

static int bind(sqlite3_stmt *q, int at, const struct store_value *v)
{
	switch (v->type) {
	case STORE_TEXT:
		return sqlite3_bind_text(q, at, v->text, -1, SQLITE_STATIC); /* NULL is NULL */
	case STORE_REAL:
		return sqlite3_bind_double(q, at, v->real); /* NAN is NULL */
	case STORE_COUNT:
		return sqlite3_bind_int64(q, at, v->count > INT64_MAX ? INT64_MAX : (int64_t)v->count);
	case STORE_NULL:
		break;
	}
	return sqlite3_bind_null(q, at);
}

static int insert(struct store *s, int table, const char *key, const struct store_value *value, size_t n,
	struct err *err)
{
	sqlite3_stmt *q = s->insert[table];
	char name[64];

	sqlite3_clear_bindings(q);
	int rc = sqlite3_bind_text(q, sqlite3_bind_parameter_index(q, ":key"), key, -1, SQLITE_STATIC);
	for (size_t i = 0; i < n && rc == SQLITE_OK; i++) {
		snprintf(name, sizeof(name), ":%s", value[i].column);
		int at = sqlite3_bind_parameter_index(q, name);
		if (!at)
			return err_set(err, ERR_IO, "table '%s' of '%s' has no column '%s'",
				table_name[table], s->path, value[i].column);
		rc = bind(q, at, &value[i]);
	}
	return rc == SQLITE_OK ? step_done(s, q, err) : fail(s, rc, err);
}

static int insert_row(struct store *s, int table, const char *key, const struct store_row *row,
	struct err *err)
{
	return insert(s, table, key, row->value, row->n, err);
}

static int insert_param(struct store *s, const char *key, const struct store_param *p, size_t position,
	struct err *err)
{
	double number;
	bool numeric = !units_parse(p->value, UNIT_PLAIN, &number, NULL); /* "40", not "40GB/s" */
	const struct store_value value[] = {
		{.column = "name", .type = STORE_TEXT, .text = p->name},
		{.column = "value", .type = STORE_TEXT, .text = p->value},
		{.column = "number", .type = STORE_REAL, .real = numeric ? number : (double)NAN},
		{.column = "position", .type = STORE_COUNT, .count = position},
	};

	return insert(s, TABLE_PARAM, key, value, ARRAY_LEN(value), err);
}

/* ISO 8601, UTC. */
static void date_text(char date[32])
{
	time_t now = time(NULL);
	struct tm tm;

	strftime(date, 32, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
}

static int insert_time(struct store *s, const char *key, double wall_s, struct err *err)
{
	char date[32];

	date_text(date);
	const struct store_value value[] = {
		{.column = "wall_s", .type = STORE_REAL, .real = wall_s},
		{.column = "stored_at", .type = STORE_TEXT, .text = date},
	};

	return insert(s, TABLE_TIME, key, value, ARRAY_LEN(value), err);
}

static int remove_run(struct store *s, const char *key, struct err *err)
{
	int rc = sqlite3_bind_text(s->remove, 1, key, -1, SQLITE_STATIC);

	return rc == SQLITE_OK ? step_done(s, s->remove, err) : fail(s, rc, err);
}

static int put_locked(struct store *s, const struct store_run *run, struct err *err)
{
	if (remove_run(s, run->key, err) || insert_row(s, TABLE_RUN, run->key, &run->run, err) ||
		insert_time(s, run->key, run->wall_s, err))
		return -1;
	for (size_t i = 0; i < run->n_params; i++)
		if (insert_param(s, run->key, &run->param[i], i, err))
			return -1;
	for (size_t i = 0; i < run->n_memory; i++)
		if (insert_row(s, TABLE_MEMORY, run->key, &run->memory[i], err))
			return -1;
	for (size_t i = 0; i < run->n_resources; i++)
		if (insert_row(s, TABLE_RESOURCE, run->key, &run->resource[i], err))
			return -1;
	for (size_t i = 0; i < run->n_caches; i++)
		if (insert_row(s, TABLE_CACHE, run->key, &run->cache[i], err))
			return -1;
	for (size_t i = 0; i < run->n_spans; i++)
		if (insert_row(s, TABLE_SPAN, run->key, &run->span[i], err))
			return -1;
	return exec(s, "COMMIT", err);
}

int store_put(struct store *s, const struct store_run *run, struct err *err)
{
	if (exec(s, "BEGIN IMMEDIATE", err))
		return -1;
	if (put_locked(s, run, err)) {
		rollback(s);
		return -1;
	}
	return 0;
}

static int replace_replay(struct store *s, const struct store_replay *r, const struct store_row *head, struct err *err)
{
	int rc = sqlite3_bind_text(s->remove_replay, 1, r->key, -1, SQLITE_STATIC);

	if (rc == SQLITE_OK)
		rc = sqlite3_bind_text(s->remove_replay, 2, r->executor, -1, SQLITE_STATIC);
	if (rc != SQLITE_OK)
		return fail(s, rc, err);
	if (step_done(s, s->remove_replay, err) || insert_row(s, TABLE_REPLAY, r->key, head, err))
		return -1;
	for (size_t i = 0; i < r->n_operations; i++)
		if (insert_row(s, TABLE_OPERATION, r->key, &r->operation[i], err))
			return -1;
	return exec(s, "COMMIT", err);
}

int store_put_replay(struct store *s, const struct store_replay *r, struct err *err)
{
	struct store_value value[32];
	char date[32];

	if (r->replay.n >= ARRAY_LEN(value))
		BUG("%zu columns", r->replay.n);
	memcpy(value, r->replay.value, r->replay.n * sizeof(*value));
	date_text(date);
	value[r->replay.n] = (struct store_value){.column = "stored_at", .type = STORE_TEXT, .text = date};
	if (exec(s, "BEGIN IMMEDIATE", err))
		return -1;
	if (replace_replay(s, r, &(struct store_row){value, r->replay.n + 1}, err)) {
		rollback(s);
		return -1;
	}
	return 0;
}

int store_has(struct store *s, const char *key, bool *has, struct err *err)
{
	int rc = sqlite3_bind_text(s->has, 1, key, -1, SQLITE_STATIC);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(s->has);
	*has = rc == SQLITE_ROW;
	int status = rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : fail(s, rc, err);
	sqlite3_reset(s->has);
	return status;
}

int store_keys(struct store *s, void (*each)(void *ctx, const char *key), void *ctx, struct err *err)
{
	sqlite3_stmt *q;
	int rc;

	if (prepare(s, "SELECT key FROM run ORDER BY key", &q, err))
		return -1;
	while ((rc = sqlite3_step(q)) == SQLITE_ROW)
		each(ctx, (const char *)sqlite3_column_text(q, 0));
	int status = rc == SQLITE_DONE ? 0 : fail(s, rc, err);
	sqlite3_finalize(q);
	return status;
}

int store_close(struct store *s, struct err *err)
{
	if (!s)
		return 0;
	/* sqlite3_close would checkpoint too, but keep quiet when it could not. Other programs that have the
	   file open make it stop early; the last of them does the rest. */
	int rc = sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	int status = 0;
	if (rc != SQLITE_OK && (rc & 0xff) != SQLITE_BUSY) {
		struct err why;
		fail(s, rc, &why);
		status = err_set(err, why.code,
			"%s; the runs stored last are still in '%s-wal', keep both together", why.msg,
			s->path);
	}
	release(s);
	return status;
}
