/*
 * arch_hf.c - which architecture a config.json is of, and the keys that all families share.
 */
#include "models/arch_hf.h"

#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/suggest.h"

int hf_fault(const struct hf_view *v, struct err *err, const char *fmt, ...)
{
	struct err_pos pos = {.file = v->file};
	char msg[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	return err_at(err, ERR_INPUT, &pos, "%s", msg);
}

static const json_t *value_of(const json_t *obj, const char *key)
{
	const json_t *value = json_object_get(obj, key);

	return json_is_null(value) ? NULL : value;
}

/* The object that has the key: DBRX and MPT keep some in objects of their own. */
static const json_t *holder(const struct hf_view *v, const char *key)
{
	static const char *const inner[] = {"attn_config", "ffn_config", "linear_attn_config"};

	if (value_of(v->text, key))
		return v->text;
	for (size_t i = 0; i < ARRAY_LEN(inner); i++) {
		const json_t *obj = json_object_get(v->text, inner[i]);

		/* linear attention has a head_dim of its own: only what is nowhere else is sought there */
		if (value_of(obj, key) && (i < 2 || (strcmp(key, "head_dim") && strcmp(key, "num_heads"))))
			return obj;
	}
	return NULL;
}

const json_t *hf_value(const struct hf_view *v, const char *key)
{
	const json_t *obj = holder(v, key);

	return obj ? value_of(obj, key) : NULL;
}

const char *hf_text(const struct hf_view *v, const char *key)
{
	return json_string_value(hf_value(v, key));
}

/* The first of several spellings that is there; the first of all when none is. */
static const char *spelling(const struct hf_view *v, const char *const *keys)
{
	for (size_t i = 0; keys[i]; i++) {
		if (hf_value(v, keys[i]))
			return keys[i];
	}
	return keys[0];
}

static int count(const struct hf_view *v, const char *const *keys, bool must, uint64_t def, uint64_t max,
	uint64_t *out, struct err *err)
{
	const char *key = spelling(v, keys);
	const json_t *obj = holder(v, key), *value;
	json_t *first = NULL;
	int rc;

	if (!obj)
		obj = v->text;
	value = json_object_get(obj, key);
	if (json_is_array(value) && json_array_size(value)) {
		/* json_pack takes a new reference of the entry */
		first = json_pack("{s:O}", key, json_array_get(value, 0));
		if (!first)
			return err_set(err, ERR_NOMEM, "out of memory");
		obj = first;
	}
	rc = must ? json_get_count(obj, v->file, key, 1, max, out, err)
		  : json_get_count_or(obj, v->file, key, def, 0, max, out, err);
	json_decref(first);
	return rc;
}

int hf_count(const struct hf_view *v, const char *const *keys, uint32_t max, uint32_t *out, struct err *err)
{
	uint64_t n;

	if (count(v, keys, true, 0, max, &n, err))
		return -1;
	*out = (uint32_t)n;
	return 0;
}

int hf_count_or(const struct hf_view *v, const char *const *keys, uint32_t def, uint32_t max, uint32_t *out,
	struct err *err)
{
	uint64_t n;

	if (count(v, keys, false, def, max, &n, err))
		return -1;
	*out = (uint32_t)n;
	return 0;
}

int hf_flag_or(const struct hf_view *v, const char *key, bool def, bool *out, struct err *err)
{
	const json_t *obj = key ? holder(v, key) : NULL;

	*out = def;
	return obj ? json_get_bool_or(obj, v->file, key, def, out, err) : 0;
}

int hf_layer_list(
	const struct hf_view *v, const char *key, uint32_t n_layer, const json_t **out, struct err *err)
{
	*out = hf_value(v, key);
	if (json_is_array(*out) && !json_array_size(*out))
		*out = NULL;
	if (*out && (!json_is_array(*out) || json_array_size(*out) < n_layer))
		return hf_fault(v, err, "'%s' must be a list of %u entries, one a layer", key, n_layer);
	return 0;
}

uint32_t hf_entry(const json_t *list, uint32_t i, uint32_t def)
{
	const json_t *entry = json_array_get(list, i);

	if (json_is_boolean(entry))
		return json_is_true(entry);
	if (!json_is_integer(entry) || json_integer_value(entry) < 0 || json_integer_value(entry) > INT32_MAX)
		return def;
	return (uint32_t)json_integer_value(entry);
}

const json_t *hf_text_model(const json_t *root)
{
	static const char *const keys[] = {"text_config", "language_config", "llm_config"};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const json_t *text = json_object_get(root, keys[i]);

		if (json_is_object(text) && !value_of(root, "num_hidden_layers"))
			return text;
	}
	return root;
}

/* ---- which architecture ---- */

static bool has_word(const char *words, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = words; *p; p += strcspn(p, " "), p += strspn(p, " ")) {
		if (strcspn(p, " ") == n && !strncasecmp(p, word, n))
			return true;
	}
	return false;
}

static const struct arch *arch_named(const char *type, const char *class)
{
	const struct arch *arch;

	for (size_t i = 0; type && (arch = arch_at(i)); i++) {
		if (has_word(arch->hf_type, type))
			return arch;
	}
	/* forks keep the class and rename the type; Llama-1 files wrote LLaMAForCausalLM */
	for (size_t i = 0; class && (arch = arch_at(i)); i++) {
		if (has_word(arch->hf_class, class))
			return arch;
	}
	return NULL;
}

static const char *class_of(const json_t *obj)
{
	return json_string_value(json_array_get(json_object_get(obj, "architectures"), 0));
}

/* A decoder of text, by its class; files without one are given the benefit of the doubt. */
static bool generates(const char *class)
{
	static const char *const ends[] = {"CausalLM", "ConditionalGeneration", "LMHeadModel"};

	for (size_t i = 0; class && i < ARRAY_LEN(ends); i++) {
		if (strcasestr(class, ends[i]))
			return true;
	}
	return !class;
}

/* Does it have the keys of a plain transformer, and none of something else? */
static bool familiar(const struct hf_view *v, const char *class)
{
	static const char *const needed[] = {
		"num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size", "intermediate_size"};
	static const char *const alien[] = {"state_size", "ssm_cfg", "ssm_state_size", "mamba_d_state",
		"mamba_expand", "attention_hidden_size", "linear_attn_config", "linear_num_value_heads",
		"conv_kernel", "conv_L_cache", "attn_type_list", "hybrid_override_pattern",
		"layers_block_type", "decoder_layers", "encoder_layers", "d_state", "lru_width",
		"compress_ratios", "type_vocab_size"};

	for (size_t i = 0; i < ARRAY_LEN(needed); i++) {
		if (!hf_value(v, needed[i]))
			return i == 4 && hf_value(v, "moe_intermediate_size") && generates(class);
	}
	for (size_t i = 0; i < ARRAY_LEN(alien); i++) {
		if (hf_value(v, alien[i]))
			return false;
	}
	return generates(class);
}

static const struct arch *nearest_family(const struct hf_view *v)
{
	bool moe = hf_value(v, "num_experts") || hf_value(v, "num_local_experts") ||
		   hf_value(v, "n_routed_experts") || hf_value(v, "moe_num_experts");

	if (hf_value(v, "kv_lora_rank") && hf_value(v, "qk_rope_head_dim"))
		return arch_find("deepseek2");
	/* layer types say which layers have a window */
	if (hf_value(v, "layer_types"))
		return arch_find(moe ? "mixtral" : "mistral");
	return arch_find(moe ? "deepseek" : "llama");
}

static int unknown(const struct hf_view *v, const char *type, const char *class, struct err *err)
{
	const char *word = type ? type : class, *known = "";
	struct suggest near;
	char text[64];

	suggest_init(&near, word);
	for (size_t i = 0; arch_at(i); i++) {
		const char *words = type ? arch_at(i)->hf_type : arch_at(i)->hf_class;

		known = arena_printf(v->arena, "%s%s%s", known, i ? ", " : "", arch_at(i)->name);
		for (const char *p = words; *p; p += strcspn(p, " "), p += strspn(p, " "))
			suggest_offer(&near, arena_strndup(v->arena, p, strcspn(p, " ")));
	}
	if (suggest_best(&near))
		return hf_fault(v, err, "architecture '%s' is not known%s", word,
			suggest_text(&near, text, sizeof(text)));
	return hf_fault(v, err, "architecture '%s' is not known; these are: %s", word, known);
}

static int find_arch(const struct hf_view *v, const struct arch **out, const char **note, struct err *err)
{
	const char *type = json_string_value(value_of(v->text, "model_type")), *class = class_of(v->text);

	if (!type)
		type = json_string_value(value_of(v->root, "model_type"));
	if (!class)
		class = class_of(v->root);
	if (!type && !class)
		return hf_fault(v, err, "has no 'model_type' and no 'architectures'");
	*out = arch_named(type, class);
	if (*out)
		return 0;
	if (!familiar(v, class))
		return unknown(v, type, class, err);
	*out = nearest_family(v);
	*note = arena_printf(
		v->arena, "architecture '%s' is unknown; read as %s", type ? type : class, (*out)->name);
	return 0;
}

/* ---- heads ---- */

static int read_kv_heads(
	const struct hf_view *v, const struct arch_layer *layer, uint32_t *out, struct err *err)
{
	bool one = false;

	if (hf_count_or(v,
		    HF_KEYS("num_key_value_heads", "num_kv_heads", "n_head_kv", "kv_n_heads",
			    "multi_query_group_num", "num_attention_groups"),
		    0, HF_MAX_HEADS, out, err) ||
		(json_is_boolean(hf_value(v, "multi_query")) &&
			hf_flag_or(v, "multi_query", false, &one, err)))
		return -1;
	if (!*out)
		*out = one ? 1 : layer->n_head;
	return 0;
}

static int read_heads(
	const struct hf_view *v, struct arch_config *c, struct arch_layer *layer, struct err *err)
{
	uint32_t head_dim;

	layer->mixer = c->arch->mixer;
	if (layer->mixer == ARCH_MAMBA || layer->mixer == ARCH_MAMBA2)
		return 0;
	if (hf_count(v,
		    HF_KEYS("num_attention_heads", "n_head", "n_heads", "num_heads",
			    "decoder_attention_heads"),
		    HF_MAX_HEADS, &layer->n_head, err) ||
		read_kv_heads(v, layer, &layer->n_kv_head, err) ||
		hf_count_or(v, HF_KEYS("head_dim", "attention_head_dim", "kv_channels", "d_kv"), 0,
			HF_MAX_HEAD_DIM, &head_dim, err))
		return -1;
	if (layer->mixer == ARCH_MLA)
		return 0; /* has dimensions of its own */
	if (layer->n_head % layer->n_kv_head)
		return hf_fault(v, err, "%u attention heads do not divide among %u key-value heads",
			layer->n_head, layer->n_kv_head);
	if (!head_dim) {
		if (c->hidden % layer->n_head)
			return hf_fault(v, err,
				"has no 'head_dim', and %u attention heads do not divide a width of %u",
				layer->n_head, c->hidden);
		head_dim = c->hidden / layer->n_head;
	}
	if (head_dim > HF_MAX_HEAD_DIM)
		return hf_fault(v, err, "a head dimension of %u is more than %d", head_dim, HF_MAX_HEAD_DIM);
	layer->head_dim_k = layer->head_dim_v = head_dim;
	return 0;
}

/* ---- layer types and windows ---- */

/* Without a list: is layer i a windowed one? */
static int pattern_windows(const struct hf_view *v, struct arch_config *c, uint32_t window, struct err *err)
{
	const json_t *list, *rope;
	const char *letters = hf_text(v, "sliding_window_pattern");
	uint32_t every = c->arch->window_every, first = 0, chunk;
	bool used = true;

	switch (c->arch->window) {
	case ARCH_WINDOW_NONE:
		return 0;
	case ARCH_WINDOW_ALL:
		every = UINT32_MAX;
		break;
	case ARCH_WINDOW_UPPER:
		every = UINT32_MAX;
		if (hf_flag_or(v, "use_sliding_window", false, &used, err) ||
			hf_count_or(v, HF_KEYS("max_window_layers"), 0, BUILD_MAX_LAYERS, &first, err))
			return -1;
		break;
	case ARCH_WINDOW_PATTERN:
		if (letters) /* Exaone 4: "LLLG" */
			every = (uint32_t)strnlen(letters, BUILD_MAX_LAYERS);
		else if (hf_count_or(v, HF_KEYS("sliding_window_pattern", "_sliding_window_pattern"), every,
				 BUILD_MAX_LAYERS, &every, err))
			return -1;
		break;
	case ARCH_WINDOW_CHUNK:
		if (hf_count_or(v, HF_KEYS("attention_chunk_size"), 0, INT32_MAX, &chunk, err) ||
			hf_count_or(v, HF_KEYS("no_rope_layer_interval"), 4, BUILD_MAX_LAYERS, &every, err) ||
			hf_layer_list(v, "no_rope_layers", c->n_layer, &rope, err))
			return -1;
		for (uint32_t i = 0; i < c->n_layer; i++) {
			bool local = rope ? hf_entry(rope, i, 0) : every && (i + 1) % every != 0;

			c->layers[i].window = local ? chunk : 0;
		}
		return 0;
	}
	if (hf_layer_list(v, "hybrid_layer_pattern", c->n_layer, &list, err))
		return -1;
	for (uint32_t i = 0; i < c->n_layer; i++) {
		bool sliding = list ? hf_entry(list, i, 0) == 1 : i >= first && every && (i + 1) % every != 0;

		c->layers[i].window = used && sliding ? window : 0;
	}
	return 0;
}

/* One word of layer_types: the mixer or the window of layer i. Families with other mixers than attention have
   turned their words into mixers before (see mixer_of). */
static int layer_type(const struct hf_view *v, struct arch_config *c, uint32_t i, const char *type,
	uint32_t window, struct err *err)
{
	struct arch_layer *l = &c->layers[i];
	static const struct {
		const char *arch, *type;
		enum arch_mixer mixer;
	} mixers[] = {
		{"qwen3next", "linear_attention", ARCH_DELTA},
		{"qwen35", "linear_attention", ARCH_DELTA},
		{"qwen35moe", "linear_attention", ARCH_DELTA},
		{"qwen4exp", "linear_attention", ARCH_DELTA},
		{"glm5-next", "linear_attention", ARCH_KDA},
		{"glm5-next", "deepseek_sparse_attention", ARCH_MLA},
		{"kimi-linear", "linear_attention", ARCH_KDA},
		{"kimi-linear", "full_attention", ARCH_MLA},
		{"minimax-m1", "linear_attention", ARCH_LIGHTNING},
		{"granitehybrid", "mamba", ARCH_MAMBA2},
		{"jamba", "mamba", ARCH_MAMBA},
		{"lfm2", "conv", ARCH_CONV},
		{"lfm2moe", "conv", ARCH_CONV},
	};

	for (size_t k = 0; type && k < ARRAY_LEN(mixers); k++) {
		if (!strcmp(type, mixers[k].type) && !strcmp(c->arch->name, mixers[k].arch)) {
			l->mixer = mixers[k].mixer;
			return 0;
		}
	}
	if (type && (!strcmp(type, "sliding_attention") || !strcmp(type, "chunked_attention")))
		l->window = window;
	else if (!type || (strcmp(type, "full_attention") && strcmp(type, "attention")))
		return hf_fault(v, err, "'layer_types' has '%s', which '%s' does not know", type ? type : "?",
			c->arch->name);
	return 0;
}

/* Which layers have a window: layer_types where the file has it, else the architecture's rule. */
static int read_windows(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	const json_t *types = hf_value(v, "layer_types");
	uint32_t window;
	bool used = true;

	if (hf_count_or(v, HF_KEYS("sliding_window", "sliding_window_size", "sliding_window_attention_size"),
		    0, INT32_MAX, &window, err))
		return -1;
	if (!types || c->arch->mixer == ARCH_CSA)
		return pattern_windows(v, c, window, err);
	if (!json_is_array(types) || json_array_size(types) < c->n_layer)
		return hf_fault(v, err, "'layer_types' must be a list of %u types", c->n_layer);
	/* a flag turns windows off, whatever the list says */
	if (c->arch->window == ARCH_WINDOW_UPPER && hf_flag_or(v, "use_sliding_window", false, &used, err))
		return -1;
	if (c->arch->window == ARCH_WINDOW_CHUNK &&
		hf_count_or(v, HF_KEYS("attention_chunk_size"), 0, INT32_MAX, &window, err))
		return -1;
	if (c->arch->window == ARCH_WINDOW_NONE)
		used = false;
	for (uint32_t i = 0; i < c->n_layer; i++) {
		if (layer_type(v, c, i, json_string_value(json_array_get(types, i)), used ? window : 0, err))
			return -1;
	}
	return 0;
}

/* ---- experts ---- */

/* "4,5,6" (Step-3) or [4, 5, 6]: is i among them? */
static bool in_enumeration(const json_t *list, uint32_t i)
{
	const char *s = json_string_value(list);
	size_t k;
	const json_t *entry;

	if (s) {
		for (char *end; *s; s = *end ? end + 1 : end) {
			unsigned long n = strtoul(s, &end, 10);

			if (end != s && n == i)
				return true;
			if (end == s && *end)
				end++;
		}
		return false;
	}
	json_array_foreach((json_t *)list, k, entry)
	{
		if (json_is_integer(entry) && json_integer_value(entry) == i)
			return true;
	}
	return false;
}

/* Which layers have experts. Rules of several families, each by keys that only it has; a file with none of
   them has experts everywhere. */
static int sparse_layers(const struct hf_view *v, struct arch_config *c, uint32_t n_expert, struct err *err)
{
	const json_t *listed = hf_value(v, "moe_layers_enum"), *types,
		     *freq_list = hf_value(v, "moe_layer_freq"), *dense = hf_value(v, "mlp_only_layers"),
		     *entry;
	uint32_t dense_first, step, freq = 1, interval, start, period, offset;
	json_int_t end = hf_value(v, "moe_layer_end_index")
				 ? json_integer_value(hf_value(v, "moe_layer_end_index"))
				 : -1;
	size_t k;

	if (!listed)
		listed = hf_value(v, "moe_layers");
	if (json_is_array(freq_list)) {
		if (hf_layer_list(v, "moe_layer_freq", c->n_layer, &freq_list, err))
			return -1;
	} else {
		freq_list = NULL;
		if (hf_count_or(v, HF_KEYS("moe_layer_freq", "moe_layer_frequency"), 1, BUILD_MAX_LAYERS,
			    &freq, err))
			return -1;
	}
	if (hf_count_or(v, HF_KEYS("first_k_dense_replace", "num_dense_layers"), 0, BUILD_MAX_LAYERS,
		    &dense_first, err) ||
		/* transformers, modeling_qwen2_moe.py; modeling_llama4.py */
		hf_count_or(v, HF_KEYS("decoder_sparse_step", "interleave_moe_layer_step"), 1,
			BUILD_MAX_LAYERS, &step, err) ||
		/* Ernie 4.5 */
		hf_count_or(v, HF_KEYS("moe_layer_interval"), 1, BUILD_MAX_LAYERS, &interval, err) ||
		hf_count_or(v, HF_KEYS("moe_layer_start_index"), 0, BUILD_MAX_LAYERS, &start, err) ||
		/* Jamba */
		hf_count_or(v, HF_KEYS("expert_layer_period"), 1, BUILD_MAX_LAYERS, &period, err) ||
		hf_count_or(v, HF_KEYS("expert_layer_offset"), 0, BUILD_MAX_LAYERS, &offset, err) ||
		hf_layer_list(v, "mlp_layer_types", c->n_layer, &types, err))
		return -1;
	for (uint32_t i = 0; i < c->n_layer; i++) {
		const char *type = json_string_value(json_array_get(types, i));
		bool sparse;

		if (types)
			sparse = type && !strcmp(type, "sparse");
		else if (json_array_size(listed) || json_string_value(listed))
			sparse = in_enumeration(listed, i);
		else
			sparse = (end < 0 || i <= end) && i >= dense_first && step && (i + 1) % step == 0 &&
				 (freq_list ? hf_entry(freq_list, i, 0) != 0 : freq && i % freq == 0) &&
				 i >= start && interval && (i + 1) % interval == 0 && period &&
				 i % period == offset % period;
		c->layers[i].n_expert = sparse ? n_expert : 0;
	}
	if (dense && !json_is_array(dense))
		return hf_fault(v, err, "'mlp_only_layers' must be a list of layers");
	json_array_foreach((json_t *)dense, k, entry)
	{
		json_int_t layer = json_is_integer(entry) ? json_integer_value(entry) : -1;

		if (layer < 0 || layer >= c->n_layer)
			return hf_fault(v, err, "'mlp_only_layers' names a layer that is none of 0 to %u",
				c->n_layer - 1);
		c->layers[layer].n_expert = 0;
	}
	return 0;
}

static int read_experts(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	static const char *const counts[] = {
		"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", NULL};
	uint32_t n_expert, n_shared;
	const char *method = hf_text(v, "topk_method");
	bool bias = false, wanted = false, nllb = !strcmp(c->arch->name, "nllb-moe");

	if (hf_count_or(v, counts, 0, HF_MAX_EXPERTS, &n_expert, err))
		return -1;
	if (c->arch->moe == ARCH_MOE_MAY && n_expert < 2)
		return 0;
	if (hf_count(v, counts, HF_MAX_EXPERTS, &n_expert, err) ||
		(!nllb && hf_count(v,
				  HF_KEYS("num_experts_per_tok", "num_experts_per_token", "experts_per_token",
					  "moe_top_k", "moe_topk", "moe_k", "top_k_experts", "num_selects",
					  "num_selected_experts"),
				  n_expert, &c->n_expert_used, err)) ||
		hf_count(v,
			HF_KEYS("intermediate_size", "moe_intermediate_size", "expert_intermediate_size",
				"ffn_hidden_size", "d_ff", "decoder_ffn_dim") +
				(hf_value(v, "moe_intermediate_size") ? 1 : 0),
			HF_MAX_FFN, &c->expert_ffn, err) ||
		hf_count_or(v,
			HF_KEYS("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size",
				"share_expert_dim", "shared_intermediate_size"),
			0, HF_MAX_FFN, &c->shared_ffn, err) ||
		hf_count_or(v,
			HF_KEYS("n_shared_experts", "num_shared_experts", "num_shared_expert",
				"moe_num_shared_experts"),
			0, HF_MAX_EXPERTS, &n_shared, err) ||
		hf_flag_or(v, "use_routing_bias", false, &bias, err) ||
		hf_flag_or(v, "use_expert_bias", false, &wanted, err))
		return -1;
	if (nllb)
		c->n_expert_used = n_expert < 2 ? n_expert : 2;
	if (!c->shared_ffn) {
		if ((uint64_t)n_shared * c->expert_ffn > HF_MAX_FFN)
			return hf_fault(v, err, "%u shared experts of width %u are more than %d", n_shared,
				c->expert_ffn, HF_MAX_FFN);
		c->shared_ffn = n_shared * c->expert_ffn;
	}
	c->router_bias = c->arch->router_bias || bias || wanted || (method && !strcmp(method, "noaux_tc"));
	return sparse_layers(v, c, n_expert, err);
}

/* ---- the rest ---- */

/* OPT's own keys: the word embedding may be narrower than the model and is then projected, positions are
   learned with two rows ahead of the first (modeling_opt.py, OPTLearnedPositionalEmbedding), and a model
   that norms after each block has no norm at the end. */
static int read_opt(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	bool norm_before, removed;
	uint32_t rows;

	if (hf_count(v, HF_KEYS("max_position_embeddings", "max_seq_len"), HF_MAX_VOCAB, &rows, err) ||
		hf_count_or(v, HF_KEYS("word_embed_proj_dim"), 0, HF_MAX_WIDTH, &c->embed_width, err) ||
		hf_flag_or(v, "do_layer_norm_before", true, &norm_before, err) ||
		hf_flag_or(v, "_remove_final_layer_norm", false, &removed, err))
		return -1;
	if (!c->embed_width)
		c->embed_width = c->hidden;
	c->n_position = rows + 2;
	c->final_norm = norm_before && !removed;
	return 0;
}

/* The number of layers: some files of Nemotron-H only list them. */
static int read_n_layer(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	static const char *const keys[] = {
		"num_hidden_layers", "n_layer", "num_layers", "n_layers", "decoder_layers", NULL};
	size_t listed = json_array_size(hf_value(v, "layers_block_type"));

	if (!hf_value(v, spelling(v, keys)) && listed && listed <= BUILD_MAX_LAYERS) {
		c->n_layer = (uint32_t)listed;
		return 0;
	}
	return hf_count(v, keys, BUILD_MAX_LAYERS, &c->n_layer, err);
}

/* In the text model or beside it. */
static int read_tied(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	c->tied = c->arch->tied;
	if (hf_value(v, "tie_word_embeddings"))
		return hf_flag_or(v, "tie_word_embeddings", c->tied, &c->tied, err);
	if (hf_value(v, "tie_embedding"))
		return hf_flag_or(v, "tie_embedding", c->tied, &c->tied, err);
	return json_get_bool_or(v->root, v->file, "tie_word_embeddings", c->tied, &c->tied, err);
}

static int read_common(
	const struct hf_view *v, struct arch_config *c, struct arch_layer *layer, struct err *err)
{
	const struct arch *arch = c->arch;

	if (read_n_layer(v, c, err) ||
		hf_count(v, HF_KEYS("hidden_size", "n_embd", "d_model", "n_embed", "hidden_dim"),
			HF_MAX_WIDTH, &c->hidden, err) ||
		hf_count(v, HF_KEYS("vocab_size", "padded_vocab_size"), HF_MAX_VOCAB, &c->vocab, err) ||
		read_heads(v, c, layer, err) ||
		count(v,
			HF_KEYS("max_position_embeddings", "n_positions", "seq_length", "max_seq_len",
				"max_sequence_length", "model_max_length"),
			false, 0, HF_MAX_CONTEXT, &c->context_max, err) ||
		hf_flag_or(v, arch->bias_key, arch->bias, &c->qkv_bias, err) ||
		hf_flag_or(v, arch->ffn_bias_key, arch->ffn_bias, &c->ffn_bias, err) ||
		hf_flag_or(v, arch->qk_norm_key, arch->qk_norm && !arch->qk_norm_key, &c->qk_norm, err) ||
		read_tied(v, c, err))
		return -1;
	c->output_bias = c->qkv_bias && arch->output_bias;
	c->gated_ffn = !arch->plain_ffn;
	c->lm_head_bias = arch->lm_head_bias;
	c->embed_width = c->hidden;
	c->final_norm = true;
	c->state_elem_bytes = sizeof(float);
	return 0;
}

/* Feed-forward of dense layers; a list has one width a layer. */
static int read_ffn(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	static const char *const keys[] = {"intermediate_size", "ffn_dim", "n_inner", "d_ff",
		"ffn_hidden_size", "block_ff_dim", "decoder_ffn_dim", NULL};
	const json_t *list = hf_value(v, spelling(v, keys));
	uint32_t ffn;

	if (hf_count_or(v, keys, 0, HF_MAX_FFN, &ffn, err))
		return -1;
	if (json_is_array(list) && hf_layer_list(v, spelling(v, keys), c->n_layer, &list, err))
		return -1;
	/* GPT-2's children have four times the width when they do not say */
	if (!ffn && c->arch->plain_ffn && !(c->arch->learned_position && hf_value(v, "word_embed_proj_dim")))
		ffn = 4 * c->hidden;
	for (uint32_t i = 0; i < c->n_layer; i++) {
		c->layers[i].ffn = c->layers[i].n_expert ? 0
				   : json_is_array(list) ? hf_entry(list, i, 0)
							 : ffn;
		if (c->layers[i].ffn > HF_MAX_FFN)
			return hf_fault(v, err, "a feed-forward of %u is wider than %d", c->layers[i].ffn,
				HF_MAX_FFN);
	}
	return 0;
}

/* MTP layers follow the others and look like the last of them. */
static int add_draft_layers(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	struct arch_layer *grown;
	uint32_t n;

	if (!c->arch->draft)
		return 0;
	if (hf_count_or(v, HF_KEYS("num_nextn_predict_layers", "mtp_num_hidden_layers"), 0, BUILD_MAX_LAYERS,
		    &n, err))
		return -1;
	if (c->n_layer + n > BUILD_MAX_LAYERS)
		return hf_fault(v, err, "%u layers and %u MTP layers are more than %d", c->n_layer, n,
			BUILD_MAX_LAYERS);
	grown = arena_array(v->arena, struct arch_layer, c->n_layer + n);
	memcpy(grown, c->layers, c->n_layer * sizeof(*grown));
	for (uint32_t i = 0; i < n; i++) {
		struct arch_layer *l = &grown[c->n_layer + i];

		*l = c->layers[c->n_layer - 1];
		l->draft = true;
		if (l->mixer > ARCH_CSA) { /* a head attends, also where the last layer has a state */
			for (uint32_t k = c->n_layer; k-- && l->mixer > ARCH_CSA;)
				*l = c->layers[k];
			l->draft = true;
		}
		if (c->index_heads)
			l->indexer = true;
	}
	c->layers = grown;
	c->n_layer += n;
	return 0;
}

static int check_layers(const struct hf_view *v, const struct arch_config *c, struct err *err)
{
	for (uint32_t i = 0; i < c->n_layer; i++) {
		const struct arch_layer *l = &c->layers[i];

		if (!l->ffn && !l->n_expert && !c->no_ffn)
			return hf_fault(v, err, "has no 'intermediate_size', or it is 0");
	}
	return 0;
}

int hf_read_config(const struct hf_view *v, struct arch_config *c, const char **note, struct err *err)
{
	struct arch_layer common = {0};

	*note = "";
	if (find_arch(v, &c->arch, note, err) || read_common(v, c, &common, err))
		return -1;
	common.sinks = c->arch->sinks;
	c->layers = arena_array(v->arena, struct arch_layer, c->n_layer);
	for (uint32_t i = 0; i < c->n_layer; i++)
		c->layers[i] = common;
	if (read_windows(v, c, err) || (c->arch->moe && read_experts(v, c, err)) || read_ffn(v, c, err) ||
		(c->arch->learned_position && read_opt(v, c, err)) ||
		(c->arch->read && c->arch->read(v, c, err)) || add_draft_layers(v, c, err))
		return -1;
	return check_layers(v, c, err);
}

int hf_read_state_type(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	const char *type = hf_text(v, "mamba_ssm_cache_dtype");

	if (!type)
		type = hf_text(v, "mamba_ssm_dtype");
	if (!type || !strcmp(type, "float32") || !strcmp(type, "auto"))
		c->state_elem_bytes = 4;
	else if (!strcmp(type, "bfloat16") || !strcmp(type, "float16"))
		c->state_elem_bytes = 2;
	else
		return hf_fault(v, err, "'mamba_ssm_cache_dtype' is '%s', which is no known type", type);
	return 0;
}

int hf_read_indexer(const struct hf_view *v, struct arch_config *c, struct err *err)
{
	if (hf_count_or(v, HF_KEYS("index_n_heads"), 0, HF_MAX_HEADS, &c->index_heads, err) ||
		hf_count_or(v, HF_KEYS("index_head_dim"), 0, HF_MAX_HEAD_DIM, &c->index_dim, err) ||
		hf_count_or(v, HF_KEYS("index_topk"), 0, INT32_MAX, &c->index_top, err) ||
		hf_count_or(v, HF_KEYS("index_kpool"), 0, HF_MAX_WIDTH, &c->index_pool, err))
		return -1;
	if (c->index_heads && !c->index_dim)
		return hf_fault(v, err, "has 'index_n_heads' but no 'index_head_dim'");
	return 0;
}
