#include "hw/cuda/failure.h"

#include <cstdio>
#include <new>

volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
	/* A second one ends the program. */
	if (interrupted)
		_Exit(128 + signal);
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
	}
}
