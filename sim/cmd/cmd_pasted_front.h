/*
 * cmd_pasted_front.h - what stands in front of a program in a command line as pasted.
 *
 *	GGML_CUDA_NO_PINNED=1 numactl --cpunodebind=0 --membind=0 ./llama-server -m x.gguf
 *	└──── variables ────┘ └── numactl and its options ──────┘ └ the program ...
 *
 * What of it llama.cpp's family feels becomes flags of ours; the rest is told, so that nobody thinks it was read.
 */
#ifndef SIM_CMD_CMD_PASTED_FRONT_H
#define SIM_CMD_CMD_PASTED_FRONT_H

#include <stdbool.h>

#include "base/arena.h"

struct pasted_front {
	const char *flags;       /* " --no-pinned --one-socket"; "": none */
	const char *all;         /* the words themselves */
	const char *passed_over; /* words that say nothing here; NULL: none */
	bool interleaved;        /* pages of all sockets in turn, whatever the program's --numa does with threads */
};

/* How many words stand in front of the program. */
int pasted_front(char **argv, int argc, struct pasted_front *front, struct arena *a);
/* Without any folder before it. */
const char *pasted_without_folder(const char *word);
/* For an engine's own splitting of words, where it is one. */
const char *pasted_quoted(struct arena *a, const char *word);

#endif
