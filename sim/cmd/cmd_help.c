/*
 * cmd_help.c - `offsim help`, `offsim help COMMAND`, `offsim help keys`.
 */
#include <string.h>

#include "base/suggest.h"
#include "hw/hw_params.h"
#include "sim/cmd/cmd.h"
#include "sim/run/result.h"
#include "sim/run/scenario.h"

static void overview(FILE *to)
{
	fputs("offsim: what will this model do on that machine, with these layers in RAM or on NVMe, and why?\n"
	      "\n"
	      "usage: offsim COMMAND [OPTIONS]\n"
	      "\n",
		to);
	for (size_t i = 0; i < cmd_table_n; i++)
		fprintf(to, "  %-9s %s\n", cmd_table[i].name, cmd_table[i].help);
	fputs("\n"
	      "'offsim COMMAND --help' explains one, 'offsim help keys' every key of a scenario.\n"
	      "\n"
	      "example: offsim run scenarios/headline.yaml --set flags.gpu-layers=40\n",
		to);
}

static void keys(void)
{
	puts("Keys of a scenario (YAML), and of --set KEY=VALUE. Sizes, rates and times carry their unit.\n");
	for (size_t i = 0; i < scenario_sections_n; i++)
		param_print(scenario_sections[i].table, scenario_sections[i].n, scenario_sections[i].prefix, stdout);
	const struct engine_ops *e;
	for (size_t i = 0; (e = engine_at(i)); i++) {
		printf("\nFlags of engine %s (%s):\n", e->name, e->help);
		param_print(e->flag, e->n_flags, "flags", stdout);
	}
	puts("\nKeys of a machine (under 'machine:' or in a file of hw/machines):");
	for (int k = 0; k < HW_PARAMS_N; k++) {
		size_t n;
		const char *prefix;
		const struct param *table = hw_params((enum hw_params_kind)k, &n, &prefix);
		param_print(table, n, prefix, stdout);
	}
	puts("\nWhat a run gives (JSON keys, database columns):");
	for (int f = 0; f < RESULT_FIELD_N; f++)
		printf("  %-18s %-7s %s\n", result_fields[f].name, units_base(result_fields[f].dim),
			result_fields[f].help);
}

int cmd_help(int argc, char **argv)
{
	if (argc < 2 || argv[1][0] == '-') {
		overview(stdout);
		return cmd_finish_stdout(EXIT_DONE);
	}
	if (strcmp(argv[1], "keys") == 0) {
		keys();
		return cmd_finish_stdout(EXIT_DONE);
	}

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
