/*
 * outcome.h - what a run's steps cost, summed: by phase, by resource.
 */
#ifndef SIM_RUN_OUTCOME_H
#define SIM_RUN_OUTCOME_H

#include "sim/run/result.h"
#include "sim/trace/trace.h"

/* What steps cost, summed: seconds, and by resource units moved, seconds busy and seconds on the critical
   path (the last entry is overhead). One flat array so that sums and interpolation are one loop. */
struct tally {
	size_t n;
	double *v;
};

struct outcome {
	struct tally phase[2]; /* by enum trace_phase */
	double prefill_tokens, decode_tokens, sampled_tokens, decode_steps;
	double first_tokens, first_s; /* prompts that end with a token: how many, how long they took */
};

/* All zero. */
struct tally tally_new(int n_resources, struct arena *a);
/* All zero. */
struct outcome outcome_new(int n_resources, struct arena *a);
double outcome_seconds(const struct outcome *o);
/* The phase that takes longer. */
enum trace_phase outcome_longer(const struct outcome *o);
/* By resource: units moved, seconds busy, seconds on the critical path (one more, the last: overhead). */
double *tally_moved(const struct tally *c);
double *tally_busy(const struct tally *c);
double *tally_charge(const struct tally *c);
/* sum += k * c */
void tally_add(struct tally *sum, double k, const struct tally *c);
/* seconds 0 (a bound of nothing) gives NAN, not infinity. */
double outcome_per_second(double n, double seconds);
/* Rates and times of the result. */
void outcome_metrics(const struct outcome *o, double value[RESULT_FIELD_N]);

#endif
