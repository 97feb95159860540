/*
 * executor.h - an operation graph for real, on a backend.
 *
 *	                    ┌─ a thread for each unit: its operations in the order of the file, as an engine submits them ─┐
 *	GPU kernels, copies │  given to the unit's stream, behind events of what they wait for on other streams            │
 *	CPU kernels, drives │  done by that thread (and a team) once all that they wait for has ended                      │
 *	                    └───────────────────────────────┬──────────────────────────────────────────────────────────────┘
 *	joins, steps, waits    one more thread watches events and the clock, and ends them
 *
 * Nothing is submitted before the end of the step `ahead` steps before its own. Copies take what latency the hardware
 * has. That of kernels and waits is an engine's (many small launches, host code), which this program does not repeat: it
 * passes, on the device or on the clock, launching included.
 *
 * Every operation waits only for lower numbers, and each unit follows the numbers: the lowest that has not ended can
 * always go on.
 */
#ifndef HW_CUDA_EXECUTOR_H
#define HW_CUDA_EXECUTOR_H

#include "hw/cuda/backend.h"
#include "hw/cuda/op_graph.h"

struct executor_options {
	unsigned threads = 0;  /* of each CPU's kernels; 0: as the graph says, else one a processor */
	std::string dir = "."; /* folder for the file that stands for drives */
};

/* By number of operation; seconds from the beginning of the run. A start is when the operation had its place: all it waits
   for had ended, and so had the one before it on its unit. */
struct executor_times {
	std::vector<double> start_s, end_s;
	std::vector<uint64_t> moved_bytes;
	std::vector<uint32_t> order; /* in which operations were begun at their units; others behind them */
};

struct executor;
std::unique_ptr<executor, void (*)(executor *)> executor_open(const op_graph &g, backend &b, const executor_options &o);
/* Once, from idle; then checks the buffers. */
executor_times executor_run(executor &e);

#endif
