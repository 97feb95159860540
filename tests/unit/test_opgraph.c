#include "sim/core/opgraph.h"

#include "tests/test.h"

static void no_callback(void *ctx, const struct op *op, struct op *freed)
{
	(void)ctx;
	ck_abort_msg("%u made %u ready", op->slot, freed->slot);
}

/* Who was made ready by whom, in the order of the calls. */
struct freed {
	uint32_t by[16], who[16];
	size_t n;
};

static void on_freed(void *ctx, const struct op *op, struct op *freed)
{
	struct freed *f = ctx;

	ck_assert_uint_lt(f->n, ARRAY_LEN(f->by));
	ck_assert_uint_eq(freed->pending, 1); /* called before the operation joins the ready list */
	f->by[f->n] = op->tag;
	f->who[f->n++] = freed->tag;
}

static void ignore(void *ctx, const struct op *op, struct op *freed)
{
	(void)ctx, (void)op, (void)freed;
}

static struct op *add(struct opgraph *g, uint32_t tag)
{
	struct op *op = opgraph_add(g, NULL, 0);

	op->tag = tag;
	return op;
}

/* Takes the first ready operation, which must be this one. */
static struct op *next_is(struct opgraph *g, uint32_t tag)
{
	struct op *op = opgraph_next_ready(g);

	ck_assert_ptr_nonnull(op);
	ck_assert_uint_eq(op->tag, tag);
	return op;
}

START_TEST(pending_counts_what_is_not_done)
{
	struct arena a;
	struct opgraph g;
	struct freed f = {0};

	arena_init(&a, NULL, NULL);
	opgraph_init(&g, 4, &a);
	struct op *x = add(&g, 1), *y = add(&g, 2), *z = add(&g, 3);
	ck_assert_uint_eq(z->pending, 1);
	opgraph_depend(&g, z, op_reference(x));
	ck_assert_uint_eq(z->pending, 2);
	opgraph_depend(&g, z, op_reference(y));
	opgraph_depend(&g, z, op_reference(x)); /* twice is allowed, and counts twice */
	ck_assert_uint_eq(z->pending, 4);
	opgraph_depend(&g, z, 0); /* nothing counts as done */
	ck_assert_uint_eq(z->pending, 4);
	ck_assert_int_eq(z->state, OP_PENDING);
	ck_assert_uint_eq(g.n_live, 3);

	ck_assert_ptr_null(opgraph_next_ready(&g)); /* all are held */
	opgraph_release(&g, z);
	ck_assert_uint_eq(z->pending, 3);
	opgraph_release(&g, y);
	opgraph_release(&g, x);
	next_is(&g, 2);
	next_is(&g, 1);
	ck_assert_ptr_null(opgraph_next_ready(&g));

	opgraph_finish(&g, x, no_callback, NULL);
	opgraph_recycle(&g, x);
	ck_assert_uint_eq(z->pending, 1);
	ck_assert_ptr_null(opgraph_next_ready(&g));
	opgraph_finish(&g, y, on_freed, &f);
	opgraph_recycle(&g, y);
	ck_assert_uint_eq(f.n, 1);
	ck_assert_uint_eq(f.by[0], 2);
	ck_assert_uint_eq(f.who[0], 3);
	ck_assert_ptr_eq(next_is(&g, 3), z);
	ck_assert_ptr_null(opgraph_next_ready(&g));
	ck_assert_uint_eq(g.n_live, 1);
	arena_release(&a);
}
END_TEST

START_TEST(a_held_operation_is_not_freed_by_others)
{
	/* The builder has not let go of y when x ends: x does not make it ready, the release does. */
	struct arena a;
	struct opgraph g;

	arena_init(&a, NULL, NULL);
	opgraph_init(&g, 1, &a);
	struct op *x = add(&g, 1), *y = add(&g, 2);
	opgraph_depend(&g, y, op_reference(x));
	opgraph_release(&g, x);
	next_is(&g, 1);
	opgraph_finish(&g, x, no_callback, NULL);
	opgraph_recycle(&g, x);
	ck_assert_ptr_null(opgraph_next_ready(&g));
	opgraph_release(&g, y);
	next_is(&g, 2);
	arena_release(&a);
}
END_TEST

START_TEST(ready_is_first_in_first_out)
{
	struct arena a;
	struct opgraph g;
	struct op *op[20];

	arena_init(&a, NULL, NULL);
	opgraph_init(&g, 2, &a);
	for (uint32_t i = 0; i < 20; i++)
		op[i] = add(&g, i);
	/* In the order of the releases, not of creation; taken and put in by turns. */
	for (uint32_t i = 0; i < 20; i++)
		opgraph_release(&g, op[i * 7 % 20]);
	for (uint32_t i = 0; i < 10; i++)
		next_is(&g, i * 7 % 20);
	struct op *late = add(&g, 100);
	opgraph_release(&g, late);
	for (uint32_t i = 10; i < 20; i++)
		next_is(&g, i * 7 % 20);
	next_is(&g, 100);
	ck_assert_ptr_null(opgraph_next_ready(&g));
	/* From empty again. */
	late = add(&g, 101);
	struct op *later = add(&g, 102);
	opgraph_release(&g, late);
	opgraph_release(&g, later);
	next_is(&g, 101);
	next_is(&g, 102);
	ck_assert_ptr_null(opgraph_next_ready(&g));
	arena_release(&a);
}
END_TEST

START_TEST(waiters_go_in_the_order_they_were_added)
{
	struct arena a;
	struct opgraph g;
	struct freed f = {0};
	static const uint32_t order[] = {4, 1, 3, 0, 2};
	struct op *w[5];

	arena_init(&a, NULL, NULL);
	opgraph_init(&g, 1, &a);
	struct op *x = add(&g, 99);
	for (uint32_t i = 0; i < 5; i++)
		w[i] = add(&g, i);
	for (uint32_t i = 0; i < 5; i++)
		opgraph_depend(&g, w[order[i]], op_reference(x));
	for (uint32_t i = 0; i < 5; i++)
		opgraph_release(&g, w[i]);
	opgraph_release(&g, x);
	next_is(&g, 99);
	opgraph_finish(&g, x, on_freed, &f);
	opgraph_recycle(&g, x);
	ck_assert_uint_eq(f.n, 5);
	for (uint32_t i = 0; i < 5; i++) {
		ck_assert_uint_eq(f.who[i], order[i]);
		next_is(&g, order[i]);
	}
	arena_release(&a);
}
END_TEST

START_TEST(a_reference_outlives_its_operation)
{
	struct arena a;
	struct opgraph g;

	arena_init(&a, NULL, NULL);
	opgraph_init(&g, 1, &a);
	ck_assert_ptr_null(opgraph_find(&g, 0)); /* before there is any slot */
	struct op *x = add(&g, 1);
	op_ref old = op_reference(x);
	ck_assert_uint_ne(old, 0); /* slot 0 as well */
	ck_assert_uint_eq(x->slot, 0);
	ck_assert_ptr_eq(opgraph_find(&g, old), x);
	opgraph_release(&g, x);
	next_is(&g, 1);
	opgraph_finish(&g, x, no_callback, NULL);
	ck_assert_ptr_eq(opgraph_find(&g, old), x); /* until it is recycled */
	opgraph_recycle(&g, x);
	ck_assert_ptr_null(opgraph_find(&g, old));

	/* The same slot, another operation: the old reference is done, the new one is not. */
	struct op *y = add(&g, 2);
	ck_assert_uint_eq(y->slot, x->slot);
	ck_assert_uint_ne(op_reference(y), old);
	ck_assert_ptr_null(opgraph_find(&g, old));
	ck_assert_ptr_eq(opgraph_find(&g, op_reference(y)), y);

	struct op *z = add(&g, 3);
	opgraph_depend(&g, z, old);
	ck_assert_uint_eq(z->pending, 1);
	opgraph_release(&g, z);
	next_is(&g, 3);
	/* And y frees nobody: no edge was left on the slot. */
	opgraph_release(&g, y);
	next_is(&g, 2);
	opgraph_finish(&g, y, no_callback, NULL);
	arena_release(&a);
}
END_TEST

START_TEST(hops_are_copied)
{
	/* More operations than a chunk has, each with its own path: none writes over another's. */
	struct arena a;
	struct opgraph g;

	arena_init(&a, NULL, NULL);
	opgraph_init(&g, 3, &a);
	ck_assert_int_eq(opgraph_max_hops(&g), 4);
	for (uint32_t i = 0; i < 3 * OPGRAPH_CHUNK; i++) {
		struct maxmin_hop hop[4];
		int n = (int)(i % 5);
		for (int h = 0; h < n; h++)
			hop[h] = (struct maxmin_hop){(int)(i * 4) + h, i + h + 0.2385};
		struct op *op = opgraph_add(&g, hop, n);
		ck_assert_uint_eq(op->slot, i); /* the lowest slot first */
		ck_assert_uint_eq(op->sequence, i);
		memset(hop, 0xa5, sizeof(hop));
	}
	ck_assert_uint_eq(g.n_live, 3 * OPGRAPH_CHUNK);
	for (uint32_t i = 0; i < 3 * OPGRAPH_CHUNK; i++) {
		const struct op *op = opgraph_at(&g, i);
		ck_assert_int_eq(op->flow.n_hops, i % 5);
		for (int h = 0; h < op->flow.n_hops; h++) {
			ck_assert_int_eq(op->flow.hop[h].resource, (int)(i * 4) + h);
			ck_assert(op->flow.hop[h].weight == i + h + 0.2385);
		}
	}
	arena_release(&a);
}
END_TEST

START_TEST(edges_and_slots_are_recycled)
{
	/* A diamond that goes on: two at a time wait for the two before. Memory stops growing at once. */
	struct arena a;
	struct opgraph g;
	op_ref last[2] = {0, 0};
	size_t early = 0;
	uint32_t edges = 0;

	arena_init(&a, NULL, NULL);
	opgraph_init(&g, 2, &a);
	for (uint32_t step = 0; step < 50000; step++) {
		op_ref now[2];
		for (uint32_t i = 0; i < 2; i++) {
			struct op *op = add(&g, 2 * step + i);
			now[i] = op_reference(op);
			opgraph_depend(&g, op, last[0]);
			opgraph_depend(&g, op, last[1]);
			opgraph_release(&g, op);
			ck_assert_uint_eq(op->pending, step ? 2 : 0);
		}
		for (uint32_t i = 0; i < 2 && step; i++) {
			struct op *op = next_is(&g, 2 * (step - 1) + i);
			opgraph_finish(&g, op, ignore, NULL);
			opgraph_recycle(&g, op);
			ck_assert_ptr_null(opgraph_find(&g, last[i]));
		}
		memcpy(last, now, sizeof(last));
		ck_assert_uint_eq(g.n_live, 2);
		if (step == 10) {
			early = a.total_bytes;
			edges = g.n_edges;
		}
	}
	ck_assert_uint_eq(a.total_bytes, early);
	ck_assert_uint_eq(g.n_slots, OPGRAPH_CHUNK);
	ck_assert_uint_eq(g.n_edges, edges);
	ck_assert_uint_le(edges, 4);
	ck_assert_uint_eq(g.next_sequence, 100000);
	arena_release(&a);
}
END_TEST

START_TEST(an_edge_list_comes_back_whole)
{
	/* One operation frees 3,000 others (more than the first table holds), again and again. */
	struct arena a;
	struct opgraph g;
	size_t early = 0;

	arena_init(&a, NULL, NULL);
	opgraph_init(&g, 1, &a);
	for (int round = 0; round < 20; round++) {
		struct op *x = add(&g, 4000);
		for (uint32_t i = 0; i < 3000; i++) {
			struct op *w = add(&g, i);
			opgraph_depend(&g, w, op_reference(x));
			opgraph_release(&g, w);
		}
		ck_assert_uint_eq(g.n_edges, 3000);
		opgraph_release(&g, x);
		next_is(&g, 4000);
		opgraph_finish(&g, x, ignore, NULL);
		opgraph_recycle(&g, x);
		for (uint32_t i = 0; i < 3000; i++) {
			struct op *w = next_is(&g, i);
			opgraph_finish(&g, w, no_callback, NULL);
			opgraph_recycle(&g, w);
		}
		ck_assert_uint_eq(g.n_live, 0);
		if (round == 0)
			early = a.total_bytes;
	}
	ck_assert_uint_eq(a.total_bytes, early);
	arena_release(&a);
}
END_TEST

TEST_MAIN("opgraph", pending_counts_what_is_not_done, a_held_operation_is_not_freed_by_others,
	ready_is_first_in_first_out, waiters_go_in_the_order_they_were_added,
	a_reference_outlives_its_operation, hops_are_copied, edges_and_slots_are_recycled,
	an_edge_list_comes_back_whole)
