/*
 * validate_gpu.h - inside sim/run: rows of a corpus whose engines run on GPUs alone (vLLM, transformers, ...): the corpus'
 * dialects of flags as ours.
 */
#ifndef SIM_RUN_VALIDATE_GPU_H
#define SIM_RUN_VALIDATE_GPU_H

#include <stdbool.h>

#include "base/arena.h"

/* Which of our engines runs rows of an engine of the corpus; NULL: none of these does. */
const char *validate_gpu_engine(const char *name);
/* The flags of a row as `flags:`. */
const char *validate_gpu_flags(const char *engine, const char *flags, const char *kv_dtype, const char *when, struct arena *a);
/* Requests whose prompts begin as earlier ones did ("prefix_hit=0.4"): whole blocks of that are cached, and at least one token
   is computed. */
struct validate_gpu_prefix {
	unsigned batch, prompt, cached; /* prompt: tokens to compute, behind the cached ones */
	bool fewer; /* than the row's batch: those that want one token are never there all at once */
};
/* False when the flags say nothing of it. */
bool validate_gpu_prefix(const char *flags, const char *prompt, const char *batch, const char *generate,
	struct validate_gpu_prefix *out);

#endif
