#include "hw/hw.h"

#include <dirent.h>
#include <sys/stat.h>

#include "base/csv.h"
#include "base/datadir.h"
#include "base/units.h"
#include "hw/hw_params.h"
#include "hw/profile.h"
#include "sim/exec/platform.h"
#include "tests/test.h"

static struct arena a;

static void setup(void)
{
	arena_init(&a, NULL, NULL);
}

static struct hw_machine *load(const char *name)
{
	struct hw_machine *m = NULL;
	struct err err;

	assert_ok(hw_machine_load(name, &a, &m, &err), err);
	return m;
}

static struct yaml_node *parse(const char *text)
{
	struct yaml_node *root = NULL;
	struct err err;

	assert_ok(yaml_read_text(text, strlen(text), "t.yaml", &a, &root, &err), err);
	return root;
}

static struct hw_machine *inline_machine(const char *text)
{
	struct hw_machine *m = NULL;
	struct err err;

	assert_ok(hw_machine_load_node(parse(text), &a, &m, &err), err);
	return m;
}

/* Loading text fails, at this place of t.yaml, with this message. */
static void check_refused(const char *text, int line, int col, const char *msg)
{
	struct hw_machine *m;
	struct err err = {0};

	if (!hw_machine_load_node(parse(text), &a, &m, &err))
		ck_abort_msg("'%s' was loaded", text);
	assert_err(err, ERR_INPUT, msg);
	ck_assert_str_eq(err.file, "t.yaml");
	ck_assert_int_eq(err.line, line);
	ck_assert_int_eq(err.col, col);
}

/* The number by its dotted name. */
static struct hw_num *number(struct hw_machine *m, const char *name)
{
	struct hw_num_ref *refs;
	size_t n = hw_numbers(m, &a, &refs);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(refs[i].name, name))
			return refs[i].num;
	ck_abort_msg("%s has no %s", m->name, name);
}

static double value(struct hw_machine *m, const char *name)
{
	return hw_num_value(number(m, name));
}

static struct hw_link *link_of(struct hw_machine *m, const char *name)
{
	for (int i = 0; i < m->n_links; i++)
		if (!strcmp(m->links[i].name, name))
			return &m->links[i];
	ck_abort_msg("%s has no %s", m->name, name);
}

/* ---- the three machines ---- */

START_TEST(desktop)
{
	setup();
	struct hw_machine *m = load("desktop-rtx4090-ddr5");

	ck_assert_str_eq(m->name, "desktop-rtx4090-ddr5");
	ck_assert_ptr_nonnull(strstr(m->file, "hw/machines/desktop-rtx4090-ddr5.yaml"));
	ck_assert_int_eq(m->n_memories, 3);
	ck_assert_int_eq(m->n_devices, 2);
	ck_assert_int_eq(m->n_links, 2);
	const struct hw_memory *gpu = &m->memories[hw_find_memory(m, "gpu0")];
	ck_assert_uint_eq(gpu->capacity_bytes, UINT64_C(24564) << 20); /* nvidia-smi */
	ck_assert_uint_gt(gpu->reserved_bytes, UINT64_C(300) << 20);
	ck_assert_uint_lt(gpu->reserved_bytes, UINT64_C(1) << 30);
	ck_assert_uint_eq(m->memories[hw_find_memory(m, "ram")].capacity_bytes, UINT64_C(64) << 30);
	ck_assert_uint_eq(m->memories[hw_find_memory(m, "nvme0")].capacity_bytes, UINT64_C(2000000000000));
	assert_close(hw_num_peak(number(m, "gpu0.bandwidth")), 1008e9, 1e-12);
	assert_close(value(m, "gpu0.bandwidth"), 920e9, 1e-12);			  /* local copy 909-923 */
	assert_close(hw_num_peak(number(m, "gpu0.flops.fp16")), 165.2e12, 1e-12); /* FP32 accumulate, dense */
	assert_close(value(m, "gpu0.flops.fp16"), 165.2e12, 0.05);
	assert_close(hw_num_peak(number(m, "ram.bandwidth")), 5600e6 * 8 * 2, 1e-12);
	assert_close(value(m, "ram.bandwidth"), 0.82 * 89.6e9, 1e-12);
	ck_assert_str_eq(hw_num_basis(number(m, "ram.bandwidth")), "peak");
	assert_close(hw_num_peak(number(m, "gpu0.link.h2d")), 31.508e9, 1e-4);
	ck_assert(value(m, "gpu0.link.h2d") >= 23.9e9 && value(m, "gpu0.link.h2d") <= 26.2e9);
	assert_close(value(m, "gpu0.link.d2h"), 26.55e9, 0.01);
	assert_close(value(m, "gpu0.link.both"), 2 * 18.6e9, 1e-12);
	assert_close(value(m, "gpu0.link.latency"), 2.7e-6, 1e-12);
	const struct hw_link *link = link_of(m, "gpu0.link");
	ck_assert_int_eq((int)link->kind, HW_LINK_PCIE);
	ck_assert_uint_eq(link->gen, 4);
	ck_assert_uint_eq(link->width, 16);
	assert_close(link->pageable_dram_weight, 3, 0);
	ck_assert_int_eq(link->near, hw_find_memory(m, "ram"));
	ck_assert_int_eq(link->far, hw_find_memory(m, "gpu0"));
	assert_close(value(m, "nvme0.read"), 5.9e9, 1e-12);
	ck_assert_int_eq((int)link_of(m, "nvme0.link")->kind, HW_LINK_DRIVE);
	ck_assert_ptr_eq(number(m, "nvme0.read"), &link_of(m, "nvme0.link")->d2h.num);
	const struct hw_device *gpu_device = &m->devices[hw_first_device(m, HW_DEVICE_GPU)];
	ck_assert_str_eq(gpu_device->name, "gpu0");
	ck_assert_int_eq(gpu_device->memory, hw_find_memory(m, "gpu0"));
	ck_assert_uint_eq(gpu_device->copy_engines, 2);
	const struct hw_device *cpu = &m->devices[hw_first_device(m, HW_DEVICE_CPU)];
	ck_assert_uint_eq(cpu->cores, 16);
	ck_assert_int_eq(cpu->memory, hw_find_memory(m, "ram"));
	assert_close(hw_num_peak(&cpu->flops_s[HW_FP32]), 16 * 4.5e9 * 32, 1e-12);
	ck_assert_str_eq(hw_num_basis(&cpu->flops_s[HW_FP8]), "unknown");
}
END_TEST

START_TEST(gh200)
{
	setup();
	struct hw_machine *m = load("gh200");
	const struct hw_link *link = link_of(m, "gpu0.link");

	ck_assert_uint_eq(m->memories[hw_find_memory(m, "gpu0")].capacity_bytes, UINT64_C(97871) << 20);
	assert_close(value(m, "gpu0.link.h2d"), 378e9, 1e-12);
	assert_close(value(m, "gpu0.link.d2h"), 297e9, 1e-12);
	assert_close(hw_num_peak(&link->h2d.num), 450e9, 1e-12);
	ck_assert_int_eq((int)link->kind, HW_LINK_C2C);
	ck_assert_uint_eq(link->gen, 0);
	/* Pageable memory is as good as pinned: the GPU reads it by itself. */
	assert_close(hw_rate_at(&link->h2d_pageable, 1e6), 378e9, 1e-12);
	assert_close(hw_rate_at(&link->d2h_pageable, 1e6), 297e9, 1e-12);
	assert_close(link->pageable_dram_weight, 1, 0);
	/* The memory behind the link must be able to feed it. */
	ck_assert(value(m, "ram.bandwidth") >= value(m, "gpu0.link.h2d"));
	ck_assert(value(m, "ram.bandwidth") <= 384e9);
	assert_close(value(m, "gpu0.bandwidth"), 3728e9, 1e-12);
	assert_close(value(m, "gpu0.flops.bf16"), 828.6e12, 1e-12);
	assert_close(hw_num_peak(number(m, "gpu0.flops.fp8")), 1979e12, 1e-12); /* dense */
	ck_assert_uint_eq(m->devices[hw_find_device(m, "cpu0")].cores, 72);
}
END_TEST

START_TEST(cpu_only)
{
	setup();
	struct hw_machine *m = load("cpu-epyc9654");

	ck_assert_int_eq(hw_first_device(m, HW_DEVICE_GPU), -1);
	ck_assert_int_eq(hw_first_memory(m, HW_MEMORY_GPU), -1);
	ck_assert_int_eq(hw_first_memory(m, HW_MEMORY_RAM), hw_find_memory(m, "ram"));
	assert_close(hw_num_peak(number(m, "ram.bandwidth")), 460.8e9, 1e-12);
	assert_close(value(m, "ram.bandwidth"), 378e9, 0.01); /* STREAM of one socket */
	ck_assert_uint_eq(m->devices[hw_find_device(m, "cpu0")].cores, 96);
}
END_TEST

/* ---- every machine against the numbers its parts cite ---- */

enum face { PEAK, VALUE };

START_TEST(machine_facts)
{
	static const struct {
		const char *machine, *number;
		enum face face;
		double want, tolerance;
	} facts[] = {
		/* peaks: datasheets, PCIe arithmetic, MT/s x 8 B x channels; values: what was measured, with the
		   spread that its source allows */
		{"desktop-rtx3090-ddr4", "gpu0.bandwidth", PEAK, 936e9, 1e-12},
		{"desktop-rtx3090-ddr4", "gpu0.bandwidth", VALUE, 839e9, 1e-12},
		{"desktop-rtx3090-ddr4", "gpu0.flops.fp16", PEAK, 71.2e12, 1e-12}, /* FP32 accumulation */
		{"desktop-rtx3090-ddr4", "gpu0.link.h2d", PEAK, 31.508e9, 1e-4},
		{"desktop-rtx3090-ddr4", "ram.bandwidth", PEAK, 51.2e9, 1e-12},
		{"desktop-rtx5090-ddr5", "gpu0.bandwidth", PEAK, 1792e9, 1e-12},
		{"desktop-rtx5090-ddr5", "gpu0.bandwidth", VALUE, 1545e9, 1e-12},
		{"desktop-rtx5090-ddr5", "gpu0.flops.fp16", PEAK, 209.5e12, 1e-12},
		{"desktop-rtx5090-ddr5", "gpu0.flops.fp16", VALUE, 229.5e12, 0.04}, /* 221 to 238 */
		{"desktop-rtx5090-ddr5", "gpu0.link.h2d", VALUE, 56.38e9, 0.03},
		{"desktop-rtx5090-ddr5", "gpu0.link.both", VALUE, 88.5e9, 1e-12},
		{"desktop-rtx5090-ddr5", "ram.bandwidth", PEAK, 96e9, 1e-12},
		{"desktop-rtx5090-ddr5", "ram.bandwidth", VALUE, 88e9, 0.12}, /* a 9950X's owner */
		{"laptop-rtx2060", "gpu0.bandwidth", PEAK, 336e9, 1e-12},
		{"laptop-rtx2060", "gpu0.link.h2d", VALUE, 12.1e9, 1e-12},
		{"laptop-rtx4060", "gpu0.bandwidth", PEAK, 256e9, 1e-12},
		{"laptop-rtx4060", "gpu0.flops.fp16", VALUE, 30.82e12, 1e-12},
		{"laptop-rtx4060", "gpu0.link.h2d", VALUE, 12.98e9, 0.04}, /* a laptop's, at x8 */
		{"gcp-t4-208gb", "gpu0.bandwidth", VALUE, 240e9, 1e-12},
		{"gcp-t4-208gb", "gpu0.flops.fp16", PEAK, 65e12, 1e-12},
		{"gcp-t4-208gb", "gpu0.link.h2d", VALUE, 12.89 * (1 << 30), 1e-4}, /* FlexGen's constants */
		{"gcp-t4-208gb", "gpu0.link.h2d", PEAK, 15.754e9, 1e-4},
		{"gcp-t4-208gb", "nvme0.read", VALUE, 2e9, 1e-12},
		{"gcp-t4-208gb", "nvme0.write", VALUE, 1e9, 1e-12},
		{"gcp-t4-208gb", "ram.bandwidth", VALUE, 90.9e9, 1e-12},
		{"server-a100-80gb", "gpu0.bandwidth", PEAK, 2039e9, 1e-12},
		{"server-a100-80gb", "gpu0.bandwidth", VALUE, 1769e9, 1e-12},
		{"server-a100-80gb", "gpu0.flops.bf16", PEAK, 312e12, 1e-12},
		{"server-a100-80gb", "gpu0.flops.bf16", VALUE, 271.2e12, 0.05}, /* best shape */
		{"server-a100-80gb", "gpu0.link.h2d", VALUE, 26e9, 0.05},
		{"server-a100-80gb", "ram.bandwidth", PEAK, 204.8e9, 1e-12},
		{"server-h100", "gpu0.bandwidth", PEAK, 3350e9, 1e-12},
		{"server-h100", "gpu0.flops.fp16", PEAK, 989e12, 1e-12}, /* 1979 is sparse */
		{"server-h100", "gpu0.flops.fp8", VALUE, 1402.6e12, 1e-12},
		{"server-h100", "gpu0.link.h2d", VALUE, 55.3e9, 0.03},
		{"server-h100", "ram.bandwidth", PEAK, 307.2e9, 1e-12},
		{"server-8xh100", "gpu7.link.h2d", VALUE, 55.3e9, 0.03},
		{"server-8xh100", "ram.bandwidth", PEAK, 614.4e9, 1e-12},
		{"server-8xh100", "cpu0.flops.fp32", PEAK, 2 * 56 * 2.0e9 * 64, 1e-12},
		{"server-h200", "gpu0.bandwidth", PEAK, 4800e9, 1e-12},
		{"server-h200", "gpu0.bandwidth", VALUE, 3534e9, 1e-12},
		{"server-h200", "gpu0.flops.fp16", VALUE, 759.4e12, 1e-12},
		{"server-h200", "nvme0.read", VALUE, 48e9, 1e-12},
		{"gh200", "gpu0.bandwidth", PEAK, 4000e9, 1e-12},
		{"dual-xeon6454s-rtx4090", "ram.bandwidth", PEAK, 4800e6 * 8 * 16, 1e-12},
		{"dual-xeon6454s-rtx4090", "cpu0.flops.fp32", PEAK, 64 * 2.2e9 * 64, 1e-3},
		{"dual-epyc9355-rtxpro6000", "ram.bandwidth", VALUE, 720e9, 1e-12},
		{"dual-epyc9355-rtxpro6000", "gpu0.bandwidth", PEAK, 1792e9, 1e-12},
		{"dual-epyc9355-rtxpro6000", "gpu0.flops.bf16", VALUE, 413.7e12, 1e-12},
		{"dgx-spark", "ram.bandwidth", PEAK, 273e9, 1e-12},
		{"dgx-spark", "ram.bandwidth", VALUE, 232e9, 1e-12},
		{"dgx-spark", "nvme0.read", VALUE, 5.58e9, 1e-12},
		{"strix-halo", "ram.bandwidth", PEAK, 8000e6 * 8 * 4, 1e-12},
		{"strix-halo", "ram.bandwidth", VALUE, 212.6e9, 1e-12},
		{"strix-halo", "cpu0.bandwidth", VALUE, 117.9e9, 1e-12},
		{"strix-halo", "gpu0.flops.fp16", PEAK, 59e12, 1e-12},
		{"mac-studio-m2-ultra", "ram.bandwidth", PEAK, 800e9, 1e-12},
		{"mac-studio-m2-ultra", "ram.bandwidth", VALUE, 708e9, 1e-12},
		{"mac-studio-m2-ultra", "cpu0.bandwidth", VALUE, 311e9, 1e-12},
		{"mac-studio-m2-ultra", "gpu0.flops.fp32", PEAK, 27.2e12, 1e-12},
	};

	for (size_t i = 0; i < ARRAY_LEN(facts); i++) {
		setup();
		const struct hw_num *num = number(load(facts[i].machine), facts[i].number);
		double got = facts[i].face == PEAK ? hw_num_peak(num) : hw_num_value(num);
		ck_assert_msg(fabs(got - facts[i].want) <= facts[i].tolerance * facts[i].want,
			"%s %s is %.17g, not %.17g", facts[i].machine, facts[i].number, got, facts[i].want);
		arena_release(&a);
	}
}
END_TEST

START_TEST(machine_sizes)
{
	static const struct {
		const char *machine, *memory;
		double bytes;
	} facts[] = {
		/* MiB: nvidia-smi */
		{"desktop-rtx3090-ddr4", "gpu0", 24576.0 * (1 << 20)},
		{"desktop-rtx5090-ddr5", "gpu0", 32607.0 * (1 << 20)},
		{"gcp-t4-208gb", "gpu0", 15360.0 * (1 << 20)},
		{"gcp-t4-208gb", "ram", 208.0 * (1 << 30)},
		{"gcp-t4-208gb", "nvme0", 1.5e12},
		{"server-h100", "gpu0", 81559.0 * (1 << 20)},
		{"server-8xh100", "gpu7", 81559.0 * (1 << 20)},
		{"server-h200", "gpu0", 143771.0 * (1 << 20)},
		{"dual-epyc9355-rtxpro6000", "gpu0", 97887.0 * (1 << 20)},
		{"dual-epyc9355-rtxpro6000", "ram", 736.0 * (1 << 30)},
		{"dual-xeon6454s-rtx4090", "ram", 1024.0 * (1 << 30)},
		{"dgx-spark", "ram", 128.0 * (1 << 30)},
		{"mac-studio-m2-ultra", "ram", 192.0 * (1 << 30)},
	};

	for (size_t i = 0; i < ARRAY_LEN(facts); i++) {
		setup();
		const struct hw_machine *m = load(facts[i].machine);
		assert_close((double)m->memories[hw_find_memory(m, facts[i].memory)].capacity_bytes,
			facts[i].bytes, 1e-15);
		arena_release(&a);
	}
	setup();
	const struct hw_machine *m = load("dgx-spark");
	const struct hw_memory *ram = &m->memories[hw_find_memory(m, "ram")];
	/* what vLLM reports as total */
	assert_close((double)(ram->capacity_bytes - ram->reserved_bytes) / (1 << 30), 121.69, 1e-3);
	m = load("mac-studio-m2-ultra");
	ram = &m->memories[hw_find_memory(m, "ram")];
	/* what the GPU gets of 192 GB */
	assert_close((double)(ram->capacity_bytes - ram->reserved_bytes) / (double)ram->capacity_bytes,
		147.0 / 192, 0.03);
	m = load("dual-xeon6454s-rtx4090");
	ck_assert_uint_eq(m->devices[hw_find_device(m, "cpu0")].cores, 64);
}
END_TEST

/* ---- unified memory ---- */

START_TEST(unified_memory)
{
	static const char *const names[] = {"dgx-spark", "strix-halo", "mac-studio-m2-ultra"};
	int link[HW_MAX_HOPS];
	bool forward[HW_MAX_HOPS];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		setup();
		struct hw_machine *m = load(names[i]);
		int ram = hw_find_memory(m, "ram");
		ck_assert_int_eq(hw_first_memory(m, HW_MEMORY_GPU), -1);
		ck_assert_int_eq(hw_find_memory(m, "gpu0"), -1);
		ck_assert_int_eq(m->devices[hw_find_device(m, "gpu0")].memory, ram);
		ck_assert_uint_eq(m->devices[hw_find_device(m, "gpu0")].copy_engines, 0);
		ck_assert_int_eq(m->devices[hw_find_device(m, "cpu0")].memory, ram);
		ck_assert_int_eq(hw_route(m, ram, ram, link, forward), 0);
		ck_assert_int_eq(m->n_links, 1); /* the drive's */
		ck_assert_int_eq(m->links[0].near, ram);
		ck_assert_int_eq(m->links[0].far, hw_find_memory(m, "nvme0"));
		ck_assert(hw_num_value(&m->devices[1].bandwidth_bytes_s) <
			  hw_num_value(&m->memories[ram].bandwidth_bytes_s));
		arena_release(&a);
	}
}
END_TEST

START_TEST(unified_beside_a_card)
{
	setup();
	struct hw_machine *m = inline_machine("gpu0: radeon-8060s\ngpu1: rtx-4090\ngpu2: gb10\n"
					      "cpu0: {part: ryzen-ai-max-395, sockets: 2}\n"
					      "ram: {part: ryzen-ai-max-395, capacity: 128GiB}\n"
					      "nvme0: {part: nvme-gen4, capacity: 1TB}\n");
	int ram = hw_find_memory(m, "ram"), card = hw_find_memory(m, "gpu1");
	int link[HW_MAX_HOPS];
	bool forward[HW_MAX_HOPS];
	struct platform p;

	ck_assert_int_eq(m->n_memories, 3);
	ck_assert_int_eq(m->n_links, 2);
	ck_assert_int_eq(m->devices[0].memory, ram);
	ck_assert_int_eq(m->devices[1].memory, card);
	ck_assert_int_eq(m->devices[2].memory, ram);
	ck_assert_int_eq(hw_route(m, ram, card, link, forward), 1);
	ck_assert_str_eq(m->links[link[0]].name, "gpu1.link");
	ck_assert_int_eq(hw_route(m, hw_find_memory(m, "nvme0"), card, link, forward), 2);
	assert_close(value(m, "cpu0.bandwidth"), 2 * 117.9e9, 1e-12); /* of both sockets */
	platform_init(&p, m, &a);
	ck_assert_int_eq(p.copies[ram].in, SIM_NONE);
	ck_assert_int_eq(p.copies[ram].out, SIM_NONE);
	ck_assert_int_ne(p.copies[card].in, SIM_NONE);
	ck_assert_int_eq(p.n_units, 4 + 2 + 2); /* kernels, the card's copies, the drive's */
	/* A GPU that the machine states can be unified too. */
	m = inline_machine("gpu0: {unified: yes, flops: {fp16: 5TFLOP/s}, launch: 5us}\n"
			   "cpu0: {part: generic-cpu, bandwidth: 60GB/s}\n"
			   "ram: {capacity: 64GiB, bandwidth: 200GB/s}\n");
	ck_assert_int_eq(m->n_memories, 1);
	ck_assert_int_eq(m->n_links, 0);
	assert_close(value(m, "cpu0.bandwidth"), 60e9, 1e-12);
}
END_TEST

/* A kernel of the CPU is held to what its cores reach; one of the GPU gets the bus. */
START_TEST(unified_kernels)
{
	setup();
	struct hw_machine *m = load("strix-halo");
	int gpu = hw_find_device(m, "gpu0"), cpu = hw_find_device(m, "cpu0");
	struct platform_work work = {.bytes = 1e9, .dtype = HW_FP32};
	struct platform_path path;
	struct platform p;
	struct sim_op op;

	platform_init(&p, m, &a);
	platform_kernel(&p, gpu, &work, &path, &op);
	ck_assert(op.cap == 0);
	ck_assert_int_eq(path.hop[0].resource, p.memory_resource[hw_find_memory(m, "ram")]);
	platform_kernel(&p, cpu, &work, &path, &op);
	assert_close(op.cap, 117.9e9, 1e-12);
	ck_assert_int_eq(op.cap_resource, p.memory_resource[hw_find_memory(m, "ram")]);
	work.read_share = 0.5; /* of what it reaches */
	platform_kernel(&p, cpu, &work, &path, &op);
	assert_close(op.cap, 0.5 * 117.9e9, 1e-12);
	platform_kernel(&p, gpu, &work, &path, &op);
	assert_close(op.cap, 0.5 * 212.6e9, 1e-12);
}
END_TEST

/* A GPU's memory that is a stretch of RAM: its kernels and both ends of a copy are on the one bus. */
START_TEST(memory_set_aside_in_ram)
{
	setup();
	struct hw_machine *m = inline_machine(
		"gpu0: {memory: 16GiB, reserved: 0B, in_ram: yes, bandwidth: 85GB/s, flops: {fp16: 5TFLOP/s}, launch: 5us,\n"
		"       link: {part: pcie-4x16, h2d: 23.85GB/s, d2h: 23.85GB/s}}\n"
		"cpu0: generic-cpu\nram: {capacity: 48GiB, bandwidth: 100GB/s}\n");
	int gpu = hw_find_device(m, "gpu0"), memory = hw_find_memory(m, "gpu0"), ram = hw_find_memory(m, "ram");
	struct platform_work work = {.bytes = 1e9, .dtype = HW_FP16};
	struct platform_path path;
	struct platform p;
	struct sim_op op;

	platform_init(&p, m, &a);
	int bus = p.memory_resource[ram];
	ck_assert_int_eq(p.memory_resource[memory], bus);
	ck_assert_int_ne(p.copies[memory].in, SIM_NONE);
	platform_kernel(&p, gpu, &work, &path, &op);
	ck_assert_int_eq(path.hop[0].resource, bus);
	assert_close(op.cap, 85e9, 1e-12);
	platform_copy(&p, ram, memory, 1e9, true, false, &path, &op);
	ck_assert_int_eq(path.hop[0].resource, bus);
	assert_close(path.hop[0].weight, 2, 1e-12);
	/* What reads RAM through the link writes nothing. */
	platform_kernel_far(&p, gpu, ram, 1, 1, &work, &path, &op);
	ck_assert_int_eq(path.hop[0].resource, bus);
	assert_close(path.hop[0].weight, 1, 1e-12);
	check_refused("gpu0: {part: gb10, in_ram: yes}\ncpu0: generic-cpu\nram: {capacity: 48GiB, bandwidth: 100GB/s}\n", 1, 28,
		"gpu0 is unified: it has no memory that would be set aside");
	ck_assert_uint_eq(m->memories[ram].reserved_bytes, 18ull << 30); /* 2 of them for the system */
	check_refused("gpu0: {memory: 64GiB, in_ram: yes, bandwidth: 85GB/s, flops: {fp16: 5TFLOP/s}, launch: 5us, link: pcie-4x16}\n"
		      "ram: {capacity: 48GiB, bandwidth: 100GB/s}\n", 2, 6,
		"ram: of 48.0 GiB, 64.0 GiB are set aside for GPUs (in_ram) and nothing is left");
}
END_TEST

/* ---- names of parts ---- */

/* What people who publish measurements call their hardware. */
static void open_csv(struct csv *csv, const char *path, const char *const *columns, size_t n)
{
	struct err err;

	assert_ok(csv_open(csv, path, columns, n, &a, &err), err);
}

static bool next_row(struct csv *csv, struct csv_field *f)
{
	struct err err;
	int more = csv_next(csv, f, &err);

	if (more < 0)
		assert_ok(more, err);
	return more > 0;
}

#define FIELD(f) ((int)(f).len), (f).text

/* Every name of a list is a part that a machine can be made of; how many. */
static size_t check_names(const char *list)
{
	struct csv csv;
	struct csv_field f[2];
	size_t n = 0;

	open_csv(&csv, list, (const char *const[]){"kind", "name"}, 2);
	for (; next_row(&csv, f); n++)
		inline_machine(arena_printf(&a, "%.*s0: %.*s\nram: {capacity: 64GiB, bandwidth: 70GB/s}\n", FIELD(f[0]),
			FIELD(f[1])));
	return n;
}

/* Names of a corpus of measurements, and of the machines on which others report theirs. */
START_TEST(names_people_use)
{
	setup();
	ck_assert_uint_gt(check_names("tests/data/corpus_parts.csv"), 100);
	ck_assert_uint_gt(check_names("tests/data/reported_parts.csv"), 50);
	/* Another name is the same machine. */
	struct hw_machine *one = inline_machine("gpu0: a100\nram: {capacity: 64GiB, bandwidth: 70GB/s}\n");
	struct hw_machine *other =
		inline_machine("gpu0: a100-sxm-80gb\nram: {capacity: 64GiB, bandwidth: 70GB/s}\n");
	ck_assert_str_eq(hw_machine_canonical(one, &a), hw_machine_canonical(other, &a));
	ck_assert_str_eq(one->devices[0].part, "a100");
	one = inline_machine("gpu0: {part: a100, bandwidth: 1TB/s}\nram: {capacity: 64GiB, bandwidth: 70GB/s}\n");
	assert_close(value(one, "gpu0.flops.bf16"), value(other, "gpu0.flops.bf16"), 0);
}
END_TEST

/* Peaks are those that a table collected from datasheets has. */
START_TEST(peaks_of_datasheets)
{
	struct csv csv;
	struct csv_field f[3];
	size_t n = 0;

	setup();
	open_csv(&csv, "tests/data/part_peaks.csv", (const char *const[]){"part", "number", "peak"}, 3);
	for (; next_row(&csv, f); n++) {
		const char *name = arena_printf(&a, "gpu0.%.*s", FIELD(f[1]));
		struct hw_machine *m = inline_machine(
			arena_printf(&a, "gpu0: %.*s\nram: {capacity: 64GiB, bandwidth: 70GB/s}\n", FIELD(f[0])));
		enum unit_dim dim = strcmp(name, "gpu0.bandwidth") == 0 ? UNIT_BYTES_RATE : UNIT_FLOP_RATE;
		double want;
		struct err err;
		assert_ok(units_parse(arena_printf(&a, "%.*s", FIELD(f[2])), dim, &want, &err), err);
		double got = hw_num_peak(number(m, name));
		ck_assert_msg(fabs(got / want - 1) < 0.02, "%.*s: %s is %g, not %g", FIELD(f[0]), name, got, want);
	}
	ck_assert_uint_gt(n, 100);
}
END_TEST

/* As written by people and by systems; nothing but the part is parsed for it. */
START_TEST(names_as_written)
{
	static const char *const names[][3] = {
		{"gpu", "RTX 4070 Laptop", "rtx-4070-laptop"},
		{"gpu", "NVIDIA GeForce RTX 5050 Laptop GPU", "rtx-5050-laptop"},
		{"gpu", "MI50 32GB", "mi50-32gb"},
		{"gpu", "Radeon Instinct MI50", "mi50"},
		{"gpu", "5090", "rtx-5090"},
		{"gpu", "Quadro RTX 5000", "quadro-rtx-5000"},
		{"gpu", "AMD Radeon RX 7900 XTX", "rx-7900-xtx"},
		{"gpu", "NVIDIA RTX PRO 4500 Blackwell", "rtx-pro-4500"},
		{"gpu", "4090 24GB", "rtx-4090"},
		{"gpu", "'NVIDIA GeForce RTX 4090 (24 GB)'", "rtx-4090"},
		{"gpu", "Tesla T4 16gb", "t4"},
		{"gpu", "A770-16GB", "arc-a770"},
		{"gpu", "RTX 4090 48GB", "rtx-4090-48gb"},
		{"cpu", "9800X3D", "ryzen-7-9800x3d"},
		{"cpu", "AMD Ryzen 7 6800H with Radeon Graphics", "ryzen-7-6800h"},
		{"cpu", "Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz", "xeon-e5-2680v4"},
		{"cpu", "12th Gen Intel(R) Core(TM) i7-12700H", "core-i7-12700h"},
		{"cpu", "i5-8250U", "core-i5-8250u"},
		{"cpu", "i5-12400F", "core-i5-12400f"},
		{"cpu", "Intel(R) N100", "n100"},
		{"cpu", "AMD EPYC 7702 64-Core Processor", "epyc-7702"},
	};

	setup();
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct hw_machine *m = inline_machine(arena_printf(&a,
			"%s0: %s\nram: {capacity: 64GiB, bandwidth: 70GB/s}\n", names[i][0], names[i][1]));
		ck_assert_str_eq(m->devices[hw_find_device(m, arena_printf(&a, "%s0", names[i][0]))].part, names[i][2]);
	}
	/* Of a size that it does not have. */
	check_refused("gpu0: RTX 4090 16GB\nram: {capacity: 64GiB, bandwidth: 70GB/s}\n", 1, 7,
		"unknown gpu part 'RTX 4090 16GB'; did you mean 'rtx-4090-48gb'?");
	check_refused("gpu0: 24GB\nram: {capacity: 64GiB, bandwidth: 70GB/s}\n", 1, 7,
		"unknown gpu part '24GB'; did you mean 'quadro-m6000-24gb'?");
	struct hw_machine *mac = inline_machine("gpu0: M3 Max\nram: {part: Apple M3 Max, capacity: 64GiB}\ncpu0: Apple M3 Max\n");
	ck_assert_str_eq(mac->memories[hw_first_memory(mac, HW_MEMORY_RAM)].part, "apple-m3-max");
	/* What two could be is neither. */
	check_refused("gpu0: 5060 Ti\nram: {capacity: 64GiB, bandwidth: 70GB/s}\n", 1, 7,
		"gpu part '5060 Ti' is made with more than one size of memory; which of rtx-5060-ti-8gb, rtx-5060-ti-16gb?");
	check_refused("gpu0: NVIDIA GeForce RTX 3060\nram: {capacity: 64GiB, bandwidth: 70GB/s}\n", 1, 7,
		"gpu part 'NVIDIA GeForce RTX 3060' is made with more than one size of memory; which of rtx-3060-12gb, rtx-3060-8gb?");
	/* No part of which it is the middle. */
	check_refused("gpu0: H20\nram: {capacity: 64GiB, bandwidth: 70GB/s}\n", 1, 7, "unknown gpu part 'H20'; did you mean 'h200-sxm'?");
}
END_TEST

/* A row of a family against what it is made of. */
static void check_row(struct hw_machine *m, const struct yaml_node *row, enum hw_part_kind kind)
{
	const char *bus = "0", *rate = "0T/s", *boost = NULL;
	double bits, transfers_s, hz;
	struct err err;

	if (yaml_get(row, "bus")) {
		assert_ok(yaml_text(yaml_get(row, "bus"), &bus, &err) || yaml_text(yaml_get(row, "rate"), &rate, &err), err);
		assert_ok(units_parse(bus, UNIT_PLAIN, &bits, &err) || units_parse(rate, UNIT_TRANSFER_RATE, &transfers_s, &err), err);
		ck_assert_msg(fabs(hw_num_peak(number(m, "gpu0.bandwidth")) / (bits / 8 * transfers_s) - 1) < 1e-3, "%s", row->key);
	}
	if (kind == HW_PART_CPU) {
		assert_ok(yaml_text(yaml_get(row, "boost"), &boost, &err) || units_parse(boost, UNIT_FREQUENCY, &hz, &err), err);
		ck_assert_msg(fabs(hw_num_peak(number(m, "cpu0.clock")) / hz - 1) < 1e-3, "%s", row->key);
		ck_assert_msg(value(m, "cpu0.clock") <= hz * 1.0001 && value(m, "cpu0.clock") > 0.4 * hz, "%s", row->key);
	}
}

/* Every processor and every GPU is a machine whose numbers go together and say where they are from. */
START_TEST(every_part_is_a_machine)
{
	static const enum hw_part_kind kinds[] = {HW_PART_GPU, HW_PART_CPU};
	size_t rows = 0;

	setup();
	for (int k = 0; k < 2; k++) {
		struct profile whole = {.a = &a};
		const struct yaml_node *all;
		struct err err;
		assert_ok(profile_parts(&whole, kinds[k], &all, &err), err);
		for (const struct yaml_node *part = all->child; part; part = part->next) {
			if (part->kind == YAML_SCALAR)
				continue;
			struct arena_mark mark = arena_mark(&a);
			const char *device = kinds[k] == HW_PART_GPU ? "gpu0" : "cpu0";
			struct hw_machine *m = inline_machine(arena_printf(&a,
				"%s: %s\nram: {capacity: 2TiB, bandwidth: 70GB/s}\n", device, part->key));
			const struct hw_num *fp32 = number(m, arena_printf(&a, "%s.flops.fp32", device));
			ck_assert_msg(fp32->source && hw_num_value(fp32) > 0 && hw_num_value(fp32) <= hw_num_peak(fp32), "%s", part->key);
			ck_assert_msg(value(m, arena_printf(&a, "%s.launch", device)) > 0, "%s", part->key);
			if (hw_first_memory(m, HW_MEMORY_GPU) >= 0)
				ck_assert_msg(value(m, "gpu0.bandwidth") <= hw_num_peak(number(m, "gpu0.bandwidth")), "%s", part->key);
			if (yaml_get(part, "family"))
				check_row(m, part, kinds[k]);
			rows += yaml_get(part, "family") != NULL;
			arena_rewind(&a, mark);
		}
	}
	ck_assert_uint_gt(rows, 1000);
}
END_TEST

static void check_same_places(const struct yaml_node *x, const struct yaml_node *y)
{
	ck_assert_str_eq(x->pos.file, y->pos.file);
	ck_assert_int_eq(x->pos.line, y->pos.line);
	ck_assert_int_eq(x->pos.col, y->pos.col);
	ck_assert_int_eq(x->key_pos.line, y->key_pos.line);
	ck_assert_int_eq(x->key_pos.col, y->key_pos.col);
	for (x = x->child, y = y->child; x && y; x = x->next, y = y->next)
		check_same_places(x, y);
	ck_assert(!x && !y);
}

/* One part found by text is the part that the parser finds, at the same place. */
START_TEST(one_part_is_parsed_alone)
{
	struct err err;

	setup();
	for (int k = 0; k < HW_PART_N; k++) {
		struct profile whole = {.a = &a}, quick = {.a = &a};
		const struct yaml_node *all, *part;
		assert_ok(profile_parts(&whole, (enum hw_part_kind)k, &all, &err), err);
		const struct yaml_node *called;
		assert_ok(profile_part_keys(&quick, (enum hw_part_kind)k, &called, &err), err);
		ck_assert_uint_eq(yaml_count(called), yaml_count(all));
		called = called->child;
		for (const struct yaml_node *want = all->child; want; want = want->next, called = called->next) {
			ck_assert_str_eq(called->key, want->key);
			ck_assert_str_eq(called->text ? called->text : "", want->kind == YAML_SCALAR ? want->text : "");
			const struct yaml_node *meant, *name =
				profile_new_scalar(&a, "part", want->key, &(struct err_pos){0});
			const char *key;
			assert_ok(profile_part(&whole, (enum hw_part_kind)k, name, &key, &meant, &err), err);
			assert_ok(profile_part(&quick, (enum hw_part_kind)k, name, &key, &part, &err), err);
			ck_assert_str_eq(yaml_flow_text(&a, part, false), yaml_flow_text(&a, meant, false));
			ck_assert_str_eq(part->key, meant->key);
			check_same_places(part, meant);
		}
		ck_assert_ptr_nonnull(quick.text[k]);
		ck_assert_ptr_null(quick.parts[k]); /* never needed */
	}
}
END_TEST

/* ---- routes ---- */

START_TEST(routes)
{
	setup();
	struct hw_machine *m = inline_machine("gpu0: rtx-4090\ngpu1: rtx-3090\n"
					      "ram: {capacity: 64GiB, bandwidth: 70GB/s}\n"
					      "nvme0: {part: nvme-gen4, capacity: 1TB}\n");
	int link[HW_MAX_HOPS];
	bool forward[HW_MAX_HOPS];
	int gpu0 = hw_find_memory(m, "gpu0"), gpu1 = hw_find_memory(m, "gpu1");
	int ram = hw_find_memory(m, "ram"), nvme = hw_find_memory(m, "nvme0");

	ck_assert_int_eq(hw_route(m, gpu0, gpu0, link, forward), 0);
	ck_assert_int_eq(hw_route(m, ram, gpu1, link, forward), 1);
	ck_assert_str_eq(m->links[link[0]].name, "gpu1.link");
	ck_assert(forward[0]);
	ck_assert_int_eq(hw_route(m, gpu0, nvme, link, forward), 2);
	ck_assert_str_eq(m->links[link[0]].name, "gpu0.link");
	ck_assert_str_eq(m->links[link[1]].name, "nvme0.link");
	ck_assert(!forward[0] && forward[1]);
	ck_assert_int_eq(hw_route(m, nvme, gpu1, link, forward), 2);
	ck_assert_str_eq(m->links[link[0]].name, "nvme0.link");
	ck_assert(!forward[0] && forward[1]);
	ck_assert_int_eq(hw_route(m, gpu0, gpu1, link, forward), 2);
	ck_assert_int_eq(hw_find_memory(m, "gpu2"), -1);
	ck_assert_int_eq(hw_find_device(m, "nvme0"), -1);
	m->n_links = 1; /* only gpu0's */
	ck_assert_int_eq(hw_route(m, gpu0, nvme, link, forward), -1);
}
END_TEST

/* ---- PCIe ---- */

static struct hw_link *pcie(const char *written)
{
	struct hw_machine *m = inline_machine(arena_printf(&a,
		"gpu0: {part: rtx-4090, link: %s}\nram: {capacity: 64GiB, bandwidth: 70GB/s}\n", written));

	return link_of(m, "gpu0.link");
}

/* pcie-bench/pcie-model's figures, in GB/s. */
#define TWO_GPUS "gpu0: rtx-3090\ngpu1: rtx-3090\nram: {capacity: 64GiB, bandwidth: 70GB/s}\n"

START_TEST(bridges_join_pairs)
{
	setup();
	struct hw_machine *m = inline_machine(TWO_GPUS "gpu2: rtx-3090\nnvlink: nvlink-bridge-ga102\n");
	int link[HW_MAX_HOPS];
	bool forward[HW_MAX_HOPS];

	ck_assert_int_eq(m->n_links, 1 + 3);
	ck_assert_int_eq(hw_route(m, 0, 1, link, forward), 1);
	ck_assert_str_eq(m->links[link[0]].name, "gpu1.nvlink");
	ck_assert(forward[0]);
	ck_assert_int_eq((int)m->links[link[0]].kind, HW_LINK_NVLINK);
	ck_assert_int_eq(hw_route(m, 1, 0, link, forward), 1);
	ck_assert(!forward[0]);
	/* The third has no bridge. */
	ck_assert_int_eq(hw_route(m, 1, 2, link, forward), 2);
	ck_assert_str_eq(m->links[link[0]].name, "gpu1.link");
	ck_assert_int_eq(hw_route(m, hw_find_memory(m, "ram"), 1, link, forward), 1);
	ck_assert_str_eq(m->links[link[0]].name, "gpu1.link");
	assert_close(hw_num_peak(number(m, "gpu1.nvlink.h2d")), 56.25e9, 1e-12);
}
END_TEST

START_TEST(a_switch_joins_all)
{
	setup();
	struct hw_machine *m = load("server-8xh100");
	int link[HW_MAX_HOPS];
	bool forward[HW_MAX_HOPS];

	ck_assert_int_eq(m->n_links, 8 + 8 + 1);
	ck_assert_int_eq(hw_route(m, 3, 6, link, forward), 2);
	ck_assert_str_eq(m->links[link[0]].name, "gpu3.nvlink");
	ck_assert_str_eq(m->links[link[1]].name, "gpu6.nvlink");
	ck_assert(!forward[0] && forward[1]);
	ck_assert_str_eq(hw_link_near(m, &m->links[link[0]]), "all GPUs");
	assert_close(value(m, "gpu6.nvlink.both"), 745e9, 1e-12);
	/* A switch is no way from the host to a GPU, nor to a drive. */
	ck_assert_int_eq(hw_route(m, hw_find_memory(m, "ram"), 6, link, forward), 1);
	ck_assert_int_eq(hw_route(m, hw_find_memory(m, "nvme0"), 6, link, forward), 2);
	ck_assert_str_eq(m->links[link[1]].name, "gpu6.link");
}
END_TEST

START_TEST(nvlink_is_stated_and_taken_away)
{
	setup();
	struct hw_machine *m = inline_machine(TWO_GPUS "nvlink: {part: nvlink-3, h2d: 211GB/s}\n");

	assert_close(value(m, "gpu0.nvlink.h2d"), 211e9, 1e-12);
	assert_close(value(m, "gpu1.nvlink.d2h"), 276.3e9, 1e-12);
	m = inline_machine("from: server-8xh100\nset: {nvlink.h2d: 123GB/s}\n");
	assert_close(value(m, "gpu7.nvlink.h2d"), 123e9, 1e-12);
	m = inline_machine("from: server-8xh100\nnvlink: none\n");
	ck_assert_int_eq(m->n_links, 8 + 1);
	m = inline_machine("{gpu0: rtx-3090, nvlink: nvlink-3, ram: {capacity: 64GiB, bandwidth: 70GB/s}}");
	ck_assert_int_eq(m->n_links, 1); /* nobody to join */
	check_refused(TWO_GPUS "nvlink: pcie-4x16\n", 4, 9,
		"nvlink joins GPUs, 'pcie' leads to host memory; it belongs under 'gpu0.link'");
	check_refused("ram: {capacity: 64GiB, bandwidth: 70GB/s}\n" "gpu0: {part: rtx-3090, link: nvlink-4}\n", 2, 30,
		"gpu0.link leads to host memory, 'nvlink-4' joins GPUs; it belongs under 'nvlink'");
	check_refused(TWO_GPUS "nvlink: nvlink-6\n", 4, 9, "unknown link part 'nvlink-6'; did you mean 'nvlink-2'?");
}
END_TEST

START_TEST(pcie_peaks)
{
	static const struct {
		const char *written;
		double peak;
	} cases[] = {
		{"pcie-1x1", 0.25},
		{"pcie-1x16", 4.0},
		{"pcie-2x8", 4.0},
		{"pcie-3x1", 0.985},
		{"pcie-3x16", 15.754},
		{"pcie-4x2", 3.938},
		{"pcie-4x8", 15.754},
		{"pcie-4x16", 31.508},
		{"pcie-5x16", 63.015},
		{"pcie-6x4", 30.25},
		{"pcie-6x16", 121.0},
		{"{part: pcie, gen: 5, width: 4}", 15.754},
		{"{part: pcie-5x16, width: 4}", 15.754},
		{"{gen: 3}", 15.754},		  /* of the card's own 4x16 */
		{"{part: pcie, gen: 3}", 15.754}, /* the same */
		{"{width: 8}", 15.754},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		setup();
		const struct hw_link *link = pcie(cases[i].written);
		assert_close(link->h2d.num.peak / 1e9, cases[i].peak, 5e-4);
		assert_close(link->d2h.num.peak / 1e9, cases[i].peak, 5e-4);
		assert_close(link->both_bytes_s.peak / 1e9, 2 * cases[i].peak, 5e-4);
		ck_assert(hw_num_value(&link->h2d.num) < link->h2d.num.peak);
		ck_assert(hw_num_value(&link->both_bytes_s) >= hw_num_value(&link->h2d.num));
		ck_assert(
			hw_num_value(&link->h2d_pageable.num) <= hw_num_value(&link->h2d.num) * (1 + 1e-12));
		arena_release(&a);
	}
}
END_TEST

START_TEST(pcie_widths_scale)
{
	setup();
	const struct hw_link *x16 = pcie("pcie-4x16"), *x8 = pcie("pcie-4x8"), *x1 = pcie("pcie-4x1");

	assert_close(hw_num_value(&x8->h2d.num), hw_num_value(&x16->h2d.num) / 2, 1e-12);
	assert_close(hw_num_value(&x8->d2h.num), hw_num_value(&x16->d2h.num) / 2, 1e-12);
	assert_close(hw_num_value(&x8->both_bytes_s), hw_num_value(&x16->both_bytes_s) / 2, 1e-12);
	ck_assert_str_eq(hw_num_basis(&x16->h2d.num), "measured");
	ck_assert_str_eq(hw_num_basis(&x8->h2d.num), "peak"); /* nobody measured that width */
	ck_assert(x8->h2d.num.spread > x16->h2d.num.spread);
	/* The one x8 row that there is: 12.98 and 13.17 GB/s. */
	assert_close(hw_num_value(&x8->h2d.num), 12.98e9, 0.04);
	/* The driver's copy does not depend on the lanes until they are the bottleneck. */
	assert_close(
		hw_rate_at(&x8->h2d_pageable, 64 << 20), fmin(17.5e9, hw_num_value(&x8->h2d.num)), 1e-9);
	assert_close(hw_rate_at(&x1->h2d_pageable, 64 << 20), hw_num_value(&x1->h2d.num), 1e-9);
	assert_close(hw_rate_at(&x1->h2d_pageable, 16 << 20), hw_num_value(&x1->h2d.num), 1e-9);
}
END_TEST

/* T = latency + bytes / rate gives back what was measured, in GB/s. */
START_TEST(pageable_curve_is_what_was_measured)
{
	static const struct {
		double mib, h2d, d2h;
	} rows[] = {{1, 13.73, 9.21}, {4, 17.07, 11.31}, {16, 18.42, 12.34}};

	setup();
	const struct hw_link *link = pcie("pcie-4x16");
	double latency = hw_num_value(&link->latency_s);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		double bytes = rows[i].mib * (1 << 20);
		assert_close(bytes / (latency + bytes / hw_rate_at(&link->h2d_pageable, bytes)),
			rows[i].h2d * 1e9, 2e-3);
		if (rows[i].d2h > 0)
			assert_close(bytes / (latency + bytes / hw_rate_at(&link->d2h_pageable, bytes)),
				rows[i].d2h * 1e9, 2e-3);
	}
	/* The pinned law of the notes: 1 MiB at 22.5 GB/s when large ones run at 23.9. */
	double pinned = (1 << 20) / (latency + (1 << 20) / 23.9e9);
	assert_close(pinned, 22.51e9, 2e-3);
}
END_TEST

/* A CPU that is known to copy faster or slower than is usual with the link sets the rate, up to what the link carries. */
START_TEST(the_cpu_copies_into_pageable_buffers)
{
	static const char text[] = "gpu0: {part: %s, link: %s}\ncpu0: {part: %s}\nram: {capacity: 64GiB, bandwidth: 90GB/s}\n";
	static const struct {
		const char *gpu, *link, *cpu;
		double want; /* GB/s of large copies; 0: as pinned */
	} of[] = {{"rtx-5090", "{}", "ryzen-9-7950x, copy: 9.3GB/s", 9.3}, {"rtx-3090", "{}", "ryzen-9-7950x, copy: 77GB/s", 0},
		{"rtx-5090", "{}", "epyc-9355", 31}, {"rtx-3090", "{}", "epyc-9355", 0}, {"rtx-3090", "{}", "ryzen-9-7950x", 17.5},
		{"rtx-3090", "{h2d_pageable: 11GB/s}", "epyc-9355", 11}};

	setup();
	for (size_t i = 0; i < ARRAY_LEN(of); i++) {
		const struct hw_link *link = link_of(inline_machine(arena_printf(&a, text, of[i].gpu, of[i].link, of[i].cpu)), "gpu0.link");
		double pinned = hw_num_value(&link->h2d.num), large = hw_rate_at(&link->h2d_pageable, 1 << 30);
		assert_close(large, of[i].want > 0 ? of[i].want * 1e9 : pinned, 1e-12);
		ck_assert_double_le(hw_rate_at(&link->h2d_pageable, 1 << 20), fmin(pinned, large));
	}
}
END_TEST

START_TEST(curve_interpolation)
{
	const double sizes[] = {1e3, 1e5, 1e6}, rates[] = {2e9, 6e9, 5e9};
	struct hw_rate r = {{.measured = 5e9}, 3, sizes, rates};

	assert_close(hw_rate_at(&r, 1), 2e9, 1e-15);
	assert_close(hw_rate_at(&r, 1e3), 2e9, 1e-15);
	assert_close(hw_rate_at(&r, 1e4), 4e9, 1e-12); /* half-way in log(size) */
	assert_close(hw_rate_at(&r, 1e5), 6e9, 1e-12);
	assert_close(hw_rate_at(&r, 2.385e5), 6e9 - 1e9 * log10(2.385), 1e-12);
	assert_close(hw_rate_at(&r, 1e6), 5e9, 1e-15);
	assert_close(hw_rate_at(&r, 1e12), 5e9, 1e-15);
	r.num.measured = 10e9; /* moves all of it */
	assert_close(hw_rate_at(&r, 1e4), 8e9, 1e-12);
	r.num.measured = 0;
	r.num.peak = 20e9;
	r.num.efficiency = 0.25;
	assert_close(hw_rate_at(&r, 1e4), 4e9, 1e-12);
	r.n_points = 1;
	assert_close(hw_rate_at(&r, 1e4), 5e9, 1e-15);
	r.n_points = 0;
	assert_close(hw_rate_at(&r, 1e4), 5e9, 1e-15);
}
END_TEST

START_TEST(number_faces)
{
	struct hw_num none = {0}, peak = {.peak = 3e9}, half = {.peak = 3e9, .efficiency = 0.5};
	struct hw_num both = {.peak = 3e9, .measured = 2e9, .efficiency = 0.5};
	struct hw_num guess = {.measured = 2e9, .origin = HW_ASSUMED};

	ck_assert_str_eq(hw_num_basis(&none), "unknown");
	ck_assert(hw_num_value(&none) == 0 && hw_num_peak(&none) == 0);
	ck_assert_str_eq(hw_num_basis(&peak), "peak");
	assert_close(hw_num_value(&peak), 3e9, 0);
	assert_close(hw_num_value(&half), 1.5e9, 0);
	assert_close(hw_num_peak(&half), 3e9, 0);
	ck_assert_str_eq(hw_num_basis(&both), "measured");
	assert_close(hw_num_value(&both), 2e9, 0);
	ck_assert_str_eq(hw_num_basis(&guess), "assumed");
	assert_close(hw_num_peak(&guess), 2e9, 0);
}
END_TEST

/* ---- what a person writes ---- */

START_TEST(three_lines)
{
	setup();
	struct hw_machine *m = inline_machine("gpu0: rtx-4090\n"
					      "ram:  {capacity: 64GiB, bandwidth: 70GB/s}\n"
					      "cpu0: ryzen-9-7950x\n");
	const struct hw_num *ram = number(m, "ram.bandwidth");

	ck_assert_str_eq(m->name, "inline");
	ck_assert_ptr_null(m->file);
	ck_assert_str_eq(m->description, "");
	assert_close(hw_num_value(ram), 70e9, 1e-12);
	ck_assert_str_eq(hw_num_basis(ram), "stated");
	ck_assert_str_eq(ram->source, "t.yaml:2");
	ck_assert(ram->peak == 0 && ram->spread == 0);
	ck_assert_uint_eq(link_of(m, "gpu0.link")->gen, 4); /* the card's own */
	ck_assert_uint_eq(m->memories[hw_find_memory(m, "ram")].reserved_bytes, UINT64_C(2) << 30);
}
END_TEST

START_TEST(numbers_are_laid_over_each_other)
{
	setup();
	struct hw_machine *m = inline_machine(
		"gpu0:\n"
		"  part: rtx-4090\n"
		"  bandwidth: {measured: 900GB/s}\n"
		"  flops: {fp16: 150TFLOP/s, bf16: {efficiency: 50%}}\n"
		"  link: {h2d: 50GB/s, latency: {spread: 1}}\n"
		"ram: {part: ddr5, rate: 6000MT/s, channels: 2, capacity: 96GiB, reserved: 1GiB}\n"
		"cpu0: {part: ryzen-9-7950x, cores: 8, sockets: 2, flops: {int8: 1TOP/s}}\n");
	const struct hw_num *gpu = number(m, "gpu0.bandwidth");

	assert_close(gpu->measured, 900e9, 1e-12);
	assert_close(gpu->peak, 1008e9, 1e-12); /* the part's */
	assert_close(gpu->spread, 0.04, 1e-12);
	ck_assert_ptr_nonnull(strstr(gpu->source, "t.yaml:3; before: p2p"));
	const struct hw_num *fp16 = number(m, "gpu0.flops.fp16");
	assert_close(hw_num_value(fp16), 150e12, 1e-12);
	ck_assert(fp16->peak == 0); /* a single value replaces all */
	assert_close(value(m, "gpu0.flops.bf16"), 165.2e12 / 2, 1e-12);
	assert_close(value(m, "gpu0.flops.fp32"), 54.7e12, 1e-12); /* untouched */
	assert_close(value(m, "gpu0.link.h2d"), 50e9, 1e-12);
	assert_close(value(m, "gpu0.link.both"), 37.2e9 * (50 + 26.5) / (25 + 26.5), 1e-12);
	assert_close(number(m, "gpu0.link.latency")->spread, 1, 1e-12);
	assert_close(value(m, "gpu0.link.latency"), 2.7e-6, 1e-12);
	assert_close(hw_num_peak(number(m, "ram.bandwidth")), 96e9, 1e-12);
	const struct hw_device *cpu = &m->devices[hw_find_device(m, "cpu0")];
	ck_assert_uint_eq(cpu->cores, 16);
	assert_close(hw_num_peak(&cpu->flops_s[HW_BF16]), 16 * 4.5e9 * 64, 1e-12);
	assert_close(hw_num_value(&cpu->flops_s[HW_INT8]), 1e12, 1e-12); /* of all cores, as it stands */
}
END_TEST

START_TEST(everything_stated)
{
	setup();
	struct hw_machine *m = inline_machine(
		"gpu0: {memory: 8GiB, bandwidth: 300GB/s, flops: {fp16: 20TFLOP/s}, launch: 0s,\n"
		"       link: {part: pcie, gen: 3, width: 8, h2d_pageable: {measured: 4GB/s, points: [[1MiB, "
		"2GB/s],\n"
		"       [2MiB, 4GB/s]]}}}\n"
		"ram: {capacity: 16GiB, bandwidth: 30GB/s}\n"
		"nvme0: {capacity: 1TB, read: 3GB/s, write: 2GB/s, both: 4GB/s, latency: 80us}\n");
	const struct hw_link *link = link_of(m, "gpu0.link");

	ck_assert_str_eq(m->memories[0].part, "");
	ck_assert(hw_num_value(&m->devices[0].launch_s) == 0);
	assert_close(hw_rate_at(&link->h2d_pageable, 1), 2e9, 1e-12);
	assert_close(value(m, "nvme0.both"), 4e9, 1e-12);
	/* The processor nobody named is a part like any other, and says so. */
	ck_assert_str_eq(m->devices[hw_find_device(m, "cpu0")].part, "generic-cpu");
}
END_TEST

START_TEST(from_and_set)
{
	setup();
	struct hw_machine *base = load("desktop-rtx4090-ddr5");
	struct hw_machine *m =
		inline_machine("{from: desktop-rtx4090-ddr5, nvme0: none, gpu0: {bandwidth: 900GB/s}, ram: "
			       "{capacity: 32GiB},"
			       " set: {gpu0.link.gen: 3, gpu0.link: {width: 8}, cpu0: ryzen-9-5950x}}");

	ck_assert_str_eq(m->name, "desktop-rtx4090-ddr5");
	ck_assert_str_eq(m->description, arena_printf(&a, "changed from desktop-rtx4090-ddr5: %s", base->description));
	ck_assert_int_eq(hw_find_memory(m, "nvme0"), -1);
	assert_close(value(m, "gpu0.bandwidth"), 900e9, 1e-12);
	assert_close(value(m, "gpu0.flops.fp16"), value(base, "gpu0.flops.fp16"), 0); /* still that card */
	ck_assert_uint_eq(m->memories[hw_find_memory(m, "ram")].capacity_bytes, UINT64_C(32) << 30);
	assert_close(value(m, "ram.bandwidth"), value(base, "ram.bandwidth"), 0);
	ck_assert_uint_eq(link_of(m, "gpu0.link")->gen, 3);
	ck_assert_uint_eq(link_of(m, "gpu0.link")->width, 8);
	assert_close(link_of(m, "gpu0.link")->h2d.num.peak, 7.877e9, 1e-4);
	ck_assert_str_eq(m->devices[hw_find_device(m, "cpu0")].part, "ryzen-9-5950x");
	/* A single word replaces the device, and another kind of link keeps nothing of the card's own. */
	m = inline_machine("{from: desktop-rtx4090-ddr5, gpu0: gh200-96gb, set: {ram.capacity: 1TiB}}");
	ck_assert_int_eq((int)link_of(m, "gpu0.link")->kind, HW_LINK_C2C);
	m = inline_machine("{from: desktop-rtx4090-ddr5, gpu0: {link: nvlink-c2c}}");
	ck_assert_int_eq((int)link_of(m, "gpu0.link")->kind, HW_LINK_C2C);
	ck_assert_uint_eq(link_of(m, "gpu0.link")->gen, 0);
}
END_TEST

START_TEST(resolved_tree_takes_overrides)
{
	setup();
	struct err err;
	struct yaml_node *tree = NULL, *again = NULL;
	struct hw_machine *m = NULL;
	const struct yaml_node *name = parse("gh200");
	struct err_pos pos = {"s.yaml", 7, 3};

	assert_ok(hw_machine_resolve(name, &a, &tree, &err), err);
	char *before = yaml_flow_text(&a, tree, true);
	assert_ok(hw_machine_resolve(tree, &a, &again, &err), err);
	ck_assert_str_eq(yaml_flow_text(&a, again, true), before);
	assert_ok(yaml_set_path(&a, again, "gpu0.link.h2d", "100GB/s", "part", &pos, &err), err);
	assert_ok(yaml_set_path(&a, again, "cpu0.cores", "36", "part", &pos, &err), err);
	ck_assert_str_eq(yaml_flow_text(&a, tree, true), before); /* no node is shared */
	assert_ok(hw_machine_load_node(again, &a, &m, &err), err);
	ck_assert_str_eq(m->name, "gh200");
	assert_close(value(m, "gpu0.link.h2d"), 100e9, 1e-12);
	ck_assert_str_eq(number(m, "gpu0.link.h2d")->source, "s.yaml:7");
	assert_close(hw_num_peak(number(m, "cpu0.flops.fp32")), 7.88e12 / 2, 1e-12);
	assert_ok(yaml_set_path(&a, again, "gpu0.link.width", "4", "part", &pos, &err), err);
	assert_ok(yaml_set_path(&a, again, "gpu0.link.part", "pcie-4x16", "part", &pos, &err), err);
	assert_ok(hw_machine_load_node(again, &a, &m, &err), err);
	ck_assert_uint_eq(link_of(m, "gpu0.link")->width, 4);
}
END_TEST

/* ---- what is refused ---- */

#define RAM "ram: {capacity: 64GiB, bandwidth: 70GB/s}\n"

START_TEST(refusals)
{
	setup();
	check_refused(
		"gpu0: rtx-4900\n" RAM, 1, 7, "unknown gpu part 'rtx-4900'; did you mean 'rtx-4090'?");
	check_refused("gpu0: ryzen-9-7950x\n" RAM, 1, 7, "part 'ryzen-9-7950x' is a cpu, not a gpu");
	check_refused("gpu0: zzz\n" RAM, 1, 7, "unknown gpu part 'zzz'; see offsim hw list --parts gpu");
	check_refused("gpu0: {part: [1]}\n" RAM, 1, 14, "gpu0.part must be the name of a part");
	check_refused("gpu0: [rtx-4090]\n" RAM, 1, 7, "gpu0 must be a map");
	check_refused("gpu16: rtx-4090\n" RAM, 1, 1, "unknown key 'gpu16' in machine; did you mean 'gpu1'?");
	check_refused("gpu00: rtx-4090\n" RAM, 1, 1, "unknown key 'gpu00' in machine; did you mean 'gpu0'?");
	check_refused("gpu1: rtx-4090\n" RAM, 1, 1, "there is a gpu1 but no gpu0");
	check_refused(RAM "gpu0:\n  part: rtx-4090\n  bandwidht: 1GB/s\n", 4, 3,
		"unknown key 'bandwidht' in gpu0; did you mean 'bandwidth'?");
	check_refused(RAM "gpu0: {part: rtx-4090, bandwidth: 900GB}\n", 2, 35,
		"gpu0.bandwidth: '900GB' is a size; expected a bandwidth such as 55GB/s");
	check_refused(RAM "gpu0: {part: rtx-4090, bandwidth: {measured: 900}}\n", 2, 46,
		"measured: '900' has no unit; expected a bandwidth such as 55GB/s");
	check_refused(RAM "gpu0: {part: rtx-4090, bandwidth: 0GB/s}\n", 2, 35,
		"'gpu0.bandwidth' must be between 1.00 B/s and 1000 PB/s, not 0GB/s");
	check_refused(RAM "gpu0: {part: rtx-4090, bandwidth: {spread: 3}}\n", 2, 44,
		"'spread' must be between 0 and 2, not 3");
	check_refused(RAM "gpu0: {part: rtx-4090, bandwidth: {points: [[1MiB, 1GB/s]]}}\n", 2, 35,
		"gpu0.bandwidth does not depend on a size; it has no 'points'");
	check_refused(RAM "gpu0: {part: rtx-4090, memory: 2e18B}\n", 2, 32,
		"'memory' must be between 1 B and 888 PiB, not 2e18B");
	check_refused(RAM "gpu0: {part: rtx-4090, flops: {fp61: 1TFLOP/s}}\n", 2, 32,
		"unknown key 'fp61' in gpu0.flops; did you mean 'fp16'?");
	check_refused(RAM "gpu0: {part: rtx-4090, link: {gen: 7}}\n", 2, 36,
		"'gen' must be between 1 and 6, not 7");
	check_refused(RAM "gpu0: {part: rtx-4090, link: {width: 3}}\n", 2, 38,
		"gpu0.link.width is 3; a PCIe link has 1, 2, 4, 8 or 16 lanes");
	check_refused(RAM "gpu0: {part: rtx-4090, link: pcie-4x3}\n", 2, 30,
		"unknown link part 'pcie-4x3'; did you mean 'pcie'?");
	check_refused(RAM "gpu0: {part: rtx-4090, link: {part: nvlink-c2c, kind: pcie, gen: 4, width: 4}}\n",
		2, 30, "gpu0.link: nothing is known of PCIe generation 4");
	check_refused(RAM
		"gpu0: {part: rtx-4090, link: {h2d_pageable: {points: [[2MiB, 1GB/s], [1MiB, 2GB/s]]}}}\n",
		2, 70,
		"'points' must be pairs of size and rate, sizes ascending: [[1MiB, 14GB/s], [4MiB, 17GB/s]]");
	check_refused(RAM "cpu0: {part: core-i7-12700k, cores: 7, fast_cores: 9}\n", 2, 52,
		"cpu0 has 7 cores, fewer than its 9 fast ones");
	check_refused(RAM "cpu0: {part: core-i7-12700k, cores: 7, fast_clock: 4.7GHz}\n", 2, 40,
		"cpu0 has no 'fast_cores' that 'fast_clock' could be of");
	check_refused(RAM "cpu0: {part: core-i7-12700k, clock: {peak: 5GHz, measured: 3.6GHz}, fast_clock: 5.1GHz}\n", 2, 81,
		"cpu0 has a fast_clock of 5.1 GHz, which is not between its clock with all cores busy and that of one alone, "
		"3.6 and 5 GHz");
	check_refused(RAM "cpu0: {part: core-i7-12700k, clock: {peak: 5GHz, measured: 3.6GHz}, fast_clock: 3.5GHz}\n", 2, 81,
		"cpu0 has a fast_clock of 3.5 GHz, which is not between its clock with all cores busy and that of one alone, "
		"3.6 and 5 GHz");
	check_refused("gpu0: rtx-4090\n", 1, 1,
		"the machine has no 'ram'; state it, such as ram: {capacity: 64GiB, bandwidth: 70GB/s}");
	check_refused(RAM, 1, 1, "the machine has neither 'cpu0' nor 'gpu0': nothing can compute");
	check_refused("cpu0: generic-cpu\nram: {capacity: 64GiB}\n", 2, 6,
		"ram has no 'bandwidth'; state it, such as bandwidth: 70GB/s");
	check_refused("cpu0: generic-cpu\nram: {part: ddr5, capacity: 64GiB, rate: 5600MT/s}\n", 2, 6,
		"ram has no 'channels'; state it, such as channels: 2");
	check_refused("cpu0: generic-cpu\nram: {part: ddr5, rate: 5600MT/s, channels: 2}\n", 2, 6,
		"ram has no 'capacity'; state it, such as capacity: 24GiB");
	check_refused("cpu0: generic-cpu\nram: {capacity: 1GiB, bandwidth: 70GB/s}\n", 2, 17,
		"ram: of 1.00 GiB, 2.00 GiB are reserved and nothing is left; state 'reserved' too");
	check_refused("cpu0: {cores: 4}\n" RAM, 1, 7,
		"cpu0 has no 'flops'; state it, such as flops: {fp16: 82TFLOP/s}");
	check_refused("cpu0: generic-cpu\nnvme0: nvme-gen4\n" RAM, 2, 8,
		"nvme0 has no 'capacity'; state it, such as capacity: 24GiB");
	check_refused(RAM "gpu0: {part: gb10, memory: 8GiB}\n", 2, 28,
		"gpu0 is unified: it computes from ram and has no 'memory' of its own");
	check_refused(RAM "gpu0: {part: gb10, link: pcie-4x16}\n", 2, 26,
		"gpu0 is unified: it computes from ram and has no 'link' of its own");
	check_refused(RAM "gpu0: {part: gb10, unified: no}\n", 2, 7,
		"gpu0 has no 'memory'; state it, such as memory: 24GiB");
	check_refused(RAM "gpu0: {part: gb10, unified: maybe}\n", 2, 29,
		"'unified' must be yes or no, not 'maybe'");
	check_refused(RAM "cpu0: {part: gb10, bandwidth: 10GB}\n", 2, 31,
		"cpu0.bandwidth: '10GB' is a size; expected a bandwidth such as 55GB/s");
	check_refused("gpu0: '  memory'\n" RAM, 1, 7, "unknown gpu part '  memory'; see offsim hw list --parts gpu");
	check_refused("from: dekstop-rtx4090-ddr5\n", 1, 7,
		"unknown machine 'dekstop-rtx4090-ddr5'; did you mean 'desktop-rtx4090-ddr5'?");
	check_refused("from: {gpu0: rtx-4090}\n", 1, 7, "'from' must be the name or the file of a machine");
	check_refused("from: /dev/zero\n", 1, 7, "machine '/dev/zero' is not a plain file");
	check_refused("from: ./nothing-here\n", 1, 7, "there is no machine file './nothing-here'");
	check_refused("from: ''\n", 1, 7, "no machine is named");
	check_refused("from: gh200\nset: 3\n", 2, 6, "'set' must be a map such as {gpu0.link.gen: 3}");
	check_refused("from: gh200\nset: {gpu0.link.gne: 3}\n", 2, 22,
		"unknown key 'gne' in gpu0.link; did you mean 'gen'?");
	check_refused("from: gh200\nset: {gpx0.part: rtx-4090}\n", 2, 18,
		"unknown key 'gpx0' in machine; did you mean 'gpu0'?");
	check_refused("- gpu0\n", 1, 1,
		"a machine is a name, a file, or a map such as {gpu0: rtx-4090, …}; this is a list");
}
END_TEST

/* A folder with machine files of our own. */
static const char *folder(void)
{
	char *dir = arena_strdup(&a, "/tmp/offsim-hw-XXXXXX");

	ck_assert_ptr_nonnull(mkdtemp(dir));
	return dir;
}

static const char *put(const char *dir, const char *name, const char *text)
{
	const char *path = arena_printf(&a, "%s/%s", dir, name);
	FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	ck_assert_int_eq(fclose(f), 0);
	return path;
}

static void remove_folder(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while ((e = readdir(d)))
		if (e->d_name[0] != '.')
			unlink(arena_printf(&a, "%s/%s", dir, e->d_name));
	closedir(d);
	rmdir(dir);
}

START_TEST(files_beside_each_other)
{
	setup();
	const char *dir = folder();
	put(dir, "base.yaml", "description: base\ngpu0: rtx-4090\n" RAM);
	const char *top = put(dir, "top.yaml", "from: ./base.yaml\nset: {gpu0.link.gen: 3}\n");
	struct hw_machine *m = load(top);

	ck_assert_str_eq(m->name, "top");
	ck_assert_str_eq(m->file, top);
	ck_assert_ptr_nonnull(strstr(m->description, ": base"));
	ck_assert_uint_eq(link_of(m, "gpu0.link")->gen, 3);
	remove_folder(dir);
}
END_TEST

START_TEST(cycles)
{
	setup();
	const char *dir = folder();
	struct hw_machine *m;
	struct err err = {0};
	const char *one = put(dir, "a.yaml", "# comment\nfrom: b.yaml\n");

	put(dir, "b.yaml", "from:   ./a.yaml\n");
	ck_assert_int_eq(hw_machine_load(one, &a, &m, &err), -1);
	assert_err(err, ERR_INPUT,
		arena_printf(&a, "machine './a.yaml' is built from itself: %s -> b.yaml -> ./a.yaml", one));
	ck_assert_str_eq(err.file, arena_printf(&a, "%s/b.yaml", dir));
	ck_assert_int_eq(err.line, 1);
	ck_assert_int_eq(err.col, 9);
	for (int i = 0; i < 30; i++)
		put(dir, arena_printf(&a, "c%d.yaml", i), arena_printf(&a, "from: c%d.yaml\n", i + 1));
	ck_assert_int_eq(hw_machine_load(arena_printf(&a, "%s/c0.yaml", dir), &a, &m, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.msg, "more than 16 machines are built from each other: "));
	put(dir, "d.yaml", "from: a b\n");
	ck_assert_int_eq(hw_machine_load(arena_printf(&a, "%s/d.yaml", dir), &a, &m, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.msg, "unknown machine 'a b'"));
	const char *pipe = arena_printf(&a, "%s/e.yaml", dir);
	ck_assert_int_eq(mkfifo(pipe, 0600), 0); /* must not be waited for */
	ck_assert_int_eq(hw_machine_load(pipe, &a, &m, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.msg, "is not a plain file"));
	remove_folder(dir);
}
END_TEST

/* ---- numbers, copies, canonical text ---- */

START_TEST(numbers_copy_canonical)
{
	setup();
	struct hw_machine *m = load("desktop-rtx4090-ddr5");
	struct hw_num_ref *refs;
	size_t n = hw_numbers(m, &a, &refs);
	const char *text = hw_machine_canonical(m, &a);

	ck_assert_uint_gt(n, 20);
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < i; j++)
			ck_assert_str_ne(refs[i].name, refs[j].name);
		ck_assert_ptr_nonnull(refs[i].num->source);
		ck_assert(hw_num_value(refs[i].num) > 0 && isfinite(hw_num_value(refs[i].num)));
	}
	ck_assert_ptr_null(strchr(text, '\n'));
	ck_assert_str_eq(hw_machine_canonical(load("desktop-rtx4090-ddr5"), &a), text);
	ck_assert_str_ne(hw_machine_canonical(load("gh200"), &a), text);
	/* Each number counts, and only in the copy. */
	for (size_t i = 0; i < n; i++) {
		struct hw_machine *copy = hw_machine_copy(m, &a);
		ck_assert_str_eq(hw_machine_canonical(copy, &a), text);
		struct hw_num *num = number(copy, refs[i].name);
		num->measured = hw_num_value(num) * 1.01;
		ck_assert_str_ne(hw_machine_canonical(copy, &a), text);
		ck_assert_str_eq(hw_machine_canonical(m, &a), text);
	}
	/* The same contents under other words are the same machine. */
	ck_assert_str_eq(hw_machine_canonical(inline_machine("from: desktop-rtx4090-ddr5\ndescription: mine\n"
							     "name: x\n"),
				 &a),
		text);
}
END_TEST

START_TEST(all_machines_and_parts)
{
	setup();
	const char **names;
	size_t n;
	struct err err;

	assert_ok(datadir_list(&a, "hw/machines", ".yaml", &names, &n, &err), err);
	ck_assert_uint_ge(n, 3);
	for (size_t i = 0; i < n; i++) {
		struct hw_machine *m = load(names[i]);
		ck_assert_str_eq(m->name, names[i]);
		ck_assert(*m->description);
	}
	for (int k = 0; k < HW_PART_N; k++) {
		struct hw_part *parts;
		assert_ok(hw_parts((enum hw_part_kind)k, &a, &parts, &n, &err), err);
		ck_assert_uint_ge(n, 3);
		for (size_t i = 0; i < n; i++)
			ck_assert_msg(*parts[i].description, "%s has no description", parts[i].name);
	}
}
END_TEST

/* Every number of the parts says where it was read; measured rates stay below peaks (a GPU's compute may
   clock above its datasheet), and curves end where the number for large transfers is. */
static void check_number_node(const struct yaml_node *node, const char *part)
{
	double peak = 0, measured = 0;
	const struct yaml_node *peak_node = yaml_get(node, "peak"),
			       *measured_node = yaml_get(node, "measured");
	const struct yaml_node *points = yaml_get(node, "points");
	static const char *const values[] = {"peak", "measured", "assumed", "efficiency", "spread"};
	struct err err;

	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		const struct yaml_node *value = yaml_get(node, values[i]);
		ck_assert_msg(!value || strtod(value->text, NULL) > 0, "%s: %s:%d: %s is '%s'", part, node->pos.file,
			node->pos.line, values[i], value ? value->text : "");
	}
	ck_assert_msg(yaml_get(node, "source") && *yaml_get(node, "source")->text, "%s: %s:%d has no source",
		part, node->pos.file, node->pos.line);
	ck_assert_msg(yaml_get(node, "spread") != NULL, "%s: %s:%d has no spread", part, node->pos.file,
		node->pos.line);
	if (peak_node && measured_node && !units_parse(peak_node->text, UNIT_BYTES_RATE, &peak, &err) &&
		!units_parse(measured_node->text, UNIT_BYTES_RATE, &measured, &err))
		ck_assert(measured <= peak);
	if (!points)
		return;
	const struct yaml_node *last = points->child;
	while (last->next)
		last = last->next;
	if (!measured_node)
		measured_node = yaml_get(node, "assumed");
	ck_assert_str_eq(last->child->next->text, measured_node->text);
}

static void walk(const struct yaml_node *node, const char *part)
{
	if (node->kind != YAML_MAP)
		return;
	if (yaml_get(node, "peak") || yaml_get(node, "measured") || yaml_get(node, "assumed") ||
		yaml_get(node, "efficiency"))
		check_number_node(node, part);
	else
		for (const struct yaml_node *c = node->child; c; c = c->next)
			walk(c, part);
}

START_TEST(every_number_has_a_source)
{
	static const char *const files[] = {"gpus", "cpus", "links", "dram", "nvme"};
	const char *dir;
	struct err err;

	setup();
	assert_ok(datadir_find(&a, &dir, &err), err);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		struct yaml_node *root;
		assert_ok(yaml_read_file(
				  arena_printf(&a, "%s/hw/parts/%s.yaml", dir, files[i]), &a, &root, &err),
			err);
		for (const struct yaml_node *part = root->child; part; part = part->next)
			walk(part, part->key);
	}
}
END_TEST

START_TEST(help_tables)
{
	for (int k = 0; k < HW_PARAMS_N; k++) {
		size_t n;
		const char *prefix;
		const struct param *rows = hw_params((enum hw_params_kind)k, &n, &prefix);
		ck_assert_uint_gt(n, 1);
		ck_assert(!strncmp(prefix, "machine", 7));
		for (size_t i = 0; i < n; i++)
			ck_assert(*rows[i].help);
	}
}
END_TEST

START_TEST(printing)
{
	char *text = NULL;
	size_t len;

	setup();
	FILE *f = open_memstream(&text, &len);
	hw_machine_print(load("gh200"), f);
	fclose(f);
	ck_assert_ptr_nonnull(strstr(text, "gpu0.link.h2d"));
	ck_assert_ptr_nonnull(strstr(text, "378 GB/s"));
	ck_assert_ptr_nonnull(strstr(text, "450 GB/s"));
	ck_assert_ptr_nonnull(strstr(text, "nvbandwidth"));
	free(text);
}
END_TEST

TEST_MAIN("hw", desktop, gh200, cpu_only, machine_facts, machine_sizes, unified_memory, unified_beside_a_card,
	unified_kernels, memory_set_aside_in_ram, names_people_use, peaks_of_datasheets, one_part_is_parsed_alone, routes,
	bridges_join_pairs, names_as_written, every_part_is_a_machine,
	a_switch_joins_all, nvlink_is_stated_and_taken_away, pcie_peaks, pcie_widths_scale,
	pageable_curve_is_what_was_measured, the_cpu_copies_into_pageable_buffers, curve_interpolation, number_faces, three_lines,
	numbers_are_laid_over_each_other, everything_stated, from_and_set, resolved_tree_takes_overrides,
	refusals, files_beside_each_other, cycles, numbers_copy_canonical, all_machines_and_parts,
	every_number_has_a_source, help_tables, printing)
