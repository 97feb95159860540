/*
 * cmd_trace_info.c - offsim trace info: what a trace file holds, and how often caches of given sizes would hit.
 */
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "sim/cache/replay.h"
#include "sim/cmd/cmd.h"

static const char name[] = "trace info";

static const char usage_head[] =
	"usage: offsim trace info FILE.otr [--cache SIZE,…] [--policy NAME,…] [--scope global|layer] [--json]\n"
	"\n"
	"What a trace holds, how its accesses come back, and, with --cache, how often caches of these sizes would hit.\n"
	"Sizes are bytes of experts (250MiB) or, for requests, blocks of the KV cache (10000blocks).\n"
	"\n"
	"  -c, --cache SIZE,…       sizes to replay it with\n"
	"  -p, --policy NAME,…      who leaves when a cache is full (lru):\n";
static const char usage_tail[] =
	"                           static knows how popular each will have been; layer and layerlfu are lru and lfu with\n"
	"                           --scope layer, as published curves call them; requests take lru alone\n"
	"  -s, --scope SCOPE,…      global: one cache for all layers; layer: an equal share of the size for each (global)\n"
	"      --expert-bytes SIZE  size of an expert, for traces that do not say it\n"
	"      --memory SIZE        what belady may take to know the future, four bytes a lookup (1GiB)\n"
	"      --json               one JSON document\n"
	"  -h, --help               this text\n"
	"\n"
	"example: offsim trace info made.otr --policy lru,lfu,belady --cache 1GiB,4GiB\n";

static void usage(void)
{
	fputs(usage_head, stdout);
	for (size_t i = 0; cache_policy_at(i); i++)
		printf("                             %-7s  %s\n", cache_policy_at(i)->name, cache_policy_at(i)->help);
	fputs(usage_tail, stdout);
}

struct args {
	const char *path, *cache, *policy, *scope;
	uint64_t expert_bytes, memory_bytes;
	bool json, help;
};

/* One cache of the curve, with the words in which it was asked for. */
struct point {
	const char *policy, *size;
};

struct info {
	struct args args;
	struct arena *arena;
	struct otr_reader *reader;
	enum otr_kind kind;
	struct survey survey;
	struct replay *replay;
	struct point *point;
	size_t n;
	/* Progress */
	bool bar;
	const char *doing;
	struct timespec shown;
};

/* ---- the command line ---- */

static int parse_bytes(const char *option, const char *text, uint64_t *out)
{
	struct err err;
	double bytes;

	if (units_parse(text, UNIT_BYTES, &bytes, &err))
		return cmd_usage_error(name, "%s: %s", option, err.msg);
	if (!(bytes >= 1 && bytes < 0x1p62))
		return cmd_usage_error(name, "%s: '%s' is not from 1B to 4096PiB", option, text);
	*out = (uint64_t)bytes;
	return -1;
}

/* -1 when all is well, else the exit status. */
static int parse_args(int argc, char **argv, struct args *args)
{
	enum { EXPERT_BYTES = 256, MEMORY, JSON };
	static const struct option options[] = {
		{"cache", required_argument, NULL, 'c'},
		{"policy", required_argument, NULL, 'p'},
		{"scope", required_argument, NULL, 's'},
		{"expert-bytes", required_argument, NULL, EXPERT_BYTES},
		{"memory", required_argument, NULL, MEMORY},
		{"json", no_argument, NULL, JSON},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int c, status = -1;

	*args = (struct args){.memory_bytes = UINT64_C(1) << 30};
	optind = 0; /* start anew: main may have looked at other options */
	while (status < 0 && (c = getopt_long(argc, argv, ":c:p:s:h", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			args->cache = optarg;
			break;
		case 'p':
			args->policy = optarg;
			break;
		case 's':
			args->scope = optarg;
			break;
		case EXPERT_BYTES:
			status = parse_bytes("--expert-bytes", optarg, &args->expert_bytes);
			break;
		case MEMORY:
			status = parse_bytes("--memory", optarg, &args->memory_bytes);
			break;
		case JSON:
			args->json = true;
			break;
		case 'h':
			args->help = true;
			return -1;
		default:
			return cmd_bad_option(argv, options);
		}
	}
	if (status < 0 && argc - optind != 1)
		return cmd_usage_error(name, "expected one FILE.otr, not %d", argc - optind);
	if (status < 0 && !args->cache && (args->policy || args->scope))
		return cmd_usage_error(name, "--%s goes with --cache: say which sizes", args->policy ? "policy" : "scope");
	args->path = argv[optind];
	return status;
}

struct words {
	VEC(const char *);
};

/* "a,b" into its parts; an empty one is an error. */
static int split(const char *option, const char *text, struct words *out, struct arena *a, struct err *err)
{
	for (;;) {
		size_t len = strcspn(text, ",");
		if (len == 0)
			return err_set(err, ERR_USAGE, "%s: %s: nothing between commas (see 'offsim %s --help')", name, option,
				name);
		VEC_PUSH(out, a, arena_strndup(a, text, len));
		text += len;
		if (!*text++)
			return 0;
	}
}

/* "10000blocks": 1; 0 when that is not how it is written. */
static int parse_blocks(const char *text, uint64_t *out)
{
	char digits[24];
	size_t n = strspn(text, "0123456789");
	struct err err;
	double blocks;
	const char *unit = text + n + (text[n] == ' ');

	if (n == 0 || n >= sizeof(digits) || (strcmp(unit, "blocks") && strcmp(unit, "block")))
		return 0;
	memcpy(digits, text, n);
	digits[n] = 0;
	if (units_parse(digits, UNIT_COUNT, &blocks, &err) || blocks >= 0x1p62)
		return 0;
	*out = (uint64_t)blocks;
	return 1;
}

static int parse_size(const struct info *x, const char *text, uint64_t *out, struct err *err)
{
	bool blocks = parse_blocks(text, out);
	double bytes;

	if (x->kind == OTR_REQUESTS && !blocks)
		return err_set(err, ERR_USAGE, "--cache '%.60s': this trace has requests; the size of their cache is in blocks, "
				"such as 10000blocks", text);
	if (x->kind == OTR_STEPS && blocks)
		return err_set(err, ERR_USAGE, "--cache '%.60s': this trace has experts; the size of their cache is in bytes, "
				"such as 250MiB", text);
	if (!blocks) {
		if (units_parse(text, UNIT_BYTES, &bytes, err)) {
			err->code = ERR_USAGE;
			return err_prefix(err, "--cache");
		}
		*out = bytes >= 1 && bytes < 0x1p62 ? (uint64_t)bytes : 0;
	}
	if (*out == 0)
		return err_set(err, ERR_USAGE, "--cache '%.60s' is no size for a cache", text);
	return 0;
}

static int parse_policy(const struct info *x, const char *text, struct replay *r, struct err *err)
{
	if (cache_set_policy_find(text, NULL, &r->policy, &r->scope, err)) {
		err->code = ERR_USAGE;
		return err_prefix(err, "--policy");
	}
	if (x->kind == OTR_REQUESTS && strcmp(text, "lru"))
		return err_set(err, ERR_USAGE, "--policy %s: blocks of requests are replayed with lru alone", text);
	if (x->kind == OTR_REQUESTS && r->scope != CACHE_GLOBAL)
		return err_set(err, ERR_USAGE, "--scope %s: blocks hold all layers; their cache is global",
			cache_scope_name(r->scope));
	return 0;
}

/* All policies in all scopes at all sizes, in the order asked for; a policy whose name implies its scope comes once. */
static int parse_curve(struct info *x, struct err *err)
{
	struct words policies = {0}, scopes = {0}, sizes = {0};

	if (!x->args.cache)
		return 0;
	if (split("--policy", x->args.policy ? x->args.policy : "lru", &policies, x->arena, err) ||
		split("--scope", x->args.scope ? x->args.scope : "global", &scopes, x->arena, err) ||
		split("--cache", x->args.cache, &sizes, x->arena, err))
		return -1;
	x->replay = arena_array(x->arena, struct replay, policies.n * scopes.n * sizes.n);
	x->point = arena_array(x->arena, struct point, policies.n * scopes.n * sizes.n);
	for (size_t p = 0; p < policies.n; p++) {
		for (size_t s = 0; s < scopes.n; s++) {
			struct replay r = {0};
			if (cache_scope_find(scopes.at[s], NULL, &r.scope, err)) {
				err->code = ERR_USAGE;
				return err_prefix(err, "--scope");
			}
			if (parse_policy(x, policies.at[p], &r, err))
				return -1;
			if (s > 0 && strcmp(policies.at[p], r.policy->name))
				continue;
			for (size_t i = 0; i < sizes.n; i++) {
				if (parse_size(x, sizes.at[i], &r.size, err))
					return -1;
				x->replay[x->n] = r;
				x->point[x->n++] = (struct point){policies.at[p], sizes.at[i]};
			}
		}
	}
	return 0;
}

/* ---- reading ---- */

static bool go_on(void *ctx, uint64_t n_records)
{
	struct info *x = ctx;
	struct timespec now;

	if (x->bar && n_records % 256 == 0) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec != x->shown.tv_sec || now.tv_nsec / 200000000 != x->shown.tv_nsec / 200000000) {
			x->shown = now;
			fprintf(stderr, "\r%s: %.0f %% of %" PRIu64 " ", x->doing,
				100 * (double)n_records / (double)otr_n_records(x->reader), otr_n_records(x->reader));
		}
	}
	return !cmd_interrupted;
}

static int read_all(struct info *x, struct err *err)
{
	struct survey_options o = {.expert_bytes = x->args.expert_bytes, .future_limit_bytes = x->args.memory_bytes,
		.watch = {go_on, x}};

	for (size_t i = 0; i < x->n; i++)
		o.future = o.future || x->replay[i].policy->needs_future;
	x->doing = "reading";
	if (survey_take(&x->survey, x->reader, &o, x->arena, err))
		return -1;
	if (x->n == 0)
		return 0;
	if (x->kind == OTR_STEPS && x->survey.n_lookups == 0)
		return err_set(err, ERR_INPUT, "--cache: this trace uses no experts");
	if (x->kind == OTR_STEPS && !x->survey.items.bytes_known)
		return err_set(err, ERR_INPUT, "--cache: this trace does not say how large its experts are; give --expert-bytes");
	if (x->kind == OTR_REQUESTS && x->survey.n_lookups == 0)
		return err_set(err, ERR_INPUT, "--cache: the requests of this trace have no block hashes");
	x->doing = "replaying";
	return replay_run(x->replay, x->n, &x->survey, x->reader, &o.watch, x->arena, err);
}

/* ---- for people ---- */

static void print_text(const char *title, const char *text)
{
	if (!text[0])
		return;
	printf("%-11s ", title);
	utf8_print(text, stdout); /* as whoever made the trace wrote it */
	putchar('\n');
}

static const char *bytes_text(char *buf, size_t size, uint64_t bytes)
{
	return bytes ? units_format(buf, size, (double)bytes, UNIT_BYTES) : "unknown size";
}

static const double shares[] = {0.5, 0.8, 0.95};

/* Lookups whose item was used before, and how much room it takes to find it still there. */
static void print_reuse(const struct survey *s, const char *things)
{
	uint64_t again = reuse_hits(s->reuse, REUSE_NEVER);

	if (s->n_lookups == 0)
		return;
	printf("%-11s %.1f %% of lookups are of what was used before", "reuse", 100 * (double)again / (double)s->n_lookups);
	for (size_t i = 0; i < ARRAY_LEN(shares) && again; i++)
		printf("%s%.0f %%%s of %" PRIu64, i ? ", " : ": ", 100 * shares[i], i ? "" : " of them are hits in an lru cache",
			reuse_size_for(s->reuse, (uint64_t)ceil(shares[i] * (double)again)));
	if (again)
		printf(" %s", things);
	putchar('\n');
}

static void print_popularity(const struct survey *s, struct arena *a)
{
	double least = INFINITY, most = 0, sum = 0;
	uint32_t n = 0;

	printf("%-11s %.0f %% of uses are of %u experts, %.0f %% of %u, %.0f %% of %u\n", "popularity", 100 * shares[0],
		survey_covers(s, shares[0], a), 100 * shares[1], survey_covers(s, shares[1], a), 100 * shares[2],
		survey_covers(s, shares[2], a));
	for (uint32_t l = 0; l < s->items.n_layers; l++) {
		double bits = survey_entropy_bits(s, l);
		if (bits < 0)
			continue;
		least = fmin(least, bits);
		most = fmax(most, bits);
		sum += bits;
		n++;
	}
	printf("%-11s %.2f bits in a layer on average, from %.2f to %.2f; %.2f would be all experts alike\n", "entropy", sum / n,
		least, most, log2(s->items.experts_per_layer));
}

static void print_steps(const struct survey *s, const struct otr_info *info, struct arena *a)
{
	char of[32], used[32], cycle[32];
	const struct batch_items *items = &s->items;

	printf("%-11s %" PRIu64 ": %" PRIu64 " prefill, %" PRIu64 " decode%s\n", "steps", s->n_prefill + s->n_decode,
		s->n_prefill, s->n_decode, info->experts_only ? "; accesses of experts only" : "");
	if (info->workload.batch)
		printf("%-11s batch %" PRIu64 ", prompt %" PRIu64 ", generate %" PRIu64 ", depth %" PRIu64 "\n", "workload",
			info->workload.batch, info->workload.prompt, info->workload.generate, info->workload.depth);
	if (s->n_lookups == 0) {
		printf("%-11s none used\n", "experts");
		return;
	}
	uint64_t all_bytes = 0;
	for (uint32_t i = 0; i < items->n_items; i++)
		all_bytes += items->item_bytes[i];
	printf("%-11s %u layers of %u, %s; used: %" PRIu64 " different ones, %s\n", "experts", items->n_layers,
		items->experts_per_layer, bytes_text(of, sizeof(of), all_bytes), s->n_unique,
		bytes_text(used, sizeof(used), s->unique_bytes));
	printf("%-11s %" PRIu64 " of experts, %" PRIu64 " lookups (once for each layer and step)\n", "uses", s->n_uses,
		s->n_lookups);
	if (items->cycle_bytes)
		printf("%-11s %s of experts for one token in all layers: a smaller global lru cache holds none until the next token\n", "cycle",
			bytes_text(cycle, sizeof(cycle), items->cycle_bytes));
	print_popularity(s, a);
	print_reuse(s, "experts");
}

static void print_spread(const char *title, const struct spread *s, double unit, const char *of)
{
	if (s->n == 0)
		return;
	printf("%-11s mean %.6g%s, half up to %.6g, 90 %% up to %.6g, 99 %% up to %.6g, from %.6g to %.6g; variation %.2f\n",
		title, s->mean / unit, of, (double)spread_quantile(s, 0.5) / unit, (double)spread_quantile(s, 0.9) / unit,
		(double)spread_quantile(s, 0.99) / unit, (double)s->min / unit, (double)s->max / unit, spread_variation(s));
}

static void print_requests(const struct survey *s, const struct otr_info *info)
{
	double span_s = (double)(s->last_ns - s->first_ns) / 1e9;

	printf("%-11s %" PRIu64, "requests", s->n_records);
	if (s->n_records > 1 && span_s > 0)
		printf(" in %.6g s, %.4g a second", span_s, (double)(s->n_records - 1) / span_s);
	if (s->n_in_session)
		printf("; %" PRIu64 " name their conversation", s->n_in_session);
	putchar('\n');
	print_spread("input", &s->input_tokens, 1, " tokens");
	print_spread("output", &s->output_tokens, 1, " tokens");
	print_spread("gaps", &s->gap_ns, 1e9, " s");
	if (s->n_lookups == 0)
		return;
	printf("%-11s %" PRIu64 " of %u tokens looked up, %" PRIu64 " different ones\n", "blocks", s->n_lookups,
		info->block_tokens, s->n_unique);
	print_reuse(s, "blocks");
}

static double rate(uint64_t hits, uint64_t lookups)
{
	return lookups ? (double)hits / (double)lookups : 0;
}

static void print_curve(const struct info *x)
{
	char read[32];
	bool steps = x->kind == OTR_STEPS;

	printf("\n%-9s %-7s %14s %12s %12s %9s", "policy", "scope", "cache", "lookups", "hits", "hit rate");
	if (steps)
		printf(" %9s %12s %14s", "decode", "read", "a decode step");
	putchar('\n');
	for (size_t i = 0; i < x->n; i++) {
		const struct replay *r = &x->replay[i];
		printf("%-9s %-7s %14s %12" PRIu64 " %12" PRIu64 " %7.2f %%", x->point[i].policy, cache_scope_name(r->scope),
			x->point[i].size, r->lookups, r->hits, 100 * rate(r->hits, r->lookups));
		if (steps && r->decode_lookups)
			printf(" %7.2f %%", 100 * rate(r->decode_hits, r->decode_lookups));
		else if (steps)
			printf(" %9s", "-");
		if (steps)
			printf(" %12s", units_format(read, sizeof(read), (double)r->read_bytes, UNIT_BYTES));
		if (steps && x->survey.n_decode)
			printf(" %14s", units_format(read, sizeof(read),
				(double)r->decode_read_bytes / (double)x->survey.n_decode, UNIT_BYTES));
		putchar('\n');
	}
}

static void print(const struct info *x)
{
	const struct otr_info *info = otr_info(x->reader);

	printf("%s: %s\n", x->args.path, x->kind == OTR_STEPS ? "steps of a model" : "requests");
	print_text("model", info->model);
	print_text("source", info->source);
	print_text("licence", info->licence);
	print_text("note", info->note);
	if (x->kind == OTR_STEPS)
		print_steps(&x->survey, info, x->arena);
	else
		print_requests(&x->survey, info);
	if (x->n)
		print_curve(x);
}

/* ---- for programs ---- */

static json_t *count_json(uint64_t n)
{
	return json_integer((json_int_t)n);
}

static json_t *curve_json(const struct info *x)
{
	json_t *curve = json_array();
	bool steps = x->kind == OTR_STEPS;

	for (size_t i = 0; i < x->n; i++) {
		const struct replay *r = &x->replay[i];
		json_array_append_new(curve, json_pack("{s:s, s:s, s:o, s:s, s:o, s:o, s:f, s:o, s:o}", "policy",
			x->point[i].policy, "scope", cache_scope_name(r->scope), "size", count_json(r->size), "size_unit",
			steps ? "bytes" : "blocks", "lookups", count_json(r->lookups), "hits", count_json(r->hits),
			"hit_rate", rate(r->hits, r->lookups), "decode_hit_rate",
			r->decode_lookups ? json_real(rate(r->decode_hits, r->decode_lookups)) : json_null(),
			"read_bytes", steps ? count_json(r->read_bytes) : json_null()));
	}
	return curve;
}

static json_t *spread_json(const struct spread *s, double unit)
{
	if (s->n == 0)
		return json_null();
	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "mean", s->mean / unit, "min", (double)s->min / unit, "p50",
		(double)spread_quantile(s, 0.5) / unit, "p90", (double)spread_quantile(s, 0.9) / unit, "p99",
		(double)spread_quantile(s, 0.99) / unit, "max", (double)s->max / unit, "variation", spread_variation(s));
}

static void add_steps_json(json_t *json, const struct survey *s, struct arena *a)
{
	json_t *entropy = json_array();

	for (uint32_t l = 0; l < s->items.n_layers; l++) {
		double bits = survey_entropy_bits(s, l);
		json_array_append_new(entropy, bits < 0 ? json_null() : json_real(bits));
	}
	json_object_set_new(json, "prefill_steps", count_json(s->n_prefill));
	json_object_set_new(json, "decode_steps", count_json(s->n_decode));
	json_object_set_new(json, "uses", count_json(s->n_uses));
	json_object_set_new(json, "cycle_bytes", s->items.cycle_bytes ? count_json(s->items.cycle_bytes) : json_null());
	json_object_set_new(json, "popularity", json_pack("{s:o, s:o, s:o}", "covers_50", count_json(survey_covers(s, 0.5, a)),
		"covers_80", count_json(survey_covers(s, 0.8, a)), "covers_95", count_json(survey_covers(s, 0.95, a))));
	json_object_set_new(json, "entropy_bits", entropy);
}

static void add_requests_json(json_t *json, const struct survey *s, const struct otr_info *info)
{
	json_object_set_new(json, "block_tokens", count_json(info->block_tokens));
	json_object_set_new(json, "span_s", json_real((double)(s->last_ns - s->first_ns) / 1e9));
	json_object_set_new(json, "input_tokens", spread_json(&s->input_tokens, 1));
	json_object_set_new(json, "output_tokens", spread_json(&s->output_tokens, 1));
	json_object_set_new(json, "gap_s", spread_json(&s->gap_ns, 1e9));
}

static json_t *reuse_json(const struct survey *s)
{
	uint64_t again = reuse_hits(s->reuse, REUSE_NEVER);
	json_t *json = json_pack("{s:o}", "lookups_again", count_json(again));
	static const char *const room[ARRAY_LEN(shares)] = {"room_50", "room_80", "room_95"};

	for (size_t i = 0; i < ARRAY_LEN(shares); i++)
		json_object_set_new(json, room[i], again ?
			count_json(reuse_size_for(s->reuse, (uint64_t)ceil(shares[i] * (double)again))) : json_null());
	return json;
}

static int print_json(const struct info *x)
{
	const struct otr_info *info = otr_info(x->reader);
	const struct survey *s = &x->survey;
	bool steps = x->kind == OTR_STEPS;
	struct err err;
	json_t *json = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:s, s:s, s:s}", "kind",
		steps ? "steps" : "requests", "records", count_json(s->n_records), "steps",
		steps ? count_json(s->n_prefill + s->n_decode) : json_null(), "layers",
		steps ? count_json(s->items.n_layers) : json_null(), "lookups", count_json(s->n_lookups), "unique",
		count_json(s->n_unique), "bytes", steps && s->items.bytes_known ? count_json(s->unique_bytes) : json_null(),
		"curve", curve_json(x), "model", info->model, "source", info->source, "licence", info->licence, "note",
		info->note);

	if (!json) {
		err_set(&err, ERR_NOMEM, "out of memory");
		return cmd_fail(&err);
	}
	json_object_set_new(json, "reuse", reuse_json(s));
	if (steps)
		add_steps_json(json, s, x->arena);
	else
		add_requests_json(json, s, info);
	json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
	putchar('\n');
	json_decref(json);
	return EXIT_DONE;
}

static int run(struct info *x)
{
	struct err err;

	if (otr_open(x->args.path, x->arena, &x->reader, &err))
		return cmd_fail(&err);
	x->kind = otr_info(x->reader)->kind;
	int rc = parse_curve(x, &err);
	rc = rc ? rc : read_all(x, &err);
	if (x->bar && x->doing)
		fputs("\r\033[K", stderr);
	int status = rc ? cmd_fail(&err) : EXIT_DONE;
	if (rc == 0 && x->args.json)
		status = print_json(x);
	else if (rc == 0)
		print(x);
	otr_close(x->reader);
	return status;
}

int cmd_trace_info(int argc, char **argv)
{
	struct arena a;
	struct info *x;
	int status;

	cmd_arena_init(&a);
	x = arena_new(&a, struct info);
	x->arena = &a;
	x->bar = isatty(STDERR_FILENO) && !getenv("NO_COLOR");
	status = parse_args(argc, argv, &x->args);
	if (status < 0 && x->args.help) {
		usage();
		status = EXIT_DONE;
	}
	if (status < 0) {
		cmd_catch_interrupts();
		status = run(x);
	}
	arena_release(&a);
	return cmd_finish_stdout(status);
}
