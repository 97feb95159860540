#include "base/csv.h"

#include "tests/test.h"

static const char *const abc[] = {"a", "b", "c"};

/* A file under test, open. */
struct opened {
	char path[32];
	struct arena arena;
	struct csv csv;
	struct csv_field f[3];
	struct err err;
	int rc;
};

/* Opens these bytes, for the columns a, b, c or the first n of them. */
static void open_bytes(struct opened *o, const char *bytes, size_t len, size_t n)
{
	memset(o, 0, sizeof(*o));
	arena_init(&o->arena, NULL, NULL);
	test_file(o->path, bytes, len);
	o->rc = csv_open(&o->csv, o->path, abc, n, &o->arena, &o->err);
	unlink(o->path);
}

static void open_text(struct opened *o, const char *text, size_t n)
{
	open_bytes(o, text, strlen(text), n);
}

static void done(struct opened *o)
{
	arena_release(&o->arena);
}

#define assert_field(o, i, want, want_col)                                                                   \
	do {                                                                                                 \
		ck_assert_uint_eq((o).f[i].len, sizeof(want) - 1);                                           \
		ck_assert_mem_eq((o).f[i].text, want, sizeof(want) - 1);                                     \
		ck_assert_int_eq((o).f[i].col, want_col);                                                    \
	} while (0)

#define assert_row(o, want_line)                                                                             \
	do {                                                                                                 \
		assert_ok(csv_next(&(o).csv, (o).f, &(o).err) != 1, (o).err);                                \
		ck_assert_int_eq((o).csv.line, want_line);                                                   \
	} while (0)

#define assert_end(o) ck_assert_int_eq(csv_next(&(o).csv, (o).f, &(o).err), 0)

/* The error is at this place of the file. */
#define assert_err_at(o, want_line, want_col, want_msg)                                                      \
	do {                                                                                                 \
		assert_err((o).err, ERR_INPUT, want_msg);                                                    \
		ck_assert_str_eq((o).err.file, (o).path);                                                    \
		ck_assert_int_eq((o).err.line, want_line);                                                   \
		ck_assert_int_eq((o).err.col, want_col);                                                     \
	} while (0)

START_TEST(rows_and_fields)
{
	struct opened o;

	open_text(&o, "a,b,c\n24e9,,2.7e-6\n x ,pcie h2d,\n", 3);
	assert_ok(o.rc, o.err);
	assert_row(o, 2);
	assert_field(o, 0, "24e9", 1);
	assert_field(o, 1, "", 6);
	assert_field(o, 2, "2.7e-6", 7);
	assert_row(o, 3);
	assert_field(o, 0, " x ", 1); /* spaces belong to the field */
	assert_field(o, 1, "pcie h2d", 5);
	assert_field(o, 2, "", 14);
	assert_end(o);
	assert_end(o); /* again */
	done(&o);
}
END_TEST

START_TEST(columns_in_any_order_others_passed_over)
{
	struct opened o;

	open_text(&o, "note,c,aa,,b,a,note\n1,2,3,4,5,6,7\n", 3);
	assert_ok(o.rc, o.err);
	assert_row(o, 2);
	assert_field(o, 0, "6", 11);
	assert_field(o, 1, "5", 9);
	assert_field(o, 2, "2", 3);
	assert_end(o);
	done(&o);
}
END_TEST

START_TEST(quotes)
{
	struct opened o;

	open_text(&o,
		"\"a\",b,\"c\"\n"
		"\"x,y\",\"say \"\"hi\"\"\",z\n"
		"\"\",\"\"\"\",\"\"\"\"\"\"\n"
		"in\"side,b\"\",\"q\"\n",
		3);
	assert_ok(o.rc, o.err);
	assert_row(o, 2);
	assert_field(o, 0, "x,y", 1);
	assert_field(o, 1, "say \"hi\"", 7);
	assert_field(o, 2, "z", 20);
	assert_row(o, 3);
	assert_field(o, 0, "", 1);
	assert_field(o, 1, "\"", 4);
	assert_field(o, 2, "\"\"", 9);
	assert_row(o, 4);
	assert_field(o, 0, "in\"side", 1); /* a quote that does not open the field is a character */
	assert_field(o, 1, "b\"\"", 9);
	assert_field(o, 2, "q", 13);
	assert_end(o);
	done(&o);
}
END_TEST

START_TEST(line_ends)
{
	/* Of Unix and of Windows, mixed, behind quotes too, and none at the end. */
	struct opened o;

	open_text(&o, "a,b\r\n1,2\r\n3,\"4\"\r\n5,\"6\"\n7,8", 2);
	assert_ok(o.rc, o.err);
	assert_row(o, 2);
	assert_field(o, 1, "2", 3);
	assert_row(o, 3);
	assert_field(o, 1, "4", 3);
	assert_row(o, 4);
	assert_field(o, 1, "6", 3);
	assert_row(o, 5);
	assert_field(o, 0, "7", 1);
	assert_field(o, 1, "8", 3);
	assert_end(o);
	done(&o);

	/* The file ends behind a comma, behind a closing quote, in the header. */
	open_text(&o, "a,b\n1,", 2);
	assert_ok(o.rc, o.err);
	assert_row(o, 2);
	assert_field(o, 0, "1", 1);
	assert_field(o, 1, "", 3);
	assert_end(o);
	done(&o);
	open_text(&o, "a,b\n1,\"\"", 2);
	assert_ok(o.rc, o.err);
	assert_row(o, 2);
	assert_field(o, 1, "", 3);
	assert_end(o);
	done(&o);
	open_text(&o, "a,b", 2);
	assert_ok(o.rc, o.err);
	assert_end(o);
	done(&o);
}
END_TEST

START_TEST(empty_lines_are_no_rows)
{
	struct opened o;

	open_text(&o, "\n\r\na,b\n\n\n1,2\n\r\n\r\n3,4\n\n", 2);
	assert_ok(o.rc, o.err);
	assert_row(o, 6);
	assert_field(o, 0, "1", 1);
	assert_row(o, 9);
	assert_field(o, 0, "3", 1);
	assert_end(o);
	done(&o);

	/* With one column a quoted nothing is a row, an empty line is none. */
	open_text(&o, "a\n\"\"\n\nx\n", 1);
	assert_ok(o.rc, o.err);
	assert_row(o, 2);
	assert_field(o, 0, "", 1);
	assert_row(o, 4);
	assert_field(o, 0, "x", 1);
	assert_end(o);
	done(&o);
}
END_TEST

START_TEST(line_feeds_in_quotes)
{
	struct opened o;

	open_text(&o, "a,b\n\"one\ntwo\r\n\nfour\",x\n5,6\n\"\n\",\"\n\n\"\n7\n", 2);
	assert_ok(o.rc, o.err);
	assert_row(o, 2);
	assert_field(o, 0, "one\ntwo\r\n\nfour", 1);
	ck_assert_int_eq(o.f[0].line, 2);
	assert_field(o, 1, "x", 7);
	ck_assert_int_eq(o.f[1].line, 5); /* where a person would look for it */
	assert_row(o, 6);
	assert_field(o, 0, "5", 1);
	assert_row(o, 7);
	assert_field(o, 0, "\n", 1);
	assert_field(o, 1, "\n\n", 3);
	ck_assert_int_eq(csv_next(&o.csv, o.f, &o.err), -1);
	assert_err_at(o, 11, 1, "1 fields where the header has 2");
	done(&o);
}
END_TEST

START_TEST(a_header_of_several_lines)
{
	/* Names may hold line feeds and commas, as any field may; columns behind them count all the same. */
	struct opened o;
	static char text[40000] = "\"one\ntwo, three\"";
	size_t n = strlen(text);

	open_text(&o, "\"x\ny,\",c,\"\n\n\",a\nu,v,w,x\n", 1);
	assert_ok(o.rc, o.err);
	ck_assert_uint_eq(o.csv.n_columns, 4);
	assert_row(o, 5);
	assert_field(o, 0, "x", 7);
	assert_end(o);
	done(&o);

	/* So many that room for the first line's alone does not do. */
	for (int i = 0; i < 9000; i++)
		n += (size_t)sprintf(text + n, ",z");
	n += (size_t)sprintf(text + n, ",a\n");
	open_text(&o, text, 1);
	assert_ok(o.rc, o.err);
	ck_assert_uint_eq(o.csv.n_columns, 9002);
	done(&o);
	/* Quotes inside a field open nothing; the field after them does. */
	open_text(&o, "q\"q,\"r\ns\",t,u,v,w,a\n", 1);
	assert_ok(o.rc, o.err);
	ck_assert_uint_eq(o.csv.n_columns, 7);
	done(&o);
}
END_TEST

START_TEST(a_missing_column)
{
	struct opened o;

	open_text(&o, "a,x,b\n1,2,3\n", 3);
	ck_assert_int_eq(o.rc, -1);
	assert_err_at(o, 1, 1, "the header has no column 'c'");
	done(&o);
	open_text(&o, "a, b\n", 2); /* not the same name */
	ck_assert_int_eq(o.rc, -1);
	assert_err_at(o, 1, 1, "the header has no column 'b'");
	done(&o);
	open_text(&o, "", 1);
	ck_assert_int_eq(o.rc, -1);
	assert_err_at(o, 1, 1, "the header has no column 'a'");
	done(&o);
	open_text(&o, "\n\n\nx,y\n", 1); /* the header is on line 4 */
	ck_assert_int_eq(o.rc, -1);
	assert_err_at(o, 4, 1, "the header has no column 'a'");
	done(&o);
}
END_TEST

START_TEST(a_column_twice)
{
	struct opened o;

	open_text(&o, "\nb,x,x,a,b\n1,2,3,4,5\n", 2);
	ck_assert_int_eq(o.rc, -1);
	assert_err_at(o, 2, 9, "column 'b' is there twice");
	done(&o);
}
END_TEST

START_TEST(too_few_and_too_many_fields)
{
	struct opened o;

	open_text(&o, "a,b,x\n1,2,3\n1,2\n", 2);
	assert_ok(o.rc, o.err);
	assert_row(o, 2);
	ck_assert_int_eq(csv_next(&o.csv, o.f, &o.err), -1);
	assert_err_at(o, 3, 1, "2 fields where the header has 3");
	done(&o);

	open_text(&o, "a,b,x\r\n1,2,3\r\n\r\n10,\"2\"\"\",3,\r\n", 2);
	assert_ok(o.rc, o.err);
	assert_row(o, 2);
	ck_assert_int_eq(csv_next(&o.csv, o.f, &o.err), -1);
	assert_err_at(o, 4, 12, "more than the 3 fields of the header");
	done(&o);

	/* A line of spaces is a row of one field. */
	open_text(&o, "a,b\n  \n", 2);
	assert_ok(o.rc, o.err);
	ck_assert_int_eq(csv_next(&o.csv, o.f, &o.err), -1);
	assert_err_at(o, 2, 1, "1 fields where the header has 2");
	done(&o);
}
END_TEST

START_TEST(stray_quotes)
{
	struct opened o;

	open_text(&o, "a,b\n1,2\n3,\"4\n5,6\n", 2);
	assert_ok(o.rc, o.err);
	assert_row(o, 2);
	ck_assert_int_eq(csv_next(&o.csv, o.f, &o.err), -1);
	assert_err_at(o, 3, 3, "a quoted field does not end");
	done(&o);

	open_text(&o, "a,b\n1,\"2\"x\n", 2);
	assert_ok(o.rc, o.err);
	ck_assert_int_eq(csv_next(&o.csv, o.f, &o.err), -1);
	assert_err_at(o, 2, 3, "text behind the closing quote");
	done(&o);

	open_text(&o, "a,\"b", 2);
	ck_assert_int_eq(o.rc, -1);
	assert_err_at(o, 1, 3, "a quoted field does not end");
	done(&o);

	/* An odd number of quotes at the end of the file. */
	open_text(&o, "a,b\n1,\"\"\"", 2);
	assert_ok(o.rc, o.err);
	ck_assert_int_eq(csv_next(&o.csv, o.f, &o.err), -1);
	assert_err_at(o, 2, 3, "a quoted field does not end");
	done(&o);
}
END_TEST

START_TEST(errors_of_the_caller)
{
	struct opened o;

	open_text(&o, "a,b\n1,2\n\"x\n\",nonsense\n\"\n\n\"\"\",1,2\n", 2);
	assert_ok(o.rc, o.err);
	assert_row(o, 2);
	assert_row(o, 3);
	ck_assert_int_eq(
		csv_error(&o.csv, &o.f[0], &o.err, "no %s like '%.*s'", "number", 1, o.f[0].text), -1);
	assert_err_at(o, 3, 1, "no number like 'x'");
	ck_assert_int_eq(csv_error(&o.csv, &o.f[1], &o.err, "'%.*s'", (int)o.f[1].len, o.f[1].text), -1);
	assert_err_at(o, 4, 3, "'nonsense'");
	ck_assert_int_eq(csv_next(&o.csv, o.f, &o.err), -1);
	assert_err_at(o, 7, 7, "more than the 2 fields of the header");
	done(&o);
}
END_TEST

START_TEST(any_bytes)
{
	struct opened o;
	static const char text[] = "a,b\n\0x\0,\xff\xfe\n";

	open_bytes(&o, text, sizeof(text) - 1, 2);
	assert_ok(o.rc, o.err);
	assert_row(o, 2);
	assert_field(o, 0, "\0x\0", 1);
	assert_field(o, 1, "\xff\xfe", 5);
	assert_end(o);
	done(&o);
}
END_TEST

/* By lines: the same rows; a column may be missing if it may, and line breaks in quotes are no more. */
START_TEST(by_lines)
{
	static const char text[] = "\xef\xbb\xbf# before\n\nb,x,\"a\"\r\n1,2,\"say \"\"hi\"\"\"\n\n3,4,5";
	struct opened o = {0};
	struct lines l;
	char *line;
	size_t len;

	arena_init(&o.arena, NULL, NULL);
	test_file(o.path, text, sizeof(text) - 1);
	assert_ok(lines_open(&l, o.path, 100, &o.err), o.err);
	assert_ok(lines_next(&l, &line, &len, &o.err) != 1, o.err);
	assert_ok(csv_stream(&o.csv, &l, abc, 3, 1, &o.arena, &o.err), o.err);
	assert_row(o, 4);
	assert_field(o, 0, "say \"hi\"", 5);
	assert_field(o, 1, "1", 1);
	ck_assert_ptr_null(o.f[2].text);
	assert_row(o, 6);
	assert_field(o, 0, "5", 5);
	assert_end(o);
	assert_end(o);
	assert_ok(lines_rewind(&l, &o.err), o.err);
	assert_ok(lines_next(&l, &line, &len, &o.err) != 1, o.err);
	ck_assert_int_eq(csv_stream(&o.csv, &l, abc, 3, 0, &o.arena, &o.err), -1);
	assert_err_at(o, 3, 1, "the header has no column 'c'");
	lines_close(&l);
	unlink(o.path);
	done(&o);
}
END_TEST

static void check_bad_line(const char *text, int line, int col, const char *msg)
{
	struct opened o = {0};
	struct lines l;

	arena_init(&o.arena, NULL, NULL);
	test_file(o.path, text, strlen(text));
	assert_ok(lines_open(&l, o.path, 100, &o.err), o.err);
	assert_ok(csv_stream(&o.csv, &l, abc, 2, 0, &o.arena, &o.err), o.err);
	while (csv_next(&o.csv, o.f, &o.err) > 0)
		;
	assert_err_at(o, line, col, msg);
	lines_close(&l);
	unlink(o.path);
	done(&o);
}

START_TEST(bad_lines)
{
	check_bad_line("a,b\n1,\"2\n3\"\n", 2, 3, "a quoted field does not end");
	check_bad_line("a,b\n1,2\n\n1,2\r3,4\n", 4, 4, "a carriage return within a line");
	check_bad_line("a,b\n1\n", 2, 1, "1 fields where the header has 2");
	check_bad_line("a,b\n1,2,3\n", 2, 5, "more than the 2 fields of the header");
}
END_TEST

START_TEST(no_file)
{
	struct csv csv;
	struct arena a;
	struct err err = {0};

	arena_init(&a, NULL, NULL);
	ck_assert_int_eq(csv_open(&csv, "/nowhere/x.csv", abc, 3, &a, &err), -1);
	assert_err(err, ERR_INPUT, "cannot open '/nowhere/x.csv': No such file or directory");
	arena_release(&a);
}
END_TEST

/* Columns behind the required ones may be missing; their fields have no text, in every row. */
/* Of names of the header the nearest to one that is missing, where it stands; but not to one that may be missing, unless
   the reader says so. */
START_TEST(a_misspelt_column)
{
	static const char *const wanted[] = {"prompt_len", "depth", "notes"};
	static const struct {
		const char *text;
		int n_optional, line, col; /* line 0: taken */
		const char *message;
	} cases[] = {
		{"depth,notes,promt_len\n", 0, 1, 13, "unknown column 'promt_len'; did you mean 'prompt_len'?"},
		{"\n\"dpeth\",Prompt-Len\n", 1, 2, 9, "unknown column 'Prompt-Len'; did you mean 'prompt_len'?"},
		{"prompt_len,dept,depths\n", 1, 1, 17, "unknown column 'depths'; did you mean 'depth'?"},
		{"prompt_len,depth,note\n", 1, 1, 18, "unknown column 'note'; did you mean 'notes'?"},
		{"prompt_len,depth,remarks\n", 1, 0, 0, ""},
		{"prompt_len,depth,notes,note\n", 1, 0, 0, ""},
		{"prompt_len,depths\n", 2, 1, 12, "unknown column 'depths'; did you mean 'depth'?"},
		{"tokens,depth,notes\n", 0, 1, 1, "the header has no column 'prompt_len'"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct opened o = {0};
		char text[64];
		arena_init(&o.arena, NULL, NULL);
		test_file(o.path, cases[i].text, strlen(cases[i].text));
		o.rc = csv_open_some(&o.csv, o.path, wanted, 3, (size_t)cases[i].n_optional, &o.arena, &o.err);
		ck_assert_msg(o.rc == (cases[i].line ? -1 : 0), "case %zu: %s", i, o.err.msg);
		if (cases[i].line)
			assert_err_at(o, cases[i].line, cases[i].col, cases[i].message);
		/* Of others' files, which have columns of all kinds. */
		strcpy(text, cases[i].text);
		o.rc = csv_begin(&o.csv, o.path, text, strlen(text), wanted, 3, 0, &o.arena, &o.err);
		ck_assert_msg(o.rc == 0, "case %zu: %s", i, o.err.msg);
		unlink(o.path);
		done(&o);
	}
}
END_TEST

START_TEST(a_field_that_may_be_shown)
{
	struct opened o;

	open_text(&o, "a,b,c\n\"x\x1b[31m\ty\n\",\xe2\x80\xae\xc3\xa9\xff,\n", 3);
	assert_row(o, 2);
	ck_assert_str_eq(csv_text(&o.f[0], &o.arena), "x?[31m y ");
	ck_assert_str_eq(csv_text(&o.f[1], &o.arena), "?\xc3\xa9?");
	ck_assert_str_eq(csv_text(&(struct csv_field){0}, &o.arena), "");
	done(&o);
}
END_TEST

START_TEST(columns_that_may_be_missing)
{
	struct opened o = {0};
	char text[] = "c,a\n1.25,x\n,y\n";

	arena_init(&o.arena, NULL, NULL);
	strcpy(o.path, "t.csv");
	assert_ok(csv_begin(&o.csv, o.path, text, strlen(text), abc, 3, 1, &o.arena, &o.err), o.err);
	assert_row(o, 2);
	assert_field(o, 0, "x", 6);
	assert_field(o, 2, "1.25", 1);
	ck_assert_ptr_null(o.f[1].text);
	assert_row(o, 3);
	assert_field(o, 2, "", 1);
	ck_assert_ptr_null(o.f[1].text);
	assert_end(o);
	ck_assert_int_eq(csv_begin(&o.csv, o.path, text, strlen(text), abc, 3, 2, &o.arena, &o.err), -1);
	assert_err_at(o, 1, 1, "the header has no column 'b'");
	done(&o);
}
END_TEST

TEST_MAIN("csv", rows_and_fields, columns_in_any_order_others_passed_over, quotes, line_ends,
	empty_lines_are_no_rows, line_feeds_in_quotes, a_header_of_several_lines, a_missing_column,
	a_column_twice, too_few_and_too_many_fields, stray_quotes, errors_of_the_caller, any_bytes, by_lines, bad_lines, columns_that_may_be_missing, a_misspelt_column,
	a_field_that_may_be_shown,
	no_file)
