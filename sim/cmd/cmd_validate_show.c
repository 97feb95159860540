#include "sim/cmd/cmd_validate.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/csv.h"
#include "base/units.h"
#include "base/vec.h"
#include "sim/run/leave_out.h"

static json_t *number(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

/* The mark of its group: "" of a row that is not scored or did not run. */
static const char *mark_of(const struct validate_row *r, const struct validate_group *group, size_t n_groups)
{
	for (size_t i = 0; i < n_groups && r->scored && r->status == VALIDATE_OK; i++)
		if (strcmp(group[i].name, r->group) == 0)
			return group[i].mark;
	return "";
}

static json_t *json_row(const struct validate_row *r, const struct validate_group *group, size_t n_groups)
{
	json_t *row = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "id", r->id, "group", r->group, "engine", r->engine,
		"model", r->model, "metric", validate_metric_name(r->metric), "status", validate_status_name(r->status),
		"reason", *r->reason ? r->reason : r->assumed, "mark", mark_of(r, group, n_groups));

	json_object_set_new(row, "scored", json_boolean(r->scored));
	json_object_set_new(row, "predicted", number(r->predicted));
	json_object_set_new(row, "measured", number(r->measured));
	json_object_set_new(row, "low80", number(r->low80));
	json_object_set_new(row, "high80", number(r->high80));
	json_object_set_new(row, "upper_bound_tok_s", number(r->upper_bound));
	json_object_set_new(row, "above_bound", json_boolean(validate_above_bound(r)));
	json_object_set_new(row, "rule_of_thumb_tok_s", number(r->thumb));
	return row;
}

static void print_json(const struct validate *v, struct arena *a)
{
	json_t *root = json_object(), *rows = json_array(), *summary = json_object();
	const struct validate_group *group;
	size_t n_groups = validate_groups(v, &group, a);

	for (size_t i = 0; i < v->n; i++)
		json_array_append_new(rows, json_row(&v->row[i], group, n_groups));
	for (int m = 0; m < VALIDATE_METRIC_N; m++) {
		const struct validate_summary *s = &v->summary[m];
		json_object_set_new(summary, validate_metric_name((enum validate_metric)m),
			json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "n", (json_int_t)s->n, "groups",
				(json_int_t)s->n_groups, "median_abs_error", number(s->median_abs_error), "p90_abs_error",
				number(s->p90_abs_error), "bias", number(s->bias), "coverage80", number(s->coverage80),
				"pair_order", number(s->pair_order)));
	}
	json_object_set_new(root, "rows", rows);
	json_object_set_new(root, "summary", summary);
	if (v->thumb.n)
		json_object_set_new(root, "rule_of_thumb",
			json_pack("{s:I, s:o, s:o, s:o, s:o}", "n", (json_int_t)v->thumb.n, "bias", number(v->thumb.bias),
				"factor", number(v->thumb.factor), "median_abs_error", number(v->thumb.median_abs_error),
				"p90_abs_error", number(v->thumb.p90_abs_error)));
	json_dumpf(root, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
	putchar('\n');
	json_decref(root);
}

/* Of a corpus, rows that were skipped are many and uninteresting; those of one's own file are few. */
static void print_rows(const struct validate *v, bool all)
{
	int width = 26;

	for (size_t i = 0; i < v->n && all; i++)
		if ((int)strlen(v->row[i].model) > width)
			width = strlen(v->row[i].model) < 60 ? (int)strlen(v->row[i].model) : 60;
	printf("%-7s %-16s %-*s %-8s %4s %11s %11s %7s  %s\n", "id", "engine", width, "model", "metric", "tier", "predicted",
		"measured", "ratio", "");
	for (size_t i = 0; i < v->n; i++) {
		const struct validate_row *r = &v->row[i];
		if (r->status == VALIDATE_SKIPPED && !all)
			continue;
		printf("%-7s %-16.16s %-*.*s %-8s %4s ", r->id, r->engine, width, width, r->model, validate_metric_name(r->metric), r->tier);
		if (r->status == VALIDATE_OK)
			printf("%11.4g %11.4g %7.2f  %s%s\n", r->predicted, r->measured, r->predicted / r->measured,
				validate_above_bound(r) ? "above the bound! " : "", r->assumed);
		else
			printf("%11s %11.4g %7s  %s: %s\n", "-", r->measured, "-", validate_status_name(r->status), r->reason);
	}
}

static void print_thumb(const struct validate *v)
{
	const struct validate_thumb *t = &v->thumb;
	const struct validate_summary *s = &v->summary[VALIDATE_DECODE];

	if (t->n == 0)
		return;
	printf("thumb    %5zu %7zu %13.1f%% %11.1f%% %+7.1f%%   decode by the rule of thumb, times %.2f", t->n, s->n_groups,
		100 * t->median_abs_error, 100 * t->p90_abs_error, 100 * t->bias, t->factor);
	if (t->n > 1) /* the factor that suits one row best leaves no error */
		printf(": its errors are %.1f times as large in the median, %.1f in the 90th percentile",
			t->median_abs_error / s->median_abs_error, t->p90_abs_error / s->p90_abs_error);
	putchar('\n');
}

static size_t n_above(const struct validate *v)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n; i++)
		n += validate_above_bound(&v->row[i]);
	return n;
}

static void print_summary(const struct validate *v, bool all)
{
	printf("\n%-8s %5s %7s %14s %12s %8s %12s %11s\n", "metric", "rows", "groups", "median error", "90 % error",
		"bias", "coverage 80", "pair order");
	for (int m = 0; m < VALIDATE_METRIC_N; m++) {
		const struct validate_summary *s = &v->summary[m];
		if (s->n == 0)
			continue;
		printf("%-8s %5zu %7zu %13.1f%% %11.1f%% %+7.1f%% %11.0f%%", validate_metric_name((enum validate_metric)m), s->n,
			s->n_groups, 100 * s->median_abs_error, 100 * s->p90_abs_error, 100 * s->bias, 100 * s->coverage80);
		if (isfinite(s->pair_order))
			printf(" %10.1f%%", 100 * s->pair_order);
		putchar('\n');
	}
	print_thumb(v);
	if (n_above(v))
		printf("\n%zu decode rates were measured above what their machines' datasheets allow\n", n_above(v));
	if (all) {
		printf("\n%zu of %zu rows ran\n", v->n_ran, v->n);
		return;
	}
	size_t skipped = 0;
	for (size_t i = 0; i < v->n; i++)
		skipped += v->row[i].status == VALIDATE_SKIPPED;
	printf("\n%zu of %zu rows of the scored tiers ran; %zu rows of engines that are not modelled, or were not asked for, "
	       "are not shown (--json has all)\n", v->n_ran, v->n_scored, skipped);
}

/* ---- the worst ---- */

struct reason {
	const char *row; /* id, or a group */
	const char *text;
};

struct reasons {
	VEC(struct reason);
};

static bool is_of(const struct reason *reason, const struct validate_row *r)
{
	return strcmp(reason->row, r->id) == 0 || strcmp(reason->row, r->group) == 0;
}

static int read_reasons(const char *path, const struct validate *v, struct reasons *out, struct arena *a, struct err *err)
{
	static const char *const columns[] = {"row", "reason"};
	struct csv_field f[2];
	struct csv csv;
	int more;

	if (csv_open(&csv, path, columns, 2, a, err))
		return -1;
	while ((more = csv_next(&csv, f, err)) > 0) {
		struct reason reason = {csv_text(&f[0], a), csv_text(&f[1], a)};
		bool known = false;
		for (size_t i = 0; i < v->n && !known; i++)
			known = is_of(&reason, &v->row[i]);
		for (size_t i = 0; i < out->n; i++)
			if (strcmp(out->at[i].row, reason.row) == 0)
				return csv_error(&csv, &f[0], err, "'%s' has a reason already", reason.row);
		if (!known)
			return csv_error(&csv, &f[0], err, "no row and no group is called '%s'", reason.row);
		VEC_PUSH(out, a, reason);
	}
	return more;
}

/* A row's own reason comes before its group's. */
static const char *reason_of(const struct reasons *reasons, const struct validate_row *r)
{
	const char *text = "";

	for (size_t i = 0; i < reasons->n; i++) {
		if (strcmp(reasons->at[i].row, r->id) == 0)
			return reasons->at[i].text;
		if (is_of(&reasons->at[i], r))
			text = reasons->at[i].text;
	}
	return text;
}

static const char *remarks(const struct validate_row *r, const struct reasons *reasons, struct arena *a)
{
	const char *const part[] = {validate_above_bound(r) ? "Above the bound" : "", reason_of(reasons, r),
		*r->assumed ? arena_printf(a, "Assumed: %s", r->assumed) : ""};
	const char *text = "";

	for (size_t i = 0; i < ARRAY_LEN(part); i++)
		text = arena_printf(a, "%s%s%s", text, *text && *part[i] ? ". " : "", part[i]);
	return text;
}

/* A cell of a table: what would end it or its line. */
static const char *cell(const char *text, bool markdown, struct arena *a)
{
	const char *out = "";

	while (markdown && text[strcspn(text, "|\r\n")]) {
		int n = (int)strcspn(text, "|\r\n");
		out = arena_printf(a, "%s%.*s%s", out, n, text, text[n] == '|' ? "\\|" : " ");
		text += n + 1;
	}
	return *out ? arena_printf(a, "%s%s", out, text) : text;
}

static void print_worst(const struct validate *v, const struct validate_show *how, const struct reasons *reasons, struct arena *a)
{
	const struct validate_row **row = arena_array(a, const struct validate_row *, how->worst);
	size_t n = validate_worst(v, row, how->worst, a);

	if (how->markdown)
		printf("| row | group | engine | model | metric | measured | predicted | 80 %% interval | ratio | remarks |\n"
		       "|---|---|---|---|---|---|---|---|---|---|\n");
	else
		printf("%-7s %-28s %-16s %-26s %-8s %10s %10s %21s %7s  %s\n", "id", "group", "engine", "model", "metric", "measured",
			"predicted", "80 % interval", "ratio", "remarks");
	for (size_t i = 0; i < n; i++) {
		const struct validate_row *r = row[i];
		printf(how->markdown ? "| %s | %s | %s | %s | %s | %.4g | %.4g | %.3g to %.3g | %.2f | %s |\n" :
				       "%-7s %-28s %-16.16s %-26.26s %-8s %10.4g %10.4g %8.3g to %9.3g %7.2f  %s\n",
			cell(r->id, how->markdown, a), cell(r->group, how->markdown, a), cell(r->engine, how->markdown, a),
			cell(r->model, how->markdown, a), validate_metric_name(r->metric), r->measured, r->predicted, r->low80, r->high80,
			r->predicted / r->measured, cell(remarks(r, reasons, a), how->markdown, a));
	}
}

/* ---- Markdown ---- */

static void print_summary_markdown(const struct validate *v)
{
	const struct validate_thumb *t = &v->thumb;

	printf("| metric | rows | groups | median error | 90th percentile | bias | in the 80 %% interval | pairs in order |\n"
	       "|---|---|---|---|---|---|---|---|\n");
	for (int m = 0; m < VALIDATE_METRIC_N; m++) {
		const struct validate_summary *s = &v->summary[m];
		if (s->n == 0)
			continue;
		printf("| %s | %zu | %zu | %.0f %% | %.0f %% | %+.0f %% | %.0f %% |", validate_metric_name((enum validate_metric)m), s->n,
			s->n_groups, 100 * s->median_abs_error, 100 * s->p90_abs_error, 100 * s->bias, 100 * s->coverage80);
		if (isfinite(s->pair_order))
			printf(" %.0f %% |\n", 100 * s->pair_order);
		else
			printf(" |\n");
	}
	if (t->n)
		printf("| decode by the rule of thumb, times %.2f | %zu | %zu | %.0f %% | %.0f %% | %+.0f %% without the factor | | |\n",
			t->factor, t->n, v->summary[VALIDATE_DECODE].n_groups, 100 * t->median_abs_error, 100 * t->p90_abs_error,
			100 * t->bias);
	printf("\n%zu of %zu rows ran", v->n_ran, v->n_scored);
	if (n_above(v))
		printf("; %zu decode rates were measured above what their machines' datasheets allow", n_above(v));
	printf(".\n\n");
}

static void print_groups_markdown(const struct validate *v, struct arena *a)
{
	const struct validate_group *group;
	size_t n = validate_groups(v, &group, a);

	printf("\n| mark | group | rows | predicted / measured: median | least | most |\n|---|---|---|---|---|---|\n");
	for (size_t i = 0; i < n; i++)
		printf("| %s | %s | %zu | %.2f | %.2f | %.2f |\n", group[i].mark, cell(group[i].name, true, a), group[i].n, group[i].median,
			group[i].least, group[i].most);
}

int validate_show(const struct validate *v, const struct validate_show *how, struct arena *a, struct err *err)
{
	struct reasons reasons = {0};

	if (how->reasons && read_reasons(how->reasons, v, &reasons, a, err))
		return -1;
	if (how->json) {
		print_json(v, a);
		return 0;
	}
	if (how->markdown)
		print_summary_markdown(v);
	if (how->worst)
		print_worst(v, how, &reasons, a);
	else if (!how->markdown)
		print_rows(v, how->one_machine);
	if (how->markdown)
		print_groups_markdown(v, a);
	else
		print_summary(v, how->one_machine);
	return 0;
}

/* ---- each source left out ---- */

static void print_constant(const struct leave_out_constant *c, bool markdown)
{
	const double value[] = {c->low, c->high, c->now, c->all, c->least, c->most};
	char text[ARRAY_LEN(value)][32];

	for (size_t i = 0; i < ARRAY_LEN(value); i++)
		units_format(text[i], sizeof(text[i]), value[i], (enum unit_dim)c->dim);
	printf(markdown ? "| %s, %s | %s to %s | %s | %s | %s to %s |\n" : "%-14s %-20s %10s to %-10s %10s %12s %12s to %s\n", c->kernels,
		c->name, text[0], text[1], text[2], text[3], text[4], text[5]);
}

void validate_show_leave_out(const struct leave_out *o, bool markdown)
{
	printf(markdown ? "| metric | rows | median error: as they are | fitted on all | source left out | 90th percentile: as they are "
			  "| fitted on all | source left out |\n|---|---|---|---|---|---|---|---|\n" :
			  "%-8s %5s   %-34s   %s\n%-8s %5s   %10s %10s %12s   %10s %10s %12s\n",
		"", "", "median error", "90 % error", "metric", "rows", "as is", "on all", "left out", "as is", "on all", "left out");
	for (int m = 0; m < VALIDATE_METRIC_N; m++) {
		const struct validate_summary *s[] = {&o->now[m], &o->all[m], &o->without[m]};
		if (s[0]->n)
			printf(markdown ? "| %s | %zu | %.1f %% | %.1f %% | %.1f %% | %.0f %% | %.0f %% | %.0f %% |\n" :
					  "%-8s %5zu   %9.1f%% %9.1f%% %11.1f%%   %9.1f%% %9.1f%% %11.1f%%\n",
				validate_metric_name((enum validate_metric)m), s[0]->n, 100 * s[0]->median_abs_error,
				100 * s[1]->median_abs_error, 100 * s[2]->median_abs_error, 100 * s[0]->p90_abs_error,
				100 * s[1]->p90_abs_error, 100 * s[2]->p90_abs_error);
	}
	printf("\n%zu sources left out in turn; %zu rows move with the constants, the others are predicted without them\n\n",
		o->n_sources, o->n_moved);
	if (markdown)
		printf("| constant | bounds | as it is | fitted on all | with a source left out |\n|---|---|---|---|---|\n");
	else
		printf("%-14s %-20s %24s %10s %12s %12s\n", "kernels", "constant", "bounds", "as is", "on all", "left out");
	for (size_t i = 0; i < o->n; i++) {
		if (o->constant[i].dim >= 0)
			print_constant(&o->constant[i], markdown);
		else
			printf(markdown ? "| %s, %s | no row has it%s | | | |\n" : "%-14s %-20s no row has it%s\n", o->constant[i].kernels,
				o->constant[i].name, o->constant[i].near);
	}
}
