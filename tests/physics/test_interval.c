/*
 * test_interval.c - what `80 %` intervals are made of.
 *
 * A fact that moves the metric by its spread moves the logarithm of it by as much; independent facts add up as squares, and
 * the noise of a measurement (5 %) comes on top, and what an engine's file says is unexplained of prompts and of decoding; 80 %
 * of a normal distribution lie within 1.2816 deviations.
 */
#include <math.h>

#include "sim/trace/trace_kept.h"
#include "tests/run_text.h"

#define NOISE 0.05

/* The deviation of the logarithm behind a field's interval. */
static double sigma(const char *text, const char *sets, enum result_field_id field)
{
	struct ran ran;
	struct run_options o = {.interval = true};
	struct err err = {0};

	load(&ran, text, sets);
	assert_ok(run_scenario(ran.scenario, &o, &ran.arena, &ran.r, NULL, &err), err);
	arena_release(&ran.arena);
	ck_assert(isfinite(ran.r.low80[field]));
	return log(ran.r.high80[field] / ran.r.low80[field]) / (2 * 1.2815515655446004);
}

#define CARD(spread) \
	"{part: rtx-4090, bandwidth: {measured: 921GB/s, spread: " spread ", source: here}, reserved: 0B, launch: 0s}"
#define CARDS(a, b)                                                                                                    \
	"model: llama-3.1-8b\nquant: f16\nengine: llama.cpp\nmachine:\n  gpu0: " CARD(a) "\n  gpu1: " CARD(b) "\n"               \
	"  cpu0: ryzen-9-7950x\n  ram: {capacity: 64GiB, bandwidth: 63.4GB/s}\n"                                         \
	"workload: {prompt: 0, generate: 3, depth: 17}\n"

/* A resident model that one card reads: its bandwidth and nothing else decides. */
START_TEST(one_fact_moves_as_much_as_its_spread)
{
	static const char text[] =
		"model: llama-3.1-8b\nquant: f16\nengine: ideal\nmachine:\n  gpu0: " CARD("23.85%") "\n"
		"  cpu0: ryzen-9-7950x\n  ram: {capacity: 64GiB, bandwidth: 63.4GB/s}\n"
		"workload: {prompt: 0, generate: 3, depth: 17}\n";

	assert_close(sigma(text, NULL, RESULT_DECODE_TOK_S), hypot(0.2385, NOISE), 1e-3);
}
END_TEST

/* Half of the layers on each card. Of one part, both are wrong together; of two, each for itself. */
START_TEST(like_cards_are_one_fact)
{
	double together = sigma(CARDS("23.85%", "23.85%"), NULL, RESULT_DECODE_TOK_S);
	double apart = sigma(CARDS("23.85%", "23.86%"), NULL, RESULT_DECODE_TOK_S);

	/* Squares: of one fact, of two that each move half of the time. */
	assert_close(together * together - apart * apart, 0.2385 * 0.2385 / 2, 0.2);
}
END_TEST

/* With -rtr the CPU multiplies other types than the file has: their rates count. */
START_TEST(rates_of_types_made_at_load_count)
{
	static const char text[] =
		"model: llama-3.1-8b\nquant: q4_k_m\nengine: ik_llama.cpp\n"
		"machine: {cpu0: {part: ryzen-9-7950x}, ram: {capacity: 64GiB, bandwidth: 63.4GB/s}}\n"
		"workload: {prompt: 512, generate: 1}\n";
	double as_is = sigma(text, "flags.rtr=no", RESULT_PREFILL_TOK_S);
	double packed = sigma(text, "flags.rtr=yes", RESULT_PREFILL_TOK_S);

	ck_assert_double_gt(as_is, 3 * NOISE);
	ck_assert_double_gt(packed, 0.8 * as_is);
}
END_TEST

static double unexplained_sigma(const char *decode, const char *prompt, enum result_field_id field)
{
	char text[512];

	snprintf(text, sizeof(text), "model: llama-3.1-8b\nquant: f16\nengine: llama.cpp\nworkload: {prompt: 512, generate: 3}\n"
		"machine: {from: desktop-rtx4090-ddr5, kernels: {llama.cpp: "
		"{host.unexplained: {value: %s}, host.unexplained_prompt: {value: %s}}}}\n", decode, prompt);
	return sigma(text, NULL, field);
}

/* Of decoding and of prompts, each for itself. */
START_TEST(what_is_unexplained_comes_on_top)
{
	static const struct {
		enum result_field_id field;
		bool prompt;
	} cases[] = {{RESULT_DECODE_TOK_S, false}, {RESULT_PREFILL_TOK_S, true}, {RESULT_TTFT_S, true}};
	static const char *const is[] = {"0%", "23.85%"};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		bool prompt = cases[i].prompt;
		enum result_field_id field = cases[i].field;
		double none = unexplained_sigma("0%", "0%", field);
		assert_close(unexplained_sigma(is[!prompt], is[prompt], field), hypot(none, 0.2385), 1e-9);
		assert_close(unexplained_sigma(is[prompt], is[!prompt], field), none, 1e-9);
	}
}
END_TEST

START_TEST(kept_steps_are_the_steps)
{
	static const char text[] =
		"model: mixtral-8x7b\nquant: q4_0\nengine: ideal\nmachine: desktop-rtx4090-ddr5\n"
		"routing: {zipf: 0.8, locality: 0.6}\nworkload: {batch: 3, prompt: 70, generate: 9}\n";
	static const uint64_t order[] = {0, 5, 6, 5, 2, 6, 0, 8};
	struct ran ran;
	struct trace t;
	struct trace_kept kept;
	struct trace_cursor fresh, again;
	struct err err = {0};

	load(&ran, text, NULL);
	run_make_trace(&t, ran.scenario, &ran.arena);
	trace_kept_init(&kept, &t, &ran.arena);
	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		struct trace_step a, b;
		trace_cursor_init(&fresh, &t, &ran.arena);
		trace_cursor_init(&again, &kept.trace, &ran.arena);
		assert_ok(trace_step_get(&fresh, order[i], &a, &err), err);
		assert_ok(trace_step_get(&again, order[i], &b, &err), err);
		ck_assert_uint_eq(b.index, order[i]);
		ck_assert_uint_eq(a.context, b.context);
		ck_assert_uint_eq(a.n_tokens, b.n_tokens);
		ck_assert_uint_eq(a.n_access, b.n_access);
		ck_assert_uint_gt(a.n_access, 0);
		ck_assert_mem_eq(a.access, b.access, a.n_access * sizeof(*a.access));
		trace_cursor_release(&again);
		trace_cursor_release(&fresh);
	}
	ck_assert_uint_eq(kept.steps.n, 5);
	trace_kept_release(&kept);
	arena_release(&ran.arena);
}
END_TEST

TEST_MAIN("interval", one_fact_moves_as_much_as_its_spread, like_cards_are_one_fact, rates_of_types_made_at_load_count,
	what_is_unexplained_comes_on_top, kept_steps_are_the_steps)
