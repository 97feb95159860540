/*
 * quant_ik.c - the element types that only ik_llama.cpp knows.
 *
 * Ids, blocks and row bytes: ikawrakow/ik_llama.cpp at 8337e4cd (2026-08-15), ggml/include/ggml.h, the
 * type traits of ggml/src/ggml.c and the structs of ggml/src/ggml-common.h. Types it shares with llama.cpp
 * are in quant.c; its q1_0_g128 is llama.cpp's q1_0. The suffix _r4, _r8 or _r16 says how many rows lie
 * interleaved: the same bytes as the type it repacks, except for iq1_s_r4, iq1_m_r4 and q8_kv_r8.
 */
#include "models/quant.h"

#include <string.h>

#define IK(name_, id, elements, bytes, kv_, ...)                                                             \
	{                                                                                                    \
		.name = (name_), .ggml_id = (id), .block_elements = (elements), .block_bytes = (bytes),      \
		.kv = (kv_), .family = QUANT_IK, .row_meta_bytes = __VA_ARGS__                               \
	}

/* kv: what common/common.cpp, kv_cache_type_from_str, takes */
/* clang-format off */
static const struct {
	struct quant_type type;
	const char *plain; /* the type it repacks */
} types[] = {
	/* name            id  elements bytes  kv  row bytes  repacks */
	{ IK("q4_0_4_4",    31,  32,  18, false, 0, .interleaved = QUANT_CPU_ONLY), "q4_0" },
	{ IK("q4_0_4_8",    32,  32,  18, false, 0, .interleaved = QUANT_CPU_ONLY), "q4_0" },
	{ IK("q4_0_8_8",    33,  32,  18, false, 0, .interleaved = QUANT_CPU_ONLY), "q4_0" },
	{ IK("i2_s",        36,   1,   1, false, 0), NULL },
	{ IK("q8_0_x4",     97,  32,  34, false, 0), NULL },
	{ IK("q8_1_x4",     98,  32,  36, false, 0), NULL },
	{ IK("q8_2_x4",     99,  32,  36, false, 0), NULL },
	{ IK("q6_0",       133,  32,  26, true, 0), NULL },
	{ IK("iq1_bn",     134,  64,  13, false, 2), NULL },
	{ IK("iq2_bn",     135,  64,  16, false, 4), NULL },
	{ IK("q8_k64",     136,  64,  68, false, 0), NULL },
	{ IK("iq2_k",      137, 256,  76, false, 0, .many_rows = QUANT_ONCE_EXPANDED), NULL },
	{ IK("iq3_k",      138, 256, 110, false, 0, .many_rows = QUANT_ONCE_EXPANDED), NULL },
	{ IK("iq4_k",      139, 256, 144, false, 0, .many_rows = QUANT_ONCE_EXPANDED), NULL },
	{ IK("iq5_k",      140, 256, 176, false, 0, .many_rows = QUANT_ONCE_EXPANDED), NULL },
	{ IK("iq6_k",      141, 256, 212, false, 0, .many_rows = QUANT_ONCE_EXPANDED), NULL },
	{ IK("iq4_ks",     144, 256, 136, false, 4, .many_rows = QUANT_ONCE_EXPANDED), NULL },
	{ IK("iq2_ks",     145, 256,  70, false, 2, .many_rows = QUANT_ONCE_EXPANDED), NULL },
	{ IK("iq4_kss",    146, 256, 128, false, 4, .many_rows = QUANT_ONCE_EXPANDED), NULL },
	{ IK("q8_k16",     147,  64,  64, false, 20), NULL },
	{ IK("q8_k32",     148, 256, 296, false, 0), NULL },
	{ IK("q8_kr8",     149, 256, 296, false, 0), NULL },
	{ IK("q8_k128",    150, 128, 140, false, 0), NULL },
	{ IK("q8_kv",      151,  32,  32, true, 8), NULL },
	{ IK("iq5_ks",     152, 256, 168, false, 4, .many_rows = QUANT_ONCE_EXPANDED), NULL },
	{ IK("iq2_kt",     153, 256,  68, false, 4, .table = true), NULL },
	{ IK("iq3_kt",     154, 256, 100, false, 4, .table = true), NULL },
	{ IK("iq4_kt",     155, 256, 128, false, 4, .table = true), NULL },
	{ IK("iq3_ks",     156, 256, 102, false, 2, .many_rows = QUANT_ONCE_EXPANDED), NULL },
	{ IK("iq2_kl",     157, 256,  86, false, 2, .many_rows = QUANT_ONCE_EXPANDED), NULL },
	{ IK("iq1_kt",     158, 256,  56, false, 4, .table = true), NULL },
	{ IK("q4_0_r8",    202,  32,  18, false, 0, .interleaved = QUANT_CPU_ONLY), "q4_0" },
	{ IK("q5_0_r4",    206,  32,  22, false, 0, .interleaved = QUANT_CPU_ONLY), "q5_0" },
	{ IK("q8_0_r8",    208,  32,  34, false, 0, .interleaved = QUANT_CPU_ONLY), "q8_0" },
	{ IK("q2_k_r4",    210, 256,  84, false, 0, .interleaved = QUANT_CPU_ONLY), "q2_k" },
	{ IK("q3_k_r4",    211, 256, 110, false, 0, .interleaved = QUANT_CPU_ONLY), "q3_k" },
	{ IK("q4_k_r4",    212, 256, 144, false, 0, .interleaved = QUANT_CPU_ONLY), "q4_k" },
	{ IK("q5_k_r4",    213, 256, 176, false, 0, .interleaved = QUANT_CPU_ONLY), "q5_k" },
	{ IK("q6_k_r4",    214, 256, 210, false, 0, .interleaved = QUANT_CPU_ONLY), "q6_k" },
	{ IK("iq2_xxs_r4", 216, 256,  66, false, 0, .table = true, .interleaved = QUANT_CPU_ONLY), "iq2_xxs" },
	{ IK("iq2_xs_r4",  217, 256,  74, false, 0, .table = true, .interleaved = QUANT_CPU_ONLY), "iq2_xs" },
	{ IK("iq3_xxs_r4", 218, 256,  98, false, 0, .table = true, .interleaved = QUANT_CPU_ONLY), "iq3_xxs" },
	{ IK("iq1_s_r4",   219,  32,   6, false, 2, .table = true, .interleaved = QUANT_GPU_TOO), "iq1_s" },
	{ IK("iq4_nl_r4",  220,  32,  18, false, 0, .interleaved = QUANT_CPU_ONLY), "iq4_nl" },
	{ IK("iq3_s_r4",   221, 256, 110, false, 0, .table = true, .interleaved = QUANT_CPU_ONLY), "iq3_s" },
	{ IK("iq2_s_r4",   222, 256,  82, false, 0, .table = true, .interleaved = QUANT_CPU_ONLY), "iq2_s" },
	{ IK("iq4_xs_r8",  223, 256, 136, false, 0, .interleaved = QUANT_CPU_ONLY), "iq4_xs" },
	{ IK("iq1_m_r4",   229,  32,   7, false, 2, .table = true, .interleaved = QUANT_GPU_TOO), "iq1_m" },
	{ IK("bf16_r16",   230,   1,   2, false, 0, .interleaved = QUANT_CPU_ONLY), "bf16" },
	{ IK("q6_0_r4",    233,  32,  26, false, 0, .interleaved = QUANT_CPU_ONLY), "q6_0" },
	{ IK("iq2_bn_r4",  335,  64,  16, false, 4, .interleaved = QUANT_CPU_ONLY), "iq2_bn" },
	{ IK("iq2_k_r4",   337, 256,  76, false, 0, .interleaved = QUANT_GPU_TOO, .many_rows = QUANT_EXPANDED), "iq2_k" },
	{ IK("iq3_k_r4",   338, 256, 110, false, 0, .interleaved = QUANT_GPU_TOO, .many_rows = QUANT_EXPANDED), "iq3_k" },
	{ IK("iq4_k_r4",   339, 256, 144, false, 0, .interleaved = QUANT_GPU_TOO, .many_rows = QUANT_EXPANDED), "iq4_k" },
	{ IK("iq5_k_r4",   340, 256, 176, false, 0, .interleaved = QUANT_GPU_TOO, .many_rows = QUANT_EXPANDED), "iq5_k" },
	{ IK("iq4_ks_r4",  344, 256, 136, false, 4, .interleaved = QUANT_GPU_TOO), "iq4_ks" },
	{ IK("iq5_ks_r4",  352, 256, 168, false, 4, .interleaved = QUANT_GPU_TOO), "iq5_ks" },
	{ IK("mxfp4_r8",   353,  32,  17, false, 0, .interleaved = QUANT_CPU_ONLY), "mxfp4" },
	{ IK("q8_k_r16",   397, 256, 258, false, 0), NULL },
	{ IK("q8_kv_r8",   398,  32,  32, false, 4, .interleaved = QUANT_CPU_ONLY), "q8_kv" },
	{ IK("q8_k_r8",    399, 256, 258, false, 0), NULL },
};
/* clang-format on */

const struct quant_type *quant_ik_at(size_t i)
{
	return i < ARRAY_LEN(types) ? &types[i].type : NULL;
}

const struct quant_type *quant_ik_plain(const struct quant_type *t)
{
	if (t->family != QUANT_IK)
		return t;
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		if (&types[i].type == t && types[i].plain)
			return quant_find(types[i].plain);
	}
	return t;
}

const struct quant_type *quant_ik_interleaved(const struct quant_type *t)
{
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (types[i].plain && strcmp(types[i].plain, t->name) == 0 && strstr(types[i].type.name, "_r"))
			return &types[i].type;
	return t;
}
