/*
 * bring.h - weights that live in host memory and are copied to the GPUs before they are multiplied, as vLLM and SGLang do it.
 *
 *	by parameters  what of a layer lies in host memory is copied on the compute stream, before the layer and behind
 *	               the one before it:  [copy 0][layer 0][copy 1][layer 1]
 *
 *	by groups      copies    [5 ───────]        [2 ──────]          group_size 3, num_in_group 1, prefetch_step 1:
 *	               kernels   [0][1][2] │ [3][4][5]│ [0][1][2]       layers 2 and 5 of six
 *	                                 └─┘ starts when 2 is through   and wraps to the next step
 *
 * In each group of group_size layers the last num_in_group are not kept. When the i-th of these is through, the copy of the
 * (i + prefetch_step)-th starts, on a stream of its own, into the slot that it leaves. A layer waits for its own copy.
 */
#ifndef SIM_ENGINE_BRING_H
#define SIM_ENGINE_BRING_H

#include "sim/exec/ranks.h"

struct bring {
	uint64_t group_size, num_in_group, prefetch_step; /* as in the flags; group_size 0: by parameters */
	struct ranks *ranks;
	const struct placement *placement;
	uint32_t n;                        /* layers of groups that are brought */
	op_ref (*copied)[PLACE_MAX_ROWS];  /* by such layer and rank: its copy */
};

/* All of them is on the GPUs already. Places in another memory, before place_finish: the layers of groups; */
void bring_place_groups(const struct bring *b, struct placement *p, int memory);
/* or the first parameters of layers, of groups of tensors named by bits, until so many bytes a GPU are used up (the last may
   go over it), to be streamed or read zero-copy. */
void bring_place_parameters(struct placement *p, int memory, enum place_mode mode, unsigned groups, double bytes);
/* Books what they need on the GPUs, after place_finish. */
void bring_book(const struct bring *b, struct placement *p);
/* State for one run; r->ops becomes what brings them. */
void bring_init(struct bring *b, struct ranks *r, const struct placement *p, struct arena *a);
/* Whether these values of the flags go together. */
int bring_check(const struct bring *b, struct err *err);

#endif
