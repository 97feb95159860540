/*
 * build.h - a model under construction.
 *
 * Readers and architectures name tensors and shapes; types, bytes and sums follow from them:
 *
 *	reader ─> build_init ─> build_layer, build_add … ─> build_types ─> build_finish
 *	                                                    (or the file's own types)
 *
 * A reader of a file that lists its tensors (GGUF, safetensors) adds them itself with their own types; one
 * of a configuration lets arch_build add them. Tensors come in the order embedding, layers, output.
 */
#ifndef MODELS_BUILD_H
#define MODELS_BUILD_H

#include "base/vec.h"
#include "models/model.h"

#define BUILD_MAX_LAYERS 4096
#define BUILD_MAX_TENSORS (1 << 20)
/* So that no sum of bytes can overflow: 2^50 parameters of 8 bytes. */
#define BUILD_MAX_PARAMS (UINT64_C(1) << 50)

struct build {
	struct arena *arena;
	struct model *m;
	int layer; /* that build_add adds to, or MODEL_NO_LAYER */
	/* of an encoder-decoder: names begin with "enc." or "dec.", layers are counted from `first` */
	const char *prefix;
	int first;
	VEC(struct model_tensor);
};

void build_init(struct build *b, struct arena *a, uint32_t n_layer);
/* Further tensors belong to this layer, which is returned to be described; MODEL_NO_LAYER gives NULL. */
struct model_layer *build_layer(struct build *b, int layer);
/* Adds a tensor without a type. name is copied, with "blk.N." before it inside a layer; unused dimensions
   are 1. The result holds until the next call. */
struct model_tensor *build_add(
	struct build *b, enum model_group g, const char *name, uint64_t row, uint64_t rows, uint64_t experts);

/* Gives every tensor its type as quantizing to `quant` would, and the model the quant's name. */
int build_types(struct build *b, const char *quant, struct err *err);

/* Bytes, group sums and totals; every tensor has a type by now. */
int build_finish(struct build *b, struct model **out, struct err *err);

#endif
