/* From results.db to curves; figures themselves are drawn in tests/cli. */
#include "plots/plot.h"

#include <sqlite3.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "plots/figure.h"
#include "plots/gnuplot.h"
#include "sim/store/store.h"

#include "tests/test.h"

/* ---- a database ---- */

struct place {
	char folder[64], db[96];
	struct store *store;
	struct arena arena;
	int n_runs;
};

static void place_new(struct place *p)
{
	struct err err = {0};

	*p = (struct place){.folder = "/tmp/offsim-test-XXXXXX"};
	ck_assert_ptr_nonnull(mkdtemp(p->folder));
	snprintf(p->db, sizeof(p->db), "%s/r?.db", p->folder); /* no query part of a URI */
	arena_init(&p->arena, NULL, NULL);
	assert_ok(store_open(p->db, &p->store, &err), err);
}

static void place_close(struct place *p)
{
	struct err err = {0};

	assert_ok(store_close(p->store, &err), err);
	p->store = NULL;
}

static void place_remove(struct place *p)
{
	arena_release(&p->arena);
	unlink(p->db);
	ck_assert_int_eq(rmdir(p->folder), 0); /* reading left nothing beside it */
}

struct run {
	const char *model, *engine;
	int batch;
	double decode;
	struct store_param param[3];
};

static void put(struct place *p, const struct run *r)
{
	char key[17];
	double decode = r->decode > 0 ? r->decode : (double)NAN;
	const struct store_value value[] = {
		{.column = "fits", .type = STORE_COUNT, .count = r->decode >= 0},
		{.column = "model", .type = STORE_TEXT, .text = r->model},
		{.column = "quant", .type = STORE_TEXT, .text = "q4_0"},
		{.column = "engine", .type = STORE_TEXT, .text = r->engine},
		{.column = "batch", .type = STORE_COUNT, .count = (uint64_t)r->batch},
		{.column = "depth", .type = STORE_COUNT, .count = 0},
		{.column = "decode_tok_s", .type = STORE_REAL, .real = decode},
		{.column = "decode_tok_s_low80", .type = STORE_REAL, .real = r->decode * 0.9},
		{.column = "upper_bound_tok_s", .type = STORE_REAL, .real = r->decode * 1.5},
		{.column = "ttft_s", .type = STORE_REAL, .real = 0.5 * p->n_runs},
	};
	struct store_run run = {
		.key = key,
		.run = {value, ARRAY_LEN(value)},
		.param = r->param,
	};
	struct err err = {0};

	while (run.n_params < ARRAY_LEN(r->param) && r->param[run.n_params].name)
		run.n_params++;
	snprintf(key, sizeof(key), "%016x", (unsigned)++p->n_runs);
	assert_ok(store_put(p->store, &run, &err), err);
}

static int read_curves(struct place *p, const char *x, const char *series, struct curves *c, struct err *err)
{
	const struct curves_request req = {
		.metric = {"decode_tok_s", "ttft_s"}, .n_metrics = 1, .x = x, .series = series};
	struct query *q;

	assert_ok(query_open(p->db, &p->arena, &q, err), *err);
	int status = curves_read(q, &req, &p->arena, c, err);
	query_close(q);
	return status;
}

/* "NAME: x,y x,y; NAME: …" */
static void expect_curves(struct place *p, const char *x, const char *series, const char *want_x,
	const char *want)
{
	struct curves c;
	struct err err = {0};
	char text[1024];
	size_t n = 0;

	assert_ok(read_curves(p, x, series, &c, &err), err);
	for (size_t k = 0; k < c.n; k++) {
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s:", k ? "; " : "", c.curve[k].name);
		for (size_t i = 0; i < c.curve[k].n; i++)
			n += (size_t)snprintf(text + n, sizeof(text) - n, " %g,%g", c.curve[k].point[i].x,
				c.curve[k].point[i].y[0].value);
	}
	ck_assert_str_eq(text, want);
	ck_assert_str_eq(arena_printf(&p->arena, "%s %s", c.x, c.x_unit), want_x);
}

static void refuse_curves(struct place *p, const char *x, const char *series, enum err_code code,
	const char *fmt, ...)
	PRINTF_LIKE(5, 6);

static void refuse_curves(struct place *p, const char *x, const char *series, enum err_code code,
	const char *fmt, ...)
{
	struct curves c;
	struct err err = {0};
	char want[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(want, sizeof(want), fmt, ap);
	va_end(ap);
	ck_assert_int_eq(read_curves(p, x, series, &c, &err), -1);
	assert_err(err, code, want);
}

/* ---- curves ---- */

START_TEST(one_swept_key)
{
	struct place p;
	struct curves c;
	struct err err = {0};

	place_new(&p);
	put(&p, &(struct run){"m", "e", 1, 4.5, {{"flags.ngl", "40"}}});
	put(&p, &(struct run){"m", "e", 1, 2.5, {{"flags.ngl", "9"}}});
	put(&p, &(struct run){"m", "e", 1, -1, {{"flags.ngl", "80"}}});   /* does not fit */
	put(&p, &(struct run){"m", "e", 1, 0, {{"flags.ngl", "41"}}});    /* failed */
	put(&p, &(struct run){"m", "e", 1, 3, {{0}}});
	place_close(&p);
	expect_curves(&p, NULL, NULL, "flags.ngl ", "simulated: 9,2.5 40,4.5");
	assert_ok(read_curves(&p, NULL, NULL, &c, &err), err);
	ck_assert_uint_eq(c.n_points, 2);
	ck_assert_uint_eq(c.n_no_fit, 1);
	ck_assert_uint_eq(c.n_failed, 1);
	ck_assert_uint_eq(c.n_no_x, 1);
	ck_assert_ptr_null(c.name);
	ck_assert_ptr_null(c.mixed);
	ck_assert_str_eq(c.common, "m, q4_0, e, batch 1");
	assert_close(c.curve[0].point[0].y[0].low80, 2.25, 1e-15);
	assert_close(c.curve[0].point[0].upper_bound, 3.75, 1e-15);
	ck_assert(isnan(c.curve[0].point[0].y[0].high80));
	place_remove(&p);
}
END_TEST

START_TEST(a_grid)
{
	static const char *const models[] = {"m-70b", "m-8b"};
	static const char *const gens[] = {"5", "3", "16"};
	struct place p;
	struct curves c;
	struct err err = {0};
	int n = 0;

	place_new(&p);
	for (size_t m = 0; m < ARRAY_LEN(models); m++)
		for (size_t g = 0; g < ARRAY_LEN(gens); g++)
			for (int b = 1; b <= 2; b++)
				put(&p, &(struct run){models[m], "e", b, ++n,
					{{"workload.batch", b == 1 ? "1" : "2"},
						{"machine.gpu0.link.gen", gens[g]},
						{"model", models[m]}}});
	place_close(&p);
	/* workload.batch is the first key; the column batch is the same thing and model is named twice. */
	expect_curves(&p, NULL, NULL, "workload.batch ",
		"m-8b, gen 3: 1,9 2,10; m-8b, gen 5: 1,7 2,8; m-8b, gen 16: 1,11 2,12; "
		"m-70b, gen 3: 1,3 2,4; m-70b, gen 5: 1,1 2,2; m-70b, gen 16: 1,5 2,6");
	expect_curves(&p, "machine.gpu0.link.gen", "model,batch", "machine.gpu0.link.gen ",
		"m-8b, batch 1: 3,9 5,7 16,11; m-8b, batch 2: 3,10 5,8 16,12; "
		"m-70b, batch 1: 3,3 5,1 16,5; m-70b, batch 2: 3,4 5,2 16,6");
	expect_curves(&p, "batch", "model", "batch ",
		"m-8b: 1,7 1,9 1,11 2,8 2,10 2,12; m-70b: 1,1 1,3 1,5 2,2 2,4 2,6");
	assert_ok(read_curves(&p, "batch", "model", &c, &err), err);
	ck_assert_str_eq(c.mixed, "machine.gpu0.link.gen");
	expect_curves(&p, "ttft_s", "", "ttft_s ",
		"simulated: 0,1 0.5,2 1,3 1.5,4 2,5 2.5,6 3,7 3.5,8 4,9 4.5,10 5,11 5.5,12");
	refuse_curves(&p, "batch", "batch,model", ERR_USAGE,
		"'batch' is the x axis and cannot be in --series too");
	refuse_curves(&p, "machine.gpu0.link.gne", NULL, ERR_USAGE,
		"no key 'machine.gpu0.link.gne' in '%s'; did you mean 'machine.gpu0.link.gen'?", p.db);
	refuse_curves(&p, NULL, "model,zzz", ERR_USAGE,
		"no key 'zzz' in '%s'; there are: workload.batch, machine.gpu0.link.gen, model, "
		"version, quant, machine, engine, batch, prompt, generate, depth",
		p.db);
	expect_curves(&p, "model", "batch,machine.gpu0.link.gen", "model ",
		"gen 3, batch 1: 0,3 1,9; gen 3, batch 2: 0,4 1,10; gen 5, batch 1: 0,1 1,7; "
		"gen 5, batch 2: 0,2 1,8; gen 16, batch 1: 0,5 1,11; gen 16, batch 2: 0,6 1,12");
	place_remove(&p);
}
END_TEST

/* Values that are not all numbers: numbers first, by size, then words as they were stored. */
START_TEST(names)
{
	static const char *const ngl[] = {"40", "auto", "9", "all"};
	static const char *const want[] = {"9", "40", "auto", "all"};
	struct place p;
	struct curves c;
	struct err err = {0};

	place_new(&p);
	for (size_t i = 0; i < ARRAY_LEN(ngl); i++)
		for (int e = 0; e < 2; e++)
			put(&p, &(struct run){"m", e ? "b" : "a", 1, (double)i + 1, {{"flags.ngl", ngl[i]}}});
	place_close(&p);
	expect_curves(&p, NULL, NULL, "flags.ngl ", "a: 0,3 1,1 2,2 3,4; b: 0,3 1,1 2,2 3,4");
	assert_ok(read_curves(&p, NULL, NULL, &c, &err), err);
	ck_assert_uint_eq(c.n_names, ARRAY_LEN(want));
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		ck_assert_str_eq(c.name[i], want[i]);
		ck_assert_str_eq(c.curve[1].point[i].label, want[i]);
	}
	ck_assert_ptr_null(c.mixed);
	expect_curves(&p, "engine", "flags.ngl", "engine ",
		"ngl 9: 0,3 1,3; ngl 40: 0,1 1,1; ngl all: 0,4 1,4; ngl auto: 0,2 1,2");
	place_remove(&p);
}
END_TEST

START_TEST(names_when_nothing_is_a_number)
{
	struct place p;

	place_new(&p);
	put(&p, &(struct run){"m", "vllm", 1, 1, {{0}}});
	put(&p, &(struct run){"m", "accelerate", 1, 2, {{0}}});
	place_close(&p);
	expect_curves(&p, NULL, NULL, "engine ", "simulated: 0,1 1,2");
	place_remove(&p);
}
END_TEST

START_TEST(too_many_names)
{
	struct place p;
	char k[16];

	place_new(&p);
	for (int i = 0; i <= CURVES_NAMES_MAX; i++) {
		snprintf(k, sizeof(k), "v%d", i);
		put(&p, &(struct run){"m", "a", 1, 1, {{"k", k}}});
	}
	place_close(&p);
	refuse_curves(&p, NULL, NULL, ERR_USAGE,
		"'k' takes 61 values that are not all numbers; an x axis has room for 60 names; choose another with "
		"--x, or draw a database with fewer runs");
	place_remove(&p);
}
END_TEST

/* Two metrics, and runs that do not fit. */
START_TEST(other_requests)
{
	const struct curves_request two = {.metric = {"ttft_s", "decode_tok_s"}, .n_metrics = 2};
	const struct curves_request none = {.also_no_fit = true, .also_one = true};
	struct place p;
	struct query *q;
	struct curves c;
	struct err err = {0};

	place_new(&p);
	put(&p, &(struct run){"m", "e", 1, 4, {{"n", "1"}}});
	assert_ok(query_open(p.db, &p.arena, &q, &err), err);
	assert_ok(curves_read(q, &none, &p.arena, &c, &err), err);
	ck_assert_str_eq(c.x, "model");
	ck_assert_uint_eq(c.n_names, 1);
	query_close(q);
	put(&p, &(struct run){"m", "e", 1, -1, {{"n", "2"}}});
	place_close(&p);
	assert_ok(query_open(p.db, &p.arena, &q, &err), err);
	assert_ok(curves_read(q, &two, &p.arena, &c, &err), err);
	ck_assert_uint_eq(c.n_points, 1);
	ck_assert_uint_eq(c.n_no_fit, 1);
	assert_close(c.curve[0].point[0].y[0].value, 0, 1e-15);
	assert_close(c.curve[0].point[0].y[1].value, 4, 1e-15);
	assert_ok(curves_read(q, &none, &p.arena, &c, &err), err);
	query_close(q);
	ck_assert_uint_eq(c.n_points, 2);
	ck_assert_uint_eq(c.n_no_fit, 0);
	ck_assert(c.curve[0].point[0].fits && !c.curve[0].point[1].fits);
	ck_assert_str_eq(c.curve[0].point[1].run, "0000000000000002");
	place_remove(&p);
}
END_TEST

/* Engines that ran at other x are other curves, though x alone would tell the runs apart. */
START_TEST(no_grid)
{
	struct place p;

	place_new(&p);
	put(&p, &(struct run){"m", "a", 1, 1, {{"n", "1"}}});
	put(&p, &(struct run){"m", "a", 1, 2, {{"n", "2"}}});
	put(&p, &(struct run){"m", "b", 1, 3, {{"n", "3"}}});
	put(&p, &(struct run){"m", "b", 1, 4, {{"n", "4"}, {"k", "x"}}});
	place_close(&p);
	expect_curves(&p, NULL, NULL, "n ", "a, k not set: 1,1 2,2; b, k not set: 3,3; b, k x: 4,4");
	place_remove(&p);
}
END_TEST

START_TEST(units)
{
	struct place p;

	place_new(&p);
	put(&p, &(struct run){"m", "a", 1, 1, {{"rate", "16GB/s"}, {"size", "512KiB"}, {"share", "5%"}}});
	put(&p, &(struct run){"m", "a", 1, 2, {{"rate", "32.5GB/s"}, {"size", "1MiB"}, {"share", "50%"}}});
	place_close(&p);
	expect_curves(&p, NULL, "", "rate GB/s", "simulated: 16,1 32.5,2");
	expect_curves(&p, "size", "", "size B", "simulated: 524288,1 1.04858e+06,2");
	expect_curves(&p, "share", "", "share %", "simulated: 5,1 50,2");
	expect_curves(&p, NULL, NULL, "rate GB/s", "size 512KiB: 16,1; size 1MiB: 32.5,2");
	place_remove(&p);
}
END_TEST

START_TEST(columns_when_nothing_was_swept)
{
	struct place p;

	place_new(&p);
	put(&p, &(struct run){"m", "a", 4, 1, {{0}}});
	refuse_curves(&p, NULL, NULL, ERR_INPUT,
		"no key takes two values in the 1 run of '%s' to make an x axis; use --x: "
		"version, model, quant, machine, engine, batch, prompt, generate, depth", p.db);
	expect_curves(&p, "batch", NULL, "batch ", "simulated: 4,1");
	refuse_curves(&p, "prompt", NULL, ERR_USAGE, "no run in '%s' has a value of 'prompt'", p.db);
	put(&p, &(struct run){"m", "a", 2, 3, {{0}}});
	place_close(&p);
	expect_curves(&p, NULL, NULL, "batch ", "simulated: 2,3 4,1");
	place_remove(&p);
}
END_TEST

START_TEST(nothing_to_draw)
{
	struct place p;

	place_new(&p);
	refuse_curves(&p, NULL, NULL, ERR_INPUT,
		"'%s' holds no runs yet; 'offsim run' and 'offsim sweep' add them", p.db);
	put(&p, &(struct run){"m", "a", 1, -1, {{"n", "1"}}});
	put(&p, &(struct run){"m", "a", 1, 0, {{"n", "2"}}});
	place_close(&p);
	refuse_curves(&p, NULL, NULL, ERR_INPUT,
		"nothing to draw: of 2 runs in '%s' 1 do not fit, 1 failed or lack that number, 0 have no 'n'", p.db);
	place_remove(&p);
}
END_TEST

START_TEST(too_many_curves)
{
	struct place p;
	char k[16];

	place_new(&p);
	for (int i = 0; i < 2 * (CURVES_MAX + 1); i++) {
		snprintf(k, sizeof(k), "v%d", i / 2);
		put(&p, &(struct run){"m", "a", 1, 1, {{"n", i % 2 ? "1" : "2"}, {"k", k}}});
	}
	place_close(&p);
	refuse_curves(&p, NULL, NULL, ERR_USAGE,
		"13 curves, but only 12 can be told apart; choose fewer keys with --series, out of: k");
	place_remove(&p);
}
END_TEST

/* ---- the file ---- */

static void refuse_open(struct place *p, const char *path, const char *want)
{
	struct query *q = (struct query *)&q;
	struct err err = {0};

	ck_assert_int_eq(query_open(path, &p->arena, &q, &err), -1);
	ck_assert_ptr_null(q);
	assert_err(err, ERR_IO, want);
}

static void raw_exec(const char *path, const char *sql)
{
	sqlite3 *db;

	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

START_TEST(refused_files)
{
	struct place p;
	char file[32];

	place_new(&p);
	place_close(&p);
	raw_exec(p.db, "PRAGMA user_version = 1");
	refuse_open(&p, p.db, arena_printf(&p.arena,
		"'%s' is of an older offsim: it has schema version 1, this program reads 6; "
		"the next 'offsim run' that stores into it brings it up to date", p.db));
	raw_exec(p.db, "PRAGMA user_version = 7");
	refuse_open(&p, p.db, arena_printf(&p.arena,
		"'%s' is of a newer offsim: it has schema version 7, this program reads 6", p.db));
	raw_exec(p.db, "PRAGMA application_id = 3");
	refuse_open(&p, p.db, arena_printf(&p.arena,
		"'%s' is not a results database: it belongs to another program", p.db));
	test_file(file, "", 0);
	refuse_open(&p, file, arena_printf(&p.arena,
		"'%s' is not a results database: it has no tables of offsim", file));
	unlink(file);
	test_file(file, "key,value\n", 10);
	refuse_open(&p, file, arena_printf(&p.arena, "'%s' is not a results database", file));
	unlink(file);
	refuse_open(&p, "/tmp", "'/tmp' is a folder, not a results database");
	refuse_open(&p, "/tmp/no-such.db",
		"cannot read '/tmp/no-such.db': No such file or directory "
		"('offsim run' and 'offsim sweep' make it)");
	place_remove(&p);
}
END_TEST

/* The files of a process without root's rights. */
static int count_runs_as_nobody(struct place *p)
{
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		struct err err = {0};
		struct curves c = {0};
		struct query *q;
		const struct curves_request req = {.metric = {"decode_tok_s"}, .n_metrics = 1, .x = "batch"};
		if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
			_exit(100);
		if (query_open(p->db, &p->arena, &q, &err) || curves_read(q, &req, &p->arena, &c, &err)) {
			err_print(&err, stderr);
			_exit(101);
		}
		query_close(q);
		_exit((int)c.n_points);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

START_TEST(read_only_places)
{
	struct place p;
	struct err err = {0};

	place_new(&p);
	put(&p, &(struct run){"m", "a", 4, 1, {{0}}});
	place_close(&p);
	ck_assert_int_eq(chmod(p.db, 0444), 0);
	ck_assert_int_eq(chmod(p.folder, 0777), 0);
	ck_assert_int_eq(count_runs_as_nobody(&p), 1);
	ck_assert_int_eq(chmod(p.db, 0666), 0);
	ck_assert_int_eq(chmod(p.folder, 0555), 0);
	ck_assert_int_eq(count_runs_as_nobody(&p), 1);
	ck_assert_int_eq(chmod(p.folder, 0755), 0);
	/* While somebody else writes. */
	ck_assert_int_eq(chmod(p.db, 0644), 0);
	assert_ok(store_open(p.db, &p.store, &err), err);
	put(&p, &(struct run){"m", "a", 2, 1, {{0}}});
	ck_assert_int_eq(count_runs_as_nobody(&p), 2);
	place_close(&p);
	place_remove(&p);
}
END_TEST

START_TEST(suffixes)
{
	static const char *const bad[] = {"x", "svg", ".svg", "a/.svg", "x.svg.gz", "x.jpg", ""};
	const char *terminal;
	struct err err = {0};

	assert_ok(gnuplot_terminal("x.svg", &terminal, &err), err);
	ck_assert_str_eq(terminal, "svg");
	assert_ok(gnuplot_terminal("a.b/x.PNG", &terminal, &err), err);
	ck_assert_str_eq(terminal, "png");
	assert_ok(gnuplot_terminal("x.svg.pdf", &terminal, &err), err);
	ck_assert_str_eq(terminal, "pdf");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ck_assert_int_eq(gnuplot_terminal(bad[i], &terminal, &err), -1);
	assert_err(err, ERR_USAGE, "'' must end in .svg, .png or .pdf");
}
END_TEST

/* ---- figures ---- */

static void put_uses(struct place *p)
{
	const struct store_value run[] = {
		{.column = "fits", .type = STORE_COUNT, .count = 0},
		{.column = "model", .type = STORE_TEXT, .text = "m"},
	};
	const struct store_value gpu[] = {
		{.column = "memory", .type = STORE_TEXT, .text = "gpu0"},
		{.column = "capacity_bytes", .type = STORE_COUNT, .count = 4ull << 30},
		{.column = "weights_bytes", .type = STORE_COUNT, .count = 5ull << 30},
		{.column = "overhead_bytes", .type = STORE_COUNT, .count = 1ull << 30},
	};
	const struct store_value ram[] = {
		{.column = "memory", .type = STORE_TEXT, .text = "ram"},
		{.column = "capacity_bytes", .type = STORE_COUNT, .count = 64ull << 30},
		{.column = "kv_bytes", .type = STORE_COUNT, .count = 2ull << 30},
	};
	const struct store_value link[] = {
		{.column = "resource", .type = STORE_TEXT, .text = "link"},
		{.column = "busy", .type = STORE_REAL, .real = 0.75},
		{.column = "utilisation", .type = STORE_REAL, .real = 0.5},
		{.column = "critical", .type = STORE_REAL, .real = 0.625},
	};
	const struct store_value rest[] = {
		{.column = "resource", .type = STORE_TEXT, .text = "overhead"},
		{.column = "critical", .type = STORE_REAL, .real = 0.375},
	};
	const struct store_row memory[] = {{gpu, ARRAY_LEN(gpu)}, {ram, ARRAY_LEN(ram)}};
	const struct store_row resource[] = {{link, ARRAY_LEN(link)}, {rest, ARRAY_LEN(rest)}};
	const struct store_run r = {
		.key = "00000000000000ff",
		.run = {run, ARRAY_LEN(run)},
		.memory = memory,
		.n_memory = ARRAY_LEN(memory),
		.resource = resource,
		.n_resources = ARRAY_LEN(resource),
	};
	struct err err = {0};

	assert_ok(store_put(p->store, &r, &err), err);
}

static void fill_figure(struct place *p, int (*fill)(struct figure *f, struct err *err), struct figure *f)
{
	const struct curves_request req = {.also_no_fit = true, .also_one = true};
	struct err err = {0};

	*f = (struct figure){
		.arena = &p->arena, .data.arena = &p->arena, .y_label = "", .names = "", .panels = 1};
	assert_ok(query_open(p->db, &p->arena, &f->q, &err), err);
	assert_ok(curves_read(f->q, &req, &p->arena, &f->c, &err), err);
	assert_ok(fill(f, &err), err);
	query_close(f->q);
}

static const char *after_comment(const struct figure *f)
{
	return strchr(f->data.at, '\n') + 1;
}

/* One run that does not fit: 6 GiB in 4, marked there; and in RAM a capacity far above what is used. */
START_TEST(memory_figure)
{
	struct place p;
	struct figure f;

	place_new(&p);
	put_uses(&p);
	place_close(&p);
	fill_figure(&p, figure_memory, &f);
	ck_assert_str_eq(after_comment(&f), "0 \"m\"\n\n\n0 \"simulated\"\n\n\n"
					    "0 4 5 5 5 6 6 NaN\n\n\n0 NaN 0 2 2 2 NaN 2.08\n\n\n");
	ck_assert_str_eq(f.names, "gpu0 ram");
	ck_assert_uint_eq(f.panels, 2);
	ck_assert_str_eq(f.options, "1 -3 3 0 0 1 0 1 1 2 6.96 GiB 0 2.6 GiB 64");
	place_remove(&p);
}
END_TEST

START_TEST(utilisation_figure)
{
	struct place p;
	struct figure f;

	place_new(&p);
	put_uses(&p);
	place_close(&p);
	fill_figure(&p, figure_utilisation, &f);
	ck_assert_str_eq(after_comment(&f), "0 \"m\"\n\n\n0 \"simulated\"\n\n\n"
					    "0 62.5 100\n\n\n0 0.75 0.5\n\n\n");
	ck_assert_str_eq(f.names, "link overhead link");
	place_remove(&p);
}
END_TEST

START_TEST(runs_without_uses)
{
	const struct curves_request req = {.also_one = true};
	struct place p;
	struct figure f = {.arena = &p.arena, .data.arena = &p.arena, .names = ""};
	struct err err = {0};
	char want[256];

	place_new(&p);
	put(&p, &(struct run){"m", "e", 1, 4, {{"n", "1"}}});
	place_close(&p);
	assert_ok(query_open(p.db, &p.arena, &f.q, &err), err);
	assert_ok(curves_read(f.q, &req, &p.arena, &f.c, &err), err);
	ck_assert_int_eq(figure_memory(&f, &err), -1);
	snprintf(want, sizeof(want), "no run in '%s' says what lies in its memories", p.db);
	assert_err(err, ERR_INPUT, want);
	ck_assert_int_eq(figure_utilisation(&f, &err), -1);
	snprintf(want, sizeof(want), "no run in '%s' says how busy its resources are", p.db);
	assert_err(err, ERR_INPUT, want);
	query_close(f.q);
	place_remove(&p);
}
END_TEST

/* Characters have no slanted text: names without room become numbers that the axis explains. */
START_TEST(numbered_names)
{
	static const char *const models[] = {"a-machine-with-a-long-name", "another-machine-with-a-long-name"};
	struct place p;
	struct figure f;

	place_new(&p);
	for (size_t i = 0; i < ARRAY_LEN(models); i++)
		put(&p, &(struct run){models[i], "e", 1, 1, {{0}}});
	place_close(&p);
	f = (struct figure){
		.metric = {&plot_metrics[0]},
		.n_metrics = 1,
		.characters = true,
		.arena = &p.arena,
		.data.arena = &p.arena,
	};
	struct err err = {0};
	assert_ok(read_curves(&p, NULL, NULL, &f.c, &err), err);
	assert_ok(figure_curves(&f, &err), err);
	ck_assert_str_eq(f.x_label, "model: 1 a-machine-with-a-long-name,\n2 another-machine-with-a-long-name");
	ck_assert_ptr_nonnull(strstr(f.data.at, "0 \"1\"\n1 \"2\"\n"));
	ck_assert_uint_eq(f.more_rows, 1);
	place_remove(&p);
}
END_TEST

START_TEST(names_in_data)
{
	struct arena a;
	struct data d = {.arena = &a};

	arena_init(&a, NULL, NULL);
	data_name(&d, "a \"b\"\n\\n", " ");
	data_number(&d, (double)NAN, " ");
	data_lines(&d, "m, \"e\", b 1");
	ck_assert_str_eq(d.at, "\"a 'b' 'n\" NaN \"m,\\n'e',\\nb 1\"\n");
	arena_release(&a);
}
END_TEST

START_TEST(unknown_metric)
{
	struct plot_request req = {.kind = "latency", .db = "/nonexistent", .out = "x.svg", .y = "ttft"};
	struct plot_summary summary;
	struct arena a;
	struct err err = {0};

	arena_init(&a, NULL, NULL);
	ck_assert_int_eq(plot_draw(&req, &a, &summary, &err), -1);
	assert_err(err, ERR_USAGE, "no metric 'ttft'; did you mean 'ttft_s'?");
	req.y = "zzz";
	ck_assert_int_eq(plot_draw(&req, &a, &summary, &err), -1);
	assert_err(err, ERR_USAGE,
		"no metric 'zzz'; there are: decode_tok_s, prefill_tok_s, e2e_tok_s, ttft_s, tpot_s, total_s, decode_hit_rate");
	req.kind = "memory";
	req.y = "ttft_s";
	ck_assert_int_eq(plot_draw(&req, &a, &summary, &err), -1);
	assert_err(err, ERR_USAGE, "a figure of kind 'memory' has no --y: it shows no metric of a run");
	arena_release(&a);
}
END_TEST

START_TEST(unknown_kind)
{
	const struct plot_request req = {.kind = "thruput", .db = "/nonexistent", .out = "x.svg"};
	struct plot_summary summary;
	struct arena a;
	struct err err = {0};

	arena_init(&a, NULL, NULL);
	ck_assert_int_eq(plot_draw(&req, &a, &summary, &err), -1);
	ck_assert_int_eq((int)err.code, (int)ERR_USAGE);
	ck_assert_ptr_nonnull(strstr(err.msg, "no figure of kind 'thruput'"));
	arena_release(&a);
}
END_TEST

START_TEST(a_program_that_hangs)
{
	static const char sleeps[] = "#!/bin/sh\nexec /bin/sleep 100\n";
	char folder[] = "/tmp/offsim-test-XXXXXX", program[64], out[64];
	const char *again;
	struct arena a;
	struct err err = {0};

	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(program, sizeof(program), "%s/gnuplot", folder);
	snprintf(out, sizeof(out), "%s/f.svg", folder);
	FILE *f = fopen(program, "w");
	fputs(sleeps, f);
	fchmod(fileno(f), 0700);
	fclose(f);
	char *path = strdup(getenv("PATH"));
	setenv("PATH", folder, 1);
	arena_init(&a, NULL, NULL);
	const struct gnuplot_job job = {.template = "timeline.gp", .data = "", .out = out, .limit_ms = 200};
	ck_assert_int_eq(gnuplot_draw(&job, &a, &again, &err), -1);
	setenv("PATH", path, 1);
	free(path);
	assert_err(err, ERR_IO, "gnuplot was stopped: it had not ended after 0.2 s");
	unlink(program);
	ck_assert_int_eq(rmdir(folder), 0); /* nothing half-drawn */
	arena_release(&a);
}
END_TEST

TEST_MAIN("plot", one_swept_key, a_grid, names, names_when_nothing_is_a_number, too_many_names, other_requests,
	no_grid, units, columns_when_nothing_was_swept, nothing_to_draw, too_many_curves, refused_files,
	read_only_places, suffixes, memory_figure, utilisation_figure, runs_without_uses, numbered_names,
	names_in_data, unknown_metric, unknown_kind, a_program_that_hangs)
