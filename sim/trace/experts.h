/*
 * experts.h - which experts a token hits.
 *
 * Uniform routing: each token of each layer draws n_used of n_expert without repetition, from a stream of its
 * own for every (seed, step), so that any step can be made without those before it.
 */
#ifndef SIM_TRACE_EXPERTS_H
#define SIM_TRACE_EXPERTS_H

#include <gsl/gsl_rng.h>

#include "base/base.h"

/* Counts, by expert, how many of `tokens` rows hit it (count: n_expert entries, overwritten). With many rows
   an expert (see MANY_ROWS) the counts are the expected ones. */
void experts_draw_uniform(gsl_rng *rng, uint64_t tokens, uint32_t n_expert, uint32_t n_used, uint64_t *count);

#endif
