/*
 * bench_vllm.c - the JSON that vLLM's serving benchmark saves: rates and latencies of a whole server.
 *
 * The unit is in the name: what ends in _ms is milliseconds, other latencies (files that were worked on later) seconds,
 * throughputs are a second. request_rate may be the string "inf".
 */
#include <string.h>

#include "base/json.h"
#include "hw/bench.h"

static bool sniff(const struct bench_text *t)
{
	return bench_has(t, "\"request_throughput\"") && bench_has(t, "\"output_throughput\"");
}

static bool ends_in(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && strcmp(s + n - m, end) == 0;
}

/* The dimension of a key, and what its number is multiplied by; false: it is no measurement. */
static bool dimension(const char *key, enum unit_dim *dim, double *times)
{
	static const char *const latencies[] = {"ttft", "tpot", "itl", "e2el"};

	*times = 1;
	if (ends_in(key, "throughput")) {
		*dim = strncmp(key, "request", 7) == 0 ? UNIT_REQUEST_RATE : UNIT_TOKEN_RATE;
		return true;
	}
	*dim = UNIT_TIME;
	for (size_t i = 0; i < ARRAY_LEN(latencies); i++) {
		if (strstr(key, latencies[i])) {
			*times = ends_in(key, "_ms") ? 1e-3 : 1;
			return true;
		}
	}
	return false;
}

static int read_vllm(struct bench_text *t, struct bench *out, struct err *err)
{
	struct bench_row row = {.kind = BENCH_OTHER, .unused = "of a whole server, which no single constant sets"};
	json_t *root, *value;
	const char *key;
	int rc = 0;

	if (json_read_text(t->s, t->len, t->file, &root, err))
		return -1;
	const char *model = json_string_value(json_object_get(root, "model_id"));
	json_object_foreach(root, key, value)
	{
		double times;
		/* Lists per request, what is null and deviations of 0 are passed over. */
		if (!json_is_number(value) || json_number_value(value) == 0 || !dimension(key, &row.dim, &times))
			continue;
		row.value = json_number_value(value) * times;
		row.line = bench_line_of(t, NULL, arena_printf(t->a, "\"%s\"", key));
		row.what = arena_printf(t->a, "%s of %s", key, model ? model : "a model");
		if ((rc = bench_add(out, t, &row, err)))
			break;
	}
	json_decref(root);
	return rc;
}

const struct bench_format bench_vllm = {
	.name = "vllm",
	.help = "vllm bench serve --save-result: rates and latencies of a server",
	.sniff = sniff,
	.read = read_vllm,
};
