// The flows of a file in SimGrid, as an ideal fluid: no latency, no congestion control, max-min fair rates.
//
//     beside_simgrid RACKS HOSTS_PER_RACK NIC RACK_LINK FILE [--cfg=...]
//
// Rates are bytes per second. A line of the file is a flow: its arrival in seconds, its ends as numbers of hosts in
// different racks, and its bytes. The program prints its version, the processor seconds of the simulation without the
// platform, and the sum of all flow completion times.

#include <simgrid/s4u.hpp>
#include <simgrid/version.h>

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

struct Flow {
  double at;
  std::size_t from, to;
  std::uint64_t bytes;
};

int main(int argc, char** argv) {
  sg4::Engine engine(&argc, argv);
  if (argc != 6) {
    std::fprintf(stderr, "expected RACKS HOSTS_PER_RACK NIC RACK_LINK FILE\n");
    return 2;
  }
  const std::size_t racks = std::stoul(argv[1]), per_rack = std::stoul(argv[2]);
  const double nic = std::stod(argv[3]), rack_link = std::stod(argv[4]);
  std::vector<Flow> flows;
  std::ifstream file(argv[5]);
  for (Flow flow{}; file >> flow.at >> flow.from >> flow.to >> flow.bytes;) {
    flows.push_back(flow);
  }

  // In a star, a route leads from a host to everyone, or from everyone to a host. Flows between hosts of different racks
  // cross four links: out of the host, out of its rack, into the other rack, into the other host.
  auto* zone = sg4::create_star_zone("network");
  std::vector<sg4::Host*> hosts;
  for (std::size_t rack = 0; rack < racks; rack++) {
    const std::string name = "r" + std::to_string(rack);
    const sg4::Link* uplink = zone->create_link(name + ":uplink", rack_link)->seal();
    const sg4::Link* downlink = zone->create_link(name + ":downlink", rack_link)->seal();
    for (std::size_t number = 0; number < per_rack; number++) {
      const std::string host_name = name + "h" + std::to_string(number);
      sg4::Host* host = zone->create_host(host_name, 1e9)->seal();
      const sg4::Link* egress = zone->create_link(host_name + ":egress", nic)->seal();
      const sg4::Link* ingress = zone->create_link(host_name + ":ingress", nic)->seal();
      zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr,
                      {sg4::LinkInRoute(egress), sg4::LinkInRoute(uplink)}, false);
      zone->add_route(nullptr, host->get_netpoint(), nullptr, nullptr,
                      {sg4::LinkInRoute(downlink), sg4::LinkInRoute(ingress)}, false);
      hosts.push_back(host);
    }
  }
  zone->seal();

  double total = 0;
  sg4::Actor::create("flows", hosts.at(0), [&] {
    std::vector<sg4::CommPtr> sent;
    sent.reserve(flows.size());
    for (const Flow& flow : flows) {
      sg4::this_actor::sleep_until(flow.at);
      sent.push_back(sg4::Comm::sendto_async(hosts.at(flow.from), hosts.at(flow.to), flow.bytes));
    }
    for (std::size_t number = 0; number < sent.size(); number++) {
      sent[number]->wait();
      total += sent[number]->get_finish_time() - flows[number].at;
    }
  });
  const std::clock_t start = std::clock();
  engine.run();
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  std::printf("%d.%d %.6f %.9g\n", SIMGRID_VERSION_MAJOR, SIMGRID_VERSION_MINOR, seconds, total);
}
