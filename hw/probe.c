#include "hw/probe.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "hw/probe_text.h"

void probe_init(struct probe *p, struct arena *a)
{
	*p = (struct probe){.a = a, .cpu = {.model = "", .isa = ""}, .ram = {.type = ""}};
}

int probe_read(struct probe *p, const char *root, struct arena *a, struct err *err)
{
	const struct probe_source source = {root, a};
	struct stat st;

	if (root && stat(root, &st))
		return err_set(err, ERR_INPUT, "cannot read the recording '%s': %s", root, strerror(errno));
	if (root && !S_ISDIR(st.st_mode))
		return err_set(err, ERR_INPUT, "the recording '%s' is no folder", root);
	probe_init(p, a);
	probe_read_cpu(p, &source);
	probe_read_ram(p, &source);
	probe_read_gpus(p, &source);
	probe_read_drives(p, &source);
	return 0;
}

/* ---- in words ---- */

#define COLUMNS 118
#define LABEL_COLUMNS 10

const char *probe_note_lines(const struct probe *p, size_t i, const char *prefix)
{
	const struct probe_note *note = &p->notes.at[i];
	const char *text = arena_printf(p->a, "%s: %s", note->about, note->text);
	const char *label = probe_note_name(note->kind), *lines = "";
	const size_t room = COLUMNS - LABEL_COLUMNS - strlen(prefix);

	while (*text) {
		size_t n = strlen(text);
		if (n > room) {
			for (n = room; n && text[n] != ' ';)
				n--;
			n = n ? n : room;
		}
		lines = arena_printf(
			p->a, "%s%s%-*s%.*s\n", lines, prefix, LABEL_COLUMNS, label, (int)n, text);
		text += n + strspn(text + n, " ");
		label = "";
	}
	return lines;
}

static const char *plural(struct arena *a, unsigned n, const char *noun)
{
	return arena_printf(a, "%u %s%s", n, noun, n == 1 ? "" : "s");
}

/* "2.0 MiB", "32 KiB": caches are powers of two, or nearly. */
static const char *cache_size(struct arena *a, uint64_t bytes)
{
	return bytes < 1 << 20 ? arena_printf(a, "%.4g KiB", (double)bytes / 1024)
			       : arena_printf(a, "%.4g MiB", (double)bytes / (1 << 20));
}

const char *probe_describe_cpu(const struct probe *p)
{
	const struct probe_cpu *cpu = &p->cpu;
	struct arena *a = p->a;
	const char *text;

	if (!cpu->cores)
		return *cpu->model ? cpu->model : "unknown";
	text = arena_printf(a, "%s: %s, %s, %s, %s", *cpu->model ? cpu->model : "unknown model",
		plural(a, cpu->sockets, "socket"), plural(a, cpu->cores, "core"),
		plural(a, cpu->threads, "thread"), *cpu->isa ? cpu->isa : "instruction set unknown");
	if (cpu->nodes > 1)
		text = arena_printf(a, "%s, %u NUMA nodes", text, cpu->nodes);
	if (cpu->clock_hz > 0)
		text = arena_printf(a, "%s, %.2f GHz", text, cpu->clock_hz / 1e9);
	for (size_t i = 0; i < ARRAY_LEN(cpu->cache); i++) {
		const struct probe_cache *cache = &cpu->cache[i];
		if (!cache->bytes)
			continue;
		text = arena_printf(a, "%s, L%u %s", text, cache->level, cache_size(a, cache->bytes));
		if (cache->instances > 1)
			text = arena_printf(a, "%s x %u", text, cache->instances);
	}
	return cpu->hypervisor ? arena_printf(a, "%s, a virtual machine", text) : text;
}

const char *probe_describe_ram(const struct probe *p)
{
	const struct probe_ram *ram = &p->ram;
	struct arena *a = p->a;
	const char *text = "size unknown";

	if (ram->total_bytes)
		text = arena_printf(a, "%.1f GiB, %.1f available", (double)ram->total_bytes / (1 << 30),
			(double)ram->available_bytes / (1 << 30));
	if (ram->limit_bytes)
		text = arena_printf(a, "%s, limited to %.1f GiB", text, (double)ram->limit_bytes / (1 << 30));
	if (!ram->modules)
		return arena_printf(a, "%s, modules unknown", text);
	text = arena_printf(a, "%s, %s in %s, %s", text, plural(a, ram->modules, "module"),
		plural(a, ram->slots, "slot"), *ram->type ? ram->type : "type unknown");
	text = ram->channels ? arena_printf(a, "%s, %s", text, plural(a, ram->channels, "channel"))
			     : arena_printf(a, "%s, channels unknown", text);
	return ram->rate_t_s > 0 ? arena_printf(a, "%s at %.0f MT/s", text, ram->rate_t_s / 1e6)
				 : arena_printf(a, "%s, rate unknown", text);
}

static const char *describe_pcie(struct arena *a, const struct probe_pcie *link)
{
	if (!link->gen && !link->gen_max)
		return "link unknown";
	const char *now = link->gen ? arena_printf(a, "%u", link->gen) : "?";
	const char *most = link->gen_max ? arena_printf(a, " of %u", link->gen_max) : "";
	return arena_printf(a, "PCIe %s%s x%u of %u", now, most, link->width, link->width_max);
}

static const char *add_node(struct arena *a, const char *text, int node)
{
	return node >= 0 ? arena_printf(a, "%s, NUMA node %d", text, node) : text;
}

const char *probe_describe_gpu(const struct probe *p, size_t i)
{
	const struct probe_gpu *gpu = &p->gpus.at[i];
	const char *memory = gpu->memory_bytes
				     ? arena_printf(p->a, "%.1f GiB", (double)gpu->memory_bytes / (1 << 30))
				     : "memory not reported";

	return add_node(p->a,
		arena_printf(p->a, "%s, %s, %s", gpu->name, memory,
			gpu->c2c ? "NVLink-C2C" : describe_pcie(p->a, &gpu->pcie)),
		gpu->node);
}

const char *probe_describe_drive(const struct probe *p, size_t i)
{
	const struct probe_drive *drive = &p->drives.at[i];

	return add_node(p->a,
		arena_printf(p->a, "%s, %.0f GB, %s", *drive->model ? drive->model : "unknown drive",
			(double)drive->bytes / 1e9, describe_pcie(p->a, &drive->pcie)),
		drive->node);
}

/* "all by NV18", or each GPU's row. */
const char *probe_describe_links(const struct probe *p)
{
	const char *const *cell = p->gpu_links;
	unsigned n = p->n_gpu_links;
	const char *text = "";
	bool alike = true;

	if (n < 2)
		return "";
	for (unsigned i = 0; i < n * n; i++)
		alike = alike && (i / n == i % n || !strcmp(cell[i], cell[1]));
	if (alike)
		return arena_printf(p->a, "all by %s", cell[1]);
	for (unsigned row = 0; row < n; row++) {
		text = arena_printf(p->a, "%s%sgpu%u", text, row ? "; " : "", row);
		for (unsigned i = 0; i < n; i++)
			text = arena_printf(p->a, "%s %s", text, cell[row * n + i]);
	}
	return text;
}
