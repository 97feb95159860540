/*
 * otr_write.c - native trace files: records into chunks, chunks into the file.
 *
 *	put ──> coder ──> raw ──(full)──> zstd ──> PATH.PID.part ──(commit: index, tail, rename)──> PATH
 */
#include <errno.h>
#include <zstd.h>

#include "base/file.h"
#include "sim/trace/otr_code.h"

#define LEVEL 3

struct chunk {
	uint64_t at, first_record;
};

struct otr_writer {
	const char *path;
	struct file_out out;
	struct arena *arena;
	struct otr_info info;
	struct otr_coder coder;
	bool failed;   /* a record was not taken, or not written */
	uint64_t at;   /* bytes written */
	ZSTD_CCtx *zstd;
	struct otr_bytes raw, block; /* the chunk at hand; a block as it is written */
	uint64_t n_records, n_accesses, hash;
	uint64_t chunk_first, chunk_accesses; /* of the chunk at hand: its first record, its accesses */
	struct {
		VEC(struct chunk);
	} chunks;
};

static int wrong(const struct otr_writer *w, struct err *err, enum err_code code, const char *msg)
{
	const struct err_pos pos = {w->path, 0, 0};

	return err_at(err, code, &pos, "cannot be written: %s", msg);
}

static int write_bytes(struct otr_writer *w, const unsigned char *p, size_t n, struct err *err)
{
	w->at += n;
	return fwrite(p, 1, n, w->out.to) == n ? 0 : wrong(w, err, ERR_IO, strerror(errno));
}

static int write_block(struct otr_writer *w, const char *letters, const struct otr_bytes *raw, struct err *err)
{
	struct otr_bytes *b = &w->block;
	size_t bound = ZSTD_compressBound(raw->n);

	b->n = 0;
	VEC_RESERVE(b, w->arena, OTR_BLOCK_HEAD + bound);
	size_t n = ZSTD_compress2(w->zstd, b->at + OTR_BLOCK_HEAD, bound, raw->at, raw->n);
	if (ZSTD_isError(n))
		return wrong(w, err, ERR_IO, ZSTD_getErrorName(n));
	memcpy(b->at, letters, 4);
	b->n = 4;
	otr_put_u32(b, w->arena, (uint32_t)n);
	return write_bytes(w, b->at, OTR_BLOCK_HEAD + n, err);
}

static int flush_chunk(struct otr_writer *w, struct err *err)
{
	const struct chunk chunk = {w->at, w->chunk_first};

	if (w->raw.n == 0)
		return 0;
	VEC_PUSH(&w->chunks, w->arena, chunk);
	if (write_block(w, "RECS", &w->raw, err))
		return -1;
	w->raw.n = 0;
	w->chunk_first = w->n_records;
	w->chunk_accesses = 0;
	otr_coder_reset(&w->coder);
	return 0;
}

static int begin(struct otr_writer *w, struct err *err)
{
	struct otr_bytes head = {0};

	if (otr_encode_info(&w->info, w->arena, &head, w->coder.fault))
		return wrong(w, err, ERR_INPUT, arena_printf(w->arena, "it cannot hold %s", w->coder.fault));
	w->hash = otr_hash_info(&head);
	w->zstd = ZSTD_createCCtx();
	if (!w->zstd)
		return err_set(err, ERR_NOMEM, "out of memory");
	ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, LEVEL);
	ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_checksumFlag, 1);
	if (file_out_open(&w->out, w->path, err))
		return -1;
	memcpy(w->raw.at, OTR_MAGIC, 8);
	w->raw.n = 8;
	otr_put_u32(&w->raw, w->arena, OTR_VERSION);
	if (write_bytes(w, w->raw.at, w->raw.n, err) || write_block(w, "HEAD", &head, err))
		return -1;
	w->raw.n = 0;
	return 0;
}

static struct otr_info copy_info(const struct otr_info *info, struct arena *a)
{
	struct otr_info copy = *info;

	copy.model = arena_strdup(a, info->model);
	copy.source = arena_strdup(a, info->source);
	copy.licence = arena_strdup(a, info->licence);
	copy.note = arena_strdup(a, info->note);
	copy.layer = arena_array(a, struct otr_layer, info->n_layer);
	if (info->n_layer)
		memcpy(copy.layer, info->layer, info->n_layer * sizeof(*copy.layer));
	return copy;
}

int otr_create(const char *path, const struct otr_info *info, struct arena *a, struct otr_writer **out, struct err *err)
{
	struct otr_writer *w = arena_new(a, struct otr_writer);

	*w = (struct otr_writer){
		.path = arena_strdup(a, path), .arena = a, .info = copy_info(info, a)};
	otr_coder_init(&w->coder, &w->info, a);
	VEC_RESERVE(&w->raw, a, OTR_CHUNK_FULL * 2);
	if (begin(w, err)) {
		otr_abort(w);
		return -1;
	}
	*out = w;
	return 0;
}

/* A record was encoded (or not: rc), of n_accesses. */
static int took(struct otr_writer *w, int rc, uint64_t n_accesses, struct err *err)
{
	const struct err_pos pos = {w->path, 0, 0};

	w->failed = true;
	if (rc)
		return err_at(err, ERR_INPUT, &pos, "cannot be written: it cannot hold %s, in record %llu", w->coder.fault,
			(unsigned long long)w->n_records);
	if (w->raw.n > OTR_CHUNK_MAX)
		return err_at(err, ERR_INPUT, &pos, "cannot be written: it cannot hold a record of more than %d MiB, record %llu",
			OTR_CHUNK_MAX >> 20, (unsigned long long)w->n_records);
	w->n_records++;
	w->n_accesses += n_accesses;
	w->chunk_accesses += n_accesses;
	if ((w->raw.n >= OTR_CHUNK_FULL || w->chunk_accesses >= OTR_CHUNK_ACCESSES) && flush_chunk(w, err))
		return -1;
	w->failed = false;
	return 0;
}

int otr_put_step(struct otr_writer *w, const struct trace_step *step, struct err *err)
{
	if (w->info.kind != OTR_STEPS)
		BUG("a step for a file of requests");
	w->hash = otr_hash_step(w->hash, step);
	return took(w, otr_encode_step(&w->coder, step, &w->raw), step->n_access, err);
}

int otr_put_request(struct otr_writer *w, const struct otr_request *r, struct err *err)
{
	if (w->info.kind != OTR_REQUESTS)
		BUG("a request for a file of steps");
	w->hash = otr_hash_request(w->hash, r);
	return took(w, otr_encode_request(&w->coder, r, &w->raw), 0, err);
}

static int write_index(struct otr_writer *w, struct err *err)
{
	uint64_t at = w->at;

	otr_put_u64(&w->raw, w->arena, w->n_records);
	otr_put_u64(&w->raw, w->arena, w->n_accesses);
	otr_put_u64(&w->raw, w->arena, w->hash);
	otr_put_u32(&w->raw, w->arena, (uint32_t)w->chunks.n);
	for (size_t i = 0; i < w->chunks.n; i++) {
		otr_put_u64(&w->raw, w->arena, w->chunks.at[i].at);
		otr_put_u64(&w->raw, w->arena, w->chunks.at[i].first_record);
	}
	if (write_block(w, "INDX", &w->raw, err))
		return -1;
	w->raw.n = 0;
	otr_put_u64(&w->raw, w->arena, at);
	memcpy(w->raw.at + 8, OTR_TAIL_MAGIC, 8);
	return write_bytes(w, w->raw.at, OTR_TAIL, err);
}

static int finish(struct otr_writer *w, struct err *err)
{
	if (w->failed)
		return wrong(w, err, ERR_IO, "not all records could be taken");
	return flush_chunk(w, err) || write_index(w, err) ? -1 : file_out_commit(&w->out, err);
}

int otr_commit(struct otr_writer *w, struct err *err)
{
	int rc = finish(w, err);

	otr_abort(w);
	return rc;
}

void otr_abort(struct otr_writer *w)
{
	if (!w)
		return;
	file_out_abort(&w->out);
	ZSTD_freeCCtx(w->zstd);
	w->zstd = NULL;
}
