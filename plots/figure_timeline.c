#include <ctype.h>
#include <math.h>
#include <string.h>

#include "plots/figure.h"

#define PANELS_MAX 4 /* runs shown */
#define LANES_MAX 12 /* resources of a run shown */
#define MS 1e3
#define CELLS 54   /* characters of a row */

struct strip {
	const struct query_span *span;
	size_t n;
	const char *name; /* of the run */
};

struct strips {
	struct strip at[PANELS_MAX];
	size_t n, more; /* runs with a timeline for which there is no room */
};

static int read_strips(struct figure *f, struct strips *strips, struct err *err)
{
	for (size_t k = 0; k < f->c.n; k++) {
		const struct curve *c = &f->c.curve[k];
		for (size_t i = 0; i < c->n; i++) {
			struct strip s = {0};
			if (query_read_spans(f->q, c->point[i].run, &s.span, &s.n, err))
				return -1;
			if (s.n == 0)
				continue;
			s.name = arena_printf(f->arena, "%s%s%s%s%s", f->c.name ? "" : f->c.x, f->c.name ? "" : " ",
				c->point[i].label, f->c.n > 1 ? ", " : "", f->c.n > 1 ? c->name : "");
			if (strips->n < PANELS_MAX)
				strips->at[strips->n++] = s;
			else
				strips->more++;
		}
	}
	return 0;
}

static double length(const struct strip *s)
{
	double end = 0;

	for (size_t i = 0; i < s->n && s->span[i].position == 0; i++)
		end = s->span[i].end;
	return end;
}

/* A word that a template can put into a command: plain characters alone. */
static const char *word(const char *text, struct arena *a)
{
	char *out = arena_strdup(a, text);

	for (char *p = out; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("._-+:/", *p))
			*p = '_';
	return out;
}

/* What is drawn of spans in characters: a mark for each cell of time, by the share of it that they fill. */
static void add_marks(struct figure *f, const struct query_span *span, size_t n, double end)
{
	static const char *const marks[] = {".", ":", "+", "#"};
	double cell = end / CELLS;

	for (size_t c = 0; c < CELLS; c++) {
		double filled = 0, from = (double)c * cell, to = from + cell;
		for (size_t i = 0; i < n; i++)
			filled += span[i].busy * fmax(0, fmin(span[i].end, to) - fmax(span[i].begin, from)) / cell;
		if (!(filled > 0))
			continue;
		data_number(&f->data, MS * (from + cell / 2), " ");
		data_name(&f->data, marks[(int)fmin(filled * 4, 3)], "\n");
	}
}

static void add_rows(struct figure *f, const struct query_span *span, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		data_number(&f->data, MS * span[i].begin, " ");
		data_number(&f->data, MS * span[i].end, " ");
		data_number(&f->data, span[i].busy, "\n");
	}
}

/* The rows of one resource from span[i] on; returns where the next begins. */
static size_t add_lane(struct figure *f, const struct strip *s, size_t i)
{
	int64_t position = s->span[i].position;
	size_t first = i;
	double busy = 0;

	f->names = arena_printf(f->arena, "%s %s", f->names, word(s->span[i].resource, f->arena));
	for (; i < s->n && s->span[i].position == position; i++)
		busy += (s->span[i].end - s->span[i].begin) * s->span[i].busy;
	if (f->characters)
		add_marks(f, &s->span[first], i - first, length(s));
	else
		add_rows(f, &s->span[first], i - first);
	data_block(&f->data);
	f->options = arena_printf(f->arena, "%s %.3g", f->options, 100 * busy / length(s));
	return i;
}

/* A block of the run's name and where its steps end, then one a lane. */
static void add_strip(struct figure *f, const struct strip *s, bool named)
{
	size_t i = 0, n_lanes = 0;

	data_text(&f->data, "0 ");
	data_name(&f->data, named ? s->name : "", "\n");
	for (; i < s->n && s->span[i].position == 0; i++) {
		data_number(&f->data, MS * s->span[i].end, " ");
		data_text(&f->data, "\"\"\n");
	}
	data_block(&f->data);
	for (size_t k = i; k < s->n; k++)
		n_lanes += k == i || s->span[k].position != s->span[k - 1].position;
	if (n_lanes > LANES_MAX) {
		f->left_out = arena_printf(f->arena, "%zu resources of a run", n_lanes - LANES_MAX);
		n_lanes = LANES_MAX;
	}
	f->options = arena_printf(f->arena, "%s %.10g %zu", f->options, MS * length(s), n_lanes);
	for (; n_lanes; n_lanes--)
		i = add_lane(f, s, i);
}

int figure_timeline(struct figure *f, struct err *err)
{
	struct strips strips = {0};

	if (read_strips(f, &strips, err))
		return -1;
	if (!strips.n)
		return err_set(err, ERR_INPUT, "no run in '%s' has a timeline: 'offsim run' stores one, 'offsim sweep' does not",
			query_path(f->q));
	if (f->c.n_points == 1)
		f->c.common = arena_printf(f->arena, "%s%s%s", strips.at[0].name, *f->c.common ? ", " : "", f->c.common);
	f->template = "timeline.gp";
	f->panels = strips.n;
	f->options = arena_printf(f->arena, "%zu", strips.n);
	data_text(&f->data, "# a block a run: end of step, name; then one a resource: begin end busy (ms, ms, share)\n");
	for (size_t p = 0; p < strips.n; p++)
		add_strip(f, &strips.at[p], f->c.n_points > 1);
	f->x_label = arena_printf(f->arena, "time (ms), steps from the middle of the %s",
		strcmp(strips.at[0].span[0].resource, "decode") == 0 ? "decode phase" : "prefill");
	if (f->characters) {
		f->x_label = arena_printf(f->arena, "%s\n. : + # is up to a quarter, half, three quarters, all", f->x_label);
		f->more_rows = 1;
	}
	if (strips.more)
		f->left_out = arena_printf(f->arena, "%zu more runs", strips.more);
	return 0;
}
