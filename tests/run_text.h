/*
 * run_text.h - whole scenarios in tests: from text to a result, or to the list of operations of its first step.
 */
#ifndef TESTS_RUN_TEXT_H
#define TESTS_RUN_TEXT_H

#include "sim/run/run.h"
#include "tests/test.h"

struct ran {
	struct arena arena;
	struct scenario *scenario;
	struct result r;
};

static inline void load(struct ran *ran, const char *text, const char *sets)
{
	static const char *const none = "";
	char path[64];
	struct err err = {0};
	struct scenario_set *set;
	size_t n = 0;

	arena_init(&ran->arena, NULL, NULL);
	set = arena_array(&ran->arena, struct scenario_set, 16);
	char *copy = arena_strdup(&ran->arena, sets ? sets : none), *save;
	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char *equals = strchr(word, '=');
		*equals = '\0';
		set[n++] = (struct scenario_set){.key = word, .value = equals + 1};
	}
	test_file(path, text, strlen(text));
	int rc = scenario_load(arena_strdup(&ran->arena, path), set, n, &ran->arena, &ran->scenario, &err);
	unlink(path);
	if (rc)
		ck_abort_msg("%s:%d:%d: %s", err.file, err.line, err.col, err.msg);
}

static inline struct result run(const char *text, const char *sets, bool exact)
{
	struct ran ran;
	struct run_options o = {.exact = exact};
	struct err err = {0};
	struct result r;

	load(&ran, text, sets);
	assert_ok(run_scenario(ran.scenario, &o, &ran.arena, &r, NULL, &err), err);
	arena_release(&ran.arena);
	return r;
}

/* The operations of one decode step in the order in which they end, as text. */
struct listing {
	char text[4096];
};

static inline void list_op(void *ctx, const struct op *op, sim_time now)
{
	struct listing *l = ctx;
	size_t n = strlen(l->text);
	static const char *const kinds[] = {"step", "copy", "kernel", "join", "wait"};
	enum exec_kind kind = exec_tag_kind(op->tag);

	(void)now;
	if (kind == EXEC_STEP)
		snprintf(l->text + n, sizeof(l->text) - n, "step\n");
	else if (kind == EXEC_COPY || kind == EXEC_KERNEL)
		snprintf(l->text + n, sizeof(l->text) - n, "%s %d %s\n", kinds[kind], exec_tag_layer(op->tag),
			model_group_name(exec_tag_group(op->tag)));
}

static inline void ignore_step(void *ctx, const struct exec_record *r)
{
	(void)ctx;
	(void)r;
}

/* Of the step with this number. */
static inline void list_step(const char *text, const char *sets, uint64_t step, struct listing *l)
{
	struct ran ran;
	struct placement p;
	struct trace t;
	struct exec x;
	struct err err = {0};

	load(&ran, text, sets);
	const struct scenario *s = ran.scenario;
	run_make_trace(&t, s, &ran.arena);
	struct engine_job job = {s->model, s->machine, s->cost, &t, s->flags, s->seed};
	assert_ok(s->engine->place(&job, &p, &ran.arena, &err), err);
	exec_init(&x, &p, &t, s->engine->lower, s->engine->state_new(&job, &p, &ran.arena), s->engine->overheads, NULL,
		&ran.arena);
	l->text[0] = '\0';
	exec_spans(&x, list_op, l);
	assert_ok(exec_run(&x, step, 1, ignore_step, NULL, &err), err);
	arena_release(&ran.arena);
}

/* A model of three layers, so that the list can be read. */
#define SMALL_MODEL                                                                                                          \
	"{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"hidden_size\": 1024,\n"                 \
	"\"intermediate_size\": 3584, \"num_hidden_layers\": 3, \"num_attention_heads\": 8, \"num_key_value_heads\": 2,\n" \
	"\"vocab_size\": 5003, \"tie_word_embeddings\": false, \"torch_dtype\": \"float16\"}\n"

/* Two layers with 8 experts of which 2 are used. */
#define SMALL_MOE                                                                                                        \
	"{\"architectures\": [\"MixtralForCausalLM\"], \"model_type\": \"mixtral\", \"hidden_size\": 1024,\n"             \
	"\"intermediate_size\": 3584, \"num_hidden_layers\": 2, \"num_attention_heads\": 8, \"num_key_value_heads\": 2,\n" \
	"\"num_local_experts\": 8, \"num_experts_per_tok\": 2,\n"                                                         \
	"\"vocab_size\": 5003, \"tie_word_embeddings\": false, \"torch_dtype\": \"float16\"}\n"

/* Lists the operations of a step of a scenario with this config.json as its model. */
static inline void list_model_step(uint64_t step, const char *model_json, const char *quant, const char *scenario,
	struct listing *l)
{
	char path[64], renamed[80], text[4096];

	test_file(path, model_json, strlen(model_json));
	snprintf(renamed, sizeof(renamed), "%s.json", path);
	ck_assert_int_eq(rename(path, renamed), 0);
	snprintf(text, sizeof(text), "model: %s\nquant: %s\n%s", renamed, quant, scenario);
	list_step(text, NULL, step, l);
	unlink(renamed);
}

static inline void check_order_of(uint64_t step, const char *model_json, const char *scenario, const char *want)
{
	struct listing l;

	list_model_step(step, model_json, "f16", scenario, &l);
	ck_assert_str_eq(l.text, want);
}

/* Of the first step. */
static inline void check_order(const char *model_json, const char *scenario, const char *want)
{
	check_order_of(0, model_json, scenario, want);
}

#endif
