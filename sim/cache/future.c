#include "sim/cache/future.h"

#include "base/units.h"
#include "base/vec.h"

#define PIECE 65536 /* lookups: grown by pieces, for a copy would need twice the memory */

struct future {
	struct arena *arena;
	struct {
		VEC(uint32_t *);
	} piece;            /* of next: batch + 1 of the item's next lookup; 0: none */
	uint64_t *last;     /* by item: its last lookup + 1; 0: none yet */
	uint32_t *next;     /* by item, second pass */
	uint32_t n_items;
	uint64_t n, n_batches;
	uint64_t at;        /* second pass: lookups so far */
	uint64_t limit_bytes;
};

struct future *future_new(uint32_t n_items, uint64_t limit_bytes, struct arena *a)
{
	struct future *f = arena_new(a, struct future);

	f->arena = a;
	f->n_items = n_items;
	f->limit_bytes = limit_bytes;
	f->last = arena_array(a, uint64_t, n_items);
	f->next = arena_array(a, uint32_t, n_items);
	return f;
}

static uint64_t bytes_for(uint64_t n)
{
	return (n + PIECE - 1) / PIECE * PIECE * sizeof(uint32_t);
}

void future_add(struct future *f, uint32_t item, uint64_t batch)
{
	uint64_t last = f->last[item];

	f->n_batches = batch + 1;
	if (bytes_for(f->n + 1) <= f->limit_bytes) {
		if (f->n % PIECE == 0)
			VEC_PUSH(&f->piece, f->arena, arena_array(f->arena, uint32_t, PIECE));
		if (last)
			f->piece.at[(last - 1) / PIECE][(last - 1) % PIECE] = (uint32_t)(batch + 1);
		f->last[item] = f->n + 1;
	}
	f->n++;
}

int future_check(const struct future *f, struct err *err)
{
	char need[32];

	if (f->n_batches >= UINT32_MAX)
		return err_set(err, ERR_INPUT, "belady takes at most %u batches; this trace has %llu", UINT32_MAX - 1,
			(unsigned long long)f->n_batches);
	if (bytes_for(f->n) <= f->limit_bytes)
		return 0;
	return err_set(err, ERR_INPUT, "belady needs %s for the future of %llu lookups; give --memory",
		units_format(need, sizeof(need), (double)bytes_for(f->n), UNIT_BYTES), (unsigned long long)f->n);
}

void future_rewind(struct future *f)
{
	f->at = 0;
}

void future_advance(struct future *f, uint32_t item)
{
	f->next[item] = f->piece.at[f->at / PIECE][f->at % PIECE];
	f->at++;
}

uint64_t future_next(void *future, uint32_t item, uint64_t batch)
{
	const struct future *f = future;

	(void)batch;
	return f->next[item] ? f->next[item] - 1 : UINT64_MAX;
}
