/*
 * interval.h - how far off the numbers of a run may be: the constants that limit it moved by their spreads.
 */
#ifndef SIM_RUN_INTERVAL_H
#define SIM_RUN_INTERVAL_H

#include "sim/run/simulate.h"

/* r has its values and its resources; gets its 80 % intervals. */
int interval_fill(const struct simulate_job *job, const struct platform *base_platform, struct result *r, struct err *err);

#endif
