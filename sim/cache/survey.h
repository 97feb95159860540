/*
 * survey.h - what a trace file holds, in one pass: counts, popularity, reuse, lengths and arrivals; and what replaying it
 * then needs, which is how popular each item is and, for belady, its future.
 *
 * Memory grows with the different items, not with the length of the file; the future alone takes four bytes a lookup.
 */
#ifndef SIM_CACHE_SURVEY_H
#define SIM_CACHE_SURVEY_H

#include "sim/cache/batches.h"
#include "sim/cache/blocks.h"
#include "sim/cache/future.h"
#include "sim/cache/reuse.h"
#include "sim/cache/spread.h"

struct survey {
	enum otr_kind kind;
	uint64_t n_records;
	uint64_t n_lookups;            /* of experts, once a batch; of blocks */
	uint64_t n_unique;             /* different experts or blocks */
	struct reuse *reuse;

	/* OTR_STEPS */
	struct batch_items items;
	uint64_t n_prefill, n_decode;  /* steps */
	uint64_t n_batches, n_uses;    /* uses: repeats in a batch count */
	uint64_t unique_bytes;
	double *popularity;            /* by item: uses */
	struct future *future;         /* NULL: not asked for */

	/* OTR_REQUESTS */
	struct spread input_tokens, output_tokens, gap_ns;
	uint64_t first_ns, last_ns;    /* arrivals, the earliest and the latest; gaps lead to each that is later than all before */
	uint64_t n_in_session;         /* requests that name their conversation */
};

struct survey_options {
	uint64_t expert_bytes;         /* where the head does not say it; 0: unknown */
	bool future;                   /* belady will be replayed */
	uint64_t future_limit_bytes;
	struct watch watch;
};

int survey_take(struct survey *s, struct otr_reader *r, const struct survey_options *o, struct arena *a,
	struct err *err);

/* The fewest experts that take at least this share of all uses. */
uint32_t survey_covers(const struct survey *s, double share, struct arena *a);
/* Of a layer's uses over its experts, in bits: log2 of their number when all are used alike; -1 for a layer without uses. */
double survey_entropy_bits(const struct survey *s, uint32_t layer);

#endif
