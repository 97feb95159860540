#include "sim/core/flow.h"

#include <math.h>
#include <string.h>

#define NO_LINK UINT32_MAX

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
	op->remaining -= op->flow.rate * ((double)dt / SIM_PS_PER_S);
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
	double ps = ceil(op->remaining / op->flow.rate * SIM_PS_PER_S);
	sim_time at = now;

	if (ps < (double)(SIM_TIME_MAX / 2) && now < SIM_TIME_MAX / 2)
		at += (sim_time)ps;
	else
		net->overflow = true;
	heap_set(net->events, op->slot, at, op->priority, op->sequence);
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
			left -= f->hop[id & (uint32_t)(opgraph_max_hops(net->ops) - 1)].weight * f->rate;
			if (f->rate > fastest)
				fastest = f->rate;
		}
		double share = left / op->flow.hop[h].weight;
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
	}
	link_in(net, op, now);
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
}

static void collect(struct flow_net *net, struct op *op, size_t *n)
{
	if (net->seen[op->slot] == net->round)
		return;
	net->seen[op->slot] = net->round;
	if (*n == net->component_cap) {
		size_t cap = net->component_cap ? 2 * net->component_cap : 32;
		net->component = regrow(net->arena, net->component, *n, cap, sizeof(*net->component));
		net->member = regrow(net->arena, net->member, *n, cap, sizeof(*net->member));
		net->component_cap = cap;
	}
	net->component[*n] = &op->flow;
	net->member[*n] = op;
	++*n;
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

static void solve(struct flow_net *net, size_t n, sim_time now)
{
	double old_rate[16];
	int old_bottleneck[16];
	bool few = n <= 16;

	/* Progress at the old rates first; with few flows only of those that really change. */
	for (size_t i = 0; i < n; i++) {
		if (few) {
			old_rate[i] = net->component[i]->rate;
			old_bottleneck[i] = net->component[i]->bottleneck;
		} else {
			advance(net, net->member[i], now);
		}
	}
	maxmin_solve(&net->solver, net->component, n);
	net->n_solved++;
	for (size_t i = 0; i < n; i++) {
		struct op *op = net->member[i];
		if (few) {
			double rate = op->flow.rate;
			int bottleneck = op->flow.bottleneck;
			if (rate == old_rate[i] && bottleneck == old_bottleneck[i])
				continue;
			op->flow.rate = old_rate[i];
			op->flow.bottleneck = old_bottleneck[i];
			advance(net, op, now);
			op->flow.rate = rate;
			op->flow.bottleneck = bottleneck;
			if (rate == old_rate[i])
				continue;
		}
		schedule(net, op, now);
	}
}

void flow_settle(struct flow_net *net, sim_time now)
{
	if (net->n_marked == 0)
		return;
	net->round++;
	for (int i = 0; i < net->n_marked; i++) {
		int r = net->marked[i];
		net->resource[r].marked = false;
		if (net->resource[r].visited == net->round || net->resource[r].n_flows == 0)
			continue;
		size_t n = gather(net, r);
		solve(net, n, now);
	}
	net->n_marked = 0;
}

sim_time flow_busy(const struct flow_net *net, int resource, sim_time now)
{
	const struct flow_resource *r = &net->resource[resource];

	return r->busy + (r->n_flows ? now - r->busy_since : 0);
}
