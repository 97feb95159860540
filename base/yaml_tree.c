#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"
#include "base/yaml_internal.h"

const char *yaml_kind_name(enum yaml_kind kind)
{
	static const char *const names[] = {"a single value", "a map", "a list"};

	return names[kind];
}

struct yaml_node *yaml_get(const struct yaml_node *map, const char *key)
{
	if (map->kind != YAML_MAP)
		return NULL;
	for (struct yaml_node *c = map->child; c; c = c->next)
		if (!strcmp(c->key, key))
			return c;
	return NULL;
}

size_t yaml_count(const struct yaml_node *node)
{
	size_t n = 0;

	for (const struct yaml_node *c = node->child; c; c = c->next)
		n++;
	return n;
}

int yaml_text(const struct yaml_node *node, const char **out, struct err *err)
{
	if (node->kind == YAML_SCALAR) {
		*out = node->text;
		return 0;
	}
	if (!node->key)
		return err_at(err, ERR_INPUT, &node->pos, "must be a single value, not %s", yaml_kind_name(node->kind));
	return err_at(err, ERR_INPUT, &node->pos, "'%s' must be a single value, not %s", node->key,
		yaml_kind_name(node->kind));
}

static struct yaml_node *shallow_copy(struct arena *a, const struct yaml_node *node)
{
	struct yaml_node *copy = arena_new(a, struct yaml_node);

	*copy = *node;
	copy->next = NULL;
	return copy;
}

/* Appends at *end and returns where the next one goes. */
static struct yaml_node **append(struct yaml_node **end, struct yaml_node *node)
{
	*end = node;
	return &node->next;
}

struct yaml_node *yaml_overlay(struct arena *a, const struct yaml_node *base,
			       const struct yaml_node *over)
{
	if (base->kind != YAML_MAP || over->kind != YAML_MAP)
		return shallow_copy(a, over);
	struct yaml_node *result = shallow_copy(a, base);
	struct yaml_node **end = &result->child;
	*end = NULL;
	for (const struct yaml_node *c = base->child; c; c = c->next) {
		const struct yaml_node *o = yaml_get(over, c->key);
		end = append(end, o ? yaml_overlay(a, c, o) : shallow_copy(a, c));
	}
	for (const struct yaml_node *o = over->child; o; o = o->next)
		if (!yaml_get(base, o->key))
			end = append(end, shallow_copy(a, o));
	return result;
}

static size_t depth_of(const struct yaml_node *node)
{
	size_t deepest = 0;

	for (const struct yaml_node *c = node->child; c; c = c->next) {
		size_t d = depth_of(c);
		if (d > deepest)
			deepest = d;
	}
	return deepest + (node->kind != YAML_SCALAR);
}

static void set_positions(struct yaml_node *node, struct err_pos pos)
{
	node->pos = node->key_pos = pos;
	for (struct yaml_node *c = node->child; c; c = c->next)
		set_positions(c, pos);
}

/* Other trees may share the children of node: gives it copies of its own. */
static void unshare_children(struct arena *a, struct yaml_node *node)
{
	struct yaml_node **end = &node->child;

	for (const struct yaml_node *c = node->child; c; c = c->next)
		end = append(end, shallow_copy(a, c));
}

/* A scalar on the way becomes a map that holds it under scalar_key. */
static int make_map(struct arena *a, struct yaml_node *node, const char *path, const char *scalar_key,
		    const struct err_pos *pos, struct err *err)
{
	if (node->kind == YAML_MAP)
		return 0;
	bool empty = node->kind == YAML_SCALAR && !*node->text && !node->quoted;
	if (node->kind == YAML_LIST || (!empty && !scalar_key))
		return err_at(err, ERR_INPUT, pos, "cannot set '%s': '%s' is %s, not a map", path,
			node->key ? node->key : "it", yaml_kind_name(node->kind));
	struct yaml_node *inner = NULL;
	if (!empty) {
		inner = shallow_copy(a, node);
		inner->key = arena_strdup(a, scalar_key);
		inner->key_pos = node->pos;
	}
	node->kind = YAML_MAP;
	node->text = NULL;
	node->quoted = false;
	node->child = inner;
	return 0;
}

/* The child of map under key, made when there is none. */
static struct yaml_node *open_child(struct arena *a, struct yaml_node *map, const char *key,
				    const struct err_pos *pos)
{
	struct yaml_node *child = yaml_get(map, key);

	if (child)
		return child;
	child = arena_new(a, struct yaml_node);
	child->kind = YAML_MAP;
	child->key = key;
	child->pos = child->key_pos = *pos;
	struct yaml_node **end = &map->child;
	while (*end)
		end = &(*end)->next;
	*end = child;
	return child;
}

/* Cuts a.b.c into its keys. */
static int split_path(struct arena *a, const char *path, const struct err_pos *pos, const char **keys,
		      size_t *n, struct err *err)
{
	const char *p = path;

	for (*n = 0;; p++) {
		size_t len = strcspn(p, ".");
		if (!len || len > YAML_MAX_KEY || *n == YAML_MAX_DEPTH)
			return err_at(err, ERR_INPUT, pos,
				"'%s' is no path of keys (such as workload.batch)", path);
		keys[(*n)++] = arena_strndup(a, p, len);
		p += len;
		if (!*p)
			return 0;
	}
}

static int read_value(struct arena *a, const char *value, const struct err_pos *pos, struct yaml_node **out,
		      struct err *err)
{
	if (yaml_read_text(value, strlen(value), pos->file, a, out, err)) {
		/* Line and column count within value: of no use to who wrote it elsewhere. */
		if (err && err->code == ERR_INPUT) {
			err->line = pos->line;
			err->col = pos->col;
		}
		return -1;
	}
	set_positions(*out, *pos);
	return 0;
}

int yaml_set_path(struct arena *a, struct yaml_node *root, const char *path, const char *value,
		  const char *scalar_key, const struct err_pos *pos, struct err *err)
{
	const char *keys[YAML_MAX_DEPTH];
	size_t n;
	struct yaml_node *set;
	struct err_pos at = {0};

	if (pos)
		at = (struct err_pos){pos->file ? arena_strdup(a, pos->file) : NULL, pos->line, pos->col};
	if (split_path(a, path, &at, keys, &n, err) || read_value(a, value, &at, &set, err))
		return -1;
	if (n + depth_of(set) > YAML_MAX_DEPTH)
		return err_at(err, ERR_INPUT, &at, "'%s' would be nested more than %d deep", path, YAML_MAX_DEPTH);
	struct yaml_node *node = root;
	for (size_t i = 0; i < n; i++) {
		if (make_map(a, node, path, scalar_key, &at, err))
			return -1;
		unshare_children(a, node);
		node = open_child(a, node, keys[i], &at);
	}
	set->key = node->key;
	set->next = node->next;
	*node = *set;
	return 0;
}

static int compare_keys(const void *a, const void *b)
{
	const struct yaml_node *x = *(struct yaml_node *const *)a;
	const struct yaml_node *y = *(struct yaml_node *const *)b;
	int order = strcmp(x->key, y->key);

	return order ? order : yaml_compare_places(x, y);
}

struct yaml_node **yaml_children(struct arena *a, const struct yaml_node *node, bool sorted)
{
	size_t n = yaml_count(node), i = 0;
	struct yaml_node **list = arena_array(a, struct yaml_node *, n);

	for (struct yaml_node *c = node->child; c; c = c->next)
		list[i++] = c;
	if (sorted && node->kind == YAML_MAP && n > 1)
		qsort(list, n, sizeof(*list), compare_keys);
	return list;
}

/* ---- canonical text ---- */

static void put_text(struct yaml_buf *t, struct arena *a, const char *s)
{
	yaml_put(t, a, s, strlen(s));
}

static bool is_alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Deliberately narrow: what could be taken for anything but text, here or by another reader of YAML's
   punctuation, is quoted. */
static bool is_plain(const char *s)
{
	if (!is_alnum(*s) && *s != '_' && *s != '/' && !((*s == '-' || *s == '.') && is_alnum(s[1])))
		return false;
	for (; *s; s++) {
		if (*s == ' ' && (s[1] == ' ' || !s[1]))
			return false;
		if (!is_alnum(*s) && !strchr(" _./+-%()=<>~^$;", *s))
			return false;
	}
	return true;
}

static void put_quoted(struct yaml_buf *t, struct arena *a, const char *s)
{
	size_t left = strlen(s);

	yaml_put(t, a, "\"", 1);
	while (left) {
		uint32_t cp = (unsigned char)*s;
		size_t n = utf8_decode(s, left, &cp);
		char escape[16];
		n += !n; /* cannot be: the reader took valid text only */
		if (cp == '"' || cp == '\\')
			yaml_put(t, a, "\\", 1);
		if (cp == '\n') {
			yaml_put(t, a, "\\n", 2);
		} else if (cp == '\t') {
			yaml_put(t, a, "\\t", 2);
		} else if (yaml_is_control(cp)) {
			snprintf(escape, sizeof(escape), "\\u%04" PRIx32, cp);
			put_text(t, a, escape);
		} else {
			yaml_put(t, a, s, n);
		}
		s += n;
		left -= n;
	}
	yaml_put(t, a, "\"", 1);
}

static void put_scalar(struct yaml_buf *t, struct arena *a, const char *s)
{
	if (is_plain(s))
		put_text(t, a, s);
	else
		put_quoted(t, a, s);
}

static void put_node(struct yaml_buf *t, struct arena *a, const struct yaml_node *node, bool sorted)
{
	if (node->kind == YAML_SCALAR) {
		put_scalar(t, a, node->text);
		return;
	}
	bool map = node->kind == YAML_MAP;
	size_t n = yaml_count(node);
	struct yaml_node **list = yaml_children(a, node, sorted);
	yaml_put(t, a, map ? "{" : "[", 1);
	for (size_t i = 0; i < n; i++) {
		if (i)
			yaml_put(t, a, ", ", 2);
		if (map) {
			put_scalar(t, a, list[i]->key);
			yaml_put(t, a, ": ", 2);
		}
		put_node(t, a, list[i], sorted);
	}
	yaml_put(t, a, map ? "}" : "]", 1);
}

char *yaml_flow_text(struct arena *a, const struct yaml_node *node, bool sorted)
{
	struct yaml_buf t = {0};

	put_node(&t, a, node, sorted);
	yaml_put(&t, a, "", 1);
	return t.at;
}
