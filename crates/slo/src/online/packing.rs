//! Packing of a workload whose volume has no server yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use leeward_calculus::{ArrivalCurve, TokenBucket};
use leeward_fabric::{Cluster, HostId, ResourceId};
use leeward_registry::PolicySpec;
use leeward_traces::Stage;

use super::existing_grants::{ExistingGrants, Missed};
use super::forms::{Read, read};
use super::{ActiveWorkload, Agreement, Form, Rejected, agreement, passable};
use crate::bound::Unit;
use crate::file::{Entry as Asked, Server};
use crate::limits;
use crate::pack::{Classes, PackSettings, Packing, ROUNDS, Request, Requests, Resident, Site, promised};
use crate::{Slo, System, Workload};

/// Finds a server for the volume of a workload beside the active ones, as `leeward slo pack` does. The result is the
/// first server whose limits keep every SLO that the workload may affect. If the limit algorithm chooses for all
/// workloads of a server together, the other workloads on it get new limits. Hosts in `closed` take no volume.
///
/// # Errors
/// [`Rejected`] for an invalid form or algorithm, or with the obstacle.
pub fn pack(
    cluster: &Cluster,
    standing: &[ActiveWorkload],
    form: &Form,
    id: u64,
    way: &PolicySpec,
    closed: &[HostId],
) -> Result<Agreement, Rejected> {
    let cluster = &passable(cluster);
    let limiting = limits::REGISTRY.make(&way.name, &way.settings);
    let together = limiting.map_err(|error| Rejected::Policy(error.to_string()))?.is_joint();
    let Read { residents, arriving } = read(cluster, standing, form)?;
    let mut asked: Vec<Asked> = residents.entries.iter().chain(&arriving.entries).cloned().collect();
    let slos = asked.iter().filter_map(|asked| Some(asked.workload.slo?.latency));
    let mut classes =
        Classes::new(slos, &cluster.fabric).map_err(|error| Rejected::Refused(error.message))?;
    let slo_of: BTreeMap<String, Slo> =
        asked.iter().filter_map(|asked| Some((asked.workload.name.clone(), asked.workload.slo?))).collect();
    let slo = |name: &str| slo_of.get(name).copied();
    let bounded = residents.bounds;
    let whole = if bounded.unit == Unit::Fluid { Requests::Fluid } else { Requests::Whole };
    let floor = Floor { cluster, asked: &asked, way, requests: whole };
    let there = promised(floor.taken_in(&classes, |_| None)?.system(), slo);
    let mut beside = ExistingGrants::new(standing, there, bounded).map_err(Rejected::Refused)?;
    let (mut round, mut lost) = (1, None);
    let (packing, system, verdict) = loop {
        let mut packing = floor.taken_in(&classes, |at| beside.slack(at))?;
        // Workloads with slack keep their limits.
        let others = floor.servers(|at| together && beside.slack(at).is_some());
        for host in closed.iter().copied().chain(others) {
            floor.server(&packing, host).into_iter().for_each(|server| packing.close(server));
        }
        floor.place(&mut packing, &classes).map_err(|why| match &lost {
            None => Rejected::Refused(why),
            Some(lost) => Rejected::Refused(format!("{why}; anywhere else, {lost}")),
        })?;
        let mut system = promised(packing.system(), slo);
        whole_limits(&mut system, &asked);
        let verdict = beside.look(&mut system).map_err(Rejected::Refused)?;
        let Some(Missed { why, .. }) = verdict.missed.first() else { break (packing, system, verdict) };
        if verdict.missed.iter().any(|missed| beside.take_care_of(missed.promise)) {
            lost = Some(why.clone());
            continue;
        }
        let above = verdict.missed.iter().filter_map(|missed| Some((missed.slo, missed.seconds?)));
        if round == ROUNDS || !classes.learn(above) {
            return Err(Rejected::Refused(why.clone()));
        }
        round += 1;
    };
    let server = server(cluster, &packing, &arriving.entries[0].workload.name);
    if let Some(last) = asked.last_mut() {
        last.server = server;
    }
    let asked: Vec<&Asked> = asked.iter().collect();
    let mut agreement = agreement(cluster, standing, &asked, id, &system, &verdict.bounds)?;
    for ((agreed, standing), reached) in agreement.agreed.iter_mut().zip(standing).zip(verdict.reached) {
        if !reached {
            agreed.clone_from(&standing.agreed);
        }
    }
    Ok(agreement)
}

/// Active workloads; the new workload is the last.
struct Floor<'a> {
    cluster: &'a Cluster,
    /// Active workloads, and the new one as the last.
    asked: &'a [Asked],
    way: &'a PolicySpec,
    requests: Requests,
}

impl Floor<'_> {
    /// Packing of the active workloads on their servers. Their latency targets are their SLOs shortened by `classes`,
    /// or the targets from `slack`.
    fn taken_in(&self, classes: &Classes, slack: impl Fn(usize) -> Option<f64>) -> Result<Packing, Rejected> {
        let refused = |error: &dyn std::fmt::Display| Rejected::Refused(error.to_string());
        let fabric = &self.cluster.fabric;
        let (clients, there) = (self.clients(), &self.asked[..self.asked.len() - 1]);
        let site = Site::of_fabric(fabric.clone(), &self.cluster.capacities, &clients);
        let site = site.map_err(|error| refused(&error))?;
        let site = site.with_servers(there.iter().filter_map(|asked| Some(asked.server?.host)));
        // The curves include the margin already.
        let settings = PackSettings {
            limits: self.way.name.clone(),
            requests: self.requests,
            margin: 0.0,
            levels: classes.longest(),
            ..PackSettings::default()
        };
        let packing = Packing::new(site, settings, &self.way.settings);
        let mut packing = packing.map_err(|error| Rejected::Policy(error.to_string()))?;
        let resident = |(at, asked): (usize, &Asked)| {
            let limits = asked.workload.demands.iter().zip(&asked.limits);
            let limits = limits.map(|(own, limit)| limit.clone().unwrap_or_else(|| own.arrivals.clone()));
            let server = asked.server?;
            Some(Resident {
                workload: shorter(&asked.workload, classes),
                client: clients.binary_search(&asked.client).ok()?,
                server: self.server(&packing, server.host)?,
                device: usize::from(server.device.unwrap_or(0)),
                limits: limits.collect(),
                target: slack(at),
            })
        };
        let residents: Option<Vec<Resident>> = there.iter().enumerate().map(resident).collect();
        let residents =
            residents.ok_or_else(|| refused(&"a workload in force has no place on the cluster"))?;
        packing.add_residents(residents).map_err(|error| refused(&error))?;
        Ok(packing)
    }

    /// Places the new workload at the first server with room.
    fn place(&self, packing: &mut Packing, classes: &Classes) -> Result<(), String> {
        let Some(new) = self.asked.last() else { return Ok(()) };
        let client = self.clients().binary_search(&new.client).ok();
        let request = Request { workload: shorter(&new.workload, classes), client };
        let plan = packing.plan(&request).map_err(|error| error.why.to_string())?;
        packing.apply(plan);
        Ok(())
    }

    fn clients(&self) -> Vec<HostId> {
        let mut clients: Vec<HostId> = self.asked.iter().map(|asked| asked.client).collect();
        clients.sort_unstable();
        clients.dedup();
        clients
    }

    /// Hosts with the volumes of the selected workloads.
    fn servers(&self, of: impl Fn(usize) -> bool) -> Vec<HostId> {
        let hosts = self.asked.iter().enumerate().filter(|(at, _)| of(*at));
        hosts.filter_map(|(_, asked)| Some(asked.server?.host)).collect()
    }

    /// Index of a host among the servers of a packing.
    fn server(&self, packing: &Packing, host: HostId) -> Option<usize> {
        let name = self.cluster.fabric.host_name(host);
        packing.site().servers().iter().position(|server| server.name == name)
    }
}

/// The workload with its SLO shortened by `classes`.
fn shorter(workload: &Arc<Workload>, classes: &Classes) -> Arc<Workload> {
    let mut workload = Workload::clone(workload);
    if let Some(slo) = &mut workload.slo {
        slo.latency = classes.shortened(slo.latency);
    }
    Arc::new(workload)
}

/// Rounds chosen limits up to whole bytes and nanoseconds and millionths of a device, the precision of enforcement and
/// files. Limits equal to a workload's own curve stay unchanged.
fn whole_limits(system: &mut System, asked: &[Asked]) {
    for promise in &mut system.promises {
        let own = asked.iter().find(|asked| asked.workload.name == promise.workload.name);
        for (demand, limit) in promise.workload.demands.iter().zip(&mut promise.limits) {
            let mut demands = own.iter().flat_map(|own| &own.workload.demands);
            if demands.any(|of| of.stage == demand.stage && of.arrivals == *limit) {
                continue;
            }
            let bucket = |bucket: &TokenBucket| match demand.stage {
                Stage::Storage => {
                    // The text format of a file: a share in percent, a burst in nanoseconds. The rate must
                    // not fall below the arrivals.
                    let share = |millionths: f64| millionths / 1e4 / 100.0;
                    let millionths = up(bucket.rate() * 1e6);
                    let short = share(millionths) < demand.arrivals.rate();
                    let rate = share(if short { millionths + 1.0 } else { millionths });
                    TokenBucket::new(rate, up(bucket.burst() * 1e9) / 1e9).ok()
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
fn up(number: f64) -> f64 {
    (number - 1e-3).ceil()
}

/// Server and device of a placed volume.
fn server(cluster: &Cluster, packing: &Packing, name: &str) -> Option<Server> {
    let fabric = &cluster.fabric;
    let resource = ResourceId(u32::try_from(packing.device_of(name)?).ok()?);
    let host = fabric.host_of(resource)?;
    let device = (0..=u16::MAX)
        .take(fabric.devices(host).len())
        .find(|&device| fabric.device(host, device) == Some(resource));
    Some(Server { host, device })
}
