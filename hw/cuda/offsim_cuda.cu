/*
 * offsim_cuda.cu - offsim-cuda: measures the GPUs of this machine, and runs operation graphs on them.
 */
#include <cstdio>
#include <cstring>

#include "hw/cuda/execute_command.h"
#include "hw/cuda/failure.h"
#include "hw/cuda/gpu_calibrate.h"

static void usage()
{
	puts("usage: offsim-cuda calibrate|execute [OPTION]...   (--help after either says more)\n"
	     "\n"
	     "  calibrate   measure copies, memory, products and launches; 'offsim calibrate cuda' makes a profile of it\n"
	     "  execute     run an operation graph; 'offsim replay SCENARIO.yaml --on cuda' compares it with the simulation\n"
	     "  --version   of this program and of CUDA\n"
	     "\n"
	     "example: offsim-cuda calibrate -o raw.json");
}

static int command(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";

	if (strcmp(word, "calibrate") == 0)
		return calibrate_command(argc - 1, argv + 1);
	if (strcmp(word, "execute") == 0)
		return execute_command(argc - 1, argv + 1, open_cuda_backend);
	if (strcmp(word, "--version") == 0) {
		printf("offsim-cuda %s, CUDA %d.%d\n", OFFSIM_VERSION, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
		return 0;
	}
	if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0) {
		usage();
		return 0;
	}
	throw failure(EXIT_BAD_INPUT, std::string("there is no command '") + word + "'; see offsim-cuda --help");
}

int main(int argc, char **argv)
{
	return run_command(command, argc, argv);
}
