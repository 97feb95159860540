#include "plots/plot.h"

#include <math.h>
#include <string.h>

#include "base/suggest.h"
#include "base/vec.h"
#include "plots/curves.h"
#include "plots/gnuplot.h"

const struct plot_kind plot_kinds[] = {
	{"throughput", "throughput.gp", "Decode throughput", "decode_tok_s", "decode throughput (tok/s)",
		true, "decode tokens a second, with the 80 % interval and the upper bound"},
};
const size_t plot_kinds_n = ARRAY_LEN(plot_kinds);

#define TITLE_COLUMNS 95 /* characters that fit over a figure */
#define MARKED_POINTS 25 /* points of a curve that can carry a mark and a bar */
#define BOUND_CURVES 4   /* above this the bounds are a thicket */
#define BOUND_ROOM 1.6   /* a bound may make the y axis this much longer than the curves need */
#define LOG_Y_RATIO 20.0 /* a curve this much below the highest is a flat line on a linear axis */
#define LOG_MARGIN 1.3
#define MAX_STEPS 10    /* marks on x, one a whole number */
#define LOG_X_RATIO 8.0 /* x from 1 to 8 by doubling asks for a logarithmic axis */
#define LOG_X_STEPS 3.0 /* so does a last step this much longer than the first */

static const struct plot_kind *find_kind(const char *name, struct err *err)
{
	struct suggest s;
	char near[192];

	suggest_init(&s, name);
	for (size_t i = 0; i < plot_kinds_n; i++) {
		if (strcmp(plot_kinds[i].name, name) == 0)
			return &plot_kinds[i];
		suggest_offer(&s, plot_kinds[i].name);
	}
	err_set(err, ERR_USAGE, "no figure of kind '%s'%s", name, suggest_text(&s, near, sizeof(near)));
	return NULL;
}

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

static const char *x_label(const struct curves *c, bool logx, struct arena *a)
{
	const char *unit = *c->x_unit ? c->x_unit : known_unit(c->x);
	const char *scale = logx ? "log scale" : "";

	if (!*unit && !*scale)
		return c->x;
	return arena_printf(a, "%s (%s%s%s)", c->x, unit, *unit && *scale ? ", " : "", scale);
}

/* Kind and what is common, broken into lines that fit. */
static const char *make_title(const struct plot_kind *kind, const struct curves *c, size_t columns,
	struct arena *a)
{
	const char *title = kind->title, *rest = c->common;

	while (*rest) {
		size_t len = strlen(rest);
		if (len > columns) {
			for (len = columns; len > 0 && rest[len - 1] != ' '; len--)
				;
			if (!len)
				len = strlen(rest); /* one long word */
		}
		title = arena_printf(a, "%s\n%.*s", title, (int)len, rest);
		rest += len;
	}
	return title;
}

/* ---- axes ---- */

struct axes {
	bool bars, bound, lines, logx, logy;
	double bottom, top; /* of y */
	double step;        /* of the marks on x; 0: any */
	size_t every;       /* n-th point of a curve is marked */
};

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

static double highest(const struct curve *c)
{
	double y = 0;

	for (size_t i = 0; i < c->n; i++)
		y = fmax(y, fmax(c->point[i].y, c->point[i].high80)); /* fmax passes over NAN */
	return y;
}

/* Of all that a logarithmic axis can show. */
static double lowest(const struct curves *c)
{
	double y = INFINITY;

	for (size_t k = 0; k < c->n; k++) {
		for (size_t i = 0; i < c->curve[k].n; i++) {
			const struct curves_point *p = &c->curve[k].point[i];
			double low = p->low80 > 0 ? p->low80 : p->y;
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

static bool has_intervals(const struct curves *c)
{
	for (size_t k = 0; k < c->n; k++)
		for (size_t i = 0; i < c->curve[k].n; i++)
			if (isfinite(c->curve[k].point[i].low80) && isfinite(c->curve[k].point[i].high80))
				return true;
	return false;
}

static struct axes choose_axes(const struct plot_kind *kind, const struct curves *c)
{
	/* A line through runs that differ in more than x would say that x makes the difference. */
	struct axes ax = {.logx = true, .every = 1, .bars = has_intervals(c), .lines = !c->mixed};
	double least = INFINITY, low, high;

	for (size_t k = 0; k < c->n; k++) {
		ax.logx = ax.logx && grows_by_factor(&c->curve[k]);
		ax.top = fmax(ax.top, highest(&c->curve[k]));
		least = fmin(least, highest(&c->curve[k]));
		size_t every = (c->curve[k].n + MARKED_POINTS - 1) / MARKED_POINTS;
		if (every > ax.every)
			ax.every = every;
	}
	ax.logy = least > 0 && ax.top > LOG_Y_RATIO * least;
	bound_range(c, &low, &high);
	/* The last is false for NAN. */
	ax.bound = kind->upper_bound && ax.lines && c->n <= BOUND_CURVES && low <= BOUND_ROOM * ax.top;
	if (ax.bound)
		ax.top = fmax(ax.top, fmin(high, BOUND_ROOM * ax.top));
	ax.step = !ax.logx && few_whole_numbers(c) ? 1 : 0;
	if (ax.logy) {
		ax.bottom = lowest(c) / LOG_MARGIN;
		ax.top *= LOG_MARGIN;
	} else {
		ax.top = ax.top > 0 ? 1.05 * ax.top : 1;
	}
	return ax;
}

/* ---- the data file ---- */

struct text {
	VEC(char);
};

static void add(struct text *t, struct arena *a, const char *s)
{
	size_t len = strlen(s);

	VEC_RESERVE(t, a, t->n + len + 1);
	memcpy(t->at + t->n, s, len + 1);
	t->n += len;
}

/* In quotes, on one line. */
static void add_name(struct text *t, struct arena *a, const char *name)
{
	char *copy = arena_strdup(a, name);

	for (char *p = copy; *p; p++) {
		if ((unsigned char)*p < ' ')
			*p = ' ';
		else if (*p == '"' || *p == '\\')
			*p = '\'';
	}
	add(t, a, arena_printf(a, "\"%s\"\n", copy));
}

/* NAN is written as NaN, which is what style.gp calls missing. */
static void add_number(struct text *t, struct arena *a, double value, const char *after)
{
	char text[40];

	if (isfinite(value))
		snprintf(text, sizeof(text), "%.10g%s", value, after);
	else
		snprintf(text, sizeof(text), "NaN%s", after);
	add(t, a, text);
}

static const char *data_text(const struct plot_kind *kind, const struct curves *c, struct arena *a)
{
	struct text t = {0};

	add(&t, a, arena_printf(a, "# x %s low80 high80 upper_bound, a block a curve\n", kind->metric));
	for (size_t k = 0; k < c->n; k++) {
		if (k)
			add(&t, a, "\n\n");
		add_name(&t, a, c->curve[k].name);
		for (size_t i = 0; i < c->curve[k].n; i++) {
			const struct curves_point *p = &c->curve[k].point[i];
			add_number(&t, a, p->x, " ");
			add_number(&t, a, p->y, " ");
			add_number(&t, a, p->low80, " ");
			add_number(&t, a, p->high80, " ");
			add_number(&t, a, p->upper_bound, "\n");
		}
	}
	return t.at;
}

/* ---- together ---- */

static int draw(const struct plot_request *req, const struct plot_kind *kind, const struct curves *c,
	struct arena *a, const char **again, struct err *err)
{
	const struct axes ax = choose_axes(kind, c);
	const char *terminal;

	if (!req->out)
		terminal = arena_printf(a, "dumb size %d,%d", req->columns, req->rows);
	else if (gnuplot_terminal(req->out, &terminal, err))
		return -1;
	size_t columns = req->out ? TITLE_COLUMNS : (size_t)req->columns;
	const char *const word[] = {
		req->title ? req->title : make_title(kind, c, columns, a),
		x_label(c, ax.logx, a),
		arena_printf(a, "%s%s", kind->y_label, ax.logy ? ", log scale" : ""),
		terminal,
		arena_printf(a, "%zu %.6g %.6g %g %zu %d %d %d %d %d", c->n, ax.bottom, ax.top, ax.step,
			ax.every, ax.bars, ax.bound, ax.lines, ax.logx, ax.logy),
	};
	const struct gnuplot_job job = {
		.template = kind->template,
		.data = data_text(kind, c, a),
		.out = req->out,
		.word = word,
		.n_words = ARRAY_LEN(word),
		.keep = req->keep,
	};

	return gnuplot_draw(&job, a, again, err);
}

int plot_draw(const struct plot_request *req, struct arena *a, struct plot_summary *out, struct err *err)
{
	const struct plot_kind *kind = find_kind(req->kind, err);
	const char *unused;
	struct query *q;
	struct curves c;

	*out = (struct plot_summary){0};
	if (!kind || (req->out && gnuplot_terminal(req->out, &unused, err)) ||
		query_open(req->db, a, &q, err))
		return -1;
	const struct curves_request wanted = {.metric = kind->metric, .x = req->x, .series = req->series};
	int status = curves_read(q, &wanted, a, &c, err);
	query_close(q);
	if (status)
		return -1;
	*out = (struct plot_summary){
		.n_points = c.n_points,
		.n_curves = c.n,
		.n_no_fit = c.n_no_fit,
		.n_failed = c.n_failed,
		.n_no_x = c.n_no_x,
		.x = c.x,
		.mixed = c.mixed,
	};
	return draw(req, kind, &c, a, &out->again, err);
}
