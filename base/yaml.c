#include "base/yaml.h"

#include <inttypes.h>
#include <libfyaml.h>
#include <string.h>

#include "base/file.h"
#include "base/utf8.h"
#include "base/vec.h"

#define MAX_BYTES ((size_t)1 << 20)
#define MAX_DEPTH 64
#define MAX_KEY 200 /* bytes; so that any key, escaped, stays below the 1024 that YAML allows for one */

/* Bytes that grow. */
struct text {
	VEC(char);
};

static void put(struct text *t, struct arena *a, const char *s, size_t n)
{
	VEC_RESERVE(t, a, t->n + n);
	memcpy(t->at + t->n, s, n);
	t->n += n;
}

/* ---- the gate: what libfyaml never gets to see ---- */

/* C0 but for tab and line feed, DEL, C1, and what YAML or a terminal takes for a line break or a mark. */
static bool is_control(uint32_t cp)
{
	if (cp < 0x20)
		return cp != '\t' && cp != '\n';
	return (cp >= 0x7f && cp < 0xa0) || cp == 0x2028 || cp == 0x2029 || cp == 0xfeff ||
	       cp == 0xfffe || cp == 0xffff;
}

/* Copies text to out (of the same size), CR LF as LF, without a byte order mark. */
static int gate(const char *text, size_t len, const char *file, char *out, size_t *out_len, struct err *err)
{
	struct err_pos pos = {file, 1, 1};
	size_t n = 0;
	size_t i = len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;

	while (i < len) {
		uint32_t cp;
		size_t bytes = utf8_decode(text + i, len - i, &cp);
		if (!bytes)
			return err_at(err, ERR_INPUT, &pos, "byte 0x%02x is not UTF-8",
				(unsigned)(unsigned char)text[i]);
		if (cp == '\r') {
			if (i + 1 == len || text[i + 1] != '\n')
				return err_at(err, ERR_INPUT, &pos, "carriage return without a line feed");
			i++;
			continue;
		}
		if (is_control(cp))
			return err_at(err, ERR_INPUT, &pos, "control character U+%04" PRIX32, cp);
		if (cp == '%' && pos.col == 1)
			return err_at(err, ERR_INPUT, &pos, "a line must not begin with '%%'");
		memcpy(out + n, text + i, bytes);
		n += bytes;
		i += bytes;
		pos.col++;
		if (cp == '\n') {
			pos.line++;
			pos.col = 1;
		}
	}
	*out_len = n;
	return 0;
}

/* ---- libfyaml's events into nodes ---- */

/* A map or list that is being read. */
struct frame {
	struct yaml_node *node;
	struct yaml_node *last; /* of its children */
	const char *key;        /* map: the key that waits for its value, NULL between entries */
	struct err_pos key_pos;
};

struct reader {
	struct arena *a;
	struct err *err;
	const char *file;
	struct frame stack[MAX_DEPTH];
	size_t depth;
	struct yaml_node *root;
	struct err_pos seen; /* where the last event with a mark was */
	int documents;
};

static int fault(struct reader *r, const struct err_pos *pos, const char *what)
{
	return err_at(r->err, ERR_INPUT, pos, "%s", what);
}

/* Empty values have no mark; they are where the last thing was, which for a map is their key. */
static struct err_pos event_pos(struct reader *r, struct fy_event *event)
{
	const struct fy_mark *mark = fy_event_start_mark(event);

	if (mark)
		r->seen = (struct err_pos){r->file, mark->line + 1, mark->column + 1};
	return r->seen;
}

static struct yaml_node *new_node(struct reader *r, enum yaml_kind kind, struct err_pos pos)
{
	struct yaml_node *node = arena_new(r->a, struct yaml_node);

	node->kind = kind;
	node->pos = pos;
	return node;
}

/* Hangs a value in where the reader stands. */
static void attach(struct reader *r, struct yaml_node *node)
{
	if (!r->depth) {
		r->root = node;
		return;
	}
	struct frame *f = &r->stack[r->depth - 1];
	if (f->key) {
		node->key = f->key;
		node->key_pos = f->key_pos;
		f->key = NULL;
	}
	if (f->last)
		f->last->next = node;
	else
		f->node->child = node;
	f->last = node;
}

static bool expects_key(const struct reader *r)
{
	return r->depth && r->stack[r->depth - 1].node->kind == YAML_MAP && !r->stack[r->depth - 1].key;
}

static int check_text(struct reader *r, const char *text, size_t len, const struct err_pos *pos)
{
	if (memchr(text, '\0', len))
		return fault(r, pos, "the escape \\0 is not allowed");
	for (size_t i = 0; i < len;) {
		uint32_t cp;
		size_t n = utf8_decode(text + i, len - i, &cp);
		if (!n)
			return fault(r, pos, "an escape gives no valid character");
		i += n;
	}
	return 0;
}

static int take_key(struct reader *r, const char *text, struct err_pos pos)
{
	struct frame *f = &r->stack[r->depth - 1];

	if (!*text)
		return fault(r, &pos, "empty key");
	if (strlen(text) > MAX_KEY)
		return err_at(r->err, ERR_INPUT, &pos, "key is longer than %d bytes", MAX_KEY);
	/* libfyaml marks a pair in a list, [a: b], at its colon. */
	if (!f->last && f->node->pos.line == pos.line && f->node->pos.col > pos.col)
		f->node->pos = pos;
	f->key = text;
	f->key_pos = pos;
	return 0;
}

static int refuse_token(struct reader *r, struct fy_token *token, int behind, const char *what)
{
	const struct fy_mark *mark = fy_token_start_mark(token);
	struct err_pos pos = r->seen;

	if (mark)
		pos = (struct err_pos){r->file, mark->line + 1, mark->column + 1 - (mark->column ? behind : 0)};
	return fault(r, &pos, what);
}

static int refuse_marks(struct reader *r, struct fy_token *tag, struct fy_token *anchor)
{
	if (tag)
		return refuse_token(r, tag, 0, "tags (!…) are not supported");
	if (anchor) /* marked behind its '&' */
		return refuse_token(r, anchor, 1, "anchors (&…) are not supported");
	return 0;
}

/* Piece by piece: fy_token_get_text of 0.7.12 miscounts some quoted scalars, such as '''2''''''''', then
   gives a buffer half filled and leaks. */
static int token_text(struct reader *r, struct fy_token *token, struct text *out)
{
	struct fy_token_iter *iter = token ? fy_token_iter_create(token) : NULL;
	const struct fy_iter_chunk *chunk = NULL;
	int failed = 0;

	if (token && !iter)
		return err_set(r->err, ERR_NOMEM, "out of memory");
	while (iter && (chunk = fy_token_iter_chunk_next(iter, chunk, &failed)))
		put(out, r->a, chunk->str, chunk->len);
	if (iter)
		fy_token_iter_destroy(iter);
	put(out, r->a, "", 1);
	return failed ? fault(r, &r->seen, "text that cannot be decoded") : 0;
}

static int on_scalar(struct reader *r, struct fy_event *event)
{
	struct fy_token *token = event->scalar.value;
	struct err_pos pos = event_pos(r, event);
	enum fy_scalar_style style = token ? fy_token_scalar_style(token) : FYSS_PLAIN;
	struct text text = {0};

	if (style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED)
		pos.col -= pos.col > 1; /* the mark is behind the quote */
	if (refuse_marks(r, event->scalar.tag, event->scalar.anchor))
		return -1;
	if (token_text(r, token, &text) || check_text(r, text.at, text.n - 1, &pos))
		return -1;
	if (expects_key(r))
		return take_key(r, text.at, pos);
	struct yaml_node *node = new_node(r, YAML_SCALAR, pos);
	node->text = text.at;
	node->quoted = style != FYSS_PLAIN;
	attach(r, node);
	return 0;
}

static int on_start(struct reader *r, struct fy_event *event, enum yaml_kind kind)
{
	bool map = kind == YAML_MAP;
	struct err_pos pos = event_pos(r, event);

	if (map ? refuse_marks(r, event->mapping_start.tag, event->mapping_start.anchor)
		: refuse_marks(r, event->sequence_start.tag, event->sequence_start.anchor))
		return -1;
	if (expects_key(r))
		return fault(r, &pos, map ? "a key must be text, not a map" : "a key must be text, not a list");
	if (r->depth == MAX_DEPTH)
		return err_at(r->err, ERR_INPUT, &pos, "nested more than %d deep", MAX_DEPTH);
	struct yaml_node *node = new_node(r, kind, pos);
	attach(r, node);
	r->stack[r->depth++] = (struct frame){.node = node};
	return 0;
}

static int compare_places(const struct yaml_node *a, const struct yaml_node *b)
{
	if (a->key_pos.line != b->key_pos.line)
		return a->key_pos.line < b->key_pos.line ? -1 : 1;
	return (a->key_pos.col > b->key_pos.col) - (a->key_pos.col < b->key_pos.col);
}

static int compare_keys(const void *a, const void *b)
{
	const struct yaml_node *x = *(struct yaml_node *const *)a;
	const struct yaml_node *y = *(struct yaml_node *const *)b;
	int order = strcmp(x->key, y->key);

	return order ? order : compare_places(x, y);
}

/* The children in an array, sorted by key; yaml_count() of them. */
static struct yaml_node **children(struct arena *a, const struct yaml_node *node, bool sorted)
{
	size_t n = yaml_count(node), i = 0;
	struct yaml_node **list = arena_array(a, struct yaml_node *, n);

	for (struct yaml_node *c = node->child; c; c = c->next)
		list[i++] = c;
	if (sorted && node->kind == YAML_MAP && n > 1)
		qsort(list, n, sizeof(*list), compare_keys);
	return list;
}

/* By sorting: a map of 10^5 keys must not cost 10^10 comparisons. */
static int refuse_duplicates(struct reader *r, const struct yaml_node *map)
{
	const struct yaml_node *first = NULL;
	struct arena_mark mark = arena_mark(r->a);
	size_t n = yaml_count(map);
	struct yaml_node **list = children(r->a, map, true);

	for (size_t i = 1; i < n; i++) {
		if (!strcmp(list[i - 1]->key, list[i]->key) && (!first || compare_places(list[i], first) < 0))
			first = list[i];
	}
	arena_rewind(r->a, mark);
	return first ? err_at(r->err, ERR_INPUT, &first->key_pos, "key '%s' is here twice", first->key) : 0;
}

static int on_end(struct reader *r)
{
	struct frame *f = &r->stack[--r->depth];

	return f->node->kind == YAML_MAP ? refuse_duplicates(r, f->node) : 0;
}

static int on_event(struct reader *r, struct fy_event *event)
{
	struct err_pos pos;

	switch (event->type) {
	case FYET_SCALAR:
		return on_scalar(r, event);
	case FYET_MAPPING_START:
		return on_start(r, event, YAML_MAP);
	case FYET_SEQUENCE_START:
		return on_start(r, event, YAML_LIST);
	case FYET_MAPPING_END:
	case FYET_SEQUENCE_END:
		return on_end(r);
	case FYET_ALIAS:
		pos = event_pos(r, event);
		pos.col -= pos.col > 1; /* the mark is behind the star */
		return fault(r, &pos, "aliases (*…) are not supported");
	case FYET_DOCUMENT_START:
		pos = event_pos(r, event);
		return r->documents++ ? fault(r, &pos, "a second document begins here") : 0;
	case FYET_NONE:
	case FYET_STREAM_START:
	case FYET_STREAM_END:
	case FYET_DOCUMENT_END:
		break;
	}
	return 0;
}

/* The first thing that libfyaml complained about. */
static int syntax_error(struct reader *r, struct fy_diag *diag)
{
	void *at = NULL;
	struct fy_diag_error *e;

	while ((e = fy_diag_errors_iterate(diag, &at)) && e->type != FYET_ERROR)
		;
	if (!e)
		return fault(r, &r->seen, "not YAML");
	struct err_pos pos = {r->file, e->line, e->column};
	return fault(r, &pos, e->msg);
}

static int read_events(struct reader *r, struct fy_parser *parser, struct fy_diag *diag)
{
	struct fy_event *event;
	int rc = 0;

	while (!rc && (event = fy_parser_parse(parser))) {
		rc = on_event(r, event);
		fy_parser_event_free(parser, event);
	}
	if (!rc && (fy_parser_get_stream_error(parser) || r->depth))
		return syntax_error(r, diag);
	return rc;
}

/* Errors are collected, never displayed: libfyaml's display reads out of bounds. */
static struct fy_diag *new_diag(void)
{
	struct fy_diag_cfg cfg;

	fy_diag_cfg_default(&cfg);
	cfg.fp = NULL;
	cfg.level = FYET_ERROR;
	cfg.colorize = false;
	struct fy_diag *diag = fy_diag_create(&cfg);
	if (diag)
		fy_diag_set_collect_errors(diag, true);
	return diag;
}

static int parse(struct reader *r, const char *text, size_t len)
{
	struct fy_diag *diag = new_diag();
	struct fy_parse_cfg cfg = {
		.flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG | FYPCF_DEFAULT_VERSION_1_2 | FYPCF_JSON_NONE,
		.diag = diag,
	};
	struct fy_parser *parser = diag ? fy_parser_create(&cfg) : NULL;
	int rc;

	if (!parser || fy_parser_set_string(parser, text, len))
		rc = err_set(r->err, ERR_NOMEM, "out of memory");
	else
		rc = read_events(r, parser, diag);
	if (parser)
		fy_parser_destroy(parser);
	if (diag)
		fy_diag_destroy(diag);
	return rc;
}

int yaml_read_text(const char *text, size_t len, const char *name, struct arena *a,
		   struct yaml_node **root, struct err *err)
{
	struct reader r = {.a = a, .err = err, .file = name ? arena_strdup(a, name) : NULL};
	struct err_pos whole = {r.file, 0, 0};

	r.seen = (struct err_pos){r.file, 1, 1};
	if (len > MAX_BYTES)
		return err_at(err, ERR_INPUT, &whole, "larger than 1 MiB");
	/* libfyaml looks a few bytes ahead; let it find NULs there. */
	char *clean = arena_alloc(a, len + 16);
	if (gate(text, len, r.file, clean, &len, err) || parse(&r, clean, len))
		return -1;
	if (!r.root) {
		r.root = new_node(&r, YAML_SCALAR, (struct err_pos){r.file, 1, 1});
		r.root->text = "";
	}
	*root = r.root;
	return 0;
}

static const char *kind_name(enum yaml_kind kind)
{
	static const char *const names[] = {"a single value", "a map", "a list"};

	return names[kind];
}

int yaml_read_file(const char *path, struct arena *a, struct yaml_node **root, struct err *err)
{
	char *text;
	size_t len;

	if (file_read_all(path, MAX_BYTES, &text, &len, err))
		return -1;
	int rc = yaml_read_text(text, len, path, a, root, err);
	free(text);
	if (rc)
		return -1;
	const struct yaml_node *r = *root;
	struct err_pos whole = {r->pos.file, 0, 0};
	if (r->kind == YAML_SCALAR && !*r->text && !r->quoted)
		return err_at(err, ERR_INPUT, &whole, "nothing in it");
	if (r->kind != YAML_MAP)
		return err_at(err, ERR_INPUT, &r->pos, "must be a map of keys and values, not %s",
			kind_name(r->kind));
	return 0;
}

/* ---- trees ---- */

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
		return err_at(err, ERR_INPUT, &node->pos, "must be a single value, not %s", kind_name(node->kind));
	return err_at(err, ERR_INPUT, &node->pos, "'%s' must be a single value, not %s", node->key,
		kind_name(node->kind));
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
			node->key ? node->key : "it", kind_name(node->kind));
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
		if (!len || len > MAX_KEY || *n == MAX_DEPTH)
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
	const char *keys[MAX_DEPTH];
	size_t n;
	struct yaml_node *set;
	struct err_pos at = {0};

	if (pos)
		at = (struct err_pos){pos->file ? arena_strdup(a, pos->file) : NULL, pos->line, pos->col};
	if (split_path(a, path, &at, keys, &n, err) || read_value(a, value, &at, &set, err))
		return -1;
	if (n + depth_of(set) > MAX_DEPTH)
		return err_at(err, ERR_INPUT, &at, "'%s' would be nested more than %d deep", path, MAX_DEPTH);
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

/* ---- canonical text ---- */

static void put_text(struct text *t, struct arena *a, const char *s)
{
	put(t, a, s, strlen(s));
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

static void put_quoted(struct text *t, struct arena *a, const char *s)
{
	size_t left = strlen(s);

	put(t, a, "\"", 1);
	while (left) {
		uint32_t cp = (unsigned char)*s;
		size_t n = utf8_decode(s, left, &cp);
		char escape[16];
		n += !n; /* cannot be: the reader took valid text only */
		if (cp == '"' || cp == '\\')
			put(t, a, "\\", 1);
		if (cp == '\n') {
			put(t, a, "\\n", 2);
		} else if (cp == '\t') {
			put(t, a, "\\t", 2);
		} else if (is_control(cp)) {
			snprintf(escape, sizeof(escape), "\\u%04" PRIx32, cp);
			put_text(t, a, escape);
		} else {
			put(t, a, s, n);
		}
		s += n;
		left -= n;
	}
	put(t, a, "\"", 1);
}

static void put_scalar(struct text *t, struct arena *a, const char *s)
{
	if (is_plain(s))
		put_text(t, a, s);
	else
		put_quoted(t, a, s);
}

static void put_node(struct text *t, struct arena *a, const struct yaml_node *node, bool sorted)
{
	if (node->kind == YAML_SCALAR) {
		put_scalar(t, a, node->text);
		return;
	}
	bool map = node->kind == YAML_MAP;
	size_t n = yaml_count(node);
	struct yaml_node **list = children(a, node, sorted);
	put(t, a, map ? "{" : "[", 1);
	for (size_t i = 0; i < n; i++) {
		if (i)
			put(t, a, ", ", 2);
		if (map) {
			put_scalar(t, a, list[i]->key);
			put(t, a, ": ", 2);
		}
		put_node(t, a, list[i], sorted);
	}
	put(t, a, map ? "}" : "]", 1);
}

char *yaml_flow_text(struct arena *a, const struct yaml_node *node, bool sorted)
{
	struct text t = {0};

	put_node(&t, a, node, sorted);
	put(&t, a, "", 1);
	return t.at;
}
