/*
 * experts_record.h - which experts tokens hit, as somebody recorded it.
 *
 *	decode row 0:  layer 0: 17 3 250 …   layer 1: 4 9 …      one row a token, in order of the file
 *	decode row 1:  …
 *
 * Rows of the prefill and of the decode are kept apart. A workload takes them in order and begins again when they are
 * used up; sequences that run together begin at equal distances, as unrelated tokens do.
 */
#ifndef SIM_TRACE_EXPERTS_RECORD_H
#define SIM_TRACE_EXPERTS_RECORD_H

#include "sim/trace/otr.h"

struct experts_record {
	uint32_t n_layer;
	uint32_t *n_used;      /* by layer of the model: experts that a token uses; 0: none */
	uint64_t *n_rows[2];   /* by enum trace_phase, then layer: an engine may do without all but the last token in some */
	uint16_t **used[2];    /* the same: n_used experts for each row */
	uint64_t n_tokens[2];  /* by phase */
	uint64_t hash;         /* of the file's contents */
};

/* Reads a file of steps. Errors: one of requests; layers or experts that the model has not; uses that are counted, not
   listed by token. All is kept in memory, two bytes a use. */
int experts_record_read(const char *path, const struct model *m, struct arena *a, struct experts_record **out,
	struct err *err);
/* The experts that row number `row` of a phase uses at a layer, n_used of them; numbers past the end begin again. A prefill
   without recorded rows takes those of the decode, and the other way round. */
const uint16_t *experts_record_at(const struct experts_record *r, enum trace_phase phase, uint64_t row, uint32_t layer);

#endif
