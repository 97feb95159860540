/*
 * ledger.h - who occupies which memory, and does it fit. Capacities come in as plain numbers.
 */
#ifndef MODELS_LEDGER_H
#define MODELS_LEDGER_H

#include <stdbool.h>

#include "base/base.h"

enum ledger_category { LEDGER_WEIGHTS, LEDGER_KV, LEDGER_ACTIVATION, LEDGER_OVERHEAD, LEDGER_CATEGORY_N };

#define LEDGER_MAX_MEMORIES 32

struct ledger_row {
	char name[32]; /* memory */
	uint64_t capacity_bytes; /* all of it: what the system reserves is booked as overhead */
	uint64_t used_bytes[LEDGER_CATEGORY_N];
};

/* What a sum is made of: "weights", "device context", "staging buffers". */
struct ledger_line {
	int memory;
	enum ledger_category category;
	char what[28];
	uint64_t bytes;
};

#define LEDGER_MAX_LINES 96

struct ledger {
	int n;
	struct ledger_row row[LEDGER_MAX_MEMORIES];
	int n_lines;
	struct ledger_line line[LEDGER_MAX_LINES];
};

void ledger_init(struct ledger *l);
int ledger_add_memory(struct ledger *l, const char *name, uint64_t capacity_bytes); /* its index */
/* Adds bytes to the category, and to the line `what` of it (NULL: the category's own name). Saturates. */
void ledger_book(struct ledger *l, int memory, enum ledger_category c, const char *what, uint64_t bytes);
/* Takes bytes of a category from one memory to another; there must be as many of them in its line of the category's own
   name (BUG). */
void ledger_move(struct ledger *l, int from, int to, enum ledger_category c, uint64_t bytes);
uint64_t ledger_used(const struct ledger *l, int memory);
uint64_t ledger_free(const struct ledger *l, int memory);    /* 0 when overfull */
uint64_t ledger_missing(const struct ledger *l, int memory); /* 0 when it fits */
bool ledger_fits(const struct ledger *l);
const char *ledger_category_name(enum ledger_category c);

#endif
