//! Plan of a network: its machines, and the programs of `ip` and `tc` that make it. A pure function of the cluster.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::Ipv4Addr;

use leeward_fabric::{Bytes, Cluster, HostId, ResourceId, Shape};
use leeward_packets::workload::Place;

use super::disks::{self, Disk};
use super::layout::Layout;
use super::options::NetworkOptions;
use super::queue::{By, Limits, PathRate, Sizes, real};
use crate::error::LabError;
use crate::machine::Machine;
use crate::names::{Address, DEVICE, LabName, MOST_HOSTS};

/// Device of a rack or pod towards the core.
const UP_DEVICE: &str = "up0";
/// Address of the core.
const CORE: Ipv4Addr = Ipv4Addr::new(172, 31, 0, 1);

/// One direction of a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    /// Number of the machine that sends.
    pub machine: usize,
    /// Its device.
    pub device: String,
    pub(super) limits: Limits,
}

/// Plan of a network.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Plan {
    /// Hosts in the order of the cluster, and then the machines that forward.
    pub machines: Vec<Machine>,
    /// Directions of links by their names in the cluster. Links of hosts of a pipe mesh have the names of those of a hose.
    pub links: BTreeMap<String, Link>,
    /// Batch of `ip` that makes namespaces and cables.
    pub cables: String,
    /// Batch of `ip` of each machine: addresses and routes.
    pub addresses: Vec<String>,
    /// File with the names of all machines.
    pub names: String,
    /// Disks of hosts.
    pub disks: Vec<Disk>,
    options: NetworkOptions,
}

fn unsupported<T>(field: &'static str, problem: String) -> Result<T, LabError> {
    Err(LabError::Unsupported { field, problem })
}

impl Plan {
    /// Plans the network of a cluster.
    ///
    /// # Errors
    /// Returns an error for a cluster that namespaces cannot have.
    pub fn of(name: &LabName, cluster: &Cluster, options: NetworkOptions) -> Result<Plan, LabError> {
        if options.scale == 0 {
            return unsupported("scale", "0: must be at least 1".to_owned());
        }
        check(cluster)?;
        let layout = Layout::of(cluster)?;
        let racks = cluster.fabric.rack_count();
        if layout.nodes.len() - racks > Address::MOST {
            let problem = format!("a lab has addresses for at most {} groups of racks", Address::MOST);
            return unsupported("shared_links", problem);
        }
        let mut plan = Plan {
            machines: Vec::new(),
            links: BTreeMap::new(),
            cables: String::new(),
            addresses: Vec::new(),
            names: String::new(),
            disks: Vec::new(),
            options,
        };
        plan.add_machines(name, cluster, &layout);
        plan.disks = disks::plan(name, cluster, &plan.machines, options)?;
        plan.add_cables(cluster, &layout);
        plan.join_machines(cluster);
        plan.add_routes(cluster, &layout);
        plan.add_links(cluster, &layout);
        plan.name_addresses();
        Ok(plan)
    }

    fn add_machines(&mut self, name: &LabName, cluster: &Cluster, layout: &Layout) {
        let fabric = &cluster.fabric;
        let mut add = |place: String, label: &str, address: Ipv4Addr, is_host: bool| {
            let namespace = name.namespace(&place);
            let _ = writeln!(self.cables, "netns add {namespace}");
            let (disks, cgroups) = (Vec::new(), Vec::new());
            let name = label.to_owned();
            let environment = Vec::new();
            self.machines.push(Machine {
                place,
                name,
                namespace,
                address,
                is_host,
                disks,
                cgroups,
                environment,
            });
        };
        for host in fabric.all_hosts() {
            let place = place_of(cluster, host);
            add(place.to_string(), fabric.host_name(host), Address(place).ip(), true);
        }
        for (at, node) in layout.nodes.iter().enumerate() {
            let address = if node.above.is_some() { self_address(cluster, at) } else { CORE };
            add(node.name.clone(), &node.label, address, false);
        }
    }

    /// Cables between machines, and the addresses of their ends.
    fn add_cables(&mut self, cluster: &Cluster, layout: &Layout) {
        self.addresses = vec!["link set lo up\n".to_owned(); self.machines.len()];
        let hosts = cluster.fabric.host_count();
        for host in cluster.fabric.all_hosts() {
            let place = place_of(cluster, host);
            let device = format!("h{}", place.host);
            let gateway = before(self.machines[host.index()].address);
            self.cable(host.index(), DEVICE, hosts + place.rack as usize, &device, gateway);
        }
        for (at, node) in layout.nodes.iter().enumerate() {
            match node.above {
                Some(above) => {
                    let gateway = before(self.machines[hosts + at].address);
                    self.cable(hosts + at, UP_DEVICE, hosts + above, &node.name, gateway);
                }
                None => {
                    let _ = writeln!(self.addresses[hosts + at], "addr add {CORE}/32 dev lo");
                }
            }
        }
    }

    /// Cable from a machine to the one above it, which is its gateway.
    fn cable(&mut self, below: usize, device: &str, above: usize, far: &str, gateway: Ipv4Addr) {
        let [lower, upper] = [below, above].map(|at| &self.machines[at]);
        let _ = writeln!(
            self.cables,
            "link add {device} netns {} type veth peer name {far} netns {}",
            lower.namespace, upper.namespace
        );
        let address = lower.address;
        for (at, device, address) in [(below, device, address), (above, far, gateway)] {
            // Without segmentation offload, packets in a queue are as large as on a wire, and connections share a link
            // evenly.
            let _ = writeln!(
                self.addresses[at],
                "addr add {address}/30 dev {device}\nlink set {device} gso_max_segs 1 up"
            );
        }
        let _ = writeln!(self.addresses[below], "route add default via {gateway} src {address}");
    }

    /// Cables between hosts that share a machine, with the rates of their pairs.
    fn join_machines(&mut self, cluster: &Cluster) {
        let fabric = &cluster.fabric;
        let ends = |from: HostId| {
            fabric
                .all_hosts()
                .filter(move |&to| fabric.is_within_machine(from, to))
                .filter_map(move |to| Some((from, to, fabric.pair(from, to)?)))
        };
        for (from, to, pair) in fabric.all_hosts().flat_map(ends) {
            let [own, other] = [from, to].map(|host| &self.machines[host.index()]);
            let device = other.place.clone();
            if from < to {
                let far = &own.place;
                let _ = writeln!(
                    self.cables,
                    "link add {device} netns {} type veth peer name {far} netns {}",
                    own.namespace, other.namespace
                );
            }
            let _ = writeln!(
                self.addresses[from.index()],
                "link set {device} gso_max_segs 1 up\nroute add {} dev {device} src {}",
                other.address,
                own.address
            );
            let limits = Limits::link(real(cluster.capacities.get(pair).0 as u64, self.options.scale));
            self.links.insert(fabric.resource_name(pair), Link { machine: from.index(), device, limits });
        }
    }

    /// Routes to racks that are not directly below: from each node above a rack, by the node between.
    fn add_routes(&mut self, cluster: &Cluster, layout: &Layout) {
        let hosts = cluster.fabric.host_count();
        let core = layout.nodes.len() - 1;
        for rack in cluster.fabric.all_racks() {
            let mut towards: Vec<usize> = layout.above(rack).collect();
            towards.push(core);
            for step in towards.windows(2) {
                let via = self.machines[hosts + step[0]].address;
                let text = &mut self.addresses[hosts + step[1]];
                let _ = writeln!(text, "route add 10.{}.0.0/16 via {via}", rack.0);
                for &node in towards.iter().take_while(|&&node| node != step[0]) {
                    let _ = writeln!(text, "route replace {} via {via}", self.machines[hosts + node].address);
                }
            }
        }
    }

    fn add_links(&mut self, cluster: &Cluster, layout: &Layout) {
        let (fabric, hosts) = (&cluster.fabric, cluster.fabric.host_count());
        let scale = self.options.scale;
        let rate = |link: Option<ResourceId>| {
            link.and_then(|link| real(cluster.capacities.get(link).0 as u64, scale))
        };
        for host in fabric.all_hosts() {
            let (place, name) = (place_of(cluster, host), fabric.host_name(host));
            let egress = self.limits_out_of(cluster, host, rate(fabric.egress(host)));
            let ingress = self.limits_into(cluster, host, rate(fabric.ingress(host)));
            let rack = hosts + place.rack as usize;
            for (end, machine, device, limits) in [
                ("egress", host.index(), DEVICE.to_owned(), egress),
                ("ingress", rack, format!("h{}", place.host), ingress),
            ] {
                self.links.insert(format!("{name}:{end}"), Link { machine, device, limits });
            }
        }
        for (at, node) in layout.nodes.iter().enumerate() {
            let Some(above) = node.above else { continue };
            for (end, link, machine, device) in [
                ("uplink", node.up, hosts + at, UP_DEVICE),
                ("downlink", node.down, hosts + above, node.name.as_str()),
            ] {
                let shared =
                    link.filter(|_| fabric.shape() != Shape::Tree).map(|link| fabric.resource_name(link));
                let name = shared.unwrap_or_else(|| format!("{}:{end}", node.label));
                let limits = Limits::link(rate(link));
                self.links.insert(name, Link { machine, device: device.to_owned(), limits });
            }
        }
    }

    /// Limits out of a host. On a pipe, its paths have their own rates.
    fn limits_out_of(&self, cluster: &Cluster, from: HostId, rate: Option<u64>) -> Limits {
        let paths = match cluster.fabric.shape() {
            Shape::Pipe => self.path_rates(cluster, |other| (from, other)),
            Shape::Tree | Shape::Hose => Vec::new(),
        };
        Limits { rate, by: By::Destination, paths }
    }

    /// Limits into a host. On a hose, the paths with rates of their own have them here, so that all connections out of
    /// their source share one queue there.
    fn limits_into(&self, cluster: &Cluster, to: HostId, rate: Option<u64>) -> Limits {
        let paths = match cluster.fabric.shape() {
            Shape::Hose => self.path_rates(cluster, |other| (other, to)),
            Shape::Tree | Shape::Pipe => Vec::new(),
        };
        Limits { rate, by: By::Source, paths }
    }

    /// Rates of the paths between a host and each other one that is not on its machine.
    fn path_rates(&self, cluster: &Cluster, path: impl Fn(HostId) -> (HostId, HostId)) -> Vec<PathRate> {
        let fabric = &cluster.fabric;
        let of_path = |other: HostId| {
            let (from, to) = path(other);
            let pair = fabric.pair(from, to).filter(|_| !fabric.is_within_machine(from, to))?;
            let rate = real(cluster.capacities.get(pair).0 as u64, self.options.scale)?;
            Some(PathRate { end: self.machines[other.index()].address, rate })
        };
        fabric.all_hosts().filter_map(of_path).collect()
    }

    /// Batch of `tc` of a machine.
    pub fn queues(&self, machine: usize) -> String {
        let links = self.links.values().filter(|link| link.machine == machine);
        links.map(|link| link.limits.commands(&link.device, self.sizes())).collect()
    }

    /// Batch of `tc` that changes the rate of one direction of a link.
    pub fn replace(&self, link: &Link, rate: u64, queue: Option<Bytes>, burst: Option<Bytes>) -> String {
        let standard = self.sizes();
        let sizes = Sizes {
            queue: queue.map_or(standard.queue, |queue| queue.0),
            burst: burst.map(|burst| burst.0).or(standard.burst),
        };
        let limits = Limits { rate: real(rate, self.options.scale), ..link.limits.clone() };
        // The queue may be of another kind than before.
        format!("qdisc replace dev {0} root bfifo\nqdisc del dev {0} root\n", link.device)
            + &limits.commands(&link.device, sizes)
    }

    /// Number by which all rates are divided.
    pub fn scale(&self) -> u32 {
        self.options.scale
    }

    pub(super) fn sizes(&self) -> Sizes {
        Sizes { queue: self.options.queue.0, burst: self.options.burst.map(|burst| burst.0) }
    }

    /// Largest rate of a link, in bits per second of the lab.
    pub fn largest_rate(&self) -> u64 {
        self.links.values().filter_map(|link| link.limits.rate).max().unwrap_or(0)
    }

    fn name_addresses(&mut self) {
        let mut text = String::from("127.0.0.1 localhost\n");
        for machine in &self.machines {
            let is_own =
                |name: &&str| Machine::find(&self.machines, name).is_ok_and(|found| found == machine);
            let mut names: Vec<&str> = [machine.name.as_str(), machine.place.as_str()].into();
            names.dedup();
            names.retain(|name| is_own(name));
            if !names.is_empty() {
                let _ = writeln!(text, "{} {}", machine.address, names.join(" "));
            }
        }
        self.names = text;
    }
}

/// Address of a rack, or of a node above racks.
fn self_address(cluster: &Cluster, node: usize) -> Ipv4Addr {
    let racks = cluster.fabric.rack_count();
    match node.checked_sub(racks) {
        None => Ipv4Addr::new(172, 16, node as u8, 2),
        Some(group) => Ipv4Addr::new(172, 17, group as u8, 2),
    }
}

/// Address of the other end of a cable.
fn before(address: Ipv4Addr) -> Ipv4Addr {
    Ipv4Addr::from_bits(address.to_bits() - 1)
}

fn place_of(cluster: &Cluster, host: HostId) -> Place {
    let rack = cluster.fabric.rack_of(host);
    Place { rack: rack.0, host: host.0 - cluster.fabric.hosts(rack).start }
}

/// Checks what a lab cannot have.
fn check(cluster: &Cluster) -> Result<(), LabError> {
    let fabric = &cluster.fabric;
    let (hosts, racks) = (fabric.host_count(), fabric.rack_count());
    let most = Address::MOST;
    if racks > most {
        return unsupported("racks", format!("{racks}: a lab has addresses for at most {most} racks"));
    }
    if fabric.domain_count() - racks > most {
        let pods = fabric.domain_count() - racks;
        return unsupported("pods", format!("{pods}: a lab has addresses for at most {most} pods"));
    }
    let largest = fabric.all_racks().map(|rack| fabric.hosts(rack).len()).max().unwrap_or(0);
    if largest > most {
        let problem = format!("{largest}: a lab has addresses for at most {most} hosts in a rack");
        return unsupported("hosts_per_rack", problem);
    }
    if hosts > MOST_HOSTS {
        return unsupported("racks", format!("{hosts} hosts in all: a lab has at most {MOST_HOSTS}"));
    }
    if !cluster.cross_traffic.is_empty() {
        let problem = "a lab has no traffic of others: leave the field out, and start programs that send";
        return unsupported("cross_traffic", problem.to_owned());
    }
    if fabric.discipline(ResourceId(0)) != leeward_fabric::Discipline::Fifo {
        let problem = "links of a lab have no classes: leave the field out, and let hosts set priorities";
        return unsupported("priorities", problem.to_owned());
    }
    Ok(())
}
