/*
 * cuda_exec.h - an operation graph on this machine's GPUs, by offsim-cuda: the graph goes there as a file, times come back.
 */
#ifndef SIM_RUN_CUDA_EXEC_H
#define SIM_RUN_CUDA_EXEC_H

#include "sim/core/opg.h"
#include "sim/real/cpu_exec.h"

/* run: n results, their arrays in the arena. o->threads and o->dir as for cpu_exec. */
int cuda_exec_run(const struct opg *g, uint64_t n, const struct cpu_exec_options *o, struct arena *a,
	struct cpu_exec_result *run, struct err *err);

/* What `offsim-cuda execute -o` wrote; everything checked against the graph. */
int cuda_exec_read(const char *path, const struct opg *g, uint64_t n, struct arena *a, struct cpu_exec_result *run,
	struct err *err);

#endif
