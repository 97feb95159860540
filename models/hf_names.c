/*
 * hf_names.c - a table of modules.
 *
 * Checkpoint's names: huggingface/transformers, modeling_NAME.py; which GGUF name each gets: llama.cpp,
 * gguf-py/gguf/tensor_mapping.py.
 */
#include "models/hf_names.h"

#include <ctype.h>
#include <string.h>

#include "base/base.h"

struct row {
	const char *hf, *gguf;
};

static const struct row outside[] = {
	{"embed_tokens", "token_embd"},
	{"word_embeddings", "token_embd"},
	{"embed_in", "token_embd"},
	{"wte", "token_embd"},
	{"shared", "token_embd"},
	{"embeddings", "token_embd"},
	{"word_embeddings_layernorm", "token_embd_norm"},
	{"embed_positions", "position_embd"},
	{"wpe", "position_embd"},
	{"project_in", "token_embd_proj"},
	{"project_out", "output_proj"},
	{"norm", "output_norm"},
	{"norm_f", "output_norm"},
	{"ln_f", "output_norm"},
	{"final_layer_norm", "output_norm"},
	{"final_layernorm", "output_norm"},
	{"embedding_norm", "output_norm"},
	{"lm_head", "output"},
	{"embed_out", "output"},
	{"embed_tokens_per_layer", "per_layer_token_embd"},
	{"per_layer_model_projection", "per_layer_model_proj"},
	{"per_layer_projection_norm", "per_layer_proj_norm"},
};

static const struct row inside[] = {
	{"input_layernorm", "attn_norm"},
	{"self_attn_layer_norm", "attn_norm"},
	{"attention_norm", "attn_norm"},
	{"operator_norm", "attn_norm"},
	{"ln_1", "attn_norm"},
	{"norm", "attn_norm"},
	{"pre_feedforward_layernorm", "ffn_norm"},
	{"post_feedforward_layernorm", "post_ffw_norm"},
	{"final_layer_norm", "ffn_norm"},
	{"ffn_norm", "ffn_norm"},
	{"ln_2", "ffn_norm"},
	{"pre_mlp_layernorm", "ffn_norm"},
	{"post_mlp_layernorm", "post_ffw_norm"},
	{"post_self_attn_layernorm", "post_attention_norm"},
	/* attention */
	{"self_attn.q_proj", "attn_q"},
	{"self_attn.k_proj", "attn_k"},
	{"self_attn.v_proj", "attn_v"},
	{"self_attn.o_proj", "attn_output"},
	{"self_attn.out_proj", "attn_output"},
	{"self_attn.dense", "attn_output"},
	{"self_attn.qkv_proj", "attn_qkv"},
	{"self_attn.query_key_value", "attn_qkv"},
	{"self_attention.query_key_value", "attn_qkv"},
	{"self_attention.dense", "attn_output"},
	{"attention.query_key_value", "attn_qkv"},
	{"attention.dense", "attn_output"},
	{"attn.c_attn", "attn_qkv"},
	{"attn.c_proj", "attn_output"},
	{"attn.q_proj", "attn_q"},
	{"attn.k_proj", "attn_k"},
	{"attn.v_proj", "attn_v"},
	{"attn.out_proj", "attn_output"},
	{"norm_attn_norm.attn.Wqkv", "attn_qkv"},
	{"norm_attn_norm.attn.out_proj", "attn_output"},
	{"norm_attn_norm.norm_1", "attn_norm"},
	{"norm_attn_norm.norm_2", "ffn_norm"},
	{"self_attn.q_norm", "attn_q_norm"},
	{"self_attn.k_norm", "attn_k_norm"},
	{"self_attn.q_layernorm", "attn_q_norm"},
	{"self_attn.k_layernorm", "attn_k_norm"},
	{"self_attn.sinks", "attn_sinks"},
	/* latent attention */
	{"self_attn.q_a_proj", "attn_q_a"},
	{"self_attn.q_a_layernorm", "attn_q_a_norm"},
	{"self_attn.q_b_proj", "attn_q_b"},
	{"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
	{"self_attn.kv_a_layernorm", "attn_kv_a_norm"},
	{"self_attn.kv_b_proj", "attn_kv_b"},
	{"self_attn.indexer.wq_b", "indexer.attn_q_b"},
	{"self_attn.indexer.wk", "indexer.attn_k"},
	{"self_attn.indexer.k_norm", "indexer.k_norm"},
	{"self_attn.indexer.weights_proj", "indexer.proj"},
	/* recurrent */
	{"linear_attn.in_proj_qkvz", "attn_qkv"},
	{"linear_attn.in_proj_qkv", "attn_qkv"},
	{"linear_attn.in_proj_z", "attn_gate"},
	{"linear_attn.in_proj_ba", "ssm_ba"},
	{"linear_attn.in_proj_a", "ssm_alpha"},
	{"linear_attn.in_proj_b", "ssm_beta"},
	{"linear_attn.conv1d", "ssm_conv1d"},
	{"linear_attn.A_log", "ssm_a"},
	{"linear_attn.dt_bias", "ssm_dt"},
	{"linear_attn.norm", "ssm_norm"},
	{"linear_attn.out_proj", "ssm_out"},
	{"mamba.in_proj", "ssm_in"},
	{"mamba.conv1d", "ssm_conv1d"},
	{"mamba.x_proj", "ssm_x"},
	{"mamba.dt_proj", "ssm_dt"},
	{"mamba.out_proj", "ssm_out"},
	{"mamba.A_log", "ssm_a"},
	{"mamba.D", "ssm_d"},
	/* feed-forward */
	{"mlp.gate_proj", "ffn_gate"},
	{"mlp.up_proj", "ffn_up"},
	{"mlp.down_proj", "ffn_down"},
	{"mlp.gate_up_proj", "ffn_up"},
	{"mlp.fc1", "ffn_up"},
	{"mlp.fc2", "ffn_down"},
	{"mlp.fc_in", "ffn_up"},
	{"mlp.fc_out", "ffn_down"},
	{"mlp.c_fc", "ffn_up"},
	{"mlp.c_proj", "ffn_down"},
	{"mlp.dense_h_to_4h", "ffn_up"},
	{"mlp.dense_4h_to_h", "ffn_down"},
	{"fc1", "ffn_up"},
	{"fc2", "ffn_down"},
	{"feed_forward.gate_proj", "ffn_gate"},
	{"feed_forward.up_proj", "ffn_up"},
	{"feed_forward.down_proj", "ffn_down"},
	{"feed_forward.w1", "ffn_gate"},
	{"feed_forward.w3", "ffn_up"},
	{"feed_forward.w2", "ffn_down"},
	/* router, shared experts; routed ones below */
	{"mlp.gate", "ffn_gate_inp"},
	{"mlp.router", "ffn_gate_inp"},
	{"mlp.gate.e_score_correction_bias", "exp_probs_b"},
	{"block_sparse_moe.gate", "ffn_gate_inp"},
	{"block_sparse_moe.e_score_correction_bias", "exp_probs_b"},
	{"feed_forward.router", "ffn_gate_inp"},
	{"feed_forward.gate", "ffn_gate_inp"},
	{"ffn.router.layer", "ffn_gate_inp"},
	{"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
	{"mlp.shared_expert.up_proj", "ffn_up_shexp"},
	{"mlp.shared_expert.down_proj", "ffn_down_shexp"},
	{"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
	{"mlp.shared_experts.up_proj", "ffn_up_shexp"},
	{"mlp.shared_experts.down_proj", "ffn_down_shexp"},
	{"feed_forward.shared_expert.gate_proj", "ffn_gate_shexp"},
	{"feed_forward.shared_expert.up_proj", "ffn_up_shexp"},
	{"feed_forward.shared_expert.down_proj", "ffn_down_shexp"},
	{"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
	/* multi-token prediction */
	{"eh_proj", "nextn.eh_proj"},
	{"enorm", "nextn.enorm"},
	{"hnorm", "nextn.hnorm"},
	{"shared_head.norm", "nextn.shared_head_norm"},
	{"shared_head.head", "nextn.shared_head_head"},
	{"embed_tokens", "nextn.embed_tokens"},
};

/* Behind "….experts." and perhaps a number. */
static const struct row experts[] = {
	{"gate_proj", "ffn_gate_exps"},
	{"up_proj", "ffn_up_exps"},
	{"down_proj", "ffn_down_exps"},
	{"gate_up_proj", "ffn_gate_up_exps"},
	{"w1", "ffn_gate_exps"},
	{"w3", "ffn_up_exps"},
	{"w2", "ffn_down_exps"},
	{"mlp.w1", "ffn_gate_exps"},
	{"mlp.v1", "ffn_up_exps"},
	{"mlp.w2", "ffn_down_exps"},
};

/* The longest row that text begins with, up to a '.', a '_' or its end. */
static const struct row *find(const struct row *rows, size_t n, const char *text)
{
	const struct row *best = NULL;
	size_t best_len = 0;

	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(rows[i].hf);

		if (len > best_len && !strncmp(text, rows[i].hf, len) &&
			(!text[len] || strchr("._", text[len]))) {
			best = &rows[i];
			best_len = len;
		}
	}
	return best;
}

static bool begins(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

static bool skip(const char **s, const char *with)
{
	if (!begins(*s, with))
		return false;
	*s += strlen(with);
	return true;
}

/* Wrappers around the list of layers. */
static const char *unwrap(const char *s)
{
	static const char *const wrappers[] = {"model.", "language_model.", "transformer.", "decoder.",
		"text_model.", "backbone.", "gpt_neox.", "thinker.", "llm."};
	bool again = true;

	while (again) {
		again = false;
		for (size_t i = 0; i < ARRAY_LEN(wrappers); i++)
			again = skip(&s, wrappers[i]) || again;
	}
	return s;
}

/* Of the parts that see and hear. */
static bool is_other(const char *s)
{
	static const char *const parts[] = {"vision", "visual", "audio", "multi_modal", "mm_projector",
		"image_", "patch_", "embed_vision", "embed_audio", "vit", "connector", "resampler"};

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		if (begins(s, parts[i]))
			return true;
	}
	return false;
}

static bool take_number(const char **s, int64_t max, int64_t *out)
{
	const char *p = *s;

	*out = 0;
	if (!isdigit((unsigned char)*p))
		return false;
	for (; isdigit((unsigned char)*p); p++) {
		*out = *out * 10 + (*p - '0');
		if (*out > max)
			return false;
	}
	if (*p != '.')
		return false;
	*s = p + 1;
	return true;
}

/* "layers.3." */
static bool take_layer(const char **s, int *layer)
{
	static const char *const lists[] = {"layers.", "h.", "blocks.", "layer."};
	const char *p;
	int64_t n;

	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		p = *s;
		if (!skip(&p, lists[i]) || !take_number(&p, INT32_MAX / 2, &n))
			continue;
		*s = p;
		*layer = (int)n;
		return true;
	}
	return false;
}

static bool is_aside(const char *leaf)
{
	static const char *const leaves[] = {"qzeros", "g_idx", "weight_shape", "weight_zero_point", "absmax",
		"nested_", "quant_map", "quant_state", "SCB", "weight_format", "inv_freq"};

	if (strstr(leaf, "scale") || strstr(leaf, "absmax") || strstr(leaf, "quant_"))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(leaves); i++) {
		if (begins(leaf, leaves[i]))
			return true;
	}
	return false;
}

static enum model_group guess_group(const char *s)
{
	if (strstr(s, "shared_expert"))
		return MODEL_SHARED;
	if (strstr(s, "expert"))
		return MODEL_EXPERTS;
	if (strstr(s, "router"))
		return MODEL_ROUTER;
	if (strstr(s, "mlp") || strstr(s, "feed_forward") || strstr(s, "feedforward") || strstr(s, "ffn"))
		return MODEL_FFN;
	return MODEL_ATTN;
}

/* "weight" and the like: what is behind a module's name. */
static void finish(struct hf_name *out, const struct row *row, const char *behind, struct arena *a)
{
	const char *leaf = *behind ? behind + 1 : "weight";

	size_t n = strlen(row->gguf), n_leaf = strlen(leaf);
	char *rest = arena_alloc(a, n + 1 + n_leaf + 1);

	memcpy(rest, row->gguf, n);
	rest[n] = '.';
	memcpy(rest + n + 1, leaf, n_leaf + 1);
	out->rest = rest;
	out->aside = is_aside(leaf);
}

static void inside_layer(struct hf_name *out, const char *s, bool sandwich, struct arena *a)
{
	static const struct row after = {"post_attention_layernorm", "post_attention_norm"},
				before = {"post_attention_layernorm", "ffn_norm"};
	const char *in = strstr(s, "experts.");
	const struct row *row = NULL;

	if (in && !strstr(s, "shared_experts.")) {
		in += strlen("experts.");
		if (!take_number(&in, INT32_MAX, &out->expert))
			out->expert = -1;
		row = find(experts, ARRAY_LEN(experts), in);
		if (row) {
			finish(out, row, in + strlen(row->hf), a);
			return;
		}
	}
	if (begins(s, after.hf))
		row = sandwich ? &after : &before;
	else
		row = find(inside, ARRAY_LEN(inside), s);
	if (row) {
		finish(out, row, s + strlen(row->hf), a);
		return;
	}
	out->guess = true;
	out->rest = arena_strdup(a, s);
	out->aside = is_aside(strrchr(s, '.') ? strrchr(s, '.') + 1 : s);
	out->group = guess_group(s);
}

void hf_name(const char *name, bool sandwich, struct arena *a, struct hf_name *out)
{
	const char *s = unwrap(name);
	const struct row *row;

	*out = (struct hf_name){.layer = MODEL_NO_LAYER, .expert = -1, .other = is_other(s)};
	if (out->other)
		return;
	bool in_layer = skip(&s, "mtp.");
	if (in_layer) {
		out->draft = true;
		out->layer = 0;
	}
	in_layer |= take_layer(&s, &out->layer);
	if (in_layer && *s) {
		inside_layer(out, s, sandwich, a);
		return;
	}
	row = find(outside, ARRAY_LEN(outside), s);
	if (row) {
		finish(out, row, s + strlen(row->hf), a);
		return;
	}
	out->rest = arena_strdup(a, name);
	out->aside = is_aside(strrchr(name, '.') ? strrchr(name, '.') + 1 : name);
}
