/*
 * fuzz_gpu_raw.c - any bytes as the samples of offsim-cuda. What is made of them keeps its promises: values positive and
 * finite, rates by ascending size; and the profile can be written, or the reason said.
 */
#include <math.h>
#include <stdlib.h>

#include "hw/measure_gpu.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct gpu_constant *c)
{
	if (!(c->value > 0) || !isfinite(c->value) || !(c->spread >= 0) || !isfinite(c->spread) || !c->n)
		BUG("%s is %g with a spread of %g", c->name, c->value, c->spread);
	for (size_t i = 0; i < c->n_points; i++)
		if (!(c->rate_bytes_s[i] > 0) || !isfinite(c->rate_bytes_s[i]) || (i && c->size_bytes[i] <= c->size_bytes[i - 1]))
			BUG("%s: point %zu", c->name, i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a;
	struct gpu_fit f;
	struct err err = {0};
	char *text = NULL;
	size_t len;

	arena_init(&a, NULL, NULL);
	if (gpu_fit_read_text((const char *)data, size, "f", &a, &f, &err)) {
		if (err.code != ERR_INPUT || !err.msg[0])
			BUG("refused without a message");
	} else {
		for (size_t i = 0; i < f.constants.n; i++)
			check(&f.constants.at[i]);
		FILE *to = open_memstream(&text, &len);
		if (gpu_fit_write(&f, NULL, to, &a, &err) && !err.msg[0])
			BUG("refused without a message");
		fclose(to);
		free(text);
	}
	arena_release(&a);
	return 0;
}
