/*
 * figure_accuracy.c - predicted against measured, from what `offsim validate --json` prints: a panel a metric, both axes
 * logarithmic, each point the mark of its group.
 */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "plots/figure.h"

#define FILE_MAX_BYTES ((size_t)256 << 20)
/* Tokens a second or seconds that anything takes are no less, and no more than one by it. */
#define LEAST_VALUE 1e-9

static const char *const metrics[] = {"decode", "prefill", "e2e", "ttft"};

struct point {
	double measured, predicted;
	const char *mark;
};

struct points {
	VEC(struct point);
};

static int wrong(const char *path, const char *what, struct err *err)
{
	return err_set(err, ERR_INPUT, "'%s' is not what 'offsim validate --json' prints: %s", path, what);
}

/* Points of rows with a mark: those that are scored and ran. */
static int read_rows(const json_t *rows, const char *path, struct points points[], struct arena *a, struct err *err)
{
	size_t i;
	json_t *row;

	json_array_foreach(rows, i, row) {
		const char *metric = json_string_value(json_object_get(row, "metric"));
		const char *mark = json_string_value(json_object_get(row, "mark"));
		const json_t *measured = json_object_get(row, "measured"), *predicted = json_object_get(row, "predicted");
		size_t m = 0;
		if (!metric || !mark)
			return wrong(path, "a row has no metric or no mark", err);
		while (m < ARRAY_LEN(metrics) && strcmp(metrics[m], metric) != 0)
			m++;
		if (m == ARRAY_LEN(metrics))
			return wrong(path, arena_printf(a, "a row has the metric '%s'", metric), err);
		if (!*mark)
			continue;
		struct point p = {json_number_value(measured), json_number_value(predicted), arena_strdup(a, mark)};
		if (!(p.measured > 0 && p.predicted > 0))
			return wrong(path, "a row with a mark has no rates", err);
		if (fmin(p.measured, p.predicted) < LEAST_VALUE || fmax(p.measured, p.predicted) > 1 / LEAST_VALUE)
			return wrong(path, "a rate is beyond all measure", err);
		VEC_PUSH(&points[m], a, p);
	}
	return 0;
}

/* Powers of ten around all points of a panel, the same on both axes, written without an exponent, which gnuplot takes for a word. */
static void add_panel(struct figure *f, const struct points *points, const char *metric)
{
	double least = INFINITY, most = 0;

	for (size_t i = 0; i < points->n; i++) {
		const struct point *p = &points->at[i];
		least = fmin(least, fmin(p->measured, p->predicted));
		most = fmax(most, fmax(p->measured, p->predicted));
		data_number(&f->data, p->measured, " ");
		data_number(&f->data, p->predicted, " ");
		data_name(&f->data, p->mark, "\n");
	}
	data_block(&f->data);
	f->options = arena_printf(f->arena, "%s %.10f %.10f", f->options, pow(10, floor(log10(least))), pow(10, ceil(log10(most) + 1e-9)));
	f->names = arena_printf(f->arena, "%s%s%s", f->names, *f->names ? " " : "", metric);
	f->c.n++;
	f->c.n_points += points->n;
}

int figure_accuracy(struct figure *f, struct err *err)
{
	struct points points[ARRAY_LEN(metrics)] = {0};
	json_t *root;

	if (json_read_file(f->file, FILE_MAX_BYTES, &root, err))
		return -1;
	const json_t *rows = json_object_get(root, "rows");
	int rc = json_is_array(rows) ? read_rows(rows, f->file, points, f->arena, err) : wrong(f->file, "it has no rows", err);
	json_decref(root);
	if (rc)
		return -1;
	f->options = "";
	data_text(&f->data, "# a block a metric: measured predicted mark\n");
	for (size_t m = 0; m < ARRAY_LEN(metrics); m++)
		if (points[m].n)
			add_panel(f, &points[m], metrics[m]);
	if (f->c.n == 0)
		return err_set(err, ERR_INPUT, "no row of '%s' was scored and ran", f->file);
	f->options = arena_printf(f->arena, "%zu%s", f->c.n, f->options);
	f->panels = (f->c.n + 1) / 2;
	f->x_label = "measured";
	f->y_label = "predicted";
	return 0;
}
