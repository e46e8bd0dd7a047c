//! Plan of the copy of a volume to another server. The copy is planned as workloads of its own beside all promises: its
//! reads and transfers, and its writes. Its rate is halved until the service could admit these workloads with an SLO that
//! is longer than all others, so that they come last. If no rate is low enough, the copy is best effort.

use std::collections::BTreeMap;

use leeward_agreements::{ActiveWorkload, Agreement, Form, Rejected, admit};
use leeward_fabric::{Bytes, Cluster, Endpoint, HostId, ResourceId, ResourceKind};
use leeward_records::CopyPlan;
use leeward_registry::PolicySpec;
use serde_json::{Value, json};

/// Share of the unreserved rate that the fastest copy takes: curves get a margin of 10 %, and headers add as much.
const SHARE: f64 = 0.75;
/// Number of rates that are tried, each half of the one before.
const RATES: usize = 6;
/// Size of a read of the copy, in bytes.
const CHUNK: f64 = (1 << 20) as f64;
/// Bytes on the network for each byte of payload, and for its requests in the other direction, as of workload files.
const NETWORK: [f64; 2] = [1.1, 0.025];
/// Least latency of the copy's SLO, in seconds, and factor over the longest other SLO.
const SLOWEST: (f64, f64) = (10.0, 2.0);

/// A copy to plan.
pub(crate) struct VolumeCopy<'a> {
    pub cluster: &'a Cluster,
    /// All promises, with that of the workload itself.
    pub active: &'a [ActiveWorkload],
    pub admission: &'a PolicySpec,
    /// Name of the workload.
    pub workload: &'a str,
    /// Devices of the volume and of the copy; hosts if no device is known.
    pub from: &'a str,
    pub to: &'a str,
    pub bytes: Bytes,
}

/// Work of the copy at a device, in seconds of service for each byte.
struct Ends {
    from: HostId,
    to: HostId,
    read: f64,
    write: f64,
}

impl VolumeCopy<'_> {
    /// Plans the copy.
    pub fn plan(&self) -> CopyPlan {
        let (from, to, bytes) = (self.from.to_owned(), self.to.to_owned(), self.bytes);
        let best_effort = |rate: Option<f64>| CopyPlan {
            from: from.clone(),
            to: to.clone(),
            bytes,
            rate_bps: rate.map(|rate| (rate * 8.0) as u64),
            seconds: rate.map(|rate| bytes.0 as f64 / rate),
            guaranteed: false,
            workloads: Vec::new(),
        };
        let Some(ends) = self.ends() else { return best_effort(None) };
        let Some(rate) = self.unreserved(&ends) else { return best_effort(None) };
        let rates = (0..RATES).map(|halvings| SHARE * rate / f64::from(1_u32 << halvings));
        for rate in rates {
            match self.admits(&ends, rate) {
                Ok(workloads) => {
                    return CopyPlan { guaranteed: true, workloads, ..best_effort(Some(rate)) };
                }
                Err(Rejected::Infeasible(_)) => {}
                // The policy cannot admit a workload of curves alone, so it cannot guarantee a copy.
                Err(Rejected::Invalid(_) | Rejected::Policy(_)) => break,
            }
        }
        best_effort(Some(SHARE * rate))
    }

    fn ends(&self) -> Option<Ends> {
        let fabric = &self.cluster.fabric;
        let end = |name: &str| -> Option<(HostId, f64, f64)> {
            if let Some(host) = fabric.host(name) {
                return Some((host, 0.0, 0.0));
            }
            let device = fabric.resource(name).filter(|&id| fabric.kind(id) == ResourceKind::Device)?;
            let spec = fabric.device_of(device)?;
            Some((fabric.host_of(device)?, spec.read_ns_per_byte / 1e9, spec.write_ns_per_byte / 1e9))
        };
        let ((from, read, _), (to, _, write)) = (end(self.from)?, end(self.to)?);
        (from != to).then_some(Ends { from, to, read, write })
    }

    /// Rate in bytes per second that promises leave for the copy; `None` if they leave nothing.
    fn unreserved(&self, ends: &Ends) -> Option<f64> {
        let fabric = &self.cluster.fabric;
        let mut reserved: BTreeMap<&str, f64> = BTreeMap::new();
        for stage in self.active.iter().flat_map(|active| &active.agreed.stages) {
            let rate = stage.limits.iter().map(|bucket| bucket.rate).fold(f64::INFINITY, f64::min);
            if rate.is_finite() {
                stage.queues.iter().for_each(|queue| *reserved.entry(queue).or_default() += rate);
            }
        }
        // Bytes per second of a link, and seconds of service per second of a device.
        let left = |resource: ResourceId, unit: f64| {
            let capacity = self.cluster.capacities.as_slice().get(resource.index()).map_or(0, |load| load.0);
            let name = fabric.resource_name(resource);
            capacity as f64 / unit - reserved.get(name.as_str()).copied().unwrap_or(0.0)
        };
        let mut hops = Vec::new();
        fabric.path(&[Endpoint::Host(ends.from), Endpoint::Host(ends.to)], &mut hops);
        let links = hops.iter().map(|hop| left(hop.resource, 8.0) / NETWORK[0]);
        let devices = [(self.from, ends.read), (self.to, ends.write)];
        let devices = devices.into_iter().filter_map(|(name, work)| {
            let device = fabric.resource(name).filter(|_| work > 0.0)?;
            Some(left(device, 1e9) / work)
        });
        let rate = links.chain(devices).fold(f64::INFINITY, f64::min);
        (rate.is_finite() && rate >= 1.0).then_some(rate)
    }

    /// Admits the workloads of a copy at this rate, and returns them.
    fn admits(&self, ends: &Ends, rate: f64) -> Result<Vec<Form>, Rejected> {
        let (reads, writes) = self.forms(ends, rate);
        let Some(reads) = reads else { return Err(Rejected::Infeasible("the copy has no path".to_owned())) };
        let agreement = admit(self.cluster, self.active, &reads, u64::MAX, self.admission)?;
        let Some(writes) = writes else { return Ok(vec![reads]) };
        let active = with_agreed(self.active, &reads, agreement);
        admit(self.cluster, &active, &writes, u64::MAX - 1, self.admission)?;
        Ok(vec![reads, writes])
    }

    /// The reads and transfers, and the writes if the device of the copy is known.
    fn forms(&self, ends: &Ends, rate: f64) -> (Option<Form>, Option<Form>) {
        let fabric = &self.cluster.fabric;
        let longest = self.active.iter().map(|active| active.agreed.slo.latency_s).fold(0.0, f64::max);
        let latency = format!("{}ms", ((SLOWEST.1 * longest).max(SLOWEST.0) * 1e3).ceil());
        let slo = json!({ "percentile": 99, "latency": latency });
        let link = |factor: f64| {
            let (rate, burst) = ((factor * rate).ceil().max(1.0), (factor * CHUNK).ceil());
            json!([{ "rate": format!("{rate}B/s"), "burst": format!("{burst}B") }])
        };
        let device = |work: f64| {
            let burst = (work * CHUNK * 1e9).ceil();
            json!([{ "rate": format!("{}%", 100.0 * work * rate), "burst": format!("{burst}ns") }])
        };
        let name = |kind: &str| format!("{}.{kind}", self.workload);
        let client = fabric.host_name(ends.to);
        let mut curves = json!({ "network-in": link(NETWORK[1]), "network-out": link(NETWORK[0]) });
        let mut stages = vec!["network-in", "network-out"];
        if ends.read > 0.0 {
            curves["storage"] = device(ends.read);
            stages.insert(1, "storage");
        }
        let reads = json!({
            "name": name("copy"), "client": client, "server": self.from, "slo": slo, "curves": curves,
            "stages": stages,
        });
        let writes = (ends.write > 0.0).then(|| {
            json!({
                "name": name("copy-writes"), "client": client, "server": self.to, "slo": slo,
                "curves": { "storage": device(ends.write) }, "stages": ["storage"],
            })
        });
        let form = |value: Value| value.as_object().cloned();
        (form(reads), writes.and_then(form))
    }
}

/// Workloads with their promises after one more was admitted.
fn with_agreed(active: &[ActiveWorkload], form: &Form, agreement: Agreement) -> Vec<ActiveWorkload> {
    let forms = active.iter().map(|active| (active.id, &active.form)).chain([(u64::MAX, form)]);
    let agreed = forms.zip(agreement.agreed);
    agreed.map(|((id, form), agreed)| ActiveWorkload { id, form: form.clone(), agreed }).collect()
}
