#include "sim/core/unit.h"

void unit_init(struct unit *u, const char *name, uint32_t places)
{
	*u = (struct unit){.name = name, .places = places, .head = OP_NONE, .tail = OP_NONE};
}

bool unit_enter(struct unit *u, struct opgraph *g, struct op *op)
{
	if (u->used < u->places) {
		u->used++;
		return true;
	}
	op->state = OP_QUEUED;
	op->next = OP_NONE;
	if (u->head == OP_NONE)
		u->head = op->slot;
	else
		opgraph_at(g, u->tail)->next = op->slot;
	u->tail = op->slot;
	return false;
}

struct op *unit_leave(struct unit *u, struct opgraph *g)
{
	if (u->head == OP_NONE) {
		u->used--;
		return NULL;
	}

	struct op *op = opgraph_at(g, u->head);
	u->head = op->next;
	return op;
}
