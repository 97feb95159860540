/*
 * simtime.h - the clock's type: integer picoseconds.
 *
 * 64 bits hold 106 days; one byte at 1 TB/s is one picosecond. Integers make ties exact and the order of
 * events the same with every compiler, without epsilons.
 */
#ifndef SIM_CORE_SIMTIME_H
#define SIM_CORE_SIMTIME_H

#include <math.h>
#include <stdint.h>

typedef int64_t sim_time;

#define SIM_TIME_MAX INT64_MAX
#define SIM_PS_PER_S 1e12
#define SIM_S_PER_PS 1e-12

static inline double sim_seconds(sim_time t)
{
	return (double)t / SIM_PS_PER_S;
}

/* Rounded to the nearest picosecond; beyond the range: SIM_TIME_MAX. s must not be negative or NaN. */
static inline sim_time sim_from_seconds(double s)
{
	double ps = s * SIM_PS_PER_S;

	return ps < 9.2e18 ? (sim_time)llround(ps) : SIM_TIME_MAX;
}

#endif
