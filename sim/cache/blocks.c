#include "sim/cache/blocks.h"

#include "base/rng.h"
#include "base/vec.h"

#define NONE UINT32_MAX

struct block {
	uint64_t hash;
	uint32_t older, newer; /* in its tier; free ones are chained by `older` */
	uint32_t tier;
};

struct tier {
	uint32_t oldest, newest;
	uint64_t n;
};

struct blocks {
	struct arena *arena;
	struct blocks_config config;
	struct tier tier[BLOCKS_TIERS_MAX];
	struct {
		VEC(struct block);
	} block;
	uint32_t free;
	uint32_t *slot; /* by hash: block + 1, 0: empty; open addressing, the next slot when one is taken */
	size_t n_slots; /* a power of two, more than 4/3 of the blocks */
};

struct blocks *blocks_new(const struct blocks_config *config, struct arena *a)
{
	struct blocks *b = arena_new(a, struct blocks);

	if (config->n_tiers < 1 || config->n_tiers > BLOCKS_TIERS_MAX)
		BUG("%u tiers", config->n_tiers);
	b->arena = a;
	b->config = *config;
	b->free = NONE;
	for (uint32_t t = 0; t < BLOCKS_TIERS_MAX; t++)
		b->tier[t].oldest = b->tier[t].newest = NONE;
	b->n_slots = 1024;
	b->slot = arena_array(a, uint32_t, b->n_slots);
	return b;
}

/* ---- by hash ---- */

static size_t home(const struct blocks *b, uint64_t hash)
{
	return rng_mix(hash) & (b->n_slots - 1);
}

/* The slot of this hash, or the empty one where it would go. */
static size_t slot_of(const struct blocks *b, uint64_t hash)
{
	size_t s = home(b, hash);

	while (b->slot[s] && b->block.at[b->slot[s] - 1].hash != hash)
		s = (s + 1) & (b->n_slots - 1);
	return s;
}

static void grow_slots(struct blocks *b)
{
	const uint32_t *old = b->slot;
	size_t n_old = b->n_slots;

	b->n_slots *= 2;
	b->slot = arena_array(b->arena, uint32_t, b->n_slots);
	for (size_t s = 0; s < n_old; s++)
		if (old[s])
			b->slot[slot_of(b, b->block.at[old[s] - 1].hash)] = old[s];
}

/* Empties the slot and moves up what was pushed past it. */
static void clear_slot(struct blocks *b, size_t hole)
{
	size_t mask = b->n_slots - 1;

	for (size_t s = (hole + 1) & mask; b->slot[s]; s = (s + 1) & mask) {
		size_t from_home = (s - home(b, b->block.at[b->slot[s] - 1].hash)) & mask;
		if (from_home >= ((s - hole) & mask)) {
			b->slot[hole] = b->slot[s];
			hole = s;
		}
	}
	b->slot[hole] = 0;
}

/* ---- by age ---- */

static void take_out(struct blocks *b, uint32_t i)
{
	const struct block *x = &b->block.at[i];
	struct tier *t = &b->tier[x->tier];

	*(x->older == NONE ? &t->oldest : &b->block.at[x->older].newer) = x->newer;
	*(x->newer == NONE ? &t->newest : &b->block.at[x->newer].older) = x->older;
	t->n--;
}

static void put_in(struct blocks *b, uint32_t i, uint32_t tier)
{
	struct block *x = &b->block.at[i];
	struct tier *t = &b->tier[tier];

	x->tier = tier;
	x->older = t->newest;
	x->newer = NONE;
	*(x->older == NONE ? &t->oldest : &b->block.at[x->older].newer) = i;
	t->newest = i;
	t->n++;
}

/* ---- requests ---- */

static uint32_t new_block(struct blocks *b, uint64_t hash)
{
	uint32_t i = b->free;

	if (i != NONE) {
		b->free = b->block.at[i].older;
	} else {
		if (b->block.n == NONE)
			BUG("more than %u blocks", NONE);
		i = (uint32_t)b->block.n;
		VEC_PUSH(&b->block, b->arena, (struct block){0});
		if (b->block.n * 4 > b->n_slots * 3)
			grow_slots(b);
	}
	b->block.at[i].hash = hash;
	b->slot[slot_of(b, hash)] = i + 1;
	return i;
}

static void touch(struct blocks *b, uint64_t hash, bool hit, struct blocks_count *out)
{
	uint32_t held = b->slot[slot_of(b, hash)];

	if (!held) {
		out->computed++;
		put_in(b, new_block(b, hash), 0);
		return;
	}
	uint32_t tier = b->block.at[held - 1].tier;
	if (tier > 0 && hit) {
		out->promoted_bytes[tier] += b->config.block_bytes;
	} else if (tier > 0) {
		out->computed++;
		out->recomputed[tier]++;
	}
	take_out(b, held - 1);
	put_in(b, held - 1, 0);
}

/* What is too much for a tier moves on, oldest first. */
static void spill(struct blocks *b, struct blocks_count *out)
{
	for (uint32_t t = 0; t < b->config.n_tiers; t++) {
		while (b->tier[t].n > b->config.capacity_blocks[t]) {
			uint32_t i = b->tier[t].oldest;
			take_out(b, i);
			out->demoted_bytes[t] += b->config.block_bytes;
			if (t + 1 < b->config.n_tiers) {
				put_in(b, i, t + 1);
			} else {
				clear_slot(b, slot_of(b, b->block.at[i].hash));
				b->block.at[i].older = b->free;
				b->free = i;
			}
		}
	}
}

void blocks_request(struct blocks *b, const uint64_t *hash, size_t n, struct blocks_count *out)
{
	size_t n_hits = 0;

	*out = (struct blocks_count){.lookups = n};
	while (n_hits < n) {
		int tier = blocks_find(b, hash[n_hits]);
		if (tier < 0)
			break;
		out->hits[tier]++;
		n_hits++;
	}
	for (size_t i = n; i-- > 0;)
		touch(b, hash[i], i < n_hits, out);
	spill(b, out);
}

int blocks_find(const struct blocks *b, uint64_t hash)
{
	uint32_t held = b->slot[slot_of(b, hash)];

	return held ? (int)b->block.at[held - 1].tier : -1;
}

uint32_t blocks_number(const struct blocks *b, uint64_t hash)
{
	uint32_t held = b->slot[slot_of(b, hash)];

	if (!held)
		BUG("block %016llx is not held", (unsigned long long)hash);
	return held - 1;
}

uint64_t blocks_held(const struct blocks *b, uint32_t tier)
{
	return b->tier[tier].n;
}

void blocks_count_add(struct blocks_count *sum, const struct blocks_count *x)
{
	sum->lookups += x->lookups;
	sum->computed += x->computed;
	for (uint32_t t = 0; t < BLOCKS_TIERS_MAX; t++) {
		sum->hits[t] += x->hits[t];
		sum->recomputed[t] += x->recomputed[t];
		sum->promoted_bytes[t] += x->promoted_bytes[t];
		sum->demoted_bytes[t] += x->demoted_bytes[t];
	}
}
