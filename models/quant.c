/*
 * quant.c - the table of element types.
 *
 * Ids, block sizes and bytes: ggml-org/llama.cpp, ggml/include/ggml.h (enum ggml_type),
 * ggml/src/ggml-common.h (the static_asserts behind each block_* struct) and gguf-py/gguf/constants.py
 * (GGML_QUANT_SIZES). The two disagree on q8_1, which no file stores: 36 is ggml-common.h's. Types of
 * ik_llama.cpp are in quant_ik.c.
 *
 * Checkpoint formats, with what lies beside the packed values:
 *
 *	gptq      a 16-bit scale and a b-bit zero a group; an int32 group index an input
 *	          (AutoGPTQ, nn_modules/qlinear/qlinear_cuda.py)
 *	awq       a 16-bit scale and a 4-bit zero a group (AutoAWQ, modules/linear/gemm.py)
 *	nf4, fp4  an f32 scale for 64 values; nf4: that in 8 bits, and an f32 for 256 of them, which is QLoRA's double
 *	          quantization (bitsandbytes, functional.py, quantize_4bit)
 *	int8      an f32 a row and one byte a matrix: LLM.int8. The index of a published Llama-3.1-8B in int8 agrees to the
 *	          byte
 *	f8_e4m3   a scale for the whole tensor, not counted; -channel: an f32 a row; -block128: an f32 for 128 x 128 values
 *	          (DeepSeek-V3, README_WEIGHTS.md)
 *	int4      symmetric, a 16-bit scale for 32 values (Kimi-K2; compressed-tensors, pack-quantized)
 *	hqq, mlx  a 16-bit scale and a 16-bit zero a group
 *	flexgen   4 bits, 16-bit minimum and scale for 64 values (FlexLLMGen, compression.py); ZeRO-Inference's (DeepSpeed,
 *	          inference/quantization) and FlexGen's KV cache are alike
 *	exl3      any width; 16-bit signs and scales an input and an output (exllamav3, modules/quant/exl3.py)
 */
#include "models/quant.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/suggest.h"
#include "models/sat.h"

#define GGML(name_, id, elements, bytes, ...)                                                                \
	{                                                                                                    \
		.name = (name_), .ggml_id = (id), .block_elements = (elements), .block_bytes = (bytes),      \
		.kv = __VA_ARGS__                                                                            \
	}
/* A checkpoint's, without groups; further fields follow. */
#define CHECKPOINT(name_, elements, bytes, ...)                                                              \
	{                                                                                                    \
		.name = (name_), .ggml_id = -1, .block_elements = (elements), .block_bytes = (bytes),        \
		.family = QUANT_CHECKPOINT, __VA_ARGS__                                                      \
	}

/* kv: what ggml_type a llama.cpp cache may have (common/arg.cpp, kv_cache_types), fp8 of vLLM, int4-g64 of
   FlexGen. */
/* clang-format off */
static const struct quant_type types[] = {
	/* name             id  elements bytes  kv */
	GGML("f32",        0,   1,   4, true, .unit = QUANT_FP32),
	GGML("f16",        1,   1,   2, true),
	GGML("bf16",      30,   1,   2, true, .unit = QUANT_BF16),
	GGML("f64",       28,   1,   8, false),
	CHECKPOINT("f8_e4m3", 1, 1, .kv = true, .unit = QUANT_FP8),
	GGML("q4_0",       2,  32,  18, true),
	GGML("q4_1",       3,  32,  20, true),
	GGML("q5_0",       6,  32,  22, true),
	GGML("q5_1",       7,  32,  24, true),
	GGML("q8_0",       8,  32,  34, true),
	GGML("q8_1",       9,  32,  36, false),
	GGML("q2_k",      10, 256,  84, false),
	GGML("q3_k",      11, 256, 110, false),
	GGML("q4_k",      12, 256, 144, false),
	GGML("q5_k",      13, 256, 176, false),
	GGML("q6_k",      14, 256, 210, false),
	GGML("q8_k",      15, 256, 292, false),
	GGML("iq2_xxs",   16, 256,  66, false, .table = true),
	GGML("iq2_xs",    17, 256,  74, false, .table = true),
	GGML("iq3_xxs",   18, 256,  98, false, .table = true),
	GGML("iq1_s",     19, 256,  50, false, .table = true),
	GGML("iq4_nl",    20,  32,  18, true),
	GGML("iq3_s",     21, 256, 110, false, .table = true),
	GGML("iq2_s",     22, 256,  82, false, .table = true),
	GGML("iq4_xs",    23, 256, 136, false),
	GGML("i8",        24,   1,   1, false),
	GGML("i16",       25,   1,   2, false),
	GGML("i32",       26,   1,   4, false),
	GGML("i64",       27,   1,   8, false),
	GGML("iq1_m",     29, 256,  56, false, .table = true, .many_rows = QUANT_EXPANDED),
	GGML("tq1_0",     34, 256,  54, false),
	GGML("tq2_0",     35, 256,  66, false),
	GGML("mxfp4",     39,  32,  17, false),
	GGML("nvfp4",     40,  64,  36, false),
	GGML("q1_0",      41, 128,  18, false),
	GGML("q2_0",      42,  64,  18, false),
	/* name                   elements bytes */
	CHECKPOINT("f8_e4m3-channel",    1,    1, .row_meta_bytes = 4, .unit = QUANT_FP8),
	CHECKPOINT("f8_e4m3-block128",   1,    1, .group_elements = 128, .group_rows = 128, .group_bits = 32,
		.unit = QUANT_FP8),
	CHECKPOINT("mxfp8",             32,   33),
	CHECKPOINT("int8",               1,    1, .row_meta_bytes = 4, .matrix_bytes = 1),
	CHECKPOINT("int4",              32,   18),
	CHECKPOINT("nf4",            16384, 8452),
	CHECKPOINT("nf4-single",        64,   36),
	CHECKPOINT("fp4",               64,   36),
	CHECKPOINT("flexgen-int4-g64",  64,   36),
	CHECKPOINT("zero-int4-g64",     64,   36),
	CHECKPOINT("int4-g64",          64,   36, .kv = true),
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
	{"fp8-channel", "f8_e4m3-channel"},
	{"fp8-block128", "f8_e4m3-block128"},
	{"q1_0_g128", "q1_0"},
};

/* Formats of any width and group: PREFIX-int4-g128. `bits` and `group` are what the bare name means. */
static const struct width {
	const char *prefix;
	unsigned bits, group;
	unsigned scale_bits; /* of a group, beside a zero as wide as a value */
	unsigned zero_bits;  /* 0: as wide as a value */
	unsigned column_bytes;
} widths[] = {
	{"gptq", 4, 128, 16, 0, 4},
	{"awq", 4, 128, 16, 0, 0},
	{"hqq", 4, 64, 16, 16, 0},
	{"mlx", 4, 64, 16, 16, 0},
};

const struct quant_type *quant_at(size_t i)
{
	return i < ARRAY_LEN(types) ? &types[i] : quant_ik_at(i - ARRAY_LEN(types));
}

const struct quant_type *quant_f32(void)
{
	return &types[0];
}

const struct quant_type *quant_f16(void)
{
	return &types[1];
}

const struct quant_type *quant_bf16(void)
{
	return &types[2];
}

const struct quant_type *quant_find(const char *name)
{
	const struct quant_type *t;

	if (!name)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(aliases); i++) {
		if (!strcasecmp(name, aliases[i].alias)) {
			name = aliases[i].name;
			break;
		}
	}
	for (size_t i = 0; (t = quant_at(i)) != NULL; i++) {
		if (!strcasecmp(name, t->name))
			return t;
	}
	return NULL;
}

/* Digits at *p, which moves past them; 0 when there are none or too many. */
static unsigned take_number(const char **p)
{
	unsigned v = 0;

	for (int n = 0; **p >= '0' && **p <= '9'; (*p)++) {
		if (++n > 5)
			return 0;
		v = v * 10 + (unsigned)(**p - '0');
	}
	return v;
}

static bool take(const char **p, const char *text)
{
	size_t n = strlen(text);

	if (strncasecmp(*p, text, n))
		return false;
	*p += n;
	return true;
}

/* gptq, gptq-int4, gptq-int4-g128 */
static const struct quant_type *make_grouped(const char *name, struct arena *a)
{
	for (size_t i = 0; i < ARRAY_LEN(widths); i++) {
		const struct width *w = &widths[i];
		unsigned bits = w->bits, group = w->group;
		const char *p = name;
		struct quant_type *t;

		if (!take(&p, w->prefix))
			continue;
		if (take(&p, "-int"))
			bits = take_number(&p);
		if (take(&p, "-g"))
			group = take_number(&p);
		if (*p || bits < 2 || bits > 8 || group < 16 || group % 8)
			continue;
		t = arena_new(a, struct quant_type);
		*t = (struct quant_type){
			.name = arena_printf(a, "%s-int%u-g%u", w->prefix, bits, group),
			.ggml_id = -1,
			.block_elements = 8,
			.block_bytes = bits,
			.family = QUANT_CHECKPOINT,
			.group_elements = group,
			.group_rows = 1,
			.group_bits = w->scale_bits + (w->zero_bits ? w->zero_bits : bits),
			.column_bytes = w->column_bytes,
		};
		return t;
	}
	return NULL;
}

/* exl3-4bpw, exl3-4.05bpw, and exl2 alike: hundredths of a bit; exl2's are those of its name, all told */
static const struct quant_type *make_exl(const char *name, struct arena *a)
{
	const char *p = name, *text = name;
	unsigned whole, cents = 0;
	struct quant_type *t;
	bool exl3 = take(&p, "exl3-");

	if (!exl3 && !take(&p, "exl2-"))
		return NULL;
	text = p;
	whole = take_number(&p);
	if (take(&p, ".")) {
		for (unsigned unit = 10; *p >= '0' && *p <= '9' && unit; unit /= 10)
			cents += (unsigned)(*p++ - '0') * unit;
	}
	if (strcasecmp(p, "bpw") || whole < 1 || whole > 8)
		return NULL;
	t = arena_new(a, struct quant_type);
	*t = (struct quant_type){
		.name = arena_printf(a, "%s-%.*sbpw", exl3 ? "exl3" : "exl2", (int)(p - text), text),
		.ggml_id = -1,
		.block_elements = 800,
		.block_bytes = whole * 100 + cents,
		.family = QUANT_CHECKPOINT,
		.row_meta_bytes = exl3 ? 2 : 0,
		.column_bytes = exl3 ? 2 : 0,
	};
	return t;
}

const struct quant_type *quant_make(const char *name, struct arena *a)
{
	const struct quant_type *t = quant_find(name);

	if (!t && name)
		t = make_grouped(name, a);
	if (!t && name)
		t = make_exl(name, a);
	return t;
}

int quant_get(const char *name, const struct quant_type **out, struct err *err)
{
	struct suggest near;
	char text[64];

	*out = quant_find(name);
	if (*out)
		return 0;
	suggest_init(&near, name ? name : "");
	for (size_t i = 0; quant_at(i); i++)
		suggest_offer(&near, quant_at(i)->name);
	return err_set(err, ERR_INPUT, "unknown type '%s'%s", name ? name : "",
		suggest_text(&near, text, sizeof(text)));
}

static uint64_t div_up(uint64_t a, uint64_t b)
{
	return a / b + (a % b != 0);
}

/* n * mul / div, rounded up, for mul and div that are small */
static uint64_t scale_up(uint64_t n, uint64_t mul, uint64_t div)
{
	return sat_add(sat_mul(n / div, mul), div_up(n % div * mul, div));
}

uint64_t quant_stack_bytes(
	const struct quant_type *t, uint64_t row_elements, uint64_t rows, uint64_t matrices)
{
	uint64_t all_rows = sat_mul(rows, matrices), bytes;

	if (t->family == QUANT_CHECKPOINT) {
		bytes = scale_up(sat_mul(row_elements, all_rows), t->block_bytes, t->block_elements);
	} else {
		if (row_elements % t->block_elements)
			BUG("a row of %llu elements is no whole number of %s blocks",
				(unsigned long long)row_elements, t->name);
		bytes = sat_mul(sat_mul(row_elements / t->block_elements, t->block_bytes), all_rows);
	}
	bytes = sat_add(bytes, sat_mul(all_rows, t->row_meta_bytes));
	if (t->group_elements) {
		uint64_t groups =
			sat_mul(div_up(row_elements, t->group_elements), div_up(rows, t->group_rows));

		bytes = sat_add(bytes, scale_up(sat_mul(groups, matrices), t->group_bits, 8));
	}
	bytes = sat_add(bytes, sat_mul(sat_mul(row_elements, matrices), t->column_bytes));
	return sat_add(bytes, sat_mul(matrices, t->matrix_bytes));
}

uint64_t quant_bytes(const struct quant_type *t, uint64_t row_elements, uint64_t rows)
{
	return quant_stack_bytes(t, row_elements, rows, 1);
}

double quant_bits_per_weight(const struct quant_type *t)
{
	double bits = 8.0 * t->block_bytes / t->block_elements;

	if (t->group_elements)
		bits += (double)t->group_bits / ((double)t->group_elements * t->group_rows);
	return bits;
}

const char *quant_family_name(enum quant_family f)
{
	static const char *const names[] = {
		[QUANT_GGML] = "llama.cpp",
		[QUANT_IK] = "ik_llama.cpp",
		[QUANT_CHECKPOINT] = "checkpoint",
	};

	return (size_t)f < ARRAY_LEN(names) ? names[f] : "?";
}
