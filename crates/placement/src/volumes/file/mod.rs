//! Files of workloads with SLOs, as people write them, and the system that one is on a cluster.
//!
//! ```text
//! w.yaml --form--> fields --read--> Workloads (traces, curves and models become demands) --Cluster--> System
//!                   traces (each read once), model (the JSON of other commands), routes (links and devices as queues)
//! ```
//!
//! The file is described in `docs/reference/slo-file.md`.

mod admission;
mod checks;
mod demands;
mod form;
mod model;
mod read;
mod routes;
mod scalars;
mod traces;

use std::sync::Arc;

use leeward_calculus::ArrivalCurve;
use leeward_fabric::input::{Files, InputError, Spanned, Text, read_text};
use leeward_fabric::{Cluster, HostId};
use leeward_traces::device::Device;
use leeward_traces::{NetworkWork, Stage};

pub use admission::{Admitted, Came, Chosen, Order, Priorities};
pub use form::{
    BucketsFile, ByStage, Congestion, DeviceBucket, FitFile, LinkBucket, NetworkFile, SizesName, SloFile,
    StageName, WorkloadFile, WorkloadsFile,
};
pub use model::{BucketRecord, ModelRecord, RequestsName, SigmaName, SizesRecord, StateRecord};
pub use routes::{Routes, Server};
pub use scalars::{CurvesFile, ModelsFile, PriorityFile, Share};

use super::admit::Arrival;
use super::bound::{BoundSettings, Bounds, attainable};
use super::priorities::{by_slo, merge};
use super::{Promise, System, Workload};

/// Opens a trace by the name that it has in a file; a caller may know more kinds of files than text and gzip.
pub type Open<'a> = dyn Fn(&str) -> Result<Text, InputError> + 'a;

/// Workloads of a file, and what the file says for all of them.
#[derive(Clone, Debug)]
pub struct Workloads {
    /// The file, as it was named.
    pub path: String,
    /// What people call it.
    pub name: Option<String>,
    /// The workloads, in order.
    pub entries: Vec<Entry>,
    /// By how much curves are above what the traces say: 0.1 is 10 %. It is in the demands.
    pub margin: f64,
    /// Buckets of a curve at most.
    pub buckets: usize,
    /// Which links are queues.
    pub congestion: Congestion,
    /// Priorities that networks tell apart.
    pub levels: u32,
    /// How bounds are made.
    pub bounds: BoundSettings,
    /// Bytes that requests are on the network.
    pub network: NetworkWork,
    /// Whether servers have device files of their own.
    pub devices_differ: bool,
    /// What a reader of results should know.
    pub notes: Vec<String>,
}

/// A workload of a file.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What it asks for, with the margin.
    pub workload: Arc<Workload>,
    /// Who makes the requests.
    pub client: HostId,
    /// Where the volume is, if the file says.
    pub server: Option<Server>,
    /// Its priority at each demand, if the file says.
    pub priorities: Option<Vec<u32>>,
    /// What is enforced at each demand, if the file says.
    pub limits: Vec<Option<ArrivalCurve>>,
    /// Where its requests are, if they are known.
    pub traced: Option<Traced>,
    /// Where it is in the file.
    place: (usize, Spanned<()>),
}

/// Where the requests of a workload are, and what serves them.
#[derive(Clone, Debug)]
pub struct Traced {
    /// The trace, as it is named in the file.
    pub trace: String,
    /// The volume that it is of, in dialects that name volumes.
    pub volume: Option<String>,
    /// The device file that counts for it, as it is named in the file; None if it has no storage stage.
    pub device: Option<(String, Arc<Device>)>,
}

/// The system that a file is.
#[derive(Clone, Debug)]
pub struct Placed {
    /// Queues and promises, in the order of the workloads.
    pub system: System,
    /// Whether priorities are those of the file.
    pub given: bool,
    /// How many ranks of SLOs there were, if they are more than networks tell apart and were merged.
    pub merged: Option<usize>,
}

impl Workloads {
    /// Reads a file of workloads. Other files are looked up from the folder of `files`; each trace is read once, however many
    /// workloads share it.
    ///
    /// # Errors
    /// Names the file, the line and the field.
    pub fn read(
        path: &str,
        cluster: &Cluster,
        files: &Files,
        open: &Open<'_>,
    ) -> Result<Workloads, InputError> {
        Workloads::from_text(path, &read_text(path)?, cluster, files, open, None)
    }

    /// Reads a file of workloads that come to those of another, of which they may depend on some. One of the same name as there is that
    /// one, changed.
    ///
    /// # Errors
    /// Names the file, the line and the field.
    pub fn read_beside(
        path: &str,
        cluster: &Cluster,
        files: &Files,
        open: &Open<'_>,
        others: &Workloads,
    ) -> Result<Workloads, InputError> {
        Workloads::from_text(path, &read_text(path)?, cluster, files, open, Some(others))
    }

    /// The same from a text, with the name it has in errors.
    ///
    /// # Errors
    /// Names the file, the line and the field.
    pub fn from_text(
        path: &str,
        text: &str,
        cluster: &Cluster,
        files: &Files,
        open: &Open<'_>,
        others: Option<&Workloads>,
    ) -> Result<Workloads, InputError> {
        read::read(path, text, cluster, files, open, others)
    }

    /// The system on a cluster: a queue for each link and device that is passed; priorities as in the file, else by SLO and merged
    /// where there are more than networks tell apart; limits as in the file, else the workloads' own curves.
    ///
    /// # Errors
    /// A workload without a server, without a path, or with an SLO that its requests miss without any load.
    pub fn system(&self, cluster: &Cluster) -> Result<Placed, InputError> {
        let mut routes = Routes::new(cluster, self.congestion, Vec::new());
        let mut promises = Vec::with_capacity(self.entries.len());
        for entry in &self.entries {
            attainable(&entry.workload).map_err(|error| self.wrong(entry, "slo.latency", error))?;
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
        Ok(Placed { system, given, merged })
    }

    /// The workloads as arrivals at a system, which gets the queues that it does not have yet.
    ///
    /// # Errors
    /// A workload without a server or a path, or one with priorities or limits: who admits it gives them. One that is there already,
    /// elsewhere.
    pub fn arrivals(&self, cluster: &Cluster, system: &mut System) -> Result<Vec<Arrival>, InputError> {
        let mut routes = Routes::new(cluster, self.congestion, std::mem::take(&mut system.queues));
        let arrival = |entry: &Entry| {
            let message = "expected none: who admits a workload gives it";
            if entry.priorities.is_some() {
                return Err(self.wrong(entry, "priority", message));
            }
            if entry.limits.iter().any(Option::is_some) {
                return Err(self.wrong(entry, "limits", message));
            }
            let promise = self.promise(entry, &mut routes)?;
            let before = system.promises.iter().find(|before| before.workload.name == entry.workload.name);
            if before.is_some_and(|before| !same_place(before, &promise)) {
                let message =
                    "it is there with another client, server or stages: one that changed stays where it is";
                return Err(self.wrong(entry, "server", message));
            }
            Ok(Arrival { workload: promise.workload, route: promise.route })
        };
        let arrivals = self.entries.iter().map(arrival).collect();
        system.queues = routes.into_queues();
        arrivals
    }

    /// Of each workload whose client is its server, that it crosses no link.
    pub fn without_links(&self, cluster: &Cluster) -> Vec<String> {
        let there = |entry: &&Entry| {
            let networked = entry.workload.demands.iter().any(|demand| demand.stage != Stage::Storage);
            networked && entry.server.is_some_and(|server| server.host == entry.client)
        };
        let said = |entry: &Entry| {
            let (name, host) = (&entry.workload.name, cluster.fabric.host_name(entry.client));
            format!(
                "{name}: `{host}` is its client and its server: it crosses no link, and networks take no time"
            )
        };
        self.entries.iter().filter(there).map(said).collect()
    }

    /// A workload where it is, with priorities and limits as in the file, or else the last and its own curves; without stages that cross
    /// nothing.
    fn promise(&self, entry: &Entry, routes: &mut Routes<'_>) -> Result<Promise, InputError> {
        let demands = &entry.workload.demands;
        let limits = demands.iter().zip(&entry.limits);
        let promise = Promise {
            workload: entry.workload.clone(),
            route: self.route(entry, routes)?,
            priorities: entry.priorities.clone().unwrap_or_else(|| vec![u32::MAX; demands.len()]),
            limits: limits
                .map(|(own, limit)| limit.clone().unwrap_or_else(|| own.arrivals.clone()))
                .collect(),
        };
        Ok(promise.crossing())
    }

    fn route(&self, entry: &Entry, routes: &mut Routes<'_>) -> Result<Vec<Vec<usize>>, InputError> {
        let missing = || self.wrong(entry, "server", "missing; expected the host that has the volume");
        let server = entry.server.ok_or_else(missing)?;
        let stages = entry.workload.demands.iter().map(|demand| demand.stage);
        let route = |stage| {
            let found = routes.route(stage, entry.client, server);
            found.map_err(|message| self.wrong(entry, "server", message))
        };
        stages.map(route).collect()
    }

    /// What is wrong with a field of a workload, with its place in the file.
    pub fn wrong(&self, entry: &Entry, field: &str, message: impl std::fmt::Display) -> InputError {
        let (number, place) = &entry.place;
        InputError::new(&self.path, message).in_field(format!("workloads[{number}].{field}")).at(place)
    }
}

/// Whether two promises are for the same stages and queues.
fn same_place(one: &Promise, other: &Promise) -> bool {
    let [before, after] =
        [one, other].map(|promise| promise.workload.demands.iter().map(|demand| demand.stage));
    one.route == other.route && before.eq(after)
}
