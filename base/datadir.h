/*
 * datadir.h - where hw/, models/cards/, scenarios/ and plots/ are.
 *
 * The first of these that holds hw/machines: $OFFSIM_DATA (named but not holding it is an error), the
 * tree the program was built in (two folders above the program's, or four for a test program), ../share/offsim
 * from the program's folder, and the prefix it was configured for.
 */
#ifndef BASE_DATADIR_H
#define BASE_DATADIR_H

#include "base/arena.h"
#include "base/err.h"

/* The folder, no slash at its end. */
int datadir_find(struct arena *a, const char **out, struct err *err);

/* Names (without suffix) of the files DATADIR/sub with names ending in suffix, sorted; "_x" and ".x" skipped. */
int datadir_list(struct arena *a, const char *sub, const char *suffix, const char ***names, size_t *n,
		 struct err *err);

#endif
