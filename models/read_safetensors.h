/*
 * read_safetensors.h - models from safetensors checkpoints.
 *
 * Geometry is that of the config.json beside them. Tensors, types and sizes are the files' own, under the
 * names that GGUF has for them; experts that are stored one by one become one tensor. When only the index is
 * there, or a model is asked for as another quant, tensors are those that config.json makes.
 * See safetensors.h for the format.
 */
#ifndef MODELS_READ_SAFETENSORS_H
#define MODELS_READ_SAFETENSORS_H

#include "models/model.h"

/* path of model.safetensors, model.safetensors.index.json, or one of the parts that an index lists. */
int read_safetensors(
	const char *path, const char *quant, struct arena *a, struct model **out, struct err *err);

#endif
