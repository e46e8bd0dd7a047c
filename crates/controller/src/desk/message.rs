//! What is asked of the desk, and what it answers. Times are the engine's, and names are resolved: texts belong to the
//! edge.

use std::sync::Arc;

use leeward_engine::{Availability, Rates};
use leeward_fabric::{Bytes, DomainId, Fabric, HostId, Load, Nanos, ResourceId};
use leeward_placement::replicas::ReplicaRequest;
use leeward_placement::tasks::{AppRequest, TaskId};
use leeward_placement::{Peer, Rating, Refusal};

use super::disks::Called;
use super::migrations::{Migration, MigrationAnswer, MigrationState};
use super::readings::Reading;
use super::record::Record;
use super::unkept::Left;
use super::wish::Wish;

/// What somebody asks.
#[derive(Clone, PartialEq, Debug)]
pub enum Message {
    /// Take telemetry in: all that is news of it, or nothing if anything in it is wrong.
    Report(Report),
    /// Place something.
    Place(Placement),
    /// The work of this decision ended.
    Release(u64),
    /// What was decided?
    Decision(u64),
    /// Which decisions are kept? The last ones first.
    Decisions {
        /// Of this kind only.
        kind: Option<String>,
        /// With lower numbers only.
        before: Option<u64>,
        /// So many at most.
        limit: usize,
        /// Those only of which nobody said that their work ended.
        holding: bool,
    },
    /// What is in a rack?
    Rack(DomainId),
    /// Which decisions hold something of a link? The last ones first, so many at most.
    Holding(ResourceId, usize),
    /// Which moves were advised? The last ones first.
    Migrations {
        /// In this state only.
        state: Option<MigrationState>,
        /// With lower numbers only.
        before: Option<u64>,
        /// So many at most.
        limit: usize,
    },
    /// A move is answered.
    Migration(u64, MigrationAnswer),
    /// What a job can bear from now on; the default is everything, and then nothing need be known of it.
    Job(String, Availability),
    /// How good are these hosts for a task?
    Score(Score),
    /// What would another policy, with settings after colons, do now with what this decision was asked?
    WhatIf(u64, String),
    /// Which workloads are promised their SLOs? Those promised last first.
    Workloads {
        /// Of decisions with lower numbers only.
        before: Option<u64>,
        /// So many at most.
        limit: usize,
    },
    /// The workload of this name: the one that is promised its SLO, or the last one that was.
    Workload(String),
}

/// A task that a scheduler seeks a host for.
#[derive(Clone, PartialEq, Debug)]
pub struct Score {
    /// A request of the one task; the desk numbers it.
    pub request: AppRequest,
    /// Its job, where it has one with a name.
    pub job: Option<String>,
    /// What it talks to.
    pub peers: Vec<Peer>,
    /// The hosts.
    pub hosts: Vec<HostId>,
}

impl Message {
    /// Whether it asks for something that is to be kept, which only the service that leads can do.
    pub fn commits(&self) -> bool {
        match self {
            Message::Place(_) | Message::Release(_) | Message::Migration(..) | Message::Job(..) => true,
            Message::Report(_)
            | Message::Decision(_)
            | Message::Decisions { .. }
            | Message::Rack(_)
            | Message::Holding(..)
            | Message::Score(_)
            | Message::WhatIf(..)
            | Message::Workloads { .. }
            | Message::Workload(_)
            | Message::Migrations { .. } => false,
        }
    }
}

/// What was seen over a window of time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Report {
    /// Beginning and end.
    pub window: (Nanos, Nanos),
    /// Mean loads of links.
    pub loads: Vec<(ResourceId, Load)>,
    /// The same of devices: how busy they were.
    pub devices: Vec<(ResourceId, Load)>,
    /// What is said of links and devices beside, at the end of the window.
    pub readings: Vec<(ResourceId, Reading)>,
    /// What disks are called that are taken for the only device of their host, if they are what they were called before;
    /// they are among the devices.
    pub disks: Vec<(ResourceId, Called)>,
    /// Devices that are named and the cluster does not have. They are passed over, and told of.
    pub unknown_devices: Vec<String>,
    /// What hosts say of themselves.
    pub hosts: Vec<HostReport>,
    /// What tasks carry across the links of their racks now.
    pub tasks: Vec<(TaskId, Rates)>,
    /// What requests of workloads took, at the percentile of their SLOs, in seconds.
    pub workloads: Vec<(String, f64)>,
}

/// What is to be known of a host; `None` leaves things as they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostReport {
    /// Which one.
    pub host: HostId,
    /// Whether it is known to be up, or down.
    pub up: Option<bool>,
    /// Whether it is being emptied.
    pub draining: Option<bool>,
    /// What it stores.
    pub stored: Option<Bytes>,
}

/// Something to be placed.
#[derive(Clone, PartialEq, Debug)]
pub struct Placement {
    /// The request. The desk numbers requests itself, and takes each block for a file of its own.
    pub request: Request,
    /// The same as it is kept and shown.
    pub wish: Wish,
    /// Who asks, where that is said.
    pub caller: Option<Caller>,
    /// After how long it ends by itself, if nobody says before that its work ended.
    pub lasts: Option<Nanos>,
}

/// What is to be placed.
#[derive(Clone, PartialEq, Debug)]
pub enum Request {
    /// Copies of a block.
    Replicas(ReplicaRequest),
    /// Tasks. Their job is that of the wish.
    Tasks(AppRequest),
    /// The workload of the wish.
    Workload,
}

/// What tells a request apart from others, so that one that is sent again is not decided again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Caller {
    /// Who asks, and for the how-manieth time. The sequences of one client rise.
    Client {
        /// Its name.
        client: Arc<str>,
        /// The number of the request.
        sequence: u64,
    },
    /// A key that nobody else uses.
    Key(Arc<str>),
}

/// What the desk answers.
#[derive(Clone, PartialEq, Debug)]
pub enum Reply {
    /// The report was taken in.
    Reported {
        /// How many links were.
        links: u64,
        /// How many devices were.
        devices: u64,
        /// What was not.
        skipped: Skipped,
        /// Devices that the cluster does not have.
        unknown_devices: Vec<String>,
        /// The state of the ledger with it.
        epoch: u64,
    },
    /// It goes there.
    Placed {
        /// What was decided.
        record: Arc<Record>,
        /// Whether it was decided for an earlier sending of the same request.
        repeated: bool,
    },
    /// A decision as it is kept.
    Decision(Arc<Record>),
    /// Decisions as they are kept.
    Decisions(Vec<Arc<Record>>),
    /// What is in a rack.
    Rack(RackContent),
    /// Moves that were advised.
    Migrations(Vec<Migration>),
    /// It was noted.
    Noted,
    /// How good hosts are.
    Scores {
        /// Of each host, in the order in which they were asked about.
        ratings: Rated,
        /// The policy with its settings.
        policy: Arc<str>,
        /// The state of the ledger.
        epoch: u64,
        /// How old the oldest telemetry is that plays a part.
        age: Option<Nanos>,
    },
    /// What another policy would do: as if it were the decision, with the refusal where it would do nothing.
    WouldBe(Arc<Record>, Option<Refusal>),
    /// Workloads, and what was last seen of each.
    Workloads(Vec<(Arc<Record>, Option<f64>)>),
    /// What the store has of a decision that the desk does not keep any more.
    Left(Left),
}

/// How good hosts are, with the names of the links that limit them.
#[derive(Clone, PartialEq, Debug)]
pub struct Rated(pub Vec<(Rating, Option<String>)>);

impl Rated {
    /// Ratings with names.
    pub(super) fn new(fabric: &Fabric, ratings: Vec<Rating>) -> Rated {
        let named = |rating: Rating| (rating, rating.limit.map(|link| fabric.resource_name(link)));
        Rated(ratings.into_iter().map(named).collect())
    }
}

/// What is in a rack.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RackContent {
    /// Tasks that run there.
    pub tasks: Vec<TaskState>,
    /// Copies that kept decisions put there, and nobody said the end of: the decision, the host, the size.
    pub replicas: Vec<(u64, String, Bytes)>,
    /// Rates that are promised on its links and those of its hosts.
    pub reservations: Vec<ReservationState>,
}

/// A rate that is promised on a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReservationState {
    /// To which workload.
    pub workload: String,
    /// Where: the link's name.
    pub link: String,
    /// How much, in bit/s.
    pub rate_bps: u64,
    /// At which priority, 0 first.
    pub priority: u8,
}

/// A task that runs.
#[derive(Clone, PartialEq, Debug)]
pub struct TaskState {
    /// The decision that placed it.
    pub decision: u64,
    /// What it is called.
    pub name: String,
    /// Its job, where it has one with a name.
    pub job: Option<String>,
    /// Where it is.
    pub host: HostId,
    /// Whether it may be moved.
    pub tolerant: bool,
    /// What it was last seen to send out of its rack, or else demands in the mean, in bit/s.
    pub egress_bps: u64,
    /// What it receives from outside, in bit/s.
    pub ingress_bps: u64,
}

/// So many devices that the cluster does not have are told of by name.
pub const UNKNOWN: usize = 64;

/// Parts of a right report that say nothing new, counted by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Skipped {
    /// Loads, and things said of hosts, of a window that ends no later than what is known; of a host that was down,
    /// than when it was said to be up.
    pub stale: u64,
    /// Loads of hosts that are known to be down.
    pub down: u64,
    /// Tasks that do not run, and workloads that are promised nothing: they may have ended while the report was under way.
    pub unknown: u64,
}

/// Why something was not done. Nothing changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The report is wrong: which of its parts, and why.
    Report(Part, Wrong),
    /// The policy's answer is no.
    Placement(Refusal),
    /// The client has asked for something newer already.
    Superseded {
        /// The last sequence of the client.
        last: u64,
    },
    /// A request of another kind, this one, waits under the caller's key or sequence.
    Reused(Caller, &'static str),
    /// The request was decided under this number, and the decision is not kept any more.
    Forgotten(u64),
    /// No decision of this number is kept.
    NoDecision(u64),
    /// The decision of this number has left memory, and that it be there is needed.
    NotInMemory(u64),
    /// No move of this number is kept.
    NoMigration(u64),
    /// The move was answered otherwise.
    Answered(MigrationState),
    /// As many requests as the desk takes wait to be decided, or as many as it takes ask for this one.
    Busy,
    /// Hosts that it was to be on were taken or closed while it was decided, so many times.
    Outrun(u32),
    /// The cluster is another one now, and names may mean something else: ask again.
    Moved,
    /// The cluster is of another version than was asked for.
    Version {
        /// The one that it is of.
        found: u64,
    },
    /// What was decided could not be kept, and stands nowhere.
    Store(String),
    /// The store has what is asked for, if anything has, and could not be read.
    Unread(String),
    /// The same, of a decision whose end is kept.
    EndedUnread(String),
    /// The store went away while it was to be kept: it may be kept, or stand nowhere.
    Unknown(String),
    /// Another service decides.
    Follower {
        /// Its address; `None` if it is not known.
        leader: Option<Arc<str>>,
    },
    /// The policy for tasks does not rank single hosts.
    NoScores(Arc<str>),
    /// A field of the request is wrong, and why.
    Wrong(Option<String>, String),
    /// An SLO would not be kept for sure, or no server has room.
    Promise(String),
    /// A workload of this name is promised its SLO by this decision.
    Taken(String, u64),
    /// No workload of this name is known.
    NoWorkload(String),
    /// Of as many jobs as this it is known what they can bear, and that is all there is room for.
    Jobs(usize),
    /// What was to be looked into could not be: the program is wrong.
    Failed,
}

/// Part of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Its window.
    Window,
    /// One of its loads, by position.
    Load(usize),
    /// One of its hosts, by position.
    Host(usize),
    /// One of its workloads, by position.
    Workload(usize),
}

/// What is wrong with a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// The window ends no later than it begins.
    Empty,
    /// The window ends later than one interval from now.
    Ahead,
    /// A load is negative.
    Negative,
    /// The same link, host or workload is there twice.
    Twice,
    /// The report has loads as well, and what they count for depends on which hosts are up.
    Mixed,
}
