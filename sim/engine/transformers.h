/*
 * transformers.h - the layers of Hugging Face transformers, as those programs run them that are made of it.
 *
 *	hf-transformers ──┬── accelerate, airllm   the same modules, brought from elsewhere
 *	                  ├── fiddler              with experts of its own
 *	                  └── sequoia              written anew, operation by operation
 */
#ifndef SIM_ENGINE_TRANSFORMERS_H
#define SIM_ENGINE_TRANSFORMERS_H

#include "sim/exec/ranks.h"

/* Operations that eager PyTorch launches for one group (modeling_llama.py and modeling_mixtral.py: norms in fp32 are six
   operations, rotary embedding eight); of experts for each that is hit. Attention over the cache is some more. */
extern const int transformers_operations[MODEL_GROUP_N];
#define TRANSFORMERS_CACHE_OPERATIONS 4
/* Before 4.36 (pull request 26572) attention was a product, a scaling, a mask, a softmax in 32 bits, a cast and a product, and
   the rotary embedding looked its cosines up: so many operations more. Scores went through memory. */
#define TRANSFORMERS_BUILD_SDPA "2023-12"
#define TRANSFORMERS_OLD_OPERATIONS 10
/* A dynamic cache is concatenated: what is held is read and written before it is read again. */
#define TRANSFORMERS_CACHE_PASSES 3

/* Ranks that launch these, one by one, each expert by itself, with such a cache. */
void transformers_ranks_init(struct ranks *r, const struct cost *cost, const struct placement *p);
/* One step, and what the host does after it. */
op_ref transformers_step(struct ranks *r, struct exec *x, const struct trace_step *step);

#endif
