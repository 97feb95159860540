/*
 * validate_corpus.c - rows of a corpus of published measurements as scenarios: the machine is written out from the row's
 * columns, and what it does not state is filled with the same defaults for all.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <math.h>

#include "base/csv.h"
#include "base/intern.h"
#include "base/number.h"
#include "base/suggest.h"
#include "hw/probe_part.h"
#include "models/model.h"
#include "sim/run/validate_gpu.h"
#include "sim/run/validate_rows.h"

enum column { COL_ID, COL_GROUP, COL_ENGINE, COL_WHEN, COL_MODEL, COL_QUANT, COL_GPUS, COL_LINK, COL_CPU, COL_SOCKETS,
	COL_DRAM, COL_DRAM_GBPS, COL_DRAM_KIND, COL_RAM_GIB, COL_DISK, COL_THREADS, COL_FLAGS, COL_KV_DTYPE, COL_BATCH,
	COL_PROMPT, COL_GEN, COL_DEPTH, COL_METRIC, COL_VALUE, COL_TIER, COL_UNKNOWN, COL_NOTES, COL_SOURCE,
	COL_N };
static const char *const columns[COL_N] = {"id", "group", "engine", "when", "model", "quant", "gpus", "link", "cpu",
	"sockets", "dram", "dram_gbps", "dram_gbps_kind", "ram_gib", "disk", "threads", "flags", "kv_dtype", "batch",
	"prompt_len", "gen_len", "depth", "metric", "value", "tier", "unknown", "notes", "source"};

/* What a row does not say. */
#define DEFAULT_RAM_GIB "1024"
#define DEFAULT_CHANNELS 2
/* A drive's rate is what its maker or a benchmark says; what an engine gets of it is some tenth more or less. */
#define DRIVE_SPREAD "12%%"
/* Of generic-cpu; who runs more threads has as many. */
#define GENERIC_CORES 8
/* Of the rate of such memory: modules of a platform differ by this much from its usual ones, and some slots are empty. */
#define SPREAD_UNSTATED_DRAM "25%"
/* What a measured machine's system and other programs hold; Windows 11 asks for as much as it is. */
#define DEFAULT_RAM_RESERVED "4GiB"
#define DEFAULT_QUANT "q4_k_m"
#define DEFAULT_PROMPT "512"
#define DEFAULT_GENERATE "128"
/* llama.cpp's -b. */
#define DEFAULT_BATCH 2048
/* Tokens a second or seconds that anything takes are more than this, and less than one by it. */
#define LEAST_VALUE 1e-9
/* A prompt that is not stated and matters little ("~prompt_len"). */
#define SHORT_PROMPT "32"
/* Fewer words than this, if a power of two, may be a text as well. */
#define LEAST_RANDOM_WORDS 16

struct source_row {
	const char *at[COL_N];
};

/* ---- from a row to a scenario ---- */

struct text {
	struct arena *arena;
	struct probe_library *library; /* knows a processor's usual memory */
	const char *s;       /* the scenario so far */
	const char *assumed; /* the defaults so far */
	int n_gpus;
	double scale;        /* of the metric: tokens that count over those that are computed */
};

static void add(struct text *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void add(struct text *t, const char *fmt, ...)
{
	char line[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	t->s = arena_printf(t->arena, "%s%s", t->s, line);
}

static void assume(struct text *t, const char *what)
{
	t->assumed = arena_printf(t->arena, "%s%s%s", t->assumed, *t->assumed ? "; " : "", what);
}

/* Which of our engines runs rows of an engine of the corpus; NULL: none does. */
static const char *engine_for(const char *name)
{
	static const char *const map[][2] = {
		{"llama.cpp", "llama.cpp"}, {"llama-cpp-python", "llama-cpp-python"}, {"ollama", "ollama"},
		{"ik_llama.cpp", "ik_llama.cpp"}, {"ktransformers", "ktransformers"}, {"accelerate", "accelerate"},
		{"flexgen", "flexgen"}, {"zero-inference", "zero-inference"},
	};

	for (size_t i = 0; i < ARRAY_LEN(map); i++)
		if (strcmp(map[i][0], name) == 0)
			return map[i][1];
	return validate_gpu_engine(name);
}

/* The generation at which a card and a processor meet, where that is not the card's own; else 0. */
static unsigned common_gen(struct text *t, const char *gpu, const char *cpu)
{
	struct probe_modules_guess platform;
	struct profile_part_values card;
	struct err unknown = {0}; /* it is told when the scenario is read */
	unsigned own;

	if (probe_guess_modules(t->library, cpu, &platform, &unknown) ||
		probe_part_numbers(t->library, HW_PART_GPU, gpu, &card, &unknown) ||
		!platform.pcie_gen || !card.native_link || sscanf(card.native_link, "pcie-%u", &own) != 1 || own <= platform.pcie_gen)
		return 0;
	return (unsigned)platform.pcie_gen;
}

/* "pcie-4x16" of one GPU: either number may be "?" and is then the card's own, as all is where nothing is stated, but no
   newer than the processor's lanes. */
static void add_gpu(struct text *t, int n, const char *part, const char *link, const char *cpu)
{
	unsigned gen = 0, width = 0;

	if (sscanf(link, "pcie-%ux%u", &gen, &width) < 1)
		sscanf(link, "pcie-?x%u", &width);
	if (!gen)
		gen = common_gen(t, part, cpu);
	if (gen && width)
		add(t, "  gpu%d: {part: %s, link: {part: pcie, gen: %u, width: %u}}\n", n, part, gen, width);
	else if (gen)
		add(t, "  gpu%d: {part: %s, link: {gen: %u}}\n", n, part, gen);
	else if (width)
		add(t, "  gpu%d: {part: %s, link: {width: %u}}\n", n, part, width);
	else
		add(t, "  gpu%d: %s\n", n, part);
}

/* What joins several cards of a part that has it, where nothing is said: they are sold in such boards. */
static void add_nvlink(struct text *t, const char *gpus)
{
	static const char *const links[][2] = {{"v100-sxm", "nvlink-2"}, {"v100-32gb", "nvlink-2"}, {"a100-sxm", "nvlink-3"},
		{"a100-80gb", "nvlink-3"}, {"a100-40gb", "nvlink-3"}, {"h100-sxm", "nvlink-4"}, {"h100-80gb", "nvlink-4"},
		{"h200", "nvlink-4"}, {"b200", "nvlink-5"}};
	const char *star = strchr(gpus, '*');

	for (size_t i = 0; star && strtol(gpus, NULL, 10) > 1 && i < ARRAY_LEN(links); i++) {
		if (strncmp(star + 1, links[i][0], strlen(links[i][0])) != 0)
			continue;
		add(t, "  nvlink: %s\n", links[i][1]);
		assume(t, "NVLink");
		return;
	}
}

/* What is none of these is passed over: then the card's own is as good as any. */
static bool says_link(const char *link)
{
	static const char *const known[] = {"pcie-?", "unified", "nvlink"};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (strncmp(link, known[i], strlen(known[i])) == 0)
			return true;
	return strncmp(link, "pcie-", 5) == 0 && link[5] >= '1' && link[5] <= '9';
}

/* "2*rtx-3090+rtx-4090": n cards of a part each; link "pcie-4x16/pcie-4x4" names them one by one, the last for all others. */
static void add_gpus(struct text *t, const char *gpus, const char *link, const char *cpu)
{
	char *list = arena_strdup(t->arena, gpus), *save;

	if (strcmp(gpus, "none") == 0)
		return;
	if (!says_link(link))
		assume(t, "native link");
	else if (strstr(link, "-?"))
		assume(t, "link generation");
	else if (strstr(link, "x?"))
		assume(t, "link width");
	for (char *one = strtok_r(list, "+", &save); one; one = strtok_r(NULL, "+", &save)) {
		char *end;
		long copies = strtol(one, &end, 10);
		if (end == one || *end != '*')
			copies = 1;
		else
			one = end + 1;
		/* One more than a machine may have is enough to refuse it. */
		for (long i = 0; i < copies && t->n_gpus <= PROFILE_MAX_GPUS; i++) {
			const char *next = strchr(link, '/');
			add_gpu(t, t->n_gpus++, one, link, cpu);
			link = next ? next + 1 : link;
		}
	}
	add_nvlink(t, gpus);
}

static bool is_unified(const struct source_row *r)
{
	return strcmp(r->at[COL_LINK], "unified") == 0;
}

/* The processor; where the row names none, that of the chip or module that holds both; "" where that is none either. */
static const char *cpu_of(const struct source_row *r)
{
	static const char *const chips[][2] = {
		{"radeon-8060s", "ryzen-ai-max-395"}, {"apple-m1-max-32c", "apple-m1-max"}, {"gh200-96gb", "grace-72"},
		{"gh200-144gb", "grace-72"}, {"gb200", "grace-72"}, {"gb300", "grace-72"}, {"gb10", "gb10"}};
	const char *gpu = r->at[COL_GPUS], *star = strchr(gpu, '*');

	if (*r->at[COL_CPU])
		return r->at[COL_CPU];
	for (size_t i = 0; i < ARRAY_LEN(chips); i++)
		if (strcmp(star ? star + 1 : gpu, chips[i][0]) == 0)
			return chips[i][1];
	return is_unified(r) || strncmp(gpu, "apple-", 6) == 0 ? gpu : "";
}

/* "ddr5-4800x16": type, MT/s and channels of all sockets used; each may be missing, and is then what the processor's
   platform has, or where that is unknown, what a desktop has. */
static int add_modules(struct text *t, const char *dram, const char *cpu, unsigned sockets, struct err *err)
{
	size_t len = strncmp(dram, "lpddr5x", 7) == 0 ? 7 : strcspn(dram, "-x");
	const char *type = arena_strndup(t->arena, dram, len), *rest = dram + len, *x = strchr(rest, 'x');
	unsigned rate = *rest == '-' ? (unsigned)strtoul(rest + 1, NULL, 10) : 0;
	unsigned channels = x ? (unsigned)strtoul(x + 1, NULL, 10) : 0;
	struct probe_modules_guess platform;

	if (probe_guess_modules(t->library, cpu, &platform, err))
		return -1;
	if (!*type) {
		type = platform.type ? platform.type : "ddr5";
		assume(t, "DRAM type");
	}
	bool same = platform.type && strncmp(platform.type, type, strlen(type)) == 0;
	bool unsure = !rate || !channels;
	if (!rate) {
		rate = same ? (unsigned)(platform.rate_t_s / 1e6) : strcmp(type, "ddr4") == 0 ? 3200 : 5600;
		assume(t, "DRAM speed");
	}
	if (!channels) {
		channels = platform.channels ? (unsigned)platform.channels * sockets : DEFAULT_CHANNELS;
		assume(t, "DRAM channels");
	}
	if (same)
		type = platform.type; /* registered or not */
	add(t, ", part: %s, rate: %uMT/s, channels: %u%s}\n", type, rate, channels,
		unsure ? ", bandwidth: {spread: " SPREAD_UNSTATED_DRAM "}" : "");
	return 0;
}

/* The memory of a chip that is sold with no other; NULL: ordinary modules, or such are named. */
static int own_memory(struct text *t, const struct source_row *r, const char *cpu, const char **part, struct err *err)
{
	const char *dram = r->at[COL_DRAM];

	*part = is_unified(r) ? cpu : NULL;
	if (*part || (*dram && strncmp(dram, "lpddr", 5) != 0))
		return 0;
	return probe_find_dram(t->library, cpu, UINT64_MAX, part, err);
}

static int add_ram(struct text *t, const struct source_row *r, struct err *err)
{
	const char *cpu = cpu_of(r), *gb_s = r->at[COL_DRAM_GBPS], *capacity = r->at[COL_RAM_GIB], *part;
	unsigned sockets = *r->at[COL_SOCKETS] ? (unsigned)strtoul(r->at[COL_SOCKETS], NULL, 10) : 1;
	bool grace = strcmp(cpu, "grace-72") == 0;

	if (!*capacity)
		assume(t, "RAM is large enough");
	add(t, "  ram: {capacity: %sGiB, reserved: " DEFAULT_RAM_RESERVED, *capacity ? capacity : DEFAULT_RAM_GIB);
	if (*gb_s) {
		bool measured = strcmp(r->at[COL_DRAM_KIND], "measured") == 0;
		/* Of the machine, but of Grace for each socket, whose own GPU reads it. */
		double all = strtod(gb_s, NULL) * (grace ? sockets : 1);
		add(t, measured ? ", bandwidth: {measured: %gGB/s, spread: 5%%, source: corpus}}\n" :
				  ", bandwidth: {peak: %gGB/s, efficiency: 85%%, spread: 12%%, source: corpus}}\n", all);
		return 0;
	}
	/* On a chip, or in a module with it: the memory is a part by the chip's name. */
	if (own_memory(t, r, cpu, &part, err))
		return -1;
	if (grace)
		add(t, ", part: lpddr5x-grace-480gb, sockets: %u}\n", sockets);
	else if (part)
		add(t, ", part: %s}\n", part);
	else
		return add_modules(t, r->at[COL_DRAM], cpu, sockets, err);
	return 0;
}

/* "samsung-980-pro@2.5": a drive and GB/s. Without a rate the name is a part; other words say that there is a drive. A
   rate behind two of these is none of the drive's: it is implied, of gcp-ssd by a fit and of ramdisk by the whole time of a
   token, with all that is done beside reading. */
static int add_disk(struct text *t, const struct source_row *r, struct err *err)
{
	static const char *const words[][2] = {{"30TB NVMe (DGX-2)", "nvme-raid-dgx2"},
		{"1.5TB SSD (GCP)", "cloud-disk-gcp-pd"}, {"Gen4 ~7 GB/s", "nvme-gen4"}};
	static const char *const implied[][2] = {{"gcp-ssd@", "cloud-disk-gcp-pd"}, {"ramdisk@", "ramdisk"}};
	const char *disk = r->at[COL_DISK], *rate = strchr(disk, '@'), *part;
	double gb_s;

	if (probe_find_part(t->library, HW_PART_NVME, disk, 0, &part, err))
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcmp(disk, words[i][0]) == 0)
			part = words[i][1];
	for (size_t i = 0; i < ARRAY_LEN(implied); i++)
		if (strncmp(disk, implied[i][0], strlen(implied[i][0])) == 0)
			part = implied[i][1];
	if (!part && rate && number_parse(rate + 1, strlen(rate + 1), &gb_s) && gb_s > 0) {
		add(t, "  nvme0: {capacity: 4TB, read: {measured: %gGB/s, spread: " DRIVE_SPREAD ", source: corpus}, "
			"write: {measured: %gGB/s, spread: 50%%, source: corpus}, latency: 100us}\n", gb_s, gb_s);
		return 0;
	}
	bool used = *disk || strstr(r->at[COL_FLAGS], "disk_gib") || strstr(r->at[COL_FLAGS], "--disk-offload");
	if (!part && used)
		assume(t, "drive");
	if (!part && (used || *r->at[COL_RAM_GIB])) /* what RAM does not hold is read, if there is such */
		part = *disk ? "generic-nvme" : "nvme-gen3"; /* without a word: a drive of its time */
	if (part)
		add(t, "  nvme0: {part: %s, capacity: 40TB}\n", part);
	return 0;
}

static int add_machine(struct text *t, const struct source_row *r, struct err *err)
{
	const char *cpu = cpu_of(r), *notes = r->at[COL_NOTES];

	add(t, "machine:\n  name: corpus\n");
	if (strstr(notes, "WSL") || strstr(notes, "Windows"))
		add(t, "  system: %s\n", strstr(notes, "WSL") ? "wsl" : "windows");
	add_gpus(t, r->at[COL_GPUS], r->at[COL_LINK], cpu);
	if (*cpu)
		add(t, "  cpu0: {part: %s, sockets: %s}\n", cpu, *r->at[COL_SOCKETS] ? r->at[COL_SOCKETS] : "1");
	else if (strtoul(r->at[COL_THREADS], NULL, 10) > GENERIC_CORES)
		add(t, "  cpu0: {part: generic-cpu, cores: %s, threads: %s}\n", r->at[COL_THREADS], r->at[COL_THREADS]);
	else
		add(t, "  cpu0: generic-cpu\n");
	if (!*cpu)
		assume(t, "CPU");
	return add_ram(t, r, err) || add_disk(t, r, err) ? -1 : 0;
}

/* The corpus says where accelerate put things: "device_map=auto gpu_gib=21.5,18 cpu_gib=3.8 disk_gib=rest". The greedy
   dealing keeps a block free, which a limit must have on top. */
static void add_accelerate_flags(struct text *t, const char *flags, const char *when)
{
	const char *gpu = strstr(flags, "gpu_gib="), *disk = strstr(flags, "disk_gib=");
	const char *separator = "";
	int n = 0;

	gpu = gpu ? gpu + strlen("gpu_gib=") : "";
	add(t, "flags: {device_map: ");
	if (strncmp(gpu, "0 ", 2) == 0 || (!*gpu && disk) || strcmp(gpu, "0") == 0) {
		add(t, "cpu_offload");
	} else {
		bool dealt = *gpu && strncmp(gpu, "all", 3) != 0;
		add(t, dealt ? "sequential" : "auto");
		if (dealt) {
			add(t, ", max_memory: {");
			for (char *end; *gpu && *gpu != ' '; gpu = *end == ',' ? end + 1 : end) {
				double gib = strtod(gpu, &end);
				if (end == gpu)
					break;
				add(t, "%s%d: %gGiB", separator, n, n == 0 ? gib * 1.08 + 0.5 : gib + 0.01);
				separator = ", ";
				n++;
			}
			add(t, "}");
		}
	}
	if (disk && strncmp(disk, "disk_gib=0", 10) != 0)
		add(t, ", offload_folder: yes");
	if (*when)
		add(t, ", build: '%s'", when);
	add(t, "}\n");
}

/* What is written behind the flags and changes what is run, as flags of ours. */
static const struct {
	const char *written, *flag;
} remarks[] = {
	{"GGML_CUDA_NO_PINNED=1", " --no-pinned"},
	{"GGML_CUDA_NO_PINNED_WEIGHTS=1", " --no-pinned"},
	{"LLAMA_ARG_CPU_MOE=1", " --cpu-moe"},
	{"build moe-offload=cpu", " --no-op-offload"},
	{"numactl bind to one socket", " --one-socket"},
	{"--membind=0", " --one-socket"},
};
/* The GPU's backend as it is called behind "; backend "; there are other remarks of that kind. */
static const char *const backends[][2] = {
	{"hip", "hip"}, {"rocm", "hip"}, {"hip-hipblaslt", "hip-hipblaslt"}, {"rocm-hipblaslt", "hip-hipblaslt"},
	{"vulkan", "vulkan"}, {"vulkan-radv", "vulkan"}, {"radv", "vulkan"}, {"vulkan-amdvlk", "vulkan-amdvlk"},
	{"amdvlk", "vulkan-amdvlk"}, {"cuda", "cuda"}, {"metal", "metal"},
};
static const char *const offload_min[] = {"build moe-offload-min=", "GGML_OP_OFFLOAD_MIN_BATCH="};

static const char interleaves[] = "numactl --interleave", binds_threads[] = "--numa distribute";

/* From the remarks that begin with env, build or numactl, each between semicolons. The program's own --numa stands: a remark
   adds no second one. */
static void add_remarks(struct text *t, const char *flags)
{
	for (size_t i = 0; i < ARRAY_LEN(remarks); i++)
		if (strstr(flags, remarks[i].written))
			add(t, "%s", remarks[i].flag);
	if (strstr(flags, interleaves) && !strstr(flags, "--numa "))
		add(t, " --numa numactl");
	const char *named = strstr(flags, "backend ");
	size_t len = named ? strcspn(named += strlen("backend "), " ;,") : 0;
	for (size_t i = 0; i < ARRAY_LEN(backends) && named && !strstr(flags, "--backend"); i++)
		if (strlen(backends[i][0]) == len && strncasecmp(named, backends[i][0], len) == 0)
			add(t, " --backend %s", backends[i][1]);
	for (size_t i = 0; i < ARRAY_LEN(offload_min); i++) {
		const char *min = strstr(flags, offload_min[i]);
		if (min)
			add(t, " --op-offload-min %lu", strtoul(min + strlen(offload_min[i]), NULL, 10));
	}
}

/* The flags alone: without remarks, before or behind. Pages that numactl interleaved stay so where the program spreads its
   threads. */
static char *command_line(struct text *t, const char *flags)
{
	char *rest = arena_strdup(t->arena, flags), *part, *numa;

	while ((part = strsep(&rest, ";"))) {
		part += strspn(part, " ");
		if (*part != '-')
			continue;
		numa = strstr(flags, interleaves) ? strstr(part, binds_threads) : NULL;
		if (numa)
			part = arena_printf(t->arena, "%.*s--numa numactl%s", (int)(numa - part), part, numa + strlen(binds_threads));
		return part;
	}
	return arena_strdup(t->arena, "");
}

/* Into single quotes of YAML, where only these are doubled. */
static void add_quoted(struct text *t, const char *text)
{
	for (; *text; text++)
		add(t, *text == '\'' ? "''" : "%c", *text);
}

/* "(52%/48% GPU/CPU)", or "(48%/52% CPU/GPU)" as ollama ps prints it: the share of the model's layers that are on the GPU. */
static int add_ollama_share(struct text *t, const char *model, double percent, struct err *err)
{
	struct model *m;

	if (model_load(model, NULL, t->arena, &m, err))
		return -1;
	add(t, "-ngl %.0f", percent / 100 * (m->n_layer + 1));
	return 0;
}

static int add_ollama_flags(struct text *t, const char *flags, const char *model, struct err *err)
{
	const char *num = strstr(flags, "num_gpu="), *share = strchr(flags, '(');
	double first, second;

	if (share && strstr(share, "GPU/CPU") && sscanf(share, "(%lf%%", &first) == 1)
		return add_ollama_share(t, model, first, err);
	if (share && strstr(share, "CPU/GPU") && sscanf(share, "(%lf%%/%lf%%", &first, &second) == 2)
		return add_ollama_share(t, model, second, err);

	if (num)
		num += strlen("num_gpu=");
	if (num && strncmp(num, "all", 3) != 0 && strncmp(num, "auto", 4) != 0)
		add(t, "-ngl %d", atoi(num));
	else
		add(t, "-ngl %s", num && strncmp(num, "all", 3) == 0 ? "all" : "auto");
	return 0;
}

static bool is_unknown(const struct text *t, const struct source_row *r, const char *what)
{
	char *rest = arena_strdup(t->arena, r->at[COL_UNKNOWN]), *one;
	bool found = false;

	while ((one = strsep(&rest, ";"))) {
		one += *one == '~';
		found |= strcmp(one, what) == 0;
	}
	return found;
}

/* Who says that passes have more rows than a batch has by default made the batch larger as well: else it would be no use.
   Where the size of a pass is not known, experts are in RAM and prompts long, it is what guides for that say, as in
   noonghunna/club-3090 issue 1054. */
static void add_batch(struct text *t, const struct source_row *r)
{
	const char *flags = r->at[COL_FLAGS], *ub = strstr(flags, "-ub ");
	unsigned long rows = ub ? strtoul(ub + strlen("-ub "), NULL, 10) : 0, prompt = strtoul(r->at[COL_PROMPT], NULL, 10);

	if (rows > DEFAULT_BATCH && !strstr(flags, "-b ")) {
		add(t, " -b %lu", rows);
		assume(t, "batch size");
	}
	if (!rows && prompt >= DEFAULT_BATCH && is_unknown(t, r, "ub") && (strstr(flags, "exps=CPU") || strstr(flags, "cpu-moe"))) {
		add(t, " -ub %d", DEFAULT_BATCH);
		assume(t, "micro-batch");
	}
}

/* Of llama.cpp, its relatives and KTransformers. */
static int add_command_flags(struct text *t, const struct source_row *r, struct err *err)
{
	const char *flags = r->at[COL_FLAGS];
	bool kt = strcmp(r->at[COL_ENGINE], "ktransformers") == 0;

	add(t, "flags: '");
	if (strcmp(r->at[COL_ENGINE], "ollama") != 0)
		add_quoted(t, command_line(t, flags));
	else if (add_ollama_flags(t, flags, r->at[COL_MODEL], err))
		return -1;
	add_remarks(t, flags);
	add_batch(t, r);
	if (*r->at[COL_THREADS] && !strstr(flags, "-t ") && !strstr(flags, "--cpu_infer"))
		add(t, "%s %s", kt ? " --cpu_infer" : " -t", r->at[COL_THREADS]);
	/* What its flags leave open. */
	if (*r->at[COL_KV_DTYPE] && strstr(r->at[COL_ENGINE], "llama.cpp") && !strstr(flags, "ctk") && !strstr(flags, "cache-type"))
		add(t, " -ctk %s -ctv %s", r->at[COL_KV_DTYPE], r->at[COL_KV_DTYPE]);
	if (*r->at[COL_WHEN] && !kt)
		add(t, " --build %s", r->at[COL_WHEN]);
	add(t, "'\n");
	return 0;
}

static const char *or_else(const char *s, const char *def)
{
	return *s ? s : def;
}

static void add_workload(struct text *t, const struct source_row *r, enum validate_metric metric)
{
	const char *batch = or_else(r->at[COL_BATCH], "1"), *prompt = r->at[COL_PROMPT], *gen = r->at[COL_GEN];
	struct validate_gpu_prefix prefix;

	if (validate_gpu_prefix(r->at[COL_FLAGS], prompt, batch, gen, &prefix)) {
		if (prefix.fewer)
			assume(t, "requests that want one token come and go");
		add(t, "workload: {batch: %u, prompt: %u, generate: 1, depth: %u}\n", prefix.batch, prefix.prompt, prefix.cached);
		t->scale = metric == VALIDATE_PREFILL ? (double)(prefix.prompt + prefix.cached) / prefix.prompt : 1;
		return;
	}
	if (metric == VALIDATE_DECODE) {
		if (!*r->at[COL_DEPTH] && !*prompt)
			assume(t, "depth");
		add(t, "workload: {batch: %s, prompt: 0, generate: %s, depth: %s}\n", batch, or_else(gen, DEFAULT_GENERATE),
			or_else(r->at[COL_DEPTH], or_else(prompt, "0")));
		return;
	}
	if (!*prompt)
		assume(t, "prompt length");
	if (!*prompt && strstr(r->at[COL_UNKNOWN], "~prompt_len"))
		prompt = SHORT_PROMPT;
	if (metric == VALIDATE_E2E && strcmp(r->at[COL_METRIC], "e2e_tok_s") == 0)
		t->scale = validate_zero_streams(r->at[COL_FLAGS], t->n_gpus);
	if (metric == VALIDATE_E2E)
		add(t, "workload: {batch: %s, prompt: %s, generate: %s}\n", batch, or_else(prompt, DEFAULT_PROMPT),
			or_else(gen, DEFAULT_GENERATE));
	else
		add(t, "workload: {batch: %s, prompt: %s, generate: 1, depth: %s}\n", batch, or_else(prompt, DEFAULT_PROMPT),
			or_else(r->at[COL_DEPTH], "0"));
}

/* Engines that read files of llama.cpp's kind. */
static bool reads_gguf(const char *engine)
{
	return strstr(engine, "llama") || strcmp(engine, "ktransformers") == 0;
}

/* Types that only ik_llama.cpp has stand for recipes: hardly anyone publishes its mixes. "": what the model itself has. */
static const char *quant_of(const struct source_row *r, bool gguf, struct text *t)
{
	static const char *const near[][2] = {{"iq3_k-mix", "custom-iq3_k"}, {"iq2_k", "custom-iq2_k"},
		{"iq2_k_r4", "custom-iq2_k_r4"}, {"iq2_kl", "custom-iq2_kl"}, {"iq3_k", "custom-iq3_k"},
		{"iq3_k_r4", "custom-iq3_k_r4"}, {"iq3_ks", "custom-iq3_ks"}, {"iq4_k", "custom-iq4_k"},
		{"iq4_k_r4", "custom-iq4_k_r4"}, {"iq4_ks", "custom-iq4_ks"}, {"iq4_ks_r4", "custom-iq4_ks_r4"},
		{"iq5_k", "custom-iq5_k"}, {"iq6_k", "custom-iq6_k"}};

	for (size_t i = 0; i < ARRAY_LEN(near); i++) {
		if (strcmp(r->at[COL_QUANT], near[i][0]) == 0) {
			assume(t, "the recipe of the weights");
			return near[i][1];
		}
	}
	if (!*r->at[COL_QUANT])
		assume(t, "quant");
	return or_else(r->at[COL_QUANT], gguf ? DEFAULT_QUANT : "");
}

/* Prompts of llama-bench and llama-sweep-bench are random words, and as long as a power of two, which hardly any other is. They
   have no subject in common that would make tokens choose the same experts. */
static bool is_random_words(const struct source_row *r, enum validate_metric metric)
{
	unsigned long prompt = strtoul(r->at[COL_PROMPT], NULL, 10);

	return metric == VALIDATE_PREFILL && (strcmp(r->at[COL_ENGINE], "llama.cpp") == 0 || strcmp(r->at[COL_ENGINE], "ik_llama.cpp") == 0) &&
		prompt >= LEAST_RANDOM_WORDS && (prompt & (prompt - 1)) == 0;
}

static int scenario_text(const struct source_row *r, enum validate_metric metric, const char *engine, struct text *t,
	struct err *err)
{
	add(t, "model: %s\nengine: %s\n", r->at[COL_MODEL], engine);
	const char *quant = quant_of(r, reads_gguf(engine), t);
	if (*quant)
		add(t, "quant: %s\n", quant);
	if (add_machine(t, r, err))
		return -1;
	if (strcmp(engine, "accelerate") == 0)
		add_accelerate_flags(t, r->at[COL_FLAGS], r->at[COL_WHEN]);
	else if (validate_gpu_engine(r->at[COL_ENGINE]))
		add(t, "%s", validate_gpu_flags(engine, r->at[COL_FLAGS], r->at[COL_KV_DTYPE], r->at[COL_WHEN],
				t->arena));
	else if (strcmp(engine, "flexgen") == 0)
		add(t, "flags: '%s'\n", validate_flexgen_flags(r->at[COL_FLAGS], t->arena));
	else if (strcmp(engine, "zero-inference") == 0)
		add(t, "flags: '%s'\n", validate_zero_flags(r->at[COL_FLAGS], r->at[COL_WHEN], t->arena, &t->assumed));
	else if (add_command_flags(t, r, err))
		return -1;
	add_workload(t, r, metric);
	if (is_random_words(r, metric))
		add(t, "routing: uniform\n");
	return 0;
}

/* ---- rows ---- */

/* near: what an unknown one is like. */
static enum validate_metric metric_of(const char *name, bool *per_token, bool *known, struct suggest *near)
{
	static const struct {
		const char *name;
		enum validate_metric metric;
	} map[] = {{"decode_tok_s", VALIDATE_DECODE}, {"prefill_tok_s", VALIDATE_PREFILL}, {"e2e_tok_s", VALIDATE_E2E},
		{"s_per_token", VALIDATE_E2E}, {"ttft_s", VALIDATE_TTFT}};

	*per_token = strcmp(name, "s_per_token") == 0;
	*known = true;
	suggest_init(near, name);
	for (size_t i = 0; i < ARRAY_LEN(map); i++) {
		if (strcmp(map[i].name, name) == 0)
			return map[i].metric;
		suggest_offer(near, map[i].name);
	}
	*known = false;
	return VALIDATE_DECODE;
}

static int skip(struct validate_row *row, const char *reason)
{
	row->status = VALIDATE_SKIPPED;
	row->reason = reason;
	return 0;
}

static int read_row(const struct source_row *src, struct probe_library *library, struct arena *scratch, struct arena *a,
	struct validate_row *row, struct err *err)
{
	const char *engine = engine_for(src->at[COL_ENGINE]);
	struct text t = {.arena = scratch, .library = library, .s = "", .assumed = "", .scale = 1};

	if (!engine)
		return skip(row, arena_printf(a, "engine '%s' is not modelled", src->at[COL_ENGINE]));
	if (!*src->at[COL_MODEL] || !*src->at[COL_GPUS])
		return skip(row, *src->at[COL_MODEL] ? "the GPUs are not stated" : "the model is not stated");
	if (scenario_text(src, row->metric, engine, &t, err))
		return -1;
	if (t.n_gpus > PROFILE_MAX_GPUS)
		return skip(row, arena_printf(a, "a machine has %d GPUs at most, not %s", PROFILE_MAX_GPUS, src->at[COL_GPUS]));
	row->scenario = arena_strdup(a, t.s);
	row->assumed = arena_strdup(a, t.assumed);
	row->scale = t.scale;
	return 0;
}

static enum result_field_id field_of(enum validate_metric metric)
{
	static const enum result_field_id field[VALIDATE_METRIC_N] = {
		RESULT_DECODE_TOK_S, RESULT_PREFILL_TOK_S, RESULT_E2E_TOK_S, RESULT_TTFT_S};

	return field[metric];
}

static int read_rows(const char *path, const struct validate_options *o, struct arena *scratch, struct arena *a,
	struct validate_rows *rows, struct err *err)
{
	struct csv csv;
	struct csv_field f[COL_N];
	struct probe_library library;
	struct intern ids;
	struct {
		VEC(int);
	} first = {0}; /* line of the first row of each */
	struct suggest near;
	char text[128];
	int more;

	intern_init(&ids, a);
	if (probe_library_open(&library, a, err) || csv_open_some(&csv, path, columns, COL_N, COL_N - COL_NOTES, a, err))
		return -1;
	while ((more = csv_next(&csv, f, err)) > 0) {
		struct source_row src;
		for (int c = 0; c < COL_N; c++)
			src.at[c] = csv_text(&f[c], a);

		bool known;
		struct validate_row row = {
			.id = src.at[COL_ID],
			.group = src.at[COL_GROUP],
			.source = *src.at[COL_SOURCE] ? src.at[COL_SOURCE] : src.at[COL_GROUP],
			.engine = src.at[COL_ENGINE],
			.model = src.at[COL_MODEL],
			.tier = src.at[COL_TIER],
			.where = arena_printf(a, "%s:%d", path, csv.line),
			.scale = 1,
			.reason = "",
			.assumed = "",
			.status = VALIDATE_OK,
			.predicted = NAN, .low80 = NAN, .high80 = NAN, .upper_bound = NAN, .thumb = NAN,
		};
		row.metric = metric_of(src.at[COL_METRIC], &row.per_token, &known, &near);
		if (!known)
			return csv_error(&csv, &f[COL_METRIC], err, "unknown metric '%s'%s", src.at[COL_METRIC],
				suggest_text(&near, text, sizeof(text)));
		if (!number_parse(src.at[COL_VALUE], strlen(src.at[COL_VALUE]), &row.measured) || row.measured < LEAST_VALUE ||
			row.measured > 1 / LEAST_VALUE)
			return csv_error(&csv, &f[COL_VALUE], err, "'%s' is no measured value", src.at[COL_VALUE]);
		uint32_t number = intern_add(&ids, row.id, strlen(row.id));
		if (number < first.n)
			row.twin_line = first.at[number];
		else
			VEC_PUSH(&first, a, csv.line);
		row.field = field_of(row.metric);
		row.scored = *row.tier && strchr(o->tiers, row.tier[0]);
		row.identity = "";
		for (int c = COL_ENGINE; c < COL_METRIC; c++)
			row.identity = arena_printf(a, "%s|%s", row.identity, src.at[c]);
		if (!validate_wants(o, row.engine)) {
			row.status = VALIDATE_SKIPPED;
			row.reason = "of another engine";
			row.scored = false;
		} else if (read_row(&src, &library, scratch, a, &row, err)) {
			return -1;
		}
		arena_reset(scratch);
		VEC_PUSH(rows, a, row);
	}
	return more;
}

int validate_read_corpus(const char *path, const struct validate_options *o, struct arena *a, struct validate_rows *rows,
	struct err *err)
{
	struct arena scratch;

	arena_init(&scratch, a->nomem, a->nomem_ctx);
	int rc = read_rows(path, o, &scratch, a, rows, err);
	arena_release(&scratch);
	return rc;
}
