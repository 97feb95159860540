#include "sim/run/plain_kernels.h"

#include <math.h>
#include <string.h>

#include "hw/measure_kernels.h"
#include "sim/exec/platform.h"

static enum hw_dtype dtype_of(const char *name)
{
	enum hw_dtype t = 0;

	while (t + 1 < HW_DTYPE_N && strcmp(hw_dtype_name(t), name) != 0)
		t++;
	return t;
}

/* Rates of one thread with weights of that type, of whichever processor was measured: a thread of it stands for a GPU. */
static const struct hw_kernel *rates_of(const struct hw_machine *m, const char *type)
{
	for (int i = 0; i < m->n_devices; i++)
		for (int k = 0; k < m->devices[i].n_kernels; k++)
			if (strcmp(m->devices[i].kernels[k].type, type) == 0)
				return &m->devices[i].kernels[k];
	return NULL;
}

/* Seconds of one thread: whole blocks of columns at the rate of many, the others one by one. 0: no such rates. */
static double products_s(const struct hw_machine *m, const struct opg_op *o)
{
	const struct hw_kernel *rates = rates_of(m, o->type);
	const struct kernel_format *format = NULL;

	for (size_t i = 0; i < KERNEL_TYPE_N; i++)
		if (strcmp(kernel_format[i].name, o->type) == 0)
			format = &kernel_format[i];
	double one = rates ? hw_num_value(&rates->decode_bytes_s) : 0;
	if (!(one > 0) || !format)
		return 0;

	double many = hw_num_value(&rates->prefill_flops_s);
	double column_flops = 2.0 * KERNEL_CHUNK / (double)format->chunk_bytes * o->bytes;
	double columns = fmax(1, round(o->flops / column_flops));
	double together = many > 0 ? floor(columns / KERNEL_COLUMNS) * KERNEL_COLUMNS : 0;
	return (columns - together) * o->bytes / one + (together > 0 ? together * column_flops / many : 0);
}

/* Of the device's memory that so many threads of it reach. */
static double read_share(const struct hw_machine *m, const struct hw_device *d, unsigned threads)
{
	double all = hw_num_value(&m->memories[d->memory].bandwidth_bytes_s);
	double reach = hw_num_value(&d->bandwidth_bytes_s), thread = hw_num_value(&d->thread_bandwidth_bytes_s);

	if (!(reach > 0))
		reach = all;
	return thread > 0 ? fmin(1, threads * thread / fmin(reach, all)) : 1;
}

static void make_plain(const struct hw_machine *m, const struct platform *p, struct opg_op *o, int memory, struct arena *a)
{
	const struct hw_device *d = &m->devices[o->device];
	enum hw_dtype dtype = dtype_of(o->dtype);
	double peak = hw_num_value(&d->flops_s[dtype]), products = products_s(m, o);
	unsigned threads = o->threads ? o->threads : 1;
	struct platform_work work = {
		.bytes = o->bytes,
		.flops = o->flops,
		.dtype = dtype,
		.read_share = read_share(m, d, threads),
		.latency_s = hw_num_value(&d->launch_s),
	};
	struct platform_path path = {0};
	struct sim_op op = {0};

	if (d->cores)
		work.compute_share = (double)(threads < d->cores ? threads : d->cores) / d->cores;
	if (products > 0 && o->flops > 0)
		work.compute_share = o->flops / (products / threads * peak);
	if (memory == d->memory)
		platform_kernel(p, o->device, &work, &path, &op);
	else
		platform_kernel_far(p, o->device, memory, 1, 1, &work, &path, &op);

	struct maxmin_hop *hop = arena_array(a, struct maxmin_hop, (size_t)op.n_hops);
	memcpy(hop, op.hop, (size_t)op.n_hops * sizeof(*hop));
	o->hop = hop;
	o->n_hops = op.n_hops;
	o->amount = op.amount;
	o->cap = op.cap;
	o->charge = op.cap_resource;
	o->latency = op.latency;
}

void plain_kernels(const struct hw_machine *m, struct opg *g, struct arena *a)
{
	struct platform p;

	platform_init(&p, m, a);
	for (size_t i = 0; i < g->ops.n; i++) {
		struct opg_op *o = &g->ops.at[i];
		if (o->kind == OPG_KERNEL && (o->bytes > 0 || o->flops > 0))
			make_plain(m, &p, o,
				o->from == OPG_NONE ? m->devices[o->device].memory : g->buffers.at[o->from].memory, a);
	}
}
