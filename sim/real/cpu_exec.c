#include "sim/real/cpu_exec.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <time.h>

#include "hw/measure.h"
#include "sim/real/cpu_buffers.h"
#include "sim/real/cpu_dot.h"
#include "sim/real/cpu_team.h"

/* Bytes that a thread takes at once. */
#define COPY_PIECE ((uint64_t)1 << 20)
#define DRIVE_PIECE ((uint64_t)4 << 20)
#define KERNEL_PIECE ((uint64_t)256 << 10)
/* A kernel is divided into this many pieces for each thread, or more, unless that makes them smaller than a block. */
#define KERNEL_SHARE 8
#define DRIVE_THREADS 2
/* Multiply-adds a word between two looks at whether to stop: some milliseconds for a block. */
#define MACS_AT_ONCE 16384
/* A wait sleeps until so long before its end, and spins from there. */
#define SPIN_S 80e-6
#define LOOK_S 0.05 /* how often the flag of interrupts is looked at */
#define NOBODY UINT32_MAX

struct lane {
	struct cpu_exec *e;
	bool used, started;
	pthread_t leader;
	pthread_cond_t queued;
	_Atomic unsigned n_queued;
	uint32_t head, tail;   /* ready operations */
	double free_s;         /* when it ended the last one */
	unsigned threads;
	struct cpu_team team;
	struct cpu_helper *helper;
	const int *cpu;        /* of each; NULL: any */
	char **bounce;         /* by member; NULL: it copies nothing */
	/* the operation at hand */
	const struct opg_op *op;
	const struct cpu_dot *dot; /* NULL: plain arithmetic */
	uint64_t bytes, piece;
	_Atomic uint64_t next; /* first byte that nobody took */
};

struct edges {
	uint32_t *first; /* by operation, and one more */
	uint32_t *to;
};

struct cpu_exec {
	const struct opg *g;
	struct cpu_exec_options o;
	struct arena *arena;
	struct cpu_buffers buffers;
	struct edges edges;      /* operation -> those that wait for it */
	uint32_t *n_before;      /* by operation: how many it waits for */
	uint32_t n_ops;
	const struct cpu_dot **dot; /* by operation; NULL: plain arithmetic */
	struct lane *lane;       /* by unit, then one for what needs none */
	unsigned n_lanes;
	pthread_t timer;
	bool timer_started;
	/* the run at hand */
	pthread_mutex_t lock;    /* of all below, but for what is atomic */
	pthread_cond_t finished, timed;
	uint32_t *pending;
	double *ready_s;
	uint32_t *next;          /* in a lane's queue, or among waits */
	uint32_t *stack;         /* of what ends in one moment */
	uint32_t waits;          /* first of those whose latency runs */
	_Atomic unsigned n_waits_added;
	uint32_t n_done, n_order;
	double begin_s;
	struct cpu_exec_result result;
	atomic_bool stop;
	int fault;               /* an errno */
};

static double now(const struct cpu_exec *e)
{
	return cpu_now() - e->begin_s;
}

static bool flagged(const struct cpu_exec *e)
{
	return e->o.interrupted && *e->o.interrupted;
}

/* ---- what waits for what ---- */

/* Calls each(e, before, after) for every dependency: stated, by stream, by distance of steps. */
static void each_edge(struct cpu_exec *e, void (*each)(struct cpu_exec *, uint32_t, uint32_t), uint32_t *stream_last)
{
	const struct opg *g = e->g;

	for (size_t i = 0; i < g->units.n; i++)
		stream_last[i] = NOBODY;
	for (uint32_t id = 0; id < e->n_ops; id++) {
		const struct opg_op *o = &g->ops.at[id];
		for (uint32_t i = 0; i < o->n_after; i++)
			each(e, o->after[i], id);
		if (o->stream != OPG_NONE) {
			if (stream_last[o->stream] != NOBODY)
				each(e, stream_last[o->stream], id);
			stream_last[o->stream] = id;
		}
		if ((uint64_t)o->step >= g->steps.ahead)
			each(e, g->step_end.at[(size_t)o->step - g->steps.ahead], id);
	}
}

static void count_edge(struct cpu_exec *e, uint32_t before, uint32_t after)
{
	e->edges.first[before + 1]++;
	e->n_before[after]++;
}

static void add_edge(struct cpu_exec *e, uint32_t before, uint32_t after)
{
	/* first[before] moves along as its list fills; afterwards it is where the next one's begins. */
	e->edges.to[e->edges.first[before]++] = after;
}

static void make_edges(struct cpu_exec *e)
{
	uint32_t *stream_last = arena_array(e->arena, uint32_t, e->g->units.n);

	e->n_before = arena_array(e->arena, uint32_t, e->n_ops);
	e->edges.first = arena_array(e->arena, uint32_t, (size_t)e->n_ops + 1);
	each_edge(e, count_edge, stream_last);
	for (uint32_t i = 0; i < e->n_ops; i++)
		e->edges.first[i + 1] += e->edges.first[i];
	e->edges.to = arena_array(e->arena, uint32_t, e->edges.first[e->n_ops]);
	each_edge(e, add_edge, stream_last);
	for (uint32_t i = e->n_ops; i > 0; i--)
		e->edges.first[i] = e->edges.first[i - 1];
	e->edges.first[0] = 0;
}

/* ---- ready, ended; the lock is held ---- */

static void enqueue(struct cpu_exec *e, struct lane *l, uint32_t id)
{
	e->next[id] = NOBODY;
	if (l->head == NOBODY)
		l->head = id;
	else
		e->next[l->tail] = id;
	l->tail = id;
	atomic_fetch_add(&l->n_queued, 1);
	pthread_cond_signal(&l->queued);
}

/* True when it has ended with that. */
static bool make_ready(struct cpu_exec *e, uint32_t id, double at_s)
{
	const struct opg_op *o = &e->g->ops.at[id];

	e->ready_s[id] = at_s;
	if (o->unit != OPG_NONE || o->bytes > 0 || o->flops > 0) {
		enqueue(e, &e->lane[o->unit == OPG_NONE ? e->n_lanes - 1 : (unsigned)o->unit], id);
		return false;
	}
	e->result.start_s[id] = at_s;
	if (o->latency == 0)
		return true;
	e->next[id] = e->waits;
	e->waits = id;
	atomic_fetch_add(&e->n_waits_added, 1);
	pthread_cond_signal(&e->timed);
	return false;
}

/* Ends it, and what ends with it: joins, steps. */
static void end_op(struct cpu_exec *e, uint32_t id, double at_s)
{
	uint32_t n = 0;

	e->stack[n++] = id;
	while (n) {
		id = e->stack[--n];
		e->result.end_s[id] = at_s;
		e->n_done++;
		if (e->g->ops.at[id].unit == OPG_NONE)
			e->result.order[e->n_order++] = id;
		for (uint32_t k = e->edges.first[id]; k < e->edges.first[id + 1]; k++)
			if (--e->pending[e->edges.to[k]] == 0 && make_ready(e, e->edges.to[k], at_s))
				e->stack[n++] = e->edges.to[k];
	}
	if (e->n_done == e->n_ops)
		pthread_cond_signal(&e->finished);
}

/* ---- waiting for the clock ---- */

static void sleep_s(double seconds)
{
	struct timespec ts = {(time_t)seconds, (long)((seconds - floor(seconds)) * 1e9)};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

static void wait_until(struct cpu_exec *e, double at_s)
{
	for (unsigned i = 0; !atomic_load(&e->stop); i++) {
		double left_s = at_s - now(e);
		if (left_s <= 0)
			return;
		if (left_s > 2 * SPIN_S)
			sleep_s(fmin(left_s - SPIN_S, LOOK_S));
		else
			cpu_team_spin(i);
	}
}

static double wait_end_s(const struct cpu_exec *e, uint32_t id)
{
	return e->ready_s[id] + sim_seconds(e->g->ops.at[id].latency);
}

/* Takes the wait that ends first out of the list when its time has come; else says when that is. */
static uint32_t take_wait(struct cpu_exec *e, double *at_s)
{
	uint32_t *best = NULL;

	for (uint32_t *link = &e->waits; *link != NOBODY; link = &e->next[*link])
		if (!best || wait_end_s(e, *link) < wait_end_s(e, *best))
			best = link;
	*at_s = best ? wait_end_s(e, *best) : INFINITY;
	if (!best || now(e) < *at_s)
		return NOBODY;
	uint32_t id = *best;
	*best = e->next[id];
	return id;
}

/* Until then, or until another wait begins. */
static void watch(struct cpu_exec *e, double at_s)
{
	unsigned before = atomic_load(&e->n_waits_added);
	double left_s = at_s - now(e);

	if (left_s > 2 * SPIN_S) {
		struct timespec ts;
		double until_s = cpu_now() + fmin(left_s - SPIN_S, LOOK_S);
		ts = (struct timespec){(time_t)until_s, (long)((until_s - floor(until_s)) * 1e9)};
		pthread_cond_timedwait(&e->timed, &e->lock, &ts);
		return;
	}
	pthread_mutex_unlock(&e->lock);
	for (unsigned i = 0; now(e) < at_s && atomic_load(&e->n_waits_added) == before && !atomic_load(&e->stop); i++)
		cpu_team_spin(i);
	pthread_mutex_lock(&e->lock);
}

static void *run_timer(void *ctx)
{
	struct cpu_exec *e = ctx;
	double at_s;

	pthread_mutex_lock(&e->lock);
	while (!atomic_load(&e->stop)) {
		uint32_t id = take_wait(e, &at_s);
		if (id != NOBODY)
			end_op(e, id, now(e));
		else if (at_s < INFINITY)
			watch(e, at_s);
		else
			pthread_cond_wait(&e->timed, &e->lock);
	}
	pthread_mutex_unlock(&e->lock);
	return NULL;
}

/* ---- work ---- */

static void give_up(struct cpu_exec *e, int fault)
{
	pthread_mutex_lock(&e->lock);
	if (!e->fault)
		e->fault = fault;
	atomic_store(&e->stop, true);
	pthread_cond_signal(&e->finished);
	pthread_mutex_unlock(&e->lock);
}

static void count_moved(struct cpu_exec *e, const struct opg_op *o, uint64_t bytes)
{
	__atomic_fetch_add(&e->result.moved_bytes[o - e->g->ops.at], bytes, __ATOMIC_RELAXED);
}

/* The next piece of the operation at hand; false: there is none. */
static bool take_piece(struct lane *l, uint64_t *at, uint64_t *len)
{
	*at = atomic_fetch_add(&l->next, l->piece);
	if (*at >= l->bytes || atomic_load(&l->e->stop))
		return false;
	*len = l->bytes - *at < l->piece ? l->bytes - *at : l->piece;
	return true;
}

static void copy_pieces(void *ctx, unsigned member)
{
	struct lane *l = ctx;
	uint64_t at, len, moved = 0;

	while (take_piece(l, &at, &len)) {
		int why = cpu_buffers_copy(&l->e->buffers, l->op, at, len, l->bounce[member]);
		if (why) {
			give_up(l->e, why);
			return;
		}
		moved += len;
	}
	count_moved(l->e, l->op, moved);
}

/* Blocks get a whole number of multiply-adds each, so that over all of them the FLOPs come out. */
static float compute(struct cpu_exec *e, const char *p, uint64_t at, uint64_t len, double macs)
{
	float sum = 0;

	for (uint64_t done = 0; done < len; done += CPU_WORK_BLOCK) {
		double block = (double)((at + done) / CPU_WORK_BLOCK);
		double left = floor((block + 1) * macs) - floor(block * macs);
		size_t n = len - done < CPU_WORK_BLOCK ? (size_t)(len - done) : CPU_WORK_BLOCK;
		do {
			double now_macs = fmin(left, MACS_AT_ONCE);
			sum += cpu_work(p + done, n, (unsigned)now_macs);
			left -= now_macs;
		} while (left > 0 && !atomic_load(&e->stop));
	}
	return sum;
}

static void kernel_pieces(void *ctx, unsigned member)
{
	struct lane *l = ctx;
	const struct opg_op *o = l->op;
	const struct cpu_buffer *b = &l->e->buffers.at[o->from];
	uint64_t size = l->e->g->buffers.at[o->from].bytes, at, len, moved = 0;
	double macs = o->flops / o->bytes * 4 / 2;
	uint64_t columns = l->dot ? (uint64_t)fmax(1, round(o->flops / o->bytes / cpu_dot_flops_byte(l->dot))) : 0;
	float keep = 0;

	(void)member;
	while (take_piece(l, &at, &len)) {
		moved += len;
		while (len) {
			uint64_t from = (o->at + at) % size, n = len < size - from ? len : size - from;
			keep += l->dot ? cpu_dot(l->dot, b->memory + from, n, columns, &l->e->stop) :
					 compute(l->e, b->memory + from, at, n, macs);
			at += n;
			len -= n;
		}
	}
	CPU_KEEP(keep);
	count_moved(l->e, o, moved);
}

/* Arithmetic with nothing to read: on one block, again and again. A piece is one of its passes. */
static void arithmetic(void *ctx, unsigned member)
{
	struct lane *l = ctx;
	static const float block[CPU_WORK_BLOCK / sizeof(float)];
	uint64_t at, len;
	float keep = 0;

	(void)member;
	while (take_piece(l, &at, &len))
		keep += cpu_work(block, sizeof(block), (unsigned)len);
	CPU_KEEP(keep);
}

static void run_op(struct lane *l, uint32_t id)
{
	const struct opg_op *o = l->op = &l->e->g->ops.at[id];
	cpu_team_fn *fn = kernel_pieces;
	bool drive = o->kind == OPG_COPY && l->threads > 1;

	l->bytes = (uint64_t)llround(o->bytes);
	if (o->kind == OPG_COPY) {
		fn = copy_pieces;
		l->piece = drive ? DRIVE_PIECE : COPY_PIECE;
	} else if (l->bytes) {
		uint64_t share = l->bytes / (KERNEL_SHARE * l->threads) / CPU_WORK_BLOCK * CPU_WORK_BLOCK;
		l->piece = share < CPU_WORK_BLOCK ? CPU_WORK_BLOCK : share < KERNEL_PIECE ? share : KERNEL_PIECE;
		l->dot = l->e->dot[id];
		if (l->dot) /* whole rows */
			l->piece = (l->piece + l->dot->row_bytes - 1) / l->dot->row_bytes * l->dot->row_bytes;
	} else {
		fn = arithmetic;
		l->bytes = (uint64_t)(o->flops / (2 * CPU_WORK_BLOCK / sizeof(float)));
		l->piece = 64;
	}
	atomic_store(&l->next, 0);
	if (l->bytes)
		cpu_team_run(&l->team, fn, l);
	if (o->kind == OPG_COPY)
		cpu_buffers_copied(&l->e->buffers, o);
}

/* The next ready operation; NOBODY: it is over. */
static uint32_t dequeue(struct lane *l)
{
	struct cpu_exec *e = l->e;
	uint32_t id = NOBODY;

	for (unsigned i = 0; i < CPU_TEAM_SPINS && !atomic_load(&l->n_queued); i++)
		cpu_team_spin(i);
	pthread_mutex_lock(&e->lock);
	while (l->head == NOBODY && !atomic_load(&e->stop))
		pthread_cond_wait(&l->queued, &e->lock);
	if (!atomic_load(&e->stop)) {
		id = l->head;
		l->head = e->next[id];
		atomic_fetch_sub(&l->n_queued, 1);
		e->result.start_s[id] = fmax(e->ready_s[id], l->free_s);
		if (e->g->ops.at[id].unit != OPG_NONE)
			e->result.order[e->n_order++] = id;
	}
	pthread_mutex_unlock(&e->lock);
	return id;
}

static void *run_lane(void *ctx)
{
	struct lane *l = ctx;
	uint32_t id;

	if (l->cpu)
		measure_pin(l->cpu[0]);
	while ((id = dequeue(l)) != NOBODY) {
		wait_until(l->e, l->e->result.start_s[id] + sim_seconds(l->e->g->ops.at[id].latency));
		run_op(l, id);
		if (atomic_load(&l->e->stop))
			break;
		/* The clock is read under the lock: what ends later releases later. */
		pthread_mutex_lock(&l->e->lock);
		l->free_s = now(l->e);
		end_op(l->e, id, l->free_s);
		pthread_mutex_unlock(&l->e->lock);
	}
	return NULL;
}

/* ---- making it ---- */

static bool on_drive(const struct opg *g, int buffer)
{
	return g->memories.at[g->buffers.at[buffer].memory].kind == OPG_MEMORY_DRIVE;
}

/* What this executor cannot do, though a graph may say it. */
static int check_op(const struct opg *g, uint32_t id, struct err *err)
{
	const struct opg_op *o = &g->ops.at[id];

	if (o->kind == OPG_KERNEL && o->bytes > 0 && (o->from == OPG_NONE || on_drive(g, o->from)))
		return err_set(err, ERR_INPUT, "operation %" PRIu32 ": a kernel must read from memory", id);
	if (o->kind == OPG_COPY && on_drive(g, o->from) && on_drive(g, o->to))
		return err_set(err, ERR_INPUT, "operation %" PRIu32 ": a copy from drive to drive", id);
	if (o->bytes > 1e15 || o->flops > 1e18)
		return err_set(err, ERR_INPUT, "operation %" PRIu32 " would never end on this machine", id);
	return 0;
}

static int check_threads(unsigned long long threads, struct err *err)
{
	return threads <= CPU_EXEC_MAX_THREADS ?
		0 :
		err_set(err, ERR_INPUT, "%llu threads; this program starts %d for a device at most", threads,
			CPU_EXEC_MAX_THREADS);
}

/* One for each type, shared by all operations. */
static void find_dots(struct cpu_exec *e)
{
	struct { const char *type; const struct cpu_dot *dot; } known[KERNEL_TYPE_N];
	size_t n = 0, k;

	e->dot = arena_array(e->arena, const struct cpu_dot *, e->n_ops);
	for (uint32_t id = 0; id < e->n_ops; id++) {
		const struct opg_op *o = &e->g->ops.at[id];
		struct cpu_dot d;
		if (o->kind != OPG_KERNEL || strcmp(o->type, "-") == 0 || !(o->flops > 0))
			continue;
		for (k = 0; k < n && strcmp(known[k].type, o->type) != 0; k++)
			;
		if (k == n && cpu_dot_init(&d, o->type, e->arena)) {
			struct cpu_dot *dot = arena_new(e->arena, struct cpu_dot);
			*dot = d;
			known[n].type = o->type;
			known[n++].dot = dot;
		}
		e->dot[id] = k < n ? known[k].dot : NULL;
	}
}

/* What each lane must be able to do, from the operations on it. Threads that compute together keep to a processor each, those
   that `offsim calibrate` measures: two that have slept may share one for a hundredth of a second before the system parts
   them. */
static int plan_lanes(struct cpu_exec *e, struct err *err)
{
	const struct opg *g = e->g;
	struct measure_host host;

	if (measure_host_read(e->arena, &host, err))
		return -1;
	for (uint32_t id = 0; id < e->n_ops; id++) {
		const struct opg_op *o = &g->ops.at[id];
		struct lane *l = &e->lane[o->unit == OPG_NONE ? e->n_lanes - 1 : (unsigned)o->unit];
		bool moves = o->bytes > 0 || o->flops > 0;
		uint64_t threads = 1;
		if (check_op(g, id, err))
			return -1;
		if (o->unit == OPG_NONE && !moves)
			continue;
		l->used = true;
		if (o->kind == OPG_COPY && (on_drive(g, o->from) || on_drive(g, o->to)))
			threads = DRIVE_THREADS;
		else if (o->kind == OPG_KERNEL && g->devices.at[o->device].kind == OPG_DEVICE_CPU)
			threads = e->o.threads ? e->o.threads : o->threads ? o->threads : host.quota;
		if (check_threads(threads, err))
			return -1;
		if (threads > l->threads)
			l->threads = (unsigned)threads;
		if (o->kind == OPG_KERNEL)
			l->cpu = l->threads > 1 && l->threads <= host.threads ? host.thread_cpu : NULL;
	}
	return 0;
}

static int start_lane(struct cpu_exec *e, struct lane *l, struct err *err)
{
	l->helper = arena_array(e->arena, struct cpu_helper, l->threads);
	l->bounce = arena_array(e->arena, char *, l->threads);
	for (unsigned i = 0; i < l->threads; i++) {
		l->bounce[i] = cpu_map(DRIVE_PIECE + 2 * CPU_PAGE);
		if (!l->bounce[i])
			return err_set(err, ERR_NOMEM, "out of memory");
	}
	if (cpu_team_start(&l->team, l->threads, l->helper, l->cpu, err))
		return -1;
	int rc = pthread_create(&l->leader, NULL, run_lane, l);
	if (rc) {
		cpu_team_stop(&l->team);
		return err_set(err, ERR_IO, "cannot start a thread: %s", strerror(rc));
	}
	l->started = true;
	return 0;
}

static int start(struct cpu_exec *e, struct err *err)
{
	if (cpu_buffers_open(&e->buffers, e->g, e->o.dir, e->o.interrupted, e->arena, err))
		return -1;
	for (unsigned i = 0; i < e->n_lanes; i++)
		if (e->lane[i].used && start_lane(e, &e->lane[i], err))
			return -1;
	int rc = pthread_create(&e->timer, NULL, run_timer, e);
	if (rc)
		return err_set(err, ERR_IO, "cannot start a thread: %s", strerror(rc));
	e->timer_started = true;
	return 0;
}

int cpu_exec_open(const struct opg *g, const struct cpu_exec_options *o, struct arena *a, struct cpu_exec **out,
	struct err *err)
{
	struct cpu_exec *e = arena_new(a, struct cpu_exec);
	pthread_condattr_t monotonic;

	*e = (struct cpu_exec){.g = g, .o = *o, .arena = a, .n_ops = (uint32_t)g->ops.n, .waits = NOBODY};
	e->buffers = (struct cpu_buffers){.g = g, .at = arena_array(a, struct cpu_buffer, g->buffers.n), .fd = -1};
	pthread_mutex_init(&e->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&e->finished, &monotonic);
	pthread_cond_init(&e->timed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	make_edges(e);
	find_dots(e);
	e->pending = arena_array(a, uint32_t, e->n_ops);
	e->ready_s = arena_array(a, double, e->n_ops);
	e->next = arena_array(a, uint32_t, e->n_ops);
	e->stack = arena_array(a, uint32_t, e->n_ops);
	e->result = (struct cpu_exec_result){arena_array(a, double, e->n_ops), arena_array(a, double, e->n_ops),
		arena_array(a, uint64_t, e->n_ops), arena_array(a, uint32_t, e->n_ops)};
	e->n_lanes = (unsigned)g->units.n + 1;
	e->lane = arena_array(a, struct lane, e->n_lanes);
	for (unsigned i = 0; i < e->n_lanes; i++) {
		e->lane[i].e = e;
		e->lane[i].head = NOBODY;
		pthread_cond_init(&e->lane[i].queued, NULL);
	}
	if (plan_lanes(e, err) || start(e, err)) {
		cpu_exec_close(e);
		return -1;
	}
	*out = e;
	return 0;
}

/* Ends all threads, whatever they are at. */
static void stop_threads(struct cpu_exec *e)
{
	pthread_mutex_lock(&e->lock);
	atomic_store(&e->stop, true);
	pthread_cond_signal(&e->timed);
	for (unsigned i = 0; i < e->n_lanes; i++)
		pthread_cond_signal(&e->lane[i].queued);
	pthread_mutex_unlock(&e->lock);
	for (unsigned i = 0; i < e->n_lanes; i++) {
		if (!e->lane[i].started)
			continue;
		pthread_join(e->lane[i].leader, NULL);
		cpu_team_stop(&e->lane[i].team);
	}
	if (e->timer_started)
		pthread_join(e->timer, NULL);
}

void cpu_exec_close(struct cpu_exec *e)
{
	stop_threads(e);
	for (unsigned i = 0; i < e->n_lanes; i++) {
		for (unsigned k = 0; e->lane[i].bounce && k < e->lane[i].threads; k++)
			cpu_unmap(e->lane[i].bounce[k], DRIVE_PIECE + 2 * CPU_PAGE);
		pthread_cond_destroy(&e->lane[i].queued);
	}
	cpu_buffers_close(&e->buffers);
	pthread_cond_destroy(&e->finished);
	pthread_cond_destroy(&e->timed);
	pthread_mutex_destroy(&e->lock);
}

/* ---- a run ---- */

static void begin(struct cpu_exec *e)
{
	memcpy(e->pending, e->n_before, e->n_ops * sizeof(*e->pending));
	memset(e->result.moved_bytes, 0, e->n_ops * sizeof(*e->result.moved_bytes));
	e->n_done = e->n_order = 0;
	for (unsigned i = 0; i < e->n_lanes; i++)
		e->lane[i].free_s = 0;
	e->begin_s = cpu_now();
	for (uint32_t id = 0; id < e->n_ops; id++)
		if (e->n_before[id] == 0 && make_ready(e, id, 0))
			end_op(e, id, 0);
}

static void wait_for_end(struct cpu_exec *e)
{
	while (e->n_done < e->n_ops && !atomic_load(&e->stop)) {
		double until_s = cpu_now() + LOOK_S;
		struct timespec ts = {(time_t)until_s, (long)((until_s - floor(until_s)) * 1e9)};
		pthread_cond_timedwait(&e->finished, &e->lock, &ts);
		if (flagged(e))
			atomic_store(&e->stop, true);
	}
}

int cpu_exec_run(struct cpu_exec *e, struct cpu_exec_result *r, struct err *err)
{
	pthread_mutex_lock(&e->lock);
	begin(e);
	wait_for_end(e);
	int fault = e->fault;
	bool done = e->n_done == e->n_ops;
	pthread_mutex_unlock(&e->lock);
	*r = e->result;
	if (fault)
		return err_set(err, ERR_IO, "cannot read or write the file in '%s': %s", e->o.dir, strerror(fault));
	if (!done)
		return err_set(err, ERR_INTERRUPTED, "interrupted");
	return cpu_buffers_check(&e->buffers, err);
}
