/*
 * main.c - the table of commands.
 */
#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/suggest.h"
#include "sim/cmd/cmd.h"

const struct cmd cmd_table[] = {
	{"run", cmd_run, "simulate one scenario, print the result and store it"},
	{"predict", cmd_predict, "the same from a command line pasted as typed for the engine"},
	{"place", cmd_place, "show where everything goes and whether it fits; no simulation"},
	{"explain", cmd_explain, "what sets the pace of a scenario, and what more of each resource would give"},
	{"sweep", cmd_sweep, "simulate a scenario's 'sweep' grid, in parallel, resumable"},
	{"validate", cmd_validate, "hold predictions against a corpus of published measurements"},
	{"timeline", cmd_timeline, "what each device, link and memory did when, for Perfetto"},
	{"replay", cmd_replay, "run a scenario's own operations on this machine or its GPUs, beside the simulation"},
	{"plot", cmd_plot, "draw a figure from results.db with gnuplot"},
	{"calibrate", cmd_calibrate, "measure this machine and its GPUs, or take what benchmark programs measured, and write its profile"},
	{"hw", cmd_hw, "list and show machines and their parts, describe this one"},
	{"model", cmd_model, "list and show models"},
	{"trace", cmd_trace, "make, import and convert traces of steps or requests"},
	{"flows", cmd_flows, "the bare bandwidth-sharing engine: links and flows in, finish times out"},
	{"help", cmd_help, "help for a command, or for every scenario key (help keys)"},
};
const size_t cmd_table_n = ARRAY_LEN(cmd_table);

volatile sig_atomic_t cmd_interrupted;

static void on_signal(int sig)
{
	cmd_interrupted = 1;
	signal(sig, SIG_DFL);
}

void cmd_catch_interrupts(void)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

static void out_of_memory(void *ctx)
{
	(void)ctx;
	fputs("offsim: out of memory\n", stderr);
	exit(EXIT_FAILED);
}

void cmd_arena_init(struct arena *a)
{
	arena_init(a, out_of_memory, NULL);
}

int cmd_fail(const struct err *err)
{
	err_print(err, stderr);
	return err_exit_status(err);
}

int cmd_usage_error(const char *name, const char *fmt, ...)
{
	struct err err;
	char msg[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	err_set(&err, ERR_USAGE, "%s: %s (see 'offsim %s --help')", name, msg, name);
	return cmd_fail(&err);
}

int cmd_bad_option(char **argv, const struct option *options)
{
	/* For an unknown long option optopt is 0 and argv[optind - 1] is the culprit; for a long option that
	   lacks its argument, or was given one it does not take, optopt is its val. */
	const char *word = argv[optind - 1];

	for (const struct option *o = options; o->name && strncmp(word, "--", 2) == 0; o++) {
		if (optopt != 0 && o->val == optopt) {
			return o->has_arg ? cmd_usage_error(argv[0], "option '--%s' needs a value", o->name) :
					    cmd_usage_error(argv[0], "option '--%s' takes no value", o->name);
		}
	}
	if (optopt != 0)
		return cmd_usage_error(argv[0], "unknown option '-%c'", optopt);

	struct suggest s;
	char near[128], bare[64];
	snprintf(bare, sizeof(bare), "%.*s", (int)strcspn(word + 2, "="), word + 2);
	suggest_init(&s, bare);
	for (const struct option *o = options; o->name; o++)
		suggest_offer(&s, o->name);
	return cmd_usage_error(argv[0], "unknown option '--%s'%s", bare, suggest_text(&s, near, sizeof(near)));
}

int cmd_parse_workers(const char *text, unsigned *workers)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	*workers = (unsigned)n;
	return end == text || *end || text[0] == '-' || n < 1 || n > 1024 ? -1 : 0;
}

int cmd_finish_stdout(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;

	/* Who reads has seen enough: head(1), a pager. */
	if (errno == EPIPE)
		return 1;
	struct err err;
	err_set(&err, ERR_IO, "cannot write to standard output: %s", strerror(errno));
	return cmd_fail(&err);
}

int main(int argc, char **argv)
{
	/* Numbers are written with a point whatever the user's locale: LC_NUMERIC stays "C". */
	setlocale(LC_CTYPE, "");
	signal(SIGPIPE, SIG_IGN);
	opterr = 0;

	if (argc < 2) {
		char *help[] = {(char[]){"help"}, NULL};
		cmd_help(1, help);
		return EXIT_BAD_INPUT;
	}
	const char *name = argv[1];
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
		printf("offsim %s\n", OFFSIM_VERSION);
		return cmd_finish_stdout(EXIT_DONE);
	}
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		name = "help";

	struct suggest s;
	suggest_init(&s, name);
	for (size_t i = 0; i < cmd_table_n; i++) {
		if (strcmp(cmd_table[i].name, name) == 0)
			return cmd_table[i].run(argc - 1, argv + 1);
		suggest_offer(&s, cmd_table[i].name);
	}

	struct err err;
	char near[128];
	err_set(&err, ERR_USAGE, "unknown command '%s'%s (see 'offsim help')", name,
		suggest_text(&s, near, sizeof(near)));
	return cmd_fail(&err);
}
