#include "sim/exec/ranks.h"

#include <limits.h>
#include <math.h>

#include "models/kvcache.h"
#include "sim/exec/kernel.h"

#define HIDDEN_ELEMENT_BYTES 2

static void count_far(struct ranks *r, const struct place_part *part)
{
	for (int i = 0; i < r->n; i++)
		if (part->spot.mode == PLACE_ZERO_COPY && part->spot.device == r->device[i])
			r->far_bytes[i] += (double)part->bytes;
}

void ranks_init(struct ranks *r, const struct cost *cost, const struct placement *p)
{
	*r = (struct ranks){.cost = cost, .n = p->rows.n, .attention_nodes = 1, .cache_passes = 1};
	for (int i = 0; i < r->n; i++)
		r->device[i] = p->rows.spot[i].device;
	for (int row = 0; row <= (int)p->model->n_layer; row++)
		for (int group = 0; group < MODEL_GROUP_N; group++)
			for (int k = 0; k < p->group[row][group].n; k++)
				count_far(r, &p->group[row][group].part[k]);
}

static const struct hw_machine *machine(const struct ranks *r)
{
	return r->walk.x->placement->machine;
}

static int memory(const struct ranks *r, int i)
{
	return machine(r)->devices[r->device[i]].memory;
}

/* Of the first link from one memory to another. */
static enum hw_link_kind link_kind(const struct ranks *r, int from, int to)
{
	int link[HW_MAX_HOPS];
	bool forward[HW_MAX_HOPS];

	if (hw_route(machine(r), from, to, link, forward) < 1)
		BUG("no link between two memories");
	return machine(r)->links[link[0]].kind;
}

/* Each rank sends so much to the next, when all have come so far. */
static void exchange(struct ranks *r, double bytes)
{
	struct exec *x = r->walk.x;
	const struct cost *c = r->cost;
	bool nvlink = link_kind(r, memory(r, 0), memory(r, 1)) == HW_LINK_NVLINK;
	const struct hw_num *two = nvlink ? &c->reduce_nvlink_s : r->direct ? &c->reduce_pcie_s : &c->reduce_host_s;
	const struct hw_num *further = nvlink ? &c->reduce_nvlink_rank_s :
				    r->direct ? &c->reduce_pcie_rank_s : &c->reduce_host_rank_s;
	double fixed_s = hw_num_value(two) + (r->n - 2) * hw_num_value(further);
	op_ref met = 0, sent = 0;

	for (int i = 0; i < r->n; i++)
		met = exec_join(x, met, r->last[i]);
	met = exec_wait(x, fixed_s, met);
	for (int i = 0; i < r->n; i++)
		sent = exec_join(x, sent, exec_send(x, memory(r, i), memory(r, (i + 1) % r->n), bytes, r->direct, met));
	for (int i = 0; i < r->n; i++)
		r->last[i] = sent;
}

static void all_reduce(struct ranks *r)
{
	const struct lower *w = &r->walk;

	if (r->n > 1 && r->partial)
		exchange(r, 2.0 * (r->n - 1) / r->n * (double)w->step->n_tokens * w->x->placement->model->hidden *
				HIDDEN_ELEMENT_BYTES);
	r->partial = false;
}

static void gather_logits(struct ranks *r)
{
	const struct lower *w = &r->walk;

	if (r->n > 1 && w->step->n_sampled)
		exchange(r, (r->n - 1.0) / r->n * (double)w->step->n_sampled * w->x->placement->model->vocab *
				HIDDEN_ELEMENT_BYTES);
}

static void change_layer(struct ranks *r, int layer)
{
	uint32_t label = r->walk.x->label;

	if (layer == r->layer)
		return;
	if (r->layer >= 0 && r->ops && r->ops->layer_end)
		r->ops->layer_end(r->engine, r->layer);
	for (int i = 0; i < r->n; i++)
		r->arrived[i] = 0;
	r->layer = layer;
	if (layer >= 0 && r->ops && r->ops->layer_begin)
		r->ops->layer_begin(r->engine, layer);
	r->walk.x->label = label;
}

/* The host's part of so many operations that it launches; it runs ahead of the GPUs. */
static void submit(struct ranks *r, double operations)
{
	r->host = exec_wait(r->walk.x, operations * hw_num_value(&r->cost->host_op_s), r->host);
}

static struct kernel_place on_rank(const struct ranks *r, int i)
{
	return (struct kernel_place){
		.cost = r->cost, .machine = machine(r), .device = &machine(r)->devices[r->device[i]], .one_by_one = r->one_by_one};
}

/* Each tile of an expert's rows reads its weights once more, over the link if they lie behind it; the last tile is full by
   half, on average. The tiles of a dense matrix run side by side and share what they read. */
static double times_read(const struct ranks *r, enum model_group group, double rows)
{
	return group == MODEL_EXPERTS ? fmax(1, rows / hw_num_value(&r->cost->zero_copy_rows) + 0.5) : 1;
}

/* Loads of host memory are slower the more of it there is, since a GPU keeps few of its mappings. */
static double within_reach(const struct ranks *r, int i)
{
	const struct cost *c = r->cost;
	double near = fmin(1, hw_num_value(&c->zero_copy_reach_bytes) / r->far_bytes[i]);

	return 1 / (near + (1 - near) / hw_num_value(&c->zero_copy_beyond));
}

/* Of a link's rate, what loads reach in any case. */
static double far_share(const struct ranks *r, int i, int from)
{
	bool pcie = link_kind(r, from, memory(r, i)) == HW_LINK_PCIE;

	return hw_num_value(pcie ? &r->cost->zero_copy_pcie : &r->cost->zero_copy_c2c);
}

/* What bitsandbytes does in a part's linear layers before their products. */
static void prepare(struct ranks *r, int i, const struct place_part *part, const struct bnb_layer *bnb, double share,
	double times)
{
	struct exec *x = r->walk.x;

	if (bnb->waits)
		r->host = exec_wait(x, part->n_matrices * times * hw_num_value(&r->cost->gpu_sync_s),
			exec_join(x, r->host, r->last[i]));
	submit(r, bnb->operations * part->n_matrices * times);
	if (!bnb->expands)
		return;
	struct platform_work work = bnb_expand(r->bnb, (double)part->bytes * share, (double)part->params * share);
	r->last[i] = exec_kernel(x, r->device[i], &work, r->last[i], r->host);
}

static void multiply(struct ranks *r, int i, const struct place_part *part, enum model_group group, double share,
	double flops_per_param, double nodes, bool expanded)
{
	struct exec *x = r->walk.x;
	struct kernel_place where = on_rank(r, i);
	double params = (double)part->params, bytes = expanded ? HIDDEN_ELEMENT_BYTES * params : (double)part->bytes;
	struct platform_work work = kernel_multiply(&where, expanded ? quant_f16() : part->type, bytes * share,
		flops_per_param * params, nodes, COST_TOGETHER);
	op_ref ready = exec_join(x, r->host, r->arrived[i]);

	if (part->spot.mode != PLACE_ZERO_COPY) {
		r->last[i] = exec_kernel(x, r->device[i], &work, r->last[i], ready);
		return;
	}
	work.bytes *= times_read(r, group, flops_per_param / 2 / share);
	double reach = within_reach(r, i);
	r->last[i] = exec_kernel_far(x, r->device[i], part->spot.memory, reach * far_share(r, i, part->spot.memory),
		reach * hw_num_value(&r->cost->zero_copy_remote), &work, r->last[i], ready);
}

static int rank_of(const struct ranks *r, int device)
{
	for (int i = 0; i < r->n; i++)
		if (r->device[i] == device)
			return i;
	BUG("weights of a device that is no rank");
}

static void run_group(void *state, const struct place_group *g, enum model_group group, double share,
	double flops_per_param, double times)
{
	struct ranks *r = state;
	bool seen[PLACE_MAX_ROWS] = {false};
	double nodes = r->nodes[group] * (group == MODEL_EXPERTS && r->each_expert ? times : 1);

	change_layer(r, exec_tag_layer(r->walk.x->label));
	if (group != MODEL_SHARED && group != MODEL_EXPERTS)
		all_reduce(r);
	r->partial = group != MODEL_ROUTER;
	if (r->ops && r->ops->group && r->ops->group(r->engine, g, group, share, flops_per_param, times))
		return;
	submit(r, r->one_by_one ? nodes : 0);
	for (int k = 0; k < g->n; k++) {
		int i = rank_of(r, g->part[k].spot.device);
		struct bnb_layer bnb = {0};
		if (r->bnb) {
			bnb = bnb_layer(r->bnb, g->part[k].type, flops_per_param / 2 / share);
			prepare(r, i, &g->part[k], &bnb, share, times);
		}
		multiply(r, i, &g->part[k], group, share, flops_per_param, seen[i] ? 0 : nodes, bnb.expands);
		seen[i] = true;
	}
}

static void run_attention(void *state, const struct trace_access *read)
{
	struct ranks *r = state;
	struct exec *x = r->walk.x;
	const struct placement *p = x->placement;
	const struct trace_step *step = r->walk.step;
	const struct model_layer *l = &p->model->layers[read->layer];
	double entry = (double)kvcache_token_bytes(l, &p->kv_types);
	double held = (double)read->kv_tokens, pairs = read->kv_pairs;
	bool unpacked = l->mla_dim_k && step->phase == TRACE_PREFILL;

	if (l->attended) {
		held = fmin(held, (double)step->n_tokens * l->attended);
		pairs = fmin(pairs, (double)step->n_tokens * l->attended);
	}
	/* Many rows are attended to by heads, which MLA unpacks; one row by what it keeps. */
	double flops = unpacked ? 2 * pairs * l->n_head * (l->mla_dim_k + l->mla_dim_v) : model_attention_flops(l, 1, pairs);
	double bytes = entry * (r->cache_passes * held + (double)read->tokens) +
		(double)read->tokens * held / (double)step->n_sequences * l->n_head * r->scores;
	double share = r->n > 1 ? place_heads_share(l, r->n) : 1;
	int nodes = r->attention_nodes + (l->mla_dim_k ? r->mla_nodes : 0) + (l->index_heads ? r->index_nodes : 0);

	submit(r, r->one_by_one ? nodes : r->between);
	for (int i = 0; i < r->n; i++) {
		struct kernel_place where = on_rank(r, i);
		struct platform_work work = kernel_attention(&where, l, &p->kv_types, share * bytes, pairs / r->n,
			(double)step->n_tokens);
		work.flops = flops / r->n;
		work.latency_s *= nodes;
		r->last[i] = exec_kernel(x, r->device[i], &work, r->last[i], r->host);
	}
	r->partial = true;
}

op_ref ranks_step(struct ranks *r, struct exec *x, const struct trace_step *step, op_ref after)
{
	static const struct lower_ops walk = {run_group, run_attention};
	op_ref last = 0;

	lower_begin(&r->walk, x, step);
	r->host = exec_join(x, x->step_end, after);
	r->layer = INT_MIN;
	r->partial = false;
	for (int i = 0; i < r->n; i++)
		r->last[i] = exec_join(x, x->step_end, after);
	lower_walk(&r->walk, r, &walk);
	change_layer(r, MODEL_NO_LAYER);
	gather_logits(r);
	for (int i = 0; i < r->n; i++)
		last = exec_join(x, last, r->last[i]);
	return last;
}
