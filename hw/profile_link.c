#include <math.h>
#include <string.h>

#include "hw/profile_keys.h"

static const enum hw_link_kind link_kind_of[] = {HW_LINK_PCIE, HW_LINK_C2C, HW_LINK_NVLINK};

/* "pcie-4x16" -> "pcie", 4, 16; false when it has not that form. */
static bool split_pcie(const char *text, uint64_t *gen, uint64_t *width)
{
	static const struct {
		const char *text;
		unsigned lanes;
	} widths[] = {{"x1", 1}, {"x2", 2}, {"x4", 4}, {"x8", 8}, {"x16", 16}};

	if (strncmp(text, "pcie-", 5) || text[5] < '1' || text[5] > '6')
		return false;
	for (size_t i = 0; i < ARRAY_LEN(widths); i++)
		if (!strcmp(text + 6, widths[i].text)) {
			*gen = (uint64_t)(text[5] - '0');
			*width = widths[i].lanes;
			return true;
		}
	return false;
}

/* A link as a map, whichever way it was written: "pcie-4x16" is {part: pcie, gen: 4, width: 16}, below keys
   that stand beside it. */
static int expand(struct profile *p, const struct yaml_node *written, const char *what,
	const struct yaml_node **out, struct err *err)
{
	struct yaml_node *map = profile_new_map(p->a, "link", &written->pos);
	uint64_t gen, width;

	if (written->kind == YAML_SCALAR) {
		map->child = profile_new_scalar(p->a, "part", written->text, &written->pos);
		written = map;
	}
	if (profile_must_be_map(written, what, err))
		return -1;
	*out = written;
	const struct yaml_node *part = yaml_get(written, "part");
	if (part && part->kind != YAML_SCALAR)
		return err_at(err, ERR_INPUT, &part->pos, "%s.part must be the name of a part", what);
	if (!part || !split_pcie(part->text, &gen, &width))
		return 0;
	struct yaml_node *name = profile_new_scalar(p->a, "part", "pcie", &part->pos);
	struct yaml_node *spelt = profile_new_map(p->a, "link", &written->pos);
	spelt->child = profile_new_scalar(p->a, "gen", arena_printf(p->a, "%u", (unsigned)gen), &part->pos);
	spelt->child->next =
		profile_new_scalar(p->a, "width", arena_printf(p->a, "%u", (unsigned)width), &part->pos);
	spelt = yaml_overlay(p->a, spelt, written);
	map = profile_new_map(p->a, "link", &written->pos);
	map->child = name;
	*out = yaml_overlay(p->a, spelt, map);
	return 0;
}

/* A machine that names another kind of link keeps nothing of the GPU's own. */
int profile_merge_native(struct profile *p, const struct profile_layers *gpu, const struct yaml_node **out,
	struct err *err)
{
	const struct yaml_node *native = yaml_get(gpu->part, "link"), *own = yaml_get(gpu->own, "link");
	const char *what = arena_printf(p->a, "%s.link", gpu->name);

	if (!native && !own)
		return profile_missing(gpu, "link", "pcie-4x16", err);
	if ((native && expand(p, native, what, &native, err)) || (own && expand(p, own, what, &own, err)))
		return -1;
	if (!native || !own) {
		*out = own ? own : native;
		return 0;
	}
	const struct yaml_node *native_part = yaml_get(native, "part"), *own_part = yaml_get(own, "part");
	bool other = native_part && own_part && strcmp(native_part->text, own_part->text);
	*out = other ? own : yaml_overlay(p->a, native, own);
	return 0;
}

static const char *const rate_keys[] = {"h2d", "d2h", "h2d_pageable", "d2h_pageable"};
#define PINNED 2 /* the first two are; the other two go through the driver's buffer */

static struct hw_rate *link_rate(struct hw_link *link, int i)
{
	struct hw_rate *const rates[] = {&link->h2d, &link->d2h, &link->h2d_pageable, &link->d2h_pageable};

	return rates[i];
}

static int read_link_layer(struct profile *p, const struct yaml_node *map, const char *name,
	struct hw_link *link, struct err *err)
{
	for (int i = 0; i < (int)ARRAY_LEN(rate_keys); i++)
		if (profile_rate(p, yaml_get(map, rate_keys[i]), UNIT_BYTES_RATE,
			    arena_printf(p->a, "%s.%s", name, rate_keys[i]), link_rate(link, i), err))
			return -1;
	if (profile_num(p, yaml_get(map, "both"), UNIT_BYTES_RATE, arena_printf(p->a, "%s.both", name),
		    &link->both_bytes_s, err))
		return -1;
	if (profile_num(p, yaml_get(map, "remote"), UNIT_BYTES_RATE, arena_printf(p->a, "%s.remote", name),
		    &link->remote_bytes_s, err) ||
		profile_num(p, yaml_get(map, "peer"), UNIT_BYTES_RATE, arena_printf(p->a, "%s.peer", name),
			&link->peer_bytes_s, err))
		return -1;
	return profile_num(p, yaml_get(map, "latency"), UNIT_TIME, arena_printf(p->a, "%s.latency", name),
		&link->latency_s, err);
}

/* Peak from generation and width; what was measured at 16 lanes becomes an efficiency at another width. */
static void scale_pcie(struct hw_num *num, double peak, double peak16, double extra_spread)
{
	num->peak = peak;
	if (peak == peak16)
		return;
	num->spread = hypot(num->spread, extra_spread);
	if (num->measured > 0)
		num->efficiency = num->measured / peak16;
	num->measured = 0;
}

static int read_generation(struct profile *p, const struct profile_layers *l, const struct link_raw *raw,
	struct hw_link *link, struct err *err)
{
	char digit[2] = {(char)('0' + raw->gen), '\0'};
	const struct yaml_node *map = raw->generations ? yaml_get(raw->generations, digit) : NULL;
	struct generation_raw gen;

	if (!map)
		return err_at(err, ERR_INPUT, &l->own->pos, "%s: nothing is known of PCIe generation %s",
			l->name, digit);
	const char *what = arena_printf(p->a, "PCIe generation %s", digit);
	if (profile_fill(p, HW_PARAMS_GENERATION, map, what, &gen, err))
		return -1;
	if (isnan(gen.rate) || !gen.data_bits || !gen.line_bits)
		return err_at(
			err, ERR_INPUT, &map->pos, "%s needs 'rate', 'data_bits' and 'line_bits'", what);
	if (read_link_layer(p, map, l->name, link, err))
		return -1;
	double lane = gen.rate / 8 * (double)gen.data_bits / (double)gen.line_bits;
	double peak = lane * (double)raw->width, peak16 = lane * 16;
	for (int i = 0; i < PINNED; i++)
		scale_pcie(&link_rate(link, i)->num, peak, peak16, raw->other_widths_spread);
	for (int i = PINNED; i < (int)ARRAY_LEN(rate_keys); i++)
		link_rate(link, i)->num.peak =
			peak; /* the CPU's copy sets the rate, the link only its limit */
	scale_pcie(&link->both_bytes_s, 2 * peak, 2 * peak16, raw->other_widths_spread);
	return 0;
}

static int check_pcie(const struct profile_layers *l, const struct link_raw *raw, struct err *err)
{
	const struct yaml_node *width = yaml_get(l->own, "width");

	if (!raw->gen)
		return profile_missing(l, "gen", "4", err);
	if (!raw->width)
		return profile_missing(l, "width", "16", err);
	if (raw->width & (raw->width - 1))
		return err_at(err, ERR_INPUT, width ? &width->pos : &l->own->pos,
			"%s.width is %d; a PCIe link has 1, 2, 4, 8 or 16 lanes", l->name, (int)raw->width);
	return 0;
}

/* The copy through the driver's buffer cannot be faster than the link below it. */
static void cap_pageable(struct profile *p, const struct hw_rate *pinned, struct hw_rate *pageable)
{
	double limit = hw_num_value(&pinned->num);
	double *capped = arena_array(p->a, double, pageable->n_points);

	for (size_t i = 0; i < pageable->n_points; i++)
		capped[i] = fmin(pageable->rate_bytes_s[i], limit);
	pageable->rate_bytes_s = capped;
	if (!(hw_num_value(&pageable->num) > limit))
		return;
	pageable->num.measured = 0;
	pageable->num.peak = hw_num_peak(&pinned->num);
	pageable->num.efficiency = limit / pageable->num.peak;
	pageable->num.spread = fmax(pageable->num.spread, pinned->num.spread);
	pageable->num.source = arena_printf(p->a, "as pinned: %s", pinned->num.source);
}

void profile_link_copied_by(struct profile *p, const struct hw_device *cpu, struct hw_link *link)
{
	struct hw_rate *pageable = &link->h2d_pageable;
	double copy = hw_num_value(&cpu->copy_bytes_s), before = hw_num_value(&pageable->num);

	if (link->kind != HW_LINK_PCIE || link->pageable_stated || !(copy > 0))
		return;
	double *scaled = arena_array(p->a, double, pageable->n_points);
	for (size_t i = 0; i < pageable->n_points; i++)
		scaled[i] = pageable->rate_bytes_s[i] * copy / before;
	pageable->rate_bytes_s = scaled;
	pageable->num = (struct hw_num){.peak = hw_num_peak(&link->h2d.num), .measured = copy, .origin = cpu->copy_bytes_s.origin,
		.spread = cpu->copy_bytes_s.spread, .source = cpu->copy_bytes_s.source};
	cap_pageable(p, &link->h2d, pageable);
}

static double one_way_sum(const struct hw_link *link)
{
	return hw_num_value(&link->h2d.num) + hw_num_value(&link->d2h.num);
}

/* Unless the machine states it, the two-way sum follows its one-way rates: else stating a faster h2d
   would run into the sum of the part. */
static void follow_both(const struct profile_layers *l, double before, struct hw_link *link)
{
	if (before > 0 && !yaml_get(l->own, "both"))
		profile_scale(&link->both_bytes_s, one_way_sum(link) / before);
}

static int finish_link(struct profile *p, const struct profile_layers *l, struct hw_link *link,
	struct err *err)
{
	if (profile_need_num(l, &link->h2d.num, "h2d", "25GB/s", err) ||
		profile_need_num(l, &link->d2h.num, "d2h", "25GB/s", err))
		return -1;
	for (int i = 0; i < PINNED; i++) {
		struct hw_rate *pinned = link_rate(link, i), *pageable = link_rate(link, i + PINNED);
		if (!(hw_num_value(&pageable->num) > 0))
			*pageable = *pinned;
		else if (!yaml_get(l->own, rate_keys[i + PINNED]))
			cap_pageable(p, pinned, pageable);
	}
	return 0;
}

int profile_load_link(struct profile *p, const struct yaml_node *own, const char *name, struct hw_link *link,
	struct err *err)
{
	struct profile_layers l = {.name = name};
	struct link_raw raw;

	if (expand(p, own, name, &own, err))
		return -1;
	l.own = own;
	const struct yaml_node *part_name = yaml_get(own, "part");
	if (!part_name)
		return profile_missing(&l, "part", "pcie-4x16", err);
	const char *key;
	if (profile_part(p, HW_PART_LINK, part_name, &key, &l.part, err) ||
		profile_must_be_map(l.part, part_name->text, err))
		return -1;
	l.merged = yaml_overlay(p->a, l.part, own);
	if (profile_fill(p, HW_PARAMS_LINK, l.merged, name, &raw, err))
		return -1;
	*link = (struct hw_link){
		.name = name, .kind = link_kind_of[raw.kind], .between = (enum hw_link_between)raw.between, .part = part_name->text};
	link->pageable_dram_weight = raw.pageable_dram_weight;
	if (link->kind == HW_LINK_PCIE) {
		if (check_pcie(&l, &raw, err) || read_generation(p, &l, &raw, link, err))
			return -1;
		link->gen = (unsigned)raw.gen;
		link->width = (unsigned)raw.width;
	}
	if (read_link_layer(p, l.part, name, link, err))
		return -1;
	double before = one_way_sum(link);
	if (read_link_layer(p, own, name, link, err))
		return -1;
	follow_both(&l, before, link);
	link->pageable_stated = yaml_get(own, "h2d_pageable");
	return finish_link(p, &l, link, err);
}
