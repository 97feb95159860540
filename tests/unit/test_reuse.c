/* Do reuse distances give LRU's hits at every size, for batches of experts and for requests of blocks? */
#include "sim/cache/reuse.h"

#include "base/rng.h"
#include "base/vec.h"
#include "sim/cache/blocks.h"
#include "sim/cache/cache_policies.h"
#include "sim/cache/spread.h"
#include "tests/test.h"

#define N_ITEMS 60
#define N_ROUNDS 500

struct rounds {
	uint32_t n[N_ROUNDS], use[N_ROUNDS][20];
};

static void draw(struct rounds *r, uint64_t seed)
{
	gsl_rng *rng = rng_new(seed, 0, RNG_TEST);

	for (uint32_t q = 0; q < N_ROUNDS; q++) {
		r->n[q] = (uint32_t)gsl_rng_uniform_int(rng, 20);
		for (uint32_t k = 0; k < r->n[q]; k++)
			r->use[q][k] = (uint32_t)gsl_rng_uniform_int(rng, 1 + gsl_rng_uniform_int(rng, N_ITEMS));
	}
	gsl_rng_free(rng);
}

START_TEST(batches)
{
	uint64_t bytes[N_ITEMS];
	struct arena a;

	for (uint32_t i = 0; i < N_ITEMS; i++)
		bytes[i] = 1;
	arena_init(&a, NULL, NULL);
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct rounds *rounds = arena_new(&a, struct rounds);
		struct reuse *r = reuse_new(&a);
		draw(rounds, seed);
		for (uint32_t q = 0; q < N_ROUNDS; q++)
			reuse_batch(r, rounds->use[q], rounds->n[q]);
		for (uint64_t size = 1; size <= N_ITEMS + 3; size++) {
			struct cache_config config = {.ops = &cache_lru, .n_items = N_ITEMS, .item_bytes = bytes,
				.budget_bytes = size};
			struct cache *c = cache_new(&config, &a);
			struct cache_outcome out;
			uint64_t hits = 0, lookups = 0;
			for (uint32_t q = 0; q < N_ROUNDS; q++) {
				cache_batch(c, rounds->use[q], rounds->n[q], &out);
				hits += out.hits;
				lookups += out.lookups;
			}
			ck_assert_uint_eq(reuse_lookups(r), lookups);
			ck_assert_uint_eq(reuse_hits(r, size), hits);
			ck_assert_uint_le(reuse_size_for(r, hits), size);
		}
		ck_assert_uint_eq(reuse_unique(r), reuse_lookups(r) - reuse_hits(r, N_ITEMS));
		ck_assert(reuse_size_for(r, reuse_lookups(r)) == REUSE_NEVER);
	}
	arena_release(&a);
}
END_TEST

START_TEST(requests)
{
	struct arena a;

	arena_init(&a, NULL, NULL);
	for (uint64_t seed = 20; seed <= 30; seed++) {
		struct rounds *rounds = arena_new(&a, struct rounds);
		struct reuse *r = reuse_new(&a);
		draw(rounds, seed);
		for (uint32_t q = 0; q < N_ROUNDS; q++)
			reuse_request(r, rounds->use[q], rounds->n[q]);
		for (uint64_t size = 0; size <= N_ITEMS + 3; size++) {
			struct blocks_config config = {.n_tiers = 1, .capacity_blocks = {size}};
			struct blocks *b = blocks_new(&config, &a);
			struct blocks_count got, sum = {0};
			for (uint32_t q = 0; q < N_ROUNDS; q++) {
				uint64_t hash[20];
				for (uint32_t k = 0; k < rounds->n[q]; k++)
					hash[k] = rounds->use[q][k];
				blocks_request(b, hash, rounds->n[q], &got);
				blocks_count_add(&sum, &got);
			}
			ck_assert_uint_eq(reuse_lookups(r), sum.lookups);
			ck_assert_uint_eq(reuse_hits(r, size), sum.hits[0]);
		}
	}
	arena_release(&a);
}
END_TEST

START_TEST(memory_grows_with_items_only)
{
	struct arena a;
	size_t bytes = 0;

	arena_init(&a, NULL, NULL);
	struct reuse *r = reuse_new(&a);
	for (uint32_t q = 0; q < 200000; q++) {
		reuse_batch(r, (const uint32_t[]){q % 97, q % 89, q % 83}, 3);
		if (q == 5000)
			bytes = a.total_bytes;
	}
	ck_assert_uint_eq(a.total_bytes, bytes);
	arena_release(&a);
}
END_TEST

START_TEST(quantiles)
{
	struct spread *s = calloc(1, sizeof(*s));

	ck_assert_uint_eq(spread_quantile(s, 0.5), 0);
	for (uint64_t x = 1; x <= 100001; x++)
		spread_add(s, 3 * x);
	ck_assert_uint_eq(spread_quantile(s, 0), 3);
	ck_assert_uint_eq(spread_quantile(s, 1), 300003);
	assert_close((double)spread_quantile(s, 0.5), 150003, 0.01);
	assert_close((double)spread_quantile(s, 0.99), 297003, 0.01);
	assert_close(s->mean, 150003, 1e-12);
	assert_close(spread_variation(s), 0.57735, 1e-4); /* uniform from 0: 1/sqrt 3 */
	spread_add(s, UINT64_MAX);
	ck_assert_uint_eq(spread_quantile(s, 1), UINT64_MAX);
	free(s);
}
END_TEST

TEST_MAIN("reuse", batches, requests, memory_grows_with_items_only, quantiles)
