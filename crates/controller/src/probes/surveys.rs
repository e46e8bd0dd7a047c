//! Surveys: one that runs, in a thread of its own, and the last ones that did.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use leeward_fabric::Nanos;
use leeward_probe::control::{Place, Secret};
use leeward_probe::survey::{Host, Progress};
use leeward_probe::{ProbeError, Train, told};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::oneshot;

/// Surveys that are kept.
const KEPT: usize = 16;

/// What is to be measured.
#[derive(Clone, PartialEq, Debug)]
pub enum Wish {
    /// A path, from the first host to the second, by so many trains.
    Path(Train, usize),
    /// Every path between hosts.
    Mesh(told::Meshing),
    /// Which paths take from each other.
    Bottlenecks(told::Looking),
}

/// What kind of survey it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "ProbeKind")]
pub enum Kind {
    /// A path.
    Path,
    /// Every path between hosts.
    Mesh,
    /// Which paths take from each other.
    Bottlenecks,
}

impl Wish {
    /// What kind of survey it is.
    pub fn kind(&self) -> Kind {
        match self {
            Wish::Path(..) => Kind::Path,
            Wish::Mesh(_) => Kind::Mesh,
            Wish::Bottlenecks(_) => Kind::Bottlenecks,
        }
    }
}

/// What was measured.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "ProbeResult")]
pub enum Found {
    /// Of a path: what each train said.
    Path(Vec<told::Path>),
    /// Of a mesh.
    Mesh(told::Mesh),
    /// Of a search for bottlenecks.
    Bottlenecks(told::Bottlenecks),
}

/// How a survey stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "ProbeState")]
pub enum State {
    /// It is under way.
    #[default]
    Running,
    /// It is over, and has a result.
    Done,
    /// It is over, and has none.
    Failed,
    /// It was stopped.
    Cancelled,
}

/// How far a survey is.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Course {
    /// How it stands.
    pub state: State,
    /// Steps that are done.
    pub done: usize,
    /// How many there are; 0 until that is known.
    pub steps: usize,
    /// When it was over.
    pub ended: Option<Nanos>,
    /// What kept it from being done, or its mesh from being kept.
    pub error: Option<String>,
    /// The version of the cluster that its mesh made.
    pub version: Option<u64>,
    /// What was measured.
    pub found: Option<Arc<Found>>,
}

/// A survey.
pub struct Survey {
    /// Its number; they rise, in later runs of the service too.
    pub id: u64,
    /// What it was asked for with, so that what is sent again begins no second one.
    pub key: Option<String>,
    /// What kind it is.
    pub kind: Kind,
    /// The hosts.
    pub hosts: Vec<String>,
    /// When it began.
    pub began: Nanos,
    cancelled: AtomicBool,
    course: Mutex<Course>,
}

/// What a thread found.
type Made = Result<Found, ProbeError>;

impl Survey {
    fn under_way(&self) -> MutexGuard<'_, Course> {
        self.course.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far it is.
    pub fn course(&self) -> Course {
        self.under_way().clone()
    }

    /// Stops it when the step under way is done.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
    }

    /// It is over.
    pub fn end(&self, course: Course) {
        let mut under_way = self.under_way();
        let (done, steps) = (under_way.done, under_way.steps);
        *under_way = Course { done, steps, ..course };
    }

    fn run(&self, hosts: &[Host], wish: &Wish, secret: &Secret) -> Made {
        let mut tell = |done: usize, steps: usize| {
            let mut course = self.under_way();
            (course.done, course.steps) = (done, steps);
            if self.cancelled.load(Ordering::Acquire) { Err(ProbeError::Stopped) } else { Ok(()) }
        };
        let tell: &mut Progress<'_> = &mut tell;
        match (wish, hosts) {
            (Wish::Path(train, times), [from, to]) => {
                let begins = Place::Host(from.address.clone());
                let (from, to) = ((from.name.as_str(), &begins), (to.name.as_str(), to.address.as_str()));
                told::path(from, to, train, *times, secret, tell).map(Found::Path)
            }
            (Wish::Path(..), _) => Err(ProbeError::Nothing("a path has two ends".to_owned())),
            (Wish::Mesh(meshing), hosts) => told::mesh(hosts, meshing, secret, tell).map(Found::Mesh),
            (Wish::Bottlenecks(looking), hosts) => {
                told::bottlenecks(hosts, looking, secret, tell).map(Found::Bottlenecks)
            }
        }
    }
}

/// All surveys that are known.
pub struct Surveys {
    kept: Mutex<VecDeque<Arc<Survey>>>,
    next: AtomicU64,
}

/// What became of a wish to measure.
pub enum Begun {
    /// It is under way; what it comes to is told there.
    New(Arc<Survey>, oneshot::Receiver<Made>),
    /// It was asked for with the same key before.
    Known(Arc<Survey>),
    /// Another one is under way.
    Busy(Arc<Survey>),
}

impl Surveys {
    /// None yet; the first one has this number.
    pub fn new(first: u64) -> Surveys {
        Surveys { kept: Mutex::default(), next: AtomicU64::new(first) }
    }

    fn known(&self) -> MutexGuard<'_, VecDeque<Arc<Survey>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that are kept, the last ones first.
    pub fn all(&self) -> Vec<Arc<Survey>> {
        self.known().iter().rev().cloned().collect()
    }

    /// One of them.
    pub fn one(&self, id: u64) -> Option<Arc<Survey>> {
        self.known().iter().find(|survey| survey.id == id).cloned()
    }

    /// Begins a survey, if none is under way.
    ///
    /// # Errors
    /// What the system says if there is no thread to be had.
    pub fn begin(
        &self,
        wish: Wish,
        hosts: Vec<Host>,
        secret: Secret,
        key: Option<String>,
        now: Nanos,
    ) -> io::Result<Begun> {
        let mut known = self.known();
        if let Some(same) = known.iter().find(|survey| key.is_some() && survey.key == key) {
            return Ok(Begun::Known(same.clone()));
        }
        if let Some(other) = known.iter().find(|survey| survey.course().state == State::Running) {
            return Ok(Begun::Busy(other.clone()));
        }
        let survey = Arc::new(Survey {
            id: self.next.fetch_add(1, Ordering::Relaxed),
            key,
            kind: wish.kind(),
            hosts: hosts.iter().map(|host| host.name.clone()).collect(),
            began: now,
            cancelled: AtomicBool::new(false),
            course: Mutex::default(),
        });
        let (tell, told) = oneshot::channel();
        let running = survey.clone();
        let named = thread::Builder::new().name("leeward-survey".to_owned());
        // It ends with the process, or when it is cancelled: nobody waits for it at a stop.
        named.spawn(move || drop(tell.send(running.run(&hosts, &wish, &secret))))?;
        known.push_back(survey.clone());
        if known.len() > KEPT {
            known.pop_front();
        }
        Ok(Begun::New(survey, told))
    }
}
