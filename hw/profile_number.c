#include <math.h>
#include <string.h>

#include "hw/profile_keys.h"

#define MAX_ROWS 16

static void limits(enum unit_dim dim, double *min, double *max)
{
	*min = dim == UNIT_TIME ? 0 : 1;
	*max = dim == UNIT_TIME ? 3600 : dim == UNIT_FLOP_RATE ? 1e21 : PROFILE_MAX_BYTES;
}

static const char *place(struct arena *a, const struct err_pos *pos)
{
	return pos->file ? arena_printf(a, "%s:%d", pos->file, pos->line) : "stated";
}

static int bad_point(const struct yaml_node *node, struct err *err)
{
	return err_at(err, ERR_INPUT, &node->pos,
		"'points' must be pairs of size and rate, sizes ascending: [[1MiB, 14GB/s], [4MiB, 17GB/s]]");
}

static int read_point(const struct yaml_node *pair, double *size, double *rate, struct arena *a,
	struct err *err)
{
	static const struct param rows[] = {
		{"size", PARAM_KIND_REAL, UNIT_BYTES, 0, NULL, false, 1, PROFILE_MAX_BYTES, NULL, ""},
		{"rate", PARAM_KIND_REAL, UNIT_BYTES_RATE, 0, NULL, false, 1, PROFILE_MAX_BYTES, NULL, ""},
	};
	const struct yaml_node *first = pair->child;

	if (pair->kind != YAML_LIST || yaml_count(pair) != 2 || first->kind != YAML_SCALAR ||
		first->next->kind != YAML_SCALAR)
		return bad_point(pair, err);
	if (param_set(&rows[0], size, first->text, &first->pos, a, err))
		return -1;
	return param_set(&rows[1], rate, first->next->text, &first->next->pos, a, err);
}

static int read_points(const struct yaml_node *list, struct arena *a, struct hw_rate *rate, struct err *err)
{
	size_t n = yaml_count(list), i = 0;
	double *sizes = arena_array(a, double, n), *rates = arena_array(a, double, n);

	if (list->kind != YAML_LIST || !n)
		return bad_point(list, err);
	for (const struct yaml_node *pair = list->child; pair; pair = pair->next, i++) {
		if (read_point(pair, &sizes[i], &rates[i], a, err))
			return -1;
		if (i && sizes[i] <= sizes[i - 1])
			return bad_point(pair, err);
	}
	rate->n_points = n;
	rate->size_bytes = sizes;
	rate->rate_bytes_s = rates;
	return 0;
}

/* A single value: stated by whoever wrote it, nothing of the part's own number is left. */
static int state_number(struct profile *p, const struct yaml_node *node, const struct param *row,
	struct hw_rate *rate, struct err *err)
{
	struct num_raw raw;

	if (param_set(row, &raw, node->text, &node->pos, p->a, err))
		return -1;
	*rate = (struct hw_rate){
		.num = {.measured = raw.measured, .origin = HW_STATED, .source = place(p->a, &node->pos)}};
	return 0;
}

/* The latest word on what to expect counts: measured, assumed or a share of the peak. */
static void merge_expected(const struct num_raw *raw, struct hw_num *num)
{
	if (!isnan(raw->efficiency))
		num->measured = 0;
	if (!isnan(raw->assumed)) {
		num->measured = raw->assumed;
		num->origin = HW_ASSUMED;
	}
	if (!isnan(raw->measured)) {
		num->measured = raw->measured;
		num->origin = HW_MEASURED;
	}
}

static void merge_number(struct profile *p, const struct num_raw *raw, const struct yaml_node *map,
	struct hw_num *num)
{
	bool moved =
		!isnan(raw->peak) || !isnan(raw->measured) || !isnan(raw->assumed) || !isnan(raw->efficiency);
	const char *here = place(p->a, &map->pos);

	merge_expected(raw, num);
	if (!isnan(raw->peak))
		num->peak = raw->peak;
	if (!isnan(raw->efficiency))
		num->efficiency = raw->efficiency;
	if (!isnan(raw->spread))
		num->spread = raw->spread;
	if (raw->source)
		num->source = raw->source;
	else if (moved)
		num->source = num->source ? arena_printf(p->a, "%s; before: %s", here, num->source) : here;
}

int profile_rate(struct profile *p, const struct yaml_node *node, enum unit_dim dim, const char *what,
	struct hw_rate *rate, struct err *err)
{
	struct param rows[MAX_ROWS];
	struct num_raw raw;
	const char *prefix;
	size_t n;

	if (!node)
		return 0;
	const struct param *table = hw_params(HW_PARAMS_NUMBER, &n, &prefix);
	if (n > MAX_ROWS)
		BUG("a number has %zu keys", n);
	memcpy(rows, table, n * sizeof(*rows));
	for (int i = 0; i < 3; i++) {
		rows[i].dim = dim;
		limits(dim, &rows[i].min, &rows[i].max);
	}
	if (node->kind == YAML_SCALAR) {
		rows[1].key = what;
		return state_number(p, node, &rows[1], rate, err);
	}
	if (param_fill(rows, n, node, what, &raw, p->a, err))
		return -1;
	if (raw.points && read_points(raw.points, p->a, rate, err))
		return -1;
	merge_number(p, &raw, node, &rate->num);
	return 0;
}

int profile_num(struct profile *p, const struct yaml_node *node, enum unit_dim dim, const char *what,
	struct hw_num *num, struct err *err)
{
	struct hw_rate rate = {.num = *num};

	if (profile_rate(p, node, dim, what, &rate, err))
		return -1;
	if (rate.n_points)
		return err_at(
			err, ERR_INPUT, &node->pos, "%s does not depend on a size; it has no 'points'", what);
	*num = rate.num;
	return 0;
}

void profile_scale(struct hw_num *num, double by)
{
	num->peak *= by;
	num->measured *= by;
}

int profile_must_be_map(const struct yaml_node *node, const char *what, struct err *err)
{
	if (node->kind == YAML_MAP)
		return 0;
	return err_at(err, ERR_INPUT, &node->pos, "%s must be a map", what);
}

static const struct yaml_node *with_name(struct arena *a, const struct yaml_node *map, const char *part,
	const struct err_pos *pos)
{
	struct yaml_node *over = profile_new_map(a, NULL, pos);

	over->child = profile_new_scalar(a, "part", part, pos);
	return yaml_overlay(a, map, over);
}

int profile_layers_find(struct profile *p, enum hw_part_kind kind, const struct yaml_node *own,
	const char *default_part, struct profile_layers *l, struct err *err)
{
	const struct yaml_node *name = yaml_get(own, "part");

	if (profile_must_be_map(own, l->name, err))
		return -1;
	if (name && name->kind != YAML_SCALAR)
		return err_at(err, ERR_INPUT, &name->pos, "%s.part must be the name of a part", l->name);
	if (!name && default_part)
		name = profile_new_scalar(p->a, "part", default_part, &own->pos);
	l->own = own;
	l->part = profile_new_map(p->a, NULL, &own->pos);
	const char *key = NULL;
	if (name && profile_part(p, kind, name, &key, &l->part, err))
		return -1;
	if (profile_must_be_map(l->part, name ? name->text : l->name, err))
		return -1;
	l->merged = yaml_overlay(p->a, l->part, own);
	/* As the library writes it: kernels are chosen by names of parts. */
	if (key && strcmp(key, name->text) != 0)
		l->merged = with_name(p->a, l->merged, key, &name->pos);
	return 0;
}

int profile_layered_rate(struct profile *p, const struct profile_layers *l, const char *key,
	struct hw_rate *rate, struct err *err)
{
	const char *what = arena_printf(p->a, "%s.%s", l->name, key);

	if (profile_rate(p, yaml_get(l->part, key), UNIT_BYTES_RATE, what, rate, err))
		return -1;
	return profile_rate(p, yaml_get(l->own, key), UNIT_BYTES_RATE, what, rate, err);
}

int profile_layered_num(struct profile *p, const struct profile_layers *l, const char *key, enum unit_dim dim,
	struct hw_num *num, struct err *err)
{
	const char *what = arena_printf(p->a, "%s.%s", l->name, key);

	if (profile_num(p, yaml_get(l->part, key), dim, what, num, err))
		return -1;
	return profile_num(p, yaml_get(l->own, key), dim, what, num, err);
}

int profile_flops(struct profile *p, const struct profile_layers *l, double scale, struct hw_num *flops,
	struct err *err)
{
	const struct yaml_node *part = yaml_get(l->part, "flops"), *own = yaml_get(l->own, "flops");
	const char *name = arena_printf(p->a, "%s.flops", l->name);
	struct profile_layers sub = {
		name, part ? part : profile_new_map(p->a, NULL, &l->own->pos), own, NULL};
	struct flops_raw raw;

	if (!own)
		sub.own = profile_new_map(p->a, NULL, &l->own->pos);
	if (profile_must_be_map(sub.part, name, err) || profile_must_be_map(sub.own, name, err) ||
		profile_fill(p, HW_PARAMS_FLOPS, sub.part, name, &raw, err) ||
		profile_fill(p, HW_PARAMS_FLOPS, sub.own, name, &raw, err))
		return -1;
	for (int t = 0; t < HW_DTYPE_N; t++) {
		const char *key = hw_dtype_name((enum hw_dtype)t);
		const char *what = arena_printf(p->a, "%s.%s", name, key);
		if (profile_num(p, yaml_get(sub.part, key), UNIT_FLOP_RATE, what, &flops[t], err))
			return -1;
		profile_scale(&flops[t], scale);
		if (profile_num(p, yaml_get(sub.own, key), UNIT_FLOP_RATE, what, &flops[t], err))
			return -1;
	}
	return 0;
}

int profile_missing(const struct profile_layers *l, const char *key, const char *example, struct err *err)
{
	return err_at(err, ERR_INPUT, &l->own->pos, "%s has no '%s'; state it, such as %s: %s", l->name, key,
		key, example);
}

int profile_need_num(const struct profile_layers *l, const struct hw_num *num, const char *key,
	const char *example, struct err *err)
{
	return hw_num_value(num) > 0 ? 0 : profile_missing(l, key, example, err);
}
