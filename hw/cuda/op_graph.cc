#include "hw/cuda/op_graph.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "hw/cuda/failure.h"

static const uint64_t MAX_ITEMS = 10000000;
/* No machine moves or computes more in one operation. */
static const double MAX_BYTES = 1e15, MAX_FLOPS = 1e18, MAX_LATENCY_S = 1e4;

/* A line: its first word, a number where it has one, and KEY=VALUE. Keys are taken; what is left over is unknown. */
struct line {
	const std::string &path;
	int number;
	std::vector<std::string> words;
	size_t n_positional;

	[[noreturn]] void fail(const std::string &what) const
	{
		throw failure(EXIT_BAD_INPUT, path + ":" + std::to_string(number) + ": " + what);
	}

	bool take(const char *key, std::string *value)
	{
		std::string prefix = std::string(key) + "=";
		for (size_t i = n_positional; i < words.size(); i++)
			if (words[i].compare(0, prefix.size(), prefix) == 0) {
				*value = words[i].substr(prefix.size());
				words.erase(words.begin() + (long)i);
				return true;
			}
		return false;
	}

	double real(const char *key, const std::string &text, double max) const
	{
		char *end;
		double x = strtod(text.c_str(), &end);
		if (text.empty() || *end || !(x >= 0) || x > max)
			fail(std::string(key) + " must be a number from 0 to 1e" + std::to_string((int)std::log10(max)) + ", not '" + text + "'");
		return x;
	}

	double real_or(const char *key, double def, double max)
	{
		std::string text;
		return take(key, &text) ? real(key, text, max) : def;
	}

	uint64_t whole(const char *key, const std::string &text, uint64_t max) const
	{
		if (text.empty() || text.size() > 19 || text.find_first_not_of("0123456789") != std::string::npos ||
			std::stoull(text) > max)
			fail(std::string(key) + " must be a whole number from 0 to " + std::to_string(max) + ", not '" + text + "'");
		return std::stoull(text);
	}

	uint64_t count(const char *key, uint64_t max)
	{
		std::string text;
		if (!take(key, &text))
			fail("the key '" + std::string(key) + "' is missing");
		return whole(key, text, max);
	}

	uint64_t count_or(const char *key, uint64_t def, uint64_t max)
	{
		std::string text;
		return take(key, &text) ? whole(key, text, max) : def;
	}

	/* -1 when it is left out. */
	int index(const char *key, size_t n)
	{
		std::string text;
		if (!take(key, &text))
			return -1;
		uint64_t i = whole(key, text, MAX_ITEMS);
		if (i >= n)
			fail(std::string(key) + " names number " + text + ", which does not stand above");
		return (int)i;
	}

	int choice(const char *key, const std::vector<std::string> &among, int def)
	{
		std::string text;
		if (!take(key, &text)) {
			if (def < 0)
				fail("the key '" + std::string(key) + "' is missing");
			return def;
		}
		auto at = std::find(among.begin(), among.end(), text);
		if (at == among.end())
			fail(std::string(key) + ": unknown word '" + text + "'");
		return (int)(at - among.begin());
	}

	void pass(std::initializer_list<const char *> keys)
	{
		std::string text;
		for (const char *key : keys)
			take(key, &text);
	}

	void finish() const
	{
		if (words.size() > n_positional)
			fail("a " + words[0] + " has no key '" + words[n_positional] + "'");
	}
};

static void expect_number(const line &l, size_t want)
{
	if (l.words.size() < 2 || l.whole(l.words[0].c_str(), l.words[1], MAX_ITEMS) != want || want >= MAX_ITEMS)
		l.fail(l.words[0] + " " + std::to_string(want) + " must stand here");
}

static void read_after(line &l, op_graph &g, op &o)
{
	std::string text, item;

	o.after_begin = (uint32_t)g.after.size();
	if (l.take("after", &text)) {
		std::istringstream list(text);
		while (std::getline(list, item, ',')) {
			uint64_t id = l.whole("after", item, MAX_ITEMS);
			if (id >= g.ops.size())
				l.fail("after: there is no operation " + item + " above");
			g.after.push_back((uint32_t)id);
		}
	}
	if (g.after.size() > UINT32_MAX)
		l.fail("too many dependencies");
	o.after_end = (uint32_t)g.after.size();
}

static void check_op(const line &l, const op_graph &g, const op &o)
{
	auto drive = [&](int buffer) { return g.memories[(size_t)g.buffers[(size_t)buffer].memory].kind == MEMORY_DRIVE; };

	if (o.kind == OP_KERNEL && (o.device < 0 || o.unit < 0))
		l.fail("a kernel needs a device and a unit");
	if (o.kind == OP_COPY && (o.from < 0 || o.to < 0))
		l.fail("a copy needs 'from' and 'to'");
	if (o.kind == OP_COPY && drive(o.from) && drive(o.to))
		l.fail("a copy from drive to drive");
	if (o.kind == OP_KERNEL && o.bytes && (o.from < 0 || drive(o.from)))
		l.fail("a kernel must read from memory");
	if (o.kind > OP_KERNEL && o.bytes)
		l.fail("a " + l.words[0] + " moves nothing");
	if ((o.from >= 0 && o.at >= g.buffers[(size_t)o.from].bytes) || (o.to >= 0 && o.into >= g.buffers[(size_t)o.to].bytes))
		l.fail("a place behind the end of its buffer");
}

static void read_op(line &l, op_graph &g, int kind)
{
	op o = {};
	std::string dtype = "-";

	if (!g.ahead)
		l.fail("an operation above the line 'steps'");
	if (g.step_end.size() == g.steps)
		l.fail("an operation behind the last step");
	o.kind = kind;
	o.step = (int)g.step_end.size();
	read_after(l, g, o);
	o.unit = l.index("unit", g.units.size());
	o.stream = l.index("stream", g.units.size());
	o.device = l.index("device", g.devices.size());
	o.from = l.index("from", g.buffers.size());
	o.to = l.index("to", g.buffers.size());
	o.via = l.index("via", g.memories.size());
	o.at = l.count_or("at", 0, (uint64_t)MAX_BYTES);
	o.into = l.count_or("into", 0, (uint64_t)MAX_BYTES);
	o.bytes = (uint64_t)std::llround(l.real_or("bytes", 0, MAX_BYTES));
	o.flops = l.real_or("flops", 0, MAX_FLOPS);
	o.latency_s = l.real_or("latency", 0, MAX_LATENCY_S * 1e12) * 1e-12;
	o.threads = (unsigned)l.count_or("threads", 0, 256);
	o.pinned = l.count_or("pinned", 1, 1) == 1;
	l.take("dtype", &dtype);
	o.fp32 = dtype == "-" || dtype == "fp32" || dtype == "f32";
	l.pass({"path", "cap", "charge", "amount", "layer", "group", "of", "type", "tokens"});
	l.finish();
	check_op(l, g, o);
	if (kind == OP_STEP)
		g.step_end.push_back((uint32_t)g.ops.size());
	g.ops.push_back(o);
}

static void read_thing(line &l, op_graph &g, size_t *n_resources)
{
	const std::string &word = l.words[0];
	std::string name = "-";

	if (word == "resource") {
		expect_number(l, (*n_resources)++);
		return;
	}
	l.take("name", &name);
	if (word == "memory") {
		expect_number(l, g.memories.size());
		g.memories.push_back({name, l.choice("kind", {"gpu", "ram", "drive"}, -1)});
	} else if (word == "device") {
		expect_number(l, g.devices.size());
		bool gpu = l.choice("kind", {"gpu", "cpu"}, -1) == 0;
		int memory = l.index("memory", g.memories.size());
		if (memory < 0)
			l.fail("a device needs the memory that it computes from");
		g.devices.push_back({name, gpu, memory});
	} else if (word == "unit") {
		expect_number(l, g.units.size());
		g.units.push_back(name);
	} else if (word == "buffer") {
		expect_number(l, g.buffers.size());
		int memory = l.index("memory", g.memories.size());
		uint64_t bytes = l.count("bytes", (uint64_t)MAX_BYTES);
		if (memory < 0 || !bytes)
			l.fail("a buffer needs a memory and bytes");
		g.buffers.push_back({memory, bytes, l.choice("role", {"weights", "cache", "hidden", "staging"}, -1)});
		l.pass({"layer", "group", "type"});
	} else {
		l.fail("unknown line '" + word + "'");
	}
	l.finish();
}

static void read_steps(line &l, op_graph &g)
{
	if (g.ahead)
		l.fail("'steps' twice");
	g.steps = l.count("count", MAX_ITEMS);
	g.ahead = l.count("ahead", MAX_ITEMS);
	l.pass({"first", "end", "phase"});
	l.finish();
	if (!g.ahead || !g.steps)
		l.fail("count and ahead must be 1 or more");
}

op_graph op_graph_read(const std::string &path)
{
	static const std::vector<std::string> kinds = {"copy", "kernel", "wait", "join", "step"};
	std::ifstream file(path);
	std::string text, word;
	op_graph g = {};
	size_t n_resources = 0;
	bool begun = false, ended = false;

	if (!file)
		throw failure(EXIT_BAD_INPUT, "cannot open '" + path + "'");
	for (int number = 1; std::getline(file, text); number++) {
		line l = {path, number, {}, 1};
		std::istringstream words(text);
		while (words >> word)
			l.words.push_back(word);
		if (l.words.empty() || l.words[0][0] == '#')
			continue;
		if (l.words.size() > 1 && l.words[1].find('=') == std::string::npos)
			l.n_positional = 2;
		if (ended)
			l.fail("a line behind the end");
		if (!begun) {
			if (l.words[0] != "opg" || l.words.size() != 2)
				l.fail("this is no operation graph: it does not begin with 'opg 1'");
			if (l.words[1] != "1")
				l.fail("version '" + l.words[1] + "' of operation graphs; this program reads version 1");
			begun = true;
			continue;
		}
		auto kind = std::find(kinds.begin(), kinds.end(), l.words[0]);
		if (kind != kinds.end()) {
			expect_number(l, g.ops.size());
			read_op(l, g, (int)(kind - kinds.begin()));
		} else if (l.words[0] == "end") {
			expect_number(l, g.ops.size());
			ended = true;
		} else if (l.words[0] == "steps") {
			read_steps(l, g);
		} else if (l.words[0] != "about") {
			read_thing(l, g, &n_resources);
		}
	}
	if (!ended || g.step_end.size() != g.steps)
		throw failure(EXIT_BAD_INPUT, path + ": the file ends before its operations do");
	return g;
}
