/*
 * probe_profile.c - what was found, written as a profile that `machine:` takes.
 *
 * The text is for people: one device a block, guesses marked `assumed` with their reason as the source, and
 * all notes at its head. It is loaded once before it is handed out, so that a profile that this writes is one
 * that loads.
 */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "hw/hw_params.h"
#include "hw/probe_part.h"

/* Of a stream that a fault of a link slows down, what a person can put his own number to. */
#define EXAMPLE_BYTES 10e9
/* Busy enough for the link to be at the generation it reaches. */
#define BUSY 0.5
#define MAX_GEN 6u
/* nvidia-smi and a part's maker differ by ECC and by what they call a gigabyte, not by more. */
#define SAME_MEMORY 0.08

struct writer {
	struct probe *p;
	struct arena *a;
	struct probe_library lib;
	const char *cpu_part;		  /* NULL when it is none */
	uint64_t capacity_bytes;	  /* of ram */
	unsigned sockets, cores, threads; /* as the profile has them; cores and threads are of one socket */
	struct {
		VEC(char);
	} out;
};

static void put(struct writer *w, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void put(struct writer *w, const char *fmt, ...)
{
	va_list ap, again;

	va_start(ap, fmt);
	va_copy(again, ap);
	size_t n = (size_t)vsnprintf(NULL, 0, fmt, ap);
	VEC_RESERVE(&w->out, w->a, w->out.n + n + 1);
	vsnprintf(w->out.at + w->out.n, n + 1, fmt, again);
	w->out.n += n;
	va_end(again);
	va_end(ap);
}

/* In quotes. Texts are printable ASCII (probe_line). */
static const char *quoted(struct arena *a, const char *text)
{
	char *out = arena_alloc(a, 2 * strlen(text) + 3), *to = out;

	*to++ = '"';
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			*to++ = '\\';
		*to++ = *text == '\t' ? ' ' : *text;
	}
	*to++ = '"';
	*to = '\0';
	return out;
}

static const char *size_text(struct arena *a, uint64_t bytes)
{
	if (bytes % (1 << 20) == 0)
		return arena_printf(a, "%lluMiB", (unsigned long long)(bytes >> 20));
	if (bytes % 1024 == 0)
		return arena_printf(a, "%lluKiB", (unsigned long long)(bytes >> 10));
	return arena_printf(a, "%lluB", (unsigned long long)bytes);
}

/* "2.867TFLOP/s": as a person would write it. */
static const char *scaled(struct arena *a, double value, const char *unit)
{
	static const struct {
		double by;
		const char *prefix;
	} prefixes[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1, ""}, {1e-3, "m"}, {1e-6, "u"}, {1e-9, "n"}};
	size_t i = 0;

	while (i + 1 < ARRAY_LEN(prefixes) && value < prefixes[i].by)
		i++;
	return arena_printf(a, "%.4g%s%s", value / prefixes[i].by, prefixes[i].prefix, unit);
}

/* A number that nobody measured, in the base unit. */
static void put_assumed(struct writer *w, const char *indent, const char *key, double value, const char *unit,
	double spread, const char *why)
{
	put(w, "%s%s: {assumed: %s, spread: %.0f%%, source: %s}\n", indent, key, scaled(w->a, value, unit),
		spread * 100, quoted(w->a, arena_printf(w->a, "assumption of hw probe: %s", why)));
}

/* A key of cpu0 that says what the probe knows; a comment where profiles have no such key. */
static void put_cpu_fact(struct writer *w, const char *key, const char *value)
{
	const char *prefix;
	size_t n;
	const struct param *rows = hw_params(HW_PARAMS_CPU, &n, &prefix);

	put(w, "  %s%s: %s\n", param_find(rows, n, key) ? "" : "# ", key, value);
}

/* ---- GPUs ---- */

static unsigned lanes(unsigned width)
{
	unsigned power = 1;

	while (power * 2 <= width && power < 16)
		power *= 2;
	return width ? power : 0;
}

static unsigned capped(unsigned gen)
{
	return gen < MAX_GEN ? gen : MAX_GEN;
}

/* How much slower one link is than another, in words. */
static int cost_of(struct writer *w, unsigned gen, unsigned width, unsigned gen_max, unsigned width_max,
	const char **words, struct err *err)
{
	struct hw_num link, best;

	if (probe_link_rate(&w->lib, gen, width, &link, err) ||
		probe_link_rate(&w->lib, gen_max, width_max, &best, err))
		return -1;
	double now = hw_num_value(&link), could = hw_num_value(&best);
	*words = arena_printf(w->a,
		"%.3g GB/s from RAM to the card instead of %.3g, so that each %.0f GB streamed for a token "
		"take %.2f s instead of %.2f s",
		now / 1e9, could / 1e9, EXAMPLE_BYTES / 1e9, EXAMPLE_BYTES / now, EXAMPLE_BYTES / could);
	return 0;
}

/* The generation to simulate with: on an idle card the highest that card and slot can do. */
static int judge_gen(struct writer *w, const struct probe_gpu *gpu, const char *about, unsigned width,
	unsigned *gen, struct err *err)
{
	const struct probe_pcie *link = &gpu->pcie;
	const char *cost;

	*gen = capped(link->gen_max ? link->gen_max : link->gen);
	if (link->gen && link->gen < *gen && gpu->busy >= BUSY) {
		if (cost_of(w, link->gen, width, *gen, width, &cost, err))
			return -1;
		probe_note(w->p, PROBE_FAULT, about,
			"the card is busy and its link is at generation %u of %u all the same: %s; look at "
			"the BIOS and the riser",
			link->gen, *gen, cost);
		*gen = link->gen;
	} else if (link->gen && link->gen < *gen) {
		probe_note(w->p, PROBE_HINT, about,
			"at generation %u of %u now: idle cards save power this way, measure under load; the "
			"profile has %u",
			link->gen, *gen, *gen);
	}
	if (link->gen_card > link->gen_max && link->gen_max && *gen == link->gen_max) {
		if (cost_of(w, *gen, width, capped(link->gen_card), width, &cost, err))
			return -1;
		probe_note(w->p, PROBE_HINT, about, "the slot has generation %u, the card %u: %s", *gen,
			link->gen_card, cost);
	}
	return 0;
}

static int judge_width(struct writer *w, const struct probe_gpu *gpu, const char *about, unsigned gen,
	unsigned native, unsigned *width, struct err *err)
{
	unsigned most = lanes(gpu->pcie.width_max), now = lanes(gpu->pcie.width);
	const char *cost;

	if (!most || most > native)
		most = native;
	*width = now && now < most ? now : most;
	if (*width == most)
		return 0;
	if (cost_of(w, gen, now, gen, most, &cost, err))
		return -1;
	probe_note(w->p, PROBE_FAULT, about,
		"%u of %u lanes: %s; look at the slot, the riser, and what shares the slot's lanes", now,
		most, cost);
	return 0;
}

/* native: the part's own link, "pcie-4x16". */
static int write_link(
	struct writer *w, const struct probe_gpu *gpu, const char *name, const char *native, struct err *err)
{
	const char *about = arena_printf(w->a, "%s.link", name);
	unsigned gen = 0, width = 0, own_gen = 0, own_width = 0;

	if (sscanf(native, "pcie-%ux%u", &own_gen, &own_width) != 2)
		return 0; /* NVLink to the processor, or no link at all: the part says it */
	if (gpu->c2c) {
		put(w, "  link: nvlink-c2c\n");
		return 0;
	}
	/* What a generation costs depends on the width in use, what lanes cost on the generation taken. */
	unsigned shown = lanes(gpu->pcie.width);
	if (judge_gen(w, gpu, about, shown ? shown : own_width, &gen, err) ||
		judge_width(w, gpu, about, gen ? gen : own_gen, own_width, &width, err))
		return -1;
	if (!gen || !shown)
		probe_note(w->p, PROBE_GUESS, about, "unknown; %s is assumed", native);
	gen = gen ? gen : own_gen;
	put(w, "  link: {part: pcie, gen: %u, width: %u}\n", gen, width);
	return 0;
}

static int write_known_gpu(
	struct writer *w, const struct probe_gpu *gpu, const char *name, const char *part, struct err *err)
{
	struct profile_part_values numbers;
	double own, seen = (double)gpu->memory_bytes;

	if (probe_part_numbers(&w->lib, HW_PART_GPU, part, &numbers, err))
		return -1;
	own = (double)numbers.memory.capacity_bytes;
	put(w, "%s:\n  part: %s\n", name, part);
	if (!strcmp(numbers.native_link, "unified"))
		return 0;
	if (!gpu->memory_bytes)
		probe_note(w->p, PROBE_GUESS, name,
			"nvidia-smi did not tell of it (no driver, or a container that may not use it?); "
			"%.1f GiB are assumed, as the part %s has",
			own / (1 << 30), part);
	if (seen > 0 && fabs(seen - own) > SAME_MEMORY * own &&
		seen > 2 * (double)numbers.memory.reserved_bytes) {
		put(w, "  memory: %s\n", size_text(w->a, gpu->memory_bytes));
		probe_note(w->p, PROBE_HINT, name,
			"has %.1f GiB, the part %s %.1f: is it another version of the card?",
			seen / (1 << 30), part, own / (1 << 30));
	}
	return write_link(w, gpu, name, numbers.native_link, err);
}

static int write_unknown_gpu(struct writer *w, const struct probe_gpu *gpu, const char *name, struct err *err)
{
	struct probe_gpu_guess guess;

	if (probe_guess_gpu(&w->lib, &guess, err))
		return -1;
	double bandwidth = (double)gpu->memory_bytes * guess.bandwidth_per_byte;
	put(w, "%s:\n  description: %s\n  memory: %s\n  reserved: %s\n", name, quoted(w->a, gpu->name),
		size_text(w->a, gpu->memory_bytes),
		size_text(w->a, (uint64_t)(guess.reserved * (double)gpu->memory_bytes) >> 20 << 20));
	put_assumed(w, "  ", "bandwidth", bandwidth, "B/s", guess.spread, "from the size of the memory");
	put(w, "  flops:\n");
	put_assumed(w, "    ", "fp32", bandwidth * guess.fp32_per_byte, "FLOP/s", guess.spread,
		"from the bandwidth");
	put_assumed(w, "    ", "fp16", bandwidth * guess.fp16_per_byte, "FLOP/s", guess.spread,
		"from the bandwidth");
	put_assumed(w, "  ", "launch", guess.launch_s, "s", guess.spread, "as other cards");
	probe_note(w->p, PROBE_GUESS, name,
		"'%s' is no part of the library: its bandwidth and arithmetic are guessed from its memory; "
		"state a part (offsim hw list --parts gpu), or measure: offsim calibrate cuda -o FILE",
		gpu->name);
	return write_link(w, gpu, name, guess.link, err);
}

/* Every two GPUs, or every pair of neighbours and no others, by the same. */
static bool joined_alike(const struct probe *p, enum hw_link_between between)
{
	const char *const *cell = p->gpu_links;
	unsigned n = p->n_gpu_links;

	for (unsigned i = 0; i < n * n; i++) {
		unsigned row = i / n, column = i % n;
		bool joined = row != column && (between == HW_BETWEEN_ALL || row / 2 == column / 2);
		if (joined ? strcmp(cell[i], cell[1]) != 0 : row != column && !strncmp(cell[i], "NV", 2))
			return false;
	}
	return true;
}

static bool any_nvlink(const struct probe *p)
{
	for (unsigned i = 0; i < p->n_gpu_links * p->n_gpu_links; i++)
		if (!strncmp(p->gpu_links[i], "NV", 2))
			return true;
	return false;
}

/* n: GPUs that the profile has. */
static int write_nvlink(struct writer *w, unsigned n, struct err *err)
{
	const struct probe *p = w->p;
	enum hw_link_between between = HW_BETWEEN_ALL;
	const char *part;

	if (p->n_gpu_links != p->gpus.n || n != p->gpus.n || n < 2 || !any_nvlink(p))
		return 0;
	if (probe_find_nvlink(&w->lib, p->gpu_links[1], p->gpus.at[0].compute, &part, &between, err))
		return -1;
	if (part && joined_alike(p, between)) {
		put(w, "nvlink: %s\n", part);
		return 0;
	}
	probe_note(w->p, PROBE_GUESS, "nvlink",
		"what joins these GPUs (%s) is no part of the library: in the profile they reach each other "
		"through RAM; see "
		"offsim hw list --parts link",
		probe_describe_links(p));
	return 0;
}

static int write_gpus(struct writer *w, struct err *err)
{
	unsigned n = 0;

	for (size_t i = 0; i < w->p->gpus.n; i++) {
		const struct probe_gpu *gpu = &w->p->gpus.at[i];
		const char *name = arena_printf(w->a, "gpu%u", n), *part;
		if (n == PROFILE_MAX_GPUS) {
			probe_note(w->p, PROBE_HINT, "gpus", "a profile has %d at most; %zu are left out",
				PROFILE_MAX_GPUS, w->p->gpus.n - i);
			break;
		}
		if (probe_find_part(&w->lib, HW_PART_GPU, gpu->name, gpu->memory_bytes, &part, err))
			return -1;
		if (!part && !gpu->memory_bytes) {
			probe_note(w->p, PROBE_GUESS, gpu->bus,
				"'%s' is no part of the library, and how much memory it has is unknown: left "
				"out; add it by hand, such as gpu%u: rtx-4090",
				gpu->name, n);
			continue;
		}
		if (part ? write_known_gpu(w, gpu, name, part, err) : write_unknown_gpu(w, gpu, name, err))
			return -1;
		if (gpu->used_bytes >= (uint64_t)1 << 28)
			probe_note(w->p, PROBE_HINT, name,
				"%.1f GiB of its memory are in use by others now; where they will stay, add "
				"them to `reserved`",
				(double)gpu->used_bytes / (1 << 30));
		n++;
	}
	return write_nvlink(w, n, err);
}

/* ---- processors ---- */

/* What the profile has: sockets with cores alike, within what a control group grants. */
static void share_cores(struct writer *w)
{
	const struct probe_cpu *cpu = &w->p->cpu;
	unsigned cores = cpu->cores, threads = cpu->threads, sockets = cpu->sockets ? cpu->sockets : 1;

	if (cpu->quota > 0 && cpu->quota < cores) {
		cores = threads = cpu->quota >= 1 ? (unsigned)cpu->quota : 1;
		probe_note(w->p, PROBE_HINT, "cpu0", "a control group grants the time of %.3g of %u cores",
			cpu->quota, cpu->cores);
	}
	if (cpu->threads && cpu->threads < cpu->all_threads)
		probe_note(w->p, PROBE_HINT, "cpu0",
			"%u of the machine's %u hardware threads may be used here", cpu->threads,
			cpu->all_threads);
	w->sockets = cores && cores % sockets == 0 ? sockets : 1;
	w->cores = cores / w->sockets;
	w->threads = threads / w->sockets;
}

static void write_flops(struct writer *w, const struct probe_cpu_guess *guess, double cycles_s)
{
	const char *why = arena_printf(w->a,
		"%u cores x %.1f GHz x operations a cycle of %s, less what kernels leave", w->cores,
		cycles_s / w->cores / 1e9, *w->p->cpu.isa ? w->p->cpu.isa : "any processor");
	double reached = cycles_s * guess->efficiency;

	put(w, "  flops:\n");
	put_assumed(w, "    ", "fp32", reached * guess->fp32 * w->sockets, "FLOP/s", guess->spread, why);
	put_assumed(w, "    ", "fp16", reached * guess->fp32 * w->sockets, "FLOP/s", guess->spread,
		"as fp32 (converted)");
	put_assumed(w, "    ", "bf16", reached * guess->bf16 * w->sockets, "FLOP/s", guess->spread, why);
	put_assumed(w, "    ", "int8", reached * guess->int8 * w->sockets, "OP/s", guess->spread, why);
}

static int write_unknown_cpu(struct writer *w, struct err *err)
{
	const struct probe_cpu *cpu = &w->p->cpu;
	struct probe_cpu_guess guess;

	if (probe_guess_cpu(&w->lib, cpu->isa, &guess, err))
		return -1;
	if (*cpu->model)
		put(w, "  description: %s\n", quoted(w->a, cpu->model));
	put(w, "  cores: %u\n", w->cores);
	write_flops(w, &guess, w->cores * (cpu->clock_hz > 0 ? cpu->clock_hz : guess.clock_hz));
	put_assumed(w, "  ", "launch", guess.launch_s, "s", guess.spread, "as other processors");
	probe_note(w->p, PROBE_GUESS, "cpu0",
		"'%s' is no part of the library: its arithmetic is guessed from cores, clock and instruction "
		"set; measure: offsim calibrate cpu -o FILE",
		*cpu->model ? cpu->model : "unknown");
	return 0;
}

static int write_known_cpu(struct writer *w, struct err *err)
{
	struct profile_part_values numbers;

	if (probe_part_numbers(&w->lib, HW_PART_CPU, w->cpu_part, &numbers, err))
		return -1;
	put(w, "  part: %s\n", w->cpu_part);
	if (w->cores && w->cores != numbers.device.cores)
		put(w, "  cores: %u  # the part has %u\n", w->cores, numbers.device.cores);
	return 0;
}

static int write_cpu(struct writer *w, struct err *err)
{
	struct probe_cpu *cpu = &w->p->cpu;

	share_cores(w);
	unsigned whole = cpu->cores / (cpu->sockets ? cpu->sockets : 1);
	if (probe_find_cpu(&w->lib, cpu->model, whole, &cpu->model, &w->cpu_part, err))
		return -1;
	put(w, "cpu0:\n");
	if (!w->cpu_part && !w->cores) {
		put(w, "  part: generic-cpu\n");
		probe_note(w->p, PROBE_GUESS, "cpu0",
			"unknown; 8 cores with AVX2 are assumed (part generic-cpu)");
		w->cores = 8;
		return 0;
	}
	if (w->cpu_part ? write_known_cpu(w, err) : write_unknown_cpu(w, err))
		return -1;
	if (w->sockets > 1)
		put(w, "  sockets: %u\n", w->sockets);
	if (*cpu->isa)
		put_cpu_fact(w, "isa", cpu->isa);
	if (w->threads)
		put_cpu_fact(w, "threads", arena_printf(w->a, "%u", w->threads));
	return 0;
}

/* ---- memory ---- */

static void write_capacity(struct writer *w, const struct probe_ram_guess *guess)
{
	const struct probe_ram *ram = &w->p->ram;
	uint64_t capacity = ram->total_bytes, available = ram->available_bytes;
	bool known = true;

	if (ram->limit_bytes && (!capacity || ram->limit_bytes < capacity)) {
		uint64_t left = ram->limit_bytes > ram->limit_used_bytes
					? ram->limit_bytes - ram->limit_used_bytes
					: 0;
		probe_note(w->p, PROBE_HINT, "ram", "a control group limits it to %.1f GiB of %.1f",
			(double)ram->limit_bytes / (1 << 30), (double)capacity / (1 << 30));
		capacity = ram->limit_bytes;
		available = available && available < left ? available : left;
	}
	if (!capacity)
		capacity = ram->module_bytes;
	if (!capacity) {
		capacity = (uint64_t)guess->capacity_bytes;
		probe_note(w->p, PROBE_GUESS, "ram.capacity", "unknown; %.0f GiB are assumed",
			(double)capacity / (1 << 30));
	}
	if (!available || available > capacity) {
		available = capacity - capacity / 8;
		known = false;
		probe_note(w->p, PROBE_GUESS, "ram.reserved",
			"unknown; an eighth of the memory is assumed to be in use");
	}
	w->capacity_bytes = capacity;
	put(w, "  capacity: %s\n  reserved: %s%s\n", size_text(w->a, capacity),
		size_text(w->a, capacity - available), known ? "  # in use when this was written" : "");
}

static void write_bandwidth_guess(struct writer *w, const struct probe_ram_guess *guess, double bytes_s)
{
	unsigned cores = w->cores * w->sockets;

	put_assumed(w, "  ", "bandwidth", bytes_s, "B/s", guess->spread,
		arena_printf(w->a, "what %u cores of an unknown machine read", cores));
	probe_note(w->p, PROBE_GUESS, "ram.bandwidth",
		"the memory's modules are unknown%s: %.0f GB/s are assumed for %u cores, give or take %.0f "
		"%%; measure: offsim calibrate ram -o FILE",
		w->p->cpu.hypervisor ? " (a virtual machine)" : " (dmidecode must be there and run as root)",
		bytes_s / 1e9, cores, guess->spread * 100);
}

static const char *dram_part(const char *type)
{
	if (!strncmp(type, "LPDDR5", 6))
		return "lpddr5x";
	return !strncmp(type, "DDR5", 4) ? "ddr5" : !strncmp(type, "DDR4", 4) ? "ddr4" : "generic-ram";
}

/* Locators that do not tell the channel: as many as there are modules, no more than the processor has. */
static unsigned count_channels(struct writer *w, const struct probe_modules_guess *usual)
{
	const struct probe_ram *ram = &w->p->ram;
	unsigned channels = ram->channels, most = (unsigned)usual->channels * w->sockets;

	if (channels)
		return channels;
	channels = most && ram->modules > most ? most : ram->modules;
	probe_note(w->p, PROBE_GUESS, "ram.channels",
		"the modules do not name their channels: %u are assumed for %u modules; state it, or "
		"measure: offsim calibrate ram -o FILE",
		channels, ram->modules);
	return channels;
}

static void write_modules(struct writer *w, const struct probe_modules_guess *usual)
{
	const struct probe_ram *ram = &w->p->ram;
	unsigned channels = count_channels(w, usual), sockets = channels % w->sockets == 0 ? w->sockets : 1;

	put(w, "  part: %s\n  rate: %.0fMT/s\n  channels: %u\n", dram_part(ram->type), ram->rate_t_s / 1e6,
		channels / sockets < 128 ? channels / sockets : 128);
	if (sockets > 1)
		put(w, "  sockets: %u\n", sockets);
	if (ram->rate_is_rated)
		probe_note(w->p, PROBE_GUESS, "ram.rate",
			"what the modules are configured to is unknown; what they are rated for is assumed");
	else if (ram->rate_t_s < 0.99 * ram->rated_t_s)
		probe_note(w->p, PROBE_HINT, "ram.rate",
			"the modules run at %.0f MT/s and are rated for %.0f: the BIOS decides (XMP, EXPO) "
			"whether the missing %.0f %% can be had; with two modules a channel often not",
			ram->rate_t_s / 1e6, ram->rated_t_s / 1e6,
			(ram->rated_t_s / ram->rate_t_s - 1) * 100);
	if (usual->channels * w->sockets > channels)
		probe_note(w->p, PROBE_HINT, "ram.channels",
			"%u of the %u channels that the processors have are in use", channels,
			(unsigned)usual->channels * w->sockets);
}

static void write_usual_modules(struct writer *w, const struct probe_modules_guess *usual)
{
	put(w, "  part: %s\n  rate: %.0fMT/s\n  channels: %u\n", usual->type, usual->rate_t_s / 1e6,
		(unsigned)usual->channels);
	if (w->sockets > 1)
		put(w, "  sockets: %u\n", w->sockets);
	probe_note(w->p, PROBE_GUESS, "ram.rate",
		"the modules are unknown (dmidecode must be there and run as root): all %u channels at %.0f "
		"MT/s, the most that the processor takes, are assumed; measure: offsim calibrate ram -o FILE",
		(unsigned)usual->channels * w->sockets, usual->rate_t_s / 1e6);
}

static int write_ram(struct writer *w, struct err *err)
{
	const struct probe_ram *ram = &w->p->ram;
	struct probe_ram_guess guess;
	struct probe_modules_guess usual;
	const char *own;
	double bytes_s;

	if (probe_guess_ram(&w->lib, &guess, err) || probe_guess_modules(&w->lib, w->cpu_part, &usual, err) ||
		probe_find_dram(&w->lib, w->cpu_part, ram->total_bytes, &own, err) ||
		probe_guess_bandwidth(&guess, w->cores * w->sockets, &bytes_s, err))
		return -1;
	put(w, "ram:\n");
	if (own)
		put(w, "  part: %s\n", own);
	else if (w->p->cpu.hypervisor) /* its modules are made up */
		write_bandwidth_guess(w, &guess, bytes_s);
	else if (ram->modules && ram->rate_t_s > 0)
		write_modules(w, &usual);
	else if (usual.channels)
		write_usual_modules(w, &usual);
	else
		write_bandwidth_guess(w, &guess, bytes_s);
	write_capacity(w, &guess);
	if (w->p->cpu.nodes > 1)
		probe_note(w->p, PROBE_HINT, "ram",
			"%u NUMA nodes share it: its rate is reached only where each thread reads its own "
			"node's memory",
			w->p->cpu.nodes);
	return 0;
}

/* ---- drives ---- */

/* What does not fit through the link is no drive's rate. */
static int write_drive_rates(struct writer *w, const struct probe_drive *drive, const char *name,
	const char *part, unsigned gen, unsigned width, struct err *err)
{
	struct profile_part_values numbers;
	struct hw_num link;

	if (!gen || !width)
		return 0;
	if (probe_part_numbers(&w->lib, HW_PART_NVME, part, &numbers, err) ||
		probe_link_rate(&w->lib, gen, width, &link, err))
		return -1;
	double read = hw_num_value(&numbers.link.d2h.num), write = hw_num_value(&numbers.link.h2d.num);
	double rate = hw_num_value(&link), peak = hw_num_peak(&link);
	const char *why = arena_printf(w->a, "the link carries no more: PCIe %u x%u", gen, width);
	if (read > peak)
		put_assumed(w, "  ", "read", rate, "B/s", link.spread, why);
	if (write > peak)
		put_assumed(w, "  ", "write", rate, "B/s", link.spread, why);
	if (width < lanes(drive->pcie.width_max) ||
		(drive->pcie.gen && drive->pcie.gen < drive->pcie.gen_card))
		probe_note(w->p, width < lanes(drive->pcie.width_max) ? PROBE_FAULT : PROBE_HINT,
			arena_printf(w->a, "%s.link", name),
			"PCIe %u x%u of %u x%u, which carries %.3g GB/s: each %.0f GB read for a token take "
			"%.2f s at least",
			gen, width, drive->pcie.gen_card, drive->pcie.width_max, rate / 1e9,
			EXAMPLE_BYTES / 1e9, EXAMPLE_BYTES / rate);
	return 0;
}

static int write_drive(struct writer *w, const struct probe_drive *drive, unsigned i, struct err *err)
{
	unsigned gen = capped(drive->pcie.gen ? drive->pcie.gen : drive->pcie.gen_max);
	unsigned width = lanes(drive->pcie.width ? drive->pcie.width : drive->pcie.width_max);
	unsigned like = gen < 3 ? 3 : gen > 5 ? 5 : gen; /* the ordinary drives of the library */
	const char *name = arena_printf(w->a, "nvme%u", i), *part;

	if (probe_find_part(&w->lib, HW_PART_NVME, drive->model, 0, &part, err))
		return -1;
	if (!part) {
		part = arena_printf(w->a, "nvme-gen%u", like);
		probe_note(w->p, PROBE_GUESS, name,
			"'%s' is no part of the library: an ordinary drive of PCIe %u is assumed%s; measure: "
			"offsim calibrate disk -o FILE",
			drive->model, like, gen ? "" : ", for its link is unknown");
	}
	put(w, "%s:\n  part: %s\n  capacity: %s\n", name, part, size_text(w->a, drive->bytes));
	return write_drive_rates(w, drive, name, part, gen, width, err);
}

static int write_drives(struct writer *w, struct err *err)
{
	size_t n = w->p->drives.n < PROFILE_MAX_DRIVES ? w->p->drives.n : PROFILE_MAX_DRIVES;

	for (size_t i = 0; i < n; i++)
		if (write_drive(w, &w->p->drives.at[i], (unsigned)i, err))
			return -1;
	if (n < w->p->drives.n)
		probe_note(w->p, PROBE_HINT, "drives", "a profile has %d at most; %zu are left out",
			PROFILE_MAX_DRIVES, w->p->drives.n - n);
	for (size_t i = 0; i < w->p->others.n; i++)
		probe_note(w->p, PROBE_HINT, "others",
			"%s is left out; state it by hand where models are to use it", w->p->others.at[i]);
	return 0;
}

/* ---- the whole ---- */

static const char *summary(struct writer *w)
{
	const struct probe *p = w->p;
	const char *text =
		arena_printf(w->a, "%s%s", w->sockets > 1 ? arena_printf(w->a, "%u x ", w->sockets) : "",
			*p->cpu.model ? p->cpu.model : "unknown processor");

	text = arena_printf(w->a, "%s, %u cores, %.1f GiB%s%s", text, w->cores * w->sockets,
		(double)w->capacity_bytes / (1 << 30), *p->ram.type ? " " : "", p->ram.type);
	for (size_t i = 0, n; i < p->gpus.n; i += n) {
		for (n = 1; i + n < p->gpus.n && !strcmp(p->gpus.at[i + n].name, p->gpus.at[i].name);)
			n++;
		text = n > 1 ? arena_printf(w->a, "%s, %zu x %s", text, n, p->gpus.at[i].name)
			     : arena_printf(w->a, "%s, %s", text, p->gpus.at[i].name);
	}
	return arena_printf(w->a, "%.400s%s", text, p->gpus.n ? "" : ", no GPU");
}

static int write_devices(struct writer *w, struct err *err)
{
	/* cpu0 before ram, whose guesses depend on it. */
	return write_gpus(w, err) || write_cpu(w, err) || write_ram(w, err) || write_drives(w, err) ? -1 : 0;
}

static int check(struct writer *w, const char *yaml, struct err *err)
{
	struct yaml_node *root;
	struct hw_machine *m;

	if (yaml_read_text(yaml, strlen(yaml), "the probe's profile", w->a, &root, err))
		return -1;
	return hw_machine_load_node(root, w->a, &m, err);
}

int probe_write_profile(struct probe *p, const char **yaml, struct err *err)
{
	struct writer w = {.p = p, .a = p->a};

	p->notes.n = 0;
	if (probe_library_open(&w.lib, p->a, err) || write_devices(&w, err))
		return -1;
	/* The notes are known only now, and come first. */
	const char *devices = arena_strndup(w.a, w.out.at, w.out.n);
	w.out.n = 0;
	put(&w, "# Written by offsim hw probe. Numbers of parts are the library's (offsim hw show FILE), "
		"`assumed` ones are guesses;\n# offsim calibrate all -o FILE measures them.\n#\n");
	for (size_t i = 0; i < p->notes.n; i++)
		put(&w, "%s", probe_note_lines(p, i, "# "));
	put(&w, "description: %s\n%s", quoted(w.a, summary(&w)), devices);
	*yaml = w.out.at;
	return check(&w, *yaml, err);
}
