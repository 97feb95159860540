#include "hw/cuda/failure.h"

#include <cstdio>
#include <new>

volatile sig_atomic_t interrupted;

/* The second of a kind ends the program. Not one of each: what Ctrl-C sends here it sends offsim as well, which hands it on. */
static void interrupt(int signal)
{
	int kind = signal == SIGINT ? 1 : 2;

	if (interrupted & kind)
		_Exit(128 + signal);
	interrupted = interrupted | kind;
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
