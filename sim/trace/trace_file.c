#include "sim/trace/trace_file.h"

#include <stdarg.h>
#include <string.h>

/* Shared by all cursors. */
struct recorded {
	const char *path;
	uint64_t hash;
	uint32_t max_expert;
};

/* A cursor's own. */
struct replay {
	struct otr_reader *reader;
	uint64_t next; /* record the reader will give */
	uint32_t *slot; /* by expert: its place in the list being made, plus 1; zeros between layers */
};

static int replay_open(struct trace_cursor *c, struct err *err)
{
	const struct recorded *data = c->trace->data;
	struct replay *r = arena_new(c->arena, struct replay);

	*r = (struct replay){.slot = arena_array(c->arena, uint32_t, data->max_expert + 1)};
	if (otr_open(data->path, c->arena, &r->reader, err))
		return -1;
	c->state = r;
	return 0;
}

/* One use after another becomes each expert once, in order of its last use: the list is made from its end. Returns how
   many there are; they are the last of a[0 .. n). */
static size_t merge_uses(struct trace_access *a, size_t n, uint32_t *slot)
{
	size_t out = n;

	for (size_t i = n; i-- > 0;) {
		uint32_t *at = &slot[a[i].expert];
		if (*at) {
			a[*at - 1].tokens += a[i].tokens;
			continue;
		}
		a[--out] = a[i];
		*at = (uint32_t)out + 1;
	}
	for (size_t i = out; i < n; i++)
		slot[a[i].expert] = 0;
	return n - out;
}

static size_t run_length(const struct trace_access *a, const struct trace_access *end)
{
	size_t n = 1;

	if (a->kind == TRACE_EXPERT)
		while (a + n < end && a[n].kind == TRACE_EXPERT && a[n].layer == a->layer)
			n++;
	return n;
}

static void merge_step(struct trace_cursor *c, struct trace_step *step)
{
	const struct trace_access *a = step->access, *end = a + step->n_access;
	struct replay *r = c->state;

	c->access.n = 0;
	while (a < end) {
		size_t n = run_length(a, end), first = c->access.n;
		for (size_t i = 0; i < n; i++)
			VEC_PUSH(&c->access, c->arena, a[i]);
		if (a->kind == TRACE_EXPERT) {
			size_t kept = merge_uses(&c->access.at[first], n, r->slot);
			memmove(&c->access.at[first], &c->access.at[first + n - kept], kept * sizeof(*a));
			c->access.n = first + kept;
		}
		a += n;
	}
	step->access = c->access.at;
	step->n_access = c->access.n;
}

static int file_step(struct trace_cursor *c, uint64_t index, struct trace_step *step, struct err *err)
{
	if (!c->state && replay_open(c, err))
		return -1;

	struct replay *r = c->state;
	if (r->next != index && otr_seek(r->reader, index, err))
		return -1;
	int rc = otr_next_step(r->reader, step, err);
	if (rc == 0)
		BUG("step %llu of a shorter file", (unsigned long long)index);
	if (rc < 0)
		return -1;
	r->next = index + 1;
	step->index = index;
	merge_step(c, step);
	return 0;
}

static void file_release(struct trace_cursor *c)
{
	if (c->state)
		otr_close(((struct replay *)c->state)->reader);
}

const struct trace_ops trace_file = {
	.name = "file",
	.help = "recorded steps",
	.step = file_step,
	.release = file_release,
};

/* ---- the first reading ---- */

struct check {
	struct trace *trace;
	const char *path;
	uint64_t index;
	uint64_t max_sequences, min_context, max_context;
	bool decoded;        /* a decode step has been */
	bool alike;          /* decode steps have the same accesses, but for which experts and how long the cache is */
	struct trace_access *first; /* of the first decode step */
	size_t n_first;
};

static int wrong(const struct check *k, struct err *err, const char *fmt, ...) PRINTF_LIKE(3, 4);

static int wrong(const struct check *k, struct err *err, const char *fmt, ...)
{
	const struct err_pos pos = {k->path, 0, 0};
	char what[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return err_at(err, ERR_INPUT, &pos, "step %llu %s", (unsigned long long)k->index, what);
}

static int check_access(const struct check *k, const struct trace_access *a, struct err *err)
{
	const struct model *m = k->trace->model;

	if (a->layer >= (int)m->n_layer)
		return wrong(k, err, "has layer %d; model '%s' has %u layers", a->layer, m->name, m->n_layer);
	if (a->layer < 0) {
		if (a->kind != TRACE_WEIGHTS || (a->group != MODEL_EMBED && a->group != MODEL_OUTPUT))
			return wrong(k, err, "uses something of no layer that is neither embedding nor output");
		return 0;
	}

	const struct model_layer *l = &m->layers[a->layer];
	if (a->kind == TRACE_EXPERT && a->expert >= l->n_expert)
		return wrong(k, err, "uses expert %u of layer %d; model '%s' has %u there", a->expert, a->layer, m->name,
			l->n_expert);
	if (a->kind == TRACE_WEIGHTS && l->group[a->group].params == 0)
		return wrong(k, err, "uses the %s of layer %d, of which model '%s' has none", model_group_name(a->group),
			a->layer, m->name);
	if ((a->kind == TRACE_KV_READ || a->kind == TRACE_KV_WRITE) && l->n_head == 0)
		return wrong(k, err, "uses a cache of layer %d, where model '%s' has no attention", a->layer, m->name);
	return 0;
}

static bool same_access(const struct trace_access *a, const struct trace_access *b)
{
	return a->layer == b->layer && a->kind == b->kind && a->group == b->group && a->tokens == b->tokens;
}

static void compare_decode(struct check *k, const struct trace_step *s, struct arena *a)
{
	if (!k->decoded) {
		k->decoded = k->alike = true;
		k->n_first = s->n_access;
		k->first = arena_array(a, struct trace_access, s->n_access);
		memcpy(k->first, s->access, s->n_access * sizeof(*s->access));
		return;
	}
	k->alike = k->alike && s->n_access == k->n_first;
	for (size_t i = 0; k->alike && i < s->n_access; i++)
		k->alike = same_access(&s->access[i], &k->first[i]);
}

static int check_step(struct check *k, const struct trace_step *s, struct arena *a, struct err *err)
{
	struct trace *t = k->trace;
	uint64_t end = s->context + (s->n_sequences ? s->n_tokens / s->n_sequences : 0);

	if (s->n_sequences == 0 || s->n_tokens == 0)
		return wrong(k, err, "has no sequences or no tokens");
	for (size_t i = 0; i < s->n_access; i++)
		if (check_access(k, &s->access[i], err))
			return -1;
	if (s->n_sequences > k->max_sequences)
		k->max_sequences = s->n_sequences;
	if (s->context < k->min_context)
		k->min_context = s->context;
	if (end > k->max_context)
		k->max_context = end;
	t->sampled_tokens += s->n_sampled;
	if (s->phase == TRACE_PREFILL) {
		t->mixed |= t->n_decode > 0;
		t->n_prefill++;
		t->prefill_tokens += s->n_tokens;
		if (s->n_tokens > t->rows_max)
			t->rows_max = s->n_tokens;
	} else {
		t->n_decode++;
		t->decode_tokens += s->n_tokens;
		compare_decode(k, s, a);
	}
	return 0;
}

static int check_head(const struct otr_info *info, const char *path, struct err *err)
{
	const struct err_pos pos = {path, 0, 0};

	if (info->kind != OTR_STEPS)
		return err_at(err, ERR_INPUT, &pos, "holds requests, not steps");
	if (info->experts_only)
		return err_at(err, ERR_INPUT, &pos,
			"holds the uses of experts alone: give it as 'routing: {trace: ...}' beside a workload");
	return 0;
}

/* With one sequence each step uses as many experts of a layer as the next; with several that is chance. */
static bool smooth(const struct check *k)
{
	bool experts = false;

	for (uint32_t i = 0; i < k->trace->model->n_layer; i++)
		experts |= k->trace->model->layers[i].n_expert > 0;
	return k->alike && !k->trace->mixed && !(experts && k->max_sequences > 1);
}

static void set_workload(struct check *k, const struct otr_info *info)
{
	struct trace_workload *w = &k->trace->workload;

	*w = info->workload;
	if (w->batch) {
		/* A prefill's last logits count where a token was wanted. */
		k->trace->sampled_tokens = w->batch * w->generate;
		return;
	}
	w->batch = k->max_sequences;
	w->depth = k->min_context;
	w->prompt = k->trace->mixed ? 0 : k->trace->prefill_tokens / w->batch;
	w->generate = k->max_context - w->depth - w->prompt;
}

int trace_file_init(struct trace *t, const struct model *m, const char *path, struct arena *a, struct err *err)
{
	struct recorded *data = arena_new(a, struct recorded);
	struct check k = {.trace = t, .path = path, .min_context = UINT64_MAX};
	struct otr_reader *probe;
	int rc;

	*data = (struct recorded){.path = arena_strdup(a, path)};
	for (uint32_t i = 0; i < m->n_layer; i++)
		if (m->layers[i].n_expert > data->max_expert)
			data->max_expert = m->layers[i].n_expert;
	*t = (struct trace){.ops = &trace_file, .model = m, .data = data};
	if (otr_open(path, a, &probe, err))
		return -1;
	struct otr_info info = *otr_info(probe);
	uint64_t n = otr_n_records(probe);
	data->hash = otr_hash(probe);

	rc = check_head(&info, path, err);
	for (k.index = 0; rc == 0 && k.index < n; k.index++) {
		struct trace_step step;
		rc = otr_next_step(probe, &step, err) < 0 || check_step(&k, &step, a, err) ? -1 : 0;
	}
	otr_close(probe);
	if (rc == 0 && n == 0) {
		const struct err_pos pos = {path, 0, 0};
		rc = err_at(err, ERR_INPUT, &pos, "holds no steps");
	}
	if (rc)
		return -1;
	t->smooth = smooth(&k);
	set_workload(&k, &info);
	return 0;
}

uint64_t trace_file_hash(const struct trace *t)
{
	return ((const struct recorded *)t->data)->hash;
}
