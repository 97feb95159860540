/*
 * calibrate_write.c - the profile that calibrate ends in.
 *
 *	from: BASE
 *	set:
 *	  gpu0.link.h2d: {measured: 56.4GB/s, spread: 3%, source: "…"}
 *	kernels:
 *	  llama.cpp:
 *	    cpu.read: {value: 72%, spread: 4%, source: "…"}
 */
#include <string.h>

#include "base/file.h"
#include "base/utf8.h"
#include "sim/engine/engine_table.h"
#include "sim/run/calibrate.h"
#include "sim/run/calibrate_text.h"
#include "sim/run/llama_case.h"

#define KERNELS "kernels."

const char *calibrate_number_text(struct arena *a, double value, enum unit_dim dim)
{
	static const struct {
		enum unit_dim dim;
		const char *unit;
		double size;
	} units[] = {{UNIT_BYTES_RATE, "GB/s", 1e9}, {UNIT_FLOP_RATE, "GFLOP/s", 1e9}, {UNIT_TIME, "us", 1e-6},
		{UNIT_FRACTION, "%", 0.01}};

	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (units[i].dim == dim)
			return arena_printf(a, "%.6g%s", value / units[i].size, units[i].unit);
	return arena_printf(a, "%.6g%s", value, units_base(dim));
}

const char *calibrate_plain_text(struct arena *a, const char *text)
{
	char *copy = arena_strdup(a, text);
	uint32_t cp;

	for (char *p = copy; *p;) {
		size_t n = utf8_decode(p, strlen(p), &cp);
		if (n == 0 || cp < 0x20 || (cp >= 0x7f && cp < 0xa0)) {
			n = n ? n : 1;
			memset(p, '?', n);
		}
		p += n;
	}
	return copy;
}

static void print_constant(const struct calibrate_constant *c, const char *name, const char *key, const char *date,
	struct arena *a, FILE *to)
{
	bool measured = c->state == CALIBRATE_MEASURED;
	const char *source = arena_printf(a, "%s %s (%zu %s%s), %s", measured ? "measured:" : "fitted to", c->from, c->n_rows,
		measured ? "row" : "test", c->n_rows == 1 ? "" : "s", date);

	fprintf(to, "%s: {%s: %s, spread: %.3g%%, source: %s}\n", name, key, calibrate_number_text(a, c->value, c->dim),
		100 * c->spread, llama_case_quoted(a, source));
}

static bool is_kernel(const struct calibrate_constant *c)
{
	return strncmp(c->name, KERNELS, strlen(KERNELS)) == 0;
}

static void print_profile(const struct calibrate *c, const char *date, struct arena *a, FILE *to)
{
	const char *base = llama_case_quoted(a, calibrate_plain_text(a, llama_case_named(a, c->machine)));
	bool set = false, kernels = false;

	fprintf(to, "# Written by offsim calibrate --from on %s.\ndescription: %s\nfrom: %s\n", date,
		llama_case_quoted(a, arena_printf(a, "%s, as others measured it", calibrate_plain_text(a, c->machine))), base);
	for (size_t i = 0; i < c->n_constants; i++) {
		if (c->constant[i].state == CALIBRATE_HELD || is_kernel(&c->constant[i]))
			continue;
		fputs(set ? "  " : "set:\n  ", to);
		set = true;
		print_constant(&c->constant[i], c->constant[i].name, "measured", date, a, to);
	}
	for (size_t i = 0; i < c->n_constants; i++) {
		if (c->constant[i].state == CALIBRATE_HELD || !is_kernel(&c->constant[i]))
			continue;
		if (!kernels)
			fprintf(to, "kernels:\n  %s:\n", engine_llamacpp.kernels);
		kernels = true;
		fputs("    ", to);
		print_constant(&c->constant[i], c->constant[i].name + strlen(KERNELS), "value", date, a, to);
	}
}

struct profile_text {
	const struct calibrate *c;
	const char *date;
	struct arena *a;
};

static void write_profile(FILE *to, void *ctx)
{
	const struct profile_text *t = ctx;

	print_profile(t->c, t->date, t->a, to);
}

int calibrate_write(const struct calibrate *c, const char *date, const char *path, struct arena *a, struct err *err)
{
	struct profile_text t = {c, date, a};

	return file_replace(path, write_profile, &t, err);
}
