/*
 * arch_seq2seq.c - encoder-decoders: T5, Switch Transformers, NLLB-MoE.
 *
 *	prompt ─> encoder layers ─> keys and values for every decoder layer ─> decoder layers ─> tokens
 *
 * Encoder layers run once, at prefill (prefill_only), and keep no cache. Every decoder layer has two caches:
 * of its own tokens, and of the encoder's (cross attention). Keys and values of both have the same width, so
 * a sequence of P prompt and G generated tokens holds P + G entries a decoder layer, as in a decoder-only
 * model: kv_k_elements and kv_v_elements count one entry, whichever of the two it is.
 * Names are those of GGUF's t5 (enc.blk.N, dec.blk.N); NLLB and Switch are not in GGUF.
 */
#include "models/arch.h"

static void projections(
	struct build *b, const struct arch_config *c, const struct arch_layer *s, const char *kind)
{
	uint64_t q = (uint64_t)s->n_head * s->head_dim_k;
	char name[32];

	snprintf(name, sizeof(name), "%s_norm", kind);
	arch_norm(b, c, MODEL_ATTN, name, c->hidden);
	for (const char *p = "qkv"; *p; p++) {
		snprintf(name, sizeof(name), "%s_%c", kind, *p);
		arch_linear(b, MODEL_ATTN, name, c->hidden, q, c->qkv_bias);
	}
	snprintf(name, sizeof(name), "%s_o", kind);
	arch_linear(b, MODEL_ATTN, name, q, c->hidden, c->qkv_bias);
}

void arch_seq2seq_layer(struct build *b, const struct arch_config *c, int layer)
{
	const struct arch_layer *s = &c->layers[layer];
	struct model_layer *l = build_layer(b, layer);
	bool first = layer == 0 || (uint32_t)layer == c->n_encoder;

	b->prefix = s->encoder ? "enc." : "dec.";
	b->first = s->encoder ? 0 : (int)c->n_encoder;
	l->n_head = s->n_head;
	l->n_kv_head = s->n_head;
	l->head_dim_k = s->head_dim_k;
	l->head_dim_v = s->head_dim_v;
	l->prefill_only = s->encoder;
	if (!s->encoder) {
		l->kv_k_elements = (uint64_t)s->n_head * s->head_dim_k;
		l->kv_v_elements = (uint64_t)s->n_head * s->head_dim_v;
	}
	projections(b, c, s, "attn");
	if (first && c->rel_buckets)
		build_add(b, MODEL_ATTN, "attn_rel_b.weight", s->n_head, c->rel_buckets, 1);
	if (s->cross)
		projections(b, c, s, "cross_attn");
	if (s->n_expert)
		arch_moe(b, c, layer);
	else
		arch_ffn(b, c, layer);
	b->prefix = "";
	b->first = 0;
}
