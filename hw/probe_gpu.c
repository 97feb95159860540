/*
 * probe_gpu.c - GPUs as nvidia-smi tells of them.
 */
#include <math.h>
#include <string.h>

#include "hw/probe_text.h"

/* "[N/A]", "N/A" and "[Requested functionality has been deprecated]" are no values. */
static bool is_null(const char *value)
{
	return !*value || *value == '[' || !strcmp(value, "N/A");
}

static unsigned small(const char *value, unsigned max)
{
	uint64_t n = is_null(value) ? 0 : probe_count(value, 1000);

	return n <= max ? (unsigned)n : 0;
}

static const char *lower(struct arena *a, const char *text)
{
	char *copy = arena_strdup(a, text);

	for (char *c = copy; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
	return copy;
}

/* "00000000:01:00.0" is "0000:01:00.0" in /sys. */
static const char *bus_of(struct arena *a, const char *value)
{
	return lower(a, arena_printf(a, "%.20s", strlen(value) == 16 ? value + 4 : value));
}

static void set_field(struct probe_gpu *gpu, const char *key, const char *value, struct arena *a)
{
	if (is_null(value))
		return;
	if (!strcmp(key, "name"))
		gpu->name = arena_printf(a, "%.100s", value);
	else if (!strcmp(key, "pci.bus_id"))
		gpu->bus = bus_of(a, value);
	else if (!strcmp(key, "memory.total"))
		gpu->memory_bytes = probe_size(value);
	else if (!strcmp(key, "memory.used"))
		gpu->used_bytes = probe_size(value);
	else if (!strcmp(key, "compute_cap"))
		gpu->compute = probe_number(value);
	else if (!strcmp(key, "utilization.gpu"))
		gpu->busy = fmin(probe_number(value) / 100, 1);
	else if (!strcmp(key, "c2c.mode"))
		gpu->c2c = !strcmp(value, "Enabled");
	else if (!strcmp(key, "pcie.link.gen.current"))
		gpu->pcie.gen = small(value, 9);
	else if (!strcmp(key, "pcie.link.gen.max"))
		gpu->pcie.gen_max = small(value, 9);
	else if (!strcmp(key, "pcie.link.gen.gpumax"))
		gpu->pcie.gen_card = small(value, 9);
	else if (!strcmp(key, "pcie.link.width.current"))
		gpu->pcie.width = small(value, 32);
	else if (!strcmp(key, "pcie.link.width.max"))
		gpu->pcie.width_max = small(value, 32);
}

/* The next of the fields that ", " parts; without the unit of a heading, "memory.total [MiB]", when wanted.
 */
static const char *next_field(char **at, bool heading)
{
	char *field = *at, *end = strchr(field, ',');

	if (!*field)
		return NULL;
	*at = end ? end + 1 + strspn(end + 1, " ") : field + strlen(field);
	if (end)
		*end = '\0';
	char *unit = heading ? strstr(field, " [") : NULL;
	if (unit)
		*unit = '\0';
	return field;
}

void probe_parse_query_gpu(struct probe *p, const char *text)
{
	struct {
		VEC(const char *);
	} keys = {0};
	const char *field;
	char *line = probe_line(&text, p->a);

	while (line && (field = next_field(&line, true)))
		VEC_PUSH(&keys, p->a, field);
	while ((line = probe_line(&text, p->a))) {
		struct probe_gpu gpu = {.name = "", .bus = "", .busy = -1, .node = -1};
		for (size_t i = 0; i < keys.n && (field = next_field(&line, false)); i++)
			set_field(&gpu, keys.at[i], field, p->a);
		if (*gpu.name)
			VEC_PUSH(&p->gpus, p->a, gpu);
	}
}

/* ---- topology ---- */

struct words {
	VEC(const char *);
};

static struct words split_words(struct arena *a, char *line)
{
	struct words words = {0};
	char *save = NULL;

	for (char *w = strtok_r(line, " \t", &save); w; w = strtok_r(NULL, " \t", &save))
		VEC_PUSH(&words, a, w);
	return words;
}

static bool is_gpu(const char *word, unsigned i)
{
	return !strncmp(word, "GPU", 3) && word[3] >= '0' && word[3] <= '9' &&
	       probe_count(word + 3, 1000) == i;
}

/* The heading names GPU0, GPU1, … and then other things; each row begins with its own name. */
void probe_parse_topology(struct probe *p, const char *text)
{
	const char **cells = NULL;
	unsigned n = 0, row = 0;
	char *line;

	while ((line = probe_line(&text, p->a))) {
		struct words words = split_words(p->a, line);
		if (!n) {
			while (n < words.n && n < 64 && is_gpu(words.at[n], n))
				n++;
			cells = arena_array(p->a, const char *, (size_t)n *n);
		} else if (row < n && words.n > n && is_gpu(words.at[0], row)) {
			for (unsigned i = 0; i < n; i++)
				cells[row * n + i] = arena_printf(p->a, "%.8s", words.at[1 + i]);
			row++;
		}
	}
	if (!n || row < n)
		return;
	p->gpu_links = cells;
	p->n_gpu_links = n;
}

/* ---- reading ---- */

#define BASIC                                                                                                \
	"name,pci.bus_id,memory.total,memory.used,utilization.gpu,pcie.link.gen.current,pcie.link.gen.max,"  \
	"pcie.link.width.current,pcie.link.width.max"

void probe_read_gpus(struct probe *p, const struct probe_source *s)
{
	/* A field that a driver does not know makes it refuse the whole query. */
	static const char *const query[][4] = {
		{"nvidia-smi", "--query-gpu=" BASIC ",pcie.link.gen.gpumax,compute_cap,c2c.mode",
			"--format=csv", NULL},
		{"nvidia-smi", "--query-gpu=" BASIC, "--format=csv", NULL},
	};
	static const char *const topology[] = {"nvidia-smi", "topo", "-m", NULL};
	const char *text = NULL;

	for (size_t i = 0; i < ARRAY_LEN(query) && !text; i++)
		text = probe_program(s, "nvidia-smi-query-gpu.csv", query[i], 30);
	if (text)
		probe_parse_query_gpu(p, text);
	probe_read_cards(p, s);
	text = p->gpus.n > 1 ? probe_program(s, "nvidia-smi-topo-m.txt", topology, 30) : NULL;
	if (text)
		probe_parse_topology(p, text);
}
