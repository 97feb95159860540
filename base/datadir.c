#include "base/datadir.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"

static bool holds_data(struct arena *a, const char *dir)
{
	struct stat st;

	return !stat(arena_printf(a, "%s/hw/machines", dir), &st) && S_ISDIR(st.st_mode);
}

/* The folder of the running program; NULL when /proc does not say. */
static const char *program_dir(struct arena *a)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path));

	if (n <= 0 || (size_t)n >= sizeof(path))
		return NULL;
	while (n > 1 && path[n - 1] != '/')
		n--;
	return arena_strndup(a, path, n > 1 ? (size_t)n - 1 : 1);
}

/* Without "..", links and a slash at the end, so that messages name the folder as a person knows it. */
static const char *clean_path(struct arena *a, const char *dir)
{
	char *real = realpath(dir, NULL);

	if (!real)
		return dir;
	const char *copy = arena_strdup(a, real);
	free(real);
	return copy;
}

static int find_from_env(struct arena *a, const char *env, const char **out, struct err *err)
{
	if (!holds_data(a, env))
		return err_set(err, ERR_INPUT, "OFFSIM_DATA is '%s', which holds no hw/machines", env);
	*out = clean_path(a, env);
	return 0;
}

int datadir_find(struct arena *a, const char **out, struct err *err)
{
	/* From build/MODE/offsim, build/MODE/tests/unit/test_x and PREFIX/bin/offsim. */
	static const char *const beside[] = {"../..", "../../../..", "../share/offsim"};
	const char *installed = OFFSIM_PREFIX "/share/offsim";
	const char *env = getenv("OFFSIM_DATA");

	if (env && *env)
		return find_from_env(a, env, out, err);
	const char *exe = program_dir(a);
	for (size_t i = 0; exe && i < ARRAY_LEN(beside); i++) {
		const char *dir = arena_printf(a, "%s/%s", exe, beside[i]);
		if (holds_data(a, dir)) {
			*out = clean_path(a, dir);
			return 0;
		}
	}
	if (holds_data(a, installed)) {
		*out = clean_path(a, installed);
		return 0;
	}
	return err_set(err, ERR_IO,
		"cannot find hw/machines near '%s' nor in '%s'; OFFSIM_DATA names the folder that holds it",
		exe ? exe : "?", installed);
}

/* Does a file of this name count? If so *len is its length without suffix. */
static bool wanted(const struct dirent *entry, const char *suffix, size_t *len)
{
	const char *name = entry->d_name;
	size_t n = strlen(name), ns = strlen(suffix);

	if (name[0] == '.' || name[0] == '_' || entry->d_type == DT_DIR)
		return false;
	if (n <= ns || strcmp(name + n - ns, suffix))
		return false;
	*len = n - ns;
	return true;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int datadir_list(struct arena *a, const char *sub, const char *suffix, const char ***names, size_t *n,
		 struct err *err)
{
	const char *root;

	if (datadir_find(a, &root, err))
		return -1;
	const char *path = arena_printf(a, "%s/%s", root, sub);
	DIR *dir = opendir(path);
	if (!dir)
		return err_set(err, ERR_IO, "cannot open folder '%s': %s", path, strerror(errno));
	struct {
		VEC(const char *);
	} list = {0};
	struct dirent *entry;
	for (errno = 0; (entry = readdir(dir)); errno = 0) {
		size_t len;
		if (wanted(entry, suffix, &len))
			VEC_PUSH(&list, a, arena_strndup(a, entry->d_name, len));
	}
	int fault = errno;
	closedir(dir);
	if (fault)
		return err_set(err, ERR_IO, "cannot read folder '%s': %s", path, strerror(fault));
	if (list.n)
		qsort(list.at, list.n, sizeof(*list.at), compare_names);
	*names = list.at;
	*n = list.n;
	return 0;
}
