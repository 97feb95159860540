/*
 * cmd_probe.c - offsim hw probe: this machine as a table, as a profile, as JSON.
 */
#include <jansson.h>
#include <string.h>

#include "base/file.h"
#include "hw/probe.h"
#include "sim/cmd/cmd.h"

/* ---- the table ---- */

static void print_found(const struct probe *p)
{
	char label[32];

	printf("cpu0      %s\n", probe_describe_cpu(p));
	printf("ram       %s\n", probe_describe_ram(p));
	for (size_t i = 0; i < p->gpus.n; i++) {
		snprintf(label, sizeof(label), "gpu%zu", i);
		printf("%-9s %s\n", label, probe_describe_gpu(p, i));
	}
	if (!p->gpus.n)
		printf("gpu       none found; the profile has none\n");
	if (*probe_describe_links(p))
		printf("links     between GPUs: %s\n", probe_describe_links(p));
	for (size_t i = 0; i < p->drives.n; i++) {
		snprintf(label, sizeof(label), "nvme%zu", i);
		printf("%-9s %s\n", label, probe_describe_drive(p, i));
	}
	if (!p->drives.n)
		printf("nvme      none found; the profile has none\n");
}

static void print_notes(const struct probe *p)
{
	for (int kind = PROBE_FAULT; kind <= PROBE_HINT; kind++)
		for (size_t i = 0; i < p->notes.n; i++)
			if ((int)p->notes.at[i].kind == kind)
				fputs(probe_note_lines(p, i, ""), stdout);
}

static void print_table(const struct probe *p, const char *out)
{
	print_found(p);
	if (p->notes.n)
		putchar('\n');
	print_notes(p);
	if (out)
		printf("\nwritten to %s: 'machine: %s' in a scenario, offsim hw show %s\n", out, out, out);
	else
		printf("\nas a profile for scenarios: offsim hw probe -o FILE.yaml\n");
}

/* ---- JSON ---- */

/* Unknown numbers are 0 in the struct and null in JSON. */
static json_t *known(double v)
{
	return v > 0 ? json_real(v) : json_null();
}

static json_t *known_count(uint64_t n)
{
	return n ? json_integer((json_int_t)n) : json_null();
}

static json_t *known_text(const char *text)
{
	return *text ? json_string(text) : json_null();
}

static json_t *known_node(int node)
{
	return node >= 0 ? json_integer(node) : json_null();
}

static json_t *cpu_json(const struct probe_cpu *cpu)
{
	json_t *caches = json_array();

	for (size_t i = 0; i < ARRAY_LEN(cpu->cache); i++)
		if (cpu->cache[i].bytes)
			json_array_append_new(
				caches, json_pack("{s:i, s:I, s:o}", "level", (int)cpu->cache[i].level,
						"bytes", (json_int_t)cpu->cache[i].bytes, "instances",
						known_count(cpu->cache[i].instances)));
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o}", "model",
		known_text(cpu->model), "isa", known_text(cpu->isa), "sockets", known_count(cpu->sockets),
		"cores", known_count(cpu->cores), "threads", known_count(cpu->threads), "all_threads",
		known_count(cpu->all_threads), "quota_cpus", known(cpu->quota), "clock_hz",
		known(cpu->clock_hz), "numa_nodes", known_count(cpu->nodes), "virtual", cpu->hypervisor,
		"caches", caches);
}

static json_t *ram_json(const struct probe_ram *ram)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "total_bytes",
		known_count(ram->total_bytes), "available_bytes", known_count(ram->available_bytes),
		"limit_bytes", known_count(ram->limit_bytes), "type", known_text(ram->type), "rate_t_s",
		known(ram->rate_t_s), "rated_t_s", known(ram->rated_t_s), "modules",
		known_count(ram->modules), "slots", known_count(ram->slots), "channels",
		known_count(ram->channels), "module_bytes", known_count(ram->module_bytes));
}

static json_t *pcie_json(const struct probe_pcie *pcie)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "gen", known_count(pcie->gen), "gen_max",
		known_count(pcie->gen_max), "gen_card", known_count(pcie->gen_card), "width",
		known_count(pcie->width), "width_max", known_count(pcie->width_max));
}

static json_t *gpu_json(const struct probe_gpu *gpu)
{
	return json_pack("{s:s, s:o, s:o, s:I, s:o, s:o, s:b, s:o, s:o}", "name", gpu->name, "bus",
		known_text(gpu->bus), "memory_bytes", known_count(gpu->memory_bytes), "used_bytes",
		(json_int_t)gpu->used_bytes, "compute_capability", known(gpu->compute), "busy",
		gpu->busy >= 0 ? json_real(gpu->busy) : json_null(), "c2c", gpu->c2c, "numa_node",
		known_node(gpu->node), "pcie", pcie_json(&gpu->pcie));
}

static json_t *drive_json(const struct probe_drive *drive)
{
	return json_pack("{s:s, s:o, s:I, s:o, s:o}", "name", drive->name, "model", known_text(drive->model),
		"bytes", (json_int_t)drive->bytes, "numa_node", known_node(drive->node), "pcie",
		pcie_json(&drive->pcie));
}

static json_t *links_json(const struct probe *p)
{
	json_t *rows = json_array();

	for (unsigned row = 0; row < p->n_gpu_links; row++) {
		json_t *cells = json_array();
		for (unsigned i = 0; i < p->n_gpu_links; i++)
			json_array_append_new(cells, json_string(p->gpu_links[row * p->n_gpu_links + i]));
		json_array_append_new(rows, cells);
	}
	return rows;
}

static json_t *probe_json(const struct probe *p, const char *yaml, const char *out)
{
	json_t *gpus = json_array(), *drives = json_array(), *others = json_array(), *notes = json_array();

	for (size_t i = 0; i < p->gpus.n; i++)
		json_array_append_new(gpus, gpu_json(&p->gpus.at[i]));
	for (size_t i = 0; i < p->drives.n; i++)
		json_array_append_new(drives, drive_json(&p->drives.at[i]));
	for (size_t i = 0; i < p->others.n; i++)
		json_array_append_new(others, json_string(p->others.at[i]));
	for (size_t i = 0; i < p->notes.n; i++)
		json_array_append_new(
			notes, json_pack("{s:s, s:s, s:s}", "kind", probe_note_name(p->notes.at[i].kind),
				       "about", p->notes.at[i].about, "text", p->notes.at[i].text));
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o}", "cpu", cpu_json(&p->cpu), "ram",
		ram_json(&p->ram), "gpus", gpus, "gpu_links", links_json(p), "drives", drives, "others",
		others, "notes", notes, "profile", yaml, "file", out ? json_string(out) : json_null());
}

static int print_json(const struct probe *p, const char *yaml, const char *out, struct err *err)
{
	json_t *json = probe_json(p, yaml, out);

	if (!json)
		return err_set(err, ERR_NOMEM, "out of memory");
	json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
	putchar('\n');
	json_decref(json);
	return 0;
}

/* ---- the command ---- */

static void write_text(FILE *to, void *text)
{
	fputs(text, to);
}

int cmd_hw_probe(struct arena *a, const char *out, const char *root, bool json)
{
	bool to_stdout = out && !strcmp(out, "-");
	struct probe p;
	const char *yaml;
	struct err err;

	if (to_stdout && json)
		return cmd_usage_error("hw", "give --json or -o -, not both: each is all of standard output");
	if (probe_read(&p, root, a, &err) || probe_write_profile(&p, &yaml, &err) ||
		(out && !to_stdout && file_replace(out, write_text, arena_strdup(a, yaml), &err)))
		return cmd_fail(&err);
	if (json && print_json(&p, yaml, out, &err))
		return cmd_fail(&err);
	if (to_stdout)
		fputs(yaml, stdout);
	else if (!json)
		print_table(&p, out);
	return EXIT_DONE;
}
