/*
 * run.h - one run: scenario in, result out.
 *
 *	place ──> fits? ──no──> result with the ledger, all rates NAN
 *	            │yes
 *	            ├─ prefill and the first decode steps, simulated as they come
 *	            ├─ the other decode steps: exact, or (they repeat, with a slowly growing context) some windows are
 *	            │  simulated, and what lies between them is interpolated
 *	            └─ again with each critical constant moved by its spread: interval80
 */
#ifndef SIM_RUN_RUN_H
#define SIM_RUN_RUN_H

#include <signal.h>

#include "sim/run/result.h"
#include "sim/run/scenario.h"

struct run_options {
	bool exact;    /* simulate every step */
	bool interval; /* estimate interval80 */
	bool quick;    /* as sensitivities are made: the steps in the middle lie on a line between the ends */
	bool gains;    /* run_why: what twice of every resource that matters would give, not of the first alone */
	const volatile sig_atomic_t *interrupted; /* NULL, or set by a signal handler */
};

/* What the words at the end of a run say: made from the result and further simulations. */
struct run_gain {
	char resource[RESULT_NAME_MAX];
	double factor; /* of the metric, if the resource were twice as fast */
};

#define RUN_MAX_GAINS 8

struct run_why {
	char why[256];
	char change[384];
	enum result_field_id metric; /* that the gains are of: the rate of the phase that takes longer */
	int n_gains;
	struct run_gain gain[RUN_MAX_GAINS]; /* by share of the critical path */
};

/* Some steps from the middle of the decode (of the prefill where there is no decode), with those around them that are
   simulated too: before, to fill the pipeline, and one behind, since a step also works for the next. */
struct run_stretch {
	bool decode;
	uint64_t first;      /* of its phase, counted from 0 */
	uint64_t n;          /* that count: no more than the phase has */
	uint64_t begin, end; /* simulated: steps begin .. end - 1 of the trace */
	uint64_t first_step; /* the first that counts, of the trace */
};
struct run_stretch run_stretch(const struct trace *t, uint64_t n_steps);

/* The steps that a scenario takes. */
void run_make_trace(struct trace *t, const struct scenario *s, struct arena *a);
/* Places only: fits, memory, upper bound. p gets the placement (in the arena). */
int run_place(const struct scenario *s, struct placement *p, struct arena *a, struct err *err);
/* The whole run. why may be NULL. The arena may be reset afterwards. */
int run_scenario(const struct scenario *s, const struct run_options *o, struct arena *a, struct result *out,
	struct run_why *why, struct err *err);

#endif
