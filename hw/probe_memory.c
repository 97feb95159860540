/*
 * probe_memory.c - host memory: /proc/meminfo, control groups, and the modules as dmidecode lists them.
 */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "hw/probe_text.h"

static uint64_t at_most(uint64_t bytes)
{
	return bytes <= PROBE_MAX_BYTES ? bytes : 0;
}

void probe_parse_meminfo(struct probe *p, const char *text)
{
	char *line, *value;

	while ((line = probe_line(&text, p->a))) {
		if (!(value = probe_value(line)))
			continue;
		uint64_t bytes = at_most(probe_count(value, PROBE_MAX_BYTES) * 1024);
		if (!strcmp(line, "MemTotal"))
			p->ram.total_bytes = bytes;
		else if (!strcmp(line, "MemAvailable"))
			p->ram.available_bytes = bytes;
	}
	if (p->ram.available_bytes > p->ram.total_bytes)
		p->ram.available_bytes = p->ram.total_bytes;
}

/* ---- control groups ---- */

/* Version 2 names it "file", version 1 "total_cache" (with the groups below). */
uint64_t probe_parse_page_cache(const char *text, struct arena *a)
{
	uint64_t cache = 0;
	char *line;

	while ((line = probe_line(&text, a)))
		if (!strncmp(line, "file ", 5) || !strncmp(line, "total_cache ", 12))
			cache = at_most(probe_count(strchr(line, ' ') + 1, PROBE_MAX_BYTES));
	return cache;
}

static uint64_t group_bytes(const struct probe_source *s, const char *dir, const char *v2, const char *v1)
{
	const char *word = probe_word(s, arena_printf(s->a, "%s/%s", dir, v2));

	if (!*word)
		word = probe_word(s, arena_printf(s->a, "%s/%s", dir, v1));
	return at_most(probe_count(word, UINT64_MAX));
}

/* The tightest on the way up counts; "max", and numbers beyond the memory, are no limits. */
static void read_limits(struct probe *p, const struct probe_source *s)
{
	size_t n;
	const char **dirs = probe_groups(s, "memory", &n);

	for (size_t i = 0; i < n; i++) {
		uint64_t limit = group_bytes(s, dirs[i], "memory.max", "memory.limit_in_bytes");
		if (!limit || (p->ram.limit_bytes && p->ram.limit_bytes <= limit) ||
			(p->ram.total_bytes && limit >= p->ram.total_bytes))
			continue;
		uint64_t used = group_bytes(s, dirs[i], "memory.current", "memory.usage_in_bytes");
		const char *stat = probe_file(s, arena_printf(s->a, "%s/memory.stat", dirs[i]));
		uint64_t cache = stat ? probe_parse_page_cache(stat, s->a) : 0;
		p->ram.limit_bytes = limit;
		p->ram.limit_used_bytes = used > cache ? used - cache : 0;
	}
}

/* ---- modules ---- */

struct module {
	const char *locator, *bank, *type;
	uint64_t bytes;
	double rated_t_s, configured_t_s;
};

struct modules {
	struct probe *p;
	struct module now; /* being read */
	bool open;
	bool unnamed; /* some locator does not tell the channel */
	struct {
		VEC(const char *);
	} channels; /* names, each once */
};

/* Up to and with the letter or number behind `word`, however they are joined: "P0 CHANNEL A",
 * "P1_Node0_Channel0". */
static const char *name_through(struct arena *a, const char *text, const char *word)
{
	const char *at = strcasestr(text, word), *end;

	if (!at)
		return NULL;
	end = at + strlen(word);
	end += strspn(end, " _-");
	if (isdigit((unsigned char)*end))
		end += strspn(end, "0123456789");
	else if (isalpha((unsigned char)*end))
		end++;
	else
		return NULL;
	return arena_strndup(a, text, (size_t)(end - text));
}

/* There is no standard for locators. "DIMM_A1" and "P2-DIMMA2" have the channel's letter; "DIMM 0" has not,
   unless the bank says it. */
static const char *channel_of(struct arena *a, const struct module *m)
{
	const char *name = name_through(a, m->bank, "channel");

	if (!name)
		name = name_through(a, m->locator, "channel");
	if (!name && !strncasecmp(m->locator, "Controller", 10) && strcasestr(m->locator, "-DIMM"))
		name = arena_strndup(a, m->locator, (size_t)(strcasestr(m->locator, "-DIMM") - m->locator));
	if (!name) {
		name = name_through(a, m->locator, "DIMM");
		if (name && isdigit((unsigned char)name[strlen(name) - 1]))
			name = NULL;
	}
	return name;
}

static void add_channel(struct modules *m, const char *name)
{
	for (size_t i = 0; i < m->channels.n; i++)
		if (!strcmp(m->channels.at[i], name))
			return;
	VEC_PUSH(&m->channels, m->p->a, name);
}

static double slower(double a, double b)
{
	return a > 0 && b > 0 ? fmin(a, b) : fmax(a, b);
}

static void close_module(struct modules *m)
{
	struct probe_ram *ram = &m->p->ram;
	const struct module *now = &m->now;

	ram->slots += m->open;
	if (m->open && now->bytes) {
		const char *channel = channel_of(m->p->a, now);
		ram->modules++;
		ram->module_bytes = at_most(ram->module_bytes + now->bytes);
		if (!*ram->type && strncmp(now->type, "Unknown", 7))
			ram->type = now->type;
		ram->rate_is_rated = ram->rate_is_rated || !(now->configured_t_s > 0);
		ram->rate_t_s =
			slower(ram->rate_t_s, now->configured_t_s > 0 ? now->configured_t_s : now->rated_t_s);
		ram->rated_t_s = slower(ram->rated_t_s, now->rated_t_s);
		if (channel)
			add_channel(m, channel);
		m->unnamed = m->unnamed || !channel;
	}
	m->now = (struct module){.locator = "", .bank = "", .type = ""};
	m->open = false;
}

/* "4800 MT/s"; old versions say MHz and mean the same. */
static double transfers(const char *text)
{
	double v = probe_number(text);

	return v >= 100 && v <= 100000 && strstr(text, " M") ? v * 1e6 : 0;
}

static void read_property(struct modules *m, const char *key, const char *value)
{
	struct module *now = &m->now;

	/* Excerpts have no "Memory Device" before each. */
	if (!strcmp(key, "Size")) {
		if (m->open && now->bytes)
			close_module(m);
		m->open = true;
		now->bytes = probe_size(value);
	} else if (!strcmp(key, "Locator")) {
		now->locator = value;
	} else if (!strcmp(key, "Bank Locator")) {
		now->bank = value;
	} else if (!strcmp(key, "Type")) {
		now->type = arena_printf(m->p->a, "%.16s", value);
	} else if (!strcmp(key, "Speed")) {
		now->rated_t_s = transfers(value);
	} else if (!strcmp(key, "Configured Memory Speed") || !strcmp(key, "Configured Clock Speed")) {
		now->configured_t_s = transfers(value);
	}
}

void probe_parse_dmidecode(struct probe *p, const char *text)
{
	struct modules m = {.p = p};
	char *line, *value;

	close_module(&m);
	while ((line = probe_line(&text, p->a))) {
		if (!strcmp(line, "Memory Device") || !strncmp(line, "Handle 0x", 9))
			close_module(&m);
		else if ((value = probe_value(line)))
			read_property(&m, line, value);
	}
	close_module(&m);
	p->ram.channels = m.unnamed ? 0 : (unsigned)m.channels.n;
}

void probe_read_ram(struct probe *p, const struct probe_source *s)
{
	static const char *const dmidecode[] = {"dmidecode", "-t", "17", NULL};
	const char *meminfo = probe_file(s, "proc/meminfo");
	const char *modules = probe_program(s, "dmidecode-17.txt", dmidecode, 10);

	if (meminfo)
		probe_parse_meminfo(p, meminfo);
	read_limits(p, s);
	if (modules)
		probe_parse_dmidecode(p, modules);
}
