//! Surveys: the running survey, in its own thread, and the last finished surveys.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{io, thread};

use leeward_fabric::Nanos;
use leeward_probe::control::{Place, Secret};
use leeward_probe::survey::{Host, ProgressObserver};
use leeward_probe::{ProbeError, Train, report};
use leeward_records::ClusterVersion;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::oneshot;

/// Number of surveys kept.
const KEPT: usize = 16;

/// Requested measurement.
#[derive(Clone, PartialEq, Debug)]
pub enum SurveySpec {
    /// One path from the first host to the second, with this number of trains.
    Path(Train, usize),
    /// Every path between the hosts.
    Mesh(report::MeshOptions),
    /// Paths that reduce each other's rate.
    Bottlenecks(report::BottleneckOptions),
}

/// Kind of a survey.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "ProbeKind")]
pub enum Kind {
    /// One path.
    Path,
    /// Every path between the hosts.
    Mesh,
    /// Paths that reduce each other's rate.
    Bottlenecks,
}

impl SurveySpec {
    /// Kind of the survey.
    pub fn kind(&self) -> Kind {
        match self {
            SurveySpec::Path(..) => Kind::Path,
            SurveySpec::Mesh(_) => Kind::Mesh,
            SurveySpec::Bottlenecks(_) => Kind::Bottlenecks,
        }
    }
}

/// Result of a survey.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "ProbeResult")]
pub enum SurveyResult {
    /// Results of each train over a path.
    Path(Vec<report::Path>),
    /// Rates of a mesh.
    Mesh(report::Mesh),
    /// Result of a search for bottlenecks.
    Bottlenecks(report::Bottlenecks),
}

/// State of a survey.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "ProbeState")]
pub enum State {
    /// The survey runs.
    #[default]
    Running,
    /// The survey is complete and has a result.
    Done,
    /// The survey failed without a result.
    Failed,
    /// The client cancelled the survey.
    Cancelled,
}

/// Progress and result of a survey.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Progress {
    /// State of the survey.
    pub state: State,
    /// Number of completed steps.
    pub done: usize,
    /// Number of all steps; 0 while unknown.
    pub steps: usize,
    /// End of the survey.
    pub ended: Option<Nanos>,
    /// Error of the survey, or of storing its mesh.
    pub error: Option<String>,
    /// Cluster version that its mesh created.
    pub version: Option<ClusterVersion>,
    /// Measured result.
    pub result: Option<Arc<SurveyResult>>,
}

/// A survey.
pub struct Survey {
    /// Id of the survey. Ids increase, also across restarts of the service.
    pub id: u64,
    /// Idempotency key of the request, so that a repeated request starts no second survey.
    pub key: Option<String>,
    /// Requested measurement.
    spec: SurveySpec,
    /// True if its mesh becomes the cluster's.
    keep: bool,
    /// Names of the hosts.
    pub hosts: Vec<String>,
    /// Start of the survey.
    pub began: Nanos,
    cancelled: AtomicBool,
    progress: Mutex<Progress>,
}

/// Result of the thread that measures.
type MeasurementResult = Result<SurveyResult, ProbeError>;

impl Survey {
    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Kind of the survey.
    pub fn kind(&self) -> Kind {
        self.spec.kind()
    }

    /// Progress and result.
    pub fn progress(&self) -> Progress {
        self.lock().clone()
    }

    /// Stops the survey after the current step.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
    }

    /// Ends the survey with a result; keeps the counts of steps.
    pub fn end(&self, progress: Progress) {
        let mut current = self.lock();
        let (done, steps) = (current.done, current.steps);
        *current = Progress { done, steps, ..progress };
    }

    fn run(&self, hosts: &[Host], secret: &Secret) -> MeasurementResult {
        let mut observe = |done: usize, steps: usize| {
            let mut progress = self.lock();
            (progress.done, progress.steps) = (done, steps);
            if self.cancelled.load(Ordering::Acquire) { Err(ProbeError::Stopped) } else { Ok(()) }
        };
        let observer: &mut ProgressObserver<'_> = &mut observe;
        match (&self.spec, hosts) {
            (SurveySpec::Path(train, times), [from, to]) => {
                let place = Place::Host(from.address.clone());
                let (from, to) = ((from.name.as_str(), &place), (to.name.as_str(), to.address.as_str()));
                report::path(from, to, train, *times, secret, observer).map(SurveyResult::Path)
            }
            (SurveySpec::Path(..), _) => Err(ProbeError::Nothing("a path has two ends".to_owned())),
            (SurveySpec::Mesh(options), hosts) => {
                report::mesh(hosts, options, secret, observer).map(SurveyResult::Mesh)
            }
            (SurveySpec::Bottlenecks(options), hosts) => {
                report::bottlenecks(hosts, options, secret, observer).map(SurveyResult::Bottlenecks)
            }
        }
    }
}

/// All known surveys.
pub struct Surveys {
    kept: Mutex<VecDeque<Arc<Survey>>>,
    next: AtomicU64,
}

/// Result of a request to start a survey.
pub enum StartResult {
    /// The survey runs; the receiver gets its result.
    New(Arc<Survey>, oneshot::Receiver<MeasurementResult>),
    /// A survey with the same key and the same request exists.
    Known(Arc<Survey>),
    /// A survey with the same key and another request exists.
    Other(Arc<Survey>),
    /// Another survey is running.
    Busy(Arc<Survey>),
}

impl Surveys {
    /// Starts without surveys; `first` is the id of the first one.
    pub fn new(first: u64) -> Surveys {
        Surveys { kept: Mutex::default(), next: AtomicU64::new(first) }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Survey>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Kept surveys, the newest first.
    pub fn all(&self) -> Vec<Arc<Survey>> {
        self.lock().iter().rev().cloned().collect()
    }

    /// A kept survey by id.
    pub fn get(&self, id: u64) -> Option<Arc<Survey>> {
        self.lock().iter().find(|survey| survey.id == id).cloned()
    }

    /// Starts a survey, unless one is running.
    ///
    /// # Errors
    /// The system's error if it cannot start a thread.
    pub fn start(
        &self,
        spec: SurveySpec,
        keep: bool,
        hosts: Vec<Host>,
        secret: Secret,
        key: Option<String>,
        now: Nanos,
    ) -> io::Result<StartResult> {
        let mut known = self.lock();
        if let Some(same) = known.iter().find(|survey| key.is_some() && survey.key == key) {
            let has_same_hosts = hosts.iter().map(|host| &host.name).eq(&same.hosts);
            let is_same = same.spec == spec && same.keep == keep && has_same_hosts;
            let same = same.clone();
            return Ok(if is_same { StartResult::Known(same) } else { StartResult::Other(same) });
        }
        if let Some(other) = known.iter().find(|survey| survey.progress().state == State::Running) {
            return Ok(StartResult::Busy(other.clone()));
        }
        let survey = Arc::new(Survey {
            id: self.next.fetch_add(1, Ordering::Relaxed),
            key,
            spec,
            keep,
            hosts: hosts.iter().map(|host| host.name.clone()).collect(),
            began: now,
            cancelled: AtomicBool::new(false),
            progress: Mutex::default(),
        });
        let (sender, receiver) = oneshot::channel();
        let running = survey.clone();
        let thread = thread::Builder::new().name("leeward-survey".to_owned());
        // The thread ends with the process or by cancellation; shutdown does not wait for it.
        thread.spawn(move || drop(sender.send(running.run(&hosts, &secret))))?;
        known.push_back(survey.clone());
        if known.len() > KEPT {
            known.pop_front();
        }
        Ok(StartResult::New(survey, receiver))
    }
}
