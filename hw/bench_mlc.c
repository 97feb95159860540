/*
 * bench_mlc.c - Intel Memory Latency Checker: idle latencies, peak bandwidths, bandwidths between nodes.
 *
 *	Measuring idle latencies … (in ns)...        Measuring Peak Injection Memory Bandwidths for the system
 *	                Numa node                    ALL Reads        :      163473.8
 *	Numa node            0       1               3:1 Reads-Writes :      152508.1
 *	       0          69.6   141.4               …                           MB of 1e6 bytes
 *
 * Weights are read, so "ALL Reads" is what counts; the other mixes and the latency of one load are no constants of a
 * profile. Loaded latencies and transfers between caches are passed over.
 */
#include <ctype.h>
#include <string.h>

#include "base/number.h"
#include "hw/bench.h"

#define ALL_READS "ALL Reads"

enum section { SECTION_NONE, SECTION_IDLE, SECTION_PEAK, SECTION_NODES };

static bool sniff(const struct bench_text *t)
{
	return bench_has(t, "Memory Latency Checker") || bench_has(t, "Measuring Peak Injection Memory Bandwidths") ||
		bench_has(t, "Measuring Memory Bandwidths between nodes");
}

static enum section section_of(const char *line)
{
	static const struct {
		const char *begins;
		enum section section;
	} heads[] = {{"Measuring idle latenc", SECTION_IDLE}, {"Measuring Peak Injection Memory Bandwidths", SECTION_PEAK},
		{"Measuring Memory Bandwidths between nodes", SECTION_NODES}};

	for (size_t i = 0; i < ARRAY_LEN(heads); i++)
		if (strncmp(line, heads[i].begins, strlen(heads[i].begins)) == 0)
			return heads[i].section;
	return SECTION_NONE;
}

static bool next_number(char **at, double *out)
{
	char *word = *at + strspn(*at, " \t\r");
	size_t len = strcspn(word, " \t\r");

	*at = word + len;
	return len && number_parse(word, len, out);
}

/* "ALL Reads        :\t163473.8" */
static int read_peak(struct bench_text *t, struct bench *out, char *line, int n, struct err *err)
{
	char *colon = strrchr(line, ':'), *at = colon ? colon + 1 : NULL;
	struct bench_row row = {.kind = BENCH_OTHER, .line = n, .dim = UNIT_BYTES_RATE, .unused = "all reads are taken"};
	size_t len = colon ? (size_t)(colon - line) : 0;

	if (!colon || !next_number(&at, &row.value))
		return 0;
	while (len && isspace((unsigned char)line[len - 1]))
		len--;
	row.value *= 1e6;
	row.what = arena_printf(t->a, "MLC peak injection, %.*s", (int)len, line);
	if (len == strlen(ALL_READS) && strncmp(line, ALL_READS, len) == 0) {
		row.kind = BENCH_DRAM;
		row.unused = NULL;
	}
	return bench_add(out, t, &row, err);
}

/* "       0          69.6   141.4": the node that asks, then each that has the memory. */
static int read_nodes(struct bench_text *t, struct bench *out, char *line, int n, bool idle, struct err *err)
{
	struct bench_row row = {.kind = BENCH_OTHER, .line = n, .dim = idle ? UNIT_TIME : UNIT_BYTES_RATE,
		.unused = idle ? "one load at a time" : "of one node's memory"};
	double node, value;

	if (!next_number(&line, &node))
		return 0;
	for (int to = 0; next_number(&line, &value); to++) {
		row.value = value * (idle ? 1e-9 : 1e6);
		row.what = arena_printf(t->a, "MLC %s, node %g to %d", idle ? "idle latency" : "bandwidth", node, to);
		if (bench_add(out, t, &row, err))
			return -1;
	}
	return 0;
}

static int read_mlc(struct bench_text *t, struct bench *out, struct err *err)
{
	enum section section = SECTION_NONE;
	char *at = t->s, *line;

	for (int n = 1; (line = bench_line(&at)); n++) {
		if (strncmp(line, "Measuring", 9) == 0)
			section = section_of(line);
		else if (section == SECTION_PEAK && read_peak(t, out, line, n, err))
			return -1;
		else if ((section == SECTION_IDLE || section == SECTION_NODES) &&
			read_nodes(t, out, line, n, section == SECTION_IDLE, err))
			return -1;
	}
	return 0;
}

const struct bench_format bench_mlc = {
	.name = "mlc",
	.help = "Intel Memory Latency Checker: bandwidth of host memory",
	.sniff = sniff,
	.read = read_mlc,
};
