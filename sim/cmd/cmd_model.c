/*
 * cmd_model.c - `offsim model`: what models there are, and what one needs.
 */
#include <fnmatch.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/suggest.h"
#include "base/units.h"
#include "base/utf8.h"
#include "models/kvcache.h"
#include "sim/cmd/cmd.h"

#define MAX_CONTEXT 1e12
#define MAX_SEQUENCES 1e6
#define DEFAULT_CONTEXT 4096

struct model_args {
	const char *what;  /* model asked for, or pattern */
	const char *quant; /* NULL: what the file stores */
	const char *kv_type;
	const char *mla;	     /* what is kept of latent attention */
	uint64_t context, sequences; /* 0: not given */
	bool tensors, json;
	bool show_only; /* an option was given that only `show` has */
};

/* A group over all layers, as stored: what is tied to another tensor counts there. */
struct group_row {
	uint64_t params, bytes;
	const struct quant_type *type; /* of its matrices; NULL: mixed */
	bool seen_matrix;
};

/* Everything `show` prints. */
struct shown {
	const struct model *m;
	struct kvcache_types kv;
	uint64_t context, sequences;
	uint64_t kv_bytes_per_token, kv_bytes, state_bytes;
	double flops_per_token;
	struct group_row group[MODEL_GROUP_N];
};

/* One type when all matrices have it; norms and biases, which ggml keeps in f32, do not make a mix. */
static void add_to_group(struct group_row *g, const struct model_tensor *t)
{
	bool matrix = model_tensor_is_matrix(t);

	if (t->shared_storage)
		return;
	if (matrix == g->seen_matrix && g->params) {
		if (g->type != t->type)
			g->type = NULL;
	} else if (matrix || !g->params) {
		g->type = t->type;
		g->seen_matrix = matrix;
	}
	g->params += t->params;
	g->bytes += t->bytes;
}

static int kv_type(const char *name, const struct quant_type **out, struct err *err)
{
	if (quant_get(name, out, err))
		return err_prefix(err, "--kv-type");
	if (!(*out)->kv)
		return err_set(err, ERR_USAGE,
			"--kv-type: '%s' is no type for a KV cache; f16, q8_0 and q4_0 are", (*out)->name);
	return 0;
}

/* "q8_0", or "q8_0/f16" for keys and values */
static int kv_types(const struct model_args *args, struct kvcache_types *out, struct err *err)
{
	char k[32];
	const char *slash = strchr(args->kv_type, '/');

	snprintf(k, sizeof(k), "%.*s", slash ? (int)(slash - args->kv_type) : -1, args->kv_type);
	out->form = kvcache_form_find(args->mla);
	if (out->form == KVCACHE_FORM_N)
		return err_set(
			err, ERR_USAGE, "--mla: '%s' is none of latent, latent-copy and heads", args->mla);
	return kv_type(k, &out->k, err) || kv_type(slash ? slash + 1 : k, &out->v, err) ? -1 : 0;
}

static int compute(struct shown *s, const struct model *m, const struct model_args *args, struct err *err)
{
	memset(s, 0, sizeof(*s));
	s->m = m;
	if (kv_types(args, &s->kv, err))
		return -1;
	s->context = args->context;
	if (!s->context)
		s->context =
			m->context_max && m->context_max < DEFAULT_CONTEXT ? m->context_max : DEFAULT_CONTEXT;
	s->sequences = args->sequences ? args->sequences : 1;
	for (uint32_t i = 0; i < m->n_layer; i++) {
		s->kv_bytes_per_token += kvcache_token_bytes(&m->layers[i], &s->kv);
		s->state_bytes += m->layers[i].state_bytes;
	}
	/* the state has a number of its own */
	s->kv_bytes = kvcache_bytes(m, s->context, s->sequences, &s->kv);
	if (s->kv_bytes < UINT64_MAX)
		s->kv_bytes -= s->sequences * s->state_bytes;
	s->flops_per_token = model_flops_per_token(m, (double)s->context);
	for (int i = 0; i < m->n_tensors; i++)
		add_to_group(&s->group[m->tensors[i].group], &m->tensors[i]);
	return 0;
}

static const char *group_type(const struct group_row *g)
{
	return g->type ? g->type->name : "mixed";
}

/* "70.6 B", as published counts are written */
static const char *count_text(char *buf, size_t size, uint64_t n)
{
	static const struct {
		double at;
		const char *unit;
	} scale[] = {{1e12, " T"}, {1e9, " B"}, {1e6, " M"}, {1e3, " k"}};
	double v = (double)n;

	for (size_t i = 0; i < ARRAY_LEN(scale); i++) {
		if (v < scale[i].at * 0.9995)
			continue;
		v /= scale[i].at;
		snprintf(buf, size, "%.*f%s", v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v, scale[i].unit);
		return buf;
	}
	snprintf(buf, size, "%.0f", v);
	return buf;
}

static const char *bytes_text(char *buf, size_t size, uint64_t n)
{
	return units_format(buf, size, (double)n, UNIT_BYTES);
}

/* Dimensions without the unused ones: 2048 for a norm, 2048 x 768 x 128 for experts. */
static int n_dims(const struct model_tensor *t)
{
	return t->shape[2] > 1 ? 3 : t->shape[1] > 1 ? 2 : 1;
}

/* ---- JSON ---- */

/* jansson refuses text that is not UTF-8, and a path may be anything. */
static json_t *json_text(const char *s)
{
	size_t left = strlen(s);
	char *clean = strdup(s);
	json_t *out;

	if (!clean)
		return NULL;
	for (char *p = clean; left;) {
		uint32_t cp;
		size_t n = utf8_decode(p, left, &cp);

		if (!n)
			*p = '?';
		p += n ? n : 1;
		left -= n ? n : 1;
	}
	out = json_string(clean);
	free(clean);
	return out;
}

static json_t *json_count(uint64_t n)
{
	return n <= INT64_MAX ? json_integer((json_int_t)n) : json_real((double)n);
}

static json_t *json_whole(double v)
{
	return v < 9e15 && v == floor(v) ? json_integer((json_int_t)v) : json_real(v);
}

static json_t *json_groups(const struct shown *s)
{
	json_t *list = json_array();

	for (int g = 0; g < MODEL_GROUP_N; g++) {
		const struct group_row *row = &s->group[g];

		if (!row->params)
			continue;
		json_array_append_new(
			list, json_pack("{s:s, s:o, s:o, s:s}", "name", model_group_name((enum model_group)g),
				      "params", json_count(row->params), "bytes", json_count(row->bytes),
				      "type", group_type(row)));
	}
	return list;
}

static json_t *json_tensors(const struct model *m)
{
	json_t *list = json_array();

	for (int i = 0; i < m->n_tensors; i++) {
		const struct model_tensor *t = &m->tensors[i];
		json_t *shape;

		if (t->shared_storage)
			continue;
		shape = json_array();
		for (int d = 0; d < n_dims(t); d++)
			json_array_append_new(shape, json_count(t->shape[d]));
		json_array_append_new(
			list, json_pack("{s:o, s:o, s:s, s:o}", "name", json_text(t->name), "shape", shape,
				      "type", t->type->name, "bytes", json_count(t->bytes)));
	}
	return list;
}

/* Takes over root. */
static int print_json(json_t *root)
{
	int rc = root ? json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) : -1;

	json_decref(root);
	if (rc && !ferror(stdout)) {
		struct err err;

		err_set(&err, ERR_NOMEM, "out of memory");
		return cmd_fail(&err);
	}
	putchar('\n');
	return EXIT_DONE;
}

static int show_json(const struct shown *s, const struct model_args *args)
{
	const struct model *m = s->m;
	json_t *root = json_object();

	json_object_set_new(root, "name", json_text(m->name));
	json_object_set_new(root, "architecture", json_text(m->architecture));
	json_object_set_new(root, "quant", json_text(m->quant));
	json_object_set_new(root, "params_total", json_count(m->params_total));
	json_object_set_new(root, "params_active", json_count(m->params_active));
	json_object_set_new(root, "weights_bytes", json_count(m->weights_bytes));
	json_object_set_new(root, "file_bytes", m->file_bytes ? json_count(m->file_bytes) : json_null());
	json_object_set_new(root, "kv_bytes_per_token", json_count(s->kv_bytes_per_token));
	json_object_set_new(root, "kv_bytes", json_count(s->kv_bytes));
	json_object_set_new(root, "state_bytes", json_count(s->state_bytes));
	json_object_set_new(root, "flops_per_token", json_whole(s->flops_per_token));
	json_object_set_new(root, "groups", json_groups(s));
	if (*m->note)
		json_object_set_new(root, "note", json_text(m->note));
	if (args->tensors)
		json_object_set_new(root, "tensors", json_tensors(m));
	return print_json(root);
}

/* ---- tables ---- */

/* What its layers are, by the layer that has most of it. */
static void print_layers(const struct model *m)
{
	uint32_t attend = 0, windowed = 0, moe = 0, sparse = 0, state = 0, draft = 0, encoder = 0, window = 0;
	const struct model_layer *l = NULL, *experts = NULL, *picks = NULL;

	for (uint32_t i = 0; i < m->n_layer; i++) {
		const struct model_layer *at = &m->layers[i];

		draft += at->draft;
		encoder += at->prefill_only;
		if (at->draft)
			continue;
		attend += at->n_head != 0;
		windowed += at->window != 0;
		moe += at->n_expert != 0;
		sparse += at->attended != 0;
		state += at->state_bytes != 0;
		window = at->window ? at->window : window;
		/* full layers tell more than windowed ones */
		if (at->n_head && (!l || (l->window && !at->window)))
			l = at;
		experts = at->n_expert ? at : experts;
		picks = at->attended ? at : picks;
	}
	printf("layers        %u of width %u", m->n_layer - draft, m->hidden);
	if (encoder)
		printf(", %u of them the encoder's", encoder);
	if (draft)
		printf(", and %u to draft (MTP)", draft);
	putchar('\n');
	if (l && l->mla_dim_k)
		printf("heads         %u of %u (values %u), kept as one vector of %u\n", l->n_head,
			l->mla_dim_k, l->mla_dim_v, l->head_dim_k);
	else if (l)
		printf("heads         %u, %u for keys and values, of %u\n", l->n_head, l->n_kv_head,
			l->head_dim_k);
	if (l && attend < m->n_layer - draft)
		printf("attention     in %u of %u layers\n", attend, m->n_layer - draft);
	if (state)
		printf("recurrence    in %u of %u layers\n", state, m->n_layer - draft);
	if (windowed)
		printf("window        %u tokens in %u of %u layers\n", window, windowed, m->n_layer - draft);
	if (picks)
		printf("sparse        at most %u entries in %u of %u layers\n", picks->attended, sparse,
			m->n_layer - draft);
	if (experts)
		printf("experts       %u of %u a token in %u of %u layers\n", experts->n_expert_used,
			experts->n_expert, moe, m->n_layer - draft);
}

static void print_groups(const struct shown *s)
{
	const struct model *m = s->m;
	char n[32], b[32];

	printf("\n%-10s %10s %10s  %s\n", "group", "params", "bytes", "type");
	for (int g = 0; g < MODEL_GROUP_N; g++) {
		const struct group_row *row = &s->group[g];

		if (!row->params)
			continue;
		printf("%-10s %10s %10s  %s%s\n", model_group_name((enum model_group)g),
			count_text(n, sizeof(n), row->params), bytes_text(b, sizeof(b), row->bytes),
			group_type(row), g == MODEL_OUTPUT && m->tied_embeddings ? " (tied to embed)" : "");
	}
	printf("%-10s %10s %10s\n", "total", count_text(n, sizeof(n), m->params_total),
		bytes_text(b, sizeof(b), m->weights_bytes));
}

static void print_tensors(const struct model *m)
{
	int width = 6;

	for (int i = 0; i < m->n_tensors; i++) {
		int len = (int)strlen(m->tensors[i].name);

		width = len > width ? len : width;
	}
	printf("\n%-*s  %-22s %-8s %14s\n", width, "tensor", "shape", "type", "bytes");
	for (int i = 0; i < m->n_tensors; i++) {
		const struct model_tensor *t = &m->tensors[i];
		char shape[72];
		int at = 0;

		if (t->shared_storage)
			continue;
		for (int d = 0; d < n_dims(t); d++)
			at += snprintf(shape + at, sizeof(shape) - (size_t)at, "%s%" PRIu64, d ? " x " : "",
				t->shape[d]);
		printf("%-*s  %-22s %-8s %14" PRIu64 "\n", width, t->name, shape, t->type->name, t->bytes);
	}
}

static void show_table(const struct shown *s, const struct model_args *args)
{
	const struct model *m = s->m;
	char x[32], y[32];

	printf("%s: %s, %s\n\n", m->name, m->architecture, m->quant);
	print_layers(m);
	printf("vocabulary    %u\n", m->vocab);
	if (m->context_max)
		printf("context       %" PRIu64 " tokens at most\n", m->context_max);
	printf("parameters    %s (%" PRIu64 ")", count_text(x, sizeof(x), m->params_total), m->params_total);
	if (m->params_active != m->params_total)
		printf(", %s active", count_text(y, sizeof(y), m->params_active));
	printf("\nweights       %s (%" PRIu64 " bytes)\n", bytes_text(x, sizeof(x), m->weights_bytes),
		m->weights_bytes);
	printf("KV cache      %s a token, %s for %" PRIu64 " x %" PRIu64 " tokens, %s%s%s\n",
		bytes_text(x, sizeof(x), s->kv_bytes_per_token), bytes_text(y, sizeof(y), s->kv_bytes),
		s->sequences, s->context, s->kv.k->name, s->kv.k == s->kv.v ? "" : "/",
		s->kv.k == s->kv.v ? "" : s->kv.v->name);
	if (s->state_bytes)
		printf("state         %s a sequence\n", bytes_text(x, sizeof(x), s->state_bytes));
	printf("decoding      %.3g GFLOP a token at a context of %" PRIu64 "\n", s->flops_per_token / 1e9,
		s->context);
	printf("source        %s\n", m->file);
	print_groups(s);
	if (args->tensors)
		print_tensors(m);
}

/* ---- commands ---- */

static int show(const struct model_args *args, struct arena *a)
{
	struct model *m;
	struct shown s;
	struct err err = {0};

	if (model_load(args->what, args->quant, a, &m, &err) || compute(&s, m, args, &err))
		return cmd_fail(&err);
	if (m->context_max && s.context > m->context_max)
		fprintf(stderr, "offsim: a context of %" PRIu64 " is more than the model's %" PRIu64 "\n",
			s.context, m->context_max);
	if (*m->note)
		fprintf(stderr, "offsim: note: %s\n", m->note);
	if (args->json)
		return show_json(&s, args);
	show_table(&s, args);
	return EXIT_DONE;
}

/* A pattern with * or ? is a shell's; any other is looked for anywhere in the name. */
static bool matches(const char *text, const char *pattern)
{
	if (!pattern)
		return true;
	if (strpbrk(pattern, "*?["))
		return !fnmatch(pattern, text, FNM_CASEFOLD);
	return strcasestr(text, pattern) != NULL;
}

static void list_row(const struct model *m, const struct model_card_info *info, int width)
{
	char total[32], active[32];

	printf("%-*s  %7s  ", width, info->name, count_text(total, sizeof(total), m->params_total));
	if (m->params_active != m->params_total)
		printf("%6s active  ", count_text(active, sizeof(active), m->params_active));
	else
		printf("%-15s", "dense");
	printf("%-19s  %s\n", m->architecture, info->description);
}

static json_t *list_object(const struct model *m, const struct model_card_info *info)
{
	json_t *row = json_object();

	json_object_set_new(row, "name", json_text(info->name));
	json_object_set_new(row, "aliases", json_text(info->aliases));
	json_object_set_new(row, "architecture", json_text(m->architecture));
	json_object_set_new(row, "params_total", json_count(m->params_total));
	json_object_set_new(row, "params_active", json_count(m->params_active));
	json_object_set_new(row, "description", json_text(info->description));
	return row;
}

static int list(const struct model_args *args, struct arena *a)
{
	struct model_card_info *info;
	struct err err = {0};
	json_t *rows = NULL;
	size_t n, shown = 0;
	int width = 0;

	if (model_list(a, &info, &n, &err))
		return cmd_fail(&err);
	for (size_t i = 0; i < n; i++)
		width = (int)strlen(info[i].name) > width ? (int)strlen(info[i].name) : width;
	if (args->json)
		rows = json_array();
	for (size_t i = 0; i < n; i++) {
		struct arena_mark mark = arena_mark(a);
		struct model *m;

		if (!matches(info[i].name, args->what) &&
			!(args->what && matches(info[i].aliases, args->what)))
			continue;
		if (model_load(info[i].name, NULL, a, &m, &err)) {
			json_decref(rows);
			return cmd_fail(&err);
		}
		shown++;
		if (rows)
			json_array_append_new(rows, list_object(m, &info[i]));
		else
			list_row(m, &info[i], width);
		arena_rewind(a, mark);
	}
	if (rows)
		return print_json(rows);
	if (!shown)
		fprintf(stderr, "offsim: no model matches '%s'\n", args->what ? args->what : "");
	return EXIT_DONE;
}

static void usage(void)
{
	puts("usage: offsim model list [PATTERN] [--json]\n"
	     "       offsim model show NAME_OR_PATH [--quant Q] [--context N] [--sequences B] [--kv-type T]\n"
	     "                                      [--mla FORM] [--tensors] [--json]\n"
	     "\n"
	     "Lists the models that can be named, or shows what one needs: parameters, bytes, KV cache, "
	     "FLOPs.\n"
	     "\n"
	     "  NAME_OR_PATH     a name or alias of the list, or a path: config.json, *.gguf, *.safetensors, a folder\n"
	     "  PATTERN          part of a name, or a shell pattern\n"
	     "  --quant Q        store the weights as this type (q4_0, q8_0, f16, f8_e4m3, ...); without it "
	     "the\n"
	     "                   type that the configuration names\n"
	     "  --context N      tokens a sequence holds (4096, or the model's own limit when that is less)\n"
	     "  --sequences B    sequences at once (1)\n"
	     "  --kv-type T      type of the KV cache (f16), or K/V: those of keys and values (q8_0/f16)\n"
	     "  --mla FORM       what is kept of latent attention: latent, latent-copy (and values beside "
	     "it) or\n"
	     "                   heads, unpacked (latent)\n"
	     "  --tensors        every tensor\n"
	     "  --json           one JSON document\n"
	     "  -h, --help       this text\n"
	     "\n"
	     "example: offsim model show llama-3.1-70b --quant q4_0 --context 8192 --kv-type q8_0");
}

static int whole_number(const char *name, const char *text, double max, uint64_t *out)
{
	struct err err = {0};
	double v;

	if (units_parse(text, UNIT_COUNT, &v, &err))
		return cmd_usage_error("model", "--%s: %s", name, err.msg);
	if (!(v >= 1 && v <= max))
		return cmd_usage_error("model", "--%s must be from 1 to %.0f, not %s", name, max, text);
	*out = (uint64_t)v;
	return EXIT_DONE;
}

static int dispatch(int n, char **words, struct model_args *args)
{
	struct suggest near;
	struct arena a;
	char text[64];
	int status;
	bool is_list = n > 0 && !strcmp(words[0], "list");

	if (n < 1)
		return cmd_usage_error("model", "expected 'list' or 'show NAME'");
	if (!is_list && strcmp(words[0], "show")) {
		suggest_init(&near, words[0]);
		suggest_offer(&near, "list");
		suggest_offer(&near, "show");
		return cmd_usage_error("model", "unknown subcommand '%s'%s", words[0],
			suggest_text(&near, text, sizeof(text)));
	}
	if (is_list && args->show_only)
		return cmd_usage_error("model", "'list' knows only --json; the other options are for 'show'");
	if (is_list && n > 2)
		return cmd_usage_error("model", "'list' takes one pattern, not %d", n - 1);
	if (!is_list && n != 2)
		return cmd_usage_error("model", "'show' takes one model, not %d", n - 1);
	args->what = n > 1 ? words[1] : NULL;
	cmd_arena_init(&a);
	status = is_list ? list(args, &a) : show(args, &a);
	arena_release(&a);
	return cmd_finish_stdout(status);
}

int cmd_model(int argc, char **argv)
{
	static const struct option options[] = {
		{"quant", required_argument, NULL, 'q'},
		{"context", required_argument, NULL, 'c'},
		{"sequences", required_argument, NULL, 'b'},
		{"kv-type", required_argument, NULL, 'k'},
		{"mla", required_argument, NULL, 'm'},
		{"tensors", no_argument, NULL, 't'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct model_args args = {.kv_type = "f16", .mla = "latent"};
	int c, status;

	while ((c = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		status = EXIT_DONE;
		args.show_only = args.show_only || (c != 'j' && c != 'h');
		switch (c) {
		case 'q':
			args.quant = optarg;
			break;
		case 'c':
			status = whole_number("context", optarg, MAX_CONTEXT, &args.context);
			break;
		case 'b':
			status = whole_number("sequences", optarg, MAX_SEQUENCES, &args.sequences);
			break;
		case 'k':
			args.kv_type = optarg;
			break;
		case 'm':
			args.mla = optarg;
			break;
		case 't':
			args.tensors = true;
			break;
		case 'j':
			args.json = true;
			break;
		case 'h':
			usage();
			return cmd_finish_stdout(EXIT_DONE);
		default:
			return cmd_bad_option(argv, options);
		}
		if (status)
			return status;
	}
	return dispatch(argc - optind, argv + optind, &args);
}
