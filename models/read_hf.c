/*
 * read_hf.c - config.json -> struct arch_config (arch_hf.c) -> model.
 *
 * Every number is checked against a bound before it is used, so that no product of two of them overflows
 * and a hostile file costs no more memory than BUILD_MAX_LAYERS layers.
 */
#include "models/read_hf.h"

#include <string.h>

#include "base/json.h"
#include "models/arch_hf.h"

#define CONFIG_MAX_BYTES (4 << 20) /* the longest seen has 88 kB: lists of modules not to quantize */

static const json_t *value_of(const json_t *obj, const char *key)
{
	const json_t *value = json_object_get(obj, key);

	return json_is_null(value) ? NULL : value;
}

/* torch_dtype or, since transformers 4.56, dtype */
static const char *dtype_of(const json_t *obj)
{
	const json_t *value = value_of(obj, "torch_dtype");

	return json_string_value(value ? value : value_of(obj, "dtype"));
}

static bool is_true(const json_t *q, const char *key)
{
	return json_is_true(json_object_get(q, key));
}

/* gptq and awq: bits and group size are in the file. */
static const char *grouped(const struct hf_view *v, const json_t *q, const char *method)
{
	json_int_t bits = json_integer_value(json_object_get(q, "bits"));
	json_int_t group = json_integer_value(json_object_get(q, "group_size"));

	if (bits < 2 || bits > 8)
		bits = 4;
	return group > 0 && group <= 4096 ?
		arena_printf(v->arena, "%s-int%d-g%d", method, (int)bits, (int)group) :
		arena_printf(v->arena, "%s-int%d", method, (int)bits);
}

/* Our name of what a quantization_config describes; NULL when its size is not known here. */
static const char *stored_format(const struct hf_view *v, const json_t *q)
{
	const char *method = json_string_value(json_object_get(q, "quant_method"));
	const char *algorithm = json_string_value(json_object_get(q, "quant_algo"));
	const char *experts = json_string_value(value_of(v->text, "expert_dtype"));

	if (!method)
		return NULL;
	if (!strcmp(method, "fp8") && experts && !strcmp(experts, "fp4")) /* DeepSeek-V4 */
		return "fp4-fp8";
	if (!strcmp(method, "fp8"))
		return json_is_array(json_object_get(q, "weight_block_size")) ? "fp8-block128" : "f8_e4m3";
	if (!strcmp(method, "fbgemm_fp8"))
		return "f8_e4m3";
	if (!strcmp(method, "modelopt") && algorithm)
		return !strcmp(algorithm, "FP8") ? "f8_e4m3" : !strcmp(algorithm, "NVFP4") ? "nvfp4" : NULL;
	if (!strcmp(method, "mxfp4"))
		return "mxfp4+bf16";
	if (!strcmp(method, "gptq") || !strcmp(method, "awq"))
		return grouped(v, q, method);
	if (!strcmp(method, "bitsandbytes"))
		return is_true(q, "load_in_4bit") ? "nf4" : is_true(q, "load_in_8bit") ? "int8" : NULL;
	return NULL;
}

/* What the file itself stores: quantization_config before torch_dtype. */
static int stored_type(const struct hf_view *v, const char **out, struct err *err)
{
	const json_t *q = value_of(v->text, "quantization_config");
	const char *dtype;

	if (!q)
		q = value_of(v->root, "quantization_config");
	if (q) {
		const char *method = json_string_value(json_object_get(q, "quant_method"));
		*out = stored_format(v, q);
		if (*out)
			return 0;
		return hf_fault(v, err,
			"stores '%s' weights (quantization_config), whose size is not known here; "
			"name a quant",
			method ? method : "quantized");
	}
	dtype = dtype_of(v->text);
	if (!dtype)
		dtype = dtype_of(v->root);
	if (!dtype)
		dtype = "f16";
	if (!quant_find(dtype))
		return hf_fault(v, err, "'torch_dtype' is '%s', which is no known type; name a quant", dtype);
	*out = dtype;
	return 0;
}

int read_hf_object(const json_t *config, const char *name, const char *quant, struct arena *a,
	struct model **out, struct err *err)
{
	struct hf_view v = {.root = config, .text = hf_text_model(config), .file = name, .arena = a};
	struct err_pos pos = {.file = name};
	struct arch_config c = {0};
	struct build b;
	const char *note;

	if (hf_read_config(&v, &c, &note, err) || (!quant && stored_type(&v, &quant, err)))
		return -1;
	build_init(&b, a, c.n_layer);
	arch_build(&b, &c);
	b.m->name = b.m->file = arena_strdup(a, name);
	b.m->note = note;
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
