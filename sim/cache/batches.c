#include "sim/cache/batches.h"

/* More than any model has: a head or an access that says so is damaged. */
#define ITEMS_MAX (1u << 28)

int watch_record(const struct watch *w, uint64_t n_records, struct err *err)
{
	return w->go_on && !w->go_on(w->ctx, n_records) ? err_set(err, ERR_INTERRUPTED, "interrupted") : 0;
}

/* What the accesses themselves say of layers and experts. */
static int scan(struct otr_reader *r, uint32_t *n_layers, uint64_t *n_experts, const struct watch *w, struct err *err)
{
	struct trace_step step;
	uint64_t n_steps = 0;
	int got;

	if (otr_seek(r, 0, err))
		return -1;
	while ((got = otr_next_step(r, &step, err)) > 0) {
		if (watch_record(w, ++n_steps, err))
			return -1;
		for (size_t i = 0; i < step.n_access; i++) {
			const struct trace_access *x = &step.access[i];
			if (x->kind != TRACE_EXPERT || x->layer < 0)
				continue;
			if ((uint32_t)x->layer >= *n_layers)
				*n_layers = (uint32_t)x->layer + 1;
			if (x->expert >= *n_experts)
				*n_experts = (uint64_t)x->expert + 1;
		}
	}
	return got;
}

int batch_items_init(struct batch_items *items, struct otr_reader *r, uint64_t expert_bytes, const struct watch *w,
	struct arena *a, struct err *err)
{
	const struct otr_info *info = otr_info(r);
	uint32_t n_layers = info->n_layer;
	uint64_t n_experts = 0;
	double all_bytes = 0;
	bool head_knows;

	for (uint32_t l = 0; l < info->n_layer; l++)
		if (info->layer[l].n_expert > n_experts)
			n_experts = info->layer[l].n_expert;
	head_knows = n_experts > 0;
	if (!head_knows && scan(r, &n_layers, &n_experts, w, err))
		return -1;
	if (n_layers * n_experts > ITEMS_MAX)
		return err_set(err, ERR_INPUT, "%u layers of %llu experts are more than can be replayed", n_layers,
			(unsigned long long)n_experts);

	*items = (struct batch_items){.n_layers = n_layers, .experts_per_layer = (uint32_t)n_experts, .bytes_known = true};
	items->n_items = n_layers * items->experts_per_layer;
	items->item_bytes = arena_array(a, uint64_t, items->n_items);
	items->experts_of = arena_array(a, uint32_t, n_layers);
	for (uint32_t l = 0; l < n_layers; l++) {
		const struct otr_layer *known = head_knows ? &info->layer[l] : NULL;
		uint64_t bytes = known && known->expert_bytes ? known->expert_bytes : expert_bytes;
		items->experts_of[l] = known ? known->n_expert : items->experts_per_layer;
		if (!items->experts_of[l])
			continue;
		items->bytes_known = items->bytes_known && bytes;
		all_bytes += (double)items->experts_of[l] * (double)bytes;
		items->cycle_bytes += known ? bytes * known->n_expert_used : 0;
		for (uint32_t e = 0; e < items->experts_of[l]; e++)
			items->item_bytes[l * items->experts_per_layer + e] = bytes;
	}
	if (all_bytes >= 0x1p62)
		return err_set(err, ERR_INPUT, "experts of %.3g bytes in all are more than can be replayed", all_bytes);
	return 0;
}

int batches_begin(struct batches *b, struct otr_reader *r, const struct batch_items *items, const struct watch *w,
	struct arena *a, struct err *err)
{
	*b = (struct batches){.reader = r, .items = items, .arena = a, .watch = *w};
	VEC_RESERVE(&b->use, a, items->experts_per_layer);
	return otr_seek(r, 0, err);
}

static int bad_access(const struct batches *b, const struct trace_access *x, struct err *err)
{
	const char *phase = b->step.phase == TRACE_PREFILL ? "prefill" : "decode";

	return err_set(err, ERR_INPUT, "%s step %llu uses expert %u of layer %d, which the head of the trace does not know",
		phase, (unsigned long long)b->step.index, x->expert, x->layer);
}

/* To the next access of an expert: 1, 0 at the end. */
static int next_expert(struct batches *b, struct err *err)
{
	for (;;) {
		for (; b->at < b->step.n_access; b->at++)
			if (b->step.access[b->at].kind == TRACE_EXPERT)
				return 1;
		int got = otr_next_step(b->reader, &b->step, err);
		if (got <= 0)
			return got;
		b->at = 0;
		b->n_steps++;
		if (b->step.phase == TRACE_PREFILL)
			b->n_prefill++;
		if (watch_record(&b->watch, b->n_steps, err))
			return -1;
	}
}

int batches_next(struct batches *b, struct batch *batch, struct err *err)
{
	const struct batch_items *items = b->items;
	int got = next_expert(b, err);

	if (got <= 0)
		return got;
	const struct trace_access *x = &b->step.access[b->at], *end = b->step.access + b->step.n_access;
	int16_t layer = x->layer;
	if (layer < 0 || (uint32_t)layer >= items->n_layers)
		return bad_access(b, x, err);
	uint32_t first = (uint32_t)layer * items->experts_per_layer, n_experts = items->experts_of[layer];
	b->use.n = 0;
	for (; x < end && x->kind == TRACE_EXPERT && x->layer == layer; x++) {
		if (x->expert >= n_experts)
			return bad_access(b, x, err);
		VEC_PUSH(&b->use, b->arena, first + x->expert);
	}
	b->at = (size_t)(x - b->step.access);
	*batch = (struct batch){b->step.phase, (uint32_t)layer, b->use.at, b->use.n};
	return 1;
}
