/*
 * cmd_hw.c - offsim hw list | show | probe: machines, and the parts they are made of.
 */
#include <getopt.h>
#include <jansson.h>
#include <string.h>

#include "base/datadir.h"
#include "base/suggest.h"
#include "base/units.h"
#include "hw/hw.h"
#include "sim/cmd/cmd.h"

static const char usage[] = "usage: offsim hw list [--parts gpu|cpu|link|dram|nvme]\n"
			    "       offsim hw show NAME [--json]\n"
			    "       offsim hw probe [-o FILE] [--root DIR] [--json]\n"
			    "\n"
			    "list   the machines that come with offsim, one a line, name first;\n"
			    "       with --parts what machines can be made of\n"
			    "show   one machine, every number with its peak, spread, basis and source;\n"
			    "       NAME is one of the list or a YAML file\n"
			    "probe  this machine: what it has, which of its links are slower than they could be, and\n"
			    "       which numbers are guesses; with -o as a profile for `machine:`\n"
			    "\n"
			    "  -p, --parts KIND   list the parts of one kind instead of machines\n"
			    "  -o, --output FILE  probe: write the profile there; '-' is standard output, without the table\n"
			    "  -R, --root DIR     probe: another machine, from copies of its files: DIR/proc, DIR/sys,\n"
			    "                     and of what programs print there: DIR/dmidecode-17.txt (dmidecode -t 17),\n"
			    "                     DIR/nvidia-smi-query-gpu.csv (--query-gpu=name,... --format=csv),\n"
			    "                     DIR/nvidia-smi-topo-m.txt (topo -m)\n"
			    "  -j, --json         one JSON document in SI units\n"
			    "  -h, --help         this text\n"
			    "\n"
			    "example: offsim hw show desktop-rtx4090-ddr5\n"
			    "         offsim hw probe -o mine.yaml\n";

static const struct option options[] = {
	{"parts", required_argument, NULL, 'p'},
	{"output", required_argument, NULL, 'o'},
	{"root", required_argument, NULL, 'R'},
	{"json", no_argument, NULL, 'j'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

struct args {
	const char *parts, *output, *root;
	bool json, help;
};

/* -1 when all is well, else the exit status. */
static int parse_args(int argc, char **argv, struct args *args)
{
	int c;

	*args = (struct args){0};
	optind = 0; /* start anew: main may have looked at other options */
	while ((c = getopt_long(argc, argv, ":p:o:R:jh", options, NULL)) != -1) {
		switch (c) {
		case 'p':
			args->parts = optarg;
			break;
		case 'o':
			args->output = optarg;
			break;
		case 'R':
			args->root = optarg;
			break;
		case 'j':
			args->json = true;
			break;
		case 'h':
			args->help = true;
			break;
		default:
			return cmd_bad_option(argv, options);
		}
	}
	return -1;
}

/* ---- list ---- */

static int list_machines(struct arena *a, struct err *err)
{
	const char **names;
	size_t n;
	int width = 0;

	if (datadir_list(a, "hw/machines", ".yaml", &names, &n, err))
		return -1;
	for (size_t i = 0; i < n; i++)
		if ((int)strlen(names[i]) > width)
			width = (int)strlen(names[i]);
	for (size_t i = 0; i < n; i++) {
		struct hw_machine *m;
		if (hw_machine_load(names[i], a, &m, err))
			return -1;
		printf("%-*s  %s\n", width, names[i], m->description);
	}
	return 0;
}

static int find_kind(const char *name, enum hw_part_kind *kind)
{
	struct suggest near;
	char hint[80];

	suggest_init(&near, name);
	for (int k = 0; k < HW_PART_N; k++) {
		*kind = (enum hw_part_kind)k;
		if (!strcmp(hw_part_kind_name(*kind), name))
			return -1;
		suggest_offer(&near, hw_part_kind_name(*kind));
	}
	if (suggest_best(&near))
		suggest_text(&near, hint, sizeof(hint));
	else
		snprintf(hint, sizeof(hint), "; one of gpu, cpu, link, dram, nvme");
	return cmd_usage_error("hw", "there are no parts of kind '%.60s'%s", name, hint);
}

/* Columns as wide as their longest cell; the first cell is the name. */
struct widths {
	int name, cell[HW_PART_CELLS];
};

static void widen(int *width, const char *text)
{
	if ((int)strlen(text) > *width)
		*width = (int)strlen(text);
}

static void print_part(const struct widths *w, size_t n_cells, const char *name, const char *const *cells,
	const char *description)
{
	printf("%-*s", w->name, name);
	for (size_t i = 0; i < n_cells; i++)
		printf("  %*s", w->cell[i], cells[i]);
	printf("  %s\n", description);
}

static int list_parts(struct arena *a, enum hw_part_kind kind, struct err *err)
{
	const char *const *titles = hw_part_titles(kind);
	struct hw_part *parts;
	struct widths w = {.name = 4};
	size_t n, n_cells = 0;

	if (hw_parts(kind, a, &parts, &n, err))
		return -1;
	while (titles[n_cells]) {
		widen(&w.cell[n_cells], titles[n_cells]);
		n_cells++;
	}
	for (size_t i = 0; i < n; i++) {
		widen(&w.name, parts[i].name);
		for (size_t c = 0; c < n_cells; c++)
			widen(&w.cell[c], parts[i].cells[c]);
	}
	print_part(&w, n_cells, "name", titles, "description");
	for (size_t i = 0; i < n; i++)
		print_part(&w, n_cells, parts[i].name, parts[i].cells, parts[i].description);
	return 0;
}

static int list(struct arena *a, const struct args *args, int argc)
{
	enum hw_part_kind kind;
	struct err err;

	if (argc)
		return cmd_usage_error("hw", "list takes no name; did you mean 'show'?");
	if (args->json)
		return cmd_usage_error("hw", "--json goes with show");
	if (args->parts) {
		int status = find_kind(args->parts, &kind);
		if (status >= 0)
			return status;
	}
	if (args->parts ? list_parts(a, kind, &err) : list_machines(a, &err))
		return cmd_fail(&err);
	return EXIT_DONE;
}

/* ---- show ---- */

static json_t *positive_or_null(double v)
{
	return v > 0 ? json_real(v) : json_null();
}

static json_t *memory_json(const struct hw_memory *mem)
{
	static const char *const kinds[] = {"gpu", "ram", "drive"};

	return json_pack("{s:s, s:s, s:s, s:I, s:I}", "name", mem->name, "kind", kinds[mem->kind], "part",
		mem->part, "capacity_bytes", (json_int_t)mem->capacity_bytes, "reserved_bytes",
		(json_int_t)mem->reserved_bytes);
}

static json_t *device_json(const struct hw_machine *m, const struct hw_device *d)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:i, s:i}", "name", d->name, "kind",
		d->kind == HW_DEVICE_GPU ? "gpu" : "cpu", "part", d->part, "memory",
		m->memories[d->memory].name, "cores", (int)d->cores, "copy_engines", (int)d->copy_engines);
}

static json_t *link_json(const struct hw_machine *m, const struct hw_link *l)
{
	static const char *const kinds[] = {"pcie", "c2c", "nvlink", "drive"};

	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:f}", "name", l->name, "kind", kinds[l->kind],
		"part", l->part, "near", hw_link_near(m, l), "far", m->memories[l->far].name, "gen",
		(int)l->gen, "width", (int)l->width, "pageable_dram_weight", l->pageable_dram_weight);
}

static json_t *number_json(const struct hw_num_ref *ref)
{
	const struct hw_num *num = ref->num;

	return json_pack("{s:s, s:s, s:f, s:o, s:o, s:f, s:f, s:s, s:s}", "name", ref->name, "unit",
		units_base((enum unit_dim)ref->dim), "value", hw_num_value(num), "peak",
		positive_or_null(num->peak), "measured", positive_or_null(num->measured), "efficiency",
		num->efficiency > 0 ? num->efficiency : 1.0, "spread", num->spread, "basis",
		hw_num_basis(num), "source", num->source ? num->source : "");
}

static json_t *machine_json(struct hw_machine *m, struct arena *a)
{
	json_t *memories = json_array(), *devices = json_array(), *links = json_array(),
	       *numbers = json_array();
	struct hw_num_ref *refs;

	for (int i = 0; i < m->n_memories; i++)
		json_array_append_new(memories, memory_json(&m->memories[i]));
	for (int i = 0; i < m->n_devices; i++)
		json_array_append_new(devices, device_json(m, &m->devices[i]));
	for (int i = 0; i < m->n_links; i++)
		json_array_append_new(links, link_json(m, &m->links[i]));
	size_t n = hw_numbers(m, a, &refs);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(numbers, number_json(&refs[i]));
	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "name", m->name, "description", m->description,
		"memories", memories, "devices", devices, "links", links, "numbers", numbers);
}

static int show(struct arena *a, const struct args *args, int argc, char **argv)
{
	struct hw_machine *m;
	struct err err;

	if (argc != 1)
		return cmd_usage_error(
			"hw", argc ? "show takes one machine" : "show needs the name of a machine");
	if (args->parts)
		return cmd_usage_error("hw", "--parts goes with list");
	if (hw_machine_load(argv[0], a, &m, &err))
		return cmd_fail(&err);
	if (!args->json) {
		hw_machine_print(m, stdout);
		return EXIT_DONE;
	}
	json_t *json = machine_json(m, a);
	if (!json) {
		err_set(&err, ERR_NOMEM, "out of memory");
		return cmd_fail(&err);
	}
	json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
	putchar('\n');
	json_decref(json);
	return EXIT_DONE;
}

static int probe(struct arena *a, const struct args *args, int argc)
{
	if (argc)
		return cmd_usage_error("hw", "probe takes no name; did you mean 'show'?");
	if (args->parts)
		return cmd_usage_error("hw", "--parts goes with list");
	return cmd_hw_probe(a, args->output, args->root, args->json);
}

static int run_verb(struct arena *a, const struct args *args, int argc, char **argv)
{
	struct suggest near;
	char hint[80];

	if (!argc)
		return cmd_usage_error("hw", "say what to do: list, show or probe");
	if (!strcmp(argv[0], "probe"))
		return probe(a, args, argc - 1);
	if (args->output || args->root)
		return cmd_usage_error("hw", "--%s goes with probe", args->output ? "output" : "root");
	if (!strcmp(argv[0], "list"))
		return list(a, args, argc - 1);
	if (!strcmp(argv[0], "show"))
		return show(a, args, argc - 1, argv + 1);
	suggest_init(&near, argv[0]);
	suggest_offer(&near, "list");
	suggest_offer(&near, "show");
	suggest_offer(&near, "probe");
	return cmd_usage_error("hw", "cannot '%.60s'%s", argv[0], suggest_text(&near, hint, sizeof(hint)));
}

int cmd_hw(int argc, char **argv)
{
	struct args args;
	struct arena a;
	int status = parse_args(argc, argv, &args);

	if (status >= 0)
		return status;
	if (args.help) {
		fputs(usage, stdout);
		return cmd_finish_stdout(EXIT_DONE);
	}
	cmd_arena_init(&a);
	status = run_verb(&a, &args, argc - optind, argv + optind);
	arena_release(&a);
	return cmd_finish_stdout(status);
}
