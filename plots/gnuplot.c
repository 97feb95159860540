#include "plots/gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/datadir.h"
#include "base/file.h"
#include "base/vec.h"

#define MAX_TEMPLATE_BYTES ((size_t)1 << 20)
#define TAIL_BYTES 64
#define STYLE "style.gp"
#define LIMIT_MS 60000

extern char **environ;

/* A whole file of each kind ends in this. */
static const struct suffix {
	const char *suffix, *terminal, *end;
} suffixes[] = {
	{".svg", "svg", "</svg>"},
	{".png", "png", "IEND"},
	{".pdf", "pdf", "%%EOF"},
};

static const struct suffix *find_suffix(const char *out)
{
	size_t len = strlen(out);

	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
		size_t n = strlen(suffixes[i].suffix);
		if (len > n && strcasecmp(out + len - n, suffixes[i].suffix) == 0 && out[len - n - 1] != '/')
			return &suffixes[i];
	}
	return NULL;
}

int gnuplot_terminal(const char *out, const char **terminal, struct err *err)
{
	const struct suffix *s = find_suffix(out);

	if (!s)
		return err_set(err, ERR_USAGE, "'%s' must end in .svg, .png or .pdf", out);
	*terminal = s->terminal;
	return 0;
}

/* ---- the program ---- */

struct process {
	pid_t pid;
	int from; /* its stderr */
};

static int spawn(char *const *argv, bool show, struct process *p, struct err *err)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t defaults;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return err_set(err, ERR_IO, "cannot make a pipe: %s", strerror(errno));
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (!show)
		posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
	/* The command line ignores SIGPIPE, which a program that is not ours need not be ready for. */
	posix_spawnattr_init(&attr);
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	posix_spawnattr_setsigdefault(&attr, &defaults);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
	int fault = posix_spawnp(&p->pid, argv[0], &actions, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	close(ends[1]);
	p->from = ends[0];
	if (!fault)
		return 0;
	close(ends[0]);
	if (fault == ENOENT)
		return err_set(err, ERR_IO,
			"gnuplot is not installed or not in PATH (Debian: apt install gnuplot-nox)");
	return err_set(err, ERR_IO, "cannot run gnuplot: %s", strerror(fault));
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* What the program says on stderr: the beginning, up to size - 1 bytes; the rest is read and dropped. False when it was
   still there at the time limit. */
static bool read_stderr(int from, char *text, size_t size, int64_t limit_ms)
{
	int64_t end = now_ms() + limit_ms;
	struct pollfd wait = {.fd = from, .events = POLLIN};
	char drop[512];
	size_t n = 0;
	bool ended = false;

	while (!ended) {
		bool full = n + 1 >= size;
		int64_t left = end - now_ms();
		int ready = left > 0 ? poll(&wait, 1, (int)left) : 0;
		if (ready < 0 && errno == EINTR)
			continue;
		if (ready == 0)
			break;
		ssize_t got = read(from, full ? drop : text + n, full ? sizeof(drop) : size - 1 - n);
		if (got < 0 && errno == EINTR)
			continue;
		ended = got <= 0;
		if (!full && got > 0)
			n += (size_t)got;
	}
	text[n] = '\0';
	return ended;
}

/* gnuplot first repeats the line with a mark under it; what is wrong follows: "FILE" line N: … */
static const char *first_message(char *text)
{
	const char *first = NULL;
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		line += strspn(line, " \t\r");
		if (strstr(line, "\" line ") || strncmp(line, "line ", 5) == 0)
			return line;
		if (!first && *line)
			first = line;
	}
	return first;
}

static int run(char *const *argv, bool show, int64_t limit_ms, struct err *err)
{
	struct process p;
	char said[4096];
	int status;

	fflush(stdout);
	if (spawn(argv, show, &p, err))
		return -1;
	bool ended = read_stderr(p.from, said, sizeof(said), limit_ms);
	close(p.from);
	if (!ended)
		kill(p.pid, SIGKILL);
	while (waitpid(p.pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_set(err, ERR_IO, "lost track of gnuplot: %s", strerror(errno));
	if (!ended)
		return err_set(err, ERR_IO, "gnuplot was stopped: it had not ended after %g s", (double)limit_ms / 1000);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	const char *message = first_message(said);
	if (WIFSIGNALED(status)) {
		int sig = WTERMSIG(status);
		enum err_code code = sig == SIGINT || sig == SIGTERM ? ERR_INTERRUPTED : ERR_IO;
		return err_set(err, code, "gnuplot was killed by signal %d (%s)%s%s", sig, strsignal(sig),
			message ? ": " : "", message ? message : "");
	}
	return err_set(err, ERR_IO, "gnuplot failed with exit status %d: %s", WEXITSTATUS(status),
		message ? message : "it gave no reason");
}

/* ---- files ---- */

static int write_file(const char *path, const char *text, size_t len, struct err *err)
{
	FILE *f = fopen(path, "w");

	if (!f)
		return err_set(err, ERR_IO, "cannot write '%s': %s", path, strerror(errno));
	bool bad = fwrite(text, 1, len, f) != len;
	int fault = errno;
	if (fclose(f) && !bad) {
		bad = true;
		fault = errno;
	}
	return bad ? err_set(err, ERR_IO, "cannot write '%s': %s", path, strerror(fault)) : 0;
}

static int copy_file(const char *from, const char *to, struct arena *a, struct err *err)
{
	char *text;
	size_t len;

	if (file_read(from, MAX_TEMPLATE_BYTES, a, &text, &len, err))
		return -1;
	return write_file(to, text, len, err);
}

static bool ends_whole(const char *path, const char *end)
{
	char tail[TAIL_BYTES];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = -1;

	if (fd < 0)
		return false;
	off_t size = lseek(fd, 0, SEEK_END);
	if (size > 0)
		n = pread(fd, tail, sizeof(tail), size > TAIL_BYTES ? size - TAIL_BYTES : 0);
	close(fd);
	return n > 0 && memmem(tail, (size_t)n, end, strlen(end));
}

/* An empty file beside out, with the rights that a new file gets. Its name begins with its folder, so that
   gnuplot takes none for a pipe. */
static int make_beside(const char *out, struct arena *a, const char **path, struct err *err)
{
	const char *slash = strrchr(out, '/');
	struct stat st;

	if (!stat(out, &st) && !S_ISREG(st.st_mode))
		return err_set(err, ERR_IO, "cannot write '%s': it is %s", out,
			S_ISDIR(st.st_mode) ? "a folder" : "no regular file");
	const char *folder = slash ? arena_strndup(a, out, (size_t)(slash - out) + 1) : "./";
	*path = arena_printf(a, "%s.offsim.%ld%s", folder, (long)getpid(), find_suffix(out)->suffix);
	unlink(*path); /* of a process of that number that was killed */
	int fd = open(*path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return err_set(err, ERR_IO, "cannot write '%s': %s", out, strerror(errno));
	close(fd);
	return 0;
}

/* ---- together ---- */

struct files {
	const char *folder; /* temporary, for the data; with keep for the templates too */
	const char *data, *template, *style;
};

static int make_folder(struct arena *a, const char **folder, struct err *err)
{
	const char *tmp = getenv("TMPDIR");

	if (!tmp || !*tmp)
		tmp = "/tmp";
	char *name = arena_printf(a, "%s%s/offsim-plot-XXXXXX", tmp[0] == '/' ? "" : "./", tmp);
	if (!mkdtemp(name))
		return err_set(err, ERR_IO, "cannot make a folder for the data in '%s': %s", tmp,
			strerror(errno));
	*folder = name;
	return 0;
}

/* What is kept is complete and can be changed without touching what is installed. */
static int copy_templates(const struct gnuplot_job *job, struct files *f, struct arena *a, struct err *err)
{
	const char *template = arena_printf(a, "%s/%s", f->folder, job->template);
	const char *style = arena_printf(a, "%s/" STYLE, f->folder);

	if (copy_file(f->template, template, a, err) || copy_file(f->style, style, a, err))
		return -1;
	f->template = template;
	f->style = style;
	return 0;
}

static int write_files(const struct gnuplot_job *job, struct files *f, struct arena *a, struct err *err)
{
	const char *datadir;

	if (datadir_find(a, &datadir, err) || make_folder(a, &f->folder, err))
		return -1;
	f->template = arena_printf(a, "%s/plots/%s", datadir, job->template);
	f->style = arena_printf(a, "%s/plots/" STYLE, datadir);
	f->data = arena_printf(a, "%s/data.dat", f->folder);
	if (write_file(f->data, job->data, strlen(job->data), err))
		return -1;
	return job->keep ? copy_templates(job, f, a, err) : 0;
}

/* Of a job that keeps nothing: the templates are the installed ones. */
static void remove_files(const struct files *f)
{
	if (!f->folder)
		return;
	if (f->data)
		unlink(f->data);
	rmdir(f->folder);
}

static char **make_argv(const struct gnuplot_job *job, const struct files *f, const char *out,
	struct arena *a)
{
	const char *const head[] = {"gnuplot", "-d", "-c", f->template, f->style, f->data, out};
	char **argv = arena_array(a, char *, ARRAY_LEN(head) + job->n_words + 1);
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(head); i++)
		argv[n++] = arena_strdup(a, head[i]);
	for (size_t i = 0; i < job->n_words; i++)
		argv[n++] = arena_strdup(a, job->word[i]);
	return argv;
}

/* The words as a shell would want them. */
static const char *shell_line(char *const *argv, struct arena *a)
{
	static const char harmless[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./+,";
	const char *line = "";

	for (; *argv; argv++) {
		struct {
			VEC(char);
		} word = {0};
		for (const char *p = *argv; *p; p++) {
			if (*p == '\'') {
				VEC_PUSH(&word, a, '\'');
				VEC_PUSH(&word, a, '\\');
				VEC_PUSH(&word, a, '\'');
			}
			VEC_PUSH(&word, a, *p);
		}
		VEC_PUSH(&word, a, '\0');
		bool plain = **argv && strspn(*argv, harmless) == strlen(*argv);
		line = arena_printf(a, plain ? "%s%s%s" : "%s%s'%s'", line, *line ? " " : "", word.at);
	}
	return line;
}

static int64_t limit_ms(const struct gnuplot_job *job)
{
	return job->limit_ms ? job->limit_ms : LIMIT_MS;
}

static int draw_file(const struct gnuplot_job *job, const struct files *f, struct arena *a, struct err *err)
{
	const char *beside = NULL;

	if (make_beside(job->out, a, &beside, err))
		return -1;
	int status = run(make_argv(job, f, beside, a), false, limit_ms(job), err);
	if (!status && !ends_whole(beside, find_suffix(job->out)->end))
		status = err_set(err, ERR_IO, "gnuplot did not write all of '%s'; is the disk full?",
			job->out);
	if (!status && rename(beside, job->out))
		status = err_set(err, ERR_IO, "cannot write '%s': %s", job->out, strerror(errno));
	if (status)
		unlink(beside);
	return status;
}

int gnuplot_draw(const struct gnuplot_job *job, struct arena *a, const char **again, struct err *err)
{
	struct files f = {0};
	int status = write_files(job, &f, a, err);

	*again = NULL;
	if (!status)
		status = job->out ? draw_file(job, &f, a, err) : run(make_argv(job, &f, "-", a), true, limit_ms(job), err);
	if (job->keep && f.data)
		*again = shell_line(make_argv(job, &f, job->out ? job->out : "-", a), a);
	else
		remove_files(&f);
	return status;
}
