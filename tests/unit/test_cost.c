/* A CPU's kernels: which row of which table counts, what a team of threads reaches, and the laws of cost_cpu.h. */
#include "sim/exec/cost_cpu.h"

#include "base/datadir.h"
#include "base/yaml.h"
#include "sim/exec/platform.h"
#include "tests/test.h"

static struct arena arena; /* zeroed: grows on first use */

static struct hw_machine *machine(const char *cpu)
{
	const char *text = arena_printf(&arena,
		"{cpu0: {%slaunch: 3.1us, %s}, ram: {capacity: 64GiB, bandwidth: 61.7GB/s}}",
		strstr(cpu, "part: core") ? "" : "part: ryzen-9-7950x, ", cpu);
	struct hw_machine *m;
	struct yaml_node *node;
	struct err err = {0};

	assert_ok(yaml_read_text(text, strlen(text), "machine", &arena, &node, &err), err);
	assert_ok(hw_machine_load_node(node, &arena, &m, &err), err);
	return m;
}

static struct model *model(const char *quant)
{
	struct model *m;
	struct err err = {0};

	assert_ok(model_load("llama-3.1-8b", quant, &arena, &m, &err), err);
	return m;
}

static struct cost *cost(const struct hw_machine *m)
{
	struct cost *c;
	struct err err = {0};

	assert_ok(cost_load("llama.cpp", m, &arena, &c, &err), err);
	return c;
}

static const struct cost_rate *row(const struct cost *c, const char *type)
{
	for (int i = 0; i < c->cpu.n_weights; i++)
		if (strcmp(c->cpu.weights[i].name, type) == 0)
			return &c->cpu.weights[i];
	ck_abort_msg("no row for %s", type);
}

static const struct quant_type *type(const char *name)
{
	const struct quant_type *t = quant_find(name);

	ck_assert_ptr_nonnull(t);
	return t;
}

START_TEST(a_machine_s_own_rates_come_first)
{
	struct cost *file = cost(machine("clock: 5GHz"));
	struct cost *own = cost(machine("clock: 5GHz, kernels: {q4_k: {decode: 11.7GB/s, prefill: 83GFLOP/s}}"));
	double one = 11.7e9 * 8 / 4.5 / 5e9, many = 83e9 / 2 / 5e9;

	assert_close(row(own, "q4_k")->one.measured, one, 1e-12);
	assert_close(row(own, "q4_k")->many.measured, many, 1e-12);
	/* the other types move with it, and so does the cache */
	assert_close(row(own, "q6_k")->one.measured / row(file, "q6_k")->one.measured, one / row(file, "q4_k")->one.measured,
		1e-12);
	assert_close(own->cpu.cache[1].many.measured / file->cpu.cache[1].many.measured, many / row(file, "q4_k")->many.measured,
		1e-12);
}
END_TEST

START_TEST(own_rates_make_up_for_a_clock_nobody_knows)
{
	struct cost *c = cost(machine("kernels: {q8_0: {decode: 22.7GB/s, prefill: 96GFLOP/s}}"));
	struct hw_machine *m = machine("kernels: {q8_0: {decode: 22.7GB/s, prefill: 96GFLOP/s}}");

	m->devices[0].clock_hz = (struct hw_num){0};
	struct cost *blind = cost(m);
	struct cost_team t = cost_cpu_team(&blind->cpu, m, &m->devices[0], 1, COST_UNBOUND);
	assert_close(row(blind, "q8_0")->one.measured * t.clock_hz, 22.7e9 * 8 / 8.5, 1e-12);
	assert_close(row(c, "q8_0")->one.measured * hw_num_value(&machine("cores: 16")->devices[0].clock_hz), 22.7e9 * 8 / 8.5,
		1e-12);
}
END_TEST

START_TEST(types_without_a_row_follow_their_class)
{
	struct hw_num bits[COST_CLASS_N] = {[COST_TABLE] = {.measured = 0.7}};
	struct cost_rate rows[] = {
		{.name = "iq2_xxs", .type = type("iq2_xxs"), .bits = 2.0625, .class = COST_TABLE, .one = {.measured = 4.1}, .many = {.measured = 5.3}},
		{.name = "iq3_s", .type = type("iq3_s"), .bits = 3.4375, .class = COST_TABLE, .one = {.measured = 2.5}, .many = {.measured = 3.1}},
		{.name = "kquant", .class = COST_KQUANT, .one = {.measured = 7.7}, .many = {.measured = 9.9}},
	};
	struct cost_rate got;

	cost_rate_for(rows, 3, bits, type("iq3_s"), &got);
	assert_close(got.one.measured, 2.5, 0);
	cost_rate_for(rows, 3, bits, type("q5_k"), &got);
	assert_close(got.many.measured, 9.9, 0);
	cost_rate_for(rows, 3, bits, type("iq2_s"), &got);
	assert_close(got.one.measured, sqrt(4.1 * 2.5) * pow(sqrt(2.0625 * 3.4375) / 2.5625, 0.7), 1e-12);
}
END_TEST

START_TEST(classes)
{
	static const struct {
		const char *type;
		enum cost_class class;
	} want[] = {{"f32", COST_16BIT}, {"bf16", COST_16BIT}, {"q8_0", COST_8BIT}, {"q4_0", COST_KQUANT}, {"q6_k", COST_KQUANT},
		{"iq4_xs", COST_KQUANT}, {"iq2_k", COST_KQUANT}, {"iq4_ks", COST_KQUANT}, {"tq2_0", COST_KQUANT},
		{"iq2_xxs", COST_TABLE}, {"iq3_s", COST_TABLE}, {"iq4_kt", COST_TABLE}};

	for (size_t i = 0; i < ARRAY_LEN(want); i++)
		ck_assert_msg(cost_class_of(type(want[i].type)) == want[i].class, "%s", want[i].type);
}
END_TEST

/* Kernels for one row leave some of HBM's rate; of 16 bits they do not. */
START_TEST(cards_that_read_quantised_weights_slower)
{
	struct cost *gddr = cost(machine("cores: 16}, gpu0: {part: rtx-3090"));
	struct cost *hbm = cost(machine("cores: 16}, gpu0: {part: a100-pcie-80gb"));

	assert_close(hw_num_value(&hbm->gpu_read[COST_16BIT]), hw_num_value(&gddr->gpu_read[COST_16BIT]), 0);
	for (int k = COST_16BIT + 1; k < COST_CLASS_N; k++) {
		double share = hw_num_value(&hbm->gpu_read[k]) / hw_num_value(&gddr->gpu_read[k]);
		ck_assert_msg(share > 0.4 && share < 0.8, "class %d: %g", k, share);
		ck_assert_double_gt(hbm->gpu_read[k].spread, gddr->gpu_read[k].spread);
	}
}
END_TEST

/* Kernels of their own for quantised weights are slower there than the library is with 16 bits, which all got before. */
START_TEST(cards_whose_integers_are_apart)
{
	struct cost *geforce = cost(machine("cores: 16}, gpu0: {part: rtx-3090"));
	struct cost *a100 = cost(machine("cores: 16}, gpu0: {part: a100-pcie-80gb"));
	double share = hw_num_value(&a100->gpu_multiply[COST_16BIT]) / hw_num_value(&geforce->gpu_multiply[COST_16BIT]);

	for (int k = COST_16BIT + 1; k < COST_CLASS_N; k++) {
		double now = hw_num_value(&a100->gpu_multiply[k]) / hw_num_value(&geforce->gpu_multiply[k]);
		ck_assert_msg(now < 0.6 * share, "class %d: %g of %g", k, now, share);
		assert_close(now * hw_num_value(&a100->gpu_early), share * hw_num_value(&geforce->gpu_early), 1e-12);
	}
}
END_TEST

static struct cost *cost_by(const struct hw_machine *m, const char *backend, const char *build)
{
	struct cost_backend by = {.name = backend};
	struct cost *c;
	struct err err = {0};

	snprintf(by.build, sizeof(by.build), "%s", build);
	assert_ok(cost_load_by("llama.cpp", &by, m, &arena, &c, &err), err);
	return c;
}

/* What a backend says goes before what the group says, the earliest month that is yet to come before that, and what both do not
   say is of the one that it is like. */
START_TEST(backends_lie_over_one_another)
{
	const struct hw_machine *m = machine("cores: 16}, gpu0: {part: radeon-8060s");
	struct cost *cuda = cost(machine("cores: 16}, gpu0: {part: rtx-4090")), *hip = cost_by(m, "hip", "2026-08"), *vulkan = cost_by(m, "vulkan", "2026-08");

	ck_assert_double_gt(hw_num_value(&hip->gpu_kernel_s), hw_num_value(&cuda->gpu_kernel_s));
	ck_assert_double_lt(hw_num_value(&vulkan->gpu_kernel_s), hw_num_value(&hip->gpu_kernel_s));
	assert_close(hw_num_value(&hip->gpu_launch_s), hw_num_value(&cuda->gpu_launch_s), 0);
	static const char *const month[] = {"2025-09", "2025-11", "2026-02", "2026-04", "2026-08"};
	for (size_t i = 0; i + 1 < ARRAY_LEN(month); i++) {
		struct cost *then = cost_by(m, "hip", month[i]), *next = cost_by(m, "hip", month[i + 1]);
		ck_assert_double_le(hw_num_value(&then->gpu_multiply[COST_8BIT]), hw_num_value(&next->gpu_multiply[COST_8BIT]));
		ck_assert_double_le(hw_num_value(&then->gpu_attention_many), hw_num_value(&next->gpu_attention_many));
	}
	ck_assert_double_gt(hw_num_value(&cost_by(m, "hip-hipblaslt", "2025-09")->gpu_multiply[COST_8BIT]),
		2 * hw_num_value(&cost_by(m, "hip", "2025-09")->gpu_multiply[COST_8BIT]));
	assert_close(hw_num_value(&cost_by(m, "hip-hipblaslt", "2025-09")->gpu_kernel_s), hw_num_value(&cost_by(m, "hip", "2025-09")->gpu_kernel_s), 0);
	assert_close(hw_num_value(&cost_by(m, "auto", "2026-08")->gpu_kernel_s), hw_num_value(&vulkan->gpu_kernel_s), 0);
}
END_TEST

/* The first month that is later than a build goes before the others. */
START_TEST(months_of_backends_are_in_order)
{
	const char *dir;
	struct err err = {0};
	struct yaml_node *root;

	assert_ok(datadir_find(&arena, &dir, &err), err);
	assert_ok(yaml_read_file(arena_printf(&arena, "%s/hw/kernels/llama.cpp.yaml", dir), &arena, &root, &err), err);
	for (const struct yaml_node *b = yaml_get(yaml_get(root, "gpu"), "backends")->child; b; b = b->next) {
		const struct yaml_node *before = yaml_get(b, "before");
		for (const struct yaml_node *era = before ? before->child : NULL; era; era = era->next) {
			ck_assert_msg(strlen(era->key) == 7 && era->key[4] == '-', "%s", era->key);
			ck_assert_msg(!era->next || strcmp(era->key, era->next->key) < 0, "%s: %s", b->key, era->key);
		}
	}
}
END_TEST

/* Metal takes several times as long from one kernel to the next, and has no graphs that could make it less. */
START_TEST(cards_with_slow_launches)
{
	struct cost *geforce = cost(machine("cores: 16}, gpu0: {part: rtx-3090"));
	struct cost *apple = cost(machine("cores: 16}, gpu0: {part: apple-m2-ultra"));

	ck_assert_double_gt(hw_num_value(&apple->gpu_kernel_s), 2 * hw_num_value(&geforce->gpu_kernel_s));
	ck_assert_double_gt(hw_num_value(&apple->gpu_early_kernel_s), hw_num_value(&apple->gpu_kernel_s));
	ck_assert_double_gt(apple->gpu_kernel_s.spread, 0);
	ck_assert_str_eq(apple->gpu_graphs_from, "never");
}
END_TEST

static void refused_by(const char *card, const char *backend, const char *want)
{
	struct cost_backend by = {.name = backend, .build = "2026-08"};
	struct cost *c;
	struct err err = {0};

	ck_assert_int_eq(cost_load_by("llama.cpp", &by, machine(arena_printf(&arena, "cores: 16}, gpu0: {part: %s", card)), &arena, &c, &err), -1);
	assert_err(err, ERR_INPUT, want);
}

START_TEST(backends_that_a_card_does_not_have)
{
	refused_by("rx-7900-xtx}, gpu1: {part: rtx-4090", "hip", "no backend 'hip' on rtx-4090: it has cuda, vulkan");
	refused_by("radeon-8060s", "vulcan", "unknown backend 'vulcan'; did you mean 'vulkan'?");
	refused_by("radeon-8060s", "openvino", "unknown backend 'openvino'; known: auto, cuda, metal, hip, hip-hipblaslt, vulkan, vulkan-amdvlk");
	refused_by("radeon-8060s", "cuda", "no backend 'cuda' on radeon-8060s: it has vulkan, hip");
	refused_by("rtx-4090", "hip-hipblaslt", "no backend 'hip-hipblaslt' on rtx-4090: it has cuda, vulkan");
}
END_TEST

static void refused(struct hw_machine *m, const char *want)
{
	struct cost *c;
	struct err err = {0};

	ck_assert_int_eq(cost_load("llama.cpp", m, &arena, &c, &err), -1);
	assert_err(err, ERR_INPUT, want);
}

START_TEST(names_that_nobody_knows)
{
	refused(machine("isa: avx512_vmni"),
		"cpu0: no kernels are known for isa 'avx512_vmni'; did you mean 'avx512_vnni'?");
	refused(machine("kernels: {q4_00: {decode: 1GB/s}}"), "cpu0.kernels: unknown type 'q4_00'; did you mean 'q4_0'?");
}
END_TEST

/* Threads for one of two sockets are not slowed down by the other; more are, unless all is bound to one. */
START_TEST(products_of_many_rows_on_two_sockets)
{
	struct hw_machine *m = machine("cores: 11, threads: 11, sockets: 2");
	struct cost *c = cost(m);
	double far = hw_num_value(&c->cpu.far_many);

	ck_assert(far > 0 && far < 1);
	assert_close(cost_cpu_team(&c->cpu, m, m->devices, 11, COST_UNBOUND).many_share, 1, 0);
	assert_close(cost_cpu_team(&c->cpu, m, m->devices, 12, COST_UNBOUND).many_share, (1 + far) / 2, 1e-12);
	assert_close(cost_cpu_team(&c->cpu, m, m->devices, 0, COST_SPREAD).many_share, (1 + far) / 2, 1e-12);
	assert_close(cost_cpu_team(&c->cpu, m, m->devices, 40, COST_UNBOUND).many_share, (1 + far) / 2, 1e-12);
	assert_close(cost_cpu_team(&c->cpu, m, m->devices, 0, COST_ISOLATED).many_share, 1, 0);
}
END_TEST

START_TEST(a_team)
{
	struct hw_machine *m = machine("cores: 8, threads: 16, clock: {peak: 5.6GHz, measured: 4.9GHz}, thread_bandwidth: 17GB/s");
	struct cost *c = cost(m);
	double read = hw_num_value(&c->cpu.read), slow = hw_num_value(&c->cpu.oversubscribed_s);
	struct cost_team one = cost_cpu_team(&c->cpu, m, m->devices, 1, COST_UNBOUND);
	struct cost_team all = cost_cpu_team(&c->cpu, m, m->devices, 0, COST_UNBOUND);
	struct cost_team twice = cost_cpu_team(&c->cpu, m, m->devices, 16, COST_UNBOUND);
	struct cost_team more = cost_cpu_team(&c->cpu, m, m->devices, 17, COST_UNBOUND);

	assert_close(one.clock_hz, 5.6e9, 1e-12);
	assert_close(one.dram_bytes_s, 17e9, 1e-12);
	assert_close(one.barrier_s, 0, 0);
	assert_close(all.workers, 8, 0);
	assert_close(all.clock_hz, 4.9e9, 1e-12);
	assert_close(all.dram_bytes_s, 61.7e9 * read, 1e-12);
	assert_close(all.barrier_s, 3.1e-6, 1e-12);
	assert_close(twice.workers, 8 * hw_num_value(&c->cpu.all_threads), 1e-12);
	assert_close(more.barrier_s, 3.1e-6 * 16 / 7 + slow, 1e-12);
}
END_TEST

/* The fast ones come first, with a clock of their own; cores that are not the part's are of no known kind. */
START_TEST(a_hybrid_team)
{
	struct hw_machine *m = machine(
		"cores: 14, fast_cores: 6, clock: {peak: 5.3GHz, measured: 2.9GHz}, fast_clock: 4.7GHz");
	static const struct { unsigned threads; double clock_ghz; } want[] = {
		{1, 5.3}, {3, 5.3 - 0.6 * 2 / 5}, {6, 4.7}, {7, 4.7 - 1.8 / 8}, {14, 2.9}, {0, 2.9}};

	ck_assert_uint_eq(m->devices[0].fast_cores, 6);
	for (size_t i = 0; i < ARRAY_LEN(want); i++)
		assert_close(cost_cpu_team(&cost(m)->cpu, m, m->devices, want[i].threads, COST_UNBOUND).clock_hz,
			want[i].clock_ghz * 1e9, 1e-12);

	ck_assert_uint_eq(machine("part: core-i7-12700k")->devices[0].fast_cores, 8);
	ck_assert_uint_eq(machine("part: core-i7-12700k, cores: 5")->devices[0].fast_cores, 0);
	ck_assert_uint_eq(machine("part: core-i7-12700k, cores: 5, fast_cores: 3, sockets: 2")->devices[0].fast_cores, 6);
}
END_TEST

/* Of the rate of whole matrices. */
static double experts_share(const struct cost *c, const struct cost_team *t, enum cost_rows how)
{
	return cost_cpu_multiply(&c->cpu, t, type("q8_0"), 2.385e9, 0, COST_TOGETHER).memory_s /
		cost_cpu_multiply(&c->cpu, t, type("q8_0"), 2.385e9, 0, how).memory_s;
}

START_TEST(sockets)
{
	struct hw_machine *m = machine("sockets: 2");
	struct cost *c = cost(m);
	double read = hw_num_value(&c->cpu.read);
	struct cost_team unbound = cost_cpu_team(&c->cpu, m, m->devices, 0, COST_UNBOUND);
	struct cost_team bound = cost_cpu_team(&c->cpu, m, m->devices, 0, COST_SPREAD);
	struct cost_team alone = cost_cpu_team(&c->cpu, m, m->devices, 0, COST_ISOLATED);

	assert_close(unbound.workers, 32, 0);
	assert_close(unbound.dram_bytes_s, 61.7e9 * read * hw_num_value(&c->cpu.unbound) / 2, 1e-12);
	assert_close(bound.dram_bytes_s, 61.7e9 * read * (1 + hw_num_value(&c->cpu.far_bound)) / 2, 1e-12);
	struct cost_team pinned = cost_cpu_team(&c->cpu, m, m->devices, 0, COST_PINNED);
	assert_close(pinned.workers, 16, 0);
	assert_close(pinned.dram_bytes_s, unbound.dram_bytes_s, 1e-12);
	assert_close(alone.workers, 16, 0);
	assert_close(alone.dram_bytes_s, 61.7e9 * read / 2, 1e-12);

	/* Single experts suffer more than whole matrices where pages are on several sockets. */
	double experts = hw_num_value(&c->cpu.read_experts), far = hw_num_value(&c->cpu.far_experts);
	ck_assert_double_lt(far, 1);
	assert_close(experts_share(c, &unbound, COST_EXPERTS), experts * far, 1e-12);
	assert_close(experts_share(c, &bound, COST_EXPERTS), experts * far, 1e-12);
	assert_close(experts_share(c, &alone, COST_ONE_BY_ONE), experts, 1e-12);
}
END_TEST

START_TEST(a_product)
{
	struct hw_machine *m = machine("thread_bandwidth: 17GB/s, clock: 4.9GHz, isa: neon");
	struct cost *c = cost(m);
	const struct cost_rate *r = row(c, "q4_k");
	struct cost_team t = cost_cpu_team(&c->cpu, m, m->devices, 3, COST_UNBOUND);
	double weights = 2.385e9, bytes = weights * 4.5 / 8, each = 3 * 4.9e9;
	double few = hw_num_value(&c->cpu.few_rows), many = hw_num_value(&c->cpu.many_rows);
	struct cost_time read = cost_cpu_multiply(&c->cpu, &t, type("q4_k"), bytes, 0, COST_TOGETHER);
	struct cost_time one = cost_cpu_multiply(&c->cpu, &t, type("q4_k"), bytes, weights, COST_TOGETHER);
	struct cost_time two = cost_cpu_multiply(&c->cpu, &t, type("q4_k"), bytes, 2 * weights, COST_TOGETHER);
	struct cost_time lots = cost_cpu_multiply(&c->cpu, &t, type("q4_k"), bytes, many * weights, COST_TOGETHER);
	struct cost_time middle = cost_cpu_multiply(&c->cpu, &t, type("q4_k"), bytes, sqrt(few * many) * weights, COST_TOGETHER);
	struct cost_time rows = cost_cpu_multiply(&c->cpu, &t, type("q4_k"), bytes, many * weights, COST_ONE_BY_ONE);
	struct cost_time experts = cost_cpu_multiply(&c->cpu, &t, type("q4_k"), bytes, many * weights, COST_EXPERTS);

	assert_close(read.memory_s, bytes / 51e9, 1e-12);
	assert_close(read.dot_s, 0, 0);
	assert_close(cost_cpu_seconds(&c->cpu, read), bytes / 51e9, 1e-12);
	assert_close(one.dot_s, weights / (each * r->one.measured), 1e-12);
	assert_close(pow(cost_cpu_seconds(&c->cpu, one), 3), pow(one.memory_s, 3) + pow(one.dot_s, 3), 1e-12);
	assert_close(two.dot_s, 2 * one.dot_s, 1e-12);
	assert_close(two.memory_s, one.memory_s, 0);
	assert_close(lots.dot_s, many * weights / (each * r->many.measured), 1e-12);
	assert_close(middle.dot_s, sqrt(few * many) * weights / (each * (r->one.measured + r->many.measured) / 2), 1e-12);
	assert_close(rows.dot_s, many * one.dot_s, 1e-12);
	assert_close(experts.dot_s, lots.dot_s / hw_num_value(&c->cpu.dot_experts), 1e-12);
	assert_close(experts.memory_s, lots.memory_s / hw_num_value(&c->cpu.read_experts), 1e-12);
}
END_TEST

static double seconds_of_rows(const struct cost *c, const struct cost_team *t, const char *name, double rows)
{
	const struct quant_type *q = type(name);

	return cost_cpu_multiply(&c->cpu, t, q, 1e9, rows * 8e9 / quant_bits_per_weight(q), COST_TOGETHER).dot_s;
}

/* Repacked weights are multiplied by sixteen rows and by four, and a row that is left over costs as much as one alone; others'
   tiles take two rows for little more than one; what has neither takes rows one by one. ggml d99724f2, a thread of an EPYC of
   Zen 5, microseconds for 2048 x 1024 weights. */
START_TEST(few_rows_together)
{
	static const struct {
		const char *type;
		int rows;
		double us;
	} measured[] = {
		{"q4_0", 1, 43.3}, {"q4_0", 3, 129.3}, {"q4_0", 4, 71.9}, {"q4_0", 5, 114.9}, {"q4_0", 6, 158.1}, {"q4_0", 8, 145.4},
		{"q4_0", 12, 217.8}, {"q4_0", 16, 228.2}, {"q4_0", 32, 461}, {"q4_k", 1, 37.6}, {"q4_k", 3, 113.2},
		{"q4_k", 4, 88.1}, {"q4_k", 8, 177.7}, {"q4_k", 16, 270.3}, {"q8_0", 1, 54.4}, {"q8_0", 2, 65.4}, {"q8_0", 3, 87.4},
		{"q8_0", 4, 111.1}, {"q8_0", 8, 219.7}, {"f16", 1, 55}, {"f16", 2, 56.7}, {"f16", 3, 70}, {"f16", 4, 82.6},
		{"f16", 16, 314.7}, {"q6_k", 1, 44.8}, {"q6_k", 2, 90.7}, {"q6_k", 8, 358.5},
	};
	struct hw_machine *m = machine("cores: 1, threads: 1, isa: avx512_zen5, clock: 4.25GHz");
	struct cost *c = cost(m);
	struct cost_team t = cost_cpu_team(&c->cpu, m, m->devices, 1, COST_UNBOUND);

	for (size_t i = 0; i < ARRAY_LEN(measured); i++) {
		double weights = 8e9 / quant_bits_per_weight(type(measured[i].type));
		double us = 1e6 * seconds_of_rows(c, &t, measured[i].type, measured[i].rows) * 2048 * 1024 / weights;
		ck_assert_msg(fabs(us / measured[i].us - 1) < 0.12, "%s, %d rows: %g us of %g", measured[i].type,
			measured[i].rows, us, measured[i].us);
	}
}
END_TEST

/* Kernels for blocks of rows may be many times as fast as those for one: still, no row more makes it faster. */
START_TEST(more_rows_take_no_less)
{
	struct hw_machine *m = machine("clock: 4.9GHz");
	struct cost *c;
	struct err err = {0};

	assert_ok(cost_load("ik_llama.cpp", m, &arena, &c, &err), err);
	struct cost_team t = cost_cpu_team(&c->cpu, m, m->devices, 7, COST_UNBOUND);
	for (int i = 0; i < c->cpu.n_weights; i++) {
		const struct quant_type *q = c->cpu.weights[i].type;
		double last = 0;
		for (double rows = 1; q && rows < 80; rows += 0.385) {
			double now = cost_cpu_multiply(&c->cpu, &t, q, 1e9, rows * 8e9 / quant_bits_per_weight(q), COST_TOGETHER).dot_s;
			ck_assert_msg(now >= last * (1 - 1e-12), "%s, %g rows: %g after %g", q->name, rows, now, last);
			last = now;
		}
	}
}
END_TEST

/* Weights are repacked from block_rows on. Experts' rows are exponentially distributed: here that mean is summed up. */
START_TEST(few_rows_of_an_expert_are_not_repacked)
{
	struct hw_machine *m = machine("clock: 5GHz, isa: neon_i8mm");
	const struct quant_type *q = type("iq2_xxs");
	struct cost *c;
	struct cost_rate r;
	struct err err = {0};

	assert_ok(cost_load("ik_llama.cpp", m, &arena, &c, &err), err);
	cost_rate_for(c->cpu.weights, c->cpu.n_weights, c->cpu.bits, q, &r);
	struct cost_team t = cost_cpu_team(&c->cpu, m, m->devices, 1, COST_UNBOUND);
	double from = hw_num_value(&c->cpu.block_rows), slow = r.many.measured * r.early, sum = 0, mean = 1.7 * from;

	ck_assert_double_lt(r.early, 0.5);
	for (double rows = 0.005; rows < 60 * mean; rows += 0.01) {
		double cost = rows < from ? rows / slow : fmax(from / slow, rows / r.many.measured);
		sum += cost * exp(-rows / mean) / mean * 0.01;
	}
	double got = cost_cpu_multiply(&c->cpu, &t, q, quant_bits_per_weight(q) / 8, mean, COST_EXPERTS).dot_s;
	assert_close(got * hw_num_value(&c->cpu.dot_experts) * t.clock_hz, sum, 1e-4);
	/* One matrix has the rows it has. */
	got = cost_cpu_multiply(&c->cpu, &t, q, quant_bits_per_weight(q) / 8, 0.99 * from, COST_TOGETHER).dot_s;
	assert_close(got * t.clock_hz, 0.99 * from / slow, 1e-12);
	got = cost_cpu_multiply(&c->cpu, &t, q, quant_bits_per_weight(q) / 8, 512, COST_TOGETHER).dot_s;
	assert_close(got * t.clock_hz, 512 / r.many.measured, 1e-12);
}
END_TEST

/* ik_llama.cpp has tiles for quantised caches, llama.cpp for those of 16 and 32 bits alone. */
START_TEST(caches_with_tiles)
{
	static const struct {
		const char *engine, *cache, *isa;
		bool tiles;
	} of[] = {{"llama.cpp", "f16", "avx512_vnni", true}, {"llama.cpp", "q8_0", "avx512_vnni", false},
		{"llama.cpp", "bf16", "avx2", false}, {"llama.cpp", "q8_0", "avx512_zen5", false},
		{"ik_llama.cpp", "q8_0", "avx512_zen5", true}, {"ik_llama.cpp", "q8_0", "neon", true}};
	const struct model_layer *l = &model("q8_0")->layers[0];

	for (size_t i = 0; i < ARRAY_LEN(of); i++) {
		struct hw_machine *m = machine(arena_printf(&arena, "clock: 3.7GHz, isa: %s", of[i].isa));
		const struct kvcache_types types = *KVCACHE_SAME(type(of[i].cache));
		struct cost *c;
		struct err err = {0};
		assert_ok(cost_load(of[i].engine, m, &arena, &c, &err), err);
		struct cost_team t = cost_cpu_team(&c->cpu, m, m->devices, 16, COST_UNBOUND);
		double many = cost_cpu_attention(&c->cpu, &t, l, &types, 1e6, 777, 512).dot_s;
		double one = cost_cpu_attention(&c->cpu, &t, l, &types, 1e6, 777, 1).dot_s;
		ck_assert_msg(of[i].tiles ? many < 0.8 * one : many == one, "%s, %s, %s: %g, one by one %g", of[i].engine,
			of[i].cache, of[i].isa, many, one);
	}
}
END_TEST

START_TEST(attention)
{
	struct hw_machine *m = machine("clock: 4.9GHz");
	struct cost *c = cost(m);
	struct cost_team t = cost_cpu_team(&c->cpu, m, m->devices, 16, COST_UNBOUND);
	const struct model_layer *l = &model("q8_0")->layers[0];
	struct cost_rate f16, q8;
	double cycle_s = 1 / (16 * 4.9e9);

	cost_rate_for(c->cpu.cache, c->cpu.n_cache, c->cpu.bits, type("f16"), &f16);
	cost_rate_for(c->cpu.cache, c->cpu.n_cache, c->cpu.bits, type("q8_0"), &q8);
	struct cost_time one = cost_cpu_attention(&c->cpu, &t, l, KVCACHE_SAME(type("f16")), 1e6, 777, 1);
	struct cost_time tiles = cost_cpu_attention(&c->cpu, &t, l, KVCACHE_SAME(type("f16")), 1e6, 777, 64);
	struct cost_time small = cost_cpu_attention(&c->cpu, &t, l, KVCACHE_SAME(type("q8_0")), 1e6, 777, 64);
	double entry = hw_num_value(&c->cpu.entry_cycles);

	assert_close(one.dot_s, 777 * 32 * (entry + 256 / f16.one.measured) * cycle_s, 1e-12);
	assert_close(tiles.dot_s, 777 * 32 * 256 / f16.many.measured * cycle_s, 1e-12);
	assert_close(small.dot_s, 777 * 32 * (entry + 256 / q8.one.measured) * cycle_s, 1e-12);
	ck_assert_double_gt(small.dot_s, one.dot_s); /* half the bytes, more work */
	/* In old builds 32 heads keep 16 threads busy twice, 24 threads as long. */
	t.attention_share = 0.25;
	assert_close(cost_cpu_attention(&c->cpu, &t, l, KVCACHE_SAME(type("f16")), 1e6, 777, 1).dot_s, 4 * one.dot_s, 1e-12);
	t.threads = t.workers = 24;
	assert_close(cost_cpu_attention(&c->cpu, &t, l, KVCACHE_SAME(type("f16")), 1e6, 777, 1).dot_s, 4 * one.dot_s, 1e-12);
}
END_TEST

/* Cycles for each entry and head in a model's decode, libllama b10361 over ggml d99724f2 on an EPYC of Zen 5; one head with keys:
   entries in a row. */
START_TEST(entries_between_others)
{
	static const struct {
		const char *type;
		uint32_t n_kv_head, head_dim;
		double cycles;
	} measured[] = {{"f16", 4, 64, 67}, {"f32", 4, 64, 164}, {"bf16", 4, 64, 96}, {"q8_0", 4, 64, 125}, {"q4_0", 4, 64, 170},
		{"f16", 4, 128, 190}, {"q8_0", 4, 128, 178}, {"f16", 1, 256, 129}};
	struct hw_machine *m = machine("cores: 1, threads: 1, isa: avx512_zen5, clock: 4.25GHz");
	struct cost *c = cost(m);
	struct cost_team t = cost_cpu_team(&c->cpu, m, m->devices, 1, COST_UNBOUND);

	for (size_t i = 0; i < ARRAY_LEN(measured); i++) {
		struct model_layer l = {.n_head = 16, .n_kv_head = measured[i].n_kv_head, .head_dim_k = measured[i].head_dim,
			.head_dim_v = measured[i].head_dim};
		struct cost_time time = cost_cpu_attention(&c->cpu, &t, &l, KVCACHE_SAME(type(measured[i].type)), 1e6, 1000, 1);
		double cycles = time.dot_s * t.clock_hz / (1000 * 16);
		ck_assert_msg(fabs(cycles / measured[i].cycles - 1) < 0.25, "%s, %u: %g cycles", measured[i].type,
			measured[i].head_dim, cycles);
	}
}
END_TEST

/* Cycles for each query, entry and head of 64 and 256 values, ggml d99724f2, a thread of an EPYC of Zen 5. */
START_TEST(attention_by_products)
{
	static const struct {
		uint32_t head_dim;
		double rows, cycles;
	} measured[] = {{64, 1, 34.7}, {64, 8, 19.4}, {64, 128, 17.3}, {256, 1, 69.3}, {256, 8, 32.8}, {256, 128, 46.7}};
	struct hw_machine *m = machine("cores: 1, threads: 1, isa: avx512_zen5, clock: 4.25GHz");
	struct cost *c = cost(m);
	struct cost_team t = cost_cpu_team(&c->cpu, m, m->devices, 1, COST_UNBOUND);
	struct model_layer l = {.n_head = 16};

	for (size_t i = 0; i < ARRAY_LEN(measured); i++) {
		struct cost_scores s = {.queries = 3 * measured[i].rows, .rows = measured[i].rows, .entries = 512};
		l.head_dim_k = l.head_dim_v = measured[i].head_dim;
		l.n_kv_head = measured[i].head_dim < 256 ? 4 : 1;
		struct cost_time time = cost_cpu_scores(&c->cpu, &t, &l, KVCACHE_SAME(type("f16")), 1e6, &s);
		double cycles = time.dot_s * t.clock_hz / (s.queries * s.entries * l.n_head);
		ck_assert_msg(fabs(cycles / measured[i].cycles - 1) < 0.3, "%zu: %g cycles", i, cycles);
		assert_close(time.memory_s, 1e6 / t.dram_bytes_s, 1e-12);
	}
	/* Values of MLA's latent vectors are turned around once for each sequence, those of unpacked heads lie right. */
	struct cost_scores s = {.queries = 3, .rows = 1, .entries = 512};
	struct model_layer latent = {.n_head = 16, .head_dim_k = 576, .head_dim_v = 512, .mla_dim_k = 192, .mla_dim_v = 128};
	double with = cost_cpu_scores(&c->cpu, &t, &latent, KVCACHE_SAME(type("f16")), 1e6, &s).dot_s;
	latent.mla_dim_v = 512;
	double without = cost_cpu_scores(&c->cpu, &t, &latent, KVCACHE_SAME(type("f16")), 1e6, &s).dot_s;
	assert_close((with - without) * t.clock_hz, 3 * 512 * 512 * hw_num_value(&c->cpu.latent_cycles), 1e-9);
}
END_TEST

/* The kernel is a flow that goes no faster than it would alone, charged to what binds it more. */
START_TEST(a_flow_with_its_own_pace)
{
	struct hw_machine *m = machine("cores: 16");
	struct platform p;
	struct platform_path path;
	struct sim_op op;
	struct platform_work work = {.bytes = 6.17e9, .flops = 1e9, .dtype = HW_FP32, .alone_s = 0.119};

	platform_init(&p, m, &arena);
	platform_kernel(&p, 0, &work, &path, &op);
	assert_close(op.cap, 6.17e9 / 0.119, 1e-12);
	ck_assert_int_eq(op.cap_resource, p.memory_resource[m->devices[0].memory]);
	work.flops = hw_num_value(&m->devices[0].flops_s[HW_FP32]) * 0.11;
	platform_kernel(&p, 0, &work, &path, &op);
	ck_assert_int_eq(op.cap_resource, p.compute_resource[0]);
}
END_TEST

START_TEST(every_engine_has_every_instruction_set)
{
	static const char *const engines[] = {"llama.cpp", "accelerate"};
	static const char *const isas[] = {
		"sse", "avx2", "avx_vnni", "avx512", "avx512_vnni", "avx512_zen5", "amx", "neon", "neon_i8mm", "sve"};
	struct cost *c;
	struct err err = {0};

	for (size_t e = 0; e < ARRAY_LEN(engines); e++)
		for (size_t i = 0; i < ARRAY_LEN(isas); i++)
			assert_ok(cost_load(engines[e], machine(arena_printf(&arena, "isa: %s", isas[i])), &arena, &c, &err),
				err);
}
END_TEST

START_TEST(numbers_and_their_copy)
{
	struct cost *c = cost(machine("cores: 16")), *copy = cost_copy(c, &arena);
	struct hw_num_ref *ref;
	size_t n = cost_numbers(copy, &arena, &ref), rates = 0;
	const char *before = cost_canonical(c, &arena);

	for (size_t i = 0; i < n; i++) {
		rates += cost_is_rate(ref[i].name);
		ref[i].num->measured *= 1.1;
	}
	ck_assert_uint_eq(rates, 2 * (size_t)(c->cpu.n_weights + c->cpu.n_cache));
	ck_assert_str_eq(cost_canonical(c, &arena), before);
	ck_assert_str_ne(cost_canonical(copy, &arena), before);
}
END_TEST

TEST_MAIN("cost", backends_lie_over_one_another, months_of_backends_are_in_order, backends_that_a_card_does_not_have, a_machine_s_own_rates_come_first,
	own_rates_make_up_for_a_clock_nobody_knows, types_without_a_row_follow_their_class, classes, names_that_nobody_knows,
	cards_that_read_quantised_weights_slower, cards_whose_integers_are_apart, cards_with_slow_launches, a_team,
	a_hybrid_team, products_of_many_rows_on_two_sockets, sockets, a_product, few_rows_together, more_rows_take_no_less, few_rows_of_an_expert_are_not_repacked,
	attention, attention_by_products, entries_between_others, caches_with_tiles, a_flow_with_its_own_pace, every_engine_has_every_instruction_set,
	numbers_and_their_copy)
