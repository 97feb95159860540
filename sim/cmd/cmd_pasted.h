/*
 * cmd_pasted.h - what predict, place and explain share: a command line pasted as typed for the engine.
 *
 *	offsim predict --machine M --quant Q --model NAME -- llama-server -m x.gguf -ngl 20 -ot exps=CPU
 *	                                                     └ program ┘  └ its flags: the engine's own table ┘
 *	offsim place   --machine M --model NAME -- 'infer_auto_device_map(model, max_memory={0: "22GiB"}, dtype=torch.float16)'
 *
 * The program, or the function of a Python call, names the engine; what offsim must know besides (machine, model,
 * quantization) comes from the options, or from the file behind -m or its name, or from dtype=.
 */
#ifndef SIM_CMD_CMD_PASTED_H
#define SIM_CMD_CMD_PASTED_H

#include "sim/cmd/cmd.h"
#include "sim/run/scenario.h"

struct pasted {
	const char *command; /* of offsim */
	struct arena arena;
	const char *machine, *model, *quant;
	/* What the command line itself names. */
	const char *named;        /* a model: a file, a folder, a name */
	const char *hub;          /* a model and its quantization in one */
	const char *weights;      /* the file that holds them, where it is not the model's */
	const char *quantization; /* what the engine makes when it loads it */
	const char *method;       /* KTransformers': what it makes of experts */
	bool library;             /* the name is one of Ollama's */
	bool by_name;             /* the model is what the name of a file says that is not here */
	const char *batch, *prompt, *generate, *depth;
	const char *last_frontier; /* of ds4-bench: the longest context it measures at */
	struct scenario_set *set; /* --set, in order; --seed is one too */
	size_t n_set;
	bool json, exact;
	int argc; /* what stands behind "--" */
	char **argv;
	struct scenario *scenario;
};

/* What the usage says of the options. */
extern const char pasted_usage[];

/* Whether there is a command line of an engine behind the options, or a scenario. */
bool pasted_is(int argc, char **argv);
/* Parses the options. Returns -1 to go on (then pasted_release must follow), else the exit status. */
int pasted_parse(struct pasted *p, int argc, char **argv, void (*usage)(void));
/* Loads the scenario. Returns -1 to go on, else the exit status. */
int pasted_load(struct pasted *p);
void pasted_release(struct pasted *p);

#endif
