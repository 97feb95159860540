/*
 * batches.h - the steps of a trace file as a cache sees them: batches of numbered experts.
 *
 *	step ── … layer 0: expert 3, expert 7 │ … layer 1: expert 1, expert 3, expert 1 │ …
 *	        batch 0: items 3 7              batch 1: items 129 131 129      (128 experts a layer)
 *
 * A batch is what one layer of one step uses, in order, repeats included. All else a step touches is passed over.
 */
#ifndef SIM_CACHE_BATCHES_H
#define SIM_CACHE_BATCHES_H

#include "sim/trace/otr.h"

/* Experts as numbered items: layer x experts_per_layer + expert. */
struct batch_items {
	uint32_t n_layers, experts_per_layer, n_items;
	uint32_t *experts_of;  /* by layer: 0 for one without; n_items has places for all the same */
	uint64_t *item_bytes;  /* by item; 0 where there is none */
	uint64_t cycle_bytes;  /* of the experts one token uses, all layers; 0: not known */
	bool bytes_known;      /* of every expert */
};

struct batch {
	enum trace_phase phase;
	uint32_t layer;
	const uint32_t *use; /* items, valid until the next one */
	size_t n;
};

/* Asked after every record of a pass, with those done so far; false ends it with ERR_INTERRUPTED. NULL: never asked. */
struct watch {
	bool (*go_on)(void *ctx, uint64_t n_records);
	void *ctx;
};

/* One pass over a file. */
struct batches {
	struct otr_reader *reader;
	const struct batch_items *items;
	struct arena *arena;
	struct trace_step step;
	size_t at; /* the next access of the step */
	uint64_t n_steps, n_prefill; /* so far */
	struct {
		VEC(uint32_t);
	} use;
	struct watch watch;
};

/* From the head of the file, or, where that says nothing of layers or experts, by reading it once. expert_bytes stands in
   where the head does not say how large an expert is (0: then bytes_known is false). */
int batch_items_init(struct batch_items *items, struct otr_reader *r, uint64_t expert_bytes, const struct watch *w,
	struct arena *a, struct err *err);

/* From the first record on. */
int batches_begin(struct batches *b, struct otr_reader *r, const struct batch_items *items, const struct watch *w,
	struct arena *a, struct err *err);
/* The next batch: 1, 0 behind the last, -1 with err. */
int batches_next(struct batches *b, struct batch *batch, struct err *err);

int watch_record(const struct watch *w, uint64_t n_records, struct err *err);

#endif
