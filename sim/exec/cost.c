#include "sim/exec/cost.h"

#include <string.h>

#include "base/datadir.h"
#include "base/param.h"

static const char *const class_names[COST_CLASS_N] = {"16bit", "8bit", "kquant", "table"};

const char *cost_class_name(enum cost_class c)
{
	return class_names[c];
}

enum cost_class cost_class_of(const struct quant_type *type)
{
	double bits = quant_bits_per_weight(type);

	if (type->block_elements == 1 && bits >= 16)
		return COST_16BIT;
	if (bits >= 8)
		return COST_8BIT;
	if (strncmp(type->name, "iq", 2) == 0 && strncmp(type->name, "iq4", 3) != 0)
		return COST_TABLE;
	return COST_KQUANT;
}

/* Where each number is: its path in the file and in the struct. Rows with classes stand for one number a class. */
static const struct field {
	const char *group, *key;
	enum unit_dim dim;
	size_t offset;
	bool classes, optional; /* optional: the whole group may be missing */
} fields[] = {
	{"gpu", "read", UNIT_FRACTION, offsetof(struct cost, gpu_read), true, false},
	{"gpu", "multiply", UNIT_FRACTION, offsetof(struct cost, gpu_multiply), true, false},
	{"gpu", "attention", UNIT_FRACTION, offsetof(struct cost, gpu_attention), false, false},
	{"gpu", "kernel", UNIT_TIME, offsetof(struct cost, gpu_kernel_s), false, false},
	{"gpu", "sync", UNIT_TIME, offsetof(struct cost, gpu_sync_s), false, false},
	{"gpu", "copy_submit", UNIT_TIME, offsetof(struct cost, copy_submit_s), false, false},
	{"gpu", "alloc", UNIT_TIME, offsetof(struct cost, gpu_alloc_s), false, false},
	{"host", "step", UNIT_TIME, offsetof(struct cost, step_s), false, false},
	{"cpu", "read", UNIT_FRACTION, offsetof(struct cost, cpu_read), false, true},
	{"cpu", "multiply_few", UNIT_FRACTION, offsetof(struct cost, cpu_multiply_few), true, true},
	{"cpu", "multiply_many", UNIT_FRACTION, offsetof(struct cost, cpu_multiply_many), true, true},
	{"cpu", "attention", UNIT_FRACTION, offsetof(struct cost, cpu_attention), false, true},
	{"eager", "op", UNIT_TIME, offsetof(struct cost, host_op_s), .optional = true},
	{"files", "layer", UNIT_TIME, offsetof(struct cost, layer_s), .optional = true},
	{"zero_copy", "pcie", UNIT_FRACTION, offsetof(struct cost, zero_copy_pcie), .optional = true},
	{"zero_copy", "c2c", UNIT_FRACTION, offsetof(struct cost, zero_copy_c2c), .optional = true},
	{"zero_copy", "rows", UNIT_COUNT, offsetof(struct cost, zero_copy_rows), .optional = true},
	{"reduce", "nvlink", UNIT_TIME, offsetof(struct cost, reduce_nvlink_s), .optional = true},
	{"reduce", "pcie", UNIT_TIME, offsetof(struct cost, reduce_pcie_s), .optional = true},
	{"reduce", "host", UNIT_TIME, offsetof(struct cost, reduce_host_s), .optional = true},
	{"reduce", "rank", UNIT_TIME, offsetof(struct cost, reduce_rank_s), .optional = true},
};

struct written {
	double value, spread;
	const char *source;
};

static struct hw_num *number_at(struct cost *c, const struct field *f, int class)
{
	return (struct hw_num *)((char *)c + f->offset) + class;
}

static int read_number(const struct yaml_node *node, const struct field *f, struct hw_num *num, struct arena *a,
	struct err *err)
{
	const struct param table[] = {
		{"value", PARAM_KIND_REAL, f->dim, offsetof(struct written, value), NULL, true, 0, 1e3, NULL, ""},
		PARAM_REAL(struct written, spread, "spread", UNIT_FRACTION, "0", 0, 2, ""),
		{"source", PARAM_KIND_TEXT, UNIT_PLAIN, offsetof(struct written, source), NULL, true, 0, 0, NULL, ""},
	};
	struct written w;

	if (param_fill(table, ARRAY_LEN(table), node, f->key, &w, a, err))
		return -1;
	*num = (struct hw_num){.measured = w.value, .spread = w.spread, .source = w.source};
	return 0;
}

static int missing(const struct yaml_node *at, const char *group, const char *key, struct err *err)
{
	return err_at(err, ERR_INPUT, &at->pos, "no '%s' under '%s'", key, group);
}

static int read_field(const struct yaml_node *root, const struct field *f, struct cost *c, struct arena *a,
	struct err *err)
{
	const struct yaml_node *group = yaml_get(root, f->group);
	const struct yaml_node *node = group ? yaml_get(group, f->key) : NULL;

	if (!node)
		return f->optional && !group ? 0 : missing(root, f->group, f->key, err);
	if (!f->classes)
		return read_number(node, f, number_at(c, f, 0), a, err);
	for (int k = 0; k < COST_CLASS_N; k++) {
		const struct yaml_node *one = yaml_get(node, class_names[k]);
		if (!one)
			return missing(node, f->key, class_names[k], err);
		if (read_number(one, f, number_at(c, f, k), a, err))
			return -1;
	}
	return 0;
}

int cost_load(const char *name, struct arena *a, struct cost **out, struct err *err)
{
	const char *dir;
	struct yaml_node *root;
	struct cost *c = arena_new(a, struct cost);

	if (datadir_find(a, &dir, err) ||
		yaml_read_file(arena_printf(a, "%s/hw/kernels/%s.yaml", dir, name), a, &root, err))
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (read_field(root, &fields[i], c, a, err))
			return -1;
	*out = c;
	return 0;
}

size_t cost_numbers(struct cost *c, struct arena *a, struct hw_num_ref **out)
{
	size_t n = 0;

	*out = arena_array(a, struct hw_num_ref, ARRAY_LEN(fields) * COST_CLASS_N);
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		const struct field *f = &fields[i];
		if (f->optional && !number_at(c, f, 0)->source)
			continue;
		for (int k = 0; k < (f->classes ? COST_CLASS_N : 1); k++)
			(*out)[n++] = (struct hw_num_ref){
				arena_printf(a, "kernels.%s.%s%s%s", f->group, f->key, f->classes ? "." : "",
					f->classes ? class_names[k] : ""),
				number_at(c, f, k), f->dim};
	}
	return n;
}

struct cost *cost_copy(const struct cost *c, struct arena *a)
{
	struct cost *copy = arena_new(a, struct cost);

	*copy = *c;
	return copy;
}

char *cost_canonical(const struct cost *c, struct arena *a)
{
	struct hw_num_ref *ref;
	size_t n = cost_numbers(cost_copy(c, a), a, &ref);
	char *text = arena_strdup(a, "");

	for (size_t i = 0; i < n; i++)
		text = arena_printf(a, "%s%s %.17g %.17g;", text, ref[i].name, ref[i].num->measured, ref[i].num->spread);
	return text;
}
