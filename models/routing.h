/*
 * routing.h - models/routing.yaml: how much the router's choices for different tokens have in common, where nobody recorded
 * them.
 */
#ifndef MODELS_ROUTING_H
#define MODELS_ROUTING_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

#define ROUTING_CORRELATION_MAX 0.9

/* A number measured on layers of so many experts. */
struct routing_point {
	uint64_t n_expert;
	double correlation; /* share of the variance of a router's scores, 0 to ROUTING_CORRELATION_MAX */
};

struct routing {
	size_t n;                          /* at least 1 */
	const struct routing_point *point; /* by n_expert, ascending */
	double strays;                     /* share of tokens that have nothing in common with the others */
};

/* Errors: no such file, none of its numbers, or one that cannot be. */
int routing_read(struct arena *a, struct routing *out, struct err *err);
/* The same of any file. */
int routing_read_file(const char *path, struct arena *a, struct routing *out, struct err *err);
/* For layers of so many experts: between two points in proportion to the logarithm, beyond them that of the nearest. */
double routing_correlation(const struct routing *r, uint64_t n_expert);

#endif
