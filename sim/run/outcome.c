#include "sim/run/outcome.h"

#include <math.h>

static size_t tally_len(int n_resources)
{
	return 1 + 3 * (size_t)n_resources + 1;
}

struct tally tally_new(int n_resources, struct arena *a)
{
	size_t n = tally_len(n_resources);

	return (struct tally){n, arena_array(a, double, n)};
}

struct outcome outcome_new(int n_resources, struct arena *a)
{
	return (struct outcome){.phase = {tally_new(n_resources, a), tally_new(n_resources, a)}};
}

double outcome_seconds(const struct outcome *o)
{
	return o->phase[TRACE_PREFILL].v[0] + o->phase[TRACE_DECODE].v[0];
}

enum trace_phase outcome_longer(const struct outcome *o)
{
	return o->phase[TRACE_DECODE].v[0] >= o->phase[TRACE_PREFILL].v[0] ? TRACE_DECODE : TRACE_PREFILL;
}

double *tally_moved(const struct tally *c)
{
	return c->v + 1;
}

double *tally_busy(const struct tally *c)
{
	return c->v + 1 + (c->n - 2) / 3;
}

double *tally_charge(const struct tally *c)
{
	return c->v + 1 + 2 * ((c->n - 2) / 3);
}

void tally_add(struct tally *sum, double k, const struct tally *c)
{
	for (size_t i = 0; i < sum->n; i++)
		sum->v[i] += k * c->v[i];
}

double outcome_per_second(double n, double seconds)
{
	return n > 0 && seconds > 0 ? n / seconds : NAN;
}

void outcome_metrics(const struct outcome *o, double value[RESULT_FIELD_N])
{
	double prefill_s = o->phase[TRACE_PREFILL].v[0], decode_s = o->phase[TRACE_DECODE].v[0];

	value[RESULT_DECODE_TOK_S] = outcome_per_second(o->decode_tokens, decode_s);
	value[RESULT_PREFILL_TOK_S] = outcome_per_second(o->prefill_tokens, prefill_s);
	value[RESULT_E2E_TOK_S] = outcome_per_second(o->sampled_tokens, prefill_s + decode_s);
	value[RESULT_TTFT_S] = o->first_tokens > 0 ? o->first_s / o->first_tokens : NAN;
	value[RESULT_TPOT_S] = o->decode_steps > 0 ? decode_s / o->decode_steps : NAN;
	value[RESULT_TOTAL_S] = prefill_s + decode_s;
}
