/*
 * cmd_pasted_program.h - which engine a pasted command line starts.
 *
 *	./build/bin/llama-server …     python3 -m sglang.launch_server …     deepspeed --num_gpus 1 run_model.py …
 *	└──── a program ───────┘       └──── a module ───────────────┘       └ a launcher and its script ────────┘
 */
#ifndef SIM_CMD_CMD_PASTED_PROGRAM_H
#define SIM_CMD_CMD_PASTED_PROGRAM_H

#include "sim/cmd/cmd_pasted.h"
#include "sim/engine/engine_table.h"

#define PROGRAM_WORDS 3

/* How a program names what is no flag of its engine: model and workload. */
enum dialect {
	DIALECT_SERVER = 1, DIALECT_BENCH = 2, DIALECT_FLEXGEN = 4, DIALECT_ZERO = 8, DIALECT_EXLLAMA = 16, DIALECT_TABBY = 32,
	DIALECT_DS4_BENCH = 64, DIALECT_BATCHED = 128, DIALECT_ONE_BATCH = 256, DIALECT_KT = 512, DIALECT_OLLAMA = 1024,
};

struct program {
	/* That a command line begins with; of the first any folder before it is passed over, and any version behind "python". */
	const char *word[PROGRAM_WORDS];
	const char *engine;
	const char *kin; /* another engine whose program is called the same: taken where a flag is its own */
	enum dialect dialect;
	bool model_follows; /* as the first word behind them that is no flag */
	const char *script; /* named further on, with folders or without: a launcher's own flags come before it */
	const char *batch, *prompt, *generate; /* its own workload, where that is not ours; NULL: it is */
	/* What the program gives its engine when the command line does not, by either name, and the engine would not. */
	struct {
		const char *name, *alias, *value;
	} unsaid[2];
};

/* NULL: none is known; pasted_unknown_program says so and returns the exit status. */
const struct program *pasted_find_program(struct pasted *p);
int pasted_unknown_program(struct pasted *p);
/* How many words the program takes up, its script with them. */
int pasted_program_length(struct pasted *p, const struct program *g);
/* The program's engine, or the other one that its flags or folder speak of; `argv` are the words behind it. */
const struct engine_ops *pasted_engine(struct pasted *p, const struct program *g, char **argv, int argc);

#endif
