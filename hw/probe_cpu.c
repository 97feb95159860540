/*
 * probe_cpu.c - processors: /proc/cpuinfo, /sys/devices/system/cpu and node, control groups.
 */
#include <string.h>

#include "hw/probe_text.h"

/* What kernels are chosen by, the best first: llama.cpp and others test in this order. SVE comes behind I8MM:
   where the vectors are 128 bits wide, as in all but A64FX and Neoverse V1, the kernels are those of I8MM.
   VP2INTERSECT tells Zen 5, whose units are 512 bits wide, from Zen 4; of others only Tiger Lake has it. */
static const struct {
	const char *flag, *isa;
} isas[] = {
	{"amx_int8", "amx"},
	{"avx512_vp2intersect", "avx512_zen5"},
	{"avx512_vnni", "avx512_vnni"},
	{"avx512f", "avx512"},
	{"avx_vnni", "avx_vnni"},
	{"avx2", "avx2"},
	{"sse2", "sse"},
	{"i8mm", "neon_i8mm"},
	{"sve", "sve"},
	{"asimd", "neon"},
};

static bool has_word(const char *words, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = words; (at = strstr(at, word)); at += len)
		if ((at == words || at[-1] == ' ') && (at[len] == ' ' || !at[len]))
			return true;
	return false;
}

const char *probe_isa(const char *flags)
{
	for (size_t i = 0; i < ARRAY_LEN(isas); i++)
		if (has_word(flags, isas[i].flag))
			return isas[i].isa;
	return "";
}

static void read_flags(struct probe_cpu *cpu, const char *flags)
{
	cpu->hypervisor = cpu->hypervisor || has_word(flags, "hypervisor");
	if (!*cpu->isa)
		cpu->isa = probe_isa(flags);
}

/* Arm gives numbers for names: "0x41:0xd4f"; the kinds of cores one after another, each once. */
static void add_arm_core(struct probe *p, const char *implementer, const char *part)
{
	const char *id = arena_printf(p->a, "%.8s:%.8s", implementer, part);

	if (!strncmp(p->cpu.model, "arm ", 4) && !has_word(p->cpu.model + 4, id) && strlen(p->cpu.model) < 80)
		p->cpu.model = arena_printf(p->a, "%s %s", p->cpu.model, id);
	else if (!*p->cpu.model)
		p->cpu.model = arena_printf(p->a, "arm %s", id);
}

static struct probe_thread *list_thread(struct probe_threads *t, const char *number)
{
	unsigned i = (unsigned)probe_count(number, PROBE_MAX_CPUS);

	if (i >= PROBE_MAX_CPUS || *number < '0' || *number > '9')
		return NULL;
	t->at[i] = (struct probe_thread){true, true, -1, -1};
	if (i >= t->n)
		t->n = i + 1;
	return &t->at[i];
}

void probe_parse_cpuinfo(struct probe *p, struct probe_threads *t, const char *text)
{
	struct probe_thread *thread = NULL;
	const char *implementer = "";
	char *line, *value;

	while ((line = probe_line(&text, p->a))) {
		if (!(value = probe_value(line)))
			continue;
		if (!strcmp(line, "processor"))
			thread = list_thread(t, value);
		else if (!strcmp(line, "model name") && !*p->cpu.model)
			p->cpu.model = arena_printf(p->a, "%.100s", value);
		else if (!strcmp(line, "physical id") && thread)
			thread->package = (int)probe_count(value, INT32_MAX);
		else if (!strcmp(line, "core id") && thread)
			thread->core = (int)probe_count(value, INT32_MAX);
		else if (!strcmp(line, "flags") || !strcmp(line, "Features"))
			read_flags(&p->cpu, value);
		else if (!strcmp(line, "CPU implementer"))
			implementer = value;
		else if (!strcmp(line, "CPU part"))
			add_arm_core(p, implementer, value);
		else if (!strcmp(line, "cpu MHz") && !(p->cpu.clock_hz > 0))
			p->cpu.clock_hz = probe_number(value) * 1e6;
	}
}

void probe_parse_allowed(struct probe_threads *t, const char *text, struct arena *a)
{
	char *line, *value;

	while ((line = probe_line(&text, a))) {
		if (!(value = probe_value(line)) || strcmp(line, "Cpus_allowed_list"))
			continue;
		bool *set = arena_array(a, bool, PROBE_MAX_CPUS);
		if (!probe_cpu_list(value, set, PROBE_MAX_CPUS))
			return;
		for (unsigned i = 0; i < t->n; i++)
			t->at[i].allowed = set[i];
	}
}

static int by_core(const void *a, const void *b)
{
	const struct probe_thread *x = a, *y = b;

	if (x->package != y->package)
		return x->package < y->package ? -1 : 1;
	return (x->core > y->core) - (x->core < y->core);
}

void probe_count_threads(struct probe *p, const struct probe_threads *t)
{
	struct probe_thread *ours = arena_array(p->a, struct probe_thread, t->n);
	struct probe_cpu *cpu = &p->cpu;
	unsigned n = 0;

	for (unsigned i = 0; i < t->n; i++) {
		cpu->all_threads += t->at[i].listed;
		if (t->at[i].listed && t->at[i].allowed)
			ours[n++] = t->at[i];
	}
	qsort(ours, n, sizeof(*ours), by_core);
	for (unsigned i = 0; i < n; i++) {
		bool known = ours[i].core >= 0; /* unknown ones count each for themselves */
		cpu->cores += !i || !known || by_core(&ours[i], &ours[i - 1]) != 0;
		cpu->sockets += !i || ours[i].package != ours[i - 1].package;
	}
	cpu->threads = n;
	if (cpu->sockets > PROBE_MAX_SOCKETS)
		cpu->sockets = PROBE_MAX_SOCKETS;
}

/* ---- /sys ---- */

static const char *cpu_path(struct arena *a, unsigned i, const char *file)
{
	return arena_printf(a, "sys/devices/system/cpu/cpu%u/%s", i, file);
}

/* Where /proc/cpuinfo does not say (Arm). */
static void read_topology(const struct probe_source *s, unsigned i, struct probe_thread *t)
{
	const char *package = probe_word(s, cpu_path(s->a, i, "topology/physical_package_id"));
	const char *core = probe_word(s, cpu_path(s->a, i, "topology/core_id"));

	if (t->package < 0 && *package >= '0' && *package <= '9')
		t->package = (int)probe_count(package, INT32_MAX);
	if (t->core < 0 && *core >= '0' && *core <= '9')
		t->core = (int)probe_count(core, INT32_MAX);
}

static void read_caches(struct probe *p, const struct probe_source *s)
{
	for (unsigned i = 0; i < 8; i++) {
		const char *dir = cpu_path(s->a, 0, arena_printf(s->a, "cache/index%u", i));
		uint64_t level = probe_count(probe_word(s, arena_printf(s->a, "%s/level", dir)), 9);
		if (level < 1 || level > ARRAY_LEN(p->cpu.cache) ||
			!strcmp(probe_word(s, arena_printf(s->a, "%s/type", dir)), "Instruction"))
			continue;
		struct probe_cache *cache = &p->cpu.cache[level - 1];
		unsigned shared = probe_cpu_list(
			probe_word(s, arena_printf(s->a, "%s/shared_cpu_list", dir)), NULL, PROBE_MAX_CPUS);
		cache->level = (unsigned)level;
		cache->bytes = probe_size(probe_word(s, arena_printf(s->a, "%s/size", dir)));
		cache->instances = shared ? (p->cpu.all_threads + shared - 1) / shared : 0;
	}
}

static void read_clock(struct probe *p, const struct probe_source *s)
{
	static const char *const files[] = {
		"cpufreq/base_frequency", "acpi_cppc/nominal_freq", "cpufreq/cpuinfo_max_freq"};
	static const double unit_hz[] = {1e3, 1e6, 1e3};

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		double clock = probe_number(probe_word(s, cpu_path(s->a, 0, files[i]))) * unit_hz[i];
		if (clock > 1e8 && clock < 2e10) {
			p->cpu.clock_hz = clock;
			return;
		}
	}
	/* What it runs at now; a sleeping one says less than it can. */
	if (p->cpu.clock_hz < 1e9 || p->cpu.clock_hz > 2e10)
		p->cpu.clock_hz = 0;
}

/* "max 100000" or "400000 100000", or the two files of version 1. */
static double quota_of(const char *quota, const char *period)
{
	double us = probe_number(quota), every = probe_number(period);

	return us > 0 && every > 0 ? us / every : 0;
}

/* The tightest on the way up. */
static double read_quota(const struct probe_source *s)
{
	size_t n;
	const char **dirs = probe_groups(s, "cpu", &n);
	double least = 0;

	for (size_t i = 0; i < n; i++) {
		const char *max = probe_word(s, arena_printf(s->a, "%s/cpu.max", dirs[i]));
		const char *period = strchr(max, ' ');
		double quota =
			period ? quota_of(max, period + 1)
			       : quota_of(probe_word(s, arena_printf(s->a, "%s/cpu.cfs_quota_us", dirs[i])),
					 probe_word(s, arena_printf(s->a, "%s/cpu.cfs_period_us", dirs[i])));
		if (quota > 0 && (!(least > 0) || quota < least))
			least = quota;
	}
	return least;
}

/* Where no flag says so (Arm): the maker and name of the machine. */
static bool is_virtual(const struct probe_source *s)
{
	static const char *const names[] = {"QEMU", "KVM", "VMware", "VirtualBox", "Xen", "Amazon EC2",
		"Google Compute Engine", "Virtual Machine", "Alibaba Cloud"};
	const char *machine = arena_printf(s->a, "%s %s", probe_word(s, "sys/class/dmi/id/sys_vendor"),
		probe_word(s, "sys/class/dmi/id/product_name"));

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strstr(machine, names[i]))
			return true;
	return false;
}

void probe_read_cpu(struct probe *p, const struct probe_source *s)
{
	struct probe_threads t = {.at = arena_array(s->a, struct probe_thread, PROBE_MAX_CPUS)};
	const char *cpuinfo = probe_file(s, "proc/cpuinfo"), *status = probe_file(s, "proc/self/status");

	if (cpuinfo)
		probe_parse_cpuinfo(p, &t, cpuinfo);
	if (status)
		probe_parse_allowed(&t, status, s->a);
	for (unsigned i = 0; i < t.n; i++)
		if (t.at[i].listed && t.at[i].core < 0)
			read_topology(s, i, &t.at[i]);
	probe_count_threads(p, &t);
	read_caches(p, s);
	read_clock(p, s);
	p->cpu.nodes = probe_cpu_list(probe_word(s, "sys/devices/system/node/has_cpu"), NULL, 1024);
	p->cpu.quota = read_quota(s);
	p->cpu.hypervisor = p->cpu.hypervisor || is_virtual(s);
}
