#include "sim/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/datadir.h"
#include "base/file.h"

#include "tests/test.h"

#define WAIT_MS 50
#define PARAMS 3

/* ---- a folder for each test ---- */

struct place {
	char folder[64], db[96], wal[96], shm[96];
};

static struct place place_new(void)
{
	struct place p = {.folder = "/tmp/offsim-test-XXXXXX"};

	ck_assert_ptr_nonnull(mkdtemp(p.folder));
	snprintf(p.db, sizeof(p.db), "%s/r.db", p.folder);
	snprintf(p.wal, sizeof(p.wal), "%s/r.db-wal", p.folder);
	snprintf(p.shm, sizeof(p.shm), "%s/r.db-shm", p.folder);
	return p;
}

static void place_remove(const struct place *p)
{
	unlink(p->db);
	unlink(p->wal);
	unlink(p->shm);
	ck_assert_int_eq(rmdir(p->folder), 0); /* nothing else was left behind */
}

/* ---- raw SQL, past the store ---- */

static sqlite3 *raw_open(const char *path)
{
	sqlite3 *db;

	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 5000);
	return db;
}

static void raw_exec(sqlite3 *db, const char *sql)
{
	ck_assert_msg(
		sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(db));
}

/* The first value that sql yields, as text; "NULL" for NULL, "-" for no row. */
static const char *raw_text(sqlite3 *db, const char *sql, char *buf, size_t size)
{
	sqlite3_stmt *q;

	ck_assert_msg(
		sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(db));
	int rc = sqlite3_step(q);
	const char *text = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(q, 0) : "-";
	snprintf(buf, size, "%s", text ? text : "NULL");
	ck_assert_msg(rc == SQLITE_ROW || rc == SQLITE_DONE, "%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_finalize(q);
	return buf;
}

static void expect_sql(const char *path, const char *sql, const char *want)
{
	sqlite3 *db = raw_open(path);
	char buf[256];

	ck_assert_msg(
		strcmp(raw_text(db, sql, buf, sizeof(buf)), want) == 0, "%s: '%s', not '%s'", sql, buf, want);
	sqlite3_close(db);
}

/* ---- runs ---- */

static void put(struct store *s, int number, double decode)
{
	char key[17];
	const struct store_value run[] = {
		{.column = "scenario", .type = STORE_TEXT, .text = "{model: m}"},
		{.column = "status", .type = STORE_TEXT, .text = "ok"},
		{.column = "fits", .type = STORE_COUNT, .count = 1},
		{.column = "model", .type = STORE_TEXT, .text = "m"},
		{.column = "decode_tok_s", .type = STORE_REAL, .real = decode},
		{.column = "decode_tok_s_low80", .type = STORE_REAL, .real = decode * 0.9},
		{.column = "ttft_s", .type = STORE_REAL, .real = NAN},
		{.column = "quant", .type = STORE_NULL},
		{.column = "events", .type = STORE_COUNT, .count = UINT64_MAX},
	};
	const struct store_param param[PARAMS] = {
		{"flags.ngl", "40"}, {"rate", "40GB/s"}, {"routing", "uniform"}};
	const struct store_value gpu[] = {
		{.column = "memory", .type = STORE_TEXT, .text = "gpu0"},
		{.column = "capacity_bytes", .type = STORE_COUNT, .count = 1000},
		{.column = "used_bytes", .type = STORE_COUNT, .count = 1250},
	};
	const struct store_value link[] = {
		{.column = "resource", .type = STORE_TEXT, .text = "gpu0.link.h2d"},
		{.column = "bytes", .type = STORE_REAL, .real = 2.385e9},
		{.column = "critical", .type = STORE_REAL, .real = 0.7},
		{.column = "critical_prefill", .type = STORE_REAL, .real = 0.2},
		{.column = "critical_decode", .type = STORE_REAL, .real = 0.9},
	};
	const struct store_value compute[] = {
		{.column = "resource", .type = STORE_TEXT, .text = "gpu0.compute"},
		{.column = "bytes", .type = STORE_REAL, .real = NAN},
		{.column = "critical", .type = STORE_REAL, .real = 0.3},
		{.column = "critical_prefill", .type = STORE_REAL, .real = 0.8},
		{.column = "critical_decode", .type = STORE_REAL, .real = 0.1},
	};
	const struct store_value burst[] = {
		{.column = "position", .type = STORE_COUNT, .count = 1},
		{.column = "resource", .type = STORE_TEXT, .text = "gpu0"},
		{.column = "begin_s", .type = STORE_REAL, .real = 0.25},
		{.column = "end_s", .type = STORE_REAL, .real = 0.5},
		{.column = "busy", .type = STORE_REAL, .real = 0.75},
	};
	const struct store_row span[] = {{burst, ARRAY_LEN(burst)}};
	const struct store_row memory[] = {{gpu, ARRAY_LEN(gpu)}};
	const struct store_row resource[] = {{link, ARRAY_LEN(link)}, {compute, ARRAY_LEN(compute)}};
	struct err err = {0};

	snprintf(key, sizeof(key), "%016x", (unsigned)number);
	const struct store_run r = {
		.key = key,
		.run = {run, ARRAY_LEN(run)},
		.param = param,
		.n_params = PARAMS,
		.memory = memory,
		.n_memory = ARRAY_LEN(memory),
		.resource = resource,
		.n_resources = ARRAY_LEN(resource),
		.span = span,
		.n_spans = ARRAY_LEN(span),
		.wall_s = 0.125,
	};
	assert_ok(store_put(s, &r, &err), err);
}

static int put_columns(struct store *s, const struct store_value *value, size_t n, struct err *err)
{
	const struct store_run r = {.key = "0000000000000007", .run = {value, n}};

	return store_put(s, &r, err);
}

static void create(const char *path, int n_runs)
{
	struct store *s;
	struct err err = {0};

	assert_ok(store_open(path, &s, &err), err);
	for (int i = 0; i < n_runs; i++)
		put(s, i, 2.385);
	assert_ok(store_close(s, &err), err);
}

static bool has(const char *path, int number)
{
	struct store *s;
	struct err err = {0};
	char key[17];
	bool there;

	snprintf(key, sizeof(key), "%016x", (unsigned)number);
	assert_ok(store_open(path, &s, &err), err);
	assert_ok(store_has(s, key, &there, &err), err);
	assert_ok(store_close(s, &err), err);
	return there;
}

static void refuse_open(const char *path, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void refuse_open(const char *path, const char *fmt, ...)
{
	struct store *s = (struct store *)&s;
	struct err err = {0};
	char want[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(want, sizeof(want), fmt, ap);
	va_end(ap);
	ck_assert_int_eq(store_open_wait(path, WAIT_MS, &s, &err), -1);
	ck_assert_ptr_null(s);
	assert_err(err, ERR_IO, want);
}

/* ---- what is stored ---- */

START_TEST(stores_every_type)
{
	const struct place p = place_new();

	create(p.db, 1);
	expect_sql(p.db, "PRAGMA user_version", "6");
	expect_sql(p.db, "PRAGMA application_id", "1868981875");
	expect_sql(p.db, "PRAGMA journal_mode", "wal");
	expect_sql(p.db, "SELECT key FROM run", "0000000000000000");
	expect_sql(p.db, "SELECT decode_tok_s FROM run", "2.385");
	expect_sql(p.db, "SELECT ttft_s FROM run", "NULL");
	expect_sql(p.db, "SELECT quant FROM run", "NULL");
	expect_sql(p.db, "SELECT batch FROM run", "NULL");
	expect_sql(p.db, "SELECT events FROM run", "9223372036854775807");
	expect_sql(p.db, "SELECT typeof(fits) FROM run", "integer");
	expect_sql(p.db, "SELECT wall_s FROM run_time", "0.125");
	expect_sql(p.db, "SELECT abs(julianday(stored_at) - julianday('now')) < 0.01 FROM run_time", "1");
	expect_sql(p.db,
		"SELECT group_concat(name || ' ' || value || ' ' || ifnull(number, '-'), ';') "
		"FROM (SELECT * FROM run_param ORDER BY position)",
		"flags.ngl 40 40.0;rate 40GB/s -;routing uniform -");
	ck_assert_int_ne(access(p.wal, F_OK), 0); /* closed: one file to copy */
	place_remove(&p);
}
END_TEST

START_TEST(views)
{
	const struct place p = place_new();

	create(p.db, 2);
	expect_sql(p.db, "SELECT count(*) FROM throughput", "2");
	expect_sql(p.db, "SELECT limited_by || ' ' || limited_share FROM throughput", "gpu0.link.h2d 0.7");
	expect_sql(p.db, "SELECT decode_limited_by || ' ' || prefill_limited_by FROM throughput", "gpu0.link.h2d gpu0.compute");
	expect_sql(p.db, "SELECT low80 FROM throughput", "2.1465");
	expect_sql(p.db, "SELECT free_bytes || ' ' || used_percent FROM memory_fit", "-250 125.0");
	place_remove(&p);
}
END_TEST

START_TEST(replaces)
{
	const struct place p = place_new();
	struct store *s;
	struct err err = {0};

	assert_ok(store_open(p.db, &s, &err), err);
	put(s, 7, 1);
	put(s, 7, 2.385);
	const struct store_value fewer[] = {{.column = "decode_tok_s", .type = STORE_REAL, .real = 3.25}};
	put(s, 8, 1);
	assert_ok(put_columns(s, fewer, 1, &err), err); /* key 7 */
	assert_ok(store_close(s, &err), err);
	expect_sql(p.db, "SELECT count(*) FROM run", "2");
	expect_sql(p.db, "SELECT decode_tok_s FROM run WHERE key LIKE '%7'", "3.25");
	expect_sql(p.db, "SELECT model FROM run WHERE key LIKE '%7'", "NULL");
	expect_sql(p.db, "SELECT count(*) FROM run_param", "3"); /* those of 8 */
	expect_sql(p.db, "SELECT count(*) FROM memory_use", "1");
	expect_sql(p.db, "SELECT count(*) FROM resource_use", "2");
	expect_sql(p.db, "SELECT count(*) FROM span", "1");
	expect_sql(p.db, "SELECT count(*) FROM run_time", "2");
	place_remove(&p);
}
END_TEST

START_TEST(knows_what_it_has)
{
	const struct place p = place_new();

	create(p.db, 3);
	ck_assert(has(p.db, 2));
	ck_assert(!has(p.db, 3));
	place_remove(&p);
}
END_TEST

START_TEST(a_parameter_set_twice_counts_once)
{
	const struct place p = place_new();
	const struct store_param param[] = {{"a", "1"}, {"b", "x"}, {"a", "2.5"}};
	const struct store_run r = {.key = "00000000000000ab", .param = param, .n_params = ARRAY_LEN(param)};
	struct store *s;
	struct err err = {0};

	assert_ok(store_open(p.db, &s, &err), err);
	assert_ok(store_put(s, &r, &err), err);
	assert_ok(store_close(s, &err), err);
	expect_sql(p.db, "SELECT group_concat(value) FROM run_param WHERE name = 'a'", "2.5");
	place_remove(&p);
}
END_TEST

START_TEST(odd_names)
{
	const struct place p = place_new();
	char cwd[1024];

	/* SQLite would take these for a database in memory and for a URI. */
	ck_assert_ptr_nonnull(getcwd(cwd, sizeof(cwd)));
	ck_assert_int_eq(chdir(p.folder), 0);
	create(":memory:", 1);
	create("file:x?mode=memory", 1);
	ck_assert(has(":memory:", 0) && has("file:x?mode=memory", 0));
	ck_assert_int_eq(unlink(":memory:"), 0);
	ck_assert_int_eq(unlink("file:x?mode=memory"), 0);
	refuse_open("", "the database has no name");
	ck_assert_int_eq(chdir(cwd), 0);
	place_remove(&p);
}
END_TEST

/* ---- what is refused ---- */

START_TEST(refused_columns_leave_the_old_run)
{
	const struct place p = place_new();
	const struct store_value bad[] = {{.column = "decode_tok", .type = STORE_REAL, .real = 1}};
	struct store *s;
	struct err err = {0};
	char want[256];

	assert_ok(store_open(p.db, &s, &err), err);
	put(s, 7, 2.385);
	ck_assert_int_eq(put_columns(s, bad, 1, &err), -1);
	snprintf(want, sizeof(want), "table 'run' of '%s' has no column 'decode_tok'", p.db);
	assert_err(err, ERR_IO, want);
	const struct store_run short_key = {.key = "12"};
	ck_assert_int_eq(store_put(s, &short_key, &err), -1);
	put(s, 9, 1); /* and the store still works */
	assert_ok(store_close(s, &err), err);
	expect_sql(p.db, "SELECT decode_tok_s FROM run WHERE key LIKE '%7'", "2.385");
	expect_sql(p.db, "SELECT count(*) FROM run", "2");
	place_remove(&p);
}
END_TEST

START_TEST(not_a_database)
{
	static const char text[] = "key,decode_tok_s\n0011223344556677,2.385\n";
	char path[32], page[4096];

	test_file(path, text, sizeof(text) - 1);
	refuse_open(path, "'%s' is not a results database", path);
	unlink(path);
	memset(page, 'x', sizeof(page));
	test_file(path, page, sizeof(page));
	refuse_open(path, "'%s' is not a results database", path);
	unlink(path);
	refuse_open("/dev/null", "'%s' is no regular file, not a results database", "/dev/null");
	refuse_open("/tmp", "'%s' is a folder, not a results database", "/tmp");
}
END_TEST

START_TEST(another_program)
{
	const struct place p = place_new();
	sqlite3 *db = raw_open(p.db);

	raw_exec(db, "CREATE TABLE t (a)");
	sqlite3_close(db);
	refuse_open(p.db, "'%s' is not a results database: it belongs to another program", p.db);
	db = raw_open(p.db);
	raw_exec(db, "PRAGMA application_id = 7; PRAGMA user_version = 1");
	sqlite3_close(db);
	refuse_open(p.db, "'%s' is not a results database: it belongs to another program", p.db);
	expect_sql(p.db, "SELECT count(*) FROM sqlite_schema", "1");
	expect_sql(p.db, "PRAGMA journal_mode", "delete"); /* untouched */
	place_remove(&p);
}
END_TEST

START_TEST(an_empty_file_is_taken)
{
	char path[32];

	test_file(path, "", 0);
	create(path, 1);
	ck_assert(has(path, 0));
	unlink(path);
}
END_TEST

START_TEST(newer_version)
{
	const struct place p = place_new();

	create(p.db, 1);
	sqlite3 *db = raw_open(p.db);
	raw_exec(db, "PRAGMA user_version = 99");
	sqlite3_close(db);
	refuse_open(p.db, "'%s' is of a newer offsim: it has schema version 99, this program knows up to 6",
		p.db);
	expect_sql(p.db, "SELECT count(*) FROM run", "1");
	place_remove(&p);
}
END_TEST

START_TEST(missing_table)
{
	const struct place p = place_new();

	create(p.db, 1);
	sqlite3 *db = raw_open(p.db);
	raw_exec(db, "DROP TABLE memory_use");
	sqlite3_close(db);
	refuse_open(p.db, "'%s' is damaged: it has no table 'memory_use'", p.db);
	place_remove(&p);
}
END_TEST

/* A file as the first version made it: the first section of schema.sql alone. */
static void create_v1(const char *path)
{
	const char *datadir;
	struct arena a;
	struct err err = {0};
	char *text;
	size_t len;

	arena_init(&a, NULL, NULL);
	assert_ok(datadir_find(&a, &datadir, &err), err);
	assert_ok(file_read(arena_printf(&a, "%s/sim/store/schema.sql", datadir), 1 << 20, &a, &text, &len,
			  &err),
		err);
	char *second = strstr(text, "\n-- version 2\n");
	ck_assert_ptr_nonnull(second);
	*second = '\0';
	sqlite3 *db = raw_open(path);
	raw_exec(db, text);
	raw_exec(db, "PRAGMA user_version = 1");
	raw_exec(db, "INSERT INTO run (key, decode_tok_s) VALUES ('00000000000000aa', 2.385)");
	sqlite3_close(db);
	arena_release(&a);
}

START_TEST(migrates)
{
	const struct place p = place_new();

	create_v1(p.db);
	expect_sql(p.db, "SELECT count(*) FROM sqlite_schema WHERE type = 'view'", "0");
	ck_assert(has(p.db, 0xaa));
	expect_sql(p.db, "PRAGMA user_version", "6");
	expect_sql(p.db, "SELECT decode_tok_s FROM throughput", "2.385");
	place_remove(&p);
}
END_TEST

START_TEST(a_failing_migration_changes_nothing)
{
	const struct place p = place_new();
	struct store *s;
	struct err err = {0};

	create_v1(p.db);
	sqlite3 *db = raw_open(p.db);
	raw_exec(db, "CREATE TABLE memory_fit (a)"); /* the second view will find its name taken */
	sqlite3_close(db);
	ck_assert_int_eq(store_open(p.db, &s, &err), -1);
	expect_sql(p.db, "PRAGMA user_version", "1");
	expect_sql(p.db, "SELECT count(*) FROM sqlite_schema WHERE type = 'view'", "0");
	place_remove(&p);
}
END_TEST

START_TEST(locked)
{
	const struct place p = place_new();
	struct store *s;
	struct err err = {0};
	char want[256];
	const struct store_run run = {.key = "0000000000000001"};

	create(p.db, 1);
	sqlite3 *db = raw_open(p.db);
	raw_exec(db, "BEGIN IMMEDIATE");
	assert_ok(store_open_wait(p.db, WAIT_MS, &s, &err), err); /* reading is allowed */
	bool there;
	assert_ok(store_has(s, "0000000000000000", &there, &err), err);
	ck_assert(there);
	ck_assert_int_eq(store_put(s, &run, &err), -1);
	snprintf(want, sizeof(want), "'%s' is locked by another program (waited 0.05 s)", p.db);
	assert_err(err, ERR_IO, want);
	raw_exec(db, "COMMIT");
	assert_ok(store_put(s, &run, &err), err);
	assert_ok(store_close(s, &err), err);
	raw_exec(db, "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT");
	sqlite3_close(db);

	db = raw_open(p.db);
	raw_exec(db, "PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE");
	refuse_open(p.db, "'%s' is locked by another program (waited 0.05 s)", p.db);
	sqlite3_close(db);
	place_remove(&p);
}
END_TEST

/* ---- where it cannot write ---- */

/* Runs fn in a process without root's rights. */
static void as_nobody(void (*fn)(const struct place *), const struct place *p)
{
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
			_exit(77);
		fn(p);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
}

/* ck_assert would end the whole test program, not the child. */
static void child_refuses(const char *path, const char *want)
{
	struct store *s;
	struct err err = {0};

	if (store_open_wait(path, WAIT_MS, &s, &err) != -1 || err.code != ERR_IO ||
		strcmp(err.msg, want) != 0) {
		fprintf(stderr, "'%s', not '%s'\n", err.msg, want);
		_exit(1);
	}
}

static void refuse_read_only_file(const struct place *p)
{
	char want[256];

	snprintf(want, sizeof(want), "cannot write '%s': it is read-only", p->db);
	child_refuses(p->db, want);
}

static void refuse_read_only_folder(const struct place *p)
{
	char want[512];

	snprintf(want, sizeof(want),
		"cannot write '%s': its folder '%s' is read-only, and the journal must be there too",
		p->db, p->folder);
	child_refuses(p->db, want);
}

START_TEST(read_only)
{
	const struct place p = place_new();

	create(p.db, 1);
	ck_assert_int_eq(chmod(p.db, 0444), 0);
	ck_assert_int_eq(chmod(p.folder, 0777), 0);
	as_nobody(refuse_read_only_file, &p);
	ck_assert_int_eq(chmod(p.db, 0666), 0);
	ck_assert_int_eq(chmod(p.folder, 0555), 0);
	as_nobody(refuse_read_only_folder, &p); /* a database that is there */
	ck_assert_int_eq(chmod(p.folder, 0755), 0);
	unlink(p.db);
	ck_assert_int_eq(chmod(p.folder, 0555), 0);
	as_nobody(refuse_read_only_folder, &p); /* and one that is not */
	ck_assert_int_eq(chmod(p.folder, 0755), 0);
	place_remove(&p);
}
END_TEST

START_TEST(missing_folder)
{
	refuse_open("/tmp/no-such/r.db",
		"cannot open '/tmp/no-such/r.db': folder '/tmp/no-such': No such file or directory");
	refuse_open("/dev/null/r.db", "cannot open '/dev/null/r.db': '/dev/null' is not a folder");
}
END_TEST

/*
 * A disk that is full after so many writes: SQLite's own file layer with another xWrite.
 */
static int writes_left; /* before the disk is full; negative: never */
static bool disk_is_full;
static sqlite3_vfs *real_vfs;

/* SQLite has a table of functions for a database and another for a journal. */
static struct {
	const sqlite3_io_methods *real;
	sqlite3_io_methods full;
} kinds[4];

static int full_write(sqlite3_file *file, const void *data, int n, sqlite3_int64 offset)
{
	size_t k = 0;

	if (writes_left == 0) {
		disk_is_full = true;
		return SQLITE_FULL;
	}
	if (writes_left > 0)
		writes_left--;
	while (file->pMethods != &kinds[k].full)
		k++;
	return kinds[k].real->xWrite(file, data, n, offset);
}

static int full_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out_flags)
{
	int rc = real_vfs->xOpen(vfs, name, file, flags, out_flags);
	size_t k = 0;

	if (rc != SQLITE_OK || !file->pMethods)
		return rc;
	while (kinds[k].real && kinds[k].real != file->pMethods)
		k++;
	ck_assert_uint_lt(k, ARRAY_LEN(kinds));
	kinds[k].real = file->pMethods;
	kinds[k].full = *file->pMethods;
	kinds[k].full.xWrite = full_write;
	file->pMethods = &kinds[k].full;
	return rc;
}

/* Whatever write it is that fails: an error that says so, and afterwards each run is there whole or not at
 * all. */
START_TEST(full_disk)
{
	const struct place p = place_new();
	struct store *s;
	struct err err;
	char want[256];
	int n = 0;

	real_vfs = sqlite3_vfs_find(NULL);
	sqlite3_vfs full_vfs = *real_vfs;
	full_vfs.zName = "full";
	full_vfs.xOpen = full_open;
	create(p.db, 1);
	ck_assert_int_eq(sqlite3_vfs_register(&full_vfs, 1), SQLITE_OK);
	snprintf(want, sizeof(want), "cannot write '%s': no space left on the disk", p.db);
	do {
		const struct store_run run = {.key = "0000000000000000"};
		const struct store_run other = {.key = "0000000000000001"};
		bool there;

		err = (struct err){0};
		disk_is_full = false;
		writes_left = n++;
		int status = store_open(p.db, &s, &err);
		if (!status) {
			status = store_put(s, &run, &err);
			if (!status)
				status = store_put(s, &other, &err);
			if (status)
				store_close(s, NULL);
			else
				status = store_close(s, &err);
		}
		ck_assert_int_eq(status, disk_is_full ? -1 : 0);
		if (disk_is_full) {
			ck_assert_int_eq((int)err.code, (int)ERR_IO);
			ck_assert_msg(strncmp(err.msg, want, strlen(want)) == 0, "%d: %s", n, err.msg);
		}
		/* There is room again: nothing is lost. */
		writes_left = -1;
		assert_ok(store_open(p.db, &s, &err), err);
		assert_ok(store_has(s, run.key, &there, &err), err);
		ck_assert(there);
		put(s, 0, 2.385);
		assert_ok(store_close(s, &err), err);
		expect_sql(p.db, "PRAGMA integrity_check", "ok");
		expect_sql(p.db, "SELECT count(*) FROM pragma_foreign_key_check", "0");
		ck_assert_int_lt(n, 1000);
	} while (disk_is_full);
	ck_assert_int_gt(n, 5); /* it did fail on the way */
	ck_assert_int_eq(sqlite3_vfs_unregister(&full_vfs), SQLITE_OK);
	place_remove(&p);
}
END_TEST

/* ---- several processes, and their deaths ---- */

static pid_t start(void (*fn)(const char *, int), const char *path, int from)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		fn(path, from);
		_exit(0);
	}
	return pid;
}

static int progress[2] = {-1, -1}; /* a pipe that takes a byte for each run put, when it is open */

/* Puts n runs one at a time, or runs for ever when n is negative. */
static void child_puts(const char *path, int from, int n)
{
	struct store *s;
	struct err err = {0};

	if (store_open(path, &s, &err)) {
		err_print(&err, stderr);
		_exit(1);
	}
	for (int i = 0; n < 0 || i < n; i++) {
		put(s, from + i, 2.385);
		if (progress[1] >= 0 && write(progress[1], "", 1) != 1)
			_exit(1);
	}
	if (store_close(s, &err))
		_exit(1);
}

static void puts_50(const char *path, int from)
{
	child_puts(path, from, 50);
}

static void puts_for_ever(const char *path, int from)
{
	child_puts(path, from, -1);
}

static void wait_for(pid_t pid)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

START_TEST(two_writers)
{
	const struct place p = place_new();
	pid_t a = start(puts_50, p.db, 0), b = start(puts_50, p.db, 1000); /* both find no file */

	wait_for(a);
	wait_for(b);
	expect_sql(p.db, "SELECT count(*) FROM run", "100");
	expect_sql(p.db, "SELECT count(*) FROM run_param", "300");
	expect_sql(p.db, "PRAGMA integrity_check", "ok");
	place_remove(&p);
}
END_TEST

/* Opening and closing are where files come and go. */
static void opens_and_closes(const char *path, int from)
{
	for (int i = 0; i < 10; i++)
		child_puts(path, from + i, 1);
}

START_TEST(many_short_writers)
{
	enum { N = 8 };
	const struct place p = place_new();
	pid_t pid[N];

	for (int i = 0; i < N; i++)
		pid[i] = start(opens_and_closes, p.db, 100 * i);
	for (int i = 0; i < N; i++)
		wait_for(pid[i]);
	expect_sql(p.db, "SELECT count(*) FROM run", "80");
	expect_sql(p.db, "PRAGMA integrity_check", "ok");
	place_remove(&p);
}
END_TEST

static void expect_whole_runs(const char *path)
{
	expect_sql(path, "PRAGMA integrity_check", "ok");
	expect_sql(path, "SELECT count(*) FROM pragma_foreign_key_check", "0");
	expect_sql(path,
		"SELECT count(*) FROM run AS r "
		"WHERE (SELECT count(*) FROM run_param AS p WHERE p.key = r.key) <> 3 "
		"OR (SELECT count(*) FROM memory_use AS m WHERE m.key = r.key) <> 1 "
		"OR (SELECT count(*) FROM resource_use AS u WHERE u.key = r.key) <> 2 "
		"OR NOT EXISTS (SELECT 1 FROM run_time AS t WHERE t.key = r.key)",
		"0");
}

START_TEST(killed_while_writing)
{
	const struct place p = place_new();

	for (int i = 0; i < 20; i++) {
		char byte;
		int status;
		ck_assert_int_eq(pipe(progress), 0);
		pid_t pid = start(puts_for_ever, p.db, 10000 * (i + 1));
		for (int k = 0; k <= i; k++)
			ck_assert_int_eq(read(progress[0], &byte, 1), 1);
		usleep(37u * (unsigned)i); /* anywhere in a later one */
		kill(pid, SIGKILL);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert(WIFSIGNALED(status));
		close(progress[0]);
		close(progress[1]);
		progress[1] = -1;
		create(p.db, 1);
		expect_whole_runs(p.db);
		ck_assert(has(p.db, 10000 * (i + 1) + i)); /* the last one that was heard of */
	}
	place_remove(&p);
}
END_TEST

/* Dies with one run committed and half of another in the journal. */
static void dies_in_transaction(const char *path, int from)
{
	struct store *s;
	struct err err = {0};
	sqlite3 *db;

	if (store_open(path, &s, &err))
		_exit(1);
	put(s, from, 2.385);
	/* With a cache of one page, what is not committed goes to the journal. */
	if (sqlite3_open(path, &db) ||
		sqlite3_exec(db,
			"PRAGMA cache_size = 1; BEGIN IMMEDIATE;"
			"DELETE FROM run WHERE key = '0000000000000000';"
			"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) "
			"INSERT INTO run (key, scenario) "
			"SELECT printf('%016x', 5000 + i), hex(zeroblob(1000)) FROM n",
			NULL, NULL, NULL))
		_exit(1);
	kill(getpid(), SIGKILL);
}

START_TEST(killed_in_transaction)
{
	const struct place p = place_new();
	struct stat st;
	int status;

	create(p.db, 1);
	pid_t pid = start(dies_in_transaction, p.db, 1);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(stat(p.wal, &st), 0); /* left behind */
	ck_assert_int_gt(st.st_size, 1000000);
	ck_assert(has(p.db, 0));
	ck_assert(has(p.db, 1));
	expect_sql(p.db, "SELECT count(*) FROM run", "2");
	expect_whole_runs(p.db);
	place_remove(&p);
}
END_TEST

/* The journal of a database that is gone: a new one in its place must not read it. */
START_TEST(foreign_journal)
{
	const struct place p = place_new();
	int status;

	create(p.db, 1);
	pid_t pid = start(dies_in_transaction, p.db, 1);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(unlink(p.db), 0);
	ck_assert(!has(p.db, 1));
	create(p.db, 1);
	expect_sql(p.db, "SELECT count(*) FROM run", "1");
	expect_whole_runs(p.db);
	place_remove(&p);
}
END_TEST

START_TEST(closing_nothing)
{
	struct err err = {0};

	ck_assert_int_eq(store_close(NULL, &err), 0);
}
END_TEST

/* ---- replays ---- */

static int put_replay(struct store *s, const char *executor, double ratio, uint64_t n_operations, const char *column,
	struct err *err)
{
	struct store_value head[] = {{.column = "executor", .type = STORE_TEXT, .text = executor},
		{.column = "ratio", .type = STORE_REAL, .real = ratio}};
	struct store_value value[3][3];
	struct store_row operation[3];

	for (uint64_t i = 0; i < n_operations; i++) {
		value[i][0] = head[0];
		value[i][1] = (struct store_value){.column = "position", .type = STORE_COUNT, .count = i};
		value[i][2] = (struct store_value){.column = column, .type = STORE_TEXT, .text = "kernel"};
		operation[i] = (struct store_row){value[i], 3};
	}
	const struct store_replay r = {"00000000000000ab", executor, {head, ARRAY_LEN(head)}, operation, n_operations};
	return store_put_replay(s, &r, err);
}

/* The last of an executor counts, whole or not at all; another executor's stays. */
START_TEST(a_replay_is_replaced)
{
	struct place p = place_new();
	struct store *s;
	struct err err = {0};

	assert_ok(store_open(p.db, &s, &err), err);
	assert_ok(put_replay(s, "cpu", 0.875, 3, "operation", &err), err);
	assert_ok(put_replay(s, "cuda", 2.385, 2, "operation", &err), err);
	assert_ok(put_replay(s, "cpu", 1.125, 1, "operation", &err), err);
	ck_assert_int_eq(put_replay(s, "cpu", 7, 1, "opreation", &err), -1);
	assert_ok(store_close(s, &err), err);
	expect_sql(p.db, "SELECT group_concat(executor || ratio, ' ') FROM (SELECT * FROM replay ORDER BY executor)",
		"cpu1.125 cuda2.385");
	expect_sql(p.db, "SELECT count(*) FROM replay_operation", "3");
	expect_sql(p.db, "SELECT count(*) FROM replay WHERE stored_at LIKE '20__-__-__T__:__:__Z'", "2");
	place_remove(&p);
}
END_TEST

TEST_MAIN("store", stores_every_type, views, replaces, knows_what_it_has, a_parameter_set_twice_counts_once,
	odd_names, refused_columns_leave_the_old_run, not_a_database, another_program, an_empty_file_is_taken,
	a_replay_is_replaced, newer_version, missing_table, migrates, a_failing_migration_changes_nothing, locked, read_only, missing_folder,
	full_disk, two_writers, many_short_writers, killed_while_writing, killed_in_transaction,
	foreign_journal, closing_nothing)
