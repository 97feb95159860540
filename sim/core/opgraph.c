#include "sim/core/opgraph.h"

#include <string.h>

void opgraph_init(struct opgraph *g, int max_hops, struct arena *a)
{
	*g = (struct opgraph){
		.arena = a,
		.first_free = OP_NONE,
		.free_edge = OP_NONE,
		.ready_head = OP_NONE,
		.ready_tail = OP_NONE,
	};
	while (opgraph_max_hops(g) < max_hops)
		g->hop_shift++;
}

static void add_chunk(struct opgraph *g)
{
	if (g->n_chunks == g->chunks_cap) {
		uint32_t cap = g->chunks_cap ? 2 * g->chunks_cap : 16;
		struct op **chunk = arena_array(g->arena, struct op *, cap);
		if (g->n_chunks)
			memcpy(chunk, g->chunk, g->n_chunks * sizeof(*chunk));
		g->chunk = chunk;
		g->chunks_cap = cap;
	}

	struct op *op = arena_array(g->arena, struct op, OPGRAPH_CHUNK);
	struct maxmin_hop *hop =
		arena_array(g->arena, struct maxmin_hop, (size_t)OPGRAPH_CHUNK << g->hop_shift);
	g->chunk[g->n_chunks++] = op;
	/* Onto the free list so that the lowest slot comes off first. */
	for (uint32_t i = OPGRAPH_CHUNK; i-- > 0;) {
		op[i].slot = g->n_slots + i;
		op[i].generation = 1;
		op[i].flow.hop = hop + ((size_t)i << g->hop_shift);
		op[i].next = g->first_free;
		g->first_free = op[i].slot;
	}
	g->n_slots += OPGRAPH_CHUNK;
}

struct op *opgraph_add(struct opgraph *g, const struct maxmin_hop *hop, int n_hops)
{
	if (n_hops > opgraph_max_hops(g))
		BUG("an operation crosses %d resources; the graph was made for %d", n_hops, opgraph_max_hops(g));
	if (g->first_free == OP_NONE)
		add_chunk(g);

	struct op *op = opgraph_at(g, g->first_free);
	g->first_free = op->next;
	g->n_live++;
	if (n_hops)
		memcpy((struct maxmin_hop *)op->flow.hop, hop, (size_t)n_hops * sizeof(*hop));
	op->flow.n_hops = n_hops;
	op->sequence = g->next_sequence++;
	op->state = OP_PENDING;
	op->pending = 1;
	op->first_edge = op->last_edge = OP_NONE;
	op->next = OP_NONE;
	return op;
}

static uint32_t new_edge(struct opgraph *g)
{
	if (g->free_edge != OP_NONE) {
		uint32_t e = g->free_edge;
		g->free_edge = g->edge[e].next;
		return e;
	}
	if (g->n_edges == g->edges_cap) {
		uint32_t cap = g->edges_cap ? 2 * g->edges_cap : 1024;
		struct op_edge *edge = arena_array(g->arena, struct op_edge, cap);
		if (g->n_edges)
			memcpy(edge, g->edge, g->n_edges * sizeof(*edge));
		g->edge = edge;
		g->edges_cap = cap;
	}
	return g->n_edges++;
}

void opgraph_depend(struct opgraph *g, struct op *after, op_ref before)
{
	struct op *op = opgraph_find(g, before);

	if (!op)
		return;

	/* At the end of the list, so that waiters are released in the order they were added. */
	uint32_t e = new_edge(g);
	g->edge[e] = (struct op_edge){after->slot, OP_NONE};
	if (op->first_edge == OP_NONE)
		op->first_edge = e;
	else
		g->edge[op->last_edge].next = e;
	op->last_edge = e;
	after->pending++;
}

void opgraph_release(struct opgraph *g, struct op *op)
{
	if (--op->pending)
		return;
	op->next = OP_NONE;
	if (g->ready_head == OP_NONE)
		g->ready_head = op->slot;
	else
		opgraph_at(g, g->ready_tail)->next = op->slot;
	g->ready_tail = op->slot;
}

struct op *opgraph_next_ready(struct opgraph *g)
{
	if (g->ready_head == OP_NONE)
		return NULL;

	struct op *op = opgraph_at(g, g->ready_head);
	g->ready_head = op->next;
	return op;
}

void opgraph_finish(struct opgraph *g, struct op *op, opgraph_released_fn *released, void *ctx)
{
	if (op->first_edge == OP_NONE)
		return;
	for (uint32_t e = op->first_edge; e != OP_NONE; e = g->edge[e].next) {
		struct op *waiter = opgraph_at(g, g->edge[e].to);
		if (waiter->pending == 1)
			released(ctx, op, waiter);
		opgraph_release(g, waiter);
	}
	g->edge[op->last_edge].next = g->free_edge;
	g->free_edge = op->first_edge;
}

void opgraph_recycle(struct opgraph *g, struct op *op)
{
	op->state = OP_FREE;
	op->generation++;
	op->next = g->first_free;
	g->first_free = op->slot;
	g->n_live--;
}
