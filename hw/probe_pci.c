/*
 * probe_pci.c - what sits on PCI Express: cards that nvidia-smi did not tell of, and drives.
 */
#include <string.h>

#include "hw/probe_text.h"

#define NVIDIA 0x10deu
#define CLASS_DISPLAY 0x03u

static unsigned hex(const char *text)
{
	return (unsigned)strtoul(text, NULL, 16) & 0xffffffu;
}

/* "16.0 GT/s PCIe", "2.5 GT/s"; "Unknown" and what is not there are 0. */
static unsigned generation_of(const char *speed)
{
	static const double rates[] = {2.5, 5, 8, 16, 32, 64};
	double rate = probe_number(speed);

	for (unsigned i = 0; i < ARRAY_LEN(rates); i++)
		if (rate > rates[i] * 0.9 && rate < rates[i] * 1.1)
			return i + 1;
	return 0;
}

static unsigned width_of(const char *text)
{
	uint64_t n = probe_count(text, 1000);

	return n <= 32 ? (unsigned)n : 0; /* 255 is unknown */
}

static unsigned least(unsigned a, unsigned b)
{
	return a && b ? (a < b ? a : b) : a + b;
}

static const char *word_in(const struct probe_source *s, const char *dir, const char *file)
{
	return probe_word(s, arena_printf(s->a, "%s/%s", dir, file));
}

/* dir is a link into /sys/devices, so that "..", which the kernel resolves, is the port that it is plugged
 * into. */
static void read_link(const struct probe_source *s, const char *dir, struct probe_pcie *pcie)
{
	unsigned port_gen = generation_of(word_in(s, dir, "../max_link_speed"));

	pcie->gen = generation_of(word_in(s, dir, "current_link_speed"));
	pcie->gen_card = generation_of(word_in(s, dir, "max_link_speed"));
	pcie->gen_max = least(pcie->gen_card, port_gen);
	pcie->width = width_of(word_in(s, dir, "current_link_width"));
	pcie->width_max = width_of(word_in(s, dir, "max_link_width"));
}

/* A node of -1 is none. */
static int node_of(const struct probe_source *s, const char *dir)
{
	const char *node = word_in(s, dir, "numa_node");

	return *node >= '0' && *node <= '9' ? (int)probe_count(node, 4096) : -1;
}

/* ---- cards ---- */

/* The lines of a vendor follow it, a tab before each. */
const char *probe_parse_pci_ids(const char *text, unsigned vendor, unsigned device, struct arena *a)
{
	char *wanted_vendor = arena_printf(a, "%04x  ", vendor),
	     *wanted = arena_printf(a, "\t%04x  ", device);
	bool ours = false;

	for (const char *end; *text; text = end + (*end != '\0')) {
		end = strchrnul(text, '\n');
		if (*text != '\t' && *text != '#')
			ours = !strncmp(text, wanted_vendor, strlen(wanted_vendor));
		else if (ours && !strncmp(text, wanted, strlen(wanted))) {
			text += strlen(wanted);
			return probe_line(&text, a);
		}
	}
	return NULL;
}

/* "AD102 [GeForce RTX 4090]": the name that is sold. */
static const char *sold_name(struct arena *a, const char *name)
{
	const char *open = strchr(name, '['), *close = open ? strchr(open, ']') : NULL;

	return close ? arena_strndup(a, open + 1, (size_t)(close - open - 1)) : name;
}

static const char *name_card(const struct probe_source *s, const char *bus, unsigned device)
{
	static const char *const lists[] = {"usr/share/misc/pci.ids", "usr/share/hwdata/pci.ids"};
	const char *text = probe_file(s, arena_printf(s->a, "proc/driver/nvidia/gpus/%s/information", bus));
	char *line, *value;

	while (text && (line = probe_line(&text, s->a)))
		if ((value = probe_value(line)) && !strcmp(line, "Model"))
			return value + strspn(value, " \t");
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		const char *ids = probe_file(s, lists[i]);
		const char *name = ids ? probe_parse_pci_ids(ids, NVIDIA, device, s->a) : NULL;
		if (name)
			return arena_printf(s->a, "%.100s", sold_name(s->a, name));
	}
	return arena_printf(s->a, "NVIDIA device 0x%04x", device);
}

static struct probe_gpu *find_gpu(struct probe *p, const char *bus)
{
	for (size_t i = 0; i < p->gpus.n; i++)
		if (!strcmp(p->gpus.at[i].bus, bus))
			return &p->gpus.at[i];
	return NULL;
}

static void add_card(struct probe *p, const struct probe_source *s, const char *bus, const char *dir)
{
	struct probe_gpu *known = find_gpu(p, bus);
	unsigned vendor = hex(word_in(s, dir, "vendor")), device = hex(word_in(s, dir, "device"));

	if (known) {
		known->node = node_of(s, dir);
		return;
	}
	if (vendor != NVIDIA) {
		VEC_PUSH(&p->others, p->a,
			arena_printf(p->a, "display device %s (0x%04x:0x%04x)", bus, vendor, device));
		return;
	}
	struct probe_gpu gpu = {
		.name = name_card(s, bus, device), .bus = bus, .busy = -1, .node = node_of(s, dir)};
	read_link(s, dir, &gpu.pcie);
	VEC_PUSH(&p->gpus, p->a, gpu);
}

void probe_read_cards(struct probe *p, const struct probe_source *s)
{
	size_t n;
	const char **names = probe_folder(s, "sys/bus/pci/devices", &n);

	for (size_t i = 0; i < n; i++) {
		const char *dir = arena_printf(s->a, "sys/bus/pci/devices/%s", names[i]);
		if (hex(word_in(s, dir, "class")) >> 16 == CLASS_DISPLAY)
			add_card(p, s, names[i], dir);
	}
}

/* ---- drives ---- */

/* The largest of a controller's name spaces: "nvme0n1"; with several paths the kernel says "nvme0c0n1", which
   has no size. */
static uint64_t read_name_space(const struct probe_source *s, const char *name)
{
	size_t n;
	const char *dir = arena_printf(s->a, "sys/class/nvme/%s", name);
	const char **files = probe_folder(s, dir, &n);
	uint64_t most = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t sectors =
			strncmp(files[i], "nvme", 4)
				? 0
				: probe_count(word_in(s, dir, arena_printf(s->a, "%s/size", files[i])),
					  PROBE_MAX_BYTES / 512);
		most = sectors > most ? sectors : most;
	}
	if (!most)
		most = probe_count(probe_word(s, arena_printf(s->a, "sys/block/%sn1/size", name)),
			PROBE_MAX_BYTES / 512);
	return most * 512;
}

static void add_drive(struct probe *p, const struct probe_source *s, const char *name)
{
	const char *dir = arena_printf(s->a, "sys/class/nvme/%s", name);
	const char *device = arena_printf(s->a, "%s/device", dir), *transport = word_in(s, dir, "transport");
	struct probe_drive drive = {
		.name = name, .model = arena_printf(s->a, "%.60s", word_in(s, dir, "model"))};

	drive.bytes = read_name_space(s, name);
	drive.node = node_of(s, device);
	read_link(s, device, &drive.pcie);
	if (*transport && strcmp(transport, "pcie"))
		VEC_PUSH(&p->others, p->a, arena_printf(p->a, "drive %s (over %.16s)", name, transport));
	else if (drive.bytes)
		VEC_PUSH(&p->drives, p->a, drive);
}

/* Disks that are no NVMe drives; not those of memory, of files, of other disks. */
static void add_disk(struct probe *p, const struct probe_source *s, const char *name)
{
	static const char *const made_up[] = {"nvme", "loop", "ram", "zram", "dm-", "md", "sr", "fd", "nbd"};
	const char *dir = arena_printf(s->a, "sys/block/%s", name);
	uint64_t bytes = probe_count(word_in(s, dir, "size"), PROBE_MAX_BYTES / 512) * 512;

	for (size_t i = 0; i < ARRAY_LEN(made_up); i++)
		if (!strncmp(name, made_up[i], strlen(made_up[i])))
			return;
	if (bytes)
		VEC_PUSH(&p->others, p->a,
			arena_printf(p->a, "%sdisk %s (%.1f GB)",
				*word_in(s, dir, "queue/rotational") == '1' ? "rotating or virtual " : "",
				name, (double)bytes / 1e9));
}

void probe_read_drives(struct probe *p, const struct probe_source *s)
{
	size_t n;
	const char **names = probe_folder(s, "sys/class/nvme", &n);

	for (size_t i = 0; i < n; i++)
		add_drive(p, s, names[i]);
	names = probe_folder(s, "sys/block", &n);
	for (size_t i = 0; i < n; i++)
		add_disk(p, s, names[i]);
}
