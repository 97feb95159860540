#include "hw/hw.h"

#include <math.h>
#include <string.h>

#include <gsl/gsl_interp.h>

#include "base/units.h"
#include "base/vec.h"

static const char *const dtype_names[HW_DTYPE_N] = {"fp32", "fp16", "bf16", "fp8", "int8"};

const char *hw_dtype_name(enum hw_dtype t)
{
	return dtype_names[t];
}

static void take(const struct hw_num *num)
{
	if (num->taken)
		*num->taken = true;
}

double hw_num_value(const struct hw_num *num)
{
	take(num);
	if (num->measured > 0)
		return num->measured;
	return num->efficiency > 0 ? num->peak * num->efficiency : num->peak;
}

double hw_num_peak(const struct hw_num *num)
{
	take(num);
	return num->peak > 0 ? num->peak : num->measured;
}

const char *hw_num_basis(const struct hw_num *num)
{
	static const char *const names[] = {"measured", "assumed", "stated"};

	if (num->measured > 0)
		return names[num->origin];
	return num->peak > 0 ? "peak" : "unknown";
}

/* One segment at a time, so that log() is taken of two sizes and not of the whole curve. */
static double between(const struct hw_rate *r, size_t i, double bytes)
{
	double x[2] = {log(r->size_bytes[i]), log(r->size_bytes[i + 1])};
	double y[2] = {r->rate_bytes_s[i], r->rate_bytes_s[i + 1]};
	double at;

	if (gsl_interp_linear->eval(NULL, x, y, 2, log(bytes), NULL, &at))
		BUG("curve point %zu of %zu at %g bytes", i, r->n_points, bytes);
	return at;
}

double hw_rate_at(const struct hw_rate *r, double bytes)
{
	double value = hw_num_value(&r->num);
	size_t last = r->n_points - 1;

	if (r->n_points < 2 || bytes >= r->size_bytes[last])
		return value;
	double scale = value / r->rate_bytes_s[last];
	if (bytes <= r->size_bytes[0])
		return r->rate_bytes_s[0] * scale;
	return between(r, gsl_interp_bsearch(r->size_bytes, bytes, 0, last), bytes) * scale;
}

int hw_find_memory(const struct hw_machine *m, const char *name)
{
	for (int i = 0; i < m->n_memories; i++)
		if (!strcmp(m->memories[i].name, name))
			return i;
	return -1;
}

int hw_find_device(const struct hw_machine *m, const char *name)
{
	for (int i = 0; i < m->n_devices; i++)
		if (!strcmp(m->devices[i].name, name))
			return i;
	return -1;
}

const char *hw_link_near(const struct hw_machine *m, const struct hw_link *l)
{
	return l->near == hw_switch(m) ? "all GPUs" : m->memories[l->near].name;
}

int hw_first_memory(const struct hw_machine *m, enum hw_memory_kind kind)
{
	for (int i = 0; i < m->n_memories; i++)
		if (m->memories[i].kind == kind)
			return i;
	return -1;
}

int hw_first_device(const struct hw_machine *m, enum hw_device_kind kind)
{
	for (int i = 0; i < m->n_devices; i++)
		if (m->devices[i].kind == kind)
			return i;
	return -1;
}

unsigned hw_sockets(const struct hw_machine *m)
{
	int cpu = hw_first_device(m, HW_DEVICE_CPU);

	return cpu < 0 ? 1 : m->devices[cpu].sockets;
}

unsigned hw_socket_of(const struct hw_machine *m, int device)
{
	unsigned gpus = 0, before = 0;

	for (int d = 0; d < m->n_devices; d++) {
		gpus += m->devices[d].kind == HW_DEVICE_GPU;
		before += m->devices[d].kind == HW_DEVICE_GPU && d < device;
	}
	return m->devices[device].kind == HW_DEVICE_GPU ? before * hw_sockets(m) / gpus : 0;
}

const struct hw_link *hw_host_link(const struct hw_machine *m, int memory)
{
	for (int i = 0; i < m->n_links; i++)
		if (m->links[i].far == memory && m->links[i].between == HW_BETWEEN_HOST)
			return &m->links[i];
	return NULL;
}

/* Depth-first with a hop limit: a machine has a handful of memories, and the limit is small. Links are
   tried in their order, so of several ways of the same length the one with lower links is found. */
static bool route_within(const struct hw_machine *m, int from, int to, int hops, int *link, bool *forward)
{
	if (from == to)
		return true;
	for (int i = 0; hops && i < m->n_links; i++) {
		const struct hw_link *l = &m->links[i];
		if (l->near != from && l->far != from)
			continue;
		link[0] = i;
		forward[0] = l->near == from;
		if (route_within(m, forward[0] ? l->far : l->near, to, hops - 1, link + 1, forward + 1))
			return true;
	}
	return false;
}

int hw_route(const struct hw_machine *m, int from, int to, int link[HW_MAX_HOPS], bool forward[HW_MAX_HOPS])
{
	for (int hops = 0; hops <= HW_MAX_HOPS; hops++)
		if (route_within(m, from, to, hops, link, forward))
			return hops;
	return -1;
}

struct refs {
	VEC(struct hw_num_ref);
};

static void add_ref(struct refs *refs, struct arena *a, struct hw_num *num, enum unit_dim dim,
	const char *owner, const char *key)
{
	if (!(hw_num_value(num) > 0))
		return;
	struct hw_num_ref ref = {arena_printf(a, "%s.%s", owner, key), num, dim};
	VEC_PUSH(refs, a, ref);
}

static void device_refs(struct refs *refs, struct arena *a, struct hw_device *d)
{
	for (int t = 0; t < HW_DTYPE_N; t++)
		add_ref(refs, a, &d->flops_s[t], UNIT_FLOP_RATE, d->name,
			arena_printf(a, "flops.%s", dtype_names[t]));
	add_ref(refs, a, &d->launch_s, UNIT_TIME, d->name, "launch");
	add_ref(refs, a, &d->bandwidth_bytes_s, UNIT_BYTES_RATE, d->name, "bandwidth");
	add_ref(refs, a, &d->thread_bandwidth_bytes_s, UNIT_BYTES_RATE, d->name, "thread_bandwidth");
	add_ref(refs, a, &d->copy_bytes_s, UNIT_BYTES_RATE, d->name, "copy");
	add_ref(refs, a, &d->clock_hz, UNIT_FREQUENCY, d->name, "clock");
	add_ref(refs, a, &d->fast_clock_hz, UNIT_FREQUENCY, d->name, "fast_clock");
	for (int i = 0; i < d->n_kernels; i++) {
		struct hw_kernel *k = &d->kernels[i];
		add_ref(refs, a, &k->decode_bytes_s, UNIT_BYTES_RATE, d->name,
			arena_printf(a, "kernels.%s.decode", k->type));
		add_ref(refs, a, &k->prefill_flops_s, UNIT_FLOP_RATE, d->name,
			arena_printf(a, "kernels.%s.prefill", k->type));
	}
}

/* A drive's link carries the names of the drive's own keys. */
static void drive_refs(struct refs *refs, struct arena *a, struct hw_link *l, const char *drive)
{
	add_ref(refs, a, &l->d2h.num, UNIT_BYTES_RATE, drive, "read");
	add_ref(refs, a, &l->h2d.num, UNIT_BYTES_RATE, drive, "write");
	add_ref(refs, a, &l->both_bytes_s, UNIT_BYTES_RATE, drive, "both");
	add_ref(refs, a, &l->latency_s, UNIT_TIME, drive, "latency");
}

static void link_refs(struct refs *refs, struct arena *a, struct hw_link *l)
{
	add_ref(refs, a, &l->h2d.num, UNIT_BYTES_RATE, l->name, "h2d");
	add_ref(refs, a, &l->d2h.num, UNIT_BYTES_RATE, l->name, "d2h");
	/* GPUs have no pageable memory. */
	if (l->between == HW_BETWEEN_HOST) {
		add_ref(refs, a, &l->h2d_pageable.num, UNIT_BYTES_RATE, l->name, "h2d_pageable");
		add_ref(refs, a, &l->d2h_pageable.num, UNIT_BYTES_RATE, l->name, "d2h_pageable");
	}
	add_ref(refs, a, &l->both_bytes_s, UNIT_BYTES_RATE, l->name, "both");
	add_ref(refs, a, &l->remote_bytes_s, UNIT_BYTES_RATE, l->name, "remote");
	add_ref(refs, a, &l->peer_bytes_s, UNIT_BYTES_RATE, l->name, "peer");
	add_ref(refs, a, &l->latency_s, UNIT_TIME, l->name, "latency");
}

size_t hw_numbers(struct hw_machine *m, struct arena *a, struct hw_num_ref **out)
{
	struct refs refs = {0};

	for (int i = 0; i < m->n_memories; i++)
		add_ref(&refs, a, &m->memories[i].bandwidth_bytes_s, UNIT_BYTES_RATE, m->memories[i].name,
			"bandwidth");
	for (int i = 0; i < m->n_devices; i++)
		device_refs(&refs, a, &m->devices[i]);
	for (int i = 0; i < m->n_links; i++) {
		struct hw_link *l = &m->links[i];
		if (l->kind == HW_LINK_DRIVE)
			drive_refs(&refs, a, l, m->memories[l->far].name);
		else
			link_refs(&refs, a, l);
	}
	*out = refs.at;
	return refs.n;
}

static void *copy_array(struct arena *a, const void *from, int n, size_t size)
{
	void *to = arena_alloc_array(a, (size_t)n, size);

	if (n)
		memcpy(to, from, (size_t)n * size);
	return to;
}

struct hw_machine *hw_machine_copy(const struct hw_machine *m, struct arena *a)
{
	struct hw_machine *copy = copy_array(a, m, 1, sizeof(*m));

	copy->memories = copy_array(a, m->memories, m->n_memories, sizeof(*m->memories));
	copy->links = copy_array(a, m->links, m->n_links, sizeof(*m->links));
	copy->devices = copy_array(a, m->devices, m->n_devices, sizeof(*m->devices));
	for (int i = 0; i < copy->n_devices; i++) {
		struct hw_device *d = &copy->devices[i];
		d->kernels = copy_array(a, d->kernels, d->n_kernels, sizeof(*d->kernels));
	}
	return copy;
}

/* Text that grows in an arena. */
struct text {
	VEC(char);
};

static void add_text(struct text *t, struct arena *a, const char *s)
{
	size_t len = strlen(s);

	VEC_RESERVE(t, a, t->n + len + 1);
	memcpy(t->at + t->n, s, len + 1);
	t->n += len;
}

/* 17 digits bring back the same double. */
static void add_number(struct text *t, struct arena *a, double v)
{
	char buf[40];

	snprintf(buf, sizeof(buf), ",%.17g", v);
	add_text(t, a, buf);
}

static void add_num(struct text *t, struct arena *a, const char *key, const struct hw_num *num)
{
	add_text(t, a, " ");
	add_text(t, a, key);
	add_text(t, a, "=");
	add_number(t, a, num->peak);
	add_number(t, a, num->measured);
	add_number(t, a, num->efficiency > 0 ? num->efficiency : 1);
	add_number(t, a, num->spread);
}

static void add_rate(struct text *t, struct arena *a, const char *key, const struct hw_rate *rate)
{
	add_num(t, a, key, &rate->num);
	for (size_t i = 0; i < rate->n_points; i++) {
		add_number(t, a, rate->size_bytes[i]);
		add_number(t, a, rate->rate_bytes_s[i]);
	}
}

static void add_memory(struct text *t, struct arena *a, const struct hw_memory *mem)
{
	add_text(t, a,
		arena_printf(a, "%s: kind=%d capacity=%ju reserved=%ju", mem->name, (int)mem->kind,
			(uintmax_t)mem->capacity_bytes, (uintmax_t)mem->reserved_bytes));
	add_num(t, a, "bandwidth", &mem->bandwidth_bytes_s);
	add_text(t, a, mem->in_ram ? " in_ram;" : ";");
}

static void add_cpu(struct text *t, struct arena *a, const struct hw_device *d)
{
	add_text(t, a, arena_printf(a, " sockets=%u threads=%u isa=%s", d->sockets, d->threads, d->isa));
	add_num(t, a, "clock", &d->clock_hz);
	if (d->fast_cores) {
		add_text(t, a, arena_printf(a, " fast_cores=%u", d->fast_cores));
		add_num(t, a, "fast_clock", &d->fast_clock_hz);
	}
	add_num(t, a, "thread_bandwidth", &d->thread_bandwidth_bytes_s);
	if (hw_num_value(&d->copy_bytes_s) > 0)
		add_num(t, a, "copy", &d->copy_bytes_s);
	for (int i = 0; i < d->n_kernels; i++) {
		add_text(t, a, arena_printf(a, " %s:", d->kernels[i].type));
		add_num(t, a, "decode", &d->kernels[i].decode_bytes_s);
		add_num(t, a, "prefill", &d->kernels[i].prefill_flops_s);
	}
}

static void add_device(struct text *t, struct arena *a, const struct hw_device *d)
{
	add_text(t, a,
		arena_printf(a, "%s: kind=%d memory=%d cores=%u copy_engines=%u", d->name, (int)d->kind,
			d->memory, d->cores, d->copy_engines));
	if (d->cache_bytes > 0)
		add_text(t, a, arena_printf(a, " cache=%.0f", d->cache_bytes));
	for (int i = 0; i < HW_DTYPE_N; i++)
		add_num(t, a, dtype_names[i], &d->flops_s[i]);
	add_num(t, a, "launch", &d->launch_s);
	if (hw_num_value(&d->bandwidth_bytes_s) > 0)
		add_num(t, a, "bandwidth", &d->bandwidth_bytes_s);
	if (d->kind == HW_DEVICE_CPU)
		add_cpu(t, a, d);
	add_text(t, a, ";");
}

static void add_link(struct text *t, struct arena *a, const struct hw_link *l)
{
	add_text(t, a,
		arena_printf(a, "%s: kind=%d near=%d far=%d gen=%u width=%u", l->name, (int)l->kind, l->near,
			l->far, l->gen, l->width));
	add_rate(t, a, "h2d", &l->h2d);
	add_rate(t, a, "d2h", &l->d2h);
	add_rate(t, a, "h2d_pageable", &l->h2d_pageable);
	add_rate(t, a, "d2h_pageable", &l->d2h_pageable);
	add_num(t, a, "both", &l->both_bytes_s);
	if (hw_num_value(&l->remote_bytes_s) > 0)
		add_num(t, a, "remote", &l->remote_bytes_s);
	if (hw_num_value(&l->peer_bytes_s) > 0)
		add_num(t, a, "peer", &l->peer_bytes_s);
	add_num(t, a, "latency", &l->latency_s);
	add_text(t, a, " dram_weight=");
	add_number(t, a, l->pageable_dram_weight);
	add_text(t, a, ";");
}

char *hw_machine_canonical(const struct hw_machine *m, struct arena *a)
{
	struct text t = {0};

	if (strcmp(m->system, "linux") != 0)
		add_text(&t, a, arena_printf(a, "%s;", m->system));
	if (m->remote_share > 0)
		add_text(&t, a, arena_printf(a, "remote %.17g;", m->remote_share));
	for (int i = 0; i < m->n_memories; i++)
		add_memory(&t, a, &m->memories[i]);
	for (int i = 0; i < m->n_devices; i++)
		add_device(&t, a, &m->devices[i]);
	for (int i = 0; i < m->n_links; i++)
		add_link(&t, a, &m->links[i]);
	return t.at;
}

static void print_memory(const struct hw_memory *mem, FILE *to)
{
	char capacity[40], reserved[40];

	fprintf(to, "%-10s  %s (%ju bytes), %s of them reserved%s%s%s\n", mem->name,
		units_format(capacity, sizeof(capacity), (double)mem->capacity_bytes, UNIT_BYTES),
		(uintmax_t)mem->capacity_bytes,
		units_format(reserved, sizeof(reserved), (double)mem->reserved_bytes, UNIT_BYTES),
		mem->in_ram ? ", set aside in ram" : "", *mem->part ? ", part " : "", mem->part);
}

static void print_device(const struct hw_machine *m, const struct hw_device *d, FILE *to)
{
	fprintf(to, "%-10s  %s computing from %s, part %s", d->name, d->kind == HW_DEVICE_GPU ? "GPU" : "CPU",
		m->memories[d->memory].name, *d->part ? d->part : "none");
	if (d->kind == HW_DEVICE_CPU && d->fast_cores)
		fprintf(to, ", %u cores, %u of them fast, with %u threads, %s\n", d->cores, d->fast_cores, d->threads, d->isa);
	else if (d->kind == HW_DEVICE_CPU)
		fprintf(to, ", %u cores with %u threads, %s\n", d->cores, d->threads, d->isa);
	else if (d->copy_engines)
		fprintf(to, ", %u copy engine%s\n", d->copy_engines, d->copy_engines == 1 ? "" : "s");
	else
		fprintf(to, ", no copies\n");
}

static void print_link(const struct hw_machine *m, const struct hw_link *l, FILE *to)
{
	if (l->kind == HW_LINK_DRIVE)
		return; /* the drive's line says it all */
	fprintf(to, "%-10s  between %s and %s, part %s", l->name, hw_link_near(m, l), m->memories[l->far].name,
		l->part);
	if (l->gen)
		fprintf(to, ", generation %u, %u lanes", l->gen, l->width);
	fputc('\n', to);
}

static void print_number(const struct hw_num_ref *ref, FILE *to)
{
	char value[40], peak[40] = "-", spread[40];

	units_format(value, sizeof(value), hw_num_value(ref->num), (enum unit_dim)ref->dim);
	if (ref->num->peak > 0)
		units_format(peak, sizeof(peak), ref->num->peak, (enum unit_dim)ref->dim);
	units_format(spread, sizeof(spread), ref->num->spread, UNIT_FRACTION);
	fprintf(to, "%-23s  %14s  %14s  %6s  %-8s  %s\n", ref->name, value, peak, spread,
		hw_num_basis(ref->num), ref->num->source ? ref->num->source : "");
}

void hw_machine_print(const struct hw_machine *m, FILE *to)
{
	struct arena a;
	struct hw_num_ref *refs;

	arena_init(&a, NULL, NULL);
	fprintf(to, "%s%s%s\n\n", m->name, *m->description ? ": " : "", m->description);
	if (strcmp(m->system, "linux") != 0)
		fprintf(to, "%-10s  %s\n", "system", m->system);
	for (int i = 0; i < m->n_memories; i++)
		print_memory(&m->memories[i], to);
	for (int i = 0; i < m->n_devices; i++)
		print_device(m, &m->devices[i], to);
	for (int i = 0; i < m->n_links; i++)
		print_link(m, &m->links[i], to);
	fprintf(to, "\n%-23s  %14s  %14s  %6s  %-8s  %s\n", "number", "value", "peak", "spread", "basis",
		"source");
	size_t n = hw_numbers(hw_machine_copy(m, &a), &a, &refs);
	for (size_t i = 0; i < n; i++)
		print_number(&refs[i], to);
	arena_release(&a);
}
