/*
 * calibrate_fit.h - inside sim/run: the least squares of calibrate.h. It knows constants by their number only.
 */
#ifndef SIM_RUN_CALIBRATE_FIT_H
#define SIM_RUN_CALIBRATE_FIT_H

#include "sim/run/calibrate.h"
#include "sim/run/result.h"

/* One scenario that was measured. */
struct fit_point {
	const struct scenario *scenario;
	enum result_field_id field;
	double scale;
	double log_measured; /* median over its tests */
	double sigma;        /* of that, relative */
};

struct fit_constant {
	double spread;      /* prior; 0: is not to be moved */
	double x;           /* log of the factor on the prior */
	double sd;          /* of x afterwards */
	size_t n_points;    /* that depend on it */
	bool fitted;
	int like;           /* held, because the points cannot tell it from this one; -1: not that */
	double correlation; /* with that */
};

struct fit {
	struct fit_point *point;
	size_t n_points;
	struct fit_constant *constant; /* hw_numbers of the machine, then cost_numbers of the kernels */
	size_t n_constants;
	unsigned workers;
	void (*report)(void *ctx, size_t simulations);
	void *report_ctx;
	const volatile sig_atomic_t *interrupted;
	struct arena *arena;
};

/* Log of what each point gives under the constants' x. */
int fit_predict(const struct fit *f, double *log_predicted, struct err *err);
int fit_solve(struct fit *f, struct err *err);

#endif
