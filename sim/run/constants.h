/*
 * constants.h - the numbers that a run stands on, to be moved and simulated again.
 */
#ifndef SIM_RUN_CONSTANTS_H
#define SIM_RUN_CONSTANTS_H

#include "sim/run/simulate.h"

/* The constants of a run that have a spread: a copy of the machine's and of the engine's, which may be changed. */
struct constants {
	struct hw_machine *machine;
	struct cost *cost;
	struct hw_num_ref *ref[2]; /* of the machine, of the engine */
	struct hw_num *was[2];     /* what each is without being changed */
	bool *taken[2];            /* whether a simulation took its value */
	size_t n[2];
};

void constants_init(struct constants *c, const struct simulate_job *job);
void constants_scale(struct hw_num *num, double factor);
/* The same number of any GPU: what follows "gpu0", or the name itself. */
const char *constants_behind_gpu(const char *name);
/* Other constants under the same placement: times alone. */
int constants_simulate(const struct simulate_job *job, const struct constants *c, enum simulate_effort effort,
	double value[RESULT_FIELD_N], struct err *err);

#endif
