//! What a packing says: who is where, with which limits and bounds, and who is refused and why.

use std::fmt;

use leeward_traces::Stage;
use serde::{Deserialize, Serialize};

use super::super::words::time;

/// A workload that has no place.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("workload `{workload}` is refused: {why}")]
pub struct Refused {
    /// The workload.
    pub workload: String,
    /// Why.
    pub why: Why,
}

/// Why a workload has no place.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Why {
    /// It has no SLO.
    #[error("it has no SLO, so nothing is set aside for it: it may run as best effort")]
    BestEffort,
    /// Its name is taken.
    #[error("a workload of that name is placed")]
    Placed,
    /// Something about it is wrong.
    #[error("{0}")]
    Wrong(String),
    /// No client has room for it.
    #[error("no client has room for it")]
    NoClient,
    /// Its requests take all of its SLO without any load.
    #[error("up to {stage} its requests take {} without any load, and its SLO is no more", time(*.seconds))]
    Unloaded {
        /// The first stage by which the time is up.
        stage: Stage,
        /// Unloaded tails up to and with the stage, in seconds.
        seconds: f64,
    },
    /// Some SLO is missed even with it on an empty server: links it may share all the same.
    #[error("on an empty server it has no place: {0}")]
    Alone(String),
    /// No server has room for it.
    #[error("{0}")]
    NoRoom(Box<NoRoom>),
}

/// What stands in the way on servers that have no room for a workload.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NoRoom {
    /// Servers tried.
    pub servers: usize,
    /// Of these, where the sum of least rates is more than a queue has.
    pub rates: Hindered,
    /// Where the least bursts alone take longer than an SLO.
    pub bursts: Hindered,
    /// Where the rates configured leave no room for its least rate.
    pub full: Hindered,
    /// Where no limits keep every SLO.
    pub limits: Hindered,
    /// Where the solver failed, so that nothing is known.
    pub unknown: Hindered,
}

/// Servers on which one thing stands in the way.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Hindered {
    /// How many.
    pub servers: usize,
    /// What it is on the first of them, where that is known: a queue, a workload, a stage.
    pub first: Option<String>,
}

impl Hindered {
    /// One more, which `first` tells of if it is the first.
    pub(super) fn add(&mut self, first: impl FnOnce() -> String) {
        self.servers += 1;
        if self.servers == 1 {
            self.first = Some(first());
        }
    }
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "none of {} servers has room for it", self.servers)?;
        let why = [
            (&self.rates, "the least rates are more than a queue has"),
            (&self.bursts, "the least bursts take too long"),
            (&self.full, "the configured rates leave too little (fast first fit)"),
            (&self.limits, "no limits keep every SLO"),
            (&self.unknown, "the solver failed"),
        ];
        let some = why.iter().filter(|(found, _)| found.servers > 0);
        for (at, (Hindered { servers, first }, why)) in some.enumerate() {
            write!(f, "{} on {servers} {why}", if at == 0 { ":" } else { "," })?;
            if let Some(first) = first {
                write!(f, " (the first: {first})")?;
            }
        }
        Ok(())
    }
}

/// What a packing came to.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The way limits are chosen.
    pub limits: String,
    /// Whether it was fast first fit.
    pub fast: bool,
    /// The safety margin that rates, bursts and bounds below include.
    pub margin: f64,
    /// By how much of itself some arrival curve was raised to have fewer buckets, at most; 0 for none.
    pub pruned_by: f64,
    /// Servers with a workload.
    pub servers_used: usize,
    /// Workloads that are placed, in order of arrival.
    pub placed: Vec<PlacedReport>,
    /// Workloads that are refused, in order of arrival.
    pub refused: Vec<RefusedReport>,
}

/// A workload that is placed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PlacedReport {
    /// Its name.
    pub workload: String,
    /// The client it runs on.
    pub client: String,
    /// The server of its volume.
    pub server: String,
    /// Which device of that server.
    pub device: usize,
    /// Priority at every stage, 0 first.
    pub priority: u32,
    /// The SLO, in seconds.
    pub slo_s: f64,
    /// The SLO's percentile, in percent.
    pub percentile: f64,
    /// The most that a request takes, in seconds, the margin included. None where a queue has come to carry less than it is asked
    /// for since.
    pub bound_s: Option<f64>,
    /// Its stages.
    pub stages: Vec<StageReport>,
}

/// A stage of a workload that is placed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StageReport {
    /// Which.
    pub stage: String,
    /// The queues it crosses, by name and in order.
    pub queues: Vec<String>,
    /// What is enforced, all at once.
    pub limits: Vec<Limit>,
    /// The most that a request takes here, in seconds: held back, queueing, served, and the profiled tail. None as above.
    pub bound_s: Option<f64>,
}

/// A token bucket that is enforced.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Limit {
    /// Work a second: bytes, or seconds of service.
    pub rate: f64,
    /// Work at once.
    pub burst: f64,
}

/// A workload that is refused.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RefusedReport {
    /// Its name.
    pub workload: String,
    /// Why, in words.
    pub why: String,
}
