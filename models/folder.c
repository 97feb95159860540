/*
 * folder.c - looks through a folder once and keeps the best name.
 */
#include "models/folder.h"

#include <dirent.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* Tails, the best first. */
static const char *const tails[] = {".gguf", ".safetensors.index.json", ".safetensors"};

static bool ends_with(const char *s, const char *tail)
{
	size_t n = strlen(s), nt = strlen(tail);

	return n > nt && !strcasecmp(s + n - nt, tail);
}

/* NAME-00002-of-00003.gguf */
static bool is_later_part(const char *name)
{
	const char *of = strstr(name, "-of-");

	return of && of - name >= 6 && of[-6] == '-' && strncmp(of - 5, "00001", 5) != 0 &&
	       strspn(of - 5, "0123456789") == 5;
}

/* Less is better; ARRAY_LEN(tails): no model. */
static size_t rank(const char *name)
{
	size_t i = 0;

	/* projectors of images, which lie beside the model they are for */
	if (name[0] == '.' || !strncasecmp(name, "mmproj", 6) || is_later_part(name))
		return ARRAY_LEN(tails);
	while (i < ARRAY_LEN(tails) && !ends_with(name, tails[i]))
		i++;
	return i;
}

const char *folder_model(const char *path, struct arena *a)
{
	size_t best = ARRAY_LEN(tails);
	const char *name = "config.json";
	const struct dirent *entry;
	DIR *dir = opendir(path);

	while (dir && (entry = readdir(dir)) != NULL) {
		size_t r = rank(entry->d_name);

		/* not in the order of the folder, which is by chance */
		if (r < best || (r == best && r < ARRAY_LEN(tails) && strcmp(entry->d_name, name) < 0)) {
			best = r;
			name = arena_strdup(a, entry->d_name);
		}
	}
	if (dir)
		closedir(dir);
	return arena_printf(a, "%s%s%s", path, *path && path[strlen(path) - 1] == '/' ? "" : "/", name);
}
