#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "hw/measure.h"
#include "hw/probe.h"

#define MAX_CPUS 8192
#define MAX_TEXT (4 << 20)

/* "" when the file is not there: in containers much of /sys may be missing. */
static const char *text_of(struct arena *a, const char *path)
{
	char *text;
	size_t len;

	if (file_read(path, MAX_TEXT, a, &text, &len, NULL))
		return "";
	text[strcspn(text, "\n")] = '\0';
	return text;
}

static long number_of(struct arena *a, const char *path, long otherwise)
{
	const char *text = text_of(a, path);
	char *end;
	long n = strtol(text, &end, 10);

	return end == text ? otherwise : n;
}

/* "0-3,8": is n in it? */
static bool listed(const char *list, long n)
{
	while (*list) {
		char *end;
		long first = strtol(list, &end, 10), last = first;
		if (end == list)
			return false;
		if (*end == '-')
			last = strtol(end + 1, &end, 10);
		if (n >= first && n <= last)
			return true;
		list = *end == ',' ? end + 1 : end;
	}
	return false;
}

/* The value behind "KEY : " or "KEY:" in a file of such lines; NULL when there is none. */
static char *field(struct arena *a, const char *path, const char *key)
{
	char *text;
	size_t len, n = strlen(key);

	if (file_read(path, MAX_TEXT, a, &text, &len, NULL))
		return NULL;
	for (char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		if (strncmp(line, key, n) != 0)
			continue;
		char *value = line + n + strspn(line + n, " \t");
		if (*value++ != ':')
			continue;
		value += strspn(value, " \t");
		value[strcspn(value, "\n")] = '\0';
		return value;
	}
	return NULL;
}

struct cpu {
	int number, node;	  /* node: an index */
	long package, core, rank; /* rank: how many threads of its core come before it */
	uint64_t cache_bytes;
	bool cache_counted; /* by a processor before it */
};

static uint64_t bytes_of(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	return (uint64_t)n << (*end == 'K' ? 10 : *end == 'M' ? 20 : 0);
}

/* Its last cache: the highest level that holds data. */
static const char *read_cache(struct arena *a, struct cpu *c)
{
	const char *shared = "";
	long best = 0;

	for (int i = 0; i < 8; i++) {
		const char *at = arena_printf(a, "/sys/devices/system/cpu/cpu%d/cache/index%d", c->number, i);
		long level = number_of(a, arena_printf(a, "%s/level", at), 0);
		if (level <= best || strcmp(text_of(a, arena_printf(a, "%s/type", at)), "Instruction") == 0)
			continue;
		best = level;
		c->cache_bytes = bytes_of(text_of(a, arena_printf(a, "%s/size", at)));
		shared = text_of(a, arena_printf(a, "%s/shared_cpu_list", at));
	}
	return shared;
}

static void read_cpu(
	struct arena *a, const char *const *node_list, unsigned nodes, struct cpu *all, unsigned n)
{
	struct cpu *c = &all[n];
	const char *at = arena_printf(a, "/sys/devices/system/cpu/cpu%d/topology", c->number);

	c->package = number_of(a, arena_printf(a, "%s/physical_package_id", at), 0);
	c->core = number_of(a, arena_printf(a, "%s/core_id", at), c->number);
	for (unsigned i = 0; i < nodes; i++)
		if (listed(node_list[i], c->number))
			c->node = (int)i;
	const char *shared = read_cache(a, c);
	for (unsigned i = 0; i < n; i++) {
		c->rank += all[i].package == c->package && all[i].core == c->core;
		c->cache_counted |= listed(shared, all[i].number);
	}
}

/* One thread of each core first; the nodes take turns, so that half of the threads use all of them. */
static int by_use(const void *x, const void *y)
{
	const struct cpu *a = x, *b = y;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

static void take_turns(
	const struct cpu *cpu, unsigned n, unsigned nodes, int *number, int *node, struct arena *a)
{
	bool *used = arena_array(a, bool, n);
	unsigned turn = 0, first = 0;

	for (unsigned done = 0; done < n; turn = (turn + 1) % nodes) {
		while (used[first])
			first++;
		/* A second thread of a core waits for the first ones of the other nodes. */
		for (unsigned i = first; i < n && cpu[i].rank == cpu[first].rank; i++) {
			if (used[i] || cpu[i].node != (int)turn)
				continue;
			used[i] = true;
			number[done] = cpu[i].number;
			node[done++] = cpu[i].node;
			break;
		}
	}
}

/* Nodes that have memory, with the processors near each. A system that knows of none has one. */
static unsigned read_nodes(struct arena *a, const char ***lists, int **numbers)
{
	const char *having = text_of(a, "/sys/devices/system/node/has_memory");
	unsigned n = 0;

	*lists = arena_array(a, const char *, 1024);
	*numbers = arena_array(a, int, 1024);
	for (int i = 0; i < 1024 && *having; i++) {
		const char *near = text_of(a, arena_printf(a, "/sys/devices/system/node/node%d/cpulist", i));
		if (!listed(having, i) || !*near)
			continue;
		(*lists)[n] = near;
		(*numbers)[n++] = i;
	}
	if (n)
		return n;
	(*lists)[0] = "0-8191";
	(*numbers)[0] = 0;
	return 1;
}

/* Nodes without a processor that we may use are left out; the others are numbered anew. */
static unsigned drop_unused_nodes(struct cpu *cpu, unsigned n, unsigned nodes, int *numbers)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < nodes; i++) {
		bool used = false;
		for (unsigned k = 0; k < n; k++) {
			if (cpu[k].node != (int)i)
				continue;
			cpu[k].node = (int)kept;
			used = true;
		}
		if (used)
			numbers[kept++] = numbers[i];
	}
	return kept;
}

static uint64_t kilobytes(struct arena *a, const char *key)
{
	const char *text = field(a, "/proc/meminfo", key);

	return text ? strtoull(text, NULL, 10) << 10 : 0;
}

/* "200000 100000" (microseconds in each period of so many) or "max 100000"; version 2 of control groups. */
static unsigned read_quota(struct arena *a, unsigned threads)
{
	char *end;
	const char *text = text_of(a, "/sys/fs/cgroup/cpu.max");
	double quota = strtod(text, &end), period = end == text ? 0 : strtod(end, NULL);

	if (quota < 1 || period < 1)
		return threads;
	double whole = ceil(quota / period);
	return whole < threads ? (unsigned)whole : threads;
}

static const char *cpu_name(struct arena *a)
{
	static const char *const keys[] = {"model name", "Model", "CPU part"};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		char *name = field(a, "/proc/cpuinfo", keys[i]);
		if (name && *name)
			return name;
	}
	return "unknown processor";
}

/* x86 and Arm. */
static const char *cpu_isa(struct arena *a)
{
	const char *flags = field(a, "/proc/cpuinfo", "flags"), *features = field(a, "/proc/cpuinfo", "Features");

	return flags ? probe_isa(flags) : features ? probe_isa(features) : "";
}

static void count(const struct cpu *cpu, unsigned n, struct measure_host *h)
{
	for (unsigned i = 0; i < n; i++) {
		bool new_package = true;
		h->cores += cpu[i].rank == 0;
		if (!cpu[i].cache_counted)
			h->last_cache_bytes += cpu[i].cache_bytes;
		for (unsigned k = 0; k < i; k++)
			new_package &= cpu[k].package != cpu[i].package;
		h->sockets += new_package;
	}
}

int measure_host_read(struct arena *a, struct measure_host *h, struct err *err)
{
	cpu_set_t *set = CPU_ALLOC(MAX_CPUS);
	size_t set_bytes = CPU_ALLOC_SIZE(MAX_CPUS);
	const char **lists;
	int *numbers;

	*h = (struct measure_host){.cpu = cpu_name(a), .isa = cpu_isa(a)};
	if (!set || sched_getaffinity(0, set_bytes, set)) {
		CPU_FREE(set);
		return err_set(err, ERR_IO, "cannot ask which processors may be used: %s", strerror(errno));
	}
	unsigned nodes = read_nodes(a, &lists, &numbers), n = (unsigned)CPU_COUNT_S(set_bytes, set), i = 0;
	struct cpu *cpu = arena_array(a, struct cpu, n);
	for (int number = 0; number < MAX_CPUS && i < n; number++) {
		if (!CPU_ISSET_S((size_t)number, set_bytes, set))
			continue;
		cpu[i].number = number;
		read_cpu(a, lists, nodes, cpu, i++);
	}
	CPU_FREE(set);
	count(cpu, n, h);
	h->near_cache_bytes = cpu[0].cache_bytes;
	h->threads = n;
	h->quota = read_quota(a, n);
	h->nodes = drop_unused_nodes(cpu, n, nodes, numbers);
	h->node_number = numbers;
	int *number = arena_array(a, int, n), *node = arena_array(a, int, n);
	qsort(cpu, n, sizeof(*cpu), by_use);
	take_turns(cpu, n, h->nodes, number, node, a);
	h->thread_cpu = number;
	h->thread_node = node;
	h->memory_bytes = kilobytes(a, "MemTotal");
	h->available_bytes = kilobytes(a, "MemAvailable");
	return h->memory_bytes ? 0 : err_set(err, ERR_IO, "cannot read the size of memory in /proc/meminfo");
}
