/*
 * replay.h - a trace file through many caches at once, in one pass: the curve of hits against size.
 *
 *	file ── batch ──┬─> lru, global, 1 GiB
 *	                ├─> lru, a share a layer, 1 GiB         each counts for itself
 *	                └─> belady, global, 2 GiB
 */
#ifndef SIM_CACHE_REPLAY_H
#define SIM_CACHE_REPLAY_H

#include "sim/cache/cache_set.h"
#include "sim/cache/survey.h"

struct replay {
	/* What is asked. Steps: size is the budget in bytes, over all layers in both scopes. Requests: size is blocks of one
	   memory, and neither policy nor scope is looked at: it is the pool of blocks.h. */
	const struct cache_ops *policy;
	enum cache_scope scope;
	uint64_t size;
	/* What came out. */
	uint64_t lookups, hits, decode_lookups, decode_hits;
	uint64_t read_bytes, decode_read_bytes; /* steps only */
};

/* s: of the same file, with a future where one of the policies needs it. */
int replay_run(struct replay *x, size_t n, const struct survey *s, struct otr_reader *r, const struct watch *w,
	struct arena *a, struct err *err);

#endif
