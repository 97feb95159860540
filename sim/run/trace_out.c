#include "sim/run/trace_out.h"

#include "sim/run/run.h"
#include "sim/trace/otr.h"

static struct otr_info describe(const struct scenario *s, struct arena *a)
{
	const struct model *m = s->model;
	struct otr_info info = {
		.kind = OTR_STEPS,
		.model = s->model_name,
		.source = arena_printf(a, "offsim run %s, version " OFFSIM_VERSION, s->canonical),
		.licence = "",
		.note = "",
		.n_layer = m->n_layer,
		.layer = arena_array(a, struct otr_layer, m->n_layer),
		.workload = s->workload,
	};

	for (uint32_t i = 0; i < m->n_layer; i++) {
		const struct model_layer *l = &m->layers[i];
		info.layer[i] = (struct otr_layer){
			.n_expert = l->n_expert,
			.n_expert_used = l->n_expert_used,
			.expert_bytes = l->n_expert ? l->group[MODEL_EXPERTS].bytes / l->n_expert : 0,
			.dense_bytes = place_layer_bytes(m, (int)i) - l->group[MODEL_EXPERTS].bytes,
		};
	}
	return info;
}

static int put_steps(const struct trace *t, struct otr_writer *w, const volatile sig_atomic_t *interrupted, struct arena *a,
	struct err *err)
{
	struct trace_cursor c;
	int rc = 0;

	trace_cursor_init(&c, t, a);
	for (uint64_t i = 0; rc == 0 && i < trace_n_steps(t); i++) {
		struct trace_step step;
		if (interrupted && *interrupted)
			rc = err_set(err, ERR_INTERRUPTED, "interrupted; no trace was written");
		else
			rc = trace_step_get(&c, i, &step, err) || otr_put_step(w, &step, err) ? -1 : 0;
	}
	trace_cursor_release(&c);
	return rc;
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
	if (put_steps(&t, w, interrupted, a, err)) {
		otr_abort(w);
		return -1;
	}
	return otr_commit(w, err);
}
