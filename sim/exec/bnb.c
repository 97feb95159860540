#include "sim/exec/bnb.h"

#include <string.h>

#define EXPANDED_BYTES 2
/* bitsandbytes 0.40: gemv_4bit; 0.45: pull request 1401. */
#define BUILD_GEMV "2023-07"
#define BUILD_FEWER "2024-12"

void bnb_init(struct bnb *b, const struct cost *cost, const char *build)
{
	*b = (struct bnb){
		.cost = cost,
		.int8 = quant_find("int8"),
		.nf4 = quant_find("nf4"),
		.nf4_single = quant_find("nf4-single"),
		.fp4 = quant_find("fp4"),
		.old_int8 = strcmp(build, BUILD_FEWER) < 0,
		.old_4bit = strcmp(build, BUILD_GEMV) < 0,
	};
}

struct bnb_layer bnb_layer(const struct bnb *b, const struct quant_type *type, double rows)
{
	const struct cost *c = b->cost;

	if (type == b->int8)
		return (struct bnb_layer){
			.operations = hw_num_value(b->old_int8 ? &c->bnb_int8_old : &c->bnb_int8), .waits = true};
	if (type != b->nf4 && type != b->nf4_single && type != b->fp4)
		return (struct bnb_layer){0};
	bool expands = rows > 1 || b->old_4bit;
	return (struct bnb_layer){
		.operations = hw_num_value(expands ? &c->bnb_expand_host : &c->bnb_4bit), .expands = expands};
}

struct platform_work bnb_expand(const struct bnb *b, double bytes, double params)
{
	return (struct platform_work){
		.bytes = bytes + EXPANDED_BYTES * params,
		.flops = params,
		.dtype = HW_FP32,
		.read_share = hw_num_value(&b->cost->gpu_read[COST_16BIT]),
		.compute_share = hw_num_value(&b->cost->bnb_expand),
		.latency_s = hw_num_value(&b->cost->gpu_kernel_s),
	};
}
