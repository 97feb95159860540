/*
 * validate_rows.h - inside sim/run: where validate's rows come from, and what is made of them.
 *
 *	validate_corpus.c    a corpus, its machines written out from its columns ─┐
 *	validate_llama.c     llama-bench's own output, on a machine that is given ┴─> rows ─> validate.c ─> validate_summary.c
 */
#ifndef SIM_RUN_VALIDATE_ROWS_H
#define SIM_RUN_VALIDATE_ROWS_H

#include "base/vec.h"
#include "sim/run/scenario.h"
#include "sim/run/validate.h"

struct validate_rows {
	VEC(struct validate_row);
};

int validate_read_corpus(const char *path, const struct validate_options *o, struct arena *a, struct validate_rows *rows,
	struct err *err);
int validate_read_llama(const char *path, const struct validate_options *o, struct arena *a, struct validate_rows *rows,
	struct err *err);

/* How rows are run. */
struct validate_how {
	bool interval;
	void (*adjust)(void *ctx, struct scenario *s, struct arena *a); /* before a scenario runs; by any thread; NULL: as it is */
	void *ctx;
};

/* Runs those that are not skipped, on o->workers threads. */
int validate_run_rows(struct validate_row *row, size_t n, const struct validate_options *o, const struct validate_how *how,
	struct arena *a, struct err *err);

/* Are rows of this engine asked for? */
bool validate_wants(const struct validate_options *o, const char *engine);

void validate_summarise(const struct validate *v, enum validate_metric m, struct validate_summary *s, struct arena *a);

void validate_summarise_thumb(const struct validate *v, struct validate_thumb *t, struct arena *a);

/* The flags of a row of the corpus as the engine's own; what was assumed is appended. */
const char *validate_flexgen_flags(const char *flags, struct arena *a);
const char *validate_zero_flags(const char *flags, const char *when, struct arena *a, const char **assumed);
/* Streams whose tokens a row counts, of as many GPUs: each has one where the model is sharded over them, and
   bloom-ds-zero-inference.py (huggingface/transformers-bloom-inference) multiplies by them. */
double validate_zero_streams(const char *flags, int n_gpus);

#endif
