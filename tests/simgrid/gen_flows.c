/*
 * gen_flows: random links.csv and flows.csv for comparing `offsim flows` with SimGrid and with
 * exact_flows.
 *
 *	gen_flows [-w] [-s SPREAD] SEED N_LINKS N_STREAMS N_FLOWS MAX_HOPS OUTDIR
 *
 * Bandwidths are log-uniform in 1e9..1e11 B/s (-w, wide: 1e6..1e11), latencies 0..20 us, sizes
 * log-uniform in 1e3..1e9 bytes, a path is 1..MAX_HOPS different links. All values have many digits, so
 * that a wrong term cannot hide behind a round number; times are whole picoseconds and sizes whole bytes,
 * so that every program reads the same number. One value in four is a copy of an earlier one: equal
 * starts, bandwidths, sizes and whole flows make events that fall together, which is where such programs
 * go wrong.
 *
 * Starts are spread over SPREAD times (0.5) what the streams need side by side without contention. With
 * 0.5 they are always busy; with 8 most streams idle now and then. The difference matters in long cases:
 * busy streams are a chaotic system, in which a rounding grows from 1e-16 to 1e-9 within 500 flows a
 * stream, and after some thousands any two programs differ by percents, SimGrid with itself too
 * (optim:Full and Lazy). An idle stream forgets: it begins again at a start that the file gives. So
 * compare finishes of short cases, or of long ones with gaps.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>

#define COPY_PROBABILITY 0.25

struct link {
	double bytes_per_s;
	double latency_s;
};

struct flow {
	unsigned long stream;
	double start_s;
	double bytes;
	unsigned long hops;
	unsigned long *path; /* indices of links */
};

static void die(const char *what, const char *name)
{
	fprintf(stderr, "gen_flows: %s '%s'\n", what, name);
	exit(2);
}

static unsigned long parse_count(const char *text, unsigned long low)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end != '\0' || n < low)
		die("bad count", text);
	return n;
}

static double parse_positive(const char *text)
{
	char *end;
	double x = strtod(text, &end);

	if (end == text || *end != '\0' || !isfinite(x) || x <= 0)
		die("bad number", text);
	return x;
}

static int usage(void)
{
	fputs("usage: gen_flows [-w] [-s SPREAD] SEED N_LINKS N_STREAMS N_FLOWS MAX_HOPS OUTDIR\n", stderr);
	return 2;
}

static void *allocate(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		die("out of memory", "calloc");
	return p;
}

static FILE *create(const char *dir, const char *name)
{
	char path[4096];
	FILE *f;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		die("name too long", dir);
	f = fopen(path, "w");
	if (!f)
		die("cannot write", path);
	return f;
}

static void finish(FILE *f, const char *name)
{
	int failed = ferror(f);

	if (fclose(f) != 0 || failed)
		die("cannot write", name);
}

static double log_uniform(gsl_rng *rng, double low, double high)
{
	return exp(gsl_ran_flat(rng, log(low), log(high)));
}

static int copies(gsl_rng *rng, unsigned long earlier)
{
	return earlier > 0 && gsl_rng_uniform(rng) < COPY_PROBABILITY;
}

static int by_start(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int main(int argc, char **argv)
{
	double low_bytes_per_s = 1e9, spread = 0.5, work_s = 0.0;
	unsigned long seed, n_links, n_streams, n_flows, max_hops, *order;
	struct link *links;
	struct flow *flows;
	double *starts;
	gsl_rng *rng;
	FILE *out;
	int option;

	while ((option = getopt(argc, argv, "ws:")) != -1) {
		if (option == 'w')
			low_bytes_per_s = 1e6;
		else if (option == 's')
			spread = parse_positive(optarg);
		else
			return usage();
	}
	if (argc - optind != 6)
		return usage();
	argv += optind;
	seed = parse_count(argv[0], 0);
	n_links = parse_count(argv[1], 1);
	n_streams = parse_count(argv[2], 1);
	n_flows = parse_count(argv[3], 1);
	max_hops = parse_count(argv[4], 1);
	if (max_hops > n_links)
		max_hops = n_links;

	rng = gsl_rng_alloc(gsl_rng_mt19937);
	if (!rng)
		die("out of memory", "gsl_rng_alloc");
	gsl_rng_set(rng, seed);

	links = allocate(n_links, sizeof(*links));
	for (unsigned long i = 0; i < n_links; i++) {
		links[i].bytes_per_s = copies(rng, i) ? links[gsl_rng_uniform_int(rng, i)].bytes_per_s
						      : log_uniform(rng, low_bytes_per_s, 1e11);
		links[i].latency_s = copies(rng, i) ? 0.0 : floor(gsl_ran_flat(rng, 0.0, 20e6)) * 1e-12;
	}

	/* The flows without their starts; work_s is how long they would take one after another. */
	flows = allocate(n_flows, sizeof(*flows));
	order = allocate(n_links, sizeof(*order));
	for (unsigned long i = 0; i < n_links; i++)
		order[i] = i;
	for (unsigned long i = 0; i < n_flows; i++) {
		struct flow *f = &flows[i];
		const struct flow *twin = copies(rng, i) ? &flows[gsl_rng_uniform_int(rng, i)] : NULL;
		double slowest = INFINITY;

		f->stream = gsl_rng_uniform_int(rng, n_streams);
		f->bytes = twin ? twin->bytes : floor(log_uniform(rng, 1e3, 1e9));
		f->hops = 1 + gsl_rng_uniform_int(rng, max_hops);
		gsl_ran_shuffle(rng, order, n_links, sizeof(*order));
		if (twin && gsl_rng_uniform(rng) < 0.5)
			f->hops = twin->hops;
		else
			twin = NULL;
		f->path = allocate(f->hops, sizeof(*f->path));
		memcpy(f->path, twin ? twin->path : order, f->hops * sizeof(*f->path));
		for (unsigned long h = 0; h < f->hops; h++)
			slowest = fmin(slowest, links[f->path[h]].bytes_per_s);
		work_s += f->bytes / slowest;
	}

	/* Starts are in order, as in a log, but for one flow in twenty, which may start at once. */
	starts = allocate(n_flows, sizeof(*starts));
	for (unsigned long i = 0; i < n_flows; i++) {
		starts[i] = floor(gsl_ran_flat(rng, 0.0, spread * work_s / n_streams) * 1e12) * 1e-12;
		if (copies(rng, i))
			starts[i] = starts[gsl_rng_uniform_int(rng, i)];
	}
	qsort(starts, n_flows, sizeof(*starts), by_start);
	for (unsigned long i = 0; i < n_flows; i++)
		flows[i].start_s = gsl_rng_uniform(rng) < 0.05 ? 0.0 : starts[i];

	out = create(argv[5], "links.csv");
	fputs("name,bytes_per_s,latency_s\n", out);
	for (unsigned long i = 0; i < n_links; i++)
		fprintf(out, "l%lu,%.17g,%.12f\n", i, links[i].bytes_per_s, links[i].latency_s);
	finish(out, "links.csv");

	out = create(argv[5], "flows.csv");
	fputs("id,stream,start_s,bytes,path\n", out);
	for (unsigned long i = 0; i < n_flows; i++) {
		const struct flow *f = &flows[i];

		fprintf(out, "f%lu,s%lu,%.12f,%.0f,", i, f->stream, f->start_s, f->bytes);
		for (unsigned long h = 0; h < f->hops; h++)
			fprintf(out, "%sl%lu", h ? ";" : "", f->path[h]);
		fputc('\n', out);
	}
	finish(out, "flows.csv");

	for (unsigned long i = 0; i < n_flows; i++)
		free(flows[i].path);
	free(flows);
	free(links);
	free(order);
	free(starts);
	gsl_rng_free(rng);
	return 0;
}
