//! Workload files with SLOs, and their system on a cluster.
//!
//! ```text
//! w.yaml --form--> fields --read--> Workloads (traces, curves and models become demands) --Cluster--> System
//!                   traces (each read once), model (the JSON of other commands), routes (links and devices as queues)
//! ```
//!
//! `docs/reference/slo-file.md` describes the format.

mod admission;
mod assumptions;
mod checks;
mod demands;
mod form;
mod latencies;
mod over;
mod priority;
mod read;
mod replay;
mod routes;
mod traces;

use std::sync::Arc;

use leeward_calculus::ArrivalCurve;
use leeward_calculus::assumptions::{Activity, Stationarity};
use leeward_fabric::input::{Files, InputError, Spanned, Text, read_json, read_text, read_yaml};
use leeward_fabric::{Cluster, HostId};
use leeward_shaping::OverLimit;
use leeward_traces::device::{Device, Outstanding};
use leeward_traces::{NetworkWork, Stage};

pub use admission::{AdmissionPolicy, Admitted, Order, Priorities, WorkloadAdmission};
pub use assumptions::DependentPair;
pub use form::{
    Congestion, FitFile, LatencyFile, NetworkFile, SizesName, SloFile, StageName, WorkloadFile, WorkloadsFile,
};
pub use latencies::Latencies;
pub use over::{OverFile, OverName};
pub use priority::PriorityFile;
pub use replay::{OrderName, ReplayFile, TraceStart};
pub use routes::{Routes, Server};

use super::admit::Arrival;
use super::bound::{BoundSettings, Bounds, attainable};
use super::priorities::{by_slo, merge};
use super::{Promise, System, Workload};

/// Opens a trace by its name in a file. A caller may support more kinds of files than text and gzip.
pub type Open<'a> = dyn Fn(&str) -> Result<Text, InputError> + 'a;

/// Workloads of a file, and the file's settings for all of them.
#[derive(Clone, Debug)]
pub struct Workloads {
    /// Path of the file as given.
    pub path: String,
    /// Display name.
    pub name: Option<String>,
    /// The workloads, in order.
    pub entries: Vec<Entry>,
    /// Relative increase of curves over the traces: 0.1 is 10 %. The demands include it.
    pub margin: f64,
    /// Largest number of buckets of a curve.
    pub buckets: usize,
    /// Links that count as queues.
    pub congestion: Congestion,
    /// Latencies of links and devices.
    pub latencies: Latencies,
    /// Number of priorities that networks distinguish.
    pub levels: u32,
    /// Settings of bounds.
    pub bounds: BoundSettings,
    /// Bytes of requests on the network.
    pub network: NetworkWork,
    /// True if traces are sorted by time.
    pub sort: bool,
    /// Settings of replays.
    pub replay: ReplayFile,
    /// True if servers have device files of their own.
    pub devices_differ: bool,
    /// Notes about assumptions, to show with the results.
    pub notes: Vec<String>,
    /// Workloads whose bursts coincide, and that do not depend on each other in the file.
    pub dependent: Vec<DependentPair>,
}

/// A workload of a file.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The workload, margin included.
    pub workload: Arc<Workload>,
    /// Host that sends the requests.
    pub client: HostId,
    /// Server of the volume, if the file names it.
    pub server: Option<Server>,
    /// Priority at each demand, if the file sets it.
    pub priorities: Option<Vec<u32>>,
    /// Enforced limits at each demand, if the file sets them.
    pub limits: Vec<Option<ArrivalCurve>>,
    /// Handling of requests over a limit at each of [`Stage::ALL`].
    pub over: [OverLimit; 3],
    /// True at each of [`Stage::ALL`] whose handling the file states; elsewhere `over` is that of bounds.
    pub over_stated: [bool; 3],
    /// Trace of its requests, if it has one.
    pub traced: Option<Traced>,
    /// Index and position in the file.
    place: (usize, Spanned<()>),
}

impl Entry {
    /// Enforced limits at each demand. The default is the workload's own curve.
    pub fn enforced(&self) -> Vec<ArrivalCurve> {
        let limits = self.workload.demands.iter().zip(&self.limits);
        limits.map(|(own, limit)| limit.clone().unwrap_or_else(|| own.arrivals.clone())).collect()
    }
}

/// Trace of a workload, and the device file for it.
#[derive(Clone, Debug)]
pub struct Traced {
    /// Name of the trace in the file.
    pub trace: String,
    /// Volume within the trace, in dialects that name volumes.
    pub volume: Option<String>,
    /// Device file as named in the file, with its contents; `None` without a storage stage.
    pub device: Option<(String, Arc<Device>)>,
    /// Requests and bytes of the trace over time.
    pub activity: Arc<Activity>,
    /// Test of the trace for a load that changes over time; `None` for a short trace.
    pub stationarity: Option<Stationarity>,
}

/// The system of a file.
#[derive(Clone, Debug)]
pub struct PlacedSystem {
    /// Queues and promises, in the order of the workloads.
    pub system: System,
    /// True if the file sets the priorities.
    pub given: bool,
    /// Number of SLO ranks before merging; `None` if networks distinguish all of them.
    pub merged: Option<usize>,
}

impl Workloads {
    /// Reads a workload file. The function looks up other files from the folder of `files`. It reads each trace once,
    /// even if several workloads share it.
    ///
    /// # Errors
    /// [`InputError`] with the file, the line and the field.
    pub fn read(
        path: &str,
        cluster: &Cluster,
        files: &Files,
        open: &Open<'_>,
    ) -> Result<Workloads, InputError> {
        Workloads::from_text(path, &read_text(path)?, cluster, files, open, None)
    }

    /// Replaces limits on the outstanding requests of devices. Bounds then assume the new ones too.
    pub fn change_outstanding(&mut self, change: impl Fn(&mut Outstanding)) {
        for entry in &mut self.entries {
            let device = entry.traced.as_mut().and_then(|traced| traced.device.as_mut());
            let Some((_, device)) = device else { continue };
            let device = Arc::make_mut(device);
            change(&mut device.outstanding);
            let requests = device.outstanding.requests();
            let demands = &mut Arc::make_mut(&mut entry.workload).demands;
            demands
                .iter_mut()
                .filter(|demand| demand.stage == Stage::Storage)
                .for_each(|demand| demand.outstanding = requests);
        }
    }

    /// Reads a file of arrivals at the workloads of another file, on which they may depend. An arrival with
    /// the name of an existing workload replaces it.
    ///
    /// # Errors
    /// [`InputError`] with the file, the line and the field.
    pub fn read_beside(
        path: &str,
        cluster: &Cluster,
        files: &Files,
        open: &Open<'_>,
        others: &Workloads,
    ) -> Result<Workloads, InputError> {
        Workloads::from_text(path, &read_text(path)?, cluster, files, open, Some(others))
    }

    /// Reads a workload file from text; errors name the file `path`.
    ///
    /// # Errors
    /// [`InputError`] with the file, the line and the field.
    pub fn from_text(
        path: &str,
        text: &str,
        cluster: &Cluster,
        files: &Files,
        open: &Open<'_>,
        others: Option<&Workloads>,
    ) -> Result<Workloads, InputError> {
        read::read(path, read_yaml(path, text)?, cluster, files, open, others)
    }

    /// Reads workloads from a JSON value with the fields of a workload file; errors call it `name`. The value must not
    /// name other files.
    ///
    /// # Errors
    /// [`InputError`] with the field.
    pub fn from_json(
        name: &str,
        value: &serde_json::Value,
        cluster: &Cluster,
        others: Option<&Workloads>,
    ) -> Result<Workloads, InputError> {
        let open = |file: &str| -> Result<Text, InputError> {
            Err(InputError::new(file, "files cannot be named here"))
        };
        read::read(name, read_json(name, value)?, cluster, &Files::default(), &open, others)
    }

    /// System of the file on a cluster, with a queue for each link and device on a path. If the file gives no
    /// priorities, they follow SLOs, merged down to the number of priorities of networks. If the file gives no limits,
    /// the limits are the workloads' own curves.
    ///
    /// # Errors
    /// [`InputError`] for a workload without a server, without a path, or with an SLO below its unloaded
    /// latency.
    pub fn system(&self, cluster: &Cluster) -> Result<PlacedSystem, InputError> {
        let mut routes = Routes::new(cluster, self.congestion, &self.latencies, Vec::new());
        let mut promises = Vec::with_capacity(self.entries.len());
        for entry in &self.entries {
            attainable(&entry.workload).map_err(|error| self.invalid(entry, "slo.latency", error))?;
            promises.push(self.promise(entry, &mut routes)?);
        }
        let mut system = System { queues: routes.into_queues(), promises };
        let given = self.entries.iter().any(|entry| entry.priorities.is_some());
        let mut merged = None;
        if !given {
            by_slo(&mut system);
            merged = merge(&mut system, self.levels);
        }
        Bounds::new(&system, self.bounds).map_err(|error| InputError::new(&self.path, error))?;
        Ok(PlacedSystem { system, given, merged })
    }

    /// Workloads as arrivals at a system. Adds missing queues to the system.
    ///
    /// # Errors
    /// [`InputError`] for a workload without a server or a path, for a workload with priorities or limits (the
    /// admission policy sets them), and for an existing name at another place.
    pub fn arrivals(&self, cluster: &Cluster, system: &mut System) -> Result<Vec<Arrival>, InputError> {
        let queues = std::mem::take(&mut system.queues);
        let mut routes = Routes::new(cluster, self.congestion, &self.latencies, queues);
        let arrival = |entry: &Entry| {
            let message = "expected none: the admission policy sets it";
            if entry.priorities.is_some() {
                return Err(self.invalid(entry, "priority", message));
            }
            if entry.limits.iter().any(Option::is_some) {
                return Err(self.invalid(entry, "limits", message));
            }
            let promise = self.promise(entry, &mut routes)?;
            let before = system.promises.iter().find(|before| before.workload.name == entry.workload.name);
            if before.is_some_and(|before| !same_place(before, &promise)) {
                let message = "the workload exists with another client, server or stages: a changed \
                               workload keeps its place";
                return Err(self.invalid(entry, "server", message));
            }
            Ok(Arrival { workload: promise.workload, route: promise.route })
        };
        let arrivals = self.entries.iter().map(arrival).collect();
        system.queues = routes.into_queues();
        arrivals
    }

    /// Notes about workloads whose client is their server: they cross no link.
    pub fn without_links(&self, cluster: &Cluster) -> Vec<String> {
        let is_local = |entry: &&Entry| {
            let networked = entry.workload.demands.iter().any(|demand| demand.stage != Stage::Storage);
            networked && entry.server.is_some_and(|server| server.host == entry.client)
        };
        let note = |entry: &Entry| {
            let (name, host) = (&entry.workload.name, cluster.fabric.host_name(entry.client));
            format!(
                "{name}: `{host}` is its client and its server: it crosses no link, and networks take no time"
            )
        };
        self.entries.iter().filter(is_local).map(note).collect()
    }

    /// Promise of a workload at its place. If the file gives no priorities or limits, the promise has the last priority
    /// or the workload's own curves. The promise omits stages without queues.
    fn promise(&self, entry: &Entry, routes: &mut Routes<'_>) -> Result<Promise, InputError> {
        let last = || vec![u32::MAX; entry.workload.demands.len()];
        let promise = Promise {
            workload: entry.workload.clone(),
            route: self.route(entry, routes)?,
            priorities: entry.priorities.clone().unwrap_or_else(last),
            limits: entry.enforced(),
        };
        Ok(promise.crossing())
    }

    fn route(&self, entry: &Entry, routes: &mut Routes<'_>) -> Result<Vec<Vec<usize>>, InputError> {
        let missing = || self.invalid(entry, "server", "missing; expected the host that has the volume");
        let server = entry.server.ok_or_else(missing)?;
        let stages = entry.workload.demands.iter().map(|demand| demand.stage);
        let route = |stage| {
            let queues = routes.route(stage, entry.client, server);
            queues.map_err(|message| self.invalid(entry, "server", message))
        };
        stages.map(route).collect()
    }

    /// Error in a field of a workload, with its position in the file.
    pub fn invalid(&self, entry: &Entry, field: &str, message: impl std::fmt::Display) -> InputError {
        let (number, place) = &entry.place;
        InputError::new(&self.path, message).in_field(format!("workloads[{number}].{field}")).at(place)
    }
}

/// True if two promises have the same stages and queues.
fn same_place(one: &Promise, other: &Promise) -> bool {
    let [before, after] =
        [one, other].map(|promise| promise.workload.demands.iter().map(|demand| demand.stage));
    one.route == other.route && before.eq(after)
}
