/*
 * safetensors.c - reads the JSON of safetensors files with a walk over it (scan.h).
 *
 * Rules: huggingface/safetensors, safetensors/src/tensor.rs (SafeTensors::read_metadata, Metadata::validate).
 */
#include "models/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/intern.h"
#include "base/vec.h"
#include "models/scan.h"

#define MAX_HEADER_BYTES 100000000 /* tensor.rs, MAX_HEADER_SIZE */
#define MAX_INDEX_BYTES (100 << 20)
#define MAX_TENSORS (1 << 20)
#define MAX_ELEMENTS (UINT64_C(1) << 50)

/* tensor.rs, enum Dtype. Those that quant.c has are looked up there. */
static const struct quant_type own_types[] = {
	{.name = "bool", .ggml_id = -1, .block_elements = 1, .block_bytes = 1, .family = QUANT_CHECKPOINT},
	{.name = "u8", .ggml_id = -1, .block_elements = 1, .block_bytes = 1, .family = QUANT_CHECKPOINT},
	{.name = "u16", .ggml_id = -1, .block_elements = 1, .block_bytes = 2, .family = QUANT_CHECKPOINT},
	{.name = "u32", .ggml_id = -1, .block_elements = 1, .block_bytes = 4, .family = QUANT_CHECKPOINT},
	{.name = "u64", .ggml_id = -1, .block_elements = 1, .block_bytes = 8, .family = QUANT_CHECKPOINT},
	{.name = "c64", .ggml_id = -1, .block_elements = 1, .block_bytes = 8, .family = QUANT_CHECKPOINT},
	{.name = "f8_e5m2", .ggml_id = -1, .block_elements = 1, .block_bytes = 1, .family = QUANT_CHECKPOINT,
		.unit = QUANT_FP8},
	{.name = "f8_e8m0", .ggml_id = -1, .block_elements = 1, .block_bytes = 1, .family = QUANT_CHECKPOINT,
		.unit = QUANT_FP8},
	{.name = "f8_e4m3fnuz",
		.ggml_id = -1,
		.block_elements = 1,
		.block_bytes = 1,
		.family = QUANT_CHECKPOINT,
		.unit = QUANT_FP8},
	{.name = "f8_e5m2fnuz",
		.ggml_id = -1,
		.block_elements = 1,
		.block_bytes = 1,
		.family = QUANT_CHECKPOINT,
		.unit = QUANT_FP8},
	{.name = "f4", .ggml_id = -1, .block_elements = 2, .block_bytes = 1, .family = QUANT_CHECKPOINT},
	{.name = "f6_e2m3", .ggml_id = -1, .block_elements = 4, .block_bytes = 3, .family = QUANT_CHECKPOINT},
	{.name = "f6_e3m2", .ggml_id = -1, .block_elements = 4, .block_bytes = 3, .family = QUANT_CHECKPOINT},
};
static const char *const known_types[] = {"f32", "f16", "bf16", "f64", "i8", "i16", "i32", "i64", "f8_e4m3"};

static const struct quant_type *dtype(const char *name, size_t len)
{
	char low[16];

	if (len >= sizeof(low))
		return NULL;
	for (size_t i = 0; i < len; i++) {
		/* dtypes are written in capitals */
		if (name[i] >= 'a' && name[i] <= 'z')
			return NULL;
		low[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] - 'A' + 'a') : name[i];
	}
	low[len] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(known_types); i++) {
		if (!strcmp(known_types[i], low))
			return quant_find(low);
	}
	for (size_t i = 0; i < ARRAY_LEN(own_types); i++) {
		if (!strcmp(own_types[i].name, low))
			return &own_types[i];
	}
	return NULL;
}

static bool is(const char *key, size_t len, const char *word)
{
	return len == strlen(word) && !memcmp(key, word, len);
}

/* Names end up in messages, tables and C strings. */
static int check_name(const struct scan *s, uint64_t at, const char *name, size_t len, struct err *err)
{
	if (!len || len > 65535)
		return scan_fault(s, at, err, "has a name of %zu bytes", len);
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
			return scan_fault(s, at, err, "has a name with a control character");
	}
	return 0;
}

static int get_shape(struct scan *s, struct safetensors_tensor *t, struct err *err)
{
	uint64_t at;
	int rc;

	if (scan_begin(s, '[', err))
		return -1;
	at = scan_at(s);
	t->elements = 1;
	for (t->n_dims = 0; (rc = scan_element(s, t->n_dims, err)) > 0; t->n_dims++) {
		if (t->n_dims == SAFETENSORS_MAX_DIMS)
			return scan_fault(s, at, err, "tensor '%s' has more than %d dimensions", t->name,
				SAFETENSORS_MAX_DIMS);
		if (scan_count(s, MAX_ELEMENTS, &t->dim[t->n_dims], err))
			return -1;
		if (__builtin_mul_overflow(t->elements, t->dim[t->n_dims], &t->elements) ||
			t->elements > MAX_ELEMENTS)
			return scan_fault(s, at, err, "tensor '%s' has more than 2^50 elements", t->name);
	}
	return rc;
}

static int get_offsets(struct scan *s, const char *name, uint64_t offsets[2], struct err *err)
{
	uint64_t at = scan_at(s);
	size_t n;
	int rc;

	if (scan_begin(s, '[', err))
		return -1;
	for (n = 0; (rc = scan_element(s, n, err)) > 0; n++) {
		if (n == 2)
			break;
		if (scan_count(s, UINT64_MAX, &offsets[n], err))
			return -1;
	}
	if (rc < 0)
		return -1;
	if (rc || n != 2)
		return scan_fault(s, at, err, "tensor '%s' needs two data_offsets", name);
	return 0;
}

static int get_dtype(struct scan *s, struct safetensors_tensor *t, struct err *err)
{
	const char *text;
	uint64_t at;
	size_t len;

	scan_peek(s);
	at = scan_at(s);
	if (scan_text(s, &text, &len, err))
		return -1;
	t->type = dtype(text, len);
	if (t->type)
		return 0;
	return scan_fault(s, at, err, "tensor '%s' has the unknown dtype '%.*s'", t->name,
		len > 32 ? 32 : (int)len, text);
}

enum { HAS_DTYPE = 1, HAS_SHAPE = 2, HAS_OFFSETS = 4, HAS_ALL = 7 };

static int get_fields(struct scan *s, struct safetensors_tensor *t, uint64_t offsets[2], struct err *err)
{
	unsigned seen = 0, bit;
	uint64_t at;
	size_t len;
	const char *key;
	int rc = 0;

	scan_peek(s);
	at = scan_at(s);
	if (scan_begin(s, '{', err))
		return -1;
	for (size_t n = 0; !rc && (rc = scan_key(s, n, &key, &len, err)) > 0; n++) {
		bit = is(key, len, "dtype")	     ? HAS_DTYPE
		      : is(key, len, "shape")	     ? HAS_SHAPE
		      : is(key, len, "data_offsets") ? HAS_OFFSETS
						     : 0;
		if (seen & bit)
			return scan_fault(s, at, err, "tensor '%s' has '%.*s' twice", t->name, (int)len, key);
		seen |= bit;
		rc = bit == HAS_DTYPE	  ? get_dtype(s, t, err)
		     : bit == HAS_SHAPE	  ? get_shape(s, t, err)
		     : bit == HAS_OFFSETS ? get_offsets(s, t->name, offsets, err)
					  : scan_skip(s, err);
	}
	if (rc < 0)
		return -1;
	if (seen != HAS_ALL)
		return scan_fault(s, at, err, "tensor '%s' has no %s", t->name,
			!(seen & HAS_DTYPE)   ? "dtype"
			: !(seen & HAS_SHAPE) ? "shape"
					      : "data_offsets");
	return 0;
}

static int get_tensor(struct safetensors *st, struct scan *s, struct safetensors_tensor *t, struct err *err)
{
	const struct quant_type *type;
	uint64_t offsets[2], room = st->size - st->data_at, bytes;
	uint64_t at;

	scan_peek(s);
	at = scan_at(s);
	if (get_fields(s, t, offsets, err))
		return -1;
	type = t->type;
	if (t->elements % type->block_elements)
		return scan_fault(
			s, at, err, "tensor '%s' of %s is no whole number of bytes", t->name, type->name);
	bytes = t->elements / type->block_elements * type->block_bytes;
	if (offsets[0] > offsets[1] || offsets[1] > room) {
		struct err_pos pos = {.file = st->path};

		if (offsets[0] > offsets[1] || offsets[1] > UINT64_MAX - st->data_at)
			return scan_fault(s, at, err, "tensor '%s' has nonsensical data_offsets", t->name);
		return err_at(err, ERR_INPUT, &pos,
			"tensor '%s' ends at byte %" PRIu64 ", the file has %" PRIu64, t->name,
			st->data_at + offsets[1], st->size);
	}
	if (offsets[1] - offsets[0] != bytes)
		return scan_fault(s, at, err,
			"tensor '%s' takes %" PRIu64 " bytes, its shape and dtype need %" PRIu64, t->name,
			offsets[1] - offsets[0], bytes);
	t->begin = st->data_at + offsets[0];
	t->end = st->data_at + offsets[1];
	return 0;
}

static int get_tensors(struct safetensors *st, struct scan *s, struct err *err)
{
	struct arena *a = s->arena;
	struct intern names;
	struct {
		VEC(struct safetensors_tensor);
	} tensors = {0};
	bool metadata = false;
	const char *key;
	size_t len;
	int rc;

	intern_init(&names, a);
	if (scan_begin(s, '{', err))
		return -1;
	for (size_t n = 0; (rc = scan_key(s, n, &key, &len, err)) > 0; n++) {
		struct safetensors_tensor t = {0};
		uint64_t at = scan_at(s);
		uint32_t id;

		if (is(key, len, "__metadata__")) {
			if (metadata)
				return scan_fault(s, at, err, "has '__metadata__' twice");
			metadata = true;
			if (scan_skip(s, err))
				return -1;
			continue;
		}
		if (check_name(s, at, key, len, err))
			return -1;
		id = intern_add(&names, key, len);
		t.name = names.name[id];
		if (id != tensors.n)
			return scan_fault(s, at, err, "tensor '%s' is there twice", t.name);
		if (tensors.n == MAX_TENSORS)
			return scan_fault(s, at, err, "has more than %d tensors", MAX_TENSORS);
		if (get_tensor(st, s, &t, err))
			return -1;
		VEC_PUSH(&tensors, a, t);
	}
	st->tensors = tensors.at;
	st->n_tensors = tensors.n;
	return rc || scan_end(s, err) ? -1 : 0;
}

static int by_begin(const void *x, const void *y)
{
	const struct safetensors_tensor *a = *(const struct safetensors_tensor *const *)x;
	const struct safetensors_tensor *b = *(const struct safetensors_tensor *const *)y;

	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	return strcmp(a->name, b->name);
}

static int check_cover(const struct safetensors *st, struct arena *a, struct err *err)
{
	const struct safetensors_tensor **order =
		arena_array(a, const struct safetensors_tensor *, st->n_tensors);
	struct err_pos pos = {.file = st->path};
	uint64_t at = st->data_at;

	for (size_t i = 0; i < st->n_tensors; i++)
		order[i] = &st->tensors[i];
	if (st->n_tensors)
		qsort(order, st->n_tensors, sizeof(*order), by_begin);
	for (size_t i = 0; i < st->n_tensors; i++) {
		if (order[i]->begin < at)
			return err_at(err, ERR_INPUT, &pos, "tensors '%s' and '%s' overlap at byte %" PRIu64,
				order[i - 1]->name, order[i]->name, order[i]->begin);
		if (order[i]->begin > at)
			return err_at(err, ERR_INPUT, &pos,
				"nothing uses the bytes before tensor '%s': a hole at byte %" PRIu64,
				order[i]->name, at);
		at = order[i]->end;
	}
	if (at != st->size)
		return err_at(err, ERR_INPUT, &pos,
			"the last tensor ends at byte %" PRIu64 ", the file has %" PRIu64, at, st->size);
	return 0;
}

static int parse(struct safetensors *st, struct scan *s, struct err *err)
{
	return get_tensors(st, s, err) || check_cover(st, s->arena, err) ? -1 : 0;
}

/* From the first bytes of the file: 8, and the '{' if it has one more. */
static int header_length(struct safetensors *st, const unsigned char *first, size_t *len, struct err *err)
{
	struct err_pos pos = {.file = st->path};
	uint64_t n = 0;

	if (st->size < 9)
		return err_at(
			err, ERR_INPUT, &pos, "is no safetensors file: ends at byte %" PRIu64, st->size);
	for (int i = 8; i--;)
		n = n << 8 | first[i];
	if (n > MAX_HEADER_BYTES)
		return err_at(err, ERR_INPUT, &pos,
			"has a header of %" PRIu64
			" bytes, more than %d, or is no safetensors file at byte 0",
			n, MAX_HEADER_BYTES);
	if (n > st->size - 8)
		return err_at(err, ERR_INPUT, &pos,
			"has a header of %" PRIu64 " bytes, but ends at byte %" PRIu64, n, st->size);
	if (!n || first[8] != '{')
		return err_at(err, ERR_INPUT, &pos, "has a header that does not begin with '{' at byte 8");
	*len = (size_t)n;
	st->data_at = 8 + n;
	return 0;
}

int safetensors_open_memory(const void *bytes, size_t n, uint64_t size, const char *name, struct arena *a,
	struct safetensors *out, struct err *err)
{
	struct scan s;
	size_t len;

	*out = (struct safetensors){.path = name, .size = size};
	if (header_length(out, bytes, &len, err))
		return -1;
	if (len > n - 8)
		BUG("the header of '%s' is not all there", name);
	scan_memory(&s, (const char *)bytes + 8, len, 8, name, a);
	return parse(out, &s, err);
}

static int read_bytes(const char *path, int fd, uint64_t at, void *to, size_t n, struct err *err)
{
	struct err_pos pos = {.file = path};

	for (size_t have = 0; have < n;) {
		ssize_t got = pread(fd, (char *)to + have, n - have, (off_t)(at + have));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_at(err, ERR_IO, &pos, "cannot be read: %s", strerror(errno));
		if (!got)
			return err_at(err, ERR_IO, &pos,
				"got shorter while it was read: ends at byte %" PRIu64, at + have);
		have += (size_t)got;
	}
	return 0;
}

/* O_NONBLOCK: a FIFO must be refused, not waited for. -1: error. */
static int open_regular(const char *path, uint64_t *size, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct err_pos pos = {.file = path};
	struct stat st;

	if (fd < 0)
		return err_at(err, ERR_INPUT, &pos, "cannot be opened: %s", strerror(errno));
	if (!fstat(fd, &st) && S_ISREG(st.st_mode)) {
		*size = (uint64_t)st.st_size;
		return fd;
	}
	close(fd);
	return err_at(err, ERR_INPUT, &pos, "is no regular file");
}

static int read_open(struct safetensors *st, int fd, struct arena *a, struct err *err)
{
	unsigned char first[9] = {0};
	struct scan s;
	size_t len;

	if (read_bytes(st->path, fd, 0, first, st->size < sizeof(first) ? (size_t)st->size : sizeof(first),
		    err) ||
		header_length(st, first, &len, err))
		return -1;
	scan_file(&s, fd, 8, 8 + len, st->path, a);
	return parse(st, &s, err);
}

int safetensors_open(const char *path, struct arena *a, struct safetensors *out, struct err *err)
{
	int fd, rc;

	*out = (struct safetensors){.path = arena_strdup(a, path)};
	fd = open_regular(path, &out->size, err);
	if (fd < 0)
		return -1;
	rc = read_open(out, fd, a, err);
	close(fd);
	return rc;
}

/* ---- index ---- */

static int get_metadata(struct scan *s, struct safetensors_index *out, struct err *err)
{
	const char *key;
	size_t len;
	int rc;

	if (scan_peek(s) != '{')
		return scan_skip(s, err);
	if (scan_begin(s, '{', err))
		return -1;
	for (size_t n = 0; (rc = scan_key(s, n, &key, &len, err)) > 0; n++) {
		if (is(key, len, "total_size") ? scan_count(s, UINT64_MAX, &out->total_size, err)
					       : scan_skip(s, err))
			return -1;
	}
	return rc;
}

/* A file must lie beside the index. */
static int check_file(const struct scan *s, uint64_t at, const char *name, size_t len, struct err *err)
{
	if (check_name(s, at, name, len, err))
		return -1;
	if (memchr(name, '/', len) || is(name, len, "..") || is(name, len, "."))
		return scan_fault(s, at, err, "names the file '%.*s', which is not beside it",
			len > 64 ? 64 : (int)len, name);
	return 0;
}

/* Names of the index that were seen, as 128 bits of hash: a hundred thousand of them, of which none is needed
   again, are not worth keeping. Two names of one hash do not happen, but to who makes them, and that file is
   refused. */
struct seen {
	struct hash {
		uint64_t a, b; /* a 0: free */
	} * slot;
	size_t n, n_slots;
};

static struct hash hash_name(const char *s, size_t len)
{
	struct hash h = {len + 1, ~len};

	while (len) {
		size_t n = len < 8 ? len : 8;
		uint64_t w = 0;

		memcpy(&w, s, n);
		h.a = (h.a ^ w) * UINT64_C(0x9e3779b97f4a7c15);
		h.b = (h.b ^ w) * UINT64_C(0xc2b2ae3d27d4eb4f);
		h.a ^= h.a >> 32;
		h.b ^= h.b >> 29;
		s += n;
		len -= n;
	}
	h.a += !h.a;
	return h;
}

/* The slot of this hash, or the free one where it belongs. */
static struct hash *find_slot(const struct seen *t, struct hash h)
{
	size_t i = (h.a ^ h.a >> 32) & (t->n_slots - 1);

	while (t->slot[i].a && (t->slot[i].a != h.a || t->slot[i].b != h.b))
		i = (i + 1) & (t->n_slots - 1);
	return &t->slot[i];
}

/* false: it was there. */
static bool add_name(struct seen *t, struct arena *a, const char *name, size_t len)
{
	struct hash h = hash_name(name, len), *slot;

	if (4 * t->n >= 3 * t->n_slots) {
		struct seen old = *t;

		t->n_slots = old.n_slots ? 4 * old.n_slots : 2048;
		t->slot = arena_array(a, struct hash, t->n_slots);
		for (size_t i = 0; i < old.n_slots; i++) {
			if (old.slot[i].a)
				*find_slot(t, old.slot[i]) = old.slot[i];
		}
	}
	slot = find_slot(t, h);
	if (slot->a)
		return false;
	*slot = h;
	t->n++;
	return true;
}

static int get_map(struct scan *s, struct seen *names, struct intern *files, struct err *err)
{
	const char *key, *file, *last = NULL;
	size_t len, file_len;
	uint32_t id;
	int rc;

	if (scan_begin(s, '{', err))
		return -1;
	for (size_t n = 0; (rc = scan_key(s, n, &key, &len, err)) > 0; n++) {
		uint64_t at = scan_at(s);

		if (!add_name(names, s->arena, key, len))
			return scan_fault(
				s, at, err, "tensor '%.*s' is there twice", len > 256 ? 256 : (int)len, key);
		if (n == MAX_TENSORS)
			return scan_fault(s, at, err, "has more than %d tensors", MAX_TENSORS);
		if (scan_text(s, &file, &file_len, err))
			return -1;
		/* mostly that of the tensor before */
		if (last && is(file, file_len, last))
			continue;
		if (check_file(s, at, file, file_len, err))
			return -1;
		id = intern_add(files, file, file_len);
		last = files->name[id];
	}
	return rc;
}

static int get_index(struct scan *s, struct safetensors_index *out, struct err *err)
{
	struct seen names = {0};
	struct intern files;
	bool map = false;
	const char *key;
	size_t len;
	int rc;

	*out = (struct safetensors_index){0};
	intern_init(&files, s->arena);
	if (scan_begin(s, '{', err))
		return -1;
	for (size_t n = 0; (rc = scan_key(s, n, &key, &len, err)) > 0; n++) {
		if (is(key, len, "metadata")) {
			rc = get_metadata(s, out, err);
		} else if (is(key, len, "weight_map")) {
			if (map)
				return scan_fault(s, scan_at(s), err, "has 'weight_map' twice");
			map = true;
			rc = get_map(s, &names, &files, err);
		} else {
			rc = scan_skip(s, err);
		}
		if (rc < 0)
			return -1;
	}
	if (rc || scan_end(s, err))
		return -1;
	if (!map || !files.n)
		return scan_fault(s, scan_at(s), err, "has no 'weight_map' with tensors");
	out->n_tensors = names.n;
	out->files = files.name;
	out->n_files = files.n;
	return 0;
}

int safetensors_index_memory(const char *text, size_t len, const char *name, struct arena *a,
	struct safetensors_index *out, struct err *err)
{
	struct scan s;

	scan_memory(&s, text, len, 0, name, a);
	return get_index(&s, out, err);
}

int safetensors_index(const char *path, struct arena *a, struct safetensors_index *out, struct err *err)
{
	struct err_pos pos = {.file = path};
	uint64_t size;
	struct scan s;
	int fd = open_regular(path, &size, err), rc;

	if (fd < 0)
		return -1;
	if (size > MAX_INDEX_BYTES) {
		close(fd);
		return err_at(err, ERR_INPUT, &pos, "is larger than %d MiB", MAX_INDEX_BYTES >> 20);
	}
	scan_file(&s, fd, 0, size, arena_strdup(a, path), a);
	rc = get_index(&s, out, err);
	close(fd);
	return rc;
}
