/*
 * popularity.h - how often each expert was used, as somebody counted: a file of Fiddler's
 * ({"expert_popularity": [[3331, 3439, ...] for each layer]}; efeslab/fiddler), or a native trace (.otr) of steps.
 *
 * The rows of a JSON file are the layers that have experts, in order; layers without any are not in it.
 */
#ifndef SIM_TRACE_POPULARITY_H
#define SIM_TRACE_POPULARITY_H

#include "sim/trace/experts.h"

/* Counts by layer of m; *hash, of what they are, for the key of a run. */
int popularity_read(const char *path, const struct model *m, struct arena *a, struct experts_popularity *out,
	uint64_t *hash, struct err *err);

#endif
