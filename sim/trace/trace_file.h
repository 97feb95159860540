/*
 * trace_file.h - recorded steps as a trace: what is in a file of steps is what runs.
 */
#ifndef SIM_TRACE_TRACE_FILE_H
#define SIM_TRACE_TRACE_FILE_H

#include "sim/trace/otr.h"

extern const struct trace_ops trace_file;

/* Reads the file once and checks every access against the model. t->workload is what the file says was run, else what
   its steps come to. Cursors open the file again, each for itself. */
int trace_file_init(struct trace *t, const struct model *m, const char *path, struct arena *a, struct err *err);
/* otr_hash of the file behind a trace made by trace_file_init. */
uint64_t trace_file_hash(const struct trace *t);

#endif
