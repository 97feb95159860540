/*
 * plain_kernels.h - what a graph's kernels cost where it is run for real.
 *
 * A graph says which bytes each of an engine's kernels reads, in which order, and how much it computes. What runs in its
 * place on real hardware (sim/real, hw/cuda) is not the engine's kernel but a plain one, without its inefficiencies:
 * to compare times, those are simulated with what the machine itself reaches.
 *
 *	engine's kernel    72 % of the memory's rate, its type's rate, 11 launches, …   } same bytes, FLOPs, threads,
 *	plain kernel       the memory's rate, or arithmetic's if that is slower         } dependencies, units, order
 */
#ifndef SIM_RUN_PLAIN_KERNELS_H
#define SIM_RUN_PLAIN_KERNELS_H

#include "hw/hw.h"
#include "sim/core/opg.h"

/* Gives g's kernels, recorded on m, the path, limit and latency of plain ones. Kernels that expand a type of weights which
   m has rates for (cpu0.kernels) are as fast as those allow. The arena holds new paths. */
void plain_kernels(const struct hw_machine *m, struct opg *g, struct arena *a);

#endif
