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
		enum exec_of before = exec_moves(l->x, EXEC_HIDDEN);
		l->last = exec_wait(l->x, l->crossing_s, l->last);
		l->last = exec_copy(l->x, from, to, bytes, true, l->last, 0);
		exec_moves(l->x, before);
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

void lower_walk(struct lower *l, void *state, const struct lower_ops *ops)
{
	const struct placement *p = l->x->placement;
	const struct trace_access *a = l->step->access, *end = a + l->step->n_access;

	while (a < end) {
		int layer = a->layer == MODEL_NO_LAYER ? (int)p->model->n_layer : a->layer;
		enum model_group group = (enum model_group)a->group;
		const struct place_group *g = &p->group[layer][group];
		double n_hit, rows = (double)a->tokens;

		exec_label(l->x, a->layer, group);
		switch ((enum trace_kind)a->kind) {
		case TRACE_WEIGHTS:
			if (group == MODEL_EMBED)
				ops->group(state, g, group, rows < p->model->vocab ? rows / p->model->vocab : 1, 0, 1);
			else
				ops->group(state, g, group, 1, 2 * rows, 1);
			a++;
			break;
		case TRACE_EXPERT:
			a = lower_sum_experts(a, end, &n_hit, &rows);
			ops->group(state, g, group, n_hit / p->model->layers[layer].n_expert,
				2 * rows / p->model->layers[layer].n_expert, n_hit);
			break;
		case TRACE_KV_READ:
			exec_moves(l->x, EXEC_CACHE);
			ops->attention(state, a++);
			break;
		case TRACE_KV_WRITE:
			a++;
			break;
		}
	}
}
