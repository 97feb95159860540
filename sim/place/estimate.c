#include "sim/place/estimate.h"

#include "models/kvcache.h"

void estimate_init(struct estimate *e, const struct placement *p, struct arena *a)
{
	const struct hw_machine *m = p->machine;

	*e = (struct estimate){
		.placement = p,
		.memory_bytes = arena_array(a, double, (size_t)m->n_memories + 1),
		.h2d_bytes = arena_array(a, double, (size_t)m->n_links),
		.d2h_bytes = arena_array(a, double, (size_t)m->n_links),
		.flops = arena_array(a, double, (size_t)m->n_devices),
	};
}

/* Bytes from one memory to another: each memory on the way and each link. */
static void load_route(struct estimate *e, int from, int to, double bytes)
{
	const struct hw_machine *m = e->placement->machine;
	int link[HW_MAX_HOPS];
	bool forward[HW_MAX_HOPS];
	int n = hw_route(m, from, to, link, forward);

	if (n > 0)
		e->memory_bytes[from] += bytes;
	for (int i = 0; i < n; i++) {
		const struct hw_link *l = &m->links[link[i]];
		(forward[i] ? e->h2d_bytes : e->d2h_bytes)[link[i]] += bytes;
		e->memory_bytes[forward[i] ? l->far : l->near] += bytes;
	}
}

/* Bytes that a device computes with: once from its own memory, before that from where they live. */
static void load_use(struct estimate *e, const struct place_spot *spot, double bytes, double flops)
{
	const struct hw_device *d = &e->placement->machine->devices[spot->device];

	load_route(e, spot->memory, d->memory, bytes);
	/* What a kernel reads over the link never enters the device's own memory. */
	e->memory_bytes[d->memory] += spot->mode == PLACE_ZERO_COPY ? -bytes : bytes;
	e->flops[spot->device] += flops;
}

/* The same, where caches have a share of them. */
static void load_cached(struct estimate *e, const struct place_spot *home, double bytes, double flops)
{
	const struct placement *p = e->placement;
	double left = 1;

	for (int i = 0; i < p->n_cached; i++) {
		const struct place_cached *c = &p->cached[i];
		bool near = c->memory == p->machine->devices[p->cache_device].memory;
		struct place_spot there = {c->memory, near ? p->cache_device : home->device, PLACE_CACHED};
		load_use(e, &there, c->share * bytes, c->share * flops);
		left -= c->share;
	}
	left = left > 0 ? left : 0;
	load_use(e, home, left * bytes, left * flops);
}

/* What a memory is sold as, B/s: a drive as what it is read at. 0: nobody says. */
static double datasheet(const struct hw_machine *m, int memory)
{
	double rate = hw_num_peak(&m->memories[memory].bandwidth_bytes_s);

	for (int i = 0; i < m->n_links && m->memories[memory].kind == HW_MEMORY_DRIVE; i++)
		if (m->links[i].far == memory)
			rate = hw_num_peak(&m->links[i].d2h.num);
	return rate;
}

/* Devices that divide a matrix read their rows at the same time. */
static double thumb_seconds(const struct placement *p, const struct place_part *part, double share)
{
	double rate = datasheet(p->machine, part->spot.memory);
	double seconds = rate > 0 ? share * (double)part->bytes / rate : 0;

	return part->spot.mode == PLACE_ROWS ? seconds / p->rows.n : seconds;
}

void estimate_group(struct estimate *e, int layer, enum model_group g, double share, double rows)
{
	const struct placement *p = e->placement;
	const struct place_group *group = &p->group[layer == MODEL_NO_LAYER ? (int)p->model->n_layer : layer][g];

	for (int i = 0; i < group->n; i++) {
		const struct place_part *part = &group->part[i];
		double flops = g == MODEL_EMBED ? 0 : 2 * rows * share * (double)part->params;
		e->thumb_s += g == MODEL_EMBED ? 0 : thumb_seconds(p, part, share);
		(part->spot.mode == PLACE_CACHED ? load_cached : load_use)(e, &part->spot, share * (double)part->bytes, flops);
	}
}

void estimate_kv(struct estimate *e, int layer, double entries, double fresh, double pairs)
{
	const struct placement *p = e->placement;
	const struct model_layer *l = &p->model->layers[layer];
	double entry = (double)kvcache_token_bytes(l, &p->kv_types);
	const struct place_spot *kv = &p->kv[layer];

	double bytes = entry * (entries - fresh), flops = model_attention_flops(l, 1, pairs);

	if (kv->mode != PLACE_ROWS) {
		load_use(e, kv, bytes, flops);
		return;
	}
	for (int i = 0; i < p->rows.n; i++)
		load_use(e, &p->rows.spot[i], place_heads_share(l, p->rows.n) * bytes, flops / p->rows.n);
}

static double peak_flops(const struct hw_device *d)
{
	double best = 0;

	for (int t = 0; t < HW_DTYPE_N; t++)
		if (hw_num_peak(&d->flops_s[t]) > best)
			best = hw_num_peak(&d->flops_s[t]);
	return best;
}

static void raise(double *bound, double load, double peak)
{
	if (load > 0 && peak > 0 && load / peak > *bound)
		*bound = load / peak;
}

/* What crosses the bus of a memory: of RAM also what belongs to GPUs' memories set aside in it. What was fetched ahead into
   such a one has crossed it twice. */
static double bus_bytes(const struct estimate *e, int memory, double ahead_bytes)
{
	const struct hw_machine *m = e->placement->machine;
	double bytes = e->memory_bytes[memory] - ahead_bytes;
	bool shared = false;

	for (int i = 0; i < m->n_memories && m->memories[memory].kind == HW_MEMORY_RAM; i++) {
		bytes += m->memories[i].in_ram ? e->memory_bytes[i] : 0;
		shared |= m->memories[i].in_ram;
	}
	return shared ? bytes - ahead_bytes : bytes;
}

double estimate_seconds(const struct estimate *e, double ahead_bytes)
{
	const struct hw_machine *m = e->placement->machine;
	double bound = 0;

	for (int i = 0; i < m->n_memories; i++)
		raise(&bound, bus_bytes(e, i, ahead_bytes), hw_num_peak(&m->memories[i].bandwidth_bytes_s));
	for (int i = 0; i < m->n_links; i++) {
		raise(&bound, e->h2d_bytes[i] - ahead_bytes, hw_num_peak(&m->links[i].h2d.num));
		raise(&bound, e->d2h_bytes[i] - ahead_bytes, hw_num_peak(&m->links[i].d2h.num));
	}
	for (int i = 0; i < m->n_devices; i++)
		raise(&bound, e->flops[i], peak_flops(&m->devices[i]));
	return bound;
}
