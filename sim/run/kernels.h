/*
 * kernels.h - what a machine's profile says of an engine's kernels goes before hw/kernels.
 *
 *	kernels:
 *	  llama.cpp:
 *	    cpu.read: {value: 72%, spread: 4%, source: fitted to …}
 *
 * Keys are the names of hw/kernels/ENGINE.yaml joined by dots, as cost_numbers() has them behind "kernels.".
 */
#ifndef SIM_RUN_KERNELS_H
#define SIM_RUN_KERNELS_H

#include "sim/exec/cost.h"

/* Lays the machine's numbers over c, which is of the file hw/kernels/NAME.yaml. */
int kernels_apply(const struct hw_machine *m, const char *name, struct cost *c, struct arena *a, struct err *err);

#endif
