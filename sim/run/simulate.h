/*
 * simulate.h - the steps of a placed run, as they come or so many of them that the others follow.
 *
 *	prefill  ▮▮▮▮ . . . ▮ . . . ▮ . . . ▮▮      ▮ simulated; what lies between windows is on a line, which is halved until its
 *	decode   ▮▮▮▮ . ▮ . ▮ . . . . . . . ▮▮        middle agrees, or (steps that differ at random) drawn between many
 */
#ifndef SIM_RUN_SIMULATE_H
#define SIM_RUN_SIMULATE_H

#include "sim/run/outcome.h"
#include "sim/run/run.h"

/* A resource that limits less of the time than this cannot move the interval. */
#define SIMULATE_NEGLIGIBLE_SHARE 0.002
/* Steps before one that is simulated alone: they fill the pipeline. */
#define SIMULATE_WARM_UP_STEPS 2

/* Rough: a step in the middle stands for all of its phase. Good for ratios of two runs that differ by little. */
enum simulate_effort { SIMULATE_EXACT, SIMULATE_NORMAL, SIMULATE_QUICK, SIMULATE_ROUGH };

struct simulate_job {
	const struct scenario *scenario;
	const struct placement *placement;
	const struct cost *cost;
	const struct trace *trace;
	const struct run_options *options;
	struct arena *arena; /* of the run: sums; each simulation takes from it and gives back */
	int n_resources;
	bool times_alone; /* what limits is not asked for */
	uint64_t events;
};


struct engine_job simulate_engine_job(const struct scenario *s, const struct cost *cost, const struct trace *t);
/* The steps of one workload of a scenario. */
void simulate_make_trace(struct trace *t, const struct scenario *s, const struct trace_workload *w, struct arena *a);
/* What is simulated: the trace, or recorded requests one after another (quickly: one like the mean of them). */
int simulate_all(struct simulate_job *job, enum simulate_effort effort, struct outcome *out, struct err *err);

#endif
