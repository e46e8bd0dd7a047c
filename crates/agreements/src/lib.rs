//! Agreements on latency SLOs: a running service admits or packs one more workload beside the active ones. The
//! decisions are the same as in `leeward slo admit` and `pack` on files.
//!
//! ```text
//! active workloads + Form (the request) --admit | pack--> Agreement: the new promise of each workload
//!                                                    \--entries, queues read--> ledger
//! ```
//!
//! A workload is a form: the fields of a workload in a workload file. A form names no other file. The promise is
//! written back into the form (server, priority, limits). The active workloads are therefore a workload file too, and
//! the same code reads, bounds, admits and packs them. An agreement covers all workloads: a new workload may give the
//! others new priorities (admission) or new limits (packing).

mod admission;
mod existing_grants;
mod forms;
mod packing;

use leeward_fabric::input::InputError;
use leeward_fabric::{BITS_PER_BYTE, Capacities, Cluster, Fabric, Load, ResourceId, ResourceKind};
use leeward_ledger::Entry;
use leeward_models::BucketRecord;
use leeward_slo::bound::{Bound, Unbounded};
use leeward_slo::file::{Entry as WorkloadEntry, OverName};
use leeward_slo::{Demand, Promise, Slo, System, pack as packs, priorities};
use leeward_traces::Stage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use admission::admit;
pub use forms::{Form, check};
pub use packing::pack;

/// A running workload with a promised SLO.
#[derive(Clone, PartialEq, Debug)]
pub struct ActiveWorkload {
    /// Owner id of its entries in the ledger.
    pub id: u64,
    /// The form as the client sent it.
    pub form: Form,
    /// The promise.
    pub agreed: Grant,
}

/// A workload with its promise.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Agreed")]
pub struct Grant {
    /// Name of the workload.
    pub workload: String,
    /// Host that sends the requests.
    pub client: String,
    /// Host that has the volume.
    pub server: String,
    /// Device of the volume; the host if no device is known.
    pub volume: String,
    /// The promised SLO.
    pub slo: GrantedSlo,
    /// Upper bound on the latency of a request, in seconds. A stochastic bound limits the SLO's percentile of latency.
    /// Null if there is no bound.
    pub bound_s: Option<f64>,
    /// Method of the bound; null if there is no bound.
    pub by: Option<String>,
    /// Stages of a request's path.
    pub stages: Vec<GrantedStage>,
}

/// A latency that a percentile of requests stays below.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AgreedSlo")]
pub struct GrantedSlo {
    /// Percentile, in percent.
    pub percentile: f64,
    /// Latency, in seconds.
    pub latency_s: f64,
}

/// A stage of a workload with a promised SLO.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AgreedStage")]
pub struct GrantedStage {
    /// Name of the stage.
    #[schemars(extend("enum" = ["network-in", "storage", "network-out"]))]
    pub stage: String,
    /// Links or device that requests pass, in order; empty if the client is the server.
    pub queues: Vec<String>,
    /// Priority at the stage; 0 is served first.
    pub priority: u32,
    /// Token buckets to enforce, all at once: in bytes on links, in seconds of service at devices.
    pub limits: Vec<BucketRecord>,
    /// True if the limits are the workload's own arrival curve, which delays nothing.
    pub own_curve: bool,
    /// Upper bound on the latency at this stage, in seconds.
    pub bound_s: Option<f64>,
    /// Handling of requests over a limit at storage; absent if the workload does not state it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<OverName>,
    /// Requests that the device has at once, as bounds assume; absent on networks, and if no workload states a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outstanding: Option<u32>,
}

/// Promises of all workloads after a decision; the new workload is the last.
#[derive(Clone, PartialEq, Debug)]
pub struct Agreement {
    /// Promise of each workload, in the order of the active workloads.
    pub agreed: Vec<Grant>,
    /// Ledger entries of each workload.
    pub entries: Vec<Vec<Entry>>,
    /// Resources that the decision depends on.
    pub read: Vec<ResourceId>,
    /// Link of the new workload with the least unreserved capacity, and that capacity in bit/s.
    pub narrowest: Option<(ResourceId, i64)>,
}

/// Reason for which there is no agreement.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Rejected {
    /// The form is invalid; the error names its field.
    #[error(transparent)]
    Invalid(InputError),
    /// The policy is unknown, or its settings are invalid.
    #[error("{0}")]
    Policy(String),
    /// An SLO would not be guaranteed, no server has room, or the cluster does not support guarantees.
    #[error("{0}")]
    Infeasible(String),
}

impl From<GrantedSlo> for Slo {
    fn from(slo: GrantedSlo) -> Slo {
        Slo { percentile: slo.percentile, latency: slo.latency_s }
    }
}

/// Number of priorities for promises on the cluster.
fn levels(fabric: &Fabric) -> Result<u32, Rejected> {
    let levels = packs::levels(fabric).map_err(|error| Rejected::Infeasible(error.message))?;
    Ok(u32::from(levels).min(priorities::LEVELS))
}

/// Replaces zero capacities by one byte per second. Promises on such a link or device then have no bound; all others
/// keep their bounds.
fn passable(cluster: &Cluster) -> Cluster {
    let all = cluster.capacities.as_slice().iter();
    let capacities = all.map(|capacity| Load(capacity.0.max(BITS_PER_BYTE as i64)));
    Cluster { capacities: Capacities::new(capacities.collect()), ..cluster.clone() }
}

/// A promise of a system, to be converted to an answer and to ledger entries.
struct GrantBuilder<'a> {
    entry: &'a WorkloadEntry,
    promise: &'a Promise,
    /// Requests at once by queue, as workloads state them.
    outstanding: &'a [Option<u32>],
    bound: Option<&'a Result<Bound, Unbounded>>,
    owner: u64,
}

impl GrantBuilder<'_> {
    fn agreed(&self, fabric: &Fabric, system: &System) -> Option<Grant> {
        let GrantBuilder { entry, promise, .. } = self;
        let bound = self.bound.and_then(|bound| bound.as_ref().ok());
        let stage = |demand: &Demand| {
            let at = promise.workload.demands.iter().position(|other| other.stage == demand.stage);
            // A stage without queues has no priority and no limits.
            let limit = at.map_or(&demand.arrivals, |at| &promise.limits[at]);
            let queues = at.map_or(&[][..], |at| promise.route[at].as_slice());
            let storage = Stage::Storage as usize;
            let states_over = demand.stage == Stage::Storage && entry.over_stated[storage];
            GrantedStage {
                stage: demand.stage.name().to_owned(),
                queues: queues.iter().map(|&queue| system.queues[queue].name.clone()).collect(),
                priority: at.map_or(0, |at| promise.priorities[at]),
                limits: BucketRecord::of(limit),
                own_curve: *limit == demand.arrivals,
                bound_s: bound.map(|bound| at.map_or(0.0, |at| bound.stages[at])),
                over: states_over.then(|| entry.over[storage].into()),
                outstanding: queues.iter().filter_map(|&queue| self.outstanding[queue]).max(),
            }
        };
        let (server, slo) = (entry.server?, entry.workload.slo?);
        let device = server.device.and_then(|device| fabric.device(server.host, device));
        let host = fabric.host_name(server.host).to_owned();
        Some(Grant {
            workload: entry.workload.name.clone(),
            client: fabric.host_name(entry.client).to_owned(),
            volume: device.map_or_else(|| host.clone(), |device| fabric.resource_name(device)),
            server: host,
            slo: GrantedSlo { percentile: slo.percentile, latency_s: slo.latency },
            bound_s: bound.map(|bound| bound.seconds),
            by: bound.map(|bound| bound.method.name().to_owned()),
            stages: entry.workload.demands.iter().map(stage).collect(),
        })
    }

    fn entries(&self, fabric: &Fabric, system: &System) -> Result<Vec<Entry>, Rejected> {
        let entries = packs::entries(fabric, &system.queues, self.promise, self.owner);
        entries.map_err(|error| Rejected::Infeasible(error.to_string()))
    }
}

/// Agreement for a system with the bounds of its promises, if there are any.
fn agreement(
    cluster: &Cluster,
    active: &[ActiveWorkload],
    file_entries: &[&WorkloadEntry],
    id: u64,
    system: &System,
    bounds: &[Option<Result<Bound, Unbounded>>],
) -> Result<Agreement, Rejected> {
    let fabric = &cluster.fabric;
    let (mut agreed, mut entries) =
        (Vec::with_capacity(file_entries.len()), Vec::with_capacity(file_entries.len()));
    let owners = active.iter().map(|active| active.id).chain([id]);
    let outstanding = outstanding(system);
    for (entry, owner) in file_entries.iter().zip(owners) {
        let name = &entry.workload.name;
        let lost = || Rejected::Infeasible(format!("{name}: the analysis does not include it"));
        let at = system.promises.iter().position(|promise| promise.workload.name == *name);
        let at = at.ok_or_else(lost)?;
        let (promise, bound) = (&system.promises[at], bounds[at].as_ref());
        let builder = GrantBuilder { entry, promise, outstanding: &outstanding, bound, owner };
        agreed.push(builder.agreed(fabric, system).ok_or_else(lost)?);
        entries.push(builder.entries(fabric, system)?);
    }
    let mut promised = vec![0.0; system.queues.len()];
    for Promise { limits, route, .. } in &system.promises {
        for (limit, route) in limits.iter().zip(route) {
            route.iter().for_each(|&queue| promised[queue] += limit.rate());
        }
    }
    let own = file_entries.last().map(|entry| &entry.workload.name);
    let own = system.promises.iter().filter(|promise| Some(&promise.workload.name) == own);
    let unreserved = own.flat_map(|promise| promise.route.iter().flatten()).filter_map(|&queue| {
        let resource = system.queues[queue].resource?;
        let unreserved = (system.queues[queue].capacity - promised[queue]) * BITS_PER_BYTE;
        (fabric.kind(resource) != ResourceKind::Device).then_some((resource, unreserved.floor() as i64))
    });
    let narrowest = unreserved.min_by_key(|&(resource, unreserved)| (unreserved, resource));
    let read = system.queues.iter().filter_map(|queue| queue.resource).collect();
    Ok(Agreement { agreed, entries, read, narrowest })
}

/// Requests that each device has at once, as bounds assume: the largest number that a workload there states. `None` for
/// links, and for devices without a number.
fn outstanding(system: &System) -> Vec<Option<u32>> {
    let mut numbers = vec![None; system.queues.len()];
    for promise in &system.promises {
        let demands = promise.workload.demands.iter().zip(&promise.route);
        for (demand, route) in demands.filter(|(demand, _)| demand.stage == Stage::Storage) {
            route.iter().for_each(|&queue| numbers[queue] = demand.outstanding.max(numbers[queue]));
        }
    }
    numbers
}

/// Value for each of a workload's stages, as a field of a form.
fn by_stage(value: impl Fn(&GrantedStage) -> Option<Value>, stages: &[GrantedStage]) -> Value {
    let field = |stage: &GrantedStage| Some((stage.stage.clone(), value(stage)?));
    Value::Object(stages.iter().filter_map(field).collect::<Map<String, Value>>())
}

/// True for a stage at a device, where work is in seconds.
fn is_storage(stage: &GrantedStage) -> bool {
    Stage::from_name(&stage.stage) == Some(Stage::Storage)
}
