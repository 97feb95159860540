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
#include "sim/cmd/cmd_pasted_program.h"
#include "sim/cmd/cmd_scenario.h"

#define COMMAND_LINE "command line"
#define NOTHING_PASTED "no command line behind '--'"

const char pasted_usage[] =
	"      --machine M      a name from 'offsim hw list' or a path, of a file such as {gpu0: rtx-4090, cpu0: 7950X,\n"
	"                       ram: {part: ddr5, capacity: 64GiB, rate: 6000MT/s, channels: 2}}\n"
	"      --model NAME     a name from 'offsim model list' or a path; default: what -m or the call names (of a\n"
	"                       file that is not here, its name)\n"
	"      --quant Q        element type or mix, where the model is no file that says it; default: what the file's name\n"
	"                       says, or dtype= of a call\n"
	"      --batch N, --prompt N, --generate N, --depth N   the workload (1, 512, 128, 0; llama-bench's own -p,\n"
	"                       -n and -d where they are given)\n"
	"      --set KEY=VALUE  override a key of the scenario that is made of it ('offsim help keys' lists them)\n"
	"      --seed N         of all random numbers (the scenario's key 'seed')\n";

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

static void append_blanks(struct pasted_text *t, size_t n)
{
	VEC_RESERVE(t, t->arena, t->n + n + 1);
	memset(t->at + t->n, ' ', n);
	t->n += n;
	t->at[t->n] = '\0';
}

/* The words behind the program, as the text of `flags:`. What names the model or the workload is taken out, and blanks
   left where it was. */
static char *flags_text(struct pasted *p, int argc, char **argv, unsigned dialect)
{
	static const struct {
		const char *name;
		unsigned dialects;
		size_t field;
	} taken[] = {
		{"-m", DIALECT_SERVER | DIALECT_BENCH | DIALECT_EXLLAMA | DIALECT_DS4_BENCH, offsetof(struct pasted, named)},
		{"--model", ~0u, offsetof(struct pasted, named)},
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
		{"--batch_size", DIALECT_ZERO, offsetof(struct pasted, batch)},
		{"--ctx-start", DIALECT_DS4_BENCH, offsetof(struct pasted, prompt)},
		{"--ctx-max", DIALECT_DS4_BENCH, offsetof(struct pasted, last_frontier)},
		{"--model_path", DIALECT_KT, offsetof(struct pasted, named)},
		{"--gguf_path", DIALECT_KT, offsetof(struct pasted, weights)},
		{"-npp", DIALECT_BATCHED, offsetof(struct pasted, prompt)}, {"-ntg", DIALECT_BATCHED, offsetof(struct pasted, generate)},
		{"-npl", DIALECT_BATCHED, offsetof(struct pasted, batch)},
		{"--input-len", DIALECT_ONE_BATCH, offsetof(struct pasted, prompt)},
		{"--output-len", DIALECT_ONE_BATCH, offsetof(struct pasted, generate)},
		{"--batch-size", DIALECT_ONE_BATCH, offsetof(struct pasted, batch)},
		{"--batch", DIALECT_ONE_BATCH, offsetof(struct pasted, batch)},
		{"--gen-tokens", DIALECT_DS4_BENCH, offsetof(struct pasted, generate)},
		{"--tokens", DIALECT_DS4_BENCH, offsetof(struct pasted, generate)},
		{"-n", DIALECT_DS4_BENCH, offsetof(struct pasted, generate)},
	};
	struct pasted_text text = {.arena = &p->arena};

	pasted_append(&text, "");
	for (int i = 0; i < argc; i++) {
		const char **field = NULL, *value = NULL;
		size_t blanks = strlen(pasted_quoted(&p->arena, argv[i])) + 1;
		for (size_t k = 0; k < ARRAY_LEN(taken) && !value; k++) {
			size_t len = strlen(taken[k].name);
			if (!(taken[k].dialects & dialect) || strncmp(argv[i], taken[k].name, len))
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
		if ((dialect & DIALECT_OLLAMA) && argv[i][0] != '-') { /* what the model is told */
			append_blanks(&text, blanks);
			continue;
		}
		pasted_append(&text, pasted_quoted(&p->arena, argv[i]));
		pasted_append(&text, " ");
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
		bits = or_else(bits, option_value(argc, argv, "--quant_bit"));
		bits = or_else(bits, or_else(option_value(argc, argv, "--quant-bits"), "16"));
		p->quant = or_else(p->quant, strcmp(bits, "4") == 0 ? "zero-int4-g64" : "f16");
	}
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

static const char *scenario_text(struct pasted *p, const char *engine, const char *machine)
{
	return arena_printf(&p->arena,
		"model: %s\n%s%s%smachine: %s\nengine: %s\n"
		"workload: {batch: %s, prompt: %s, generate: %s, depth: %s}\n",
		yaml_word(&p->arena, p->model), p->quant ? "quant: " : "", p->quant ? yaml_word(&p->arena, p->quant) : "",
		p->quant ? "\n" : "", machine, engine, yaml_word(&p->arena, or_else(p->batch, "1")),
		yaml_word(&p->arena, or_else(p->prompt, "512")), yaml_word(&p->arena, or_else(p->generate, "128")),
		yaml_word(&p->arena, or_else(p->depth, "0")));
}

/* "f(…" and "a = m.f(…"; "A=1 program (…" is none. */
static bool is_call(const char *text)
{
	static const char name[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
	const char *at = text + strspn(text, " \t\r\n");

	at += strspn(at, name);
	at += strspn(at, " \t");
	if (*at == '=') {
		at += 1 + strspn(at + 1, " \t");
		at += strspn(at, name);
		at += strspn(at, " \t");
	}
	return *at == '(';
}

/* What ends a command of a shell, or sends its output elsewhere. */
static bool is_operator(const char *word)
{
	return (*word && strchr("|&;<>#", *word)) || (*word && strchr("12", *word) && word[1] == '>');
}

/* A whole command line that was pasted between quotes, as a shell would cut it; a call stays one. */
static void cut_words(struct pasted *p)
{
	struct {
		VEC(char *);
	} words = {0};
	const struct engine_ops *e;
	char *from, *to, quote = 0;

	if (p->argc != 1 || !strpbrk(p->argv[0], " \t\n") || is_call(p->argv[0]))
		return;
	for (size_t i = 0; (e = engine_at(i)); i++)
		if (python_names(p->argv[0], e->call, e->n_calls))
			return;
	for (from = arena_strdup(&p->arena, p->argv[0]); *from;) {
		from += strspn(from, " \t\r\n");
		if (from[0] == '\\' && (from[1] == '\n' || from[1] == '\r')) {
			from++;
			continue;
		}
		char *word = to = from;
		for (; *from && (quote || !strchr(" \t\r\n", *from)); from++) {
			if (quote ? *from == quote : *from == '"' || *from == '\'')
				quote = quote ? 0 : *from;
			else
				*to++ = *from;
		}
		from += *from != '\0';
		*to = '\0';
		if (is_operator(word))
			break;
		if (*word) {
			VEC_PUSH(&words, &p->arena, word);
		}
	}
	p->argv = words.at;
	p->argc = (int)words.n;
}

/* llama-bench and llama-batched-bench make a run of each of several values. */
static int refuse_several(struct pasted *p, const struct program *g, char **argv, int argc)
{
	static const char *const one[] = {"-m", "--model", "-ot", "--override-tensor", "-pg", "-gp", "-hf", "-hfr", "-hff"};

	for (int i = 0; (g->dialect & (DIALECT_BENCH | DIALECT_BATCHED)) && i + 1 < argc; i++) {
		bool takes_one = argv[i][0] != '-' || !strchr(argv[i + 1], ',') || argv[i + 1][0] == '-';
		for (size_t k = 0; k < ARRAY_LEN(one); k++)
			takes_one = takes_one || strcmp(argv[i], one[k]) == 0;
		takes_one = takes_one || (g->dialect & DIALECT_BATCHED && strncmp(argv[i], "-np", 3) && strcmp(argv[i], "-ntg"));
		if (!takes_one)
			return cmd_usage_error(p->command, "'%s %s' are several runs of %s: give one value, or a 'sweep' grid to offsim sweep",
				argv[i], argv[i + 1], g->word[0]);
	}
	return -1;
}

/* The machine as far as variables leave its GPUs to be seen. */
static const char *machine_text(struct pasted *p, struct pasted_front *front)
{
	const char *machine = yaml_word(&p->arena, p->machine), *without = "";
	struct hw_machine *m;
	struct err err = {0};
	int n = 0;

	/* What is wrong with it is said when the scenario is loaded. */
	if (!front->variables.n || hw_machine_load(p->machine, &p->arena, &m, &err))
		return machine;
	for (int i = 0; i < m->n_devices; i++)
		n += m->devices[i].kind == HW_DEVICE_GPU;
	for (int i = pasted_front_gpus(front, m, &p->arena); i < n; i++)
		without = arena_printf(&p->arena, "%s, gpu%d: none", without, i);
	return *without ? arena_printf(&p->arena, "{from: %s%s}", machine, without) : machine;
}

/* What a scenario is made of. */
struct typed {
	const char *engine, *machine, *flags;
	int col; /* where the flags begin */
};

/* The program's words and those in front of it. */
static int take_program(struct pasted *p, struct pasted_front *front, struct typed *t, struct err *err)
{
	if (front->instead)
		return cmd_usage_error(p->command, "a container is no program: paste what runs inside%s%s", *front->instead ? ": " : "",
			front->instead);
	for (int i = 0; i < front->n; i++)
		t->col += (int)strlen(p->argv[i]) + 1;
	p->argv += front->n;
	p->argc -= front->n;
	if (!p->argc)
		return cmd_usage_error(p->command, "no program behind what stands in front of it");
	const struct program *g = pasted_find_program(p);
	if (!g)
		return pasted_unknown_program(p);
	int n = pasted_program_length(p, g), status;
	if (g->model_follows && n < p->argc && p->argv[n][0] != '-')
		p->named = p->argv[n++];
	char **argv = p->argv + n;
	int argc = p->argc - n;
	const struct engine_ops *e = pasted_engine(p, g, argv, argc);
	const char *in_front = pasted_front_flags(front, e, argv, argc, &p->arena);
	t->engine = e->name;
	t->machine = machine_text(p, front);
	if (front->passed_over.n)
		fprintf(stderr, "offsim: note: in front of the program, without influence here: %s\n", front->passed_over.at);
	if ((status = refuse_several(p, g, argv, argc)) >= 0)
		return status;
	for (int i = 0; i < n; i++)
		t->col += (int)strlen(p->argv[i]) + 1;
	char *own = flags_text(p, argc, argv, g->dialect);
	if (front->interleaved)
		interleave(own);
	t->flags = own;
	if (g->dialect & DIALECT_TABBY)
		take_tabby_folder(p, argc, argv);
	p->library = g->dialect & DIALECT_OLLAMA;
	p->method = option_value(argc, argv, "--kt-method");
	if (pasted_name_model(p, err))
		return cmd_fail(err);
	if (g->dialect & (DIALECT_FLEXGEN | DIALECT_ZERO))
		take_offload_words(p, argc, argv, g->dialect);
	if (g->dialect & DIALECT_DS4_BENCH)
		t->flags = take_frontiers(p, argc, argv, own);
	t->flags = arena_printf(&p->arena, "%s%s", add_unsaid(p, g, argc, argv, t->flags), in_front);
	/* The launcher's own word on how many GPUs there are. */
	const char *gpus = g->script ? option_value(n - 1, p->argv, "--num_gpus") : NULL;
	if (gpus)
		t->flags = arena_printf(&p->arena, "%s --num_gpus %s", t->flags, gpus);
	p->batch = or_else(p->batch, g->batch);
	p->prompt = or_else(p->prompt, g->prompt);
	p->generate = or_else(p->generate, g->generate);
	return -1;
}

int pasted_load(struct pasted *p)
{
	struct typed t = {.machine = yaml_word(&p->arena, p->machine), .col = 1};
	struct pasted_text call = {.arena = &p->arena};
	struct pasted_front front;
	struct err err = {0};
	int status = -1;

	cut_words(p);
	if (!p->argc)
		return cmd_usage_error(p->command, NOTHING_PASTED);
	pasted_front(p->argv, p->argc, &front, &p->arena);
	for (int i = 0; i < p->argc; i++) {
		pasted_append(&call, i ? " " : "");
		pasted_append(&call, p->argv[i]);
	}
	const struct engine_ops *called = front.n ? NULL : engine_of_call(call.at);
	if (called) {
		t.engine = called->name;
		t.flags = call.at;
		if (take_call(p, called, call.at, &err))
			return cmd_fail(&err);
	} else {
		status = take_program(p, &front, &t, &err);
	}
	if (status >= 0)
		return status;
	if (!p->model)
		return cmd_usage_error(p->command, "which model? --model NAME%s", called ? "" :
			", or -m FILE in the command line");
	if (scenario_load_typed(scenario_text(p, t.engine, t.machine), COMMAND_LINE, t.flags, t.col, p->set, p->n_set, &p->arena,
		&p->scenario, &err))
		return cmd_fail(&err);
	return -1;
}

bool pasted_is(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--") == 0)
			return true;
	return false;
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
		{"set", required_argument, NULL, 's'},
		{"seed", required_argument, NULL, 'e'},
		{"exact", no_argument, NULL, 'x'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int c, status = -1;

	*p = (struct pasted){.command = argv[0]};
	cmd_arena_init(&p->arena);
	p->set = arena_array(&p->arena, struct scenario_set, (size_t)argc);
	while (status < 0 && (c = getopt_long(argc, argv, "+:h", options, NULL)) != -1) {
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
		case 's':
			status = cmd_add_set(p->set, &p->n_set, argv[0], optarg, &p->arena);
			break;
		case 'e':
			p->set[p->n_set++] = (struct scenario_set){.key = "seed", .value = optarg};
			break;
		case 'x':
			p->exact = true;
			break;
		case 'j':
			p->json = true;
			break;
		case 'h':
			usage();
			status = cmd_finish_stdout(EXIT_DONE);
			break;
		default:
			status = cmd_bad_option(argv, options);
		}
	}
	if (status < 0 && !p->machine)
		status = cmd_usage_error(argv[0], "which machine? --machine M");
	if (status < 0 && optind == argc)
		status = cmd_usage_error(argv[0], NOTHING_PASTED);
	if (status >= 0) {
		pasted_release(p);
		return status;
	}
	p->argc = argc - optind;
	p->argv = argv + optind;
	cmd_catch_interrupts();
	return -1;
}

void pasted_release(struct pasted *p)
{
	arena_release(&p->arena);
}
