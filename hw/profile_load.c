#include <math.h>
#include <string.h>

#include "base/units.h"
#include "hw/profile_keys.h"

static int need_flops(const struct profile_layers *l, const struct hw_num *flops, struct err *err)
{
	/* One that rates of other types can be told by. */
	if (hw_num_value(&flops[HW_FP32]) > 0 || hw_num_value(&flops[HW_FP16]) > 0 || hw_num_value(&flops[HW_BF16]) > 0)
		return 0;
	return profile_missing(l, "flops", "{fp16: 82TFLOP/s}", err);
}

static int set_size(const struct profile_layers *l, const char *key, double capacity, double reserved,
	struct hw_memory *mem, struct err *err)
{
	const struct yaml_node *at = yaml_get(l->own, key);
	char total[40], taken[40];

	if (isnan(capacity))
		return profile_missing(l, key, "24GiB", err);
	mem->capacity_bytes = (uint64_t)capacity;
	mem->reserved_bytes = isnan(reserved) ? 0 : (uint64_t)reserved;
	if (mem->reserved_bytes < mem->capacity_bytes)
		return 0;
	return err_at(err, ERR_INPUT, at ? &at->pos : &l->own->pos,
		"%s: of %s, %s are reserved and nothing is left; state 'reserved' too", l->name,
		units_format(total, sizeof(total), capacity, UNIT_BYTES),
		units_format(taken, sizeof(taken), reserved, UNIT_BYTES));
}

/* ---- devices ---- */

static int fill_gpu_memory(struct profile *p, const struct profile_layers *l, const struct gpu_raw *raw,
	struct hw_memory *mem, struct err *err)
{
	static const char *const own_keys[] = {"memory", "reserved", "bandwidth", "link"};

	*mem = (struct hw_memory){.name = l->name, .kind = HW_MEMORY_GPU, .part = raw->part ? raw->part : ""};
	if (raw->unified && raw->in_ram)
		return err_at(err, ERR_INPUT, &yaml_get(l->merged, "in_ram")->pos,
			"%s is unified: it has no memory that would be set aside", l->name);
	if (!raw->unified) {
		mem->in_ram = raw->in_ram;
		if (set_size(l, "memory", raw->memory, raw->reserved, mem, err) ||
			profile_layered_num(
				p, l, "bandwidth", UNIT_BYTES_RATE, &mem->bandwidth_bytes_s, err))
			return -1;
		return profile_need_num(l, &mem->bandwidth_bytes_s, "bandwidth", "1008GB/s", err);
	}
	for (size_t i = 0; i < ARRAY_LEN(own_keys); i++) {
		const struct yaml_node *node = yaml_get(l->merged, own_keys[i]);
		if (node)
			return err_at(err, ERR_INPUT, &node->pos,
				"%s is unified: it computes from ram and has no '%s' of its own", l->name,
				own_keys[i]);
	}
	return 0;
}

static int fill_gpu(struct profile *p, const struct profile_layers *l, struct gpu_raw *raw,
	struct hw_memory *mem, struct hw_device *d, struct err *err)
{
	if (profile_fill(p, HW_PARAMS_GPU, l->merged, l->name, raw, err) ||
		fill_gpu_memory(p, l, raw, mem, err))
		return -1;
	*d = (struct hw_device){.name = l->name, .kind = HW_DEVICE_GPU, .part = mem->part};
	d->copy_engines = raw->unified ? 0 : (unsigned)raw->copy_engines;
	d->cache_bytes = raw->cache;
	if (raw->in_ram)
		d->bandwidth_bytes_s = mem->bandwidth_bytes_s;
	if (profile_flops(p, l, 1, d->flops_s, err) || need_flops(l, d->flops_s, err))
		return -1;
	if (!yaml_get(l->merged, "launch"))
		return profile_missing(l, "launch", "2.5us", err);
	return profile_layered_num(p, l, "launch", UNIT_TIME, &d->launch_s, err);
}

/* With unified memory, mem and link are left to the next device. */
static int load_gpu(struct profile *p, const struct yaml_node *own, const char *name, struct hw_memory *mem,
	struct hw_device *d, struct hw_link *link, bool *unified, struct err *err)
{
	struct profile_layers l = {.name = name};
	const struct yaml_node *link_map;
	struct gpu_raw raw;

	if (profile_layers_find(p, HW_PART_GPU, own, NULL, &l, err) || fill_gpu(p, &l, &raw, mem, d, err))
		return -1;
	*unified = raw.unified;
	if (raw.unified)
		return 0;
	if (profile_merge_native(p, &l, &link_map, err))
		return -1;
	if (profile_load_link(p, link_map, arena_printf(p->a, "%s.link", name), link, err))
		return -1;
	if (link->between != HW_BETWEEN_HOST)
		return err_at(err, ERR_INPUT, &link_map->pos,
			"%s.link leads to host memory, '%s' joins GPUs; it belongs under 'nvlink'", name, link->part);
	return 0;
}

/* What a layer says of a type of weights: an empty map when nothing. */
static const struct yaml_node *kernel_in(struct profile *p, const struct yaml_node *layer, const struct yaml_node *type)
{
	const struct yaml_node *all = yaml_get(layer, "kernels"), *one = all ? yaml_get(all, type->key) : NULL;

	return one ? one : profile_new_map(p->a, NULL, &type->pos);
}

/* One type of weights; the machine's numbers are laid over the part's. */
static int fill_kernel(struct profile *p, const struct profile_layers *cpu, const struct yaml_node *merged,
	struct hw_kernel *k, struct err *err)
{
	struct profile_layers l = {arena_printf(p->a, "%s.kernels.%s", cpu->name, merged->key),
		kernel_in(p, cpu->part, merged), kernel_in(p, cpu->own, merged), merged};
	struct kernel_raw raw;

	*k = (struct hw_kernel){.type = merged->key, .pos = merged->key_pos};
	if (profile_must_be_map(merged, l.name, err) ||
		profile_fill(p, HW_PARAMS_KERNEL, merged, l.name, &raw, err) ||
		profile_layered_num(p, &l, "decode", UNIT_BYTES_RATE, &k->decode_bytes_s, err))
		return -1;
	return profile_layered_num(p, &l, "prefill", UNIT_FLOP_RATE, &k->prefill_flops_s, err);
}

static int fill_kernels(struct profile *p, const struct profile_layers *l, struct hw_device *d, struct err *err)
{
	const struct yaml_node *all = yaml_get(l->merged, "kernels");

	if (!all)
		return 0;
	if (profile_must_be_map(all, arena_printf(p->a, "%s.kernels", l->name), err))
		return -1;
	d->kernels = arena_array(p->a, struct hw_kernel, yaml_count(all));
	for (const struct yaml_node *k = all->child; k; k = k->next)
		if (fill_kernel(p, l, k, &d->kernels[d->n_kernels++], err))
			return -1;
	return 0;
}

/* Of all sockets, as the flops. */
static int fill_cpu_bandwidth(struct profile *p, const struct profile_layers *l, uint64_t sockets,
	struct hw_num *num, struct err *err)
{
	const char *what = arena_printf(p->a, "%s.bandwidth", l->name);

	if (profile_num(p, yaml_get(l->part, "bandwidth"), UNIT_BYTES_RATE, what, num, err))
		return -1;
	profile_scale(num, (double)sockets);
	return profile_num(p, yaml_get(l->own, "bandwidth"), UNIT_BYTES_RATE, what, num, err);
}

/* With other cores than the part's, each has as many threads as the part's have. */
static int set_threads(const struct profile_layers *l, const struct cpu_raw *raw, const struct cpu_raw *part,
	struct hw_device *d, struct err *err)
{
	uint64_t each = part->threads && part->cores ? part->threads / part->cores : 1;
	uint64_t threads = raw->threads && (yaml_get(l->own, "threads") || raw->cores == part->cores) ?
		raw->threads :
		raw->cores * each;

	d->threads = (unsigned)(threads * raw->sockets);
	if (threads >= raw->cores)
		return 0;
	return err_at(err, ERR_INPUT, &l->own->pos, "%s has %u threads, fewer than its %u cores", l->name,
		(unsigned)threads, (unsigned)raw->cores);
}

/* One that could not be would be left out of account. */
static int check_fast_clock(const struct profile_layers *l, const struct hw_device *d, struct err *err)
{
	const struct yaml_node *own = yaml_get(l->own, "fast_clock");
	double fast = hw_num_value(&d->fast_clock_hz), all = hw_num_value(&d->clock_hz), alone = hw_num_peak(&d->clock_hz);

	if (!own || !(all > 0) || (fast >= all && !(fast > alone)))
		return 0;
	return err_at(err, ERR_INPUT, &own->pos, "%s has a fast_clock of %.3g GHz, which is not between its clock with all cores "
		"busy and that of one alone, %.3g and %.3g GHz", l->name, fast / 1e9, all / 1e9, alone / 1e9);
}

/* With other cores than the part's, nobody knows which of them are fast, unless the machine says it too. */
static int set_fast_cores(struct profile *p, const struct profile_layers *l, const struct cpu_raw *raw,
	const struct cpu_raw *part, struct hw_device *d, struct err *err)
{
	const struct yaml_node *own = yaml_get(l->own, "fast_cores"), *clock = yaml_get(l->own, "fast_clock");

	if (!raw->fast_cores || (raw->cores != part->cores && !own))
		return !clock ? 0 :
			err_at(err, ERR_INPUT, &clock->key_pos, "%s has no 'fast_cores' that 'fast_clock' could be of", l->name);
	if (raw->fast_cores > raw->cores)
		return err_at(err, ERR_INPUT, own ? &own->pos : &l->own->pos, "%s has %u cores, fewer than its %u fast ones",
			l->name, (unsigned)raw->cores, (unsigned)raw->fast_cores);
	d->fast_cores = (unsigned)(raw->fast_cores * raw->sockets);
	return profile_layered_num(p, l, "fast_clock", UNIT_FREQUENCY, &d->fast_clock_hz, err);
}

/* A machine that says how many cores it has, of a part that has others, gets its share of the flops. */
static int fill_cpu(struct profile *p, const struct profile_layers *l, struct cpu_raw *raw,
	struct hw_device *d, struct err *err)
{
	struct cpu_raw part;

	if (profile_fill(p, HW_PARAMS_CPU, l->merged, l->name, raw, err) ||
		profile_fill(p, HW_PARAMS_CPU, l->part, l->name, &part, err))
		return -1;
	*d = (struct hw_device){.name = l->name, .kind = HW_DEVICE_CPU, .part = raw->part ? raw->part : ""};
	if (!raw->cores)
		return profile_missing(l, "cores", "16", err);
	double scale = (double)raw->sockets * (part.cores ? (double)raw->cores / (double)part.cores : 1);
	d->cores = (unsigned)(raw->cores * raw->sockets);
	d->sockets = (unsigned)raw->sockets;
	const struct yaml_node *isa = yaml_get(l->merged, "isa");
	d->isa = raw->isa;
	d->isa_pos = isa ? isa->pos : l->own->pos;
	if (set_threads(l, raw, &part, d, err) || set_fast_cores(p, l, raw, &part, d, err))
		return -1;
	if (fill_cpu_bandwidth(p, l, raw->sockets, &d->bandwidth_bytes_s, err) ||
		profile_flops(p, l, scale, d->flops_s, err) || need_flops(l, d->flops_s, err) ||
		profile_layered_num(p, l, "clock", UNIT_FREQUENCY, &d->clock_hz, err) ||
		check_fast_clock(l, d, err) ||
		profile_layered_num(p, l, "thread_bandwidth", UNIT_BYTES_RATE, &d->thread_bandwidth_bytes_s, err) ||
		profile_layered_num(p, l, "copy", UNIT_BYTES_RATE, &d->copy_bytes_s, err) ||
		fill_kernels(p, l, d, err))
		return -1;
	if (!yaml_get(l->merged, "launch"))
		return profile_missing(l, "launch", "5us", err);
	return profile_layered_num(p, l, "launch", UNIT_TIME, &d->launch_s, err);
}

static int load_cpu(struct profile *p, const struct yaml_node *own, const char *name, struct hw_device *d,
	struct err *err)
{
	struct profile_layers l = {.name = name};
	struct cpu_raw raw;

	if (profile_layers_find(p, HW_PART_CPU, own, NULL, &l, err))
		return -1;
	return fill_cpu(p, &l, &raw, d, err);
}

/* Peak: transfers a second of one channel, 8 bytes each, over all channels of all sockets. */
static int fill_dram_bandwidth(struct profile *p, const struct profile_layers *l, const struct ram_raw *raw,
	struct hw_num *num, struct err *err)
{
	const struct yaml_node *part = yaml_get(l->part, "bandwidth"), *own = yaml_get(l->own, "bandwidth");
	const char *what = arena_printf(p->a, "%s.bandwidth", l->name);

	if (profile_num(p, part, UNIT_BYTES_RATE, what, num, err))
		return -1;
	profile_scale(num, (double)raw->sockets);
	if (!isnan(raw->rate) && raw->channels) {
		num->peak = raw->rate * 8 * (double)(raw->channels * raw->sockets);
		num->measured = 0; /* of other modules */
		num->source = arena_printf(p->a, "peak: %.0f MT/s x 8 B x %u channels; efficiency: %s",
			raw->rate / 1e6, (unsigned)(raw->channels * raw->sockets),
			num->source ? num->source : "none stated");
	}
	return profile_num(p, own, UNIT_BYTES_RATE, what, num, err);
}

static int need_dram_bandwidth(const struct profile_layers *l, const struct ram_raw *raw,
	const struct hw_num *num, struct err *err)
{
	if (hw_num_value(num) > 0)
		return 0;
	if (!isnan(raw->rate))
		return profile_missing(l, "channels", "2", err);
	if (raw->channels)
		return profile_missing(l, "rate", "5600MT/s", err);
	return profile_missing(l, "bandwidth", "70GB/s", err);
}

static int fill_ram(struct profile *p, const struct profile_layers *l, struct ram_raw *raw,
	struct hw_memory *mem, struct err *err)
{
	if (profile_fill(p, HW_PARAMS_RAM, l->merged, l->name, raw, err))
		return -1;
	*mem = (struct hw_memory){.name = l->name, .kind = HW_MEMORY_RAM, .part = raw->part};
	return fill_dram_bandwidth(p, l, raw, &mem->bandwidth_bytes_s, err);
}

static int load_ram(struct profile *p, const struct yaml_node *own, const char *name, struct hw_memory *mem,
	int *numa, struct err *err)
{
	struct profile_layers l = {.name = name};
	struct ram_raw raw;

	if (profile_layers_find(p, HW_PART_DRAM, own, "generic-ram", &l, err) ||
		fill_ram(p, &l, &raw, mem, err) ||
		set_size(&l, "capacity", raw.capacity, raw.reserved, mem, err))
		return -1;
	*numa = raw.numa;
	return need_dram_bandwidth(&l, &raw, &mem->bandwidth_bytes_s, err);
}

static int fill_nvme(struct profile *p, const struct profile_layers *l, struct nvme_raw *raw,
	struct hw_memory *mem, struct hw_link *link, struct err *err)
{
	if (profile_fill(p, HW_PARAMS_NVME, l->merged, l->name, raw, err))
		return -1;
	*mem = (struct hw_memory){
		.name = l->name, .kind = HW_MEMORY_DRIVE, .part = raw->part ? raw->part : ""};
	*link = (struct hw_link){.name = arena_printf(p->a, "%s.link", l->name), .kind = HW_LINK_DRIVE};
	link->part = mem->part;
	link->pageable_dram_weight = 1;
	if (profile_layered_rate(p, l, "read", &link->d2h, err) ||
		profile_layered_rate(p, l, "write", &link->h2d, err) ||
		profile_layered_num(p, l, "both", UNIT_BYTES_RATE, &link->both_bytes_s, err) ||
		profile_layered_num(p, l, "latency", UNIT_TIME, &link->latency_s, err))
		return -1;
	link->h2d_pageable = link->h2d;
	link->d2h_pageable = link->d2h;
	return 0;
}

static int load_nvme(struct profile *p, const struct yaml_node *own, const char *name, struct hw_memory *mem,
	struct hw_link *link, struct err *err)
{
	struct profile_layers l = {.name = name};
	struct nvme_raw raw;

	if (profile_layers_find(p, HW_PART_NVME, own, NULL, &l, err) ||
		fill_nvme(p, &l, &raw, mem, link, err) ||
		profile_need_num(&l, &link->d2h.num, "read", "6GB/s", err) ||
		profile_need_num(&l, &link->h2d.num, "write", "3GB/s", err))
		return -1;
	return set_size(&l, "capacity", raw.capacity, raw.reserved, mem, err);
}

/* ---- parts alone ---- */

int profile_part_values(struct profile *p, enum hw_part_kind kind, const struct yaml_node *part,
	struct profile_part_values *out, struct err *err)
{
	struct yaml_node *own = profile_new_map(p->a, NULL, &part->pos);
	struct profile_layers l = {part->key, part, own, part};
	union {
		struct gpu_raw gpu;
		struct cpu_raw cpu;
		struct ram_raw ram;
		struct nvme_raw nvme;
	} raw;
	const struct yaml_node *link;
	const char *description = NULL;

	*out = (struct profile_part_values){0};
	if (profile_must_be_map(part, part->key, err) ||
		(yaml_get(part, "description") &&
			yaml_text(yaml_get(part, "description"), &description, err)))
		return -1;
	out->description = description;
	switch (kind) {
	case HW_PART_GPU:
		if (fill_gpu(p, &l, &raw.gpu, &out->memory, &out->device, err))
			return -1;
		if (raw.gpu.unified) {
			out->native_link = "unified";
			return 0;
		}
		if (profile_merge_native(p, &l, &link, err) ||
			profile_load_link(p, link, "link", &out->link, err))
			return -1;
		out->native_link = out->link.gen
					   ? arena_printf(p->a, "pcie-%ux%u", out->link.gen, out->link.width)
					   : out->link.part;
		return 0;
	case HW_PART_CPU:
		return fill_cpu(p, &l, &raw.cpu, &out->device, err);
	case HW_PART_DRAM:
		if (fill_ram(p, &l, &raw.ram, &out->memory, err))
			return -1;
		out->memory.reserved_bytes = isnan(raw.ram.reserved) ? 0 : (uint64_t)raw.ram.reserved;
		return 0;
	case HW_PART_NVME:
		return fill_nvme(p, &l, &raw.nvme, &out->memory, &out->link, err);
	case HW_PART_LINK:
		own->child = profile_new_scalar(p->a, "part", part->key, &part->pos);
		return profile_load_link(p, own, part->key, &out->link, err);
	case HW_PART_N:
		break;
	}
	return 0;
}

/* ---- the whole ---- */

struct found {
	const struct yaml_node *gpu[PROFILE_MAX_GPUS], *nvme[PROFILE_MAX_DRIVES], *cpu, *ram, *nvlink;
	int n_gpus, n_drives;
};

/* `nvme0: none` takes away what `from` brought. */
static bool is_none(const struct yaml_node *node)
{
	const struct yaml_node *part = yaml_get(node, "part");

	return part && part->kind == YAML_SCALAR && !strcmp(part->text, "none") && yaml_count(node) == 1;
}

static int check_numbering(const struct yaml_node *const *at, int max, int *n, const char *stem,
	struct err *err)
{
	*n = 0;
	while (*n < max && at[*n])
		++*n;
	for (int i = *n; i < max; i++)
		if (at[i])
			return err_at(err, ERR_INPUT, &at[i]->key_pos, "there is a %s%d but no %s%d", stem, i,
				stem, *n);
	return 0;
}

static int find_devices(const struct yaml_node *root, struct found *f, struct err *err)
{
	enum hw_part_kind kind;
	int index;

	*f = (struct found){.nvlink = yaml_get(root, "nvlink")};
	for (const struct yaml_node *node = root->child; node; node = node->next) {
		if (!profile_device_key(node->key, &kind, &index) || is_none(node))
			continue;
		const struct yaml_node **at = kind == HW_PART_GPU    ? &f->gpu[index]
					      : kind == HW_PART_NVME ? &f->nvme[index]
					      : kind == HW_PART_CPU  ? &f->cpu
								     : &f->ram;
		*at = node;
	}
	if (check_numbering(f->gpu, PROFILE_MAX_GPUS, &f->n_gpus, "gpu", err))
		return -1;
	return check_numbering(f->nvme, PROFILE_MAX_DRIVES, &f->n_drives, "nvme", err);
}

static int check_complete(struct profile *p, const struct yaml_node *root, struct found *f, struct err *err)
{
	if (!f->ram)
		return err_at(err, ERR_INPUT, &root->pos,
			"the machine has no 'ram'; state it, such as ram: {capacity: 64GiB, bandwidth: "
			"70GB/s}");
	if (f->cpu)
		return 0;
	if (!f->n_gpus)
		return err_at(err, ERR_INPUT, &root->pos,
			"the machine has neither 'cpu0' nor 'gpu0': nothing can compute");
	struct yaml_node *cpu = profile_new_map(p->a, "cpu0", &root->pos);
	cpu->child = profile_new_scalar(p->a, "part", "generic-cpu", &root->pos);
	f->cpu = cpu;
	return 0;
}

/* Links between the n GPUs that have a memory, each named after the GPU at its far end: those of a switch have their near
   end there. */
static int load_peers(struct profile *p, const struct yaml_node *own, int n, struct hw_machine *m, struct err *err)
{
	struct hw_link link, *peer = arena_array(p->a, struct hw_link, (size_t)n);
	int n_peers = 0;

	if (!own || is_none(own))
		return 0;
	if (profile_load_link(p, own, "nvlink", &link, err))
		return -1;
	if (link.between == HW_BETWEEN_HOST)
		return err_at(err, ERR_INPUT, &own->pos, "nvlink joins GPUs, '%s' leads to host memory; it belongs under 'gpu0.link'",
			link.part);
	bool pair = link.between == HW_BETWEEN_PAIR;
	int step = pair ? 2 : 1;
	for (int i = step - 1; n > 1 && i < n; i += step) {
		peer[n_peers] = link;
		peer[n_peers].name = arena_printf(p->a, "%s.nvlink", m->memories[i].name);
		peer[n_peers].near = pair ? i - 1 : hw_switch(m);
		peer[n_peers++].far = i;
	}
	memmove(m->links + n_peers, m->links, (size_t)m->n_links * sizeof(*m->links));
	memcpy(m->links, peer, (size_t)n_peers * sizeof(*peer));
	m->n_links += n_peers;
	return 0;
}

/* GPUs first, then host memory, then drives: the order of the ways down. */
static int load_devices(struct profile *p, const struct found *f, struct hw_machine *m, int *numa, struct err *err)
{
	m->memories = arena_array(p->a, struct hw_memory, (size_t)(f->n_gpus + 1 + f->n_drives));
	m->links = arena_array(p->a, struct hw_link, (size_t)(2 * f->n_gpus + f->n_drives));
	m->devices = arena_array(p->a, struct hw_device, (size_t)(f->n_gpus + 1));
	m->n_devices = f->n_gpus + 1;

	bool unified[PROFILE_MAX_GPUS];
	int n = 0; /* GPUs with a memory and a link */
	for (int i = 0; i < f->n_gpus; i++) {
		if (load_gpu(p, f->gpu[i], f->gpu[i]->key, &m->memories[n], &m->devices[i], &m->links[n],
			    &unified[i], err))
			return -1;
		m->devices[i].memory = n;
		m->links[n].far = n;
		n += !unified[i];
	}
	int ram = n;
	if (load_ram(p, f->ram, f->ram->key, &m->memories[ram], numa, err) ||
		load_cpu(p, f->cpu, f->cpu->key, &m->devices[f->n_gpus], err))
		return -1;
	m->devices[f->n_gpus].memory = ram;
	for (int i = 0; i < n; i++)
		profile_link_copied_by(p, &m->devices[f->n_gpus], &m->links[i]);
	for (int i = 0; i < f->n_gpus; i++)
		if (unified[i])
			m->devices[i].memory = ram;
	for (int i = 0; i < f->n_drives; i++) {
		struct hw_link *link = &m->links[n + i];
		if (load_nvme(p, f->nvme[i], f->nvme[i]->key, &m->memories[ram + 1 + i], link, err))
			return -1;
		link->far = ram + 1 + i;
	}
	m->n_memories = n + 1 + f->n_drives;
	m->n_links = n + f->n_drives;
	for (int i = 0; i < m->n_links; i++)
		m->links[i].near = ram;
	return load_peers(p, f->nvlink, n, m, err);
}

/* Memory set aside for GPUs is none that the host has. */
static int set_aside(const struct hw_machine *m, const struct yaml_node *at, struct err *err)
{
	struct hw_memory *ram = &m->memories[hw_first_memory(m, HW_MEMORY_RAM)];
	char total[40], taken[40];
	double aside = 0;

	for (int i = 0; i < m->n_memories; i++)
		aside += m->memories[i].in_ram ? (double)m->memories[i].capacity_bytes : 0;
	if (aside > 0 && (double)ram->reserved_bytes + aside >= (double)ram->capacity_bytes)
		return err_at(err, ERR_INPUT, &at->pos, "ram: of %s, %s are set aside for GPUs (in_ram) and nothing is left",
			units_format(total, sizeof(total), (double)ram->capacity_bytes, UNIT_BYTES),
			units_format(taken, sizeof(taken), aside, UNIT_BYTES));
	ram->reserved_bytes += (uint64_t)aside;
	return 0;
}

/* How much of what GPUs read lies on other sockets. Where nobody knows what that costs it would say nothing. */
static int set_numa(struct hw_machine *m, int numa, const struct yaml_node *ram, struct err *err)
{
	const struct yaml_node *at = yaml_get(ram, "numa");
	unsigned sockets = hw_sockets(m);

	if (numa == NUMA_LOCAL)
		return 0;
	if (sockets < 2)
		return err_at(err, ERR_INPUT, &at->pos, "ram.numa: %s is of several sockets, and the machine has one (cpu0.sockets)", at->text);
	for (int i = 0; i < m->n_memories; i++) {
		const struct hw_link *link = hw_host_link(m, i);
		if (m->memories[i].kind == HW_MEMORY_GPU && link && !(hw_num_value(&link->remote_bytes_s) > 0))
			return err_at(err, ERR_INPUT, &at->pos,
				"ram.numa: %s needs '%s.remote', how fast it reaches memory of another socket", at->text, link->name);
	}
	m->remote_share = numa == NUMA_REMOTE ? 1 : 1 - 1.0 / sockets;
	return 0;
}

static int load_tree(struct profile *p, const struct yaml_node *root, struct hw_machine *m, struct err *err)
{
	struct top_raw raw;
	struct found found;
	int numa;

	if (profile_fill(p, HW_PARAMS_MACHINE, root, "machine", &raw, err))
		return -1;
	m->name = raw.name ? raw.name : "inline";
	m->description = raw.description;
	m->system = profile_systems[raw.system];
	m->kernels = raw.kernels;
	if (m->kernels && profile_must_be_map(m->kernels, "kernels", err))
		return -1;
	if (find_devices(root, &found, err) || check_complete(p, root, &found, err))
		return -1;
	if (load_devices(p, &found, m, &numa, err) || set_numa(m, numa, found.ram, err))
		return -1;
	return set_aside(m, found.ram, err);
}

int hw_machine_load_node(const struct yaml_node *node, struct arena *a, struct hw_machine **out,
	struct err *err)
{
	struct profile p = {.a = a};
	struct hw_machine *m = arena_new(a, struct hw_machine);
	struct yaml_node *root;

	if (profile_resolve(&p, node, &root, &m->file, err) || load_tree(&p, root, m, err))
		return -1;
	*out = m;
	return 0;
}

int hw_machine_load(const char *name_or_path, struct arena *a, struct hw_machine **out, struct err *err)
{
	const struct yaml_node *node = profile_new_scalar(a, NULL, name_or_path, &(struct err_pos){0});

	return hw_machine_load_node(node, a, out, err);
}
