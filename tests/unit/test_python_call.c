#include "sim/engine/python_call.h"

#include "tests/test.h"

static const char *const arguments[] = {"", "max_memory", "names", NULL};
static const struct python_function functions[] = {{.name = "infer", .positional = arguments}, {.name = "load", .positional = arguments + 3}};
static const struct err_pos begin = {"text", 4, 7};

static struct arena a;

static int parse(const char *text, struct yaml_node **map, struct err *err)
{
	const struct python_function *f;

	return python_call_parse(text, &begin, functions, ARRAY_LEN(functions), &a, map, &f, err);
}

static void gives(const char *text, const char *want)
{
	struct yaml_node *map;
	struct err err = {0};

	arena_init(&a, NULL, NULL);
	assert_ok(parse(text, &map, &err), err);
	ck_assert_str_eq(yaml_flow_text(&a, map, false), want);
	arena_release(&a);
}

static void refused(const char *text, int line, int col, const char *msg)
{
	struct yaml_node *map;
	struct err err = {0};

	arena_init(&a, NULL, NULL);
	ck_assert_msg(parse(text, &map, &err) == -1, "%s", text);
	assert_err(err, ERR_INPUT, msg);
	ck_assert_str_eq(err.file, "text");
	ck_assert_msg(err.line == line && err.col == col, "%d:%d", err.line, err.col);
	arena_release(&a);
}

START_TEST(values)
{
	gives("infer(model, max_memory={0: '22GiB', \"cpu\": \"64GiB\"})", "{max_memory: {0: 22GiB, cpu: 64GiB}}");
	gives("infer(model, {0: 1_000}, ['A', 'B',],)", "{max_memory: {0: 1000}, names: [A, B]}");
	gives("x = y = a.b.infer(model, dtype=torch.float16, v=True, w=False, n=None)", "{dtype: float16, v: yes, w: no}");
	gives("infer(\n\tmodel,  # which\n\tt=(1, -2.5e3),\n)", "{t: [1, -2.5e3]}");
	gives("infer(q=Config(bits=4, kind=f('a)b')))", "{q: \"Config(bits=4, kind=f('a)b'))\"}");
	gives("infer(s='''two\nlines''', r=r'a\\'b')", "{s: \"two\\nlines\", r: \"a'b\"}");
	gives("load()", "{}");
}
END_TEST

START_TEST(refusals)
{
	refused("infer(model", 4, 18, "the text ends where ',' or ')' is expected");
	refused("infer(model,\n  k=]", 5, 11, "expected a value, not ']'");
	refused("infer(k={0: 1, 0: 2})", 4, 22, "this key is there twice");
	refused("infer(k={[1]: 2})", 4, 16, "a key must be a number or a string");
	refused("infer(m, {}, [], 5)", 4, 24, "infer has no further argument without a keyword");
	refused("infer(m, {}, max_memory={})", 4, 20, "'max_memory' is there twice");
	refused("infre(m)", 4, 7, "'infre' is no function known here; did you mean 'infer'?");
	refused("infer(s='a", 4, 15, "this string has no end");
	refused("infer() + 1", 4, 15, "expected the end of the text, not '+ 1'");
	refused("", 4, 7, "the text ends where the name of a function is expected");
	refused("infer(f(", 4, 15, "the text ends where a value is expected");
}
END_TEST

START_TEST(depth_is_limited)
{
	char text[256] = "infer(k=";
	struct yaml_node *map;
	struct err err = {0};

	memset(text + strlen(text), '[', 200);
	arena_init(&a, NULL, NULL);
	ck_assert_int_eq(parse(text, &map, &err), -1);
	ck_assert_str_eq(err.msg, "values lie too deep in each other");
	arena_release(&a);
}
END_TEST

START_TEST(what_is_a_call)
{
	ck_assert(python_is_call("infer(model)"));
	ck_assert(python_is_call("  device_map = infer(model)"));
	ck_assert(python_is_call("torch.x.y ("));
	ck_assert(!python_is_call("-ngl 40"));
	ck_assert(!python_is_call("--device_map auto"));
	ck_assert(!python_is_call("llama-server"));
	ck_assert(!python_is_call(""));
}
END_TEST

START_TEST(a_value_needs_no_quotes)
{
	struct yaml_node *value;
	struct err err = {0};

	arena_init(&a, NULL, NULL);
	assert_ok(python_value_parse("{0:13GiB, cpu: 2.5GiB}", &begin, &a, &value, &err), err);
	ck_assert_str_eq(yaml_flow_text(&a, value, false), "{0: 13GiB, cpu: 2.5GiB}");
	ck_assert_int_eq(python_value_parse("{0:13GiB} x", &begin, &a, &value, &err), -1);
	arena_release(&a);
}
END_TEST

TEST_MAIN("python_call", values, refusals, depth_is_limited, what_is_a_call, a_value_needs_no_quotes)
