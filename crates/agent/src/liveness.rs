//! Messages of the agent to systemd: it is ready, reports or fails, and its threads work.
//!
//! The agent is ready after its first attempt to report, accepted or not, or when it knows why it has nothing to report.
//! An agent that waited for an accepted report would fail to start while its controller is away, on all hosts at once,
//! although it works as it should: it retries. `systemctl status` shows the result.

use std::collections::BTreeMap;
use std::time::Duration;

use leeward_fabric::Nanos;
use leeward_systemd::Notifier;

use crate::event::Event;

/// Time by which a thread may be late: a report takes at most ten seconds, and a loaded host some more.
const LATE: Nanos = Nanos(30 * Nanos::SECOND.0);

/// Last result of each reporter's thread.
pub struct Liveness {
    notifier: Option<Notifier>,
    is_ready: bool,
    /// Time by which each controller's thread turns again, by URL.
    due: BTreeMap<String, Nanos>,
    /// Last result of reports to each controller, by URL.
    results: BTreeMap<String, String>,
}

/// A message of a reporter's thread.
pub enum Message {
    /// An event for the log.
    Event(Event),
    /// A turn is over. The next one begins by this time; `attempted` is true if the turn sent a report.
    Turn { next: Nanos, attempted: bool },
}

impl Liveness {
    /// Liveness of the threads of these controllers, which begin at the time `now`.
    pub fn new<'a>(
        notifier: Option<Notifier>,
        urls: impl IntoIterator<Item = &'a str>,
        interval: Nanos,
        now: Nanos,
    ) -> Liveness {
        let due: BTreeMap<_, _> = urls.into_iter().map(|url| (url.to_owned(), now.plus(interval))).collect();
        Liveness { notifier, is_ready: false, due, results: BTreeMap::new() }
    }

    /// Time between two calls of [`Liveness::tick`]; `None` without systemd.
    pub fn period(&self) -> Option<Duration> {
        self.notifier.as_ref().map(Notifier::tick)
    }

    /// Records an event.
    pub fn record(&mut self, url: &str, event: &Event) {
        match event {
            Event::Reports { .. }
            | Event::Rejected { .. }
            | Event::Stale
            | Event::Gap(_)
            | Event::InterfacesUnreadable(_) => {
                self.results.insert(url.to_owned(), event.to_string());
            }
            // Details of reports that are sent.
            _ => {}
        }
    }

    /// Records a turn of a thread. The agent is ready after the first attempt to report, or with the first result.
    pub fn turn(&mut self, url: &str, next: Nanos, attempted: bool) {
        self.due.insert(url.to_owned(), next);
        if !self.is_ready && (attempted || !self.results.is_empty()) {
            self.is_ready = true;
            let status = self.status();
            self.send(|notifier| notifier.ready(&status));
        }
    }

    /// Sends the status and, while every thread works, a message to the watchdog.
    pub fn tick(&self, now: Nanos) {
        let (works, status) = (self.works(now), self.status());
        self.send(|notifier| notifier.works(works, &status));
    }

    /// True if no thread is late.
    fn works(&self, now: Nanos) -> bool {
        self.due.values().all(|due| now <= due.plus(LATE))
    }

    fn status(&self) -> String {
        let result = |url: &String| {
            let result = self.results.get(url).map_or("no report yet", String::as_str);
            format!("{url}: {result}")
        };
        self.due.keys().map(result).collect::<Vec<_>>().join("; ")
    }

    /// A message that systemd does not take now is lost; the next one comes soon.
    fn send(&self, message: impl FnOnce(&Notifier) -> std::io::Result<()>) {
        if let Some(notifier) = &self.notifier {
            drop(message(notifier));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_works_while_no_thread_is_late() {
        let second = |seconds| Nanos(seconds * Nanos::SECOND.0);
        let mut liveness = Liveness::new(None, ["a", "b"], second(1), second(0));
        assert!(liveness.works(second(31)) && !liveness.works(second(32)), "no thread turned yet");
        liveness.turn("a", second(100), false);
        assert!(!liveness.works(second(32)), "the other thread hangs");
        liveness.turn("b", second(60), true);
        assert!(liveness.works(second(90)) && !liveness.works(second(91)));
    }

    #[test]
    fn the_status_has_the_last_result_of_each_controller() {
        let mut liveness = Liveness::new(None, ["a", "b"], Nanos::SECOND, Nanos(0));
        assert_eq!(liveness.status(), "a: no report yet; b: no report yet");
        liveness.record("b", &Event::Rejected { why: "connection refused".to_owned(), wait: Nanos::SECOND });
        liveness.record("a", &Event::Reports { dropped: 0 });
        liveness.record("a", &Event::NoDisk("sdx".to_owned()));
        let expected = "a: reports accepted; b: report failed: connection refused; retry in 1.0 s";
        assert_eq!(liveness.status(), expected);
    }
}
