#include <ctype.h>
#include <inttypes.h>

#include "base/file.h"
#include "base/number.h"
#include "sim/core/opg_text.h"

/* A value as it stands in the file, in buf or beside it. */
static const char *value_text(const struct opg_field *f, const char *item, char *buf, size_t size)
{
	const char *at = item + f->offset;

	switch (f->type) {
	case OPG_TEXT:
		return *(const char *const *)at;
	case OPG_CHOICE:
		return f->names[*(const int *)at];
	case OPG_INDEX:
	case OPG_LAYER:
		snprintf(buf, size, "%d", *(const int *)at);
		return buf;
	case OPG_COUNT:
		snprintf(buf, size, "%" PRIu64, *(const uint64_t *)at);
		return buf;
	case OPG_TIME:
		snprintf(buf, size, "%" PRId64, *(const sim_time *)at);
		return buf;
	case OPG_REAL:
		number_shortest(*(const double *)at, buf);
		return buf;
	case OPG_AFTER:
	case OPG_PATH:
		break;
	}
	BUG("a list is no value");
}

static void print_list(FILE *to, const struct opg_field *f, const struct opg_op *o)
{
	char buf[32];

	for (uint32_t i = 0; f->type == OPG_AFTER && i < o->n_after; i++)
		fprintf(to, "%s%" PRIu32, i ? "," : " after=", o->after[i]);
	for (int i = 0; f->type == OPG_PATH && i < o->n_hops; i++) {
		number_shortest(o->hop[i].weight, buf);
		fprintf(to, "%s%d:%s", i ? "," : " path=", o->hop[i].resource, buf);
	}
}

static bool is_default(const struct opg_field *f, const char *item, const char *text)
{
	const struct opg_op *o = (const void *)item;

	if (f->def && strcmp(f->def, "bytes") == 0)
		return o->amount == o->bytes;
	return f->def && strcmp(f->def, text) == 0;
}

static void print_fields(FILE *to, const struct opg_line *line, const void *item)
{
	char buf[32];

	for (size_t i = 0; i < line->n; i++) {
		const struct opg_field *f = &line->field[i];
		if (f->type == OPG_AFTER || f->type == OPG_PATH) {
			print_list(to, f, item);
			continue;
		}
		const char *text = value_text(f, item, buf, sizeof(buf));
		if (!is_default(f, item, text))
			fprintf(to, " %s=%s", f->key, text);
	}
	fputc('\n', to);
}

static void print_item(FILE *to, const struct opg_line *line, size_t number, const void *item)
{
	fprintf(to, "%s %zu", line->word, number);
	print_fields(to, line, item);
}

/* The text is a person's: a name of a file may hold anything. */
static void print_about(FILE *to, const struct opg_about *about)
{
	fprintf(to, "about %s ", about->word);
	for (const char *p = about->text; *p; p++)
		fputc(iscntrl((unsigned char)*p) ? '?' : *p, to);
	fputc('\n', to);
}

static void print_all(FILE *to, void *ctx)
{
	const struct opg *g = ctx;

	fprintf(to, "opg %d\n", OPG_VERSION);
	for (size_t i = 0; i < g->about.n; i++)
		print_about(to, &g->about.at[i]);
	fprintf(to, "steps");
	print_fields(to, &opg_line[OPG_LINE_STEPS], &g->steps);
	for (size_t i = 0; i < g->resources.n; i++)
		print_item(to, &opg_line[OPG_LINE_RESOURCE], i, &g->resources.at[i]);
	for (size_t i = 0; i < g->memories.n; i++)
		print_item(to, &opg_line[OPG_LINE_MEMORY], i, &g->memories.at[i]);
	for (size_t i = 0; i < g->devices.n; i++)
		print_item(to, &opg_line[OPG_LINE_DEVICE], i, &g->devices.at[i]);
	for (size_t i = 0; i < g->units.n; i++)
		print_item(to, &opg_line[OPG_LINE_UNIT], i, &g->units.at[i]);
	for (size_t i = 0; i < g->buffers.n; i++)
		print_item(to, &opg_line[OPG_LINE_BUFFER], i, &g->buffers.at[i]);
	for (size_t i = 0; i < g->ops.n; i++)
		print_item(to, &opg_op_line[g->ops.at[i].kind], i, &g->ops.at[i]);
	fprintf(to, "end %zu\n", g->ops.n);
}

int opg_write(const struct opg *g, const char *path, struct err *err)
{
	return file_replace(path, print_all, (void *)g, err);
}
