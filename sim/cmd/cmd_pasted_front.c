#include "sim/cmd/cmd_pasted_front.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Variables that programs read, as flags of theirs: the first word is the flag, %s the value. Those that switch something are
   left alone when they are 0. */
static const struct {
	const char *engine, *name, *flag;
	bool is_switch;
} variables[] = {
	{"llama.cpp", "GGML_CUDA_NO_PINNED", "--no-pinned", true},
	{"llama.cpp", "GGML_OP_OFFLOAD_MIN_BATCH", "--op-offload-min %s", false},
	{"ik_llama.cpp", "GGML_CUDA_NO_PINNED", "--no-pinned", true},
	/* ggml-org/llama.cpp, common/arg.cpp: set_env */
	{"llama.cpp", "LLAMA_ARG_N_GPU_LAYERS", "-ngl %s", false},
	{"llama.cpp", "LLAMA_ARG_CTX_SIZE", "-c %s", false},
	{"llama.cpp", "LLAMA_ARG_THREADS", "-t %s", false},
	{"llama.cpp", "LLAMA_ARG_THREADS_BATCH", "-tb %s", false},
	{"llama.cpp", "LLAMA_ARG_BATCH", "-b %s", false},
	{"llama.cpp", "LLAMA_ARG_UBATCH", "-ub %s", false},
	{"llama.cpp", "LLAMA_ARG_FLASH_ATTN", "-fa %s", false},
	{"llama.cpp", "LLAMA_ARG_CACHE_TYPE_K", "-ctk %s", false},
	{"llama.cpp", "LLAMA_ARG_CACHE_TYPE_V", "-ctv %s", false},
	{"llama.cpp", "LLAMA_ARG_CPU_MOE", "--cpu-moe", true},
	{"llama.cpp", "LLAMA_ARG_N_CPU_MOE", "--n-cpu-moe %s", false},
	{"llama.cpp", "LLAMA_ARG_OVERRIDE_TENSOR", "-ot %s", false},
	{"llama.cpp", "LLAMA_ARG_SPLIT_MODE", "-sm %s", false},
	{"llama.cpp", "LLAMA_ARG_TENSOR_SPLIT", "-ts %s", false},
	{"llama.cpp", "LLAMA_ARG_MAIN_GPU", "-mg %s", false},
	{"llama.cpp", "LLAMA_ARG_NO_MMAP", "--no-mmap", true},
	{"llama.cpp", "LLAMA_ARG_NUMA", "--numa %s", false},
	/* ollama/ollama, envconfig/config.go */
	{"ollama", "OLLAMA_FLASH_ATTENTION", "-fa %s", false},
	{"ollama", "OLLAMA_KV_CACHE_TYPE", "-ctk %s", false},
	{"ollama", "OLLAMA_KV_CACHE_TYPE", "-ctv %s", false},
	{"ollama", "OLLAMA_CONTEXT_LENGTH", "-c %s", false},
};

/* Variables that say by what backend GPUs are reached: of hipBLASLt and of a driver only with such a value. */
static const struct {
	const char *name, *value, *backend;
} backends[] = {
	{"HIP_VISIBLE_DEVICES", NULL, "hip"}, {"ROCR_VISIBLE_DEVICES", NULL, "hip"}, {"HSA_OVERRIDE_GFX_VERSION", NULL, "hip"},
	{"ROCBLAS_USE_HIPBLASLT", "1", "hip-hipblaslt"}, {"ROCBLAS_USE_HIPBLASLT", NULL, "hip"},
	{"GGML_VK_VISIBLE_DEVICES", NULL, "vulkan"}, {"AMD_VULKAN_ICD", "AMDVLK", "vulkan-amdvlk"}, {"AMD_VULKAN_ICD", NULL, "vulkan"},
};
/* Variables that say which GPUs a process sees. */
static const char *const gpu_variables[] = {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
	"NVIDIA_VISIBLE_DEVICES", "GGML_VK_VISIBLE_DEVICES"};

/* Programs that start another. */
static const struct launcher {
	const char *name, *verb;  /* "uv run" */
	const char *letters;      /* of options whose value is the next word */
	const char *names;        /* the same, of long ones, each with a blank behind */
	int positional;           /* words of its own that are no options */
	bool felt;                /* changes what a program gets of the machine: not passed over in silence */
} launchers[] = {
	{"env", .letters = "uCS", .names = "unset chdir "},
	{"sudo", .letters = "ughpCDRTU", .names = "user group host chdir "},
	{"doas", .letters = "uC"},
	{.name = "nohup"},
	{.name = "exec"},
	{.name = "setsid"},
	{"time", .letters = "fo", .names = "format output "},
	{"stdbuf", .letters = "ioe", .names = "input output error "},
	{"timeout", .letters = "sk", .names = "signal kill-after ", .positional = 1},
	{"nice", .letters = "n", .names = "adjustment ", .felt = true},
	{"ionice", .letters = "cnt", .names = "class classdata ", .felt = true},
	{"chrt", .letters = "TPD", .positional = 1, .felt = true},
	{"taskset", .positional = 1, .felt = true},
	{"uv", "run", .letters = "p", .names = "with python project extra group env-file directory index "},
	{"uvx", .letters = "p", .names = "from with python "},
	{.name = "poetry", .verb = "run"},
	{.name = "pdm", .verb = "run"},
	{"pixi", "run", .letters = "e", .names = "environment manifest-path "},
	{"conda", "run", .letters = "np", .names = "name prefix "},
	{"micromamba", "run", .letters = "np", .names = "name prefix "},
	{"docker", "exec", .letters = "euw", .names = "env env-file user workdir ", .positional = 1},
	{"podman", "exec", .letters = "euw", .names = "env env-file user workdir ", .positional = 1},
};

/* Options of docker run without a value, and images that start a program by themselves. */
static const char docker_switches[] = " rm init privileged detach interactive tty read-only publish-all quiet ";
static const struct {
	const char *image, *program;
} images[] = {
	{"vllm/vllm-openai", "vllm serve "},
	{"llama.cpp:server", "llama-server "},
	{"llama.cpp:light", "llama-cli "},
};

const char *pasted_program_name(const char *word, struct arena *a)
{
	const char *name = word;
	size_t len;

	for (const char *c = word; *c; c++)
		if (*c == '/' || *c == '\\')
			name = c + 1;
	len = strlen(name);
	return len > 4 && strcasecmp(name + len - 4, ".exe") == 0 ? arena_strndup(a, name, len - 4) : name;
}

const char *pasted_quoted(struct arena *a, const char *word)
{
	if (*word && !strpbrk(word, " \t\n\"'"))
		return word;
	return arena_printf(a, strchr(word, '"') ? "'%s'" : "\"%s\"", word);
}

/* The value of an assignment, or NULL; that of a call is Python's. */
static const char *assigned(const char *word)
{
	const char *at = word;

	if (!isalpha((unsigned char)*at) && *at != '_')
		return NULL;
	while (isalnum((unsigned char)*at) || *at == '_')
		at++;
	return *at == '=' && !strchr(at, '(') ? at + 1 : NULL;
}

/* "-N" and "--cpunodebind" alike; the value is in the word behind "=", or the next one. How many words, 0: another option. */
static int option(char **argv, int argc, char letter, const char *name, const char **value)
{
	size_t len = strlen(name);

	if (argv[0][0] == '-' && argv[0][1] == letter) {
		*value = argv[0][2] ? argv[0] + 2 : argc > 1 ? argv[1] : "";
		return argv[0][2] ? 1 : 2;
	}
	if (strncmp(argv[0], "--", 2) != 0 || strncmp(argv[0] + 2, name, len) != 0)
		return 0;
	if (argv[0][len + 2] == '=') {
		*value = argv[0] + len + 3;
		return 1;
	}
	*value = argc > 1 ? argv[1] : "";
	return argv[0][len + 2] ? 0 : 2;
}

static bool is_one_node(const char *nodes)
{
	return *nodes && strspn(nodes, "0123456789") == strlen(nodes);
}

/* Options of numactl that bind nothing to nodes. */
static int other_option(char **argv, int argc)
{
	static const struct {
		char letter;
		const char *name;
	} with_value[] = {{'C', "physcpubind"}, {'p', "preferred"}};
	const char *value;

	for (size_t i = 0; i < ARRAY_LEN(with_value); i++) {
		int n = option(argv, argc, with_value[i].letter, with_value[i].name, &value);
		if (n)
			return n;
	}
	return argv[0][0] == '-' ? 1 : 0;
}

static int read_numactl(char **argv, int argc, struct pasted_front *front)
{
	bool one = true;
	int i = 1, n;
	const char *nodes, *bound = NULL;

	front->numactl = argv[0];
	for (; i < argc; i += n) {
		if ((n = option(argv + i, argc - i, 'N', "cpunodebind", &nodes)) ||
			(n = option(argv + i, argc - i, 'm', "membind", &nodes))) {
			one = one && is_one_node(nodes) && (!bound || strcmp(bound, nodes) == 0);
			bound = nodes;
		} else if ((n = option(argv + i, argc - i, 'i', "interleave", &nodes))) {
			front->interleaved = front->interleaved || !is_one_node(nodes);
		} else if (!(n = other_option(argv + i, argc - i))) {
			break;
		}
	}
	front->one_socket = bound && one;
	return i < argc ? i : argc;
}

/* "name" among names that have a blank behind each. */
static bool is_among(const char *names, const char *name, size_t len)
{
	for (const char *at = names; at && (at = strstr(at, name)); at += len)
		if ((at == names || at[-1] == ' ') && at[len] == ' ')
			return true;
	return false;
}

/* The words of one option. */
static int launcher_option(const struct launcher *l, const char *word)
{
	if (word[1] == '-')
		return l->names && is_among(l->names, word + 2, strlen(word + 2)) ? 2 : 1;
	return l->letters && word[1] && strchr(l->letters, word[1]) && !word[2] ? 2 : 1;
}

static int read_launcher(const struct launcher *l, char **argv, int argc)
{
	int i = l->verb ? 2 : 1, left = l->positional;

	while (i < argc && (argv[i][0] == '-' || left)) {
		if (argv[i][0] != '-') {
			left--;
			i++;
		} else if (strcmp(argv[i], "--") == 0) {
			return i + 1;
		} else {
			i += launcher_option(l, argv[i]);
		}
	}
	return i < argc ? i : argc;
}

static const struct launcher *find_launcher(char **argv, int argc, struct arena *a)
{
	const char *name = pasted_program_name(argv[0], a);

	for (size_t i = 0; i < ARRAY_LEN(launchers); i++) {
		const struct launcher *l = &launchers[i];
		if (strcmp(l->name, name) == 0 && (!l->verb || (argc > 1 && strcmp(argv[1], l->verb) == 0)))
			return l;
	}
	return NULL;
}

void pasted_append(struct pasted_text *t, const char *s)
{
	size_t len = strlen(s);

	VEC_RESERVE(t, t->arena, t->n + len + 1);
	memcpy(t->at + t->n, s, len + 1);
	t->n += len;
}

static const char *join(char **argv, int argc, struct arena *a)
{
	struct pasted_text text = {.arena = a};

	for (int i = 0; i < argc; i++) {
		pasted_append(&text, i ? " " : "");
		pasted_append(&text, pasted_quoted(a, argv[i]));
	}
	return text.n ? text.at : "";
}

/* "docker run OPTIONS IMAGE WORDS": the words, as far as they are all it takes. */
static const char *read_container(char **argv, int argc, struct arena *a)
{
	static const struct launcher docker = {.letters = "vpeuwhmlac"};
	int i = 2;

	for (; i < argc && argv[i][0] == '-'; i++) {
		const char *name = argv[i] + 2;
		bool alone = argv[i][1] != '-' ? launcher_option(&docker, argv[i]) == 1 :
			strchr(name, '=') || is_among(docker_switches, name, strlen(name));
		i += !alone;
	}
	if (i >= argc)
		return "";
	for (size_t k = 0; k < ARRAY_LEN(images); k++)
		if (strstr(argv[i], images[k].image))
			return arena_printf(a, "%s%s", images[k].program, join(argv + i + 1, argc - i - 1, a));
	return join(argv + i + 1, argc - i - 1, a);
}

static void pass_over(struct pasted_front *front, const char *text)
{
	pasted_append(&front->passed_over, front->passed_over.n ? ", " : "");
	pasted_append(&front->passed_over, text);
}

static bool is_container(char **argv, int argc, struct arena *a)
{
	const char *name = pasted_program_name(argv[0], a);

	return argc > 1 && (strcmp(name, "docker") == 0 || strcmp(name, "podman") == 0 || strcmp(name, "nerdctl") == 0) &&
		strcmp(argv[1], "exec") != 0;
}

void pasted_front(char **argv, int argc, struct pasted_front *front, struct arena *a)
{
	const struct launcher *l;
	const char *value;
	int i = 0, n;

	*front = (struct pasted_front){.passed_over.arena = a};
	while (i < argc) {
		if ((value = assigned(argv[i]))) {
			struct pasted_variable v = {arena_strndup(a, argv[i], (size_t)(value - 1 - argv[i])), value};
			VEC_PUSH(&front->variables, a, v);
			n = 1;
		} else if (strcmp(pasted_program_name(argv[i], a), "numactl") == 0) {
			n = read_numactl(argv + i, argc - i, front);
		} else if (is_container(argv + i, argc - i, a)) {
			front->instead = read_container(argv + i, argc - i, a);
			break;
		} else if ((l = find_launcher(argv + i, argc - i, a))) {
			n = read_launcher(l, argv + i, argc - i);
			if (l->felt)
				pass_over(front, join(argv + i, n, a));
		} else if (strcmp(argv[i], "$") == 0 || strcmp(argv[i], "#") == 0) {
			n = 1; /* of a shell that was pasted with it */
		} else {
			break;
		}
		i += n;
	}
	front->n = i;
}

/* A flag among the program's own words, by whichever of its names. */
static bool says(const struct engine_ops *e, char **argv, int argc, const char *flag)
{
	const char *name = engine_flag_name(e, flag + strspn(flag, "-"));

	for (int i = 0; i < argc; i++) {
		const char *word = argv[i] + strspn(argv[i], "-");
		size_t len = strcspn(word, "=");
		char own[64];
		if (word == argv[i] || len >= sizeof(own))
			continue;
		memcpy(own, word, len);
		own[len] = '\0';
		if (strcmp(engine_flag_name(e, own), name) == 0)
			return true;
	}
	return false;
}

/* "-fa %s" with the value for it. What is in the value stays in it: blanks and quotes would make other flags of it. */
static const char *flag_with(const char *flag, const char *value, struct arena *a)
{
	const char *at = strstr(flag, " %s");

	return at ? arena_printf(a, "%.*s %s", (int)(at - flag), flag, pasted_quoted(a, value)) : flag;
}

static bool is_gpu_variable(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(gpu_variables); i++)
		if (strcmp(name, gpu_variables[i]) == 0)
			return true;
	return false;
}

/* The backend of a variable; NULL: it says nothing of that, as one that names no device does. */
static const char *backend_of(const struct pasted_variable *v)
{
	if (!*v->value || strcmp(v->value, "-1") == 0)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(backends); i++)
		if (strcmp(backends[i].name, v->name) == 0 && (!backends[i].value || strcmp(backends[i].value, v->value) == 0))
			return backends[i].backend;
	return NULL;
}

const char *pasted_front_flags(struct pasted_front *front, const struct engine_ops *e, char **argv, int argc, struct arena *a)
{
	struct pasted_text flags = {.arena = a};
	const char *reached = NULL;
	bool binds = engine_knows_flag(e, "one-socket", a);

	for (size_t i = 0; i < front->variables.n; i++) {
		const struct pasted_variable *v = &front->variables.at[i];
		const char *backend = e->backend ? backend_of(v) : NULL;
		bool felt = is_gpu_variable(v->name) || backend;
		/* Of two the one that says more. */
		if (backend && (!reached || strlen(backend) > strlen(reached)))
			reached = backend;
		for (size_t k = 0; k < ARRAY_LEN(variables); k++) {
			if (strcmp(variables[k].engine, e->name) != 0 || strcmp(variables[k].name, v->name) != 0)
				continue;
			felt = true;
			const char *flag = flag_with(variables[k].flag, v->value, a);
			const char *own = arena_strndup(a, flag, strcspn(flag, " "));
			if (!(variables[k].is_switch && strcmp(v->value, "0") == 0) && !says(e, argv, argc, own))
				pasted_append(&flags, arena_printf(a, " %s", flag));
		}
		if (!felt)
			pass_over(front, arena_printf(a, "%s=%s", v->name, v->value));
	}
	if (reached && !says(e, argv, argc, "--backend"))
		pasted_append(&flags, arena_printf(a, " --backend %s", reached));
	if (binds && front->interleaved && !says(e, argv, argc, "--numa"))
		pasted_append(&flags, " --numa numactl");
	else if (binds && front->one_socket && !front->interleaved)
		pasted_append(&flags, " --one-socket");
	else if (front->numactl && !(binds && front->interleaved))
		pass_over(front, "numactl");
	return flags.n ? flags.at : "";
}

/* "0,1": how many there are, each below n_gpus; -1: it cannot be told. Others than the first only where all are `alike`: which
   of them are left is then the same. */
static int count_gpus(const char *list, int n_gpus, bool alike)
{
	uint64_t seen = 0;
	int n = 0;

	if (strcmp(list, "-1") == 0)
		return 0;
	for (const char *at = list; *at; at += *at == ',') {
		char *end;
		long g = strtol(at, &end, 10);
		if (end == at || (*end && *end != ',') || g < 0 || g >= n_gpus || g >= 64 || seen >> g & 1)
			return -1;
		seen |= UINT64_C(1) << g;
		n++;
		at = end;
	}
	return alike || seen == (UINT64_C(1) << n) - 1 ? n : -1;
}

int pasted_front_gpus(struct pasted_front *front, const struct hw_machine *m, struct arena *a)
{
	int first = hw_first_device(m, HW_DEVICE_GPU), n_gpus = 0, left;
	bool alike = true;

	for (int i = 0; i < m->n_devices; i++) {
		if (m->devices[i].kind != HW_DEVICE_GPU)
			continue;
		alike = alike && strcmp(m->devices[i].part, m->devices[first].part) == 0;
		n_gpus++;
	}
	left = n_gpus;
	for (size_t i = 0; i < front->variables.n; i++) {
		const struct pasted_variable *v = &front->variables.at[i];
		if (!is_gpu_variable(v->name))
			continue;
		int n = count_gpus(v->value, n_gpus, alike);
		if (n < 0 || (n == n_gpus && !backend_of(v)))
			pass_over(front, arena_printf(a, "%s=%s", v->name, v->value));
		else if (n < left)
			left = n;
	}
	return left;
}
