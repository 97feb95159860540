#include "sim/cmd/cmd_pasted.h"

#include <getopt.h>
#include <string.h>

#include "base/suggest.h"
#include "base/vec.h"

#define COMMAND_LINE "command line"

const char pasted_usage[] =
	"      --machine M      a name from 'offsim hw list' or a path\n"
	"      --model NAME     a name from 'offsim model list' or a path; default: the file behind -m\n"
	"      --quant Q        element type or mix, where the model is no file that says it; default: dtype= of a call\n"
	"      --batch N, --prompt N, --generate N, --depth N   the workload (1, 512, 128, 0; llama-bench's own -p,\n"
	"                       -n and -d where they are given)\n";

static const struct program {
	const char *name, *engine;
} programs[] = {
	{"llama-server", "llama.cpp"}, {"llama-cli", "llama.cpp"}, {"llama-bench", "llama.cpp"},
	{"llama-batched-bench", "llama.cpp"}, {"llama-completion", "llama.cpp"},
};

static const char *engine_of(const char *word, const char **program)
{
	const char *slash = strrchr(word, '/'), *name = slash ? slash + 1 : word;

	for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
		if (strcmp(name, programs[i].name) == 0) {
			*program = programs[i].name;
			return programs[i].engine;
		}
	}
	return NULL;
}

/* The engine whose call this is; NULL when it has none. */
static const struct engine_ops *engine_of_call(const char *text)
{
	const struct engine_ops *e;

	for (size_t i = 0; python_is_call(text) && (e = engine_at(i)); i++)
		if (e->n_calls)
			return e;
	return NULL;
}

static int unknown_program(const struct pasted *p, const char *word)
{
	struct suggest s;
	char near[128];

	suggest_init(&s, word);
	for (size_t i = 0; i < ARRAY_LEN(programs); i++)
		suggest_offer(&s, programs[i].name);
	return cmd_usage_error(p->command, "no engine is known by the program '%s'%s", word,
		suggest_text(&s, near, sizeof(near)));
}

/* A text that grows; what it is made into is the arena's. */
struct text {
	VEC(char);
	struct arena *arena;
};

static void append(struct text *t, const char *s)
{
	size_t len = strlen(s);

	VEC_RESERVE(t, t->arena, t->n + len + 1);
	memcpy(t->at + t->n, s, len + 1);
	t->n += len;
}

static void append_blanks(struct text *t, size_t n)
{
	VEC_RESERVE(t, t->arena, t->n + n + 1);
	memset(t->at + t->n, ' ', n);
	t->n += n;
	t->at[t->n] = '\0';
}

/* A word for the engine's own word splitting. */
static const char *quoted(struct arena *a, const char *word)
{
	if (*word && !strpbrk(word, " \t\n\"'"))
		return word;
	return arena_printf(a, strchr(word, '"') ? "'%s'" : "\"%s\"", word);
}

/* The words behind the program, as the text of `flags:`. What names the model or the workload is taken out, and blanks
   left where it was. */
static const char *flags_text(struct pasted *p, int argc, char **argv, bool bench)
{
	static const struct {
		const char *name;
		bool bench;
		size_t field;
	} taken[] = {
		{"-m", false, offsetof(struct pasted, model)}, {"--model", false, offsetof(struct pasted, model)},
		{"-p", true, offsetof(struct pasted, prompt)}, {"-n", true, offsetof(struct pasted, generate)},
		{"-d", true, offsetof(struct pasted, depth)},
	};
	struct text text = {.arena = &p->arena};

	append(&text, "");
	for (int i = 0; i < argc; i++) {
		bool took = false;
		for (size_t k = 0; k < ARRAY_LEN(taken) && i + 1 < argc; k++) {
			if (strcmp(argv[i], taken[k].name) || (taken[k].bench && !bench))
				continue;
			const char **field = (const char **)((char *)p + taken[k].field);
			if (!*field)
				*field = argv[i + 1];
			i++;
			append_blanks(&text, strlen(argv[i - 1]) + strlen(quoted(&p->arena, argv[i])) + 2);
			took = true;
			break;
		}
		if (took)
			continue;
		append(&text, quoted(&p->arena, argv[i]));
		append(&text, " ");
	}
	return text.at;
}

/* The quantization that dtype= asks for. The engine reads the call again and says what else is wrong with it. */
static int take_dtype(struct pasted *p, const struct engine_ops *e, const char *text, struct err *err)
{
	static const char *const types[][2] = {
		{"float16", "f16"}, {"half", "f16"}, {"bfloat16", "bf16"}, {"float32", "f32"}, {"float", "f32"}};
	const struct err_pos begin = {COMMAND_LINE, 1, 1};
	const struct python_function *f;
	struct yaml_node *map;

	if (python_call_parse(text, &begin, e->call, e->n_calls, &p->arena, &map, &f, err))
		return -1;
	const struct yaml_node *dtype = yaml_get(map, "dtype") ? yaml_get(map, "dtype") : yaml_get(map, "torch_dtype");
	if (!dtype || dtype->kind != YAML_SCALAR || strcmp(dtype->text, "auto") == 0)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		if (strcmp(dtype->text, types[i][0]))
			continue;
		if (p->quant && strcmp(p->quant, types[i][1]))
			return err_at(err, ERR_INPUT, &dtype->pos, "dtype %s is not --quant %s", dtype->text, p->quant);
		p->quant = types[i][1];
		return 0;
	}
	return err_at(err, ERR_INPUT, &dtype->pos, "dtype '%s' is not known; float16, bfloat16 or float32", dtype->text);
}

static const char *or_else(const char *s, const char *def)
{
	return s ? s : def;
}

/* A word as YAML: nothing in it has a meaning. */
static const char *yaml_word(struct arena *a, const char *word)
{
	char *out = arena_alloc(a, 2 * strlen(word) + 3), *to = out;

	*to++ = '\'';
	for (const char *at = word; *at; *to++ = *at++)
		if (*at == '\'')
			*to++ = '\'';
	*to++ = '\'';
	*to = '\0';
	return out;
}

static const char *scenario_text(struct pasted *p, const char *engine)
{
	return arena_printf(&p->arena,
		"model: %s\n%s%s%smachine: %s\nengine: %s\n"
		"workload: {batch: %s, prompt: %s, generate: %s, depth: %s}\n",
		yaml_word(&p->arena, p->model), p->quant ? "quant: " : "", p->quant ? yaml_word(&p->arena, p->quant) : "",
		p->quant ? "\n" : "", yaml_word(&p->arena, p->machine), engine, yaml_word(&p->arena, or_else(p->batch, "1")),
		yaml_word(&p->arena, or_else(p->prompt, "512")), yaml_word(&p->arena, or_else(p->generate, "128")),
		yaml_word(&p->arena, or_else(p->depth, "0")));
}

int pasted_load(struct pasted *p)
{
	const char *program, *engine, *flags;
	struct text call = {.arena = &p->arena};
	struct err err = {0};
	int col = 1;

	for (int i = 0; i < p->argc; i++) {
		append(&call, i ? " " : "");
		append(&call, p->argv[i]);
	}
	const struct engine_ops *called = engine_of_call(call.at);
	if (called) {
		engine = called->name;
		flags = call.at;
		if (take_dtype(p, called, call.at, &err))
			return cmd_fail(&err);
	} else {
		engine = engine_of(p->argv[0], &program);
		if (!engine)
			return unknown_program(p, p->argv[0]);
		flags = flags_text(p, p->argc - 1, p->argv + 1, strcmp(program, "llama-bench") == 0);
		col += (int)strlen(p->argv[0]) + 1;
	}
	if (!p->model)
		return cmd_usage_error(p->command, "which model? --model NAME%s", called ? "" :
			", or -m FILE in the command line");
	if (scenario_load_typed(scenario_text(p, engine), COMMAND_LINE, flags, col, &p->arena, &p->scenario, &err))
		return cmd_fail(&err);
	return -1;
}

int pasted_parse(struct pasted *p, int argc, char **argv, void (*usage)(void))
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
	int c;

	*p = (struct pasted){.command = argv[0]};
	while ((c = getopt_long(argc, argv, "+:h", options, NULL)) != -1) {
		switch (c) {
		case 'M':
			p->machine = optarg;
			break;
		case 'm':
			p->model = optarg;
			break;
		case 'q':
			p->quant = optarg;
			break;
		case 'b':
			p->batch = optarg;
			break;
		case 'p':
			p->prompt = optarg;
			break;
		case 'g':
			p->generate = optarg;
			break;
		case 'd':
			p->depth = optarg;
			break;
		case 'j':
			p->json = true;
			break;
		case 'h':
			usage();
			return cmd_finish_stdout(EXIT_DONE);
		default:
			return cmd_bad_option(argv, options);
		}
	}
	if (!p->machine)
		return cmd_usage_error(argv[0], "which machine? --machine M");
	if (optind == argc)
		return cmd_usage_error(argv[0], "no command line behind '--'");
	p->argc = argc - optind;
	p->argv = argv + optind;
	cmd_arena_init(&p->arena);
	cmd_catch_interrupts();
	return -1;
}

void pasted_release(struct pasted *p)
{
	arena_release(&p->arena);
}
