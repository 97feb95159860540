#include "sim/run/record.h"

#include <math.h>

#include "base/vec.h"

struct values {
	VEC(struct store_value);
};

static void text(struct values *v, struct arena *a, const char *column, const char *value)
{
	VEC_PUSH(v, a, ((struct store_value){.column = column, .type = STORE_TEXT, .text = value}));
}

static void real(struct values *v, struct arena *a, const char *column, double value)
{
	VEC_PUSH(v, a, ((struct store_value){.column = column, .type = STORE_REAL, .real = value}));
}

static void count(struct values *v, struct arena *a, const char *column, uint64_t value)
{
	VEC_PUSH(v, a, ((struct store_value){.column = column, .type = STORE_COUNT, .count = value}));
}

static struct store_row row(const struct values *v)
{
	return (struct store_row){v->at, v->n};
}

static struct store_row run_row(const struct scenario *s, const struct result *r, struct arena *a)
{
	struct values v = {0};

	text(&v, a, "scenario", s->canonical);
	text(&v, a, "version", OFFSIM_VERSION);
	text(&v, a, "status", r->fits ? "ok" : "does_not_fit");
	count(&v, a, "fits", r->fits);
	text(&v, a, "model", s->model_name);
	text(&v, a, "quant", s->quant);
	text(&v, a, "machine", s->machine_name);
	text(&v, a, "engine", s->engine_name);
	count(&v, a, "batch", s->workload.batch);
	count(&v, a, "prompt", s->workload.prompt);
	count(&v, a, "generate", s->workload.generate);
	count(&v, a, "depth", s->workload.depth);
	for (int f = 0; f < RESULT_FIELD_N; f++) {
		const char *name = result_fields[f].name;
		real(&v, a, name, r->value[f]);
		if (result_fields[f].interval) {
			real(&v, a, arena_printf(a, "%s_low80", name), r->low80[f]);
			real(&v, a, arena_printf(a, "%s_high80", name), r->high80[f]);
		}
	}
	real(&v, a, "decode_hit_rate", r->n_caches ? r->cache[0].decode_hit_rate : NAN);
	count(&v, a, "events", r->events);
	return row(&v);
}

static struct store_row memory_row(const struct ledger *l, int i, struct arena *a)
{
	const struct ledger_row *m = &l->row[i];
	struct values v = {0};

	text(&v, a, "memory", m->name);
	count(&v, a, "capacity_bytes", m->capacity_bytes);
	count(&v, a, "used_bytes", ledger_used(l, i));
	count(&v, a, "weights_bytes", m->used_bytes[LEDGER_WEIGHTS]);
	count(&v, a, "kv_bytes", m->used_bytes[LEDGER_KV]);
	count(&v, a, "activation_bytes", m->used_bytes[LEDGER_ACTIVATION]);
	count(&v, a, "overhead_bytes", m->used_bytes[LEDGER_OVERHEAD]);
	return row(&v);
}

static struct store_row resource_row(const char *name, double busy, double utilisation, double bytes,
	double critical, const double critical_of[2], struct arena *a)
{
	struct values v = {0};

	text(&v, a, "resource", name);
	real(&v, a, "busy", busy);
	real(&v, a, "utilisation", utilisation);
	real(&v, a, "bytes", bytes);
	real(&v, a, "critical", critical);
	real(&v, a, "critical_prefill", critical_of[TRACE_PREFILL]);
	real(&v, a, "critical_decode", critical_of[TRACE_DECODE]);
	return row(&v);
}

static struct store_row cache_row(const struct result_cache *c, struct arena *a)
{
	struct values v = {0};

	text(&v, a, "cache", c->name);
	count(&v, a, "lookups", c->lookups);
	count(&v, a, "hits", c->hits);
	real(&v, a, "decode_hit_rate", c->decode_hit_rate);
	count(&v, a, "read_bytes", c->read_bytes);
	return row(&v);
}

static const struct store_param *params(const struct scenario_set *set, size_t n, struct arena *a)
{
	struct store_param *param = arena_array(a, struct store_param, n);

	for (size_t i = 0; i < n; i++)
		param[i] = (struct store_param){set[i].key, set[i].value};
	return param;
}

struct store_run record_rows(const struct scenario *s, const struct result *r, struct arena *a)
{
	struct store_row *memory = arena_array(a, struct store_row, (size_t)r->memory.n);
	struct store_row *resource = arena_array(a, struct store_row, (size_t)r->n_resources + 1);

	struct store_row *cache = arena_array(a, struct store_row, RESULT_MAX_CACHES);

	for (int i = 0; i < r->n_caches; i++)
		cache[i] = cache_row(&r->cache[i], a);
	for (int i = 0; i < r->memory.n; i++)
		memory[i] = memory_row(&r->memory, i, a);
	for (int i = 0; i < r->n_resources; i++)
		resource[i] = resource_row(r->resource[i].name, r->resource[i].busy, r->resource[i].utilisation,
			r->resource[i].bytes, r->resource[i].critical, r->resource[i].critical_of, a);
	resource[r->n_resources] = resource_row("overhead", NAN, NAN, NAN, r->critical_overhead, r->critical_overhead_of, a);
	return (struct store_run){
		.key = r->key,
		.run = run_row(s, r, a),
		.param = params(s->set, s->n_set, a),
		.n_params = s->n_set,
		.memory = memory,
		.n_memory = (size_t)r->memory.n,
		.cache = cache,
		.n_caches = (size_t)r->n_caches,
		.resource = resource,
		.n_resources = (size_t)r->n_resources + (r->fits && r->critical_overhead > 0),
		.wall_s = r->wall_s,
	};
}

struct store_run record_failure(const char *key, const struct scenario_set *set, size_t n_set, const struct err *err,
	struct arena *a)
{
	struct values v = {0};
	const char *message = err->msg;

	if (err->file[0] && err->line)
		message = arena_printf(a, "%s:%d:%d: %s", err->file, err->line, err->col, err->msg);
	else if (err->file[0])
		message = arena_printf(a, "%s: %s", err->file, err->msg);
	text(&v, a, "scenario", "");
	text(&v, a, "version", OFFSIM_VERSION);
	text(&v, a, "status", "failed");
	text(&v, a, "message", message);
	return (struct store_run){
		.key = key, .run = row(&v), .param = params(set, n_set, a), .n_params = n_set, .wall_s = 0};
}

struct rows {
	VEC(struct store_row);
};

static void span(struct rows *rows, struct arena *a, int position, const char *resource, const struct timeline_part *part)
{
	struct values v = {0};

	count(&v, a, "position", (uint64_t)position);
	text(&v, a, "resource", resource);
	real(&v, a, "begin_s", part->begin_s);
	real(&v, a, "end_s", part->end_s);
	real(&v, a, "busy", part->busy);
	VEC_PUSH(rows, a, row(&v));
}

static struct rows span_rows(const struct timeline *t, struct arena *a)
{
	struct rows rows = {0};
	double begin_s = 0;

	for (uint64_t i = 0; i < t->n_steps; i++) {
		double end_s = sim_seconds(t->step_end[i]);
		span(&rows, a, 0, t->decode ? "decode" : "prefill", &(struct timeline_part){begin_s, end_s, 1});
		begin_s = end_s;
	}
	for (int lane = 0; lane < t->n_lanes; lane++) {
		size_t n;
		const struct timeline_part *part = timeline_strip(t, lane, a, &n);
		for (size_t i = 0; i < n; i++)
			span(&rows, a, 1 + lane, t->lane[lane], &part[i]);
	}
	return rows;
}

int record_store(const char *db, const struct scenario *s, const struct result *r, const struct timeline *t,
	struct arena *a, struct err *err)
{
	struct store_run run = record_rows(s, r, a);
	struct store *store;

	if (t) {
		struct rows spans = span_rows(t, a);
		run.span = spans.at;
		run.n_spans = spans.n;
	}
	if (store_open(db, &store, err))
		return -1;
	if (store_put(store, &run, err)) {
		store_close(store, NULL);
		return -1;
	}
	return store_close(store, err);
}
