/*
 * cmd.h - the commands, one file each, and what they share.
 *
 * To add one: write cmd_NAME.c with cmd_NAME(), declare it here, add a row to the table in main.c.
 */
#ifndef SIM_CMD_CMD_H
#define SIM_CMD_CMD_H

#include <signal.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"

/* Exit statuses (cli.md). */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_BAD_INPUT = 2, EXIT_NO_FIT = 3, EXIT_BOUND = 4 };

struct cmd {
	const char *name;
	int (*run)(int argc, char **argv); /* argv[0] is the name; returns the exit status */
	const char *help;                  /* one line */
};
extern const struct cmd cmd_table[];
extern const size_t cmd_table_n;

int cmd_calibrate(int argc, char **argv);
int cmd_calibrate_cuda(int argc, char **argv);
int cmd_calibrate_from(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_flows(int argc, char **argv);
int cmd_help(int argc, char **argv);
int cmd_hw(int argc, char **argv);
int cmd_model(int argc, char **argv);
int cmd_place(int argc, char **argv);
int cmd_plot(int argc, char **argv);
int cmd_predict(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_sweep(int argc, char **argv);
int cmd_timeline(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_validate(int argc, char **argv);

/* Those of `offsim trace`; argv[0] is "trace NAME". */
int cmd_trace_convert(int argc, char **argv);
int cmd_trace_gen(int argc, char **argv);
int cmd_trace_import(int argc, char **argv);
int cmd_trace_info(int argc, char **argv);
/* offsim hw probe: out is where the profile goes ("-": stdout), root a recorded machine; both may be NULL. */
int cmd_hw_probe(struct arena *a, const char *out, const char *root, bool json);

/* An arena that says "out of memory" and exits 1 when there is none. */
void cmd_arena_init(struct arena *a);
/* Prints err and returns its exit status. */
int cmd_fail(const struct err *err);
/* "offsim NAME: what is wrong" with a hint at --help; returns EXIT_BAD_INPUT. For getopt_long's '?' say
   what was wrong with cmd_bad_option(argv). */
int cmd_usage_error(const char *name, const char *fmt, ...) PRINTF_LIKE(2, 3);
struct option;
/* getopt_long said '?' or ':' (opterr must be 0): names the option and the nearest of `options`. */
int cmd_bad_option(char **argv, const struct option *options);
/* -j N: 0, or -1 when it is no number from 1 to 1024. */
int cmd_parse_workers(const char *text, unsigned *workers);
/* Flushes stdout: EXIT_FAILED with a message when not everything could be written (full disk, closed pipe), else status. */
int cmd_finish_stdout(int status);

/* What is in a native trace that was just written, as one line or as JSON; returns the exit status. */
int cmd_trace_report(const char *path, bool json);

/* Set by SIGINT and SIGTERM once cmd_catch_interrupts() was called; a second signal ends the program. */
extern volatile sig_atomic_t cmd_interrupted;
void cmd_catch_interrupts(void);

#endif
