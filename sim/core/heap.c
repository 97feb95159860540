#include "sim/core/heap.h"

#include <string.h>

#define ARITY 4

static inline bool before(const struct heap_entry *a, const struct heap_entry *b)
{
	if (a->time != b->time)
		return a->time < b->time;
	if (a->priority != b->priority)
		return a->priority < b->priority;
	return a->sequence < b->sequence;
}

void heap_init(struct heap *h, struct arena *a)
{
	*h = (struct heap){.arena = a};
}

static void grow(struct heap *h, uint32_t slot)
{
	uint32_t cap = h->cap ? h->cap : 256;

	while (cap <= slot)
		cap *= 2;

	struct heap_entry *at = arena_array(h->arena, struct heap_entry, cap);
	uint32_t *place = arena_array(h->arena, uint32_t, cap);
	if (h->cap) {
		memcpy(at, h->at, h->n * sizeof(*at));
		memcpy(place, h->place, h->cap * sizeof(*place));
	}
	h->at = at;
	h->place = place;
	h->cap = cap;
}

static inline void put(struct heap *h, uint32_t i, struct heap_entry e)
{
	h->at[i] = e;
	h->place[e.slot] = i + 1;
}

static void sift_up(struct heap *h, uint32_t i, struct heap_entry e)
{
	while (i > 0) {
		uint32_t parent = (i - 1) / ARITY;
		if (!before(&e, &h->at[parent]))
			break;
		put(h, i, h->at[parent]);
		i = parent;
	}
	put(h, i, e);
}

static void sift_down(struct heap *h, uint32_t i, struct heap_entry e)
{
	for (;;) {
		uint32_t first = ARITY * i + 1;
		if (first >= h->n)
			break;
		uint32_t last = first + ARITY < h->n ? first + ARITY : h->n;
		uint32_t best = first;
		for (uint32_t c = first + 1; c < last; c++)
			if (before(&h->at[c], &h->at[best]))
				best = c;
		if (!before(&h->at[best], &e))
			break;
		put(h, i, h->at[best]);
		i = best;
	}
	put(h, i, e);
}

/* Places e at position i, whose old entry is gone, wherever the order wants it. */
static void settle(struct heap *h, uint32_t i, struct heap_entry e)
{
	if (i > 0 && before(&e, &h->at[(i - 1) / ARITY]))
		sift_up(h, i, e);
	else
		sift_down(h, i, e);
}

void heap_set(struct heap *h, uint32_t slot, sim_time time, int32_t priority, uint64_t sequence)
{
	struct heap_entry e = {time, sequence, priority, slot};

	if (slot >= h->cap)
		grow(h, slot);
	if (h->place[slot])
		settle(h, h->place[slot] - 1, e);
	else
		sift_up(h, h->n++, e);
}

static void take(struct heap *h, uint32_t i)
{
	struct heap_entry last = h->at[--h->n];

	h->place[h->at[i].slot] = 0;
	if (i < h->n)
		settle(h, i, last);
}

void heap_remove(struct heap *h, uint32_t slot)
{
	if (slot < h->cap && h->place[slot])
		take(h, h->place[slot] - 1);
}

struct heap_entry heap_pop(struct heap *h)
{
	struct heap_entry top = h->at[0];

	take(h, 0);
	return top;
}
