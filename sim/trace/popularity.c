#include "sim/trace/popularity.h"

#include <stdarg.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "sim/trace/otr.h"

#define MAX_BYTES (64 << 20)

struct counts {
	const char *path;
	const struct model *model;
	uint32_t *n_expert; /* by layer */
	double **count;
};

static int wrong(const struct counts *c, struct err *err, const char *fmt, ...) PRINTF_LIKE(3, 4);

static int wrong(const struct counts *c, struct err *err, const char *fmt, ...)
{
	const struct err_pos pos = {c->path, 0, 0};
	char msg[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	return err_at(err, ERR_INPUT, &pos, "%s", msg);
}

static struct counts counts_new(const char *path, const struct model *m, struct arena *a)
{
	struct counts c = {path, m, arena_array(a, uint32_t, m->n_layer), arena_array(a, double *, m->n_layer)};

	for (uint32_t i = 0; i < m->n_layer; i++) {
		c.n_expert[i] = m->layers[i].n_expert;
		c.count[i] = arena_array(a, double, c.n_expert[i]);
	}
	return c;
}

static int read_row(struct counts *c, uint32_t layer, size_t n_row, const json_t *row, struct err *err)
{
	if (!json_is_array(row) || json_array_size(row) != c->n_expert[layer])
		return wrong(c, err, "row %zu of 'expert_popularity' is no list of %u numbers, the experts of layer %u", n_row,
			c->n_expert[layer], layer);
	for (uint32_t e = 0; e < c->n_expert[layer]; e++) {
		const json_t *v = json_array_get(row, e);
		c->count[layer][e] = json_number_value(v);
		if (!json_is_number(v) || !(c->count[layer][e] >= 0))
			return wrong(c, err, "number %u of row %zu of 'expert_popularity' is none, or negative", e, n_row);
	}
	return 0;
}

static int read_rows(struct counts *c, const json_t *rows, struct err *err)
{
	size_t n = 0;

	if (!json_is_array(rows))
		return wrong(c, err, "has no list 'expert_popularity'");
	for (uint32_t i = 0; i < c->model->n_layer; i++) {
		if (!c->n_expert[i])
			continue;
		if (n == json_array_size(rows))
			return wrong(c, err, "'expert_popularity' has %zu rows, but '%s' more layers with experts", n,
				c->model->name);
		if (read_row(c, i, n, json_array_get(rows, n), err))
			return -1;
		n++;
	}
	if (n < json_array_size(rows))
		return wrong(c, err, "'expert_popularity' has %zu rows, but '%s' %zu layers with experts", json_array_size(rows),
			c->model->name, n);
	return 0;
}

static int read_json(struct counts *c, uint64_t *hash, struct err *err)
{
	json_t *root;

	if (json_read_file(c->path, MAX_BYTES, &root, err))
		return -1;
	int rc = read_rows(c, json_object_get(root, "expert_popularity"), err);
	json_decref(root);
	for (uint32_t i = 0; i < c->model->n_layer; i++)
		*hash = hash_bytes(*hash, c->count[i], c->n_expert[i] * sizeof(double));
	return rc;
}

static int count_step(struct counts *c, const struct trace_step *step, struct err *err)
{
	for (size_t k = 0; k < step->n_access; k++) {
		const struct trace_access *a = &step->access[k];
		if (a->kind != TRACE_EXPERT)
			continue;
		if (a->layer < 0 || (uint32_t)a->layer >= c->model->n_layer || a->expert >= c->n_expert[a->layer])
			return wrong(c, err, "has expert %u in layer %d, which '%s' has not", a->expert, a->layer, c->model->name);
		c->count[a->layer][a->expert] += (double)a->tokens;
	}
	return 0;
}

static int read_trace(struct counts *c, struct arena *a, uint64_t *hash, struct err *err)
{
	struct otr_reader *r;
	struct trace_step step;
	int more = -1;

	if (otr_open(c->path, a, &r, err))
		return -1;
	*hash = otr_hash(r);
	if (otr_info(r)->kind != OTR_STEPS)
		wrong(c, err, "is a trace of requests, not of steps");
	else
		while ((more = otr_next_step(r, &step, err)) > 0 && (more = count_step(c, &step, err)) == 0)
			;
	otr_close(r);
	return more;
}

int popularity_read(const char *path, const struct model *m, struct arena *a, struct experts_popularity *out,
	uint64_t *hash, struct err *err)
{
	size_t len = strlen(path);
	struct counts c = counts_new(path, m, a);

	*hash = HASH_INIT;
	if (len > 4 && strcmp(path + len - 4, ".otr") == 0 ? read_trace(&c, a, hash, err) : read_json(&c, hash, err))
		return -1;
	*out = (struct experts_popularity){m->n_layer, c.n_expert, (const double *const *)c.count};
	return 0;
}
