/*
 * calibrate.h - other people's measurements put into the constants of a machine's profile.
 *
 *	nvbandwidth, fio, STREAM, MLC ──> one constant each, set directly ─┐
 *	                                                                   ├──> profile: {from: BASE, set: …, kernels: …}
 *	llama-bench ──> scenarios ──> simulated again and again ── fit ────┘
 *
 * The forward model of a test of llama-bench is the simulator itself. Constants of the machine and of the engine's kernels
 * enter by name (hw_numbers, cost_numbers), as logarithms relative to the base profile, which is the prior: its value with
 * its spread counts as one more measurement of each. Least squares over
 *
 *	(log predicted - log measured) / noise   of each test, and   x / spread   of each constant
 *
 * with weights against outliers (Huber) and the noise raised to what the residuals show. A constant that no test depends
 * on is not touched. Of those that the tests cannot tell apart, such as a bandwidth and the share of it that kernels reach,
 * the one that the fit moves least stays as it was and the others take it all; one that is no better known afterwards than
 * before stays as it was too. All are named, and the spreads of the others are those that they have with these known.
 *
 * Numbers whose spread is 0 are taken as exact; what was measured directly is not fitted again.
 */
#ifndef SIM_RUN_CALIBRATE_H
#define SIM_RUN_CALIBRATE_H

#include <signal.h>

#include "hw/bench.h"
#include "hw/hw.h"
#include "sim/run/scenario.h"

enum calibrate_state {
	CALIBRATE_MEASURED, /* directly */
	CALIBRATE_FITTED,
	CALIBRATE_HELD,     /* tests depend on it, but it stays as it was: `why` */
};

struct calibrate_constant {
	const char *name; /* "gpu0.link.h2d", "kernels.cpu.read" */
	enum unit_dim dim;
	enum calibrate_state state;
	double before, before_spread;
	double value, spread;
	size_t n_rows;    /* measurements of it, or tests that depend on it */
	const char *from; /* the files, such as "a.json, b.json" */
	const char *why;  /* it was held, or what is odd about it; "" */
};

struct calibrate_row {
	const struct bench_row *bench;
	const char *file;
	const char *unused;   /* why it took no part; NULL when it did */
	const char *constant; /* that it states; NULL for a test of llama-bench */
	const char *model;    /* the card of a test; "" when none */
	int point;            /* its scenario among those of the fit; -1: none */
	double before, after; /* predicted, in the row's own unit; NAN: not predicted */
};

struct calibrate {
	struct calibrate_row *row;
	size_t n_rows;
	struct calibrate_constant *constant; /* in order of the profile, then of the kernels */
	size_t n_constants;
	size_t n_tests;       /* of llama-bench that took part, those of one scenario together as one */
	double noise_before, noise_after; /* median |log predicted / measured| of them */
	const char *machine;  /* the base; NULL: the rows alone */
};

struct calibrate_options {
	const char *const *file;
	size_t n_files;
	const struct bench_format *format; /* NULL: guessed for each file */
	const char *machine;               /* name or path; NULL: only read */
	const char *const *model;          /* of llama-bench's tests: llama_cards_load */
	size_t n_models;
	unsigned workers;
	void (*report)(void *ctx, size_t simulations); /* after some more of them; NULL: not wanted */
	void *report_ctx;
	const volatile sig_atomic_t *interrupted;
};

int calibrate_run(const struct calibrate_options *o, struct arena *a, struct calibrate *out, struct err *err);

/* The profile that machine: accepts, date as "2026-11-30". Whole or not at all. */
int calibrate_write(const struct calibrate *c, const char *date, const char *path, struct arena *a, struct err *err);

#endif
