/*
 * model.h - what a model needs: tensors, bytes and FLOPs as functions of tokens and context.
 *
 * A model is a list of tensors, each belonging to a layer (or to none: embedding, output) and to a group:
 *
 *	embed │ layer 0: attn ffn │ layer 1: attn router shared experts │ … │ output
 *
 * The group is the unit in which traces speak and placement usually moves; the tensor is the unit of
 * bytes. Tensor names are GGUF's ("blk.3.ffn_down_exps.weight"), which every regex people write expects.
 * Names, shapes and sizes come from readers and architectures behind this header; nothing here knows
 * hardware or time. A model is const after loading.
 */
#ifndef MODELS_MODEL_H
#define MODELS_MODEL_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "models/quant.h"

enum model_group {
	MODEL_EMBED,   /* token embedding (and learned positions): rows are looked up, not multiplied */
	MODEL_ATTN,    /* attention projections, norms and biases */
	MODEL_FFN,     /* dense feed-forward */
	MODEL_ROUTER,  /* MoE gate */
	MODEL_SHARED,  /* experts that every token uses */
	MODEL_EXPERTS, /* routed experts, all of the layer */
	MODEL_OUTPUT,  /* final norm and lm_head */
	MODEL_GROUP_N,
};

#define MODEL_NO_LAYER (-1) /* tensor of the whole model: embedding, output */

struct model_tensor {
	const char *name;
	int layer;               /* 0-based, or MODEL_NO_LAYER */
	enum model_group group;
	uint64_t shape[3];       /* row length (inputs), rows (outputs), experts; unused ones are 1 */
	const struct quant_type *type;
	uint64_t params, bytes;
	bool shared_storage;     /* its bytes are another tensor's (tied lm_head): counted once, read again */
};

struct model_group_sum {
	uint64_t params, bytes; /* of all tensors of the group in that layer, experts all together */
};

struct model_layer {
	int first_tensor, n_tensors; /* its tensors are neighbours in model.tensors */
	/* attention; n_head 0: the layer has none */
	uint32_t n_head, n_kv_head;
	uint32_t head_dim_k, head_dim_v; /* MLA: as decoding computes, kv_lora_rank + rope and kv_lora_rank */
	uint32_t mla_dim_k, mla_dim_v;   /* MLA: of the unpacked heads; 0: no MLA */
	uint32_t window;         /* tokens an attention layer looks back and keeps; 0: all */
	/* sparse attention: entries it attends to at most (0: all), picked by index_heads heads */
	uint32_t attended, index_heads, index_dim;
	uint32_t compress;       /* tokens that are seen as one entry behind the window; 0: not at all */
	/* KV cache: elements a token adds, K and V apart (MLA: one shared vector, in K) */
	uint64_t kv_k_elements, kv_v_elements;
	/* a second cache that no window caps: index keys, compressed entries; one for every
	   `kv_extra_every` tokens (0 means 1) */
	uint64_t kv_extra_elements;
	uint32_t kv_extra_every;
	uint64_t state_bytes;    /* fixed state per sequence (SSM, linear attention) */
	double state_flops;      /* of one step of it */
	bool prefill_only;       /* of an encoder: runs when a prompt is read, never when decoding */
	bool draft;              /* MTP head: stored, but run only by speculative decoding; no cache */
	/* MoE; n_expert 0: dense */
	uint32_t n_expert, n_expert_used;
	struct model_group_sum group[MODEL_GROUP_N];
};

struct model {
	const char *name;         /* as asked for */
	const char *architecture; /* "llama", "qwen3moe" */
	const char *quant;        /* "q4_0", "f16": the type or mix the tensors were given */
	const char *file;         /* it was read from */
	const char *note;         /* what the user should know of how it was read; "": nothing */
	uint32_t n_layer, hidden, vocab;
	uint64_t context_max;     /* 0: unknown */
	bool tied_embeddings;     /* output uses the embedding's bytes */
	struct model_layer *layers;
	struct model_tensor *tensors;
	int n_tensors;
	/* of the whole model; a tied output counts its bytes as read, not as stored */
	struct model_group_sum embed, output;
	/* active: all but the experts that a token does not use, MTP heads and tables that are only looked
	   up; the embedding counts, as in most published counts */
	uint64_t params_total, params_active;
	uint64_t weights_bytes;   /* stored, tied tensors once */
	uint64_t file_bytes;      /* with container header; 0: unknown */
};

/* A name from models/cards, or a path: config.json, *.gguf, *.safetensors, a folder with one. quant NULL: the
   type the file stores, f16/bf16 for a config. Errors name the nearest model or type. */
int model_load(const char *name_or_path, const char *quant, struct arena *a, struct model **out,
	       struct err *err);

/* FLOPs of multiplying `tokens` rows with a whole group of a layer (2 a parameter and token; an expert
   group counts one expert). Embedding lookups cost none. layer MODEL_NO_LAYER: embed and output. */
double model_matmul_flops(const struct model *m, int layer, enum model_group g, double tokens);
/* FLOPs of scores and values for `tokens` new rows that each look at `context` entries:
   2 * tokens * context * n_head * (head_dim_k + head_dim_v). MLA as decoding does it (see arch_mla.c). */
double model_attention_flops(const struct model_layer *l, double tokens, double context);
/* FLOPs of one decoded token at a context, all layers that run then and the output: matrices, attention to
   the entries a layer sees, the indexer's scores (2 * index_heads * index_dim an entry), steps of
   recurrences. */
double model_flops_per_token(const struct model *m, double context);

/* Bytes of one expert of the layer (all of its tensors). */
uint64_t model_expert_bytes(const struct model_layer *l);

/* Activation bytes that `tokens` rows need at the widest point of one layer plus hidden states in and
   out, at elem_bytes an element; logits of n_logits rows in f32. */
uint64_t model_activation_bytes(const struct model *m, uint64_t tokens, uint64_t n_logits,
				unsigned elem_bytes);

const char *model_group_name(enum model_group g);

/* Is it multiplied with activations, so that quantizing may change its type? Norms, biases, convolutions and
   tables of positions are not (llama-quant.cpp: dimensions, and names that end in "weight"). */
bool model_tensor_is_matrix(const struct model_tensor *t);

/* Every number of the model (shapes, types, geometry), no names of files, for the run key. */
char *model_canonical(const struct model *m, struct arena *a);

/* Names of models/cards with their aliases, for `model list` and suggestions. */
struct model_card_info {
	const char *name, *aliases, *description;
};
int model_list(struct arena *a, struct model_card_info **out, size_t *n, struct err *err);

#endif
