#include "sim/run/sweep.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/intern.h"
#include "base/number.h"
#include "base/vec.h"
#include "sim/run/record.h"
#include "sim/run/run.h"
#include "sim/store/claims.h"

#define MAX_AXES 16
#define MAX_VALUES 100000
#define MAX_POINTS UINT64_C(100000000)
/* How many done points may wait for the writer, for each worker. */
#define WAITING_PER_WORKER 16
/* For a point that another sweep has claimed; then it is simulated here too. */
#define PATIENCE_S 10.0
#define LOOK_AGAIN_NS 20000000

/* ---- the grid ---- */

/* FIRST..LAST/STEP as numbers; LAST belongs to it even where no step lands on it. */
static int parse_range(const struct yaml_node *node, const char *dots, struct sweep_axis *axis, struct arena *a,
	struct err *err)
{
	const char *text = node->text, *slash = strchr(dots, '/');
	size_t last_len = slash ? (size_t)(slash - dots - 2) : strlen(dots + 2);
	double first, last, step = 1;

	if (!number_parse(text, (size_t)(dots - text), &first) || !number_parse(dots + 2, last_len, &last) ||
		(slash && !number_parse(slash + 1, strlen(slash + 1), &step)))
		return err_at(err, ERR_INPUT, &node->pos, "'%s' is not FIRST..LAST/STEP in plain numbers", text);
	if (!(step > 0) || last < first)
		return err_at(err, ERR_INPUT, &node->pos, "'%s' goes nowhere: the step must be positive and LAST no less "
			"than FIRST", text);

	double steps = floor((last - first) / step * (1 + 1e-12));
	if (steps >= MAX_VALUES)
		return err_at(err, ERR_INPUT, &node->pos, "'%s' has more than %d values", text, MAX_VALUES);
	axis->value = arena_array(a, const char *, (size_t)steps + 2);
	for (double i = 0; i <= steps; i++)
		axis->value[axis->n++] = arena_printf(a, "%.12g", first + i * step);
	if (first + steps * step < last - 1e-9 * step)
		axis->value[axis->n++] = arena_printf(a, "%.12g", last);
	return 0;
}

static int parse_axis(const struct yaml_node *node, struct sweep_axis *axis, struct arena *a, struct err *err)
{
	axis->key = node->key;
	axis->pos = node->pos;
	if (node->kind == YAML_SCALAR) {
		const char *dots = node->quoted ? NULL : strstr(node->text, "..");
		if (dots)
			return parse_range(node, dots, axis, a, err);
		axis->value = arena_array(a, const char *, 1);
		axis->value[axis->n++] = node->text;
		return 0;
	}
	if (node->kind == YAML_MAP)
		return err_at(err, ERR_INPUT, &node->pos, "'%s' must be a list or FIRST..LAST/STEP, not a map; keys are "
			"written with dots", node->key);
	axis->value = arena_array(a, const char *, yaml_count(node));
	for (const struct yaml_node *v = node->child; v; v = v->next)
		axis->value[axis->n++] = v->kind == YAML_SCALAR ? v->text : yaml_flow_text(a, v, false);
	if (axis->n == 0)
		return err_at(err, ERR_INPUT, &node->pos, "'%s' has no values", node->key);
	return 0;
}

int sweep_parse(const struct yaml_node *node, struct arena *a, struct sweep *out, struct err *err)
{
	*out = (struct sweep){.axis = arena_array(a, struct sweep_axis, MAX_AXES), .n_points = 1};
	if (node->kind != YAML_MAP || !node->child)
		return err_at(err, ERR_INPUT, &node->pos, "'sweep' must be a map of keys to values");
	for (const struct yaml_node *n = node->child; n; n = n->next) {
		struct sweep_axis *axis = &out->axis[out->n_axes];
		if (out->n_axes++ == MAX_AXES)
			return err_at(err, ERR_INPUT, &n->key_pos, "more than %d axes", MAX_AXES);
		if (parse_axis(n, axis, a, err))
			return -1;
		out->n_points *= axis->n;
		if (out->n_points > MAX_POINTS)
			return err_at(err, ERR_INPUT, &node->pos, "the grid has more than %" PRIu64 " points", MAX_POINTS);
	}
	return 0;
}

/* ---- one point ---- */

enum point_state { POINT_DONE, POINT_SKIPPED, POINT_CLAIMED, POINT_OTHER_SHARD, POINT_FAILED, POINT_LOST };

/* What a worker hands to the writer: rows in an arena of their own. */
struct point {
	struct arena arena;
	enum point_state state;
	const char *key; /* NULL where it cannot be loaded */
	bool claimed;    /* by this process */
	struct store_run rows;
	struct err err; /* POINT_LOST: not the point's own fault, so the sweep ends */
};

struct points {
	VEC(uint64_t);
};

struct job {
	const struct sweep *sweep;
	const struct sweep_options *options;
	const struct points *order; /* which points; NULL: all */
	uint64_t n;                 /* how many */
	struct points *left;        /* what others have claimed goes here; NULL: is waited for */
	struct claims *claims;
	struct intern own; /* keys that this process has stored */
	struct store *reader; /* under its lock: what others have stored by now */
	pthread_mutex_t reader_lock;
	atomic_bool impatient; /* another has not stored what it claims in all the time there is */
	const char **known; /* keys that are stored, ascending */
	size_t n_known;
	atomic_uint_fast64_t next;
	atomic_bool stop;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct point **done; /* ring by point number */
	uint64_t window;     /* size of the ring */
	uint64_t written;    /* points that have left it */
};

static void *no_memory(void *ctx)
{
	(void)ctx;
	fputs("offsim: out of memory\n", stderr);
	exit(1);
}

static void on_no_memory(void *ctx)
{
	no_memory(ctx);
}

/* The swept values of point number i, then the overrides of all: the first swept key comes first. */
static struct scenario_set *point_sets(const struct job *job, uint64_t i, struct arena *a, size_t *n)
{
	const struct sweep *s = job->sweep;
	const struct sweep_options *o = job->options;
	struct scenario_set *set = arena_array(a, struct scenario_set, s->n_axes + o->n_set);

	*n = s->n_axes;
	for (size_t k = s->n_axes; k-- > 0;) {
		set[k] = (struct scenario_set){s->axis[k].key, s->axis[k].value[i % s->axis[k].n], s->axis[k].pos};
		i /= s->axis[k].n;
	}
	for (size_t k = 0; k < o->n_set; k++) {
		bool swept = false;
		for (size_t j = 0; j < s->n_axes; j++)
			swept |= strcmp(s->axis[j].key, o->set[k].key) == 0;
		if (!swept)
			set[(*n)++] = o->set[k];
	}
	return set;
}

static int compare_keys(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_known(const struct job *job, const char *key)
{
	return job->n_known && bsearch(&key, job->known, job->n_known, sizeof(*job->known), compare_keys);
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static int is_stored(struct job *job, const char *key, bool *stored, struct err *err)
{
	pthread_mutex_lock(&job->reader_lock);
	int rc = store_has(job->reader, key, stored, err);
	pthread_mutex_unlock(&job->reader_lock);
	return rc;
}

static bool is_over(const struct job *job)
{
	return atomic_load(&job->stop) || (job->options->interrupted && *job->options->interrupted);
}

/* Whether the point is for this process to simulate (POINT_DONE), done by another, or claimed by it. */
static int claim(struct job *job, struct point *p, struct err *err)
{
	const struct timespec while_ns = {.tv_nsec = LOOK_AGAIN_NS};
	double began_s = now_s();
	bool mine, stored;

	for (;;) {
		mine = claims_take(job->claims, p->key);
		/* Looked up after the claim: what another has given up is stored. */
		if (is_stored(job, p->key, &stored, err))
			return -1;
		if (mine || stored || job->left || is_over(job) || atomic_load(&job->impatient))
			break;
		if (now_s() - began_s > PATIENCE_S)
			atomic_store(&job->impatient, true);
		nanosleep(&while_ns, NULL);
	}
	p->claimed = mine;
	p->state = stored ? POINT_SKIPPED : mine || !job->left ? POINT_DONE : POINT_CLAIMED;
	return 0;
}

static bool in_shard(const struct job *job, const char *key)
{
	return strtoull(key, NULL, 16) % job->options->n_shards + 1 == job->options->shard;
}

/* A point that cannot even be loaded has no contents to make a key of: its words are. */
static const char *failure_key(const char *path, const struct scenario_set *set, size_t n, struct arena *a)
{
	uint64_t h = hash_text(HASH_INIT, path);

	for (size_t i = 0; i < n; i++)
		h = hash_text(hash_text(h, set[i].key), set[i].value);
	return arena_printf(a, "%016" PRIx64, h);
}

static void fail_point(struct job *job, struct point *p, const struct scenario_set *set, size_t n, const struct err *err)
{
	const char *key = failure_key(job->options->path, set, n, &p->arena);

	p->state = !in_shard(job, key) ? POINT_OTHER_SHARD : POINT_FAILED;
	p->rows = record_failure(key, set, n, err, &p->arena);
	if (err->code != ERR_INPUT && err->code != ERR_USAGE) {
		p->state = POINT_LOST;
		p->err = *err;
	}
}

static struct point *run_point(struct job *job, uint64_t i)
{
	struct point *p = calloc(1, sizeof(*p));
	struct run_options ro = {.interval = true, .interrupted = job->options->interrupted};
	struct scenario *s;
	struct err err = {0};
	size_t n;

	if (!p)
		no_memory(NULL);
	arena_init(&p->arena, on_no_memory, NULL);

	struct scenario_set *set = point_sets(job, i, &p->arena, &n);
	struct result *r = arena_new(&p->arena, struct result);
	if (scenario_load(job->options->path, set, n, &p->arena, &s, &err)) {
		fail_point(job, p, set, n, &err);
		return p;
	}
	p->key = s->key;
	if (!in_shard(job, s->key)) {
		p->state = POINT_OTHER_SHARD;
	} else if (is_known(job, s->key)) {
		p->state = POINT_SKIPPED;
	} else if (claim(job, p, &err)) {
		p->state = POINT_LOST;
		p->err = err;
	} else if (p->state == POINT_DONE && run_scenario(s, &ro, &p->arena, r, NULL, &err)) {
		fail_point(job, p, set, n, &err);
	} else if (p->state == POINT_DONE) {
		p->rows = record_rows(s, r, &p->arena);
	}
	return p;
}

static uint64_t number_of(const struct job *job, uint64_t i)
{
	return job->order ? job->order->at[i] : i;
}

static void *work(void *ctx)
{
	struct job *job = ctx;
	uint64_t i;

	while (!atomic_load(&job->stop) && (i = atomic_fetch_add(&job->next, 1)) < job->n) {
		struct point *p = run_point(job, number_of(job, i));
		pthread_mutex_lock(&job->lock);
		while (i >= job->written + job->window && !atomic_load(&job->stop))
			pthread_cond_wait(&job->changed, &job->lock);
		if (i < job->written + job->window) {
			job->done[i % job->window] = p;
			p = NULL;
		}
		pthread_cond_broadcast(&job->changed);
		pthread_mutex_unlock(&job->lock);
		if (p) { /* stopped while it waited */
			arena_release(&p->arena);
			free(p);
		}
	}
	return NULL;
}

/* ---- the writer ---- */

/* Two points of a grid may be one run: whether the second was begun before the first was stored makes no difference here. */
static bool is_own(struct job *job, const struct point *p)
{
	return p->key && intern_find(&job->own, p->key, strlen(p->key)) != INTERN_NONE;
}

static int write_point(struct job *job, struct store *store, struct point *p, struct sweep_progress *progress, struct err *err)
{
	switch (p->state) {
	case POINT_OTHER_SHARD:
		progress->points--;
		return 0;
	case POINT_SKIPPED:
		*(is_own(job, p) ? &progress->done : &progress->skipped) += 1;
		return 0;
	case POINT_CLAIMED:
		return 0;
	case POINT_LOST:
		*err = p->err;
		return -1;
	case POINT_FAILED:
		progress->failed++;
		break;
	case POINT_DONE:
		progress->done++;
		intern_add(&job->own, p->key, strlen(p->key));
		break;
	}
	return store_put(store, &p->rows, err);
}

static struct point *next_point(struct job *job, uint64_t i)
{
	struct point *p;

	pthread_mutex_lock(&job->lock);
	while (!(p = job->done[i % job->window])) {
		/* Wakes up now and then to see an interrupt. */
		struct timespec until;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 100000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&job->changed, &job->lock, &until);
		if (job->options->interrupted && *job->options->interrupted)
			break;
	}
	if (p) {
		job->done[i % job->window] = NULL;
		job->written = i + 1;
		pthread_cond_broadcast(&job->changed);
	}
	pthread_mutex_unlock(&job->lock);
	return p;
}

static int write_points(struct job *job, struct store *store, double began_s, struct sweep_progress *progress, struct arena *a,
	struct err *err)
{
	int rc = 0;

	for (uint64_t i = 0; rc == 0 && i < job->n; i++) {
		struct point *p = next_point(job, i);
		if (!p)
			return err_set(err, ERR_INTERRUPTED,
				"interrupted; what was done is stored, the same command goes on from there");
		rc = write_point(job, store, p, progress, err);
		if (p->state == POINT_CLAIMED)
			VEC_PUSH(job->left, a, number_of(job, i));
		if (p->claimed)
			claims_give(job->claims, p->key);
		arena_release(&p->arena);
		free(p);
		progress->wall_s = now_s() - began_s;
		if (job->options->report)
			job->options->report(job->options->report_ctx, progress);
	}
	return rc;
}

static void stop_workers(struct job *job, pthread_t *thread, unsigned n)
{
	pthread_mutex_lock(&job->lock);
	atomic_store(&job->stop, true);
	pthread_cond_broadcast(&job->changed);
	pthread_mutex_unlock(&job->lock);
	for (unsigned i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	for (uint64_t i = 0; i < job->window; i++) {
		if (job->done[i]) {
			arena_release(&job->done[i]->arena);
			free(job->done[i]);
		}
	}
}

struct keys {
	struct arena *arena;
	VEC(const char *);
};

static void add_key(void *ctx, const char *key)
{
	struct keys *keys = ctx;

	VEC_PUSH(keys, keys->arena, arena_strdup(keys->arena, key));
}

/* Simulates and stores the points of an order (NULL: all); those that others have claimed are left, where left is given. */
static int run_pass(struct job *job, const struct points *order, struct points *left, struct store *store, double began_s,
	struct sweep_progress *progress, struct arena *a, struct err *err)
{
	pthread_t *thread = arena_array(a, pthread_t, job->options->workers);
	unsigned n_threads = 0;

	job->order = order;
	job->left = left;
	job->n = order ? order->n : job->sweep->n_points;
	job->written = 0;
	atomic_store(&job->next, 0);
	atomic_store(&job->stop, false);
	job->done = arena_array(a, struct point *, job->window);
	pthread_mutex_init(&job->lock, NULL);
	pthread_cond_init(&job->changed, NULL);
	while (n_threads < job->options->workers && pthread_create(&thread[n_threads], NULL, work, job) == 0)
		n_threads++;
	int rc = n_threads ? write_points(job, store, began_s, progress, a, err) : err_set(err, ERR_IO, "cannot start a thread");
	stop_workers(job, thread, n_threads);
	pthread_cond_destroy(&job->changed);
	pthread_mutex_destroy(&job->lock);
	return rc;
}

static int run_passes(struct job *job, struct store *store, struct sweep_progress *progress, struct arena *a, struct err *err)
{
	struct points left = {0};
	double began_s = now_s();

	if (run_pass(job, NULL, &left, store, began_s, progress, a, err))
		return -1;
	return left.n ? run_pass(job, &left, NULL, store, began_s, progress, a, err) : 0;
}

int sweep_run(const struct sweep *s, const struct sweep_options *o, struct sweep_progress *out, struct err *err)
{
	struct arena arena;
	struct store *store;
	struct claims claims;
	struct job job = {.sweep = s, .options = o, .window = (uint64_t)o->workers * WAITING_PER_WORKER, .claims = &claims};

	*out = (struct sweep_progress){.points = s->n_points};
	if (store_open(o->db, &store, err))
		return -1;
	arena_init(&arena, on_no_memory, NULL);
	struct keys keys = {.arena = &arena};
	int rc = store_keys(store, add_key, &keys, err) || store_open(o->db, &job.reader, err) ? -1 : 0;
	if (rc == 0) {
		job.known = keys.at;
		job.n_known = keys.n;
		intern_init(&job.own, &arena);
		claims_open(&claims, o->db, &arena);
		pthread_mutex_init(&job.reader_lock, NULL);
		rc = run_passes(&job, store, out, &arena, err);
		pthread_mutex_destroy(&job.reader_lock);
		claims_close(&claims);
		rc = store_close(job.reader, rc ? NULL : err) || rc ? -1 : 0;
	}
	arena_release(&arena);
	return store_close(store, rc ? NULL : err) || rc ? -1 : 0;
}
