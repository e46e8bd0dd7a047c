//! Where the copies of a block go.
//!
//! The writer keeps one copy if it can; the policy picks the others. Copies flow as a chain, writer to first to
//! second, and the write ends when the last copy is on disk.

mod first;
mod level;
mod sinbad;
mod uniform;

use leeward_fabric::input::{InputError, read_yaml};
use leeward_fabric::{Bandwidth, Bytes, Endpoint, Fabric, Hop, HostId, Nanos, Shape};
use leeward_ledger::{Demand, Entry, Fade, Owner, OwnerKind, Sign, Transaction};
use serde::de::DeserializeOwned;

pub use sinbad::{Hysteresis, Sinbad, SinbadSettings, WithoutTelemetry};
pub use uniform::{Uniform, UniformSettings};

use crate::ties::Ties;
use crate::{Constraints, Policy, PolicyError, Registration, Request};

/// A block to be written.
#[derive(Clone, PartialEq, Debug)]
pub struct ReplicaRequest {
    /// Tells requests apart, and seeds their ties.
    pub id: u64,
    /// The file that the block is of.
    pub file: u64,
    /// The machine that writes it; `None` if it is outside the cluster.
    pub writer: Option<HostId>,
    /// Size of the block.
    pub size: Bytes,
    /// r: copies, the writer's own included.
    pub replicas: u8,
    /// f: fault domains besides the first copy's that must hold a copy (Sinbad section 2.1).
    pub fault_domains: u8,
    /// What else the hosts must satisfy.
    pub constraints: Constraints,
}

/// The hosts of the copies, in the order of the chain; the writer first if it keeps one.
pub type Chain = Vec<HostId>;

impl Request for ReplicaRequest {
    type Choice = Chain;
    const KIND: &'static str = "replicas";
}

/// Every policy for replicas there is.
pub const REGISTRY: &[Registration<ReplicaRequest>] = &[uniform::REGISTRATION, sinbad::REGISTRATION];

/// Makes a policy by name; `settings` is a YAML or JSON mapping, empty for the defaults.
pub fn make(name: &str, settings: &str) -> Result<Box<dyn Policy<ReplicaRequest>>, PolicyError> {
    crate::policy::make(REGISTRY, name, settings)
}

/// Reads a policy's settings.
fn settings<T: DeserializeOwned + Default>(policy: &str, text: &str) -> Result<T, InputError> {
    if text.trim().is_empty() { Ok(T::default()) } else { read_yaml(&format!("settings of {policy}"), text) }
}

/// How the copies besides the first are grouped, one group a rack, the larger first: two copies in one remote rack
/// are `[2]`, in two remote racks `[1, 1]`. On a mesh nothing is near, and every copy is by itself.
fn groups(request: &ReplicaRequest, remote_racks: u8, shape: Shape) -> Vec<usize> {
    let copies = usize::from(request.replicas.saturating_sub(1));
    let racks =
        if shape == Shape::Tree { remote_racks.max(request.fault_domains).max(1).into() } else { copies };
    let racks = racks.min(copies);
    (0..racks).map(|i| copies / racks + usize::from(i < copies % racks)).collect()
}

/// Which device of a host a block is written to: blocks are dealt out over a host's devices.
pub fn device_of(fabric: &Fabric, host: HostId, block: u64) -> Option<u16> {
    let devices = fabric.devices(host).len() as u64;
    (devices > 0).then(|| (Ties::new(0, block).rank(u64::from(host.0)) % devices) as u16)
}

/// The places that the chain of a block goes through: from the writer, and into a device at each copy.
pub fn chain(
    fabric: &Fabric,
    block: u64,
    writer: Option<HostId>,
    copies: &[HostId],
    out: &mut Vec<Endpoint>,
) {
    out.extend(writer.filter(|writer| copies.first() != Some(writer)).map(Endpoint::Host));
    out.extend(copies.iter().map(|&host| match device_of(fabric, host, block) {
        Some(device) => Endpoint::DeviceWrite(host, device),
        None => Endpoint::Host(host),
    }));
}

/// What the ledger learns of a block: an elastic transfer over `hops`, under way at once.
fn transfer(
    request: &ReplicaRequest,
    hops: Vec<Hop>,
    cap: Option<Bandwidth>,
    fade: Fade,
    now: Nanos,
) -> Transaction {
    let demand = Demand::Elastic { bytes: request.size, flows: 1, cap_bps: cap.map(|cap| cap.0) };
    let owner = Owner { kind: OwnerKind::File, id: request.file };
    let entry = Entry { owner, hops, demand, sign: Sign::Adds, fade, starts: Some(now) };
    Transaction { add: vec![entry], ..Transaction::default() }
}

/// The hops of a block's whole chain.
fn chain_hops(fabric: &Fabric, request: &ReplicaRequest, copies: &[HostId]) -> Vec<Hop> {
    let (mut endpoints, mut hops) = (Vec::with_capacity(8), Vec::with_capacity(12));
    chain(fabric, request.id, request.writer, copies, &mut endpoints);
    fabric.path(&endpoints, &mut hops);
    hops
}
