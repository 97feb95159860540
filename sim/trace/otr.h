/*
 * otr.h - the native trace file (.otr): what trace.h streams, and requests, on disk.
 *
 *	head │ chunk │ chunk │ … │ index │ tail            a chunk: some records, one zstd frame, a checksum
 *	  │                          └ where each chunk begins and which records it holds: any record is two reads away
 *	  └ who made it, from what, under which licence; the layers it speaks of
 *
 * A file holds steps (with the accesses of each, or only those of experts) or requests, never both. A step is coded
 * against the one before it of its phase, so that what repeats costs nothing and a decode step of a model with
 * experts costs their numbers and little else. Every chunk stands alone.
 *
 * Writing is streamed: a file appears under its name when it is complete, and not at all if it never is. Reading is
 * streamed too: memory holds one chunk and the index (16 bytes a chunk), however long the file. The format itself is described in otr_code.h.
 */
#ifndef SIM_TRACE_OTR_H
#define SIM_TRACE_OTR_H

#include "sim/trace/trace.h"

enum otr_kind { OTR_STEPS, OTR_REQUESTS };

/* What the trace knows of a layer; zeros where it does not. */
struct otr_layer {
	uint32_t n_expert, n_expert_used;
	uint64_t expert_bytes; /* of one expert */
	uint64_t dense_bytes;  /* of all other weights */
};

/* The head of a file. Texts are never NULL; "" is not known. */
struct otr_info {
	enum otr_kind kind;
	const char *model;   /* whose trace it is, in the words of its source */
	const char *source;  /* repository and path, or the command that made it */
	const char *licence;
	const char *note;    /* what a reader should know: what was dropped or assumed */
	uint32_t n_layer;    /* 0: requests, or layers unknown */
	struct otr_layer *layer;
	uint32_t block_tokens;            /* OTR_REQUESTS: tokens of a hashed block; 0: no hashes */
	struct trace_workload workload;   /* OTR_STEPS: what was run; batch 0: not known */
	bool experts_only;                /* OTR_STEPS: other accesses were not recorded */
};

struct otr_request {
	uint64_t arrival_ns;
	uint64_t input_tokens, output_tokens;
	uint64_t session;      /* requests of one conversation share it; 0: unknown */
	const uint64_t *block; /* hashes of the prompt's blocks, first to last */
	size_t n_blocks;
};

struct otr_writer;
struct otr_reader;

/* The file is written beside path and gets its name by otr_commit. info is copied as needed. */
int otr_create(const char *path, const struct otr_info *info, struct arena *a, struct otr_writer **out,
	struct err *err);
/* -1 also for what no file may hold: a layer or expert beyond those of info, a kind or group that does not exist, more
   accesses than experts when info says experts_only. Then nothing can be committed any more. */
int otr_put_step(struct otr_writer *w, const struct trace_step *step, struct err *err);
int otr_put_request(struct otr_writer *w, const struct otr_request *r, struct err *err);
/* Ends the file and gives it its name; the writer is gone afterwards, also when that fails. */
int otr_commit(struct otr_writer *w, struct err *err);
/* Nothing is left behind. NULL is allowed. */
void otr_abort(struct otr_writer *w);

/* Checks head, index and tail; chunks when they are read. What is wrong is said as "FILE: what is wrong at byte N". */
int otr_open(const char *path, struct arena *a, struct otr_reader **out, struct err *err);
void otr_close(struct otr_reader *r);
const struct otr_info *otr_info(const struct otr_reader *r);
uint64_t otr_n_records(const struct otr_reader *r); /* steps or requests */
uint64_t otr_n_accesses(const struct otr_reader *r); /* of all steps */
uint64_t otr_file_bytes(const struct otr_reader *r);
/* Of the contents (info and records, whatever way they were written), for the key of a run. */
uint64_t otr_hash(const struct otr_reader *r);

/* The next record: 1, 0 behind the last, -1 with err. What it points to is valid until the next call. */
int otr_next_step(struct otr_reader *r, struct trace_step *step, struct err *err);
int otr_next_request(struct otr_reader *r, struct otr_request *request, struct err *err);
/* The next call will give record number i, up to otr_n_records (then: the end). */
int otr_seek(struct otr_reader *r, uint64_t i, struct err *err);

#endif
