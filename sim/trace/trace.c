#include "sim/trace/trace.h"

void trace_cursor_init(struct trace_cursor *c, const struct trace *t, struct arena *a)
{
	*c = (struct trace_cursor){.trace = t, .arena = a};
}

int trace_step_get(struct trace_cursor *c, enum trace_phase phase, uint64_t index, struct trace_step *step,
	struct err *err)
{
	uint64_t n = phase == TRACE_PREFILL ? c->trace->n_prefill : c->trace->n_decode;

	if (index >= n)
		BUG("step %llu of %llu", (unsigned long long)index, (unsigned long long)n);
	return c->trace->ops->step(c, phase, index, step, err);
}

uint64_t trace_max_context(const struct trace *t)
{
	return t->workload.depth + t->workload.prompt + t->workload.generate;
}
