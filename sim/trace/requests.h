/*
 * requests.h - requests that nobody recorded: when they arrive, how long they are.
 *
 *	gaps between arrivals   gamma of mean 1 / rate; a coefficient of variation of 1 makes them a Poisson process, more makes bursts
 *	lengths                 log-normal of a mean and a coefficient of variation, or drawn, pair by pair, from recorded ones
 */
#ifndef SIM_TRACE_REQUESTS_H
#define SIM_TRACE_REQUESTS_H

#include <gsl/gsl_rng.h>

#include "sim/trace/otr.h"

struct requests_length {
	double mean, cv; /* tokens; cv 0: all alike */
};

struct requests_law {
	double rate_s; /* requests a second */
	double gap_cv;
	struct requests_length input, output; /* when n_recorded is 0 */
	const uint64_t (*recorded)[2];        /* input and output tokens */
	size_t n_recorded;
};

/* All lengths of a native trace of requests. */
int requests_read_lengths(const char *path, struct arena *a, struct requests_law *law, struct err *err);
/* The request after *r: a later arrival, other lengths, no session, no blocks. */
void requests_next(const struct requests_law *law, gsl_rng *rng, struct otr_request *r);

#endif
