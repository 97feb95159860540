#include "sim/trace/trace.h"

void trace_cursor_init(struct trace_cursor *c, const struct trace *t, struct arena *a)
{
	*c = (struct trace_cursor){.trace = t, .arena = a};
}

void trace_cursor_release(struct trace_cursor *c)
{
	if (c->trace->ops->release)
		c->trace->ops->release(c);
}

uint64_t trace_n_steps(const struct trace *t)
{
	return t->n_prefill + t->n_decode;
}

int trace_step_get(struct trace_cursor *c, uint64_t index, struct trace_step *step, struct err *err)
{
	if (index >= trace_n_steps(c->trace))
		BUG("step %llu of %llu", (unsigned long long)index, (unsigned long long)trace_n_steps(c->trace));
	return c->trace->ops->step(c, index, step, err);
}

uint64_t trace_max_context(const struct trace *t)
{
	return t->workload.depth + t->workload.prompt + t->workload.generate;
}
