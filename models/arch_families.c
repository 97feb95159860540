/*
 * arch_families.c - the keys of config.json that one family has.
 *
 * Defaults are those of the family's configuration_*.py in huggingface/transformers, or of its own repository
 * where transformers has none.
 */
#include "models/arch_hf.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"

/* ---- dense ---- */

/* Qwen-1 counts gate and up together (modeling_qwen.py, QWenMLP). */
int arch_read_qwen1(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	(void)v;
	(void)err;
	for (uint32_t i = 0; i < c->n_layer; i++)
		c->layers[i].ffn /= 2;
	return 0;
}

/* Positions of GPT-2 and StarCoder: one learned vector each. */
int arch_read_positions(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	return hf_count(v, HF_KEYS("n_positions", "max_position_embeddings", "max_seq_len"), HF_MAX_VOCAB,
		&c->n_position, err);
}

/* Pruned Llamas (DeciLM, Nemotron-NAS) describe each block: attention with n_heads / n_heads_in_group kv
   heads or none, and a feed-forward of 2/3 * ffn_mult * hidden, rounded up to 256, or none
   (modeling_decilm.py). A block that is replaced by a linear layer has one square matrix instead. */
static int deci_block(const struct hf_view *v, struct arch_config *c, struct arch_layer *l,
	const json_t *block, struct err *err)
{
	const json_t *attention = json_object_get(block, "attention"), *ffn = json_object_get(block, "ffn");
	json_int_t group = json_integer_value(json_object_get(attention, "n_heads_in_group"));
	double mult = json_number_value(json_object_get(ffn, "ffn_mult")), width;

	if (json_is_true(json_object_get(attention, "no_op"))) {
		l->mixer = ARCH_NO_MIXER;
	} else if (json_is_true(json_object_get(attention, "replace_with_linear"))) {
		l->mixer = ARCH_LINEAR;
	} else {
		if (group < 1 || group > l->n_head || l->n_head % group)
			return hf_fault(v, err, "'block_configs' has a group of %lld of %u heads",
				(long long)group, l->n_head);
		l->n_kv_head = l->n_head / (uint32_t)group;
	}
	if (json_is_true(json_object_get(ffn, "no_op"))) {
		l->ffn = 0;
		return 0;
	}
	width = 2 * mult * c->hidden / 3;
	if (!(width >= 1 && width < HF_MAX_FFN))
		return hf_fault(v, err, "'block_configs' has an 'ffn_mult' of %g", mult);
	l->ffn = ((uint32_t)width + 255) / 256 * 256;
	return 0;
}

int arch_read_deci(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	const json_t *blocks;

	if (hf_layer_list(v, "block_configs", c->n_layer, &blocks, err))
		return -1;
	for (uint32_t i = 0; blocks && i < c->n_layer; i++) {
		if (deci_block(v, c, &c->layers[i], json_array_get(blocks, i), err))
			return -1;
	}
	c->no_ffn = blocks != NULL;
	return 0;
}

/* The new decoder (40B, 180B) has grouped heads and a norm for each half of the layer; the first (7B) one kv
   head and one norm (modeling_falcon.py). */
int arch_read_falcon(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	bool grouped = hf_value(v, "num_kv_heads") || hf_value(v, "n_head_kv"), new_decoder, one;
	uint32_t norms;

	if (hf_flag_or(v, "new_decoder_architecture", grouped, &new_decoder, err) ||
		hf_flag_or(v, "multi_query", !new_decoder, &one, err) ||
		hf_count_or(v, HF_KEYS("num_ln_in_parallel_attn"), new_decoder ? 2 : 1, 2, &norms, err))
		return -1;
	c->second_norm = norms == 2;
	for (uint32_t i = 0; i < c->n_layer && !new_decoder; i++)
		c->layers[i].n_kv_head = one ? 1 : c->layers[i].n_head;
	return 0;
}

int arch_read_mpt(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	uint32_t ratio;
	const json_t *type = hf_value(v, "attn_type");
	bool one = json_is_string(type) && !strcmp(json_string_value(type), "multiquery_attention");

	if (hf_count_or(v, HF_KEYS("expansion_ratio"), 4, 64, &ratio, err))
		return -1;
	for (uint32_t i = 0; i < c->n_layer; i++) {
		c->layers[i].ffn = ratio * c->hidden;
		if (one)
			c->layers[i].n_kv_head = 1;
	}
	return 0;
}

/* Full layers of Gemma 4 have wider heads, fewer for keys, and may use keys as values. */
static int gemma_layers(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	uint32_t shared, wide_dim, wide_heads;
	bool same, wide;

	if (hf_count_or(v, HF_KEYS("num_kv_shared_layers"), 0, c->n_layer, &shared, err) ||
		hf_count_or(v, HF_KEYS("global_head_dim"), 0, HF_MAX_HEAD_DIM, &wide_dim, err) ||
		hf_count_or(v, HF_KEYS("num_global_key_value_heads"), 0, HF_MAX_HEADS, &wide_heads, err) ||
		hf_flag_or(v, "attention_k_eq_v", false, &same, err) ||
		hf_flag_or(v, "use_double_wide_mlp", false, &wide, err) ||
		hf_count_or(v, HF_KEYS("hidden_size_per_layer_input"), 0, HF_MAX_WIDTH, &c->per_layer_width,
			err) ||
		hf_count_or(v, HF_KEYS("vocab_size_per_layer_input"), c->vocab, HF_MAX_VOCAB,
			&c->per_layer_vocab, err))
		return -1;
	for (uint32_t i = 0; i < c->n_layer; i++) {
		struct arch_layer *l = &c->layers[i];

		if (!l->window) {
			l->head_dim_k = l->head_dim_v = wide_dim ? wide_dim : l->head_dim_k;
			l->n_kv_head = wide_heads ? wide_heads : l->n_kv_head;
			l->no_v = same;
		}
		if (i >= c->n_layer - shared) {
			l->shared_kv = true;
			if (wide && l->ffn < HF_MAX_FFN / 2)
				l->ffn *= 2;
		}
	}
	return 0;
}

int arch_read_gemma3n(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	return hf_count_or(v, HF_KEYS("altup_num_inputs"), 4, 64, &c->altup, err) ||
			       hf_count_or(v, HF_KEYS("laurel_rank"), 64, HF_MAX_WIDTH, &c->laurel, err) ||
			       gemma_layers(v, c, err)
		       ? -1
		       : 0;
}

int arch_read_gemma4(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	uint32_t ffn;

	/* the dense feed-forward stays beside the experts */
	if (hf_count(v, HF_KEYS("intermediate_size"), HF_MAX_FFN, &ffn, err))
		return -1;
	for (uint32_t i = 0; i < c->n_layer; i++)
		c->layers[i].ffn = c->layers[i].ffn ? c->layers[i].ffn : ffn;
	return gemma_layers(v, c, err);
}

/* ---- experts ---- */

/* intermediate_size is that of an expert, the one every token uses included; dense layers are wider. */
int arch_read_llama4(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	uint32_t dense;

	if (hf_count_or(v, HF_KEYS("intermediate_size_mlp"), 0, HF_MAX_FFN, &dense, err))
		return -1;
	c->shared_ffn = c->expert_ffn;
	for (uint32_t i = 0; i < c->n_layer; i++) {
		if (!c->layers[i].n_expert && dense)
			c->layers[i].ffn = dense;
	}
	return 0;
}

/* Layers of another kind of attention have heads of their own (MiMo-V2: swa_*). */
int arch_read_mimo2(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	struct arch_layer full = c->layers[0], local;
	bool sinks, full_sinks;

	if (hf_count_or(v, HF_KEYS("v_head_dim"), full.head_dim_v, HF_MAX_HEAD_DIM, &full.head_dim_v, err) ||
		hf_count_or(v, HF_KEYS("swa_num_attention_heads"), full.n_head, HF_MAX_HEADS, &local.n_head,
			err) ||
		hf_count_or(v, HF_KEYS("swa_num_key_value_heads"), full.n_kv_head, HF_MAX_HEADS,
			&local.n_kv_head, err) ||
		hf_count_or(v, HF_KEYS("swa_head_dim"), full.head_dim_k, HF_MAX_HEAD_DIM, &local.head_dim_k,
			err) ||
		hf_count_or(v, HF_KEYS("swa_v_head_dim"), full.head_dim_v, HF_MAX_HEAD_DIM, &local.head_dim_v,
			err) ||
		hf_flag_or(v, "add_swa_attention_sink_bias", false, &sinks, err) ||
		hf_flag_or(v, "add_full_attention_sink_bias", false, &full_sinks, err))
		return -1;
	for (uint32_t i = 0; i < c->n_layer; i++) {
		struct arch_layer *l = &c->layers[i];
		bool windowed = l->window != 0;

		l->n_head = windowed ? local.n_head : full.n_head;
		l->n_kv_head = windowed ? local.n_kv_head : full.n_kv_head;
		l->head_dim_k = windowed ? local.head_dim_k : full.head_dim_k;
		l->head_dim_v = windowed ? local.head_dim_v : full.head_dim_v;
		l->sinks = windowed ? sinks : full_sinks;
	}
	return 0;
}

int arch_read_heads_per_layer(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	const json_t *heads;

	if (hf_layer_list(v, "num_attention_heads_per_layer", c->n_layer, &heads, err))
		return -1;
	for (uint32_t i = 0; heads && i < c->n_layer; i++) {
		uint32_t n = hf_entry(heads, i, 0);

		if (!n || n > HF_MAX_HEADS)
			return hf_fault(v, err, "'num_attention_heads_per_layer' has %u heads", n);
		c->layers[i].n_head = n;
	}
	return 0;
}

/* Queries come from a vector of share_q_dim that all heads share. */
int arch_read_step3(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	return hf_count(v, HF_KEYS("share_q_dim"), HF_MAX_WIDTH, &c->q_rank, err);
}

void arch_step3_layer(struct build *b, const struct arch_config *c, int layer)
{
	const struct arch_layer *s = &c->layers[layer];
	struct model_layer *l = build_layer(b, layer);
	uint64_t q = (uint64_t)s->n_head * s->head_dim_k, kv = (uint64_t)s->n_kv_head * s->head_dim_k;

	l->n_head = s->n_head;
	l->n_kv_head = s->n_kv_head;
	l->head_dim_k = l->head_dim_v = s->head_dim_k;
	l->kv_k_elements = l->kv_v_elements = kv;
	arch_norm(b, c, MODEL_ATTN, "attn_norm", c->hidden);
	arch_linear(b, MODEL_ATTN, "attn_q_a", c->hidden, c->q_rank, false);
	build_add(b, MODEL_ATTN, "attn_q_a_norm.weight", c->q_rank, 1, 1);
	arch_linear(b, MODEL_ATTN, "attn_q_b", c->q_rank, q, false);
	arch_linear(b, MODEL_ATTN, "attn_k", c->hidden, kv, false);
	arch_linear(b, MODEL_ATTN, "attn_v", c->hidden, kv, false);
	arch_linear(b, MODEL_ATTN, "attn_output", q, c->hidden, false);
	if (s->n_expert)
		arch_moe(b, c, layer);
	else
		arch_ffn(b, c, layer);
}

/* The dense half of a layer with experts is as wide as the model (modeling_arctic.py, is_residual_mlp). */
int arch_read_arctic(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	(void)v;
	(void)err;
	for (uint32_t i = 0; i < c->n_layer; i++) {
		if (c->layers[i].n_expert)
			c->layers[i].ffn = c->hidden;
	}
	return 0;
}

int arch_read_llama_moe(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	uint32_t n = c->layers[0].n_expert;

	if (!n || c->expert_ffn < n)
		return hf_fault(
			v, err, "%u experts are more than a feed-forward of %u has rows", n, c->expert_ffn);
	c->expert_ffn /= n;
	return 0;
}

/* MiniMax-M1: attn_type_list, 1 for softmax attention and 0 for linear. M3: a wider feed-forward in dense
   layers, and sparse attention with an indexer where sparse_attention_freq says so. */
int arch_read_minimax(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	const json_t *kinds, *sparse = hf_value(v, "sparse_attention_config"), *freq;
	uint64_t heads, dim, blocks, block;
	uint32_t dense;

	if (hf_layer_list(v, "attn_type_list", c->n_layer, &kinds, err) ||
		hf_count_or(v, HF_KEYS("dense_intermediate_size"), 0, HF_MAX_FFN, &dense, err))
		return -1;
	for (uint32_t i = 0; i < c->n_layer; i++) {
		if (kinds && !hf_entry(kinds, i, 1))
			c->layers[i].mixer = ARCH_LIGHTNING;
		if (dense && !c->layers[i].n_expert)
			c->layers[i].ffn = dense;
	}
	if (!json_is_object(sparse))
		return 0;
	freq = json_object_get(sparse, "sparse_attention_freq");
	if (json_get_count_or(sparse, v->file, "sparse_num_index_heads", 0, 0, HF_MAX_HEADS, &heads, err) ||
		json_get_count_or(sparse, v->file, "sparse_index_dim", 0, 0, HF_MAX_HEAD_DIM, &dim, err) ||
		json_get_count_or(sparse, v->file, "sparse_topk_blocks", 0, 0, 1 << 15, &blocks, err) ||
		json_get_count_or(sparse, v->file, "sparse_block_size", 1, 0, 1 << 15, &block, err))
		return -1;
	c->index_heads = (uint32_t)heads;
	c->index_dim = (uint32_t)dim;
	c->index_top = (uint32_t)(blocks * block);
	for (uint32_t i = 0; i < c->n_layer; i++)
		c->layers[i].indexer = heads && dim && hf_entry(freq, i, 1);
	return 0;
}

/* ---- latent attention ---- */

static int latent_dims(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	return hf_count_or(v, HF_KEYS("q_lora_rank"), 0, HF_MAX_WIDTH, &c->q_rank, err) ||
			       hf_count(v, HF_KEYS("kv_lora_rank"), HF_MAX_WIDTH, &c->kv_rank, err) ||
			       hf_count(v, HF_KEYS("qk_nope_head_dim"), HF_MAX_HEAD_DIM, &c->dim_nope, err) ||
			       hf_count_or(v, HF_KEYS("qk_rope_head_dim"), 0, HF_MAX_HEAD_DIM, &c->dim_rope,
				       err) ||
			       hf_count(v, HF_KEYS("v_head_dim"), HF_MAX_HEAD_DIM, &c->dim_v, err) ||
			       hf_read_indexer(v, c, err)
		       ? -1
		       : 0;
}

int arch_read_mla(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	const json_t *types;

	/* GLM-5.2: "shared" layers attend to what the last "full" one picked */
	if (latent_dims(v, c, err) || hf_layer_list(v, "indexer_types", c->n_layer, &types, err))
		return -1;
	for (uint32_t i = 0; i < c->n_layer; i++) {
		const char *type = json_string_value(json_array_get(types, i));

		c->layers[i].indexer = c->index_heads && (!type || !strcmp(type, "full"));
	}
	return 0;
}

/* Is layer i among the sources that this key lists? */
static bool is_source(const struct hf_view *v, const char *key, uint32_t i)
{
	const json_t *list = hf_value(v, key), *entry;
	size_t k;

	json_array_foreach((json_t *)list, k, entry)
	{
		if (json_is_integer(entry) && json_integer_value(entry) == i)
			return true;
	}
	return false;
}

/* DeepSeek-V4.1's n-gram tables: engram_num_embeddings rows in each of engram_layer_ids. */
static int read_engram(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	const json_t *ids = hf_value(v, "engram_layer_ids"), *rows = hf_value(v, "engram_num_embeddings");
	uint32_t heads, grams;

	if (hf_count_or(v, HF_KEYS("engram_head_dim"), 0, HF_MAX_HEAD_DIM, &c->table_width, err) ||
		hf_count_or(v, HF_KEYS("engram_n_heads"), 0, 1 << 10, &heads, err) ||
		hf_count_or(v, HF_KEYS("engram_max_ngram_size"), 1, 1 << 10, &grams, err))
		return -1;
	c->table_columns = heads * (grams ? grams - 1 : 0);
	for (int i = 0; i < 2; i++)
		c->table_layer[i] = MODEL_NO_LAYER;
	if (json_array_size(ids) > 2)
		return hf_fault(v, err, "'engram_layer_ids' has more than 2 layers");
	for (uint32_t i = 0; i < json_array_size(ids) && c->table_columns; i++) {
		uint32_t layer = hf_entry(ids, i, c->n_layer);

		c->table_rows[i] = hf_entry(rows, i, 0);
		if (layer >= c->n_layer || !c->table_rows[i])
			return hf_fault(v, err, "'engram_layer_ids' and 'engram_num_embeddings' do not fit");
		c->table_layer[i] = (int)layer;
	}
	return 0;
}

int arch_read_csa(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	const json_t *ratios;
	bool v41 = hf_value(v, "kv_source_layer_ids") != NULL;

	if (hf_layer_list(v, "compress_ratios", c->n_layer, &ratios, err) ||
		hf_count(v, HF_KEYS("q_lora_rank"), HF_MAX_WIDTH, &c->q_rank, err) ||
		hf_count(v, HF_KEYS("o_lora_rank"), HF_MAX_WIDTH, &c->o_rank, err) ||
		hf_count(v, HF_KEYS("o_groups"), HF_MAX_HEADS, &c->o_groups, err) ||
		hf_count_or(v, HF_KEYS("hc_mult"), 0, 64, &c->streams, err) ||
		hf_count_or(v, HF_KEYS("num_hash_layers"), 0, BUILD_MAX_LAYERS, &c->hash_layers, err) ||
		hf_read_indexer(v, c, err) || (v41 && read_engram(v, c, err)))
		return -1;
	if ((uint64_t)c->layers[0].n_head * c->layers[0].head_dim_k % c->o_groups)
		return hf_fault(v, err, "%u heads do not divide among %u output groups", c->layers[0].n_head,
			c->o_groups);
	for (uint32_t i = 0; i < c->n_layer; i++) {
		struct arch_layer *l = &c->layers[i];
		uint32_t window;

		if (hf_count(v, HF_KEYS("sliding_window"), INT32_MAX, &window, err))
			return -1;
		l->window = window;
		l->compress = hf_entry(ratios, i, 0);
		if (l->compress > HF_MAX_WIDTH)
			return hf_fault(v, err, "'compress_ratios' has a ratio of %u", l->compress);
		l->compressor = l->compress && (!v41 || is_source(v, "kv_source_layer_ids", i));
		l->indexer = l->compress && c->index_heads &&
			     (v41 ? is_source(v, "index_source_layer_ids", i) : l->compress == 4);
	}
	return 0;
}

/* Kimi Linear and K3 (layers counted from 1), GLM-5.3 (layer_types): KDA and latent attention. */
int arch_read_kimi_linear(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	const json_t *linear = hf_value(v, "linear_attn_config"),
		     *kda = json_object_get(linear, "kda_layers"), *entry;
	uint64_t heads, dim, conv;
	size_t k;
	bool norm;

	if (!json_is_object(linear))
		return hf_fault(v, err, "has no 'linear_attn_config'");
	if (latent_dims(v, c, err) ||
		json_get_count(linear, v->file, "num_heads", 1, HF_MAX_HEADS, &heads, err) ||
		json_get_count(linear, v->file, "head_dim", 1, HF_MAX_HEAD_DIM, &dim, err) ||
		json_get_count(linear, v->file, "short_conv_kernel_size", 1, 1 << 10, &conv, err) ||
		json_get_bool_or(linear, v->file, "use_full_rank_gate", false, &c->full_gate, err) ||
		hf_flag_or(v, "mla_use_output_gate", false, &c->output_gate, err) ||
		hf_flag_or(v, "latent_moe_use_norm", false, &norm, err) ||
		hf_count_or(v, HF_KEYS("routed_expert_hidden_size"), 0, HF_MAX_WIDTH, &c->latent, err) ||
		hf_count_or(v, HF_KEYS("hc_mult"), 0, 64, &c->streams, err) || hf_read_state_type(v, c, err))
		return -1;
	c->latent_norm = norm;
	c->ssm_heads = (uint32_t)heads;
	c->ssm_state = (uint32_t)dim;
	c->ssm_conv = (uint32_t)conv;
	if (!hf_value(v, "layer_types")) {
		json_array_foreach((json_t *)kda, k, entry)
		{
			json_int_t at = json_is_integer(entry) ? json_integer_value(entry) : 0;

			if (at < 1 || at > c->n_layer)
				return hf_fault(v, err, "'kda_layers' names a layer that is none of 1 to %u",
					c->n_layer);
			c->layers[at - 1].mixer = ARCH_KDA;
		}
	}
	for (uint32_t i = 0; i < c->n_layer; i++)
		c->layers[i].indexer = c->index_heads && c->layers[i].mixer == ARCH_MLA;
	return 0;
}

/* ---- state ---- */

/* Three gated delta layers, one of attention (configuration_qwen3_next.py, configuration_qwen3_5.py). */
int arch_read_delta(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	uint32_t interval, rank;
	uint64_t rows, params;

	if (hf_count_or(v, HF_KEYS("full_attention_interval"), 4, BUILD_MAX_LAYERS, &interval, err) ||
		hf_count_or(v, HF_KEYS("linear_num_key_heads"), 16, HF_MAX_HEADS, &c->delta_k_heads, err) ||
		hf_count_or(v, HF_KEYS("linear_num_value_heads"), 32, HF_MAX_HEADS, &c->delta_v_heads, err) ||
		hf_count_or(v, HF_KEYS("linear_key_head_dim"), 128, HF_MAX_HEAD_DIM, &c->delta_dim_k, err) ||
		hf_count_or(
			v, HF_KEYS("linear_value_head_dim"), 128, HF_MAX_HEAD_DIM, &c->delta_dim_v, err) ||
		hf_count_or(v, HF_KEYS("linear_conv_kernel_dim"), 4, 1 << 10, &c->ssm_conv, err) ||
		hf_count_or(v, HF_KEYS("hc_mult"), 0, 64, &c->streams, err) ||
		hf_count_or(v, HF_KEYS("hc_low_rank"), 0, HF_MAX_WIDTH, &rank, err) ||
		json_get_count_or(v->text, v->file, "ngram_table_rows", 0, 0, HF_MAX_CONTEXT, &rows, err) ||
		json_get_count_or(
			v->text, v->file, "ngram_table_params", 0, 0, BUILD_MAX_PARAMS, &params, err) ||
		hf_read_indexer(v, c, err) || hf_read_state_type(v, c, err))
		return -1;
	if (!c->delta_k_heads || !c->delta_v_heads || !c->delta_dim_k || !c->delta_dim_v || !c->ssm_conv)
		return hf_fault(v, err, "has a linear attention of nothing");
	c->stream_rank = rank;
	for (int i = 0; i < 2; i++)
		c->table_layer[i] = MODEL_NO_LAYER;
	if (rows && params / rows && params / rows <= HF_MAX_WIDTH) {
		c->table_rows[0] = rows;
		c->table_width = (uint32_t)(params / rows);
	}
	for (uint32_t i = 0; i < c->n_layer; i++) {
		struct arch_layer *l = &c->layers[i];

		if (!hf_value(v, "layer_types"))
			l->mixer = interval && (i + 1) % interval == 0 ? ARCH_ATTENTION : ARCH_DELTA;
		l->indexer = c->index_heads && l->mixer == ARCH_ATTENTION;
	}
	return 0;
}

/* ssm_inner = expand * hidden; dt_rank "auto" is hidden / 16, rounded up. */
static int mamba1_dims(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	uint32_t expand, automatic = (c->hidden + 15) / 16;
	const char *const *rank = HF_KEYS("mamba_dt_rank", "time_step_rank");
	const char *word = hf_text(v, rank[0]) ? hf_text(v, rank[0]) : hf_text(v, rank[1]);

	c->ssm_rank = automatic;
	if (hf_count_or(v, HF_KEYS("mamba_expand", "expand"), 2, 64, &expand, err) ||
		hf_count_or(v, HF_KEYS("mamba_d_state", "state_size", "d_state"), 16, HF_MAX_HEAD_DIM,
			&c->ssm_state, err) ||
		hf_count_or(
			v, HF_KEYS("mamba_d_conv", "conv_kernel", "d_conv"), 4, 1 << 10, &c->ssm_conv, err) ||
		(!word && hf_count_or(v, rank, automatic, HF_MAX_WIDTH, &c->ssm_rank, err)) ||
		hf_flag_or(v, hf_value(v, "mamba_conv_bias") ? "mamba_conv_bias" : "use_conv_bias", true,
			&c->ssm_conv_bias, err) ||
		hf_flag_or(v, hf_value(v, "mamba_proj_bias") ? "mamba_proj_bias" : "use_bias", false,
			&c->ssm_bias, err) ||
		hf_read_state_type(v, c, err))
		return -1;
	c->ssm_inner = expand * c->hidden;
	if (!expand || !c->ssm_state || !c->ssm_conv || !c->ssm_rank)
		return hf_fault(v, err, "has a state of nothing");
	return 0;
}

/* ssm_inner = heads * head_dim */
static int mamba2_dims(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	uint32_t dim, expand;
	uint64_t inner;

	if (hf_count(v, HF_KEYS("mamba_num_heads", "mamba_n_heads", "num_heads"), HF_MAX_HEADS, &c->ssm_heads,
		    err) ||
		hf_count_or(v, HF_KEYS("mamba_expand", "expand"), 2, 64, &expand, err) ||
		hf_count_or(v, HF_KEYS("mamba_head_dim", "mamba_d_head", "head_dim"), 0, HF_MAX_HEAD_DIM,
			&dim, err) ||
		hf_count_or(v, HF_KEYS("mamba_n_groups", "n_groups"), 1, HF_MAX_HEADS, &c->ssm_groups, err) ||
		hf_count_or(v, HF_KEYS("mamba_d_state", "ssm_state_size", "state_size"), 128, HF_MAX_HEAD_DIM,
			&c->ssm_state, err) ||
		hf_count_or(v, HF_KEYS("mamba_d_conv", "conv_kernel"), 4, 1 << 10, &c->ssm_conv, err) ||
		hf_flag_or(v, hf_value(v, "mamba_conv_bias") ? "mamba_conv_bias" : "use_conv_bias", true,
			&c->ssm_conv_bias, err) ||
		hf_flag_or(v, hf_value(v, "mamba_proj_bias") ? "mamba_proj_bias" : "use_bias", false,
			&c->ssm_bias, err) ||
		hf_read_state_type(v, c, err))
		return -1;
	inner = dim ? (uint64_t)c->ssm_heads * dim : (uint64_t)expand * c->hidden;
	if (!c->ssm_groups || !c->ssm_state || !c->ssm_conv || !inner || inner % c->ssm_groups ||
		inner > HF_MAX_FFN)
		return hf_fault(v, err, "has a state of %" PRIu64 " in %u groups", inner, c->ssm_groups);
	c->ssm_inner = (uint32_t)inner;
	return 0;
}

int arch_read_mamba(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	c->no_ffn = true;
	for (uint32_t i = 0; i < c->n_layer; i++)
		c->layers[i].ffn = 0;
	return c->arch->mixer == ARCH_MAMBA ? mamba1_dims(v, c, err) : mamba2_dims(v, c, err);
}

/* Attention where i % attn_layer_period == attn_layer_offset, else Mamba (configuration_jamba.py). */
int arch_read_jamba(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	uint32_t period, offset;

	if (hf_count_or(v, HF_KEYS("attn_layer_period"), 8, BUILD_MAX_LAYERS, &period, err) ||
		hf_count_or(v, HF_KEYS("attn_layer_offset"), 4, BUILD_MAX_LAYERS, &offset, err) ||
		mamba1_dims(v, c, err))
		return -1;
	c->qk_norm = true; /* dt, B and C are normed */
	for (uint32_t i = 0; i < c->n_layer && !hf_value(v, "layer_types"); i++)
		c->layers[i].mixer = period && i % period == offset ? ARCH_ATTENTION : ARCH_MAMBA;
	return 0;
}

/* One letter a block: M Mamba-2, * attention, - feed-forward, E experts; or words for the same. */
int arch_read_nemotron_h(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	static const char *const words[][2] = {
		{"mamba", "M"}, {"attention", "*"}, {"mlp", "-"}, {"moe", "E"}, {"mamba2", "M"}};
	const char *letters = hf_text(v, "hybrid_override_pattern");
	const json_t *list = hf_value(v, "layers_block_type");
	uint32_t n_expert = 0, ffn;

	if (mamba2_dims(v, c, err) ||
		hf_count_or(v, HF_KEYS("moe_latent_size"), 0, HF_MAX_WIDTH, &c->latent, err) ||
		hf_count_or(v, HF_KEYS("n_routed_experts"), 0, HF_MAX_EXPERTS, &n_expert, err) ||
		hf_count(v, HF_KEYS("intermediate_size"), HF_MAX_FFN, &ffn, err))
		return -1;
	c->no_ffn = true;
	if (!(letters && strlen(letters) == c->n_layer) && json_array_size(list) != c->n_layer)
		return hf_fault(v, err,
			"'hybrid_override_pattern' must have one letter for each of %u layers", c->n_layer);
	for (uint32_t i = 0; i < c->n_layer; i++) {
		struct arch_layer *l = &c->layers[i];
		const char *word = json_string_value(json_array_get(list, i));
		char kind = letters ? letters[i] : '?';

		for (size_t k = 0; word && !letters && k < ARRAY_LEN(words); k++) {
			if (!strcmp(word, words[k][0]))
				kind = words[k][1][0];
		}
		if (!strchr("M*-E", kind) || (kind == 'E' && !c->n_expert_used))
			return hf_fault(v, err, "layer %u is of the unknown kind '%s'", i,
				word ? word : (char[]){kind, 0});
		l->mixer = kind == 'M' ? ARCH_MAMBA2 : kind == '*' ? ARCH_ATTENTION : ARCH_NO_MIXER;
		l->n_expert = kind == 'E' ? n_expert : 0;
		l->ffn = kind == '-' ? ffn : 0;
	}
	return 0;
}

/* Without experts the shared feed-forward is the only one (modeling_granitemoehybrid.py). */
int arch_read_granite_hybrid(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	uint32_t shared;
	bool state = false;

	for (uint32_t i = 0; i < c->n_layer; i++)
		state = state || c->layers[i].mixer == ARCH_MAMBA2;
	if (hf_count_or(v, HF_KEYS("shared_intermediate_size"), 0, HF_MAX_FFN, &shared, err) ||
		(state && mamba2_dims(v, c, err)))
		return -1;
	for (uint32_t i = 0; i < c->n_layer && shared; i++) {
		if (!c->layers[i].n_expert)
			c->layers[i].ffn = shared;
	}
	return 0;
}

/* The feed-forward is two thirds of what is written, rounded up (modeling_lfm2.py, Lfm2MLP). */
int arch_read_lfm2(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	const json_t *full = hf_value(v, "full_attn_idxs"),
		     *multiplier = hf_value(v, "block_ffn_dim_multiplier");
	bool adjust;
	uint32_t multiple;
	double factor = json_is_number(multiplier) ? json_number_value(multiplier) : 1;

	if (hf_count_or(v, HF_KEYS("conv_L_cache"), 3, 1 << 10, &c->ssm_conv, err) ||
		hf_flag_or(v, "conv_bias", false, &c->ssm_bias, err) ||
		hf_flag_or(v, "block_auto_adjust_ff_dim", c->arch->moe == ARCH_MOE_NO, &adjust, err) ||
		hf_count_or(v, HF_KEYS("block_multiple_of"), 256, HF_MAX_WIDTH, &multiple, err))
		return -1;
	if (!c->ssm_conv || !multiple || !(factor > 0 && factor <= 64))
		return hf_fault(v, err, "has a convolution or a feed-forward of nothing");
	for (uint32_t i = 0; i < c->n_layer; i++) {
		struct arch_layer *l = &c->layers[i];
		double width = factor * (2.0 * l->ffn / 3);

		if (!hf_value(v, "layer_types"))
			l->mixer = is_source(v, "full_attn_idxs", i) || !full ? ARCH_ATTENTION : ARCH_CONV;
		if (adjust && l->ffn && width < HF_MAX_FFN)
			l->ffn = ((uint32_t)width + multiple - 1) / multiple * multiple;
	}
	return 0;
}

/* ---- encoder and decoder ---- */

/* T5 1.1 (gated) has an output of its own, the first T5 that of the embedding. Switch has experts in every
   sparse_step-th layer from the second on; NLLB in the last of every sparse_step. */
int arch_read_t5(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	const char *kind = hf_text(v, "feed_forward_proj");
	bool nllb = !strcmp(c->arch->name, "nllb-moe");
	uint32_t n_enc, n_dec, step_enc, step_dec, ffn, n_expert = c->layers[0].n_expert;
	struct arch_layer common = c->layers[0];

	for (uint32_t i = 0; i < c->n_layer; i++)
		n_expert = c->layers[i].n_expert ? c->layers[i].n_expert : n_expert;
	if (hf_count(v, HF_KEYS("num_layers", "encoder_layers"), BUILD_MAX_LAYERS / 2, &n_enc, err) ||
		hf_count_or(v, HF_KEYS("num_decoder_layers", "decoder_layers"), n_enc, BUILD_MAX_LAYERS / 2,
			&n_dec, err) ||
		hf_count_or(v, HF_KEYS("encoder_sparse_step"), 0, BUILD_MAX_LAYERS, &step_enc, err) ||
		hf_count_or(v, HF_KEYS("decoder_sparse_step"), 0, BUILD_MAX_LAYERS, &step_dec, err) ||
		hf_count_or(v, HF_KEYS("relative_attention_num_buckets"), nllb ? 0 : 32, 1 << 16,
			&c->rel_buckets, err) ||
		hf_count(v, HF_KEYS("d_ff", "encoder_ffn_dim", "decoder_ffn_dim"), HF_MAX_FFN, &ffn, err))
		return -1;
	if (!n_dec)
		return hf_fault(v, err, "has no decoder layers");
	c->gated_ffn = kind && !strncmp(kind, "gated", 5);
	if (!hf_value(v, "tie_word_embeddings"))
		c->tied = !c->gated_ffn;
	c->n_encoder = n_enc;
	c->n_layer = n_enc + n_dec;
	c->layers = arena_array(v->arena, struct arch_layer, c->n_layer);
	for (uint32_t i = 0; i < c->n_layer; i++) {
		struct arch_layer *l = &c->layers[i];
		bool encoder = i < n_enc;
		uint32_t step = encoder ? step_enc : step_dec, at = encoder ? i : i - n_enc;
		bool sparse = step && (nllb ? (at + 1) % step == 0 : step == 1 || at % step == 1);

		*l = common;
		l->encoder = encoder;
		l->cross = !encoder;
		l->n_expert = sparse ? n_expert : 0;
		l->ffn = sparse ? 0 : ffn;
	}
	if (!c->expert_ffn || c->arch->moe)
		c->expert_ffn = ffn;
	return 0;
}
