/*
 * cmd_trace_gen.c - `offsim trace gen`: traces that nobody recorded.
 */
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/param.h"
#include "base/rng.h"
#include "sim/cmd/cmd.h"
#include "sim/run/trace_out.h"
#include "sim/trace/popularity.h"
#include "sim/trace/requests.h"

struct gen {
	/* steps */
	const char *model, *quant, *popularity;
	uint64_t layers, experts, used;
	double expert_bytes, correlation, zipf, locality;
	struct trace_workload workload;
	bool experts_only;
	/* requests */
	const char *lengths;
	uint64_t requests;
	double rate_s, cv;
	int arrivals;
	struct requests_length input, output;
	/* both */
	uint64_t seed;
	const char *out;
	bool json;
};

/* Arrivals are counted in 64 bits of nanoseconds, and bursts may be far apart. */
#define ARRIVALS_MAX_S 1e9

enum { ARRIVALS_POISSON, ARRIVALS_GAMMA };
static const char *const arrivals_names[] = {"poisson", "gamma", NULL};

/* Options with a value. */
static const struct param step_options[] = {
	PARAM_TEXT(struct gen, model, "model", NULL, "steps of this model (offsim model list, or a path), or"),
	PARAM_TEXT(struct gen, quant, "quant", NULL, "  its element type, where the checkpoint's is not meant"),
	PARAM_COUNT(struct gen, layers, "layers", NULL, 1, 32767, "of this many layers of nothing but experts,"),
	PARAM_COUNT(struct gen, experts, "experts", NULL, 1, 65536, "  so many in each,"),
	PARAM_COUNT(struct gen, used, "used", NULL, 1, 65536, "  so many used by a token,"),
	PARAM_REAL(struct gen, expert_bytes, "expert-bytes", UNIT_BYTES, NULL, 1, 1e15, "  of this size"),
	PARAM_COUNT(struct gen, workload.batch, "batch", "1", 1, 1e6, "sequences that run together"),
	PARAM_COUNT(struct gen, workload.prompt, "prompt", "512", 0, 1e8, "tokens of each prompt; 0: generation alone"),
	PARAM_COUNT(struct gen, workload.generate, "generate", "128", 0, 1e7, "tokens generated for each"),
	PARAM_REAL(struct gen, correlation, "correlation", UNIT_FRACTION, NULL, 0, ROUTING_CORRELATION_MAX,
		"share of a router's scores that tokens have in common; without it, what is typical of so many experts"),
	PARAM_REAL(struct gen, zipf, "zipf", UNIT_PLAIN, NULL, 0, 20,
		"instead, weight r^-zipf of a layer's r-th most popular expert; 0: all alike"),
	PARAM_TEXT(struct gen, popularity, "popularity", NULL,
		"instead, how often each was used: Fiddler's JSON (expert_popularity), or an .otr"),
	PARAM_REAL(struct gen, locality, "locality", UNIT_FRACTION, NULL, 0, EXPERTS_LOCALITY_MAX,
		"share of a token's experts that the token before it hit at this layer"),
};
static const struct param request_options[] = {
	PARAM_COUNT(struct gen, requests, "requests", NULL, 1, 1e9, "so many requests instead of steps"),
	PARAM_REAL(struct gen, rate_s, "rate", UNIT_REQUEST_RATE, "1/s", 1e-3, 1e6, "arrivals on average"),
	PARAM_CHOICE(struct gen, arrivals, "arrivals", "poisson", arrivals_names, "poisson, or gamma: gaps of any --cv"),
	PARAM_REAL(struct gen, cv, "cv", UNIT_PLAIN, "1", 0.01, 100,
		"coefficient of variation of gamma gaps: above 1 they come in bursts"),
	PARAM_REAL(struct gen, input.mean, "input-mean", UNIT_PLAIN, "512", 1, 1e8, "tokens of a prompt, log-normal,"),
	PARAM_REAL(struct gen, input.cv, "input-cv", UNIT_PLAIN, "1", 0, 100, "  and their coefficient of variation"),
	PARAM_REAL(struct gen, output.mean, "output-mean", UNIT_PLAIN, "128", 1, 1e8, "tokens generated, log-normal,"),
	PARAM_REAL(struct gen, output.cv, "output-cv", UNIT_PLAIN, "1", 0, 100, "  and their coefficient of variation"),
	PARAM_TEXT(struct gen, lengths, "lengths", NULL, "both lengths drawn from the requests of this .otr instead"),
};
static const struct param common_options[] = {
	PARAM_COUNT(struct gen, seed, "seed", "1", 0, 9007199254740992.0, "of all random numbers"),
};

enum { STEPS, REQUESTS, COMMON, N_TABLES };
static const struct {
	const struct param *row;
	size_t n;
} tables[N_TABLES] = {
	[STEPS] = {step_options, ARRAY_LEN(step_options)},
	[REQUESTS] = {request_options, ARRAY_LEN(request_options)},
	[COMMON] = {common_options, ARRAY_LEN(common_options)},
};
#define N_OPTIONS (ARRAY_LEN(step_options) + ARRAY_LEN(request_options) + ARRAY_LEN(common_options))

/* ---- the command line ---- */

static void print_options(int table)
{
	for (size_t i = 0; i < tables[table].n; i++) {
		const struct param *row = &tables[table].row[i];
		printf("      --%-13s %s", row->key, row->help);
		printf(row->def ? " (%s)\n" : "\n", row->def);
	}
}

static void usage(void)
{
	puts("usage: offsim trace gen --model NAME [OPTION]... -o OUT.otr\n"
	     "       offsim trace gen --layers L --experts E --used K --expert-bytes SIZE [OPTION]... -o OUT.otr\n"
	     "       offsim trace gen --requests N [OPTION]... -o OUT.otr\n"
	     "\n"
	     "Makes up a trace: the steps of a model whose experts are drawn, or requests. The same seed gives the same file.\n"
	     "\n"
	     "steps:");
	print_options(STEPS);
	puts("      --experts-only  leave out all accesses but those of experts\n"
	     "\n"
	     "requests:");
	print_options(REQUESTS);
	putchar('\n');
	print_options(COMMON);
	puts("  -o, --output FILE   the trace to write\n"
	     "      --json          what was written as one JSON document\n"
	     "  -h, --help          this text\n"
	     "\n"
	     "example: offsim trace gen --model qwen3-30b-a3b --zipf 0.8 --locality 30% -o made.otr\n"
	     "         offsim trace gen --requests 1000 --rate 2/s --arrivals gamma --cv 2.5 -o bursts.otr");
}

static const struct param *find_row(const char *key, int *table)
{
	const struct param *row = NULL;

	for (*table = 0; *table < N_TABLES && !row; ++*table)
		row = param_find(tables[*table].row, tables[*table].n, key);
	--*table;
	return row;
}

enum { OPT_VALUE = 256, OPT_EXPERTS_ONLY, OPT_JSON };

static void make_options(struct option *o)
{
	for (int t = 0; t < N_TABLES; t++)
		for (size_t i = 0; i < tables[t].n; i++)
			*o++ = (struct option){tables[t].row[i].key, required_argument, NULL, OPT_VALUE};
	*o++ = (struct option){"experts-only", no_argument, NULL, OPT_EXPERTS_ONLY};
	*o++ = (struct option){"output", required_argument, NULL, 'o'};
	*o++ = (struct option){"json", no_argument, NULL, OPT_JSON};
	*o++ = (struct option){"help", no_argument, NULL, 'h'};
	*o = (struct option){0};
}

/* What options came, and whether they go together; -1, or an exit status. given: the first option of each table. */
static int check(const char *name, const struct gen *g, const char *const *given, const bool *shape)
{
	int n_shape = shape[0] + shape[1] + shape[2] + shape[3];

	if (!g->out)
		return cmd_usage_error(name, "where to? -o OUT.otr is missing");
	if (!g->requests && given[REQUESTS])
		return cmd_usage_error(name, "--%s goes with --requests", given[REQUESTS]);
	if (g->requests && (given[STEPS] || g->experts_only))
		return cmd_usage_error(name, "--%s goes with steps, not with --requests", given[STEPS] ? given[STEPS] : "experts-only");
	if (g->requests && (double)g->requests / g->rate_s > ARRIVALS_MAX_S)
		return cmd_usage_error(name, "at that rate the last of %" PRIu64 " requests comes after more than 30 years", g->requests);
	if (g->requests)
		return -1;
	if (!g->model && n_shape == 0)
		return cmd_usage_error(name, "of what? --model, --layers or --requests is missing");
	if (g->model && n_shape)
		return cmd_usage_error(name, "--layers, --experts, --used and --expert-bytes do not go with --model");
	if (!g->model && n_shape < 4)
		return cmd_usage_error(name, "--layers, --experts, --used and --expert-bytes go together");
	if (!g->model && g->quant)
		return cmd_usage_error(name, "--quant goes with --model");
	if (!g->model && (double)g->layers * (double)g->experts * g->expert_bytes >= 0x1p62)
		return cmd_usage_error(name, "%" PRIu64 " layers of %" PRIu64 " such experts are more than 4096 PiB", g->layers,
			g->experts);
	if (!g->model && g->used > g->experts)
		return cmd_usage_error(name, "--used %" PRIu64 " of --experts %" PRIu64, g->used, g->experts);
	if ((g->popularity != NULL) + !isnan(g->zipf) + !isnan(g->correlation) > 1)
		return cmd_usage_error(name, "experts are drawn by --%s or by --%s, not by both",
			isnan(g->correlation) ? "zipf" : "correlation", g->popularity ? "popularity" : "zipf");
	if (g->workload.prompt + g->workload.generate == 0)
		return cmd_usage_error(name, "neither --prompt nor --generate leaves any step");
	return -1;
}

static int parse(int argc, char **argv, struct gen *g, struct arena *a)
{
	static const char *const shape_keys[] = {"layers", "experts", "used", "expert-bytes"};
	struct option options[N_OPTIONS + 5];
	const char *given[N_TABLES] = {NULL};
	bool shape[ARRAY_LEN(shape_keys)] = {false};
	int c, index;

	make_options(options);
	for (int t = 0; t < N_TABLES; t++)
		param_defaults(tables[t].row, tables[t].n, g, a);
	while ((c = getopt_long(argc, argv, ":o:h", options, &index)) != -1) {
		int table;
		struct err err = {0};
		const struct param *row = c == OPT_VALUE ? find_row(options[index].name, &table) : NULL;
		switch (c) {
		case OPT_VALUE:
			if (param_set(row, g, optarg, NULL, a, &err))
				return cmd_usage_error(argv[0], "%s", err.msg);
			if (!given[table])
				given[table] = row->key;
			for (size_t i = 0; i < ARRAY_LEN(shape_keys); i++)
				shape[i] |= strcmp(shape_keys[i], row->key) == 0;
			break;
		case OPT_EXPERTS_ONLY:
			g->experts_only = true;
			break;
		case OPT_JSON:
			g->json = true;
			break;
		case 'o':
			g->out = optarg;
			break;
		case 'h':
			usage();
			return cmd_finish_stdout(EXIT_DONE);
		default:
			return cmd_bad_option(argv, options);
		}
	}
	if (argc > optind)
		return cmd_usage_error(argv[0], "unexpected '%s'", argv[optind]);
	return check(argv[0], g, given, shape);
}

/* ---- making ---- */

/* The command, as a trace's source; without the file's name, on which nothing in it depends. */
static const char *command_of(int argc, char **argv, struct arena *a)
{
	const char *text = "offsim";

	for (int i = 0; i < argc; i++) {
		if (strcmp(argv[i], "-o") == 0 || strcmp(argv[i], "--output") == 0)
			i++;
		else if (strncmp(argv[i], "-o", 2) != 0 && strncmp(argv[i], "--output=", 9) != 0)
			text = arena_printf(a, "%s %s", text, argv[i]);
	}
	return arena_printf(a, "%s (version " OFFSIM_VERSION ")", text);
}

/* Layers of nothing but experts. */
static struct model *made_up(const struct gen *g, struct arena *a)
{
	struct model *m = arena_new(a, struct model);

	m->name = "the made-up model";
	m->n_layer = (uint32_t)g->layers;
	m->layers = arena_array(a, struct model_layer, g->layers);
	for (uint64_t i = 0; i < g->layers; i++) {
		m->layers[i].n_expert = (uint32_t)g->experts;
		m->layers[i].n_expert_used = (uint32_t)g->used;
		m->layers[i].group[MODEL_EXPERTS].bytes = (uint64_t)(g->experts * g->expert_bytes);
	}
	return m;
}

static int make_experts(const struct gen *g, const struct model *m, struct arena *a, const struct experts **out, struct err *err)
{
	bool zipf = !isnan(g->zipf), correlation = !isnan(g->correlation);
	struct experts_law law = {.zipf = zipf ? g->zipf : 0, .correlation = correlation ? g->correlation : 0, .locality = g->locality};
	struct experts_popularity popularity;
	struct routing typical;
	uint64_t hash;

	if (g->popularity) {
		if (popularity_read(g->popularity, m, a, &popularity, &hash, err))
			return -1;
		law.popularity = &popularity;
	} else if (!zipf && !correlation) {
		if (routing_read(a, &typical, err))
			return -1;
		law.typical = &typical;
	}
	return experts_new(&law, m, g->seed, a, out, err);
}

static int put_steps(const struct gen *g, const struct model *m, struct otr_writer *w, struct arena *a, struct err *err)
{
	const struct experts *experts;
	struct trace t;

	if (make_experts(g, m, a, &experts, err))
		return -1;
	trace_synth_init(&t, m, &g->workload, 0, experts, g->seed, a);
	return trace_out_steps(&t, g->experts_only || !g->model, w, &cmd_interrupted, a, err);
}

static int put_requests(const struct gen *g, struct otr_writer *w, struct arena *a, struct err *err)
{
	struct requests_law law = {
		.rate_s = g->rate_s,
		.gap_cv = g->arrivals == ARRIVALS_GAMMA ? g->cv : 1,
		.input = g->input,
		.output = g->output,
	};
	struct otr_request r = {0};

	if (g->lengths && requests_read_lengths(g->lengths, a, &law, err))
		return -1;
	gsl_rng *rng = rng_new(g->seed, 0, RNG_REQUESTS);
	if (!rng)
		return err_set(err, ERR_NOMEM, "out of memory");
	int rc = 0;
	for (uint64_t i = 0; rc == 0 && i < g->requests; i++) {
		requests_next(&law, rng, &r);
		rc = cmd_interrupted ? err_set(err, ERR_INTERRUPTED, "interrupted; nothing was written") :
				       otr_put_request(w, &r, err);
	}
	gsl_rng_free(rng);
	return rc;
}

static int make(const struct gen *g, const char *source, struct arena *a, struct err *err)
{
	struct otr_info info = {.kind = g->requests ? OTR_REQUESTS : OTR_STEPS, .model = "", .source = source, .licence = "", .note = ""};
	struct model *m = NULL;
	struct otr_writer *w = NULL;

	if (!g->requests) {
		if (!g->model)
			m = made_up(g, a);
		else if (model_load(g->model, g->quant, a, &m, err))
			return -1;
		info.model = g->model ? g->model : "";
		info.n_layer = m->n_layer;
		info.layer = trace_out_layers(m, a);
		info.workload = g->workload;
		info.experts_only = g->experts_only || !g->model;
		for (uint32_t i = 0; !g->model && i < m->n_layer; i++)
			info.layer[i].dense_bytes = 0;
	}
	if (otr_create(g->out, &info, a, &w, err))
		return -1;
	if (g->requests ? put_requests(g, w, a, err) : put_steps(g, m, w, a, err)) {
		otr_abort(w);
		return -1;
	}
	return otr_commit(w, err);
}

int cmd_trace_gen(int argc, char **argv)
{
	struct gen g = {0};
	struct arena a;
	struct err err = {0};

	cmd_arena_init(&a);
	const char *source = command_of(argc, argv, &a); /* before getopt moves words */
	int status = parse(argc, argv, &g, &a);
	if (status < 0) {
		cmd_catch_interrupts();
		status = make(&g, source, &a, &err) ? cmd_fail(&err) : cmd_trace_report(g.out, g.json);
	}
	arena_release(&a);
	return cmd_finish_stdout(status);
}
