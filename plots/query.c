#include "plots/query.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>

#include "base/vec.h"

#define APPLICATION_ID 0x6f666673 /* schema.sql */
#define SCHEMA_VERSION 6          /* the one these queries were written for */
#define WAIT_MS 10000

struct query {
	sqlite3 *db;
	struct arena *arena;
	const char *path;
};

/* Columns of run that say what was run; the others say what came of it. */
static const char *const input_columns[] = {
	"model", "quant", "machine", "engine", "batch", "prompt", "generate", "depth", "version"};
/* These are no axis: one differs for every run, the others are for people. */
static const char *const no_keys[] = {"key", "scenario", "message"};

static bool is_one_of(const char *name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i], name) == 0)
			return true;
	return false;
}

/* Says what SQLite's rc means for a person; returns -1. */
static int fail(const struct query *q, int rc, struct err *err)
{
	int fault = q->db ? sqlite3_system_errno(q->db) : 0;

	switch (rc & 0xff) {
	case SQLITE_NOMEM:
		return err_set(err, ERR_NOMEM, "out of memory");
	case SQLITE_NOTADB:
		return err_set(err, ERR_IO, "'%s' is not a results database", q->path);
	case SQLITE_BUSY:
		return err_set(err, ERR_IO, "'%s' is locked by another program (waited %g s)", q->path,
			WAIT_MS / 1000.0);
	case SQLITE_CORRUPT:
		return err_set(err, ERR_IO, "'%s' is damaged: %s", q->path, sqlite3_errmsg(q->db));
	default:
		return err_set(err, ERR_IO, "cannot read '%s': %s", q->path,
			fault ? strerror(fault) : sqlite3_errmsg(q->db));
	}
}

enum open_how { OPEN_TIDY, OPEN_READ_ONLY, OPEN_AS_IT_LIES };

static int open_database(struct query *q, enum open_how how)
{
	sqlite3_str *uri = sqlite3_str_new(NULL);

	sqlite3_str_appendf(uri, "file:%s", q->path[0] == '/' ? "" : "./");
	for (const char *p = q->path; *p; p++)
		sqlite3_str_appendf(uri, strchr("%?#", *p) ? "%%%02x" : "%c", (unsigned char)*p);
	sqlite3_str_appendf(uri, how == OPEN_AS_IT_LIES ? "?immutable=1" : "");
	char *name = sqlite3_str_finish(uri);
	if (!name)
		return SQLITE_NOMEM;
	int flags = how == OPEN_TIDY ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
	int rc = sqlite3_open_v2(name, &q->db, flags | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
	sqlite3_free(name);
	if (rc != SQLITE_OK)
		return rc;
	if (how == OPEN_TIDY && sqlite3_db_readonly(q->db, "main") == 1)
		return SQLITE_READONLY;
	sqlite3_busy_timeout(q->db, WAIT_MS);
	/* The last reads the file, which may be what fails. */
	return sqlite3_exec(q->db,
		"PRAGMA query_only = ON; PRAGMA temp_store = MEMORY; PRAGMA schema_version", NULL, NULL, NULL);
}

static bool has_wal(const struct query *q)
{
	struct stat st;

	return !stat(arena_printf(q->arena, "%s-wal", q->path), &st);
}

/*
 * A connection that may only read would leave -wal and -shm files behind, where one that could write tidies
 * up; so we open as if to write, with query_only.
 *
 * Where we may not write (a colleague's file, a read-only disk) those two must not be made at all: their
 * owner could not open ours. If they are there, somebody is at work and they can be read. If not, the file is
 * read as it lies.
 */
static int open_any(struct query *q)
{
	int rc = open_database(q, OPEN_TIDY);

	if ((rc & 0xff) != SQLITE_CANTOPEN && (rc & 0xff) != SQLITE_READONLY)
		return rc;
	sqlite3_close(q->db);
	q->db = NULL;
	return open_database(q, has_wal(q) ? OPEN_READ_ONLY : OPEN_AS_IT_LIES);
}

static int read_number(struct query *q, const char *sql, int *out, struct err *err)
{
	sqlite3_stmt *stmt;
	int rc = sqlite3_prepare_v2(q->db, sql, -1, &stmt, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW)
		*out = sqlite3_column_int(stmt, 0);
	int status = rc == SQLITE_ROW ? 0 : fail(q, rc, err);
	sqlite3_finalize(stmt);
	return status;
}

static int check_file(struct query *q, struct err *err)
{
	int id, version;

	if (read_number(q, "PRAGMA application_id", &id, err) ||
		read_number(q, "PRAGMA user_version", &version, err))
		return -1;
	if (id == 0 && version == 0)
		return err_set(err, ERR_IO, "'%s' is not a results database: it has no tables of offsim",
			q->path);
	if (id != APPLICATION_ID)
		return err_set(err, ERR_IO, "'%s' is not a results database: it belongs to another program",
			q->path);
	if (version > SCHEMA_VERSION)
		return err_set(err, ERR_IO,
			"'%s' is of a newer offsim: it has schema version %d, this program reads %d", q->path,
			version, SCHEMA_VERSION);
	if (version < SCHEMA_VERSION)
		return err_set(err, ERR_IO,
			"'%s' is of an older offsim: it has schema version %d, this program reads %d; "
			"the next 'offsim run' that stores into it brings it up to date",
			q->path, version, SCHEMA_VERSION);
	return 0;
}

static int check_path(const char *path, struct err *err)
{
	struct stat st;

	if (stat(path, &st))
		return err_set(err, ERR_IO, "cannot read '%s': %s%s", path, strerror(errno),
			errno == ENOENT ? " ('offsim run' and 'offsim sweep' make it)" : "");
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_IO, "'%s' is %s, not a results database", path,
			S_ISDIR(st.st_mode) ? "a folder" : "no regular file");
	return 0;
}

int query_open(const char *path, struct arena *a, struct query **out, struct err *err)
{
	struct query *q = arena_new(a, struct query);

	*out = NULL;
	q->arena = a;
	q->path = arena_strdup(a, path);
	if (check_path(path, err))
		return -1;
	int rc = open_any(q);
	int status = rc == SQLITE_OK ? check_file(q, err) : fail(q, rc, err);
	if (status) {
		query_close(q);
		return -1;
	}
	*out = q;
	return 0;
}

void query_close(struct query *q)
{
	if (!q)
		return;
	sqlite3_close(q->db);
	q->db = NULL;
}

const char *query_path(const struct query *q)
{
	return q->path;
}

/* ---- keys ---- */

struct key_list {
	VEC(struct query_key);
};

static struct query_key *find_key(struct key_list *list, const char *name)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->at[i].name, name) == 0)
			return &list->at[i];
	return NULL;
}

static void add_key(struct query *q, struct key_list *list, const char *name, bool param)
{
	struct query_key *key = find_key(list, name);

	if (!key) {
		struct query_key fresh = {.name = arena_strdup(q->arena, name)};
		VEC_PUSH(list, q->arena, fresh);
		key = &list->at[list->n - 1];
	}
	if (param) {
		key->param = true;
	} else {
		key->column = true;
		key->metric = !is_one_of(name, input_columns, ARRAY_LEN(input_columns));
	}
}

static int read_names(struct query *q, const char *sql, bool param, struct key_list *list, struct err *err)
{
	sqlite3_stmt *stmt;
	int rc = sqlite3_prepare_v2(q->db, sql, -1, &stmt, NULL);

	while (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(stmt, 0);
		if (!name)
			break; /* out of memory */
		if (param || !is_one_of(name, no_keys, ARRAY_LEN(no_keys)))
			add_key(q, list, name, param);
		rc = SQLITE_OK;
	}
	sqlite3_finalize(stmt);
	if (rc == SQLITE_ROW)
		rc = SQLITE_NOMEM;
	return rc == SQLITE_DONE ? 0 : fail(q, rc, err);
}

int query_read_keys(struct query *q, struct query_keys *out, struct err *err)
{
	struct key_list list = {0};

	if (read_names(q, "SELECT name FROM run_param GROUP BY name ORDER BY min(position), name", true,
		    &list, err) ||
		read_names(q, "SELECT name FROM pragma_table_info('run')", false, &list, err))
		return -1;
	*out = (struct query_keys){list.at, list.n};
	return 0;
}

/* ---- runs ---- */

/* A key's text in the row of r: what was set, or else what the column says. */
static void append_key(sqlite3_str *sql, const struct query_key *key)
{
	if (key->param && key->column)
		sqlite3_str_appendall(sql, ", coalesce(");
	else
		sqlite3_str_appendall(sql, ", ");
	if (key->param)
		sqlite3_str_appendf(sql,
			"(SELECT p.value FROM run_param AS p WHERE p.key = r.key AND p.name = %Q)",
			key->name);
	if (key->param && key->column)
		sqlite3_str_appendf(sql, ", r.\"%w\")", key->name);
	else if (key->column)
		sqlite3_str_appendf(sql, "r.\"%w\"", key->name);
}

static bool has_column(struct query *q, const char *column)
{
	return sqlite3_table_column_metadata(q->db, "main", "run", column, NULL, NULL, NULL, NULL, NULL) ==
	       SQLITE_OK;
}

static char *runs_sql(struct query *q, const struct query_key *key, size_t n_keys, const char *const *metric,
	size_t n_metrics)
{
	sqlite3_str *sql = sqlite3_str_new(q->db);

	sqlite3_str_appendall(sql, "SELECT r.key, r.fits, r.upper_bound_tok_s");
	for (size_t i = 0; i < n_metrics; i++) {
		sqlite3_str_appendf(sql, ", r.\"%w\"", metric[i]);
		if (has_column(q, arena_printf(q->arena, "%s_low80", metric[i])))
			sqlite3_str_appendf(sql, ", r.\"%w_low80\", r.\"%w_high80\"", metric[i], metric[i]);
		else
			sqlite3_str_appendall(sql, ", NULL, NULL");
	}
	for (size_t i = 0; i < n_keys; i++)
		append_key(sql, &key[i]);
	sqlite3_str_appendall(sql, " FROM run AS r ORDER BY r.rowid");
	return sqlite3_str_finish(sql);
}

static double column_number(sqlite3_stmt *stmt, int i)
{
	return sqlite3_column_type(stmt, i) == SQLITE_NULL ? (double)NAN : sqlite3_column_double(stmt, i);
}

static const char *column_text(struct query *q, sqlite3_stmt *stmt, int i)
{
	const char *text = (const char *)sqlite3_column_text(stmt, i);

	return arena_strdup(q->arena, text ? text : "");
}

enum { RUN_KEY, RUN_FITS, RUN_BOUND, RUN_METRICS };

static struct query_run read_run(struct query *q, sqlite3_stmt *stmt, size_t n_metrics)
{
	struct query_run run = {
		.key = column_text(q, stmt, RUN_KEY),
		.upper_bound = column_number(stmt, RUN_BOUND),
	};
	double fits = column_number(stmt, RUN_FITS);
	bool any = n_metrics == 0 && !isnan(fits);

	for (size_t i = 0; i < n_metrics; i++) {
		int at = RUN_METRICS + 3 * (int)i;
		run.of[i] = (struct query_value){
			column_number(stmt, at), column_number(stmt, at + 1), column_number(stmt, at + 2)};
		any = any || isfinite(run.of[i].value);
	}
	if (fits == 0)
		run.outcome = QUERY_NO_FIT;
	else
		run.outcome = any ? QUERY_RAN : QUERY_FAILED;
	return run;
}

int query_read_runs(struct query *q, const struct query_key *key, size_t n_keys, const char *const *metric,
	size_t n_metrics, struct query_table *out, struct err *err)
{
	struct {
		VEC(struct query_run);
	} runs = {0};
	struct {
		VEC(uint32_t);
	} cells = {0};
	sqlite3_stmt *stmt = NULL;
	char *sql = runs_sql(q, key, n_keys, metric, n_metrics);
	int rc = sql ? sqlite3_prepare_v2(q->db, sql, -1, &stmt, NULL) : SQLITE_NOMEM;
	int first_key = RUN_METRICS + 3 * (int)n_metrics;

	sqlite3_free(sql);
	*out = (struct query_table){.key = key, .n_keys = n_keys};
	intern_init(&out->texts, q->arena);
	while (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		VEC_PUSH(&runs, q->arena, read_run(q, stmt, n_metrics));
		for (size_t i = 0; i < n_keys; i++) {
			const char *text = (const char *)sqlite3_column_text(stmt, first_key + (int)i);
			uint32_t cell = text ? intern_add(&out->texts, text, strlen(text)) : INTERN_NONE;
			VEC_PUSH(&cells, q->arena, cell);
		}
		rc = SQLITE_OK;
	}
	sqlite3_finalize(stmt);
	if (rc != SQLITE_DONE)
		return fail(q, rc, err);
	out->run = runs.at;
	out->n_runs = runs.n;
	out->cell = cells.at;
	return 0;
}

/* ---- what belongs to one run ---- */

/* The rows of sql, whose one parameter is the run. */
static int prepare_of_run(struct query *q, const char *sql, const char *run, sqlite3_stmt **stmt)
{
	int rc = sqlite3_prepare_v2(q->db, sql, -1, stmt, NULL);

	return rc == SQLITE_OK ? sqlite3_bind_text(*stmt, 1, run, -1, SQLITE_STATIC) : rc;
}

int query_read_memory(struct query *q, const char *run, const struct query_memory **out, size_t *n,
	struct err *err)
{
	struct {
		VEC(struct query_memory);
	} list = {0};
	sqlite3_stmt *stmt = NULL;
	int rc = prepare_of_run(q,
		"SELECT memory, capacity_bytes, weights_bytes, kv_bytes, activation_bytes, overhead_bytes "
		"FROM memory_use WHERE key = ? ORDER BY memory",
		run, &stmt);

	while (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		struct query_memory m = {column_text(q, stmt, 0), sqlite3_column_double(stmt, 1), {0}};
		for (int i = 0; i < QUERY_USE_N; i++)
			m.used[i] = sqlite3_column_double(stmt, 2 + i);
		VEC_PUSH(&list, q->arena, m);
		rc = SQLITE_OK;
	}
	sqlite3_finalize(stmt);
	*out = list.at;
	*n = list.n;
	return rc == SQLITE_DONE ? 0 : fail(q, rc, err);
}

int query_read_resources(struct query *q, const char *run, const struct query_resource **out, size_t *n,
	struct err *err)
{
	struct {
		VEC(struct query_resource);
	} list = {0};
	sqlite3_stmt *stmt = NULL;
	int rc = prepare_of_run(q,
		"SELECT resource, busy, utilisation, critical FROM resource_use WHERE key = ? "
		"ORDER BY resource",
		run, &stmt);

	while (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		struct query_resource r = {column_text(q, stmt, 0), sqlite3_column_double(stmt, 1),
			sqlite3_column_double(stmt, 2), sqlite3_column_double(stmt, 3)};
		VEC_PUSH(&list, q->arena, r);
		rc = SQLITE_OK;
	}
	sqlite3_finalize(stmt);
	*out = list.at;
	*n = list.n;
	return rc == SQLITE_DONE ? 0 : fail(q, rc, err);
}

int query_read_spans(struct query *q, const char *run, const struct query_span **out, size_t *n, struct err *err)
{
	struct {
		VEC(struct query_span);
	} list = {0};
	sqlite3_stmt *stmt = NULL;
	int rc = prepare_of_run(q,
		"SELECT position, resource, begin_s, end_s, busy FROM span WHERE key = ? ORDER BY position, begin_s", run,
		&stmt);

	while (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		bool fresh = !list.n || list.at[list.n - 1].position != sqlite3_column_int64(stmt, 0);
		struct query_span s = {sqlite3_column_int64(stmt, 0),
			fresh ? column_text(q, stmt, 1) : list.at[list.n - 1].resource, sqlite3_column_double(stmt, 2),
			sqlite3_column_double(stmt, 3), sqlite3_column_double(stmt, 4)};
		VEC_PUSH(&list, q->arena, s);
		rc = SQLITE_OK;
	}
	sqlite3_finalize(stmt);
	*out = list.at;
	*n = list.n;
	return rc == SQLITE_DONE ? 0 : fail(q, rc, err);
}
