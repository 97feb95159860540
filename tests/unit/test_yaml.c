#include "base/yaml.h"

#include "tests/test.h"

static struct arena a;

static void setup(void)
{
	arena_init(&a, NULL, NULL);
}

static char *repeat(const char *part, size_t times)
{
	size_t n = strlen(part);
	char *s = arena_alloc(&a, n * times + 1);

	for (size_t i = 0; i < times; i++)
		memcpy(s + i * n, part, n);
	return s;
}

static struct yaml_node *read_ok(const char *text)
{
	struct err err;
	struct yaml_node *root = NULL;

	assert_ok(yaml_read_text(text, strlen(text), "t.yaml", &a, &root, &err), err);
	return root;
}

static const char *flow(const char *text)
{
	return yaml_flow_text(&a, read_ok(text), false);
}

/* Reading these bytes fails at this place with this message. */
static void check_refused(const char *text, size_t len, int line, int col, const char *msg)
{
	struct err err;
	struct yaml_node *root = NULL;

	if (!yaml_read_text(text, len, "t.yaml", &a, &root, &err))
		ck_abort_msg("'%s' was read as %s", text, yaml_flow_text(&a, root, false));
	assert_err(err, ERR_INPUT, msg);
	ck_assert_str_eq(err.file, "t.yaml");
	ck_assert_int_eq(err.line, line);
	ck_assert_int_eq(err.col, col);
	ck_assert_ptr_null(root);
}

#define assert_refused(text, line, col, msg) check_refused((text), sizeof(text) - 1, (line), (col), (msg))

#define assert_pos(where, want_line, want_col)                                                     \
	do {                                                                                       \
		ck_assert_str_eq((where).file, "t.yaml");                                          \
		ck_assert_int_eq((where).line, (want_line));                                       \
		ck_assert_int_eq((where).col, (want_col));                                         \
	} while (0)

START_TEST(a_scenario)
{
	setup();
	struct yaml_node *root = read_ok("# why\n"
					 "model:     llama-3.1-70b   # a name\n"
					 "flags:     -ngl 40 -fa 1\n"
					 "override:  \".*exps=CPU\"\n"
					 "share:     5%\n"
					 "workload:  {batch: 1, prompt: 512}\n"
					 "sweep:     {flags.ngl: 0..81/9, machine.gpu0.link.gen: [3, 4, 5]}\n"
					 "note: |\n"
					 "  two\n"
					 "  lines & more * here ! %\n"
					 "list:\n"
					 "- a\n"
					 "- {b: c}\n");
	ck_assert_int_eq(root->kind, YAML_MAP);
	ck_assert_uint_eq(yaml_count(root), 8);
	ck_assert_str_eq(yaml_get(root, "flags")->text, "-ngl 40 -fa 1");
	ck_assert_str_eq(yaml_get(root, "override")->text, ".*exps=CPU");
	ck_assert(yaml_get(root, "override")->quoted);
	ck_assert_str_eq(yaml_get(root, "share")->text, "5%");
	ck_assert(!yaml_get(root, "share")->quoted);
	ck_assert_str_eq(yaml_get(root, "note")->text, "two\nlines & more * here ! %\n");
	ck_assert(yaml_get(root, "note")->quoted);
	ck_assert_str_eq(yaml_get(yaml_get(root, "sweep"), "flags.ngl")->text, "0..81/9");
	ck_assert_uint_eq(yaml_count(yaml_get(yaml_get(root, "sweep"), "machine.gpu0.link.gen")), 3);
	ck_assert_ptr_null(yaml_get(root, "nothing"));
	ck_assert_ptr_null(yaml_get(yaml_get(root, "flags"), "x"));
	ck_assert_str_eq(yaml_flow_text(&a, yaml_get(root, "list"), false), "[a, {b: c}]");
	arena_release(&a);
}
END_TEST

START_TEST(positions)
{
	setup();
	struct yaml_node *root = read_ok("a: 1\n"
					 "µb:\n"
					 "  - x\n"
					 "  - \"q\": 's'\n"
					 "    e:\n"
					 "  - [k: v, {}]\n");
	assert_pos(root->pos, 1, 1);
	assert_pos(root->child->key_pos, 1, 1);
	assert_pos(root->child->pos, 1, 4);
	struct yaml_node *list = yaml_get(root, "µb");
	assert_pos(list->key_pos, 2, 1);
	assert_pos(list->pos, 3, 3);
	struct yaml_node *map = list->child->next;
	assert_pos(list->child->pos, 3, 5);
	assert_pos(map->pos, 4, 5);
	assert_pos(map->child->key_pos, 4, 5);
	assert_pos(map->child->pos, 4, 10);
	assert_pos(map->child->next->pos, 5, 5); /* an empty value is at its key */
	struct yaml_node *pair = map->next->child;
	assert_pos(pair->pos, 6, 6);
	assert_pos(pair->child->pos, 6, 9);
	assert_pos(pair->next->pos, 6, 12);
	arena_release(&a);
}
END_TEST

START_TEST(line_ends_and_marks)
{
	setup();
	ck_assert_str_eq(flow("\xef\xbb\xbf" "a: 1\r\nb:\r\n- c\r\n"), "{a: 1, b: [c]}");
	ck_assert_str_eq(flow("a:\t1\t# tab\n"), "{a: 1}");
	ck_assert_str_eq(flow("---\na: 1\n...\n"), "{a: 1}");
	ck_assert_str_eq(flow("a: 'x\n\n  y'"), "{a: \"x\\ny\"}");
	arena_release(&a);
}
END_TEST

/* text in single quotes, each of its own doubled. */
static char *single_quoted(const char *text)
{
	char *quoted = arena_alloc(&a, 2 * strlen(text) + 3), *p = quoted;

	*p++ = '\'';
	for (; *text; text++) {
		*p++ = *text;
		if (*text == '\'')
			*p++ = '\'';
	}
	*p = '\'';
	return quoted;
}

START_TEST(quotes_within_quotes)
{
	setup();
	/* libfyaml's own text of these is wrong. */
	ck_assert_str_eq(flow("['a''''b', 'c']"), "[\"a''b\", c]");
	for (size_t n = 0; n < 60; n++) {
		for (size_t m = 0; m < 3; m++) {
			const char *text = arena_printf(&a, "%.*s%s%.*s", (int)m, "xyz", repeat("'", n), (int)m, "vw");
			ck_assert_str_eq(read_ok(single_quoted(text))->text, text);
		}
	}
	ck_assert_str_eq(read_ok("'a''b\n  c'")->text, "a'b c");
	assert_refused("k: 'a''''b\n  c'", 1, 5, "two quotes in a row in a quoted text of several lines");
	arena_release(&a);
}
END_TEST

START_TEST(any_root_as_text)
{
	setup();
	ck_assert_str_eq(flow("[3, 4]"), "[3, 4]");
	ck_assert_str_eq(flow("0..81/9"), "0..81/9");
	ck_assert_str_eq(flow("-ngl 40"), "-ngl 40");
	ck_assert_str_eq(flow(""), "\"\"");
	ck_assert_str_eq(flow("# only a comment\n"), "\"\"");
	assert_pos(read_ok("")->pos, 1, 1);
	/* No NUL is needed behind the text. */
	struct err err;
	struct yaml_node *root;
	assert_ok(yaml_read_text("a: bcd", 4, NULL, &a, &root, &err), err);
	ck_assert_str_eq(yaml_flow_text(&a, root, false), "{a: b}");
	ck_assert_ptr_null(root->pos.file);
	arena_release(&a);
}
END_TEST

START_TEST(the_gate)
{
	setup();
	assert_refused("%a\xed", 1, 3, "byte 0xed is not UTF-8");
	assert_refused("%a\n", 1, 1, "a line must not begin with '%'");
	assert_refused("a\xed", 1, 2, "byte 0xed is not UTF-8");
	assert_refused("a: 1\0b", 1, 5, "control character U+0000");
	assert_refused("a: 1\nb: \x1b[31m\n", 2, 4, "control character U+001B");
	assert_refused("a: \x7f\n", 1, 4, "control character U+007F");
	assert_refused("a: \xc2\x85", 1, 4, "control character U+0085");
	assert_refused("a: \xe2\x80\xa8", 1, 4, "control character U+2028");
	assert_refused("a: \xef\xbb\xbf", 1, 4, "control character U+FEFF");
	assert_refused("a: 1\rb: 2\n", 1, 5, "carriage return without a line feed");
	assert_refused("a: 1\r", 1, 5, "carriage return without a line feed");
	assert_refused("%YAML 1.2\n---\na: 1\n", 1, 1, "a line must not begin with '%'");
	assert_refused("\xef\xbb\xbf%TAG ! x\n", 1, 1, "a line must not begin with '%'");
	assert_refused("a: 1\n...\n%YAML 1.1\n---\n", 3, 1, "a line must not begin with '%'");
	assert_refused("a: \xed\xa0\x80", 1, 4, "byte 0xed is not UTF-8"); /* a surrogate */
	assert_refused("a: \xc0\xaf", 1, 4, "byte 0xc0 is not UTF-8");     /* overlong */
	assert_refused("a: \xf4\x90\x80\x80", 1, 4, "byte 0xf4 is not UTF-8"); /* above U+10FFFF */
	assert_refused("µ: \xe2\x82", 1, 4, "byte 0xe2 is not UTF-8"); /* cut short */
	arena_release(&a);
}
END_TEST

START_TEST(empty_block_scalars)
{
	setup();
	const char *msg = "no text behind '|' or '>'; write \"\" for none";
	/* libfyaml would read all that follows as the text: keys would be lost without a word. */
	assert_refused("k:\n  a: |\n\n  b: 1\n  c: 2\n", 2, 6, msg);
	assert_refused("a: >-  # folded\nb: 1\n", 1, 4, msg);
	assert_refused("- |\n- x\n", 1, 3, msg);
	assert_refused("- - |+\n  - x\n", 1, 5, msg);
	assert_refused("- k: |\n  b: c\n", 1, 6, msg);
	assert_refused("a: |", 1, 4, msg);
	assert_refused("a: |2\n\n\n", 1, 4, msg);
	ck_assert_str_eq(flow("- k: |\n   b: c\n  d: e\n"), "[{k: \"b: c\\n\", d: e}]");
	ck_assert_str_eq(flow("- |\n x: |\n y\n- z\n"), "[\"x: |\\ny\\n\", z]");
	ck_assert_str_eq(flow("--- |\nx\n"), "\"x\\n\"");
	ck_assert_str_eq(flow("a: |\n\n  x\nb: y | z |\nc: \"d: |\"\ne: 'f: > # g'\n"),
		"{a: \"\\nx\\n\", b: \"y | z |\", c: \"d: |\", e: \"f: > # g\"}");
	/* A dash that begins no item is text, and so is what stands behind it. */
	ck_assert_str_eq(flow("a: b- >\nc: d - | # x\ne---- >: |\n f\n"), "{a: b- >, c: \"d - |\", e---- >: \"f\\n\"}");
	ck_assert_str_eq(flow("prompt--- >\n"), "prompt--- >");
	assert_refused("--- >\n", 1, 5, msg);
	ck_assert_str_eq(flow("a: |\n  no line end"), "{a: \"no line end\\n\"}");
	arena_release(&a);
}
END_TEST

START_TEST(many_empty_lines)
{
	setup();
	/* libfyaml's time grows with their square, and it keeps them on the stack. */
	const char *text = arena_printf(&a, "a: |\n  x\n%s", repeat("\n", 1000000));
	check_refused(text, strlen(text), 103, 1, "more than 100 empty lines");
	text = arena_printf(&a, "a: |\n  x\n%sb: c\n", repeat("\n", 100));
	ck_assert_str_eq(flow(text), "{a: \"x\\n\", b: c}");
	arena_release(&a);
}
END_TEST

START_TEST(tabs_after_colons)
{
	setup();
	ck_assert_str_eq(flow("a:\t1\nb: \t-5\n# c:\t- d\ne:\t\n  f: \"g:\t|\"\nh:\t|\n  i\n"),
		"{a: 1, b: -5, e: {f: \"g:\\t|\"}, h: \"i\\n\"}");
	arena_release(&a);
}
END_TEST

/* libfyaml crashes on some of these. */
START_TEST(explicit_keys)
{
	static const char says[] = "keys marked with '?' are not supported; put quotes around text";

	setup();
	assert_refused("? :0a: \t|\n  x\n", 1, 1, says);
	assert_refused("? ?:? ': \t\t|\n", 1, 1, says);
	assert_refused("? a\n:\t- b\n", 1, 1, says);
	assert_refused("a: 1\n\t?\n", 2, 2, says);
	assert_refused("- ? a\n", 1, 3, says);
	assert_refused("{? a: b}\n", 1, 2, says);
	assert_refused("[a, ? b]\n", 1, 5, says);
	ck_assert_str_eq(flow("a: b- ? c\nd: e - ? f\n"), "{a: \"b- ? c\", d: \"e - ? f\"}");
	ck_assert_str_eq(flow("a?: b?\nc: d ? e\nf: '? g' # , ? h\n\"? i\": ?j\nk: |\n  ? l\nm: \"n, ? o:? p\"\n"),
		"{\"a?\": \"b?\", c: \"d ? e\", f: \"? g\", \"? i\": \"?j\", k: \"? l\\n\", m: \"n, ? o:? p\"}");
	arena_release(&a);
}
END_TEST

START_TEST(what_scenarios_never_need)
{
	setup();
	assert_refused("a: &x 1\n", 1, 4, "anchors (&…) are not supported");
	assert_refused("a: &x {b: 1}\n", 1, 4, "anchors (&…) are not supported");
	assert_refused("&x a: 1\n", 1, 1, "anchors (&…) are not supported");
	assert_refused("a: &x [1]\n", 1, 4, "anchors (&…) are not supported");
	assert_refused("a: *x\n", 1, 4, "aliases (*…) are not supported");
	assert_refused("<<: *x\n", 1, 5, "aliases (*…) are not supported");
	assert_refused("a: !int 5\n", 1, 4, "tags (!…) are not supported");
	assert_refused("a: !!map {b: c}\n", 1, 4, "tags (!…) are not supported");
	assert_refused("a: !!seq [b]\n", 1, 4, "tags (!…) are not supported");
	assert_refused("a: ! 5\n", 1, 4, "tags (!…) are not supported");
	assert_refused("a: 1\n---\nb: 2\n", 2, 1, "a second document begins here");
	assert_refused("a\n--- b", 2, 1, "a second document begins here");
	assert_refused("[a]: b\n", 1, 1, "a key must be text, not a list");
	assert_refused("{a: 1}: b\n", 1, 1, "a key must be text, not a map");
	assert_refused(": 5\n", 1, 1, "empty key");
	assert_refused("\"\": 5\n", 1, 1, "empty key");
	assert_refused("a: \"x\\0y\"\n", 1, 4, "the escape \\0 is not allowed");
	arena_release(&a);
}
END_TEST

START_TEST(duplicate_keys)
{
	setup();
	assert_refused("a: 1\nb: 2\na: 3\n", 3, 1, "key 'a' is here twice");
	assert_refused("m: {x: 1, y: 2, \"x\": 3}\n", 1, 17, "key 'x' is here twice");
	/* The first repetition in the file, not in the alphabet. */
	assert_refused("b: 1\na: 2\nb: 3\na: 4\n", 3, 1, "key 'b' is here twice");
	ck_assert_str_eq(flow("a: {a: {a: 1}}\nb: {a: 1}\n"), "{a: {a: {a: 1}}, b: {a: 1}}");
	arena_release(&a);
}
END_TEST

START_TEST(syntax_errors)
{
	setup();
	assert_refused("a: [1, 2\nb: 3\n", 3, 1, "flow sequence without a closing bracket");
	assert_refused("a: \"x\n", 1, 5, "double-quoted scalar without closing quote");
	assert_refused("\ta: 1\n", 1, 1, "invalid tab as indendation in a mapping");
	assert_refused("a:\n\t- b\n", 2, 1, "tab character may not be used as indentation");
	assert_refused("a: 1\nb: @foo\n", 2, 4, "plain scalar cannot start with '@'");
	assert_refused("a: b: c\n", 1, 5, "invalid nested block mapping on the same line");
	assert_refused("a:\n  b: 1\n c: 2\n", 3, 2, "invalid indentation in mapping");
	assert_refused("[a, b}}", 1, 6, "mismatched flow mapping end");
	arena_release(&a);
}
END_TEST

START_TEST(depth_bombs)
{
	setup();
	const char *deepest = arena_printf(&a, "%s%s", repeat("[", 64), repeat("]", 64));
	ck_assert_str_eq(flow(deepest), deepest);
	check_refused(repeat("[", 65), 65, 1, 65, "nested more than 64 deep");
	check_refused(repeat("[", 1000000), 1000000, 1, 65, "nested more than 64 deep");
	check_refused(repeat("{a: ", 250000), 1000000, 1, 1 + 64 * 4, "nested more than 64 deep");
	check_refused(repeat("- ", 500000), 1000000, 1, 129, "nested more than 64 deep");
	arena_release(&a);
}
END_TEST

START_TEST(sizes)
{
	setup();
	const size_t mib = 1 << 20;
	char *text = repeat("x", mib + 1);
	struct yaml_node *root;
	struct err err;

	memcpy(text, "a: ", 3);
	ck_assert_int_eq(yaml_read_text(text, mib + 1, "t.yaml", &a, &root, &err), -1);
	assert_err(err, ERR_INPUT, "larger than 1 MiB");
	assert_ok(yaml_read_text(text, mib, "t.yaml", &a, &root, &err), err);
	ck_assert_uint_eq(strlen(root->child->text), mib - 3);

	char path[32];
	test_file(path, text, mib + 1);
	ck_assert_int_eq(yaml_read_file(path, &a, &root, &err), -1);
	assert_err(err, ERR_INPUT, arena_printf(&a, "'%s' is larger than 1 MiB", path));
	unlink(path);

	char *key = repeat("k", 203);
	memcpy(key + 201, ":", 2);
	check_refused(key, 202, 1, 1, "key is longer than 200 bytes");
	memcpy(key + 200, ":", 2);
	read_ok(key);
	arena_release(&a);
}
END_TEST

START_TEST(many_keys_are_quick)
{
	setup();
	char *text = arena_alloc(&a, 1 << 20);
	size_t n = 0;

	for (int i = 0; i < 90000; i++)
		n += (size_t)sprintf(text + n, "k%05d: 1\n", i);
	ck_assert_uint_eq(yaml_count(read_ok(text)), 90000);
	memcpy(text + n - 10, "k00007", 6);
	check_refused(text, n, 90000, 1, "key 'k00007' is here twice");
	arena_release(&a);
}
END_TEST

START_TEST(files)
{
	setup();
	struct err err;
	struct yaml_node *root;
	char path[32];

	ck_assert_int_eq(yaml_read_file("/nonexistent/x.yaml", &a, &root, &err), -1);
	assert_err(err, ERR_INPUT, "cannot open '/nonexistent/x.yaml': No such file or directory");
	ck_assert_int_eq(yaml_read_file("/tmp", &a, &root, &err), -1);
	assert_err(err, ERR_INPUT, "'/tmp' is a folder");

	test_file(path, "a: 1\n", 5);
	assert_ok(yaml_read_file(path, &a, &root, &err), err);
	ck_assert_str_eq(root->child->pos.file, path);
	unlink(path);
	test_file(path, "# nothing\n", 10);
	ck_assert_int_eq(yaml_read_file(path, &a, &root, &err), -1);
	assert_err(err, ERR_INPUT, "nothing in it");
	ck_assert_str_eq(err.file, path);
	unlink(path);
	test_file(path, "", 0);
	ck_assert_int_eq(yaml_read_file(path, &a, &root, &err), -1);
	assert_err(err, ERR_INPUT, "nothing in it");
	unlink(path);
	test_file(path, "\n- a\n", 5);
	ck_assert_int_eq(yaml_read_file(path, &a, &root, &err), -1);
	assert_err(err, ERR_INPUT, "must be a map of keys and values, not a list");
	ck_assert_int_eq(err.line, 2);
	unlink(path);
	arena_release(&a);
}
END_TEST

START_TEST(single_values)
{
	setup();
	struct err err;
	const char *text = NULL;
	struct yaml_node *root = read_ok("a: x\nb: [x]\nc: {}\n");

	assert_ok(yaml_text(yaml_get(root, "a"), &text, &err), err);
	ck_assert_str_eq(text, "x");
	ck_assert_int_eq(yaml_text(yaml_get(root, "b"), &text, &err), -1);
	assert_err(err, ERR_INPUT, "'b' must be a single value, not a list");
	ck_assert_int_eq(err.line, 2);
	ck_assert_int_eq(yaml_text(yaml_get(root, "c"), &text, &err), -1);
	assert_err(err, ERR_INPUT, "'c' must be a single value, not a map");
	ck_assert_int_eq(yaml_text(root, &text, &err), -1);
	assert_err(err, ERR_INPUT, "must be a single value, not a map");
	arena_release(&a);
}
END_TEST

START_TEST(canonical_text)
{
	setup();
	ck_assert_str_eq(flow("b: 2\na: {d: 1, c: x}"), "{b: 2, a: {d: 1, c: x}}");
	ck_assert_str_eq(yaml_flow_text(&a, read_ok("b: 2\na: {d: 1, c: [z, y]}"), true),
		"{a: {c: [z, y], d: 1}, b: 2}");
	ck_assert_str_eq(flow("a:\nb: \"\"\nc: []\nd: {}"), "{a: \"\", b: \"\", c: [], d: {}}");
	ck_assert_str_eq(flow("a: \"x\\t\\\"\\\\\\n\\x01\\u2028 µ\\u0085\""),
		"{a: \"x\\t\\\"\\\\\\n\\u0001\\u2028 µ\\u0085\"}");
	ck_assert_str_eq(flow("a: 'x: y'\nb: 'x #y'\nc: '- x'\nd: '...'\ne: ' x'\nf: 'x  y'\ng: '[x'"),
		"{a: \"x: y\", b: \"x #y\", c: \"- x\", d: \"...\", e: \" x\", f: \"x  y\", g: \"[x\"}");
	ck_assert_str_eq(flow("\"a: b\": 85%"), "{\"a: b\": 85%}");
	arena_release(&a);
}
END_TEST

START_TEST(canonical_text_parses_back)
{
	setup();
	/* Each printable ASCII character alone, doubled, in front, in the middle and at the end; as value,
	   key, list element and root. */
	for (char c = ' '; c <= '~'; c++) {
		const char *forms[] = {arena_printf(&a, "%c", c), arena_printf(&a, "%c%c", c, c),
			arena_printf(&a, "%cx", c), arena_printf(&a, "x%cy", c), arena_printf(&a, "x%c", c),
			arena_printf(&a, "%c x", c), arena_printf(&a, "x %c y", c), arena_printf(&a, "x %c", c)};
		for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
			struct yaml_node v = {.kind = YAML_SCALAR, .text = forms[i]};
			struct yaml_node w = v;
			w.key = forms[i];
			struct yaml_node map = {.kind = YAML_MAP, .child = &w};
			v.next = &map;
			struct yaml_node list = {.kind = YAML_LIST, .child = &v};
			const char *text = yaml_flow_text(&a, &list, true);
			struct yaml_node *back = read_ok(text);
			ck_assert_str_eq(back->child->text, forms[i]);
			ck_assert_str_eq(back->child->next->child->text, forms[i]);
			ck_assert_str_eq(back->child->next->child->key, forms[i]);
			ck_assert_str_eq(read_ok(yaml_flow_text(&a, &w, true))->text, forms[i]);
		}
	}
	arena_release(&a);
}
END_TEST

START_TEST(overlays)
{
	setup();
	struct yaml_node *base = read_ok("a: 1\nm: {x: 1, y: {z: 2}}\nl: [1, 2]\n");
	struct yaml_node *over = read_ok("m: {y: {w: 3}, x: {deep: 4}}\nl: [7]\nn: new\n");
	struct yaml_node *both = yaml_overlay(&a, base, over);

	ck_assert_str_eq(yaml_flow_text(&a, both, false),
		"{a: 1, m: {x: {deep: 4}, y: {z: 2, w: 3}}, l: [7], n: new}");
	ck_assert_str_eq(yaml_flow_text(&a, base, false), "{a: 1, m: {x: 1, y: {z: 2}}, l: [1, 2]}");
	ck_assert_str_eq(yaml_flow_text(&a, over, false), "{m: {y: {w: 3}, x: {deep: 4}}, l: [7], n: new}");
	assert_pos(yaml_get(both, "n")->pos, 3, 4);
	assert_pos(yaml_get(both, "a")->pos, 1, 4);
	ck_assert_str_eq(yaml_flow_text(&a, yaml_overlay(&a, base, read_ok("[1]")), false), "[1]");
	ck_assert_str_eq(yaml_flow_text(&a, yaml_overlay(&a, base, read_ok("{}")), false),
		yaml_flow_text(&a, base, false));
	arena_release(&a);
}
END_TEST

static struct yaml_node *set_ok(struct yaml_node *root, const char *path, const char *value,
				const char *scalar_key)
{
	struct err err;
	struct err_pos pos = {"--set", 0, 0};

	assert_ok(yaml_set_path(&a, root, path, value, scalar_key, &pos, &err), err);
	return root;
}

START_TEST(paths_are_set)
{
	setup();
	struct yaml_node *root = read_ok("w: {batch: 1, prompt: 512}\ngpu0: rtx-4090\nempty:\n");

	set_ok(root, "w.batch", "2", NULL);
	set_ok(root, "new.deep.er", "[3, 4]", NULL);
	set_ok(root, "gpu0.link.gen", "5", "part");
	set_ok(root, "empty.x", "1", NULL);
	set_ok(root, "w.prompt", "{a: b}", NULL);
	ck_assert_str_eq(yaml_flow_text(&a, root, false),
		"{w: {batch: 2, prompt: {a: b}}, gpu0: {part: rtx-4090, link: {gen: 5}}, empty: {x: 1}, "
		"new: {deep: {er: [3, 4]}}}");
	ck_assert_str_eq(yaml_get(yaml_get(root, "w"), "batch")->pos.file, "--set");
	assert_pos(yaml_get(yaml_get(root, "gpu0"), "part")->pos, 2, 7);
	ck_assert_str_eq(yaml_flow_text(&a, set_ok(read_ok("rtx"), "link.gen", "5", "part"), false),
		"{part: rtx, link: {gen: 5}}");
	arena_release(&a);
}
END_TEST

START_TEST(setting_leaves_shared_trees_alone)
{
	setup();
	struct yaml_node *base = read_ok("m: {x: {y: 1, z: 2}, k: 3}\n");
	const char *before = yaml_flow_text(&a, base, false);
	struct yaml_node *point = yaml_overlay(&a, base, read_ok("q: 7"));

	set_ok(point, "m.x.y", "8", NULL);
	set_ok(point, "m.x.new", "9", NULL);
	set_ok(point, "m.k.part", "5", "old");
	ck_assert_str_eq(yaml_flow_text(&a, point, false),
		"{m: {x: {y: 8, z: 2, new: 9}, k: {old: 3, part: 5}}, q: 7}");
	ck_assert_str_eq(yaml_flow_text(&a, base, false), before);
	arena_release(&a);
}
END_TEST

START_TEST(paths_that_cannot_be_set)
{
	setup();
	struct err err;
	struct err_pos pos = {"x.yaml", 7, 3};
	struct yaml_node *root = read_ok("m: {l: [1], s: x}\n");
	const char *before = yaml_flow_text(&a, root, false);

	ck_assert_int_eq(yaml_set_path(&a, root, "m.s.t", "1", NULL, &pos, &err), -1);
	assert_err(err, ERR_INPUT, "cannot set 'm.s.t': 's' is a single value, not a map");
	ck_assert_str_eq(err.file, "x.yaml");
	ck_assert_int_eq(err.line, 7);
	ck_assert_int_eq(yaml_set_path(&a, root, "m.l.t", "1", "part", &pos, &err), -1);
	assert_err(err, ERR_INPUT, "cannot set 'm.l.t': 'l' is a list, not a map");
	const char *bad[] = {"", ".", "a.", ".a", "a..b"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		ck_assert_int_eq(yaml_set_path(&a, root, bad[i], "1", NULL, &pos, &err), -1);
		assert_err(err, ERR_INPUT,
			arena_printf(&a, "'%s' is no path of keys (such as workload.batch)", bad[i]));
	}
	ck_assert_int_eq(yaml_set_path(&a, root, "m.s", "[1", NULL, &pos, &err), -1);
	assert_err(err, ERR_INPUT, "flow sequence without a closing bracket");
	ck_assert_int_eq(err.line, 7);
	ck_assert_int_eq(err.col, 3);
	ck_assert_int_eq(yaml_set_path(&a, root, "m.s", "\xff", NULL, NULL, &err), -1);
	assert_err(err, ERR_INPUT, "byte 0xff is not UTF-8");
	const char *deep = arena_printf(&a, "a%s", repeat(".a", 63));
	ck_assert_int_eq(yaml_set_path(&a, root, deep, "[1]", NULL, &pos, &err), -1);
	ck_assert_int_eq(yaml_set_path(&a, root, arena_printf(&a, "a.%s", deep), "1", NULL, &pos, &err), -1);
	ck_assert_str_eq(yaml_flow_text(&a, root, false), before);
	assert_ok(yaml_set_path(&a, root, deep, "1", NULL, &pos, &err), err);
	read_ok(yaml_flow_text(&a, root, false));
	arena_release(&a);
}
END_TEST

TEST_MAIN("yaml", a_scenario, positions, line_ends_and_marks, quotes_within_quotes, any_root_as_text, the_gate,
	empty_block_scalars, many_empty_lines, tabs_after_colons, explicit_keys, what_scenarios_never_need, duplicate_keys,
	syntax_errors, depth_bombs, sizes, many_keys_are_quick, files, single_values, canonical_text,
	canonical_text_parses_back, overlays, paths_are_set, setting_leaves_shared_trees_alone,
	paths_that_cannot_be_set)
