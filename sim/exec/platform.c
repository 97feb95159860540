#include "sim/exec/platform.h"

#include <string.h>

#include "base/arena.h"

static int add_resource(struct platform *p, const char *name, double capacity, bool bytes)
{
	int r = p->n_resources++;

	p->resource_name[r] = name;
	p->capacity[r] = capacity;
	p->counts_bytes[r] = bytes;
	return r;
}

static int add_unit(struct platform *p, const char *name)
{
	p->unit_name[p->n_units] = name;
	p->unit_places[p->n_units] = 1;
	return p->n_units++;
}

/* The rate a device's arithmetic is expressed in: that of its fastest common type. */
static double reference_flops(const struct hw_device *d)
{
	static const enum hw_dtype order[] = {HW_FP16, HW_BF16, HW_FP32};

	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		if (hw_num_value(&d->flops_s[order[i]]) > 0)
			return hw_num_value(&d->flops_s[order[i]]);
	BUG("device '%s' has no arithmetic", d->name);
}

static double curve_max(const struct hw_rate *rate)
{
	double max = hw_num_value(&rate->num);

	for (size_t i = 0; i < rate->n_points; i++)
		if (rate->rate_bytes_s[i] > max)
			max = rate->rate_bytes_s[i];
	return max;
}

static void add_link(struct platform *p, int i, struct arena *a)
{
	const struct hw_link *l = &p->machine->links[i];
	double both = hw_num_value(&l->both_bytes_s);

	p->link[i].h2d = add_resource(p, arena_printf(a, "%s.h2d", l->name), curve_max(&l->h2d), true);
	p->link[i].d2h = add_resource(p, arena_printf(a, "%s.d2h", l->name), curve_max(&l->d2h), true);
	p->link[i].both =
		both > 0 ? add_resource(p, arena_printf(a, "%s.both", l->name), both, true) : SIM_NONE;
}

/* Copy engines belong to the far end: a GPU's DMA engines, a drive's queue for reads and for writes. */
static void add_copy_units(struct platform *p, int memory, unsigned engines, struct arena *a)
{
	const char *name = p->machine->memories[memory].name;

	p->copies[memory].in = add_unit(p, arena_printf(a, "%s.copy_in", name));
	p->copies[memory].out =
		engines == 1 ? p->copies[memory].in : add_unit(p, arena_printf(a, "%s.copy_out", name));
}

void platform_init(struct platform *p, const struct hw_machine *m, struct arena *a)
{
	size_t n_mem = (size_t)m->n_memories, n_link = (size_t)m->n_links, n_dev = (size_t)m->n_devices;
	size_t max_resources = n_mem + 3 * n_link + n_dev, max_units = n_dev + 2 * n_mem;

	*p = (struct platform){
		.machine = m,
		.resource_name = arena_array(a, const char *, max_resources),
		.capacity = arena_array(a, double, max_resources),
		.counts_bytes = arena_array(a, bool, max_resources),
		.memory_resource = arena_array(a, int, n_mem),
		.link = arena_array(a, struct platform_link, n_link),
		.compute_resource = arena_array(a, int, n_dev),
		.unit_name = arena_array(a, const char *, max_units),
		.unit_places = arena_array(a, uint32_t, max_units),
		.kernel_unit = arena_array(a, int, n_dev),
		.copies = arena_array(a, struct platform_copies, n_mem),
	};
	for (int i = 0; i < m->n_memories; i++) {
		const struct hw_memory *mem = &m->memories[i];
		p->copies[i].in = p->copies[i].out = SIM_NONE;
		p->memory_resource[i] = mem->kind == HW_MEMORY_DRIVE || mem->in_ram ?
			SIM_NONE :
			add_resource(p, mem->name, hw_num_value(&mem->bandwidth_bytes_s), true);
		if (mem->kind == HW_MEMORY_DRIVE)
			add_copy_units(p, i, 2, a);
	}
	for (int i = 0; i < m->n_memories; i++)
		if (m->memories[i].in_ram)
			p->memory_resource[i] = p->memory_resource[hw_first_memory(m, HW_MEMORY_RAM)];
	for (int i = 0; i < m->n_links; i++)
		add_link(p, i, a);
	for (int i = 0; i < m->n_devices; i++) {
		const struct hw_device *d = &m->devices[i];
		p->compute_resource[i] =
			add_resource(p, arena_printf(a, "%s.compute", d->name), reference_flops(d), false);
		p->kernel_unit[i] = add_unit(p, d->name);
		/* Nothing is copied to a GPU that computes from RAM. */
		if (d->kind == HW_DEVICE_GPU && m->memories[d->memory].kind == HW_MEMORY_GPU)
			add_copy_units(p, d->memory, d->copy_engines, a);
	}
}

static void add_hop(struct platform_path *path, int resource, double weight)
{
	if (resource == SIM_NONE)
		return;
	for (int i = 0; i < path->n; i++) {
		if (path->hop[i].resource == resource) {
			path->hop[i].weight += weight;
			return;
		}
	}
	if (path->n == PLATFORM_MAX_HOPS)
		BUG("a path crosses more than %d resources", PLATFORM_MAX_HOPS);
	path->hop[path->n++] = (struct maxmin_hop){resource, weight};
}

/* A switch between GPUs has no bandwidth of its own: its links have. */
static int node_resource(const struct platform *p, int node)
{
	return node == hw_switch(p->machine) ? SIM_NONE : p->memory_resource[node];
}

static bool is_host_bus(const struct platform *p, int resource)
{
	for (int k = 0; k < p->machine->n_memories; k++)
		if (p->machine->memories[k].kind == HW_MEMORY_RAM && p->memory_resource[k] == resource)
			return true;
	return false;
}

static double remote_share(const struct platform *p, int memory)
{
	return p->remote_share ? p->remote_share[memory] : 0;
}

static void lower_cap(struct sim_op *op, double cap, int resource)
{
	if (op->cap > 0 && op->cap <= cap)
		return;
	op->cap = cap;
	op->cap_resource = resource;
}

/* What comes from another socket comes at that rate at most, and what is near beside it: with a share of it there, all
   takes as long as that. */
static void cap_remote(const struct platform *p, const struct hw_link *l, double rate_share, int resource, struct sim_op *op)
{
	double share = remote_share(p, l->far), rate = rate_share * hw_num_value(&l->remote_bytes_s);

	if (share > 0 && rate > 0 && rate / share < p->capacity[resource])
		lower_cap(op, rate / share, resource);
}

/* As if all of RAM were near. */
static void copy_near(const struct platform *p, int from, int to, double bytes, bool pinned, bool overheads,
	struct platform_path *path, struct sim_op *op)
{
	const struct hw_machine *m = p->machine;
	int link[HW_MAX_HOPS];
	bool forward[HW_MAX_HOPS];
	int n = hw_route(m, from, to, link, forward);
	double latency_s = 0, pageable_weight = 1;

	if (n < 0)
		BUG("no way from '%s' to '%s'", m->memories[from].name, m->memories[to].name);
	*op = (struct sim_op){.unit = SIM_NONE, .stream = SIM_NONE, .amount = bytes, .cap_resource = SIM_NONE};
	path->n = 0;
	add_hop(path, node_resource(p, from), 1);
	int at = from;
	for (int i = 0; i < n; i++) {
		const struct hw_link *l = &m->links[link[i]];
		const struct hw_rate *rate = forward[i] ? pinned ? &l->h2d : &l->h2d_pageable :
						pinned    ? &l->d2h :
							    &l->d2h_pageable;
		int one_way = forward[i] ? p->link[link[i]].h2d : p->link[link[i]].d2h;
		double cap = hw_rate_at(rate, bytes);

		add_hop(path, one_way, 1);
		add_hop(path, p->link[link[i]].both, 1);
		if (cap < p->capacity[one_way])
			lower_cap(op, cap, one_way);
		if (n > 1 && m->memories[from].kind == HW_MEMORY_GPU && m->memories[to].kind == HW_MEMORY_GPU &&
			hw_num_value(&l->peer_bytes_s) > 0)
			lower_cap(op, hw_num_value(&l->peer_bytes_s), one_way);
		if (!pinned && l->pageable_dram_weight > pageable_weight)
			pageable_weight = l->pageable_dram_weight;
		latency_s += hw_num_value(&l->latency_s);

		int before = at;
		at = forward[i] ? l->far : l->near;
		/* A stop on the way is written and read again. */
		add_hop(path, node_resource(p, at), i + 1 < n ? 2 : 1);
		/* The far end's engine moves the data; with several links the last one's does. */
		if (forward[i] && p->copies[at].in != SIM_NONE)
			op->unit = p->copies[at].in;
		else if (!forward[i] && p->copies[before].out != SIM_NONE)
			op->unit = p->copies[before].out;
	}
	if (!pinned)
		for (int i = 0; i < path->n; i++)
			if (is_host_bus(p, path->hop[i].resource))
				path->hop[i].weight *= pageable_weight;
	op->latency = overheads ? sim_from_seconds(latency_s) : 0;
	op->hop = path->hop;
	op->n_hops = path->n;
}

void platform_copy(const struct platform *p, int from, int to, double bytes, bool pinned, bool overheads,
	struct platform_path *path, struct sim_op *op)
{
	int link[HW_MAX_HOPS];
	bool forward[HW_MAX_HOPS];

	copy_near(p, from, to, bytes, pinned, overheads, path, op);
	if (hw_route(p->machine, from, to, link, forward) == 1)
		cap_remote(p, &p->machine->links[link[0]], 1, forward[0] ? p->link[link[0]].h2d : p->link[link[0]].d2h, op);
}

void platform_read_file(const struct platform *p, int drive, double bytes, double rate, bool kept, bool overheads,
	struct platform_path *path, struct sim_op *op)
{
	int ram = p->memory_resource[hw_first_memory(p->machine, HW_MEMORY_RAM)];

	if (kept) {
		*op = (struct sim_op){.unit = SIM_NONE, .stream = SIM_NONE, .amount = bytes, .cap_resource = SIM_NONE};
		path->n = 0;
	} else {
		copy_near(p, drive, hw_first_memory(p->machine, HW_MEMORY_RAM), bytes, true, overheads, path, op);
	}
	add_hop(path, ram, 2); /* read and written by the thread, whose time is overhead */
	lower_cap(op, rate, SIM_NONE);
	op->hop = path->hop;
	op->n_hops = path->n;
}

void platform_send(const struct platform *p, int from, int to, double bytes, bool direct, struct platform_path *path,
	struct sim_op *op)
{
	int n = 0;

	platform_copy(p, from, to, bytes, true, false, path, op);
	for (int i = 0; i < path->n; i++)
		if (!direct || !is_host_bus(p, path->hop[i].resource))
			path->hop[n++] = path->hop[i];
	op->n_hops = path->n = n;
	op->unit = SIM_NONE;
}

/* Arithmetic in another type is slower or faster by the ratio of the rates. */
static double reference_work(const struct platform *p, int device, const struct platform_work *work)
{
	const struct hw_device *d = &p->machine->devices[device];
	double compute_share = work->compute_share > 0 ? work->compute_share : 1;

	return work->flops * p->capacity[p->compute_resource[device]] / hw_num_value(&d->flops_s[work->dtype]) / compute_share;
}

void platform_kernel_far(const struct platform *p, int device, int memory, double rate_share, double remote_rate_share,
	const struct platform_work *work, struct platform_path *path, struct sim_op *op)
{
	int own = p->memory_resource[p->machine->devices[device].memory], n = 0;
	const struct hw_link *link = hw_host_link(p->machine, p->machine->devices[device].memory);
	double flops = reference_work(p, device, work);

	copy_near(p, memory, p->machine->devices[device].memory, work->bytes, true, false, path, op);
	/* What the copy would write there, the kernel does not. */
	for (int i = 0; i < path->n; i++)
		if (path->hop[i].resource != own || (path->hop[i].weight -= 1) > 0)
			path->hop[n++] = path->hop[i];
	path->n = n;
	if (flops > 0)
		add_hop(path, p->compute_resource[device], flops / work->bytes);
	if (op->cap_resource == SIM_NONE) {
		op->cap_resource = path->hop[1].resource; /* the first link */
		op->cap = p->capacity[op->cap_resource];
	}
	op->cap *= rate_share;
	if (link)
		cap_remote(p, link, remote_rate_share, op->cap_resource, op);
	op->n_hops = path->n;
	op->unit = p->kernel_unit[device];
	op->latency = sim_from_seconds(work->latency_s);
}

void platform_kernel(const struct platform *p, int device, const struct platform_work *work,
	struct platform_path *path, struct sim_op *op)
{
	const struct hw_device *d = &p->machine->devices[device];
	int memory = p->memory_resource[d->memory], compute = p->compute_resource[device];
	double read_share = work->read_share > 0 ? work->read_share : 1;
	double flops = reference_work(p, device, work);

	*op = (struct sim_op){
		.unit = p->kernel_unit[device],
		.stream = SIM_NONE,
		.latency = sim_from_seconds(work->latency_s),
		.amount = work->bytes > 0 ? work->bytes : flops,
		.cap_resource = SIM_NONE,
	};
	path->n = 0;
	if (work->bytes > 0) {
		double reach = hw_num_value(&d->bandwidth_bytes_s);

		/* A device may reach less than all of a bus it shares. */
		if (!(reach > 0 && reach < p->capacity[memory]))
			reach = p->capacity[memory];
		add_hop(path, memory, 1);
		if (flops > 0)
			add_hop(path, compute, flops / work->bytes);
		if (read_share * reach < p->capacity[memory]) {
			op->cap = read_share * reach;
			op->cap_resource = memory;
		}
		if (work->alone_s > 0) {
			double arithmetic_s = flops / p->capacity[compute];
			op->cap = work->bytes / work->alone_s;
			op->cap_resource = arithmetic_s > work->bytes / (read_share * reach) ? compute : memory;
		}
	} else if (flops > 0) {
		add_hop(path, compute, 1);
	}
	op->hop = path->hop;
	op->n_hops = path->n;
}

enum hw_dtype platform_dtype(const struct hw_device *d, const struct quant_type *type)
{
	/* Quantised weights are expanded to 16 bits on a GPU; a CPU accumulates in FP32 where it has nothing
	   else. */
	static const enum hw_dtype of_unit[] = {
		[QUANT_FP16] = HW_FP16, [QUANT_FP32] = HW_FP32, [QUANT_BF16] = HW_BF16, [QUANT_FP8] = HW_FP8};
	enum hw_dtype want = of_unit[type->unit];

	static const enum hw_dtype fall_back[] = {HW_FP16, HW_BF16, HW_FP32};
	if (hw_num_value(&d->flops_s[want]) > 0)
		return want;
	for (size_t i = 0; i < ARRAY_LEN(fall_back); i++)
		if (hw_num_value(&d->flops_s[fall_back[i]]) > 0)
			return fall_back[i];
	BUG("device '%s' has no arithmetic", d->name);
}
