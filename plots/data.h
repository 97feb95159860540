/*
 * data.h - the text of a data file for gnuplot: blocks of rows, two blank lines between blocks.
 */
#ifndef PLOTS_DATA_H
#define PLOTS_DATA_H

#include "base/arena.h"
#include "base/vec.h"

struct data {
	struct arena *arena;
	VEC(char); /* ends in a NUL once something was added */
};

void data_text(struct data *d, const char *text);
void data_block(struct data *d); /* what follows is another block */
/* In quotes, on one line. What a string in quotes cannot hold is replaced in all names. */
void data_name(struct data *d, const char *name, const char *after);
/* The same as a label in lines, broken at each ", ". */
void data_lines(struct data *d, const char *name);
/* NAN is written as NaN, which is what style.gp calls missing. */
void data_number(struct data *d, double value, const char *after);

#endif
