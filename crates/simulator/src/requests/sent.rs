//! What the workloads of a file send: their traces, as requests with work at each stage.

use std::collections::BTreeMap;
use std::sync::Arc;

use leeward_fabric::Cluster;
use leeward_fabric::input::{Files, InputError, read_text, read_yaml};
use leeward_placement::volumes::file::{Open, WorkloadFile, Workloads, WorkloadsFile};
use leeward_traces::device::Device;
use leeward_traces::read::{ReadSettings, Requests};
use leeward_traces::{NetworkWork, Stage, Work};

use super::arrival::Arrival;

/// What the workloads of a file send.
#[derive(Clone, Debug)]
pub struct Sent {
    /// By workload; None for one without a trace. Those of one trace on devices of one file share it.
    pub arrivals: Vec<Option<Arc<[Arrival]>>>,
    /// By workload; the profile of its device, None for one without a trace or a device file.
    pub profiles: Vec<Option<Arc<Device>>>,
    /// Device files that say how many requests are given to the device at once, and how many that is: reads and writes together.
    pub outstanding: BTreeMap<String, u64>,
}

/// What arrivals follow from: the trace, the volume of it, and the device profile.
type Source = (String, Option<String>, Option<String>);

impl Sent {
    /// Reads the traces of workloads, each once. Every one begins with its first request at time 0, so that all are there together.
    ///
    /// # Errors
    /// Names the file, and what is wrong with it.
    pub fn read(
        workloads: &Workloads,
        cluster: &Cluster,
        files: &Files,
        open: &Open<'_>,
    ) -> Result<Sent, InputError> {
        let path = &workloads.path;
        let file: WorkloadsFile = read_yaml(path, &read_text(path)?)?;
        let network = NetworkWork::new(
            file.network.overhead.unwrap_or(NetworkWork::OVERHEAD),
            file.network.payload.unwrap_or(NetworkWork::PAYLOAD),
            file.network.other.unwrap_or(NetworkWork::OTHER),
        );
        let network = network.map_err(|error| InputError::new(path, error).in_field("network"))?;
        let mut devices: BTreeMap<String, Arc<Device>> = BTreeMap::new();
        let mut known: BTreeMap<Source, Arc<[Arrival]>> = BTreeMap::new();
        let mut arrivals = Vec::with_capacity(workloads.entries.len());
        let mut profiles = Vec::with_capacity(workloads.entries.len());
        for (entry, item) in workloads.entries.iter().zip(&file.workloads) {
            let of = &item.value;
            let Some(trace) = &of.trace else {
                arrivals.push(None);
                profiles.push(None);
                continue;
            };
            let stored = entry.workload.demands.iter().any(|demand| demand.stage == Stage::Storage);
            let device = profile(&file, of, cluster).filter(|_| stored);
            if let Some(name) = device
                && !devices.contains_key(name)
            {
                let device = Device::read(&files.path(name)?.to_string_lossy())?;
                devices.insert(name.to_owned(), Arc::new(device));
            }
            let key = (trace.clone(), of.volume.clone(), device.map(str::to_owned));
            if !known.contains_key(&key) {
                let device = device.and_then(|name| devices.get(name));
                let read = read(trace, of.volume.as_deref(), network, device.map(Arc::as_ref), open)?;
                known.insert(key.clone(), read);
            }
            arrivals.push(known.get(&key).cloned());
            profiles.push(device.and_then(|name| devices.get(name)).cloned());
        }
        let given = |(name, device): (String, Arc<Device>)| {
            let given = [device.outstanding.reads, device.outstanding.writes];
            let any = given.iter().any(Option::is_some);
            any.then(|| (name, given.into_iter().flatten().fold(0, u64::saturating_add)))
        };
        Ok(Sent { arrivals, profiles, outstanding: devices.into_iter().filter_map(given).collect() })
    }
}

/// The device file that counts for a workload: that of its server's device, of its server, or of all.
fn profile<'f>(file: &'f WorkloadsFile, of: &WorkloadFile, cluster: &Cluster) -> Option<&'f str> {
    let fabric = &cluster.fabric;
    let server = of.server.as_deref();
    let host = server.and_then(|name| {
        fabric.host(name).or_else(|| fabric.resource(name).and_then(|resource| fabric.host_of(resource)))
    });
    // A host stands for its only device.
    let only = host.filter(|&host| fabric.devices(host).len() == 1).and_then(|host| fabric.device(host, 0));
    let only = only.map(|resource| fabric.resource_name(resource));
    let host = host.map(|host| fabric.host_name(host).to_owned());
    let names = [server.map(str::to_owned), only, host];
    let named = names.iter().flatten().find_map(|name| file.devices.get(name));
    named.or(file.device.as_ref()).map(String::as_str)
}

fn read(
    name: &str,
    volume: Option<&str>,
    network: NetworkWork,
    device: Option<&Device>,
    open: &Open<'_>,
) -> Result<Arc<[Arrival]>, InputError> {
    let settings = ReadSettings { volume: volume.map(str::to_owned), ..ReadSettings::default() };
    let mut work = Work::new(network, device);
    let mut first = None;
    let mut arrivals = Vec::new();
    for request in Requests::open(open(name)?, &settings)? {
        let request = request?;
        let of = work.of(&request).map_err(|error| InputError::new(name, error))?;
        let first = *first.get_or_insert(request.at);
        arrivals.push(Arrival {
            at: request.at.since(first),
            kind: request.kind,
            size: request.size,
            offset: request.offset,
            work: Stage::ALL.map(|stage| of.at(stage).unwrap_or(0.0)),
        });
    }
    Ok(arrivals.into())
}
