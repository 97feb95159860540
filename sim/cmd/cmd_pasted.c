#include "sim/cmd/cmd_pasted.h"

#include <ctype.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/suggest.h"
#include "base/vec.h"
#include "sim/cmd/cmd_pasted_front.h"
#include "sim/cmd/cmd_pasted_model.h"

#define COMMAND_LINE "command line"

const char pasted_usage[] =
	"      --machine M      a name from 'offsim hw list' or a path\n"
	"      --model NAME     a name from 'offsim model list' or a path; default: what -m or the call names (of a\n"
	"                       file that is not here, its name)\n"
	"      --quant Q        element type or mix, where the model is no file that says it; default: what the file's name\n"
	"                       says, or dtype= of a call\n"
	"      --batch N, --prompt N, --generate N, --depth N   the workload (1, 512, 128, 0; llama-bench's own -p,\n"
	"                       -n and -d where they are given)\n";

#define PROGRAM_WORDS 3

/* How a program names what is no flag of its engine: model and workload. */
enum dialect {
	DIALECT_SERVER = 1, DIALECT_BENCH = 2, DIALECT_FLEXGEN = 4, DIALECT_ZERO = 8, DIALECT_EXLLAMA = 16, DIALECT_TABBY = 32,
	DIALECT_DS4_BENCH = 64,
};

/* The words that a command line begins with; of the first any folder before it is passed over, and any version behind
   "python". */
static const struct program {
	const char *word[PROGRAM_WORDS];
	const char *engine;
	enum dialect dialect;
	bool model_follows; /* as the first word behind them that is no flag */
	const char *script; /* named further on: a launcher's own flags come before it */
	/* What the program gives its engine when the command line does not, by either name, and the engine would not. */
	struct {
		const char *name, *alias, *value;
	} unsaid[2];
} programs[] = {
	{{"llama-server"}, "llama.cpp", .dialect = DIALECT_SERVER}, {{"llama-cli"}, "llama.cpp", .dialect = DIALECT_SERVER},
	{{"llama-bench"}, "llama.cpp", .dialect = DIALECT_BENCH},
	{{"llama-batched-bench"}, "llama.cpp", .dialect = DIALECT_SERVER},
	{{"llama-completion"}, "llama.cpp", .dialect = DIALECT_SERVER},
	{{"vllm", "serve"}, "vllm", .dialect = DIALECT_SERVER, .model_follows = true},
	{{"python", "-m", "vllm.entrypoints.openai.api_server"}, "vllm", .dialect = DIALECT_SERVER},
	{{"python", "-m", "sglang.launch_server"}, "sglang", .dialect = DIALECT_SERVER},
	{{"python", "-m", "flexllmgen.flex_opt"}, "flexgen", .dialect = DIALECT_FLEXGEN},
	{{"flexllmgen.flex_opt"}, "flexgen", .dialect = DIALECT_FLEXGEN},
	{{"deepspeed"}, "zero-inference", .dialect = DIALECT_ZERO, .script = "run_model.py"},
	{{"run_model.py"}, "zero-inference", .dialect = DIALECT_ZERO},
	/* turboderp-org/exllamav3 4f8ad01, eval/perf.py and examples/chat.py; theroyallab/tabbyAPI e632af4, main.py */
	{{"python"}, "exllama", .dialect = DIALECT_EXLLAMA, .script = "perf.py",
		.unsaid = {{"--chunk_size", "-chunk_size", "4096"}, {"--cache_size", "-cs", "32768"}}},
	{{"python"}, "exllama", .dialect = DIALECT_EXLLAMA, .script = "chat.py", .unsaid = {{"--cache_size", "-cs", "32768"}}},
	{{"python"}, "exllama", .dialect = DIALECT_TABBY, .script = "main.py"},
	/* antirez/ds4 8d57664, ds4_cli.c, ds4_server.c, ds4_bench.c */
	{{"ds4"}, "ds4", .dialect = DIALECT_SERVER, .unsaid = {{"--ctx", "-c", "32768"}}},
	{{"ds4-server"}, "ds4", .dialect = DIALECT_SERVER, .unsaid = {{"--ctx", "-c", "32768"}}},
	{{"ds4-bench"}, "ds4", .dialect = DIALECT_DS4_BENCH},
};

/* "python", "python3", "python3.12" */
static bool is_python(const char *word)
{
	const char *name = pasted_without_folder(word);

	return strncmp(name, "python", 6) == 0 && strspn(name + 6, "0123456789.") == strlen(name + 6);
}

static bool begins_with(const struct pasted *p, const char *word)
{
	return strcmp(word, "python") == 0 ? is_python(p->argv[0]) : strcmp(word, pasted_without_folder(p->argv[0])) == 0;
}

static int n_words(const struct program *g)
{
	int n = 0;

	while (n < PROGRAM_WORDS && g->word[n])
		n++;
	return n;
}

/* How many words the program takes up, its script with them; 0 where that is missing. */
static int length(const struct pasted *p, const struct program *g)
{
	if (!g->script)
		return n_words(g);
	for (int i = n_words(g); i < p->argc; i++)
		if (strcmp(pasted_without_folder(p->argv[i]), g->script) == 0)
			return i + 1;
	return 0;
}

static const struct program *find_program(const struct pasted *p)
{
	for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
		const struct program *g = &programs[i];
		int k = 0, n = n_words(g);
		while (k < n && k < p->argc && (k ? strcmp(p->argv[k], g->word[k]) == 0 : begins_with(p, g->word[0])))
			k++;
		if (k == n && length(p, g) > 0)
			return g;
	}
	return NULL;
}

/* The engine whose call this is, the first that has calls when none is named; NULL when it is no call. */
static const struct engine_ops *engine_of_call(const char *text)
{
	const struct engine_ops *e, *first = NULL;

	for (size_t i = 0; python_is_call(text) && (e = engine_at(i)); i++) {
		if (python_names(text, e->call, e->n_calls))
			return e;
		if (e->n_calls && !first)
			first = e;
	}
	return first;
}

static int unknown_program(const struct pasted *p)
{
	const char *begin = pasted_without_folder(p->argv[0]);
	char two[128];
	struct suggest s;
	char near[128];

	/* "python -m x": which module it is; "python x.py": which script; "vllm x": which command. */
	if (p->argc > 2 && is_python(begin) && strcmp(p->argv[1], "-m") == 0)
		begin = p->argv[2];
	for (int i = 1; i < p->argc && is_python(begin); i++)
		if (p->argv[i][0] != '-')
			begin = pasted_without_folder(p->argv[i]);
	if (is_python(begin))
		return cmd_usage_error(p->command, "'%s' alone names no engine: behind it stands a script, or -m and a module", begin);
	for (size_t i = 0; i < ARRAY_LEN(programs); i++)
		if (programs[i].script && strcmp(begin, programs[i].word[0]) == 0)
			return cmd_usage_error(p->command, "of '%s' only '%s ... %s' is known", begin, begin, programs[i].script);
	suggest_init(&s, begin);
	for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
		const struct program *g = &programs[i];
		if (n_words(g) == 2) {
			bool same = strcmp(begin, g->word[0]) == 0;
			snprintf(two, sizeof(two), "%s %s", g->word[0], g->word[1]);
			if (same)
				return cmd_usage_error(p->command, "of '%s' only '%s' is known", begin, two);
		}
		suggest_offer(&s, g->script ? g->script : g->word[n_words(g) == PROGRAM_WORDS ? PROGRAM_WORDS - 1 : 0]);
	}
	return cmd_usage_error(p->command, "no engine is known by the program '%s'%s", begin,
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

/* The words behind the program, as the text of `flags:`. What names the model or the workload is taken out, and blanks
   left where it was. */
static char *flags_text(struct pasted *p, int argc, char **argv, enum dialect dialect)
{
	static const struct {
		const char *name;
		int dialects;
		size_t field;
	} taken[] = {
		{"-m", DIALECT_SERVER | DIALECT_BENCH | DIALECT_EXLLAMA | DIALECT_DS4_BENCH, offsetof(struct pasted, named)},
		{"--model", ~0, offsetof(struct pasted, named)},
		{"--model-path", DIALECT_SERVER, offsetof(struct pasted, named)},
		{"--model_dir", DIALECT_EXLLAMA, offsetof(struct pasted, named)},
		{"--model-name", DIALECT_TABBY, offsetof(struct pasted, named)},
		{"-hf", DIALECT_SERVER | DIALECT_BENCH, offsetof(struct pasted, hub)},
		{"-hfr", DIALECT_SERVER | DIALECT_BENCH, offsetof(struct pasted, hub)},
		{"--hf-repo", DIALECT_SERVER | DIALECT_BENCH, offsetof(struct pasted, hub)},
		{"-hff", DIALECT_SERVER | DIALECT_BENCH, offsetof(struct pasted, weights)},
		{"--hf-file", DIALECT_SERVER | DIALECT_BENCH, offsetof(struct pasted, weights)},
		{"--quantization", DIALECT_SERVER, offsetof(struct pasted, quantization)},
		{"-p", DIALECT_BENCH, offsetof(struct pasted, prompt)}, {"-n", DIALECT_BENCH, offsetof(struct pasted, generate)},
		{"-d", DIALECT_BENCH, offsetof(struct pasted, depth)},
		{"--prompt-len", DIALECT_FLEXGEN | DIALECT_ZERO, offsetof(struct pasted, prompt)},
		{"--gen-len", DIALECT_FLEXGEN | DIALECT_ZERO, offsetof(struct pasted, generate)},
		{"--batch-size", DIALECT_ZERO, offsetof(struct pasted, batch)},
		{"--ctx-start", DIALECT_DS4_BENCH, offsetof(struct pasted, prompt)},
		{"--ctx-max", DIALECT_DS4_BENCH, offsetof(struct pasted, last_frontier)},
		{"--gen-tokens", DIALECT_DS4_BENCH, offsetof(struct pasted, generate)},
		{"--tokens", DIALECT_DS4_BENCH, offsetof(struct pasted, generate)},
		{"-n", DIALECT_DS4_BENCH, offsetof(struct pasted, generate)},
	};
	struct text text = {.arena = &p->arena};

	append(&text, "");
	for (int i = 0; i < argc; i++) {
		const char **field = NULL, *value = NULL;
		size_t blanks = strlen(pasted_quoted(&p->arena, argv[i])) + 1;
		for (size_t k = 0; k < ARRAY_LEN(taken) && !value; k++) {
			size_t len = strlen(taken[k].name);
			if (!(taken[k].dialects & (int)dialect) || strncmp(argv[i], taken[k].name, len))
				continue;
			field = (const char **)((char *)p + taken[k].field);
			if (argv[i][len] == '\0' && i + 1 < argc)
				value = argv[i + 1];
			else if (argv[i][len] == '=' && argv[i][1] == '-')
				value = argv[i] + len + 1;
		}
		if (value) {
			if (!*field)
				*field = value;
			if (i + 1 < argc && value == argv[i + 1])
				blanks += strlen(pasted_quoted(&p->arena, argv[++i])) + 1;
			append_blanks(&text, blanks);
			continue;
		}
		append(&text, pasted_quoted(&p->arena, argv[i]));
		append(&text, " ");
	}
	return text.at;
}

/* --numa distribute binds threads and leaves pages alone: where numactl interleaves them, they are as under --numa numactl. In
   place, as errors say the column. */
static void interleave(char *flags)
{
	static const char distribute[] = "distribute", numactl[] = "numactl   ";
	char *at = strstr(flags, "--numa");

	if (at && strncmp(at + strlen("--numa") + 1, distribute, strlen(distribute)) == 0)
		memcpy(at + strlen("--numa") + 1, numactl, strlen(distribute));
}

/* The model that a call names, and the quantization that dtype= asks for. The engine reads the call again and says what else is
   wrong with it. */
static int take_call(struct pasted *p, const struct engine_ops *e, const char *text, struct err *err)
{
	static const char *const types[][2] = {
		{"float16", "f16"}, {"half", "f16"}, {"bfloat16", "bf16"}, {"float32", "f32"}, {"float", "f32"}};
	const struct err_pos begin = {COMMAND_LINE, 1, 1};
	const struct python_function *f;
	struct yaml_node *map;

	if (python_call_parse(text, &begin, e->call, e->n_calls, &p->arena, &map, &f, err))
		return -1;
	/* A name that is no string is a variable's. */
	const struct yaml_node *model = f->model_key ? yaml_get(map, f->model_key) : NULL;
	if (!p->model && model && model->kind == YAML_SCALAR && model->quoted)
		p->model = model->text;
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

/* The value of "--name V" or "--name=V" among words; NULL when it is not there. */
static const char *option_value(int argc, char **argv, const char *name)
{
	size_t len = strlen(name);

	for (int i = 0; i < argc; i++) {
		if (strcmp(argv[i], name) == 0)
			return i + 1 < argc ? argv[i + 1] : "";
		if (strncmp(argv[i], name, len) == 0 && argv[i][len] == '=')
			return argv[i] + len + 1;
	}
	return NULL;
}

static const char *or_else(const char *s, const char *def)
{
	return s ? s : def;
}

/* What FlexGen's and run_model.py's flags say of workload and weights, and those programs' defaults. */
static void take_offload_words(struct pasted *p, int argc, char **argv, enum dialect dialect)
{
	const char *bits = option_value(argc, argv, "--quant_bits");

	if (dialect == DIALECT_FLEXGEN) {
		/* What is no number of batches is for the engine to refuse. */
		long size = strtol(or_else(option_value(argc, argv, "--gpu-batch-size"), "4"), NULL, 10);
		long n = strtol(or_else(option_value(argc, argv, "--num-gpu-batches"), "1"), NULL, 10);
		bool compress = false;
		for (int i = 0; i < argc; i++)
			compress = compress || strcmp(argv[i], "--compress-weight") == 0;
		if (!p->batch && size > 0 && n > 0 && size <= 1000000 / n)
			p->batch = arena_printf(&p->arena, "%ld", size * n);
		p->quant = or_else(p->quant, compress ? "flexgen-int4-g64" : "f16");
	} else {
		bits = or_else(bits, or_else(option_value(argc, argv, "--quant-bits"), "16"));
		p->quant = or_else(p->quant, strcmp(bits, "4") == 0 ? "zero-int4-g64" : "f16");
	}
	p->prompt = or_else(p->prompt, "512");
	p->generate = or_else(p->generate, "32");
}

/* TabbyAPI's model is a folder in a folder; where it is not, its name may be one of ours. */
static void take_tabby_folder(struct pasted *p, int argc, char **argv)
{
	const char *name = option_value(argc, argv, "--model-name");

	if (!name)
		return;
	const char *path = arena_printf(&p->arena, "%s/%s", or_else(option_value(argc, argv, "--model-dir"), "models"), name);
	if (access(path, F_OK) == 0)
		p->named = path;
}

/* The first of ds4-bench's frontiers (the prompt up to it, tokens generated behind it), in what it allocates for the last. */
static const char *take_frontiers(struct pasted *p, int argc, char **argv, const char *flags)
{
	const char *last = or_else(p->last_frontier, "32768");
	char *end;
	long tokens = strtol(last, &end, 10);

	p->prompt = or_else(p->prompt, "2048");
	p->generate = or_else(p->generate, "128");
	if (option_value(argc, argv, "--ctx-alloc"))
		return flags;
	/* What is no number is for the engine to refuse. */
	long n = strtol(p->generate, NULL, 10);
	if (*end || tokens < 1 || tokens > 1000000000 || n < 1 || n > 1000000000)
		return arena_printf(&p->arena, "%s --ctx-alloc %s", flags, pasted_quoted(&p->arena, last));
	return arena_printf(&p->arena, "%s --ctx-alloc %ld", flags, tokens + n + 1);
}

static const char *add_unsaid(struct pasted *p, const struct program *g, int argc, char **argv, const char *flags)
{
	for (size_t i = 0; i < ARRAY_LEN(g->unsaid) && g->unsaid[i].name; i++)
		if (!option_value(argc, argv, g->unsaid[i].name) && !option_value(argc, argv, g->unsaid[i].alias))
			flags = arena_printf(&p->arena, "%s %s %s", flags, g->unsaid[i].name, g->unsaid[i].value);
	return flags;
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
	const char *engine, *flags;
	struct text call = {.arena = &p->arena};
	struct err err = {0};
	int col = 1;

	for (int i = 0; i < p->argc; i++) {
		append(&call, i ? " " : "");
		append(&call, p->argv[i]);
	}
	struct pasted_front front;
	int before = pasted_front(p->argv, p->argc, &front, &p->arena);
	const struct engine_ops *called = before ? NULL : engine_of_call(call.at);
	if (called) {
		engine = called->name;
		flags = call.at;
		if (take_call(p, called, call.at, &err))
			return cmd_fail(&err);
	} else {
		for (int i = 0; i < before; i++)
			col += (int)strlen(p->argv[i]) + 1;
		p->argv += before;
		p->argc -= before;
		if (!p->argc)
			return cmd_usage_error(p->command, "no program behind what stands in front of it");
		const struct program *g = find_program(p);
		if (!g)
			return unknown_program(p);
		if (*front.flags && strcmp(g->engine, "llama.cpp") != 0)
			front = (struct pasted_front){.flags = "", .all = front.all, .passed_over = front.all};
		if (front.passed_over)
			fprintf(stderr, "offsim: note: in front of the program, without influence here: %s\n", front.passed_over);
		int n = length(p, g);
		engine = g->engine;
		if (g->model_follows && n < p->argc && p->argv[n][0] != '-') {
			p->named = p->argv[n];
			n++;
		}
		for (int i = 0; i < n; i++)
			col += (int)strlen(p->argv[i]) + 1;
		char *own = flags_text(p, p->argc - n, p->argv + n, g->dialect);
		if (front.interleaved)
			interleave(own);
		flags = own;
		if (g->dialect == DIALECT_TABBY)
			take_tabby_folder(p, p->argc - n, p->argv + n);
		if (pasted_name_model(p, &err))
			return cmd_fail(&err);
		if (g->dialect & (DIALECT_FLEXGEN | DIALECT_ZERO))
			take_offload_words(p, p->argc - n, p->argv + n, g->dialect);
		if (g->dialect == DIALECT_DS4_BENCH)
			flags = take_frontiers(p, p->argc - n, p->argv + n, flags);
		flags = add_unsaid(p, g, p->argc - n, p->argv + n, flags);
		flags = arena_printf(&p->arena, "%s%s", flags, front.flags);
		/* The launcher's own word on how many GPUs there are. */
		const char *gpus = g->script ? option_value(n - 1, p->argv, "--num_gpus") : NULL;
		if (gpus)
			flags = arena_printf(&p->arena, "%s --num_gpus %s", flags, gpus);
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
