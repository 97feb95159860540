/*
 * probe_source.c - where the texts come from: files below a root, folders, and programs run without a shell.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "hw/probe_text.h"

/* The largest by far is pci.ids, 1.5 MB; a /proc/cpuinfo of 1024 threads has as much. */
#define MAX_TEXT_BYTES ((size_t)16 << 20)

static const char *full_path(const struct probe_source *s, const char *path)
{
	return arena_printf(s->a, "%s/%s", s->root ? s->root : "", path);
}

const char *probe_file(const struct probe_source *s, const char *path)
{
	struct stat st;
	char *text;
	size_t len;

	path = full_path(s, path);
	if (stat(path, &st) || !S_ISREG(st.st_mode) ||
		file_read(path, MAX_TEXT_BYTES, s->a, &text, &len, NULL))
		return NULL;
	return text;
}

const char *probe_word(const struct probe_source *s, const char *path)
{
	const char *text = probe_file(s, path);
	const char *line = text ? probe_line(&text, s->a) : NULL;

	return line ? line : "";
}

/* Names of others go into texts of ours. */
static bool is_plain(const char *name)
{
	while (*name > ' ' && *name <= '~')
		name++;
	return !*name;
}

static int by_name(const void *a, const void *b)
{
	return strverscmp(*(const char *const *)a, *(const char *const *)b);
}

const char **probe_folder(const struct probe_source *s, const char *path, size_t *n)
{
	struct {
		VEC(const char *);
	} names = {0};
	DIR *dir = opendir(full_path(s, path));

	for (const struct dirent *e; dir && (e = readdir(dir));)
		if (e->d_name[0] != '.' && is_plain(e->d_name))
			VEC_PUSH(&names, s->a, arena_strdup(s->a, e->d_name));
	if (dir)
		closedir(dir);
	if (names.n)
		qsort(names.at, names.n, sizeof(*names.at), by_name);
	*n = names.n;
	return names.at;
}

/* ---- control groups ---- */

struct folders {
	VEC(const char *);
};

/* A path with ".." is outside of what is mounted here. */
static void add_groups(struct folders *dirs, struct arena *a, const char *mount, const char *path)
{
	char *at = arena_strdup(a, strstr(path, "..") ? "" : path);

	for (char *slash; (slash = strrchr(at, '/')); *slash = '\0')
		if (slash[1])
			VEC_PUSH(dirs, a, arena_printf(a, "%s%s", mount, at));
	VEC_PUSH(dirs, a, mount);
}

static bool lists_name(const char *names, const char *name)
{
	size_t len = strlen(name);

	for (; *names; names += strcspn(names, ","), names += *names == ',')
		if (strcspn(names, ",") == len && !strncmp(names, name, len))
			return true;
	return false;
}

/* A line of /proc/self/cgroup is "4:memory:/path" (version 1) or "0::/path" (version 2). */
const char **probe_groups(const struct probe_source *s, const char *controller, size_t *n)
{
	const char *text = probe_file(s, "proc/self/cgroup"), *mount = "sys/fs/cgroup";
	const char *mount_v1 = arena_printf(s->a, "%s/%s", mount, controller);
	struct folders dirs = {0};
	char *line;

	while (text && (line = probe_line(&text, s->a))) {
		char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = '\0';
		if (!names[1])
			add_groups(&dirs, s->a, mount, path);
		else if (lists_name(names + 1, controller))
			add_groups(&dirs, s->a, mount_v1, path);
	}
	*n = dirs.n;
	return dirs.at;
}

/* ---- programs ---- */

static void be_program(int out, const char *const *argv)
{
	int null = open("/dev/null", O_RDWR);

	/* Between fork and exec only what is safe there; the environment is this process's own copy. */
	if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(null, 2) < 0 ||
		setenv("LC_ALL", "C", 1))
		_exit(127);
	execvp(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

static int left_ms(const struct timespec *start, int seconds)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	int64_t gone =
		(int64_t)(now.tv_sec - start->tv_sec) * 1000 + (now.tv_nsec - start->tv_nsec) / 1000000;
	return gone < seconds * 1000 ? (int)(seconds * 1000 - gone) : 0;
}

struct output {
	VEC(char);
};

/* True when the program closed its output in time. */
static bool read_output(
	int fd, const struct timespec *start, int seconds, struct output *out, struct arena *a)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	char buf[4096];

	while (out->n < MAX_TEXT_BYTES) {
		int ready = poll(&pfd, 1, left_ms(start, seconds));
		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0)
			return false;
		ssize_t got = read(fd, buf, sizeof(buf));
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got == 0;
		VEC_RESERVE(out, a, out->n + (size_t)got);
		memcpy(out->at + out->n, buf, (size_t)got);
		out->n += (size_t)got;
	}
	return false;
}

/* True when it ended well in time; one that does not end is killed. */
static bool wait_for(pid_t pid, bool closed, const struct timespec *start, int seconds)
{
	const struct timespec nap = {.tv_nsec = 5000000};
	int status;
	pid_t got;

	while ((got = waitpid(pid, &status, closed ? WNOHANG : 0)) == 0 || (got < 0 && errno == EINTR)) {
		if (left_ms(start, seconds)) {
			nanosleep(&nap, NULL);
			continue;
		}
		kill(pid, SIGKILL);
		closed = false;
	}
	return got == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static const char *run_program(const char *const *argv, int seconds, struct arena *a)
{
	struct output out = {0};
	struct timespec start;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return NULL;
	clock_gettime(CLOCK_MONOTONIC, &start);
	pid_t pid = fork();
	if (pid == 0)
		be_program(ends[1], argv);
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return NULL;
	}
	bool closed = read_output(ends[0], &start, seconds, &out, a);
	close(ends[0]);
	if (!closed)
		kill(pid, SIGKILL);
	if (!wait_for(pid, closed, &start, seconds) || !closed)
		return NULL;
	VEC_PUSH(&out, a, '\0');
	return out.at;
}

const char *probe_program(
	const struct probe_source *s, const char *recorded, const char *const *argv, int seconds)
{
	return s->root ? probe_file(s, recorded) : run_program(argv, seconds, s->a);
}
