#include "plots/plot.h"

#include <string.h>

#include "base/suggest.h"
#include "plots/figure.h"
#include "plots/gnuplot.h"

const struct plot_metric plot_metrics[] = {
	{"decode_tok_s", "Decode throughput", "decode throughput (tok/s)", true, false},
	{"prefill_tok_s", "Prefill throughput", "prefill throughput (tok/s)", false, false},
	{"e2e_tok_s", "End-to-end throughput", "end-to-end throughput (tok/s)", false, false},
	{"ttft_s", "Time to first token", "time to first token (s)", false, true},
	{"tpot_s", "Time per output token", "time per output token (s)", false, true},
	{"total_s", "Total time", "total time (s)", false, true},
	{"decode_hit_rate", "Expert cache hits", "expert cache hit rate in decode", false, false},
};
const size_t plot_metrics_n = ARRAY_LEN(plot_metrics);

const struct plot_kind plot_kinds[] = {
	{"throughput", "throughput.gp", "Decode throughput", {"decode_tok_s"}, figure_curves, false, 0, false,
		"decode tokens a second, with the 80 % interval and the upper bound"},
	{"latency", "latency.gp", "Latency", {"ttft_s", "tpot_s"}, figure_curves, false, 0, false,
		"time to the first token and per output token, with the 80 % intervals"},
	{"memory", "memory.gp", "Memory", {NULL}, figure_memory, true, FIGURE_GROUPS_MAX, false,
		"what lies in each memory against its capacity; also runs that do not fit"},
	{"utilisation", "utilisation.gp", "Utilisation", {NULL}, figure_utilisation, false, FIGURE_GROUPS_MAX, false,
		"what sets the pace, and how busy each resource is; of a single run of 'offsim run' the timeline"},
	{"timeline", "timeline.gp", "Timeline", {NULL}, figure_timeline, false, FIGURE_GROUPS_MAX, false,
		"when each resource is in use, over two steps from the middle of a run"},
	{"accuracy", "accuracy.gp", "Predicted against measured", {NULL}, figure_accuracy, false, 0, true,
		"predicted against measured, a panel a metric, from what 'offsim validate --json' printed (--validation)"},
};
const size_t plot_kinds_n = ARRAY_LEN(plot_kinds);

#define TITLE_COLUMNS 95 /* characters that fit over a figure */
#define PANEL_ROWS 14    /* of characters, that a panel needs */
#define FIXED_ROWS 14    /* title, axis and key */

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

static const struct plot_metric *find_metric(const char *name, struct arena *a, struct err *err)
{
	const char *list = "";
	struct suggest s;
	char near[192];

	suggest_init(&s, name);
	for (size_t i = 0; i < plot_metrics_n; i++) {
		if (strcmp(plot_metrics[i].name, name) == 0)
			return &plot_metrics[i];
		suggest_offer(&s, plot_metrics[i].name);
		list = arena_printf(a, "%s%s%s", list, *list ? ", " : "", plot_metrics[i].name);
	}
	if (suggest_best(&s))
		err_set(err, ERR_USAGE, "no metric '%s'%s", name, suggest_text(&s, near, sizeof(near)));
	else
		err_set(err, ERR_USAGE, "no metric '%s'; there are: %s", name, list);
	return NULL;
}

static int choose_metrics(const struct plot_kind *kind, const char *y, struct figure *f, struct err *err)
{
	if (y && !kind->metric[0])
		return err_set(err, ERR_USAGE, "a figure of kind '%s' has no --y: it shows no metric of a run",
			kind->name);
	for (size_t i = 0; i < ARRAY_LEN(kind->metric) && (y ? i == 0 : kind->metric[i] != NULL); i++) {
		f->metric[i] = find_metric(y ? y : kind->metric[i], f->arena, err);
		if (!f->metric[i])
			return -1;
		f->n_metrics++;
	}
	return 0;
}

static int read_runs(const struct plot_request *req, const struct plot_kind *kind, struct figure *f,
	struct err *err)
{
	struct curves_request wanted = {
		.n_metrics = f->n_metrics,
		.x = req->x,
		.series = req->series,
		.max = kind->max_curves,
		.also_no_fit = kind->also_no_fit,
		.also_one = f->n_metrics == 0,
	};

	for (size_t i = 0; i < f->n_metrics; i++)
		wanted.metric[i] = f->metric[i]->name;
	return curves_read(f->q, &wanted, f->arena, &f->c, err);
}

/* What it is and what is common, broken into lines that fit. */
static const char *make_title(const char *title, const char *rest, size_t columns, struct arena *a)
{
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

static int draw(const struct plot_request *req, const struct plot_kind *kind, const struct figure *f,
	const char **again, struct err *err)
{
	struct arena *a = f->arena;
	const char *terminal, *title = req->title;

	if (!req->out) {
		int rows = f->panels > 1 ? FIXED_ROWS + PANEL_ROWS * (int)f->panels : 0;
		rows = (rows > req->rows ? rows : req->rows) + (int)f->more_rows;
		terminal = arena_printf(a, "dumb size %d,%d", req->columns, rows);
	} else if (gnuplot_terminal(req->out, &terminal, err)) {
		return -1;
	}
	if (!title)
		title = make_title(req->y ? f->metric[0]->title : kind->title, f->c.common,
			req->out ? TITLE_COLUMNS : (size_t)req->columns, a);
	const char *const word[] = {title, f->x_label, f->y_label, terminal, f->options, f->names};
	const struct gnuplot_job job = {
		.template = f->template,
		.data = f->data.at,
		.out = req->out,
		.word = word,
		.n_words = ARRAY_LEN(word),
		.keep = req->keep,
	};

	return gnuplot_draw(&job, a, again, err);
}

static struct plot_summary summarise(const struct figure *f)
{
	return (struct plot_summary){
		.n_points = f->c.n_points,
		.n_curves = f->c.n,
		.n_no_fit = f->c.n_no_fit,
		.n_failed = f->c.n_failed,
		.n_no_x = f->c.n_no_x,
		.x = f->c.x,
		.mixed = f->c.mixed,
		.idle = f->idle,
		.left_out = f->left_out,
	};
}

static int fill(const struct plot_request *req, const struct plot_kind *kind, struct figure *f, struct err *err)
{
	f->template = kind->template;
	if (kind->of_file != (req->file != NULL))
		return err_set(err, ERR_USAGE, kind->of_file ? "a figure of kind '%s' needs --validation FILE" :
			"a figure of kind '%s' is of a database, not of a validation", kind->name);
	if (kind->of_file)
		return kind->fill(f, err);
	if (query_open(req->db, f->arena, &f->q, err))
		return -1;
	int status = read_runs(req, kind, f, err) || kind->fill(f, err) ? -1 : 0;
	query_close(f->q);
	return status;
}

int plot_draw(const struct plot_request *req, struct arena *a, struct plot_summary *out, struct err *err)
{
	const struct plot_kind *kind = find_kind(req->kind, err);
	struct figure f = {
		.characters = !req->out,
		.arena = a,
		.data.arena = a,
		.y_label = "",
		.names = "",
		.panels = 1,
		.file = req->file,
		.c.common = "",
	};
	const char *unused;

	*out = (struct plot_summary){0};
	if (!kind || choose_metrics(kind, req->y, &f, err) ||
		(req->out && gnuplot_terminal(req->out, &unused, err)) || fill(req, kind, &f, err))
		return -1;
	*out = summarise(&f);
	return draw(req, kind, &f, &out->again, err);
}
