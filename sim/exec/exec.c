#include "sim/exec/exec.h"

static void on_done(void *ctx, const struct op *op, sim_time now);

void exec_init(struct exec *x, const struct placement *p, const struct trace *t, exec_lower_fn *lower, void *state,
	bool overheads, const volatile sig_atomic_t *interrupted, struct arena *a)
{
	*x = (struct exec){
		.placement = p,
		.lower = lower,
		.state = state,
		.overheads = overheads,
		.arena = a,
	};
	platform_init(&x->platform, p->machine, a);
	x->platform.remote_share = p->remote_share;
	trace_cursor_init(&x->cursor, t, a);

	struct sim_config config = {
		.n_resources = x->platform.n_resources,
		.resource_name = x->platform.resource_name,
		.capacity = x->platform.capacity,
		.n_units = x->platform.n_units,
		.unit_name = x->platform.unit_name,
		.unit_places = x->platform.unit_places,
		.n_streams = x->platform.n_units,
		.max_hops = PLATFORM_MAX_HOPS,
		.charges = true,
		.done = on_done,
		.done_ctx = x,
		.interrupted = interrupted,
	};
	sim_init(&x->sim, &config, a);
}

static void report(struct exec *x, const struct exec_added *o)
{
	if (x->on_added)
		x->on_added(x->on_added_ctx, o);
}

static int add_step(struct exec *x, struct err *err)
{
	uint64_t i = x->next++;
	struct trace_step step;
	op_ref last;

	if (trace_step_get(&x->cursor, i, &step, err) || x->lower(x, x->state, &step, &last, err))
		return -1;
	x->phase[i % EXEC_STEPS_AHEAD] = step.phase;

	struct sim_op end = {.unit = SIM_NONE,
		.stream = SIM_NONE,
		.cap_resource = SIM_NONE,
		.tag = (uint32_t)(i - x->first),
		.notify = true};
	x->step_end = sim_add(&x->sim, &end);
	sim_depend(&x->sim, x->step_end, last);
	sim_commit(&x->sim, x->step_end);
	report(x, &(struct exec_added){.ref = x->step_end, .after = {last}, .op = &end, .step = &step});
	return 0;
}

/* A step has ended (only those operations ask to be reported). */
static void on_done(void *ctx, const struct op *op, sim_time now)
{
	struct exec *x = ctx;
	struct exec_record *r = &x->record;

	r->step = x->first + op->tag;
	r->phase = x->phase[r->step % EXEC_STEPS_AHEAD];
	r->end = now;
	for (int i = 0; i < x->platform.n_resources; i++) {
		r->moved[i] = x->sim.net.resource[i].moved;
		r->busy[i] = flow_busy(&x->sim.net, i, now);
	}
	r->charge = sim_charges(&x->sim, op);
	x->on_step(x->on_step_ctx, r);
	if (x->next < x->end && !x->failed)
		x->failed = add_step(x, &x->err);
}

int exec_run(struct exec *x, uint64_t first, uint64_t n, exec_step_fn *on_step, void *ctx, struct err *err)
{
	size_t n_resources = (size_t)x->platform.n_resources;

	x->first = x->next = first;
	x->end = first + n;
	x->on_step = on_step;
	x->on_step_ctx = ctx;
	x->record.moved = arena_array(x->arena, double, n_resources);
	x->record.busy = arena_array(x->arena, sim_time, n_resources);
	for (int i = 0; i < EXEC_STEPS_AHEAD && x->next < x->end; i++)
		if (add_step(x, err))
			return -1;
	if (sim_run(&x->sim, err))
		return -1;
	if (x->failed) {
		*err = x->err;
		return -1;
	}
	return 0;
}

void exec_release(struct exec *x)
{
	trace_cursor_release(&x->cursor);
}

void exec_spans(struct exec *x, sim_span_fn *span, void *ctx)
{
	x->sim.config.span = span;
	x->sim.config.span_ctx = ctx;
}

void exec_times_alone(struct exec *x)
{
	x->sim.net.charge_stride = 0;
}

void exec_additions(struct exec *x, exec_added_fn *added, void *ctx)
{
	x->on_added = added;
	x->on_added_ctx = ctx;
}

void exec_label(struct exec *x, int layer, enum model_group g)
{
	x->label = (uint32_t)g << 16 | (uint16_t)layer;
}

enum exec_of exec_moves(struct exec *x, enum exec_of of)
{
	enum exec_of before = exec_tag_of(x->label);

	x->label = (x->label & ~(UINT32_C(0xf) << 24)) | (uint32_t)of << 24;
	return before;
}

/* what: all but ref, after and op, which are filled in here. */
static op_ref add(struct exec *x, enum exec_kind kind, struct sim_op *op, struct exec_added what, op_ref after,
	op_ref after2)
{
	op->tag = (uint32_t)kind << 28 | x->label;
	op_ref ref = sim_add(&x->sim, op);

	sim_depend(&x->sim, ref, after);
	sim_depend(&x->sim, ref, after2);
	sim_commit(&x->sim, ref);
	what.ref = ref;
	what.after[0] = after;
	what.after[1] = after2;
	what.op = op;
	report(x, &what);
	return ref;
}

op_ref exec_join(struct exec *x, op_ref a, op_ref b)
{
	if (a == 0 || a == b)
		return b;
	if (b == 0)
		return a;

	struct sim_op op = {.unit = SIM_NONE, .stream = SIM_NONE, .cap_resource = SIM_NONE};
	return add(x, EXEC_JOIN, &op, (struct exec_added){0}, a, b);
}

static op_ref add_copy(struct exec *x, int from, int to, double bytes, bool pinned, bool aside, op_ref after,
	op_ref after2)
{
	struct platform_path path;
	struct sim_op op;

	if (bytes <= 0)
		return exec_join(x, after, after2);
	platform_copy(&x->platform, from, to, bytes, pinned, x->overheads, &path, &op);
	op.stream = aside ? SIM_NONE : op.unit;
	return add(x, EXEC_COPY, &op, (struct exec_added){.from = from, .to = to, .pinned = pinned}, after, after2);
}

op_ref exec_copy(struct exec *x, int from, int to, double bytes, bool pinned, op_ref after, op_ref after2)
{
	return add_copy(x, from, to, bytes, pinned, false, after, after2);
}

op_ref exec_copy_aside(struct exec *x, int from, int to, double bytes, bool pinned, op_ref after, op_ref after2)
{
	return add_copy(x, from, to, bytes, pinned, true, after, after2);
}

op_ref exec_read_file(struct exec *x, int drive, double bytes, double rate, bool kept, op_ref after, op_ref after2)
{
	int ram = hw_first_memory(x->placement->machine, HW_MEMORY_RAM);
	struct platform_path path;
	struct sim_op op;

	if (bytes <= 0)
		return exec_join(x, after, after2);
	platform_read_file(&x->platform, drive, bytes, rate, kept, x->overheads, &path, &op);
	return add(x, EXEC_COPY, &op, (struct exec_added){.from = drive, .to = ram, .pinned = true}, after, after2);
}

op_ref exec_kernel(struct exec *x, int device, const struct platform_work *work, op_ref after, op_ref after2)
{
	struct platform_path path;
	struct sim_op op;

	if (work->bytes <= 0 && work->flops <= 0)
		return exec_wait(x, work->latency_s, exec_join(x, after, after2));
	platform_kernel(&x->platform, device, work, &path, &op);
	struct exec_added what = {
		.from = x->placement->machine->devices[device].memory, .device = device, .work = work};
	return add(x, EXEC_KERNEL, &op, what, after, after2);
}

op_ref exec_kernel_far(struct exec *x, int device, int memory, double rate_share, double remote_share, const struct platform_work *work,
	op_ref after, op_ref after2)
{
	struct platform_path path;
	struct sim_op op;

	platform_kernel_far(&x->platform, device, memory, rate_share, remote_share, work, &path, &op);
	return add(x, EXEC_KERNEL, &op, (struct exec_added){.from = memory, .device = device, .work = work}, after, after2);
}

op_ref exec_send(struct exec *x, int from, int to, double bytes, bool direct, op_ref after)
{
	struct platform_path path;
	struct sim_op op;

	platform_send(&x->platform, from, to, bytes, direct, &path, &op);
	return add(x, EXEC_COPY, &op, (struct exec_added){.from = from, .to = to, .pinned = true}, after, 0);
}

op_ref exec_wait(struct exec *x, double seconds, op_ref after)
{
	if (seconds <= 0)
		return after;

	struct sim_op op = {.unit = SIM_NONE,
		.stream = SIM_NONE,
		.latency = sim_from_seconds(seconds),
		.cap_resource = SIM_NONE};
	return add(x, EXEC_WAIT, &op, (struct exec_added){0}, after, 0);
}
