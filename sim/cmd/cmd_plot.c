/*
 * cmd_plot.c - `offsim plot`: figures from results.db.
 */
#include <getopt.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/utf8.h"
#include "plots/plot.h"
#include "sim/cmd/cmd.h"

static void usage(void)
{
	puts("usage: offsim plot KIND [--db FILE] -o OUT.{svg,png,pdf} [OPTION]...\n"
	     "       offsim plot KIND [--db FILE] --terminal [OPTION]...\n"
	     "\n"
	     "Draws a figure from a results database with gnuplot.\n"
	     "\n"
	     "kinds:");
	for (size_t i = 0; i < plot_kinds_n; i++)
		printf("  %-15s  %s\n", plot_kinds[i].name, plot_kinds[i].help);
	puts("\n"
	     "      --db FILE        results of 'offsim run' and 'offsim sweep' (default results.db)\n"
	     "      --validation FILE  of accuracy: what 'offsim validate --json' printed\n"
	     "  -o, --output OUT     figure to write; the suffix says what kind of file\n"
	     "  -t, --terminal       draw with characters on standard output\n"
	     "      --x KEY          x axis: a key that was set or swept (workload.batch), or a column of\n"
	     "                       table run; default: the first that takes two numeric values,\n"
	     "                       or else two names; values that are not all numbers are shown as names\n"
	     "      --series KEY,... a curve for each value of these; '' for a single curve; default: all\n"
	     "                       other keys that vary\n"
	     "      --y METRIC       of throughput and latency: another metric:");
	for (size_t i = 0; i < plot_metrics_n; i++)
		printf("%s%s", i == 0 ? "                       " : i == plot_metrics_n - 1 ? " or " : ", ",
			plot_metrics[i].name);
	puts("\n"
	     "      --title TEXT     default: what the runs have in common\n"
	     "      --keep           leave data and template in $TMPDIR, and say how to draw them again\n"
	     "  -h, --help           this text\n"
	     "\n"
	     "Runs that do not fit in memory have no rate: they are left out and counted on stderr; 'memory' shows\n"
	     "them, marked. gnuplot is stopped when a figure takes longer than a minute.\n"
	     "\n"
	     "example: offsim run scenarios/headline.yaml --set workload.batch=1\n"
	     "         offsim run scenarios/headline.yaml --set workload.batch=16\n"
	     "         offsim plot throughput -o batch.svg");
}

static int within(int value, int low, int high)
{
	return value < low ? low : value > high ? high : value;
}

/* The room on the terminal; what is not one gets 80 x 24. */
static void terminal_size(struct plot_request *req)
{
	struct winsize size;
	bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row;

	req->columns = known ? within(size.ws_col, 40, 400) - 1 : 79;
	req->rows = known ? within(size.ws_row - 2, 16, 200) : 24;
}

static void left_out(size_t n, const char *why, const char *key)
{
	if (n)
		fprintf(stderr, "offsim: plot: left out runs that %s%s: %zu\n", why, key, n);
}

/* Names are a database's, whoever filled it; NULL where there is none. */
static const char *shown(struct arena *a, const char *text)
{
	return text ? utf8_clean(arena_strdup(a, text)) : "";
}

static void report(const struct plot_summary *s, struct arena *a)
{
	left_out(s->n_no_fit, "do not fit in memory", "");
	left_out(s->n_failed, "failed or have no such value", "");
	left_out(s->n_no_x, "have no ", shown(a, s->x));
	if (s->idle)
		fprintf(stderr, "offsim: plot: not drawn, as they hold overhead alone: %s\n", shown(a, s->idle));
	if (s->left_out)
		fprintf(stderr, "offsim: plot: no room for %s\n", shown(a, s->left_out));
	if (!s->mixed)
		return;
	fprintf(stderr, "offsim: plot: some runs of one curve have the same %s; they differ in ", shown(a, s->x));
	if (*s->mixed)
		fprintf(stderr, "%s: --series tells them apart\n", shown(a, s->mixed));
	else
		fprintf(stderr, "nothing that was recorded\n");
}

static int draw(struct plot_request *req)
{
	struct plot_summary summary;
	struct arena a;
	struct err err;

	cmd_arena_init(&a);
	cmd_catch_interrupts(); /* gnuplot gets them too and ends; what is half-written is removed here */
	terminal_size(req);
	int status = plot_draw(req, &a, &summary, &err) ? cmd_fail(&err) : EXIT_DONE;
	if (status == EXIT_DONE)
		report(&summary, &a);
	if (summary.again)
		fprintf(stderr, "offsim: plot: kept; to draw it again: %s\n", summary.again);
	arena_release(&a);
	return cmd_finish_stdout(status);
}

int cmd_plot(int argc, char **argv)
{
	enum { OPT_DB = 256, OPT_VALIDATION, OPT_X, OPT_Y, OPT_SERIES, OPT_TITLE, OPT_KEEP };
	static const struct option options[] = {
		{"db", required_argument, NULL, OPT_DB},
		{"validation", required_argument, NULL, OPT_VALIDATION},
		{"output", required_argument, NULL, 'o'},
		{"terminal", no_argument, NULL, 't'},
		{"x", required_argument, NULL, OPT_X},
		{"y", required_argument, NULL, OPT_Y},
		{"series", required_argument, NULL, OPT_SERIES},
		{"title", required_argument, NULL, OPT_TITLE},
		{"keep", no_argument, NULL, OPT_KEEP},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct plot_request req = {.db = "results.db"};
	bool terminal = false;
	int c;

	while ((c = getopt_long(argc, argv, ":o:th", options, NULL)) != -1) {
		switch (c) {
		case OPT_DB:
			req.db = optarg;
			break;
		case OPT_VALIDATION:
			req.file = optarg;
			break;
		case 'o':
			req.out = optarg;
			break;
		case 't':
			terminal = true;
			break;
		case OPT_X:
			req.x = optarg;
			break;
		case OPT_Y:
			req.y = optarg;
			break;
		case OPT_SERIES:
			req.series = optarg;
			break;
		case OPT_TITLE:
			req.title = optarg;
			break;
		case OPT_KEEP:
			req.keep = true;
			break;
		case 'h':
			usage();
			return cmd_finish_stdout(EXIT_DONE);
		default:
			return cmd_bad_option(argv, options);
		}
	}
	if (argc - optind != 1)
		return cmd_usage_error("plot", "expected one kind of figure (such as '%s'), not %d",
			plot_kinds[0].name, argc - optind);
	if (terminal == (req.out != NULL))
		return cmd_usage_error("plot", "%s",
			terminal ? "give --terminal or -o OUT, not both"
				 : "where to? give -o OUT.svg (or .png, .pdf) or --terminal");
	req.kind = argv[optind];
	return draw(&req);
}
