/*
 * validate_offload.c - how the corpus writes the flags of FlexGen and ZeRO-Inference, as their own.
 */
#include <string.h>

#include "sim/run/validate_rows.h"

/* Blocks of several batches were measured by --debug fewer_batch (benchmark/flexllmgen/bench_suite.py). */
const char *validate_flexgen_flags(const char *flags, struct arena *a)
{
	bool block = strstr(flags, "--num-gpu-batches ") && !strstr(flags, "--num-gpu-batches 1");

	return arena_printf(a, "%s%s", flags, block ? " --debug-mode fewer_batch" : "");
}

/* "gpu_resident_params=N" and "--no-prefetch" are of the post of 2022; remarks stand in brackets. */
static const char *zero_word(const char *word, struct arena *a)
{
	if (strcmp(word, "--no-prefetch") == 0)
		return "--prefetch=0";
	return strncmp(word, "gpu_resident_params=", 20) == 0 ? arena_printf(a, "--%s", word) : word;
}

double validate_zero_streams(const char *flags, int n_gpus)
{
	return strstr(flags, "--zero-stage") ? n_gpus : 1;
}

/* Of DeepSpeed's date, since when one GPU does not gather from itself. Where nothing is said of pinning, weights in RAM are pinned: FlexGen's script for DeepSpeed and DeepSpeed's own default. */
const char *validate_zero_flags(const char *flags, const char *when, struct arena *a, const char **assumed)
{
	char *copy = arena_strdup(a, flags), *save;
	const char *out = *when ? arena_printf(a, "--build=%s ", when) : "";

	for (char *word = strtok_r(copy, " ;", &save); word && *word != '('; word = strtok_r(NULL, " ;", &save))
		out = arena_printf(a, "%s%s ", out, zero_word(word, a));
	if (!strstr(flags, "--cpu-offload") || strstr(flags, "--pin-memory"))
		return out;
	*assumed = arena_printf(a, "%s%spinned memory", *assumed, **assumed ? "; " : "");
	return arena_printf(a, "%s--pin-memory 1", out);
}
