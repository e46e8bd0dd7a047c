//! Workloads that are promised their SLOs while a service runs, and one more: what `leeward slo admit` and `pack` decide of
//! files, decided of what is in force.
//!
//! ```text
//! Standing (what is in force) + Form (what is asked for) --admit | pack--> Agreement: each as it is promised then
//!                                                                           \--entries, queues read--> ledger
//! ```
//!
//! A workload is a form, the fields of one in a workload file, in which no other file is named; what is promised to it is
//! written back into the form (server, priority, limits), so that what is in force is a workload file too and is read,
//! bounded, admitted to and packed by the same code. An agreement is about all workloads: one that comes may give others other
//! priorities (admission) or other limits (packing).

mod admission;
mod beside;
mod forms;
mod packing;

use leeward_fabric::input::InputError;
use leeward_fabric::{BITS_PER_BYTE, Capacities, Cluster, Fabric, Load, ResourceId, ResourceKind};
use leeward_ledger::Entry;
use leeward_traces::Stage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use admission::admit;
pub use forms::{Form, check};
pub use packing::pack;

use super::bound::{Bound, Unbounded};
use super::file::{BucketRecord, Entry as Asked};
use super::{Promise, Slo, System, pack as packs};

/// A workload that is promised its SLO.
#[derive(Clone, PartialEq, Debug)]
pub struct Standing {
    /// Whose entries in the ledger are its.
    pub id: u64,
    /// As it was asked for.
    pub form: Form,
    /// As it is promised.
    pub agreed: Agreed,
}

/// A workload as it is promised.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Agreed {
    /// Its name.
    pub workload: String,
    /// The host that makes the requests.
    pub client: String,
    /// The host that has the volume.
    pub server: String,
    /// The volume's device; the host where no device is known.
    pub volume: String,
    /// What it is promised.
    pub slo: AgreedSlo,
    /// The most that a request takes, the SLO's percentile where the bound is of one; null where there is no bound.
    pub bound_s: Option<f64>,
    /// What bounds it.
    pub by: Option<String>,
    /// The stages of a request's way.
    pub stages: Vec<AgreedStage>,
}

/// A latency that a share of requests stays below.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AgreedSlo {
    /// In percent.
    pub percentile: f64,
    /// In seconds.
    pub latency_s: f64,
}

/// A stage of a workload that is promised its SLO.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AgreedStage {
    /// Which.
    #[schemars(extend("enum" = ["network-in", "storage", "network-out"]))]
    pub stage: String,
    /// The links or the device that requests pass, in order; none where the client is the server.
    pub queues: Vec<String>,
    /// Its priority there, 0 first.
    pub priority: u32,
    /// Token buckets that are to be enforced, all at once: bytes on links, seconds of service at devices.
    pub limits: Vec<BucketRecord>,
    /// Whether these are the workload's own curve, by which nothing is held back.
    pub own_curve: bool,
    /// The most that a request takes here, in seconds.
    pub bound_s: Option<f64>,
}

/// What is promised to all workloads, with the one that was asked for as the last.
#[derive(Clone, PartialEq, Debug)]
pub struct Agreement {
    /// Each workload, in the order of those in force.
    pub agreed: Vec<Agreed>,
    /// For each of them, what the ledger holds for it then.
    pub entries: Vec<Vec<Entry>>,
    /// The queues that it rests on.
    pub read: Vec<ResourceId>,
    /// The link of the new workload that has least left to be promised then, and how much, in bit/s.
    pub narrowest: Option<(ResourceId, i64)>,
}

/// Why there is no agreement.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Declined {
    /// What is asked for is wrong; fields are those of the form.
    #[error(transparent)]
    Wrong(InputError),
    /// There is no such policy, or its settings are wrong.
    #[error("{0}")]
    Policy(String),
    /// An SLO would not be kept for sure, or no server has room, or nothing can be promised on the cluster.
    #[error("{0}")]
    Refused(String),
}

impl From<AgreedSlo> for Slo {
    fn from(slo: AgreedSlo) -> Slo {
        Slo { percentile: slo.percentile, latency: slo.latency_s }
    }
}

/// Priorities that the cluster's networks tell apart, where promises can be kept.
fn levels(fabric: &Fabric) -> Result<u32, Declined> {
    let levels = packs::levels(fabric).map_err(|error| Declined::Refused(error.message))?;
    Ok(u32::from(levels).min(super::priorities::LEVELS))
}

/// The cluster with next to nothing where a link or device carries nothing: what is promised there has no bound then, and all
/// else has.
fn passable(cluster: &Cluster) -> Cluster {
    let all = cluster.capacities.as_slice().iter();
    let capacities = all.map(|capacity| Load(capacity.0.max(BITS_PER_BYTE as i64)));
    Cluster { fabric: cluster.fabric.clone(), capacities: Capacities::new(capacities.collect()) }
}

/// A promise of a system: as it is told, and as the ledger holds it.
struct Told<'a> {
    asked: &'a Asked,
    promise: &'a Promise,
    bound: Option<&'a Result<Bound, Unbounded>>,
    owner: u64,
}

impl Told<'_> {
    fn agreed(&self, fabric: &Fabric, system: &System) -> Option<Agreed> {
        let Told { asked, promise, .. } = self;
        let bound = self.bound.and_then(|bound| bound.as_ref().ok());
        let stage = |demand: &super::Demand| {
            let at = promise.workload.demands.iter().position(|of| of.stage == demand.stage);
            // A stage that crosses nothing has no priority, and nothing is enforced there.
            let limit = at.map_or(&demand.arrivals, |at| &promise.limits[at]);
            let queues = at.map_or(&[][..], |at| promise.route[at].as_slice());
            AgreedStage {
                stage: demand.stage.name().to_owned(),
                queues: queues.iter().map(|&queue| system.queues[queue].name.clone()).collect(),
                priority: at.map_or(0, |at| promise.priorities[at]),
                limits: limit.buckets().iter().copied().map(BucketRecord::from).collect(),
                own_curve: *limit == demand.arrivals,
                bound_s: bound.map(|bound| at.map_or(0.0, |at| bound.stages[at])),
            }
        };
        let (server, slo) = (asked.server?, asked.workload.slo?);
        let device = server.device.and_then(|device| fabric.device(server.host, device));
        let host = fabric.host_name(server.host).to_owned();
        Some(Agreed {
            workload: asked.workload.name.clone(),
            client: fabric.host_name(asked.client).to_owned(),
            volume: device.map_or_else(|| host.clone(), |device| fabric.resource_name(device)),
            server: host,
            slo: AgreedSlo { percentile: slo.percentile, latency_s: slo.latency },
            bound_s: bound.map(|bound| bound.seconds),
            by: bound.map(|bound| bound.method.name().to_owned()),
            stages: asked.workload.demands.iter().map(stage).collect(),
        })
    }

    fn entries(&self, fabric: &Fabric, system: &System) -> Result<Vec<Entry>, Declined> {
        let entries = packs::entries(fabric, &system.queues, self.promise, self.owner);
        entries.map_err(|error| Declined::Refused(error.to_string()))
    }
}

/// What a system with a bound for each promise, or none, comes to.
fn agreement(
    cluster: &Cluster,
    standing: &[Standing],
    asked: &[&Asked],
    id: u64,
    system: &System,
    bounds: &[Option<Result<Bound, Unbounded>>],
) -> Result<Agreement, Declined> {
    let fabric = &cluster.fabric;
    let (mut agreed, mut entries) = (Vec::with_capacity(asked.len()), Vec::with_capacity(asked.len()));
    let owners = standing.iter().map(|standing| standing.id).chain([id]);
    for (asked, owner) in asked.iter().zip(owners) {
        let name = &asked.workload.name;
        let lost = || Declined::Refused(format!("{name}: it has no place in the analysis"));
        let at = system.promises.iter().position(|promise| promise.workload.name == *name);
        let at = at.ok_or_else(lost)?;
        let told = Told { asked, promise: &system.promises[at], bound: bounds[at].as_ref(), owner };
        agreed.push(told.agreed(fabric, system).ok_or_else(lost)?);
        entries.push(told.entries(fabric, system)?);
    }
    let mut promised = vec![0.0; system.queues.len()];
    for Promise { limits, route, .. } in &system.promises {
        for (limit, route) in limits.iter().zip(route) {
            route.iter().for_each(|&queue| promised[queue] += limit.rate());
        }
    }
    let own = asked.last().map(|asked| &asked.workload.name);
    let own = system.promises.iter().filter(|promise| Some(&promise.workload.name) == own);
    let left = own.flat_map(|promise| promise.route.iter().flatten()).filter_map(|&queue| {
        let resource = system.queues[queue].resource?;
        let left = (system.queues[queue].capacity - promised[queue]) * BITS_PER_BYTE;
        (fabric.kind(resource) != ResourceKind::Device).then_some((resource, left.floor() as i64))
    });
    let narrowest = left.min_by_key(|&(resource, left)| (left, resource));
    let read = system.queues.iter().filter_map(|queue| queue.resource).collect();
    Ok(Agreement { agreed, entries, read, narrowest })
}

/// One of a workload's stages by name, as a field of a form.
fn by_stage(value: impl Fn(&AgreedStage) -> Option<Value>, stages: &[AgreedStage]) -> Value {
    let one = |stage: &AgreedStage| Some((stage.stage.clone(), value(stage)?));
    Value::Object(stages.iter().filter_map(one).collect::<Map<String, Value>>())
}

/// Whether a stage is at a device, where work is seconds.
fn is_storage(stage: &AgreedStage) -> bool {
    Stage::named(&stage.stage) == Some(Stage::Storage)
}
