//! Placement of the copies of a block.
//!
//! The writer keeps one copy if it can; the policy picks the others. Copies flow as a chain: from the writer to the
//! first host, to the second, and so on. The write ends when the last copy is on disk.
//!
//! A stripe has chunks of an erasure code instead of copies. The host of the first missing chunk of a damaged stripe
//! rebuilds all missing ones, as HDFS does: it reads as many chunks as the code has of data, and sends the others on.

mod answer;
mod ccp;
mod chain;
mod circuit;
mod coding;
mod copies;
mod fault_domains;
mod first_replica;
mod given;
mod leeward;
mod level;
mod path_estimates;
mod path_left;
mod rehdfs;
mod search;
mod sinbad;
mod sinbad_file;
mod sinbad_settings;
mod source;
mod spec;
mod uniform;
mod uplink;

use leeward_fabric::{Bandwidth, Bytes, Endpoint, Fabric, Hop, HostId, Nanos};
use leeward_ledger::{Demand, Entry, Fade, Owner, OwnerKind, Sign, Transaction};
use leeward_registry::Registry;
use serde::Deserialize;

pub use answer::{best_by_scores, check_answer, check_request, eligible};
pub use ccp::{Ccp, CcpSettings, Within};
pub use coding::Coding;
pub use copies::{Because, RatedCopy, choose_deletions, order_reads};
pub use given::{given, objections};
pub use leeward::{Leeward, LeewardSettings};
pub use path_left::PathLeft;
pub use rehdfs::{ReHdfs, ReHdfsSettings};
pub use sinbad::Sinbad;
pub use sinbad_file::SinbadFile;
pub use sinbad_settings::{Hysteresis, SinbadSettings, WithoutTelemetry};
pub use source::set_source;
pub use spec::ReplicasSpec;
pub use uniform::{Uniform, UniformSettings};

use self::path_left::sender;
use self::source::{source, sources_of_chunks};
use crate::ties::Ties;
use crate::{Constraints, Policy, Request};

/// A block to write, or a stripe of coded chunks.
#[derive(Clone, PartialEq, Debug)]
pub struct ReplicaRequest {
    /// Number of the request; it seeds the tie-breaking hash.
    pub id: u64,
    /// File of the block.
    pub file: u64,
    /// Host that writes the block; `None` for a writer outside the cluster.
    pub writer: Option<HostId>,
    /// Size of the block, or of one chunk.
    pub size: Bytes,
    /// r: number of copies, including the writer's own; or of chunks, including parity.
    pub replicas: u8,
    /// Copies or chunks.
    pub layout: Layout,
    /// f: fault domains besides the first copy's that must hold a copy (Sinbad section 2.1); for stripes,
    /// fault domains that may be lost.
    pub fault_domains: u8,
    /// Blocks of the file still to write, this one included.
    pub blocks_left: u64,
    /// The rest of its job, if known.
    pub job: Option<JobLeft>,
    /// Further constraints on the hosts.
    pub constraints: Constraints,
}

/// The rest of a job that ends with its last writer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobLeft {
    /// Number of the job.
    pub job: u64,
    /// Most blocks that one of its concurrent writers still has to write.
    pub blocks: u64,
}

/// Form of a block's data at its hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Layout {
    /// Whole copies; each host forwards the block to the next.
    #[default]
    Chain,
    /// Chunks of an erasure code, each sent by the writer; any `parity` of them may be lost.
    Stripe {
        /// Number of parity chunks.
        parity: u8,
    },
}

/// Hosts of the copies, in the order of the chain; the writer comes first if it keeps a copy.
pub type Chain = Vec<HostId>;

impl Request for ReplicaRequest {
    type Choice = Chain;
    const KIND: &'static str = "replicas";
}

/// All policies for replicas.
pub const REGISTRY: Registry<dyn Policy<ReplicaRequest>> = Registry {
    noun: "policy",
    kind: Some(ReplicaRequest::KIND),
    entries: &[
        uniform::REGISTRATION,
        sinbad::REGISTRATION,
        sinbad_file::REGISTRATION,
        ccp::REGISTRATION,
        rehdfs::REGISTRATION,
        leeward::REGISTRATION,
    ],
};

/// Reads the number of racks for the copies besides the first.
fn remote_racks<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    let racks = u8::deserialize(deserializer)?;
    let invalid = || serde::de::Error::custom("expected a number of racks from 1");
    (racks > 0).then_some(racks).ok_or_else(invalid)
}

/// Index of the host's device for a block. A hash distributes blocks over a host's devices, or over those with the
/// required type of storage.
pub fn device_of(fabric: &Fabric, host: HostId, block: u64, storage: Option<&str>) -> Option<u16> {
    let devices = fabric.devices(host);
    let fitting = || (0..).zip(devices).filter(|(_, device)| device.is_of(storage));
    let count = if storage.is_none() { devices.len() } else { fitting().count() } as u64;
    let drawn = (count > 0).then(|| (Ties::new(0, block).rank(u64::from(host.0)) % count) as usize)?;
    if storage.is_none() { Some(drawn as u16) } else { fitting().nth(drawn).map(|(index, _)| index) }
}

/// Calls `each` with the route of each transfer that writes a block. A chain is one route from the writer
/// into a device at each copy. A stripe has one route from the writer for each chunk. Without a writer, a
/// chunk's route starts at its host.
pub fn routes(
    fabric: &Fabric,
    layout: Layout,
    block: u64,
    storage: Option<&str>,
    writer: Option<HostId>,
    copies: &[HostId],
    mut each: impl FnMut(&[Endpoint]),
) {
    let mut route = Vec::with_capacity(copies.len() + 1);
    let into = |host: HostId| match device_of(fabric, host, block, storage) {
        Some(device) => Endpoint::DeviceWrite(host, device),
        None => Endpoint::Host(host),
    };
    let ends = |route: &mut Vec<Endpoint>, copies: &[HostId]| {
        route.clear();
        route.extend(writer.filter(|writer| copies.first() != Some(writer)).map(Endpoint::Host));
        route.extend(copies.iter().copied().map(into));
    };
    match layout {
        Layout::Chain => {
            ends(&mut route, copies);
            each(&route);
        }
        Layout::Stripe { .. } => {
            for copy in copies.chunks(1) {
                ends(&mut route, copy);
                each(&route);
            }
        }
    }
}

/// Ledger entry of a transfer over `hops`: elastic, and started at `now`.
fn transfer(
    request: &ReplicaRequest,
    hops: Vec<Hop>,
    cap: Option<Bandwidth>,
    fade: Fade,
    now: Nanos,
) -> Entry {
    let demand = Demand::Elastic { bytes: request.size, flows: 1, cap_bps: cap.map(|cap| cap.0) };
    let owner = Owner { kind: OwnerKind::File, id: request.file };
    Entry { owner, hops, demand, sign: Sign::Adds, fade, starts: Some(now) }
}

/// Ledger entries for all traffic of a block whose copies go to these hosts, on the whole path. The changes of some
/// policies cover only the links that the policy ranks.
pub fn traffic(fabric: &Fabric, request: &ReplicaRequest, copies: &[HostId], now: Nanos) -> Vec<Entry> {
    transfers(fabric, request, copies, None, Fade::WithEstimator, now).add
}

/// Ledger entries of all transfers of a request, with all their links.
fn transfers(
    fabric: &Fabric,
    request: &ReplicaRequest,
    copies: &[HostId],
    cap: Option<Bandwidth>,
    fade: Fade,
    now: Nanos,
) -> Transaction {
    let mut add = Vec::with_capacity(1);
    let storage = request.constraints.storage.as_deref();
    let chunks = sources_of_chunks(request);
    let rebuilder = copies.first().copied().filter(|_| !chunks.is_empty());
    for (&from, to) in chunks.iter().zip(rebuilder.iter().cycle()) {
        let mut hops = Vec::with_capacity(12);
        fabric.path(&[sender(fabric, from), Endpoint::Host(*to)], &mut hops);
        add.push(transfer(request, hops, cap, fade, now));
    }
    let writer = rebuilder.or(request.writer);
    routes(fabric, request.layout, request.id, storage, writer, copies, |route| {
        let mut hops = Vec::with_capacity(12);
        match (source(request), route) {
            (Some(host), [Endpoint::Host(_), rest @ ..]) => {
                fabric.path(&[&[sender(fabric, host)], rest].concat(), &mut hops);
            }
            _ => fabric.path(route, &mut hops),
        }
        add.push(transfer(request, hops, cap, fade, now));
    });
    Transaction { add, ..Transaction::default() }
}
