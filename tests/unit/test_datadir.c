#include "base/datadir.h"

#include <sys/stat.h>

#include "tests/test.h"

static struct arena a;

/* A data folder under /tmp with these files in hw/machines. */
static const char *make_data(const char *const *files)
{
	char *dir = arena_strdup(&a, "/tmp/offsim-data-XXXXXX");

	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(mkdir(arena_printf(&a, "%s/hw", dir), 0700), 0);
	ck_assert_int_eq(mkdir(arena_printf(&a, "%s/hw/machines", dir), 0700), 0);
	ck_assert_int_eq(mkdir(arena_printf(&a, "%s/hw/machines/folder.yaml", dir), 0700), 0);
	for (; *files; files++) {
		FILE *f = fopen(arena_printf(&a, "%s/hw/machines/%s", dir, *files), "w");
		ck_assert_ptr_nonnull(f);
		fclose(f);
	}
	return dir;
}

static void remove_data(const char *dir, const char *const *files)
{
	for (; *files; files++)
		unlink(arena_printf(&a, "%s/hw/machines/%s", dir, *files));
	rmdir(arena_printf(&a, "%s/hw/machines/folder.yaml", dir));
	rmdir(arena_printf(&a, "%s/hw/machines", dir));
	rmdir(arena_printf(&a, "%s/hw", dir));
	rmdir(dir);
}

START_TEST(named_by_the_environment)
{
	static const char *const files[] = {"zeta.yaml", "alpha.yaml", "b-2.yaml", "_part.yaml", ".hidden.yaml",
		".yaml", "notes.txt", "yaml", NULL};
	struct err err;
	const char *found = NULL, **names = NULL;
	size_t n = 0;

	arena_init(&a, NULL, NULL);
	const char *dir = make_data(files);
	setenv("OFFSIM_DATA", arena_printf(&a, "%s/", dir), 1);
	assert_ok(datadir_find(&a, &found, &err), err);
	ck_assert_str_eq(found, dir); /* no slash at the end */
	assert_ok(datadir_list(&a, "hw/machines", ".yaml", &names, &n, &err), err);
	ck_assert_uint_eq(n, 3);
	ck_assert_str_eq(names[0], "alpha");
	ck_assert_str_eq(names[1], "b-2");
	ck_assert_str_eq(names[2], "zeta");
	assert_ok(datadir_list(&a, "hw/machines", ".gp", &names, &n, &err), err);
	ck_assert_uint_eq(n, 0);
	ck_assert_int_eq(datadir_list(&a, "hw/none", ".yaml", &names, &n, &err), -1);
	assert_err(err, ERR_IO,
		arena_printf(&a, "cannot open folder '%s/hw/none': No such file or directory", dir));
	remove_data(dir, files);
	arena_release(&a);
}
END_TEST

START_TEST(named_but_wrong)
{
	struct err err;
	const char *found = NULL;

	arena_init(&a, NULL, NULL);
	setenv("OFFSIM_DATA", "/tmp/nothing-here", 1);
	ck_assert_int_eq(datadir_find(&a, &found, &err), -1);
	assert_err(err, ERR_INPUT, "OFFSIM_DATA is '/tmp/nothing-here', which holds no hw/machines");
	arena_release(&a);
}
END_TEST

START_TEST(beside_the_program)
{
	struct err err;
	const char *found = NULL;
	struct stat st;

	arena_init(&a, NULL, NULL);
	unsetenv("OFFSIM_DATA");
	assert_ok(datadir_find(&a, &found, &err), err);
	ck_assert_int_eq(stat(arena_printf(&a, "%s/hw/machines", found), &st), 0);
	ck_assert_ptr_null(strstr(found, ".."));
	arena_release(&a);
}
END_TEST

TEST_MAIN("datadir", named_by_the_environment, named_but_wrong, beside_the_program)
