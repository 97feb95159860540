/*
 * arch_hf.h - the keys of a config.json, as an architecture's numbers.
 *
 *	config.json ─> row of the table ─> keys all share ─> keys of its own ─> struct arch_config
 *
 * Families spell the same number in many ways: every getter takes all spellings. Numbers are bounded where
 * they are read, so that no product of two of them overflows.
 */
#ifndef MODELS_ARCH_HF_H
#define MODELS_ARCH_HF_H

#include <jansson.h>

#include "models/arch.h"

#define HF_MAX_WIDTH (1 << 20) /* hidden */
#define HF_MAX_FFN (1 << 24)
#define HF_MAX_VOCAB (1 << 24)
#define HF_MAX_HEADS (1 << 16)
#define HF_MAX_HEAD_DIM (1 << 16)
#define HF_MAX_EXPERTS (1 << 16)
#define HF_MAX_CONTEXT (UINT64_C(1) << 40)

/* One file, and the object of it that describes the text model. */
struct hf_view {
	const json_t *root, *text;
	const char *file;
	struct arena *arena;
};

#define HF_KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Multimodal files keep the text model in an object of its own. */
const json_t *hf_text_model(const json_t *root);
/* NULL when missing or null; in the text model or its attn_config, ffn_config. */
const json_t *hf_value(const struct hf_view *v, const char *key);
int hf_fault(const struct hf_view *v, struct err *err, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* A count from 1, or one that may be missing, null or 0. A list, one entry a layer, stands for its first. */
int hf_count(const struct hf_view *v, const char *const *keys, uint32_t max, uint32_t *out, struct err *err);
int hf_count_or(const struct hf_view *v, const char *const *keys, uint32_t def, uint32_t max, uint32_t *out,
	struct err *err);
int hf_flag_or(const struct hf_view *v, const char *key, bool def, bool *out, struct err *err);
/* Text of a key; NULL when there is none. */
const char *hf_text(const struct hf_view *v, const char *key);
/* A list of n_layer entries: NULL in *out when missing. It may be longer (MTP layers have entries, too). */
int hf_layer_list(const struct hf_view *v, const char *key, uint32_t n_layer, const json_t **out,
	struct err *err);
/* Entry i of such a list of numbers or booleans; def when it is neither. */
uint32_t hf_entry(const json_t *list, uint32_t i, uint32_t def);

/* Reads everything; *note is "" or what the user should know. */
int hf_read_config(const struct hf_view *v, struct arch_config *c, const char **note, struct err *err);

/* Parts for families. */
int hf_read_state_type(const struct hf_view *v, struct arch_config *c, struct err *err);
int hf_read_indexer(const struct hf_view *v, struct arch_config *c, struct err *err);

/* Keys of families (arch_families.c). */
arch_read_fn arch_read_qwen1, arch_read_deci, arch_read_gemma3n, arch_read_gemma4, arch_read_positions;
arch_read_fn arch_read_falcon, arch_read_mpt, arch_read_llama4, arch_read_minimax, arch_read_mimo2;
arch_read_fn arch_read_heads_per_layer, arch_read_step3, arch_read_arctic, arch_read_llama_moe, arch_read_mla;
arch_read_fn arch_read_csa, arch_read_kimi_linear, arch_read_delta, arch_read_jamba, arch_read_mamba;
arch_read_fn arch_read_nemotron_h, arch_read_granite_hybrid, arch_read_lfm2, arch_read_t5;
arch_layer_fn arch_step3_layer;

#endif
