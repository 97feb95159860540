/*
 * exact_flows: the meaning of `offsim flows`, written as plainly as possible; a third opinion beside
 * SimGrid.
 *
 *	exact_flows LINKS.csv FLOWS.csv
 *
 * Shares nothing with the product: no heap, no incremental sharing, no integer time. At each event all
 * rates are computed anew by progressive filling, every flow advances to the next event, and nothing is
 * rounded but the long doubles themselves. One event costs O(streams x links), so it is for hundreds or
 * thousands of flows.
 *
 * At every event the rates are checked against what defines max-min fairness: no link carries more than
 * it has, and each flow crosses a full link on which no other flow is faster.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_HOPS 64
#define NO_FLOW ((size_t)-1)

struct link {
	char *name;
	long double bytes_per_s;
	long double latency_s;
	long double left_bytes_per_s; /* while filling: what the flows with a rate have not taken */
	size_t unfilled;	      /* while filling: how many flows still have none */
};

struct flow {
	char *id;
	size_t stream;
	long double start_s;
	long double bytes_left;
	size_t hops;
	size_t path[MAX_HOPS]; /* indices of links */
	size_t next;	       /* the next flow of the same stream, or NO_FLOW */
	long double rate;      /* bytes/s, while it shares bandwidth */
	long double finish_s;
};

enum phase {
	WAITING, /* for its start, then for the latency of its path */
	SHARING,
	DONE /* no flow left */
};

struct stream {
	char *name;
	size_t flow; /* the one that waits or shares */
	size_t last; /* while reading: the last one so far */
	enum phase phase;
	long double until_s; /* when WAITING ends */
};

static struct link *links;
static struct flow *flows;
static struct stream *streams;
static size_t n_links, n_flows, n_streams;

static void die(const char *file, size_t line, const char *what)
{
	fprintf(stderr, "exact_flows: %s:%zu: %s\n", file, line, what);
	exit(2);
}

static void *grow(void *p, size_t n, size_t size)
{
	if ((n & (n - 1)) == 0) { /* full at 0, 1, 2, 4, 8 ... elements */
		p = realloc(p, (n ? 2 * n : 1) * size);
		if (!p)
			die("memory", n, "out of memory");
	}
	return p;
}

static long double number(const char *text, const char *file, size_t line)
{
	char *end;
	long double x;

	if (!text || !*text)
		die(file, line, "a number is missing");
	x = strtold(text, &end);
	if (*end != '\0' || !isfinite(x) || x < 0)
		die(file, line, "bad number");
	return x;
}

static char *copy(const char *text, const char *file, size_t line)
{
	char *p = text && *text ? strdup(text) : NULL;

	if (!p)
		die(file, line, "a name is missing");
	return p;
}

static size_t find_link(const char *name, const char *file, size_t line)
{
	for (size_t i = 0; i < n_links; i++)
		if (strcmp(links[i].name, name) == 0)
			return i;
	die(file, line, "no such link");
	return 0;
}

static size_t find_stream(const char *name, const char *file, size_t line)
{
	for (size_t i = 0; i < n_streams; i++)
		if (strcmp(streams[i].name, name) == 0)
			return i;
	streams = grow(streams, n_streams, sizeof(*streams));
	streams[n_streams] = (struct stream){.name = copy(name, file, line), .flow = NO_FLOW};
	return n_streams++;
}

static void read_link(char *text, const char *file, size_t line)
{
	struct link l = {0};

	l.name = copy(strsep(&text, ","), file, line);
	l.bytes_per_s = number(strsep(&text, ","), file, line);
	l.latency_s = number(strsep(&text, ","), file, line);
	if (text || l.bytes_per_s <= 0)
		die(file, line, "not name,bytes_per_s,latency_s");
	links = grow(links, n_links, sizeof(*links));
	links[n_links++] = l;
}

static void read_flow(char *text, const char *file, size_t line)
{
	struct flow f = {.next = NO_FLOW};
	struct stream *s;
	const char *stream, *name;

	f.id = copy(strsep(&text, ","), file, line);
	stream = strsep(&text, ",");
	if (!stream)
		die(file, line, "the stream is missing");
	f.stream = find_stream(stream, file, line);
	f.start_s = number(strsep(&text, ","), file, line);
	f.bytes_left = number(strsep(&text, ","), file, line);
	while ((name = strsep(&text, ";")) != NULL) {
		if (f.hops == MAX_HOPS)
			die(file, line, "too many links in a path");
		f.path[f.hops++] = find_link(name, file, line);
	}
	if (f.hops == 0)
		die(file, line, "the path is missing");
	flows = grow(flows, n_flows, sizeof(*flows));
	flows[n_flows] = f;
	s = &streams[f.stream];
	if (s->flow == NO_FLOW)
		s->flow = n_flows;
	else
		flows[s->last].next = n_flows;
	s->last = n_flows++;
}

static void read_csv(const char *file, const char *header, void (*read_row)(char *, const char *, size_t))
{
	FILE *f = fopen(file, "r");
	char *text = NULL;
	size_t size = 0, line = 0;

	if (!f)
		die(file, 0, strerror(errno));
	while (getline(&text, &size, f) >= 0) {
		line++;
		text[strcspn(text, "\r\n")] = '\0';
		if (*text != '\0' && !(line == 1 && strcmp(text, header) == 0))
			read_row(text, file, line);
	}
	if (ferror(f))
		die(file, line, "cannot read");
	fclose(f);
	free(text);
}

/* A stream turns to its next flow (or to none) at time now_s. */
static void begin(struct stream *s, size_t flow, long double now_s)
{
	const struct flow *f;

	s->flow = flow;
	if (flow == NO_FLOW) {
		s->phase = DONE;
		return;
	}
	f = &flows[flow];
	s->phase = WAITING;
	s->until_s = fmaxl(now_s, f->start_s);
	for (size_t h = 0; h < f->hops; h++)
		s->until_s += links[f->path[h]].latency_s;
}

static struct flow *sharing(const struct stream *s)
{
	return s->phase == SHARING ? &flows[s->flow] : NULL;
}

/* Progressive filling: all rates rise; where a link is full, its flows stop there and the rest go on. */
static void share(void)
{
	for (size_t i = 0; i < n_links; i++) {
		links[i].left_bytes_per_s = links[i].bytes_per_s;
		links[i].unfilled = 0;
	}
	for (size_t s = 0; s < n_streams; s++) {
		struct flow *f = sharing(&streams[s]);

		if (!f)
			continue;
		f->rate = -1;
		for (size_t h = 0; h < f->hops; h++)
			links[f->path[h]].unfilled++;
	}
	for (;;) {
		size_t tight = n_links;
		long double least = INFINITY;

		for (size_t i = 0; i < n_links; i++) {
			long double each =
				links[i].unfilled ? links[i].left_bytes_per_s / links[i].unfilled : INFINITY;

			if (each < least) {
				least = each;
				tight = i;
			}
		}
		if (tight == n_links)
			return;
		for (size_t s = 0; s < n_streams; s++) {
			struct flow *f = sharing(&streams[s]);
			int crosses = 0;

			if (!f || f->rate >= 0)
				continue;
			for (size_t h = 0; h < f->hops; h++)
				crosses |= f->path[h] == tight;
			if (!crosses)
				continue;
			f->rate = least;
			for (size_t h = 0; h < f->hops; h++) {
				links[f->path[h]].left_bytes_per_s -= least;
				links[f->path[h]].unfilled--;
			}
		}
	}
}

/* What defines max-min fairness, checked on the result instead of trusting the way to it. */
static void check_share(void)
{
	const long double slack = 1e-15L;

	for (size_t i = 0; i < n_links; i++)
		if (links[i].left_bytes_per_s < -slack * links[i].bytes_per_s)
			die("share", i, "a link carries more than it has");
	for (size_t s = 0; s < n_streams; s++) {
		const struct flow *f = sharing(&streams[s]);
		int bottleneck = 0;

		for (size_t h = 0; f && h < f->hops; h++) {
			const struct link *l = &links[f->path[h]];
			int fastest = l->left_bytes_per_s <= slack * l->bytes_per_s;

			for (size_t t = 0; t < n_streams && fastest; t++) {
				const struct flow *g = sharing(&streams[t]);

				for (size_t k = 0; g && k < g->hops; k++)
					if (g->path[k] == f->path[h] && g->rate > f->rate * (1 + slack))
						fastest = 0;
			}
			bottleneck |= fastest;
		}
		if (f && !bottleneck)
			die("share", s, "a flow has no bottleneck");
	}
}

static void simulate(void)
{
	long double now_s = 0;

	for (size_t s = 0; s < n_streams; s++)
		begin(&streams[s], streams[s].flow, now_s);
	for (;;) {
		long double step_s = INFINITY;

		share();
		check_share();

		for (size_t s = 0; s < n_streams; s++) {
			const struct flow *f = sharing(&streams[s]);

			if (f)
				step_s = fminl(step_s, f->bytes_left / f->rate);
			else if (streams[s].phase == WAITING)
				step_s = fminl(step_s, streams[s].until_s - now_s);
		}
		if (isinf(step_s))
			return;

		/* The comparisons repeat the expressions above, so that whatever set step_s does end here. */
		for (size_t s = 0; s < n_streams; s++) {
			struct stream *st = &streams[s];
			struct flow *f = sharing(st);

			if (f && f->bytes_left / f->rate <= step_s) {
				f->finish_s = now_s + step_s;
				begin(st, f->next, f->finish_s);
			} else if (f) {
				f->bytes_left -= f->rate * step_s;
			} else if (st->phase == WAITING && st->until_s - now_s <= step_s) {
				st->phase = SHARING;
			}
		}
		now_s += step_s;
	}
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fputs("usage: exact_flows LINKS.csv FLOWS.csv\n", stderr);
		return 2;
	}
	read_csv(argv[1], "name,bytes_per_s,latency_s", read_link);
	read_csv(argv[2], "id,stream,start_s,bytes,path", read_flow);
	simulate();
	puts("id,finish_s");
	for (size_t i = 0; i < n_flows; i++)
		printf("%s,%.12Lg\n", flows[i].id, flows[i].finish_s);

	for (size_t i = 0; i < n_flows; i++)
		free(flows[i].id);
	for (size_t i = 0; i < n_links; i++)
		free(links[i].name);
	for (size_t i = 0; i < n_streams; i++)
		free(streams[i].name);
	free(flows);
	free(links);
	free(streams);
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
