#include "sim/cache/expert_plan.h"

#include <math.h>
#include <string.h>

#include <gsl/gsl_rng.h>

#include "base/rng.h"

struct maker {
	const struct trace *trace;
	const struct expert_plan_config *config;
	struct arena *arena;
	struct expert_plan *plan;
	uint32_t stride;       /* items of a layer: item = layer * stride + expert */
	uint32_t n_items;
	uint32_t *ordinal;     /* by layer: its place among those with experts */
	uint32_t n_with_experts;
	uint64_t *item_bytes;
	struct cache_set *cache[EXPERT_LEVELS]; /* NULL: there is no such level */
	uint64_t step;         /* being walked */
	bool ahead;            /* its uses of the layer at hand are still to come */
	/* Uses of each item, as steps in ascending order: for policies that know them. */
	uint64_t *use_from;    /* by item, and the end of the last */
	uint64_t *use_step;
	double *popularity;
	uint32_t *use, *guess; /* of a layer */
	bool *guessed;         /* by expert, cleared after use */
};

static uint64_t expert_bytes(const struct model_layer *l)
{
	return l->n_expert ? l->group[MODEL_EXPERTS].bytes / l->n_expert : 0;
}

/* The next step that uses the item, as a number that grows with time: layers follow each other within a step. */
static uint64_t next_use(void *ctx, uint32_t item, uint64_t batch)
{
	const struct maker *k = ctx;
	uint64_t low = k->use_from[item], end = k->use_from[item + 1], high = end;

	(void)batch;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (k->use_step[middle] + k->ahead > k->step)
			high = middle;
		else
			low = middle + 1;
	}
	return low == end ? UINT64_MAX : k->use_step[low] * k->n_with_experts + k->ordinal[item / k->stride];
}

static void make_level(struct maker *k, int i)
{
	const struct expert_level *level = &k->config->level[i];
	struct cache_config config = {
		.ops = level->policy,
		.n_items = k->n_items,
		.item_bytes = k->item_bytes,
		.budget_bytes = level->budget_bytes,
		.strict = true,
		.popularity = k->popularity,
		.next_use = next_use,
		.next_use_ctx = k,
	};

	if (level->budget_bytes == 0)
		return;
	k->plan->level_name[i] = level->name;
	k->cache[i] = arena_new(k->arena, struct cache_set);
	cache_set_init(k->cache[i], &config, level->scope, k->plan->n_layer, level->slots, k->arena);
}

/* Walks the experts of a trace, a layer of a step at a time. */
typedef void layer_fn(struct maker *k, const struct trace_step *step, int layer, const struct trace_access *a,
	size_t n);

static int walk(struct maker *k, layer_fn *each, struct err *err)
{
	struct trace_cursor c;
	int rc = 0;

	trace_cursor_init(&c, k->trace, k->arena);
	for (uint64_t i = 0; rc == 0 && i < k->plan->n_steps; i++) {
		struct trace_step step;
		k->step = i;
		rc = trace_step_get(&c, i, &step, err);
		for (size_t j = 0; rc == 0 && j < step.n_access;) {
			size_t n = 1;
			if (step.access[j].kind == TRACE_EXPERT) {
				while (j + n < step.n_access && step.access[j + n].kind == TRACE_EXPERT &&
					step.access[j + n].layer == step.access[j].layer)
					n++;
				each(k, &step, step.access[j].layer, &step.access[j], n);
			}
			j += n;
		}
	}
	trace_cursor_release(&c);
	return rc;
}

static void count_uses(struct maker *k, const struct trace_step *step, int layer, const struct trace_access *a, size_t n)
{
	(void)step;
	for (size_t i = 0; i < n; i++) {
		uint32_t item = (uint32_t)layer * k->stride + a[i].expert;
		k->use_from[item + 1]++;
		k->popularity[item] += (double)a[i].tokens;
	}
}

/* use_from[item] is where its next one goes, until all are in. */
static void list_uses(struct maker *k, const struct trace_step *step, int layer, const struct trace_access *a, size_t n)
{
	for (size_t i = 0; i < n; i++)
		k->use_step[k->use_from[(uint32_t)layer * k->stride + a[i].expert]++] = step->index;
}

static int know_future(struct maker *k, struct err *err)
{
	k->use_from = arena_array(k->arena, uint64_t, (size_t)k->n_items + 1);
	k->popularity = arena_array(k->arena, double, k->n_items);
	if (walk(k, count_uses, err))
		return -1;
	for (uint32_t i = 0; i < k->n_items; i++)
		k->use_from[i + 1] += k->use_from[i];
	k->use_step = arena_array(k->arena, uint64_t, k->use_from[k->n_items] + 1);
	if (walk(k, list_uses, err))
		return -1;
	for (uint32_t i = k->n_items; i > 0; i--)
		k->use_from[i] = k->use_from[i - 1];
	k->use_from[0] = 0;
	return 0;
}

/* Brings the items in at a level behind the first, from further behind if they are not there. */
static void read_behind(struct maker *k, enum trace_phase phase, int layer, const uint32_t *item, size_t n,
	uint16_t *near, uint16_t *far)
{
	struct cache_outcome o = {.n_missed = 0};

	if (!k->cache[1]) {
		*near = (uint16_t)n;
		return;
	}
	if (k->ahead)
		cache_set_prefetch(k->cache[1], (uint32_t)layer, item, n, &o);
	else
		cache_set_batch(k->cache[1], (uint32_t)layer, item, n, &o);
	*far = (uint16_t)o.n_missed;
	*near = (uint16_t)(n - o.n_missed);
	k->plan->sum[1][phase].lookups += o.lookups;
	k->plan->sum[1][phase].hits += o.hits;
	k->plan->sum[1][phase].read_bytes += o.missed_bytes;
}

/* The guess of what the layer will use; returns how many. */
static size_t make_guess(struct maker *k, gsl_rng *rng, int layer, const struct trace_access *a, size_t n)
{
	uint32_t n_expert = k->trace->model->layers[layer].n_expert;
	size_t n_guess = 0;

	for (size_t i = 0; i < n; i++) {
		bool right = gsl_rng_uniform(rng) < k->config->lookahead;
		uint32_t expert = right ? a[i].expert : (uint32_t)gsl_rng_uniform_int(rng, n_expert);
		if (k->guessed[expert])
			continue;
		k->guessed[expert] = true;
		k->guess[n_guess++] = (uint32_t)layer * k->stride + expert;
	}
	for (size_t i = 0; i < n_guess; i++)
		k->guessed[k->guess[i] % k->stride] = false;
	return n_guess;
}

static void bring_ahead(struct maker *k, const struct trace_step *step, int layer, const struct trace_access *a, size_t n,
	struct expert_found *f)
{
	struct cache_outcome o;
	gsl_rng *rng = rng_new(k->config->seed, step->index << 16 | (uint64_t)layer, RNG_LOOKAHEAD);

	if (!rng)
		BUG("out of memory");
	k->ahead = true;
	cache_set_prefetch(k->cache[0], (uint32_t)layer, k->guess, make_guess(k, rng, layer, a, n), &o);
	gsl_rng_free(rng);
	for (size_t i = 0; i < o.n_missed; i++)
		k->guessed[o.missed[i] % k->stride] = true;
	for (size_t i = 0; i < n; i++)
		f->early += k->guessed[a[i].expert] && cache_set_holds(k->cache[0], (uint32_t)layer * k->stride + a[i].expert);
	for (size_t i = 0; i < o.n_missed; i++)
		k->guessed[o.missed[i] % k->stride] = false;
	k->plan->sum[0][step->phase].read_bytes += o.missed_bytes;
	read_behind(k, step->phase, layer, o.missed, o.n_missed, &f->ahead_near, &f->ahead_far);
	k->ahead = false;
}

static void look_up(struct maker *k, const struct trace_step *step, int layer, const struct trace_access *a, size_t n)
{
	struct expert_found *f = &k->plan->found[step->index * k->plan->n_layer + (uint64_t)layer];
	struct expert_sum *sum = &k->plan->sum[0][step->phase];
	uint64_t one = expert_bytes(&k->trace->model->layers[layer]);
	struct cache_outcome o;

	for (size_t i = 0; i < n; i++)
		k->use[i] = (uint32_t)layer * k->stride + a[i].expert;
	if (k->config->lookahead > 0)
		bring_ahead(k, step, layer, a, n, f);
	cache_set_batch(k->cache[0], (uint32_t)layer, k->use, n, &o);
	f->hit = (uint16_t)o.hits;
	sum->lookups += o.lookups;
	sum->hits += o.hits;
	sum->read_bytes += o.missed_bytes;
	sum->used_bytes += o.lookups * one;
	sum->held_bytes += (o.hits - f->early) * one;
	read_behind(k, step->phase, layer, o.missed, o.n_missed, &f->near, &f->far);
	/* Of what was brought ahead from the level behind, no more than was of use: as if all that was right came from there. */
	if (k->cache[1])
		k->plan->sum[1][step->phase].held_bytes += (f->near + (f->early < f->ahead_near ? f->early : f->ahead_near)) * one;
}

static void measure_model(struct maker *k)
{
	const struct model *m = k->trace->model;

	k->ordinal = arena_array(k->arena, uint32_t, m->n_layer);
	for (uint32_t i = 0; i < m->n_layer; i++) {
		k->ordinal[i] = k->n_with_experts;
		k->n_with_experts += m->layers[i].n_expert > 0;
		if (m->layers[i].n_expert > k->stride)
			k->stride = m->layers[i].n_expert;
	}
	if (k->stride == 0)
		BUG("a model without experts");
	k->n_items = m->n_layer * k->stride;
	k->item_bytes = arena_array(k->arena, uint64_t, k->n_items);
	for (uint32_t i = 0; i < m->n_layer; i++)
		for (uint32_t e = 0; e < m->layers[i].n_expert; e++)
			k->item_bytes[i * k->stride + e] = expert_bytes(&m->layers[i]);
	k->use = arena_array(k->arena, uint32_t, k->stride);
	k->guess = arena_array(k->arena, uint32_t, k->stride);
	k->guessed = arena_array(k->arena, bool, k->stride);
}

int expert_plan_make(const struct trace *t, const struct expert_plan_config *config, struct arena *a,
	struct expert_plan **out, struct err *err)
{
	struct expert_plan *p = arena_new(a, struct expert_plan);
	struct maker k = {.trace = t, .config = config, .arena = a, .plan = p};
	bool future = false;

	*p = (struct expert_plan){.n_steps = trace_n_steps(t), .n_layer = t->model->n_layer};
	p->found = arena_array(a, struct expert_found, p->n_steps * p->n_layer);
	measure_model(&k);
	for (int i = 0; i < EXPERT_LEVELS; i++)
		future |= config->level[i].budget_bytes &&
			(config->level[i].policy->needs_future || config->level[i].policy->needs_popularity);
	if (future && know_future(&k, err))
		return -1;
	for (int i = 0; i < EXPERT_LEVELS; i++)
		make_level(&k, i);
	if (!k.cache[0])
		BUG("a plan without a cache");
	p->n_levels = k.cache[1] ? 2 : 1;
	*out = p;
	return walk(&k, look_up, err);
}

const struct expert_found *expert_plan_at(const struct expert_plan *p, uint64_t step, int layer)
{
	return &p->found[step * p->n_layer + (uint64_t)layer];
}

double expert_plan_hit_rate(const struct expert_plan *p, int level, enum trace_phase phase)
{
	const struct expert_sum *s = &p->sum[level][phase];

	return s->lookups ? (double)s->hits / (double)s->lookups : NAN;
}

double expert_plan_held_share(const struct expert_plan *p, int level, enum trace_phase phase)
{
	uint64_t used_bytes = p->sum[0][phase].used_bytes;

	return used_bytes ? (double)p->sum[level][phase].held_bytes / (double)used_bytes : 0;
}
