#include "sim/core/flow.h"

#include <math.h>
#include <string.h>

#define NO_LINK UINT32_MAX
/* Of a capacity or a rate: less than this is rounding. */
#define ROUNDING 1e-12
/* With as few flows as this all are solved: to look for those concerned would take longer. */
#define FEW_FLOWS 12

void flow_init(struct flow_net *net, struct opgraph *ops, struct heap *events, const char *const *names,
	       const double *capacity, int n_resources, bool charges, struct arena *a)
{
	size_t n = (size_t)n_resources;

	*net = (struct flow_net){
		.ops = ops,
		.events = events,
		.resource = arena_array(a, struct flow_resource, n),
		.capacity = arena_array(a, double, n),
		.n_resources = n_resources,
		.marked = arena_array(a, int, n),
		.charge_stride = charges ? n_resources + 1 : 0,
		.keep = INFINITY,
		.arena = a,
	};
	for (size_t r = 0; r < n; r++) {
		if (!(capacity[r] > 0) || isinf(capacity[r]))
			BUG("resource '%s' has capacity %g", names[r], capacity[r]);
		net->capacity[r] = capacity[r];
		net->resource[r].name = names[r];
		net->resource[r].first = NO_LINK;
	}
	maxmin_init(&net->solver, net->capacity, n_resources, a);
}

static void *regrow(struct arena *a, void *old, size_t old_n, size_t n, size_t size)
{
	void *grown = arena_alloc_array(a, n, size);

	if (old_n)
		memcpy(grown, old, old_n * size);
	return grown;
}

void flow_reserve(struct flow_net *net, const struct op *op)
{
	uint32_t n = net->ops->n_slots;

	if (op->slot < net->seen_cap)
		return;
	if (n < 2 * net->seen_cap)
		n = 2 * net->seen_cap;

	size_t old = net->seen_cap, hops = (size_t)opgraph_max_hops(net->ops), stride = (size_t)net->charge_stride;
	net->seen = regrow(net->arena, net->seen, old, n, sizeof(*net->seen));
	net->link = regrow(net->arena, net->link, old * hops, n * hops, sizeof(*net->link));
	if (stride)
		net->charge = regrow(net->arena, net->charge, old * stride, n * stride, sizeof(*net->charge));
	net->seen_cap = n;
}

/* The operation behind a hop id. */
static inline struct op *flow_of(const struct flow_net *net, uint32_t id)
{
	return opgraph_at(net->ops, id >> net->ops->hop_shift);
}

static inline double weight_of(const struct flow_net *net, uint32_t id)
{
	return flow_of(net, id)->flow.hop[id & (uint32_t)(opgraph_max_hops(net->ops) - 1)].weight;
}

static void mark(struct flow_net *net, int r)
{
	if (!net->resource[r].marked) {
		net->resource[r].marked = true;
		net->marked[net->n_marked++] = r;
	}
}

/* Books what moved, and who limited it, since the last change. */
static void advance(struct flow_net *net, struct op *op, sim_time now)
{
	sim_time dt = now - op->since;

	if (dt == 0)
		return;
	op->remaining -= op->flow.rate * ((double)dt * SIM_S_PER_PS);
	if (op->remaining < 0)
		op->remaining = 0;
	op->since = now;

	sim_time *charge = flow_charges(net, op->slot);
	if (charge) {
		int who = op->flow.bottleneck == MAXMIN_CAP ? op->cap_resource : op->flow.bottleneck;
		charge[who < 0 ? net->n_resources : who] += dt;
	}
}

static void schedule(struct flow_net *net, struct op *op, sim_time now)
{
	double ps = op->remaining / op->flow.rate * SIM_PS_PER_S;
	sim_time at = now;

	if (ps < (double)(SIM_TIME_MAX / 2) && now < SIM_TIME_MAX / 2) {
		at += (sim_time)ps;
		at += (double)(sim_time)ps < ps; /* up */
	} else {
		net->overflow = true;
	}
	heap_set(net->events, op->slot, at, op->priority, op->sequence);
}

static void activate(struct flow_net *net, struct op *op)
{
	if (net->n_active == net->active_cap) {
		net->active_cap = net->active_cap ? 2 * net->active_cap : 32;
		net->active = regrow(net->arena, net->active, net->n_active, net->active_cap, sizeof(*net->active));
	}
	op->active = net->n_active;
	net->active[net->n_active++] = op;
}

static void deactivate(struct flow_net *net, struct op *op)
{
	struct op *last = net->active[--net->n_active];

	net->active[op->active] = last;
	last->active = op->active;
}

static void link_in(struct flow_net *net, struct op *op, sim_time now)
{
	uint32_t id = op->slot << net->ops->hop_shift;

	for (int h = 0; h < op->flow.n_hops; h++, id++) {
		struct flow_resource *res = &net->resource[op->flow.hop[h].resource];

		if (res->n_flows++ == 0)
			res->busy_since = now;
		net->link[id] = (struct flow_link){res->first, NO_LINK};
		if (res->first != NO_LINK)
			net->link[res->first].prev = id;
		res->first = id;
	}
}

/* Gives a new flow what the others leave, if that is fair: then nobody else's rate changes and there is nothing
   to solve. It is fair when the newcomer stops at its cap, or at a resource on which nobody is faster (an
   allocation is max-min fair when each flow is at its cap or has such a full resource; the others keep theirs). */
static bool take_leftover(struct flow_net *net, struct op *op)
{
	double rate = op->flow.cap, fastest_there = 0;
	int bottleneck = MAXMIN_CAP;
	for (int h = 0; h < op->flow.n_hops; h++) {
		int r = op->flow.hop[h].resource;
		const struct flow_resource *res = &net->resource[r];
		double left = net->capacity[r], fastest = 0;

		if (res->marked)
			return false;
		for (uint32_t id = res->first; id != NO_LINK; id = net->link[id].next) {
			const struct maxmin_flow *f = &flow_of(net, id)->flow;
			left -= weight_of(net, id) * f->rate;
			if (f->rate > fastest)
				fastest = f->rate;
		}
		double share = left / op->flow.hop[h].weight;
		if (left <= ROUNDING * net->capacity[r])
			return false; /* full */
		if (share < rate) {
			rate = share;
			bottleneck = r;
			fastest_there = fastest;
		}
	}
	if (rate < fastest_there || !(rate > 0))
		return false;
	op->flow.rate = rate;
	op->flow.bottleneck = bottleneck;
	return true;
}

/* A rate that a newcomer is sure to get: an equal share of every resource on its way. */
static double sure_rate(const struct flow_net *net, const struct op *op)
{
	double rate = op->flow.cap;

	for (int h = 0; h < op->flow.n_hops; h++) {
		int r = op->flow.hop[h].resource;
		double weight_sum = op->flow.hop[h].weight;

		for (uint32_t id = net->resource[r].first; id != NO_LINK; id = net->link[id].next)
			weight_sum += weight_of(net, id);
		if (net->capacity[r] < rate * weight_sum)
			rate = net->capacity[r] / weight_sum;
	}
	return rate;
}

/* Flows from this rate on may get another. */
static void concern(struct flow_net *net, double rate)
{
	rate *= 1 - 1e3 * ROUNDING; /* equal rates may differ in their last digits */
	if (rate < net->keep)
		net->keep = rate;
}

void flow_join(struct flow_net *net, struct op *op, sim_time now)
{
	op->state = OP_FLOWING;
	op->remaining = op->amount;
	op->since = now;
	if (take_leftover(net, op)) {
		schedule(net, op, now);
	} else {
		op->flow.rate = 0;
		for (int h = 0; h < op->flow.n_hops; h++)
			mark(net, op->flow.hop[h].resource);
		concern(net, sure_rate(net, op));
	}
	link_in(net, op, now);
	activate(net, op);
}

/* Does anybody on r stop there? If not, more room on it changes nothing. */
static bool limits_somebody(const struct flow_net *net, int r)
{
	for (uint32_t id = net->resource[r].first; id != NO_LINK; id = net->link[id].next)
		if (flow_of(net, id)->flow.bottleneck == r)
			return true;
	return false;
}

void flow_leave(struct flow_net *net, struct op *op, sim_time now)
{
	uint32_t id = op->slot << net->ops->hop_shift;

	advance(net, op, now);
	deactivate(net, op);
	for (int h = 0; h < op->flow.n_hops; h++, id++) {
		int r = op->flow.hop[h].resource;
		struct flow_resource *res = &net->resource[r];
		struct flow_link *l = &net->link[id];

		if (l->prev == NO_LINK)
			res->first = l->next;
		else
			net->link[l->prev].next = l->next;
		if (l->next != NO_LINK)
			net->link[l->next].prev = l->prev;
		res->moved += op->amount * op->flow.hop[h].weight;
		if (--res->n_flows == 0)
			res->busy += now - res->busy_since;
		else if (limits_somebody(net, r))
			mark(net, r);
	}
	if (op->flow.rate > 0)
		concern(net, op->flow.rate);
}

static void collect(struct flow_net *net, struct op *op, size_t *n)
{
	if (net->seen[op->slot] == net->round)
		return;
	net->seen[op->slot] = net->round;
	net->member[(*n)++] = op;
}

/* All flows that share with those on resource r, transitively. The order is that of the lists, which
   depends on arrivals alone. */
static size_t gather(struct flow_net *net, int r)
{
	size_t n = 0, done = 0;

	net->resource[r].visited = net->round;
	for (uint32_t id = net->resource[r].first; id != NO_LINK; id = net->link[id].next)
		collect(net, flow_of(net, id), &n);
	for (; done < n; done++) {
		const struct op *op = net->member[done];
		for (int h = 0; h < op->flow.n_hops; h++) {
			struct flow_resource *res = &net->resource[op->flow.hop[h].resource];
			if (res->visited == net->round)
				continue;
			res->visited = net->round;
			if (res->n_flows == 1)
				continue; /* op itself */
			for (uint32_t id = res->first; id != NO_LINK; id = net->link[id].next)
				collect(net, flow_of(net, id), &n);
		}
	}
	return n;
}

/* Gives the first n of member their new rates. */
static void solve(struct flow_net *net, size_t n, sim_time now)
{
	for (size_t i = 0; i < n; i++) {
		struct op *op = net->member[i];
		net->component[i] = &op->flow;
		net->old[i] = (struct flow_rate){op->flow.rate, op->flow.bottleneck};
	}
	maxmin_solve(&net->solver, net->component, n, net->keep);
	net->n_solved++;
	for (size_t i = 0; i < n; i++) {
		struct op *op = net->member[i];
		struct flow_rate fresh = {op->flow.rate, op->flow.bottleneck};

		if (fresh.rate == net->old[i].rate && fresh.bottleneck == net->old[i].bottleneck)
			continue;
		op->flow.rate = net->old[i].rate;
		op->flow.bottleneck = net->old[i].bottleneck;
		advance(net, op, now);
		op->flow.rate = fresh.rate;
		op->flow.bottleneck = fresh.bottleneck;
		if (fresh.rate != net->old[i].rate)
			schedule(net, op, now);
	}
}

static void reserve_members(struct flow_net *net)
{
	if (net->n_active <= net->members_cap)
		return;
	net->members_cap = net->active_cap;
	net->member = arena_array(net->arena, struct op *, net->members_cap);
	net->component = arena_array(net->arena, struct maxmin_flow *, net->members_cap);
	net->old = arena_array(net->arena, struct flow_rate, net->members_cap);
}

void flow_settle(struct flow_net *net, sim_time now)
{
	if (net->n_marked == 0) {
		net->keep = INFINITY;
		return;
	}
	reserve_members(net);
	net->round++;
	if (net->n_active > 0 && net->n_active <= FEW_FLOWS) {
		memcpy(net->member, net->active, net->n_active * sizeof(*net->member));
		solve(net, net->n_active, now);
	}
	for (int i = 0; i < net->n_marked; i++) {
		struct flow_resource *res = &net->resource[net->marked[i]];
		res->marked = false;
		if (net->n_active > FEW_FLOWS && res->visited != net->round && res->n_flows > 0)
			solve(net, gather(net, net->marked[i]), now);
	}
	net->n_marked = 0;
	net->keep = INFINITY;
}

sim_time flow_busy(const struct flow_net *net, int resource, sim_time now)
{
	const struct flow_resource *r = &net->resource[resource];

	return r->busy + (r->n_flows ? now - r->busy_since : 0);
}
