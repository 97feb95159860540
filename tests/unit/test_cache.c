/* Do the policies evict whom they should? Each against a naive cache of its own words: no order is kept, everything is
   searched anew. */
#include "sim/cache/cache_set.h"

#include "base/rng.h"
#include "sim/cache/cache_policies.h"
#include "tests/test.h"

#define N_ITEMS 40
#define N_BATCHES 300
#define BATCH_MAX 24

struct workload {
	uint32_t n_items;
	uint64_t bytes[N_ITEMS];
	double popularity[N_ITEMS];
	uint32_t n_batches;
	struct {
		uint32_t n, use[BATCH_MAX];
		bool prefetch;
	} batch[N_BATCHES];
};

static void draw(struct workload *w, gsl_rng *rng, bool equal_sizes, bool prefetches, uint32_t batch_max)
{
	w->n_items = 1 + (uint32_t)gsl_rng_uniform_int(rng, N_ITEMS);
	w->n_batches = N_BATCHES;
	for (uint32_t i = 0; i < w->n_items; i++) {
		w->bytes[i] = equal_sizes ? 7 : gsl_rng_uniform_int(rng, 20);
		w->popularity[i] = (double)gsl_rng_uniform_int(rng, 5);
	}
	for (uint32_t b = 0; b < w->n_batches; b++) {
		w->batch[b].n = (uint32_t)gsl_rng_uniform_int(rng, batch_max + 1);
		w->batch[b].prefetch = prefetches && gsl_rng_uniform_int(rng, 4) == 0;
		for (uint32_t k = 0; k < w->batch[b].n; k++) {
			/* Some are used often, some seldom. */
			uint32_t among = 1 + (uint32_t)gsl_rng_uniform_int(rng, w->n_items);
			w->batch[b].use[k] = (uint32_t)gsl_rng_uniform_int(rng, among);
		}
	}
}

/* ---- naive ---- */

struct naive {
	const struct workload *w;
	const struct cache_ops *ops;
	uint64_t budget;
	bool strict;
	uint32_t b; /* the batch at hand, prefetches among them */
	bool in[N_ITEMS];
	uint64_t last[N_ITEMS], lookups[N_ITEMS], clock; /* last: use or arrival */
};

static bool uses(const struct workload *w, uint32_t b, uint32_t item)
{
	for (uint32_t k = 0; k < w->batch[b].n; k++)
		if (w->batch[b].use[k] == item)
			return true;
	return false;
}

static uint64_t naive_next(const struct naive *x, uint32_t item)
{
	for (uint32_t b = x->b + 1; b < x->w->n_batches; b++)
		if (!x->w->batch[b].prefetch && uses(x->w, b, item))
			return b;
	return UINT64_MAX;
}

static uint64_t naive_next_use(void *ctx, uint32_t item, uint64_t batch)
{
	(void)batch;
	return naive_next(ctx, item);
}

static uint64_t naive_used(const struct naive *x)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < x->w->n_items; i++)
		sum += x->in[i] ? x->w->bytes[i] : 0;
	return sum;
}

static bool leaves_before(const struct naive *x, uint32_t a, uint32_t b)
{
	if (x->ops == &cache_belady && naive_next(x, a) != naive_next(x, b))
		return naive_next(x, a) > naive_next(x, b);
	if (x->ops == &cache_belady)
		return a < b;
	if (x->ops == &cache_lfu && x->lookups[a] != x->lookups[b])
		return x->lookups[a] < x->lookups[b];
	return x->last[a] < x->last[b];
}

static void naive_start(struct naive *x, const struct workload *w, const struct cache_ops *ops, uint64_t budget)
{
	*x = (struct naive){.w = w, .ops = ops, .budget = budget};
	if (ops != &cache_static)
		return;
	for (bool tried[N_ITEMS] = {false};;) {
		uint32_t best = CACHE_NONE;
		for (uint32_t i = 0; i < w->n_items; i++)
			if (!tried[i] && (best == CACHE_NONE || w->popularity[i] > w->popularity[best]))
				best = i;
		if (best == CACHE_NONE)
			break;
		tried[best] = true;
		x->in[best] = naive_used(x) + w->bytes[best] <= budget;
	}
}

/* Returns the hits; what is in afterwards is x->in. */
static uint64_t naive_batch(struct naive *x)
{
	const struct workload *w = x->w;
	uint64_t hits = 0;
	bool done[N_ITEMS] = {false};

	for (uint32_t k = 0; k < w->batch[x->b].n; k++) {
		uint32_t i = w->batch[x->b].use[k];
		x->last[i] = ++x->clock;
		if (done[i])
			continue;
		done[i] = true;
		hits += x->in[i] && !w->batch[x->b].prefetch;
		x->lookups[i] += !w->batch[x->b].prefetch;
		if (x->ops != &cache_static && w->bytes[i] <= x->budget)
			x->in[i] = true;
	}
	/* First the others, then the batch itself. */
	for (int round = 0; round <= x->strict; round++) {
		while (naive_used(x) > x->budget) {
			uint32_t v = CACHE_NONE;
			for (uint32_t i = 0; i < w->n_items; i++)
				if (x->in[i] && (round || !done[i]) && (v == CACHE_NONE || leaves_before(x, i, v)))
					v = i;
			if (v == CACHE_NONE)
				break;
			x->in[v] = false;
		}
	}
	return hits;
}

static void check_batch(struct cache *c, struct naive *x, uint32_t first_item)
{
	const struct workload *w = x->w;
	uint32_t use[BATCH_MAX];
	struct cache_outcome out;
	bool before[N_ITEMS];
	uint64_t expect_bytes = 0, batch_bytes = 0, n_missed = 0, n_wrong = 0;

	memcpy(before, x->in, sizeof(before));
	for (uint32_t k = 0; k < w->batch[x->b].n; k++)
		use[k] = first_item + w->batch[x->b].use[k];
	uint64_t hits = naive_batch(x), lookups = 0;
	(w->batch[x->b].prefetch ? cache_prefetch : cache_batch)(c, use, w->batch[x->b].n, &out);
	for (uint32_t i = 0; i < w->n_items; i++) {
		bool used = uses(w, x->b, i);
		lookups += used && !w->batch[x->b].prefetch;
		batch_bytes += used ? w->bytes[i] : 0;
		n_missed += used && !before[i];
		expect_bytes += used && !before[i] ? w->bytes[i] : 0;
		n_wrong += cache_holds(c, first_item + i) != x->in[i];
		n_wrong += cache_in_batch(c, first_item + i) != used;
	}
	ck_assert_uint_eq(n_wrong, 0);
	ck_assert_uint_eq(out.lookups, lookups);
	ck_assert_uint_eq(out.hits, hits);
	ck_assert_uint_eq(out.missed_bytes, expect_bytes);
	ck_assert_uint_eq(out.n_missed, n_missed);
	ck_assert_uint_eq(cache_used_bytes(c), naive_used(x));
	/* Over the budget only by what the batch touched, and not even by that where it is strict. */
	ck_assert(cache_used_bytes(c) <= x->budget || (!x->strict && cache_used_bytes(c) <= batch_bytes));
	/* The lists: missed in order of first use, evicted were in or have just come, nobody twice. */
	size_t m = 0;
	for (uint32_t k = 0; k < w->batch[x->b].n; k++)
		if (m < out.n_missed && out.missed[m] == use[k])
			m++;
	ck_assert_uint_eq(m, out.n_missed);
	for (size_t e = 0; e < out.n_evicted; e++) {
		uint32_t i = out.evicted[e] - first_item;
		ck_assert((before[i] || (x->strict && uses(w, x->b, i))) && !x->in[i]);
		for (size_t k = 0; k < e; k++)
			ck_assert_uint_ne(out.evicted[k], out.evicted[e]);
	}
}

static void agree(uint64_t seed, bool prefetches, bool strict)
{
	gsl_rng *rng = rng_new(seed, 0, RNG_TEST);
	struct workload *w = calloc(1, sizeof(*w));
	struct arena a;

	arena_init(&a, NULL, NULL);
	draw(w, rng, seed % 3 == 0, prefetches, 1 + (uint32_t)gsl_rng_uniform_int(rng, BATCH_MAX));
	uint64_t budget = gsl_rng_uniform_int(rng, 10 * w->n_items);
	for (size_t p = 0; cache_policy_at(p); p++) {
		struct naive x;
		naive_start(&x, w, cache_policy_at(p), budget);
		x.strict = strict;
		struct cache_config config = {.ops = x.ops, .first_item = (uint32_t)seed % 100, .n_items = w->n_items,
			.item_bytes = w->bytes, .budget_bytes = budget, .strict = strict,
			.popularity = w->popularity, .next_use = naive_next_use, .next_use_ctx = &x};
		/* The naive one numbers its items from 0. */
		config.first_item = x.ops->needs_future ? 0 : config.first_item;
		struct cache *c = cache_new(&config, &a);
		size_t bytes = a.total_bytes;
		for (x.b = 0; x.b < w->n_batches; x.b++)
			check_batch(c, &x, config.first_item);
		ck_assert_uint_eq(a.total_bytes, bytes);
	}
	arena_release(&a);
	free(w);
	gsl_rng_free(rng);
}

START_TEST(as_the_naive_ones)
{
	for (uint64_t seed = 1; seed <= 60; seed++)
		agree(seed, false, false);
}
END_TEST

START_TEST(as_the_naive_ones_with_prefetches)
{
	for (uint64_t seed = 1000; seed <= 1060; seed++)
		agree(seed, true, false);
}
END_TEST

START_TEST(as_the_naive_ones_that_hold_their_budget)
{
	for (uint64_t seed = 2000; seed <= 2060; seed++)
		agree(seed, seed % 2, true);
}
END_TEST

/* ---- properties ---- */

static void run_sized(const struct workload *w, const struct cache_ops *ops, uint64_t budget, uint64_t *hits, bool *hit,
	struct arena *a)
{
	struct naive x = {.w = w};
	struct cache_config config = {.ops = ops, .n_items = w->n_items, .item_bytes = w->bytes, .budget_bytes = budget,
		.popularity = w->popularity, .next_use = naive_next_use, .next_use_ctx = &x};
	struct cache *c = cache_new(&config, a);
	struct cache_outcome out;

	*hits = 0;
	for (x.b = 0; x.b < w->n_batches; x.b++) {
		for (uint32_t i = 0; i < w->n_items && hit; i++)
			hit[x.b * w->n_items + i] = cache_holds(c, i);
		cache_batch(c, w->batch[x.b].use, w->batch[x.b].n, &out);
		*hits += out.hits;
	}
}

START_TEST(more_room_never_loses_a_hit_of_lru)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		gsl_rng *rng = rng_new(seed, 1, RNG_TEST);
		struct workload *w = calloc(1, sizeof(*w));
		bool *less = calloc(N_BATCHES * N_ITEMS, 1), *more = calloc(N_BATCHES * N_ITEMS, 1);
		struct arena a;
		uint64_t hits;

		arena_init(&a, NULL, NULL);
		draw(w, rng, true, false, 9);
		for (uint64_t budget = 0; budget <= 7 * w->n_items; budget += 7) {
			run_sized(w, &cache_lru, budget, &hits, more, &a);
			uint64_t n_lost = 0;
			for (uint32_t k = 0; k < w->n_batches * w->n_items && budget; k++)
				n_lost += less[k] && !more[k];
			ck_assert_uint_eq(n_lost, 0);
			memcpy(less, more, N_BATCHES * N_ITEMS);
		}
		arena_release(&a);
		free(less);
		free(more);
		free(w);
		gsl_rng_free(rng);
	}
}
END_TEST

/* Of those that admit every miss: static does not, and is in from the start. */
START_TEST(none_beats_belady)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		gsl_rng *rng = rng_new(seed, 2, RNG_TEST);
		struct workload *w = calloc(1, sizeof(*w));
		struct arena a;

		arena_init(&a, NULL, NULL);
		draw(w, rng, true, false, 1 + (uint32_t)seed % 9);
		for (uint64_t budget = 7; budget <= 7 * w->n_items; budget += 7) {
			uint64_t best, hits;
			run_sized(w, &cache_belady, budget, &best, NULL, &a);
			run_sized(w, &cache_lru, budget, &hits, NULL, &a);
			ck_assert_uint_ge(best, hits);
			run_sized(w, &cache_lfu, budget, &hits, NULL, &a);
			ck_assert_uint_ge(best, hits);
		}
		arena_release(&a);
		free(w);
		gsl_rng_free(rng);
	}
}
END_TEST

START_TEST(a_set_is_its_caches)
{
	/* Three layers of four experts, the middle one without. */
	static const uint64_t bytes[12] = {5, 5, 5, 5, 0, 0, 0, 0, 3, 3, 3, 3};
	struct cache_config config = {.ops = &cache_lru, .n_items = 12, .item_bytes = bytes, .budget_bytes = 21};
	struct cache_set set;
	struct cache_outcome out;
	struct arena a;

	arena_init(&a, NULL, NULL);
	cache_set_init(&set, &config, CACHE_LAYER, 3, 0, &a);
	cache_set_batch(&set, 0, (const uint32_t[]){0, 1, 2}, 3, &out);
	ck_assert_uint_eq(out.n_missed, 3);
	ck_assert_uint_eq(cache_set_used_bytes(&set), 15); /* over its share of 10, by the batch itself */
	cache_set_batch(&set, 2, (const uint32_t[]){8, 11}, 2, &out);
	ck_assert_uint_eq(out.missed[1], 11);
	ck_assert_uint_eq(out.n_evicted, 0);
	cache_set_batch(&set, 0, (const uint32_t[]){2}, 1, &out);
	ck_assert_uint_eq(out.hits, 1);
	ck_assert_uint_eq(out.n_evicted, 1);
	ck_assert_uint_eq(out.evicted[0], 0);
	ck_assert(cache_set_holds(&set, 1) && cache_set_holds(&set, 11) && !cache_set_holds(&set, 0));
	cache_set_prefetch(&set, 2, (const uint32_t[]){9}, 1, &out);
	ck_assert_uint_eq(out.lookups, 0);
	ck_assert_uint_eq(out.missed[0], 9);
	ck_assert_uint_eq(cache_set_used_bytes(&set), 19);

	cache_set_init(&set, &config, CACHE_GLOBAL, 3, 0, &a);
	cache_set_batch(&set, 0, (const uint32_t[]){0, 1, 2}, 3, &out);
	cache_set_batch(&set, 2, (const uint32_t[]){8, 9, 10}, 3, &out);
	ck_assert_uint_eq(cache_set_used_bytes(&set), 19);
	ck_assert_uint_eq(out.evicted[0], 0);
	arena_release(&a);
}
END_TEST

START_TEST(slots_are_as_many_in_each_layer)
{
	/* However large the experts of a layer are. */
	static const uint64_t bytes[9] = {5, 5, 5, 0, 0, 0, 3, 3, 3};
	struct cache_config config = {.ops = &cache_lru, .n_items = 9, .item_bytes = bytes, .strict = true};
	struct cache_set set;
	struct cache_outcome out;
	struct arena a;

	arena_init(&a, NULL, NULL);
	cache_set_init(&set, &config, CACHE_LAYER, 3, 2, &a);
	cache_set_batch(&set, 0, (const uint32_t[]){0, 1, 2}, 3, &out);
	cache_set_batch(&set, 2, (const uint32_t[]){6, 7, 8}, 3, &out);
	ck_assert(!cache_set_holds(&set, 0) && cache_set_holds(&set, 1) && cache_set_holds(&set, 2));
	ck_assert(!cache_set_holds(&set, 6) && cache_set_holds(&set, 7) && cache_set_holds(&set, 8));
	arena_release(&a);
}
END_TEST

START_TEST(names)
{
	const struct cache_ops *ops;
	enum cache_scope scope = CACHE_GLOBAL;
	struct err err;

	assert_ok(cache_policy_find("lfu", NULL, &ops, &err), err);
	ck_assert_ptr_eq(ops, &cache_lfu);
	ck_assert_int_eq(cache_policy_find("beladi", NULL, &ops, &err), -1);
	assert_err(err, ERR_INPUT, "unknown cache policy 'beladi'; did you mean 'belady'?");
	ck_assert_int_eq(cache_policy_find("clock-pro", NULL, &ops, &err), -1);
	assert_err(err, ERR_INPUT, "unknown cache policy 'clock-pro'; known: lru, lfu, static, belady");
	assert_ok(cache_set_policy_find("lru", NULL, &ops, &scope, &err), err);
	ck_assert_int_eq(scope, CACHE_GLOBAL);
	assert_ok(cache_set_policy_find("layerlfu", NULL, &ops, &scope, &err), err);
	ck_assert_ptr_eq(ops, &cache_lfu);
	ck_assert_int_eq(scope, CACHE_LAYER);
	ck_assert_int_eq(cache_scope_find("layers", NULL, &scope, &err), -1);
	assert_err(err, ERR_INPUT, "unknown cache scope 'layers'; did you mean 'layer'?");
}
END_TEST

TEST_MAIN("cache", as_the_naive_ones, as_the_naive_ones_with_prefetches, more_room_never_loses_a_hit_of_lru,
	as_the_naive_ones_that_hold_their_budget, none_beats_belady, a_set_is_its_caches, slots_are_as_many_in_each_layer,
	names)
