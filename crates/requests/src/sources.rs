//! Requests that the workloads of a file send: their traces, with work at each stage.

use std::collections::BTreeMap;
use std::sync::Arc;

use leeward_fabric::input::InputError;
use leeward_slo::file::{Open, Traced, Workloads};
use leeward_traces::device::Device;
use leeward_traces::read::{ReadSettings, Requests};
use leeward_traces::{Stage, Work};

use super::arrival::Arrival;

/// Requests of the workloads of a file.
#[derive(Clone, Debug)]
pub struct Sources {
    /// Requests by workload; `None` without a trace. Workloads with the same trace and device file share the requests.
    pub arrivals: Vec<Option<Arc<[Arrival]>>>,
    /// Device profile by workload; `None` without a trace or a device file.
    pub profiles: Vec<Option<Arc<Device>>>,
}

/// Inputs that determine arrivals: trace, volume of the trace, device profile.
type TraceKey = (String, Option<String>, Option<String>);

impl Sources {
    /// Reads the traces of workloads, each once. Every trace starts with its first request at time 0, so that
    /// all workloads overlap.
    ///
    /// # Errors
    /// Returns an error that names the file and its problem.
    pub fn read(workloads: &Workloads, open: &Open<'_>) -> Result<Sources, InputError> {
        let mut cache: BTreeMap<TraceKey, Arc<[Arrival]>> = BTreeMap::new();
        let mut arrivals = Vec::with_capacity(workloads.entries.len());
        let mut profiles = Vec::with_capacity(workloads.entries.len());
        for entry in &workloads.entries {
            let Some(Traced { trace, volume, device, .. }) = &entry.traced else {
                arrivals.push(None);
                profiles.push(None);
                continue;
            };
            let device_name = device.as_ref().map(|(name, _)| name.clone());
            let device = device.as_ref().map(|(_, device)| device);
            let key = (trace.clone(), volume.clone(), device_name);
            if !cache.contains_key(&key) {
                let device = device.map(Arc::as_ref);
                let requests = read(trace, volume.as_deref(), workloads, device, open)?;
                cache.insert(key.clone(), requests);
            }
            arrivals.push(cache.get(&key).cloned());
            profiles.push(device.cloned());
        }
        Ok(Sources { arrivals, profiles })
    }
}

fn read(
    name: &str,
    volume: Option<&str>,
    workloads: &Workloads,
    device: Option<&Device>,
    open: &Open<'_>,
) -> Result<Arc<[Arrival]>, InputError> {
    let settings =
        ReadSettings { volume: volume.map(str::to_owned), sort: workloads.sort, ..ReadSettings::default() };
    let mut work = Work::new(workloads.network, device);
    let mut first = None;
    let mut arrivals = Vec::new();
    for request in Requests::open(open(name)?, &settings)? {
        let request = request?;
        let stage_work = work.of(&request).map_err(|error| InputError::new(name, error))?;
        let first = *first.get_or_insert(request.at);
        arrivals.push(Arrival {
            at: request.at.since(first),
            kind: request.kind,
            size: request.size,
            offset: request.offset,
            work: Stage::ALL.map(|stage| stage_work.at(stage).unwrap_or(0.0)),
        });
    }
    Ok(arrivals.into())
}
