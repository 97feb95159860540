#include "sim/cmd/cmd_pasted_program.h"

#include <string.h>

#include "base/suggest.h"
#include "sim/cmd/cmd_pasted_front.h"

static const struct program programs[] = {
	{{"llama-server"}, "llama.cpp", .kin = "ik_llama.cpp", .dialect = DIALECT_SERVER}, {{"llama-cli"}, "llama.cpp", .kin = "ik_llama.cpp", .dialect = DIALECT_SERVER},
	{{"llama-bench"}, "llama.cpp", .kin = "ik_llama.cpp", .dialect = DIALECT_BENCH},
	{{"llama-batched-bench"}, "llama.cpp", .kin = "ik_llama.cpp", .dialect = DIALECT_SERVER | DIALECT_BATCHED},
	{{"llama-completion"}, "llama.cpp", .dialect = DIALECT_SERVER}, {{"llama-mtmd-cli"}, "llama.cpp", .dialect = DIALECT_SERVER},
	{{"llama-sweep-bench"}, "ik_llama.cpp", .dialect = DIALECT_SERVER},
	/* their names before ggml-org/llama.cpp pull request 7809 of June 2024 */
	{{"main"}, "llama.cpp", .kin = "ik_llama.cpp", .dialect = DIALECT_SERVER, .unsaid = {{"--build", "--build", "2024-05"}}},
	{{"server"}, "llama.cpp", .kin = "ik_llama.cpp", .dialect = DIALECT_SERVER, .unsaid = {{"--build", "--build", "2024-05"}}},
	{{"python", "-m", "llama_cpp.server"}, "llama-cpp-python", .dialect = DIALECT_SERVER},
	{{"ollama", "run"}, "ollama", .dialect = DIALECT_OLLAMA, .model_follows = true},
	{{"vllm", "serve"}, "vllm", .dialect = DIALECT_SERVER, .model_follows = true},
	{{"python", "-m", "vllm.entrypoints.openai.api_server"}, "vllm", .dialect = DIALECT_SERVER},
	{{"python", "-m", "vllm.entrypoints.api_server"}, "vllm", .dialect = DIALECT_SERVER},
	/* vllm-project/vllm, vllm/benchmarks/latency.py, as it was benchmarks/benchmark_latency.py before */
	{{"vllm", "bench", "latency"}, "vllm", .dialect = DIALECT_SERVER | DIALECT_ONE_BATCH, .batch = "8", .prompt = "32",
		.generate = "128"},
	{{"python"}, "vllm", .dialect = DIALECT_SERVER | DIALECT_ONE_BATCH, .batch = "8", .prompt = "32", .generate = "128",
		.script = "benchmark_latency.py"},
	{{"python", "-m", "sglang.launch_server"}, "sglang", .kin = "ktransformers", .dialect = DIALECT_SERVER},
	{{"sglang", "serve"}, "sglang", .kin = "ktransformers", .dialect = DIALECT_SERVER},
	/* sgl-project/sglang, python/sglang/bench_one_batch.py */
	{{"python", "-m", "sglang.bench_one_batch"}, "sglang", .dialect = DIALECT_SERVER | DIALECT_ONE_BATCH, .prompt = "1024",
		.generate = "16"},
	{{"python", "-m", "ktransformers.local_chat"}, "ktransformers", .dialect = DIALECT_KT},
	{{"python"}, "ktransformers", .dialect = DIALECT_KT, .script = "local_chat.py"},
	{{"python"}, "ktransformers", .dialect = DIALECT_KT, .script = "ktransformers/server/main.py"},
	{{"ktransformers"}, "ktransformers", .dialect = DIALECT_KT},
	{{"python", "-m", "flexllmgen.flex_opt"}, "flexgen", .dialect = DIALECT_FLEXGEN, .generate = "32"},
	{{"python", "-m", "flexgen.flex_opt"}, "flexgen", .dialect = DIALECT_FLEXGEN, .generate = "32"},
	{{"flexllmgen.flex_opt"}, "flexgen", .dialect = DIALECT_FLEXGEN, .generate = "32"},
	{{"deepspeed"}, "zero-inference", .dialect = DIALECT_ZERO, .generate = "32", .script = "run_model.py"},
	{{"python"}, "zero-inference", .dialect = DIALECT_ZERO, .generate = "32", .script = "run_model.py"},
	{{"run_model.py"}, "zero-inference", .dialect = DIALECT_ZERO, .generate = "32"},
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

/* Programs that start Python on GPUs of theirs, for which no engine here is written as a command. */
static const char *const starters[] = {"torchrun", "accelerate", "mpirun", "srun"};

/* "python", "python3", "python3.12" */
static bool is_python(struct pasted *p, const char *word)
{
	const char *name = pasted_program_name(word, &p->arena);

	return strncmp(name, "python", 6) == 0 && strspn(name + 6, "0123456789.") == strlen(name + 6);
}

static bool begins_with(struct pasted *p, const char *word)
{
	return strcmp(word, "python") == 0 ? is_python(p, p->argv[0]) :
		strcmp(word, pasted_program_name(p->argv[0], &p->arena)) == 0;
}

static int n_words(const struct program *g)
{
	int n = 0;

	while (n < PROGRAM_WORDS && g->word[n])
		n++;
	return n;
}

/* "eval/perf.py" is perf.py. */
static bool is_script(const char *word, const char *script)
{
	size_t len = strlen(word), n = strlen(script);

	return len >= n && strcmp(word + len - n, script) == 0 && (len == n || word[len - n - 1] == '/' || word[len - n - 1] == '\\');
}

int pasted_program_length(struct pasted *p, const struct program *g)
{
	if (!g->script)
		return n_words(g);
	for (int i = n_words(g); i < p->argc; i++)
		if (is_script(p->argv[i], g->script))
			return i + 1;
	return 0;
}

const struct program *pasted_find_program(struct pasted *p)
{
	for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
		const struct program *g = &programs[i];
		int k = 0, n = n_words(g);
		while (k < n && k < p->argc && (k ? strcmp(p->argv[k], g->word[k]) == 0 : begins_with(p, g->word[0])))
			k++;
		if (k == n && pasted_program_length(p, g) > 0)
			return g;
	}
	return NULL;
}

static const struct engine_ops *by_name(const char *name)
{
	const struct engine_ops *e = NULL;

	for (size_t i = 0; (e = engine_at(i)) && strcmp(e->name, name) != 0; i++)
		;
	return e;
}

static bool knows(const struct engine_ops *e, const char *word, struct arena *a)
{
	const char *name = word + strspn(word, "-");

	return engine_knows_flag(e, arena_strndup(a, name, strcspn(name, "=")), a);
}

const struct engine_ops *pasted_engine(struct pasted *p, const struct program *g, char **argv, int argc)
{
	const struct engine_ops *own = by_name(g->engine), *kin = g->kin ? by_name(g->kin) : NULL;

	if (kin && strstr(p->argv[0], "ik_llama"))
		return kin;
	for (int i = 0; kin && i < argc; i++)
		if (argv[i][0] == '-' && !knows(own, argv[i], &p->arena) && knows(kin, argv[i], &p->arena))
			return kin;
	return own;
}

static void offer_programs(struct suggest *s)
{
	for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
		const struct program *g = &programs[i];
		bool module = g->word[1] && strcmp(g->word[1], "-m") == 0;
		suggest_offer(s, g->script ? g->script : g->word[module ? 2 : 0]);
	}
}

int pasted_unknown_program(struct pasted *p)
{
	const char *begin = pasted_program_name(p->argv[0], &p->arena), *known = NULL;
	struct suggest s;
	char near[128];

	for (size_t i = 0; i < ARRAY_LEN(starters); i++)
		if (strcmp(begin, starters[i]) == 0)
			return cmd_usage_error(p->command, "'%s' starts a script whose engine it does not name: paste the engine's own command, "
				"or the call of a device map", begin);
	/* "python -m x": which module it is; "python x.py": which script; "vllm x": which command. */
	if (p->argc > 2 && is_python(p, begin) && strcmp(p->argv[1], "-m") == 0)
		begin = p->argv[2];
	for (int i = 1; i < p->argc && is_python(p, begin); i++)
		if (p->argv[i][0] != '-')
			begin = pasted_program_name(p->argv[i], &p->arena);
	if (is_python(p, begin))
		return cmd_usage_error(p->command, "'%s' alone names no engine: behind it stands a script, or -m and a module", begin);
	for (size_t i = 0; i < ARRAY_LEN(programs); i++)
		if (programs[i].script && strcmp(begin, programs[i].word[0]) == 0)
			return cmd_usage_error(p->command, "of '%s' only '%s ... %s' is known", begin, begin, programs[i].script);
	for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
		const struct program *g = &programs[i];
		if (g->word[1] && strcmp(begin, g->word[0]) == 0)
			known = arena_printf(&p->arena, "%s%s'%s %s%s%s'", known ? known : "", known ? " and " : "", g->word[0], g->word[1],
				g->word[2] ? " " : "", g->word[2] ? g->word[2] : "");
	}
	if (known)
		return cmd_usage_error(p->command, "of '%s' only %s known", begin,
			arena_printf(&p->arena, strstr(known, " and ") ? "%s are" : "%s is", known));
	suggest_init(&s, begin);
	offer_programs(&s);
	return cmd_usage_error(p->command, "no engine is known by the program '%s'%s", begin,
		suggest_text(&s, near, sizeof(near)));
}
