/*
 * profile_family.c - parts written in one line. Such a row says what makes a part differ (cores and clocks, or bus and FP32
 * rate) and names its family, which says the rest in parts/KIND-families.yaml; here the two become a part written out:
 *
 *	x: {family: f, cores: 8, base: 4GHz, boost: 5GHz, source: "S"}     cpus.yaml
 *	f: {flops: {int8: {times: 64, efficiency: 60%, source: "T"}}}      cpu-families.yaml
 *	   ->  int8: {peak: 2048GOP/s, efficiency: 60%, source: "8 cores x 4 GHz x 64; S; T"}
 */
#include <math.h>
#include <string.h>

#include "base/datadir.h"
#include "hw/profile.h"

/* A family of a family of …: longer is a mistake. */
#define MAX_FAMILIES 8
#define MAX_VALUE 1e18

/* Of a row with its families laid below it: what is computed with, and stands in no part written out. */
static const char *const own_keys[] = {"family", "source", "base", "boost", "slow", "fp32", "bus", "rate", "modules",
	"launch_by_cores"};

struct row {
	struct arena *a;
	const struct yaml_node *map, *pos; /* all of it; where the part stands */
	const char *source;
	double cores, fast, slow, base_hz, boost_hz, fp32, bus_bits, rate_t_s;
};

static int read_families(struct profile *p, enum hw_part_kind kind, struct err *err)
{
	if (p->families[kind])
		return 0;
	return profile_datadir(p, err) ||
	       yaml_read_file(arena_printf(p->a, "%s/hw/parts/%s-families.yaml", p->datadir, hw_part_kind_name(kind)), p->a,
		       &p->families[kind], err) ? -1 : 0;
}

/* The part with its family below it, and that one's. */
static int lay_over(struct profile *p, enum hw_part_kind kind, const struct yaml_node *part,
	const struct yaml_node **out, struct err *err)
{
	const struct yaml_node *name = yaml_get(part, "family");

	*out = part;
	for (int depth = 0; name; depth++) {
		if (read_families(p, kind, err))
			return -1;
		const struct yaml_node *family = name->kind == YAML_SCALAR ? yaml_get(p->families[kind], name->text) : NULL;
		if (!family || depth == MAX_FAMILIES)
			return err_at(err, ERR_INPUT, &name->pos, "'%.100s' is no family of parts",
				name->text ? name->text : "");
		*out = yaml_overlay(p->a, family, *out);
		name = yaml_get(family, "family");
	}
	return 0;
}

static int get_real(const struct row *r, const char *key, enum unit_dim dim, double *to, struct err *err)
{
	const struct yaml_node *node = yaml_get(r->map, key);
	const struct param row = {key, PARAM_KIND_REAL, dim, 0, NULL, false, 0, MAX_VALUE, NULL, ""};

	*to = NAN;
	return node ? param_set(&row, to, node->text ? node->text : "", &node->pos, r->a, err) : 0;
}

static int read_row(struct row *r, struct err *err)
{
	const struct yaml_node *source = yaml_get(r->map, "source");

	r->source = "no source";
	return get_real(r, "cores", UNIT_PLAIN, &r->cores, err) || get_real(r, "fast_cores", UNIT_PLAIN, &r->fast, err) ||
	       get_real(r, "slow", UNIT_FRACTION, &r->slow, err) || get_real(r, "base", UNIT_FREQUENCY, &r->base_hz, err) ||
	       get_real(r, "boost", UNIT_FREQUENCY, &r->boost_hz, err) ||
	       get_real(r, "fp32", UNIT_FLOP_RATE, &r->fp32, err) || get_real(r, "bus", UNIT_PLAIN, &r->bus_bits, err) ||
	       get_real(r, "rate", UNIT_TRANSFER_RATE, &r->rate_t_s, err) ||
	       (source && yaml_text(source, &r->source, err)) ? -1 : 0;
}

/* What a number is made of is copied one by one. */
static int check_number(const struct yaml_node *number, struct err *err)
{
	for (const struct yaml_node *c = number->child; c; c = c->next)
		if (!c->key || c->kind != YAML_SCALAR)
			return err_at(err, ERR_INPUT, &c->pos, "'%s' must be a single value", c->key ? c->key : number->key);
	return 0;
}

static int missing(const struct row *r, const struct yaml_node *of, const char *key, struct err *err)
{
	return err_at(err, ERR_INPUT, &r->pos->pos, "'%.100s' states no '%s', of which its family makes '%s'", r->pos->key, key,
		of->key);
}

/* A number of the family with the peak that the row gives it. */
static struct yaml_node *with_peak(const struct row *r, const struct yaml_node *number, double peak, const char *unit,
	const char *why)
{
	struct yaml_node *map = profile_new_map(r->a, number->key, &r->pos->pos), **tail = &map->child;
	const struct yaml_node *source = yaml_get(number, "source");

	*tail = profile_new_scalar(r->a, "peak", arena_printf(r->a, "%.5g%s", peak, unit), &r->pos->pos);
	for (const struct yaml_node *c = number->child; c; c = c->next) {
		if (strcmp(c->key, "times") == 0 || strcmp(c->key, "source") == 0)
			continue;
		tail = &(*tail)->next;
		*tail = profile_new_scalar(r->a, c->key, c->text, &c->pos);
	}
	(*tail)->next = profile_new_scalar(r->a, "source", arena_printf(r->a, "peak: %s%s%s", why, source ? "; " : "",
		source ? source->text : ""), &r->pos->pos);
	return map;
}

/* What `times` multiplies, in 1/s: the FP32 rate of a GPU; the cores of a processor at their base clock, or at the boost
   clock where only that is stated. A slow core counts as the share of a fast one that its vector units are. */
static double unit_rate(const struct row *r, const char **why)
{
	double clock_hz = isnan(r->base_hz) ? r->boost_hz : r->base_hz;

	*why = "fp32";
	if (!isnan(r->fp32))
		return r->fp32;
	if (isnan(r->fast) || isnan(r->slow)) {
		*why = arena_printf(r->a, "%.0f cores x %.4g GHz", r->cores, clock_hz / 1e9);
		return r->cores * clock_hz;
	}
	*why = arena_printf(r->a, "(%.0f + %.0f x %.2g) cores x %.4g GHz", r->fast, r->cores - r->fast, r->slow, clock_hz / 1e9);
	return (r->fast + (r->cores - r->fast) * r->slow) * clock_hz;
}

static int fill_flops(const struct row *r, const struct yaml_node *flops, struct yaml_node **out, struct err *err)
{
	const char *unit, *why;
	double rate = unit_rate(r, &unit);
	struct yaml_node *map = profile_new_map(r->a, "flops", &r->pos->pos), **tail = &map->child;

	if (flops->kind != YAML_MAP)
		return err_at(err, ERR_INPUT, &flops->pos, "'flops' must be a map");
	if (!(rate > 0))
		return missing(r, flops, isnan(r->cores) ? "fp32' or 'cores" : "base' or 'boost", err);
	for (const struct yaml_node *c = flops->child; c; c = c->next, tail = &(*tail)->next) {
		const struct yaml_node *times = yaml_get(c, "times");
		double by;
		if (check_number(c, err))
			return -1;
		if (!times)
			return err_at(err, ERR_INPUT, &c->pos, "flops.%s: a family says it as 'times' of what its parts state", c->key);
		if (units_parse(times->text, UNIT_PLAIN, &by, err))
			return -1;
		why = by == 1 ? unit : arena_printf(r->a, "%s x %.4g", unit, by);
		*tail = with_peak(r, c, rate * by / 1e9, "GFLOP/s", arena_printf(r->a, "%s: %s", why, r->source));
	}
	*out = map;
	return 0;
}

/* With all cores busy: the share of the boost clock that the family states, or halfway between base and boost. */
static int fill_clock(const struct row *r, const struct yaml_node *clock, struct yaml_node **out, struct err *err)
{
	const char *why = arena_printf(r->a, "boost: %s", r->source);

	if (isnan(r->boost_hz))
		return missing(r, clock, "boost", err);
	if (r->base_hz > r->boost_hz)
		return err_at(err, ERR_INPUT, &r->pos->pos, "'%.100s' has a base clock above its boost clock", r->pos->key);
	struct yaml_node *map = with_peak(r, clock, r->boost_hz / 1e9, "GHz", why);

	if (!yaml_get(map, "efficiency") && !isnan(r->base_hz)) {
		struct yaml_node *share = profile_new_scalar(r->a, "efficiency",
			arena_printf(r->a, "%.3g%%", 50 * (r->base_hz + r->boost_hz) / r->boost_hz), &r->pos->pos);
		share->next = map->child->next;
		map->child->next = share;
	}
	*out = map;
	return 0;
}

/* {16: …, 64: …, 65536: …}: the first for at least so many cores. */
static struct yaml_node *fill_launch(const struct row *r, const struct yaml_node *by_cores)
{
	for (const struct yaml_node *c = by_cores->child; c; c = c->next)
		if (r->cores <= strtod(c->key, NULL)) {
			struct yaml_node *launch = yaml_overlay(r->a, c, c);
			launch->key = "launch";
			return launch;
		}
	return NULL;
}

static bool is_own(const char *key)
{
	for (size_t i = 0; i < ARRAY_LEN(own_keys); i++)
		if (strcmp(key, own_keys[i]) == 0)
			return true;
	return false;
}

/* One key of the part written out; NULL when it is none. */
static int fill_key(const struct row *r, const struct yaml_node *node, struct yaml_node **out, struct err *err)
{
	const char *why = arena_printf(r->a, "%.0f bits x %.4g GT/s: %s", r->bus_bits, r->rate_t_s / 1e9, r->source);
	bool derived = node->kind == YAML_MAP && !yaml_get(node, "peak");

	*out = NULL;
	if (derived && (!strcmp(node->key, "bandwidth") || !strcmp(node->key, "clock") || !strcmp(node->key, "fast_clock")) &&
		check_number(node, err))
		return -1;
	if (strcmp(node->key, "launch_by_cores") == 0)
		*out = fill_launch(r, node);
	else if (strcmp(node->key, "flops") == 0)
		return fill_flops(r, node, out, err);
	else if (strcmp(node->key, "bandwidth") == 0 && derived && !isnan(r->bus_bits) && isnan(r->rate_t_s))
		return missing(r, node, "rate", err);
	else if (strcmp(node->key, "bandwidth") == 0 && derived && !isnan(r->bus_bits))
		*out = with_peak(r, node, r->bus_bits / 8 * r->rate_t_s / 1e9, "GB/s", why);
	else if ((strcmp(node->key, "clock") == 0 || strcmp(node->key, "fast_clock") == 0) && derived)
		return fill_clock(r, node, out, err);
	else if (!is_own(node->key))
		*out = yaml_overlay(r->a, node, node);
	if (*out)
		(*out)->next = NULL;
	return 0;
}

int profile_family_expand(struct profile *p, enum hw_part_kind kind, const struct yaml_node **part, struct err *err)
{
	struct row r = {.a = p->a, .pos = *part};

	if ((*part)->kind != YAML_MAP || !yaml_get(*part, "family"))
		return 0;
	if (lay_over(p, kind, *part, &r.map, err) || read_row(&r, err))
		return -1;
	struct yaml_node *out = profile_new_map(p->a, (*part)->key, &(*part)->pos), **tail = &out->child;
	out->key_pos = (*part)->key_pos;
	for (const struct yaml_node *c = r.map->child; c; c = c->next) {
		if (fill_key(&r, c, tail, err))
			return -1;
		if (*tail)
			tail = &(*tail)->next;
	}
	*part = out;
	return 0;
}

int profile_family_modules(struct profile *p, const struct yaml_node *part, const struct yaml_node **out, struct err *err)
{
	const struct yaml_node *all;

	if (lay_over(p, HW_PART_CPU, part, &all, err))
		return -1;
	*out = yaml_get(all, "modules");
	return 0;
}
