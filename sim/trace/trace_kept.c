#include "sim/trace/trace_kept.h"

#include <string.h>

static int kept_step(struct trace_cursor *c, uint64_t index, struct trace_step *step, struct err *err)
{
	struct trace_kept *k = c->trace->data;

	for (size_t i = 0; i < k->steps.n; i++) {
		if (k->steps.at[i].index == index) {
			*step = k->steps.at[i];
			return 0;
		}
	}
	if (trace_step_get(&k->source, index, step, err))
		return -1;
	struct trace_access *access = arena_array(&k->arena, struct trace_access, step->n_access);
	memcpy(access, step->access, step->n_access * sizeof(*access));
	step->access = access;
	VEC_PUSH(&k->steps, &k->arena, *step);
	return 0;
}

static const struct trace_ops trace_kept = {.name = "kept", .help = "another's steps, each made once", .step = kept_step};

void trace_kept_init(struct trace_kept *k, const struct trace *of, const struct arena *a)
{
	*k = (struct trace_kept){.trace = *of};
	arena_init(&k->arena, a->nomem, a->nomem_ctx);
	trace_cursor_init(&k->source, of, &k->arena);
	k->trace.ops = &trace_kept;
	k->trace.data = k;
}

void trace_kept_release(struct trace_kept *k)
{
	trace_cursor_release(&k->source);
	arena_release(&k->arena);
}
