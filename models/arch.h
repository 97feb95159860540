/*
 * arch.h - from the numbers of a configuration to tensors.
 *
 * A reader fills a struct arch_config; the architecture's row knows what a configuration does not say
 * (does it norm its queries, are its projections biased) and which function lays out a layer. A new
 * architecture is one row of the table in arch.c; one with a new kind of layer adds a file arch_*.c.
 */
#ifndef MODELS_ARCH_H
#define MODELS_ARCH_H

#include "models/build.h"

/* Which layers look back only `sliding_window` tokens, when the configuration lists no layer types. */
enum arch_window {
	ARCH_WINDOW_NONE,  /* the key means nothing here */
	ARCH_WINDOW_ALL,   /* all layers */
	ARCH_WINDOW_UPPER, /* if use_sliding_window: layers from max_window_layers on */
};

/* What may differ from layer to layer. */
struct arch_layer {
	uint32_t n_head, n_kv_head;
	uint32_t window;   /* 0: none */
	uint32_t ffn;      /* inner width of the dense feed-forward; 0 in a MoE layer */
	uint32_t n_expert; /* 0: dense */
};

struct arch_config {
	const struct arch *arch;
	uint32_t n_layer, hidden, vocab;
	uint32_t head_dim_k, head_dim_v;
	uint64_t context_max;
	bool tied;
	bool qkv_bias, output_bias, ffn_bias; /* of attn_q/k/v, attn_output, the feed-forward */
	uint32_t n_expert_used, expert_ffn;
	uint32_t shared_ffn;  /* width of the shared expert; 0: none */
	uint32_t n_position;  /* rows of a learned position table; 0: none */
	uint32_t embed_width; /* of the embedding where it is projected to hidden; else = hidden */
	bool final_norm;
	struct arch_layer *layers;
};

typedef void arch_layer_fn(struct build *b, const struct arch_config *c, int layer);

struct arch {
	const char *name;     /* GGUF's general.architecture; HF's word where GGUF folds it into "llama" */
	const char *hf_type;  /* model_type in config.json */
	const char *hf_class; /* its entry in "architectures" */
	arch_layer_fn *layer;
	/* what is true when config.json does not say, and the key with which it does (NULL: never) */
	const char *bias_key, *ffn_bias_key;
	bool bias, ffn_bias;
	bool tied;
	bool output_bias; /* attn_output is biased when attn_q is */
	bool qk_norm;     /* a norm of head_dim over queries and keys */
	bool layer_norm;  /* norms have a bias (LayerNorm, not RMSNorm) */
	bool plain_ffn;   /* up and down, no gate */
	bool learned_position;
	enum arch_window window;
	/* MoE */
	bool moe, shared_expert;
	const char *expert_ffn_key;
};

const struct arch *arch_at(size_t i); /* NULL past the end */

/* Embedding, layers, output; types are still missing. */
void arch_build(struct build *b, const struct arch_config *c);

/* Layers, and their parts for other files. */
arch_layer_fn arch_dense_layer, arch_moe_layer;
void arch_attention(struct build *b, const struct arch_config *c, int layer);
/* A norm: weight, and bias where the architecture has one. */
void arch_norm(
	struct build *b, const struct arch_config *c, enum model_group g, const char *name, uint64_t width);
/* A projection from `in` to `out` elements. */
void arch_linear(struct build *b, enum model_group g, const char *name, uint64_t in, uint64_t out, bool bias);

#endif
