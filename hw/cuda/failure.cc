#include "hw/cuda/failure.h"

#include <cstdio>
#include <ctime>
#include <new>

#include <unistd.h>

volatile sig_atomic_t interrupted;

/* What is asked to end and waits for a driver that hangs is ended after so long. */
static const unsigned END_S = 30;

/* A second one ends the program, but not right behind the first: Ctrl-C, and what ends a whole group of processes, reaches
   offsim as well, which hands it on. */
static void interrupt(int signal)
{
	static volatile time_t first_s;
	time_t now_s = time(nullptr);

	if (!interrupted) {
		first_s = now_s;
		alarm(END_S);
	} else if (now_s > first_s + 1) {
		_Exit(128 + signal);
	}
	interrupted = 1;
}

void catch_interrupts()
{
	std::signal(SIGINT, interrupt);
	std::signal(SIGTERM, interrupt);
}

int run_command(int (*command)(int argc, char **argv), int argc, char **argv)
{
	try {
		int status = command(argc, argv);
		if (std::fflush(stdout) || std::ferror(stdout))
			throw failure(EXIT_FAILED, "cannot write to standard output");
		return status;
	} catch (const failure &f) {
		std::fprintf(stderr, "offsim-cuda: %s\n", f.what());
		return f.status;
	} catch (const std::bad_alloc &) {
		std::fputs("offsim-cuda: out of memory\n", stderr);
		return EXIT_FAILED;
	} catch (const std::exception &e) { /* the system has no more threads, say */
		std::fprintf(stderr, "offsim-cuda: %s\n", e.what());
		return EXIT_FAILED;
	}
}
