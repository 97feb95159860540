/*
 * arch.h - from the numbers of a configuration to tensors.
 *
 * A reader fills a struct arch_config; the architecture's row knows what a configuration does not say
 * (does it norm its queries, are its projections biased). Every layer is a mixer and a feed-forward:
 *
 *	┌ norm ─ mixer ──────────── (norm) ┐ ┌ norm ─ feed-forward ─────────── (norm) ┐
 *	│   attention, MLA, Mamba, delta … │ │   dense, or router + experts + shared │
 *
 * A new architecture is one row of the table in arch.c; one with a new kind of layer adds a file arch_*.c.
 */
#ifndef MODELS_ARCH_H
#define MODELS_ARCH_H

#include "models/build.h"

/* What mixes the tokens of a layer. */
enum arch_mixer {
	ARCH_ATTENTION, /* MHA, GQA, MQA (arch_dense.c) */
	ARCH_MLA,       /* multi-head latent attention, with or without a sparse indexer (arch_mla.c) */
	ARCH_CSA,       /* DeepSeek-V4: one shared KV head, window and compressed entries (arch_mla.c) */
	ARCH_MAMBA,     /* Mamba-1 (arch_ssm.c, as all that follow) */
	ARCH_MAMBA2,    /* SSD */
	ARCH_DELTA,     /* gated DeltaNet */
	ARCH_KDA,       /* Kimi delta attention */
	ARCH_LIGHTNING, /* linear attention of MiniMax-01 */
	ARCH_CONV,      /* short convolution of LFM2 */
	ARCH_LINEAR,    /* one square matrix (pruned models) */
	ARCH_NO_MIXER,
};

/* Which layers look back only `sliding_window` tokens, when the configuration lists no layer types. */
enum arch_window {
	ARCH_WINDOW_NONE,    /* the key means nothing here */
	ARCH_WINDOW_ALL,     /* all layers */
	ARCH_WINDOW_UPPER,   /* if use_sliding_window: layers from max_window_layers on */
	ARCH_WINDOW_PATTERN, /* all but every sliding_window_pattern-th (window_every when not given) */
	ARCH_WINDOW_CHUNK,   /* Llama 4: attention_chunk_size, in layers that have rotary positions */
};

/* Where a layer norms. */
enum arch_norms {
	ARCH_NORMS_PRE,      /* before the mixer and before the feed-forward */
	ARCH_NORMS_SANDWICH, /* before and after both */
	ARCH_NORMS_POST,     /* after both */
	ARCH_NORMS_PARALLEL, /* one norm, mixer and feed-forward side by side */
	ARCH_NORMS_NONE,     /* without weights */
};

enum arch_qk_norm {
	ARCH_QK_NONE,
	ARCH_QK_HEAD,  /* head_dim weights, the same for all heads */
	ARCH_QK_WIDTH, /* over all heads at once, or with weights of their own: heads * head_dim */
};

enum arch_moe { ARCH_MOE_NO, ARCH_MOE_MUST, ARCH_MOE_MAY };

/* What may differ from layer to layer. */
struct arch_layer {
	enum arch_mixer mixer;
	uint32_t n_head, n_kv_head;
	uint32_t head_dim_k, head_dim_v;
	uint32_t window;   /* 0: none */
	uint32_t ffn;      /* inner width of the dense feed-forward; 0: none */
	uint32_t n_expert; /* 0: dense */
	uint32_t compress; /* CSA: tokens that become one compressed entry; 0: window only */
	bool shared_kv;    /* uses the cache of an earlier layer */
	bool no_v;         /* keys serve as values */
	bool sinks;        /* a learned sink logit a head */
	bool indexer;      /* picks the entries to attend to, and keeps index keys */
	bool compressor;   /* CSA: makes the compressed entries itself */
	bool encoder, cross; /* of an encoder-decoder; a decoder layer that attends to the encoder as well */
	bool draft;        /* MTP head */
};

struct arch_config {
	const struct arch *arch;
	uint32_t n_layer, hidden, vocab;
	uint64_t context_max;
	bool tied;
	bool qkv_bias, output_bias, ffn_bias; /* of attn_q/k/v, attn_output, the feed-forward */
	bool qk_norm;
	uint32_t n_position;  /* rows of a learned position table; 0: none */
	uint32_t embed_width; /* of the embedding where it is projected to hidden; else = hidden */
	bool final_norm;
	bool lm_head_bias;
	bool gated_ffn;       /* gate and up, not up alone */
	bool no_ffn;          /* layers may be without a feed-forward */
	bool second_norm;     /* a parallel layer norms for each of its two halves */
	/* experts */
	uint32_t n_expert_used, expert_ffn;
	uint32_t shared_ffn;   /* width of the shared expert; 0: none */
	uint32_t latent;       /* width experts work in; 0: hidden */
	bool latent_norm;
	bool router_bias;      /* a correction of the scores a expert (exp_probs_b) */
	uint32_t hash_layers;  /* the first ones choose experts by token id: a table instead of that bias */
	/* MLA, and the low ranks of CSA */
	uint32_t q_rank, kv_rank, dim_nope, dim_rope, dim_v;
	uint32_t o_rank, o_groups;
	bool output_gate;      /* MLA: sigmoid gate before the output */
	/* sparse attention */
	uint32_t index_heads, index_dim, index_top, index_pool;
	/* state space and linear attention */
	uint32_t ssm_inner, ssm_state, ssm_conv, ssm_rank, ssm_groups, ssm_heads;
	uint32_t delta_k_heads, delta_v_heads, delta_dim_k, delta_dim_v;
	uint32_t state_elem_bytes; /* of the recurrent state; the convolution's is f32 */
	bool ssm_conv_bias, ssm_bias, full_gate;
	/* streams of hyper-connections; rank of their gates (0: mixed by one matrix) */
	uint32_t streams, stream_rank;
	/* tables that are only looked up: Gemma's embedding a layer, n-grams */
	uint32_t per_layer_width, per_layer_vocab;
	uint32_t altup, laurel; /* Gemma 3n */
	uint64_t table_rows[2];
	int table_layer[2]; /* MODEL_NO_LAYER: of the whole model */
	uint32_t table_width, table_columns;
	/* encoder-decoder */
	uint32_t n_encoder, rel_buckets;
	struct arch_layer *layers;
};

typedef void arch_layer_fn(struct build *b, const struct arch_config *c, int layer);
struct hf_view;
typedef int arch_read_fn(const struct hf_view *v, struct arch_config *c, struct err *err);

/* Words of a list are separated by spaces. */
struct arch {
	const char *name;     /* GGUF's general.architecture; HF's word where GGUF folds it into "llama" */
	const char *hf_type;  /* words for model_type in config.json */
	const char *hf_class; /* words for its entry in "architectures" */
	arch_layer_fn *layer; /* NULL: mixer and feed-forward as described above */
	arch_read_fn *read;   /* keys of its own, after the common ones; NULL: none */
	enum arch_mixer mixer;
	enum arch_norms norms;
	enum arch_qk_norm qk_norm;
	const char *qk_norm_key; /* NULL: always */
	/* what is true when config.json does not say, and the key with which it does (NULL: never) */
	const char *bias_key, *ffn_bias_key;
	bool bias, ffn_bias;
	bool tied;
	bool output_bias; /* attn_output is biased when attn_q is */
	bool layer_norm;  /* norms have a bias (LayerNorm, not RMSNorm) */
	bool plain_ffn;   /* up and down, no gate */
	bool fused_qkv, fused_ffn; /* stored as attn_qkv; gate and up stored as ffn_up */
	bool learned_position;
	bool embed_norm;  /* the embedding is normed */
	bool q_gate;      /* attn_q has a gate of its own width beside the queries */
	bool head_gate;   /* attn_gate: one output a head */
	bool sub_norm;    /* norms before attn_output and ffn_down (BitNet) */
	bool sinks;
	bool lm_head_bias;
	bool draft;       /* MTP layers are part of the file */
	const char *ffn_norm; /* name of the norm before the feed-forward; NULL: ffn_norm */
	enum arch_window window;
	uint32_t window_every;
	/* MoE */
	enum arch_moe moe;
	bool router_linear_bias, expert_bias; /* gpt-oss */
	bool router_bias; /* whether the configuration says so or not */
	bool shared_gate; /* one output: how much of the shared expert to add */
};

const struct arch *arch_at(size_t i); /* NULL past the end */
const struct arch *arch_find(const char *name); /* by .name; BUG when there is none */

/* Embedding, layers, output; types are still missing. */
void arch_build(struct build *b, const struct arch_config *c);

/* Layers, and their parts for other files. */
arch_layer_fn arch_layer, arch_attention, arch_ffn, arch_moe;
arch_layer_fn arch_mla, arch_csa, arch_ssm;
arch_layer_fn arch_block_layer; /* one mixer or one feed-forward under one norm (Nemotron-H) */
arch_layer_fn arch_gemma3n_layer, arch_gemma4_layer, arch_seq2seq_layer, arch_arctic_layer;
/* Tensors of whole models. */
void arch_gemma_inputs(struct build *b, const struct arch_config *c);
/* Hyper-connections around a mixer ("attn") or a feed-forward ("ffn"). */
void arch_streams(struct build *b, const struct arch_config *c, enum model_group g, const char *part);
/* What picks the entries that a sparse attention looks at, in the group of attention. */
void arch_indexer(struct build *b, const struct arch_config *c, int layer, uint64_t query_in);
/* Queries, keys, values: fused or apart. */
void arch_qkv(struct build *b, const struct arch_config *c, uint64_t q, uint64_t k, uint64_t v);
void arch_experts(struct build *b, const struct arch_config *c, int layer);
/* Gate, up and down of width `ffn`, suffix "" or "_shexp". */
void arch_glu(struct build *b, const struct arch_config *c, enum model_group g, const char *suffix,
	uint64_t ffn, bool bias);

/* A norm: weight, and bias where the architecture has one. */
void arch_norm(
	struct build *b, const struct arch_config *c, enum model_group g, const char *name, uint64_t width);
/* A projection from `in` to `out` elements. */
void arch_linear(struct build *b, enum model_group g, const char *name, uint64_t in, uint64_t out, bool bias);

#endif
