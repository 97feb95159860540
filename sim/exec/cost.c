#include "sim/exec/cost.h"

#include <math.h>
#include <string.h>

#include "base/datadir.h"
#include "base/param.h"
#include "base/suggest.h"

static const char *const class_names[COST_CLASS_N] = {"16bit", "8bit", "kquant", "table"};

const char *cost_class_name(enum cost_class c)
{
	return class_names[c];
}

enum cost_class cost_class_of(const struct quant_type *type)
{
	double bits = quant_bits_per_weight(type);

	if (type->block_elements == 1 && bits >= 16)
		return COST_16BIT;
	if (bits >= 8)
		return COST_8BIT;
	return type->table ? COST_TABLE : COST_KQUANT;
}

/* Where each number is: its path in the file and in the struct. Rows with classes stand for one number a class. */
static const struct field {
	const char *group, *key;
	enum unit_dim dim;
	size_t offset;
	bool classes;
	enum { NEEDED, WITH_GROUP, IF_SAID } wanted; /* always; where the file has its group; where it is said */
} fields[] = {
	{"gpu", "read", UNIT_FRACTION, offsetof(struct cost, gpu_read), true, NEEDED},
	{"gpu", "multiply", UNIT_FRACTION, offsetof(struct cost, gpu_multiply), true, NEEDED},
	{"gpu", "attention", UNIT_FRACTION, offsetof(struct cost, gpu_attention), false, NEEDED},
	{"gpu", "attention_old", UNIT_FRACTION, offsetof(struct cost, gpu_attention_old), false, IF_SAID},
	{"gpu", "broadcast", UNIT_FRACTION, offsetof(struct cost, gpu_broadcast), false, IF_SAID},
	{"gpu", "kernel", UNIT_TIME, offsetof(struct cost, gpu_kernel_s), false, NEEDED},
	{"gpu", "early_kernel", UNIT_TIME, offsetof(struct cost, gpu_early_kernel_s), false, IF_SAID},
	{"gpu", "ungraphed", UNIT_TIME, offsetof(struct cost, gpu_ungraphed_s), false, IF_SAID},
	{"gpu", "sync", UNIT_TIME, offsetof(struct cost, gpu_sync_s), false, NEEDED},
	{"gpu", "copy_submit", UNIT_TIME, offsetof(struct cost, copy_submit_s), false, NEEDED},
	{"gpu", "alloc", UNIT_TIME, offsetof(struct cost, gpu_alloc_s), false, NEEDED},
	{"gpu", "early_multiply", UNIT_FRACTION, offsetof(struct cost, gpu_early), false, IF_SAID},
	{"host", "scores", UNIT_PLAIN, offsetof(struct cost, scores), false, IF_SAID},
	{"gpu", "attention_many", UNIT_FRACTION, offsetof(struct cost, gpu_attention_many), false, IF_SAID},
	{"gpu", "mla_attention", UNIT_FRACTION, offsetof(struct cost, gpu_mla), false, IF_SAID},
	{"gpu", "experts", UNIT_FRACTION, offsetof(struct cost, gpu_experts), false, IF_SAID},
	{"gpu", "expert_rows", UNIT_PLAIN, offsetof(struct cost, gpu_expert_rows), false, IF_SAID},
	{"gpu", "bf16", UNIT_FRACTION, offsetof(struct cost, gpu_bf16), false, IF_SAID},
	{"gpu", "experts_16bit", UNIT_FRACTION, offsetof(struct cost, gpu_experts_16bit), false, IF_SAID},
	{"gpu", "bf16_experts", UNIT_FRACTION, offsetof(struct cost, gpu_bf16_experts), false, IF_SAID},
	{"gpu", "early_state", UNIT_PLAIN, offsetof(struct cost, gpu_early_state), false, IF_SAID},
	{"gpu", "scan", UNIT_TIME, offsetof(struct cost, gpu_scan_s), false, IF_SAID},
	{"gpu", "early_scan", UNIT_TIME, offsetof(struct cost, gpu_early_scan_s), false, IF_SAID},
	{"gpu", "launch", UNIT_TIME, offsetof(struct cost, gpu_launch_s), false, IF_SAID},
	{"host", "paging", UNIT_FRACTION, offsetof(struct cost, paging), false, IF_SAID},
	{"host", "unexplained", UNIT_FRACTION, offsetof(struct cost, unexplained), false, IF_SAID},
	{"host", "unexplained_prompt", UNIT_FRACTION, offsetof(struct cost, unexplained_prompt), false, IF_SAID},
	{"host", "step", UNIT_TIME, offsetof(struct cost, step_s), false, NEEDED},
	{"host", "step_old", UNIT_TIME, offsetof(struct cost, step_old_s), false, IF_SAID},
	{"host", "request", UNIT_TIME, offsetof(struct cost, request_s), false, IF_SAID},
	{"host", "sequence_old", UNIT_TIME, offsetof(struct cost, sequence_old_s), false, IF_SAID},
	{"host", "block", UNIT_TIME, offsetof(struct cost, host_block_s), false, IF_SAID},
	{"host", "load", UNIT_TIME, offsetof(struct cost, host_load_s), false, IF_SAID},
	{"cpu", "read", UNIT_FRACTION, offsetof(struct cost, cpu.read), false, WITH_GROUP},
	{"cpu", "read_experts", UNIT_FRACTION, offsetof(struct cost, cpu.read_experts), false, IF_SAID},
	{"cpu", "read_strided", UNIT_FRACTION, offsetof(struct cost, cpu.read_strided), false, IF_SAID},
	{"cpu", "begin_expert", UNIT_TIME, offsetof(struct cost, cpu.begin_s), false, IF_SAID},
	{"cpu", "dot_experts", UNIT_FRACTION, offsetof(struct cost, cpu.dot_experts), false, IF_SAID},
	{"cpu", "early_attention", UNIT_FRACTION, offsetof(struct cost, cpu.early_attention), false, IF_SAID},
	{"cpu", "early_attention_many", UNIT_FRACTION, offsetof(struct cost, cpu.early_attention_many), false, IF_SAID},
	{"cpu", "early_state", UNIT_BYTES_RATE, offsetof(struct cost, cpu.early_state_bytes_s), false, IF_SAID},
	{"cpu", "overlap", UNIT_PLAIN, offsetof(struct cost, cpu.overlap), false, WITH_GROUP},
	{"cpu", "few_rows", UNIT_PLAIN, offsetof(struct cost, cpu.few_rows), false, WITH_GROUP},
	{"cpu", "many_rows", UNIT_PLAIN, offsetof(struct cost, cpu.many_rows), false, WITH_GROUP},
	{"cpu", "block_rows", UNIT_PLAIN, offsetof(struct cost, cpu.block_rows), false, IF_SAID},
	{"cpu", "all_threads", UNIT_FRACTION, offsetof(struct cost, cpu.all_threads), false, WITH_GROUP},
	{"cpu", "unbound", UNIT_FRACTION, offsetof(struct cost, cpu.unbound), false, WITH_GROUP},
	{"cpu", "far_experts", UNIT_FRACTION, offsetof(struct cost, cpu.far_experts), false, IF_SAID},
	{"cpu", "far_bound", UNIT_FRACTION, offsetof(struct cost, cpu.far_bound), false, WITH_GROUP},
	{"cpu", "far_many", UNIT_FRACTION, offsetof(struct cost, cpu.far_many), false, IF_SAID},
	{"cpu", "oversubscribed", UNIT_TIME, offsetof(struct cost, cpu.oversubscribed_s), false, WITH_GROUP},
	{"cpu", "entry_cycles", UNIT_PLAIN, offsetof(struct cost, cpu.entry_cycles), false, WITH_GROUP},
	{"cpu", "score_cycles", UNIT_PLAIN, offsetof(struct cost, cpu.score_cycles), false, IF_SAID},
	{"cpu", "latent_cycles", UNIT_PLAIN, offsetof(struct cost, cpu.latent_cycles), false, IF_SAID},
	{"cpu", "tile_rows", UNIT_PLAIN, offsetof(struct cost, cpu.tile_rows), false, WITH_GROUP},
	{"cpu", "bits", UNIT_PLAIN, offsetof(struct cost, cpu.bits), true, WITH_GROUP},
	{"eager", "op", UNIT_TIME, offsetof(struct cost, host_op_s), false, WITH_GROUP},
	{"eager", "hook", UNIT_PLAIN, offsetof(struct cost, hook_operations), false, IF_SAID},
	{"bitsandbytes", "int8", UNIT_PLAIN, offsetof(struct cost, bnb_int8), false, WITH_GROUP},
	{"bitsandbytes", "int8_old", UNIT_PLAIN, offsetof(struct cost, bnb_int8_old), false, WITH_GROUP},
	{"bitsandbytes", "4bit", UNIT_PLAIN, offsetof(struct cost, bnb_4bit), false, WITH_GROUP},
	{"bitsandbytes", "expand_host", UNIT_PLAIN, offsetof(struct cost, bnb_expand_host), false, WITH_GROUP},
	{"bitsandbytes", "expand", UNIT_FRACTION, offsetof(struct cost, bnb_expand), false, WITH_GROUP},
	{"files", "layer", UNIT_TIME, offsetof(struct cost, layer_s), false, WITH_GROUP},
	{"zero_copy", "pcie", UNIT_FRACTION, offsetof(struct cost, zero_copy_pcie), false, WITH_GROUP},
	{"zero_copy", "c2c", UNIT_FRACTION, offsetof(struct cost, zero_copy_c2c), false, WITH_GROUP},
	{"zero_copy", "remote", UNIT_FRACTION, offsetof(struct cost, zero_copy_remote), false, WITH_GROUP},
	{"zero_copy", "rows", UNIT_COUNT, offsetof(struct cost, zero_copy_rows), false, WITH_GROUP},
	{"zero_copy", "reach", UNIT_BYTES, offsetof(struct cost, zero_copy_reach_bytes), false, WITH_GROUP},
	{"zero_copy", "beyond", UNIT_FRACTION, offsetof(struct cost, zero_copy_beyond), false, WITH_GROUP},
	{"reduce", "nvlink", UNIT_TIME, offsetof(struct cost, reduce_nvlink_s), false, WITH_GROUP},
	{"reduce", "pcie", UNIT_TIME, offsetof(struct cost, reduce_pcie_s), false, WITH_GROUP},
	{"reduce", "host", UNIT_TIME, offsetof(struct cost, reduce_host_s), false, WITH_GROUP},
	{"reduce", "nvlink_rank", UNIT_TIME, offsetof(struct cost, reduce_nvlink_rank_s), false, WITH_GROUP},
	{"reduce", "pcie_rank", UNIT_TIME, offsetof(struct cost, reduce_pcie_rank_s), false, WITH_GROUP},
	{"reduce", "host_rank", UNIT_TIME, offsetof(struct cost, reduce_host_rank_s), false, WITH_GROUP},
	{"host_memory", "copy", UNIT_FRACTION, offsetof(struct cost, host_copy), false, WITH_GROUP},
	{"host_memory", "attention", UNIT_FRACTION, offsetof(struct cost, host_attention), false, WITH_GROUP},
	{"page_cache", "copy", UNIT_BYTES_RATE, offsetof(struct cost, page_cache_bytes_s), false, WITH_GROUP},
	{"helpers", "relay", UNIT_BYTES_RATE, offsetof(struct cost, relay_bytes_s), false, WITH_GROUP},
};

struct written {
	double value, spread;
	const char *source;
};

static struct hw_num *number_at(struct cost *c, const struct field *f, int class)
{
	return (struct hw_num *)((char *)c + f->offset) + class;
}

static int read_number(const struct yaml_node *node, const struct field *f, struct hw_num *num, struct arena *a,
	struct err *err)
{
	const struct param table[] = {
		{"value", PARAM_KIND_REAL, f->dim, offsetof(struct written, value), NULL, true, 0,
			f->dim == UNIT_BYTES_RATE || f->dim == UNIT_BYTES ? 1e15 : 1e3, NULL, ""},
		PARAM_REAL(struct written, spread, "spread", UNIT_FRACTION, "0", 0, 2, ""),
		{"source", PARAM_KIND_TEXT, UNIT_PLAIN, offsetof(struct written, source), NULL, true, 0, 0, NULL, ""},
	};
	struct written w;

	if (param_fill(table, ARRAY_LEN(table), node, f->key, &w, a, err))
		return -1;
	*num = (struct hw_num){.measured = w.value, .spread = w.spread, .source = w.source};
	return 0;
}

static int missing(const struct yaml_node *at, const char *group, const char *key, struct err *err)
{
	return err_at(err, ERR_INPUT, &at->pos, "no '%s' under '%s'", key, group);
}

static int read_field(const struct yaml_node *root, const struct field *f, struct cost *c, struct arena *a,
	struct err *err)
{
	const struct yaml_node *group = yaml_get(root, f->group);
	const struct yaml_node *node = group ? yaml_get(group, f->key) : NULL;

	if (!node)
		return f->wanted == IF_SAID || (f->wanted == WITH_GROUP && !group) ? 0 : missing(root, f->group, f->key, err);
	if (!f->classes)
		return read_number(node, f, number_at(c, f, 0), a, err);
	for (int k = 0; k < COST_CLASS_N; k++) {
		const struct yaml_node *one = yaml_get(node, class_names[k]);
		if (!one)
			return missing(node, f->key, class_names[k], err);
		if (read_number(one, f, number_at(c, f, k), a, err))
			return -1;
	}
	return 0;
}

/* ---- the CPU's tables ---- */

struct rate_written {
	double one, many, early, two, four, strided, spread;
	const char *source;
};

/* An instruction set's table, as it stands or as a multiple of another's. */
struct isa_written {
	struct yaml_node *weights, *cache;
	const char *like, *source;
	double times, many, spread; /* many: of rates with many rows, beside times */
};

static int class_find(const char *name)
{
	for (int k = 0; k < COST_CLASS_N; k++)
		if (strcmp(name, class_names[k]) == 0)
			return k;
	return -1;
}

static int read_rate(const struct yaml_node *node, struct cost_rate *r, struct arena *a, struct err *err)
{
	static const struct param table[] = {
		{"one", PARAM_KIND_REAL, UNIT_PLAIN, offsetof(struct rate_written, one), NULL, true, 1e-3, 1e4, NULL, ""},
		{"many", PARAM_KIND_REAL, UNIT_PLAIN, offsetof(struct rate_written, many), NULL, true, 1e-3, 1e4, NULL, ""},
		PARAM_REAL(struct rate_written, early, "early", UNIT_FRACTION, "1", 1e-2, 1, ""),
		PARAM_REAL(struct rate_written, two, "two", UNIT_FRACTION, "0", 0, 4, ""),
		PARAM_REAL(struct rate_written, strided, "strided", UNIT_PLAIN, "0", 0, 1e3, ""),
		PARAM_REAL(struct rate_written, four, "four", UNIT_FRACTION, "0", 0, 1, ""),
		PARAM_REAL(struct rate_written, spread, "spread", UNIT_FRACTION, "0", 0, 2, ""),
		{"source", PARAM_KIND_TEXT, UNIT_PLAIN, offsetof(struct rate_written, source), NULL, true, 0, 0, NULL, ""},
	};
	struct rate_written w;
	const struct quant_type *type = quant_find(node->key);
	int class = class_find(node->key);

	if (!type && class < 0)
		return err_at(err, ERR_INPUT, &node->key_pos, "'%s' is neither a type nor a class of types", node->key);
	if (param_fill(table, ARRAY_LEN(table), node, node->key, &w, a, err))
		return -1;
	*r = (struct cost_rate){
		.name = node->key,
		.type = type,
		.bits = type ? quant_bits_per_weight(type) : 0,
		.class = type ? cost_class_of(type) : (enum cost_class)class,
		.one = {.measured = w.one, .spread = w.spread, .source = w.source},
		.many = {.measured = w.many, .spread = w.spread, .source = w.source},
		.tiles = w.many > w.one,
		.early = w.early,
		.two = w.two,
		.four = w.four,
		.strided = w.strided,
	};
	return 0;
}

/* A table of rows for every class, whether by its name or by one of its types. */
static int read_rates(const struct yaml_node *isa, const struct yaml_node *list, const char *key, struct arena *a,
	struct cost_rate **rows, int *n, struct err *err)
{
	bool has[COST_CLASS_N] = {false};

	if (!list)
		return missing(isa, isa->key, key, err);
	*rows = arena_array(a, struct cost_rate, yaml_count(list));
	*n = 0;
	for (const struct yaml_node *node = list->child; node; node = node->next) {
		if (read_rate(node, &(*rows)[*n], a, err))
			return -1;
		has[(*rows)[(*n)++].class] = true;
	}
	for (int k = 0; k < COST_CLASS_N; k++)
		if (!has[k])
			return missing(list, key, class_names[k], err);
	return 0;
}

static void scale_rates(struct cost_rate *rows, int n, double one, double many, double spread)
{
	for (int i = 0; i < n; i++) {
		rows[i].one.measured *= one;
		rows[i].many.measured *= many;
		rows[i].one.spread = hypot(rows[i].one.spread, spread);
		rows[i].many.spread = hypot(rows[i].many.spread, spread);
	}
}

static int unknown_isa(const struct yaml_node *all, const char *isa, const struct hw_device *cpu, struct err *err)
{
	struct suggest near;
	char hint[128];

	suggest_init(&near, isa);
	for (const struct yaml_node *node = all->child; node; node = node->next)
		suggest_offer(&near, node->key);
	return err_at(err, ERR_INPUT, &cpu->isa_pos, "%s: no kernels are known for isa '%.60s'%s", cpu->name, isa,
		suggest_text(&near, hint, sizeof(hint)));
}

/* Rows of types that an instruction set like another has kernels of its own for. */
static int lay_own_types(const struct yaml_node *list, struct arena *a, struct cost_cpu *c, struct err *err)
{
	struct cost_rate *rows = arena_array(a, struct cost_rate, (size_t)c->n_weights + (list ? yaml_count(list) : 0));
	int n = c->n_weights;

	memcpy(rows, c->weights, (size_t)n * sizeof(*rows));
	for (const struct yaml_node *node = list ? list->child : NULL; node; node = node->next) {
		struct cost_rate own;
		int at = 0;
		if (read_rate(node, &own, a, err))
			return -1;
		while (at < n && !(rows[at].type == own.type && (own.type || rows[at].class == own.class)))
			at++;
		rows[at] = own;
		n += at == n;
	}
	c->weights = rows;
	c->n_weights = n;
	return 0;
}

/* The tables of one instruction set. */
static int read_isa(const struct yaml_node *all, const struct hw_device *cpu, const char *isa, struct arena *a,
	struct cost_cpu *c, struct err *err)
{
	static const struct param table[] = {
		PARAM_NODE(struct isa_written, weights, "weights", ""),
		PARAM_NODE(struct isa_written, cache, "cache", ""),
		PARAM_TEXT(struct isa_written, like, "like", NULL, ""),
		PARAM_REAL(struct isa_written, times, "times", UNIT_FRACTION, "1", 1e-3, 1e3, ""),
		PARAM_REAL(struct isa_written, many, "many", UNIT_FRACTION, "1", 1e-3, 1e3, ""),
		PARAM_REAL(struct isa_written, spread, "spread", UNIT_FRACTION, "0", 0, 2, ""),
		PARAM_TEXT(struct isa_written, source, "source", NULL, ""),
	};
	const struct yaml_node *node = yaml_get(all, isa);
	struct isa_written w = {0};

	if (!node)
		return unknown_isa(all, isa, cpu, err);
	if (param_fill(table, ARRAY_LEN(table), node, isa, &w, a, err))
		return -1;
	if (!w.like)
		return read_rates(node, w.weights, "weights", a, &c->weights, &c->n_weights, err) ||
				read_rates(node, w.cache, "cache", a, &c->cache, &c->n_cache, err) ?
			-1 :
			0;
	if (strcmp(w.like, isa) == 0 || !w.source)
		return err_at(err, ERR_INPUT, &node->pos, "'like' names another isa, and 'source' says why");
	if (read_isa(all, cpu, w.like, a, c, err))
		return -1;
	scale_rates(c->weights, c->n_weights, w.times, w.times * w.many, w.spread);
	scale_rates(c->cache, c->n_cache, w.times, w.times * w.many, w.spread);
	return lay_own_types(w.weights, a, c, err);
}

/* The row of a type, or of a class as a whole: type NULL. */
static const struct cost_rate *find_row(const struct cost_rate *rows, int n, const struct quant_type *type,
	enum cost_class class)
{
	for (int i = 0; i < n; i++)
		if (rows[i].type == type && (type || rows[i].class == class))
			return &rows[i];
	return NULL;
}

void cost_rate_for(const struct cost_rate *rows, int n_rows, const struct hw_num *bits, const struct quant_type *type,
	struct cost_rate *out)
{
	enum cost_class class = cost_class_of(type);
	const struct cost_rate *row = find_row(rows, n_rows, type, class);
	double width = quant_bits_per_weight(type), one = 0, many = 0, early = 0, spread = 0;
	int n = 0;

	if (!row)
		row = find_row(rows, n_rows, NULL, class);
	if (row) {
		*out = *row;
		out->name = type->name;
		out->type = type;
		return;
	}
	for (int i = 0; i < n_rows; i++) {
		if (rows[i].class != class)
			continue;
		double moved = hw_num_value(&bits[class]) * log(rows[i].bits / width);
		one += log(hw_num_value(&rows[i].one)) + moved;
		many += log(hw_num_value(&rows[i].many)) + moved;
		early += rows[i].early;
		spread += rows[i].one.spread;
		n++;
	}
	if (n == 0)
		BUG("no rate for types like '%s'", type->name);
	*out = (struct cost_rate){
		.name = type->name,
		.type = type,
		.bits = width,
		.class = class,
		.one = {.measured = exp(one / n), .spread = spread / n + bits[class].spread, .source = "mean of its class"},
		.many = {.measured = exp(many / n), .spread = spread / n + bits[class].spread, .source = "mean of its class"},
		.early = early / n,
	};
}

/* Of 32 bits, a cycle and core: two units of eight, multiplied and added. */
#define AVX2_FLOPS 32

double cost_clock_hz(const struct hw_device *cpu)
{
	double clock_hz = hw_num_value(&cpu->clock_hz);

	for (int t = 0; t < HW_DTYPE_N && !(clock_hz > 0); t++)
		clock_hz = hw_num_peak(&cpu->flops_s[t]) / cpu->cores / AVX2_FLOPS;
	return clock_hz;
}

/* ---- what the machine says of itself ---- */

/* Multiply-adds a cycle that a machine measured; 0 where it did not. */
static double own_one(const struct hw_kernel *k, const struct quant_type *type, double clock_hz)
{
	return hw_num_value(&k->decode_bytes_s) * 8 / quant_bits_per_weight(type) / clock_hz;
}

static double own_many(const struct hw_kernel *k, double clock_hz)
{
	return hw_num_value(&k->prefill_flops_s) / 2 / clock_hz;
}

static void lay_own(struct hw_num *num, double own, const struct hw_num *measured)
{
	if (own > 0)
		*num = (struct hw_num){.measured = own, .spread = measured->spread, .source = measured->source};
}

/* Mean of what the machine measured over what the file says, with one row and with many; 1 where it measured nothing. */
static int own_ratio(const struct hw_device *cpu, double clock_hz, const struct cost_cpu *c, double *one, double *many,
	struct err *err)
{
	int n_one = 0, n_many = 0;

	*one = *many = 0;
	for (int i = 0; i < cpu->n_kernels; i++) {
		const struct hw_kernel *k = &cpu->kernels[i];
		const struct quant_type *type;
		struct cost_rate row;

		if (quant_get(k->type, &type, err)) {
			struct err copy = *err;
			return err_at(err, copy.code, &k->pos, "%s.kernels: %s", cpu->name, copy.msg);
		}
		cost_rate_for(c->weights, c->n_weights, c->bits, type, &row);
		if (hw_num_value(&k->decode_bytes_s) > 0) {
			*one += log(own_one(k, type, clock_hz) / row.one.measured);
			n_one++;
		}
		if (hw_num_value(&k->prefill_flops_s) > 0) {
			*many += log(own_many(k, clock_hz) / row.many.measured);
			n_many++;
		}
	}
	*one = exp(n_one ? *one / n_one : 0);
	*many = exp(n_many ? *many / n_many : 0);
	return 0;
}

/* The machine's own rows, in place of the table's or behind them. */
static void lay_machine(const struct hw_device *cpu, double clock_hz, struct arena *a, struct cost_cpu *c)
{
	struct cost_rate *rows = arena_array(a, struct cost_rate, (size_t)(c->n_weights + cpu->n_kernels));
	int n = c->n_weights;

	memcpy(rows, c->weights, (size_t)n * sizeof(*rows));
	for (int i = 0; i < cpu->n_kernels; i++) {
		const struct hw_kernel *own = &cpu->kernels[i];
		const struct quant_type *type = quant_find(own->type);
		int at = 0;

		while (at < n && rows[at].type != type)
			at++;
		if (at == n)
			cost_rate_for(c->weights, c->n_weights, c->bits, type, &rows[n++]);
		lay_own(&rows[at].one, own_one(own, type, clock_hz), &own->decode_bytes_s);
		lay_own(&rows[at].many, own_many(own, clock_hz), &own->prefill_flops_s);
	}
	c->weights = rows;
	c->n_weights = n;
}

static int load_cpu(const struct yaml_node *root, const struct hw_machine *m, struct arena *a, struct cost_cpu *c,
	struct err *err)
{
	const struct hw_device *cpu = &m->devices[hw_first_device(m, HW_DEVICE_CPU)];
	const struct yaml_node *group = yaml_get(root, "cpu"), *all = group ? yaml_get(group, "isa") : NULL;
	double clock_hz = cost_clock_hz(cpu), one, many;

	if (!all)
		return missing(root, "cpu", "isa", err);
	if (read_isa(all, cpu, cpu->isa, a, c, err) || own_ratio(cpu, clock_hz, c, &one, &many, err))
		return -1;
	scale_rates(c->weights, c->n_weights, one, many, 0);
	scale_rates(c->cache, c->n_cache, one, many, 0);
	lay_machine(cpu, clock_hz, a, c);
	return 0;
}

/* Puts what a map does not have from another into it, maps of maps alike. A map that is `like` another is whole. */
static void lay_under(struct yaml_node *map, const struct yaml_node *base, struct arena *a)
{
	struct yaml_node **link = &map->child;

	while (*link)
		link = &(*link)->next;
	for (const struct yaml_node *from = base->child; from; from = from->next) {
		struct yaml_node *own = yaml_get(map, from->key);
		if (own && own->kind == YAML_MAP && from->kind == YAML_MAP && !yaml_get(own, "like") &&
			!yaml_get(own, "value") && !yaml_get(own, "one"))
			lay_under(own, from, a);
		if (own)
			continue;
		*link = arena_new(a, struct yaml_node);
		**link = *from;
		(*link)->next = NULL;
		link = &(*link)->next;
	}
}

/* A file from a file from ..., a backend like a backend like ...: longer is a mistake. */
#define MAX_LIKE 8

/* The file of that name, over the one that it is `from`. */
static int read_kernels(const char *dir, const char *name, int depth, struct arena *a, struct yaml_node **root, struct err *err)
{
	const struct yaml_node *from;
	struct yaml_node *base;

	if (yaml_read_file(arena_printf(a, "%s/hw/kernels/%s.yaml", dir, name), a, root, err))
		return -1;
	from = yaml_get(*root, "from");
	if (!from)
		return 0;
	if (from->kind != YAML_SCALAR || depth == MAX_LIKE)
		return err_at(err, ERR_INPUT, &from->pos, "'from' names another file, and that one none of these");
	if (read_kernels(dir, from->text, depth + 1, a, &base, err))
		return -1;
	lay_under(*root, base, a);
	return 0;
}

/* What runs on a kind of card, by the beginning of the part's name; "else": on all others. */
struct kind_written {
	const char *usual, *from, *before, *bundled, *also, *source;
};

static int find_kind(const struct yaml_node *group, const char *part, struct arena *a, struct kind_written *out,
	struct err *err)
{
	static const struct param table[] = {
		{"usual", PARAM_KIND_TEXT, UNIT_PLAIN, offsetof(struct kind_written, usual), NULL, true, 0, 0, NULL, ""},
		PARAM_TEXT(struct kind_written, from, "from", "", ""),
		PARAM_TEXT(struct kind_written, before, "before", "", ""),
		PARAM_TEXT(struct kind_written, bundled, "bundled", "", ""),
		PARAM_TEXT(struct kind_written, also, "also", "", ""),
		{"source", PARAM_KIND_TEXT, UNIT_PLAIN, offsetof(struct kind_written, source), NULL, true, 0, 0, NULL, ""},
	};
	const struct yaml_node *kinds = yaml_get(group, "auto");

	if (kinds && kinds->kind != YAML_MAP)
		return err_at(err, ERR_INPUT, &kinds->pos, "'auto' must be a map");
	for (const struct yaml_node *node = kinds ? kinds->child : NULL; node; node = node->next)
		if (strcmp(node->key, "else") == 0 || strncmp(part, node->key, strlen(node->key)) == 0)
			return param_fill(table, ARRAY_LEN(table), node, node->key, out, a, err);
	return missing(group, "auto", "else", err);
}

static int unknown_backend(const struct yaml_node *all, const struct cost_backend *wanted, struct err *err)
{
	struct suggest near;
	char hint[128], known[256] = "auto";

	suggest_init(&near, wanted->name);
	for (const struct yaml_node *node = all->child; node; node = node->next)
		suggest_offer(&near, node->key);
	if (suggest_best(&near))
		return err_at(err, ERR_INPUT, &wanted->pos, "unknown backend '%s'%s", wanted->name,
			suggest_text(&near, hint, sizeof(hint)));
	for (const struct yaml_node *node = all->child; node; node = node->next)
		snprintf(known + strlen(known), sizeof(known) - strlen(known), ", %s", node->key);
	return err_at(err, ERR_INPUT, &wanted->pos, "unknown backend '%s'; known: %s", wanted->name, known);
}

/* What a backend is like; NULL: nothing. */
static struct yaml_node *backend_like(const struct yaml_node *all, const struct yaml_node *backend)
{
	const struct yaml_node *like = yaml_get(backend, "like");

	return like ? yaml_get(all, like->text) : NULL;
}

/* Each is like one of them, and none like itself by way of others. */
static int check_backends(const struct yaml_node *all, struct err *err)
{
	if (all->kind != YAML_MAP)
		return err_at(err, ERR_INPUT, &all->pos, "'backends' must be a map");
	for (const struct yaml_node *b = all->child; b; b = b->next) {
		int depth = 0;
		for (const struct yaml_node *at = b, *like; (like = yaml_get(at, "like")); at = backend_like(all, at), depth++)
			if (like->kind != YAML_SCALAR || !yaml_get(all, like->text) || depth == MAX_LIKE)
				return err_at(err, ERR_INPUT, &like->pos, "'like' names another backend, and that one none of these");
	}
	return 0;
}

/* The one that it is like in the end. */
static const char *backend_root(const struct yaml_node *all, const struct yaml_node *backend)
{
	for (const struct yaml_node *like; (like = backend_like(all, backend));)
		backend = like;
	return backend->key;
}

static bool has_word(const char *words, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = words; (at = strstr(at, word)); at += len)
		if ((at == words || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
			return true;
	return false;
}

/* The backend that is wanted: one that there is, and that runs on each of the machine's cards. By itself: the first one's. */
static int choose_backend(const struct yaml_node *group, const struct hw_machine *m, const struct cost_backend *wanted,
	struct arena *a, struct yaml_node **out, struct err *err)
{
	struct yaml_node *all = yaml_get(group, "backends");
	int gpu = hw_first_device(m, HW_DEVICE_GPU);
	struct kind_written kind;

	if (check_backends(all, err) || find_kind(group, gpu < 0 ? "" : m->devices[gpu].part, a, &kind, err))
		return -1;
	bool before = *kind.before && strcmp(wanted->build, kind.from) < 0;
	if (strcmp(wanted->name, "auto") == 0) {
		const char *name = wanted->bundled && *kind.bundled ? kind.bundled : before ? kind.before : kind.usual;
		*out = yaml_get(all, name);
		return *out ? 0 : missing(group, "backends", name, err);
	}
	if (!(*out = yaml_get(all, wanted->name)))
		return unknown_backend(all, wanted, err);
	const char *root = backend_root(all, *out);
	for (int i = 0; i < m->n_devices; i++) {
		const struct hw_device *d = &m->devices[i];
		if (d->kind != HW_DEVICE_GPU)
			continue;
		if (find_kind(group, d->part, a, &kind, err))
			return -1;
		if (strcmp(root, kind.usual) != 0 && !has_word(kind.also, root))
			return err_at(err, ERR_INPUT, &wanted->pos, "no backend '%s' on %s: it has %s%s%s", wanted->name,
				d->part[0] ? d->part : d->name, kind.usual, *kind.also ? ", " : "", kind.also);
	}
	return 0;
}

static int check_months(const struct yaml_node *group, struct err *err)
{
	static const char *const keys[] = {"graphs_from", "multiply_from"};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const struct yaml_node *month = yaml_get(group, keys[i]);
		if (month && month->kind != YAML_SCALAR)
			return err_at(err, ERR_INPUT, &month->pos, "'%s' must be a month", keys[i]);
	}
	return 0;
}

/* Makes the group `gpu` that of a backend and a month. */
static int lay_backend(const struct yaml_node *root, const struct hw_machine *m, const struct cost_backend *wanted,
	struct arena *a, struct err *err)
{
	struct yaml_node *group = yaml_get(root, "gpu"), *all = group ? yaml_get(group, "backends") : NULL, *laid, *b;

	if (!all)
		return 0;
	if (choose_backend(group, m, wanted, a, &b, err))
		return -1;
	laid = arena_new(a, struct yaml_node);
	laid->kind = YAML_MAP;
	for (; b; b = backend_like(all, b)) {
		struct yaml_node *then = yaml_get(b, "before");
		for (struct yaml_node *era = then ? then->child : NULL; era; era = era->next)
			if (strcmp(wanted->build, era->key) < 0)
				lay_under(laid, era, a);
		lay_under(laid, b, a);
	}
	lay_under(laid, group, a);
	group->child = laid->child;
	return check_months(group, err);
}

struct card_written {
	double multiply, mmq, read, early_multiply, experts, attention_many, bf16, kernel, early_kernel, scan, spread;
	const char *graphs_from, *source;
	bool vectors;
};

/* What kinds of cards reach of the rates above, by the beginning of the part's name. */
static int read_cards(const struct yaml_node *root, const struct hw_machine *m, struct arena *a, struct cost *c,
	struct err *err)
{
	static const struct param table[] = {
		{"multiply", PARAM_KIND_REAL, UNIT_FRACTION, offsetof(struct card_written, multiply), NULL, true, 1e-3, 1e3, NULL, ""},
		PARAM_REAL(struct card_written, mmq, "mmq", UNIT_FRACTION, "0", 0, 1e3, ""),
		PARAM_REAL(struct card_written, read, "read", UNIT_FRACTION, "1", 1e-2, 1, ""),
		PARAM_TEXT(struct card_written, graphs_from, "graphs_from", NULL, ""),
		PARAM_FLAG(struct card_written, vectors, "vectors", "no", ""),
		PARAM_REAL(struct card_written, early_multiply, "early_multiply", UNIT_FRACTION, "0", 0, 1, ""),
		PARAM_REAL(struct card_written, kernel, "kernel", UNIT_TIME, "0s", 0, 1, ""),
		PARAM_REAL(struct card_written, early_kernel, "early_kernel", UNIT_TIME, "0s", 0, 1, ""),
		PARAM_REAL(struct card_written, scan, "scan", UNIT_FRACTION, "1", 1e-2, 1e2, ""),
		PARAM_REAL(struct card_written, experts, "experts", UNIT_FRACTION, "1", 1e-2, 10, ""),
		PARAM_REAL(struct card_written, attention_many, "attention_many", UNIT_FRACTION, "1", 1e-2, 1, ""),
		PARAM_REAL(struct card_written, bf16, "bf16", UNIT_FRACTION, "1", 1e-2, 1, ""),
		PARAM_REAL(struct card_written, spread, "spread", UNIT_FRACTION, "0", 0, 2, ""),
		{"source", PARAM_KIND_TEXT, UNIT_PLAIN, offsetof(struct card_written, source), NULL, true, 0, 0, NULL, ""},
	};
	const struct yaml_node *group = yaml_get(root, "gpu"), *cards = group ? yaml_get(group, "cards") : NULL;
	const struct yaml_node *graphs = group ? yaml_get(group, "graphs_from") : NULL;
	int gpu = hw_first_device(m, HW_DEVICE_GPU);

	if (graphs)
		c->gpu_graphs_from = graphs->text;
	for (const struct yaml_node *node = cards ? cards->child : NULL; node; node = node->next) {
		struct card_written w;
		if (param_fill(table, ARRAY_LEN(table), node, node->key, &w, a, err))
			return -1;
		if (gpu < 0 || strncmp(m->devices[gpu].part, node->key, strlen(node->key)) != 0)
			continue;
		if (w.early_multiply > 0)
			c->gpu_early.measured = w.early_multiply;
		c->gpu_vectors = w.vectors;
		if (w.graphs_from)
			c->gpu_graphs_from = w.graphs_from;
		if (w.kernel > 0)
			c->gpu_kernel_s = (struct hw_num){.measured = w.kernel, .spread = w.spread, .source = w.source};
		if (w.early_kernel > 0)
			c->gpu_early_kernel_s = (struct hw_num){.measured = w.early_kernel, .spread = w.spread, .source = w.source};
		c->gpu_scan_s.measured *= w.scan;
		c->gpu_early_scan_s.measured *= w.scan;
		/* Before, and of 16 bits still, weights are multiplied by another library. */
		if (w.mmq > 0)
			c->gpu_early.measured = hw_num_value(&c->gpu_early) * w.multiply / w.mmq;
		c->gpu_experts.measured *= w.experts;
		c->gpu_attention_many.measured *= w.attention_many;
		if (w.bf16 < 1)
			c->gpu_bf16 = (struct hw_num){.measured = w.bf16 * (hw_num_value(&c->gpu_bf16) > 0 ? c->gpu_bf16.measured : 1),
				.spread = w.spread, .source = w.source};
		for (int k = 0; k < COST_CLASS_N; k++) {
			c->gpu_multiply[k].measured *= k > COST_16BIT && w.mmq > 0 ? w.mmq : w.multiply;
			c->gpu_multiply[k].spread = hypot(c->gpu_multiply[k].spread, w.spread);
			if (k == COST_16BIT || w.read >= 1)
				continue;
			c->gpu_read[k].measured *= w.read;
			c->gpu_read[k].spread = hypot(c->gpu_read[k].spread, w.spread);
		}
	}
	return 0;
}

/* Where a backend says since when it multiplies quantised weights as they are. */
static void tell_early(const struct yaml_node *root, const char *build, struct cost *c)
{
	const struct yaml_node *group = yaml_get(root, "gpu"), *from = group ? yaml_get(group, "multiply_from") : NULL;

	c->gpu_early_told = from != NULL;
	for (int k = COST_16BIT + 1; k < COST_CLASS_N && from && strcmp(build, from->text) < 0; k++)
		c->gpu_multiply[k].measured *= hw_num_value(&c->gpu_early);
}

struct system_written {
	double launch, wait, spread;
	const char *source;
};

static void scale(struct hw_num *n, double times, double spread)
{
	n->measured *= times;
	n->spread = hypot(n->spread, spread);
}

/* What the machine's operating system makes of launches and of waits for the GPU. */
static int read_system(const struct yaml_node *root, const struct hw_machine *m, struct arena *a, struct cost *c,
	struct err *err)
{
	static const struct param table[] = {
		{"launch", PARAM_KIND_REAL, UNIT_FRACTION, offsetof(struct system_written, launch), NULL, true, 1e-3, 1e3, NULL, ""},
		{"wait", PARAM_KIND_REAL, UNIT_FRACTION, offsetof(struct system_written, wait), NULL, true, 1e-3, 1e3, NULL, ""},
		PARAM_REAL(struct system_written, spread, "spread", UNIT_FRACTION, "0", 0, 2, ""),
		{"source", PARAM_KIND_TEXT, UNIT_PLAIN, offsetof(struct system_written, source), NULL, true, 0, 0, NULL, ""},
	};
	const struct yaml_node *group = yaml_get(root, "gpu"), *systems = group ? yaml_get(group, "systems") : NULL;
	const struct yaml_node *node = systems ? yaml_get(systems, m->system) : NULL;
	struct system_written w;

	if (!node)
		return 0;
	if (param_fill(table, ARRAY_LEN(table), node, node->key, &w, a, err))
		return -1;
	scale(&c->gpu_launch_s, w.launch, w.spread);
	scale(&c->host_op_s, w.launch, w.spread);
	scale(&c->copy_submit_s, w.launch, w.spread);
	scale(&c->gpu_sync_s, w.wait, w.spread);
	return 0;
}

int cost_load_by(const char *name, const struct cost_backend *backend, const struct hw_machine *machine, struct arena *a,
	struct cost **out, struct err *err)
{
	const char *dir;
	struct yaml_node *root;
	struct cost *c = arena_new(a, struct cost);

	if (datadir_find(a, &dir, err) || read_kernels(dir, name, 0, a, &root, err) || lay_backend(root, machine, backend, a, err))
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (read_field(root, &fields[i], c, a, err))
			return -1;
	if (read_cards(root, machine, a, c, err))
		return -1;
	tell_early(root, backend->build, c);
	if (read_system(root, machine, a, c, err) ||
		(yaml_get(root, "cpu") && load_cpu(root, machine, a, &c->cpu, err)))
		return -1;
	*out = c;
	return 0;
}

int cost_load(const char *name, const struct hw_machine *machine, struct arena *a, struct cost **out, struct err *err)
{
	static const struct cost_backend now = {.name = "auto", .build = "9999"};

	return cost_load_by(name, &now, machine, a, out, err);
}

/* ---- all of them, by name ---- */

static size_t rate_numbers(struct cost_rate *rows, int n, const char *table, struct arena *a, struct hw_num_ref *to)
{
	for (int i = 0; i < n; i++) {
		to[2 * i] = (struct hw_num_ref){
			arena_printf(a, "kernels.cpu.%s.%s.one", table, rows[i].name), &rows[i].one, UNIT_PLAIN};
		to[2 * i + 1] = (struct hw_num_ref){
			arena_printf(a, "kernels.cpu.%s.%s.many", table, rows[i].name), &rows[i].many, UNIT_PLAIN};
	}
	return 2 * (size_t)n;
}

size_t cost_numbers(struct cost *c, struct arena *a, struct hw_num_ref **out)
{
	size_t n = 0;

	*out = arena_array(a, struct hw_num_ref,
		ARRAY_LEN(fields) * COST_CLASS_N + 2 * (size_t)(c->cpu.n_weights + c->cpu.n_cache));
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		const struct field *f = &fields[i];
		if (f->wanted != NEEDED && !number_at(c, f, 0)->source)
			continue;
		for (int k = 0; k < (f->classes ? COST_CLASS_N : 1); k++)
			(*out)[n++] = (struct hw_num_ref){
				arena_printf(a, "kernels.%s.%s%s%s", f->group, f->key, f->classes ? "." : "",
					f->classes ? class_names[k] : ""),
				number_at(c, f, k), f->dim};
	}
	n += rate_numbers(c->cpu.weights, c->cpu.n_weights, "weights", a, *out + n);
	n += rate_numbers(c->cpu.cache, c->cpu.n_cache, "cache", a, *out + n);
	return n;
}

bool cost_is_rate(const char *name)
{
	return strncmp(name, "kernels.cpu.weights.", 20) == 0 || strncmp(name, "kernels.cpu.cache.", 18) == 0;
}

static struct cost_rate *copy_rates(const struct cost_rate *rows, int n, struct arena *a)
{
	struct cost_rate *copy = arena_array(a, struct cost_rate, (size_t)n);

	for (int i = 0; i < n; i++)
		copy[i] = rows[i];
	return copy;
}

struct cost *cost_copy(const struct cost *c, struct arena *a)
{
	struct cost *copy = arena_new(a, struct cost);

	*copy = *c;
	copy->cpu.weights = copy_rates(c->cpu.weights, c->cpu.n_weights, a);
	copy->cpu.cache = copy_rates(c->cpu.cache, c->cpu.n_cache, a);
	return copy;
}

void cost_make_early(struct cost_cpu *c)
{
	for (int i = 0; i < c->n_weights; i++) {
		c->weights[i].many.measured *= c->weights[i].early;
		c->weights[i].early = 1;
	}
}

char *cost_canonical(const struct cost *c, struct arena *a)
{
	struct hw_num_ref *ref;
	size_t n = cost_numbers(cost_copy(c, a), a, &ref);
	size_t size = 1, len = 0;
	char *text;

	for (size_t i = 0; i < n; i++)
		size += strlen(ref[i].name) + 64; /* two numbers of 24 characters at most */
	text = arena_alloc(a, size);
	for (size_t i = 0; i < n; i++)
		len += (size_t)snprintf(text + len, size - len, "%s %.17g %.17g;", ref[i].name, ref[i].num->measured,
			ref[i].num->spread);
	return text;
}
