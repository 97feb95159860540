#include "sim/store/claims.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Keys are below this byte; at it is who has the file open. */
#define PRESENT (INT64_C(1) << 62)

/* -1 with EAGAIN or EACCES: another has it. Locks of an open file, not of a process: another file's end ends none. */
static int lock(const struct claims *c, short type, int64_t byte)
{
	struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)byte, .l_len = 1};

	return fcntl(c->fd, F_OFD_SETLK, &l);
}

static int64_t byte_of(const char *key)
{
	return (int64_t)(strtoull(key, NULL, 16) & (uint64_t)(PRESENT - 1));
}

void claims_open(struct claims *c, const char *db, struct arena *a)
{
	char real[PATH_MAX];
	struct stat st;

	c->path = arena_printf(a, "%s-claims", realpath(db, real) ? real : db);
	c->fd = open(c->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
	/* What is no empty file is another's: it is not locked, and stays. */
	if (c->fd >= 0 && (fstat(c->fd, &st) || !S_ISREG(st.st_mode) || st.st_size || lock(c, F_RDLCK, PRESENT))) {
		close(c->fd);
		c->fd = -1;
	}
}

bool claims_take(const struct claims *c, const char *key)
{
	return c->fd < 0 || lock(c, F_WRLCK, byte_of(key)) == 0 || (errno != EAGAIN && errno != EACCES);
}

void claims_give(const struct claims *c, const char *key)
{
	if (c->fd >= 0)
		lock(c, F_UNLCK, byte_of(key));
}

void claims_close(struct claims *c)
{
	if (c->fd < 0)
		return;
	/* Who opens it in between claims in a file without a name: then two may do the same. */
	if (lock(c, F_WRLCK, PRESENT) == 0)
		unlink(c->path);
	close(c->fd);
	c->fd = -1;
}
