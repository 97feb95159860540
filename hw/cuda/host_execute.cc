/*
 * host_execute.cc - `execute` of offsim-cuda on threads in place of a GPU, for machines that have none: what tests run.
 */
#include <cstdio>
#include <cstring>

#include "hw/cuda/execute_command.h"
#include "hw/cuda/failure.h"

static int command(int argc, char **argv)
{
	if (argc < 2 || strcmp(argv[1], "execute") != 0)
		throw failure(EXIT_BAD_INPUT, "this program stands for offsim-cuda where there is no GPU; it has one command, execute");
	return execute_command(argc - 1, argv + 1, open_host_backend);
}

int main(int argc, char **argv)
{
	return run_command(command, argc, argv);
}
