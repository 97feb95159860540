/*
 * cmd_predict.c - `offsim predict`: from a command line pasted as typed for the engine.
 *
 *	offsim predict --machine M --quant Q --model NAME -- llama-server -m x.gguf -ngl 20 -ot exps=CPU
 *	                                                     └ program ┘  └ its flags: the engine's own table ┘
 *
 * The program names the engine; what offsim must know besides (machine, model, quantization) comes from the options,
 * or from the file behind -m where that exists.
 */
#include <getopt.h>
#include <string.h>

#include "base/suggest.h"
#include "sim/cmd/cmd_scenario.h"
#include "sim/run/run.h"

static const struct program {
	const char *name, *engine;
} programs[] = {
	{"llama-server", "llama.cpp"}, {"llama-cli", "llama.cpp"}, {"llama-bench", "llama.cpp"},
	{"llama-batched-bench", "llama.cpp"}, {"llama-completion", "llama.cpp"},
	{"infer_auto_device_map", "accelerate"},
};

struct predict {
	struct arena arena;
	const char *machine, *model, *quant;
	const char *batch, *prompt, *generate, *depth;
	bool json;
};

static void usage(void)
{
	puts("usage: offsim predict --machine M [--model NAME] [--quant Q] [OPTIONS] -- ENGINE COMMAND LINE\n"
	     "\n"
	     "Predicts what a command line of an engine, pasted as typed, would give.\n"
	     "\n"
	     "      --machine M      a name from 'offsim hw list' or a path\n"
	     "      --model NAME     a name from 'offsim model list' or a path; default: the file behind -m\n"
	     "      --quant Q        element type or mix, where the model is no file that says it\n"
	     "      --batch N, --prompt N, --generate N, --depth N   the workload (1, 512, 128, 0; llama-bench's own -p,\n"
	     "                       -n and -d where they are given)\n"
	     "      --json           one JSON document on standard output, SI units\n"
	     "  -h, --help           this text\n"
	     "\n"
	     "example: offsim predict --machine desktop-rtx4090-ddr5 --model llama-3.1-70b --quant q4_0 -- llama-server -ngl 40\n"
	     "         offsim predict --machine desktop-rtx4090-ddr5 --model llama-2-13b --quant f16 -- \\\n"
	     "             'infer_auto_device_map(model, max_memory={0: \"22GiB\", \"cpu\": \"64GiB\"})'");
}

static const char *engine_of(const char *word, const char **program)
{
	const char *slash = strrchr(word, '/'), *name = slash ? slash + 1 : word;

	for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
		size_t len = strlen(programs[i].name);
		if (strncmp(name, programs[i].name, len) == 0 && (name[len] == '\0' || name[len] == '(')) {
			*program = programs[i].name;
			return programs[i].engine;
		}
	}
	return NULL;
}

static int unknown_program(const char *word)
{
	struct suggest s;
	char near[128];

	suggest_init(&s, word);
	for (size_t i = 0; i < ARRAY_LEN(programs); i++)
		suggest_offer(&s, programs[i].name);
	return cmd_usage_error("predict", "no engine is known by the program '%s'%s", word,
		suggest_text(&s, near, sizeof(near)));
}

/* A word in single quotes for YAML and for the engine's own word splitting. */
static const char *quoted(struct arena *a, const char *word)
{
	const char *out = "\"";

	for (const char *p = word; *p; p++)
		out = arena_printf(a, *p == '\'' ? "%s''" : "%s%c", out, *p);
	return arena_printf(a, "%s\"", out);
}

/* The words behind the program, as the text of `flags:`. What names the model or the workload is taken out. */
static const char *flags_text(struct predict *p, int argc, char **argv, bool bench)
{
	static const struct {
		const char *name;
		bool bench;
		size_t field;
	} taken[] = {
		{"-m", false, offsetof(struct predict, model)}, {"--model", false, offsetof(struct predict, model)},
		{"-p", true, offsetof(struct predict, prompt)}, {"-n", true, offsetof(struct predict, generate)},
		{"-d", true, offsetof(struct predict, depth)},
	};
	const char *text = "";

	for (int i = 0; i < argc; i++) {
		bool took = false;
		for (size_t k = 0; k < ARRAY_LEN(taken) && i + 1 < argc; k++) {
			if (strcmp(argv[i], taken[k].name) || (taken[k].bench && !bench))
				continue;
			const char **field = (const char **)((char *)p + taken[k].field);
			if (!*field)
				*field = argv[i + 1];
			i++;
			took = true;
			break;
		}
		if (!took)
			text = arena_printf(&p->arena, "%s %s", text, quoted(&p->arena, argv[i]));
	}
	return text;
}

/* The argument of max_memory= in the text of a call. */
static const char *call_flags(struct predict *p, int argc, char **argv)
{
	const char *text = "";

	for (int i = 0; i < argc; i++)
		text = arena_printf(&p->arena, "%s %s", text, argv[i]);
	const char *map = strstr(text, "max_memory"), *open = map ? strchr(map, '{') : NULL;
	const char *close = open ? strchr(open, '}') : NULL;
	return close ? arena_printf(&p->arena, "{max_memory: %.*s}", (int)(close - open + 1), open) : "{}";
}

static const char *or_else(const char *s, const char *def)
{
	return s ? s : def;
}

static const char *scenario_text(struct predict *p, int argc, char **argv, const char *engine, const char *program)
{
	bool call = strcmp(program, "infer_auto_device_map") == 0;
	const char *flags = call ? call_flags(p, argc, argv) :
				   arena_printf(&p->arena, "'%s'",
					   flags_text(p, argc - 1, argv + 1, strcmp(program, "llama-bench") == 0));

	return arena_printf(&p->arena,
		"model: %s\n%s%s%smachine: %s\nengine: %s\nflags: %s\n"
		"workload: {batch: %s, prompt: %s, generate: %s, depth: %s}\n",
		or_else(p->model, "\"\""), p->quant ? "quant: " : "", or_else(p->quant, ""), p->quant ? "\n" : "", p->machine,
		engine, flags, or_else(p->batch, "1"), or_else(p->prompt, "512"), or_else(p->generate, "128"),
		or_else(p->depth, "0"));
}

static int predict(struct predict *p, int argc, char **argv)
{
	const char *program, *engine = engine_of(argv[0], &program);
	struct run_options options = {.interval = true, .interrupted = &cmd_interrupted};
	struct scenario *s;
	struct result r;
	struct run_why why;
	struct err err = {0};

	if (!engine)
		return unknown_program(argv[0]);
	const char *text = scenario_text(p, argc, argv, engine, program);
	if (!p->model)
		return cmd_usage_error("predict", "which model? --model NAME, or -m FILE in the command line");
	if (scenario_load_text(text, "command line", &p->arena, &s, &err) ||
		run_scenario(s, &options, &p->arena, &r, p->json ? NULL : &why, &err))
		return cmd_fail(&err);
	if (p->json)
		result_print_json(&r, stdout);
	else
		cmd_print_run(s, &r, &why);
	return r.fits ? EXIT_DONE : EXIT_NO_FIT;
}

int cmd_predict(int argc, char **argv)
{
	static const struct option options[] = {
		{"machine", required_argument, NULL, 'M'},
		{"model", required_argument, NULL, 'm'},
		{"quant", required_argument, NULL, 'q'},
		{"batch", required_argument, NULL, 'b'},
		{"prompt", required_argument, NULL, 'p'},
		{"generate", required_argument, NULL, 'g'},
		{"depth", required_argument, NULL, 'd'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct predict p = {0};
	int c;

	while ((c = getopt_long(argc, argv, "+:h", options, NULL)) != -1) {
		switch (c) {
		case 'M':
			p.machine = optarg;
			break;
		case 'm':
			p.model = optarg;
			break;
		case 'q':
			p.quant = optarg;
			break;
		case 'b':
			p.batch = optarg;
			break;
		case 'p':
			p.prompt = optarg;
			break;
		case 'g':
			p.generate = optarg;
			break;
		case 'd':
			p.depth = optarg;
			break;
		case 'j':
			p.json = true;
			break;
		case 'h':
			usage();
			return cmd_finish_stdout(EXIT_DONE);
		default:
			return cmd_bad_option(argv, options);
		}
	}
	if (!p.machine)
		return cmd_usage_error("predict", "which machine? --machine M");
	if (optind == argc)
		return cmd_usage_error("predict", "no command line behind '--'");
	cmd_arena_init(&p.arena);
	cmd_catch_interrupts();
	int status = predict(&p, argc - optind, argv + optind);
	arena_release(&p.arena);
	return cmd_finish_stdout(status);
}
