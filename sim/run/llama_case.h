/*
 * llama_case.h - a test of llama-bench as a scenario: the same model, flags and tokens, on a machine that is given.
 *
 *	bench_llama ─┬─ model_type, model_n_params, model_size ──> a card and its quantization
 *	             ├─ n_gpu_layers, type_k, n_ubatch, …      ──> flags of engine llama.cpp
 *	             └─ n_prompt, n_gen, n_depth               ──> workload, and which rate is compared
 *
 * What cannot be told is no error: the case has no scenario and says why.
 */
#ifndef SIM_RUN_LLAMA_CASE_H
#define SIM_RUN_LLAMA_CASE_H

#include "hw/bench.h"
#include "sim/run/result.h"

/* What models look like to llama-bench, loaded once: those that the user names (names or paths) and the cards of
   models/cards. A single one that is named is every row's; of several, and of the cards where none of them fits, a row's is
   the one with as many parameters. All cases of it are made in one arena. */
struct llama_cards;
int llama_cards_load(const char *const *named, size_t n_named, struct arena *a, struct llama_cards **out, struct err *err);

struct llama_case {
	const char *scenario; /* its text; NULL: it cannot be run */
	const char *reason;   /* why not; "" when it can */
	const char *assumed;  /* what the row left open; "" when nothing */
	const char *model;    /* name or path; "" when none was found */
	enum result_field_id field; /* of the result, which times `scale` is tokens a second as llama-bench counts them */
	double scale;
};

/* machine is YAML in flow style: a quoted name, or a map. */
void llama_case_make(const struct bench_llama *row, const char *machine, struct llama_cards *cards, struct arena *a,
	struct llama_case *out);

/* text as a YAML scalar in double quotes. */
const char *llama_case_quoted(struct arena *a, const char *text);
/* A model or machine as the user named it, so that it means the same wherever it is written: paths are made absolute. */
const char *llama_case_named(struct arena *a, const char *name_or_path);

#endif
