/*
 * cmd_place.c - `offsim place`: where everything goes and whether it fits; no simulation.
 */
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "base/vec.h"
#include "models/kvcache.h"
#include "sim/cmd/cmd_pasted.h"
#include "sim/cmd/cmd_scenario.h"
#include "sim/run/run.h"

static void usage(void)
{
	puts("usage: offsim place SCENARIO.yaml [--set KEY=VALUE]... [--json]\n"
	     "       offsim place --machine M [--model NAME] [--quant Q] [OPTION]... -- ENGINE COMMAND LINE\n"
	     "\n"
	     "Shows which tensors live where, the memory ledger, and how much more would fit.\n"
	     "\n"
	     "      --set KEY=VALUE  override a key of the scenario ('offsim help keys' lists them)\n"
	     "      --json           fits, memory and groups as one JSON document\n"
	     "  -h, --help           this text\n"
	     "\n"
	     "of a command line, as in 'offsim predict':");
	printf("%s"
	       "\n"
	       "exit status: 0 done, 1 failed while running, 2 bad input, 3 the placement does not fit\n"
	       "\n"
	       "example: offsim place scenarios/headline.yaml --set flags.gpu-layers=30\n"
	       "         offsim place --machine desktop-rtx4090-ddr5 --model llama-2-13b --quant f16 -- \\\n"
	       "             'infer_auto_device_map(model, max_memory={0: \"22GiB\", \"cpu\": \"64GiB\"})'\n",
		pasted_usage);
}

/* Layers with the same spots for one group are one line. */
struct line {
	enum model_group group;
	struct place_spot spot;
	uint64_t bytes;
	uint32_t n_layers, first, last;
};

struct lines {
	VEC(struct line);
};

static void add_line(struct lines *lines, struct arena *a, enum model_group g, const struct place_part *part, uint32_t i)
{
	for (size_t k = 0; k < lines->n; k++) {
		struct line *l = &lines->at[k];
		if (l->group == g && memcmp(&l->spot, &part->spot, sizeof(l->spot)) == 0) {
			l->bytes += part->bytes;
			l->n_layers += l->last != i;
			l->last = i;
			return;
		}
	}
	struct line fresh = {g, part->spot, part->bytes, 1, i, i};
	VEC_PUSH(lines, a, fresh);
}

static void collect(const struct placement *p, struct arena *a, struct lines *lines)
{
	uint32_t n = p->model->n_layer;

	for (int g = 0; g < MODEL_GROUP_N; g++)
		for (uint32_t i = 0; i <= n; i++)
			for (int k = 0; k < p->group[i][g].n; k++)
				add_line(lines, a, (enum model_group)g, &p->group[i][g].part[k], i);
}

static const char *layers_text(const struct line *l, uint32_t n_layer, char *buf, size_t size)
{
	if (l->first == n_layer)
		return "";
	if (l->n_layers == l->last - l->first + 1)
		snprintf(buf, size, "layers %" PRIu32 "..%" PRIu32, l->first, l->last);
	else
		snprintf(buf, size, "%" PRIu32 " layers of %" PRIu32 "..%" PRIu32, l->n_layers, l->first, l->last);
	return buf;
}

static void print_placement(const struct placement *p, struct arena *a)
{
	const struct hw_machine *m = p->machine;
	struct lines lines = {0};
	char where[64], bytes[32];

	collect(p, a, &lines);
	printf("  %-10s %-22s %12s  %-8s %-10s %s\n", "group", "", "bytes", "lives in", "", "computed by");
	for (size_t i = 0; i < lines.n; i++) {
		const struct line *l = &lines.at[i];
		printf("  %-10s %-22s %12s  %-8s %-10s %s\n", model_group_name(l->group),
			layers_text(l, p->model->n_layer, where, sizeof(where)),
			units_format(bytes, sizeof(bytes), (double)l->bytes, UNIT_BYTES), m->memories[l->spot.memory].name,
			place_mode_name(l->spot.mode), m->devices[l->spot.device].name);
	}
	uint64_t kv_by_spot[LEDGER_MAX_MEMORIES][PLACE_MODE_N] = {0};
	for (uint32_t i = 0; i < p->model->n_layer; i++) {
		const struct model_layer *layer = &p->model->layers[i];
		uint64_t kv = p->kv_sequences * kvcache_layer_bytes(layer, p->kv_context, &p->kv_types);
		if (p->kv[i].mode != PLACE_ROWS)
			kv_by_spot[p->kv[i].memory][p->kv[i].mode] += kv;
		for (int k = 0; k < p->rows.n && p->kv[i].mode == PLACE_ROWS; k++)
			kv_by_spot[p->rows.spot[k].memory][PLACE_ROWS] +=
				(uint64_t)(place_heads_share(layer, p->rows.n) * (double)kv);
	}
	for (int i = 0; i < m->n_memories; i++)
		for (int mode = 0; mode < PLACE_MODE_N; mode++)
			if (kv_by_spot[i][mode])
				printf("  %-10s %-22s %12s  %-8s %s\n", "kv cache", p->kv_types.k->name,
					units_format(bytes, sizeof(bytes), (double)kv_by_spot[i][mode], UNIT_BYTES),
					m->memories[i].name, mode == PLACE_ROWS ? "heads" : place_mode_name(mode));
	putchar('\n');
}

/* What each memory's sums are made of. */
static void print_lines(const struct ledger *l)
{
	char bytes[32];

	printf("\n  %-8s %-12s %-26s %12s\n", "memory", "category", "", "bytes");
	for (int memory = 0; memory < l->n; memory++)
		for (int i = 0; i < l->n_lines; i++)
			if (l->line[i].memory == memory)
				printf("  %-8s %-12s %-26s %12s\n", l->row[memory].name,
					ledger_category_name(l->line[i].category), l->line[i].what,
					units_format(bytes, sizeof(bytes), (double)l->line[i].bytes, UNIT_BYTES));
}

/* Of several sockets, whose memory the GPUs read, where that matters. */
static void print_sockets(const struct placement *p)
{
	const struct hw_machine *m = p->machine;
	char near[32], far[32], share[32];
	bool first = true;

	if (hw_sockets(m) < 2)
		return;
	for (int i = 0; i < m->n_memories; i++) {
		const struct hw_link *link = hw_host_link(m, i);
		if (m->memories[i].kind != HW_MEMORY_GPU || !link || !(hw_num_value(&link->remote_bytes_s) > 0))
			continue;
		units_format(near, sizeof(near), hw_num_value(&link->h2d.num), UNIT_BYTES_RATE);
		units_format(far, sizeof(far), hw_num_value(&link->remote_bytes_s), UNIT_BYTES_RATE);
		units_format(share, sizeof(share), p->remote_share[i], UNIT_FRACTION);
		printf("%s%s reads ", first ? "\n" : "", m->memories[i].name);
		if (p->remote_share[i] > 0)
			printf("%s of its host memory from another socket, at %s instead of %s\n", share, far, near);
		else
			printf("host memory of its own socket, at %s; another's would come at %s\n", near, far);
		first = false;
	}
}

/* What each pass reads from files, and whether the page cache holds it. */
static void print_files(const struct placement *p)
{
	const struct place_files *f = &p->files;
	char bytes[32], room[32];

	if (!(f->bytes > 0))
		return;
	units_format(bytes, sizeof(bytes), f->bytes, UNIT_BYTES);
	units_format(room, sizeof(room), (double)f->room, UNIT_BYTES);
	if (f->kept)
		printf("\nfiles: %s on %s, which RAM keeps (page cache, %s free)%s\n", bytes, p->machine->memories[f->drive].name,
			room, f->warm ? ", and has from the beginning" : ": read from the drive in the first pass alone");
	else
		printf("\nfiles: %s on %s, more than RAM has free for the page cache (%s): read again in each pass\n", bytes,
			p->machine->memories[f->drive].name, room);
}

static int place(const struct scenario *s, bool json, struct arena *a)
{
	struct placement p;
	struct err err = {0};

	if (run_place(s, &p, a, &err))
		return cmd_fail(&err);
	if (json) {
		cmd_print_placement_json(&p);
	} else {
		cmd_print_heading(s);
		print_placement(&p, a);
		cmd_print_memory(&p.ledger);
		print_lines(&p.ledger);
		print_sockets(&p);
		print_files(&p);
		if (p.advice[0])
			printf("\n%s\n", p.advice);
	}
	return ledger_fits(&p.ledger) ? EXIT_DONE : EXIT_NO_FIT;
}

static int place_pasted(int argc, char **argv)
{
	struct pasted p;
	int status = pasted_parse(&p, argc, argv, usage);

	if (status >= 0)
		return status;
	status = pasted_load(&p);
	if (status < 0)
		status = place(p.scenario, p.json, &p.arena);
	pasted_release(&p);
	return cmd_finish_stdout(status);
}

int cmd_place(int argc, char **argv)
{
	struct cmd_scenario c;
	struct err err = {0};

	if (pasted_is(argc, argv))
		return place_pasted(argc, argv);
	int status = cmd_scenario_parse(&c, argc, argv, CMD_SCENARIO_PLACE, usage);
	if (status >= 0)
		return status;
	status = cmd_scenario_load(&c, &err) ? cmd_fail(&err) : place(c.scenario, c.json, &c.arena);
	cmd_scenario_release(&c);
	return cmd_finish_stdout(status);
}
