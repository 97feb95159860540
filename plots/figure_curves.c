#include <math.h>
#include <string.h>

#include "plots/figure.h"

#define MARKED_POINTS 25 /* points of a curve that can carry a mark and a bar */
#define BOUND_CURVES 4   /* above this the bounds are a thicket */
#define BOUND_ROOM 1.6   /* a bound may make the y axis this much longer than the curves need */
#define LOG_Y_RATIO 20.0 /* a curve this much below the highest is a flat line on a linear axis */
#define LOG_MARGIN 1.3
#define MAX_STEPS 10    /* marks on x, one a whole number */
#define LOG_X_RATIO 8.0 /* x from 1 to 8 by doubling asks for a logarithmic axis */
#define LOG_X_STEPS 3.0 /* so does a last step this much longer than the first */
#define DODGE 0.6       /* curves over names stand side by side in this share of a name's room */
#define LABEL_COLUMNS 90 /* labels longer than this together are turned */
#define LABEL_COLUMNS_TERMINAL 56
#define KEY_COLUMNS 85 /* characters that fit in a row of the key */
#define KEY_SAMPLE 12  /* of them for a sample and space */
#define KEY_EXTRA 2    /* entries beside the curves: bound and interval */

/* ---- labels ---- */

static bool ends_in(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n >= m && strcmp(name + n - m, end) == 0;
}

static const char *last_part(const char *key)
{
	const char *dot = strrchr(key, '.');

	return dot ? dot + 1 : key;
}

/* The unit of a key whose values carry none. */
static const char *known_unit(const char *key)
{
	static const struct {
		const char *name, *unit;
	} known[] = {
		{"batch", "sequences"},
		{"prompt", "tokens"},
		{"generate", "tokens"},
		{"depth", "tokens"},
		{"ngl", "layers on the GPU"},
		{"gpu-layers", "layers on the GPU"},
		{"n-gpu-layers", "layers on the GPU"},
		{"gen", "PCIe generation"},
		{"width", "lanes"},
		{"threads", "CPU threads"},
		{"ubatch-size", "tokens"},
		{"batch-size", "tokens"},
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (strcmp(last_part(key), known[i].name) == 0)
			return known[i].unit;
	if (ends_in(key, "_tok_s"))
		return "tok/s";
	return ends_in(key, "_s") ? "s" : "";
}

void figure_label_x(struct figure *f, const char *unit, const char *scale)
{
	if (!*unit)
		unit = known_unit(f->c.x);
	f->x_label = f->c.x;
	if (*unit || *scale)
		f->x_label = arena_printf(f->arena, "%s (%s%s%s)", f->c.x, unit,
			*unit && *scale ? ", " : "", scale);
	f->x_column = strlen(f->x_label);
}

bool figure_has_room(const struct figure *f, size_t n, size_t longest)
{
	return n * (longest + 1) <= (f->characters ? LABEL_COLUMNS_TERMINAL : LABEL_COLUMNS);
}

size_t figure_longest_name(const struct figure *f)
{
	size_t longest = 0;

	for (size_t i = 0; i < f->c.n_names; i++)
		longest = strlen(f->c.name[i]) > longest ? strlen(f->c.name[i]) : longest;
	return longest;
}

void figure_explain(struct figure *f, const char *text)
{
	size_t len = strlen(text);
	bool fits = f->x_column + 1 + len <= (f->characters ? LABEL_COLUMNS_TERMINAL : LABEL_COLUMNS);

	f->x_label = arena_printf(f->arena, "%s%c%s", f->x_label, fits ? ' ' : '\n', text);
	f->x_column = fits ? f->x_column + 1 + len : len;
	f->more_rows += !fits;
}

/* "machine: 1 laptop, 2 server" */
static void explain_numbers(struct figure *f)
{
	f->numbered = true;
	f->x_label = arena_printf(f->arena, "%s:", f->x_label);
	f->x_column++;
	for (size_t i = 0; i < f->c.n_names; i++)
		figure_explain(f, arena_printf(f->arena, "%zu %s%s", i + 1, f->c.name[i],
					  i + 1 < f->c.n_names ? "," : ""));
}

const char *figure_name_of(struct figure *f, size_t x, size_t n)
{
	if (!f->characters || figure_has_room(f, n, figure_longest_name(f)))
		return f->c.name[x];
	if (!f->numbered)
		explain_numbers(f);
	return arena_printf(f->arena, "%zu", x + 1);
}

/* ---- the x axis ---- */

/* Do the x of this curve grow by a factor rather than by a step? */
static bool grows_by_factor(const struct curve *c)
{
	const struct curves_point *p = c->point, *last = p + c->n - 1;

	if (c->n < 3 || p->x <= 0 || last->x < LOG_X_RATIO * p->x)
		return false;
	return last->x - last[-1].x >= LOG_X_STEPS * (p[1].x - p->x);
}

/* Generations and such: no marks at halves. */
static bool few_whole_numbers(const struct curves *c)
{
	double low = INFINITY, high = -INFINITY;

	for (size_t k = 0; k < c->n; k++) {
		for (size_t i = 0; i < c->curve[k].n; i++) {
			double x = c->curve[k].point[i].x;
			if (x != floor(x))
				return false;
			low = fmin(low, x);
			high = fmax(high, x);
		}
	}
	return high - low <= MAX_STEPS;
}

struct x_axis {
	bool log, names;
	size_t turned; /* length of the longest name when they are written aslant; 0: level */
	double step;  /* of the marks; 0: any */
	size_t every; /* n-th point of a curve is marked */
};

static struct x_axis choose_x_axis(const struct figure *f)
{
	const struct curves *c = &f->c;
	struct x_axis x = {.log = !c->name, .names = c->name, .every = 1};

	for (size_t k = 0; k < c->n; k++) {
		size_t every = (c->curve[k].n + MARKED_POINTS - 1) / MARKED_POINTS;
		x.log = x.log && grows_by_factor(&c->curve[k]);
		if (!x.names && every > x.every)
			x.every = every;
	}
	if (!f->characters && !figure_has_room(f, c->n_names, figure_longest_name(f)))
		x.turned = figure_longest_name(f);
	x.step = !x.log && !x.names && few_whole_numbers(c) ? 1 : 0;
	return x;
}

/* ---- a y axis ---- */

struct y_axis {
	bool log, bars, bound;
	double bottom, top;
};

static double highest(const struct curve *c, size_t m)
{
	double y = 0;

	for (size_t i = 0; i < c->n; i++)
		y = fmax(y, fmax(c->point[i].y[m].value, c->point[i].y[m].high80)); /* fmax passes over NAN */
	return y;
}

/* Of all that a logarithmic axis can show. */
static double lowest(const struct curves *c, size_t m)
{
	double y = INFINITY;

	for (size_t k = 0; k < c->n; k++) {
		for (size_t i = 0; i < c->curve[k].n; i++) {
			const struct query_value *v = &c->curve[k].point[i].y[m];
			double low = v->low80 > 0 ? v->low80 : v->value;
			if (low > 0 && low < y)
				y = low;
		}
	}
	return y;
}

/* The lowest and highest bound of all; both NAN when there is none. */
static void bound_range(const struct curves *c, double *low, double *high)
{
	*low = *high = NAN;
	for (size_t k = 0; k < c->n; k++) {
		for (size_t i = 0; i < c->curve[k].n; i++) {
			*low = fmin(*low, c->curve[k].point[i].upper_bound);
			*high = fmax(*high, c->curve[k].point[i].upper_bound);
		}
	}
}

static bool has_intervals(const struct curves *c, size_t m)
{
	for (size_t k = 0; k < c->n; k++) {
		for (size_t i = 0; i < c->curve[k].n; i++) {
			const struct query_value *v = &c->curve[k].point[i].y[m];
			if (isfinite(v->low80) && isfinite(v->high80))
				return true;
		}
	}
	return false;
}

/* Lines: are points joined? A line through runs that differ in more than x, or from name to name, would say
   something that is not so. */
static struct y_axis choose_y_axis(const struct figure *f, size_t m, bool lines)
{
	const struct curves *c = &f->c;
	struct y_axis y = {.bars = has_intervals(c, m)};
	double least = INFINITY, low, high;

	for (size_t k = 0; k < c->n; k++) {
		y.top = fmax(y.top, highest(&c->curve[k], m));
		least = fmin(least, highest(&c->curve[k], m));
	}
	if (f->metric[m]->time || c->name) /* of these each point counts, not only the highest of a curve */
		least = lowest(c, m);
	y.log = least > 0 && y.top > LOG_Y_RATIO * least;
	bound_range(c, &low, &high);
	/* The last is false for NAN. */
	y.bound = f->metric[m]->upper_bound && (lines || c->name) && !c->mixed && c->n <= BOUND_CURVES &&
		  low <= BOUND_ROOM * y.top;
	if (y.bound)
		y.top = fmax(y.top, fmin(high, BOUND_ROOM * y.top));
	if (y.log) {
		y.bottom = lowest(c, m) / LOG_MARGIN;
		y.top *= LOG_MARGIN;
	} else {
		y.top = y.top > 0 ? 1.05 * y.top : 1;
	}
	return y;
}

static const char *y_label(const struct figure *f, size_t m, const struct y_axis *y)
{
	return arena_printf(f->arena, "%s%s", f->metric[m]->label, y->log ? ", log scale" : "");
}

/* ---- data ---- */

/* Where the points of curve k stand beside those of the others, for an axis of names. */
static double dodge(const struct curves *c, size_t k)
{
	return c->name ? DODGE * (((double)k + 0.5) / (double)c->n - 0.5) : 0;
}

static void add_curve(struct figure *f, size_t k, size_t m)
{
	const struct curve *curve = &f->c.curve[k];

	data_name(&f->data, curve->name, "\n");
	for (size_t i = 0; i < curve->n; i++) {
		const struct curves_point *p = &curve->point[i];
		data_number(&f->data, p->x + dodge(&f->c, k), " ");
		data_number(&f->data, p->y[m].value, " ");
		data_number(&f->data, p->y[m].low80, " ");
		data_number(&f->data, p->y[m].high80, " ");
		data_number(&f->data, p->upper_bound, "\n");
	}
	data_block(&f->data);
}

static void add_names(struct figure *f)
{
	for (size_t i = 0; i < f->c.n_names; i++) {
		data_number(&f->data, (double)i, " ");
		data_name(&f->data, figure_name_of(f, i, f->c.n_names), "\n");
	}
}

/* How many rows the key is likely to need beyond two. */
static size_t more_key_rows(const struct curves *c)
{
	size_t longest = 0, columns, rows;

	for (size_t k = 0; k < c->n; k++)
		longest = strlen(c->curve[k].name) > longest ? strlen(c->curve[k].name) : longest;
	columns = KEY_COLUMNS / (longest + KEY_SAMPLE);
	columns = columns ? columns : 1;
	rows = (c->n + KEY_EXTRA + columns - 1) / columns;
	return rows > 2 ? rows - 2 : 0;
}

int figure_curves(struct figure *f, struct err *err)
{
	bool lines = !f->c.mixed && !f->c.name;
	const struct x_axis x = choose_x_axis(f);

	(void)err; /* all that can be wrong was found before */
	data_text(&f->data, "# x y low80 high80 upper_bound, a block a curve; then the names on the axis\n");
	f->panels = f->n_metrics;
	figure_label_x(f, f->c.x_unit, x.log ? "log scale" : "");
	if (!f->characters)
		f->more_rows = more_key_rows(&f->c);
	f->options = arena_printf(f->arena, "%zu %g %zu %d %d %zu %zu %zu %zu", f->c.n, x.step, x.every, lines, x.log,
		f->c.n_names, x.turned, f->more_rows, f->n_metrics);
	for (size_t m = 0; m < f->n_metrics; m++) {
		struct y_axis y = choose_y_axis(f, m, lines);
		f->options = arena_printf(f->arena, "%s %.6g %.6g %d %d %d", f->options, y.bottom, y.top, y.bars,
			y.bound, y.log);
		if (m == 0)
			f->y_label = y_label(f, m, &y);
		else
			f->names = y_label(f, m, &y);
		for (size_t k = 0; k < f->c.n; k++)
			add_curve(f, k, m);
	}
	add_names(f);
	return 0;
}
