#include "sim/run/cuda_program.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME "offsim-cuda"
#define LOOK_MS 100 /* how often the flag of interrupts is looked at */

/* ---- where it is ---- */

static const char *beside(struct arena *a)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		return NULL;
	self[n] = '\0';
	char *slash = strrchr(self, '/');
	return slash ? arena_printf(a, "%.*s/%s", (int)(slash - self), self, NAME) : NULL;
}

static const char *in_path(struct arena *a)
{
	const char *path = getenv("PATH");

	for (size_t len; path && *path; path += len, path += *path == ':') {
		len = strcspn(path, ":");
		const char *file = arena_printf(a, "%.*s/%s", (int)len, path, NAME);
		if (len && access(file, X_OK) == 0)
			return file;
	}
	return NULL;
}

int cuda_program_open(struct cuda_program *p, struct arena *a, struct err *err)
{
	const char *tmp = getenv("TMPDIR"), *file = beside(a);
	char *folder = arena_printf(a, "%s/offsim-XXXXXX", tmp && *tmp ? tmp : "/tmp");

	*p = (struct cuda_program){.arena = a, .path = file && access(file, X_OK) == 0 ? file : in_path(a)};
	if (!p->path)
		return err_set(err, ERR_IO,
			"there is no " NAME " beside this program or in PATH; 'make cuda' builds it where the CUDA toolkit (nvcc) is");
	if (!mkdtemp(folder))
		return err_set(err, ERR_IO, "cannot make the folder '%s': %s", folder, strerror(errno));
	p->folder = folder;
	return 0;
}

const char *cuda_program_file(const struct cuda_program *p, const char *name)
{
	return arena_printf(p->arena, "%s/%s", p->folder, name);
}

void cuda_program_done(struct cuda_program *p)
{
	DIR *dir = p->folder ? opendir(p->folder) : NULL;

	for (const struct dirent *e; dir && (e = readdir(dir));)
		if (e->d_name[0] != '.')
			unlink(cuda_program_file(p, e->d_name));
	if (dir)
		closedir(dir);
	if (p->folder)
		rmdir(p->folder);
	p->folder = NULL;
}

/* ---- running it ---- */

static void be_program(const struct cuda_program *p, const char *const *argv, size_t n, int complaints, bool quiet)
{
	const char **all = arena_array(p->arena, const char *, n + 2);
	int out = quiet ? open("/dev/null", O_WRONLY) : STDERR_FILENO;

	all[0] = p->path;
	memcpy(all + 1, argv, n * sizeof(*argv));
	/* One that hangs in its driver would stay, and keep the GPU. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (out < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(complaints, STDERR_FILENO) < 0)
		_exit(127);
	execv(p->path, (char *const *)(uintptr_t)all);
	dprintf(STDERR_FILENO, "cannot run %s: %s\n", p->path, strerror(errno));
	_exit(127);
}

/* The last line of what it complains of. Meanwhile an interrupt is handed on. */
static void listen_to(pid_t pid, int fd, const volatile sig_atomic_t *interrupted, char *last, size_t size)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	size_t n = 0;
	bool told = false;
	char c;

	last[0] = '\0';
	for (;;) {
		int ready = poll(&pfd, 1, LOOK_MS);
		if (interrupted && *interrupted && !told) {
			kill(pid, SIGTERM);
			told = true;
		}
		if (ready == 0 || (ready < 0 && errno == EINTR))
			continue;
		ssize_t got = read(fd, &c, 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return;
		if (c == '\n') {
			n = 0;
			continue;
		}
		if (n + 1 < size) {
			last[n++] = c;
			last[n] = '\0';
		}
	}
}

static int failed(int status, const char *last, struct err *err)
{
	enum err_code code = WIFEXITED(status) && WEXITSTATUS(status) == 2 ? ERR_INPUT : ERR_IO;

	if (WIFSIGNALED(status))
		return err_set(err, ERR_IO, NAME " died of signal %d%s%s", WTERMSIG(status), *last ? ": " : "", last);
	if (*last)
		return err_set(err, code, "%s%s", strncmp(last, NAME ": ", strlen(NAME) + 2) ? NAME ": " : "", last);
	return err_set(err, code, NAME " ended with status %d", WEXITSTATUS(status));
}

int cuda_program_run(const struct cuda_program *p, const char *const *argv, bool quiet, const volatile sig_atomic_t *interrupted,
	struct err *err)
{
	char last[512];
	size_t n = 0;
	int ends[2], status;

	while (argv[n])
		n++;
	if (pipe2(ends, O_CLOEXEC))
		return err_set(err, ERR_IO, "cannot make a pipe: %s", strerror(errno));
	pid_t pid = fork();
	if (pid == 0)
		be_program(p, argv, n, ends[1], quiet);
	close(ends[1]);
	if (pid > 0)
		listen_to(pid, ends[0], interrupted, last, sizeof(last));
	close(ends[0]);
	if (pid < 0)
		return err_set(err, ERR_IO, "cannot start %s: %s", p->path, strerror(errno));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_set(err, ERR_IO, "cannot wait for %s: %s", p->path, strerror(errno));
	if (interrupted && *interrupted)
		return err_set(err, ERR_INTERRUPTED, "interrupted");
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : failed(status, last, err);
}
