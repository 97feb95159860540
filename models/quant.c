/*
 * quant.c - the table of element types.
 *
 * Ids, block sizes and bytes: ggml-org/llama.cpp, ggml/include/ggml.h (enum ggml_type),
 * ggml/src/ggml-common.h (the static_asserts behind each block_* struct) and gguf-py/gguf/constants.py
 * (GGML_QUANT_SIZES). The two disagree on q8_1, which no file stores: 36 is ggml-common.h's.
 */
#include "models/quant.h"

#include <string.h>
#include <strings.h>

#include "base/suggest.h"
#include "models/sat.h"

/* kv: what ggml_type a llama.cpp cache may have (common/arg.cpp, kv_cache_types), and fp8 of vLLM. */
/* clang-format off */
static const struct quant_type types[] = {
	/* name       id  elements bytes  kv */
	{ "f32",       0,   1,   4, true },
	{ "f16",       1,   1,   2, true },
	{ "bf16",     30,   1,   2, true },
	{ "f64",      28,   1,   8, false },
	{ "f8_e4m3",  -1,   1,   1, true },
	{ "q4_0",      2,  32,  18, true },
	{ "q4_1",      3,  32,  20, true },
	{ "q5_0",      6,  32,  22, true },
	{ "q5_1",      7,  32,  24, true },
	{ "q8_0",      8,  32,  34, true },
	{ "q8_1",      9,  32,  36, false },
	{ "q2_k",     10, 256,  84, false },
	{ "q3_k",     11, 256, 110, false },
	{ "q4_k",     12, 256, 144, false },
	{ "q5_k",     13, 256, 176, false },
	{ "q6_k",     14, 256, 210, false },
	{ "q8_k",     15, 256, 292, false },
	{ "iq2_xxs",  16, 256,  66, false },
	{ "iq2_xs",   17, 256,  74, false },
	{ "iq3_xxs",  18, 256,  98, false },
	{ "iq1_s",    19, 256,  50, false },
	{ "iq4_nl",   20,  32,  18, true },
	{ "iq3_s",    21, 256, 110, false },
	{ "iq2_s",    22, 256,  82, false },
	{ "iq4_xs",   23, 256, 136, false },
	{ "i8",       24,   1,   1, false },
	{ "i16",      25,   1,   2, false },
	{ "i32",      26,   1,   4, false },
	{ "i64",      27,   1,   8, false },
	{ "iq1_m",    29, 256,  56, false },
	{ "tq1_0",    34, 256,  54, false },
	{ "tq2_0",    35, 256,  66, false },
	{ "mxfp4",    39,  32,  17, false },
	{ "nvfp4",    40,  64,  36, false },
	{ "q1_0",     41, 128,  18, false },
	{ "q2_0",     42,  64,  18, false },
};
/* clang-format on */

/* What checkpoints and engines call the plain types. */
static const struct {
	const char *alias, *name;
} aliases[] = {
	{"float32", "f32"},
	{"fp32", "f32"},
	{"float16", "f16"},
	{"fp16", "f16"},
	{"half", "f16"},
	{"bfloat16", "bf16"},
	{"fp8", "f8_e4m3"},
	{"fp8_e4m3", "f8_e4m3"},
	{"float8_e4m3fn", "f8_e4m3"},
	{"float8_e4m3", "f8_e4m3"},
};

const struct quant_type *quant_at(size_t i)
{
	return i < ARRAY_LEN(types) ? &types[i] : NULL;
}

const struct quant_type *quant_find(const char *name)
{
	if (!name)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(aliases); i++) {
		if (!strcasecmp(name, aliases[i].alias)) {
			name = aliases[i].name;
			break;
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		if (!strcasecmp(name, types[i].name))
			return &types[i];
	}
	return NULL;
}

int quant_get(const char *name, const struct quant_type **out, struct err *err)
{
	struct suggest near;
	char text[64];

	*out = quant_find(name);
	if (*out)
		return 0;
	suggest_init(&near, name ? name : "");
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		suggest_offer(&near, types[i].name);
	return err_set(err, ERR_INPUT, "unknown type '%s'%s", name ? name : "",
		suggest_text(&near, text, sizeof(text)));
}

uint64_t quant_bytes(const struct quant_type *t, uint64_t row_elements, uint64_t rows)
{
	if (row_elements % t->block_elements)
		BUG("a row of %llu elements is no whole number of %s blocks",
			(unsigned long long)row_elements, t->name);
	return sat_mul(sat_mul(row_elements / t->block_elements, t->block_bytes), rows);
}

double quant_bits_per_weight(const struct quant_type *t)
{
	return 8.0 * t->block_bytes / t->block_elements;
}
