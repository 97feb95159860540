/*
 * cmd_flows.c - `offsim flows`: the bare bandwidth-sharing engine.
 *
 * Every link is a resource, every flow an operation.
 */
#include <float.h>
#include <getopt.h>
#include <string.h>

#include "base/csv.h"
#include "base/intern.h"
#include "base/number.h"
#include "base/suggest.h"
#include "base/vec.h"
#include "sim/cmd/cmd.h"
#include "sim/core/sim.h"

#define MAX_PATH_LINKS 4096

#define NO_ROW UINT32_MAX

struct flow_row {
	const char *id;
	uint32_t id_len;
	uint32_t next; /* row of the same stream, NO_ROW at its end */
	uint32_t path;
	double bytes;
	sim_time start;
};

/* Many flows take the same way: each way is read once. */
struct path {
	uint32_t first_hop, n_hops;
	sim_time latency;
};

struct flows {
	struct arena arena;
	struct intern links, streams, ways;
	struct sim sim;
	struct {
		VEC(double);
	} capacity, latency_s;
	struct {
		VEC(struct flow_row);
	} rows;
	struct {
		VEC(struct path); /* by way */
	} paths;
	struct {
		VEC(uint32_t); /* by stream: its first and last row */
	} first, last;
	struct {
		VEC(struct maxmin_hop);
	} hops;
	uint32_t max_hops;
	sim_time *finish;
	sim_time last_finish;
};

static int number(const struct csv *csv, const struct csv_field *f, const char *what, double min, double *out,
	struct err *err)
{
	if (!number_parse(f->text, f->len, out))
		return csv_error(csv, f, err, "%s '%.*s' is not a number", what, (int)f->len, f->text);
	if (!(*out >= min))
		return csv_error(csv, f, err, "%s must not be %s, but is '%.*s'", what,
			min > 0 ? "zero or negative" : "negative", (int)f->len, f->text);
	return 0;
}

static int read_links(struct flows *f, const char *path, struct err *err)
{
	static const char *const header[] = {"name", "bytes_per_s", "latency_s"};
	struct csv csv;
	struct csv_field field[3];
	int more;

	if (csv_open(&csv, path, header, ARRAY_LEN(header), &f->arena, err))
		return -1;
	while ((more = csv_next(&csv, field, err)) > 0) {
		double rate, latency;
		uint32_t before = f->links.n;

		if (field[0].len == 0 || memchr(field[0].text, ';', field[0].len))
			return csv_error(&csv, &field[0], err, "a link's name must not be empty or contain ';'");
		if (intern_add(&f->links, field[0].text, field[0].len) < before)
			return csv_error(&csv, &field[0], err, "link '%.*s' is there already", (int)field[0].len,
				field[0].text);
		if (number(&csv, &field[1], "bytes_per_s", DBL_MIN, &rate, err) ||
			number(&csv, &field[2], "latency_s", 0, &latency, err))
			return -1;
		VEC_PUSH(&f->capacity, &f->arena, rate);
		VEC_PUSH(&f->latency_s, &f->arena, latency);
	}
	return more;
}

static int read_path(struct flows *f, const struct csv *csv, const struct csv_field *field, struct err *err)
{
	const char *p = field->text, *end = p + field->len;
	double latency_s = 0;
	struct path path = {.first_hop = (uint32_t)f->hops.n};

	do {
		const char *stop = memchr(p, ';', (size_t)(end - p));
		size_t len = (size_t)((stop ? stop : end) - p);
		uint32_t link = intern_find(&f->links, p, len);

		if (link == INTERN_NONE) {
			struct suggest s;
			char near[128], name[64];
			snprintf(name, sizeof(name), "%.*s", (int)len, p);
			suggest_init(&s, name);
			for (uint32_t i = 0; i < f->links.n; i++)
				suggest_offer(&s, f->links.name[i]);
			return csv_error(csv, field, err, "unknown link '%s'%s", name,
				suggest_text(&s, near, sizeof(near)));
		}
		/* A link crossed twice carries every byte twice. */
		size_t h = path.first_hop;
		while (h < f->hops.n && f->hops.at[h].resource != (int)link)
			h++;
		if (h < f->hops.n) {
			f->hops.at[h].weight += 1;
		} else {
			struct maxmin_hop hop = {(int)link, 1};
			VEC_PUSH(&f->hops, &f->arena, hop);
		}
		latency_s += f->latency_s.at[link];
		if (f->hops.n - path.first_hop > MAX_PATH_LINKS)
			return csv_error(csv, field, err, "a path has more than %d links", MAX_PATH_LINKS);
		p = stop ? stop + 1 : end;
	} while (p < end);
	path.n_hops = (uint32_t)f->hops.n - path.first_hop;
	path.latency = sim_from_seconds(latency_s);
	if (path.n_hops > f->max_hops)
		f->max_hops = path.n_hops;
	VEC_PUSH(&f->paths, &f->arena, path);
	return 0;
}

static int read_flows(struct flows *f, const char *path, struct err *err)
{
	static const char *const header[] = {"id", "stream", "start_s", "bytes", "path"};
	struct csv csv;
	struct csv_field field[5];
	int more;

	if (csv_open(&csv, path, header, ARRAY_LEN(header), &f->arena, err))
		return -1;
	while ((more = csv_next(&csv, field, err)) > 0) {
		struct flow_row row = {.id = field[0].text, .id_len = (uint32_t)field[0].len};
		double start;

		if (number(&csv, &field[2], "start_s", 0, &start, err) ||
			number(&csv, &field[3], "bytes", 0, &row.bytes, err))
			return -1;
		row.path = intern_add(&f->ways, field[4].text, field[4].len);
		if (row.path == f->paths.n && read_path(f, &csv, &field[4], err))
			return -1;
		row.start = sim_from_seconds(start);
		row.next = NO_ROW;

		uint32_t i = (uint32_t)f->rows.n, n_streams = f->streams.n;
		uint32_t stream = intern_add(&f->streams, field[1].text, field[1].len);
		if (f->streams.n > n_streams) {
			VEC_PUSH(&f->first, &f->arena, i);
			VEC_PUSH(&f->last, &f->arena, i);
		} else {
			f->rows.at[f->last.at[stream]].next = i;
			f->last.at[stream] = i;
		}
		VEC_PUSH(&f->rows, &f->arena, row);
	}
	return more;
}

static void add(struct flows *f, uint32_t i)
{
	const struct flow_row *row = &f->rows.at[i];
	const struct path *path = &f->paths.at[row->path];
	struct sim_op spec = {
		.unit = SIM_NONE,
		.stream = SIM_NONE,
		.latency = path->latency,
		.not_before = row->start,
		.amount = row->bytes,
		.cap_resource = SIM_NONE,
		.hop = f->hops.at + path->first_hop,
		.n_hops = (int)path->n_hops,
		.tag = i,
		.notify = true,
	};

	sim_commit(&f->sim, sim_add(&f->sim, &spec));
}

/* A flow ended: the next of its stream may begin. So only one of each stream is ever in the simulator. */
static void on_done(void *ctx, const struct op *op, sim_time now)
{
	struct flows *f = ctx;
	uint32_t next = f->rows.at[op->tag].next;

	f->last_finish = now;
	if (f->finish)
		f->finish[op->tag] = now;
	if (next != NO_ROW)
		add(f, next);
}

static int simulate(struct flows *f, struct err *err)
{
	struct sim_config config = {
		.n_resources = (int)f->links.n,
		.resource_name = f->links.name,
		.capacity = f->capacity.at,
		.max_hops = (int)f->max_hops,
		.done = on_done,
		.done_ctx = f,
		.interrupted = &cmd_interrupted,
	};

	sim_init(&f->sim, &config, &f->arena);
	for (size_t i = 0; i < f->first.n; i++)
		add(f, f->first.at[i]);
	return sim_run(&f->sim, err);
}

static void usage(void)
{
	puts("usage: offsim flows [--quiet] LINKS.csv FLOWS.csv\n"
	     "\n"
	     "Shares the bandwidth of links among flows, max-min fairly, and prints when each flow ends.\n"
	     "\n"
	     "  LINKS.csv   name,bytes_per_s,latency_s\n"
	     "  FLOWS.csv   id,stream,start_s,bytes,path      path: link names joined by ';'\n"
	     "              flows of one stream run one after another, each no sooner than its start; a flow\n"
	     "              first waits the sum of its links' latencies, then shares\n"
	     "\n"
	     "  -q, --quiet  print the last finish only, in seconds\n"
	     "  -h, --help   this text\n"
	     "\n"
	     "example: printf 'name,bytes_per_s,latency_s\\npcie,24e9,2.7e-6\\n' >links.csv\n"
	     "         printf 'id,stream,start_s,bytes,path\\nw0,a,0,1e9,pcie\\nw1,b,0,1e9,pcie\\n' >flows.csv\n"
	     "         offsim flows links.csv flows.csv");
}

int cmd_flows(int argc, char **argv)
{
	static const struct option options[] = {
		{"quiet", no_argument, NULL, 'q'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	bool quiet = false;
	int c;

	while ((c = getopt_long(argc, argv, ":qh", options, NULL)) != -1) {
		switch (c) {
		case 'q':
			quiet = true;
			break;
		case 'h':
			usage();
			return cmd_finish_stdout(EXIT_DONE);
		default:
			return cmd_bad_option(argv, options);
		}
	}
	if (argc - optind != 2)
		return cmd_usage_error("flows", "expected two files, LINKS.csv and FLOWS.csv, not %d", argc - optind);

	struct flows f = {0};
	struct err err = {0};
	cmd_arena_init(&f.arena);
	intern_init(&f.links, &f.arena);
	intern_init(&f.streams, &f.arena);
	intern_init(&f.ways, &f.arena);
	int status = EXIT_DONE;
	if (read_links(&f, argv[optind], &err) || read_flows(&f, argv[optind + 1], &err)) {
		status = cmd_fail(&err);
	} else {
		cmd_catch_interrupts();
		if (!quiet)
			f.finish = arena_array(&f.arena, sim_time, f.rows.n);
		if (simulate(&f, &err)) {
			status = cmd_fail(&err);
		} else if (quiet) {
			printf("%.12g\n", sim_seconds(f.last_finish));
		} else {
			puts("id,finish_s");
			for (size_t i = 0; i < f.rows.n; i++) {
				csv_print_field(f.rows.at[i].id, f.rows.at[i].id_len, stdout);
				printf(",%.12g\n", sim_seconds(f.finish[i]));
			}
		}
	}
	arena_release(&f.arena);
	return cmd_finish_stdout(status);
}
