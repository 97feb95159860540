/*
 * validate_gpu.h - inside sim/run: rows of a corpus whose engines run on GPUs alone (vLLM, transformers, ...): the corpus'
 * dialects of flags as ours, and what their machines have.
 */
#ifndef SIM_RUN_VALIDATE_GPU_H
#define SIM_RUN_VALIDATE_GPU_H

#include "base/arena.h"

/* Which of our engines runs rows of an engine of the corpus; NULL: none of these does. */
const char *validate_gpu_engine(const char *name);
/* The flags of a row as `flags:`. */
const char *validate_gpu_flags(const char *engine, const char *flags, const char *kv_dtype, struct arena *a);
/* What joins several cards of a kind: the name of a link's part, NULL when they only reach each other through the host. */
const char *validate_gpu_nvlink(const char *gpus);
/* Share of the prompt that an earlier request left in the cache ("prefix_hit=0.4"); 0 without. */
double validate_gpu_prefix_hit(const char *flags);

#endif
