/*
 * cmd_help.c - `offsim help`, `offsim help COMMAND`, `offsim help keys [WORD]...`.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/suggest.h"
#include "hw/hw_params.h"
#include "sim/cmd/cmd.h"
#include "sim/run/result.h"
#include "sim/run/scenario.h"

static void overview(FILE *to)
{
	fputs("offsim: what will this model do on that machine, with these layers in RAM or on NVMe, and why?\n"
	      "\n"
	      "usage: offsim COMMAND [OPTION]...\n"
	      "\n",
		to);
	for (size_t i = 0; i < cmd_table_n; i++)
		fprintf(to, "  %-9s %s\n", cmd_table[i].name, cmd_table[i].help);
	fputs("\n"
	      "'offsim COMMAND --help' explains one, 'offsim help keys' every key of a scenario,\n"
	      "'offsim help keys kv' those that have to do with kv; 'offsim --version' says which offsim this is.\n"
	      "\n"
	      "example: offsim run scenarios/headline.yaml --set flags.gpu-layers=40\n",
		to);
}

/* ---- keys ---- */

struct words {
	char **at;
	int n;
};

/* What a person may name at once, and its keys. */
struct section {
	const char *name, *heading; /* engine's: made of its name */
	const struct param *table;
	size_t n;
	const char *prefix;              /* of its keys */
	const struct engine_ops *engine; /* whose flags they are; NULL: none */
};

/* As a flag may be typed. */
static const char *without_dashes(const char *word)
{
	return word + strspn(word, "-");
}

static bool is_letter(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '_';
}

/* Is the word one of the text's, be it in the plural? */
static bool has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = text; (at = strcasestr(at, word)); at++) {
		const char *end = at + len + (tolower((unsigned char)at[len]) == 's');
		if ((at == text || !is_letter(at[-1])) && !is_letter(*end))
			return true;
	}
	return false;
}

static const char *whole_key(const char *prefix, const char *key, char *buf, size_t size)
{
	snprintf(buf, size, "%s%s%s", prefix ? prefix : "", prefix && *prefix ? "." : "", key);
	return buf;
}

static bool has_alias(const struct engine_ops *e, const char *key, const char *word)
{
	for (size_t i = 0; e && i < e->n_aliases; i++)
		if (strcmp(e->alias[i].key, key) == 0 && strcasestr(e->alias[i].name, word))
			return true;
	return false;
}

static bool is_section(const char *word)
{
	static const char *const names[] = {"scenario", "machine", "results"};
	const struct engine_ops *e;
	bool is = false;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		is = is || strcasecmp(names[i], word) == 0;
	for (size_t i = 0; (e = engine_at(i)); i++)
		is = is || strcasecmp(e->name, word) == 0;
	return is;
}

/* Does a key have all of the words: those that name a section as its own, the others in its name, in another name of it or
   in what is said of it? */
static bool has_all(const struct words *w, const struct section *s, const char *key, const char *help)
{
	char whole[128];

	for (int i = 0; i < w->n; i++) {
		const char *word = without_dashes(w->at[i]);
		if (is_section(word) ? strcasecmp(s->name, word) != 0 : !strcasestr(whole_key(s->prefix, key, whole, sizeof(whole)), word) &&
			!has_alias(s->engine, key, word) && !has_word(help, word))
			return false;
	}
	return true;
}

static void print_aliases(const struct engine_ops *e, const char *key)
{
	const char *before = "also ";

	for (size_t i = 0; e && i < e->n_aliases; i++) {
		if (strcmp(e->alias[i].key, key) != 0)
			continue;
		printf(*before == 'a' ? "%22s%s%s" : "%s%s%s", *before == 'a' ? "" : before, *before == 'a' ? before : "",
			e->alias[i].name);
		before = ", ";
	}
	if (*before == ',')
		putchar('\n');
}

/* What is printed: above each section that has keys its heading, blank lines between. */
struct listing {
	const struct words *words;
	const char *section; /* the last one headed; "": none */
	size_t n;            /* keys */
};

static void head(struct listing *l, const struct section *s)
{
	if (l->n++ && strcmp(l->section, s->name) == 0)
		return;
	if (*l->section || !l->words->n)
		putchar('\n');
	l->section = s->name;
	if (s->engine)
		printf("Flags of engine %s (%s):\n", s->name, s->engine->help);
	else
		printf("%s:\n", s->heading);
}

static void print_section(struct listing *l, const struct section *s)
{
	for (size_t i = 0; i < s->n; i++) {
		if (!has_all(l->words, s, s->table[i].key, s->table[i].help))
			continue;
		head(l, s);
		param_print(&s->table[i], 1, s->prefix, stdout);
		print_aliases(s->engine, s->table[i].key);
	}
}

static void print_results(struct listing *l)
{
	const struct section s = {.name = "results", .heading = "What a run gives (JSON keys, database columns)"};

	for (int f = 0; f < RESULT_FIELD_N; f++) {
		if (!has_all(l->words, &s, result_fields[f].name, result_fields[f].help))
			continue;
		head(l, &s);
		printf("  %-18s %-7s %s\n", result_fields[f].name, units_base(result_fields[f].dim), result_fields[f].help);
	}
}

#define SECTIONS_MAX 96

/* In the order in which they are printed; several may have one name. */
static size_t list_sections(struct section *s)
{
	const struct engine_ops *e;
	size_t n = 0;

	for (size_t i = 0; i < scenario_sections_n; i++)
		s[n++] = (struct section){"scenario", "Keys of a scenario", scenario_sections[i].table, scenario_sections[i].n,
			scenario_sections[i].prefix, NULL};
	for (size_t i = 0; (e = engine_at(i)); i++)
		s[n++] = (struct section){e->name, NULL, e->flag, e->n_flags, "flags", e};
	for (int k = 0; k < HW_PARAMS_N; k++) {
		s[n] = (struct section){.name = "machine", .heading = "Keys of a machine (under 'machine:' or in a file of hw/machines)"};
		s[n].table = hw_params((enum hw_params_kind)k, &s[n].n, &s[n].prefix);
		n++;
	}
	return n;
}

static void offer_names(struct suggest *near, const struct section *s)
{
	for (size_t i = 0; i < s->n; i++)
		suggest_offer(near, s->table[i].key);
	if (s->prefix && *s->prefix)
		suggest_offer(near, s->prefix);
	for (size_t i = 0; s->engine && i < s->engine->n_aliases; i++)
		suggest_offer(near, s->engine->alias[i].name);
}

static int no_such_key(const struct words *w, const struct section *s, size_t n)
{
	struct suggest near;
	char text[128];

	if (w->n > 1)
		return cmd_usage_error("help", "no key has all of these words");
	suggest_init(&near, without_dashes(w->at[0]));
	suggest_offer(&near, "results");
	for (size_t i = 0; i < n; i++)
		suggest_offer(&near, s[i].name);
	for (size_t i = 0; i < n; i++)
		offer_names(&near, &s[i]);
	for (int f = 0; f < RESULT_FIELD_N; f++)
		suggest_offer(&near, result_fields[f].name);
	return cmd_usage_error("help", "no key has '%s'%s", w->at[0], suggest_text(&near, text, sizeof(text)));
}

static int keys(const struct words *w)
{
	struct section s[SECTIONS_MAX];
	struct listing l = {.words = w, .section = ""};
	size_t n = list_sections(s);

	if (!w->n)
		puts("Keys of a scenario (YAML), and of --set KEY=VALUE. Sizes, rates and times carry their unit. 'offsim help keys\n"
		     "WORD...' shows those that have the words: a part of a name (kv, gpu-layers, gpu0.link), a word of what is said of\n"
		     "them, or scenario, machine, results, or an engine.");
	for (size_t i = 0; i < n; i++)
		print_section(&l, &s[i]);
	print_results(&l);
	return l.n ? EXIT_DONE : no_such_key(w, s, n);
}

int cmd_help(int argc, char **argv)
{
	if (argc < 2 || argv[1][0] == '-') {
		overview(stdout);
		return cmd_finish_stdout(EXIT_DONE);
	}
	if (strcmp(argv[1], "keys") == 0)
		return cmd_finish_stdout(keys(&(struct words){argv + 2, argc - 2}));
	if (argc > 2)
		return cmd_usage_error("help", "expected one command, not %d", argc - 1);

	struct suggest s;
	char near[128];
	suggest_init(&s, argv[1]);
	suggest_offer(&s, "keys");
	for (size_t i = 0; i < cmd_table_n; i++) {
		if (strcmp(cmd_table[i].name, argv[1]) == 0 && cmd_table[i].run != cmd_help) {
			char help[] = "--help", *args[] = {argv[1], help, NULL};
			return cmd_table[i].run(2, args);
		}
		suggest_offer(&s, cmd_table[i].name);
	}
	return cmd_usage_error("help", "no help for '%s'%s", argv[1], suggest_text(&s, near, sizeof(near)));
}
