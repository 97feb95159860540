/*
 * opg_text.h - the lines of an .opg file as tables: reading and writing go by the same rows.
 */
#ifndef SIM_CORE_OPG_TEXT_H
#define SIM_CORE_OPG_TEXT_H

#include "sim/core/opg.h"

enum opg_type {
	OPG_TEXT,   /* const char *: a word */
	OPG_CHOICE, /* int: index of one of names */
	OPG_INDEX,  /* int: of what stands above; OPG_NONE where that is the default */
	OPG_LAYER,  /* int, -1 or more */
	OPG_COUNT,  /* uint64_t */
	OPG_TIME,   /* sim_time */
	OPG_REAL,   /* double, >= 0 */
	OPG_AFTER,  /* after, n_after of an operation */
	OPG_PATH,   /* hop, n_hops of an operation */
};

/* What an index may refer to. */
enum opg_of { OPG_RESOURCES, OPG_MEMORIES, OPG_DEVICES, OPG_UNITS, OPG_BUFFERS };

struct opg_field {
	const char *key;
	enum opg_type type;
	size_t offset;
	const char *def;          /* as it would be written; NULL: the key must be there */
	const char *const *names; /* OPG_CHOICE */
	enum opg_of of;           /* OPG_INDEX */
};

struct opg_line {
	const char *word;
	const struct opg_field *field;
	size_t n;
};

/* What the lines with fields are, apart from operations, which are by enum opg_kind. */
enum { OPG_LINE_STEPS, OPG_LINE_RESOURCE, OPG_LINE_MEMORY, OPG_LINE_DEVICE, OPG_LINE_UNIT, OPG_LINE_BUFFER, OPG_LINE_N };
extern const struct opg_line opg_line[OPG_LINE_N];
extern const struct opg_line opg_op_line[OPG_KIND_N];

/* Numbers above these are refused: they would overflow a sum somewhere, and no machine has them. */
#define OPG_MAX_BYTES (UINT64_C(1) << 50)
#define OPG_MAX_REAL 1e24
#define OPG_MIN_REAL 1e-24 /* of what is not 0 */
#define OPG_MAX_HOPS 64

#endif
