#include "models/routing.h"

#include <math.h>

#include "base/datadir.h"
#include "base/param.h"

#define FILE_NAME "models/routing.yaml"

struct written {
	double value, spread;
	const char *source;
};

struct file_keys {
	struct yaml_node *correlation, *strays;
};

static const struct param file_params[] = {
	PARAM_NODE(struct file_keys, correlation, "correlation", ""),
	PARAM_NODE(struct file_keys, strays, "strays", ""),
};

static const struct param written_params[] = {
	{"value", PARAM_KIND_REAL, UNIT_FRACTION, offsetof(struct written, value), NULL, true, 0, ROUTING_CORRELATION_MAX, NULL, ""},
	PARAM_REAL(struct written, spread, "spread", UNIT_FRACTION, "0", 0, 2, ""),
	{"source", PARAM_KIND_TEXT, UNIT_PLAIN, offsetof(struct written, source), NULL, true, 0, 0, NULL, ""},
};

static int read_point(const struct yaml_node *node, struct arena *a, struct routing_point *out, struct err *err)
{
	struct written w;
	double n;

	if (units_parse(node->key, UNIT_COUNT, &n, err) || !(n >= 1 && n <= UINT32_MAX))
		return err_at(err, ERR_INPUT, &node->key_pos, "'%s' is no number of experts", node->key);
	if (param_fill(written_params, ARRAY_LEN(written_params), node, node->key, &w, a, err))
		return -1;
	*out = (struct routing_point){(uint64_t)n, w.value};
	return 0;
}

int routing_read_file(const char *path, struct arena *a, struct routing *out, struct err *err)
{
	struct yaml_node *root;
	struct file_keys keys;
	struct written strays;
	size_t n = 0;

	if (yaml_read_file(path, a, &root, err) ||
		param_fill(file_params, ARRAY_LEN(file_params), root, "routing", &keys, a, err))
		return -1;
	if (!keys.correlation || keys.correlation->kind != YAML_MAP || !keys.correlation->child)
		return err_at(err, ERR_INPUT, keys.correlation ? &keys.correlation->pos : &root->pos,
			"'correlation' is a map of numbers of experts: {128: {value: 50%%, source: …}}");
	struct routing_point *point = arena_array(a, struct routing_point, yaml_count(keys.correlation));
	for (const struct yaml_node *node = keys.correlation->child; node; node = node->next, n++) {
		if (read_point(node, a, &point[n], err))
			return -1;
		if (n > 0 && point[n].n_expert <= point[n - 1].n_expert)
			return err_at(err, ERR_INPUT, &node->key_pos, "%s experts come behind more", node->key);
	}
	if (!keys.strays)
		return err_at(err, ERR_INPUT, &root->pos, "'strays' is missing");
	if (param_fill(written_params, ARRAY_LEN(written_params), keys.strays, keys.strays->key, &strays, a, err))
		return -1;
	*out = (struct routing){n, point, strays.value};
	return 0;
}

int routing_read(struct arena *a, struct routing *out, struct err *err)
{
	const char *dir;

	return datadir_find(a, &dir, err) ? -1 : routing_read_file(arena_printf(a, "%s/" FILE_NAME, dir), a, out, err);
}

double routing_correlation(const struct routing *r, uint64_t n_expert)
{
	const struct routing_point *p = r->point;
	size_t i = 0;

	while (i + 1 < r->n && p[i + 1].n_expert <= n_expert)
		i++;
	if (i + 1 == r->n || n_expert <= p[i].n_expert)
		return p[i].correlation;
	double share = log((double)n_expert / (double)p[i].n_expert) / log((double)p[i + 1].n_expert / (double)p[i].n_expert);
	return p[i].correlation + share * (p[i + 1].correlation - p[i].correlation);
}
