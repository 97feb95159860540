/*
 * The machines are recordings in tests/data/probe (its README says which part of each is one).
 */
#include "hw/probe.h"

#include <sys/stat.h>

#include "base/csv.h"
#include "hw/hw.h"
#include "hw/probe_part.h"
#include "hw/probe_text.h"
#include "tests/test.h"

static struct arena a;

static void setup(void)
{
	arena_init(&a, NULL, NULL);
}

static struct probe read_root(const char *root)
{
	struct probe p;
	struct err err;

	assert_ok(probe_read(&p, root, &a, &err), err);
	return p;
}

static struct probe read_machine(const char *name)
{
	return read_root(arena_printf(&a, "tests/data/probe/%s", name));
}

/* What was found, through the profile, as a machine. */
static struct hw_machine *machine(struct probe *p)
{
	struct yaml_node *root = NULL;
	struct hw_machine *m = NULL;
	const char *yaml = NULL;
	struct err err;

	assert_ok(probe_write_profile(p, &yaml, &err), err);
	assert_ok(yaml_read_text(yaml, strlen(yaml), "probed.yaml", &a, &root, &err), err);
	assert_ok(hw_machine_load_node(root, &a, &m, &err), err);
	return m;
}

static bool has_note(const struct probe *p, enum probe_note_kind kind, const char *about, const char *text)
{
	for (size_t i = 0; i < p->notes.n; i++) {
		const struct probe_note *note = &p->notes.at[i];
		if (note->kind == kind && !strcmp(note->about, about) && strstr(note->text, text))
			return true;
	}
	return false;
}

static void check_note(const struct probe *p, enum probe_note_kind kind, const char *about, const char *text)
{
	if (has_note(p, kind, about, text))
		return;
	for (size_t i = 0; i < p->notes.n; i++)
		fputs(probe_note_lines(p, i, "  "), stderr);
	ck_abort_msg("no %s about %s says '%s'", probe_note_name(kind), about, text);
}

static bool guesses(const struct probe *p)
{
	for (size_t i = 0; i < p->notes.n; i++)
		if (p->notes.at[i].kind == PROBE_GUESS)
			return true;
	return false;
}

static const struct hw_device *cpu_of(const struct hw_machine *m)
{
	return &m->devices[hw_first_device(m, HW_DEVICE_CPU)];
}

static const struct hw_memory *ram_of(const struct hw_machine *m)
{
	return &m->memories[hw_first_memory(m, HW_MEMORY_RAM)];
}

static struct probe nothing(void)
{
	struct probe p;

	probe_init(&p, &a);
	return p;
}

/* ---- texts ---- */

START_TEST(a_line_loses_escapes_and_blanks)
{
	const char *at = "\t\033[4mGPU0\tCPU\033[0m \r\n\n x\x01\xff";

	setup();
	ck_assert_str_eq(probe_line(&at, &a), "GPU0\tCPU");
	ck_assert_str_eq(probe_line(&at, &a), "");
	ck_assert_str_eq(probe_line(&at, &a), "x??");
	ck_assert_ptr_null(probe_line(&at, &a));
	arena_release(&a);
}
END_TEST

START_TEST(sizes_and_numbers_of_other_programs)
{
	ck_assert_uint_eq(probe_size("32 GB"), (uint64_t)32 << 30);
	ck_assert_uint_eq(probe_size("4096 MB"), (uint64_t)4096 << 20);
	ck_assert_uint_eq(probe_size("24564 MiB"), (uint64_t)24564 << 20);
	ck_assert_uint_eq(probe_size("32768K"), (uint64_t)32 << 20);
	ck_assert_uint_eq(probe_size("No Module Installed"), 0);
	ck_assert_uint_eq(probe_size("99999999999999 TB"), 0);
	ck_assert_uint_eq(probe_count("18446744073709551616", UINT64_MAX), UINT64_MAX);
	ck_assert_uint_eq(probe_count("max", 7), 0);
	ck_assert(probe_number("0x10") == 0 && probe_number("nan") == 0 && probe_number("-3") == 0);
	assert_close(probe_number("2095.077 MHz"), 2095.077, 0);
	ck_assert_uint_eq(probe_cpu_list("0-3,8,10-11", NULL, 64), 7);
	ck_assert_uint_eq(probe_cpu_list("0-4294967295", NULL, 64), 64);
	ck_assert_uint_eq(probe_cpu_list("", NULL, 64), 0);
}
END_TEST

/* The keys of cpuinfo that decide, best first. */
START_TEST(instruction_sets)
{
	static const char *const flags[][2] = {
		{"flags\t: fpu sse2 avx2 avx512f avx512_vnni amx_int8", "amx"},
		{"flags\t: sse2 avx2 avx512f avx512_vnni avx_vnni avx512_vp2intersect", "avx512_zen5"},
		{"flags\t: sse2 avx2 avx512f avx512_vnni avx_vnni", "avx512_vnni"},
		{"flags\t: sse2 avx2 avx512f", "avx512"},
		{"flags\t: sse2 avx2 avx_vnni", "avx_vnni"},
		{"flags\t: sse2 avx2", "avx2"},
		{"flags\t: sse2 xavx2 avx2x", "sse"},
		{"Features\t: fp asimd sve i8mm svei8mm", "neon_i8mm"},
		{"Features\t: fp asimd sve", "sve"},
		{"Features\t: fp asimd svei8mm", "neon"},
		{"isa\t: rv64imafdcv", ""},
	};

	setup();
	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		struct probe_threads t = {.at = arena_array(&a, struct probe_thread, PROBE_MAX_CPUS)};
		struct probe p = nothing();
		probe_parse_cpuinfo(&p, &t, flags[i][0]);
		ck_assert_str_eq(p.cpu.isa, flags[i][1]);
	}
	arena_release(&a);
}
END_TEST

static struct probe modules(const char *text)
{
	struct probe p = nothing();

	probe_parse_dmidecode(&p, text);
	return p;
}

START_TEST(channels_have_no_standard)
{
	static const struct {
		const char *a, *b; /* locators or banks of two modules */
		unsigned channels;
	} cases[] = {
		{"Bank Locator: P0 CHANNEL A", "Bank Locator: P0 CHANNEL B", 2},
		{"Bank Locator: P1_Node0_Channel0_Dimm0", "Bank Locator: P1_Node0_Channel0_Dimm1", 1},
		{"Bank Locator: P0_Node0_Channel1_Dimm0", "Bank Locator: P0_Node0_Channel11_Dimm0", 2},
		{"Locator: DIMM_A1", "Locator: DIMM_A2", 1},
		{"Locator: P1-DIMMA1", "Locator: P2-DIMMA1", 2},
		{"Locator: Controller0-DIMM0", "Locator: Controller1-DIMM0", 2},
		{"Locator: ChannelA-DIMM0", "Locator: ChannelB-DIMM0", 2},
		{"Locator: PROC 1 DIMM 6", "Locator: PROC 1 DIMM 7", 0}, /* does not tell */
		{"Locator: DIMM 0", "Locator: DIMM_B1", 0},
	};

	setup();
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct probe p = modules(arena_printf(&a,
			"Memory Device\n\tSize: 8 GB\n\t%s\nMemory Device\n\tSize: 8 GB\n\t%s\n", cases[i].a,
			cases[i].b));
		ck_assert_uint_eq(p.ram.modules, 2);
		ck_assert_uint_eq(p.ram.channels, cases[i].channels);
	}
	arena_release(&a);
}
END_TEST

START_TEST(old_dmidecode_says_megahertz)
{
	setup();
	struct probe p = modules(
		"\tSize: 4096 MB\n\tType: DDR3\n\tSpeed: 1600 MHz\n\tConfigured Clock Speed: 1067 MHz\n"
		"\tSize: 4096 MB\n\tType: DDR3\n\tSpeed: 1600 MHz\n\tConfigured Clock Speed: 1333 MHz\n");
	ck_assert_uint_eq(p.ram.modules, 2);
	assert_close(p.ram.rate_t_s, 1067e6, 0); /* the slowest */
	assert_close(p.ram.rated_t_s, 1600e6, 0);
	ck_assert(!p.ram.rate_is_rated);
	arena_release(&a);
}
END_TEST

/* Brackets are no value; columns may come in any order, and be many more. */
START_TEST(nvidia_smi_brackets_are_null)
{
	setup();
	struct probe p = nothing();
	probe_parse_query_gpu(&p,
		"pcie.link.gen.max, memory.total [MiB], serial, name, pcie.link.width.max\n"
		"[Requested functionality has been deprecated], [N/A], 0, NVIDIA GB10, 16\n");
	ck_assert_uint_eq(p.gpus.n, 1);
	ck_assert_str_eq(p.gpus.at[0].name, "NVIDIA GB10");
	ck_assert_uint_eq(p.gpus.at[0].memory_bytes, 0);
	ck_assert_uint_eq(p.gpus.at[0].pcie.gen_max, 0);
	ck_assert_uint_eq(p.gpus.at[0].pcie.width_max, 16);
	ck_assert(p.gpus.at[0].busy < 0);
	arena_release(&a);
}
END_TEST

START_TEST(topology_of_one_gpu_with_escapes)
{
	setup();
	struct probe_source s = {"tests/data/probe/desktop-rtx4080s-idle", &a};
	struct probe p = nothing();
	probe_parse_topology(&p, probe_file(&s, "nvidia-smi-topo-m.txt"));
	ck_assert_uint_eq(p.n_gpu_links, 1);
	ck_assert_str_eq(p.gpu_links[0], "X");
	ck_assert_str_eq(probe_describe_links(&p), "");
	arena_release(&a);
}
END_TEST

/* A matrix that ends early is none. */
START_TEST(topology_cut_short)
{
	setup();
	struct probe p = nothing();
	probe_parse_topology(&p, "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV2\t0-23\n");
	ck_assert_uint_eq(p.n_gpu_links, 0);
	arena_release(&a);
}
END_TEST

/* ---- machines ---- */

START_TEST(this_kind_of_virtual_machine)
{
	setup();
	struct probe p = read_machine("vm-epyc-2cpu");
	const struct hw_machine *m = machine(&p);
	ck_assert_str_eq(p.cpu.isa, "avx512_vnni");
	ck_assert_uint_eq(p.cpu.sockets, 1);
	ck_assert_uint_eq(p.cpu.cores, 2);
	ck_assert_uint_eq(p.cpu.nodes, 1);
	ck_assert(p.cpu.hypervisor);
	ck_assert_uint_eq(p.cpu.cache[2].bytes, 32 << 20);
	ck_assert_uint_eq(p.cpu.cache[2].instances, 1);
	ck_assert_uint_eq(p.cpu.cache[1].instances, 2);
	ck_assert_uint_eq(p.gpus.n + p.drives.n, 0);
	ck_assert_uint_eq(p.ram.limit_bytes, 0); /* 2^63 less a page is no limit */
	ck_assert_uint_eq(cpu_of(m)->cores, 2);
	ck_assert_str_eq(hw_num_basis(&cpu_of(m)->flops_s[HW_FP32]), "assumed");
	ck_assert_uint_eq(ram_of(m)->capacity_bytes - ram_of(m)->reserved_bytes, p.ram.available_bytes);
	check_note(&p, PROBE_GUESS, "ram.bandwidth", "offsim calibrate ram");
	check_note(&p, PROBE_GUESS, "cpu0", "offsim calibrate cpu");
	check_note(&p, PROBE_HINT, "others", "disk vda");
	arena_release(&a);
}
END_TEST

START_TEST(an_idle_card_is_taken_at_its_highest_generation)
{
	setup();
	struct probe p = read_machine("desktop-rtx4080s-idle");
	const struct hw_machine *m = machine(&p);
	const struct hw_link *link = &m->links[0];
	ck_assert_uint_eq(p.gpus.n, 1);
	ck_assert_uint_eq(p.gpus.at[0].pcie.gen, 1);
	ck_assert_str_eq(m->memories[0].part, "rtx-4080-super");
	ck_assert_uint_eq(link->gen, 4);
	ck_assert_uint_eq(link->width, 16);
	check_note(&p, PROBE_HINT, "gpu0.link", "idle");
	ck_assert(!has_note(&p, PROBE_FAULT, "gpu0.link", ""));
	ck_assert_str_eq(cpu_of(m)->part, "ryzen-9-7950x");
	arena_release(&a);
}
END_TEST

/* 4200 MT/s, not the 5600 on the modules' label; two channels of four slots. */
START_TEST(modules_run_at_what_is_configured)
{
	setup();
	struct probe p = read_machine("desktop-rtx4080s-idle");
	const struct hw_machine *m = machine(&p);
	ck_assert_uint_eq(p.ram.modules, 2);
	ck_assert_uint_eq(p.ram.slots, 4);
	ck_assert_uint_eq(p.ram.channels, 2);
	assert_close(hw_num_peak(&ram_of(m)->bandwidth_bytes_s), 4200e6 * 8 * 2, 1e-12);
	check_note(&p, PROBE_HINT, "ram.rate", "rated for 5600");
	arena_release(&a);
}
END_TEST

START_TEST(drives_by_name_and_by_link)
{
	setup();
	struct probe p = read_machine("desktop-rtx4080s-idle");
	const struct hw_machine *m = machine(&p);
	int first = hw_find_memory(m, "nvme0"), second = hw_find_memory(m, "nvme1");
	ck_assert_str_eq(m->memories[first].part, "samsung-990-pro-2tb");
	ck_assert_uint_eq(m->memories[first].capacity_bytes, (uint64_t)3907029168 * 512);
	ck_assert_str_eq(m->memories[second].part, "nvme-gen4");
	check_note(&p, PROBE_GUESS, "nvme1", "CT4000T700SSD3");
	check_note(&p, PROBE_FAULT, "nvme1.link", "PCIe 4 x2 of 5 x4");
	/* Two lanes: less than the drive reads. */
	ck_assert(hw_num_value(&m->links[second - 1].d2h.num) <
		  0.6 * hw_num_value(&m->links[first - 1].d2h.num));
	ck_assert(!has_note(&p, PROBE_FAULT, "nvme0.link", ""));
	arena_release(&a);
}
END_TEST

START_TEST(eight_lanes_of_sixteen_are_a_fault_with_a_price)
{
	setup();
	struct probe p = read_machine("desktop-rtx4090-x8");
	const struct hw_machine *m = machine(&p);
	double rate = hw_num_value(&m->links[0].h2d.num);
	ck_assert_uint_eq(m->links[0].gen, 4);
	ck_assert_uint_eq(m->links[0].width, 8);
	check_note(&p, PROBE_FAULT, "gpu0.link", "8 of 16 lanes");
	check_note(&p, PROBE_FAULT, "gpu0.link",
		arena_printf(&a, "take %.2f s instead of %.2f s", 10e9 / rate, 10e9 / rate / 2));
	check_note(&p, PROBE_HINT, "gpu0", "in use by others");
	arena_release(&a);
}
END_TEST

/* At 97 % the link is awake: what it runs at is what there is. */
START_TEST(a_busy_card_below_its_generation_is_a_fault)
{
	setup();
	struct probe p = read_machine("desktop-rtx4090-x8");
	const struct hw_machine *m = machine(&p);
	ck_assert_str_eq(m->memories[1].part, "rtx-3060-12gb");
	ck_assert_uint_eq(m->links[1].gen, 2);
	ck_assert_uint_eq(m->links[1].width, 4);
	check_note(&p, PROBE_FAULT, "gpu1.link", "busy");
	ck_assert_str_eq(probe_describe_links(&p), "all by PHB");
	arena_release(&a);
}
END_TEST

/* No driver: the name from pci.ids, the slot's generation from the port above. */
START_TEST(a_card_without_a_driver)
{
	setup();
	struct probe p = read_machine("desktop-no-driver");
	const struct hw_machine *m = machine(&p);
	ck_assert_uint_eq(p.gpus.n, 1);
	ck_assert_str_eq(p.gpus.at[0].name, "GeForce RTX 4090");
	ck_assert_str_eq(m->memories[0].part, "rtx-4090");
	ck_assert_uint_eq(m->links[0].gen, 3);
	ck_assert_uint_eq(m->links[0].width, 8);
	check_note(&p, PROBE_HINT, "gpu0.link", "the slot has generation 3, the card 4");
	check_note(&p, PROBE_GUESS, "gpu0", "24.0 GiB");
	check_note(&p, PROBE_GUESS, "ram.rate", "all 2 channels at 3200 MT/s");
	check_note(&p, PROBE_HINT, "others", "0x1002:0x164e");
	arena_release(&a);
}
END_TEST

START_TEST(a_server_with_eight_gpus)
{
	setup();
	struct probe p = read_machine("server-8xh100");
	const struct hw_machine *m = machine(&p);
	ck_assert_uint_eq(p.gpus.n, 8);
	ck_assert_int_eq(m->n_devices, 9);
	for (int i = 0; i < 8; i++) {
		ck_assert_str_eq(m->memories[i].part, "h100-sxm-80gb");
		ck_assert_int_eq(p.gpus.at[i].node, i / 4);
		ck_assert_uint_eq(m->links[8 + i].gen, 5); /* behind those to the switch */
	}
	ck_assert_str_eq(probe_describe_links(&p), "all by NV18");
	ck_assert_int_eq((int)m->links[0].between, HW_BETWEEN_ALL);
	ck_assert_str_eq(m->links[0].part, "nvlink-4");
	ck_assert_uint_eq(p.cpu.sockets, 2);
	ck_assert_uint_eq(p.cpu.cores, 112);
	ck_assert_uint_eq(p.cpu.threads, 224);
	ck_assert_str_eq(p.cpu.isa, "amx");
	ck_assert_str_eq(cpu_of(m)->part, "xeon-platinum-8480+");
	ck_assert_uint_eq(cpu_of(m)->cores, 112);
	/* two modules a channel */
	ck_assert_uint_eq(p.ram.modules, 32);
	ck_assert_uint_eq(p.ram.channels, 16);
	assert_close(hw_num_peak(&ram_of(m)->bandwidth_bytes_s), 4400e6 * 8 * 16, 1e-12);
	ck_assert(!guesses(&p));
	arena_release(&a);
}
END_TEST

/* RTX 3090s with bridges, and what no part stands for: two links, a chain. */
START_TEST(bridges_join_pairs)
{
	static const struct {
		unsigned n;
		const char *matrix, *part;
	} cases[] = {
		{2, "GPU0\tGPU1\nGPU0\tX\tNV4\nGPU1\tNV4\tX\n", "nvlink-bridge-ga102"},
		{2, "GPU0\tGPU1\nGPU0\tX\tNV2\nGPU1\tNV2\tX\n", NULL},
		{2, "GPU0\tGPU1\nGPU0\tX\tPHB\nGPU1\tPHB\tX\n", NULL},
		{3, "GPU0\tGPU1\tGPU2\nGPU0\tX\tNV4\tSYS\nGPU1\tNV4\tX\tSYS\nGPU2\tSYS\tSYS\tX\n",
			"nvlink-bridge-ga102"},
		{3, "GPU0\tGPU1\tGPU2\nGPU0\tX\tNV4\tNV4\nGPU1\tNV4\tX\tSYS\nGPU2\tNV4\tSYS\tX\n", NULL},
	};

	setup();
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct probe p = nothing();
		const char *query = "name, compute_cap\n";
		for (unsigned g = 0; g < cases[i].n; g++)
			query = arena_printf(&a, "%sNVIDIA GeForce RTX 3090, 8.6\n", query);
		probe_parse_query_gpu(&p, query);
		probe_parse_topology(&p, cases[i].matrix);
		const struct hw_link *first = &machine(&p)->links[0];
		if (cases[i].part)
			ck_assert_str_eq(first->part, cases[i].part);
		ck_assert_int_eq((int)first->between, cases[i].part ? HW_BETWEEN_PAIR : HW_BETWEEN_HOST);
		ck_assert_int_eq(has_note(&p, PROBE_GUESS, "nvlink", "through RAM"),
			!cases[i].part && strstr(cases[i].matrix, "NV"));
	}
	arena_release(&a);
}
END_TEST

/* 15 of 16 channels, 8 nodes, one module missing. */
START_TEST(two_sockets_with_many_nodes)
{
	setup();
	struct probe p = read_machine("dual-epyc7763");
	const struct hw_machine *m = machine(&p);
	ck_assert_uint_eq(p.cpu.sockets, 2);
	ck_assert_uint_eq(p.cpu.cores, 128);
	ck_assert_uint_eq(p.cpu.nodes, 8);
	ck_assert_uint_eq(p.cpu.cache[2].instances, 16);
	ck_assert_str_eq(cpu_of(m)->part, "epyc-7763");
	ck_assert_uint_eq(p.ram.channels, 15);
	ck_assert_uint_eq(p.ram.slots, 32);
	assert_close(hw_num_peak(&ram_of(m)->bandwidth_bytes_s), 2933e6 * 8 * 15, 1e-12);
	check_note(&p, PROBE_HINT, "ram", "8 NUMA nodes");
	check_note(&p, PROBE_HINT, "ram.channels", "15 of the 16");
	arena_release(&a);
}
END_TEST

START_TEST(grace_and_hopper_need_no_pcie)
{
	setup();
	struct probe p = read_machine("gh200");
	const struct hw_machine *m = machine(&p);
	ck_assert_str_eq(m->memories[0].part, "gh200-96gb");
	ck_assert_int_eq((int)m->links[0].kind, HW_LINK_C2C);
	ck_assert_str_eq(cpu_of(m)->part, "grace-72");
	ck_assert_str_eq(ram_of(m)->part, "lpddr5x-grace-480gb");
	ck_assert_str_eq(p.cpu.model, "Arm Neoverse V2");
	ck_assert(!has_note(&p, PROBE_FAULT, "gpu0.link", ""));
	arena_release(&a);
}
END_TEST

START_TEST(unified_memory)
{
	setup();
	struct probe p = read_machine("gb10");
	const struct hw_machine *m = machine(&p);
	ck_assert_int_eq(m->n_memories, 1);
	ck_assert_str_eq(m->devices[0].part, "gb10");
	ck_assert_str_eq(cpu_of(m)->part, "gb10");
	ck_assert_str_eq(ram_of(m)->part, "gb10");
	ck_assert(!guesses(&p));
	arena_release(&a);
}
END_TEST

/* "Speed: Unknown", a control group with 16 GiB and 2.5 processors, 6 of 8 threads. */
START_TEST(a_container_in_a_virtual_machine)
{
	setup();
	struct probe p = read_machine("vm-container");
	const struct hw_machine *m = machine(&p);
	ck_assert_uint_eq(p.cpu.threads, 6);
	ck_assert_uint_eq(p.cpu.all_threads, 8);
	assert_close(p.cpu.quota, 2.5, 0);
	ck_assert_uint_eq(cpu_of(m)->cores, 2);
	ck_assert_str_eq(cpu_of(m)->part, "xeon-gold-6230");
	ck_assert(!(p.ram.rate_t_s > 0));
	ck_assert_uint_eq(ram_of(m)->capacity_bytes, (uint64_t)16 << 30);
	/* 5 GiB in use, 3 of them page cache */
	ck_assert_uint_eq(ram_of(m)->reserved_bytes, (uint64_t)2 << 30);
	check_note(&p, PROBE_HINT, "ram", "limits it to 16.0 GiB");
	check_note(&p, PROBE_HINT, "cpu0", "2.5 of 6 cores");
	check_note(&p, PROBE_GUESS, "ram.bandwidth", "virtual machine");
	arena_release(&a);
}
END_TEST

/* One module of all the memory: a virtual machine's modules are made up. */
START_TEST(modules_of_a_virtual_machine_are_not_believed)
{
	setup();
	struct probe p =
		modules("Memory Device\n\tSize: 32 GB\n\tType: DDR4\n\tLocator: DIMM_A1\n\tSpeed: 2933 MT/s\n"
			"\tConfigured Memory Speed: 2933 MT/s\n");
	assert_close(hw_num_peak(&ram_of(machine(&p))->bandwidth_bytes_s), 2933e6 * 8, 1e-12);
	p.cpu.hypervisor = true;
	ck_assert_str_eq(hw_num_basis(&ram_of(machine(&p))->bandwidth_bytes_s), "assumed");
	check_note(&p, PROBE_GUESS, "ram.bandwidth", "virtual machine");
	arena_release(&a);
}
END_TEST

START_TEST(a_card_that_is_no_part)
{
	setup();
	struct probe p = read_machine("unknown-gpu");
	const struct hw_machine *m = machine(&p);
	ck_assert_int_eq(m->n_devices, 2);
	ck_assert_uint_eq(m->memories[0].capacity_bytes, (uint64_t)49152 << 20);
	ck_assert_str_eq(hw_num_basis(&m->memories[0].bandwidth_bytes_s), "assumed");
	check_note(&p, PROBE_GUESS, "gpu0", "offsim calibrate cuda");
	check_note(&p, PROBE_GUESS, "gpu0.link", "pcie-4x16 is assumed");
	check_note(&p, PROBE_GUESS, "0000:02:00.0", "left out");
	arena_release(&a);
}
END_TEST

START_TEST(nothing_found_is_no_error)
{
	char root[] = "/tmp/offsim-probe-XXXXXX";

	setup();
	ck_assert_ptr_nonnull(mkdtemp(root));
	struct probe p = read_root(root);
	const struct hw_machine *m = machine(&p);
	rmdir(root);
	ck_assert_str_eq(probe_describe_cpu(&p), "unknown");
	ck_assert_str_eq(cpu_of(m)->part, "generic-cpu");
	ck_assert_int_eq(m->n_memories, 1);
	check_note(&p, PROBE_GUESS, "cpu0", "assumed");
	check_note(&p, PROBE_GUESS, "ram.capacity", "assumed");
	arena_release(&a);
}
END_TEST

START_TEST(the_machine_at_hand)
{
	setup();
	struct probe p = read_root(NULL);
	machine(&p);
	ck_assert_uint_gt(p.cpu.cores, 0);
	ck_assert_uint_gt(p.ram.total_bytes, 0);
	arena_release(&a);
}
END_TEST

START_TEST(a_root_must_be_a_folder)
{
	struct probe p;
	struct err err = {0};

	setup();
	ck_assert_int_eq(probe_read(&p, "/no/such/folder", &a, &err), -1);
	assert_err(err, ERR_INPUT, "cannot read the recording '/no/such/folder': No such file or directory");
	ck_assert_int_eq(probe_read(&p, "/dev/null", &a, &err), -1);
	assert_err(err, ERR_INPUT, "the recording '/dev/null' is no folder");
	arena_release(&a);
}
END_TEST

/* ---- programs ---- */

/* Names of drivers and kernels are parts; size is the GPU's MiB or the socket's cores. */
START_TEST(names_of_drivers_and_kernels)
{
	static const char *const columns[] = {"kind", "name", "size", "part"};
	struct probe_library lib;
	struct csv csv;
	struct csv_field f[4];
	struct err err;
	size_t n = 0;
	int more;

	setup();
	assert_ok(probe_library_open(&lib, &a, &err), err);
	assert_ok(csv_open(&csv, "tests/data/probe_names.csv", columns, 4, &a, &err), err);
	for (; (more = csv_next(&csv, f, &err)) > 0; n++) {
		const char *name = arena_strndup(&a, f[1].text, f[1].len), *part, *called;
		unsigned size = (unsigned)strtoul(f[2].text, NULL, 10);
		if (f[0].text[0] == 'c')
			assert_ok(probe_find_cpu(&lib, name, size, &called, &part, &err), err);
		else
			assert_ok(probe_find_part(&lib, f[0].text[0] == 'g' ? HW_PART_GPU : HW_PART_NVME, name,
					  (uint64_t)size << 20, &part, &err), err);
		const char *want = arena_strndup(&a, f[3].text, f[3].len);
		ck_assert_msg(!strcmp(part ? part : "", want), "'%s' is '%s', not '%s'", name, part ? part : "", want);
	}
	ck_assert_int_eq(more, 0);
	ck_assert_uint_gt(n, 100);
}
END_TEST

START_TEST(programs_end_in_time_or_are_none)
{
	const struct probe_source here = {NULL, &a};
	static const char *const missing[] = {"no-such-program-of-offsim", NULL};
	static const char *const failing[] = {"false", NULL};
	static const char *const endless[] = {"sleep", "60", NULL};
	static const char *const noisy[] = {"yes", NULL};
	static const char *const locale[] = {"sh", "-c", "echo $LC_ALL; echo lost >&2", NULL};

	setup();
	ck_assert_ptr_null(probe_program(&here, "", missing, 5));
	ck_assert_ptr_null(probe_program(&here, "", failing, 5));
	ck_assert_ptr_null(probe_program(&here, "", endless, 1));
	ck_assert_ptr_null(probe_program(&here, "", noisy, 30)); /* too much of it */
	ck_assert_str_eq(probe_program(&here, "", locale, 5), "C\n");
	arena_release(&a);
}
END_TEST

/* It closed its output and lives on. */
START_TEST(a_program_that_only_closes_its_output)
{
	const struct probe_source here = {NULL, &a};
	static const char *const silent[] = {"sh", "-c", "exec >&-; exec sleep 60", NULL};

	setup();
	ck_assert_ptr_null(probe_program(&here, "", silent, 1));
	arena_release(&a);
}
END_TEST

TEST_MAIN("probe", a_line_loses_escapes_and_blanks, sizes_and_numbers_of_other_programs, instruction_sets,
	names_of_drivers_and_kernels,
	channels_have_no_standard, old_dmidecode_says_megahertz, nvidia_smi_brackets_are_null,
	topology_of_one_gpu_with_escapes, topology_cut_short, this_kind_of_virtual_machine,
	an_idle_card_is_taken_at_its_highest_generation, modules_run_at_what_is_configured,
	drives_by_name_and_by_link, eight_lanes_of_sixteen_are_a_fault_with_a_price,
	a_busy_card_below_its_generation_is_a_fault, a_card_without_a_driver, a_server_with_eight_gpus,
	bridges_join_pairs, two_sockets_with_many_nodes, grace_and_hopper_need_no_pcie, unified_memory,
	a_container_in_a_virtual_machine, modules_of_a_virtual_machine_are_not_believed,
	a_card_that_is_no_part, nothing_found_is_no_error, the_machine_at_hand, a_root_must_be_a_folder,
	programs_end_in_time_or_are_none, a_program_that_only_closes_its_output)
