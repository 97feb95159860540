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
	bool interval; /* estimate interval80 and what the next better machine would give */
	const volatile sig_atomic_t *interrupted; /* NULL, or set by a signal handler */
};

/* What the words at the end of a run say: made from the result and further simulations. */
struct run_why {
	char why[256];
	char change[256];
};

/* Places only: fits, memory, upper bound. p gets the placement (in the arena). */
int run_place(const struct scenario *s, struct placement *p, struct arena *a, struct err *err);
/* The whole run. why may be NULL. The arena may be reset afterwards. */
int run_scenario(const struct scenario *s, const struct run_options *o, struct arena *a, struct result *out,
	struct run_why *why, struct err *err);

#endif
