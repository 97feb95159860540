/*
 * unit.h - what runs operations: a compute unit or a copy engine with k places and a FIFO in front.
 *
 *	ready ops ──> [ | | | ] FIFO ──> (place 1) … (place k)
 *
 * A stream is weaker: operations of one stream run in the order of their creation, each after the one
 * before it is done. It is nothing but a dependency on the last operation added (sim_stream_add).
 */
#ifndef SIM_CORE_UNIT_H
#define SIM_CORE_UNIT_H

#include "sim/core/opgraph.h"

struct unit {
	const char *name;
	uint32_t places, used;
	uint32_t head, tail; /* FIFO of slots; OP_NONE when empty */
};

void unit_init(struct unit *u, const char *name, uint32_t places);
/* True when op got a place; else it was queued. */
bool unit_enter(struct unit *u, struct opgraph *g, struct op *op);
/* Gives back a place; returns the operation that takes it over, or NULL. */
struct op *unit_leave(struct unit *u, struct opgraph *g);

#endif
