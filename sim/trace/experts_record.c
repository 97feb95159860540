#include "sim/trace/experts_record.h"

#include <inttypes.h>
#include <string.h>

/* Of uses kept in memory. */
#define BYTES_MAX (UINT64_C(4) << 30)

struct reading {
	const char *path;
	const struct otr_info *info;
	const struct model *model;
	struct experts_record *record;
	uint64_t step;
	bool filled;       /* the second pass: rows are stored */
	uint64_t *at[2];   /* rows stored so far, by phase and layer */
};

static int wrong(const struct reading *r, struct err *err, const char *what, int layer)
{
	const struct err_pos pos = {r->path, 0, 0};

	return err_at(err, ERR_INPUT, &pos, "step %" PRIu64 ", layer %d: %s", r->step, layer, what);
}

/* As the head says, else of the first step. */
static uint32_t used_at_once(const struct reading *r, const struct trace_step *s, int layer, size_t n)
{
	if (r->record->n_used[layer])
		return r->record->n_used[layer];
	if (layer < (int)r->info->n_layer && r->info->layer[layer].n_expert_used)
		return r->info->layer[layer].n_expert_used;
	return (uint32_t)(n / s->n_tokens);
}

/* The uses of one layer in a step: rows x n_used. */
static int read_layer(struct reading *r, const struct trace_step *s, const struct trace_access *a, size_t n, struct err *err)
{
	struct experts_record *rec = r->record;
	int layer = a->layer;

	if (layer < 0 || layer >= (int)rec->n_layer || !r->model->layers[layer].n_expert)
		return wrong(r, err, "the model has no experts there", layer);
	uint32_t n_used = used_at_once(r, s, layer, n);
	if (n_used == 0 || n % n_used)
		return wrong(r, err, "tokens do not all use the same number of experts", layer);
	rec->n_used[layer] = n_used;
	for (size_t i = 0; i < n; i++) {
		if (a[i].tokens != 1)
			return wrong(r, err, "uses are counted, not listed by token", layer);
		if (a[i].expert >= r->model->layers[layer].n_expert)
			return wrong(r, err, "an expert that the model does not have", layer);
		if (r->filled)
			rec->used[s->phase][layer][r->at[s->phase][layer] * n_used + i] = (uint16_t)a[i].expert;
	}
	if (r->filled)
		r->at[s->phase][layer] += n / n_used;
	else
		rec->n_rows[s->phase][layer] += n / n_used;
	return 0;
}

static int read_step(struct reading *r, const struct trace_step *s, struct err *err)
{
	for (size_t i = 0; i < s->n_access;) {
		const struct trace_access *a = &s->access[i];
		size_t n = 1;
		if (a->kind == TRACE_EXPERT) {
			while (i + n < s->n_access && a[n].kind == TRACE_EXPERT && a[n].layer == a->layer)
				n++;
			if (read_layer(r, s, a, n, err))
				return -1;
		}
		i += n;
	}
	if (!r->filled)
		r->record->n_tokens[s->phase] += s->n_tokens;
	return 0;
}

static int read_steps(struct reading *r, struct otr_reader *file, struct err *err)
{
	struct trace_step step;
	int rc;

	if (otr_seek(file, 0, err))
		return -1;
	for (r->step = 0; (rc = otr_next_step(file, &step, err)) > 0; r->step++)
		if (read_step(r, &step, err))
			return -1;
	return rc;
}

/* Between the passes. */
static int make_room(struct reading *r, struct arena *a, struct err *err)
{
	struct experts_record *rec = r->record;
	const struct err_pos pos = {r->path, 0, 0};
	uint64_t n_uses = 0;

	for (uint32_t i = 0; i < rec->n_layer; i++) {
		if (r->model->layers[i].n_expert && !r->model->layers[i].draft && !rec->n_used[i])
			return err_at(err, ERR_INPUT, &pos, "holds no uses of the experts of layer %u", i);
		n_uses += (rec->n_rows[TRACE_PREFILL][i] + rec->n_rows[TRACE_DECODE][i]) * rec->n_used[i];
	}
	if (n_uses == 0)
		return err_at(err, ERR_INPUT, &pos, "holds no uses of experts");
	if (n_uses * sizeof(uint16_t) > BYTES_MAX)
		return err_at(err, ERR_INPUT, &pos, "holds %" PRIu64 " uses of experts, more than fit in memory", n_uses);
	for (int phase = 0; phase < 2; phase++)
		for (uint32_t i = 0; i < rec->n_layer; i++)
			rec->used[phase][i] = arena_array(a, uint16_t, rec->n_rows[phase][i] * rec->n_used[i]);
	r->filled = true;
	return 0;
}

int experts_record_read(const char *path, const struct model *m, struct arena *a, struct experts_record **out,
	struct err *err)
{
	struct experts_record *rec = arena_new(a, struct experts_record);
	struct reading r = {.path = path, .model = m, .record = rec};
	struct otr_reader *file;
	int rc = 0;

	*rec = (struct experts_record){.n_layer = m->n_layer, .n_used = arena_array(a, uint32_t, m->n_layer)};
	for (int phase = 0; phase < 2; phase++) {
		rec->n_rows[phase] = arena_array(a, uint64_t, m->n_layer);
		rec->used[phase] = arena_array(a, uint16_t *, m->n_layer);
		r.at[phase] = arena_array(a, uint64_t, m->n_layer);
	}
	if (otr_open(path, a, &file, err))
		return -1;
	if (otr_info(file)->kind != OTR_STEPS) {
		const struct err_pos pos = {path, 0, 0};
		rc = err_at(err, ERR_INPUT, &pos, "holds requests, not uses of experts");
	}
	r.info = otr_info(file);
	rec->hash = otr_hash(file);
	rc = rc || read_steps(&r, file, err) || make_room(&r, a, err) || read_steps(&r, file, err) ? -1 : 0;
	otr_close(file);
	*out = rec;
	return rc;
}

const uint16_t *experts_record_at(const struct experts_record *r, enum trace_phase phase, uint64_t row, uint32_t layer)
{
	if (r->n_rows[phase][layer] == 0)
		phase = phase == TRACE_PREFILL ? TRACE_DECODE : TRACE_PREFILL;
	return r->used[phase][layer] + row % r->n_rows[phase][layer] * r->n_used[layer];
}
