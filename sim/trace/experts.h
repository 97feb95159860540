/*
 * experts.h - which experts a token hits.
 *
 * A law gives every expert of a layer a weight: all the same, by its rank (who has which rank differs from layer to layer), or
 * as counted somewhere. By rank there are two: Zipf's, where the r-th most popular has the weight r^-s, and that of scores
 * which tokens have in common. A router scores the experts and takes the n_used best; let a score be the sum of a part that
 * is the expert's own for all tokens of a workload and one that is the token's, both normal, the first of variance c, the
 * second of 1 - c. An expert whose own part lies at the quantile u of the normal distribution is taken with the chance
 *
 *	Phi((sqrt(c) u + t) / sqrt(1 - c)),   t such that the chances add up to n_used
 *
 * (Vasicek's law of loan losses is the same), where c = 0 is all alike. Recorded answers hit as many experts as it says, up to 32
 * tokens within a tenth (tests/unit/test_routing.c); Zipf's law that agrees for 8 of them has a quarter too many there. A few
 * tokens, about something else, may use any experts: they take nothing away from few tokens and hit the rest for many.
 *
 * Each token of each layer draws n_used of them without repetition, one after another, each with a chance in proportion
 * to its weight among those not yet taken. Draws go through Walker's alias method (GSL), and are rejected when the
 * expert is taken already: a few table look-ups a token, where Gumbel's keys would cost a logarithm for each of the
 * layer's experts. After a few rejections (when few experts have nearly all weight) a walk over the remaining weights
 * gives the same law at once.
 *
 * With locality P a token hits, on average, the share P of the experts that the token before it hit at this layer. Its
 * own, new draw and those of the token before are paired, leaving out what both have, and each pair keeps the old one with
 * chance q, else takes the new one:
 *
 *	before   3  7  9 12          q = (P - b) / (1 - b), with b: what independent tokens share, the sum of the
 *	drawn    7  4 12  8          experts' squared chances over n_used
 *	pairs    3-4   9-8
 *	now      7  3 12  8          so each expert keeps the chance it has under the law, and the overlap is P exactly
 *
 * Draws come from a stream that the caller gives, one of its own for every (seed, step): any step can be made without
 * those before it, or, with locality, from the last restart on (see trace_synth.c).
 */
#ifndef SIM_TRACE_EXPERTS_H
#define SIM_TRACE_EXPERTS_H

#include <gsl/gsl_randist.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "models/model.h"
#include "models/routing.h"

#define EXPERTS_USED_MAX 256 /* of a layer that draws; one that uses more has the expected counts */

/* How often tokens used each expert, counted somewhere, by layer of the model. The weights are then those with which
   draws use them as often. */
struct experts_popularity {
	uint32_t n_layer;
	const uint32_t *n_expert;
	const double *const *count; /* of any sum, none negative */
};

struct experts_law {
	double zipf;     /* s, at least 0: all alike */
	double locality; /* P, from b to 0.98; NAN: tokens are independent */
	const struct experts_popularity *popularity; /* instead of zipf; NULL: none */
	double correlation; /* c, at most ROUTING_CORRELATION_MAX, instead of zipf; 0: all alike */
	const struct routing *typical; /* instead: c by experts of the layer; NULL: none */
};

#define EXPERTS_LOCALITY_MAX 0.98

/* Chances by rank. Layers of one shape share them. */
struct experts_ranks {
	uint32_t n_expert, n_used;
	const double *weight;     /* of any sum; NULL: all alike */
	const double *chance;     /* that a token hits it: of sum n_used */
	double shared;            /* b */
	gsl_ran_discrete_t alias; /* of weight */
};

/* One layer. */
struct experts {
	const struct experts_ranks *ranks; /* NULL: the layer has none */
	const uint32_t *number;            /* expert of each rank; NULL: the rank */
	double keep;                       /* q; 0: independent */
};

/* By layer of the model, const, in a. Errors: a locality below b; fewer experts with a weight than a token uses;
   a popularity of other layers or experts than the model's; a law other than all alike or the typical one where a token uses
   more than EXPERTS_USED_MAX. */
int experts_new(const struct experts_law *law, const struct model *m, uint64_t seed, struct arena *a,
	const struct experts **out, struct err *err);

/* Most rows whose experts are drawn: for more, the expected counts stand for drawn ones (see MANY_ROWS). */
uint64_t experts_rows_max(const struct experts *e);
/* n_used different experts for one token. */
void experts_draw(const struct experts *e, gsl_rng *rng, uint32_t *used);
/* used, drawn anew, becomes what follows `before`; keep: see above. */
void experts_follow(const struct experts *e, gsl_rng *rng, double keep, const uint32_t *before, uint32_t *used);
/* Counts, by expert, of `rows` rows in n_chains chains of tokens that follow each other: the mean for those that are
   hit, and as many are hit as should be on average. Their sum is rows x n_used. count: n_expert entries, overwritten; a: for
   scratch, given back. */
void experts_expect(const struct experts *e, gsl_rng *rng, uint64_t rows, uint64_t n_chains, struct arena *a, uint64_t *count);

#endif
