/*
 * gguf.c - reads a GGUF header through a window of the file.
 *
 * pread and not mmap: a file that shrinks while it is read must give a message, not SIGBUS.
 */
#include "models/gguf.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/intern.h"
#include "base/utf8.h"
#include "base/vec.h"

#define WINDOW_BYTES (64 << 10)
/* Headers of published files have 13 MB at most (vocabularies of 262144 words). The limits end the walk over
   a file whose counts are nonsense, however large it is. */
#define MAX_HEADER_BYTES (UINT64_C(256) << 20)
#define MAX_TEXT_BYTES (16 << 20)
#define MAX_NAME_BYTES 65535 /* docs/gguf.md, of keys */
#define MAX_VALUES (1 << 16)
#define MAX_TENSORS (1 << 20)
#define MAX_ELEMENTS (UINT64_C(1) << 50)
/* The least that a key with its value, and a tensor, can take. */
#define MIN_VALUE_BYTES (8 + 1 + 4 + 1)
#define MIN_TENSOR_BYTES (8 + 1 + 4 + 4 + 8)
#define DEFAULT_ALIGNMENT 32

static const unsigned char type_bytes[GGUF_TYPE_N] = {
	[GGUF_U8] = 1,
	[GGUF_I8] = 1,
	[GGUF_U16] = 2,
	[GGUF_I16] = 2,
	[GGUF_U32] = 4,
	[GGUF_I32] = 4,
	[GGUF_F32] = 4,
	[GGUF_BOOL] = 1,
	[GGUF_U64] = 8,
	[GGUF_I64] = 8,
	[GGUF_F64] = 8,
};

struct cursor {
	struct gguf *g;
	uint64_t at;
};

int gguf_fault(const struct gguf *g, uint64_t at, struct err *err, const char *fmt, ...)
{
	struct err_pos pos = {.file = g->path};
	char msg[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	return err_at(err, ERR_INPUT, &pos, "%s at byte %" PRIu64, msg, at);
}

/* ---- bytes ---- */

/* n bytes of the file, which are known to be there. */
static int read_bytes(struct gguf *g, uint64_t at, unsigned char *to, size_t n, struct err *err)
{
	struct err_pos pos = {.file = g->path};

	for (size_t have = 0; have < n;) {
		ssize_t got = pread(g->fd, to + have, n - have, (off_t)(at + have));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_at(err, ERR_IO, &pos, "cannot be read: %s at byte %" PRIu64,
				strerror(errno), at + have);
		if (!got)
			return err_at(err, ERR_IO, &pos,
				"got shorter while it was read: ends at byte %" PRIu64, at + have);
		have += (size_t)got;
	}
	return 0;
}

/* Points at n <= WINDOW_BYTES bytes, which are known to be there; until the next call. NULL: error. */
static const unsigned char *peek(struct gguf *g, uint64_t at, size_t n, struct err *err)
{
	size_t want;

	if (g->memory)
		return g->memory + at;
	if (at >= g->window_at && at - g->window_at <= g->window_n && n <= g->window_n - (at - g->window_at))
		return g->window + (at - g->window_at);
	want = g->size - at < WINDOW_BYTES ? (size_t)(g->size - at) : WINDOW_BYTES;
	g->window_n = 0;
	if (read_bytes(g, at, g->window, want, err))
		return NULL;
	g->window_at = at;
	g->window_n = want;
	return g->window;
}

/* Are n more bytes there? */
static int need(const struct cursor *c, uint64_t n, const char *what, struct err *err)
{
	if (n > c->g->size - c->at)
		return gguf_fault(c->g, c->g->size, err, "ends in the middle of %s", what);
	if (n > MAX_HEADER_BYTES || c->at > MAX_HEADER_BYTES - n)
		return gguf_fault(c->g, c->at, err, "has a header of more than 256 MiB: %s", what);
	return 0;
}

static uint64_t little_endian(const unsigned char *p, size_t n)
{
	uint64_t v = 0;

	for (size_t i = n; i--;)
		v = v << 8 | p[i];
	return v;
}

static int get_bits(struct cursor *c, size_t n, const char *what, uint64_t *out, struct err *err)
{
	const unsigned char *p;

	if (need(c, n, what, err))
		return -1;
	p = peek(c->g, c->at, n, err);
	if (!p)
		return -1;
	*out = little_endian(p, n);
	c->at += n;
	return 0;
}

static int get_u32(struct cursor *c, const char *what, uint32_t *out, struct err *err)
{
	uint64_t v;

	if (get_bits(c, 4, what, &v, err))
		return -1;
	*out = (uint32_t)v;
	return 0;
}

static int get_u64(struct cursor *c, const char *what, uint64_t *out, struct err *err)
{
	return get_bits(c, 8, what, out, err);
}

/* Bytes of s before the first that is no UTF-8. Most text is ASCII: eight at a time. */
static size_t utf8_prefix(const char *s, size_t n)
{
	size_t i = 0;

	while (i < n) {
		uint32_t cp;
		uint64_t eight;
		size_t len;

		if (n - i >= 8) {
			memcpy(&eight, s + i, 8);
			if (!(eight & UINT64_C(0x8080808080808080))) {
				i += 8;
				continue;
			}
		}
		len = utf8_decode(s + i, n - i, &cp);
		if (!len)
			return i;
		i += len;
	}
	return n;
}

/* A string of at most max bytes. *text is the window's, without a NUL behind, unless it is longer than that:
   then the arena's. */
static int get_text(
	struct cursor *c, size_t max, const char *what, const char **text, size_t *len, struct err *err)
{
	struct gguf *g = c->g;
	uint64_t n, at = c->at;
	size_t good;

	if (get_u64(c, what, &n, err))
		return -1;
	if (n > g->size - c->at)
		return gguf_fault(g, at, err,
			"%s has a length of %" PRIu64 ", the rest of the file has %" PRIu64, what, n,
			g->size - c->at);
	if (n > max)
		return gguf_fault(g, at, err, "%s has a length of %" PRIu64 ", more than %zu", what, n, max);
	if (need(c, n, what, err))
		return -1;
	if (n <= WINDOW_BYTES || g->memory) {
		*text = (const char *)peek(g, c->at, (size_t)n, err);
		if (!*text)
			return -1;
	} else {
		unsigned char *copy = arena_alloc(g->arena, (size_t)n);

		if (read_bytes(g, c->at, copy, (size_t)n, err))
			return -1;
		*text = (const char *)copy;
	}
	good = utf8_prefix(*text, (size_t)n);
	if (good < n)
		return gguf_fault(g, c->at + good, err, "%s is not UTF-8", what);
	*len = (size_t)n;
	c->at += n;
	return 0;
}

/* Keys and names end up in messages and tables. */
static int check_name(const struct cursor *c, const char *s, size_t len, const char *what, struct err *err)
{
	uint64_t at = c->at - len;
	uint32_t cp;

	if (!len)
		return gguf_fault(c->g, at, err, "%s is empty", what);
	for (size_t i = 0; i < len;) {
		size_t n = utf8_decode(s + i, len - i, &cp);

		if (cp < 0x20 || (cp >= 0x7f && cp < 0xa0))
			return gguf_fault(c->g, at + i, err, "%s has a control character", what);
		i += n;
	}
	return 0;
}

/* ---- values ---- */

static bool is_signed(enum gguf_type type)
{
	return type == GGUF_I8 || type == GGUF_I16 || type == GGUF_I32 || type == GGUF_I64;
}

static void decode(struct gguf_scalar *out, enum gguf_type type, const unsigned char *p)
{
	size_t n = type_bytes[type];
	uint64_t bits = little_endian(p, n);
	uint32_t half = (uint32_t)bits;
	float f;

	*out = (struct gguf_scalar){.type = type};
	if (type == GGUF_F32) {
		memcpy(&f, &half, sizeof(f));
		out->f = (double)f;
	} else if (type == GGUF_F64) {
		memcpy(&out->f, &bits, sizeof(out->f));
	} else if (type == GGUF_BOOL) {
		out->u = bits != 0;
	} else if (is_signed(type)) {
		uint64_t sign = UINT64_C(1) << (8 * n - 1);

		out->i = (int64_t)((bits ^ sign) - sign);
	} else {
		out->u = bits;
	}
}

static int get_scalar(struct cursor *c, enum gguf_type type, struct gguf_scalar *out, struct err *err)
{
	const unsigned char *p;
	const char *text;
	size_t len;

	if (type == GGUF_TEXT) {
		if (get_text(c, MAX_TEXT_BYTES, "a string", &text, &len, err))
			return -1;
		/* not arena_strndup, which ends at a NUL */
		char *copy = arena_alloc(c->g->arena, len + 1);
		memcpy(copy, text, len);
		*out = (struct gguf_scalar){.type = type, .text = copy, .len = len};
		return 0;
	}
	if (need(c, type_bytes[type], "a value", err))
		return -1;
	p = peek(c->g, c->at, type_bytes[type], err);
	if (!p)
		return -1;
	decode(out, type, p);
	c->at += type_bytes[type];
	return 0;
}

static int skip_text(struct cursor *c, uint64_t n, struct err *err)
{
	for (uint64_t i = 0; i < n; i++) {
		struct arena_mark mark = arena_mark(c->g->arena);
		const char *text;
		size_t len;

		if (get_text(c, MAX_TEXT_BYTES, "a string", &text, &len, err))
			return -1;
		if (len > WINDOW_BYTES)
			arena_rewind(c->g->arena, mark);
	}
	return 0;
}

static int get_type(struct cursor *c, const char *key, enum gguf_type *out, struct err *err)
{
	uint64_t at = c->at;
	uint32_t type;

	if (get_u32(c, "a type", &type, err))
		return -1;
	if (type >= GGUF_TYPE_N)
		return gguf_fault(c->g, at, err, "'%s' has a value of unknown type %u", key, type);
	*out = (enum gguf_type)type;
	return 0;
}

static int get_array(struct cursor *c, struct gguf_value *v, struct err *err)
{
	struct gguf *g = c->g;
	uint64_t at = c->at, count_at, each;

	if (get_type(c, v->key, &v->type, err))
		return -1;
	if (v->type == GGUF_ARRAY)
		return gguf_fault(g, at, err, "'%s' is an array of arrays, which no model uses", v->key);
	count_at = c->at;
	if (get_u64(c, "an array", &v->n, err))
		return -1;
	each = v->type == GGUF_TEXT ? 8 : type_bytes[v->type];
	if (v->n > (g->size - c->at) / each)
		return gguf_fault(g, count_at, err,
			"'%s' has %" PRIu64 " elements, more than the rest of the file holds", v->key, v->n);
	v->array = true;
	v->at = c->at;
	if (v->type == GGUF_TEXT)
		return skip_text(c, v->n, err);
	if (need(c, v->n * each, "an array", err))
		return -1;
	c->at += v->n * each;
	return 0;
}

static int get_value(struct cursor *c, struct gguf_value *v, struct err *err)
{
	struct gguf *g = c->g;
	uint64_t at = c->at;
	const char *key;
	uint32_t n;
	size_t len;

	*v = (struct gguf_value){.n = 1};
	if (get_text(c, MAX_NAME_BYTES, "a key", &key, &len, err) || check_name(c, key, len, "a key", err))
		return -1;
	n = intern_add(g->keys, key, len);
	v->key = g->keys->name[n];
	if (n != g->n_values)
		return gguf_fault(g, at, err, "key '%s' is there twice", v->key);
	if (get_type(c, v->key, &v->type, err))
		return -1;
	v->at = c->at;
	return v->type == GGUF_ARRAY ? get_array(c, v, err) : get_scalar(c, v->type, &v->scalar, err);
}

static int get_values(struct cursor *c, uint64_t count, struct err *err)
{
	struct gguf *g = c->g;
	struct {
		VEC(struct gguf_value);
	} values = {0};

	for (uint64_t i = 0; i < count; i++) {
		struct gguf_value v;

		if (get_value(c, &v, err))
			return -1;
		VEC_PUSH(&values, g->arena, v);
		g->values = values.at;
		g->n_values = values.n;
	}
	return 0;
}

static int read_alignment(struct gguf *g, struct err *err)
{
	const struct gguf_value *v = gguf_find(g, "general.alignment");

	g->alignment = DEFAULT_ALIGNMENT;
	if (!v)
		return 0;
	if (v->array || v->type != GGUF_U32)
		return gguf_fault(g, v->at, err, "'general.alignment' is no 32-bit number");
	g->alignment = v->scalar.u;
	if (!g->alignment || (g->alignment & (g->alignment - 1)))
		return gguf_fault(
			g, v->at, err, "'general.alignment' is %" PRIu64 ", no power of two", g->alignment);
	return 0;
}

/* ---- tensors ---- */

/* ggml.h, enum ggml_type: ids that stood for something once. */
static const char *removed_type(uint32_t id)
{
	static const struct {
		uint32_t id;
		const char *name;
	} removed[] = {
		{4, "q4_2"},
		{5, "q4_3"},
		{31, "q4_0_4_4"},
		{32, "q4_0_4_8"},
		{33, "q4_0_8_8"},
		{36, "iq4_nl_4_4"},
		{37, "iq4_nl_4_8"},
		{38, "iq4_nl_8_8"},
	};

	for (size_t i = 0; i < ARRAY_LEN(removed); i++) {
		if (removed[i].id == id)
			return removed[i].name;
	}
	return NULL;
}

static const struct quant_type *type_by_id(uint32_t id)
{
	const struct quant_type *t;

	for (size_t i = 0; (t = quant_at(i)) != NULL; i++) {
		if (t->ggml_id >= 0 && (uint32_t)t->ggml_id == id)
			return t;
	}
	return NULL;
}

static int get_tensor_type(struct cursor *c, struct gguf_tensor *t, struct err *err)
{
	uint64_t at = c->at;
	uint32_t id;

	if (get_u32(c, "a tensor's type", &id, err))
		return -1;
	t->type = type_by_id(id);
	if (t->type)
		return 0;
	if (removed_type(id))
		return gguf_fault(c->g, at, err, "tensor '%s' has type %u, %s, which ggml has removed",
			t->name, id, removed_type(id));
	return gguf_fault(c->g, at, err, "tensor '%s' has the unknown type %u", t->name, id);
}

static int get_shape(struct cursor *c, struct gguf_tensor *t, struct err *err)
{
	uint64_t at = c->at, n = 1;

	if (get_u32(c, "a tensor's shape", &t->n_dims, err))
		return -1;
	if (t->n_dims > ARRAY_LEN(t->dim))
		return gguf_fault(
			c->g, at, err, "tensor '%s' has %u dimensions, more than 4", t->name, t->n_dims);
	for (uint32_t i = 0; i < ARRAY_LEN(t->dim); i++) {
		t->dim[i] = 1;
		if (i < t->n_dims && get_u64(c, "a tensor's shape", &t->dim[i], err))
			return -1;
		/* each by itself as well, so that a 0 hides nothing */
		if (t->dim[i] > MAX_ELEMENTS || __builtin_mul_overflow(n, t->dim[i], &n) || n > MAX_ELEMENTS)
			return gguf_fault(c->g, at, err, "tensor '%s' has more than 2^50 elements", t->name);
	}
	t->elements = n;
	return 0;
}

static int get_tensor(struct cursor *c, struct intern *names, struct gguf_tensor *t, struct err *err)
{
	struct gguf *g = c->g;
	uint64_t type_at, offset_at;
	const char *name;
	uint32_t n;
	size_t len;

	*t = (struct gguf_tensor){.at = c->at};
	if (get_text(c, MAX_NAME_BYTES, "a tensor's name", &name, &len, err) ||
		check_name(c, name, len, "a tensor's name", err))
		return -1;
	n = intern_add(names, name, len);
	t->name = names->name[n];
	if (n != g->n_tensors)
		return gguf_fault(g, t->at, err, "tensor '%s' is there twice", t->name);
	if (get_shape(c, t, err))
		return -1;
	type_at = c->at;
	if (get_tensor_type(c, t, err))
		return -1;
	if (t->dim[0] % t->type->block_elements)
		return gguf_fault(g, type_at, err,
			"tensor '%s' has rows of %" PRIu64
			" elements, no multiple of the %u that a block of %s has",
			t->name, t->dim[0], t->type->block_elements, t->type->name);
	t->bytes = t->elements ? quant_bytes(t->type, t->dim[0], t->elements / t->dim[0]) : 0;
	offset_at = c->at;
	if (get_u64(c, "a tensor's offset", &t->offset, err))
		return -1;
	if (t->offset % g->alignment)
		return gguf_fault(g, offset_at, err,
			"tensor '%s' has offset %" PRIu64 ", no multiple of the alignment, %" PRIu64, t->name,
			t->offset, g->alignment);
	return 0;
}

static int get_tensors(struct cursor *c, uint64_t count, struct err *err)
{
	struct gguf *g = c->g;
	struct intern names;
	struct {
		VEC(struct gguf_tensor);
	} tensors = {0};

	intern_init(&names, g->arena);
	for (uint64_t i = 0; i < count; i++) {
		struct gguf_tensor t;

		if (get_tensor(c, &names, &t, err))
			return -1;
		VEC_PUSH(&tensors, g->arena, t);
		g->tensors = tensors.at;
		g->n_tensors = tensors.n;
	}
	return 0;
}

static int by_offset(const void *x, const void *y)
{
	const struct gguf_tensor *a = *(const struct gguf_tensor *const *)x;
	const struct gguf_tensor *b = *(const struct gguf_tensor *const *)y;

	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	return a->at < b->at ? -1 : 1;
}

/* Every tensor must lie in the file, and no two on one another. */
static int check_data(struct gguf *g, struct err *err)
{
	const struct gguf_tensor **order = arena_array(g->arena, const struct gguf_tensor *, g->n_tensors);
	const struct gguf_tensor *last = NULL;
	struct err_pos pos = {.file = g->path};

	for (size_t i = 0; i < g->n_tensors; i++) {
		struct gguf_tensor *t = &g->tensors[i];
		uint64_t end;

		if (__builtin_add_overflow(t->offset, g->data_at, &t->offset))
			return gguf_fault(g, t->at, err, "tensor '%s' has an offset of nearly 2^64", t->name);
		if (__builtin_add_overflow(t->offset, t->bytes, &end) || end > g->size)
			return err_at(err, ERR_INPUT, &pos,
				"tensor '%s' ends at byte %" PRIu64 ", the file has %" PRIu64, t->name, end,
				g->size);
		order[i] = t;
	}
	if (g->n_tensors)
		qsort(order, g->n_tensors, sizeof(*order), by_offset);
	for (size_t i = 0; i < g->n_tensors; i++) {
		if (!order[i]->bytes)
			continue;
		if (last && last->offset + last->bytes > order[i]->offset)
			return gguf_fault(g, order[i]->offset, err, "tensors '%s' and '%s' overlap",
				last->name, order[i]->name);
		last = order[i];
	}
	return 0;
}

/* ---- the file ---- */

static int get_version(struct cursor *c, struct err *err)
{
	struct gguf *g = c->g;
	uint64_t at = c->at;

	if (get_u32(c, "the version", &g->version, err))
		return -1;
	if (g->version && !(g->version & 0xffff))
		return gguf_fault(g, at, err, "is a big-endian file, which is not read here");
	if (g->version < 2 || g->version > 3)
		return gguf_fault(g, at, err, "is of GGUF version %u; 2 and 3 are read", g->version);
	return 0;
}

static int get_count(
	struct cursor *c, const char *what, uint64_t max, uint64_t min_bytes, uint64_t *out, struct err *err)
{
	uint64_t at = c->at;

	if (get_u64(c, "the counts", out, err))
		return -1;
	if (*out > (c->g->size - c->at) / min_bytes)
		return gguf_fault(c->g, at, err, "says that it has %" PRIu64 " %s, more than it could hold",
			*out, what);
	if (*out > max)
		return gguf_fault(c->g, at, err, "says that it has %" PRIu64 " %s, more than %" PRIu64, *out,
			what, max);
	return 0;
}

static int parse(struct gguf *g, struct err *err)
{
	struct cursor c = {.g = g};
	uint64_t n_tensors, n_values;
	const unsigned char *magic;

	g->keys = arena_new(g->arena, struct intern);
	intern_init(g->keys, g->arena);
	if (need(&c, 4, "the magic number", err))
		return -1;
	magic = peek(g, 0, 4, err);
	if (!magic)
		return -1;
	if (memcmp(magic, "GGUF", 4))
		return gguf_fault(g, 0, err, "is no GGUF file: has %02x %02x %02x %02x instead of 'GGUF'",
			magic[0], magic[1], magic[2], magic[3]);
	c.at = 4;
	if (get_version(&c, err) ||
		get_count(&c, "tensors", MAX_TENSORS, MIN_TENSOR_BYTES, &n_tensors, err) ||
		get_count(&c, "keys", MAX_VALUES, MIN_VALUE_BYTES, &n_values, err) ||
		get_values(&c, n_values, err) || read_alignment(g, err) || get_tensors(&c, n_tensors, err))
		return -1;
	g->data_at = (c.at + g->alignment - 1) / g->alignment * g->alignment;
	return check_data(g, err);
}

int gguf_open_memory(
	const void *bytes, size_t size, const char *name, struct arena *a, struct gguf *g, struct err *err)
{
	/* never NULL, which means "not in memory" */
	*g = (struct gguf){.path = name, .arena = a, .size = size, .fd = -1};
	g->memory = size ? bytes : (const unsigned char *)"";
	return parse(g, err);
}

static int open_file(struct gguf *g, struct err *err)
{
	struct err_pos pos = {.file = g->path};
	struct stat st;

	/* O_NONBLOCK: a FIFO must be refused, not waited for. */
	g->fd = open(g->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (g->fd < 0)
		return err_at(err, ERR_INPUT, &pos, "cannot be opened: %s", strerror(errno));
	if (fstat(g->fd, &st))
		return err_at(err, ERR_IO, &pos, "cannot be read: %s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_at(err, ERR_INPUT, &pos, "is no regular file");
	g->size = (uint64_t)st.st_size;
	g->window = arena_alloc(g->arena, WINDOW_BYTES);
	return parse(g, err);
}

int gguf_open(const char *path, struct arena *a, struct gguf *g, struct err *err)
{
	*g = (struct gguf){.path = arena_strdup(a, path), .arena = a, .fd = -1};
	if (!open_file(g, err))
		return 0;
	gguf_close(g);
	return -1;
}

void gguf_close(struct gguf *g)
{
	if (g->fd >= 0)
		close(g->fd);
	g->fd = -1;
}

const struct gguf_value *gguf_find(const struct gguf *g, const char *key)
{
	uint32_t n = intern_find(g->keys, key, strlen(key));

	return n < g->n_values ? &g->values[n] : NULL;
}

void gguf_walk(struct gguf_walk *w, struct gguf *g, const struct gguf_value *v)
{
	*w = (struct gguf_walk){.g = g, .type = v->type, .left = v->n, .at = v->at};
}

int gguf_next(struct gguf_walk *w, struct gguf_scalar *out, struct err *err)
{
	struct cursor c = {.g = w->g, .at = w->at};

	if (!w->left)
		return 0;
	if (get_scalar(&c, w->type, out, err))
		return -1;
	w->at = c.at;
	w->left--;
	return 1;
}
