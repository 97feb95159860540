/*
 * cmd_validate.h - what validate shows of its rows: all or the worst, as text, Markdown or JSON.
 */
#ifndef SIM_CMD_CMD_VALIDATE_H
#define SIM_CMD_CMD_VALIDATE_H

#include "sim/cmd/cmd.h"
#include "sim/run/validate.h"

struct validate_show {
	unsigned worst;      /* so many rows, the worst first; 0: all, as in the file */
	const char *reasons; /* file of them; NULL: none */
	bool one_machine;    /* of one's own file: what was skipped is few */
	bool markdown, json;
};

/* To standard output. Fails when the reasons cannot be read or are of no row. */
int validate_show(const struct validate *v, const struct validate_show *how, struct arena *a, struct err *err);

struct leave_out;
void validate_show_leave_out(const struct leave_out *o, bool markdown);

#endif
