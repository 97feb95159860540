#include "sim/cache/survey.h"

#include <math.h>

/* ---- steps ---- */

static int survey_steps(struct survey *s, struct otr_reader *r, const struct survey_options *o, struct arena *a,
	struct err *err)
{
	struct batches pass;
	struct batch batch;
	uint64_t *seen; /* by item: the last batch that used it, from 1 */
	int got;

	if (batch_items_init(&s->items, r, o->expert_bytes, &o->watch, a, err))
		return -1;
	s->popularity = arena_array(a, double, s->items.n_items);
	seen = arena_array(a, uint64_t, s->items.n_items);
	if (o->future)
		s->future = future_new(s->items.n_items, o->future_limit_bytes, a);
	if (batches_begin(&pass, r, &s->items, &o->watch, a, err))
		return -1;
	while ((got = batches_next(&pass, &batch, err)) > 0) {
		uint64_t index = s->n_batches++;
		s->n_uses += batch.n;
		for (size_t k = 0; k < batch.n; k++) {
			uint32_t i = batch.use[k];
			s->popularity[i]++;
			if (seen[i] == index + 1)
				continue;
			if (!seen[i])
				s->unique_bytes += s->items.item_bytes[i];
			seen[i] = index + 1;
			if (s->future)
				future_add(s->future, i, index);
		}
		reuse_batch(s->reuse, batch.use, batch.n);
	}
	s->n_prefill = pass.n_prefill;
	s->n_decode = pass.n_steps - pass.n_prefill;
	return got;
}

/* ---- requests ---- */

static void survey_request(struct survey *s, const struct otr_request *q, uint64_t n_before)
{
	spread_add(&s->input_tokens, q->input_tokens);
	spread_add(&s->output_tokens, q->output_tokens);
	if (n_before == 0)
		s->first_ns = s->last_ns = q->arrival_ns;
	else if (q->arrival_ns >= s->last_ns)
		spread_add(&s->gap_ns, q->arrival_ns - s->last_ns);
	s->first_ns = q->arrival_ns < s->first_ns ? q->arrival_ns : s->first_ns;
	s->last_ns = q->arrival_ns > s->last_ns ? q->arrival_ns : s->last_ns;
	s->n_in_session += q->session != 0;
}

static int survey_requests(struct survey *s, struct otr_reader *r, const struct survey_options *o, struct arena *a,
	struct err *err)
{
	struct blocks_config all = {.n_tiers = 1, .capacity_blocks = {UINT64_MAX}};
	struct blocks *seen = blocks_new(&all, a); /* numbers the blocks */
	struct blocks_count count;
	struct otr_request q;
	struct {
		VEC(uint32_t);
	} block = {0};
	int got;

	if (otr_seek(r, 0, err))
		return -1;
	for (uint64_t n = 0; (got = otr_next_request(r, &q, err)) > 0; n++) {
		if (watch_record(&o->watch, n + 1, err))
			return -1;
		survey_request(s, &q, n);
		blocks_request(seen, q.block, q.n_blocks, &count);
		VEC_RESERVE(&block, a, q.n_blocks);
		for (size_t i = 0; i < q.n_blocks; i++)
			block.at[i] = blocks_number(seen, q.block[i]);
		reuse_request(s->reuse, block.at, q.n_blocks);
	}
	return got;
}

int survey_take(struct survey *s, struct otr_reader *r, const struct survey_options *o, struct arena *a,
	struct err *err)
{
	*s = (struct survey){.kind = otr_info(r)->kind, .n_records = otr_n_records(r), .reuse = reuse_new(a)};
	if (s->kind == OTR_STEPS ? survey_steps(s, r, o, a, err) : survey_requests(s, r, o, a, err))
		return -1;
	s->n_lookups = reuse_lookups(s->reuse);
	s->n_unique = reuse_unique(s->reuse);
	return 0;
}

/* ---- popularity ---- */

static int descending(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return a > b ? -1 : a < b;
}

uint32_t survey_covers(const struct survey *s, double share, struct arena *a)
{
	double *uses = arena_array(a, double, s->items.n_items), sum = 0;
	uint32_t n = 0;

	memcpy(uses, s->popularity, s->items.n_items * sizeof(*uses));
	qsort(uses, s->items.n_items, sizeof(*uses), descending);
	while (n < s->items.n_items && sum < share * (double)s->n_uses)
		sum += uses[n++];
	return n;
}

double survey_entropy_bits(const struct survey *s, uint32_t layer)
{
	const double *uses = s->popularity + (size_t)layer * s->items.experts_per_layer;
	double sum = 0, bits = 0;

	for (uint32_t e = 0; e < s->items.experts_per_layer; e++)
		sum += uses[e];
	if (sum == 0)
		return -1;
	for (uint32_t e = 0; e < s->items.experts_per_layer; e++)
		if (uses[e] > 0)
			bits -= uses[e] / sum * log2(uses[e] / sum);
	return bits;
}
