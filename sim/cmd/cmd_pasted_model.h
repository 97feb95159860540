/*
 * cmd_pasted_model.h - which model a pasted command line means, and how it is quantized.
 *
 *	-m /mnt/x/Qwen3-30B-A3B-Q4_K_M.gguf     a file that is here; else what its name says
 *	-hf owner/name:Q5_K_M                   a name of the hub, and llama.cpp's default of quantizations
 *	--quantization fp8                      what the engine makes of 16 bits when it loads them
 *
 * --model and --quant of predict come first.
 */
#ifndef SIM_CMD_CMD_PASTED_MODEL_H
#define SIM_CMD_CMD_PASTED_MODEL_H

#include "sim/cmd/cmd_pasted.h"

/* Fills p->model and p->quant, as far as they are not given, from what the command line names. What it took from a name
   alone goes to stderr. */
int pasted_name_model(struct pasted *p, struct err *err);

#endif
