/*
 * validate_corpus.c - rows of a corpus of published measurements as scenarios: the machine is written out from the row's
 * columns, and what it does not state is filled with the same defaults for all.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>

#include "base/csv.h"
#include "base/datadir.h"
#include "base/number.h"
#include "base/yaml.h"
#include "sim/run/validate_rows.h"

enum column { COL_ID, COL_GROUP, COL_ENGINE, COL_WHEN, COL_MODEL, COL_QUANT, COL_GPUS, COL_LINK, COL_CPU, COL_SOCKETS,
	COL_DRAM, COL_DRAM_GBPS, COL_DRAM_KIND, COL_RAM_GIB, COL_DISK, COL_THREADS, COL_FLAGS, COL_KV_DTYPE, COL_BATCH,
	COL_PROMPT, COL_GEN, COL_DEPTH, COL_METRIC, COL_VALUE, COL_TIER, COL_N };
static const char *const columns[COL_N] = {"id", "group", "engine", "when", "model", "quant", "gpus", "link", "cpu",
	"sockets", "dram", "dram_gbps", "dram_gbps_kind", "ram_gib", "disk", "threads", "flags", "kv_dtype", "batch",
	"prompt_len", "gen_len", "depth", "metric", "value", "tier"};

/* What a row does not say. */
#define DEFAULT_RAM_GIB "1024"
#define DEFAULT_CHANNELS 2
/* What a measured machine's system and other programs hold; Windows 11 asks for as much as it is. */
#define DEFAULT_RAM_RESERVED "4GiB"
#define DEFAULT_QUANT "q4_k_m"
#define DEFAULT_PROMPT "512"
#define DEFAULT_GENERATE "128"

struct source_row {
	const char *at[COL_N];
};

/* ---- from a row to a scenario ---- */

struct text {
	struct arena *arena;
	const char *s;       /* the scenario so far */
	const char *assumed; /* the defaults so far */
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
	};

	for (size_t i = 0; i < ARRAY_LEN(map); i++)
		if (strcmp(map[i][0], name) == 0)
			return map[i][1];
	return NULL;
}

/* "2*rtx-3090+rtx-4090": n cards of a part each. Unknown generations and widths leave the card's native link. */
static void add_gpus(struct text *t, const char *gpus, const char *link)
{
	char *list = arena_strdup(t->arena, gpus), *save;
	unsigned gen = 0, width = 0;
	int n = 0;

	if (strcmp(gpus, "none") == 0 || !*gpus)
		return;
	sscanf(link, "pcie-%ux%u", &gen, &width);
	if (!*link)
		assume(t, "native link");
	for (char *one = strtok_r(list, "+", &save); one; one = strtok_r(NULL, "+", &save)) {
		char *end;
		long copies = strtol(one, &end, 10);
		if (end == one || *end != '*')
			copies = 1;
		else
			one = end + 1;
		for (long i = 0; i < copies && n < 8; i++) {
			if (gen && width)
				add(t, "  gpu%d: {part: %s, link: {part: pcie, gen: %u, width: %u}}\n", n++, one, gen, width);
			else
				add(t, "  gpu%d: %s\n", n++, one);
		}
	}
}

/* The chip that holds CPU and GPU: the row names it by either. */
static const char *chip_of(const struct source_row *r)
{
	static const char *const chips[][2] = {
		{"radeon-8060s", "ryzen-ai-max-395"}, {"apple-m1-max-32c", "apple-m1-max"}};

	if (*r->at[COL_CPU])
		return r->at[COL_CPU];
	for (size_t i = 0; i < ARRAY_LEN(chips); i++)
		if (strcmp(r->at[COL_GPUS], chips[i][0]) == 0)
			return chips[i][1];
	return r->at[COL_GPUS];
}

/* Memory: what a row says, or what its processor's platform has. Numbers that are not known are 0. */
struct dram {
	char type[16];
	unsigned rate, channels; /* MT/s; of all sockets used */
};

/* "ddr5-4800x16": either number may be missing. */
static struct dram stated_dram(const char *text)
{
	const char *dash = strchr(text, '-'), *x = strrchr(text, 'x');
	struct dram d = {0};

	sscanf(text, "%15[a-z0-9]", d.type);
	if (dash)
		d.rate = (unsigned)strtoul(dash + 1, NULL, 10);
	if (x && x[1] >= '0' && x[1] <= '9' && x > text && x[-1] != 'r')
		d.channels = (unsigned)strtoul(x + 1, NULL, 10);
	if (!dash && x)
		d.type[x - text < 15 ? x - text : 15] = '\0';
	return d;
}

static struct dram platform_dram(const struct yaml_node *platforms, const struct source_row *r)
{
	const struct yaml_node *node = yaml_get(platforms, r->at[COL_CPU]), *type = node ? yaml_get(node, "type") : NULL,
			       *rate = node ? yaml_get(node, "rate") : NULL, *channels = node ? yaml_get(node, "channels") : NULL;
	unsigned sockets = *r->at[COL_SOCKETS] ? (unsigned)strtoul(r->at[COL_SOCKETS], NULL, 10) : 1;
	struct dram d = {.channels = DEFAULT_CHANNELS};

	if (type && rate && channels) {
		snprintf(d.type, sizeof(d.type), "%s", type->text);
		d.rate = (unsigned)strtoul(rate->text, NULL, 10);
		d.channels = sockets * (unsigned)strtoul(channels->text, NULL, 10);
	}
	return d;
}

static void add_dram(struct text *t, const struct source_row *r, const struct yaml_node *platforms)
{
	struct dram d = stated_dram(r->at[COL_DRAM]), usual = platform_dram(platforms, r);

	if (!*d.type)
		snprintf(d.type, sizeof(d.type), "%s", *usual.type ? usual.type : "ddr5");
	if (!d.rate) {
		d.rate = strcmp(d.type, usual.type) == 0 ? usual.rate : strcmp(d.type, "ddr4") == 0 ? 3200 : 5600;
		assume(t, "DRAM speed");
	}
	if (!d.channels) {
		d.channels = usual.channels;
		assume(t, "DRAM channels");
	}
	add(t, ", part: %s, rate: %uMT/s, channels: %u}\n",
		strcmp(d.type, "ddr4") == 0 || strncmp(d.type, "lpddr5x", 7) == 0 ? d.type : "ddr5", d.rate, d.channels);
}

static void add_ram(struct text *t, const struct source_row *r, const struct yaml_node *platforms)
{
	const char *capacity = r->at[COL_RAM_GIB];

	if (!*capacity)
		assume(t, "RAM is large enough");
	add(t, "  ram: {capacity: %sGiB, reserved: " DEFAULT_RAM_RESERVED, *capacity ? capacity : DEFAULT_RAM_GIB);
	if (*r->at[COL_DRAM_GBPS]) {
		bool measured = strcmp(r->at[COL_DRAM_KIND], "measured") == 0;
		add(t, measured ? ", bandwidth: {measured: %sGB/s, spread: 5%%, source: corpus}}\n" :
				  ", bandwidth: {peak: %sGB/s, efficiency: 85%%, spread: 12%%, source: corpus}}\n",
			r->at[COL_DRAM_GBPS]);
	} else if (strcmp(r->at[COL_LINK], "unified") == 0) {
		/* On a chip, or in a module with it: the memory is a part by the chip's name. */
		add(t, ", part: %s}\n", chip_of(r));
	} else if (strcmp(r->at[COL_CPU], "grace-72") == 0) {
		add(t, ", part: lpddr5x-grace-480gb}\n");
	} else {
		add_dram(t, r, platforms);
	}
}

static void add_machine(struct text *t, const struct source_row *r, const struct yaml_node *platforms)
{
	const char *disk = strchr(r->at[COL_DISK], '@');
	bool unified = strcmp(r->at[COL_LINK], "unified") == 0;
	double gb_s;

	add(t, "machine:\n  name: corpus\n");
	add_gpus(t, r->at[COL_GPUS], unified ? "" : r->at[COL_LINK]);
	if (*r->at[COL_CPU])
		add(t, "  cpu0: {part: %s, sockets: %s}\n", r->at[COL_CPU], *r->at[COL_SOCKETS] ? r->at[COL_SOCKETS] : "1");
	else if (unified)
		add(t, "  cpu0: %s\n", chip_of(r));
	else
		add(t, "  cpu0: generic-cpu\n");
	if (!*r->at[COL_CPU] && !unified)
		assume(t, "CPU");
	add_ram(t, r, platforms);
	if (disk && number_parse(disk + 1, strlen(disk + 1), &gb_s) && gb_s > 0)
		add(t, "  nvme0: {capacity: 4TB, read: %gGB/s, write: %gGB/s, latency: 100us}\n", gb_s, gb_s);
	else if (strstr(r->at[COL_FLAGS], "disk_gib") || *r->at[COL_RAM_GIB]) { /* a file larger than RAM comes from there */
		add(t, "  nvme0: {part: nvme-gen3, capacity: 4TB}\n");
		assume(t, "drive");
	}
}

/* The corpus says where accelerate put things: "device_map=auto gpu_gib=21.5,18 cpu_gib=3.8 disk_gib=rest". The greedy
   dealing keeps a block free, which a limit must have on top. */
static void add_accelerate_flags(struct text *t, const char *flags)
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
	{"numactl bind to one socket", " --numa isolate"},
	{"--membind=0", " --numa isolate"},
	{"numactl --interleave", " --numa numactl"},
};
#define BUILD_OFFLOAD_MIN "build moe-offload-min="

/* From the remarks that begin with env, build or numactl, each between semicolons. */
static void add_remarks(struct text *t, const char *flags)
{
	const char *min = strstr(flags, BUILD_OFFLOAD_MIN);

	for (size_t i = 0; i < ARRAY_LEN(remarks); i++)
		if (strstr(flags, remarks[i].written))
			add(t, "%s", remarks[i].flag);
	if (min)
		add(t, " --op-offload-min %lu", strtoul(min + strlen(BUILD_OFFLOAD_MIN), NULL, 10));
}

/* The flags alone: without remarks, before or behind. */
static char *command_line(struct text *t, const char *flags)
{
	char *rest = arena_strdup(t->arena, flags), *part;

	while ((part = strsep(&rest, ";"))) {
		part += strspn(part, " ");
		if (*part == '-')
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

static void add_ollama_flags(struct text *t, const char *flags)
{
	const char *num = strstr(flags, "num_gpu=");

	if (num)
		num += strlen("num_gpu=");
	if (num && strncmp(num, "all", 3) != 0 && strncmp(num, "auto", 4) != 0)
		add(t, "-ngl %d", atoi(num));
	else
		add(t, "-ngl %s", num && strncmp(num, "all", 3) == 0 ? "all" : "auto");
}

/* Of llama.cpp, its relatives and KTransformers. */
static void add_command_flags(struct text *t, const struct source_row *r)
{
	const char *flags = r->at[COL_FLAGS];
	bool kt = strcmp(r->at[COL_ENGINE], "ktransformers") == 0;

	add(t, "flags: '");
	if (strcmp(r->at[COL_ENGINE], "ollama") == 0)
		add_ollama_flags(t, flags);
	else
		add_quoted(t, command_line(t, flags));
	add_remarks(t, flags);
	if (*r->at[COL_THREADS] && !strstr(flags, "-t ") && !strstr(flags, "--cpu_infer"))
		add(t, "%s %s", kt ? " --cpu_infer" : " -t", r->at[COL_THREADS]);
	if (*r->at[COL_WHEN] && !kt)
		add(t, " --build %s", r->at[COL_WHEN]);
	add(t, "'\n");
}

static const char *or_else(const char *s, const char *def)
{
	return *s ? s : def;
}

static void add_workload(struct text *t, const struct source_row *r, enum validate_metric metric)
{
	const char *batch = or_else(r->at[COL_BATCH], "1"), *prompt = r->at[COL_PROMPT], *gen = r->at[COL_GEN];

	if (metric == VALIDATE_DECODE) {
		if (!*r->at[COL_DEPTH] && !*prompt)
			assume(t, "depth");
		add(t, "workload: {batch: %s, prompt: 0, generate: %s, depth: %s}\n", batch, or_else(gen, DEFAULT_GENERATE),
			or_else(r->at[COL_DEPTH], or_else(prompt, "0")));
		return;
	}
	if (!*prompt)
		assume(t, "prompt length");
	if (metric == VALIDATE_E2E)
		add(t, "workload: {batch: %s, prompt: %s, generate: %s}\n", batch, or_else(prompt, DEFAULT_PROMPT),
			or_else(gen, DEFAULT_GENERATE));
	else
		add(t, "workload: {batch: %s, prompt: %s, generate: 1, depth: %s}\n", batch, or_else(prompt, DEFAULT_PROMPT),
			or_else(r->at[COL_DEPTH], "0"));
}

/* Recipes of single authors are taken as the nearest mix that is known. */
static const char *quant_of(const struct source_row *r, struct text *t)
{
	static const char *const near[][2] = {{"iq3_k-mix", "iq3_k"}, {"dq4_k_r4", "q4_k_r4"}};

	for (size_t i = 0; i < ARRAY_LEN(near); i++) {
		if (strcmp(r->at[COL_QUANT], near[i][0]) == 0) {
			assume(t, "the recipe of the weights");
			return near[i][1];
		}
	}
	if (!*r->at[COL_QUANT])
		assume(t, "type of the weights");
	return or_else(r->at[COL_QUANT], DEFAULT_QUANT);
}

static const char *scenario_text(const struct source_row *r, enum validate_metric metric, const char *engine,
	const struct yaml_node *platforms, struct text *t)
{
	add(t, "model: %s\nquant: %s\nengine: %s\n", r->at[COL_MODEL], quant_of(r, t), engine);
	add_machine(t, r, platforms);
	if (strcmp(engine, "accelerate") == 0)
		add_accelerate_flags(t, r->at[COL_FLAGS]);
	else
		add_command_flags(t, r);
	add_workload(t, r, metric);
	return t->s;
}

/* ---- rows ---- */

static enum validate_metric metric_of(const char *name, bool *per_token, bool *known)
{
	static const struct {
		const char *name;
		enum validate_metric metric;
	} map[] = {{"decode_tok_s", VALIDATE_DECODE}, {"prefill_tok_s", VALIDATE_PREFILL}, {"e2e_tok_s", VALIDATE_E2E},
		{"s_per_token", VALIDATE_E2E}, {"ttft_s", VALIDATE_TTFT}};

	*per_token = strcmp(name, "s_per_token") == 0;
	*known = true;
	for (size_t i = 0; i < ARRAY_LEN(map); i++)
		if (strcmp(map[i].name, name) == 0)
			return map[i].metric;
	*known = false;
	return VALIDATE_DECODE;
}

static void read_row(const struct source_row *src, const struct yaml_node *platforms, struct arena *scratch, struct arena *a,
	struct validate_row *row)
{
	const char *engine = engine_for(src->at[COL_ENGINE]);
	struct text t = {scratch, "", ""};

	if (!*src->at[COL_MODEL]) {
		row->status = VALIDATE_SKIPPED;
		row->reason = "the model is not stated";
		return;
	}
	if (!engine) {
		row->status = VALIDATE_SKIPPED;
		row->reason = arena_printf(a, "engine '%s' is not modelled", src->at[COL_ENGINE]);
		return;
	}
	row->scenario = arena_strdup(a, scenario_text(src, row->metric, engine, platforms, &t));
	row->assumed = arena_strdup(a, t.assumed);
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
	struct yaml_node *platforms;
	const char *dir;
	int more;

	if (datadir_find(a, &dir, err) ||
		yaml_read_file(arena_printf(a, "%s/hw/parts/platforms.yaml", dir), a, &platforms, err) || csv_open(&csv, path, columns, COL_N, a, err))
		return -1;
	while ((more = csv_next(&csv, f, err)) > 0) {
		struct source_row src;
		for (int c = 0; c < COL_N; c++)
			src.at[c] = arena_strndup(a, f[c].text, f[c].len);

		bool known;
		struct validate_row row = {
			.id = src.at[COL_ID],
			.group = src.at[COL_GROUP],
			.engine = src.at[COL_ENGINE],
			.model = src.at[COL_MODEL],
			.tier = src.at[COL_TIER],
			.where = arena_printf(a, "%s:%d", path, csv.line),
			.scale = 1,
			.reason = "",
			.assumed = "",
			.status = VALIDATE_OK,
			.predicted = NAN, .low80 = NAN, .high80 = NAN, .upper_bound = NAN,
		};
		row.metric = metric_of(src.at[COL_METRIC], &row.per_token, &known);
		if (!known)
			return csv_error(&csv, &f[COL_METRIC], err, "unknown metric '%s'", src.at[COL_METRIC]);
		if (!number_parse(src.at[COL_VALUE], strlen(src.at[COL_VALUE]), &row.measured) || row.measured <= 0)
			return csv_error(&csv, &f[COL_VALUE], err, "'%s' is no measured value", src.at[COL_VALUE]);
		row.field = field_of(row.metric);
		row.scored = *row.tier && strchr(o->tiers, row.tier[0]);
		row.identity = "";
		for (int c = COL_ENGINE; c < COL_METRIC; c++)
			row.identity = arena_printf(a, "%s|%s", row.identity, src.at[c]);
		if (o->engine && strcmp(o->engine, row.engine) != 0) {
			row.status = VALIDATE_SKIPPED;
			row.reason = "of another engine";
			row.scored = false;
		} else {
			read_row(&src, platforms, scratch, a, &row);
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
