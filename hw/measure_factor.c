#include "hw/measure_factor.h"

#include <math.h>
#include <string.h>

#include "base/datadir.h"
#include "base/param.h"

static int read_ratio(const struct yaml_node *node, enum unit_dim dim, const char *what, struct arena *a,
	struct measure_ratio *out, struct err *err)
{
	const struct param rows[] = {
		PARAM_REAL(struct measure_ratio, factor, "factor", UNIT_PLAIN, "0", 0, 1e3, ""),
		PARAM_REAL(struct measure_ratio, spread, "spread", UNIT_FRACTION, "0", 0, 2, ""),
		PARAM_TEXT(struct measure_ratio, source, "source", "", ""),
		PARAM_REAL(struct measure_ratio, published, "published", dim, NULL, 1, 1e18, ""),
	};

	if (!node)
		return 0;
	if (node->kind != YAML_MAP)
		return err_at(err, ERR_INPUT, &node->pos, "%s must be a map", what);
	if (param_fill(rows, ARRAY_LEN(rows), node, what, out, a, err))
		return -1;
	if (isnan(out->published))
		out->published = 0;
	return 0;
}

static int find_type(const struct yaml_node *node, enum kernel_type *out, struct err *err)
{
	for (int t = 0; t < KERNEL_TYPE_N; t++) {
		*out = (enum kernel_type)t;
		if (!strcmp(kernel_format[t].name, node->key))
			return 0;
	}
	return err_at(
		err, ERR_INPUT, &node->key_pos, "'%s' is no type that offsim has a kernel for", node->key);
}

static int read_type(
	const struct yaml_node *node, struct arena *a, struct measure_factors *out, struct err *err)
{
	static const struct param rows[] = {
		{"decode", PARAM_KIND_NODE, UNIT_PLAIN, 0, NULL, false, 0, 0, NULL, ""},
		{"prefill", PARAM_KIND_NODE, UNIT_PLAIN, sizeof(void *), NULL, false, 0, 0, NULL, ""},
	};
	struct yaml_node *both[2];
	enum kernel_type type;

	if (find_type(node, &type, err) || param_fill(rows, ARRAY_LEN(rows), node, node->key, both, a, err))
		return -1;
	return read_ratio(both[0], UNIT_BYTES_RATE, "decode", a, &out->decode[type], err) ||
			       read_ratio(both[1], UNIT_FLOP_RATE, "prefill", a, &out->prefill[type], err)
		       ? -1
		       : 0;
}

struct level_raw {
	double fp32;
	const char *source;
	struct yaml_node *types;
};

static int read_level(
	const struct yaml_node *node, struct arena *a, struct measure_factors *out, struct err *err)
{
	static const struct param rows[] = {
		PARAM_REAL(struct level_raw, fp32, "published_fp32", UNIT_FLOP_RATE, NULL, 1, 1e15, ""),
		PARAM_TEXT(struct level_raw, source, "published_source", "", ""),
		PARAM_NODE(struct level_raw, types, "types", ""),
	};
	struct level_raw raw;

	if (param_fill(rows, ARRAY_LEN(rows), node, node->key, &raw, a, err))
		return -1;
	out->published_fp32 = isnan(raw.fp32) ? 0 : raw.fp32;
	out->published_source = raw.source;
	for (const struct yaml_node *t = raw.types ? raw.types->child : NULL; t; t = t->next)
		if (read_type(t, a, out, err))
			return -1;
	return 0;
}

int measure_factors_load(
	enum kernel_level level, struct arena *a, struct measure_factors *out, struct err *err)
{
	const char *dir;
	struct yaml_node *root;

	*out = (struct measure_factors){.published_source = ""};
	if (datadir_find(a, &dir, err) ||
		yaml_read_file(arena_printf(a, "%s/hw/kernels/plain.yaml", dir), a, &root, err))
		return -1;
	const struct yaml_node *node = yaml_get(root, kernel_level_name(level));
	return node ? read_level(node, a, out, err) : 0;
}
