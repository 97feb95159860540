/* Does replaying a recorded trace predict the run it was recorded in? The traces lie in ../shared/traces; without them that
   test says so and passes. And what becomes of traces that lack this or that. Curves: tests/cli/27-trace-info.t. */
#include "sim/cache/replay.h"

#include "sim/trace/trace_import.h"
#include "tests/test.h"

static const char *traces = "../shared/traces";

static bool have(const char *what, char *path, size_t size)
{
	snprintf(path, size, "%s/%s", traces, what);
	if (access(path, R_OK) == 0)
		return true;
	fprintf(stderr, "# skipped: no %s\n", path);
	return false;
}

struct conversion {
	const char *path;
	struct arena *arena;
	struct otr_writer *writer;
};

static int begin(void *ctx, const struct otr_info *info, struct err *err)
{
	struct conversion *c = ctx;

	return otr_create(c->path, info, c->arena, &c->writer, err);
}

static int put_step(void *ctx, const struct trace_step *step, struct err *err)
{
	struct conversion *c = ctx;

	return otr_put_step(c->writer, step, err);
}

static void convert(const char *from, const char *to, struct arena *a)
{
	struct conversion c = {to, a, NULL};
	struct trace_sink sink = {.ctx = &c, .begin = begin, .step = put_step};
	struct trace_import_options options = {0};
	struct trace_import_result result;
	struct err err;

	assert_ok(trace_import(from, &options, &sink, a, &result, &err), err);
	assert_ok(otr_commit(c.writer, &err), err);
}

static void replay_route(const char *route, struct replay *x, size_t n, struct arena *a)
{
	char path[256], native[] = "/tmp/offsim-test-XXXXXX";
	struct otr_reader *r;
	struct survey s;
	struct err err;

	snprintf(path, sizeof(path), "%s/%s", traces, route);
	close(mkstemp(native));
	convert(path, native, a);
	assert_ok(otr_open(native, a, &r, &err), err);
	assert_ok(survey_take(&s, r, &(struct survey_options){0}, a, &err), err);
	assert_ok(replay_run(x, n, &s, r, &(struct watch){0}, a, &err), err);
	otr_close(r);
	unlink(native);
}

/* ---- the run that was traced ---- */

struct measured {
	double budget_mib, hit_pct;                               /* of the run's last line */
	double wall_ms, io_ms, compute_ms, stall_ms, read_bytes;  /* sums over its decode steps */
	uint64_t n;
};

static void read_measured(struct measured *m, const char *path)
{
	char line[1024];
	FILE *f = fopen(path, "r");

	ck_assert_ptr_nonnull(f);
	*m = (struct measured){0};
	while (fgets(line, sizeof(line), f)) {
		double wall, io, compute, bytes, stall;
		const char *budget = strstr(line, "cache_budget_MiB="), *hit = strstr(line, "cache_hit_pct=");
		if (sscanf(line, "%*d,%*d,%lf,%lf,%lf,%lf,%*f,%lf", &wall, &io, &compute, &bytes, &stall) == 5) {
			m->wall_ms += wall;
			m->io_ms += io;
			m->compute_ms += compute;
			m->read_bytes += bytes;
			m->stall_ms += stall;
			m->n++;
		}
		if (budget && hit) {
			m->budget_mib = strtod(strchr(budget, '=') + 1, NULL);
			m->hit_pct = strtod(strchr(hit, '=') + 1, NULL);
		}
	}
	fclose(f);
}

/* Four readers ran at once (the run's --io-threads 4, docs/bench-data/2026-07-15-route-trace/findings.md of the traces'
   repository), and io_ms is the sum of their times: so what one of them reads in a second is sum(read_bytes) / sum(io_ms),
   and a step waits for a quarter of its bytes at that rate, shared evenly. mgmt_ms, which nothing given predicts, is left out
   of the wall: the prediction is that much too short before anything else is wrong. */
#define READERS 4

static void predicts(const char *route, const char *metrics)
{
	char path[256];
	struct arena a;
	struct measured m;
	struct replay x = {.scope = CACHE_GLOBAL};
	struct err err;

	if (!have(route, path, sizeof(path)))
		return;
	arena_init(&a, NULL, NULL);
	snprintf(path, sizeof(path), "%s/%s", traces, metrics);
	read_measured(&m, path);
	ck_assert_uint_eq(m.n, 128);
	assert_ok(cache_policy_find("lru", NULL, &x.policy, &err), err);
	x.size = (uint64_t)(m.budget_mib * 1048576);
	replay_route(route, &x, 1, &a);

	double n = (double)m.n, rate_bytes_ms = m.read_bytes / m.io_ms;
	double stall_ms = (double)x.decode_read_bytes / n / rate_bytes_ms / READERS, wall_ms = m.compute_ms / n + stall_ms;
	printf("# %s: hits %.2f %% (measured %.1f), bytes %+.2f %%, stall %.1f ms (%.1f), wall %.1f ms (%.1f): %+.1f %%\n", metrics,
		100 * (double)x.hits / (double)x.lookups, m.hit_pct, 100 * ((double)x.decode_read_bytes / m.read_bytes - 1), stall_ms,
		m.stall_ms / n, wall_ms, m.wall_ms / n, 100 * (wall_ms * n / m.wall_ms - 1));
	ck_assert(fabs(100 * (double)x.hits / (double)x.lookups - m.hit_pct) <= 0.1);
	assert_close((double)x.decode_read_bytes, m.read_bytes, 0.01);
	assert_close(wall_ms, m.wall_ms / n, 0.15);
	arena_release(&a);
}

START_TEST(the_traced_runs)
{
	predicts("moe/bigmoeonedge/qwen.route.csv", "moe/bigmoeonedge/qwen.metrics");
	predicts("moe/bigmoeonedge/gemma.route.csv", "moe/bigmoeonedge/gemma.metrics");
}
END_TEST

/* ---- what a trace may lack ---- */

/* Two prefill steps and a decode, three layers; the middle one has no experts. Chars: layer and expert, a space ends a step. */
static struct otr_reader *write_trace(const struct otr_info *info, const char *text, char *path, struct arena *a)
{
	struct otr_writer *w;
	struct otr_reader *r;
	struct trace_access access[64];
	struct trace_step step = {.n_sequences = 1, .n_tokens = 1, .n_sampled = 1, .access = access};
	struct err err;

	close(mkstemp(path));
	assert_ok(otr_create(path, info, a, &w, &err), err);
	for (uint64_t i = 0; *text; i++) {
		size_t n = strcspn(text, " ") / 2;
		step.phase = i < 2 ? TRACE_PREFILL : TRACE_DECODE;
		step.index = i < 2 ? i : i - 2;
		step.n_access = n;
		for (size_t k = 0; k < n; k++, text += 2)
			access[k] = (struct trace_access){.layer = (int16_t)(text[0] - '0'), .kind = TRACE_EXPERT,
				.group = MODEL_EXPERTS, .expert = (uint32_t)(text[1] - '0'), .tokens = 1};
		text += *text == ' ';
		assert_ok(otr_put_step(w, &step, &err), err);
	}
	assert_ok(otr_commit(w, &err), err);
	assert_ok(otr_open(path, a, &r, &err), err);
	return r;
}

static const char steps[] = "00010023 020221 0002002123";

static void check_survey(const struct survey *s)
{
	ck_assert_uint_eq(s->n_prefill, 2);
	ck_assert_uint_eq(s->n_decode, 1);
	ck_assert_uint_eq(s->n_uses, 12);
	ck_assert_uint_eq(s->n_batches, 6);
	ck_assert_uint_eq(s->n_lookups, 9);
	ck_assert_uint_eq(s->n_unique, 5); /* 00 01 02 21 23 */
	ck_assert_uint_eq(s->items.n_layers, 3);
}

START_TEST(heads_that_know_their_layers)
{
	struct otr_layer layer[3] = {{4, 2, 100, 0}, {0, 0, 0, 7}, {5, 2, 10, 0}};
	struct otr_info info = {.kind = OTR_STEPS, .model = "", .source = "", .licence = "", .note = "", .n_layer = 3,
		.layer = layer, .experts_only = true};
	struct replay x = {.scope = CACHE_LAYER, .size = 400};
	struct survey s;
	struct arena a;
	struct err err;
	char path[] = "/tmp/offsim-test-XXXXXX";

	arena_init(&a, NULL, NULL);
	struct otr_reader *r = write_trace(&info, steps, path, &a);
	assert_ok(survey_take(&s, r, &(struct survey_options){.expert_bytes = 1, .future = true, .future_limit_bytes = 1 << 20},
			  &a, &err), err);
	check_survey(&s);
	ck_assert_uint_eq(s.items.experts_per_layer, 5);
	ck_assert_uint_eq(s.unique_bytes, 320);
	ck_assert_uint_eq(s.items.cycle_bytes, 220);
	ck_assert_uint_eq(survey_covers(&s, 0.7, &a), 3); /* 4 + 3 + 2 of 12, and 2 */
	assert_close(survey_entropy_bits(&s, 2), 1, 1e-12);
	ck_assert(survey_entropy_bits(&s, 1) < 0);
	/* Two layers share 400: 00 01, then 02 in and the older of 00 01 out. */
	assert_ok(cache_policy_find("belady", NULL, &x.policy, &err), err);
	assert_ok(replay_run(&x, 1, &s, r, &(struct watch){0}, &a, &err), err);
	ck_assert_uint_eq(x.lookups, 9);
	ck_assert_uint_eq(x.hits, 4); /* 00 02 21 23 of the decode step: 01 has left */
	ck_assert_uint_eq(x.decode_hits, 4);
	ck_assert_uint_eq(x.read_bytes, 320);
	ck_assert_uint_eq(x.decode_read_bytes, 0);
	otr_close(r);
	unlink(path);
	arena_release(&a);
}
END_TEST

static bool stop_at_2(void *ctx, uint64_t n)
{
	*(uint64_t *)ctx = n;
	return n < 2;
}

START_TEST(heads_that_do_not)
{
	struct otr_info info = {.kind = OTR_STEPS, .model = "", .source = "", .licence = "", .note = "", .experts_only = true};
	struct survey s;
	struct arena a;
	struct err err;
	uint64_t n;
	char path[] = "/tmp/offsim-test-XXXXXX";

	arena_init(&a, NULL, NULL);
	struct otr_reader *r = write_trace(&info, steps, path, &a);
	assert_ok(survey_take(&s, r, &(struct survey_options){0}, &a, &err), err);
	check_survey(&s);
	ck_assert(!s.items.bytes_known);
	ck_assert_uint_eq(s.items.experts_per_layer, 4);
	assert_ok(survey_take(&s, r, &(struct survey_options){.expert_bytes = 3}, &a, &err), err);
	ck_assert(s.items.bytes_known);
	ck_assert_uint_eq(s.unique_bytes, 15);
	ck_assert_int_eq(survey_take(&s, r, &(struct survey_options){.expert_bytes = UINT64_C(1) << 62}, &a, &err), -1);
	ck_assert_int_eq((int)err.code, ERR_INPUT);
	ck_assert_int_eq(survey_take(&s, r, &(struct survey_options){.watch = {stop_at_2, &n}}, &a, &err), -1);
	ck_assert_int_eq((int)err.code, ERR_INTERRUPTED);
	ck_assert_uint_eq(n, 2);
	otr_close(r);
	unlink(path);
	arena_release(&a);
}
END_TEST

START_TEST(no_room_for_the_future)
{
	struct arena a;
	struct err err;

	arena_init(&a, NULL, NULL);
	struct future *f = future_new(1, 300000, &a);
	for (uint64_t b = 0; b < 65537; b++)
		future_add(f, 0, b);
	ck_assert_int_eq(future_check(f, &err), -1);
	assert_err(err, ERR_INPUT, "belady needs 512 KiB for the future of 65537 lookups; give --memory");
	f = future_new(1, 524288, &a);
	for (uint64_t b = 0; b < 65537; b++)
		future_add(f, 0, 3 * b);
	assert_ok(future_check(f, &err), err);
	future_rewind(f);
	uint64_t n_wrong = 0;
	for (uint64_t b = 0; b < 65537; b++) {
		future_advance(f, 0);
		n_wrong += future_next(f, 0, 0) != (b < 65536 ? 3 * b + 3 : UINT64_MAX);
	}
	ck_assert_uint_eq(n_wrong, 0);
	arena_release(&a);
}
END_TEST

TEST_MAIN("replay", the_traced_runs, heads_that_know_their_layers, heads_that_do_not, no_room_for_the_future)
