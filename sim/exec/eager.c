#include "sim/exec/eager.h"

void eager_init(struct eager *e, const struct cost *cost, const struct hw_machine *m, bool in_order)
{
	int gpu = hw_first_device(m, HW_DEVICE_GPU);

	*e = (struct eager){
		.cost = cost,
		.gpu = gpu,
		.gpu_memory = m->devices[gpu].memory,
		.cpu = hw_first_device(m, HW_DEVICE_CPU),
		.ram = hw_first_memory(m, HW_MEMORY_RAM),
		.in_order = in_order,
	};
}

void eager_begin(struct eager *e, struct exec *x)
{
	e->x = x;
	e->host = e->stream = x->step_end;
	e->aside = 0;
}

void eager_busy(struct eager *e, double seconds)
{
	e->host = exec_wait(e->x, seconds, e->host);
}

void eager_move(struct eager *e, double bytes)
{
	struct platform_work work = {
		.bytes = bytes,
		.dtype = HW_FP32,
		.read_share = hw_num_value(&e->cost->host_copy),
		.latency_s = hw_num_value(&e->cost->host_op_s),
	};

	e->host = exec_kernel(e->x, e->cpu, &work, e->host, 0);
}

void eager_wait(struct eager *e, op_ref op)
{
	e->host = exec_join(e->x, e->host, op);
	eager_busy(e, hw_num_value(&e->cost->gpu_sync_s));
}

void eager_sync(struct eager *e)
{
	eager_wait(e, exec_join(e->x, e->stream, e->aside));
	e->stream = e->host;
	e->aside = 0;
}

/* The thread launches one kernel after another; the last cannot end before it was launched. */
static void run(struct eager *e, struct platform_work work, double kernels)
{
	const struct hw_device *d = &e->x->placement->machine->devices[e->gpu];

	work.dtype = platform_dtype(d, quant_f16());
	work.latency_s = kernels * hw_num_value(&e->cost->gpu_kernel_s);
	op_ref kernel = exec_kernel(e->x, e->gpu, &work, e->stream, e->host);
	eager_busy(e, kernels * hw_num_value(&e->cost->host_op_s));
	e->stream = exec_join(e->x, kernel, e->host);
}

void eager_multiply(struct eager *e, double bytes, double flops, double kernels)
{
	run(e, (struct platform_work){.bytes = bytes, .flops = flops,
		.read_share = hw_num_value(&e->cost->gpu_read[COST_16BIT]),
		.compute_share = hw_num_value(&e->cost->gpu_multiply[COST_16BIT])}, kernels);
}

void eager_elementwise(struct eager *e, double bytes, double kernels)
{
	run(e, (struct platform_work){.bytes = bytes}, kernels);
}

void eager_broadcast(struct eager *e, double bytes, double kernels)
{
	run(e, (struct platform_work){.bytes = bytes, .read_share = hw_num_value(&e->cost->gpu_broadcast)}, kernels);
}

void eager_attention(struct eager *e, double bytes, double flops, double kernels)
{
	run(e, (struct platform_work){.bytes = bytes, .flops = flops,
		.read_share = hw_num_value(&e->cost->gpu_attention),
		.compute_share = hw_num_value(&e->cost->gpu_multiply[COST_16BIT])}, kernels);
}

void eager_copy(struct eager *e, int from, int to, double bytes, bool pinned, double n)
{
	eager_busy(e, n * hw_num_value(&e->cost->copy_submit_s));
	e->stream = exec_copy_aside(e->x, from, to, bytes, pinned, e->stream, e->host);
	/* The driver moves what is not pinned itself, on the thread that asked. */
	if (!pinned)
		eager_wait(e, e->stream);
}

op_ref eager_copy_aside(struct eager *e, int from, int to, double bytes, bool pinned, double n, op_ref after)
{
	if (e->in_order) {
		e->stream = exec_join(e->x, e->stream, after);
		eager_copy(e, from, to, bytes, pinned, n);
		return e->stream;
	}
	eager_busy(e, n * hw_num_value(&e->cost->copy_submit_s));
	op_ref op = exec_copy_aside(e->x, from, to, bytes, pinned, after, e->host);
	if (!pinned)
		eager_wait(e, op);
	eager_beside(e, op);
	return op;
}

void eager_beside(struct eager *e, op_ref op)
{
	e->aside = exec_join(e->x, e->aside, op);
}
