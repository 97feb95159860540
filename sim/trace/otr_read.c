/*
 * otr_read.c - native trace files: the index, one chunk at a time, its records.
 *
 * Nothing a file says is taken for true: a block must lie inside the file and its contents be no larger than the format
 * allows, every chunk must have exactly the records that the index says.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "sim/trace/otr_code.h"

#define NO_CHUNK UINT32_MAX

struct chunk {
	uint64_t at, first_record;
};

struct otr_reader {
	const char *path;
	struct arena *arena;
	struct otr_info info;
	struct otr_coder coder;
	int fd;
	uint64_t size; /* of the file */
	ZSTD_DCtx *zstd;
	struct otr_bytes frame, raw; /* a block's */
	struct chunk *chunk;         /* n_chunks, and an end: where the index begins, n_records */
	uint32_t n_chunks;
	uint64_t n_records, n_accesses, hash;

	uint64_t next;         /* record that the next call gives */
	uint32_t at_chunk;     /* in raw; NO_CHUNK: none */
	uint64_t at_record;    /* that input is at */
	struct otr_input input;
};

static int wrong(const struct otr_reader *r, struct err *err, uint64_t at, const char *fmt, ...) PRINTF_LIKE(4, 5);

static int wrong(const struct otr_reader *r, struct err *err, uint64_t at, const char *fmt, ...)
{
	const struct err_pos pos = {r->path, 0, 0};
	char msg[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	return err_at(err, ERR_INPUT, &pos, "%s at byte %" PRIu64, msg, at);
}

static int read_at(struct otr_reader *r, uint64_t at, unsigned char *to, size_t n, struct err *err)
{
	const struct err_pos pos = {r->path, 0, 0};

	for (size_t done = 0; done < n;) {
		ssize_t got = pread(r->fd, to + done, n - done, (off_t)(at + done));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_at(err, ERR_IO, &pos, "cannot be read: %s at byte %" PRIu64, strerror(errno), at + done);
		if (got == 0)
			return err_at(err, ERR_IO, &pos, "was cut off while it was read, at byte %" PRIu64, at + done);
		done += (size_t)got;
	}
	return 0;
}

/* The block at `at`, which must end before `end`, into r->raw; its contents are at most `limit`. *next: what lies behind it. */
static int read_block(struct otr_reader *r, uint64_t at, uint64_t end, const char *letters, uint64_t limit, uint64_t *next,
	struct err *err)
{
	unsigned char head[OTR_BLOCK_HEAD];
	struct otr_input in = {head + 4, head + OTR_BLOCK_HEAD, false};

	if (at > end || end - at < OTR_BLOCK_HEAD)
		return wrong(r, err, at, "no room for a block %s", letters);
	if (read_at(r, at, head, sizeof(head), err))
		return -1;
	if (memcmp(head, letters, 4))
		return wrong(r, err, at, "no block %s", letters);
	uint32_t n = otr_get_u32(&in);
	if (n > end - at - OTR_BLOCK_HEAD)
		return wrong(r, err, at, "a block %s of %u bytes, more than there is room for,", letters, n);
	r->frame.n = r->raw.n = 0;
	VEC_RESERVE(&r->frame, r->arena, n);
	if (read_at(r, at + OTR_BLOCK_HEAD, r->frame.at, n, err))
		return -1;
	unsigned long long size = ZSTD_getFrameContentSize(r->frame.at, n);
	if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN)
		return wrong(r, err, at, "a block %s that is no zstd frame", letters);
	if (size > limit)
		return wrong(r, err, at, "a block %s with contents of %llu bytes, more than the %" PRIu64 " allowed,", letters,
			size, limit);
	VEC_RESERVE(&r->raw, r->arena, (size_t)size);
	size_t got = ZSTD_decompressDCtx(r->zstd, r->raw.at, (size_t)size, r->frame.at, n);
	if (ZSTD_isError(got) || got != size)
		return wrong(r, err, at, "a block %s that is damaged (%s)", letters,
			ZSTD_isError(got) ? ZSTD_getErrorName(got) : "too short");
	r->raw.n = (size_t)size;
	*next = at + OTR_BLOCK_HEAD + n;
	return 0;
}

static int read_head(struct otr_reader *r, uint64_t *next, struct err *err)
{
	if (read_block(r, OTR_HEAD_AT, r->size - OTR_TAIL, "HEAD", OTR_HEAD_MAX, next, err))
		return -1;
	struct otr_input in = {r->raw.at, r->raw.at + r->raw.n, false};
	if (otr_decode_info(&in, r->arena, &r->info, r->coder.fault))
		return wrong(r, err, OTR_HEAD_AT, "%s", r->coder.fault);
	return 0;
}

/* The index begins at `at`; chunks lie from `begin` to there. */
static int read_index(struct otr_reader *r, uint64_t begin, uint64_t at, struct err *err)
{
	uint64_t next, end = r->size - OTR_TAIL;

	/* A chunk's row is no longer than its block, so an index is no longer than its file. */
	if (read_block(r, at, end, "INDX", r->size + OTR_INDEX_HEAD, &next, err))
		return -1;
	struct otr_input in = {r->raw.at, r->raw.at + r->raw.n, false};
	r->n_records = otr_get_u64(&in);
	r->n_accesses = otr_get_u64(&in);
	r->hash = otr_get_u64(&in);
	r->n_chunks = otr_get_u32(&in);
	if (in.bad || next != end || r->raw.n != OTR_INDEX_HEAD + (uint64_t)r->n_chunks * OTR_INDEX_ROW ||
		r->n_chunks == NO_CHUNK)
		return wrong(r, err, at, "an index of the wrong length");
	if ((r->n_chunks == 0) != (r->n_records == 0))
		return wrong(r, err, at, "an index of %u chunks with %" PRIu64 " records", r->n_chunks, r->n_records);
	r->chunk = arena_array(r->arena, struct chunk, (size_t)r->n_chunks + 1);
	for (uint32_t i = 0; i < r->n_chunks; i++) {
		struct chunk *c = &r->chunk[i];
		c->at = otr_get_u64(&in);
		c->first_record = otr_get_u64(&in);
		if (c->at < begin || c->at >= at)
			return wrong(r, err, at, "an index whose chunk %u is at %" PRIu64 ", out of place,", i, c->at);
		if (i ? c->first_record <= c[-1].first_record : c->first_record > 0)
			return wrong(r, err, at, "an index whose chunk %u begins with record %" PRIu64 ", out of order,", i,
				c->first_record);
		begin = c->at + OTR_BLOCK_HEAD;
	}
	r->chunk[r->n_chunks] = (struct chunk){at, r->n_records};
	if (r->n_chunks && r->chunk[r->n_chunks - 1].first_record >= r->n_records)
		return wrong(r, err, at, "an index of fewer records than its chunks have");
	return 0;
}

static int check_ends(struct otr_reader *r, uint64_t *index_at, struct err *err)
{
	unsigned char head[OTR_HEAD_AT] = {0}, tail[OTR_TAIL];
	size_t n = r->size < sizeof(head) ? (size_t)r->size : sizeof(head);

	if (read_at(r, 0, head, n, err))
		return -1;
	if (memcmp(head, OTR_MAGIC, n < 8 ? n : 8) || n < 4)
		return wrong(r, err, 0, "is no native trace: no magic number");
	struct otr_input in = {head + 8, head + sizeof(head), false};
	uint32_t version = otr_get_u32(&in);
	if (n == sizeof(head) && version != OTR_VERSION)
		return wrong(r, err, 8, "is of version %u%s; this program reads version %d;", version,
			version > OTR_VERSION ? ", newer than this program" : "", OTR_VERSION);
	if (r->size < OTR_HEAD_AT + OTR_TAIL)
		return wrong(r, err, r->size, "is cut off");
	if (read_at(r, r->size - OTR_TAIL, tail, sizeof(tail), err))
		return -1;
	if (memcmp(tail + 8, OTR_TAIL_MAGIC, 8))
		return wrong(r, err, r->size, "is cut off: it has no end");
	in = (struct otr_input){tail, tail + 8, false};
	*index_at = otr_get_u64(&in);
	return 0;
}

static int begin(struct otr_reader *r, struct err *err)
{
	const struct err_pos pos = {r->path, 0, 0};
	struct stat st;
	uint64_t index_at = 0, chunks_at = 0;

	r->fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (r->fd < 0)
		return err_at(err, ERR_INPUT, &pos, "cannot be opened: %s", strerror(errno));
	if (fstat(r->fd, &st))
		return err_at(err, ERR_IO, &pos, "cannot be read: %s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_at(err, ERR_INPUT, &pos, "is no regular file");
	r->size = (uint64_t)st.st_size;
	r->zstd = ZSTD_createDCtx();
	if (!r->zstd)
		return err_set(err, ERR_NOMEM, "out of memory");
	if (check_ends(r, &index_at, err) || read_head(r, &chunks_at, err) || read_index(r, chunks_at, index_at, err))
		return -1;
	otr_coder_init(&r->coder, &r->info, r->arena);
	return 0;
}

int otr_open(const char *path, struct arena *a, struct otr_reader **out, struct err *err)
{
	struct otr_reader *r = arena_new(a, struct otr_reader);

	*r = (struct otr_reader){.path = arena_strdup(a, path), .arena = a, .fd = -1, .at_chunk = NO_CHUNK};
	if (begin(r, err)) {
		otr_close(r);
		return -1;
	}
	*out = r;
	return 0;
}

void otr_close(struct otr_reader *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	ZSTD_freeDCtx(r->zstd);
	r->fd = -1;
	r->zstd = NULL;
}

const struct otr_info *otr_info(const struct otr_reader *r)
{
	return &r->info;
}

uint64_t otr_n_records(const struct otr_reader *r)
{
	return r->n_records;
}

uint64_t otr_n_accesses(const struct otr_reader *r)
{
	return r->n_accesses;
}

uint64_t otr_file_bytes(const struct otr_reader *r)
{
	return r->size;
}

uint64_t otr_hash(const struct otr_reader *r)
{
	return r->hash;
}

int otr_seek(struct otr_reader *r, uint64_t i, struct err *err)
{
	const struct err_pos pos = {r->path, 0, 0};

	if (i > r->n_records)
		return err_at(err, ERR_INPUT, &pos, "has no record %" PRIu64 ", only %" PRIu64, i, r->n_records);
	r->next = i;
	return 0;
}

/* The chunk that holds this record. */
static uint32_t find_chunk(const struct otr_reader *r, uint64_t record)
{
	uint32_t low = 0, high = r->n_chunks;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (r->chunk[middle].first_record <= record)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static int enter_chunk(struct otr_reader *r, uint32_t i, struct err *err)
{
	uint64_t next;

	r->at_chunk = NO_CHUNK;
	if (read_block(r, r->chunk[i].at, r->chunk[i + 1].at, "RECS", OTR_CHUNK_MAX, &next, err))
		return -1;
	otr_coder_reset(&r->coder);
	r->input = (struct otr_input){r->raw.at, r->raw.at + r->raw.n, false};
	r->at_record = r->chunk[i].first_record;
	r->at_chunk = i;
	return 0;
}

/* Decodes the record that input is at into *record. */
static int decode(struct otr_reader *r, void *record, struct err *err)
{
	const struct chunk *c = &r->chunk[r->at_chunk];
	int rc = r->info.kind == OTR_STEPS ? otr_decode_step(&r->coder, &r->input, record) :
					     otr_decode_request(&r->coder, &r->input, record);

	if (rc) {
		r->at_chunk = NO_CHUNK;
		return wrong(r, err, c->at, "record %" PRIu64 " has %s in the chunk", r->at_record, r->coder.fault);
	}
	r->at_record++;
	if (r->at_record == c[1].first_record && r->input.at != r->input.end)
		return wrong(r, err, c->at, "a chunk of more than its %" PRIu64 " records",
			c[1].first_record - c->first_record);
	return 0;
}

static int next(struct otr_reader *r, enum otr_kind kind, void *record, struct err *err)
{
	if (r->info.kind != kind)
		BUG("a file of records of another kind");
	if (r->next >= r->n_records)
		return 0;
	if (r->at_chunk == NO_CHUNK || r->next < r->at_record || r->next >= r->chunk[r->at_chunk + 1].first_record) {
		if (enter_chunk(r, find_chunk(r, r->next), err))
			return -1;
	}
	/* Those that a seek went over are decoded all the same: the next ones are guessed from them. */
	do {
		if (decode(r, record, err))
			return -1;
	} while (r->at_record <= r->next);
	r->next++;
	return 1;
}

int otr_next_step(struct otr_reader *r, struct trace_step *step, struct err *err)
{
	return next(r, OTR_STEPS, step, err);
}

int otr_next_request(struct otr_reader *r, struct otr_request *request, struct err *err)
{
	return next(r, OTR_REQUESTS, request, err);
}
