/*
 * cuda_program.h - runs offsim-cuda, a program of its own: this one never links CUDA.
 */
#ifndef SIM_RUN_CUDA_PROGRAM_H
#define SIM_RUN_CUDA_PROGRAM_H

#include <signal.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"

/* A folder of its own below TMPDIR, for what the two programs hand each other; gone with cuda_program_done. */
struct cuda_program {
	const char *path; /* beside this program, else in PATH */
	const char *folder;
	struct arena *arena;
};

/* ERR_IO that says how to build it when there is none. */
int cuda_program_open(struct cuda_program *p, struct arena *a, struct err *err);
/* A file in the folder, by any name without a slash. */
const char *cuda_program_file(const struct cuda_program *p, const char *name);
/* argv: behind the program's name, NULL at its end. What it prints goes to standard error, or nowhere when quiet; when it
   fails, its last line is the message. */
int cuda_program_run(const struct cuda_program *p, const char *const *argv, bool quiet, const volatile sig_atomic_t *interrupted,
	struct err *err);
void cuda_program_done(struct cuda_program *p);

#endif
