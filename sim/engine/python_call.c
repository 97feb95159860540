#include "sim/engine/python_call.h"

#include <ctype.h>
#include <string.h>

#include "base/suggest.h"

#define MAX_DEPTH 32

struct reader {
	const char *text, *at;
	const struct err_pos *pos;
	bool bare_words; /* 22GiB is a string */
	int depth;
	struct arena *a;
	const char *counted; /* where counting of lines and columns got to, and what it came to; NULL: at the beginning */
	struct err_pos counted_pos;
};

static struct err_pos pos_of(struct reader *r, const char *at)
{
	if (r->pos->col == 0)
		return *r->pos; /* of an override: it has no place in a file */
	if (!r->counted || at < r->counted) {
		r->counted = r->text;
		r->counted_pos = *r->pos;
	}
	for (; r->counted < at; r->counted++) {
		r->counted_pos.col++;
		if (*r->counted == '\n') {
			r->counted_pos.line++;
			r->counted_pos.col = r->pos->col;
		}
	}
	return r->counted_pos;
}

static int fail(struct reader *r, const char *at, struct err *err, const char *what)
{
	struct err_pos pos = pos_of(r, at);

	return err_at(err, ERR_INPUT, &pos, "%s", what);
}

static int expected(struct reader *r, struct err *err, const char *what)
{
	struct err_pos pos = pos_of(r, r->at);

	if (!*r->at)
		return err_at(err, ERR_INPUT, &pos, "the text ends where %s is expected", what);
	return err_at(err, ERR_INPUT, &pos, "expected %s, not '%.*s'", what, (int)strcspn(r->at, "\n") > 20 ? 20 :
			(int)strcspn(r->at, "\n"), r->at);
}

/* Blanks, line ends, comments, and a backslash that joins lines. */
static void skip_space(struct reader *r)
{
	for (;;) {
		r->at += strspn(r->at, " \t\r\n");
		if (*r->at == '#')
			r->at += strcspn(r->at, "\n");
		else if (r->at[0] == '\\' && r->at[1] == '\n')
			r->at += 2;
		else
			return;
	}
}

static bool take(struct reader *r, char c)
{
	skip_space(r);
	if (*r->at != c)
		return false;
	r->at++;
	return true;
}

static bool is_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* "torch.float16"; NULL when none begins here. */
static const char *take_name(struct reader *r)
{
	const char *from = r->at;

	if (isdigit((unsigned char)*from))
		return NULL;
	while (is_name_char(*r->at) || (*r->at == '.' && r->at > from && is_name_char(r->at[1])))
		r->at++;
	return r->at > from ? arena_strndup(r->a, from, (size_t)(r->at - from)) : NULL;
}

static const char *last_part(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? dot + 1 : name;
}

static struct yaml_node *new_node(struct reader *r, enum yaml_kind kind, const char *at)
{
	struct yaml_node *n = arena_new(r->a, struct yaml_node);

	n->kind = kind;
	n->pos = n->key_pos = pos_of(r, at);
	return n;
}

static struct yaml_node *new_scalar(struct reader *r, const char *at, const char *text, bool quoted)
{
	struct yaml_node *n = new_node(r, YAML_SCALAR, at);

	n->text = text;
	n->quoted = quoted;
	return n;
}

static int read_value(struct reader *r, struct yaml_node **out, struct err *err);

static bool is_escape(const char *at, char quote)
{
	return *at == '\\' && (at[1] == quote || at[1] == '\\');
}

static int read_string(struct reader *r, const char *begin, struct yaml_node **out, struct err *err)
{
	char quote = *r->at;
	bool triple = r->at[1] == quote && r->at[2] == quote;
	const char *from = r->at + (triple ? 3 : 1);

	for (r->at = from;; r->at++) {
		if (!*r->at || (*r->at == '\n' && !triple))
			return fail(r, begin, err, "this string has no end");
		if (*r->at == quote && (!triple || (r->at[1] == quote && r->at[2] == quote)))
			break;
		r->at += is_escape(r->at, quote);
	}
	char *text = arena_alloc(r->a, (size_t)(r->at - from) + 1), *to = text;
	for (; from < r->at; *to++ = *from++)
		from += is_escape(from, quote);
	*to = '\0';
	r->at += triple ? 3 : 1;
	*out = new_scalar(r, begin, text, true);
	return 0;
}

/* A call as a value: its text, up to the parenthesis that closes it. */
static int read_inner_call(struct reader *r, const char *begin, struct yaml_node **out, struct err *err)
{
	struct yaml_node *ignored;

	for (r->at++; !take(r, ')');) {
		const char *name = r->at;
		if (take_name(r) && take(r, '='))
			; /* a keyword */
		else
			r->at = name;
		if (read_value(r, &ignored, err))
			return -1;
		if (!take(r, ',') && *r->at != ')')
			return expected(r, err, "',' or ')'");
	}
	*out = new_scalar(r, begin, arena_strndup(r->a, begin, (size_t)(r->at - begin)), false);
	return 0;
}

static int read_word(struct reader *r, struct yaml_node **out, struct err *err)
{
	static const char *const constants[][2] = {{"True", "yes"}, {"False", "no"}};
	const char *begin = r->at, *name = take_name(r);

	if (!name)
		return expected(r, err, "a value");
	if ((*r->at == '"' || *r->at == '\'') && r->at - begin == 1 && strchr("rRuUfFbB", *begin))
		return read_string(r, begin, out, err);
	if (*r->at == '(')
		return read_inner_call(r, begin, out, err);
	*out = strcmp(name, "None") == 0 ? NULL : new_scalar(r, begin, last_part(name), false);
	for (size_t i = 0; i < ARRAY_LEN(constants); i++)
		if (strcmp(name, constants[i][0]) == 0)
			(*out)->text = constants[i][1];
	return 0;
}

static int read_number(struct reader *r, struct yaml_node **out)
{
	const char *begin = r->at;

	while (*r->at && (isdigit((unsigned char)*r->at) || strchr("+-._eE", *r->at) ||
				 (r->bare_words && isalnum((unsigned char)*r->at))))
		r->at++;
	char *text = arena_alloc(r->a, (size_t)(r->at - begin) + 1), *to = text;
	for (const char *from = begin; from < r->at; from++)
		if (*from != '_')
			*to++ = *from;
	*to = '\0';
	*out = new_scalar(r, begin, text, false);
	return 0;
}

/* Values up to `close`, in a list. */
static int read_list(struct reader *r, char close, struct yaml_node **out, struct err *err)
{
	const char closes[] = {'\'', ',', '\'', ' ', 'o', 'r', ' ', '\'', close, '\'', '\0'};
	struct yaml_node **link;

	*out = new_node(r, YAML_LIST, r->at++);
	link = &(*out)->child;
	while (!take(r, close)) {
		if (read_value(r, link, err))
			return -1;
		if (*link)
			link = &(*link)->next;
		if (!take(r, ',') && *r->at != close)
			return expected(r, err, closes);
	}
	return 0;
}

static int read_dict(struct reader *r, struct yaml_node **out, struct err *err)
{
	struct yaml_node **link, *key;

	*out = new_node(r, YAML_MAP, r->at++);
	link = &(*out)->child;
	while (!take(r, '}')) {
		const char *begin = r->at;
		if (read_value(r, &key, err))
			return -1;
		if (!key || key->kind != YAML_SCALAR)
			return fail(r, begin, err, "a key must be a number or a string");
		if (yaml_get(*out, key->text))
			return fail(r, begin, err, "this key is there twice");
		if (!take(r, ':'))
			return expected(r, err, "':'");
		if (read_value(r, link, err))
			return -1;
		if (*link) {
			(*link)->key = key->text;
			(*link)->key_pos = key->pos;
			link = &(*link)->next;
		}
		if (!take(r, ',') && *r->at != '}')
			return expected(r, err, "',' or '}'");
	}
	return 0;
}

/* *out is NULL for None. */
static int read_value(struct reader *r, struct yaml_node **out, struct err *err)
{
	int rc;

	skip_space(r);
	if (++r->depth > MAX_DEPTH)
		return fail(r, r->at, err, "values lie too deep in each other");
	if (*r->at == '"' || *r->at == '\'')
		rc = read_string(r, r->at, out, err);
	else if (*r->at == '{')
		rc = read_dict(r, out, err);
	else if (*r->at == '[' || *r->at == '(')
		rc = read_list(r, *r->at == '[' ? ']' : ')', out, err);
	else if (isdigit((unsigned char)*r->at) || (*r->at && strchr("+-.", *r->at)))
		rc = read_number(r, out);
	else
		rc = read_word(r, out, err);
	r->depth--;
	return rc;
}

/* One argument into the map; n_positional counts those without a keyword. */
static int read_argument(struct reader *r, const struct python_function *f, size_t *n_positional, struct yaml_node *map,
	struct err *err)
{
	const char *begin = (skip_space(r), r->at), *key = take_name(r);
	struct yaml_node *value, **link = &map->child;
	struct err_pos pos = pos_of(r, begin);

	if (key && take(r, '=')) {
		if (read_value(r, &value, err))
			return -1;
	} else {
		r->at = begin;
		if (read_value(r, &value, err))
			return -1;
		size_t i = 0;
		while (i < *n_positional && f->positional[i])
			i++;
		key = f->positional[i];
		++*n_positional;
		if (!key)
			return err_at(err, ERR_INPUT, &pos, "%s has no further argument without a keyword", f->name);
	}
	if (!value || !*key)
		return 0;
	if (yaml_get(map, key))
		return err_at(err, ERR_INPUT, &pos, "'%s' is there twice", key);
	value->key = key;
	value->key_pos = pos;
	while (*link)
		link = &(*link)->next;
	*link = value;
	return 0;
}

static int find_function(struct reader *r, const char *name, const char *at, const struct python_function *functions,
	size_t n, const struct python_function **out, struct err *err)
{
	struct err_pos pos = pos_of(r, at);
	struct suggest s;
	char near[128];

	suggest_init(&s, last_part(name));
	for (size_t i = 0; i < n; i++) {
		suggest_offer(&s, functions[i].name);
		if (strcmp(last_part(name), functions[i].name) == 0) {
			*out = &functions[i];
			return 0;
		}
	}
	return err_at(err, ERR_INPUT, &pos, "'%s' is no function known here%s", name, suggest_text(&s, near, sizeof(near)));
}

/* "x = y.f(": what is assigned to, if anything, then the function. */
static int read_head(struct reader *r, const struct python_function *functions, size_t n,
	const struct python_function **out, struct err *err)
{
	for (;;) {
		const char *begin = (skip_space(r), r->at), *name = take_name(r);
		if (!name)
			return expected(r, err, "the name of a function");
		if (take(r, '='))
			continue;
		if (!take(r, '('))
			return expected(r, err, "'('");
		return find_function(r, name, begin, functions, n, out, err);
	}
}

static int at_end(struct reader *r, struct err *err)
{
	skip_space(r);
	return *r->at ? expected(r, err, "the end of the text") : 0;
}

bool python_is_call(const char *text)
{
	size_t blank = strspn(text, " \t\r\n#"), name;

	for (name = 0; is_name_char(text[blank + name]) || text[blank + name] == '.'; name++)
		;
	const char *behind = text + blank + name + strspn(text + blank + name, " \t");
	return name && (*behind == '(' || *behind == '=');
}

bool python_names(const char *text, const struct python_function *functions, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(functions[i].name);
		for (const char *at = text; (at = strstr(at, functions[i].name)); at += len)
			if ((at == text || !is_name_char(at[-1])) && at[len + strspn(at + len, " \t")] == '(')
				return true;
	}
	return false;
}

int python_call_parse(const char *text, const struct err_pos *pos, const struct python_function *functions, size_t n,
	struct arena *a, struct yaml_node **map, const struct python_function **function, struct err *err)
{
	struct reader r = {.text = text, .at = text, .pos = pos, .a = a};
	size_t n_positional = 0;

	*map = new_node(&r, YAML_MAP, text);
	if (read_head(&r, functions, n, function, err))
		return -1;
	while (!take(&r, ')')) {
		if (read_argument(&r, *function, &n_positional, *map, err))
			return -1;
		if (!take(&r, ',') && *r.at != ')')
			return expected(&r, err, "',' or ')'");
	}
	return at_end(&r, err);
}

int python_value_parse(const char *text, const struct err_pos *pos, struct arena *a, struct yaml_node **value,
	struct err *err)
{
	struct reader r = {.text = text, .at = text, .pos = pos, .bare_words = true, .a = a};

	return read_value(&r, value, err) || at_end(&r, err) ? -1 : 0;
}
