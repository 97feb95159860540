/*
 * read_hf.c - config.json -> struct arch_config -> model.
 *
 * Every number is checked against a bound before it is used, so that no product of two of them overflows
 * and a hostile file costs no more memory than BUILD_MAX_LAYERS layers.
 */
#include "models/read_hf.h"

#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/suggest.h"
#include "models/arch.h"

#define CONFIG_MAX_BYTES (4 << 20) /* the longest seen has 88 kB: lists of modules not to quantize */
#define MAX_WIDTH (1 << 20)	   /* hidden */
#define MAX_FFN (1 << 24)
#define MAX_VOCAB (1 << 24)
#define MAX_HEADS (1 << 16)
#define MAX_HEAD_DIM (1 << 16)
#define MAX_EXPERTS (1 << 16)
#define MAX_CONTEXT (UINT64_C(1) << 40)

/* One file, and the object of it that describes the text model. */
struct view {
	const json_t *root, *text;
	const char *file;
	struct arena *arena;
};

#define KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})

static int fault(const struct view *v, struct err *err, const char *fmt, ...) PRINTF_LIKE(3, 4);

static int fault(const struct view *v, struct err *err, const char *fmt, ...)
{
	struct err_pos pos = {.file = v->file};
	char msg[512];
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

/* The first of several spellings that is there; the first of all when none is. */
static const char *spelling(const struct view *v, const char *const *keys)
{
	for (size_t i = 0; keys[i]; i++) {
		if (value_of(v->text, keys[i]))
			return keys[i];
	}
	return keys[0];
}

static int get_count(
	const struct view *v, const char *const *keys, uint32_t max, uint32_t *out, struct err *err)
{
	uint64_t n;

	if (json_get_count(v->text, v->file, spelling(v, keys), 1, max, &n, err))
		return -1;
	*out = (uint32_t)n;
	return 0;
}

static int get_count_or(const struct view *v, const char *const *keys, uint32_t def, uint32_t max,
	uint32_t *out, struct err *err)
{
	uint64_t n;

	if (json_get_count_or(v->text, v->file, spelling(v, keys), def, 0, max, &n, err))
		return -1;
	*out = (uint32_t)n;
	return 0;
}

static int get_flag_or(const struct view *v, const char *key, bool def, bool *out, struct err *err)
{
	*out = def;
	return key ? json_get_bool_or(v->text, v->file, key, def, out, err) : 0;
}

/* Multimodal files keep the text model in an object of its own. */
static const json_t *text_model(const json_t *root)
{
	const json_t *text = json_object_get(root, "text_config");

	if (json_is_object(text) && !value_of(root, "num_hidden_layers"))
		return text;
	return root;
}

static const struct arch *arch_named(const char *type, const char *class)
{
	const struct arch *arch;

	for (size_t i = 0; type && (arch = arch_at(i)); i++) {
		if (!strcasecmp(arch->hf_type, type))
			return arch;
	}
	/* forks keep the class and rename the type; Llama-1 files wrote LLaMAForCausalLM */
	for (size_t i = 0; class && (arch = arch_at(i)); i++) {
		if (!strcasecmp(arch->hf_class, class))
			return arch;
	}
	return NULL;
}

static const char *class_of(const json_t *obj)
{
	return json_string_value(json_array_get(json_object_get(obj, "architectures"), 0));
}

static int find_arch(const struct view *v, const struct arch **out, struct err *err)
{
	const char *type = json_string_value(value_of(v->text, "model_type")), *class = class_of(v->text);
	const char *word, *known = "";
	struct suggest near;
	char text[64];

	if (!type)
		type = json_string_value(value_of(v->root, "model_type"));
	if (!class)
		class = class_of(v->root);
	*out = arch_named(type, class);
	if (*out)
		return 0;
	word = type ? type : class;
	if (!word)
		return fault(v, err, "has no 'model_type' and no 'architectures'");
	suggest_init(&near, word);
	for (size_t i = 0; arch_at(i); i++) {
		const char *name = type ? arch_at(i)->hf_type : arch_at(i)->hf_class;

		suggest_offer(&near, name);
		known = arena_printf(v->arena, "%s%s%s", known, i ? ", " : "", name);
	}
	if (suggest_best(&near))
		return fault(v, err, "architecture '%s' is not known%s", word,
			suggest_text(&near, text, sizeof(text)));
	return fault(v, err, "architecture '%s' is not known; these are: %s", word, known);
}

/* What the file itself stores: quantization_config before torch_dtype. */
static int stored_type(const struct view *v, const char **out, struct err *err)
{
	const json_t *q = value_of(v->text, "quantization_config");
	const char *method, *algorithm, *dtype;

	if (!q)
		q = value_of(v->root, "quantization_config");
	if (q) {
		method = json_string_value(json_object_get(q, "quant_method"));
		algorithm = json_string_value(json_object_get(q, "quant_algo"));
		if (method &&
			(!strcmp(method, "fp8") || !strcmp(method, "fbgemm_fp8") ||
				(!strcmp(method, "modelopt") && algorithm && !strcmp(algorithm, "FP8")))) {
			*out = "f8_e4m3";
			return 0;
		}
		return fault(v, err,
			"stores '%s' weights (quantization_config), whose size is not known here; "
			"name a quant",
			method ? method : "quantized");
	}
	dtype = json_string_value(value_of(v->text, spelling(v, KEYS("torch_dtype", "dtype"))));
	if (!dtype) {
		dtype = json_string_value(value_of(v->root, "torch_dtype"));
		if (!dtype)
			dtype = json_string_value(value_of(v->root, "dtype"));
	}
	if (!dtype)
		dtype = "f16";
	if (!quant_find(dtype))
		return fault(v, err, "'torch_dtype' is '%s', which is no known type; name a quant", dtype);
	*out = dtype;
	return 0;
}

static int read_heads(const struct view *v, struct arch_config *c, struct arch_layer *layer, struct err *err)
{
	uint32_t head_dim;

	if (get_count(v, KEYS("num_attention_heads", "n_head", "n_heads"), MAX_HEADS, &layer->n_head, err) ||
		get_count_or(v, KEYS("num_key_value_heads", "num_kv_heads", "n_head_kv"), 0, MAX_HEADS,
			&layer->n_kv_head, err) ||
		get_count_or(v, KEYS("head_dim"), 0, MAX_HEAD_DIM, &head_dim, err))
		return -1;
	if (!layer->n_kv_head)
		layer->n_kv_head = layer->n_head;
	if (layer->n_head % layer->n_kv_head)
		return fault(v, err, "%u attention heads do not divide among %u key-value heads",
			layer->n_head, layer->n_kv_head);
	if (!head_dim) {
		if (c->hidden % layer->n_head)
			return fault(v, err,
				"has no 'head_dim', and %u attention heads do not divide a width of %u",
				layer->n_head, c->hidden);
		head_dim = c->hidden / layer->n_head;
	}
	if (head_dim > MAX_HEAD_DIM)
		return fault(v, err, "a head dimension of %u is more than %d", head_dim, MAX_HEAD_DIM);
	c->head_dim_k = c->head_dim_v = head_dim;
	return 0;
}

/* Which layers have a window: layer_types where the file has it, else the architecture's rule. */
static int read_windows(const struct view *v, struct arch_config *c, struct err *err)
{
	const json_t *types = value_of(v->text, "layer_types");
	uint32_t window, first = 0;
	bool used = true;

	if (c->arch->window == ARCH_WINDOW_NONE)
		return 0;
	if (c->arch->window == ARCH_WINDOW_UPPER &&
		(get_flag_or(v, "use_sliding_window", false, &used, err) ||
			get_count_or(v, KEYS("max_window_layers"), 0, BUILD_MAX_LAYERS, &first, err)))
		return -1;
	if (get_count_or(v, KEYS("sliding_window", "sliding_window_size"), 0, UINT32_MAX, &window, err))
		return -1;
	if (types && (!json_is_array(types) || json_array_size(types) != c->n_layer))
		return fault(v, err, "'layer_types' must be a list of %u types", c->n_layer);
	for (uint32_t i = 0; i < c->n_layer; i++) {
		const char *type = json_string_value(json_array_get(types, i));
		bool sliding = i >= first;

		if (types && type && !strcmp(type, "sliding_attention"))
			sliding = true;
		else if (types && type && !strcmp(type, "full_attention"))
			sliding = false;
		else if (types)
			return fault(v, err, "'layer_types' has '%s', which '%s' does not know",
				type ? type : "?", c->arch->name);
		c->layers[i].window = used && sliding ? window : 0;
	}
	return 0;
}

/* Layer i has experts when (i + 1) is a multiple of decoder_sparse_step and it is not in mlp_only_layers
   (transformers, modeling_qwen2_moe.py, Qwen2MoeDecoderLayer). */
static int read_experts(const struct view *v, struct arch_config *c, struct err *err)
{
	const json_t *dense = value_of(v->text, "mlp_only_layers"), *entry;
	uint32_t n_expert, step;
	size_t i;

	if (get_count(v, KEYS("num_experts", "num_local_experts", "n_routed_experts"), MAX_EXPERTS, &n_expert,
		    err) ||
		get_count(v, KEYS("num_experts_per_tok", "moe_top_k", "moe_topk"), n_expert,
			&c->n_expert_used, err) ||
		get_count(v, KEYS(c->arch->expert_ffn_key), MAX_FFN, &c->expert_ffn, err) ||
		get_count_or(v, KEYS("decoder_sparse_step"), 1, BUILD_MAX_LAYERS, &step, err))
		return -1;
	if (c->arch->shared_expert &&
		get_count_or(v, KEYS("shared_expert_intermediate_size"), 0, MAX_FFN, &c->shared_ffn, err))
		return -1;
	for (i = 0; i < c->n_layer; i++)
		c->layers[i].n_expert = step && (i + 1) % step == 0 ? n_expert : 0;
	if (dense && !json_is_array(dense))
		return fault(v, err, "'mlp_only_layers' must be a list of layers");
	json_array_foreach((json_t *)dense, i, entry)
	{
		json_int_t layer = json_is_integer(entry) ? json_integer_value(entry) : -1;

		if (layer < 0 || layer >= c->n_layer)
			return fault(v, err, "'mlp_only_layers' names a layer that is none of 0 to %u",
				c->n_layer - 1);
		c->layers[layer].n_expert = 0;
	}
	return 0;
}

/* OPT's own keys: the word embedding may be narrower than the model and is then projected, positions are
   learned with two rows ahead of the first (modeling_opt.py, OPTLearnedPositionalEmbedding), and a model
   that norms after each block has no norm at the end. */
static int read_positions(const struct view *v, struct arch_config *c, struct err *err)
{
	bool norm_before, removed;
	uint32_t rows;

	if (get_count(v, KEYS("max_position_embeddings"), MAX_VOCAB, &rows, err) ||
		get_count_or(v, KEYS("word_embed_proj_dim"), 0, MAX_WIDTH, &c->embed_width, err) ||
		get_flag_or(v, "do_layer_norm_before", true, &norm_before, err) ||
		get_flag_or(v, "_remove_final_layer_norm", false, &removed, err))
		return -1;
	if (!c->embed_width)
		c->embed_width = c->hidden;
	c->n_position = rows + 2;
	c->final_norm = norm_before && !removed;
	return 0;
}

static int read_config(const struct view *v, struct arch_config *c, struct err *err)
{
	struct arch_layer common = {0};
	uint32_t ffn;
	bool any_dense = false;

	if (find_arch(v, &c->arch, err) ||
		get_count(v, KEYS("num_hidden_layers", "n_layer", "num_layers", "n_layers"), BUILD_MAX_LAYERS,
			&c->n_layer, err) ||
		get_count(v, KEYS("hidden_size", "n_embd", "d_model"), MAX_WIDTH, &c->hidden, err) ||
		get_count(v, KEYS("vocab_size"), MAX_VOCAB, &c->vocab, err) ||
		read_heads(v, c, &common, err) ||
		get_count_or(
			v, KEYS("intermediate_size", "ffn_dim", "n_inner", "d_ff"), 0, MAX_FFN, &ffn, err) ||
		json_get_count_or(v->text, v->file, "max_position_embeddings", 0, 0, MAX_CONTEXT,
			&c->context_max, err) ||
		get_flag_or(v, c->arch->bias_key, c->arch->bias, &c->qkv_bias, err) ||
		get_flag_or(v, c->arch->ffn_bias_key, c->arch->ffn_bias, &c->ffn_bias, err) ||
		get_flag_or(v, "tie_word_embeddings", c->arch->tied, &c->tied, err))
		return -1;
	c->output_bias = c->qkv_bias && c->arch->output_bias;
	c->embed_width = c->hidden;
	c->final_norm = true;

	c->layers = arena_array(v->arena, struct arch_layer, c->n_layer);
	for (uint32_t i = 0; i < c->n_layer; i++)
		c->layers[i] = common;
	if (read_windows(v, c, err) || (c->arch->moe && read_experts(v, c, err)) ||
		(c->arch->learned_position && read_positions(v, c, err)))
		return -1;
	for (uint32_t i = 0; i < c->n_layer; i++) {
		if (c->layers[i].n_expert)
			continue;
		c->layers[i].ffn = ffn;
		any_dense = true;
	}
	if (any_dense && !ffn)
		return fault(v, err, "has no 'intermediate_size', or it is 0");
	return 0;
}

int read_hf_object(const json_t *config, const char *name, const char *quant, struct arena *a,
	struct model **out, struct err *err)
{
	struct view v = {.root = config, .text = text_model(config), .file = name, .arena = a};
	struct err_pos pos = {.file = name};
	struct arch_config c = {0};
	struct build b;

	if (read_config(&v, &c, err) || (!quant && stored_type(&v, &quant, err)))
		return -1;
	build_init(&b, a, c.n_layer);
	arch_build(&b, &c);
	b.m->name = b.m->file = arena_strdup(a, name);
	if (build_types(&b, quant, err))
		return -1;
	if (build_finish(&b, out, err))
		return err ? err_at(err, err->code, &pos, "%s", err->msg) : -1;
	return 0;
}

int read_hf_text(const char *text, size_t len, const char *name, const char *quant, struct arena *a,
	struct model **out, struct err *err)
{
	json_t *root;
	int rc;

	if (json_read_text(text, len, name, &root, err))
		return -1;
	rc = read_hf_object(root, name, quant, a, out, err);
	json_decref(root);
	return rc;
}

int read_hf(const char *path, const char *quant, struct arena *a, struct model **out, struct err *err)
{
	json_t *root;
	int rc;

	if (json_read_file(path, CONFIG_MAX_BYTES, &root, err))
		return -1;
	rc = read_hf_object(root, path, quant, a, out, err);
	json_decref(root);
	return rc;
}
