/*
 * file_name.h - what the name of a file, or of a model on a hub, says: which model of ours, and how it is quantized.
 *
 *	/mnt/UD-Q4_K_XL/DeepSeek-V3-0324-UD-Q4_K_XL-00001-of-00008.gguf
 *	                └ the model ───┘ └ quant ─┘
 *	Qwen/Qwen3-30B-A3B-GPTQ-Int4     unsloth/gpt-oss-120b-F16.gguf     llama3.1-8b-instruct-exl3-4.00bpw
 *
 * For names of files that are not here.
 */
#ifndef MODELS_FILE_NAME_H
#define MODELS_FILE_NAME_H

#include "models/model.h"

struct file_name {
	const char *model; /* a name of model_load; NULL: none that is known */
	const char *said;  /* what was looked up at first */
	const char *quant; /* NULL: the name does not say */
};

int file_name_read(const char *name, struct arena *a, struct file_name *out, struct err *err);

#endif
