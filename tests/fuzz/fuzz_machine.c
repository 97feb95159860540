/*
 * fuzz_machine.c - any text as a machine profile.
 *
 * A machine that loads must keep its promises: something to compute with, sizes and rates positive and
 * finite, every memory reachable from host memory, and canonical text that a copy shares.
 *
 * Names and paths in the text are looked up from a folder that holds nothing (OFFSIM_DATA still names the
 * parts); find_file() refuses all that is no plain file.
 */
#include <math.h>
#include <string.h>

#include "hw/hw.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_positive(double v)
{
	if (!(v > 0 && isfinite(v)))
		BUG("%g is not positive and finite", v);
}

static void check_rate(const struct hw_rate *rate)
{
	static const double sizes[] = {1, 4096, 1e6, 2.5e6, 1e9, 1e15};

	check_positive(hw_num_value(&rate->num));
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		check_positive(hw_rate_at(rate, sizes[i]));
}

static void check_memory(const struct hw_machine *m, int i)
{
	const struct hw_memory *mem = &m->memories[i];
	int link[HW_MAX_HOPS];
	bool forward[HW_MAX_HOPS];

	if (!mem->capacity_bytes || mem->reserved_bytes >= mem->capacity_bytes)
		BUG("%s has no room", mem->name);
	if (mem->kind != HW_MEMORY_DRIVE)
		check_positive(hw_num_value(&mem->bandwidth_bytes_s));
	if (hw_route(m, hw_first_memory(m, HW_MEMORY_RAM), i, link, forward) < 0)
		BUG("no way to %s", mem->name);
}

static void check_link(const struct hw_link *link)
{
	check_rate(&link->h2d);
	check_rate(&link->d2h);
	check_rate(&link->h2d_pageable);
	check_rate(&link->d2h_pageable);
	if (!(hw_num_value(&link->latency_s) >= 0) || !(hw_num_value(&link->both_bytes_s) >= 0))
		BUG("%s", link->name);
}

static void check_machine(struct hw_machine *m, struct arena *a)
{
	struct hw_num_ref *refs;
	size_t n = hw_numbers(m, a, &refs);

	if (m->n_devices < 1 || m->n_memories < 1)
		BUG("%d devices, %d memories", m->n_devices, m->n_memories);
	for (int i = 0; i < m->n_memories; i++)
		check_memory(m, i);
	for (int i = 0; i < m->n_links; i++)
		check_link(&m->links[i]);
	for (size_t i = 0; i < n; i++) {
		check_positive(hw_num_value(refs[i].num));
		if (!refs[i].num->source || !(refs[i].num->spread >= 0))
			BUG("%s", refs[i].name);
	}
	if (strcmp(hw_machine_canonical(m, a), hw_machine_canonical(hw_machine_copy(m, a), a)))
		BUG("a copy differs");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a;
	struct yaml_node *node, *tree;
	struct hw_machine *m, *again;
	struct err err;

	arena_init(&a, NULL, NULL);
	if (!yaml_read_text((const char *)data, size, "/nonexistent/fuzz.yaml", &a, &node, &err) &&
		!hw_machine_load_node(node, &a, &m, &err)) {
		check_machine(m, &a);
		if (hw_machine_resolve(node, &a, &tree, &err) ||
			hw_machine_load_node(tree, &a, &again, &err) ||
			strcmp(hw_machine_canonical(m, &a), hw_machine_canonical(again, &a)))
			BUG("resolved, it is another machine: %s", err.msg);
	}
	arena_release(&a);
	return 0;
}
