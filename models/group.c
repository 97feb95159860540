/*
 * group.c - names of llama.cpp (src/llama-arch.cpp, LLM_TENSOR_NAMES) and their groups.
 */
#include "models/group.h"

#include <ctype.h>
#include <string.h>

static bool begins(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

static bool begins_with_any(const char *s, const char *const *with, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (begins(s, with[i]))
			return true;
	}
	return false;
}

/* "ffn_up.7.weight": an expert by itself, as files of early 2024 have them. */
static bool is_single_expert(const char *rest)
{
	static const char *const names[] = {"ffn_gate.", "ffn_up.", "ffn_down."};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (begins(rest, names[i]) && isdigit((unsigned char)rest[strlen(names[i])]))
			return true;
	}
	return false;
}

static bool is_expert(const char *rest)
{
	return (begins(rest, "ffn_") && !begins(rest, "ffn_norm") &&
		       (strstr(rest, "_exps") || strstr(rest, "_chexps"))) ||
	       is_single_expert(rest);
}

/*
 * The group of a tensor in a layer, as the architectures (arch_*.c) have them. Where experts are the only
 * feed-forward, the norms around it go with the router. Projections into and out of a narrower space that
 * experts work in are used by every token: shared. What is none of this mixes tokens in one way or another
 * (SSM, convolutions, indexers) or is small (norms, scales): attention.
 */
enum model_group group_of(const char *rest, const struct group_facts *f)
{
	static const char *const router[] = {"ffn_gate_inp", "ffn_gate_tid2eid", "exp_probs_b",
		"ffn_norm_exps", "pre_ffw_norm_2", "post_ffw_norm_2"};
	static const char *const shared[] = {"ffn_latent_", "ffn_routed_"};
	static const char *const norm[] = {
		"ffn_norm", "post_ffw_norm", "pre_ffw_norm", "ffn_post_norm", "hc_ffn_", "ffn_res_score"};
	static const char *const dense[] = {
		"ffn_", "ffn.", "channel_mix_", "inp_gate", "proj.", "post_norm", "layer_output_scale"};
	enum model_group around = f->moe && !f->dense ? MODEL_ROUTER : MODEL_FFN;
	bool mixes = f->k || f->qkv || f->recurrent || f->mla_width || f->kv_width;

	if (is_expert(rest))
		return MODEL_EXPERTS;
	if (begins(rest, "ffn_") && strstr(rest, "_shexp"))
		return MODEL_SHARED;
	if (begins_with_any(rest, router, ARRAY_LEN(router)))
		return MODEL_ROUTER;
	if (begins_with_any(rest, shared, ARRAY_LEN(shared)))
		return MODEL_SHARED;
	if (begins_with_any(rest, norm, ARRAY_LEN(norm)))
		return around;
	if (begins_with_any(rest, dense, ARRAY_LEN(dense)))
		return MODEL_FFN;
	/* the one norm before the feed-forward, where it is called after what comes before it (GLM-4.5,
	   Qwen3-Next) or where the block is a feed-forward alone (Nemotron-H) */
	if (begins(rest, "post_attention_norm") && f->attn_norm && !f->ffn_norm && !f->post_ffw_norm)
		return around;
	if (begins(rest, "attn_norm") && !mixes && (f->moe || f->dense))
		return around;
	return begins(rest, "engram_embd") ? MODEL_EMBED : MODEL_ATTN;
}

enum model_group group_outside(const char *name)
{
	static const char *const output[] = {"output", "cls"};

	return begins_with_any(name, output, ARRAY_LEN(output)) ? MODEL_OUTPUT : MODEL_EMBED;
}

void group_learn(struct group_facts *f, const char *rest, uint64_t rows, uint64_t matrices)
{
	static const char *const recurrent[] = {"ssm_", "shortconv.", "time_mix_"};
	static const char *const delta[] = {"ssm_ba.", "ssm_beta."};
	static const char *const dense[] = {"ffn_up.", "ffn_down."};

	f->n++;
	if (is_expert(rest)) {
		f->moe = true;
		if (matrices > f->n_expert && !is_single_expert(rest) && strstr(rest, "_exps"))
			f->n_expert = matrices;
	} else {
		f->dense = f->dense || begins_with_any(rest, dense, ARRAY_LEN(dense));
	}
	f->recurrent = f->recurrent || begins_with_any(rest, recurrent, ARRAY_LEN(recurrent));
	f->delta = f->delta || begins_with_any(rest, delta, ARRAY_LEN(delta));
	f->attn_norm = f->attn_norm || begins(rest, "attn_norm.");
	f->ffn_norm = f->ffn_norm || begins(rest, "ffn_norm.");
	f->post_ffw_norm = f->post_ffw_norm || begins(rest, "post_ffw_norm.");
	f->k = f->k || begins(rest, "attn_k.");
	f->qkv = f->qkv || begins(rest, "attn_qkv.");
	f->indexer = f->indexer || begins(rest, "indexer.");
	f->compressor = f->compressor || begins(rest, "attn_compressor_");
	if (!strcmp(rest, "attn_kv_a_mqa.weight"))
		f->mla_width = rows;
	if (!strcmp(rest, "attn_kv.weight"))
		f->kv_width = rows;
}

static int layer_of(struct group_place p)
{
	if (p.layer != MODEL_NO_LAYER)
		return p.layer;
	return p.group == MODEL_OUTPUT ? INT32_MAX : -1;
}

int group_compare(struct group_place a, struct group_place b)
{
	if (layer_of(a) != layer_of(b))
		return layer_of(a) < layer_of(b) ? -1 : 1;
	if (a.group != b.group)
		return a.group < b.group ? -1 : 1;
	return a.order < b.order ? -1 : 1;
}

const struct quant_type *group_main_type(const struct model *m)
{
	struct {
		const struct quant_type *type;
		uint64_t bytes;
	} sums[256]; /* more than there are types */
	size_t n = 0, best = 0;

	for (int i = 0; i < m->n_tensors; i++) {
		const struct model_tensor *t = &m->tensors[i];
		size_t k = 0;

		while (k < n && sums[k].type != t->type)
			k++;
		if (k == ARRAY_LEN(sums))
			continue;
		if (k == n) {
			sums[n].type = t->type;
			sums[n++].bytes = 0;
		}
		sums[k].bytes += t->bytes;
	}
	for (size_t k = 1; k < n; k++)
		best = sums[k].bytes > sums[best].bytes ? k : best;
	return n ? sums[best].type : quant_find("f32");
}
