//! Reporters that need attention: their reports come too rarely for the service, or have loads that no link can carry.
//! Each is logged once, and the status shows the reporters that come too rarely now.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use leeward_fabric::Nanos;

/// Length of a window, in intervals of the service, from which on a reporter is too rare. Between two such reports, the
/// service takes the links for silent for a part of the time.
const RARE_INTERVALS: f64 = 1.5;
/// Number of such windows in a row: a machine that slept sends a single one.
const RARE_WINDOWS: u32 = 2;
/// Number of its own windows without a report after which a reporter is no longer shown.
const FORGET_WINDOWS: u64 = 10;
/// Largest number of reporters in memory. A client could invent names.
const MOST: usize = 10_000;
/// Largest number of reporters with a line in the log for each reason.
const MOST_LOGGED: usize = 256;
/// Number of names in a warning.
const SHOWN: usize = 10;

/// Reporters that come too rarely, and the reporters that were logged.
#[derive(Debug, Default)]
pub struct Reporters(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    rare: BTreeMap<String, Rare>,
    rare_logged: BTreeSet<String>,
    clamped_logged: BTreeSet<String>,
}

/// A reporter whose last window was too long.
#[derive(Clone, Copy, Debug)]
struct Rare {
    window: Nanos,
    until: Nanos,
    /// Number of such windows in a row.
    count: u32,
}

impl Rare {
    fn is_recent(&self, now: Nanos) -> bool {
        now <= self.until.plus(Nanos(self.window.0.saturating_mul(FORGET_WINDOWS)))
    }
}

/// Windows of this length are too rare for a service with this interval.
fn is_rare(window: Nanos, interval: Nanos) -> bool {
    window.0 as f64 > interval.0 as f64 * RARE_INTERVALS
}

impl Reporters {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an accepted report over a window, and logs a warning the first time that a reporter is too rare.
    pub fn record_window(&self, reporter: &str, window: (Nanos, Nanos), interval: Nanos) {
        let (length, until) = (window.1.since(window.0), window.1);
        let mut state = self.lock();
        if !is_rare(length, interval) {
            state.rare.remove(reporter);
            return;
        }
        if state.rare.len() >= MOST && !state.rare.contains_key(reporter) {
            return;
        }
        let rare = state.rare.entry(reporter.to_owned()).or_insert(Rare { window: length, until, count: 0 });
        *rare = Rare { window: length, until, count: rare.count.saturating_add(1) };
        if rare.count >= RARE_WINDOWS && is_first(&mut state.rare_logged, reporter) {
            let (every_s, interval_s) = (length.as_secs_f64(), interval.as_secs_f64());
            tracing::warn!(
                reporter,
                every_s,
                interval_s,
                "reports are too rare: the links are unknown in between; use the interval of the service"
            );
        }
    }

    /// Records that loads of a report were above the capacities of their links, and logs a warning the first time.
    pub fn record_clamped(&self, reporter: &str, count: u64, names: &[String]) {
        if count > 0 && is_first(&mut self.lock().clamped_logged, reporter) {
            tracing::warn!(
                reporter,
                count,
                names = names.join(" "),
                "values above the capacity in the cluster file were clamped: correct the file or the reporter"
            );
        }
    }

    /// Warning about the reporters that come too rarely now; `None` without any.
    pub fn warning(&self, now: Nanos, interval: Nanos) -> Option<String> {
        let mut state = self.lock();
        state.rare.retain(|_, rare| rare.is_recent(now));
        let rare = || state.rare.iter().filter(|(_, rare)| rare.count >= RARE_WINDOWS);
        let longest = rare().map(|(_, rare)| rare.window).max()?;
        let shown = rare().take(SHOWN).map(|(name, _)| name.as_str()).collect::<Vec<&str>>().join(", ");
        let count = rare().count();
        let more = if count > SHOWN { ", ..." } else { "" };
        Some(format!(
            "reports are too rare: those of {shown}{more} ({count} in all) cover up to {:.1} s each, and the service \
             expects a report every {interval}; links are unknown in between",
            longest.as_secs_f64()
        ))
    }
}

/// True if a name was not in the list, which is then full or has it.
fn is_first(logged: &mut BTreeSet<String>, name: &str) -> bool {
    logged.len() < MOST_LOGGED && logged.insert(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = Nanos::SECOND.0;

    /// Records a window of this many seconds that ends at this second.
    fn record(reporters: &Reporters, name: &str, length: u64, until: u64) {
        let window = (Nanos((until - length) * SECOND), Nanos(until * SECOND));
        reporters.record_window(name, window, Nanos::SECOND);
    }

    fn warning(reporters: &Reporters, now: u64) -> Option<String> {
        reporters.warning(Nanos(now * SECOND), Nanos::SECOND)
    }

    #[test]
    fn a_reporter_is_too_rare_after_two_long_windows_until_a_short_one_or_silence() {
        let reporters = Reporters::default();
        record(&reporters, "r0h1", 5, 10);
        assert_eq!(warning(&reporters, 10), None, "a single window may follow a sleep");
        record(&reporters, "r0h1", 5, 15);
        record(&reporters, "r0h2", 1, 15);
        let text = warning(&reporters, 16).expect("a warning");
        assert!(text.contains("those of r0h1 (1 in all) cover up to 5.0 s"), "{text}");
        record(&reporters, "r0h1", 1, 16);
        assert_eq!(warning(&reporters, 16), None);
        record(&reporters, "r0h1", 5, 21);
        record(&reporters, "r0h1", 5, 26);
        assert!(warning(&reporters, 76).is_some());
        assert_eq!(warning(&reporters, 77), None, "the reporter has stopped");
    }

    #[test]
    fn names_and_memory_are_bounded() {
        let reporters = Reporters::default();
        for host in 0..2 * MOST {
            let name = format!("h{host:05}");
            record(&reporters, &name, 5, 10);
            record(&reporters, &name, 5, 15);
            reporters.record_clamped(&name, 1, &[]);
        }
        let state = reporters.lock();
        assert_eq!((state.rare.len(), state.rare_logged.len(), state.clamped_logged.len()), (MOST, 256, 256));
        drop(state);
        let text = warning(&reporters, 15).expect("a warning");
        assert!(text.len() < 500 && text.contains("h00009, ..."), "{text}");
    }
}
