/*
 * cmd_pasted_front.h - what stands in front of a program in a command line as pasted.
 *
 *	GGML_CUDA_NO_PINNED=1 nice -n 5 numactl --cpunodebind=0 --membind=0 ./llama-server -m x.gguf
 *	└──── variables ────┘ └ programs that start others, and their options ──┘ └ the program ...
 *
 * What of it an engine feels becomes flags of ours; the rest is told, so that nobody thinks it was read.
 */
#ifndef SIM_CMD_CMD_PASTED_FRONT_H
#define SIM_CMD_CMD_PASTED_FRONT_H

#include <stdbool.h>

#include "base/vec.h"
#include "sim/engine/engine_table.h"

struct pasted_variable {
	const char *name, *value;
};

/* A text that grows; `at` is NULL while it is empty. */
struct pasted_text {
	VEC(char);
	struct arena *arena;
};

struct pasted_front {
	int n; /* words */
	struct {
		VEC(struct pasted_variable);
	} variables;
	struct pasted_text passed_over; /* words that say nothing to anybody here; empty: none */
	const char *numactl;     /* the word itself; NULL: not there */
	bool one_socket;         /* threads and memory on one socket */
	bool interleaved;        /* pages of all sockets in turn, whatever the program's --numa does with threads */
	const char *instead;     /* what to paste in place of all of it: a container is no program; NULL: nothing */
};

void pasted_append(struct pasted_text *t, const char *s);
void pasted_front(char **argv, int argc, struct pasted_front *front, struct arena *a);
/* What of it the engine feels that its own words do not say already; `argv` are those. The rest goes to front->passed_over. */
const char *pasted_front_flags(struct pasted_front *front, const struct engine_ops *e, char **argv, int argc, struct arena *a);
/* How many of a machine's GPUs variables leave to be seen; all when there are none, or it cannot be told. */
int pasted_front_gpus(struct pasted_front *front, const struct hw_machine *m, struct arena *a);

/* Without any folder before it, nor ".exe" behind. */
const char *pasted_program_name(const char *word, struct arena *a);
/* For an engine's own splitting of words, where it is one. */
const char *pasted_quoted(struct arena *a, const char *word);

#endif
