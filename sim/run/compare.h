/*
 * compare.h - one graph, two executors: the simulator and this machine, side by side.
 *
 *	probe ─ run ─ run ─ … ─ probe      each run from idle; what is measured is the median over them
 *	  between ┴─────┴───┴─ …           another graph, before and behind each: how fast the machine was right then
 *
 * Only steps that count are compared: those before fill the pipeline, the one behind gives the last one company.
 */
#ifndef SIM_RUN_COMPARE_H
#define SIM_RUN_COMPARE_H

#include "sim/core/opg.h"
#include "sim/real/cpu_exec.h"

/* Probes that differ by more than this share say that the machine was not the same before and after. */
#define COMPARE_QUIET 0.10

/* Operations of one kind and place: "kernel ffn cpu0", "copy attn ram>gpu0". Seconds a step, from when they got their place to
   their end, latencies included. NAN: not measured. */
struct compare_row {
	const char *operation;
	uint64_t n; /* in all steps that count */
	double measured_s, simulated_s;
};

struct compare {
	const struct opg *g;
	struct opg_times simulated;
	struct compare_row *row; /* the first is "step" */
	size_t n_rows;
	uint32_t *row_of;       /* by operation; 0: it has no row of its own */
	double measured_tok_s, simulated_tok_s, ratio; /* NAN: not measured */
	double fastest_tok_s;   /* of one repetition: on a machine that others use, nearest to what it would do alone */
	double noise;           /* standard deviation of the repetitions over their mean; NAN for less than two */
	bool measured;
	uint64_t repetitions;
	struct cpu_probe before, after;
	double changed;         /* larger of the relative differences of the two probes' rates */
	struct cpu_exec_result last; /* of the last repetition */
	double *step_s;         /* by repetition */
	const struct compare *between; /* NULL: none */
	double *between_s;      /* seconds of its rows: n_rows before repetition i at i * n_rows, behind it the next */
};

struct compare_how {
	uint64_t repetitions;
	bool cuda;                    /* on GPUs; else on processors alone */
	const struct compare *between; /* simulated; NULL, as with cuda: none */
	struct cpu_exec_options exec;
};

/* Simulates. r and all in it lives in the arena. */
int compare_simulate(const struct opg *g, const volatile sig_atomic_t *interrupted, struct arena *a, struct compare *r,
	struct err *err);
/* Then runs it on this machine. */
int compare_measure(struct compare *r, const struct compare_how *how, struct arena *a, struct err *err);

void compare_print(const struct compare *r, FILE *to);
void compare_print_json(const struct compare *r, FILE *to);
/* Every operation, one a line of CSV, with both executors' times and order; measured. */
void compare_print_operations(const struct compare *r, struct arena *a, FILE *to);
/* Every repetition, one a line of CSV: seconds of a step, and of what ran between, before it and behind it; measured. */
void compare_print_repetitions(const struct compare *r, FILE *to);

/* Stores it under the graph's `about key`, replacing an earlier one of the same executor. ERR_INPUT when it has none. */
int compare_store(const struct compare *r, const char *executor, const char *db, struct arena *a, struct err *err);

#endif
