/*
 * hw_params.h - the keys of a machine profile, for `offsim help keys`.
 */
#ifndef HW_HW_PARAMS_H
#define HW_HW_PARAMS_H

#include "base/param.h"

enum hw_params_kind {
	HW_PARAMS_MACHINE,
	HW_PARAMS_GPU,
	HW_PARAMS_CPU,
	HW_PARAMS_RAM,
	HW_PARAMS_NVME,
	HW_PARAMS_LINK,
	HW_PARAMS_GENERATION, /* PCIe: what a link is scaled from */
	HW_PARAMS_FLOPS,
	HW_PARAMS_KERNEL, /* of cpu0.kernels: one type of weights */
	HW_PARAMS_NUMBER, /* what any of the numbers above may hold instead of a single value */
	HW_PARAMS_N,
};

/* The rows of one kind and what stands before them, as param_print wants it: "machine.gpu0". A row that
   holds a number is of kind PARAM_KIND_NODE with the number's dimension. */
const struct param *hw_params(enum hw_params_kind kind, size_t *n, const char **prefix);

#endif
