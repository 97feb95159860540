#include "sim/run/scenario.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/suggest.h"
#include "sim/run/kernels.h"
#include "sim/trace/popularity.h"
#include "sim/trace/trace_file.h"

struct keys {
	const char *model, *quant, *engine;
	struct yaml_node *machine, *flags, *workload, *routing, *sweep;
	uint64_t seed;
};

struct routing_keys {
	double correlation, zipf, locality;
	const char *popularity, *trace;
};

static const struct param scenario_params[] = {
	PARAM_TEXT(struct keys, model, "model", NULL, "a name from 'offsim model list', or a path: config.json, *.gguf, *.safetensors, a folder"),
	PARAM_TEXT(struct keys, quant, "quant", NULL,
		"element type of the weights (q4_0, q8_0, f16 ...); without it, what the checkpoint has"),
	PARAM_NODE(struct keys, machine, "machine",
		"a name from 'offsim hw list', a path, {from: NAME, set: {gpu0.link.gen: 3}}, or an inline machine"),
	PARAM_TEXT(struct keys, engine, "engine", NULL, "whose order of operations: ideal, llama.cpp, vllm, ...: those whose flags are below"),
	PARAM_NODE(struct keys, flags, "flags", "the engine's own flags: a map, or text as on its command line"),
	PARAM_NODE(struct keys, workload, "workload", "batch, prompt, generate, depth"),
	PARAM_NODE(struct keys, routing, "routing",
		"which experts tokens hit: typical (the default), uniform (all alike), or a map: correlation, zipf or popularity, locality; or trace"),
	PARAM_NODE(struct keys, sweep, "sweep", "keys to vary, with lists or FIRST..LAST/STEP"),
	PARAM_COUNT(struct keys, seed, "seed", "1", 0, 9007199254740992.0, "of all random numbers"),
};

struct workload_keys {
	struct trace_workload w;
	const char *trace;
	uint64_t requests;
};

static const struct param workload_params[] = {
	PARAM_COUNT(struct workload_keys, w.batch, "batch", "1", 1, 1e6, "sequences that run together"),
	PARAM_COUNT(struct workload_keys, w.prompt, "prompt", "512", 0, 1e8,
		"tokens of each prompt; 0: generation alone"),
	PARAM_COUNT(struct workload_keys, w.generate, "generate", "128", 0, 1e7,
		"tokens generated for each sequence, the first by the prefill"),
	PARAM_COUNT(struct workload_keys, w.depth, "depth", "0", 0, 1e8,
		"tokens that each sequence's cache holds before the prompt"),
	PARAM_TEXT(struct workload_keys, trace, "trace", NULL,
		"a file (.otr) of recorded steps instead of all these, or of requests, which run one after another"),
	PARAM_COUNT(struct workload_keys, requests, "requests", "0", 0, 1e7, "the first so many requests of the trace; 0: all"),
};

static const struct param routing_params[] = {
	PARAM_REAL(struct routing_keys, correlation, "correlation", UNIT_FRACTION, NULL, 0, ROUTING_CORRELATION_MAX,
		"share of a router's scores that tokens have in common; 0: all alike; without it, by experts as models/routing.yaml says"),
	PARAM_REAL(struct routing_keys, zipf, "zipf", UNIT_PLAIN, NULL, 0, 20,
		"instead, weight r^-zipf of the r-th most popular expert, another in each layer; 0: all alike"),
	PARAM_REAL(struct routing_keys, locality, "locality", UNIT_FRACTION, NULL, 0, EXPERTS_LOCALITY_MAX,
		"share of a token's experts that the token before it hit at this layer; without it, tokens are independent"),
	PARAM_TEXT(struct routing_keys, popularity, "popularity", NULL,
		"instead of both, a file that says how often each expert was used: Fiddler's JSON, or a trace (.otr)"),
	PARAM_TEXT(struct routing_keys, trace, "trace", NULL,
		"instead of all these, a trace (.otr) that says which experts each token used, in order"),
};

const struct scenario_section scenario_sections[] = {
	{"", scenario_params, ARRAY_LEN(scenario_params)},
	{"workload", workload_params, ARRAY_LEN(workload_params)},
	{"routing", routing_params, ARRAY_LEN(routing_params)},
};
const size_t scenario_sections_n = ARRAY_LEN(scenario_sections);

static bool starts_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

static struct err_pos set_pos(const struct scenario_set *set, struct arena *a)
{
	return set->pos.file ? set->pos : (struct err_pos){arena_printf(a, "--set %s", set->key), 0, 0};
}

/* Overrides of the machine, applied to its tree. */
static int apply_machine_sets(const struct scenario *s, struct yaml_node *tree, struct arena *a, struct err *err)
{
	for (size_t i = 0; i < s->n_set; i++) {
		struct err_pos pos = set_pos(&s->set[i], a);
		if (starts_with(s->set[i].key, "machine.") &&
			yaml_set_path(a, tree, s->set[i].key + strlen("machine."), s->set[i].value, "part", &pos, err))
			return -1;
	}
	return 0;
}

/* Overrides of flags, under any of their names. */
static int apply_flag_sets(const struct scenario *s, struct arena *a, struct err *err)
{
	for (size_t i = 0; i < s->n_set; i++) {
		struct err_pos pos = set_pos(&s->set[i], a);
		if (starts_with(s->set[i].key, "flags.") &&
			yaml_set_path(a, s->flags_node, engine_flag_name(s->engine, s->set[i].key + strlen("flags.")),
				s->set[i].value, NULL, &pos, err))
			return -1;
	}
	return 0;
}

static bool has_sets(const struct scenario *s, const char *prefix)
{
	for (size_t i = 0; i < s->n_set; i++)
		if (starts_with(s->set[i].key, prefix))
			return true;
	return false;
}

static bool is_word(const struct yaml_node *routing, const char *word)
{
	return routing->kind == YAML_SCALAR && strcmp(routing->text, word) == 0;
}

/* A word as the map that it is short for, to which another key comes: one that brings a law of its own, or not. */
static struct yaml_node routing_map(const struct yaml_node *word, bool law, struct arena *a)
{
	struct yaml_node map = {
		.kind = YAML_MAP, .pos = word->pos, .key = word->key, .key_pos = word->key_pos, .next = word->next};

	if (is_word(word, "uniform") && !law) {
		map.child = arena_new(a, struct yaml_node);
		*map.child = (struct yaml_node){
			.kind = YAML_SCALAR, .pos = word->pos, .key = "zipf", .key_pos = word->pos, .text = "0"};
	}
	return map;
}

/* Sets of whole sections and of plain keys; those inside machine and flags wait until these are known. */
static int apply_plain_sets(const struct scenario *s, struct yaml_node *root, struct arena *a, struct err *err)
{
	for (size_t i = 0; i < s->n_set; i++) {
		struct err_pos pos = set_pos(&s->set[i], a);
		if (starts_with(s->set[i].key, "machine.") || starts_with(s->set[i].key, "flags."))
			continue;
		struct yaml_node *routing = starts_with(s->set[i].key, "routing.") ? yaml_get(root, "routing") : NULL;
		if (routing && (is_word(routing, "uniform") || is_word(routing, "typical")))
			*routing = routing_map(routing, strcmp(s->set[i].key, "routing.locality") != 0, a);
		if (yaml_set_path(a, root, s->set[i].key, s->set[i].value, NULL, &pos, err))
			return -1;
	}
	return 0;
}

static bool is_path(const char *name)
{
	static const char *const suffixes[] = {".json", ".gguf", ".safetensors", ".otr"};
	size_t len = strlen(name);

	if (strchr(name, '/'))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++)
		if (len > strlen(suffixes[i]) && strcmp(name + len - strlen(suffixes[i]), suffixes[i]) == 0)
			return true;
	return false;
}

/* Paths in a scenario are relative to the folder it is in; those of --set to where the user is. */
static const char *beside(const struct yaml_node *node, const struct scenario *s, struct arena *a)
{
	const char *slash = strrchr(s->file, '/');

	if (!is_path(node->text) || node->text[0] == '/' || !slash || !node->pos.file ||
		strcmp(node->pos.file, s->file) != 0)
		return node->text;
	return arena_printf(a, "%.*s/%s", (int)(slash - s->file), s->file, node->text);
}

/* A fault of a file as a whole, or of its name, is where it is written; one in the file has a place already. */
static int said_at(const struct yaml_node *at, struct err *err)
{
	struct err said = *err;

	if (said.line)
		return -1;
	return said.file[0] ? err_at(err, said.code, &at->pos, "%.300s: %s", said.file, said.msg) :
			      err_at(err, said.code, &at->pos, "%s", said.msg);
}

static int load_model(struct scenario *s, const struct keys *k, const struct yaml_node *root, struct arena *a,
	struct err *err)
{
	const struct yaml_node *node = yaml_get(root, "model");

	s->model_name = k->model;
	if (model_load(beside(node, s, a), k->quant, a, &s->model, err)) {
		const struct yaml_node *quant = yaml_get(root, "quant");
		return said_at(quant && strstr(err->msg, "quant") ? quant : node, err);
	}
	s->quant = s->model->quant;
	return 0;
}

static int load_machine(struct scenario *s, const struct keys *k, struct arena *a, struct err *err)
{
	struct yaml_node *tree;

	if (hw_machine_resolve(k->machine, a, &tree, err))
		return -1;
	if (has_sets(s, "machine.") && apply_machine_sets(s, tree, a, err))
		return -1;
	s->machine_node = tree;
	if (hw_machine_load_node(has_sets(s, "machine.") ? tree : k->machine, a, &s->machine, err))
		return -1;
	s->machine_name = s->machine->name;
	return 0;
}

/* The model as the engine's flags have it. */
static int adapt_model(struct scenario *s, struct arena *a, struct err *err)
{
	struct model *m;

	if (!s->engine->adapt)
		return 0;
	m = arena_new(a, struct model);
	*m = *s->model;
	m->layers = arena_array(a, struct model_layer, m->n_layer);
	memcpy(m->layers, s->model->layers, m->n_layer * sizeof(*m->layers));
	s->model = m;
	if (s->engine->adapt(s->flags, m, err) == 0)
		return 0;
	struct err said = *err;
	return err_at(err, said.code, &s->flags_node->pos, "%s", said.msg);
}

/* What the engine's kernels reach, and what the machine says of that. */
static int load_cost(struct scenario *s, struct arena *a, struct err *err)
{
	struct cost_backend backend = {.name = "auto"};
	const struct yaml_node *written = yaml_get(s->flags_node, "backend");

	if (s->engine->backend)
		backend = s->engine->backend(s->flags);
	backend.pos = written ? written->pos : s->flags_node->pos;
	return cost_load_by(s->engine->kernels, &backend, s->machine, a, &s->cost, err) ||
			kernels_apply(s->machine, s->engine->kernels, s->cost, a, err) ?
		-1 :
		0;
}

static int load_engine(struct scenario *s, const struct keys *k, const struct yaml_node *root, struct arena *a,
	struct err *err)
{
	const struct err_pos *pos = &yaml_get(root, "engine")->pos;

	if (engine_find(k->engine, pos, &s->engine, err) ||
		engine_flags_map(s->engine, k->flags, a, &s->flags_node, &s->left_out, err))
		return -1;
	/* Where an engine refuses what it is given. */
	if (!k->flags)
		s->flags_node->pos = *pos;
	if (apply_flag_sets(s, a, err) ||
		engine_flags_fill(s->engine, s->flags_node, a, &s->flags, err) ||
		adapt_model(s, a, err))
		return -1;
	s->engine_name = s->engine->name;
	return s->engine->kernels ? load_cost(s, a, err) : 0;
}

/* Lengths of the first n requests. The workload of the scenario becomes one that needs as much room as any. */
static int read_requests(struct scenario *s, struct otr_reader *file, uint64_t n, struct arena *a, struct err *err)
{
	struct trace_workload *list = arena_array(a, struct trace_workload, n);
	double inputs = 0, outputs = 0;
	uint64_t most = 0, n_kept = 0;
	struct otr_request r;

	s->workload = (struct trace_workload){.batch = 1};
	for (uint64_t i = 0; i < n; i++) {
		if (otr_next_request(file, &r, err) < 0)
			return -1;
		if (r.input_tokens + r.output_tokens == 0)
			continue;
		list[n_kept++] = (struct trace_workload){.batch = 1, .prompt = r.input_tokens, .generate = r.output_tokens};
		inputs += (double)r.input_tokens;
		outputs += (double)r.output_tokens;
		if (r.input_tokens > s->workload.prompt)
			s->workload.prompt = r.input_tokens;
		if (r.input_tokens + r.output_tokens > most)
			most = r.input_tokens + r.output_tokens;
	}
	if (n_kept == 0)
		return err_set(err, ERR_INPUT, "no request of the trace has a token");
	s->workload.generate = most - s->workload.prompt;
	s->mean_request = (struct trace_workload){.batch = 1,
		.prompt = (uint64_t)llround(inputs / (double)n_kept),
		.generate = (uint64_t)llround(outputs / (double)n_kept)};
	s->request = list;
	s->n_requests = n_kept;
	s->requests_hash = otr_hash(file);
	return 0;
}

static int load_requests(struct scenario *s, struct otr_reader *file, const struct workload_keys *keys,
	const struct yaml_node *node, struct arena *a, struct err *err)
{
	uint64_t n = otr_n_records(file);

	if (keys->requests > n)
		return err_at(err, ERR_INPUT, &node->pos, "the trace has %" PRIu64 " requests, not %" PRIu64, n, keys->requests);
	return read_requests(s, file, keys->requests ? keys->requests : n, a, err);
}

/* A recorded workload: the trace is checked against the model. */
static int load_recorded(struct scenario *s, const struct yaml_node *workload, const struct workload_keys *keys,
	struct arena *a, struct err *err)
{
	const struct yaml_node *node = yaml_get(workload, "trace"), *requests = yaml_get(workload, "requests");
	const char *path = beside(node, s, a);
	struct trace *t = arena_new(a, struct trace);
	struct otr_reader *file;

	for (const struct yaml_node *n = workload->child; n; n = n->next)
		if (n != node && n != requests)
			return err_at(err, ERR_INPUT, &n->key_pos, "'%s' beside 'trace': a recorded workload has its own", n->key);
	if (otr_open(path, a, &file, err))
		return said_at(node, err);
	bool of_requests = otr_info(file)->kind == OTR_REQUESTS;
	int rc = of_requests ? load_requests(s, file, keys, node, a, err) : 0;
	otr_close(file);
	if (rc)
		return said_at(node, err);
	if (of_requests)
		return 0;
	if (requests)
		return err_at(err, ERR_INPUT, &requests->key_pos, "the trace holds steps, not requests");
	if (trace_file_init(t, s->model, path, a, err))
		return said_at(node, err);
	s->recorded = t;
	s->workload = t->workload;
	return 0;
}

static int load_workload(struct scenario *s, const struct keys *k, struct arena *a, struct err *err)
{
	struct workload_keys keys = {0};
	const struct trace_workload *w = &s->workload;

	if (!k->workload)
		param_defaults(workload_params, ARRAY_LEN(workload_params), &keys, a);
	else if (param_fill(workload_params, ARRAY_LEN(workload_params), k->workload, "workload", &keys, a, err))
		return -1;
	if (keys.trace)
		return load_recorded(s, k->workload, &keys, a, err);
	if (keys.requests)
		return err_at(err, ERR_INPUT, &k->workload->pos, "'requests' needs a 'trace' of them");
	s->workload = keys.w;
	if (w->prompt + w->generate == 0)
		return err_at(err, ERR_INPUT, k->workload ? &k->workload->pos : NULL,
			"the workload has neither prompt nor generated tokens");
	if ((double)w->batch * (double)(w->depth + w->prompt + w->generate) > 1e12)
		return err_at(err, ERR_INPUT, k->workload ? &k->workload->pos : NULL,
			"the workload holds more than 1e12 tokens");
	return 0;
}

/* As few digits as give this number again. */
static const char *number_text(double v, struct arena *a)
{
	char text[32];
	int digits = 1;

	do
		snprintf(text, sizeof(text), "%.*g", digits, v);
	while (strtod(text, NULL) != v && ++digits <= 17);
	return arena_strdup(a, text);
}

/* Without `file`, which stands for the one that popularity comes from, and with neither of the other laws: typical. */
static const char *routing_canonical(const struct routing_keys *k, const char *file, struct arena *a)
{
	const char *locality = isnan(k->locality) ? "" : arena_printf(a, "locality: %s", number_text(k->locality, a));
	const char *comma = *locality ? ", " : "";

	if (file)
		return arena_printf(a, "{popularity: %s%s%s}", file, comma, locality);
	if (k->zipf > 0)
		return arena_printf(a, "{zipf: %s%s%s}", number_text(k->zipf, a), comma, locality);
	if (k->correlation > 0)
		return arena_printf(a, "{correlation: %s%s%s}", number_text(k->correlation, a), comma, locality);
	if (k->zipf == 0 || k->correlation == 0)
		return *locality ? arena_printf(a, "{zipf: 0, %s}", locality) : "uniform";
	return *locality ? arena_printf(a, "{%s}", locality) : "typical";
}

/* Of the numbers that "typical" stands for. */
static uint64_t routing_hash(const struct routing *r)
{
	uint64_t h = hash_bytes(HASH_INIT, &r->strays, sizeof(r->strays));

	for (size_t i = 0; i < r->n; i++) {
		h = hash_bytes(h, &r->point[i].n_expert, sizeof(r->point[i].n_expert));
		h = hash_bytes(h, &r->point[i].correlation, sizeof(r->point[i].correlation));
	}
	return h;
}

/* Tokens that a phase has beyond the recorded ones. */
static bool runs_out(const struct experts_record *r, enum trace_phase phase, uint64_t rows)
{
	return rows > r->n_tokens[phase];
}

/* Recorded routing: what was used instead of drawn. */
static int load_record(struct scenario *s, const struct yaml_node *routing, const struct routing_keys *keys, struct arena *a,
	struct err *err)
{
	const struct yaml_node *node = yaml_get(routing, "trace");
	const struct trace_workload *w = &s->workload;
	struct experts_record *record;

	for (const struct yaml_node *n = routing->child; n; n = n->next)
		if (n != node)
			return err_at(err, ERR_INPUT, &n->key_pos, "'%s' beside 'trace': nothing is drawn then", n->key);
	if (experts_record_read(beside(node, s, a), s->model, a, &record, err))
		return said_at(node, err);
	s->routing.record = record;
	s->routing.text = arena_printf(a, "{trace: %s}", keys->trace);
	s->routing.key = arena_printf(a, "{trace: %016" PRIx64 "}", record->hash);
	s->routing.repeats = runs_out(record, TRACE_PREFILL, w->batch * w->prompt) ||
		runs_out(record, TRACE_DECODE, w->batch * w->generate);
	return 0;
}

static bool has_experts(const struct model *m)
{
	for (uint32_t i = 0; i < m->n_layer; i++)
		if (m->layers[i].n_expert)
			return true;
	return false;
}

static int unknown_routing(const struct yaml_node *word, struct err *err)
{
	struct suggest near;
	char text[64];

	suggest_init(&near, word->text);
	suggest_offer(&near, "typical");
	suggest_offer(&near, "uniform");
	return err_at(err, ERR_INPUT, &word->pos, "unknown routing '%.100s'; it is 'typical', 'uniform', or a map of "
		"correlation, zipf, popularity, locality, trace%s", word->text, suggest_text(&near, text, sizeof(text)));
}

static int load_routing(struct scenario *s, const struct keys *k, struct arena *a, struct err *err)
{
	struct scenario_routing *r = &s->routing;
	struct routing_keys keys;
	struct experts_popularity popularity;

	param_defaults(routing_params, ARRAY_LEN(routing_params), &keys, a);
	if (k->routing && is_word(k->routing, "uniform"))
		keys.zipf = 0;
	else if (k->routing && !is_word(k->routing, "typical")) {
		if (k->routing->kind == YAML_SCALAR)
			return unknown_routing(k->routing, err);
		if (param_fill(routing_params, ARRAY_LEN(routing_params), k->routing, "routing", &keys, a, err))
			return -1;
		if (s->recorded)
			return err_at(err, ERR_INPUT, &k->routing->pos, "the recorded workload has its own routing");
	}
	const struct yaml_node *node = k->routing ? yaml_get(k->routing, "popularity") : NULL;
	bool zipf = !isnan(keys.zipf), correlation = !isnan(keys.correlation);
	struct experts_law law = {.zipf = zipf ? keys.zipf : 0,
		.correlation = correlation ? keys.correlation : 0, .locality = keys.locality};
	struct routing typical;
	if (zipf + correlation + (node != NULL) > 1)
		return err_at(err, ERR_INPUT, &k->routing->pos, "routing is by %s or by %s, not by both",
			correlation ? "correlation" : "zipf", node ? "popularity" : "zipf");
	r->text = r->key = routing_canonical(&keys, NULL, a);
	if (!has_experts(s->model)) {
		r->text = r->key = "uniform"; /* as good as any */
	} else if (!zipf && !correlation && !node && !keys.trace) {
		if (routing_read(a, &typical, err))
			return -1;
		law.typical = &typical;
		r->key = arena_printf(a, "%s %016" PRIx64, r->text, routing_hash(&typical));
	}
	if (node) {
		uint64_t hash;
		if (popularity_read(beside(node, s, a), s->model, a, &popularity, &hash, err))
			return said_at(node, err);
		law.popularity = &popularity;
		r->text = routing_canonical(&keys, yaml_flow_text(a, node, false), a);
		r->key = routing_canonical(&keys, arena_printf(a, "%016" PRIx64, hash), a);
	}
	if (keys.trace && load_record(s, k->routing, &keys, a, err))
		return -1;
	if (experts_new(&law, s->model, s->seed, a, &r->experts, err)) {
		struct err copy = *err;
		return err_at(err, copy.code, k->routing ? &k->routing->pos : NULL, "%s", copy.msg);
	}
	return 0;
}

/* The engine's flags with every default written out, in table order. */
static const char *flags_canonical(const struct scenario *s, struct arena *a)
{
	const char *text = "";

	for (size_t i = 0; i < s->engine->n_flags; i++) {
		const struct param *row = &s->engine->flag[i];
		const struct yaml_node *node = yaml_get(s->flags_node, row->key);
		text = arena_printf(a, "%s%s%s: %s", text, i ? ", " : "", row->key,
			node ? yaml_flow_text(a, node, true) : row->def ? row->def : "unset");
	}
	return text;
}

/* A recorded workload is named by its contents. */
static const char *workload_canonical(const struct scenario *s, struct arena *a)
{
	const struct trace_workload *w = &s->workload;

	if (s->recorded)
		return arena_printf(a, "trace: %016" PRIx64, trace_file_hash(s->recorded));
	if (s->n_requests)
		return arena_printf(a, "trace: %016" PRIx64 ", requests: %" PRIu64, s->requests_hash, s->n_requests);
	return arena_printf(a, "batch: %" PRIu64 ", prompt: %" PRIu64 ", generate: %" PRIu64 ", depth: %" PRIu64, w->batch,
		w->prompt, w->generate, w->depth);
}

/* What is run, without the names of model and machine. */
static const char *what_canonical(const struct scenario *s, const char *routing, struct arena *a)
{
	return arena_printf(a,
		"engine: %s, flags: {%s}, workload: {%s}, routing: %s, seed: %" PRIu64, s->engine_name,
		flags_canonical(s, a), workload_canonical(s, a), routing, s->seed);
}

static void identify(struct scenario *s, struct arena *a)
{
	uint64_t h = HASH_INIT;

	s->canonical = arena_printf(a, "{model: %s, quant: %s, machine: %s, %s}", s->model_name, s->quant,
		yaml_flow_text(a, s->machine_node, true), what_canonical(s, s->routing.text, a));
	h = hash_text(h, what_canonical(s, s->routing.key, a));
	h = hash_text(h, s->engine->version);
	h = hash_text(h, model_canonical(s->model, a));
	h = hash_text(h, hw_machine_canonical(s->machine, a));
	if (s->cost)
		h = hash_text(h, cost_canonical(s->cost, a));
	snprintf(s->key, sizeof(s->key), "%016" PRIx64, h);
}

static int need(const struct yaml_node *root, const char *file, const char *key, struct err *err)
{
	struct err_pos pos = {file, 1, 1};

	if (yaml_get(root, key))
		return 0;
	return err_at(err, ERR_INPUT, &pos, "the scenario has no '%s'", key);
}

static int load_tree(struct yaml_node *root, const char *file, const struct scenario_set *set, size_t n_set,
	struct arena *a, struct scenario **out, struct err *err)
{
	struct scenario *s = arena_new(a, struct scenario);
	struct keys k = {0};

	*s = (struct scenario){.file = file, .set = set, .n_set = n_set};
	if (apply_plain_sets(s, root, a, err) ||
		param_fill(scenario_params, ARRAY_LEN(scenario_params), root, "the scenario", &k, a, err) ||
		need(root, file, "model", err) || need(root, file, "machine", err) ||
		need(root, file, "engine", err))
		return -1;
	s->seed = k.seed;
	s->sweep = k.sweep;
	if (load_model(s, &k, root, a, err) || load_machine(s, &k, a, err) || load_engine(s, &k, root, a, err) ||
		load_workload(s, &k, a, err) || load_routing(s, &k, a, err))
		return -1;
	identify(s, a);
	*out = s;
	return 0;
}

int scenario_load(const char *path, const struct scenario_set *set, size_t n_set, struct arena *a,
	struct scenario **out, struct err *err)
{
	struct yaml_node *root;

	return yaml_read_file(path, a, &root, err) || load_tree(root, path, set, n_set, a, out, err) ? -1 : 0;
}

int scenario_load_text(const char *text, const char *name, struct arena *a, struct scenario **out, struct err *err)
{
	struct yaml_node *root;

	return yaml_read_text(text, strlen(text), name, a, &root, err) || load_tree(root, name, NULL, 0, a, out, err) ?
		-1 :
		0;
}

/* Lines that nobody typed are no place to look at. */
static void forget_lines(struct yaml_node *node)
{
	for (struct yaml_node *n = node->child; n; n = n->next) {
		n->pos.line = n->pos.col = n->key_pos.line = n->key_pos.col = 0;
		forget_lines(n);
	}
}

int scenario_load_typed(const char *text, const char *name, const char *flags, int col, const struct scenario_set *set,
	size_t n_set, struct arena *a, struct scenario **out, struct err *err)
{
	struct yaml_node *root, *node = arena_new(a, struct yaml_node);

	if (yaml_read_text(text, strlen(text), name, a, &root, err))
		return -1;
	forget_lines(root);
	node->kind = YAML_SCALAR;
	node->key = "flags";
	node->text = flags;
	node->pos = node->key_pos = (struct err_pos){name, 1, col};
	node->next = root->child;
	root->child = node;
	return load_tree(root, name, set, n_set, a, out, err);
}
