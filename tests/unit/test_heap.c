#include "sim/core/heap.h"

#include <gsl/gsl_rng.h>

#include "base/rng.h"
#include "tests/test.h"

/* Pops the first entry, which must be this one. */
static void assert_pop(struct heap *h, sim_time time, int32_t priority, uint64_t sequence, uint32_t slot)
{
	struct heap_entry top = *heap_top(h), e = heap_pop(h);

	ck_assert_int_eq(e.time, time);
	ck_assert_int_eq(e.priority, priority);
	ck_assert_uint_eq(e.sequence, sequence);
	ck_assert_uint_eq(e.slot, slot);
	ck_assert_uint_eq(top.slot, slot);
}

START_TEST(time_then_priority_then_sequence)
{
	/* Each of these differs from the one before it in the deciding member alone, by the least possible;
	   the members behind it point the other way. */
	static const struct heap_entry order[] = {
		{INT64_MIN, 99, INT32_MAX, 4},
		{0, UINT64_MAX, INT32_MAX, 11},
		{2385000000000, 7, INT32_MIN, 5},
		{2385000000000, 3, -1, 9},
		{2385000000000, 2, 0, 6},
		{2385000000000, 5, 0, 0},
		{2385000000000, 1, 1, 10},
		{2385000000000, 0, INT32_MAX, 8},
		{2385000000001, 0, INT32_MIN, 2},
		{INT64_MAX - 1, 8, 0, 7},
		{INT64_MAX, 6, -5, 3},
		{INT64_MAX, 4, 0, 1},
	};
	const size_t n = ARRAY_LEN(order);
	struct arena a;

	arena_init(&a, NULL, NULL);
	/* Put in forwards, backwards and in strides: the order that comes out does not depend on it. */
	static const size_t strides[] = {1, 11, 5, 7};
	for (size_t s = 0; s < ARRAY_LEN(strides); s++) {
		size_t stride = strides[s];
		struct heap h;
		heap_init(&h, &a);
		ck_assert(heap_empty(&h));
		for (size_t i = 0; i < n; i++) {
			const struct heap_entry *e = &order[(i + 1) * stride % n];
			heap_set(&h, e->slot, e->time, e->priority, e->sequence);
		}
		for (size_t i = 0; i < n; i++)
			assert_pop(&h, order[i].time, order[i].priority, order[i].sequence, order[i].slot);
		ck_assert(heap_empty(&h));
	}
	arena_release(&a);
}
END_TEST

START_TEST(setting_again_moves)
{
	struct arena a;
	struct heap h;

	arena_init(&a, NULL, NULL);
	heap_init(&h, &a);
	for (uint32_t i = 0; i < 40; i++)
		heap_set(&h, i, 1000 + 10 * (sim_time)i, 0, i);

	heap_set(&h, 39, 999, 0, 39);   /* the last to the front */
	heap_set(&h, 0, 1201, 0, 0);    /* the first into the middle, just behind slot 20 */
	heap_set(&h, 7, 5000, 0, 7);    /* to the end */
	heap_set(&h, 30, 1100, -1, 30); /* into a tie with slot 10, before it by priority */
	heap_set(&h, 31, 1100, 0, 31);  /* behind it by sequence */
	heap_set(&h, 12, 1120, 0, 12);  /* where it was */
	ck_assert_uint_eq(h.n, 40);

	assert_pop(&h, 999, 0, 39, 39);
	for (uint32_t i = 1; i < 39; i++) {
		if (i == 7 || i == 30 || i == 31)
			continue;
		if (i == 10)
			assert_pop(&h, 1100, -1, 30, 30);
		assert_pop(&h, 1000 + 10 * (sim_time)i, 0, i, i);
		if (i == 10)
			assert_pop(&h, 1100, 0, 31, 31);
		if (i == 20)
			assert_pop(&h, 1201, 0, 0, 0);
	}
	assert_pop(&h, 5000, 0, 7, 7);
	ck_assert(heap_empty(&h));
	arena_release(&a);
}
END_TEST

START_TEST(removing)
{
	struct arena a;
	struct heap h;

	arena_init(&a, NULL, NULL);
	heap_init(&h, &a);
	heap_remove(&h, 12345); /* before there is any room */
	heap_set(&h, 3, 2385, 0, 3);
	heap_remove(&h, 2); /* has none */
	ck_assert_uint_eq(h.n, 1);
	heap_remove(&h, 3); /* the only one */
	ck_assert(heap_empty(&h));
	heap_remove(&h, 3); /* twice */
	ck_assert(heap_empty(&h));

	/* Each lies where it is put: slot i under slot (i - 1) / 4. When 17 goes, the last one, 21 (time 15), fills
	   its place under slot 4 (time 100), and must go up from there. Then the front and the end go. */
	static const sim_time time[22] = {1, 10, 60, 70, 100, 11, 12, 13, 14, 61, 62, 63, 64, 71, 72, 73, 74, 101,
		102, 103, 104, 15};
	for (uint32_t i = 0; i < 22; i++) {
		heap_set(&h, i, time[i], 0, i);
		ck_assert_uint_eq(h.at[i].slot, i);
	}
	heap_remove(&h, 17);
	ck_assert_uint_eq(h.at[4].slot, 21);
	ck_assert_uint_eq(h.at[17].slot, 4);
	heap_remove(&h, 0);
	heap_remove(&h, 20);
	ck_assert_uint_eq(h.n, 19);
	sim_time last = 0;
	uint32_t seen = 0;
	while (!heap_empty(&h)) {
		struct heap_entry e = heap_pop(&h);
		ck_assert_int_ge(e.time, last);
		ck_assert_int_eq(e.time, time[e.slot]);
		seen |= UINT32_C(1) << e.slot;
		last = e.time;
	}
	ck_assert_uint_eq(seen, 0x3fffff & ~(UINT32_C(1) << 17 | 1 | UINT32_C(1) << 20));
	/* A slot that was popped or removed may come back. */
	heap_set(&h, 17, 7, 0, 100);
	heap_set(&h, 4, 6, 0, 101);
	assert_pop(&h, 6, 0, 101, 4);
	assert_pop(&h, 7, 0, 100, 17);
	arena_release(&a);
}
END_TEST

START_TEST(far_slots_grow_it)
{
	struct arena a;
	struct heap h;

	arena_init(&a, NULL, NULL);
	heap_init(&h, &a);
	for (uint32_t i = 0; i < 18; i++)
		heap_set(&h, 1u << i, -(sim_time)i, 0, i);
	heap_set(&h, 0, 1, 0, 99);
	ck_assert_uint_eq(h.n, 19);
	for (uint32_t i = 18; i-- > 0;)
		assert_pop(&h, -(sim_time)i, 0, i, 1u << i);
	assert_pop(&h, 1, 0, 99, 0);
	arena_release(&a);
}
END_TEST

/* What a heap is, written as plainly as possible. */
struct naive {
	struct heap_entry at[300];
	bool there[300];
	uint32_t n;
};

static uint32_t naive_first(const struct naive *v)
{
	uint32_t best = UINT32_MAX;

	for (uint32_t i = 0; i < ARRAY_LEN(v->at); i++) {
		const struct heap_entry *e = &v->at[i], *b = &v->at[best == UINT32_MAX ? 0 : best];
		if (!v->there[i])
			continue;
		if (best == UINT32_MAX || e->time < b->time ||
			(e->time == b->time && e->priority < b->priority) ||
			(e->time == b->time && e->priority == b->priority && e->sequence < b->sequence))
			best = i;
	}
	return best;
}

START_TEST(as_a_naive_one)
{
	static struct naive v;
	struct arena a;
	struct heap h;
	gsl_rng *r = rng_new(2385, 0, RNG_TEST);
	uint64_t sequence = 0;
	unsigned long most = 0;

	arena_init(&a, NULL, NULL);
	heap_init(&h, &a);
	for (int step = 0; step < 10000; step++) {
		unsigned long what = gsl_rng_uniform_int(r, 100);
		/* It fills up in the first half of each 2,500 steps and runs low in the second. */
		unsigned long set = step % 2500 < 1250 ? 75 : 40;

		if (what < set) {
			uint32_t slot = (uint32_t)gsl_rng_uniform_int(r, ARRAY_LEN(v.at));
			/* Few times and priorities, for ties; moved entries keep their sequence. */
			sim_time time = (sim_time)gsl_rng_uniform_int(r, 20) * 2385000000001;
			int32_t priority = (int32_t)gsl_rng_uniform_int(r, 3) - 1;
			uint64_t seq = v.there[slot] ? v.at[slot].sequence : sequence++ * 7919 % 1000003;
			heap_set(&h, slot, time, priority, seq);
			v.n += !v.there[slot];
			v.there[slot] = true;
			v.at[slot] = (struct heap_entry){time, seq, priority, slot};
		} else if (what < set + 8) {
			uint32_t slot = (uint32_t)gsl_rng_uniform_int(r, ARRAY_LEN(v.at));
			heap_remove(&h, slot);
			v.n -= v.there[slot];
			v.there[slot] = false;
		} else if (v.n) {
			uint32_t first = naive_first(&v);
			assert_pop(&h, v.at[first].time, v.at[first].priority, v.at[first].sequence, first);
			v.there[first] = false;
			v.n--;
		}
		ck_assert_uint_eq(h.n, v.n);
		ck_assert_int_eq(heap_empty(&h), v.n == 0);
		if (v.n) {
			ck_assert_uint_eq(heap_top(&h)->slot, naive_first(&v));
			most = v.n > most ? v.n : most;
		}
	}
	ck_assert_uint_gt(most, 150); /* four levels deep */
	gsl_rng_free(r);
	arena_release(&a);
}
END_TEST

TEST_MAIN("heap", time_then_priority_then_sequence, setting_again_moves, removing, far_slots_grow_it,
	as_a_naive_one)
