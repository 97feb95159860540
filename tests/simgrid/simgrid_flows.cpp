/*
 * simgrid_flows: what `offsim flows` computes, computed by SimGrid (3.32, Debian's libsimgrid-dev)
 * instead.
 *
 *	simgrid_flows [--quiet] [--actors] LINKS.csv FLOWS.csv
 *
 * Prints `id,finish_s` in the order of the file, or with --quiet just the last finish.
 *
 * How SimGrid is brought to compute exactly this (read in its sources, src/surf/network_cm02.cpp and
 * src/kernel/lmm/maxmin.cpp of v3.32, and confirmed by exact_flows.c):
 *
 * - Latency. In the models CM02 and LV08 the latency of a path is also the flow's sharing penalty: where
 *   flows compete each gets a share inversely proportional to its latency (plus network/weight-S over the
 *   bandwidth of each link), as TCP does. No value of weight-S makes the shares equal; only without
 *   latency is the penalty 1 for all. So the links here have none, and the latency is spent before the
 *   transfer begins, in a timer or in a sleep. That gives what is wanted, latency first and then fair
 *   sharing. weight-S is 0, so that bandwidth does not weigh either.
 * - network/TCP-gamma bounds a flow to gamma / (2 x latency); no latency, no bound. Set to 0 all the
 *   same.
 * - network/crosstraffic:0, or each flow would load its way back with 5 %.
 * - network/bandwidth-factor and latency-factor are 1 in CM02 (0.97 and 13.01 in the default LV08).
 * - surf/precision, 1e-9 s by default: no sleep is shorter, and with optim:Lazy events less than this
 *   apart become one, so that flows of 10.0 and 10.4 ns both take 10.0 ns. maxmin/precision is relative
 *   to the bandwidth of the link (not bytes/s, as the manual has it); 1e-5 by default. Both are set to
 *   where doubles end.
 * - network/optim:Full. Lazy, the default, tracks which flows a change can reach; here nearly all share
 *   some link, a case for which SimGrid's manual advises against Lazy, and it is a third slower indeed.
 *
 * Full speed: the transfers are started from the maestro's callbacks (a kernel timer ends the latency,
 * the end of a transfer starts the next of its stream), without any actor and so without context
 * switches. --actors does it the way SimGrid's tutorials do, one actor per stream that sleeps and then
 * calls Comm::sendto; same times, slower.
 */
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sg = simgrid::s4u;

namespace
{

struct Path {
	double latency_s = 0;
	std::vector<sg::LinkInRoute> route;
	sg::Host *from = nullptr; /* the pair of hosts that stands for this path */
	sg::Host *to = nullptr;
};

struct Flow {
	std::string_view id;
	double start_s = 0;
	double finish_s = 0;
	std::uint64_t bytes = 0;
	std::size_t path = 0;
};

struct Stream {
	std::vector<std::size_t> flows;
	std::size_t next = 0; /* index into flows */
	sg::CommPtr comm;     /* the transfer that runs */
	sg::CommPtr ended;    /* the one before: SimGrid still uses it when it reports its end */
};

std::vector<Path> paths;
std::vector<Flow> flows;
std::vector<Stream> streams;

[[noreturn]] void die(const char *file, std::size_t line, const char *what)
{
	std::fprintf(stderr, "simgrid_flows: %s:%zu: %s\n", file, line, what);
	std::exit(2);
}

/* A CSV file in memory, one row and one field at a time. */
class Csv
{
	const char *name_;
	std::string text_;
	const char *at_ = nullptr;
	std::size_t line_ = 0;

      public:
	Csv(const char *name, const char *header) : name_(name)
	{
		std::FILE *f = std::fopen(name, "r");
		char block[65536];
		std::size_t n;

		if (!f)
			die(name, 0, std::strerror(errno));
		while ((n = std::fread(block, 1, sizeof(block), f)) > 0)
			text_.append(block, n);
		if (std::ferror(f))
			die(name, 0, "cannot read");
		std::fclose(f);
		at_ = text_.c_str();
		if (std::strncmp(at_, header, std::strlen(header)) == 0 && at_[std::strlen(header)] == '\n') {
			at_ += std::strlen(header) + 1;
			line_ = 1;
		}
	}
	void skip(const char *end, char stop) /* over the field before end and what ends it */
	{
		if (*end == stop)
			at_ = end + 1;
		else if (*end == '\0' && stop == '\n') /* the last line of a file may lack its end */
			at_ = end;
		else
			bad("bad row");
	}
	bool more()
	{
		line_++;
		return *at_ != '\0';
	}
	[[noreturn]] void bad(const char *what) const
	{
		die(name_, line_, what);
	}
	std::string_view field(char stop)
	{
		std::size_t n = std::strcspn(at_, ",\n");
		std::string_view s(at_, n);

		if (n == 0)
			bad("a field is missing");
		skip(at_ + n, stop);
		return s;
	}
	double number(char stop)
	{
		char *end;
		double x = std::strtod(at_, &end);

		if (end == at_ || !(x >= 0))
			bad("bad number");
		skip(end, stop);
		return x;
	}
};

/*
 * A pair of hosts for each path: n hosts make n(n - 1) pairs, so few hosts do. (Two hosts of its own for
 * each path would square the routing table.)
 */
void make_routes(sg::NetZone *zone)
{
	std::vector<sg::Host *> hosts;
	std::size_t n = 2, path = 0;

	while (n * (n - 1) < paths.size())
		n++;
	for (std::size_t i = 0; i < n; i++)
		hosts.push_back(zone->create_host("h" + std::to_string(i), 1e9)->seal());
	for (auto *from : hosts)
		for (auto *to : hosts) {
			if (from == to || path == paths.size())
				continue;
			Path &p = paths[path++];
			p.from = from;
			p.to = to;
			zone->add_route(
				from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, p.route, false);
		}
}

double begins_s(const Flow &f)
{
	return std::max(sg::Engine::get_clock(), f.start_s) + paths[f.path].latency_s;
}

/* By actors. */

void run_stream(const Stream &s)
{
	for (std::size_t i : s.flows) {
		Flow &f = flows[i];
		const Path &p = paths[f.path];

		sg::this_actor::sleep_until(begins_s(f));
		if (f.bytes > 0)
			sg::Comm::sendto(p.from, p.to, f.bytes);
		f.finish_s = sg::Engine::get_clock();
	}
}

void start_actors()
{
	for (const Stream &s : streams)
		sg::Actor::create("stream", paths[0].from, [&s] { run_stream(s); });
}

/* By callbacks. */

void wait_for_next(Stream &s);

void finished(Stream &s)
{
	s.ended = std::move(s.comm);
	flows[s.flows[s.next++]].finish_s = sg::Engine::get_clock();
	wait_for_next(s);
}

void transfer(Stream &s)
{
	const Flow &f = flows[s.flows[s.next]];
	const Path &p = paths[f.path];

	if (f.bytes == 0) {
		finished(s);
		return;
	}
	s.comm = sg::Comm::sendto_init();
	s.comm->set_payload_size(f.bytes)->set_data(&s);
	s.comm->set_source(p.from)->set_destination(p.to); /* the latter starts it */
}

void wait_for_next(Stream &s)
{
	double t;

	if (s.next == s.flows.size())
		return;
	t = begins_s(flows[s.flows[s.next]]);
	if (t > sg::Engine::get_clock())
		simgrid::kernel::timer::Timer::set(t, [&s] { transfer(s); });
	else
		transfer(s);
}

void start_callbacks()
{
	sg::Activity::on_completion_cb([](const sg::Activity &a) { finished(*a.get_data<Stream>()); });
	for (Stream &s : streams)
		wait_for_next(s);
}

} // namespace

int main(int argc, char **argv)
{
	std::unordered_map<std::string_view, std::size_t> link_of, path_of, stream_of;
	std::vector<double> latencies_s;
	std::vector<sg::Link *> links;
	bool quiet = false, actors = false;
	double last_s = 0;

	/* Our settings before the user's arguments, so that a --cfg= on the command line still counts. */
	std::vector<std::string> settings = {"--log=xbt_cfg.thres:warning", "--cfg=network/model:CM02",
		"--cfg=network/optim:Full", "--cfg=cpu/optim:Full", "--cfg=network/crosstraffic:0",
		"--cfg=network/TCP-gamma:0", "--cfg=network/weight-S:0", "--cfg=network/bandwidth-factor:1",
		"--cfg=network/latency-factor:1", "--cfg=surf/precision:1e-15",
		"--cfg=maxmin/precision:1e-12", "--cfg=contexts/factory:raw"};
	std::vector<char *> args = {argv[0]};
	for (auto &s : settings)
		args.push_back(s.data());
	args.insert(args.end(), argv + 1, argv + argc + 1); /* with the NULL */
	int n_args = static_cast<int>(args.size()) - 1;
	sg::Engine engine(&n_args, args.data());

	int i = 1;
	for (; i < n_args && args[i][0] == '-'; i++) {
		if (std::strcmp(args[i], "--quiet") == 0)
			quiet = true;
		else if (std::strcmp(args[i], "--actors") == 0)
			actors = true;
		else
			i = n_args;
	}
	if (n_args - i != 2) {
		std::fputs("usage: simgrid_flows [--quiet] [--actors] LINKS.csv FLOWS.csv\n", stderr);
		return 2;
	}

	auto *zone = sg::create_full_zone("links");
	Csv links_csv(args[i], "name,bytes_per_s,latency_s");
	while (links_csv.more()) {
		std::string_view name = links_csv.field(',');
		double bytes_per_s = links_csv.number(',');

		if (!link_of.emplace(name, links.size()).second)
			links_csv.bad("a second link of this name");
		latencies_s.push_back(links_csv.number('\n'));
		links.push_back(zone->create_link(std::string(name), bytes_per_s)->set_latency(0.0)->seal());
	}

	Csv flows_csv(args[i + 1], "id,stream,start_s,bytes,path");
	while (flows_csv.more()) {
		Flow f;

		f.id = flows_csv.field(',');
		auto stream = stream_of.emplace(flows_csv.field(','), streams.size());
		if (stream.second)
			streams.emplace_back();
		f.start_s = flows_csv.number(',');
		f.bytes = static_cast<std::uint64_t>(flows_csv.number(','));
		auto path = path_of.emplace(flows_csv.field('\n'), paths.size());
		f.path = path.first->second;
		if (path.second) {
			std::string_view names = path.first->first;
			Path p;

			for (std::size_t at = 0; at <= names.size();) {
				std::size_t end = std::min(names.find(';', at), names.size());
				auto link = link_of.find(names.substr(at, end - at));

				if (link == link_of.end())
					flows_csv.bad("no such link");
				p.route.emplace_back(links[link->second]);
				p.latency_s += latencies_s[link->second];
				at = end + 1;
			}
			paths.push_back(std::move(p));
		}
		streams[stream.first->second].flows.push_back(flows.size());
		flows.push_back(f);
	}
	if (flows.empty())
		flows_csv.bad("no flow");

	make_routes(zone);
	zone->seal();
	if (actors)
		start_actors();
	else
		start_callbacks();
	engine.run();

	if (!quiet)
		std::puts("id,finish_s");
	for (const Flow &f : flows) {
		last_s = std::max(last_s, f.finish_s);
		if (!quiet)
			std::printf("%.*s,%.12g\n", static_cast<int>(f.id.size()), f.id.data(), f.finish_s);
	}
	if (quiet)
		std::printf("%.12g\n", last_s);
	return std::fflush(stdout) == 0 && !std::ferror(stdout) ? 0 : 1;
}
