/*
 * trace_import.h - what others recorded, as steps or requests of ours.
 *
 *	a file ── a format's reader ── trace_import_request, trace_import_use/_step ── a sink (an .otr, a test)
 *
 * A file is read twice: first to check it to its end and to learn what the head of a trace says (how many layers, when
 * the first request came, what had to be dropped or assumed), then to write. So nothing is written of a file that is
 * wrong, and memory holds one line and one step however long the file. Formats whose file is one JSON document hold
 * that, up to TRACE_MAX_DOCUMENT.
 *
 * The functions below "for readers" are what a format calls (trace_format.h); the first is for everybody else.
 */
#ifndef SIM_TRACE_TRACE_IMPORT_H
#define SIM_TRACE_TRACE_IMPORT_H

#include <jansson.h>
#include <signal.h>

#include "base/csv.h"
#include "base/lines.h"
#include "sim/trace/otr.h"

#define TRACE_MAX_LINE ((size_t)64 << 20)      /* bytes of a line */
#define TRACE_MAX_DOCUMENT ((size_t)1 << 30)   /* bytes of a file that is one JSON document */
#define TRACE_MAX_TOKENS (UINT64_C(1) << 40)   /* of a request or step */
#define TRACE_MAX_LAYERS 4096
#define TRACE_MAX_EXPERTS 65536                /* of a layer */

struct trace_format;

struct trace_import_options {
	const struct trace_format *format;           /* NULL: guessed */
	const char *source, *licence;                /* for the head; NULL: the path, unknown */
	uint32_t n_layer, n_expert;                  /* for formats that lack them; 0: as many as are seen */
	uint64_t expert_bytes;                       /* likewise; 0: unknown */
	uint64_t decode_rows;                        /* where phases are not recorded, passes of at most so many decode; 0: 1 */
	bool drop_warmup;
	const volatile sig_atomic_t *interrupted;    /* NULL: never */
	void (*report)(double share);                /* of both readings, after each hundredth; NULL: not wanted */
};

/* Each returns 0 or -1. begin comes once, first; of step and request only that of the format's kind is called. */
struct trace_sink {
	void *ctx;
	int (*begin)(void *ctx, const struct otr_info *info, struct err *err);
	int (*step)(void *ctx, const struct trace_step *step, struct err *err);
	int (*request)(void *ctx, const struct otr_request *request, struct err *err);
};

struct trace_totals {
	uint64_t n_records;                         /* steps or requests */
	uint64_t input_tokens, output_tokens;       /* of requests */
	uint64_t first_ns, last_ns;                 /* arrivals: the earliest and the latest */
	uint64_t n_prefill, n_decode;               /* steps */
	uint64_t n_uses;                            /* uses of experts */
};

struct trace_import_result {
	const struct trace_format *format;
	bool guessed;
	struct otr_info info;      /* in the arena, as the sink got it */
	struct trace_totals totals;
	uint64_t source_bytes;
};

/* Reads all of a file, then gives it to the sink. Wrong input is ERR_INPUT with file, line and, where it is known,
   column; then the sink has seen nothing. A sink's error is passed on as it is. */
int trace_import(const char *path, const struct trace_import_options *o, const struct trace_sink *sink, struct arena *a,
	struct trace_import_result *out, struct err *err);

/* ---- for readers ---- */

struct trace_import {
	const struct trace_import_options *options;
	const struct trace_format *format;
	const char *path;
	struct lines lines;        /* at the first line when a reader begins */
	struct arena *arena;       /* of this reading */
	/* A reader may set these, in both readings alike. */
	const char *model;         /* "" */
	uint32_t block_tokens;
	uint32_t n_expert_used;
	bool wall_clock;           /* arrivals are dates: the trace begins at the earliest */
	struct {
		VEC(uint64_t);     /* blocks of a request under way: see trace_import_blocks */
	} block;
	/* trace_import.c's own */
	const struct trace_sink *sink; /* NULL in the first reading */
	struct trace_totals totals;
	struct {
		VEC(struct trace_layer { struct otr_layer declared; uint32_t n_seen; }); /* zeros; experts up to the highest */
	} layer;
	struct {
		VEC(struct trace_access);
	} use, sorted;             /* of the step under way */
	uint32_t max_layer;        /* of these */
	bool in_order;             /* their layers never go down */
	uint64_t context;          /* entries held by the sequence under way */
	uint64_t origin_ns;
	uint64_t source_bytes, reported_bytes;
	bool many;                 /* more than one sequence came, or one went back to its prompt */
	uint64_t prompt_tokens;
	struct {
		VEC(struct trace_remark { const char *text; uint64_t n; });
	} remark;
};

/* Something a reader of the trace should know, once however often it is said: n is added up, and shown if it is not
   zero ("TEXT: n"). text must outlive the import. */
void trace_import_remark(struct trace_import *im, const char *text, uint64_t n);

/* An error in the line at hand (col 0: unknown); returns -1. */
int trace_import_error(const struct trace_import *im, int col, struct err *err, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* Adds the line at hand to an error of base/json.h; returns -1. */
int trace_import_at_line(const struct trace_import *im, struct err *err);

/* A field that must be a whole number up to max, or a number times 10^digits, rounded. */
int trace_import_field(const struct csv *csv, const struct csv_field *f, const char *what, uint64_t max, uint64_t *out,
	struct err *err);
int trace_import_time(const struct csv *csv, const struct csv_field *f, const char *what, int digits, uint64_t *ns,
	struct err *err);
/* The next line that is not empty, as a JSON object the caller releases: 1, 0 at the end, -1. */
int trace_import_json(struct trace_import *im, json_t **object, struct err *err);
/* Reads an array of numbers into im->block; a missing key is an empty one. */
int trace_import_blocks(struct trace_import *im, const json_t *object, const char *key, struct err *err);

/* Reads a whole number at *at, after white space; what is behind it must be white space, a comma or the end. *at goes
   behind it. */
int trace_import_int(const struct trace_import *im, const char *line, const char **at, int64_t *out, struct err *err);
/* Where a text stands for its tokens: four characters each. */
uint64_t trace_import_estimate(const char *utf8, size_t len);

int trace_import_request(struct trace_import *im, const struct otr_request *r, struct err *err);

/* What is known of a layer beforehand. */
int trace_import_layer(struct trace_import *im, uint64_t layer, const struct otr_layer *l, struct err *err);
/* An expert of a layer is used for so many rows by the step under way, in order of use. */
int trace_import_use(struct trace_import *im, uint64_t layer, uint64_t expert, uint64_t rows, struct err *err);
/* The step under way is complete: n_tokens rows in all. One of one sequence goes on where the last one ended, if the
   format is of one sequence. */
int trace_import_step(struct trace_import *im, enum trace_phase phase, uint64_t n_sequences, uint64_t n_tokens,
	struct err *err);
/* Where phases are not recorded, the most rows of a decode step. */
uint64_t trace_import_decode_rows(const struct trace_import *im);
/* The step under way is left out. */
void trace_import_discard(struct trace_import *im);
/* The next step begins a sequence of its own. */
void trace_import_new_sequence(struct trace_import *im);

#endif
