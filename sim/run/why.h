/*
 * why.h - a run in words: what set its pace, and what twice of that would change.
 */
#ifndef SIM_RUN_WHY_H
#define SIM_RUN_WHY_H

#include "sim/run/simulate.h"

int why_explain(struct simulate_job *job, const struct platform *pf, const struct outcome *o, const struct result *r,
	struct run_why *why, struct err *err);
void why_misfit(const struct placement *p, struct run_why *why);

#endif
