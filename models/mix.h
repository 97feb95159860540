/*
 * mix.h - between the files that know mixes; build_types of build.h is what others call.
 *
 *	mix.c             names, and formats that are put together: EXPERTS+REST, MIX+imatrix
 *	mix_ggml.c        llama.cpp's llama-quantize
 *	mix_ik.c          ik_llama.cpp's
 *	mix_checkpoint.c  what PyTorch programs load
 *	mix_ud.c          unsloth's dynamic quants, bartowski's _L and _XL, recipes for ik_llama.cpp, recipes for ik_llama.cpp
 *
 * Each file gives types to all tensors when it knows the name, and lists the names it knows.
 */
#ifndef MODELS_MIX_H
#define MODELS_MIX_H

#include "models/build.h"

/* What the two llama-quantize ask about a model. */
struct mix_model {
	int n_layer;
	int n_expert; /* of the layer with the most */
	int n_gqa;    /* query heads that share one of keys, in the first layer with attention */
	bool output;  /* has an output.weight of its own */
	bool imatrix; /* quantized with an importance matrix */
	bool falcon;
	bool llama_8b, llama_70b; /* llama.cpp's names of sizes: LLM_TYPE_8B, LLM_TYPE_70B */
	bool many_words;	  /* 127999 or more */
};

/* When a step of a rule applies. Layers are counted over the whole model, tensors over those alike. */
enum mix_when {
	MIX_NEVER,
	MIX_ALWAYS,
	MIX_GQA2, /* that many query heads or more share one of keys and values */
	MIX_GQA4,
	MIX_GQA2_EXPERTS2, /* or that many experts */
	MIX_GQA4_EXPERTS4,
	MIX_EXPERTS4,
	MIX_EXPERTS8, /* exactly 8 */
	MIX_FIRST2,
	MIX_FIRST4,
	MIX_MORE_BITS, /* the first and last eighth of the layers, every third between */
	MIX_16TH,      /* the first sixteenth of the layers */
	MIX_8TH,
	MIX_8TH_COUNTED, /* the same, but tensors counted, of which a MoE layer may have two */
	MIX_8TH_EXPERTS, /* the first eighth, and with 8 experts MIX_MORE_BITS as well */
	MIX_8TH_IMATRIX,
	MIX_8TH_NO_IMATRIX,
	MIX_MIDDLE, /* all but the first and last eighth */
	MIX_NO_IMATRIX,
	MIX_BIG_8B, /* Llama-3-8B and its like, with many words */
};

/* The first of up to three steps that applies decides; else the base type stays. */
struct mix_step {
	enum mix_when when;
	const char *type;
};
#define MIX_STEPS 3

void mix_model_init(struct mix_model *m, const struct build *b, bool imatrix);
/* Type of the first step that applies to layer or tensor `i` of `n`, the `counted`-th alike; NULL: none. */
const char *mix_choose(
	const struct mix_step steps[MIX_STEPS], const struct mix_model *m, int i, int n, int counted);
/* llama.cpp's rule of which layers are worth more bits. */
bool mix_more_bits(int i, int n);

/* Tensors as the two programs visit them: by layer, then by name. */
struct model_tensor **mix_order(const struct build *b);
/* Does llama-quantize touch this tensor? */
bool mix_quantizable(const struct model_tensor *t);
/* The type that conversion to GGUF gives a tensor which llama-quantize leaves alone. */
const struct quant_type *mix_kept(const struct model_tensor *t);
/* type, or what llama-quantize takes instead when rows are no whole number of its blocks. */
const struct quant_type *mix_fit(const struct quant_type *type, uint64_t row);
/* As quant_find, for names that must be there. */
const struct quant_type *mix_type(const char *name);

bool mix_ggml(struct build *b, const char *name, bool imatrix);
bool mix_ik(struct build *b, const char *name, bool imatrix);
bool mix_checkpoint(struct build *b, const char *name);
bool mix_ud(struct build *b, const char *name);
/* Whether quant names one, by whatever spelling, as far as can be told without a model. */
bool mix_is_known(const char *quant, struct arena *a);
const char *mix_ggml_at(size_t i); /* names, NULL past the end */
const char *mix_ik_at(size_t i);
const char *mix_checkpoint_at(size_t i);
const char *mix_ud_at(size_t i);

#endif
