#include "base/yaml.h"

#include <libfyaml.h>
#include <string.h>

#include "base/file.h"
#include "base/utf8.h"
#include "base/yaml_internal.h"

#define MAX_BYTES ((size_t)1 << 20)

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
	const char *source; /* the cleaned text, with a NUL behind it */
	struct frame stack[YAML_MAX_DEPTH];
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
	if (strlen(text) > YAML_MAX_KEY)
		return err_at(r->err, ERR_INPUT, &pos, "key is longer than %d bytes", YAML_MAX_KEY);
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

/*
 * 0.7.12 garbles two doubled quotes in a row, 'a''''b'. So a single-quoted scalar is read from the source, as
 * long as it stands in one line; in several, it must not have any. out stays empty when libfyaml is to read it.
 */
static int single_quoted(struct reader *r, struct fy_token *token, struct yaml_buf *out)
{
	const struct fy_mark *mark = fy_token_start_mark(token); /* behind the quote */
	bool one_line = true, garbled = false;

	for (const char *p = r->source + mark->input_pos;; p++) {
		if (*p == '\n')
			one_line = false;
		garbled = garbled || !strncmp(p, "''''", 4);
		if (!*p || (*p == '\'' && *++p != '\''))
			break;
		yaml_put(out, r->a, p, 1);
	}
	yaml_put(out, r->a, "", 1);
	if (one_line)
		return 0;
	out->n = 0;
	return garbled ? fault(r, &r->seen, "two quotes in a row in a quoted text of several lines") : 0;
}

/* Piece by piece: fy_token_get_text relies on a length that 0.7.12 miscounts, and leaks when it is short. */
static int token_text(struct reader *r, struct fy_token *token, struct yaml_buf *out)
{
	const struct fy_iter_chunk *chunk = NULL;
	int failed = 0;

	if (token && fy_token_scalar_style(token) == FYSS_SINGLE_QUOTED && single_quoted(r, token, out))
		return -1;
	if (out->n)
		return 0;
	struct fy_token_iter *iter = token ? fy_token_iter_create(token) : NULL;
	if (token && !iter)
		return err_set(r->err, ERR_NOMEM, "out of memory");
	while (iter && (chunk = fy_token_iter_chunk_next(iter, chunk, &failed)))
		yaml_put(out, r->a, chunk->str, chunk->len);
	if (iter)
		fy_token_iter_destroy(iter);
	yaml_put(out, r->a, "", 1);
	return failed ? fault(r, &r->seen, "text that cannot be decoded") : 0;
}

static int on_scalar(struct reader *r, struct fy_event *event)
{
	struct fy_token *token = event->scalar.value;
	struct err_pos pos = event_pos(r, event);
	enum fy_scalar_style style = token ? fy_token_scalar_style(token) : FYSS_PLAIN;
	struct yaml_buf text = {0};

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
	if (r->depth == YAML_MAX_DEPTH)
		return err_at(r->err, ERR_INPUT, &pos, "nested more than %d deep", YAML_MAX_DEPTH);
	struct yaml_node *node = new_node(r, kind, pos);
	attach(r, node);
	r->stack[r->depth++] = (struct frame){.node = node};
	return 0;
}

/* By sorting: a map of 10^5 keys must not cost 10^10 comparisons. */
static int refuse_duplicates(struct reader *r, const struct yaml_node *map)
{
	const struct yaml_node *first = NULL;
	struct arena_mark mark = arena_mark(r->a);
	size_t n = yaml_count(map);
	struct yaml_node **list = yaml_children(r->a, map, true);

	for (size_t i = 1; i < n; i++) {
		if (!strcmp(list[i - 1]->key, list[i]->key) && (!first || yaml_compare_places(list[i], first) < 0))
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
	r.source = clean;
	if (yaml_gate(text, len, r.file, clean, &len, err) || parse(&r, clean, len))
		return -1;
	if (!r.root) {
		r.root = new_node(&r, YAML_SCALAR, (struct err_pos){r.file, 1, 1});
		r.root->text = "";
	}
	*root = r.root;
	return 0;
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
			yaml_kind_name(r->kind));
	return 0;
}
