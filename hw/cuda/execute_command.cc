#include "hw/cuda/execute_command.h"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "hw/cuda/executor.h"
#include "hw/cuda/failure.h"
#include "hw/cuda/json_text.h"
#include "hw/cuda/output_file.h"

static void usage()
{
	puts("usage: offsim-cuda execute GRAPH.opg [-r N] [-d DIR] [-t N] [-o TIMES.json]\n"
	     "\n"
	     "Runs an operation graph ('offsim replay --write GRAPH.opg' makes one): its buffers in GPU memory, in pinned and\n"
	     "pageable memory and in a file, its copies by copy engines, kernels that load the same bytes. Contents are checked.\n"
	     "\n"
	     "  -r, --repeat N       so often, each from idle (1)\n"
	     "  -d, --dir DIR        folder for the file that stands for drives; it is removed (.)\n"
	     "  -t, --threads N      of kernels of a CPU (as the graph says, else one a processor)\n"
	     "  -o, --output FILE    times of every operation and repetition as JSON\n"
	     "  -h, --help           this text\n"
	     "\n"
	     "example: offsim-cuda execute graph.opg --repeat 5 -o times.json");
}

struct execute_args {
	const char *graph = nullptr, *output = nullptr;
	uint64_t repeat = 1;
	executor_options o;
	bool help = false;
};

static uint64_t number(const char *option, const char *text, uint64_t max)
{
	char *end;
	unsigned long long n = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || n < 1 || n > max)
		throw failure(EXIT_BAD_INPUT, std::string(option) + " wants a number from 1 to " + std::to_string(max) + ", not '" + text + "'");
	return n;
}

static execute_args parse(int argc, char **argv)
{
	execute_args a;

	for (int i = 1; i < argc; i++) {
		std::string word = argv[i];
		auto value = [&]() -> const char * {
			if (i + 1 == argc)
				throw failure(EXIT_BAD_INPUT, word + " wants a value");
			return argv[++i];
		};
		if (word == "-h" || word == "--help")
			a.help = true;
		else if (word == "-r" || word == "--repeat")
			a.repeat = number("--repeat", value(), 10000);
		else if (word == "-t" || word == "--threads")
			a.o.threads = (unsigned)number("--threads", value(), 256);
		else if (word == "-d" || word == "--dir")
			a.o.dir = value();
		else if (word == "-o" || word == "--output")
			a.output = value();
		else if (word[0] == '-')
			throw failure(EXIT_BAD_INPUT, "execute has no option '" + word + "'; see offsim-cuda execute --help");
		else if (a.graph)
			throw failure(EXIT_BAD_INPUT, "execute takes one graph, and '" + word + "' is another");
		else
			a.graph = argv[i];
	}
	if (!a.help && !a.graph)
		throw failure(EXIT_BAD_INPUT, "execute wants a graph; see offsim-cuda execute --help");
	return a;
}

template <class T> static void put_list(FILE *to, const char *key, const std::vector<T> &v, const char *end)
{
	fprintf(to, "   \"%s\": [", key);
	for (size_t i = 0; i < v.size(); i++)
		fprintf(to, "%s%.15g", i ? "," : "", (double)v[i]);
	fprintf(to, "]%s\n", end);
}

static void put_times(FILE *to, const execute_args &a, const backend &b, const op_graph &g, const std::vector<executor_times> &runs)
{
	fprintf(to, "{\n \"format\": \"offsim-cuda times 1\",\n \"on\": %s,\n \"graph\": %s,\n \"operations\": %zu,\n \"runs\": [\n",
		json_quoted(b.name()).c_str(), json_quoted(a.graph).c_str(), g.ops.size());
	for (size_t i = 0; i < runs.size(); i++) {
		fputs("  {\n", to);
		put_list(to, "start_s", runs[i].start_s, ",");
		put_list(to, "end_s", runs[i].end_s, ",");
		put_list(to, "moved_bytes", runs[i].moved_bytes, ",");
		put_list(to, "order", runs[i].order, "");
		fprintf(to, "  }%s\n", i + 1 < runs.size() ? "," : "");
	}
	fputs(" ]\n}\n", to);
}

int execute_command(int argc, char **argv, std::unique_ptr<backend> (*open)())
{
	execute_args a = parse(argc, argv);
	std::vector<executor_times> runs;

	if (a.help) {
		usage();
		return 0;
	}
	catch_interrupts();
	op_graph g = op_graph_read(a.graph);
	std::unique_ptr<output_file> out(a.output ? new output_file(a.output) : nullptr);
	std::unique_ptr<backend> b = open();
	auto e = executor_open(g, *b, a.o);
	for (uint64_t i = 0; i < a.repeat; i++) {
		runs.push_back(executor_run(*e));
		printf("run %" PRIu64 ": %zu operations in %zu steps, %.6f s\n", i + 1, g.ops.size(), g.step_end.size(),
			runs.back().end_s[g.step_end.back()]);
	}
	if (out) {
		put_times(out->to, a, *b, g, runs);
		out->commit();
	}
	return 0;
}
