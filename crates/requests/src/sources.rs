//! Requests that the workloads of a file send: their traces, with work at each stage.

use std::collections::BTreeMap;
use std::sync::Arc;

use leeward_fabric::Nanos;
use leeward_fabric::input::InputError;
use leeward_slo::file::{Open, TraceStart, Traced, Workloads};
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
    /// Notes about the times of the traces, to show with the results.
    pub notes: Vec<String>,
}

/// Inputs that determine arrivals: trace, volume of the trace, device profile.
type TraceKey = (String, Option<String>, Option<String>);

/// Requests of a trace, with the first one at time 0.
struct Read {
    arrivals: Arc<[Arrival]>,
    /// Time of the first request: since 1970 if the times of the trace are absolute, else in its recording.
    first: Nanos,
    is_absolute: bool,
}

impl Sources {
    /// Reads the traces of workloads, each once. With [`TraceStart::Recorded`], the earliest request of all is at time 0
    /// and the times between traces stay: absolute times of all dialects that have them count on one clock, and the times
    /// of all others count on another one. With [`TraceStart::Together`], the first request of each trace is at time 0.
    ///
    /// # Errors
    /// Returns an error that names the file and its problem.
    pub fn read(workloads: &Workloads, start: TraceStart, open: &Open<'_>) -> Result<Sources, InputError> {
        let mut traces: BTreeMap<TraceKey, Read> = BTreeMap::new();
        let mut keys = Vec::with_capacity(workloads.entries.len());
        let mut profiles = Vec::with_capacity(workloads.entries.len());
        for entry in &workloads.entries {
            let Some(Traced { trace, volume, device, .. }) = &entry.traced else {
                keys.push(None);
                profiles.push(None);
                continue;
            };
            let device_name = device.as_ref().map(|(name, _)| name.clone());
            let device = device.as_ref().map(|(_, device)| device);
            let key = (trace.clone(), volume.clone(), device_name);
            if !traces.contains_key(&key) {
                let device = device.map(Arc::as_ref);
                traces.insert(key.clone(), read(trace, volume.as_deref(), workloads, device, open)?);
            }
            keys.push(Some(key));
            profiles.push(device.cloned());
        }
        let mut notes = Vec::new();
        if start == TraceStart::Recorded {
            shift(&mut traces, &mut notes);
        }
        let arrivals = keys.iter().map(|key| Some(traces.get(key.as_ref()?)?.arrivals.clone())).collect();
        Ok(Sources { arrivals, profiles, notes })
    }
}

/// Moves traces so that they have the times between them that were recorded.
fn shift(traces: &mut BTreeMap<TraceKey, Read>, notes: &mut Vec<String>) {
    let earliest = [false, true].map(|is_absolute| {
        let firsts = traces.values().filter(|read| read.is_absolute == is_absolute);
        firsts.map(|read| read.first).min()
    });
    if let [Some(_), Some(_)] = earliest {
        let note = "some traces have times since 1970 and others do not; the first requests of both kinds are \
                    replayed at the same time";
        notes.push(note.to_owned());
    }
    for read in traces.values_mut() {
        let later = read.first.since(earliest[usize::from(read.is_absolute)].unwrap_or_default());
        if later > Nanos(0) {
            let moved = read.arrivals.iter();
            read.arrivals = moved.map(|arrival| Arrival { at: arrival.at.plus(later), ..*arrival }).collect();
        }
    }
    notes.extend(alone(traces));
}

/// Notes about traces that end before any other starts, or start after all others have ended.
fn alone(traces: &BTreeMap<TraceKey, Read>) -> Vec<String> {
    let span = |(key, read): (&TraceKey, &Read)| {
        Some((read.arrivals.first()?.at, read.arrivals.last()?.at, name(key)))
    };
    let mut spans: Vec<(Nanos, Nanos, String)> = traces.iter().filter_map(span).collect();
    spans.sort_unstable();
    let mut latest: Option<Nanos> = None;
    let mut notes = Vec::new();
    for (at, (first, last, name)) in spans.iter().enumerate() {
        let is_after = latest.is_none_or(|latest| latest < *first);
        let is_before = spans.get(at + 1).is_none_or(|next| *last < next.0);
        if is_after && is_before && spans.len() > 1 {
            notes.push(format!(
                "{name}: its requests come when no other trace has any; with `start: together` in `replay`, all \
                 traces start at once"
            ));
        }
        latest = latest.max(Some(*last));
    }
    notes
}

fn name((trace, volume, _): &TraceKey) -> String {
    volume.as_ref().map_or_else(|| trace.clone(), |volume| format!("{trace} ({volume})"))
}

fn read(
    name: &str,
    volume: Option<&str>,
    workloads: &Workloads,
    device: Option<&Device>,
    open: &Open<'_>,
) -> Result<Read, InputError> {
    let settings =
        ReadSettings { volume: volume.map(str::to_owned), sort: workloads.sort, ..ReadSettings::default() };
    let mut work = Work::new(workloads.network, device);
    let mut first = None;
    let mut arrivals = Vec::new();
    let requests = Requests::open(open(name)?, &settings)?;
    let epoch = requests.dialect().epoch();
    for request in requests {
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
    let first = first.unwrap_or_default().since(epoch.unwrap_or_default());
    Ok(Read { arrivals: arrivals.into(), first, is_absolute: epoch.is_some() })
}
