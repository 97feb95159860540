/*
 * test_core.c - the event core through sim.h alone: closed forms, to the picosecond.
 *
 * A time that follows from whole numbers is computed with whole numbers and must be met exactly. Elsewhere the
 * real closed form is the earliest time, and each event before it may have been rounded up by less than 1 ps:
 * assert_time(got, want, k) allows k of them, and nothing early.
 */
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>

#include "base/rng.h"
#include "sim/core/sim.h"
#include "tests/test.h"

#define MAX_TAGS 2200
#define MAX_R 12
#define PS UINT64_C(1000000000000)
#define S(seconds) ((sim_time)((seconds) * 1e12 + 0.5)) /* of few digits */

struct world {
	struct arena arena;
	struct sim sim;
	struct sim_config config;
	double capacity[MAX_R];
	const char *name[MAX_R], *unit_name[MAX_R];
	uint32_t places[MAX_R];
	uint32_t n_tags;
	sim_time start[MAX_TAGS], end[MAX_TAGS]; /* by tag; -1: not ended */
	sim_time charge[MAX_TAGS][MAX_R + 1];    /* by tag, resource, the last one overhead */
	uint32_t order[MAX_TAGS];                /* tags as they were reported */
	uint32_t n_ended;
	struct err err;
};

static void on_span(void *ctx, const struct op *op, sim_time now)
{
	struct world *w = ctx;

	ck_assert_uint_lt(op->tag, w->n_tags);
	ck_assert_int_eq(w->end[op->tag], -1);
	w->start[op->tag] = op->start;
	w->end[op->tag] = now;
}

static void on_done(void *ctx, const struct op *op, sim_time now)
{
	struct world *w = ctx;
	const sim_time *charge = sim_charges(&w->sim, op);
	sim_time sum = 0;

	w->order[w->n_ended++] = op->tag;
	if (!charge)
		return;
	for (int r = 0; r <= w->config.n_resources; r++) {
		ck_assert_int_ge(charge[r], 0);
		w->charge[op->tag][r] = charge[r];
		sum += charge[r];
	}
	ck_assert_int_eq(sum, now); /* whatever the case */
}

/* A world of resources with these capacities (until a 0), and units with these places (until a 0). */
static struct world *world(const double *capacity, const uint32_t *places)
{
	static struct world w;

	memset(&w, 0, sizeof(w));
	arena_init(&w.arena, NULL, NULL);
	memset(w.end, -1, sizeof(w.end));
	for (int r = 0; capacity && capacity[r] > 0; r++) {
		w.capacity[r] = capacity[r];
		w.name[r] = "resource";
		w.config.n_resources = r + 1;
	}
	for (int u = 0; places && places[u] > 0; u++) {
		w.places[u] = places[u];
		w.unit_name[u] = "unit";
		w.config.n_units = u + 1;
	}
	w.config.resource_name = w.name;
	w.config.capacity = w.capacity;
	w.config.unit_name = w.unit_name;
	w.config.unit_places = w.places;
	w.config.n_streams = 4;
	w.config.max_hops = MAX_R;
	w.config.charges = true;
	w.config.done = on_done;
	w.config.done_ctx = &w;
	w.config.span = on_span;
	w.config.span_ctx = &w;
	sim_init(&w.sim, &w.config, &w.arena);
	return &w;
}

#define WORLD(...) world((const double[]){__VA_ARGS__, 0}, NULL)
#define UNITS(...) world(NULL, (const uint32_t[]){__VA_ARGS__, 0})

#define OP(...)                                                                                    \
	((struct sim_op){                                                                          \
		.unit = SIM_NONE, .stream = SIM_NONE, .cap_resource = SIM_NONE, .notify = true, __VA_ARGS__})
#define PATH(...)                                                                                  \
	.hop = (const struct maxmin_hop[]){__VA_ARGS__},                                           \
	.n_hops = (int)ARRAY_LEN(((const struct maxmin_hop[]){__VA_ARGS__}))

/* Time at its cap is charged to resource r. */
static struct sim_op blame(int r, struct sim_op op)
{
	op.cap_resource = r;
	return op;
}

static struct sim_op quiet(struct sim_op op)
{
	op.notify = false;
	return op;
}

static struct sim_op on(int unit, struct sim_op op)
{
	op.unit = unit;
	return op;
}

static struct sim_op in(int stream, struct sim_op op)
{
	op.stream = stream;
	return op;
}

/* Adds an operation with the next tag that waits for two others (0: for nothing). */
static op_ref add2(struct world *w, struct sim_op op, op_ref after, op_ref after2)
{
	ck_assert_uint_lt(w->n_tags, MAX_TAGS);
	op.tag = w->n_tags++;

	op_ref ref = sim_add(&w->sim, &op);
	sim_depend(&w->sim, ref, after);
	sim_depend(&w->sim, ref, after2);
	sim_commit(&w->sim, ref);
	return ref;
}

static op_ref add(struct world *w, struct sim_op op)
{
	return add2(w, op, 0, 0);
}

/* Runs until all that was added has ended. */
static void run(struct world *w)
{
	assert_ok(sim_run(&w->sim, &w->err), w->err);
	for (uint32_t i = 0; i < w->n_tags; i++)
		ck_assert_int_ge(w->end[i], 0);
	ck_assert_uint_eq(w->sim.n_done, w->n_tags);
}

static void drop(struct world *w)
{
	arena_release(&w->arena);
}

/* ceil(amount / rate) in picoseconds; both whole numbers. */
static sim_time ceil_ps(uint64_t amount, uint64_t rate)
{
	return (sim_time)(((unsigned __int128)amount * PS + rate - 1) / rate);
}

#define assert_time(got, want_seconds, n_rounded)                                                  \
	do {                                                                                       \
		sim_time got_ = (got);                                                             \
		long double want_ = (want_seconds) * 1e12L;                                        \
		if (!((long double)got_ > want_ - 0.01L && (long double)got_ < want_ + (n_rounded) + 0.01L)) \
			ck_abort_msg("%s is %lld ps, not %.3Lf", #got, (long long)got_, want_);    \
	} while (0)

/* ---- one flow ---- */

START_TEST(latency_then_bytes)
{
	/* Rounded up: 1 ps less would not do. */
	static const struct {
		sim_time latency;
		uint64_t bytes, rate;
	} cases[] = {
		{1310007, 2385000001, 55300000000},
		{0, 2385000001, 55300000000},
		{2700000, 1, 24000000000},
		{0, 1, 1000000000000},
		{0, 1, 1000000000001}, /* a hair less than 1 ps */
		{0, 1, 999999999999},  /* and a hair more: 2 */
		{9, 4096, 3300000000000},
		{1, 141000000000, 23850000000},
		{0, 24000000000, 24000000000},
		{0, 5500000000, 55000000000},
		{2385, 9007199254740991, 3350000000000}, /* 45 minutes */
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct world *w = WORLD((double)cases[i].rate);
		add(w, OP(.latency = cases[i].latency, .amount = (double)cases[i].bytes, PATH({0, 1})));
		run(w);
		ck_assert_int_eq(w->start[0], 0);
		ck_assert_int_eq(w->end[0], cases[i].latency + ceil_ps(cases[i].bytes, cases[i].rate));
		ck_assert_int_eq(w->charge[0][0], ceil_ps(cases[i].bytes, cases[i].rate));
		ck_assert_int_eq(w->charge[0][1], cases[i].latency);
		ck_assert_int_eq(w->sim.now, w->end[0]);
		drop(w);
	}
}
END_TEST

START_TEST(never_early_at_most_1_ps_late)
{
	/* But for the rounding of doubles, 4e-16 of the time. */
	gsl_rng *r = rng_new(2385, 10, RNG_TEST);
	int n_late = 0;
	const int n = 3000;

	for (int i = 0; i < n; i++) {
		uint64_t rate = (uint64_t)exp(gsl_ran_flat(r, log(1e6), log(4e12)));
		uint64_t bytes = (uint64_t)exp(gsl_ran_flat(r, log(1), log(2e11)));
		if (i % 3 == 0) { /* often a whole number of picoseconds */
			rate = rate / 1000000 * 1000000;
			bytes = bytes / 1000000 * 1000000 + 1000000;
		}
		struct world *w = WORLD((double)rate);
		add(w, OP(.amount = (double)bytes, PATH({0, 1})));
		run(w);
		long double want = (long double)bytes * 1e12L / rate, slack = 4e-16L * want;
		ck_assert_msg(w->end[0] >= want - slack && w->end[0] < want + 1 + slack,
			"%llu / %llu: %lld, not %.3Lf", (unsigned long long)bytes, (unsigned long long)rate,
			(long long)w->end[0], want);
		n_late += want < 1e12L && w->end[0] > ceil_ps(bytes, rate);
		drop(w);
	}
	ck_assert_int_lt(n_late, n / 100); /* whole, and a hair above for the double */
	gsl_rng_free(r);
}
END_TEST

START_TEST(not_done_at_t_minus_1)
{
	/* What others see: at t - 1 it is under way, at t it has ended (watchers go last in their moment). */
	const sim_time t = 1310007 + ceil_ps(2385000001, 55300000000);
	struct world *w = WORLD(55.3e9);

	add(w, OP(.latency = 1310007, .amount = 2385000001, PATH({0, 1})));
	add(w, OP(.not_before = t - 1, .priority = 1));
	add(w, OP(.not_before = t, .priority = 1));
	run(w);
	ck_assert_uint_eq(w->order[0], 1);
	ck_assert_uint_eq(w->order[1], 0);
	ck_assert_uint_eq(w->order[2], 2);
	ck_assert_int_eq(w->end[0], t);
	drop(w);
}
END_TEST

START_TEST(latency_alone)
{
	struct world *w = WORLD(55.3e9);

	op_ref first = add(w, OP(.latency = 2385001));
	add2(w, OP(.latency = 7), first, 0);
	add(w, OP(.latency = 1));
	add(w, OP(.latency = 2385001, PATH({0, 1}))); /* a path without an amount takes nothing */
	run(w);
	ck_assert_int_eq(w->end[0], 2385001);
	ck_assert_int_eq(w->start[1], 2385001);
	ck_assert_int_eq(w->end[1], 2385008);
	ck_assert_int_eq(w->end[2], 1);
	ck_assert_int_eq(w->end[3], 2385001);
	ck_assert_int_eq(w->charge[1][1], 2385008);
	ck_assert_int_eq(flow_busy(&w->sim.net, 0, w->sim.now), 0);
	drop(w);
}
END_TEST

START_TEST(a_cap)
{
	/* Below, between and above two links; and with no path at all. Charged to whom the operation names. */
	static const struct {
		double cap;
		int cap_resource;
		uint64_t rate;
		int charged;
	} cases[] = {
		{12e9, SIM_NONE, 12000000000, 2},
		{12e9, 0, 12000000000, 0},
		{23.851e9, 0, 23850000000, 1},
		{1e30, 0, 23850000000, 1},
		{0, 0, 23850000000, 1},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct world *w = WORLD(55.3e9, 23.85e9);
		add(w, blame(cases[i].cap_resource,
			OP(.latency = 2, .amount = 2385000001, .cap = cases[i].cap, PATH({0, 1}, {1, 1}))));
		run(w);
		sim_time t = ceil_ps(2385000001, cases[i].rate);
		ck_assert_int_eq(w->end[0], t + 2);
		ck_assert_int_eq(w->charge[0][cases[i].charged], t + (cases[i].charged == 2 ? 2 : 0));
		drop(w);
	}
	struct world *w = WORLD(1);
	add(w, OP(.amount = 2385000001, .cap = 7.1e9));
	add(w, blame(0, OP(.amount = 2385000001, .cap = 7.1e9)));
	run(w);
	ck_assert_int_eq(w->end[0], ceil_ps(2385000001, 7100000000));
	ck_assert_int_eq(w->charge[0][1], w->end[0]);
	ck_assert_int_eq(w->end[1], w->end[0]);
	ck_assert_int_eq(w->charge[1][0], w->end[0]);
	drop(w);
}
END_TEST

START_TEST(weight_2)
{
	/* It uses the bus twice a byte: half as fast, though the link could do more. */
	struct world *w = WORLD(47.7e9, 25.3e9);

	add(w, OP(.amount = 2385000001, PATH({1, 1}, {0, 2})));
	run(w);
	ck_assert_int_eq(w->end[0], ceil_ps(2385000001, 23850000000));
	ck_assert_int_eq(w->charge[0][0], w->end[0]);
	assert_close(w->sim.net.resource[0].moved, 2 * 2385000001., 0);
	assert_close(w->sim.net.resource[1].moved, 2385000001., 0);
	drop(w);
}
END_TEST

/* ---- flows that share ---- */

START_TEST(two_share_then_one_has_all)
{
	/* rate/2 each until the smaller one ends at 2b / rate; the other at (a + b) / rate. */
	const uint64_t a = 2385000000, b = 1192000001, rate = 55300000000;
	struct world *w = WORLD((double)rate);

	add(w, OP(.amount = (double)a, PATH({0, 1})));
	add(w, OP(.amount = (double)b, PATH({0, 1})));
	run(w);
	sim_time tb = ceil_ps(2 * b, rate);
	ck_assert_int_eq(w->end[1], tb);
	/* In whole numbers: what a has left at tb, in 1/2 byte ps / s, at twice the rate. */
	__int128 left = (__int128)2 * a * PS - (__int128)rate * tb;
	ck_assert_int_eq(w->end[0], tb + (sim_time)((left + 2 * rate - 1) / (2 * rate)));
	assert_time(w->end[0], (long double)(a + b) / rate, 2);
	ck_assert_int_eq(flow_busy(&w->sim.net, 0, w->sim.now), w->end[0]);
	drop(w);
}
END_TEST

START_TEST(two_equal_ones_end_together)
{
	struct world *w = WORLD(55.3e9);

	add(w, OP(.amount = 2385000001, PATH({0, 1})));
	add(w, OP(.amount = 2385000001, PATH({0, 1})));
	run(w);
	ck_assert_int_eq(w->end[0], ceil_ps(2 * UINT64_C(2385000001), 55300000000));
	ck_assert_int_eq(w->end[1], w->end[0]);
	drop(w);
}
END_TEST

START_TEST(a_late_arrival)
{
	/* b comes at t0 by its earliest time, or by a latency; a had the link alone until then. */
	const long double a = 2385000000, b = 311000000, rate = 55.3e9;
	const sim_time t0 = 17100000007;

	for (int by_latency = 0; by_latency < 2; by_latency++) {
		struct world *w = WORLD((double)rate);
		add(w, OP(.amount = (double)a, PATH({0, 1})));
		add(w, OP(.not_before = by_latency ? 0 : t0, .latency = by_latency ? t0 : 0, .amount = (double)b,
			PATH({0, 1})));
		run(w);
		assert_time(w->end[1], t0 / 1e12L + 2 * b / rate, 1);
		assert_time(w->end[0], (a + b) / rate, 2);
		ck_assert_int_eq(w->start[1], by_latency ? 0 : t0);
		ck_assert_int_eq(w->charge[1][1], t0);
		ck_assert_int_eq(w->charge[1][0], w->end[1] - t0);
		ck_assert_int_eq(w->charge[0][0], w->end[0]);
		drop(w);
	}
}
END_TEST

START_TEST(one_comes_as_another_goes)
{
	/* At the very picosecond: c takes over what a had, and b does not notice. */
	const sim_time t = 47700000000;
	struct world *w = WORLD(50e9);

	add(w, OP(.amount = 25e9 * 0.0477, PATH({0, 1})));
	add(w, OP(.amount = 25e9 * 0.0954, PATH({0, 1})));
	add(w, OP(.not_before = t, .amount = 25e9 * 0.0477, PATH({0, 1})));
	run(w);
	ck_assert_int_eq(w->end[0], t);
	ck_assert_int_eq(w->end[1], 2 * t);
	ck_assert_int_eq(w->end[2], 2 * t);
	drop(w);
}
END_TEST

START_TEST(the_bottleneck_moves)
{
	/*
	 * a over link 0, b over both, c over link 1. Link 0 gives a and b 10.3e9 each, c has the other 21.1e9 of
	 * link 1. When a is done, link 1 is the narrower one: b and c have 15.7e9 each. b ends, c has it all.
	 */
	const long double a = 1.03e9, b = 2.385e9, c = 6.11e9;
	struct world *w = WORLD(20.6e9, 31.4e9);

	add(w, OP(.amount = (double)a, PATH({0, 1})));
	add(w, OP(.amount = (double)b, PATH({0, 1}, {1, 1})));
	add(w, OP(.amount = (double)c, PATH({1, 1})));
	run(w);
	long double ta = a / 10.3e9L, tb = ta + (b - a) / 15.7e9L;
	assert_time(w->end[0], ta, 1);
	assert_time(w->end[1], tb, 2);
	assert_time(w->end[2], (b + c) / 31.4e9L, 3); /* link 1 was full all the time */
	ck_assert_int_eq(w->charge[1][0], w->end[0]);
	ck_assert_int_eq(w->charge[1][1], w->end[1] - w->end[0]);
	ck_assert_int_eq(w->charge[2][1], w->end[2]);
	drop(w);
}
END_TEST

START_TEST(the_bottleneck_moves_and_the_rate_does_not)
{
	/*
	 * a shares link 0 with b, and link 1 with c, which has the 10e9 that a leaves. At 0.1 s b goes and d comes on
	 * link 1: a still has 5e9, but link 1 is what limits it now.
	 */
	struct world *w = WORLD(10e9, 15e9);

	add(w, OP(.amount = 1e9, PATH({0, 1}, {1, 1})));
	add(w, OP(.amount = 0.5e9, PATH({0, 1})));
	add(w, OP(.amount = 2e9, PATH({1, 1})));
	add(w, OP(.not_before = S(0.1), .amount = 0.75e9, PATH({1, 1})));
	run(w);
	ck_assert_int_eq(w->end[1], S(0.1));
	ck_assert_int_eq(w->end[0], S(0.2));
	ck_assert_int_eq(w->charge[0][0], S(0.1));
	ck_assert_int_eq(w->charge[0][1], S(0.1));
	/* 0.25e9 of d and 0.5e9 of c are left at 0.2 s, and share. */
	ck_assert_int_eq(w->end[3], S(0.1) + S(0.1) + ceil_ps(250000000, 7500000000));
	drop(w);
}
END_TEST

START_TEST(a_kernel_and_a_copy)
{
	/*
	 * A kernel reads `bytes` at the memory's rate and computes `flops_byte` with each; a copy comes in over the
	 * link on the same memory. The kernel has what the copy leaves, the memory's rest or its own compute limit:
	 *   so few FLOPs that memory limits it throughout;
	 *   memory limits it while the copy lasts, compute after that;
	 *   so many that compute limits it throughout, and it does not notice the copy.
	 */
	enum { MEMORY, COMPUTE, LINK };
	const long double memory = 921e9, compute = 165e12, link = 155.3e9, copy = 7.7e9, bytes = 77.1e9;
	static const double flops_byte[] = {3.56, 200, 238.5};

	for (size_t i = 0; i < ARRAY_LEN(flops_byte); i++) {
		struct world *w = WORLD((double)memory, (double)compute, (double)link);
		add(w, OP(.amount = (double)bytes, PATH({MEMORY, 1}, {COMPUTE, flops_byte[i]})));
		add(w, OP(.amount = (double)copy, PATH({LINK, 1}, {MEMORY, 1})));
		run(w);
		long double alone = compute / flops_byte[i], rest = memory - link, t = copy / link;
		assert_time(w->end[1], t, 1);
		ck_assert_int_eq(w->charge[1][LINK], w->end[1]);
		if (i == 0) {
			assert_time(w->end[0], (bytes + copy) / memory, 2);
			ck_assert_int_eq(w->charge[0][MEMORY], w->end[0]);
		} else if (i == 1) {
			ck_assert(rest < alone && alone < memory);
			assert_time(w->end[0], t + (bytes - rest * t) / alone, 2);
			ck_assert_int_eq(w->charge[0][MEMORY], w->end[1]);
			ck_assert_int_eq(w->charge[0][COMPUTE], w->end[0] - w->end[1]);
		} else {
			ck_assert(alone < rest);
			assert_time(w->end[0], bytes / alone, 1);
			ck_assert_int_eq(w->charge[0][COMPUTE], w->end[0]);
		}
		assert_close(w->sim.net.resource[COMPUTE].moved, (double)bytes * flops_byte[i], 1e-15);
		assert_close(w->sim.net.resource[MEMORY].moved, (double)(bytes + copy), 1e-15);
		drop(w);
	}
}
END_TEST

START_TEST(a_cpu_layer_and_dma_share_the_bus)
{
	/*
	 * Pinned: half of DRAM each until the DMA is done. Pageable: the copy uses DRAM twice a byte, so that
	 * both run at a third; then the layer has all of it.
	 */
	enum { DRAM, LINK };
	const long double dram = 90.6e9, link = 55.3e9, layer = 6.11e9, dma = 2.385e9;

	for (int weight = 1; weight <= 2; weight++) {
		struct world *w = WORLD((double)dram, (double)link);
		add(w, OP(.amount = (double)layer, PATH({DRAM, 1})));
		add(w, OP(.amount = (double)dma, PATH({DRAM, weight}, {LINK, 1})));
		run(w);
		assert_time(w->end[1], dma / (dram / (1 + weight)), 1);
		assert_time(w->end[0], (layer + weight * dma) / dram, 2);
		ck_assert_int_eq(w->charge[1][DRAM], w->end[1]);
		drop(w);
	}
}
END_TEST

START_TEST(two_way_traffic)
{
	/* A link of 25.3 and 25.1 GB/s whose two-way sum is 38.2: 19.1 each way, then 25.3 for the one left. */
	enum { H2D, D2H, BOTH };
	const long double in_bytes = 6.11e9, out_bytes = 2.385e9;
	struct world *w = WORLD(25.3e9, 25.1e9, 38.2e9);

	add(w, OP(.amount = (double)in_bytes, PATH({H2D, 1}, {BOTH, 1})));
	add(w, OP(.amount = (double)out_bytes, PATH({D2H, 1}, {BOTH, 1})));
	run(w);
	long double t = out_bytes / 19.1e9L;
	assert_time(w->end[1], t, 1);
	assert_time(w->end[0], t + (in_bytes - out_bytes) / 25.3e9L, 2);
	ck_assert_int_eq(w->charge[0][BOTH], w->end[1]);
	ck_assert_int_eq(w->charge[0][H2D], w->end[0] - w->end[1]);
	drop(w);
}
END_TEST

START_TEST(strangers_are_left_alone)
{
	/* A newcomer that lives on what others leave, and a leaver nobody waited for, change nobody's time by a
	   picosecond, and nothing is solved. */
	const sim_time alone = ceil_ps(2385000001, 7100000000);
	struct world *w = WORLD(55.3e9, 7.1e9, 31.4e9);

	add(w, OP(.amount = 2385000001, PATH({0, 1}, {1, 1}))); /* limited by resource 1 */
	add(w, OP(.amount = 1e6, PATH({0, 1}, {2, 1})));         /* by 2 */
	add(w, OP(.not_before = 100000000, .amount = 1e6, .cap = 3e9, PATH({0, 1})));
	add(w, OP(.not_before = 200000000, .amount = 1e6, PATH({0, 1})));
	run(w);
	ck_assert_int_eq(w->end[0], alone);
	ck_assert_int_eq(w->end[1], ceil_ps(1000000, 31400000000));
	ck_assert_int_eq(w->end[2], 100000000 + ceil_ps(1000000, 3000000000));
	ck_assert_uint_eq(w->sim.net.n_solved, 0);
	drop(w);
}
END_TEST

START_TEST(busy_and_moved)
{
	/* Closed intervals [a, b) with a flow on it, counted once however many there are. */
	struct world *w = WORLD(2e9, 7.1e9);

	add(w, OP(.latency = S(0.1), .amount = 1e9, PATH({0, 1})));              /* 0.1 … 0.9 */
	add(w, OP(.not_before = S(0.3), .amount = 0.3e9, PATH({0, 1}, {1, 3})));  /* 0.3 … 0.6 */
	add(w, OP(.not_before = S(2), .amount = 0.5e9, PATH({0, 1})));            /* 2 … 2.25 */
	add(w, OP(.not_before = S(2.25), .amount = 0.5e9, PATH({0, 1})));         /* … 2.5 */
	add(w, OP(.not_before = S(3.1)));
	run(w);
	ck_assert_int_eq(w->end[1], S(0.6));
	ck_assert_int_eq(w->end[0], S(0.75));
	ck_assert_int_eq(w->end[3], S(2.5));
	ck_assert_int_eq(w->sim.now, S(3.1));
	ck_assert_int_eq(flow_busy(&w->sim.net, 0, w->sim.now), S(0.65) + S(0.5));
	ck_assert_int_eq(flow_busy(&w->sim.net, 1, w->sim.now), S(0.3));
	assert_close(w->sim.net.resource[0].moved, 2.3e9, 1e-15);
	assert_close(w->sim.net.resource[1].moved, 0.9e9, 1e-15);
	drop(w);
}
END_TEST

/* ---- units, streams, order ---- */

START_TEST(a_unit_with_one_place)
{
	/* First come, first served; a place is held through latency and flow; not_before holds none. */
	struct world *w = world((const double[]){23.85e9, 0}, (const uint32_t[]){1, 0});
	sim_time t = ceil_ps(2385000001, 23850000000);

	add(w, on(0, OP(.not_before = 5, .latency = 100)));                              /* comes at 5 */
	add(w, on(0, OP(.latency = 1310007, .amount = 2385000001, PATH({0, 1})))); /* first */
	add(w, on(0, OP(.latency = 7)));
	add(w, OP(.amount = 1, .cap = 1e12)); /* needs no unit */
	run(w);
	ck_assert_int_eq(w->start[1], 0);
	ck_assert_int_eq(w->end[1], 1310007 + t);
	ck_assert_int_eq(w->start[2], w->end[1]);
	ck_assert_int_eq(w->end[2], w->end[1] + 7);
	ck_assert_int_eq(w->start[0], w->end[2]);
	ck_assert_int_eq(w->end[0], w->end[2] + 100);
	ck_assert_int_eq(w->end[3], 1);
	/* The one that waited for the place follows from the one that gave it. */
	ck_assert_int_eq(w->charge[0][0], t);
	ck_assert_int_eq(w->charge[0][1], 1310007 + 7 + 100);
	drop(w);
}
END_TEST

START_TEST(a_unit_with_two_places)
{
	/* Two at once; 2 after the shorter of 0 and 1, and so on, strictly in order: 4 is short but waits. */
	static const sim_time length[] = {700, 300, 500, 200, 10, 10};
	static const sim_time start[] = {0, 0, 300, 700, 800, 810};
	struct world *w = UNITS(2);

	for (size_t i = 0; i < ARRAY_LEN(length); i++)
		add(w, on(0, OP(.latency = length[i])));
	run(w);
	for (size_t i = 0; i < ARRAY_LEN(length); i++) {
		ck_assert_int_eq(w->start[i], start[i]);
		ck_assert_int_eq(w->end[i], start[i] + length[i]);
	}
	drop(w);
}
END_TEST

START_TEST(nobody_jumps_the_queue)
{
	/* When a place is given back in the moment in which another comes, it goes to the one that waited. */
	for (int priority = -1; priority <= 1; priority++) {
		struct world *w = UNITS(1);
		add(w, on(0, OP(.latency = 2385)));
		add(w, on(0, OP(.latency = 10)));
		add(w, on(0, OP(.not_before = 2385, .latency = 10, .priority = priority)));
		run(w);
		ck_assert_int_eq(w->start[1], 2385);
		ck_assert_int_eq(w->start[2], 2395);
		drop(w);
	}
}
END_TEST

START_TEST(streams_keep_issue_order)
{
	/* 1 waits for slow 0; 2, behind it in the stream, could go at once; 3 is in another stream. */
	struct world *w = UNITS(3);

	op_ref slow = add(w, OP(.latency = 2385001));
	add2(w, in(2, on(0, OP(.latency = 11))), slow, 0);
	add(w, in(2, on(0, OP(.latency = 5))));
	add(w, in(1, on(0, OP(.latency = 3))));
	add(w, in(2, on(0, OP(.latency = 1))));
	run(w);
	ck_assert_int_eq(w->start[1], 2385001);
	ck_assert_int_eq(w->start[2], 2385012);
	ck_assert_int_eq(w->end[2], 2385017);
	ck_assert_int_eq(w->start[3], 0);
	ck_assert_int_eq(w->start[4], 2385017);
	drop(w);
}
END_TEST

START_TEST(not_before)
{
	/* The later of time and dependency; one at its time already is not held up. */
	struct world *w = WORLD(1e9);

	op_ref x = add(w, OP(.latency = 2385));
	add2(w, OP(.not_before = 2384, .latency = 1), x, 0);
	add2(w, OP(.not_before = 2385, .latency = 1), x, 0);
	add2(w, OP(.not_before = 2386, .latency = 1), x, 0);
	add(w, OP(.not_before = 2386, .latency = 1));
	run(w);
	ck_assert_int_eq(w->start[1], 2385);
	ck_assert_int_eq(w->start[2], 2385);
	ck_assert_int_eq(w->start[3], 2386);
	ck_assert_int_eq(w->start[4], 2386);
	ck_assert_int_eq(w->end[3], 2387);
	drop(w);
}
END_TEST

START_TEST(dependencies)
{
	/* A diamond: 3 waits for the slower of 1 and 2, which both wait for 0. Twice the same counts once. */
	struct world *w = WORLD(23.85e9, 7.1e9);
	sim_time t0 = ceil_ps(2385000001, 23850000000), t2 = ceil_ps(100000001, 7100000000);

	op_ref a = add(w, OP(.amount = 2385000001, PATH({0, 1})));
	op_ref b = add2(w, OP(.latency = 77), a, a);
	op_ref c = add2(w, OP(.amount = 100000001, PATH({1, 1})), a, 0);
	add2(w, OP(.latency = 3), b, c);
	run(w);
	ck_assert_int_eq(w->start[1], t0);
	ck_assert_int_eq(w->start[2], t0);
	ck_assert_int_eq(w->start[3], t0 + t2);
	ck_assert_int_eq(w->end[3], t0 + t2 + 3);
	/* The critical path leads over c. */
	ck_assert_int_eq(w->charge[3][0], t0);
	ck_assert_int_eq(w->charge[3][1], t2);
	ck_assert_int_eq(w->charge[3][2], 3);
	drop(w);
}
END_TEST

START_TEST(ties_by_priority_then_creation)
{
	/* Seven end in one picosecond: some by latency, some as flows that were moved there by a departure. */
	static const int32_t priority[] = {3, 0, -2, 0, 3, -2, 0};
	static const uint32_t order[] = {2, 5, 1, 3, 6, 0, 4};
	struct world *w = WORLD(2e9, 1e9);

	add(w, OP(.latency = S(1), .priority = priority[0]));
	add(w, OP(.amount = 1.5e9, .priority = priority[1], PATH({0, 1}))); /* half of it until 7 ends at 0.5 s */
	add(w, OP(.amount = 1e9, .priority = priority[2], PATH({1, 1})));
	add(w, OP(.not_before = S(1), .priority = priority[3]));
	add(w, OP(.not_before = S(0.5), .latency = S(0.5), .priority = priority[4]));
	add(w, OP(.amount = 1e9, .cap = 1e9, .priority = priority[5]));
	add(w, OP(.latency = S(0.25), .amount = 0.75e9, .cap = 1e9, .priority = priority[6]));
	add(w, OP(.amount = 0.5e9, PATH({0, 1})));
	run(w);
	ck_assert_uint_eq(w->order[0], 7);
	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		ck_assert_int_eq(w->end[i], S(1));
		ck_assert_uint_eq(w->order[i + 1], order[i]);
	}
	drop(w);
}
END_TEST

START_TEST(a_very_long_chain_takes_no_time)
{
	/* 100,000 deep, all in the moment 0: added before; over one unit; and unrolled from the callback. */
	for (int way = 0; way < 2; way++) {
		struct world *w = UNITS(1);
		op_ref last = 0;
		struct sim_op op = quiet(OP(.latency = 0));
		w->sim.config.span = NULL;
		for (uint32_t i = 0; i < 100000; i++) {
			if (way == 1)
				op.unit = 0;
			op_ref ref = sim_add(&w->sim, &op);
			if (way == 0)
				sim_depend(&w->sim, ref, last);
			sim_commit(&w->sim, ref);
			last = ref;
		}
		op = OP(.latency = 0);
		add2(w, op, last, 0);
		assert_ok(sim_run(&w->sim, &w->err), w->err);
		ck_assert_uint_eq(w->sim.n_done, 100001);
		ck_assert_uint_eq(w->n_ended, 1);
		ck_assert_int_eq(w->sim.now, 0);
		drop(w);
	}
}
END_TEST

/* ---- unrolled graphs ---- */

struct unrolled {
	struct world *w;
	uint64_t next, n;
	op_ref end, buffer[2];
	sim_time last_end;
	bool record;
};

enum { U_RAM, U_H2D, U_D2H, U_BOTH, U_HBM, U_COMPUTE };

static op_ref unrolled_op(struct unrolled *u, struct sim_op op, op_ref after, op_ref after2)
{
	if (u->record)
		return add2(u->w, op, after, after2);
	op_ref ref = sim_add(&u->w->sim, &op);
	sim_depend(&u->w->sim, ref, after);
	sim_depend(&u->w->sim, ref, after2);
	sim_commit(&u->w->sim, ref);
	return ref;
}

/* A step of a streamed model: weights into one of two buffers, two kernels, cache out. It waits for the end of
   the step before the one before it, which is when it is added if the graph is unrolled. */
static void add_step(struct unrolled *u, op_ref two_back)
{
	static const double bytes[] = {47.1e6, 23.85e6, 0.1e6, 99e6, 47.1e6};
	double copy = bytes[u->next % ARRAY_LEN(bytes)], kernel = bytes[(u->next + 2) % ARRAY_LEN(bytes)];
	op_ref *buffer = &u->buffer[u->next % 2];

	struct sim_op fetch = quiet(in(0, on(0,
		OP(.latency = 1310007, PATH({U_RAM, 1}, {U_H2D, 1}, {U_BOTH, 1}, {U_HBM, 1})))));
	fetch.amount = copy;
	op_ref in_a = unrolled_op(u, fetch, *buffer, two_back);
	fetch.amount = copy / 3;
	op_ref in_b = unrolled_op(u, fetch, *buffer, two_back);
	op_ref cpu = unrolled_op(u, quiet(OP(.amount = kernel / 9, .cap = 40e9, PATH({U_RAM, 1}))), u->end, 0);
	op_ref k = unrolled_op(u, quiet(on(1, OP(.latency = 4000000, .amount = 9 * kernel,
		PATH({U_HBM, 1}, {U_COMPUTE, 35.6})))), in_a, u->end);
	unrolled_op(u, quiet(in(1, on(2, OP(.amount = kernel / 50,
		PATH({U_HBM, 1}, {U_D2H, 1}, {U_BOTH, 1}, {U_RAM, 2}))))), k, 0);
	k = unrolled_op(u, quiet(on(1, OP(.latency = 4000000, .amount = 20 * kernel,
		PATH({U_HBM, 1}, {U_COMPUTE, 3.56})))), k, in_b);
	*buffer = k;
	u->end = unrolled_op(u, OP(.latency = 0), k, cpu);
	u->next++;
}

static void on_step(void *ctx, const struct op *op, sim_time now)
{
	struct unrolled *u = ctx;

	u->last_end = now;
	if (u->record)
		on_done(u->w, op, now);
	if (u->next < u->n)
		add_step(u, op_reference(op));
}

static struct world *pipeline(void)
{
	return world((const double[]){63.4e9, 23.85e9, 26.55e9, 37.2e9, 921e9, 165e12, 0},
		(const uint32_t[]){1, 1, 1, 0});
}

START_TEST(unrolled_is_the_same)
{
	static sim_time end[MAX_TAGS];
	const uint64_t n = 300;
	struct world *w = pipeline();
	struct unrolled u = {.w = w, .n = n, .record = true};
	op_ref ends[2] = {0, 0};

	while (u.next < n) {
		add_step(&u, ends[u.next % 2]);
		ends[(u.next - 1) % 2] = u.end;
	}
	run(w);
	memcpy(end, w->end, sizeof(end));
	ck_assert_uint_eq(w->n_tags, 7 * n);
	ck_assert_uint_gt(w->sim.ops.n_slots, 7 * n);
	drop(w);

	w = pipeline();
	u = (struct unrolled){.w = w, .n = n, .record = true};
	w->sim.config.done = on_step;
	w->sim.config.done_ctx = &u;
	add_step(&u, 0);
	add_step(&u, 0);
	run(w);
	ck_assert_uint_eq(w->sim.ops.n_slots, OPGRAPH_CHUNK);
	for (uint32_t i = 0; i < 7 * n; i++)
		ck_assert_int_eq(w->end[i], end[i]);
	/* Two steps at once were under way, and the work was shared out. */
	for (int r = U_RAM; r <= U_COMPUTE; r++)
		ck_assert(flow_busy(&w->sim.net, r, w->sim.now) > 0);
	ck_assert_uint_gt(w->sim.net.n_solved, n);
	drop(w);
}
END_TEST

static size_t bytes_for(uint64_t n_steps)
{
	struct world *w = pipeline();
	struct unrolled u = {.w = w, .n = n_steps};

	w->sim.config.span = NULL;
	w->sim.config.done = on_step;
	w->sim.config.done_ctx = &u;
	add_step(&u, 0);
	add_step(&u, 0);
	assert_ok(sim_run(&w->sim, &w->err), w->err);
	ck_assert_uint_eq(w->sim.n_done, 7 * n_steps);
	ck_assert_int_gt(u.last_end, (sim_time)n_steps * 1000000000);
	size_t bytes = w->arena.total_bytes;
	drop(w);
	return bytes;
}

START_TEST(memory_does_not_depend_on_length)
{
	ck_assert_uint_eq(bytes_for(1000), bytes_for(100000));
}
END_TEST

static void on_tick(void *ctx, const struct op *op, sim_time now)
{
	struct unrolled *u = ctx;

	(void)op;
	u->last_end = now;
	if (++u->next < u->n)
		unrolled_op(u, OP(.latency = 0), 0, 0);
}

START_TEST(a_chain_from_the_callback_takes_no_stack)
{
	struct world *w = WORLD(1);
	struct unrolled u = {.w = w, .n = 100000};

	w->sim.config.span = NULL;
	w->sim.config.done = on_tick;
	w->sim.config.done_ctx = &u;
	unrolled_op(&u, OP(.latency = 0), 0, 0);
	assert_ok(sim_run(&w->sim, &w->err), w->err);
	ck_assert_uint_eq(w->sim.n_done, 100000);
	ck_assert_int_eq(u.last_end, 0);
	ck_assert_uint_eq(w->sim.ops.n_slots, OPGRAPH_CHUNK);
	drop(w);
}
END_TEST

/* What is added from a callback may wait for the very operation that ended. */
struct follower {
	struct world *w;
	op_ref held;
};

static void on_followed(void *ctx, const struct op *op, sim_time now)
{
	struct follower *f = ctx;

	on_done(f->w, op, now);
	if (op->tag == 0)
		add2(f->w, OP(.latency = 7), op_reference(op), 0);
}

START_TEST(after_the_one_that_ended)
{
	struct world *w = WORLD(1);
	struct follower f = {.w = w};

	w->sim.config.done = on_followed;
	w->sim.config.done_ctx = &f;
	add(w, OP(.latency = 2385));
	add(w, OP(.latency = 3000));
	run(w);
	ck_assert_int_eq(w->start[2], 2385);
	ck_assert_int_eq(w->end[2], 2392);
	drop(w);
}
END_TEST

static void on_held(void *ctx, const struct op *op, sim_time now)
{
	struct follower *f = ctx;

	on_done(f->w, op, now);
	if (op->tag == 0) {
		struct sim_op spec = OP(.latency = 7, .tag = f->w->n_tags++);
		f->held = sim_add(&f->w->sim, &spec);
		sim_depend(&f->w->sim, f->held, op_reference(op));
	} else if (op->tag == 1) {
		sim_commit(&f->w->sim, f->held);
	}
}

START_TEST(held_over_several_callbacks)
{
	/* 2 is added when 0 ends, let go when 1 ends. It starts then, and its charges are those of 1. */
	struct world *w = WORLD(1e9);
	struct follower f = {.w = w};

	w->sim.config.done = on_held;
	w->sim.config.done_ctx = &f;
	add(w, OP(.latency = 2385));
	add(w, OP(.amount = 3, PATH({0, 1})));
	run(w);
	ck_assert_int_eq(w->start[2], 3000);
	ck_assert_int_eq(w->charge[2][0], 3000);
	ck_assert_int_eq(w->charge[2][1], 7);
	drop(w);
}
END_TEST

START_TEST(a_second_run_goes_on)
{
	/* With more to do sim_run may be called again: the clock goes on, and the time until then is overhead. */
	struct world *w = WORLD(1e9);

	add(w, OP(.amount = 3, PATH({0, 1})));
	run(w);
	add(w, OP(.amount = 7, PATH({0, 1})));
	run(w);
	ck_assert_int_eq(w->start[1], 3000);
	ck_assert_int_eq(w->end[1], 10000);
	ck_assert_int_eq(w->charge[1][0], 7000);
	ck_assert_int_eq(w->charge[1][1], 3000);
	run(w); /* nothing to do */
	ck_assert_int_eq(w->sim.now, 10000);
	drop(w);
}
END_TEST

/* ---- charges ---- */

START_TEST(charges_tell_what_limited)
{
	/*
	 * wait -> copy (link) -> kernel (compute), and beside it a capped read that ends sooner. Then two kernels
	 * at once on the memory. The last row is the whole story.
	 */
	enum { LINK, HBM, COMPUTE, DISK, OVERHEAD };
	struct world *w = WORLD(23.85e9, 921e9, 165e12, 6.44e9);
	sim_time copy = ceil_ps(2385000001, 23850000000), kernel = ceil_ps(9000000001, 500000000000);

	op_ref wait = add(w, OP(.not_before = 77, .latency = 3));
	op_ref a = add2(w, OP(.latency = 2700000, .amount = 2385000001, PATH({LINK, 1}, {HBM, 1})), wait, 0);
	op_ref disk = add(w, blame(DISK, OP(.amount = 0.6e9, .cap = 6e9, PATH({DISK, 1}))));
	op_ref b = add2(w, OP(.latency = 4000000, .amount = 9000000001, PATH({HBM, 1}, {COMPUTE, 330})), a, disk);
	op_ref c = add2(w, OP(.amount = 1e9, PATH({HBM, 1}, {COMPUTE, 3.56})), b, 0);
	op_ref d = add2(w, OP(.amount = 2e9, PATH({HBM, 1}, {COMPUTE, 3.56})), b, 0);
	add2(w, OP(.latency = 5), c, d);
	run(w);
	const sim_time *end = w->charge[6];
	assert_close(165e12 / 330, 500e9, 1e-15);
	ck_assert_int_eq(w->charge[2][DISK], S(0.1));
	ck_assert_int_eq(w->end[2], S(0.1));
	ck_assert_int_eq(w->end[1], 80 + 2700000 + copy);
	ck_assert_int_eq(end[LINK], copy);
	ck_assert_int_eq(end[COMPUTE], kernel);
	assert_time(end[HBM], 3e9L / 921e9L, 2);
	ck_assert_int_eq(end[DISK], 0);
	ck_assert_int_eq(end[OVERHEAD], 77 + 3 + 2700000 + 4000000 + 5);
	ck_assert_int_eq(end[LINK] + end[COMPUTE] + end[HBM] + end[OVERHEAD], w->end[6]);
	drop(w);
}
END_TEST

START_TEST(charges_can_be_left_out)
{
	struct world *w = WORLD(1e9);

	w->config.charges = false;
	sim_init(&w->sim, &w->config, &w->arena);
	add2(w, OP(.amount = 3, PATH({0, 1})), add(w, OP(.latency = 2)), 0);
	run(w);
	ck_assert_int_eq(w->end[1], 3002);
	drop(w);
}
END_TEST

/* ---- errors ---- */

START_TEST(beyond_the_clock)
{
	static const char msg[] =
		"the simulated time goes beyond 53 days: some amount is too large or some rate too small";

	/* As the first thing; in the midst of others, where nothing may be said to have ended that did not. */
	for (int way = 0; way < 5; way++) {
		struct world *w = WORLD(1);
		op_ref first = add(w, OP(.latency = 2385));
		switch (way) {
		case 0:
			add(w, OP(.amount = 1e30, PATH({0, 1})));
			break;
		case 1:
			add2(w, OP(.amount = 1e30, PATH({0, 1})), first, 0);
			break;
		case 2:
			add2(w, OP(.latency = INT64_MAX), first, 0);
			break;
		case 3: /* shared: only solving shows it */
			add2(w, OP(.amount = 4e6, PATH({0, 1})), first, 0);
			add2(w, OP(.amount = 4e6, PATH({0, 1})), first, 0);
			break;
		case 4: /* by degrees: each of them would do */
			for (int k = 0; k < 3; k++)
				first = add2(w, OP(.amount = 4e6, PATH({0, 1})), first, 0);
			break;
		}
		ck_assert_int_eq(sim_run(&w->sim, &w->err), -1);
		assert_err(w->err, ERR_INPUT, msg);
		ck_assert_uint_eq(w->n_ended, way == 0 ? 0 : way == 4 ? 3 : 1);
		drop(w);
	}
	/* 4.6e6 s, 53 days, is within. */
	struct world *w = WORLD(1);
	add(w, OP(.amount = 4.6e6, PATH({0, 1})));
	run(w);
	ck_assert_int_eq(w->end[0], INT64_C(4600000000000000000));
	drop(w);
}
END_TEST

START_TEST(a_cycle)
{
	struct world *w = UNITS(1);
	struct sim_op op = OP(.latency = 5, .tag = 0);

	w->n_tags = 3;
	op_ref x = sim_add(&w->sim, &op);
	op.tag = 1;
	op_ref y = sim_add(&w->sim, &op);
	op.tag = 2;
	op_ref z = sim_add(&w->sim, &op);
	sim_depend(&w->sim, x, y);
	sim_depend(&w->sim, y, x);
	sim_commit(&w->sim, z);
	sim_commit(&w->sim, x);
	sim_commit(&w->sim, y);
	ck_assert_int_eq(sim_run(&w->sim, &w->err), -1);
	assert_err(w->err, ERR_INPUT, "2 operations wait for each other");
	ck_assert_int_eq(w->end[2], 5); /* the one beside them ran */
	ck_assert_uint_eq(w->sim.n_done, 1);
	drop(w);
}
END_TEST

static volatile sig_atomic_t stop;

static void on_tock(void *ctx, const struct op *op, sim_time now)
{
	struct unrolled *u = ctx;

	(void)op, (void)now;
	if (++u->next == 10000)
		stop = 1;
	unrolled_op(u, OP(.latency = 1), 0, 0); /* for ever */
}

START_TEST(interrupted)
{
	struct world *w = WORLD(1);
	struct unrolled u = {.w = w};

	stop = 0;
	w->sim.config.span = NULL;
	w->sim.config.done = on_tock;
	w->sim.config.done_ctx = &u;
	w->sim.config.interrupted = &stop;
	unrolled_op(&u, OP(.latency = 1), 0, 0);
	ck_assert_int_eq(sim_run(&w->sim, &w->err), -1);
	assert_err(w->err, ERR_INTERRUPTED, "interrupted");
	ck_assert_uint_ge(u.next, 10000);
	ck_assert_uint_lt(u.next, 20000); /* soon */
	drop(w);
}
END_TEST

START_TEST(interrupted_in_one_moment)
{
	/* A builder that goes on for ever without time going on can be stopped too. */
	struct world *w = WORLD(1);
	struct unrolled u = {.w = w};

	stop = 0;
	w->sim.config.span = NULL;
	w->sim.config.done = on_tock;
	w->sim.config.done_ctx = &u;
	w->sim.config.interrupted = &stop;
	unrolled_op(&u, OP(.not_before = 1), 0, 0);
	ck_assert_int_eq(sim_run(&w->sim, &w->err), -1);
	assert_err(w->err, ERR_INTERRUPTED, "interrupted");
	drop(w);
}
END_TEST

/* ---- against a reference ---- */

#define MAX_FLOWS 48

struct rflow {
	struct maxmin_hop hop[4];
	int n_hops;
	double amount, cap; /* cap 0: none */
	sim_time not_before, latency;
	long double remaining, rate, end;
	bool flowing, done;
};

struct rcase {
	double capacity[MAX_R];
	int n_resources;
	struct rflow flow[MAX_FLOWS];
	int n;
};

/* Progressive filling from nothing: all rise together; those on a full resource or at their cap stay there. */
static void reference_rates(struct rcase *c)
{
	bool stays[MAX_FLOWS];
	int rising = 0;

	for (int i = 0; i < c->n; i++) {
		stays[i] = !c->flow[i].flowing;
		c->flow[i].rate = 0;
		rising += c->flow[i].flowing;
	}
	while (rising) {
		long double used[MAX_R] = {0}, weight[MAX_R] = {0}, level = INFINITY;
		for (int i = 0; i < c->n; i++)
			for (int h = 0; h < c->flow[i].n_hops && c->flow[i].flowing; h++) {
				const struct maxmin_hop *hop = &c->flow[i].hop[h];
				if (stays[i])
					used[hop->resource] += hop->weight * c->flow[i].rate;
				else
					weight[hop->resource] += hop->weight;
			}
		for (int r = 0; r < c->n_resources; r++)
			if (weight[r] > 0)
				level = fminl(level, (c->capacity[r] - used[r]) / weight[r]);
		for (int i = 0; i < c->n; i++)
			if (!stays[i] && c->flow[i].cap > 0)
				level = fminl(level, c->flow[i].cap);
		for (int i = 0; i < c->n; i++) {
			struct rflow *f = &c->flow[i];
			bool stop_here = f->cap > 0 && f->cap <= level * (1 + 1e-17L);
			for (int h = 0; h < f->n_hops; h++) {
				int r = f->hop[h].resource;
				long double share = (c->capacity[r] - used[r]) / weight[r];
				if (weight[r] > 0 && share <= level * (1 + 1e-15L))
					stop_here = true;
			}
			if (!stays[i] && stop_here) {
				f->rate = level;
				stays[i] = true;
				rising--;
			}
		}
	}
}

/* All rates anew at each event; nothing is rounded but the long doubles. */
static void reference(struct rcase *c)
{
	long double now = 0;
	int left = c->n;

	for (int i = 0; i < c->n; i++) {
		c->flow[i].remaining = c->flow[i].amount;
		c->flow[i].flowing = c->flow[i].done = false;
	}
	while (left) {
		long double next = INFINITY;
		int who = -1;
		for (int i = 0; i < c->n; i++) {
			struct rflow *f = &c->flow[i];
			long double t = f->flowing ? now + f->remaining / f->rate
						   : (f->not_before + f->latency) / 1e12L;
			if (!f->done && t < next) {
				next = t;
				who = i;
			}
		}
		for (int i = 0; i < c->n; i++)
			if (c->flow[i].flowing)
				c->flow[i].remaining -= c->flow[i].rate * (next - now);
		now = next;
		struct rflow *f = &c->flow[who];
		if (f->flowing) {
			f->flowing = false;
			f->done = true;
			f->end = now;
			left--;
		} else {
			f->flowing = true;
		}
		reference_rates(c);
	}
}

static void random_case(struct rcase *c, gsl_rng *r, bool many)
{
	memset(c, 0, sizeof(*c));
	c->n_resources = 1 + (int)gsl_rng_uniform_int(r, 8);
	c->n = many ? 20 + (int)gsl_rng_uniform_int(r, MAX_FLOWS - 20) : 1 + (int)gsl_rng_uniform_int(r, 14);
	for (int k = 0; k < c->n_resources; k++)
		c->capacity[k] = exp(gsl_ran_flat(r, log(2e9), log(100e9)));
	for (int i = 0; i < c->n; i++) {
		struct rflow *f = &c->flow[i];
		int order[MAX_R], most = c->n_resources < 4 ? c->n_resources : 4;
		for (int k = 0; k < c->n_resources; k++)
			order[k] = k;
		gsl_ran_shuffle(r, order, (size_t)c->n_resources, sizeof(order[0]));
		f->n_hops = 1 + (int)gsl_rng_uniform_int(r, (unsigned long)most);
		for (int h = 0; h < f->n_hops; h++) {
			static const double weight[] = {1, 1, 1, 1, 2, 3, 0.385, 3.56};
			f->hop[h].resource = order[h];
			f->hop[h].weight = weight[gsl_rng_uniform_int(r, ARRAY_LEN(weight))];
		}
		f->amount = exp(gsl_ran_flat(r, log(1e9), log(200e9)));
		f->cap = gsl_rng_uniform_int(r, 3) ? 0 : exp(gsl_ran_flat(r, log(0.5e9), log(50e9)));
		/* Some come together, at times of a few digits. */
		f->not_before = gsl_rng_uniform_int(r, 3) ? (sim_time)gsl_rng_uniform_int(r, 5) * 2385000000001
							   : (sim_time)(gsl_rng_uniform(r) * 2e13);
		f->latency = gsl_rng_uniform_int(r, 2) ? 0 : (sim_time)gsl_rng_uniform_int(r, 3000000);
	}
}

static struct sim_op flow_spec(const struct rflow *f)
{
	return OP(.amount = f->amount, .cap = f->cap, .not_before = f->not_before, .latency = f->latency,
		.hop = f->hop, .n_hops = f->n_hops);
}

static struct world *run_case(const struct rcase *c, const int *order)
{
	struct world *w = world(c->capacity, NULL);

	for (int i = 0; i < c->n; i++)
		add(w, flow_spec(&c->flow[order ? order[i] : i]));
	run(w);
	return w;
}

START_TEST(as_a_reference_computes_it)
{
	gsl_rng *r = rng_new(2385, 11, RNG_TEST);
	static struct rcase c;
	uint64_t n_changes = 0, n_solved = 0;

	for (int i = 0; i < 300; i++) {
		random_case(&c, r, i % 4 == 0);
		reference(&c);
		struct world *w = run_case(&c, NULL);
		double moved[MAX_R] = {0};
		for (int k = 0; k < c.n; k++) {
			assert_close(sim_seconds(w->end[k]), (double)c.flow[k].end, 1e-9);
			/* And far better: rounding up an event delays others by less than 1 ps. */
			long double off = w->end[k] - c.flow[k].end * 1e12L;
			ck_assert_msg(fabsl(off) < 2 + c.n, "case %d, flow %d: off by %.3Lf ps", i, k, off);
			for (int h = 0; h < c.flow[k].n_hops; h++)
				moved[c.flow[k].hop[h].resource] += c.flow[k].hop[h].weight * c.flow[k].amount;
		}
		for (int k = 0; k < c.n_resources; k++)
			assert_close(w->sim.net.resource[k].moved, moved[k], 1e-12);
		n_changes += 2 * (uint64_t)c.n;
		n_solved += w->sim.net.n_solved;
		drop(w);
	}
	/* The shortcut was taken now and then, or there was nothing to compare. */
	ck_assert_uint_lt(n_solved, n_changes * 9 / 10);
	ck_assert_uint_gt(n_solved, n_changes / 10);
	gsl_rng_free(r);
}
END_TEST

/* ---- what must not, and what must change ---- */

START_TEST(order_of_adding_does_not_matter)
{
	gsl_rng *r = rng_new(2385, 12, RNG_TEST);
	static struct rcase c;
	static sim_time end[MAX_FLOWS];

	for (int i = 0; i < 100; i++) {
		int order[MAX_FLOWS];
		random_case(&c, r, i % 4 == 0);
		for (int k = 0; k < c.n; k++)
			order[k] = k;
		struct world *w = run_case(&c, NULL);
		memcpy(end, w->end, sizeof(end));
		drop(w);
		gsl_ran_shuffle(r, order, (size_t)c.n, sizeof(order[0]));
		w = run_case(&c, order);
		for (int k = 0; k < c.n; k++)
			ck_assert_msg(llabs(w->end[k] - end[order[k]]) <= c.n, "case %d, flow %d: %lld, not %lld", i,
				order[k], (long long)w->end[k], (long long)end[order[k]]);
		drop(w);
	}
	gsl_rng_free(r);
}
END_TEST

START_TEST(twice_as_fast_takes_half)
{
	gsl_rng *r = rng_new(2385, 13, RNG_TEST);
	static struct rcase c;
	static sim_time end[MAX_FLOWS];

	for (int i = 0; i < 100; i++) {
		random_case(&c, r, i % 4 == 0);
		for (int k = 0; k < c.n; k++)
			c.flow[k].latency = c.flow[k].not_before = 0;
		struct world *w = run_case(&c, NULL);
		memcpy(end, w->end, sizeof(end));
		drop(w);
		for (int k = 0; k < c.n_resources; k++)
			c.capacity[k] *= 2;
		for (int k = 0; k < c.n; k++)
			c.flow[k].cap *= 2;
		w = run_case(&c, NULL);
		for (int k = 0; k < c.n; k++) {
			/* Alone it is rounded up once in each run; others add theirs. */
			sim_time off = 2 * w->end[k] - end[k];
			ck_assert_msg(c.n == 1 ? off == 0 || off == 1 : llabs(off) <= c.n,
				"case %d, flow %d: %lld, not half of %lld", i, k, (long long)w->end[k],
				(long long)end[k]);
		}
		drop(w);
	}
	gsl_rng_free(r);
}
END_TEST

START_TEST(a_copy_in_parts)
{
	/* n equal parts in a row, with no latency: the same end, rounded up n times instead of once. */
	const uint64_t bytes = 2385000001, rate = 23850000000;
	static const int parts[] = {1, 2, 3, 7, 100, 1000};

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		struct world *w = WORLD((double)rate);
		op_ref last = 0;
		for (int k = 0; k < parts[i]; k++)
			last = add2(w, OP(.amount = (double)bytes / parts[i], PATH({0, 1})), last, 0);
		run(w);
		assert_time(w->end[parts[i] - 1], (long double)bytes / rate, parts[i]);
		ck_assert_int_eq(flow_busy(&w->sim.net, 0, w->sim.now), w->sim.now);
		drop(w);
	}
}
END_TEST

/* ---- random graphs: invariants ---- */

struct node {
	struct sim_op op;
	struct maxmin_hop hop[3];
	int dep[3]; /* earlier operations; -1: none */
};

static void random_graph(struct node *node, int n, gsl_rng *r)
{
	for (int i = 0; i < n; i++) {
		struct node *x = &node[i];
		x->op = OP(.tag = (uint32_t)i);
		x->op.unit = (int)gsl_rng_uniform_int(r, 4) - 1;
		x->op.stream = (int)gsl_rng_uniform_int(r, 5) - 1;
		x->op.priority = (int32_t)gsl_rng_uniform_int(r, 3) - 1;
		x->op.latency = gsl_rng_uniform_int(r, 2) ? 0 : (sim_time)gsl_rng_uniform_int(r, 4) * 1000;
		x->op.not_before = gsl_rng_uniform_int(r, 4) ? 0 : (sim_time)gsl_rng_uniform_int(r, 30) * 1000;
		x->op.amount = gsl_rng_uniform_int(r, 3) ? (double)gsl_rng_uniform_int(r, 4000) : 0;
		x->op.cap = gsl_rng_uniform_int(r, 3) ? 0 : 0.385e12;
		x->op.cap_resource = (int)gsl_rng_uniform_int(r, 5) - 1;
		x->op.n_hops = 1 + (int)gsl_rng_uniform_int(r, 3);
		int first = (int)gsl_rng_uniform_int(r, 4);
		for (int h = 0; h < x->op.n_hops; h++)
			x->hop[h] = (struct maxmin_hop){(first + h) % 4, 1 + (double)gsl_rng_uniform_int(r, 2)};
		x->op.hop = x->hop;
		for (int d = 0; d < 3; d++) {
			x->dep[d] = -1;
			if (i && gsl_rng_uniform_int(r, 2))
				x->dep[d] = i - 1 - (int)gsl_rng_uniform_int(r, i < 20 ? (unsigned long)i : 20);
		}
	}
}

static struct world *run_graph(const struct node *node, int n)
{
	static op_ref ref[MAX_TAGS];
	struct world *w = world((const double[]){1e12, 0.7e12, 1.1e12, 2.385e12, 0},
		(const uint32_t[]){1, 2, 5, 0});

	for (int i = 0; i < n; i++) {
		ref[i] = sim_add(&w->sim, &node[i].op);
		for (int d = 0; d < 3; d++)
			if (node[i].dep[d] >= 0)
				sim_depend(&w->sim, ref[i], ref[node[i].dep[d]]);
		sim_commit(&w->sim, ref[i]);
	}
	w->n_tags = (uint32_t)n;
	run(w);
	return w;
}

START_TEST(random_graphs_keep_the_rules)
{
	enum { N = 150 };
	static struct node node[N];
	static struct world before;
	static const uint32_t places[] = {1, 2, 5};
	gsl_rng *r = rng_new(2385, 14, RNG_TEST);

	for (int i = 0; i < 200; i++) {
		random_graph(node, N, r);
		struct world *w = run_graph(node, N);
		/* on_done has looked at the charges of each: they sum to its end. */
		ck_assert_uint_eq(w->n_ended, N);
		int last_in[4] = {-1, -1, -1, -1};
		for (int k = 0; k < N; k++) {
			const struct sim_op *op = &node[k].op;
			sim_time ready = op->not_before;
			for (int d = 0; d < 3; d++)
				if (node[k].dep[d] >= 0 && w->end[node[k].dep[d]] > ready)
					ready = w->end[node[k].dep[d]];
			if (op->stream != SIM_NONE) {
				int *last = &last_in[op->stream];
				if (*last >= 0 && w->end[*last] > ready)
					ready = w->end[*last];
				*last = k;
			}
			ck_assert_int_ge(w->start[k], ready);
			if (op->unit == SIM_NONE)
				ck_assert_int_eq(w->start[k], ready); /* no sooner and no later */
			ck_assert_int_ge(w->end[k], w->start[k] + op->latency + (op->amount > 0));
			if (op->unit != SIM_NONE) {
				/* How many others hold a place just after it has got its own? */
				uint32_t held = 0;
				for (int j = 0; j < N; j++)
					held += node[j].op.unit == op->unit && w->start[j] <= w->start[k] &&
						w->end[j] > w->start[k];
				ck_assert_uint_le(held, places[op->unit]);
				/* It started when it was ready or when another of its unit ended. */
				bool given = w->start[k] == ready;
				for (int j = 0; j < N && !given; j++)
					given = node[j].op.unit == op->unit && w->end[j] == w->start[k];
				ck_assert(given);
			}
		}
		for (int k = 1; k < N; k++)
			ck_assert_int_le(w->end[w->order[k - 1]], w->end[w->order[k]]);
		/* And again: the same to the bit. */
		memcpy(&before, w, sizeof(before));
		drop(w);
		w = run_graph(node, N);
		ck_assert_mem_eq(before.end, w->end, sizeof(w->end));
		ck_assert_mem_eq(before.start, w->start, sizeof(w->start));
		ck_assert_mem_eq(before.order, w->order, sizeof(w->order));
		ck_assert_mem_eq(before.charge, w->charge, sizeof(w->charge));
		drop(w);
	}
	gsl_rng_free(r);
}
END_TEST

TEST_MAIN("core", latency_then_bytes, never_early_at_most_1_ps_late, not_done_at_t_minus_1, latency_alone,
	a_cap, weight_2, two_share_then_one_has_all, two_equal_ones_end_together, a_late_arrival,
	one_comes_as_another_goes, the_bottleneck_moves,
	the_bottleneck_moves_and_the_rate_does_not, a_kernel_and_a_copy,
	a_cpu_layer_and_dma_share_the_bus, two_way_traffic, strangers_are_left_alone, busy_and_moved,
	a_unit_with_one_place, a_unit_with_two_places, nobody_jumps_the_queue, streams_keep_issue_order,
	not_before, dependencies, ties_by_priority_then_creation, a_very_long_chain_takes_no_time,
	unrolled_is_the_same, memory_does_not_depend_on_length, a_chain_from_the_callback_takes_no_stack,
	after_the_one_that_ended, held_over_several_callbacks, a_second_run_goes_on,
	charges_tell_what_limited, charges_can_be_left_out, beyond_the_clock, a_cycle, interrupted,
	interrupted_in_one_moment, as_a_reference_computes_it, order_of_adding_does_not_matter,
	twice_as_fast_takes_half, a_copy_in_parts, random_graphs_keep_the_rules)
