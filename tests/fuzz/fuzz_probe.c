/*
 * Any bytes as what /proc and other programs print, a text a parser, 0x1e between them in the order of
 * `parsers`. What comes out keeps its promises, and when the first byte is 1, the profile of it loads (slow,
 * so not always).
 */
#include <math.h>
#include <string.h>

#include "hw/probe.h"
#include "hw/probe_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok, const char *what)
{
	if (!ok)
		BUG("%s", what);
}

static void check_text(const char *text)
{
	for (; *text; text++)
		check(*text == '\t' || (*text >= ' ' && *text <= '~'), "a text is not printable ASCII");
}

static void check_found(const struct probe *p)
{
	const struct probe_cpu *cpu = &p->cpu;
	const struct probe_ram *ram = &p->ram;

	check_text(cpu->model);
	check(cpu->cores <= cpu->threads && cpu->threads <= cpu->all_threads &&
			cpu->sockets <= PROBE_MAX_SOCKETS,
		"cores and threads");
	check(ram->available_bytes <= ram->total_bytes && ram->total_bytes <= PROBE_MAX_BYTES &&
			ram->module_bytes <= PROBE_MAX_BYTES,
		"memory");
	check(ram->modules <= ram->slots && ram->channels <= ram->modules, "modules");
	check(ram->rate_t_s >= 0 && ram->rate_t_s <= 1e11 && ram->rated_t_s >= 0, "rates");
	for (size_t i = 0; i < p->gpus.n; i++) {
		const struct probe_gpu *gpu = &p->gpus.at[i];
		check_text(probe_describe_gpu(p, i));
		check(*gpu->name && gpu->memory_bytes <= PROBE_MAX_BYTES && gpu->busy <= 1, "a GPU");
	}
	check_text(probe_describe_cpu(p));
	check_text(probe_describe_ram(p));
	check_text(probe_describe_links(p));
}

typedef void parse_fn(struct probe *p, struct probe_threads *t, const char *text);

static void cpuinfo(struct probe *p, struct probe_threads *t, const char *text)
{
	probe_parse_cpuinfo(p, t, text);
}

static void allowed(struct probe *p, struct probe_threads *t, const char *text)
{
	probe_parse_allowed(t, text, p->a);
}

static void meminfo(struct probe *p, struct probe_threads *t, const char *text)
{
	(void)t;
	probe_parse_meminfo(p, text);
}

static void dmidecode(struct probe *p, struct probe_threads *t, const char *text)
{
	(void)t;
	probe_parse_dmidecode(p, text);
}

static void query_gpu(struct probe *p, struct probe_threads *t, const char *text)
{
	(void)t;
	probe_parse_query_gpu(p, text);
}

static void topology(struct probe *p, struct probe_threads *t, const char *text)
{
	(void)t;
	probe_parse_topology(p, text);
}

static void page_cache(struct probe *p, struct probe_threads *t, const char *text)
{
	(void)t;
	check(probe_parse_page_cache(text, p->a) <= PROBE_MAX_BYTES, "page cache");
}

static void pci_ids(struct probe *p, struct probe_threads *t, const char *text)
{
	(void)t;
	const char *name = probe_parse_pci_ids(text, 0x10de, 0x2684, p->a);
	if (name)
		check_text(name);
}

static parse_fn *const parsers[] = {
	cpuinfo, allowed, meminfo, dmidecode, query_gpu, topology, page_cache, pci_ids};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a;
	struct probe p;
	const char *yaml;
	struct err err = {0};

	if (size < 1 || size > 65536)
		return 0;
	arena_init(&a, NULL, NULL);
	probe_init(&p, &a);
	struct probe_threads t = {.at = arena_array(&a, struct probe_thread, PROBE_MAX_CPUS)};
	const char *at = (const char *)data + 1, *end = (const char *)data + size;
	for (size_t i = 0; i < ARRAY_LEN(parsers) && at <= end; i++) {
		const char *stop = at < end ? memchr(at, 0x1e, (size_t)(end - at)) : NULL;
		size_t len = (size_t)((stop ? stop : end) - at);
		char *text = malloc(len + 1); /* its own block, so that reading behind it is found */
		memcpy(text, at, len);
		text[len] = '\0';
		parsers[i](&p, &t, text);
		free(text);
		at += len + 1;
	}
	probe_count_threads(&p, &t);
	check_found(&p);
	if (data[0] == 1 && probe_write_profile(&p, &yaml, &err))
		BUG("the profile is refused: %s:%d:%d: %s", err.file, err.line, err.col, err.msg);
	arena_release(&a);
	return 0;
}
