#include "sim/run/timeline.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/vec.h"

#define OVERHEAD "overhead"

struct recorder {
	const struct platform *platform;
	struct arena *arena;
	int *lane_of_resource; /* SIM_NONE: not drawn */
	int *lane_of_unit;
	int overhead;
	struct {
		VEC(struct timeline_span);
	} spans;
	uint64_t first, end;   /* steps shown, counted over prefill and decode */
	sim_time begin;        /* of the first of them */
	sim_time *step_end;
};

/* ---- lanes ---- */

static int add_lane(struct timeline *t, const char *name)
{
	t->lane[t->n_lanes] = name;
	return t->n_lanes++;
}

static void add_link_lanes(struct timeline *t, struct recorder *r, int memory)
{
	const struct platform *p = r->platform;

	for (int i = 0; i < p->machine->n_links; i++) {
		if (p->machine->links[i].far != memory)
			continue;
		r->lane_of_resource[p->link[i].h2d] = add_lane(t, p->resource_name[p->link[i].h2d]);
		r->lane_of_resource[p->link[i].d2h] = add_lane(t, p->resource_name[p->link[i].d2h]);
	}
}

static void add_device_lane(struct timeline *t, struct recorder *r, int device)
{
	int unit = r->platform->kernel_unit[device];

	r->lane_of_unit[unit] = add_lane(t, r->platform->unit_name[unit]);
}

/* Each GPU with its links, the host's memory, the host, drives. */
static void add_lanes(struct timeline *t, struct recorder *r)
{
	const struct platform *p = r->platform;
	const struct hw_machine *m = p->machine;

	t->lane = arena_array(r->arena, const char *, (size_t)(p->n_resources + p->n_units + 1));
	r->lane_of_resource = arena_array(r->arena, int, (size_t)p->n_resources);
	r->lane_of_unit = arena_array(r->arena, int, (size_t)p->n_units);
	for (int i = 0; i < p->n_resources; i++)
		r->lane_of_resource[i] = SIM_NONE;
	for (int i = 0; i < p->n_units; i++)
		r->lane_of_unit[i] = SIM_NONE;
	for (int d = 0; d < m->n_devices; d++) {
		if (m->devices[d].kind != HW_DEVICE_GPU)
			continue;
		add_device_lane(t, r, d);
		if (m->memories[m->devices[d].memory].kind == HW_MEMORY_GPU)
			add_link_lanes(t, r, m->devices[d].memory);
	}
	for (int i = 0; i < m->n_memories; i++)
		if (m->memories[i].kind == HW_MEMORY_RAM)
			r->lane_of_resource[p->memory_resource[i]] = add_lane(t, m->memories[i].name);
	for (int d = 0; d < m->n_devices; d++)
		if (m->devices[d].kind == HW_DEVICE_CPU)
			add_device_lane(t, r, d);
	for (int i = 0; i < m->n_memories; i++)
		if (m->memories[i].kind == HW_MEMORY_DRIVE)
			add_link_lanes(t, r, i);
	r->overhead = add_lane(t, OVERHEAD);
}

/* ---- recording ---- */

static void add_span(struct recorder *r, int lane, sim_time begin, sim_time end, const struct op *op, double bytes)
{
	struct timeline_span span = {lane, begin, end, op->tag, bytes};

	if (lane != SIM_NONE && end > begin)
		VEC_PUSH(&r->spans, r->arena, span);
}

static void on_span(void *ctx, const struct op *op, sim_time now)
{
	struct recorder *r = ctx;
	enum exec_kind kind = exec_tag_kind(op->tag);
	sim_time flows = op->start + op->latency;
	double bytes = 0;

	if (kind == EXEC_STEP)
		return;
	for (int i = 0; i < op->flow.n_hops; i++)
		if (r->platform->counts_bytes[op->flow.hop[i].resource])
			bytes = op->amount;
	add_span(r, r->overhead, op->start, flows, op, 0);
	if (kind == EXEC_KERNEL)
		add_span(r, r->lane_of_unit[op->unit], flows, now, op, bytes);
	for (int i = 0; i < op->flow.n_hops; i++)
		add_span(r, r->lane_of_resource[op->flow.hop[i].resource], flows, now, op, bytes);
}

static void on_step(void *ctx, const struct exec_record *record)
{
	struct recorder *r = ctx;

	if (record->step + 1 == r->first)
		r->begin = record->end;
	else if (record->step >= r->first && record->step < r->end)
		r->step_end[record->step - r->first] = record->end;
}

/* Of equal ones the order does not matter: they are the same in every field that is drawn. */
static int by_lane_and_time(const void *a, const void *b)
{
	const struct timeline_span *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	return x->tag < y->tag ? -1 : x->tag > y->tag;
}

/* Cuts what lies outside, leaves out lanes with nothing on them, sorts. */
static void finish(struct timeline *t, struct recorder *r)
{
	int *renamed = arena_array(r->arena, int, (size_t)t->n_lanes), n_lanes = 0;
	sim_time length = r->step_end[t->n_steps - 1] - r->begin;
	size_t n = 0;

	for (uint64_t i = 0; i < t->n_steps; i++)
		r->step_end[i] -= r->begin;
	for (size_t i = 0; i < r->spans.n; i++) {
		struct timeline_span span = r->spans.at[i];
		span.begin = span.begin > r->begin ? span.begin - r->begin : 0;
		span.end = span.end - r->begin < length ? span.end - r->begin : length;
		if (span.end <= span.begin)
			continue;
		renamed[span.lane] = 1;
		r->spans.at[n++] = span;
	}
	for (int i = 0; i < t->n_lanes; i++) {
		if (!renamed[i])
			continue;
		renamed[i] = n_lanes;
		t->lane[n_lanes++] = t->lane[i];
	}
	for (size_t i = 0; i < n; i++)
		r->spans.at[i].lane = renamed[r->spans.at[i].lane];
	if (n)
		qsort(r->spans.at, n, sizeof(*r->spans.at), by_lane_and_time);
	t->n_lanes = n_lanes;
	t->span = r->spans.at;
	t->n = n;
	t->step_end = r->step_end;
}

int timeline_simulate(const struct scenario *s, uint64_t n_steps, const volatile sig_atomic_t *interrupted,
	struct arena *a, struct timeline *t, struct err *err)
{
	struct placement *p = arena_new(a, struct placement);
	struct trace *trace = arena_new(a, struct trace);
	struct exec *x = arena_new(a, struct exec);
	struct recorder r = {.arena = a};

	*t = (struct timeline){0};
	run_make_trace(trace, s, a);
	if (run_place(s, p, a, err))
		return -1;
	struct run_stretch stretch = run_stretch(trace, n_steps);
	t->decode = stretch.decode;
	t->n_steps = stretch.n;
	t->first = stretch.first;
	r.first = stretch.first_step;
	r.end = r.first + t->n_steps;
	r.step_end = arena_array(a, sim_time, t->n_steps);

	struct engine_job job = {s->model, s->machine, s->cost, trace, s->flags, s->seed};
	exec_init(x, p, trace, s->engine->lower, s->engine->state_new(&job, p, a), s->engine->overheads, interrupted, a);
	r.platform = &x->platform;
	add_lanes(t, &r);
	exec_spans(x, on_span, &r);
	int rc = exec_run(x, stretch.begin, stretch.end - stretch.begin, on_step, &r, err);
	exec_release(x);
	if (rc)
		return -1;
	finish(t, &r);
	return 0;
}

/* ---- for the database ---- */

static size_t lane_begin(const struct timeline *t, int lane)
{
	size_t i = 0;

	while (i < t->n && t->span[i].lane < lane)
		i++;
	return i;
}

struct timeline_part *timeline_strip(const struct timeline *t, int lane, struct arena *a, size_t *n)
{
	struct {
		VEC(struct timeline_part);
	} parts = {0};
	sim_time pixel = t->step_end[t->n_steps - 1] / TIMELINE_PIXELS;
	size_t i = lane_begin(t, lane);

	while (i < t->n && t->span[i].lane == lane) {
		sim_time begin = t->span[i].begin, end = begin, on = 0;
		/* What overlaps or touches is one; a gap less than a pixel is joined while the part is not a pixel long. */
		for (; i < t->n && t->span[i].lane == lane; i++) {
			const struct timeline_span *s = &t->span[i];
			if (s->begin > end && (s->begin - end >= pixel || end - begin >= pixel))
				break;
			if (s->end > end) {
				on += s->end - (s->begin > end ? s->begin : end);
				end = s->end;
			}
		}
		struct timeline_part part = {sim_seconds(begin), sim_seconds(end), (double)on / (double)(end - begin)};
		VEC_PUSH(&parts, a, part);
	}
	*n = parts.n;
	return parts.at;
}

/* ---- for Perfetto ---- */

struct track {
	int lane;
	sim_time end; /* of what was put on it last */
};

struct tracks {
	VEC(struct track);
};

/* The first thread of the lane that is free at `begin`. Threads are numbered over all lanes, from 1: 0 is the steps'. */
static size_t find_track(struct tracks *tracks, const struct timeline_span *span, struct arena *a)
{
	size_t i = 0;

	while (i < tracks->n && !(tracks->at[i].lane == span->lane && tracks->at[i].end <= span->begin))
		i++;
	if (i == tracks->n)
		VEC_PUSH(tracks, a, ((struct track){span->lane, 0}));
	tracks->at[i].end = span->end;
	return i + 1;
}

/* Picoseconds as microseconds, exactly. */
static void print_us(FILE *to, const char *key, sim_time t)
{
	fprintf(to, ",\"%s\":%" PRId64 ".%06" PRId64, key, t / 1000000, t % 1000000);
}

/* Lanes of one part of the machine are one process: "gpu0" of "gpu0.link.h2d". */
static int process_of(const struct timeline *t, int lane)
{
	size_t len = strcspn(t->lane[lane], ".");
	int i = 0;

	while (strncmp(t->lane[i], t->lane[lane], len) != 0 || strcspn(t->lane[i], ".") != len)
		i++;
	return i + 1;
}

static void print_name(FILE *to, const char *what, int pid, size_t tid, int name_len, const char *name)
{
	fprintf(to, ",\n{\"ph\":\"M\",\"name\":\"%s_name\",\"pid\":%d,\"tid\":%zu,\"args\":{\"name\":\"%.*s\"}}", what, pid,
		tid, name_len, name);
	fprintf(to, ",\n{\"ph\":\"M\",\"name\":\"%s_sort_index\",\"pid\":%d,\"tid\":%zu,\"args\":{\"sort_index\":%d}}", what,
		pid, tid, strcmp(what, "process") == 0 ? pid : (int)tid);
}

static void print_span(FILE *to, const struct timeline *t, const struct timeline_span *s, size_t tid)
{
	static const char *const kinds[] = {"step", "copy", "kernel", "join", "wait"};
	bool overhead = strcmp(t->lane[s->lane], OVERHEAD) == 0;
	int layer = exec_tag_layer(s->tag);
	const char *group = model_group_name(exec_tag_group(s->tag));

	fprintf(to, ",\n{\"ph\":\"X\",\"name\":\"");
	if (layer != MODEL_NO_LAYER)
		fprintf(to, "layer %d ", layer);
	fprintf(to, "%s\",\"cat\":\"%s\",\"pid\":%d,\"tid\":%zu", group, overhead ? "wait" : kinds[exec_tag_kind(s->tag)],
		process_of(t, s->lane), tid);
	print_us(to, "ts", s->begin);
	print_us(to, "dur", s->end - s->begin);
	fprintf(to, ",\"args\":{\"of\":\"%s\"", kinds[exec_tag_kind(s->tag)]);
	if (s->bytes > 0)
		fprintf(to, ",\"bytes\":%.0f", s->bytes);
	fprintf(to, "}}");
}

static void print_steps(FILE *to, const struct timeline *t)
{
	sim_time begin = 0;

	for (uint64_t i = 0; i < t->n_steps; i++) {
		fprintf(to, ",\n{\"ph\":\"X\",\"name\":\"%s step %" PRIu64 "\",\"cat\":\"step\",\"pid\":0,\"tid\":0",
			t->decode ? "decode" : "prefill", t->first + i + 1);
		print_us(to, "ts", begin);
		print_us(to, "dur", t->step_end[i] - begin);
		fprintf(to, "}");
		begin = t->step_end[i];
	}
}

void timeline_print_json(const struct timeline *t, const struct scenario *s, struct arena *a, FILE *to)
{
	struct tracks tracks = {0};
	json_t *about = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "model", s->model_name, "quant", s->quant, "machine",
		s->machine_name, "engine", s->engine_name, "key", s->key, "version", OFFSIM_VERSION);

	fprintf(to, "{\"displayTimeUnit\":\"ms\",\n\"otherData\":");
	json_dumpf(about, to, 0);
	json_decref(about);
	fprintf(to, ",\n\"traceEvents\":[\n");
	fprintf(to, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":0,\"tid\":0,\"args\":{\"name\":\"steps\"}}");
	print_steps(to, t);
	for (int i = 0; i < t->n_lanes; i++)
		if (process_of(t, i) == i + 1)
			print_name(to, "process", i + 1, 0, (int)strcspn(t->lane[i], "."), t->lane[i]);
	for (size_t i = 0; i < t->n; i++) {
		size_t before = tracks.n, tid = find_track(&tracks, &t->span[i], a);
		const char *lane = t->lane[t->span[i].lane];
		if (tracks.n > before)
			print_name(to, "thread", process_of(t, t->span[i].lane), tid, (int)strlen(lane), lane);
		print_span(to, t, &t->span[i], tid);
	}
	fprintf(to, "\n]}\n");
}
