#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct buffer {
	char *at;
	size_t n, cap;
};

static int too_large(const char *path, size_t max_bytes, struct err *err)
{
	if (max_bytes >> 20 && !(max_bytes & ((1 << 20) - 1)))
		return err_set(err, ERR_INPUT, "'%s' is larger than %zu MiB", path, max_bytes >> 20);
	return err_set(err, ERR_INPUT, "'%s' is larger than %zu bytes", path, max_bytes);
}

/* Makes room for want bytes and a NUL. */
static int reserve(struct buffer *b, size_t want, struct err *err)
{
	if (want < b->cap)
		return 0;
	char *at = realloc(b->at, want + 1);
	if (!at)
		return err_set(err, ERR_NOMEM, "out of memory");
	b->at = at;
	b->cap = want + 1;
	return 0;
}

/* Reads to the end whatever the size was said to be: it is 0 for pipes, and a file may grow. */
static int read_to_end(int fd, const char *path, size_t max_bytes, struct buffer *b, struct err *err)
{
	for (;;) {
		if (b->n > max_bytes)
			return too_large(path, max_bytes, err);
		if (b->n + 1 >= b->cap && reserve(b, b->cap * 2, err))
			return -1;
		ssize_t got = read(fd, b->at + b->n, b->cap - 1 - b->n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_set(err, ERR_IO, "cannot read '%s': %s", path, strerror(errno));
		if (!got)
			return 0;
		b->n += (size_t)got;
	}
}

static int read_open(int fd, const char *path, size_t max_bytes, struct buffer *b, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st))
		return err_set(err, ERR_IO, "cannot read '%s': %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return err_set(err, ERR_INPUT, "'%s' is a folder", path);
	if (st.st_size > 0 && (uintmax_t)st.st_size > max_bytes)
		return too_large(path, max_bytes, err);
	if (reserve(b, st.st_size > 0 ? (size_t)st.st_size + 1 : 4096, err))
		return -1;
	return read_to_end(fd, path, max_bytes, b, err);
}

int file_read_all(const char *path, size_t max_bytes, char **text, size_t *len, struct err *err)
{
	struct buffer b = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_set(err, ERR_INPUT, "cannot open '%s': %s", path, strerror(errno));
	int rc = read_open(fd, path, max_bytes, &b, err);
	close(fd);
	if (rc) {
		free(b.at);
		return -1;
	}
	b.at[b.n] = '\0';
	*text = b.at;
	*len = b.n;
	return 0;
}

int file_read(const char *path, size_t max_bytes, struct arena *a, char **text, size_t *len, struct err *err)
{
	char *all;

	if (file_read_all(path, max_bytes, &all, len, err))
		return -1;
	*text = arena_alloc(a, *len + 1);
	memcpy(*text, all, *len + 1);
	free(all);
	return 0;
}

static int cannot_write(const char *path, int fault, struct err *err)
{
	return err_set(err, ERR_IO, "cannot write '%s': %s", path, strerror(fault));
}

/* A file in the folder of the target that has no name yet; -1 where there are none, or none could be given a name. */
static int open_nameless(const char *target)
{
	char dir[PATH_MAX], self[64];
	const char *slash = strrchr(target, '/');
	int n = slash ? (int)(slash - target) + (slash == target) : 0;

	snprintf(dir, sizeof(dir), "%.*s", n, target);
	int fd = open(n ? dir : ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (fd >= 0 && access(self, F_OK)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static int give_name(const struct file_out *f)
{
	char self[64];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fileno(f->to));
	return linkat(AT_FDCWD, self, AT_FDCWD, f->beside, AT_SYMLINK_FOLLOW);
}

int file_out_open(struct file_out *f, const char *path, struct err *err)
{
	struct stat st;

	*f = (struct file_out){.path = path};
	if (!stat(path, &st) && !S_ISREG(st.st_mode))
		return err_set(err, ERR_IO, "cannot write '%s': it is %s", path,
			S_ISDIR(st.st_mode) ? "a folder" : "no regular file");
	if (!*path)
		return cannot_write(path, ENOENT, err);
	/* Renaming would replace a link: /dev/stdout, say, when output goes to a file. */
	if (!realpath(path, f->target) && snprintf(f->target, sizeof(f->target), "%s", path) >= (int)sizeof(f->target))
		return cannot_write(path, ENAMETOOLONG, err);
	/* Named as the process is: nobody else writes it. */
	if (snprintf(f->beside, sizeof(f->beside), "%s.%ld.part", f->target, (long)getpid()) >= (int)sizeof(f->beside))
		return cannot_write(path, ENAMETOOLONG, err);
	unlink(f->beside); /* of a process of that number that was killed */
	int fd = open_nameless(f->target);
	if (fd < 0) {
		fd = open(f->beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		f->named = fd >= 0;
	}
	f->to = fd < 0 ? NULL : fdopen(fd, "w");
	if (f->to)
		return 0;
	int fault = errno;
	if (fd >= 0)
		close(fd);
	file_out_abort(f);
	return cannot_write(path, fault, err);
}

int file_out_check(const char *path, struct err *err)
{
	struct file_out f;

	if (file_out_open(&f, path, err))
		return -1;
	file_out_abort(&f);
	return 0;
}

int file_out_commit(struct file_out *f, struct err *err)
{
	int fault = 0;

	if (ferror(f->to) || fflush(f->to))
		fault = errno ? errno : EIO;
	/* Some file systems know no fsync. */
	if (!fault && fsync(fileno(f->to)) && errno != EINVAL)
		fault = errno;
	if (!fault && !f->named && give_name(f))
		fault = errno;
	f->named |= !fault;
	if (fclose(f->to) && !fault)
		fault = errno;
	f->to = NULL;
	if (!fault && rename(f->beside, f->target))
		fault = errno;
	f->named &= fault != 0;
	file_out_abort(f);
	return fault ? cannot_write(f->path, fault, err) : 0;
}

void file_out_abort(struct file_out *f)
{
	if (f->to)
		fclose(f->to);
	if (f->named)
		unlink(f->beside);
	f->to = NULL;
	f->named = false;
}

int file_replace(const char *path, void (*write)(FILE *to, void *ctx), void *ctx, struct err *err)
{
	struct file_out f;

	if (file_out_open(&f, path, err))
		return -1;
	write(f.to, ctx);
	return file_out_commit(&f, err);
}
