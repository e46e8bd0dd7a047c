//! Packing of a workload whose volume has no server yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use leeward_calculus::{ArrivalCurve, TokenBucket};
use leeward_fabric::{Cluster, HostId, ResourceId};
use leeward_registry::PolicySpec;
use leeward_slo::bound::{BoundSettings, Method, Unit};
use leeward_slo::file::{Entry as WorkloadEntry, Server};
use leeward_slo::pack::{
    Classes, Confirm, PackSettings, Packing, ROUNDS, Request, Requests, Resident, Site, with_slos,
};
use leeward_slo::{Slo, System, Workload, limits};
use leeward_traces::Stage;

use super::existing_grants::{ExistingGrants, Missed};
use super::forms::{Read, read};
use super::{ActiveWorkload, Agreement, Form, Rejected, agreement, passable};

/// Finds a server for the volume of a workload beside the active ones, as `leeward slo pack` does. The result is the
/// first server whose limits keep every SLO that the workload may affect. If the limit algorithm chooses for all
/// workloads of a server together, the other workloads on it get new limits. Hosts in `closed` take no volume.
///
/// # Errors
/// [`Rejected`] for an invalid form or algorithm, or with the reason why no server has room.
pub fn pack(
    cluster: &Cluster,
    active: &[ActiveWorkload],
    form: &Form,
    id: u64,
    way: &PolicySpec,
    closed: &[HostId],
) -> Result<Agreement, Rejected> {
    let cluster = &passable(cluster);
    let limiting = limits::REGISTRY.make(&way.name, &way.settings);
    let is_joint = limiting.map_err(|error| Rejected::Policy(error.to_string()))?.is_joint();
    let Read { residents, arriving } = read(cluster, active, form)?;
    let mut file_entries: Vec<WorkloadEntry> =
        residents.entries.iter().chain(&arriving.entries).cloned().collect();
    let slos = file_entries.iter().filter_map(|entry| Some(entry.workload.slo?.latency));
    let mut classes =
        Classes::new(slos, &cluster.fabric).map_err(|error| Rejected::Infeasible(error.message))?;
    let slo_of: BTreeMap<String, Slo> = file_entries
        .iter()
        .filter_map(|entry| Some((entry.workload.name.clone(), entry.workload.slo?)))
        .collect();
    let slo = |name: &str| slo_of.get(name).copied();
    let bounded = residents.bounds;
    let whole = if bounded.unit == Unit::Fluid { Requests::Fluid } else { Requests::Whole };
    let input = PackingInput { cluster, file_entries: &file_entries, way, requests: whole, bounds: bounded };
    let before = with_slos(input.active_packing(&classes, |_| None)?.system(), slo);
    let mut grants = ExistingGrants::new(active, before, bounded).map_err(Rejected::Infeasible)?;
    let (mut round, mut lost) = (1, None);
    let (packing, system, verdict) = loop {
        let mut packing = input.active_packing(&classes, |at| grants.slack(at))?;
        // Workloads with slack keep their limits.
        let others = input.servers(|at| is_joint && grants.slack(at).is_some());
        for host in closed.iter().copied().chain(others) {
            input.server(&packing, host).into_iter().for_each(|server| packing.close(server));
        }
        input.place(&mut packing, &classes).map_err(|why| match &lost {
            None => Rejected::Infeasible(why),
            Some(lost) => Rejected::Infeasible(format!("{why}; on another server, {lost}")),
        })?;
        let mut system = with_slos(packing.system(), slo);
        round_limits(&mut system, &file_entries);
        let verdict = grants.check(&mut system).map_err(Rejected::Infeasible)?;
        let Some(Missed { why, .. }) = verdict.missed.first() else { break (packing, system, verdict) };
        if verdict.missed.iter().any(|missed| grants.remove_slack(missed.promise)) {
            lost = Some(why.clone());
            continue;
        }
        let above = verdict.missed.iter().filter_map(|missed| Some((missed.slo, missed.seconds?)));
        if round == ROUNDS || !classes.learn(above) {
            return Err(Rejected::Infeasible(why.clone()));
        }
        round += 1;
    };
    let server = server(cluster, &packing, &arriving.entries[0].workload.name);
    if let Some(last) = file_entries.last_mut() {
        last.server = server;
    }
    let file_entries: Vec<&WorkloadEntry> = file_entries.iter().collect();
    let mut agreement = agreement(cluster, active, &file_entries, id, &system, &verdict.bounds)?;
    for ((agreed, active), reached) in agreement.agreed.iter_mut().zip(active).zip(verdict.reached) {
        if !reached {
            agreed.clone_from(&active.agreed);
        }
    }
    Ok(agreement)
}

/// Input of a packing.
struct PackingInput<'a> {
    cluster: &'a Cluster,
    /// Active workloads, and the new one as the last.
    file_entries: &'a [WorkloadEntry],
    way: &'a PolicySpec,
    requests: Requests,
    bounds: BoundSettings,
}

impl PackingInput<'_> {
    /// Packing of the active workloads on their servers. Their latency targets are their SLOs shortened by `classes`,
    /// or the targets from `slack`.
    fn active_packing(
        &self,
        classes: &Classes,
        slack: impl Fn(usize) -> Option<f64>,
    ) -> Result<Packing, Rejected> {
        let refused = |error: &dyn std::fmt::Display| Rejected::Infeasible(error.to_string());
        let fabric = &self.cluster.fabric;
        let (clients, active) = (self.clients(), &self.file_entries[..self.file_entries.len() - 1]);
        let site = Site::of_fabric(fabric.clone(), &self.cluster.capacities, &clients);
        let site = site.map_err(|error| refused(&error))?;
        let site = site.with_servers(active.iter().filter_map(|entry| Some(entry.server?.host)));
        // The curves include the margin already.
        let settings = PackSettings {
            limits: self.way.name.clone(),
            requests: self.requests,
            margin: 0.0,
            pruning: 0.0,
            confirm: Some(Confirm { method: Method::Dnc, bounds: self.bounds }),
            levels: classes.longest(),
            ..PackSettings::default()
        };
        let packing = Packing::new(site, settings, &self.way.settings);
        let mut packing = packing.map_err(|error| Rejected::Policy(error.to_string()))?;
        let resident = |(at, entry): (usize, &WorkloadEntry)| {
            let server = entry.server?;
            Some(Resident {
                workload: shorten_slo(&entry.workload, classes),
                client: clients.binary_search(&entry.client).ok()?,
                server: self.server(&packing, server.host)?,
                device: usize::from(server.device.unwrap_or(0)),
                limits: entry.enforced(),
                target: slack(at),
            })
        };
        let residents: Option<Vec<Resident>> = active.iter().enumerate().map(resident).collect();
        let residents =
            residents.ok_or_else(|| refused(&"an active workload has no place on the cluster"))?;
        packing.add_residents(residents).map_err(|error| refused(&error))?;
        Ok(packing)
    }

    /// Places the new workload at the first server with room.
    fn place(&self, packing: &mut Packing, classes: &Classes) -> Result<(), String> {
        let Some(new) = self.file_entries.last() else { return Ok(()) };
        let client = self.clients().binary_search(&new.client).ok();
        let request = Request { workload: shorten_slo(&new.workload, classes), client };
        let plan = packing.plan(&request).map_err(|error| error.why.to_string())?;
        packing.apply(plan);
        Ok(())
    }

    fn clients(&self) -> Vec<HostId> {
        let mut clients: Vec<HostId> = self.file_entries.iter().map(|entry| entry.client).collect();
        clients.sort_unstable();
        clients.dedup();
        clients
    }

    /// Hosts with the volumes of the selected workloads.
    fn servers(&self, selected: impl Fn(usize) -> bool) -> Vec<HostId> {
        let hosts = self.file_entries.iter().enumerate().filter(|(at, _)| selected(*at));
        hosts.filter_map(|(_, entry)| Some(entry.server?.host)).collect()
    }

    /// Index of a host among the servers of a packing.
    fn server(&self, packing: &Packing, host: HostId) -> Option<usize> {
        let name = self.cluster.fabric.host_name(host);
        packing.site().servers().iter().position(|server| server.name == name)
    }
}

/// The workload with its SLO shortened by `classes`.
fn shorten_slo(workload: &Arc<Workload>, classes: &Classes) -> Arc<Workload> {
    let mut workload = Workload::clone(workload);
    if let Some(slo) = &mut workload.slo {
        slo.latency = classes.shortened(slo.latency);
    }
    Arc::new(workload)
}

/// Rounds chosen limits up to whole bytes and nanoseconds and millionths of a device, the precision of enforcement and
/// files. Limits equal to a workload's own curve stay unchanged.
fn round_limits(system: &mut System, file_entries: &[WorkloadEntry]) {
    for promise in &mut system.promises {
        let own = file_entries.iter().find(|entry| entry.workload.name == promise.workload.name);
        for (demand, limit) in promise.workload.demands.iter().zip(&mut promise.limits) {
            let mut demands = own.iter().flat_map(|own| &own.workload.demands);
            if demands.any(|own| own.stage == demand.stage && own.arrivals == *limit) {
                continue;
            }
            let bucket = |bucket: &TokenBucket| match demand.stage {
                Stage::Storage => {
                    // The text format of a file: a share in percent, a burst in nanoseconds. The rate must
                    // not fall below the arrivals.
                    let share = |millionths: f64| millionths / 1e4 / 100.0;
                    let millionths = round_up(bucket.rate() * 1e6);
                    let short = share(millionths) < demand.arrivals.rate();
                    let rate = share(if short { millionths + 1.0 } else { millionths });
                    TokenBucket::new(rate, round_up(bucket.burst() * 1e9) / 1e9).ok()
                }
                _ => TokenBucket::new(bucket.rate().ceil(), bucket.burst().ceil()).ok(),
            };
            let buckets: Vec<TokenBucket> = limit.buckets().iter().filter_map(bucket).collect();
            if let Some(rounded) = ArrivalCurve::new(&buckets) {
                *limit = rounded;
            }
        }
    }
}

/// Next whole number. Ignores floating-point error above a whole number, so a second rounding changes nothing.
fn round_up(number: f64) -> f64 {
    (number - 1e-3).ceil()
}

/// Server and device of a placed volume.
fn server(cluster: &Cluster, packing: &Packing, name: &str) -> Option<Server> {
    let device = ResourceId(u32::try_from(packing.device_of(name)?).ok()?);
    Server::of_device(&cluster.fabric, device)
}
