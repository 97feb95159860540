#include "base/err.h"

#include <stdarg.h>
#include <string.h>

#include "base/utf8.h"

static void set_message(struct err *err, enum err_code code, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));

static void set_message(struct err *err, enum err_code code, const char *fmt, va_list ap)
{
	/* By way of a copy: an argument may point into the message that is being replaced. */
	char msg[sizeof(err->msg)];

	if (vsnprintf(msg, sizeof(msg), fmt, ap) < 0)
		msg[0] = '\0';
	memcpy(err->msg, msg, sizeof(msg));
	err->code = code;
}

int err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
	if (!err)
		return -1;
	va_list ap;
	va_start(ap, fmt);
	set_message(err, code, fmt, ap);
	va_end(ap);
	err->file[0] = '\0';
	err->line = err->col = 0;
	return -1;
}

int err_at(struct err *err, enum err_code code, const struct err_pos *pos, const char *fmt, ...)
{
	if (!err)
		return -1;
	va_list ap;
	va_start(ap, fmt);
	set_message(err, code, fmt, ap);
	va_end(ap);
	if (!pos || !pos->file)
		err->file[0] = '\0';
	else if (pos->file != err->file) /* a position may come from the error that is being replaced */
		snprintf(err->file, sizeof(err->file), "%s", pos->file);
	err->line = pos ? pos->line : 0;
	err->col = pos ? pos->col : 0;
	return -1;
}

int err_prefix(struct err *err, const char *fmt, ...)
{
	if (!err)
		return -1;
	char both[sizeof(err->msg)];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(both, sizeof(both), fmt, ap);
	va_end(ap);
	if (n < 0)
		return -1;
	/* The prefix is worth more than the end of a message too long for both. */
	size_t used = (size_t)n < sizeof(both) - 3 ? (size_t)n : sizeof(both) - 3;
	memcpy(both + used, ": ", 2);
	used += 2;
	size_t rest = strlen(err->msg);
	if (rest > sizeof(both) - 1 - used)
		rest = sizeof(both) - 1 - used;
	memcpy(both + used, err->msg, rest);
	both[used + rest] = '\0';
	memcpy(err->msg, both, sizeof(both));
	return -1;
}

/* A message may quote anything from a file; what could move a cursor or break a line must not get out. */
void err_print(const struct err *err, FILE *to)
{
	fputs("offsim: ", to);
	if (err->file[0]) {
		utf8_print(err->file, to);
		fputc(':', to);
	}
	if (err->line > 0) {
		fprintf(to, "%d:", err->line);
		if (err->col > 0)
			fprintf(to, "%d:", err->col);
	}
	if (err->file[0] || err->line > 0)
		fputc(' ', to);
	utf8_print(err->msg, to);
	fputc('\n', to);
}

int err_exit_status(const struct err *err)
{
	switch (err->code) {
	case ERR_INPUT:
	case ERR_USAGE:
		return 2;
	case ERR_NONE:
	case ERR_IO:
	case ERR_NOMEM:
	case ERR_INTERRUPTED:
		break;
	}
	return 1;
}
