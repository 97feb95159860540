/*
 * leave_out.h - what errors would be if the constants fitted on a corpus had been fitted without the source of each row.
 *
 *	hw/fitted.yaml: constants, bounds ──┐
 *	rows, by source ────────────────────┴─> how each row moves with each constant
 *	                                           ├─> fitted on all rows
 *	                                           └─> source by source: fitted on the others ──> its rows predicted
 *
 * Logarithms of predicted / measured are fitted, groups weighted alike, by least squares in which a row that is far off
 * counts by its distance and not by the square of that (Huber); the bounds are a weak prior. Rows that none of the
 * constants moves are predicted as ever: what else is in hw/ comes from outside the corpus.
 */
#ifndef SIM_RUN_LEAVE_OUT_H
#define SIM_RUN_LEAVE_OUT_H

#include "sim/run/validate.h"

struct leave_out_constant {
	const char *kernels, *also, *name; /* files of hw/kernels; "cpu.read_experts" */
	struct err_pos pos;
	const char *from, *to;
	int dim;           /* enum unit_dim; of a number that no row has -1, and the rest is 0 */
	char near[128];    /* of a number that no row has, one that rows have: "; did you mean 'cpu.read'?", or "" */
	double low, high;  /* bounds */
	double now;        /* as the file has it */
	double all;        /* fitted on all rows */
	double least, most; /* over the sources left out */
};

struct leave_out {
	struct leave_out_constant *constant;
	size_t n;
	size_t n_sources, n_moved; /* sources left out in turn; scored rows that the constants move */
	struct validate_summary now[VALIDATE_METRIC_N], all[VALIDATE_METRIC_N], without[VALIDATE_METRIC_N];
};

struct leave_out_options {
	const struct validate_options *validate;
	const char *fitted; /* file; NULL: hw/fitted.yaml of the data */
	void (*report)(void *ctx, size_t done, size_t of); /* passes over the rows */
	void *report_ctx;
};

/* Of a corpus. Takes some forty times as long as its rows without intervals. */
int leave_out_run(const char *path, const struct leave_out_options *o, struct arena *a, struct leave_out *out, struct err *err);

#endif
