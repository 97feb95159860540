/*
 * test_timeline.c - spans of a few steps: the same time that the run reports, never more than there is, and little to store.
 */
#include "sim/run/timeline.h"

#include <jansson.h>

#include "tests/run_text.h"

#define STREAMED                                                                            \
	"model: llama-2-13b\nquant: f16\nmachine: desktop-rtx4090-ddr5\nengine: ideal\n" \
	"workload: {prompt: 0, generate: 40, depth: 17}\nflags: {gpu-layers: 20}\n"
#define HOST                                                                                    \
	"model: llama-2-13b\nquant: f16\nmachine: desktop-rtx4090-ddr5\nengine: llama.cpp\n" \
	"workload: {prompt: 60, generate: 40}\nflags: -ngl 20\n"

struct shown {
	struct ran ran;
	struct timeline t;
};

static void show(struct shown *s, const char *text, const char *sets)
{
	struct err err = {0};

	load(&s->ran, text, sets);
	assert_ok(timeline_simulate(s->ran.scenario, TIMELINE_STEPS, NULL, &s->ran.arena, &s->t, &err), err);
}

static double length_s(const struct timeline *t)
{
	return sim_seconds(t->step_end[t->n_steps - 1]);
}

static int lane_named(const struct timeline *t, const char *name)
{
	for (int i = 0; i < t->n_lanes; i++)
		if (strcmp(t->lane[i], name) == 0)
			return i;
	ck_abort_msg("no lane %s", name);
}

/* Seconds in which something is on a lane, from the parts that are stored. */
static double on_s(struct shown *s, const char *name)
{
	size_t n;
	const struct timeline_part *part = timeline_strip(&s->t, lane_named(&s->t, name), &s->ran.arena, &n);
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (part[i].end_s - part[i].begin_s) * part[i].busy;
	return sum;
}

START_TEST(steps_last_as_long_as_in_the_run)
{
	struct shown s;
	struct result r = run(STREAMED, NULL, true);

	show(&s, STREAMED, NULL);
	ck_assert(s.t.decode);
	ck_assert_uint_eq(s.t.n_steps, 2);
	ck_assert_uint_eq(s.t.first, 19); /* the middle two of 40 */
	assert_close(length_s(&s.t) / 2, r.value[RESULT_TPOT_S], 0.002);
	arena_release(&s.ran.arena);
}
END_TEST

START_TEST(lanes_are_busy_as_in_the_run)
{
	static const char *const names[] = {"gpu0.link.h2d", "ram"};
	struct shown s;
	struct result r = run(STREAMED, NULL, true);

	show(&s, STREAMED, NULL);
	for (size_t k = 0; k < ARRAY_LEN(names); k++)
		for (int i = 0; i < r.n_resources; i++)
			if (strcmp(r.resource[i].name, names[k]) == 0)
				assert_close(on_s(&s, names[k]) / length_s(&s.t), r.resource[i].busy, 0.03);
	arena_release(&s.ran.arena);
}
END_TEST

/* 20 layers cross the link while the GPU, fifty times as fast, waits for each. */
START_TEST(kernels_come_in_bursts)
{
	struct shown s;

	show(&s, STREAMED, NULL);
	ck_assert(on_s(&s, "gpu0.link.h2d") > 0.99 * length_s(&s.t));
	ck_assert(on_s(&s, "gpu0") < 0.12 * length_s(&s.t));
	size_t n;
	timeline_strip(&s.t, lane_named(&s.t, "gpu0"), &s.ran.arena, &n);
	ck_assert_msg(n >= 2 * 20, "%zu bursts in two steps of 20 streamed layers", n);
	arena_release(&s.ran.arena);
}
END_TEST

START_TEST(spans_lie_within_in_order)
{
	struct shown s;

	show(&s, HOST, NULL);
	sim_time end = s.t.step_end[s.t.n_steps - 1];
	ck_assert(s.t.n > 0);
	for (size_t i = 0; i < s.t.n; i++) {
		const struct timeline_span *span = &s.t.span[i];
		ck_assert(0 <= span->begin && span->begin < span->end && span->end <= end);
		if (i && span[-1].lane == span->lane)
			ck_assert(span[-1].begin <= span->begin);
		else if (i)
			ck_assert(span[-1].lane < span->lane);
	}
	arena_release(&s.ran.arena);
}
END_TEST

/* One chain of operations: at any time one kernel, copy or wait is under way. */
START_TEST(a_chain_leaves_no_time_unexplained)
{
	struct shown s;

	show(&s, HOST, NULL);
	assert_close(on_s(&s, "gpu0") + on_s(&s, "cpu0") + on_s(&s, "gpu0.link.h2d") + on_s(&s, "overhead"), length_s(&s.t),
		1e-6);
	arena_release(&s.ran.arena);
}
END_TEST

START_TEST(a_strip_is_bounded)
{
	/* 1000 bursts, with gaps less than a pixel, and one overlapping. */
	struct timeline_span span[1001];
	sim_time end = 1000000;
	struct timeline t = {.n_steps = 1, .step_end = &end, .n_lanes = 1, .span = span, .n = ARRAY_LEN(span)};
	struct arena a;
	double on = 0;
	size_t n;

	arena_init(&a, NULL, NULL);
	span[0] = (struct timeline_span){0, 0, 300, 0, 0};
	for (int i = 0; i < 1000; i++)
		span[1 + i] = (struct timeline_span){0, 1000 * i, 1000 * i + 400, 0, 0};
	struct timeline_part *part = timeline_strip(&t, 0, &a, &n);
	ck_assert_msg(n <= TIMELINE_PIXELS, "%zu", n);
	for (size_t i = 0; i < n; i++) {
		ck_assert(part[i].busy > 0 && part[i].busy <= 1);
		on += (part[i].end_s - part[i].begin_s) * part[i].busy;
	}
	assert_close(on, sim_seconds(1000 * 400), 1e-12);
	/* A gap of a pixel or more is never filled. */
	span[0] = (struct timeline_span){0, 0, 10, 0, 0};
	span[1] = (struct timeline_span){0, 10 + end / TIMELINE_PIXELS, end, 0, 0};
	t.n = 2;
	timeline_strip(&t, 0, &a, &n);
	ck_assert_uint_eq(n, 2);
	arena_release(&a);
}
END_TEST

START_TEST(a_prefill_has_one_too)
{
	struct shown s;

	show(&s, HOST, "workload.generate=1 flags.ub=13");
	ck_assert(!s.t.decode);
	ck_assert_uint_eq(s.t.n_steps, 2);
	ck_assert_uint_eq(s.t.first, 1); /* 60 rows by 13 are five steps */
	arena_release(&s.ran.arena);
}
END_TEST

/* What Perfetto needs: events of one thread do not overlap, and every thread has a name. */
START_TEST(trace_events_nest)
{
	struct shown s;
	char *text;
	size_t len;
	FILE *to = open_memstream(&text, &len);
	double end[64] = {0};
	bool named[64] = {0};

	show(&s, STREAMED, NULL);
	timeline_print_json(&s.t, s.ran.scenario, &s.ran.arena, to);
	fclose(to);
	json_t *root = json_loads(text, 0, NULL), *event;
	ck_assert_ptr_nonnull(root);
	size_t i, n_spans = 0;
	json_array_foreach(json_object_get(root, "traceEvents"), i, event) {
		size_t tid = (size_t)json_integer_value(json_object_get(event, "tid"));
		const char *ph = json_string_value(json_object_get(event, "ph"));
		const char *name = json_string_value(json_object_get(event, "name"));
		ck_assert(tid < 64);
		if (*ph == 'M') {
			named[tid] |= strcmp(name, "thread_name") == 0 || tid == 0;
			continue;
		}
		double ts = json_number_value(json_object_get(event, "ts"));
		double dur = json_number_value(json_object_get(event, "dur"));
		ck_assert_msg(named[tid] && ts >= end[tid] - 1e-6 && dur > 0, "%s at %g us", name, ts);
		end[tid] = ts + dur;
		n_spans += tid > 0;
	}
	ck_assert_uint_eq(n_spans, s.t.n);
	assert_close(end[0] / 1e6, length_s(&s.t), 1e-9);
	json_decref(root);
	free(text);
	arena_release(&s.ran.arena);
}
END_TEST

TEST_MAIN("timeline", steps_last_as_long_as_in_the_run, lanes_are_busy_as_in_the_run, kernels_come_in_bursts,
	spans_lie_within_in_order, a_chain_leaves_no_time_unexplained, a_strip_is_bounded, a_prefill_has_one_too,
	trace_events_nest)
