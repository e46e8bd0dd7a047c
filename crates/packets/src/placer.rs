//! Placement of block copies by a replica policy on its own engine. The simulator calls it when blocks begin and end.
//!
//! The engine sees racks with one link in each direction. A link has the capacity of the packet switch plus a circuit
//! that is always up. Load reports have the traffic that the switch carried on each of these links, and leave out the
//! links of hosts. Before the first block, one report states that the network was idle. The engine's time is therefore
//! one report interval ahead of the simulation.

use std::collections::BTreeMap;

use leeward_engine::{Engine, Input, Output, Ruling};
use leeward_fabric::input::InputError;
use leeward_fabric::{Bytes, Cluster, DomainId, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{EntryId, Ledger, LedgerSettings, Sample};
use leeward_placement::replicas::{self, Layout, ReplicaRequest};
use leeward_placement::{Constraints, Explain};
use leeward_registry::PolicySpec;

use super::file::NetworkFile;
use super::workload::{Block, Place};

/// Chooses the hosts of block copies.
pub struct Placer {
    engine: Engine,
    hosts_per_rack: u32,
    replicas: u8,
    every: Nanos,
    /// Ledger entries of blocks in progress, by block number.
    entries: BTreeMap<usize, Vec<EntryId>>,
    /// By rack: its outbound and inbound links, with the bytes that each had carried by the last report.
    links: Vec<[(ResourceId, u64); 2]>,
    /// Time of the last report.
    reported: Nanos,
    out: Vec<Output>,
}

impl Placer {
    /// Creates a placer for blocks of `replicas` copies, on a network with or without circuits, with a load
    /// report every `every`.
    ///
    /// # Errors
    /// Returns an error for an unknown policy, a policy that delays blocks, or invalid settings.
    pub fn new(
        policy: &PolicySpec,
        replicas: u8,
        every: Nanos,
        network: &NetworkFile,
        circuits: bool,
        seed: u64,
    ) -> Result<Placer, InputError> {
        let invalid = |message: String| InputError::new("copies", message);
        let replica_policy = replicas::REGISTRY
            .make(&policy.name, &policy.settings)
            .map_err(|error| invalid(error.to_string()))?;
        let hosts_per_rack = network.hosts_per_rack as u32;
        let block = Block {
            first: 0,
            hops: 0,
            file: 0,
            writer: Place { rack: 0, host: 0 },
            bytes: u64::MAX,
            left: 1,
        };
        let delay = replica_policy.batching_delay(&request(0, &block, replicas, hosts_per_rack));
        if delay > Nanos(0) {
            let message = format!("`{}` delays blocks by {delay}: expected interval=0s", policy.label);
            return Err(invalid(message));
        }
        let circuit = if circuits { network.circuit_rate.0 } else { 0 };
        let text = format!(
            "{{racks: {}, hosts_per_rack: {hosts_per_rack}, nic: {}bps, rack_link: {}bps}}",
            network.racks,
            network.nic.0,
            network.packet_rate.0.saturating_add(circuit)
        );
        let Cluster { fabric, capacities, .. } = Cluster::from_text("network", &text)?;
        let settings = LedgerSettings { interval: every, ..LedgerSettings::default() };
        let ledger = Ledger::new(fabric.clone(), &capacities, settings)
            .map_err(|error| invalid(format!("report: {error}")))?;
        let link = |link: Option<ResourceId>| (link.expect("racks of a tree have links"), 0);
        let links = |rack: DomainId| [link(fabric.out_of_domain(rack)), link(fabric.into_domain(rack))];
        let mut placer = Placer {
            links: fabric.all_racks().map(links).collect(),
            engine: Engine::new(ledger, replica_policy, seed, Explain::Off),
            hosts_per_rack,
            replicas,
            every,
            entries: BTreeMap::new(),
            reported: Nanos(0),
            out: Vec::new(),
        };
        placer.send_report(Nanos(0), every, |_, _| 0);
        Ok(placer)
    }

    /// Interval between load reports.
    pub fn every(&self) -> Nanos {
        self.every
    }

    /// Places a block that begins. Returns the hosts of its copies, the writer first.
    ///
    /// # Errors
    /// Returns the reason if the policy finds no placement.
    pub fn place_block(&mut self, now: Nanos, number: usize, block: &Block) -> Result<Vec<Place>, String> {
        let request = request(number, block, self.replicas, self.hosts_per_rack);
        let answer = self.engine.place_replicas(
            now.plus(self.every),
            number as u64,
            request,
            Ruling::default(),
            &mut self.out,
        );
        let placed =
            answer.expect("a policy without batching answers at once").map_err(|error| error.to_string())?;
        self.engine.handle(now.plus(self.every), Input::Started(&placed.entries), &mut self.out);
        self.entries.insert(number, placed.entries);
        let hosts = self.hosts_per_rack;
        let place = |host: &HostId| Place { rack: host.0 / hosts, host: host.0 % hosts };
        Ok(placed.decision.choice.iter().map(place).collect())
    }

    /// Releases the entries of a block that has ended.
    pub fn release_block(&mut self, now: Nanos, number: usize) {
        if let Some(entries) = self.entries.remove(&number) {
            self.engine.handle(now.plus(self.every), Input::Release(&entries), &mut self.out);
            self.out.clear();
        }
    }

    /// Reports the total bytes carried so far between each pair of racks.
    pub fn report(&mut self, now: Nanos, carried: impl Fn(usize, usize) -> u64) {
        self.send_report(self.reported.plus(self.every), now.plus(self.every), carried);
        self.reported = now;
    }

    fn send_report(&mut self, from: Nanos, until: Nanos, carried: impl Fn(usize, usize) -> u64) {
        let racks = self.links.len();
        let window = until.since(from).0.max(1);
        let mut samples = Vec::with_capacity(2 * racks);
        for (rack, links) in self.links.iter_mut().enumerate() {
            let sums: [u64; 2] = [
                (0..racks).map(|to| carried(rack, to)).sum(),
                (0..racks).map(|source| carried(source, rack)).sum(),
            ];
            for ((resource, before), now) in links.iter_mut().zip(sums) {
                let bits = 8 * u128::from(now - *before) * u128::from(Nanos::SECOND.0);
                let load = Load(i64::try_from(bits / u128::from(window)).unwrap_or(i64::MAX));
                *before = now;
                samples.push(Sample { resource: *resource, window: (from, until), load, guaranteed: None });
            }
        }
        self.engine.report(until, &samples, &mut self.out);
        self.out.clear();
    }
}

fn request(number: usize, block: &Block, replicas: u8, hosts_per_rack: u32) -> ReplicaRequest {
    ReplicaRequest {
        id: number as u64,
        file: block.file.into(),
        writer: Some(HostId(block.writer.rack * hosts_per_rack + block.writer.host)),
        size: Bytes(block.bytes),
        replicas,
        layout: Layout::Chain,
        fault_domains: 1,
        blocks_left: block.left,
        job: None,
        constraints: Constraints::default(),
    }
}
