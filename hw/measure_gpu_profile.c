/*
 * What offsim-cuda measured as a machine profile.
 *
 *	gpu0:
 *	  memory: …
 *	  bandwidth: {measured: …, spread: …, source: "…"}
 *	  link: {part: pcie, gen: 5, width: 16, h2d: {…, points: […]}, …}
 *	kernels:
 *	  llama.cpp: {gpu.kernel: {value: …}}
 */
#include <string.h>

#include "hw/measure_gpu.h"
#include "hw/measure_rounds.h"

struct writer {
	const struct gpu_fit *f;
	struct arena *a;
	FILE *to;
};

static void put(const struct writer *w, const char *indent, const char *key, const char *value, const struct gpu_constant *c)
{
	char text[64];

	fprintf(w->to, "%s%s: {%s: %s, spread: %.3g%%, source: %s", indent, key, value,
		units_format(text, sizeof(text), c->value, c->dim), 100 * c->spread,
		measure_quoted(w->a, arena_printf(w->a, "offsim-cuda calibrate, %s, %s, %zu repetitions: %s", w->f->date, w->f->host, c->n, c->what)));
	for (size_t i = 0; i < c->n_points; i++)
		fprintf(w->to, "%s[%.0fB, %.5gGB/s]", i ? ", " : ", points: [", c->size_bytes[i], c->rate_bytes_s[i] * 1e-9);
	fputs(c->n_points ? "]}\n" : "}\n", w->to);
}

static void put_one(const struct writer *w, int device, const char *key)
{
	const struct gpu_constant *c = gpu_fit_find(w->f, arena_printf(w->a, "gpu%d.%s", device, key));

	if (c)
		put(w, "  ", key, "measured", c);
}

/* Those of a device below a key. */
static bool put_below(const struct writer *w, int device, const char *key)
{
	const char *prefix = arena_printf(w->a, "%s.", key);
	bool any = false;

	for (size_t i = 0; i < w->f->constants.n; i++) {
		const struct gpu_constant *c = &w->f->constants.at[i];
		if (c->device != device || strncmp(c->key, prefix, strlen(prefix)) != 0)
			continue;
		if (!any)
			fprintf(w->to, "  %s:\n", key);
		any = true;
		put(w, "    ", c->key + strlen(prefix), "measured", c);
	}
	return any;
}

static void put_device(const struct writer *w, int i, const char *base)
{
	const struct gpu_device *d = &w->f->devices.at[i];

	fprintf(w->to, "gpu%d: # %s\n", i, d->name);
	if (d->integrated) {
		fputs("  unified: yes\n", w->to);
	} else {
		fprintf(w->to, "  memory: %lluKiB\n  reserved: %lluKiB # with the context that measured\n",
			(unsigned long long)(d->memory_bytes >> 10), (unsigned long long)((d->memory_bytes - d->free_bytes) >> 10));
		put_one(w, i, "bandwidth");
	}
	/* One each way between host and GPU; more serve copies between GPUs. */
	if (d->copy_engines)
		fprintf(w->to, "  copy_engines: %d\n", d->copy_engines > 1 ? 2 : 1);
	put_below(w, i, "flops");
	put_one(w, i, "launch");
	if (!put_below(w, i, "link"))
		return;
	if (d->pcie_gen)
		fprintf(w->to, "    part: pcie\n    gen: %llu\n    width: %llu\n", (unsigned long long)d->pcie_gen, (unsigned long long)d->pcie_width);
	else if (!base)
		fputs("    part: nvlink-c2c\n", w->to);
}

static void put_kernels(const struct writer *w)
{
	static const char *const engines[] = {"llama.cpp", "accelerate"};
	bool any = false;

	for (size_t e = 0; e < ARRAY_LEN(engines); e++) {
		const char *prefix = arena_printf(w->a, "kernels.%s.", engines[e]);
		bool head = false;
		for (size_t i = 0; i < w->f->constants.n; i++) {
			const struct gpu_constant *c = &w->f->constants.at[i];
			if (strncmp(c->name, prefix, strlen(prefix)) != 0)
				continue;
			if (!any)
				fputs("kernels:\n", w->to);
			if (!head)
				fprintf(w->to, "  %s:\n", engines[e]);
			any = head = true;
			put(w, "    ", c->key, "value", c);
		}
	}
}

int gpu_fit_write(const struct gpu_fit *f, const char *base, FILE *to, struct arena *a, struct err *err)
{
	struct writer w = {f, a, to};
	const struct gpu_constant *ram = gpu_fit_find(f, "ram.bandwidth");

	if (!base && (!ram || !f->ram_bytes))
		return err_set(err, ERR_INPUT, "%s: nothing was measured of host memory (part 'loaded'): name a machine for the rest with --machine", f->file);
	fprintf(to, "# Written by offsim calibrate cuda from samples of %s. Spreads are those of repetitions in one run.\n", f->date);
	if (*f->driver)
		fprintf(to, "# Driver: %s\n", measure_quoted(a, f->driver));
	for (size_t i = 0; i < f->notes.n; i++)
		fprintf(to, "# %s\n", measure_quoted(a, f->notes.at[i]));
	fprintf(to, "description: %s\n", measure_quoted(a, arena_printf(a, "%zu x %s of %s, measured on %s", f->devices.n, f->devices.at[0].name,
		*f->host ? f->host : "a machine without a name", f->date)));
	if (base)
		fprintf(to, "from: %s\n", measure_quoted(a, base));
	for (int i = 0; i < (int)f->devices.n; i++)
		put_device(&w, i, base);
	if (!base) {
		fprintf(to, "ram:\n  capacity: %lluKiB\n", (unsigned long long)(f->ram_bytes >> 10));
		put(&w, "  ", "bandwidth", "measured", ram);
	}
	put_kernels(&w);
	return 0;
}
