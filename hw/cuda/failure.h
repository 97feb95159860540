/*
 * failure.h - how this program fails: with one line for people and an exit status.
 */
#ifndef HW_CUDA_FAILURE_H
#define HW_CUDA_FAILURE_H

#include <csignal>
#include <stdexcept>
#include <string>

enum { EXIT_FAILED = 1, EXIT_BAD_INPUT = 2 };

struct failure : std::runtime_error {
	int status;
	failure(int exit_status, const std::string &what) : std::runtime_error(what), status(exit_status) {}
};

/* Set by SIGINT and SIGTERM. */
extern volatile sig_atomic_t interrupted;
void catch_interrupts();

/* Runs what may fail, prints the one line, returns the exit status. */
int run_command(int (*command)(int argc, char **argv), int argc, char **argv);

#endif
