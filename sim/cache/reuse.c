#include "sim/cache/reuse.h"

#include <string.h>

#include "base/vec.h"

struct use {
	uint64_t mark; /* the batch that looked it up last, as in cache.c: odd while it lasts */
	uint32_t slot; /* of the last use, from 1; 0: never used */
};

struct reuse {
	struct arena *arena;
	struct {
		VEC(struct use);
	} item;
	struct {
		VEC(uint64_t);
	} count;             /* lookups by distance */
	struct {
		VEC(uint32_t);
	} touched;           /* by the batch at hand, latest use first */
	uint64_t *in_use;    /* a bit a slot, also set for those not used yet: so taking one costs nothing */
	uint32_t *tree;      /* Fenwick, from 1: bits set in each word of in_use */
	uint32_t *owner;     /* slot -> item, if in use */
	uint32_t n_slots, next_slot; /* n_slots: a multiple of 64; slot 0 is nobody's */
	uint32_t batch_slot; /* the batch before has the slots from here on */
	uint64_t n_unique, n_lookups;
	uint64_t mark;
};

struct reuse *reuse_new(struct arena *a)
{
	struct reuse *r = arena_new(a, struct reuse);

	r->arena = a;
	r->next_slot = r->batch_slot = 1;
	return r;
}

/* ---- slots ---- */

/* Slots in use from 0 to this one. Slot 0 counts. */
static uint32_t in_use_up_to(const struct reuse *r, uint32_t slot)
{
	uint32_t n = (uint32_t)__builtin_popcountll(r->in_use[slot / 64] << (63 - slot % 64));

	for (uint32_t w = slot / 64; w; w &= w - 1)
		n += r->tree[w];
	return n;
}

static void use_up(struct reuse *r, uint32_t slot)
{
	r->in_use[slot / 64] &= ~(UINT64_C(1) << slot % 64);
	for (uint32_t w = slot / 64 + 1; w <= r->n_slots / 64; w += w & -w)
		r->tree[w]--;
}

/* Numbers the slots in use anew, from 1, into r->owner out of `owner`, which may be the same. */
static void renumber(struct reuse *r, const uint32_t *owner)
{
	uint32_t n = 0, batch_slot = 0;

	for (uint32_t s = 1; s < r->next_slot; s++) {
		if (s == r->batch_slot)
			batch_slot = n + 1;
		if (!(r->in_use[s / 64] >> s % 64 & 1))
			continue;
		r->owner[++n] = owner[s];
		r->item.at[owner[s]].slot = n;
	}
	r->batch_slot = batch_slot ? batch_slot : n + 1;
	r->next_slot = n + 1;
}

/* Room for n more slots. */
static void make_room(struct reuse *r, size_t n)
{
	const uint32_t *owner = r->owner;
	uint64_t n_slots = r->n_slots;

	if (r->next_slot + n <= n_slots)
		return;
	if (r->n_unique * 2 + n >= n_slots) {
		n_slots = ((r->n_unique * 2 + n) * 2 + 64) / 64 * 64;
		if (n_slots > UINT32_MAX)
			BUG("%llu different items", (unsigned long long)r->n_unique);
		r->owner = arena_array(r->arena, uint32_t, n_slots);
	}
	renumber(r, owner);
	if (n_slots > r->n_slots) {
		r->n_slots = (uint32_t)n_slots;
		r->in_use = arena_array(r->arena, uint64_t, n_slots / 64);
		r->tree = arena_array(r->arena, uint32_t, n_slots / 64 + 1);
	}
	memset(r->in_use, 0xff, n_slots / 8);
	for (uint32_t w = 1; w <= n_slots / 64; w++)
		r->tree[w] = (w & -w) * 64;
}

static void touch(struct reuse *r, uint32_t item)
{
	struct use *u = &r->item.at[item];

	if (u->slot)
		use_up(r, u->slot);
	else
		r->n_unique++;
	u->slot = r->next_slot++;
	r->owner[u->slot] = item;
}

static struct use *use_of(struct reuse *r, uint32_t item)
{
	if (item >= r->item.n) {
		VEC_RESERVE(&r->item, r->arena, (size_t)item + 1);
		r->item.n = (size_t)item + 1;
	}
	return &r->item.at[item];
}

/* ---- lookups ---- */

static uint64_t distance(const struct reuse *r, const struct use *u)
{
	return u->slot ? r->n_unique + 1 - in_use_up_to(r, u->slot) : REUSE_NEVER;
}

static void count(struct reuse *r, uint64_t d)
{
	r->n_lookups++;
	if (d == REUSE_NEVER)
		return;
	if (d >= r->count.n) {
		VEC_RESERVE(&r->count, r->arena, d + 1);
		r->count.n = d + 1;
	}
	r->count.at[d]++;
}

void reuse_batch(struct reuse *r, const uint32_t *use, size_t n)
{
	make_room(r, n);
	r->mark++;
	for (size_t k = 0; k < n; k++) {
		struct use *u = use_of(r, use[k]);
		if (u->mark == r->mark)
			continue;
		u->mark = r->mark;
		count(r, u->slot >= r->batch_slot ? 0 : distance(r, u));
	}
	r->touched.n = 0;
	for (size_t k = n; k-- > 0;) {
		struct use *u = &r->item.at[use[k]];
		if (u->mark != r->mark)
			continue;
		u->mark = r->mark + 1;
		VEC_PUSH(&r->touched, r->arena, use[k]);
	}
	r->mark++;
	r->batch_slot = r->next_slot;
	for (size_t k = r->touched.n; k-- > 0;)
		touch(r, r->touched.at[k]);
}

void reuse_request(struct reuse *r, const uint32_t *block, size_t n)
{
	uint64_t worst = 0;

	make_room(r, n);
	for (size_t k = 0; k < n; k++) {
		uint64_t d = worst == REUSE_NEVER ? worst : distance(r, use_of(r, block[k]));
		worst = d > worst ? d : worst;
		count(r, worst);
	}
	for (size_t k = n; k-- > 0;) {
		use_of(r, block[k]);
		touch(r, block[k]);
	}
}

/* ---- what came out ---- */

uint64_t reuse_lookups(const struct reuse *r)
{
	return r->n_lookups;
}

uint64_t reuse_unique(const struct reuse *r)
{
	return r->n_unique;
}

uint64_t reuse_hits(const struct reuse *r, uint64_t n)
{
	uint64_t hits = 0;

	for (uint64_t d = 0; d < n && d < r->count.n; d++)
		hits += r->count.at[d];
	return hits;
}

uint64_t reuse_size_for(const struct reuse *r, uint64_t hits)
{
	uint64_t sum = 0;

	for (uint64_t d = 0; d < r->count.n; d++) {
		sum += r->count.at[d];
		if (sum >= hits)
			return d + 1;
	}
	return hits ? REUSE_NEVER : 0;
}
