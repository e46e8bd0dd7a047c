//! States that hosts report, with the ends of their windows. The order of windows counts, not the order of arrival.
//! Older states change nothing, and copies placed after a window are added to the stored bytes of that window.

use std::collections::{BTreeMap, VecDeque};

use leeward_fabric::{Bytes, HostId, Nanos};

/// Largest number of placements per host with separate times. Beyond this number, the oldest placements are merged.
const MAX_PLACEMENTS: usize = 32;

/// State of a host; `None` leaves a part unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostReport {
    /// The host.
    pub host: HostId,
    /// True if the host is up.
    pub up: Option<bool>,
    /// True if the host is draining.
    pub draining: Option<bool>,
    /// Stored bytes.
    pub stored: Option<Bytes>,
    /// Storage; only with `stored`.
    pub storage: Option<Bytes>,
}

/// Known state of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KnownHost {
    /// True if the host is up.
    pub up: bool,
    /// True if the host is draining.
    pub draining: bool,
    /// Stored bytes.
    pub stored: Bytes,
    /// Reported storage; `None` without a report of it.
    pub storage: Option<Bytes>,
    /// Ends of the windows of the three states; zero before the first report.
    pub windows: [Nanos; 3],
}

/// Hosts with reports or placements.
#[derive(Debug, Default)]
pub struct Hosts(BTreeMap<HostId, Host>);

/// One host. Times are ends of windows, zero before the first.
#[derive(Debug, Default)]
struct Host {
    up: Nanos,
    draining: Nanos,
    stored: Nanos,
    /// Reported storage; `None` without a report of it.
    storage: Option<Bytes>,
    /// Placements since the last `stored` state, by time.
    placed: VecDeque<(Nanos, u64)>,
}

impl Hosts {
    /// Returns the parts of a report that are newer than the known state, and the number of the other parts.
    pub fn newer_parts(&mut self, report: &HostReport, until: Nanos) -> (HostReport, u64) {
        fn newer<T>(value: Option<T>, last: &mut Nanos, until: Nanos, stale: &mut u64) -> Option<T> {
            let value = value?;
            if until <= *last {
                *stale += 1;
                return None;
            }
            *last = until;
            Some(value)
        }
        let (host, mut stale) = (self.0.entry(report.host).or_default(), 0);
        let (up, draining) = (
            newer(report.up, &mut host.up, until, &mut stale),
            newer(report.draining, &mut host.draining, until, &mut stale),
        );
        let stored = newer(report.stored, &mut host.stored, until, &mut stale).map(|stored| {
            // The stored bytes of the report include earlier placements.
            host.placed.retain(|&(at, _)| at >= until);
            let since = host.placed.iter().fold(0_u64, |sum, &(_, bytes)| sum.saturating_add(bytes));
            Bytes(stored.0.saturating_add(since))
        });
        let storage = report.storage.filter(|_| stored.is_some());
        host.storage = storage.or(host.storage);
        let parts = HostReport { host: report.host, up, draining, stored, storage };
        (parts, stale)
    }

    /// Ends of the windows of a host's up, draining and stored states; zero before the first.
    pub fn windows(&self, host: HostId) -> [Nanos; 3] {
        self.0.get(&host).map_or([Nanos(0); 3], |host| [host.up, host.draining, host.stored])
    }

    /// Storage that a host reported; `None` without a report of it.
    pub fn storage(&self, host: HostId) -> Option<Bytes> {
        self.0.get(&host)?.storage
    }

    /// Continues with states that another coordinator had at the time `at`. Returns the bytes of copies placed later.
    pub fn restore(&mut self, host: HostId, known: KnownHost, now: Nanos, at: Nanos) -> Bytes {
        let host = self.0.entry(host).or_default();
        let [up, draining, stored] = known.windows.map(|until| until.min(now));
        host.storage = host.storage.or(known.storage);
        (host.up, host.draining) = (host.up.max(up), host.draining.max(draining));
        host.stored = host.stored.max(stored);
        let later = host.placed.iter().filter(|&&(placed, _)| placed > at);
        Bytes(later.fold(0_u64, |sum, &(_, bytes)| sum.saturating_add(bytes)))
    }

    /// Records a copy placed on a host.
    pub fn add_copy(&mut self, host: HostId, at: Nanos, bytes: Bytes) {
        let placed = &mut self.0.entry(host).or_default().placed;
        placed.push_back((at, bytes.0));
        if placed.len() > MAX_PLACEMENTS
            && let Some((_, oldest)) = placed.pop_front()
            && let Some((_, next)) = placed.front_mut()
        {
            *next = next.saturating_add(oldest);
        }
    }
}
