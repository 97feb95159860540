#include "hw/measure_gpu.h"

#include <stdlib.h>

#include "base/datadir.h"
#include "base/json.h"
#include "hw/hw.h"
#include "tests/test.h"

/* Medians of 8 and more repetitions with noise of 1 %: four standard deviations of the fewest, 4 x 1.25 x 1 % / sqrt(8). */
#define TOLERANCE 0.018

struct got {
	struct arena arena;
	struct gpu_fit f;
	struct err err;
	const char *path;
};

static void setup(struct got *g)
{
	const char *dir;

	memset(g, 0, sizeof(*g));
	arena_init(&g->arena, NULL, NULL);
	assert_ok(datadir_find(&g->arena, &dir, &g->err), g->err);
	g->path = arena_printf(&g->arena, "%s/tests/data/cuda/synthetic.json", dir);
	assert_ok(gpu_fit_read(g->path, &g->arena, &g->f, &g->err), g->err);
}

static double found(const struct got *g, const char *name)
{
	const struct gpu_constant *c = gpu_fit_find(&g->f, name);

	if (!c)
		ck_abort_msg("no constant '%s'", name);
	return c->value;
}

START_TEST(constants_come_back)
{
	struct got g;
	json_t *root, *value;
	const char *name;
	size_t n = 0;

	setup(&g);
	assert_ok(json_read_file(g.path, 1 << 20, &root, &g.err), g.err);
	json_object_foreach(json_object_get(root, "truth"), name, value) {
		/* A share is the quotient of two. */
		double wide = strstr(name, "16bit") ? 2 : 1;
		assert_close(found(&g, name), json_number_value(value), wide * TOLERANCE);
		n++;
	}
	ck_assert_uint_gt(n, 10);
	json_decref(root);
	arena_release(&g.arena);
}
END_TEST

START_TEST(pageable_copies_fall_back_beyond_caches)
{
	struct got g;

	setup(&g);
	const struct gpu_constant *up = gpu_fit_find(&g.f, "gpu0.link.h2d_pageable");
	ck_assert_ptr_nonnull(up);
	ck_assert_uint_ge(up->n_points, 4);
	for (size_t i = 1; i < up->n_points; i++)
		ck_assert(up->size_bytes[i] > up->size_bytes[i - 1]);
	ck_assert(up->rate_bytes_s[up->n_points - 1] < 0.8 * up->rate_bytes_s[0]);
	ck_assert_uint_eq(gpu_fit_find(&g.f, "gpu0.link.h2d")->n_points, 0);
	arena_release(&g.arena);
}
END_TEST

START_TEST(a_sample_with_a_fault_is_named_and_not_used)
{
	struct got g;
	bool noted = false;

	setup(&g);
	for (size_t i = 0; i < g.f.notes.n; i++)
		noted |= strcmp(g.f.notes.at[i], "not used: read, 4294967296 bytes, of GPU 0: 1 us one way, 9 us the other") == 0;
	ck_assert(noted);
	arena_release(&g.arena);
}
END_TEST

/* Written and loaded again: BASE NULL or a machine. */
static void loads(const char *base)
{
	struct got g;
	struct hw_machine *m;
	char path[32];

	setup(&g);
	strcpy(path, "/tmp/offsim-test-XXXXXX");
	int fd = mkstemp(path);
	FILE *to = fdopen(fd, "w");
	assert_ok(gpu_fit_write(&g.f, base, to, &g.arena, &g.err), g.err);
	fclose(to);
	assert_ok(hw_machine_load(arena_printf(&g.arena, "%s", path), &g.arena, &m, &g.err), g.err);
	unlink(path);
	/* Printed with three digits. */
	assert_close(hw_num_value(&m->devices[hw_find_device(m, "gpu0")].flops_s[HW_FP16]), found(&g, "gpu0.flops.fp16"), 1e-3 * 5);
	assert_close(hw_num_value(&m->memories[hw_find_memory(m, "gpu0")].bandwidth_bytes_s), found(&g, "gpu0.bandwidth"), 1e-3 * 5);
	for (int i = 0; i < m->n_links; i++)
		if (strcmp(m->links[i].name, "gpu0.link") == 0) {
			assert_close(hw_num_value(&m->links[i].h2d.num), found(&g, "gpu0.link.h2d"), 1e-3 * 5);
			assert_close(hw_num_value(&m->links[i].latency_s), found(&g, "gpu0.link.latency"), 1e-3 * 5);
			ck_assert_uint_gt(m->links[i].h2d_pageable.n_points, 0);
		}
	ck_assert_ptr_nonnull(m->kernels);
	arena_release(&g.arena);
}

START_TEST(the_profile_stands_on_its_own) { loads(NULL); }
END_TEST

START_TEST(the_profile_extends_another) { loads("desktop-rtx4090-ddr5"); }
END_TEST

#define HEAD "{\"format\": \"offsim-cuda raw 1\", \"date\": \"2026-11-30\", \"devices\": [{\"name\": \"x\", \"memory_bytes\": 1e9}], "

START_TEST(what_is_malformed_is_named)
{
	static const struct {
		const char *text, *msg;
	} rows[] = {
		{"{}", "f: the file: not what 'offsim-cuda calibrate -o' writes: its 'format' is '', not 'offsim-cuda raw 1'"},
		{"{\"format\": \"offsim-cuda raw 2\"}",
			"f: the file: not what 'offsim-cuda calibrate -o' writes: its 'format' is 'offsim-cuda raw 2', not 'offsim-cuda raw 1'"},
		{"{\"format\": \"offsim-cuda raw 1\"}", "f: devices: must be a list of 1 to 16 objects"},
		{"{\"format\": \"offsim-cuda raw 1\", \"devices\": [7]}", "f: devices[0]: must be an object"},
		{"{\"format\": \"offsim-cuda raw 1\", \"devices\": [{}]}", "f: devices[0]: needs the key 'memory_bytes'"},
		{HEAD "\"samples\": {}}", "f: samples: must be a list of 1 to 100000 objects"},
		{HEAD "\"samples\": [{\"seconds\": [1]}]}", "f: samples[0]: needs the key 'part'"},
		{HEAD "\"samples\": [{\"part\": \"h2d\", \"seconds\": []}]}", "f: samples[0]: 'seconds' must be a list of one or more numbers"},
		{HEAD "\"samples\": [{\"part\": \"h2d\", \"seconds\": [1, -2]}]}", "f: samples[0]: 'seconds' must be numbers above 0"},
		{HEAD "\"samples\": [{\"part\": \"h2d\", \"seconds\": [1, null]}]}", "f: samples[0]: 'seconds' must be numbers above 0"},
		{HEAD "\"samples\": [{\"part\": \"gemm\", \"flops\": \"many\", \"seconds\": [1]}]}", "f: samples[0]: 'flops' must be a number"},
		{HEAD "\"samples\": [{\"part\": \"nothing\", \"seconds\": [1]}]}", "f: no sample says anything of a constant"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena a;
		struct gpu_fit f;
		struct err err = {0};
		arena_init(&a, NULL, NULL);
		ck_assert_int_eq(gpu_fit_read_text(rows[i].text, strlen(rows[i].text), "f", &a, &f, &err), -1);
		assert_err(err, ERR_INPUT, rows[i].msg);
		arena_release(&a);
	}
}
END_TEST

START_TEST(a_link_that_says_nothing_is_guessed)
{
	static const char text[] = HEAD "\"samples\": [{\"part\": \"h2d\", \"bytes\": 1000000000, \"seconds\": [0.041]}]}";
	struct arena a;
	struct gpu_fit f;
	struct err err = {0};

	arena_init(&a, NULL, NULL);
	assert_ok(gpu_fit_read_text(text, strlen(text), "f", &a, &f, &err), err);
	/* 24.4 GB/s: more than generation 3 has. */
	ck_assert_uint_eq(f.devices.at[0].pcie_gen, 4);
	ck_assert_uint_eq(f.devices.at[0].pcie_width, 16);
	ck_assert_int_eq(gpu_fit_write(&f, NULL, stderr, &a, &err), -1);
	assert_err(err, ERR_INPUT, "f: nothing was measured of host memory (part 'loaded'): name a machine for the rest with --machine");
	arena_release(&a);
}
END_TEST

TEST_MAIN("measure_gpu", constants_come_back, pageable_copies_fall_back_beyond_caches, a_sample_with_a_fault_is_named_and_not_used,
	the_profile_stands_on_its_own, the_profile_extends_another, what_is_malformed_is_named, a_link_that_says_nothing_is_guessed)
