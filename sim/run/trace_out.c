#include "sim/run/trace_out.h"

#include "base/file.h"
#include "sim/run/run.h"
#include "sim/trace/otr.h"

struct otr_layer *trace_out_layers(const struct model *m, struct arena *a)
{
	struct otr_layer *layer = arena_array(a, struct otr_layer, m->n_layer);

	for (uint32_t i = 0; i < m->n_layer; i++) {
		const struct model_layer *l = &m->layers[i];
		layer[i] = (struct otr_layer){
			.n_expert = l->n_expert,
			.n_expert_used = l->n_expert_used,
			.expert_bytes = l->n_expert ? l->group[MODEL_EXPERTS].bytes / l->n_expert : 0,
			.dense_bytes = place_layer_bytes(m, (int)i) - l->group[MODEL_EXPERTS].bytes,
		};
	}
	return layer;
}

static struct otr_info describe(const struct scenario *s, struct arena *a)
{
	return (struct otr_info){
		.kind = OTR_STEPS,
		.model = s->model_name,
		.source = arena_printf(a, "offsim run %s, version " OFFSIM_VERSION, s->canonical),
		.licence = "",
		.note = "",
		.n_layer = s->model->n_layer,
		.layer = trace_out_layers(s->model, a),
		.workload = s->workload,
	};
}

/* Keeps those of experts alone; the step's accesses are the cursor's own. */
static void drop_others(struct trace_cursor *c, struct trace_step *step)
{
	size_t n = 0;

	for (size_t i = 0; i < step->n_access; i++)
		if (step->access[i].kind == TRACE_EXPERT)
			c->access.at[n++] = step->access[i];
	step->access = c->access.at;
	step->n_access = n;
}

int trace_out_steps(const struct trace *t, bool experts_only, struct otr_writer *w, const volatile sig_atomic_t *interrupted,
	struct arena *a, struct err *err)
{
	struct trace_cursor c;
	int rc = 0;

	trace_cursor_init(&c, t, a);
	for (uint64_t i = 0; rc == 0 && i < trace_n_steps(t); i++) {
		struct trace_step step;
		if (interrupted && *interrupted)
			rc = err_set(err, ERR_INTERRUPTED, "interrupted; no trace was written");
		else
			rc = trace_step_get(&c, i, &step, err);
		if (rc == 0 && experts_only)
			drop_others(&c, &step);
		if (rc == 0)
			rc = otr_put_step(w, &step, err);
	}
	trace_cursor_release(&c);
	return rc;
}

int trace_out_check(const struct scenario *s, const char *path, struct err *err)
{
	if (s->n_requests)
		return err_set(err, ERR_INPUT, "the workload is one of requests: there are no steps of it to write to '%s'", path);
	return file_out_check(path, err);
}

int trace_out(const struct scenario *s, const char *path, const volatile sig_atomic_t *interrupted, struct arena *a,
	struct err *err)
{
	struct otr_info info = describe(s, a);
	struct otr_writer *w;
	struct trace t;

	run_make_trace(&t, s, a);
	if (otr_create(path, &info, a, &w, err))
		return -1;
	if (trace_out_steps(&t, false, w, interrupted, a, err)) {
		otr_abort(w);
		return -1;
	}
	return otr_commit(w, err);
}
