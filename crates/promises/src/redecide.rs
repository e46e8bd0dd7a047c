//! Decisions about promised workloads whose requests have changed: a new trace gives new curves and models (Zhu's thesis,
//! section 6.2). The workload is decided again beside all others, first at its server. If that cannot keep the SLO
//! any more, its volume should move: another server is chosen as for a new volume, and the copy is planned. The thesis
//! leaves the traffic of the copy open.
//!
//! The promise stays as it was until the volume has moved. Its present limits protect all other workloads.

use leeward_agreements::{ActiveWorkload, Agreement, Form, Grant, Rejected};
use leeward_fabric::{Bytes, Cluster, HostId};
use leeward_records::CopyPlan;
use leeward_registry::PolicySpec;

use crate::copy::VolumeCopy;

/// A changed workload, and all that the decision depends on.
#[derive(Clone, Debug)]
pub struct ChangeInput {
    /// The cluster, with the capacities that the ledger assumes.
    pub cluster: Cluster,
    /// All other promises.
    pub others: Vec<ActiveWorkload>,
    /// The promise of the workload.
    pub current: ActiveWorkload,
    /// Changed fields of the workload, with the server to decide for.
    pub form: Form,
    /// True if packing chose its server and limits. Packing then chooses the limits at the server too.
    pub is_packed: bool,
    /// Policy that admits workloads at their servers.
    pub admission: PolicySpec,
    /// Limit algorithm for the placement of volumes.
    pub volumes: PolicySpec,
    /// Hosts that take no volumes.
    pub closed: Vec<HostId>,
    /// Size of the volume; `None` without a plan of the copy.
    pub bytes: Option<Bytes>,
}

/// Result for a changed workload.
#[derive(Clone, PartialEq, Debug)]
pub enum Redecided {
    /// The server of the request keeps the SLO: the promises of all workloads, the changed one last.
    InPlace(Box<Agreement>),
    /// It does not.
    Elsewhere {
        /// The reason.
        reason: String,
        /// Promise at another server; `None` if there is none.
        place: Option<Box<Grant>>,
        /// Copy of the volume to that server.
        copy: Option<CopyPlan>,
    },
}

/// Decides again on a workload whose requests have changed.
///
/// # Errors
/// [`Rejected::Invalid`] or [`Rejected::Policy`] for an invalid form or policy.
pub fn redecide(input: &ChangeInput) -> Result<Redecided, Rejected> {
    // Without an SLO, the decision would be that of best effort.
    leeward_agreements::check(&input.form, true).map_err(Rejected::Invalid)?;
    let reason = match in_place(input) {
        Ok(agreement) => return Ok(Redecided::InPlace(Box::new(agreement))),
        Err(Rejected::Infeasible(reason)) => reason,
        Err(rejected) => return Err(rejected),
    };
    let mut closed = input.closed.clone();
    closed.extend(server(input));
    let place = match pack(input, &closed) {
        Ok(mut agreement) => agreement.agreed.pop(),
        Err(Rejected::Infeasible(_)) => None,
        Err(rejected) => return Err(rejected),
    };
    let from = &input.current.agreed;
    let copy = match (&place, input.bytes) {
        (Some(place), Some(bytes)) if place.server != from.server => {
            let active: Vec<ActiveWorkload> = input.others.iter().chain([&input.current]).cloned().collect();
            let copy = VolumeCopy {
                cluster: &input.cluster,
                active: &active,
                admission: &input.admission,
                workload: &from.workload,
                from: &from.volume,
                to: &place.volume,
                bytes,
            };
            Some(copy.plan())
        }
        _ => None,
    };
    Ok(Redecided::Elsewhere { reason, place: place.map(Box::new), copy })
}

/// Decides at the server of the request.
fn in_place(input: &ChangeInput) -> Result<Agreement, Rejected> {
    let ChangeInput { cluster, others, form, current, admission, .. } = input;
    match server(input).filter(|_| input.is_packed) {
        Some(own) => {
            let fabric = &cluster.fabric;
            let closed: Vec<HostId> = fabric.all_hosts().filter(|&host| host != own).collect();
            pack(input, &closed)
        }
        None => leeward_agreements::admit(cluster, others, form, current.id, admission),
    }
}

/// Decides at the first server with room that is not closed.
fn pack(input: &ChangeInput, closed: &[HostId]) -> Result<Agreement, Rejected> {
    let mut form = input.form.clone();
    form.remove("server");
    leeward_agreements::pack(&input.cluster, &input.others, &form, input.current.id, &input.volumes, closed)
}

/// Host of the request's server.
fn server(input: &ChangeInput) -> Option<HostId> {
    let name = input.form.get("server")?.as_str()?;
    let host = name.split_once(':').map_or(name, |(host, _)| host);
    input.cluster.fabric.host(host)
}
