/* Does a pool of KV blocks hold what it should, and do its bytes add up? Against a naive one: one list of all blocks, latest
   used first, cut where the capacities are. */
#include "sim/cache/blocks.h"

#include "base/rng.h"
#include "tests/test.h"

#define HELD_MAX 4000
#define REQUEST_MAX 12
#define BLOCK_BYTES 3

struct naive {
	uint64_t hash[HELD_MAX]; /* latest used first */
	size_t n;
	uint64_t capacity[BLOCKS_TIERS_MAX];
	uint32_t n_tiers;
};

static size_t place_of(const struct naive *x, uint64_t hash)
{
	size_t i = 0;

	while (i < x->n && x->hash[i] != hash)
		i++;
	return i;
}

static int tier_of(const struct naive *x, uint64_t hash)
{
	size_t i = place_of(x, hash);

	if (i == x->n)
		return -1;
	for (uint32_t t = 0; t < x->n_tiers; t++) {
		if (i < x->capacity[t])
			return (int)t;
		i -= x->capacity[t];
	}
	return -1;
}

static void naive_touch(struct naive *x, uint64_t hash)
{
	size_t i = place_of(x, hash);

	if (i == x->n)
		x->n++;
	memmove(x->hash + 1, x->hash, i * sizeof(*x->hash));
	x->hash[0] = hash;
}

/* Conversations: each prompt is some blocks of one of a few long ones, or nearly. */
static size_t draw(gsl_rng *rng, uint64_t *hash)
{
	uint64_t chat = gsl_rng_uniform_int(rng, 30);
	size_t n = gsl_rng_uniform_int(rng, REQUEST_MAX + 1), from_here = gsl_rng_uniform_int(rng, 2 * REQUEST_MAX);

	for (size_t i = 0; i < n; i++)
		hash[i] = i < from_here ? (i < 2 ? i : chat * 100 + i) : gsl_rng_uniform_int(rng, 60);
	return n;
}

static void agree(uint64_t seed, uint32_t n_tiers)
{
	gsl_rng *rng = rng_new(seed, n_tiers, RNG_TEST);
	struct naive *x = calloc(1, sizeof(*x));
	struct blocks_config config = {.n_tiers = n_tiers, .block_bytes = BLOCK_BYTES};
	struct blocks_count got, sum = {0};
	struct arena a;

	arena_init(&a, NULL, NULL);
	x->n_tiers = n_tiers;
	for (uint32_t t = 0; t < n_tiers; t++)
		x->capacity[t] = config.capacity_blocks[t] = gsl_rng_uniform_int(rng, 60);
	struct blocks *b = blocks_new(&config, &a);
	for (int q = 0; q < 400; q++) {
		uint64_t hash[REQUEST_MAX], hits[BLOCKS_TIERS_MAX] = {0}, held[BLOCKS_TIERS_MAX] = {0}, all = 0;
		size_t n = draw(rng, hash), n_hits = 0;
		while (n_hits < n && tier_of(x, hash[n_hits]) >= 0)
			hits[tier_of(x, hash[n_hits++])]++;
		for (size_t i = n; i-- > 0;)
			naive_touch(x, hash[i]);
		for (uint32_t t = 0; t < n_tiers; t++)
			all += x->capacity[t];
		x->n = x->n < all ? x->n : all;

		blocks_request(b, hash, n, &got);
		blocks_count_add(&sum, &got);
		ck_assert_uint_eq(got.lookups, n);
		for (uint32_t t = 0; t < n_tiers; t++)
			ck_assert_uint_eq(got.hits[t], hits[t]);
		/* The same blocks in the same tiers, none twice, none too many. */
		uint64_t n_wrong = 0;
		for (size_t i = 0; i < x->n; i++) {
			n_wrong += blocks_find(b, x->hash[i]) != tier_of(x, x->hash[i]);
			held[tier_of(x, x->hash[i])]++;
		}
		ck_assert_uint_eq(n_wrong, 0);
		for (uint32_t t = 0; t < n_tiers; t++) {
			ck_assert_uint_eq(blocks_held(b, t), held[t]);
			ck_assert_uint_le(held[t], x->capacity[t]);
		}
		/* What came in and left adds up. */
		uint64_t promoted = 0;
		for (uint32_t t = 1; t < n_tiers; t++) {
			promoted += sum.promoted_bytes[t];
			ck_assert_uint_eq(sum.demoted_bytes[t - 1], held[t] * BLOCK_BYTES + sum.promoted_bytes[t] +
				sum.recomputed[t] * BLOCK_BYTES + sum.demoted_bytes[t]);
		}
		ck_assert_uint_eq(sum.computed * BLOCK_BYTES + promoted, held[0] * BLOCK_BYTES + sum.demoted_bytes[0]);
		ck_assert_uint_eq(sum.promoted_bytes[0] + sum.recomputed[0], 0);
	}
	arena_release(&a);
	free(x);
	gsl_rng_free(rng);
}

START_TEST(as_the_naive_one)
{
	for (uint64_t seed = 1; seed <= 25; seed++)
		for (uint32_t n_tiers = 1; n_tiers <= BLOCKS_TIERS_MAX; n_tiers++)
			agree(seed, n_tiers);
}
END_TEST

START_TEST(promotes_and_demotes)
{
	struct blocks_config config = {.n_tiers = 2, .capacity_blocks = {2, 3}, .block_bytes = BLOCK_BYTES};
	struct blocks_count got;
	struct arena a;

	arena_init(&a, NULL, NULL);
	struct blocks *b = blocks_new(&config, &a);
	blocks_request(b, (const uint64_t[]){10, 11, 12, 13}, 4, &got);
	ck_assert_uint_eq(got.computed, 4);
	ck_assert_uint_eq(got.demoted_bytes[0], 2 * BLOCK_BYTES); /* 13, then 12: the tail goes first */
	ck_assert_int_eq(blocks_find(b, 11), 0);
	ck_assert_int_eq(blocks_find(b, 12), 1);
	/* 12 is behind a gap: it is computed, not moved, and is in one tier all the same. */
	blocks_request(b, (const uint64_t[]){10, 99, 12}, 3, &got);
	ck_assert_uint_eq(got.hits[0], 1);
	ck_assert_uint_eq(got.hits[1], 0);
	ck_assert_uint_eq(got.computed, 2);
	ck_assert_uint_eq(got.recomputed[1], 1);
	ck_assert_uint_eq(got.promoted_bytes[1], 0);
	ck_assert_uint_eq(got.demoted_bytes[0], 2 * BLOCK_BYTES); /* 11, 12 again */
	ck_assert_uint_eq(got.demoted_bytes[1], 0);
	ck_assert_int_eq(blocks_find(b, 12), 1);
	blocks_request(b, (const uint64_t[]){13}, 1, &got);
	ck_assert_uint_eq(got.hits[1], 1);
	ck_assert_uint_eq(got.promoted_bytes[1], BLOCK_BYTES);
	arena_release(&a);
}
END_TEST

START_TEST(many)
{
	struct blocks_config config = {.n_tiers = 1, .capacity_blocks = {50021}};
	struct blocks_count got;
	struct arena a;

	arena_init(&a, NULL, NULL);
	struct blocks *b = blocks_new(&config, &a);
	uint64_t n_wrong = 0;
	/* Hashes that differ in few bits, and come and go. */
	for (uint64_t q = 0; q < 300000; q++) {
		uint64_t hash = q << 40 | q % 3;
		blocks_request(b, &hash, 1, &got);
		n_wrong += got.hits[0] != 0 || blocks_held(b, 0) != (q < 50021 ? q + 1 : 50021);
	}
	ck_assert_uint_eq(n_wrong, 0);
	ck_assert_uint_lt(a.total_bytes, (size_t)16 << 20);
	arena_release(&a);
}
END_TEST

TEST_MAIN("blocks", as_the_naive_one, promotes_and_demotes, many)
