/*
 * bench_core.c - operations per CPU second of the core: a streamed 70B model, 80 layers of 12 operations.
 *
 * Each layer: two weight copies from RAM over PCIe into one of two staging buffers, a KV copy out, and nine
 * kernels on the GPU's memory and arithmetic. 1,000 decode steps, unrolled two at a time, so that memory
 * stays that of two steps: the peak is printed as well.
 *
 *	bench_core [STEPS]
 */
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "sim/core/sim.h"

enum { RAM, H2D, D2H, BOTH, HBM, COMPUTE, N_RESOURCES };
enum { COPY_IN, COPY_OUT, GPU, N_UNITS };

#define LAYERS 80
#define KERNELS 9
#define BUFFERS 2

struct bench {
	struct sim sim;
	uint64_t steps, next;
	op_ref step_end, last, buffer[BUFFERS];
};

static op_ref add(struct bench *b, int unit, double bytes, const struct maxmin_hop *hop, int n_hops, op_ref after,
	op_ref after2)
{
	struct sim_op op = {
		.unit = unit,
		.stream = unit == GPU ? SIM_NONE : unit,
		.latency = 1310000,
		.amount = bytes,
		.cap_resource = SIM_NONE,
		.hop = hop,
		.n_hops = n_hops,
	};
	op_ref ref = sim_add(&b->sim, &op);

	sim_depend(&b->sim, ref, after);
	sim_depend(&b->sim, ref, after2);
	sim_commit(&b->sim, ref);
	return ref;
}

static void add_layer(struct bench *b, int layer)
{
	static const struct maxmin_hop in[] = {{RAM, 1}, {H2D, 1}, {BOTH, 1}, {HBM, 1}};
	static const struct maxmin_hop out[] = {{HBM, 1}, {D2H, 1}, {BOTH, 1}, {RAM, 1}};
	static const struct maxmin_hop kernel[] = {{HBM, 1}, {COMPUTE, 3.56}};
	static const double kernel_bytes[KERNELS] = {16e3, 47e6, 32e3, 8.4e6, 38e6, 16e3, 132e6, 132e6, 132e6};
	op_ref *buffer = &b->buffer[layer % BUFFERS];
	op_ref attn = add(b, COPY_IN, 85e6, in, 4, *buffer, 0);
	op_ref ffn = add(b, COPY_IN, 396e6, in, 4, *buffer, 0);

	for (int k = 0; k < KERNELS; k++) {
		op_ref fetched = k == 1 ? attn : k == 6 ? ffn : 0;
		b->last = add(b, GPU, kernel_bytes[k], kernel, 2, b->last, fetched);
		if (k == 3)
			add(b, COPY_OUT, 4096, out, 4, b->last, 0);
	}
	*buffer = b->last;
}

static void add_step(struct bench *b)
{
	b->last = b->step_end;
	for (int i = 0; i < LAYERS; i++)
		add_layer(b, i);

	struct sim_op end = {.unit = SIM_NONE, .stream = SIM_NONE, .cap_resource = SIM_NONE, .notify = true};
	b->step_end = sim_add(&b->sim, &end);
	sim_depend(&b->sim, b->step_end, b->last);
	sim_commit(&b->sim, b->step_end);
	b->next++;
}

static void on_done(void *ctx, const struct op *op, sim_time now)
{
	struct bench *b = ctx;

	(void)op;
	(void)now;
	if (b->next < b->steps)
		add_step(b);
}

int main(int argc, char **argv)
{
	static const char *const names[N_RESOURCES] = {"ram", "h2d", "d2h", "both", "hbm", "compute"};
	static const double capacity[N_RESOURCES] = {71.4e9, 24.9e9, 26.6e9, 37.2e9, 921e9, 82.6e12};
	static const char *const units[N_UNITS] = {"copy_in", "copy_out", "gpu"};
	static const uint32_t places[N_UNITS] = {1, 1, 1};
	struct bench b = {.steps = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000};
	struct arena a;
	struct err err = {0};
	struct sim_config config = {
		.n_resources = N_RESOURCES,
		.resource_name = names,
		.capacity = capacity,
		.n_units = N_UNITS,
		.unit_name = units,
		.unit_places = places,
		.n_streams = N_UNITS,
		.max_hops = 4,
		.charges = true,
		.done = on_done,
		.done_ctx = &b,
	};

	arena_init(&a, NULL, NULL);
	sim_init(&b.sim, &config, &a);
	clock_t began = clock();
	add_step(&b);
	if (b.steps > 1)
		add_step(&b);
	if (sim_run(&b.sim, &err)) {
		err_print(&err, stderr);
		return 1;
	}
	double cpu_s = (double)(clock() - began) / CLOCKS_PER_SEC;
	struct rusage ru;
	getrusage(RUSAGE_SELF, &ru);
	printf("%llu operations, %.3g s simulated, %.3f s CPU, %.2f million operations/s, %zu KiB of arena, %ld KiB "
	       "resident\n",
		(unsigned long long)b.sim.n_done, sim_seconds(b.sim.now), cpu_s, (double)b.sim.n_done / cpu_s / 1e6,
		a.total_bytes / 1024, ru.ru_maxrss);
	arena_release(&a);
	return 0;
}
