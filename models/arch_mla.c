/*
 * arch_mla.c - attention over a latent vector, and what DeepSeek made of it.
 *
 * MLA (DeepSeek-V2, V3, Kimi-K2, GLM-5; arXiv 2405.04434): keys and values of all heads are unpacked from one
 * vector of kv_rank elements a token, to which a rotated key of dim_rope is added:
 *
 *	cache     kv_rank + dim_rope elements a token, one vector, no values of their own
 *	weights   q_a, q_b (or q alone), kv_a: hidden x (kv_rank + dim_rope), k_b, v_b, o
 *	decoding  "absorbed": queries are multiplied with k_b and compared with the latent vector itself, as
 *if all heads shared one key of kv_rank + dim_rope and one value of kv_rank. A row that looks at T entries
 *costs 2 * T * heads * (2 * kv_rank + dim_rope) FLOPs, besides the projections
 *
 * That is how a layer describes itself: one kv head, head_dim_k = kv_rank + dim_rope, head_dim_v = kv_rank.
 * What a runtime without MLA caches (heads * (dim_nope + dim_rope + dim_v)) is in mla_dim_k and mla_dim_v.
 *
 * Sparse attention (DeepSeek-V3.2, GLM-5): an indexer of index_heads queries of index_dim scores every entry
 *by an index key, which is cached as well (index_dim elements a token); index_top entries are attended to.
 *
 * CSA (DeepSeek-V4): one shared vector of head_dim a token is key and value. A window of them is kept, and
 *every `compress` tokens become one compressed entry that stays; layers of ratio 4 have an indexer over
 *those. Shapes: llama.cpp src/models/deepseek2.cpp, deepseek32.cpp, deepseek4.cpp, deepseek41.cpp,
 *glm5-next.cpp.
 */
#include "models/arch.h"

void arch_indexer(struct build *b, const struct arch_config *c, int layer, uint64_t query_in)
{
	struct model_layer *l = build_layer(b, layer);
	const struct arch_layer *shape = &c->layers[layer];
	uint64_t heads = (uint64_t)c->index_heads * c->index_dim;

	l->index_heads = c->index_heads;
	l->index_dim = c->index_dim;
	l->attended = c->index_top;
	if (!shape->draft)
		l->kv_extra_elements += c->index_dim;
	if (shape->mixer == ARCH_ATTENTION) {
		arch_linear(b, MODEL_ATTN, "indexer.q_proj", query_in, heads, false);
		arch_linear(b, MODEL_ATTN, "indexer.k_proj", c->hidden, c->index_dim, false);
		build_add(b, MODEL_ATTN, "indexer.q_norm.weight", c->index_dim, 1, 1);
		build_add(b, MODEL_ATTN, "indexer.k_norm.weight", c->index_dim, 1, 1);
		return;
	}
	arch_linear(b, MODEL_ATTN, "indexer.attn_q_b", query_in, heads, false);
	arch_linear(b, MODEL_ATTN, "indexer.attn_k", c->hidden, c->index_dim, false);
	build_add(b, MODEL_ATTN, "indexer.k_norm.weight", c->index_dim, 1, 1);
	build_add(b, MODEL_ATTN, "indexer.k_norm.bias", c->index_dim, 1, 1);
	arch_linear(b, MODEL_ATTN, "indexer.proj", c->hidden, c->index_heads, false);
	if (c->index_pool > 1) {
		arch_linear(b, MODEL_ATTN, "indexer.kpool_gate", c->hidden, c->index_dim, false);
		build_add(b, MODEL_ATTN, "indexer.kpool_ape.weight", c->index_dim, c->index_pool, 1);
	}
}

void arch_mla(struct build *b, const struct arch_config *c, int layer)
{
	const struct arch_layer *shape = &c->layers[layer];
	struct model_layer *l = build_layer(b, layer);
	uint64_t n_head = shape->n_head, key = (uint64_t)c->dim_nope + c->dim_rope;
	uint64_t latent = (uint64_t)c->kv_rank + c->dim_rope;

	l->n_head = shape->n_head;
	l->n_kv_head = 1;
	l->head_dim_k = (uint32_t)latent;
	l->head_dim_v = c->kv_rank;
	l->mla_dim_k = (uint32_t)key;
	l->mla_dim_v = c->dim_v;
	if (!shape->draft)
		l->kv_k_elements = latent;

	arch_norm(b, c, MODEL_ATTN, "attn_norm", c->hidden);
	if (c->q_rank) {
		arch_linear(b, MODEL_ATTN, "attn_q_a", c->hidden, c->q_rank, c->qkv_bias);
		build_add(b, MODEL_ATTN, "attn_q_a_norm.weight", c->q_rank, 1, 1);
		arch_linear(b, MODEL_ATTN, "attn_q_b", c->q_rank, n_head * key, false);
	} else {
		arch_linear(b, MODEL_ATTN, "attn_q", c->hidden, n_head * key, false);
	}
	arch_linear(b, MODEL_ATTN, "attn_kv_a_mqa", c->hidden, latent, c->qkv_bias);
	build_add(b, MODEL_ATTN, "attn_kv_a_norm.weight", c->kv_rank, 1, 1);
	build_add(b, MODEL_ATTN, "attn_k_b.weight", c->dim_nope, c->kv_rank, n_head);
	build_add(b, MODEL_ATTN, "attn_v_b.weight", c->kv_rank, c->dim_v, n_head);
	if (shape->indexer)
		arch_indexer(b, c, layer, c->q_rank ? c->q_rank : c->hidden);
	if (c->output_gate)
		arch_linear(b, MODEL_ATTN, "attn_gate", c->hidden, n_head * c->dim_v, false);
	arch_linear(b, MODEL_ATTN, "attn_output", n_head * c->dim_v, c->hidden, c->output_bias);
}

/* What turns `compress` tokens into one entry, and the indexer over entries. V4 (every layer has its own, and
   pools with positions) and V4.1 (layers share; index keys come from the entries). */
static void compressor(struct build *b, const struct arch_config *c, const struct arch_layer *shape, bool v41)
{
	uint64_t dim = shape->head_dim_k, overlap = !v41 && shape->compress == 4 ? 2 : 1;
	uint64_t index = c->index_dim;

	if (shape->compressor) {
		arch_linear(b, MODEL_ATTN, "attn_compressor_kv", c->hidden, overlap * dim, false);
		if (!v41 || shape->compress > 1)
			arch_linear(b, MODEL_ATTN, "attn_compressor_gate", c->hidden, overlap * dim, false);
		if (!v41)
			build_add(b, MODEL_ATTN, "attn_compressor_ape.weight", overlap * dim, shape->compress,
				1);
		build_add(b, MODEL_ATTN, "attn_compressor_norm.weight", dim, 1, 1);
		if (v41) {
			arch_linear(b, MODEL_ATTN, "indexer.attn_k", dim, index, false);
			build_add(b, MODEL_ATTN, "indexer.k_norm.weight", index, 1, 1);
		}
	}
	if (!shape->indexer)
		return;
	arch_linear(b, MODEL_ATTN, "indexer.proj", c->hidden, c->index_heads, false);
	arch_linear(b, MODEL_ATTN, "indexer.attn_q_b", c->q_rank, c->index_heads * index, false);
	if (v41)
		return;
	arch_linear(b, MODEL_ATTN, "indexer.compressor_kv", c->hidden, 2 * index, false);
	arch_linear(b, MODEL_ATTN, "indexer.compressor_gate", c->hidden, 2 * index, false);
	build_add(b, MODEL_ATTN, "indexer.compressor_ape.weight", 2 * index, shape->compress, 1);
	build_add(b, MODEL_ATTN, "indexer.compressor_norm.weight", index, 1, 1);
}

void arch_csa(struct build *b, const struct arch_config *c, int layer)
{
	const struct arch_layer *shape = &c->layers[layer];
	struct model_layer *l = build_layer(b, layer);
	uint64_t dim = shape->head_dim_k, n_head = shape->n_head;
	bool v41 = c->table_width != 0, keeps = shape->compress && shape->compressor;

	l->n_head = shape->n_head;
	l->n_kv_head = 1;
	l->head_dim_k = l->head_dim_v = shape->head_dim_k;
	l->window = shape->window;
	l->kv_k_elements = dim;
	if (keeps) {
		/* index keys lie beside the entries: in V4 with the layers that have an indexer */
		l->kv_extra_elements = dim + (shape->indexer || v41 ? c->index_dim : 0);
		l->kv_extra_every = shape->compress;
	}
	if (shape->compress) {
		l->compress = shape->compress;
		l->attended = shape->indexer || v41 ? c->index_top : 0;
	}
	if (shape->indexer) {
		l->index_heads = c->index_heads;
		l->index_dim = c->index_dim;
	}

	arch_streams(b, c, MODEL_ATTN, "attn");
	arch_norm(b, c, MODEL_ATTN, "attn_norm", c->hidden);
	build_add(b, MODEL_ATTN, "attn_sinks.weight", n_head, 1, 1);
	arch_linear(b, MODEL_ATTN, "attn_q_a", c->hidden, c->q_rank, false);
	build_add(b, MODEL_ATTN, "attn_q_a_norm.weight", c->q_rank, 1, 1);
	arch_linear(b, MODEL_ATTN, "attn_q_b", c->q_rank, n_head * dim, false);
	arch_linear(b, MODEL_ATTN, "attn_kv", c->hidden, dim, false);
	build_add(b, MODEL_ATTN, "attn_kv_norm.weight", dim, 1, 1);
	build_add(b, MODEL_ATTN, "attn_output_a.weight", n_head * dim / c->o_groups, c->o_rank, c->o_groups);
	arch_linear(b, MODEL_ATTN, "attn_output_b", (uint64_t)c->o_groups * c->o_rank, c->hidden, false);
	compressor(b, c, shape, v41);
	for (int i = 0; i < 2; i++) {
		uint64_t width = c->table_width;

		/* n-gram memory: rows are looked up, then made keys and values of every stream */
		if (!v41 || !c->table_rows[i] || c->table_layer[i] != layer)
			continue;
		build_add(b, MODEL_EMBED, "engram_embd.weight", width, c->table_rows[i], 1);
		arch_linear(b, MODEL_ATTN, "engram_wkv", c->table_columns * width,
			(uint64_t)c->hidden * (c->streams + 1), false);
		build_add(b, MODEL_ATTN, "engram_q.weight", c->hidden, c->streams, 1);
		build_add(b, MODEL_ATTN, "engram_k.weight", c->hidden, c->streams, 1);
	}
}
