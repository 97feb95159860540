#include "base/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_WINDOW ((size_t)256 << 10)

static const char utf8_mark[3] = "\xef\xbb\xbf";

int lines_open(struct lines *l, const char *path, size_t max_line, struct err *err)
{
	struct stat st;

	*l = (struct lines){.path = path, .max_line = max_line};
	l->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (l->fd < 0)
		return err_set(err, ERR_INPUT, "cannot open '%s': %s", path, strerror(errno));
	if (fstat(l->fd, &st) == 0 && S_ISDIR(st.st_mode)) {
		close(l->fd);
		return err_set(err, ERR_INPUT, "'%s' is a folder", path);
	}
	return 0;
}

void lines_close(struct lines *l)
{
	close(l->fd);
	free(l->buffer);
	l->buffer = NULL;
}

/* Reads on, behind what is there; what was given already makes room. */
static int fill(struct lines *l, struct err *err)
{
	if (l->at) {
		memmove(l->buffer, l->buffer + l->at, l->n - l->at);
		l->n -= l->at;
		l->at = 0;
	}
	if (l->n + 1 >= l->cap) {
		size_t cap = l->cap ? 2 * l->cap : FIRST_WINDOW;
		char *buffer = realloc(l->buffer, cap);
		if (!buffer)
			return err_set(err, ERR_NOMEM, "out of memory");
		l->buffer = buffer;
		l->cap = cap;
	}
	ssize_t got;
	do {
		got = read(l->fd, l->buffer + l->n, l->cap - 1 - l->n);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return err_set(err, ERR_IO, "cannot read '%s': %s", l->path, strerror(errno));
	l->end = got == 0;
	l->n += (size_t)got;
	l->n_bytes += (uint64_t)got;
	return 0;
}

/* The window holds max bytes from the beginning, or all; the mark is no part of them. */
static int begin(struct lines *l, size_t max, struct err *err)
{
	while (!l->end && l->n < max + sizeof(utf8_mark))
		if (fill(l, err))
			return -1;
	if (l->n >= sizeof(utf8_mark) && memcmp(l->buffer, utf8_mark, sizeof(utf8_mark)) == 0)
		l->at = sizeof(utf8_mark);
	return 0;
}

int lines_head(struct lines *l, size_t max, const char **text, size_t *len, struct err *err)
{
	if (begin(l, max, err))
		return -1;
	*text = l->buffer + l->at;
	*len = l->n - l->at < max ? l->n - l->at : max;
	return 0;
}

static int too_long(const struct lines *l, struct err *err)
{
	struct err_pos pos = {l->path, l->line + 1, 1};

	return err_at(err, ERR_INPUT, &pos, "a line is longer than %zu KiB", l->max_line >> 10);
}

int lines_next(struct lines *l, char **text, size_t *len, struct err *err)
{
	char *end = NULL;
	size_t seen = 0;

	if (l->again) {
		l->again = false;
		*text = l->buffer + l->text;
		*len = l->len;
		return 1;
	}
	if (l->n_bytes == 0 && !l->end && begin(l, 0, err))
		return -1;
	while (!(end = memchr(l->buffer + l->at + seen, '\n', l->n - l->at - seen)) && !l->end) {
		seen = l->n - l->at;
		if (seen > l->max_line)
			return too_long(l, err);
		if (fill(l, err))
			return -1;
	}
	if (!end && l->at == l->n)
		return 0;
	l->unended = !end;
	if (!end)
		end = l->buffer + l->n;
	l->text = l->at;
	l->len = (size_t)(end - l->buffer) - l->at;
	l->at += l->len + !l->unended;
	if (l->len > l->max_line)
		return too_long(l, err);
	l->line++;
	*text = l->buffer + l->text;
	const char *nul = memchr(*text, '\0', l->len);
	if (nul) {
		struct err_pos pos = {l->path, l->line, (int)(nul - *text) + 1};
		return err_at(err, ERR_INPUT, &pos, "a NUL byte: this is not a text file");
	}
	if (l->len && (*text)[l->len - 1] == '\r')
		l->len--;
	(*text)[l->len] = '\0';
	*len = l->len;
	return 1;
}

void lines_again(struct lines *l)
{
	l->again = true;
}

int lines_rewind(struct lines *l, struct err *err)
{
	if (lseek(l->fd, 0, SEEK_SET) < 0)
		return err_set(err, ERR_INPUT, "'%s' must be a file, for it is read twice: %s", l->path, strerror(errno));
	l->at = l->n = 0;
	l->line = 0;
	l->n_bytes = 0;
	l->end = l->again = l->unended = false;
	return 0;
}
