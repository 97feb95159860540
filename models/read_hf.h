/*
 * read_hf.h - models from a Hugging Face config.json.
 *
 * Readers have one signature: what to read, the quant asked for or NULL, and where the model goes. A
 * config.json has no tensors: the architecture's row (arch.h) adds them.
 */
#ifndef MODELS_READ_HF_H
#define MODELS_READ_HF_H

#include <jansson.h>

#include "models/model.h"

/* path of a config.json, whatever it is called */
int read_hf(const char *path, const char *quant, struct arena *a, struct model **out, struct err *err);
/* The same from memory; name stands for the file in messages. text needs no NUL behind it. */
int read_hf_text(const char *text, size_t len, const char *name, const char *quant, struct arena *a,
	struct model **out, struct err *err);
/* The same from an object, such as that of a card. */
int read_hf_object(const json_t *config, const char *name, const char *quant, struct arena *a,
	struct model **out, struct err *err);

#endif
