#include "sim/core/opg.h"

#include "sim/core/sim.h"

const char *const opg_kind_names[] = {"copy", "kernel", "wait", "join", "step", NULL};
const char *const opg_role_names[] = {"weights", "cache", "hidden", "staging", NULL};

const char *opg_about(const struct opg *g, const char *word)
{
	for (size_t i = 0; i < g->about.n; i++)
		if (strcmp(g->about.at[i].word, word) == 0)
			return g->about.at[i].text;
	return NULL;
}

/* A simulation under way: steps are added as the one `ahead` before them ends. */
struct unrolling {
	const struct opg *g;
	struct sim sim;
	op_ref *ref;     /* by number */
	uint64_t next;   /* step to be added */
	struct opg_times *times;
};

static void add_op(struct unrolling *u, uint32_t id)
{
	const struct opg_op *o = &u->g->ops.at[id];
	struct sim_op op = {
		.unit = o->unit,
		.stream = o->stream,
		.latency = o->latency,
		.amount = o->amount,
		.cap = o->cap,
		.cap_resource = o->charge,
		.hop = o->hop,
		.n_hops = o->n_hops,
		.notify = o->kind == OPG_STEP,
	};

	u->ref[id] = sim_add(&u->sim, &op);
	for (uint32_t i = 0; i < o->n_after; i++)
		sim_depend(&u->sim, u->ref[id], u->ref[o->after[i]]);
	sim_commit(&u->sim, u->ref[id]);
}

static void add_step(struct unrolling *u)
{
	uint64_t step = u->next++;
	uint32_t id = step ? u->g->step_end.at[step - 1] + 1 : 0;

	for (; id <= u->g->step_end.at[step]; id++)
		add_op(u, id);
}

static void on_done(void *ctx, const struct op *op, sim_time now)
{
	struct unrolling *u = ctx;

	(void)op;
	(void)now;
	if (u->next < u->g->steps.count)
		add_step(u);
}

/* Operations are created in the order of their numbers, so that the core's sequence is the number. */
static void on_span(void *ctx, const struct op *op, sim_time now)
{
	struct unrolling *u = ctx;

	u->times->start[op->sequence] = op->start;
	u->times->end[op->sequence] = now;
}

static int max_hops(const struct opg *g)
{
	int most = 1;

	for (size_t i = 0; i < g->ops.n; i++)
		if (g->ops.at[i].n_hops > most)
			most = g->ops.at[i].n_hops;
	return most;
}

int opg_simulate(const struct opg *g, const volatile sig_atomic_t *interrupted, struct arena *a, struct opg_times *out,
	struct err *err)
{
	struct unrolling *u = arena_new(a, struct unrolling);
	const char **resource_name = arena_array(a, const char *, g->resources.n);
	double *capacity = arena_array(a, double, g->resources.n);
	const char **unit_name = arena_array(a, const char *, g->units.n);
	uint32_t *places = arena_array(a, uint32_t, g->units.n);

	for (size_t i = 0; i < g->resources.n; i++) {
		resource_name[i] = g->resources.at[i].name;
		capacity[i] = g->resources.at[i].rate;
	}
	for (size_t i = 0; i < g->units.n; i++) {
		unit_name[i] = g->units.at[i].name;
		places[i] = 1;
	}
	*u = (struct unrolling){.g = g, .ref = arena_array(a, op_ref, g->ops.n), .times = out};
	out->start = arena_array(a, sim_time, g->ops.n);
	out->end = arena_array(a, sim_time, g->ops.n);

	struct sim_config config = {
		.n_resources = (int)g->resources.n,
		.resource_name = resource_name,
		.capacity = capacity,
		.n_units = (int)g->units.n,
		.unit_name = unit_name,
		.unit_places = places,
		.n_streams = (int)g->units.n,
		.max_hops = max_hops(g),
		.done = on_done,
		.done_ctx = u,
		.span = on_span,
		.span_ctx = u,
		.interrupted = interrupted,
	};
	sim_init(&u->sim, &config, a);
	for (uint64_t i = 0; i < g->steps.ahead && u->next < g->steps.count; i++)
		add_step(u);
	return sim_run(&u->sim, err);
}
