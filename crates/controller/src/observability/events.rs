//! Buffer of recent events, for connected clients and for those that reconnect. Each event is stored as data, and
//! rendered once, when the first client reads it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use axum::body::Bytes;
use leeward_fabric::Nanos;
use leeward_records::{ClusterVersion, DecisionRecord};
use leeward_service::{LeaderState, NetworkSnapshot};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// Number of events kept for reconnecting clients.
const KEPT: usize = 4_096;
/// Approximate limit on the size of these decisions, in bytes. Beyond it, the oldest events are dropped early.
const BYTES: usize = 32 << 20;

/// Data of an event.
#[derive(Clone, Debug)]
pub enum Event {
    /// A stored decision.
    Decision(Arc<DecisionRecord>),
    /// Loads of links. Only the newest of these events is kept.
    Racks(Arc<NetworkSnapshot>),
    /// A link became hot, or cooled down.
    Hotspot(Hot),
    /// The cluster has this version now.
    Cluster(ClusterVersion),
    /// The leader changed.
    Leader(LeaderState),
}

/// A link that became hot, or cooled down. The event holds values instead of a snapshot, because thousands of snapshots
/// would exhaust the memory.
#[derive(Clone, Debug)]
pub struct Hot {
    /// Name of the link.
    pub link: String,
    /// Measured load, as a share of the capacity.
    pub utilization: Option<f64>,
    /// Start of the hot period.
    pub since: Nanos,
    /// Time of the observation.
    pub at: Nanos,
    /// Time at which the link cooled down.
    pub until: Option<Nanos>,
}

/// An event with its id.
#[derive(Debug)]
pub struct EventRecord {
    /// Id. Ids increase, also across restarts of the service.
    pub id: u64,
    /// Data of the event.
    pub what: Event,
    text: OnceLock<Bytes>,
}

impl EventRecord {
    /// Approximate memory of the event in bytes, with its rendered text.
    fn bytes(&self) -> usize {
        match &self.what {
            Event::Decision(record) => 2 * record.bytes(),
            // Only one snapshot is kept.
            Event::Racks(_) | Event::Hotspot(_) | Event::Cluster(_) | Event::Leader(_) => 0,
        }
    }

    /// Rendered event; the first call renders it.
    pub fn text(&self, render: impl FnOnce(&EventRecord) -> Bytes) -> &Bytes {
        self.text.get_or_init(|| render(self))
    }
}

/// Events after the requested one are no longer kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Missed;

struct Ring {
    /// Id of the last event.
    last: u64,
    /// Id of the last dropped event.
    gone: u64,
    kept: VecDeque<Arc<EventRecord>>,
    /// Approximate bytes of the kept decisions.
    bytes: usize,
}

/// Recent events, with notification of new ones.
pub struct Events {
    ring: Mutex<Ring>,
    /// Id of the last event; `None` after the end.
    last_id: watch::Sender<Option<u64>>,
    places: Arc<Semaphore>,
}

impl Events {
    /// Starts without events. The first id is the one after `before`, which must exceed the ids of earlier runs.
    /// `listeners` is the limit on streams.
    pub fn new(before: u64, listeners: usize) -> Events {
        Events {
            ring: Mutex::new(Ring { last: before, gone: before, kept: VecDeque::new(), bytes: 0 }),
            last_id: watch::Sender::new(Some(before)),
            places: Arc::new(Semaphore::new(listeners)),
        }
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event.
    pub fn tell(&self, what: Event) {
        let mut ring = self.ring();
        ring.last += 1;
        let id = ring.last;
        if matches!(what, Event::Racks(_))
            && let Some(at) = ring.kept.iter().rposition(|told| matches!(told.what, Event::Racks(_)))
        {
            ring.kept.remove(at);
        }
        let told = Arc::new(EventRecord { id, what, text: OnceLock::new() });
        ring.bytes += told.bytes();
        ring.kept.push_back(told);
        // The last event stays, even above the limit.
        while ring.kept.len() > KEPT || (ring.bytes > BYTES && ring.kept.len() > 1) {
            let Some(oldest) = ring.kept.pop_front() else { break };
            ring.bytes -= oldest.bytes();
            ring.gone = oldest.id;
        }
        drop(ring);
        self.last_id.send_if_modified(|last| match last {
            Some(last) => {
                *last = id;
                true
            }
            None => false,
        });
    }

    /// Ends all streams; no event follows.
    pub fn close(&self) {
        self.last_id.send_replace(None);
    }

    /// Permit for a stream; `None` at the limit.
    pub fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.places.clone().try_acquire_owned().ok()
    }

    /// Subscribes to notifications.
    pub fn subscribe(&self) -> watch::Receiver<Option<u64>> {
        self.last_id.subscribe()
    }

    /// Id of the last event.
    pub fn last(&self) -> u64 {
        self.ring().last
    }

    /// Id before the first kept event.
    pub fn gone(&self) -> u64 {
        self.ring().gone
    }

    /// Events after `id` in order, at most `most`.
    ///
    /// # Errors
    /// [`Missed`] if some of them are no longer kept.
    pub fn after(&self, id: u64, most: usize) -> Result<Vec<Arc<EventRecord>>, Missed> {
        let ring = self.ring();
        if id < ring.gone {
            return Err(Missed);
        }
        let from = ring.kept.partition_point(|told| told.id <= id);
        Ok(ring.kept.iter().skip(from).take(most).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use leeward_fabric::Cpus;

    use super::*;
    use leeward_records::{
        Classes, DecisionDetails, DecisionId, PlacementSpec, Rate, TaskSpec, TasksSpec, TransferSpec,
    };

    fn numbers(events: &Events, after: u64) -> Result<Vec<u64>, Missed> {
        events.after(after, usize::MAX).map(|told| told.iter().map(|one| one.id).collect())
    }

    #[test]
    fn a_returning_subscriber_gets_missed_events_unless_they_are_dropped() {
        let events = Events::new(100, 1);
        assert_eq!(numbers(&events, 100), Ok(vec![]));
        for version in 1..=KEPT as u64 {
            events.tell(Event::Cluster(ClusterVersion(version)));
        }
        assert_eq!(numbers(&events, 100).map(|told| told.len()), Ok(KEPT));
        assert_eq!(numbers(&events, 100 + KEPT as u64 - 2), Ok(vec![99 + KEPT as u64, 100 + KEPT as u64]));
        events.tell(Event::Cluster(ClusterVersion(0)));
        assert_eq!(numbers(&events, 100), Err(Missed), "the first was taken for the last");
        assert_eq!(numbers(&events, 101).map(|told| told.len()), Ok(KEPT));
        assert_eq!(numbers(&events, 99), Err(Missed), "the number is of an earlier run");
    }

    #[test]
    fn subscribers_see_the_last_event_number_until_the_stream_closes() {
        let events = Events::new(7, 1);
        let subscribe = events.subscribe();
        events.tell(Event::Cluster(ClusterVersion(1)));
        assert_eq!(*subscribe.borrow(), Some(8));
        events.close();
        events.tell(Event::Cluster(ClusterVersion(2)));
        assert_eq!(*subscribe.borrow(), None);
    }

    #[test]
    fn a_listener_that_leaves_frees_its_slot() {
        let events = Events::new(0, 1);
        let place = events.place();
        assert!(place.is_some() && events.place().is_none());
        drop(place);
        assert!(events.place().is_some());
    }

    #[test]
    fn the_event_buffer_holds_fewer_large_decisions_and_sizes_are_exact() {
        let record = |tasks: usize| {
            let rate = Some(Rate { mean_bps: u64::MAX, peak_bps: u64::MAX });
            let traffic = Classes { critical: rate, non_critical: rate, best_effort: rate };
            let task = |at: usize| TaskSpec {
                name: format!("task {at}"),
                cpus: Cpus(1_500),
                memory: leeward_fabric::Bytes(1 << 40),
                egress: traffic,
                ingress: traffic,
                tolerant: false,
            };
            let transfer = |at: usize| TransferSpec {
                from: at as u32,
                to: u32::MAX,
                bytes: leeward_fabric::Bytes(u64::MAX),
            };
            let spec = PlacementSpec::Tasks(TasksSpec {
                name: "app".to_owned(),
                tasks: (0..tasks).map(task).collect(),
                transfers: (0..tasks).map(transfer).collect(),
                ..TasksSpec::default()
            });
            let hosts = (0..tasks).map(|at| format!("r{at}h{at}")).collect();
            let details = DecisionDetails { hosts, policy: "policy".into(), ..DecisionDetails::empty(spec) };
            let (at, caller, entries, expires, released) = (Nanos(0), None, Vec::new(), None, None);
            DecisionRecord { id: DecisionId(0), at, caller, details, entries, expires, released }
        };
        for tasks in [0, 1, 10, 1_000] {
            let (record, text) = (record(tasks), |record: &DecisionRecord| {
                serde_json::to_string(&record.details).expect("text")
            });
            let written = text(&record).len();
            assert!(
                (written..4 * written + 2_048).contains(&record.bytes()),
                "{} for {written}",
                record.bytes()
            );
        }
        let events = Events::new(0, 1);
        let large = Arc::new(record(10_000));
        let each = 2 * large.bytes();
        assert!(each > BYTES / 16, "{each}: it is not large");
        for _ in 0..40 {
            events.tell(Event::Decision(large.clone()));
        }
        events.tell(Event::Cluster(ClusterVersion(1)));
        let kept = numbers(&events, events.gone()).expect("the events are buffered");
        assert!(kept.len() > 1 && (kept.len() - 1) * each <= BYTES, "{} of {each} bytes", kept.len());
        assert_eq!(kept.last(), Some(&41));
        assert_eq!(numbers(&events, events.gone() - 1), Err(Missed));
        // An event that alone exceeds the limit is sent nevertheless.
        events.tell(Event::Decision(Arc::new(record(100_000))));
        assert_eq!(numbers(&events, 41), Ok(vec![42]));
    }
}
