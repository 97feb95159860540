#include "sim/run/validate.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "hw/bench.h"
#include "sim/run/run.h"
#include "sim/run/validate_rows.h"

const char *validate_status_name(enum validate_status s)
{
	static const char *const names[VALIDATE_STATUS_N] = {"ok", "does_not_fit", "skipped", "error"};

	return names[s];
}

const char *validate_metric_name(enum validate_metric m)
{
	static const char *const names[VALIDATE_METRIC_N] = {"decode", "prefill", "e2e", "ttft"};

	return names[m];
}

bool validate_wants(const struct validate_options *o, const char *engine)
{
	size_t len = strlen(engine);

	for (const char *p = o->engine; p && *p; p += strcspn(p, ","), p += *p == ',')
		if (strcspn(p, ",") == len && memcmp(p, engine, len) == 0)
			return true;
	return !o->engine;
}

static void take_result(struct validate_row *row, const struct scenario *s, const struct result *r)
{
	row->predicted = r->value[row->field] * row->scale;
	row->low80 = r->low80[row->field] * row->scale;
	row->high80 = r->high80[row->field] * row->scale;
	row->upper_bound = r->value[RESULT_UPPER_BOUND_TOK_S];
	row->thumb = row->metric == VALIDATE_DECODE ? r->thumb_tok_s * row->scale : NAN;
	if (row->per_token) {
		/* Seconds for one token of each sequence. */
		double batch = (double)s->workload.batch, low = row->low80;
		row->predicted = batch / row->predicted;
		row->low80 = batch / row->high80;
		row->high80 = batch / low;
	}
	row->status = isfinite(row->predicted) ? VALIDATE_OK : VALIDATE_ERROR;
}

static void misfit(struct validate_row *row, const struct ledger *l, struct arena *a)
{
	row->status = VALIDATE_NO_FIT;
	for (int i = 0; i < l->n; i++)
		if (ledger_missing(l, i))
			row->reason = arena_printf(a, "%s lacks %.1f GiB", l->row[i].name,
				(double)ledger_missing(l, i) / 1073741824.0);
}

static void run_row(struct validate_row *row, const struct validate_how *how, const volatile sig_atomic_t *interrupted,
	struct arena *keep)
{
	struct run_options o = {.interval = how->interval, .interrupted = interrupted};
	struct scenario *s;
	struct result r;
	struct err err = {0};
	struct arena a;

	arena_init(&a, keep->nomem, keep->nomem_ctx);
	int rc = scenario_load_text(row->scenario, row->where, &a, &s, &err);
	if (rc == 0 && how->adjust)
		how->adjust(how->ctx, s, &a);
	if (rc || run_scenario(s, &o, &a, &r, NULL, &err)) {
		row->status = VALIDATE_ERROR;
		row->reason = arena_strdup(keep, err.msg);
	} else if (!r.fits) {
		misfit(row, &r.memory, keep);
	} else {
		take_result(row, s, &r);
	}
	arena_release(&a);
}

struct job {
	const struct validate_options *options;
	const struct validate_how *how;
	struct validate_row *row;
	size_t n;
	atomic_size_t next;
	struct arena *arena; /* one a worker */
	atomic_size_t next_worker;
};

static void *work(void *ctx)
{
	struct job *job = ctx;
	struct arena *keep = &job->arena[atomic_fetch_add(&job->next_worker, 1)];
	size_t i;

	while ((i = atomic_fetch_add(&job->next, 1)) < job->n) {
		if (job->options->interrupted && *job->options->interrupted)
			break;
		if (job->row[i].status != VALIDATE_SKIPPED)
			run_row(&job->row[i], job->how, job->options->interrupted, keep);
	}
	return NULL;
}

int validate_run_rows(struct validate_row *row, size_t n, const struct validate_options *o, const struct validate_how *how,
	struct arena *a, struct err *err)
{
	struct job job = {.options = o, .how = how, .row = row, .n = n};
	pthread_t *thread = arena_array(a, pthread_t, o->workers);
	unsigned n_threads = 0;

	job.arena = arena_array(a, struct arena, o->workers);
	for (unsigned i = 0; i < o->workers; i++)
		arena_init(&job.arena[i], a->nomem, a->nomem_ctx);
	while (n_threads < o->workers && pthread_create(&thread[n_threads], NULL, work, &job) == 0)
		n_threads++;
	for (unsigned i = 0; i < n_threads; i++)
		pthread_join(thread[i], NULL);
	/* Words of the workers' arenas, which end here. */
	for (size_t i = 0; i < n; i++)
		row[i].reason = arena_strdup(a, row[i].reason);
	for (unsigned i = 0; i < o->workers; i++)
		arena_release(&job.arena[i]);
	if (n_threads == 0)
		return err_set(err, ERR_IO, "cannot start a thread");
	return o->interrupted && *o->interrupted ? err_set(err, ERR_INTERRUPTED, "interrupted") : 0;
}

/* With a machine it must be; else what looks like it is, so that the machine is asked for. */
static bool is_llama_bench(const char *path, const struct validate_options *o, struct arena *a)
{
	return o->machine || bench_is(path, &bench_llama_bench, a);
}

int validate_run(const char *path, const struct validate_options *o, struct arena *a, struct validate *out,
	struct err *err)
{
	struct validate_rows rows = {0};

	if (is_llama_bench(path, o, a) ? validate_read_llama(path, o, a, &rows, err) :
					 validate_read_corpus(path, o, a, &rows, err))
		return -1;

	struct validate_how how = {.interval = true};
	if (validate_run_rows(rows.at, rows.n, o, &how, a, err))
		return -1;
	*out = (struct validate){.row = rows.at, .n = rows.n};
	for (size_t i = 0; i < rows.n; i++) {
		out->n_scored += rows.at[i].scored;
		out->n_ran += rows.at[i].scored && rows.at[i].status == VALIDATE_OK;
	}
	for (int m = 0; m < VALIDATE_METRIC_N; m++)
		validate_summarise(out, (enum validate_metric)m, &out->summary[m], a);
	validate_summarise_thumb(out, &out->thumb, a);
	return 0;
}
