#include "sim/exec/kernel.h"

#include <math.h>

/* From one kernel of a GPU to the next. */
static double node_s(const struct kernel_place *k)
{
	return hw_num_value(k->one_by_one ? &k->device->launch_s : &k->cost->gpu_kernel_s);
}

/* The CPU's part as the platform wants it: shares of what the machine has, so that others on its bus disturb it. */
static struct platform_work on_cpu(const struct kernel_place *k, struct cost_time time, double bytes, double flops,
	double nodes)
{
	const struct hw_device *d = k->device;
	double dram = hw_num_value(&k->machine->memories[d->memory].bandwidth_bytes_s);
	double reach = hw_num_value(&d->bandwidth_bytes_s);
	enum hw_dtype unit = platform_dtype(d, quant_find("f32")); /* any will do: the share is of it */

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

struct platform_work kernel_multiply(const struct kernel_place *k, const struct quant_type *type, double bytes,
	double flops, double nodes, enum cost_rows how)
{
	enum cost_class class = cost_class_of(type);

	if (k->device->kind == HW_DEVICE_CPU)
		return on_cpu(k, cost_cpu_multiply(&k->cost->cpu, &k->team, type, bytes, flops / 2, how), bytes, flops,
			nodes);
	/* Many rows are bound by arithmetic, so the share of the bandwidth matters for few alone. */
	return (struct platform_work){
		.bytes = bytes,
		.flops = flops,
		.dtype = platform_dtype(k->device, type),
		.read_share = hw_num_value(&k->cost->gpu_read[class]),
		.compute_share = hw_num_value(&k->cost->gpu_multiply[class]),
		.latency_s = nodes * node_s(k),
	};
}

struct platform_work kernel_attention(const struct kernel_place *k, const struct model_layer *l,
	const struct kvcache_types *types, double bytes, double pairs, double queries)
{
	double flops = model_attention_flops(l, 1, pairs);

	if (k->device->kind == HW_DEVICE_CPU)
		return on_cpu(k, cost_cpu_attention(&k->cost->cpu, &k->team, l, types, bytes, pairs, queries), bytes,
			flops, 1);
	return (struct platform_work){
		.bytes = bytes,
		.flops = flops,
		.dtype = platform_dtype(k->device, types->k),
		.read_share = hw_num_value(&k->cost->gpu_attention),
		.compute_share = hw_num_value(&k->cost->gpu_multiply[COST_16BIT]),
		.latency_s = node_s(k),
	};
}
