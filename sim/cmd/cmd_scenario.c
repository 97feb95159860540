#include "sim/cmd/cmd_scenario.h"

#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "sim/run/sweep.h"

int cmd_add_set(struct scenario_set *set, size_t *n, const char *command, const char *text, struct arena *a)
{
	const char *equals = strchr(text, '=');

	if (!equals || equals == text)
		return cmd_usage_error(command, "--set wants KEY=VALUE, not '%s'", text);
	set[(*n)++] = (struct scenario_set){.key = arena_strndup(a, text, (size_t)(equals - text)), .value = equals + 1};
	return -1;
}

int cmd_scenario_parse(struct cmd_scenario *c, int argc, char **argv, int which, void (*usage)(void))
{
	static const struct option all[] = {
		{"set", required_argument, NULL, 's'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{"db", required_argument, NULL, 'd'},
		{"no-db", no_argument, NULL, 'n'},
		{"seed", required_argument, NULL, 'e'},
		{"exact", no_argument, NULL, 'x'},
		{"trace-out", required_argument, NULL, 't'},
		{0},
	};
	static const struct option place[] = {
		{"set", required_argument, NULL, 's'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	static const struct option explain[] = {
		{"set", required_argument, NULL, 's'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{"seed", required_argument, NULL, 'e'},
		{0},
	};
	static const struct option timeline[] = {
		{"set", required_argument, NULL, 's'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{"seed", required_argument, NULL, 'e'},
		{"output", required_argument, NULL, 'o'},
		{0},
	};
	const struct option *options = which == CMD_SCENARIO_RUN ? all : which == CMD_SCENARIO_PLACE ? place :
		which == CMD_SCENARIO_EXPLAIN ? explain : timeline;
	const char *letters = which == CMD_SCENARIO_TIMELINE ? ":ho:" : ":h";
	int opt, status = -1;

	*c = (struct cmd_scenario){.db = "results.db"};
	cmd_arena_init(&c->arena);
	c->set = arena_array(&c->arena, struct scenario_set, (size_t)argc);
	while (status < 0 && (opt = getopt_long(argc, argv, letters, options, NULL)) != -1) {
		switch (opt) {
		case 's':
			status = cmd_add_set(c->set, &c->n_set, argv[0], optarg, &c->arena);
			break;
		case 'e':
			c->set[c->n_set++] = (struct scenario_set){.key = "seed", .value = optarg};
			break;
		case 'j':
			c->json = true;
			break;
		case 'd':
			c->db = optarg;
			break;
		case 'n':
			c->db = NULL;
			break;
		case 'o':
			c->out = optarg;
			break;
		case 't':
			c->trace_out = optarg;
			break;
		case 'x':
			c->exact = true;
			break;
		case 'h':
			usage();
			status = cmd_finish_stdout(EXIT_DONE);
			break;
		default:
			status = cmd_bad_option(argv, options);
		}
	}
	if (status < 0 && argc - optind != 1)
		status = cmd_usage_error(argv[0], "expected one SCENARIO.yaml, not %d", argc - optind);
	if (status >= 0)
		cmd_scenario_release(c);
	else
		c->path = argv[optind];
	return status;
}

int cmd_scenario_load(struct cmd_scenario *c, struct err *err)
{
	if (scenario_load(c->path, c->set, c->n_set, &c->arena, &c->scenario, err))
		return -1;
	struct sweep grid;
	if (c->scenario->sweep && sweep_parse(c->scenario->sweep, &c->arena, &grid, err))
		return -1;
	/* From here on there is something to stop in order; before, a signal just ends the program. */
	cmd_catch_interrupts();
	if (c->scenario->sweep)
		fprintf(stderr, "offsim: %s has a 'sweep'; this is its base point\n", c->path);
	return 0;
}

void cmd_scenario_release(struct cmd_scenario *c)
{
	arena_release(&c->arena);
}

void cmd_print_heading(const struct scenario *s)
{
	const struct trace_workload *w = &s->workload;
	char bytes[32];

	printf("%s %s (%s) on %s, engine %s\n", s->model_name, s->quant,
		units_format(bytes, sizeof(bytes), (double)s->model->weights_bytes, UNIT_BYTES), s->machine_name,
		s->engine_name);
	if (s->n_requests)
		printf("%" PRIu64 " requests one after another, of %" PRIu64 " and %" PRIu64 " tokens on average\n\n", s->n_requests,
			s->mean_request.prompt, s->mean_request.generate);
	else
		printf("batch %" PRIu64 ", prompt %" PRIu64 ", generate %" PRIu64 ", depth %" PRIu64 "\n\n", w->batch,
			w->prompt, w->generate, w->depth);
	if (s->routing.repeats)
		fprintf(stderr, "offsim: note: %" PRIu64 " prompt and %" PRIu64 " decode tokens were recorded; the workload has more, "
			"so they are repeated\n", s->routing.record->n_tokens[TRACE_PREFILL],
			s->routing.record->n_tokens[TRACE_DECODE]);
	if (*s->left_out.ignored)
		fprintf(stderr, "offsim: note: flags without influence on time or memory: %s\n", s->left_out.ignored);
	if (*s->left_out.not_modelled)
		fprintf(stderr, "offsim: note: not modelled, as if left out: %s\n", s->left_out.not_modelled);
	if (s->model->context_max && w->depth + w->prompt + w->generate > s->model->context_max)
		fprintf(stderr, "offsim: note: %" PRIu64 " tokens are more than the %" PRIu64 " the model is made for\n",
			w->depth + w->prompt + w->generate, s->model->context_max);
}

static const char *bytes_text(char *buf, size_t size, uint64_t bytes)
{
	return bytes ? units_format(buf, size, (double)bytes, UNIT_BYTES) : "-";
}

void cmd_print_memory(const struct ledger *l)
{
	char t[7][32];

	printf("  %-8s %11s %11s %11s %11s %11s %11s\n", "memory", "capacity", "weights", "kv", "activation",
		"overhead", "free");
	for (int i = 0; i < l->n; i++) {
		const struct ledger_row *r = &l->row[i];
		uint64_t missing = ledger_missing(l, i);
		if (missing)
			snprintf(t[6], sizeof(t[6]), "-%s", bytes_text(t[5], sizeof(t[5]), missing));
		else
			bytes_text(t[6], sizeof(t[6]), ledger_free(l, i));
		printf("  %-8s %11s", r->name, bytes_text(t[0], sizeof(t[0]), r->capacity_bytes));
		for (int c = 0; c < LEDGER_CATEGORY_N; c++)
			printf(" %11s", bytes_text(t[1 + c], sizeof(t[1 + c]), r->used_bytes[c]));
		printf(" %11s%s\n", missing || ledger_free(l, i) ? t[6] : "-", missing ? "  does not fit" : "");
	}
}

static bool has_both_phases(const struct result *r)
{
	return isfinite(r->critical_overhead_of[TRACE_PREFILL]) && isfinite(r->critical_overhead_of[TRACE_DECODE]);
}

static void print_pace(double critical, const double critical_of[2], bool phases)
{
	printf(" %9.1f%%", 100 * critical);
	if (phases)
		printf(" %10.1f%% %9.1f%%", 100 * critical_of[TRACE_PREFILL], 100 * critical_of[TRACE_DECODE]);
	putchar('\n');
}

void cmd_print_resources(const struct result *r)
{
	bool phases = has_both_phases(r);
	char bytes[32];

	printf("  %-16s %7s %12s %14s %10s%s\n", "resource", "busy", "utilisation", "bytes moved", "sets pace",
		phases ? "  of prefill  of decode" : "");
	for (int i = 0; i < r->n_resources; i++) {
		const struct result_resource *res = &r->resource[i];
		if (res->busy <= 0)
			continue;
		printf("  %-16s %6.1f%% %11.1f%% %14s", res->name, 100 * res->busy, 100 * res->utilisation,
			isfinite(res->bytes) ? units_format(bytes, sizeof(bytes), res->bytes, UNIT_BYTES) : "");
		print_pace(res->critical, res->critical_of, phases);
	}
	if (r->critical_overhead > 0.0005) {
		printf("  %-16s %7s %12s %14s", "overhead", "", "", "");
		print_pace(r->critical_overhead, r->critical_overhead_of, phases);
	}
	putchar('\n');
}

static void print_caches(const struct result *r)
{
	char bytes[32];

	if (r->n_caches == 0)
		return;
	printf("  %-16s %11s %11s %14s\n", "expert cache", "hit rate", "in decode", "bytes read");
	for (int i = 0; i < r->n_caches; i++) {
		const struct result_cache *c = &r->cache[i];
		printf("  %-16s %10.1f%% %10.1f%% %14s\n", c->name,
			c->lookups ? 100 * (double)c->hits / (double)c->lookups : 0,
			isfinite(c->decode_hit_rate) ? 100 * c->decode_hit_rate : 0,
			units_format(bytes, sizeof(bytes), (double)c->read_bytes, UNIT_BYTES));
	}
	putchar('\n');
}

static void print_metric(const struct result *r, enum result_field_id f, const char *label)
{
	char value[32], low[32], high[32];

	if (!isfinite(r->value[f]))
		return;
	units_format(value, sizeof(value), r->value[f], result_fields[f].dim);
	printf("  %-12s %14s", label, value);
	if (isfinite(r->low80[f]))
		printf("   80 %%: %s .. %s", units_format(low, sizeof(low), r->low80[f], result_fields[f].dim),
			units_format(high, sizeof(high), r->high80[f], result_fields[f].dim));
	putchar('\n');
}

static void print_metrics(const struct result *r)
{
	print_metric(r, RESULT_DECODE_TOK_S, "decode");
	print_metric(r, RESULT_UPPER_BOUND_TOK_S, "  bound");
	print_metric(r, RESULT_TPOT_S, "  a step");
	print_metric(r, RESULT_PREFILL_TOK_S, "prefill");
	print_metric(r, RESULT_TTFT_S, "first token");
	print_metric(r, RESULT_TOTAL_S, "total");
	print_metric(r, RESULT_E2E_TOK_S, "end to end");
	putchar('\n');
}

void cmd_print_run(const struct scenario *s, const struct result *r, const struct run_why *why)
{
	cmd_print_heading(s);
	if (r->fits) {
		print_metrics(r);
		cmd_print_resources(r);
		print_caches(r);
	}
	cmd_print_memory(&r->memory);
	printf("\nwhy:    %s\n", why->why);
	if (why->change[0])
		printf("change: %s\n", why->change);
}

static json_t *spot_json(const struct placement *p, const struct place_spot *spot)
{
	if (spot->memory == PLACE_LEFT_OUT)
		return json_pack("{s:n, s:n, s:s}", "memory", "device", "mode", "left out");
	return json_pack("{s:s, s:s, s:s}", "memory", p->machine->memories[spot->memory].name, "device",
		p->machine->devices[spot->device].name, "mode", place_mode_name(spot->mode));
}

void cmd_print_placement_json(const struct placement *p)
{
	json_t *root = json_object(), *memory = json_array(), *tensors = json_array(), *kv = json_array();

	for (int i = 0; i < p->ledger.n; i++) {
		const struct ledger_row *r = &p->ledger.row[i];
		json_array_append_new(memory,
			json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "name", r->name, "capacity_bytes",
				(json_int_t)r->capacity_bytes, "used_bytes", (json_int_t)ledger_used(&p->ledger, i),
				"weights_bytes", (json_int_t)r->used_bytes[LEDGER_WEIGHTS], "kv_bytes",
				(json_int_t)r->used_bytes[LEDGER_KV], "activation_bytes",
				(json_int_t)r->used_bytes[LEDGER_ACTIVATION], "overhead_bytes",
				(json_int_t)r->used_bytes[LEDGER_OVERHEAD], "missing_bytes",
				(json_int_t)ledger_missing(&p->ledger, i)));
	}
	for (int i = 0; i < p->model->n_tensors; i++) {
		const struct model_tensor *t = &p->model->tensors[i];
		json_t *row = spot_json(p, &p->tensor[i]);
		json_object_set_new(row, "name", json_string(t->name));
		json_object_set_new(row, "bytes", json_integer((json_int_t)t->bytes));
		json_array_append_new(tensors, row);
	}
	for (uint32_t i = 0; i < p->model->n_layer; i++)
		json_array_append_new(kv, spot_json(p, &p->kv[i]));
	json_object_set_new(root, "fits", json_boolean(ledger_fits(&p->ledger)));
	json_object_set_new(root, "memory", memory);
	if (p->files.bytes > 0)
		json_object_set_new(root, "files",
			json_pack("{s:s, s:f, s:I, s:b, s:b}", "drive", p->machine->memories[p->files.drive].name, "bytes",
				p->files.bytes, "room_bytes", (json_int_t)p->files.room, "kept", p->files.kept, "warm",
				p->files.warm));
	json_object_set_new(root, "advice", json_string(p->advice));
	json_object_set_new(root, "tensors", tensors);
	json_object_set_new(root, "kv", kv);
	json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
	putchar('\n');
	json_decref(root);
}
