//! Readings become reports, and answers what is to be told. No input or output.

use std::fmt;

use jiff::Timestamp;
use leeward_fabric::Nanos;
use serde::{Deserialize, Serialize};

use crate::counters::{Gap, Meter, Reading, Window};
use crate::pace::Pace;

/// The body of `POST /v1/reports`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// Where the window begins, RFC 3339.
    pub from: String,
    /// Where it ends.
    pub until: String,
    /// What the host's links carried.
    pub links: [Link; 2],
}

/// What a link carried in the mean.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Link {
    /// Its name, `r3h7:egress`.
    pub link: String,
    /// Bits per second.
    pub load_bps: f64,
}

/// A report was taken in.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
pub struct Taken {
    /// How many of its links were news.
    pub links: u64,
}

/// A report was not taken in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// Why, in words.
    pub why: String,
    /// After how long to come again, if the controller said so.
    pub after: Option<Nanos>,
}

/// What whoever looks after the agent is told.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// The first report was taken in, or the first one after some were not.
    Reports {
        /// How many windows were dropped since the one before.
        dropped: u64,
    },
    /// A report was not taken in.
    Refused {
        /// Why.
        why: String,
        /// When the next one is sent.
        wait: Nanos,
    },
    /// Reports are taken in, and say nothing new.
    Stale,
    /// There is nothing to report.
    Gap(Gap),
    /// Interfaces cannot be read.
    Unread(String),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Reports { dropped: 0 } => write!(f, "reports are taken in"),
            Event::Reports { dropped } => {
                write!(f, "reports are taken in; windows that were dropped before: {dropped}")
            }
            Event::Refused { why, wait } => {
                write!(f, "not reported: {why}; again in {:.1} s", wait.as_secs_f64())
            }
            Event::Stale => f.write_str(
                "reports say nothing new: another agent reports for this host, it is known to be down, \
                 or this machine's clock is behind",
            ),
            Event::Gap(gap) => write!(f, "nothing to report: {gap}"),
            Event::Unread(why) => write!(f, "nothing to report: interfaces cannot be read: {why}"),
        }
    }
}

/// All that an agent decides.
#[derive(Clone, Debug)]
pub struct Reporter {
    host: String,
    meter: Meter,
    pace: Pace,
    /// The last window, until it is sent or the next one comes.
    window: Option<Window>,
    dropped: u64,
    /// What was told last; it is told again when it changes.
    told: Option<Event>,
}

fn text(at: Nanos) -> String {
    Timestamp::from_nanosecond(i128::from(at.0)).unwrap_or(Timestamp::MAX).to_string()
}

impl Reporter {
    /// Reports for a host, by a meter and in a rhythm.
    pub fn new(host: String, meter: Meter, pace: Pace) -> Reporter {
        Reporter { host, meter, pace, window: None, dropped: 0, told: None }
    }

    /// When to read next.
    pub fn next(&mut self, now: Nanos, random: f64) -> Nanos {
        self.pace.next(now, random)
    }

    /// Takes a reading.
    pub fn read(&mut self, reading: &Reading) -> Option<Event> {
        // One that waits is older than what is known now.
        self.dropped += u64::from(self.window.take().is_some());
        match self.meter.take(reading) {
            Ok(window) => {
                self.window = Some(window);
                None
            }
            Err(Gap::First) => None,
            Err(gap) => self.tell(Event::Gap(gap)),
        }
    }

    /// Interfaces could not be read.
    pub fn unread(&mut self, why: String) -> Option<Event> {
        self.tell(Event::Unread(why))
    }

    /// What to send now, if anything.
    pub fn report(&mut self, now: Nanos) -> Option<Report> {
        if !self.pace.may_send(now) {
            return None;
        }
        let window = self.window.take()?;
        let link = |way: &str, bytes| Link {
            link: format!("{}:{way}", self.host),
            load_bps: window.rate_bps(bytes),
        };
        let links = [link("egress", window.egress), link("ingress", window.ingress)];
        Some(Report { from: text(window.from), until: text(window.until), links })
    }

    /// What became of it. A report whose answer was lost may have been taken in; then the next one is news all the same.
    pub fn answered(&mut self, now: Nanos, answer: Result<Taken, Refused>, random: f64) -> Option<Event> {
        match answer {
            Ok(taken) => {
                self.pace.succeeded();
                let dropped = std::mem::take(&mut self.dropped);
                self.tell(if taken.links == 0 { Event::Stale } else { Event::Reports { dropped } })
            }
            Err(Refused { why, after }) => {
                self.dropped += 1;
                let wait = self.pace.failed(now, after, random);
                let event = Event::Refused { why, wait };
                self.told = Some(event.clone());
                Some(event)
            }
        }
    }

    fn tell(&mut self, event: Event) -> Option<Event> {
        let same = match (&self.told, &event) {
            // How many were dropped is told with the first one.
            (Some(Event::Reports { .. }), Event::Reports { .. }) => true,
            (told, event) => told.as_ref() == Some(event),
        };
        if same {
            return None;
        }
        self.told = Some(event.clone());
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::{Count, Interface};

    fn reading(second: u64, bytes: u64) -> Reading {
        let count = Count { bytes, packets: bytes / 1_000 };
        let interface =
            Interface { index: 1, name: "eth0".to_owned(), physical: true, received: count, sent: count };
        let at = Nanos(second * Nanos::SECOND.0);
        Reading { at, wall: Nanos(1_769_860_800_000_000_000 + at.0), interfaces: vec![interface] }
    }

    fn reporter() -> Reporter {
        let pace = Pace::new(Nanos::SECOND, Nanos(0), 0.0);
        Reporter::new("r0h1".to_owned(), Meter::new([]), pace)
    }

    #[test]
    fn a_report_has_the_window_and_the_host_s_links() {
        let mut reporter = reporter();
        assert_eq!(reporter.read(&reading(0, 1_000)), None);
        assert_eq!(reporter.report(Nanos(0)), None, "one reading is no window");
        reporter.read(&reading(2, 251_000));
        let report = reporter.report(Nanos(2)).expect("a window");
        assert_eq!(
            serde_json::to_string(&report).expect("JSON"),
            r#"{"from":"2026-01-31T12:00:00Z","until":"2026-01-31T12:00:02Z","links":[{"link":"r0h1:egress","load_bps":1000000.0},{"link":"r0h1:ingress","load_bps":1000000.0}]}"#
        );
        assert_eq!(reporter.report(Nanos(2)), None, "a window is sent once");
    }

    #[test]
    fn of_an_absent_controller_nothing_is_left_but_how_many_windows_were_dropped() {
        let mut reporter = reporter();
        let refused = || Err(Refused { why: "nobody is there".to_owned(), after: None });
        let (mut sent, mut told) = (0, 0);
        for second in 0..1_000 {
            let now = Nanos(second * Nanos::SECOND.0);
            reporter.read(&reading(second, 1_000 * second));
            if reporter.report(now).is_some() {
                sent += 1;
                told += u64::from(reporter.answered(now, refused(), 0.5).is_some());
            }
        }
        assert!(sent == told && (15..60).contains(&sent), "the waits grow: {sent}");
        reporter.read(&reading(2_000, 2_000_000));
        assert!(reporter.report(Nanos(2_000 * Nanos::SECOND.0)).is_some());
        let event = reporter.answered(Nanos(0), Ok(Taken { links: 2 }), 0.5);
        // Each of the 999 windows and the last one was made, and that one alone was taken in.
        assert_eq!(event, Some(Event::Reports { dropped: 999 }));
        reporter.read(&reading(2_001, 2_000_000));
        assert!(reporter.report(Nanos(2_001 * Nanos::SECOND.0)).is_some());
        assert_eq!(reporter.answered(Nanos(0), Ok(Taken { links: 2 }), 0.5), None, "it is told once");
        assert_eq!(reporter.answered(Nanos(0), Ok(Taken { links: 0 }), 0.5), Some(Event::Stale));
    }
}
