/*
 * trace_out.h - the steps of a scenario as a native trace file: `run --trace-out`.
 */
#ifndef SIM_RUN_TRACE_OUT_H
#define SIM_RUN_TRACE_OUT_H

#include <signal.h>

#include "sim/run/scenario.h"
#include "sim/trace/otr.h"

/* Writes every step that the scenario simulates, with all its accesses. Replaying the file as `workload: {trace: FILE}`
   under the same engine gives the same result. interrupted may be NULL. */
int trace_out(const struct scenario *s, const char *path, const volatile sig_atomic_t *interrupted, struct arena *a,
	struct err *err);

/* Whether that can be done, to ask before anything is simulated. */
int trace_out_check(const struct scenario *s, const char *path, struct err *err);

/* The two parts of it: what a file says of the layers, and all steps of a synthesised trace, or their experts alone. */
struct otr_layer *trace_out_layers(const struct model *m, struct arena *a);
int trace_out_steps(const struct trace *t, bool experts_only, struct otr_writer *w, const volatile sig_atomic_t *interrupted,
	struct arena *a, struct err *err);

#endif
