#include "sim/exec/kernel.h"

#include <math.h>

/* From so many rows on a CPU multiplies by blocks. */
#define MANY_ROWS 32

static unsigned threads(const struct kernel_place *k)
{
	return k->device->kind == HW_DEVICE_CPU ? (unsigned)lround(k->thread_share * k->device->cores) : 0;
}

/* From one kernel, or one of the host's tasks, to the next. */
static double node_s(const struct kernel_place *k)
{
	return hw_num_value(k->device->kind == HW_DEVICE_GPU && !k->one_by_one ? &k->cost->gpu_kernel_s : &k->device->launch_s);
}

struct platform_work kernel_multiply(const struct kernel_place *k, const struct quant_type *type, double bytes,
	double flops, uint64_t rows, int nodes)
{
	enum cost_class class = cost_class_of(type);
	struct platform_work work = {.bytes = bytes, .flops = flops, .dtype = platform_dtype(k->device, type)};

	if (k->device->kind == HW_DEVICE_GPU) {
		/* Many rows are bound by arithmetic, so the share of the bandwidth matters for few alone. */
		work.read_share = hw_num_value(&k->cost->gpu_read[class]);
		work.compute_share = hw_num_value(&k->cost->gpu_multiply[class]);
	} else {
		work.dtype = HW_FP32;
		work.read_share = hw_num_value(&k->cost->cpu_read);
		work.compute_share = k->thread_share * hw_num_value(rows >= MANY_ROWS ? &k->cost->cpu_multiply_many[class] :
										      &k->cost->cpu_multiply_few[class]);
	}
	work.latency_s = nodes * node_s(k);
	work.threads = threads(k);
	return work;
}

struct platform_work kernel_attention(const struct kernel_place *k, const struct quant_type *key_type, double bytes,
	double flops)
{
	bool gpu = k->device->kind == HW_DEVICE_GPU;

	return (struct platform_work){
		.bytes = bytes,
		.flops = flops,
		.dtype = gpu ? platform_dtype(k->device, key_type) : HW_FP32,
		.read_share = hw_num_value(gpu ? &k->cost->gpu_attention : &k->cost->cpu_attention),
		.compute_share = gpu ? hw_num_value(&k->cost->gpu_multiply[COST_16BIT]) :
				       k->thread_share * hw_num_value(&k->cost->cpu_multiply_many[COST_16BIT]),
		.latency_s = node_s(k),
		.threads = threads(k),
	};
}
