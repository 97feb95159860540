#include "sim/cmd/cmd_pasted_front.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Variables that llama.cpp reads, as flags of ours. */
static const struct {
	const char *name, *flag;
	bool has_value;
} variables[] = {
	{"GGML_CUDA_NO_PINNED", "--no-pinned", false},
	{"GGML_OP_OFFLOAD_MIN_BATCH", "--op-offload-min", true},
};

const char *pasted_without_folder(const char *word)
{
	const char *slash = strrchr(word, '/');

	return slash ? slash + 1 : word;
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

/* What is in the value stays in it: blanks and quotes would make other flags of it. */
static const char *add_variable(const char *flags, const char *word, const char *value, struct arena *a)
{
	size_t len = (size_t)(value - 1 - word);

	for (size_t i = 0; i < ARRAY_LEN(variables); i++)
		if (strlen(variables[i].name) == len && strncmp(variables[i].name, word, len) == 0)
			return arena_printf(a, "%s %s%s%s", flags, variables[i].flag, variables[i].has_value ? " " : "",
				variables[i].has_value ? pasted_quoted(a, value) : "");
	return NULL;
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

/* A --numa among the program's own words, which takes no second one. */
static bool says_numa(char **argv, int argc)
{
	for (int i = 0; i < argc; i++)
		if (strcmp(argv[i], "--numa") == 0 || strncmp(argv[i], "--numa=", 7) == 0)
			return true;
	return false;
}

static int read_numactl(char **argv, int argc, const char **flag, bool *spread)
{
	bool one = true, interleaved = false;
	int i = 1, n;
	const char *nodes, *bound = NULL;

	for (; i < argc; i += n) {
		if ((n = option(argv + i, argc - i, 'N', "cpunodebind", &nodes)) ||
			(n = option(argv + i, argc - i, 'm', "membind", &nodes))) {
			one = one && is_one_node(nodes) && (!bound || strcmp(bound, nodes) == 0);
			bound = nodes;
		} else if ((n = option(argv + i, argc - i, 'i', "interleave", &nodes))) {
			interleaved = interleaved || !is_one_node(nodes);
		} else if (!(n = other_option(argv + i, argc - i))) {
			break;
		}
	}
	*spread = interleaved;
	*flag = interleaved ? says_numa(argv + i, argc - i) ? "" : " --numa numactl" : bound && one ? " --one-socket" : NULL;
	return i < argc ? i : argc;
}

int pasted_front(char **argv, int argc, struct pasted_front *front, struct arena *a)
{
	const char *value, *passed = NULL, *flag;
	int i = 0;

	*front = (struct pasted_front){.flags = ""};
	for (; i < argc && (value = assigned(argv[i])); i++) {
		flag = add_variable(front->flags, argv[i], value, a);
		front->flags = flag ? flag : front->flags;
		if (!flag)
			passed = passed ? arena_printf(a, "%s, %s", passed, argv[i]) : argv[i];
	}
	if (i < argc && strcmp(pasted_without_folder(argv[i]), "numactl") == 0) {
		int n = read_numactl(argv + i, argc - i, &flag, &front->interleaved);
		front->flags = flag ? arena_printf(a, "%s%s", front->flags, flag) : front->flags;
		if (!flag)
			passed = passed ? arena_printf(a, "%s, numactl", passed) : "numactl";
		i += n;
	}
	front->passed_over = passed;
	front->all = i ? argv[0] : "";
	for (int k = 1; k < i; k++)
		front->all = arena_printf(a, "%s %s", front->all, argv[k]);
	return i;
}
