/*
 * bnb.h - linear layers that bitsandbytes has quantized, in eager PyTorch.
 *
 *	int8   host [quantize][find outliers]──wait──[extract][product][expand][add]     it waits for the GPU in each layer
 *	4-bit  host [scales][gemv]                     one row
 *	       gpu  [weights to 16 bits][cuBLAS]       more rows; of any number before 2023-07
 *
 * LLM.int8 must know which columns of its input are outliers before it can go on (torch.unique, argwhere), so the host no
 * longer runs ahead (bitsandbytes/autograd/_functions.py, MatMul8bitLt). matmul_4bit has a kernel for one row since 0.40; with
 * more each product first writes its weights out in 16 bits (MatMul4Bit).
 */
#ifndef SIM_EXEC_BNB_H
#define SIM_EXEC_BNB_H

#include "sim/exec/kernel.h"

struct bnb {
	const struct cost *cost;
	const struct quant_type *int8, *nf4, *nf4_single, *fp4;
	bool old_int8, old_4bit; /* before 0.45 and 0.40 */
};

/* What a linear layer of a type takes beside what one in 16 bits does. */
struct bnb_layer {
	double operations; /* of the host */
	bool waits;        /* for the GPU, before it goes on */
	bool expands;      /* weights to 16 bits, before the product */
};

/* build: year and month of what is installed. */
void bnb_init(struct bnb *b, const struct cost *cost, const char *build);
struct bnb_layer bnb_layer(const struct bnb *b, const struct quant_type *type, double rows);
/* Quantized weights are read, and written in 16 bits. */
struct platform_work bnb_expand(const struct bnb *b, double bytes, double params);

#endif
