#include "sim/exec/lower.h"

void lower_begin(struct lower *l, struct exec *x, const struct trace_step *step)
{
	const struct placement *p = x->placement;

	l->x = x;
	l->step = step;
	l->last = x->step_end;
	l->device = p->group[p->model->n_layer][MODEL_EMBED].part[0].spot.device;
}

void lower_move_to(struct lower *l, int device)
{
	const struct placement *p = l->x->placement;
	int from = p->machine->devices[l->device].memory, to = p->machine->devices[device].memory;
	double bytes = (double)l->step->n_tokens * p->model->hidden * l->hidden_elem_bytes;

	if (from != to) {
		l->last = exec_wait(l->x, l->crossing_s, l->last);
		l->last = exec_copy(l->x, from, to, bytes, true, l->last, 0);
	}
	l->device = device;
}

const struct trace_access *lower_sum_experts(const struct trace_access *a, const struct trace_access *end,
	double *n_hit, double *rows)
{
	int layer = a->layer;

	for (*n_hit = *rows = 0; a < end && a->kind == TRACE_EXPERT && a->layer == layer; a++) {
		*n_hit += 1;
		*rows += (double)a->tokens;
	}
	return a;
}
