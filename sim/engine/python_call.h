/*
 * python_call.h - the text of a Python call as flags.
 *
 *	device_map = infer_auto_device_map(model, max_memory={0: "22GiB", "cpu": "64GiB"}, dtype=torch.float16)
 *	             └ function ─────────┘ └ positional ────┘  └ keywords ───────────────────────────────────┘
 *	=>  {max_memory: {0: 22GiB, cpu: 64GiB}, dtype: float16}
 *
 * Nothing is evaluated. Values are strings, numbers, names (None: as if it were not there; True and False: yes and no; of
 * torch.float16 the last part), lists, tuples, dicts, and calls, which are kept as their text.
 */
#ifndef SIM_ENGINE_PYTHON_CALL_H
#define SIM_ENGINE_PYTHON_CALL_H

#include "base/yaml.h"

/* A function that may be called, with the names of its positional arguments in order; those named "" are passed over. */
struct python_function {
	const char *name;
	const char *const *positional; /* NULL-terminated */
	const char *implied_key, *implied_value; /* a flag that calling it sets; NULL: none */
	const char *model_key; /* the argument that names the model and is no flag; NULL: none */
};

/* Whether text looks like a call, not like flags. */
bool python_is_call(const char *text);

/* Whether one of n functions is called somewhere in the text. */
bool python_names(const char *text, const struct python_function *functions, size_t n);

/* The keywords of a call of one of n functions as a map whose nodes know where they stand; pos is that of the first
   character. Anything that is not one whole call is an error with line and column. *function: which. */
int python_call_parse(const char *text, const struct err_pos *pos, const struct python_function *functions, size_t n,
	struct arena *a, struct yaml_node **map, const struct python_function **function, struct err *err);

/* One value alone: "{0: '22GiB'}". Words need no quotes here. */
int python_value_parse(const char *text, const struct err_pos *pos, struct arena *a, struct yaml_node **value,
	struct err *err);

#endif
