//! Where the copies of a block go.
//!
//! The writer keeps one copy if it can; the policy picks the others. Copies flow as a chain, writer to first to
//! second, and the write ends when the last copy is on disk.

mod ccp;
mod chain;
mod circuit;
mod first;
mod form;
mod leeward;
mod level;
mod rehdfs;
mod search;
mod sinbad;
mod sinbad_file;
mod spread;
mod survey;
mod uniform;
mod uplink;

use leeward_fabric::{Bandwidth, Bytes, Endpoint, Fabric, Hop, HostId, Nanos};
use leeward_ledger::{Demand, Entry, Fade, Owner, OwnerKind, Sign, Transaction};
use serde::Deserialize;

pub use ccp::{Ccp, CcpSettings, Within};
pub use form::Form;
pub use leeward::{Leeward, LeewardSettings};
pub use rehdfs::{ReHdfs, ReHdfsSettings};
pub use sinbad::{Hysteresis, Sinbad, SinbadSettings, WithoutTelemetry};
pub use sinbad_file::SinbadFile;
pub use uniform::{Uniform, UniformSettings};

use crate::policy::{setting_error, settings};
use crate::ties::Ties;
use crate::{Constraints, Policy, PolicyError, Registration, Request};

/// A block to be written, or a stripe of coded chunks.
#[derive(Clone, PartialEq, Debug)]
pub struct ReplicaRequest {
    /// Tells requests apart, and seeds their ties.
    pub id: u64,
    /// The file that the block is of.
    pub file: u64,
    /// The machine that writes it; `None` if it is outside the cluster.
    pub writer: Option<HostId>,
    /// Size of the block, or of one chunk.
    pub size: Bytes,
    /// r: copies, the writer's own included; or chunks, parity included.
    pub replicas: u8,
    /// Whether they are copies or chunks.
    pub layout: Layout,
    /// f: fault domains besides the first copy's that must hold a copy (Sinbad section 2.1); or that may be lost.
    pub fault_domains: u8,
    /// Blocks of the file that are yet to be written, this one included.
    pub blocks_left: u64,
    /// What else the hosts must satisfy.
    pub constraints: Constraints,
}

/// What is written at the hosts of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Layout {
    /// Whole copies, each host passing the block on to the next.
    #[default]
    Chain,
    /// Chunks of an erasure code, each sent by the writer; any `parity` of them may be lost.
    Stripe {
        /// Chunks that are not data.
        parity: u8,
    },
}

/// The hosts of the copies, in the order of the chain; the writer first if it keeps one.
pub type Chain = Vec<HostId>;

impl Request for ReplicaRequest {
    type Choice = Chain;
    const KIND: &'static str = "replicas";
}

/// Every policy for replicas there is.
pub const REGISTRY: &[Registration<ReplicaRequest>] = &[
    uniform::REGISTRATION,
    sinbad::REGISTRATION,
    sinbad_file::REGISTRATION,
    ccp::REGISTRATION,
    rehdfs::REGISTRATION,
    leeward::REGISTRATION,
];

/// Makes a policy by name; `settings` is a YAML or JSON mapping, empty for the defaults.
pub fn make(name: &str, settings: &str) -> Result<Box<dyn Policy<ReplicaRequest>>, PolicyError> {
    crate::policy::make(REGISTRY, name, settings)
}

/// Reads how many racks the copies besides the first are spread over.
fn remote_racks<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    let racks = u8::deserialize(deserializer)?;
    let none = || serde::de::Error::custom("expected a number of racks from 1");
    (racks > 0).then_some(racks).ok_or_else(none)
}

/// Which device of a host a block is written to: blocks are dealt out over a host's devices.
pub fn device_of(fabric: &Fabric, host: HostId, block: u64) -> Option<u16> {
    let devices = fabric.devices(host).len() as u64;
    (devices > 0).then(|| (Ties::new(0, block).rank(u64::from(host.0)) % devices) as u16)
}

/// The transfers that write a block, each as the places it goes through: one chain from the writer into a device at
/// each copy, or one transfer from the writer for each chunk. A chunk from outside begins at its host.
pub fn routes(
    fabric: &Fabric,
    layout: Layout,
    block: u64,
    writer: Option<HostId>,
    copies: &[HostId],
    mut each: impl FnMut(&[Endpoint]),
) {
    let mut route = Vec::with_capacity(copies.len() + 1);
    let into = |host: HostId| match device_of(fabric, host, block) {
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

/// What the ledger learns of a transfer of this request over `hops`: elastic, and under way at once.
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

/// What the ledger learns of all transfers of a request, whole.
fn transfers(
    fabric: &Fabric,
    request: &ReplicaRequest,
    copies: &[HostId],
    cap: Option<Bandwidth>,
    fade: Fade,
    now: Nanos,
) -> Transaction {
    let mut add = Vec::with_capacity(1);
    routes(fabric, request.layout, request.id, request.writer, copies, |route| {
        let mut hops = Vec::with_capacity(12);
        fabric.path(route, &mut hops);
        add.push(transfer(request, hops, cap, fade, now));
    });
    Transaction { add, ..Transaction::default() }
}
