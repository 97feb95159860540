#include "sim/core/sim.h"

#include <string.h>

/* How many events pass between looks at the interrupt flag. */
#define INTERRUPT_PERIOD 4096

void sim_init(struct sim *s, const struct sim_config *config, struct arena *a)
{
	*s = (struct sim){.config = *config, .arena = a};
	opgraph_init(&s->ops, config->max_hops, a);
	heap_init(&s->events, a);
	flow_init(&s->net, &s->ops, &s->events, config->resource_name, config->capacity, config->n_resources,
		config->charges, a);
	s->unit = arena_array(a, struct unit, (size_t)config->n_units);
	for (int i = 0; i < config->n_units; i++)
		unit_init(&s->unit[i], config->unit_name[i], config->unit_places[i]);
	s->stream = arena_array(a, op_ref, (size_t)config->n_streams);
}

op_ref sim_add(struct sim *s, const struct sim_op *spec)
{
	struct op *op = opgraph_add(&s->ops, spec->hop, spec->n_hops);
	op_ref ref = op_reference(op);

	flow_reserve(&s->net, op);
	op->amount = spec->amount;
	op->flow.cap = spec->cap > 0 ? spec->cap : INFINITY;
	if (spec->amount > 0 && spec->n_hops == 0 && isinf(op->flow.cap))
		BUG("an operation with an amount needs a path or a cap");
	op->latency = spec->latency;
	op->not_before = spec->not_before;
	op->unit = spec->unit;
	op->cap_resource = spec->cap_resource;
	op->priority = spec->priority;
	op->tag = spec->tag;
	op->notify = spec->notify;
	op->since = s->now;
	if (spec->stream != SIM_NONE) {
		opgraph_depend(&s->ops, op, s->stream[spec->stream]);
		s->stream[spec->stream] = ref;
	}
	return ref;
}

static struct op *held(struct sim *s, op_ref ref)
{
	struct op *op = opgraph_find(&s->ops, ref);

	if (!op || op->state != OP_PENDING)
		BUG("operation was committed already");
	return op;
}

void sim_depend(struct sim *s, op_ref after, op_ref before)
{
	opgraph_depend(&s->ops, held(s, after), before);
}

/* op waited for `from` last; NULL: for nothing but the builder, and the time until now is overhead. */
static void follow(struct sim *s, const struct op *from, struct op *op)
{
	sim_time *to = flow_charges(&s->net, op->slot);

	if (to && from) {
		memcpy(to, flow_charges(&s->net, from->slot), (size_t)s->net.charge_stride * sizeof(*to));
	} else if (to) {
		memset(to, 0, (size_t)s->net.charge_stride * sizeof(*to));
		to[s->net.n_resources] = s->now;
	}
}

void sim_commit(struct sim *s, op_ref ref)
{
	struct op *op = held(s, ref);

	if (op->pending == 1)
		follow(s, s->ending, op);
	opgraph_release(&s->ops, op);
}

static void schedule(struct sim *s, struct op *op, sim_time at)
{
	heap_set(&s->events, op->slot, at, op->priority, op->sequence);
}

static void on_released(void *ctx, const struct op *from, struct op *op)
{
	follow(ctx, from, op);
}

static void charge_overhead(struct sim *s, struct op *op, sim_time dt)
{
	sim_time *charge = flow_charges(&s->net, op->slot);

	if (charge)
		charge[s->net.n_resources] += dt;
}

static void finish(struct sim *s, struct op *op);

static void begin_flow(struct sim *s, struct op *op)
{
	if (op->amount > 0)
		flow_join(&s->net, op, s->now);
	else
		finish(s, op);
}

/* op has its place: latency, then flow. */
static void begin(struct sim *s, struct op *op)
{
	op->start = s->now;
	if (op->latency > 0) {
		op->state = OP_LATENT;
		if (op->latency > SIM_TIME_MAX / 2 - s->now)
			s->net.overflow = true;
		else
			schedule(s, op, s->now + op->latency);
	} else {
		begin_flow(s, op);
	}
}

static void enter(struct sim *s, struct op *op)
{
	if (op->unit == SIM_NONE || unit_enter(&s->unit[op->unit], &s->ops, op))
		begin(s, op);
}

static void finish(struct sim *s, struct op *op)
{
	s->n_done++;
	s->ending = op;
	if (s->config.span)
		s->config.span(s->config.span_ctx, op, s->now);
	if (op->notify)
		s->config.done(s->config.done_ctx, op, s->now);
	opgraph_finish(&s->ops, op, on_released, s);
	if (op->unit != SIM_NONE) {
		struct op *next = unit_leave(&s->unit[op->unit], &s->ops);
		if (next) {
			/* It was ready before and waited for this place alone. Its turn comes through the
			   ready list, after those that were freed earlier in this moment. */
			follow(s, op, next);
			next->pending = 1;
			next->state = OP_QUEUED;
			opgraph_release(&s->ops, next);
		}
	}
	s->ending = NULL;
	opgraph_recycle(&s->ops, op);
}

static void start_ready(struct sim *s)
{
	struct op *op;

	while ((op = opgraph_next_ready(&s->ops))) {
		if (op->state == OP_QUEUED) {
			begin(s, op);
		} else if (op->not_before > s->now) {
			op->state = OP_HELD;
			op->since = s->now;
			schedule(s, op, op->not_before);
		} else {
			enter(s, op);
		}
	}
}

static void handle(struct sim *s, struct op *op)
{
	switch (op->state) {
	case OP_HELD:
		charge_overhead(s, op, s->now - op->since);
		enter(s, op);
		break;
	case OP_LATENT:
		charge_overhead(s, op, op->latency);
		begin_flow(s, op);
		break;
	case OP_FLOWING:
		flow_leave(&s->net, op, s->now);
		finish(s, op);
		break;
	default:
		BUG("an event for an operation in state %d", (int)op->state);
	}
}

int sim_run(struct sim *s, struct err *err)
{
	uint64_t n_events = 0;

	start_ready(s);
	flow_settle(&s->net, s->now);
	while (!heap_empty(&s->events) && !s->net.overflow) {
		s->now = heap_top(&s->events)->time;
		do {
			struct heap_entry e = heap_pop(&s->events);
			handle(s, opgraph_at(&s->ops, e.slot));
			start_ready(s);
			if (++n_events % INTERRUPT_PERIOD == 0 && s->config.interrupted &&
				*s->config.interrupted)
				return err_set(err, ERR_INTERRUPTED, "interrupted");
		} while (!heap_empty(&s->events) && heap_top(&s->events)->time == s->now && !s->net.overflow);
		flow_settle(&s->net, s->now);
	}
	if (s->net.overflow)
		return err_set(err, ERR_INPUT,
			"the simulated time goes beyond 53 days: some amount is too large or some rate too small");
	if (s->ops.n_live)
		return err_set(err, ERR_INPUT, "%u operations wait for each other", s->ops.n_live);
	return 0;
}
