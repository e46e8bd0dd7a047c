//! What hosts said of themselves, and until when it was true. Windows decide and not the order in which reports arrive:
//! what was true earlier changes nothing, and what was placed since is not in it.

use std::collections::{BTreeMap, VecDeque};

use leeward_fabric::{Bytes, HostId, Nanos};

use super::request::HostReport;

/// So many placements on a host are told apart by time; of more, the oldest count as made together.
const APART: usize = 32;

/// The hosts that were heard of, or placed on.
#[derive(Debug, Default)]
pub(crate) struct Hosts(BTreeMap<HostId, Host>);

/// A host. Times are ends of windows, zero before the first.
#[derive(Debug, Default)]
struct Host {
    up: Nanos,
    draining: Nanos,
    stored: Nanos,
    /// What was placed since the last `stored` was true, by time.
    placed: VecDeque<(Nanos, u64)>,
}

impl Hosts {
    /// What of a report was true later than what is known; and how many parts of it were not.
    pub fn news(&mut self, said: &HostReport, until: Nanos) -> (HostReport, u64) {
        fn later<T>(said: Option<T>, known: &mut Nanos, until: Nanos, stale: &mut u64) -> Option<T> {
            let said = said?;
            if until <= *known {
                *stale += 1;
                return None;
            }
            *known = until;
            Some(said)
        }
        let (host, mut stale) = (self.0.entry(said.host).or_default(), 0);
        let news = HostReport {
            host: said.host,
            up: later(said.up, &mut host.up, until, &mut stale),
            draining: later(said.draining, &mut host.draining, until, &mut stale),
            stored: later(said.stored, &mut host.stored, until, &mut stale).map(|stored| {
                // What was placed before was there to be seen.
                host.placed.retain(|&(at, _)| at >= until);
                let since = host.placed.iter().fold(0_u64, |sum, &(_, bytes)| sum.saturating_add(bytes));
                Bytes(stored.0.saturating_add(since))
            }),
        };
        (news, stale)
    }

    /// A copy of so many bytes was placed on a host.
    pub fn placed(&mut self, host: HostId, at: Nanos, bytes: Bytes) {
        let placed = &mut self.0.entry(host).or_default().placed;
        placed.push_back((at, bytes.0));
        if placed.len() > APART
            && let Some((_, oldest)) = placed.pop_front()
            && let Some((_, next)) = placed.front_mut()
        {
            *next = next.saturating_add(oldest);
        }
    }
}
