/*
 * hf_names.h - tensor names of Hugging Face checkpoints -> those of GGUF.
 *
 *	model.layers.3.mlp.experts.17.up_proj.weight  ->  layer 3, "ffn_up_exps.weight", expert 17
 */
#ifndef MODELS_HF_NAMES_H
#define MODELS_HF_NAMES_H

#include "base/arena.h"
#include "models/model.h"

struct hf_name {
	const char *rest;	/* behind "blk.N.", or the whole name */
	int layer;		/* MODEL_NO_LAYER: in none */
	int64_t expert;		/* of several that GGUF stores as one; -1: no such */
	bool other;		/* of a vision or audio part, which is not described here */
	bool draft;		/* counted from the first draft layer */
	bool aside;		/* a scale, a zero, an index: no parameter */
	bool guess;		/* the name is not known; rest is the checkpoint's own: */
	enum model_group group; /* what its words look like */
};

/* sandwich: the model norms after attention as well, so that post_attention_layernorm is that. */
void hf_name(const char *name, bool sandwich, struct arena *a, struct hf_name *out);

#endif
