//! A workload that has no server yet: which takes its volume.

use std::sync::Arc;

use leeward_calculus::{ArrivalCurve, TokenBucket};
use leeward_fabric::{Cluster, HostId, ResourceId};
use leeward_traces::Stage;

use super::forms::{Read, read};
use super::{Agreement, Declined, Form, Standing, agreement};
use crate::PolicySpec;
use crate::volumes::bound::{Bounds, Method, Unit};
use crate::volumes::file::{Entry as Asked, Server};
use crate::volumes::limits;
use crate::volumes::pack::{
    Classes, PackSettings, Packing, ROUNDS, Request, Requests, Resident, Site, promised,
};
use crate::volumes::words::above;
use crate::volumes::{Slo, System, Workload};

/// Finds a server for the volume of a workload beside those in force, as `leeward slo pack` does: the first on which limits
/// keep every SLO. Where the way chooses for all workloads of a server together, those that are there get other limits.
/// Hosts that are `closed` take none.
///
/// # Errors
/// What is wrong, or what stands in the way.
pub fn pack(
    cluster: &Cluster,
    standing: &[Standing],
    form: &Form,
    id: u64,
    way: &PolicySpec,
    closed: &[HostId],
) -> Result<Agreement, Declined> {
    limits::make(&way.name, &way.settings).map_err(|error| Declined::Policy(error.to_string()))?;
    let Read { residents, arriving } = read(cluster, standing, form)?;
    let mut asked: Vec<Asked> = residents.entries.iter().chain(&arriving.entries).cloned().collect();
    let slos = asked.iter().filter_map(|asked| Some(asked.workload.slo?.latency));
    let mut classes =
        Classes::new(slos, &cluster.fabric).map_err(|error| Declined::Refused(error.message))?;
    let refused = |error: &dyn std::fmt::Display| Declined::Refused(error.to_string());
    let bounded = residents.bounds;
    let whole = if bounded.unit == Unit::Fluid { Requests::Fluid } else { Requests::Whole };
    let mut round = 0;
    loop {
        round += 1;
        // Curves have the margin already.
        let settings = PackSettings {
            limits: way.name.clone(),
            requests: whole,
            margin: 0.0,
            levels: classes.longest(),
            ..PackSettings::default()
        };
        let packing = placed(cluster, &asked, &classes, settings, &way.settings, closed)?;
        let slo = |name: &str| -> Option<Slo> {
            asked.iter().find(|asked| asked.workload.name == name).and_then(|asked| asked.workload.slo)
        };
        let mut system = promised(packing.system(), slo);
        whole_limits(&mut system, &asked);
        let mut bounds = Bounds::new(&system, bounded).map_err(|error| refused(&error))?;
        let bounds: Vec<_> = (0..system.promises.len()).map(|at| bounds.bound(at, Method::Dnc)).collect();
        let missed = system.promises.iter().zip(&bounds).find_map(|(promise, bound)| {
            let (name, slo) = (&promise.workload.name, promise.workload.slo?);
            match bound {
                Ok(bound) if bound.seconds <= slo.latency => None,
                Ok(bound) => Some(format!("{name}: {}", above(bound.seconds, slo.latency))),
                Err(why) => Some(why.to_string()),
            }
        });
        let Some(missed) = missed else {
            let server = server(cluster, &packing, &arriving.entries[0].workload.name);
            if let Some(last) = asked.last_mut() {
                last.server = server;
            }
            let (asked, bounds): (Vec<&Asked>, Vec<_>) =
                (asked.iter().collect(), bounds.into_iter().map(Some).collect());
            return agreement(cluster, standing, &asked, id, &system, &bounds);
        };
        if round == ROUNDS || !classes.learn(&system, &bounds) {
            return Err(Declined::Refused(missed));
        }
    }
}

/// Those in force where they are, and the last where there is room, all for what `classes` leave of their SLOs.
fn placed(
    cluster: &Cluster,
    asked: &[Asked],
    classes: &Classes,
    settings: PackSettings,
    way: &str,
    closed: &[HostId],
) -> Result<Packing, Declined> {
    let refused = |error: &dyn std::fmt::Display| Declined::Refused(error.to_string());
    let fabric = &cluster.fabric;
    let mut clients: Vec<HostId> = asked.iter().map(|asked| asked.client).collect();
    clients.sort_unstable();
    clients.dedup();
    let site = Site::of_fabric(fabric.clone(), &cluster.capacities, &clients);
    let site = site.map_err(|error| refused(&error))?;
    let servers: Vec<Option<HostId>> =
        site.servers().iter().map(|server| fabric.host(&server.name)).collect();
    let mut packing =
        Packing::new(site, settings, way).map_err(|error| Declined::Policy(error.to_string()))?;
    let shorter = |workload: &Arc<Workload>| {
        let mut workload = Workload::clone(workload);
        if let Some(slo) = &mut workload.slo {
            slo.latency = classes.shortened(slo.latency);
        }
        Arc::new(workload)
    };
    let client = |asked: &Asked| clients.binary_search(&asked.client).ok();
    let Some((new, there)) = asked.split_last() else { return Ok(packing) };
    let resident = |asked: &Asked| {
        let limits = asked.workload.demands.iter().zip(&asked.limits);
        let limits = limits.map(|(own, limit)| limit.clone().unwrap_or_else(|| own.arrivals.clone()));
        Some(Resident {
            workload: shorter(&asked.workload),
            client: client(asked)?,
            server: servers.iter().position(|host| *host == asked.server.map(|server| server.host))?,
            device: usize::from(asked.server?.device.unwrap_or(0)),
            limits: limits.collect(),
        })
    };
    let residents: Option<Vec<Resident>> = there.iter().map(resident).collect();
    let residents = residents.ok_or_else(|| refused(&"a workload in force is on a host without a device"))?;
    packing.take_in(residents).map_err(|error| refused(&error))?;
    for (server, host) in servers.iter().enumerate() {
        if host.is_some_and(|host| closed.contains(&host)) {
            packing.close(server);
        }
    }
    let request = Request { workload: shorter(&new.workload), client: client(new) };
    let plan = packing.plan(&request).map_err(|error| refused(&error.why))?;
    packing.apply(plan);
    Ok(packing)
}

/// Rounds limits that were chosen up to whole bytes and nanoseconds and millionths of a device, as they are enforced and
/// written; own curves stay.
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
                    // As a file's texts are read: a share in percent, a burst in nanoseconds.
                    let percent = up(bucket.rate() * 1e6) / 1e4;
                    TokenBucket::new(percent / 100.0, up(bucket.burst() * 1e9) / 1e9).ok()
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

/// The next whole number. What is whole but for what arithmetic made of it stays, so that rounding twice is rounding once.
fn up(number: f64) -> f64 {
    (number - 1e-3).ceil()
}

/// Where a packing put a volume.
fn server(cluster: &Cluster, packing: &Packing, name: &str) -> Option<Server> {
    let fabric = &cluster.fabric;
    let resource = ResourceId(u32::try_from(packing.device_of(name)?).ok()?);
    let host = fabric.host_of(resource)?;
    let device = (0..=u16::MAX)
        .take(fabric.devices(host).len())
        .find(|&device| fabric.device(host, device) == Some(resource));
    Some(Server { host, device })
}
