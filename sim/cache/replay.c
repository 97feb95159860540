#include "sim/cache/replay.h"

static void count(struct replay *x, const struct batch *batch, const struct cache_outcome *got)
{
	x->lookups += got->lookups;
	x->hits += got->hits;
	x->read_bytes += got->missed_bytes;
	if (batch->phase == TRACE_DECODE) {
		x->decode_lookups += got->lookups;
		x->decode_hits += got->hits;
		x->decode_read_bytes += got->missed_bytes;
	}
}

/* The future moves on by this batch's lookups, in order of first use as it was written. */
static void advance(const struct survey *s, const struct batch *batch, uint64_t index, uint64_t *seen)
{
	for (size_t k = 0; k < batch->n; k++) {
		if (seen[batch->use[k]] == index + 1)
			continue;
		seen[batch->use[k]] = index + 1;
		future_advance(s->future, batch->use[k]);
	}
}

static int replay_steps(struct replay *x, size_t n, const struct survey *s, struct otr_reader *r, const struct watch *w,
	struct arena *a, struct err *err)
{
	struct cache_set *set = arena_array(a, struct cache_set, n);
	uint64_t *seen = arena_array(a, uint64_t, s->items.n_items);
	struct cache_outcome outcome;
	struct batches pass;
	struct batch batch;
	bool future = false;
	int got;

	for (size_t i = 0; i < n; i++) {
		struct cache_config config = {
			.ops = x[i].policy,
			.n_items = s->items.n_items,
			.item_bytes = s->items.item_bytes,
			.budget_bytes = x[i].size,
			.popularity = s->popularity,
			.next_use = s->future ? future_next : NULL,
			.next_use_ctx = s->future,
		};
		cache_set_init(&set[i], &config, x[i].scope, s->items.n_layers, 0, a);
		future = future || x[i].policy->needs_future;
	}
	if (batches_begin(&pass, r, &s->items, w, a, err))
		return -1;
	if (future)
		future_rewind(s->future);
	for (uint64_t index = 0; (got = batches_next(&pass, &batch, err)) > 0; index++) {
		if (future)
			advance(s, &batch, index, seen);
		for (size_t i = 0; i < n; i++) {
			cache_set_batch(&set[i], batch.layer, batch.use, batch.n, &outcome);
			count(&x[i], &batch, &outcome);
		}
	}
	return got;
}

static int replay_requests(struct replay *x, size_t n, struct otr_reader *r, const struct watch *w, struct arena *a,
	struct err *err)
{
	struct blocks **pool = arena_array(a, struct blocks *, n);
	struct blocks_count count;
	struct otr_request q;
	int got;

	for (size_t i = 0; i < n; i++)
		pool[i] = blocks_new(&(struct blocks_config){.n_tiers = 1, .capacity_blocks = {x[i].size}}, a);
	if (otr_seek(r, 0, err))
		return -1;
	for (uint64_t done = 0; (got = otr_next_request(r, &q, err)) > 0; done++) {
		if (watch_record(w, done + 1, err))
			return -1;
		for (size_t i = 0; i < n; i++) {
			blocks_request(pool[i], q.block, q.n_blocks, &count);
			x[i].lookups += count.lookups;
			x[i].hits += count.hits[0];
		}
	}
	return got;
}

int replay_run(struct replay *x, size_t n, const struct survey *s, struct otr_reader *r, const struct watch *w,
	struct arena *a, struct err *err)
{
	for (size_t i = 0; i < n; i++)
		x[i] = (struct replay){.policy = x[i].policy, .scope = x[i].scope, .size = x[i].size};
	if (s->kind == OTR_REQUESTS)
		return replay_requests(x, n, r, w, a, err);
	for (size_t i = 0; i < n; i++) {
		if (x[i].policy->needs_future && !s->future)
			BUG("%s replayed without the future", x[i].policy->name);
		if (x[i].policy->needs_future && future_check(s->future, err))
			return -1;
	}
	return replay_steps(x, n, s, r, w, a, err);
}
