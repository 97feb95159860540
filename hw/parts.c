#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/datadir.h"
#include "base/file.h"
#include "base/suggest.h"
#include "base/units.h"
#include "base/vec.h"
#include "hw/part_name.h"
#include "hw/profile.h"

#define MAX_PARTS_BYTES ((size_t)1 << 20)

struct kind {
	const char *name;
	const char *file;
	const char *titles[HW_PART_CELLS + 1];
};

static const struct kind kinds[HW_PART_N] = {
	[HW_PART_GPU] = {"gpu", "gpus", {"memory", "bandwidth", "fp16", "link", "launch", NULL}},
	[HW_PART_CPU] = {"cpu", "cpus", {"cores", "fp32", "bf16", "int8", "launch", NULL}},
	[HW_PART_LINK] = {"link", "links", {"h2d", "d2h", "both", "latency", NULL}},
	[HW_PART_DRAM] = {"dram", "dram", {"bandwidth", "efficiency", "spread", "reserved", NULL}},
	[HW_PART_NVME] = {"nvme", "nvme", {"read", "write", "latency", NULL}},
};

const char *hw_part_kind_name(enum hw_part_kind kind)
{
	return kinds[kind].name;
}

const char *const *hw_part_titles(enum hw_part_kind kind)
{
	return kinds[kind].titles;
}

int profile_datadir(struct profile *p, struct err *err)
{
	return p->datadir ? 0 : datadir_find(p->a, &p->datadir, err);
}

static int find_path(struct profile *p, enum hw_part_kind kind, const char **path, struct err *err)
{
	if (profile_datadir(p, err))
		return -1;
	*path = arena_printf(p->a, "%s/hw/parts/%s.yaml", p->datadir, kinds[kind].file);
	return 0;
}

int profile_parts(struct profile *p, enum hw_part_kind kind, const struct yaml_node **out, struct err *err)
{
	const char *path;

	if (!p->parts[kind] &&
		(find_path(p, kind, &path, err) || yaml_read_file(path, p->a, &p->parts[kind], err)))
		return -1;
	*out = p->parts[kind];
	return 0;
}

/* The lines of one top-level key: from the one that begins with it to the next that is not indented. Parsing
   a hundred parts to use one takes a hundred times as long. */
static const char *find_block(const char *text, const char *key, size_t *len, int *line)
{
	size_t key_len = strlen(key);
	const char *start = NULL;

	*line = 0;
	for (const char *at = text, *end; *at; at = end) {
		end = strchrnul(at, '\n');
		end += *end != '\0';
		if (start && !strchr(" \t\r\n#", *at)) {
			*len = (size_t)(at - start);
			return start;
		}
		if (start)
			continue;
		++*line;
		if (!strncmp(at, key, key_len) && at[key_len] == ':')
			start = at;
	}
	*len = start ? strlen(start) : 0;
	return start;
}

static void move_down(struct yaml_node *node, int lines)
{
	node->pos.line += lines;
	if (node->key)
		node->key_pos.line += lines;
	for (struct yaml_node *c = node->child; c; c = c->next)
		move_down(c, lines);
}

static int read_text(struct profile *p, enum hw_part_kind kind, const char **path, struct err *err)
{
	size_t len;

	if (find_path(p, kind, path, err))
		return -1;
	return p->text[kind] ? 0 : file_read(*path, MAX_PARTS_BYTES, p->a, &p->text[kind], &len, err);
}

int profile_part_keys(struct profile *p, enum hw_part_kind kind, const struct yaml_node **out, struct err *err)
{
	static const struct err_pos nowhere = {0};
	struct yaml_node **tail;
	const char *path;

	*out = p->called[kind];
	if (*out)
		return 0;
	if (read_text(p, kind, &path, err))
		return -1;
	p->called[kind] = profile_new_map(p->a, NULL, &nowhere);
	tail = &p->called[kind]->child;
	for (const char *at = p->text[kind], *end; *at; at = end) {
		end = strchrnul(at, '\n');
		size_t key = strcspn(at, ":\n"), from = key + 1 + strspn(at + key + (at[key] == ':'), " ");
		size_t len = at[key] == ':' ? strcspn(at + from, " {#\n") : 0;
		if (!strchr(" \t\r\n#", *at) && at[key] == ':') {
			*tail = profile_new_map(p->a, arena_strndup(p->a, at, key), &nowhere);
			if (len) {
				(*tail)->kind = YAML_SCALAR;
				(*tail)->text = arena_strndup(p->a, at + from, len);
			}
			tail = &(*tail)->next;
		}
		end += *end != '\0';
	}
	*out = p->called[kind];
	return 0;
}

/* One part by text alone; NULL when that does not find it, or not as a whole: the parser then has the word. */
static const struct yaml_node *quick_part(struct profile *p, enum hw_part_kind kind, const char *name)
{
	struct yaml_node *known = &p->known[kind], *root;
	const char *path;
	size_t len;
	int line;

	if (p->parts[kind])
		return yaml_get(p->parts[kind], name);
	if (yaml_get(known, name))
		return yaml_get(known, name);
	if (read_text(p, kind, &path, NULL))
		return NULL;
	const char *block = find_block(p->text[kind], name, &len, &line);
	if (!block || yaml_read_text(block, len, path, p->a, &root, NULL) || yaml_count(root) != 1 ||
		!yaml_get(root, name))
		return NULL;
	move_down(root, line - 1);
	root->child->next = known->child;
	known->kind = YAML_MAP;
	known->child = root->child;
	return known->child;
}

/* *out is NULL when there is none. */
static int find_part(struct profile *p, enum hw_part_kind kind, const char *name, const struct yaml_node **out,
	struct err *err)
{
	const struct yaml_node *all;

	*out = quick_part(p, kind, name);
	if (*out)
		return 0;
	if (profile_part_keys(p, kind, &all, err))
		return -1;
	if (!yaml_get(all, name))
		return 0;
	if (profile_parts(p, kind, &all, err))
		return -1;
	*out = yaml_get(all, name);
	return 0;
}

/* The kind of part that name is, when it is one at all. */
static const char *other_kind(struct profile *p, const char *name)
{
	const struct yaml_node *all;

	for (int k = 0; k < HW_PART_N; k++)
		if (!profile_part_keys(p, (enum hw_part_kind)k, &all, NULL) && yaml_get(all, name))
			return kinds[k].name;
	return NULL;
}

/* Another name of a part becomes that part. */
static int follow_alias(struct profile *p, enum hw_part_kind kind, const struct yaml_node **part, struct err *err)
{
	const struct yaml_node *alias = *part;

	if (!alias || alias->kind != YAML_SCALAR)
		return 0;
	if (find_part(p, kind, alias->text, part, err))
		return -1;
	return *part ? 0 : err_at(err, ERR_INPUT, &alias->pos, "'%s' stands for '%.100s', which is no part", alias->key,
		alias->text);
}

int profile_names(struct profile *p, const struct yaml_node **out, struct err *err)
{
	if (!p->names && (profile_datadir(p, err) ||
		yaml_read_file(arena_printf(p->a, "%s/hw/probe.yaml", p->datadir), p->a, &p->names, err)))
		return -1;
	*out = p->names;
	return 0;
}

/* "RTX 4090 (24GB)" as "RTX 4090 " and 24; false: no size is at its end. */
static bool cut_size(struct arena *a, const char *name, const char **rest, unsigned *gib)
{
	size_t n = strlen(name);

	while (n && strchr(" )", name[n - 1]))
		n--;
	if (n < 4 || strncasecmp(name + n - 2, "gb", 2) != 0)
		return false;
	for (n -= 2; n && name[n - 1] == ' ';)
		n--;
	size_t end = n;
	while (n && isdigit((unsigned char)name[n - 1]))
		n--;
	if (n == end || end - n > 4 || !n || !strchr(" -(", name[n - 1]))
		return false;
	*gib = (unsigned)strtoul(name + n, NULL, 10);
	while (n && strchr(" -(", name[n - 1]))
		n--;
	*rest = arena_strndup(a, name, n);
	return true;
}

/* Of a size that is its own, or what of it drivers leave: 15 GiB of a T4's 16. */
static bool has_size(const struct yaml_node *part, unsigned gib)
{
	const struct yaml_node *memory = yaml_get(part, "memory");
	double bytes;

	return memory && memory->text && !units_parse(memory->text, UNIT_BYTES, &bytes, NULL) &&
		bytes > (gib - 1.5) * (double)(1 << 30) && bytes < (gib + 0.5) * (double)(1 << 30);
}

static const char *written_key(struct arena *a, const struct yaml_node *names, const struct yaml_node *all, const char *name)
{
	const char *key = part_name_find(a, names, all, name, 0);

	return key ? key : part_name_short(a, names, all, name);
}

/* As people or systems write it: "9800X3D", "NVIDIA GeForce RTX 4070 Laptop GPU", "4090 24GB". *out is NULL when there is none. */
static int find_written(struct profile *p, enum hw_part_kind kind, const char *name, const struct yaml_node **out,
	struct err *err)
{
	const struct yaml_node *all, *names;

	*out = NULL;
	if (kind == HW_PART_LINK)
		return 0;
	if (profile_part_keys(p, kind, &all, err) || profile_names(p, &names, err))
		return -1;
	const char *key = written_key(p->a, names, all, name), *rest;
	unsigned gib;
	if (key)
		return find_part(p, kind, key, out, err);
	if (kind != HW_PART_GPU || !cut_size(p->a, name, &rest, &gib) || !(key = written_key(p->a, names, all, rest)))
		return 0;
	const struct yaml_node *part;
	if (find_part(p, kind, key, &part, err))
		return -1;
	const struct yaml_node *meant = part;
	if (follow_alias(p, kind, &meant, err))
		return -1;
	*out = has_size(meant, gib) ? part : NULL;
	return 0;
}

static int unknown_part(struct profile *p, enum hw_part_kind kind, const struct yaml_node *name, struct err *err)
{
	const struct yaml_node *all, *names;
	struct suggest near;
	char hint[128];

	if (profile_part_keys(p, kind, &all, err) || profile_names(p, &names, err))
		return -1;
	const char *other = other_kind(p, name->text);
	if (other)
		return err_at(err, ERR_INPUT, &name->pos, "part '%s' is a %s, not a %s", name->text, other,
			kinds[kind].name);
	const char *sizes = part_name_sizes(p->a, names, all, name->text);
	if (*sizes)
		return err_at(err, ERR_INPUT, &name->pos, "%s part '%.100s' is made with more than one size of memory; which of %.200s?",
			kinds[kind].name, name->text, sizes);
	const char *whole = part_name_near(p->a, names, all, name->text);
	suggest_init(&near, name->text);
	for (const struct yaml_node *part = all->child; part; part = part->next)
		suggest_offer(&near, part->key);
	if (whole)
		snprintf(hint, sizeof(hint), "; did you mean '%.80s'?", whole);
	else if (suggest_best(&near))
		suggest_text(&near, hint, sizeof(hint));
	else
		snprintf(hint, sizeof(hint), "; see offsim hw list --parts %s", kinds[kind].name);
	return err_at(err, ERR_INPUT, &name->pos, "unknown %s part '%.100s'%s", kinds[kind].name,
		name->text, hint);
}

int profile_part(struct profile *p, enum hw_part_kind kind, const struct yaml_node *name, const char **key,
	const struct yaml_node **out, struct err *err)
{
	if (find_part(p, kind, name->text, out, err) || (!*out && find_written(p, kind, name->text, out, err)))
		return -1;
	if (!*out)
		return unknown_part(p, kind, name, err);
	*key = (*out)->key;
	return follow_alias(p, kind, out, err) || profile_family_expand(p, kind, out, err) ? -1 : 0;
}

int profile_modules(struct profile *p, const char *cpu, const struct yaml_node **out, struct err *err)
{
	const struct yaml_node *part;

	*out = NULL;
	if (find_part(p, HW_PART_CPU, cpu, &part, err) || follow_alias(p, HW_PART_CPU, &part, err))
		return -1;
	return part ? profile_family_modules(p, part, out, err) : 0;
}

static const char *cell(struct arena *a, double value, enum unit_dim dim)
{
	char buf[40];

	if (!(value > 0))
		return "-";
	return arena_strdup(a, units_format(buf, sizeof(buf), value, dim));
}

static const char *num_cell(struct arena *a, const struct hw_num *num, enum unit_dim dim)
{
	return cell(a, hw_num_value(num), dim);
}

static void fill_cells(struct arena *a, enum hw_part_kind kind, const struct profile_part_values *v,
	const char **cells)
{
	const struct hw_device *d = &v->device;
	const struct hw_link *l = &v->link;
	const struct hw_memory *mem = &v->memory;

	switch (kind) {
	case HW_PART_GPU:
		cells[0] = cell(a, (double)mem->capacity_bytes, UNIT_BYTES);
		cells[1] = num_cell(a, &mem->bandwidth_bytes_s, UNIT_BYTES_RATE);
		cells[2] = num_cell(a, &d->flops_s[HW_FP16], UNIT_FLOP_RATE);
		cells[3] = v->native_link;
		cells[4] = num_cell(a, &d->launch_s, UNIT_TIME);
		break;
	case HW_PART_CPU:
		cells[0] = cell(a, d->cores, UNIT_COUNT);
		cells[1] = num_cell(a, &d->flops_s[HW_FP32], UNIT_FLOP_RATE);
		cells[2] = num_cell(a, &d->flops_s[HW_BF16], UNIT_FLOP_RATE);
		cells[3] = num_cell(a, &d->flops_s[HW_INT8], UNIT_FLOP_RATE);
		cells[4] = num_cell(a, &d->launch_s, UNIT_TIME);
		break;
	case HW_PART_LINK:
		cells[0] = num_cell(a, &l->h2d.num, UNIT_BYTES_RATE);
		cells[1] = num_cell(a, &l->d2h.num, UNIT_BYTES_RATE);
		cells[2] = num_cell(a, &l->both_bytes_s, UNIT_BYTES_RATE);
		cells[3] = num_cell(a, &l->latency_s, UNIT_TIME);
		break;
	case HW_PART_DRAM:
		cells[0] = num_cell(a, &mem->bandwidth_bytes_s, UNIT_BYTES_RATE);
		cells[1] = cell(a, mem->bandwidth_bytes_s.efficiency, UNIT_FRACTION);
		cells[2] = cell(a, mem->bandwidth_bytes_s.spread, UNIT_FRACTION);
		cells[3] = cell(a, (double)mem->reserved_bytes, UNIT_BYTES);
		break;
	case HW_PART_NVME:
		cells[0] = num_cell(a, &l->d2h.num, UNIT_BYTES_RATE);
		cells[1] = num_cell(a, &l->h2d.num, UNIT_BYTES_RATE);
		cells[2] = num_cell(a, &l->latency_s, UNIT_TIME);
		break;
	case HW_PART_N:
		break;
	}
}

/* The one PCIe part stands for as many as it has generations; they are listed under their short names. */
static const struct yaml_node *pcie_rows(struct arena *a, const struct yaml_node *pcie)
{
	const struct yaml_node *generations = yaml_get(pcie, "generations");
	struct yaml_node *rows = profile_new_map(a, NULL, &pcie->pos), **tail = &rows->child;

	for (const struct yaml_node *g = generations ? generations->child : NULL; g; g = g->next) {
		*tail = profile_new_map(a, arena_printf(a, "pcie-%sx16", g->key), &g->pos);
		(*tail)->child = profile_new_scalar(a, "description",
			arena_printf(a, "PCI Express generation %s, 16 lanes; also x8, x4, x2, x1", g->key),
			&g->pos);
		tail = &(*tail)->next;
	}
	return rows;
}

struct part_list {
	VEC(struct hw_part);
};

static int add_parts(struct profile *p, enum hw_part_kind kind, const struct yaml_node *all,
	struct part_list *list, struct err *err)
{
	for (const struct yaml_node *part = all->child; part; part = part->next) {
		struct profile_part_values v;
		struct hw_part row = {.name = part->key};
		if (kind == HW_PART_LINK && !strcmp(part->key, "pcie")) {
			if (add_parts(p, kind, pcie_rows(p->a, part), list, err))
				return -1;
			continue;
		}
		const struct yaml_node *meant = part;
		if (follow_alias(p, kind, &meant, err) || profile_family_expand(p, kind, &meant, err))
			return -1;
		if (profile_part_values(p, kind, meant, &v, err))
			return -1;
		row.description = v.description ? v.description : "";
		if (part->kind == YAML_SCALAR)
			row.description = arena_printf(p->a, "= %s, %s", part->text, row.description);
		fill_cells(p->a, kind, &v, row.cells);
		VEC_PUSH(list, p->a, row);
	}
	return 0;
}

int hw_parts(enum hw_part_kind kind, struct arena *a, struct hw_part **out, size_t *n, struct err *err)
{
	struct profile p = {.a = a};
	struct part_list list = {0};
	const struct yaml_node *all;

	if (profile_parts(&p, kind, &all, err) || add_parts(&p, kind, all, &list, err))
		return -1;
	*out = list.at;
	*n = list.n;
	return 0;
}
