#include "sim/cmd/cmd_pasted_model.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "models/card.h"
#include "models/file_name.h"

/* What vLLM and SGLang call types that they make when loading, or read. */
static const struct {
	const char *said, *quant;
} loaded[] = {
	{"fp8", "fp8"},
	{"fbgemm_fp8", "fp8-channel"},
	{"w8a8_fp8", "fp8-channel"},
	{"w8a8_int8", "int8"},
	{"bitsandbytes", "nf4"},
	{"gptq", "gptq-int4-g128"},
	{"gptq_marlin", "gptq-int4-g128"},
	{"awq", "awq-int4-g128"},
	{"awq_marlin", "awq-int4-g128"},
	{"mxfp4", "mxfp4"},
	{"modelopt_fp4", "nvfp4"},
};

/* "owner/name:Q5_K_M" is split at the colon. */
static const char *hub_quant(struct pasted *p)
{
	char *name = arena_strdup(&p->arena, p->hub), *colon = strrchr(name, ':');

	p->named = name;
	if (!colon)
		return NULL;
	*colon = '\0';
	for (char *c = colon + 1; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return colon + 1;
}

/* gpt-oss is published in 4 bits: convert_hf_to_gguf.py keeps its experts so whatever it is asked for (ggml-org/llama.cpp pull
   request 15091), and ggml-org's own repositories hold nothing else. */
static int keep_experts(struct pasted *p, const char **quant, struct err *err)
{
	struct model *m;

	if (*quant && strcasecmp(*quant, "f16") && strcasecmp(*quant, "bf16"))
		return 0;
	if (model_load(p->model, NULL, &p->arena, &m, err))
		return -1;
	if (strcmp(m->quant, "mxfp4+bf16") == 0)
		*quant = *quant ? arena_printf(&p->arena, "mxfp4+%s", *quant) : "mxfp4";
	return 0;
}

/* "llama3.1:70b" and "qwen3:30b-a3b-q8_0", as Ollama's library has them. Without a type they are q4_k_m. */
static const char *library_name(struct pasted *p)
{
	char *name = arena_strdup(&p->arena, p->named), *colon = strrchr(name, ':');

	if (colon && strcmp(colon, ":latest") == 0)
		*colon = '\0';
	else if (colon)
		*colon = '-';
	return name;
}

/* KTransformers computes experts on the CPU in a type of its own, the rest stays. */
static int method_quant(struct pasted *p, const char **quant, struct err *err)
{
	const char *experts = strcmp(p->method, "AMXINT4") == 0 ? "int4" : strcmp(p->method, "AMXINT8") == 0 ? "int8" : NULL;
	struct model *m;

	if (!experts)
		return 0;
	if (model_load(p->model, NULL, &p->arena, &m, err))
		return -1;
	const char *plus = strrchr(m->quant, '+');
	*quant = arena_printf(&p->arena, "%s+%s", experts, plus ? plus + 1 : m->quant);
	return 0;
}

static const char *loaded_quant(const char *said)
{
	for (size_t i = 0; said && i < ARRAY_LEN(loaded); i++)
		if (strcasecmp(said, loaded[i].said) == 0)
			return loaded[i].quant;
	return NULL;
}

/* A name that is none of ours and no path. */
static int read_name(struct pasted *p, const char **quant, struct err *err)
{
	struct file_name f;
	const char *path;

	if (access(p->named, F_OK) == 0) {
		p->model = p->model ? p->model : p->named;
		return 0;
	}
	if (file_name_read(p->named, &p->arena, &f, err))
		return -1;
	*quant = *quant ? *quant : f.quant;
	if (p->model)
		return 0;
	if (card_look_up(p->named, &p->arena, &path, err))
		return -1;
	if (path) {
		p->model = p->named;
		return 0;
	}
	if (!f.model) {
		card_find(f.said, &p->arena, &path, err);
		return err_prefix(err, "command line: '%.200s' is not here (--model NAME says what it is)", p->named);
	}
	p->model = f.model;
	p->by_name = true;
	return 0;
}

static const char *or_own(const char *quant)
{
	return quant ? quant : "in its own types";
}

int pasted_name_model(struct pasted *p, struct err *err)
{
	const char *quant = p->hub ? hub_quant(p) : NULL;

	if (!p->named)
		return 0;
	if (p->library)
		p->named = library_name(p);
	if (p->weights && !quant) {
		struct file_name f;
		if (file_name_read(p->weights, &p->arena, &f, err))
			return -1;
		quant = f.quant;
	}
	if (read_name(p, &quant, err))
		return -1;
	if (!p->quant && (p->hub || p->library || quant) && keep_experts(p, &quant, err))
		return -1;
	if (!p->quant && p->method && method_quant(p, &quant, err))
		return -1;
	if (!quant)
		quant = p->hub || p->library ? "q4_k_m" : loaded_quant(p->quantization);
	p->quant = p->quant ? p->quant : quant;
	if (p->by_name)
		fprintf(stderr, "offsim: note: by its name '%s' is %s, %s (--model and --quant say otherwise)\n", p->named, p->model,
			or_own(p->quant));
	return 0;
}
