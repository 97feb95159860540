#include "models/file_name.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/card.h"
#include "models/mix.h"

/* How checkpoints are called on hubs, the longest ending first. What groups GPTQ and AWQ have is in their config.json: nearly
   always 128. */
static const struct {
	const char *ending, *quant;
} checkpoints[] = {
	{"-gptq-int4", "gptq-int4-g128"},
	{"-gptq-int8", "gptq-int8-g128"},
	{"-gptq", "gptq-int4-g128"},
	{"-awq-int4", "awq-int4-g128"},
	{"-awq", "awq-int4-g128"},
	{"-quantized.w4a16", "gptq-int4-g128"},
	{"-w4a16", "gptq-int4-g128"},
	{"-fp8-dynamic", "fp8-channel"},
	{"-fp8", "fp8"},
	{"-nvfp4", "nvfp4"},
	{"-unsloth-bnb-4bit", "nf4"},
	{"-bnb-4bit", "nf4"},
};

/* Of a file (NAME_MAX), and more than a hub's "owner/name" has: what is longer is none. */
#define MAX_NAME_BYTES 255

/* Endings that do not make another model of it: who tuned it, when, with what matrix. */
static const char *const decorations[] = {"instruct", "chat", "it", "hf", "gguf", "base", "thinking", "preview", "mix", "i1",
	"imat", "imatrix", "exl2", "exl3", "qat", "ud", "fp16", "bf16"};

static bool is_separator(char c)
{
	return c == '-' || c == '.' || c == '_';
}

/* The last part of a path, be it one of Windows; "owner/name" of a hub keeps its owner. */
static char *last_part(char *name)
{
	size_t len = strlen(name);
	char *slash, *first = strchr(name, '/');

	while (len > 1 && (name[len - 1] == '/' || name[len - 1] == '\\'))
		name[--len] = '\0';
	for (char *c = name; *c; c++)
		*c = *c == '\\' ? '/' : (char)tolower((unsigned char)*c);
	slash = strrchr(name, '/');
	if (!slash || (first == slash && slash != name && *name != '.' && *name != '~' && !strstr(slash, ".gguf")))
		return name;
	return slash + 1;
}

static bool cut_ending(char *name, const char *ending)
{
	size_t len = strlen(name), n = strlen(ending);

	if (len <= n || strcmp(name + len - n, ending) != 0)
		return false;
	name[len - n] = '\0';
	return true;
}

/* "-00001-of-00008" */
static void cut_part(char *name)
{
	size_t len = strlen(name);
	unsigned part, parts;
	int used = 0;

	for (size_t i = len; i-- > 0;) {
		if (name[i] == '-' && sscanf(name + i, "-%5u-of-%5u%n", &part, &parts, &used) == 2 && name[i + (size_t)used] == '\0') {
			name[i] = '\0';
			return;
		}
	}
}

/* "-exl3-4.05bpw", "-4.00bpw-plus": the width; what stands in front of it goes too. */
static const char *cut_width(char *name, struct arena *a)
{
	char *bpw = strstr(name, "bpw"), *begin = bpw;

	while (begin && begin > name && (isdigit((unsigned char)begin[-1]) || begin[-1] == '.'))
		begin--;
	if (!begin || begin == bpw || begin == name || !is_separator(begin[-1]))
		return NULL;
	const char *width = arena_strndup(a, begin, (size_t)(bpw - begin)), *kind = strstr(name, "exl2") ? "exl2" : "exl3";
	const char *quant = arena_printf(a, "%s-%gbpw", kind, strtod(width, NULL));
	begin[-1] = '\0';
	return mix_is_known(quant, a) ? quant : NULL;
}

/* The longest ending that is a quant. Files of big MoE models for ik_llama.cpp are made by a recipe, see mix_ud.c. */
static const char *cut_quant(char *name, bool recipe, struct arena *a)
{
	for (char *at = name + 1; *name && *at; at++) {
		if (!is_separator(at[-1]) || at == name + 1 || !mix_is_known(at, a))
			continue;
		at[-1] = '\0';
		const char *custom = arena_printf(a, "custom-%s", at);
		if ((recipe || cut_ending(name, "-mix")) && mix_is_known(custom, a))
			return custom;
		return at;
	}
	return NULL;
}

/* "-instruct", "-0324", ".i1": true while there was one. */
static bool cut_decoration(char *name)
{
	char *at = name + strlen(name);

	while (at > name && !is_separator(*at))
		at--;
	if (at == name)
		return false;
	bool cut = strlen(at + 1) == 4 && strspn(at + 1, "0123456789") == 4;
	for (size_t i = 0; i < ARRAY_LEN(decorations); i++)
		cut = cut || strcmp(at + 1, decorations[i]) == 0;
	if (cut)
		*at = '\0';
	return cut;
}

static int find_model(char *name, struct arena *a, const char **out, struct err *err)
{
	const char *path;

	do {
		if (card_look_up(name, a, &path, err))
			return -1;
		if (path) {
			*out = arena_strdup(a, name);
			return 0;
		}
	} while (cut_decoration(name));
	return 0;
}

int file_name_read(const char *text, struct arena *a, struct file_name *out, struct err *err)
{
	char *name = arena_strdup(a, text), *owner;
	bool recipe;

	*out = (struct file_name){0};
	for (char *c = name; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	recipe = strstr(name, "ubergarm") != NULL;
	name = last_part(name);
	if (strlen(name) > MAX_NAME_BYTES) {
		out->said = name;
		return 0;
	}
	cut_ending(name, ".gguf");
	cut_part(name);
	cut_ending(name, "-gguf");
	for (size_t i = 0; i < ARRAY_LEN(checkpoints) && !out->quant; i++)
		if (cut_ending(name, checkpoints[i].ending))
			out->quant = checkpoints[i].quant;
	if (!out->quant)
		out->quant = cut_width(name, a);
	if (!out->quant)
		out->quant = cut_quant(name, recipe, a);
	out->said = arena_strdup(a, name);
	owner = strchr(name, '_');
	size_t letters = strcspn(name, "0123456789-");
	char *others[] = {
		arena_strdup(a, name),
		owner ? arena_strdup(a, owner + 1) : NULL,                                      /* "Qwen_Qwen3-0.6B" */
		name[letters] ? arena_printf(a, "%.*s-%s", (int)letters, name, name + letters) : NULL, /* "llama3.1-70b" */
	};
	for (size_t i = 0; i < ARRAY_LEN(others) && !out->model; i++)
		if (others[i] && find_model(others[i], a, &out->model, err))
			return -1;
	return 0;
}
