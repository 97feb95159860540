#include "hw/probe_part.h"

#include <string.h>

#include "base/units.h"
#include "hw/part_name.h"

int probe_library_open(struct probe_library *lib, struct arena *a, struct err *err)
{
	*lib = (struct probe_library){.a = a, .profile = {.a = a}};
	return profile_names(&lib->profile, &lib->root, err);
}

/* A section of hw/probe.yaml, filled by its rows. */
static int fill(struct probe_library *lib, const struct param *rows, size_t n, const struct yaml_node *map,
	const char *what, void *out, struct err *err)
{
	if (!map)
		return err_at(err, ERR_INPUT, &lib->root->pos, "there is no '%s'", what);
	return param_fill(rows, n, map, what, out, lib->a, err);
}

/* ---- names ---- */

int probe_find_part(struct probe_library *lib, enum hw_part_kind kind, const char *name, uint64_t bytes,
	const char **part, struct err *err)
{
	const struct yaml_node *all;

	*part = NULL;
	if (profile_part_keys(&lib->profile, kind, &all, err))
		return -1;
	*part = part_name_find(lib->a, lib->root, all, name, bytes);
	return 0;
}

int probe_part_numbers(struct probe_library *lib, enum hw_part_kind kind, const char *part,
	struct profile_part_values *out, struct err *err)
{
	const struct yaml_node *node, *name = profile_new_scalar(lib->a, NULL, part, &lib->root->pos);
	const char *key;

	return profile_part(&lib->profile, kind, name, &key, &node, err) ||
	       profile_part_values(&lib->profile, kind, node, out, err);
}

/* The same numbers of cores, whichever the kernel lists first. */
static bool same_cores(struct arena *a, const char *key, const char *ids)
{
	char *save = NULL;

	if (strlen(key) != strlen(ids))
		return false;
	for (char *id = strtok_r(arena_strdup(a, key), " ", &save); id; id = strtok_r(NULL, " ", &save))
		if (!strstr(ids, id))
			return false;
	return true;
}

struct arm_raw {
	const char *name;
	struct yaml_node *parts;
};
static const struct param arm_rows[] = {
	PARAM_TEXT(struct arm_raw, name, "name", "", "as people call it"),
	PARAM_NODE(struct arm_raw, parts, "parts", "by cores of one socket"),
};

static int find_arm(struct probe_library *lib, const char *ids, unsigned cores, const char **name,
	const char **part, struct err *err)
{
	const struct yaml_node *arm = yaml_get(lib->root, "arm");
	const struct yaml_node *entry = arm ? arm->child : NULL;
	struct arm_raw raw;

	while (entry && !same_cores(lib->a, entry->key, ids))
		entry = entry->next;
	if (!entry)
		return 0;
	if (fill(lib, arm_rows, ARRAY_LEN(arm_rows), entry, "arm", &raw, err))
		return -1;
	*name = raw.name;
	const struct yaml_node *known = yaml_get(raw.parts, arena_printf(lib->a, "%u", cores));
	return known ? yaml_text(known, part, err) : 0;
}

int probe_find_cpu(struct probe_library *lib, const char *model, unsigned cores, const char **name,
	const char **part, struct err *err)
{
	*name = model;
	*part = NULL;
	if (!strncmp(model, "arm ", 4))
		return find_arm(lib, model + 4, cores, name, part, err);
	return probe_find_part(lib, HW_PART_CPU, model, 0, part, err);
}

int probe_find_dram(
	struct probe_library *lib, const char *cpu, uint64_t bytes, const char **part, struct err *err)
{
	const struct yaml_node *map = cpu ? yaml_get(yaml_get(lib->root, "dram"), cpu) : NULL;
	double least;

	*part = NULL;
	for (const struct yaml_node *row = map ? map->child : NULL; row && !*part; row = row->next) {
		if (units_parse(row->text ? row->text : "", UNIT_BYTES, &least, err))
			return -1;
		if ((double)bytes >= least)
			*part = row->key;
	}
	return 0;
}

/* ---- guesses ---- */

int probe_guess_ram(struct probe_library *lib, struct probe_ram_guess *out, struct err *err)
{
	static const struct param rows[] = {
		PARAM_REAL(struct probe_ram_guess, capacity_bytes, "capacity", UNIT_BYTES, "16GiB", 1, 1e15,
			"of all"),
		PARAM_REAL(struct probe_ram_guess, per_core_bytes_s, "per_core", UNIT_BYTES_RATE, "20GB/s", 1,
			1e15, "that one core reads"),
		PARAM_NODE(struct probe_ram_guess, most, "most", "by cores: no more than this"),
		PARAM_REAL(
			struct probe_ram_guess, spread, "spread", UNIT_FRACTION, "60%", 0, 2, "of the guess"),
	};

	return fill(lib, rows, ARRAY_LEN(rows), yaml_get(lib->root, "unknown_ram"), "unknown_ram", out, err);
}

int probe_guess_bandwidth(
	const struct probe_ram_guess *guess, unsigned cores, double *bytes_s, struct err *err)
{
	double most;

	*bytes_s = guess->per_core_bytes_s * (cores ? cores : 1);
	for (const struct yaml_node *row = guess->most ? guess->most->child : NULL; row; row = row->next) {
		if (units_parse(row->text ? row->text : "", UNIT_BYTES_RATE, &most, err))
			return -1;
		if (cores > (unsigned)strtoul(row->key, NULL, 10))
			continue;
		if (*bytes_s > most)
			*bytes_s = most;
		return 0;
	}
	return 0;
}

int probe_guess_modules(
	struct probe_library *lib, const char *cpu, struct probe_modules_guess *out, struct err *err)
{
	static const struct param rows[] = {
		PARAM_TEXT(struct probe_modules_guess, type, "type", "ddr4", "a part"),
		PARAM_COUNT(struct probe_modules_guess, channels, "channels", "2", 1, 128, "of one socket"),
		PARAM_REAL(struct probe_modules_guess, rate_t_s, "rate", UNIT_TRANSFER_RATE, "3200MT/s", 1e6,
			1e12, "of one channel"),
		PARAM_COUNT(struct probe_modules_guess, pcie_gen, "pcie", "0", 0, 6, "generation of its lanes"),
	};
	const struct yaml_node *map = cpu ? yaml_get(yaml_get(lib->root, "memory"), cpu) : NULL;

	*out = (struct probe_modules_guess){0};
	if (cpu && !map && profile_modules(&lib->profile, cpu, &map, err))
		return -1;
	return map ? fill(lib, rows, ARRAY_LEN(rows), map, "memory", out, err) : 0;
}

struct unknown_cpu {
	struct probe_cpu_guess guess;
	struct yaml_node *isa;
};

int probe_guess_cpu(struct probe_library *lib, const char *isa, struct probe_cpu_guess *out, struct err *err)
{
	static const struct param rows[] = {
		PARAM_REAL(struct unknown_cpu, guess.clock_hz, "clock", UNIT_FREQUENCY, "3GHz", 1e8, 1e10,
			"base"),
		PARAM_REAL(struct unknown_cpu, guess.launch_s, "launch", UNIT_TIME, "3us", 1e-9, 1,
			"of one operation"),
		PARAM_REAL(struct unknown_cpu, guess.spread, "spread", UNIT_FRACTION, "50%", 0, 2,
			"of the guess"),
		PARAM_REAL(struct unknown_cpu, guess.efficiency, "efficiency", UNIT_FRACTION, "65%", 0.01, 1,
			"what kernels reach"),
		PARAM_NODE(struct unknown_cpu, isa, "isa", "operations a cycle"),
	};
	static const struct param isa_rows[] = {
		PARAM_REAL(struct probe_cpu_guess, fp32, "fp32", UNIT_PLAIN, "8", 1, 65536,
			"operations a cycle and core"),
		PARAM_REAL(struct probe_cpu_guess, bf16, "bf16", UNIT_PLAIN, "8", 1, 65536, "likewise"),
		PARAM_REAL(struct probe_cpu_guess, int8, "int8", UNIT_PLAIN, "8", 1, 65536, "likewise"),
		PARAM_REAL(struct probe_cpu_guess, efficiency, "efficiency", UNIT_FRACTION, NULL, 0.01, 1,
			"what kernels reach"),
	};
	struct unknown_cpu all;

	if (fill(lib, rows, ARRAY_LEN(rows), yaml_get(lib->root, "unknown_cpu"), "unknown_cpu", &all, err))
		return -1;
	const struct yaml_node *map = yaml_get(all.isa, *isa ? isa : "other");
	if (fill(lib, isa_rows, ARRAY_LEN(isa_rows), map ? map : yaml_get(all.isa, "other"),
		    "unknown_cpu.isa", out, err))
		return -1;
	if (!(out->efficiency > 0))
		out->efficiency = all.guess.efficiency;
	out->clock_hz = all.guess.clock_hz;
	out->launch_s = all.guess.launch_s;
	out->spread = all.guess.spread;
	return 0;
}

int probe_guess_gpu(struct probe_library *lib, struct probe_gpu_guess *out, struct err *err)
{
	static const struct param rows[] = {
		PARAM_TEXT(struct probe_gpu_guess, link, "link", "pcie-4x16", "to host memory"),
		PARAM_REAL(struct probe_gpu_guess, bandwidth_per_byte, "bandwidth_per_byte", UNIT_FREQUENCY,
			"36Hz", 1, 1e3, "of its memory"),
		PARAM_REAL(struct probe_gpu_guess, fp16_per_byte, "fp16_per_byte", UNIT_PLAIN, "150", 1, 1e4,
			"operations a byte of bandwidth"),
		PARAM_REAL(struct probe_gpu_guess, fp32_per_byte, "fp32_per_byte", UNIT_PLAIN, "40", 1, 1e4,
			"likewise"),
		PARAM_REAL(struct probe_gpu_guess, launch_s, "launch", UNIT_TIME, "2.5us", 1e-9, 1,
			"of one kernel"),
		PARAM_REAL(struct probe_gpu_guess, reserved, "reserved", UNIT_FRACTION, "6%", 0, 0.5,
			"of its memory"),
		PARAM_REAL(
			struct probe_gpu_guess, spread, "spread", UNIT_FRACTION, "50%", 0, 2, "of the guess"),
	};

	return fill(lib, rows, ARRAY_LEN(rows), yaml_get(lib->root, "unknown_gpu"), "unknown_gpu", out, err);
}

/* ---- links ---- */

/* By the name of a part, or "pcie-4x16". */
static int load_link(struct probe_library *lib, const char *name, struct hw_link *link, struct err *err)
{
	return profile_load_link(
		&lib->profile, profile_new_scalar(lib->a, "link", name, &lib->root->pos), "link", link, err);
}

int probe_find_nvlink(struct probe_library *lib, const char *word, double compute, const char **part,
	enum hw_link_between *between, struct err *err)
{
	const struct yaml_node *found =
		yaml_get(yaml_get(lib->root, "nvlink"), arena_printf(lib->a, "%s %.1f", word, compute));
	struct hw_link link;

	*part = NULL;
	if (!found)
		return 0;
	if (yaml_text(found, part, err) || load_link(lib, *part, &link, err))
		return -1;
	*between = link.between;
	return 0;
}

int probe_link_rate(
	struct probe_library *lib, unsigned gen, unsigned width, struct hw_num *out, struct err *err)
{
	struct hw_link link;

	if (load_link(lib, arena_printf(lib->a, "pcie-%ux%u", gen, width), &link, err))
		return -1;
	*out = link.h2d.num;
	return 0;
}
