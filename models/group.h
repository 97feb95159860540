/*
 * group.h - which group a tensor of a file belongs to, by its GGUF name.
 *
 * Readers first learn what a layer has, then ask for the group of each of its tensors:
 *
 *	group_learn(&facts[layer], "ffn_up_exps.weight", 1536, 8) …   then  group_of("ffn_norm.weight",
 *&facts[layer])
 */
#ifndef MODELS_GROUP_H
#define MODELS_GROUP_H

#include "models/model.h"

/* What the tensors of a layer tell about it. */
struct group_facts {
	size_t n; /* how many it has */
	bool moe, dense, recurrent, delta, attn_norm, ffn_norm, post_ffw_norm;
	bool k, qkv, indexer, compressor;
	uint64_t n_expert;  /* third dimension of its experts */
	uint64_t mla_width; /* rows of attn_kv_a_mqa: the vector that a token's heads share */
	uint64_t kv_width;  /* rows of attn_kv: the same without a rotated part */
};

/* rest: the name behind "blk.N."; its second and third dimension. */
void group_learn(struct group_facts *f, const char *rest, uint64_t rows, uint64_t matrices);
enum model_group group_of(const char *rest, const struct group_facts *f);
/* Of a tensor that is in no layer. */
enum model_group group_outside(const char *name);

/* Where a tensor comes in a model: embedding, layers, output; within a layer by group, then as in its file. */
struct group_place {
	int layer;
	enum model_group group;
	size_t order;
};
int group_compare(struct group_place a, struct group_place b);

/* The type that most bytes of a finished model have. */
const struct quant_type *group_main_type(const struct model *m);

#endif
