#include <inttypes.h>
#include <stdarg.h>

#include "base/intern.h"
#include "base/lines.h"
#include "base/number.h"
#include "base/suggest.h"
#include "sim/core/opg_text.h"

#define MAX_LINE ((size_t)1 << 20)
#define MAX_ITEMS 10000000 /* of a kind */
#define MAX_FIELDS 24

struct reader {
	struct lines lines;
	const char *path;
	struct opg *g;
	struct intern names; /* words that are said again and again */
	struct arena *arena;
	const char *line, *at; /* the line at hand, and what is next of it */
	bool steps, ended;
	struct err *err;
};

static int fail(const struct reader *r, const char *where, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* At a place of the line at hand. Returns -1. */
static int fail(const struct reader *r, const char *where, const char *fmt, ...)
{
	struct err_pos pos = {r->path, r->lines.line, (int)(where - r->line) + 1};
	char msg[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	return err_at(r->err, ERR_INPUT, &pos, "%s", msg);
}

/* ---- words ---- */

struct word {
	const char *text; /* ends with a NUL */
	size_t len;       /* 0: there is none left */
};

static struct word next_word(struct reader *r)
{
	const char *begin = r->at + strspn(r->at, " ");
	size_t len = strcspn(begin, " ");

	r->at = begin + len + (begin[len] == ' ');
	((char *)begin)[len] = '\0'; /* lines.h lets us */
	return (struct word){begin, len};
}

static const char *intern(struct reader *r, const char *text, size_t len)
{
	uint32_t i = intern_add(&r->names, text, len);

	return r->names.name[i];
}

/* ---- numbers ---- */

static int read_count(const struct reader *r, const char *key, const char *text, size_t len, uint64_t max, uint64_t *out)
{
	if (number_scaled(text, len, 0, out) != NUMBER_FINE || memchr(text, '.', len) || memchr(text, 'e', len) ||
		*out > max)
		return fail(r, text, "%s must be a whole number from 0 to %" PRIu64 ", not '%.*s'", key, max,
			(int)(len < 40 ? len : 40), text);
	return 0;
}

static int read_real(const struct reader *r, const char *key, const char *text, size_t len, double *out)
{
	if (!number_parse(text, len, out) || *out < 0 || *out > OPG_MAX_REAL || (*out > 0 && *out < OPG_MIN_REAL))
		return fail(r, text, "%s must be 0 or a number from %g to %g, not '%.*s'", key, OPG_MIN_REAL, OPG_MAX_REAL,
			(int)(len < 40 ? len : 40), text);
	return 0;
}

static size_t n_items(const struct opg *g, enum opg_of of)
{
	switch (of) {
	case OPG_RESOURCES: return g->resources.n;
	case OPG_MEMORIES: return g->memories.n;
	case OPG_DEVICES: return g->devices.n;
	case OPG_UNITS: return g->units.n;
	case OPG_BUFFERS: return g->buffers.n;
	}
	BUG("%d are no items", (int)of);
}

static const char *const of_names[] = {"resource", "memory", "device", "unit", "buffer"};

static int read_index(const struct reader *r, const char *key, const char *text, size_t len, enum opg_of of, int *out)
{
	uint64_t i;

	if (read_count(r, key, text, len, MAX_ITEMS, &i))
		return -1;
	if (i >= n_items(r->g, of))
		return fail(r, text, "%s: there is no %s %" PRIu64 " above", key, of_names[of], i);
	*out = (int)i;
	return 0;
}

/* ---- lists ---- */

static size_t n_parts(const char *text)
{
	size_t n = 1;

	for (const char *p = text; *p; p++)
		n += *p == ',';
	return n;
}

static int read_after(struct reader *r, const char *text, struct opg_op *o)
{
	uint32_t *after = arena_array(r->arena, uint32_t, n_parts(text)), n = 0;

	for (const char *p = text;; p++) {
		size_t len = strcspn(p, ",");
		uint64_t id;
		if (read_count(r, "after", p, len, UINT32_MAX, &id))
			return -1;
		if (id >= r->g->ops.n)
			return fail(r, p, "after: there is no operation %" PRIu64 " above", id);
		after[n++] = (uint32_t)id;
		p += len;
		if (!*p)
			break;
	}
	o->after = after;
	o->n_after = n;
	return 0;
}

static int read_path(struct reader *r, const char *text, struct opg_op *o)
{
	size_t most = n_parts(text);
	struct maxmin_hop *hop;
	int n = 0;

	if (most > OPG_MAX_HOPS)
		return fail(r, text, "path: %zu resources are more than %d", most, OPG_MAX_HOPS);
	hop = arena_array(r->arena, struct maxmin_hop, most);
	for (const char *p = text;; p++, n++) {
		size_t len = strcspn(p, ",:");
		if (read_index(r, "path", p, len, OPG_RESOURCES, &hop[n].resource))
			return -1;
		for (int i = 0; i < n; i++)
			if (hop[i].resource == hop[n].resource)
				return fail(r, p, "path: resource %d is crossed twice: add up the weights", hop[n].resource);
		p += len;
		if (*p != ':')
			return fail(r, p, "path: a resource without ':WEIGHT'");
		len = strcspn(++p, ",");
		if (read_real(r, "path", p, len, &hop[n].weight))
			return -1;
		if (!(hop[n].weight > 0))
			return fail(r, p, "path: a weight must be above 0");
		p += len;
		if (!*p)
			break;
	}
	o->hop = hop;
	o->n_hops = n + 1;
	return 0;
}

/* ---- fields ---- */

static int read_choice(const struct reader *r, const struct opg_field *f, const char *text, int *out)
{
	struct suggest s;
	char near[128];

	suggest_init(&s, text);
	for (*out = 0; f->names[*out]; ++*out) {
		if (strcmp(f->names[*out], text) == 0)
			return 0;
		suggest_offer(&s, f->names[*out]);
	}
	return fail(r, text, "%s: unknown word '%.40s'%s", f->key, text, suggest_text(&s, near, sizeof(near)));
}

static int read_layer(const struct reader *r, const char *text, size_t len, int *out)
{
	uint64_t i;

	if (read_count(r, "layer", text, len, INT16_MAX, &i))
		return -1;
	*out = (int)i;
	return 0;
}

static int read_value(struct reader *r, const struct opg_field *f, const char *text, void *item)
{
	char *at = (char *)item + f->offset;
	size_t len = strlen(text);
	uint64_t ps;

	if (len == 0)
		return fail(r, text, "%s has no value", f->key);
	switch (f->type) {
	case OPG_TEXT:
		*(const char **)at = intern(r, text, len);
		return 0;
	case OPG_CHOICE:
		return read_choice(r, f, text, (int *)at);
	case OPG_INDEX:
		return read_index(r, f->key, text, len, f->of, (int *)at);
	case OPG_LAYER:
		return read_layer(r, text, len, (int *)at);
	case OPG_COUNT:
		return read_count(r, f->key, text, len, OPG_MAX_BYTES, (uint64_t *)at);
	case OPG_TIME:
		if (read_count(r, f->key, text, len, SIM_TIME_MAX / 4, &ps))
			return -1;
		*(sim_time *)at = (sim_time)ps;
		return 0;
	case OPG_REAL:
		return read_real(r, f->key, text, len, (double *)at);
	case OPG_AFTER:
		return read_after(r, text, item);
	case OPG_PATH:
		return read_path(r, text, item);
	}
	BUG("%s is of no type", f->key);
}

static int unknown_key(const struct reader *r, const struct opg_line *line, const char *key)
{
	struct suggest s;
	char near[128];

	suggest_init(&s, key);
	for (size_t i = 0; i < line->n; i++)
		suggest_offer(&s, line->field[i].key);
	return fail(r, key, "a %s has no key '%.40s'%s", line->word, key, suggest_text(&s, near, sizeof(near)));
}

/* What a key that is left out means. The one default that depends on another is the amount. */
static void fill_default(const struct opg_field *f, void *item)
{
	char *at = (char *)item + f->offset;

	if (f->type == OPG_INDEX || f->type == OPG_LAYER)
		*(int *)at = OPG_NONE;
	else if (f->type == OPG_TEXT)
		*(const char **)at = "-";
	else if (f->type == OPG_CHOICE)
		while (strcmp(f->names[*(int *)at], f->def) != 0)
			++*(int *)at;
	else if (strcmp(f->def, "bytes") == 0)
		((struct opg_op *)item)->amount = ((struct opg_op *)item)->bytes;
}

/* The rest of the line as KEY=VALUE. item is zeroed. */
static int read_fields(struct reader *r, const struct opg_line *line, void *item)
{
	bool seen[MAX_FIELDS] = {false};
	struct word w;

	if (line->n > MAX_FIELDS)
		BUG("%zu fields", line->n);
	while ((w = next_word(r)).len) {
		char *equals = strchr(w.text, '=');
		size_t i = 0;
		if (!equals)
			return fail(r, w.text, "'%.40s' is not KEY=VALUE", w.text);
		*equals = '\0';
		while (i < line->n && strcmp(line->field[i].key, w.text) != 0)
			i++;
		if (i == line->n)
			return unknown_key(r, line, w.text);
		if (seen[i])
			return fail(r, w.text, "key '%s' twice", w.text);
		seen[i] = true;
		if (read_value(r, &line->field[i], equals + 1, item))
			return -1;
	}
	for (size_t i = 0; i < line->n; i++) {
		if (seen[i])
			continue;
		if (!line->field[i].def)
			return fail(r, r->line, "a %s needs the key '%s'", line->word, line->field[i].key);
		fill_default(&line->field[i], item);
	}
	return 0;
}

/* The number behind the first word. */
static int read_number(struct reader *r, const char *word, size_t want)
{
	struct word w = next_word(r);
	uint64_t n;

	if (read_count(r, word, w.text, w.len, UINT32_MAX, &n))
		return -1;
	if (n != want)
		return fail(r, w.text, "%s %" PRIu64 " stands where %s %zu must be", word, n, word, want);
	if (want >= MAX_ITEMS)
		return fail(r, w.text, "more than %d of a kind", MAX_ITEMS);
	return 0;
}

/* ---- lines ---- */

static int read_steps(struct reader *r)
{
	struct opg_steps *s = &r->g->steps;

	if (r->steps)
		return fail(r, r->line, "'steps' twice");
	r->steps = true;
	if (read_fields(r, &opg_line[OPG_LINE_STEPS], s))
		return -1;
	if (!(s->first < s->end && s->end <= s->count))
		return fail(r, r->line, "of %" PRIu64 " steps, %" PRIu64 " to %" PRIu64 " cannot be those that count", s->count,
			s->first, s->end);
	if (s->ahead < 1)
		return fail(r, r->line, "ahead must be 1 or more");
	return 0;
}

static int read_about(struct reader *r)
{
	struct word w = next_word(r);
	struct opg_about about = {intern(r, w.text, w.len), arena_strdup(r->arena, r->at)};

	if (!w.len)
		return fail(r, w.text, "about what?");
	VEC_PUSH(&r->g->about, r->arena, about);
	return 0;
}

#define READ_ITEM(r, line, type, vec)                                              \
	do {                                                                       \
		type item_ = {0};                                                  \
		if (read_number((r), (line)->word, (r)->g->vec.n) || read_fields((r), (line), &item_)) \
			return -1;                                                 \
		VEC_PUSH(&(r)->g->vec, (r)->arena, item_);                         \
	} while (0)

static int read_thing(struct reader *r, int what)
{
	const struct opg_line *line = &opg_line[what];

	switch (what) {
	case OPG_LINE_STEPS:
		return read_steps(r);
	case OPG_LINE_RESOURCE:
		READ_ITEM(r, line, struct opg_resource, resources);
		if (!(r->g->resources.at[r->g->resources.n - 1].rate > 0))
			return fail(r, r->line, "a rate must be above 0");
		break;
	case OPG_LINE_MEMORY:
		READ_ITEM(r, line, struct opg_memory, memories);
		break;
	case OPG_LINE_DEVICE:
		READ_ITEM(r, line, struct opg_device, devices);
		break;
	case OPG_LINE_UNIT:
		READ_ITEM(r, line, struct opg_unit, units);
		break;
	case OPG_LINE_BUFFER:
		READ_ITEM(r, line, struct opg_buffer, buffers);
		if (!r->g->buffers.at[r->g->buffers.n - 1].bytes)
			return fail(r, r->line, "a buffer of no bytes");
		break;
	}
	return 0;
}

static int check_place(const struct reader *r, const char *key, int buffer, uint64_t at)
{
	if (buffer != OPG_NONE && at >= r->g->buffers.at[buffer].bytes)
		return fail(r, r->line, "%s=%" PRIu64 " lies behind the end of buffer %d", key, at, buffer);
	return 0;
}

static int check_op(const struct reader *r, const struct opg_op *o)
{
	if (o->amount > 0 && o->n_hops == 0 && !(o->cap > 0))
		return fail(r, r->line, "what moves needs a path or a cap");
	if (o->kind == OPG_KERNEL && o->unit == OPG_NONE)
		return fail(r, r->line, "a kernel needs the unit of its device");
	return check_place(r, "at", o->from, o->at) || check_place(r, "into", o->to, o->into) ? -1 : 0;
}

static int read_op(struct reader *r, enum opg_kind kind)
{
	struct opg *g = r->g;
	struct opg_op o = {.kind = kind,
		.step = (int)g->step_end.n,
		.unit = OPG_NONE,
		.stream = OPG_NONE,
		.charge = OPG_NONE,
		.from = OPG_NONE,
		.to = OPG_NONE,
		.via = OPG_NONE,
		.device = OPG_NONE,
		.layer = OPG_NONE,
		.dtype = "-",
		.type = "-",
		.group = "-"};

	if (!r->steps)
		return fail(r, r->line, "an operation above the line 'steps'");
	if (g->step_end.n == g->steps.count)
		return fail(r, r->line, "an operation behind the last step");
	if (read_number(r, opg_kind_names[kind], g->ops.n) || read_fields(r, &opg_op_line[kind], &o) || check_op(r, &o))
		return -1;
	if (kind == OPG_STEP)
		VEC_PUSH(&g->step_end, r->arena, (uint32_t)g->ops.n);
	VEC_PUSH(&g->ops, r->arena, o);
	return 0;
}

static int read_end(struct reader *r)
{
	uint64_t n;
	struct word w = next_word(r);

	if (read_count(r, "end", w.text, w.len, UINT32_MAX, &n))
		return -1;
	if (n != r->g->ops.n)
		return fail(r, w.text, "the file should hold %" PRIu64 " operations and holds %zu", n, r->g->ops.n);
	if (!r->steps || r->g->step_end.n != r->g->steps.count)
		return fail(r, r->line, "the file should hold %" PRIu64 " steps and holds %zu", r->g->steps.count,
			r->g->step_end.n);
	r->ended = true;
	return 0;
}

static int unknown_line(const struct reader *r, const char *word)
{
	struct suggest s;
	char near[128];

	suggest_init(&s, word);
	for (size_t i = 0; i < OPG_LINE_N; i++)
		suggest_offer(&s, opg_line[i].word);
	for (size_t i = 0; i < OPG_KIND_N; i++)
		suggest_offer(&s, opg_op_line[i].word);
	return fail(r, word, "unknown line '%.40s'%s", word, suggest_text(&s, near, sizeof(near)));
}

static int read_line(struct reader *r)
{
	struct word w = next_word(r);

	if (r->ended)
		return fail(r, w.text, "a line behind the end");
	for (int i = 0; i < OPG_KIND_N; i++)
		if (strcmp(w.text, opg_op_line[i].word) == 0)
			return read_op(r, (enum opg_kind)i);
	for (int i = 0; i < OPG_LINE_N; i++)
		if (strcmp(w.text, opg_line[i].word) == 0)
			return read_thing(r, i);
	if (strcmp(w.text, "about") == 0)
		return read_about(r);
	return strcmp(w.text, "end") == 0 ? read_end(r) : unknown_line(r, w.text);
}

static int read_version(struct reader *r)
{
	struct word w = next_word(r), version = next_word(r);

	if (strcmp(w.text, "opg") != 0)
		return fail(r, w.text, "this is no operation graph: it does not begin with 'opg %d'", OPG_VERSION);
	if (strcmp(version.text, "1") != 0)
		return fail(r, version.text, "version '%.20s' of operation graphs; this program reads version %d", version.text,
			OPG_VERSION);
	return 0;
}

static int read_lines(struct reader *r)
{
	char *text;
	size_t len;
	bool begun = false;
	int more;

	while ((more = lines_next(&r->lines, &text, &len, r->err)) > 0) {
		r->line = r->at = text;
		if (begun && text[0] != '#' && text[strspn(text, " ")] && read_line(r))
			return -1;
		if (!begun && read_version(r))
			return -1;
		begun = true;
	}
	if (more < 0)
		return -1;
	r->line = r->at = "";
	return r->ended ? 0 : fail(r, r->line, "the file ends before the line 'end'");
}

int opg_read(const char *path, struct arena *a, struct opg **out, struct err *err)
{
	struct reader r = {.path = path, .g = arena_new(a, struct opg), .arena = a, .err = err};

	intern_init(&r.names, a);
	if (lines_open(&r.lines, path, MAX_LINE, err))
		return -1;
	int rc = read_lines(&r);
	lines_close(&r.lines);
	*out = r.g;
	return rc;
}
