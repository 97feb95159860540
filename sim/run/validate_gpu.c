#include "sim/run/validate_gpu.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

#define BLOCK_TOKENS 16
/* Requests that are simulated of a long queue of which each wants one token: about as many as have room on the H100 of the
   rows, so that also short rests of prompts make several passes, and prefixes load during those before. */
#define AT_ONCE 800

const char *validate_gpu_engine(const char *name)
{
	static const char *const map[][2] = {
		{"vllm", "vllm"}, {"vllm-uva", "vllm"}, {"vllm-kv-offload", "vllm"}, {"hf-transformers", "hf-transformers"},
		{"deepspeed-tp", "deepspeed-tp"}, {"sequoia", "sequoia"}, {"fiddler", "fiddler"}, {"airllm", "airllm"},
		{"sglang-offload", "sglang"}, {"exllama", "exllama"}, {"ds4", "ds4"},
	};

	for (size_t i = 0; i < ARRAY_LEN(map); i++)
		if (strcmp(map[i][0], name) == 0)
			return map[i][1];
	return NULL;
}

/* Without what stands in parentheses, which are remarks. */
static char *without_remarks(const char *flags, struct arena *a)
{
	char *text = arena_strdup(a, flags), *open, *close;

	text[strcspn(text, ";")] = '\0';
	while ((open = strchr(text, '(')) && (close = strchr(open, ')')))
		memmove(open, close + 1, strlen(close));
	return text;
}

/* A number of GiB that is not stated is as few as fit. */
static const char *vllm_flags(const char *flags, const char *kv_dtype, const char *when, struct arena *a)
{
	char *text = without_remarks(flags, a), *open;
	const char *hit = strstr(text, "prefix_hit="), *out = "";
	size_t len = hit ? (size_t)(hit - text) : strlen(text);

	text = arena_strndup(a, text, len);
	while ((open = strchr(text, '?'))) {
		out = arena_printf(a, "%s%.*sauto", out, (int)(open - text), text);
		text = open + 1;
	}
	out = arena_printf(a, "%s%s", out, text);
	if (*kv_dtype && !strstr(out, "kv-cache-dtype"))
		out = arena_printf(a, "%s --kv-cache-dtype %s", out, kv_dtype);
	if (*when)
		out = arena_printf(a, "%s --build %s", out, when);
	return arena_printf(a, "flags: '%s'\n", out);
}

const char *validate_gpu_flags(const char *engine, const char *flags, const char *kv_dtype, const char *when, struct arena *a)
{
	if (strcmp(engine, "vllm") == 0)
		return vllm_flags(flags, kv_dtype, when, a);
	if (strcmp(engine, "hf-transformers") == 0)
		return arena_printf(a, "flags: {%s%s%s%s}\n",
			strstr(flags, "full attention") ? "cache_implementation: static, " : "", *when ? "build: '" : "", when,
			*when ? "'" : "");
	if (strcmp(engine, "sequoia") == 0)
		return strstr(flags, "all layers") ? "flags: {resident-layers: 0}\n" : "flags: {resident-layers: auto}\n";
	if (strcmp(engine, "ds4") == 0) /* says that all is on the GPU */
		return "flags: {}\n";
	if (strcmp(engine, "airllm") == 0)
		return strstr(flags, "4bit") ? "flags: {compression: 4bit}\n" : "flags: {}\n";
	return arena_printf(a, "flags: '%s'\n", without_remarks(flags, a));
}

bool validate_gpu_prefix(const char *flags, const char *prompt, const char *batch, const char *generate,
	struct validate_gpu_prefix *out)
{
	const char *hit = strstr(flags, "prefix_hit=");
	unsigned n = (unsigned)strtoul(prompt, NULL, 10), at_once = (unsigned)strtoul(batch, NULL, 10);

	if (!hit || n == 0 || at_once == 0)
		return false;
	double cached = strtod(hit + strlen("prefix_hit="), NULL) * n;
	cached = cached > n - 1 ? n - 1 : cached > 0 ? cached : 0;
	*out = (struct validate_gpu_prefix){.batch = at_once, .cached = (unsigned)cached / BLOCK_TOKENS * BLOCK_TOKENS};
	out->prompt = n - out->cached;
	out->fewer = strcmp(generate, "1") == 0 && at_once > AT_ONCE;
	if (out->fewer)
		out->batch = AT_ONCE;
	return true;
}
