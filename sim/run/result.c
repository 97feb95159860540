#include "sim/run/result.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

const struct result_field result_fields[RESULT_FIELD_N] = {
	[RESULT_DECODE_TOK_S] = {"decode_tok_s", UNIT_TOKEN_RATE, true, "tokens of all sequences / decode time"},
	[RESULT_PREFILL_TOK_S] = {"prefill_tok_s", UNIT_TOKEN_RATE, true,
		"prompt tokens of all sequences / prefill time"},
	[RESULT_E2E_TOK_S] = {"e2e_tok_s", UNIT_TOKEN_RATE, true, "generated tokens of all sequences / total time"},
	[RESULT_TTFT_S] = {"ttft_s", UNIT_TIME, true, "prefill with its first sampling"},
	[RESULT_TPOT_S] = {"tpot_s", UNIT_TIME, true, "decode time / decode steps"},
	[RESULT_TOTAL_S] = {"total_s", UNIT_TIME, true, "prefill and decode, without loading"},
	[RESULT_UPPER_BOUND_TOK_S] = {"upper_bound_tok_s", UNIT_TOKEN_RATE, false,
		"decode bound: what must move, over datasheet bandwidth"},
};

/* NAN is null: "not known" is no number. */
static json_t *number(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

static json_t *count(uint64_t n)
{
	return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n);
}

static json_t *memory_json(const struct ledger *l, int i)
{
	const struct ledger_row *row = &l->row[i];

	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "name", row->name, "capacity_bytes",
		count(row->capacity_bytes), "used_bytes", count(ledger_used(l, i)), "weights_bytes",
		count(row->used_bytes[LEDGER_WEIGHTS]), "kv_bytes", count(row->used_bytes[LEDGER_KV]),
		"activation_bytes", count(row->used_bytes[LEDGER_ACTIVATION]), "overhead_bytes",
		count(row->used_bytes[LEDGER_OVERHEAD]));
}

static json_t *critical_json(const struct result *r)
{
	json_t *list = json_array();

	for (int i = 0; i < r->n_resources; i++)
		if (r->resource[i].critical > 0)
			json_array_append_new(list, json_pack("{s:s, s:f}", "resource", r->resource[i].name, "share",
							    r->resource[i].critical));
	if (r->critical_overhead > 0)
		json_array_append_new(list,
			json_pack("{s:s, s:f}", "resource", "overhead", "share", r->critical_overhead));
	return list;
}

static double hit_rate(const struct result_cache *c)
{
	return c->lookups ? (double)c->hits / (double)c->lookups : NAN;
}

static json_t *caches_json(const struct result *r)
{
	json_t *list = json_array();

	for (int i = 0; i < r->n_caches; i++) {
		const struct result_cache *c = &r->cache[i];
		json_array_append_new(list,
			json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "name", c->name, "lookups", count(c->lookups), "hits",
				count(c->hits), "hit_rate", number(hit_rate(c)), "decode_hit_rate", number(c->decode_hit_rate),
				"read_bytes", count(c->read_bytes)));
	}
	return list;
}

int result_print_json(const struct result *r, FILE *to)
{
	json_t *root = json_object(), *interval = json_object(), *memory = json_array(), *resources = json_array();

	json_object_set_new(root, "fits", json_boolean(r->fits));
	for (int f = 0; f < RESULT_FIELD_N; f++) {
		const char *name = result_fields[f].name;
		json_object_set_new(root, name, number(r->value[f]));
		if (result_fields[f].interval)
			json_object_set_new(interval, name,
				json_pack("[o, o]", number(r->low80[f]), number(r->high80[f])));
	}
	for (int i = 0; i < r->memory.n; i++)
		json_array_append_new(memory, memory_json(&r->memory, i));
	for (int i = 0; i < r->n_resources; i++) {
		const struct result_resource *res = &r->resource[i];
		json_array_append_new(resources,
			json_pack("{s:s, s:o, s:o, s:o}", "name", res->name, "busy", number(res->busy),
				"utilisation", number(res->utilisation), "bytes", number(res->bytes)));
	}
	json_object_set_new(root, "interval80", interval);
	json_object_set_new(root, "memory", memory);
	json_object_set_new(root, "resources", resources);
	json_object_set_new(root, "critical", critical_json(r));
	if (r->n_caches)
		json_object_set_new(root, "caches", caches_json(r));
	json_object_set_new(root, "events", count(r->events));
	json_object_set_new(root, "wall_s", number(r->wall_s));
	json_object_set_new(root, "key", json_string(r->key));
	json_object_set_new(root, "version", json_string(OFFSIM_VERSION));

	int rc = json_dumpf(root, to, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
	json_decref(root);
	fputc('\n', to);
	return rc;
}
