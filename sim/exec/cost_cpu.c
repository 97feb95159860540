#include "sim/exec/cost_cpu.h"

#include <math.h>

/* One thread alone runs at the peak, all cores at the value; in between the clock falls by the thread. The fast cores of a
   hybrid processor come first and have a value of their own. */
static double team_clock_hz(const struct hw_device *cpu, double busy)
{
	double all = cost_clock_hz(cpu), alone = hw_num_peak(&cpu->clock_hz), fast = hw_num_value(&cpu->fast_clock_hz);
	double first = 1, last = cpu->cores;

	if (fast > all && alone > fast && cpu->fast_cores > 1 && cpu->fast_cores < cpu->cores) {
		if (busy > cpu->fast_cores) {
			alone = fast;
			first = cpu->fast_cores;
		} else {
			all = fast;
			last = cpu->fast_cores;
		}
	}
	if (!(alone > all) || cpu->cores < 2)
		return all;
	return alone - (alone - all) * (busy - first) / (last - first);
}

static bool on_one_socket(enum cost_binding binding)
{
	return binding == COST_PINNED || binding == COST_ISOLATED;
}

/* Whether pages lie on whichever socket touched them first. */
static bool as_they_fell(enum cost_binding binding)
{
	return binding == COST_UNBOUND || binding == COST_PINNED;
}

/* The share of all sockets' DRAM rate that the threads reach. Where pages lie as they fell, half of them are far from a
   thread, or from half of the threads: one as the other. */
static double team_sockets(const struct cost_cpu *c, unsigned sockets, enum cost_binding binding)
{
	if (sockets < 2 || binding == COST_ISOLATED)
		return 1.0 / sockets;
	if (as_they_fell(binding))
		return hw_num_value(&c->unbound) / sockets;
	return (1 + (sockets - 1) * hw_num_value(&c->far_bound)) / sockets;
}

/* The same of their arithmetic on many rows: as few sockets work as have cores for the threads. */
static double team_many(const struct cost_cpu *c, double threads, const struct hw_device *cpu, enum cost_binding binding)
{
	double far = hw_num_value(&c->far_many), sockets = ceil(threads * cpu->sockets / cpu->cores);

	if (on_one_socket(binding) || !(far > 0) || sockets <= 1)
		return 1;
	if (sockets > cpu->sockets)
		sockets = cpu->sockets;
	return (1 + (sockets - 1) * far) / sockets;
}

struct cost_team cost_cpu_team(const struct cost_cpu *c, const struct hw_machine *m, const struct hw_device *cpu,
	unsigned threads, enum cost_binding binding)
{
	unsigned sockets = on_one_socket(binding) ? cpu->sockets : 1;
	double cores = (double)cpu->cores / sockets, hardware = (double)cpu->threads / sockets;
	double n = threads ? threads : cores;
	double busy = fmin(n, cores);
	double second = hardware > cores ? fmin(n, hardware) - busy : 0;
	double dram = hw_num_value(&m->memories[cpu->memory].bandwidth_bytes_s);
	double reach = hw_num_value(&cpu->bandwidth_bytes_s), alone = hw_num_value(&cpu->thread_bandwidth_bytes_s);
	struct cost_team t = {0};

	if (reach > 0 && reach < dram)
		dram = reach;
	t.dram_bytes_s = dram * hw_num_value(&c->read) * team_sockets(c, cpu->sockets, binding);
	if (alone > 0 && alone * busy < t.dram_bytes_s)
		t.dram_bytes_s = alone * busy;
	double far_experts = hw_num_value(&c->far_experts);
	t.experts_share = cpu->sockets > 1 && binding != COST_ISOLATED && far_experts > 0 ? far_experts : 1;
	t.threads = n;
	t.workers = busy;
	if (second > 0)
		t.workers *= 1 + (hw_num_value(&c->all_threads) - 1) * second / (hardware - cores);
	t.even_share = second > 0 && n < hardware ? n / hardware : 1;
	t.clock_hz = team_clock_hz(cpu, busy);
	t.many_share = team_many(c, n, cpu, binding);
	t.barrier_s = hw_num_value(&cpu->launch_s) * (cpu->cores > 1 ? (n - 1) / (cpu->cores - 1) : 1);
	if (n > hardware)
		t.barrier_s += hw_num_value(&c->oversubscribed_s);
	return t;
}

/* Multiply-adds a cycle with many rows of a type whose weights are repacked first where a matrix has enough of them: until
   that has paid, more rows take the same time. Experts are loaded unevenly, about as an exponential distribution, and what
   stands here is its mean. */
static double many_rate_at(const struct cost_cpu *c, const struct cost_rate *r, double rows, enum cost_rows how)
{
	double most = hw_num_value(&r->many), least = most * r->early, from = hw_num_value(&c->block_rows);

	if (!(from > 0))
		return most;
	if (how == COST_TOGETHER)
		return rows < from ? least : fmin(most, least * rows / from);
	return least / (1 - exp(-from / rows) + r->early * exp(-from / (rows * r->early)));
}

/* Rows that the kernels for repacked weights take together: ggml_gemm_* of src/ggml-cpu/arch/x86/repack.cpp. */
#define BLOCK 4.0
#define LARGE_BLOCK 16.0

/* Norms in the bytes of a group make them seem a little fewer than they are. */
static double whole_blocks(double rows, double block)
{
	return floor(nearbyint(rows) / block) * block;
}

/* Large blocks, then small ones; the rest reads the weights row by row. */
static double blocks_rate(const struct cost_rate *r, double rows)
{
	double many = hw_num_value(&r->many), large = whole_blocks(rows, LARGE_BLOCK);
	double small = whole_blocks(rows - large, BLOCK), rest = fmax(rows - large - small, 0);

	return rows / (large / many + small / (r->four * many) + rest / hw_num_value(&r->one));
}

/* A tile reads weights once for all of its rows. */
static double tiles_rate(const struct cost_rate *r, double rows)
{
	double one = hw_num_value(&r->one), many = hw_num_value(&r->many), two = fmin(r->two * one, many);

	if (rows < 2) /* a mean of many products */
		return rows / (1 / one + (rows - 1) * (2 / two - 1 / one));
	return rows >= BLOCK ? many : two + (many - two) * log(rows / 2) / log(BLOCK / 2);
}

/* Multiply-adds a cycle with so many rows: between few and many the kernels for blocks come into their own. */
static double rate_at(const struct cost_cpu *c, const struct cost_rate *r, double rows, enum cost_rows how)
{
	double few = hw_num_value(&c->few_rows), many = hw_num_value(&c->many_rows);
	double one_rate = hw_num_value(&r->one), many_rate = many_rate_at(c, r, rows, how);

	if (r->two > 0 && rows > 1)
		return tiles_rate(r, rows);
	if (r->four > 0 && !(hw_num_value(&c->block_rows) > 0) && whole_blocks(rows, BLOCK) > 0)
		return blocks_rate(r, rows);
	if (rows <= few)
		return one_rate;
	/* More rows take no less time. */
	double most = one_rate * rows / few;
	if (rows >= many)
		return fmin(many_rate, most);
	return fmin(one_rate + (many_rate - one_rate) * log(rows / few) / log(many / few), most);
}

struct cost_time cost_cpu_multiply(const struct cost_cpu *c, const struct cost_team *t, const struct quant_type *type,
	double bytes, double multiply_adds, enum cost_rows how)
{
	double weights = bytes * 8 / quant_bits_per_weight(type);
	double rows = how == COST_ONE_BY_ONE ? 1 : multiply_adds / weights;
	double share = how == COST_TOGETHER ? 0 : hw_num_value(&c->read_experts);
	double dram = t->dram_bytes_s * (how == COST_TOGETHER ? 1 : t->experts_share);
	struct cost_time time = {.memory_s = bytes / (dram * (share > 0 ? share : 1))};
	struct cost_rate r;

	if (multiply_adds > 0) {
		cost_rate_for(c->weights, c->n_weights, c->bits, type, &r);
		time.dot_s = multiply_adds / (rate_at(c, &r, rows, how) * t->clock_hz * t->workers);
		if (multiply_adds > hw_num_value(&c->few_rows) * weights) {
			share = how == COST_EXPERTS ? hw_num_value(&c->dot_experts) : 0;
			time.dot_s /= (share > 0 ? share : 1) * t->many_share;
		}
	}
	return time;
}

/* Cycles that a thread waits for an entry between other heads' entries, in which prefetchers see no stream: it has the next ones
   underway while they are small, less so the larger they are. */
#define STRIDED_BYTES 256.0

static double wait_strided(const struct model_layer *l, const struct cost_rate *rate, double bits)
{
	double part = bits / 8 / STRIDED_BYTES;

	return l->n_kv_head > 1 && !l->mla_dim_k ? rate->strided * part * part : 0;
}

struct cost_time cost_cpu_attention(const struct cost_cpu *c, const struct cost_team *t, const struct model_layer *l,
	const struct kvcache_types *types, double bytes, double pairs, double queries)
{
	bool many = queries >= hw_num_value(&c->tile_rows);
	double share = many ? t->attention_share_many : t->attention_share;
	struct cost_rate k, v;
	double cycles;

	cost_rate_for(c->cache, c->n_cache, c->bits, types->k, &k);
	cost_rate_for(c->cache, c->n_cache, c->bits, types->v, &v);
	if (many && k.tiles && v.tiles)
		cycles = l->head_dim_k / hw_num_value(&k.many) + l->head_dim_v / hw_num_value(&v.many);
	else
		cycles = l->head_dim_k / hw_num_value(&k.one) + l->head_dim_v / hw_num_value(&v.one) +
			hw_num_value(&c->entry_cycles) + wait_strided(l, &k, l->head_dim_k * k.bits + l->head_dim_v * v.bits);
	double workers = t->workers * (share > 0 ? share : 1);
	if (share > 0 && !many) {
		/* A head's query is one thread's, and the last round may be of few. */
		double rows = queries * l->n_head;
		workers *= rows / (ceil(rows / t->threads) * t->threads);
	}
	return (struct cost_time){
		.memory_s = bytes / t->dram_bytes_s,
		.dot_s = pairs * l->n_head * cycles / (t->clock_hz * workers),
	};
}

struct cost_time cost_cpu_scores(const struct cost_cpu *c, const struct cost_team *t, const struct model_layer *l,
	const struct kvcache_types *types, double bytes, const struct cost_scores *s)
{
	struct cost_rate k, v, keys;

	cost_rate_for(c->weights, c->n_weights, c->bits, types->k, &k);
	cost_rate_for(c->weights, c->n_weights, c->bits, types->v, &v);
	cost_rate_for(c->cache, c->n_cache, c->bits, types->k, &keys);
	double cycles = l->head_dim_k / rate_at(c, &k, s->rows, COST_TOGETHER) +
		l->head_dim_v / rate_at(c, &v, s->rows, COST_TOGETHER) + hw_num_value(&c->score_cycles) +
		wait_strided(l, &keys, l->head_dim_k * keys.bits) / s->rows; /* values lie in columns */
	double turned = l->mla_dim_k && l->head_dim_v != l->mla_dim_v ? s->queries / s->rows * s->entries * l->head_dim_v : 0;
	return (struct cost_time){
		.memory_s = bytes / t->dram_bytes_s,
		.dot_s = (s->queries * s->entries * l->n_head * cycles + turned * hw_num_value(&c->latent_cycles)) /
			(t->clock_hz * t->workers),
	};
}

double cost_cpu_seconds(const struct cost_cpu *c, struct cost_time time)
{
	double p = hw_num_value(&c->overlap);

	return pow(pow(time.memory_s, p) + pow(time.dot_s, p), 1 / p);
}
