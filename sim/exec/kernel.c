#include "sim/exec/kernel.h"

#include <math.h>

/* Keys times queries, softmax, scores times values, heads brought together. */
#define SCORES_NODES 4
/* Up to so many rows attention runs as products of vectors on a GPU. */
#define FEW_QUERIES 16

/* From one kernel of a GPU to the next. */
static double node_s(const struct kernel_place *k)
{
	const struct hw_num *launch = hw_num_value(&k->cost->gpu_launch_s) > 0 ? &k->cost->gpu_launch_s : &k->device->launch_s;

	return hw_num_value(k->one_by_one ? launch : &k->cost->gpu_kernel_s);
}

/* The CPU's part as the platform wants it: shares of what the machine has, so that others on its bus disturb it. */
static struct platform_work on_cpu(const struct kernel_place *k, struct cost_time time, double bytes, double flops,
	double nodes)
{
	const struct hw_device *d = k->device;
	double dram = hw_num_value(&k->machine->memories[d->memory].bandwidth_bytes_s);
	double reach = hw_num_value(&d->bandwidth_bytes_s);
	enum hw_dtype unit = platform_dtype(d, quant_f32()); /* any will do: the share is of it */

	if (!(reach > 0 && reach < dram))
		reach = dram;
	struct platform_work work = {
		.bytes = bytes,
		.flops = flops,
		.dtype = unit,
		.read_share = k->team.dram_bytes_s / reach,
		.alone_s = cost_cpu_seconds(&k->cost->cpu, time),
		.latency_s = nodes * k->team.barrier_s,
		.threads = (unsigned)lround(k->team.workers),
	};
	if (time.dot_s > 0)
		work.compute_share = flops / time.dot_s / hw_num_value(&d->flops_s[unit]);
	return work;
}

/* A GPU's part. Tiles are loaded, then multiplied, so that the two add up more than they overlap. */
static struct platform_work on_gpu(const struct kernel_place *k, const struct quant_type *type, double read_share,
	double compute_share, double bytes, double flops, double nodes)
{
	const struct hw_device *d = k->device;
	enum hw_dtype dtype = platform_dtype(d, type);
	double memory = hw_num_value(&k->machine->memories[d->memory].bandwidth_bytes_s);
	double reach = hw_num_value(&d->bandwidth_bytes_s);

	if (!(reach > 0 && reach < memory))
		reach = memory;
	return (struct platform_work){
		.bytes = bytes,
		.flops = flops,
		.dtype = dtype,
		.read_share = read_share,
		.compute_share = compute_share,
		.alone_s = bytes / (reach * read_share) + flops / (hw_num_value(&d->flops_s[dtype]) * compute_share),
		.latency_s = nodes * node_s(k),
	};
}

/* Of the rate of one large product, with so many rows an expert: tiles are padded, and experts differ in their rows. */
static double experts_share(const struct cost *c, double rows)
{
	double share = hw_num_value(&c->gpu_experts), half = hw_num_value(&c->gpu_expert_rows);

	return share > 0 ? share * (rows + half) / (rows + 3 * half) : 1;
}

/* A share that is not said is all. */
static double or_all(const struct hw_num *share)
{
	return hw_num_value(share) > 0 ? hw_num_value(share) : 1;
}

struct platform_work kernel_multiply(const struct kernel_place *k, const struct quant_type *type, double bytes,
	double flops, double nodes, enum cost_rows how)
{
	enum cost_class class = cost_class_of(type);

	if (k->device->kind == HW_DEVICE_CPU)
		return on_cpu(k, cost_cpu_multiply(&k->cost->cpu, &k->team, type, bytes, flops / 2, how), bytes, flops,
			nodes);
	double multiply = hw_num_value(&k->cost->gpu_multiply[class]);
	if (how != COST_TOGETHER && bytes > 0)
		multiply *= experts_share(k->cost, flops / 2 / (bytes * 8 / quant_bits_per_weight(type)));
	if (how != COST_TOGETHER && class == COST_16BIT)
		multiply *= or_all(&k->cost->gpu_experts_16bit);
	double read = hw_num_value(&k->cost->gpu_read[class]);
	if (type == quant_bf16()) {
		multiply *= or_all(&k->cost->gpu_bf16);
		read *= how != COST_TOGETHER ? or_all(&k->cost->gpu_bf16_experts) : 1;
	}
	return on_gpu(k, type, read, multiply, bytes, flops, nodes);
}

struct platform_work kernel_state(const struct kernel_place *k, double bytes, double flops, double nodes, bool early)
{
	const struct cost *c = k->cost;
	double graph = hw_num_value(&c->cpu.early_state_bytes_s), passes = early ? hw_num_value(&c->gpu_early_state) : 0;

	if (k->device->kind == HW_DEVICE_CPU) {
		struct cost_time time = {.memory_s = early && graph > 0 ? bytes / graph : 2 * bytes / k->team.dram_bytes_s};
		return on_cpu(k, time, 2 * bytes, flops, nodes);
	}
	return on_gpu(k, quant_f32(), hw_num_value(&c->gpu_attention), 1, (passes > 0 ? passes : 2) * bytes, flops,
		nodes);
}

struct platform_work kernel_scan(const struct kernel_place *k, double bytes, double nodes, double tokens, bool early)
{
	const struct cost *c = k->cost;
	double by_graph = early ? hw_num_value(&c->gpu_early_scan_s) : 0;
	struct platform_work work = on_gpu(k, quant_f32(), hw_num_value(&c->gpu_attention), 1, 2 * bytes, 0, nodes);

	work.latency_s += tokens * (by_graph > 0 ? by_graph : hw_num_value(&c->gpu_scan_s));
	return work;
}

/* What few rows read of a type of a cache, times its own size: of 16 bits all heads at once, of fewer each head for itself, or
   all heads at once what was read, written in 16 bits and read again. */
static double times_read(const struct kernel_place *k, const struct quant_type *type, double heads)
{
	if (cost_class_of(type) == COST_16BIT)
		return 1;
	return k->expands_cache && fmod(heads, 2) == 0 ? 1 + 2 * 16 / quant_bits_per_weight(type) : heads;
}

struct platform_work kernel_attention(const struct kernel_place *k, const struct model_layer *l,
	const struct kvcache_types *types, double bytes, double pairs, double queries)
{
	double flops = model_attention_flops(l, 1, pairs);

	if (k->device->kind == HW_DEVICE_CPU)
		return on_cpu(k, cost_cpu_attention(&k->cost->cpu, &k->team, l, types, bytes, pairs, queries), bytes,
			flops, 1);
	if (queries < FEW_QUERIES && l->n_kv_head && !l->mla_dim_k) {
		double keys = l->head_dim_k * quant_bits_per_weight(types->k);
		double values = l->head_dim_v * quant_bits_per_weight(types->v), heads = (double)l->n_head / l->n_kv_head;

		bytes *= (keys * times_read(k, types->k, heads) + values * times_read(k, types->v, heads)) / (keys + values);
	}
	const struct hw_num *rate = &k->cost->gpu_multiply[COST_16BIT];
	if (hw_num_value(&k->cost->gpu_attention_many) > 0)
		rate = &k->cost->gpu_attention_many;
	if (l->mla_dim_k && hw_num_value(&k->cost->gpu_mla) > 0)
		rate = &k->cost->gpu_mla;
	return on_gpu(k, types->k, hw_num_value(&k->cost->gpu_attention), hw_num_value(rate), bytes, flops, 1);
}

struct platform_work kernel_scores(const struct kernel_place *k, const struct model_layer *l, const struct kvcache_types *types,
	double bytes, const struct cost_scores *s)
{
	return on_cpu(k, cost_cpu_scores(&k->cost->cpu, &k->team, l, types, bytes, s), bytes,
		model_attention_flops(l, 1, s->queries * s->entries), SCORES_NODES);
}
