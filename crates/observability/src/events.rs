//! Buffer of recent events, for connected clients and for those that reconnect. Each event is stored as data, and
//! rendered once, when the first client reads it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use axum::body::Bytes;
use leeward_fabric::Nanos;
use leeward_promises::{EnforcerChange, PromiseChange};
use leeward_records::{ClusterVersion, DecisionRecord, ModesState};
use leeward_service::{LeaderState, NetworkSnapshot};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// Largest number of events in the buffer.
const MAX_EVENTS: usize = 4_096;
/// Approximate limit on the size of the decisions in the buffer, in bytes. Above it, the oldest events are dropped.
const MAX_BYTES: usize = 32 << 20;

/// Data of an event.
#[derive(Clone, Debug)]
pub enum Event {
    /// A stored decision.
    Decision(Arc<DecisionRecord>),
    /// Loads of links. Only the newest of these events is kept.
    Racks(Arc<NetworkSnapshot>),
    /// A link became hot, or cooled down.
    Hotspot(Hot),
    /// The cluster has a new version.
    Cluster(ClusterVersion),
    /// The leader changed.
    Leader(LeaderState),
    /// The modes changed.
    Modes(ModesState),
    /// A promise has another state, another version, or other alerts.
    Promise(Arc<PromiseChange>),
    /// The lease of an enforcer began, or ran out.
    Enforcer(EnforcerChange),
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
    pub data: Event,
    text: OnceLock<Bytes>,
}

impl EventRecord {
    /// Approximate memory of the event in bytes, with its rendered text.
    fn bytes(&self) -> usize {
        match &self.data {
            Event::Decision(record) => 2 * record.bytes(),
            // Only one snapshot is kept, and the other events are small.
            Event::Racks(_)
            | Event::Hotspot(_)
            | Event::Cluster(_)
            | Event::Leader(_)
            | Event::Modes(_)
            | Event::Enforcer(_) => 0,
            // Places have reasons and differences, and the text repeats them.
            Event::Promise(change) => 2_048 + 2 * change.status.bytes(),
        }
    }

    /// Rendered event; the first call renders it.
    pub fn text(&self, render: impl FnOnce(&EventRecord) -> Bytes) -> &Bytes {
        self.text.get_or_init(|| render(self))
    }
}

/// Some of the requested events were already dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Missed;

struct Ring {
    /// Id of the last event.
    last: u64,
    /// Id of the last dropped event.
    last_dropped: u64,
    records: VecDeque<Arc<EventRecord>>,
    /// Approximate size of the records, in bytes.
    bytes: usize,
}

/// Recent events, with notification of new ones.
pub struct Events {
    ring: Mutex<Ring>,
    /// Id of the last event; `None` after the end.
    last_id: watch::Sender<Option<u64>>,
    stream_permits: Arc<Semaphore>,
}

impl Events {
    /// An empty buffer for at most `max_streams` streams. The first id is the one after `before`, which must exceed the
    /// ids of earlier runs.
    pub fn new(before: u64, max_streams: usize) -> Events {
        let ring = Ring { last: before, last_dropped: before, records: VecDeque::new(), bytes: 0 };
        Events {
            ring: Mutex::new(ring),
            last_id: watch::Sender::new(Some(before)),
            stream_permits: Arc::new(Semaphore::new(max_streams)),
        }
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event, and notifies subscribers.
    pub fn publish(&self, data: Event) {
        let mut ring = self.ring();
        ring.last += 1;
        let id = ring.last;
        if matches!(data, Event::Racks(_))
            && let Some(at) = ring.records.iter().rposition(|record| matches!(record.data, Event::Racks(_)))
        {
            ring.records.remove(at);
        }
        let record = Arc::new(EventRecord { id, data, text: OnceLock::new() });
        ring.bytes += record.bytes();
        ring.records.push_back(record);
        // The last event stays, even if it alone exceeds the limit.
        while ring.records.len() > MAX_EVENTS || (ring.bytes > MAX_BYTES && ring.records.len() > 1) {
            let Some(oldest) = ring.records.pop_front() else { break };
            ring.bytes -= oldest.bytes();
            ring.last_dropped = oldest.id;
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

    /// Ends all streams. Later events are not sent.
    pub fn close(&self) {
        self.last_id.send_replace(None);
    }

    /// Permit for a stream; `None` at the limit.
    pub fn stream_permit(&self) -> Option<OwnedSemaphorePermit> {
        self.stream_permits.clone().try_acquire_owned().ok()
    }

    /// Subscribes to notifications.
    pub fn subscribe(&self) -> watch::Receiver<Option<u64>> {
        self.last_id.subscribe()
    }

    /// Id of the last event.
    pub fn last(&self) -> u64 {
        self.ring().last
    }

    /// Id of the last dropped event, or the id before the first event.
    pub fn last_dropped(&self) -> u64 {
        self.ring().last_dropped
    }

    /// Events after `id` in order, at most `most`.
    ///
    /// # Errors
    /// Returns [`Missed`] if some of them were dropped.
    pub fn after(&self, id: u64, most: usize) -> Result<Vec<Arc<EventRecord>>, Missed> {
        let ring = self.ring();
        if id < ring.last_dropped {
            return Err(Missed);
        }
        let from = ring.records.partition_point(|record| record.id <= id);
        Ok(ring.records.iter().skip(from).take(most).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use leeward_fabric::Cpus;

    use super::*;
    use leeward_records::{
        Classes, DecisionDetails, DecisionId, PlacementSpec, Rate, TaskSpec, TasksSpec, TransferSpec,
    };

    fn ids(events: &Events, after: u64) -> Result<Vec<u64>, Missed> {
        events.after(after, usize::MAX).map(|records| records.iter().map(|record| record.id).collect())
    }

    #[test]
    fn a_reconnecting_client_gets_the_events_it_missed_unless_some_were_dropped() {
        let events = Events::new(100, 1);
        assert_eq!(ids(&events, 100), Ok(vec![]));
        for version in 1..=MAX_EVENTS as u64 {
            events.publish(Event::Cluster(ClusterVersion(version)));
        }
        assert_eq!(ids(&events, 100).map(|ids| ids.len()), Ok(MAX_EVENTS));
        assert_eq!(
            ids(&events, 100 + MAX_EVENTS as u64 - 2),
            Ok(vec![99 + MAX_EVENTS as u64, 100 + MAX_EVENTS as u64])
        );
        events.publish(Event::Cluster(ClusterVersion(0)));
        assert_eq!(ids(&events, 100), Err(Missed), "the last event displaced the first");
        assert_eq!(ids(&events, 101).map(|ids| ids.len()), Ok(MAX_EVENTS));
        assert_eq!(ids(&events, 99), Err(Missed), "the id is from an earlier run");
    }

    #[test]
    fn subscribers_see_the_last_event_id_until_the_buffer_closes() {
        let events = Events::new(7, 1);
        let last_id = events.subscribe();
        events.publish(Event::Cluster(ClusterVersion(1)));
        assert_eq!(*last_id.borrow(), Some(8));
        events.close();
        events.publish(Event::Cluster(ClusterVersion(2)));
        assert_eq!(*last_id.borrow(), None);
    }

    #[test]
    fn a_stream_that_ends_releases_its_permit() {
        let events = Events::new(0, 1);
        let permit = events.stream_permit();
        assert!(permit.is_some() && events.stream_permit().is_none());
        drop(permit);
        assert!(events.stream_permit().is_some());
    }

    #[test]
    fn large_decisions_limit_the_buffer_by_their_approximate_size() {
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
                phase: 0,
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
            let record = record(tasks);
            let written = serde_json::to_string(&record.details).expect("details are serializable").len();
            assert!(
                (written..4 * written + 2_048).contains(&record.bytes()),
                "{} for {written}",
                record.bytes()
            );
        }
        let events = Events::new(0, 1);
        let large = Arc::new(record(10_000));
        let each = 2 * large.bytes();
        assert!(each > MAX_BYTES / 16, "{each}: too small to exceed the limit");
        for _ in 0..40 {
            events.publish(Event::Decision(large.clone()));
        }
        events.publish(Event::Cluster(ClusterVersion(1)));
        let kept = ids(&events, events.last_dropped()).expect("the events are in the buffer");
        assert!(kept.len() > 1 && (kept.len() - 1) * each <= MAX_BYTES, "{} of {each} bytes", kept.len());
        assert_eq!(kept.last(), Some(&41));
        assert_eq!(ids(&events, events.last_dropped() - 1), Err(Missed));
        // An event that alone exceeds the limit stays in the buffer.
        events.publish(Event::Decision(Arc::new(record(100_000))));
        assert_eq!(ids(&events, 41), Ok(vec![42]));
    }
}
